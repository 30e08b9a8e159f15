"""HDF5 files, references to them, and what zarr-python reads of their arrays through fsspec.

python references.py DIRECTORY writes files by h5py and kerchunk to DIRECTORY, in each form of
kerchunk's references, and prints lines as random_arrays.py does.
"""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path

import fsspec
import h5py
import numpy as np
import zarr
from kerchunk.hdf import SingleHdf5ToZarr
from random_arrays import digest

warnings.simplefilter("ignore")

DTYPES = ["<i1", "<u1", ">i2", "<u2", "<i4", ">u4", "<i8", "<f2", "<f4", ">f4", "<f8"]


def write(path: Path, rng: np.random.Generator) -> None:
    """Writes arrays of every type, with and without chunks, filters and missing chunks."""
    with h5py.File(path, "w") as f:
        for k, dtype in enumerate(DTYPES):
            shape = tuple(int(n) for n in rng.integers(5, 70, 2 + k % 2))
            a = np.cumsum(rng.integers(-3, 4, shape), -1).astype(dtype)
            side = tuple(max(1, n // 3) for n in shape)
            f.create_dataset(f"plain/{k}", data=a)
            f.create_dataset(
                f"deflated/{k}", data=a, chunks=side, compression="gzip", shuffle=bool(k % 2)
            )
            f.create_dataset(
                f"summed/{k}",
                data=a,
                chunks=side,
                compression="gzip",
                shuffle=True,
                fletcher32=True,
            )
            some = f.create_dataset(f"some/{k}", shape, dtype, chunks=side, fillvalue=k)
            some[tuple(slice(0, n // 2) for n in shape)] = 5


def summed(path: Path, url: str, refs: dict[str, object]) -> None:
    """Adds references to chunks with checksums as VirtualiZarr does, which kerchunk refuses."""
    refs["summed/.zgroup"] = json.dumps({"zarr_format": 2})
    with h5py.File(path) as f:
        for k, d in f["summed"].items():
            meta = json.loads(refs[f"plain/{k}/.zarray"])
            shuffle = {"id": "shuffle", "elementsize": d.dtype.itemsize}
            meta["filters"] = [shuffle, {"id": "zlib", "level": 4}, {"id": "fletcher32"}]
            refs[f"summed/{k}/.zarray"] = json.dumps(meta | {"chunks": d.chunks})
            for number in range(d.id.get_num_chunks()):
                at = d.id.get_chunk_info(number)
                name = ".".join(str(o // n) for o, n in zip(at.chunk_offset, d.chunks, strict=True))
                refs[f"summed/{k}/{name}"] = [url, at.byte_offset, at.size]


def main() -> None:
    """Writes the files and the list."""
    home = Path(sys.argv[1])
    rng = np.random.default_rng(16)
    for number in range(2):
        source = home / f"{number}.h5"
        write(source, rng)
        url = str(source) if number else f"file://{source}"
        refs = SingleHdf5ToZarr(str(source), url=url, inline_threshold=300 * number).translate()
        summed(source, str(source), refs["refs"])
        if number:  # version 0, and paths beside the file of references
            refs = refs["refs"]
            refs = {k: [source.name, *v[1:]] if isinstance(v, list) else v for k, v in refs.items()}
            refs = {".zgroup": refs.pop(".zgroup"), **refs}
        name = f"{number}.json"
        (home / name).write_text(json.dumps(refs))
        absolute = {
            k: [str(home / v[0]), *v[1:]] if number and isinstance(v, list) else v
            for k, v in refs.get("refs", refs).items()
        }
        fs = fsspec.filesystem("reference", fo={"version": 1, "refs": absolute}, asynchronous=True)
        root = zarr.open_group(zarr.storage.FsspecStore(fs), mode="r", zarr_format=2)
        for group in ("plain", "deflated", "summed", "some"):
            for k in range(len(DTYPES)):
                a = root[f"{group}/{k}"]
                lo = [int(rng.integers(0, n)) for n in a.shape]
                hi = [int(rng.integers(a, n)) + 1 for a, n in zip(lo, a.shape, strict=True)]
                boxes = [([0] * a.ndim, list(a.shape)), (lo, hi)]
                reads = [
                    {"lo": p, "hi": q, "sha256": digest(a[tuple(map(slice, p, q))])}
                    for p, q in boxes
                ]
                line = {"path": f"{name}/{group}/{k}", "format": 2, "shape": list(a.shape)}
                print(json.dumps(line | {"dtype": a.dtype.name, "reads": reads}))


if __name__ == "__main__":
    main()
