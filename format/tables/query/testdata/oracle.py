"""DuckDB's answers, for the test that compares package query with it.

    oracle.py table FILE SEED       writes a table of random values as Parquet
    oracle.py run FILE              queries on stdin, a line each; answers on stdout, a line of JSON each

The table is scanned through Arrow, as the original readers of TACO do.
"""

import json
import math
import random
import sys
from decimal import Decimal

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq


def table(path, seed):
    rng = random.Random(seed)
    n = 300

    def col(make, null=0.15):
        return [None if rng.random() < null else make() for _ in range(n)]

    words = ["", "a", "A", "ab", "abc", "é", "É", "日本", "x%y", "a_b", "zz", "train", "test", "10", "-1", "roi_0001.tif"]
    floats = [0.0, -0.0, 1.0, 0.1, -2.5, 1e300, math.nan, math.inf, -math.inf, 3.0, 100.0]
    pq.write_table(
        pa.table(
            {
                "id": pa.array(range(n), pa.int64()),
                "i8": pa.array(col(lambda: rng.randint(-128, 127)), pa.int8()),
                "k": pa.array(col(lambda: rng.randint(-3, 5)), pa.int32()),
                "i64": pa.array(col(lambda: rng.choice([rng.randint(-9, 9), rng.randint(-(2**63), 2**63 - 1)])), pa.int64()),
                "u16": pa.array(col(lambda: rng.randint(0, 65535)), pa.uint16()),
                "u64": pa.array(col(lambda: rng.choice([rng.randint(0, 9), rng.randint(0, 2**64 - 1)])), pa.uint64()),
                "f32": pa.array(col(lambda: rng.choice([*floats[:5], *floats[6:], rng.uniform(-5, 5)])), pa.float32()),
                "f64": pa.array(col(lambda: rng.choice([*floats, rng.uniform(-5, 5)])), pa.float64()),
                "s": pa.array(col(lambda: rng.choice(words)), pa.string()),
                "w": pa.array(col(lambda: rng.choice(words), 0), pa.large_string()),
                "b": pa.array(col(lambda: rng.random() < 0.5), pa.bool_()),
                "d": pa.array(col(lambda: rng.randint(16000, 16060)), pa.int32()).cast(pa.date32()),
                "ts": pa.array(col(lambda: rng.randint(16000, 16060) * 86400_000_000 + rng.choice([0, 1, 43_200_000_000])), pa.timestamp("us")),
                "li": pa.array(col(lambda: [rng.choice([1, 2, 3, None]) for _ in range(rng.randint(0, 3))]), pa.list_(pa.int64())),
                "ls": pa.array(col(lambda: [rng.choice(words) for _ in range(rng.randint(0, 2))]), pa.large_list(pa.string())),
                "dec": pa.array(col(lambda: Decimal(rng.randint(-99999, 99999)).scaleb(-2)), pa.decimal128(7, 2)),
                "num": pa.array(col(lambda: rng.choice(["1", " 2 ", "-3.5", "1e2", "x", "", "nan", "99999999999", ".5", "5.", "2013-11-15", "yes"])), pa.string()),
                "nothing": pa.nulls(n),
            }
        ),
        path,
        row_group_size=70,
        data_page_size=100,
        write_batch_size=20,
        write_page_index=True,
    )


def plain(v):
    if isinstance(v, float) and not math.isfinite(v):
        return "NaN" if math.isnan(v) else "Infinity" if v > 0 else "-Infinity"
    if isinstance(v, (bool, int, float, str)) or v is None:
        return v
    if isinstance(v, list):
        return [plain(x) for x in v]
    if isinstance(v, Decimal):
        return str(v)
    return v.isoformat() if hasattr(v, "isoformat") else str(v)


def run(path):
    data = pq.read_table(path)
    con = duckdb.connect()
    con.execute("SET threads = 1")
    con.register("data", data)
    for line in sys.stdin:
        try:
            got = con.execute(line)
            out = {"columns": [d[0] for d in got.description], "rows": [[plain(v) for v in row] for row in got.fetchall()]}
        except duckdb.Error as e:
            out = {"error": str(e).splitlines()[0]}
        print(json.dumps(out), flush=True)


if __name__ == "__main__":
    if sys.argv[1] == "table":
        table(sys.argv[2], int(sys.argv[3]))
    else:
        run(sys.argv[2])
