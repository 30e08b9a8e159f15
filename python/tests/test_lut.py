"""Look-up tables yield what np.take of the stored pixels yields."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import rasters

import chaski

pytestmark = pytest.mark.usefixtures("one_engine")
rasterio = pytest.importorskip("rasterio")
N, SIDE = 4, 32


def write(folder: Path, dtype: str, bands: int = 1, nodata: float | None = None) -> np.ndarray:
    """Writes N rasters of all numbers that a dtype has, and returns them."""
    rng = np.random.default_rng(4)
    info = np.iinfo(dtype)
    images = rng.integers(info.min, info.max, (N, bands, SIDE, SIDE), dtype=dtype, endpoint=True)
    for i, image in enumerate(images):
        rasters.write(folder / f"{i}.tif", image, dtype=dtype, nodata=nodata)
    return images


def read(
    folder: Path, sampler: Any = None, pixels: Any = None, **field: Any
) -> dict[str, np.ndarray]:
    fields = {"image": chaski.Field(**field)}
    how = dict(window=sampler or chaski.WholeChip(), pixels=pixels or chaski.Pixels())
    with chaski.load(folder, fields=fields, batch_size=N, shuffle=False, **how) as loader:
        return {name: np.array(v) for name, v in next(iter(loader)).items()}


def whole(dtype: str) -> np.ndarray:
    """A table with a value for each number."""
    n = 1 << (8 * np.dtype(dtype).itemsize)
    return np.random.default_rng(5).normal(size=n)


@pytest.mark.parametrize("dtype", ["uint8", "int8", "uint16", "int16"])
@pytest.mark.parametrize("to", ["float32", "float16"])
def test_it_is_take(tmp_path, dtype, to):
    images, table = write(tmp_path, dtype, bands=3), np.round(whole(dtype), 3)
    got = read(tmp_path, lut=table, dtype=to, bands=[2, 0])["image"]
    np.testing.assert_array_equal(got, table.take(images[:, [2, 0]], mode="wrap").astype(to))


@pytest.mark.parametrize("to", ["native", "uint8", "int64"])
def test_classes(tmp_path, to):
    images = write(tmp_path, "uint8")
    classes = {value: value // 10 for value in range(0, 250, 10)}
    got = read(tmp_path, lut=classes, dtype=to, fill=255, validity="known")
    known = np.isin(images, list(classes))
    np.testing.assert_array_equal(got["image"], np.where(known, images // 10, 255))
    np.testing.assert_array_equal(got["known"], known)


def test_before_normalize(tmp_path):
    images, table = write(tmp_path, "int8", bands=2), whole("int8").round(3)
    normalize = {"mean": [0.25, -1], "std": [2, 0.5]}
    got = read(tmp_path, lut=table, dtype="float32", normalize=normalize)["image"]
    want = (table.take(images, mode="wrap") - np.array([0.25, -1])[:, None, None]) / np.array(
        [2, 0.5]
    )[:, None, None]
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


def test_dequantised_embeddings(tmp_path):
    """As AlphaEarth stores them: 64 bands of int8, -128 where there is none."""
    images = write(tmp_path, "int8", bands=64, nodata=-128)
    stored = np.arange(256, dtype=np.uint8).view(np.int8).astype(float)
    table = np.sign(stored) * (stored / 127.5) ** 2
    got = read(tmp_path, lut=table, dtype="float32", validity="valid_pixels", layout="n y x b")
    want = np.where(images == -128, 0, table.take(images, mode="wrap").astype("f4"))
    np.testing.assert_array_equal(got["image"], np.moveaxis(want, 1, 3))
    np.testing.assert_array_equal(got["valid_pixels"], np.moveaxis(images != -128, 1, 3))


@pytest.mark.parametrize("size", [8, 13, 31])
def test_windows(tmp_path, size):
    write(tmp_path, "uint8")
    table = whole("uint8").round(3)
    sampler = chaski.RandomWindow((size, size))
    stored = read(tmp_path, sampler, dtype="native")["image"]
    got = read(tmp_path, sampler, lut=table, dtype="float32")["image"]
    np.testing.assert_array_equal(got, table.astype("f4").take(stored))


def test_padding(tmp_path):
    images, table = write(tmp_path, "uint8"), whole("uint8").round(3)
    sampler = chaski.Grid((SIDE + 8, SIDE + 8), pad=True)
    got = read(tmp_path, sampler, lut=table, dtype="float32", fill=-7, pad=True)["image"]
    np.testing.assert_array_equal(got[:, :, :SIDE, :SIDE], table.astype("f4").take(images))
    assert (got[:, :, SIDE:] == -7).all() and (got[:, :, :, SIDE:] == -7).all()


def test_resampled_before_it(tmp_path):
    """Windows take the nearest pixels, also for floats, which are bilinear without a table."""
    write(tmp_path, "uint8")
    table = whole("uint8").round(3)
    sampler = chaski.ResizedWindow((20, 20))
    stored = read(tmp_path, sampler, dtype="native")["image"]
    got = read(tmp_path, sampler, lut=table, dtype="float32")["image"]
    np.testing.assert_array_equal(got, table.astype("f4").take(stored))


def test_vectors(tmp_path):
    """A palette makes three bands of one."""
    images = write(tmp_path, "uint8")
    palette = np.random.default_rng(6).integers(0, 255, (256, 3))
    got = read(tmp_path, lut=palette, dtype="uint8", layout="n y x b")["image"]
    np.testing.assert_array_equal(got, palette[images[:, 0]])
    normalize = {"mean": [10, 20, 30], "std": [2, 3, 4]}
    got = read(tmp_path, chaski.RandomWindow((9, 9)), lut=palette, dtype="float32", bands=[0])
    stored = read(tmp_path, chaski.RandomWindow((9, 9)), dtype="native")["image"]
    np.testing.assert_array_equal(got["image"], np.moveaxis(palette[stored[:, 0]], 3, 1))
    got = read(tmp_path, lut=palette, dtype="float32", normalize=normalize)["image"]
    want = (palette[images[:, 0]] - [10, 20, 30]) / [2, 3, 4]
    np.testing.assert_allclose(got, np.moveaxis(want, 3, 1), rtol=1e-5, atol=1e-5)


def test_masks_of_files(tmp_path):
    images = write(tmp_path, "uint8")
    hidden = np.random.default_rng(8).random((SIDE, SIDE)) < 0.3
    with rasterio.Env(GDAL_TIFF_INTERNAL_MASK=True):
        for i in range(N):
            with rasterio.open(tmp_path / f"{i}.tif", "r+") as f:
                f.write_mask(np.where(hidden, 0, 255).astype("u1"))
    table = whole("uint8").round(3)
    got = read(tmp_path, lut=table, dtype="float32", fill=-3)["image"]
    np.testing.assert_array_equal(got, np.where(hidden, -3, table.astype("f4").take(images)))


@pytest.mark.parametrize(
    ("field", "message"),
    [
        ({"lut": {1: 2}}, "fill"),
        ({"lut": {1: 300}, "dtype": "uint8", "fill": 0}, "300 is not a number of uint8"),
        ({"lut": {1: 2}, "resample": "bilinear", "fill": 0}, "nearest"),
        ({"lut": {-1: 2}, "fill": 0}, "uint8 has no -1"),
        ({"lut": {"a": 2}, "fill": 0}, "whole number"),
        ({"lut": {1: [1, 2], 2: [1]}, "fill": 0}, "value 1 has 1 numbers"),
    ],
)
def test_it_says_what_is_wrong(tmp_path, field, message):
    write(tmp_path, "uint8")
    with pytest.raises(chaski.Error, match=message):
        read(tmp_path, **field)


def mask(folder: Path, dtype: str, values: np.ndarray, **profile: Any) -> None:
    side = {"height": values.shape[0], "width": values.shape[1]}
    rasters.write(folder / "a.tif", values[None], dtype=dtype, **side, **profile)


WIDE = ["int32", "uint32", "int64", "uint64", "float32", "float64"]


@pytest.mark.parametrize("dtype", WIDE)
def test_of_wide_types(tmp_path, dtype):
    """Numbers are compared as they are stored; those without a value become the fill."""
    big = 2**24 if dtype == "float32" else 2**24 + 1 if "32" in dtype else 2**40 + 1
    numbers = np.array([0, 3, big, big + 2, 255], dtype)
    values = numbers[np.random.default_rng(1).integers(0, 5, (9, 13))]
    mask(tmp_path, dtype, values)
    got = read(tmp_path, lut={0: 5, 3: 1, big: 2}, fill=9, dtype="int64")["image"]
    want = np.select([values == 0, values == 3, values == numbers[2]], [5, 1, 2], 9)
    np.testing.assert_array_equal(got[0, 0], want)
    with pytest.raises(chaski.Error, match="others need a fill"):
        read(tmp_path, lut={0: 5, 3: 1})


def test_half_numbers_have_no_value(tmp_path):
    values = np.array([[0.5, -0.0, 0.0, 1.0, np.nan, np.inf]], "float32")
    mask(tmp_path, "float32", values)
    got = read(tmp_path, lut={0: 7, 1: 8}, fill=9, dtype="int64")["image"]
    assert got[0, 0].tolist() == [[9, 7, 7, 8, 9, 9]]
    with pytest.raises(chaski.Error, match="float32 has no 16777217"):
        read(tmp_path, lut={2**24 + 1: 1}, fill=0)


@pytest.mark.parametrize("dtype", WIDE)
@pytest.mark.parametrize("augment", [None, "d4"])
def test_whole_numbers_as_int64(tmp_path, dtype, augment):
    values = np.random.default_rng(2).integers(0, 2**24, (16, 16)).astype(dtype)
    values[:, 0] = 7
    mask(tmp_path, dtype, values, nodata=7)
    pixels = chaski.Pixels(augment=augment)
    got = read(tmp_path, dtype="int64", validity="ok", pixels=pixels)
    ways = [np.rot90(a, r) for a in (values, values.T) for r in range(4)]
    assert any(np.array_equal(got["image"][0, 0], way) for way in ways)
    assert got["ok"].sum() == (values != 7).sum()
    filled = read(tmp_path, dtype="int64", fill=-1)["image"][0, 0]
    np.testing.assert_array_equal(filled, np.where(values == 7, -1, values.astype("int64")))


@pytest.mark.parametrize(
    ("dtype", "value"),
    [("float32", 0.5), ("float64", 1e19), ("float32", np.nan), ("uint64", 2**63)],
)
def test_numbers_that_int64_lacks(tmp_path, dtype, value):
    """They are no class: the sample is bad, unless they are nodata with a fill."""
    mask(tmp_path, dtype, np.array([[1, value, 3]], dtype))
    with pytest.raises(chaski.UnsupportedError, match="row 0, column 1 of band 0.*no whole number"):
        read(tmp_path, dtype="int64")
    if np.isnan(value) or value == 0.5:
        got = read(tmp_path, dtype="int64", nodata=value, fill=255)["image"]
        assert got.ravel().tolist() == [1, 255, 3]
