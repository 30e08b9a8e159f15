"""The receiver's arithmetic is the engine's, bit for bit, judged one number at a time."""

from __future__ import annotations

import math
import struct
import zlib

import numpy as np
import pytest

from chaski import PayloadError
from chaski._convert import Converter, fill_element, to_bfloat16, to_uint8
from chaski._payload import DTYPES, Convert

NUMPY = {name: dtype for name, dtype in DTYPES.values()}
SOURCES = ["uint8", "uint16", "int8", "int16", "int32", "uint32", "int64", "uint64"]
FLOATS = ["float16", "float32", "float64", "bfloat16"]
RESULTS = ["float32", "float16", "bfloat16", "uint8"]


def f32(x: float) -> float:
    """Rounds to float32, to the nearest even, in Python's own arithmetic."""
    try:
        return struct.unpack("<f", struct.pack("<f", x))[0]
    except OverflowError:
        return math.copysign(math.inf, x)


def slow_f16(x: float) -> int:
    """Returns the bits of the nearest float16 (ties to even), from the definition of the format."""
    if math.isnan(x):
        return 0x7E00
    sign = 0x8000 if math.copysign(1, x) < 0 else 0
    x = abs(x)
    if x >= 65520:
        return sign | 0x7C00
    if x < 2**-14:
        return sign | round(x * 2**24)  # Python rounds ties to even
    m, e = math.frexp(x)  # x = m * 2**e, 0.5 <= m < 1
    q = round(m * 2**11)
    return sign | ((e + 14 << 10) + q - 1024)


def slow_bf16(x: float) -> int:
    """Returns the bits of the nearest bfloat16 of a float32 (ties to even)."""
    bits = struct.unpack("<I", struct.pack("<f", x))[0]
    if math.isnan(x):
        return bits >> 16 & 0x8000 | 0x7FC0
    low, high = bits & 0xFFFF, bits >> 16
    return high + (low > 0x8000 or (low == 0x8000 and high & 1))


def slow_u8(x: float) -> int:
    return 0 if math.isnan(x) else round(min(max(x, 0.0), 255.0))


def value_of(bits, name: str) -> float:
    if name == "bfloat16":
        return struct.unpack("<f", struct.pack("<I", int(bits) << 16))[0]
    return bits.item()


def slow(src: np.ndarray, name: str, c: Convert, shape, mask=None) -> list[float | int]:
    """The formula of proto/chaski/v1/batch.fbs, one element after the other."""
    out: list[float | int] = []
    inner = math.prod(shape[c.band_axis + 1 :]) if c.band_axis >= 0 else 1
    bands = shape[c.band_axis] if c.band_axis >= 0 else 1
    arithmetic = len(c.scale) or len(c.offset) or c.clip
    for i, s in enumerate(src.reshape(-1)):
        x = value_of(s, name)
        if arithmetic or c.to != "float16":
            if isinstance(x, int):  # int to float32 in one rounding
                x = float(np.float32(s))
            elif c.to != "uint8" or arithmetic:
                x = f32(x)
        if len(c.scale) or len(c.offset):
            band = i // inner % bands
            a = float(c.scale[band % len(c.scale)]) if len(c.scale) else 1.0
            b = float(c.offset[band % len(c.offset)]) if len(c.offset) else 0.0
            x = f32(
                f32(x * a) + b
            )  # both exact in float64 before the rounding, or nearly: see below
        if c.clip:
            x = c.clip[0] if x < c.clip[0] else x
            x = c.clip[1] if x > c.clip[1] else x
        if mask is not None and mask.reshape(-1)[i] == 0:
            x = f32(c.fill) if c.to != "float16" else c.fill
        out.append(
            {"float32": lambda v: v, "float16": slow_f16, "bfloat16": slow_bf16, "uint8": slow_u8}[
                c.to
            ](x)
        )
    return out


def convert(src, name, c, shape, mask=None, cuts=()):
    dst = np.empty(src.size, NUMPY[c.to])
    k = Converter(c, src.reshape(-1), dst, shape, name == "bfloat16")
    for cut in cuts:
        k.advance(cut)
    k.finish(None if mask is None else mask.reshape(-1))
    return dst


def same(got: np.ndarray, want: list[float | int], to: str) -> None:
    """Compares bits; any NaN equals any other, because the formats leave its bits open."""
    if to == "float32":
        want_bits = np.array(want, np.float64).astype(np.float32).view(np.uint32)
        bits, nan = got.view(np.uint32), np.isnan(got)
    elif to == "float16":
        want_bits = np.array(want, np.uint16)
        bits, nan = got.view(np.uint16), np.isnan(got)
    else:
        want_bits, bits = np.array(want, got.dtype), got
        nan = np.zeros(len(got), bool)
    w_nan = want_bits.view(np.float16 if to == "float16" else np.float32) if "float" in to else None
    if to in ("float32", "float16"):
        assert w_nan is not None
        np.testing.assert_array_equal(nan, np.isnan(w_nan))
    np.testing.assert_array_equal(bits[~nan], want_bits[~nan])


def source(name: str, n: int, rng: np.random.Generator) -> np.ndarray:
    """Samples of a dtype: random bits, and extreme values."""
    dtype = NUMPY[name]
    raw = rng.integers(0, 256, n * dtype.itemsize, np.uint8).view(dtype)
    if dtype.kind in "iu" and name != "bfloat16":
        i = np.iinfo(dtype)
        raw[:3] = [i.min, i.max, 1]
    elif dtype.kind == "f":
        with np.errstate(all="ignore"):
            # Random bits have extreme exponents, so most samples are in the range of images.
            raw[: n // 2] = (rng.normal(size=n // 2) * 300).astype(dtype)
        raw[:5] = [0.0, -0.0, np.inf, -np.inf, np.nan]
    return raw


def arrays(*v: float) -> np.ndarray:
    return np.array(v, np.float32)


CASES = {
    "cast": Convert("float32", arrays(), arrays(), -1, None, 0.0, None),
    "one": Convert("float32", arrays(0.0123), arrays(-3.7), -1, None, 0.0, None),
    "bands": Convert("float32", arrays(0.1, 2.5, 1e-4), arrays(-1, 0.3, 7), 1, None, 0.0, None),
    "clip": Convert("float32", arrays(1e-3), arrays(-0.5), -1, (0.0, 1.0), 0.0, None),
    "clip only": Convert("float32", arrays(), arrays(), -1, (-2.0, 200.0), 0.0, None),
    "negative zero": Convert("float32", arrays(-1), arrays(-0.0), -1, (0.0, 9.0), 0.0, None),
    "scale only": Convert("float32", arrays(-0.3), arrays(), -1, None, 0.0, None),
    "band last": Convert("float32", arrays(0.1, 2.5, 1e-4), arrays(-1, 0.3, 7), 2, None, 0.0, None),
}


@pytest.mark.parametrize("to", RESULTS)
@pytest.mark.parametrize("name", SOURCES + FLOATS)
@pytest.mark.parametrize("case", CASES)
def test_arithmetic(case, name, to):
    rng = np.random.default_rng(zlib.crc32(f"{case} {name} {to}".encode()))
    c = CASES[case]
    c = Convert(to, c.scale, c.offset, c.band_axis, c.clip, 7.0, None)
    shape = (4, 3, 25) if c.band_axis == 1 else (10, 10, 3)
    src = source(name, math.prod(shape), rng)
    with np.errstate(all="ignore"):
        same(convert(src, name, c, shape), slow(src, name, c, shape), to)


def test_slow_product_is_exact():
    """The judge rounds products and sums in float64, which equals a single rounding.

    A product of two float32 is exact in float64. A sum is not always, but float64 has more than
    2 * 24 + 2 bits, so rounding twice gives what rounding once does (Figueroa, 1995).
    """
    assert np.finfo(np.float64).nmant + 1 >= 2 * (np.finfo(np.float32).nmant + 1) + 2


@pytest.mark.parametrize("shape,axis", [((5, 7, 3), 2), ((2, 3, 70000), 1), ((3, 40, 50, 2), 3)])
def test_any_cuts_give_the_same(shape, axis):
    rng = np.random.default_rng(1)
    n, bands = math.prod(shape), shape[axis]
    src = rng.integers(0, 1 << 16, n, np.uint16)
    scale = rng.random(bands).astype(np.float32)
    offset = rng.random(bands).astype(np.float32)
    c = Convert("float32", scale, offset, axis, None, 0.0, None)
    along = [1] * len(shape)
    along[axis] = bands
    x = src.reshape(shape).astype(np.float32)
    want = (x * scale.reshape(along) + offset.reshape(along)).reshape(-1)
    for cuts in [(), (n,), tuple(sorted(rng.integers(0, n + 50, 9).tolist())), range(1, n, n // 5)]:
        assert np.array_equal(convert(src, "uint16", c, shape, cuts=cuts), want)


@pytest.mark.parametrize("to", RESULTS)
def test_fill(to):
    rng = np.random.default_rng(2)
    shape = (3, 50_000)
    src = rng.integers(0, 256, 150_000, np.uint8)
    mask = rng.integers(0, 3, shape, np.uint8)
    fill = 3.0 if to == "uint8" else 0.1
    c = Convert(to, arrays(0.5), arrays(1), -1, None, fill, None)
    got = convert(src, "uint8", c, shape, mask)
    small = slice(0, 500)
    want = slow(src[small], "uint8", c, (500,), mask.reshape(-1)[small])
    same(got[small], want, to)
    hole = mask.reshape(-1) == 0
    assert (got[hole] == fill_element(fill, to)[0]).all()
    full = convert(src, "uint8", c, shape)
    assert np.array_equal(got[~hole], full[~hole])


def test_fill_elements():
    assert np.isnan(fill_element(math.nan, "float32")[0])
    assert fill_element(math.nan, "bfloat16")[0] == 0x7FC0
    assert fill_element(-math.inf, "float16").view(np.uint16)[0] == 0xFC00
    # Rounded once, not through float32: 1 + 2**-11 + 2**-40 lies above the tie.
    assert fill_element(1 + 2**-11 + 2**-40, "float16").view(np.uint16)[0] == 0x3C01
    for v in (-1.0, 256.0, 0.5, math.nan, math.inf):
        with pytest.raises(PayloadError, match="uint8"):
            fill_element(v, "uint8")


def test_every_bfloat16_tie():
    high = np.arange(0x7F80, dtype=np.uint32)
    for low in (0, 1, 0x7FFF, 0x8000, 0x8001, 0xFFFF):
        src = (high << 16 | low).view(np.float32)
        dst = np.empty(len(src), np.uint16)
        to_bfloat16(src, dst)
        assert dst.tolist() == [slow_bf16(float(v)) for v in src]


def test_uint8_rounding():
    src = np.arange(-300, 600, 0.25, np.float32)
    dst = np.empty(len(src), np.uint8)
    to_uint8(src, dst)
    assert dst.tolist() == [slow_u8(float(v)) for v in src]


def test_empty():
    c = CASES["bands"]
    assert convert(np.empty(0, np.uint8), "uint8", c, (0, 3, 4)).size == 0
    assert convert(np.empty(0, np.uint8), "uint8", c, (2, 3, 0)).size == 0
