"""Random rasters written by GDAL: masks, statistics and mosaics on the ground are rasterio's."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import chaski
from chaski import Pixels

rasterio = pytest.importorskip("rasterio", reason="needs rasterio to write rasters")

COUNT = int(os.environ.get("CHASKI_RANDOM_RASTERS", "80"))
H, W, SIDE = 48, 56, 40
LEFT, TOP = 500000, 4600000
DTYPES = ("uint8", "int8", "int16", "uint16", "int32", "uint32", "float32", "float64")
MASKS = ("none", "nodata", "internal", "beside", "alpha", "internal and nodata")


def draw(rng: np.random.Generator) -> tuple[str, dict[str, Any]]:
    """Draws a kind of mask and what rasterio needs to write the raster."""
    kind, dtype = str(rng.choice(MASKS)), str(rng.choice(DTYPES))
    bands, codec = int(rng.integers(1, 5)), str(rng.choice(["DEFLATE", "LZW", "ZSTD", "PACKBITS"]))
    if dtype != "int8" and rng.random() < 0.2:
        codec = "LERC_DEFLATE"
    how: dict[str, Any] = {"interleave": str(rng.choice(["PIXEL", "BAND"]))}
    if kind == "alpha":
        dtype, bands = str(rng.choice(["uint8", "uint16"])), int(rng.choice([2, 4]))
        how |= {"photometric": "RGB" if bands == 4 else "MINISBLACK", "alpha": "yes"}
    if "nodata" in kind:
        nan = dtype.startswith("float") and rng.random() < 0.4
        how["nodata"] = np.nan if nan else int(rng.choice([0, 1, 100]))
    if rng.random() < 0.5:
        how |= {"tiled": True, "blockxsize": 16, "blockysize": 32}
    return kind, {"dtype": dtype, "count": bands, "compress": codec, **how}


def write(path: Path, kind: str, profile: dict[str, Any], rng: np.random.Generator) -> None:
    dtype = np.dtype(profile["dtype"])
    x = rng.integers(0, 5, (profile["count"], H, W)).astype(dtype) * dtype.type(25)
    if "nodata" in profile:
        x[rng.random(x.shape) < 0.2] = profile["nodata"]
    mask = rng.random((H, W)) < 0.7
    if kind == "alpha":
        x[-1] = np.where(mask, rng.integers(1, 255, (H, W)), 0)
    where = {
        "crs": "EPSG:32630",
        "transform": rasterio.transform.from_origin(LEFT, TOP, 10, 10),
    }
    size = {"driver": "GTiff", "height": H, "width": W}
    inside = rasterio.Env(GDAL_TIFF_INTERNAL_MASK="internal" in kind)
    with inside, rasterio.open(path, "w", **size, **profile, **where) as f:
        f.write(x)
        if kind == "beside" or "internal" in kind:
            f.write_mask(mask)


def read(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Returns the pixels of the bands that are no alpha, and which of them GDAL calls valid."""
    with rasterio.open(path) as f:
        alpha = f.colorinterp[-1] == rasterio.enums.ColorInterp.alpha  # also of four plain bytes
        bands = list(range(1, f.count + (not alpha)))
        return f.read(bands), f.read_masks(bands) > 0


@pytest.mark.parametrize("number", range(COUNT))
def test_as_rasterio(tmp_path, number):
    rng = np.random.default_rng([7, number])
    kind, profile = draw(rng)
    paths = [tmp_path / "a.tif", tmp_path / "b.tif"]
    for path in paths:
        write(path, kind, profile, rng)
    read_by_gdal = [read(path) for path in paths]
    x, valid = read_by_gdal[0]
    native = Pixels(validity="ok", dtype="native")
    with chaski.load(paths[0], batch_size=1, pixels=native) as loader:
        batch = next(iter(loader))
    np.testing.assert_array_equal(batch["ok"][0] > 0, valid)
    np.testing.assert_array_equal(batch["image"][0], x)
    check_statistics(paths[0], x, valid)
    check_mosaic(tmp_path, read_by_gdal)


def check_statistics(path: Path, x: np.ndarray, valid: np.ndarray) -> None:
    bands = chaski.stats(path)["fields"]["image"]["bands"]
    for band, pixels, counts in zip(bands, x.astype(np.float64), valid, strict=True):
        numbers = pixels[counts & ~np.isnan(pixels)]
        assert band["count"] == numbers.size
        assert band["mean"] == pytest.approx(numbers.mean(), rel=1e-9)
        assert band["std"] == pytest.approx(numbers.std(), rel=1e-7, abs=1e-9)


def check_mosaic(folder: Path, scenes: list[tuple[np.ndarray, np.ndarray]]) -> None:
    """Of two scenes at one place the first valid pixel counts, band by band."""
    window = chaski.GeoWindow(size_m=SIDE * 10, resolution=10, crs="EPSG:32630")
    pixels = Pixels(validity="ok", geo=True, dtype="float32")
    with chaski.load(folder, batch_size=1, window=window, pixels=pixels) as loader:
        batch = next(iter(loader))
    left, top = np.ravel(batch["geo"]["transform"][0])[[0, 3]]
    y, x = round((TOP - top) / 10), round((left - LEFT) / 10)
    (a, in_a), (b, in_b) = ([v[:, y : y + SIDE, x : x + SIDE] for v in scene] for scene in scenes)
    np.testing.assert_array_equal(batch["ok"][0] > 0, in_a | in_b)
    want = np.where(in_a, a, np.where(in_b, b, 0)).astype(np.float32)
    np.testing.assert_array_equal(batch["image"][0], want)
