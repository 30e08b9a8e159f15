"""Rows(ids=...), against a slow reading of the same lists."""

from __future__ import annotations

import csv
import json
import re
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import rasters
from conftest import nonempty

import chaski

pytestmark = pytest.mark.usefixtures("one_engine")

rasterio = pytest.importorskip("rasterio", reason="needs rasterio to write rasters")

NAMES = [f"{kind}/{kind}_{i:03}" for kind in ("crop", "river") for i in range(4)]


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> Path:
    root = tmp_path_factory.mktemp("ids")
    for k, name in enumerate(NAMES):
        for folder, ending in (("images", "tif"), ("masks", "png")):
            path = root / folder / f"{name}.{ending}"
            path.parent.mkdir(parents=True, exist_ok=True)
            x = np.full((1, 4, 4), k, np.uint8)
            driver = {"tif": "GTiff", "png": "PNG"}[ending]
            rasters.write(path, x, driver=driver, dtype="uint8")
    (root / "table.csv").write_text(
        "path,site\n" + "".join(f"images/{n}.tif,{k // 2}\n" for k, n in enumerate(NAMES))
    )
    return root


def loaded(root: Path, source: str = "images", **options: Any) -> list[int]:
    rows = options.pop("rows")
    with chaski.load(root / source, batch_size=3, shuffle=False, rows=rows, **options) as loader:
        return [int(x) for b in loader for x in np.asarray(b["image"])[:, 0, 0, 0]]


PICKED = [6, 1, 3]
FORMS = {
    "paths": "{name}.tif",
    "names": "{base}.tif",
    "other endings": "{base}.jpg",
    "stems": "{base}",
    "from the folder": "images/{name}.tif",
}


@pytest.mark.parametrize("form", FORMS.values(), ids=list(FORMS))
@pytest.mark.parametrize("kind", ["txt", "list", "csv", "headless", "parquet", "json", "member"])
def test_lists(data, tmp_path, binary, form, kind) -> None:
    """Whatever the list looks like, the samples are those that it names, in the dataset's order."""
    texts = [form.format(name=NAMES[k], base=NAMES[k].split("/")[1]) for k in PICKED]
    ids: Any = texts
    if kind == "txt":
        ids = tmp_path / "train.txt"
        ids.write_text("\n".join(texts) + "\n\n")
    elif kind in ("csv", "headless"):
        ids = tmp_path / "split.csv"
        with open(ids, "w", newline="") as f:
            rows = csv.writer(f)
            if kind == "csv":
                rows.writerow(["n", "file"])
            rows.writerows((i, text) for i, text in enumerate(texts))
        ids = f"{ids}::{'file' if kind == 'csv' else 1}"
    elif kind == "json":
        ids = tmp_path / "split.json"
        ids.write_text(json.dumps(texts))
    elif kind == "member":
        ids = tmp_path / "splits.json"
        other = {"about": {"train": ["x"], "n": [[1]]}, "val": [], "test": "train"}
        ids.write_text(json.dumps(other | {"train": [str(i) for i in range(70_000)] + texts}))
        with pytest.raises(chaski.errors.NotFoundError, match="no rows|name no sample"):
            loaded(data, rows=chaski.Rows(ids=f"{ids}::val"))
        ids = f"{ids}::train"
    elif kind == "parquet":
        pa = pytest.importorskip("pyarrow")
        import pyarrow.parquet as pq

        pq.write_table(pa.table({"id": texts}), tmp_path / "ids.parquet")
        ids = tmp_path / "ids.parquet"
    source = "." if form.startswith("images/") else "images"
    fields = {"image": "images/{id}.tif"} if source == "." else None
    missing = "drop" if kind == "member" else "error"
    got = loaded(data, source, rows=chaski.Rows(ids=ids, missing=missing), fields=fields)
    assert got == sorted(PICKED)


@pytest.mark.parametrize("header", ["", "image\n", "0\n"])
@pytest.mark.parametrize("form", FORMS.values(), ids=list(FORMS))
def test_a_csv_of_one_column(data, tmp_path, binary, form, header) -> None:
    """Its first line is an id, too, if it names a sample."""
    texts = [form.format(name=NAMES[k], base=NAMES[k].split("/")[1]) for k in PICKED]
    ids = tmp_path / "train.csv"
    ids.write_text(header + "\n".join(texts) + "\n")
    got = loaded(data, ".", rows=chaski.Rows(ids=ids), fields={"image": "images/{id}.tif"})
    assert got == sorted(PICKED)
    ids.write_text(header + "3\n1\n")
    rows = chaski.Rows(ids=ids, id_column="site")
    assert loaded(data, "table.csv", rows=rows, fields={"image": "path"}) == [2, 3, 6, 7]


MOVED = {
    "absolute": lambda root, name: str(root / f"images/{name}.tif"),
    "absolute elsewhere": lambda _, name: f"/home/me/set/images/{name}.tif",
    "Windows": lambda _, name: name.replace("/", "\\") + ".tif",
    "a drive": lambda _, name: "C:\\set\\images\\" + name.replace("/", "\\") + ".png",
    "from above": lambda _, name: f"./images/{name}.tif",
}


@pytest.mark.parametrize("moved", MOVED.values(), ids=list(MOVED))
@pytest.mark.parametrize("source", ["images", "images/**/*.tif", "table.csv"])
def test_lists_of_other_machines(data, binary, moved, source) -> None:
    """Folders that all ids share need not be those of the dataset, but for the last."""
    rows = chaski.Rows(ids=[moved(data, NAMES[k]) for k in PICKED])
    fields = {"image": "path"} if source == "table.csv" else None
    assert loaded(data, source, rows=rows, fields=fields) == sorted(PICKED)
    rows = chaski.Rows(ids=[f"/home/me/set/val/{n.split('/')[1]}.tif" for n in NAMES])
    with pytest.raises(chaski.errors.NotFoundError, match="no id of"):
        loaded(data, source, rows=rows, fields=fields)


@pytest.mark.parametrize("name", ["ids.txt", "index.npy"])
def test_a_list_that_is_no_text(data, tmp_path, binary, name) -> None:
    path = tmp_path / name
    path.write_text("crop_000\ncrop_001\n", encoding="utf-16")
    if name == "index.npy":
        np.save(path, np.arange(3))
    with pytest.raises(chaski.UnsupportedError, match="line 1 is no text in UTF-8"):
        loaded(data, rows=chaski.Rows(ids=path))


def test_a_list_of_columns_names_the_way(data, tmp_path, binary) -> None:
    file = tmp_path / "pairs.txt"
    file.write_text("".join(f"images/{NAMES[k]}.tif masks/{NAMES[k]}.png\n" for k in PICKED))
    with pytest.raises(chaski.errors.NotFoundError, match=r"as in pairs\.txt::0"):
        loaded(data, rows=chaski.Rows(ids=file))
    assert loaded(data, rows=chaski.Rows(ids=f"{file}::0")) == sorted(PICKED)


def test_names_of_pairs(data, binary) -> None:
    """A list may name the mask, or what {id} stands for."""
    fields = {"image": "images/{id}.tif", "mask": chaski.Field(pattern="masks/{id}.png")}
    for ids in (["crop/crop_002"], ["masks/crop/crop_002.png"], ["crop_002.png"]):
        assert loaded(data, ".", rows=chaski.Rows(ids=ids), fields=fields) == [2]


def test_a_column_of_the_dataset(data, binary) -> None:
    """With id_column each id names all rows that have it, also of tables and of names."""
    rows = chaski.Rows(ids=["1", "3"], id_column="site")
    assert loaded(data, "table.csv", rows=rows, fields={"image": "path"}) == [2, 3, 6, 7]
    rows = chaski.Rows(ids=["river"], id_column="kind")
    assert loaded(data, rows=rows, fields={"image": "{kind}/{id}.tif"}) == [4, 5, 6, 7]
    assert loaded(
        data, "table.csv", rows=chaski.Rows(ids=["crop_001"]), fields={"image": "path"}
    ) == [1]


def test_what_is_not_there(data, binary, capfd) -> None:
    ids = ["nothing", "crop_000", "a", "b", "c"]
    with pytest.raises(chaski.errors.NotFoundError, match=re.escape("4 of 5 ids")) as e:
        loaded(data, rows=chaski.Rows(ids=ids))
    assert '["nothing" "a" "b"]' in str(e.value)
    assert loaded(data, rows=chaski.Rows(ids=ids, missing="drop")) == [0]
    with pytest.raises(chaski.errors.NotFoundError, match="called like .crop/crop_000.tif"):
        loaded(data, rows=chaski.Rows(ids=["a", "b"]))
    with pytest.raises(chaski.errors.NotFoundError, match="none of its 8 rows"):
        loaded(data, rows=chaski.Rows(ids=["x"], missing="drop"))


def test_ids_that_name_several(data, tmp_path, binary) -> None:
    for k, folder in enumerate(("a", "b")):
        (tmp_path / folder).mkdir()
        rasters.write(tmp_path / folder / "1.tif", np.full((1, 4, 4), k, np.uint8))
    with pytest.raises(chaski.errors.CorruptError, match="names several samples"):
        loaded(tmp_path, ".", rows=chaski.Rows(ids=["1.tif"]))
    assert loaded(tmp_path, ".", rows=chaski.Rows(ids=["b/1"])) == [1]


def test_split_and_resume(data, tmp_path, binary) -> None:
    """A split is of the rows that the list leaves, and a state of other ids is refused."""
    parts = []
    for part in ("a", "b"):
        split = chaski.Split.by_hash({"a": 1, "b": 1}, seed=2)
        parts += loaded(
            data, rows=chaski.Rows(ids=[n + ".tif" for n in NAMES[1:7]], split=split, use=part)
        )
    assert sorted(parts) == [1, 2, 3, 4, 5, 6]
    states = []
    for ids in (NAMES[:4], NAMES[:4], NAMES[4:]):
        with chaski.load(data / "images", batch_size=2, rows=chaski.Rows(ids=ids)) as loader:
            if not states:
                first = iter(loader)
                next(first)
                states.append(loader.state_dict())
                want = np.asarray(next(first)["image"])
            elif ids == NAMES[:4]:
                loader.load_state_dict(states[0])
                np.testing.assert_array_equal(next(iter(loader))["image"], want)
            else:
                with pytest.raises(chaski.errors.StateError):
                    loader.load_state_dict(states[0])
                    next(iter(loader))


def test_a_catalog_has_the_parts_and_names_of_its_directory(data, tmp_path, binary) -> None:
    """Splits by hash, columns of names and tables beside do not depend on the catalog."""
    patterns = {"image": "images/{kind}/{id}.tif", "mask": "masks/{kind}/{id}.png"}
    pairs, plain = tmp_path / "pairs.parquet", data / "plain.parquet"
    given = [f"--field={name}={pattern}" for name, pattern in patterns.items()]
    for arguments in ([*given, "-o", str(pairs), "."], ["-o", str(plain), "images"]):
        subprocess.run([binary, "index", *arguments], cwd=data, check=True)
    labels = tmp_path / "labels.csv"
    labels.write_text("id,y\n" + "".join(f"{n.split('/')[1]},{k}\n" for k, n in enumerate(NAMES)))
    fields = dict.fromkeys(patterns, chaski.Field()) | {"kind": "kind", "y": "y"}
    with chaski.load(
        pairs, batch_size=8, shuffle=False, fields=fields, tables={labels: "id"}
    ) as loader:
        (batch,) = loader
    assert list(batch["kind"]) == [n.split("/")[0] for n in NAMES]
    assert batch["y"].tolist() == batch["image"][:, 0, 0, 0].tolist() == list(range(8))
    for seed in range(4):
        split = chaski.Split.by_hash({"a": 0.5, "b": 0.5}, seed=seed)
        rows = chaski.Rows(split=split, use="a")
        want = loaded(data, ".", rows=rows, fields=patterns)
        assert loaded(tmp_path, "pairs.parquet", rows=rows) == want
        assert loaded(data, "plain.parquet", rows=rows) == loaded(data, rows=rows)
    rows = chaski.Rows(where=[("kind", "==", "river")])
    assert loaded(tmp_path, "pairs.parquet", rows=rows) == [4, 5, 6, 7]


CODES = ["007", "012", "0100", "0003", "000", "0x1", "ab"]
ABOUT = dict(
    id="codes",
    description="d",
    licenses=["MIT"],
    title="t",
    dataset_version="1",
    tasks=["other"],
    providers=[{"name": "x"}],
)


@pytest.fixture(scope="module")
def codes(tmp_path_factory, binary) -> Path:
    """Images called by codes with zeros in front, in each kind of dataset."""
    root = tmp_path_factory.mktemp("codes")
    (root / "images").mkdir()
    for k, code in enumerate(CODES):
        rasters.write(root / "images" / f"{code}.tif", np.full((1, 4, 4), k, np.uint8))
    (root / "link").symlink_to("images")
    pairs = ["--field=image={id}.tif"]
    catalogs = {
        "files": ["images"],
        "pairs": [*pairs, "images"],
        "link": ["link"],
        "glob": ["images/*.tif"],
        "glob of pairs": [*pairs, "images/*.tif"],
        "named": [f"images/{code}.tif" for code in CODES],
    }
    for name, given in catalogs.items():
        command = [binary, "index", "-o", f"{name}.parquet", *given]
        subprocess.run(command, cwd=root, check=True)
    paths = [(code, root / "images" / f"{code}.tif") for code in CODES]
    chaski.pack([{"id": c, "path": p} for c, p in paths], root / "data.tacozip", ABOUT)
    lines = "".join(f"images/{c}.tif,{c},{int(c) if c.isdigit() else 77}\n" for c in CODES)
    (root / "table.csv").write_text("path,code,number\n" + lines)
    return root


DATASETS = {
    "directory": ("images", {"image": chaski.Field()}),
    "glob": ("images/*.tif", {"image": chaski.Field()}),
    "pattern": ("images", {"image": chaski.Field(pattern="{id}.tif")}),
    "catalog": ("files.parquet", {"image": chaski.Field()}),
    "catalog of pairs": ("pairs.parquet", {"image": chaski.Field()}),
    "container": ("data.tacozip", {"image": chaski.Field()}),
    "table": ("table.csv", {"image": chaski.Field(column="path")}),
}


def named(ids: list[Any]) -> list[int]:
    """The samples that ids name: by their text, else as whole numbers."""
    found = []
    for id in map(str, ids):
        same = [k for k, code in enumerate(CODES) if code == id] or [
            k for k, code in enumerate(CODES) if code.isdigit() and str(int(code)) == id
        ]
        assert len(same) == 1
        found += same
    return sorted(found)


@pytest.mark.parametrize("mixed", [False, True])
@pytest.mark.parametrize("source", list(DATASETS))
@pytest.mark.parametrize("ids", [["7", "100", "0"], [3, 12], ["0003", "ab", "7"], ["0x1"]])
def test_whole_numbers_name_codes(codes, tmp_path, source, mixed, ids) -> None:
    """A whole number names the sample that has zeros in front of it, in lists and tables."""
    place, fields = DATASETS[source]
    rows = chaski.Rows(ids=ids)
    if mixed:
        mixture = chaski.Mixture({"a": chaski.Source(str(codes / place), rows=rows)})
        with chaski.load(mixture, fields=fields, batch_size=1, shuffle=False) as loader:
            got = [int(b["image"][0, 0, 0, 0]) for b in nonempty(loader)]
    else:
        got = loaded(codes, place, rows=rows, fields=fields)
    assert sorted(got) == named(ids)
    labels = tmp_path / "labels.csv"
    labels.write_text("n,y\n" + "".join(f"{id},{k}\n" for k, id in enumerate(ids)))
    on = "code" if source == "table" else "id"
    want = {named([id])[0]: k for k, id in enumerate(ids)}
    with chaski.load(
        codes / place,
        fields=fields | {"y": "y"},
        batch_size=9,
        tables={labels: {"n": on}},
        rows=chaski.Rows(missing="drop"),
    ) as loader:
        (b,) = loader
        assert dict(zip(b["image"][:, 0, 0, 0].tolist(), b["y"].tolist(), strict=True)) == want


@pytest.mark.parametrize("column", ["code", "number"])
def test_whole_numbers_in_a_column(codes, column) -> None:
    fields = DATASETS["table"][1]
    rows = chaski.Rows(ids=["7", "12"], id_column=column)
    assert loaded(codes, "table.csv", rows=rows, fields=fields) == [0, 1]


@pytest.mark.parametrize("ids", [["007"], [7], ["7", "012"], "list.parquet::n", "list.csv::n"])
@pytest.mark.parametrize("dataset", ["text", "whole", "gap", "digits"])
def test_codes_and_numbers_of_tables(codes, tmp_path, monkeypatch, ids, dataset) -> None:
    """Codes name numbers, also floats that pandas makes of integers, and numbers name codes."""
    pd = pytest.importorskip("pandas")
    monkeypatch.chdir(tmp_path)
    found = {
        "text": ["007", "012", "ab"],
        "digits": ["007", "012", "13"],
        "whole": [7, 12, 13],
        "gap": [7, 12, None],
    }[dataset]
    paths = [str(codes / f"images/{code}.tif") for code in CODES[:3]]
    frame = pd.DataFrame({"path": paths, "code": found})
    place = "data.csv" if dataset == "digits" else "data.parquet"
    frame.to_csv(place, index=False) if dataset == "digits" else frame.to_parquet(place)
    pd.DataFrame({"n": [7.0, None]}).to_parquet("list.parquet")
    Path("list.csv").write_text("m,n\na,007\n")
    rows = chaski.Rows(ids=ids, id_column="code")
    want = [0, 1] if ids == ["7", "012"] else [0]
    assert loaded(tmp_path, place, rows=rows, fields={"image": "path"}) == want
    labels = {"list.parquet::n": "list.parquet", "list.csv::n": "list.csv"}.get(str(ids))
    if labels:
        rows = chaski.Rows(missing="drop")
        tables = {labels: {"n": "code"}}
        assert loaded(tmp_path, place, rows=rows, tables=tables, fields={"image": "path"}) == [0]


def test_a_number_that_names_two_codes_of_a_column(codes, tmp_path) -> None:
    lines = [f"{codes}/images/{c}.tif,{v}" for c, v in zip(CODES[:2], ("007", "07"), strict=True)]
    (tmp_path / "data.csv").write_text("path,code\n" + "\n".join(lines) + "\n")
    rows = chaski.Rows(ids=[7], id_column="code")
    with pytest.raises(chaski.errors.CorruptError, match='write it as the column "code" has it'):
        loaded(tmp_path, "data.csv", rows=rows, fields={"image": "path"})


@pytest.mark.parametrize("source", ["directory", "pattern"])
def test_whole_numbers_that_name_two(tmp_path, source, binary) -> None:
    for k, code in enumerate(("07", "007", "7a")):
        rasters.write(tmp_path / f"{code}.tif", np.full((1, 4, 4), k, np.uint8))
    fields = DATASETS[source][1]
    both = r'"7" names several samples, such as "007(\.tif)?" and "07(\.tif)?"'
    with pytest.raises(chaski.errors.CorruptError, match=both):
        loaded(tmp_path, ".", rows=chaski.Rows(ids=["7"]), fields=fields)
    (tmp_path / "labels.csv").write_text("id,y\n7,1\n")
    with pytest.raises(chaski.errors.CorruptError, match=both):
        chaski.load(
            tmp_path,
            fields=fields | {"y": "y"},
            batch_size=1,
            tables={tmp_path / "labels.csv": "id"},
        )
    assert loaded(tmp_path, ".", rows=chaski.Rows(ids=["07"]), fields=fields) == [0]


def test_a_catalog_has_the_paths_of_its_directory(codes) -> None:
    fields = {name: chaski.Field(column=name, kind="text") for name in ("path", "folder", "name")}
    found = []
    catalogs = ("files", "pairs", "link", "glob", "glob of pairs", "named")
    for place in ("images", "images/*.tif", *[f"{name}.parquet" for name in catalogs]):
        with chaski.load(
            codes / place, fields={"image": chaski.Field()} | fields, batch_size=9, shuffle=False
        ) as loader:
            (batch,) = loader
        found.append({name: list(batch[name]) for name in fields})
    assert found[0]["path"] == sorted(f"{code}.tif" for code in CODES)
    assert all(names == found[0] for names in found)


@pytest.mark.parametrize("name", ["splits.train", "a.b.c", "a", "none.train"])
def test_lists_inside_of_json(tmp_path, name) -> None:
    """A list of a member of an object in others is named by the members above it."""
    for k in range(4):
        rasters.write(tmp_path / f"{k}x.tif", np.full((1, 4, 4), k, np.uint8))
    file = {
        "a": {"b": {"d": 1, "c": ["1x"]}},
        "train": ["0x"],
        "splits": {"val": [], "train": ["3x"]},
    }
    (tmp_path / "s.json").write_text(json.dumps(file))
    rows = chaski.Rows(ids=f"{tmp_path / 's.json'}::{name}")
    if name in ("a", "none.train"):
        with pytest.raises(chaski.NotFoundError, match="no column|no object has such a member"):
            chaski.load(tmp_path, batch_size=1, rows=rows)
        return
    with chaski.load(tmp_path, batch_size=1, rows=rows) as loader:
        assert [int(b["image"].max()) for b in loader] == [{"splits.train": 3, "a.b.c": 1}[name]]
