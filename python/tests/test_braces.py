"""Columns in braces make a text: of names of patterns over HDF5 and Zarr, and of containers."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import chaski
from chaski import Field, Rows, Split, Time

h5py = pytest.importorskip("h5py", reason="needs h5py to write")
ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools/data_sets"))
import zarr_zip  # noqa: E402

pytestmark = pytest.mark.usefixtures("one_engine")

PLACES = [(tile, x, date) for tile in "ab" for x in range(2) for date in range(3)]
FORMS = {
    "hdf5": "{tile}/{x}/{date}.h5::image",
    "groups": "{tile}_{x}/{date}/image",
    "zarr": "{tile}/{x}/{date}.zarr.zip::image",
}


@pytest.fixture(params=FORMS)
def source(request, tmp_path) -> tuple[Path, dict]:
    """Sample k of PLACES is full of k."""
    for k, (tile, x, date) in enumerate(PLACES):
        image = np.full((2, 8, 8), k, "<u2")
        folder = tmp_path / tile / str(x)
        folder.mkdir(parents=True, exist_ok=True)
        if request.param == "zarr":
            arrays = {"image": (image, [2, 8, 8], ["band", "y", "x"])}
            zarr_zip.write(folder / f"{date}.zarr.zip", arrays)
        elif request.param == "hdf5":
            with h5py.File(folder / f"{date}.h5", "w") as f:
                f["image"] = image
        else:
            with h5py.File(tmp_path / "all.h5", "a") as f:
                f[f"{tile}_{x}/{date}/image"] = image
    where = tmp_path / "all.h5" if request.param == "groups" else tmp_path
    dims = {} if request.param == "zarr" else {"dims": "b y x"}
    return where, {"pattern": FORMS[request.param], "dims": dims}


def numbers(where, made, **rows) -> list:
    """The numbers that the images of samples or series are full of."""
    fields = {"image": Field(pattern=made["pattern"], dtype="native")}
    with chaski.load(
        where, fields=fields, rows=Rows(**made["dims"], **rows), batch_size=64, shuffle=False
    ) as loader:
        (batch,) = loader
        return batch["image"][batch["valid"], ..., 0, 0, 0].tolist()


def test_ids(source, binary) -> None:
    where, made = source
    want = [PLACES.index(p) for p in (("a", 1, 2), ("b", 0, 0))]
    assert numbers(where, made, ids=["a-1-2", "b-0-0"], id_column="{tile}-{x}-{date}") == want


def test_series(source, binary) -> None:
    where, made = source
    time = Time(key="{tile}:{x}", order="date", length=3)
    assert numbers(where, made, time=time) == np.arange(12).reshape(4, 3).tolist()


def test_splits(source, binary) -> None:
    where, made = source
    split = Split.by_column("{tile}{x}", {"train": 0.5, "val": 0.5}, seed=1)
    parts = [numbers(where, made, split=split, use=part) for part in ("train", "val")]
    assert sorted(parts[0] + parts[1]) == list(range(12)) and all(parts)
    for part in parts:
        assert set(Counter(k // 3 for k in part).values()) == {3}


def test_containers(binary) -> None:
    path = ROOT / "testdata/coast/coast.tacozip"
    table = chaski.taco.load(path).data.to_pylist()
    names = [f"{r['region']}/{r['rank']}" for r in table]
    with chaski.load(
        path,
        fields={"image": "s2/img.tif", "rank": "rank"},
        rows=Rows(ids=[names[5], names[2]], id_column="{region}/{rank}"),
        batch_size=2,
        shuffle=False,
    ) as loader:
        (batch,) = loader
    assert sorted(batch["rank"].tolist()) == sorted(table[i]["rank"] for i in (5, 2))
