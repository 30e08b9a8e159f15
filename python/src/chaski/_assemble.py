"""Payloads become batches: parts in one buffer, and arrays over it.

A payload is as proto/chaski/v1/batch.fbs says. Its header is checked before anything uses it.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from chaski._arguments import BadRow, SampleRef
from chaski._fields import DTYPE_NAMES
from chaski._flat import Table
from chaski._grpc import pb
from chaski._members import Ragged
from chaski._plot import Members
from chaski._shared import Bytes, Owner, Side
from chaski.errors import LimitError, PayloadError
from chaski.order import Weights

VERSION = 1
ALIGN = 64
MAX_HEADER = 64 << 20
MAX_ROWS = 1 << 20
MIN_BAD = 16  # bytes of a bad row without a text, and of the reference to it
MAX_TENSORS = 1 << 8
MAX_AXES = 32
MAX_BANDS = 1 << 16

DENSE, RAGGED, TEXT = 0, 1, 2

_COMPLEX = {"complex_int16": "<i2", "complex_int32": "<i4", "complex_float16": "<f2"}
_BITS = {
    "bfloat16": "uint16",
    **dict.fromkeys(DTYPE_NAMES[DTYPE_NAMES.index("bfloat16") + 1 :], "uint8"),
}


@functools.cache
def _numpy_dtype(name: str) -> np.dtype[Any]:
    if name in _COMPLEX:
        return np.dtype([("re", _COMPLEX[name]), ("im", _COMPLEX[name])])
    dtype: np.dtype[Any] = np.dtype(_BITS.get(name, name)).newbyteorder("<")
    return dtype


DTYPES: dict[int, tuple[str, np.dtype[Any]]] = {
    i: (name, _numpy_dtype(name)) for i, name in enumerate(DTYPE_NAMES, 1)
}
"""Name and numpy dtype of the payload's dtype codes. Types of ml_dtypes are held as their bits."""

Span = tuple[int, int]
Ragged.__module__ = __name__  # pickles find it here


class Batch(Members):
    """The rows of one step: a dict of numpy arrays by the name of the field.

    Besides the fields it holds "valid" (bool, False for padding and skipped samples), "position"
    (int64, position in the epoch, -1 for padding) and "sample" (int64, index in the dataset, -1 for
    padding), one element a row each. String fields are arrays of `str` (dtype object), of sequences
    with the axes n and t; ragged ones are `Ragged`. bfloat16 is held as its bits in uint16, types
    that numpy lacks (complex_int16) as a structured dtype with "re" and "im". `plot` draws rows.

    Attributes:
        epoch: the epoch.
        step: the step in the epoch.
        bad: the rows that the bad-sample policy touched.
        dtypes: dtype of every tensor by name, as chaski calls it ("bfloat16", not "uint16").
        axes: names of the axes of every tensor, by name.
        source: name of the source of all rows, of a mixture with batches of one source; else "".
        fields: what its tensors are, by name: their bands, wavelengths, ground sampling distance.
    """

    epoch: int = 0
    step: int = 0
    bad: tuple[BadRow, ...] = ()
    _weights: Weights | None = None  # that drew its samples
    _converts: Mapping[str, Convert] = {}  # what is left to do for tensors, by name
    _arrived: Callable[[], object] | None = None  # what has a loop wait for it, on a device
    _made: Future[tuple[Any, Callable[[], object]]] | None = None  # what `map` makes of it

    @property
    def rows(self) -> int:
        """The rows of the batch on this rank, padding included."""
        return len(self["valid"])

    @property
    def nbytes(self) -> int:
        """The bytes of all arrays; of strings, those of the references to them."""
        parts = (v if isinstance(v, Ragged) else (v,) for v in self.values())
        return sum(int(a.nbytes) for arrays in parts for a in arrays)

    def _about(self) -> str:
        bad = f", {len(self.bad)} bad" if self.bad else ""
        return f"chaski.Batch: step {self.step} of epoch {self.epoch}, {self._rows()}{bad}"


def row_of(batch: Batch, values: Mapping[str, Any], k: int = 0) -> dict[str, Any]:
    """Returns the values of row k of a batch, which may be tensors, without the axis n.

    Where n is merged with other axes, a value keeps its shape: the batch has one row then. A ragged
    field gives its elements, of several views a list of them, a string field a str.
    """
    out = Members()._like(batch)
    out.axes = {k: tuple(a for a in axes if a != "n") for k, axes in batch.axes.items()}
    for name, v in values.items():
        axes = batch.axes.get(name, ("n",))
        if isinstance(v, tuple):  # ragged
            each = (len(v[0]) - 1) // len(values["valid"])  # of several views
            ends = [int(i) for i in v[0][k * each : (k + 1) * each + 1]]
            lists = [v[1][a:b] for a, b in itertools.pairwise(ends)]
            out[name] = lists if "v" in axes else lists[0]
        elif isinstance(v, list):  # text
            out[name] = v[k]
        elif "n" in axes:
            out[name] = v[(slice(None),) * axes.index("n") + (k,)]
        else:
            out[name] = v
    return out


class Pool:
    """Memory for batches, 64-byte aligned.

    With reuse, blocks that no array refers to any more are given out again, `keep` of them at most:
    fresh memory costs a page fault every 4 KiB.
    """

    def __init__(self, reuse: bool = True, keep: int = 8) -> None:
        self._free: deque[Bytes] = deque(maxlen=keep if reuse else 0)

    def take(self, size: int) -> Bytes:
        """Returns size bytes, not cleared."""
        try:
            # A block that is much too big would be held for nothing; it is let go.
            while not size <= (raw := self._free.popleft()).nbytes - ALIGN <= 2 * size + 4096:
                pass
        except IndexError:
            raw = np.empty(size + ALIGN, np.uint8)
        view: Bytes = np.asarray(Owner(raw, functools.partial(self._free.append, raw)))
        start = -raw.ctypes.data % ALIGN
        return view[start : start + size]

    def within(self, size: int, limit: int) -> Bytes:
        """Returns memory for a batch, which is at most `limit` bytes."""
        _check_size(size, limit)
        return self.take(size)


@dataclass(slots=True)
class Whole:
    """A payload that came in one piece."""

    ticket: int
    memory: Bytes


class Assembler:
    """Makes batches of at most `limit` bytes of what a server sends: parts in order, or leases."""

    def __init__(self, pool: Pool, limit: int, side: Side | None = None) -> None:
        self._pool = pool
        self._limit = limit
        self._side = side
        self.clear()

    def clear(self) -> None:
        """Forgets the parts of a batch that does not come."""
        self._buf: Bytes | None = None
        self._have = 0

    def add(self, reply: pb.Part | Whole | pb.Lease) -> Batch | None:
        """Takes the next part, payload or lease, and returns the batch if it is whole."""
        if isinstance(reply, Whole):
            return _batch(reply.memory, reply.memory[len(reply.memory) :])
        if isinstance(reply, pb.Lease):
            if self._side is None or self._buf is not None:
                raise PayloadError(f"ticket {reply.ticket}: a lease that was not asked for")
            memory = self._side.claim(reply.id, reply.segment)
            return shared_batch(reply.head, memory, self._limit)
        if self._buf is None:
            self._buf = self._pool.within(reply.total, self._limit)
        buf, data, have, total = self._buf, reply.data, self._have, len(self._buf)
        if reply.offset != have or reply.total != total or not 0 < len(data) <= total - have:
            raise PayloadError(
                f"part of {len(data)} bytes at {reply.offset} of {reply.total} after {have} of "
                f"{total}"
            )
        buf[have : have + len(data)] = np.frombuffer(data, np.uint8)
        self._have += len(data)
        if self._have < total:
            return None
        self.clear()
        return _batch(buf, buf[total:])


def shared_batch(head: bytes, memory: Bytes, limit: int) -> Batch:
    """Returns a batch whose tensors lie in shared memory, behind a head with the header."""
    _check_size(len(head) + len(memory), limit)
    if len(head) % ALIGN:
        raise PayloadError(f"a head of {len(head)} bytes: it must be a multiple of {ALIGN}")
    return _batch(np.frombuffer(bytearray(head), np.uint8), memory)


@dataclass(frozen=True, slots=True)
class Convert:
    """Arithmetic that is left to the receiver of a tensor: see proto/chaski/v1/batch.fbs."""

    to: str
    scale: npt.NDArray[np.float32]
    offset: npt.NDArray[np.float32]
    band_axis: int
    clip: tuple[float, float] | None
    fill: float
    mask: Bytes | None


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
    convert: Table | None
    mask: Span | None  # of convert

    @property
    def bytes(self) -> int:
        """The bytes of its spans."""
        return self.data[1] + sum(s[1] for s in (self.offsets, self.mask) if s)


_View = Callable[[Span, np.dtype[Any]], npt.NDArray[Any]]


def _batch(head: Bytes, memory: Bytes) -> Batch:
    """Returns the batch of a payload in two pieces, of which the first one has the header."""
    n = int.from_bytes(head[:4].tobytes(), "little")
    if len(head) < 4 or n > min(len(head) - 4, MAX_HEADER):
        raise PayloadError(f"a batch header of {n} bytes in {len(head)} bytes")
    start, total = 4 + n, len(head) + len(memory)
    t = Table.root(head[4:start].tobytes())
    version = t.number(0, "B", VERSION)
    if version != VERSION:
        raise _bad(f"version {version}; this is version {VERSION}")
    rows = t.number(3, "i")
    if not 0 <= rows <= MAX_ROWS:
        raise _bad(f"{rows} rows")
    length = t.number(9, "Q")
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
    bad = _bad_rows(t, rows, n)
    tensors = [_tensor(x, start, total) for x in t.tables(8, MAX_TENSORS)]
    if sum(x.bytes for x in tensors) > total:
        raise _bad("tensors overlap")
    if len({x.name for x in tensors}) != len(tensors):
        raise _bad("two tensors have the same name")

    def view(span: Span, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
        offset, n = span
        if n == 0:
            return np.empty(0, dtype)
        if offset >= len(head):
            offset -= len(head)
            return memory[offset : offset + n].view(dtype)
        if n > len(head) - offset:
            raise PayloadError(f"a range of {n} bytes at {offset} lies in two places")
        return head[offset : offset + n].view(dtype)

    batch = Batch({x.name: _values(x, view, rows) for x in tensors})
    batch["valid"] = valid != 0
    batch["position"] = positions.astype(np.int64, copy=False)
    batch["sample"] = samples.astype(np.int64, copy=False)
    batch.epoch = t.number(1, "Q")
    batch.bad = bad
    batch.dtypes = {x.name: x.dtype for x in tensors}
    batch._converts = {x.name: _convert(x, x.convert, view) for x in tensors if x.convert}
    batch.axes = {x.name: x.axes for x in tensors}
    return batch


def _bad_rows(t: Table, rows: int, most: int) -> tuple[BadRow, ...]:
    """Returns the bad rows of a batch of so many, in a header of so many bytes."""
    # References may share what they point to, which a writer has no reason to do: without these
    # sums a small payload could ask for much memory. A row may have several bad steps.
    bad, text = [], 0
    for b in t.tables(7, min(most // MIN_BAD, MAX_ROWS)):
        row = b.number(0, "i")
        message, source, kind, file, part = texts = [b.text(i, 1 << 16) for i in (2, 3, 6, 7, 8)]
        sample, instead = _sample_ref(b.table(4)), _sample_ref(b.table(5))
        text += sum(map(len, texts)) + sum(len(s.id) for s in (sample, instead) if s)
        if not 0 <= row < rows or text > most:
            raise _bad(f"bad row {row} of {rows}, {text} letters")
        about = (message, source, sample, instead, kind, file, part, b.number(9, "q", -1))
        bad.append(BadRow(row, b.number(1, "q"), *about))
    return tuple(bad)


def _sample_ref(t: Table | None) -> SampleRef | None:
    if t is None:
        return None
    return SampleRef(t.number(1, "q", -1), t.number(2, "q", -1), t.text(0, 1 << 16))


def _bad(text: str) -> PayloadError:
    return PayloadError(f"batch header: {text}", part="batch header")


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
    kind = t.number(1, "B")
    code = t.number(2, "B")
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
    convert, mask = t.table(7), None
    if convert is not None:
        if kind != DENSE or dtype not in _LEFT.get(_name_of(convert), ()):
            raise _bad(f"{what} of {dtype} is not final")
        if (mask := convert.span(8)) is not None:
            mask = _span(f"{what}: mask", mask, start, total, math.prod(shape))
    return Tensor(name, kind, dtype, axes, shape, data, offsets, convert, mask)


_SMALL = "uint8", "int8", "uint16", "int16", "float16"
_LEFT: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("float32", "float16", "bfloat16"), _SMALL),
    "int64": ("uint8", "int8", "uint16", "int16", "uint32", "int32"),
}
"""Of which dtypes tensors may be left to be converted, by the dtype that they become."""


def _name_of(convert: Table) -> str:
    """Returns the dtype that a tensor becomes."""
    return DTYPES.get(convert.number(0, "B"), ("",))[0]


def _convert(x: Tensor, t: Table, view: _View) -> Convert:
    scale, offset = (t.array(i, "<f4", MAX_BANDS).astype(np.float32) for i in (1, 2))
    axis, clip = t.number(3, "i"), (t.number(5, "f"), t.number(6, "f"))
    bands = x.shape[axis] if 0 <= axis < len(x.shape) else 1
    several = {len(scale), len(offset)} - {0, 1}
    if not -1 <= axis < len(x.shape) or several - {bands} or not clip[0] <= clip[1]:
        raise _bad(f"tensor {x.name!r} has arithmetic that does not fit its shape {x.shape}")
    mask = None if x.mask is None else view(x.mask, np.dtype(np.uint8))
    clipped = clip if t.number(4, "B") else None
    return Convert(_name_of(t), scale, offset, axis, clipped, t.number(7, "d"), mask)


def _values(t: Tensor, view: _View, rows: int) -> npt.NDArray[Any] | Ragged:
    """Returns a field. Offsets of texts and ragged ones are checked here, as they are data."""
    values = view(t.data, _numpy_dtype(t.dtype) if t.dtype else np.dtype(np.uint8))
    if t.offsets is None:
        return values.reshape(t.shape)
    offsets, values = view(t.offsets, np.dtype("<u8")).copy(), values.copy()
    views = t.kind != TEXT and len(t.shape) == len(t.axes) and t.axes[1:2] == ("v",)
    shape = t.shape[:2] if views or t.kind == TEXT and len(t.shape) == 2 else (rows,)
    cells = math.prod(shape)
    ends = (0, len(values))
    if shape[0] != rows or len(offsets) != cells + 1 or (offsets[0], offsets[-1]) != ends:
        raise PayloadError(f"tensor {t.name!r}: offsets do not span {len(values)} values")
    if np.any(offsets[1:] < offsets[:-1]):
        raise PayloadError(f"tensor {t.name!r}: offsets fall")
    if t.kind != TEXT:
        if len(t.shape) == 2 + views:
            width = t.shape[-1]
            if t.shape[0] != rows or width < 1 or np.any(offsets % np.uint64(width)):
                raise PayloadError(f"tensor {t.name!r}: offsets do not fit groups of {width}")
            offsets, values = offsets // np.uint64(width), values.reshape(-1, width)
        return Ragged(offsets.astype(np.int64), values)
    raw = values.tobytes()
    out = np.empty(cells, object)
    pairs = itertools.pairwise(offsets.tolist())
    out[:] = [raw[a:b].decode("utf-8", "replace") for a, b in pairs]
    return out.reshape(shape)


def _check_size(size: int, limit: int) -> None:
    if size > limit:
        error = LimitError(f"a batch of {size} bytes, at most {limit} (max_batch_bytes)")
        error._answered = True  # so it is not about a limit of streams
        raise error
