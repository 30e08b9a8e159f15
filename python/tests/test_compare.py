"""`chaski compare`: a loader of a user's beside the call that gives the same samples."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import rasters
from conftest import nonempty

from chaski._compare import equality, main

pytest.importorskip("torch")
pytest.importorskip("matplotlib")
pytest.importorskip("rasterio")

PROGRAM = """
from pathlib import Path

import rasterio
from torch.utils.data import DataLoader, Dataset


class Chips(Dataset):
    def __init__(self, root, wrong=None):
        self.root, self.wrong = root, wrong
        self.images = sorted(Path(root, "images").glob("*.tif"))

    def __len__(self):
        return len(self.images)

    def __getitem__(self, i):
        with rasterio.open(self.images[i]) as f:
            image = f.read().astype("float32")
        with rasterio.open(Path(self.root, "masks", self.images[i].name)) as f:
            mask = f.read(1).astype("int64")
        if i == self.wrong:
            mask[3, 5] += 7
        return {"image": image, "mask": mask, "id": self.images[i].stem}


def right():
    return DataLoader(Chips("pairs"), batch_size=4, shuffle=True, num_workers=1)


def wrong():
    return DataLoader(Chips("pairs", wrong=2), batch_size=4)


def fails():
    raise OSError("the disk is away")
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, binary: str) -> Path:
    r = np.random.default_rng(5)
    for name in ("images", "masks"):
        (tmp_path / "pairs" / name).mkdir(parents=True)
    for i in range(9):
        image = r.integers(0, 3000, (3, 32, 32), dtype=np.uint16)
        rasters.write(tmp_path / f"pairs/images/{i}.tif", image)
        rasters.write(tmp_path / f"pairs/masks/{i}.tif", (image[:1] > 1000).astype(np.uint8))
    (tmp_path / "mine.py").write_text(PROGRAM)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def compare(*words: str) -> subprocess.CompletedProcess[str]:
    line = [sys.executable, "-m", "chaski", "compare", *words, "--rounds", "1", "--seconds", "0.5"]
    return subprocess.run(line, capture_output=True, text=True)


def test_a_loader_and_the_call_that_is_found(folder: Path) -> None:
    done = compare("mine:right")
    assert done.returncode == 0, done.stderr
    said = done.stdout
    assert 'chaski.load("pairs", ' in said and "batch_size=4)" in said
    assert "image: equal in 9 of 9 samples (float32 (3, 32, 32))" in said
    assert "mask: equal in 9 of 9 samples (int64 (32, 32), chaski int64 (1, 32, 32))" in said
    figures = re.findall(r"^(\w.*?) +([\d.,]+) +([\d.,]+) +([\d.]+)$", said, re.MULTILINE)
    assert [f[0] for f in figures][:3] == [
        "first batch, s",
        "clock a sample, ms",
        "CPU a sample, ms",
    ]
    for _, mine, ours, gain in nonempty(figures):
        mine, ours = (float(v.replace(",", "")) for v in (mine, ours))
        assert mine > 0 and ours > 0
        assert float(gain) == pytest.approx(mine / ours, rel=0.03, abs=0.1)
    assert (folder / "compare.png").read_bytes()[:4] == b"\x89PNG"


def test_it_says_where_samples_differ(folder: Path) -> None:
    call = 'chaski.load("pairs", fields={"image": "images/{id}.tif", "mask": "masks/{id}.tif"}, '
    done = compare("mine.py:wrong", call + "batch_size=4)", "--out", "other.png")
    assert done.returncode == 0, done.stderr
    assert "image: equal in 9 of 9 samples" in done.stdout
    assert re.search(
        r"mask: equal in 8 of 9 samples .*; most in sample 2: 1 of 1,024 values, the first at "
        r"\(3, 5\): ([78]), chaski ([01]); at most by 7$",
        done.stdout,
        re.MULTILINE,
    )
    assert (folder / "other.png").exists()


@pytest.mark.parametrize(
    "words,match",
    [
        (["mine:fails"], "mine:fails: OSError: the disk is away"),
        (["mine:none"], "mine has no function none"),
        (["mine"], "write MODULE:FUNCTION"),
        (["mine:right", "--data", "nothing"], "nothing"),
        (["mine:right", "chaski.load('pairs')"], "batch_size"),
    ],
)
def test_what_is_wrong_is_said(folder: Path, words: list[str], match: str) -> None:
    with pytest.raises(SystemExit, match=match):
        main(words)


def test_equality() -> None:
    r = np.random.default_rng(2)
    a = [{"x": r.normal(size=(2, 8, 8)).astype("f4"), "y": np.array(i)} for i in range(5)]
    other = [a[i] for i in (3, 1, 4, 0, 2)]
    assert equality(a, other)[0] == [
        "x: equal in 5 of 5 samples (float32 (2, 8, 8))",
        "y: equal in 5 of 5 samples (int64 ())",
    ]
    scaled = [{"image": 4 * s["x"] + 2, "label": s["y"]} for s in other]
    lines, (mine, ours) = equality(a, scaled)
    assert lines[0] == (
        "x (chaski 'image'): equal in 0 of 5 samples (float32 (2, 8, 8)); it is 0.25 × chaski's, "
        "-0.5: see normalize"
    )
    assert lines[1] == "y (chaski 'label'): equal in 5 of 5 samples (int64 ())"
    assert np.array_equal(4 * mine["x"] + 2, ours["x"])
    strangers = [{"x": r.normal(size=(2, 8, 8)).astype("f4")} for _ in range(5)]
    lines, _ = equality(a, strangers)
    assert lines == [
        "y: chaski has no such member",
        "No sample of the two is the same: random windows and augmentation differ",
    ]
    assert equality(a, other[:3])[0] == [
        "2 of 5 samples are not among the 3 of chaski",
        "x: equal in 3 of 3 samples (float32 (2, 8, 8))",
        "y: equal in 3 of 3 samples (int64 ())",
    ]
    assert equality(a, [{"z": np.zeros(3)}])[0] == [
        "no member of ['x', 'y'] has the shape of one of ['z']"
    ]
