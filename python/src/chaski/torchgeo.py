"""chaski below TorchGeo: its raster datasets, with an engine that reads the pixels.

    class Scenes(chaski.torchgeo.ChaskiDataset):  # in place of torchgeo.datasets.RasterDataset
        filename_glob = "*.tif"

    class FastNAIP(chaski.torchgeo.ChaskiDataset, torchgeo.datasets.NAIP): ...

    images = Scenes("scenes/")
    sampler = RandomPatchSampler(images, size=256)
    batches = DataLoader(images, batch_size=16, sampler=sampler, collate_fn=stack_samples)

Index, samplers, transforms, `plot` and samples are TorchGeo's own. `ChaskiDataModule` goes further:
its batches come in an order that resumes exactly. Both need TorchGeo 0.10.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import rasterio.io
import rasterio.transform
import torch
import torch.utils.data
from torchgeo.datamodules import BaseDataModule
from torchgeo.datasets import GeoDataset, IntersectionDataset, RasterDataset
from torchgeo.datasets.utils import array_to_tensor

from chaski import _distribution as _distribution  # chaski/__init__.py may be another project's
from chaski._ahead import one_thread, read_ahead
from chaski._assemble import Members
from chaski._georead import Files, Grid, Raster, warn
from chaski._proto.arguments import Engine, SourceLike
from chaski.errors import UnsupportedError
from chaski.torch import IterableDataset

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["ChaskiDataModule", "ChaskiDataset"]

Sample: TypeAlias = dict[str, Any]


class ChaskiDataset(RasterDataset):  # type: ignore[misc]
    """A `torchgeo.datasets.RasterDataset` whose pixels an engine reads, by all of its workers.

    All arguments, members and results are those of RasterDataset. In a `DataLoader` with
    `num_workers=0` the engine reads whole batches, `engine.prefetch` of them ahead of the loop,
    also of an intersection such as `images & masks`.

    A window begins at the pixel of each file that is nearest to its corner. The samplers of
    TorchGeo place windows on pixels, where both give equal samples; other windows may be a pixel
    off. Files that need another map or resolution, TorchGeo reads itself, as it does all of a
    dataset with a `nodata` of its own.

    Attributes:
        engine: threads, memory and timeouts, as of `chaski.load`.
    """

    engine: Engine = Engine()

    def __getstate__(self) -> dict[str, Any]:
        """Leaves the engine behind: a copy opens the files anew."""
        return {k: v for k, v in self.__dict__.items() if k != "_kept"}

    def _load_warp_file(self, filepath: Any, crs: Any = None) -> Any:
        file = super()._load_warp_file(filepath, crs)
        t = file.transform
        grids: dict[str, Grid | None] = self.__dict__.setdefault("_grids", {})
        grids[str(filepath)] = None
        if isinstance(file, rasterio.io.DatasetReader) and t.is_rectilinear and t.a > 0 > t.e:
            where = file.crs, t.c, t.f, (t.a, -t.e), file.height, file.width
            grids[str(filepath)] = Grid(*where, file.dtypes[0], file.nodata, file.block_shapes[0])
        return file

    def _grid(self, file: str) -> Grid | None:
        """Returns the grid of a file, None if the file has to be warped."""
        if file not in self._grids:
            self._load_warp_file(file, self.crs).close()
        grid: Grid | None = self._grids[file]
        return grid

    def __and__(self, other: GeoDataset) -> IntersectionDataset:
        """Returns the intersection with another dataset; it reads batches at once, too."""
        return _Intersection(self, other)

    def __getitem__(self, index: Any) -> Sample:
        """Returns the sample of a slice; see `__getitems__`."""
        return self.__getitems__([index])[0]

    def __getitems__(self, indices: Sequence[Any]) -> list[Sample]:
        """Returns the samples of several slices, read at once.

        Raises:
            IndexError: no file lies in a slice.
            RuntimeError: in a worker process of a DataLoader.
        """
        if torch.utils.data.get_worker_info() is not None:
            raise RuntimeError(
                "the engine of a ChaskiDataset has workers of its own: use a DataLoader with "
                "num_workers=0"
            )
        read_ahead(self, self.engine.prefetch)
        files = self._opened()
        rasters = files.ahead.take(indices) if files else [None] * len(indices)
        read = super().__getitem__
        with one_thread():
            return [
                self._sample(files.slices(i), raster) if files and raster is not None else read(i)
                for i, raster in zip(indices, rasters, strict=True)
            ]

    def _will_read(self, indices: Sequence[Any]) -> None:
        """Begins to read slices that `__getitems__` will be asked for."""
        if files := self._opened():
            files.ahead.begin(indices)

    def _opened(self) -> Files | None:
        """Returns the files opened by an engine, None if TorchGeo has to read them."""
        of = id(self.index), self.crs, self.res
        kept: tuple[Any, Files | None] = self.__dict__.get("_kept", (None, None))
        before, files = kept
        if before != of:
            try:
                files = Files(self)
            except UnsupportedError as e:
                warn(type(self).__name__, e)
                files = None
            self._kept = of, files
        return files

    def _sample(self, slices: Sequence[slice], raster: Raster) -> Sample:
        """Returns a sample as `RasterDataset.__getitem__` does, of pixels that were read."""
        x, y, t = slices
        bounds = x.start, x.stop, x.step, y.start, y.stop, y.step
        transform = rasterio.transform.from_origin(x.start, y.stop, x.step, y.step)
        sample = {
            "bounds": torch.tensor([*bounds, t.start.timestamp(), t.stop.timestamp(), t.step]),
            "transform": torch.tensor(transform),
        }
        narrow = raster.dtype not in (np.float32, np.int64)  # which need no conversion, nor a copy
        tensor = array_to_tensor(raster) if narrow else torch.from_numpy(raster)
        if self.is_image:
            sample["image"] = tensor.to(self.dtype)
        else:
            sample["mask"] = tensor.to(self.dtype).squeeze(-3)
        return sample if self.transforms is None else self.transforms(sample)


class _Intersection(IntersectionDataset):  # type: ignore[misc]
    """An intersection that gives a `DataLoader` whole batches."""

    __and__ = ChaskiDataset.__and__

    def __getitems__(self, indices: Sequence[Any]) -> list[Sample]:
        engines = [d.engine for d in self.datasets if hasattr(d, "engine")]
        read_ahead(self, max(e.prefetch for e in engines))
        parts = [
            d.__getitems__(indices) if hasattr(d, "__getitems__") else [d[i] for i in indices]
            for d in self.datasets
        ]
        with one_thread():
            samples = [self.collate_fn(both) for both in zip(*parts, strict=True)]
            return samples if self.transforms is None else [self.transforms(s) for s in samples]

    def _will_read(self, indices: Sequence[Any]) -> None:
        for d in self.datasets:
            if hasattr(d, "_will_read"):
                d._will_read(indices)


class ChaskiDataModule(BaseDataModule):  # type: ignore[misc]
    """Batches of `chaski.torch.IterableDataset` as TorchGeo's tasks take them.

        fields = {"image": chaski.Field(pattern="images/{id}.tif", dtype="float32"),
                  "mask": chaski.Field(pattern="masks/{id}.tif", dtype="uint8")}
        data = ChaskiDataModule("chips/", batch_size=16, fields=fields,
                                train={"rows": chaski.Rows(take=900)}, val={...})
        Trainer().fit(SemanticSegmentation(in_channels=4, num_classes=9), data)

    A checkpoint in the middle of an epoch resumes with the next batch. A batch has only the rows
    that are valid. A "mask" of one band has the axes (n y x) and, of integers, the dtype int64.
    With `pixels=chaski.Pixels(geo=True)` it has "bounds" (least x, y, greatest x, y) and
    "transform". `plot` draws the members of a sample by `chaski.show`.

    The engine normalises (`normalize=`), so that `mean` is 0 and `std` is 1 here.
    """

    mean = torch.tensor(0.0)
    std = torch.tensor(1.0)

    def __init__(
        self,
        source: SourceLike,
        *,
        batch_size: int,
        train: Mapping[str, Any] | None = None,
        val: Mapping[str, Any] | None = None,
        test: Mapping[str, Any] | None = None,
        predict: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> None:
        """Makes a data module; files are opened when a loop begins.

        Args:
            source: as of `chaski.load`.
            batch_size: samples of a global batch, over all ranks.
            train: arguments that differ in training. `shuffle` and `drop_last` are on there, and
                off elsewhere.
            val: arguments that differ in validation. None: there is no validation.
            test: arguments that differ in tests. None: there are no tests.
            predict: arguments that differ in predictions. None: there are no predictions.
            options: arguments of `chaski.torch.IterableDataset` for all of them.
        """
        super().__init__(ChaskiDataset, batch_size)
        self._source, self._options = source, options
        self._splits = {"train": train or {}, "val": val, "test": test, "predict": predict}

    def setup(self, stage: str) -> None:
        """Does nothing."""

    def train_dataloader(self) -> Any:
        """Returns the batches to train on."""
        return self._batches("train")

    def val_dataloader(self) -> Any:
        """Returns the batches to validate on."""
        return self._batches("val")

    def test_dataloader(self) -> Any:
        """Returns the batches to test on."""
        return self._batches("test")

    def predict_dataloader(self) -> Any:
        """Returns the batches to predict of."""
        return self._batches("predict")

    def _batches(self, split: str) -> Any:
        own = self._splits[split]
        if own is None:
            return []
        training = split == "train"
        options = {"shuffle": training, "drop_last": training, **self._options, **own}
        return _Batches(self._source, batch_size=self.batch_size, **options)

    def plot(self, sample: Mapping[str, Any], **options: Any) -> Figure:
        """Draws the image, mask and prediction of a sample.

        Args:
            sample: without the axis n.
            options: as of `chaski.Batch.plot`.
        """
        batch = Members()
        for name in ("image", "mask", "prediction"):
            if name in sample:
                batch[name] = sample[name][None]
                batch.axes = {**batch.axes, name: ("n", "b", "y", "x")[-batch[name].ndim :]}
        return batch.plot(**options)


class _Batches(IterableDataset):
    """Batches with the members of TorchGeo's samples."""

    def __iter__(self) -> Iterator[Sample]:
        return map(_as_theirs, super().__iter__())


def _as_theirs(batch: Sample) -> Sample:
    """Returns a batch as TorchGeo has it."""
    valid = batch["valid"]
    tensors = {k: v for k, v in batch.items() if isinstance(v, torch.Tensor)}
    out = {k: v if bool(valid.all()) else v[valid] for k, v in tensors.items() if k != "valid"}
    mask = out.get("mask")
    if mask is not None:
        mask = mask if mask.is_floating_point() else mask.long()
        out["mask"] = mask.squeeze(1) if mask.ndim == 4 else mask
    for name in ("bounds", "transform"):
        if f"geo.{name}" in out:
            out[name] = out.pop(f"geo.{name}")
    return out
