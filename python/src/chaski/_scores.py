"""A running mean of the loss of each sample: `Loader.scores`."""

from __future__ import annotations

import hashlib
import itertools
import os
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from chaski._files import write_hashed
from chaski._plain import as_array
from chaski._weights import Array, of_all_ranks, ranks_meet
from chaski.errors import SpecError, StateError

_MAGIC = b"CHSKMEAN"
_PIECE = 1 << 20


class Scores:
    """The running mean of the loss of each sample; see `Loader.scores`.

    Attributes:
        folder: where states keep the means.
        decay: the part of a mean that stays when another loss comes.
    """

    def __init__(
        self, samples: int, folder: str | os.PathLike[str], decay: float, rows: int, ranks: int
    ) -> None:
        """Makes the means of so many samples, for batches of at most so many rows a rank."""
        if not 0 <= decay < 1:
            raise SpecError(f"decay is {decay!r}: it must be at least 0 and less than 1")
        self.folder = folder
        self.decay = decay
        self._means: npt.NDArray[np.float32] = np.full(samples, np.nan, np.float32)
        self._rows = rows
        self._ranks = ranks
        self._file: tuple[str, str] | None = None  # that has the means as they are now

    def __len__(self) -> int:
        return len(self._means)

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

        Rows of padding, those that are not "valid", and losses that are not finite leave the means
        as they are. Where torch.distributed is initialised and the loader has several ranks, all of
        them call it in every step, and each has the losses of all.

        Raises:
            SpecError: there is no loss for each row, or no such sample.
        """
        rows = np.asarray(as_array(batch["sample"]), np.int64).copy()
        losses = np.asarray(as_array(loss), np.float64)
        if losses.shape != rows.shape:
            raise SpecError(
                f"loss has the shape {losses.shape}: it must be ({len(rows)},), one for each row "
                'of the batch; compute it with reduction="none"'
            )
        if rows.size and (rows.min() < -1 or rows.max() >= len(self)):
            raise SpecError(f"samples of the batch are not in [0, {len(self)})")
        if (valid := batch.get("valid")) is not None:
            rows[~as_array(valid).astype(bool)] = -1
        rows[~np.isfinite(losses)] = -1
        rows, losses = self._of_all_ranks(rows, losses)
        rows, losses = rows[rows >= 0], losses[rows >= 0]
        # By sample and loss, so that sums do not depend on how rows are dealt to ranks.
        ordered = np.lexsort((losses, rows))
        rows, losses = rows[ordered], losses[ordered]
        once, first, times = np.unique(rows, return_index=True, return_counts=True)
        if not once.size:
            return
        new = np.add.reduceat(losses, first) / times
        old = self._means[once].astype(np.float64)
        mean = np.where(np.isnan(old), new, self.decay * old + (1 - self.decay) * new)
        self._means[once] = mean
        self._file = None

    def _of_all_ranks(self, rows: Array, losses: Array) -> tuple[Array, Array]:
        """Returns the rows and losses of all ranks, if they can see each other."""
        if not ranks_meet(self._ranks):
            return rows, losses
        mine = np.full((2, self._rows), -1, np.int64)
        mine[:, : len(rows)] = rows, losses.view(np.int64)
        both = of_all_ranks(mine)
        return both[:, 0].ravel(), both[:, 1].ravel().view(np.float64)

    def weights(self) -> npt.NDArray[np.float32]:
        """Returns a weight for each sample: its mean, or the mean of all where no loss came yet."""
        return weights_of(self._means.copy())

    def copy_to(self, out: Array) -> None:
        """Copies the means, of which `weights_of` makes weights.

        Raises:
            SpecError: they cannot be weights: one is negative, or all are 0.
        """
        low = high = np.float32(np.nan)  # of no means
        for first in range(0, len(self), _PIECE):
            piece = out[first : first + _PIECE]
            np.copyto(piece, self._means[first : first + _PIECE])
            low, high = np.fmin(low, np.fmin.reduce(piece)), np.fmax(high, np.fmax.reduce(piece))
        if low < 0:
            raise SpecError(f"a mean of {low} is no weight: make weights of at least 0 of them")
        if high == 0:
            raise SpecError(f"all {len(self)} samples have a mean of 0: one must be above it")

    def save(self) -> tuple[str, str]:
        """Writes the means below the folder, unless that is done. Returns the path and the hash."""
        if self._file is None:
            head = _MAGIC + len(self).to_bytes(8, "little")
            data = (np.ascontiguousarray(p, "<f4").data.cast("B") for p in _pieces(self._means))
            self._file = write_hashed(self.folder, itertools.chain([head], data), "means")
        return self._file

    def load(self, path: str, hashed: str) -> None:
        """Takes the means of a state.

        Raises:
            StateError: the file is of other means than the state's, or of other samples.
        """
        if os.path.getsize(path) != 16 + 4 * len(self):
            raise StateError(f"{path} has not the means of {len(self)} samples")
        digest, means = hashlib.sha256(), np.fromfile(path, "<f4", offset=16)
        with open(path, "rb") as f:
            digest.update(f.read(16))
        for i in range(0, len(means), _PIECE):
            digest.update(means[i : i + _PIECE].data.cast("B"))
        if digest.hexdigest() != hashed:
            raise StateError(f"{path} has other means than the state was saved with")
        self._means, self._file = means.astype(np.float32, copy=False), (path, hashed)

    def clear(self) -> None:
        """Forgets all losses."""
        self._means.fill(np.nan)
        self._file = None


def weights_of(means: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Returns means, in which samples without a loss have got the mean of all others, or 1."""
    total, seen = 0.0, 0
    for piece in _pieces(means):
        known = piece[~np.isnan(piece)]
        total, seen = total + float(known.sum(dtype=np.float64)), seen + known.size
    for piece in _pieces(means):
        piece[np.isnan(piece)] = total / seen if seen else 1
    return means


def _pieces(means: npt.NDArray[np.float32]) -> Iterator[npt.NDArray[np.float32]]:
    return (means[i : i + _PIECE] for i in range(0, len(means), _PIECE))
