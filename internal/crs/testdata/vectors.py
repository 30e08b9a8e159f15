"""Writes vectors.json: points of every CRS of systems.txt that has a code, by PROJ.

    pip install pyproj
    python internal/crs/testdata/vectors.py > internal/crs/testdata/vectors.json

Each is [EPSG code, longitude, latitude, x, y]. Longitude and latitude are on the CRS's own datum,
where only the projection counts; one point a CRS, 40 of the usual ones, drawn from twice the area
of use. With "shifted" as argument: of CRSs whose datum is shifted, with longitude and latitude of
WGS 84 by the transformation whose parameters systems.txt has.
"""

import json
import random
import sys
import warnings
from pathlib import Path

import pyproj
from pyproj import CRS, Transformer

warnings.filterwarnings("ignore")
SYSTEMS = Path(__file__).parents[2] / "epsg" / "systems.txt"
# Systems whose points are drawn more densely: those most rasters are in.
MANY = {
    4326,
    3857,
    32601,
    32633,
    32660,
    32733,
    3031,
    3413,
    3995,
    5041,
    5042,
    3035,
    6931,
    6932,
    6933,
    5070,
    3577,
    2154,
    3347,
    3034,
    3978,
    27700,
    2180,
    3006,
    2193,
    28992,
    2056,
    54008,
    54009,
    3375,
    5880,
    2053,
    4087,
}


def crs_of(code):
    """Returns PROJ's CRS of a code of systems.txt."""
    if code in (900913, 3785, 102100, 102113):
        return CRS.from_epsg(3857)
    return CRS.from_authority("ESRI" if code > 50000 else "EPSG", code)


def areas(crs, r, n):
    """Yields longitudes and latitudes."""
    a = crs.area_of_use
    west, south, east, north = (a.west, a.south, a.east, a.north) if a else (-180, -90, 180, 90)
    if east < west:
        east += 360
    for _ in range(n):
        lon = (
            r.uniform(west - (east - west) / 2, east + (east - west) / 2)
            if east - west < 60
            else r.uniform(west, east)
        )
        lat = r.uniform(south - (north - south) / 2, north + (north - south) / 2)
        yield (lon + 180) % 360 - 180, max(-89.5, min(89.5, lat))


def main():
    """Prints the vectors."""
    r = random.Random(1)
    rows = []
    for line in SYSTEMS.read_text().splitlines():
        if line.startswith("#") or " longlat " in line:
            continue
        code = int(line.split()[0])
        crs = crs_of(code)
        shifted = "shifted" in sys.argv
        if shifted and code not in (
            27700,
            31467,
            28992,
            23032,
            2056,
            3844,
            26717,
            5514,
            3003,
            2393,
        ):
            continue
        t = Transformer.from_crs(
            CRS.from_epsg(4326) if shifted else crs.geodetic_crs, crs, always_xy=True
        )
        if shifted:
            group = pyproj.transformer.TransformerGroup(4326, crs, always_xy=True)
            t = next(x for x in group.transformers if "grid" not in x.definition)
        # PROJ measures longitudes of these from their own prime meridian, the package from
        # Greenwich.
        pm = crs.prime_meridian
        off = (
            0.0
            if shifted or pm is None
            else pm.longitude * pm.unit_conversion_factor / 0.017453292519943295
        )
        unit = crs.geodetic_crs.axis_info[0].unit_conversion_factor / 0.017453292519943295
        for lon, lat in areas(crs, r, 40 if code in MANY else 1):
            lon, lat = round(lon, 6), round(lat, 6)
            x, y = t.transform(
                lon if shifted else (lon - off) / unit, lat if shifted else lat / unit
            )
            if abs(x) < 1e9 and abs(y) < 1e9:
                rows.append(
                    json.dumps([code, lon, lat, round(x, 5), round(y, 5)], separators=(",", ":"))
                )
    print("[" + ",\n".join(rows) + "]")


if __name__ == "__main__":
    main()
