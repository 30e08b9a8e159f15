"""`chaski make`: rasterio finds each chip at its place, with the pixels of its window."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import numpy as np
import pytest
from conftest import nonempty

import chaski

RECIPE = """
collection:
  id: coast
  dataset_version: "1.0"
  description: Chips
  licenses: [CC-BY-4.0]
  providers: [{name: Ana}]
  tasks: [semantic-segmentation]
source: .
windows: {kind: grid, size: 64, stride: 48, pad: true}
fields:
  - {name: image, pattern: "images/{id}.tif", bands: [2, 0]}
  - {name: mask, pattern: "masks/{id}.tif"}
split: {by: hash, seed: 1, shares: {train: 0.5, val: 0.5}}
"""


@pytest.fixture
def scenes(tmp_path: Path) -> Path:
    """Two scenes: one turned by 30 degrees, one in a CRS without a code; masks of 20 m."""
    rasterio = pytest.importorskip("rasterio", reason="needs rasterio to write scenes")
    r = np.random.default_rng(1)
    custom = "+proj=laea +lat_0=12.5 +lon_0=-71.25 +x_0=0 +y_0=0 +datum=WGS84 +units=m"
    for k, crs in enumerate([custom, "EPSG:32619"]):
        turn = rasterio.Affine.rotation(30 * k)
        to = rasterio.Affine.translation(300_000 + 9000 * k, 1_400_000) @ turn
        for folder, bands, side, size in (("images", 3, 200, 10), ("masks", 1, 100, 20)):
            (tmp_path / folder).mkdir(exist_ok=True)
            x = r.integers(1, 3000, (bands, side, side), dtype=np.uint16)
            x[:, : side // 4, : side // 4] = 0
            with rasterio.open(
                tmp_path / folder / f"s{k}.tif",
                "w",
                count=bands,
                height=side,
                width=side,
                dtype=x.dtype,
                crs=crs,
                nodata=0 if bands == 3 else None,
                transform=to @ rasterio.Affine.scale(size, -size),
            ) as f:
                f.write(x)
                f.descriptions = [f"B{b}" for b in range(bands)]
    (tmp_path / "recipe.yaml").write_text(RECIPE)
    return tmp_path


def make(binary: str, folder: Path, *args: str) -> str:
    """Runs the command in a folder."""
    done = subprocess.run(
        [binary, "make", *args], capture_output=True, text=True, cwd=folder, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def rows(binary: str, path: Path, query: str) -> list[dict]:
    """Returns the rows of a query."""
    out = subprocess.run(
        [binary, "sql", "--format", "json", query, str(path)], capture_output=True, check=True
    )
    found = json.loads(out.stdout)
    return [dict(zip(found["columns"], row, strict=True)) for row in found["rows"]]


def test_chips_lie_where_rasterio_looks(scenes, binary):
    rasterio = pytest.importorskip("rasterio")
    out = scenes / "chips.tacozip"
    binary = str(Path(binary).resolve())
    make(binary, scenes, "-o", str(out), "--stats", "stats.json", "recipe.yaml")
    query = 'SELECT "l0:chaski:source" AS source, "l0:chaski:window" AS box, "l1:id" AS id,'
    query += ' "l1:internal:offset" AS off, "l1:internal:size" AS size FROM l1'
    found = rows(binary, out, query)
    assert len(found) == 2 * 16 * 2  # grids of 4 by 4: 3 * 48 + 64 is past 200
    for row in nonempty(found):
        y, x, h, w = row["box"]
        path, step = row["source"], 1
        if row["id"] == "mask":
            path, step = path.replace("images", "masks"), 2
        y, x, h, w = y // step, x // step, h // step, w // step
        bands = [3, 1] if row["id"] == "image" else [1]
        vsi = f"/vsisubfile/{row['off']}_{row['size']},{out}"
        with rasterio.open(scenes / path) as scene, rasterio.open(vsi) as chip:
            # Not by boundless=True, which moves pixels of a scene that is turned.
            ends = min(y + h, scene.height), min(x + w, scene.width)
            window = rasterio.windows.Window.from_slices((y, ends[0]), (x, ends[1]))
            past = ((0, 0), (0, y + h - ends[0]), (0, x + w - ends[1]))
            want = np.pad(scene.read(bands, window=window), past)
            assert np.array_equal(chip.read(), want), row
            assert chip.crs == scene.crs
            assert chip.transform.almost_equals(scene.window_transform(window), 1e-6)
            assert chip.nodata == scene.nodata
            assert list(chip.descriptions) == [scene.descriptions[b - 1] for b in bands]
            # Past the edge nothing was measured.
            masks = np.pad(scene.read_masks(bands, window=window), past)
            assert np.array_equal(chip.read_masks(), masks), row
    report = json.loads((scenes / "stats.json").read_text())
    assert set(report["fields"]) == {"image", "mask"}


def test_a_container_that_trains(scenes, binary):
    make(str(Path(binary).resolve()), scenes, "-o", "chips.tacozip", "recipe.yaml")
    seen = 0
    for part in ("train", "val"):
        options = dict(
            fields={"image": "image", "mask": "mask"}, rows=chaski.Rows(split=part), batch_size=4
        )
        with chaski.load(str(scenes / "chips.tacozip"), **options) as loader:
            for b in loader:
                assert b["image"].shape[1:] == (2, 64, 64)
                assert b["mask"].shape[1:] == (1, 32, 32)
                seen += int(b["valid"].sum())
    assert seen == 32


def test_python(scenes, binary, monkeypatch):
    """A recipe of Python is that of the file, and its relative paths are of the directory."""
    yaml = pytest.importorskip("yaml")
    make(str(Path(binary).resolve()), scenes, "-o", "file.tacozip", "recipe.yaml")
    monkeypatch.chdir(scenes)
    recipe = {**yaml.safe_load(RECIPE), "source": Path(".")}
    recipe["windows"] = {**recipe["windows"], "size": np.int64(64)}
    ds = chaski.make(recipe, "dict.tacozip", stats="stats.json", report="page.html", workers=1)
    assert len(ds) == 32
    assert (scenes / "dict.tacozip").read_bytes() == (scenes / "file.tacozip").read_bytes()
    assert set(json.loads((scenes / "stats.json").read_text())["fields"]) == {"image", "mask"}
    assert "<html" in (scenes / "page.html").read_text()
    monkeypatch.chdir("/")
    parts = chaski.make(scenes / "recipe.yaml", scenes / "parts", part_size="1", resume=True)
    assert sorted(parts.ids) == sorted(ds.ids) and (scenes / "parts/part0001.tacozip").exists()


def test_nan_is_nodata(scenes, binary, monkeypatch):
    """JSON has no number for it: a dict of Python gives it as text."""
    rasterio = pytest.importorskip("rasterio")
    monkeypatch.chdir(scenes)
    about = {"id": "nan", "dataset_version": "1.0", "description": "N", "licenses": ["MIT"]}
    about |= {"providers": [{"name": "Ana"}], "tasks": ["other"]}
    field = {"dtype": "float32", "nodata": float("nan")}
    ds = chaski.make({"collection": about, "source": "images", "fields": [field]}, "nan.tacozip")
    with rasterio.open(ds.read(0).vsi) as chip:
        assert np.isnan(chip.nodata) and np.isnan(chip.read()[:, :50, :50]).all()
        assert not np.isnan(chip.read()[:, 50:]).any()


def test_card(scenes, binary, monkeypatch):
    """What a card says to read the container runs, and each column is described."""
    monkeypatch.chdir(scenes)
    chaski.make("recipe.yaml", "chips.tacozip")
    said = subprocess.run([binary, "card", "chips.tacozip"], capture_output=True, text=True)
    lines = said.stdout.replace("\\", "").splitlines()
    (line,) = (line.removeprefix("- ") for line in lines if line.startswith("- chaski."))
    assert eval(line).read("mask").array().shape == (1, 32, 32)
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines if "|" in line]
    told = {row[0]: row[2] for row in rows if len(row) == 3 and ":" in row[0]}
    assert {"chaski:source", "chaski:window", "stac:crs"} <= told.keys() and all(told.values())


@pytest.mark.parametrize(
    ("recipe", "options", "error", "message"),
    [
        ({"source": "x"}, {}, chaski.EngineError, "^recipe: collection is missing"),
        ({"source": "x", "windos": 1}, {}, chaski.EngineError, 'no member "windos"'),
        ({"source": object()}, {}, chaski.SpecError, "recipe is <object"),
        (7, {}, chaski.SpecError, "recipe is 7: it must be a file or a dict"),
        ("none.yaml", {}, chaski.EngineError, "none.yaml"),
        ({}, {"part_size": "4 lots"}, chaski.SpecError, "part"),
        ({}, {"workers": 0}, chaski.SpecError, "workers is 0"),
    ],
)
def test_wrong_in_python(tmp_path, binary, recipe, options, error, message):
    with pytest.raises(error, match=message):
        chaski.make(recipe, tmp_path / "c.tacozip", **options)
    assert not list(tmp_path.iterdir())


def test_wrong_recipes(scenes, binary):
    (scenes / "wrong.yaml").write_text(RECIPE + "quallity: {max_nodata: 0.1}\n")
    done = subprocess.run(
        [binary, "make", "-o", str(scenes / "x.tacozip"), str(scenes / "wrong.yaml")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1 and not (scenes / "x.tacozip").exists()
    assert 'no member "quallity"; there are bad_samples' in done.stderr
