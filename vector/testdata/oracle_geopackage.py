"""Random layers in GeoPackage files as GDAL writes them, and what GDAL reads of them.

    python vector/testdata/oracle_geopackage.py DIR SEED      # with pyogrio and shapely

Layers differ in geometry types, versions of GeoPackage, indexes, coordinates z, rows that were
deleted, and missing shapes and values. Prints a line of JSON for each layer: the file, the column,
the EPSG code and, in the order of the file, each shape as WKB in hex and its value.
"""

import json
import sqlite3
import sys
from pathlib import Path

import numpy as np
import pyogrio
import shapely

KINDS = ("Point", "LineString", "Polygon", "MultiPolygon", "Unknown")


def shape(rng, kind, epsg, z):
    """Returns a random shape of a kind, of any kind for "Unknown"."""
    kind = KINDS[rng.integers(0, 4)] if kind == "Unknown" else kind
    size, corner = (1, (-3, 41)) if epsg == 4326 else (1e5, (500000, 4500000))

    def points(n, at, r):
        angle = np.linspace(0, 2 * np.pi, n, endpoint=False) + rng.uniform(0, 1)
        flat = at + r * np.stack([np.cos(angle), np.sin(angle)], 1)
        return np.column_stack([flat, rng.uniform(0, 100, n)]) if z else flat

    def polygon():
        at, r = corner + rng.uniform(0, size, 2), size * rng.uniform(1e-4, 1e-2)
        holes = [points(rng.integers(3, 7), at, r / 3)] if rng.uniform() < 0.3 else []
        return shapely.Polygon(points(rng.integers(3, 40), at, r), holes)

    if kind == "Point":
        return shapely.Point(points(1, corner + rng.uniform(0, size, 2), 0)[0])
    if kind == "LineString":
        return shapely.LineString(points(rng.integers(2, 9), corner, size * rng.uniform(0.1, 1)))
    if kind == "Polygon":
        return polygon()
    return shapely.MultiPolygon([polygon() for _ in range(rng.integers(1, 4))])


def write(path, rng, kind, epsg, version, index, z):
    """Writes a layer of 1 to 1500 shapes; a part has no shape, and in the first column no value."""
    n = int(rng.integers(1, 1500))
    shapes = np.array([shape(rng, kind, epsg, z) for _ in range(n)])
    wkb = shapely.to_wkb(shapes, flavor="iso").astype(object)
    wkb[rng.uniform(size=n) < 0.05] = None
    fields = {
        "whole": rng.integers(-9, 9, n),
        "real": rng.normal(size=n),
        "text": np.array([f"class {k}" for k in rng.integers(0, 7, n)], object),
    }
    mask = rng.uniform(size=n) < 0.1
    pyogrio.raw.write(
        str(path),
        geometry=wkb,
        field_data=list(fields.values()),
        fields=list(fields),
        field_mask=[mask, None, None],
        layer="shapes",
        driver="GPKG",
        geometry_type=f"{kind} Z" if z and kind != "Unknown" else kind,
        crs=f"EPSG:{epsg}",
        dataset_options={"VERSION": version},
        layer_options={"SPATIAL_INDEX": index},
    )
    if index == "NO":  # triggers of an index need functions that only GDAL has
        db = sqlite3.connect(path)
        db.execute("DELETE FROM shapes WHERE fid % 5 = 3")
        db.commit()
        db.close()


def main():
    """Writes the files, and prints what GDAL reads of them."""
    out, rng = Path(sys.argv[1]), np.random.default_rng(int(sys.argv[2]))
    k = 0
    for kind in KINDS:
        for version in ("1.2", "1.3", "1.4"):
            epsg, z = [(4326, False), (32630, True), (3035, False), (32630, False)][k % 4]
            path = out / f"{k}.gpkg"
            write(path, rng, kind, epsg, version, ("YES", "NO")[k % 2], z)
            column = ("whole", "real", "text")[k % 3]
            _, _, wkb, (values,) = pyogrio.raw.read(str(path), columns=[column])
            read = shapely.from_wkb(wkb)
            row = {
                "file": path.name,
                "column": column,
                "epsg": epsg,
                "shapes": [s and shapely.to_wkb(s, hex=True, flavor="iso") for s in read],
                "values": [None if v != v else v for v in values.tolist()],
            }
            print(json.dumps(row))
            k += 1


if __name__ == "__main__":
    main()
