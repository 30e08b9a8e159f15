"""Trains a network that tells crops by how a field looks in the course of a year.

    python examples/time_series.py DATA

DATA is a folder; where it has no series.csv, small images of 240 fields are written there first.
The table has a row for each image: its path, its field, its date and the crop. The engine joins
the images of a field to a sequence, in the order of their dates. Clouds hide some dates: such
sequences are padded, and "steps" of a batch says which steps exist.
"""

from __future__ import annotations

import argparse
import csv
import math
import time
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import chaski.torch
import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

CROPS = ("grass", "maize", "wheat")  # in the order of their values in a batch
SIDE = 10  # pixels of an image
DATES = [date(2024, 3, 1) + timedelta(days=25 * i) for i in range(10)]


def greenness(crop: str, day: float) -> float:
    """Returns the share of green ground of a crop on a day of the year."""
    if crop == "grass":
        return 0.55
    peak = {"wheat": 140, "maize": 215}[crop]
    return 0.1 + 0.75 * math.exp(-(((day - peak) / 35) ** 2))


def write_series(folder: Path) -> None:
    """Writes images of red and near infrared, and their table."""
    draw = np.random.default_rng(7)
    rows = []
    (folder / "images").mkdir(parents=True, exist_ok=True)
    for field in range(240):
        crop = CROPS[field % len(CROPS)]
        late, soil = draw.normal(0, 12), draw.uniform(0.8, 1.2)  # sown later, on brighter ground
        for day in DATES:
            if draw.random() < 0.3:
                continue  # clouds
            green = greenness(crop, day.timetuple().tm_yday - late) + draw.normal(0, 0.1)
            green = np.clip(green + draw.normal(0, 0.1, (SIDE, SIDE)), 0, 1)
            red = soil * (1500 - 1200 * green)
            infrared = soil * (1800 + 2400 * green)
            image = np.stack([red, infrared]).astype(np.uint16)
            path = f"images/{field:03}-{day}.npy"
            np.save(folder / path, image)
            rows.append([path, field, day, day.timetuple().tm_yday, crop])
    with open(folder / "series.csv", "w", newline="") as f:
        csv.writer(f).writerows([["image", "field", "date", "day", "crop"], *rows])


def batches(table: Path, part: str) -> Any:
    """Returns batches of a part of the fields: images (n, t, 2, y, x), days and crops (n, t)."""
    return chaski.torch.IterableDataset(
        table,
        fields={
            "image": chaski.Field(column="image", normalize=chaski.Normalize(1e-3, -1.5)),
            "day": "day",
            "crop": chaski.Field(column="crop", kind="class", classes=CROPS),
        },
        rows=chaski.Rows(
            time=chaski.Time("field", "date", length=len(DATES)),
            # By field, so that none is in both parts.
            split=chaski.Split.by_column("field", {"train": 0.75, "test": 0.25}),
            use=part,
        ),
        pixels=chaski.Pixels(augment="d4"),
        batch_size=16,
        seed=7,
    )


class Temporal(nn.Module):
    """Looks at each step alone, and weighs the steps by attention."""

    def __init__(self, width: int = 32) -> None:
        """Takes images of two bands; width is the number of features of a step."""
        super().__init__()
        self.pixels = nn.Sequential(nn.Conv2d(2, 16, 3), nn.ReLU(), nn.Conv2d(16, width, 3))
        self.step = nn.Sequential(nn.Linear(width + 2, width), nn.ReLU())
        self.weight = nn.Linear(width, 4)
        self.head = nn.Linear(4 * width, len(CROPS))

    def forward(self, image: torch.Tensor, day: torch.Tensor, exists: torch.Tensor) -> torch.Tensor:
        """Returns a logit for each crop; steps that do not exist have no part in it."""
        n, t = image.shape[:2]
        x = F.relu(self.pixels(image.flatten(0, 1))).mean((2, 3)).reshape(n, t, -1)
        turn = day.float()[..., None] * (2 * math.pi / 366)
        x = self.step(torch.cat([x, turn.sin(), turn.cos()], dim=2))
        weight = self.weight(x).masked_fill(~exists[..., None], -1e9).softmax(dim=1)
        return self.head(torch.einsum("ntw,nth->nhw", x, weight).flatten(1))


def logits(net: nn.Module, batch: dict[str, torch.Tensor]) -> torch.Tensor:
    """Returns what the network says of a batch."""
    return net(batch["image"], batch["day"], batch["steps"].bool())


def main() -> None:
    """Trains, and prints how it went."""
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("data", type=Path)
    p.add_argument("--epochs", type=int, default=20)
    args = p.parse_args()
    table = args.data / "series.csv"
    if not table.exists():
        write_series(args.data)

    torch.set_num_threads(1)  # the network is small, and the engine has the other cores
    torch.manual_seed(7)
    net = Temporal()
    optimizer = torch.optim.AdamW(net.parameters(), lr=3e-3)
    losses = []
    start = time.perf_counter()
    with batches(table, "train") as train, batches(table, "test") as test:
        for _ in range(args.epochs):
            for batch in train:
                loss = F.cross_entropy(logits(net, batch), batch["crop"][:, 0], reduction="none")
                loss = chaski.torch.masked_mean(loss, batch)  # rows that only pad do not count
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                losses.append(loss.item())
        right = total = steps = 0
        with torch.no_grad():
            for batch in test:
                same = logits(net, batch).argmax(1) == batch["crop"][:, 0]
                right += int(same[batch["valid"]].sum())
                total += int(batch["valid"].sum())
                steps += int(batch["steps"].sum())
    print(f"steps     {steps / total:.1f} of {len(DATES)} of a field are not under clouds")
    print(f"loss      {losses[0]:.3f} at the first step, {losses[-1]:.3f} at the last")
    print(f"held out  {right / total:.1%} of {total} fields right")
    print(f"time      {time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
