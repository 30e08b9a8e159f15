"""Writes random arrays with libtiledb 1.6.3, through its C interface.

    write16.py LIBRARY FOLDER SEED COUNT SECONDS

makes the arrays FOLDER/SEED, FOLDER/SEED+1 and so on, at most COUNT, and none after SECONDS. Each
is made in a process of its own, as the library may crash, and gives a line of JSON: seed, what (the
schema and the writes, in words), disputed (why libtiledb of today may read it wrongly, or nothing),
and reads, each with the read as oracle.py takes it, the text of the box, and what was written
there: the SHA-256 of the coordinates and of each attribute's values and offsets. Or the line has
skipped, the name of a fault of 1.6.3 that the array would meet, or error: the library's own words,
or how the process ended.

Faults of 1.6.3 that are kept away from, beside those of skipped: its loops do not end on a domain
whose last tile ends at its type's highest value; a last tile that begins below zero has to be
whole; RLE and double delta fail on what another filter made of the values, positive delta on values
that do not ascend.
"""

from __future__ import annotations

import ctypes as c
import hashlib
import itertools
import json
import math
import os
import random
import signal
import struct
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

VAR = 0xFFFFFFFF
# Datatypes by number: their struct formats (the bits of texts and datetimes are those of a number).
FORMATS = ["i", "q", "f", "d", "B", "b", "B", "h", "H", "I", "Q", *"BBHIHI", "B", *"q" * 13]
SIZES = [struct.calcsize(f"<{f}") for f in FORMATS]
FLOAT32, FLOAT64, CHAR, UINT64, ANY, DATETIME = 2, 3, 4, 10, 17, 18
DIM_TYPES = [0, 1, 5, 6, 7, 8, 9, 10, 18, 20, 24, 30]
NONE, ZSTD, RLE, DOUBLE_DELTA, BIT_WIDTH, BIT_SHUFFLE, POSITIVE_DELTA = 0, 2, 4, 6, 7, 8, 10
ROW_MAJOR, COL_MAJOR, GLOBAL, UNORDERED = range(4)
WRITE, AES_256_GCM = 1, 1
KEY = b"0123456789abcdef0123456789ABCDEF"
LONGEST = 10  # seconds that one array may take

Cell = tuple[Any, ...]  # coordinates
Pipeline = tuple["int | None", "list[tuple[int, int | None]]"]  # chunk size; filters, options


class TileDBError(Exception):
    """What the library says is wrong."""


class Library:
    """libtiledb with a context."""

    def __init__(self, path: str, settings: dict[str, str]):
        """Loads it."""
        self.lib, self.ctx, self.config, error = (
            c.CDLL(path),
            c.c_void_p(),
            c.c_void_p(),
            c.c_void_p(),
        )
        self.lib.tiledb_config_alloc(c.byref(self.config), c.byref(error))
        for name, value in settings.items():
            self.lib.tiledb_config_set(self.config, name.encode(), value.encode(), c.byref(error))
        if self.lib.tiledb_ctx_alloc(self.config, c.byref(self.ctx)) != 0:
            raise TileDBError("no context")

    def call(self, name: str, *args: Any) -> None:
        """Calls a function with the context."""
        if getattr(self.lib, name)(self.ctx, *args) == 0:
            return
        error, text = c.c_void_p(), c.c_char_p()
        self.lib.tiledb_ctx_get_last_error(self.ctx, c.byref(error))
        if error.value:
            self.lib.tiledb_error_message(error, c.byref(text))
        raise TileDBError(f"{name}: {(text.value or b'').decode(errors='replace')}")

    def new(self, name: str, *args: Any) -> c.c_void_p:
        """Allocates an object."""
        it = c.c_void_p()
        self.call(f"{name}_alloc", *args, c.byref(it))
        return it

    def filters(self, pipeline: Pipeline) -> c.c_void_p:
        """Makes a list of filters."""
        chunk, filters = pipeline
        made = self.new("tiledb_filter_list")
        for kind, value in filters:
            one = self.new("tiledb_filter", c.c_int(kind))
            if value is not None:
                option = {BIT_WIDTH: 1, POSITIVE_DELTA: 2}.get(kind, 0)  # a window; 0 is the level
                number = c.c_uint32(value) if option else c.c_int32(value)
                self.call("tiledb_filter_set_option", one, c.c_int(option), c.byref(number))
            self.call("tiledb_filter_list_add_filter", made, one)
        if chunk:
            self.call("tiledb_filter_list_set_max_chunk_size", made, c.c_uint32(chunk))
        return made

    def create(self, uri: bytes, s: Schema) -> None:
        """Makes an array."""
        domain = self.new("tiledb_domain")
        for name, *bounds in s.dims:
            lo, hi, extent = (encode(s.dim_type, v) for v in bounds)
            d = self.new("tiledb_dimension", name.encode(), c.c_int(s.dim_type), lo + hi, extent)
            self.call("tiledb_domain_add_dimension", domain, d)
        schema = self.new("tiledb_array_schema", c.c_int(0 if s.dense else 1))
        for what, value in (
            ("domain", domain),
            ("capacity", c.c_uint64(s.capacity)),
            ("tile_order", c.c_int(s.tile_order)),
            ("cell_order", c.c_int(s.cell_order)),
        ):
            self.call(f"tiledb_array_schema_set_{what}", schema, value)
        for what, pipeline in (("coords", s.coords), ("offsets", s.offsets)):
            if pipeline:
                of = self.filters(pipeline)
                self.call(f"tiledb_array_schema_set_{what}_filter_list", schema, of)
        for a in s.attrs:
            attr = self.new("tiledb_attribute", a.name.encode(), c.c_int(a.type))
            if a.type != ANY:
                self.call("tiledb_attribute_set_cell_val_num", attr, c.c_uint32(a.values))
            self.call("tiledb_attribute_set_filter_list", attr, self.filters(a.pipeline))
            self.call("tiledb_array_schema_add_attribute", schema, attr)
        self.call("tiledb_array_schema_check", schema)
        if s.key:
            self.call("tiledb_array_create_with_key", uri, schema, AES_256_GCM, s.key, len(s.key))
        else:
            self.call("tiledb_array_create", uri, schema)

    def write(self, uri: bytes, s: Schema, w: Write) -> None:
        """Makes a fragment."""
        array = self.new("tiledb_array", uri)
        if s.key:
            self.call("tiledb_array_open_with_key", array, WRITE, AES_256_GCM, s.key, len(s.key))
        else:
            self.call("tiledb_array_open", array, WRITE)
        query = self.new("tiledb_query", array, WRITE)
        self.call("tiledb_query_set_layout", query, w.layout)
        if w.box:
            box = b"".join(encode(s.dim_type, v) for i in w.box for v in i)
            self.call("tiledb_query_set_subarray", query, box)
        keep = []

        def buffer(b: bytes) -> tuple[Any, Any]:
            keep.append((c.create_string_buffer(b, max(1, len(b))), c.c_uint64(len(b))))
            return keep[-1][0], c.byref(keep[-1][1])

        for i, a in enumerate(s.attrs):
            cells, name = [row[i] for row in w.rows], a.name.encode()
            data = buffer(b"".join(cells))
            if a.values == VAR:
                at = buffer(offsets(cells))
                self.call("tiledb_query_set_buffer_var", query, name, *at, *data)
            else:
                self.call("tiledb_query_set_buffer", query, name, *data)
        if not w.box:
            coords = buffer(b"".join(encode(s.dim_type, v) for p in w.cells for v in p))
            self.call("tiledb_query_set_buffer", query, b"__coords", *coords)
        for step in ("tiledb_query_submit", "tiledb_query_finalize"):
            self.call(step, query)
        self.call("tiledb_array_close", array)

    def consolidate(self, uri: bytes, key: bytes | None) -> None:
        """Makes one fragment of several."""
        if key:
            what = (uri, AES_256_GCM, key, len(key), self.config)
            self.call("tiledb_array_consolidate_with_key", *what)
        else:
            self.call("tiledb_array_consolidate", uri, self.config)


@dataclass
class Attr:
    """An attribute. Its values are of one style, which what is written to it keeps to."""

    name: str
    type: int
    values: int
    pipeline: Pipeline

    def fill(self) -> bytes:
        """Returns the cell that was not written."""
        t, n = self.type, SIZES[self.type]
        if t in (FLOAT32, FLOAT64):
            value = struct.pack("<f", math.nan) if t == FLOAT32 else struct.pack("<d", math.nan)
        elif t == CHAR:
            value = b"\x80"
        elif UINT64 < t < DATETIME:
            value = b"\0" * n
        else:
            value = b"\xff" * n if FORMATS[t].isupper() else b"\0" * (n - 1) + b"\x80"
        return value * (1 if self.values == VAR else self.values)


@dataclass
class Schema:
    """A schema. dims are name, lowest and highest value, and extent."""

    dense: bool
    dim_type: int
    tile_order: int
    cell_order: int
    capacity: int
    dims: list[tuple[str, Any, Any, Any]]
    attrs: list[Attr]
    coords: Pipeline | None
    offsets: Pipeline | None
    key: bytes | None


@dataclass
class Write:
    """The cells of a fragment, with the values of each attribute; box is None for a sparse one."""

    layout: int
    cells: list[Cell]
    box: list[tuple[Any, Any]] | None = None
    rows: list[list[bytes]] = field(default_factory=list)

    def __str__(self) -> str:
        """Says which it is, without the cells."""
        return f"dense {self.layout} {self.box}" if self.box else f"sparse {len(self.cells)}"


def encode(t: int, value: Any) -> bytes:
    """Gives the bytes of a value."""
    return struct.pack(f"<{FORMATS[t]}", value)


def stored(t: int, value: float) -> float:
    """Gives the number that a float's bytes are."""
    return float(struct.unpack(f"<{FORMATS[t]}", encode(t, value))[0])


def limits(t: int) -> tuple[int, int]:
    """Gives the lowest and the highest value of a type of integers."""
    bits = 8 * SIZES[t]
    if FORMATS[t].isupper():
        return 0, 2**bits - 1
    return -(2 ** (bits - 1)), 2 ** (bits - 1) - 1


def offsets(cells: list[bytes]) -> bytes:
    """Gives where each cell begins."""
    starts = list(itertools.accumulate(map(len, cells), initial=0))[:-1]
    return struct.pack(f"<{len(starts)}Q", *starts)


def sha(b: bytes) -> str:
    """Hashes bytes."""
    return hashlib.sha256(b).hexdigest()


class Draw:
    """Random arrays. Those that are `large` have tiles of several chunks, and capacities for it."""

    def __init__(self, seed: int):
        """Starts from a seed."""
        self.r = random.Random(seed)
        self.large = self.r.random() < 0.15

    def pipeline(self, t: int, of: str) -> Pipeline:
        """Draws filters. `of` is an attribute, coordinates or offsets."""
        r, filters = self.r, list[tuple[int, "int | None"]]()
        for _ in range(r.choice([0, 1, 1, 1, 2, 2, 3, 4])):
            f = r.choice([0, 1, 2, 3, 4, 5, 6, 7, 7, 8, 8, 9, 9, 10])
            if r.random() > 0.8:
                f = r.choice([BIT_WIDTH, BIT_SHUFFLE, 9])
            if f == DOUBLE_DELTA and t in (FLOAT32, FLOAT64):
                f = ZSTD
            if f in (RLE, DOUBLE_DELTA) and any(g != NONE for g, _ in filters):
                f = r.choice([1, 2, 3, 5, 8, 9])
            if f == POSITIVE_DELTA and (of == "coords" or of == "attr" and r.random() < 0.7):
                f = BIT_SHUFFLE  # it takes ascending values only
            option = None
            if 1 <= f <= DOUBLE_DELTA:
                option = r.choice([-1, 1, 5, None])
            elif f in (BIT_WIDTH, POSITIVE_DELTA):
                small, big = [None, 8, 16, 24, 64, 100, 256], [None, 24, 256, 1000, 4096, 100000]
                option = r.choice(big if self.large else small)
            filters.append((f, option))
        small, big = (
            [1, 7, 16, 40, 64, 100, 333, 1000, 65536, None],
            [1000, 10000, 65536, None, 1 << 20],
        )
        return r.choice(big if self.large else small), filters

    def extent(self, t: int, dims: int, dense: bool) -> tuple[Any, Any, Any]:
        """Draws a domain and its tile extent: at a type's limits, around zero, or above it."""
        r = self.r
        if t in (FLOAT32, FLOAT64):
            lo, n = r.choice([0, -10, -3.5, 1e6, 0.1]), r.choice([1, 2.5, 100, 7])
            return stored(t, lo), stored(t, lo + n), stored(t, r.choice([n, n / 2, n / 3, n / 10]))
        least, most = limits(t)
        small, big = {1: 60, 2: 14, 3: 8, 4: 5}, {1: 20000, 2: 140, 3: 28, 4: 11}
        if dense:
            n = r.randrange(1, (big if self.large else small)[dims])
        else:
            n = r.choice([1, 5, 20, 100, 10**6, 2**40])
        n = max(1, min(n, most - least - 2))
        e = min(n if r.random() < 0.3 else r.randrange(1, n + 1), most)
        where = r.random()
        room = (
            math.ceil(n / e) * e + e
        )  # beyond the domain's last tile the library's loops need one
        if room > most - least:
            e, room = 1, n + 1
        if where < 0.25:
            lo = least
        elif where < 0.4:
            lo = most - room + 1
        elif where < 0.7:
            lo = -r.randrange(1, 30)
        else:
            lo = r.randrange(100)
        lo = max(least, min(lo, most - room + 1))
        if lo + (n - 1) // e * e < 0:  # the library takes no part of a tile below zero
            n = n // e * e
        return lo, lo + n - 1, e

    def schema(self) -> Schema:
        """Draws a schema."""
        r = self.r
        dense = r.random() < 0.55
        t = r.choice(DIM_TYPES + ([] if dense else [FLOAT32, FLOAT64] * 2))
        n = r.choice([1, 2, 2, 3, 3, 4] if dense else [1, 2, 2, 3, 5])
        anonymous = r.random() < 0.2
        dims = [("" if anonymous else f"d{d}", *self.extent(t, n, dense)) for d in range(n)]
        attrs = []
        for i in range(r.choice([1, 1, 2, 3])):
            of = r.randrange(len(FORMATS))
            values = VAR if of == ANY else r.choice([1, 1, 1, 2, 3, 5, VAR, VAR])
            name = "" if i == 0 and r.random() < 0.15 else f"a{i}"
            attrs.append(Attr(name, of, values, self.pipeline(of, "attr")))
        return Schema(
            dense=dense,
            dim_type=t,
            tile_order=r.randrange(2),
            cell_order=r.randrange(2),
            capacity=r.choice([10, 100, 1000, 10000] if self.large else [1, 2, 3, 7, 10, 64, 1000]),
            dims=dims,
            attrs=attrs,
            coords=self.pipeline(t, "coords") if r.random() < 0.5 else None,
            offsets=self.pipeline(UINT64, "offsets") if r.random() < 0.5 else None,
            key=KEY if r.random() < 0.15 else None,
        )

    def value(self, t: int, style: str, k: int) -> bytes:
        """Draws a value, the k-th of its attribute in this write."""
        n, r = SIZES[t], self.r
        if style == "any":
            return r.randbytes(n)
        if style == "ascending":
            if t in (FLOAT32, FLOAT64):
                return encode(t, k / 3)
            return ((k // 3 + 3) % (1 << (8 * n - 1))).to_bytes(n, "little")
        if style == "runs":
            return bytes([k // 7 % 3] * n)
        number = {"constant": 5, "small": r.randrange(100), "signed": r.randrange(-60, 60)}[style]
        return number.to_bytes(n, "little", signed=number < 0)

    def fill(self, s: Schema, w: Write) -> None:
        """Draws the values of a write."""
        w.rows = [[] for _ in w.cells]
        for a in s.attrs:
            style = self.r.choice(["any", "constant", "ascending", "small", "runs", "signed"])
            if any(f == POSITIVE_DELTA for f, _ in a.pipeline[1]):
                style = self.r.choice(["constant", "ascending"])
            k = 0
            for row in w.rows:
                n = a.values
                if n == VAR:
                    n = self.r.choice([1, 1, 2, 3, 9, 40 if self.r.random() < 0.1 else 1])
                row.append(b"".join(self.value(a.type, style, k + j) for j in range(n)))
                k += n

    def box(self, s: Schema) -> list[tuple[Any, Any]]:
        """Draws a box."""
        box = []
        for _, lo, hi, _ in s.dims:
            if s.dim_type in (FLOAT32, FLOAT64):
                ends = [stored(s.dim_type, lo + (hi - lo) * self.r.random()) for _ in range(2)]
                a, b = (min(max(lo, v), hi) for v in sorted(ends))
            else:
                a = self.r.randint(lo, hi)
                b = self.r.randint(a, hi)
            box.append((a, b))
        return box

    def dense_write(self, s: Schema) -> Write:
        """Draws a dense write: a box, in row-major, column-major or global order."""
        layout, box = self.r.choice([ROW_MAJOR, COL_MAJOR, GLOBAL]), self.box(s)
        domain = [(lo, hi) for _, lo, hi, _ in s.dims]
        tiles = [(hi - lo + 1) // e for _, lo, hi, e in s.dims]
        if layout == GLOBAL and all(tiles):  # whole tiles
            box = []
            for (_, lo, _, e), n in zip(s.dims, tiles, strict=True):
                first = self.r.randrange(n)
                box.append((lo + first * e, lo + (self.r.randrange(first, n) + 1) * e - 1))
        else:
            layout = layout % GLOBAL
            box = [d if self.r.random() < 0.4 else b for d, b in zip(domain, box, strict=True)]

        def in_global_order(p: Cell) -> Any:
            tile = tuple((v - lo) // e for v, (_, lo, _, e) in zip(p, s.dims, strict=True))
            return tile[:: -1 if s.tile_order else 1], p[:: -1 if s.cell_order else 1]

        cells = list(cells_of(box))
        if layout != ROW_MAJOR:
            cells.sort(key=in_global_order if layout == GLOBAL else lambda p: p[::-1])
        return Write(layout, cells, box)

    def sparse_write(self, s: Schema) -> Write:
        """Draws a sparse write: cells anywhere, near the domain's lower corner, and at its ends."""
        r, t = self.r, s.dim_type

        def coordinate(lo: Any, hi: Any) -> Any:
            if t in (FLOAT32, FLOAT64):
                v = r.choice([lo, hi, lo + (hi - lo) * r.random(), round(lo)])
                return stored(t, min(max(lo, v), hi))
            return r.choice([lo, hi, r.randint(lo, hi), r.randint(lo, min(hi, lo + 4))])

        n = r.choice([100, 1000, 4000] if self.large else [1, 3, 10, 50])
        drawn = (tuple(coordinate(lo, hi) for _, lo, hi, _ in s.dims) for _ in range(n))
        cells = list(dict.fromkeys(drawn))
        r.shuffle(cells)
        return Write(UNORDERED, cells)


def cells_of(box: list[tuple[Any, Any]]) -> Any:
    """Gives the cells of a box of integers, row-major."""
    return itertools.product(*[range(lo, hi + 1) for lo, hi in box])


def wanted(path: str, s: Schema, model: dict[Cell, list[bytes]], box: list[Any]) -> dict[str, Any]:
    """Gives a read of a box, and what was written there."""
    t = s.dim_type
    if s.dense:
        cells = list(cells_of(box))
    else:
        inside = (p for p in model if all(a <= v <= b for v, (a, b) in zip(p, box, strict=True)))
        cells = sorted(inside)
    read: dict[str, Any] = {
        "path": path,
        "key": s.key.decode() if s.key else None,
        "dense": s.dense,
        "box": [[encode(t, a).hex(), encode(t, b).hex()] for a, b in box],
        "dims": [[d[0] or f"__dim_{i}", SIZES[t]] for i, d in enumerate(s.dims)],
        "cells": len(cells),
        "attrs": [],
    }
    coords = "" if s.dense else sha(b"".join(encode(t, v) for p in cells for v in p))
    text = ",".join(f"{a!r}..{b!r}" for a, b in box)
    out: dict[str, Any] = {"read": read, "text": text, "coords": coords, "attrs": {}}
    for i, a in enumerate(s.attrs):
        values = [model[p][i] if p in model else a.fill() for p in cells]
        data, name = b"".join(values), a.name or "__attr"
        read["attrs"].append({"name": name, "var": a.values == VAR, "bytes": len(data)})
        out["attrs"][name] = {"data": sha(data), "offsets": ""}
        if a.values == VAR:
            out["attrs"][name]["offsets"] = sha(offsets(values))
    return out


def skipped(s: Schema) -> str:
    """Names the fault of 1.6.3 that arrays of a schema meet, if there is one."""
    coords = [f for f, _ in s.coords[1]] if s.coords else []
    if len(s.dims) > 1 and RLE in coords:
        return "RLE of coordinates in several dimensions, which 1.6.3 writes without runs"
    if any(f == BIT_WIDTH and loses(s, any(coords[:i])) for i, f in enumerate(coords)):
        return "bit-width reduction of coordinates that span more than their type's highest value"
    return ""


def loses(s: Schema, filtered: bool) -> bool:
    """Reports whether 1.6.3 may keep too few bits of coordinates: TestLostCoordinates shows it."""
    if FORMATS[s.dim_type] not in "hiq":  # single bytes pass, and what has no sign is narrowed well
        return False
    return filtered or wide(s)


def wide(s: Schema) -> bool:
    """Reports whether a domain is wider than its type's highest value."""
    if s.dim_type in (FLOAT32, FLOAT64):
        return False
    most = limits(s.dim_type)[1]
    return any(hi - lo > most for _, lo, hi, _ in s.dims)


def narrows_twice(s: Schema) -> bool:
    """Reports whether a pipeline has bit-width reduction more than once."""
    pipelines = [s.coords, s.offsets, *(a.pipeline for a in s.attrs)]
    return any(p and [f for f, _ in p[1]].count(BIT_WIDTH) > 1 for p in pipelines)


def disputed(s: Schema) -> str:
    """Says why libtiledb of today may read another array than was written, or nothing."""
    if s.dim_type >= DATETIME and any(lo < 0 <= hi for _, lo, hi, _ in s.dims):
        return (
            "1.6.3 bounds datetimes as unsigned numbers, and so loses cells on both sides of 1970"
        )
    if wide(s):
        return "boxes wider than their type's highest value are halved wrongly, and out of order"
    return ""


def make(library: str, path: str, seed: int, say: Callable[[str], object]) -> dict[str, Any]:
    """Makes an array, and says what was written to it. `say` is told what is done next."""
    draw = Draw(seed)
    s = draw.schema()
    if fault := skipped(s):
        return {"skipped": fault}
    settings = {"sm.consolidation.amplification": "10"}
    if draw.r.random() < 0.5:  # two at a time
        two = {"step_max_frags": "2", "step_min_frags": "2", "steps": "1"}
        settings |= {f"sm.consolidation.{k}": v for k, v in two.items()}
    lib, uri = Library(library, settings), path.encode()
    say("create")
    lib.create(uri, s)
    model: dict[Cell, list[bytes]] = {}
    done: list[str] = []
    sparse = False
    for n in range(draw.r.choice([0, 1, 1, 2, 3, 4])):
        time.sleep(0.003)  # the names of fragments are their times, in milliseconds
        dense = s.dense and draw.r.random() < (0.25 if sparse else 0.8)
        w = draw.dense_write(s) if dense else draw.sparse_write(s)
        draw.fill(s, w)
        say(f"write {w}")
        try:
            lib.write(uri, s, w)
        except TileDBError as e:
            done.append(f"refused {w}: {e}")
            continue
        done.append(str(w))
        sparse |= not dense
        model |= dict(zip(w.cells, w.rows, strict=True))
        if n and draw.r.random() < 0.25:
            time.sleep(0.003)
            say("consolidate")
            if s.dense and wide(s):
                reason = "consolidation in a domain wider than its type's highest value"
                return {"skipped": reason + ", which 1.6.3 fills with what its memory holds"}
            try:
                lib.consolidate(uri, s.key)
                done.append("consolidate")
            except TileDBError as e:
                done.append(f"consolidate: {e}")
    boxes = [[(lo, hi) for _, lo, hi, _ in s.dims], draw.box(s), draw.box(s)]
    return {
        "what": f"{s}; {'; '.join(done)}",
        "disputed": disputed(s),
        "reads": [wanted(path, s, model, box) for box in boxes],
    }


def apart(library: str, path: str, seed: int) -> dict[str, Any]:
    """Makes an array in a process of its own."""
    answer, step = Path(f"{path}.json"), Path(f"{path}.step")
    child = os.fork()
    if child == 0:
        try:
            made = make(library, path, seed, step.write_text)
        except TileDBError as e:
            made = {"error": str(e)}
        answer.write_text(json.dumps(made))
        os._exit(0)
    end = time.monotonic() + LONGEST
    while (ended := os.waitpid(child, os.WNOHANG))[0] == 0:
        if time.monotonic() > end:
            os.kill(child, signal.SIGKILL)
            ended = os.waitpid(child, 0)
            break
        time.sleep(0.002)
    if ended[1] == signal.SIGFPE and narrows_twice(Draw(seed).schema()):
        return {
            "skipped": "bit-width reduction twice in a pipeline, where 1.6.3 may divide by zero"
        }
    if ended[1] != 0:
        return {"error": f"signal {ended[1]} in {step.read_text() if step.exists() else 'start'}"}
    out: dict[str, Any] = json.loads(answer.read_text())
    return out


def main() -> None:
    """Makes arrays."""
    library, folder = sys.argv[1:3]
    seed, count, seconds = map(int, sys.argv[3:])
    end = time.monotonic() + seconds
    for n in range(seed, seed + count):
        print(json.dumps({"seed": n} | apart(library, f"{folder}/{n}", n)), flush=True)
        if time.monotonic() > end:
            break


if __name__ == "__main__":
    main()
