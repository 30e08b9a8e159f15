"""Columns of lists become multi-hot classes and vectors, as pyarrow and numpy read them."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import nonempty
from test_access import serving
from test_pack import ABOUT

import chaski
from chaski import Field

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

pytestmark = pytest.mark.usefixtures("one_engine")
N = 500
CLASSES = ["Forest", "Crops", "Water", "Urban"]
CODES = [30, 10, -20]
FORMS = ["plain", "dictionary", "v2", "shards", "fixed", "large", "items", "arrow", "dict"]


def samples() -> dict[str, list[Any]]:
    rng = np.random.default_rng(5)
    few = lambda of: [of[k] for k in rng.permutation(len(of))[: rng.integers(0, len(of) + 1)]]  # noqa: E731
    return {
        "file_name": [f"{i}.npy" for i in range(N)],
        "labels": [few(CLASSES) for _ in range(N)],
        "codes": [few(CODES) for _ in range(N)],
        "vec": [[float(x) if x < 0.8 else None for x in rng.random(5)] for _ in range(N)],
        "box": [[int(x) for x in rng.integers(0, 9, 4)] for _ in range(N)],
        "code": [CODES[i % 3] for i in range(N)],
    }


FIELDS = {
    "image": Field(column="file_name", kind="raster", dtype="native"),
    "y": Field(column="labels", classes=CLASSES, dtype="uint8"),
    "codes": Field(column="codes", classes=CODES, dtype="float32"),
    "vec": Field(column="vec"),
    "half": Field(column="vec", kind="number", dtype="float16"),
    "box": Field(column="box"),
    "code": Field(column="code", classes=CODES),
    "text": Field(column="labels", kind="text"),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("lists")
    for i in range(N):
        np.save(folder / f"{i}.npy", np.full((1, 2, 2), i, "uint16"))
    return folder


def write(folder: Path, form: str, rows: dict[str, list[Any]]) -> Any:
    """Writes a table in one form, and returns what is loaded."""
    if form == "items":
        (folder / "t.jsonl").write_text(
            "".join(json.dumps({k: rows[k][i] for k in rows}) + "\n" for i in range(N))
        )
        return folder / "t.jsonl"
    rows = {**rows, "file_name": [str(folder / p) for p in rows["file_name"]]}
    if form == "dict":
        return {**rows, "box": np.array(rows["box"])}
    table = pa.table(rows)
    if form in ("fixed", "large"):
        for name in ("vec", "box") if form == "fixed" else ("labels", "vec"):
            at, elem = table.schema.get_field_index(name), table[name].type.value_type
            to = (
                pa.list_(elem, 5 if name == "vec" else 4)
                if form == "fixed"
                else pa.large_list(elem)
            )
            column = pa.array(table[name].to_pylist(), to)
            table = table.set_column(at, name, column)
    if form == "arrow":
        return table
    options = {
        "plain": {"use_dictionary": False, "compression": "none", "data_page_size": 400},
        "dictionary": {"compression": "zstd", "row_group_size": 90},
        "v2": {"data_page_version": "2.0", "write_page_index": True, "data_page_size": 400},
    }
    if form == "shards":
        (folder / "shards").mkdir(exist_ok=True)
        for k in range(3):
            pq.write_table(table[k * 200 : (k + 1) * 200], folder / "shards" / f"{k}.parquet")
        return folder / "shards"
    pq.write_table(table, folder / f"{form}.parquet", **options.get(form, {}))
    return folder / f"{form}.parquet"


def check(loader: chaski.Loader, rows: dict[str, list[Any]]) -> int:
    """Compares batches with the lists, and returns how many samples there were."""
    seen = 0
    for batch in loader:
        at = batch["image"][:, 0, 0, 0]
        seen += len(at)
        for name, column, classes in (("y", "labels", CLASSES), ("codes", "codes", CODES)):
            want = [[c in rows[column][i] for c in classes] for i in at]
            assert np.array_equal(batch[name], np.array(want, batch[name].dtype)), name
        assert [json.loads(text) for text in batch["text"]] == [rows["labels"][i] for i in at]
        vec = np.array([rows["vec"][i] for i in at], float)
        assert np.array_equal(batch["vec"], vec, equal_nan=True)
        assert np.array_equal(batch["half"], vec.astype("f2"), equal_nan=True)
        assert np.array_equal(batch["box"], np.array([rows["box"][i] for i in at]))
        assert np.array_equal(batch["code"], [CODES.index(rows["code"][i]) for i in at])
        assert [batch[n].dtype.name for n in ("y", "codes", "vec", "box")] == [
            "uint8",
            "float32",
            "float64",
            "int64",
        ]
    return seen


@pytest.mark.parametrize("form", FORMS)
def test_lists(folder, form):
    rows = samples()
    source = write(folder, form, rows)
    options = {"fields": FIELDS, "batch_size": 64, "seed": 3}
    with chaski.load(source, **options) as loader:
        assert loader.spec["fields"][2]["classes"] == [str(c) for c in CODES]
        assert check(loader, rows) == N
    with chaski.load(source, **options) as loader:
        first = next(iter(loader))
        state = loader.state_dict()
    with chaski.load(source, **options) as loader:
        loader.load_state_dict(state)
        assert check(loader, rows) == N - len(first["y"])


def test_lists_of_a_server(folder, binary):
    rows = samples()
    source = write(folder, "dictionary", rows)
    with serving(binary, "--root", str(folder)) as (target, token):
        engine = chaski.Engine(token=token)
        with chaski.connect(target, source, fields=FIELDS, batch_size=64, engine=engine) as loader:
            assert check(loader, rows) == N


def test_lists_of_a_container(tmp_path):
    rows = samples()
    image = pytest.importorskip("tifffile")
    image.imwrite(tmp_path / "a.tif", np.zeros((4, 4), "uint8"))
    table = pa.table(
        {**rows, "id": [str(i) for i in range(N)], "path": [str(tmp_path / "a.tif")] * N}
    )
    chaski.pack(table.drop_columns(["file_name"]), tmp_path / "c.tacozip", ABOUT)
    fields = {
        "image": Field(),
        "y": Field(column="labels", classes=CLASSES),
        "box": Field(column="box"),
        "found": Field(column="codes", kind="class"),
    }
    with chaski.load(tmp_path / "c.tacozip", fields=fields, batch_size=N, shuffle=False) as loader:
        batch = next(iter(loader))
        assert loader.classes["found"] == sorted(map(str, CODES), key=int)
    want = [[c in labels for c in CLASSES] for labels in rows["labels"]]
    assert np.array_equal(batch["y"], want)
    assert np.array_equal(batch["box"], rows["box"])
    assert np.array_equal(batch["found"], [[c in r for c in sorted(CODES)] for r in rows["codes"]])


def test_found_classes(folder):
    source = write(folder, "plain", samples())
    fields = {"y": Field(column="labels", kind="class"), "image": FIELDS["image"]}
    with chaski.load(source, fields=fields, batch_size=N, shuffle=False) as loader:
        assert loader.classes == {"y": sorted(CLASSES)}
        y = next(iter(loader))["y"]
    assert np.array_equal(y, [[c in r for c in sorted(CLASSES)] for r in samples()["labels"]])


@pytest.mark.parametrize("form", ["plain", "items"])
@pytest.mark.parametrize(
    "column, values, field, message",
    [
        ("labels", ["Lava"], Field(column="labels", classes=CLASSES), '"Lava" is not one of'),
        ("labels", None, Field(column="labels", classes=CLASSES), "no class"),
        ("labels", [None], Field(column="labels", classes=CLASSES), "no class"),
        ("vec", [1.0, 2.0], Field(column="vec"), "a list of 2 numbers, and others have 5"),
        ("box", None, Field(column="box"), "null where an integer is needed"),
        ("vec", None, Field(column="vec"), None),
    ],
)
def test_rows_that_differ(folder, form, column, values, field, message):
    """A list that does not suit is an error of its row, as a value is; a null of floats is NaN."""
    rows = samples()
    rows[column][7] = values
    source = write(folder, form, rows)
    fields = {"image": FIELDS["image"], "x": field}
    options = {"fields": fields, "batch_size": 10, "shuffle": False}
    if message is None:
        with chaski.load(source, **options) as loader:
            assert np.isnan(next(iter(loader))["x"][7]).all()
        return
    with chaski.load(source, **options) as loader, pytest.raises(chaski.Error) as e:
        next(iter(loader))
    assert message in str(e.value) and "sample 7" in str(e.value)
    assert "list.element" not in str(e.value)
    with chaski.load(source, **options, on_bad="skip") as loader:
        assert np.flatnonzero(~next(iter(loader))["valid"]).tolist() == [7]


@pytest.mark.parametrize("form", ["plain", "items"])
@pytest.mark.parametrize(
    "more, message",
    [
        ({"x": Field(column="labels")}, 'neither kind "text", which gives each list as JSON, nor'),
        (
            {"x": Field(column="labels", kind="raster")},
            "one path of a raster, not several .*explode",
        ),
        ({"x": Field(column="vec", kind="text")}, "lists of float"),
        ({"x": Field(column="vec", kind="class")}, "floats are classes if they are whole"),
        ({"x": Field(column="deep", kind="text")}, "deep: holds"),
        ({"rows": chaski.Rows(strata=chaski.Strata("labels"))}, "labels: holds lists"),
        ({"rows": chaski.Rows(where=[("labels", "==", "Water")])}, "labels"),
    ],
)
def test_what_lists_do_not_do(folder, form, more, message):
    rows, more = {**samples(), "deep": [[[1]]] * N}, dict(more)
    source = write(folder, form, rows)
    fields = {"image": FIELDS["image"]}
    if "x" in more:
        fields["x"] = more.pop("x")
    with pytest.raises(chaski.Error, match=message) as e:
        chaski.load(source, fields=fields, batch_size=4, **more)
    assert "list.element" not in str(e.value)


def test_names_of_lists(folder, binary):
    """Columns go by their own names, not by those of the groups inside of them."""
    source = write(folder, "plain", samples())
    info = json.loads(
        subprocess.run([binary, "info", "--json", source], check=True, capture_output=True).stdout
    )
    names = {c["name"]: c["type"] for c in info["table"]["columns"]}
    assert names["labels"] == "list of text" and names["vec"] == "list of float64", names


@pytest.mark.parametrize("form", ["plain", "items"])
def test_catalogs_keep_lists(folder, binary, form):
    rows = {**samples(), "deep": [[[1]]] * N}
    rows["vec"][3] = None
    source, out = write(folder, form, rows), folder / f"catalog-{form}.parquet"
    command = [binary, "index", "-o", out, "--field", "image=file_name", source]
    run = subprocess.run(command, check=True, capture_output=True, text=True)
    assert "deep" in run.stderr and "vec" not in run.stderr
    table = pq.read_table(out)
    for name in ("labels", "codes", "vec", "box", "code"):
        assert table[name].to_pylist() == rows[name]
    rows["vec"][3] = [None] * 5
    fields = {k: v for k, v in FIELDS.items() if k != "image"}
    fields["image"] = Field(dtype="native")
    with chaski.load(out, fields=fields, batch_size=64) as loader:
        assert check(loader, rows) == N


def test_captions(tmp_path):
    """A caption keeps its quotes, letters and nulls; null has no text, bytes are no text."""
    captions = [['say "hi"\n<b>', "Wüste 沙"], None, [None, ""], []]
    table = {"caption": captions, "bytes": pa.array([[b"\xff"], [], [], []]), "n": range(4)}
    pq.write_table(pa.table(table), tmp_path / "t.parquet")
    fields = {"caption": Field(column="caption", kind="text")}
    with chaski.load(tmp_path / "t.parquet", batch_size=4, shuffle=False, fields=fields) as loader:
        texts = list(next(iter(loader))["caption"])
    assert texts == ['["say \\"hi\\"\\n<b>","Wüste 沙"]', "", '[null,""]', "[]"]
    fields = {"x": Field(column="bytes", kind="text")}
    with (
        chaski.load(tmp_path / "t.parquet", batch_size=4, fields=fields) as loader,
        pytest.raises(chaski.CorruptError, match="the string is not UTF-8"),
    ):
        next(iter(loader))


def test_several_images_in_a_cell(tmp_path):
    """Lists of images and of paths are refused with the way, and the way works: explode, Time."""
    rng = np.random.default_rng(3)
    series = [[rng.integers(0, 255, (2, 8, 8)).astype("uint8") for _ in range(3)] for _ in range(4)]
    rows = []
    for i, steps in enumerate(series):
        names = [str(tmp_path / f"{i}_{k}.npy") for k in range(3)]
        for name, x in zip(names, steps, strict=True):
            np.save(name, x)
        cells = [{"bytes": Path(name).read_bytes(), "path": None} for name in names]
        rows.append({"site": i, "paths": names, "images": cells, "date": [0, 1, 2]})
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "t.parquet")
    for field, told in [
        (Field(column="paths", kind="raster"), "one path of a raster, not several .*explode"),
        (Field(column="images"), 'lists of structs: give .*explode does, or name .*"images.bytes"'),
    ]:
        with pytest.raises(chaski.UnsupportedError, match=told):
            chaski.load(tmp_path / "t.parquet", batch_size=2, fields={"x": field})
    lists = ("paths", "images", "date")
    exploded = [{**r, **{k: r[k][step] for k in lists}} for r in rows for step in range(3)]
    frame = pa.Table.from_pylist(exploded)
    time = chaski.Rows(time=chaski.Time(key="site", order="date", length=3))
    for column in ("paths", "images"):
        fields = {"x": Field(column=column, kind="raster", dtype="native"), "site": "site"}
        with chaski.load(frame, batch_size=2, fields=fields, rows=time) as loader:
            seen = list(nonempty(loader))
            sites = [int(np.ravel(site)[0]) for b in seen for site in np.asarray(b["site"])]
            assert sorted(sites) == [0, 1, 2, 3]
            got = np.concatenate([np.asarray(b["x"]) for b in seen])
            assert np.array_equal(got, np.array([series[site] for site in sites]))


@pytest.mark.parametrize("order", ["ab", "ba"])
@pytest.mark.parametrize("field", ["vector", "number"])
def test_integers_and_floats_in_a_mixture(tmp_path, order, field):
    """Sources of integers and of floats need a dtype, and are then as numpy casts them."""
    np.save(tmp_path / "0.npy", np.zeros((1, 4, 4), "uint8"))
    columns = {
        "a": {"vector": [[1, 2], [3, 4], [5, 2**40]], "number": [7, 8, 9]},
        "b": {"vector": [[0.5, 2.25], [3.0, 4.0], [0.1, 5.0]], "number": [0.5, 1.5, -2.0]},
    }
    for name, values in columns.items():
        pq.write_table(
            pa.table({"path": ["0.npy"] * 3, **values, "row": [0, 1, 2]}),
            tmp_path / f"{name}.parquet",
        )
    mixture = chaski.Mixture(
        {name: chaski.Source(tmp_path / f"{name}.parquet") for name in order}, until="longest"
    )

    def load(**options):
        fields = {"image": chaski.Field(column="path", kind="raster"), "row": "row"}
        fields |= {"x": chaski.Field(column=field, **options)}
        return chaski.load(mixture, fields=fields, batch_size=4)

    with pytest.raises(chaski.SpecError, match='a dtype of the field, such as "float32"'):
        load()
    for dtype in ("float32", "float64"):
        seen = set()
        with load(dtype=dtype) as loader:
            for batch in nonempty(loader):
                rows = zip(batch["x"], batch["source"], batch["row"], batch["valid"], strict=True)
                for got, source, row, valid in rows:
                    if valid:
                        want = np.asarray(columns[order[source]][field][row]).astype(dtype)
                        np.testing.assert_array_equal(got, want)
                        seen.add(order[source])
        assert seen == {"a", "b"}
