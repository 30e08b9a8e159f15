"""Names of patterns, against Python's re over the paths of the files."""

from __future__ import annotations

import itertools
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import rasters
from conftest import nonempty
from patience import logged

import chaski

rasterio = pytest.importorskip("rasterio", reason="needs rasterio to write rasters")

SENSORS = {"vv": 1, "vh": 2}


def write(path: Path, value: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    x = np.full((1, 8, 8), value, np.uint8)
    driver = "PNG" if path.suffix == ".png" else "GTiff"
    rasters.write(path, x, driver=driver, dtype="uint8")


@pytest.fixture(scope="module")
def scenes(tmp_path_factory) -> Path:
    """The layout of ETCI 2021, with a class of each scene and a date of each tile."""
    root = tmp_path_factory.mktemp("names")
    number = itertools.count(1)
    for split, scene in (("train", "nebraska_1"), ("train", "x"), ("test", "bolivia_3")):
        write(root / f"classes/{scene}.png", next(number))
        for date in ("2017-05-03", "2016-12-31"):
            for tile in (9, 10, 11):
                folder = root / split / scene / "tiles"
                write(folder / f"vv/{scene}_{tile}_{date}_vv.png", next(number))
                write(folder / f"vh/{scene}_{tile}_{date}_vh.png", next(number))
    return root


FIELDS = {
    "vv": "{split}/{scene}/tiles/vv/{scene}_{tile}_{date}_vv.png",
    "vh": "**/vh/{scene}_{tile}_{date}_*.png",
    "label": chaski.Field(pattern="classes/{scene}.png", dtype="uint8"),
    "scene": "scene",
    "tile": chaski.Field(column="tile", dtype="int64"),
    "where": chaski.Field(column="path", kind="text"),
}


def oracle(root: Path) -> list[dict[str, Any]]:
    """The samples in the order of the paths of vv, by regular expressions."""
    whole = r"([^/]+)/([^/]+)/tiles/vv/\2_([^/]+)_([^/]+)_vv\.png"
    rows = []
    for path in sorted(str(p.relative_to(root)) for p in root.rglob("*.png")):
        if m := re.fullmatch(whole, path):
            split, scene, tile, date = m.groups()
            vh = path.replace("_vv.", "_vh.").replace("/vv/", "/vh/")
            values = [first(root / p) for p in (path, vh, f"classes/{scene}.png")]
            row = dict(split=split, scene=scene, tile=int(tile), date=date, path=path)
            rows.append(row | dict(zip(("vv", "vh", "label"), values, strict=True)))
    return rows


def first(path: Path) -> int:
    with rasterio.open(path) as f:
        return int(f.read()[0, 0, 0])


def found(root: Path, **options: Any) -> Iterator[dict[str, Any]]:
    fields = options.pop("fields", FIELDS)
    with chaski.load(root, fields=fields, batch_size=5, shuffle=False, **options) as loader:
        for b in loader:
            for i in range(len(b["vv"])):
                pixels = {k: int(np.asarray(b[k]).reshape(len(b["vv"]), -1)[i, 0]) for k in PIXELS}
                rest = {"scene": str(b["scene"][i]), "tile": int(b["tile"][i])}
                yield pixels | rest | {"path": str(b["where"][i])}


PIXELS = ("vv", "vh", "label")


def same(got: Iterator[dict[str, Any]], want: list[dict[str, Any]]) -> None:
    keys = (*PIXELS, "scene", "tile", "path")
    assert list(got) == [{k: row[k] for k in keys} for row in want] != []


@pytest.mark.parametrize(
    ("rows", "keep"),
    [
        (chaski.Rows(), lambda r: True),
        (chaski.Rows(split="train"), lambda r: r["split"] == "train"),
        (chaski.Rows(where=[("tile", ">", 9)]), lambda r: r["tile"] > 9),
        (
            chaski.Rows(where="tile <= 10 AND scene LIKE 'n%'"),
            lambda r: r["tile"] <= 10 and "n" == r["scene"][0],
        ),
        (chaski.Rows(where=[("date", "==", "2016-12-31")]), lambda r: r["date"] == "2016-12-31"),
        (chaski.Rows(where=[("folder", "==", "vv")]), lambda r: True),
        (
            chaski.Rows(where=[("name", "==", "x_9_2017-05-03_vv")]),
            lambda r: "/x_9_2017-05-03_" in r["path"],
        ),
    ],
)
def test_columns(scenes, binary, rows, keep) -> None:
    """Names choose rows, split them and are fields."""
    same(found(scenes, rows=rows), [r for r in oracle(scenes) if keep(r)])


def test_split_by_a_name_keeps_scenes_together(scenes, binary) -> None:
    parts = {}
    for part in ("a", "b"):
        split = chaski.Split.by_column("scene", {"a": 1, "b": 1}, seed=3)
        rows = chaski.Rows(split=split, use=part)
        try:
            parts[part] = {r["scene"] for r in found(scenes, rows=rows)}
        except chaski.errors.Error as e:
            assert "none of its 18 rows" in str(e)
            parts[part] = set()
    assert parts["a"] | parts["b"] == {r["scene"] for r in oracle(scenes)}
    assert not parts["a"] & parts["b"]


def test_series(scenes, binary) -> None:
    """The dates of a tile are a sequence in their order."""
    time = chaski.Time(key="tile", order="date", length=2)
    fields = {k: FIELDS[k] for k in ("vv", "scene")}
    rows = chaski.Rows(where=[("scene", "==", "x")], time=time)
    with chaski.load(scenes, fields=fields, batch_size=9, rows=rows, shuffle=False) as loader:
        got = np.asarray(next(iter(loader))["vv"])[:, :, 0, 0, 0]
    want = {}
    for r in sorted(oracle(scenes), key=lambda r: r["date"]):
        if r["scene"] == "x":
            want.setdefault(r["tile"], []).append(r["vv"])
    assert sorted(got.tolist()) == sorted(want.values())


def test_resume_and_ids(scenes, binary) -> None:
    """A run resumes at any step, and its ids are the paths of the first field."""
    options = dict(fields=FIELDS, batch_size=4, seed=5)
    with chaski.load(scenes, **options) as loader:
        batches = [np.asarray(b["vv"]) for b in loader]
    with chaski.load(scenes, **options) as loader:
        next(iter(loader))
        state = loader.state_dict()
    with chaski.load(scenes, **options) as loader:
        loader.load_state_dict(state)
        for got, want in nonempty(zip(loader, batches[1:], strict=True)):
            np.testing.assert_array_equal(got["vv"], want)


def test_what_does_not_agree(scenes, binary) -> None:
    for fields, message in (
        (
            {"a": "{x}/{y}/tiles/*/{id}.png", "b": "classes/{z}.png"},
            "no field of files has all of the names",
        ),
        ({"a": "*/{scene}/tiles/vv/*_{date}_vv.png"}, "two files of the pattern"),
        ({"a": "{split}/{scene}/{id}.png"}, "names and * stand for text without slashes"),
    ):
        with pytest.raises(chaski.errors.Error, match=re.escape(message)):
            chaski.load(scenes, fields=fields, batch_size=1).close()


@pytest.mark.parametrize("form", ["directory", "catalog"])
@pytest.mark.parametrize("missing", [None, "fill"])
@pytest.mark.parametrize("order", ["image again mask", "mask image again", "again mask image"])
def test_masks_beside_images_are_no_images(tmp_path, binary, missing, form, order) -> None:
    """{id}.tif matches a_mask.tif, too: it is the mask of a. A mask of no image is missed."""
    names = ["a.tif", "a_mask.tif", "b.tif", "b_mask.tif"] + ["c.tif"] * bool(missing)
    for value, name in enumerate(names):
        write(tmp_path / "set" / name, value)
    patterns = {"image": "{id}.tif", "again": "{id}.tif"}
    patterns["mask"] = chaski.Field(pattern="{id}_mask.tif", missing=missing)
    fields = {name: patterns[name] for name in order.split()}
    source = tmp_path / "set"
    if form == "catalog":
        source = tmp_path / "set.parquet"
        subprocess.run([binary, "index", "-o", source, tmp_path / "set"], check=True)
    with chaski.load(source, fields=fields, batch_size=9, shuffle=False) as loader:
        (batch,) = loader
    images = [0, 2] + [4] * bool(missing)
    assert batch["image"][:, 0, 0, 0].tolist() == images
    assert batch["again"][:, 0, 0, 0].tolist() == images
    assert batch["mask"][:, 0, 0, 0].tolist()[:2] == [1, 3]
    if missing:
        assert batch["there.mask"].tolist() == [1, 1, 0]
    (tmp_path / "set" / "b.tif").unlink()
    if form == "directory":
        with pytest.raises(chaski.NotFoundError, match=r"no file b(_mask_mask)?\.tif"):
            chaski.load(source, fields=fields, batch_size=9)


@pytest.mark.parametrize("label", ["{scene}/label.tif", "{scene}_label.tif"])
def test_labels_that_are_images_are_told(tmp_path, binary, caplog, label) -> None:
    """The label of a scene may lie where its images do: nothing tells the two apart."""
    for value, name in enumerate(["a", "label", "b"]):
        write(tmp_path / label.format(scene="s").replace("label", name), value)
    fields = {"image": label.replace("label", "{id}"), "label": label, "id": "id"}
    with chaski.load(tmp_path, fields=fields, batch_size=9) as loader:
        assert sorted(zip(*values(loader), strict=True)) == [(0, 1), (1, 1), (2, 1)]
    assert "such as" in logged(caplog, "are samples of their own", label.format(scene="s"))
    caplog.clear()
    rows = chaski.Rows(where=[["id", "!=", "label"]])
    with chaski.load(tmp_path, fields=fields, batch_size=9, rows=rows) as loader:
        assert sorted(zip(*values(loader), strict=True)) == [(0, 1), (2, 1)]


def values(loader: chaski.Loader) -> tuple[list[int], list[int]]:
    (batch,) = loader
    return tuple(np.asarray(batch[f])[:, 0, 0, 0].tolist() for f in ("image", "label"))


def test_a_link_to_nothing_is_named(tmp_path, binary) -> None:
    write(tmp_path / "a.tif", 1)
    (tmp_path / "b.tif").symlink_to("nowhere.tif")
    with (
        chaski.load(tmp_path, batch_size=1) as loader,
        pytest.raises(chaski.NotFoundError, match=r"b\.tif: file"),
    ):
        list(loader)


@pytest.mark.parametrize("name", ["x.tar.gz", "x.tgz", "x.csv.gz", "x.tar.xz", "x.tar.bz2"])
def test_archives_alone_in_a_folder_say_the_way(tmp_path, binary, name) -> None:
    (tmp_path / name).write_bytes(b"x")
    for source in (tmp_path, tmp_path / name):
        with pytest.raises(chaski.UnsupportedError, match="not read: unpack it"):
            chaski.load(source, batch_size=1)
