"""Mosaics of arrays (time y x) in NetCDF, HDF5 and Zarr, as xarray and rioxarray make them.

xarray says what lies in a file, and where; the pixels come from elsewhere.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from chaski._fields import Field
from chaski._warped import Bounds, Pick, Raster, Region, Source, fill_up, size_of
from chaski.errors import UnsupportedError

_ROUND = 1e-6  # pixels that a place may be off the grid, by rounding


class Cube:
    """Some variables of a file, of one grid in the CRS and resolution of a dataset.

    Attributes:
        path: the file.
        count: the number of variables.
        dtypes: of the variables, as xarray decodes them.
        nodata: of the variables; None: they have none.
        fills: where a mosaic has no pixels of a file.
        times: of the steps.
        stored: what files that one loader reads have in common.
        refused: says why it cannot be read any more.
    """

    def __init__(
        self,
        path: str,
        names: Sequence[str],
        crs: Any,
        res: tuple[float, float],
        nodata: float | None,
        source: Source,
    ) -> None:
        """Opens a file.

        Args:
            path: the file.
            names: of the variables.
            crs: of the dataset, and of files that have none.
            res: of the dataset, by x and y.
            nodata: of the dataset; None: the one of each variable.
            source: has the pixels.

        Raises:
            UnsupportedError: its pixels cannot be had from elsewhere.
        """
        import rioxarray  # noqa: F401  (Dataset.rio)
        import xarray

        self.path, self._names, self.source = path, tuple(names), source
        self.count = len(names)
        self.refused: Exception | None = None
        with xarray.open_dataset(path, decode_times=True, decode_coords="all") as file:
            whole = file if file.rio.crs is not None else file.rio.write_crs(crs)
            if whole.rio.crs != crs:
                raise UnsupportedError("they are of another CRS")
            y, x = whole.rio.y_dim, whole.rio.x_dim
            if any(whole[n].dims != ("time", y, x) for n in names):
                raise UnsupportedError("their variables have other axes than time, y and x")
            self._y, self._x = _Axis(whole[y].values, res[1]), _Axis(whole[x].values, res[0])
            if self._x.step < 0:
                raise UnsupportedError("their columns begin in the east")
            self.dtypes, self.times = [whole[n].dtype for n in names], whole.indexes["time"]
            self._read_as = [_dtype(whole[n]) for n in names]
            # TorchGeo warps files of its own resolution, too, which gives them a nodata.
            corner = whole[[*names]].isel({y: slice(2), x: slice(2)})
            warped = corner.rio.reproject(crs, resolution=tuple(map(abs, res)))
            for name in names if nodata is not None else ():
                warped[name] = warped[name].rio.write_nodata(nodata)
            self.nodata = [warped[n].rio.nodata for n in names]
            fills = self.nodata if nodata is None else [nodata] * len(names)
            self.fills = [0 if f is None else f for f in fills]
        self.stored = tuple(self.dtypes), len(self.times), self._y.size, self._x.size

    def row(self, path: str) -> dict[str, str]:
        """Returns the arrays of a file as a sample of an engine, by the names of fields."""
        return {f"v{i}": f"{path}::{name}" for i, name in enumerate(self._names)}

    def fields(self, bands: tuple[int, ...] = ()) -> dict[str, Field]:
        """Returns how an engine reads the variables, as xarray decodes them."""
        return {
            f"v{i}": Field(
                column=f"v{i}",
                kind="raster",
                dims="t y x",
                dtype=self._read_as[i],
                fill=math.nan if self.dtypes[i].kind == "f" else 0,
                normalize=False,
            )
            for i in range(self.count)
        }

    def asked(self, bounds: Bounds) -> Region | None:
        """Returns the pixels of a window, None if it has none, or if it is refused."""
        rows, columns = self._y.span(*bounds[1::2]), self._x.span(*bounds[::2])
        if rows is None or columns is None:
            # rioxarray reads them from the first row and column of a file on.
            self.refused = UnsupportedError("windows begin or end between pixels")
            return None
        (top, bottom), (left, right) = rows, columns
        if top >= bottom or left >= right:
            return None
        return Region(self.path, (), top, left, bottom - top, right - left, True)

    def pick(self, region: Region) -> Pick:
        """Returns which pixels of the file a region needs."""

        def of(*variables: Raster) -> list[Raster]:
            """Returns (t y x) of each variable, from north to south."""
            return [v[:, 0, :: 1 if self._y.step < 0 else -1] for v in variables]

        return Pick((region.row, region.column), (region.height, region.width), of)

    def place(self, region: Region, bounds: Bounds) -> tuple[int, int]:
        """Returns the row and column of a window in which a region begins."""
        north = self._y.edge(region.row if self._y.step < 0 else region.row + region.height)
        row = (bounds[3] - north) / abs(self._y.step)
        return round(row), round((self._x.edge(region.column) - bounds[0]) / self._x.step)


def merged(cubes: Sequence[Cube], bounds: Bounds, res: tuple[float, float]) -> list[Raster] | None:
    """Returns what rioxarray merges of each variable, (t y x), None if it has to do it itself.

    Args:
        cubes: the later ones fill what the earlier ones leave.
        bounds: of a window, at pixels of all cubes.
        res: of the cubes.
    """
    first = cubes[0]
    if any((c.dtypes, len(c.times)) != (first.dtypes, len(first.times)) for c in cubes):
        return None
    shape = len(first.times), *size_of(bounds, res)
    out = [np.full(shape, f, d) for f, d in zip(first.fills, first.dtypes, strict=True)]
    for cube in cubes:
        region = cube.asked(bounds)
        if cube.refused is not None:
            return None
        if region is None:
            continue
        pixels = cube.source.get(region, cube)
        if pixels is None:
            return None
        row, column = cube.place(region, bounds)
        for mosaic, part, fill, none in zip(out, pixels, first.fills, cube.nodata, strict=True):
            to = mosaic[:, row : row + region.height, column : column + region.width]
            gaps = np.isnan(part) if none != none else part == none
            fill_up(to, part, np.False_ if none is None else gaps, fill)
    return out


def _dtype(variable: Any) -> Any:
    """Returns the dtype of a field with the values that xarray decodes."""
    packed = variable.encoding.keys() & {"scale_factor", "add_offset"}
    if variable.dtype == variable.encoding.get("dtype") and not packed:
        return "native"
    if variable.dtype != np.float32:
        raise UnsupportedError(f"their numbers are decoded as {variable.dtype}")
    return "float32"


class _Axis:
    """The middles of pixels along an axis, which are equally far apart."""

    def __init__(self, middles: npt.NDArray[Any], res: float) -> None:
        self.size = len(middles)
        if self.size < 2:
            raise UnsupportedError("they have one row or column")
        self._first, self.step = middles[0], (middles[-1] - middles[0]) / (self.size - 1)
        even = self._first + np.arange(self.size) * self.step
        if not np.allclose(middles, even, rtol=0, atol=abs(self.step) / 1000):
            raise UnsupportedError("their rows or columns are not equally far apart")
        if not math.isclose(abs(self.step), abs(res), rel_tol=1e-9):
            raise UnsupportedError("they are of another resolution")

    def edge(self, i: int) -> float:
        """Returns where a pixel begins."""
        return float(self._first + (i - 0.5) * self.step)

    def span(self, low: float, high: float) -> tuple[int, int] | None:
        """Returns the first pixel between two places and the one after the last.

        It returns None if a place is not the edge of a pixel.
        """
        ends = sorted((place - self.edge(0)) / self.step for place in (low, high))
        if any(abs(end - round(end)) > _ROUND for end in ends):
            return None
        return max(round(ends[0]), 0), min(round(ends[1]), self.size)
