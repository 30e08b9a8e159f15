"""The blocks of docs/tiledb.md run, one after the other."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import nonempty

rasterio = pytest.importorskip("rasterio")

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "tiledb.md").read_text()
BLOCKS = re.findall(r"```(bash|python)\n(.*?)```\n", PAGE, re.DOTALL)


def test_the_page_runs(binary: str, tmp_path: Path) -> None:
    assert len(BLOCKS) == 3
    shutil.copytree(ROOT / "testdata/tiledb/cube", tmp_path / "cube")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "chaski").symlink_to(Path(binary).resolve())
    env = os.environ | {
        "CHASKI_BIN": str(Path(binary).resolve()),
        "PATH": f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT / "python" / "src"),
    }
    for language, code in nonempty(BLOCKS):
        command = ["bash", "-e", "-c", code] if language == "bash" else [sys.executable, "-c", code]
        done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True)
        assert done.returncode == 0, code + done.stderr
    assert len(list((tmp_path / "again").glob("*.rumi"))) == 6
    assert len(list((tmp_path / "tog").glob("*.tif"))) == 6
