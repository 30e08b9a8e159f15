"""repr and notebooks show what an object holds, and run nothing from a file."""

from __future__ import annotations

import re

import numpy as np
import pytest
import rasterio

import chaski
import chaski.torch


@pytest.fixture
def chips(tmp_path, binary):
    for i in range(3):
        a = np.arange(4 * 16 * 20, dtype="u2").reshape(4, 16, 20) + i
        how = dict(driver="GTiff", count=4, height=16, width=20, dtype="uint16", nodata=0)
        with rasterio.open(tmp_path / f"{i}.tif", "w", **how) as f:
            f.write(a)
            f.descriptions = ["<img src=x onerror=alert(1)>", "G", "B", "N"]
    return tmp_path


def test_loader_batch_and_stats(chips):
    stats = chaski.stats(chips)
    assert repr(stats).startswith("<chaski.Stats of 3 samples: image uint16, 4 bands, mean [1")
    page = stats._repr_html_()
    assert page.count("<tr>") == 5 and "<img" not in page and "&lt;img" in page
    with chaski.load(chips, batch_size=2) as loader:
        assert repr(loader) == (
            "<chaski.Loader: 3 samples, 2 steps of 2; step 0 of epoch 0; "
            "image float32 (n b y x) (2, 4, 16, 20)>"
        )
        assert "<td>(1, 4, 16, 20)</td>" in loader._repr_html_()
        _, last = loader
        text = repr(last)
        assert text.startswith("<chaski.Batch: step 1 of epoch 0, 1 valid of 2 rows; ")
        assert "image float32 (2, 4, 16, 20)" in text and "valid bool (2,)" in text
        assert "<td>(2, 4, 16, 20)</td>" in last._repr_html_()
        assert "<IterableDataset of <chaski.Loader: " in repr(chaski.torch.IterableDataset(loader))


@pytest.mark.parametrize(
    "text",
    [
        "Field(pattern='{id}.tif', normalize=False)",
        "Pixels(dtype='native', pad=True)",
        "Normalize(mean=[1.0, 2.0])",
        "Rows(where=[('cloud', '<', 10)], split=Split(by='hash', parts={'a': 0.5, 'b': 0.5}))",
        "Source(source='x', rows=Rows(take=3))",
        "Grid(size=4, pad=True)",
        "Rows()",
        "Engine(workers=2)",
        "FieldInfo(name='a', kind='raster', dtype='uint8', shape=(1,), axes=('n',))",
    ],
)
def test_arguments_without_what_is_not_set(text):
    assert repr(eval(text, vars(chaski))) == text


def test_arguments_with_arrays_and_secrets():
    field = chaski.Field(bands=np.arange(2), fill=float("nan"))
    assert repr(field) == "Field(bands=array([0, 1]), fill=nan)"
    vector = chaski.Vector("https://me:pass@host/a?sig=s3cr3t")
    assert "host" in repr(vector) and not re.search("pass|s3cr3t", repr(vector))
    assert repr(chaski.Rows(where=[])) == "Rows()"
