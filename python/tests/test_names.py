"""Names that other programs write: GDAL's file systems, wherever a path can stand."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import rasters
from helpers import web

import chaski

rasterio = pytest.importorskip("rasterio")


@pytest.fixture
def names(tmp_path: Path) -> Iterator[dict[str, np.ndarray]]:
    """Names of three rasters, and their pixels."""
    pixels = {f"{i}.tif": np.full((2, 32, 32), i, "uint16") for i in range(3)}
    for name, image in pixels.items():
        rasters.write(tmp_path / name, image)
    with zipfile.ZipFile(tmp_path / "c.zip", "w", zipfile.ZIP_STORED) as z:
        for name in pixels:
            z.write(tmp_path / name, f"x/{name}")
    size = (tmp_path / "2.tif").stat().st_size
    with web(tmp_path) as (url, _):
        yield {
            f"/vsicurl/{url}/0.tif": pixels["0.tif"],
            f"/vsizip/{tmp_path}/c.zip/x/1.tif": pixels["1.tif"],
            f"/vsisubfile/0_{size},/vsizip//vsicurl/{url}/c.zip/x/2.tif": pixels["2.tif"],
        }


def test_read(
    names: dict[str, np.ndarray], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, image in names.items():
        assert np.array_equal(chaski.read(name), image)
        assert chaski.info(name)["path"] == name
    monkeypatch.chdir(tmp_path)
    for name in ("/vsizip/c.zip/x/1.tif", "/vsizip/{c.zip}/x/1.tif", "/vsisubfile/0,1.tif"):
        assert np.array_equal(chaski.read(name), np.full((2, 32, 32), 1, "uint16"))
        with rasterio.open(name) as d:  # GDAL means the same
            assert np.array_equal(chaski.read(name), d.read())


def test_load(names: dict[str, np.ndarray], tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    columns = {"id": list("abc"), "image": list(names)}
    (tmp_path / "t").mkdir()
    parquet.write_table(pa.table(columns), tmp_path / "t" / "list.parquet")
    item = {"type": "Feature", "stac_version": "1.0.0", "properties": {}}
    items = [
        item | {"id": i, "assets": {"image": {"href": name}}}
        for i, name in zip("abc", names, strict=True)
    ]
    catalog = chaski.stac(items, tmp_path / "t" / "stac.parquet", assets=["image"])
    want = [int(image[0, 0, 0]) for image in names.values()]
    for source in (tmp_path / "t" / "list.parquet", catalog, pa.table(columns), list(names)):
        fields = {} if isinstance(source, list) else {"fields": {"image": "image"}}
        with chaski.load(source, batch_size=3, shuffle=False, **fields) as loader:
            (batch,) = loader
            assert batch["image"][:, 0, 0, 0].tolist() == want


def test_errors(names: dict[str, np.ndarray]) -> None:
    with pytest.raises(chaski.UnsupportedError, match="/vsigzip/"):
        chaski.read("/vsigzip/a.tif.gz")
    with pytest.raises(chaski.UnsupportedError, match="cookie") as e:
        chaski.read("/vsicurl?cookie=geheim&url=http%3A%2F%2Fu%3Ageheim%40127.0.0.1%2Fa")
    assert "geheim" not in str(e.value)
    name = next(iter(names)).replace("://", "://user:geheim@").replace("0.tif", "none?sig=geheim")
    with pytest.raises(chaski.NotFoundError) as missing:
        chaski.read(name)
    assert "geheim" not in str(missing.value)


def test_taco(names: dict[str, np.ndarray], tmp_path: Path) -> None:
    collection = {
        "id": "x",
        "dataset_version": "1",
        "description": "d",
        "licenses": ["CC0-1.0"],
        "providers": [{"name": "n", "roles": ["producer"]}],
        "tasks": ["regression"],
    }
    samples = [{"id": i, "path": [{"id": "img", "path": n}]} for i, n in enumerate(names)]
    chaski.pack(samples, tmp_path / "p.tacozip", collection)
    base = next(iter(names)).removesuffix("0.tif")
    ds = chaski.taco.load(f"{base}p.tacozip")
    asset = ds.read("1").read("img")
    assert asset.vsi.startswith("/vsisubfile/") and os.fspath(asset) == asset.vsi
    assert np.array_equal(asset.array(), list(names.values())[1])
    assert np.array_equal(chaski.read(asset.vsi), list(names.values())[1])
    assert asset.bytes() == (tmp_path / "1.tif").read_bytes()
