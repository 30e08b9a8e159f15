"""Batches of runs with several windows of a sample, and whether a stopped run goes on with them."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable

import numpy as np

import chaski


def epochs(loader: chaski.Loader, n: int = 1) -> list:
    """Returns the batches of n epochs."""
    return [batch for _ in range(n) for batch in loader]


def equal(a: dict, b: dict) -> bool:
    """Reports whether two batches have the same members, to the bit."""

    def same(x, y) -> bool:
        if isinstance(x, chaski.Ragged):
            return same(x.offsets, y.offsets) and same(x.values, y.values)
        return np.array_equal(x, y)

    return a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)


def goes_on(
    opened: Callable[[], contextlib.AbstractContextManager], want: list, stops: Iterable[int]
) -> None:
    """Checks that a run stopped after some batches goes on with the rest of want, of two epochs."""
    for stop in stops:
        with opened() as loader, opened() as again:
            run = iter(loader)
            for _ in range(stop):
                next(run)
            again.load_state_dict(loader.state_dict())
            rest = epochs(again, 2)
        assert len(rest) == len(want) - stop
        assert all(equal(a, b) for a, b in zip(rest, want[stop:], strict=True))
