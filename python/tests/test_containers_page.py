"""The blocks of docs/containers.md run."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "containers.md").read_text()
BLOCKS = re.findall(r"```python\n(.*?)```\n", PAGE, re.DOTALL)
COMMANDS = re.findall(r"^chaski (.*)$", PAGE, re.MULTILINE)


@pytest.fixture
def data(tmp_path, monkeypatch) -> Path:
    """The folder that the page speaks of."""
    shutil.copy(ROOT / "testdata/coast/coast.tacozip", tmp_path)
    shutil.copytree(ROOT / "testdata/coast/parts", tmp_path / "parts")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_blocks(data, binary):
    calls = []
    names = {"step": lambda *tensors: calls.append([len(t) for t in tensors])}
    assert len(BLOCKS) == 3
    exec(BLOCKS[0], names)
    assert calls and all(sizes == [4, 4, 4] for sizes in calls)
    calls.clear()
    exec(BLOCKS[1], names)
    assert calls == [[3], [2], [2]]
    pytest.importorskip("pyarrow")
    pytest.importorskip("pandas")
    exec(BLOCKS[2], names)
    assert names["table"].column_names == ["id", "rank", "cloud_cover"]
    assert names["frame"]["n"].tolist() == [4, 4, 4]


def test_commands(data, binary):
    assert len(COMMANDS) == 5
    for command in COMMANDS:
        subprocess.run([binary, *shlex.split(command)], check=True, capture_output=True)
    assert (data / "stats.json").exists() and (data / "batch.png").exists()
