"""What a field says is missing is so in batches, statistics, weights and mosaics, as in numpy."""

from __future__ import annotations

import json
import subprocess

import numpy as np
import pytest
import rasters
from conftest import nonempty
from patience import logged

import chaski
from chaski import Field, Pixels

pytestmark = pytest.mark.usefixtures("one_engine")

rasterio = pytest.importorskip("rasterio", reason="needs rasterio to write rasters")

N, H, W = 4, 40, 48
SAID = [0, [0, 255], [], [[0], [255], []], "nan"]


def missing(x: np.ndarray, said) -> np.ndarray:
    """Returns where pixels (…, b, y, x) are missing."""
    out = np.zeros(x.shape, bool)
    lists = said if isinstance(said, list) else [said]
    if not any(isinstance(v, list) for v in lists):
        lists = [lists] * x.shape[-3]
    for b, values in enumerate(lists):
        for v in map(float, values):
            of_band = x[..., b, :, :]
            out[..., b, :, :] |= (
                np.isnan(of_band) if np.isnan(v) else of_band == np.asarray(v, x.dtype)
            )
    return out


@pytest.fixture(scope="module", params=["uint8", "int16", "float32", "float64"])
def data(request, tmp_path_factory):
    """A folder of rasters that declare 7, with 0, 255 and, of floats, NaN among their pixels."""
    folder = tmp_path_factory.mktemp("nodata")
    rng = np.random.default_rng(5)
    x = rng.choice([0, 1, 2, 7, 200, 255], (N, 3, H, W)).astype(request.param)
    if x.dtype.kind == "f":
        x[rng.random(x.shape) < 0.1] = np.nan
    for i in range(N):
        rasters.write(folder / f"{i}.tif", x[i], nodata=7)
    return folder, x


def declared(x: np.ndarray) -> np.ndarray:
    return (x == 7) | np.isnan(x)


@pytest.mark.parametrize("transport", ["grpc", "auto"])
@pytest.mark.parametrize("said", [None, *SAID], ids=str)
def test_batches(binary, data, tmp_path, said, transport):
    folder, x = data
    engine = chaski.Engine(transport=transport)
    catalog = tmp_path / "c.parquet"
    subprocess.run([binary, "index", folder, "-o", catalog], check=True, capture_output=True)
    gone = declared(x) if said is None else missing(x, said)
    for source in (folder, catalog):
        for dtype in ("native", "float32"):
            field = Field(nodata=said, dtype=dtype, validity="ok", fill=9)
            with chaski.load(
                source, batch_size=3, fields={"image": field}, engine=engine
            ) as loader:
                seen = 0
                for b in loader:
                    k = b["sample"]
                    assert np.array_equal(b["ok"], ~gone[k])
                    want = np.where(gone[k], 9, x[k]).astype(b["image"].dtype)
                    np.testing.assert_array_equal(b["image"], want)
                    seen += len(k)
                assert seen == N
        # Without validity the engine may send pixels as stored, which the client fills.
        with chaski.load(
            source,
            batch_size=N,
            fields={"image": Field(nodata=said, dtype="float32", fill=9)},
            engine=engine,
        ) as loader:
            b = next(iter(loader))
            np.testing.assert_array_equal(
                b["image"], np.where(gone, 9, x).astype("float32")[b["sample"]]
            )


@pytest.mark.parametrize("said", SAID, ids=str)
def test_statistics(data, said):
    folder, x = data
    with_bands = [Field(nodata=said)]
    if not isinstance(said, list):
        with_bands.append(Field(nodata=said, bands=[2, 0]))
    for field in with_bands:
        got = chaski.stats(folder, fields={"image": field})
        x64 = (
            np.where(missing(x, said), np.nan, x.astype("float64"))
            .transpose(1, 0, 2, 3)
            .reshape(3, -1)
        )
        want = np.nanmean(x64, axis=1)[field.bands or [0, 1, 2]]
        assert got.mean() == pytest.approx(want, rel=1e-9)


def test_bands_of_statistics(tmp_path):
    """Lists for each band follow the bands that a field picks."""
    x = np.stack([np.full((8, 8), v, "uint8") for v in (1, 2, 3)])
    x[:, :4] = np.array([10, 20, 30])[:, None, None]
    rasters.write(tmp_path / "a.tif", x)
    field = Field(bands=[2, 0], nodata=[[30], [10]])
    assert chaski.stats(tmp_path, fields={"image": field}).mean().tolist() == [3, 1]
    with chaski.load(
        tmp_path,
        batch_size=1,
        fields={"image": field},
        pixels=Pixels(validity="ok", dtype="native"),
    ) as loader:
        assert np.array_equal(next(iter(loader))["ok"][0], (x[[2, 0]] < 10).astype("uint8"))


def test_weights(binary, tmp_path):
    """Windows are drawn where pixels are there."""
    x = np.zeros((1, 64, 64), "uint8")
    x[:, 32:, 32:] = 5
    folder = tmp_path / "chips"
    folder.mkdir()
    rasters.write(folder / "a.tif", x)
    spec, out = tmp_path / "spec.json", tmp_path / "fields.weights"
    fields = [{"name": "image", "dtype": "native", "layout": "n b y x", "nodata": [[0]]}]
    spec.write_text(
        json.dumps({"source": str(folder), "all_fields": True, "fields": fields, "batch_size": 1})
    )
    command = [binary, "stats", "--sampling", "--cell", "32", "-o", out, spec]
    subprocess.run(command, check=True, capture_output=True)
    window = chaski.WeightedWindow(8, out, per_asset=64)
    with chaski.load(folder, batch_size=64, window=window, seed=1) as loader:
        assert (next(iter(loader))["image"].max((1, 2, 3)) == 5).all()


@pytest.mark.parametrize("said", [0, [[0], [255], []]], ids=str)
def test_windows_that_shrink(data, said):
    """Missing pixels do not bleed into their neighbours."""
    folder, x = data
    gone = missing(x, said)
    window = chaski.ResizedWindow((H // 2, W // 2), scale=(1, 1), ratio=1)
    field = Field(nodata=said, dtype="float32", resample="nearest", validity="ok", fill=-1)
    with chaski.load(folder, batch_size=N, fields={"image": field}, window=window) as loader:
        b = next(iter(loader))
    for row, k in nonempty(enumerate(b["sample"])):
        want = np.where(gone[k], -1, np.nan_to_num(x[k].astype("float32"), nan=-2))
        pixels = {tuple(p) for p in want.reshape(3, -1).T.tolist()}
        got = np.nan_to_num(b["image"][row], nan=-2)
        assert {tuple(p) for p in got.reshape(3, -1).T.tolist()} <= pixels
        assert np.array_equal(b["ok"][row] == 0, b["image"][row] == -1)


@pytest.mark.parametrize("rule", ["first", "mean"])
def test_mosaics(tmp_path, rule):
    """Another scene fills what a field says is missing in the first one."""
    rng = np.random.default_rng(0)
    where = {
        "crs": "EPSG:32630",
        "transform": rasterio.transform.from_origin(500000, 4600000, 10, 10),
    }
    x = rng.integers(1, 200, (2, 1, 64, 64)).astype("uint16")
    x[0, :, :20] = 0
    x[1, :, 10:30] = 0
    lines = ["path"]
    for i in range(2):
        rasters.write(tmp_path / f"{i}.tif", x[i], **where)
        lines.append(f"{i}.tif")
    window = chaski.GeoWindow(size_m=320, resolution=10, crs="EPSG:32630", mosaic=rule)
    field = Field(nodata=0, dtype="float32", validity="ok", fill=-1)
    options = {"fields": {"image": field}, "pixels": Pixels(geo=True), "window": window}
    with chaski.load(tmp_path, batch_size=1, **options) as loader:
        b = next(iter(loader))
    left, top = np.ravel(b["geo"]["transform"][0])[[0, 3]]
    down, right = round((4600000 - top) / 10), round((left - 500000) / 10)
    x = x[:, :, down : down + 32, right : right + 32]
    there = x != 0
    if rule == "first":
        want = np.where(there[0], x[0], x[1]).astype("float32")
    else:
        want = x.sum(0, dtype="float32") / np.maximum(there.sum(0), 1)
    want[~there.any(0)] = -1
    assert np.array_equal(b["ok"][0] > 0, there.any(0))
    assert np.allclose(b["image"][0], want, rtol=1e-6)


def test_a_mask_counts_too(tmp_path):
    x = np.ones((1, 8, 8), "uint8")
    x[:, 0] = 0
    with rasterio.Env(GDAL_TIFF_INTERNAL_MASK=True):
        rasters.write(tmp_path / "a.tif", x)
        with rasterio.open(tmp_path / "a.tif", "r+") as f:
            f.write_mask(np.arange(64).reshape(8, 8) < 56)
    with chaski.load(
        tmp_path, batch_size=1, fields={"image": Field(nodata=0)}, pixels=Pixels(validity="ok")
    ) as loader:
        assert next(iter(loader))["ok"][0, 0, :, 0].tolist() == [0, 1, 1, 1, 1, 1, 1, 0]


@pytest.mark.parametrize(("dtype", "fill"), [("float16", 70000), ("float32", 1e39)])
def test_a_fill_that_the_dtype_does_not_have(data, dtype, fill):
    with pytest.raises(chaski.SpecError, match=f"fill is .*, over what {dtype} has"):
        chaski.load(data[0], batch_size=1, pixels=Pixels(dtype=dtype, fill=fill))


@pytest.mark.parametrize(
    ("nodata", "says"),
    [
        ("none", "nodata"),
        ([[0], [1]], "2 lists for 3 bands"),
        (list(range(17)), "at most 16"),
        ({"a": 0}, "nodata"),
        ([None], "nodata"),
        (True, "nodata"),
        (2**53 + 1, "float64 has exactly"),
    ],
    ids=str,
)
def test_refused(data, nodata, says):
    with pytest.raises(chaski.errors.Error, match=says):
        next(iter(chaski.load(data[0], batch_size=1, fields={"image": Field(nodata=nodata)})))


def test_overviews_have_other_nodata(tmp_path):
    """An overview blends what only the field calls missing, so the raster itself is read."""
    x = np.full((1, 512, 512), 200, "uint8")
    x[0, :, ::7] = 5
    where = {"crs": "EPSG:32630", "transform": rasterio.transform.from_origin(5e5, 4.6e6, 10, 10)}
    rasters.write(tmp_path / "a.tif", x, tiled=True, blockxsize=128, blockysize=128, **where)
    with rasterio.open(tmp_path / "a.tif", "r+") as f:
        f.build_overviews([2, 4], rasterio.enums.Resampling.average)
    window = chaski.GeoWindow(size_m=4000, resolution=40, per_epoch=1)
    field = Field(dtype="float32", nodata=5, validity="ok", fill=-1, resample="antialias")
    with chaski.load(tmp_path, batch_size=1, fields={"image": field}, window=window) as loader:
        b = next(iter(loader))
    assert np.allclose(b["image"][b["ok"] > 0], 200)


@pytest.mark.parametrize(
    ("said", "told"),
    [(300, "300 in uint8"), ([0, -1], "-1 in uint8"), (0.5, "0.5 in uint8"), (255, ""), ([], "")],
)
def test_values_that_the_dtype_lacks_are_told(tmp_path, caplog, said, told):
    rasters.write(tmp_path / "a.tif", np.zeros((1, 9, 9), np.uint8))
    with chaski.load(tmp_path, batch_size=1, fields={"image": Field(nodata=said)}) as loader:
        next(iter(loader))
    text = logged(caplog, told)
    assert text.count("no pixel equals these values of nodata") == bool(told)
    assert told in text


@pytest.mark.parametrize(("column", "kind"), [("label", "not found"), ("count", "unsupported")])
def test_a_column_that_is_no_raster_has_no_nodata(tmp_path, column, kind):
    rasters.write(tmp_path / "a.tif", np.zeros((1, 9, 9), np.uint8))
    (tmp_path / "t.csv").write_text("path,label,count\na.tif,water,3\n")
    fields = {"image": "path", "y": Field(column=column, nodata=0)}
    with pytest.raises(chaski.Error, match="y.*nodata is given, which is for rasters") as told:
        chaski.load(tmp_path / "t.csv", batch_size=1, fields=fields)
    assert column in str(told.value) and str(told.value).endswith(kind)


@pytest.mark.parametrize(
    "dtype, options, kept",
    [
        ("uint8", {}, True),
        ("int8", {}, True),
        ("uint8", {"nodata": [7, 99]}, True),
        ("uint8", {"fill": 0}, False),
        ("uint8", {"dtype": "float32"}, False),
        ("uint8", {"dtype": "int64"}, True),
        ("uint8", {"nodata": []}, True),
        ("int16", {}, False),
        ("uint16", {"dtype": "int64"}, True),
    ],
)
def test_nodata_of_labels_is_no_class(tmp_path, caplog, dtype, options, kept):
    """One band of 8 bits keeps its nodata, and the log says so; of more bits it says what is 0."""
    stored = np.random.default_rng(3).choice([0, 1, 7, 99], (1, H, W)).astype(dtype)
    for name, pixels, nodata in (("im", np.ones((3, H, W), "uint8"), 0), ("m", stored, 99)):
        (tmp_path / name).mkdir()
        rasters.write(tmp_path / name / "a.tif", pixels, nodata=nodata)
    fields = {"image": "im/{id}.tif", "mask": Field(pattern="m/{id}.tif", **options)}
    with chaski.load(tmp_path, fields=fields, batch_size=1) as loader:
        got = next(iter(loader))["mask"][0]
    assert np.array_equal(got, stored if kept else np.where(stored == 99, 0, stored))
    due = ["nodata of one band of"] * (not options or options == {"nodata": [7, 99]})
    assert ("mask (" in logged(caplog, *due)) == bool(due)
