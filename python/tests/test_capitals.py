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
