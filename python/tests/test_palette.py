"""Rasters with a palette are classes: no window blends them, and their dtype is kept."""

from __future__ import annotations

import json
import subprocess

import numpy as np
import pytest

import chaski

rasterio = pytest.importorskip("rasterio", reason="needs rasterio to write rasters")

COLOURS = {11: (0, 0, 255), 41: (0, 128, 0), 82: (255, 255, 0)}
ABOUT = {
    "id": "classes",
    "dataset_version": "1.0.0",
    "description": "land cover",
    "licenses": ["CC-BY-4.0"],
    "providers": [{"name": "us", "roles": ["producer"]}],
    "tasks": ["semantic-segmentation"],
}
WINDOW = chaski.ResizedWindow(32, scale=(0.2, 0.5), per_asset=4)


def write(path, driver: str = "GTiff", shift: int = 0) -> np.ndarray:
    x = np.random.default_rng(0).choice(list(COLOURS), (1, 64, 64)).astype("uint8")
    where = {
        "crs": "EPSG:32630",
        "transform": rasterio.transform.from_origin(500000 + shift, 4600000, 10, 10),
    }
    photometric = {"photometric": "PALETTE"} if driver == "GTiff" else {}
    size = {"count": 1, "height": 64, "width": 64, "dtype": "uint8"}
    with rasterio.open(path, "w", driver=driver, **size, **photometric, **where) as f:
        f.write(x)
        f.write_colormap(1, COLOURS)
    return x


@pytest.fixture(params=["tif", "cog", "png", "catalog", "taco"])
def source(request, binary, tmp_path):
    kind = request.param
    folder = tmp_path / "d"
    folder.mkdir()
    name = "a.png" if kind == "png" else "a.tif"
    write(folder / name, {"png": "PNG", "cog": "COG"}.get(kind, "GTiff"))
    if kind == "catalog":
        subprocess.run([binary, "index", folder, "-o", tmp_path / "c.parquet"], check=True)
        return tmp_path / "c.parquet"
    if kind == "taco":
        out = tmp_path / "c.tacozip"
        about = tmp_path / "about.json"
        about.write_text(json.dumps(ABOUT))
        command = [binary, "pack", "--collection", about, folder, "-o", out]
        subprocess.run(command, check=True, capture_output=True)
        return out
    return folder


def values(loader) -> tuple[np.dtype, set]:
    b = next(iter(loader))
    return b["image"].dtype, set(np.unique(b["image"]).tolist())


def test_windows_do_not_blend(source):
    with chaski.load(source, batch_size=4, window=WINDOW) as loader:
        dtype, got = values(loader)
        assert dtype == np.uint8 and got == set(COLOURS)
    for wanted in ("float32", "int64"):
        pixels = chaski.Pixels(dtype=wanted)
        with chaski.load(source, batch_size=4, window=WINDOW, pixels=pixels) as loader:
            dtype, got = values(loader)
            assert dtype == wanted and got == set(COLOURS)


def test_a_user_may_blend(source):
    fields = {"image": chaski.Field(dtype="float32", resample="bilinear")}
    with chaski.load(source, batch_size=4, window=WINDOW, fields=fields) as loader:
        assert len(values(loader)[1]) > 3


def test_on_the_ground(tmp_path):
    """A window between the pixels of two scenes takes the nearest ones."""
    write(tmp_path / "a.tif")
    write(tmp_path / "b.tif", shift=643)
    window = chaski.GeoWindow(size_m=480, resolution=7.5, crs="EPSG:32630", mosaic="mean")
    with chaski.load(tmp_path, batch_size=2, window=window) as loader:
        dtype, got = values(loader)
        assert dtype == np.uint8 and got <= set(COLOURS)


def test_info_has_the_colours(binary, tmp_path):
    write(tmp_path / "a.tif")
    command = [binary, "info", "--json", tmp_path / "a.tif"]
    told = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    colours = told["raster"]["palette"]
    assert len(colours) == 83
    for number, (red, green, blue) in COLOURS.items():
        assert colours[number] == f"#{red:02x}{green:02x}{blue:02x}"


def test_rasters_without_a_palette_are_float32(tmp_path):
    with rasterio.open(
        tmp_path / "a.tif", "w", driver="GTiff", count=1, height=64, width=64, dtype="uint8"
    ) as f:
        f.write(np.random.default_rng(0).choice([1, 9], (1, 64, 64)).astype("uint8"))
    with chaski.load(tmp_path, batch_size=4, window=WINDOW) as loader:
        dtype, got = values(loader)
        assert dtype == np.float32 and len(got) > 2


def test_a_palette_among_others_is_not_blended(tmp_path):
    """The first raster says what a field is: one with a palette behind it is refused, by name."""
    with rasterio.open(
        tmp_path / "a.tif", "w", driver="GTiff", count=1, height=64, width=64, dtype="uint8"
    ) as f:
        f.write(np.ones((1, 64, 64), "uint8"))
    write(tmp_path / "b.tif")
    with chaski.load(tmp_path, batch_size=8, window=WINDOW) as loader:
        with pytest.raises(chaski.UnsupportedError, match=r"b\.tif: palette.*are classes"):
            next(iter(loader))
    for resample in ("nearest", "bilinear"):
        fields = {"image": chaski.Field(dtype="float32", resample=resample)}
        with chaski.load(tmp_path, batch_size=8, window=WINDOW, fields=fields) as loader:
            assert (len(values(loader)[1]) == 4) == (resample == "nearest")
    with chaski.load(tmp_path, batch_size=2) as loader:  # whole chips are not blended
        assert values(loader)[1] == {1, *COLOURS}
