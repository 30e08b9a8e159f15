"""Readers that rasterio.merge takes for open files, and that get their pixels from elsewhere.

Samples are equal to those of open files, bit by bit: also of a WarpedVRT, whose pixels are the
nearest ones of its file.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
import pyproj
import rasterio
import rasterio.transform
import rasterio.windows
from rasterio.enums import MaskFlags, Resampling
from rasterio.io import DatasetReader, MemoryFile
from rasterio.vrt import WarpedVRT
from rasterio.warp import transform as transform_by_gdal
from rasterio.windows import Window

from chaski._fields import Field
from chaski.errors import UnsupportedError

Raster: TypeAlias = npt.NDArray[Any]
Bounds: TypeAlias = "tuple[float, float, float, float]"
"""Least x and y, greatest x and y."""
Places: TypeAlias = "tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]"
"""x and y in pixels."""

# GDAL warps block by block, each of these sides, and a row of a block by few exact places.
_BLOCK = 128, 512
_TOLERANCE = 0.125  # pixels by which the places between may be off, as rasterio has it by default
_MEMORY = 64 << 20  # bytes of a block and its source, over which GDAL halves blocks
_EXACT = 1 << 24  # numbers to this one are exact in float32
_KEPT = 1024  # windows whose place in a file is known
_ROUND = 1e-9  # pixels that a window may be off the grid, which is the rounding of its ends


class Region(NamedTuple):
    """Pixels of a reader: those that a window has, or that it is resampled from."""

    path: str
    bands: tuple[int, ...]  # from 1; none: all
    row: int
    column: int
    height: int
    width: int
    exact: bool  # the window has just these pixels


class Placed(NamedTuple):
    """What a mosaic has of a file: its window, in a shape, from a row and column on."""

    at: tuple[int, int]
    shape: tuple[int, int]
    window: Window


@dataclass(slots=True)
class Pick:
    """The pixels of a file that a region needs, from `corner` on, and what becomes of them."""

    corner: tuple[int, int]
    size: tuple[int, int]
    of: Callable[..., Any]


class Source(Protocol):
    """Where readers get their pixels."""

    def get(self, region: Region, reader: Any) -> Any:
        """Returns the pixels of a region, None if they have to be read otherwise."""


class Reader:
    """A stand-in for a file that is open, or for a WarpedVRT of it.

    Attributes:
        path: the file.
        dtype: of its pixels.
        stored: the dtype in the file: int8 is warped as int16.
        refused: says why it cannot be read any more.
        theirs: opens it by rasterio.
    """

    def __init__(self, opened: Any, source: Source, theirs: Callable[[], Any]) -> None:
        """Takes what is known about an open file.

        Raises:
            UnsupportedError: its pixels cannot be had from elsewhere.
        """
        self._source, self.theirs = source, theirs
        self.refused: Exception | None = None
        self.warp = None
        file = opened
        if type(opened) is WarpedVRT:
            file = opened.src_dataset
            self.warp = _Warp(opened)
        elif type(opened) is not DatasetReader:
            raise UnsupportedError(f"they are opened as {type(opened).__name__}")
        flags = opened.mask_flag_enums
        self._masked = any(MaskFlags.all_valid not in f for f in flags)
        if self._masked and any(f != [MaskFlags.nodata] for f in flags):
            raise UnsupportedError("they have masks, or an alpha band")
        if len({*opened.dtypes}) > 1 or opened.dtypes[0].startswith("complex"):
            raise UnsupportedError("their bands have several dtypes, or complex numbers")
        if len({*file.dtypes}) > 1 or not np.can_cast(file.dtypes[0], opened.dtypes[0]):
            raise UnsupportedError("they are warped in a way of their own")
        alike = len({repr(v) for v in opened.nodatavals}) == 1
        if self._masked and not (alike and _holds(np.dtype(opened.dtypes[0]), opened.nodata)):
            raise UnsupportedError("their bands cannot have the same value of nodata")
        self.path: str = file.name
        self.dtype: str = opened.dtypes[0]
        self.stored: str = file.dtypes[0]
        self.nodatavals, self.dtypes, self.count = opened.nodatavals, opened.dtypes, opened.count
        self.nodata, self.profile = opened.nodata, opened.profile
        self.crs, self.transform, self.res = opened.crs, opened.transform, opened.res
        self.height, self.width, self.bounds = opened.height, opened.width, opened.bounds
        self._placed: dict[Any, Placed | None] = {}
        self._overviews = min(opened.overviews(1), default=math.inf)
        try:
            self._colours = opened.colormap(1)
        except ValueError:
            self._colours = None
        t = self.transform
        if not (t.b == t.d == 0 and t.a > 0 > t.e):
            raise UnsupportedError("they are rotated or flipped")

    def colormap(self, band: int) -> Any:
        """Returns the colours of a band, as open files do."""
        if self._colours is None:
            raise ValueError("NULL color table")
        return self._colours

    def row(self, path: str) -> str:
        """Returns a file as a sample of an engine."""
        return path

    def fields(self, bands: tuple[int, ...] = ()) -> dict[str, Field]:
        """Returns how an engine reads the pixels of files."""
        image = Field(
            kind="raster",
            bands=[b - 1 for b in bands] or "position",
            dtype="native",
            fill=0,
            nodata=[],
            normalize=False,
        )
        return {"image": image}

    def close(self) -> None:
        """Does nothing: there is nothing open."""

    def placed(self, bounds: Bounds, res: tuple[float, float]) -> Placed | None:
        """Returns what of a mosaic the file has, None if nothing, as rasterio.merge says it."""
        key = bounds, res
        if key not in self._placed:
            if len(self._placed) > _KEPT:
                self._placed.clear()
            self._placed[key] = self._place(bounds, res)
        return self._placed[key]

    def _place(self, bounds: Bounds, res: tuple[float, float]) -> Placed | None:
        height, width = size_of(bounds, res)
        grid = rasterio.transform.from_origin(bounds[0], bounds[3], *res)
        whole = rasterio.windows.bounds(Window(0, 0, width, height), grid)
        w, s = max(self.bounds[0], whole[0]), max(self.bounds[1], whole[1])
        e, n = min(self.bounds[2], whole[2]), min(self.bounds[3], whole[3])
        if w >= e or s >= n:
            return None
        part = rasterio.windows.from_bounds(w, s, e, n, grid)
        shape = math.floor(part.height + 0.5), math.floor(part.width + 0.5)
        if min(shape) < 1:
            return None
        at = math.floor(part.row_off + 0.1), math.floor(part.col_off + 0.1)
        return Placed(at, shape, rasterio.windows.from_bounds(w, s, e, n, self.transform))

    def asked(
        self, bounds: Bounds, res: tuple[float, float], how: Resampling, bands: tuple[int, ...]
    ) -> Region | None:
        """Returns the region that a mosaic will ask for, None if it asks for nothing."""
        placed = self.placed(bounds, res)
        if placed is None:
            return None
        return self._region(placed.window.crop(self.height, self.width), placed.shape, how, bands)

    def _region(
        self, window: Window, shape: tuple[int, int], how: Resampling, bands: tuple[int, ...]
    ) -> Region | None:
        """Returns the pixels that a window needs in some shape, None if rasterio has to read it."""
        if bands and max(bands) > self.count:
            return None
        scale = window.height / shape[0], window.width / shape[1]
        if max(scale) * 1.2 >= self._overviews:
            self._refuse("windows are coarser than their overviews")
            return None
        y, x = _span(window)
        if self.warp and shape != (self.height, self.width) and self._is_whole(y, x):
            return None  # GDAL warps to another size
        exact = all(abs(v - round(v)) < _ROUND for v in (*y, *x))
        if how is Resampling.nearest:
            exact, (rows, columns) = True, self._nearest(window, shape)
            (top, bottom), (left, right) = rows[[0, -1]].tolist(), columns[[0, -1]].tolist()
            height, width = bottom + 1 - top, right + 1 - left
        elif exact and shape == (round(y[1] - y[0]), round(x[1] - x[0])):
            (top, left), (height, width) = (round(y[0]), round(x[0])), shape
        elif how is Resampling.bilinear and min(window.height, window.width) < 1:
            return None  # GDAL widens parts of a pixel, which the edges of files have
        elif how is Resampling.bilinear:
            # The reach of the kernel, which widens with the scale, and a pixel for rounding.
            reach = [math.ceil(2 * s) + 2 for s in scale]
            top, left = max(int(y[0]) - reach[0], 0), max(int(x[0]) - reach[1], 0)
            height = min(math.ceil(y[1]) + reach[0], self.height) - top
            width = min(math.ceil(x[1]) + reach[1], self.width) - left
            exact = False
        else:
            self._refuse(f"they are resampled by {how.name}")
            return None
        if self.warp and height > _BLOCK[0] and width > _BLOCK[1]:
            self._refuse("warped windows are higher than 128 and wider than 512 pixels")
            return None
        return Region(self.path, bands, top, left, height, width, exact)

    def _is_whole(self, *axes: tuple[float, float]) -> bool:
        sides = self.height, self.width
        return all(a < 1e-6 and b > n - 1e-6 for (a, b), n in zip(axes, sides, strict=True))

    def _refuse(self, why: str) -> None:
        self.refused = self.refused or UnsupportedError(why)

    def pick(self, region: Region) -> Pick:
        """Returns which pixels of the file a region needs."""
        size = region.height, region.width
        if self.warp is not None:
            return self.warp.pick(region)
        return Pick((region.row, region.column), size, lambda pixels: pixels)

    def read(
        self,
        indexes: Sequence[int] | None = None,
        *,
        out_shape: tuple[int, ...],
        window: Window,
        masked: bool,
        resampling: Resampling,
    ) -> Any:
        """Returns a window, as open files do."""
        given = window
        window = window.crop(self.height, self.width)
        shape = out_shape[-2], out_shape[-1]
        if min(shape) < 1:
            return np.ma.zeros(out_shape, self.dtype)
        region = self._region(window, shape, resampling, tuple(indexes or ()))
        pixels = None if region is None else self._source.get(region, self)
        if region is None or pixels is None:
            with self.theirs() as file:
                return file.read(
                    indexes, out_shape=out_shape, window=given, masked=masked, resampling=resampling
                )
        if resampling is Resampling.nearest and pixels.shape[1:] != shape:
            rows, columns = self._nearest(window, shape)
            pixels = pixels[:, rows - region.row][:, :, columns - region.column]
        pixels = pixels.astype(self.dtype, copy=False)
        missing = self._missing(pixels)
        if region.exact:
            return np.ma.array(pixels, mask=missing) if masked else pixels
        here = Window(
            window.col_off - region.column, window.row_off - region.row, window.width, window.height
        )
        nodata = self.nodata if missing.any() else None  # else masks would take time only
        with contextlib.ExitStack() as opened:
            if (int(window.height), int(window.width)) == shape:
                # GDAL copies arrays in memory that have the size of the window.
                memory = opened.enter_context(MemoryFile())
                profile = {"dtype": pixels.dtype, "count": len(pixels), "nodata": nodata}
                profile |= {"height": region.height, "width": region.width}
                profile |= {"crs": self.crs, "transform": self.transform}
                with memory.open(driver="GTiff", **profile) as file:
                    file.write(pixels)
                file = memory.open()
            else:
                file = rasterio._io.MemoryDataset(np.ascontiguousarray(pixels))
                if nodata is not None:
                    file.nodata = nodata
            with file:
                return file.read(
                    out_shape=out_shape, window=here, masked=masked, resampling=resampling
                )

    def _nearest(self, window: Window, shape: tuple[int, int]) -> list[npt.NDArray[np.intp]]:
        """Returns the rows and columns that GDAL takes for the pixels of a window."""
        axes = zip(_span(window), shape, (self.height, self.width), strict=True)
        return [
            ((np.arange(n) + 0.5) * ((stop - start) / n) + start + 1e-10)
            .astype(np.intp)
            .clip(0, side - 1)
            for (start, stop), n, side in axes
        ]

    def _missing(self, pixels: Raster) -> Any:
        if not self._masked:
            return np.ma.nomask
        if math.isnan(self.nodata):
            return np.isnan(pixels)
        return pixels == pixels.dtype.type(self.nodata)


def size_of(bounds: Bounds, res: tuple[float, float]) -> tuple[int, int]:
    """Returns the height and width of a mosaic in pixels."""
    return round((bounds[3] - bounds[1]) / res[1]), round((bounds[2] - bounds[0]) / res[0])


def merged(
    readers: Sequence[Reader],
    bounds: Bounds,
    res: tuple[float, float],
    how: Resampling,
    bands: Sequence[int] | None,
) -> Raster | None:
    """Returns what rasterio.merge makes of files, None if it has to make it itself."""
    first = readers[0]
    dtype, nodata = np.dtype(first.dtype), first.nodatavals[0]
    nodata = 0 if nodata is None else nodata
    alike = all(
        (r.dtype, r.count) == (first.dtype, first.count)
        and (r.crs is first.crs or r.crs == first.crs)
        for r in readers
    )
    if not alike or not _holds(dtype, nodata) or (dtype.kind == "f" and abs(nodata) > _EXACT):
        return None
    size = len(bands) if bands else first.count, *size_of(bounds, res)
    out: Raster | None = None
    for reader in readers:
        if (placed := reader.placed(bounds, res)) is None:
            continue
        (row, column), (height, width) = placed.at, placed.shape
        shape = size[0], height, width
        part = reader.read(
            bands, out_shape=shape, window=placed.window, masked=True, resampling=how
        )
        if out is None and shape == size and not part.mask.any():
            out = part.data
            continue
        if out is None:
            out = np.full(size, nodata, dtype)
        fill_up(out[:, row : row + height, column : column + width], part.data, part.mask, nodata)
    return np.full(size, nodata, dtype) if out is None else out


def fill_up(region: Raster, pixels: Raster, missing: Any, nodata: float) -> None:
    """Sets the pixels that a mosaic does not have yet, as rasterio.merge does."""
    if nodata != nodata:
        empty = np.isnan(region)
    else:
        empty = np.isclose(region, nodata) if region.dtype.kind == "f" else region == nodata
    np.copyto(region, pixels, where=empty & ~missing)


class _Warp:
    """Which pixels of a file the pixels of a WarpedVRT are."""

    def __init__(self, vrt: WarpedVRT) -> None:
        file = vrt.src_dataset
        extras = {k: str(v) for k, v in vrt.warp_extras.items()} or {"init_dest": "0"}
        plain = vrt.resampling == Resampling.nearest and vrt.tolerance == _TOLERANCE
        if (
            not plain
            or vrt.working_dtype
            or extras not in ({"init_dest": "NO_DATA"}, {"init_dest": "0"})
        ):
            raise UnsupportedError("they are warped in a way of their own")
        if vrt.src_nodata != vrt.dst_nodata and not (vrt.src_nodata != vrt.src_nodata):
            raise UnsupportedError("they are warped with two values of nodata")
        sides = 2 * _BLOCK[0] * _BLOCK[1] * np.dtype(file.dtypes[0]).itemsize * file.count
        if sides > _MEMORY:
            raise UnsupportedError("their bands are too many to be warped in whole blocks")
        self._fill, self._size = vrt.dst_nodata or 0, (file.height, file.width)
        self._width, self._to = vrt.width, vrt.transform
        self._from = ~(vrt.src_transform or file.transform)
        self._crs: Any = None
        if vrt.src_crs != vrt.dst_crs:
            self._crs = pyproj.Transformer.from_crs(
                pyproj.CRS.from_wkt(vrt.dst_crs.to_wkt()),
                pyproj.CRS.from_wkt(vrt.src_crs.to_wkt()),
                always_xy=True,
            )
            self._check(vrt)

    def _check(self, vrt: WarpedVRT) -> None:
        """Raises if PROJ and GDAL do not agree on the places of the corners and the middle."""
        columns, rows = (np.array([0, 1, 0.5, 0, 1]) * n for n in (vrt.width, vrt.height))
        x, y = self._ground(columns, np.array([rows[0], rows[0], rows[2], rows[1], rows[1]]))
        ours = self._crs.transform(x, y)
        gdals = transform_by_gdal(vrt.dst_crs, vrt.src_crs, x, y)
        far = [abs(a - np.array(b)) for a, b in zip(ours, gdals, strict=True)]
        # In units of pixels of the file.
        off = np.array([abs(self._from.a), abs(self._from.e)])[:, None] * far
        if not np.all(off <= 1e-6):
            raise UnsupportedError("their places are not those of GDAL, whose PROJ differs")

    def _ground(self, x: Any, y: Any) -> Places:
        to = self._to
        return to.c + x * to.a + y * to.b, to.f + x * to.d + y * to.e

    def _exact(self, x: Any, y: Any) -> Places:
        """Returns the places in the file of places in the WarpedVRT."""
        x, y = self._ground(x, y)
        if self._crs is not None:
            x, y = self._crs.transform(x, y)
        back = self._from
        return back.c + x * back.a + y * back.b, back.f + x * back.d + y * back.e

    def pick(self, region: Region) -> Pick:
        """Returns which pixels of the file a region needs."""
        x, y = self._places(region)
        height, width = self._size
        outside = None
        if not (x.min() >= 0 and x.max() < width and y.min() >= 0 and y.max() < height):
            # GDAL looks once more at places off the file that may be on it.
            near = ~self._inside(x, y) & (x > -1) & (x <= width) & (y > -1) & (y <= height)
            at = np.nonzero(near)
            x[at], y[at] = self._exact(at[1] + (region.column + 0.5), at[0] + (region.row + 0.5))
            outside = ~self._inside(x, y)
            if outside.all():
                x[:], y[:] = 0, 0
            else:
                inside = np.argwhere(~outside)[0]
                x[outside], y[outside] = x[tuple(inside)], y[tuple(inside)]
        rows, columns = (y + 1e-10).astype(np.intp), (x + 1e-10).astype(np.intp)  # as GDAL rounds
        top, left = int(rows.min()), int(columns.min())
        size = int(rows.max()) + 1 - top, int(columns.max()) + 1 - left
        nearest = (rows - top) * size[1] + (columns - left)

        def of(pixels: Raster) -> Raster:
            out = pixels.reshape(len(pixels), -1).take(nearest, axis=1)
            if outside is not None:
                out[:, outside] = self._fill
            return out

        return Pick((top, left), size, of)

    def _inside(self, x: Any, y: Any) -> npt.NDArray[np.bool_]:
        height, width = self._size
        inside: npt.NDArray[np.bool_] = (x >= 0) & (x < width) & (y >= 0) & (y < height)
        return inside

    def _places(self, region: Region) -> Places:
        """Returns the places of the pixels of a region in the file, as GDAL has them."""
        rows = np.arange(region.height)
        x, y = np.empty((2, region.height, region.width))
        end = region.column + region.width
        for start in range(region.column // _BLOCK[1] * _BLOCK[1], end, _BLOCK[1]):
            stop = min(start + _BLOCK[1], self._width)
            columns = np.array([start, start + (stop - start - 1) // 2, stop - 1])
            ends = self._exact(columns[:, None] + 0.5, rows + (region.row + 0.5))
            self._between(region, rows, (start, stop), ends, (x, y))
        return x, y

    def _between(
        self,
        region: Region,
        rows: npt.NDArray[np.intp],
        part: tuple[int, int],
        ends: Places,
        out: Places,
    ) -> None:
        """Sets the places of parts of rows, by exact ones: of the first, middle, last pixel.

        They lie on a line where the middle is off it by no more than the tolerance; other parts are
        halved.
        """
        (start, stop), n = part, part[1] - part[0]
        first, last = max(start, region.column), min(stop, region.column + region.width)
        if first >= last or not len(rows):
            return
        columns = np.arange(first, last)
        to = slice(first - region.column, last - region.column)
        middle = (n - 1) // 2
        step = [(e[2] - e[0]) / max(n - 1, 1) for e in ends]
        off = sum(abs(e[0] + s * middle - e[1]) for e, s in zip(ends, step, strict=True))
        flat = off <= _TOLERANCE if n > 5 else np.zeros(len(rows), bool)
        for o, e, s in zip(out, ends, step, strict=True):
            o[rows[flat], to] = e[0][flat, None] + s[flat, None] * (columns - start)
        rows, ends = rows[~flat], (ends[0][:, ~flat], ends[1][:, ~flat])
        if n <= 5:
            place = self._exact(columns + 0.5, rows[:, None] + (region.row + 0.5))
            for o, p in zip(out, place, strict=True):
                o[rows, to] = p
        elif len(rows):
            half = start + middle
            more = np.array([start + (middle - 1) // 2, half - 1, half + (n - middle - 1) // 2])
            exact = self._exact(more[:, None] + 0.5, rows + (region.row + 0.5))
            pairs = list(zip(ends, exact, strict=True))
            left = tuple(np.stack([e[0], m[0], m[1]]) for e, m in pairs)
            right = tuple(np.stack([e[1], m[2], e[2]]) for e, m in pairs)
            self._between(region, rows, (start, half), left, out)  # type: ignore[arg-type]
            self._between(region, rows, (half, stop), right, out)  # type: ignore[arg-type]


def _span(window: Window) -> tuple[tuple[float, float], tuple[float, float]]:
    """Returns where a window begins and ends, by y and by x."""
    y, x = float(window.row_off), float(window.col_off)
    return (y, y + float(window.height)), (x, x + float(window.width))


def _holds(dtype: np.dtype[Any], value: float) -> bool:
    """Reports whether a dtype has a value of nodata."""
    if dtype.kind == "f":
        return True
    return np.iinfo(dtype).min <= value <= np.iinfo(dtype).max and value == int(value)
