"""ZIPs of Zarr groups of version 2, with chunks that zlib compressed."""

from __future__ import annotations

import io
import itertools
import json
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np

Array = tuple[np.ndarray, list[int], list[str]]  # its values, chunks and dimensions


def write(to: Path, arrays: dict[str, Array]) -> None:
    """Writes a group, whose metadata are also consolidated. Chunks divide the shapes."""
    texts: dict[str, Any] = {".zgroup": {"zarr_format": 2}, ".zattrs": {}}
    with zipfile.ZipFile(to, "w") as z:
        for name, (x, chunks, dims) in arrays.items():
            texts[f"{name}/.zattrs"] = {"_ARRAY_DIMENSIONS": dims}
            texts[f"{name}/.zarray"] = {
                **{"zarr_format": 2, "shape": x.shape, "chunks": chunks, "dtype": x.dtype.str},
                **{"compressor": {"id": "zlib", "level": 1}, "order": "C"},
                **{"filters": None, "fill_value": None},
            }
            for at, part in parts(x.shape, chunks):
                z.writestr(f"{name}/{at}", zlib.compress(x[part].tobytes()))
        whole = {"metadata": dict(texts), "zarr_consolidated_format": 1}
        for name, text in {**texts, ".zmetadata": whole}.items():
            z.writestr(name, json.dumps(text))


def parts(shape: tuple[int, ...], chunks: list[int]) -> Any:
    """Yields the key and the slices of each chunk."""
    for at in itertools.product(*(range(n // c) for n, c in zip(shape, chunks, strict=True))):
        slices = tuple(slice(i * c, i * c + c) for i, c in zip(at, chunks, strict=True))
        yield ".".join(map(str, at)) or "0", slices


def forms(data: bytes) -> dict[str, Any]:
    """Returns the dtype, the shape, the chunks and the dimensions of each array."""
    found = {}
    with zipfile.ZipFile(io.BytesIO(data)) as z:
        for name in [n.removesuffix("/.zarray") for n in z.namelist() if n.endswith("/.zarray")]:
            said, more = (json.loads(z.read(f"{name}/{t}")) for t in (".zarray", ".zattrs"))
            dims = more["_ARRAY_DIMENSIONS"]
            found[name] = [said["dtype"], said["shape"], said["chunks"], dims]
    return found


def read(data: bytes, name: str) -> np.ndarray:
    """Returns the values of an array."""
    dtype, shape, chunks, _ = forms(data)[name]
    x = np.empty(shape, dtype)
    with zipfile.ZipFile(io.BytesIO(data)) as z:
        for at, part in parts(shape, chunks):
            x[part] = np.frombuffer(zlib.decompress(z.read(f"{name}/{at}")), dtype).reshape(chunks)
    return x
