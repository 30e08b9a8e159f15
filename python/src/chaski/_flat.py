"""A FlatBuffers reader that checks every offset: neither the buffer nor its maker is trusted.

The `flatbuffers` package does not verify a buffer (an offset from the network may point anywhere,
and negative offsets read from the end), so it is not used here. Format: flatbuffers.dev,
"Internals".
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from chaski.errors import PayloadError

_UOFFSET = struct.Struct("<I")
_SOFFSET = struct.Struct("<i")
_VOFFSET = struct.Struct("<H")
_SCALARS = {f: struct.Struct("<" + f) for f in "BiqQ"}


def _outside(what: str, at: int) -> PayloadError:
    return PayloadError(f"batch header: {what} at {at} lies outside", part="batch header")


class Table:
    """A table of a buffer. Slots count from 0 in the order of the schema's fields."""

    __slots__ = ("_buf", "_pos", "_vtable", "_slots")

    def __init__(self, buf: bytes, pos: int) -> None:
        if not 0 <= pos <= len(buf) - 4:
            raise _outside("a table", pos)
        vtable = pos - _SOFFSET.unpack_from(buf, pos)[0]
        if not 0 <= vtable <= len(buf) - 4:
            raise _outside("a vtable", vtable)
        size = _VOFFSET.unpack_from(buf, vtable)[0]
        if size < 4 or size % 2 or vtable + size > len(buf):
            raise _outside("a vtable", vtable)
        self._buf = buf
        self._pos = pos
        self._vtable = vtable
        self._slots = (size - 4) // 2

    @classmethod
    def root(cls, buf: bytes) -> Table:
        """Returns the root table of a buffer."""
        if len(buf) < 4:
            raise _outside("the root", 0)
        return cls(buf, _UOFFSET.unpack_from(buf, 0)[0])

    def _at(self, slot: int, size: int) -> int:
        """Returns where the slot's value is, or -1 if it is absent."""
        if slot >= self._slots:
            return -1
        o = _VOFFSET.unpack_from(self._buf, self._vtable + 4 + 2 * slot)[0]
        if o == 0:
            return -1
        at: int = self._pos + o
        if at + size > len(self._buf):
            raise _outside(f"slot {slot}", at)
        return at

    def _follow(self, at: int) -> int:
        to: int = at + _UOFFSET.unpack_from(self._buf, at)[0]
        if to > len(self._buf) - 4:
            raise _outside("an offset", at)
        return to

    def _vector(self, slot: int, size: int, most: int) -> tuple[int, int]:
        """Returns start and count of a vector of elements of size bytes, at most `most`."""
        at = self._at(slot, 4)
        return (0, 0) if at < 0 else self._elements(self._follow(at), size, most)

    def _elements(self, to: int, size: int, most: int) -> tuple[int, int]:
        n = _UOFFSET.unpack_from(self._buf, to)[0]
        if n > most:
            raise PayloadError(
                f"batch header: a vector at {to} has {n} elements, at most {most}",
                part="batch header",
            )
        if to + 4 + n * size > len(self._buf):
            raise _outside(f"a vector of {n} elements", to)
        return to + 4, n

    def integer(self, slot: int, fmt: str, default: int = 0) -> int:
        """Returns an integer; fmt is its letter in package struct."""
        s = _SCALARS[fmt]
        at = self._at(slot, s.size)
        return default if at < 0 else int(s.unpack_from(self._buf, at)[0])

    def span(self, slot: int) -> tuple[int, int] | None:
        """Returns a struct of two ulong, or None."""
        at = self._at(slot, 16)
        if at < 0:
            return None
        offset, length = struct.unpack_from("<QQ", self._buf, at)
        return offset, length

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
        return np.frombuffer(self._buf, t, n, start).copy()

    def table(self, slot: int) -> Table | None:
        """Returns a table, or None."""
        at = self._at(slot, 4)
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
