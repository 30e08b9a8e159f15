"""repr and notebooks show what an object holds, and run nothing from a file."""

from __future__ import annotations

import base64
import io
import re

import numpy as np
import pytest
import rasterio
import rasters
import torch

import chaski
import chaski.torch
from chaski._assemble import Batch


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
    assert page.count("<svg") == 4 and "<img" not in page and "&lt;img" in page
    with chaski.load(chips, batch_size=2) as loader:
        assert repr(loader) == (
            "<chaski.Loader: 3 samples, 2 steps of 2; step 0 of epoch 0; "
            "image float32 (n b y x) (2, 4, 16, 20)>"
        )
        assert "<td>(1, 4, 16, 20)</td>" in loader._repr_html_()
        _, last = loader
        text = repr(last)
        assert text.startswith("<chaski.Batch: step 1 of epoch 0, 1 valid of 1 rows; ")
        assert "image float32 (1, 4, 16, 20)" in text and "valid bool (1,)" in text
        (png,) = re.findall(r"base64,([^\"]+)", last._repr_html_())
        with rasterio.open(io.BytesIO(base64.b64decode(png))) as f:
            assert (f.count, f.height, f.width) == (3, 16, 20)
            assert f.read(1).min() == 0 and f.read(3).max() == 255
        dataset = chaski.torch.IterableDataset(loader)
        assert "<IterableDataset of <chaski.Loader: " in repr(dataset)
        assert dataset._repr_html_() == loader._repr_html_()


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int64"])
def test_tensors_are_shown_like_arrays(chips, dtype):
    """Batches and samples of chaski.torch have the pictures and the names of numpy's."""
    how = {"pixels": chaski.Pixels(dtype=dtype), "batch_size": 3, "shuffle": False}
    with chaski.load(chips, **how) as loader:
        (arrays,) = loader
        (tensors,) = chaski.torch.IterableDataset(loader)
        (shown,) = re.findall("<img.*?>", arrays._repr_html_())
        assert shown in tensors._repr_html_()
        assert f"image {dtype} (3, 4, 16, 20)" in repr(tensors)
        assert repr(tensors).startswith("<chaski: 3 valid of 3 rows; ")
        one = chaski.torch.MapDataset(loader)[1]
        (picture,) = pictures(one._repr_html_())
        assert picture.shape == (3, 16, 20)
        assert repr(one).startswith("<chaski: sample 1; ")
    tensors["more"] = torch.zeros(3)
    assert "more float32 (3,)" in repr(tensors) and "tensor(" not in repr(tensors)


def test_steps_of_a_series_run_left_to_right():
    """Two sequences of three steps: a line each."""
    b = Batch(image=np.zeros((2, 3, 1, 4, 5), "u1"), valid=np.ones(2, bool))
    b.axes = {"image": ("n", "t", "b", "y", "x")}
    b["image"] += np.arange(6, dtype="u1").reshape(2, 3, 1, 1, 1)
    (drawn,) = pictures(b._repr_html_())
    assert drawn.shape == (3, 2 * 4, 3 * 5)
    ids = [[tuple(drawn[:, y, x]) for x in (0, 5, 10)] for y in (0, 4)]
    assert len({c for line in ids for c in line}) == 6


@pytest.mark.parametrize(
    "axes,shape",
    [
        (("n", "y", "x", "b"), (2, 4, 5, 3)),
        (("n", "y", "x"), (2, 4, 5)),
        (("n", "t", "b", "y", "x"), (2, 3, 1, 4, 5)),
        (("n", "(b y)", "x"), (2, 4, 5)),
    ],
)
def test_quicklooks_of_all_layouts(axes, shape):
    b = Batch(image=np.full(shape, np.nan, "f4"), valid=np.ones(2, bool))
    b.axes = {"image": axes}
    assert ("<img" in b._repr_html_()) == ("y" in axes)
    b["valid"][:] = False
    assert "<img" not in b._repr_html_()


def pictures(page):
    """Returns the pictures of a page, as (colour, y, x)."""
    found = re.findall(r"base64,([^\"]+)", page)
    out = []
    for png in found:
        with rasterio.open(io.BytesIO(base64.b64decode(png))) as f:
            out.append(f.read())
    return out


def test_colours_by_name_and_masks(chips):
    """A band is red if its name says so, and every value of a mask has a colour of its own."""
    (chips / "masks").mkdir()
    (chips / "images").mkdir()
    for i in range(3):
        image = (chips / f"{i}.tif").rename(chips / f"images/{i}.tif")
        with rasterio.open(image, "r+") as f:
            f.descriptions = ["B02", "B03", "B04", "B08"]
            a = np.zeros((4, 16, 20), "u2")
            a[2] = np.arange(20)  # red grows to the right
            a[:2] = 20 - np.arange(20)
            f.write(a + 1)
        mask = np.zeros((1, 16, 20), "u1")
        mask[0, 8:] = 2
        rasters.write(chips / f"masks/{i}.tif", mask, dtype="uint8")
    for bands, red in (
        (["B02", "B03", "B04"], [True, False, False]),
        ([0, 1, 2], [True, False, False]),
        (None, [True, False, False]),
        (["B08", "B03"], [False] * 3),
    ):
        fields = {
            "image": chaski.Field(pattern="images/{id}.tif", bands=bands),
            "mask": chaski.Field(pattern="masks/{id}.tif", dtype="int64"),
        }
        with chaski.load(chips, fields=fields, batch_size=3) as loader:
            (batch,) = loader
        image, shown = pictures(batch._repr_html_())
        grows = [bool(c[0, 19] > c[0, 0]) for c in image]
        assert grows == red
        assert len({tuple(shown[:, y, 0]) for y in range(16)}) == 2
        assert (shown[:, 0, 0] != shown[:, 15, 0]).any()


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
