"""Compares questions to a TACO 3 ZIP by chaski and by taco-eo: see docs/measurements.md.

    taco3.py --chaski bin/chaski --samples 100000 --rounds 9

It needs chaski, pyarrow, taco-eo and DuckDB with its extension icu. Each asks in a process of its
own, in turns.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

COUNT = """SELECT count(*) AS n FROM dataset WHERE "ml:cloud" < 10 AND "ml:split" = 'train'"""
SHOW = (
    """SELECT id, "v.bin::location" FROM dataset WHERE "ml:cloud" < 10 AND "ml:split" = 'train'"""
)


def make(path: str, samples: int) -> None:
    """Writes the container."""
    import chaski
    import pyarrow as pa

    rows, file = range(samples), Path(path).with_suffix(".bin")
    file.write_bytes(b"48 bytes that stand for a raster that nobody asks")
    table = pa.table(
        {
            "id": [f"site_{i:07d}/v.bin" for i in rows] + [f"site_{i:07d}" for i in rows],
            "path": [str(file)] * samples + [None] * samples,
            "ml:cloud": [None] * samples + [float(i * 7919 % 10007) / 100 for i in rows],
            "ml:split": [None] * samples + [("train", "test", "validation")[i % 3] for i in rows],
        }
    )
    about = {"id": "big", "description": "d", "licenses": ["CC0-1.0"], "providers": [{"name": "x"}]}
    chaski.pack(table, path, about, form="taco3")


def ask(who: str, path: str) -> None:
    """Prints the seconds of opening and a first question, and of a second one, asked again."""
    start = time.perf_counter()
    if who == "chaski":
        import chaski.taco

        start = time.perf_counter()
        data = chaski.taco.load(path)

        def sql(text: str) -> object:
            return data.sql(text).data

    else:
        import taco

        start = time.perf_counter()
        sql = taco.open_dataset(path).sql
    sql(COUNT)
    first, again = time.perf_counter() - start, []
    for _ in range(3):
        start = time.perf_counter()
        sql(SHOW)
        again.append(time.perf_counter() - start)
    print(first, statistics.median(again))


def main() -> None:
    """Prints the table."""
    p = argparse.ArgumentParser()
    p.add_argument("--chaski", default="bin/chaski")
    p.add_argument("--samples", type=int, default=100_000)
    p.add_argument("--rounds", type=int, default=9)
    p.add_argument("--ask", nargs=2)
    a = p.parse_args()
    os.environ["CHASKI_BIN"] = str(Path(a.chaski).resolve())
    if a.ask:
        ask(*a.ask)
        return
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/big.zip"
        make(path, a.samples)
        seconds: dict[str, list[list[float]]] = {"chaski": [], "taco": []}
        for i in range(a.rounds):
            for who in sorted(seconds, reverse=i % 2 == 1):
                run = [sys.executable, __file__, "--chaski", a.chaski, "--ask", who, path]
                out = subprocess.run(run, check=True, capture_output=True, text=True).stdout
                seconds[who].append([float(x) for x in out.split()])
    for k, name in enumerate(["open and first", "again"]):
        ours, theirs = ([s[k] for s in seconds[who]] for who in ("chaski", "taco"))
        ratios = sorted(t / o for o, t in zip(ours, theirs, strict=True))
        print(
            f"{name}: chaski {1000 * statistics.median(ours):.0f} ms, taco-eo "
            f"{1000 * statistics.median(theirs):.0f} ms, x {statistics.median(ratios):.2f} "
            f"({ratios[0]:.2f} to {ratios[-1]:.2f})"
        )


if __name__ == "__main__":
    main()
