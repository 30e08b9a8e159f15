"""The blocks of docs/containers.md, then those of docs/packing.md, run."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
import recipes
from conftest import nonempty
from helpers import web

import chaski

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/containers.md").read_text() + (ROOT / "docs/packing.md").read_text()
BLOCKS = re.findall(r"```python\n(.*?)```\n", PAGE, re.DOTALL)
COMMANDS = re.findall(r"^chaski (.*)$", PAGE.replace("\\\n", ""), re.MULTILINE)


@pytest.fixture
def data(tmp_path, monkeypatch) -> Path:
    """The directory that the page uses."""
    shutil.copy(ROOT / "testdata/coast/coast.tacozip", tmp_path)
    shutil.copy(ROOT / "testdata/taco3/scenes.zip", tmp_path)
    shutil.copytree(ROOT / "testdata/coast/parts", tmp_path / "parts")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def labels() -> set[int]:
    """Returns the labels of the unpacked container, by rasterio."""
    rasterio = pytest.importorskip("rasterio")
    found = set[int]()
    for path in nonempty((ROOT / "testdata/coast/coast_dir").rglob("label.tif")):
        with rasterio.open(path) as f:
            found.update(np.unique(f.read()).tolist())
    return found


def test_blocks(data, binary):
    calls = []
    names = {"step": lambda *tensors: calls.append([len(t) for t in tensors])}
    assert len(BLOCKS) == 8
    assert recipes.run(BLOCKS[0], names, labels())
    assert calls and all(sizes == [4, 4, 4] for sizes in calls)
    calls.clear()
    exec(BLOCKS[1], names)
    assert calls == [[4]]
    calls.clear()
    exec(BLOCKS[2], names)
    assert calls == [[3], [2], [2]]
    pytest.importorskip("pyarrow")
    pytest.importorskip("pandas")
    exec(BLOCKS[3], names)
    assert names["table"].column_names == ["id", "rank", "cloud_cover"]
    assert names["frame"]["n"].tolist() == [4, 4, 4]
    calls.clear()
    exec(BLOCKS[4], names)
    assert calls == [[2, 2], [2, 2]]
    calls.clear()
    exec(BLOCKS[5], names)
    assert calls == [[2, 2], [2, 2]]
    exec(BLOCKS[7], names)
    assert names["few"].read("a").read("note").bytes() == b"bytes"


def test_training_over_a_network(data, binary):
    pytest.importorskip("torch")
    calls = []
    names = {"chaski": chaski, "step": lambda t: calls.append(t.shape)}
    with web(ROOT / "testdata/containers/taco-v1") as (url, asked):
        exec(BLOCKS[6].replace("https://data.example.org", url), names)
    assert calls == [(4, 4, 32, 32)] * 4 + [(1, 32, 32)]
    assert asked


def test_example(data, binary, forks, tmp_path):
    """The last example of `make demo` learns its labels, which are a threshold."""
    command, log = [ROOT / "examples/container.py", data / "coast.tacozip"], tmp_path / "log"
    p = forks("torch").run(command, log, tmp_path)
    try:
        assert p.wait(300) == 0, log.read_text()
    finally:
        p.kill()
    out = log.read_text()
    right = re.search(r"held out +([\d.]+)% of 1728 pixels", out)
    assert right, out
    assert float(right[1]) > 95


def test_commands(data, binary):
    assert len(COMMANDS) == 22
    for text, name in re.findall(r"^echo '([^']*)' > (\S+)$", PAGE, re.MULTILINE):
        (data / name).write_text(text + "\n")
    (data / "tiles").mkdir()
    (data / "set").mkdir()
    for command in COMMANDS:
        subprocess.run([binary, *shlex.split(command)], check=True, capture_output=True)
    assert (data / "stats.json").exists()
    assert (data / "chips.tacozip").exists()
