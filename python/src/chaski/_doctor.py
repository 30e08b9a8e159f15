"""`python -m chaski doctor`: what training waits for, and what the best loader could gain."""

from __future__ import annotations

import argparse
import itertools
import runpy
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from chaski._assemble import Batch
from chaski._loader import Loader
from chaski._open import connect, load

Step = Callable[[Batch], object]


def _seconds(step: Step, batches: Iterable[Batch]) -> tuple[float, int]:
    """Returns how long it takes to train batches, and how many samples they have."""
    begun, samples = time.perf_counter(), 0
    for batch in batches:
        step(batch)
        samples += int(batch["valid"].sum())
    return time.perf_counter() - begun, samples


def _endless(loader: Loader) -> Iterator[Batch]:
    while True:
        yield from loader


def headroom(loader: Loader, step: Step, batches: int = 10) -> tuple[float, float]:
    """Returns samples a second as they are loaded, and from memory: what no loader can exceed.

    A step on a GPU has to wait for it, as with `torch.cuda.synchronize`.
    """
    loaded = _endless(loader)
    kept = next(loaded)
    step(kept)  # the first step compiles, allocates and so on
    memory = _seconds(step, itertools.repeat(kept, batches))
    del kept  # the engine has use for its memory
    # Meanwhile, the engine has made batches ahead. They would flatter it.
    _seconds(step, itertools.islice(loaded, batches))
    now = _seconds(step, itertools.islice(loaded, batches))
    return now[1] / now[0], memory[1] / memory[0]


def _network() -> Step | None:
    """Returns a step of a small network on the first raster, or None without PyTorch."""
    try:
        import torch
    except ImportError:
        return None
    device = "cuda" if torch.cuda.is_available() else "cpu"
    state: list[Any] = []

    def step(batch: Batch) -> None:
        field = next(f.name for f in batch.fields.values() if f.kind == "raster")
        x = torch.as_tensor(batch[field]).to(device).float().flatten(1, -3)
        if not state:
            layers = torch.nn.LazyConv2d(32, 3), torch.nn.ReLU(), torch.nn.LazyConv2d(8, 3)
            state.append(torch.nn.Sequential(*layers).to(device))
            state[0](x)
            state.append(torch.optim.SGD(state[0].parameters(), 1e-4))
        loss = state[0](x).square().mean()
        state[1].zero_grad()
        loss.backward()
        state[1].step()
        loss.item()  # waits for the device

    return step


def _step(named: str | None, seconds: float | None) -> tuple[Step, str]:
    """Returns the step that arguments ask for, and what to call it."""
    if named:
        file, _, function = named.rpartition(":")
        step: Step = runpy.run_path(file)[function]
        return step, named
    if seconds is None and (network := _network()) is not None:
        return network, "a small network"
    seconds = 0.02 if seconds is None else seconds
    return lambda _: time.sleep(seconds), f"a step of {seconds:g} s"


def main(arguments: Sequence[str]) -> None:
    """Runs the command."""
    p = argparse.ArgumentParser("python -m chaski doctor", description=__doc__)
    p.add_argument("data", help="what chaski.load takes")
    p.add_argument("--connect", metavar="TARGET", help="take batches from a running engine")
    p.add_argument("--batch-size", type=int, default=32)
    p.add_argument("--window", type=int, metavar="PIXELS", help="side of windows; default: chips")
    p.add_argument("--batches", type=int, default=10, help="batches to time (default: 10)")
    p.add_argument("--step", metavar="FILE.py:FUNCTION", help="your step, called with a batch")
    p.add_argument("--step-time", type=float, metavar="SECONDS", help="a step that takes so long")
    p.add_argument("--headroom", action="store_true", help="also train from memory, and compare")
    a = p.parse_args(arguments)
    step, name = _step(a.step, a.step_time)
    options: dict[str, Any] = {"batch_size": a.batch_size, "window": a.window, "shuffle": True}
    with connect(a.connect, a.data, **options) if a.connect else load(a.data, **options) as loader:
        if a.headroom:
            now, most = headroom(loader, step, a.batches)
            print(f"{name}: {now:.1f} samples/s now, {most:.1f} samples/s from memory")
            print(f"the best loader could gain {max(most / now - 1, 0):.0%}\n")
        else:
            _seconds(step, itertools.islice(_endless(loader), a.batches))
        print(loader.report(), end="")
