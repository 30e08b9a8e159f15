"""Random Zarr arrays by zarr-python 3, and what it reads of them.

python random_arrays.py DIRECTORY SEED COUNT writes COUNT arrays to DIRECTORY/NUMBER and prints a
line of JSON for each: {"path", "format", "shape", "dtype", "codecs", "reads": [{"lo", "hi",
"sha256"}]}. A hash is that of the cells of a box, little-endian in C order, with NaN of every kind
replaced by one. An array that zarr-python cannot write or read back is left out, with a line on
stderr.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import random
import sys
import warnings
from pathlib import Path

import numcodecs
import numcodecs.zarr3
import numpy as np
import zarr
from zarr.codecs import (
    BloscCodec,
    BytesCodec,
    Crc32cCodec,
    GzipCodec,
    ShardingCodec,
    TransposeCodec,
    ZstdCodec,
)

warnings.simplefilter("ignore")

DTYPES = [
    *("bool", "int8", "uint8", "int16", "uint16", "int32", "uint32"),
    *("int64", "uint64", "float16", "float32", "float64"),
]
BLOSC = ["lz4", "lz4hc", "blosclz", "zstd", "zlib"]
try:
    numcodecs.Blosc(cname="snappy").encode(b"0" * 4096)
    BLOSC.append("snappy")
except ValueError:
    pass  # this build of numcodecs has no snappy


def divisor(r: random.Random, n: int) -> int:
    return r.choice([d for d in range(1, n + 1) if n % d == 0])


def samples(r: random.Random, shape: list[int], dtype: np.dtype) -> np.ndarray:
    rng = np.random.default_rng(r.getrandbits(32))
    kind = r.choice(["noise", "smooth", "few", "runs"])
    if kind == "noise" and dtype.kind in "iub":
        a = rng.integers(0, 2, shape) if dtype.kind == "b" else rng.integers(0, 1 << 62, shape)
    elif kind == "noise":
        a = rng.standard_normal(shape)
    elif kind == "few":
        a = rng.integers(0, 3, shape)
    elif kind == "runs":
        a = np.sort(rng.integers(0, 50, int(np.prod(shape)))).reshape(shape)
    else:
        grid = np.meshgrid(*(np.arange(n) for n in shape), indexing="ij", sparse=True)
        a = sum(g * r.randint(1, 5) for g in grid)
    a = np.asarray(a).astype(dtype)
    if dtype.kind == "f" and r.random() < 0.3:
        a.reshape(-1)[:: r.randint(2, 9)] = np.nan
    return a


def fill(r: random.Random, dtype: np.dtype) -> object:
    if dtype.kind == "b":
        return r.random() < 0.5
    if dtype.kind == "f":
        return r.choice([0.0, -1.5, float("nan"), float("inf"), float("-inf")])
    info = np.iinfo(dtype)
    return r.choice([0, 1, int(info.min), int(info.max)])


def compress3(r: random.Random, size: int) -> list[object]:
    blosc = lambda: BloscCodec(  # noqa: E731
        typesize=size,
        cname=r.choice(BLOSC),
        clevel=r.randint(0, 9),
        shuffle=r.choice(["noshuffle", "shuffle", "bitshuffle"]),
        blocksize=r.choice([0, 0, 256, 1000]),
    )
    one = r.choice(
        [
            lambda: [],
            lambda: [ZstdCodec(level=r.randint(-3, 9), checksum=r.random() < 0.5)],
            lambda: [GzipCodec(level=r.randint(0, 9))],
            lambda: [blosc()],
            lambda: [blosc()],
            lambda: [Crc32cCodec()],
        ]
    )()
    if r.random() < 0.2 and one and not isinstance(one[0], Crc32cCodec):
        one = [Crc32cCodec(), *one]
    if r.random() < 0.2:
        one = [*one, Crc32cCodec()]
    if r.random() < 0.1:
        one = [numcodecs.zarr3.Shuffle(elementsize=size), *one]
    return one


def codecs3(r: random.Random, rank: int, size: int, chunk: list[int], depth: int) -> list[object]:
    if depth:
        inner = [divisor(r, n) for n in chunk]
        index = [BytesCodec(endian=r.choice(["little", "big"]))]
        if r.random() < 0.8:
            index.append(Crc32cCodec())
        return [
            ShardingCodec(
                chunk_shape=tuple(inner),
                codecs=codecs3(r, rank, size, inner, depth - 1),
                index_codecs=index,
                index_location=r.choice(["start", "end"]),
            )
        ]
    out: list[object] = []
    if r.random() < 0.4:
        out.append(TransposeCodec(order=tuple(r.sample(range(rank), rank))))
    out.append(BytesCodec(endian=r.choice(["little", "big"]) if size > 1 else None))
    return out + compress3(r, size)


def create3(r: random.Random, path: Path, shape: list[int], chunk: list[int], dtype: np.dtype):
    depth = r.choice([0, 0, 1, 1, 2])
    if depth:
        chunk = [c * r.choice([1, 2, 3]) for c in chunk]
    return zarr.create(
        store=str(path),
        shape=shape,
        chunks=tuple(chunk),
        dtype=dtype,
        zarr_format=3,
        codecs=codecs3(r, len(shape), dtype.itemsize, chunk, depth),
        fill_value=fill(r, dtype),
        chunk_key_encoding=r.choice([("default", "/"), ("default", "."), ("v2", "."), ("v2", "/")]),
        dimension_names=r.choice([None, tuple("ntbyx"[-len(shape) :])]),
    )


def filters2(r: random.Random, dtype: np.dtype) -> list[object] | None:
    kind = r.choice(["", "", "delta", "shuffle", "scale"])
    if kind == "delta" and dtype.kind in "iu":
        return [numcodecs.Delta(dtype=dtype.str)]
    if kind == "shuffle":
        return [numcodecs.Shuffle(elementsize=r.choice([2, 4, dtype.itemsize]))]
    if kind == "scale" and dtype.kind == "f" and dtype.itemsize > 2:
        return [
            numcodecs.FixedScaleOffset(
                offset=r.uniform(-50, 50),
                scale=r.choice([1, 10, 0.5]),
                dtype=dtype.str,
                astype="<i4",
            )
        ]
    return None


def summed2(r: random.Random, filters: list[object] | None, compressor: object):
    """Returns the codecs with a checksum: around the compressor, as in HDF5, or inside of it."""
    filters = filters or []
    if r.random() < 0.5 or compressor is None:
        return [*filters, numcodecs.Fletcher32()], compressor
    return [*filters, compressor, numcodecs.Fletcher32()], None


def create2(r: random.Random, path: Path, shape: list[int], chunk: list[int], dtype: np.dtype):
    if dtype.itemsize > 1 and r.random() < 0.4:
        dtype = dtype.newbyteorder(">")
    compressor = r.choice(
        [
            lambda: None,
            lambda: numcodecs.Zstd(level=r.randint(1, 9)),
            lambda: numcodecs.GZip(level=r.randint(0, 9)),
            lambda: numcodecs.Zlib(level=r.randint(0, 9)),
            lambda: numcodecs.BZ2(level=r.randint(1, 9)),
            lambda: numcodecs.LZ4(),
            lambda: numcodecs.Blosc(
                cname=r.choice(BLOSC),
                clevel=r.randint(0, 9),
                shuffle=r.randint(-1, 2),
                blocksize=r.choice([0, 256, 1000]),
            ),
            lambda: numcodecs.Blosc(cname=r.choice(BLOSC), clevel=5, shuffle=r.randint(0, 2)),
        ]
    )()
    filters = filters2(r, dtype)
    if r.random() < 0.2:
        filters, compressor = summed2(r, filters, compressor)
    return zarr.create(
        store=str(path),
        shape=shape,
        chunks=tuple(chunk),
        dtype=dtype,
        zarr_format=2,
        order=r.choice(["C", "F"]),
        compressor=compressor,
        filters=filters,
        fill_value=r.choice([None, fill(r, dtype)]),
        dimension_separator=r.choice([".", "/"]),
    )


def digest(a: np.ndarray) -> str:
    a = np.ascontiguousarray(a)
    if a.dtype.kind == "b":
        a = a.view("u1")
    if a.dtype.kind == "f":
        a = a.copy()
        a[np.isnan(a)] = np.nan
    return hashlib.sha256(a.astype(a.dtype.newbyteorder("<")).tobytes()).hexdigest()


def write(r: random.Random, path: Path) -> dict[str, object]:
    rank = r.choice([1, 2, 2, 2, 3, 3, 4, 5])
    most = {1: 900, 2: 60, 3: 20, 4: 9, 5: 6}[rank]
    shape = [r.randint(1, most) for _ in range(rank)]
    chunk = [r.randint(1, n + 3) for n in shape]
    # A chunk has its price in Python.
    while np.prod([-(-n // c) for n, c in zip(shape, chunk)]) > 60:
        chunk = [min(2 * c, n) for n, c in zip(shape, chunk)]
    dtype = np.dtype(r.choice(DTYPES))
    format_ = r.choice([2, 3, 3])
    a = (create2 if format_ == 2 else create3)(r, path, shape, chunk, dtype)
    for _ in range(r.choice([0, 1, 1, 1, 2])):  # the rest has the fill value
        lo = [r.choice([0, r.randrange(n)]) for n in shape]
        hi = [r.choice([n, r.randint(start + 1, n)]) for start, n in zip(lo, shape)]
        box = tuple(itertools.starmap(slice, zip(lo, hi)))
        a[box] = samples(r, [h - s for s, h in zip(lo, hi)], a.dtype)
    a = zarr.open_array(str(path), mode="r")
    whole = np.asarray(a[...])  # a read of a box takes zarr-python as long as one of all
    reads = []
    for k in range(4):
        lo = [0 if k == 0 else r.randrange(n) for n in shape]
        hi = [n if k == 0 else r.randint(start + 1, n) for start, n in zip(lo, shape)]
        box = tuple(itertools.starmap(slice, zip(lo, hi)))
        reads.append({"lo": lo, "hi": hi, "sha256": digest(whole[box])})
    return {
        "path": path.name,
        "format": format_,
        "shape": shape,
        "dtype": a.dtype.name,
        "reads": reads,
    }


def main() -> None:
    out, seed, n = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    for i in range(n):
        r = random.Random(f"{seed}-{i}")
        try:
            print(json.dumps(write(r, out / str(i))), flush=True)
        except Exception as e:
            print(f"{i}: left out: {type(e).__name__}: {e}", file=sys.stderr)


if __name__ == "__main__":
    main()
