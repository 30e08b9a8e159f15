"""Files beside a raster count as for GDAL: masks, PAM and world files. The judge is rasterio."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import rasters
from conftest import nonempty

import chaski

rasterio = pytest.importorskip("rasterio", reason="needs rasterio to write and to judge")
pytestmark = [
    pytest.mark.usefixtures("one_engine"),
    pytest.mark.filterwarnings("ignore::rasterio.errors.NodataShadowWarning"),
]
SIDE = 48
WORLD = "10\n0\n0\n-10\n500005\n4599995\n"
OTHER_WORLD = "5\n1\n-2\n-5\n7000\n8000\n"
BAND = '<PAMRasterBand band="1"><NoDataValue>0</NoDataValue></PAMRasterBand>'
PAM = (
    "<PAMDataset><SRS>EPSG:32630</SRS>"
    "<GeoTransform> 6.0e+05, 1.0e+01, 0, 4600000, 0, -1.0e+01</GeoTransform>"
    f'<Metadata><MDI key="x">1</MDI></Metadata>{BAND}</PAMDataset>'
)
WKT = (
    'PROJCS["WGS 84 / UTM zone 31N",GEOGCS["WGS 84",DATUM["WGS_1984",SPHEROID["WGS 84",6378137,'
    '298.257223563]],PRIMEM["Greenwich",0],UNIT["degree",0.0174532925199433]],'
    'PROJECTION["Transverse_Mercator"],PARAMETER["latitude_of_origin",0],'
    'PARAMETER["central_meridian",3],PARAMETER["scale_factor",0.9996],'
    'PARAMETER["false_easting",500000],PARAMETER["false_northing",0],UNIT["metre",1],'
    'AUTHORITY["EPSG","32631"]]'
)


def write(path: Path, **options: Any) -> Path:
    """Writes a raster of zeros, fives and nines."""
    driver = {".png": "PNG", ".jpg": "JPEG"}.get(path.suffix, "GTiff")
    count = options.pop("count", 1)
    data = np.full((count, SIDE, SIDE), 5, "uint8")
    data[:, :, :20], data[:, :16] = 0, 9
    rasters.write(path, data, driver=driver, dtype="uint8", **options)
    return path


def mask(path: Path, inside: bool = False, rows: int = 24) -> None:
    """Adds a mask by GDAL that takes out the first rows."""
    with rasterio.Env(GDAL_TIFF_INTERNAL_MASK=inside), rasterio.open(path, "r+") as f:
        f.write_mask(np.arange(SIDE)[:, None] >= np.full((1, SIDE), rows))
    assert inside or Path(f"{path}.msk").exists()


PLACE = dict(crs="EPSG:32632", transform=rasterio.Affine(20, 0, 300000, 0, -20, 5000000))
# The raster's name, how it is written, and the files beside it; "mask" is a function.
CASES: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "mask": ("x.tif", {}, {"mask": True}),
    "mask of three bands": ("x.tif", {"count": 3}, {"mask": True}),
    "mask before nodata": ("x.tif", {"nodata": 9}, {"mask": True}),
    "mask before alpha": (
        "x.tif",
        {"count": 4, "photometric": "RGB", "alpha": "yes"},
        {"mask": True},
    ),
    "a mask that is none": ("x.tif", {}, {"x.tif.msk": "not a TIFF"}),
    "pam": ("x.tif", {}, {"x.tif.aux.xml": PAM}),
    "pam of png": ("x.png", {}, {"x.png.aux.xml": PAM}),
    "pam before the file": ("x.tif", {"nodata": 9, **PLACE}, {"x.tif.aux.xml": PAM}),
    "pam without a place": (
        "x.tif",
        {"nodata": 9, **PLACE},
        {"x.tif.aux.xml": f"<PAMDataset>{BAND}</PAMDataset>"},
    ),
    "pam with another CRS": (
        "x.tif",
        PLACE,
        {"x.tif.aux.xml": f"<PAMDataset><SRS>{WKT}</SRS></PAMDataset>"},
    ),
    "pam before a world file": ("x.tif", {}, {"x.tif.aux.xml": PAM, "x.tfw": WORLD}),
    "other xml": ("x.tif", {}, {"x.tif.aux.xml": "<metadata><a/></metadata>"}),
    "world": ("x.tif", {}, {"x.tfw": WORLD}),
    "rotated world": ("x.tif", {}, {"x.tfw": OTHER_WORLD}),
    "upper case": ("x.tif", {}, {"x.TFW": WORLD}),
    "mask in upper case": ("x.tif", {}, {"MASK": True}),
    "pam in upper case counts for nothing": ("x.tif", {}, {"x.tif.AUX.XML": PAM}),
    "long world": ("x.tif", {}, {"x.tifw": WORLD, "x.wld": OTHER_WORLD}),
    "short world": ("x.tif", {}, {"x.tifw": OTHER_WORLD, "x.tfw": WORLD}),
    "wld": ("x.tif", {}, {"x.wld": WORLD}),
    "the file before a world file": ("x.tif", PLACE, {"x.tfw": WORLD}),
    "no world": ("x.tif", {}, {"x.tfw": "none"}),
    "world of tiff": ("x.tiff", {}, {"x.tfw": WORLD}),
    "world of png": ("x.png", {}, {"x.pgw": WORLD}),
    "world of jpeg": ("x.jpg", {}, {"x.jgw": WORLD}),
}


def pam(inside: str = "", band: str = "1") -> str:
    return f"<PAMDataset>{inside}{BAND.replace('1', band, 1)}</PAMDataset>"


CASES |= {
    f"pam {what}": ("x.tif", {}, {"x.tif.aux.xml": text})
    for what, text in {
        "that is empty": "",
        "without its end": pam()[:-20],
        "and more": pam() + "more<",
        "in Latin-1": pam("<Metadata><MDI key='x'>caf\xe9</MDI></Metadata>").encode("latin-1"),
        "with a mark": b"\xef\xbb\xbf" + pam().encode(),
        "of HTML": pam("<Metadata><MDI key='x'>a&nbsp;b & c</MDI></Metadata>"),
        "that is long": pam(f"<Metadata><MDI key='x'>{'x' * (5 << 20)}</MDI></Metadata>"),
        "with five numbers": pam("<GeoTransform>1,2,3,4,5</GeoTransform>"),
        "with seven numbers": pam("<GeoTransform>1,2,3,4,5,6,7</GeoTransform>"),
        "with a word": pam("<GeoTransform>1.5x,2,3,4,,far</GeoTransform>"),
        "of a band without a number": pam(band="first"),
        "of a band with a fraction": pam(band=" 1.9"),
        "of band 01": pam(band="+01"),
        "of band 0": pam(band="0"),
    }.items()
}
CASES |= {
    f"world file {what}": (raster, {}, {name: text})
    for what, raster, name, text in [
        ("in another case", "X.TIF", "x.tfw", WORLD),
        ("in capitals", "x.tif", "X.TFW", WORLD),
        ("wld in another case", "X.TIF", "x.wld", WORLD),
        ("with commas", "x.tif", "x.tfw", WORLD.replace("10", "2,5").replace("500005", "5005,25")),
        ("with units", "x.tif", "x.tfw", WORLD.replace("10", "2.5 m")),
        ("with empty lines", "x.tif", "x.tfw", "\n" + WORLD.replace("0\n", "0\r\n\n", 1)),
        ("of one line", "x.tif", "x.tfw", WORLD.replace("\n", " ")),
        ("of words", "x.tif", "x.tfw", "one\ntwo\nthree\nfour\nfive\nsix\n"),
    ]
}
OTHER_BAND = BAND.replace("1", "3", 1).replace(">0<", ">9<")
CASES |= {
    f"nodata of each band {what}": ("x.tif", options | {"count": 3}, {"x.tif.aux.xml": text})
    for what, options, text in [
        ("in its place", {}, f"<PAMDataset>{BAND}{OTHER_BAND}</PAMDataset>"),
        ("before that of the file", {"nodata": 5}, f"<PAMDataset>{BAND}{OTHER_BAND}</PAMDataset>"),
        ("but the first", {}, f"<PAMDataset>{OTHER_BAND}</PAMDataset>"),
        (
            "that the type lacks",
            {},
            f"<PAMDataset>{BAND}{OTHER_BAND.replace('>9<', '>-1<')}</PAMDataset>",
        ),
    ]
}
CASES |= {
    "mask in another case": ("X.TIF", {}, {"Mask": True}),
    "pam in another case": ("X.TIF", {}, {"x.tif.aux.xml": pam()}),
}


def made(folder: Path, case: str) -> Path:
    name, options, files = CASES[case]
    path = write(folder / name, **options)
    if path.suffix != ".tif":
        Path(f"{path}.aux.xml").unlink(missing_ok=True)  # of GDAL, about statistics
    for file, text in files.items():
        if file.lower() == "mask":
            mask(path)
            if file == "MASK":
                Path(f"{path}.msk").rename(f"{path}.MSK")
            elif file == "Mask":
                Path(f"{path}.msk").rename(folder / f"{path.name.lower()}.msk")
        else:
            (folder / file).write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def first(source: Any, **options: Any) -> Any:
    pixels = chaski.Pixels(dtype="native", validity="ok", geo=True)
    with chaski.load(source, batch_size=1, pixels=pixels, **options) as loader:
        return next(iter(loader))


def judge(path: Path, batch: Any) -> None:
    """Compares a batch with GDAL."""
    with rasterio.open(path) as f:
        bands = [i for i, c in enumerate(f.colorinterp, 1) if c.name != "alpha"]
        np.testing.assert_array_equal(batch["image"][0], f.read(bands))
        np.testing.assert_array_equal(batch["ok"][0] > 0, f.read_masks(bands) > 0)
        geo, place = batch["geo"], f.transform
        if place.is_identity:
            assert not np.isfinite(geo["transform"][0]).all()
        else:
            np.testing.assert_array_equal(geo["transform"][0], place.to_gdal())
        assert int(geo["epsg"][0]) == (f.crs.to_epsg() if f.crs and not place.is_identity else 0)


@pytest.mark.parametrize("case", CASES)
def test_as_gdal(tmp_path: Path, binary: Path, case: str) -> None:
    """A file, its directory, a table and a catalog yield what GDAL reads."""
    path = made(tmp_path, case)
    judge(path, first(path))
    (tmp_path / "t.csv").write_text(f"image\n{path.name}\n")
    judge(
        path,
        first(
            tmp_path / "t.csv",
            fields={
                "image": chaski.Field(column="image", kind="raster", validity="ok", dtype="native")
            },
        ),
    )
    catalog = tmp_path / "catalog.parquet"
    subprocess.run([binary, "index", "-o", catalog, path], check=True, capture_output=True)
    judge(path, first(catalog))
    subprocess.run([binary, "verify", path, catalog], check=True, capture_output=True)


def test_an_own_mask_counts(tmp_path: Path) -> None:
    mask(write(tmp_path / "other.tif"), rows=10)
    path = write(tmp_path / "x.tif")
    mask(path, inside=True)
    (tmp_path / "other.tif.msk").rename(tmp_path / "x.tif.msk")
    batch = first(path)
    judge(path, batch)
    assert batch["ok"].sum() == (SIDE - 24) * SIDE


@pytest.mark.parametrize("dtype", ["float64", "float32", "int16"])
@pytest.mark.parametrize("written", ["exact", "lower case", "half", "none"])
def test_exact_nodata(tmp_path: Path, dtype: str, written: str) -> None:
    """GDAL rounds the text of a nodata value, and writes the number itself as an attribute."""
    for i, value in enumerate([-1.7976931348623157e308, 0.1, -9999.0, -3.4028234663852886e38]):
        if dtype == "int16" and abs(value) != 9999:
            continue
        if dtype == "float32" and abs(value) > 1e300:
            continue
        path, x = tmp_path / f"{i}.tif", np.ones((8, 8), dtype)
        x[0] = value
        rasters.write(path, x, dtype=dtype)
        hexadecimal = np.array([value], "<f8").tobytes().hex().upper()
        attributes = {
            "exact": f' le_hex_equiv="{hexadecimal}"',
            "lower case": f' le_hex_equiv="{hexadecimal.lower()}"',
            "half": f' le_hex_equiv="{hexadecimal[:8]}"',
            "none": "",
        }
        text = f"{value:.14E}" if written in ("exact", "lower case") else f"{value:.17g}"
        nodata = f"<NoDataValue{attributes[written]}>{text}</NoDataValue>"
        band = f'<PAMRasterBand band="1">{nodata}</PAMRasterBand>'
        Path(f"{path}.aux.xml").write_text(f"<PAMDataset>{band}</PAMDataset>")
        field = chaski.Field(dtype="native", validity="ok")
        with chaski.load(path, batch_size=1, fields={"image": field}) as loader:
            ok = next(iter(loader))["ok"]
        with rasterio.open(path) as f:
            assert np.array_equal(np.asarray(ok)[0, 0] != 0, f.read_masks(1) > 0), (value, nodata)


def test_info_and_the_switch(tmp_path: Path, binary: Path, monkeypatch: Any) -> None:
    scaled = PAM.replace("</NoDataValue>", "</NoDataValue><Scale>0.1</Scale><Offset>-3</Offset>")
    path = write(tmp_path / "x.tif")
    mask(path)
    Path(f"{path}.aux.xml").write_text(scaled)
    with rasterio.open(path) as f:
        scale, offset = f.scales[0], f.offsets[0]
    info = chaski.info(path)
    assert info["beside"] == [".msk", ".aux.xml"]
    assert info["raster"]["mask"]["kind"] == "beside"
    assert info["tiff"]["epsg"] == 32630
    assert info["tiff"]["bands"][0] == {"scale": scale, "offset": offset}
    monkeypatch.setenv("CHASKI_BESIDE", "no")
    out = subprocess.run([binary, "info", "--json", path], check=True, capture_output=True)
    assert "beside" not in json.loads(out.stdout)
    with chaski.load(path, batch_size=1) as loader:
        assert next(iter(loader))["image"].shape == (1, 1, SIDE, SIDE)


def test_catalogs_know_what_lies_beside(tmp_path: Path, binary: Path) -> None:
    """A file that comes, and one that goes, changes the row of an unchanged raster."""
    path, catalog = write(tmp_path / "x.tif"), tmp_path / "catalog.parquet"
    index = [binary, "index", "--resume", "-o", catalog, path]
    for step in ("nothing", "mask", "nothing"):
        if step == "mask":
            mask(path)
        else:
            Path(f"{path}.msk").unlink(missing_ok=True)
        subprocess.run(index, check=True, capture_output=True)
        judge(path, first(catalog))


def test_a_mask_that_was_rewritten(tmp_path: Path, binary: Path) -> None:
    """A catalog has the index of a mask: one of another layout is refused, a copy is read."""
    path, catalog = write(tmp_path / "x.tif"), tmp_path / "catalog.parquet"
    mask(path)
    subprocess.run([binary, "index", "-o", catalog, path], check=True, capture_output=True)
    os.utime(f"{path}.msk", (1e9, 1e9))
    judge(path, first(catalog))
    noise = np.random.default_rng(0).random((SIDE, SIDE)) < 0.5
    with rasterio.Env(GDAL_TIFF_INTERNAL_MASK=False), rasterio.open(path, "r+") as f:
        f.write_mask(noise)
    with pytest.raises(chaski.CorruptError, match=r"x\.tif\.msk.*rewritten since its index"):
        first(catalog)
    judge(path, first(path))


@pytest.mark.parametrize("what", ["alpha", "classes"])
def test_a_catalog_of_a_copy(tmp_path: Path, binary: Path, what: str) -> None:
    """What PAM says of alpha and of colours is no part of the file, and no reason to refuse it."""
    band = '<PAMRasterBand band="2"><ColorInterp>Alpha</ColorInterp></PAMRasterBand>'
    if what == "classes":
        colours = '<ColorTable><Entry c1="9" c2="8" c3="7"/></ColorTable>'
        band = f'<PAMRasterBand band="1">{colours}</PAMRasterBand>'
    path = write(tmp_path / "x.tif", count=2 if what == "alpha" else 1)
    Path(f"{path}.aux.xml").write_text(f"<PAMDataset>{band}</PAMDataset>")
    catalog = tmp_path / "catalog.parquet"
    subprocess.run([binary, "index", "-o", catalog, path], check=True, capture_output=True)
    os.utime(path, (1e9, 1e9))
    judge(path, first(catalog))


def test_hostile(tmp_path: Path) -> None:
    """A broken mask beside a raster is an error that names it, and so is what is too long."""
    path = write(tmp_path / "x.tif")
    cases = {"x.tif.aux.xml": [" " * (17 << 20)]}
    mask(path)
    cases["x.tif.msk"] = [(tmp_path / "x.tif.msk").read_bytes()[:40]]
    (tmp_path / "x.tif.msk").unlink()
    for name, contents in cases.items():
        for content in nonempty(contents):
            data = content.encode() if isinstance(content, str) else content
            (tmp_path / name).write_bytes(data)
            with pytest.raises(chaski.Error, match=name):
                first(path)
        (tmp_path / name).unlink()


def test_what_is_lost_is_said(tmp_path: Path, binary: Path) -> None:
    """Containers and converted files have nothing beside them."""
    folder = tmp_path / "d"
    folder.mkdir()
    for name, extra in {"a": WORLD, "b": None, "notes": None}.items():
        path = folder / f"{name}.tif"
        if name == "notes":
            path.with_suffix(".aux.xml").write_text("no raster has this name")
            continue
        write(path)
        if extra is not None:
            mask(path)
            path.with_suffix(".tfw").write_text(extra)
            Path(f"{path}.aux.xml").write_text(PAM)
    about = {
        "id": "x",
        "dataset_version": "1.0.0",
        "description": "x",
        "licenses": ["CC-BY-4.0"],
        "providers": [{"name": "us", "roles": ["producer"]}],
        "tasks": ["regression"],
    }
    (tmp_path / "about.json").write_text(json.dumps(about))
    out = tmp_path / "c.tacozip"
    pack = [binary, "pack", "--collection", tmp_path / "about.json", folder, "-o", out]
    said = subprocess.run(pack, check=True, capture_output=True, text=True).stderr
    assert "3 files beside rasters" in said and "a.tif.msk" in said
    listed = subprocess.run([binary, "ls", out], check=True, capture_output=True, text=True).stdout
    assert [line.split("\t")[0] for line in listed.splitlines()] == [
        "a.tif",
        "b.tif",
        "notes.aux.xml",
    ]
    convert = [binary, "convert", folder, "-o", tmp_path / "out"]
    said = subprocess.run(convert, check=True, capture_output=True, text=True).stderr
    assert said.count("beside") == 1 and "a.tif: left out: what files beside it say" in said
    strict = subprocess.run([*convert, "--strict", "--overwrite"], capture_output=True, text=True)
    assert strict.returncode == 1 and "beside" in strict.stderr
