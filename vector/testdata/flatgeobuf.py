"""Shapes in FlatGeobuf files as GDAL writes them, and the same shapes in GeoParquet.

    pip install pyogrio pyarrow shapely
    python vector/testdata/flatgeobuf.py vector/testdata

NAME_plain.fgb has the shapes of NAME.parquet in their order, without an index. NAME_index.fgb has
those with a geometry and with an index, which gives them another order: NAME_index.parquet has them
as GDAL reads them from there. types_plain.fgb has geometries and columns of every type that GDAL
writes, and types.parquet the same.
"""

import json
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pyogrio
from shapely import from_wkt, to_wkb

HOLE = "((0 0, 4 0, 4 4, 0 0), (1 0.5, 2 0.5, 2 1, 1 0.5))"
WKT = [
    "POINT (1 2)",
    "MULTIPOINT (1 2, 3 4)",
    "LINESTRING (1 2, 3 4, 5 0)",
    "MULTILINESTRING ((1 2, 3 4), (5 6, 7 8, 9 9))",
    f"POLYGON {HOLE}",
    "MULTIPOLYGON (((0 0, 4 0, 4 4, 0 0)))",
    f"MULTIPOLYGON ({HOLE}, ((10 10, 11 10, 11 11, 10 10)))",
    "GEOMETRYCOLLECTION (POINT (8 9), MULTIPOLYGON (((0 0, 4 0, 4 4, 0 0))), "
    "GEOMETRYCOLLECTION (LINESTRING (1 2, 3 4)))",
    "POLYGON Z ((0 0 7, 4 0 7, 4 4 7, 0 0 7))",
    "LINESTRING (5 5, 5 5)",
    None,
]


def write(path, table, epsg, index):
    """Writes a table as FlatGeobuf."""
    options = {"SPATIAL_INDEX": "YES" if index else "NO"}
    pyogrio.write_arrow(
        table,
        path,
        driver="FlatGeobuf",
        geometry_name="geometry",
        geometry_type="Unknown",
        crs=f"EPSG:{epsg}",
        layer_options=options,
    )


def write_parquet(path, table, epsg):
    """Writes a table as GeoParquet."""
    described = {"encoding": "WKB", "geometry_types": []}
    if epsg != 4326:
        described["crs"] = {"name": f"EPSG {epsg}", "id": {"authority": "EPSG", "code": epsg}}
    geo = {"version": "1.1.0", "primary_column": "geometry", "columns": {"geometry": described}}
    table = table.replace_schema_metadata({"geo": json.dumps(geo)})
    pq.write_table(table, path, compression="zstd")


def types():
    """Returns a table with geometries and columns of every type."""
    n = len(WKT)
    rows = [None if i == 4 else i for i in range(n)]
    columns = {"geometry": pa.array([w and to_wkb(from_wkt(w)) for w in WKT], pa.binary())}
    for name in (
        "int8",
        "uint8",
        "int16",
        "uint16",
        "int32",
        "uint32",
        "int64",
        "uint64",
        "float",
        "double",
    ):
        sign = -1 if name[0] in "ifd" else 1
        columns[name] = pa.array(
            [None if i is None else sign * i for i in rows],
            getattr(pa, name.replace("double", "float64"), pa.float32)(),
        )
    columns["bool"] = pa.array([None if i is None else i % 2 == 0 for i in rows], pa.bool_())
    columns["string"] = pa.array([None if i is None else "äbc"[: i % 4] for i in rows], pa.string())
    columns["bytes"] = pa.array([None if i is None else b"x" * i for i in rows], pa.binary())
    columns["last"] = pa.array(range(n), pa.int32())
    return pa.table(columns)


def main():
    """Writes the files."""
    out = Path(sys.argv[1])
    for name, epsg in (("utm", 32630), ("lonlat", 4326)):
        table = pq.read_table(
            out / f"{name}.parquet", columns=["value", "height", "class", "geometry"]
        )
        table = table.replace_schema_metadata(None)
        write(out / f"{name}_plain.fgb", table, epsg, index=False)
        path = out / f"{name}_index.fgb"
        write(path, table.filter(pc.is_valid(table["geometry"])), epsg, index=True)
        _, back = pyogrio.read_arrow(path)
        back = back.rename_columns(
            [c.replace("wkb_geometry", "geometry") for c in back.column_names]
        )
        write_parquet(out / f"{name}_index.parquet", back, epsg)
    table = types()
    write(out / "types_plain.fgb", table, 4326, index=False)
    write_parquet(out / "types.parquet", table, 4326)


if __name__ == "__main__":
    main()
