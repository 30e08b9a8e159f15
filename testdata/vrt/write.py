"""Write the files of this folder and their manifest: write.py FOLDER.

GDAL's own gdalbuildvrt and gdal_translate, which are functions of its library, write the virtual
rasters. The values are noise.
"""

import ctypes
import hashlib
import json
import os
import sys
import warnings
from pathlib import Path

import numpy as np
import rasterio

warnings.filterwarnings("ignore")
os.chdir(sys.argv[1])
rng = np.random.default_rng(17)
LEFT, TOP = 500000, 4600000
library = ctypes.CDLL(str(next(Path(rasterio.__file__).parents[1].glob("rasterio.libs/libgdal*"))))


def sha(a):
    """Return the hash of an array's bytes in C order."""
    return hashlib.sha256(np.ascontiguousarray(a).tobytes()).hexdigest()


def gdal(name, *arguments):
    """Call a function of GDAL that returns a pointer."""
    function = getattr(library, name)
    function.restype = ctypes.c_void_p
    function.argtypes = [
        ctypes.c_int if isinstance(a, int) and abs(a) < 1 << 20 else ctypes.c_void_p
        for a in arguments
    ]
    return function(*arguments)


def texts(values):
    """Return a list of strings for C."""
    return (ctypes.c_char_p * (len(values) + 1))(*[v.encode() for v in values], None)


def buildvrt(name, files, *options):
    """Run gdalbuildvrt."""
    how = gdal("GDALBuildVRTOptionsNew", texts(options), None)
    made = gdal("GDALBuildVRT", name.encode(), len(files), None, texts(files), how, None)
    gdal("GDALClose", ctypes.c_void_p(made))


def translate(name, file, *options):
    """Run gdal_translate -of VRT."""
    how = gdal("GDALTranslateOptionsNew", texts(["-of", "VRT", *options]), None)
    opened = gdal("GDALOpen", file.encode(), 0)
    made = gdal("GDALTranslate", name.encode(), ctypes.c_void_p(opened), how, None)
    gdal("GDALClose", ctypes.c_void_p(made))
    gdal("GDALClose", ctypes.c_void_p(opened))


def scene(name, bands, dtype, left, top, resolution=10, height=30, width=40, hole=None, **options):
    """Write a scene with a hole: of nodata 0, of a mask, or of alpha."""
    x = rng.integers(1, 200, (bands, height, width)).astype(dtype)
    there = rng.random((height, width)) > 0.2
    if hole == "nodata":
        x[:, ~there] = 0
        options["nodata"] = 0
    if hole == "alpha":
        x[-1] = 255 * there
        options |= {"photometric": "RGB", "alpha": "yes"}
    place = rasterio.transform.from_origin(LEFT + left, TOP - top, resolution, resolution)
    options |= {"crs": "EPSG:32630", "transform": place, "compress": "deflate"}
    with (
        rasterio.Env(GDAL_TIFF_INTERNAL_MASK=True),
        rasterio.open(
            name,
            "w",
            driver="GTiff",
            count=bands,
            height=height,
            width=width,
            dtype=dtype,
            **options,
        ) as f,
    ):
        f.write(x)
        if hole == "mask":
            f.write_mask(there)


gdal("GDALAllRegister")
scene("a.tif", 2, "uint16", 0, 0)
scene("b.tif", 2, "uint16", 250, 120, tiled=True, blockxsize=16, blockysize=16, interleave="pixel")
scene("coarse.tif", 2, "uint16", 100, 200, resolution=20, height=20, width=20)
scene("nodata.tif", 2, "uint16", 150, 100, hole="nodata")
scene("masked.tif", 3, "uint8", 0, 0, hole="mask")
scene("alpha.tif", 4, "uint8", 0, 0, hole="alpha")
scene("beside.tif", 4, "uint8", 200, 100, hole="alpha")
buildvrt("mosaic.vrt", ["a.tif", "b.tif"])
buildvrt("nodata.vrt", ["a.tif", "nodata.tif"])
buildvrt("resolution.vrt", ["a.tif", "coarse.tif"], "-resolution", "average")
buildvrt("separate.vrt", ["a.tif", "nodata.tif"], "-separate")
buildvrt("masked.vrt", ["masked.tif"], "-te", "500050", "4599750", "500300", "4599980")
buildvrt("alpha.vrt", ["alpha.tif", "beside.tif"])
buildvrt("added.vrt", ["a.tif", "b.tif"], "-b", "1", "-addalpha")
buildvrt("nested.vrt", ["mosaic.vrt", "nodata.vrt"])
translate("window.vrt", "b.tif", "-srcwin", "3", "4", "20", "15", "-b", "2", "-b", "1")
translate("small.vrt", "a.tif", "-outsize", "37%", "60%", "-a_nodata", "9")
translate("scaled.vrt", "a.tif", "-scale", "0", "200", "0", "255", "-ot", "Byte")
translate("scale.vrt", "a.tif", "-ot", "Float32", "-a_scale", "0.5", "-a_offset", "3")
with open("manifest.jsonl", "w") as out:
    for path in sorted(Path().glob("*.vrt")):
        with rasterio.open(path) as f:
            alpha = f.colorinterp[-1] == rasterio.enums.ColorInterp.alpha
            bands = list(range(1, f.count + (not alpha)))
            x, valid = f.read(bands), f.read_masks(bands) > 0
        filled = np.where(valid, x.astype("f4"), np.float32(-7))
        height, width = x.shape[1] - 5, x.shape[2] - 8
        row = {
            "path": path.name,
            "kind": "vrt",
            "writer": f"rasterio {rasterio.__version__}, GDAL {rasterio.__gdal_version__}",
            "shape": x.shape,
            "dtype": str(x.dtype),
            "sha256": sha(x),
            "valid_sha256": sha(valid.astype("u1")),
            "filled_sha256": sha(filled),
            "window": [3, 5, height, width],  # first row and column, rows, columns
            "window_sha256": sha(filled[:, 3 : 3 + height, 5 : 5 + width]),
            "valid": [int(v.sum()) for v in valid],
        }
        print(json.dumps(row), file=out)
