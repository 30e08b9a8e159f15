"""Arrays in .npz files against numpy: by pattern, column, list, glob and URL."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import nonempty
from helpers import web

import chaski
from chaski import Field, RandomWindow

pytestmark = pytest.mark.usefixtures("one_engine")


@pytest.fixture
def archives(tmp_path: Path) -> Path:
    """Eight files of an image, a mask, a series, a number and a vector; half are compressed."""
    rng = np.random.default_rng(77)
    for i in range(8):
        save = np.savez_compressed if i % 2 else np.savez
        save(
            tmp_path / f"{i}.npz",
            **{
                "image": rng.integers(0, 2**16, (5, 40, 70)).astype([">u2", "<f4"][i // 4]),
                "labels/mask": rng.integers(0, 5, (40, 70)).astype("int64"),
                "series": rng.random((3, 2, 9, 8)).astype("float16"),
                "label": np.int64(i),
                "vector": np.arange(4.0) + i,
                "arr_0": np.asfortranarray(rng.random((2, 3, 4))),
            },
        )
    return tmp_path


FIELDS = {
    "image": "{id}.npz::image",
    "mask": Field(pattern="{id}.npz::labels/mask", dtype="int64", layout="n y x"),
    "series": "{id}.npz::series",
    "name": Field(column="path", kind="text"),
}


def same(batch: Any, folder: Path) -> int:
    for i, path in enumerate(batch["name"]):
        want = np.load(folder / Path(path).name.partition("::")[0])
        for key, member in [("image", "image"), ("mask", "labels/mask"), ("series", "series")]:
            if key in batch:
                got = np.asarray(batch[key][i])
                assert np.array_equal(got, want[member].astype(got.dtype)), (path, key)
    return len(batch["name"])


def test_patterns_of_members(archives):
    """Each member is a field; a catalog of them has the same, and so have statistics."""
    with chaski.load(archives, batch_size=3, fields=FIELDS) as loader:
        assert sum(same(b, archives) for b in nonempty(loader)) == 8
    kept = {k: v if isinstance(v, str) else v.pattern for k, v in FIELDS.items() if k != "name"}
    line = [f for k, v in kept.items() for f in ("--field", f"{k}={v}")]
    table = archives / "all.parquet"
    subprocess.run([os.environ["CHASKI_BIN"], "index", *line, "-o", table, archives], check=True)
    fields = {
        "image": Field(),
        "mask": Field(dtype="int64", layout="n y x"),
        "name": FIELDS["name"],
    }
    with chaski.load(table, batch_size=3, fields=fields) as loader:
        assert sum(same(b, archives) for b in nonempty(loader)) == 8
    stats = chaski.stats(archives, fields={"mask": "{id}.npz::labels/mask"})
    want = np.concatenate([np.load(archives / f"{i}.npz")["labels/mask"].ravel() for i in range(8)])
    assert stats.mean("mask")[0] == pytest.approx(want.mean(), rel=1e-9)


def test_windows_of_a_deflated_member(archives):
    fields = {"image": "{id}.npz::image", "name": FIELDS["name"]}
    pixels = chaski.Pixels(windows=True)
    window = RandomWindow((7, 9), per_asset=5)
    found = 0
    with chaski.load(archives, batch_size=4, fields=fields, window=window, pixels=pixels) as loader:
        for b in nonempty(loader):
            for x, (y0, x0, h, w), path in zip(
                np.asarray(b["image"]), np.asarray(b["window"]), b["name"], strict=True
            ):
                want = np.load(archives / path)["image"][:, y0 : y0 + h, x0 : x0 + w]
                assert np.array_equal(x, want.astype("float32"))
                found += 1
    assert found == 40


def test_columns_lists_globs_and_names(archives, monkeypatch):
    """Cells, lists and globs say FILE.npz::NAME; a column of a folder is the name of a member."""
    pd = pytest.importorskip("pandas")
    monkeypatch.chdir(archives)
    names = [f"{i}.npz::image" for i in range(8)]
    Path("t.csv").write_text("image,name\n" + "".join(f"{n},{n}\n" for n in names))
    both: Any = {"image": "image", "name": Field(column="name", kind="text")}
    path: Any = {"image": Field(), "name": Field(column="path", kind="text")}
    for source, fields in [
        ("t.csv", both),
        (pd.DataFrame({"image": names, "name": names}), both),
        (names, path),
        ("*.npz::image", path),
        (".", {"image": Field(column="image"), "name": path["name"]}),
    ]:
        with chaski.load(source, batch_size=4, fields=fields) as loader:
            assert sum(same(b, archives) for b in nonempty(loader)) == 8
    want = np.load("3.npz")["image"]
    assert np.array_equal(chaski.read("3.npz::image"), want)
    assert np.array_equal(chaski.read(f"/vsizip/{archives}/3.npz/image.npy"), want)
    assert next(iter(chaski.load("3.npz::image", batch_size=1)))["image"].shape == (1, 5, 40, 70)


def test_members_by_url(archives):
    """A table of URLs reads ranges of stored members, and little more than the bytes of those."""
    with web(archives) as (url, asked):
        lines = "".join(f"{url}/{i}.npz::image,{i}.npz\n" for i in range(8))
        (archives / "t.csv").write_text("image,name\n" + lines)
        fields = {"image": "image", "name": "name"}
        with chaski.load(archives / "t.csv", batch_size=4, fields=fields) as loader:
            assert sum(same(b, archives) for b in nonempty(loader)) == 8
        assert asked


@pytest.mark.parametrize(
    ("pattern", "told"),
    [
        ("{id}.npz", r'arrays arr_0, image, .*: name one, as in "\{id\}.npz::arr_0"'),
        ("{id}.npz::images", r"no such member in the archive, which has arr_0.npy, image.npy"),
        ("{id}.npz::label", r"its shape is \[\]: .*numbers of samples are columns of a table"),
        ("{id}.npz::vector", r"its shape is \[4\]"),
        ("{id}.npz::arr_0", r"Fortran order.*numpy.ascontiguousarray"),
    ],
)
def test_members_that_are_no_rasters(archives, pattern, told):
    with pytest.raises(chaski.Error, match=told):
        chaski.load(archives, batch_size=1, fields={"image": pattern})
    if "::" not in pattern:
        for open_ in (chaski.read, chaski.info):
            with pytest.raises(chaski.UnsupportedError, match=told):
                open_(archives / "0.npz")
        with pytest.raises(chaski.UnsupportedError, match=told):
            chaski.load(archives, batch_size=1)


def test_damaged_archives(archives):
    """Copies with changed bytes are read as numpy reads them, or refused: nothing else happens."""
    data = (archives / "1.npz").read_bytes()
    want = np.load(archives / "1.npz")["image"]
    rng = np.random.default_rng(5)
    refused = 0
    for _ in range(40):
        bad = bytearray(data)
        for at in rng.integers(0, len(data), 3):
            bad[at] ^= int(rng.integers(1, 256))
        (archives / "bad.npz").write_bytes(bad)
        try:
            assert np.array_equal(chaski.read(archives / "bad.npz::image"), want)
        except chaski.Error:
            refused += 1
    assert refused > 0


@pytest.mark.parametrize("name", ["x.npy", "x.npz::arr_0"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_rows_in_one_file(tmp_path, name, order) -> None:
    """Each n of an array is a sample, in either order of the file."""
    array = np.random.default_rng(2).integers(0, 9999, (5, 16, 17, 3)).astype("<u2", order=order)
    np.save(tmp_path / "x.npy", array)
    np.savez(tmp_path / "x.npz", array)
    options = {"batch_size": 5, "shuffle": False, "pixels": chaski.Pixels(dtype="native")}
    for how in (
        {"rows": chaski.Rows(dims="n y x b")},
        {"fields": {"image": chaski.Field(dims="n y x b")}},
    ):
        with chaski.load(tmp_path / name, **options, **how) as loader:
            (batch,) = list(loader)
        assert np.array_equal(batch["image"], array.transpose(0, 3, 1, 2))


def test_labels_beside_images(tmp_path) -> None:
    """Arrays (n) are labels of the images (n, y, x) of their file."""
    array, labels = np.arange(4 * 6 * 5, dtype="u1").reshape(4, 6, 5), np.array([3, 1, 2, 0])
    np.savez(tmp_path / "x.npz", images=array, labels=labels, short=labels[:3])
    fields = {
        "image": chaski.Field(column="images", dims="n y x"),
        "y": chaski.Field(column="labels"),
    }
    with chaski.load(tmp_path / "x.npz", batch_size=4, shuffle=False, fields=fields) as loader:
        (batch,) = list(loader)
    assert batch["y"].tolist() == labels.tolist()
    assert np.array_equal(batch["image"][:, 0], array)
    fields["y"] = chaski.Field(column="short")
    with pytest.raises(chaski.UnsupportedError, match="3 values for 4 images"):
        chaski.load(tmp_path / "x.npz", batch_size=4, fields=fields)
