"""Writes the rumi files of this folder with rumi-eo, openzl and numpy, and manifest.jsonl beside them.

    python write.py        # rumi-eo 0.12.0 or 0.14.0, openzl 0.3.0, numpy

rumi-eo of these versions cuts edge tiles to the image and leaves the compression to its caller. It does not read
complex samples that are stored as their components: of these numpy's array is the judge alone.
"""

import hashlib
import json
from importlib.metadata import version
from pathlib import Path

import numpy as np
import openzl.ext as zl
import rumi

HERE = Path(__file__).resolve().parent
COMPONENT = {"complex64": "f4", "complex128": "f8"}


def frame(samples):
    """One OpenZL frame of format version 24 with one numeric output."""
    samples = samples.view(COMPONENT.get(samples.dtype.name, samples.dtype))
    compressor = zl.Compressor()
    compressor.set_parameter(zl.CParam.FormatVersion, 24)
    compressor.select_starting_graph(zl.graphs.Zstd()(compressor))
    context = zl.CCtx()
    context.ref_compressor(compressor)
    context.set_parameter(zl.CParam.FormatVersion, 24)
    numbers = samples.view(f"u{samples.dtype.itemsize}").ravel()
    return bytes(context.compress([zl.Input(zl.Type.Numeric, numbers)]))


def main():
    writer = version("rumi-eo")
    rng = np.random.default_rng(7)
    lines = []
    for shape, dtype, tile in [
        ((3, 40, 37), "uint16", 16),
        ((2, 10, 10), "int16", 32),
        ((1, 20, 21), "complex64", 16),
        ((1, 20, 16), "complex128", 16),
    ]:
        a = rng.integers(-50, 50, shape)
        a = (a + 1j * rng.integers(-50, 50, shape)) if dtype.startswith("complex") else a
        a = np.abs(a).astype(dtype) if dtype[0] == "u" else a.astype(dtype)
        tiles = rumi.tile(a, tile)
        for t in tiles:
            t.compressed = frame(np.ascontiguousarray(t.data))
        path = HERE / f"{dtype}-{writer}.tif"
        _, header = rumi.write(str(path), tiles)
        if not dtype.startswith("complex"):
            assert np.array_equal(rumi.read(str(path)), a)
        line = {"path": path.name, "writer": f"rumi-eo {writer}", "shape": shape, "dtype": dtype}
        sha256 = hashlib.sha256(a.tobytes()).hexdigest()
        lines.append(line | {"sha256": sha256, "blob": header.hex()})
    manifest = HERE / "manifest.jsonl"
    old = manifest.read_text().splitlines() if manifest.exists() else []
    old = [x for x in old if f"rumi-eo {writer}" not in x]
    manifest.write_text("".join(f"{x}\n" for x in old + [json.dumps(x) for x in lines]))


main()
