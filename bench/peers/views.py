"""What further views of a sample cost: processor time of several windows against one.

    python views.py --scene testdata/demo/coast.tif --work .peers/views --side 256 --codec zstd

It cuts the scene into chips in tiles of 256 by 256 pixels. In every round each set of windows takes
its turn for some epochs; time is that of this process and its engines, for each sample.
"""

from __future__ import annotations

import argparse
import statistics
import time
from pathlib import Path
from typing import Any

import chaski
import numpy as np
import rasterio
from sides import processor_seconds

R, CHIPS, EPOCHS = chaski.RandomWindow, 256, 3
Z = chaski.ResizedWindow(224, scale=(0.2, 1), of_asset=True)
SETS: dict[str, Any] = {
    "224": R(224),
    "2 × 224": [R(224)] * 2,
    "8 × 96": [R(96)] * 8,
    "2 × 224, 6 × 96": [R(224)] * 2 + [R(96)] * 6,
    "96": R(96),
    "chip": chaski.WholeChip(),
    "224 resized": Z,
    "2 × 224 resized": [Z] * 2,
}


def write(folder: Path, scene: Path, side: int, codec: str) -> None:
    """Writes chips that lie anywhere in the scene."""
    folder.mkdir(parents=True)
    rng = np.random.default_rng(0)
    with rasterio.open(scene) as src:
        x = src.read()
    options = {"driver": "GTiff", "dtype": x.dtype, "count": len(x), "width": side, "height": side}
    options |= {"tiled": True, "blockxsize": 256, "blockysize": 256, "compress": codec}
    for i in range(CHIPS):
        top, left = (int(rng.integers(0, n - side + 1)) for n in x.shape[1:])
        with rasterio.open(folder / f"{i:03}.tif", "w", predictor=2, **options) as f:
            f.write(x[:, top : top + side, left : left + side])


def settled() -> float:
    """Returns what is spent once it stands still: what is prefetched belongs to the turn."""
    last = -1.0
    while (now := processor_seconds()) - last > 0.02:
        last = now
        time.sleep(0.3)
    return now


def main() -> None:
    """Writes the chips once, and prints a line for each set of windows."""
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--scene", type=Path, required=True)
    p.add_argument("--work", type=Path, required=True)
    p.add_argument("--side", type=int, default=256)
    p.add_argument("--codec", default="zstd")
    p.add_argument("--rounds", type=int, default=5)
    o = p.parse_args()
    folder = o.work / f"{o.side}-{o.codec}"
    if not folder.exists():
        write(folder, o.scene, o.side, o.codec)
    loaders = {k: chaski.load(folder, window=w, batch_size=32) for k, w in SETS.items()}
    times: dict[str, list[float]] = {k: [] for k in SETS}
    for turn in range(o.rounds + 1):
        for name, loader in loaders.items():
            before = settled()
            rows = sum(len(b["valid"]) for _ in range(EPOCHS) for b in loader)
            if turn:  # the first round warms up
                times[name].append(1e3 * (settled() - before) / rows)
    for name, ms in times.items():
        base = times["224 resized" if name.endswith("resized") else "224"]
        ratios = [a / b for a, b in zip(ms, base, strict=True)]
        print(f"{name:16} {statistics.median(ms):.2f} ms, {statistics.median(ratios):.2f} "
              f"({min(ratios):.2f}–{max(ratios):.2f})")  # fmt: skip


if __name__ == "__main__":
    main()
