"""Writes the files of this folder and manifest.jsonl. Needs numpy, rasterio, tifffile, imagecodecs and Pillow.

usage: write.py [FOLDER [SEED COUNT]]

With a seed and a count it writes that many random files of each kind instead of the few that are kept here.
"""

import hashlib
import io
import json
import os
import struct
import sys
import warnings

import imagecodecs
import numpy as np
import rasterio
import rasterio.shutil
import tifffile
from PIL import Image

warnings.filterwarnings("ignore")
folder = sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(os.path.abspath(__file__))
rng = np.random.default_rng(int(sys.argv[2]) if len(sys.argv) > 2 else 34)
count = int(sys.argv[3]) if len(sys.argv) > 3 else 0
manifest = open(f"{folder}/manifest.jsonl", "w")
names = iter(range(1 << 30))


def add(name, a, judge, **more):
    """Adds a file, whose samples are a, (bands, height, width), to the manifest."""
    a = np.ascontiguousarray(a)
    row = {"path": name, "shape": a.shape, "dtype": a.dtype.name, "judge": judge}
    row["sha256"] = hashlib.sha256(a.astype(a.dtype.newbyteorder("<")).tobytes()).hexdigest()
    manifest.write(json.dumps(row | more) + "\n")


def path(name):
    return f"{folder}/{name}"


def image(h, w, b):
    """Returns waves, noise and a sharp edge, (height, width, bands) uint8."""
    y, x = np.mgrid[:h, :w]
    a = np.zeros((h, w, b))
    for k in range(b):
        for _ in range(4):
            a[..., k] += rng.uniform(10, 50) * np.sin(rng.normal(0, 0.2) * x + rng.normal(0, 0.2) * y)
        a[..., k] += rng.normal(0, rng.choice([0, 5, 30]), (h, w))
        a[h // 3 : h // 2, w // 4 : w // 2, k] += rng.uniform(-200, 200)
    return np.clip(a + 128, 0, 255).astype(np.uint8)


def tiff(name, tags, chunks, offsets_tag, counts_tag):
    """Writes a classic little-endian TIFF of one image by its tags and the bytes of its chunks."""
    body, offsets = b"", []
    for c in chunks:
        offsets.append(8 + len(body))
        body += c + b"\0" * (len(c) % 2)
    tags = dict(tags) | {offsets_tag: (4, offsets), counts_tag: (4, [len(c) for c in chunks])}
    at = 8 + len(body)
    extra, entries = b"", b""
    for tag in sorted(tags):
        kind, values = tags[tag]
        data = bytes(values) if kind == 7 else struct.pack(f"<{len(values)}{'HI'[kind == 4]}", *values)
        n = len(values)
        if len(data) > 4:
            place = at + 2 + 12 * len(tags) + 4 + len(extra)
            extra += data + b"\0" * (len(data) % 2)
            data = struct.pack("<I", place)
        entries += struct.pack("<HHI", tag, kind, n) + data.ljust(4, b"\0")
    with open(path(name), "wb") as f:
        f.write(struct.pack("<2sHI", b"II", 42, at) + body)
        f.write(struct.pack("<H", len(tags)) + entries + b"\0\0\0\0" + extra)


def read(name):
    """Returns what GDAL reads."""
    with rasterio.open(path(name)) as f:
        return f.read()


def page(name):
    """Returns what tifffile reads, with the decoders of imagecodecs."""
    with tifffile.TiffFile(path(name)) as f:
        p = f.pages[0]
        a = p.asarray()
        return a[None] if a.ndim == 2 else a if p.planarconfig == 2 else a.transpose(2, 0, 1)


def gdal(name, a, driver="GTiff", mask=None, **options):
    b, h, w = a.shape
    size = {"count": b, "height": h, "width": w, "dtype": a.dtype.name}
    with rasterio.Env(GDAL_TIFF_INTERNAL_MASK=True):
        if driver == "COG":
            with rasterio.MemoryFile() as m:
                with m.open(driver="GTiff", **size) as f:
                    f.write(a)
                with m.open() as f:
                    rasterio.shutil.copy(f, path(name), driver="COG", **options)
            return
        with rasterio.open(path(name), "w", driver=driver, **size, **options) as f:
            f.write(a)
            if mask is not None:
                f.write_mask(mask)


def jpeg_stream(a, level, subsampling, progressive, restart):
    """Returns a stream by libjpeg-turbo, through Pillow or imagecodecs."""
    if not progressive and not restart:
        a = a[..., 0] if a.shape[2] == 1 else a
        return imagecodecs.jpeg8_encode(a, level, subsampling=subsampling if a.ndim == 3 else None)
    mode = Image.fromarray(a[..., 0] if a.shape[2] == 1 else a)
    out = io.BytesIO()
    more = {"restart_marker_blocks": restart} if restart else {}
    names = {"444": "4:4:4", "422": "4:2:2", "420": "4:2:0"}
    mode.save(out, "JPEG", quality=level, subsampling=names[subsampling], progressive=progressive, **more)
    return out.getvalue()


def jpeg_tiles(name, h, w, b, level, subsampling, progressive=False, restart=0, strips=False):
    """Writes tiles of libjpeg-turbo, and what libjpeg-turbo reads in them."""
    th, tw = (int(rng.integers(1, 6)) * 16, w) if strips else rng.integers(1, 6, 2) * 16
    a, want, chunks = image(h, w, b), np.zeros((h, w, b), np.uint8), []
    for y in range(0, h, th):
        for x in range(0, w, tw):
            part = a[y : y + th, x : x + tw]
            tile = part if strips else np.zeros((th, tw, b), np.uint8)
            tile[: part.shape[0], : part.shape[1]] = part
            chunks.append(jpeg_stream(np.ascontiguousarray(tile), level, subsampling, progressive, restart))
            got = imagecodecs.jpeg8_decode(chunks[-1]).reshape(tile.shape)
            want[y : y + th, x : x + tw] = got[: part.shape[0], : part.shape[1]]
    tags = {256: (4, [w]), 257: (4, [h]), 258: (3, [8] * b), 259: (3, [7]), 262: (3, [6 if b == 3 else 1]), 277: (3, [b])}
    if strips:
        tiff(name, tags | {278: (4, [th])}, chunks, 273, 279)
    else:
        tiff(name, tags | {322: (4, [tw]), 323: (4, [th])}, chunks, 324, 325)
    add(name, want.transpose(2, 0, 1), "libjpeg-turbo")


def few_jpegs():
    for s in ["444", "422", "420", "440", "411"]:
        jpeg_tiles(f"jpeg-{s}.tif", 50, 45, 3, 80, s)
    jpeg_tiles("jpeg-progressive.tif", 61, 40, 3, 90, "420", progressive=True)
    jpeg_tiles("jpeg-progressive-gray.tif", 40, 40, 1, 50, "444", progressive=True)
    jpeg_tiles("jpeg-restart.tif", 50, 61, 3, 75, "422", restart=2)
    jpeg_tiles("jpeg-strips.tif", 70, 33, 3, 95, "420", strips=True)
    jpeg_tiles("jpeg-narrow.tif", 21, 2, 3, 90, "420", strips=True)
    a = image(70, 60, 4).transpose(2, 0, 1)
    gdal("jpeg-gdal-mask.tif", a[:3], compress="jpeg", photometric="ycbcr", mask=a[3] > 128)
    add("jpeg-gdal-mask.tif", page("jpeg-gdal-mask.tif"), "libjpeg-turbo", mask=True)
    gdal("jpeg-cog.tif", a[:3], driver="COG", compress="jpeg", blocksize=128)
    add("jpeg-cog.tif", page("jpeg-cog.tif"), "libjpeg-turbo")
    for inter in "pixel", "band":
        name = f"jpeg-gdal-{inter}.tif"
        gdal(name, a, compress="jpeg", interleave=inter, tiled=True, blockxsize=32, blockysize=48)
        add(name, read(name), "GDAL")
    gdal("jpeg-cmyk.tif", a, compress="jpeg", photometric="cmyk", interleave="pixel", blockysize=16)
    add("jpeg-cmyk.tif", page("jpeg-cmyk.tif"), "libjpeg-turbo")


def random_jpeg():
    h, w = (int(v) for v in rng.integers(1, 200, 2))
    b, name, level = int(rng.choice([1, 3, 3])), f"{next(names)}.tif", int(rng.integers(1, 101))
    style = rng.choice(["streams", "Pillow", "GDAL", "COG"])
    if style == "streams":
        jpeg_tiles(name, h, w, b, level, str(rng.choice(["444", "422", "420", "440", "411"])), strips=rng.random() < 0.4)
    elif style == "Pillow":
        s, restart = str(rng.choice(["444", "422", "420"])), int(rng.choice([0, 0, 1, 5]))
        jpeg_tiles(name, h, w, b, level, s, rng.random() < 0.7, restart, rng.random() < 0.4)
    elif style == "COG":
        gdal(name, image(h, w, b).transpose(2, 0, 1), driver="COG", compress="jpeg", quality=level)
        add(name, page(name), "libjpeg-turbo")
    else:
        b = int(rng.integers(1, 5))
        inter = str(rng.choice(["pixel", "band"]))
        more = {"photometric": "ycbcr"} if b == 3 and inter == "pixel" and rng.random() < 0.7 else {}
        if rng.random() < 0.5:
            more |= {"tiled": True, "blockxsize": 16 * int(rng.integers(1, 9)), "blockysize": 16 * int(rng.integers(1, 9))}
        gdal(name, image(h, w, b).transpose(2, 0, 1), compress="jpeg", jpeg_quality=level, interleave=inter, **more)
        add(name, page(name) if more.get("photometric") else read(name), "libjpeg-turbo or GDAL")


few, random = [few_jpegs], [random_jpeg]
if count:
    for make in random:
        for _ in range(count):
            make()
else:
    for make in few:
        make()
manifest.close()
