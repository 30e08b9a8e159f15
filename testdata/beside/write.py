"""Write the files of this folder and their manifest: write.py FOLDER."""

import hashlib
import json
import sys
import warnings
from pathlib import Path

import numpy as np
import rasterio

warnings.filterwarnings("ignore")
folder = Path(sys.argv[1])
rng = np.random.default_rng(22)
HEIGHT, WIDTH = 50, 70
PAM = """<PAMDataset>
  <SRS dataAxisToSRSAxisMapping="1,2">EPSG:32630</SRS>
  <GeoTransform> 5.0e+05, 1.0e+01, 0.0, 4.6e+06, 0.0, -1.0e+01</GeoTransform>
  <Metadata><MDI key="AREA_OR_POINT">Area</MDI></Metadata>
  <PAMRasterBand band="1"><Description>red</Description><NoDataValue>7</NoDataValue></PAMRasterBand>
  <PAMRasterBand band="2"><NoDataValue>7</NoDataValue></PAMRasterBand>
</PAMDataset>
"""


def sha(a):
    """Return the hash of an array's bytes in C order."""
    return hashlib.sha256(np.ascontiguousarray(a).tobytes()).hexdigest()


def write(name, bands, **options):
    """Write noise of few values, and nothing beside it."""
    x = rng.integers(0, 20, (bands, HEIGHT, WIDTH)).astype("u1")
    profile = {"count": bands, "height": HEIGHT, "width": WIDTH, "dtype": "uint8"}
    with rasterio.open(folder / name, "w", **({"driver": "GTiff"} | profile | options)) as d:
        d.write(x)
    (folder / f"{name}.aux.xml").unlink(missing_ok=True)


write("mask.tif", 2, nodata=3, COMPRESS="DEFLATE")
opaque = rng.random((HEIGHT, WIDTH)) > 0.1
opaque[20:30] = False
with rasterio.Env(GDAL_TIFF_INTERNAL_MASK=False), rasterio.open(folder / "mask.tif", "r+") as d:
    d.write_mask(opaque)
place = rasterio.Affine(30, 0, 1000, 0, -30, 2000)
write("pam.tif", 2, nodata=3, crs="EPSG:32633", transform=place)
(folder / "pam.tif.aux.xml").write_text(PAM)
write("world.tif", 1, nodata=3)
(folder / "world.tfw").write_text("10\n1\n-2\n-10\n500005\n4599995\n")
write("world.png", 1, driver="PNG")
(folder / "world.png.aux.xml").write_text(PAM.replace("GeoTransform", "Other"))
(folder / "world.pgw").write_text("20.0\n0.0\n0.0\n-20.0\n300010.0\n4999990.0\n")

with open(folder / "manifest.jsonl", "w") as out:
    for name in ("mask.tif", "pam.tif", "world.tif", "world.png"):
        with rasterio.open(folder / name) as d:
            x, valid = d.read(), d.read_masks() > 0
            transform = d.transform.to_gdal() if not d.transform.is_identity else None
            epsg = d.crs.to_epsg() if d.crs else 0
        assert 0 < valid.sum() < valid.size
        filled = np.where(valid, x.astype("f4"), np.float32(-7))
        row = {
            "path": name,
            "kind": name[-3:],
            "shape": x.shape,
            "dtype": str(x.dtype),
            "sha256": sha(x),
            "valid_sha256": sha(valid.astype("u1")),
            "filled_sha256": sha(filled),
            "window": [13, 5, 30, 50],  # first row and column, rows, columns
            "window_sha256": sha(filled[:, 13:43, 5:55]),
            "valid": [int(v.sum()) for v in valid],
            "transform": transform,
            "epsg": epsg,
        }
        print(json.dumps(row), file=out)
