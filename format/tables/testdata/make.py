"""Writes the files of nested columns beside it; needs pyarrow and is run by hand. The test has the same formulas."""

import os

import pyarrow as pa
import pyarrow.parquet as pq


def row(i):
    return {
        "i": i,
        "li": None if i % 7 == 3 else [] if i % 5 == 0 else [None if (i + k) % 4 == 1 else i * 10 + k for k in range(i % 4)],
        "ll": None if i % 6 == 2 else [None if (i + k) % 5 == 0 else [i + k + m for m in range((i + k) % 3)] for k in range(i % 3)],
        "st": None if i % 4 == 1 else {"a": None if i % 3 == 0 else i, "t": [f"é{i}"] * (i % 3)},
        "ls": [{"x": i + k, "y": None if k == 1 else f"s{k}"} for k in range(i % 3)] if i % 8 else None,
        "m": None if i % 9 == 4 else [(f"k{k}", k if k else None) for k in range(i % 3)],
    }


SCHEMA = pa.schema(
    [
        ("i", pa.int64()),
        ("li", pa.list_(pa.int64())),
        ("ll", pa.large_list(pa.list_(pa.int32()))),
        ("st", pa.struct([("a", pa.int16()), ("t", pa.list_(pa.string()))])),
        ("ls", pa.list_(pa.struct([("x", pa.int64()), ("y", pa.large_string())]))),
        ("m", pa.map_(pa.string(), pa.int64())),
    ]
)

if __name__ == "__main__":
    here = os.path.dirname(os.path.abspath(__file__))
    none = pa.table({"a": pa.array([], pa.string()), "b": pa.array([], pa.list_(pa.int64()))})
    pq.write_table(none, os.path.join(here, "empty.parquet"))
    table = pa.Table.from_pylist([row(i) for i in range(100)], schema=SCHEMA)
    for version, codec, dictionary in (("1.0", "snappy", True), ("2.0", "zstd", False)):
        pq.write_table(
            table,
            os.path.join(here, f"nested-{codec}-v{version[0]}.parquet"),
            compression=codec,
            data_page_version=version,
            use_dictionary=dictionary,
            row_group_size=37,
            data_page_size=64,
            write_batch_size=8,
            write_page_index=True,
        )
