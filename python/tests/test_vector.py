"""Fields of shapes through the real engine, against rasterio."""

from __future__ import annotations

import json
import re
import struct
from pathlib import Path

import numpy as np
import pytest

import chaski

rasterio = pytest.importorskip("rasterio")
pq = pytest.importorskip("pyarrow.parquet")

pytestmark = pytest.mark.usefixtures("binary")

N, SIZE = 6, 64


def transform(i: int) -> rasterio.Affine:
    return rasterio.Affine(10, 0, 500000 + 300 * i, 0, -10, 4600000 - 200 * i)


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, list[tuple[dict, int]]]:
    """A directory of images, a GeoParquet file of triangles, and the triangles."""
    folder = tmp_path_factory.mktemp("vector")
    (folder / "images").mkdir()
    for i in range(N):
        with rasterio.open(
            folder / "images" / f"{i}.tif", "w", "GTiff", SIZE, SIZE, 1, "EPSG:32630", transform(i),
            "uint8",
        ) as f:  # fmt: skip
            f.write(np.full((1, SIZE, SIZE), i, np.uint8))
    rng = np.random.default_rng(4)
    rings = rng.uniform((500000, 4598000), (502500, 4600000), (80, 1, 2)) + rng.uniform(
        -120, 120, (80, 3, 2)
    )
    rings = np.concatenate([rings, rings[:, :1]], axis=1)
    values = rng.integers(1, 200, 80)
    head = struct.pack("<BIII", 1, 3, 1, 4)
    pa = pytest.importorskip("pyarrow")
    crs = {"name": "UTM", "id": {"authority": "EPSG", "code": 32630}}
    column = {"encoding": "WKB", "geometry_types": ["Polygon"], "crs": crs}
    geo = {"version": "1.1.0", "primary_column": "geometry", "columns": {"geometry": column}}
    table = pa.table(
        {
            "class": values,
            "name": ["even" if v % 2 == 0 else "odd" for v in values],
            "geometry": [head + ring.astype("<f8").tobytes() for ring in rings],
        }
    )
    path = folder / "shapes.parquet"
    pq.write_table(table.replace_schema_metadata({"geo": json.dumps(geo)}), path)
    shapes = [{"type": "Polygon", "coordinates": [ring.tolist()]} for ring in rings]
    return folder / "images", path, list(zip(shapes, map(int, values), strict=True))


def burn(shapes: list[tuple[dict, int]], t: rasterio.Affine, size: int, **o: bool) -> np.ndarray:
    from rasterio.features import rasterize

    return rasterize(shapes, (size, size), transform=t, dtype="int64", **o)


@pytest.mark.parametrize("touched", [False, True])
def test_masks_of_windows(scene, touched: bool):
    images, path, shapes = scene
    fields = {
        "image": chaski.Field(),
        "mask": chaski.Vector(path, "class", all_touched=touched),
        "id": chaski.Vector(path, kind="instances", all_touched=touched),
        "odd": chaski.Vector(path, "name", classes=["odd", "none"], all_touched=touched),
    }
    rows = 0
    with chaski.load(images, batch_size=4, window=32, fields=fields, windows=True) as loader:
        kinds = {f.name: (f.kind, f.dtype, f.axes) for f in loader.fields}
        assert kinds["mask"] == ("vector", "int64", ("n", "y", "x"))
        assert kinds["id"][1] == "int32"
        assert kinds["odd"][1] == "uint8"
        for batch in loader:
            for k in np.flatnonzero(batch["valid"]):
                y, x = batch["window"][k][:2]
                t = transform(int(batch["image"][k].max())) @ rasterio.Affine.translation(x, y)
                mask = burn(shapes, t, 32, all_touched=touched)
                assert np.array_equal(batch["mask"][k], mask)
                ids = [(s, i + 1) for i, (s, _) in enumerate(shapes)]
                assert np.array_equal(batch["id"][k], burn(ids, t, 32, all_touched=touched))
                odd = [(s, 1) for s, v in shapes if v % 2]
                assert np.array_equal(batch["odd"][k], burn(odd, t, 32, all_touched=touched))
                rows += mask.any()
    assert rows >= N - 2


def test_state_and_dict(scene):
    images, path, _ = scene
    fields = {"image": {}, "mask": {"vector": {"path": path, "column": "class", "dtype": "uint8"}}}
    options = dict(batch_size=1, window=32, fields=fields, seed=5)
    with chaski.load(images, **options) as loader:
        want = [b["mask"].copy() for b in loader]
    for step in range(N):
        with chaski.load(images, **options) as loader:
            it = iter(loader)
            for _ in range(step):
                next(it)
            state = loader.state_dict()
        with chaski.load(images, **options) as loader:
            loader.load_state_dict(state)
            assert np.array_equal([b["mask"] for b in loader], want[step:])


@pytest.mark.parametrize(
    ("vector", "says"),
    [
        ({"path": "x", "kind": "boxes"}, "not supported yet"),
        ({"path": "x", "colour": 1}, "colour"),
        ("x", "must be a Vector"),
    ],
)
def test_vectors_that_are_wrong(scene, vector, says):
    with pytest.raises(chaski.SpecError, match=says):
        chaski.load(scene[0], batch_size=1, fields={"image": {}, "mask": {"vector": vector}})


def test_page(scene, tmp_path, monkeypatch):
    """The block of docs/labels.md about shapes runs."""
    page = Path(__file__).resolve().parents[2] / "docs" / "labels.md"
    blocks = re.findall(r"^```python\n(.*?)^```$", page.read_text(), re.DOTALL | re.MULTILINE)
    (block,) = (b for b in blocks if "chaski.Vector(" in b)
    (tmp_path / "images").symlink_to(scene[0])
    (tmp_path / "buildings.parquet").symlink_to(scene[1])
    monkeypatch.chdir(tmp_path)
    seen = []
    exec(block.replace("window=128", "window=32"), {"step": lambda x, y: seen.append((x, y))})
    assert sum(len(y) for _, y in seen) == N
    assert all(x.shape[1:] == (1, 32, 32) and y.shape[1:] == (32, 32) for x, y in seen)
    assert any(y.any() for _, y in seen)
