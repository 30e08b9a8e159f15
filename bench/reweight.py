"""What `Loader.reweight` costs: how long calls wait, their processor time and memory.

Of `state_dict` behind a call it measures the processor time of both, and of the engine, too.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import os
import resource
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import chaski
import numpy as np

FORMS = "now", "later, first", "later", "later, not writeable", "later, scores"
ITEMS = 100  # chips, of which each has so many windows that there are as many samples as asked for


def peak() -> int:
    """Returns the most memory that this process had, and forgets it."""
    status = Path("/proc/self/status").read_text()
    Path("/proc/self/clear_refs").write_text("5")
    return int(status.split("VmHWM:")[1].split()[0]) << 10


def timed(what: Callable[[], object]) -> tuple[float, float, float]:
    """Returns seconds, the processor time of this process, and the bytes of memory it took."""
    peak()
    before = peak()
    begun, worked = time.perf_counter(), resource.getrusage(resource.RUSAGE_SELF)
    what()
    seconds, end = time.perf_counter() - begun, resource.getrusage(resource.RUSAGE_SELF)
    cpu = end.ru_utime + end.ru_stime - worked.ru_utime - worked.ru_stime
    return seconds, cpu, peak() - before


def engines() -> float:
    """Returns the processor time of the processes that this one has started."""
    seconds = 0.0
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            figures = path.read_text().rsplit(")", 1)[1].split()
            if int(figures[1]) == os.getpid():
                seconds += (int(figures[11]) + int(figures[12])) / os.sysconf("SC_CLK_TCK")
    return seconds


def main() -> None:
    """Prints a row for each number of samples and form of the call."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, nargs="+", default=[10**7, 10**8])
    parser.add_argument("--rounds", type=int, default=5)
    o = parser.parse_args()
    print(
        "samples, call: wait ms (least-greatest), CPU ms, MB; then state_dict: wait ms, CPU ms of "
        "both, and of the engine"
    )
    for samples in o.samples:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            for i in range(ITEMS):
                np.save(folder / f"{i:03}.npy", np.zeros((1, 8, 8), np.uint8))
            window = chaski.RandomWindow((4, 4), per_asset=samples // ITEMS)
            weights = np.random.default_rng(0).random(samples, np.float32)
            calls: dict[str, list[tuple[float, ...]]] = {}
            number = 0
            for _ in range(o.rounds):
                with chaski.load(folder, window=window, batch_size=16) as loader:
                    batch = next(iter(loader))
                    for form in FORMS:
                        weights.flags.writeable = True
                        weights[number] = 0  # another file, which the engine has not open
                        number += 1
                        weights.flags.writeable = form != "later, not writeable"
                        step = None if form == "now" else len(loader)
                        given: object = weights
                        if form == "later, scores":
                            given = loader.scores(folder / "w")
                            given.add(batch, np.full(len(batch["sample"]), number))
                        before = engines()
                        call = timed(
                            functools.partial(loader.reweight, given, step, folder=folder / "w")
                        )
                        state = timed(loader.state_dict)
                        both = call[1] + state[1]
                        row = (*call, state[0], both, engines() - before)
                        calls.setdefault(form, []).append(row)
                        for file in (folder / "w").iterdir():
                            file.unlink()
            for form, rounds in calls.items():
                waits, cpu, memory, *behind = zip(*rounds, strict=True)
                print(
                    f"{samples}, {form}: {1e3 * statistics.median(waits):.0f} "
                    f"({1e3 * min(waits):.0f}-{1e3 * max(waits):.0f}), "
                    f"{1e3 * statistics.median(cpu):.0f}, {max(memory) / 1e6:.0f}; "
                    + ", ".join(f"{1e3 * statistics.median(x):.0f}" for x in behind)
                )


if __name__ == "__main__":
    main()
