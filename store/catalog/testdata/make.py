"""Writes the Parquet files of this folder. Needs pyarrow; python make.py FOLDER.

Row i of 1000 has the values of row() below; the tests compute them again.
"""

import pathlib
import sys

import pyarrow as pa
import pyarrow.parquet as pq

N = 1000


def row(i):
    null = i % 7 == 3
    return {
        "path": f"images/{i // 100}/tile_{i:04d}.tif",
        "id": i * i - 500 * i,
        "small": (i * 37) % 251 - 125,
        "count": None if null else i * 4_000_000,
        "weight": None if null else i / 8 - 3,
        "ratio": i * 0.25,
        "flag": None if i % 5 == 0 else i % 3 == 0,
        "class": None if null else ["water", "forest", "", "città"][i % 4],
        "blob": None if i % 2 else bytes((i + k) % 256 for k in range(i % 40)),
    }


rows = [row(i) for i in range(N)]
schema = pa.schema([
    ("path", pa.string()), ("id", pa.int64()), ("small", pa.int16()), ("count", pa.uint32()), ("weight", pa.float64()),
    ("ratio", pa.float32()), ("flag", pa.bool_()), ("class", pa.string()), ("blob", pa.binary()),
])
table = pa.Table.from_pylist(rows, schema=schema)
out = pathlib.Path(sys.argv[1])
common = {"row_group_size": 300, "data_page_size": 1024, "write_batch_size": 64}
encodings = {"path": "DELTA_BYTE_ARRAY", "id": "DELTA_BINARY_PACKED", "small": "DELTA_BINARY_PACKED", "count": "DELTA_BINARY_PACKED",
             "weight": "BYTE_STREAM_SPLIT", "ratio": "BYTE_STREAM_SPLIT", "flag": "RLE", "class": "DELTA_LENGTH_BYTE_ARRAY", "blob": "PLAIN"}
pq.write_table(table, out / "dict-snappy-v1.parquet", compression="snappy", **common)
pq.write_table(table, out / "plain-none-v1.parquet", compression="none", use_dictionary=False, write_page_checksum=True, **common)
pq.write_table(table, out / "plain-gzip-v2-index.parquet", compression="gzip", use_dictionary=False, data_page_version="2.0",
               write_page_index=True, **common)
pq.write_table(table, out / "delta-zstd-v2-index.parquet", compression="zstd", use_dictionary=False, data_page_version="2.0",
               column_encoding=encodings, write_page_index=True, write_page_checksum=True, **common)
pq.write_table(table, out / "dict-brotli-v2.parquet", compression="brotli", data_page_version="2.0", **common)
pq.write_table(table, out / "delta-lz4-v1.parquet", compression="lz4", use_dictionary=False,
               column_encoding={k: v for k, v in encodings.items() if k != "flag"}, **common)
