"""Trains a detector of houses and tanks from polygons on the ground.

    python examples/detection.py DATA

DATA is a folder; where it has no train/, small scenes are written there first, and objects.geojson
with the outlines of what is on them. The engine cuts windows out of the scenes, finds the outlines
that lie in each, and gives their boxes in pixels of the window, flipped and turned with it. The
network is a small CenterNet (Zhou et al., Objects as Points, 2019): a map of centres for each
class, and the sides of the box at each pixel of it.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from pathlib import Path
from typing import Any

import chaski.torch
import numpy as np
import torch
import torch.nn.functional as F
from chaski import rumi
from torch import nn

CLASSES = ("house", "tank")
CRS = 32630  # UTM zone 30 north
SIDE = 160  # pixels of a scene
PIXEL = 2.0  # metres
STRIDE = 4  # pixels of the image for one of the map


def outlines(draw: np.random.Generator) -> list[tuple[str, np.ndarray]]:
    """Returns class and outline (k, 2), in pixels, of what is on a scene, apart from each other."""
    out: list[tuple[str, np.ndarray]] = []
    for x, y in draw.permuted([(x, y) for x in range(20, SIDE, 40) for y in range(20, SIDE, 40)]):
        if draw.random() < 0.3:
            continue
        middle = np.array([x, y]) + draw.uniform(-5, 5, 2)
        if draw.random() < 0.5:
            turn = np.arange(16) * (2 * math.pi / 16)
            shape = draw.uniform(6, 10) * np.stack([np.cos(turn), np.sin(turn)], 1)
            out.append(("tank", middle + shape))
        else:
            a, b = draw.uniform(5, 11, 2)
            turn = draw.uniform(0, math.pi)
            corners = np.array([(-a, -b), (a, -b), (a, b), (-a, b)])
            c, s = math.cos(turn), math.sin(turn)
            out.append(("house", middle + corners @ np.array([(c, s), (-s, c)])))
    return out


def inside(outline: np.ndarray) -> np.ndarray:
    """Returns which pixels of a scene a convex outline holds."""
    y, x = np.mgrid[:SIDE, :SIDE] + 0.5
    held = np.ones((SIDE, SIDE), bool)
    for (x0, y0), (x1, y1) in zip(outline, np.roll(outline, -1, axis=0), strict=True):
        held &= (x1 - x0) * (y - y0) - (y1 - y0) * (x - x0) >= 0
    return held


def write_scenes(folder: Path) -> None:
    """Writes scenes of three bands, and the outlines on them as GeoJSON in metres of the map."""
    draw = np.random.default_rng(7)
    features = []
    for i in range(40):
        left, top = 500_000 + 1000 * i, 5_000_000
        image = draw.normal(900, 150, (3, SIDE, SIDE)) + draw.uniform(-150, 150, (3, 1, 1))
        for kind, outline in outlines(draw):
            image[:, inside(outline)] += 600 if kind == "house" else 400
            ring = (outline * (PIXEL, -PIXEL) + (left, top)).tolist()
            features.append(
                {
                    "type": "Feature",
                    "properties": {"class": kind},
                    "geometry": {"type": "Polygon", "coordinates": [[*ring, ring[0]]]},
                }
            )
        place = folder / ("test" if i % 4 == 0 else "train") / f"{i:02}.rumi"
        place.parent.mkdir(parents=True, exist_ok=True)
        tiles, layout = rumi.tile2(image.clip(1, 4000).astype(np.uint16), 32)
        where = (PIXEL, 0, left, 0, -PIXEL, top)
        rumi.write(place, tiles, layout, graph="zstd", transform=where, crs=CRS)
    (folder / "objects.geojson").write_text(
        json.dumps({"type": "FeatureCollection", "features": features})
    )


def batches(data: Path, part: str, window: Any, augment: Any, shuffle: bool) -> Any:
    """Returns batches: images (n, 3, y, x), and the boxes of each row with their classes."""
    objects = chaski.Vector(
        data / "objects.geojson",
        column="class",
        classes=CLASSES,
        kind="boxes",
        crs=f"EPSG:{CRS}",
    )
    return chaski.torch.IterableDataset(
        data / part,
        fields={
            "image": chaski.Field(normalize=chaski.Normalize(1 / 500, -2)),
            "boxes": objects,
        },
        pixels=chaski.Pixels(augment=augment),
        window=window,
        batch_size=8,
        shuffle=shuffle,
        seed=7,
    )


class Detector(nn.Module):
    """Returns a map of a quarter of the size: logits of classes, and four sides."""

    def __init__(self, width: int = 16) -> None:
        """Takes images of three bands; width is the number of features."""
        super().__init__()
        layers: list[nn.Module] = []
        before = 3
        for stride in (2, 2, 1, 1):
            layers += [nn.Conv2d(before, width, 3, stride, padding=1), nn.BatchNorm2d(width)]
            layers += [nn.ReLU()]
            before = width
        far = nn.Conv2d(width, width, 3, padding=2, dilation=2)
        self.body = nn.Sequential(*layers, far, nn.ReLU())
        self.centres = nn.Conv2d(width, len(CLASSES), 1)
        self.sides = nn.Conv2d(width, 4, 1)
        nn.init.constant_(self.centres.bias, -3.0)  # few pixels are centres

    def forward(self, image: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Returns logits of centres (n, c, y, x), and the distances to the sides (n, 4, y, x)."""
        x = self.body(image)
        return self.centres(x), F.softplus(self.sides(x)) * STRIDE


def loss_of(net: nn.Module, batch: dict[str, Any]) -> torch.Tensor:
    """Returns the loss of the rows that are valid."""
    centres, sides = net(batch["image"])
    want = torch.zeros_like(centres)
    y, x = (torch.arange(n) for n in want.shape[2:])
    off, count = torch.zeros(()), 0
    rows = zip(batch["boxes"].rows(), batch["boxes_values"].rows(), strict=True)
    for k, (boxes, values) in enumerate(rows):
        for (x0, y0, x1, y1), value in zip(boxes.tolist(), values.tolist(), strict=True):
            cx, cy = (x0 + x1) / 2 / STRIDE, (y0 + y1) / 2 / STRIDE
            i, j = min(int(cy), len(y) - 1), min(int(cx), len(x) - 1)
            spread = (x1 - x0 + y1 - y0) / 16 / STRIDE + 0.5
            bell = torch.exp(-((x - j) ** 2 + (y[:, None] - i) ** 2) / (2 * spread**2))
            want[k, value - 1] = torch.maximum(want[k, value - 1], bell)
            px, py = (j + 0.5) * STRIDE, (i + 0.5) * STRIDE
            sides_here = torch.tensor([px - x0, py - y0, x1 - px, y1 - py])
            off = off + F.l1_loss(sides[k, :, i, j], sides_here)
            count += 1
    p = centres.sigmoid().clamp(1e-4, 1 - 1e-4)
    hit = want == 1
    focal = torch.where(hit, (1 - p) ** 2 * p.log(), (1 - want) ** 4 * p**2 * (1 - p).log())
    focal = -focal[batch["valid"]].sum()
    return (focal + 0.2 * off) / max(count, 1)


def detections(net: nn.Module, image: torch.Tensor) -> list[list[tuple[float, int, list[float]]]]:
    """Returns score, class from 1 and box of what each image shows: the peaks of its maps."""
    centres, sides = net(image)
    p = centres.sigmoid()
    peaks = (p == F.max_pool2d(p, 5, 1, padding=2)) & (p > 0.4)
    out: list[list[tuple[float, int, list[float]]]] = [[] for _ in image]
    for k, c, i, j in peaks.nonzero().tolist():
        px, py = (j + 0.5) * STRIDE, (i + 0.5) * STRIDE
        left, up, right, down = sides[k, :, i, j].tolist()
        out[k].append((float(p[k, c, i, j]), c + 1, [px - left, py - up, px + right, py + down]))
    return [sorted(found, reverse=True) for found in out]


def overlap(a: list[float], b: list[float]) -> float:
    """Returns the intersection over union of two boxes."""
    w, h = min(a[2], b[2]) - max(a[0], b[0]), min(a[3], b[3]) - max(a[1], b[1])
    both = max(w, 0.0) * max(h, 0.0)
    area = sum((x1 - x0) * (y1 - y0) for x0, y0, x1, y1 in (a, b))
    return both / (area - both)


@torch.no_grad()
def evaluate(net: nn.Module, test: Any) -> tuple[int, int, int]:
    """Returns how many objects there are, were found, and how many were found in all."""
    net.eval()
    there = right = found = 0
    for batch in test:
        boxes, values = batch["boxes"].rows(), batch["boxes_values"].rows()
        for k, seen in enumerate(detections(net, batch["image"])):
            if not batch["valid"][k]:
                continue
            left = list(zip(values[k].tolist(), boxes[k].tolist(), strict=True))
            there, found = there + len(left), found + len(seen)
            for _, kind, box in seen:
                fits = [one for one in left if one[0] == kind and overlap(one[1], box) >= 0.5]
                if fits:
                    left.remove(fits[0])
                    right += 1
    return there, right, found


def main() -> None:
    """Trains, and prints how it went."""
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("data", type=Path)
    p.add_argument("--epochs", type=int, default=16)
    args = p.parse_args()
    if not (args.data / "train").exists():
        write_scenes(args.data)

    torch.set_num_threads(1)  # the network is small, and the engine has the other cores
    torch.manual_seed(7)
    net = Detector()
    optimizer = torch.optim.AdamW(net.parameters(), lr=4e-3)
    losses = []
    start = time.perf_counter()
    windows = chaski.RandomWindow(96, per_asset=4)
    with (
        batches(args.data, "train", windows, "d4", shuffle=True) as train,
        batches(args.data, "test", None, None, shuffle=False) as test,
    ):
        steps = args.epochs * len(train)
        schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 4e-3, steps)
        for _ in range(args.epochs):
            net.train()
            for batch in train:
                loss = loss_of(net, batch)  # of batch["valid"] alone
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                schedule.step()
                losses.append(loss.item())
        there, right, found = evaluate(net, test)
    print(f"loss       {losses[0]:.2f} at the first step, {losses[-1]:.2f} at the last")
    print(f"recall     {right / max(there, 1):.1%} of {there} objects on held-out scenes")
    print(f"precision  {right / max(found, 1):.1%} of {found} boxes")
    print(f"time       {time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
