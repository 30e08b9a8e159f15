"""The header of a batch's payload (proto/chaski/v1/batch.fbs), checked before anything uses it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from chaski._flat import Table
from chaski._proto.arguments import DTYPE_NAMES, BadRow, SampleRef
from chaski.errors import PayloadError

VERSION = 1
ALIGN = 64
MAX_HEADER = 64 << 20
MAX_ROWS = 1 << 20
MIN_BAD = 16  # bytes of a bad row without a text, and of the reference to it
MAX_TENSORS = 1 << 8
MAX_AXES = 32

DENSE, RAGGED, TEXT = 0, 1, 2

_COMPLEX = {"complex_int16": "<i2", "complex_int32": "<i4", "complex_float16": "<f2"}
_BITS = {
    "bfloat16": "uint16",
    **dict.fromkeys(DTYPE_NAMES[DTYPE_NAMES.index("bfloat16") + 1 :], "uint8"),
}


def _numpy_dtype(name: str) -> np.dtype[Any]:
    if name in _COMPLEX:
        return np.dtype([("re", _COMPLEX[name]), ("im", _COMPLEX[name])])
    return np.dtype(_BITS.get(name, name)).newbyteorder("<")


DTYPES: dict[int, tuple[str, np.dtype[Any]]] = {
    i: (name, _numpy_dtype(name)) for i, name in enumerate(DTYPE_NAMES, 1)
}
"""Name and numpy dtype of the payload's dtype codes. Types of ml_dtypes are held as their bits."""

Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Tensor:
    """One tensor of a payload; its spans lie inside the payload and fit its shape and dtype."""

    name: str
    kind: int
    dtype: str
    axes: tuple[str, ...]
    shape: tuple[int, ...]
    data: Span
    offsets: Span | None

    @property
    def bytes(self) -> int:
        """The bytes of its spans."""
        return self.data[1] + (self.offsets[1] if self.offsets else 0)

    @property
    def numpy_dtype(self) -> np.dtype[Any]:
        """The dtype of the elements in the payload."""
        return _numpy_dtype(self.dtype) if self.dtype else np.dtype(np.uint8)


@dataclass(frozen=True, slots=True)
class Header:
    """What a payload says about itself."""

    epoch: int
    rows: int
    valid: npt.NDArray[np.bool_]
    positions: npt.NDArray[np.int64]
    samples: npt.NDArray[np.int64]
    bad: tuple[BadRow, ...]
    tensors: tuple[Tensor, ...]


def _sample_ref(t: Table | None) -> SampleRef | None:
    if t is None:
        return None
    return SampleRef(t.integer(1, "q", -1), t.integer(2, "q", -1), t.text(0, 1 << 16))


def _bad(text: str) -> PayloadError:
    return PayloadError(f"batch header: {text}", part="batch header")


def parse_header(buf: bytes, start: int, total: int) -> Header:
    """Reads and checks a header.

    Args:
        buf: the FlatBuffers buffer.
        start: offset in the payload at which tensors may begin (the end of the header).
        total: length of the payload in bytes.
    """
    t = Table.root(buf)
    version = t.integer(0, "B", VERSION)
    if version != VERSION:
        raise _bad(f"version {version}; this is version {VERSION}")
    rows = t.integer(3, "i")
    if not 0 <= rows <= MAX_ROWS:
        raise _bad(f"{rows} rows")
    length = t.integer(9, "Q")
    if length != total:
        raise _bad(f"says {length} bytes, the parts say {total}")
    valid = t.array(4, "u1", rows)
    positions = t.array(5, "<i8", rows)
    samples = t.array(6, "<i8", rows)
    if not len(valid) == len(positions) == len(samples) or len(valid) not in (0, rows):
        raise _bad(
            f"{rows} rows, but {len(valid)} validities, {len(positions)} positions and "
            f"{len(samples)} samples"
        )
    # References may share what they point to, which a writer has no reason to do: without these
    # sums a small payload could ask for much memory. A row may have several bad steps.
    bad, text = [], 0
    for b in t.tables(7, min(len(buf) // MIN_BAD, MAX_ROWS)):
        row = b.integer(0, "i")
        message, source, kind, file, part = texts = [b.text(i, 1 << 16) for i in (2, 3, 6, 7, 8)]
        sample, instead = _sample_ref(b.table(4)), _sample_ref(b.table(5))
        text += sum(map(len, texts)) + sum(len(s.id) for s in (sample, instead) if s)
        if not 0 <= row < rows or text > len(buf):
            raise _bad(f"bad row {row} of {rows}, {text} letters")
        about = (message, source, sample, instead, kind, file, part, b.integer(9, "q", -1))
        bad.append(BadRow(row, b.integer(1, "q"), *about))
    tensors = tuple(_tensor(x, start, total) for x in t.tables(8, MAX_TENSORS))
    if sum(x.bytes for x in tensors) > total:
        raise _bad("tensors overlap")
    if len({x.name for x in tensors}) != len(tensors):
        raise _bad("two tensors have the same name")
    return Header(
        epoch=t.integer(1, "Q"),
        rows=rows,
        valid=valid != 0,
        positions=positions.astype(np.int64, copy=False),
        samples=samples.astype(np.int64, copy=False),
        bad=tuple(bad),
        tensors=tensors,
    )


def _span(what: str, span: Span | None, start: int, total: int, length: int = -1) -> Span:
    """Checks that a span lies inside of the payload and, if length is given, is that long."""
    if span is None:
        raise _bad(f"{what} is missing")
    offset, n = span
    if n and (offset < start or offset > total or n > total - offset or offset % ALIGN):
        raise _bad(f"{what} is {n} bytes at {offset}, of {total}")
    if length >= 0 and n != length:
        raise _bad(f"{what} is {n} bytes, its shape is {length}")
    return (offset, n) if n else (start, 0)


def _tensor(t: Table, start: int, total: int) -> Tensor:
    name = t.text(0)
    kind = t.integer(1, "B")
    code = t.integer(2, "B")
    axes = tuple(t.texts(3, MAX_AXES))
    shape = tuple(int(n) for n in t.array(4, "<i8", MAX_AXES))
    what = f"tensor {name!r}"
    if kind not in (DENSE, RAGGED, TEXT):
        raise _bad(f"{what} has kind {kind}")
    if any(n < 0 for n in shape):
        raise _bad(f"{what} has shape {shape}")
    if kind == TEXT:
        dtype, size = "", 1
    elif code in DTYPES:
        dtype, size = DTYPES[code][0], DTYPES[code][1].itemsize
    else:
        raise _bad(f"{what} has dtype {code}")
    # numpy refuses a shape whose product over the dimensions that are not 0 passes the address
    # space, in elements of what it becomes: of strings, a reference to each.
    if math.prod(n for n in shape if n) * max(size, 8) >= 1 << 62:
        raise _bad(f"{what} has shape {shape}")
    if kind == DENSE:
        if axes and len(axes) != len(shape):
            raise _bad(f"{what} has axes {axes} and shape {shape}")
        data = _span(f"{what}: data", t.span(5), start, total, math.prod(shape) * size)
        offsets = None
    else:
        data = _span(f"{what}: values", t.span(5), start, total)
        if data[1] % size:
            raise _bad(f"{what}: {data[1]} bytes of values of {size} bytes")
        offsets = _span(f"{what}: offsets", t.span(6), start, total)
        if kind == TEXT and len(shape) > 1:
            if len(shape) != 2 or len(axes) != 2 or offsets[1] != 8 * (math.prod(shape) + 1):
                raise _bad(f"{what}: {offsets[1]} bytes of offsets for shape {shape}")
        elif offsets[1] < 8 or offsets[1] % 8 or offsets[1] > 8 * (MAX_ROWS + 1):
            raise _bad(f"{what}: {offsets[1]} bytes of offsets")
    if t.table(7) is not None:  # arithmetic for clients whose tickets ask for native tensors
        raise _bad(f"{what} is not final")
    return Tensor(name, kind, dtype, axes, shape, data, offsets)
