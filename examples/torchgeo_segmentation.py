"""Trains TorchGeo's segmentation of scenes into soil, crops and water, with chaski as the reader.

    python examples/torchgeo_segmentation.py DATA

DATA is a folder; where it has no images/, scenes.py writes small scenes and their masks there.
Datasets, samplers, task and Trainer are those that TorchGeo's documentation uses: but the dataset
goes through `chaski.torchgeo.accelerate`, and the DataLoader has no worker processes.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import chaski.torchgeo
from lightning import Trainer, seed_everything
from scenes import HELD_OUT, SIDE, write
from torch.utils.data import DataLoader
from torchgeo.datasets import RasterDataset, stack_samples
from torchgeo.samplers import GriddedPatchSampler, RandomPatchSampler
from torchgeo.tasks import SemanticSegmentation

CLASSES = ("soil", "crop", "water")
WINDOW = 64  # pixels


class Masks(RasterDataset):  # type: ignore[misc]
    """Their masks."""

    is_image = False


def scaled(sample: dict[str, Any]) -> dict[str, Any]:
    """Is a transform as TorchGeo's datasets take them."""
    return {**sample, "image": sample["image"] / 3000}


def scenes(data: Path, part: str) -> Any:
    """Returns images with masks of a part."""
    names = (data / f"{part}.txt").read_text().split()
    images, masks = ([data / kind / f"{n}.tif" for n in names] for kind in ("images", "masks"))
    both = RasterDataset(images, transforms=scaled) & Masks(masks)
    return chaski.torchgeo.accelerate(both)


def main() -> None:
    """Trains, and tests on scenes that were held out."""
    p = argparse.ArgumentParser(description="Trains TorchGeo's segmentation with chaski.")
    p.add_argument("data", type=Path)
    p.add_argument("--windows", type=int, default=640, help="to train on")
    o = p.parse_args()
    if not (o.data / "images").exists():
        write(o.data)
    seed_everything(1, verbose=False)
    train, held_out = scenes(o.data, "train"), scenes(o.data, "val")
    task = SemanticSegmentation(
        model="fcn", num_filters=16, in_channels=3, num_classes=len(CLASSES), loss="ce", lr=0.01
    )
    how = {"batch_size": 16, "collate_fn": stack_samples}
    trainer = Trainer(
        accelerator="cpu",
        max_epochs=1,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        num_sanity_val_steps=0,
    )
    sampler = RandomPatchSampler(train, size=WINDOW, length=o.windows)
    trainer.fit(
        task,
        DataLoader(train, sampler=sampler, **how),
        DataLoader(held_out, sampler=GriddedPatchSampler(held_out, size=WINDOW), **how),
    )
    right = float(trainer.callback_metrics["val_OverallAccuracy"])
    print(f"held out  {100 * right:.1f}% of {HELD_OUT * SIDE**2} pixels right")


if __name__ == "__main__":
    main()
