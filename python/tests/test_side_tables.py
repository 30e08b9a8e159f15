"""load(tables=...): columns of other tables, against a slow join of the same rows."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import rasters
from conftest import nonempty

import chaski

pytestmark = pytest.mark.usefixtures("one_engine")

rasterio = pytest.importorskip("rasterio", reason="needs rasterio to write rasters")

ABOUT = dict(
    id="side",
    description="d",
    licenses=["MIT"],
    title="t",
    dataset_version="1",
    tasks=["other"],
    providers=[{"name": "x"}],
)
N = 8
IDS = [f"{'crop' if k < 4 else 'river'}_{k:03}" for k in range(N)]
ORDER = [5, 2, 7, 0, 3, 1, 6, 4]
LABELS = {
    id: {
        "count": 10 * k,
        "share": k / 4,
        "note": f'a "{k}", b',
        "split": "test" if k % 3 else "train",
    }
    for k, id in enumerate(IDS)
}


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> Path:
    root = tmp_path_factory.mktemp("side")
    for k, id in enumerate(IDS):
        path = root / "images" / id.split("_")[0] / f"{id}.tif"
        path.parent.mkdir(parents=True, exist_ok=True)
        rasters.write(path, np.full((1, 4, 4), k, np.uint8))
    with open(root / "table.csv", "w") as f:
        rows = "".join(f"images/{id.split('_')[0]}/{id}.tif,{id},{k}\n" for k, id in enumerate(IDS))
        f.write("path,id,number\n" + rows)
    return root


def written(folder: Path, kind: str, rows: list[dict[str, Any]]) -> Any:
    """Writes rows as a table of a kind."""
    path = folder / f"labels.{kind}"
    if kind in ("csv", "tsv"):
        with open(path, "w", newline="") as f:
            out = csv.DictWriter(f, list(rows[0]), delimiter="\t" if kind == "tsv" else ",")
            out.writeheader()
            out.writerows(rows)
    elif kind == "json":
        path.write_text(json.dumps(rows))
    elif kind == "jsonl":
        path.write_text("\n".join(map(json.dumps, rows)))
    else:
        pa = pytest.importorskip("pyarrow")
        import pyarrow.parquet as pq

        table = pa.Table.from_pylist(rows)
        if kind == "memory":
            return table
        pq.write_table(table, path, row_group_size=3)
    return path


def batch(source: Any, **options: Any) -> Any:
    with chaski.load(source, batch_size=N, shuffle=False, **options) as loader:
        return next(iter(loader))


SOURCES = {
    "folder": ("images", {"image": chaski.Field()}, "name"),
    "paths": ("images", {"image": chaski.Field()}, "path"),
    "glob": ("images/*/*.tif", {"image": chaski.Field()}, "name"),
    "pattern": ("images", {"image": "{kind}/{id}.tif"}, "id"),
    "table": ("table.csv", {"image": "path"}, "id"),
    "catalog": ("catalog.parquet", {"image": chaski.Field()}, "name"),
    "container": ("data.tacozip", {"image": chaski.Field()}, "id"),
}


@pytest.fixture(scope="module")
def stores(data, binary) -> Path:
    import subprocess

    out = data / "catalog.parquet"
    command = [binary, "index", "--format", "parquet", "-o", out, data / "images"]
    subprocess.run(list(map(str, command)), check=True)
    samples = [{"id": id, "path": data / f"images/{id.split('_')[0]}/{id}.tif"} for id in IDS]
    chaski.pack(samples, data / "data.tacozip", ABOUT)
    return data


@pytest.mark.parametrize("kind", ["csv", "tsv", "json", "jsonl", "parquet", "memory"])
@pytest.mark.parametrize("source", list(SOURCES))
def test_columns_of_tables(stores, tmp_path, source, kind) -> None:
    """Numbers, floats and strings of the row with the key of each sample, whatever has both."""
    rows = [{"Image ID": IDS[k], **LABELS[IDS[k]]} for k in ORDER] + [
        {"Image ID": "nothing", **LABELS[IDS[0]]}
    ]
    table = written(tmp_path, kind, rows)
    place, fields, on = SOURCES[source]
    keys = {"Image ID": on}
    tables: Any = [(table, keys)] if kind == "memory" else {table: keys}
    fields = fields | {"count": "count", "note": chaski.Field(column="note", kind="text")}
    fields |= {"share": chaski.Field(column="share", kind="number", dtype="float32")}
    b = batch(stores / place, tables=tables, fields=fields)
    for i, id in enumerate(IDS):
        assert np.all(np.asarray(b["image"])[i] == IDS.index(id))
        assert b["count"][i] == LABELS[id]["count"] and b["note"][i] == LABELS[id]["note"]
        assert b["share"][i] == LABELS[id]["share"]
    assert b["count"].dtype == np.int64 and b["share"].dtype == np.float32
    # Conditions, SQL, splits and strata see them, too.
    picked = [k for k, id in enumerate(IDS) if LABELS[id]["split"] == "train"]
    for choice in (
        {"where": [("split", "==", "train")]},
        {"where": "split = 'train'"},
        {"where": f"split = 'train' AND {'name' if on == 'path' else on} IS NOT NULL"},
        {"split": "train"},
    ):
        some = batch(stores / place, tables=tables, fields=fields, rows=chaski.Rows(**choice))
        assert list(some["count"]) == [10 * k for k in picked], choice


def test_strata(data, tmp_path, binary) -> None:
    rows = [{"name": id, "rare": int(k == 3)} for k, id in enumerate(IDS)]
    table = written(tmp_path, "csv", rows)
    chosen = chaski.Rows(strata=chaski.Strata("rare", until=40, per_batch=True))
    with chaski.load(data / "images", batch_size=40, rows=chosen, tables={table: "name"}) as loader:
        image = np.asarray(next(iter(loader))["image"])[:, 0, 0, 0]
    assert (image == 3).sum() == 20


def test_objects_by_name_and_paths(data, tmp_path, binary) -> None:
    """A JSON object of objects has the column "key"; a column of paths makes rasters."""
    named = {f"{id}.tif": {"again": f"images/{id.split('_')[0]}/{id}.tif"} for id in reversed(IDS)}
    table = data / "named.json"
    table.write_text(json.dumps(named))
    fields = {"image": chaski.Field(), "again": "again"}
    b = batch(data / "images", tables={table: {"key": "path"}}, fields=fields)
    np.testing.assert_array_equal(b["image"], b["again"])


def test_a_json_file_a_sample(data, tmp_path, binary) -> None:
    """A glob of JSON files is a table, with the path of each."""
    for k in ORDER:
        (tmp_path / "about" / IDS[k]).mkdir(parents=True)
        text = json.dumps({"labels": ["even", "all"] if k % 2 == 0 else ["all"], "n": {"x": k}})
        (tmp_path / "about" / IDS[k] / f"{IDS[k]}_about.json").write_text(text)
    fields = {"image": chaski.Field(), "y": chaski.Field(column="labels", kind="class")}
    table = tmp_path / "about/*/*_about.json"
    b = batch(data / "images", tables={str(table): {"folder": "name"}}, fields=fields)
    assert b["y"].tolist() == [[1, 1 - k % 2] for k in range(N)]
    with pytest.raises(chaski.errors.NotFoundError, match="no file matches"):
        batch(data / "images", tables={str(tmp_path / "about/*.json"): {"folder": "name"}})
    (tmp_path / "about" / IDS[3] / f"{IDS[3]}_about.json").write_text("{")
    with pytest.raises(chaski.errors.CorruptError, match=f"{IDS[3]}_about.json"):
        batch(data / "images", tables={str(table): {"folder": "name"}}, fields=fields)


def test_lists_of_lists(data, tmp_path, binary) -> None:
    """Their first elements are one column, their second ones another."""
    trees = {id: [["oak", k], ["fir", k / 2]][: 1 + k % 2] for k, id in enumerate(IDS)}
    table = tmp_path / "trees.json"
    table.write_text(json.dumps(trees))
    fields: dict[str, Any] = {
        "image": chaski.Field(),
        "y": chaski.Field(column="value.0", kind="class"),
        "texts": chaski.Field(column="value.0", kind="text"),
    }
    b = batch(data / "images", tables={table: {"key": "name"}}, fields=fields)
    assert b["y"].tolist() == [[k % 2, 1] for k in range(N)]
    assert [json.loads(t) for t in b["texts"]] == [[t[0] for t in trees[id]] for id in IDS]
    whole = {id: [[k, k + 0.5]] for k, id in enumerate(IDS)}
    table.write_text(json.dumps(whole))
    fields = {"image": chaski.Field(), "y": chaski.Field(column="value.1", dtype="float64")}
    b = batch(data / "images", tables={table: {"key": "name"}}, fields=fields)
    assert np.ravel(b["y"]).tolist() == [k + 0.5 for k in range(N)]
    table.write_text(json.dumps({id: [[1, 2], [3]] for id in IDS}))
    with pytest.raises(chaski.errors.NotFoundError, match=r"value\.1"):
        batch(data / "images", tables={table: {"key": "name"}}, fields=fields)


def test_numbers_as_keys(data, tmp_path, binary) -> None:
    """Integers of a table and the text that names have are one, also with zeros in front."""
    pattern = {"image": chaski.Field(pattern="{kind}/{kind}_{n}.tif"), "y": "y"}
    for kind in ("csv", "parquet"):
        rows = [{"n": f"{k:03}" if kind == "csv" else k, "y": k * k} for k in ORDER]
        b = batch(data / "images", tables={written(tmp_path, kind, rows): "n"}, fields=pattern)
        assert list(b["y"]) == [k * k for k in range(N)]
    whole = [{"n": k, "y": k * k} for k in ORDER]  # of texts with zeros in front
    for kind in ("csv", "parquet", "json"):
        table = {written(tmp_path, kind, whole): {"n": "tile"}}
        fields = {"image": "images/{kind}/{kind}_{tile}.tif", "y": "y"}
        assert list(batch(data, tables=table, fields=fields)["y"]) == [k * k for k in range(N)]
    rows = [{"number": f"{k:03}", "y": k * k} for k in ORDER]
    table = {written(tmp_path, "csv", rows): "number"}
    b = batch(data / "table.csv", tables=table, fields={"image": "path", "y": "y", "n": "number"})
    assert list(b["y"]) == [k * k for k in b["n"]]


@pytest.mark.parametrize("kind", ["csv", "parquet"])
@pytest.mark.parametrize("source", ["images", "table.csv"])
@pytest.mark.parametrize(
    "moved",
    [lambda p: f"/home/me/set/images/{p}", lambda p: "D:\\set\\images\\" + p.replace("/", "\\")],
)
def test_paths_of_another_machine(data, tmp_path, binary, kind, source, moved) -> None:
    """Folders that all keys share do not count, but for the last."""
    paths = [f"{id.split('_')[0]}/{id}.tif" for id in IDS]
    rows = [{"file": moved(paths[k]), "y": k * k} for k in ORDER] + [{"file": "", "y": -1}]
    table = {written(tmp_path, kind, rows): {"file": "path"}}
    fields = {"image": chaski.Field(column="path", kind="raster"), "y": "y"}
    if source == "images":
        fields["image"] = chaski.Field()
    b = batch(data / source, tables=table, fields=fields)
    assert list(b["y"]) == [k * k for k in range(N)]
    wrong = [{"file": moved(f"other/{p.split('/')[1]}"), "y": 1} for p in paths]
    table = {written(tmp_path, kind, wrong): {"file": "path"}}
    with pytest.raises(chaski.errors.NotFoundError, match="no sample has a row"):
        batch(data / source, tables=table, fields=fields)


@pytest.mark.parametrize("source", ["folder", "glob", "table"])
@pytest.mark.parametrize(
    "before, slash", [(None, "/"), ("/home/me/", "/"), ("", "/"), ("D:\\set\\", "\\")]
)
def test_whole_paths(data, tmp_path, binary, source, before, slash) -> None:
    """Files without a folder below the dataset are told by the one that they lie in."""

    def moved(p: Path) -> str:
        return str(p) if before is None else before + p.parent.name + slash + p.name

    files = sorted((data / "images/river").glob("*.tif"))
    rows = [{"file": moved(p), "y": k * k} for k, p in enumerate(files)]
    table = {written(tmp_path, "csv", rows[::-1]): {"file": "path"}}
    fields: dict[str, Any] = {"image": chaski.Field(), "y": "y"}
    place = {"folder": data / "images/river", "glob": data / "images/river/*.tif"}.get(source)
    if place is None:
        place = data / "images/river/list.csv"
        place.write_text("path\n" + "".join(f"{p.name}\n" for p in files))
        fields["image"] = chaski.Field(column="path", kind="raster")
    b = batch(place, tables=table, fields=fields)
    assert list(b["y"]) == [k * k for k in range(len(files))]
    wrong = [{"file": moved(p.parent.parent / "lake" / p.name), "y": 1} for p in files]
    with pytest.raises(chaski.errors.NotFoundError, match="no sample has a row"):
        batch(place, tables={written(tmp_path, "csv", wrong): {"file": "path"}}, fields=fields)


@pytest.mark.parametrize("mark", ["", "\ufeff"])
@pytest.mark.parametrize("line", ["sep=;", "SEP=\t", "sep=,\r", "sep=|"])
def test_the_line_of_excel(data, tmp_path, binary, line, mark) -> None:
    """The line before the header that says what separates values is none of them."""
    separator = line.strip("\r")[-1]
    rows = [["name", "y"], *([IDS[k], str(k * k)] for k in ORDER)]
    path = tmp_path / "excel.csv"
    lines = [line.rstrip("\r"), *(separator.join(r) for r in rows)]
    end = "\r\n" if line.endswith("\r") else "\n"
    path.write_bytes((mark + end.join(lines) + end).encode())
    b = batch(data / "images", tables={path: "name"}, fields={"image": chaski.Field(), "y": "y"})
    assert list(b["y"]) == [k * k for k in range(N)]
    boxes = (
        path.read_text()
        .replace("name", "image")
        .replace(f"{separator}y", f"{separator}xmin{separator}ymin{separator}xmax{separator}ymax")
    )
    boxes = re.sub(
        rf"(_\d+){re.escape(separator)}\d+", separator.join([r"\1", "0", "1", "2", "3"]), boxes
    )
    path.write_text(boxes)
    fields = {"image": chaski.Field(), "y": chaski.Vector(path, kind="boxes")}
    for one in nonempty(batch(data / "images", fields=fields)["y"].rows()):
        assert one.tolist() == [[0, 1, 2, 3]]


def test_what_the_line_of_excel_says(data, tmp_path, binary) -> None:
    """A comma in the name of a column separates nothing where the line says so."""
    path = tmp_path / "excel.csv"
    rows = "".join(f"{id};{k};1;1;3;3\n" for k, id in enumerate(IDS))
    path.write_text("sep=;\nimage;area, km2;xmin;ymin;xmax;ymax\n" + rows)
    images = chaski.Field()
    b = batch(
        data / "images",
        tables={path: {"image": "name"}},
        fields={"image": images, "y": chaski.Field(column="area, km2", kind="number")},
    )
    assert list(b["y"]) == list(range(N))
    fields = {"image": images, "y": chaski.Vector(path, kind="boxes", columns=["area, km2"])}
    got = batch(data / "images", fields=fields)["y_area, km2"].rows()
    assert [one.tolist() for one in got] == [[k] for k in range(N)]


def test_without_header(data, tmp_path, binary) -> None:
    """Columns of a file without a header are called by their numbers."""
    path = tmp_path / "rows.csv"
    path.write_text("".join(f"{k},{IDS[k]},{k / 2}\n" for k in ORDER))
    fields = {"image": chaski.Field(), "y": "2"}
    b = batch(data / "images", tables={path: {"1": "name"}}, fields=fields)
    assert list(b["y"]) == [k / 2 for k in range(N)]


def test_several_tables(data, tmp_path, binary) -> None:
    """Each field has its values from the table that has its column."""
    a = written(tmp_path, "csv", [{"name": id, "y": k} for k, id in enumerate(IDS)])
    b = written(tmp_path, "json", [{"id": id, "z": -k} for k, id in enumerate(IDS)])
    fields = {"image": chaski.Field(), "y": "y", "z": "z"}
    got = batch(data / "images", tables={a: "name", b: {"id": "name"}}, fields=fields)
    assert list(got["y"]) == list(range(N)) and list(got["z"]) == [-k for k in range(N)]


def test_several_rows_for_a_sample(data, tmp_path, binary) -> None:
    """A column is then the list of the values of all rows with the key, in their order."""
    of = [["oak", "fir"], ["fir"], ["ash", "fir", "oak"], [], *[["oak"]] * 4]
    rows = [{"name": id, "y": y, "k": len(y)} for id, ys in zip(IDS, of, strict=True) for y in ys]
    rows = rows[1::2] + rows[::2]
    names = ["ash", "fir", "oak"]
    options: dict[str, Any] = {
        "fields": {
            "image": chaski.Field(),
            "y": chaski.Field(column="y", kind="class"),
            "text": chaski.Field(column="y", kind="text"),
        },
        "rows": chaski.Rows(missing="drop"),
    }
    tables = {written(tmp_path, "csv", rows): {"name[]": "name"}}
    got = batch(data / "images", tables=tables, **options)
    held = [k for k in range(N) if of[k]]
    assert list(np.asarray(got["image"])[:, 0, 0, 0]) == held
    assert got["y"].tolist() == [[int(n in of[k]) for n in names] for k in held]
    want = [[r["y"] for r in rows if r["name"] == IDS[k]] for k in held]
    assert [json.loads(t) for t in got["text"]] == want
    with pytest.raises(
        chaski.errors.Error, match=r"several rows have the key.*\"name\[\]\", which makes"
    ):
        batch(data / "images", tables={next(iter(tables)): "name"}, **options)
    for column, message in (("y", "several rows for each sample"), ("name", "")):
        options["rows"] = chaski.Rows(missing="drop", where=[(column, "in", ["oak", IDS[1]])])
        if message:
            with pytest.raises(chaski.errors.UnsupportedError, match=message):
                batch(data / "images", tables=tables, **options)
        else:
            assert len(batch(data / "images", tables=tables, **options)["valid"]) == 1
    options["fields"]["y"] = chaski.Field(column="k")
    options["rows"] = chaski.Rows(missing="drop")
    with pytest.raises(chaski.errors.CorruptError, match="a list of 1 numbers"):
        batch(data / "images", tables=tables, **options)


def test_missing_rows(data, tmp_path, binary) -> None:
    rows = [{"name": IDS[k], "y": k} for k in (6, 1)]
    options: dict[str, Any] = {
        "tables": {written(tmp_path, "csv", rows): "name"},
        "fields": {"image": chaski.Field(), "y": "y"},
    }
    with pytest.raises(chaski.errors.NotFoundError) as e:
        batch(data / "images", **options)
    assert '6 of 8 samples have no row, such as those whose "name" is' in str(e.value)
    assert f'["{IDS[0]}" "{IDS[2]}" "{IDS[3]}"]' in str(e.value)
    assert 'missing "drop" leaves them out' in str(e.value)
    b = batch(data / "images", **options, rows=chaski.Rows(missing="drop"))
    assert list(b["y"]) == [1, 6] and list(np.asarray(b["image"])[:, 0, 0, 0]) == [1, 6]


def test_resume(data, tmp_path, binary) -> None:
    """A state goes on with the same table, also from another place, and not with other values."""
    rows = [{"name": id, "y": k} for k, id in enumerate(IDS)]
    fields = {"image": chaski.Field(), "y": "y"}

    def load(folder: str, rows: list[dict[str, Any]]) -> Any:
        (tmp_path / folder).mkdir(exist_ok=True)
        table = written(tmp_path / folder, "csv", rows)
        return chaski.load(data / "images", batch_size=3, tables={table: "name"}, fields=fields)

    with load("a", rows) as loader:
        steps = iter(loader)
        next(steps)
        state, want = loader.state_dict(), next(steps)
    with load("b", rows) as loader:
        loader.load_state_dict(state)
        got = next(iter(loader))
        np.testing.assert_array_equal(got["y"], want["y"])
        np.testing.assert_array_equal(got["image"], want["image"])
    rows[4]["y"] = 99
    with load("c", rows) as loader, pytest.raises(chaski.errors.StateError):
        loader.load_state_dict(state)
        next(iter(loader))


def test_stats_and_mixtures(data, tmp_path, binary) -> None:
    rows = [{"name": id, "y": k} for k, id in enumerate(IDS)]
    tables = {written(tmp_path, "csv", rows): "name"}
    chosen = chaski.Rows(where=[("y", "<", 2)])
    got = chaski.stats(data / "images", tables=tables, rows=chosen)
    assert got["samples"] == 2 and got.mean()[0] == 0.5
    source = chaski.Source(data / "images", tables=tables, rows=chosen)
    fields = {"image": chaski.Field(), "y": "y"}
    b = batch(chaski.Mixture({"one": source}), fields=fields)
    assert sorted(b["y"]) == [0, 1]


def wrong(rows: list[dict[str, Any]], key: Any = "name", **options: Any) -> Any:
    return rows, key, options


WRONG = {
    "duplicates": (
        wrong([{"name": "a", "y": 1}, {"name": "b", "y": 2}, {"name": "a", "y": 3}]),
        'several rows have the key ["a"]',
    ),
    "no key in the table": (wrong([{"id": IDS[0], "y": 1}]), 'no column "name"; there are id, y'),
    "no key in the dataset": (
        wrong([{"code": IDS[0], "y": 1}], "code"),
        "listed rasters have no columns",
    ),
    "no column": (wrong([{"name": id, "z": 1} for id in IDS]), "no table has it: "),
    "a key of lists": (
        wrong([{"name": id, "y": 1} for id in IDS], ["name"]),
        "it must be a column",
    ),
    "two keys": (
        wrong([{"name": id, "y": 1} for id in IDS], {"a": "b", "c": "d"}),
        "it must be a column of the dataset",
    ),
    "an end that names several": (
        wrong([{"name": "", "y": 1}, {"name": "x", "y": 2}]),
        'no sample has a row: they have "name" like',
    ),
    "a name twice": (
        wrong(
            [{"name": id, "y": 1, "kind": "a"} for id in IDS],
            fields={
                "image": "{kind}/{id}.tif",
                "y": "y",
                "k": chaski.Field(column="kind", kind="text"),
            },
        ),
        "it is a column of labels.csv and of the dataset",
    ),
}


@pytest.mark.parametrize("case", list(WRONG))
def test_wrong(data, tmp_path, binary, case) -> None:
    (rows, key, options), message = WRONG[case]
    table = written(tmp_path, "csv", rows)
    options = {"fields": {"image": chaski.Field(), "y": "y"}} | options
    with pytest.raises(chaski.errors.Error, match=re.escape(message)):
        batch(data / "images", tables={table: key}, **options)


def test_wrong_tables(data, tmp_path, binary) -> None:
    for tables, message in (
        ({"labels.xlsx": "name"}, "labels.xlsx"),
        ({tmp_path / "none.csv": "name"}, "none.csv"),
        ([tmp_path / "none.csv"], "write {path: column}"),
        ({tmp_path: "name"}, "is neither a table (.csv, .tsv, .parquet, .json)"),
        ([(7, "name")], "it must be a path or a table"),
    ):
        with pytest.raises(chaski.errors.Error, match=re.escape(message)):
            batch(data / "images", tables=tables)
    fields = {"image": chaski.Field()}
    with pytest.raises(chaski.errors.SpecError, match="tables is for each Source of a Mixture"):
        batch(chaski.Mixture({"a": data / "images"}), tables={"a.csv": "name"}, fields=fields)


def test_keys_that_differ_in_their_ending(data, tmp_path, binary) -> None:
    """Rows that differ in the ending alone are an error for names, and not for paths."""
    rows = [{"n": f"{id}.{end}", "y": k} for end in ("png", "tif") for k, id in enumerate(IDS)]
    table = written(tmp_path, "csv", rows)
    fields = {"image": chaski.Field(), "y": "y"}
    with pytest.raises(chaski.errors.CorruptError, match="are both the sample") as e:
        batch(data / "images", tables={table: {"n": "name"}}, fields=fields)
    assert str(table) in str(e.value)
    table = written(tmp_path, "csv", [r | {"y": r["y"] + 100 * ("png" in r["n"])} for r in rows])
    b = batch(data / "images", tables={table: {"n": "path"}}, fields=fields)
    assert list(b["y"]) == list(range(N))


def test_keys_of_which_one_has_more_of_the_path(tmp_path, binary) -> None:
    """One key has the ending of the sample, the other its folder: neither is taken in silence."""
    (tmp_path / "im/b").mkdir(parents=True)
    np.save(tmp_path / "im/b/a.npy", np.zeros((2, 2)))
    for keys in ("b/a.png", "a.npy"), ("b/a", "a.npy"):
        (tmp_path / "t.csv").write_text("n,y\n" + "".join(f"{k},1\n" for k in keys))
        fields = {"image": chaski.Field(), "y": "y"}
        tables = {tmp_path / "t.csv": {"n": "path"}}
        with pytest.raises(chaski.CorruptError, match="are both the sample") as e:
            chaski.load(tmp_path / "im/**/*.npy", batch_size=1, tables=tables, fields=fields)
        assert all(f'"{k}"' in str(e.value) for k in keys)


def test_blanks_behind_commas(data, tmp_path, binary) -> None:
    """Where the first line has them, they are not of the values, in quotes or not."""
    table = tmp_path / "labels.csv"
    lines = [f'{id}, {"even" if k % 2 == 0 else "odd"}, "a {k}"\n' for k, id in enumerate(IDS)]
    table.write_text("name, kind, note\n" + "".join(lines))
    fields = {"image": chaski.Field(), "note": chaski.Field(column="note", kind="text")}
    rows = chaski.Rows(where=[("kind", "==", "odd")])
    b = batch(data / "images", tables={table: "name"}, fields=fields, rows=rows)
    assert list(b["note"]) == [f"a {k}" for k in range(1, N, 2)]


def test_texts_that_are_no_dates(data, tmp_path, binary) -> None:
    """Letters of dates of other forms are not in the order of time: they are not compared."""
    for form in ("{m}/15/2021", "15.{m}.2021", "2021/{m}/15", "2021-{m:02}-15"):
        rows = [{"name": id, "day": form.format(m=k + 1)} for k, id in enumerate(IDS)]
        options: dict[str, Any] = {"tables": {written(tmp_path, "csv", rows): "name"}}
        options["rows"] = chaski.Rows(where=[("day", "<", "2021-03-01")])
        if form.startswith("2021-"):
            image = np.asarray(batch(data / "images", **options)["image"])
            assert list(image[:, 0, 0, 0]) == [0, 1]
        else:
            with pytest.raises(chaski.errors.Error, match="compares the letters of texts"):
                batch(data / "images", **options)


def test_boxes_in_npz(tmp_path, binary) -> None:
    """An array of a .npz file has boxes, as a .npy file has them."""
    boxes = {k: np.array([[0, 1, 2, 3 + k, 1], [1, 1, 4, 4, 0]][: k + 1], float) for k in (0, 1)}
    for k, array in boxes.items():
        np.savez(tmp_path / f"{k}.npz", image=np.full((1, 8, 8), k, "u1"), boxes=array)
    y = chaski.Vector("{id}.npz::boxes", kind="boxes")
    with chaski.load(
        tmp_path, batch_size=2, shuffle=False, fields={"image": "{id}.npz::image", "y": y}
    ) as loader:
        (b,) = loader
    for k, got in enumerate(nonempty(b["y"].rows())):
        np.testing.assert_allclose(np.asarray(got)[:, :4], boxes[k][:, :4])


@pytest.mark.parametrize("ending", ["csv", "tsv", "json"])
def test_globs_of_tables(data, tmp_path, ending) -> None:
    """Files of a glob are one table with the columns of their paths, also as a dataset."""
    rows = [{"id": id, "y": k / 2 if k > 5 else k, "code": f"0{k}"} for k, id in enumerate(IDS)]
    for part in range(4):
        folder = tmp_path / f"part{part}"
        folder.mkdir()
        written(folder, ending, rows[2 * part : 2 * part + 2])
    glob = tmp_path / "part*" / f"*.{ending}"
    fields: Any = {"image": chaski.Field(), "y": "y", "folder": "folder"}
    fields["code"] = chaski.Field(column="code", kind="text")
    b = batch(data / "images", fields=fields, tables={glob: "id"})
    for k in range(N):
        row = rows[int(b["image"][k, 0, 0, 0])]
        assert (b["y"][k], b["code"][k]) == (row["y"], row["code"])
        assert b["folder"][k] == f"part{rows.index(row) // 2}"
    fields = {"id": chaski.Field(column="id", kind="text"), "y": "y"}
    b = batch(glob, fields=fields)
    assert list(b["id"]) == IDS and b["y"].tolist() == [row["y"] for row in rows]


def test_globs_of_tables_that_differ(data, tmp_path) -> None:
    (tmp_path / "a.csv").write_text("id,y\ncrop_000,1\n")
    (tmp_path / "b.csv").write_text("id,z\ncrop_001,1\n")
    fields: Any = {"image": chaski.Field(), "y": "y"}
    with pytest.raises(chaski.CorruptError, match=r"b\.csv.* its columns are id, z, and those of"):
        batch(data / "images", fields=fields, tables={tmp_path / "*.csv": "id"})


@pytest.mark.parametrize("form", ["class of each", "list of each", "features", "feature each"])
def test_json_by_name_and_features(data, tmp_path, form) -> None:
    """Values by the names of images, and features of GeoJSON without assets, are rows."""
    values = {id: [k % 3, 9] if form == "list of each" else k % 3 for k, id in enumerate(IDS)}
    key: Any = {"key": "name"}
    features: list[dict[str, Any]] = [
        {"type": "Feature", "geometry": None, "properties": {"chip": id, "value": v}}
        for id, v in values.items()
    ]
    table = tmp_path / "labels.json"
    if form == "feature each":
        for f in features:
            (tmp_path / f"{f['properties']['chip']}.json").write_text(json.dumps(f))
        table, key = tmp_path / "*.json", "name"
    elif form == "features":
        table.write_text(json.dumps({"type": "FeatureCollection", "features": features}))
        key = {"chip": "name"}
    else:
        table.write_text(json.dumps({f"{id}.tif": v for id, v in values.items()}))
    b = batch(
        data / "images", fields={"image": chaski.Field(), "value": "value"}, tables={table: key}
    )
    for image, value in zip(nonempty(b["image"]), b["value"], strict=True):
        assert np.array_equal(value, values[IDS[int(image[0, 0, 0])]])


def test_files_of_a_glob_without_folders(data, tmp_path) -> None:
    """The folder of a sample stays that of its own file where the files of a glob lie in none."""
    for part in ("crop", "river"):
        rows = [{"id": id, "y": k} for k, id in enumerate(IDS) if id.startswith(part)]
        written(tmp_path, "csv", rows).rename(tmp_path / f"{part}.csv")
    fields: Any = {"image": chaski.Field(), "y": "y"}
    fields["class"] = chaski.Field(column="folder", kind="class")
    b = batch(data / "images", fields=fields, tables={tmp_path / "*.csv": "id"})
    assert np.array_equal(b["y"], b["image"][:, 0, 0, 0])
    assert b["class"].tolist() == [int(IDS[y].startswith("river")) for y in b["y"]]


def test_tables_that_are_not_read_say_the_way(data, tmp_path) -> None:
    (tmp_path / "labels.xlsx").write_bytes(b"PK\x03\x04")
    with pytest.raises(
        chaski.SpecError, match=r"is neither a table .*: an Excel file is not read: .*read_"
    ):
        batch(data / "images", tables={tmp_path / "labels.xlsx": "name"})


@pytest.mark.parametrize("key", ["row", "{row}"])
def test_no_rows_of_arrays(tmp_path, key) -> None:
    """The arrays of a file have no numbers of rows to join by: row is a wrong name."""
    h5py = pytest.importorskip("h5py", reason="writes arrays")
    images = tmp_path / "images"
    images.mkdir()
    for k in range(3):
        rasters.write(images / f"{k}.tif", np.full((1, 4, 4), k, np.uint8))
    with h5py.File(tmp_path / "labels.h5", "w") as f:
        f["id"], f["y"] = np.array([2, 0, 1]), np.arange(3)
    fields = {"image": chaski.Field(), "y": "y"}

    def load(column: str) -> chaski.Loader:
        table = {tmp_path / "labels.h5": {column: "name"}}
        return chaski.load(images, batch_size=3, shuffle=False, fields=fields, tables=table)

    with pytest.raises(chaski.NotFoundError, match="column row.*there are id, y"):
        load(key)
    with load("id") as loader:
        assert next(iter(loader))["y"].tolist() == [1, 2, 0]
