"""HDF5 and NetCDF-4 files as datasets, compared with what h5py reads of testdata/hdf5."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from patience import logged

import chaski

h5py = pytest.importorskip("h5py")

pytestmark = pytest.mark.usefixtures("one_engine")

DATA = Path(__file__).parents[2] / "testdata" / "hdf5"
EXPECTED = json.loads((DATA / "expected.json").read_text())


def load(
    name: str,
    fields: dict[str, Any],
    size: int = 16,
    dims: str | None = None,
    where: Any = (),
    folder: Path = DATA,
) -> dict[str, Any]:
    """The one batch of a file, in the order of its rows."""
    with chaski.load(
        str(folder / name),
        batch_size=size,
        shuffle=False,
        rows=chaski.Rows(dims=dims, where=where),
        fields=fields,
        pixels=chaski.Pixels(dtype="native"),
    ) as loader:
        (batch,) = list(loader)
    return {name: batch[name] for name in fields}


def digest(array: Any) -> str:
    return hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()


def test_arrays_and_labels() -> None:
    """Arrays (n, y, x, b) in one file, with numbers, vectors and strings as labels."""
    fields = {
        "sen1": {"column": "sen1", "layout": "n y x b"},
        "sen2": {"column": "sen2", "layout": "n y x b"},
        "class": {"kind": "number"},
        "name": {"kind": "text"},
        "code": {"kind": "text"},
        "label": {"kind": "number", "dtype": "float64"},
    }
    batch = load("samples.h5", fields, dims="n y x b")
    for name in ("sen1", "sen2"):
        assert digest(batch[name][:12]) == EXPECTED["samples.h5"][name]["sha256"]
    assert batch["class"][:12].tolist() == [i % 5 for i in range(12)]
    assert list(batch["name"])[:12] == [f"s{i}" for i in range(12)]
    assert list(batch["code"])[:12] == [f"c{i}" for i in range(12)]
    labels = np.concatenate([np.asarray(batch["label"][i]) for i in range(12)])
    assert digest(labels) == EXPECTED["samples.h5"]["label"]["sha256"]


def test_where_label() -> None:
    batch = load(
        "samples.h5",
        {"c": {"column": "class", "kind": "number"}, "sen1": {}},
        dims="n y x b",
        where=[("class", "==", 2)],
    )
    assert batch["c"].tolist() == [2, 2]


def test_groups() -> None:
    """A group a sample, with an attribute of it."""
    fields = {
        "post": {"pattern": "{id}/post", "layout": "n y x b"},
        "mask": {"pattern": "{id}/mask", "layout": "n y x b"},
        "magnitude": {"kind": "number", "column": "magnitude", "dtype": "float64"},
        "id": {"kind": "text"},
    }
    batch = load("grouped.h5", fields, dims="y x b")
    for i in range(5):
        for name in ("post", "mask"):
            assert digest(batch[name][i]) == EXPECTED["grouped.h5"][f"fire_{i}/{name}"]["sha256"]
    assert batch["magnitude"].tolist() == [0, 0.5, 1, 1.5, 2]
    assert list(batch["id"]) == [f"fire_{i}" for i in range(5)]


def test_files(tmp_path: Path) -> None:
    """A file a sample, by a pattern with the array behind it."""
    for i in range(3):
        shutil.copy(DATA / "user_block.h5", tmp_path / f"s{i}.h5")
    batch = load(str(tmp_path), {"y": {"pattern": "{id}.h5::y", "layout": "n y x"}})
    for i in range(3):
        assert digest(batch["y"][i]) == EXPECTED["user_block.h5"]["y"]["sha256"]


def test_scene() -> None:
    """Windows of a netCDF-4 scene."""
    with chaski.load(
        str(DATA / "scene.nc"),
        batch_size=4,
        shuffle=False,
        window=chaski.Grid((15, 20)),
        fields={"red": {"column": "red", "layout": "n t y x"}},
        pixels=chaski.Pixels(dtype="native"),
    ) as loader:
        red = next(iter(loader))["red"]
    rows = [np.concatenate([red[k], red[k + 1]], -1) for k in (0, 2)]
    assert digest(np.concatenate(rows, -2)) == EXPECTED["scene.nc"]["red"]["sha256"]


def test_nested_groups() -> None:
    """An id may be several groups."""
    batch = load(
        "groups_earliest.h5",
        {"d": {"pattern": "deep/{id}/d", "layout": "n y x"}, "id": {"kind": "text"}},
    )
    assert list(batch["id"]) == ["a/b/c"]
    assert digest(batch["d"][0]) == EXPECTED["groups_earliest.h5"]["deep/a/b/c/d"]["sha256"]


def test_hdf_is_told_by_its_bytes(tmp_path: Path) -> None:
    """Files .hdf are read if they are HDF5; HDF4 is refused with the way, in a folder, too."""
    shutil.copy(DATA / "samples.h5", tmp_path / "a.hdf")
    array = str(chaski.info(DATA / "samples.h5")["arrays"][0]["path"])
    want = chaski.info(DATA / f"samples.h5::{array}")
    got = chaski.info(tmp_path / f"a.hdf::{array}")
    assert {**got, "path": ""} == {**want, "path": ""}
    (tmp_path / "a.hdf").write_bytes(b"\x0e\x03\x13\x01" + bytes(99))
    for source in (tmp_path, tmp_path / "a.hdf", tmp_path / "*.hdf"):
        with pytest.raises(chaski.UnsupportedError, match="HDF4.*gdalinfo.*gdal_translate"):
            chaski.load(source, batch_size=1)


def test_files_of_matlab(tmp_path: Path) -> None:
    """MATLAB 7.3 files are HDF5 behind a user block."""
    h5py = pytest.importorskip("h5py")
    want = np.arange(2 * 3 * 4 * 5, dtype="u2").reshape(2, 3, 4, 5)
    for k in range(2):
        with h5py.File(tmp_path / f"{k}.mat", "w", userblock_size=512) as f:
            f["x"] = want[k]
        data = bytearray((tmp_path / f"{k}.mat").read_bytes())
        data[:20] = b"MATLAB 7.3 MAT-file,"
        (tmp_path / f"{k}.mat").write_bytes(data)
    rows = chaski.Rows(dims="b y x")
    for source, options in ((tmp_path, {"fields": {"image": "{id}.mat::x"}}), (tmp_path, {})):
        with chaski.load(source, batch_size=2, rows=rows, shuffle=False, **options) as loader:
            assert np.array_equal(next(iter(loader))["image"], want)


def test_a_group_that_lacks_an_array(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """It is an error that names it, or left out and counted."""
    h5py = pytest.importorskip("h5py", reason="needs h5py to take an array out")
    shutil.copy(DATA / "grouped.h5", tmp_path / "a.h5")
    with h5py.File(tmp_path / "a.h5", "r+") as f:
        del f["fire_1/mask"]
    fields = {"post": "{id}/post", "mask": "{id}/mask"}
    options: dict[str, Any] = {"batch_size": 8, "shuffle": False, "fields": fields}
    with pytest.raises(
        chaski.NotFoundError, match="no array fire_1/mask for the id.*1 arrays are missing"
    ):
        chaski.load(tmp_path / "a.h5", rows=chaski.Rows(dims="y x b"), **options)
    rows = chaski.Rows(dims="y x b", missing="drop")
    with chaski.load(tmp_path / "a.h5", rows=rows, **options) as loader:
        assert list(loader.ids) == ["fire_0", "fire_2", "fire_3", "fire_4"]
        assert "samples=1 left=4" in logged(caplog, "left=4")


@pytest.fixture
def scenes(tmp_path: Path) -> Path:
    """Two files of groups SCENE/ID with arrays, and masks beside them."""
    h5py = pytest.importorskip("h5py", reason="needs h5py to write files")
    for split, base in (("train", 0), ("val", 100)):
        with h5py.File(tmp_path / f"{split}.h5", "w") as f:
            for k, name in enumerate(("a/0012", "a/0013", "b/0012")):
                group = f.create_group(name)
                group["image_S2"] = np.full((2, 4, 4), base + k, "i2")
                group["x/y/mask"] = np.full((4, 4), base + k + 10, "u1")
                for array, axes in (("image_S2", "byx"), ("x/y/mask", "yx")):
                    for axis, label in enumerate(axes):
                        group[array].dims[axis].label = label
                group.attrs["cloud"] = k / 2
    return tmp_path


IN_FILES = {"{split}.h5::": "", "*.h5::": "two files", "train.h5::": ""}


@pytest.mark.parametrize("before", [*IN_FILES, None])
def test_names_and_stars_in_groups(scenes: Path, before: str | None) -> None:
    """They are columns, in one file, and in the files of a folder."""
    source = scenes / "train.h5" if before is None else scenes
    fields: dict[str, Any] = {
        "image": f"{before or ''}{{scene}}/{{id}}/image_*",
        "mask": {"pattern": f"{before or ''}{{scene}}/{{id}}/**/mask", "layout": "n y x"},
        "scene": {"kind": "text"},
        "tile": {"column": "id", "kind": "text"},
    }
    rows = chaski.Rows(where=[("id", "==", "0012")])
    if before == "{split}.h5::":
        fields["split"] = {"kind": "text"}
        rows = chaski.Rows(where=[("id", "==", "0012"), ("split", "==", "val")])
    if before is not None and IN_FILES[before]:
        with pytest.raises(chaski.CorruptError, match="two files of the pattern.*tells them apart"):
            chaski.load(source, batch_size=9, fields=fields, rows=rows)
        return
    pixels = chaski.Pixels(dtype="native")
    with chaski.load(
        source, batch_size=9, shuffle=False, fields=fields, rows=rows, pixels=pixels
    ) as it:
        (batch,) = list(it)
    base = 100 if before == "{split}.h5::" else 0
    assert batch["image"][:2, :, 0, 0].tolist() == [[base, base], [base + 2, base + 2]]
    assert batch["mask"][:2, 0, 0].tolist() == [base + 10, base + 12]
    assert list(batch["scene"])[:2] == ["a", "b"]
    assert list(batch["tile"])[:2] == ["0012", "0012"]


def test_a_group_without_an_optional_array(scenes: Path) -> None:
    """An array of missing="fill" may lack, and an attribute is a column beside names."""
    h5py = pytest.importorskip("h5py", reason="needs h5py to take an array out")
    with h5py.File(scenes / "train.h5", "r+") as f:
        del f["a/0013/x"]
    fields: dict[str, Any] = {
        "image": "{scene}/{id}/image_S2",
        "mask": {"pattern": "{scene}/{id}/x/y/mask", "missing": "fill", "fill": 255},
        "cloud": {"kind": "number", "dtype": "float64"},
    }
    with chaski.load(
        scenes / "train.h5",
        batch_size=3,
        shuffle=False,
        fields=fields,
        pixels=chaski.Pixels(dtype="native"),
    ) as loader:
        (batch,) = list(loader)
    assert batch["mask"][:, 0, 0, 0].tolist() == [10, 255, 12]
    assert batch["there.mask"].tolist() == [1, 0, 1]
    assert batch["cloud"].tolist() == [0, 0.5, 1]


def test_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The block of docs/hdf5.md, with files as it describes them."""
    h5py = pytest.importorskip("h5py", reason="needs h5py to write files")
    page = (DATA.parents[1] / "docs/hdf5.md").read_text()
    (block,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    rng = np.random.default_rng(3)
    sen2 = rng.integers(0, 9, (20, 32, 32, 10), np.int16)
    scene = rng.integers(0, 9, (300, 400), np.int16)
    with h5py.File(tmp_path / "train.h5", "w") as f:
        f["sen2"], f["label"] = sen2, np.arange(20)
    with h5py.File(tmp_path / "fires.h5", "w") as f:
        for k in range(3):
            f[f"f{k}/post_fire"], f[f"f{k}/mask"] = sen2[k, ..., :3], sen2[k, ..., :1]
            f[f"f{k}"].attrs["magnitude"] = k / 2
    (tmp_path / "chips").mkdir()
    for name, data, axes in (("chips/a.h5", sen2[0], "yxb"), ("scene.nc", scene, "yx")):
        with h5py.File(tmp_path / name, "w") as f:
            f["bands"] = data
            for axis, label in enumerate(axes):
                f["bands"].dims[axis].label = label
    monkeypatch.chdir(tmp_path)
    seen: list[dict[str, Any]] = []
    for part in re.split(r"\n\n(?=#)", block):
        names: dict[str, Any] = {"chaski": chaski}
        exec(part.replace("batch_size=16", "batch_size=16, shuffle=False"), names)
        with names["loader"] as loader:
            seen.append(next(iter(loader)))
    samples, fires, chips, windows = seen
    assert np.array_equal(samples["image"], sen2[:16].transpose(0, 3, 1, 2))
    assert samples["label"].tolist() == list(range(16))
    assert np.array_equal(fires["mask"][:3, 0], sen2[:3, ..., 0])
    assert fires["magnitude"].tolist() == [0, 0.5, 1]
    assert np.array_equal(chips["image"][0], sen2[0].transpose(2, 0, 1))
    window = np.asarray(windows["image"][0, 0])
    places = np.lib.stride_tricks.sliding_window_view(scene, window.shape)
    rows, cols = np.nonzero((places[:, :, :4, :4] == window[:4, :4]).all(axis=(2, 3)))
    assert any(np.array_equal(places[y, x], window) for y, x in zip(rows, cols, strict=True))


def test_large_attributes_and_bitfields(tmp_path: Path) -> None:
    """Attributes over 64 KiB are passed over, and bitfields are unsigned integers, as in h5py."""
    h5py = pytest.importorskip("h5py", reason="needs h5py to write files")
    want = np.arange(12, dtype="u1").reshape(3, 4)
    with h5py.File(tmp_path / "a.h5", "w", libver="latest") as f:
        space = h5py.h5s.create_simple((3, 4))
        array = h5py.h5d.create(f.id, b"image", h5py.h5t.STD_B8LE, space)
        array.write(h5py.h5s.ALL, h5py.h5s.ALL, want, mtype=h5py.h5t.STD_B8LE)
        for k in range(12):  # so many are in a heap
            f["image"].attrs[f"a{k}"] = np.full(20_000 if k == 7 else 2, k, "f8")
        f["image"].attrs["_FillValue"] = np.uint8(5)
    batch = load("a.h5", {"image": {}}, dims="y x", folder=tmp_path)
    assert np.array_equal(batch["image"][0].reshape(3, 4), want)
    assert chaski.info(tmp_path / "a.h5")["arrays"][0]["nodata"] == 5


FILTERS: dict[str, dict[str, Any]] = {
    "scaleoffset": {"scaleoffset": 0},
    "scaleoffset and gzip": {"scaleoffset": 0, "compression": "gzip"},
}


@pytest.mark.parametrize("how", FILTERS)
@pytest.mark.parametrize("dtype", ["i1", "u1", "i2", ">i2", "u4", "i8", "f4", ">f4", "f8"])
def test_values_in_fewer_bits(tmp_path, binary, how, dtype) -> None:
    rng = np.random.default_rng(3)
    values = np.round(rng.normal(30, 8, (5, 2, 8, 8)), 2).astype(dtype)
    options = dict(FILTERS[how])
    if "f" in dtype:
        options["scaleoffset"] = 2
    else:
        values[0, 0, 0, :3] = 101
        options["fillvalue"] = 101
    with h5py.File(tmp_path / "x.h5", "w") as f:
        f.create_dataset("x", data=values, chunks=(2, 2, 8, 8), **options)
    with h5py.File(tmp_path / "x.h5") as f:  # not what the cache of the writer has
        want = f["x"][:]
    fields = {"x": chaski.Field(column="x", dtype="native")}
    rows = chaski.Rows(dims="n b y x")
    reads: dict[str, Any] = {"batch_size": 5, "shuffle": False, "rows": rows, "fields": fields}
    with chaski.load(tmp_path / "x.h5", **reads) as loader:
        (batch,) = loader
    np.testing.assert_array_equal(batch["x"], want.astype(want.dtype.newbyteorder("=")))


@pytest.mark.parametrize("numbers", [(1, 1), (5,), (2, 5, 1), (1, 1, 3)])
def test_filters_by_number(tmp_path, binary, numbers) -> None:
    """Deflate twice, nbit of whole numbers, and a checksum around both."""
    values = np.arange(5 * 2 * 8 * 8, dtype="i2").reshape(5, 2, 8, 8)
    with h5py.File(tmp_path / "x.h5", "w") as f:
        made = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        made.set_chunk((2, 2, 8, 8))
        for number in numbers:
            made.set_filter(number, 0, (4,) if number == 1 else ())
        space = h5py.h5s.create_simple(values.shape)
        data = h5py.h5d.create(f.id, b"x", h5py.h5t.py_create(values.dtype), space, made)
        data.write(h5py.h5s.ALL, h5py.h5s.ALL, values)
    fields = {"x": chaski.Field(column="x", dtype="native")}
    rows = chaski.Rows(dims="n b y x")
    reads: dict[str, Any] = {"batch_size": 5, "shuffle": False, "rows": rows, "fields": fields}
    with chaski.load(tmp_path / "x.h5", **reads) as loader:
        (batch,) = loader
    np.testing.assert_array_equal(batch["x"], values)


def test_bzip2(tmp_path, binary) -> None:
    plugin = pytest.importorskip("hdf5plugin")
    values = np.arange(5 * 2 * 8 * 8, dtype="i2").reshape(5, 2, 8, 8)
    with h5py.File(tmp_path / "x.h5", "w") as f:
        f.create_dataset("x", data=values, chunks=(2, 2, 8, 8), **plugin.BZip2())
    rows = chaski.Rows(dims="n b y x")
    with chaski.load(tmp_path / "x.h5", batch_size=5, shuffle=False, rows=rows) as loader:
        (batch,) = loader
    np.testing.assert_array_equal(batch["image"], values)
