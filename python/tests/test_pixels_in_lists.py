"""Rasters whose samples are lists in the cells of a table, judged by numpy."""

import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import chaski

N, B, Y, X = 5, 3, 20, 30
SIZES = {"b": B, "y": Y, "x": X}


@pytest.fixture
def pixels():
    return np.random.default_rng(1).integers(0, 255, (N, B, Y, X), dtype=np.uint8)


def load(source, window=None, **field):
    fields = {"image": chaski.Field(dtype="native", **field)}
    with chaski.load(source, batch_size=N, shuffle=False, fields=fields, window=window) as loader:
        return np.asarray(next(iter(loader))["image"])


@pytest.mark.parametrize(
    "typ", [pa.uint8(), pa.int16(), pa.uint32(), pa.int64(), pa.float32(), pa.float64()]
)
def test_parquet(tmp_path, pixels, typ):
    want = pixels.astype(typ.to_pandas_dtype())
    lists = [a.ravel().tolist() for a in want]
    path = tmp_path / "a.parquet"
    table = pa.table(
        {"any": pa.array(lists, pa.list_(typ)), "fixed": pa.array(lists, pa.list_(typ, B * Y * X))}
    )
    pq.write_table(table, path, row_group_size=2)
    for column in ("any", "fixed"):
        got = load(path, column=column, sizes=SIZES)
        assert got.dtype == want.dtype
        np.testing.assert_array_equal(got, want)
        last = load(path, column=column, dims="y x b", sizes={"y": Y, "x": X})
        np.testing.assert_array_equal(last, want.reshape(N, Y, X, B).transpose(0, 3, 1, 2))
        with pytest.raises(chaski.UnsupportedError, match="1800 samples .* give the field sizes"):
            load(path, column=column, kind="raster")
    window = chaski.Grid(8)
    got = load(path, window, column="any", sizes=SIZES)
    np.testing.assert_array_equal(got[0], want[0, :, :8, :8])


def test_json(tmp_path, pixels):
    square = pixels[:, :2, :, :Y]
    rows = [
        {"band_1": (a[0] + 0.5).ravel().tolist(), "band_2": (a[1] + 0.5).ravel().tolist()}
        for a in square
    ]
    (tmp_path / "train.json").write_text(json.dumps(rows))
    got = load(tmp_path / "train.json", columns=["band_1", "band_2"])
    assert got.dtype == np.float64
    np.testing.assert_array_equal(got, square + 0.5)


def test_frame(pixels):
    frame = pd.DataFrame({"px": [a.ravel() for a in pixels]})
    np.testing.assert_array_equal(load(frame, column="px", dims="b y x", sizes=SIZES), pixels)


def test_other_lengths(tmp_path):
    """A list that is shorter than the others, or has a null, is a bad sample."""
    path = tmp_path / "a.parquet"
    lists = [list(range(16)), list(range(15)), [1, None] * 8]
    pq.write_table(pa.table({"px": pa.array(lists, pa.list_(pa.int16()))}), path)
    fields = {"image": chaski.Field(column="px", kind="raster")}
    with chaski.load(path, batch_size=1, shuffle=False, fields=fields) as loader:
        batches = iter(loader)
        assert np.asarray(next(batches)["image"]).ravel().tolist() == lists[0]
        with pytest.raises(chaski.UnsupportedError, match="row 1: 15 samples"):
            next(batches)
    with chaski.load(path, batch_size=3, shuffle=False, fields=fields, on_bad="skip") as loader:
        assert np.asarray(next(iter(loader))["valid"]).tolist() == [True, False, False]
