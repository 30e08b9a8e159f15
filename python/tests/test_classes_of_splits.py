"""Numbers of classes of several splits: what they mean is said, and never taken over in silence."""

from __future__ import annotations

import logging
from pathlib import Path

import numpy as np
import pytest
import rasters

import chaski
from chaski import _classes

pytestmark = pytest.mark.usefixtures("one_engine")

rasterio = pytest.importorskip("rasterio", reason="needs rasterio to write rasters")

SPLITS = {"train": ["airport", "dam", "zoo"], "val": ["dam", "zoo"], "more": ["airport", "dam"]}


@pytest.fixture
def data(tmp_path, monkeypatch) -> Path:
    monkeypatch.setattr(_classes, "_found", {})
    for split, classes in SPLITS.items():
        for name in classes:
            folder = tmp_path / split / name
            folder.mkdir(parents=True)
            rasters.write(folder / f"{name}.tif", np.zeros((1, 4, 4), np.uint8))
    return tmp_path


def loader(data: Path, split: str, classes: list[str] | None = None) -> chaski.Loader:
    y = chaski.Field(column="folder", kind="class", classes=classes)
    source = data / split / "*/*.tif"
    return chaski.load(source, batch_size=1, fields={"image": chaski.Field(), "y": y})


def test_a_class_with_two_numbers_is_logged(data, caplog) -> None:
    caplog.set_level(logging.WARNING, "chaski")
    with loader(data, "train"):
        assert "another split may lack some" in caplog.text
    caplog.clear()
    with loader(data, "val"):
        assert "'dam' is number 0 of" in caplog.text
        assert "and number 1 of" in caplog.text


@pytest.mark.parametrize("split", ["val", "more"])
def test_given_classes_are_no_news(data, caplog, split) -> None:
    caplog.set_level(logging.WARNING, "chaski")
    for name in ("train", split):
        with loader(data, name, SPLITS["train"]) as run:
            assert run.classes["y"] == SPLITS["train"]
    assert "classes" not in caplog.text


def test_a_state_with_other_numbers_is_refused(data) -> None:
    """Also where another run may take it over: the model has learnt the numbers."""
    with loader(data, "train") as run:
        state = run.state_dict()
    with (
        loader(data, "val") as run,
        pytest.raises(chaski.StateError, match='"dam" is number 0, in the state 1'),
    ):
        run.load_state_dict(state, strict=False)
    with loader(data, "more") as run:  # the numbers of those that both have are the same
        run.load_state_dict(state, strict=False)
