"""Write the files of this folder and their manifest: write.py FOLDER.

The values are noise, so what is masked holds values like any other.
"""

import hashlib
import json
import sys
import warnings

import numpy as np
import rasterio
import tifffile

warnings.filterwarnings("ignore")
folder = sys.argv[1]
rng = np.random.default_rng(20)


def sha(a):
    """Return the hash of an array's bytes in C order."""
    return hashlib.sha256(np.ascontiguousarray(a).tobytes()).hexdigest()


def blobs(h, w):
    """A mask with an edge, a hole, single pixels and whole rows of 0."""
    y, x = np.mgrid[:h, :w]
    m = (x + y > 20) & ((y - h // 2) ** 2 + (x - w // 2) ** 2 > 90) & (rng.random((h, w)) > 0.03)
    m[h - 9 : h - 5] = False
    return m


def gdal(name, x, mask, **options):
    """Write an image with an internal mask."""
    b, h, w = x.shape
    with rasterio.Env(GDAL_TIFF_INTERNAL_MASK=True):
        with rasterio.open(
            f"{folder}/{name}", "w", count=b, height=h, width=w, dtype=x.dtype, **options
        ) as d:
            d.write(x)
            d.write_mask(mask)


images = {}
m = blobs(100, 90)
x = rng.integers(0, 60, (3, 100, 90)).astype("u2") * 50
cog = {"INTERLEAVE": "TILE", "BLOCKSIZE": 64, "COMPRESS": "ZSTD", "BIGTIFF": "YES"}
cog |= {"OVERVIEWS": "NONE", "PREDICTOR": "YES", "crs": "EPSG:32718"}
place = rasterio.transform.from_origin(5e5, 9e6, 10, 10)
gdal("tog.tif", x, m, driver="COG", nodata=150, transform=place, **cog)
images["tog.tif"] = (
    x,
    m,
    f"rasterio {rasterio.__version__}, GDAL {rasterio.__gdal_version__}",
)

m = blobs(61, 77)
x = (rng.integers(-40, 40, (2, 61, 77)) / 8).astype("f4")
x[rng.random(x.shape) < 0.05] = np.nan
strips = {"INTERLEAVE": "PIXEL", "COMPRESS": "DEFLATE", "PREDICTOR": 3, "ENDIANNESS": "BIG"}
gdal("strips-be.tif", x, m, driver="GTiff", BLOCKYSIZE=16, nodata=np.nan, **strips)
images["strips-be.tif"] = x, m, images["tog.tif"][2]

m = blobs(50, 70)
x = rng.integers(0, 256, (1, 50, 70)).astype("u1")
with tifffile.TiffWriter(f"{folder}/bytes.tif") as t:
    t.write(x[0], photometric="minisblack", tile=(16, 32), compression="lzw", metadata=None)
    t.write(
        m.astype("u1") * 255,
        photometric="minisblack",
        subfiletype=1,
        rowsperstrip=23,
        compression="packbits",
        metadata=None,
    )
with tifffile.TiffFile(f"{folder}/bytes.tif", mode="r+b") as t:  # which writes masks of bits only
    t.pages[1].tags[254].overwrite(4)
    t.pages[1].tags[262].overwrite(4)
images["bytes.tif"] = x, m, f"tifffile {tifffile.__version__}"

# A mask for each band, which neither GDAL nor tifffile calls a mask when they write it.
for name, planar in {"bands.tif": "contig", "planes.tif": "separate"}.items():
    m = np.stack([blobs(50, 70) for _ in range(3)])
    m[1, :20, :33] = False
    x = rng.integers(0, 256, (3, 50, 70)).astype("u1")
    how = {"photometric": "rgb", "planarconfig": planar, "compression": "zlib", "metadata": None}
    with tifffile.TiffWriter(f"{folder}/{name}") as t:
        for kind, a in enumerate([x, m.astype("u1") * 255]):
            grid = (
                {"tile": (16, 32)} if (planar == "contig") == (kind == 0) else {"rowsperstrip": 7}
            )
            a = a.transpose(1, 2, 0) if planar == "contig" else a
            t.write(np.ascontiguousarray(a), subfiletype=kind, **grid, **how)
    with tifffile.TiffFile(f"{folder}/{name}", mode="r+b") as t:
        t.pages[1].tags[254].overwrite(4)
    images[name] = x, m, images["bytes.tif"][2]

with open(f"{folder}/manifest.jsonl", "w") as out:
    for name, (x, m, writer) in images.items():
        with rasterio.open(f"{folder}/{name}") as d:  # what GDAL reads is what was written
            assert np.array_equal(d.read(), x, equal_nan=x.dtype.kind == "f")
            assert np.array_equal(d.read_masks() if m.ndim == 3 else d.dataset_mask(), m * 255), (
                name
            )
            nodata = d.nodata
        valid = np.broadcast_to(m, x.shape)  # GDAL takes the mask alone, also where there is a nodata value
        filled = np.where(valid, x.astype("f4"), np.float32(-7))
        row = {
            "path": name,
            "kind": "tiff",
            "writer": writer,
            "shape": x.shape,
            "dtype": str(x.dtype),
            "sha256": sha(x),
            "mask_sha256": sha(m.astype("u1") * 255),
            "valid_sha256": sha(valid.astype("u1")),
            "filled_sha256": sha(filled),
            "window": [13, 5, 30, 50],  # first row and column, rows, columns
            "window_sha256": sha(filled[:, 13:43, 5:55]),
            "valid": [int(v.sum()) for v in valid],
        }
        print(json.dumps(row), file=out)
