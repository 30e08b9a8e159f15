"""Shapes in GeoPackage files as GDAL writes them: those of GeoParquet files beside them.

    pip install pyogrio pyarrow
    python vector/testdata/geopackage.py vector/testdata

utm.gpkg, lonlat.gpkg and types.gpkg have the shapes of NAME.parquet in their order; layers.gpkg has
two layers, utm and lonlat.
"""

import sys
from pathlib import Path

import pyarrow.parquet as pq
import pyogrio


def write(path, layer, table, epsg, **options):
    """Writes a table as a layer."""
    pyogrio.write_arrow(
        table.replace_schema_metadata(None),
        path,
        layer=layer,
        driver="GPKG",
        geometry_name="geometry",
        geometry_type="Unknown",
        crs=f"EPSG:{epsg}",
        **options,
    )


def main():
    """Writes the files."""
    out = Path(sys.argv[1])
    columns = ["value", "height", "class", "geometry"]
    tables = {n: pq.read_table(out / f"{n}.parquet", columns=columns) for n in ("utm", "lonlat")}
    for name, epsg in (("utm", 32630), ("lonlat", 4326)):
        (out / f"{name}.gpkg").unlink(missing_ok=True)
        write(out / f"{name}.gpkg", name, tables[name], epsg)
    (out / "types.gpkg").unlink(missing_ok=True)
    write(out / "types.gpkg", "types", pq.read_table(out / "types.parquet"), 4326)
    (out / "layers.gpkg").unlink(missing_ok=True)
    write(out / "layers.gpkg", "utm", tables["utm"].slice(0, 20), 32630)
    write(out / "layers.gpkg", "lonlat", tables["lonlat"].slice(0, 20), 4326, append=True)


if __name__ == "__main__":
    main()
