"""Windows of files on one map, as datasets of TorchGeo have them, read ahead by an engine."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd
import rasterio.crs
import shapely
import torch

from chaski._ahead import Ahead
from chaski._loader import Loader, load
from chaski._proto.arguments import Field, Pixels, TileWindow
from chaski.errors import UnsupportedError

Raster: TypeAlias = npt.NDArray[Any]

# What the engine converts: the types of a dataset and of its files. All values stay exact.
_SMALL = ("uint8", "int8", "int16", "uint16")
_CONVERTED = {(torch.float32, d): "float32" for d in (*_SMALL, "float32")}
_CONVERTED |= {(torch.int64, d): "int64" for d in _SMALL}


class Grid(NamedTuple):
    """Where the pixels of a file lie that TorchGeo does not warp."""

    crs: rasterio.crs.CRS
    west: float
    north: float
    res: tuple[float, float]
    height: int
    width: int
    dtype: str
    nodata: float | None
    tile: tuple[int, int]


@dataclass(slots=True)
class _Piece:
    """What a file has of a window: its pixels from `corner` on lie in the window from `at` on."""

    file: int
    corner: tuple[int, int]
    at: tuple[int, int]
    size: tuple[int, int]  # of the window
    pixels: Any = None


class Files:
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
        self._options: dict[str, Any] = {
            "source": columns or files,
            "fields": {n: replace(field, column=n if columns else None) for n in self._names},
            "engine": dataset.engine,
        }
        self._loaders: dict[bool, Loader] = {}  # by whether windows share tiles
        self._loader(share=False)
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
            warn(self._name, e)
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

    def _loader(self, share: bool) -> Loader:
        """Returns the loader of windows that share decoded tiles, or of others."""
        if share not in self._loaders:
            window = TileWindow(1, per_visit=1, visits=1) if share else None
            pixels = Pixels(pad=True)
            more: dict[str, Any] = {"batch_size": 1, "shuffle": False, "pixels": pixels}
            self._loaders[share] = load(**self._options, **more, window=window)
        return self._loaders[share]

    def _shares(self, pieces: Sequence[_Piece]) -> bool:
        """Reports whether pieces have so many tiles in common that they had better share them.

        Of a tile of its own, a window decodes the rows that it needs, of a shared one all.
        """
        tiles: list[tuple[int, int, int]] = []
        for piece in pieces:
            grid = self._grids[piece.file]
            assert grid is not None
            spans = zip(piece.corner, piece.size, grid.tile, (grid.height, grid.width), strict=True)
            y, x = (
                range(at // n, (min(at + size, end) - 1) // n + 1) for at, size, n, end in spans
            )
            tiles += product((piece.file,), y, x)
        return len(tiles) > 1.5 * len(set(tiles))

    def _fetch(self, pieces: Sequence[_Piece]) -> None:
        """Reads the pixels of pieces."""
        for size in {p.size for p in pieces}:
            alike = [p for p in pieces if p.size == size]
            loader = self._loader(self._shares(alike))
            batch = loader.fetch([p.file for p in alike], [(*p.corner, *size) for p in alike])
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


def warn(dataset: str, why: object) -> None:
    warnings.warn(f"TorchGeo reads {dataset} itself: {why}", stacklevel=4)
