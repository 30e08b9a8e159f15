"""Writes random TileDB arrays with libtiledb 2, and reads them, through its C interface.

    later.py write LIBRARY DIRECTORY SEED COUNT    writes arrays and prints a line of JSON for each
    later.py read LIBRARY                          makes the reads of such lines (standard input)

LIBRARY is a shared library of libtiledb from 2.0 on, or "package" for that of the PyPI package
tiledb. A line has the path of an array and the reads that are made of it. `read` prints for each read
the number of its cells and a SHA-256 over all of them: for every cell the coordinates (of sparse
arrays) and the attributes, each preceded by its length; a cell without a value has the length -1.
Dense arrays are read in row-major order, the cells of sparse ones are sorted.
"""

import ctypes as c
import hashlib
import importlib.util
import json
import os
import random
import struct
import sys
from pathlib import Path

VAR = 0xFFFFFFFF
READ, WRITE = 0, 1
ROW, COL, GLOBAL, UNORDERED, HILBERT = range(5)
DENSE, SPARSE = 0, 1
INT32, INT64, FLOAT32, FLOAT64, CHAR = 0, 1, 2, 3, 4
INT8, UINT8, INT16, UINT16, UINT32, UINT64, ASCII, UTF8 = 5, 6, 7, 8, 9, 10, 11, 12
DATES, TIMES = list(range(18, 31)), list(range(31, 40))
BLOB, BOOL = 40, 41
FORMATS = (
    {
        INT8: "b",
        UINT8: "B",
        INT16: "h",
        UINT16: "H",
        INT32: "i",
        UINT32: "I",
        INT64: "q",
        UINT64: "Q",
        FLOAT32: "f",
        FLOAT64: "d",
    }
    | dict.fromkeys(DATES + TIMES, "q")
    | dict.fromkeys([CHAR, ASCII, UTF8, BLOB, BOOL], "B")
)
INTEGERS = [INT8, UINT8, INT16, UINT16, INT32, UINT32, INT64, UINT64]


def library(name):
    """Loads a library of libtiledb."""
    if name == "package":
        package = Path(importlib.util.find_spec("tiledb").submodule_search_locations[0])
        found = [*package.parent.glob("tiledb.libs/libtiledb*"), *package.rglob("libtiledb.so*")]
        name = str(found[0])
    return c.CDLL(name)


class Library:
    """A context of libtiledb."""

    def __init__(self, name, key=None):
        """Loads the library and makes a context."""
        self.lib = library(name)
        self.refs = []
        version = [c.c_int() for _ in range(3)]
        self.lib.tiledb_version(*map(c.byref, version))
        self.version = tuple(v.value for v in version)
        self.ptr = self.context({})

    def context(self, settings):
        """Makes a context with a configuration."""
        config, error, ptr = c.c_void_p(), c.c_void_p(), c.c_void_p()
        self.lib.tiledb_config_alloc(c.byref(config), c.byref(error))
        settings = {"sm.compute_concurrency_level": "1", "sm.io_concurrency_level": "1"} | settings
        for name, value in settings.items():
            self.lib.tiledb_config_set(config, name.encode(), value.encode(), c.byref(error))
        self.lib.tiledb_ctx_alloc(config, c.byref(ptr))
        return ptr

    def has(self, name):
        """Tells whether the library has a function."""
        return hasattr(self.lib, name)

    def __call__(self, name, *args, ctx=None):
        """Calls a function, and raises what the library says is wrong."""
        ctx = ctx or self.ptr
        if getattr(self.lib, name)(ctx, *args) == 0:
            return
        error, text = c.c_void_p(), c.c_char_p()
        self.lib.tiledb_ctx_get_last_error(ctx, c.byref(error))
        self.lib.tiledb_error_message(error, c.byref(text))
        raise RuntimeError(f"{name}: {text.value.decode(errors='replace')}")

    def new(self, name, *args):
        """Calls a function whose last argument is a new object."""
        p = c.c_void_p()
        self(name, *args, c.byref(p))
        return p


def pack(t, values):
    """Makes bytes of values of a datatype."""
    return struct.pack(f"<{len(values)}{FORMATS[t]}", *values)


def size(t):
    """Returns the bytes of a value."""
    return struct.calcsize("<" + FORMATS[t])


# Filters by number: what they are for.
NOOP, GZIP, ZSTD, LZ4, RLE, BZIP2, DOUBLE_DELTA, BIT_WIDTH, BIT_SHUFFLE, BYTE_SHUFFLE = range(10)
POSITIVE_DELTA, _, MD5, SHA256, DICTIONARY, SCALE, XOR, _, WEBP, DELTA = range(10, 20)


class Maker:
    """Makes one random array."""

    def __init__(self, lib, path, seed):
        """Draws nothing yet."""
        self.lib, self.path, self.r = lib, path, random.Random(seed)
        self.clock = 0

    def filters(self, t, values=1, coords=False, offsets=False):
        """Draws a filter list for a datatype, or None for none."""
        lib, r, v = self.lib, self.r, self.lib.version
        text = t in (ASCII, UTF8) and values == VAR
        number = t in INTEGERS and values == 1
        choice = [GZIP, ZSTD, LZ4, BZIP2, BIT_SHUFFLE, BYTE_SHUFFLE, MD5, SHA256]
        first = []
        if text:
            first = [RLE, RLE] if v >= (2, 8) else []
            first += [DICTIONARY] if v >= (2, 9) else []
        elif t not in (CHAR, ASCII, UTF8):
            choice += [RLE]
        if number:
            choice += [DOUBLE_DELTA, BIT_WIDTH]
            choice += [DELTA] if v >= (2, 16) else []
        if t in DATES + TIMES and values == 1 and v >= (2, 17):
            choice += [BIT_WIDTH, DOUBLE_DELTA]
        if t in (*INTEGERS, FLOAT32, FLOAT64) and v >= (2, 11):
            choice += [XOR]
        if t in (FLOAT32, FLOAT64) and not coords and v >= (2, 11):
            first = [SCALE]
        kinds = [r.choice(choice) for _ in range(r.choice([0, 0, 1, 1, 2, 3]))]
        if first and r.random() < 0.5:
            kinds = [r.choice(first), *kinds]
        if SCALE in kinds or XOR in kinds:
            kinds = kinds[:1] + [k for k in kinds[1:] if k not in (SCALE, RLE)]
        if offsets:
            kinds = [k for k in kinds if k not in (XOR,)]
        flist = lib.new("tiledb_filter_list_alloc")
        for k in kinds:
            f = lib.new("tiledb_filter_alloc", c.c_int(k))
            if k in (GZIP, ZSTD, BZIP2):
                lib("tiledb_filter_set_option", f, c.c_int(0), c.byref(c.c_int32(r.randint(1, 6))))
            if k == BIT_WIDTH:
                lib(
                    "tiledb_filter_set_option",
                    f,
                    c.c_int(1),
                    c.byref(c.c_uint32(r.choice([32, 64, 256]))),
                )
            if k == SCALE:
                lib(
                    "tiledb_filter_set_option",
                    f,
                    c.c_int(3),
                    c.byref(c.c_uint64(r.choice([2, 4, 8]))),
                )
                lib(
                    "tiledb_filter_set_option",
                    f,
                    c.c_int(4),
                    c.byref(c.c_double(r.choice([0.5, 0.1, 3]))),
                )
                lib(
                    "tiledb_filter_set_option",
                    f,
                    c.c_int(5),
                    c.byref(c.c_double(r.choice([0, 1.7, -20]))),
                )
            if k in (DELTA, DOUBLE_DELTA) and v >= (2, 17) and r.random() < 0.3:
                as_type = r.choice([x for x in INTEGERS if size(t) % size(x) == 0])
                lib("tiledb_filter_set_option", f, c.c_int(9), c.byref(c.c_uint8(as_type)))
            lib("tiledb_filter_list_add_filter", flist, f)
        if r.random() < 0.5:
            lib(
                "tiledb_filter_list_set_max_chunk_size",
                flist,
                c.c_uint32(r.choice([64, 200, 1000])),
            )
        return flist

    def interval(self, t, dense):
        """Draws a domain and an extent of a dimension."""
        r = self.r
        if t in (FLOAT32, FLOAT64):
            lo = r.randint(-50, 50)
            hi = lo + r.randint(1, 100)
            return lo, hi, r.randint(1, hi - lo)
        low = 0 if t in (UINT8, UINT16, UINT32, UINT64) else -100
        n = r.randint(1, 14 if dense else 100)
        lo = r.randint(low, 27)
        if r.random() < 0.05 and t == INT64:
            lo += 1 << 60
        return lo, lo + n - 1, r.randint(1, n)

    def dimensions(self):
        """Draws the dimensions: name, type, lowest and highest coordinate, extent."""
        r, dense = self.r, self.dense
        types = INTEGERS + [DATES[3], DATES[9]] + ([] if dense else [FLOAT32, FLOAT64])
        if self.lib.version >= (2, 3) and not dense:
            types += [TIMES[2]]
        if not dense:
            types += [ASCII] * 4
        same = r.choice(types)
        for d in range(r.choice([1, 2, 2, 3])):
            t = same if dense or r.random() < 0.5 else r.choice(types)
            bounds = (None, None, None) if t == ASCII else self.interval(t, dense)
            yield (f"d{d}", t, *bounds)

    def attribute(self, name):
        """Draws an attribute: name, type, values in a cell, whether it is nullable, fill value."""
        r, v = self.r, self.lib.version
        types = INTEGERS * 2 + [FLOAT32, FLOAT64, CHAR, ASCII, UTF8, ASCII, *DATES[:11:5]]
        types += [TIMES[1], BLOB] if v >= (2, 3) else []
        types += [BOOL] if v >= (2, 10) else []
        t = r.choice(types)
        values = r.choice([1, 1, 1, 2, 3, VAR, VAR])
        if t in (ASCII, UTF8) and r.random() < 0.8:
            values = VAR
        nullable = v >= (2, 2) and r.random() < 0.3
        fill = None
        if v >= (2, 1) and r.random() < 0.3:
            n = r.randint(1, 3) if values == VAR else values
            fill = self.value(t, n)
        return name, t, values, nullable, fill

    def value(self, t, n):
        """Draws n values of a datatype."""
        r = self.r
        if t in (FLOAT32, FLOAT64):
            return pack(t, [r.randint(-4000, 4000) / 8 for _ in range(n)])
        if t in (ASCII, UTF8, CHAR):
            return bytes(r.choice(b"abcdefgh" if n < 3 else b"ab") for _ in range(n))
        if t == BOOL:
            return bytes(r.randint(0, 1) for _ in range(n))
        bits = 8 * size(t)
        low = 0 if t in (UINT8, UINT16, UINT32, UINT64, BLOB) else -(1 << bits - 1)
        if r.random() < 0.05:
            return pack(t, [r.randint(low, low + (1 << bits) - 1) for _ in range(n)])
        return pack(t, [r.randint(max(low, -60), 60) for _ in range(n)])

    def build_attribute(self, a):
        """Makes the library's attribute."""
        lib = self.lib
        name, t, values, nullable, fill = a
        p = lib.new("tiledb_attribute_alloc", name.encode(), c.c_int(t))
        lib("tiledb_attribute_set_cell_val_num", p, c.c_uint32(values))
        lib("tiledb_attribute_set_filter_list", p, self.filters(t, values))
        if nullable:
            lib("tiledb_attribute_set_nullable", p, c.c_uint8(1))
        if fill and nullable:
            valid = c.c_uint8(self.r.randint(0, 1))
            lib("tiledb_attribute_set_fill_value_nullable", p, fill, c.c_uint64(len(fill)), valid)
        elif fill:
            lib("tiledb_attribute_set_fill_value", p, fill, c.c_uint64(len(fill)))
        return p

    def create(self):
        """Creates the array."""
        lib, r, v = self.lib, self.r, self.lib.version
        self.dense = r.random() < 0.45
        self.dims = list(self.dimensions())
        self.attrs = [
            self.attribute(f"a{i}" if r.random() < 0.8 else f"a {i}#")
            for i in range(r.randint(1, 4))
        ]
        if len(self.attrs) == 1 and r.random() < 0.3:
            self.attrs = [("", *self.attrs[0][1:])]
        self.dups = not self.dense and r.random() < 0.3
        s = lib.new("tiledb_array_schema_alloc", c.c_int(DENSE if self.dense else SPARSE))
        domain = lib.new("tiledb_domain_alloc")
        for name, t, lo, hi, extent in self.dims:
            bounds = None if lo is None else pack(t, [lo, hi])
            tile = None if lo is None else pack(t, [extent])
            d = lib.new("tiledb_dimension_alloc", name.encode(), c.c_int(t), bounds, tile)
            if r.random() < 0.5:
                lib(
                    "tiledb_dimension_set_filter_list",
                    d,
                    self.filters(t, VAR if lo is None else 1, coords=True),
                )
            lib("tiledb_domain_add_dimension", domain, d)
        lib("tiledb_array_schema_set_domain", s, domain)
        for a in self.attrs:
            lib("tiledb_array_schema_add_attribute", s, self.build_attribute(a))
        self.enumeration(s)
        orders = [ROW, COL] + ([HILBERT] if not self.dense and v >= (2, 2) else [])
        order = r.choice(orders)
        lib("tiledb_array_schema_set_cell_order", s, c.c_int(order))
        lib("tiledb_array_schema_set_tile_order", s, c.c_int(r.choice([ROW, COL])))
        if not self.dense:
            lib("tiledb_array_schema_set_capacity", s, c.c_uint64(r.choice([1, 2, 7, 20, 1000])))
            lib("tiledb_array_schema_set_allows_dups", s, c.c_int(int(self.dups)))
        if r.random() < 0.5:
            lib("tiledb_array_schema_set_coords_filter_list", s, self.filters(CHAR, coords=True))
        if r.random() < 0.5:
            lib(
                "tiledb_array_schema_set_offsets_filter_list", s, self.filters(UINT64, offsets=True)
            )
        if lib.has("tiledb_array_schema_set_validity_filter_list") and r.random() < 0.5:
            lib("tiledb_array_schema_set_validity_filter_list", s, self.filters(UINT8))
        lib("tiledb_array_schema_check", s)
        lib("tiledb_array_create", self.path.encode(), s)
        # The first schema gets a time before those of writes and of changes to it.
        for f in Path(self.path, "__schema").glob("__*_*_*"):
            f.rename(f.with_name("__1_1_" + f.name.split("_", 4)[-1]))

    def enumeration(self, schema):
        """Gives integer attributes an enumeration, which changes nothing about their cells."""
        lib = self.lib
        self.enums = set()
        if lib.version < (2, 17):
            return
        for i, (name, t, values, *_) in enumerate(self.attrs):
            if t in INTEGERS and values == 1 and self.r.random() < 0.15:
                text, offs = b"onetwothree", struct.pack("<3Q", 0, 3, 6)
                e = lib.new(
                    "tiledb_enumeration_alloc",
                    f"e{i}".encode(),
                    c.c_int(ASCII),
                    c.c_uint32(VAR),
                    c.c_int(0),
                    text,
                    c.c_uint64(len(text)),
                    offs,
                    c.c_uint64(len(offs)),
                )
                lib("tiledb_array_schema_add_enumeration", schema, e)
                self.enums.add(name)
                a = c.c_void_p()
                lib(
                    "tiledb_array_schema_get_attribute_from_name", schema, name.encode(), c.byref(a)
                )

    def open(self, kind):
        """Opens the array at the next time."""
        lib = self.lib
        self.clock += 10
        array = lib.new("tiledb_array_alloc", self.path.encode())
        if lib.has("tiledb_array_set_open_timestamp_end"):
            lib("tiledb_array_set_open_timestamp_end", array, c.c_uint64(self.clock))
            lib("tiledb_array_open", array, c.c_int(kind))
        else:
            lib("tiledb_array_open_at", array, c.c_int(kind), c.c_uint64(self.clock))
        return array

    def buffers(self, query, name, t, values, cells, nulls=None):
        """Gives a query the cells of an attribute or a dimension. The library keeps the pointers."""
        lib = self.lib
        data = b"".join(cells)
        keep = [c.create_string_buffer(data or b"\0", max(len(data), 1)), c.c_uint64(len(data))]
        n = name.encode()
        offs = valid = None
        if values == VAR:
            at, list_ = 0, []
            for x in cells:
                list_.append(at)
                at += len(x)
            offs = (c.c_uint64 * len(list_))(*list_)
            keep += [offs, c.c_uint64(8 * len(list_))]
        if nulls is not None:
            valid = c.create_string_buffer(bytes(nulls), len(nulls))
            keep += [valid, c.c_uint64(len(nulls))]
        self.lib.refs.append(keep)
        if lib.has("tiledb_query_set_data_buffer"):
            lib("tiledb_query_set_data_buffer", query, n, keep[0], c.byref(keep[1]))
            if offs:
                lib("tiledb_query_set_offsets_buffer", query, n, offs, c.byref(keep[3]))
            if valid:
                lib("tiledb_query_set_validity_buffer", query, n, valid, c.byref(keep[-1]))
        elif offs and valid:
            lib(
                "tiledb_query_set_buffer_var_nullable",
                query,
                n,
                offs,
                c.byref(keep[3]),
                keep[0],
                c.byref(keep[1]),
                valid,
                c.byref(keep[-1]),
            )
        elif valid:
            lib(
                "tiledb_query_set_buffer_nullable",
                query,
                n,
                keep[0],
                c.byref(keep[1]),
                valid,
                c.byref(keep[-1]),
            )
        elif offs:
            lib(
                "tiledb_query_set_buffer_var",
                query,
                n,
                offs,
                c.byref(keep[3]),
                keep[0],
                c.byref(keep[1]),
            )
        else:
            lib("tiledb_query_set_buffer", query, n, keep[0], c.byref(keep[1]))

    def write(self):
        """Writes a fragment."""
        lib, r = self.lib, self.r
        array = self.open(WRITE)
        query = lib.new("tiledb_query_alloc", array, c.c_int(WRITE))
        lib.refs = []
        if self.dense:
            n = self.dense_box(array, query)
        else:
            n = self.points(query)
        for name, t, values, nullable, _ in self.attrs:
            cells, last = [], None
            for _ in range(n):
                if last is None or r.random() < 0.6:
                    count = r.randint(0, 9) if values == VAR else values
                    last = self.value(t, count)
                    if name in self.enums:
                        last = pack(t, [r.randint(0, 2)])
                cells.append(last)
            nulls = [int(r.random() < 0.7) for _ in range(n)] if nullable else None
            self.buffers(query, name, t, values, cells, nulls)
        lib("tiledb_query_submit", query)
        lib("tiledb_query_finalize", query)
        lib("tiledb_array_close", array)

    def dense_box(self, array, query):
        """Chooses the box of a dense write, and returns its cells."""
        lib, r = self.lib, self.r
        n, flat = 1, b""
        box = []
        for _, t, lo, hi, _ in self.dims:
            a, b = sorted((r.randint(lo, hi), r.randint(lo, hi)))
            if r.random() < 0.3:
                a, b = lo, hi
            n *= b - a + 1
            flat += pack(t, [a, b])
            box.append((pack(t, [a]), pack(t, [b])))
        lib("tiledb_query_set_layout", query, c.c_int(r.choice([ROW, COL])))
        if lib.has("tiledb_subarray_alloc"):
            sub = lib.new("tiledb_subarray_alloc", array)
            for d, (a, b) in enumerate(box):
                lib("tiledb_subarray_add_range", sub, c.c_uint32(d), a, b, None)
            lib("tiledb_query_set_subarray_t", query, sub)
        else:
            keep = c.create_string_buffer(flat, len(flat))
            lib.refs.append(keep)
            lib("tiledb_query_set_subarray", query, keep)
        return n

    def points(self, query):
        """Gives a query the coordinates of a sparse write, and returns their number."""
        lib, r = self.lib, self.r
        n = r.choice([1, 3, 10, 60])
        cells, seen = [], set()
        for _ in range(n):
            one = tuple(self.coordinate(t, lo, hi) for _, t, lo, hi, _ in self.dims)
            if self.dups or one not in seen:
                cells.append(one)
            seen.add(one)
        lib("tiledb_query_set_layout", query, c.c_int(UNORDERED))
        for d, (name, t, *_) in enumerate(self.dims):
            self.buffers(query, name, t, VAR if t == ASCII else 1, [x[d] for x in cells])
        return len(cells)

    def coordinate(self, t, lo, hi):
        """Draws a coordinate."""
        r = self.r
        if t == ASCII:
            return bytes(r.choice(b"abc") for _ in range(r.choice([1, 1, 2, 3, 9, 12])))
        if t in (FLOAT32, FLOAT64):
            return pack(
                t, [r.choice([lo, hi, r.randint(lo, hi), lo + (hi - lo) * r.randint(0, 64) / 64])]
            )
        return pack(t, [r.randint(lo, hi)])

    def evolve(self):
        """Adds an attribute or drops one."""
        lib, r = self.lib, self.r
        self.clock += 10
        e = lib.new("tiledb_array_schema_evolution_alloc")
        if len(self.attrs) > 1 and r.random() < 0.4:
            a = r.choice(self.attrs)
            if a[0] in self.enums:
                return
            lib("tiledb_array_schema_evolution_drop_attribute", e, a[0].encode())
            self.attrs = [x for x in self.attrs if x is not a]
        else:
            a = self.attribute(f"n{self.clock}")
            lib("tiledb_array_schema_evolution_add_attribute", e, self.build_attribute(a))
            self.attrs = [*self.attrs, a]
        lib(
            "tiledb_array_schema_evolution_set_timestamp_range",
            e,
            c.c_uint64(self.clock),
            c.c_uint64(self.clock),
        )
        lib("tiledb_array_evolve", self.path.encode(), e)

    def consolidate(self, mode, vacuum):
        """Consolidates fragments, their metadata or commits, and vacuums."""
        lib = self.lib
        settings = {"sm.consolidation.mode": mode, "sm.vacuum.mode": mode}
        for verb in ["consolidate"] + ["vacuum"] * vacuum:
            config, error = c.c_void_p(), c.c_void_p()
            lib.lib.tiledb_config_alloc(c.byref(config), c.byref(error))
            for name, value in settings.items():
                lib.lib.tiledb_config_set(config, name.encode(), value.encode(), c.byref(error))
            lib(f"tiledb_array_{verb}", self.path.encode(), config)

    def delete(self):
        """Deletes the cells that a condition holds for."""
        lib, r = self.lib, self.r
        fixed = [a for a in self.attrs if a[1] in INTEGERS and a[2] == 1 and not a[0] in self.enums]
        if not fixed:
            return
        array = self.open(5)
        query = lib.new("tiledb_query_alloc", array, c.c_int(5))
        condition = lib.new("tiledb_query_condition_alloc")
        name, t, *_ = r.choice(fixed)
        value = pack(t, [r.randint(0, 60)])
        lib(
            "tiledb_query_condition_init",
            condition,
            name.encode(),
            value,
            c.c_uint64(len(value)),
            c.c_int(r.randint(0, 5)),
        )
        lib("tiledb_query_set_condition", query, condition)
        lib("tiledb_query_submit", query)
        lib("tiledb_query_finalize", query)
        lib("tiledb_array_close", array)

    def make(self, conditions):
        """Makes the array, and returns what is read of it."""
        lib, r, v = self.lib, self.r, self.lib.version
        self.create()
        deletes = conditions and not self.dense and v >= (2, 12) and r.random() < 0.3
        for _ in range(r.choice([0, 1, 1, 2, 3, 5])):
            self.write()
            if lib.has("tiledb_array_schema_evolution_set_timestamp_range") and r.random() < 0.12:
                self.evolve()
            if deletes and r.random() < 0.3:
                self.delete()
            if r.random() < 0.15:
                self.consolidate("fragments", r.random() < 0.5)
        if r.random() < 0.1:
            self.consolidate("fragment_meta", r.random() < 0.5)
        if v >= (2, 8) and r.random() < 0.2:
            self.consolidate("commits", r.random() < 0.5)
        if r.random() < 0.2:
            self.write()
        return self.reads()

    def reads(self):
        """Draws the reads: of the whole array, of a box, at a time."""
        r = self.r
        dims = [
            {"name": n, "type": t, "size": 0 if t == ASCII else size(t)} for n, t, *_ in self.dims
        ]
        attrs = [
            {"name": n, "var": v == VAR, "size": size(t) * (1 if v == VAR else v), "nullable": null}
            for n, t, v, null, _ in self.attrs
        ]
        out = []
        whole = [None if lo is None else (lo, hi) for _, _, lo, hi, _ in self.dims]
        for until in [0, 0, r.randint(5, self.clock + 5)]:
            box = whole
            if out and r.random() < 0.7:
                box = [b and tuple(sorted((r.randint(*b), r.randint(*b)))) for b in whole]
            bounds = [
                b and [pack(t, [x]).hex() for x in b] for b, (_, t, *_) in zip(box, self.dims)
            ]
            text = ",".join("..*" if b is None else f"{b[0]}..{b[1]}" for b in box)
            out.append(
                {
                    "path": self.path,
                    "dense": self.dense,
                    "dims": dims,
                    "attrs": attrs,
                    "box": bounds,
                    "text": text,
                    "until": until,
                }
            )
        return out


def write(name, directory, seed, count):
    """Writes arrays."""
    conditions = os.environ.get("LATER_CONDITIONS") == "1"
    lib = Library(name)
    made = tries = 0
    errors = {}
    while made < count and tries < 20 * count + 20:
        tries += 1
        m = Maker(lib, f"{directory}/{tries}", seed * 1_000_003 + tries)
        try:
            reads = m.make(conditions)
        except RuntimeError as e:  # a combination that this version refuses
            errors[str(e)[:110]] = errors.get(str(e)[:110], 0) + 1
            continue
        made += 1
        print(json.dumps({"reads": reads}), flush=True)
    print(
        json.dumps({"library": ".".join(map(str, lib.version)), "refused": tries - made}),
        flush=True,
    )
    for text, n in sorted(errors.items(), key=lambda x: -x[1])[:8]:
        print(n, text, file=sys.stderr)
    return 0 if made == count else 1


def read(lib, what):
    """Makes one read."""
    array = lib.new("tiledb_array_alloc", what["path"].encode())
    if what["until"]:
        lib("tiledb_array_set_open_timestamp_end", array, c.c_uint64(what["until"]))
    lib("tiledb_array_open", array, c.c_int(READ))
    # At a time, the schema of that time counts.
    schema = lib.new("tiledb_array_get_schema", array)
    there = []
    for a in what["attrs"]:
        has = c.c_int32()
        lib("tiledb_array_schema_has_attribute", schema, a["name"].encode(), c.byref(has))
        if has.value:
            there.append(a)
    query = lib.new("tiledb_query_alloc", array, c.c_int(READ))
    lib("tiledb_query_set_layout", query, c.c_int(ROW if what["dense"] else UNORDERED))
    sub = lib.new("tiledb_subarray_alloc", array)
    for d, b in enumerate(what["box"]):
        if b:
            lib(
                "tiledb_subarray_add_range",
                sub,
                c.c_uint32(d),
                bytes.fromhex(b[0]),
                bytes.fromhex(b[1]),
                None,
            )
    lib("tiledb_query_set_subarray_t", query, sub)
    fields = (
        []
        if what["dense"]
        else [
            {"name": d["name"], "var": d["size"] == 0, "size": d["size"] or 1, "nullable": False}
            for d in what["dims"]
        ]
    )
    fields += there
    keep, room = [], 1 << 22
    for f in fields:
        n = f["name"].encode()
        data, used = c.create_string_buffer(room), c.c_uint64(room)
        offs, offs_used = c.create_string_buffer(room), c.c_uint64(room)
        valid, valid_used = c.create_string_buffer(room), c.c_uint64(room)
        keep.append((data, used, offs, offs_used, valid, valid_used))
        lib("tiledb_query_set_data_buffer", query, n, data, c.byref(used))
        if f["var"]:
            lib("tiledb_query_set_offsets_buffer", query, n, offs, c.byref(offs_used))
        if f["nullable"]:
            lib("tiledb_query_set_validity_buffer", query, n, valid, c.byref(valid_used))
    lib("tiledb_query_submit", query)
    status = c.c_int()
    lib("tiledb_query_get_status", query, c.byref(status))
    if status.value != 1:
        raise RuntimeError(f"query status {status.value}")
    lib("tiledb_array_close", array)
    columns = [list(cells(f, *k)) for f, k in zip(fields, keep)]
    rows = [b"".join(x) for x in zip(*columns)]
    if not what["dense"]:
        rows.sort()
    return {
        "cells": len(rows),
        "sha256": hashlib.sha256(b"".join(rows)).hexdigest(),
        "attrs": [a["name"] for a in there],
    }


def cells(f, data, used, offs, offs_used, valid, valid_used):
    """Gives each cell of a field: its length and its bytes."""
    b = data.raw[: used.value]
    if f["var"]:
        n = offs_used.value // 8
        ends = [*struct.unpack(f"<{n}Q", offs.raw[: 8 * n]), len(b)]
        list_ = [b[ends[i] : ends[i + 1]] for i in range(n)]
    else:
        list_ = [b[i : i + f["size"]] for i in range(0, len(b), f["size"])]
    nulls = valid.raw[: valid_used.value] if f["nullable"] else None
    for i, x in enumerate(list_):
        if nulls is not None and not nulls[i]:
            yield struct.pack("<q", -1)
        else:
            yield struct.pack("<q", len(x)) + x


def main():
    """Runs a command."""
    if sys.argv[1] == "write":
        return write(sys.argv[2], sys.argv[3], int(sys.argv[4]), int(sys.argv[5]))
    lib = Library(sys.argv[2])
    for line in sys.stdin:
        for what in json.loads(line).get("reads", []):
            try:
                result = read(lib, what)
            except RuntimeError as e:
                result = {"error": str(e)}
            print(json.dumps(result), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
