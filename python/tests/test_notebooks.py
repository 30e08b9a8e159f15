"""The code of the tutorials runs. `make notebooks` executes them as notebooks."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

pytest.importorskip("matplotlib")
pytest.importorskip("rasterio")
import hub  # noqa: E402 - it imports rasterio

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((ROOT / "docs" / "tutorials").glob("*.ipynb"))
CHECKS = {
    "bottleneck": "assert after < before and shared < 16 * before",
    "containers": "assert losses[-1] < losses[0] / 2",
    "hub": "assert len(chosen) == 10 and losses[-1] < losses[0] / 2, losses",
    "own-files": "assert np.mean(losses) < 0.5 and right / total > 0.8",
    "polygons": (
        "assert abs(abs(area) - pixels) < 0.02 * pixels\nassert losses[-1] < losses[0] / 2"
    ),
    "resume": "assert killed == 20 and seen == want and once == [True, True]",
    "time-series": (
        "peaks = [int(np.median(ndvi[:, crop == k], axis=1).argmax()) + 1 for k in (0, 1)]\n"
        "assert peaks == [5, 8], peaks  # May and August"
    ),
}
"""What has to hold after the last cell. Readers do not see it."""
SMALLER = {"bottleneck": ("n = 1536\n", "n = 1024\n")}  # files of half the size
"""What is replaced in a tutorial, for less work of the same kind. `make notebooks` runs all."""
IMPORTED = "torch", "matplotlib.pyplot", "rasterio", "pyarrow.parquet"
"""What the notebooks import, once for all of them."""


@pytest.fixture(scope="module")
def endpoint():
    """What HF_ENDPOINT is: the hub's answers come from this machine, see hub.py."""
    with hub.serve() as url:
        yield url


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_notebook(path, forks, tmp_path, binary, endpoint):
    cells = [c for c in json.loads(path.read_text())["cells"] if c["cell_type"] == "code"]
    assert all(c["outputs"] or c["execution_count"] for c in cells)  # as the site shows them
    code = ["".join(c["source"]) for c in cells]
    assert not any("assert" in text for text in code)  # tests are no part of a tutorial
    if path.stem in SMALLER:
        large, small = SMALLER[path.stem]
        assert sum(text.count(large) for text in code) == 1
        code = [text.replace(large, small) for text in code]
    imported = forks(*IMPORTED)
    python = imported.interpreter(tmp_path / "python")  # of the ranks that a cell starts
    start = f"import sys\nsys.executable = {str(python)!r}"
    (tmp_path / "cells.py").write_text("\n\n".join([start, *code, CHECKS[path.stem]]))
    log = tmp_path / "log"
    env = {"MPLBACKEND": "agg", "TMPDIR": str(tmp_path), "CHASKI_BIN": binary}
    env["HF_ENDPOINT"] = endpoint
    env["PATH"] = os.pathsep.join([str(Path(binary).parent), os.environ["PATH"]])
    p = imported.run([tmp_path / "cells.py"], log, tmp_path, **env)
    try:
        assert p.wait(500) == 0, log.read_text()
    finally:
        p.kill()
