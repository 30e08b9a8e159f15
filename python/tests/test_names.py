"""Names that other tools give to objects open the same object, wherever a name can stand."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import numpy as np
import pytest
from helpers import web

import chaski

DATA = Path(__file__).parents[2] / "testdata/taco3"


@pytest.fixture
def files(tmp_path):
    """A raster and a container behind HTTP: the prefix of names of GDAL, and the local files."""
    import shutil

    shutil.copytree(DATA / "scenes/DATA/0", tmp_path / "data", dirs_exist_ok=True)
    shutil.copy(DATA / "scenes.zip", tmp_path / "data")
    with web(tmp_path / "data") as (url, asked):
        yield f"/vsicurl/{url}", tmp_path / "data", asked


def pixels(source, **options):
    """The images that training gets."""
    with chaski.load(
        source, batch_size=1, pixels=chaski.Pixels(dtype="native"), **options
    ) as loader:
        return [np.array(b["image"][0]) for b in loader]


def test_arguments(files):
    prefix, local, asked = files
    want = chaski.read(local / "image.tif")
    assert np.array_equal(chaski.read(f"{prefix}/image.tif"), want)
    assert asked
    assert np.array_equal(pixels(f"{prefix}/image.tif")[0], want)
    table = chaski.taco.load(f"{prefix}/scenes.zip").data
    assert table["id"].to_pylist() == chaski.taco.load(local / "scenes.zip").data["id"].to_pylist()


def test_tables(files, tmp_path):
    prefix, local, _ = files
    want = chaski.read(local / "image.tif")
    table = tmp_path / "images.csv"
    table.write_text(f"id,image\na,{prefix}/image.tif\n")
    assert np.array_equal(pixels(table)[0], want)
    item = {
        "type": "Feature",
        "stac_version": "1.0.0",
        "id": "a",
        "properties": {"datetime": "2024-01-01T00:00:00Z"},
        "geometry": None,
        "links": [],
        "assets": {"image": {"href": f"{prefix}/image.tif"}},
    }
    items = tmp_path / "items.json"
    items.write_text(json.dumps({"type": "FeatureCollection", "features": [item]}))
    assert np.array_equal(pixels(items, fields={"image": "image"})[0], want)


def test_archives(files, tmp_path):
    _, local, _ = files
    want = chaski.read(local / "image.tif")
    for method in [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED]:
        path = tmp_path / f"{method}.zip"
        with zipfile.ZipFile(path, "w", method) as z:
            z.write(local / "image.tif", "a/image.tif")
        name = f"/vsizip/{path}/a/image.tif"
        assert np.array_equal(chaski.read(name), want)
        table = tmp_path / "images.csv"
        table.write_text(f"id,image\na,{name}\n")
        assert np.array_equal(pixels(table)[0], want)


def test_what_is_not_read():
    for name in ["/vsitar/a.tar/b.tif", "/vsicurl//etc/passwd"]:
        with pytest.raises(chaski.UnsupportedError, match="file system /vsi[a-z]*/ is not read"):
            chaski.read(name)
