"""The examples that write their own data train what they say, on a CPU."""

from __future__ import annotations

import csv
import io
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from conftest import nonempty

import chaski

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.timeout(900)


def trained(forks, tmp_path: Path, name: str, *options: str) -> str:
    """Returns what an example prints, which trains for `--epochs` of options or all of its own."""
    pytest.importorskip("torch")
    log = tmp_path / "log"
    p = forks("torch").run([ROOT / "examples" / name, tmp_path / "data", *options], log, tmp_path)
    try:
        assert p.wait(800) == 0, log.read_text()
    finally:
        p.kill()
    return log.read_text()


def share(out: str, what: str) -> float:
    """Returns a share in percent that an example prints."""
    found = re.search(rf"^{what} +([\d.]+)% of \d+ ", out, re.MULTILINE)
    assert found, out
    return float(found[1])


def test_time_series(binary, forks, tmp_path):
    """Crops are told by their year; single dates would not do."""
    out = trained(forks, tmp_path, "time_series.py", "--epochs", "10")
    assert share(out, "held out") > 80


def test_detection(binary, forks, tmp_path):
    """Most objects of held-out scenes are found, and most boxes are of an object."""
    out = trained(forks, tmp_path, "detection.py", "--epochs", "8")
    assert share(out, "recall") > 60
    assert share(out, "precision") > 60


def test_torchgeo(binary, forks, tmp_path):
    """TorchGeo's task tells soil, crops and water on held-out scenes."""
    pytest.importorskip("torchgeo.datasets", reason="TorchGeo is not installed: make frameworks")
    out = trained(forks, tmp_path, "torchgeo_segmentation.py")
    assert share(out, "held out") > 80


def test_terratorch(binary, tmp_path):
    """The configuration of TerraTorch trains with the class exchanged."""
    pytest.importorskip("terratorch", reason="TerraTorch is not installed: make frameworks")
    subprocess.run([sys.executable, ROOT / "examples" / "scenes.py", tmp_path], check=True)
    config = ROOT / "examples" / "terratorch.yaml"
    terratorch = Path(sys.executable).with_name("terratorch")
    subprocess.run([terratorch, "fit", "-c", config], cwd=tmp_path, check=True, timeout=800)
    (table,) = tmp_path.glob("logs/**/metrics.csv")
    with open(table) as f:
        accuracies = [float(v) for r in csv.DictReader(f) if (v := r["val/Pixel_Accuracy"])]
    assert accuracies[-1] > 0.8


def test_cut_chips(binary, tmp_path):
    """Every window of the grid is a chip, with the pixels and the split of its sample."""
    source, made = ROOT / "testdata/coast/coast.tacozip", tmp_path / "chips.tacozip"
    subprocess.run([sys.executable, ROOT / "examples/cut_chips.py", source, made], check=True)
    samples, chips = chaski.taco.load(source), chaski.taco.load(made)
    assert len(chips) == 12 * 4  # rasters of 24 by 24 have four windows of 16, every 8 pixels
    splits = dict(zip(samples.ids, samples.data["split"].to_pylist(), strict=True))
    made_splits = zip(chips.ids, chips.data["split"].to_pylist(), strict=True)
    for name, split in nonempty(made_splits):
        sample, y, x = re.fullmatch(r"(.*)_y(\d+)_x(\d+)", name).groups()
        window = {axis: (int(at), int(at) + 16) for axis, at in (("y", y), ("x", x))}
        for file, chip in (("s2/img.tif", "image.npy"), ("ref/label.tif", "mask.npy")):
            want = chaski.read(f"{source}::{sample}/{file}", **window)
            assert (np.load(io.BytesIO(chips.read(name).read(chip).bytes())) == want).all()
        assert split == splits[sample]
