"""Containers keep the Arrow types of columns: pyarrow reads what it reads from the table."""

import datetime as dt
import decimal
import json
import random
import string
import subprocess
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

Values = Callable[[random.Random], Any]
ABOUT = {
    "id": "types",
    "dataset_version": "1",
    "description": "columns of all types",
    "licenses": ["CC0-1.0"],
    "providers": [{"name": "chaski"}],
    "tasks": ["classification"],
}


def whole(bits: int, signed: bool) -> Values:
    low = -(2 ** (bits - 1)) if signed else 0
    return lambda r: r.choice([low, low + 2**bits - 1, r.randrange(low, low + 2**bits)])


def text(r: random.Random) -> str:
    return "".join(r.choices(string.ascii_letters + "äß語", k=r.randrange(6)))


def number(precision: int, scale: int) -> Values:
    context = decimal.Context(prec=precision)
    return lambda r: context.scaleb(decimal.Decimal(r.randrange(10**precision)), -scale)


def moment(r: random.Random) -> int:
    return r.randrange(-(2**31), 2**31)


def scalars() -> list[tuple[Any, Values]]:
    floats = lambda r: r.choice([0.0, -0.5, float("inf"), r.randrange(2048) / 8])  # noqa: E731
    day = 24 * 3600 * 1000
    kinds: list[tuple[Any, Values]] = [
        (pa.bool_(), lambda r: r.random() < 0.5),
        (pa.float16(), floats),
        (pa.float32(), floats),
        (pa.float64(), floats),
        (pa.string(), text),
        (pa.large_string(), text),
        (pa.string_view(), text),
        (pa.binary(), lambda r: text(r).encode()),
        (pa.large_binary(), lambda r: text(r).encode()),
        (pa.binary_view(), lambda r: text(r).encode()),
        (pa.binary(5), lambda r: r.randbytes(5)),
        (pa.dictionary(pa.int32(), pa.string()), text),
        (pa.dictionary(pa.int8(), pa.string(), ordered=True), text),
        (pa.date32(), lambda r: dt.date.fromordinal(r.randrange(1, 3_000_000))),
        (pa.date64(), lambda r: r.randrange(-30_000, 30_000) * day),
        (pa.time32("s"), lambda r: r.randrange(86400)),
        (pa.time32("ms"), lambda r: r.randrange(day)),
        (pa.time64("us"), lambda r: r.randrange(day) * 1000 + 7),
        (pa.time64("ns"), lambda r: r.randrange(day) * 1_000_000 + 7),
        (pa.null(), lambda r: None),
        (pa.uuid(), lambda r: uuid.UUID(bytes=r.randbytes(16)).bytes),
        (pa.json_(), lambda r: json.dumps([r.randrange(9)])),
        (pa.bool8(), lambda r: r.randrange(2)),
    ]
    kinds += [(getattr(pa, f"int{n}")(), whole(n, True)) for n in (8, 16, 32, 64)]
    kinds += [(getattr(pa, f"uint{n}")(), whole(n, False)) for n in (8, 16, 32, 64)]
    for unit in ("s", "ms", "us", "ns"):
        kinds += [(pa.duration(unit), moment), (pa.timestamp(unit), moment)]
        kinds += [(pa.timestamp(unit, tz), moment) for tz in ("UTC", "Europe/Berlin", "+05:30")]
    for precision, scale in ((1, 0), (9, 2), (18, 18), (38, 5)):
        kinds.append((pa.decimal128(precision, scale), number(precision, scale)))
    kinds.append((pa.decimal32(7, 3), number(7, 3)))
    kinds.append((pa.decimal64(12, 3), number(12, 3)))
    kinds.append((pa.decimal256(20, 3), number(20, 3)))
    kinds.append((pa.decimal256(60, 7), number(60, 7)))
    return kinds


def nullable(values: Values) -> Values:
    return lambda r: None if r.random() < 0.2 else values(r)


def pick(r: random.Random, depth: int) -> tuple[Any, Values]:
    """A type, and a function that draws its values."""
    if depth == 0 or r.random() < 0.3:
        return r.choice(scalars())
    typ, values = pick(r, depth - 1)
    some = nullable(values)
    shape = r.randrange(7)
    if shape == 0:
        fields = [(f"f{i}", *pick(r, depth - 1)) for i in range(r.randrange(1, 4))]
        return (
            pa.struct([(name, t) for name, t, _ in fields]),
            lambda r: {name: nullable(v)(r) for name, _, v in fields},
        )
    if shape == 1:
        key, keys = r.choice([(pa.string(), text), (pa.int16(), whole(16, True))])
        return pa.map_(key, typ), lambda r: [(keys(r), some(r)) for _ in range(r.randrange(4))]
    if shape == 2:
        n = r.randrange(1, 4)
        return pa.list_(typ, n), lambda r: [some(r) for _ in range(n)]
    make = pa.large_list if shape == 3 else pa.list_
    return make(typ), lambda r: [some(r) for _ in range(r.randrange(4))]


def array(typ: Any, values: list[Any]) -> Any:
    if isinstance(typ, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(typ, array(typ.storage_type, values))
    return pa.array(values, typ)


def pack(binary: str, folder: Path, columns: dict[str, Any], *, first: int = 0) -> tuple[Any, Path]:
    """Packs a table, and returns what pyarrow reads from it, and the container."""
    folder.mkdir(exist_ok=True)
    (folder / "a.txt").write_bytes(b"x")
    (folder / "about.json").write_text(json.dumps(ABOUT))
    rows = len(next(iter(columns.values())))
    ids = pa.array([f"s{i}" for i in range(first, first + rows)])
    table = pa.table({"id": ids, "path": pa.array(["a.txt"] * rows), **columns})
    pq.write_table(table, folder / "t.parquet")
    run(binary, folder, "pack", "-o", "out", "--collection", "about.json", "t.parquet")
    return pq.read_table(folder / "t.parquet"), folder / "out"


def run(binary: str, folder: Path, *args: str) -> None:
    done = subprocess.run([binary, *args], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def compare(want: Any, container: Path) -> None:
    """Compares types and values as Arrow has them: Python has no nanoseconds and no year 0."""
    got = pq.read_table(container / "METADATA" / "level0.parquet")
    for name in want.column_names:
        if name in ("id", "path") or want.schema.field(name).type == pa.null():
            continue  # pack leaves out columns without any value
        assert got.schema.field(name).type == want.schema.field(name).type, name
        assert got[name].combine_chunks().equals(want[name].combine_chunks()), want[name].type


def test_every_type(binary, tmp_path):
    r = random.Random(1)
    columns = {
        f"c{i}": array(typ, [values(r), None, values(r)])
        for i, (typ, values) in enumerate(scalars())
    }
    tensor = pa.fixed_shape_tensor(pa.float32(), [2, 2])
    columns["tensor"] = array(tensor, [[1, 2, 3, 4], None, [5, 6, 7, 8]])
    want, out = pack(binary, tmp_path, columns)
    compare(want, out)
    # A second container is made of the first, and a third of both.
    run(binary, tmp_path, "pack", "-o", "again.tacozip", "out")
    run(binary, tmp_path, "pack", "-o", "third", "again.tacozip")
    compare(want, tmp_path / "third")


@pytest.mark.parametrize("seed", range(6))
def test_nested_types(binary, tmp_path, seed):
    r = random.Random(seed)
    columns: dict[str, Any] = {}
    while len(columns) < 20:
        typ, values = pick(r, 3)
        try:
            column = array(typ, [nullable(values)(r) for _ in range(7)])
            pq.write_table(pa.table({"x": column}), tmp_path / "x.parquet")
            pq.read_table(tmp_path / "x.parquet")
        except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
            continue  # pyarrow itself cannot make, write or read it
        columns[f"c{len(columns)}"] = column
    want, out = pack(binary, tmp_path, columns)
    compare(want, out)


def test_joined_dictionaries_have_wider_codes(binary, tmp_path):
    typ = pa.dictionary(pa.int8(), pa.string())
    parts = []
    for part in range(2):
        names = pa.array([f"{part}-{i}" for i in range(100)], typ)
        _, out = pack(binary, tmp_path / str(part), {"name": names}, first=100 * part)
        parts.append(str(out))
    run(binary, tmp_path, "pack", "-o", "both", *parts)
    got = pq.read_table(tmp_path / "both" / "METADATA" / "level0.parquet")["name"]
    assert got.type == pa.dictionary(pa.int32(), pa.string())
    assert got.to_pylist() == [f"{part}-{i}" for part in range(2) for i in range(100)]


def test_durations_of_two_units_are_not_joined(binary, tmp_path):
    parts = []
    for part, unit in enumerate(("s", "ms")):
        age = pa.array([1], pa.duration(unit))
        _, out = pack(binary, tmp_path / unit, {"age": age}, first=part)
        parts.append(str(out))
    done = subprocess.run([binary, "pack", "-o", "both", *parts], cwd=tmp_path, capture_output=True)
    assert done.returncode != 0
    assert b'"age"' in done.stderr or b"column age" in done.stderr
    assert b"duration[s]" in done.stderr
    assert b"duration[ms]" in done.stderr
