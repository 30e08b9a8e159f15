"""chaski below TerraTorch: its generic data modules for pixels, with an engine that reads them.

In a configuration, exchange the module and keep the name and all arguments:

    data:
      class_path: chaski.terratorch.GenericNonGeoSegmentationDataModule

Splits, bands, transforms and samples are TerraTorch's own. It needs TerraTorch 1.2.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from chaski import _distribution as _distribution  # chaski/__init__.py may be another project's
from chaski._fields import Pixels
from chaski._open import load
from chaski._plain import needs
from chaski._rpc import PREFETCH
from chaski.errors import Error

with needs("chaski.terratorch needs TerraTorch: pip install terratorch"):
    import terratorch.datamodules.generic_pixel_wise_data_module as theirs
    import torch.utils.data
    import xarray as xr
    from terratorch.datasets import (
        GenericNonGeoPixelwiseRegressionDataset,
        GenericNonGeoSegmentationDataset,
    )
    from terratorch.datasets.utils import extract_georeference

    from chaski._ahead import Ahead, one_thread, read_ahead

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = ["GenericNonGeoPixelwiseRegressionDataModule", "GenericNonGeoSegmentationDataModule"]

Raster: TypeAlias = "tuple[npt.NDArray[Any], npt.NDArray[np.uint8]]"
"""Pixels as stored, and 1 where they are valid; both (b y x)."""


class _Reads:
    """A dataset of TerraTorch whose files an engine reads, all of a batch at once.

    Files of several sizes or dtypes, and other files that the engine does not take, TerraTorch
    reads itself, with a warning.
    """

    image_files: Sequence[str]
    segmentation_mask_files: Sequence[str]
    return_georeference: bool
    _read: dict[str, Raster] = {}
    _ahead: Ahead[dict[str, Raster]] | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Leaves the engine behind: a copy opens the files anew."""
        return {k: v for k, v in self.__dict__.items() if k not in ("_ahead", "_read")}

    def __getitem__(self, index: int) -> Any:
        return self.__getitems__([index])[0]

    def __getitems__(self, indices: Sequence[int]) -> list[Any]:
        if torch.utils.data.get_worker_info() is None:
            read_ahead(self, PREFETCH)
            try:
                self._read = self._opened().take(indices)
            except Error as e:
                warnings.warn(f"TerraTorch reads these files itself: {e}", stacklevel=2)
        try:
            with one_thread():
                return [super(_Reads, self).__getitem__(i) for i in indices]  # type: ignore[misc]
        finally:
            self._read = {}

    def _will_read(self, indices: Sequence[int]) -> None:
        """Begins to read the files of samples; `__getitems__` says what is wrong with them."""
        with contextlib.suppress(Error):
            self._opened().begin(indices)

    def _opened(self) -> Ahead[dict[str, Raster]]:
        """Returns what reads the files of samples."""
        if self._ahead is None:
            lists = {tuple(f) for f in (self.image_files, self.segmentation_mask_files) if f}
            pixels = Pixels(dtype="native", bands="position", validity="valid pixels")
            loaders = [
                (files, load(list(files), batch_size=1, shuffle=False, pixels=pixels))
                for files in lists
            ]

            def read(indices: Sequence[int]) -> dict[str, Raster]:
                out: dict[str, Raster] = {}
                for files, loader in loaders:
                    batch = loader.fetch(indices)
                    rows = zip(batch["image"], batch["valid pixels"], strict=True)
                    out |= {files[i]: row for i, row in zip(indices, rows, strict=True)}
                return out

            self._ahead = Ahead(read)
        return self._ahead

    def _load_file(self, path: str, nan_replace: float | None = None) -> Any:
        """Returns a file as rioxarray does with masked=True: NaN where it is not valid."""
        if path not in self._read:
            return super()._load_file(path, nan_replace)  # type: ignore[misc]
        x, valid = self._read[path]
        # As xarray promotes types: those of up to 16 bits are exact in float32.
        narrow = x.dtype.kind in "iu" and x.dtype.itemsize <= 2
        wide = x.dtype if x.dtype.kind == "f" else np.dtype("float32" if narrow else "float64")
        data = xr.DataArray(np.where(valid != 0, x.astype(wide), wide.type(np.nan)))
        if nan_replace is not None:
            data = data.fillna(nan_replace)
        return data, extract_georeference(path) if self.return_georeference else None


class _Segmentation(_Reads, GenericNonGeoSegmentationDataset):  # type: ignore[misc]
    """Images with masks of classes."""


class _Regression(_Reads, GenericNonGeoPixelwiseRegressionDataset):  # type: ignore[misc]
    """Images with masks of numbers."""


class GenericNonGeoSegmentationDataModule(
    theirs.GenericNonGeoSegmentationDataModule,  # type: ignore[misc]
):
    """TerraTorch's module of this name, with an engine that reads the files.

    The arguments are theirs. `num_workers` has no effect: the engine has workers of its own.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.dataset_class, self.num_workers = _Segmentation, 0


class GenericNonGeoPixelwiseRegressionDataModule(
    theirs.GenericNonGeoPixelwiseRegressionDataModule,  # type: ignore[misc]
):
    """TerraTorch's module of this name, with an engine that reads the files.

    The arguments are theirs. `num_workers` has no effect: the engine has workers of its own.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.dataset_class, self.num_workers = _Regression, 0
