"""Makes tables of metadata of Earth observation, and DuckDB's answers to the queries of queries.sql over them.

    python analyst.py        writes data.parquet, level1.parquet and answers.jsonl beside itself

It needs duckdb 1.5.3 and pyarrow. The tables are random but fixed: the same
files come out again. TestAnalystQueries reads them.
"""

import json
import math
import random
import sys
from datetime import date, datetime, timedelta
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

HERE = Path(__file__).parent
sys.path.append(str(HERE.parent))
from oracle import plain  # noqa: E402  (it lies one directory up)

ROWS = 120


def data(rng):
    """Returns the table of level 0: a row for each tile."""

    def some(make, null=0.08):
        return [None if rng.random() < null else make() for _ in range(ROWS)]

    days = [date(2020, 1, 1) + timedelta(days=rng.randrange(1096)) for _ in range(ROWS)]
    times = [datetime(d.year, d.month, d.day) + timedelta(microseconds=rng.randrange(86_400_000_000)) for d in days]
    epsg = [rng.choice([32718, 32719, 32633, 4326]) for _ in range(ROWS)]
    bands = ["B02", "B03", "B04", "B08", "B11"]
    columns = {
        "row": pa.array(range(ROWS), pa.int64()),
        "id": [f"tile_{i:03d}" for i in range(ROWS)],
        "split": [rng.choice(["train", "train", "train", "val", "test"]) for _ in range(ROWS)],
        "region": some(lambda: rng.choice(["andes", "amazon", "sahel", "Øresund", "alps"])),
        "platform": [rng.choice(["sentinel-2a", "sentinel-2b", "landsat-8"]) for _ in range(ROWS)],
        "label": [rng.choice(["water", "forest", "crop", "urban", "snow"]) for _ in range(ROWS)],
        "class": pa.array(some(lambda: rng.choice([*range(10), 255]), 0.03), pa.int32()),
        "rank": pa.array([rng.randrange(6) for _ in range(ROWS)], pa.int16()),
        "cloud_cover": some(lambda: rng.choice([0.0, 2.5, 100.0, rng.uniform(0, 100), round(rng.uniform(0, 100), 1)])),
        "snow": pa.array(some(lambda: rng.random()), pa.float32()),
        "ndvi": some(lambda: rng.choice([math.nan, *(rng.uniform(-0.2, 0.9) for _ in range(9))])),
        "sun_elevation": pa.array([rng.uniform(5, 80) for _ in range(ROWS)], pa.float32()),
        "n_valid": pa.array([rng.randrange(512 * 512 + 1) for _ in range(ROWS)], pa.int64()),
        "width": pa.array([rng.choice([256, 512]) for _ in range(ROWS)], pa.int32()),
        "height": pa.array([512] * ROWS, pa.int32()),
        "file_size": pa.array([rng.randrange(1, 30_000_000) for _ in range(ROWS)], pa.int64()),
        "epsg": pa.array(epsg, pa.int32()),
        "stac:crs": [f"EPSG:{e}" for e in epsg],
        "lon": [rng.uniform(-80, 20) for _ in range(ROWS)],
        "lat": [rng.uniform(-30, 60) for _ in range(ROWS)],
        "datetime": pa.array([None if rng.random() < 0.04 else t for t in times], pa.timestamp("us")),
        "date": pa.array(days, pa.date32()),
        "day_text": [d.isoformat() for d in days],
        "is_night": some(lambda: rng.random() < 0.2, 0.02),
        "quality": [str(rng.randrange(101)) for _ in range(ROWS)],
        "note": some(lambda: rng.choice(["", "ok", "0.25", " 0.75 ", "1e0", "nan", "-"]), 0.2),
        "bands": pa.array(some(lambda: sorted(rng.sample(bands, rng.randint(1, 5))), 0.05), pa.list_(pa.string())),
    }
    return pa.table(columns)


def level1(rng):
    """Returns the table of level 1: up to three rows below each tile."""
    rows = [(i, kind) for i in range(ROWS) for kind in ("s1", "s2", "mask") if rng.random() < 0.8]
    return pa.table(
        {
            "id": [f"{kind}_{i:03d}" for i, kind in rows],
            "parent": pa.array([i for i, _ in rows], pa.int64()),
            "kind": [kind for _, kind in rows],
            "mean": [None if rng.random() < 0.1 else rng.random() for _ in rows],
        }
    )


def answer(con, sql):
    """Returns DuckDB's answer to a query."""
    try:
        got = con.execute(sql)
        head = {"columns": [d[0] for d in got.description], "types": [str(d[1]) for d in got.description]}
        return {"sql": sql, **head, "rows": [[plain(v) for v in row] for row in got.fetchall()]}
    except duckdb.Error as e:
        return {"sql": sql, "error": str(e).splitlines()[0]}


def main():
    rng = random.Random(1)
    con = duckdb.connect()
    con.execute("SET threads = 1")
    for name, table in (("data", data(rng)), ("level1", level1(rng))):
        pq.write_table(table, HERE / f"{name}.parquet")
        con.register(name, table)
    with open(HERE / "answers.jsonl", "w", encoding="utf-8") as f:
        for sql in (HERE / "queries.sql").read_text(encoding="utf-8").splitlines():
            if sql and not sql.startswith("--"):
                f.write(json.dumps(answer(con, sql), ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
