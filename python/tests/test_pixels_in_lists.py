"""Rasters whose samples are lists in the cells of a table, judged by numpy."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from conftest import nonempty

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


SHAPES = {2: (Y, X), 3: (B, Y, X), 4: (2, B, Y, X)}


def nested(a: np.ndarray, typ: pa.DataType, fixed: bool = False) -> pa.Array:
    """Lists in lists, as Hugging Face's Array2D to Array5D are stored."""
    for n in reversed(a.shape[1:]):
        typ = pa.list_(typ, n) if fixed else pa.list_(typ)
    return pa.array(a.tolist(), typ)


@pytest.mark.parametrize("depth", SHAPES)
@pytest.mark.parametrize("dtype", ["bool", "uint8", "int16", "int64", "float32", "float64"])
@pytest.mark.parametrize("pages", ["one", "many", "dictionary"])
def test_lists_in_lists(tmp_path, depth, dtype, pages):
    shape = SHAPES[depth]
    want = np.random.default_rng(depth).integers(0, 2 if dtype == "bool" else 99, (N, *shape))
    want = want.astype(dtype)
    typ = pa.from_numpy_dtype(np.dtype(dtype))
    columns = {"any": nested(want, typ), "fixed": nested(want, typ, fixed=True)}
    options = {
        "one": {"use_dictionary": False},
        "many": {"use_dictionary": False, "data_page_size": 64, "write_batch_size": 16},
        "dictionary": {"data_page_version": "2.0"},
    }[pages]
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table(columns), path, row_group_size=3, **options)
    for column in columns:
        got = load(path, column=column)
        np.testing.assert_array_equal(got.reshape(want.shape), want)
        assert got.dtype == (np.uint8 if dtype == "bool" else want.dtype)
    if depth == 3:
        np.testing.assert_array_equal(
            load(path, chaski.Grid(8), column="any")[0], want[0, :, :8, :8]
        )
        turned = load(path, column="any", dims="y x b")
        np.testing.assert_array_equal(turned, want.transpose(0, 3, 1, 2))
        with pytest.raises(chaski.UnsupportedError, match="an array of shape"):
            load(path, column="any", sizes=SIZES | {"y": Y + 1})
        with pytest.raises(chaski.UnsupportedError, match="an array of shape"):
            load(path, column="any", dims="y x")


class Array3D(pa.ExtensionType):
    def __init__(self) -> None:
        super().__init__(
            pa.list_(pa.list_(pa.list_(pa.uint8()))),
            "datasets.features.features.Array3DExtensionType",
        )

    def __arrow_ext_serialize__(self) -> bytes:
        return b'[[3, 20, 30], "uint8"]'

    @classmethod
    def __arrow_ext_deserialize__(cls, _type: pa.DataType, _data: bytes) -> Array3D:
        return cls()


def test_arrays_of_hugging_face(tmp_path, pixels):
    """An extension type is stored as its lists, and null rows are missing."""
    storage = nested(pixels, pa.uint8())
    column = pa.ExtensionArray.from_storage(Array3D(), storage)
    label = pa.array(range(N))
    pq.write_table(pa.table({"image": column, "label": label}), tmp_path / "a.parquet")
    fields = {"image": chaski.Field(dtype="native"), "label": chaski.Field()}
    with chaski.load(tmp_path / "a.parquet", batch_size=2, fields=fields, seed=3) as loader:
        for batch in nonempty(loader):
            np.testing.assert_array_equal(batch["image"], pixels[batch["label"]])


def test_lists_of_other_lengths(tmp_path):
    """Ragged and empty lists, and nulls, are bad samples."""
    path = tmp_path / "a.parquet"
    rows = [[[1, 2], [3, 4]], [[1, 2], [3]], [[1, 2], []], [[], [1, 2]], [[1, 2], None],
            [[1, None], [3, 4]], [], None, [[5, 6], [7, 8]]]  # fmt: skip
    said = [None, "lists of 2 and of 1", "empty list", "empty list", "empty list",
            "sample 1 of the list is null", "has no samples", ".", None]  # fmt: skip
    for compact in (True, False):
        pq.write_table(
            pa.table({"px": pa.array(rows, pa.list_(pa.list_(pa.int16())))}), path,
            data_page_size=1 << 20 if compact else 1, write_batch_size=1024 if compact else 1,
        )  # fmt: skip
        fields = {"image": chaski.Field(column="px", dtype="native")}
        for k, says in enumerate(said):
            with chaski.load(path, batch_size=1, fields=fields, shuffle=False) as loader:
                if says is None:
                    assert loader.sample(k)["image"].tolist() == [rows[k]]
                    continue
                with pytest.raises(chaski.Error, match=says):
                    loader.sample(k)


def test_an_array_of_five_axes_is_refused(tmp_path):
    a = np.zeros((2, 2, 2, 2, 3, 3), np.uint8)
    pq.write_table(pa.table({"px": nested(a, pa.uint8())}), tmp_path / "a.parquet")
    with pytest.raises(chaski.UnsupportedError, match=r"its shape is \[2 2 2 3 3\]"):
        load(tmp_path / "a.parquet", column="px")
