"""HDF5 and NetCDF-4 files as datasets, compared with what h5py reads of testdata/hdf5."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from patience import logged

import chaski

DATA = Path(__file__).parents[2] / "testdata" / "hdf5"
EXPECTED = json.loads((DATA / "expected.json").read_text())


def load(
    name: str, fields: dict[str, Any], size: int = 16, dims: str | None = None, where: Any = ()
) -> dict[str, Any]:
    """The one batch of a file, in the order of its rows."""
    with chaski.load(
        str(DATA / name),
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


def test_a_group_that_lacks_an_array(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """It is an error that names it, or left out and counted."""
    h5py = pytest.importorskip("h5py", reason="needs h5py to take an array out")
    shutil.copy(DATA / "grouped.h5", tmp_path / "a.h5")
    with h5py.File(tmp_path / "a.h5", "r+") as f:
        del f["fire_1/mask"]
    fields = {"post": "{id}/post", "mask": "{id}/mask"}
    options: dict[str, Any] = {"batch_size": 8, "shuffle": False, "fields": fields}
    with pytest.raises(chaski.NotFoundError, match="no array fire_1/mask; 1 arrays are missing"):
        chaski.load(tmp_path / "a.h5", rows=chaski.Rows(dims="y x b"), **options)
    rows = chaski.Rows(dims="y x b", missing="drop")
    with chaski.load(tmp_path / "a.h5", rows=rows, **options) as loader:
        assert list(loader.ids) == ["fire_0", "fire_2", "fire_3", "fire_4"]
        assert "left=1" in logged(caplog, "left=1")
