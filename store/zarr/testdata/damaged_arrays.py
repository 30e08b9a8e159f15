"""Copies of Zarr arrays with one damaged object each, and what zarr-python 3 makes of them.

python damaged_arrays.py FROM TO SEED COPIES takes the arrays FROM/NUMBER, writes COPIES copies of
each to TO/NUMBER-COPY, damages one chunk or shard of each, and prints a line of JSON for each:
{"path", "object", "kind", "verdict", "summed"}. The verdict is "refused" if zarr-python cannot read
the whole array, else "same" or "other": whether it has the cells of before. summed is true if all
bytes of chunks and indexes are under a checksum of the codec crc32c.
"""

from __future__ import annotations

import json
import random
import shutil
import sys
import warnings
from pathlib import Path

import numpy as np
import zarr

warnings.simplefilter("ignore")

METADATA = {"zarr.json", ".zarray", ".zattrs", ".zgroup"}


def under_checksum(path: Path) -> bool:
    if not (path / "zarr.json").exists():
        return False
    codecs = json.loads((path / "zarr.json").read_text())["codecs"]
    while codecs[-1]["name"] == "sharding_indexed":
        conf = codecs[-1]["configuration"]
        if conf["index_codecs"][-1]["name"] != "crc32c":
            return False
        codecs = conf["codecs"]
    return any(c["name"] == "crc32c" for c in codecs)


def damage(r: random.Random, file: Path) -> str:
    b = bytearray(file.read_bytes())
    kind = r.choice(["byte", "byte", "byte", "bit", "cut", "append", "zeros"])
    if not b:
        kind = "append"
    # Half of the places are in the last bytes, where most indexes of shards are.
    at = r.randrange(max(len(b), 1)) if r.random() < 0.5 else max(0, len(b) - r.randint(1, 64))
    if kind == "byte":
        b[at] = (b[at] + r.randint(1, 255)) % 256
    elif kind == "bit":
        b[at] ^= 1 << r.randrange(8)
    elif kind == "cut":
        del b[at:]
    elif kind == "append":
        b += r.randbytes(r.randint(1, 20))
    else:
        b[at : at + 16] = bytes(len(b[at : at + 16]))
    file.write_bytes(b)
    return kind


def cells(path: Path) -> bytes:
    return np.ascontiguousarray(zarr.open_array(str(path), mode="r")[...]).tobytes()


def main() -> None:
    source, out, seed, copies = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3], int(sys.argv[4])
    for array in sorted(source.iterdir(), key=lambda p: p.name):
        files = sorted(p for p in array.rglob("*") if p.is_file() and p.name not in METADATA)
        if not files:
            continue
        before = cells(array)
        for k in range(copies):
            r = random.Random(f"{seed}-{array.name}-{k}")
            to = out / f"{array.name}-{k}"
            shutil.copytree(array, to)
            name = r.choice(files).relative_to(array)
            kind = damage(r, to / name)
            try:
                verdict = "same" if cells(to) == before else "other"
            except Exception:
                verdict = "refused"
            print(
                json.dumps(
                    {
                        "path": to.name,
                        "object": str(name),
                        "kind": kind,
                        "verdict": verdict,
                        "summed": under_checksum(array),
                    }
                ),
                flush=True,
            )


main()
