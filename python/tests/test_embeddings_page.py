"""The blocks of docs/embeddings.md and docs/eopf.md run on made copies, judged by numpy."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import nonempty

pytestmark = pytest.mark.usefixtures("one_engine")

rasterio = pytest.importorskip("rasterio")
ROOT = Path(__file__).resolve().parents[2]
UTM = {"driver": "GTiff", "crs": "EPSG:32633", "tiled": True, "blockxsize": 64, "blockysize": 64}


def blocks(name: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```\n", (ROOT / "docs" / name).read_text(), re.DOTALL)


def seen(block: str) -> list[tuple[Any, ...]]:
    """Runs a block, and returns what it trains on."""
    out: list[tuple[Any, ...]] = []
    names = {"train": lambda *arrays: out.append(tuple(map(np.array, arrays)))}
    exec(block, names)
    assert out
    return out


def corner(scene: np.ndarray, window: np.ndarray) -> tuple[int, int]:
    """Returns where a window (b, y, x) lies in a scene, by its pixels."""
    h, w = window.shape[1:]
    for y, x in np.argwhere(scene[0, : -h + 1 or None, : -w + 1 or None] == window[0, 0, 0]):
        if np.array_equal(scene[:, y : y + h, x : x + w], window):
            return int(y), int(x)
    raise AssertionError("no such window")


@pytest.mark.parametrize("south_up", [False, True])
def test_alphaearth(tmp_path, monkeypatch, south_up):
    monkeypatch.chdir(tmp_path)
    r = np.random.default_rng(1)
    stored = r.integers(-127, 128, (64, 200, 200)).astype(np.int8)
    place = rasterio.Affine(10, 0, 500000, 0, -10, 5000000)
    labels = r.integers(0, 10, (1, 100, 100)).astype(np.uint8)
    Path("alphaearth/2023").mkdir(parents=True)
    how = {**UTM, "width": 200, "height": 200, "nodata": -128, "count": 64, "dtype": "int8"}
    flipped = rasterio.Affine(10, 0, 500000, 0, 10, 5000000 - 2000)
    with rasterio.open("alphaearth/2023/a.tiff", "w", transform=place, **how) as f:
        f.write(stored)
    if south_up:
        with rasterio.open("alphaearth/2023/a.tiff", "w", transform=flipped, **how) as f:
            f.write(stored[:, ::-1])
    coarse = rasterio.Affine(20, 0, 500000, 0, -20, 5000000)
    how = {**UTM, "width": 100, "height": 100, "count": 1, "dtype": "uint8"}
    with rasterio.open("worldcover.tif", "w", transform=coarse, **how) as f:
        f.write(labels)
    got = seen(blocks("embeddings.md")[0])
    wide = np.sign(stored) * (stored.astype(np.float64) / 127.5) ** 2
    scene = wide.astype(np.float32)
    fine = labels.repeat(2, axis=1).repeat(2, axis=2)
    assert sum(len(image) for image, _ in got) == 64
    for image, mask in nonempty(got):
        assert image.dtype == np.float32 and mask.dtype == np.int64
        for one, label in nonempty(zip(image, mask, strict=True)):
            y, x = corner(scene, one)
            assert np.array_equal(label, fine[:, y : y + 64, x : x + 64])


def test_tessera(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    r = np.random.default_rng(2)
    scenes = []
    for name in ("grid_5.05_52.15", "grid_5.15_52.15"):
        folder = Path("tessera/2024", name)
        folder.mkdir(parents=True)
        image = r.integers(-127, 128, (90, 110, 128)).astype(np.int8)
        scale = r.random((90, 110), np.float32)
        np.save(folder / f"{name}.npy", image)
        np.save(folder / f"{name}_scales.npy", scale)
        scenes.append((image.astype(np.float32) * scale[..., None]).transpose(2, 0, 1))
    got = seen(blocks("embeddings.md")[1])
    assert sum(len(image) for (image,) in got) == 32
    which = []
    for (image,) in got:
        for one in image:
            found = [(one[0, 0, 0] == s[0]).any() for s in scenes]
            which.append(found.index(True))
            corner(scenes[which[-1]], one)
    assert sorted(which) == [0] * 16 + [1] * 16


def test_rows(tmp_path, monkeypatch):
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    monkeypatch.chdir(tmp_path)
    r = np.random.default_rng(3)
    vectors = r.normal(size=(600, 64)).astype(np.float32)
    crops, years = r.choice(["maize", "rice", "wheat"], 600), r.integers(2018, 2023, 600)
    table = {"embedding": pa.array(list(vectors)), "crop": crops, "year": years}
    pq.write_table(pa.table(table), "points.parquet")
    got = seen(blocks("embeddings.md")[2])
    x, y = (np.concatenate(parts) for parts in zip(*got, strict=True))
    kept = years >= 2020
    assert x.dtype == np.float32 and x.shape == (kept.sum(), 64)
    order = np.lexsort(x.T), np.lexsort(vectors[kept].T)
    assert np.array_equal(x[order[0]], vectors[kept][order[1]])
    names = np.array(["maize", "rice", "wheat"])
    assert np.array_equal(names[y[order[0]]], crops[kept][order[1]])


def test_eopf(tmp_path, monkeypatch):
    """The product has the groups, attributes and encodings of EOPF's Sentinel-2 L2A."""
    xarray = pytest.importorskip("xarray")
    pytest.importorskip("zarr")
    monkeypatch.chdir(tmp_path)
    r = np.random.default_rng(4)
    store = "S2B_MSIL2A_20250601.zarr"
    packed = {"scale_factor": 1e-4, "add_offset": -0.1, "_FillValue": 0, "dtype": "uint16"}
    xarray.Dataset(attrs={"other_metadata": {}}).to_zarr(store, mode="w", zarr_format=2)

    def group(path, side, metres, arrays, encoding):
        edges = metres * (np.arange(side) + 0.5)
        coords = {"x": 300000 + edges, "y": 4900000 - edges}
        data = {n: (("y", "x"), v, {"proj:epsg": 32632}) for n, v in arrays.items()}
        how = {n: {**encoding, "chunks": (64, 64)} for n in arrays}
        dataset = xarray.Dataset(data, coords)
        dataset.to_zarr(store, group=path, mode="a", encoding=how, zarr_format=2)
        return xarray.open_zarr(store, group=path, decode_coords=False)

    def reflectance(side):
        return r.integers(1, 9000, (side, side)) * 1e-4 - 0.1

    bands = ("b02", "b03", "b04", "b08")
    fine = group(
        "measurements/reflectance/r10m", 200, 10, {b: reflectance(200) for b in bands}, packed
    )
    coarse = group("measurements/reflectance/r20m", 100, 20, {"b11": reflectance(100)}, packed)
    classes = {"scl": r.integers(1, 12, (100, 100)).astype(np.uint8)}
    scl = group("conditions/mask/l2a_classification/r20m", 100, 20, classes, {})
    image = np.stack([fine[b].values for b in bands]).astype(np.float32)
    swir, mask = coarse["b11"].values.astype(np.float32), scl["scl"].values
    got = seen(blocks("eopf.md")[0])
    assert sum(len(parts[0]) for parts in got) == 100
    for parts in nonempty(got):
        assert [p.shape[1:] for p in parts] == [(4, 64, 64), (1, 32, 32), (1, 32, 32)]
        for one, other, label in nonempty(zip(*parts, strict=True)):
            ys, xs = np.nonzero(mask[:69, :69] == label[0, 0, 0])
            places = [
                (y, x)
                for y, x in zip(ys.tolist(), xs.tolist(), strict=True)
                if np.array_equal(mask[y : y + 32, x : x + 32], label[0])
            ]
            ((y, x),) = places
            assert np.allclose(other[0], swir[y : y + 32, x : x + 32], rtol=1e-6, atol=1e-7)
            want = image[:, 2 * y : 2 * y + 64, 2 * x : 2 * x + 64]
            assert np.allclose(one, want, rtol=1e-6, atol=1e-7)
