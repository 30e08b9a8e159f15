"""Shapes in GeoParquet files, and masks of windows of them by rasterio.

    pip install rasterio numpy pyarrow
    python format/vector/testdata/shapes.py format/vector/testdata 40      for TestMasks
    python format/vector/testdata/shapes.py DIR 500                 for TestMasksLikeRasterio

Writes DIR/NAME.parquet, two of them as GeoJSON, too, and DIR/masks.json: rows of the file, the column, the EPSG code and the
transform of an image, all_touched, and the mask that rasterio.features.rasterize draws of the
shapes as rasterio.warp (PROJ) converts them, as runs of equal values.
"""

import json
import random
import struct
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from affine import Affine
from rasterio.features import rasterize
from rasterio.warp import transform, transform_geom

CLASSES = ["field", "forest", "water"]


def ring(r, x, y, size):
    """Returns a closed ring around a place."""
    angles = sorted(r.uniform(0, 2 * np.pi) for _ in range(r.randint(3, 9)))
    points = [(x + np.cos(a) * size * r.uniform(0.4, 1), y + np.sin(a) * size * r.uniform(0.4, 1)) for a in angles]
    return [(float(a), float(b)) for a, b in [*points, points[0]]]


def shape(r, x, y, size):
    """Returns a shape around a place."""
    match r.randint(0, 7):
        case 0:
            return {"type": "Point", "coordinates": (x, y)}
        case 1:
            return {"type": "LineString", "coordinates": ring(r, x, y, size)[:-1]}
        case 2:
            parts = [[ring(r, x + r.uniform(-size, size), y, size / 2)] for _ in range(2)]
            return {"type": "MultiPolygon", "coordinates": parts}
        case _:
            return {"type": "Polygon", "coordinates": [ring(r, x, y, size), ring(r, x, y, size / 4)]}


def wkb(s, z=None):
    """Returns a shape as WKB, with z if it is given."""
    code = {"Point": 1, "LineString": 2, "Polygon": 3, "MultiPolygon": 6}[s["type"]]
    c = s["coordinates"]
    out = struct.pack("<BI", 1, code + (0 if z is None else 1000))
    line = lambda points: struct.pack("<I", len(points)) + b"".join(at(p) for p in points)  # noqa: E731
    at = lambda p: struct.pack("<dd", *p) + (b"" if z is None else struct.pack("<d", z))  # noqa: E731
    if code == 1:
        return out + at(c)
    if code == 2:
        return out + line(c)
    if code == 3:
        return out + struct.pack("<I", len(c)) + b"".join(line(part) for part in c)
    return out + struct.pack("<I", len(c)) + b"".join(wkb({"type": "Polygon", "coordinates": p}, z) for p in c)


def corners(c):
    """Returns all points of coordinates."""
    return [c] if isinstance(c[0], float) else [p for part in c for p in corners(part)]


def write(path, shapes, epsg, *, covering, z, group):
    """Writes shapes as GeoParquet: some without a value, one without a shape."""
    names = [CLASSES[i % 3] if i % 7 else None for i in range(len(shapes))]
    values = [(i * 37) % 251 if i % 11 else None for i in range(len(shapes))]
    columns = {
        "value": pa.array(values, pa.int32()),
        "height": pa.array([i / 8 for i in range(len(shapes))], pa.float64()),
        "class": pa.array(names, pa.string()),
        "geometry": pa.array([None if s is None else wkb(s, z) for s in shapes], pa.binary()),
    }
    described = {"encoding": "WKB", "geometry_types": []}
    if epsg != 4326:
        described["crs"] = {"type": "ProjectedCRS", "name": f"EPSG {epsg}", "id": {"authority": "EPSG", "code": epsg}}
    if covering:
        boxes = []
        for s in shapes:
            p = corners(s["coordinates"]) if s else None
            x, y = zip(*p, strict=True) if p else ((), ())
            boxes.append({"xmin": min(x), "ymin": min(y), "xmax": max(x), "ymax": max(y)} if p else None)
        kind = pa.struct([(n, pa.float32()) for n in ("xmin", "ymin", "xmax", "ymax")])
        columns["bbox"] = pa.array(boxes, kind)
        described["covering"] = {"bbox": {n: ["bbox", n] for n in ("xmin", "ymin", "xmax", "ymax")}}
    geo = {"version": "1.1.0", "primary_column": "geometry", "columns": {"geometry": described}}
    table = pa.table(columns).replace_schema_metadata({"geo": json.dumps(geo)})
    pq.write_table(table, path, row_group_size=group, data_page_size=4096, compression="zstd")
    return names, values


def write_text(path, shapes, names, values, epsg, z):
    """Writes shapes as GeoJSON."""
    features = []
    for i, (s, n, v) in enumerate(zip(shapes, names, values, strict=True)):
        properties = {"height": i / 8, "value": v}
        if n:
            properties["class"] = n
        features.append({"type": "Feature", "properties": properties, "geometry": s and with_z(s, z)})
    out = {"type": "FeatureCollection", "name": path.stem}
    if epsg != 4326:
        out["crs"] = {"type": "name", "properties": {"name": f"urn:ogc:def:crs:EPSG::{epsg}"}}
    path.write_text(json.dumps(out | {"features": features}, separators=(",", ":")))


def with_z(s, z):
    """Returns a shape with z, if it is given."""
    if z is None:
        return s
    if isinstance(s, dict):
        return {"type": s["type"], "coordinates": with_z(s["coordinates"], z)}
    return [*s, z] if isinstance(s[0], float) else [with_z(p, z) for p in s]


def runs(mask):
    """Returns a mask as value, count, value, count, …"""
    flat = mask.ravel()
    edges = np.flatnonzero(np.diff(flat)) + 1
    starts = [0, *edges.tolist()]
    return [int(v) for a, b in zip(starts, [*starts[1:], flat.size], strict=True) for v in (flat[a], b - a)]


def main():
    """Writes the files."""
    out, count = Path(sys.argv[1]), int(sys.argv[2])
    r = random.Random(5)
    rows = []
    # name, CRS of the shapes, CRS of the images, a place there, z, covering, rows of a group
    for name, shapes_in, images_in, (cx, cy), z, covering, group in (
        ("utm", 32630, 32630, (500000.0, 4600000.0), None, False, 1000),
        ("lonlat", 4326, 32633, (450000.0, 5300000.0), 7.0, True, 60),
        ("laea", 3035, 32632, (600000.0, 5500000.0), None, True, 100),
        ("mercator", 3857, 4326, (-70.0, -33.0), None, False, 50),
        ("antimeridian", 4326, 32601, (170000.0, 6000000.0), None, False, 200),
    ):
        metre = 1.0 if images_in != 4326 else 1e-5
        shapes = []
        for _ in range(200):
            x, y = cx + r.uniform(-400, 400) * metre, cy + r.uniform(-400, 400) * metre
            s = shape(r, x, y, r.uniform(5, 80) * metre)
            if shapes_in != images_in:
                s = transform_geom(f"EPSG:{images_in}", f"EPSG:{shapes_in}", s)
            s["coordinates"] = json.loads(json.dumps(s["coordinates"]))
            shapes.append(s)
        shapes[3] = None
        names, values = write(out / f"{name}.parquet", shapes, shapes_in, covering=covering, z=z, group=group)
        if name in ("utm", "lonlat"):
            write_text(out / f"{name}.geojson", shapes, names, values, shapes_in, z)
        placed = shapes
        if shapes_in != images_in:
            placed = [s and moved(s, shapes_in, images_in) for s in shapes]
        for k in range(count // 5):
            n, size = r.choice([16, 33]), r.choice([2.5, 5, 10]) * metre
            x, y = cx + r.uniform(-500, 300) * metre, cy + r.uniform(-300, 500) * metre
            if k == 0:  # beside all shapes
                x += 1e4 * metre
            t = Affine(size, 0, round(x / size) * size, 0, -size, round(y / size) * size)
            touched = r.random() < 0.4
            column = r.choice(["", "value", "class", "instances"])
            burn = {"": [1] * 200, "value": values, "instances": list(range(1, 201)),
                    "class": [n and CLASSES.index(n) + 1 for n in names]}[column]  # fmt: skip
            draw = [(s, v) for s, v in zip(placed, burn, strict=True) if s and v is not None]
            mask = rasterize(draw, (n, n), transform=t, all_touched=touched, dtype="int32")
            rows.append(json.dumps({"file": name, "column": column, "epsg": images_in, "transform": t.to_gdal(), "size": n,
                                    "touched": touched, "mask": runs(mask)}, separators=(",", ":")))  # fmt: skip
    (out / "masks.json").write_text("[" + ",\n".join(rows) + "]\n")


def moved(s, a, b):
    """Returns a shape point by point in another CRS: transform_geom would cut at the antimeridian."""
    if isinstance(s, dict):
        return {"type": s["type"], "coordinates": moved(s["coordinates"], a, b)}
    if isinstance(s[0], float):
        (x,), (y,) = transform(f"EPSG:{a}", f"EPSG:{b}", [s[0]], [s[1]])
        return [x, y]
    return [moved(p, a, b) for p in s]


if __name__ == "__main__":
    main()
