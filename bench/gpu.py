"""Measures batches on a device: samples a second, bandwidth, whether copies overlap, and training.

    python bench/gpu.py chips/ --device cuda --batch 64 --seconds 10
    python bench/gpu.py chips/ --net resnet50 --graph

It compares a loop that only takes batches on the device with one that takes arrays of the engine,
the rate of copies with that of one registered block of memory, and a loop that computes for as long
as a batch takes to copy with both alone. Marks: 0.95 of the engine, 0.9 of the bandwidth.

With --net, a network of torchvision learns from three sources in turns: one batch that stays on the
device, batches of the engine there, and batches that the loop copies from pinned memory. With
--graph, CUDA has all kernels of a step as one graph: otherwise Python launches them one by one, and
a fast GPU waits for that.
"""

from __future__ import annotations

import argparse
import itertools
import json
import statistics
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
    """Returns the bytes a second of copies of registered memory, one at a time."""
    memory = np.ones(size, np.uint8)
    end = stream.register(memory)
    source = torch.from_numpy(memory)

    def copy(_: object) -> None:
        with stream.order():
            stream.copy(source)
            copied = stream.copied()
        copied()

    crossed = copies(stream)
    rate(iter(int, 1), seconds, copy)
    end()
    return crossed()[1]


def copies(stream: _device.Stream) -> Callable[[], tuple[int, float]]:
    """Times copies from now on, until what it returns is called.

    That returns the bytes of the largest copies, and their bytes a second: the median.
    """
    copy, seen = stream.copy, list[tuple[int, Callable[[], float]]]()

    def timed(t: torch.Tensor) -> torch.Tensor:
        if stream.device.type == "cuda":
            first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            first.record()
            out = copy(t)
            last.record()
            seen.append((t.nbytes, lambda: first.elapsed_time(last) / 1000))
        else:
            begun = time.perf_counter()
            out = copy(t)
            took = time.perf_counter() - begun
            seen.append((t.nbytes, lambda: took))
        return out

    def result() -> tuple[int, float]:
        wait(stream.device)
        stream.copy = copy  # type: ignore[method-assign]
        size = max(n for n, _ in seen)
        return size, size / statistics.median(took() for n, took in seen if n == size)

    stream.copy = timed  # type: ignore[method-assign,assignment]
    return result


ROUNDS = 5


def learner(net: str, batch: torch.Tensor, graph: bool) -> Callable[[torch.Tensor], None]:
    """Returns what trains a network of torchvision with a batch (n b y x) in bfloat16."""
    import torchvision  # type: ignore[import-not-found]

    model = torchvision.models.get_model(net, num_classes=10)
    model.conv1 = torch.nn.Conv2d(batch.shape[1], 64, 7, 2, 3, bias=False)
    model = model.to(batch.device, memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, fused=True)

    def step(x: torch.Tensor) -> None:
        with torch.autocast(x.device.type, torch.bfloat16):
            y = model(x.to(memory_format=torch.channels_last))
            loss = torch.nn.functional.cross_entropy(y, torch.zeros(len(x), 10, device=x.device))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()

    return graph_of(step, batch) if graph else step


def graph_of(
    step: Callable[[torch.Tensor], None], batch: torch.Tensor
) -> Callable[[torch.Tensor], None]:
    """Returns a step as one CUDA graph, which begins with a copy of its batch."""
    own = batch.clone()
    side = torch.cuda.Stream(batch.device)  # type: ignore[no-untyped-call]
    with torch.cuda.stream(side):
        for _ in range(3):  # cuDNN chooses its kernels, and the optimizer makes its state
            step(own)
    wait(batch.device)
    captured = torch.cuda.CUDAGraph()
    # Another thread may copy batches meanwhile.
    with torch.cuda.graph(captured, capture_error_mode="thread_local"):
        step(own)

    def replay(x: torch.Tensor) -> None:
        own.copy_(x)
        captured.replay()

    return replay


def train(args: argparse.Namespace, options: dict[str, Any]) -> dict[str, Any]:
    """Returns samples a second of the three sources, in turns."""
    device = torch.device(args.device)
    there = chaski.torch.IterableDataset(args.source, device=args.device, **options)
    here = chaski.torch.IterableDataset(args.source, **options)
    arriving = endless(there)
    batch = next(arriving)["image"]
    step = learner(args.net, batch, args.graph)

    def pinned() -> Iterator[Any]:
        for b in endless(here):
            image = b["image"].pin_memory() if device.type == "cuda" else b["image"]
            yield image.to(device, non_blocking=True)

    sources = {
        "one batch on the device": itertools.repeat(batch),
        "batches on the device": (b["image"] for b in arriving),
        "pinned by the loop": pinned(),
    }
    rounds: dict[str, list[int]] = {name: [] for name in sources}
    for _ in range(ROUNDS):
        for name, batches in sources.items():
            rounds[name].append(round(args.batch * rate(batches, args.seconds, step)))
    return {"device": str(device), "net": args.net, "graph": args.graph, **rounds}


def main() -> None:
    """Prints one line of JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("source")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--net", help="train this network of torchvision, such as resnet18")
    parser.add_argument("--graph", action="store_true", help="the step is one CUDA graph")
    args = parser.parse_args()
    if args.device == "cpu":
        torch.set_num_threads(1)  # more would spin while they wait, on the cores of the engine
    options = {"batch_size": args.batch, "normalize": SCALED, "last": "drop"}
    if args.net:
        print(json.dumps(train(args, options)))
        return
    with chaski.load(args.source, **options) as loader:
        engine = rate(endless(loader), args.seconds, lambda batch: None)
    with chaski.torch.IterableDataset(args.source, device=args.device, **options) as dataset:
        assert dataset._mover is not None
        stream = dataset._mover._stream
        copied = copies(stream)
        batches = endless(dataset)
        taken = rate(batches, args.seconds, lambda batch: wait(stream.device))
        size, crossed = copied()
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
                "batches, GB/s": round(crossed / 1e9, 2),
                "batches of registered memory": round(crossed / fastest, 3),
                "computing as long as copies take, samples/s": round(both * args.batch),
                "of the slower of both": round(both / min(taken, 1 / busy), 3),
            }
        )
    )


if __name__ == "__main__":
    main()
