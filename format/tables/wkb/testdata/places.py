"""Writes places.json: which geometries of longitude and latitude meet a box, by shapely and the package antimeridian.

    pip install shapely antimeridian pyproj && python format/tables/wkb/testdata/places.py > format/tables/wkb/testdata/places.json

Each is [well-known text, [west, south, east, north], EPSG code of the box, meets, within]. The polygons lie about the antimeridian and
the poles, written as three kinds of programs write them: cut in two there, with longitudes over 180, or with a line back around the Earth.
"""

import json
import math
import random
import warnings

import antimeridian
from pyproj import Transformer
from shapely import affinity, box, union_all
from shapely.geometry import Polygon

warnings.filterwarnings("ignore")


def wrap(lon):
    """Returns a longitude from -180 to 180."""
    return (lon + 180) % 360 - 180


def turns(shape):
    """Returns a shape with its copies a turn to the west and east."""
    return union_all([affinity.translate(shape, k) for k in (-360, 0, 360)])


def ground(of, sides):
    """Returns a box as a shape of longitude and latitude."""
    west, south, east, north = sides
    if of == 4326:
        return turns(box(west, south, east + (360 if east < west else 0), north))
    n = 400
    line = [(west + (east - west) * k / n, south) for k in range(n)] + [(east, south + (north - south) * k / n) for k in range(n)]
    line += [(east - (east - west) * k / n, north) for k in range(n)] + [(west, north - (north - south) * k / n) for k in range(n)]
    there = Transformer.from_crs(of, 4326, always_xy=True)
    ring = [there.transform(*p) for p in line]
    return turns(antimeridian.fix_polygon(Polygon(ring)))


def main():
    """Prints the cases."""
    r = random.Random(1)
    rows = []
    for _ in range(2500):
        if len(rows) >= 500:
            break
        pole = r.random() < 0.15
        cx, cy, n = r.choice([180, 180, 0, -60]) + r.uniform(-4, 4), r.uniform(-60, 60), r.randint(4, 8)
        if pole:
            ring = [(-180 + 360 * (k + 0.5) / n, 80 + r.uniform(-5, 5)) for k in range(n)]
        else:
            ring = [(cx + r.uniform(2, 5) * math.cos(2 * math.pi * k / n), cy + r.uniform(2, 5) * math.sin(2 * math.pi * k / n)) for k in range(n)]
        ring = [(round(x, 3), round(y, 3)) for x, y in ring]
        back = Polygon([(round(wrap(x), 3), y) for x, y in ring])
        fixed = antimeridian.fix_polygon(back) if max(x for x, _ in ring) > 180 or min(x for x, _ in ring) < -180 or pole else Polygon(ring)
        shape = turns(fixed)
        text = r.choice([fixed.wkt, back.wkt, Polygon(ring).wkt]) if not pole else r.choice([back.wkt, fixed.wkt])
        of = r.choice([4326, 4326, 4326, 32601, 3413] if cy > 0 or pole else [4326, 32760])
        if of == 4326:
            x, y, w, h = (r.uniform(-180, 180) if pole else cx) + r.uniform(-6, 6), (85 if pole else cy) + r.uniform(-6, 6), 10 ** r.uniform(-1, 1.3), 10 ** r.uniform(-1, 1.3)
            sides = [wrap(x - w), max(-90, y - h), wrap(x + w), min(90, y + h)]
        else:
            x, y = Transformer.from_crs(4326, of, always_xy=True).transform(wrap(cx) if not pole else 0, cy if not pole else 86)
            w = 10 ** r.uniform(4, 6)
            x, y = x + r.uniform(-6e5, 6e5), y + r.uniform(-6e5, 6e5)
            sides = [x - w, y - w, x + w, y + w]
            if of != 3413 and (abs(x - 5e5) > 1.5e6 or w > 5e5 or not 0 < y < 1e7 or abs(cx) < 170):
                continue
        sides = [round(v, 4) for v in sides]
        if sides[1] >= sides[3]:
            continue
        place = ground(of, sides)
        same = {(shape.intersects(place.buffer(d)), fixed.within(place.buffer(d))) for d in (-0.02, 0, 0.02)}
        if len(same) == 1:
            meets, within = same.pop()
            rows.append(json.dumps([text, sides, of, meets, within]))
    print("[" + ",\n".join(rows) + "]")


main()
