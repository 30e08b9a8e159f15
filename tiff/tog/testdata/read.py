"""Print what GDAL makes of TIFF files: one JSON object, by path."""

import hashlib
import json
import sys

import rasterio

try:
    from rio_cogeo.cogeo import cog_validate
except ImportError:
    cog_validate = None

rows = {}
for path in sys.argv[1:]:
    with rasterio.open(path) as f:
        a = f.read()
        t = f.transform
        tags = f.tags(ns="IMAGE_STRUCTURE")
        rows[path] = {
            "sha256": hashlib.sha256(a.tobytes()).hexdigest(),
            "shape": a.shape,
            "interleave": tags.get("INTERLEAVE", ""),
            "layout": tags.get("LAYOUT", ""),
            "transform": [t.c, t.a, t.b, t.f, t.d, t.e],
            "epsg": (f.crs.to_epsg() or 0) if f.crs else 0,
            "nodata": "" if f.nodata is None else f"{f.nodata:.10g}",
            "names": [n or "" for n in f.descriptions],
        }
    if cog_validate:
        rows[path]["cog"] = cog_validate(path, quiet=True)[0]
json.dump(rows, sys.stdout)
