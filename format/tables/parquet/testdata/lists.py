"""Writes lists-*.parquet by pyarrow: 2,000 rows of lists of floats. Version 10 of pyarrow wrote
lists-dictionary10.parquet, whose pages end within lists; later versions end them between rows. Row i is null if i % 11 == 3, and else has i % 9 values, k of which is i + k / 16."""

import pyarrow as pa
import pyarrow.parquet as pq

rows = [None if i % 11 == 3 else [i + k / 16 for k in range(i % 9)] for i in range(2000)]
table = pa.table({"numbers": pa.array(rows, pa.list_(pa.float64())), "row": range(2000)})
for name, options in {
    "plain": {"use_dictionary": False, "compression": "none"},
    "dictionary": {"compression": "zstd", "row_group_size": 900},
    "v2": {"data_page_version": "2.0", "compression": "snappy"},
    "index": {"write_page_index": True, "use_dictionary": False},
}.items():
    pq.write_table(table, f"lists-{name}.parquet", data_page_size=2048, **options)
