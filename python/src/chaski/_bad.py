"""What the bad-sample policy met: counted, listed in a file, and limited."""

from __future__ import annotations

import weakref
from collections import deque

from chaski._arguments import BadRow
from chaski._assemble import Batch
from chaski._quarantine import Quarantine
from chaski.errors import Error, LimitError

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


def _bad_rows(batch: Batch) -> int:
    """Returns the bad rows of a batch: one of a sequence may be there with several bad steps."""
    return len({b.row for b in batch.bad})


class Watch:
    """Watches the bad rows of the batches of one rank."""

    def __init__(
        self,
        limit: int | None,
        quarantine: Quarantine | None,
        *,
        batch_size: int,
        rank: int,
        world_size: int,
    ) -> None:
        """Begins to watch; limit is the most bad rows of an epoch, None for any number."""
        self.met = BadRows()
        self._limit, self._list = limit, quarantine
        self._batch_size, self._rank, self._world_size = batch_size, rank, world_size
        # Epoch, its first step that was counted, the one after the last, and their bad rows.
        self._counted = -1, 0, 0, 0
        if quarantine is not None:
            weakref.finalize(self, quarantine.close)

    def check(self, batch: Batch) -> None:
        """Lists bad rows, and raises once more of the epoch were bad than allowed."""
        if self._list is not None:
            self._list.rows(batch.bad)
        if self._limit is None:
            return
        epoch, begun, seen, count = self._counted
        if epoch != batch.epoch:
            epoch, begun, seen, count = batch.epoch, batch.step, batch.step, 0
        if batch.step >= seen:
            seen, count = batch.step + 1, count + _bad_rows(batch)
        self._counted = epoch, begun, seen, count
        if batch.bad and count > self._limit:
            rank = f" among the rows of rank {self._rank} of {self._world_size}"
            of = rank if self._world_size > 1 else ""
            if begun:
                of += f" since position {begun * self._batch_size}, where this loader began"
            raise LimitError(
                f"{count} bad samples in epoch {epoch}{of}, over the limit of {self._limit}; the "
                f"last one, at position {batch.bad[-1].position}: {batch.bad[-1].message}"
            )

    def count(self, batch: Batch) -> None:
        """Counts the bad rows of a batch that the user gets."""
        self.met.count += _bad_rows(batch)
        self.met.rows.extend((batch.epoch, row) for row in batch.bad)

    def error(self, e: BaseException) -> None:
        """Lists what ended an epoch."""
        if self._list is not None and isinstance(e, Error):
            self._list.error(e)

    def close(self) -> None:
        """Closes the list."""
        if self._list is not None:
            self._list.close()
