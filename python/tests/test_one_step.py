"""An axis of time of one step stays, whichever format has it: against numpy, zarr and h5py."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import nonempty
from patience import logged

import chaski
from chaski import Field, Pixels, RandomWindow, Rows, Time, WholeChip

pytestmark = pytest.mark.usefixtures("one_engine")

ARRAY = np.random.default_rng(7).integers(1, 99, (1, 3, 20, 24)).astype("uint8")


def write_zarr(path: Path, data: np.ndarray, dims: list[str]) -> None:
    """Writes an array of Zarr 2 in one chunk, as its specification has it."""
    path.mkdir(parents=True)
    meta = {"zarr_format": 2, "shape": data.shape, "chunks": data.shape, "dtype": "|u1"}
    meta |= {"order": "C", "compressor": None, "filters": None, "fill_value": None}
    (path / ".zarray").write_text(json.dumps(meta))
    (path / ".zattrs").write_text(json.dumps({"_ARRAY_DIMENSIONS": dims}))
    (path / ".".join("0" * data.ndim)).write_bytes(data.tobytes())


def write(folder: Path, kind: str) -> tuple[Any, dict[str, Any]]:
    """Writes the array in a format, and returns a source and the settings of its field."""
    folder.mkdir()
    if kind == "npy":
        np.save(folder / "a.npy", ARRAY)
        return folder, {}
    if kind == "pattern":
        np.save(folder / "a.npy", ARRAY)
        return folder, {"pattern": "{id}.npy"}
    if kind == "npz":
        np.savez(folder / "a.npz", x=ARRAY)
        return folder, {"pattern": "{id}.npz::x"}
    if kind == "dims":
        np.save(folder / "a.npy", np.ascontiguousarray(ARRAY.transpose(0, 2, 3, 1)))
        return folder, {"dims": "t y x b"}
    if kind == "catalog":
        np.save(folder / "a.npy", ARRAY)
        catalog, name = folder / "a.parquet", folder / "a.npy"
        subprocess.run([os.environ["CHASKI_BIN"], "index", "-o", catalog, name], check=True)
        return folder / "a.parquet", {}
    if kind == "table":
        np.save(folder / "a.npy", ARRAY)
        (folder / "a.csv").write_text("path\na.npy\n")
        return folder / "a.csv", {"column": "path", "kind": "raster"}
    if kind == "zarr":
        write_zarr(folder / "a.zarr", ARRAY[None], ["sample", "time", "band", "y", "x"])
        return folder / "a.zarr", {}
    if kind == "zarr group":
        for band in range(3):
            write_zarr(folder / "a.zarr" / f"b{band}", ARRAY[:, band], ["time", "y", "x"])
        (folder / "a.zarr" / ".zgroup").write_text('{"zarr_format": 2}')
        return folder / "a.zarr", {}
    if kind == "hdf5":
        h5py = pytest.importorskip("h5py")
        with h5py.File(folder / "a.h5", "w") as f:
            f["x"] = ARRAY
        return folder, {"pattern": "{id}.h5::x", "dims": "t b y x"}
    if kind == "stack":
        for band in range(3):
            np.save(folder / f"a_{band}.npy", ARRAY[:, band : band + 1])
        return folder, {"patterns": [f"{{id}}_{band}.npy" for band in range(3)]}
    tifffile = pytest.importorskip("tifffile")
    pages = {"photometric": "minisblack", "planarconfig": "separate"}
    tifffile.imwrite(folder / "a.tif", ARRAY[0], **pages)
    return folder, {"pages": "steps"} if kind == "pages" else {"times": [0]}


KINDS = ["npy", "pattern", "npz", "dims", "catalog", "table", "zarr", "zarr group"]
KINDS += ["hdf5", "stack", "pages"]


@pytest.mark.parametrize("kind", [*KINDS, "times"])
def test_axis_of_one_step(tmp_path, kind):
    source, field = write(tmp_path / kind, kind)

    def image(layout: str | None = None, **more: Any) -> np.ndarray:
        fields = {"x": Field(layout=layout, dtype="native", **field)}
        with chaski.load(source, fields=fields, batch_size=1, **more) as loader:
            return np.asarray(next(iter(loader))["x"])

    assert np.array_equal(image(), ARRAY[None])
    assert np.array_equal(image("n b y x"), ARRAY)  # as somebody said it
    assert np.array_equal(image("n (t b) y x"), ARRAY)
    views = image(window=[WholeChip(), WholeChip()])
    assert np.array_equal(views, np.stack([ARRAY, ARRAY])[None])
    if "times" not in field and kind != "stack":
        fields = {"x": Field(times=[0], dtype="native", **field)}
        with chaski.load(source, fields=fields, batch_size=1) as loader:
            assert np.array_equal(next(iter(loader))["x"], ARRAY[None])


@pytest.mark.parametrize("kind", ["plain", "npy"])
def test_series_of_one_row(tmp_path, kind):
    """Sequences of one row have an axis t, also of files without one."""
    for i in range(2):
        np.save(tmp_path / f"a_{i}.npy", ARRAY[0] if kind == "plain" else ARRAY)
    fields = {"x": Field(pattern="{place}_{step}.npy", dtype="native")}
    series = Rows(time=Time(key="place", order="step", length=1))
    with chaski.load(tmp_path, fields=fields, batch_size=2, rows=series) as loader:
        assert np.array_equal(next(iter(loader))["x"], np.stack([ARRAY, ARRAY]))


def test_read_of_one_step(tmp_path):
    np.save(tmp_path / "a.npy", ARRAY)
    assert np.array_equal(chaski.read(tmp_path / "a.npy"), ARRAY)
    assert np.array_equal(chaski.read(tmp_path / "a.npy", layout="b y x"), ARRAY[0])


@pytest.mark.parametrize("layout", ["n b y x", "n y x b", "n (b y x)"])
def test_layouts_that_lack_an_axis(tmp_path, layout):
    """Several steps or views are never put into a layout that does not name their axis."""
    np.save(tmp_path / "a.npy", np.repeat(ARRAY, 2, 0))
    fields = {"x": Field(layout=layout)}
    with pytest.raises(chaski.SpecError, match=r"axis t of length 2 is left out: times=\[0\]"):
        chaski.load(tmp_path, fields=fields, batch_size=1)
    np.save(tmp_path / "a.npy", ARRAY[0])
    views: Any = [RandomWindow(8), RandomWindow(8)]
    for settings in ({"fields": fields}, {"pixels": Pixels(layout=layout)}):
        with pytest.raises(chaski.SpecError, match='needs the axis v, as in "n v b y x"'):
            chaski.load(tmp_path, batch_size=1, window=views, **settings)


@pytest.mark.parametrize("kind", ["one", "catalog", "zarr", "hdf5"])
def test_steps_that_nothing_has(tmp_path, kind):
    """Where steps are known without opening all files, one that nothing has is an error."""
    series = np.repeat(ARRAY, 3, 0)
    field: dict[str, Any] = {}
    source: Path = tmp_path
    if kind == "zarr":
        write_zarr(
            tmp_path / "a.zarr", np.stack([series] * 2), ["sample", "time", "band", "y", "x"]
        )
        source = tmp_path / "a.zarr"
    elif kind == "hdf5":
        h5py = pytest.importorskip("h5py")
        with h5py.File(tmp_path / "a.h5", "w") as f:
            f["x"] = np.stack([series] * 2)
        source, field = tmp_path / "a.h5", {"column": "x", "dims": "n t b y x"}
    else:
        for i in range(1 if kind == "one" else 3):
            np.save(tmp_path / f"{i}.npy", series[: 3 - i])
        if kind == "catalog":
            source = tmp_path / "a.parquet"
            files = sorted(tmp_path.glob("*.npy"))
            subprocess.run([os.environ["CHASKI_BIN"], "index", "-o", source, *files], check=True)
    fields = {"x": Field(times=[0, 7], dtype="native", **field)}
    message = "times has 7, a step that no raster of the dataset has: there is steps? 0 to 2"
    with pytest.raises(chaski.NotFoundError, match=message):
        chaski.load(source, fields=fields, batch_size=1)
    with pytest.raises(chaski.NotFoundError, match=message):
        chaski.stats(source, fields=fields)
    fields = {"x": Field(times=[2, 0], dtype="native", **field)}
    with chaski.load(source, fields=fields, batch_size=1, shuffle=False) as loader:
        for k, batch in enumerate(nonempty(loader)):
            want = series[[2, 0]].copy()
            if kind == "catalog" and k > 0:
                want[0] = 0  # the padding of files with fewer steps
            assert np.array_equal(batch["x"], want[None])


def test_steps_that_files_may_have(tmp_path, caplog):
    """Not all files of a directory are opened: steps that they lack are padding, and logged."""
    for i in range(2):
        np.save(tmp_path / f"{i}.npy", ARRAY)
    fields = {"x": Field(times=[7], dtype="native")}
    with chaski.load(tmp_path, fields=fields, batch_size=2) as loader:
        batch = next(iter(loader))
    assert not np.asarray(batch["x"]).any() and not np.asarray(batch["steps"]).any()
    assert "x (1 of the first file)" in logged(caplog, "times picks steps that the first file")


def test_a_catalog_counts_the_files_that_lack_steps(tmp_path, caplog):
    for i, steps in enumerate((1, 4, 2, 3)):
        np.save(tmp_path / f"{i}.npy", np.ones((steps, 2, 8, 8), "uint8"))
    subprocess.run(
        [os.environ["CHASKI_BIN"], "index", "-o", "a.parquet", "*.npy"], cwd=tmp_path, check=True
    )
    fields = {"x": Field(times=[0, 2], dtype="native")}
    with chaski.load(tmp_path / "a.parquet", fields=fields, batch_size=4, shuffle=False) as loader:
        (batch,) = loader
    assert np.asarray(batch["steps"]).tolist() == [[1, 0], [1, 1], [1, 0], [1, 1]]
    said = logged(caplog, "times picks steps that the first file")
    assert "x (1 of the first file; 2 of 4 files lack some)" in said
