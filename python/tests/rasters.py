"""Files of rasters, as GDAL writes them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np


def write(path: Path | str, x: np.ndarray, mask: np.ndarray | None = None, **profile: Any) -> None:
    """Writes bands (b, y, x), or one band (y, x), as a GeoTIFF, or a PNG by its name."""
    import rasterio  # tests that need it are skipped without it

    bands = x if x.ndim == 3 else x[None]
    size = dict(zip(("count", "height", "width"), bands.shape, strict=True))
    driver = "PNG" if str(path).endswith(".png") else "GTiff"
    with (
        rasterio.Env(GDAL_TIFF_INTERNAL_MASK=True),
        rasterio.open(path, "w", **{"driver": driver, "dtype": x.dtype, **profile, **size}) as f,
    ):
        f.write(bands)
        if mask is not None:
            f.write_mask(mask)
