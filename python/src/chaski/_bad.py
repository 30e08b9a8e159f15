"""What the bad-sample policy met."""

from __future__ import annotations

from collections import deque

from chaski._arguments import BadRow
from chaski._assemble import Batch

_KEPT_BAD_ROWS = 1000


class BadRows:
    """What the bad-sample policy met so far.

    Attributes:
        count: rows it touched.
        rows: (epoch, row) of the last 1000 of them; of a sequence whose bad steps were filled, once
            a step.
    """

    def __init__(self) -> None:
        self.count = 0
        self.rows: deque[tuple[int, BadRow]] = deque(maxlen=_KEPT_BAD_ROWS)

    def __len__(self) -> int:
        return self.count

    def __repr__(self) -> str:
        last = f", last: {self.rows[-1][1].message}" if self.rows else ""
        return f"<{self.count} bad rows{last}>"


def bad_rows(batch: Batch) -> int:
    """Returns the bad rows of a batch: one of a sequence may be there with several bad steps."""
    return len({b.row for b in batch.bad})
