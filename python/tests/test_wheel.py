"""The wheel has the engine, if there is one, and no other files than it should."""

from __future__ import annotations

import os
import re
import stat
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

pytest.importorskip("hatchling")

PACKAGE = Path(__file__).resolve().parents[1]


def build(to: Path, package: Path = PACKAGE, **env: str) -> zipfile.ZipFile:
    return zipfile.ZipFile(make("wheel", to, package, **env))


def make(target: str, to: Path, package: Path, **env: str) -> Path:
    done = subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", target, "-d", str(to)],
        cwd=package,
        env={**os.environ, **env},
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise RuntimeError(done.stderr)
    (made,) = to.iterdir()
    return made


def test_wheel_with_engine(tmp_path):
    binary = tmp_path / "some-binary"
    binary.write_text('#!/bin/sh\necho engine "$@"\n')
    binary.chmod(0o755)
    platform = "manylinux_2_17_aarch64"
    with build(
        tmp_path / "d", CHASKI_BIN_FOR_WHEEL=str(binary), CHASKI_WHEEL_PLATFORM=platform
    ) as wheel:
        assert wheel.filename is not None and wheel.filename.endswith(f"-py3-none-{platform}.whl")
        names = wheel.namelist()
        assert "chaski/py.typed" in names and "chaski/_proto/chaski_pb2.py" in names
        assert "chaski/_arguments.py" in names
        assert not [n for n in names if "/fbs/" in n or "tests" in n or "hatch" in n]
        info = wheel.getinfo("chaski/_bin/chaski")
        assert info.external_attr >> 16 & stat.S_IXUSR
        assert wheel.read(info) == binary.read_bytes()
        (metadata,) = (n for n in names if n.endswith("/METADATA"))
        about = wheel.read(metadata).decode()
        assert "Requires-Dist: torch" in about and "License-Expression: Apache-2.0" in about
        assert "Author: " in about and "Project-URL: Homepage, https://" in about
        (licence,) = (n for n in names if n.endswith("/licenses/LICENSE"))
        assert wheel.read(licence) == (PACKAGE.parent / "LICENSE").read_bytes()
    installed = tmp_path / "installed"
    # Unpacked as pip does it, because pip would refuse a wheel of another platform.
    with zipfile.ZipFile(wheel.filename) as z:
        z.extractall(installed)
    (installed / "chaski/_bin/chaski").chmod(0o755)
    out = subprocess.run(
        [sys.executable, "-c", "import chaski._cli; chaski._cli.main()", "version"],
        env={**os.environ, "PYTHONPATH": str(installed), "CHASKI_BIN": ""},
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert out.stdout == "engine version\n", out.stderr


def test_wheel_for_this_platform(tmp_path):
    binary = tmp_path / "some-binary"
    binary.write_bytes(b"\x7fELF")
    binary.chmod(0o755)
    with build(tmp_path / "d", CHASKI_BIN_FOR_WHEEL=str(binary)) as wheel:
        assert wheel.filename is not None
        assert "-py3-none-any" not in wheel.filename and "-py3-none-" in wheel.filename


def test_wheel_for_windows_has_a_program_and_its_components(tmp_path):
    binary, components = tmp_path / "some-binary", tmp_path / "chaski.cdx.json"
    binary.write_bytes(b"MZ")
    binary.chmod(0o755)
    components.write_text("{}")
    with build(
        tmp_path / "d",
        CHASKI_BIN_FOR_WHEEL=str(binary),
        CHASKI_WHEEL_PLATFORM="win_arm64",
        CHASKI_WHEEL_SBOM=str(components),
    ) as wheel:
        assert wheel.read("chaski/_bin/chaski.exe") == b"MZ"
        (sbom,) = (n for n in wheel.namelist() if ".dist-info/sboms/" in n)
        assert wheel.read(sbom) == b"{}"


def test_sources_have_no_engine_and_the_same_description(tmp_path, monkeypatch):
    """They say that they have no engine. All packages are described by the repository's README."""
    monkeypatch.delenv("CHASKI_BIN_FOR_WHEEL", raising=False)
    with tarfile.open(make("sdist", tmp_path / "s", PACKAGE)) as sources:
        if hasattr(tarfile, "data_filter"):  # of Python 3.10.12, 3.11.4 and newer
            sources.extraction_filter = tarfile.data_filter
        sources.extractall(tmp_path)
    (package,) = tmp_path.glob("chaski_eo-*")
    with pytest.raises(RuntimeError, match="CHASKI_BIN_FOR_WHEEL=/path/to/chaski"):
        build(tmp_path / "d", package)
    with build(tmp_path / "d", package, CHASKI_BIN_FOR_WHEEL="") as wheel:
        assert wheel.filename is not None and wheel.filename.endswith("-py3-none-any.whl")
        described = about(wheel)
    with build(tmp_path / "checkout", CHASKI_BIN_FOR_WHEEL="") as wheel:
        assert about(wheel) == described
    readme = (PACKAGE.parent / "README.md").read_text()
    assert readme.count("\n") <= 130 and described.count("```python") == 1
    links = re.findall(r"\]\(([^)\s]+)\)", described)
    assert len(links) > 20 and all(link.startswith("https://") for link in links)
    here = "https://github.com/chaski-eo/chaski/"
    files = [m[1] for m in map(re.compile(here + r"(?:blob|raw)/main/([^#]+)").match, links) if m]
    assert len(files) > 15 and all((PACKAGE.parent / name).exists() for name in files)
    assert "unreleased" not in described and "make wheel" not in described
    text = re.sub(r"<!-- unreleased -->.*?<!-- /unreleased -->\n", "", readme, flags=re.DOTALL)
    assert re.sub(r"\]\([^)]*\)", "", described) == re.sub(r"\]\([^)]*\)", "", text)


def about(wheel: zipfile.ZipFile) -> str:
    """Returns the text that the package index shows."""
    (metadata,) = (n for n in wheel.namelist() if n.endswith("/METADATA"))
    return wheel.read(metadata).decode().partition("\n\n")[2]


def test_wheel_without_the_named_engine(tmp_path):
    with pytest.raises(RuntimeError, match="there is no"):
        build(tmp_path / "d", CHASKI_BIN_FOR_WHEEL=str(tmp_path / "nothing"))


def test_the_distribution_is_chaski_eo(tmp_path):
    with build(tmp_path, CHASKI_BIN_FOR_WHEEL="") as wheel:
        assert wheel.filename is not None
        assert Path(wheel.filename).name.startswith("chaski_eo-")
        (metadata,) = (n for n in wheel.namelist() if n.endswith("/METADATA"))
        assert wheel.read(metadata).decode().splitlines()[1] == "Name: chaski-eo"


@pytest.mark.parametrize(
    ("files", "refused"),
    [
        (["chaski/__init__.py", "chaski/door.py"], True),
        (["_editable_impl_chaski.pth"], False),  # this project, before it was called chaski-eo
    ],
)
@pytest.mark.parametrize("module", ["chaski", "chaski.torch"])
def test_another_project_of_the_name_is_refused(tmp_path, forks, files, refused, module):
    info = tmp_path / "chaski-0.26.10.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.4\nName: chaski\nVersion: 0.26.10\n")
    (info / "RECORD").write_text("".join(f"{f},,\n" for f in files))
    for f in files:  # importlib.metadata of Python 3.12 leaves out what is not there
        (tmp_path / f).parent.mkdir(exist_ok=True)
        (tmp_path / f).touch()
    script, log = tmp_path / "scripts" / "imports.py", tmp_path / "log"
    script.parent.mkdir()
    path = [str(PACKAGE / "src"), str(tmp_path)]
    script.write_text(f"import sys\nsys.path[:0] = {path}\nimport {module}\n")
    libraries = ["torch"] if module == "chaski.torch" else ["numpy"]
    code = forks(*libraries).run([script], log, tmp_path).wait(300)
    assert (code != 0) == refused, log.read_text()
    if refused:
        last = log.read_text().splitlines()[-1]
        assert last.startswith("ImportError: the distribution chaski 0.26.10 is installed in ")
        assert "pip uninstall -y chaski chaski-eo" in last
