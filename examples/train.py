"""Trains a small segmentation network from the stream of a chaski engine.

    python examples/train.py DATA --stats DATA/stats.json --scene testdata/demo/coast.tif

DATA is what examples/demo-dataset writes: train/ and val/, each with images/{id}.tif and
masks/{id}.tif, and labels.tif. The engine runs beside this process: it reads, decodes, shuffles and
normalises the chips while the network trains on those before. With a scene, it then predicts a map
of it, DATA/map.tif, and draws the scene, its labels and the map, DATA/map.png.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import chaski.torch
import numpy as np
import torch
import torch.nn.functional as F
from contact_sheet import draw, false_colour
from torch import nn

CLASSES = {"land": "#e2cb97", "water": "#2d5bbe", "vegetation": "#318642"}
RESOLUTION = 20  # metres of a pixel
NODATA = 255  # in masks; the loss leaves these pixels out


def dataset(folder: Path, stats: Path, batch_size: int, shuffle: bool) -> Any:
    """Returns batches of images, (n, 6, y, x) float32, and their masks, (n, 1, y, x) uint8."""
    return chaski.torch.IterableDataset(
        folder,
        fields={
            "image": chaski.Field(pattern="images/{id}.tif", normalize="mean_std"),
            "mask": chaski.Field(pattern="masks/{id}.tif", dtype="native"),
        },
        stats=stats,
        batch_size=batch_size,
        shuffle=shuffle,
        last="drop" if shuffle else "short",
        seed=7,
    )


def convolutions(before: int, after: int) -> nn.Sequential:
    """Returns two 3 by 3 convolutions, each with its normalisation."""
    return nn.Sequential(
        *(nn.Conv2d(before, after, 3, padding=1, bias=False), nn.BatchNorm2d(after), nn.ReLU()),
        *(nn.Conv2d(after, after, 3, padding=1, bias=False), nn.BatchNorm2d(after), nn.ReLU()),
    )


class UNet(nn.Module):
    """A U-Net of three levels, with some 30,000 weights."""

    def __init__(self, bands: int, classes: int, width: int = 8) -> None:
        """Takes images of so many bands; width is the number of channels of the first level."""
        super().__init__()
        self.down = nn.ModuleList(
            [convolutions(bands, width), convolutions(width, 2 * width)],
        )
        self.middle = convolutions(2 * width, 4 * width)
        self.up = nn.ModuleList(
            [convolutions(6 * width, 2 * width), convolutions(3 * width, width)],
        )
        self.head = nn.Conv2d(width, classes, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Returns a logit for each class and pixel."""
        skips = []
        for level in self.down:
            x = level(x)
            skips.append(x)
            x = F.max_pool2d(x, 2)
        x = self.middle(x)
        for level in self.up:
            x = F.interpolate(x, scale_factor=2.0)
            x = level(torch.cat([x, skips.pop()], dim=1))
        return self.head(x)


class Waiting:
    """Iterates over batches, and sums up the time that its user waits for them."""

    def __init__(self, batches: Iterable[dict[str, torch.Tensor]]) -> None:
        """Wraps batches."""
        self.batches = batches
        self.seconds = 0.0

    def __iter__(self) -> Iterator[dict[str, torch.Tensor]]:
        """Starts an epoch."""
        it = iter(self.batches)
        while True:
            start = time.perf_counter()
            batch = next(it, None)
            self.seconds += time.perf_counter() - start
            if batch is None:
                return
            yield batch


def labels(batch: dict[str, torch.Tensor]) -> torch.Tensor:
    """Returns the masks as (n, y, x) int64; rows that only pad a batch have no label."""
    mask = batch["mask"][:, 0].long()
    return mask.masked_fill(~batch["valid"][:, None, None], NODATA)


@torch.no_grad()
def evaluate(
    net: nn.Module, batches: Iterable[dict[str, torch.Tensor]]
) -> tuple[float, list[float]]:
    """Returns the accuracy and, for each class, the intersection over union."""
    net.eval()
    n = len(CLASSES)
    confusion = torch.zeros(n, n, dtype=torch.long)
    for batch in batches:
        want = labels(batch)
        got = net(batch["image"]).argmax(1)
        known = want != NODATA
        pairs = n * want[known] + got[known]
        confusion += torch.bincount(pairs, minlength=n * n).reshape(n, n)
    hit = confusion.diag()
    iou = hit / (confusion.sum(0) + confusion.sum(1) - hit)
    return float(hit.sum() / confusion.sum()), iou.tolist()


def progress(text: str, end: str = "") -> None:
    """Overwrites the line of a terminal; writes nothing elsewhere."""
    if sys.stderr.isatty():
        print(f"\r\x1b[K{text}", end=end, file=sys.stderr, flush=True)


def save_sheet(path: Path, batch: dict[str, torch.Tensor]) -> None:
    """Draws a batch: each image in false colour, beside its mask."""
    pictures: list[tuple[str, Any]] = []
    for k, sample in enumerate(batch["sample"].tolist()):
        pictures.append((f"chip {sample}", false_colour(batch["image"][k].numpy())))
        pictures.append(("its labels", batch["mask"][k, 0].numpy()))
    draw(path, pictures, CLASSES, RESOLUTION, columns=8)


@torch.no_grad()
def predict(net: nn.Module, scene: Path, stats: Path, out: Path) -> None:
    """Writes a map of a scene, from windows that overlap."""
    net.eval()
    grid = chaski.Grid(128, overlap=64)
    how: dict[str, Any] = {"normalize": "mean_std", "stats": stats, "batch_size": 16}
    with chaski.load(scene, window=grid, shuffle=False, **how) as loader:
        batches = ((b["sample"], torch.from_numpy(b["image"])) for b in loader)
        parts = ((sample, net(image).softmax(1)) for sample, image in batches)
        names, colours = list(CLASSES), list(CLASSES.values())
        style: dict[str, Any] = {"classes": names, "palette": colours, "overviews": True}
        chaski.paste(parts, scene, out, grid=grid, argmax=True, **style)


def draw_map(scene: Path, stats: Path, masks: list[Path], out: Path) -> float:
    """Draws a scene beside its labels and its map; returns the share of pixels where they agree."""
    how: dict[str, Any] = {"normalize": "mean_std", "stats": stats, "batch_size": 1}
    with chaski.load(scene, **how) as loader:
        image = next(iter(loader))["image"][0]
    labels, predicted = (chaski.read(path)[0] for path in masks)
    shown = [("scene in false colour", false_colour(image)), ("labels", labels), ("map", predicted)]
    draw(out, shown, CLASSES, RESOLUTION, columns=3)
    known = labels != NODATA
    return float((labels == predicted)[known].mean())


def main() -> None:
    """Trains, and prints how it went."""
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("data", type=Path)
    p.add_argument("--stats", type=Path, required=True, help="what `chaski stats` wrote for train/")
    p.add_argument("--epochs", type=int, default=2)
    p.add_argument("--batch-size", type=int, default=16)
    p.add_argument("--sheet", type=Path, help="PNG to write of the first batch")
    p.add_argument("--scene", type=Path, help="scene to predict a map of")
    args = p.parse_args()

    torch.manual_seed(7)
    train = dataset(args.data / "train", args.stats, args.batch_size, shuffle=True)
    val = dataset(args.data / "val", args.stats, args.batch_size, shuffle=False)
    net = UNet(bands=6, classes=len(CLASSES))
    optimizer = torch.optim.AdamW(net.parameters(), lr=3e-3)

    curve: list[float] = []
    samples, seconds, waited = 0, 0.0, 0.0
    for epoch in range(args.epochs):
        net.train()
        batches, losses, start = Waiting(train), [], time.perf_counter()
        for step, batch in enumerate(batches):
            if args.sheet and epoch == step == 0:
                save_sheet(args.sheet, batch)
            loss = F.cross_entropy(net(batch["image"]), labels(batch), ignore_index=NODATA)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
            samples += len(batch["image"])
            progress(f"epoch {epoch + 1}: step {step + 1} of {len(train)}, loss {losses[-1]:.3f}")
        progress("")
        seconds += time.perf_counter() - start
        waited += batches.seconds
        curve += losses
        accuracy, iou = evaluate(net, val)
        print(
            f"epoch {epoch + 1} of {args.epochs}: loss {np.mean(losses):.3f}\n"
            f"  held-out chips: accuracy {accuracy:.1%}, IoU "
            + ", ".join(f"{c} {v:.2f}" for c, v in zip(CLASSES, iou, strict=True))
        )

    print(f"samples per second   {samples / seconds:.0f}")
    print(f"waiting for data     {waited / seconds:.1%} of the training time")
    print(f"loss                 {curve[0]:.3f} at the first step, {curve[-1]:.3f} at the last")
    if args.sheet:
        print(f"contact sheet        {args.sheet}")
    if args.scene:
        drawn = args.data / "map.png"
        masks = [args.data / "labels.tif", args.data / "map.tif"]
        predict(net, args.scene, args.stats, masks[1])
        agree = draw_map(args.scene, args.stats, masks, drawn)
        print(f"map of the scene     {masks[1]}, drawn in {drawn}: {agree:.1%} as labelled")


if __name__ == "__main__":
    main()
