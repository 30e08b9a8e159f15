"""The block and the command of docs/scenes.md run as they stand, over scenes of two zones."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import rasters

import chaski

PAGE = Path(__file__).resolve().parents[2] / "docs" / "scenes.md"


@pytest.fixture
def ground(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    rasterio = pytest.importorskip("rasterio", reason="needs rasterio to write scenes")
    for kind, bands, dtype in (("scenes", 3, "uint16"), ("labels", 1, "uint8")):
        (tmp_path / "ground" / kind).mkdir(parents=True)
        for name, epsg, x in (("a", 32630, 747000), ("b", 32631, 249000)):
            profile: dict[str, Any] = dict(count=bands, dtype=dtype, height=300, width=300)
            profile |= dict(crs=f"EPSG:{epsg}", transform=rasterio.Affine(10, 0, x, 0, -10, 4.6e6))
            rasters.write(
                tmp_path / "ground" / kind / f"{name}.tif",
                np.full((bands, 300, 300), 7, dtype),
                **profile,
            )
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_block(ground: Path) -> None:
    block, sequence, joined, matched, predictions, split = re.findall(
        r"^```python\n(.*?)^```$", PAGE.read_text(), re.DOTALL | re.MULTILINE
    )
    steps = []

    def step(image: Any, label: Any) -> None:
        assert image.shape[1:] == (3, 64, 64) and label.shape[1:] == (64, 64)
        assert np.all(image == 7) and np.all(label == 7)
        steps.append(len(image))

    exec(block, {"step": step})
    assert sum(steps) == 64
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    times = np.array(["2024-05-02T10:00:09", "2024-05-02T10:00:00"], "datetime64[us]")
    paths = [f"ground/scenes/{name}.tif" for name in "ab"]
    table = pa.table({"image": paths, "cloud_cover": [3.0, 2.0], "datetime": times})
    parquet.write_table(table, "scenes.parquet")
    names: dict[str, Any] = {"chaski": chaski}
    exec(sequence, names)
    batch = names["batch"]
    assert batch["image"].shape[1:] == (6, 3, 64, 64) and batch["ok"].any()
    assert batch["steps"][batch["valid"]].sum(1).tolist() == [1] * batch["valid"].sum()  # one day
    exec(joined, names)
    assert names["batch"]["image"].shape[1:] == (3, 64, 64)
    assert np.all(names["batch"]["crops"] == 7)
    parquet.write_table(table.set_column(2, "datetime", pa.array(times[::-1])), "radar.parquet")
    parquet.write_table(table, "optical.parquet")
    Path("crops.csv").write_text("image\nground/labels/a.tif\nground/labels/b.tif\n")
    exec(matched, names)
    batch = names["batch"]
    assert batch["optical"].shape == batch["radar"].shape == (len(batch["valid"]), 4, 3, 64, 64)
    assert batch["crops"].shape[1:] == (64, 64) and batch["radar_ok"][:, 0].all()
    exec(predictions, {"chaski": chaski, "model": lambda image: image + 1})
    rasterio = pytest.importorskip("rasterio")
    with rasterio.open("probability.tif") as f:
        assert f.crs.to_epsg() == 32630 and f.bounds == (747000, 4597000, 750000, 4600000)
        assert set(np.unique(f.read())) == {8}  # 7 and 1, in all pixels of scene a
    split = split.replace("0.1,", "0.015,").replace("margin_m=500", "margin_m=50")  # 3 km of ground
    exec(split, names)
    with names["train"] as train, names["val"] as val:
        assert min(len(train), len(val)) >= 1


def test_command(ground: Path, binary: str) -> None:
    (line,) = re.findall(r"^chaski (.*)$", PAGE.read_text(), re.MULTILINE)
    command = [str(Path(binary).resolve()), *shlex.split(line)]
    out = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ground)
    assert re.search(r"samples\D+64\b", out.stdout), out.stdout
