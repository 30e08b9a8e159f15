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
import json
import math
import os
import re
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from chaski import _read
from chaski._files import replace_file
from chaski._proto import chaski_pb2 as pb
from chaski._read import Selection, Slice, ask
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

# TIFF tags and types.
_WIDTH, _HEIGHT, _BITS, _COMPRESSION, _PHOTOMETRIC, _SAMPLES = 256, 257, 258, 259, 262, 277
_PLANAR, _PREDICTOR, _TILE_W, _TILE_H, _OFFSETS, _COUNTS, _FORMAT = (
    284,
    317,
    322,
    323,
    324,
    325,
    339,
)
_SCALE, _TIEPOINT, _MATRIX, _GEO_KEYS = 33550, 33922, 34264, 34735
_SHORT, _LONG, _DOUBLE, _LONG8 = 3, 4, 12, 16
_OPENZL = 60000
_DIRECTORY = 16

_DTYPES: dict[tuple[int, int], str] = {
    **{(1, n): f"<u{n // 8}" for n in (8, 16, 32, 64)},
    **{(2, n): f"<i{n // 8}" for n in (8, 16, 32, 64)},
    **{(3, n): f"<f{n // 8}" for n in (16, 32, 64)},
    **{(6, n): f"<c{n // 8}" for n in (64, 128)},
}
"""numpy dtypes by (sample format, bits)."""

_PAIRS = {(5, 32): "<i2", (5, 64): "<i4", (6, 32): "<f2"}
"""Components of the complex types that numpy has no name for."""

_ML_DTYPES = {
    **{(1, 1): "uint1", (1, 2): "uint2", (1, 4): "uint4", (2, 2): "int2", (2, 4): "int4"},
    **{(100, 8): "float8_e4m3fn", (101, 8): "float8_e5m2", (102, 16): "bfloat16"},
    **{(103, 8): "float8_e8m0fnu", (104, 6): "float6_e2m3fn", (105, 6): "float6_e3m2fn"},
    **{(106, 4): "float4_e2m1fn"},
}
"""Types of the package ml_dtypes that generation 2 has besides."""

AnyPath: TypeAlias = "Path | bytes"


def _corrupt(part: str, message: str, file: str = "") -> CorruptError:
    text = f"{file}: {part}: {message}" if file else f"{part}: {message}"
    return CorruptError(text, kind="corrupt", file=file, part=part)


def _unsupported(part: str, message: str, file: str = "") -> UnsupportedError:
    text = f"{file}: {part}: {message}" if file else f"{part}: {message}"
    return UnsupportedError(text, kind="unsupported", file=file, part=part)


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
    a, layout = _layout(arr, Layout((0, 0, 0), np.dtype("u1"), (tile, tile)))
    down, across = layout.grid
    out = np.zeros((down, across, a.shape[0], tile, tile), layout.dtype)
    for r in range(down):
        for c in range(across):
            box = a[:, r * tile : (r + 1) * tile, c * tile : (c + 1) * tile]
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
    a, layout = _layout(arr, Layout((0, 0, 0), np.dtype("u1"), (tile, tile), 2, cells))
    down, across = layout.grid
    out: list[npt.NDArray[Any]] = []
    for r in range(down):
        for c in range(across):
            box = a[:, r * tile : (r + 1) * tile, c * tile : (c + 1) * tile]
            out.extend([box] if cells else box)
    return [np.ascontiguousarray(v, layout.dtype) for v in out], layout


def _layout(arr: npt.ArrayLike, like: Layout) -> tuple[npt.NDArray[Any], Layout]:
    """Returns an array as one, and its layout."""
    a = np.asarray(arr)
    if a.ndim != 3 or not a.size:
        raise SpecError(f"an array of shape {a.shape}, not (bands, height, width)")
    _encoding(a.dtype, like.generation)
    if not 1 <= like.tile[0] <= 65535 or a.shape[0] > 65535 or max(a.shape) > _MAX_SIDE:
        raise SpecError(f"tiles of {like.tile[0]} pixels of an image of shape {a.shape}")
    bands, height, width = a.shape
    dtype = a.dtype.newbyteorder("<")
    return a, replace(like, shape=(bands, height, width), dtype=dtype)


def _encoding(dtype: np.dtype[Any], generation: int) -> tuple[int, int]:
    """Returns sample format and bits."""
    name = dtype.newbyteorder("<").str.replace("|", "<")
    known = {**_DTYPES}
    if generation == 2 and dtype.name in _ML_DTYPES.values():
        name, known = dtype.name, _ML_DTYPES
    for encoding, other in known.items():
        if other == name:
            return encoding
    raise SpecError(f"{dtype} samples cannot be stored in a rumi file of generation {generation}")


def _epsg(crs: Crs) -> int:
    code = crs_code("crs", crs)
    if code >= 32767:
        raise SpecError(f"crs {crs!r} has no EPSG code of 1 to 32766")
    return code


_Field: TypeAlias = "tuple[int, int, bytes]"  # tag, type, values


def _shorts(tag: int, *v: int) -> _Field:
    return tag, _SHORT, struct.pack(f"<{len(v)}H", *v)


def _longs(tag: int, *v: int) -> _Field:
    return tag, _LONG, struct.pack(f"<{len(v)}I", *v)


def _doubles(tag: int, *v: float) -> _Field:
    return tag, _DOUBLE, struct.pack(f"<{len(v)}d", *v)


def _geo_fields(
    transform: Sequence[float] | None, crs: Crs | None, pixel_is_point: bool
) -> list[_Field]:
    """Returns the tags that say where an image of generation 1 lies; none for nowhere."""
    if transform is None and crs is None:
        return []
    t, keys = _place(transform, crs, pixel_is_point)
    a, b, c, d, e, f = t
    if b == 0 and d == 0 and e < 0:
        place = [_doubles(_SCALE, a, -e, 0), _doubles(_TIEPOINT, 0, 0, 0, c, f, 0)]
    else:
        place = [_matrix(t)]
    return [*place, keys]


def _geo_fields2(
    transform: Sequence[float] | None, crs: Crs | None, pixel_is_point: bool
) -> list[_Field]:
    """Returns the two tags that every file of generation 2 has."""
    if transform is None and crs is None:
        nowhere = _shorts(_GEO_KEYS, 1, 1, 0, 3, 1024, 0, 1, 0, 1025, 0, 1, 1, 2048, 0, 1, 0)
        return [_matrix([1, 0, 0, 0, 1, 0]), nowhere]
    t, keys = _place(transform, crs, pixel_is_point)
    if struct.unpack("<H", keys[2][-2:])[0] < 1024:
        raise SpecError(f"crs {crs!r}: generation 2 takes EPSG codes of 1024 to 32766")
    return [_matrix(t), keys]


def _matrix(t: Sequence[float]) -> _Field:
    a, b, c, d, e, f = t
    return _doubles(_MATRIX, a, b, 0, c, d, e, 0, f, 0, 0, 0, 0, 0, 0, 0, 1)


def _place(
    transform: Sequence[float] | None, crs: Crs | None, pixel_is_point: bool
) -> tuple[list[float], _Field]:
    """Returns the checked transform, and the three keys that GeoTIFF needs at least."""
    if transform is None or crs is None:
        raise SpecError("transform and crs belong together")
    t = [float(v) for v in transform][:6]  # an affine.Affine has the row 0 0 1 besides
    if len(t) != 6 or not all(map(math.isfinite, t)):
        raise SpecError(f"transform {transform!r} is not (a, b, c, d, e, f)")
    code = _epsg(crs)
    answer = ask(None, pb.AskRequest(crs=pb.CrsQuestion(epsg=code)), None)[0]
    model, key = (2, 2048) if json.loads(answer)["geographic"] else (1, 3072)
    keys = (1024, 0, 1, model, 1025, 0, 1, 2 if pixel_is_point else 1, key, 0, 1, code)
    return t, _shorts(_GEO_KEYS, 1, 1, 0, 3, *keys)


_SIZES = {_SHORT: 2, _LONG: 4, _DOUBLE: 8, _LONG8: 8}


def _directory(fields: Sequence[_Field]) -> bytes:
    """Returns the head of a BigTIFF with one directory, and the values that do not fit in it."""
    entries, values = b"", b""
    end = _DIRECTORY + 8 + 20 * len(fields) + 8
    for tag, kind, data in fields:
        entries += struct.pack("<HHQ", tag, kind, len(data) // _SIZES[kind])
        if len(data) <= 8:
            entries += data.ljust(8, b"\0")
        else:
            entries += struct.pack("<Q", end + len(values))
            values += data
    head = struct.pack("<2sHHHQQ", b"II", 43, 8, 0, _DIRECTORY, len(fields))
    return head + entries + bytes(8) + values


def write(
    path: Path,
    frames: Iterable[bytes],
    layout: Layout,
    *,
    transform: Sequence[float] | None = None,
    crs: Crs | None = None,
    pixel_is_point: bool = False,
) -> bytes:
    """Writes a rumi file of the layout's generation.

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
    bands, height, width = layout.shape
    style, bits = _encoding(layout.dtype, layout.generation)
    stored = [memoryview(f).cast("B") for f in frames]
    if len(stored) != layout.frames:
        raise SpecError(f"{len(stored)} frames for {layout.frames} tiles")
    for i, f in enumerate(stored):
        if not 0 < len(f) < 1 << 32:
            raise SpecError(f"frame {i} of {len(f)} bytes")
    counts = np.array([len(f) for f in stored], np.int64)
    if layout.generation == 2:
        geo = _geo_fields2(transform, crs, pixel_is_point)
    else:
        geo = _geo_fields(transform, crs, pixel_is_point)

    def head(base: int) -> bytes:
        arrays = [_run(base, counts)[0], counts]
        extra = []
        if layout.generation == 1:
            # TIFF's arrays hold all of band 0, then all of band 1; the frames of a place lie
            # together.
            arrays = [v.reshape(-1, bands).T.ravel() for v in arrays]
            extra = [_shorts(_COMPRESSION, _OPENZL), _shorts(_PHOTOMETRIC, 1)]
            extra += [_shorts(_PLANAR, 2), _shorts(_PREDICTOR, 1)]
        fields = [
            _longs(_WIDTH, width),
            _longs(_HEIGHT, height),
            _shorts(_BITS, *[bits] * bands),
            _shorts(_SAMPLES, bands),
            _shorts(_TILE_W, layout.tile[1]),
            _shorts(_TILE_H, layout.tile[0]),
            (_OFFSETS, _LONG8, arrays[0].astype("<u8").tobytes()),
            (_COUNTS, _LONG, arrays[1].astype("<u4").tobytes()),
            _shorts(_FORMAT, *[style] * bands),
        ]
        return _directory([*sorted([*fields, *extra], key=lambda f: f[0]), *geo])

    base = len(head(0))
    if base >= 1 << 32:
        raise SpecError(f"a directory of {base} bytes")
    replace_file(path, [head(base), *stored])
    generation = layout.generation
    grid = _grid(generation, width, height, layout.tile[1], layout.tile[0], bands, bits, style)
    if generation == 1:
        return grid + struct.pack("<I", base) + counts.astype("<u4").tobytes()
    return grid + _tail2(counts, layout.cells and bands > 1)


def _tail2(counts: npt.NDArray[np.int64], cells: bool) -> bytes:
    """Returns what a blob of generation 2 ends with: unit and counts."""
    least = int(counts.min())
    width = int(counts.max() - least).bit_length()
    return struct.pack("<BIB", cells, least, width) + _pack(counts - least, width)


def _grid(generation: int, *numbers: int) -> bytes:
    """Returns what blobs of both generations start with: width to sample format."""
    magic = _MAGIC1 if generation == 1 else _MAGIC2
    return struct.pack("<IHIIHHHBB", magic, 1, *numbers)


def parse(blob: bytes | bytearray | memoryview) -> Header:
    """Reads a header blob of either generation, without any I/O.

    Raises:
        CorruptError: it is none.
        UnsupportedError: its version, or its dtype here, is unknown.
        LimitError: it stands for more than 2**20 frames of one size.
    """
    b = bytes(blob)
    if len(b) < _HEAD1:
        raise _corrupt("header blob", f"{len(b)} bytes")
    magic, version = struct.unpack_from("<IH", b)
    if magic not in (_MAGIC1, _MAGIC2):
        raise _corrupt("header blob", f"magic {magic:#x}")
    generation = 1 if magic == _MAGIC1 else 2
    if version != 1:
        raise _unsupported("header blob", f"version {version}")
    if generation == 2 and len(b) < _HEAD2:
        raise _corrupt("header blob", f"{len(b)} bytes")
    width, height, tile_w, tile_h, bands, bits, style = struct.unpack_from("<IIHHHBB", b, 6)
    if not (1 <= width <= _MAX_SIDE and 1 <= height <= _MAX_SIDE and tile_w and tile_h and bands):
        raise _corrupt(
            "header blob", f"({bands}, {height}, {width}) in tiles of ({tile_h}, {tile_w})"
        )
    dtype = _dtype(generation, style, bits)
    places = -(-height // tile_h) * -(-width // tile_w)
    if generation == 1:
        cells = False
        offsets, counts = _frames1(b, places * bands)
    else:
        if b[22] > 1:
            raise _corrupt("header blob", f"frame unit {b[22]}")
        cells = b[22] == 1
        offsets, counts = _frames2(b, places if cells else places * bands, bands)
    return Header(
        b, (bands, height, width), dtype, (tile_h, tile_w), generation, cells, offsets, counts
    )


_Frames: TypeAlias = "tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]"


def _run(base: int, counts: npt.NDArray[np.int64]) -> _Frames:
    """Returns offsets and counts of frames without gaps."""
    offsets = base + np.concatenate((np.zeros(1, np.int64), np.cumsum(counts)[:-1]))
    offsets.flags.writeable = counts.flags.writeable = False
    return offsets, counts


def _frames1(b: bytes, n: int) -> _Frames:
    if len(b) != _HEAD1 + 4 * n:
        raise _corrupt("header blob", f"{len(b)} bytes for {n} frames")
    counts = np.frombuffer(b, "<u4", offset=_HEAD1).astype(np.int64)
    if not counts.all():
        raise _corrupt("header blob", "an empty frame")
    return _run(struct.unpack_from("<I", b, 22)[0], counts)


def _base2(bands: int, frames: int) -> int:
    """Returns where the first frame of a file of generation 2 stands."""
    many = 4 * bands if bands >= 5 else 0
    arrays = (8 * frames if frames >= 2 else 0) + (4 * frames if frames >= 3 else 0)
    return 252 + 128 + 32 + many + arrays


def _frames2(b: bytes, n: int, bands: int) -> _Frames:
    least, width = struct.unpack_from("<IB", b, 23)
    if not least or width > 32:
        raise _corrupt("header blob", f"counts of {width} bits from {least} on")
    if len(b) != _HEAD2 + (n * width + 7) // 8:
        raise _corrupt("header blob", f"{len(b)} bytes for {n} frames")
    if not width and n > _MAX_EQUAL_FRAMES:
        raise LimitError(f"header blob: {n} frames of one size", kind="limit", part="header blob")
    counts = np.zeros(n, np.int64)
    if width:
        bits = np.unpackbits(np.frombuffer(b, np.uint8, offset=_HEAD2), bitorder="little")
        if bits[n * width :].any():
            raise _corrupt("header blob", "spare bits are not 0")
        table = bits[: n * width].reshape(n, width)
        for k in range(width):
            counts |= table[:, k].astype(np.int64) << k
    if counts.min() or int(counts.max()).bit_length() != width:
        raise _corrupt("header blob", "counts are not packed in the fewest bits")
    counts += least
    if counts.max() >= 1 << 32:
        raise _corrupt("header blob", "a frame of 4 GiB")
    return _run(_base2(bands, n), counts)


def _dtype(generation: int, style: int, bits: int) -> np.dtype[Any]:
    encoding = (style, bits)
    if encoding in _DTYPES:
        return np.dtype(_DTYPES[encoding])
    if encoding in _PAIRS:
        return np.dtype([("re", _PAIRS[encoding]), ("im", _PAIRS[encoding])])
    if generation == 2 and encoding in _ML_DTYPES:
        name = _ML_DTYPES[encoding]
        try:
            return np.dtype(getattr(importlib.import_module("ml_dtypes"), name))
        except (ImportError, AttributeError):
            raise _unsupported("header blob", f"{name} needs the package ml_dtypes") from None
    raise _corrupt("header blob", f"samples of {bits} bits with sample format {style}")


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
            raise _unsupported("header", "not a rumi file", name)  # but another TIFF
    return blobs


def _pack(v: npt.NDArray[np.int64], width: int) -> bytes:
    """Returns numbers in width bits each, least significant bit first."""
    bits = np.empty((len(v), width), np.uint8)
    for k in range(width):
        bits[:, k] = v >> k & 1
    return np.packbits(bits.ravel(), bitorder="little").tobytes()


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
