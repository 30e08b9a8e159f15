"""Reads TileDB arrays with libtiledb, that of the PyPI package tiledb, through its C interface.

Standard input has a JSON list of reads: path, key (or null), dense, box (lowest and highest value
of each dimension, hexadecimal), dims (names and bytes of a value), cells, attrs (name, var, bytes
of all values), since and until (milliseconds, 0 for none). Every read gives a line of JSON: the
SHA-256 of the coordinates (sparse; cell by cell, row-major) and of each attribute's values and
offsets, or an error.
"""

import ctypes as c
import hashlib
import importlib.util
import json
import sys
from pathlib import Path

READ, ROW_MAJOR, COMPLETED = 0, 0, 1


def library():
    """Loads the package's own libtiledb."""
    package = Path(importlib.util.find_spec("tiledb").submodule_search_locations[0])
    found = [*package.parent.glob("tiledb.libs/libtiledb*"), *package.rglob("libtiledb.so*")]
    return c.CDLL(str(found[0]))


lib = library()


class Context:
    """A context with a key, or none."""

    def __init__(self, key):
        """Opens it."""
        config, error, self.ptr = c.c_void_p(), c.c_void_p(), c.c_void_p()
        lib.tiledb_config_alloc(c.byref(config), c.byref(error))
        if key:
            for name, value in (("sm.encryption_type", "AES_256_GCM"), ("sm.encryption_key", key)):
                lib.tiledb_config_set(config, name.encode(), value.encode(), c.byref(error))
        lib.tiledb_ctx_alloc(config, c.byref(self.ptr))

    def call(self, name, *args):
        """Calls a function of the library, and raises what it says is wrong."""
        if getattr(lib, name)(self.ptr, *args) == 0:
            return
        error, text = c.c_void_p(), c.c_char_p()
        lib.tiledb_ctx_get_last_error(self.ptr, c.byref(error))
        lib.tiledb_error_message(error, c.byref(text))
        raise RuntimeError(f"{name}: {text.value.decode()}")


def sha(b):
    """Hashes bytes."""
    return hashlib.sha256(b).hexdigest()


def read(what):
    """Makes one read."""
    x = Context(what["key"])
    array, query, sub = c.c_void_p(), c.c_void_p(), c.c_void_p()
    x.call("tiledb_array_alloc", what["path"].encode(), c.byref(array))
    if what.get("until"):
        x.call("tiledb_array_set_open_timestamp_start", array, c.c_uint64(what["since"]))
        x.call("tiledb_array_set_open_timestamp_end", array, c.c_uint64(what["until"]))
    x.call("tiledb_array_open", array, READ)
    x.call("tiledb_query_alloc", array, READ, c.byref(query))
    x.call("tiledb_query_set_layout", query, ROW_MAJOR)
    x.call("tiledb_subarray_alloc", array, c.byref(sub))
    for d, (lo, hi) in enumerate(what["box"]):
        lo, hi = bytes.fromhex(lo), bytes.fromhex(hi)
        x.call("tiledb_subarray_add_range", sub, c.c_uint32(d), lo, hi, None)
    x.call("tiledb_query_set_subarray_t", query, sub)
    keep = []

    def buffer(function, name, size):
        size = 2 * size + (1 << 20)  # the library wants room for whole tiles
        data, n = c.create_string_buffer(size), c.c_uint64(size)
        keep.append((data, n))
        x.call(function, query, name.encode(), data, c.byref(n))
        return data, n

    dims, attrs = [], []
    if not what["dense"]:
        for name, size in what["dims"]:
            dims.append(buffer("tiledb_query_set_data_buffer", name, size * what["cells"]))
    for a in what["attrs"]:
        offsets = None
        data = buffer("tiledb_query_set_data_buffer", a["name"], a["bytes"])
        if a["var"]:
            offsets = buffer("tiledb_query_set_offsets_buffer", a["name"], 8 * what["cells"])
        attrs.append((a["name"], data, offsets))
    x.call("tiledb_query_submit", query)
    status = c.c_int()
    x.call("tiledb_query_get_status", query, c.byref(status))
    if status.value != COMPLETED:
        raise RuntimeError(f"query status {status.value}")
    x.call("tiledb_array_close", array)
    out = {"attrs": {}}
    if dims:
        planes = [c.string_at(data, n.value) for data, n in dims]
        sizes = [size for _, size in what["dims"]]
        cells = len(planes[0]) // sizes[0]
        coords = (
            p[i * s : (i + 1) * s] for i in range(cells) for p, s in zip(planes, sizes, strict=True)
        )
        out["coords"] = sha(b"".join(coords))
    for name, (data, n), offsets in attrs:
        out["attrs"][name] = {"data": sha(c.string_at(data, n.value))}
        if offsets:
            out["attrs"][name]["offsets"] = sha(c.string_at(offsets[0], offsets[1].value))
    return out


for one in json.load(sys.stdin):
    try:
        result = read(one)
    except RuntimeError as e:
        result = {"error": str(e)}
    print(json.dumps(result), flush=True)
