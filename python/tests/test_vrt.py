"""Virtual rasters (VRT) have the pixels and the masks that GDAL reads from the very same file."""

from __future__ import annotations

import ctypes
import os
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import rasters
from conftest import nonempty
from helpers import web
from test_access import serving

import chaski
from chaski import Field, GeoWindow, Pixels

rasterio = pytest.importorskip("rasterio", reason="needs rasterio to write and to judge")
shutil = pytest.importorskip("rasterio.shutil")
pytestmark = [
    pytest.mark.usefixtures("one_engine"),
    pytest.mark.filterwarnings("ignore::rasterio.errors.NodataShadowWarning"),
]

COUNT = int(os.environ.get("CHASKI_RANDOM_VRTS", "100"))
NAMES = {
    "uint8": "Byte",
    "int8": "Int8",
    "uint16": "UInt16",
    "int16": "Int16",
    "uint32": "UInt32",
    "int32": "Int32",
    "uint64": "UInt64",
    "int64": "Int64",
    "float32": "Float32",
    "float64": "Float64",
    "complex64": "CFloat32",
}
LEFT, TOP = 500000, 4600000


def write(path: Path, x: np.ndarray, mask: np.ndarray | None = None, **profile: Any) -> Path:
    place = rasterio.transform.from_origin(LEFT, TOP, 10, 10)
    rasters.write(path, x, mask, **{"crs": "EPSG:32630", "transform": place, **profile})
    return path


def rect(name: str, box: Any) -> str:
    x, y, w, h = box
    return f'<{name} xOff="{x}" yOff="{y}" xSize="{w}" ySize="{h}"/>'


def source(name: str, band: int | str = 1, src: Any = None, dst: Any = None, more: str = "") -> str:
    """Returns a source: a complex one if there is more to do than to copy."""
    kind = "ComplexSource" if more else "SimpleSource"
    window = rect("SrcRect", src) + rect("DstRect", dst or src) if src else ""
    return (
        f'<{kind}><SourceFilename relativeToVRT="1">{name}</SourceFilename>'
        f"<SourceBand>{band}</SourceBand>{window}{more}</{kind}>"
    )


def vrt(path: Path, w: int, h: int, dtype: str, bands: list[str], more: str = "") -> Path:
    parts = [
        f'<VRTDataset rasterXSize="{w}" rasterYSize="{h}"><SRS>EPSG:32630</SRS>'
        f"<GeoTransform>{LEFT}, 10, 0, {TOP}, 0, -10</GeoTransform>{more}"
    ]
    for i, b in enumerate(bands, 1):
        parts.append(f'<VRTRasterBand dataType="{NAMES[dtype]}" band="{i}">{b}</VRTRasterBand>')
    path.write_text("\n".join([*parts, "</VRTDataset>"]))
    return path


class Draw:
    """Draws a virtual raster and its sources."""

    def __init__(self, folder: Path, number: int):
        self.folder, self.rng = folder, np.random.default_rng([11, number])

    def chance(self, p: float) -> bool:
        return bool(self.rng.random() < p)

    def number(self, low: int, high: int) -> int:
        return int(self.rng.integers(low, high))

    def window(self, side: int, total: int, whole: bool) -> tuple[float, float, float, float]:
        """Returns where pixels begin and how many they are, in the source and where they go."""
        begin = self.number(0, side)
        n = self.number(1, side - begin + 1)
        at = self.number(-20, total)
        size = n if self.chance(0.7) else self.number(1, total)
        if whole:
            return begin, n, at, size
        drawn = self.rng.random(3).round(3) * 0.99
        if n == 1 and begin == side - 1:
            # GDAL 3.12 leaves out what the edge cuts to less than half a pixel; 3.10 does not.
            drawn[0] /= 2
        return begin + drawn[0], n, at + drawn[1], size + drawn[2]

    def raster(self, name: str, dtype: str) -> tuple[str, int, int, int, bool]:
        h, w, n = self.number(5, 150), self.number(5, 150), self.number(1, 5)
        x = (self.rng.random((n, h, w)) * 200).astype(dtype)
        profile: dict[str, Any] = {"interleave": str(self.rng.choice(["pixel", "band"]))}
        if self.chance(0.5):
            x[self.rng.random(x.shape) < 0.2] = 7
            profile["nodata"] = 7 if dtype != "complex64" else None
        if self.chance(0.5):
            side = 16 * self.number(1, 4)
            profile |= {"tiled": True, "blockxsize": side, "blockysize": side}
        masked = self.chance(0.3) and dtype != "complex64"
        mask = self.rng.random((h, w)) < 0.7 if masked else None
        write(self.folder / name, x, mask, **profile)
        # GDAL 3.10 reads the mask of a band with nodata wrongly through a virtual raster.
        return name, h, w, n, masked or profile.get("nodata") is None

    def arithmetic(self) -> str:
        more = ""
        if self.chance(0.4):
            more += "<NODATA>7</NODATA>"
        if self.chance(0.4):
            more += "<UseMaskBand>true</UseMaskBand>"
        if self.chance(0.3):
            ratio, offset = self.rng.random() * 2, self.number(-20, 20)
            more += f"<ScaleOffset>{offset}</ScaleOffset><ScaleRatio>{ratio:.3f}</ScaleRatio>"
        if self.chance(0.2):
            more += "<LUT>0:10,50:60.5,100:20,150:255</LUT>"
        return more

    def vrt(self) -> Path:
        dtype = str(self.rng.choice(list(NAMES)))
        real = [d for d in NAMES if d != "complex64"]
        w, h, plain = self.number(20, 300), self.number(20, 300), self.chance(0.7)
        files = []
        for i in range(self.number(1, 6)):
            other = not self.chance(0.6) and dtype != "complex64"
            files.append(self.raster(f"{i}.tif", str(self.rng.choice(real)) if other else dtype))
        separate = self.chance(0.3)
        nodata = f"<NoDataValue>{self.number(0, 99)}</NoDataValue>" if self.chance(0.5) else ""
        if nodata and self.chance(0.2):
            nodata += "<HideNoDataValue>1</HideNoDataValue>"
        own = nodata and self.chance(0.3)  # a nodata value of its own for each band
        bands = []
        windows = [(self.window(f[2], w, plain), self.window(f[1], h, plain)) for f in files]
        for b in range(len(files) if separate else self.number(1, 5)):
            parts = []
            for k, (name, _, _, n, maskable) in enumerate(files):
                if separate and k != b or self.chance(0.1):
                    continue
                (x, y) = windows[k]
                box = ((x[0], y[0], x[1], y[1]), (x[2], y[2], x[3], y[3]))
                if self.chance(0.1):
                    box = (None, None)
                more = self.arithmetic() if dtype != "complex64" and self.chance(0.5) else ""
                band: int | str = self.number(1, n + 1)
                if dtype == "uint8" and maskable and self.chance(0.2):
                    band = f"mask,{band}"
                parts.append(source(name, band, *box, more))
            if own:
                value = self.number(0, 99)
                nodata = f"<NoDataValue>{value}</NoDataValue>" if self.chance(0.7) else ""
            bands.append(nodata + "".join(parts))
        mask = ""
        if self.chance(0.3):
            boxes = [source(name, "mask,1") for name, *_, maskable in files if maskable]
            one = f'<VRTRasterBand dataType="Byte">{"".join(boxes)}</VRTRasterBand>'
            mask = f"<MaskBand>{one}</MaskBand>"
        return vrt(self.folder / "x.vrt", w, h, dtype, bands, mask)


class GDAL:
    """gdalbuildvrt and gdal_translate, which are functions of GDAL's library."""

    def __init__(self) -> None:
        found = list(Path(rasterio.__file__).parents[1].glob("rasterio.libs/libgdal*"))
        if not found:
            pytest.skip("this rasterio has no library of its own")
        self.library = ctypes.CDLL(str(found[0]))
        self.call("GDALAllRegister")

    def call(self, name: str, *arguments: Any) -> ctypes.c_void_p:
        function = getattr(self.library, name)
        function.restype = ctypes.c_void_p
        function.argtypes = [
            ctypes.c_int if isinstance(a, int) else ctypes.c_void_p for a in arguments
        ]
        return ctypes.c_void_p(function(*arguments))

    @staticmethod
    def texts(values: Any) -> Any:
        return (ctypes.c_char_p * (len(values) + 1))(*[str(v).encode() for v in values], None)

    def buildvrt(self, path: Path, files: list[Path], *options: str) -> None:
        how = self.call("GDALBuildVRTOptionsNew", self.texts(options), None)
        made = self.call(
            "GDALBuildVRT", str(path).encode(), len(files), None, self.texts(files), how, None
        )
        self.call("GDALClose", made)

    def translate(self, path: Path, file: Path, *options: str) -> None:
        how = self.call("GDALTranslateOptionsNew", self.texts(["-of", "VRT", *options]), None)
        opened = self.call("GDALOpen", str(file).encode(), 0)
        made = self.call("GDALTranslate", str(path).encode(), opened, how, None)
        self.call("GDALClose", made)
        self.call("GDALClose", opened)


@pytest.fixture(scope="module")
def gdal() -> GDAL:
    return GDAL()


def judged(path: Path, bands: Any = None) -> tuple[np.ndarray, np.ndarray]:
    """Returns the pixels of bands and which of them hold data."""
    with rasterio.open(path) as f:
        return f.read(bands), f.read_masks(bands) > 0


def first(path: Any, **options: Any) -> Any:
    with chaski.load(path, batch_size=1, **options) as loader:
        return next(iter(loader))


@pytest.mark.parametrize("number", range(COUNT))
def test_random_rasters(tmp_path: Path, number: int) -> None:
    path = Draw(tmp_path, number).vrt()
    want, valid = judged(path)
    np.testing.assert_array_equal(chaski.read(path), want)
    if want.dtype.kind == "c":
        return
    bands = list(range(len(want)))
    batch = first(path, pixels=Pixels(bands=bands, dtype="native", validity="ok"))
    np.testing.assert_array_equal(batch["image"][0], want)
    np.testing.assert_array_equal(batch["ok"][0] > 0, valid)


def test_windows(tmp_path: Path) -> None:
    """Windows of a large mosaic are windows of GDAL's, also with threads."""
    rng = np.random.default_rng(3)
    tiles = []
    for i in range(9):
        x = rng.integers(0, 255, (3, 300, 300), np.uint8)
        write(tmp_path / f"{i}.tif", x, tiled=True, blockxsize=128, blockysize=128)
        tiles.append((f"{i}.tif", (0, 0, 300, 300), (300 * (i % 3), 300 * (i // 3), 300, 300)))
    bands = ["".join(source(n, b, s, d) for n, s, d in tiles) for b in (1, 2, 3)]
    path = vrt(tmp_path / "m.vrt", 900, 900, "uint8", bands)
    want, _ = judged(path)
    for y, x, h, w in rng.integers(0, 600, (20, 4)):
        h, w = h % 300 + 1, w % 300 + 1
        got = chaski.read(path, y=slice(y, y + h), x=slice(x, x + w))
        np.testing.assert_array_equal(got, want[:, y : y + h, x : x + w])
    np.testing.assert_array_equal(chaski.read(path, num_threads=4), want)
    with chaski.load(path, batch_size=4, window=64, pixels=Pixels(geo=True)) as loader:
        seen = list(loader)
    for batch in nonempty(seen):
        pairs = zip(batch["image"], batch["geo"]["transform"], strict=True)
        for image, t in nonempty(pairs):
            x, y = round((t[0] - LEFT) / 10), round((TOP - t[3]) / 10)
            np.testing.assert_array_equal(image, want[:, y : y + 64, x : x + 64])


def scene(path: Path, rng: np.random.Generator, kind: str, dtype: str, bands: int) -> Path:
    """Writes a scene whose missing pixels are nodata, masked or transparent."""
    h, w = rng.integers(20, 90, 2)
    x = rng.integers(1, 200, (bands, h, w)).astype(dtype)
    there, profile = rng.random((h, w)) < 0.7, {}
    if kind == "nodata":
        x[:, ~there], profile["nodata"] = 0, 0
    if kind == "alpha":
        x[-1] = 255 * there
        profile = {"photometric": "RGB", "alpha": "yes"}
    side = float(rng.choice([10, 10, 10, 20, 5]))
    left, top = side * rng.integers(0, 60, 2) + (2.5 if rng.random() < 0.2 else 0)
    place = rasterio.transform.from_origin(LEFT + left, TOP - top, side, side)
    return write(path, x, there if kind == "mask" else None, transform=place, **profile)


@pytest.mark.parametrize("number", range(COUNT))
def test_files_by_gdal(tmp_path: Path, gdal: GDAL, number: int) -> None:
    """What gdalbuildvrt and gdal_translate write with random options."""
    rng = np.random.default_rng([12, number])
    kind = str(rng.choice(["none", "nodata", "alpha", "mask"]))
    eight = kind in ("alpha", "mask")
    dtype = "uint8" if eight else str(rng.choice(["uint8", "int16", "uint16", "float32"]))
    bands = 4 if kind == "alpha" else int(rng.integers(1, 4))
    files = [
        scene(tmp_path / f"{i}.tif", rng, kind, dtype, bands) for i in range(rng.integers(1, 6))
    ]
    path, options = tmp_path / "x.vrt", []
    some = [
        ["-resolution", str(rng.choice(["highest", "lowest", "average"]))],
        ["-separate"] if rng.random() < 0.5 else ["-addalpha"],
        ["-srcnodata", "7"],
        ["-vrtnodata", "50"],
        ["-hidenodata"],
        ["-te", str(LEFT - 50), str(TOP - 900), str(LEFT + 700), str(TOP - 20)],
    ]
    options = [o for group in some if rng.random() < 0.25 for o in group]
    gdal.buildvrt(path, files, *options)
    try:
        with rasterio.open(path) as f:
            mixed = len(set(f.dtypes)) > 1
    except rasterio.errors.RasterioIOError:  # no file is in the window
        with pytest.raises(chaski.CorruptError, match="it has no bands"):
            first(path)
        return
    more = [
        ["-srcwin", "1", "2", "10", "15"],
        ["-scale", "0", "100", "0", "255"],
        ["-a_nodata", "9"],
        ["-ot", "Float32"],
        ["-b", "1", "-b", "1", "-mask", "1"],
    ]
    if rng.random() < 0.5:
        chosen = [o for group in more if rng.random() < 0.3 for o in group]
        path = tmp_path / "y.vrt"
        gdal.translate(path, tmp_path / "x.vrt", *chosen)
    elif rng.random() < 0.5:
        path = tmp_path / "y.vrt"
        gdal.translate(path, files[0], "-outsize", "37%", "60%")
    with rasterio.open(path) as f:
        # Alpha of another type is a mask, and no band.
        picked = [i for i, d in zip(f.indexes, f.dtypes, strict=True) if d == f.dtypes[0]]
        refused = len(set(f.dtypes)) > 1 and f.count not in (2, 4)
        refused |= mixed and "x.vrt<" in path.read_text()
        alpha = [rasterio.enums.MaskFlags.alpha in flags for flags in f.mask_flag_enums]
        colour = f.colorinterp[picked[-1] - 1] == rasterio.enums.ColorInterp.alpha
    want, valid = judged(path, picked)
    shown = Pixels(bands=list(range(len(want))), dtype="native", validity="ok")
    if refused:
        with pytest.raises(chaski.UnsupportedError, match="make a TIFF of one type"):
            first(path, pixels=shown)
        return
    batch = first(path, pixels=shown)
    np.testing.assert_array_equal(batch["image"][0], want, err_msg=str(options))
    for i in picked:  # alpha that is picked is data, and masks nothing
        valid_data = valid[i - 1] | (alpha[i - 1] and colour)
        np.testing.assert_array_equal(batch["ok"][0][i - 1] > 0, valid_data, err_msg=str(options))
    batch = first(path, pixels=Pixels(dtype="native", validity="ok"))
    n = len(batch["ok"][0])
    assert len(want) - colour <= n <= len(want)
    np.testing.assert_array_equal(batch["ok"][0] > 0, valid[:n], err_msg=str(options))


@pytest.fixture
def mosaic(tmp_path: Path) -> Path:
    """Two scenes beside each other, below a folder of their own, and a mosaic of them."""
    rng = np.random.default_rng(5)
    (tmp_path / "data/tiles").mkdir(parents=True)
    for i in range(2):
        x = rng.integers(0, 900, (2, 64, 64)).astype(np.uint16)
        write(tmp_path / f"data/tiles/{i}.tif", x)
    bands = [
        "".join(source(f"tiles/{i}.tif", b, (0, 0, 64, 64), (40 * i, 0, 64, 64)) for i in range(2))
        for b in (1, 2)
    ]
    return vrt(tmp_path / "data/m.vrt", 104, 64, "uint16", bands)


def test_every_way_in(mosaic: Path, binary: Path) -> None:
    """A file, a directory, a glob, a pattern, a catalog, a table and a URL yield the same."""
    want, _ = judged(mosaic)
    folder = mosaic.parent
    alone = folder.parent / "alone"
    alone.mkdir()
    (alone / "m.vrt").write_text(mosaic.read_text().replace("tiles/", "../data/tiles/"))
    catalog, table = folder.parent / "c.parquet", folder.parent / "t.csv"
    subprocess.run([binary, "index", "-o", catalog, mosaic], check=True, capture_output=True)
    subprocess.run([binary, "verify", mosaic, catalog], check=True, capture_output=True)
    table.write_text("image,y\ndata/m.vrt,1\n")
    native = Field(dtype="native")
    ways: list[tuple[Any, dict[str, Any]]] = [
        (mosaic, {}),
        (alone, {}),
        (f"{folder}/*.vrt", {}),
        (catalog, {}),
        (folder, {"fields": {"image": Field(pattern="{id}.vrt", dtype="native")}}),
        (table, {"fields": {"image": native}}),
        ([mosaic], {}),
    ]
    with web(folder.parent) as (url, _):
        for src, how in [*ways, (f"{url}/data/m.vrt", {})]:
            how = how or {"pixels": Pixels(dtype="native")}
            got = first(src, **how)["image"]
            np.testing.assert_array_equal(got[0], want, err_msg=str(src))
    info = chaski.info(mosaic)
    assert info["kind"] == "vrt" and info["raster"]["shape"] == [2, 64, 104]
    assert info["vrt"]["sources"] == 2 and info["vrt"]["epsg"] == 32630
    assert chaski.stats(mosaic).mean() == pytest.approx(want.mean((1, 2)))
    with chaski.load(mosaic, batch_size=1, window=GeoWindow(320, 10, per_epoch=3)) as loader:
        assert all(batch["image"].shape == (1, 2, 32, 32) for batch in nonempty(loader))
    # Beside other rasters it is left out: it may be a mosaic of them.
    write(alone / "a.tif", want[:1])
    assert first(alone)["image"].shape == (1, 1, 64, 104)


def test_what_bands_say(tmp_path: Path) -> None:
    """Names, scales and offsets of bands, and a palette."""
    write(tmp_path / "a.tif", np.arange(128, dtype=np.uint8).reshape(2, 8, 8))
    bands = [
        f"<Description>b{i}</Description><Offset>3</Offset><Scale>{i}.5</Scale>"
        + source("a.tif", i)
        for i in (1, 2)
    ]
    path = vrt(tmp_path / "x.vrt", 8, 8, "uint8", bands)
    with rasterio.open(path) as f:
        names, scales, offsets = f.descriptions, f.scales, f.offsets
        want = f.read(2) * np.float32(scales[1]) + np.float32(offsets[1])
    assert chaski.info(path)["vrt"]["band_names"] == list(names)
    batch = first(path, fields={"image": Field(bands=["b2"], physical=True)})
    np.testing.assert_allclose(batch["image"][0, 0], want)
    entry = '<Entry c1="0" c2="9" c3="0" c4="255"/>'
    colours = f"<ColorTable>{entry}</ColorTable><ColorInterp>Palette</ColorInterp>"
    path = vrt(tmp_path / "y.vrt", 8, 8, "uint8", [colours + source("a.tif")])
    window = chaski.ResizedWindow(4, scale=(0.9, 1))  # classes are not blended
    for batch in nonempty(chaski.load(path, batch_size=1, window=window)):
        assert set(np.unique(batch["image"])) <= set(range(64))


def test_beginnings(tmp_path: Path) -> None:
    """What GDAL lets stand before the element hides no virtual raster. Other XML is none."""
    x = np.arange(64, dtype=np.uint8).reshape(1, 8, 8)
    write(tmp_path / "a.tif", x)
    path = vrt(tmp_path / "a.vrt", 8, 8, "uint8", [source("a.tif")])
    text = path.read_text()
    declaration = '<?xml version="1.0" encoding="UTF-8"?>'
    for head in (
        "",
        declaration,
        "<!-- made -->\n",
        "\ufeff",
        "\n \t",
        "\ufeff" + declaration + "\n<!-- -->",
    ):
        path.write_text(head + text, encoding="utf-8")
        with rasterio.open(path) as f:
            assert np.array_equal(f.read(), x), head
        assert np.array_equal(chaski.read(path), x), head
        assert chaski.info(path)["kind"] == "vrt", head
    path.write_text(declaration + "<kml></kml>")
    with pytest.raises(chaski.Error):
        chaski.read(path)


def test_changes_are_seen(mosaic: Path, binary: Path) -> None:
    """A catalog names a virtual raster, or a source, that is another one by now."""
    catalog = mosaic.parent.parent / "c.parquet"
    subprocess.run([binary, "index", "-o", catalog, mosaic], check=True, capture_output=True)
    want, _ = judged(mosaic)
    tile = mosaic.parent / "tiles/0.tif"
    with rasterio.open(tile) as f:
        write(tile, f.read() + np.uint16(1), compress="deflate")
    got = first(catalog, pixels=Pixels(dtype="native"))["image"][0]
    np.testing.assert_array_equal(got, judged(mosaic)[0])
    assert (got != want).any()
    mosaic.write_text(mosaic.read_text() + "\n")
    with pytest.raises(chaski.CorruptError, match="when it was listed or indexed"):
        first(catalog)


def test_what_is_refused(tmp_path: Path, binary: Path, mosaic: Path) -> None:
    """Roots hold for sources, circles end, and errors say what and which file."""
    folder = mosaic.parent
    secret = write(tmp_path / "secret.tif", np.ones((1, 8, 8), np.uint8))
    cases = {
        "../secret.tif": chaski.NotFoundError,
        str(secret): chaski.NotFoundError,
        f"file://{secret}": chaski.NotFoundError,
        "tiles/link.tif": chaski.NotFoundError,
        "/vsimem/a.tif": chaski.UnsupportedError,
        "gone.tif": chaski.NotFoundError,
        "loop.vrt": chaski.LimitError,
        "tiles/0.tif": None,
    }
    path = folder / "loop.vrt"
    (folder / "tiles/link.tif").symlink_to(secret)
    with serving(binary, "--root", str(folder)) as (target, token):
        server = chaski.Connection(target, token=token)
        for name, error in cases.items():
            vrt(path, 8, 8, "uint16", [source(name)])
            if error is None:
                assert chaski.read(path, server=server).shape == (1, 8, 8)
                continue
            with pytest.raises(error):
                chaski.read(path, server=server)
            if error is chaski.NotFoundError and name != "gone.tif":
                assert chaski.read(path).shape == (1, 8, 8)  # without roots
    about = {"id": "x", "dataset_version": "1", "description": "x", "licenses": ["MIT"]}
    about |= {"providers": [{"name": "x"}], "tasks": ["other"]}
    with pytest.raises(chaski.UnsupportedError, match="of no use in a container"):
        chaski.pack([{"id": "x", "path": mosaic}], tmp_path / "x.tacozip", about)
    with web(folder) as (url, _):
        vrt(path, 8, 8, "uint8", [source(str(secret))])
        with pytest.raises(chaski.UnsupportedError, match="on a server must not name"):
            chaski.read(f"{url}/loop.vrt")


@pytest.mark.parametrize("more", ["", "<NoDataValue>7</NoDataValue>"])
def test_mask_beside(tmp_path: Path, binary: Path, more: str) -> None:
    """A mask beside a virtual raster counts, before nodata; one inside of it counts before that."""
    rng = np.random.default_rng(8)
    x = rng.integers(6, 9, (2, 40, 40), np.uint8)
    file = write(tmp_path / "a.tif", x)
    path = vrt(tmp_path / "x.vrt", 40, 40, "uint8", [more + source("a.tif", b) for b in (1, 2)])
    with rasterio.Env(GDAL_TIFF_INTERNAL_MASK=False), rasterio.open(file, "r+") as f:
        f.write_mask(rng.random((40, 40)) < 0.7)
    (tmp_path / "a.tif.msk").rename(tmp_path / "x.vrt.msk")
    boxes = [source("x.vrt", 1, (0, 0, 40, 40), (3, 3, 40, 40), "<UseMaskBand>1</UseMaskBand>")]
    inner = f'<VRTRasterBand dataType="Byte">{source("x.vrt", "mask,1")}</VRTRasterBand>'
    shown = vrt(tmp_path / "shown.vrt", 40, 40, "uint8", boxes)
    own = vrt(tmp_path / "own.vrt", 40, 40, "uint8", boxes, f"<MaskBand>{inner}</MaskBand>")
    (tmp_path / "own.vrt.msk").write_bytes((tmp_path / "x.vrt.msk").read_bytes())
    catalog, table = tmp_path / "c.parquet", tmp_path / "t.csv"
    subprocess.run([binary, "index", "-o", catalog, path], check=True, capture_output=True)
    table.write_text("image\nx.vrt\n")
    native = Field(dtype="native", validity="ok")
    fields = {"image": Field(pattern="ow{id}.vrt", dtype="native", validity="ok")}
    ways: list[tuple[Any, Path, dict[str, Any]]] = [
        (path, path, {}),
        (f"{tmp_path}/x*.vrt", path, {}),
        (catalog, path, {"fields": {"image": native}}),
        (table, path, {"fields": {"image": native}}),
        (shown, shown, {}),
        (own, own, {}),
    ]
    for src, file, how in [*ways, (tmp_path, own, {"fields": fields})]:
        want, valid = judged(file)
        assert 0 < valid.mean() < 1 or file == shown
        batch = first(src, **how or {"pixels": Pixels(dtype="native", validity="ok")})
        np.testing.assert_array_equal(batch["image"][0], want, err_msg=str(src))
        np.testing.assert_array_equal(batch["ok"][0] > 0, valid, err_msg=str(src))
    assert chaski.info(path)["beside"]


def test_rasters_that_show_each_other_often(tmp_path: Path) -> None:
    """The time of a read has a bound, though eight small files ask for 20 ** 7 windows."""
    write(tmp_path / "0.tif", np.arange(64 * 64).reshape(1, 64, 64).astype(np.uint16))
    name = "0.tif"
    for level in range(7):
        boxes = [((k % 7, k % 5, 40, 40), (k % 11, k % 3, 40, 40)) for k in range(20)]
        shown = "".join(source(name, 1, *box) for box in boxes)
        path = vrt(tmp_path / f"{level}.vrt", 64, 64, "uint16", [shown])
        name = path.name
        if level < 3:
            np.testing.assert_array_equal(chaski.read(path), judged(path)[0])
    with pytest.raises(chaski.LimitError, match="make TIFFs of them"):
        chaski.read(path)
    with pytest.raises(chaski.LimitError, match="make TIFFs of them"):
        first(path)
