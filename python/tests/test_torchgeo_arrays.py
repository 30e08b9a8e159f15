"""Datasets of xarray in TorchGeo give the same samples whether xarray or the engine reads."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torchgeo.datasets", reason="TorchGeo is not installed: make frameworks")
pytest.importorskip("rioxarray", reason="rioxarray is not installed: make frameworks")

import pandas as pd
import torch
import xarray
from torch.utils.data import DataLoader
from torchgeo.datasets import XarrayDataset, stack_samples
from torchgeo.samplers import RandomPatchSampler

from chaski.torchgeo import accelerate

pytestmark = [
    pytest.mark.usefixtures("binary"),
    # What rioxarray itself does.
    pytest.mark.filterwarnings("ignore:Use `@` matmul:PendingDeprecationWarning"),
]

WEST, NORTH, SIDE = 500_000.0, 5_000_000.0, 96
NAMES = ["a", "b"]


class Arrays(XarrayDataset):
    filename_glob = "*.nc"


def write(
    path: Path,
    column: int,
    row: int,
    kind: str,
    *,
    up: bool = False,
    res: float = 10.0,
    days: int = 3,
):
    """Writes two variables of some days, a part of which is missing."""
    r = np.random.default_rng(column)
    x = WEST + (column + np.arange(SIDE) + 0.5) * res
    y = NORTH - (row + np.arange(SIDE) + 0.5) * res
    values = r.integers(1, 3000, (len(NAMES), days, SIDE, SIDE)).astype("float64")
    how = {"zlib": True, "chunksizes": (1, 32, 32)}
    how |= {"grid_mapping": "spatial_ref"} if kind != "nowhere" else {}
    if kind != "whole":
        values[:, :, 20:60, 30:80] = np.nan
    if kind == "packed":
        how |= {"dtype": "int16", "_FillValue": -1, "scale_factor": np.float32(0.5)}
    elif kind == "offset":  # stored as floats of the dtype that xarray decodes
        how |= {"dtype": "float32", "add_offset": np.float32(0.5)}
        values = values.astype("float32")
    elif kind == "whole":
        values = values.astype("int16")
    else:
        values = values.astype("float32")
    variables = {n: (("time", "y", "x"), v) for n, v in zip(NAMES, values, strict=True)}
    times = pd.date_range("2024-01-01", periods=days)
    ds = xarray.Dataset(variables, coords={"time": times, "y": y, "x": x})
    ds = ds.rio.write_crs(32632) if kind != "nowhere" else ds
    ds = ds.isel(y=slice(None, None, -1)) if up else ds
    ds.to_netcdf(path, encoding={n: how for n in NAMES})


def windows(dataset: XarrayDataset, n: int, seed: int = 1) -> list[tuple[slice, slice, slice]]:
    """Returns slices around the files, at pixels as samplers have them."""
    r = np.random.default_rng(seed)
    out = []
    for _ in range(n):
        x, y = WEST + 10 * r.integers(-20, 140), NORTH - 10 * r.integers(-20, 140)
        out.append((slice(x, x + 400), slice(y - 560, y), dataset.bounds[2]))
    return out


def sample(dataset: XarrayDataset, window: tuple[slice, ...]):
    try:
        return dataset[window]
    except Exception as e:  # TorchGeo has its own for windows past the files
        return type(e)


def same(theirs, ours) -> None:
    if isinstance(theirs, type):
        assert ours is theirs
        return
    assert ours.keys() == theirs.keys()
    for name, v in theirs.items():
        assert ours[name].dtype == v.dtype, name
        torch.testing.assert_close(ours[name], v, rtol=0, atol=0, equal_nan=True)


@pytest.fixture(params=["whole", "floats", "packed", "offset", "nowhere", "up"])
def folder(request, tmp_path: Path) -> Path:
    up = request.param == "up"
    for i, at in enumerate([(0, 0), (64, 16)]):  # the second one overlaps the first one
        write(tmp_path / f"{i}.nc", *at, "whole" if up else request.param, up=up)
    return tmp_path


@pytest.mark.filterwarnings("ignore:Unable to decode coordinates:UserWarning")
def test_samples_are_equal(folder: Path) -> None:
    given = {"crs": 32632, "data_vars": NAMES}
    theirs, ours = Arrays(folder, **given), accelerate(Arrays(folder, **given))
    with warnings.catch_warnings():
        warnings.filterwarnings("error", "TorchGeo reads")  # the engine reads all of them
        asked = windows(theirs, 24)
        made = [sample(theirs, w) for w in asked]
        assert sum(not isinstance(m, type) for m in made) > 12
        for window, wanted in zip(asked, made, strict=True):
            same(wanted, sample(ours, window))
        good = [w for w, m in zip(asked, made, strict=True) if not isinstance(m, type)]
        batched = ours.__getitems__(good)
    for wanted, got in zip([m for m in made if not isinstance(m, type)], batched, strict=True):
        same(wanted, got)


def test_some_days_and_a_nodata_of_its_own(tmp_path: Path) -> None:
    class Own(Arrays):
        nodata = -5.0

    write(tmp_path / "0.nc", 0, 0, "floats")
    theirs = Own(tmp_path, data_vars=NAMES)
    ours = accelerate(Own(tmp_path, data_vars=NAMES))
    day = slice(pd.Timestamp("2024-01-02"), pd.Timestamp("2024-01-03"), 1)
    for x, y, _ in windows(theirs, 8):
        same(sample(theirs, (x, y, day)), sample(ours, (x, y, day)))


def test_files_of_other_days(tmp_path: Path) -> None:
    """Of which xarray makes what it does: an error, or the days of the first file."""
    for i, days in enumerate((3, 1, 2)):
        write(tmp_path / f"{i}.nc", 40 * i, 0, "whole", days=days)
    given = {"data_vars": NAMES, "res": 10.0}
    theirs, ours = Arrays(tmp_path, **given), accelerate(Arrays(tmp_path, **given))
    for window in windows(theirs, 12):
        same(sample(theirs, window), sample(ours, window))


def test_a_loop(folder: Path) -> None:
    dataset = accelerate(Arrays(folder, crs=32632, data_vars=NAMES, res=10.0))
    sampler = RandomPatchSampler(dataset, size=32, length=8)
    loader = DataLoader(dataset, batch_size=4, sampler=sampler, collate_fn=stack_samples)
    assert [b["image"].shape for b in loader] == [(4, 2, 3, 32, 32)] * 2


@pytest.mark.parametrize("other", ["a resolution", "rows", "a map", "between"])
def test_what_xarray_reads(tmp_path: Path, other: str) -> None:
    """It says so once, and samples stay equal."""
    write(tmp_path / "0.nc", 0, 0, "whole")
    if other == "a resolution":
        write(tmp_path / "1.nc", 10, 10, "whole", res=20.0)
    elif other == "rows":
        with xarray.open_dataset(tmp_path / "0.nc") as ds:
            y = ds.y.values.copy()
            y[40:] -= 15
            ds = ds.assign_coords(y=y, x=ds.x + 300).load()
        ds.to_netcdf(tmp_path / "1.nc")
    given = {"data_vars": NAMES, "crs": 32633 if other == "a map" else 32632, "res": 10.0}
    theirs, ours = Arrays(tmp_path, **given), accelerate(Arrays(tmp_path, **given))
    x, y = (WEST + 3, NORTH - 4) if other == "between" else (WEST, NORTH)
    if other == "a map":
        x, y = theirs.bounds[0].start, theirs.bounds[1].stop
    asked = slice(x, x + 800, 10), slice(y - 800, y, 10), theirs.bounds[2]
    with pytest.warns(UserWarning, match="TorchGeo reads files of Arrays itself") as said:
        same(sample(theirs, asked), sample(ours, asked))
        same(sample(theirs, asked), sample(ours, asked))
    assert sum("TorchGeo reads" in str(w.message) for w in said) == 1
