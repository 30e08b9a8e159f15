"""Points by PROJ of the CRSs that Earth observation uses.

    pip install pyproj
    python internal/crs/testdata/transforms.py > internal/crs/testdata/transforms.json    pairs of CRSs, for TestTransforms
    python internal/crs/testdata/transforms.py areas                             each CRS over its area of use, for TestAreasOfUse

A row of the first is [EPSG code, EPSG code, x, y, x, y], where code 0 is the sinusoidal grid of MODIS; of the second
[EPSG code, longitude, latitude, x, y]. Longitude and latitude are those of the CRS's own datum; between two CRSs they are
kept, as is right for datums that are taken to be equal.
"""

import json
import math
import random
import sys
import warnings

from pyproj import CRS, Transformer

warnings.filterwarnings("ignore")
MODIS = "+proj=sinu +R=6371007.181 +units=m +no_defs"
UTM = [*range(32601, 32661), *range(32701, 32761), *range(25828, 25838), *range(26901, 26924)]
OTHER = [4326, 4258, 4269, 3857, 3035, 3034, 6931, 6932, 6933, 5070, 3577, 3031, 3413, 3995, 5041, 5042, 54008, 2154, 102001, 3978,
         3979, 3348, 3005, 6350, 54009, 3006, 2180, 3067, 2193, 7855, 28355, 31983, 5880, 3832, 3395]  # fmt: skip
PLACES = [(-122.1, 37.4), (2.3, 48.8), (15.2, 69.5), (151.2, -33.8), (-60.1, -3.1), (179.6, 51.9), (24.9, 0.3), (-68.0, 76.4), (10.0, -75.2)]


def crs_of(code):
    """Returns PROJ's CRS of a code."""
    if code == 0:
        return CRS.from_proj4(MODIS)
    return CRS.from_authority("ESRI" if 50000 < code < 200000 and code != 900913 else "EPSG", code)


def pairs():
    """Yields rows of two CRSs around some places."""
    r = random.Random(5)
    at = {}
    for code in [0, *OTHER, 32610, 32631, 32633, 32656, 32719, 32601, 32660, 32635, 32619, 25832, 26911]:
        crs = crs_of(code)
        a = crs.area_of_use
        to = Transformer.from_crs(crs.geodetic_crs, crs, always_xy=True)
        for lon, lat in PLACES:
            inside = not a or (a.west <= lon <= a.east if a.west < a.east else lon >= a.west or lon <= a.east) and a.south <= lat <= a.north
            if inside:
                at.setdefault((lon, lat), []).append((code, to))
    for (lon, lat), systems in at.items():
        for code, to in systems:
            for other, then in r.sample(systems, min(8, len(systems))):
                p = round(lon + r.uniform(-0.3, 0.3), 7), round(lat + r.uniform(-0.3, 0.3), 7)
                yield [code, other, *to.transform(*p), *then.transform(*p)]


def areas():
    """Yields rows of one CRS over its area of use."""
    r = random.Random(6)
    for code in [*UTM, *OTHER]:
        crs = crs_of(code)
        a = crs.area_of_use
        west, south, east, north = (a.west, a.south, a.east, a.north) if a else (-180, -90, 180, 90)
        east += 360 * (east < west)
        to = Transformer.from_crs(crs.geodetic_crs, crs, always_xy=True)
        for _ in range(200):
            lon, lat = round((r.uniform(west, east) + 180) % 360 - 180, 7), round(r.uniform(south, north), 7)
            if abs(lat) > 89.999:
                continue
            x, y = to.transform(lon, lat)
            if math.isfinite(x) and math.isfinite(y):
                yield [code, lon, lat, x, y]


def main():
    """Prints the rows."""
    rows = areas() if "areas" in sys.argv else pairs()
    print("[" + ",\n".join(json.dumps([round(v, 10 if abs(v) < 361 else 6) for v in row], separators=(",", ":")) for row in rows) + "]")


if __name__ == "__main__":
    main()
