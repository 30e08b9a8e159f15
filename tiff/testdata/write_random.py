"""Write TIFF files of random layouts with GDAL and tifffile, and a manifest: write_random.py FOLDER SEED COUNT."""
import hashlib
import json
import random
import sys
import warnings

import numpy as np
import rasterio
import tifffile

warnings.filterwarnings("ignore")
folder, seed, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
pick = random.Random(seed)
noise = np.random.default_rng(seed)


def image(shape, dtype):
    _, h, w = shape
    y, x = np.mgrid[0:h, 0:w]
    smooth = np.sin(x / 7) * 50 + np.cos(y / 5) * 50 + 100 + noise.normal(0, 3, shape)
    if dtype.kind == "c":
        return (smooth + 1j * smooth[::-1]).astype(dtype)
    if dtype.kind == "f":
        return (smooth * 1.37).astype(dtype)
    if pick.random() < 0.3:
        info = np.iinfo(dtype)
        return noise.integers(info.min, info.max, shape, dtype=dtype, endpoint=True)
    return (smooth * (0.5 if dtype.itemsize == 1 else 50)).astype("i8").astype(dtype)


def by_gdal(path, shape):
    dtype = np.dtype(pick.choice(["u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8", "f2", "f4", "f8", "c8", "c16"]))
    a = image(shape, dtype)
    compress = pick.choice(["NONE", "ZSTD", "DEFLATE", "LZW", "PACKBITS"])
    options = {
        "COMPRESS": compress,
        "INTERLEAVE": pick.choice(["PIXEL", "BAND"]),
        "ENDIANNESS": pick.choice(["LITTLE", "BIG"]),
        "BIGTIFF": pick.choice(["YES", "NO"]),
        "SPARSE_OK": pick.choice(["YES", "NO"]),
    }
    if pick.random() < 0.7:
        options |= {"TILED": "YES", "BLOCKXSIZE": pick.choice([16, 32, 64, 128]), "BLOCKYSIZE": pick.choice([16, 32, 64, 128])}
    else:
        options["BLOCKYSIZE"] = pick.choice([1, 3, 16, 50, 1000])
    if compress in ("ZSTD", "DEFLATE", "LZW") and dtype.kind != "c":
        options["PREDICTOR"] = pick.choice("123" if dtype.kind == "f" else "12")
    nodata = pick.choice([None, None, 0, 7])
    if pick.random() < 0.3:
        a[:, : shape[1] // 2] = nodata or 0
    size = {"count": shape[0], "height": shape[1], "width": shape[2]}
    with rasterio.open(path, "w", driver="GTiff", dtype=dtype, nodata=nodata, **size, **options) as f:
        f.write(a)
    with rasterio.open(path) as f:
        return f.read(), nodata


def by_tifffile(path, shape):
    dtype = np.dtype(pick.choice(["u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8", "f2", "f4", "f8", "c8"]))
    a = image(shape, dtype)
    compression = pick.choice([None, "zstd", "zlib", "lzw", "packbits"])
    predictor = compression in ("zstd", "zlib", "lzw") and dtype.kind != "c" and pick.random() < 0.5
    planar = pick.choice(["contig", "separate"]) if shape[0] > 1 else None
    cut = {"rowsperstrip": pick.choice([1, 4, 17, 1000])}
    if pick.random() < 0.6:
        cut = {"tile": (pick.choice([16, 32, 64]), pick.choice([16, 48, 128]))}
    data = a[0] if shape[0] == 1 else a if planar == "separate" else np.moveaxis(a, 0, -1)
    order, big = pick.choice("<>"), pick.choice([True, False])
    tifffile.imwrite(
        path, data, photometric="minisblack", planarconfig=planar, compression=compression, predictor=predictor,
        byteorder=order, bigtiff=big, metadata=None, **cut,
    )
    return a, None


rows = []
while len(rows) < count:
    shape = (pick.choice([1, 2, 3, 4, 7]), pick.choice([1, 5, 16, 33, 100, 130]), pick.choice([1, 7, 16, 48, 99, 200]))
    name = f"{len(rows)}.tif"
    write = by_gdal if pick.random() < 0.7 else by_tifffile
    try:
        a, nodata = write(f"{folder}/{name}", shape)
    except (ValueError, rasterio.errors.RasterioError):  # a combination that the writer refuses
        continue
    dtype = a.dtype.newbyteorder("<")
    rows.append({
        "kind": "tiff", "path": name, "note": f"relative by {write.__name__}", "shape": a.shape, "dtype": dtype.name,
        "nodata": nodata, "sha256": hashlib.sha256(np.ascontiguousarray(a.astype(dtype)).tobytes()).hexdigest(),
    })
with open(f"{folder}/manifest.jsonl", "w") as f:
    f.writelines(json.dumps(row) + "\n" for row in rows)
