"""Writes small scenes of soil, crops and water with masks, to train segmentation on.

    python examples/scenes.py DATA

It writes DATA/images and DATA/masks, of one size and side by side on the ground, and the names of
those to train and to validate on into DATA/train.txt and DATA/val.txt.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import rasterio
from rasterio.transform import from_origin

COLOURS = np.array([(1500, 2000, 2600), (600, 3200, 1700), (500, 300, 200)])
"""What red, near infrared and short-wave infrared have of each class."""
SCENES, HELD_OUT = 24, 6
SIDE = 128  # pixels


def write(data: Path) -> None:
    """Writes scenes in a row, their masks, and the names of those to train and to validate on."""
    draw = np.random.default_rng(1)
    for kind in ("images", "masks"):
        (data / kind).mkdir(parents=True)
    for i in range(SCENES):
        mask = np.zeros((SIDE, SIDE), np.uint8)
        for _ in range(8):
            y, x = draw.integers(0, SIDE - 32, 2)
            mask[y : y + draw.integers(12, 32), x : x + draw.integers(12, 32)] = 1
        rows, columns = np.mgrid[:SIDE, :SIDE]
        y, x = draw.integers(20, SIDE - 20, 2)
        mask[np.hypot(rows - y, columns - x) < draw.uniform(8, 26)] = 2
        light = draw.uniform(0.7, 1.3)  # of the day
        image = COLOURS[mask].transpose(2, 0, 1) * light + draw.normal(0, 400, (3, SIDE, SIDE))
        place = from_origin(500_000 + i * SIDE * 10, 4_600_000, 10, 10)
        for kind, x in (("images", image.clip(0, 10_000).astype(np.uint16)), ("masks", mask[None])):
            how = {"count": len(x), "dtype": x.dtype, "height": SIDE, "width": SIDE}
            where = {"crs": "EPSG:32630", "transform": place}
            with rasterio.open(
                data / kind / f"{i:02}.tif", "w", driver="GTiff", **how, **where
            ) as f:
                f.write(x)
    names = [f"{i:02}" for i in range(SCENES)]
    (data / "train.txt").write_text("\n".join(names[:-HELD_OUT]))
    (data / "val.txt").write_text("\n".join(names[-HELD_OUT:]))


if __name__ == "__main__":
    write(Path(sys.argv[1]))
