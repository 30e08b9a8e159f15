"""A running mean of the loss of each sample: `Loader.scores`."""

from __future__ import annotations

import hashlib
import itertools
import logging
import os
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from chaski._files import write_hashed
from chaski._plain import as_array
from chaski._ranks import Array, Ranks
from chaski.errors import NotFoundError, SpecError, StateError

_log = logging.getLogger("chaski")

_MAGIC = b"CHSKMEAN"
_PIECE = 1 << 20


class Scores:
    """The running mean of the loss of each sample; see `Loader.scores`.

    Attributes:
        folder: where states keep the means.
        decay: the part of a mean that stays when another loss comes.
    """

    def __init__(
        self,
        samples: int,
        folder: str | os.PathLike[str],
        decay: float,
        rows: int,
        ranks: Ranks,
        lock: threading.Lock,
    ) -> None:
        """Makes the means of so many samples, for batches of at most so many rows a rank.

        Means change under the lock.
        """
        if not (isinstance(decay, int | float) and 0 <= decay < 1):
            raise SpecError(f"decay is {decay!r}: it must be at least 0 and less than 1")
        self.folder = folder
        self.decay = decay
        self._means: npt.NDArray[np.float32] = np.full(samples, np.nan, np.float32)
        self._rows = rows
        self.ranks = ranks
        self._alone = False  # losses of one rank of several came, and it was said
        self._file: tuple[str, str] | None = None  # that has the means as they are now
        self._version = 0  # of the means
        self._signs = np.zeros(3, np.int64)  # of the means
        self._lock = lock  # of the means and of what snapshots keep
        self._snapshots: weakref.WeakSet[Snapshot] = weakref.WeakSet()

    def __len__(self) -> int:
        return len(self._means)

    def __reduce__(self) -> Any:
        """Refuses to be copied or pickled."""
        raise TypeError(
            "the scores of a loader cannot be pickled or copied: its state_dict names the file of "
            "the means, and scores.means.copy() is an array of them"
        )

    def __repr__(self) -> str:
        seen = np.count_nonzero(~np.isnan(self._means))
        return f"<means of {seen} of {len(self)} samples>"

    @property
    def means(self) -> npt.NDArray[np.float32]:
        """The mean of each sample, NaN where no loss came yet: a view that cannot be written to."""
        view: npt.NDArray[np.float32] = self._means.view()
        view.flags.writeable = False
        return view

    def add(self, batch: Mapping[str, Any], loss: Any) -> None:
        """Takes the losses of a batch, one for each row, as an array or a tensor.

        Rows of padding, those that are not "valid", and losses that are not finite as float32 leave
        the means as they are. Where torch.distributed is initialised and the loader has several
        ranks, all processes call it in every step (those of `group`, if it was given), and each has
        the losses of all. Processes of one data rank must give the same losses.

        Raises:
            SpecError: there is no loss for each row, or no such sample; or the call fails on
                another rank, or the processes are not those of all ranks.
        """
        with self.ranks.together((2, self._rows)) as ranks:
            rows, losses = self._checked(batch, loss)
            if ranks.joined:
                if len(rows) > self._rows:
                    raise SpecError(
                        f"the batch has {len(rows)} rows: one of a rank has at most {self._rows}"
                    )
                mine = np.full((2, self._rows), -1, np.int64)
                mine[:, : len(rows)] = rows, losses.view(np.int64)
                both = ranks.gather(mine)
                rows, losses = both[:, 0].ravel(), both[:, 1].ravel().view(np.float64)
            elif self.ranks.count > 1 and type(batch) is not dict and not self._alone:
                self._alone = True  # who gathers them makes a dict
                _log.warning(
                    "scores.add on rank %d of %d: torch.distributed does not join the ranks, so "
                    "the means are of the samples of this rank alone; give all ranks the samples "
                    'and losses of all: add({"sample": samples}, losses)',
                    *(self.ranks.rank, self.ranks.count),
                )
        rows, losses = rows[rows >= 0], losses[rows >= 0]
        # By sample and loss, so that sums do not depend on how rows are dealt to ranks.
        ordered = np.lexsort((losses, rows))
        rows, losses = rows[ordered], losses[ordered]
        once, first, times = np.unique(rows, return_index=True, return_counts=True)
        if not once.size:
            return
        new = np.add.reduceat(losses, first) / times
        with self._lock:
            old = self._means[once]
            wide = old.astype(np.float64)
            mean = np.where(np.isnan(wide), new, self.decay * wide + (1 - self.decay) * new)
            for snapshot in self._snapshots:
                snapshot.keep(once, old)
            self._means[once] = mean
            self._signs += _signs(self._means[once]) - _signs(old)
            self._file, self._version = None, self._version + 1

    def _checked(self, batch: Mapping[str, Any], loss: Any) -> tuple[Array, Array]:
        """Returns the samples and losses of a batch. Sample -1 is of a row that does not count."""
        if not isinstance(batch, Mapping) or "sample" not in batch:
            raise SpecError(
                f"batch is {batch!r:.100}: it must be the dict that the loss was computed of, with "
                '"sample": scores.add(batch, loss)'
            )
        given = as_array(batch["sample"])
        if given.ndim != 1 or given.dtype.kind not in "iu" and given.size:
            raise SpecError(f'batch["sample"] is {given!r:.100}: it must be one int for each row')
        rows = np.array(given, np.int64)
        try:
            losses = np.asarray(as_array(loss), np.float64)
        except (TypeError, ValueError):
            raise SpecError(
                f"loss is {loss!r:.100}: it must be numbers, one for each row"
            ) from None
        if losses.shape != rows.shape:
            raise SpecError(
                f"loss has the shape {losses.shape}: it must be ({len(rows)},), one for each row "
                'of the batch; compute it with reduction="none"'
            )
        if rows.size and (rows.min() < -1 or rows.max() >= len(self)):
            raise SpecError(f"samples of the batch are not in [0, {len(self)})")
        if (valid := batch.get("valid")) is not None:
            rows[~as_array(valid).astype(bool)] = -1
        with np.errstate(over="ignore"):  # one that is too large would be an infinite mean
            rows[~np.isfinite(losses.astype(np.float32))] = -1
        return rows, losses

    def weights(self) -> npt.NDArray[np.float32]:
        """Returns a weight for each sample: its mean, or the mean of all where no loss came yet."""
        out: npt.NDArray[np.float32] = self._means.copy()
        fill = _mean(_pieces(out))
        for piece in _pieces(out):
            piece[np.isnan(piece)] = fill
        return out

    def snapshot(self) -> Snapshot:
        """Returns the means as they are now, while `add` goes on. A thread may read them.

        Raises:
            SpecError: they cannot be weights: one is negative, or all are 0.
        """
        below, zero, above = self._signs
        if below:
            low = np.nanmin(self._means)
            raise SpecError(f"a mean of {low} is no weight: make weights of at least 0 of them")
        if zero and not above:
            raise SpecError(f"all {len(self)} samples have a mean of 0: one must be above it")
        with self._lock:
            return self._snapshot()

    def _snapshot(self) -> Snapshot:
        """Is `snapshot` of any means. It needs the lock."""
        snapshot = Snapshot(self._means, self._lock)
        self._snapshots.add(snapshot)
        return snapshot

    def moment(self) -> Callable[[], tuple[str, str]]:
        """Returns what writes the means of now below the folder, and gives the path and the hash.

        It needs the lock; what it returns does not, and may be called by any thread.
        """
        if (file := self._file) is not None:
            return lambda: file
        snapshot, version = self._snapshot(), self._version

        def save() -> tuple[str, str]:
            head = _MAGIC + len(self).to_bytes(8, "little")
            parts = (snapshot.part(i, i + _PIECE) for i in range(0, len(self), _PIECE))
            data = (np.ascontiguousarray(p, "<f4").data.cast("B") for p in parts)
            file = write_hashed(self.folder, itertools.chain([head], data), "means")
            with self._lock:
                if self._version == version:
                    self._file = file
            return file

        return save

    def load(self, path: str, hashed: str) -> None:
        """Takes the means of a state.

        Raises:
            StateError: the file is of other means than the state's, or of other samples.
        """
        if not os.path.isfile(path):
            raise NotFoundError(f"the means of the state, {path}, are not there", file=path)
        if os.path.getsize(path) != 16 + 4 * len(self):
            raise StateError(f"{path} has not the means of {len(self)} samples")
        digest, means = hashlib.sha256(), np.fromfile(path, "<f4", offset=16)
        with open(path, "rb") as f:
            digest.update(f.read(16))
        for i in range(0, len(means), _PIECE):
            digest.update(means[i : i + _PIECE].data.cast("B"))
        if digest.hexdigest() != hashed:
            raise StateError(f"{path} has other means than the state was saved with")
        self._replace(means.astype(np.float32, copy=False), (path, hashed))

    def clear(self) -> None:
        """Forgets all losses."""
        self._replace(np.full(len(self), np.nan, np.float32), None)

    def _replace(self, means: npt.NDArray[np.float32], file: tuple[str, str] | None) -> None:
        """Takes other means. Snapshots keep those that they are of."""
        with self._lock:
            self._means, self._file, self._version = means, file, self._version + 1
            self._signs = sum((_signs(p) for p in _pieces(means)), np.zeros(3, np.int64))
            self._snapshots.clear()


class Snapshot:
    """The means of one moment, without a copy: those that change meanwhile are kept here.

    Attributes:
        means: those of now.
    """

    def __init__(self, means: npt.NDArray[np.float32], lock: threading.Lock) -> None:
        """Begins; `keep` is called under the lock before means change."""
        self.means = means
        self._lock = lock
        self._kept: dict[int, dict[int, np.float32]] = {}  # by piece and row

    def keep(self, rows: Array, means: Array) -> None:
        """Keeps means of rows that are about to change, unless they have changed before."""
        for row, mean in zip(rows.tolist(), means, strict=True):
            self._kept.setdefault(row // _PIECE, {}).setdefault(row, mean)

    def weights(self) -> Callable[[int, int], Array]:
        """Returns what gives the weights from one row up to another, as `Scores.weights` does."""
        n = len(self.means)
        fill = _mean(self.part(i, i + _PIECE) for i in range(0, n, _PIECE))

        def part(first: int, end: int) -> Array:
            out: Array = self.part(first, end)
            out[np.isnan(out)] = fill
            return out

        return part

    def part(self, first: int, end: int) -> Array:
        """Copies the means from one row up to another."""
        with self._lock:
            out: Array = self.means[first:end].copy()
            for piece in range(first // _PIECE, (end - 1) // _PIECE + 1):
                for row, mean in self._kept.get(piece, {}).items():
                    if first <= row < end:
                        out[row - first] = mean
        return out


def _signs(means: Array) -> Array:
    """Returns how many means are below, at and above 0."""
    return np.array([np.count_nonzero(x) for x in (means < 0, means == 0, means > 0)])


def _mean(pieces: Iterable[Array]) -> float:
    """Returns the mean of all that are not NaN, or 1."""
    total, seen = 0.0, 0
    for piece in pieces:
        known = piece[~np.isnan(piece)]
        total, seen = total + float(known.sum(dtype=np.float64)), seen + known.size
    return total / seen if seen else 1.0


def _pieces(means: npt.NDArray[np.float32]) -> Iterator[npt.NDArray[np.float32]]:
    return (means[i : i + _PIECE] for i in range(0, len(means), _PIECE))
