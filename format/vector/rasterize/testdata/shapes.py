"""Masks of random shapes by rasterio.features.rasterize.

    pip install rasterio numpy shapely
    python format/vector/rasterize/testdata/shapes.py 150 > format/vector/rasterize/testdata/shapes.json   for TestShapes
    python format/vector/rasterize/testdata/shapes.py 10000                                         for TestLikeRasterio

A row has a transform, a height and a width, all_touched, a shape as GeoJSON, and the columns of each row that are covered, as
[row, from, to, …] of spans.
"""

import json
import random
import sys

import numpy as np
from affine import Affine
from rasterio.features import rasterize


def ring(r, cx, cy, size, snap):
    """Returns a closed ring around a place: a star, or one that crosses itself."""
    n = r.randint(3, 12)
    angles = [r.uniform(0, 2 * np.pi) for _ in range(n)]
    if r.random() < 0.8:
        angles.sort(reverse=r.random() < 0.5)
    points = [(cx + np.cos(a) * size * r.uniform(0.3, 1), cy + np.sin(a) * size * r.uniform(0.3, 1)) for a in angles]
    points = [(float(round(x * snap) / snap), float(round(y * snap) / snap)) if snap else (float(x), float(y)) for x, y in points]
    return [*points, points[0]]


def shape(r, h, w):
    """Returns a shape in pixels."""
    snap = r.choice([0, 0, 0, 1, 2, 4, 10])
    at = lambda: (r.uniform(-5, w + 5), r.uniform(-5, h + 5))  # noqa: E731
    near = lambda: tuple(float(round(v * snap) / snap) if snap else v for v in at())  # noqa: E731
    match r.randint(0, 9):
        case 0:
            return {"type": "Point", "coordinates": near()}
        case 1 | 2:
            return {"type": "LineString", "coordinates": [near() for _ in range(r.randint(2, 6))]}
        case 3:
            polygons = [[ring(r, *at(), r.uniform(1, 15), snap)] for _ in range(r.randint(2, 4))]
            return {"type": "MultiPolygon", "coordinates": polygons}
        case 4:
            x, y = near()
            a, b = (r.choice([1, 2, 3.5, 6]) for _ in range(2))
            box = [(x, y), (x + a, y), (x + a, y + b), (x, y + b), (x, y)]
            return {"type": "Polygon", "coordinates": [box if r.random() < 0.5 else box[::-1]]}
        case _:
            x, y = at()
            size = r.uniform(1, 30)
            holes = [ring(r, x, y, size / 3, snap) for _ in range(r.randint(0, 2))]
            return {"type": "Polygon", "coordinates": [ring(r, x, y, size, snap), *holes]}


def moved(c, t):
    """Returns coordinates on the ground."""
    if isinstance(c[0], (int, float)):
        return list(t * c)
    return [moved(p, t) for p in c]


def main():
    """Prints the rows."""
    r = random.Random(3)
    out = []
    for _ in range(int(sys.argv[1])):
        h, w = r.randint(1, 40), r.randint(1, 40)
        t = r.choice([Affine.identity(), Affine(10, 0, 499980, 0, -10, 4600020), Affine(0.25, 0, -12.5, 0, -0.25, 50)])
        s = shape(r, h, w)
        s["coordinates"] = moved(s["coordinates"], t)
        touched = r.random() < 0.5
        try:
            mask = rasterize([(s, 1)], (h, w), transform=t, all_touched=touched, dtype="uint8")
            wide = rasterize([(s, 1)], (h, w + 1), transform=t, all_touched=touched, dtype="uint8")
        except ValueError:  # it takes no shape that it calls invalid
            continue
        if (mask != wide[:, :w]).any():  # GDAL wrote past the end of a row, into the next one
            continue
        spans = []
        for y in range(h):
            edges = np.flatnonzero(np.diff(mask[y], prepend=0, append=0))
            spans += [[y, int(a), int(b)] for a, b in zip(edges[::2], edges[1::2], strict=True)]
        out.append(json.dumps({"transform": t.to_gdal(), "height": h, "width": w, "touched": touched, "shape": s, "spans": spans},
                              separators=(",", ":")))  # fmt: skip
    print("[" + ",\n".join(out) + "]")


if __name__ == "__main__":
    main()
