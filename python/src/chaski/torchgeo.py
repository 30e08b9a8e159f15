"""chaski below TorchGeo: its raster datasets, with an engine that reads the pixels.

    class Scenes(chaski.torchgeo.ChaskiDataset):  # in place of torchgeo.datasets.RasterDataset
        filename_glob = "*.tif"

    class FastNAIP(chaski.torchgeo.ChaskiDataset, torchgeo.datasets.NAIP): ...

    images = Scenes("scenes/")
    sampler = RandomPatchSampler(images, size=256)
    batches = DataLoader(images, batch_size=16, sampler=sampler, collate_fn=stack_samples)

Index, samplers, transforms, `plot` and samples are TorchGeo's own. `ChaskiDataModule` goes further:
its batches are made ahead, in an order that resumes exactly. Both need TorchGeo 0.10.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
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

from chaski import _distribution as _distribution  # chaski/__init__.py may be another project's
from chaski._assemble import Members
from chaski._loader import load
from chaski._proto.arguments import Engine, Field, Pixels, SourceLike
from chaski.errors import UnsupportedError
from chaski.torch import IterableDataset

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["ChaskiDataModule", "ChaskiDataset"]

Sample: TypeAlias = dict[str, Any]
Slices: TypeAlias = tuple[slice, slice, slice]

# Types whose values float32 holds exactly: the engine converts them as torch would.
_EXACT = ("uint8", "int8", "int16", "uint16", "float32")


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
    size: tuple[int, int]
    pixels: npt.NDArray[Any] | None = None


@dataclass(slots=True)
class _Request:
    """A sample that the engine reads: its slices, and its pieces in the order of the files."""

    slices: Slices
    pieces: list[_Piece]


class ChaskiDataset(RasterDataset):  # type: ignore[misc]
    """A `torchgeo.datasets.RasterDataset` whose pixels an engine reads, by all of its workers.

    All arguments, members and results are those of RasterDataset. A `DataLoader` asks for a batch
    at once, also of an intersection such as `images & masks`; give it `num_workers=0`.

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
            Error: a file cannot be read; of the kind that fits.
        """
        if torch.utils.data.get_worker_info() is not None:
            raise RuntimeError(
                "the engine of a ChaskiDataset has workers of its own: use a DataLoader with "
                "num_workers=0"
            )
        opened = self._opened()
        requests = [opened.request(index) if opened else None for index in indices]
        try:
            if opened:
                opened.fetch([p for r in requests if r for p in r.pieces])
        except UnsupportedError as e:
            _warn(self, str(e))
            requests = [None] * len(indices)
        read = super().__getitem__
        return [
            self._sample(r, opened.nodata) if r and opened else read(index)
            for r, index in zip(requests, indices, strict=True)
        ]

    def _opened(self) -> _Opened | None:
        """Returns the files opened by an engine, None if TorchGeo has to read them."""
        of = id(self.index), self.crs, self.res
        before, opened = self.__dict__.get("_kept", (None, None))
        if before != of:
            opened = _open(self)
            self._kept = of, opened
        return opened  # type: ignore[no-any-return]

    def _sample(self, request: _Request, nodata: float) -> Sample:
        """Returns a sample as `RasterDataset.__getitem__` does, of pixels that were read."""
        x, y, t = request.slices
        bounds = x.start, x.stop, x.step, y.start, y.stop, y.step
        transform = rasterio.transform.from_origin(x.start, y.stop, x.step, y.step)
        sample = {
            "bounds": torch.tensor([*bounds, t.start.timestamp(), t.stop.timestamp(), t.step]),
            "transform": torch.tensor(transform),
        }
        if self.time_series:
            data = np.stack([_merged([p], nodata) for p in request.pieces])
        else:
            data = _merged(request.pieces, nodata)
        tensor = array_to_tensor(data).to(self.dtype)
        if self.is_image:
            sample["image"] = tensor
        else:
            sample["mask"] = tensor.squeeze(-3)
        return sample if self.transforms is None else self.transforms(sample)


class _Intersection(IntersectionDataset):  # type: ignore[misc]
    """An intersection that gives a `DataLoader` whole batches."""

    __and__ = ChaskiDataset.__and__

    def __getitems__(self, indices: Sequence[Any]) -> list[Sample]:
        parts = [
            d.__getitems__(indices) if hasattr(d, "__getitems__") else [d[i] for i in indices]
            for d in self.datasets
        ]
        samples = [self.collate_fn(both) for both in zip(*parts, strict=True)]
        return samples if self.transforms is None else [self.transforms(s) for s in samples]


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


def _open(dataset: ChaskiDataset) -> _Opened | None:
    """Opens the files of a dataset by an engine. Returns None where it can read none of them."""
    files = list(dataset.index.filepath)
    crs = rasterio.crs.CRS.from_user_input(dataset.crs)
    all_grids = [dataset._grid(f) for f in files]
    grids = [g if g and g.crs == crs and g.res == dataset.res else None for g in all_grids]
    first = next((g for g in grids if g), None)
    if first is None:
        _warn(dataset, "no file has its map and resolution, or it has a nodata of its own")
        return None
    columns, bands = {"b0": files}, None
    if dataset.separate_files:
        columns = {
            f"b{i}": [dataset._update_filepath(band, f) for f in files]
            for i, band in enumerate(dataset.bands)
        }
        row = grids.index(first)
        if any(
            (g := dataset._grid(c[row])) is None or g[:6] != first[:6] for c in columns.values()
        ):
            _warn(dataset, "its bands have several grids")
            return None
    elif dataset.band_indexes:
        bands = [i - 1 for i in dataset.band_indexes]
    return _Opened(dataset, grids, columns, bands, first)


class _Opened:
    """The files of a dataset, opened by an engine, and a tree of their outlines.

    Attributes:
        nodata: of the first file, as rasterio merges files; it stands where no file has a pixel.
    """

    def __init__(
        self,
        dataset: ChaskiDataset,
        grids: list[_Grid | None],
        columns: dict[str, list[str]],
        bands: list[int] | None,
        first: _Grid,
    ) -> None:
        self.nodata = 0 if first.nodata is None else first.nodata
        self._grids, self._names = grids, list(columns)
        self._res, self._bounds, self._steps = dataset.res, dataset.bounds, dataset.time_series
        self._times = dataset.index.index
        self._tree = shapely.STRtree(dataset.index.geometry.to_numpy())
        floats = dataset.dtype == torch.float32 and first.dtype in _EXACT
        field = Field(
            kind="raster",
            bands=bands or "position",
            dtype="float32" if floats else "native",
            fill=self.nodata,
            normalize=False,
        )
        several = len(columns) > 1
        self._loader = load(
            columns if several else columns["b0"],
            batch_size=1,
            shuffle=False,
            fields={n: replace(field, column=n if several else None) for n in columns},
            pixels=Pixels(pad=True),
            engine=dataset.engine,
        )

    def request(self, index: Any) -> _Request | None:
        """Returns what a sample needs, None if TorchGeo has to read it."""
        x, y, _ = slices = self._slices(index)
        size = round((y.stop - y.start) / y.step), round((x.stop - x.start) / x.step)
        if (x.step, y.step) != self._res or min(size) < 1:
            return None
        pieces = []
        for f in self._files_in(slices).tolist():
            grid = self._grids[f]
            if grid is None:
                return None
            # The pixel that has the middle of the window's first pixel.
            row = math.floor((grid.north - y.stop) / y.step + 0.5)
            column = math.floor((x.start - grid.west) / x.step + 0.5)
            if -size[0] < row < grid.height and -size[1] < column < grid.width:
                at = max(-row, 0), max(-column, 0)
                pieces.append(_Piece(f, (row + at[0], column + at[1]), at, size))
            elif self._steps:  # it has less than a pixel of the window: a step of nodata
                pieces.append(_Piece(f, (0, 0), size, size))
        return _Request(slices, pieces) if pieces else None

    def fetch(self, pieces: Sequence[_Piece]) -> None:
        """Reads the pixels of all pieces."""
        for size in {p.size for p in pieces}:
            alike = [p for p in pieces if p.size == size]
            windows = [(*p.corner, *size) for p in alike]
            batch = self._loader.fetch([p.file for p in alike], windows)
            for k, piece in enumerate(alike):
                bands = [batch[name][k] for name in self._names]
                piece.pixels = bands[0] if len(bands) == 1 else np.concatenate(bands)

    def _slices(self, index: slice | tuple[slice, ...]) -> Slices:
        """Returns an index with all of its ends and steps, by default those of the dataset."""
        slices = list(self._bounds)
        for i, s in enumerate(index if isinstance(index, tuple) else (index,)):
            whole = slices[i]
            pairs = (s.start, whole.start), (s.stop, whole.stop), (s.step, whole.step)
            slices[i] = slice(*(default if v is None else v for v, default in pairs))
        x, y, t = slices
        return x, y, t

    def _files_in(self, slices: Slices) -> npt.NDArray[np.intp]:
        """Returns the files that have a point in common with slices, in the order of the index."""
        x, y, t = slices
        window = shapely.box(x.start, y.start, x.stop, y.stop)
        hits: npt.NDArray[np.intp] = np.sort(self._tree.query(window, predicate="intersects"))
        when = pd.Interval(t.start, t.stop)
        if t.step == 1:
            hits = hits[self._times[hits].overlaps(when)]
        else:
            hits = hits[np.isin(hits, np.flatnonzero(self._times.overlaps(when))[:: t.step])]
        return hits


def _merged(pieces: Sequence[_Piece], nodata: float) -> npt.NDArray[Any]:
    """Returns a window of pieces: each pixel is of the first piece in which it is not nodata."""
    first = pieces[0].pixels
    assert first is not None
    if len(pieces) == 1 and pieces[0].at == (0, 0):
        return first
    out = np.full_like(first, nodata)
    for piece in pieces:
        assert piece.pixels is not None
        region = out[:, piece.at[0] :, piece.at[1] :]
        part = piece.pixels[:, : region.shape[1], : region.shape[2]]
        np.copyto(region, part, where=np.isnan(region) if nodata != nodata else region == nodata)
    return out


def _warn(dataset: GeoDataset, why: str) -> None:
    warnings.warn(f"TorchGeo reads {type(dataset).__name__} itself: {why}", stacklevel=4)
