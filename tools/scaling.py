"""Measures how batches scale with cores, beside a loop of pure decoding.

    python tools/scaling.py chips/ --cores 1 2 4 8 16 --rounds 3 --seconds 2

For each number of cores it runs, in turns and pinned to these cores:

    load       one engine that makes batches, with a worker for each core
    decode     one process that decodes whole files, with a worker for each core
    processes  a process for each core, with one worker: they share memory and caches

What `processes` loses is the machine's: cores that are hyperthreads, a lower clock, the bandwidth
of memory. What `load` loses beyond it is chaski's. It needs Linux (taskset).
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

KINDS = ("load", "decode", "processes")


def rates(binary: str, kind: str, cores: list[int], chips: str, seconds: float) -> float:
    """Returns the samples a second of one round on some cores."""
    verb = "load" if kind == "load" else "decode"
    what = [chips] if verb == "load" else sorted(str(p) for p in Path(chips).glob("*.tif"))
    groups = [[c] for c in cores] if kind == "processes" else [cores]
    running = []
    for group in groups:
        pinned = ["taskset", "-c", ",".join(map(str, group)), binary, "bench", verb, "--json"]
        often = ["--rounds", "1", "--seconds", str(seconds), "--workers", str(len(group))]
        env = {**os.environ, "GOMAXPROCS": str(len(group))}
        running.append(
            subprocess.Popen([*pinned, *often, *what], env=env, stdout=subprocess.PIPE, text=True)
        )
    total = 0.0
    for process in running:
        out, _ = process.communicate()
        if process.returncode:
            sys.exit(f"chaski bench {verb} failed")
        total += samples(json.loads(out))
    return total


def samples(report: dict[str, Any]) -> float:
    """Returns the samples a second of a report of `chaski bench`."""
    return next(float(f["median"]) for f in report["figures"] if f["unit"] == "samples/s")


def main() -> None:
    """Prints medians of the rounds, and their share of as many times the rate of one core."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("chips", help="a directory of TIFFs")
    parser.add_argument("--cores", type=int, nargs="+", default=[1, 2, 4, 8, 16])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=2)
    args = parser.parse_args()
    binary = os.environ.get("CHASKI_BIN", "bin/chaski")
    known = sorted(os.sched_getaffinity(0))
    counts = [n for n in args.cores if n <= len(known)]
    words = ("Model name", "Thread(s) per core", "L2 cache", "L3 cache")
    for line in subprocess.run(["lscpu"], capture_output=True, text=True).stdout.splitlines():
        if line.startswith(words):
            print(" ".join(line.split()))
    found: dict[tuple[str, int], list[float]] = {(k, n): [] for k in KINDS for n in counts}
    for _ in range(args.rounds):
        for (kind, n), rounds in found.items():
            rounds.append(rates(binary, kind, known[:n], args.chips, args.seconds))
    print("| cores | " + " | ".join(KINDS) + " |")
    print("|---:" * (len(KINDS) + 1) + "|")
    for n in counts:
        cells = []
        for kind in KINDS:
            here, one = (statistics.median(found[kind, m]) for m in (n, counts[0]))
            cells.append(f"{here:.0f} ({here / one / n * counts[0]:.2f})")
        print(f"| {n} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
