"""Parts of a payload become a batch: one buffer, one copy."""

from __future__ import annotations

import functools
import itertools
import math
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from chaski import _show
from chaski._payload import ALIGN, DENSE, MAX_HEADER, TEXT, Span, Tensor, parse_header
from chaski._proto import chaski_pb2 as pb
from chaski._proto.arguments import BadRow
from chaski._shared import Bytes, Owner, Side
from chaski.errors import LimitError, PayloadError


class Ragged(NamedTuple):
    """A field whose rows have different lengths: row k is `values[offsets[k]:offsets[k + 1]]`.

    In batches of `chaski.torch` both are tensors.

    Attributes:
        offsets: int64, rows + 1.
        values: the elements of all rows, such as boxes of shape (k, 4).
    """

    offsets: npt.NDArray[np.int64]
    values: npt.NDArray[Any]

    def rows(self) -> list[Any]:
        """Returns the values of each row, as views."""
        return [self.values[a:b] for a, b in itertools.pairwise(self.offsets.tolist())]


def polygons(batch: Mapping[str, Any], name: str) -> list[list[list[list[Any]]]]:
    """Returns the shapes of a field of kind "polygons": for each row a list of shapes.

    A shape is a list of polygons, a polygon a list of rings: outlines first, of which there are
    several if the window cuts it into pieces, then holes. A ring is an array (or tensor) of
    vertices (k, 2) of x and y, without the first one again at its end. What lies in an odd number
    of its rings belongs to a polygon. Outlines have a positive area by the shoelace formula, holes
    a negative one.

    Args:
        batch: a batch of `chaski.load`, or of `chaski.torch`.
        name: the field.
    """
    out = []
    for vertices, rings in zip(batch[name].rows(), batch[name + "_rings"].rows(), strict=True):
        row: list[list[list[Any]]] = []
        at = 0
        for shape, part, count, _ in rings.tolist():
            if shape == len(row):
                row.append([])
            if part == len(row[shape]):
                row[shape].append([])
            row[shape][part].append(vertices[at : at + count])
            at += count
        out.append(row)
    return out


class Members(dict[str, Any]):
    """A dict whose "geo" is a dict of its members "geo.transform", "geo.epsg" and so on.

    In numpy `["geo"]["time"]` is datetime64[us], a view of the microseconds of "geo.time".
    """

    def __missing__(self, name: str) -> dict[str, Any]:
        if name == "geo" and (
            found := {k.removeprefix("geo."): v for k, v in self.items() if k.startswith("geo.")}
        ):
            if isinstance(found.get("time"), np.ndarray):
                found["time"] = found["time"].view("datetime64[us]")
            return found
        raise KeyError(name)


class Batch(Members):
    """The rows of one step: a dict of numpy arrays by the name of the field.

    Besides the fields it holds "valid" (bool, False for padding and skipped samples), "position"
    (int64, position in the epoch, -1 for padding) and "sample" (int64, index in the dataset, -1 for
    padding), one element a row each. String fields are arrays of `str` (dtype object), of sequences
    with the axes n and t; ragged ones are `Ragged`. bfloat16 is held as its bits in uint16, types
    that numpy lacks (complex_int16) as a structured dtype with "re" and "im".

    Attributes:
        epoch: the epoch.
        step: the step in the epoch.
        bad: the rows that the bad-sample policy touched.
        dtypes: dtype of every tensor by name, as chaski calls it ("bfloat16", not "uint16").
        axes: names of the axes of every tensor, by name.
    """

    epoch: int = 0
    step: int = 0
    bad: tuple[BadRow, ...] = ()
    dtypes: Mapping[str, str] = {}
    axes: Mapping[str, tuple[str, ...]] = {}

    @property
    def rows(self) -> int:
        """The rows of the batch on this rank, padding included."""
        return len(self["valid"])

    @property
    def nbytes(self) -> int:
        """The bytes of all arrays; of strings, those of the references to them."""
        return sum(
            sum(a.nbytes for a in v) if isinstance(v, Ragged) else int(v.nbytes)
            for v in self.values()
        )

    def _about(self) -> str:
        """Returns what it is, without its members."""
        valid = int(np.count_nonzero(self["valid"])) if "valid" in self else 0
        bad = f", {len(self.bad)} bad" if self.bad else ""
        return (
            f"chaski.Batch: step {self.step} of epoch {self.epoch}, {valid} valid of "
            f"{len(self.get('valid', ()))} rows{bad}"
        )

    def _shown(self) -> list[tuple[str, Any, str]]:
        """Returns name, dtype and shape of the members."""

        def shape(v: Any) -> str:
            if isinstance(v, Ragged):
                return f"ragged, {len(v.offsets) - 1} rows of {len(v.values)} values"
            return str(tuple(v.shape))

        kept = {k: v for k, v in self.items() if hasattr(v, "dtype") or isinstance(v, Ragged)}
        return [(k, self.dtypes.get(k) or v.dtype, shape(v)) for k, v in kept.items()]

    def __repr__(self) -> str:
        members = "; ".join(f"{name} {dtype} {shape}" for name, dtype, shape in self._shown())
        return f"<{self._about()}; {members}>"

    def _repr_html_(self) -> str:
        """Returns what notebooks show: the members, and some chips of the first raster."""
        rows, looked = [], ""
        for name, dtype, shape in self._shown():
            look = ""
            if not looked and dtype != "bfloat16":  # of which numpy has no numbers
                axes = self.axes.get(name, ())
                look = looked = _show.quicklook(self[name], axes, self["valid"])
            rows.append((name, dtype, shape, look))
        return _show.table(self._about(), rows)


def only_row(batch: Batch, values: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the values of a batch of one row without the axis n.

    Where n is merged with other axes, a value keeps its shape. A ragged field gives its elements,
    a string field a str.

    Args:
        batch: what the values are of.
        values: the batch itself, or its values as tensors.
    """
    out = {}
    for name, v in values.items():
        axes = batch.axes.get(name, ("n",))
        if isinstance(v, tuple):  # ragged
            out[name] = v[1]
        elif isinstance(v, list):  # text
            out[name] = v[0]
        elif "n" in axes:
            out[name] = v[(slice(None),) * axes.index("n") + (0,)]
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


@dataclass(slots=True)
class Part:
    """One part of a payload as it came: `data` is at `offset` of the `total` bytes."""

    ticket: int
    offset: int
    total: int
    data: memoryview


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

    def add(self, reply: Part | pb.Lease) -> Batch | None:
        """Takes the next part or lease, and returns the batch if it is whole."""
        if not isinstance(reply, Part):
            if self._side is None or self._buf is not None:
                raise PayloadError(f"ticket {reply.ticket}: a lease that was not asked for")
            memory = self._side.claim(reply.id, reply.segment)
            return shared_batch(reply.head, memory, self._pool, self._limit)
        if self._buf is None:
            if reply.total > self._limit:
                raise _too_big(reply.total, self._limit)
            self._buf = self._pool.take(reply.total)
        buf, n, have, total = self._buf, len(reply.data), self._have, len(self._buf)
        if reply.offset != have or reply.total != total or not 0 < n <= total - have:
            raise PayloadError(
                f"part of {n} bytes at {reply.offset} of {reply.total} after {have} of {total}"
            )
        buf[have : have + n] = np.frombuffer(reply.data, np.uint8)
        self._have += n
        if self._have < total:
            return None
        self.clear()
        return _batch(buf, buf[total:])


def shared_batch(head: bytes, memory: Bytes, pool: Pool, limit: int) -> Batch:
    """Returns a batch whose tensors lie in shared memory.

    Args:
        head: the part of the payload outside of shared memory: the header and metadata columns.
        memory: the rest of the payload.
        pool: where memory for the metadata columns comes from.
        limit: bytes that a payload may have.
    """
    total = len(head) + len(memory)
    if total > limit:
        raise _too_big(total, limit)
    if len(head) % ALIGN:
        raise PayloadError(f"a head of {len(head)} bytes: it must be a multiple of {ALIGN}")
    inline = pool.take(len(head))
    inline[:] = np.frombuffer(head, np.uint8)
    return _batch(inline, memory)


_View = Callable[[Span, np.dtype[Any]], npt.NDArray[Any]]


def _batch(head: Bytes, memory: Bytes) -> Batch:
    """Returns the batch of a payload in two pieces, of which the first one has the header."""
    n = int.from_bytes(head[:4].tobytes(), "little")
    if len(head) < 4 or n > min(len(head) - 4, MAX_HEADER):
        raise PayloadError(f"a batch header of {n} bytes in {len(head)} bytes")
    h = parse_header(head[4 : 4 + n].tobytes(), 4 + n, len(head) + len(memory))

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

    batch = Batch()
    for t in h.tensors:
        if t.kind == DENSE:
            batch[t.name] = view(t.data, t.numpy_dtype).reshape(t.shape)
        else:
            batch[t.name] = _rows(t, view, h.rows)
    batch["valid"] = h.valid
    batch["position"] = h.positions
    batch["sample"] = h.samples
    batch.epoch = h.epoch
    batch.bad = h.bad
    batch.dtypes = {t.name: t.dtype for t in h.tensors}
    batch.axes = {t.name: t.axes for t in h.tensors}
    return batch


def _rows(t: Tensor, view: _View, rows: int) -> npt.NDArray[Any] | Ragged:
    """Returns a text or ragged field; its offsets are checked here, as they are data."""
    assert t.offsets is not None
    offsets = view(t.offsets, np.dtype("<u8")).copy()
    values = view(t.data, t.numpy_dtype).copy()
    shape = t.shape if t.kind == TEXT and len(t.shape) == 2 else (rows,)
    cells = math.prod(shape)
    if (
        shape[0] != rows
        or len(offsets) != cells + 1
        or int(offsets[0]) != 0
        or int(offsets[-1]) != len(values)
    ):
        raise PayloadError(f"tensor {t.name!r}: offsets do not span {len(values)} values")
    if np.any(offsets[1:] < offsets[:-1]):
        raise PayloadError(f"tensor {t.name!r}: offsets fall")
    if t.kind != TEXT:
        if len(t.shape) == 2:
            width = t.shape[1]
            if t.shape[0] != rows or width < 1 or np.any(offsets % np.uint64(width)):
                raise PayloadError(f"tensor {t.name!r}: offsets do not fit groups of {width}")
            offsets, values = offsets // np.uint64(width), values.reshape(-1, width)
        return Ragged(offsets.astype(np.int64), values)
    raw = values.tobytes()
    out = np.empty(cells, object)
    pairs = itertools.pairwise(offsets.tolist())
    out[:] = [raw[a:b].decode("utf-8", "replace") for a, b in pairs]
    return out.reshape(shape)


def _too_big(size: int, limit: int) -> LimitError:
    return LimitError(f"a batch of {size} bytes, at most {limit} (max_batch_bytes)")
