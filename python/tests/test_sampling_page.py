"""The blocks of docs/fields.md, then those of docs/sampling.md, run."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import numpy as np
import pytest
import rasters
import recipes
from conftest import nonempty

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGE = (DOCS / "fields.md").read_text() + (DOCS / "sampling.md").read_text()
PAGE = PAGE.replace("\\\n", "")  # commands of several lines
BLOCKS = re.findall(r"```python\n(.*?)```\n", PAGE, re.DOTALL)
COMMAND = re.search(r"```\nchaski (stats .*?)\n```", PAGE)
SIDE = 96


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """The directory that the page uses."""
    pytest.importorskip("rasterio", reason="needs rasterio to write chips")
    r = np.random.default_rng(1)
    lines = ["image,mask,site,date,cloud,class"]
    for sub in ("images", "masks"):
        (tmp_path / sub).mkdir()
    for i in range(24):
        names = f"images/{i:02}.tif", f"masks/{i:02}.tif"
        image = r.integers(1, 3000, (3, SIDE, SIDE), dtype=np.uint16)
        for name, x in zip(names, (image, (image[:1] > 2900).astype(np.uint8) * 3), strict=True):
            tiles = {"tiled": True, "blockxsize": 32, "blockysize": 32, "compress": "zstd"}
            rasters.write(tmp_path / name, x, **tiles)
        kind = ("forest", "water", "city")[i % 3]
        site = ("valley", "coast", "hill")[i // 8]
        lines.append(f"{names[0]},{names[1]},{site},2024-{i % 8 + 1:02}-03,{i * 7 % 60},{kind}")
    bands = ["B02,B03,B8A"] + [
        f"masks/{i:02}.tif,images/{i:02}.tif,masks/{i:02}.tif" for i in range(24)
    ]
    (tmp_path / "bands.csv").write_text("\n".join(bands) + "\n")
    (tmp_path / "chips.csv").write_text("\n".join(lines) + "\n")
    return tmp_path


def test_blocks(data, binary, monkeypatch):
    monkeypatch.chdir(data)
    assert COMMAND is not None and len(BLOCKS) == 12
    subprocess.run([binary, *COMMAND[1].split()], check=True, capture_output=True)
    calls = 0

    def step(*tensors):
        nonlocal calls
        calls += 1
        assert len({len(t) for t in tensors}) == 1
        return np.arange(len(tensors[0])) + 1.0  # a loss of each sample

    def model(image):
        step(image)
        return image[:, :1]

    names, labels = {"step": step, "model": model}, set()
    for block in nonempty(BLOCKS):
        calls = 0
        labels |= recipes.run(block, names, {0, 3})
        assert (calls > 0) == any(word in block for word in ("load(", "Dataset(")), block
    assert labels == {0, 3}
