"""The reference of rumi files: writes them by struct alone, without the engine."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from chaski.rumi import Layout

_MAGIC1, _MAGIC2 = 0x333C333C, 0x45564F4C

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

_ML_DTYPES = {
    **{(1, 1): "uint1", (1, 2): "uint2", (1, 4): "uint4", (2, 2): "int2", (2, 4): "int4"},
    **{(100, 8): "float8_e4m3fn", (101, 8): "float8_e5m2", (102, 16): "bfloat16"},
    **{(103, 8): "float8_e8m0fnu", (104, 6): "float6_e2m3fn", (105, 6): "float6_e3m2fn"},
    **{(106, 4): "float4_e2m1fn"},
}
"""Types of the package ml_dtypes that generation 2 has besides."""


def _encoding(dtype: np.dtype[Any]) -> tuple[int, int]:
    """Returns sample format and bits."""
    name = dtype.newbyteorder("<").str.replace("|", "<")
    known = _DTYPES
    if dtype.name in _ML_DTYPES.values():
        name, known = dtype.name, _ML_DTYPES
    return next(encoding for encoding, other in known.items() if other == name)


_Field: TypeAlias = "tuple[int, int, bytes]"  # tag, type, values


def _shorts(tag: int, *v: int) -> _Field:
    return tag, _SHORT, struct.pack(f"<{len(v)}H", *v)


def _longs(tag: int, *v: int) -> _Field:
    return tag, _LONG, struct.pack(f"<{len(v)}I", *v)


def _doubles(tag: int, *v: float) -> _Field:
    return tag, _DOUBLE, struct.pack(f"<{len(v)}d", *v)


def _geo_fields(place: tuple[Sequence[float], int, bool] | None, geographic: bool) -> list[_Field]:
    """Returns the tags that say where an image of generation 1 lies; none for nowhere."""
    if place is None:
        return []
    a, b, c, d, e, f = place[0]
    if b == 0 and d == 0 and e < 0:
        return [
            _doubles(_SCALE, a, -e, 0),
            _doubles(_TIEPOINT, 0, 0, 0, c, f, 0),
            _keys(place, geographic),
        ]
    return [_matrix(place[0]), _keys(place, geographic)]


def _geo_fields2(place: tuple[Sequence[float], int, bool] | None, geographic: bool) -> list[_Field]:
    """Returns the two tags that every file of generation 2 has."""
    if place is None:
        nowhere = _shorts(_GEO_KEYS, 1, 1, 0, 3, 1024, 0, 1, 0, 1025, 0, 1, 1, 2048, 0, 1, 0)
        return [_matrix([1, 0, 0, 0, 1, 0]), nowhere]
    return [_matrix(place[0]), _keys(place, geographic)]


def _matrix(t: Sequence[float]) -> _Field:
    a, b, c, d, e, f = t
    return _doubles(_MATRIX, a, b, 0, c, d, e, 0, f, 0, 0, 0, 0, 0, 0, 0, 1)


def _keys(place: tuple[Sequence[float], int, bool], geographic: bool) -> _Field:
    """Returns the three keys that GeoTIFF needs at least."""
    _, code, point = place
    model, key = (2, 2048) if geographic else (1, 3072)
    keys = (1024, 0, 1, model, 1025, 0, 1, 2 if point else 1, key, 0, 1, code)
    return _shorts(_GEO_KEYS, 1, 1, 0, 3, *keys)


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
    frames: Sequence[bytes],
    layout: Layout,
    place: tuple[Sequence[float], int, bool] | None = None,
    *,
    geographic: bool = False,
) -> tuple[bytes, bytes]:
    """Returns a rumi file of the layout's generation, and its header blob.

    Args:
        frames: one a tile.
        layout: of the image.
        place: transform, EPSG code, and whether the transform refers to the centres of pixels.
        geographic: the CRS has latitude and longitude.
    """
    bands, height, width = layout.shape
    style, bits = _encoding(layout.dtype)
    counts = np.array([len(f) for f in frames], np.int64)
    fields_of = _geo_fields2 if layout.generation == 2 else _geo_fields
    geo = fields_of(place, geographic)

    def head(base: int) -> bytes:
        arrays = [base + np.cumsum(counts) - counts, counts]
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
    data = b"".join([head(base), *frames])
    generation = layout.generation
    grid = _grid(generation, width, height, layout.tile[1], layout.tile[0], bands, bits, style)
    if generation == 1:
        return data, grid + struct.pack("<I", base) + counts.astype("<u4").tobytes()
    return data, grid + _tail2(counts, layout.cells and bands > 1)


def _tail2(counts: npt.NDArray[np.int64], cells: bool) -> bytes:
    """Returns what a blob of generation 2 ends with: unit and counts."""
    least = int(counts.min())
    width = int(counts.max() - least).bit_length()
    return struct.pack("<BIB", cells, least, width) + _pack(counts - least, width)


def _grid(generation: int, *numbers: int) -> bytes:
    """Returns what blobs of both generations start with: width to sample format."""
    magic = _MAGIC1 if generation == 1 else _MAGIC2
    return struct.pack("<IHIIHHHBB", magic, 1, *numbers)


def _pack(v: npt.NDArray[np.int64], width: int) -> bytes:
    """Returns numbers in width bits each, least significant bit first."""
    bits = np.empty((len(v), width), np.uint8)
    for k in range(width):
        bits[:, k] = v >> k & 1
    return np.packbits(bits.ravel(), bitorder="little").tobytes()
