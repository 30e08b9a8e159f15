"""Files of arrays of other programs as datasets, compared with what their libraries read."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import chaski

pytestmark = pytest.mark.usefixtures("one_engine")

DATA = Path(__file__).parents[2] / "testdata"


def expected(folder: str, file: str, array: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((DATA / folder / "expected.json").read_text())[file][array]
    return found


def rows(source: Path | str, fields: dict[str, Any], **options: Any) -> dict[str, Any]:
    """The one batch of a dataset, in the order of its rows, as stored."""
    options = {"batch_size": 4, "shuffle": False, "pixels": chaski.Pixels(dtype="native")} | options
    with chaski.load(source, fields=fields, **options) as loader:
        (batch,) = list(loader)
    return {name: np.asarray(batch[name])[np.asarray(batch["valid"])] for name in fields}


def digest(array: Any) -> str:
    return hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()


def test_matlab(tmp_path: Path) -> None:
    """A file a sample, plain or compressed: a cube (y, x, b), a member of a structure, a series."""
    for k, name in enumerate(("plain", "packed")):
        shutil.copy(DATA / "matlab" / f"{name}.mat", tmp_path / f"{k}_scene.mat")
    fields = {
        "image": chaski.Field(pattern="{id}_scene.mat::cube", dims="y x b", layout="n y x b"),
        "mask": chaski.Field(pattern="{id}_scene.mat::scene.gt", dims="y x", layout="n y x"),
        "series": chaski.Field(
            pattern="{id}_scene.mat::series", dims="y t x b", layout="n y t x b"
        ),
    }
    got = rows(tmp_path, fields)
    for name, array in (("image", "cube"), ("mask", "scene.gt"), ("series", "series")):
        want = expected("matlab", "plain.mat", array)
        assert len(got[name]) == 2
        for sample in got[name]:
            assert list(sample.shape) == want["shape"]
            assert digest(sample) == want["sha256"]


def test_matlab_texts() -> None:
    """Arrays (y, x, n), and a matrix of characters as their texts."""
    fields = {
        "chips": chaski.Field(layout="y x n"),
        "name": chaski.Field(column="names", kind="text"),
    }
    with chaski.load(
        DATA / "matlab" / "packed.mat",
        batch_size=2,
        shuffle=False,
        rows=chaski.Rows(dims="y x n"),
        fields=fields,
        pixels=chaski.Pixels(dtype="native"),
    ) as loader:
        (batch,) = list(loader)
    assert list(batch["name"]) == ["sea ", "land"]
    assert digest(batch["chips"]) == expected("matlab", "packed.mat", "chips")["sha256"]
