"""A GeoParquet file of a million polygons, for BenchmarkLayer.

    pip install numpy pyarrow
    python format/vector/testdata/million.py random|sorted none|bbox FILE

Octagons of 5 to 25 m in 100 by 100 km, at random or by rows of 1 km, without or with a covering.
"""

import json
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

N, CORNERS = 10**6, 8


def main():
    """Writes the file."""
    order, covering, path = sys.argv[1:]
    r = np.random.default_rng(1)
    x, y = r.uniform(400000, 500000, N), r.uniform(4500000, 4600000, N)
    if order == "sorted":
        rows = np.lexsort((x, y // 1000))
        x, y = x[rows], y[rows]
    width, height, turn = r.uniform(5, 25, N), r.uniform(5, 25, N), r.uniform(0, 6.28, N)
    angle = turn[:, None] + np.arange(CORNERS + 1) % CORNERS * 2 * np.pi / CORNERS
    xs, ys = x[:, None] + width[:, None] * np.cos(angle), y[:, None] + height[:, None] * np.sin(angle)
    head = [("order", "u1"), ("type", "<u4"), ("rings", "<u4"), ("points", "<u4")]
    wkb = np.zeros(N, np.dtype([*head, ("xy", "<f8", (CORNERS + 1, 2))]))
    wkb["order"], wkb["type"], wkb["rings"], wkb["points"] = 1, 3, 1, CORNERS + 1
    wkb["xy"] = np.stack([xs, ys], axis=-1)
    offsets = (np.arange(N + 1) * wkb.itemsize).astype("<i4")
    buffers = [None, pa.py_buffer(offsets.tobytes()), pa.py_buffer(wkb.tobytes())]
    columns = {"class": r.integers(1, 10, N).astype("i4"), "geometry": pa.Array.from_buffers(pa.binary(), N, buffers)}
    crs = {"name": "UTM", "id": {"authority": "EPSG", "code": 32630}}
    described = {"encoding": "WKB", "geometry_types": ["Polygon"], "crs": crs}
    if covering == "bbox":
        sides = {"xmin": xs.min(1), "ymin": ys.min(1), "xmax": xs.max(1), "ymax": ys.max(1)}
        columns["bbox"] = pa.StructArray.from_arrays([pa.array(v) for v in sides.values()], list(sides))
        described["covering"] = {"bbox": {name: ["bbox", name] for name in sides}}
    geo = {"version": "1.1.0", "primary_column": "geometry", "columns": {"geometry": described}}
    table = pa.table(columns).replace_schema_metadata({"geo": json.dumps(geo)})
    pq.write_table(table, path, compression="zstd", row_group_size=100000)


if __name__ == "__main__":
    main()
