"""Writes the TIFF files of this folder, and what other readers read in them.

    python write.py        # needs numpy, imagecodecs, tifffile and rasterio (README.md has the versions)

The directories are made here entry by entry, because the files are what careful writers avoid. Compressed samples
are made by imagecodecs (libtiff's LZW and PackBits, zlib, libzstd). The judges are GDAL and tifffile: a line of
manifest.jsonl says which of them read the pixels as they are, and the script fails if none does, unless the
line has "alone": the reason why both are wrong.
"""

from __future__ import annotations

import hashlib
import json
import logging
import struct
import warnings
from pathlib import Path

import imagecodecs
import numpy as np
import rasterio
import tifffile

HERE = Path(__file__).resolve().parent
LETTERS = {1: "B", 3: "H", 4: "I", 9: "i", 16: "Q", 17: "q"}
SIZES = {1: 1, 3: 2, 4: 4, 9: 4, 16: 8, 17: 8}
rng = np.random.default_rng(20)
GREY = rng.integers(1, 250, (40, 50), dtype=np.uint8)
RGB = rng.integers(1, 250, (3, 40, 50), dtype=np.uint8)
lines = []


def tiff(tags, data, big=False, pointer=True, following=0, more=None):
    """A little-endian TIFF: header, data at 8 (BigTIFF 16), directory. tags: {tag: (type, values)}.

    pointer=False leaves out the offset of the next directory; more is a second directory's tags.
    """
    head, entry, word = (16, 20, "Q") if big else (8, 12, "I")
    wide = struct.calcsize(word)

    def directory(tags, at, following):
        after = at + (8 if big else 2) + entry * len(tags) + wide
        out, rest = struct.pack("<Q" if big else "<H", len(tags)), b""
        for tag, (kind, values) in sorted(tags.items()):
            raw = struct.pack(f"<{len(values)}{LETTERS[kind]}", *values)
            if len(raw) > wide:
                value = struct.pack("<" + word, after + len(rest))
                rest += raw
            else:
                value = raw.ljust(wide, b"\0")
            out += struct.pack("<HH" + word, tag, kind, len(values)) + value
        return out + (struct.pack("<" + word, following) if pointer else b"") + rest

    at = head + len(data) + len(data) % 2
    b = b"II" + (struct.pack("<HHHQ", 43, 8, 0, at) if big else struct.pack("<HI", 42, at))
    b = (b + data).ljust(at, b"\0")
    if more is None:
        return b + directory(tags, at, at if following == "loop" else following)
    second = at + len(directory(tags, at, 0))
    return b + directory(tags, at, second) + directory(more, second, 0)


def base(a, rows=40, **change):
    """Tags of an uncompressed image in strips, its samples from 8 on. change: t259=(3, [5]), or None to leave one out."""
    bands, h, w = a.shape if a.ndim == 3 else (1, *a.shape)
    size = rows * w * bands * a.itemsize
    n = -(-h // rows)
    tags = {
        256: (3, [w]), 257: (3, [h]), 258: (3, [8 * a.itemsize] * bands), 259: (3, [1]), 262: (3, [2 if bands == 3 else 1]),
        273: (4, [8 + i * size for i in range(n)]), 277: (3, [bands]), 278: (3, [rows]),
        279: (4, [min(size, h * w * bands * a.itemsize - i * size) for i in range(n)]), 284: (3, [1]),
    }  # fmt: skip
    tags.update({int(k[1:]): v for k, v in change.items()})
    return {k: v for k, v in tags.items() if v is not None}


def digest(a):
    a = np.ascontiguousarray(a if a.ndim == 3 else a[None])
    return hashlib.sha256(a.tobytes()).hexdigest()


def judges(path, want):
    """The readers that read the pixels as they are."""
    out = []
    try:
        with rasterio.open(path) as f:
            if digest(f.read()) == want:
                out.append("gdal")
    except rasterio.RasterioIOError:
        pass
    try:
        with tifffile.TiffFile(path) as f:
            page = f.pages[0]
            a = page.asarray()
            if page.samplesperpixel > 1 and page.planarconfig == 1:
                a = a.transpose(2, 0, 1)
            if digest(a) == want:
                out.append("tifffile")
    except Exception:  # noqa: BLE001 (whatever it fails with)
        pass
    return out


def put(name, b, a, what, alone=None, **more):
    path = HERE / f"{name}.tif"
    path.write_bytes(b)
    want = digest(a)
    read = judges(path, want)
    if not read and not alone:
        raise SystemExit(f"{name}: neither GDAL nor tifffile reads it as it is")
    line = {"path": path.name, "what": what, "shape": list(a.shape if a.ndim == 3 else (1, *a.shape)), "dtype": str(a.dtype), "sha256": want, "judges": read}
    lines.append(line | ({"alone": alone} if alone else {}) | more)


def refused(name, b, what, kind):
    path = HERE / f"{name}.tif"
    path.write_bytes(b)
    lines.append({"path": path.name, "what": what, "refused": kind})


def packed(pieces, at=8):
    """Offsets, sizes and bytes of pieces one after the other."""
    offs = []
    for p in pieces:
        offs.append(at)
        at += len(p)
    return (4, offs), (4, [len(p) for p in pieces]), b"".join(pieces)


def main():
    logging.disable(logging.CRITICAL)
    warnings.filterwarnings("ignore")
    grey, rgb = GREY.tobytes(), RGB.transpose(1, 2, 0).tobytes()
    ten = base(GREY, 10)

    # Sizes that the file does not say, or says wrongly.
    put("count-0", tiff(base(GREY, t279=(4, [0])), grey), GREY, "one strip with StripByteCounts 0")
    put("count-0-strips", tiff(base(GREY, 10, t279=(4, [500, 0, 500, 0])), grey), GREY, "strips 1 and 3 with StripByteCounts 0",
        alone="GDAL and tifffile take strips without bytes for sparse")  # fmt: skip
    holes = GREY.copy()
    holes[10:20] = 0
    put("sparse", tiff(base(GREY, 10, t273=(4, [8, 0, 1008, 1508]), t279=(4, [500, 0, 500, 500])), grey), holes, "strip 1 is sparse: offset and size 0")
    put("counts-missing", tiff(base(GREY, t279=None), grey), GREY, "no StripByteCounts, one strip")
    put("counts-missing-strips", tiff(base(GREY, 10, t279=None), grey), GREY, "no StripByteCounts, four strips",
        alone="GDAL refuses it; tifffile gives one strip")  # fmt: skip
    put("counts-few", tiff(base(GREY, 10, t279=(4, [500, 500])), grey), GREY, "two StripByteCounts for four strips",
        alone="GDAL and tifffile take the last two strips for sparse")  # fmt: skip
    put("counts-short", tiff(base(GREY, 10, t279=(4, [400] * 4)), grey), GREY, "StripByteCounts of 400 for strips of 500 bytes")
    put("counts-long", tiff(base(GREY, 10, t279=(4, [500, 500, 500, 5000])), grey), GREY, "the last strip ends behind the file")
    z = imagecodecs.zlib_encode(grey)
    put("deflate-count-missing", tiff(base(GREY, t259=(3, [8]), t279=None), z), GREY, "the only strip, of deflate, without its size")
    put("deflate-count-0", tiff(base(GREY, t259=(3, [8]), t279=(4, [0])), z), GREY, "the only strip, of deflate, with StripByteCounts 0")
    offs, counts, data = packed([imagecodecs.zlib_encode(grey[i * 500 : i * 500 + 500]) for i in range(4)])
    counts[1][1] = 0
    refused("deflate-count-0-strips", tiff(base(GREY, 10, t259=(3, [8]), t273=offs, t279=counts), data), "strip 1, of deflate, with an offset and StripByteCounts 0", "corrupt")
    refused("offset-0", tiff(base(GREY, 10, t273=(4, [8, 0, 1008, 1508])), grey), "strip 1 with 500 bytes at offset 0", "corrupt")
    tiled = {**base(GREY, t273=None, t278=None, t279=None), 322: (3, [64]), 323: (3, [48]), 324: (4, [8])}
    refused("tile-short", tiff({**tiled, 325: (4, [64 * 39])}, bytes(64 * 40)), "a tile of 64 by 48 with 39 rows, the image has 40", "corrupt")
    cuts = [GREY[:32, :32], GREY[:32, 32:], GREY[32:, :32], GREY[32:, 32:]]
    offs, counts, data = packed([np.ascontiguousarray(c).tobytes() for c in cuts])
    refused("tile-between", tiff({**tiled, 325: (4, [64 * 44])}, bytes(64 * 44)), "a tile of 64 by 48 with 44 rows, the image has 40", "corrupt")
    refused("bits-surplus", tiff(base(RGB, t277=(3, [1])), rgb), "three BitsPerSample, one SamplesPerPixel", "corrupt")
    refused("bits-surplus-alpha", tiff(base(RGB, t258=(3, [8] * 4), t338=(3, [1])), rgb), "four BitsPerSample and an extra sample, three SamplesPerPixel", "corrupt")
    put("tiles-clipped", tiff({**tiled, 322: (3, [32]), 323: (3, [32]), 324: offs, 325: counts}, data), GREY, "tiles at the edges have the columns and rows of the image only")

    # Tags that are missing, of other types, or with other numbers of values.
    put("one-bits", tiff(base(RGB, t258=(3, [8]), t339=(3, [1])), rgb), RGB, "one BitsPerSample and SampleFormat for three bands")
    put("bits-four", tiff(base(RGB, t258=(3, [8, 8, 8, 1])), rgb), RGB, "four BitsPerSample for three bands of RGB")
    put("no-compression", tiff(base(GREY, t259=None), grey), GREY, "no Compression")
    put("no-rows", tiff(base(GREY, t278=None), grey), GREY, "no RowsPerStrip, one strip")
    put("no-rows-strips", tiff(base(GREY, 10, t278=None), grey), GREY, "no RowsPerStrip, four strips")
    put("rows-overflow", tiff(base(GREY, 10, t278=(4, [2**31 + 1])), grey), GREY, "four strips, and RowsPerStrip of 2^31+1")
    planes = base(RGB, t278=(4, [2**32 - 1]), t284=(3, [2]), t273=(4, [8 + 500 * i for i in range(12)]), t279=(4, [500] * 12))
    put("rows-overflow-planes", tiff(planes, RGB.tobytes()), RGB, "four strips a band, and RowsPerStrip of 2^32-1",
        alone="GDAL takes the second and the third strip for the first of bands 2 and 3; tifffile refuses it")  # fmt: skip
    put("surplus", tiff(base(GREY, 10, t273=(4, [8, 508, 1008, 1508, 9999]), t279=(4, [500] * 5)), grey), GREY, "five entries for four strips")
    put("signed", tiff(base(GREY, t273=(17, [16]), t279=(9, [2000])), grey, big=True), GREY, "BigTIFF, StripOffsets SLONG8 and StripByteCounts SLONG")
    tile = np.zeros((48, 64), np.uint8)
    tile[:40, :50] = GREY
    square = {**base(GREY), 278: (3, [40])}
    del square[278]
    put("tiles-as-strips", tiff({**square, 322: (3, [64]), 323: (3, [48]), 273: (4, [16]), 279: (4, [64 * 48])}, tile.tobytes(), big=True), GREY,
        "BigTIFF, a tile under StripOffsets and StripByteCounts")  # fmt: skip
    put("tile-cut", tiff({**tiled, 325: (4, [64 * 40])}, tile[:40].tobytes()), GREY, "a tile without its rows below the image")

    # Chains of directories.
    put("next-missing", tiff(base(GREY), grey, pointer=False), GREY, "the file ends with the last entry of its directory")
    put("next-outside", tiff(base(GREY), grey, following=99999999), GREY, "the next directory lies outside of the file", chain="corrupt")
    put("next-loop", tiff(base(GREY), grey, following="loop"), GREY, "the next directory is the first", chain="corrupt")
    put("next-junk", tiff(base(GREY), grey, following=12), GREY, "the next directory is samples", chain="corrupt")

    # More in a strip than its rows: padding that was compressed with them, and bytes behind it.
    pad = np.zeros((48, 50), np.uint8)
    pad[:40] = GREY
    tail = b"\xa5" * 37
    for name, number, encode in (("zstd", 50000, imagecodecs.zstd_encode), ("deflate", 8, imagecodecs.zlib_encode),
                                 ("lzw", 5, imagecodecs.lzw_encode), ("packbits", 32773, imagecodecs.packbits_encode)):  # fmt: skip
        pieces = [bytes(encode(pad[i : i + 16].tobytes())) for i in (0, 16, 32)]
        for kind, change in (("padded", b""), ("tail", tail)):
            if change:
                pieces = [bytes(encode(GREY[i : i + 16].tobytes())) + tail for i in (0, 16, 32)]
            offs, counts, data = packed(pieces)
            put(f"{name}-{kind}", tiff(base(GREY, 16, t259=(3, [number]), t273=offs, t279=counts), data), GREY,
                "the last strip holds 16 rows, the image 8 of them" if not change else "37 bytes behind the data of each strip")  # fmt: skip
    offs, counts, data = packed([bytes(imagecodecs.packbits_encode(bytes([9]) * 100))])
    nine = np.full((1, 50), 9, np.uint8)
    put("packbits-run", tiff(base(nine, 1, t259=(3, [32773]), t273=offs, t279=counts), data), nine, "a run that ends behind the strip")

    (HERE / "manifest.jsonl").write_text("".join(json.dumps(x) + "\n" for x in lines))
    print(len(lines), "files,", sum(p.stat().st_size for p in HERE.glob("*.tif")), "bytes")


main()
