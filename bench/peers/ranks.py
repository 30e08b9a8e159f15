"""What ranks of one host cost that share an engine, beside one rank and engines of their own.

    bench/peers/ranks.py [--rounds N] [--shapes chips,windows] [--cases 1 rank,...] [--data DIR]

Run it with an interpreter that has the packages chaski and rasterio, and with CHASKI_BIN. It writes
scenes and chips of six bands of uint16 (smooth ground with noise, tiles of 256, zstd), and has 1, 2
and 8 ranks read the same global batches, in turns of two epochs, of which the second counts: after
a pause an engine makes the memory of its batches anew. `share` is with one engine, `alone` with one
each. Every rank touches its batches, and waits for the others after each step, as in DDP. A row has
samples a second of all ranks together, processor time a sample of the engines and of the ranks, the
chunks that the engines decode in an epoch, and the most memory that the engines had, with what they
share with ranks. Ratios are to one rank in the same round: the median, the least and the most. With
--data, files stay there for the next run.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

import numpy as np

BATCH = 64
BANDS, SIDE, SCENE, SCENES, CHIPS = 6, 256, 2048, 6, 512
LONGER = 4  # so often each chip comes in an epoch, whose start costs, too
CASES = {"1 rank": (1, True), "2 share": (2, True), "8 share": (8, True), "8 alone": (8, False)}
PORT, PORTS = 20_000, 40_000  # of metrics: the first, and how many there are
FIGURES = ("samples/s", "engine ms", "rank ms", "chunks", "MB")

RANK = f"""
import json, os, sys, time
import chaski

source, shape, rank, world, share = sys.argv[1:3] + list(map(int, sys.argv[3:]))
tiles = chaski.TileWindow({SIDE}, tile=512, per_visit=16)
loader = chaski.load(
    source, batch_size={BATCH}, rank=rank, world_size=world,
    window=tiles if shape == "windows" else None,
    normalize=chaski.Normalize([1e-3], [0.0]), engine=chaski.Engine(share=bool(share)),
)
def step(batch):
    samples = float(batch["image"][:, :, ::8, 0].sum()) * 0 + batch["valid"].sum()
    print(flush=True)
    sys.stdin.readline()
    return samples
def cpu():
    t = os.times()
    return t.user + t.system
print(json.dumps([loader._link._held.engine.pid, len(loader)]), flush=True)
while sys.stdin.readline():
    begun = cpu()
    samples = int(sum(map(step, loader)))
    print(json.dumps([samples, cpu() - begun]), flush=True)
"""


def write(folder: Path) -> None:
    """Writes the scenes and the chips."""
    import rasterio

    rng = np.random.default_rng(1)
    for shape, n, side in (("windows", SCENES, SCENE), ("chips", CHIPS, SIDE)):
        if (folder / shape).exists():
            continue
        (folder / shape).mkdir(parents=True)
        for i in range(n):
            y, x = np.ogrid[:side, :side]
            ground = 2000 + 600 * np.sin(y / 90 + i) * np.cos(x / 70)
            pixels = (ground + rng.integers(0, 32, (BANDS, side, side))).astype(np.uint16)
            profile = {"driver": "GTiff", "dtype": "uint16", "count": BANDS, "height": side}
            tiles = {"tiled": True, "blockxsize": SIDE, "blockysize": SIDE, "compress": "zstd"}
            name = folder / shape / f"{i:04}.tif"
            with rasterio.open(name, "w", **profile, width=side, predictor=2, **tiles) as f:
                f.write(pixels)
            for k in range(1, LONGER if shape == "chips" else 1):
                os.link(name, name.with_stem(f"{k}{i:04}"))


def cpu_of(pid: int) -> float:
    """Returns the processor seconds of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def peak_of(pid: int) -> int:
    """Returns the most bytes of memory that a process had."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) << 10


def chunks_of(pid: int) -> float:
    """Returns how many chunks an engine has decoded."""
    with urllib.request.urlopen(
        f"http://127.0.0.1:{PORT + pid % PORTS}/metrics", timeout=60
    ) as page:
        found = re.search(rb"^chaski_server_chunks_total (\S+)$", page.read(), re.MULTILINE)
    assert found
    return float(found[1])


class Ranks:
    """The ranks of one case, which wait between their epochs."""

    def __init__(self, data: Path, folder: Path, shape: str, world: int, share: bool) -> None:
        """Starts them, with engines whose metrics have ports by their process numbers."""
        binary = Path(tempfile.mkdtemp(dir=folder)) / "chaski"
        port = f"$(({PORT} + $$ % {PORTS}))"
        real = os.environ["CHASKI_BIN"]
        binary.write_text(f'#!/bin/sh\nexec "{real}" "$@" --insecure --metrics=127.0.0.1:{port}\n')
        binary.chmod(0o755)
        self._ranks = [
            subprocess.Popen(
                [sys.executable, "-c", RANK, str(data), shape]
                + [str(v) for v in (rank, world, int(share))],
                env={**os.environ, "CHASKI_BIN": str(binary)},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            for rank in range(world)
        ]
        ready = [json.loads(line) for line in self._said()]
        self._engines, self._steps = {pid for pid, _ in ready}, ready[0][1]
        assert len(self._engines) == (1 if share else world)
        self._epochs = 0

    def _said(self) -> list[str]:
        return [r.stdout.readline() for r in self._ranks if r.stdout]

    def epoch(self) -> dict[str, float]:
        """Runs an epoch, and returns its figures."""
        before, start = sum(map(cpu_of, self._engines)), time.monotonic()
        for step in range(self._steps + 1):
            if step > 0:
                self._said()
            for r in self._ranks:
                assert r.stdin is not None
                r.stdin.write("\n")
                r.stdin.flush()
        answers = [json.loads(line) for line in self._said()]
        seconds, after = time.monotonic() - start, sum(map(cpu_of, self._engines))
        samples = sum(n for n, _ in answers)
        self._epochs += 1
        return {
            "samples/s": samples / seconds,
            "engine ms": 1e3 * (after - before) / samples,
            "rank ms": 1e3 * sum(t for _, t in answers) / samples,
        }

    def end(self) -> dict[str, float]:
        """Returns the figures of all epochs."""
        memory = sum(map(peak_of, self._engines))
        chunks = sum(map(chunks_of, self._engines))
        for r in self._ranks:
            r.communicate()
        while any(Path(f"/proc/{pid}").exists() for pid in self._engines):
            time.sleep(0.05)
        return {"chunks": chunks / self._epochs, "MB": memory / 1e6}


def main() -> None:
    """Prints a table for each shape."""
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--rounds", type=int, default=10)
    p.add_argument("--shapes", default="chips,windows")
    p.add_argument("--cases", default=",".join(CASES))
    p.add_argument("--data")
    args = p.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        data = Path(args.data or folder)
        write(data)
        for shape in args.shapes.split(","):
            cases = {
                c: Ranks(data / shape, Path(folder), shape, *CASES[c])
                for c in args.cases.split(",")
            }
            rounds: list[dict[str, dict[str, float]]] = []
            for k in range(args.rounds):
                order = list(cases)[:: 1 if k % 2 == 0 else -1]
                rounds.append({c: [cases[c].epoch(), cases[c].epoch()][1] for c in order})
            for case, ranks in cases.items():
                for r, last in zip(rounds, [ranks.end()] * args.rounds, strict=True):
                    r[case] |= last
            load = f"{os.getloadavg()[0]:.0f}"
            print(f"\n| {shape}, load {load} | " + " | ".join(FIGURES))
            print("|---|" + "---:|" * len(FIGURES))
            for case in cases:
                cells = []
                for f in FIGURES:
                    ratios = [r[case][f] / r["1 rank"][f] for r in rounds]
                    middle = statistics.median(r[case][f] for r in rounds)
                    spread = f" ({min(ratios):.2f} – {max(ratios):.2f})"
                    ratio = f"{statistics.median(ratios):.2f}"
                    ratio += spread if min(ratios) < max(ratios) else ""
                    cells.append(f"{middle:.4g}" + (f", {ratio}" if case != "1 rank" else ""))
                print(f"| {case} | " + " | ".join(cells) + " |", flush=True)


main()
