"""Progress bars of long calls, where somebody looks: by tqdm, or as a plain line without it."""

from __future__ import annotations

import sys
import time
import warnings
from typing import Any

DELAY = 1.0
"""Seconds before a bar appears, and between two updates of a plain line."""


def visible() -> bool:
    """Reports whether a bar would be seen: in a terminal or in a notebook."""
    return "ipykernel" in sys.modules or (sys.stderr is not None and sys.stderr.isatty())


class Line:
    """A line on stderr, in place of a bar of tqdm: "stats: 1200 of 5000"."""

    def __init__(self, desc: str) -> None:
        self.n = 0
        self.total: int | None = None
        self._desc, self._next, self._width = desc, time.monotonic() + DELAY, 0

    def update(self, n: int) -> None:
        """Advances by n, and writes the line once a second."""
        self.n += n
        if (now := time.monotonic()) >= self._next:
            self._next = now + DELAY
            self._write(f"{self._desc}: {self.n}" + (f" of {self.total}" if self.total else ""))

    def close(self) -> None:
        """Clears the line."""
        if self._width:
            self._write("")
            self._write("")

    def _write(self, text: str) -> None:
        sys.stderr.write("\r" + text.ljust(self._width))
        sys.stderr.flush()
        self._width = len(text)


class Bar:
    """A bar that appears when a call has taken a second, and goes away with it."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._bar: Any = None

    def set(self, done: int, total: int) -> None:
        """Moves the bar; a total of less than 1 is not known yet."""
        if self._bar is None and visible():
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # in notebooks without widgets it is of text
                    from tqdm.auto import tqdm
            except ImportError:
                self._bar = Line(self._what)
            else:
                self._bar = tqdm(desc=self._what, delay=DELAY, leave=False)
        if self._bar is not None:
            self._bar.total = total if total > 0 else None
            self._bar.update(done - self._bar.n)

    def close(self) -> None:
        """Takes the bar away."""
        if self._bar is not None:
            self._bar.close()
