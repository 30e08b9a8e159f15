"""How fast two sides of a comparison make batches, by the clock and by processor time."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

TICKS = os.sysconf("SC_CLK_TCK")


def processor_seconds() -> float:
    """Returns what this process has used, and all that descend from it, on Linux."""
    parent, used = {}, {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            stat = entry.read_text().rpartition(")")[2].split()
        except OSError:  # it has ended
            continue
        pid = int(entry.parent.name)
        # Of itself, and of its children that have ended, in user and in system mode.
        parent[pid], used[pid] = int(stat[1]), sum(map(int, stat[11:15]))
    family = {os.getpid()}
    while more := {p for p, of in parent.items() if of in family} - family:
        family |= more
    return sum(used[p] for p in family) / TICKS


def measure(batches: Any) -> tuple[float, float]:
    """Returns the samples a second of one pass, and a second of processor time."""
    start, used, n = time.perf_counter(), processor_seconds(), 0
    for batch in batches:
        n += len(batch["image"])
    return n / (time.perf_counter() - start), n / (processor_seconds() - used)


def of_rounds(theirs: Sequence[float], ours: Sequence[float]) -> str:
    """Returns medians of both sides, and of their ratio with its range."""
    a, b = statistics.median(theirs), statistics.median(ours)
    ratios = sorted(y / x for x, y in zip(theirs, ours, strict=True))
    middle = statistics.median(ratios)
    return f"{a:.0f} | {b:.0f} | {middle:.2f} ({ratios[0]:.2f} – {ratios[-1]:.2f}) |"
