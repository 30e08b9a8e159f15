"""Rasters with a palette are classes: no window blends them, and their dtype is kept."""

from __future__ import annotations

import ctypes
import json
import subprocess
from pathlib import Path

import numpy as np
import pytest
import rasters

import chaski

pytestmark = pytest.mark.usefixtures("one_engine")

rasterio = pytest.importorskip("rasterio", reason="needs rasterio to write rasters")
shutil = pytest.importorskip("rasterio.shutil")

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
        assert loader.fields[0].palette[41] == "#008000"
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
    rasters.write(
        tmp_path / "a.tif", np.random.default_rng(0).choice([1, 9], (1, 64, 64)).astype("uint8")
    )
    with chaski.load(tmp_path, batch_size=4, window=WINDOW) as loader:
        dtype, got = values(loader)
        assert dtype == np.float32 and len(got) > 2


def test_a_palette_among_others_is_not_blended(tmp_path):
    """The first raster says what a field is: one with a palette behind it is refused, by name."""
    rasters.write(tmp_path / "a.tif", np.ones((1, 64, 64), "uint8"))
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


NAMES = {11: "water", 41: "Wälder & <höher>", 82: "$crop$"}


def gdal() -> ctypes.CDLL:
    """GDAL as rasterio has it: rasterio itself writes no names of classes."""
    library = next((Path(rasterio.__file__).parent.parent / "rasterio.libs").glob("libgdal*"), None)
    if library is None:
        pytest.skip("rasterio does not bring GDAL")
    out = ctypes.CDLL(str(library))
    for name in ("GDALOpen", "GDALGetRasterBand", "GDALCreateRasterAttributeTable"):
        getattr(out, name).restype = ctypes.c_void_p
    return out


def named(path: Path, table: bool) -> None:
    """GDAL names the classes of a raster, by an attribute table or by CategoryNames."""
    lib = gdal()
    # New versions write tables into files that are open for it, and others beside them.
    dataset = ctypes.c_void_p(lib.GDALOpen(str(path).encode(), int(table)))
    band = ctypes.c_void_p(lib.GDALGetRasterBand(dataset, 1))
    if table:
        rows = ctypes.c_void_p(lib.GDALCreateRasterAttributeTable())
        for column in ((b"Count", 0, 1), (b"Value", 0, 5), (b"Class_Name", 2, 2)):
            assert lib.GDALRATCreateColumn(rows, *column) == 0
        for i, (value, name) in enumerate(NAMES.items()):
            lib.GDALRATSetValueAsInt(rows, i, 1, value)
            lib.GDALRATSetValueAsString(rows, i, 2, name.encode())
        assert lib.GDALSetDefaultRAT(band, rows) == 0
    else:
        names = [NAMES.get(i, "").encode() for i in range(max(NAMES) + 1)]
        assert lib.GDALSetRasterCategoryNames(band, (ctypes.c_char_p * 84)(*names, None)) == 0
    lib.GDALClose(dataset)


def told(binary, path) -> dict:
    command = [binary, "info", "--json", path]
    return json.loads(subprocess.run(command, check=True, capture_output=True).stdout)["raster"]


@pytest.mark.parametrize("form", ["categories", "table", "png", "vrt", "catalog", "grey"])
def test_names_of_classes(binary, tmp_path, form):
    folder = tmp_path / "d"
    folder.mkdir()
    path = folder / ("a.png" if form == "png" else "a.tif")
    write(path, "PNG" if form == "png" else "GTiff")
    if form == "grey":  # names, and no palette
        x = np.full((1, 64, 64), 41, "uint8")
        rasters.write(path, x, dtype="uint8")
    named(path, form == "table")
    source = folder
    if form == "vrt":
        shutil.copy(path, tmp_path / "a.vrt", driver="VRT")
        source = path = tmp_path / "a.vrt"
    if form == "catalog":
        source = tmp_path / "c.parquet"
        subprocess.run([binary, "index", folder, "-o", source], check=True)
    want = [NAMES.get(i, "") for i in range(83)]
    info = told(binary, path)
    assert info["classes"] == want
    assert len(info.get("palette", [])) == (0 if form == "grey" else 83)
    with chaski.load(source, batch_size=1) as loader:
        assert loader.classes == {"image": want}
        (field,) = [f for f in loader.fields if f.name == "image"]
        assert list(field.palette) == info.get("palette", [])
        assert next(iter(loader))["image"].dtype == ("float32" if form == "grey" else "uint8")
    for changed in (
        chaski.Field(lut={11: 0, 41: 1}, fill=9),
        chaski.Field(normalize=chaski.Normalize(2.0)),
    ):
        with chaski.load(source, batch_size=1, fields={"image": changed}) as loader:
            assert loader.classes == {}  # numbers are not those of the file


def test_colours_of_every_form(binary, tmp_path):
    """Colours are GDAL's, with alpha, also where another file lies beside the raster."""
    table = {i: (3 * i, 255 - i, 7, 255 if i % 2 else 100) for i in range(12)}
    size = {"count": 1, "height": 8, "width": 8, "dtype": "uint8"}
    x = np.arange(64, dtype="uint8").reshape(1, 8, 8) % 12
    with rasterio.open(tmp_path / "x1.png", "w", driver="PNG", **size) as f:
        f.write(x)
        f.write_colormap(1, table)
    shutil.copy(tmp_path / "x1.png", tmp_path / "x1.vrt", driver="VRT")
    with rasterio.open(
        tmp_path / "x1.tif", "w", driver="GTiff", photometric="PALETTE", **size
    ) as f:
        f.write(x)
        f.write_colormap(1, table)
    with rasterio.Env(GDAL_TIFF_INTERNAL_MASK=False), rasterio.open(tmp_path / "x1.tif", "r+") as f:
        f.write_mask(x[0] != 3)
    assert (tmp_path / "x1.tif.msk").exists()
    rasters.write(tmp_path / "y1.tif", x, **size)
    entries = "".join(
        "<Entry " + " ".join(f'c{k}="{v}"' for k, v in enumerate(c, 1)) + "/>"
        for c in table.values()
    )
    pam = f'<PAMRasterBand band="1"><ColorTable>{entries}</ColorTable></PAMRasterBand>'
    (tmp_path / "y1.tif.aux.xml").write_text(f"<PAMDataset>{pam}</PAMDataset>")
    for name in ("x1.png", "x1.vrt", "x1.tif", "y1.tif"):
        with rasterio.open(tmp_path / name) as f:
            read = f.colormap(1)
        want = ["#" + bytes(read[i]).hex().removesuffix("ff") for i in table]
        assert told(binary, tmp_path / name)["palette"][:12] == want, name
        with chaski.load(tmp_path / name, batch_size=1) as loader:
            assert loader.fields[0].dtype == "uint8"
            batch = next(iter(loader))
        assert list(batch.fields["image"].palette)[:12] == want


def test_plot_has_colours_and_names(tmp_path):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    x = write(tmp_path / "a.tif")
    named(tmp_path / "a.tif", table=False)
    with chaski.load(tmp_path, batch_size=1) as loader:
        batch = next(iter(loader))
    figure = batch.plot()
    drawn = np.asarray(figure.axes[0].images[0].get_array())
    for number, colour in COLOURS.items():
        assert (drawn[x[0] == number] == [*colour, 255]).all()
    (legend,) = figure.legends
    assert [t.get_text() for t in legend.get_texts()] == [
        n.replace("$", r"\$") for n in NAMES.values()
    ]
    marks = [tuple(round(255 * c) for c in p.get_facecolor()) for p in legend.get_patches()]
    assert marks == [(*c, 255) for c in COLOURS.values()]
    pyplot.close(figure)
    assert "data:image/png" in batch._repr_html_()
