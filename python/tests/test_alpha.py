"""Alpha is the mask of a file, wherever the file lies. The judge is GDAL, by rasterio."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import rasters
from helpers import web
from patience import logged

import chaski

rasterio = pytest.importorskip("rasterio", reason="needs rasterio to write and to judge")
merge = pytest.importorskip("rasterio.merge")
shutil = pytest.importorskip("rasterio.shutil")
pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
pytestmark = [
    pytest.mark.usefixtures("one_engine"),
    pytest.mark.filterwarnings("ignore::rasterio.errors.NodataShadowWarning"),
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
    rasters.write(path, data, dtype="uint8", **options)
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
    """Alpha whose number is picked is data, and masks nothing. A whole file has all bands."""
    path = write(tmp_path / "x.tif", 90)
    with rasterio.open(path) as f:
        stored, mask = f.read(), f.dataset_mask() > 0
    batch = first(path, pixels=chaski.Pixels(bands=[3, 0], dtype="native", validity="ok"))
    np.testing.assert_array_equal(batch["image"][0], stored[[3, 0]])
    assert batch["ok"].all()
    batch = first(path, pixels=chaski.Pixels(bands=[2, 0], dtype="native", validity="ok"))
    np.testing.assert_array_equal(batch["ok"][0], np.broadcast_to(mask, (2, SIDE, SIDE)))
    np.testing.assert_array_equal(chaski.read(path), stored)
    stats = chaski.stats(path)
    assert stats.mean() == pytest.approx([stored[b][mask].mean() for b in range(3)])
    fields = {"image": chaski.Field(pattern="{id}.tif", bands=[3, 1])}
    picked = chaski.stats(tmp_path, fields=fields)
    assert picked.mean() == pytest.approx([stored[3].mean(), stored[1].mean()])
    info = chaski.info(path)["raster"]
    assert (info["alpha"], info["mask"]["kind"], info["shape"]) == (3, "alpha", [4, SIDE, SIDE])


def infrared(folder: Path, dtype: str = "uint8") -> np.ndarray:
    """Writes two scenes with near infrared in the fourth band, which GDAL calls alpha."""
    x = np.random.default_rng(3).integers(0, 4, (2, 4, SIDE, SIDE)).astype(dtype)
    for i in range(2):
        place = rasterio.Affine(10, 0, 500000, 0, -10, 4600000)
        size = dict(driver="GTiff", count=4, height=SIDE, width=SIDE, dtype=dtype)
        how = dict(photometric="RGB", alpha="yes", crs="EPSG:32630", transform=place)
        with rasterio.open(folder / f"{i}.tif", "w", **size, **how) as f:
            f.write(x[i])
            f.descriptions = ("red", "green", "blue", "nir")
            assert f.colorinterp[3] == rasterio.enums.ColorInterp.alpha
    return x


@pytest.mark.parametrize("dtype", ["uint8", "uint16"])
@pytest.mark.parametrize("bands", [[0, 1, 2, 3], [3], ["nir", "red"]])
@pytest.mark.parametrize("form", ["directory", "catalog", "container", "cells"])
def test_infrared_is_data(
    tmp_path: Path, binary: Path, dtype: str, bands: list[Any], form: str
) -> None:
    """Batches, statistics and counts of a band that is picked, by number or name, are numpy's."""
    (tmp_path / "d").mkdir()
    x = infrared(tmp_path / "d", dtype)
    numbers = [["red", "green", "blue", "nir"].index(b) if isinstance(b, str) else b for b in bands]
    want, source, column = x[:, numbers], tmp_path / "d", None
    if form == "catalog":
        source = tmp_path / "c.parquet"
        subprocess.run([binary, "index", "-o", source, tmp_path / "d"], check=True)
    if form == "container":
        source = tmp_path / "x.tacozip"
        about = {"id": "x", "dataset_version": "1", "description": "x", "licenses": ["MIT"]}
        about |= {"providers": [{"name": "x"}], "tasks": ["other"]}
        chaski.pack(
            [{"id": str(i), "path": tmp_path / f"d/{i}.tif"} for i in (0, 1)], source, about
        )
    if form == "cells":
        source, column = tmp_path / "cells.parquet", "image"
        kind = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
        cells = [{"bytes": (tmp_path / f"d/{i}.tif").read_bytes(), "path": None} for i in (0, 1)]
        pq.write_table(pa.table({"image": pa.array(cells, kind)}), source)
    fields = {"image": chaski.Field(column=column, bands=bands, dtype="float32", validity="ok")}
    with chaski.load(source, batch_size=2, fields=fields, shuffle=False) as loader:
        batch = next(iter(loader))
        spec = loader.spec
    np.testing.assert_array_equal(batch["image"], want)
    assert batch["ok"].all()
    stats = chaski.stats(source, fields=fields)
    assert stats.mean("image") == pytest.approx(want.mean((0, 2, 3)))
    (tmp_path / "spec.json").write_text(json.dumps(spec))
    out = tmp_path / "c.weights"
    counting = [binary, "stats", "--sampling", "--cell", str(SIDE), "-o", out]
    subprocess.run([*counting, tmp_path / "spec.json"], check=True, capture_output=True)
    cells = np.frombuffer(out.read_bytes()[-8:], "<u4")
    assert cells.tolist() == [SIDE * SIDE] * 2


def test_mosaics_of_infrared(tmp_path: Path) -> None:
    """Zeros of near infrared let no other scene through."""
    x = infrared(tmp_path)
    window = chaski.GeoWindow(10 * SIDE, 10, crs="EPSG:32630", edge=True)
    fields = {"image": chaski.Field(bands=[0, 1, 2, 3], dtype="native", validity="ok")}
    options = dict(window=window, fields=fields, pixels=chaski.Pixels(geo=True))
    batch = first(tmp_path, **options)
    t = batch["geo"]["transform"][0]
    column, row = round((t[0] - 500000) / 10), round((4600000 - t[3]) / 10)
    y, z = np.mgrid[row : row + SIDE, column : column + SIDE]
    inside = (y >= 0) & (z >= 0) & (y < SIDE) & (z < SIDE)
    assert inside.sum() > 1000
    np.testing.assert_array_equal(batch["image"][0][:, inside], x[0][:, y[inside], z[inside]])
    assert batch["ok"][0][:, inside].all()


@pytest.mark.parametrize("picked", [[0, 1, 2, 3], [3, 1], [1, 2]])
def test_alpha_of_a_vrt_has_no_nodata(tmp_path: Path, picked: list[int]) -> None:
    """The nodata of the other bands, as `gdalbuildvrt -addalpha` writes it, is none of alpha."""
    x = infrared(tmp_path)
    colours = ["Red", "Green", "Blue", "Alpha"]
    bands = "".join(
        f'<VRTRasterBand dataType="Byte" band="{b + 1}"><ColorInterp>{colours[b]}</ColorInterp>'
        + ("<NoDataValue>0</NoDataValue>" if b < 3 else "")
        + '<SimpleSource><SourceFilename relativeToVRT="1">0.tif</SourceFilename>'
        + f"<SourceBand>{b + 1}</SourceBand></SimpleSource></VRTRasterBand>"
        for b in range(4)
    )
    path = tmp_path / "a.vrt"
    size = f'rasterXSize="{SIDE}" rasterYSize="{SIDE}"'
    path.write_text(f"<VRTDataset {size}>{bands}</VRTDataset>")
    with rasterio.open(path) as f:
        valid = f.read_masks([b + 1 for b in picked]) > 0
        assert f.read_masks(4).all()
    batch = first(path, pixels=chaski.Pixels(bands=picked, dtype="native", validity="ok"))
    np.testing.assert_array_equal(batch["image"][0], x[0, picked])
    np.testing.assert_array_equal(batch["ok"][0] > 0, valid)


@pytest.mark.parametrize("own", [None, 1])
@pytest.mark.parametrize("told", [{1: 0, 2: 0, 3: 0}, {1: 0, 2: 0, 3: 0, 4: 2}])
@pytest.mark.parametrize("form", ["file", "catalog"])
def test_nodata_beside_a_raster_is_by_band(
    tmp_path: Path, binary: Path, own: int | None, told: dict[int, int], form: str
) -> None:
    """Alpha that is picked has the nodata value that .aux.xml or the file gives it."""
    x, path = infrared(tmp_path)[0], tmp_path / "0.tif"
    (tmp_path / "1.tif").unlink()
    if own is not None:
        with rasterio.open(path, "r+") as f:
            f.nodata = own
    bands = "".join(
        f'<PAMRasterBand band="{b}"><NoDataValue>{v}</NoDataValue></PAMRasterBand>'
        for b, v in told.items()
    )
    Path(f"{path}.aux.xml").write_text(f"<PAMDataset>{bands}</PAMDataset>")
    with rasterio.open(path) as f:
        valid = f.read_masks() > 0
        assert f.nodatavals == (0, 0, 0, told.get(4, own))
    source = path
    if form == "catalog":
        source = tmp_path / "catalog.parquet"
        subprocess.run([binary, "index", "-o", source, path], check=True, capture_output=True)
    for picked in ([0, 1, 2, 3], [3], [3, 1], None):
        pixels = chaski.Pixels(bands=picked, dtype="native", validity="ok")
        want = [0, 1, 2] if picked is None else picked
        np.testing.assert_array_equal(first(source, pixels=pixels)["ok"][0] > 0, valid[want])
        fields = {"image": chaski.Field(pattern="{id}.tif", bands=picked)}
        mean = chaski.stats(tmp_path, fields=fields).mean()
        assert mean == pytest.approx([x[b][valid[b]].mean() for b in want])


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
    rasters.write(path, data, dtype=dtype, photometric="RGB", alpha=alpha)
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
    rasters.write(path, x, dtype="uint8")
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
    rasters.write(path, x, dtype="uint8", **alpha)
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
