"""Members of JSON as tables, numbers of rows as keys, columns by their table: against json."""

from __future__ import annotations

import csv
import json
import time
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
import rasters
from conftest import nonempty

import chaski
from chaski import Field, Rows, Time

pytestmark = pytest.mark.usefixtures("one_engine")

rasterio = pytest.importorskip("rasterio", reason="needs rasterio to write rasters")

IMAGES = [
    {
        "file": f"{k}.tif",
        "split": "train" if k % 3 else "val",
        "sentences": [{"raw": f"text {k} {j}", "score": 10 * k + j} for j in range(k % 4)],
        "place": {"country": "PE", "where": {"lon": k / 2}},
        "flag": k % 2,
    }
    for k in range(8)
]


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> Path:
    root = tmp_path_factory.mktemp("members")
    for k in range(8):
        rasters.write(root / f"{k}.tif", np.full((1, 4, 4), k, np.uint8))
    meta: dict[str, Any] = {"dataset": "made", "other": {"deep": [[{"a": [1]}]]}}
    (root / "captions.json").write_text(json.dumps(meta | {"images": IMAGES, "end": 1}))
    (root / "lines.jsonl").write_text("\n".join(json.dumps({"images": [i]}) for i in IMAGES))
    (root / "classes.json").write_text(
        json.dumps({"classes": {"3": ["0", "5", "6"], "1": ["1", "2", "3", "4", "7"]}})
    )
    series = {
        str(s): {
            "steps": [[f"2022-01-0{t + 1}", f"{4 * s + t}.tif"] for t in range(3)],
            "target": [["2022-01-09", f"{4 * s + 3}.tif"]],
        }
        for s in range(2)
    }
    (root / "series.json").write_text(json.dumps(series))
    (root / "rows.csv").write_text("y,split\n" + "".join(f"{7 * k},x\n" for k in range(8)))
    return root


def read(source: Any, **options: Any) -> list[dict[str, Any]]:
    """The samples, in order."""
    with chaski.load(source, batch_size=3, shuffle=False, **options) as loader:
        return [
            {m: b[m][i] for m in b if m not in ("valid", "sample", "epoch")}
            for b in loader
            for i in np.flatnonzero(b["valid"])
        ]


@pytest.mark.parametrize("file", ["captions.json", "lines.jsonl"])
def test_rows_of_a_member(data, file) -> None:
    """The elements of a list are rows, and what they hold are columns by its path."""
    got = read(
        f"{data / file}::images",
        fields={
            "image": "file",
            "text": Field(column="sentences.raw", kind="text"),
            "lon": "place.where.lon",
            "flag": "flag",
        },
        rows=Rows(split="train"),
    )
    want = [i for i in IMAGES if i["split"] == "train"]
    assert [int(g["image"][0, 0, 0]) for g in got] == [int(w["file"][0]) for w in want]
    assert [json.loads(g["text"]) if g["text"] else [] for g in got] == [
        [s["raw"] for s in w["sentences"]] for w in want
    ]
    assert [float(g["lon"]) for g in got] == [w["place"]["where"]["lon"] for w in want]
    assert [int(g["flag"]) for g in got] == [w["flag"] for w in want]


@pytest.mark.parametrize("path", ["images.sentences", "images[].sentences[]"])
def test_a_row_for_each_of_a_list(data, path) -> None:
    """Below a list in a list each element is a row, with the members of the objects around it."""
    got = read(
        f"{data}/captions.json::{path}",
        fields={"image": "file", "text": Field(column="raw", kind="text"), "score": "score"},
        rows=Rows(where="split = 'train'"),
    )
    want = [(i, s) for i in IMAGES if i["split"] == "train" for s in i["sentences"]]
    assert [(int(g["image"][0, 0, 0]), g["text"], int(g["score"])) for g in got] == [
        (int(i["file"][0]), s["raw"], s["score"]) for i, s in want
    ]


def test_names_of_members_are_values(data) -> None:
    """Of an object of lists, the name of each list is a column of its elements."""
    got = read(
        data,
        fields={"image": "{id}.tif", "y": "class"},
        tables={data / "classes.json::classes.{class}": {"value": "id"}},
    )
    held = json.loads((data / "classes.json").read_text())["classes"]
    want = {int(v): int(c) for c, values in held.items() for v in values}
    assert {int(g["image"][0, 0, 0]): int(g["y"]) for g in got} == want


@pytest.mark.parametrize("fold", [0, 1])
@pytest.mark.parametrize("nested", [False, True])
def test_an_element_of_a_list(data, tmp_path, fold, nested) -> None:
    """A list of folds, as nnU-Net writes its splits: the number of an element is part of a path."""
    folds: Any = [{"train": ["0", "1"], "val": ["2.tif"]}, {"train": ["2"], "val": ["7", "0"]}]
    want = sorted(int(v.removesuffix(".tif")) for v in folds[fold]["val"])
    if nested:
        folds = [[[f["train"], f["val"]] for f in folds]]
    (tmp_path / "folds.json").write_text(json.dumps(folds))
    path = f"0.{fold}.1" if nested else f"{fold}.val"
    got = read(data, fields={"image": "{id}.tif"}, rows=Rows(ids=f"{tmp_path}/folds.json::{path}"))
    assert sorted(int(g["image"][0, 0, 0]) for g in got) == want
    with pytest.raises(chaski.NotFoundError, match="no rows"):
        read(data, fields={"image": "{id}.tif"}, rows=Rows(ids=f"{tmp_path}/folds.json::7.val"))


def test_an_element_and_members_of_its_name(data, tmp_path) -> None:
    """A number that objects of a list have as a member is this member; both are an error."""
    for text, kind in (('[{"0": ["3"]}, {"0": ["5"]}]', None), ('[{"a": 1}, {"0": ["5"]}]', 1)):
        (tmp_path / "a.json").write_text(text)
        options: Any = {"fields": {"image": "{id}.tif"}, "rows": Rows(ids=f"{tmp_path}/a.json::0")}
        if kind is None:
            assert [int(g["image"][0, 0, 0]) for g in read(data, **options)] == [3, 5]
        else:
            with pytest.raises(chaski.CorruptError, match="element 0 of a list and members of"):
                read(data, **options)


def test_series_of_a_manifest(data) -> None:
    """Lists of times and paths by the name of a series, with a raster beside all of them."""
    got = read(
        f"{data}/series.json::{{site}}.steps",
        fields={"image": "1", "target": Field(column="target.1.0", layout="n b y x")},
        rows=Rows(time=Time("site", "0", 3)),
    )
    assert [g["image"][:, 0, 0, 0].tolist() for g in got] == [[0, 1, 2], [4, 5, 6]]
    assert [int(g["target"][0, 0, 0]) for g in got] == [3, 7]


@pytest.mark.parametrize("form", ["key", "pattern", "condition"])
def test_the_number_of_a_row(data, form) -> None:
    """Every table has the numbers of its rows, as a key, in a path, and in conditions."""
    fields: dict[str, Any] = {"image": "{id}.tif", "y": "y"}
    tables, source, rows = {data / "rows.csv": {"row": "id"}}, data, Rows()
    if form != "key":
        fields, tables, source = {"image": "{row}.tif", "y": "y"}, None, data / "rows.csv"
    if form == "condition":
        rows = Rows(where="row >= 3")
    got = read(source, fields=fields, tables=tables, rows=rows)
    want = range(3 if form == "condition" else 0, 8)
    assert [(int(g["image"][0, 0, 0]), int(g["y"])) for g in got] == [(k, 7 * k) for k in want]


def test_a_column_of_one_table(data) -> None:
    """A column that two tables have is named with its table."""
    other = data / "other.csv"
    other.write_text("file,y\n" + "".join(f"{k},{k * k}\n" for k in range(8)))
    tables = {data / "rows.csv": {"row": "id"}, other: {"file": "id"}}
    with pytest.raises(chaski.UnsupportedError, match=r'as in "rows.csv::y"|as in "other.csv::y"'):
        read(data, fields={"image": "{id}.tif", "y": "y"}, tables=tables)
    fields = {"image": "{id}.tif", "a": "rows.csv::y", "b": Field(column="other.csv::y")}
    got = read(data, fields=fields, tables=tables)
    assert [(int(g["a"]), int(g["b"])) for g in got] == [(7 * k, k * k) for k in range(8)]


def test_arrays_by_their_ids(tmp_path) -> None:
    """A store of arrays is a side table: its images go to the samples with their ids."""
    h5py = pytest.importorskip("h5py")
    r = np.random.default_rng(1)
    a, b = r.integers(0, 99, (5, 8, 8)), r.integers(0, 99, (5, 4, 4))
    names = np.array([f"S{k}" for k in range(5)], "S4")
    order = [3, 0, 4, 1, 2]
    for file, array, ids in (("a.h5", a, names), ("b.h5", b[order], names[order])):
        with h5py.File(tmp_path / file, "w") as f:
            f["id"], f[file[0]] = ids, array.astype("u1")
    got = read(
        tmp_path / "a.h5",
        fields={"image": Field(column="a"), "other": Field(column="b")},
        rows=Rows(dims="n y x"),
        tables={tmp_path / "b.h5": "id"},
    )
    for k, g in nonempty(enumerate(got)):
        np.testing.assert_array_equal(g["image"][0], a[k])
        np.testing.assert_array_equal(g["other"][0], b[k])


def test_windows_of_time_in_an_array(tmp_path) -> None:
    """Steps along n slide without a key, and an array without n belongs to each of them."""
    h5py = pytest.importorskip("h5py")
    r = np.random.default_rng(2)
    a, dem = r.normal(size=(9, 6, 6)).astype("f4"), r.normal(size=(6, 6)).astype("f4")
    with h5py.File(tmp_path / "cube.h5", "w") as f:
        f["ndvi"], f["dem"] = a, dem
    got = read(
        tmp_path / "cube.h5",
        fields={
            "image": Field(column="ndvi", dims="n y x"),
            "dem": Field(column="dem", dims="y x", layout="n b y x"),
        },
        rows=Rows(time=Time(length=4, stride=1, cut=True)),
    )
    assert len(got) == 6
    for k, g in nonempty(enumerate(got)):
        np.testing.assert_array_equal(g["image"][:, 0], a[k : k + 4])
        np.testing.assert_array_equal(g["dem"][0], dem)


@pytest.mark.parametrize("own", [False, True])
def test_windows_of_time_in_arrays_of_several_files(tmp_path, own) -> None:
    """The number of an image along n is the column n there, too, unless an array is called so."""
    h5py = pytest.importorskip("h5py")
    r = np.random.default_rng(3)
    arrays = {f"box_{k}": r.normal(size=(5 + k, 2, 4, 4)).astype("f4") for k in range(2)}
    for name, a in arrays.items():
        for folder, values in (("in", a), ("out", -a)):
            (tmp_path / folder).mkdir(exist_ok=True)
            with h5py.File(tmp_path / folder / f"{name}.h5", "w") as f:
                f["x"] = values
                if own:
                    f["n"] = np.arange(len(a))[::-1]
    fields = {
        "image": Field(pattern="in/{box}.h5::x", dims="n b y x"),
        "out": Field(pattern="out/{box}.h5::x", dims="n b y x"),
    }
    time = Time(key="box", order="n", length=3, stride=2, cut=True)
    got = read(tmp_path, fields=fields, rows=Rows(time=time))
    turned = [a[::-1] if own else a for a in arrays.values()]
    want = [a[k : k + 3] for a in turned for k in range(0, len(a) - 2, 2)]
    assert len(got) == len(want) == 4
    for g, w in zip(got, want, strict=True):
        np.testing.assert_array_equal(g["image"], w)
        np.testing.assert_array_equal(g["out"], -w)
    got = read(tmp_path, fields=fields, rows=Rows(where=[("n", "==", 1)]))
    assert len(got) == 2


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("captions.json::image", "no object has such a member; there are dataset, other, images"),
        ("captions.json::dataset.x", "neither an object nor a list"),
        ("captions.json::images.nothing", "there are file, flag, place, sentences, split"),
        ("series.json::{site}.step", "there are steps, target"),
        ("captions.json::other.deep.a.b", "no rows"),
    ],
)
def test_a_path_that_leads_nowhere(data, path, says) -> None:
    with pytest.raises(chaski.Error, match=says):
        read(f"{data}/{path}", fields={"image": "file"})


@pytest.mark.parametrize("same", [True, False])
def test_images_of_two_files_with_other_ids_are_no_pairs(tmp_path, same) -> None:
    """Files of n images pair by place, unless an array id says that the places differ."""
    h5py = pytest.importorskip("h5py")
    a = np.arange(3, dtype="u1")[:, None, None] * np.ones((1, 4, 4), "u1")
    for folder, names in (("a", [b"x", b"y", b"z"]), ("b", [b"x", b"y", b"z"])):
        (tmp_path / folder).mkdir()
        with h5py.File(tmp_path / folder / "1.h5", "w") as f:
            f["image"] = a
            f["id"] = np.array(names if same or folder == "a" else names[::-1])
    fields: dict[str, Any] = {k: Field(pattern=f"{k}/{{id}}.h5::image", dims="n y x") for k in "ab"}
    if same:
        for k, g in nonempty(enumerate(read(tmp_path, fields=fields))):
            assert int(g["a"][0, 0, 0]) == int(g["b"][0, 0, 0]) == k
        return
    with pytest.raises(chaski.UnsupportedError, match=r"image 0 is \"z\", and \"x\" of .*tables="):
        read(tmp_path, fields=fields)


@pytest.mark.parametrize("separator", [" ", ";", " | "])
def test_classes_in_a_text(data, separator) -> None:
    """A text with several classes is a list of them."""
    tags = [["clear", "wood"], ["cloudy"], ["wood"], [], ["clear"], ["wood", "clear"], ["x"], ["x"]]
    table = data / "tags.csv"
    table.write_text(
        "file,tags\n" + "".join(f"{k},{separator.join(t)}\n" for k, t in enumerate(tags))
    )
    y = Field(column="tags", split=separator, kind="class", missing="fill")
    got = read(data, fields={"image": "{id}.tif", "y": y}, tables={table: {"file": "id"}})
    names = sorted({t for row in tags for t in row})
    assert [g["y"].tolist() for g in got] == [[int(n in t) for n in names] for t in tags]


@pytest.mark.parametrize("form", ["python", "json", "numpy"])
def test_classes_in_a_list_that_is_a_text(data, form) -> None:
    """A text that is a list, as pandas writes lists into a CSV, is a list and no class."""
    tags = [["wood, wet", "a's"], ["a's"], [], ["x"], ["wood, wet", "x"], ["x"], ["x"], ["x"]]
    texts = [json.dumps(t) if form == "json" else str(t) for t in tags]
    if form == "numpy":
        texts = [str(np.array(t, object)) for t in tags]
    table = data / "tags.csv"
    with open(table, "w", newline="") as file:
        csv.writer(file).writerows([("file", "tags"), *enumerate(texts)])
    names = sorted({t for row in tags for t in row})
    for classes in (None, names[::-1]):
        y = Field(column="tags", classes=classes, kind="class")
        got = read(data, fields={"image": "{id}.tif", "y": y}, tables={table: {"file": "id"}})
        want = [[int(n in t) for n in classes or names] for t in tags]
        assert [g["y"].tolist() for g in got] == want
    texts[5] = "x"
    with open(table, "w", newline="") as file:
        csv.writer(file).writerows([("file", "tags"), *enumerate(texts)])
    with pytest.raises(chaski.CorruptError, match="x is no list of strings, as the first text is"):
        read(data, fields={"image": "{id}.tif", "y": y}, tables={table: {"file": "id"}})


@pytest.mark.parametrize("text", ["(1)", "{'a': 1}", "[oak]", "['a'"])
def test_classes_that_are_no_lists(data, text) -> None:
    """Other texts in brackets are classes as they are."""
    table = data / "tags.csv"
    with open(table, "w", newline="") as file:
        csv.writer(file).writerows(
            [("file", "tags"), *((k, "x" if k == 7 else text) for k in range(8))]
        )
    y = Field(column="tags", kind="class")
    got = read(data, fields={"image": "{id}.tif", "y": y}, tables={table: {"file": "id"}})
    assert [int(g["y"]) for g in got] == [int((k == 7) == (text < "x")) for k in range(8)]


def test_members_of_which_some_are_objects(data, tmp_path) -> None:
    """Beside objects, other members are rows without their columns: SEN12-FLOOD's lists."""
    scenes: dict[str, Any] = {
        str(s): {"count": 2, "folder": f"f{s}", "geo": {"type": "Polygon"}}
        | {str(k): {"file": f"{4 * s + k}.tif", "flood": k == 1} for k in (1, 2)}
        for s in range(2)
    }
    (tmp_path / "list.json").write_text(json.dumps(scenes))
    fields = {"image": f"{data}/{{file}}", "y": "flood", "scene": "scene"}
    rows = Rows(where="file IS NOT NULL")
    got = read(f"{tmp_path}/list.json::{{scene}}.{{n}}", fields=fields, rows=rows)
    want = {(4 * s + k, k == 1, s) for s in range(2) for k in (1, 2)}
    assert {(int(g["image"][0, 0, 0]), bool(g["y"]), int(g["scene"])) for g in got} == want


def test_ids_that_are_files_of_arrays(tmp_path) -> None:
    """An id may be the file, also where a pattern names an array in it."""
    h5py = pytest.importorskip("h5py")
    (tmp_path / "img").mkdir()
    for k in range(4):
        with h5py.File(tmp_path / f"img/image_{k}.h5", "w") as f:
            f["img"] = np.full((4, 4), k, "u1")
    (tmp_path / "list.txt").write_text("img/image_2.h5\nimg/image_0.h5\n")
    fields = {"image": Field(pattern="img/image_{id}.h5::img", dims="y x")}
    got = read(tmp_path, fields=fields, rows=Rows(ids=tmp_path / "list.txt"))
    assert [int(g["image"][0, 0, 0]) for g in got] == [0, 2]


@pytest.mark.parametrize("ending", [".json::r", ".npz::labels"])
def test_a_member_that_is_written_anew(tmp_path, ending) -> None:
    """A member of a local file is read anew, as soon as the file has another time."""
    for n in (1, 2):
        time.sleep(0.05)  # times of files have the steps of the kernel's clock, up to 10 ms
        if ending == ".json::r":
            rows = [{"file": f"{k}.tif", "y": k + n} for k in range(n)]
            (tmp_path / "a.json").write_text(json.dumps({"r": rows}))
            for k in range(n):
                rasters.write(tmp_path / f"{k}.tif", np.full((1, 4, 4), k, np.uint8))
            got = read(f"{tmp_path}/a.json::r", fields={"image": "file", "y": "y"})
            assert [int(g["y"]) for g in got] == [k + n for k in range(n)]
        else:
            np.savez(tmp_path / "a.npz", labels=np.full((4, 4), n, "u1"))
            (got,) = read(f"{tmp_path}/a.npz::labels")
            assert int(got["image"].flat[0]) == n


@pytest.mark.parametrize(
    "text",
    [
        '{"r": [{"file": "0.tif"}], "r": [{"file": "1.tif"}]}',
        '{"r": [{"a": {"b": [{"file": "0.tif"}]}, "a.b": [{"file": "1.tif"}]}]}',
        '{"r": {"a": {"b": [{"file": "0.tif"}]}, "a.b": [{"file": "1.tif"}]}}',
    ],
)
def test_a_path_that_fits_two_members(data, tmp_path, text) -> None:
    """A path that leads to two members of one object is an error, not one of them."""
    (tmp_path / "a.json").write_text(text)
    path = "r" if "a.b" not in text else "r.a.b"
    with pytest.raises(chaski.CorruptError, match="of one object fit"):
        read(f"{tmp_path}/a.json::{path}", fields={"image": "file"})


def test_two_values_of_a_column(tmp_path) -> None:
    """A member whose name has a point, beside the member of an object, is an error with its row."""
    (tmp_path / "a.json").write_text('[{"file": "0.tif", "a": {"b": 1}, "a.b": 2}]')
    with pytest.raises(chaski.CorruptError, match=r'row 0.*two values of the column "a.b"'):
        read(tmp_path / "a.json", fields={"image": "file", "y": "a.b"})


def test_elements_of_xml(data, tmp_path) -> None:
    """XML is a table as JSON is: a row for each element at a path, of one file or a glob."""
    for k in range(4):
        objects = "".join(
            f'<object id="{j}"><name>a {j}</name><box><x>{k + j / 2}</x><y>{j}</y></box>'
            f"<text>on &lt;{k}&gt;, {j}</text></object>"
            for j in range(k)
        )
        text = f"<annotation><file>{k}.tif</file><size><w>4</w></size>{objects}</annotation>"
        (tmp_path / f"{k}.xml").write_text(text)
    fields = {
        "image": f"{data}/{{file}}",
        "text": "text",
        "x": Field(column="box.x", dtype="float64"),
        "w": "size.w",
        "id": "@id",
        "from": Field(column="name", kind="text"),
    }
    for glob in ("*", "3"):
        got = read(f"{tmp_path}/{glob}.xml::object", fields=fields)
        want = []
        for path in sorted(tmp_path.glob(f"{glob}.xml")):
            root = ElementTree.parse(path).getroot()
            want += [
                (root.findtext("file"), o.findtext("text"), float(o.findtext("box/x")), o)
                for o in root.iter("object")
            ]
        assert len(got) == len(want) == (6 if glob == "*" else 3)
        for g, (file, text, x, o) in zip(got, want, strict=True):
            assert int(g["image"][0, 0, 0]) == int(file[0])
            assert (g["text"], float(g["x"]), int(g["w"])) == (text, x, 4)
            assert int(g["id"]) == int(o.get("id")) and g["from"] == o.findtext("name")
    got = read(f"{tmp_path}/*.xml", fields={"image": f"{data}/{{file}}", "w": "size.w"})
    assert [(int(g["image"][0, 0, 0]), int(g["w"])) for g in got] == [(k, 4) for k in range(4)]
    for path in ("objects", "object.box.z.q"):
        with pytest.raises(chaski.NotFoundError, match="object|no rows"):
            read(f"{tmp_path}/*.xml::{path}", fields={"image": f"{data}/{{file}}"})
    (tmp_path / "bad.xml").write_text("<a><file>1.tif</file></b>")
    with pytest.raises(chaski.CorruptError, match=r"bad\.xml.*ends no element"):
        read(tmp_path / "bad.xml", fields={"image": f"{data}/{{file}}"})


def test_members_of_several_files(data, tmp_path) -> None:
    """A file of a glob may have no rows at the path, but not all of them."""
    for k in range(3):
        rows = [{"file": f"{k}.tif", "j": j} for j in range(k)]
        (tmp_path / f"{k}.json").write_text(json.dumps({"info": 1, "rows": rows} if k else {}))
    fields = {"image": f"{data}/{{file}}", "j": "j"}
    got = read(f"{tmp_path}/*.json::rows", fields=fields)
    assert [(int(g["image"][0, 0, 0]), int(g["j"])) for g in got] == [(1, 0), (2, 0), (2, 1)]
    with pytest.raises(chaski.NotFoundError, match="no object has such a member"):
        read(f"{tmp_path}/*.json::raws", fields=fields)


def test_members_of_an_element(data, tmp_path) -> None:
    """LIST.K.MEMBER is of one object of a list, also where the list is JSON in a string."""
    rows = [
        {"file": f"{k}.tif", "turns": [{"of": "a", "says": f"q{k}"}, {"of": "b", "says": f"a{k}"}]}
        for k in range(4)
    ]
    rows[2]["turns"] = rows[2]["turns"][:1]
    written = [{**row, "turns": json.dumps(row["turns"])} for row in rows]
    for name, made in (("lists", rows), ("strings", written)):
        (tmp_path / f"{name}.json").write_text(json.dumps(made))
        fields = {
            "image": f"{data}/{{file}}",
            "q": Field(column="turns.0.says", kind="text"),
            "a": Field(column="turns.1.says", kind="text"),
            "all": Field(column="turns.says", kind="text"),
        }
        got = read(tmp_path / f"{name}.json", fields=fields)
        for g, row in zip(got, rows, strict=True):
            said = [turn["says"] for turn in row["turns"]]
            assert (g["q"], g["a"], json.loads(g["all"])) == (said[0], "".join(said[1:]), said)
