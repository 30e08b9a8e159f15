"""Tortillas (version 0.5) and TACO 0.2 as bytes: a header of 200 bytes, files, and their table."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

MAGIC = b"#y"  # a Tortilla begins with it, also one that is a sample of another
HEAD = 200


def write(
    columns: dict[str, list], files: list[bytes], magic: bytes = MAGIC, about: bytes = b""
) -> bytes:
    """Returns a Tortilla or, with a description, a TACO 0.2."""
    ends = np.cumsum([HEAD, *map(len, files)]).tolist()
    columns |= {"tortilla:offset": ends[:-1], "tortilla:length": [len(f) for f in files]}
    footer = io.BytesIO()
    pq.write_table(pa.table(columns), footer)
    table = footer.getvalue()
    numbers = [ends[-1], len(table), 1]
    if about:
        numbers += [ends[-1] + len(table), len(about)]
    head = magic + b"".join(n.to_bytes(8, "little") for n in numbers)
    return b"".join([head.ljust(HEAD, b"\0"), *files, table, about])


def read(data: bytes) -> list[tuple[dict[str, Any], bytes]]:
    """Returns the columns and the bytes of each sample of a Tortilla."""
    first, size = (int.from_bytes(data[i : i + 8], "little") for i in (2, 10))
    rows = pq.read_table(io.BytesIO(data[first : first + size])).to_pylist()
    spans = [(r.pop("tortilla:offset"), r.pop("tortilla:length")) for r in rows]
    return [(r, data[i : i + n]) for r, (i, n) in zip(rows, spans, strict=True)]
