"""Training from sharded Zarr arrays, side by side with zarr-python and a torch DataLoader.

    bench_zarr.py [--rounds N] [--windows N] [--workers W] [--side PIXELS]

Run it with an interpreter that has the packages chaski, torch and zarr. It writes a scene of four
bands of uint16 (smooth ground with noise, zstd level 3, chunks of 256 by 256 in shards of 1024 by
1024) and draws random windows of 256 by 256 pixels in all bands: batches of 16, float32, as torch
tensors in the process that trains. chaski and zarr-python take turns, each with W workers. Figures
are windows a second, by the clock and by processor time of all processes without that of starting
them; the ratio is the median of the rounds' ratios, with the least and the most. Neither side keeps
decoded chunks from one window to the next.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

WINDOW, BATCH = 256, 16


def write(path: Path, side: int) -> None:
    """Writes the scene."""
    import zarr

    rng = np.random.default_rng(1)
    a = zarr.create_array(
        str(path),
        shape=(4, side, side),
        chunks=(1, 256, 256),
        shards=(1, 1024, 1024),
        dtype="uint16",
        dimension_names=("b", "y", "x"),
        compressors=zarr.codecs.ZstdCodec(level=3),
    )
    y, x = np.mgrid[0:side, 0:side]
    ground = 1500 + 900 * np.sin(x / 90) * np.cos(y / 70)
    for b in range(4):
        a[b] = (ground * (1 + b / 4) + rng.normal(0, 20, (side, side))).astype("uint16")


def theirs(path: str, workers: int, windows: int):
    """Yields batches of zarr-python, each worker with an array of its own."""
    import torch
    import zarr
    from torch.utils.data import DataLoader, Dataset

    class Windows(Dataset):
        array = None

        def __len__(self) -> int:
            return windows

        def __getitem__(self, i: int) -> torch.Tensor:
            if self.array is None:
                zarr.config.set({"threading.max_workers": 1, "async.concurrency": 4})
                self.array = zarr.open_array(path, mode="r")
            rng = np.random.default_rng(i)
            h, w = self.array.shape[1:]
            y, x = rng.integers(0, h - WINDOW + 1), rng.integers(0, w - WINDOW + 1)
            part = self.array[:, y : y + WINDOW, x : x + WINDOW]
            return torch.from_numpy(part.astype(np.float32))

    yield from DataLoader(Windows(), batch_size=BATCH, num_workers=workers)


def ours(path: str, workers: int, windows: int):
    """Yields batches of chaski."""
    import chaski
    from chaski.torch import to_tensors

    with chaski.load(
        path,
        batch_size=BATCH,
        window=chaski.RandomWindow((WINDOW, WINDOW), per_asset=windows),
        fields={"image": {"dtype": "float32"}},
        shuffle=True,
        seed=1,
        engine=chaski.Engine(workers=workers, share=False),
    ) as loader:
        for batch in loader:
            yield to_tensors(batch)["image"]


def one(side: str, path: str, workers: int, windows: int) -> None:
    """Prints how many windows a second one side gives after its first batch."""
    batches = (ours if side == "chaski" else theirs)(path, workers, windows)
    total = float(next(batches).sum())  # the first batch waits for workers to start
    start, n = time.perf_counter(), 0
    for batch in batches:
        total += float(batch[0, 0, 0, 0])
        n += len(batch)
    print(n / (time.perf_counter() - start))
    assert total > 0


def run(side: str, path: Path, workers: int, windows: int) -> tuple[float, float]:
    """Runs one side, and returns windows a second and the processor time of all processes."""
    busy = resource.getrusage(resource.RUSAGE_CHILDREN)
    text = subprocess.run(
        [sys.executable, __file__, "--one", side, str(path), str(workers), str(windows)],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    ).stdout
    # Processes that the side started and did not wait for are children of this one: see main.
    while True:
        try:
            os.wait()
        except ChildProcessError:
            break
    done = resource.getrusage(resource.RUSAGE_CHILDREN)
    return float(text), done.ru_utime - busy.ru_utime + done.ru_stime - busy.ru_stime


def rate(side: str, path: Path, workers: int, windows: int) -> tuple[float, float]:
    """Returns windows a second by the clock and by processor time, without those of starting."""
    few = 4 * BATCH
    _, start = run(side, path, workers, few)
    by_clock, spent = run(side, path, workers, windows)
    return by_clock, (windows - few) / (spent - start)


def main() -> None:
    """Measures, and prints a table in Markdown."""
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--windows", type=int, default=1280, help="of each side in a round")
    p.add_argument("--workers", type=int, default=2)
    p.add_argument("--side", type=int, default=4096)
    p.add_argument("--one", nargs=4, help=argparse.SUPPRESS)
    o = p.parse_args()
    if o.one:
        one(o.one[0], o.one[1], int(o.one[2]), int(o.one[3]))
        return
    # Orphans become children of this process, so that their processor time counts (prctl(2)).
    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "scene.zarr")
        write(path, o.side)
        rounds = []
        for k in range(o.rounds + 1):
            pair = [rate(s, path, o.workers, o.windows) for s in ("chaski", "zarr-python")]
            if k:  # the first one fills the page cache
                rounds.append(pair)
            print(f"round {k} of {o.rounds}: {pair}", file=sys.stderr, flush=True)
    print(f"load average at the end: {os.getloadavg()[0]:.1f}", file=sys.stderr)
    print("| windows of 4 × 256 × 256 a second | chaski | zarr-python | × | least – most |")
    print("|---|--:|--:|--:|--:|")
    for i, what in enumerate(("by the clock", "by processor time")):
        a, b = ([r[side][i] for r in rounds] for side in (0, 1))
        ratios = [x / y for x, y in zip(a, b, strict=True)]
        print(
            f"| {what} | {statistics.median(a):.0f} | {statistics.median(b):.0f} "
            f"| {statistics.median(ratios):.1f} | {min(ratios):.1f} – {max(ratios):.1f} |"
        )


if __name__ == "__main__":
    main()
