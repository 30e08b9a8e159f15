"""TIFFs in strips of few rows: chips and windows are what rasterio reads."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import rasterio
from conftest import nonempty
from rasterio.windows import Window

import chaski

pytestmark = pytest.mark.usefixtures("binary")


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "float32"])
def test_strips_are_what_rasterio_reads(tmp_path, dtype):
    rng = np.random.default_rng(12)
    paths = []
    warnings.simplefilter("ignore", rasterio.errors.NotGeoreferencedWarning)
    for i in range(24):
        bands, rows = int(rng.choice([1, 3, 5])), int(rng.choice([1, 2, 3, 7]))
        image = rng.integers(0, 200, (bands, 131, 83 if i % 2 else 700)).astype(dtype)
        options = {"interleave": str(rng.choice(["band", "pixel"])), "blockysize": rows}
        options |= {"ENDIANNESS": "BIG"} if i % 5 == 0 else {}
        options |= {"compress": "deflate"} if i % 7 == 0 else {}
        paths.append(tmp_path / f"{i:02}.tif")
        _, height, width = image.shape
        with rasterio.open(
            paths[-1],
            "w",
            driver="GTiff",
            dtype=dtype,
            count=bands,
            height=height,
            width=width,
            **options,
        ) as f:
            f.write(image)
    for path in nonempty(paths):
        with rasterio.open(path) as f:
            for window in (None, chaski.Grid((64, 50))):
                options = {"batch_size": 1, "pixels": chaski.Pixels(windows=True)}
                with chaski.load(path, window=window, **options) as loader:
                    for batch in nonempty(loader):
                        y, x, h, w = (int(v) for v in batch["window"][0])
                        want = f.read(window=Window(x, y, w, h))
                        assert np.array_equal(batch["image"][0], want)
