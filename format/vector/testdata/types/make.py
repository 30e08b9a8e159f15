"""Writes the files beside this script, with the types GEOMETRY and GEOGRAPHY of Parquet.

They have no metadata "geo".

    pip install pyarrow==26.0.1 shapely==2.2.0 && python make.py

expected.json has the outlines as shapely has them, in the CRS of each file.
"""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import shapely

HERE = Path(__file__).parent
SHAPES = {
    "degrees": [
        "POLYGON ((-75 -18, -74 -18, -74 -17, -75 -18))",
        None,
        "LINESTRING (1 1, 2 2)",
    ],
    "metres": [
        "POLYGON ((500000 8000000, 500100 8000000, 500100 8000100, 500000 8000000))",
        None,
        "POINT (1 2)",
    ],
}


class WKB(pa.ExtensionType):
    """geoarrow.wkb, which pyarrow writes as GEOMETRY or GEOGRAPHY."""

    def __init__(self, metadata: str):
        self.metadata = metadata
        super().__init__(pa.binary(), "geoarrow.wkb")

    def __arrow_ext_serialize__(self) -> bytes:
        return self.metadata.encode()

    @classmethod
    def __arrow_ext_deserialize__(cls, storage, serialized):
        return cls(serialized.decode())


def write(name: str, shapes: str, metadata: dict) -> None:
    """Writes a file."""
    wkb = [
        None if text is None else shapely.to_wkb(shapely.from_wkt(text)) for text in SHAPES[shapes]
    ]
    outlines = pa.ExtensionArray.from_storage(WKB(json.dumps(metadata)), pa.array(wkb, pa.binary()))
    table = pa.table({"class": [1, 2, 3], "outline": outlines})
    pq.write_table(table, HERE / name, store_schema=False)
    print(
        name,
        pq.ParquetFile(HERE / name).schema.column(1).logical_type,
        pq.ParquetFile(HERE / name).metadata.metadata,
    )


def main() -> None:
    """Writes all files."""
    utm = {
        "type": "ProjectedCRS",
        "name": "WGS 84 / UTM zone 18S",
        "id": {"authority": "EPSG", "code": 32718},
    }
    write("lonlat.parquet", "degrees", {})
    write("projjson.parquet", "metres", {"crs": utm, "crs_type": "projjson"})
    write("srid.parquet", "metres", {"crs": "32718", "crs_type": "srid"})
    write("code.parquet", "metres", {"crs": "EPSG:32718", "crs_type": "authority_code"})
    write("globe.parquet", "degrees", {"edges": "spherical"})
    expected = {name: shapes for name, shapes in SHAPES.items()}
    (HERE / "expected.json").write_text(json.dumps(expected, indent=1) + "\n")


if __name__ == "__main__":
    main()
