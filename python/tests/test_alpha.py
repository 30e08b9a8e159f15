"""Alpha is the mask of a file, wherever the file lies. The judge is GDAL, by rasterio."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers import web
from patience import logged

import chaski

rasterio = pytest.importorskip("rasterio", reason="needs rasterio to write and to judge")
merge = pytest.importorskip("rasterio.merge")
shutil = pytest.importorskip("rasterio.shutil")
pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
pytestmark = [
    pytest.mark.usefixtures("binary"),
    pytest.mark.filterwarnings("ignore::rasterio.errors.NotGeoreferencedWarning"),
    pytest.mark.filterwarnings("ignore::rasterio.errors.NodataShadowWarning"),
    pytest.mark.filterwarnings("ignore::PendingDeprecationWarning"),
]
SIDE = 64


def write(path: Path, value: int, x: float = 500000, clear: slice = slice(20), **more: Any) -> Path:
    """Writes an RGBA scene of one value, whose transparent columns hold it, too."""
    data = np.full((4, SIDE, SIDE), value, "uint8")
    data[:, ::3] += 1
    data[3] = 255
    data[3, :, clear] = 0
    place = rasterio.Affine(10, 0, x, 0, -10, 4600000)
    options = dict(crs="EPSG:32630", transform=place, photometric="RGB", alpha="yes") | more
    with rasterio.open(
        path, "w", driver="GTiff", count=4, height=SIDE, width=SIDE, dtype="uint8", **options
    ) as f:
        f.write(data)
    return path


def first(source: Any, **options: Any) -> Any:
    with chaski.load(source, batch_size=1, **options) as loader:
        return next(iter(loader))


def judged(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Returns the colours and the mask of a file."""
    with rasterio.open(path) as f:
        return f.read([1, 2, 3]), f.dataset_mask() > 0


PIXELS = chaski.Pixels(dtype="float32", fill=-1, validity="ok")


@pytest.mark.parametrize("interleave", ["pixel", "band"])
def test_wherever_the_file_lies(tmp_path: Path, binary: Path, interleave: str) -> None:
    """A file, a catalog, a container, a URL and the cell of a table yield the same batch."""
    path = write(tmp_path / "x.tif", 90, interleave=interleave, compress="deflate")
    colours, mask = judged(path)
    want = np.where(mask, colours, -1.0)
    catalog, container = tmp_path / "catalog.parquet", tmp_path / "x.tacozip"
    subprocess.run([binary, "index", "-o", catalog, path], check=True, capture_output=True)
    about = {"id": "x", "dataset_version": "1", "description": "x", "licenses": ["MIT"]}
    about |= {"providers": [{"name": "x"}], "tasks": ["other"]}
    chaski.pack([{"id": "x", "path": path}], container, about)
    cell = {"bytes": path.read_bytes(), "path": None}
    kind = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    pq.write_table(pa.table({"image": pa.array([cell], kind)}), tmp_path / "cells.parquet")
    with web(tmp_path) as (url, _):
        for source in (path, catalog, container, tmp_path / "cells.parquet", f"{url}/x.tif"):
            if source == tmp_path / "cells.parquet":
                batch = first(
                    source,
                    fields={
                        "image": chaski.Field(
                            column="image", dtype="float32", fill=-1, validity="ok"
                        )
                    },
                )
            else:
                batch = first(source, pixels=PIXELS)
            np.testing.assert_array_equal(batch["image"][0], want, err_msg=str(source))
            np.testing.assert_array_equal(batch["ok"][0], np.broadcast_to(mask, want.shape))


def test_bands_that_are_picked(tmp_path: Path) -> None:
    """Alpha is a band if its number is picked; validity follows it. A whole file has all bands."""
    path = write(tmp_path / "x.tif", 90)
    with rasterio.open(path) as f:
        stored, mask = f.read(), f.dataset_mask() > 0
    batch = first(path, pixels=chaski.Pixels(bands=[3, 0], dtype="native", validity="ok"))
    np.testing.assert_array_equal(batch["image"][0], stored[[3, 0]])
    np.testing.assert_array_equal(batch["ok"][0], np.broadcast_to(mask, (2, SIDE, SIDE)))
    np.testing.assert_array_equal(chaski.read(path), stored)
    stats = chaski.stats(path)
    assert stats.mean() == pytest.approx([stored[b][mask].mean() for b in range(3)])
    fields = {"image": chaski.Field(pattern="{id}.tif", bands=[3, 1])}
    picked = chaski.stats(tmp_path, fields=fields)
    assert picked.mean() == pytest.approx([255, stored[1][mask].mean()])
    info = chaski.info(path)["raster"]
    assert (info["alpha"], info["mask"]["kind"], info["shape"]) == (3, "alpha", [4, SIDE, SIDE])


@pytest.mark.parametrize("rank", ["nodata", "mask"])
def test_what_outranks_alpha(tmp_path: Path, rank: str) -> None:
    path = write(tmp_path / "x.tif", 90, **({"nodata": 91} if rank == "nodata" else {}))
    if rank == "mask":
        with rasterio.Env(GDAL_TIFF_INTERNAL_MASK=True), rasterio.open(path, "r+") as f:
            f.write_mask(np.arange(SIDE * SIDE).reshape(SIDE, SIDE) % 5 > 0)
    with rasterio.open(path) as f:
        assert not any(rasterio.enums.MaskFlags.alpha in flags for flags in f.mask_flag_enums)
        want = f.read_masks([1, 2, 3]) > 0
    np.testing.assert_array_equal(first(path, pixels=PIXELS)["ok"][0], want)


@pytest.mark.parametrize("kind", ["unspecified", "five bands", "float32"])
def test_bands_that_are_no_mask(tmp_path: Path, kind: str) -> None:
    count, dtype = (5 if kind == "five bands" else 4), ("float32" if kind == "float32" else "uint8")
    alpha = "unspecified" if kind == "unspecified" else "yes"
    path = tmp_path / "x.tif"
    data = np.arange(count * 64).reshape(count, 8, 8).astype(dtype) % 7
    profile = dict(driver="GTiff", count=count, height=8, width=8, dtype=dtype)
    with rasterio.open(path, "w", **profile, photometric="RGB", alpha=alpha) as f:
        f.write(data)
    with rasterio.open(path) as f:
        assert f.dataset_mask().all()
    batch = first(path, pixels=PIXELS)
    np.testing.assert_array_equal(batch["image"][0], data)
    assert batch["ok"].all()


def test_mosaics(tmp_path: Path) -> None:
    """Transparent pixels of the first scene show the second one, as rasterio.merge does."""
    scenes = tmp_path / "scenes"
    scenes.mkdir()
    paths = [write(scenes / "a.tif", 50, clear=slice(20, 50)), write(scenes / "b.tif", 150)]
    want, _ = merge.merge(paths)
    window = chaski.GeoWindow(10 * SIDE, 10, per_epoch=4, edge=True)
    seen = 0
    for dtype in ("native", "float32"):
        fields = {"image": chaski.Field(pattern="{id}.tif", dtype=dtype, fill=0, validity="ok")}
        pixels = chaski.Pixels(geo=True)
        with chaski.load(
            scenes, fields=fields, batch_size=4, window=window, pixels=pixels
        ) as loader:
            for batch in loader:
                for image, ok, t in zip(
                    batch["image"], batch["ok"], batch["geo"]["transform"], strict=True
                ):
                    column, row = round((t[0] - 500000) / 10), round((4600000 - t[3]) / 10)
                    y, x = np.mgrid[row : row + SIDE, column : column + SIDE]
                    inside = (y >= 0) & (x >= 0) & (y < SIDE) & (x < SIDE)
                    np.testing.assert_array_equal(image[:, inside], want[:3, y[inside], x[inside]])
                    np.testing.assert_array_equal(
                        ok[0][inside] > 0, want[3, y[inside], x[inside]] > 0
                    )
                    seen += int(ok.sum())
    assert seen > 1000


def test_the_log_says_that_a_band_is_alpha(tmp_path, caplog):
    """GDAL calls the last of four plain bytes alpha, also where it is near infrared."""
    path = tmp_path / "a.tif"
    x = np.ones((4, 8, 8), np.uint8)
    with rasterio.open(path, "w", driver="GTiff", count=4, height=8, width=8, dtype="uint8") as f:
        f.write(x)
    for bands, said, count in ((None, True, 3), ([0, 1, 2, 3], False, 4)):
        caplog.clear()
        with chaski.load(path, batch_size=1, pixels=chaski.Pixels(bands=bands)) as loader:
            assert next(iter(loader))["image"].shape[1] == count
        told = ["the last band of the files is alpha"] if said else []
        assert ("the last band of the files is alpha" in logged(caplog, *told)) == said


@pytest.mark.parametrize("driver", ["COG", "GTiff"])
def test_gdal_metadata_says_that_a_band_is_not_alpha(tmp_path, driver):
    """Drivers call the last of four bytes alpha in ExtraSamples; what GDAL_METADATA says counts."""
    x = np.ones((4, 32, 32), np.uint8)
    x[3, :16] = 0
    colours = [rasterio.enums.ColorInterp[k] for k in ("blue", "green", "red", "undefined")]
    size = {"driver": "GTiff", "count": 4, "height": 32, "width": 32, "dtype": "uint8"}
    path = tmp_path / "a.tif"
    with rasterio.open(path, "w", **size, photometric="MINISBLACK") as f:
        f.colorinterp = colours
        f.write(x)
    if driver == "COG":
        path, plain = tmp_path / "cog.tif", path
        shutil.copy(plain, path, driver="COG")
    with rasterio.open(path) as f:
        want = f.dataset_mask() > 0
    assert want.all()
    with chaski.load(
        path, batch_size=1, pixels=chaski.Pixels(validity="ok", dtype="native")
    ) as loader:
        b = next(iter(loader))
    assert np.array_equal(b["image"][0], x) and b["ok"].all()


@pytest.mark.parametrize(("colour", "bands"), [("Alpha", 3), ("NIR", 4)])
def test_pam_says_what_a_band_is(tmp_path, colour, bands):
    x = np.ones((4, 8, 8), np.uint8)
    x[3, :4] = 0
    alpha = {} if colour == "NIR" else {"photometric": "MINISBLACK"}
    path = tmp_path / "a.tif"
    size = {"driver": "GTiff", "count": 4, "height": 8, "width": 8, "dtype": "uint8"}
    with rasterio.open(path, "w", **size, **alpha) as f:
        f.write(x)
    (tmp_path / "a.tif.aux.xml").write_text(
        f'<PAMDataset><PAMRasterBand band="4"><ColorInterp>{colour}</ColorInterp>'
        "</PAMRasterBand></PAMDataset>"
    )
    with rasterio.open(path) as f:
        want = f.dataset_mask() > 0
    with chaski.load(path, batch_size=1, pixels=chaski.Pixels(validity="ok")) as loader:
        b = next(iter(loader))
    assert b["image"].shape[1] == bands
    assert np.array_equal(b["ok"][0] > 0, np.broadcast_to(want, (bands, 8, 8)))
