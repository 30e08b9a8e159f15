"""`make bench-arrays`: TileDB arrays side by side with TileDB's own library, on one core.

    bench_arrays.py [--rounds N] [--tiledb PYTHON]

Both read the same array of real chips (uint16, byteshuffle and zstd, tiles of 256 by 256) by turns,
N times: all of it at once, as whole chips, and as random windows of 256 by 256 pixels in all bands.
Figures are megabytes of samples per second of processor time, the median of the rounds; the ratio
is the median of the rounds' ratios. `make interop` checks that both read the same values.

PYTHON is an interpreter with the package tiledb. Without it, the script makes one as `make interop`
does.
"""

from __future__ import annotations

import argparse
import os
import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from interop import ROOT, environment

CHIPS = """
import sys, numpy as np, tiledb
chips = np.stack([np.load(sys.argv[1])] * 8)
sides = zip("nbyx", chips.shape, (1, 1, 256, 256))
dims = [tiledb.Dim(d, (0, n - 1), min(n, tile), dtype=np.int32) for d, n, tile in sides]
filters = tiledb.FilterList([tiledb.ByteShuffleFilter(), tiledb.ZstdFilter(3)], 1 << 16)
dn = tiledb.Attr("dn", dtype=chips.dtype, filters=filters)
tiledb.Array.create(sys.argv[2], tiledb.ArraySchema(tiledb.Domain(*dims), [dn]))
with tiledb.open(sys.argv[2], "w") as array:
    array[:] = chips
"""
LINE = re.compile(
    r"^BenchmarkArray/(\w+)\S*\s.*?([\d.e+]+) MB/cpu-s\s.*?([\d.e+]+) tiledb-MB/cpu-s"
)
WHAT = {"all": "the whole array", "chips": "chips", "windows": "windows of 256 × 256"}


def main() -> None:
    """Measures, and prints a table in Markdown."""
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--tiledb", metavar="PYTHON")
    o = p.parse_args()
    go = os.environ.get("GO") or "go"
    with tempfile.TemporaryDirectory() as folder:
        env = os.environ | {
            "GOMAXPROCS": "1",
            "CHASKI_TILEDB_BENCH": str(Path(folder, "chips")),
            "CHASKI_ORACLE_PYTHON_TILEDB": o.tiledb or environment("tiledb"),
        }
        test, chip = Path(folder, "loader.test"), Path(folder, "chip.npy")
        subprocess.run([go, "test", "-c", "-o", test, "./loader"], cwd=ROOT, check=True)
        cat = [go, "run", "./cmd/chaski", "cat", "--format", "npy", "testdata/demo/coast.tif"]
        with chip.open("wb") as f:
            subprocess.run(cat, cwd=ROOT, check=True, stdout=f)
        made = [env["CHASKI_ORACLE_PYTHON_TILEDB"], "-c", CHIPS, chip, env["CHASKI_TILEDB_BENCH"]]
        subprocess.run(made, check=True)
        rates: dict[str, list[tuple[float, float]]] = {}
        for n in range(o.rounds):
            run = [test, "-test.run=^$", "-test.benchtime=1s"]
            out = subprocess.run(
                [*run, "-test.bench=^BenchmarkArray$"],
                cwd=ROOT / "loader",
                env=env,
                check=True,
                stdout=subprocess.PIPE,
                text=True,
            ).stdout
            for line in out.splitlines():
                if m := LINE.match(line):
                    rates.setdefault(m[1], []).append((float(m[2]), float(m[3])))
            print(f"round {n + 1} of {o.rounds}", file=sys.stderr, flush=True)
    if set(rates) != set(WHAT) or any(len(r) != o.rounds for r in rates.values()):
        sys.exit(f"bench_arrays: the benchmarks printed no rates, or too few:\n{out}")
    print("| MB per second of processor time | chaski | tiledb | × |\n|---|--:|--:|--:|")
    for name, what in WHAT.items():
        ours, theirs = (statistics.median(r[i] for r in rates[name]) for i in (0, 1))
        ratio = statistics.median(a / b for a, b in rates[name])
        print(f"| {what} | {ours:.0f} | {theirs:.0f} | {ratio:.2f} |")


if __name__ == "__main__":
    main()
