"""The modules of the package import each other in no circle."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path

import pytest

import chaski

TOOL = Path(__file__).parents[2] / "tools" / "circles.py"


def circles(folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, TOOL, folder], capture_output=True, text=True)


def test_the_package_has_no_circle() -> None:
    done = circles(Path(chaski.__file__).parent)
    assert (done.returncode, done.stdout) == (0, ""), done.stdout + done.stderr


@pytest.mark.parametrize(
    "back",
    [
        "import package.a",
        "from package import a",
        "from package import SIZE, a",
        "from package.a import SIZE",
        "from . import a",
        "from .a import SIZE",
        "from package import b",
        "def late():\n    from package.a import SIZE",
        "if TYPE_CHECKING:\n    from package.a import SIZE",
        "from package.inner import c",
        "from package import SIZE",
    ],
)
def test_a_circle_is_found(tmp_path: Path, back: str) -> None:
    folder = tmp_path / "package"
    (folder / "inner").mkdir(parents=True)
    (folder / "__init__.py").write_text("from package.a import SIZE\n")
    (folder / "a.py").write_text("import json\nfrom package import b\n")
    (folder / "inner" / "__init__.py").write_text("")
    (folder / "inner" / "c.py").write_text("from ..a import SIZE\n")
    (folder / "b.py").write_text("import os\nfrom json import loads\n")
    assert circles(folder).returncode == 0
    (folder / "b.py").write_text(back + "\n")
    done = circles(folder)
    assert done.returncode == 1
    assert "package.b" in done.stdout


def test_a_folder_without_modules_is_an_error(tmp_path: Path) -> None:
    assert circles(tmp_path).returncode != 0


def test_pickles_name_the_modules_of_earlier_versions() -> None:
    ref = chaski.SampleRef(1, 2, "x")
    assert b"chaski._arguments" in pickle.dumps(ref)
    assert pickle.loads(pickle.dumps(ref)) == ref
    ragged = chaski.Ragged([0, 1], [5])
    assert b"chaski._assemble" in pickle.dumps(ragged)
    assert pickle.loads(pickle.dumps(ragged)) == ragged
