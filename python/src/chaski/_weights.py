"""Weights of samples: the file of `Loader.reweight`, and which weights hold where."""

from __future__ import annotations

import os
import threading
import zlib
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, TypeVar

import numpy as np

from chaski._files import sync_file, write_pieces
from chaski._plain import as_array, optional
from chaski._ranks import Array, Together
from chaski.errors import NotFoundError, SpecError
from chaski.order import Weights

_MAGIC = b"CHSKROW1"
_PIECE = 1 << 18  # weights of a piece of the file, which are hashed together: 1 MiB
_LARGEST = 0x7F7FFFFF  # the bits of the largest float32

_T = TypeVar("_T")


@dataclass(frozen=True)
class File:
    """A file of weights. `on_disk` waits until it would outlive a crash of the machine."""

    path: str
    hash: str
    on_disk: Callable[[], object] = lambda: None


@dataclass(frozen=True)
class Change:
    """Weights from a place on. `file` waits for their file."""

    epoch: int
    samples: int
    once: bool
    file: Callable[[], File]

    @property
    def place(self) -> tuple[int, int]:
        """Where they begin to hold."""
        return self.epoch, self.samples

    def weights(self) -> Weights:
        """Returns them once their file is there.

        Raises:
            Error: the file cannot be written, or is refused.
        """
        file = self.file()
        return Weights(file.path, file.hash, self.once, self.epoch, self.samples)

    def kept(self) -> Weights:
        """Returns them once their file is on the disk, where a state may name it."""
        self.file().on_disk()
        return self.weights()


class Changes:
    """The weights of a run, by the places from which they hold. Another thread may read them."""

    def __init__(self) -> None:
        self._all: list[Change] = []  # by place
        self._forgot = False  # weights from before the first of them

    def add(self, change: Change, now: tuple[int, int]) -> None:
        """Adds weights, which hold up to the place of the next ones; those of that place give way.

        Of those that held before the place where the run is now, the last ones are kept.
        """
        known, place = self._all, change.place
        first, end = (f(known, place, key=_place) for f in (bisect_left, bisect_right))
        known[first:end] = [change]  # at once, for who reads
        if (past := bisect_right(known, now, key=_place)) > _MAX_PAST:
            self._all, self._forgot = known[past - _MAX_PAST // 2 :], True

    def load(self, weights: Iterable[Weights]) -> None:
        """Takes the weights of a state."""
        self._all = [
            Change(w.epoch, w.samples, w.once, at_once(File(w.path, w.hash))) for w in weights
        ]
        self._forgot = False

    def at(self, epoch: int, samples: int) -> Change | None:
        """Returns what holds at a place.

        Raises:
            SpecError: it is not known any more.
        """
        known = self._all
        if i := bisect_right(known, (epoch, samples), key=_place):
            return known[i - 1]
        if self._forgot:
            raise SpecError(
                f"the weights of epoch {epoch} are not known any more: a loader keeps the last "
                f"{_MAX_PAST // 2} of those that hold no more; load a state from there"
            )
        return None

    def behind(self, epoch: int, samples: int) -> Change | None:
        """Returns the first weights that begin behind a place."""
        known = self._all
        i = bisect_right(known, (epoch, samples), key=_place)
        return known[i] if i < len(known) else None

    def known(self) -> tuple[int, list[Weights]]:
        """Returns all weights, and the first epoch of which all are known."""
        known = self._all
        return known[0].epoch + 1 if self._forgot else 0, [c.weights() for c in known]

    def since(self, epoch: int, samples: int) -> list[Change]:
        """Returns the weights that a run needs which goes on at a place."""
        known = self._all
        return known[max(bisect_right(known, (epoch, samples), key=_place) - 1, 0) :]


_place = attrgetter("place")
_MAX_PAST = 1 << 14
"""Weights that hold no more are kept for `set_epoch` and `metrics`: at most so many, some MB."""


def in_background(work: Callable[[], _T]) -> Callable[[], _T]:
    """Begins work in a thread. Returns what waits for it, and gives its result or error."""
    future: Future[_T] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as e:
            future.set_exception(e)

    threading.Thread(target=run, name="chaski-weights").start()
    return future.result


def at_once(file: File) -> Callable[[], File]:
    """Returns what gives a file that is there."""
    return lambda: file


def read(weights: Any) -> Array:
    """Returns weights as an array of numbers: those of a file, or what is one already."""
    if isinstance(weights, str | os.PathLike):
        path = os.path.expanduser(os.fspath(weights))
        if not os.path.isfile(path):
            raise NotFoundError(f"weights is {weights!r}: there is no such file", file=path)
        if path.endswith(".parquet"):
            pq = optional(
                "pyarrow.parquet", "weights in Parquet need pyarrow (pip install pyarrow)"
            )
            table = pq.read_table(path)
            if table.num_columns != 1:
                raise SpecError(f"weights are {path}: it has {table.num_columns} columns, not one")
            weights = table.column(0).to_numpy()
        else:
            try:
                weights = np.load(path, allow_pickle=False)  # a map would see who overwrites it
            except ValueError as e:
                raise SpecError(f"weights is {weights!r}: it is no .npy file of numbers") from e
    array = as_array(weights)
    if array.ndim != 1 or not array.size or array.dtype.kind not in "biuf":
        raise SpecError(
            f"weights are {array.dtype} of shape {array.shape}: it must be one number for each row"
        )
    return array


class Copies:
    """Copies of weights that the caller may change. The memory of one is kept for the next.

    The kernel may take ten times as long to find new memory as a copy takes, where it is used.
    """

    def __init__(self) -> None:
        self._kept: list[Array] = []

    def take(self, array: Array) -> Array:
        """Returns weights that the caller cannot change: a copy, unless nobody can write to them.

        Raises:
            SpecError: a weight is negative, infinite or not a number, or all are 0.
        """
        # The base of a view may be written to.
        fixed = array.base is None and not array.flags.writeable
        out = array if fixed else self._room(array.size)
        largest = 0.0
        # One thread: where pages are new, two wait for one another longer than they copy.
        for begin in range(0, array.size, _PIECE):
            piece = array[begin : begin + _PIECE]
            with np.errstate(over="ignore"):
                single = piece.astype(np.float32, copy=False)
            if not fixed:
                out[begin : begin + len(piece)] = single
            largest = max(largest, _check(single, piece, begin))
        if not largest:
            raise SpecError(f"the weights of all {array.size} rows are 0: one must be above it")
        return out

    def _room(self, n: int) -> Array:
        """Returns memory for n weights, as float32."""
        kept = self._kept.pop() if self._kept else None
        return kept if kept is not None and kept.size == n else np.empty(n, np.float32)

    def give_back(self, room: Array) -> None:
        """Keeps the memory of a copy for the next one."""
        self._kept[:] = [room]


COMPARED = (4,)
"""The shape of what ranks compare of their weights."""


def check_ranks(array: Array, place: tuple[int, int], ranks: Together) -> None:
    """Raises on all ranks if one gives other weights, or for another place, if they can meet."""
    if not ranks.joined:
        return
    crc = 0
    for first in range(0, array.size, _PIECE):
        crc = zlib.crc32(np.ascontiguousarray(array[first : first + _PIECE], "<f4").data, crc)
    given = ranks.gather(np.array([crc, array.size, *place], np.int64))
    if wrong := np.flatnonzero((given != given[0]).any(axis=1)).tolist():
        raise SpecError(
            f"ranks {wrong} give other weights than rank 0, or from another step: all ranks must "
            "give the same"
        )


def _check(single: Array, given: Array, first: int) -> float:
    """Returns the largest weight."""
    # Numbers of at least 0 are ordered as their bits are, and all others but -0 lie above.
    if (top := single.view(np.uint32).max()) <= _LARGEST:
        return float(top.view(np.float32))
    largest = single.max()
    if single.min() >= 0 and largest < np.inf:  # NaN is neither
        return float(largest)
    wrong = int(np.flatnonzero(~((single >= 0) & np.isfinite(single)))[0])
    raise SpecError(
        f"the weight of row {first + wrong} is {given[wrong]}: it must be a finite number of at "
        "least 0"
    )


def pieces_of(array: Array) -> Callable[[int, int], Array]:
    """Returns what gives the weights of an array from one row up to another."""
    return lambda first, end: array[first:end]


def written(n: int, weights: Callable[[int, int], Array], folder: str | os.PathLike[str]) -> File:
    """Writes n weights below a folder, by their hash."""

    def piece(i: int) -> memoryview:
        first = i * _PIECE
        given = weights(first, first + _PIECE)
        with np.errstate(over="ignore"):
            single = np.ascontiguousarray(given, "<f4")
        _check(single, given, first)
        return single.data.cast("B")

    head, count = _MAGIC + n.to_bytes(8, "little"), -(-n // _PIECE)
    path, digest = write_pieces(folder, head, count, 4 * _PIECE, piece, "weights")
    return File(path, digest, in_background(lambda: sync_file(path)))
