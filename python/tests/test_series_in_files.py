"""Series in one file: .npy of four axes against numpy, pages of TIFFs against tifffile."""

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
from chaski import Field, RandomWindow

pytestmark = pytest.mark.usefixtures("one_engine")


def command(*args: Any) -> dict[str, Any]:
    line = [os.environ["CHASKI_BIN"], *map(str, args)]
    return json.loads(subprocess.run(line, check=True, capture_output=True, text=True).stdout)


@pytest.mark.parametrize("dtype", ["uint8", ">i2", "float32"])
def test_npy_of_four_axes(tmp_path, dtype):
    """Windows, steps and bands of arrays (t, b, y, x) are those of numpy."""
    rng = np.random.default_rng(3)
    arrays = [rng.integers(0, 99, (3, 4, 20, 31)).astype(dtype) for _ in range(4)]
    for i, x in enumerate(arrays):
        np.save(tmp_path / f"{i}.npy", x)
    native: dict[str, Any] = {"dtype": "native"}
    with chaski.load(tmp_path, batch_size=4, shuffle=False, fields={"x": Field(**native)}) as it:
        assert np.array_equal(np.asarray(next(iter(it))["x"]), np.stack(arrays))
    picked = {"x": Field(times=[2, 0], bands=[3, 1], **native), "i": Field(kind="text")}
    window = RandomWindow((8, 9), per_asset=3)
    found = 0
    with chaski.load(tmp_path, batch_size=4, fields=picked, window=window) as it:
        for b in it:
            for x, name in zip(np.asarray(b["x"]), b["i"], strict=True):
                part = arrays[int(Path(name).stem)][[2, 0]][:, [3, 1]]
                views = np.lib.stride_tricks.sliding_window_view(part, (8, 9), (2, 3))
                assert (views.transpose(2, 3, 0, 1, 4, 5) == x).all((2, 3, 4, 5)).any()
                found += 1
    assert found == 12
    assert np.array_equal(chaski.read(tmp_path / "1.npy"), arrays[1])
    info = command("info", "--json", tmp_path / "1.npy")["raster"]
    assert (info["times"], info["shape"]) == (3, [4, 20, 31])
    assert command("verify", tmp_path / "1.npy")["bytes"] == arrays[1].nbytes


@pytest.mark.parametrize(
    ("shape", "dims"),
    [
        ((13, 5, 5), "b y x"),
        ((202, 128, 128), "b y x"),
        ((12, 10, 10), "b y x"),
        ((40, 31, 3), "b y x"),
        ((31, 40, 4), "b y x"),
        ((64, 64, 2), "b y x"),
        ((64, 64, 5), "b y x"),
        ((64, 48, 3), "y x b"),
        ((32, 32, 4), "y x b"),
        ((2, 20, 6, 7), "t b y x"),
        ((40, 30), "y x"),
    ],
)
def test_npy_axes(tmp_path, caplog, shape, dims):
    """Axes are (b, y, x) for all sizes but those of pictures, which the log names once."""
    arrays = [np.random.default_rng(i).random(shape).astype("float32") for i in range(3)]
    for i, x in enumerate(arrays):
        np.save(tmp_path / f"{i}.npy", x)
    want = np.stack([np.moveaxis(x, 2, 0) if dims == "y x b" else x for x in arrays])
    if dims == "y x":
        want = want[:, None]
    with chaski.load(tmp_path, batch_size=3, shuffle=False) as it:
        assert np.array_equal(np.asarray(next(iter(it))["image"]), want)
    text = logged(caplog, *["taken for pictures"] * (dims == "y x b"))
    assert text.count("taken for pictures") == (dims == "y x b")


@pytest.mark.parametrize(
    "dims",
    ["y x", "b y x", "y x b", "t y x", "y x t", "t b y x", "b t y x", "t y x b", "b y x t"]
    + ["y x t b", "y x b t", "x y b", "y b x", "t x b y", "x t y b"],
)
def test_dims_of_npy(tmp_path, caplog, dims):
    """A field says what the axes of an array are: windows are those of numpy.transpose."""
    names, sizes = dims.split(), {"t": 3, "b": 2, "y": 40, "x": 33}
    x = np.random.default_rng(5).integers(0, 255, [sizes[n] for n in names]).astype(">u2")
    np.save(tmp_path / "x.npy", x)
    order = [n for n in "tbyx" if n in names]
    want = x.transpose([names.index(n) for n in order])
    if "b" not in names:
        want = np.expand_dims(want, -3)
    field = {"x": Field(dims=dims, dtype="native")}
    window = RandomWindow((8, 9), per_asset=4)
    pixels = chaski.Pixels(windows=True)
    with chaski.load(tmp_path, batch_size=4, fields=field, window=window, pixels=pixels) as it:
        for b in nonempty(it):
            for got, (y, c, h, w) in nonempty(
                zip(np.asarray(b["x"]), np.asarray(b["window"]), strict=True)
            ):
                assert np.array_equal(got, want[..., y : y + h, c : c + w])
    assert "taken for pictures" not in caplog.text


def test_dims_that_do_not_fit(tmp_path):
    np.save(tmp_path / "x.npy", np.zeros((4, 5), "uint8"))
    with pytest.raises(chaski.UnsupportedError, match=r'dims is "b y x", and its shape is \[4 5\]'):
        chaski.load(tmp_path, batch_size=1, fields={"x": Field(dims="b y x")})
    for dims in ("q y x", "y y x"):
        with pytest.raises(chaski.SpecError, match="dims"):
            chaski.load(tmp_path, batch_size=1, fields={"x": Field(dims=dims)})


def test_npy_of_one_step(tmp_path):
    x = np.arange(2 * 5 * 6, dtype="uint8").reshape(1, 2, 5, 6)
    np.save(tmp_path / "x.npy", x)
    assert np.array_equal(chaski.read(tmp_path / "x.npy"), x)
    np.save(tmp_path / "x.npy", np.asfortranarray(x))
    with pytest.raises(chaski.UnsupportedError, match="save numpy.ascontiguousarray"):
        chaski.read(tmp_path / "x.npy")


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ((5, 40, 50, 3), 'give the field dims="t y x b"'),
        ((2, 3, 0, 4), r"its shape is \[2 3 0 4\]: it has no samples"),
        ((0, 3, 4, 4), r"its shape is \[0 3 4 4\]"),
        ((0, 3, 4), r"its shape is \[0 3 4\]"),
        ((2, 1, 2, 3, 4), "or four with steps of time"),
        ((1 << 11, 1 << 10, 1, 1 << 10), "at most 1048576 steps"),
    ],
)
def test_npy_that_is_no_series(tmp_path, shape, message):
    path = tmp_path / "x.npy"
    np.lib.format.open_memmap(path, "w+", dtype="uint8", shape=shape)
    with pytest.raises(chaski.Error, match=message):
        chaski.read(path)


def test_pages_are_counted(tmp_path):
    """They are those that tifffile takes for neither masks nor overviews."""
    tifffile = pytest.importorskip("tifffile")
    rasterio = pytest.importorskip("rasterio")
    x = np.random.default_rng(4).integers(0, 99, (5, 64, 64)).astype("uint8")
    tifffile.imwrite(tmp_path / "plain.tif", x, photometric="minisblack")
    tifffile.imwrite(tmp_path / "imagej.tif", x, imagej=True)
    tifffile.imwrite(tmp_path / "one.tif", x[0])
    profile = {"driver": "GTiff", "width": 64, "height": 64, "count": 1, "dtype": "uint8"}
    for k in range(3):
        with (
            rasterio.Env(GDAL_TIFF_INTERNAL_MASK=True),
            rasterio.open(tmp_path / "appended.tif", "w", **profile, append_subdataset=k > 0) as f,
        ):
            f.write(x[k : k + 1])
            if k == 0:
                f.write_mask(x[0] > 9)
    with rasterio.open(tmp_path / "appended.tif", "r+") as f:
        f.build_overviews([2])
    for name, want in (("plain", 5), ("imagej", 5), ("appended", 3)):
        path = tmp_path / f"{name}.tif"
        with tifffile.TiffFile(path) as t:
            assert sum(not p.is_reduced and not p.is_mask for p in t.pages) == want
        assert command("info", "--json", path)["tiff"]["pages"] == want
        assert f"only the first of {want} pages is read" in command("verify", path)["notes"][0]
        assert np.array_equal(chaski.read(path), x[:1])
    assert "pages" not in command("info", "--json", tmp_path / "one.tif")["tiff"]
    assert "notes" not in command("verify", tmp_path / "one.tif")


@pytest.mark.parametrize("kind", ["npy", "npz", "tif"])
@pytest.mark.parametrize("dtype", ["uint8", "int16", "float32"])
def test_series_of_different_lengths(tmp_path, caplog, kind, dtype):
    """Steps that a file lacks are padding; "steps" and the mask of a field say it."""
    rng = np.random.default_rng(61)
    lengths = [3, 1, 7, 5, 2]
    arrays = [rng.integers(1, 99, (n, 2, 20, 31)).astype(dtype) for n in lengths]
    ends = {"npy": "{id}.npy", "npz": "{id}.npz::x", "tif": "{id}.tif"}[kind]
    pages = {"pages": "steps"} if kind == "tif" else {}
    for i, x in enumerate(arrays):
        if kind == "npz":
            np.savez_compressed(tmp_path / f"{i}.npz", x=x)
        elif kind == "npy":
            np.save(tmp_path / f"{i}.npy", x)
        else:
            tifffile = pytest.importorskip("tifffile")
            with tifffile.TiffWriter(tmp_path / f"{i}.tif") as f:
                for page in x:
                    f.write(page, photometric="minisblack", planarconfig="separate")
    fields = {"x": Field(pattern=ends, times=range(7), fill=77, validity="ok", **pages)}
    fields |= {
        "few": Field(pattern=ends, times=[4, 0], dtype="native", **pages),
        "id": Field(column="id"),
    }
    windows = {"window": RandomWindow((8, 9), per_asset=3), "pixels": chaski.Pixels(windows=True)}
    for more in ({}, windows, {"window": chaski.ResizedWindow((10, 31), whole=True)}):
        rows = 0
        with chaski.load(tmp_path, batch_size=2, fields=fields, **more) as loader:
            for b in nonempty(loader):
                for k, i in enumerate(np.asarray(b["id"])):
                    n, whole = lengths[i], arrays[i]
                    there = np.arange(7) < n
                    assert np.array_equal(b["steps"][k], there | (np.arange(7) == 1))  # of both
                    got, few = np.asarray(b["x"])[k], np.asarray(b["few"])[k]
                    assert np.array_equal(np.asarray(b["ok"])[k].all((1, 2, 3)), there)
                    assert (got[n:] == 77).all() and few[1].all()
                    assert (few[0] == 0).all() == (n <= 4) and few[0].any() == (n > 4)
                    rows += 1
                    if "window" in b:
                        y, x, h, w = b["window"][k]
                        whole = whole[:, :, y : y + h, x : x + w]
                    elif more:
                        continue
                    assert np.array_equal(got[:n], whole) and np.array_equal(few[1], whole[0])
        assert rows == (15 if "pixels" in more else 5)
    logged(caplog, "times picks steps that the first file does not have")
    with pytest.raises(chaski.UnsupportedError, match=r"Field\(times=range\(\d\)\) takes so many"):
        list(chaski.load(tmp_path, batch_size=5, fields={"x": Field(pattern=ends, **pages)}))
    mean = chaski.stats(tmp_path, fields={"x": Field(pattern=ends, times=range(7), **pages)}).mean(
        "x"
    )
    whole = np.concatenate([x.astype("float64") for x in arrays])
    assert mean == pytest.approx(whole.mean((0, 2, 3)), rel=1e-9)


@pytest.mark.parametrize("bands", [None, [3, 0, 2], [1]])
@pytest.mark.parametrize("way", ["whole", "windows", "resized"])
def test_stacks_of_series(tmp_path, bands, way):
    """Rasters of one field with steps each are its bands: numpy joins them along b."""
    rng = np.random.default_rng(17)
    lengths, few = [4, 2, 3], 3
    a = [rng.integers(1, 99, (n, 1, 20, 30)).astype("uint8") for n in lengths]
    b = [rng.integers(1, 9999, (n, 3, 10, 15)).astype("int16") for n in lengths]
    for i in range(len(lengths)):
        np.save(tmp_path / f"{i}_a.npy", a[i])
        np.savez(tmp_path / f"{i}_b.npz", x=b[i])
    image = Field(
        patterns=["{id}_a.npy", "{id}_b.npz::x"], dims="t b y x", bands=bands, fill=-5,
        times=[few, 0, 1], nodata=7, validity="ok", dtype="float32", resample="nearest",
    )  # fmt: skip
    fields = {"image": image, "id": Field(column="id")}
    more: dict[str, Any] = {
        "whole": {},
        "windows": {
            "window": RandomWindow((8, 10), per_asset=4),
            "pixels": chaski.Pixels(windows=True),
        },
        "resized": {"window": chaski.ResizedWindow((10, 15), whole=True)},
    }[way]
    rows = 0
    with chaski.load(tmp_path, batch_size=2, fields=fields, seed=3, **more) as loader:
        for batch in nonempty(loader):
            for k, i in enumerate(np.asarray(batch["id"])):
                wide = b[i].repeat(2, 2).repeat(2, 3) if way != "resized" else b[i]
                fine = a[i] if way != "resized" else a[i][:, :, 1::2, 1::2]
                series = np.concatenate([fine, wide], 1).astype("float32")
                series[series == 7] = -5
                whole = np.full((3, *series.shape[1:]), -5, "float32")
                for j, step in enumerate((few, 0, 1)):
                    if step < lengths[i]:
                        whole[j] = series[step]
                if bands:
                    whole = whole[:, bands]
                if way == "windows":
                    y, x, h, w = batch["window"][k]
                    whole = whole[:, :, y : y + h, x : x + w]
                np.testing.assert_array_equal(batch["image"][k], whole)
                np.testing.assert_array_equal(np.asarray(batch["ok"][k]) == 1, whole != -5)
                there = np.array([few < lengths[i], True, True])
                assert np.array_equal(batch["steps"][k] == 1, there)
                rows += 1
    assert rows == (12 if way == "windows" else 3)


def test_stacks_of_series_of_unequal_steps(tmp_path):
    for name, steps in (("a", 3), ("b", 2)):
        np.save(tmp_path / f"0_{name}.npy", np.zeros((steps, 1, 4, 4), "uint8"))
    fields = {"x": Field(patterns=["{id}_a.npy", "{id}_b.npy"], times=[0])}
    with pytest.raises(chaski.UnsupportedError, match="2 steps of time, and the first raster"):
        list(chaski.load(tmp_path, batch_size=1, fields=fields))
