"""Writes the rumi files of generation 3 of this directory, and manifest.jsonl.

    python write.py

needs rumi-eo 0.26.1 with geozl 0.18 (Python 3.12). A second run with rumi-eo 0.24.1 adds the files
of the older trailer.
"""

import datetime
import hashlib
import json
import struct
from importlib.metadata import version

import geozl
import numpy as np
import rumi

HERE = __file__.rpartition("/")[0] or "."
OLD = version("rumi-eo").startswith("0.24")

# File names, and what stands before the frame and in it.
UNITS = {
    "t-b-y-x-0": ("b t", "h w"),
    "t-b-y-x-3": ("", "b t h w"),
    "t-b-y-x-4": ("", "t b h w"),
    "t-b-y-x-5": ("", "b h w t"),
    "t-b-y-x-6": ("", "t h w b"),
    "t-b-y-x-7": ("", "h w b t"),
    "t-b-y-x-8": ("", "h w t b"),
    "t-b-y-x-9": ("t b", "h w"),
    "b-y-x-0": ("b", "h w"),
    "b-y-x-1": ("", "b h w"),
    "b-y-x-2": ("", "h w b"),
    "t-y-x-0": ("t", "h w"),
    "t-y-x-1": ("", "t h w"),
    "t-y-x-2": ("", "h w t"),
    "y-x-0": ("", "h w"),
}
# Encodings that rumi-eo reads and its writer takes no arrays of: the tags of a file are changed.
PATCHED = {
    "float8_e4m3fn": (100, 8), "float8_e5m2": (101, 8), "bfloat16": (102, 16), "float8_e8m0fnu": (103, 8),
    "complex_float16": (6, 32),
}  # fmt: skip


def days(count, first=(2024, 2, 27), step=9):
    start = datetime.date(*first)
    return [start + datetime.timedelta(days=step * k + k * k) for k in range(count)]


def seconds(t):
    t = t.replace(tzinfo=None) if isinstance(t, datetime.datetime) else t
    return int(np.datetime64(t, "s").astype("int64"))


def write(name, arr, axes, unit, tile=16, time=None, method="id>zstd", **geo):
    """Writes one file and returns its line of the manifest."""
    position, frame = unit
    split = axes.replace("y", "(y h)").replace("x", "(x w)")
    frames = rumi.frames(arr, f"{split} -> y x {position} ({frame})", tile)
    for f in frames:
        data = np.ascontiguousarray(f.data)
        if data.dtype == bool:
            data = data.view("u1")
        if data.dtype.kind == "c":
            data = data.view(f"f{data.dtype.itemsize // 2}")
        f.compressed = geozl.compress(data, graph=geozl.graph(data, method))
    shape = [dict(zip(axes.split(), arr.shape, strict=True)).get(a, 1) for a in "tbyx"]
    named = {} if OLD else {"bands": [f"band {k}" for k in range(shape[1] - 1)] + ["último"]}
    if time is not None or not OLD:
        named["time"] = days(shape[0]) if time is None else time
    path = f"{HERE}/{name}.rumi"
    rumi.write(path, frames, **named, **geo)
    return line(name, arr, shape)


def line(name, arr, shape):
    path = f"{HERE}/{name}.rumi"
    m = rumi.info(source=path)
    times = []
    for t in m.time or []:
        times += [seconds(v) for v in (t if isinstance(t, (tuple, list)) else [t])]
    with open(path, "rb") as f:
        size = len(f.read())
    return {
        "path": f"{name}.rumi",
        "kind": "rumi-3",
        "writer": f"rumi-eo {version('rumi-eo')}",
        "compressor": f"geozl {version('geozl')}",
        "shape": shape,
        "dtype": str(np.dtype(m.dtype)) if OLD else str(m.dtype),
        "tile": m.tile[0],
        "frame": m.frame_layout,
        "frames": m.frames,
        "blob": m.header.hex(),
        "sha256": hashlib.sha256(np.ascontiguousarray(arr).tobytes()).hexdigest(),
        "bands": getattr(m, "bands", None),
        "time_kind": getattr(m, "time_kind", None),
        "times": times,
        "transform": m.transform,
        "crs": m.crs,
        "point": m.pixel_is_point,
        "bytes": size,
    }


def patched(name, code):
    """Writes a file of another encoding: random bits under the tags of that one."""
    style, bits = code
    rng = np.random.default_rng(1000 * bits + style)
    arr = rng.integers(0, 1 << bits, (2, 2, 20, 21)).astype(f"<u{bits // 8}")
    write(name, arr, "t b y x", UNITS["t-b-y-x-4"])
    path = f"{HERE}/{name}.rumi"
    with open(path, "rb") as f:
        b = bytearray(f.read())
    for i in range(13):
        tag = struct.unpack_from("<H", b, 24 + 20 * i)[0]
        if tag in (258, 339):
            struct.pack_into("<2H", b, 24 + 20 * i + 12, *[bits if tag == 258 else style] * 2)
    with open(path, "wb") as f:
        f.write(b)
    return line(name, arr, [2, 2, 20, 21])


def ramp(shape, dtype="<u2"):
    i = np.arange(np.prod(shape), dtype="u8").reshape(shape)
    return (i * i // 7 % 60000).astype(dtype)


def main():
    out = []
    if OLD:
        arr = ramp((3, 2, 20, 21))
        spans = [(a, a + datetime.timedelta(days=3)) for a in days(3)]
        cube = ("t b y x", UNITS["t-b-y-x-4"])
        out.append(write("old-undefined", arr, *cube))
        out.append(write("old-instants", arr, *cube, time=days(3)))
        out.append(write("old-spans", arr, *cube, time=spans))
    else:
        for name, unit in UNITS.items():
            axes = name.rpartition("-")[0].replace("-", " ")
            sizes = {"t": 3, "b": 2, "y": 20, "x": 21}
            out.append(write("unit-" + name, ramp([sizes[a] for a in axes.split()]), axes, unit))
        for dtype in ("u1", "i1", "u4", "i8", "f2", "f4", "f8", "c8", "c16"):
            arr = ramp((2, 20, 21)).astype(dtype)
            name = np.dtype(dtype).name
            out.append(write(name, arr, "b y x", UNITS["b-y-x-2"]))
        out.append(write("bool", ramp((2, 20, 21)) % 3 == 1, "b y x", UNITS["b-y-x-1"]))
        out += [patched(name, code) for name, code in PATCHED.items()]
        cube = (ramp((3, 2, 20, 21)), "t b y x", UNITS["t-b-y-x-0"])
        instant = datetime.datetime(2024, 5, 6, 7, 8, 9)
        moments = [instant + datetime.timedelta(seconds=86400 * k + 7 * k * k) for k in range(3)]
        spans = [(a, a + datetime.timedelta(days=3)) for a in days(3, (1969, 12, 20))]
        out.append(write("moments", *cube, time=moments))
        out.append(write("spans", *cube, time=spans, tile=64))
        place = {"transform": (10.0, 0.0, 399960.0, 0.0, -10.0, 4900020.0), "crs": 32633}
        out.append(write("geo-projected", *cube, **place))
        place = {"transform": (0.1, 0.02, 7.5, 0.02, -0.1, 46.5), "crs": 4326}
        out.append(write("geo-rotated-point", *cube, **place, pixel_is_point=True))
        many = ramp((9, 5, 6))
        out.append(write("nine-bands", many, "b y x", UNITS["b-y-x-0"], tile=4))
        planar = ramp((2, 2, 40, 40))
        out.append(write("planar", planar, "t b y x", UNITS["t-b-y-x-9"], method="planar>zigzag>pfor"))
    with open(f"{HERE}/manifest.jsonl", "a" if OLD else "w") as f:
        f.writelines(json.dumps(v, ensure_ascii=False) + "\n" for v in out)


main()
