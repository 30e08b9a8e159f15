"""A FlatBuffers reader that checks every offset: neither the buffer nor its maker is trusted.

The `flatbuffers` package does not verify a buffer (an offset from the network may point anywhere,
and negative offsets read from the end), so it is not used here. Format: flatbuffers.dev,
"Internals".
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from chaski.errors import PayloadError

_UNPACK = {f: struct.Struct("<" + f).unpack_from for f in "BHiIqQfd"}


def _outside(what: str, at: int) -> PayloadError:
    return PayloadError(f"batch header: {what} at {at} lies outside", part="batch header")


def _number(buf: bytes, at: int, fmt: str) -> Any:
    try:
        if at >= 0:  # others count from the end
            value: int | float = _UNPACK[fmt](buf, at)[0]
            return value
    except struct.error:
        pass
    raise _outside("a number", at)


class Table:
    """A table of a buffer. Slots count from 0 in the order of the schema's fields."""

    __slots__ = ("_buf", "_pos", "_vtable", "_slots")

    def __init__(self, buf: bytes, pos: int) -> None:
        self._buf, self._pos = buf, pos
        self._vtable = pos - _number(buf, pos, "i")
        size = _number(buf, self._vtable, "H")
        if size < 4 or size % 2 or self._vtable + size > len(buf):
            raise _outside("a vtable", self._vtable)
        self._slots = (size - 4) // 2

    @classmethod
    def root(cls, buf: bytes) -> Table:
        """Returns the root table of a buffer."""
        return cls(buf, _number(buf, 0, "I"))

    def _at(self, slot: int) -> int:
        """Returns where the slot's value is, or -1 if it is absent."""
        known = slot < self._slots
        offset = _number(self._buf, self._vtable + 4 + 2 * slot, "H") if known else 0
        return self._pos + offset if offset else -1

    def _follow(self, at: int) -> int:
        to: int = at + _number(self._buf, at, "I")
        return to

    def _vector(self, slot: int, size: int, most: int) -> tuple[int, int]:
        """Returns start and count of a vector of elements of size bytes, at most `most`."""
        at = self._at(slot)
        return (0, 0) if at < 0 else self._elements(self._follow(at), size, most)

    def _elements(self, to: int, size: int, most: int) -> tuple[int, int]:
        n = _number(self._buf, to, "I")
        if n > most:
            raise PayloadError(
                f"batch header: a vector at {to} has {n} elements, at most {most}",
                part="batch header",
            )
        if to + 4 + n * size > len(self._buf):
            raise _outside(f"a vector of {n} elements", to)
        return to + 4, n

    def number(self, slot: int, fmt: str, default: int = 0) -> Any:
        """Returns a number; fmt is its letter in package struct."""
        at = self._at(slot)
        return default if at < 0 else _number(self._buf, at, fmt)

    def span(self, slot: int) -> tuple[int, int] | None:
        """Returns a struct of two ulong, or None."""
        at = self._at(slot)
        return None if at < 0 else (_number(self._buf, at, "Q"), _number(self._buf, at + 8, "Q"))

    def text(self, slot: int, most: int = 1 << 12) -> str:
        """Returns a string of at most `most` bytes, "" where it is absent."""
        return self._string(self._vector(slot, 1, most))

    def _string(self, elements: tuple[int, int]) -> str:
        start, n = elements
        return self._buf[start : start + n].decode("utf-8", "replace")

    def array(self, slot: int, dtype: str, most: int) -> npt.NDArray[np.generic]:
        """Returns a copy of a vector of numbers, empty where it is absent."""
        t = np.dtype(dtype)
        start, n = self._vector(slot, t.itemsize, most)
        numbers: npt.NDArray[np.generic] = np.frombuffer(self._buf, t, n, start).copy()
        return numbers

    def table(self, slot: int) -> Table | None:
        """Returns a table, or None."""
        at = self._at(slot)
        return None if at < 0 else Table(self._buf, self._follow(at))

    def tables(self, slot: int, most: int) -> Iterator[Table]:
        """Yields the tables of a vector."""
        start, n = self._vector(slot, 4, most)
        for i in range(n):
            yield Table(self._buf, self._follow(start + 4 * i))

    def texts(self, slot: int, most: int) -> list[str]:
        """Returns a vector of strings."""
        start, n = self._vector(slot, 4, most)
        places = (self._follow(start + 4 * i) for i in range(n))
        return [self._string(self._elements(to, 1, 1 << 12)) for to in places]
