"""`link/../x` is the file that the kernel opens by it."""

from __future__ import annotations

import os
import random
import shutil
from pathlib import Path

import numpy as np
import pytest

import chaski
from chaski._files import absolute_path, replace_file

TESTDATA = Path(__file__).resolve().parents[2] / "testdata"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """a/link -> b/deep; b/x.tif has more pixels than a/x.tif."""
    for to, name in {"a/set/x.tif": "tog-1x1.tif", "b/set/x.tif": "tog-odd-16.tif"}.items():
        (tmp_path / to).parent.mkdir(parents=True)
        shutil.copy(TESTDATA / "raster" / "tog" / name, tmp_path / to)
    (tmp_path / "b" / "deep").mkdir()
    (tmp_path / "a" / "link").symlink_to("../b/deep")
    return tmp_path


def test_read_and_load(tree: Path) -> None:
    up = f"{tree}/a/link/.."
    want = chaski.read(tree / "b" / "set" / "x.tif")
    assert want.shape != chaski.read(tree / "a" / "set" / "x.tif").shape
    assert np.array_equal(chaski.read(f"{up}/set/x.tif"), want)
    for source in (f"{up}/set", f"{up}/set/*.tif", {"image": [f"{up}/set/x.tif"]}):
        with chaski.load(source, batch_size=1, shuffle=False) as loader:
            batch = next(iter(loader))
            assert np.array_equal(batch["image"][0], want), source


def test_written_file(tree: Path) -> None:
    replace_file(f"{tree}/a/link/../new", [b"x"])
    assert (tree / "b" / "new").read_bytes() == b"x"
    assert not (tree / "a" / "new").exists()


def test_paths_of_specs(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A path has one text wherever it is named from, as the spec hash of a list covers it."""
    monkeypatch.chdir(tree / "a")
    assert absolute_path("../b/x.tif") == str(tree / "b" / "x.tif")
    assert absolute_path("link/../x.tif") == str(tree / "a" / "link" / ".." / "x.tif")
    assert absolute_path("/../x") == "/x"


def test_paths(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """absolute_path names the file of the path, and is abspath where there is no ".."."""
    monkeypatch.chdir(tree / "a" / "link")
    rng = random.Random(5)
    parts = ["..", "..", ".", "", "a", "b", "link", "set", "deep", "x.tif", str(tree)]
    met = 0
    for _ in range(3000):
        p = os.sep.join(rng.choices(parts, k=rng.randint(1, 6)))
        if p.endswith(("x.tif/", "x.tif/.")):  # no directory, which abspath forgets
            continue
        got = absolute_path(p)
        assert os.path.isabs(got)
        if ".." not in p.split(os.sep):
            assert got == os.path.abspath(p)
        assert os.path.exists(got) == os.path.exists(p or "."), p
        if os.path.exists(got):
            met += 1
            assert os.path.samefile(got, p or "."), p
    assert met > 100
