"""Long calls draw a bar where somebody looks, and nothing elsewhere."""

from __future__ import annotations

import subprocess
import sys
from types import ModuleType

import numpy as np
import pytest
import rasters

import chaski
from chaski import _command, _progress

N = 5
ABOUT = {
    "id": "few",
    "dataset_version": "1",
    "description": "chips",
    "licenses": ["CC0-1.0"],
    "providers": [{"name": "chaski"}],
    "tasks": ["other"],
}


@pytest.fixture
def chips(tmp_path, binary):
    rasterio = pytest.importorskip("rasterio")
    (tmp_path / "chips").mkdir()
    place = {"crs": "EPSG:32630", "transform": rasterio.Affine(10, 0, 5e5, 0, -10, 4e6)}
    for i in range(N):
        rasters.write(tmp_path / "chips" / f"{i}.tif", np.full((1, 8, 8), i + 1, "u1"), **place)
    return tmp_path / "chips"


@pytest.fixture
def bars(monkeypatch):
    """Stands in for tqdm, and returns the bars that were drawn."""
    drawn: list[Tqdm] = []

    class Tqdm:
        def __init__(self, desc, **_):
            self.desc, self.n, self.total, self.closed = desc, 0, None, False
            drawn.append(self)

        def update(self, n):
            self.n += n
            assert 0 <= self.n and (self.total is None or self.n <= self.total)

        def close(self):
            self.closed = True

    module = ModuleType("tqdm.auto")
    module.tqdm = Tqdm
    monkeypatch.setitem(sys.modules, "tqdm.auto", module)
    return drawn


@pytest.mark.parametrize("looks", [True, False])
def test_bars(chips, tmp_path, bars, monkeypatch, looks):
    monkeypatch.setattr(_progress, "visible", lambda: looks)
    stats = chaski.stats(chips)
    assert stats.mean()[0] == 3.0
    packed = chaski.pack(chips, tmp_path / "few.tacozip", ABOUT)
    assert len(packed) == N
    assert [(b.desc, b.total, b.closed) for b in bars] == [
        ("stats", N, True),
        ("pack", N, True),
    ] * looks
    with pytest.raises(chaski.SpecError, match="form"):  # what it says is still an error
        chaski.pack(chips, tmp_path / "x", ABOUT, form="none")


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_bar_that_fails_stops_no_command(tmp_path, bars, monkeypatch):
    path = tmp_path / "chaski"
    lines = "printf '\\0361 2\\n'; head -c 300000 /dev/zero | tr '\\0' x; echo; echo why; exit 3"
    path.write_text(f"#!/bin/sh\nexec >&2\n{lines}\n")
    path.chmod(0o755)
    monkeypatch.setenv("CHASKI_BIN", str(path))
    monkeypatch.setattr(_progress, "visible", lambda: True)
    monkeypatch.setattr(sys.modules["tqdm.auto"].tqdm, "update", lambda *_: 1 / 0)
    out = _command.run_line(["pack"])
    assert (out.returncode, out.stderr) == (3, "x" * 300000 + "\nwhy\n")


def test_without_tqdm(chips, monkeypatch, capsys):
    monkeypatch.setattr(_progress, "visible", lambda: True)
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    monkeypatch.setattr(_progress, "DELAY", 0)
    assert chaski.stats(chips)["samples"] == N
    *shown, cleared, last = capsys.readouterr().err.lstrip("\r").split("\r")
    assert shown
    assert {line.rstrip() for line in shown} <= {f"stats: {n} of {N}" for n in range(N + 1)}
    assert cleared.isspace() and last == ""


def test_a_short_call_shows_no_line(chips, monkeypatch, capsys):
    monkeypatch.setattr(_progress, "visible", lambda: True)
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    monkeypatch.setattr(_progress, "DELAY", 3600)
    assert chaski.stats(chips)["samples"] == N
    assert capsys.readouterr().err == ""


def test_nobody_looks():
    code = "from chaski import _progress; print(_progress.visible())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


@pytest.mark.parametrize("module", ["torchgeo", "terratorch"])
def test_adapters_say_what_they_need(module):
    code = f"import sys; sys.modules['torch'] = None; import chaski.{module}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].endswith(f"pip install {module}")
