"""What `chaski plan --fleet` foretells of one host, against what it reaches.

    PYTHONPATH=python/src CHASKI_BIN=bin/chaski python bench/peers/fleet.py --store STORE

STORE is tools/slowstore, built. Each line is a store with a round trip and a bandwidth: the samples
a second that the plan says for a GPU which takes any number, and those of `chaski bench load`, a
round of 4 s each. The chips are noise.

Needs numpy and rasterio.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

BINARY = os.environ["CHASKI_BIN"]
CHIPS = {"small": (4096, 64), "large": (1024, 200)}  # how many, and pixels of a side
WINDOWS = ["--window", "64x64", "--per-asset", "4", "--memory", str(16 << 20)]  # no room for tiles
STORES: list[tuple[str, int, int, list[str]]] = [  # chips, ms, MB/s, flags
    ("small", 20, 5, []),
    ("small", 100, 30, []),
    ("small", 300, 200, []),
    ("large", 30, 20, []),
    ("large", 100, 100, []),
    ("large", 300, 100, []),
    ("large", 30, 20, WINDOWS),
    ("large", 100, 100, WINDOWS),
]


def write(root: Path) -> None:
    """Writes the chips, and a catalog of each kind."""
    import rasterio

    noise = np.random.default_rng(0)
    for name, (count, side) in CHIPS.items():
        (root / name).mkdir()
        form: dict[str, Any] = {"driver": "GTiff", "dtype": "uint16", "count": 1, "tiled": True}
        block = 64 if side == 64 else 256
        form |= {"height": side, "width": side, "blockxsize": block, "blockysize": block}
        for i in range(count):
            with rasterio.open(root / name / f"{i:05d}.tif", "w", compress="zstd", **form) as file:
                file.write(noise.integers(0, 65535, (1, side, side), dtype="uint16"))
        catalog = root / f"{name}.parquet"
        subprocess.run([BINARY, "index", "-o", catalog, root / name], check=True)


def run(*command: str) -> Any:
    """Returns what a command prints as JSON."""
    return json.loads(subprocess.run([BINARY, *command], check=True, stdout=subprocess.PIPE).stdout)


def main() -> None:
    """Prints a line for each store."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--store", required=True)
    store = parser.parse_args().store
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        write(root)
        print("| chips | ms | MB/s | bound by | plan | measured | measured / plan |")
        print("|---|---:|---:|---|---:|---:|---:|")
        for name, ms, mb, flags in STORES:
            with socket.socket() as probe:
                probe.bind(("127.0.0.1", 0))
                at = f"127.0.0.1:{probe.getsockname()[1]}"
            link = ["-delay", f"{ms}ms", "-rate", f"{mb}e6"]
            with subprocess.Popen([store, "-dir", folder, "-addr", at, *link]) as server:
                time.sleep(0.5)
                data = ["--batch", "64", *flags, f"http://{at}/{name}.parquet"]
                given = f"rtt={ms}ms,bandwidth={mb}MB"
                fleet = ["--fleet", "1", "--gpus", "1", "--rate", "1e6", "--store", given]
                plan = run("plan", "--json", *fleet, *data)["fleet"]
                report = run("bench", "load", "--json", "--rounds", "3", "--seconds", "4", *data)
                server.kill()
            rounds = next(f["rounds"] for f in report["figures"] if f["name"] == "samples")
            reached = sorted(rounds)[1]
            kind = f"{name}, windows" if flags else name
            bound = plan["bounds"][0]["name"]
            ratio = reached / plan["reached"]
            figures = f"{plan['reached']:.0f} | {reached:.0f} | {ratio:.2f}"
            print(f"| {kind} | {ms} | {mb} | {bound} | {figures} |", flush=True)


if __name__ == "__main__":
    main()
