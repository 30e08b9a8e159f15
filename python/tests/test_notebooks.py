"""The code of the tutorials runs. `make notebooks` executes them as notebooks."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

pytest.importorskip("matplotlib")
pytest.importorskip("rasterio")
ROOT = Path(__file__).resolve().parents[2]
# The one about a kill imports PyTorch in four processes; test_distributed.py does what it does.
NOTEBOOKS = [p for p in (ROOT / "docs" / "tutorials").glob("*.ipynb") if p.stem != "resume"]
IMPORTED = "torch", "torch._dynamo", "matplotlib.pyplot", "rasterio", "pyarrow.parquet"
"""What the notebooks import, and PyTorch's optimizers: once for all of them."""


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_notebook(path, forks, tmp_path, binary):
    cells = [c for c in json.loads(path.read_text())["cells"] if c["cell_type"] == "code"]
    assert all(c["outputs"] or c["execution_count"] for c in cells)  # as the site shows them
    (tmp_path / "cells.py").write_text("\n\n".join("".join(c["source"]) for c in cells))
    log = tmp_path / "log"
    env = {"MPLBACKEND": "agg", "TMPDIR": str(tmp_path), "CHASKI_BIN": binary}
    env["PATH"] = os.pathsep.join([str(Path(binary).parent), os.environ["PATH"]])
    p = forks(*IMPORTED).run([tmp_path / "cells.py"], log, tmp_path, **env)
    try:
        assert p.wait(500) == 0, log.read_text()
    finally:
        p.kill()
