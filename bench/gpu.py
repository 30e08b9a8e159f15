"""Measures batches on a device: samples a second, bandwidth, and whether copies overlap.

    python bench/gpu.py chips/ --device cuda --batch 64 --seconds 10

It compares a loop that only takes batches on the device with one that takes arrays of the engine,
the rate of copies with that of one registered block of memory, and a loop that computes for as long
as a batch takes to copy with both alone. Marks: 0.95 of the engine, 0.9 of the bandwidth.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator
from typing import Any

import chaski
import chaski.torch
import numpy as np
import torch
from chaski import _device

# For bands of any number: as means and deviations do, these scale and shift.
SCALED = {"mean": [1000.0], "std": [500.0]}


def wait(device: torch.device) -> None:
    """Waits for all that the device was asked for."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def endless(dataset: Any) -> Iterator[Any]:
    """Yields batches, epoch by epoch."""
    while True:
        yield from dataset


def rate(batches: Iterator[Any], seconds: float, then: Callable[[Any], object]) -> float:
    """Returns the batches a second that a loop takes, after some to begin with."""
    for _ in range(5):
        then(next(batches))
    begun, n = time.perf_counter(), 0
    while time.perf_counter() - begun < seconds:
        then(next(batches))
        n += 1
    return n / (time.perf_counter() - begun)


def bandwidth(stream: _device.Stream, size: int, seconds: float) -> float:
    """Returns the bytes a second of copies of registered memory."""
    memory = np.ones(size, np.uint8)
    end = stream.register(memory)
    source = torch.from_numpy(memory)

    def copy(_: object) -> None:
        with stream.order():
            stream.copy(source)
            copied = stream.copied()
        copied()

    try:
        return size * rate(iter(int, 1), seconds, copy)
    finally:
        end()


def main() -> None:
    """Prints one line of JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("source")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=5)
    args = parser.parse_args()
    if args.device == "cpu":
        torch.set_num_threads(1)  # more would spin while they wait, on the cores of the engine
    options = {"batch_size": args.batch, "normalize": SCALED, "drop_last": True}
    with chaski.load(args.source, **options) as loader:
        engine = rate(endless(loader), args.seconds, lambda batch: None)
    with chaski.torch.IterableDataset(args.source, device=args.device, **options) as dataset:
        assert dataset._mover is not None
        stream, moved = dataset._mover._stream, []
        copy = stream.copy
        stream.copy = lambda t: (moved.append(t.nbytes), copy(t))[1]  # type: ignore[method-assign]
        batches = endless(dataset)
        taken = rate(batches, args.seconds, lambda batch: wait(stream.device))
        size = sum(moved) // max(moved.count(max(moved)), 1)
        fastest = bandwidth(stream, size, args.seconds)
        busy = size / fastest  # seconds that the loop computes, of which the copy is to take none

        def compute(_: object) -> None:
            begun = time.perf_counter()
            while time.perf_counter() - begun < busy:
                wait(stream.device)

        both = rate(batches, args.seconds, compute)
    print(
        json.dumps(
            {
                "device": str(stream.device),
                "bytes a batch": size,
                "engine, samples/s": round(engine * args.batch),
                "device, samples/s": round(taken * args.batch),
                "device of engine": round(taken / engine, 3),
                "registered memory, GB/s": round(fastest / 1e9, 2),
                "computing as long as copies take, samples/s": round(both * args.batch),
                "of the slower of both": round(both / min(taken, 1 / busy), 3),
            }
        )
    )


if __name__ == "__main__":
    main()
