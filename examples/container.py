"""Trains on image and mask of the samples of a TACO container, which is not unpacked.

    python examples/container.py testdata/coast/coast.tacozip

The container may lie behind http(s)://, s3://, gs:// or az://; it is read in ranges. Its column
"split" says which samples are trained on ("train") and which are held out ("validation").
"""

from __future__ import annotations

import argparse

import chaski.torch
import torch
import torch.nn.functional as F
from torch import nn

PADDING = 255  # in masks, of rows that only pad a batch


def main() -> None:
    """Trains, and prints how it went."""
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("container")
    p.add_argument("--image", default="s2/img.tif", help="path of the image below a sample")
    p.add_argument("--mask", default="ref/label.tif", help="path of the mask below a sample")
    p.add_argument("--epochs", type=int, default=40)
    args = p.parse_args()

    image = chaski.Field(column=args.image, normalize="mean_std")
    stats = chaski.stats(args.container, fields={"image": image})

    def batches(split: str, window: tuple[int, int] | None) -> chaski.torch.IterableDataset:
        fields = {"image": image, "mask": chaski.Field(column=args.mask, dtype="native")}
        return chaski.torch.IterableDataset(
            args.container,
            fields=fields,
            stats=stats,
            batch_size=6,
            rows=chaski.Rows(split=split),
            window=window,
        )

    torch.manual_seed(7)
    train = batches("train", (16, 16))
    net = nn.Conv2d(len(stats.mean("image")), 2, 1)
    optimizer = torch.optim.AdamW(net.parameters(), lr=0.1)
    losses = []
    for _ in range(args.epochs):
        for batch in train:
            want = batch["mask"][:, 0].long().masked_fill(~batch["valid"][:, None, None], PADDING)
            loss = F.cross_entropy(net(batch["image"]), want, ignore_index=PADDING)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())

    shapes = ", ".join(f"{k} {tuple(v.shape)}" for k, v in batch.items() if v.ndim > 1)
    right = total = 0
    with torch.no_grad():
        for batch in batches("validation", None):
            same = net(batch["image"]).argmax(1) == batch["mask"][:, 0]
            right += int(same[batch["valid"]].sum())
            total += same[batch["valid"]].numel()
    print(f"batches   {shapes}")
    print(f"loss      {losses[0]:.3f} at the first step, {losses[-1]:.3f} at the last")
    print(f"held out  {right / total:.1%} of {total} pixels right")


if __name__ == "__main__":
    main()
