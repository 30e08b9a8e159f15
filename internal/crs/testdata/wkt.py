"""Writes wkt.json: well-known text without codes, as ESRI and GDAL write it, of every fortieth CRS of systems.txt and the usual ones.

    pip install pyproj && python internal/crs/testdata/wkt.py > internal/crs/testdata/wkt.json

Each is [EPSG code, text, longitude, latitude, x, y]: a point of the CRS by PROJ, for texts that several CRSs have.
"""

import json
import re
import sys
import warnings
from pathlib import Path

from pyproj import CRS, Transformer

sys.path.insert(0, str(Path(__file__).parent))
from vectors import MANY, SYSTEMS, crs_of

warnings.filterwarnings("ignore")


def main():
    """Prints the texts."""
    rows = []
    for i, line in enumerate(SYSTEMS.read_text().splitlines()):
        code = 0 if line.startswith("#") else int(line.split()[0])
        if " longlat " in line or not code or i % 40 and code not in MANY or code in (900913, 3785, 102100, 102113):
            continue
        crs = crs_of(code)
        area = crs.area_of_use
        lon, lat = (area.west + 0.3, (area.south + area.north) / 2) if area else (1, 2)
        x, y = Transformer.from_crs(crs.geodetic_crs, crs, always_xy=True).transform(lon, lat)
        for version in ("WKT1_ESRI", "WKT1_GDAL"):
            try:
                text = crs.to_wkt(version)
            except Exception:
                continue
            # ESRI writes the scale of 3000 as a parallel.
            if text and code != 3000 and "wsu" not in line and "pm=" not in line and abs(x) < 1e9:
                rows.append(json.dumps([code, re.sub(r',AUTHORITY\["\w+","?\w+"?\]', "", text), lon, lat, x, y]))
    print("[" + ",\n".join(rows) + "]")


main()
