"""TerraTorch's generic module for segmentation with and without an engine.

    make frameworks PYTHON=python3.12
    PYTHONPATH=python/src .frameworks-env/terratorch/bin/python bench/peers/adapter_chips.py \
      --imagery imagery/s2.npy --work .peers/chips

It cuts the imagery, uint16 bands of (b y x), into chips with masks beside them. In every round each
side takes its turn, as in adapter.py: TerraTorch with --workers processes, and
`chaski.terratorch` with an engine of as many workers. The batches of validation, whose order is
fixed, are compared.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import chaski.terratorch
import numpy as np
import rasterio
import terratorch.datamodules.generic_pixel_wise_data_module as theirs
import torch
from rasterio.transform import from_origin
from sides import measure, of_rounds

BATCH = 16


def write(work: Path, imagery: Path, n: int, side: int, codec: str) -> None:
    """Writes n chips with masks; each lies somewhere in the imagery."""
    bands = np.load(imagery)
    rng = np.random.default_rng(1)
    how = {"driver": "GTiff", "height": side, "width": side, "crs": "EPSG:32618"}
    how |= {"tiled": True, "blockxsize": side, "blockysize": side, "compress": codec}
    work.mkdir(parents=True)
    for i in range(n):
        y, x = (rng.integers(0, s - side + 1) for s in bands.shape[1:])
        chip = bands[:, y : y + side, x : x + side]
        how["transform"] = from_origin(5e5 + x * 20, 4e6 - y * 20, 20, 20)
        for name, data in (("image", chip), ("mask", (chip[:1] < 900).astype(np.uint8))):
            path = work / f"{i:04}_{name}.tif"
            with rasterio.open(path, "w", count=len(data), dtype=data.dtype, **how) as f:
                f.write(data)


def loader(module: Any, work: Path, workers: int, kind: str) -> Any:
    """Returns the batches of a module, of training or of validation."""
    roots = {f"{split}_data_root": work for split in ("train", "val", "test")}
    grep = {"img_grep": "*_image.tif", "label_grep": "*_mask.tif"}
    classes = {"num_classes": 2, "means": [0.0] * 6, "stds": [1.0] * 6}
    data = module(batch_size=BATCH, num_workers=workers, **roots, **grep, **classes)
    data.setup("fit")
    return getattr(data, f"{kind}_dataloader")()


def same(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Reports whether two batches are equal."""
    tensors = {k for k, v in one.items() if isinstance(v, torch.Tensor)}
    return one.keys() == other.keys() and all(torch.equal(one[k], other[k]) for k in tensors)


def main() -> None:
    """Compares, and prints a table."""
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("--imagery", type=Path, required=True)
    p.add_argument("--work", type=Path, required=True)
    p.add_argument("--chips", type=int, default=200)
    p.add_argument("--side", type=int, default=256)
    p.add_argument("--codec", default="deflate")
    p.add_argument("--workers", type=int, default=2)
    p.add_argument("--rounds", type=int, default=5)
    o = p.parse_args()
    if not o.work.exists():
        write(o.work, o.imagery, o.chips, o.side, o.codec)
    modules = (
        theirs.GenericNonGeoSegmentationDataModule,
        chaski.terratorch.GenericNonGeoSegmentationDataModule,
    )
    sides = "TerraTorch | with an engine | ratio |"
    print(f"| loop | {sides} by processor time: {sides}\n|---{'|--:|--:|---' * 2}|")
    for kind in ("train", "val"):
        loaders = [loader(m, o.work, o.workers, kind) for m in modules]
        for batches in loaders:
            measure(batches)
        rounds = [[measure(batches) for batches in loaders] for _ in range(o.rounds)]
        columns = [
            of_rounds(*([side[k] for side in r] for r in zip(*rounds, strict=True))) for k in (0, 1)
        ]
        print(f"| {kind} | {' '.join(columns)}", flush=True)
    pairs = [same(a, b) for a, b in zip(*loaders, strict=True)]
    print(f"{sum(pairs)} of {len(pairs)} batches are equal")


if __name__ == "__main__":
    main()
