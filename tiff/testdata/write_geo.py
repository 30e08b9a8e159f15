"""Write TIFF files that say in many ways where they lie, and print what GDAL makes of each: one JSON object, by path.

    write_geo.py FOLDER SEED COUNT
"""

import json
import random
import re
import sys
import warnings
from pathlib import Path

import numpy as np
import pyproj
import rasterio
import tifffile
from rasterio.crs import CRS

warnings.filterwarnings("ignore")
USUAL = [
    3857, 32633, 32733, 32601, 4326, 4269, 4258, 4267, 26917, 25832, 2154, 27700, 3035, 3034, 5070, 3031, 3413, 6933, 6931, 28992, 2056, 21781,
    2263, 3577, 31467, 28355, 3006, 2193, 3978, 5041, 3995, 2180, 32661, 3347, 3395, 3338, 7844, 4647, 2393, 3003, 5880, 3375,
]  # fmt: skip

OTHERS = [int(c.code) for c in pyproj.database.query_crs_info("EPSG", pyproj.enums.PJType.PROJECTED_CRS)]


def write(path, keys, scale, ties, matrix):
    """Writes a file of 4 x 4 pixels with GeoKeys and tags as they are given."""
    doubles, text, directory = [], "", [1, 1, 0, len(keys)]
    for i, v in sorted(keys.items()):
        if isinstance(v, str):
            directory += [i, 34737, len(v) + 1, len(text)]
            text += v + "|"
        elif isinstance(v, float):
            directory += [i, 34736, 1, len(doubles)]
            doubles.append(v)
        else:
            directory += [i, 0, 1, v]
    tags = [(34735, "H", len(directory), tuple(directory), True)]
    if doubles:
        tags.append((34736, "d", len(doubles), tuple(doubles), True))
    if text:
        tags.append((34737, "s", 0, text, True))
    if matrix:
        tags.append((34264, "d", 16, matrix, True))
    else:
        tags += [(33550, "d", 3, scale, True), (33922, "d", len(ties), ties, True)]
    tifffile.imwrite(path, np.zeros((4, 4), "uint8"), extratags=tags, metadata=None)


def keys_of(path):
    """Returns the GeoKeys of a file."""
    with tifffile.TiffFile(path) as t:
        tags = t.pages[0].tags
        k = tags[34735].value
        values = {34736: tags[34736].value if 34736 in tags else (), 34737: tags[34737].value if 34737 in tags else ""}
    out = {}
    for i in range(4, len(k), 4):
        key, where, n, v = k[i : i + 4]
        out[key] = v if where == 0 else values[where][v] if where == 34736 else values[where][v : v + n - 1]
    return out


def crs_of(r):
    """Returns a CRS, sometimes as text without codes."""
    code = r.choice(USUAL)
    if r.random() < 0.3:
        code = r.choice(OTHERS)
    crs = CRS.from_epsg(code)
    form = r.choice(["code", "esri", "none"])
    if form == "esri":
        return CRS.from_wkt(pyproj.CRS.from_epsg(code).to_wkt("WKT1_ESRI"))
    if form == "none":
        return CRS.from_wkt(re.sub(r',AUTHORITY\["EPSG","?\d+"?\]\]$', "]", crs.to_wkt(version="WKT1_GDAL")))
    return crs


def main():
    """Writes the files."""
    folder, seed, count = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    r = random.Random(seed)
    rows = {}
    while len(rows) < count:
        path = str(folder / f"{len(rows)}.tif")
        try:
            crs = crs_of(r)
            options = {"GEOTIFF_KEYS_FLAVOR": r.choice(["STANDARD", "ESRI_PE"]), "GEOTIFF_VERSION": r.choice(["1.0", "1.1"])}
            shape = {"driver": "GTiff", "width": 4, "height": 4, "count": 1, "dtype": "uint8"}
            with rasterio.open(path, "w", **shape, **options, crs=crs, transform=rasterio.Affine(1, 0, 0, 0, -1, 0)) as f:
                f.write(np.zeros((1, 4, 4), "uint8"))
            keys = keys_of(path)
        except Exception:
            continue
        how = "as GDAL wrote it"
        if r.random() < 0.3:  # other writers forget
            gone = r.choice(list(keys))
            how = f"without key {gone}"
            del keys[gone]
        keys[1025] = r.choice([1, 1, 2])
        f = lambda: round(r.uniform(-1000, 1000), 3)  # noqa: E731
        scale = (r.choice([10.0, 0.5]), r.choice([10.0, 0.25, -10.0]), 0.0)
        ties = (float(r.choice([0, 0, 2])), float(r.choice([0, 0, 3])), 0.0, f(), f(), 0.0)
        if r.random() < 0.1:
            ties += (4.0, 4.0, 0.0, f(), f(), 0.0)
        matrix = None
        if r.random() < 0.3:
            matrix = (f(), f(), 0.0, f(), f(), f(), 0.0, f(), 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0)
        write(path, keys, scale, ties, matrix)
        with rasterio.open(path) as src:
            epsg = (src.crs.to_epsg() or 0) if src.crs else 0
            t = src.transform
            same = 0
            if epsg and not src.crs.is_geographic:  # a point of the CRS that GDAL has, for CRSs with the same parameters
                c = pyproj.CRS.from_epsg(epsg)
                area = c.area_of_use
                there = pyproj.Transformer.from_crs(c.geodetic_crs, c, always_xy=True)
                p = ((area.west + area.east) / 2, (area.south + area.north) / 2)
                same = [*p, *there.transform(*p)]
            rows[path] = {"epsg": epsg, "point": same or None, "how": how, "transform": [t.c, t.a, t.b, t.f, t.d, t.e], "wkt": src.crs.to_wkt() if src.crs else "", "keys": str(keys)}
    json.dump(rows, sys.stdout)


main()
