"""Files of weights count, in cells, the pixels that numpy counts."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import chaski

rasterio = pytest.importorskip("rasterio", reason="needs rasterio to write rasters")
pytestmark = pytest.mark.usefixtures("binary")
SIDE, CELL = 32, 8


def write(path: Path, x: np.ndarray, **profile: Any) -> None:
    size = {"driver": "GTiff", "count": x.shape[0], "height": SIDE, "width": SIDE}
    with rasterio.open(path, "w", **size, dtype=x.dtype, **profile) as f:
        f.write(x)


def count(binary: Path, folder: Path, field: dict[str, Any], *flags: str) -> np.ndarray:
    """Returns the counts of the cells of all rasters."""
    spec = folder / "spec.json"
    fields = {"image": {"pattern": "{id}.tif", **field}}
    spec.write_text(json.dumps({"source": str(folder), "batch_size": 1, "fields": fields}))
    command = [binary, "stats", "--sampling", "--cell", str(CELL), "-o", folder / "w", *flags, spec]
    subprocess.run(command, check=True, capture_output=True, text=True)
    n = len(list(folder.glob("*.tif"))) * (SIDE // CELL) ** 2
    return np.frombuffer((folder / "w").read_bytes()[-4 * n :], "<u4")


def cells(counts: np.ndarray) -> np.ndarray:
    """Returns how many pixels of (n, y, x) count in each cell."""
    k = SIDE // CELL
    return counts.reshape(-1, k, CELL, k, CELL).sum((2, 4)).ravel()


@pytest.mark.parametrize("interleave", ["pixel", "band"])
@pytest.mark.parametrize("bands", [None, [0], [2, 1], [3]])
@pytest.mark.parametrize("nodata", [0, [[0], [1], [2], [3, 0]]])
def test_picked_bands(tmp_path, binary, bands, nodata, interleave):
    """A pixel is valid where one of the picked bands is, each with its own nodata."""
    x = np.random.default_rng(1).integers(0, 4, (2, 4, SIDE, SIDE)).astype("uint16")
    for i in range(2):
        write(tmp_path / f"{i}.tif", x[i], interleave=interleave, nodata=0)
    picked = list(range(4)) if bands is None else bands
    own = [[0]] * len(picked) if nodata == 0 else [nodata[b] for b in picked]
    field = {"nodata": own} | ({} if bands is None else {"bands": bands})
    if nodata == 0:
        del field["nodata"]
    valid = np.any([~np.isin(x[:, b], gone) for b, gone in zip(picked, own, strict=True)], axis=0)
    np.testing.assert_array_equal(count(binary, tmp_path, field), cells(valid))


def test_bands_by_name(tmp_path, binary):
    x = np.random.default_rng(2).integers(0, 2, (2, 3, SIDE, SIDE)).astype("uint8")
    orders = [["a", "b", "c"], ["c", "a", "b"]]
    for i, names in enumerate(orders):
        write(tmp_path / f"{i}.tif", x[i], nodata=0)
        with rasterio.open(tmp_path / f"{i}.tif", "r+") as f:
            f.descriptions = names
    want = np.stack([x[i, names.index("c")] > 0 for i, names in enumerate(orders)])
    np.testing.assert_array_equal(count(binary, tmp_path, {"bands": ["c"]}), cells(want))


@pytest.mark.parametrize(
    "dtype", ["uint8", "int16", "int32", "uint32", "int64", "uint64", "float32", "float64"]
)
def test_classes_are_compared_as_stored(tmp_path, binary, dtype):
    code = {"uint8": 200, "int16": -30000, "float32": 2**24}.get(dtype, 2**24 + 1)
    codes = np.array([0, code, code - 1 if dtype != "float32" else 5, 7], dtype)
    x = codes[np.random.default_rng(3).integers(0, 4, (1, SIDE, SIDE))]
    write(tmp_path / "a.tif", x)
    got = count(binary, tmp_path, {"dtype": "native"}, "--classes", str(code))
    np.testing.assert_array_equal(got, cells(x == code))


def test_a_class_that_no_pixel_has(tmp_path, binary):
    write(tmp_path / "a.tif", np.ones((1, SIDE, SIDE), "uint8"))
    for classes, said in (
        ("1,7", 'no pixel of field "image" is one of [7]'),
        ("1,700", "has no 700"),
    ):
        with pytest.raises(subprocess.CalledProcessError) as e:
            count(binary, tmp_path, {}, "--classes", classes)
        assert said in e.value.stderr


def test_max_nodata_of_picked_bands(tmp_path, binary):
    """Windows without a valid pixel of the band that is picked are not drawn."""
    x = np.ones((1, 2, SIDE, SIDE), "uint8")
    x[0, 1, :, : SIDE // 2] = 0
    write(tmp_path / "0.tif", x[0], nodata=0)
    count(binary, tmp_path, {"bands": [1]})
    fields = {"image": chaski.Field(pattern="{id}.tif", bands=[1], dtype="native", validity="ok")}
    window = chaski.Grid(CELL, max_nodata=0, coverage=tmp_path / "w")
    with chaski.load(tmp_path, batch_size=4, fields=fields, window=window) as loader:
        batches = list(loader)
    assert all(b["ok"].all() for b in batches)
    assert sum(len(b["ok"]) for b in batches) == (SIDE // CELL) ** 2 // 2
