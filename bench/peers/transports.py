"""Measures how batches reach Python: samples a second, and processor time in the trainer's process.

    python bench/peers/transports.py chips/ --rounds 5
    python bench/peers/transports.py chips/ --against ../old   # a checkout with its own bin/chaski

Each round runs every way of every checkout once, in turns, each in a process of its own. Samples
become normalised float32, and the loop reads one value of each, as in peers.py. The server of the
ways that connect refuses shared memory, as one on another machine has none.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from sides import processor_seconds

ROOT = Path(__file__).resolve().parents[2]
WAYS = {
    "shm": "load, in shared memory",
    "load-grpc": 'load, transport="grpc"',
    "connect": "connect, through a local engine",
    "connect-grpc": 'connect, transport="grpc"',
    "alone": "connect, without a local engine",
}
BATCH = 32


def serve(chips: str, listen: str) -> tuple[subprocess.Popen[bytes], str]:
    """Starts a server without shared memory, which ends with this process."""
    line = [os.environ["CHASKI_BIN"], "serve", "--listen", listen, "--root", chips]
    line += ["--no-shared-memory", "--stop-on-eof", "--log-level", "error"]
    server = subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert server.stdout is not None
    ready = json.loads(server.stdout.readline())
    os.environ |= {"CHASKI_TOKEN": ready["token"]} if "token" in ready else {}
    return server, ready["listen"]


def one(way: str, chips: str, seconds: float, tcp: bool) -> tuple[float, ...]:
    """Returns samples a second, and the milliseconds of this process and of all for each."""
    import chaski

    engine = chaski.Engine(transport="grpc" if way.endswith("grpc") else "auto", share=False)
    options: dict[str, Any] = {
        "batch_size": BATCH,
        "shuffle": True,
        "last": "drop",
        "engine": engine,
    }
    options["pixels"] = chaski.Pixels(dtype="float32")
    options["normalize"] = chaski.Normalize([1e-4], [-0.1])
    if way in ("shm", "load-grpc"):
        loader = chaski.load(chips + "/*.tif", **options)
    else:
        _, target = serve(chips, "127.0.0.1:0" if tcp else f"unix-abstract:ways-{os.getpid()}")
        if way == "alone":
            os.environ["CHASKI_BIN"] = "/none"
        loader = chaski.connect(target, chips + "/*.tif", **options)
    batches = itertools.chain.from_iterable(loader for _ in itertools.count())
    for batch in itertools.islice(batches, 4):
        name = next(iter(batch.dtypes))
    begun, own, every, samples = time.monotonic(), time.process_time(), processor_seconds(), 0
    while time.monotonic() - begun < seconds:
        next(batches)[name].reshape(BATCH, -1)[:, 0].sum()
        samples += BATCH
    took, own = time.monotonic() - begun, time.process_time() - own
    every = processor_seconds() - every
    loader.close()
    return samples / took, 1000 * own / samples, 1000 * every / samples


def main() -> None:
    """Prints a table of medians, with the least and the most."""
    parser = argparse.ArgumentParser()
    parser.add_argument("chips")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=4)
    parser.add_argument("--ways", default=",".join(WAYS))
    parser.add_argument("--tcp", action="store_true", help="servers listen on 127.0.0.1")
    parser.add_argument("--against", type=Path, action="append", default=[])
    parser.add_argument("--one", help=argparse.SUPPRESS)
    o = parser.parse_args()
    if o.one:
        print(json.dumps(one(o.one, o.chips, o.seconds, o.tcp)))
        return
    runs = list(itertools.product(o.ways.split(","), [*o.against, ROOT]))
    found: dict[tuple[str, Path], list[list[float]]] = {run: [] for run in runs}
    for (way, tree), figures in list(found.items()) * o.rounds:
        line = [sys.executable, __file__, *sys.argv[1:], "--one", way]
        env = {"CHASKI_BIN": f"{tree}/bin/chaski", "PYTHONPATH": f"{tree}/python/src"}
        out = subprocess.run(line, env=os.environ | env, stdout=subprocess.PIPE, check=True)
        figures.append(json.loads(out.stdout))
    print("| | checkout | samples/s | trainer, ms a sample | all, ms a sample |")
    print("|---|---|---:|---:|---:|")
    for (way, tree), figures in found.items():
        cells = [WAYS[way], tree.resolve().name]
        for column, digits in zip(zip(*figures, strict=True), (0, 3, 2), strict=True):
            middle, least, most = statistics.median(column), min(column), max(column)
            cells.append(f"{middle:.{digits}f} ({least:.{digits}f} – {most:.{digits}f})")
        print("| " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
