"""Write the files of this folder and their manifest: write.py FOLDER.

The values are noise, so transparent pixels hold values like any other.
"""

import hashlib
import json
import sys
import warnings

import numpy as np
import PIL
import rasterio
from PIL import Image

warnings.filterwarnings("ignore")
folder = sys.argv[1]
rng = np.random.default_rng(21)
HEIGHT, WIDTH = 50, 70
OPACITY = {"u1": [1, 7, 255], "u2": [1, 256, 65535]}  # the low byte of 256 is 0


def sha(a):
    """Return the hash of an array's bytes in C order."""
    return hashlib.sha256(np.ascontiguousarray(a).tobytes()).hexdigest()


def noise(bands, dtype):
    """Return an image whose alpha is 0 at an edge, in a hole, in single pixels and in rows."""
    x = rng.integers(0, 256, (bands, HEIGHT, WIDTH)).astype(dtype)
    row, column = np.mgrid[:HEIGHT, :WIDTH]
    opaque = (column + row > 20) & ((row - 25) ** 2 + (column - 35) ** 2 > 90)
    opaque &= rng.random((HEIGHT, WIDTH)) > 0.03
    opaque[41:45] = False
    x[-1] = np.where(opaque, rng.choice(OPACITY[dtype], (HEIGHT, WIDTH)), 0)
    return x


def gdal(name, x, **options):
    """Write an image with alpha."""
    b, h, w = x.shape
    options = {"driver": "GTiff", "ALPHA": "YES"} | options
    options |= {"photometric": "RGB"} if b == 4 else {}
    with rasterio.open(
        f"{folder}/{name}", "w", count=b, height=h, width=w, dtype=x.dtype, **options
    ) as d:
        d.write(x)


tiles = {"tiled": True, "blockxsize": 32, "blockysize": 16}
gdal("rgba.tif", noise(4, "u1"), INTERLEAVE="PIXEL", COMPRESS="DEFLATE", PREDICTOR=2, **tiles)
gdal("planes.tif", noise(4, "u2"), INTERLEAVE="BAND", COMPRESS="LZW", ENDIANNESS="BIG", **tiles)
gdal("grey.tif", noise(2, "u2"), INTERLEAVE="PIXEL", ENDIANNESS="BIG", BLOCKYSIZE=7)
gdal("lerc.tif", noise(4, "u1"), INTERLEAVE="PIXEL", COMPRESS="LERC", **tiles)
gdal("webp.tif", noise(4, "u1"), INTERLEAVE="PIXEL", COMPRESS="WEBP", WEBP_LOSSLESS="YES", **tiles)
gdal("multiplied.tif", noise(2, "u1"), INTERLEAVE="BAND", ALPHA="PREMULTIPLIED", BLOCKYSIZE=7)
Image.fromarray(noise(4, "u1").transpose(1, 2, 0)).save(f"{folder}/rgba.png")
Image.fromarray(noise(2, "u1").transpose(1, 2, 0)).save(f"{folder}/grey.png")

names = {"planes.tif": 4, "rgba.tif": 4, "grey.tif": 2, "lerc.tif": 4, "webp.tif": 4}
names |= {"multiplied.tif": 2, "rgba.png": 4, "grey.png": 2}
with open(f"{folder}/manifest.jsonl", "w") as out:
    for name, bands in names.items():
        writer = f"rasterio {rasterio.__version__}, GDAL {rasterio.__gdal_version__}"
        if name.endswith(".png"):
            writer = f"Pillow {PIL.__version__}"
        with rasterio.open(f"{folder}/{name}") as d:
            assert d.count == bands
            x = d.read(list(range(1, bands)))
            masks = d.dataset_mask() > 0
            assert (d.read_masks(1) > 0).tolist() == masks.tolist()
        assert 0 < masks.sum() < masks.size
        valid = np.broadcast_to(masks, x.shape)
        filled = np.where(valid, x.astype("f4"), np.float32(-7))
        row = {
            "path": name,
            "kind": "tiff" if name.endswith(".tif") else "png",
            "writer": writer,
            "shape": x.shape,
            "dtype": str(x.dtype),
            "sha256": sha(x),
            "valid_sha256": sha(valid.astype("u1")),
            "filled_sha256": sha(filled),
            "window": [13, 5, 30, 50],  # first row and column, rows, columns
            "window_sha256": sha(filled[:, 13:43, 5:55]),
            "valid": [int(v.sum()) for v in valid],
        }
        print(json.dumps(row), file=out)
