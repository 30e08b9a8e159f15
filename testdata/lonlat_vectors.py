"""Writes lonlat.json: points of projected CRSs, and where PROJ has them.

Every vector is [EPSG code, x, y, longitude, latitude of PROJ, the same two of `lonlat` below as
hexadecimal float64]. internal/crs/lonlat must have the bits of the latter, and both must be near
the former.

    python testdata/lonlat_vectors.py > testdata/lonlat.json
"""

import json
import math
import random

from rasterio.warp import transform

POINTS = [
    (32631, 166021.44, 0.0),
    (32631, 833978.56, 0.0),
    (32719, 500000.0, 10000000.0),
    (32719, 399960.0, 8000040.0),
    (32601, 166100.5, 100.25),
    (32760, 833900.0, 9999000.0),
    (32633, 499980.0, 9000000.0),
    (32733, 600000.0, 1200000.0),
    (25832, 691875.6, 5334765.1),
    (26910, 550000.0, 4180000.0),
    (32618, -200000.0, 5000000.0),
    (32618, 1200000.0, 5000000.0),
    (3857, -20037508.0, -20037508.0),
    (3857, 1113194.9, 6446275.8),
    (3857, 0.0, 19000000.0),
    (4326, -71.25, -33.5),
    (4258, 10.5, 48.25),
]


_UTM_RADIUS = 6364902.1661650855
_UTM_BETA = (
    0.0008377321640600574,
    5.905869567933988e-08,
    1.6734888803548483e-10,
    2.1677377630220365e-13,
)
_UTM_DELTA = (
    0.0033565514691252124,
    6.571873083960133e-06,
    1.76465640047585e-08,
    5.400482081693544e-11,
)
_DEGREE = 57.29577951308232
_SPHERE = 6378137.0
_GEOGRAPHIC = (4326, 4258, 4269, 4283, 7844, 4674, 4167, 4171)


def lonlat(epsg: int, x: float, y: float) -> tuple[float, float] | None:
    """Returns longitude in [-180, 180) and latitude, in degrees, of a point of a CRS.

    They are the same, bit for bit, in Go: docs/order.md, Splits.

    Args:
        epsg: 4326 and other codes of longitude and latitude, UTM (326xx, 327xx, 258xx, 269xx) or
            3857.
        x: easting, or longitude.
        y: northing, or latitude.

    Returns:
        None for a point that the CRS does not have.

    Raises:
        ValueError: the CRS is not known.
    """
    zone, south = _utm_zone(epsg)
    found: tuple[float, float] | None
    if epsg in _GEOGRAPHIC:
        found = x, y
    elif epsg == 3857:
        found = _inverse_mercator(x, y)
    elif zone:
        found = _inverse_utm(x, y - 10_000_000 if south else y)
        found = found and (found[0] + (6 * zone - 183), found[1])
    else:
        raise ValueError(f"EPSG:{epsg} is not known")
    if found is None:
        return None
    lon, lat = found
    if lon >= 180:
        lon -= 360
    elif lon < -180:
        lon += 360
    return (lon, lat) if -180 <= lon < 180 and -90 <= lat <= 90 else None


def _utm_zone(epsg: int) -> tuple[int, bool]:
    """Returns the zone of UTM that a code stands for, or 0, and whether it is of the south."""
    if 32600 < epsg <= 32660:
        return epsg - 32600, False
    if 32700 < epsg <= 32760:
        return epsg - 32700, True
    if 25828 <= epsg <= 25838:
        return epsg - 25800, False
    return (epsg - 26900 if 26900 < epsg <= 26923 else 0), False


def _inverse_utm(x: float, y: float) -> tuple[float, float] | None:
    """Returns degrees from the central meridian, and the latitude."""
    xi, eta = y / _UTM_RADIUS, (x - 500_000) / _UTM_RADIUS
    if not (abs(xi) <= 2 and abs(eta) <= 1):
        return None
    s, c = _sin_cos(2 * xi)
    sh, ch = _sinh_cosh(2 * eta)
    sj, cj, shj, chj = s, c, sh, ch
    for j, b in enumerate(_UTM_BETA):
        if j:
            sj, cj = sj * c + cj * s, cj * c - sj * s
            shj, chj = shj * ch + chj * sh, chj * ch + shj * sh
        xi -= b * (sj * chj)
        eta -= b * (cj * shj)
    s, c = _sin_cos(xi)
    sh, _ = _sinh_cosh(eta)
    if c <= 0:
        return None
    chi = _arc_tan(s / math.sqrt(sh * sh + c * c))
    lon = _arc_tan(sh / c) * _DEGREE
    s, c = _sin_cos(2 * chi)
    sj, cj = s, c
    for j, d in enumerate(_UTM_DELTA):
        if j:
            sj, cj = sj * c + cj * s, cj * c - sj * s
        chi += d * sj
    return lon, chi * _DEGREE


def _inverse_mercator(x: float, y: float) -> tuple[float, float] | None:
    u, v = x / _SPHERE, y / _SPHERE
    if not (abs(u) <= 4 and abs(v) <= 4):
        return None
    return u * _DEGREE, _arc_tan(_sinh_cosh(v)[0]) * _DEGREE


def _sin_cos(t: float) -> tuple[float, float]:
    q = t * t
    s, c, ts, tc = t, 1.0, t, 1.0
    for i in range(1, 21):
        k = 2.0 * i
        tc = -(tc * q) / ((k - 1) * k)
        ts = -(ts * q) / (k * (k + 1))
        s, c = s + ts, c + tc
    return s, c


def _sinh_cosh(t: float) -> tuple[float, float]:
    e = term = 1.0
    for i in range(1, 51):
        term = term * t / i
        e += term
    inverse = 1 / e
    return (e - inverse) * 0.5, (e + inverse) * 0.5


def _arc_tan(t: float) -> float:
    for _ in range(3):
        t /= 1 + math.sqrt(1 + t * t)
    q, power, total = t * t, t, t
    for i in range(1, 17):
        power = -(power * q)
        total += power / (2 * i + 1)
    return 8 * total


def main() -> None:
    """Prints the vectors."""
    r = random.Random(1)
    points = list(POINTS)
    for _ in range(60):
        north = r.random() < 0.5
        y = r.uniform(0, 9.2e6)
        points.append(
            (
                (32600 if north else 32700) + r.randint(1, 60),
                r.uniform(1e5, 9e5),
                y if north else 1e7 - y,
            )
        )
    lines = []
    for epsg, x, y in points:
        (lon,), (lat,) = transform(f"EPSG:{epsg}", "EPSG:4326", [x], [y])
        ours = lonlat(epsg, x, y)
        assert ours is not None
        assert abs(math.remainder(ours[0] - lon, 360)) < 1e-8 and abs(ours[1] - lat) < 1e-8
        lines.append(json.dumps([epsg, x, y, lon, lat, ours[0].hex(), ours[1].hex()]))
    print("[" + ",\n".join(lines) + "]")


main()
