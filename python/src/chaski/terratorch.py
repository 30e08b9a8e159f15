"""chaski below TerraTorch: its generic data modules, with an engine that reads the files.

In a configuration, exchange the module and keep the name and all arguments:

    data:
      class_path: chaski.terratorch.GenericNonGeoSegmentationDataModule

Splits, bands, transforms and samples are TerraTorch's own. It needs TerraTorch 1.2.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import numpy as np

from chaski import _distribution as _distribution  # chaski/__init__.py may be another project's
from chaski._arguments import Engine
from chaski._fields import Pixels
from chaski._open import load
from chaski._plain import needs
from chaski._rpc import PREFETCH
from chaski.errors import Error, SpecError, UnsupportedError

with needs("chaski.terratorch needs TerraTorch: pip install terratorch"):
    import terratorch.datamodules as theirs
    import torch.utils.data
    import xarray as xr
    from terratorch.datasets.generic_multimodal_dataset import GenericMultimodalDataset
    from terratorch.datasets.generic_pixel_wise_dataset import GenericPixelWiseDataset
    from terratorch.datasets.generic_scalar_label_dataset import GenericScalarLabelDataset
    from terratorch.datasets.utils import extract_georeference

    from chaski._ahead import Accelerated, Ahead, accelerated, one_thread, read_ahead

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = [
    "GenericMultiModalDataModule",
    "GenericNonGeoClassificationDataModule",
    "GenericNonGeoPixelwiseRegressionDataModule",
    "GenericNonGeoSegmentationDataModule",
    "accelerate",
]

Raster: TypeAlias = "tuple[npt.NDArray[Any], npt.NDArray[np.uint8]]"
"""Pixels as stored, and 1 where they are valid; both (b y x)."""
Dataset = TypeVar("Dataset", bound=torch.utils.data.Dataset[Any])


def accelerate(dataset: Dataset, *, engine: Engine | None = None) -> Dataset:
    """Returns a dataset with the samples of a generic one of TerraTorch, read by an engine.

    It is an instance of the same class. In a `DataLoader` with `num_workers=0` the engine reads
    whole batches ahead of the loop. Files of several sizes or dtypes, and others that the engine
    does not take, TerraTorch reads itself; a warning says once why.

    Args:
        dataset: for segmentation, regression, classification or several modalities, also of a class
            of one's own. Others are returned as they are, with a warning.
        engine: threads, memory and timeouts, as of `chaski.load`.
    """
    for kind, reads in _READS.items():
        if isinstance(dataset, kind):
            fast: Dataset = accelerated(dataset, (reads,), _engine=engine or Engine())
            return fast
    warnings.warn(f"{type(dataset).__name__} is no generic dataset of TerraTorch", stacklevel=2)
    return dataset


class _Reads(Accelerated):
    """A dataset of TerraTorch whose files an engine reads, all of a batch at once."""

    _engine: Engine
    _given: Mapping[str, Raster] = {}
    _OPENED = ("_given", "_ahead", "_loaders", "_layouts")

    def _files(self, index: Any = None) -> Iterator[tuple[str, Any]]:
        """Yields the files of a sample, or of all, each with what it is to the sample."""
        raise NotImplementedError

    def __getitem__(self, index: Any) -> Any:
        return self.__getitems__([index])[0]

    def __getitems__(self, indices: Sequence[Any]) -> list[Any]:
        read = super().__getitem__  # type: ignore[misc]
        if torch.utils.data.get_worker_info() is not None:
            _warn("files in worker processes: the engine has its own, so use num_workers=0")
            return [read(i) for i in indices]
        read_ahead(self, self._engine.prefetch or PREFETCH)
        self._given = self._began().take(indices)
        try:
            with one_thread():
                return [read(i) for i in indices]
        finally:
            self._given = {}

    def _will_read(self, indices: Sequence[Any]) -> None:
        """Begins to read the files of samples that `__getitems__` will be asked for."""
        self._began().begin(indices)

    def _began(self: Any) -> Ahead[dict[str, Raster]]:
        """Returns what reads the files of samples, ahead of the loop."""
        if "_ahead" not in vars(self):
            lists: dict[str, dict[str, int]] = {}
            for what, file in self._files():
                if isinstance(file, str) and not file.endswith((".npy", ".zarr", ".zarr.zip")):
                    lists.setdefault(what, {}).setdefault(file, len(lists[what]))
            self._loaders = {what: (rows, self._open(rows)) for what, rows in lists.items()}
            self._layouts: dict[str, Any] = {}
            self._ahead = Ahead(self._read)
        ahead: Ahead[dict[str, Raster]] = self._ahead
        return ahead

    def _open(self, files: Iterable[str]) -> Any:
        """Returns a loader of files, None if TerraTorch has to read them."""
        pixels = Pixels(dtype="native", bands="position", validity="valid pixels")
        try:
            return load(
                list(files), batch_size=1, shuffle=False, pixels=pixels, engine=self._engine
            )
        except Error as e:
            _warn(e)
            return None

    def _read(self: Any, indices: Sequence[Any]) -> dict[str, Raster]:
        """Reads the files of samples; those that TerraTorch has to read are left out."""
        wanted: dict[str, dict[str, None]] = {}
        for index in indices:
            for what, file in self._files(index):
                if isinstance(file, str):
                    wanted.setdefault(what, {})[file] = None
        out: dict[str, Raster] = {}
        for what, files in wanted.items():
            rows, loader = self._loaders.get(what, ({}, None))
            there = [f for f in files if f in rows]
            if loader is None or not there:
                continue
            try:
                batch = loader.fetch([rows[f] for f in there])
            except Error as e:
                _warn(e)
                if isinstance(e, UnsupportedError | SpecError):
                    self._loaders[what] = rows, None
                continue
            pairs = zip(batch["image"], batch["valid pixels"], strict=True)
            out |= dict(zip(there, pairs, strict=True))
        return out

    def _masked(self, path: str) -> npt.NDArray[Any]:
        """Returns a file as rioxarray does with masked=True: NaN where it is not valid."""
        x, valid = self._given[path]
        # As xarray promotes types: those of up to 16 bits are exact in float32.
        narrow = x.dtype.kind in "iu" and x.dtype.itemsize <= 2
        wide = x.dtype if x.dtype.kind == "f" else np.dtype("float32" if narrow else "float64")
        return np.where(valid != 0, x.astype(wide), wide.type(np.nan))


class _Pixelwise(_Reads):
    """Images with masks of classes or of numbers."""

    def _files(self: Any, index: Any = None) -> Iterator[tuple[str, Any]]:
        for what in ("image_files", "segmentation_mask_files"):
            files = getattr(self, what, None) or ()
            yield from ((what, f) for f in (files if index is None else files[index : index + 1]))

    def _load_file(self: Any, path: str, nan_replace: float | None = None) -> Any:
        theirs: Any = super()
        if path not in self._given:
            return theirs._load_file(path, nan_replace)
        data = xr.DataArray(self._masked(path))
        if nan_replace is not None:
            data = data.fillna(nan_replace)
        placed = getattr(self, "return_georeference", False)
        return data, extract_georeference(path) if placed else None


class _Labelled(_Reads):
    """Images in folders that say their class."""

    def _files(self: Any, index: Any = None) -> Iterator[tuple[str, Any]]:
        samples = self.samples if index is None else self.samples[index : index + 1]
        yield from (("image", path) for path, _ in samples)

    def _loader(self: Any, path: str) -> Any:
        theirs: Any = super()
        kind = os.path.splitext(path)[1]
        layout = self._layouts.get(kind, "") if path in self._given else None
        if layout is None:
            return theirs._loader(path)
        x, _ = self._given[path]
        if layout:
            return layout(x)
        want = theirs._loader(path)  # the first file of its kind says where its bands are
        alike = [f for f in _LAYOUTS if f(x).dtype == want.dtype and np.array_equal(f(x), want)]
        self._layouts[kind] = alike[0] if alike else None
        if not alike:
            _warn(f"{path}: its reader has other pixels than the engine")
        return want


class _Multimodal(_Reads):
    """Samples of several modalities."""

    def _files(self: Any, index: Any = None) -> Iterator[tuple[str, Any]]:
        if isinstance(index, tuple):  # and the modalities that were drawn
            yield from ((m, self.samples[index[0]].get(m)) for m in index[1])
            return
        for sample in self.samples if index is None else self.samples[index : index + 1]:
            yield from sample.items()

    def _load_file(self: Any, path: Any, nan_replace: float | None = None, **how: Any) -> Any:
        theirs: Any = super()
        if not isinstance(path, str) or path not in self._given:
            return theirs._load_file(path, nan_replace, **how)
        data = self._masked(path)
        return data if nan_replace is None else np.nan_to_num(data, nan=nan_replace)


_READS = {
    GenericPixelWiseDataset: _Pixelwise,
    GenericScalarLabelDataset: _Labelled,
    GenericMultimodalDataset: _Multimodal,
}
# Where readers have the bands of an image; those of one band may have no axis for it.
_LAYOUTS: tuple[Callable[[npt.NDArray[Any]], npt.NDArray[Any]], ...] = (
    lambda x: x[0] if len(x) == 1 else x,
    lambda x: np.ascontiguousarray(x.transpose(1, 2, 0)),
)


def _warn(why: object) -> None:
    warnings.warn(f"TerraTorch reads these files itself: {why}", stacklevel=3)


class _Fast:
    """A data module whose datasets are accelerated."""

    def setup(self: Any, stage: str) -> None:
        super().setup(stage)  # type: ignore[misc]
        self.num_workers = 0
        for name in ("train", "val", "test", "predict"):
            dataset = getattr(self, f"{name}_dataset", None)
            if dataset is not None and not isinstance(dataset, _Reads):
                setattr(self, f"{name}_dataset", accelerate(dataset))


class GenericNonGeoSegmentationDataModule(_Fast, theirs.GenericNonGeoSegmentationDataModule):  # type: ignore[misc]
    """TerraTorch's module of this name, with an engine that reads the files.

    The arguments are theirs. `num_workers` has no effect: the engine has workers of its own.
    """


class GenericNonGeoPixelwiseRegressionDataModule(
    _Fast,
    theirs.GenericNonGeoPixelwiseRegressionDataModule,  # type: ignore[misc]
):
    """The same for masks of numbers."""


class GenericNonGeoClassificationDataModule(_Fast, theirs.GenericNonGeoClassificationDataModule):  # type: ignore[misc]
    """The same for images in folders of classes."""


class GenericMultiModalDataModule(_Fast, theirs.GenericMultiModalDataModule):  # type: ignore[misc]
    """The same for several modalities, such as those of TerraMind."""
