"""Cuts the windows of a grid out of rasters and packs them as a TACO container.

    python examples/cut_chips.py testdata/coast/coast.tacozip chips.tacozip

Training needs no chips: `chaski.load` reads windows of whole scenes. They are for those who publish
a dataset, or read one far away a hundred times. Each chip is an image and a mask as .npy files,
with the place of its window and the column "split" of its sample.
"""

from __future__ import annotations

import argparse
import io
from collections.abc import Iterator
from typing import Any

import chaski
import numpy as np


def npy(array: np.ndarray) -> bytes:
    """Returns an array as a .npy file."""
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def chips(source: str, fields: dict[str, Any], grid: chaski.Grid) -> Iterator[dict[str, Any]]:
    """Yields the samples of a container, as `chaski.pack` takes them: one of each window."""
    with chaski.load(
        source,
        fields=fields,
        window=grid,
        batch_size=16,
        shuffle=False,
        pixels=chaski.Pixels(dtype="native", windows=True, geo=True),
    ) as loader:
        for batch in loader:
            for row in np.flatnonzero(batch["valid"]):
                y, x = batch["window"][row, :2]
                yield {
                    "id": f"{batch['id'][row]}_y{y}_x{x}",
                    "path": [
                        {"id": "image.npy", "path": npy(batch["image"][row])},
                        {"id": "mask.npy", "path": npy(batch["mask"][row])},
                    ],
                    "split": batch["split"][row],
                    "stac:crs": f"EPSG:{batch['geo']['epsg'][row]}",
                    "stac:tensor_shape": list(batch["image"][row].shape),
                    "stac:geotransform": batch["geo"]["transform"][row].tolist(),
                }


def main() -> None:
    """Cuts, packs, and prints how many chips there are."""
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("source", help="a dataset of images, masks and a column split")
    p.add_argument("output", help="the container to write")
    p.add_argument("--image", default="s2/img.tif", help="where a sample has its image")
    p.add_argument("--mask", default="ref/label.tif", help="where a sample has its mask")
    p.add_argument("--size", type=int, default=16, help="side of a chip, in pixels")
    p.add_argument("--stride", type=int, default=8, help="pixels from a chip to the next")
    args = p.parse_args()

    fields = {
        "image": args.image,
        "mask": chaski.Field(column=args.mask, dtype="native"),
        "id": chaski.Field(kind="text"),
        "split": chaski.Field(kind="text"),
    }
    grid = chaski.Grid((args.size, args.size), stride=args.stride)
    about = {
        "id": "chips",
        "dataset_version": "1.0",
        "description": f"Chips of {args.size} by {args.size} pixels.",
        "licenses": ["CC-BY-4.0"],
        "providers": [{"name": "chaski"}],
        "tasks": ["semantic-segmentation"],
    }
    made = chaski.pack(chips(args.source, fields, grid), args.output, about)
    print(f"{args.output}: {len(made)} chips")


if __name__ == "__main__":
    main()
