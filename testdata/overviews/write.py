"""Write rasters with overviews in files beside them, and their manifest: write.py FOLDER."""

import hashlib
import json
import os
import sys
import warnings

import numpy as np
import rasterio
import tifffile
from rasterio.enums import Resampling

warnings.filterwarnings("ignore")
folder = sys.argv[1]


def sha(a):
    """Return the hash of an array's bytes in C order."""
    return hashlib.sha256(np.ascontiguousarray(a).tobytes()).hexdigest()


def raster(name, levels=(), mask=None, beside=False, **profile):
    """Write a raster of 77 by 101 pixels with overviews, inside or beside it."""
    row, col = np.mgrid[:77, :101]
    data = np.stack([1000 + 40 * row + 7 * col, 9000 - 31 * row + (13 * col) % 97])
    profile = dict(driver="GTiff", height=77, width=101, count=2, dtype="uint16") | profile
    profile |= dict(tiled=True, blockxsize=32, blockysize=32, compress="deflate")
    profile |= dict(crs="EPSG:32630", transform=rasterio.Affine(10, 0, 500000, 0, -10, 4600000))
    path = f"{folder}/{name}"
    with rasterio.Env(GDAL_TIFF_INTERNAL_MASK=True, GDAL_TIFF_OVR_BLOCKSIZE=64):
        with rasterio.open(path, "w", **profile) as f:
            f.write(data.astype(profile["dtype"]))
            if mask is not None:
                f.write_mask(mask)
        if levels:
            with rasterio.Env(TIFF_USE_OVR=beside, COMPRESS_OVERVIEW="DEFLATE"):
                with rasterio.open(path, "r+") as f:
                    f.build_overviews(levels, Resampling.average)
    return path


def sums(path):
    """Return what GDAL reads of each overview."""
    with rasterio.open(path) as f:
        n = len(f.overviews(1))
    out = []
    for level in range(n):
        with rasterio.open(path, overview_level=level) as f:
            shape = [f.count, f.height, f.width]
            out.append(
                dict(
                    shape=shape,
                    samples=sha(f.read()),
                    masks=sha(f.read_masks()),
                    valid=sha(f.read_masks() // 255),
                )
            )
    return out


y, x = np.mgrid[:77, :101]
blob = (y - 30) ** 2 + (x - 50) ** 2 > 300
paths = [
    raster("plain.tif", [2, 4], beside=True),
    raster("thirds.tif", [3], beside=True, nodata=1000, dtype="float32", BIGTIFF="YES"),
    raster("masked.tif", mask=blob),
    raster("both.tif", [2], nodata=1007),
]
# GDAL writes no masks into a file of overviews, but it reads them there: a raster of half the size
# with a mask and overviews of its own is such a file.
with rasterio.open(f"{folder}/masked.tif") as f:
    half = f.read(out_shape=(2, 39, 51), resampling=Resampling.average)
    half_mask = f.read_masks(1, out_shape=(39, 51), resampling=Resampling.nearest)
with rasterio.Env(GDAL_TIFF_INTERNAL_MASK=True):
    side = dict(driver="GTiff", height=39, width=51, count=2, dtype="uint16", compress="lzw")
    with rasterio.open(f"{folder}/half.tif", "w", **side) as f:
        f.write(half)
        f.write_mask(half_mask)
    with rasterio.open(f"{folder}/half.tif", "r+") as f:
        f.build_overviews([2], Resampling.average)
os.rename(f"{folder}/half.tif", f"{folder}/masked.tif.ovr")
# The overviews of the raster itself come first: the file beside it has others.
with rasterio.open(f"{folder}/plain.tif.ovr") as f:
    meta, data = f.profile, f.read()
with rasterio.open(f"{folder}/both.tif.ovr", "w", **meta) as f:
    f.write(data + 1)

# OME-TIFF has its pyramids in SubIFDs, behind an image of another size here, which is none.
with tifffile.TiffWriter(f"{folder}/pyramid.tif") as f:
    side = dict(tile=(32, 32), planarconfig="separate", photometric="minisblack", metadata=None)
    image = np.stack([1000 + 40 * y + 7 * x, 9000 - 31 * y + (13 * x) % 97]).astype("uint16")
    f.write(image, subifds=3, compression="zlib", **side)
    f.write(image[:, ::5, ::5] + 1, compression="zlib", **side)
    f.write(image[:, ::2, ::2] + 2, compression="zlib", subfiletype=1, **side)
    f.write(image[:, ::4, ::4] + 3, compression="zlib", subfiletype=1, **side)
paths.append(f"{folder}/pyramid.tif")

writer = f"rasterio {rasterio.__version__}, GDAL {rasterio.__gdal_version__}"
with open(f"{folder}/manifest.jsonl", "w") as out:
    for path in paths:
        row = dict(path=os.path.basename(path), writer=writer, overview_sums=sums(path))
        out.write(json.dumps(row) + "\n")
