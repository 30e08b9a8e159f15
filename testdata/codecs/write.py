"""Writes the files of this folder and manifest.jsonl. Needs numpy, rasterio, tifffile, imagecodecs and Pillow.

usage: write.py [FOLDER [SEED COUNT]]

With a seed and a count it writes that many random files of each kind instead of the few that are kept here.
"""

import hashlib
import io
import json
import lzma
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
    body, offsets, counts = b"", [], [len(c) for c in chunks]
    for c in chunks:
        offsets.append(8 + len(body))
        body += c + b"\0" * (len(c) % 2)
    tags = dict(tags) | {offsets_tag: (4, offsets), counts_tag: (4, counts)}
    at = 8 + len(body)
    extra, entries = b"", b""
    for tag in sorted(tags):
        kind, values = tags[tag]
        data = bytes(values) if kind == 7 else struct.pack(f"<{len(values)}{'HI'[kind != 3]}", *values)
        n = len(values) // (2 if kind == 5 else 1)  # 5 is RATIONAL: numerator, denominator
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


def numbers(b, h, w, dtype):
    """Returns waves and noise, (bands, height, width); floats may have nodata (NaN)."""
    y, x = np.mgrid[:h, :w]
    kind, high, noise = rng.integers(0, 6), rng.choice([5, 100, 20000]), rng.choice([0, 1, 50])
    a = np.zeros((b, h, w))
    for k in range(b):
        a[k] = high * np.sin(rng.normal(0, 0.1) * x + rng.normal(0, 0.1) * y) + rng.normal(0, 1, (h, w)) * noise
    if kind == 0:
        a[:] = rng.integers(0, 50)
    elif kind == 1:
        a[:, : h // 2] = 7
    elif kind == 2:
        a += a[:1]
    if dtype[0] != "f":
        i = np.iinfo(dtype)
        if kind == 3:
            return rng.integers(i.min, i.max, (b, h, w), dtype=dtype, endpoint=True)
        a = np.clip(np.round(a), i.min, i.max)
    elif kind == 4:
        a[:, rng.random((h, w)) < 0.3] = np.nan
    elif kind == 5:
        a[rng.random((b, h, w)) < 0.1] = np.nan
    return a.astype(dtype)


def layout():
    """Returns random options of GDAL for chunks, bands and byte order."""
    more = {"interleave": str(rng.choice(["pixel", "band"])), "endianness": str(rng.choice(["little", "big"]))}
    if rng.random() < 0.5:
        return more | {"tiled": True, "blockxsize": 16 * int(rng.integers(1, 6)), "blockysize": 16 * int(rng.integers(1, 6))}
    return more | {"blockysize": int(rng.integers(1, 40))}


def lerc(name, h, w, b, dtype, compress="LERC", error=0, alpha=False, alike=False, **options):
    a = numbers(b, h, w, dtype)
    if alpha:
        a[-1] = np.where(rng.random((h, w)) < 0.5, 255, 0)
        if alpha == "grey":
            a[-1, rng.integers(0, h) :] = 100
        options["alpha"] = "yes"
    if alike:
        a[0] = 3
        a[1:] = np.where(rng.random((h, w)) < 0.5, np.nan, np.nan_to_num(a[1:]))
    gdal(name, a, compress=compress, max_z_error=error, **options)
    add(name, read(name), "GDAL")


def lerc_strips(name, h, w, b, dtype, version, error):
    """Writes strips of blobs of one version, and what Esri's library reads in them."""
    a = np.ascontiguousarray(numbers(b, h, w, dtype).transpose(1, 2, 0))
    if dtype[0] == "f":
        a = np.nan_to_num(a)
    a = a[..., 0] if b == 1 else a
    rows = int(rng.integers(1, h + 1))
    chunks = [imagecodecs.lerc_encode(a[y : y + rows].copy(), error, version=version) for y in range(0, h, rows)]
    want = np.concatenate([imagecodecs.lerc_decode(c) for c in chunks]).reshape(h, w, b)
    kind = {"u": 1, "i": 2, "f": 3}[a.dtype.kind]
    tags = {256: (4, [w]), 257: (4, [h]), 258: (3, [8 * a.itemsize] * b), 259: (3, [34887]), 262: (3, [1])}
    tags |= {277: (3, [b]), 278: (4, [rows]), 339: (3, [kind] * b), 50674: (4, [4, 0])}
    tiff(name, tags, chunks, 273, 279)
    add(name, want.transpose(2, 0, 1), "liblerc")


TYPES = ["uint8", "int8", "uint16", "int16", "uint32", "int32", "float32", "float64"]


def few_lercs():
    for dtype in TYPES:
        lerc(f"lerc-{dtype}.tif", 40, 33, 2, dtype, interleave="pixel", blockysize=17)
    lerc("lerc-deflate.tif", 40, 33, 1, "uint16", "LERC_DEFLATE", tiled=True, blockxsize=16, blockysize=32)
    lerc("lerc-zstd-lossy.tif", 40, 33, 3, "float32", "LERC_ZSTD", 0.5, interleave="pixel", endianness="big")
    lerc("lerc-alpha.tif", 40, 33, 4, "uint8", alpha=True, interleave="pixel")
    for version in 2, 3, 4, 5:
        lerc_strips(f"lerc-version-{version}.tif", 30, 41, 1 if version < 4 else 3, "int16", version, 1)
    lerc_strips("lerc-version-6.tif", 30, 41, 2, "float32", 6, 0.25)
    tiles = {"interleave": "pixel", "tiled": True, "blockxsize": 16, "blockysize": 16}
    lerc("lerc-alpha-grey.tif", 40, 33, 4, "uint8", alpha="grey", **tiles)
    lerc("lerc-alpha-grey-zstd.tif", 40, 33, 2, "uint8", "LERC_ZSTD", alpha="grey", **tiles)
    lerc("lerc-masks.tif", 20, 33, 4, "float32", alike=True, interleave="pixel", blockysize=9)


def random_lerc():
    h, w = (int(v) for v in rng.integers(1, 150, 2))
    b, name, dtype = int(rng.integers(1, 5)), f"{next(names)}.tif", str(rng.choice(TYPES))
    if rng.random() < 0.3:
        version = int(rng.integers(2, 7))
        lossy = version == 6 and dtype[0] == "f"
        lerc_strips(name, h, w, 1 if version < 4 else b, dtype, version, float(rng.choice([0.01, 1] if lossy else [0, 0.5, 1])))
        return
    compress = str(rng.choice(["LERC", "LERC_DEFLATE", "LERC_ZSTD"]))
    alpha = dtype == "uint8" and b in (2, 4) and rng.random() < 0.5
    lerc(name, h, w, b, dtype, compress, float(rng.choice([0, 0, 0.01, 1, 2.5])), alpha, **layout())


def bits(name, h, w, b, n, compress="none", fill_order=1, **options):
    """Writes samples of n bits by GDAL; negative numbers are floats."""
    dtype = "float32" if n < 0 else "uint8" if n < 8 else "uint16" if n < 16 else "uint32"
    a = rng.normal(0, 100, (b, h, w)).astype(dtype) if n < 0 else rng.integers(0, 2**n, (b, h, w)).astype(dtype)
    if n < 0:
        a.flat[: min(5, a.size)] = [0, np.inf, -np.inf, 1e-20, 1e-19][: min(5, a.size)]
    gdal(name, a, compress=compress, nbits=abs(n), **options)
    if fill_order == 2:  # GDAL does not write it: the bits of all stored bytes are reversed here
        with tifffile.TiffFile(path(name)) as f:
            p = f.pages[0]
            ranges, end = list(zip(p.dataoffsets, p.databytecounts)), p.tags[262].offset
        data = bytearray(open(path(name), "rb").read())
        for off, size in ranges:
            data[off : off + size] = bytes(int(f"{v:08b}"[::-1], 2) for v in data[off : off + size])
        order = "big" if data[:2] == b"MM" else "little"
        assert data[:4] in (b"II*\0", b"MM\0*") and int.from_bytes(data[end : end + 2], order) == 262
        # PhotometricInterpretation (262) gives way to FillOrder (266), which keeps the order of the tags.
        data[end : end + 2] = (266).to_bytes(2, order)
        data[end + 8 : end + 10] = (2).to_bytes(2, order)
        open(path(name), "wb").write(data)
    add(name, read(name), "GDAL")


def few_bits():
    for n in 1, 2, 3, 4, 5, 6, 7, 9, 10, 11, 12, 13, 14, 15, 24, 31:
        inter = "pixel" if n % 2 else "band"
        bits(f"bits-{n}.tif", 9, 13, 2, n, interleave=inter, endianness="big" if n % 3 == 0 else "little", blockysize=4)
    bits("bits-float-24.tif", 9, 13, 1, -24)
    bits("bits-lzw.tif", 20, 21, 3, 12, "lzw", interleave="pixel", tiled=True, blockxsize=16, blockysize=16)
    bits("bits-white.tif", 20, 21, 1, 1, "packbits", photometric="miniswhite")
    bits("bits-fill-order.tif", 9, 13, 1, 4, fill_order=2)
    bits("bits-fill-order-lzw.tif", 9, 13, 1, 16, "lzw", fill_order=2)


def random_bits():
    h, w = (int(v) for v in rng.integers(1, 150, 2))
    n = int(rng.choice([*range(1, 8), *range(9, 16), 17, 20, 24, 31, -24]))
    compress = str(rng.choice(["none", "lzw", "deflate", "packbits", "zstd"]))
    bits(f"{next(names)}.tif", h, w, int(rng.integers(1, 5)), n, compress, int(rng.integers(1, 3)), **layout())


def webp(name, h, w, b, lossless, level=75, opaque=False, **options):
    a = image(h, w, b).transpose(2, 0, 1)
    if opaque:
        a[-1] = 255
    lossy = {} if lossless else {"webp_level": level}
    alpha = {"alpha": "unspecified"} if b == 4 else {}
    gdal(name, a, compress="WEBP", webp_lossless=lossless, interleave="pixel", photometric="RGB", **lossy, **alpha, **options)
    add(name, read(name), "GDAL")


def few_webps():
    tiles = {"tiled": True, "blockxsize": 32, "blockysize": 16}
    webp("webp-lossless.tif", 50, 45, 3, True, **tiles)
    webp("webp-lossless-alpha.tif", 50, 45, 4, True, **tiles)
    webp("webp-lossless-opaque.tif", 20, 30, 4, True, opaque=True, blockysize=7)
    webp("webp-lossy.tif", 50, 45, 3, False, **tiles)
    webp("webp-lossy-alpha.tif", 50, 45, 4, False, 60, **tiles)
    webp("webp-lossy-opaque.tif", 20, 30, 4, False, opaque=True, blockysize=7)
    webp("webp-lossy-odd.tif", 33, 37, 3, False, 20, blockysize=9)
    webp("webp-lossy-pixel.tif", 3, 1, 3, False, blockysize=1)


def random_webp():
    h, w = (int(v) for v in rng.integers(1, 150, 2))
    chunks = {k: v for k, v in layout().items() if k != "interleave"}
    b, lossless = int(rng.integers(3, 5)), bool(rng.random() < 0.4)
    webp(f"{next(names)}.tif", h, w, b, lossless, int(rng.integers(1, 100)), bool(b == 4 and rng.random() < 0.3), **chunks)


def lzma_gdal(name, h, w, b, dtype, **options):
    gdal(name, numbers(b, h, w, dtype), compress="LZMA", **options)
    add(name, read(name), "GDAL")


def lzma_strips(name, h, w, rows, check, filters):
    """Writes strips that Python's lzma compresses. Some hold a row more than the image."""
    a, pad = rng.integers(0, 30, (h, w), dtype=np.uint8), int(rng.integers(0, 2))
    parts = [a[y : y + rows].tobytes() + bytes(pad * w * (y + rows >= h)) for y in range(0, h, rows)]
    chunks = [lzma.compress(p, check=check, filters=filters) for p in parts]
    tags = {256: (4, [w]), 257: (4, [h]), 258: (3, [8]), 259: (3, [34925]), 262: (3, [1]), 277: (3, [1]), 278: (4, [rows])}
    tiff(name, tags, chunks, 273, 279)
    add(name, a[None], "liblzma")


CHECKS = {"none": lzma.CHECK_NONE, "crc32": lzma.CHECK_CRC32, "crc64": lzma.CHECK_CRC64, "sha256": lzma.CHECK_SHA256}


def few_lzmas():
    lzma_gdal("lzma-uint16.tif", 40, 33, 2, "uint16", interleave="pixel", predictor=2, blockysize=17)
    lzma_gdal("lzma-float32.tif", 40, 33, 1, "float32", predictor=3, tiled=True, blockxsize=16, blockysize=32)
    lzma_gdal("lzma-uint8.tif", 90, 333, 1, "uint8", LZMA_PRESET=9)
    for name, check in CHECKS.items():
        lzma_strips(f"lzma-{name}.tif", 50, 61, 20, check, [{"id": lzma.FILTER_LZMA2, "preset": 0}])
    two = [{"id": lzma.FILTER_DELTA, "dist": 61}, {"id": lzma.FILTER_LZMA2, "lc": 1, "lp": 3, "pb": 1}]
    lzma_strips("lzma-delta.tif", 50, 61, 50, lzma.CHECK_CRC64, two)


def random_lzma():
    h, w, name = int(rng.integers(1, 300)), int(rng.integers(1, 300)), f"{next(names)}.tif"
    if rng.random() < 0.5:
        lzma_gdal(name, h, w, int(rng.integers(1, 4)), str(rng.choice(TYPES)), LZMA_PRESET=int(rng.integers(0, 10)), **layout())
        return
    lc = int(rng.integers(0, 5))
    last = {"id": lzma.FILTER_LZMA2, "lc": lc, "lp": int(rng.integers(0, 5 - lc)), "pb": int(rng.integers(0, 5)), "dict_size": 1 << 20}
    delta = [{"id": lzma.FILTER_DELTA, "dist": int(rng.integers(1, 257))}] * int(rng.integers(0, 2))
    lzma_strips(name, h, w, int(rng.integers(1, 300)), CHECKS[str(rng.choice(list(CHECKS)))], delta + [last])


SHARES = [(1, 1), (1, 2), (2, 1), (2, 2), (4, 1), (4, 2), (4, 4)]
PACKERS = {1: bytes, 5: imagecodecs.lzw_encode, 8: imagecodecs.zlib_encode, 32773: imagecodecs.packbits_encode, 34925: lzma.compress}
NARROW = {532: (5, [16, 1, 235, 1, 128, 1, 240, 1, 128, 1, 240, 1])}  # ReferenceBlackWhite of video


def ycbcr(name, h, w, share, compression, rows=0, tile=(), more=None):
    """Writes random YCbCr samples, and what GDAL, by libtiff, makes of them."""
    across, down = share
    tags = {256: (4, [w]), 257: (4, [h]), 258: (3, [8] * 3), 259: (3, [compression]), 262: (3, [6]), 277: (3, [3]), 530: (3, list(share))} | (more or {})
    chunks = []
    for y in range(0, h, tile[0] if tile else rows):
        for _ in range(0, w, tile[1] if tile else w):
            ch, cw = tile or (min(rows, h - y), w)
            blocks = -(-ch // down) * -(-cw // across)
            samples = image(blocks, across * down + 2, 1).tobytes() if rng.random() < 0.5 else rng.bytes(blocks * (across * down + 2))
            chunks.append(bytes(PACKERS[compression](samples)))
    if tile:
        tiff(name, tags | {322: (4, [tile[1]]), 323: (4, [tile[0]])}, chunks, 324, 325)
    else:
        tiff(name, tags | {278: (4, [rows])}, chunks, 273, 279)
    add(name, read(name), "GDAL")


def few_ycbcrs():
    for share in SHARES:
        h, w = (20, 24) if share == (4, 4) else (21, 19)  # see random_ycbcr
        ycbcr(f"ycbcr-{share[0]}{share[1]}.tif", h, w, share, 1, rows=8)
    for compression in list(PACKERS)[1:]:
        ycbcr(f"ycbcr-{compression}.tif", 21, 19, (2, 2), compression, rows=21, more=NARROW if compression == 5 else None)
    ycbcr("ycbcr-tiles.tif", 21, 40, (2, 1), 5, tile=(16, 32), more={529: (5, [2125, 10000, 7154, 10000, 721, 10000])})


def random_ycbcr():
    h, w, share = int(rng.integers(1, 90)), int(rng.integers(1, 90)), SHARES[rng.integers(len(SHARES))]
    r, b = (int(v) for v in rng.integers(1, 450, 2))
    more = {529: (5, [r, 1000, 1000 - r - b, 1000, b, 1000])} if rng.random() < 0.5 else {}
    if rng.random() < 0.6:
        low, high = rng.integers(0, 140, 3), rng.integers(140, 300, 3)
        more[532] = (5, [int(v) for i in range(3) for v in (low[i], 1, high[i], 1)])
    compression = list(PACKERS)[rng.integers(len(PACKERS))]
    if share == (4, 4):  # libtiff misreads blocks at the edges, and cuts off half a block of a row of an odd number
        h, w = -(-h // 4) * 4, -(-w // 8) * 8
    # libtiff refuses uncompressed tiles that do not fill its buffer, whose size is a multiple of 1024.
    tile = tuple(int(v) * 16 for v in rng.integers(1, 4, 2)) if compression > 1 and share != (4, 4) and rng.random() < 0.5 else ()
    ycbcr(f"{next(names)}.tif", h, w, share, compression, share[1] * int(rng.integers(1, 20)), tile, more)


few = [few_jpegs, few_bits, few_lercs, few_webps, few_lzmas, few_ycbcrs]
random = [random_jpeg, random_bits, random_lerc, random_webp, random_lzma, random_ycbcr]
if count:
    for make in random:
        for _ in range(count):
            make()
else:
    for make in few:
        make()
manifest.close()
