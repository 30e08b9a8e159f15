"""The classes of windows: the samplers of specs. Each has the kind that the JSON Schema names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from chaski._argument import Argument
from chaski._plain import Crs, GridJson, Path, RowJson, Size

__all__ = [
    "Blocks",
    "WholeChip",
    "RandomWindow",
    "Grid",
    "ResizedWindow",
    "WeightedWindow",
    "TileWindow",
    "RowWindow",
    "GeoWindow",
]
SAMPLER_PATHS = ["coverage", "roi", "weights"]


@dataclass(frozen=True, repr=False)
class WholeChip(Argument):
    """The whole asset: one sample each.

    Attributes:
        size: height and width of the batch's tensors; assets that are smaller are padded, if the
            field pads. Default: the size of the first asset.
        max_nodata: the largest share of a window (also of a `RandomWindow` and a `Grid`), from 0 to
            1, that may have no data: other windows are not in the dataset. It needs `coverage`,
            which says it by cells: exactly for windows of whole cells, and else as if the valid
            pixels of a cell were spread evenly. Default: 1.
        coverage: the path of the file for `max_nodata`, with the valid pixels of each cell, as
            'chaski stats --sampling' writes it without classes. The spec hash covers the content of
            the file, not its path.
    """

    _kind = "chip"
    size: Size | None = None
    max_nodata: float | None = field(default=None, kw_only=True)
    coverage: Path | None = field(default=None, kw_only=True)


@dataclass(frozen=True, repr=False)
class RandomWindow(Argument):
    """Windows at random corners, each as likely as any other.

    Attributes:
        size: height and width in pixels of the first raster field, or the side of a square.
        per_asset: samples that an epoch takes from each asset.
        sizes: sides of squares in place of `size`: each batch has one of them, at random.
        max_nodata: see `WholeChip`.
        coverage: see `WholeChip`.
        min_overlap: the least part of its area, from 0 to 1, that a window of a list after the
            first shares with the first one, or of the area of the first window if that is smaller.
    """

    _kind = "random_window"
    size: Size | None = None
    per_asset: int = 1
    sizes: Sequence[int] | None = field(default=None, kw_only=True)
    max_nodata: float | None = field(default=None, kw_only=True)
    coverage: Path | None = field(default=None, kw_only=True)
    min_overlap: float | None = field(default=None, kw_only=True)


@dataclass(frozen=True, repr=False)
class Grid(GridJson):
    """Windows side by side, or overlapping, which together cover every asset.

    Attributes:
        size: height and width in pixels of the first raster field, or the side of a square.
        stride: distance from window to window. Default: `size` less `overlap`.
        overlap: pixels that neighbours share, in place of `stride`.
        pad: leaves the last windows at their stride, so that they reach past the edge;
            every raster field must pad. Without it they are moved inside.
        max_nodata: see `WholeChip`.
        coverage: see `WholeChip`.
    """

    _kind = "grid"
    size: Size
    stride: Size | None = None
    overlap: Size = 0
    pad: bool = False
    max_nodata: float | None = field(default=None, kw_only=True)
    coverage: Path | None = field(default=None, kw_only=True)


@dataclass(frozen=True, repr=False)
class ResizedWindow(Argument):
    """Windows of random area and aspect, resampled to one size, as the field's `resample` says.

    With `whole` the window is the whole raster: images of any size become tensors of one size.

    Attributes:
        size: height and width of the result, or the side of a square.
        scale: least and greatest area, relative to `size` or, with `of_asset`, to the asset.
            Default: (0.5, 2), and (0.08, 1) of the asset.
        ratio: bounds the aspect of the window, relative to the aspect of the result: from 1/`ratio`
            to `ratio`. Default 4/3.
        of_asset: makes `scale` relative to the area of the asset.
        per_asset: see `RandomWindow`.
        whole: makes the window the whole image, so that images of any size become tensors of one
            size. `scale`, `ratio`, `of_asset` and `per_asset` are not for it.
        sizes: see `RandomWindow`.
        min_overlap: see `RandomWindow`.
    """

    _kind = "resized_window"
    size: Size | None = None
    scale: tuple[float, float] | None = None
    ratio: float = 4 / 3
    of_asset: bool = False
    per_asset: int = 1
    whole: bool = field(default=False, kw_only=True)
    sizes: Sequence[int] | None = field(default=None, kw_only=True)
    min_overlap: float | None = field(default=None, kw_only=True)


@dataclass(frozen=True, repr=False)
class WeightedWindow(Argument):
    """Windows about pixels that count: valid ones, or those of a class of a mask.

    Attributes:
        size: height and width in pixels of the first raster field, or the side of a square.
        weights: file that `chaski stats --sampling` wrote. The spec hash covers its content.
        per_asset: see `RandomWindow`.
        sizes: see `RandomWindow`.
    """

    _kind = "weighted_window"
    size: Size | None = None
    weights: Path | None = None
    per_asset: int = 1
    sizes: Sequence[int] | None = field(default=None, kw_only=True)


@dataclass(frozen=True, repr=False)
class TileWindow(Argument):
    """Random windows in an order in which a tile is decoded once for many of them.

    A visit of a tile takes `per_visit` windows whose corners lie in it; the windows of a pool of
    visits are shuffled together. Every corner is as likely as with `RandomWindow`.

    Attributes:
        size: height and width in pixels of the first raster field, or the side of a square.
        per_visit: the number of windows that a visit takes from its tile. Default 16.
        visits: visits of each asset in an epoch. Default: as many as it has tiles.
        tile: height and width of a tile. Default: the chunks of the first asset.
        pool: the number of visits whose windows are shuffled together. Default: as many as fit into
            `pool_bytes`.
        pool_bytes: the memory for the decoded tiles of a pool, in bytes. Default 64 MiB.
    """

    _kind = "tile_window"
    size: Size
    per_visit: int = 16
    visits: int | None = None
    tile: Size | None = None
    pool: int | None = None
    pool_bytes: int | None = None


@dataclass(frozen=True, repr=False)
class Blocks(Argument):
    """An order for chunks that hold many samples: each is read and decoded once an epoch.

    Blocks of rows that follow each other are shuffled, each row of a batch has blocks of its own,
    and the samples of some of them are shuffled together. Every sample comes once an epoch, a run
    resumes exactly, with any number of ranks, and batches are as varied as after a shuffle of all.
    A rank reads no block of another.

    Attributes:
        rows: the number of rows of a block. Default: as many as a chunk of an array holds; of files
            and containers, as many as have 4 MiB of samples.
        pool: the number of blocks that a batch is drawn from, best a multiple of the batch size:
            rows of a batch share blocks if it is less. Default: eight for each sample of a global
            batch. Its decoded chunks should fit into the memory of the engines; the log says if
            they do not.
    """

    rows: int | None = None
    pool: int | None = None


@dataclass(frozen=True, repr=False)
class RowWindow(RowJson):
    """One window for each row, at the box that columns of the row hold.

    A box that is null or not finite, narrower than a pixel, or outside of the image is a bad
    sample.

    Attributes:
        size: height and width of the window, or the side of a square.
        x: the column with the left edge of the box, in pixels of the first raster
            field. Edges between pixels move out to whole ones. Default "x".
        y: the column with the top edge of the box. Default "y".
        width: the column with the width of the box. Default "w".
        height: the column with the height of the box. Default "h".
        fit: says how a box becomes a window of one size. "resize" (default)
            resamples the box by the method of each field. "crop" takes the window about the middle
            of the box; it is moved inside the image unless all raster fields pad. "pad" takes the
            same window, with padding in place of the pixels around the box; every raster field must
            pad.
    """

    _kind = "row_window"
    size: Size
    x: str = "x"
    y: str = "y"
    width: str = "w"
    height: str = "h"
    fit: Literal["resize", "crop", "pad"] = "resize"


@dataclass(frozen=True, repr=False)
class GeoWindow(Argument):
    """Square windows at places on the ground, over scenes in any CRS and resolution.

    The rows of the dataset are scenes. Random windows are drawn uniformly by area, not by file;
    with `stride_m` they cover all scenes. Every raster field is brought to one grid of pixels.

    Attributes:
        size_m: the side of a window in metres of its map, a multiple of `resolution`.
        resolution: the side of a pixel of windows in metres of their map.
        crs: the map that windows lie on: "utm" (default) for the zone of UTM of each place, or a
            code such as "EPSG:3035", or 3035, of a map in metres. Also an object with `to_epsg()`.
        bounds: keeps the middles of windows in a box: west, south, east, north. With `stride_m` it
            keeps windows that touch the box. Default: everywhere.
        bounds_crs: the EPSG code of `bounds`. Default 4326, longitude and latitude. Also as of
            `Rows`.
        roi: keeps windows in polygons as `bounds` does: the path of a GeoJSON or GeoParquet file,
            or GeoJSON. The spec hash covers where windows may lie, not the path. Default:
            everywhere. Also GeoJSON as a dict, or an object with `__geo_interface__`.
        per_epoch: the number of random windows of an epoch. Default: as many as fit side by side.
        stride_m: takes windows on a grid instead, every `stride_m` metres, a multiple of
            `resolution` of at most `size_m`. They cover all scenes. Default: random windows.
        edge: lets random windows reach past the scenes, with padding there, so that all places are
            equally likely. By default windows lie wholly inside of the scenes together.
        pick: says which scenes come first where several cover a window: "first" (default) in the
            order of the rows, "newest" or "oldest" by a column ("newest:acquired"; default column
            "datetime"), "least:cloud_cover" or "most:quality" by a column of numbers. Rows without
            a value come last.
        mosaic: "first" (default): each pixel comes from the first scene in which it is valid.
            "none" reads the first scene of a window only. "mean" and "median" are taken over all
            scenes in which a pixel is valid, for fields that are resampled bilinearly or
            antialiased; others, such as labels, have the first one.
        length: gives each window a sequence of that many steps instead of one image, from 1 to
            65,536: the scenes that cover it, the first ones by `pick`. Where there are fewer, the
            rest is padding: the tensor "steps", uint8 (n t), is 0 there. Default: one image without
            steps.
        order: the rule by which the steps of a window stand, as `pick`: "oldest", for example.
            Default: `pick`.
        step: the column whose equal values make scenes one step, which is a mosaic of them as
            `mosaic` says. "day" stands for the days in UTC of the column "datetime", "day:acquired"
            for the days of another one. Default: each scene is a step.
        cover: says where windows lie if fields have scenes of several datasets
            (`Field(scenes=...)`): "all" (default) where every dataset has ground, "any" where one
            of them has. There the fields of the others are missing.
        overviews: says which fields are read from the overviews of a TIFF where windows are coarser
            than its pixels: from the coarsest whose pixels are no larger than the pixels of the
            window. "auto" (default): fields that are resampled bilinearly or antialiased; others,
            such as labels, are read from the raster itself, because their overviews may hold
            averages. "all" (True) or "none" (False) of the fields.
        min_overlap: see `RandomWindow`; a window of a list shares at least a pixel. The first one
            is the largest, and says all but `size_m` and `resolution`.
    """

    _kind = "geo_window"
    size_m: float
    resolution: float
    crs: Crs = "utm"
    bounds: Sequence[float] | None = None
    bounds_crs: Crs | None = None
    roi: Any = None
    per_epoch: int | None = None
    stride_m: float | None = None
    edge: bool = False
    pick: str = "first"
    mosaic: Literal["first", "none", "mean", "median"] = "first"
    length: int | None = None
    order: str | None = None
    step: str | None = None
    cover: str | None = None
    overviews: Literal["auto", "all", "none"] | bool = "auto"
    min_overlap: float | None = field(default=None, kw_only=True)


Sampler: TypeAlias = (
    WholeChip
    | RandomWindow
    | Grid
    | ResizedWindow
    | WeightedWindow
    | TileWindow
    | RowWindow
    | GeoWindow
)
