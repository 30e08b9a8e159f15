"""chaski below TorchGeo: its raster datasets, with an engine that reads the pixels.

    images = chaski.torchgeo.accelerate(images)  # also images & masks, or images | others
    sampler = RandomPatchSampler(images, size=256)
    batches = DataLoader(images, batch_size=16, sampler=sampler, collate_fn=stack_samples)

Index, samplers, transforms, `plot` and samples are TorchGeo's own. `ChaskiDataModule` goes further:
its batches come in an order that resumes exactly. Both need TorchGeo 0.10.
"""

from __future__ import annotations

import contextlib
import functools
import threading
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from chaski import _distribution as _distribution  # chaski/__init__.py may be another project's
from chaski._arguments import Engine, SourceLike
from chaski._fields import Pixels
from chaski._open import load
from chaski._plain import needs
from chaski._plot import Members
from chaski._rpc import PREFETCH
from chaski.errors import NotFoundError, SpecError, UnsupportedError

with needs("chaski.torchgeo needs TorchGeo: pip install torchgeo"):
    import pandas as pd
    import rasterio
    import rasterio.transform
    import shapely
    import torch
    import torch.utils.data
    from torchgeo.datamodules import BaseDataModule
    from torchgeo.datasets import (
        GeoDataset,
        IntersectionDataset,
        RasterDataset,
        UnionDataset,
        XarrayDataset,
    )
    from torchgeo.datasets.utils import array_to_tensor

    from chaski._ahead import Accelerated, Ahead, accelerated, one_thread, read_ahead
    from chaski._cubes import Cube
    from chaski._cubes import merged as merged_cubes
    from chaski._warped import Pick, Reader, Region, merged
    from chaski.torch import IterableDataset

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["ChaskiDataModule", "accelerate"]

_GRAIN = 32  # sizes of windows are multiples of it: an engine changes them slowly

Sample: TypeAlias = dict[str, Any]
Raster: TypeAlias = npt.NDArray[Any]
Dataset = TypeVar("Dataset", bound=torch.utils.data.Dataset[Any])


def accelerate(dataset: Dataset, *, engine: Engine | None = None) -> Dataset:
    """Returns a dataset with the samples of another one, whose pixels an engine reads.

        dataset = chaski.torchgeo.accelerate(dataset)

    It is an instance of the same class, and what the class does on top of its files stays: its
    `__getitem__`, `transforms`, `plot`. In a `DataLoader` with `num_workers=0` the engine reads
    whole batches by all of its workers, `engine.prefetch` of them ahead of the loop. Files of
    another CRS or resolution are warped as rasterio's WarpedVRT does. What the engine does not
    read, TorchGeo reads itself; a warning says once what it is and why.

    Args:
        dataset: a `RasterDataset`, an `XarrayDataset`, an `IntersectionDataset` or a
            `UnionDataset`, also of a class of one's own. Others are returned as they are, with a
            warning.
        engine: threads, memory and timeouts, as of `chaski.load`.
    """
    fast: Dataset = _accelerated(dataset, engine or Engine(), {})
    return fast


def _accelerated(dataset: Any, engine: Engine, done: dict[int, Any]) -> Any:
    """Returns a dataset that is accelerated, the same one for the same one."""
    if isinstance(dataset, _Accelerated):
        return dataset
    if id(dataset) in done:
        return done[id(dataset)]
    of = next((own for kind, own in _KINDS.items() if isinstance(dataset, kind)), None)
    if of is None:
        _warn(f"{type(dataset).__name__} itself: it is not a dataset of rasters")
        return dataset
    fast = done[id(dataset)] = accelerated(dataset, *of, _engine=engine)
    if isinstance(dataset, IntersectionDataset | UnionDataset):
        members = {id(d): _accelerated(d, engine, done) for d in dataset.datasets}
        fast.datasets = [members[id(d)] for d in dataset.datasets]
        # Composite classes keep their members by name, too.
        vars(fast).update({k: members[id(v)] for k, v in vars(fast).items() if id(v) in members})
    return fast


class _Accelerated(Accelerated):
    """What accelerated datasets have before the members of their class."""

    _engine: Engine
    _own: Any = None  # files that were looked up in the index
    _OPENED = ("_own", "_pixels", "_ahead", "_known", "_readers", "_also", "_warned")

    def __and__(self, other: GeoDataset) -> Any:
        """Returns the intersection with another dataset, which is accelerated, too."""
        return _accelerated(IntersectionDataset(self, other), self._engine, {})

    def __or__(self, other: GeoDataset) -> Any:
        """Returns the union with another dataset, which is accelerated, too."""
        return _accelerated(UnionDataset(self, other), self._engine, {})

    def __getitems__(self: Any, indices: Sequence[Any]) -> list[Sample]:
        """Returns the samples of several slices, read at once.

        Raises:
            IndexError: no file lies in a slice.
        """
        if _in_worker():
            return [self[index] for index in indices]
        read_ahead(self, self._engine.prefetch or PREFETCH)
        with one_thread(), contextlib.ExitStack() as read:
            for leaf in self._leaves():
                read.enter_context(leaf._given(indices))
            return [self[index] for index in indices]

    def _will_read(self: Any, indices: Sequence[Any]) -> None:
        """Begins to read slices that `__getitems__` will be asked for."""
        for leaf in self._leaves():
            leaf._began().begin(indices)

    def _leaves(self: Any) -> Iterator[Any]:
        """Iterates over the accelerated datasets of files below this one."""
        for dataset in self.datasets:
            if isinstance(dataset, _Accelerated):
                yield from dataset._leaves()


class _Leaf(_Accelerated):
    """What accelerated datasets that have files have before the members of their class."""

    def _leaves(self) -> Iterator[Any]:
        yield self

    def _began(self: Any) -> Ahead[dict[Region, Any]]:
        """Returns what reads the regions of slices, ahead of the loop."""
        if "_ahead" not in vars(self):
            self._ahead = Ahead(self._read)
        ahead: Ahead[dict[Region, Any]] = self._ahead
        return ahead

    @contextlib.contextmanager
    def _given(self: Any, indices: Sequence[Any]) -> Iterator[None]:
        """Has the pixels of slices at hand, and takes the index for what it is now."""
        pixels = self._opened()
        pixels.given, self._fixed = self._began().take(indices), True
        try:
            yield
        finally:
            pixels.given, self._fixed = {}, False

    def _opened(self: Any) -> _Pixels:
        """Returns what reads the pixels of files."""
        if "_pixels" not in vars(self):
            self._readers: dict[str, Any] = {}
            self._warned: set[str] = set()
            self._pixels = _Pixels(self._engine)
        pixels: _Pixels = self._pixels
        return pixels

    def _indexed(self: Any) -> _Index:
        """Returns the files by place and time."""
        known: _Index | None = vars(self).get("_known")
        if known is None or not (vars(self).get("_fixed") or known.is_of(self)):
            known = self._known = _Index(self)
            self._opened().expected = self._paths(known.files)
        return known

    def _paths(self, files: Sequence[str]) -> Sequence[str]:
        """Returns all files that the engine may read, of the files of the index."""
        return files

    def _disambiguate_slice(self, index: Any) -> tuple[slice, ...]:
        return self._indexed().slices(index)

    def _read(self: Any, indices: Sequence[Any]) -> dict[Region, Any]:
        """Reads the regions of files that the samples of slices will ask for."""
        known, wanted = self._indexed(), dict[Region, Any]()
        for index in indices:
            slices = known.slices(index)
            for file in known.of(*slices):
                wanted.update(self._regions(file, *slices))
        pixels: _Pixels = self._opened()
        return pixels.read(wanted)

    def _reader(self: Any, filepath: Any, crs: Any) -> Any:
        """Returns what reads a file by the engine, None if TorchGeo has to read it."""
        if _in_worker():
            _warn(
                f"{type(self).__name__} itself in worker processes: the engine has workers of its "
                "own, so use a DataLoader with num_workers=0"
            )
            return None
        pixels, crs = self._opened(), crs or self.crs
        with pixels.lock:
            kept = self._readers.get(str(filepath))
            if kept is None or not (kept[0] is crs or kept[0] == crs):
                try:
                    reader = self._stand_in(filepath, crs)
                except UnsupportedError as e:
                    reader = None
                    self._refuse(filepath, e)
                kept = self._readers[str(filepath)] = crs, reader
            reader = kept[1]
            if reader is not None and reader.refused is not None:
                self._refuse(filepath, reader.refused)
                reader = None
                self._readers[str(filepath)] = crs, None
        return reader

    def _refuse(self: Any, file: Any, why: object) -> None:
        """Says once for each reason why TorchGeo reads files."""
        if str(why) not in self._warned:
            self._warned.add(str(why))
            _warn(f"files of {type(self).__name__} itself, {file} being the first: {why}")


class _Files(_Leaf):
    """What accelerated datasets of rasters have before the members of their class."""

    _also: Mapping[str, Mapping[Any, None]] = {}  # other files that are read beside a file

    def _paths(self: Any, files: Sequence[str]) -> Sequence[str]:
        if not self.separate_files:
            return files
        return [self._update_filepath(b, f) for b in self.bands for f in files]

    def _regions(self: Any, file: str, x: slice, y: slice, t: slice) -> Iterator[tuple[Any, Any]]:
        """Yields the regions that a window needs when a file is read, with their readers."""
        bounds, res = (x.start, y.start, x.stop, y.stop), (x.step, y.step)
        if self.separate_files:
            paths = {(self._update_filepath(b, file), ()): None for b in self.bands}
        else:
            paths = {(file, tuple(self.band_indexes or ())): None}
        for path, bands in paths | self._also.get(file, {}):
            reader = self._reader(path, self.crs)
            region = reader and reader.asked(bounds, res, self.resampling, bands)
            if region:
                yield region, reader

    def _load_warp_file(self: Any, filepath: Any, crs: Any = None) -> Any:
        theirs: Any = super()
        return self._reader(filepath, crs) or theirs._load_warp_file(filepath, crs)

    def _cached_load_warp_file(self: Any, filepath: Any, crs: Any) -> Any:
        theirs: Any = super()
        return self._reader(filepath, crs) or theirs._cached_load_warp_file(filepath, crs)

    def _stand_in(self: Any, filepath: Any, crs: Any) -> Reader:
        theirs: Any = super()
        with theirs._load_warp_file(filepath, crs) as opened:
            again = functools.partial(theirs._load_warp_file, filepath, crs)
            return Reader(opened, self._opened(), again)

    def _merge_or_stack(
        self: Any, filepaths: Any, index: Any, band_indexes: Any = None, out_crs: Any = None
    ) -> Any:
        if _in_worker():
            return super()._merge_or_stack(  # type: ignore[misc]
                filepaths, index, band_indexes, out_crs
            )
        bands = tuple(band_indexes or ())
        if not self.separate_files and filepaths is not self._own:
            # A class may read other files beside those of the index, such as masks.
            known = self._indexed()
            for file, path in zip(known.of(*known.slices(index)), filepaths, strict=False):
                if (path, bands) != (file, tuple(self.band_indexes or ())):
                    also = vars(self).setdefault("_also", {})
                    also.setdefault(file, {})[path, bands] = None
        load = self._cached_load_warp_file if self.cache else self._load_warp_file
        readers = [load(f, out_crs or self.crs) for f in filepaths]
        if all(type(r) is Reader for r in readers):
            x, y, _ = self._disambiguate_slice(index)
            where = (x.start, y.start, x.stop, y.stop), (x.step, y.step)
            groups = [[r] for r in readers] if self.time_series else [readers]
            made = (merged(g, *where, self.resampling, band_indexes) for g in groups)
            rasters = [m for m in made if m is not None]
            if len(rasters) == len(groups):
                return array_to_tensor(np.stack(rasters) if self.time_series else rasters[0])
        theirs: Any = super()
        return theirs._merge_or_stack(filepaths, index, band_indexes, out_crs)


class _Arrays(_Leaf):
    """What accelerated datasets of xarray have before the members of their class."""

    def _regions(self: Any, file: str, x: slice, y: slice, t: slice) -> Iterator[tuple[Any, Any]]:
        """Yields the region that a window needs when a file is read, with its reader."""
        cube = self._reader(file, self.crs)
        region = cube and cube.asked((x.start, y.start, x.stop, y.stop))
        if region:
            yield region, cube

    def _stand_in(self: Any, filepath: Any, crs: Any) -> Cube:
        of = crs, self.res, self.nodata
        return Cube(str(filepath), self.data_vars, *of, source=self._opened())

    def _merge_files(self: Any, filepaths: Any, index: Any, out_crs: Any) -> Any:
        cubes = [self._reader(f, out_crs) for f in filepaths]
        x, y, t = self._disambiguate_slice(index)
        bounds, res = (x.start, y.start, x.stop, y.stop), (abs(x.step), abs(y.step))
        made = None
        if None not in cubes and res == tuple(map(abs, self.res)):
            made = merged_cubes(cubes, bounds, res)
        if made is None:
            theirs: Any = super()
            return theirs._merge_files(filepaths, index, out_crs)
        steps = cubes[0].times.slice_indexer(t.start, t.stop, t.step)
        return torch.stack([array_to_tensor(mosaic[steps]) for mosaic in made])


class _Lookup(RasterDataset):  # type: ignore[misc]
    """Accelerated datasets of files have this in place of members of RasterDataset."""

    def __getitem__(self: Any, index: Any) -> Sample:
        """Returns a sample as `RasterDataset.__getitem__` does, with a quicker look-up of files."""
        x, y, t = self._disambiguate_slice(index)
        files = self._own = self._indexed().of(x, y, t)
        if not files:
            raise IndexError(f"index: {index} not found in dataset with bounds: {self.bounds}")
        if self.separate_files:
            paths = [[self._update_filepath(b, f) for f in files] for b in self.bands]
            merged = [self._merge_or_stack(p, index, out_crs=self.crs) for p in paths]
            tensor = torch.cat(merged, dim=-3)
        else:
            tensor = self._merge_or_stack(files, index, self.band_indexes, out_crs=self.crs)
        transform = rasterio.transform.from_origin(x.start, y.stop, x.step, y.step)
        sample = {
            "bounds": self._slice_to_tensor(index),
            "transform": torch.tensor(transform),
        }
        tensor = tensor.to(self.dtype)
        if self.is_image:
            sample["image"] = tensor
        else:
            sample["mask"] = tensor.squeeze(-3)
        return sample if self.transforms is None else self.transforms(sample)


_KINDS: dict[Any, tuple[tuple[type, ...], ...]] = {
    RasterDataset: ((_Files,), (_Lookup,)),
    XarrayDataset: ((_Arrays,),),
    IntersectionDataset: ((_Accelerated,),),
    UnionDataset: ((_Accelerated,),),
}
"""Classes that come before, and after, the own class of a dataset."""


class _Index:
    """The files of a dataset by place and time."""

    def __init__(self, dataset: Any) -> None:
        index = dataset.index
        self.files: list[str] = list(index.filepath)
        self._outlines = index.geometry.to_numpy().tolist()
        self._times = index.index
        self._whole, self._place = GeoDataset.bounds.fget(dataset), (dataset.crs, dataset.res)
        # Which files have a point of the time of the dataset, which most windows have.
        self._always = self._during(self._whole[2])
        self._tree = shapely.STRtree(self._outlines)

    def is_of(self, dataset: Any) -> bool:
        """Reports whether the index of a dataset, which may be changed in place, is still this."""
        # Equal lists of the same objects are found equal quickly.
        index = dataset.index
        return (
            self.files == list(index.filepath)
            and self._outlines == index.geometry.to_numpy().tolist()
            and self._place == (dataset.crs, dataset.res)
            and (self._times is index.index or self._times.equals(index.index))
        )

    def slices(self, index: slice | tuple[slice, ...]) -> tuple[slice, ...]:
        """Returns an index with all of its ends and steps, by default those of the dataset."""
        slices = list(self._whole)
        for i, s in enumerate(index if isinstance(index, tuple) else (index,)):
            whole = slices[i]
            pairs = (s.start, whole.start), (s.stop, whole.stop), (s.step, whole.step)
            slices[i] = slice(*(default if v is None else v for v, default in pairs))
        return tuple(slices)

    def of(self, x: slice, y: slice, t: slice) -> list[str]:
        """Returns the files that have a point of a window, in their order."""
        box = shapely.box(x.start, y.start, x.stop, y.stop)
        hits = np.sort(self._tree.query(box, predicate="intersects"))
        during = self._always if t == self._whole[2] else self._during(t)
        return [self.files[i] for i in hits[during[hits]].tolist()]

    def _during(self, t: slice) -> npt.NDArray[np.bool_]:
        """Returns which files have a point of a time; of these, each `step`th."""
        during = np.asarray(self._times.overlaps(pd.Interval(t.start, t.stop)))
        out = np.zeros_like(during)
        out[np.flatnonzero(during)[:: t.step]] = True
        return out


class _Group(NamedTuple):
    """Files of one kind that one loader reads."""

    rows: dict[str, int]
    names: list[str]
    """Fields of a sample."""
    loader: Any


@dataclass
class _Pixels:
    """Reads regions of files by an engine.

    Attributes:
        engine: as of `accelerate`.
        given: regions that were read ahead.
        expected: files that a loader is given from the start.
        lock: of the thread that reads ahead and of the one that asks.
    """

    engine: Engine
    given: dict[Region, Any] = None  # type: ignore[assignment]
    expected: Sequence[str] = ()

    def __post_init__(self) -> None:
        self.given, self.lock = {}, threading.RLock()
        self._groups: dict[Any, _Group] = {}
        self._sizes: dict[Any, tuple[int, int]] = {}

    def get(self, region: Region, reader: Reader | Cube) -> Any:
        """Returns the pixels of a region, None if TorchGeo has to read it."""
        found = self.given.get(region)
        return self.read({region: reader}).get(region) if found is None else found

    def read(self, wanted: Mapping[Region, Reader | Cube]) -> dict[Region, Any]:
        """Reads regions at once. Those that TorchGeo has to read are left out."""
        out: dict[Region, Any] = {}
        with self.lock:
            alike: dict[Any, list[tuple[Region, Reader | Cube, Pick]]] = {}
            for region, reader in wanted.items():
                kind = reader.stored, reader.count, region.bands
                alike.setdefault(kind, []).append((region, reader, reader.pick(region)))
            for kind, some in alike.items():
                for size, those in _by_size(some, self._sizes.get(kind)):
                    self._sizes[kind] = size
                    try:
                        self._fetch(kind, size, those, out)
                    except (UnsupportedError, SpecError, NotFoundError) as e:
                        for _, reader, _ in those:
                            if not e.file or reader.path in e.file:
                                reader.refused = e
        return out

    def _fetch(self, kind: Any, size: tuple[int, int], some: Sequence[Any], out: Any) -> None:
        """Reads regions of files of one kind, by windows of one size."""
        group = self._group(kind, [reader for _, reader, _ in some])
        rows = [group.rows[reader.path] for _, reader, _ in some]
        batch = group.loader.fetch(rows, [(*pick.corner, *size) for _, _, pick in some])
        for i, (region, _, pick) in enumerate(some):
            height, width = pick.size
            out[region] = pick.of(*(batch[f][i][..., :height, :width] for f in group.names))

    def _group(self, kind: Any, readers: Sequence[Any]) -> _Group:
        """Returns the files of a kind, opened by a loader that has those of some readers."""
        files = [reader.path for reader in readers]
        group = self._groups.get(kind)
        if group is None or any(f not in group.rows for f in files):
            first = group.rows if group else () if self._groups else self.expected
            rows = {f: i for i, f in enumerate(dict.fromkeys([*first, *files]))}
            if group:
                group.loader.close()
            fields = readers[0].fields(kind[2])
            loader = load(
                [readers[0].row(file) for file in rows],
                batch_size=1,
                fields=fields,
                pixels=Pixels(pad=True),
                shuffle=False,
                engine=self.engine,
            )
            group = self._groups[kind] = _Group(rows, [*fields], loader)
        return group


def _by_size(
    some: Sequence[Any], last: tuple[int, int] | None
) -> Iterator[tuple[tuple[int, int], Sequence[Any]]]:
    """Yields regions with the size of the windows that they are read by.

    There are as few sizes as may be, and the last one comes again if it is not much too large.
    """
    rest = sorted(some, key=lambda each: -each[2].size[0] * each[2].size[1])
    while rest:
        first, size = rest[0][2].size, last
        if size is None or not _fits(first, size, 2):
            size = tuple(-(-n // _GRAIN) * _GRAIN for n in first)
        fit = [each is rest[0] or _fits(each[2].size, size, 4) for each in rest]
        yield size, [each for each, fits in zip(rest, fit, strict=True) if fits]
        rest = [each for each, fits in zip(rest, fit, strict=True) if not fits]


def _fits(size: tuple[int, int], window: tuple[int, int], times: int) -> bool:
    """Reports whether a window has a size, and is at most some times as large."""
    (h, w), (height, width) = size, window
    return h <= height and w <= width and times * h * w >= height * width


def _in_worker() -> bool:
    return torch.utils.data.get_worker_info() is not None


def _warn(what: str) -> None:
    warnings.warn(f"TorchGeo reads {what}", stacklevel=4)


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
        super().__init__(RasterDataset, batch_size)
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
