"""The Python environments of the peers: found, or made once with venv and pip.

pip's own settings (an index, a proxy, a cache) apply.
"""

from __future__ import annotations

import glob
import hashlib
import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
MAIN = HERE / "requirements.txt"
RUMI1 = HERE / "requirements-rumi1.txt"

# The pinned packages have wheels for these versions of Python.
OLDEST, NEWEST = (3, 12), (3, 14)


class NoEnvironment(Exception):
    """There is no interpreter for the peers."""


@dataclass
class Interpreter:
    """A Python that peers run in."""

    path: str
    missing: dict[str, str] = field(default_factory=dict)  # peers that are not installed, and why


def say(text: str) -> None:
    """Prints a line to standard error."""
    print(f"peers: {text}", file=sys.stderr, flush=True)


def attempt(*command: str) -> str:
    """Runs a command and returns its output; the error is its last line."""
    done = subprocess.run(command, capture_output=True, text=True, errors="replace")
    if done.returncode:
        lines = (done.stdout + done.stderr).strip().splitlines()
        raise NoEnvironment(lines[-1][:300] if lines else f"{command[0]}: exit {done.returncode}")
    return done.stdout


def base_python() -> str:
    """Returns an interpreter for which the pinned packages have wheels.

    It looks at the running one, then in PATH, then where pyenv and uv keep theirs: python3 is often
    older than what lies beside it, and pyenv's commands of other versions refuse to run. The oldest
    that fits comes first: not every peer has been released for the newest.
    """
    names = [f"python3.{minor}" for minor in range(OLDEST[1], NEWEST[1] + 1)]
    pyenv = os.environ.get("PYENV_ROOT") or os.path.expanduser("~/.pyenv")
    kept = [f"{pyenv}/versions/*/bin", os.path.expanduser("~/.local/share/uv/python/*/bin")]
    found = [sys.executable, *filter(None, map(shutil.which, [*names, "python3"]))]
    found += [path for folder in kept for name in names for path in glob.glob(f"{folder}/{name}")]
    fits = f"import sys, venv; sys.exit(not {OLDEST} <= sys.version_info[:2] <= {NEWEST})"
    for path in dict.fromkeys(found):
        try:
            attempt(path, "-c", fits)
        except (NoEnvironment, OSError):
            continue
        return path
    versions = ", ".join(name.removeprefix("python") for name in names)
    raise NoEnvironment(
        f"found no Python of version {versions} with venv, only {', '.join(dict.fromkeys(found))}: "
        "name one that has the packages with --python"
    )


def by_peer(text: str) -> tuple[list[str], dict[str, list[str]]]:
    """Returns what all peers require, and what each peer does whose name stands after "#"."""
    everybody: list[str] = []
    peers: dict[str, list[str]] = {}
    for line in text.splitlines():
        want, _, peer = (part.strip() for part in line.partition("#"))
        if want:
            (peers.setdefault(peer, []) if peer else everybody).append(want)
    return everybody, peers


def make(
    folder: Path, name: str, base: str, requirements: Path, size: str, over: str = ""
) -> Interpreter:
    """Makes an environment in the folder, unless it is complete, and returns its interpreter.

    A package of one peer that cannot be installed is noted in `missing`; one that all need is an
    error. over is an interpreter whose packages are visible after the environment's own.
    """
    wants = requirements.read_text()
    digest = hashlib.sha256(f"{base}\n{over}\n{wants}".encode()).hexdigest()[:8]
    home = folder / f"{name}-{digest}"
    python = home / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    complete = home / "chaski-complete.json"
    if complete.exists():
        return Interpreter(str(python), json.loads(complete.read_text()))
    say(f"making a Python environment, once, in {home}: {size} (--python names one that exists)")
    shutil.rmtree(home, ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)
    attempt(base, "-m", "venv", str(home))
    if over:  # --system-site-packages does not show the packages of another virtual environment
        show = 'import site; print("\\n".join(site.getsitepackages()))'
        place = 'import pathlib, site, sys; pathlib.Path(site.getsitepackages()[0], "over.pth")'
        attempt(str(python), "-c", f"{place}.write_text(sys.argv[1])", attempt(over, "-c", show))
    pip = [str(python), "-m", "pip", "install", "--disable-pip-version-check", "--quiet"]
    everybody, peers = by_peer(wants)
    if everybody:
        attempt(*pip, *everybody)
    missing = {}
    for peer, packages in sorted(peers.items()):
        try:
            attempt(*pip, *packages, *everybody)  # all of them, so that pip keeps their versions
        except NoEnvironment as e:
            missing[peer] = f"cannot be installed: {e}"
            say(f"{peer} {missing[peer]}")
    complete.write_text(json.dumps(missing))
    return Interpreter(str(python), missing)


def prepare(cache: Path, python: str, rumi1: str, need_rumi1: bool) -> dict[str, Interpreter]:
    """Returns the interpreters "main" and "rumi1"; nothing is installed for one that is given."""
    main = Interpreter(python)
    if not python:
        size = "about 300 MB to download, most of it PyTorch"
        if sys.platform == "linux":
            size = "about 3 GB to download and 7 GB on disk, most of it PyTorch with CUDA"
        main = make(cache, "main", base_python(), MAIN, size)
    old = Interpreter(rumi1 or main.path)
    if need_rumi1 and not rumi1:
        size = "about 80 MB to download and 250 MB on disk"
        try:
            old = make(cache, "rumi1", main.path, RUMI1, size, over=main.path)
        except (NoEnvironment, OSError) as e:
            old.missing["rumi1"] = str(e)
    return {"main": main, "rumi1": old}
