"""Side by side: a TACO 2 catalog of many rows, read by chaski and by tacoreader.

    python containers.py --chaski bin/chaski --rows 1000000 --rounds 5

In every round both run the same queries by turns, each in its own process, and the results are
compared. The container is made first, in the directory --work, with its table as tacotoolbox writes
it: Parquet with row groups of 65,536 rows, zstd at level 13 and content-defined pages. It has no
rasters, because the benchmark measures tables.

Times are those for which a user of Python waits. "first" and "again" are the same query twice on an
open dataset. Results are Arrow tables, with all columns for box and datetime and with two for the
others. Memory is the peak of the process and of its engine.

Needs the packages of requirements-containers.txt, and the package chaski (PYTHONPATH=python/src).
"""

from __future__ import annotations

import argparse
import functools
import hashlib
import importlib
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

BOX = (-10.0, 35.0, 5.0, 45.0)
TIMES = "2019-03-01/2019-05-31"

# The queries: chaski's SQL names the columns of level 0 as they are, tacoreader's with "l0:".
WHERE = {
    "number": "cloud_cover < 2",
    "text": "split = 'test' AND region = 'south'",
    "in": "region IN ('north', 'middle') AND rank % 100 = 7",
    "like": "id LIKE 's%77'",
}
COLUMNS = ("id", "type", "rank", "cloud_cover", "split", "region")


def make(path: Path, rows: int) -> None:
    """Writes a container with that many samples, at random places and times with random values."""
    np, pa, pq = map(importlib.import_module, ("numpy", "pyarrow", "pyarrow.parquet"))
    tacozip = importlib.import_module("tacozip")
    rng = np.random.default_rng(1)
    west, south = rng.uniform(-180, 179, rows), rng.uniform(-85, 84, rows)
    side = rng.uniform(0.01, 0.5, rows)
    ring = np.zeros(rows, [("head", "u1", 13), ("xy", "<f8", (5, 2))])
    ring["head"] = np.frombuffer(bytes.fromhex("01030000000100000005000000"), "u1")
    for k, (x, y) in enumerate([(0, 0), (1, 0), (1, 1), (0, 1), (0, 0)]):
        ring["xy"][:, k, 0], ring["xy"][:, k, 1] = west + x * side, south + y * side
    point = np.zeros(rows, [("head", "u1", 5), ("xy", "<f8", 2)])
    point["head"] = np.frombuffer(bytes.fromhex("0101000000"), "u1")
    point["xy"][:, 0], point["xy"][:, 1] = west + side / 2, south + side / 2
    start = np.datetime64("2016-01-01T10:00:00", "us") + rng.integers(0, 86400 * 3000, rows) * (
        np.timedelta64(1000000, "us")
    )
    number = np.arange(rows)
    binary = [pa.array(memoryview_list(a), pa.binary()) for a in (ring, point)]
    table = pa.table(
        {
            "id": pa.array([f"s{k:07d}" for k in number]),
            "type": pa.array(["FILE"]).take(pa.array(np.zeros(rows, "i4"))),
            "istac:crs": pa.array([f"EPSG:{32601 + k}" for k in range(60)]).take(
                pa.array(((west + 180) // 6).astype("i4"))
            ),
            "istac:geometry": binary[0],
            "istac:time_start": pa.array(start),
            "istac:centroid": binary[1],
            "split": pa.array(["train", "test", "validation"]).take(
                pa.array(rng.choice(3, rows, p=[0.7, 0.2, 0.1]).astype("i4"))
            ),
            "region": pa.array(["north", "middle", "south"]).take(
                pa.array(rng.integers(0, 3, rows).astype("i4"))
            ),
            "cloud_cover": pa.array(np.round(rng.uniform(0, 100, rows), 3)),
            "rank": pa.array(number),
            "internal:current_id": pa.array(number),
            "internal:parent_id": pa.array(number),
            "internal:offset": pa.array(200 + number),
            "internal:size": pa.array(np.full(rows, 100, "i8")),
        }
    )
    work = path.parent
    data, level0, collection = work / "data", work / "level0.parquet", work / "COLLECTION.json"
    data.write_bytes(bytes(rows + 200))
    pq.write_table(
        table,
        level0,
        compression="zstd",
        compression_level=13,
        use_content_defined_chunking=True,
        row_group_size=65_536,
        write_statistics=True,
    )
    about = {
        "id": "catalog",
        "dataset_version": "1.0.0",
        "description": "random rows",
        "licenses": ["CC0-1.0"],
        "providers": [{"name": "bench", "roles": ["producer"]}],
        "tasks": ["regression"],
        "taco_version": "2.0.0",
        "extent": {"spatial": [-180, -85, 180, 85], "temporal": ["2016-01-01", "2025-01-01"]},
        "taco:pit_schema": {"root": {"n": rows, "type": "FILE"}, "shape": [rows], "hierarchy": {}},
        "taco:field_schema": {
            "level0": [[f.name, str(f.type), ""] for f in table.schema],
        },
    }
    collection.write_text(json.dumps(about))
    names = ["DATA/samples", "METADATA/level0.parquet", "COLLECTION.json"]
    files = [data, level0, collection]
    partial = path.with_suffix(".partial")
    partial.unlink(missing_ok=True)
    tacozip.create(str(partial), files, names, [(0, 0), (0, 0)])
    places = []
    with zipfile.ZipFile(partial) as z:
        for name in names[1:]:
            info = z.getinfo(name)
            assert z.fp is not None
            z.fp.seek(info.header_offset + 26)
            n, extra = (int.from_bytes(z.fp.read(2), "little") for _ in range(2))
            places.append((info.header_offset + 30 + n + extra, info.file_size))
    tacozip.update_header(str(partial), places)
    partial.rename(path)
    for f in files:
        f.unlink()


def memoryview_list(a: Any) -> list[bytes]:
    """Returns the bytes of each element of a structured array."""
    raw, n = a.tobytes(), a.itemsize
    return [raw[i : i + n] for i in range(0, len(raw), n)]


def digest(ids: list[str]) -> str:
    """Returns a hash of ids in order."""
    return hashlib.sha256("\n".join(ids).encode()).hexdigest()[:16]


class Clock:
    """Records times and results."""

    def __init__(self) -> None:
        """Starts empty."""
        self.seconds: dict[str, float] = {}
        self.found: dict[str, Any] = {}

    def __call__(self, name: str, run: Callable[[], Any]) -> Any:
        """Runs something once, and returns its result."""
        start = time.perf_counter()
        out = run()
        self.seconds[name] = time.perf_counter() - start
        return out


def tacoreader(path: Path) -> Clock:
    """Asks tacoreader."""
    reader = importlib.import_module("tacoreader")
    # Into DuckDB's directory, from which the extension is loaded.
    importlib.import_module("duckdb_extensions").import_extension("spatial")
    clock = Clock()
    count = "SELECT count(*) AS n FROM l0"
    ds = reader.load(str(path.parent / "warm.tacozip"))
    ds.sql(count)  # imports, and the libraries behind them
    start = time.perf_counter()
    ds = reader.load(str(path))
    clock.found["rows"] = ds.sql(count).column("n")[0].as_py()
    clock.seconds["open and count"] = time.perf_counter() - start
    for turn in ("first", "again"):
        box = clock(f"bbox {turn}", lambda: ds.filter_bbox(*BOX).data)
        clock.found["bbox"] = digest(box["id"].to_pylist())
        when = clock(f"datetime {turn}", lambda: ds.filter_datetime(TIMES).data)
        clock.found["datetime"] = digest(when["id"].to_pylist())
        for name, where in WHERE.items():
            for column in COLUMNS:
                where = where.replace(column + " ", f'"l0:{column}" ')
            query = f'SELECT "l0:id" AS id, "l0:rank" AS rank FROM l0 WHERE {where}'
            table = clock(f"{name} {turn}", functools.partial(ds.sql, query))
            clock.found[name] = digest(table.column("id").to_pylist())
    return clock


def chaski(path: Path) -> Clock:
    """Asks chaski."""
    taco = importlib.import_module("chaski.taco")
    clock = Clock()
    count = "SELECT count(*) AS n FROM data"
    assert taco.load(path.parent / "warm.tacozip").sql(count).data.num_rows
    start = time.perf_counter()
    ds = taco.load(path)
    clock.found["rows"] = ds.sql(count).data.column("n")[0].as_py()
    clock.seconds["open and count"] = time.perf_counter() - start
    for turn in ("first", "again"):
        box = clock(f"bbox {turn}", lambda: ds.filter_bbox(*BOX).data)
        clock.found["bbox"] = digest(box.column("id").to_pylist())
        when = clock(f"datetime {turn}", lambda: ds.filter_datetime(TIMES).data)
        clock.found["datetime"] = digest(when.column("id").to_pylist())
        for name, where in WHERE.items():
            query = f"SELECT id, rank FROM data WHERE {where}"
            table = clock(f"{name} {turn}", functools.partial(answer, ds, query))
            clock.found[name] = digest(table.column("id").to_pylist())
    importlib.import_module("chaski._engine")._stop_all()  # so that its memory counts
    return clock


def answer(ds: Any, query: str) -> Any:
    """Returns the result of a query."""
    return ds.sql(query).data


STEPS = {"chaski": chaski, "tacoreader": tacoreader}


def step(name: str, path: Path) -> None:
    """Asks one of the two, and prints its answer."""
    clock = STEPS[name](path)
    kb = [
        resource.getrusage(who).ru_maxrss
        for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    ]
    print(json.dumps({"seconds": clock.seconds, "found": clock.found, "kb": kb}))


def main() -> int:
    """Measures, and prints a table."""
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("--chaski", default="bin/chaski", help="the command")
    p.add_argument("--rows", type=int, default=1_000_000)
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--work", type=Path, default=Path(".peers/containers"))
    p.add_argument("--json", action="store_true", help="one line of JSON instead of a table")
    p.add_argument("--step", choices=STEPS, help=argparse.SUPPRESS)
    args = p.parse_args()
    path = args.work.absolute() / f"catalog-{args.rows}.tacozip"
    if args.step:
        step(args.step, path)
        return 0
    args.work.mkdir(parents=True, exist_ok=True)
    for file, rows in ((path, args.rows), (path.parent / "warm.tacozip", 100)):
        if not file.exists():
            make(file, rows)
    env = {**os.environ, "CHASKI_BIN": str(Path(args.chaski).absolute())}
    runs: dict[str, list[dict[str, Any]]] = {name: [] for name in STEPS}
    for k in range(args.rounds + 1):  # the first brings files into memory
        for name in STEPS if k % 2 else reversed(STEPS):
            command = [sys.executable, __file__, "--step", name, "--work", str(args.work)]
            out = subprocess.run(
                [*command, "--rows", str(args.rows)], env=env, check=True, stdout=subprocess.PIPE
            )
            runs[name].append(json.loads(out.stdout.splitlines()[-1]))
    found = [r["found"] for rs in runs.values() for r in rs]
    same = all(f == found[0] for f in found)
    report(args, path, {name: rs[1:] for name, rs in runs.items()}, same)
    return 0 if same else 1


def report(args: Any, path: Path, runs: dict[str, list[dict[str, Any]]], same: bool) -> None:
    """Prints the medians of the rounds."""
    names = list(runs["chaski"][0]["seconds"])
    seconds = {
        side: {n: statistics.median(r["seconds"][n] for r in rs) for n in names}
        for side, rs in runs.items()
    }
    memory = {side: max(sum(r["kb"]) for r in rs) / 1e3 for side, rs in runs.items()}
    if args.json:
        print(json.dumps({"same": same, "seconds": seconds, "memory_mb": memory}))
        return
    print(f"{args.rows} rows, {path.stat().st_size / 1e6:.0f} MB; {platform.machine()}, ", end="")
    print(f"{os.cpu_count()} cores; median of {args.rounds} rounds, ms")
    print(f"{'':18}{'chaski':>10}{'tacoreader':>12}{'times':>8}")
    for n in names:
        a, b = seconds["chaski"][n], seconds["tacoreader"][n]
        print(f"{n:18}{1e3 * a:10.1f}{1e3 * b:12.1f}{b / a:8.2f}")
    print(f"{'memory, MB':18}{memory['chaski']:10.0f}{memory['tacoreader']:12.0f}")
    print("the same rows were found" if same else "OTHER ROWS WERE FOUND")


if __name__ == "__main__":
    sys.exit(main())
