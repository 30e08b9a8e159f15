"""References in Parquet by fsspec, and what zarr-python reads through them.

python records.py DIRECTORY SEED COUNT writes COUNT folders of references to DIRECTORY, with the
files that they lead to, and prints lines as random_arrays.py does. Arrays are random; their chunks
are ranges of a file, whole files, content, or missing.
"""

from __future__ import annotations

import itertools
import json
import os
import random
import sys
import warnings
from pathlib import Path

import fsspec
import numcodecs
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import zarr
from fsspec.implementations.reference import LazyReferenceMapper
from random_arrays import digest

warnings.simplefilter("ignore")

DTYPES = ["<i1", "<u1", ">i2", "<u2", "<i4", ">u4", "<f4", ">f8"]


def chunks(r: random.Random, home: Path, name: str, number: int, a: np.ndarray, side: list[int]):
    """Yields the name of each chunk with its reference."""
    codec = r.choice([None, numcodecs.Zlib(), numcodecs.Zstd()])
    files = [home / f"{name}-{number}-{k}.bin" for k in range(r.choice([1, 1, 3]))]
    for f in files:
        f.write_bytes(b"\x89HDF")
    yield (
        ".zarray",
        json.dumps(
            {
                "zarr_format": 2,
                "shape": a.shape,
                "chunks": side,
                "dtype": a.dtype.str,
                "order": "C",
                "fill_value": r.choice([0, 7]),
                "filters": None,
                "compressor": codec and codec.get_config(),
            }
        ),
    )
    kinds = r.choice(["r", "r", "c", "rc", "rcfm", "m"])
    for at in itertools.product(*(range(-(-n // c)) for n, c in zip(a.shape, side, strict=True))):
        part = a[tuple(slice(k * c, (k + 1) * c) for k, c in zip(at, side, strict=True))]
        whole = np.zeros(side, a.dtype)
        whole[tuple(slice(0, n) for n in part.shape)] = part
        b = bytes(codec.encode(whole.tobytes()) if codec else whole.tobytes())
        key, kind = ".".join(map(str, at)), r.choice(kinds)
        if kind == "r":
            f = r.choice(files)
            with f.open("ab") as out:
                yield key, [f.name, out.tell(), len(b)]
                out.write(b)
        elif kind == "f":
            f = home / f"{name}-{number}-{key}.one"
            f.write_bytes(b)
            yield key, [f.name]
        elif kind == "c":
            yield key, b


def known(self, key: str, read=LazyReferenceMapper._load_one_key):
    """Reads a reference as fsspec does, which takes NaN in columns of categories for a path."""
    value = read(self, key)
    if isinstance(value, list) and not isinstance(value[0], str):
        raise KeyError(key)
    return value


def rewrite(r: random.Random, folder: Path) -> None:
    """Writes the files of a folder again by pyarrow, as fsspec does for engine="pyarrow".

    fsspec 2026.9.0 does not read such files with its own settings.
    """
    for file in folder.glob("**/refs.*.parq"):
        t = pq.read_table(file)
        if r.random() < 0.5 and t["raw"].null_count == len(t):
            t = t.set_column(t.schema.get_field_index("raw"), "raw", pa.nulls(len(t)))
        pq.write_table(
            t,
            file,
            compression=r.choice(["zstd", "snappy", "none"]),
            use_dictionary=r.random() < 0.7,
            data_page_size=r.choice([100, 1 << 20]),
            row_group_size=r.choice([7, 1 << 20]),
            write_page_index=r.random() < 0.5,
            data_page_version=r.choice(["1.0", "2.0"]),
        )


def write(r: random.Random, home: Path, name: str) -> None:
    """Writes a folder of references."""
    refs = LazyReferenceMapper.create(
        str(home / name),
        record_size=r.choice([1, 3, 10, 1000, 10_000]),
        categorical_threshold=r.choice([1, 10, 10_000]),
    )
    refs[".zgroup"] = json.dumps({"zarr_format": 2})
    rng = np.random.default_rng(r.getrandbits(32))
    lines = []
    for number in range(4):
        shape = [r.randint(1, m) for m in {1: [90], 2: [30, 30], 3: [9, 9, 9]}[r.randint(1, 3)]]
        side = [r.randint(1, n + 1) for n in shape]
        a = np.cumsum(rng.integers(-3, 4, shape), -1).astype(r.choice(DTYPES))
        path = r.choice(["", "deep/"]) + f"a{number}"
        for key, value in chunks(r, home, name, number, a, side):
            refs[f"{path}/{key}"] = value
        lines.append((path, a))
    refs.flush()
    # With a protocol it does not look for one in every file, of which some are not there.
    fs = fsspec.filesystem(
        "reference", fo=str(home / name), asynchronous=True, remote_protocol="file"
    )
    store = zarr.storage.FsspecStore(fs)
    root = zarr.open_group(store, mode="r", zarr_format=2, use_consolidated=False)
    for path, _ in lines:
        a = root[path]
        lo = [r.randrange(n) for n in a.shape]
        hi = [r.randint(p + 1, n) for p, n in zip(lo, a.shape, strict=True)]
        reads = [
            {"lo": p, "hi": q, "sha256": digest(a[tuple(map(slice, p, q))])}
            for p, q in [([0] * a.ndim, list(a.shape)), (lo, hi)]
        ]
        line = {"path": f"{name}/{path}", "format": 2, "shape": list(a.shape)}
        print(json.dumps(line | {"dtype": a.dtype.name, "reads": reads}), flush=True)
    if r.random() < 0.5:
        rewrite(r, home / name)


def main() -> None:
    """Writes the folders and the list."""
    home, seed, count = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    LazyReferenceMapper._load_one_key = known
    os.chdir(home)  # where fsspec begins relative paths; for chaski they begin beside the folder
    for number in range(count):
        write(random.Random(f"{seed} {number}"), home, f"{number}.parq")


if __name__ == "__main__":
    main()
