"""Write a TIFF file of every layout that GDAL and tifffile write, and a manifest: write_matrix.py FOLDER."""
import hashlib
import itertools
import json
import logging
import sys
import warnings

import numpy as np
import rasterio
import tifffile
from rasterio.windows import Window

warnings.filterwarnings("ignore")
logging.disable()
folder = sys.argv[1]
noise = np.random.default_rng(1)
manifest = open(f"{folder}/manifest.jsonl", "w")
count = itertools.count()
H, W, BANDS = 40, 50, 2
COMPLEX_INT = {"complex_int16": "i2"}  # rasterio has no complex_int32
DTYPES = "uint8 int8 uint16 int16 uint32 int32 uint64 int64 float16 float32 float64 complex64 complex128".split()


def image(dtype, shape=(BANDS, H, W)):
    """Half smooth, half any bits that are no NaN."""
    if dtype in COMPLEX_INT:
        part = np.iinfo(COMPLEX_INT[dtype])
        high = min(part.max, 1 << 20)  # goes through complex64
        a = noise.integers(-high, high, (2, *shape))
        return (a[0] + 1j * a[1]).astype("c8")
    dtype = np.dtype(dtype)
    smooth = np.cumsum(noise.normal(0, 1, shape), axis=-1)
    if dtype.kind == "c":
        return (smooth + 1j * smooth[::-1]).astype(dtype)
    if dtype.kind == "f":
        return (smooth * 1.37).astype(dtype)
    a = (smooth * 3 + 60).clip(0, 127).astype(dtype)
    info = np.iinfo(dtype)
    a[:, H // 2 :] = noise.integers(info.min, info.max, a[:, H // 2 :].shape, dtype=dtype, endpoint=True)
    return a


def add(name, what, a, dtype, **more):
    """Note what a file holds."""
    if dtype in COMPLEX_INT:
        a = np.stack([a.real, a.imag], -1).astype(COMPLEX_INT[dtype])
        shape = a.shape[:-1]
    else:
        shape = a.shape
    a = np.ascontiguousarray(a.astype(a.dtype.newbyteorder("<")))
    row = {"path": name, "kind": "tiff", "note": f"relative: {what}", "shape": shape, "dtype": dtype, "sha256": hashlib.sha256(a).hexdigest()}
    manifest.write(json.dumps(row | more) + "\n")


def gdal(what, a, dtype, **options):
    """Write an image and note what GDAL reads of it."""
    name = f"{next(count)}.tif"
    size = {"count": a.shape[0], "height": a.shape[1], "width": a.shape[2]}
    with rasterio.open(f"{folder}/{name}", "w", **({"driver": "GTiff"} | options), dtype=dtype, **size) as f:
        f.write(a)
    with rasterio.open(f"{folder}/{name}") as f:
        add(name, what, f.read(), dtype)


cuts = {"tiles": {"TILED": "YES", "BLOCKXSIZE": 16, "BLOCKYSIZE": 32}, "strips": {"BLOCKYSIZE": 7}}
for k, (dtype, cut, inter, order, codec) in enumerate(itertools.product(
    DTYPES + list(COMPLEX_INT), cuts, ["PIXEL", "BAND"], ["LITTLE", "BIG"], ["NONE", "ZSTD", "DEFLATE", "LZW", "PACKBITS"],
)):
    predictors = "1"
    if codec in ("ZSTD", "DEFLATE", "LZW") and not dtype.startswith("complex"):
        predictors = "123" if dtype.startswith("float") else "12"
    for predictor in predictors:
        big = "YES" if (k + int(predictor)) % 2 else "NO"
        options = {"COMPRESS": codec, "INTERLEAVE": inter, "ENDIANNESS": order, "BIGTIFF": big} | cuts[cut]
        if codec in ("ZSTD", "DEFLATE", "LZW"):
            options["PREDICTOR"] = predictor
        try:
            gdal(f"{dtype} {cut} {inter} {order} {codec} predictor {predictor} BIGTIFF {big}", image(dtype), dtype, **options)
        except rasterio.errors.RasterioError as e:
            if "predictor" not in str(e).lower():  # which GDAL refuses for some types
                raise

for dtype in DTYPES:
    options = {"driver": "COG", "INTERLEAVE": "TILE", "COMPRESS": "ZSTD", "BIGTIFF": "YES", "BLOCKSIZE": "128", "OVERVIEWS": "NONE"}
    predictor = "NO" if dtype[0] == "c" or dtype == "float16" else "YES"
    gdal(f"{dtype} tile-interleaved", image(dtype, (3, 150, 140))[:, :150], dtype, PREDICTOR=predictor, **options)

# The older of the two compressions with DEFLATE, which GDAL does not write.
for order, predictor, cut in itertools.product("<>", [False, True], [{"tile": (16, 48)}, {"rowsperstrip": 9}]):
    for dtype in ["u1", "i2", "u4", "f4", "f8"]:
        a, name = image(dtype), f"{next(count)}.tif"
        tifffile.imwrite(f"{folder}/{name}", a, photometric="minisblack", planarconfig="separate", compression=32946,
                         predictor=predictor, byteorder=order, metadata=None, **cut)
        add(name, f"{dtype} old deflate {order} {cut} predictor {predictor}", a, np.dtype(dtype).name)

# Sparse chunks, with nodata values that samples can have and that they cannot.
tiles = {"TILED": "YES", "BLOCKXSIZE": 16, "BLOCKYSIZE": 16, "SPARSE_OK": "YES", "COMPRESS": "ZSTD"}
values = "0 7 -1 1.5 -1.5 2.5 300 -9999 1e5 1e10 nan inf -inf 1e300 -1e300".split()
exact = "0 7 -1 -9999 9223372036854775808 18446744073709551616 -9223372036854775809".split()  # GDAL reads no others in 64 bits
for dtype, order in itertools.product(DTYPES + list(COMPLEX_INT), ["LITTLE", "BIG"]):
    for nodata in exact if dtype in ("int64", "uint64") else values:
        a, name = image(dtype), f"{next(count)}.tif"
        size = {"count": BANDS, "height": H, "width": W}
        with rasterio.open(f"{folder}/{name}", "w", driver="GTiff", dtype=dtype, nodata=1, ENDIANNESS=order, **tiles, **size) as f:
            f.write(a[:, :16, :32], window=Window(0, 0, 32, 16))
        with tifffile.TiffFile(f"{folder}/{name}", mode="r+b") as f:
            f.pages[0].tags[42113].overwrite(nodata)
        with rasterio.open(f"{folder}/{name}") as f:
            add(name, f"{dtype} {order} sparse, nodata {nodata}", f.read(), dtype, nodata=nodata)

# Rewritten in place, with tiles that grow.
for dtype in ["uint16", "float32"]:
    a, name = image(dtype), f"{next(count)}.tif"
    size = {"count": BANDS, "height": H, "width": W}
    with rasterio.open(f"{folder}/{name}", "w", driver="GTiff", dtype=dtype, INTERLEAVE="BAND", **tiles, **size) as f:
        f.write(np.zeros_like(a))
    with rasterio.open(f"{folder}/{name}", "r+") as f:
        f.write(a[:, 5:30], window=Window(0, 5, W, 25))
    with rasterio.open(f"{folder}/{name}") as f:
        add(name, f"{dtype} rewritten", f.read(), dtype)

# With overviews, in front of or behind the image.
for driver, dtype in itertools.product(["GTiff", "COG"], ["uint16", "float32"]):
    a, name = image(dtype, (2, 300, 290)), f"{next(count)}.tif"
    more = {"BLOCKSIZE": 128} if driver == "COG" else {"TILED": "YES", "BLOCKXSIZE": 64, "BLOCKYSIZE": 64}
    with rasterio.open(f"{folder}/{name}", "w", driver=driver, dtype=dtype, count=2, height=300, width=290, **more) as f:
        f.write(a)
        if driver == "GTiff":
            f.build_overviews([2, 4])
    with rasterio.open(f"{folder}/{name}") as f:
        add(name, f"{dtype} overviews by {driver}", f.read(), dtype, overviews=f.overviews(1))

# WebP, with and without loss.
for bands, lossless in itertools.product([3, 4], ["YES", "NO"]):
    a, name = image("uint8", (bands, 48, 64)), f"{next(count)}.tif"
    size = {"count": bands, "height": 48, "width": 64, "TILED": "YES", "BLOCKXSIZE": 16, "BLOCKYSIZE": 16}
    options = {"COMPRESS": "WEBP", "WEBP_LOSSLESS": lossless, "WEBP_LEVEL": 60}
    try:
        with rasterio.open(f"{folder}/{name}", "w", driver="GTiff", dtype="uint8", **size, **options) as f:
            f.write(a)
    except rasterio.errors.RasterioError as e:  # a GDAL built without it
        print(f"WebP: {e}", file=sys.stderr)
        continue
    with rasterio.open(f"{folder}/{name}") as f:
        add(name, f"WebP of {bands} bands, lossless {lossless}", f.read(), "uint8")

# What is not read, and what its error names.
for what, says, dtype, bands, options in [
    ("JPEG XL", "compression JPEG XL", "uint8", 3, {"COMPRESS": "JXL"}),
]:  # fmt: skip
    name = f"{next(count)}.tif"
    try:
        size = {"count": bands, "height": 48, "width": 64, "TILED": "YES", "BLOCKXSIZE": 16, "BLOCKYSIZE": 16}
        with rasterio.open(f"{folder}/{name}", "w", driver="GTiff", dtype=dtype, **size, **options) as f:
            f.write(noise.integers(0, 2, (bands, 48, 64)).astype(dtype))
    except rasterio.errors.RasterioError as e:  # a GDAL built without it
        print(f"{what}: {e}", file=sys.stderr)
        continue
    manifest.write(json.dumps({"path": name, "kind": "tiff", "note": f"relative: {what}", "refuse": says}) + "\n")
manifest.close()
