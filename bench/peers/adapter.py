"""TorchGeo's raster datasets with and without an engine: the same samplers, loops and pixels.

    make frameworks PYTHON=python3.12
    PYTHONPATH=python/src .frameworks-env/torchgeo/bin/python bench/peers/adapter.py \
      --imagery imagery/s2.npy --work .peers/adapter

It cuts the imagery, uint16 bands of (b y x), into scenes on one map with masks beside them, and
takes windows of 256 pixels by TorchGeo's own samplers: at random, and on a grid. In every round
each side takes its turn: `RasterDataset` in a DataLoader with --workers processes, and
`chaski.torchgeo.ChaskiDataset` with an engine of as many workers. Both are warm, and all files
are in the page cache. Printed are samples a second, medians of the rounds, and the ratio with the
lowest and the highest of one round. Samples are compared after it.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import chaski
import chaski.torchgeo
import numpy as np
import rasterio
import torch
from rasterio.transform import from_origin
from torch.utils.data import DataLoader
from torchgeo.datasets import RasterDataset, stack_samples
from torchgeo.samplers import GriddedPatchSampler, RandomPatchSampler

SIDE, BATCH = 256, 16


class Masks(RasterDataset):  # type: ignore[misc]
    """Labels beside the scenes."""

    is_image = False


class OurScenes(chaski.torchgeo.ChaskiDataset):
    """Scenes that an engine reads."""


class OurMasks(chaski.torchgeo.ChaskiDataset, Masks):
    """Masks that an engine reads."""


def write(work: Path, imagery: Path, n: int, codec: str) -> None:
    """Writes n scenes and masks in a row; each has the imagery turned and moved."""
    bands = np.load(imagery)
    side = min(bands.shape[1:]) // 64 * 64
    options = {"driver": "GTiff", "tiled": True, "blockxsize": 256, "blockysize": 256}
    options |= {"compress": codec, "predictor": 2, "crs": "EPSG:32618"}
    for kind in ("scenes", "masks"):
        (work / kind).mkdir(parents=True, exist_ok=True)
    for i in range(n):
        x = np.rot90(np.roll(bands, 97 * i, axis=2)[:, :side, :side], i, axes=(1, 2))
        where = from_origin(5e5 + i * side * 20, 4e6, 20, 20)
        for kind, data in (("scenes", x), ("masks", (x[:1] < 900).astype(np.uint8))):
            shape = {"count": len(data), "height": side, "width": side, "dtype": data.dtype}
            with rasterio.open(
                work / kind / f"{i:03}.tif", "w", **options, **shape, transform=where
            ) as f:
                f.write(data)


def rate(batches: Any) -> float:
    """Returns the samples a second of one pass."""
    start, n = time.perf_counter(), 0
    for batch in batches:
        n += len(batch["image"])
    return n / (time.perf_counter() - start)


def main() -> None:
    """Compares, and prints a table."""
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("--imagery", type=Path, required=True)
    p.add_argument("--work", type=Path, required=True)
    p.add_argument("--scenes", type=int, default=16)
    p.add_argument("--codec", default="deflate")
    p.add_argument("--workers", type=int, default=2)
    p.add_argument("--rounds", type=int, default=5)
    o = p.parse_args()
    if not (o.work / "masks").exists():
        write(o.work, o.imagery, o.scenes, o.codec)
    OurScenes.engine = OurMasks.engine = chaski.Engine(workers=o.workers)
    # Made anew each time: processes of a DataLoader must not inherit files that GDAL has open.
    images, masks = (RasterDataset, OurScenes), (Masks, OurMasks)
    pairs: dict[str, Callable[[], list[Any]]] = {
        "images": lambda: [c(o.work / "scenes") for c in images],
        "images & masks": lambda: [
            c(o.work / "scenes") & m(o.work / "masks") for c, m in zip(images, masks, strict=True)
        ],
    }
    samplers: dict[str, Callable[[Any], Any]] = {
        "random": lambda d: RandomPatchSampler(d, size=SIDE, length=20 * BATCH, generator=1),
        "grid": lambda d: GriddedPatchSampler(d, size=SIDE),
    }
    print("| windows of | sampler | TorchGeo | with an engine | ratio |\n|---|---|--:|--:|---|")
    for name, make in pairs.items():
        for order, sampler in samplers.items():
            datasets = make()
            loaders = [
                DataLoader(
                    d,
                    BATCH,
                    sampler=sampler(d),
                    collate_fn=stack_samples,
                    num_workers=n,
                    persistent_workers=n > 0,
                )
                for d, n in zip(datasets, (o.workers, 0), strict=True)
            ]
            for loader in loaders:
                rate(loader)  # opens files, starts processes
            rounds = [[rate(loader) for loader in loaders] for _ in range(o.rounds)]
            for index in list(sampler(datasets[0]))[:8]:
                one, other = (d[index] for d in datasets)
                assert all(torch.equal(v, other[k]) for k, v in one.items()), "samples differ"
            a, b = (statistics.median(r) for r in zip(*rounds, strict=True))
            ratios = sorted(ours / theirs for theirs, ours in rounds)
            print(
                f"| {name} | {order} | {a:.0f} | {b:.0f} | {statistics.median(ratios):.2f} "
                f"({ratios[0]:.2f} to {ratios[-1]:.2f}) |",
                flush=True,
            )


if __name__ == "__main__":
    main()
