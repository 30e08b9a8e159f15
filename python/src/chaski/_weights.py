"""Weights of samples: the file of `Loader.reweight`, and which weights hold where."""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
from collections.abc import Iterable
from typing import Any

import numpy as np

from chaski._files import absolute_path
from chaski.errors import SpecError
from chaski.order import Weights

_MAGIC = b"CHSKROW1"
_PIECE = 1 << 22  # weights that are converted at a time


class Changes:
    """The weights of a run, by the places from which they hold."""

    def __init__(self) -> None:
        self._all: list[Weights] = []

    def add(self, change: Weights) -> None:
        """Adds weights; those for the same or a later place give way to them."""
        place = change.epoch, change.samples
        self._all[:] = [w for w in self._all if (w.epoch, w.samples) < place] + [change]

    def load(self, weights: Iterable[Weights]) -> None:
        """Takes the weights of a state."""
        self._all[:] = weights

    def at(self, epoch: int, samples: int) -> Weights | None:
        """Returns the weights that hold at a place."""
        before = [w for w in self._all if (w.epoch, w.samples) <= (epoch, samples)]
        return before[-1] if before else None

    def since(self, epoch: int, samples: int) -> tuple[Weights, ...]:
        """Returns the weights that a run needs which goes on at a place."""
        now = self.at(epoch, samples)
        later = [w for w in self._all if (w.epoch, w.samples) > (epoch, samples)]
        return tuple(([now] if now else []) + later)


def written(weights: Any, folder: str | os.PathLike[str]) -> tuple[str, str]:
    """Writes weights below a folder, by their hash. Returns the path and the hash."""
    if isinstance(weights, str | os.PathLike):
        weights = np.load(weights, mmap_mode="r", allow_pickle=False)
    array = np.asarray(weights)
    if array.ndim != 1 or not array.size or array.dtype.kind not in "biuf":
        raise SpecError(
            f"weights are {array.dtype} of shape {array.shape}: it must be one number for each row"
        )
    folder = absolute_path(os.fspath(folder))
    os.makedirs(folder, exist_ok=True)
    digest = hashlib.sha256()
    file, unfinished = tempfile.mkstemp(prefix=".weights-", dir=folder)
    try:
        with os.fdopen(file, "wb") as out:

            def add(data: Any) -> None:
                digest.update(data)
                out.write(data)

            add(_MAGIC + array.size.to_bytes(8, "little"))
            for first in range(0, array.size, _PIECE):
                piece = array[first : first + _PIECE]
                with np.errstate(over="ignore"):
                    single = np.ascontiguousarray(piece, "<f4")
                if (wrong := np.flatnonzero(~((single >= 0) & np.isfinite(single)))).size:
                    raise SpecError(
                        f"the weight of row {first + wrong[0]} is {piece[wrong[0]]}: it must be a "
                        "finite number of at least 0"
                    )
                add(single.data.cast("B"))
            out.flush()
            os.fsync(out.fileno())
        path = os.path.join(folder, f"{digest.hexdigest()}.weights")
        os.replace(unfinished, path)
        # The entry of the folder is durable, too, before a state names the file.
        entry = os.open(folder, os.O_RDONLY)
        os.fsync(entry)
        os.close(entry)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(unfinished)
        raise
    return path, digest.hexdigest()
