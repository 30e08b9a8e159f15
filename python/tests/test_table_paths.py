"""Tables whose columns make paths and vectors, and tables without a header, against csv."""

from __future__ import annotations

import csv
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import rasters

import chaski

pytestmark = pytest.mark.usefixtures("one_engine")

rasterio = pytest.importorskip("rasterio", reason="needs rasterio to write rasters")

ROWS = [
    {"Image ID": f"{k:03}", "place": "a" if k % 2 else "b", "x": k, "y": k / 4, "z": -k}
    for k in (3, 1, 0, 5, 4, 2)
]
FIELDS = {"image": "images/{place}/t_{Image ID}.tif"}


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> Path:
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    root = tmp_path_factory.mktemp("paths")
    for row in ROWS:
        path = root / f"images/{row['place']}/t_{row['Image ID']}.tif"
        path.parent.mkdir(parents=True, exist_ok=True)
        rasters.write(path, np.full((1, 4, 4), row["x"], np.uint8))
    with open(root / "rows.csv", "w", newline="") as f:
        out = csv.DictWriter(f, list(ROWS[0]))
        out.writeheader()
        out.writerows(ROWS)
    pq.write_table(pa.Table.from_pylist(ROWS), root / "rows.parquet")
    lines = [f"images/{r['place']}/t_{r['Image ID']}.tif {r['y']} {r['x']}" for r in ROWS]
    (root / "blanks.txt").write_text("".join(f" {x.replace(' ', '   ')}  \n" for x in lines))
    (root / "tabs.txt").write_text("\n".join(x.replace(" ", "\t") for x in lines))
    (root / "commas.txt").write_text("\n".join(x.replace(" ", ",") for x in lines))
    (root / "bare.csv").write_text("\n".join(x.replace(" ", ",") for x in lines))
    return root


def batch(source: Any, fields: Any, **options: Any) -> Any:
    with chaski.load(source, batch_size=6, shuffle=False, fields=fields, **options) as loader:
        return next(iter(loader))


def memory(root: Path, name: str) -> Any:
    return [dict(r) for r in ROWS] if name == "memory" else root / name


@pytest.mark.parametrize("table", ["rows.csv", "rows.parquet", "memory"])
def test_columns_make_paths(data, binary, monkeypatch, table) -> None:
    """Each row has the file that its values name, relative to the table."""
    monkeypatch.chdir(data)  # where the paths of tables in memory begin
    fields = FIELDS | {"path": chaski.Field(pattern="{x}/{Image ID}.png", kind="text")}
    b = batch(memory(data, table), fields)
    want = [r["x"] for r in ROWS]
    assert list(np.asarray(b["image"])[:, 0, 3, 3]) == want
    if table != "memory":
        assert list(b["path"]) == [f"{r['x']}/{r['Image ID']}.png" for r in ROWS]
    two = chaski.Field(patterns=[FIELDS["image"], FIELDS["image"]])
    b = batch(memory(data, table), {"image": two}, rows=chaski.Rows(where=[("x", "<", 3)]))
    assert list(np.asarray(b["image"])[:, 1, 0, 0]) == [x for x in want if x < 3]


def test_shapes_of_each_row(data, tmp_path, binary) -> None:
    """A file of shapes is found by columns, too."""
    shape = '{{"type":"Polygon","coordinates":[[[0,0],[{0},0],[{0},4],[0,4],[0,0]]]}}'
    (data / "shapes").mkdir(exist_ok=True)
    for r in ROWS[1:]:
        geometry = shape.format(min(r["x"], 4))
        text = f'{{"type":"Feature","properties":null,"geometry":{geometry}}}'
        text = f'{{"type":"FeatureCollection","features":[{text}]}}'
        (data / f"shapes/{r['Image ID']}.geojson").write_text(text)
    fields: dict[str, Any] = FIELDS | {
        "roof": chaski.Vector("shapes/{Image ID}.geojson", crs="pixels", missing="empty")
    }
    roof = np.asarray(batch(data / "rows.csv", fields)["roof"])
    for r, mask in zip(ROWS, roof, strict=True):
        covered = 0 if r is ROWS[0] else min(r["x"], 4)
        np.testing.assert_array_equal(mask, np.broadcast_to(np.arange(4) < covered, (4, 4)))


def test_columns_make_vectors(data, binary) -> None:
    """Numbers of several columns are (n, k), of one dtype."""
    for table in ("rows.csv", "rows.parquet"):
        fields = {
            "ints": chaski.Field(columns=["z", "x"]),
            "mixed": chaski.Field(columns=["x", "y", "z"], kind="number"),
            "cast": chaski.Field(columns=["x", "y"], kind="number", dtype="float32"),
        }
        b = batch(data / table, FIELDS | fields)
        for name, columns, dtype in (
            ("ints", "zx", np.int64),
            ("mixed", "xyz", np.float64),
            ("cast", "xy", np.float32),
        ):
            want = np.array([[r[c] for c in columns] for r in ROWS], dtype)
            np.testing.assert_array_equal(b[name], want, strict=True)


def test_vector_of_a_joined_table(data, binary) -> None:
    tables = {data / "rows.csv": {"Image ID": "id"}}
    fields = {"image": "{place}/t_{id}.tif", "v": chaski.Field(columns=["x", "y"])}
    b = batch(data / "images", fields, tables=tables)
    np.testing.assert_array_equal(b["v"][:, 0], np.asarray(b["image"])[:, 0, 0, 0])


@pytest.mark.parametrize("name", ["blanks.txt", "tabs.txt", "commas.txt", "bare.csv"])
def test_without_header(data, binary, name) -> None:
    """Columns are called by their numbers, whatever separates them, also those of keys."""
    fields = {"image": "0", "count": "2", "v": chaski.Field(columns=["1", "2"])}
    b = batch(data / name, fields)
    assert list(np.asarray(b["image"])[:, 0, 0, 0]) == [r["x"] for r in ROWS] == list(b["count"])
    np.testing.assert_array_equal(b["v"][:, 0], [r["y"] for r in ROWS])
    parts = []
    for use in ("a", "b"):
        split = chaski.Split.by_hash({"a": 1, "b": 1})
        parts += list(batch(data / name, fields, rows=chaski.Rows(split=split, use=use))["count"])
    assert sorted(parts) == list(range(6))
    some = batch(data / name, fields, rows=chaski.Rows(ids=["t_003.tif", "t_002"]))
    assert list(some["count"]) == [3, 2]


def test_a_value_is_no_header(tmp_path, data, binary) -> None:
    """A number in the first line is no name, unless all names are numbers from 0 on."""
    path = next((data / "images").rglob("*.tif"))
    for first, want in ((f"{path},0", [0, 1]), (f"{path},1", [1, 1])):
        (tmp_path / "rows.csv").write_text(f"{first}\n{path},1\n")
        b = batch(tmp_path / "rows.csv", {"image": "0", "y": "1"})
        assert list(b["y"]) == want
        some = chaski.Rows(ids=[str(path)], id_column="0")
        assert len(batch(tmp_path / "rows.csv", {"image": "0"}, rows=some)["image"]) == 2
    (tmp_path / "rows.csv").write_text(f",0,1\n0,{path},7\n")
    assert list(batch(tmp_path / "rows.csv", {"image": "0", "y": "1"})["y"]) == [7]
    (tmp_path / "rows.csv").write_text(f"path,0\n{path},7\n")
    assert list(batch(tmp_path / "rows.csv", {"image": "path", "y": "0"})["y"]) == [7]


WRONG = {
    "no such column": ({"image": "images/{tile}.tif"}, 'no column "tile"'),
    "a star": ({"image": "images/*/t_{Image ID}.tif"}, "and no *"),
    "no file": ({"image": "images/{x}.tif"}, "images/3.tif"),
    "strings": (FIELDS | {"v": chaski.Field(columns=["x", "place"], kind="number")}, "place"),
    "mixed": (FIELDS | {"v": chaski.Field(columns=["x", "place"])}, 'column "x" holds ints'),
    "no number": (FIELDS | {"v": chaski.Field(columns=["x", "none"])}, 'no column "none"'),
    "a list": (FIELDS | {"v": chaski.Field(column=["x", "y"])}, "Field(columns=[...])"),
    "of rasters": (
        FIELDS | {"v": chaski.Field(columns=["x", "y"], kind="number", fill=0)},
        "for rasters",
    ),
    "bands": (FIELDS | {"v": chaski.Field(columns=["x", "y"], bands=[0])}, "for rasters"),
}


@pytest.mark.parametrize("case", list(WRONG))
def test_wrong(data, binary, case) -> None:
    fields, message = WRONG[case]
    with pytest.raises(chaski.errors.Error, match=re.escape(message)):
        batch(data / "rows.csv", fields)


def test_fractions_are_no_paths(data, binary) -> None:
    with pytest.raises(
        chaski.errors.UnsupportedError, match="whole numbers to be a part of a path"
    ):
        batch(data / "rows.parquet", {"image": "images/{y}.tif"})


NUMBERS = {
    "words of R": ("y,z", ["1.5,NA", "NA,3", "-2,4"]),
    "words of databases": ("y,z", ["1.5,null", "N/A,3", "None,NULL"]),
    "blanks": ("y,z", [" 1.5,2 ", "2 , 3", " -3,\t4"]),
    "signs": ("y,z", ["+1,1e3", "2,+.5", "3,2E-2"]),
    "commas": ("y;z", ["1,5;2", "2;3,25", "-0,25;NA"]),
    "points": ("y;z", ["1.5;2", "2;3.25", "-0.25;4"]),
}
TEXTS = {
    "a name called NA": ("y,z", ["NA,a", "DE,b", "1.5,c"]),
    "commas between commas": ("y,z", ['"1,5",a', '"2",b', '"-0,25",c']),
    "thousands": ("y;z", ["1.234;a", "1,5;b", "2;c"]),
    "lists": ("y;z", ["1,2,3;a", "1,5;b", "2;c"]),
}


@pytest.mark.parametrize("case", [*NUMBERS, *TEXTS])
def test_numbers_are_those_of_pandas(tmp_path, case) -> None:
    """Numbers in a CSV, beside words for what is missing, with blanks, and with decimal commas."""
    pandas = pytest.importorskip("pandas")
    head, lines = NUMBERS[case] if case in NUMBERS else TEXTS[case]
    comma = head[1]
    for k in range(3):
        rasters.write(tmp_path / f"{k}.tif", np.full((1, 4, 4), k, np.uint8))
    rows = "".join(f"{k}.tif{comma}{line}\n" for k, line in enumerate(lines))
    (tmp_path / "t.csv").write_text(f"path{comma}{head}\n{rows}")
    decimal = "," if case == "commas" else "."
    want = pandas.read_csv(tmp_path / "t.csv", sep=comma, decimal=decimal)
    fields = {"image": "path", "y": "y"}
    if case in TEXTS:
        assert list(batch(tmp_path / "t.csv", fields)["y"]) == want["y"].fillna("NA").tolist()
        return
    for column in "yz":
        fields["y"] = chaski.Field(column=column, dtype="float64")
        got = batch(tmp_path / "t.csv", fields)["y"]
        np.testing.assert_array_equal(got, want[column].to_numpy("float64"))


def test_paths_of_windows(tmp_path) -> None:
    """Backslashes are slashes where no file has them in its name."""
    names = ["a b\\1.tif", "a b/c\\2.tif", "d\\3.tif"]
    for k, name in enumerate(names[:2]):
        path = tmp_path / name.replace("\\", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        rasters.write(path, np.full((1, 4, 4), k, np.uint8))
    rasters.write(tmp_path / names[2], np.full((1, 4, 4), 2, np.uint8))
    (tmp_path / "t.csv").write_text("path\r\n" + "\r\n".join(names))
    got = batch(tmp_path / "t.csv", {"image": "path"})["image"]
    assert got[:, 0, 0, 0].tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("text", "says"),
    [("path,y\n0.tif,Gr\xfcn\n", r'row 0: "Gr\\xfcn" is not UTF-8: save the file as UTF-8'),
     ("path,Fl\xe4che\n0.tif,1\n", r'"Fl\\xe4che" is not UTF-8: save the file as UTF-8')],
)  # fmt: skip
def test_other_encodings(tmp_path, text, says) -> None:
    rasters.write(tmp_path / "0.tif", np.zeros((1, 4, 4), np.uint8))
    (tmp_path / "t.csv").write_bytes(text.encode("latin-1"))
    column = text[5 : text.index("\n")]
    with pytest.raises(chaski.UnsupportedError, match=says):
        batch(tmp_path / "t.csv", {"image": "path", "y": column})
