"""Data sets that were drawn after the calls of docs/data-sets.md, where their writers are there."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
RUN = ROOT.parent / "shared/data/holdout/run.py"
sys.path.insert(0, str(ROOT / "tools/data_sets"))

import holdout  # noqa: E402
import page  # noqa: E402


def test_the_page_has_the_calls() -> None:
    assert (ROOT / "docs/more-data-sets.md").read_text() == page.page()


@pytest.mark.skipif(not RUN.exists(), reason="needs the writers of the data sets")
def test_each_set_loads_by_one_call(tmp_path, binary) -> None:
    for module in (
        "rasterio",
        "h5py",
        "PIL",
        "pandas",
        "xarray",
        "netCDF4",
        "zarr",
        "torch",
        "scipy",
    ):
        pytest.importorskip(module, reason="writes or judges the sets")
    calls = ROOT / "tools/data_sets/holdout.py"
    command = [sys.executable, str(RUN), "--calls", str(calls), str(tmp_path / "sets")]
    run = subprocess.run(command, capture_output=True, text=True, timeout=300)
    fell = [line for line in run.stdout.splitlines() if line.startswith("not equal:")]
    named = [any(f": {name} |" in line for name in holdout.LEFT) for line in fell]
    assert all(named), "\n".join(fell)
    assert " 0 with own code" in run.stdout
