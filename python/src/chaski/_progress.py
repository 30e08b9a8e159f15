"""Progress bars of long calls: by tqdm if it is installed, and somebody looks."""

from __future__ import annotations

import sys
import warnings
from typing import Any


def visible() -> bool:
    """Reports whether a bar would be seen: in a terminal or in a notebook."""
    return "ipykernel" in sys.modules or (sys.stderr is not None and sys.stderr.isatty())


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
                return
            self._bar = tqdm(desc=self._what, delay=1, leave=False)
        if self._bar is not None:
            self._bar.total = total if total > 0 else None
            self._bar.update(done - self._bar.n)

    def close(self) -> None:
        """Takes the bar away."""
        if self._bar is not None:
            self._bar.close()
