"""bench/peers/run.py: what it refuses, what it survives, and one run with the installed loaders."""

import dataclasses
import json
import math
import os
import subprocess
import sys
import time
import urllib.request
import xml.etree.ElementTree
from pathlib import Path

import numpy as np
import pytest
from conftest import ROOT, nonempty

sys.path.insert(0, str(ROOT / "bench" / "peers"))
import environment  # noqa: E402
import link  # noqa: E402
import peers  # noqa: E402
import report  # noqa: E402
import run  # noqa: E402
import samples  # noqa: E402
import shapes  # noqa: E402

PEERS = ["chaski", "chaski-load", "rasterio"]


def test_shapes_have_whole_batches_and_tiles():
    for full in shapes.SHAPES:
        for s in (full, full.small()):
            assert s.samples % s.batch == 0 and s.samples >= 2 * s.batch, s
            assert s.windows or s.samples == s.images, s
            # Peers read windows anywhere, but write whole tiles only.
            assert s.file_side % s.tile == 0 and s.tile % 16 == 0 and s.file_side >= s.side, s
        # The images exceed the caches of the peers, but not the memory.
        size = np.dtype(full.dtype).itemsize * full.bands * full.file_side**2 * full.images
        assert 100e6 < size < 500e6, full
    assert len({s.name for s in shapes.SHAPES}) == len(shapes.SHAPES)
    stored = [s for s in shapes.SHAPES if s.delay]
    assert {(s.delay, s.rate) for s in stored} == {(30, 30), (100, 20)}
    assert {s.local for s in stored} == set(shapes.STORED.values())
    assert shapes.STORED[""] in shapes.SHAPES  # its files are there already
    assert {t for p in shapes.PEERS for t in p.cannot} == {"windows", "store", "raster", "picture"}
    assert shapes.BASELINE in {p.name for p in shapes.PEERS}
    assert all((ROOT / "testdata" / stand_in).is_file() for _, stand_in in shapes.IMAGERY.values())


@pytest.mark.parametrize("form", shapes.FORMS)
def test_files_of_a_form_hold_the_images(tmp_path, form):
    rasterio = pytest.importorskip("rasterio")
    if form == "cells":
        parquet = pytest.importorskip("pyarrow.parquet")
    shape = dataclasses.replace(shapes.formed(form), images=2)
    less = {"scene": 2 * shape.tile, "bands": 2} if shape.windows else {"side": 256}
    shape = dataclasses.replace(shape, **less)
    scene = np.random.default_rng(0).integers(0, 200, (shape.bands, 640, 640), dtype=shape.dtype)
    if form == "jpeg":  # of whose noise decoders make different pixels
        y, x = np.mgrid[:640, :640]
        scene = np.stack([y // 4 + x // 8, 200 - x // 4, x // 4 + 9]).astype(shape.dtype)
    np.save(tmp_path / "scene.npy", scene)
    job = samples.Job("make", folder=tmp_path, shape=shape, format=form)
    samples.make(job)
    if form == "cells":
        cells = parquet.read_table(tmp_path / form / "all.parquet")["image"].to_pylist()
        opened = [rasterio.MemoryFile(cell).open() for cell in cells]
    else:
        opened = [rasterio.open(name) for name in job.files()]
    images = list(samples.images(job))
    assert len(opened) == len(images) == 2
    for file, image in nonempty(zip(opened, images, strict=True)):
        found = file.read().astype(int)
        assert np.abs(found - image).max() <= (4 if form == "jpeg" else 0), form
    hindered = {p.name: bool(p.hindrance(shape)) for p in shapes.PEERS}
    assert not hindered["chaski"] and not hindered["rasterio"] and hindered["zarr"]
    assert hindered["pillow"] == (form not in ("jpeg", "png"))


def test_a_window_needs_the_tiles_that_it_touches():
    shape = next(s for s in shapes.SHAPES if s.name == "s2-13x128-windows")
    rng, side, tile = np.random.default_rng(1), shape.side, shape.tile
    low = rng.integers(0, shape.scene - side + 1, (100_000, 2))
    tiles = ((low + side - 1) // tile - low // tile + 1).prod(axis=1).mean()
    found = shape.needed * shape.images * (shape.scene / tile) ** 2
    assert math.isclose(found, tiles, rel_tol=0.01)
    assert shapes.SHAPES[0].needed == 1 / 512


def test_a_link_has_its_delay_and_rate_and_counts(tmp_path):
    (tmp_path / "served").mkdir()
    (tmp_path / "served" / "file").write_bytes(bytes(200_000))
    shape = dataclasses.replace(shapes.SHAPES[0], delay=50, rate=1)
    for slow in (True, False):
        with link.serve(link.build(tmp_path), tmp_path / "served", shape, slow) as store:
            start = time.perf_counter()
            for _ in range(2):
                with urllib.request.urlopen(f"{store.url}/file") as answer:
                    assert len(answer.read()) == 200_000
            took = time.perf_counter() - start
        assert (store.requests, store.bytes) == (2, 400_000)
        assert not slow or took >= 2 * 0.05 + 0.4 * 0.95


def test_samples_are_paired_whatever_their_order_and_ties():
    rng = np.random.default_rng(1)
    expected = rng.standard_normal((4000, 2))
    expected[::7, 0] = expected[1::7, 0][: len(expected[::7])]  # first sums that tie
    found = expected[rng.permutation(4000)] + rng.uniform(-1e-6, 1e-6, (4000, 2))
    assert peers.verdict(peers.paired(found, expected, 1e-5), 1e-5)["samples"] == 4000
    found[5] = found[6]  # one sample twice, another never
    assert peers.verdict(peers.paired(found, expected, 1e-5), 1e-5)["wrong"].startswith("1 of 4000")
    found[9, 1] += 1  # and one with other pixels
    assert peers.verdict(peers.paired(found, expected, 1e-5), 1e-5)["wrong"].startswith("2 of 4000")


def test_a_python_that_fits_is_found_beside_an_old_one(tmp_path, monkeypatch):
    def fake(path, code):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!/bin/sh\nexit {code}\n")
        path.chmod(0o755)
        return str(path)

    monkeypatch.setattr(sys, "executable", fake(tmp_path / "bin" / "python3", 1))
    shim = fake(tmp_path / "bin" / "python3.12", 127)  # pyenv's, for a version that is not chosen
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path / "pyenv"))
    fits = fake(tmp_path / "pyenv" / "versions" / "3.12.1" / "bin" / "python3.12", 0)
    assert environment.base_python() == fits
    Path(fits).unlink()
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    with pytest.raises(
        environment.NoEnvironment, match="found no Python of version 3.12, 3.13, 3.14"
    ):
        environment.base_python()
    Path(shim).unlink()


INSTALLER = """#!/bin/sh
echo "$@" >> "$CALLS"
case "$*" in
*"-m venv "*) mkdir -p "$3/bin" && cp "$0" "$3/bin/python" ;;
*" install "*mosaicml*) echo "ERROR: no matching distribution for mosaicml" >&2; exit 1 ;;
*" install "*"$BROKEN"*) echo "ERROR: no space" >&2; exit 1 ;;
esac
"""


def test_environments_are_made_once_and_name_what_is_missing(tmp_path, monkeypatch, capsys):
    base, calls = tmp_path / "python", tmp_path / "calls"
    base.write_text(INSTALLER)
    base.chmod(0o755)
    monkeypatch.setattr(environment, "base_python", lambda: str(base))
    monkeypatch.setenv("CALLS", str(calls))
    monkeypatch.setenv("BROKEN", "torch")
    with pytest.raises(environment.NoEnvironment, match="no space"):
        environment.prepare(tmp_path / "cache", "", "", True)
    monkeypatch.setenv("BROKEN", "nothing is broken")
    made = environment.prepare(tmp_path / "cache", "", "", True)
    assert list(made["main"].missing) == ["mds"] and made["main"].path != made["rumi1"].path
    assert "GB" in capsys.readouterr().err  # the size, before the download
    before = calls.read_text()
    assert environment.prepare(tmp_path / "cache", "", "", True) == made
    assert environment.prepare(tmp_path / "cache", "a", "b", True)["rumi1"].path == "b"
    assert calls.read_text() == before
    assert environment.prepare(tmp_path, "/no/python", "", True)["rumi1"].missing["rumi1"]


# Answers as peers.py does, with one loader that is missing, one that dies and one of wrong samples.
PYTHON = """#!/bin/sh
echo "noise of a package"
case "$4" in
*'"verb": "versions"'*) echo '{"python": "3.99", "versions": {"torch": "9"}}' ;;
*'"verb": "imagery"'*) echo '{"imagery": "made up"}' ;;
*'"verb": "make"'*'"format": "mds"'*) echo '{"failed": "no space"}' ;;
*'"verb": "make"'*) echo '{"bytes": 10}' ;;
*'"verb": "check"'*'"loader": "tifffile"'*) echo '{"missing": "No module named tifffile"}' ;;
*'"verb": "check"'*'"loader": "zarr"'*) echo '{"wrong": "2 of 9 samples"}' ;;
*'"verb": "one"'*'"workers": 2'*) echo "not as many workers as the command line says" >&2; exit 4 ;;
*'"verb": "one"'*'"loader": "zarr"'*) touch "$MARK"; echo '{}' ;;
*'"verb": "one"'*'"loader": "rumi"'*) echo "ValueError: broken" >&2; exit 3 ;;
*'"verb": "one"'*) sleep 60 & echo '{"samples_per_s": 120.5, "cpu_s_per_sample": 0.01}' ;;
*) echo '{}' ;;
esac
"""


def test_failures_are_rows_and_samples_are_used_again(tmp_path, monkeypatch, capsys):
    python = tmp_path / "python"
    python.write_text(PYTHON)
    python.chmod(0o755)
    monkeypatch.setenv("MARK", str(tmp_path / "timed-although-wrong"))
    args = ["--python", str(python), "--work", str(tmp_path / "work"), "-o", str(tmp_path / "out")]
    args += ["--engine", sys.executable, "--shapes", "chips", "--rounds", "2", "--seconds", "0.1"]
    args += ["--workers", "16"]
    names = "chaski,rasterio,tifffile,zarr,mds,rumi"
    assert run.main([*args, "--peers", names]) == 0
    result = json.loads((tmp_path / "out" / "peers.json").read_text())
    (shape,) = result["shapes"]
    assert {r["peer"]: (r["status"], r.get("why")) for r in shape["rows"]} == {
        "chaski": ("ok", None),
        "rasterio": ("ok", None),
        "tifffile": ("missing", "No module named tifffile"),
        "zarr": ("wrong", "2 of 9 samples"),
        "mds": ("failed", "mds is not written: no space"),
        "rumi": ("failed", "exit status 3: ValueError: broken"),
    }
    assert shape["rows"][0]["samples_per_s"] == {"min": 120.5, "median": 120.5, "max": 120.5}
    assert not (tmp_path / "timed-although-wrong").exists()
    made = tmp_path / "work" / "chips" / "made.json"
    before = made.stat().st_mtime_ns
    assert run.main([*args, "--peers", "chaski,rasterio"]) == 0
    assert made.stat().st_mtime_ns == before
    made.unlink()
    (tmp_path / "work" / "chips" / "mine.tif").write_text("mine")
    assert run.main([*args, "--peers", "chaski"]) == 1  # a folder that is not the program's
    assert (tmp_path / "work" / "chips" / "mine.tif").read_text() == "mine"
    assert "the directory holds other files" in capsys.readouterr().err


def test_a_row_is_a_spread_of_its_rounds():
    def row(peer, *speeds, status="ok"):
        rounds = [{"samples_per_s": s} for s in speeds]
        return {"peer": peer, "status": status, "why": "a | b\nc", "rounds": rounds}

    rows = [row("slow", 10.0, 10.0, 40.0), row("gone", status="missing")]
    rows += [row("rasterio", 100.0, 200.0, 100.0), row("chaski", 300.0, 100.0, 400.0)]
    report.summarise(rows)
    assert rows[3]["samples_per_s"] == {"min": 100, "median": 300, "max": 400}
    assert rows[3]["ratio"] == {"min": 0.5, "median": 3, "max": 4}
    shape = {"shape": {"name": "s"}, "about": "", "imagery": "", "bytes": {}, "rows": rows}
    table = [line.split("|")[1:-1] for line in report.table(shape) if line.startswith("|")]
    assert {len(cells) for cells in table} == {8}
    assert [c[0].strip() for c in table[2:]] == ["chaski", "rasterio", "slow", "gone"]
    assert table[2][1:3] == [" 300 (100 – 400) ", " 3.00 (0.50 – 4.00) "]
    assert table[5][1] == " missing: a / b c "


@pytest.mark.parametrize(
    "args, message",
    [
        (["--shapes", "none"], "'none' does not exist: choose from chips"),
        (["--peers", "none"], "'none' does not exist: choose from chaski"),
        (["--rounds", "0"], "--rounds is 0: it must be 1 to 1000"),
        (["--seconds", "nan"], "--seconds is nan"),
        (["--python", "/no/python"], "no such program"),
        (["--python", "rumi1=/no/python"], "no such program"),
        (["--imagery", "/no/folder"], "no such directory"),
        (["--engine", "/no/engine"], "no such command"),
        (["-o", __file__ + "/x"], "-o is"),
    ],
)
def test_arguments_are_checked_before_anything_is_made(tmp_path, capsys, args, message):
    with pytest.raises(SystemExit) as e:
        run.main(["-o", str(tmp_path), "--engine", sys.executable, *args])
    assert e.value.code == 2 and message in capsys.readouterr().err


def test_a_peer_that_cannot_says_why(tmp_path, monkeypatch):
    python = tmp_path / "python"
    python.write_text(PYTHON)
    python.chmod(0o755)
    args = ["--python", str(python), "--work", str(tmp_path / "work"), "-o", str(tmp_path / "out")]
    args += ["--engine", sys.executable, "--shapes", "windows,store-30ms", "--seconds", "0.1"]
    args += ["--peers", "tifffile,chaski-connect", "--workers", "16", "--rounds", "1"]
    assert run.main(args) == 0
    found = json.loads((tmp_path / "out" / "peers.json").read_text())["shapes"]
    windows, store = ({r["peer"]: (r["status"], r.get("why")) for r in s["rows"]} for s in found)
    assert windows["tifffile"] == ("cannot", "windows: it is set up to read whole files")
    assert windows["chaski-connect"] == ("ok", None)
    assert (
        store["chaski-connect"][0] == "cannot" and "beside the data" in store["chaski-connect"][1]
    )
    assert "cannot: windows: it is set up" in (tmp_path / "out" / "peers.md").read_text()


@pytest.fixture
def python(forks, tmp_path) -> str:
    """A Python for a dozen processes that would take 2 s of a processor each to import PyTorch."""
    return str(forks("torch", "rasterio").interpreter(tmp_path / "python"))


@pytest.mark.timeout(900)
def test_a_store_is_read_through_its_link(tmp_path, binary, python):
    work, out = tmp_path / "work", tmp_path / "report"
    args = ["--quick", "--python", python, "--work", str(work), "-o", str(out)]
    args += ["--engine", binary, "--shapes", "store-30ms-8kb", "--peers", "chaski,rasterio"]
    args += ["--seconds", "0.2"]
    assert run.main(args) == 0
    (shape,) = json.loads((out / "peers.json").read_text())["shapes"]
    sizes = [p.stat().st_size for p in (work / "stored-8kb" / "tog").glob("*.tif")]
    for row in nonempty(shape["rows"]):
        assert row["status"] == "ok", row
        (figures,) = row["rounds"]
        useful = figures["samples_per_s"] * sum(sizes) / len(sizes)
        assert math.isclose(figures["of_link"], useful / 30e6) and 0 < figures["of_link"] < 1
        assert figures["requests_per_sample"] >= 1 and figures["first_batch_s"] > 0.03
    assert "| of the link | requests a sample |" in (out / "peers.md").read_text()


@pytest.mark.timeout(1800)
def test_one_command_measures_and_writes_the_report(tmp_path, binary, python):
    out = tmp_path / "report"
    command = [sys.executable, str(ROOT / "bench" / "peers" / "run.py"), "--quick"]
    command += ["--python", python, "--work", str(tmp_path / "work"), "-o", str(out)]
    command += ["--engine", binary, "--shapes", "index-1x64", "--peers", ",".join(PEERS)]
    command += ["--seconds", "0.05"]
    p = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert p.returncode == 0, p.stderr

    result = json.loads((out / "peers.json").read_text())
    assert result["settings"] == {"rounds": 1, "seconds": 0.05, "workers": 2, "quick": True}
    assert {"torch", "rasterio", "GDAL"} <= result["machine"]["versions"].keys()
    (shape,) = result["shapes"]
    assert [row["peer"] for row in shape["rows"]] == PEERS
    for row in shape["rows"]:
        assert row["status"] == "ok", row
        (measured,) = row["rounds"]
        assert row["samples_per_s"]["median"] == measured["samples_per_s"] > 0
    ours, _, base = (row["samples_per_s"]["median"] for row in shape["rows"])
    assert math.isclose(shape["rows"][0]["ratio"]["median"], ours / base)

    text = (out / "peers.md").read_text()
    assert text == p.stdout
    table = [line.split("|")[1].strip() for line in text.splitlines() if line.startswith("| ")]
    assert sorted(table) == sorted(["peer", *PEERS, "shape", "index-1x64"])
    assert xml.etree.ElementTree.parse(out / "peers.svg").getroot().tag.endswith("svg")

    # A replaced file is noticed by every loader that is checked.
    chips = sorted((tmp_path / "work" / "index-1x64" / "tog").glob("*.tif"))
    os.replace(chips[1], chips[0])
    chips[1].write_bytes(chips[0].read_bytes())
    p = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert p.returncode == 0, p.stderr
    (shape,) = json.loads((out / "peers.json").read_text())["shapes"]
    assert [row["status"] for row in shape["rows"]] == ["wrong", "ok", "wrong"]
