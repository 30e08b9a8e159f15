"""rumi files: cut an image into tiles, write their frames, index files, read windows.

Compression is the caller's own, frame by frame, with any OpenZL graph, or the engine's: see `graph`
of `write`. Of generation 3, as the package rumi-eo 0.26 has it:

    table = rumi.frames(arr, "b (y h) (x w) -> y x b (h w)", 512)
    for f in table:
        f.compressed = compress(f.data)
    rumi.write("scene.rumi", table, bands=["red", "nir"], time=[datetime.date(2024, 5, 6)])
    header = rumi.info(source="scene.rumi").header
    arr = rumi.read("scene.rumi", header, time=[0], bands=[1, 0], window=(0, 0, 256, 256))

and of the generations before, which `tile` and `tile2` cut:

    chunks, layout = rumi.tile(arr, tile=512)
    blob = rumi.write("scene.tif", [compress(c) for c in chunks], layout)
    header = rumi.parse(blob)
    arr = rumi.read("scene.tif", header, "b y x", b=(0, 3), y=(0, 512), x=(0, 512))
"""

from __future__ import annotations

import datetime
import importlib
import itertools
import json
import math
import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from chaski import _read
from chaski._assemble import DTYPES
from chaski._calls import entry
from chaski._command import ask
from chaski._plain import Crs, Path, absolute, crs_code
from chaski._read import Selection, Slice
from chaski._records import RumiHeader, RumiLayout
from chaski.errors import SpecError, UnsupportedError

__all__ = [
    "OPENZL_VERSION",
    "Frame",
    "FrameTable",
    "Header",
    "Layout",
    "frames",
    "index_file",
    "info",
    "parse",
    "read",
    "read_many",
    "tile",
    "tile2",
    "write",
]

OPENZL_VERSION = 24
"""The newest OpenZL frame format version that every reader of generation 1 takes."""

_NAMED = dict(DTYPES.values())
_ML_DTYPES = list(_NAMED)[list(_NAMED).index("bfloat16") :]
"""Types of the package ml_dtypes, which generations 2 and 3 have besides."""
_NUMPY_DTYPES = list(_NAMED)[: list(_NAMED).index("complex_int16")]

AnyPath: TypeAlias = "Path | bytes"


class Layout(RumiLayout):  # noqa: D101 (it is that of the base)
    __doc__ = RumiLayout.__doc__

    @property
    def grid(self) -> tuple[int, int]:
        """Rows and columns of tiles."""
        return -(-self.shape[1] // self.tile[0]), -(-self.shape[2] // self.tile[1])

    @property
    def frames(self) -> int:
        """Number of frames: in each place of the grid, one a band and step, or one for all."""
        whole = self.cells or self.unit not in ("", "tile", "step")
        return (1 if whole else self.shape[0] * self.times) * math.prod(self.grid)


@dataclass
class Frame:
    """One frame of a file of generation 3: its samples, and their compressed bytes."""

    data: npt.NDArray[Any]
    compressed: bytes | None = None


class FrameTable(list[Frame]):
    """The frames of an image in the order of the file, and its layout."""

    layout: Layout


class Header(RumiHeader):  # noqa: D101 (it is that of the base)
    __doc__ = RumiHeader.__doc__

    header = property(lambda self: self.blob)
    frames = property(lambda self: len(self.counts))


def tile(arr: npt.ArrayLike, tile: int = 512) -> tuple[npt.NDArray[Any], Layout]:
    """Cuts an image into tiles, in the order of a file's frames.

    The bands of a place in the grid stand side by side, places row by row. Tiles at the edges are
    padded with zeros.

    Args:
        arr: (bands, height, width); integers, float16 to float64, complex64 or complex128.
        tile: edge of a tile in pixels, 1 to 65535.

    Returns:
        The tiles, (frames, tile, tile), little-endian, and the layout that `write` needs.
    """
    table = _older(1, arr, tile)
    out = np.zeros((len(table), tile, tile), table.layout.dtype)
    for padded, f in zip(out, table, strict=True):
        padded[: f.data.shape[0], : f.data.shape[1]] = f.data
    return out, table.layout


def tile2(
    arr: npt.ArrayLike, tile: int = 512, *, cells: bool = False
) -> tuple[list[npt.NDArray[Any]], Layout]:
    """Cuts an image into the samples of the frames of a file of generation 2.

    Args:
        arr: (bands, height, width), of a dtype that `tile` takes or of one of package ml_dtypes.
        tile: edge of a tile in pixels, 1 to 65535.
        cells: a frame holds all bands of a place in the grid.

    Returns:
        One little-endian array a frame, and the layout that `write` needs. An array is (height,
        width), of a cell (bands, height, width), less than a tile at the lower and right edges.
    """
    table = _older(2, arr, tile, cells)
    out = [f.data for f in table]
    return [v.reshape(-1, *v.shape[-2:]) for v in out] if cells else out, table.layout


def _older(generation: int, arr: npt.ArrayLike, tile: int, cells: bool = False) -> FrameTable:
    """Cuts an image as a generation before the third has its frames."""
    a = np.asarray(arr)
    if a.ndim != 3 or not a.size:
        raise SpecError(
            f"arr has shape {a.shape}: it must be (bands, height, width), none of them 0"
        )
    if a.dtype.name not in _NUMPY_DTYPES + (_ML_DTYPES if generation > 1 else []):
        raise SpecError(
            f"{a.dtype} samples cannot be stored in a rumi file of generation {generation}"
        )
    table = frames(a, f"b (y h) (x w) -> y x {'(b h w)' if cells else 'b (h w)'}", tile)
    table.layout = replace(table.layout, generation=generation, cells=cells, unit="")
    return table


def frames(arr: npt.ArrayLike, pattern: str, tile_size: int = 512) -> FrameTable:
    """Cuts an image into the samples of the frames of a file of generation 3.

    Args:
        arr: with axes y and x, and bands b and steps of time t where pattern has them.
        pattern: axes of arr, with y and x split, then the grid, axes with frames of their own, and
            in parentheses the axes of a frame: "t b (y h) (x w) -> y x b t (h w)".
        tile_size: edge of a tile in pixels.
    """
    left, _, right = pattern.partition("->")
    axes = left.replace("(y h)", "h").replace("(x w)", "w").split()
    m = re.fullmatch(r" y x((?: [bt])*) \(([bt ]*h w[bt ]*)\)", " " + right.strip())
    order = (m[1] + " " + m[2]).split() if m else []
    a = np.asarray(arr)
    if m is None or sorted(axes) != sorted(order) or len(axes) != a.ndim or not a.size:
        raise SpecError(f"pattern is {pattern!r}, of an array of shape {a.shape}")
    size = {"b": 1, "t": 1} | dict(zip(axes, a.shape, strict=True))
    outer = m[1].split()
    several = [k for k in outer if size[k] > 1]
    inner = [k for k in m[2].split() if k in "hw" or size[k] > 1]
    unit = " ".join(inner) if len(inner) > 2 else "step" if several == ["t", "b"] else "tile"
    dtype, shape = a.dtype.newbyteorder("<"), (size["b"], size["h"], size["w"])
    if dtype.name not in ["bool", *_NUMPY_DTYPES, *_ML_DTYPES]:
        raise SpecError(f"{dtype} samples cannot be stored in a rumi file")
    if not 1 <= tile_size <= 65535 or shape[0] > 65535 or max(shape) >= 1 << 31:
        raise SpecError(f"tiles of {tile_size} pixels of an image of shape {shape}")
    table = FrameTable()
    table.layout = Layout(shape, dtype, (tile_size, tile_size), 3, times=size["t"], unit=unit)
    order = outer + inner  # axes of length one are not in frames
    a = a[tuple(0 if k not in order else slice(None) for k in axes)]
    axes = [k for k in axes if k in order]
    a, at = a.transpose([axes.index(k) for k in order]), order.index("h")
    for r, c in np.ndindex(*table.layout.grid):
        y, x = (slice(k * tile_size, (k + 1) * tile_size) for k in (r, c))
        part = a[(slice(None),) * at + (y, x)]
        for i in np.ndindex(*part.shape[: len(outer)]):
            table.append(Frame(np.ascontiguousarray(part[i], dtype)))
    return table


@entry
def write(
    path: Path,
    frames: Iterable[bytes | npt.NDArray[Any]] | FrameTable,
    layout: Layout | None = None,
    *,
    graph: str | None = None,
    level: int = 13,
    geozl: int = 0,
    max_cost: float = 0,
    bands: Sequence[str] = (),
    time: Sequence[Any] = (),
    transform: Sequence[float] | None = None,
    crs: Crs | None = None,
    pixel_is_point: bool = False,
) -> bytes:
    """Writes a rumi file of the layout's generation.

    The file appears under its name once it is complete, in place of one that was there.

    Args:
        path: of the file.
        frames: one OpenZL frame a tile, in the order of `tile` or `tile2`, each with one numeric
            output of the samples' width; or what `rumi.frames` returned, each frame compressed.
            With a graph, the arrays themselves.
        layout: what those returned beside the tiles.
        graph: how the engine compresses: "auto", "best", "fast", or an OpenZL graph such as
            "planar>zigzag>pfor". It, `level`, `geozl` and `max_cost` are as for `chaski convert`.
        level: of zstd, 1 to 22.
        geozl: release 0.N of geozl that readers of generation 3 have, 18 or 19 (default: 18).
        max_cost: time that decoding what "auto" and "best" choose takes, at most.
        bands: name of each band, for generation 3.
        time: of each step, for generation 3: a date, datetime, numpy.datetime64 or string like
            "2024-05-06", or a pair of them, its begin and end.
        transform: affine coefficients (a, b, c, d, e, f), x = a·column + b·row + c and y = d·column
            + e·row + f; together with crs.
        crs: EPSG code, from generation 2 on from 1024 on: an int, "EPSG:32718", or an object with
            `to_epsg()`.
        pixel_is_point: transform refers to the centres of pixels, not to their upper left corners.

    Returns:
        The header blob, as `index_file` gives it.
    """
    if isinstance(frames, FrameTable):
        layout = layout or frames.layout
        frames = [f.data if graph else f.compressed or b"" for f in frames]
    if layout is None:
        raise SpecError("frames need a layout, unless they are those of `rumi.frames`")
    t = [] if transform is None else [float(v) for v in transform][:6]  # an Affine has nine
    if transform is not None and len(t) != 6:
        raise SpecError(f"transform is {transform!r}: it must be (a, b, c, d, e, f)")
    said: dict[str, Any] = {name: getattr(layout, name) for name in ("cells", "unit")}
    said["shape"], said["tile"] = [int(n) for n in layout.shape], [int(n) for n in layout.tile]
    said["generation"], said["times"] = int(layout.generation), int(layout.times)
    said["dtype"] = {"bool": "uint1"}.get(layout.dtype.name, layout.dtype.name)
    said |= {"transform": t, "pixel_is_point": bool(pixel_is_point), "bands": list(bands)}
    said["epsg"] = 0 if crs is None else crs_code("crs", crs)
    said["time"] = ["/".join(map(_iso, v if isinstance(v, (tuple, list)) else [v])) for v in time]
    data: Iterable[bytes | memoryview]
    if graph:
        said |= {"graph": graph, "level": level, "geozl": geozl, "max_cost": max_cost}
        data = (np.ascontiguousarray(f, layout.dtype).tobytes() for f in frames)
    else:
        data = [memoryview(cast(bytes, f)).cast("B") for f in frames]
        said["counts"] = [len(f) for f in data]
    head: list[bytes | memoryview] = [json.dumps(said).encode() + b"\n"]
    line = ["frame", f"--pack={os.path.abspath(os.fsdecode(path))}", "-"]
    return bytes.fromhex(ask(line, itertools.chain(head, data))[0].decode())


def _iso(v: Any) -> str:
    """Returns a time as ISO 8601."""
    return str(v.isoformat() if hasattr(v, "isoformat") else v)


@entry
def parse(blob: bytes | bytearray | memoryview) -> Header:
    """Reads a header blob of any generation, of at most 2**20 frames of one size.

    Raises:
        UnsupportedError: its version, or its dtype here, is unknown, or only the file says which
            generation it is of.
    """
    return _header("-", bytes(blob))


def _header(path: str, blob: bytes = b"") -> Header:
    """Returns the engine's description of a file, or of a header blob."""
    said = json.loads(ask(["index", "--format=json", "--", path], [blob])[0])
    for name in ("shape", "tile", "index_order"):
        said[name] = tuple(said[name])
    said["transform"] = said["transform"] and tuple(map(float, said["transform"]))
    truth = said["generation"] == 3 and said["dtype"] == "uint1"  # what the original calls it
    said["dtype"] = np.dtype(bool) if truth else _dtype(said["dtype"])
    said["time"] = said["time"] and [
        _time(v) if isinstance(v, str) else tuple(map(_time, v)) for v in said["time"]
    ]
    for name in ("offsets", "counts"):
        said[name] = np.array(said[name], "<i8")
    return Header(bytes.fromhex(said.pop("blob")), **said)


def _dtype(name: str) -> np.dtype[Any]:
    if name not in _ML_DTYPES:
        return _NAMED[name]
    try:
        dtype: np.dtype[Any] = np.dtype(getattr(importlib.import_module("ml_dtypes"), name))
    except (ImportError, AttributeError):
        message = f"{name} needs the package ml_dtypes"
        raise UnsupportedError(message, part="header blob") from None
    return dtype


@entry
def index_file(path: AnyPath) -> bytes:
    """Reads the directory of a rumi file, of any generation, and returns its header blob."""
    return _index_files([os.fsdecode(path)])[0]


def _index_files(names: Sequence[str]) -> list[bytes]:
    """Returns the blobs of files by one command."""
    said = ask(["index", "--format=hex", "--", *map(absolute, names)])[0]
    blobs = [bytes.fromhex(line) for line in said.decode().split()]
    for name, blob in zip(names, blobs, strict=True):
        if blob[:4] not in (b"<3<3", b"LOVE"):
            message = f"{name}: header: not a rumi file, but another TIFF"
            raise UnsupportedError(message, file=name, part="header")
    return blobs


@entry
def info(*, source: AnyPath | None = None, header: bytes | None = None) -> Header:
    """Describes a file, or a header alone."""
    if source is None:
        return parse(header or b"")
    return _header(absolute(os.fsdecode(source)))


def _time(text: str) -> Any:
    """Returns a date, or a time in UTC; a string for years that Python's dates do not reach."""
    try:
        if len(text) == len("2024-05-06"):
            return datetime.date.fromisoformat(text)
        return datetime.datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError:
        return text


@entry
def read_many(
    sources: Sequence[AnyPath],
    headers: Sequence[Header | bytes] | None = None,
    *,
    windows: Sequence[Sequence[int]] | None = None,
    pattern: str | None = None,
    time: Selection | None = None,
    bands: Selection | None = None,
    num_threads: int = 0,
) -> npt.NDArray[Any]:
    """Reads a window of each file: all of one size, stacked along n, also of one file.

    It is `chaski.read` with these names: `time` and `bands` are t and b, `pattern` is its layout
    as for `read`, and `headers`, which are not compared with the files' own, its header.
    """
    blobs = None if headers is None else [h.blob if isinstance(h, Header) else h for h in headers]
    files, layout = [os.fsdecode(p) for p in sources], _blanks(pattern)
    out = _read.read(
        files,
        layout=layout,
        header=blobs,
        t=time,
        b=bands,
        windows=windows,
        num_threads=num_threads,
    )
    # One file has no axis n by default.
    return out[None] if pattern is None and len(sources) == 1 else out


@entry
def read(
    paths: AnyPath | Iterable[AnyPath],
    specs: Header | bytes | Iterable[Header | bytes] | None = None,
    pattern: str | None = None,
    *,
    n: Selection | None = None,
    b: Selection | None = None,
    y: Slice | None = None,
    x: Slice | None = None,
    num_threads: int = 1,
    timeout: float = 120.0,
    headers: Header | bytes | Iterable[Header | bytes] | None = None,
    layout: str | None = None,
    header: Header | bytes | None = None,
    time: Selection | None = None,
    bands: Selection | None = None,
    window: Sequence[int] | None = None,
) -> npt.NDArray[Any]:
    """Reads a window of one file, or of several of equal shape stacked along n.

    The files' own headers are read too, and those given here must be theirs: one that is not is
    named before any pixel is decoded.

    The arguments are those of `chaski.read`, and beside them names that packages of rumi have:
    `specs`, `headers` or `header` is what `parse` returns for each file, or the blobs, one a path;
    `pattern` is `layout`, whose axes need no blanks between: "(nb)yx"; `bands` is b, and `time` is
    t; `window` is (row, column, height, width), in place of y and x. Where one file is picked, the
    default pattern has no n.

    Raises:
        SpecError: the arguments do not fit each other, or a header is that of another file.
    """
    specs = _either(specs=specs, headers=headers, header=header)
    b = _either(b=b, bands=bands)
    pattern = _either(pattern=pattern, layout=layout)
    if window is not None:
        row, column, height, width = window
        y = _either(y=y, window=(row, row + height))
        x = _either(x=x, window=(column, column + width))
    one = isinstance(paths, (str, bytes, os.PathLike))
    asked: list[Any] = [paths] if one else list(paths)  # type: ignore[arg-type]
    files = [os.fsdecode(p) for p in asked]
    dtype: np.dtype[Any] | None = None
    blobs: _read.Checked | None = None
    if specs is not None:
        given = [specs] if isinstance(specs, (Header, bytes)) else list(specs)
        if len(given) != len(files):
            raise SpecError(f"{len(given)} specs for {len(files)} paths")
        blobs = _read.Checked(h.blob if isinstance(h, Header) else bytes(h) for h in given)
        if given:
            dtype = (given[0] if isinstance(given[0], Header) else parse(given[0])).dtype
    if n is not None and pattern is None:
        of = slice(*n) if isinstance(n, tuple) else n
        numbers = range(len(files))
        picked = numbers[of] if isinstance(of, slice) else [i for i in of if i < len(files)]
        if len(picked) == 1:  # and then without the axis n
            files, n = [files[picked[0]]], None
            blobs = blobs and _read.Checked([blobs[picked[0]]])
    out = _read.read(
        files,
        layout=_blanks(pattern),
        n=n,
        t=time,
        b=b,
        y=y,
        x=x,
        num_threads=num_threads,
        timeout=timeout,
        header=blobs,
    )
    # What numpy has no name for comes as bits.
    if dtype is not None and dtype != out.dtype and dtype.itemsize == out.dtype.itemsize:
        out = out.view(dtype)
    return out


def _either(**names: Any) -> Any:
    """Returns the value of an argument that has several names."""
    given = {k: v for k, v in names.items() if v is not None}
    if len(given) > 1:
        raise SpecError(f"{' and '.join(given)} are one argument: it is given twice")
    return next(iter(given.values()), None)


def _blanks(pattern: str | None) -> str | None:
    """Returns a pattern with a blank between its axes, which rumi does not ask for."""
    if pattern is None:
        return None
    if not isinstance(pattern, str) or not pattern.strip():
        raise SpecError(f"pattern is {pattern!r}: it must name the axes b, y and x")
    if set(pattern) <= set("ntbyx() "):
        return re.sub(r"(?<=[ntbyx)])(?=[ntbyx(])", " ", pattern)
    return pattern
