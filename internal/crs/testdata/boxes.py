"""Writes boxes.json: which boxes meet and hold which rasters, by PROJ and by looking at many points.

    pip install pyproj numpy && python internal/crs/testdata/boxes.py > internal/crs/testdata/boxes.json

Each is [EPSG code of the raster, [minx, miny, maxx, maxy], [west, south, east, north], EPSG code of the box, meets, holds]. The
answer is that of 41 x 41 points of each of the two in the other; cases in which a raster a hundredth wider or narrower would have
another answer are left out.
"""

import functools
import json
import random
import warnings

import numpy as np
from pyproj import CRS, Transformer

warnings.filterwarnings("ignore")
# CRS: where rasters of it lie (west, south, east, north; east over 180 crosses the antimeridian).
PLACES = {
    4326: (-180, -85, 180, 85), 32601: (-180.5, 10, -174, 70), 32760: (174, -70, 180.5, -10), 32633: (11, 1, 19, 80), 32733: (11, -70, 19, -1),
    3857: (-180, -70, 180, 70), 3460: (176, -21, 183, -12), 3031: (-180, -89.9, 180, -60), 3413: (-180, 60, 180, 89.9), 6931: (-180, 20, 180, 89.9),
    3035: (-10, 35, 40, 68), 6933: (-180, -80, 180, 80), 5070: (-125, 25, -68, 48), 2154: (-4, 42, 9, 51), 3338: (-190, 52, -135, 70), 54009: (-179, -80, 179, 80),
    54008: (-179, -80, 179, 80), 2193: (166, -47, 182, -34),
}  # fmt: skip


def crs_of(code):
    """Returns a CRS."""
    return CRS.from_authority("ESRI" if code > 50000 else "EPSG", code)


@functools.lru_cache(maxsize=None)
def way(a, b):
    """Returns the transformation between the CRSs of two codes."""
    return Transformer.from_crs(crs_of(a), crs_of(b), always_xy=True)


def grid(box, n=41):
    """Returns points of a box."""
    x, y = np.meshgrid(np.linspace(box[0], box[2], n), np.linspace(box[1], box[3], n))
    return x.ravel(), y.ravel()


def inside(lon, lat, box):
    """Reports which points are in a box that may cross the antimeridian."""
    west, south, east, north = box
    width = east - west if east >= west else east - west + 360
    return (((lon - west) % 360 <= width) | (width >= 360)) & (lat >= south) & (lat <= north)


def within(x, y, rect):
    """Reports which points are in a rectangle."""
    return (x >= rect[0]) & (x <= rect[2]) & (y >= rect[1]) & (y <= rect[3])


def answer(code, rect, box, of):
    """Returns (meets, holds)."""
    there, back = way(4326, code), way(code, 4326)
    lon, lat = back.transform(*grid(rect))
    if of == 4326:
        hit = inside(lon, lat, box)
        blon, blat = grid([box[0], box[1], box[2] + (360 if box[2] < box[0] else 0), box[3]])
    else:
        to = way(4326, of)
        hit = within(*to.transform(lon, lat), box)
        blon, blat = way(of, 4326).transform(*grid(box))
    x, y = there.transform(blon, blat)
    meets = bool(hit.any()) or bool(within(x, y, rect).any())
    if code == 4326:  # a raster may go on past 180 degrees
        meets = meets or any(within(blon + k, blat, rect).any() for k in (-720, -360, 360, 720))
    return meets, bool(hit.all())


def grown(rect, by):
    """Returns a rectangle with its sides moved by a part of them."""
    dx, dy = (rect[2] - rect[0]) * by, (rect[3] - rect[1]) * by
    return [rect[0] - dx, rect[1] - dy, rect[2] + dx, rect[3] + dy]


def main():
    """Prints the cases."""
    r = random.Random(1)
    rows, had = [], {}
    for _ in range(6000):
        code = r.choice(list(PLACES))
        west, south, east, north = PLACES[code]
        lon, lat = r.uniform(west, east), r.uniform(south, north)
        x, y = way(4326, code).transform(lon, lat)
        size = 10 ** r.uniform(3, 6)
        if code == 4326:
            x, size = x + r.choice([0, 0, 360]) * (lon < 0), size / 1e5
        rect = [x - size / 2, y - size / 2, x + size / 2, y + size / 2]
        if code == 4326 and (rect[1] < -90 or rect[3] > 90):
            continue
        of = r.choice([4326, 4326, 4326, 3035, 32633, 3413]) if code in (3035, 32633, 3413, 6931, 4326) else 4326
        w, h = 10 ** r.uniform(-1, 2.5), 10 ** r.uniform(-1, 2)
        if of == 4326:
            a, b = lon + r.uniform(-w, w) * 0.8, lat + r.uniform(-h, h) * 0.8
            box = [a - w / 2, max(-90, b - h / 2), a + w / 2, min(90, b + h / 2)]
            if box[1] >= box[3]:
                continue
            if w >= 350:
                box[0], box[2] = -180, 180
            else:
                box[0], box[2] = ((v + 180) % 360 - 180 for v in (box[0], box[2]))
        else:
            cx, cy = way(4326, of).transform(lon, lat)
            far = 10 ** r.uniform(3, 6.3)
            if abs(cx) > 4e6 or abs(cy) > 8e6:
                continue
            cx, cy = cx + r.uniform(-far, far), cy + r.uniform(-far, far)
            box = [cx - far / 2, cy - far / 2, cx + far / 2, cy + far / 2]
        same = {answer(code, grown(rect, by), box, of) for by in (-0.1, -0.01, 0, 0.01, 0.1)}
        if len(same) > 1:
            continue
        meets, holds = same.pop()
        key = (code, of, meets, holds)
        if had.get(key, 0) >= 10:
            continue
        had[key] = had.get(key, 0) + 1
        rows.append(json.dumps([code, [round(v, 4) for v in rect], [round(v, 4) for v in box], of, meets, holds]))
    print("[" + ",\n".join(rows) + "]")


main()
