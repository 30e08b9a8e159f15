"""PNG and JPEG files are read as rasterio (GDAL) reads them."""

from __future__ import annotations

import json
import struct
import subprocess
import zlib

import numpy as np
import pytest
import rasters
from conftest import nonempty
from patience import logged

import chaski
from chaski import Field

rasterio = pytest.importorskip("rasterio", reason="needs rasterio to write pictures")
shutil = pytest.importorskip("rasterio.shutil")
Image = pytest.importorskip("PIL.Image", reason="needs Pillow to write transparent colours")
pytestmark = pytest.mark.usefixtures("one_engine")

PNGS = [
    ("uint8", 1, {}),
    ("uint8", 2, {}),
    ("uint8", 3, {}),
    ("uint8", 4, {}),
    ("uint16", 1, {}),
    ("uint16", 2, {}),
    ("uint16", 3, {}),
    ("uint16", 4, {}),
    ("uint8", 1, {"NBITS": 1}),
    ("uint8", 1, {"NBITS": 2}),
    ("uint8", 1, {"NBITS": 4}),
    ("uint8", 1, {"nodata": 7}),
    ("uint16", 1, {"nodata": 4000}),
    ("uint8", 3, {"nodata": 7}),
    ("uint8", 1, {"palette": 200}),
    ("uint8", 1, {"palette": 200, "nodata": 3}),
]


def smooth(rng: np.random.Generator, bands: int, height: int, width: int) -> np.ndarray:
    """Returns an image that JPEG compresses, with edges."""
    y, x = np.mgrid[:height, :width]
    out = [
        128 + 100 * np.sin(x / 9 + b) * np.cos(y / 7) + 20 * (x > width // 2) for b in range(bands)
    ]
    return np.clip(np.array(out) + rng.normal(0, 3, (bands, height, width)), 0, 255).astype(
        np.uint8
    )


def write(path, x: np.ndarray, **options) -> None:
    """Writes a picture by GDAL, which has no direct way: it copies a raster in memory."""
    palette = options.pop("palette", 0)
    nodata = options.pop("nodata", None)
    bands, height, width = x.shape
    profile = {"count": bands, "height": height, "width": width, "dtype": x.dtype, "nodata": nodata}
    with rasterio.io.MemoryFile() as m:
        with m.open(driver="GTiff", **profile) as d:
            d.write(x)
            if palette:
                d.write_colormap(1, {i: (i, 255 - i, i // 2, 255) for i in range(palette)})
        with m.open() as d:
            driver = "PNG" if str(path).endswith(".png") else "JPEG"
            shutil.copy(d, path, driver=driver, **options)


@pytest.mark.parametrize(("dtype", "bands", "options"), PNGS, ids=str)
def test_png(tmp_path, dtype, bands, options):
    rng = np.random.default_rng(2)
    for height, width in ((1, 1), (13, 31), (64, 200)):
        top = 1 << options["NBITS"] if "NBITS" in options else options.get("palette", 256)
        x = rng.integers(0, 65536 if dtype == "uint16" else top, (bands, height, width)).astype(
            dtype
        )
        if "nodata" in options:
            x[:, ::3] = options["nodata"]
        path = tmp_path / f"{height}.png"
        write(path, x, **options)
        with rasterio.open(path) as d:
            want = d.read()
            got = chaski.read(path)
            assert got.dtype == want.dtype
            assert (got == want).all()
            info = chaski.info(path)
            nodata = d.nodata if bands == 1 else None
            joint = d.tags().get("NODATA_VALUES")
        assert info["kind"] == "png"
        assert info["raster"].get("nodata") == nodata
        assert info["raster"].get("nodata_values") == joint
        assert (joint is not None) == (bands == 3 and "nodata" in options)


@pytest.mark.parametrize(
    ("alpha", "nodata"),
    [
        ([255, 0], 1),
        ([0, 0, 255, 255], None),
        ([128, 255, 7], None),
        ([255, 0, 90], 1),
    ],
)
def test_an_entry_of_a_palette_that_is_transparent_is_nodata(tmp_path, alpha, nodata):
    """GDAL takes it for nodata where it is the only one."""
    index = np.random.default_rng(3).integers(0, 4, (8, 9)).astype(np.uint8)
    image = Image.fromarray(index, mode="P")
    image.putpalette([10, 20, 30, 40, 50, 60, 70, 80, 90, 100, 110, 120])
    image.save(tmp_path / "a.png", transparency=bytes(alpha))
    with rasterio.open(tmp_path / "a.png") as d:
        assert (d.nodata, (d.read(1) == index).all()) == (nodata, True)
    assert chaski.info(tmp_path / "a.png")["raster"].get("nodata") == nodata
    field = chaski.Field(validity="ok", fill=9)
    with chaski.load(tmp_path, batch_size=1, fields={"image": field}) as loader:
        batch = next(iter(loader))
    valid = np.ones_like(index, bool) if nodata is None else index != nodata
    assert (batch["ok"][0, 0].astype(bool) == valid).all()
    assert (batch["image"][0, 0] == np.where(valid, index, 9)).all()


@pytest.mark.parametrize("ext", ["png", "tif"])
def test_nodata_of_all_bands_together_is_told(tmp_path, caplog, ext):
    x = np.random.default_rng(4).integers(0, 256, (3, 16, 16)).astype(np.uint8)
    x[:, :3] = np.uint8([5, 6, 7])[:, None, None]
    path = tmp_path / f"a.{ext}"
    if ext == "png":
        Image.fromarray(x.transpose(1, 2, 0)).save(path, transparency=(5, 6, 7))
    else:
        with rasterio.open(
            path, "w", driver="GTiff", count=3, height=16, width=16, dtype="uint8"
        ) as d:
            d.update_tags(NODATA_VALUES="5 6 7")
            d.write(x)
    with rasterio.open(path) as d:
        assert (d.dataset_mask()[:3] == 0).all()
    assert chaski.info(path)["raster"]["nodata_values"] == "5 6 7"
    for field, told in [(chaski.Field(), True), (chaski.Field(nodata=[[5], [6], [7]]), False)]:
        caplog.clear()
        with chaski.load(tmp_path, batch_size=1, fields={"image": field}) as loader:
            next(iter(loader))
        text = logged(caplog, *(["image (5 6 7)"] if told else []))
        assert ("image (5 6 7)" in text and "gdal_translate -mask" in text) == told


@pytest.mark.parametrize("progressive", ["NO", "YES"])
@pytest.mark.parametrize("quality", [30, 75, 100])
@pytest.mark.parametrize("bands", [1, 3])
def test_jpeg(tmp_path, bands, quality, progressive):
    rng = np.random.default_rng(quality)
    for height, width in ((1, 1), (17, 40), (130, 77)):
        path = tmp_path / f"{height}.jpg"
        write(path, smooth(rng, bands, height, width), QUALITY=quality, PROGRESSIVE=progressive)
        with rasterio.open(path) as d:
            want = d.read()
        got = chaski.read(path)
        assert got.shape == want.shape
        if bands == 1:
            assert (got == want).all()
        else:  # some libjpegs of GDAL bring colours to the size of the image in another way
            assert np.abs(got.astype(float) - want).mean() < 1.5


def test_windows(tmp_path):
    x = np.random.default_rng(1).integers(0, 256, (3, 50, 70), np.uint8)
    write(tmp_path / "x.png", x)
    got = chaski.read(tmp_path / "x.png", b=[2, 0], y=slice(10, 25), x=slice(20, 45))
    assert (got == x[[2, 0], 10:25, 20:45]).all()


@pytest.fixture(scope="module")
def sets(tmp_path_factory):
    """Images as TIFF with masks as PNG, and previews that are no samples."""
    folder = tmp_path_factory.mktemp("sets")
    rng = np.random.default_rng(5)
    for sub in ("images", "masks", "arrays", "photos/cat", "photos/dog"):
        (folder / sub).mkdir(parents=True)
    for i in range(6):
        image = rng.integers(0, 999, (2, 32, 32), np.uint16)
        rasters.write(folder / f"images/{i}.tif", image, dtype="uint16")
        write(folder / f"images/{i}_preview.jpg", smooth(rng, 3, 8, 8))
        write(folder / f"masks/{i}.png", (image[:1] > 500).astype(np.uint8), NBITS=1)
        np.save(folder / f"arrays/{i}.npy", (image[:1] > 500).astype(np.uint8))
        write(folder / f"photos/{'cat' if i % 2 else 'dog'}/{i}.jpeg", smooth(rng, 3, 32, 32))
    return folder


@pytest.mark.parametrize("mask", ["masks/{id}.png", "arrays/{id}.npy"])
def test_masks_of_images(sets, binary, tmp_path, mask):
    fields = {
        "image": Field(pattern="images/{id}.tif"),
        "mask": Field(pattern=mask, dtype="int64", layout="n y x"),
    }
    pairs = ["--field", "image=images/{id}.tif", "--field", f"mask={mask}"]
    out = tmp_path / "pairs.parquet"
    subprocess.run([binary, "index", *pairs, "-o", out, sets], check=True, capture_output=True)
    table = sets / "t.csv"
    lines = [f"images/{i}.tif,{mask.format(id=i)}" for i in range(6)]
    table.write_text("\n".join(["image,mask", *lines]) + "\n")
    whole = {"image": Field(), "mask": Field(dtype="int64", layout="n y x", kind="raster")}
    for source, named in ((sets, fields), (out, whole), (table, whole)):
        seen = 0
        with chaski.load(source, batch_size=4, fields=named) as loader:
            for batch in loader:
                rows = batch["valid"]
                seen += int(rows.sum())
                assert (batch["mask"][rows] == (batch["image"][rows][:, 0] > 500)).all()
        assert seen == 6


def test_previews_are_no_samples(sets, binary):
    with chaski.load(sets / "images", batch_size=2) as loader:
        assert loader.samples == 6
    with chaski.load(sets / "masks", batch_size=2) as loader:  # nothing else is there
        assert loader.samples == 6
    ran = subprocess.run([binary, "info", sets / "masks/1.png"], capture_output=True, check=True)
    assert b"png" in ran.stdout
    files = [sets / "masks/1.png", sets / "photos/cat/1.jpeg"]
    subprocess.run([binary, "verify", *files], check=True, capture_output=True)


def test_a_set_of_photographs(sets, binary, tmp_path):
    fields = {"image": Field(), "label": Field(kind="class", column="folder")}
    out = tmp_path / "photos.parquet"
    glob = f"{sets}/photos/**/*.jpeg"
    command = [binary, "index", "--format", "parquet", "-o", out, glob]
    subprocess.run(command, check=True, capture_output=True)
    for source in (glob, out):
        with chaski.load(source, batch_size=3, fields=fields, shuffle=False) as loader:
            assert loader.classes["label"] == ["cat", "dog"]
            for batch in nonempty(loader):
                for row, sample in nonempty(enumerate(batch["sample"])):
                    name = loader.ids[sample]
                    number = int(name.rsplit("/", 1)[-1].removesuffix(".jpeg"))
                    kind = "cat" if number % 2 else "dog"
                    with rasterio.open(sets / "photos" / kind / f"{number}.jpeg") as d:
                        assert np.abs(batch["image"][row] - d.read().astype(float)).mean() < 1.5
                    assert batch["label"][row] == (kind == "dog")


@pytest.mark.parametrize("form", ["tog", "rumi"])
def test_convert(tmp_path, binary, form):
    rng = np.random.default_rng(3)
    write(tmp_path / "rgb.png", rng.integers(0, 256, (3, 40, 50), np.uint8))
    write(tmp_path / "deep.png", rng.integers(0, 65536, (1, 40, 50), np.uint16), nodata=7)
    write(tmp_path / "grey.jpg", smooth(rng, 1, 40, 50))
    for name, nodata in (("rgb.png", None), ("deep.png", 7), ("grey.jpg", None)):
        out = tmp_path / f"{name}.tif"
        command = [binary, "convert", "--to", form, "-o", out, tmp_path / name]
        subprocess.run(command, check=True, capture_output=True)
        with rasterio.open(tmp_path / name) as d:
            assert (chaski.read(out) == d.read()).all()
        if form == "tog":
            with rasterio.open(out) as d:
                assert d.nodata == nodata


def test_no_sample_is_transparent(tmp_path):
    path = tmp_path / "x.png"
    write(path, np.zeros((1, 4, 4), np.uint8), nodata=7)
    b = path.read_bytes()
    old = b"tRNS\x00\x07"
    new = b"tRNS\x01\x07"
    assert old in b
    at = b.index(old)
    path.write_bytes(b[:at] + new + zlib.crc32(new).to_bytes(4, "big") + b[at + 10 :])
    with rasterio.open(path) as d:
        assert d.nodata is None
    assert "nodata" not in chaski.info(path)["raster"]


@pytest.mark.parametrize("name", ["x.png", "x.jpg"])
@pytest.mark.parametrize("content", [b"", b"text, and no picture"])
def test_no_picture(tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(chaski.CorruptError, match="begins like no PNG, JPEG, BMP, NumPy, TIFF"):
        chaski.read(tmp_path / name)


def test_globs_that_end_otherwise(sets):
    for glob in ("photos/**", "photos/*/*.jp*g"):
        with pytest.raises(
            chaski.NotFoundError, match="but 6 PNG, JPEG, NumPy or VRT files: a glob"
        ):
            chaski.load(f"{sets}/{glob}", batch_size=2)


def test_stats(sets, binary):
    ran = subprocess.run(
        [binary, "stats", f"{sets}/masks/*.png"], capture_output=True, check=True, text=True
    )
    found = json.loads(ran.stdout)
    truth = []
    for i in range(6):
        with rasterio.open(sets / f"masks/{i}.png") as d:
            truth.append(d.read())
    assert np.isclose(found["fields"]["image"]["bands"][0]["mean"], np.mean(truth))


@pytest.mark.parametrize("at", [3, 20, 40, -20, -9])
def test_damaged(tmp_path, at):
    write(tmp_path / "x.png", np.arange(900, dtype=np.uint8).reshape(1, 30, 30))
    b = bytearray((tmp_path / "x.png").read_bytes())
    b[at] ^= 0x55
    (tmp_path / "x.png").write_bytes(b)
    with pytest.raises((chaski.CorruptError, chaski.UnsupportedError, chaski.LimitError)):
        chaski.read(tmp_path / "x.png")


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("form", ["png", "jpg", "rgb.jpg"])
@pytest.mark.parametrize("orientation", [0, 1, 2, 3, 4, 5, 6, 7, 8, 9])
def test_exif_orientation(binary, tmp_path, form, orientation, order):
    """Pictures stand as Pillow, and so Hugging Face's datasets, turns them."""
    image = pytest.importorskip("PIL.Image")
    turned = pytest.importorskip("PIL.ImageOps").exif_transpose
    bands = 1 if form == "jpg" else 3
    pixels = smooth(np.random.default_rng(4), bands, 24, 40)
    entry = struct.pack(f"{order}HHIHH", 274, 3, 1, orientation, 0)
    head = (b"II" if order == "<" else b"MM") + struct.pack(f"{order}HIH", 42, 8, 1)
    path = tmp_path / f"a.{form}"
    squeezed = pixels[0] if bands == 1 else np.moveaxis(pixels, 0, -1)
    image.fromarray(squeezed).save(path, exif=b"Exif\0\0" + head + entry + bytes(4))
    want = np.asarray(turned(image.open(path)))
    assert want.shape[:2] == ((40, 24) if orientation in (5, 6, 7, 8) else (24, 40))
    want = want[None] if bands == 1 else np.moveaxis(want, -1, 0)
    assert np.array_equal(chaski.read(path), want)
    assert np.array_equal(chaski.read(path, y=(3, 17), x=(2, 9)), want[:, 3:17, 2:9])
    with chaski.load(path, batch_size=1, pixels=chaski.Pixels(dtype="native")) as loader:
        assert np.array_equal(loader.peek()["image"][0], want)


@pytest.mark.parametrize("form", ["png", "jpg"])
@pytest.mark.parametrize("orientation", [1, 3, 6, 8])
def test_virtual_rasters_show_pictures_as_stored(tmp_path, form, orientation):
    """The judges are GDAL and Pillow, which turn no picture unasked."""
    pixels = np.moveaxis(smooth(np.random.default_rng(5), 3, 24, 40), 0, -1)
    exif = Image.Exif()
    exif[274] = orientation
    how = {"exif": exif} | ({"subsampling": 0} if form == "jpg" else {})
    Image.fromarray(pixels).save(tmp_path / f"a.{form}", **how)
    source = f'<SourceFilename relativeToVRT="1">a.{form}</SourceFilename>'
    bands = "".join(
        f'<VRTRasterBand dataType="Byte" band="{b}"><ComplexSource>{source}'
        f"<SourceBand>{b}</SourceBand><NODATA>0</NODATA></ComplexSource></VRTRasterBand>"
        for b in (1, 2, 3)
    )
    path = tmp_path / "a.vrt"
    path.write_text(f'<VRTDataset rasterXSize="40" rasterYSize="24">{bands}</VRTDataset>')
    want = np.moveaxis(np.asarray(Image.open(tmp_path / f"a.{form}")), -1, 0)
    with rasterio.open(path) as f:  # its decoder of JPEG rounds otherwise
        assert np.abs(f.read().astype(int) - want).max() <= (6 if form == "jpg" else 0)
    assert np.array_equal(chaski.read(path), want)
    with chaski.load(
        path, batch_size=15, window=chaski.Grid(8), pixels=chaski.Pixels(dtype="native")
    ) as loader:
        tiles = want.reshape(3, 3, 8, 5, 8).transpose(1, 3, 0, 2, 4).reshape(15, 3, 8, 8)
        got = next(iter(loader))["image"]
    assert sorted(x.tobytes() for x in got) == sorted(x.tobytes() for x in tiles)
    turned = chaski.read(tmp_path / f"a.{form}")
    assert turned.shape == ((3, 40, 24) if orientation > 4 else (3, 24, 40))
