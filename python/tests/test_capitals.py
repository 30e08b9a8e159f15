"""Files whose endings are in capitals where a pattern has small letters, or the other way round."""

from __future__ import annotations

import re

import numpy as np
import pytest
import rasters

import chaski

rasterio = pytest.importorskip("rasterio", reason="needs rasterio to write rasters")
pytestmark = pytest.mark.usefixtures("one_engine")


@pytest.mark.parametrize("mine, other", [("tif", "TIF"), ("TIF", "tif"), ("jpg", "JPG")])
def test_the_error_names_them(tmp_path, binary, mine, other) -> None:
    for k in range(2):
        driver = "GTiff" if mine.lower() == "tif" else "JPEG"
        rasters.write(tmp_path / f"{k}.{other}", np.full((1, 4, 4), k, np.uint8), driver=driver)
    with pytest.raises(chaski.errors.NotFoundError, match=re.escape(f'2 match "*.{other}"')):
        chaski.load(tmp_path / f"*.{mine}", batch_size=2)
    for pattern in (f"{{id}}.{mine}", f"**/{{id}}.{mine}"):
        if mine == "jpg":  # a directory without patterns for pictures lists none
            continue
        with pytest.raises(chaski.errors.NotFoundError, match=re.escape(f'"0.{other}" does')):
            chaski.load(tmp_path, fields={"image": pattern}, batch_size=2)
    with chaski.load(tmp_path / f"*.{other}", batch_size=2) as run:
        assert len(next(iter(run))["image"]) == 2
    with pytest.raises(chaski.errors.NotFoundError, match="no raster file matches"):
        chaski.load(tmp_path / "*.tiff", batch_size=2)


@pytest.mark.parametrize("mine, other", [("geojson", "GEOJSON"), ("XML", "xml")])
def test_of_labels(tmp_path, binary, mine, other) -> None:
    (tmp_path / "labels").mkdir()
    (tmp_path / f"labels/0.{other}").touch()
    np.save(tmp_path / "0.npy", np.zeros((1, 4, 4), np.uint8))
    fields = {"image": "{id}.npy", "y": chaski.Vector(f"labels/{{id}}.{mine}")}
    with pytest.raises(chaski.errors.NotFoundError, match=f'"labels/0.{other}" does: write its'):
        chaski.load(tmp_path, fields=fields, batch_size=1)


@pytest.mark.parametrize("other", ["PNG", "jpg"])
@pytest.mark.parametrize("lacks", ["image", "mask"])
def test_of_some_files(tmp_path, lacks, other) -> None:
    """A file that lacks, and is there with another ending, is named."""
    for k in range(3):
        for field in ("image", "mask"):
            ending = other if (field, k) == (lacks, 1) else "png"
            driver = "JPEG" if ending == "jpg" else "PNG"
            path = tmp_path / field / f"{k}.{ending}"
            path.parent.mkdir(exist_ok=True)
            rasters.write(path, np.full((1, 16, 16), k, np.uint8), driver=driver)
    fields = {"image": "image/{id}.png", "mask": "mask/{id}.png"}
    says = (
        f'no file {lacks}/1.png for the id "1", but {lacks}/1.{other} is there: "{lacks}/{{id}}.*"'
    )
    with pytest.raises(chaski.errors.NotFoundError, match=re.escape(says)):
        chaski.load(tmp_path, fields=fields, batch_size=3)
    fields[lacks] = f"{lacks}/{{id}}.*"
    with chaski.load(tmp_path, fields=fields, batch_size=3, shuffle=False) as run:
        (b,) = run
    for field in fields:
        assert np.asarray(b[field])[:, 0, 0, 0].tolist() == [0, 1, 2]
