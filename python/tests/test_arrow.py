"""Columns of containers have the types of Arrow with which they came, judged by pyarrow."""

from __future__ import annotations

import datetime as dt
import io
import re
import subprocess
import uuid
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import nonempty

import chaski

pytestmark = pytest.mark.usefixtures("one_engine")

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

COLLECTION = {
    "id": "x",
    "dataset_version": "1",
    "description": "d",
    "licenses": ["CC0-1.0"],
    "providers": [{"name": "n", "roles": ["producer"]}],
    "tasks": ["other"],
}

# Types that TACO 3 cannot name: a column has the plain type of the same values.
NOT_IN_TACO_3 = re.compile(r"_view|date64|\[s[],]|decimal(32|64)|dictionary|extension")


def storage(values: list[Any]) -> list[Any]:
    """Returns UUIDs as their bytes."""
    return [v.bytes if isinstance(v, uuid.UUID) else v for v in values]


def columns() -> dict[str, Any]:
    """Three values, the second null, of every type that Parquet can hold."""
    whole = [getattr(pa, f"{u}int{w}")() for u in ("", "u") for w in (8, 16, 32, 64)]
    times = [pa.time32("s"), pa.time32("ms"), pa.time64("us"), pa.time64("ns")]
    for unit in ("s", "ms", "us", "ns"):
        times += [
            pa.duration(unit),
            *(pa.timestamp(unit, z) for z in (None, "UTC", "America/Lima")),
        ]
    text, long = "a", "text that is too long for a view"
    rows: list[tuple[Any, Any, Any]] = [
        (pa.bool_(), True, False),
        (pa.date64(), dt.date.min, dt.date.max),
    ]
    rows += [(t, 1, 100) for t in whole + times]
    rows += [(pa.float16(), 1.5, -2), (pa.float32(), 1.5, 3), (pa.float64(), 0.1, np.inf)]
    rows += [(t, text, long) for t in (pa.string(), pa.large_string(), pa.string_view())]
    rows += [
        (t, b"\xff", long.encode()) for t in (pa.binary(), pa.large_binary(), pa.binary_view())
    ]
    rows += [(pa.binary(3), b"abc", b"\xff\0a"), (pa.date32(), dt.date(1960, 1, 1), dt.date.max)]
    digits = {pa.decimal32: 9, pa.decimal64: 18, pa.decimal128: 38, pa.decimal256: 76}
    rows += [(t(n, 2), Decimal("1.25"), Decimal("-3.00")) for t, n in digits.items()]
    lists = [pa.list_, pa.large_list, pa.list_view, pa.large_list_view]
    rows += [(t(pa.int32()), [1, None], []) for t in lists]
    rows += [(pa.list_(t, 2), [v, None], [v, w]) for t, v, w in [*rows[:1], *rows[9:]]]
    pairs = [("a", pa.int8()), ("b", pa.timestamp("ns", "Asia/Tokyo")), ("c", pa.float16())]
    rows.append((pa.struct(pairs), {"a": 1}, {"b": 5, "c": 2}))
    rows.append((pa.map_(pa.string(), pa.int32()), [(text, 1)], [(text, None), (long, 3)]))
    codes = [pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8()]
    rows += [(pa.dictionary(t, pa.string()), text, long) for t in codes]
    out = {f"c{i}": pa.array([v, None, w], t) for i, (t, v, w) in enumerate(rows)}
    out["ordered"] = pa.array([text, None, long]).cast(pa.dictionary(pa.int32(), pa.string(), True))
    ids = pa.array([b"0" * 16, None, b"1" * 16], pa.binary(16))
    out["uuid"] = pa.ExtensionArray.from_storage(pa.uuid(), ids)
    out["json"] = pa.ExtensionArray.from_storage(pa.json_(), pa.array(["{}", None, "1"]))
    return out


@pytest.mark.parametrize("form", ["tacozip", "zip", ""])
@pytest.mark.parametrize("way", ["memory", "parquet"])
def test_types(form: str, way: str, tmp_path: Path, binary: str) -> None:
    (tmp_path / "a").write_bytes(b"x")
    files = {"id": list("abc"), "path": [str(tmp_path / "a")] * 3}
    table = source = pa.table({**files, **columns()})
    parquet = io.BytesIO()
    pq.write_table(table, parquet)
    if way == "parquet":
        source = tmp_path / "t.parquet"
        pq.write_table(table, source)
    out = tmp_path / f"out.{form}".rstrip(".")
    options = {"form": "taco3"} if form == "zip" else {}
    ds = chaski.pack(source, out, COLLECTION, **options)
    sql = subprocess.run(
        [binary, "sql", "--format", "parquet", "SELECT * FROM data", out], check=True, stdout=-1
    )
    plain = pq.read_table(parquet)  # it has no date64 and time32 in seconds
    for got in (
        pq.read_table(io.BytesIO(sql.stdout)),
        ds.data,
        ds.sql("SELECT * FROM data ORDER BY id").data,
        ds.concat(ds).data.slice(0, 3),
    ):
        got.validate(full=True)
        names = {n.removeprefix("data:"): n for n in got.column_names}
        for name in nonempty(columns()):
            want, have = plain.column(name), got.column(names[name])
            if form == "zip" and NOT_IN_TACO_3.search(str(want.type)):
                want = pa.array(storage(want.to_pylist()), have.type)
            assert have.type == want.type
            assert have.to_pylist() == want.to_pylist(), (name, want.type)
