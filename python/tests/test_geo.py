"""Where the rows of a batch lie on the ground, compared with rasterio."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import chaski

rasterio = pytest.importorskip("rasterio", reason="needs rasterio to write and to judge")
import rasters  # noqa: E402
from conftest import nonempty  # noqa: E402
from patience import logged  # noqa: E402
from rasterio.warp import transform as convert  # noqa: E402

pytestmark = pytest.mark.usefixtures("one_engine")


H, W = 60, 80
# The CRS, the upper left corner and the size of a pixel of each chip; the last one has no place.
CHIPS: list[tuple[Any, ...]] = [
    (32630, 5.2e5, 4.2e6, 10.0, 10.0),
    (32719, 3.3e5, 7.1e6, 20.0, 30.0),
    (4326, 12.5, 48.25, 0.0005, 0.00025),
    (),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("geo")
    image = np.arange(H * W, dtype=np.uint16).reshape(1, H, W)  # each pixel says which it is
    for i, chip in enumerate(CHIPS):
        profile: dict[str, Any] = dict(width=W, height=H, count=1, dtype="uint16")
        if chip:
            profile["crs"] = f"EPSG:{chip[0]}"
            profile["transform"] = rasterio.transform.from_origin(*chip[1:])
        rasters.write(path / f"{i}.tif", image, **profile)
    return path


def check(folder: Path, b: Any, row: int, chip: int, tolerance: float) -> None:
    """Compares the place of each pixel of a row with that of the pixel of the file that it is."""
    geo = {k: np.asarray(v)[row] for k, v in b["geo"].items()}
    assert np.isnat(geo.pop("time"))  # a folder has no times
    assert set(geo) == {"transform", "epsg", "bounds", "lonlat", "gsd"}
    if not CHIPS[chip]:
        assert geo["epsg"] == 0 and all(np.isnan(v).all() for k, v in geo.items() if k != "epsg")
        return
    with rasterio.open(folder / f"{chip}.tif") as d:
        t = rasterio.Affine.from_gdal(*geo["transform"])
        image = np.asarray(b["image"])[row, 0]
        rows, columns = np.mgrid[: image.shape[0], : image.shape[1]]
        x, y = (np.reshape(v, image.shape) for v in rasterio.transform.xy(t, rows, columns))
        wx, wy = (
            np.reshape(v, image.shape)
            for v in rasterio.transform.xy(d.transform, image // W, image % W)
        )
        assert np.abs(x - wx).max() <= tolerance * abs(d.transform.a)
        assert np.abs(y - wy).max() <= tolerance * abs(d.transform.e)
        assert geo["epsg"] == CHIPS[chip][0]
        h, w = image.shape
        corners = np.array([t * c for c in ((0, 0), (w, 0), (0, h), (w, h))])
        bounds = [*corners.min(0), *corners.max(0)]
        assert geo["bounds"] == pytest.approx(bounds, rel=1e-12)
        middle = corners.mean(0)
        (lon,), (lat,) = convert(d.crs, "EPSG:4326", [middle[0]], [middle[1]])
        assert geo["lonlat"] == pytest.approx((lon, lat), abs=2e-9)
        a, e = abs(d.transform.a), abs(d.transform.e)
        if d.crs.is_geographic:  # by two points on the ground, of the UTM zone of the chip
            xs, ys = convert(d.crs, "EPSG:32633", [lon, lon + a, lon], [lat, lat, lat + e])
            a = np.hypot(xs[1] - xs[0], ys[1] - ys[0])
            e = np.hypot(xs[2] - xs[0], ys[2] - ys[0])
        scale = np.sqrt(abs(t.determinant / d.transform.determinant))
        assert geo["gsd"] == pytest.approx(scale * np.sqrt(a * e), rel=2e-3)


@pytest.mark.parametrize(
    ("window", "tolerance"),
    [
        (None, 1e-6),
        (chaski.RandomWindow(24, per_asset=8), 1e-6),
        # The middle of a pixel lies at most half a pixel from that of the nearest one.
        (chaski.ResizedWindow(24, per_asset=8), 0.5 + 1e-6),
    ],
)
def test_pixels_lie_where_the_transform_says(folder: Path, window: Any, tolerance: float) -> None:
    pixels = chaski.Pixels(dtype="native", geo=True, augment="d4" if window else "flips")
    seen, how = set(), {"batch_size": 3, "last": "pad", "window": window, "seed": 3}
    with chaski.load(folder, pixels=pixels, **how) as loader:
        assert loader.fields[-1].name == "geo.time"
        for b in loader:
            for row in range(3):
                if not b["valid"][row]:
                    assert b["geo"]["epsg"][row] == 0 and np.isnan(b["geo"]["transform"][row]).all()
                    assert np.isnat(b["geo"]["time"][row])
                    continue
                chip = b["sample"][row] // (8 if window else 1)
                check(folder, b, row, chip, tolerance)
                seen.add(chip)
            assert b["geo.bounds"].dtype == np.float64 and b["geo.epsg"].dtype == np.int64
    assert seen == set(range(len(CHIPS)))


def test_a_catalog_gives_the_same_places(folder: Path, binary: str, tmp_path: Path) -> None:
    catalog = tmp_path / "c.parquet"
    command = [
        binary,
        "index",
        "--format",
        "parquet",
        "-o",
        str(catalog),
        *map(str, sorted(folder.glob("*.tif"))),
    ]
    subprocess.run(command, check=True)
    pixels = chaski.Pixels(dtype="native", geo=True, augment="d4")
    window = chaski.RandomWindow(16, per_asset=4)
    with chaski.load(catalog, batch_size=2, window=window, pixels=pixels) as loader:
        for b in nonempty(loader):
            for row in nonempty(np.flatnonzero(b["valid"])):
                check(folder, b, row, b["sample"][row] // 4, 1e-6)


def test_a_stack_on_a_grid_of_its_own(folder: Path) -> None:
    fields = {"image": chaski.Field(patterns=["{id}.tif"], grid=20, dtype="native")}
    pixels = chaski.Pixels(geo=True)
    with chaski.load(folder / "0.tif", fields=fields, pixels=pixels, batch_size=1) as loader:
        (b,) = list(loader)
        assert b["geo"]["transform"][0].tolist() == [5.2e5, 20, 0, 4.2e6, 0, -20]
        assert b["geo"]["gsd"].tolist() == [20] and b["image"].shape == (1, 1, H // 2, W // 2)


TIMES = ["2024-05-01T10:56:21.024Z", "1969-12-31T23:59:59.999999Z", None, "2024-07-01T10:00:00Z"]


def written(folder: Path, out: Path, name: str, times: Any) -> Path:
    """Writes a table of the chips with a column of times."""
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    paths = [str(folder / f"{i}.tif") for i in range(len(CHIPS))]
    parquet.write_table(pa.table({"image": paths, name: times}), out)
    return out


@pytest.mark.parametrize(
    "form", ["s", "ms", "us", "ns", "text", "seconds", "date", "other", "none"]
)
def test_times(folder: Path, tmp_path: Path, form: str) -> None:
    pa = pytest.importorskip("pyarrow")
    naive = [t and t.removesuffix("Z") for t in TIMES]
    want = np.array(naive, "datetime64[us]")
    name = "datetime"
    if form == "text":
        times: Any = TIMES
    elif form == "seconds":  # of the columns that are always times
        name, times = "stac:time_start", pa.array(want.astype("datetime64[s]").astype("int64"))
        times = pa.array(
            [None if t is None else v.as_py() for t, v in zip(TIMES, times, strict=True)]
        )
        want = want.astype("datetime64[s]").astype("datetime64[us]")
    elif form == "date":
        want = want.astype("datetime64[D]")
        times = pa.array(want, pa.date32())
    elif form == "none":
        name, times = "year", [2020, 2021, 2022, 2023]
        want = np.full(4, "NaT", "datetime64[us]")
    else:
        unit = "us" if form == "other" else form
        name = "acquired" if form == "other" else name
        times = pa.array(np.array(naive, f"datetime64[{unit}]"))
        want = want.astype(f"datetime64[{unit}]")  # both round down
    table = written(folder, tmp_path / "t.parquet", name, times)
    fields = {"image": chaski.Field(dtype="native")}
    window: Any = chaski.RandomWindow(24, per_asset=2)
    if form == "other":  # the column that the order of scenes names
        window = chaski.GeoWindow(200, 10, pick="newest:acquired", per_epoch=40)
    with chaski.load(
        table,
        batch_size=3,
        last="pad",
        fields=fields,
        window=window,
        pixels=chaski.Pixels(geo=True),
        on_bad=chaski.OnBad("skip" if form == "other" else "error"),
    ) as loader:
        seen = set()
        for b in loader:
            got = b["geo"]["time"]
            assert got.dtype == "datetime64[us]" and b["geo.time"].dtype == np.int64
            for row in range(3):
                at = b["sample"][row]
                if not b["valid"][row]:
                    assert np.isnat(got[row])
                    continue
                if form == "other":
                    chip = [32630, 32719, 32633].index(b["geo"]["epsg"][row])
                else:
                    chip = at // 2
                seen.add(int(chip))
                assert str(got[row]) == str(want.astype("datetime64[us]")[chip])
        assert len(seen) >= (2 if form == "other" else 4)


def test_times_of_sequences(folder: Path, tmp_path: Path) -> None:
    rows = "\n".join(f"{folder / '0.tif'},{k // 3},2024-0{9 - k}-01" for k in range(5))
    (tmp_path / "t.csv").write_text(f"image,place,month\n{rows}\n")
    with chaski.load(
        tmp_path / "t.csv",
        batch_size=2,
        fields={"image": chaski.Field(dtype="native")},
        rows=chaski.Rows(time=chaski.Time("place", "month", 3)),
        shuffle=False,
        pixels=chaski.Pixels(geo=True),
    ) as loader:
        (b,) = list(loader)
        want = [["2024-07-01", "2024-08-01", "2024-09-01"], ["2024-05-01", "2024-06-01", "NaT"]]
        np.testing.assert_array_equal(b["geo"]["time"], np.array(want, "datetime64[us]"))
        assert b.axes["geo.time"] == ("n", "t") and b["steps"].tolist() == [[1, 1, 1], [1, 1, 0]]


def test_of_torch(folder: Path) -> None:
    torch = pytest.importorskip("torch")
    import chaski.torch

    pixels = chaski.Pixels(dtype="native", geo=True)
    data = chaski.torch.IterableDataset(folder, batch_size=2, pixels=pixels)
    for b in nonempty(torch.utils.data.DataLoader(data, batch_size=None, num_workers=0)):
        assert isinstance(b["geo"]["lonlat"], torch.Tensor)
        assert b["geo"]["lonlat"].dtype == torch.float64
        assert b["geo"]["time"].dtype == torch.int64
        assert "missing" not in b
        with pytest.raises(KeyError):
            b["missing"]


def test_without_geo_there_is_none(folder: Path) -> None:
    with chaski.load(folder, batch_size=2) as loader:
        with pytest.raises(KeyError):
            next(iter(loader))["geo"]
    with pytest.raises(chaski.SpecError, match='"geo" is the name of the place of a window'):
        chaski.load(
            folder, batch_size=2, fields={"geo": chaski.Field()}, pixels=chaski.Pixels(geo=True)
        )


WAYS = {
    "points": r"4 ground control points and no transform, and {} one: 'gdalwarp -t_srs EPSG",
    "named": r'the EPSG code of the file\'s CRS, "my map", is not known, and {} one: .gdalwarp',
    "esri": r'the EPSG code of the file\'s CRS, "Some_Krovak", is not known, and {} one: .gdalwarp',
    "no name": r"does not name its CRS by a code, which {}: .gdal_edit.py -a_srs EPSG:CODE",
    "nowhere": r"does not say where it lies, which {}",
}


@pytest.mark.parametrize("case", WAYS)
def test_a_raster_that_is_not_placed_is_told_with_the_way(tmp_path, caplog, case):
    """Windows on the ground and shapes refuse it, the log of geo and info say what it has."""
    wgs84 = rasterio.CRS.from_epsg(4326).to_wkt(version="WKT1_GDAL")
    maps = {
        "named": 'LOCAL_CS["my map",UNIT["metre",1]]',
        "esri": f'PROJCS["Some Krovak",{wgs84},PROJECTION["Krovak"],'
        'PARAMETER["latitude_of_center",49],PARAMETER["longitude_of_center",24],PARAMETER["azimuth",30],UNIT["metre",1],'
        'PARAMETER["pseudo_standard_parallel_1",78.5],PARAMETER["scale_factor",0.9999]]',
    }
    folder = tmp_path / "scenes"
    folder.mkdir()
    how = {"driver": "GTiff", "count": 1, "height": 16, "width": 16, "dtype": "uint8"}
    if case in maps:
        how["crs"] = rasterio.CRS.from_wkt(maps[case])
    if case in ("named", "esri", "no name"):
        how["transform"] = rasterio.transform.from_origin(500000, 4600000, 10, 10)
    with rasterio.open(folder / "a.tif", "w", **how) as d:
        d.write(np.ones((1, 16, 16), np.uint8))
        if case == "points":
            corners = [(0, 0), (0, 16), (16, 0), (16, 16)]
            points = [
                rasterio.control.GroundControlPoint(r, c, 5e5 + 10 * c, 46e5 - 10 * r)
                for r, c in corners
            ]
            d.gcps = (points, rasterio.CRS.from_epsg(32630))
    with rasterio.open(folder / "a.tif") as d:
        assert chaski.info(folder / "a.tif")["tiff"].get("gcps", 0) == len(d.gcps[0])
    told = WAYS[case]
    with pytest.raises(chaski.UnsupportedError, match=told.format("windows on the ground need")):
        chaski.load(folder, batch_size=1, window=chaski.GeoWindow(size_m=40, resolution=10))
    (tmp_path / "s.geojson").write_text('{"type": "FeatureCollection", "features": []}')
    shapes = chaski.Field(vector=chaski.Vector(tmp_path / "s.geojson"))
    fields = {"image": chaski.Field(), "shapes": shapes}
    with (
        chaski.load(folder, batch_size=1, fields=fields) as loader,
        pytest.raises(chaski.UnsupportedError, match=told.format('the field "shapes" needs')),
    ):
        next(iter(loader))
    with chaski.load(folder, batch_size=1, pixels=chaski.Pixels(geo=True)) as loader:
        assert np.isnan(next(iter(loader))["geo.lonlat"]).all()
    text = logged(caplog, "geo needs").replace('\\"', '"')
    assert re.search(told.format("geo needs"), text)


def test_shapes_in_a_crs_without_a_code_name_it(tmp_path):
    pa = pytest.importorskip("pyarrow")
    crs = {"type": "ProjectedCRS", "name": "unknown map"}
    about = {"encoding": "WKB", "geometry_types": [], "crs": crs}
    geo = {"version": "1.0.0", "primary_column": "geometry", "columns": {"geometry": about}}
    table = pa.table({"geometry": pa.array([b""], pa.binary())})
    path = tmp_path / "s.parquet"
    pa.parquet.write_table(table.replace_schema_metadata({"geo": json.dumps(geo)}), path)
    (tmp_path / "scenes").mkdir()
    where = {"crs": "EPSG:32630", "transform": rasterio.transform.from_origin(5e5, 46e5, 10, 10)}
    rasters.write(tmp_path / "scenes/a.tif", np.ones((1, 16, 16), np.uint8), **where)
    fields = {"image": chaski.Field(), "shapes": chaski.Field(vector=chaski.Vector(path))}
    with pytest.raises(chaski.UnsupportedError, match=r"unknown map.* is not known: .*to_crs"):
        chaski.load(tmp_path / "scenes", batch_size=1, fields=fields)


NAMES = """
Google Maps Global Mercator
Google Maps Global Mercators
PCS Name = Google Maps Global Mercator|x
WGS 84 / Pseudo-Mercator
PCS Name = WGS_1984_Web_Mercator
WGS_1984_Web_Mercator|Units = m
wgs 84 web mercator
WGS_1984_Web_Mercator_Auxiliary_Sphere
WGS_1972_Web_Mercator
WGS 84 / World Mercator
Popular Visualisation CRS / Mercator
"""


@pytest.mark.parametrize("name", NAMES.strip().split("\n"))
@pytest.mark.parametrize("key", [1026, 3073])
def test_names_of_web_mercator(binary: str, tmp_path: Path, name: str, key: int) -> None:
    """A Mercator without a code is spherical by its name where it is for GDAL, in TIFF and WKT."""
    tifffile = pytest.importorskip("tifffile")
    keys = [(1024, 0, 1, 1), (key, 34737, len(name) + 1, 0), (2048, 0, 1, 4326)]
    keys += [(3072, 0, 1, 32767), (3074, 0, 1, 32767), (3075, 0, 1, 7), (3076, 0, 1, 9001)]
    keys += [(k, 34736, 1, i) for i, k in enumerate((3080, 3081, 3082, 3083, 3092))]
    flat = [v for k in sorted(keys) for v in k]
    place = (0.0, 0.0, 0.0, -8249238.0, 4508957.0, 0.0)
    tags = [(33550, 12, 3, (100.0, 100.0, 0.0)), (33922, 12, 6, place)]
    tags += [(34735, 3, 4 + len(flat), (1, 1, 0, len(keys), *flat))]
    tags += [(34736, 12, 5, (0.0, 0.0, 0.0, 0.0, 1.0)), (34737, 2, len(name) + 2, name + "|")]
    tifffile.imwrite(tmp_path / "a.tif", np.zeros((16, 16), "u1"), extratags=tags)
    wkt = rasterio.CRS.from_epsg(3395).to_wkt()
    wkt = re.sub(r',AUTHORITY\["EPSG","(3395|4326)"\]', "", wkt)
    wkt = wkt.replace("WGS 84 / World Mercator", name, 1).replace('"', "&quot;")
    (tmp_path / "a.vrt").write_text(
        f'<VRTDataset rasterXSize="16" rasterYSize="16"><SRS>{wkt}</SRS>'
        "<GeoTransform>-8249238, 100, 0, 4508957, 0, -100</GeoTransform>"
        '<VRTRasterBand dataType="Byte" band="1"><SimpleSource><SourceFilename relativeToVRT="1">'
        "a.tif</SourceFilename></SimpleSource></VRTRasterBand></VRTDataset>"
    )
    for path in (tmp_path / "a.tif", tmp_path / "a.vrt"):
        with rasterio.open(path) as d:
            x, y = d.transform * (8, 8)
            want = np.ravel(convert(d.crs, "EPSG:4326", [x], [y]))
        with chaski.load(path, batch_size=1, pixels=chaski.Pixels(geo=True)) as loader:
            got = np.ravel(next(iter(loader))["geo"]["lonlat"])
        assert np.allclose(got, want, atol=1e-6), path.suffix
