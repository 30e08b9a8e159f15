"""The rows of docs/data-sets.md, on files with the layouts of the data sets."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

pytest.importorskip("rasterio", reason="needs rasterio to write and to judge")
pytest.importorskip("h5py", reason="needs h5py to write and to judge")
pytest.importorskip("PIL", reason="needs Pillow to write and to judge")
sys.path.insert(0, str(Path(__file__).parents[2] / "tools/data_sets"))

import imitate  # noqa: E402
import judge  # noqa: E402
import published  # noqa: E402

pytestmark = pytest.mark.usefixtures("one_engine")

CALLS = published.calls()


@pytest.fixture(scope="module")
def root(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("sets")
    imitate.write(folder, seed=3)
    return folder


def test_each_row_has_its_samples() -> None:
    assert set(CALLS) == set(published.SETS)


@pytest.mark.parametrize("name", CALLS)
def test_a_row(root, monkeypatch, binary, name) -> None:
    monkeypatch.chdir(root / name)
    assert judge.compare(CALLS[name], published.SETS[name][1]()) > 0
