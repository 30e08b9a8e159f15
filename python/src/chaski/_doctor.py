"""`python -m chaski doctor`: what training waits for, and what the best loader could gain."""

from __future__ import annotations

import argparse
import itertools
import runpy
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from chaski._assemble import Batch
from chaski._loader import Loader, connect, load

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


def _step(named: str | None, seconds: float) -> tuple[Step, str]:
    """Returns the step that arguments ask for, and what to call it."""
    if not named:
        return lambda _: time.sleep(seconds), f"a step of {seconds:g} s"
    file, _, function = named.rpartition(":")
    step: Step = runpy.run_path(file)[function]
    return step, named


def main(arguments: Sequence[str]) -> None:
    """Runs the command."""
    p = argparse.ArgumentParser("python -m chaski doctor", description=__doc__)
    p.add_argument("data", help="what chaski.load takes")
    p.add_argument("--connect", metavar="TARGET", help="take batches from a running engine")
    p.add_argument("--batch-size", type=int, default=32)
    p.add_argument("--window", type=int, metavar="PIXELS", help="side of windows; default: chips")
    p.add_argument("--batches", type=int, default=10, help="batches to time (default: 10)")
    p.add_argument("--step", metavar="FILE.py:FUNCTION", help="your step, called with a batch")
    takes = "a step that takes so long (default: 0.02)"
    p.add_argument("--step-time", type=float, default=0.02, metavar="SECONDS", help=takes)
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
