"""Physical values by scales and offsets that columns of a table have for each row."""

from __future__ import annotations

import subprocess

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
import rasters
from conftest import nonempty
from test_physical import rows

import chaski

pytestmark = pytest.mark.usefixtures("one_engine")

rasterio = pytest.importorskip("rasterio", reason="needs rasterio to write rasters")

SIDE, STORED = 32, 7  # the stored value of missing pixels
GAIN = [1e-4, 2e-4, 1e-4, 5e-5]
ADD = [-0.1, 0.0, -0.2, 0.3]
BY_BAND = {"m0": [1.0, 2.0, 3.0, 4.0], "m1": [10.0, 20.0, 30.0, 40.0], "m2": [0.5, 0.25, 2.0, 8.0]}


def pixels(row: int) -> np.ndarray:
    x = np.random.default_rng(row).integers(10, 10000, (3, SIDE, SIDE)).astype("uint16")
    x[:, 3:6, 4] = STORED
    return x


@pytest.fixture
def table(tmp_path):
    """Writes four rasters, each also as a file for each band, and a table of them."""
    columns = {"path": [], "place": ["p", "p", "q", "q"], "gain": GAIN, "add": ADD, **BY_BAND}
    columns["day"] = ["2024-01-02", "2024-01-09", "2024-01-01", "2024-02-01"]
    columns |= {f"b{b}": [f"{row}_{b}.tif" for row in range(4)] for b in range(3)}
    columns |= {"word": ["a"] * 4, "holed": [1.0, None, 1.0, 1.0], "score": [0, 1, 2, 3]}
    how = {"height": SIDE, "width": SIDE, "dtype": "uint16", "nodata": STORED}
    how |= {"crs": "EPSG:32630", "transform": rasterio.transform.from_origin(5e5, 46e5, 10, 10)}
    for row in range(4):
        x = pixels(row)
        with rasterio.open(tmp_path / f"{row}.tif", "w", driver="GTiff", count=3, **how) as f:
            f.write(x)
            f.scales, f.offsets = (2.0, 3.0, 4.0), (5.0, 6.0, 7.0)
        for b in range(3):
            rasters.write(tmp_path / f"{row}_{b}.tif", x[b : b + 1], **how)
        columns["path"].append(f"{row}.tif")
    pq.write_table(pa.table(columns), tmp_path / "t.parquet")
    pa.csv.write_csv(pa.table(columns), tmp_path / "t.csv")
    return tmp_path


def judge(row: int, scale, offset, fill=0.0) -> np.ndarray:
    """Returns what numpy says: scale and offset have a number, or one for each band."""
    x = pixels(row).astype("float64")
    each = [
        np.broadcast_to(np.asarray(v, "float64").reshape(-1, 1, 1), x.shape)
        for v in (scale, offset)
    ]
    return np.where(x == STORED, fill, x * each[0] + each[1])


def same(got, want):
    np.testing.assert_allclose(np.asarray(got, "float64"), want, rtol=2e-6, atol=1e-6)


@pytest.mark.parametrize("name", ["t.parquet", "t.csv", "frame", "catalog"])
def test_a_scale_and_an_offset_for_each_row(binary, table, name):
    source = table / name
    if name == "frame":
        source = pq.read_table(table / "t.parquet").to_pandas()
        source["path"] = [str(table / p) for p in source["path"]]
    elif name == "catalog":
        out = table / "c.parquet"
        command = [binary, "index", table / "t.parquet", "--field", "path", "-o", out]
        subprocess.run(command, check=True)
        source = out
    field = chaski.Field(column="path", scale="gain", offset="add")
    same(rows(source, field), [judge(k, GAIN[k], ADD[k]) for k in range(4)])
    picked = chaski.Field(column="path", scale="gain", offset="add", bands=[2, 0], fill=-9)
    same(rows(source, picked), [judge(k, GAIN[k], ADD[k], -9)[[2, 0]] for k in range(4)])


def test_what_has_no_column_is_the_files(table):
    only = chaski.Field(column="path", scale="gain")
    same(rows(table / "t.parquet", only), [judge(k, GAIN[k], [5, 6, 7]) for k in range(4)])
    only = chaski.Field(column="path", offset=["add"])
    same(rows(table / "t.parquet", only), [judge(k, [2, 3, 4], ADD[k]) for k in range(4)])


def test_a_column_for_each_band(table):
    field = chaski.Field(column="path", scale=list(BY_BAND), offset="add", bands=[1, 0, 1])
    want = [judge(k, [c[k] for c in BY_BAND.values()], ADD[k])[[1, 0, 1]] for k in range(4)]
    same(rows(table / "t.parquet", field), want)
    stack = chaski.Field(columns=["b0", "b1", "b2"], scale=list(BY_BAND), offset="add")
    want = [judge(k, [c[k] for c in BY_BAND.values()], ADD[k]) for k in range(4)]
    same(rows(table / "t.parquet", stack), want)


def test_each_step_of_a_series_has_its_own(table):
    field = chaski.Field(column="path", scale="gain", offset="add")
    series = chaski.Rows(time=chaski.Time(key="place", order="day", length=2))
    got = rows(table / "t.parquet", field, rows=series)
    assert got.shape == (2, 2, 3, SIDE, SIDE)
    same(got, [[judge(k, GAIN[k], ADD[k]) for k in pair] for pair in ((0, 1), (2, 3))])


def test_windows_statistics_and_resuming(binary, table):
    source, field = table / "t.parquet", chaski.Field(column="path", scale="gain", offset="add")
    options = {"window": 16, "seed": 3, "batch_size": 2, "fields": {"image": field}}
    with chaski.load(source, pixels=chaski.Pixels(windows=True), **options) as loader:
        for b in nonempty(loader):
            for k, (y, x, h, w) in zip(b["sample"], b["window"], strict=True):
                want = judge(k, GAIN[k], ADD[k])[:, y : y + h, x : x + w]
                same(b["image"][list(b["sample"]).index(k)], want)
    with chaski.load(source, **options) as loader:
        batches = iter(loader)
        next(batches)
        state = loader.state_dict()
        rest = [b["image"].copy() for b in batches]
    with chaski.load(source, **options) as loader:
        loader.load_state_dict(state)
        again = [b["image"].copy() for b in loader]
    assert len(rest) == len(again) == 1 and np.array_equal(rest[0], again[0])
    report = chaski.stats(source, fields={"image": field})
    values = np.stack([judge(k, GAIN[k], ADD[k], np.nan) for k in range(4)])
    got = [b["mean"] for b in report["fields"]["image"]["bands"]]
    np.testing.assert_allclose(got, np.nanmean(values, axis=(0, 2, 3)), rtol=1e-6)
    normal = chaski.Field(column="path", scale="gain", offset="add", normalize="mean_std")
    got = rows(source, normal, stats=report)
    mean, std = np.nanmean(values, axis=(0, 2, 3)), np.nanstd(values, axis=(0, 2, 3))
    want = (values - mean[:, None, None]) / std[:, None, None]
    np.testing.assert_allclose(got, np.nan_to_num(want), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    "field, error",
    [
        ({"scale": "none"}, "none"),
        ({"scale": "word"}, "holds strings, not numbers"),
        ({"scale": "holed"}, 'column "holed".* NaN is no scale'),
        ({"scale": ["gain", "add"]}, "3 bands, and 2 columns"),
        ({"scale": []}, "must be the name of a column"),
        ({"scale": 2}, "scale is 2: it must be the name of a column"),
        ({"scale": "gain", "dtype": "uint8"}, 'physical is true, and dtype is "uint8"'),
        ({"scale": "gain", "lut": {1: 2}, "fill": 0}, "lut is given"),
    ],
)
def test_what_is_no_scale(table, field, error):
    with pytest.raises(chaski.Error, match=error):
        rows(table / "t.parquet", chaski.Field(column="path", **field))
    with pytest.raises(chaski.Error, match="scale"):
        rows(table / "t.parquet", chaski.Field(column="score", scale="gain"))


def test_a_row_without_a_scale_is_a_bad_sample(table):
    field = chaski.Field(column="path", scale="holed", offset="add")
    with chaski.load(
        table / "t.parquet", batch_size=4, fields={"image": field}, on_bad="skip"
    ) as loader:
        (batch,) = list(loader)
    valid = {int(k): bool(v) for k, v in zip(batch["sample"], batch["valid"], strict=True)}
    assert sum(valid.values()) == 3


@pytest.mark.parametrize("top", [{}, {"scale": "m0"}])
def test_sources_of_a_mixture(table, top):
    """Each source has the scales of its own columns, also where other fields have none."""
    sources = {
        "a": chaski.Source(
            table / "t.parquet", fields={"image": chaski.Field(scale="gain", offset="add")}
        ),
        "b": table / "t.parquet",
    }
    fields = {"image": chaski.Field(column="path", **top), "score": chaski.Field(column="score")}
    with chaski.load(chaski.Mixture(sources), batch_size=2, fields=fields) as loader:
        batches = [(b["source"], b["score"], b["image"]) for b in loader]
    seen = set()
    for source, score, images in nonempty(batches):
        for k in np.flatnonzero(score >= 0):
            row = int(score[k])
            scale, offset = (GAIN[row], ADD[row]) if source[k] == 0 else (1, 0)
            if source[k] == 1 and top:  # where the spec has no scale, pixels are as stored
                scale, offset = BY_BAND["m0"][row], (5, 6, 7)
            same(images[k], judge(row, scale, offset))
            seen.add(int(source[k]))
    assert seen == {0, 1}


@pytest.mark.parametrize("name", ["t.parquet", "t.csv"])
def test_a_state_of_other_scales_is_refused(table, name):
    options = {
        "batch_size": 2,
        "fields": {"image": chaski.Field(column="path", scale="gain", offset="add")},
    }
    with chaski.load(table / name, **options) as loader:
        next(iter(loader))
        state = loader.state_dict()
    columns = pq.read_table(table / "t.parquet")
    place = columns.schema.get_field_index("gain")
    changed = columns.set_column(place, "gain", pa.array(GAIN[::-1]))
    (pq.write_table if name == "t.parquet" else pa.csv.write_csv)(changed, table / name)
    with chaski.load(table / name, **options) as loader, pytest.raises(chaski.Error, match="data"):
        loader.load_state_dict(state)
