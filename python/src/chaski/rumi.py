"""rumi files: cut an image into tiles, write their frames, index files, read windows.

Writing is three steps; the compression between the first and the last is the caller's own, tile by
tile, with any OpenZL graph:

    chunks, layout = rumi.tile(arr, tile=512)
    frames = [compress(c) for c in chunks]
    blob = rumi.write("scene.tif", frames, layout)

Reading needs a header, made from the file once and kept beside its path:

    spec = rumi.parse(rumi.index_file("scene.tif"))
    arr = rumi.read("scene.tif", spec, "b y x", b=(0, 3), y=(0, 512), x=(0, 512))

All of it also for files of generation 2 (`.rumi`), whose tiles `tile2` cuts.
"""

from __future__ import annotations

import importlib
import math
import os
import re
import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from chaski import _read
from chaski._files import replace_file
from chaski._payload import DTYPES
from chaski._proto import chaski_pb2 as pb
from chaski._read import Selection, Slice, ask
from chaski._rpc import PIECE
from chaski._sources import Crs, Path, absolute, crs_code
from chaski.errors import CorruptError, LimitError, SpecError, UnsupportedError

__all__ = [
    "OPENZL_VERSION",
    "Header",
    "Layout",
    "index_file",
    "parse",
    "read",
    "tile",
    "tile2",
    "write",
]

OPENZL_VERSION = 24
"""The newest OpenZL frame format version that every reader of generation 1 takes."""

_MAGIC1, _MAGIC2 = 0x333C333C, 0x45564F4C
_HEAD1, _HEAD2 = 26, 28
_MAX_SIDE = (1 << 31) - 1
# Frames that a blob may stand for without a bit of its own for each.
_MAX_EQUAL_FRAMES = 1 << 20

_ENCODINGS: dict[tuple[int, int], str] = {
    **{(1, n): f"uint{n}" for n in (1, 2, 4, 8, 16, 32, 64)},
    **{(2, n): f"int{n}" for n in (2, 4, 8, 16, 32, 64)},
    **{(3, n): f"float{n}" for n in (16, 32, 64)},
    **{(5, 32): "complex_int16", (5, 64): "complex_int32", (6, 32): "complex_float16"},
    **{(6, 64): "complex64", (6, 128): "complex128", (102, 16): "bfloat16"},
    **{(100, 8): "float8_e4m3fn", (101, 8): "float8_e5m2", (103, 8): "float8_e8m0fnu"},
    **{(104, 6): "float6_e2m3fn", (105, 6): "float6_e3m2fn", (106, 4): "float4_e2m1fn"},
}
"""dtypes by (sample format, bits)."""

_NAMED = dict(DTYPES.values())
_ML_DTYPES = list(_NAMED)[list(_NAMED).index("bfloat16") :]
"""Types of the package ml_dtypes, which generation 2 has besides."""
_NUMPY_DTYPES = list(_NAMED)[: list(_NAMED).index("complex_int16")]

AnyPath: TypeAlias = "Path | bytes"


@dataclass(frozen=True)
class Layout:
    """The grid and dtype of an image that was cut into tiles.

    Attributes:
        shape: bands, height, width.
        dtype: of the samples, little-endian.
        tile: height and width of a tile, in pixels.
        generation: of the file, 1 or 2.
        cells: a frame holds all bands of a place in the grid (generation 2).
    """

    shape: tuple[int, int, int]
    dtype: np.dtype[Any]
    tile: tuple[int, int]
    generation: int = 1
    cells: bool = False

    @property
    def grid(self) -> tuple[int, int]:
        """Rows and columns of tiles."""
        return -(-self.shape[1] // self.tile[0]), -(-self.shape[2] // self.tile[1])

    @property
    def frames(self) -> int:
        """Number of frames: one a band and place in the grid, or with cells one a place."""
        return (1 if self.cells else self.shape[0]) * math.prod(self.grid)


@dataclass(frozen=True)
class Header:
    """What a header blob says. Headers of equal blobs are equal.

    Attributes:
        blob: the header as bytes.
        shape: bands, height, width.
        dtype: of the samples. Generation 2 also has types of the package ml_dtypes, which must then
            be installed; complex types that numpy has no name for are structured, "re" and "im".
        tile: height and width of a tile, in pixels.
        generation: of the format, 1 or 2.
        cells: a frame holds all bands of a place in the grid, not one.
        offsets: where the frames start in the file, int64.
        counts: bytes of the frames, int64.
    """

    blob: bytes
    shape: tuple[int, int, int] = field(compare=False)
    dtype: np.dtype[Any] = field(compare=False)
    tile: tuple[int, int] = field(compare=False)
    generation: int = field(compare=False)
    cells: bool = field(compare=False)
    offsets: npt.NDArray[np.int64] = field(compare=False, repr=False)
    counts: npt.NDArray[np.int64] = field(compare=False, repr=False)


def tile(arr: npt.ArrayLike, tile: int = 512) -> tuple[npt.NDArray[Any], Layout]:
    """Cuts an image into tiles, in the order of a file's frames.

    The bands of a place in the grid stand side by side, places row by row. Tiles at the edges are
    padded with zeros.

    Args:
        arr: (bands, height, width); integers, float16 to float64, complex64 or complex128.
        tile: edge of a tile in pixels, 1 to 65535.

    Returns:
        The tiles, (frames, tile, tile), little-endian, and the layout that `write` needs.

    Raises:
        SpecError: arr is no such array.
    """
    a, layout = _layout(arr, tile)
    out = np.zeros((*layout.grid, a.shape[0], tile, tile), layout.dtype)
    for r, c, box in _places(a, layout):
        out[r, c, :, : box.shape[1], : box.shape[2]] = box
    return out.reshape(-1, tile, tile), layout


def tile2(
    arr: npt.ArrayLike, tile: int = 512, *, cells: bool = False
) -> tuple[list[npt.NDArray[Any]], Layout]:
    """Cuts an image into what the frames of a file of generation 2 hold.

    Args:
        arr: (bands, height, width), of a dtype that `tile` takes or of one of package ml_dtypes.
        tile: edge of a tile in pixels, 1 to 65535.
        cells: a frame holds all bands of a place in the grid.

    Returns:
        One little-endian array a frame, and the layout that `write` needs. An array is (height,
        width), of a cell (bands, height, width), less than a tile at the lower and right edges.

    Raises:
        SpecError: arr is no such array.
    """
    a, layout = _layout(arr, tile, 2, cells)
    out: list[npt.NDArray[Any]] = []
    for _, _, box in _places(a, layout):
        out.extend([box] if cells else box)
    return [np.ascontiguousarray(v, layout.dtype) for v in out], layout


def _places(a: npt.NDArray[Any], layout: Layout) -> Iterator[tuple[int, int, npt.NDArray[Any]]]:
    """Yields row and column of each place in the grid, and its part of an image."""
    h, w = layout.tile
    down, across = layout.grid
    for r in range(down):
        for c in range(across):
            yield r, c, a[:, r * h : (r + 1) * h, c * w : (c + 1) * w]


def _layout(
    arr: npt.ArrayLike, tile: int, generation: int = 1, cells: bool = False
) -> tuple[npt.NDArray[Any], Layout]:
    """Returns an array as one, and its layout."""
    a = np.asarray(arr)
    if a.ndim != 3 or not a.size:
        raise SpecError(f"an array of shape {a.shape}, not (bands, height, width)")
    if a.dtype.name not in _NUMPY_DTYPES + (_ML_DTYPES if generation == 2 else []):
        raise SpecError(
            f"{a.dtype} samples cannot be stored in a rumi file of generation {generation}"
        )
    if not 1 <= tile <= 65535 or a.shape[0] > 65535 or max(a.shape) >= 1 << 31:
        raise SpecError(f"tiles of {tile} pixels of an image of shape {a.shape}")
    bands, height, width = a.shape
    dtype = a.dtype.newbyteorder("<")
    return a, Layout((bands, height, width), dtype, (tile, tile), generation, cells)


def write(
    path: Path,
    frames: Iterable[bytes],
    layout: Layout,
    *,
    transform: Sequence[float] | None = None,
    crs: Crs | None = None,
    pixel_is_point: bool = False,
) -> bytes:
    """Writes a rumi file of the layout's generation, whose head the engine makes.

    The file appears under its name once it is complete, in place of one that was there.

    Args:
        path: of the file.
        frames: one OpenZL frame a tile, in the order of `tile` or `tile2`, each with one numeric
            output of the samples' width.
        layout: what those returned beside the tiles.
        transform: affine coefficients (a, b, c, d, e, f), x = a·column + b·row + c and y = d·column
            + e·row + f; together with crs.
        crs: EPSG code, in generation 2 from 1024 on: an int, "EPSG:32718", or an object with
            `to_epsg()`.
        pixel_is_point: transform refers to the centres of pixels, not to their upper left corners.

    Returns:
        The header blob, as `index_file` gives it.

    Raises:
        SpecError: the frames or the georeferencing do not fit.
    """
    stored = [memoryview(f).cast("B") for f in frames]
    t = [] if transform is None else [float(v) for v in transform][:6]  # an Affine has nine
    if transform is not None and len(t) != 6:
        raise SpecError(f"transform is {transform!r}: it must be (a, b, c, d, e, f)")
    counts = np.array([len(f) for f in stored], "<u8").tobytes()
    question = pb.RumiHeadQuestion(
        shape=layout.shape,
        dtype=layout.dtype.name,
        tile=layout.tile,
        generation=layout.generation,
        cells=layout.cells,
        transform=t,
        epsg=0 if crs is None else crs_code("crs", crs),
        pixel_is_point=pixel_is_point,
        counts=counts[:PIECE],
    )
    answer = ask(None, pb.AskRequest(rumi_head=question), None, [counts[PIECE:]])[0]
    blobs: list[bytes] = list(pb.Blobs.FromString(answer).blobs)
    replace_file(path, [blobs[0], *stored])
    return blobs[1]


def parse(blob: bytes | bytearray | memoryview) -> Header:
    """Reads a header blob of either generation, without any I/O.

    Raises:
        CorruptError: it is none.
        UnsupportedError: its version, or its dtype here, is unknown.
        LimitError: it stands for more than 2**20 frames of one size.
    """
    # The engine has a parser too, but a question takes 0.5 ms, and this 0.01 ms.
    b = bytes(blob)
    magic, version = struct.unpack_from("<IH", b.ljust(6, b"\0"))
    generation = 1 if magic == _MAGIC1 else 2
    if len(b) < _HEAD1:
        raise _corrupt(f"{len(b)} bytes")
    if magic not in (_MAGIC1, _MAGIC2):
        raise _corrupt(f"magic {magic:#x}")
    if version != 1:
        raise _unsupported(f"version {version}")
    if generation == 2 and len(b) < _HEAD2:
        raise _corrupt(f"{len(b)} bytes")
    if generation == 2 and b[16:18] == b"\0\0":  # there the height of tiles, here of the steps
        raise _unsupported("generation 3, whose files chaski.read and loaders read")
    width, height, tile_w, tile_h, bands, bits, style = struct.unpack_from("<IIHHHBB", b, 6)
    if not (1 <= width <= _MAX_SIDE and 1 <= height <= _MAX_SIDE and tile_w and tile_h and bands):
        raise _corrupt(f"({bands}, {height}, {width}) in tiles of ({tile_h}, {tile_w})")
    dtype = _dtype(generation, style, bits)
    cells = generation == 2 and b[22] == 1
    if generation == 2 and b[22] > 1:
        raise _corrupt(f"frame unit {b[22]}")
    n = -(-height // tile_h) * -(-width // tile_w) * (1 if cells else bands)
    first, counts = _counts1(b, n) if generation == 1 else _counts2(b, n, bands)
    offsets = first + np.cumsum(counts) - counts
    offsets.flags.writeable = counts.flags.writeable = False
    return Header(
        b, (bands, height, width), dtype, (tile_h, tile_w), generation, cells, offsets, counts
    )


def _corrupt(message: str) -> CorruptError:
    return CorruptError(f"header blob: {message}", kind="corrupt", part="header blob")


def _unsupported(message: str) -> UnsupportedError:
    return UnsupportedError(f"header blob: {message}", kind="unsupported", part="header blob")


def _counts1(b: bytes, n: int) -> tuple[int, npt.NDArray[np.int64]]:
    """Returns where the first frame starts in the file, and the bytes of each."""
    if len(b) != _HEAD1 + 4 * n:
        raise _corrupt(f"{len(b)} bytes for {n} frames")
    counts = np.frombuffer(b, "<u4", offset=_HEAD1).astype(np.int64)
    if not counts.all():
        raise _corrupt("an empty frame")
    return int.from_bytes(b[22:26], "little"), counts


def _counts2(b: bytes, n: int, bands: int) -> tuple[int, npt.NDArray[np.int64]]:
    least, width = struct.unpack_from("<IB", b, 23)
    if not least or width > 32:
        raise _corrupt(f"counts of {width} bits from {least} on")
    if len(b) != _HEAD2 + (n * width + 7) // 8:
        raise _corrupt(f"{len(b)} bytes for {n} frames")
    if not width and n > _MAX_EQUAL_FRAMES:
        raise LimitError(f"header blob: {n} frames of one size", kind="limit", part="header blob")
    bits = np.unpackbits(np.frombuffer(b, np.uint8, offset=_HEAD2), bitorder="little")
    counts = np.zeros(n, np.int64)
    for k in range(width):
        counts |= bits[k : n * width : width].astype(np.int64) << k
    if bits[n * width :].any():
        raise _corrupt("spare bits are not 0")
    if counts.min() or int(counts.max()).bit_length() != width:
        raise _corrupt("counts are not packed in the fewest bits")
    counts += least
    if counts.max() >= 1 << 32:
        raise _corrupt("a frame of 4 GiB")
    # 252 bytes of header and directory, 160 of matrix and keys, and the arrays that do not fit the
    # 8 bytes of their entries: twice 2 a band, 8 and 4 a frame.
    first = 252 + 160 + (4 * bands if bands >= 5 else 0)
    return first + (8 * n if n >= 2 else 0) + (4 * n if n >= 3 else 0), counts


def _dtype(generation: int, style: int, bits: int) -> np.dtype[Any]:
    name = _ENCODINGS.get((style, bits), "")
    if not name or (generation == 1 and name in _ML_DTYPES):
        raise _corrupt(f"samples of {bits} bits with sample format {style}")
    if name not in _ML_DTYPES:
        return _NAMED[name]
    try:
        return np.dtype(getattr(importlib.import_module("ml_dtypes"), name))
    except (ImportError, AttributeError):
        raise _unsupported(f"{name} needs the package ml_dtypes") from None


def index_file(path: AnyPath) -> bytes:
    """Reads the directory of a rumi file, of either generation, and returns its header blob.

    The engine reads it.

    Raises:
        CorruptError: the file breaks the format.
        UnsupportedError: it is no rumi file of a generation that is read here.
        NotFoundError: there is no such file.
    """
    return _index_files([os.fsdecode(path)])[0]


def _index_files(names: Sequence[str]) -> list[bytes]:
    """Returns the blobs of files by one question to the engine, which takes half a millisecond."""
    question = pb.IndexQuestion(paths=map(absolute, names))
    blobs = list(pb.Blobs.FromString(ask(None, pb.AskRequest(index=question), None)[0]).blobs)
    for name, blob in zip(names, blobs, strict=True):
        if int.from_bytes(blob[:4], "little") not in (_MAGIC1, _MAGIC2):
            message = f"{name}: header: not a rumi file, but another TIFF"
            raise UnsupportedError(message, kind="unsupported", file=name, part="header")
    return blobs


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
) -> npt.NDArray[Any]:
    """Reads a window of one file, or of several of equal shape stacked along n.

    The files' own headers are read too, and those given here must be theirs: one that is not is
    named before any pixel is decoded.

    Args:
        paths: a file, or several.
        specs: what `parse` returns for each file, or the blobs; one a path. None takes the files'
            own.
        pattern: einops pattern over the axes n, b, y and x, with or without blanks: "b y x",
            "(nb)yx". Default: "b y x" for one picked file, "n b y x" for several.
        n: files: (start, stop) for a slice, a list for picks in its order.
        b: bands, likewise.
        y: rows of pixels: (start, stop).
        x: columns of pixels: (start, stop).
        num_threads: threads that decode.
        timeout: seconds.
        headers: another name of specs.
        layout: another name of pattern.

    Returns:
        An array in the files' dtype.

    Raises:
        SpecError: the arguments do not fit each other, or a header is that of another file.
        Error: of the kind that fits.
    """
    specs = _either("specs", specs, "headers", headers)
    pattern = _either("pattern", pattern, "layout", layout)
    one = isinstance(paths, (str, bytes, os.PathLike))
    asked: list[Any] = [paths] if one else list(paths)  # type: ignore[arg-type]
    files = [os.fsdecode(p) for p in asked]
    given: Any = () if specs is None else specs
    given = [given] if isinstance(given, (Header, bytes)) else list(given)
    if specs is not None and len(given) != len(files):
        raise SpecError(f"{len(given)} specs for {len(files)} paths")
    dtype: np.dtype[Any] | None = None
    own = _index_files(files) if given else []
    for path, h, blob in zip(files, given, own, strict=specs is not None):
        header = h if isinstance(h, Header) else parse(h)
        if blob != header.blob:
            raise SpecError(f"{path}: the header is that of another file")
        dtype = dtype or header.dtype
    if pattern is None:
        pattern = "n b y x" if _picked(n, len(files)) > 1 else "b y x"
    out = _read.read(
        files, layout=_blanks(pattern), n=n, b=b, y=y, x=x, num_threads=num_threads, timeout=timeout
    )
    # What numpy has no name for comes as bits.
    if dtype is not None and dtype != out.dtype and dtype.itemsize == out.dtype.itemsize:
        out = out.view(dtype)
    return out


def _either(name: str, v: Any, other: str, w: Any) -> Any:
    """Returns the value of an argument that has two names."""
    if v is not None and w is not None:
        raise SpecError(f"{name} and {other} are one argument: it is given twice")
    return w if v is None else v


def _blanks(pattern: str) -> str:
    """Returns a pattern with a blank between its axes, which rumi does not ask for."""
    if not isinstance(pattern, str) or not pattern.strip():
        raise SpecError(f"pattern is {pattern!r}: it must name the axes b, y and x")
    if set(pattern) <= set("nbyx() "):
        return re.sub(r"(?<=[nbyx)])(?=[nbyx(])", " ", pattern)
    return pattern


def _picked(n: Selection | None, files: int) -> int:
    """Returns how many of the files a selection picks."""
    if n is None:
        return files
    if isinstance(n, tuple):
        n = slice(*n)
    return len(range(files)[n]) if isinstance(n, slice) else len(n)
