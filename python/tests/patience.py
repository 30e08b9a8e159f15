"""Tests of what happens after a short time."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import chaski


def patiently(run: Callable[[float], None], first: float) -> None:
    """Runs a test with a short timeout, and with longer ones while it fails.

    A server that only has no processor is silent too, so on a busy machine a good client may give
    up a server that answers, and a test that gives one a short timeout may fail.
    """
    for longer in (1, 5, 25, 100):
        try:
            return run(first * longer)
        except (
            AssertionError,
            pytest.fail.Exception,
            chaski.DeadlineError,
            chaski.UnavailableError,
        ):
            if longer == 100:
                raise
    raise AssertionError
