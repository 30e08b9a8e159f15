"""Tests of what happens after a short time."""

from __future__ import annotations

import time
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


def logged(caplog: pytest.LogCaptureFixture, *texts: str) -> str:
    """Waits until the log has all of some texts, at most a minute, and returns it.

    What an engine logs comes by another pipe than its batches, so it may come after them.
    """
    deadline = time.monotonic() + 60
    while not all(text in caplog.text for text in texts) and time.monotonic() < deadline:
        time.sleep(0.01)
    return caplog.text
