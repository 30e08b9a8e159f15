"""Scenes that lie oddly: turned, mirrored, of one pixel, on the equator and at 180 degrees.

Windows are flipped and rotated, and the transform of `geo` says so.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import rasters

import chaski

rasterio = pytest.importorskip("rasterio", reason="needs rasterio to write and to judge")
from rasterio.warp import transform as convert  # noqa: E402

pytestmark = pytest.mark.usefixtures("one_engine")

SIDE = 16


def turned(x: float, y: float, degrees: float, size: float) -> Any:
    return rasterio.Affine.translation(x, y) @ (
        rasterio.Affine.rotation(degrees) @ rasterio.Affine.scale(size, -size)
    )


# CRS, transform, height, width
PLACES: dict[str, list[tuple[int, Any, int, int]]] = {
    "turned": [
        (32630, turned(500000, 4600000, 31, 10), 60, 50),
        (32630, turned(500300, 4600200, -115, 12.5), 40, 60),
        (32630, rasterio.Affine(10, 4, 500100, 3, -9, 4599900), 70, 30),
    ],
    "mirrored": [
        (32733, rasterio.Affine(10, 0, 500000, 0, 10, 7000000), 60, 50),  # south up
        (32733, rasterio.Affine(-10, 0, 500900, 0, -10, 7000400), 60, 50),
        (32733, rasterio.Affine(0, 10, 500300, -10, 0, 7000900), 40, 80),  # rows run east
    ],
    "small": [
        (32630, rasterio.Affine(10, 0, 500000, 0, -10, 4600000), 1, 1),
        (32630, rasterio.Affine(7, 0, 500003, 0, -7, 4600017), 1, 40),
        (32630, rasterio.Affine(90, 0, 500003, 0, -90, 4599990), 2, 1),
    ],
    "equator": [
        (32630, rasterio.Affine(10, 0, 500000, 0, -10, 300), 60, 60),  # half of it in the south
        (32730, rasterio.Affine(10, 0, 500500, 0, -10, 10000300), 60, 60),
        (4326, rasterio.Affine(1e-4, 0, -2.998, 0, -1e-4, 0.003), 60, 60),
    ],
    "180": [
        (4326, rasterio.Affine(1e-4, 0, 179.997, 0, -1e-4, -17), 60, 60),  # past 180
        (4326, rasterio.Affine(1e-4, 0, -180.003, 0, -1e-4, -17.003), 60, 60),
        (32701, rasterio.Affine(10, 0, 180100, 0, -10, 8118200), 60, 60),
        (3832, rasterio.Affine(10, 0, 3339584.7, 0, -10, -1908500), 60, 60),
    ],
    "360": [  # longitudes that count from 0 to 360
        (4326, rasterio.Affine(1e-4, 0, 359.997, 0, -1e-4, 40), 60, 60),
        (4326, rasterio.Affine(1e-4, 0, -0.001, 0, -1e-4, 40), 60, 60),
    ],
    "seam": [
        (32632, rasterio.Affine(20, 0, 171000, 0, -20, 6990000), 60, 60),  # at 5 east, in zone 31
        (3857, rasterio.Affine(20, 0, 667400, 0, -20, 9090000), 60, 60),
        (32633, rasterio.Affine(20, 0, -130000, 0, -20, 7030000), 60, 60),  # nearly two zones off
    ],
}


@pytest.fixture(scope="module", params=list(PLACES))
def folder(request: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp(request.param)
    rng = np.random.default_rng(4)
    for i, (epsg, transform, height, width) in enumerate(PLACES[request.param]):
        profile: dict[str, Any] = dict(count=1, dtype="uint16", nodata=0, crs=f"EPSG:{epsg}")
        profile |= dict(height=height, width=width, transform=transform)
        rasters.write(
            out / f"{i}.tif", rng.integers(1, 60000, (1, height, width), dtype=np.uint16), **profile
        )
    return out


def looked_up(folder: Path, epsg: int, x: Any, y: Any) -> tuple[Any, Any]:
    """Returns the pixels at places, by asking each scene; and which lie between two pixels."""
    out, close = np.zeros(x.shape, np.uint16), np.zeros(x.shape, bool)
    for path in sorted(folder.glob("*.tif")):
        with rasterio.open(path) as d:
            image, inverse, code = d.read(1), ~d.transform, d.crs.to_epsg()
        at = [np.array(v) for v in convert(f"EPSG:{epsg}", f"EPSG:{code}", x.ravel(), y.ravel())]
        turns = (0, -360, 360) if code == 4326 else (0,)
        for turn in turns:
            col, row = inverse * (at[0] + turn, at[1])
            col, row = (np.reshape(v, x.shape) for v in (col, row))
            inside = (0 <= col) & (col < image.shape[1]) & (0 <= row) & (row < image.shape[0])
            open_ = out == 0
            for v in (col, row):
                near = np.abs(v - np.rint(v)) < 0.01
                close |= near & open_ & (-1 < col) & (col < image.shape[1] + 1) & (-1 < row)
            r, c = (np.clip(np.floor(v), 0, n - 1).astype(int) for v, n in
                    ((row, image.shape[0]), (col, image.shape[1])))  # fmt: skip
            out = np.where(open_ & inside, image[r, c], out)
    return out, close


def test_pixels_are_those_that_lie_there(folder: Path) -> None:
    fields = {"image": chaski.Field(dtype="native", fill=0, validity="ok")}
    compared = 0
    for options in ({"edge": True, "per_epoch": 40}, {"stride_m": 10 * SIDE}):
        window = chaski.GeoWindow(10 * SIDE, 10, **options)  # type: ignore[arg-type]
        with chaski.load(
            folder,
            fields=fields,
            batch_size=40,
            window=window,
            pixels=chaski.Pixels(geo=True, augment="d4"),
        ) as loader:
            for b in loader:
                for epsg in set(b["geo"]["epsg"][b["valid"]].tolist()):
                    rows = np.flatnonzero(b["geo"]["epsg"] == epsg)
                    compared += check(folder, b, rows, epsg, "stride_m" not in options)
    assert compared > 50


def check(folder: Path, b: Any, rows: Any, epsg: int, random: bool) -> int:
    """Compares the windows of a map, and returns the number of pixels."""
    t = b["geo"]["transform"][rows].T[:, :, None, None]
    col, row = np.meshgrid(np.arange(SIDE) + 0.5, np.arange(SIDE) + 0.5)
    x, y = t[0] + t[1] * col + t[2] * row, t[3] + t[4] * col + t[5] * row
    middles = convert(f"EPSG:{epsg}", "EPSG:4326", x.mean((1, 2)), y.mean((1, 2)))
    lon, lat = (np.array(v) for v in middles)
    off = b["geo"]["lonlat"][rows] - np.stack([lon, lat], axis=1)
    assert np.abs((off + 180) % 360 - 180).max() < 1e-7
    # The middle of a cell is in the zone; that of a window is at most a cell off.
    inner = np.abs(lon / 6 - np.rint(lon / 6)) > 0.002
    if random:
        assert np.all((((lon + 180) % 360) // 6 + 1 == epsg % 100) | ~inner)
    want, close = looked_up(folder, epsg, x, y)
    image, ok = b["image"][rows, 0], b["ok"][rows, 0]
    assert np.array_equal(image[~close], want[~close]), epsg
    assert np.array_equal(ok != 0, image != 0)
    return int(np.sum((want > 0) & ~close))
