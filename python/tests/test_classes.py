"""Strings of a column become the numbers of classes."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
import rasters
from conftest import nonempty

import chaski
from chaski import Field

pytestmark = pytest.mark.usefixtures("one_engine")

rasterio = pytest.importorskip("rasterio", reason="needs rasterio to write chips")

CLASSES = ("AnnualCrop", "Forest", "River")
LABEL = Field(kind="class", column="folder")


@pytest.fixture(scope="module")
def eurosat(tmp_path_factory):
    """Folders with chips, each of which holds the number of its class and its own."""
    folder = tmp_path_factory.mktemp("eurosat")
    for value, name in enumerate(CLASSES):
        (folder / name).mkdir()
        for i in range(4):
            rasters.write(
                folder / name / f"{name}_{i}.tif", np.full((1, 8, 8), 10 * value + i, np.uint8)
            )
    return folder


@pytest.fixture(scope="module")
def catalog(eurosat, binary):
    out = eurosat.parent / "eurosat.parquet"
    subprocess.run(
        [binary, "index", "--format", "parquet", "-o", out, eurosat],
        check=True,
        capture_output=True,
    )
    return out


def labels(loader) -> np.ndarray:
    """Returns all labels of an epoch, and checks them against the pixels."""
    out = []
    for batch in loader:
        rows = batch["valid"]
        assert (batch["label"][rows] == batch["image"][rows][:, 0, 0, 0] // 10).all()
        out.append(np.array(batch["label"][rows]))
    return np.concatenate(out)


@pytest.mark.parametrize("source", ["folder", "glob", "catalog", "relative"])
def test_class_folders(eurosat, catalog, source, monkeypatch):
    monkeypatch.chdir(eurosat.parent)
    where = {
        "folder": eurosat,
        "glob": f"{eurosat}/*/*.tif",
        "catalog": catalog,
        "relative": Path(eurosat.name),
    }[source]
    with chaski.load(where, batch_size=5, fields={"image": Field(), "label": LABEL}) as loader:
        got = labels(loader)
        assert loader.classes == {"label": list(CLASSES)}
    assert got.dtype == np.int64
    assert sorted(got) == [0] * 4 + [1] * 4 + [2] * 4


def test_parts_of_a_split_have_the_same_numbers(eurosat):
    rows = chaski.Rows(where=[("folder", "in", ["Forest", "River"])])
    fields = {"image": Field(), "label": LABEL}
    with chaski.load(eurosat, batch_size=4, fields=fields, rows=rows) as loader:
        assert sorted(labels(loader)) == [1] * 4 + [2] * 4
        assert loader.classes["label"] == list(CLASSES)


def test_given_classes(eurosat):
    label = Field(kind="class", column="folder", classes=CLASSES[::-1], dtype="uint8")
    fields = {"image": Field(), "label": label}
    with chaski.load(eurosat, batch_size=12, fields=fields) as loader:
        batch = next(iter(loader))
        assert batch["label"].dtype == np.uint8
        assert (batch["label"] == 2 - batch["image"][:, 0, 0, 0] // 10).all()


def test_a_sample_of_another_class_is_bad(eurosat):
    label = Field(kind="class", column="folder", classes=["Forest", "River"])
    fields = {"image": Field(), "label": label}
    with (
        chaski.load(eurosat, batch_size=4, fields=fields) as loader,
        pytest.raises(chaski.Error, match='"AnnualCrop" is not one of the 2 classes'),
    ):
        list(loader)
    skip = {"image": Field(), "label": label}
    with chaski.load(eurosat, batch_size=12, fields=skip, on_bad="skip") as loader:
        assert sum(int(b["valid"].sum()) for b in loader) == 8


def test_classes_of_a_table(eurosat):
    names = ["sea", "", "alpine", "sea"]
    lines = [f"Forest/Forest_{i}.tif,{n}" for i, n in enumerate(names)]
    table = eurosat / "t.csv"
    table.write_text("image,name\n" + "\n".join(lines) + "\n")
    fields = {"image": Field(), "label": Field(kind="class", column="name")}
    with chaski.load(table, batch_size=4, fields=fields, shuffle=False, on_bad="skip") as loader:
        batch = next(iter(loader))
        assert loader.classes["label"] == ["alpine", "sea"]
        assert batch["label"].tolist() == [1, 0, 0, 1]  # the sample without a class is padding
        assert batch["valid"].tolist() == [True, False, True, True]
    table.unlink()


def test_sources_share_their_classes(eurosat, tmp_path):
    """A string has one value, whichever source of a mixture has it."""
    for name in ("River", "Sea"):
        shutil.copytree(eurosat / "River", tmp_path / "b" / name)
    sources = {"a": chaski.Source(eurosat), "b": chaski.Source(tmp_path / "b")}
    fields = {"image": Field(), "label": LABEL}
    with chaski.load(chaski.Mixture(sources), batch_size=8, fields=fields) as loader:
        assert loader.classes["label"] == [*CLASSES, "Sea"]
        for batch in nonempty(loader):
            second = batch["source"] == 1
            assert set(batch["label"][second & batch["valid"]]) <= {2, 3}


def test_balanced_by_folder(eurosat):
    (eurosat / "Forest").joinpath("extra.tif").write_bytes(
        (eurosat / "Forest" / "Forest_0.tif").read_bytes()
    )
    rows = chaski.Rows(strata=chaski.Strata("folder", until=12, per_batch=True))
    fields = {"image": Field(), "label": LABEL}
    with chaski.load(eurosat, batch_size=3, fields=fields, rows=rows) as loader:
        got = labels(loader)
    assert np.bincount(got).tolist() == [4, 4, 4]
    (eurosat / "Forest" / "extra.tif").unlink()


def test_the_page(eurosat, monkeypatch, capsys):
    monkeypatch.chdir(eurosat.parent)
    (eurosat.parent / "eurosat").symlink_to(eurosat)
    page = (Path(__file__).parents[2] / "docs/labels.md").read_text()
    block = page.split("## A folder for each class")[1].split("```python\n")[1].split("```")[0]
    seen = []
    exec(block, {"step": lambda x, y: seen.extend(zip(x[:, 0, 0, 0] // 10, y, strict=True))})
    assert len(seen) == 12
    assert all(a == b for a, b in seen)
    assert capsys.readouterr().out == f"{list(CLASSES)}\n"


@pytest.mark.parametrize(
    ("field", "said"),
    [
        (Field(kind="class", column="species"), '"species"'),
        (Field(kind="class", column="folder", classes=[]), "classes is empty"),
        (Field(kind="class", column="folder", classes=["a", "a"]), '"a" twice'),
        (Field(kind="class", column="folder", classes=["a", ""]), "empty string"),
        (Field(kind="class", column="folder", dtype="float32"), "dtype"),
        (Field(kind="text", column="folder", classes=["a"]), "classes"),
        (Field(kind="class", column="folder", layout="n y x"), "layout"),
        (Field(kind="class", column="folder", pattern="{id}.tif"), "pattern"),
        (Field(kind="number", column="folder"), "folder"),
    ],
    ids=str,
)
def test_refused(eurosat, field, said):
    with pytest.raises(chaski.Error, match=said):
        chaski.load(eurosat, batch_size=2, fields={"image": Field(), "label": field})


@pytest.mark.parametrize("how", ["frame", "csv", "parquet"])
def test_whole_floats_are_integers(eurosat, tmp_path, how):
    """As pandas makes them of a column with gaps. A sample without a class is bad."""
    pd = pytest.importorskip("pandas")
    numbers = [7.0, -2.0, np.nan, 7.0, 40.0]
    paths = [str(eurosat / "River" / f"River_{i % 4}.tif") for i in range(5)]
    table = pd.DataFrame({"path": paths, "y": numbers})
    source = table
    if how == "csv":
        source = tmp_path / "t.csv"
        table.to_csv(source, index=False)
    elif how == "parquet":
        source = tmp_path / "t.parquet"
        table.to_parquet(source)
    for classes, want in (
        ([7, -2], {0: 0, 1: 1, 3: 0}),
        ([-2.0, 7.0, 40.0], {0: 1, 1: 0, 3: 1, 4: 2}),
        (None, {0: 1, 1: 0, 3: 1, 4: 2}),
    ):
        fields = {"image": "path", "y": Field(column="y", kind="class", classes=classes)}
        with chaski.load(source, batch_size=5, fields=fields, on_bad="skip") as loader:
            batch = next(iter(loader))
        rows = batch["valid"]
        got = zip(batch["sample"][rows].tolist(), batch["y"][rows].tolist(), strict=True)
        assert dict(got) == want
    table["y"] = [1.5, 2.0, 3.0, 4.0, 5.0]
    fields = {"image": "path", "y": Field(column="y", kind="class")}
    with pytest.raises(chaski.UnsupportedError, match=r"holds 1.5: floats are classes if"):
        chaski.load(table, batch_size=5, fields=fields)


def test_lists_of_many_classes_fit_any_dtype(eurosat, tmp_path):
    """Only numbers of classes are limited by their dtype: a list has a place for each class."""
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    path = str(eurosat / "River" / "River_0.tif")
    names = [f"c{i}" for i in range(300)]
    lists = pa.array([["c1", "c299"]], pa.list_(pa.string()))
    table = pa.table({"path": [path], "many": lists, "one": ["c299"]})
    parquet.write_table(table, tmp_path / "t.parquet")
    fields = {"image": "path", "y": Field(column="many", classes=names, dtype="uint8")}
    with chaski.load(tmp_path / "t.parquet", batch_size=1, fields=fields) as loader:
        got = next(iter(loader))["y"]
    assert got.dtype == np.uint8
    assert got.shape == (1, 300)
    assert np.flatnonzero(got[0]).tolist() == [1, 299]
    fields["y"] = Field(column="one", classes=names, dtype="uint8")
    with pytest.raises(chaski.UnsupportedError, match='300 strings.*"uint8" has numbers for 256'):
        chaski.load(tmp_path / "t.parquet", batch_size=1, fields=fields)


@pytest.mark.parametrize("size", [-1, 0])
def test_lists_that_are_all_empty_are_refused(eurosat, tmp_path, size):
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    path = str(eurosat / "River" / "River_0.tif")
    lists = pa.array([[], []], pa.list_(pa.float32(), size))
    parquet.write_table(pa.table({"path": [path, path], "v": lists}), tmp_path / "t.parquet")
    with pytest.raises(chaski.NotFoundError, match="field v column.*no list has a number"):
        chaski.load(tmp_path / "t.parquet", batch_size=1, fields={"image": "path", "v": "v"})


@pytest.mark.parametrize("separator", [";", ",", "|", " "])
def test_several_classes_in_a_cell_say_the_way(tmp_path, binary, separator) -> None:
    pd = pytest.importorskip("pandas")
    for k in range(2):
        np.save(tmp_path / f"{k}.npy", np.zeros((1, 4, 4), np.uint8))
    paths = [str(tmp_path / f"{k}.npy") for k in range(2)]
    frame = pd.DataFrame({"path": paths, "tags": [separator.join(("wood", "lake")), "lake"]})
    fields = {
        "image": chaski.Field(column="path", kind="raster"),
        "y": chaski.Field(column="tags", classes=["lake", "sea", "wood"]),
    }
    with (
        chaski.load(frame, fields=fields, batch_size=2, shuffle=False) as loader,
        pytest.raises(chaski.Error) as failed,
    ):
        next(iter(loader))
    assert f'split="{separator}"' in str(failed.value)
    fields["y"] = chaski.Field(column="tags", classes=["lake", "sea", "wood"], split=separator)
    with chaski.load(frame, fields=fields, batch_size=2, shuffle=False) as loader:
        assert next(iter(loader))["y"].tolist() == [[1, 0, 1], [1, 0, 0]]
