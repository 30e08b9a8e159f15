"""chaski below TorchGeo: its raster datasets, with an engine that reads the pixels.

    class Scenes(chaski.torchgeo.ChaskiDataset):  # in place of TorchGeo's RasterDataset
        filename_glob = "*.tif"

    class FastNAIP(chaski.torchgeo.ChaskiDataset, torchgeo.datasets.NAIP): ...

    images = Scenes("scenes/")
    sampler = RandomPatchSampler(images, size=256)
    batches = DataLoader(images, batch_size=16, sampler=sampler, collate_fn=stack_samples)

Index, samplers, transforms, `plot` and samples are TorchGeo's own. `ChaskiDataModule` goes further:
its batches come in an order that resumes exactly. Both need TorchGeo 0.10.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from chaski import _distribution as _distribution  # chaski/__init__.py may be another project's
from chaski._arguments import Engine, SourceLike
from chaski._fields import Field, Pixels
from chaski._open import load
from chaski._plain import needs
from chaski._plot import Members
from chaski._rpc import PREFETCH
from chaski.errors import UnsupportedError

with needs("chaski.torchgeo needs TorchGeo: pip install torchgeo"):
    import pandas as pd
    import rasterio.crs
    import rasterio.io
    import rasterio.transform
    import shapely
    import torch
    import torch.utils.data
    from torchgeo.datamodules import BaseDataModule
    from torchgeo.datasets import GeoDataset, IntersectionDataset, RasterDataset
    from torchgeo.datasets.utils import array_to_tensor

    from chaski._ahead import Ahead, one_thread, read_ahead
    from chaski.torch import IterableDataset

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["ChaskiDataModule", "ChaskiDataset"]

Sample: TypeAlias = dict[str, Any]
Raster: TypeAlias = npt.NDArray[Any]

# What the engine converts: the types of a dataset and of its files. All values stay exact.
_SMALL = ("uint8", "int8", "int16", "uint16")
_CONVERTED = {(torch.float32, d): "float32" for d in (*_SMALL, "float32")}
_CONVERTED |= {(torch.int64, d): "int64" for d in _SMALL}


class ChaskiDataset(RasterDataset):  # type: ignore[misc]
    """A `torchgeo.datasets.RasterDataset` whose pixels an engine reads, by all of its workers.

    All arguments, members and results are those of RasterDataset. In a `DataLoader` with
    `num_workers=0` the engine reads whole batches, `engine.prefetch` of them ahead of the loop,
    also of an intersection such as `images & masks`. Of a class with a `__getitem__` of its own,
    which maps labels or reads other files, TorchGeo reads all pixels.

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
        grids: dict[str, _Grid | None] = self.__dict__.setdefault("_grids", {})
        grids[str(filepath)] = None
        if isinstance(file, rasterio.io.DatasetReader) and t.is_rectilinear and t.a > 0 > t.e:
            where = file.crs, t.c, t.f, (t.a, -t.e), file.height, file.width
            grids[str(filepath)] = _Grid(*where, file.dtypes[0], file.nodata)
        return file

    def _grid(self, file: str) -> _Grid | None:
        """Returns the grid of a file, None if the file has to be warped."""
        if file not in self._grids:
            self._load_warp_file(file, self.crs).close()
        grid: _Grid | None = self._grids[file]
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
        read_ahead(self, self.engine.prefetch or PREFETCH)
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

    def _opened(self) -> _Files | None:
        """Returns the files opened by an engine, None if TorchGeo has to read them."""
        # An index may be changed in place. Equal lists of the same objects are found equal quickly.
        index, outlines = self.index, self.index.geometry.to_numpy().tolist()
        of = list(index.filepath), outlines, self.crs, self.res
        kept: tuple[Any, Any, _Files | None] = self.__dict__.get("_kept", (None, None, None))
        before, times, files = kept
        if before != of or not index.index.equals(times):
            try:
                if super().__getitem__.__func__ is not RasterDataset.__getitem__:
                    raise UnsupportedError("its class has a __getitem__ of its own")
                files = _Files(self)
            except UnsupportedError as e:
                _warn(type(self).__name__, e)
                files = None
            self._kept = of, index.index, files
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
        read_ahead(self, max(e.prefetch or PREFETCH for e in engines))
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


class _Grid(NamedTuple):
    """Where the pixels of a file lie that TorchGeo does not warp."""

    crs: rasterio.crs.CRS
    west: float
    north: float
    res: tuple[float, float]
    height: int
    width: int
    dtype: str
    nodata: float | None


@dataclass(slots=True)
class _Piece:
    """What a file has of a window: its pixels from `corner` on lie in the window from `at` on."""

    file: int
    corner: tuple[int, int]
    at: tuple[int, int]
    size: tuple[int, int]  # of the window
    pixels: Any = None


class _Files:
    """The files of a dataset, opened by an engine, and a tree of their outlines.

    Attributes:
        ahead: gives the pixels of slices, None for those that TorchGeo has to read.
    """

    def __init__(self, dataset: Any) -> None:
        """Opens the files.

        Raises:
            UnsupportedError: TorchGeo has to read all of them.
        """
        files, columns = list(dataset.index.filepath), {}
        crs = rasterio.crs.CRS.from_user_input(dataset.crs)
        grids = [dataset._grid(f) for f in files]
        self._grids = [g if g and g.crs == crs and g.res == dataset.res else None for g in grids]
        row = next((i for i, g in enumerate(self._grids) if g), None)
        if row is None:
            raise UnsupportedError("no file has its map and resolution, or nodata is its own")
        first: Any = self._grids[row]
        for i, band in enumerate(dataset.bands if dataset.separate_files else ()):
            columns[f"b{i}"] = [dataset._update_filepath(band, f) for f in files]
            if (dataset._grid(columns[f"b{i}"][row]) or ())[:6] != first[:6]:
                raise UnsupportedError("its bands have several grids")
        picked = None if columns else dataset.band_indexes
        # Of the first file, as rasterio merges files; it stands where no file has a pixel.
        self._nodata = 0 if first.nodata is None else first.nodata
        field = Field(
            kind="raster",
            bands=[i - 1 for i in picked] if picked else "position",
            dtype=_CONVERTED.get((dataset.dtype, first.dtype), "native"),
            fill=self._nodata,
            normalize=False,
        )
        self._names = list(columns) or ["image"]
        self._loader = load(
            columns or files,
            batch_size=1,
            fields={n: replace(field, column=n if columns else None) for n in self._names},
            pixels=Pixels(pad=True),
            shuffle=False,
            engine=dataset.engine,
        )
        self._name, self._steps = type(dataset).__name__, dataset.time_series
        self._res, self._whole, self._times = dataset.res, dataset.bounds, dataset.index.index
        # Which files have a point of the time of the dataset, which most windows have.
        self._always = self._during(self._whole[2], np.arange(len(files)))
        self._tree = shapely.STRtree(dataset.index.geometry.to_numpy())
        self.ahead = Ahead(self._read)

    def slices(self, index: slice | tuple[slice, ...]) -> list[slice]:
        """Returns an index with all of its ends and steps, by default those of the dataset."""
        slices = list(self._whole)
        for i, s in enumerate(index if isinstance(index, tuple) else (index,)):
            whole = slices[i]
            pairs = (s.start, whole.start), (s.stop, whole.stop), (s.step, whole.step)
            slices[i] = slice(*(default if v is None else v for v, default in pairs))
        return slices

    def _read(self, indices: Sequence[Any]) -> list[Raster | None]:
        """Reads the pixels of slices, all at once."""
        windows = self._windows(indices)
        try:
            self._fetch([piece for pieces in windows for piece in pieces])
        except UnsupportedError as e:
            _warn(self._name, e)
            return [None] * len(indices)
        if self._steps:
            return [
                np.stack([self._joined([p]) for p in all_]) if all_ else None for all_ in windows
            ]
        return [self._joined(pieces) if pieces else None for pieces in windows]

    def _windows(self, indices: Sequence[Any]) -> list[list[_Piece]]:
        """Returns what the files have of slices, nothing of those that TorchGeo has to read."""
        given = [self.slices(index) for index in indices]
        hits = self._hits([x for x, _, _ in given], [y for _, y, _ in given])
        return [self._pieces(x, y, t, f) for (x, y, t), f in zip(given, hits, strict=True)]

    def _pieces(self, x: slice, y: slice, t: slice, hits: npt.NDArray[np.intp]) -> list[_Piece]:
        """Returns what files have of a window; see `_windows`."""
        height, width = round((y.stop - y.start) / y.step), round((x.stop - x.start) / x.step)
        pieces: list[_Piece] = []
        if (x.step, y.step) != self._res or min(height, width) < 1:
            return pieces
        always = t == self._whole[2]
        for f in hits[self._always[hits] if always else self._during(t, hits)].tolist():
            if (grid := self._grids[f]) is None:
                return []
            # The pixel that has the middle of the window's first pixel.
            row = math.floor((grid.north - y.stop) / y.step + 0.5)
            column = math.floor((x.start - grid.west) / x.step + 0.5)
            if -height < row < grid.height and -width < column < grid.width:
                at = max(-row, 0), max(-column, 0)
                pieces.append(_Piece(f, (row + at[0], column + at[1]), at, (height, width)))
            elif self._steps:  # it has less than a pixel of the window: a step of nodata
                pieces.append(_Piece(f, (0, 0), (height, width), (height, width)))
        return pieces

    def _hits(self, x: Sequence[slice], y: Sequence[slice]) -> list[npt.NDArray[np.intp]]:
        """Returns the files that have a point of each window, in their order."""
        west, south = [s.start for s in x], [s.start for s in y]
        boxes = shapely.box(west, south, [s.stop for s in x], [s.stop for s in y])
        window, file = self._tree.query(boxes, predicate="intersects")
        ends = np.cumsum(np.bincount(window, minlength=len(x)))
        return np.split(file[np.lexsort((file, window))], ends[:-1])

    def _during(self, t: slice, files: npt.NDArray[np.intp]) -> Any:
        """Returns which of some files have a point of a time."""
        when = pd.Interval(t.start, t.stop)
        if t.step == 1:
            return self._times[files].overlaps(when)
        return np.isin(files, np.flatnonzero(self._times.overlaps(when))[:: t.step])

    def _fetch(self, pieces: Sequence[_Piece]) -> None:
        """Reads the pixels of pieces."""
        for size in {p.size for p in pieces}:
            alike = [p for p in pieces if p.size == size]
            batch = self._loader.fetch([p.file for p in alike], [(*p.corner, *size) for p in alike])
            for k, piece in enumerate(alike):
                bands = [batch[name][k] for name in self._names]
                piece.pixels = bands[0] if len(bands) == 1 else np.concatenate(bands)

    def _joined(self, pieces: Sequence[_Piece]) -> Raster:
        """Returns a window: each pixel is of the first piece in which it is not nodata."""
        nodata = self._nodata
        first: Raster = pieces[0].pixels
        if len(pieces) == 1 and pieces[0].at == (0, 0):
            return first
        out = np.full_like(first, nodata)
        for piece in pieces:
            region = out[:, piece.at[0] :, piece.at[1] :]
            part = piece.pixels[:, : region.shape[1], : region.shape[2]]
            empty = np.isnan(region) if nodata != nodata else region == nodata
            np.copyto(region, part, where=empty)
        return out


def _warn(dataset: str, why: object) -> None:
    warnings.warn(f"TorchGeo reads {dataset} itself: {why}", stacklevel=4)


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
            train: arguments that differ in training. There `shuffle` is on and `last` is "drop";
                elsewhere it is off and "short".
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
        last = "drop" if training else "short"
        options = {"shuffle": training, "last": last, **self._options, **own}
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
