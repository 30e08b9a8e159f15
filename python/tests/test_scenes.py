"""Windows on the ground, against rasterio: every window is warped again by GDAL, scene by scene."""

from __future__ import annotations

import functools
import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import rasters
from conftest import nonempty
from reference.sampling import share_of_cell

import chaski

pytestmark = pytest.mark.usefixtures("one_engine")

rasterio = pytest.importorskip("rasterio", reason="needs rasterio to write and to judge")
warp = pytest.importorskip("rasterio.warp")

NODATA = 0
SIDE = 32  # pixels of a window


def write(path: Path, epsg: int, x: float, y: float, size: float, shape: Any, nodata: Any) -> None:
    """Writes a scene of a smooth surface on the ground, and its label beside it."""
    h, w = shape
    path.parent.mkdir(parents=True, exist_ok=True)
    place = rasterio.Affine(size, 0, x, 0, -size, y)
    row, col = np.mgrid[:h, :w]
    pixels = 2000 + 900 * np.sin(row / 17 + len(path.stem)) + 800 * np.cos(col / 23)
    data = pixels.astype(np.uint16)
    if nodata is not None:
        data[(row + col) % 40 < 6] = nodata
    profile = dict(driver="GTiff", height=h, width=w, crs=f"EPSG:{epsg}", transform=place)
    profile |= dict(tiled=True, blockxsize=64, blockysize=64, compress="deflate")
    rasters.write(path, np.stack([data, data // 2]), dtype="uint16", nodata=nodata, **profile)
    label = path.parent.parent / "labels" / path.name
    label.parent.mkdir(exist_ok=True)
    rasters.write(label, (1 + (row // 8 + col // 5) % 9).astype(np.uint8)[None], **profile)


@pytest.fixture(scope="module")
def scenes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Scenes at both sides of the seam of zones 30 and 31, in three CRSs and resolutions."""
    root = tmp_path_factory.mktemp("scenes")
    # 0 degrees east, 41.5 north is (750466, 4598585) in zone 30 and (249534, 4598585) in zone 31.
    write(root / "images" / "a.tif", 32630, 747000, 4600000, 10, (300, 320), NODATA)
    write(root / "images" / "b.tif", 32631, 249000, 4600500, 20, (150, 140), NODATA)
    write(root / "images" / "c.tif", 4326, -0.01, 41.52, 1e-4, (400, 400), None)
    return root


FIELDS = {
    "image": chaski.Field(pattern="images/{id}.tif", dtype="float32", fill=np.nan),
    "near": chaski.Field(pattern="images/{id}.tif", dtype="native", validity="ok"),
    "label": chaski.Field(pattern="labels/{id}.tif", dtype="native", fill=255),
}


def judged(path: Path, epsg: int, transform: Any, how: str) -> np.ndarray:
    """Returns what GDAL makes of a scene in a window, with exact places; NaN is missing."""
    method = getattr(warp.Resampling, how)
    pixels, place, crs, nodata = opened(path)
    out = np.full((len(pixels), SIDE, SIDE), np.nan, np.float32)
    warp.reproject(
        pixels,
        out,
        src_transform=place,
        src_crs=crs,
        src_nodata=nodata,
        dst_transform=transform,
        dst_crs=f"EPSG:{epsg}",
        dst_nodata=np.nan,
        resampling=method,
        tolerance=0,
    )
    return out


@functools.cache
def opened(path: Path) -> Any:
    """Returns the pixels of a scene, its transform, its CRS and the value for missing pixels."""
    with rasterio.open(path) as f:
        return f.read().astype(np.float32), f.transform, f.crs, f.nodata


def mosaic(root: Path, kind: str, names: str, epsg: int, transform: Any, how: str) -> np.ndarray:
    """Returns the first valid pixel of scenes."""
    out = None
    for name in names:
        one = judged(root / kind / f"{name}.tif", epsg, transform, how)
        out = one if out is None else np.where(np.isnan(out), one, out)
    assert out is not None
    return out


def windows(loader: Any) -> Any:
    """Yields the rows of an epoch as dicts."""
    for batch in loader:
        for k in np.flatnonzero(batch["valid"]):
            geo = {name: v[k] for name, v in batch["geo"].items()}
            yield {n: batch[n][k] for n in (*FIELDS, "ok", "sample", "position")} | {"geo": geo}


PIXELS = chaski.Pixels(geo=True)


def test_windows_are_those_of_gdal(scenes: Path) -> None:
    window = chaski.GeoWindow(10 * SIDE, 10, per_epoch=60, edge=True)
    unlike = compared = 0
    differences, zones = [], set()
    with chaski.load(
        scenes, fields=FIELDS, batch_size=20, window=window, pixels=PIXELS, seed=2
    ) as loader:
        for row in windows(loader):
            epsg, t = int(row["geo"]["epsg"]), rasterio.Affine.from_gdal(*row["geo"]["transform"])
            zones.add(epsg)
            near = mosaic(scenes, "images", "abc", epsg, t, "nearest")
            ok = row["ok"] != 0
            unlike += int(np.sum(ok == np.isnan(near)))
            both = ok & ~np.isnan(near)
            unlike += int(np.sum(row["near"][both] != near[both]))
            label = mosaic(scenes, "labels", "abc", epsg, t, "nearest")
            unlike += int(np.sum(row["label"] != np.where(np.isnan(label), 255, label)))
            compared += both.size + label.size
            soft = mosaic(scenes, "images", "abc", epsg, t, "bilinear")
            valid = ~np.isnan(soft) & ~np.isnan(row["image"])
            differences += [np.abs(soft[valid] - row["image"][valid]).mean()] if valid.any() else []
    assert zones == {32630, 32631}
    # Places on the edge of two pixels may be rounded to the other one: GDAL does not round before.
    assert unlike <= compared * 1e-4
    assert np.mean(differences) < 0.005 * 3400


@pytest.mark.parametrize("rule", ["mean", "median"])
def test_mosaics_of_all_scenes(scenes: Path, rule: Any) -> None:
    window = chaski.GeoWindow(10 * SIDE, 10, per_epoch=20, mosaic=rule)
    differences, unlike, compared = [], 0, 0
    with chaski.load(
        scenes, fields=FIELDS, batch_size=10, window=window, pixels=PIXELS, seed=4
    ) as loader:
        for row in windows(loader):
            epsg, t = int(row["geo"]["epsg"]), rasterio.Affine.from_gdal(*row["geo"]["transform"])
            each = [judged(scenes / "images" / f"{n}.tif", epsg, t, "bilinear") for n in "abc"]
            with np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore", RuntimeWarning)  # of pixels that no scene has
                want = getattr(np, f"nan{rule}")(each, axis=0)
            both = ~np.isnan(want) & ~np.isnan(row["image"])
            differences.append(np.abs(want[both] - row["image"][both]).mean())
            near = mosaic(scenes, "images", "abc", epsg, t, "nearest")
            unlike += int(np.sum(row["near"][~np.isnan(near)] != near[~np.isnan(near)]))
            compared += near.size
    assert np.mean(differences) < 0.005 * 3400
    assert unlike <= compared * 1e-4  # nearest: the first valid one


# Newest first: c, a, b.
TIMES = {"a": "2024-05-02T10:00:00Z", "b": "2023-05-02T10:00:00Z", "c": "2024-06-02T10:00:00Z"}
RULES = {
    "first": {"pick": "first"},
    "newest": {"pick": "newest"},
    "mean": {"pick": "newest", "mosaic": "mean"},
    "median": {"mosaic": "median"},
    "place": {"size_m": 160, "pick": "newest"},
}


@pytest.mark.parametrize("rule", RULES)
def test_any_ranks_resume_and_kill(scenes: Path, tmp_path: Path, rule: str) -> None:
    """Whatever chooses scenes and windows, rows are the same for ranks, after resume and kills."""
    table = tmp_path / "scenes.csv"
    lines = [f"{n},{t},{scenes}/images/{n}.tif,{scenes}/labels/{n}.tif" for n, t in TIMES.items()]
    table.write_text("\n".join(["id,datetime,image,label", *lines]) + "\n")
    fields = {
        "image": chaski.Field(column="image", dtype="float32", fill=np.nan),
        "near": chaski.Field(column="image", dtype="native", validity="ok"),
        "label": chaski.Field(column="label", dtype="native", fill=255),
    }
    window = chaski.GeoWindow(
        **{"size_m": 10 * SIDE, "resolution": 10, "per_epoch": 50, **RULES[rule]}
    )
    subset: dict[str, Any] = {}
    if rule == "place":
        split = chaski.Split.by_place(0.006, {"train": 3, "val": 1}, margin_m=50, seed=11)
        subset["rows"] = chaski.Rows(split=split, use="train")

    def loader(**more: Any) -> Any:
        more = subset | more
        return chaski.load(
            table, fields=fields, batch_size=8, window=window, pixels=PIXELS, seed=5, **more
        )

    def rows(batches: Any) -> dict[int, Any]:
        return {int(r["position"]): r for r in windows(batches)}

    def same(a: dict[int, Any], b: dict[int, Any]) -> None:
        for p, row in nonempty(b.items()):
            for name in ("image", "near", "label", "ok"):
                assert np.array_equal(a[p][name], row[name], equal_nan=name == "image"), (p, name)
            for name in nonempty(row["geo"]):
                assert np.array_equal(a[p]["geo"][name], row["geo"][name]), (p, name)

    with loader() as one:
        all_rows = rows(one)
    assert sorted(all_rows) == list(range(50))
    if rule in ("newest", "place"):
        unlike = compared = 0
        for row in all_rows.values():
            epsg, t = int(row["geo"]["epsg"]), rasterio.Affine.from_gdal(*row["geo"]["transform"])
            h, w = row["label"].shape[-2:]
            near = mosaic(scenes, "images", "cab", epsg, t, "nearest")[:, :h, :w]
            both = ~np.isnan(near) & (row["ok"] != 0)
            unlike += int(np.sum(both & (near != row["near"])))
            compared += near.size
        assert unlike <= compared * 1e-4
    for world in (2, 3):
        found: dict[int, Any] = {}
        for rank in range(world):
            with loader(rank=rank, world_size=world) as part:
                mine = rows(part)
                assert not set(mine) & set(found)
                found |= mine
        assert sorted(found) == list(range(50))
        same(all_rows, found)
    with loader() as begun:
        batches = iter(begun)
        for _ in range(3):
            next(batches)
        state = begun.state_dict()
    with loader(rank=1, world_size=2) as resumed:  # on other ranks than those that saved it
        resumed.load_state_dict(state)
        rest = rows(resumed)
    assert rest and set(rest) < set(range(24, 50))
    same(all_rows, rest)
    with loader(engine=chaski.Engine(share=False)) as killed:  # no other process's
        batches = iter(killed)
        begin = rows([next(batches) for _ in range(2)])
        killed._link._held.engine._process.kill()
        killed._link._held.engine._process.wait()
        after = rows(batches)
    assert sorted([*begin, *after]) == list(range(50))
    same(all_rows, begin | after)


def test_a_grid_covers_all_scenes_once(scenes: Path) -> None:
    window = chaski.GeoWindow(10 * SIDE, 10, stride_m=10 * SIDE, crs=3035)
    seen: dict[tuple[float, float], bool] = {}
    inside = 0
    with chaski.load(
        scenes, fields=FIELDS, batch_size=32, window=window, pixels=PIXELS, shuffle=True
    ) as loader:
        for row in windows(loader):
            corner = tuple(row["geo"]["bounds"][[0, 3]])
            assert corner not in seen
            seen[corner] = True
            inside += bool(np.any(row["label"] != 255))
    assert inside > 0.98 * len(seen)  # some touch a corner of a scene only
    # Every pixel of every scene lies in one of the windows.
    for name in "abc":
        with rasterio.open(scenes / "images" / f"{name}.tif") as f:
            row, col = np.mgrid[5 : f.height : 17, 5 : f.width : 17]
            x, y = rasterio.transform.xy(f.transform, row.ravel(), col.ravel())
            x, y = warp.transform(f.crs, "EPSG:3035", x, y)
            side = 10 * SIDE
            for px, py in nonempty(zip(x, y, strict=True)):
                assert (np.floor(px / side) * side, np.ceil(py / side) * side) in seen


def test_where_windows_lie(scenes: Path, tmp_path: Path) -> None:
    box = [[-0.005, 41.5], [0.012, 41.5], [0.0, 41.51], [-0.005, 41.5]]
    roi = {"type": "Polygon", "coordinates": [box]}
    feature = {"type": "Feature", "properties": None, "geometry": roi}
    collection = {"type": "FeatureCollection", "features": [feature]}
    (tmp_path / "roi.geojson").write_text(json.dumps(collection))
    places = []
    for given in (roi, tmp_path / "roi.geojson"):
        window = chaski.GeoWindow(10 * SIDE, 10, roi=given, per_epoch=40)
        with chaski.load(
            scenes, fields=FIELDS, batch_size=8, window=window, pixels=PIXELS, seed=1
        ) as loader:
            places.append(np.array([r["geo"]["lonlat"] for r in windows(loader)]))
    assert np.array_equal(*places)
    lon, lat = places[0].T
    slack = 2e-4  # a cell is judged by its centre: 20 m
    assert lat.min() > 41.5 - slack and np.all(lon > -0.005 - slack)
    assert np.all(lat < 41.5 + (lon + 0.005) * 2 + slack)
    assert lat.max() - lat.min() > 0.005 and lon.max() - lon.min() > 0.008
    bounds = chaski.GeoWindow(10 * SIDE, 10, bounds=(0.001, 41.5, 0.004, 41.505), per_epoch=10)
    with chaski.load(scenes, fields=FIELDS, batch_size=5, window=bounds, pixels=PIXELS) as loader:
        for row in nonempty(windows(loader)):
            lon, lat = row["geo"]["lonlat"]
            assert 0.001 - slack < lon < 0.004 + slack and 41.5 - slack < lat < 41.505 + slack


def test_the_antimeridian(tmp_path: Path) -> None:
    # 180 degrees, 17 south is (819770, 8118020) in zone 60 and (180230, 8118020) in zone 1.
    write(tmp_path / "images" / "a.tif", 32760, 818500, 8119500, 10, (300, 300), None)
    write(tmp_path / "images" / "b.tif", 32701, 179000, 8119500, 10, (300, 300), None)
    window = chaski.GeoWindow(10 * SIDE, 10, per_epoch=30)
    zones, unlike = set(), 0
    with chaski.load(
        tmp_path, fields=FIELDS, batch_size=10, window=window, pixels=PIXELS
    ) as loader:
        for row in windows(loader):
            epsg, t = int(row["geo"]["epsg"]), rasterio.Affine.from_gdal(*row["geo"]["transform"])
            zones.add(epsg)
            near = mosaic(tmp_path, "images", "ab", epsg, t, "nearest")
            assert not np.isnan(near).any() and row["ok"].all()
            unlike += int(np.sum(near != row["near"]))
    assert zones == {32701, 32760}
    assert unlike <= 30 * 2 * SIDE * SIDE * 1e-4


@pytest.mark.parametrize("stride", [None, 80])
def test_parts_do_not_overlap(scenes: Path, stride: int | None) -> None:
    """Windows of two parts are the margin apart, and lie in cells whose hash gives their part."""
    shares = {"train": 3, "val": 1}
    parts = [(3 << 30), (1 << 30)]
    size, margin, seed = 0.006, 50.0, 11
    split = chaski.Split.by_place(size, shares, margin_m=margin, seed=seed)
    window = chaski.GeoWindow(160, 10, stride_m=stride, per_epoch=None if stride else 150)
    found: dict[str, list[Any]] = {}
    for number, name in enumerate(shares):
        rows = chaski.Rows(split=split, use=name)
        with chaski.load(
            scenes, fields=FIELDS, batch_size=16, window=window, pixels=PIXELS, rows=rows
        ) as loader:
            for row in windows(loader):
                epsg, box = int(row["geo"]["epsg"]), row["geo"]["bounds"]
                west, south, east, north = box
                xs, ys = [west, east, west, east], [south, south, north, north]
                for lon, lat in nonempty(zip(*warp.transform(epsg, 4326, xs, ys), strict=True)):
                    assert share_of_cell(seed, parts, (lon, lat, lon, lat), size) == number
                found.setdefault(name, []).append((epsg, *box))
    assert len(found["val"]) > 5 and len(found["train"]) > 50
    for epsg, *a in nonempty(found["train"]):
        for other, *b in nonempty(found["val"]):
            gap = max(a[0] - b[2], b[0] - a[2], a[1] - b[3], b[1] - a[3])
            assert other != epsg or gap >= margin


@pytest.mark.parametrize(
    ("window", "words"),
    [
        (chaski.GeoWindow(325, 10), "size_m is 325: a window has a whole number of pixels"),
        (chaski.GeoWindow(320, 10, crs="EPSG:4326"), 'crs is "EPSG:4326"'),
        (chaski.GeoWindow(320, 10, crs="Mars"), 'crs is "Mars"'),
        (chaski.GeoWindow(320, 10, stride_m=640), "stride_m is 640"),
        (chaski.GeoWindow(320, 10, pick="least"), "needs a column"),
        (chaski.GeoWindow(320, 10, pick="newest"), "pick"),
        (chaski.GeoWindow(320, 10, bounds=(5, 41, 6, 42)), "no window of 320 m fits"),
        (chaski.GeoWindow(9000, 10), "edge"),
        (chaski.GeoWindow(320, 10, roi=[1]), "GeoJSON"),
    ],
)
def test_refused(scenes: Path, window: Any, words: str) -> None:
    with pytest.raises(chaski.Error, match=words.replace("(", r"\(")):
        chaski.load(scenes, fields=FIELDS, batch_size=4, window=window)


def slow_paste(parts: Any, grid: Any, blend: str) -> np.ndarray:
    """Returns the weighted mean of all windows in every pixel, in float64."""
    west, south, east, north = grid.bounds
    h, w = round((north - south) / grid.resolution), round((east - west) / grid.resolution)
    sums, weights = np.zeros((2, h, w)), np.zeros((h, w))
    for geo, values in parts:
        for epsg, t, v in zip(geo["epsg"], geo["transform"], values, strict=True):
            if epsg != grid.epsg:
                continue
            y, x = np.mgrid[:SIDE, :SIDE]
            px, py = t[0] + (x + 0.5) * t[1], t[3] + (y + 0.5) * t[5]
            inside = (west < px) & (px < east) & (south < py) & (py < north)
            row = ((north - py[inside]) // grid.resolution).astype(int)
            col = ((px[inside] - west) // grid.resolution).astype(int)
            weight = np.ones((SIDE, SIDE))
            if blend == "linear":
                weight = np.minimum(y + 1, SIDE - y) * np.minimum(x + 1, SIDE - x)
            sums[:, row, col] += (weight * v)[:, inside]
            weights[row, col] += weight[inside]
    with np.errstate(invalid="ignore"):
        return sums / weights


@pytest.mark.parametrize("blend", ["linear", "mean"])
@pytest.mark.parametrize("stride", [None, 160])
def test_paste_on_the_ground(scenes: Path, tmp_path: Path, blend: Any, stride: Any) -> None:
    """Windows of a grid and at random places, of two zones; some pass the edge of the raster."""
    window = chaski.GeoWindow(10 * SIDE, 10, stride_m=stride, per_epoch=None if stride else 45)
    random, parts = np.random.default_rng(3), []
    with chaski.load(
        scenes, fields=FIELDS, batch_size=16, last="pad", window=window, pixels=PIXELS, seed=6
    ) as loader:
        for batch in loader:
            geo = {k: v.copy() for k, v in batch["geo"].items()}
            parts.append((geo, random.random((16, 2, SIDE, SIDE), np.float32)))
    assert (parts[-1][0]["epsg"] == 0).any(), "no padding"
    out = tmp_path / "out.tif"
    for epsg, box in (
        (32630, (748000, 4597500, 750010, 4600500)),
        (32631, (249000, 4597000, 251500, 4600000)),
    ):
        grid = chaski.GroundGrid(epsg=epsg, bounds=box, resolution=10)
        want = slow_paste(parts, grid, blend)
        assert stride or np.isnan(want).any()
        chaski.paste(parts, None, out, grid=grid, blend=blend)
        with rasterio.open(out) as f:
            assert f.crs.to_epsg() == epsg and f.bounds == tuple(map(float, box))
            assert f.res == (10, 10) and np.isnan(f.nodata)
            got = f.read()
        np.testing.assert_allclose(got, want, rtol=1e-5)
        chaski.paste(reversed(parts), None, tmp_path / "again.tif", grid=grid, blend=blend)
        assert (tmp_path / "again.tif").read_bytes() == out.read_bytes()
        chaski.paste(parts, None, out, grid=grid, blend=blend, argmax=True)
        with rasterio.open(out) as f:
            assert f.dtypes == ("uint8",) and f.nodata == 255
            got = f.read(1)
        assert np.array_equal(got == 255, np.isnan(want[0]))
        clear = np.abs(want[1] - want[0]) > 1e-5
        assert np.array_equal(got[clear], (want[1] > want[0])[clear])


def test_paste_on_the_ground_refuses(tmp_path: Path) -> None:
    box = (0, 0, 320, 320)
    grid = chaski.GroundGrid(epsg=32630, bounds=box, resolution=10)
    geo = {"epsg": np.array([32630]), "transform": np.array([[0.0, 10, 0, 320, 0, -10]])}
    values, out = np.zeros((1, 1, 32, 32), np.float32), tmp_path / "out.tif"
    whole = geo | {"bounds": np.array([[0.0, 0, 320, 320]])}

    def moved(**more: Any) -> Any:
        return [(geo | {k: np.array([v]) for k, v in more.items()}, values)]

    for parts, words in (
        (moved(epsg=32631), "no window lies on the grid"),
        (moved(transform=[320.0, 10, 0, 320, 0, -10]), "no window lies on the grid"),
        ([], "no window lies on the grid"),
        (moved(transform=[5.0, 10, 0, 320, 0, -10]), "must lie on the pixels"),
        (moved(transform=[0.0, 20, 0, 320, 0, -20]), "must lie on the pixels"),
        (moved(transform=[320.0, -10, 0, 320, 0, -10]), "must lie on the pixels"),
        ([(np.arange(1), values)], "geo=True"),
        ([(geo, values[0])], r"must be \(n, bands"),
        ([(geo, values), (geo, values[:, :, 1:])], "others are"),
        ([(geo, values + 1j)], "must be real"),
        ([(geo, values[:, :0])], "have no values"),
        # A model that answers in another size, whose pixels would lie elsewhere.
        (
            [(whole, values[:, :, ::2, ::2])],
            r"are \(1, 1, 16, 16\), and a window has \[32 32\] rows",
        ),
        ([(whole, values.repeat(2, axis=3))], r"are \(1, 1, 32, 64\), and a window has \[32 32\]"),
        (values, "must be pairs"),
    ):
        with pytest.raises(chaski.SpecError, match=words):
            chaski.paste(parts, None, out, grid=grid)
    assert not out.exists()
    with pytest.raises(chaski.SpecError, match="must be None"):
        chaski.paste(moved(), "scene.tif", out, grid=grid)
    for wrong in ((0, 0, 325, 320), (320, 0, 0, 320), (0, 0, float("nan"), 320), (0, 0, 320), None):
        with pytest.raises(chaski.SpecError, match="bounds is"):
            chaski.GroundGrid(epsg=32630, bounds=wrong, resolution=10)
    for wrong in ({"epsg": "EPSG:32630"}, {"epsg": 32630.5}, {"resolution": "10"}):
        with pytest.raises(chaski.SpecError, match=f"{next(iter(wrong))} is"):
            chaski.GroundGrid(**({"epsg": 32630, "bounds": box, "resolution": 10} | wrong))
    unknown = chaski.GroundGrid(epsg=9, bounds=box, resolution=10)
    with pytest.raises(chaski.UnsupportedError, match="EPSG:9 is not known"):
        chaski.paste(moved(epsg=9), None, out, grid=unknown)
