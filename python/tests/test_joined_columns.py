"""Columns in braces, "{tile}_{x}", wherever a column is named, against texts that Python makes."""

from __future__ import annotations

import re
import subprocess
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest

import chaski

pytestmark = pytest.mark.usefixtures("one_engine")

pd = pytest.importorskip("pandas", reason="needs pandas to write tables")
pytest.importorskip("pyarrow", reason="needs pyarrow to write Parquet")

# Tile "1" at "12" and tile "11" at "2" are two, and so are x of "02" and "2".
PLACES = [("1", "12"), ("11", "2"), ("11", "02"), ("a_b", "7")]
DATES = ["20200301", "20200105"]
FILES = [(tile, x, date) for tile, x in PLACES for date in DATES]
SOURCES = ["folder", "table.csv", "table.parquet", "groups"]
FIELDS = {
    "folder": {"image": "images/{tile}@{date}@{x}.npy"},
    "table.csv": {"image": chaski.Field(column="path", kind="raster")},
    "table.parquet": {"image": chaski.Field(column="path", kind="raster")},
    "groups": {"image": "{tile}@{date}@{x}.npz::x"},
}


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> Path:
    root = tmp_path_factory.mktemp("joined")
    (root / "folder/images").mkdir(parents=True)
    (root / "groups").mkdir()
    rows = []
    for k, (tile, x, date) in enumerate(FILES):
        array = np.full((1, 4, 4), k, np.uint8)
        name = f"{tile}@{date}@{x}"
        np.save(root / f"folder/images/{name}.npy", array)
        np.savez(root / f"groups/{name}.npz", x=array)
        path = f"folder/images/{name}.npy"
        rows.append({"path": path, "tile": tile, "x": x, "date": date, "share": k / 2})
    pd.DataFrame(rows).to_csv(root / "table.csv", index=False)
    pd.DataFrame(rows).to_parquet(root / "table.parquet")
    return root


def loaded(data: Path, source: str, fields=None, **rows) -> dict:
    """All rows of a dataset, by the members of batches."""
    tables = rows.pop("tables", None)
    options = {"batch_size": 16, "shuffle": False, "rows": chaski.Rows(**rows)}
    if tables:
        options["tables"] = tables
    fields = FIELDS[source] | (fields or {})
    with chaski.load(data / source, fields=fields, **options) as run:
        return dict(next(iter(run)).items())


def numbers(data: Path, source: str, **rows) -> list[int]:
    return sorted(loaded(data, source, **rows)["image"].reshape(-1, 16)[:, 0].tolist())


def of(*places: str) -> list[int]:
    return [k for k, (tile, x, _) in enumerate(FILES) if f"{tile}_{x}" in places]


@pytest.mark.parametrize("source", SOURCES)
def test_ids_and_conditions(data, binary, source) -> None:
    rows = {"ids": ["1_12", "11_2"], "id_column": "{tile}_{x}"}
    assert numbers(data, source, **rows) == of("1_12", "11_2")
    for condition in (["{tile}_{x}", "==", "11_02"], ["{tile}_{x}", "in", ["11_02"]]):
        assert numbers(data, source, where=[condition]) == of("11_02")
    with pytest.raises(chaski.errors.NotFoundError, match="nothing"):
        numbers(data, source, where=[["{tile}_{nothing}", "==", "a"]])


@pytest.mark.parametrize("source", SOURCES)
def test_a_split_by_two_columns(data, binary, source) -> None:
    """Rows of one place are in one part, and places of one tile may be in two."""
    seen = defaultdict(set)
    for seed in range(6):
        split = chaski.Split.by_column("{tile}_{x}", {"a": 0.5, "b": 0.5}, seed=seed)
        parts = []
        for use in "ab":
            try:
                parts.append(numbers(data, source, split=split, use=use))
            except chaski.errors.NotFoundError:  # of four places, a part may have none
                parts.append([])
        assert sorted(parts[0] + parts[1]) == list(range(len(FILES)))
        for k in range(0, len(FILES), 2):
            assert (k in parts[0]) == (k + 1 in parts[0])
            seen[FILES[k][0]].add((seed, k in parts[0]))
    assert len(seen["11"]) > 6  # of two places in different parts


@pytest.mark.parametrize("source", SOURCES)
def test_series_of_two_columns(data, binary, source) -> None:
    got = loaded(data, source, time=chaski.Time(key="{tile}_{x}", order="date", length=2))
    image = got["image"].reshape(len(PLACES), 2, -1)[..., 0]
    want = [[2 * k + 1, 2 * k] for k in range(len(PLACES))]  # the second date is the earlier one
    assert sorted(image.tolist()) == want


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("table", ["places.csv", "places.parquet"])
def test_keys_of_tables(data, tmp_path, binary, source, table) -> None:
    """The key is of two columns on either side, or on both."""
    frame = pd.DataFrame({"place": [f"{t}_{x}" for t, x in PLACES], "y": range(len(PLACES))})
    frame["t"], frame["corner"] = zip(*PLACES, strict=True)
    frame = frame.iloc[[2, 0, 3, 1]]
    write = frame.to_csv if table.endswith("csv") else frame.to_parquet
    write(tmp_path / table, index=False)
    for key in ({"place": "{tile}_{x}"}, {"{t}/{corner}": "{tile}/{x}"}):
        got = loaded(data, source, fields={"y": "y"}, tables={tmp_path / table: key})
        assert (got["y"] == got["image"].reshape(-1, 16)[:, 0] // 2).all()


def test_what_is_no_part_of_a_name(data, binary) -> None:
    with pytest.raises(
        chaski.errors.UnsupportedError,
        match=re.escape('strings or whole numbers to be a part of "{tile}_{share}"'),
    ):
        numbers(data, "table.parquet", where=[["{tile}_{share}", "==", "a"]])


def test_a_column_whose_name_has_braces(tmp_path, binary) -> None:
    """It goes before the columns in the braces."""
    rows = [{"image": f"{k}.npy", "a": "x", "{a}": f"y{k}"} for k in range(3)]
    for row in rows:
        np.save(tmp_path / row["image"], np.zeros((1, 2, 2), np.uint8))
    pd.DataFrame(rows).to_csv(tmp_path / "t.csv", index=False)
    fields = {"image": chaski.Field(kind="raster")}
    rows = chaski.Rows(where=[["{a}", "==", "y1"]])
    with chaski.load(tmp_path / "t.csv", fields=fields, rows=rows, batch_size=4) as run:
        assert len(next(iter(run))["image"]) == 1


# Expressions of SQL as keys of a table of "code,y", by what Python makes of a file's tile, x and
# date. "x (m)" is a column, whatever it looks like.
KEYS = {
    "lower(code)": ("name", lambda t, x, d: f"{t}@{d}@{x}".upper()),
    "split_part(code, '.', 1)": ("name", lambda t, x, d: f"{t}@{d}@{x}.png"),
    "replace(code, ' ', '@')": ("name", lambda t, x, d: f"{t} {d} {x}"),
    "substr(code, 4)": ("tile || '/' || x || date", lambda t, x, d: f"xy_{t}/{x}{d}"),
    "concat(code, '')": ("{tile}-{date}-{x}", lambda t, x, d: f"{t}-{d}-{x}"),
    "x (m)": ("name", lambda t, x, d: f"{t}@{d}@{x}"),
}


@pytest.mark.parametrize("key", KEYS)
def test_keys_that_are_expressions(data, tmp_path, key) -> None:
    on, make = KEYS[key]
    column = "x (m)" if key == "x (m)" else "code"
    rows = [{column: make(*file), "y": 100 + k} for k, file in enumerate(FILES)]
    pd.DataFrame(rows[::-1]).to_csv(tmp_path / "t.csv", index=False)
    tables = {str(tmp_path / "t.csv"): {key: on}}
    got = loaded(data, "folder", {"y": "y"}, tables=tables)
    np.testing.assert_array_equal(got["y"], got["image"][:, 0, 0, 0] + 100)
    pd.DataFrame(rows[1:3]).to_csv(tmp_path / "ids.csv", index=False)
    got = loaded(data, "folder", ids=f"{tmp_path}/ids.csv::{key}", id_column=on)
    kept = got["image"][got["valid"].astype(bool), 0, 0, 0]
    assert sorted(kept) == [1, 2]


def test_ids_of_several_columns(data, tmp_path) -> None:
    pd.DataFrame(FILES[2:5], columns=["tile", "x", "date"]).to_csv(tmp_path / "a.csv", index=False)
    got = loaded(data, "folder", ids=f"{tmp_path}/a.csv::{{tile}}@{{date}}@{{x}}", id_column="name")
    assert sorted(got["image"][got["valid"].astype(bool), 0, 0, 0]) == [2, 3, 4]


@pytest.mark.parametrize("key", ["lower(cod)", "lower(code", "count(*)", "code || ", "1 = 1"])
def test_wrong_expressions(data, tmp_path, key) -> None:
    pd.DataFrame({"code": ["1", "a"], "y": [1, 2]}).to_csv(tmp_path / "t.csv", index=False)
    with pytest.raises((chaski.NotFoundError, chaski.UnsupportedError, chaski.CorruptError)):
        loaded(data, "folder", {"y": "y"}, tables={str(tmp_path / "t.csv"): {key: "name"}})


def test_ids_beside_texts_without_quotes(data, tmp_path, binary) -> None:
    files = ["folder/images/" + f"{t}@{d}@{x}.npy" for t, x, d in FILES[:2]]
    lines = ["file,text", f"{files[0]},a dog, a cat", f"{files[1]},one"]
    path = tmp_path / "t.csv"
    path.write_text("\n".join(lines))
    with pytest.raises(chaski.CorruptError, match='name it "text\\+"'):
        loaded(data, "folder", ids=f"{path}::file")
    got = loaded(data, "folder", ids=f"{path}::text+::file")
    assert sorted(got["image"][got["valid"].astype(bool), 0, 0, 0]) == [0, 1]
    (data / "t.csv").write_text(path.read_text())
    run = [binary, "index", "--field", "image=file", "-o", "t.parquet", "t.csv::text+"]
    subprocess.run(run, cwd=data, check=True)
    assert list(pd.read_parquet(data / "t.parquet")["text+"]) == ["a dog, a cat", "one"]
