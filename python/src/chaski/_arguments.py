"""The classes of arguments: members of specs, by the names of the JSON Schema where it has them."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy.typing as npt

from chaski._access import HasToken, Token
from chaski._argument import Argument
from chaski._calls import entries
from chaski._plain import (
    BBox,
    Columns,
    Crs,
    DTypeLike,
    GridJson,
    Path,
    RowJson,
    RowsJson,
    Size,
    Tables,
    Timestamp,
    Where,
)
from chaski._records import BadRow, FieldInfo, SampleRef, SourceInfo
from chaski._sources import Scenes, Split

if TYPE_CHECKING:
    import grpc

__all__ = [
    "Normalize",
    "Vector",
    "Field",
    "Pixels",
    "OnBad",
    "WholeChip",
    "RandomWindow",
    "Grid",
    "ResizedWindow",
    "WeightedWindow",
    "TileWindow",
    "RowWindow",
    "GeoWindow",
    "Strata",
    "Time",
    "Rows",
    "Source",
    "Mixture",
    "Engine",
    "FieldInfo",
    "SourceInfo",
    "SampleRef",
    "BadRow",
]
VERSION = 1
DTYPE_NAMES = [
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "int8",
    "int16",
    "int32",
    "int64",
    "float16",
    "float32",
    "float64",
    "complex64",
    "complex128",
    "complex_int16",
    "complex_int32",
    "complex_float16",
    "bfloat16",
    "uint1",
    "uint2",
    "uint4",
    "int2",
    "int4",
    "float8_e4m3fn",
    "float8_e5m2",
    "float8_e8m0fnu",
    "float6_e2m3fn",
    "float6_e3m2fn",
    "float4_e2m1fn",
]
SAMPLER_PATHS = ["coverage", "roi", "weights"]
Augment: TypeAlias = Literal["flip_x", "flip_y", "flips", "rotations", "d4"]
BadSamples: TypeAlias = Literal["error", "skip", "replace", "fill"]
Kind: TypeAlias = Literal["raster", "number", "text", "class"]
Last: TypeAlias = Literal["short", "drop", "pad"]
Method: TypeAlias = Literal["mean_std", "min_max", "percentile"]
Missing: TypeAlias = Literal["error", "drop"]
Transport: TypeAlias = Literal["auto", "shm", "grpc"]
Until: TypeAlias = Literal["shortest", "longest"] | int
Wire: TypeAlias = Literal["auto", "native", "final"]


@dataclass(frozen=True, repr=False)
class Normalize(Argument):
    """Computes y = f32(f32(x*s) + o), and then clips y.

    s and o are the scale and the offset of the band, rounded to float32 once; the other members
    stand for them.

    Attributes:
        scale: one factor for all bands, or one a picked band. Default: 1.
        offset: likewise, in units of the result. Default: 0.
        clip: holds the least and the greatest value of the result. Default: none.
        mean: `mean` and `std` are given together, in place of `scale` and `offset`, as published
            models have them: the result is (x-mean)/std. They have one value for each picked band,
            or one for all, in units of the pixels before it. A std is above 0.
        std: see `mean`.
    """

    scale: float | Sequence[float] | None = None
    offset: float | Sequence[float] | None = None
    clip: tuple[float, float] | None = None
    mean: float | Sequence[float] | None = None
    std: float | Sequence[float] | None = None


@dataclass(frozen=True, repr=False)
class Vector(Argument):
    """Describes a field of shapes.

    They are polygons, lines and points of a file, drawn into the window of the sample on the
    grid of its first raster field. A batch has one tensor for it, (n y x), of the size of the
    window there; 0 is where no shape is. For boxes and polygons see `kind`. Shapes are converted
    to the CRS of the raster and drawn in the order of the file, as rasterio.features.rasterize
    does, so that later ones cover earlier ones, and are flipped, turned and resized with the
    window. A raster without a place on the ground is a bad sample.

    Attributes:
        path: the path or URI of the file: GeoParquet or GeoJSON; or COCO's JSON or a CSV of boxes,
            which name the image of each shape. The spec hash covers the shapes and their values,
            not the path. In place of a file, a table in memory: a GeoDataFrame, or one whose column
            "geometry" has WKB.
        column: the column with the values of the shapes: numbers or, with `classes`, strings.
            Shapes without a value are left out. Default: the class of labels for detectors, 1 for
            every shape of other files.
        kind: the content of the tensor: "mask" (default) for the value of the shape at each pixel,
            "instances" for its number in the file, from 1. "boxes" and "polygons" give ragged
            tensors of the shapes that lie in the window, cut to it, in pixels of the window from
            its upper left corner: boxes as x0 y0 x1 y1, or the vertices of polygons.
        all_touched: covers all pixels that a line or the outline of a polygon passes through. By
            default a polygon covers the pixels whose centres lie in it.
        classes: the strings of `column` in the order of their values: the first one is 1. Shapes of
            other classes are not drawn. For YOLO they are the names of the numbers 0, 1 and so on.
            Default: the strings in all files, in the order of their bytes, if `column` has
            strings.
        dtype: the dtype of the values: "uint8", "int16", "int32", "int64" or "float32". A value
            that it cannot hold is an error. Default: "int32" for "instances", "float32" for
            numbers that are not whole, "uint8" for masks without values or of classes, "int64" for
            all others, and for all numbers with `pattern`.
        crs: the CRS of the coordinates: "EPSG:32630", or WKT; or "pixels" of the image, from its
            upper left corner, or "shares" of its width and height. Default: what the file or its
            format says.
        image: the column with the path of the image that each shape lies on. Shapes then are in
            pixels of it, from its upper left corner, and images need no place on the ground. They
            are found by the last parts of their paths; one that no row names is a bad sample. A row
            without a geometry names an image without shapes. Default: none, shapes lie on the
            ground.
        pattern: finds a file for each image, in place of `path`: "labels/{id}.geojson". Its names
            are those of the pattern of a raster field, and the folder is one below the source, or
            another with "../". Files are read with their samples. They may also be VOC's XML, text
            of DOTA or YOLO, JSON as COCO and SODA have it, or CSV. An empty file has no shapes.
        missing: says what an image without a file of `pattern` is: "error" (default) refuses the
            dataset, "empty" takes it as an image without shapes. An image that one file for all
            does not name is a bad sample, or "empty".
        columns: more columns of numbers, for boxes and polygons: "difficult", "iscrowd". Each is a
            tensor of its own, with the name of the field, "_" and the column. A shape without a
            number has 0, or NaN if there are fractions.
        unnamed: the string of shapes that have no value in `column`. Default: they are left out.
    """

    path: Path | Columns | None = None
    column: str | None = None
    kind: Literal["mask", "instances", "boxes", "polygons"] | None = None
    all_touched: bool = False
    classes: Sequence[str] | None = None
    dtype: DTypeLike | None = None
    crs: str | None = None
    image: str | None = None
    pattern: str | None = None
    missing: Literal["error", "empty"] | None = None
    columns: Sequence[str] | None = None
    unnamed: str | None = None


@dataclass(frozen=True, repr=False)
class Field(Argument):
    """One named part of a sample: a raster, a column of numbers or strings, or shapes.

    What is None comes from the arguments of `load`.

    Attributes:
        column: the column of the table that holds the path of the raster, or the values of a
            metadata column. In a container it is a column of level 0 or, for rasters, the path of
            ids below the sample ("s2/image"), which may be a sequence of files ("s2/t*.tif"), the
            steps of an axis t; "PATH@COLUMN" is a column of the row at that path. In an array it is
            the attribute; in a Zarr group, or in each of a directory or glob of them, the path of
            an array, or of a group of arrays as bands. Directories, globs and catalogs have the
            columns "folder", the name of the folder of a file, "name", the name of the file without
            its ending, "path", and the names of patterns. Default for a catalog, directory or glob:
            its assets. Default for a container: the column with the name of the field, or the
            sample itself, or the row of that name below it. Default for an array: the attribute
            with the name of the field, or the only attribute.
        pattern: finds the files of the field by their paths below the source: "masks/{id}.tif", or
            "{split}/{scene}/*_{id}.tif". Files whose names agree form a sample, and each name is a
            column. A pattern that lacks a name has one file for all its values. * stands for any
            text, **/ for any folders. Zarr stores may be followed by an array:
            "s2/{id}.zarr.zip::bands". Of a table the names are columns, which make the path of
            each row.
        blob: the column that holds the header blob of the raster (rumi or chunk index). Default:
            none.
        kind: "raster", "number", "text" (strings) or "class" (the numbers of strings: see
            `classes`), an error where the column holds something else. Without it the column
            decides: strings are paths of rasters if all of them end in .tif, .tiff or .rumi. A
            field that gives what only rasters have is one. "text" of a column of rasters, or of the
            files of a directory, gives their paths.
        bands: bands to pick, in this order; repeats are fine. Either by index from 0, or by what
            files call them (["B04", "B08"], the descriptions that GDAL writes), looked up in every
            file; one that lacks a name is a bad sample. Default: all, which must have the same
            names in all files that name them; "position" takes all by their order, whatever they
            are called.
        dtype: the dtype of the tensor: "native" (as stored), "float32", "float16", "bfloat16",
            "uint8" or "int64". "int64" is for real rasters; a sample with a number that int64 lacks
            is bad. "auto" is float32, but as stored for classes, which have a palette in their
            file, unless they are normalised. With kind "number" or "array" numbers may have any
            real dtype; a row whose number the dtype cannot hold is a bad sample. By default numbers
            are int64 or float64, and rasters native. Also as np.float32 or torch.float32.
        layout: an einops pattern over the axes n b y x, and t for sequences and for files with
            steps of time. Default "n b y x", or "n t b y x" for sequences, also of files, and for
            several steps. A field whose layout has no t has one raster for each sequence of
            rows; "n" is this layout for numbers and strings.
        sizes: gives the lengths of names in the layout that are not axes.
        normalize: a `Normalize`, a dict of its members ({"mean": [...], "std": [...]}), "mean_std",
            "min_max" or "percentile" (with `stats` of `load`), or False for none whatever `load`
            says.
        fill: the value of nodata and padding, in units of the result. Pixels that the mask of a
            file marks as not valid are nodata, too. By default padding is 0. By default nodata is 0
            if `dtype` is a float or the field is normalised; native and integer tensors keep it as
            stored, because 0 may be a class there. NaN is fine for floats.
        nodata: the stored value of pixels that are missing, or a list of several, in place of the
            value that files declare: 0, [0, 255], "nan". Lists in a list are for each band of the
            tensor, [[0], [255]]; an empty list says that no pixel is missing. What a mask leaves
            out stays missing. Without it NaN, which files of floats need not declare, is missing,
            too, where the field has a `fill` or `validity` and the file no mask.
        missing: says what a sample without a file of `pattern`, or with a null in `column`, is:
            "error" (default) refuses the dataset, or makes the sample bad; "fill" keeps the sample:
            the field is nodata there, or 0, NaN or "", and "there.NAME", uint8 (n), says for each
            field where it is there. Not for the first raster field, whose files make the windows.
        pad: lets a window reach past the edge of the asset, with padding there. Without it windows
            are moved inside, and assets smaller than the window are an error.
        clip: lets dtype "uint8" make 0 of stored numbers below 0, 255 of those above 255, and 0, or
            `fill`, of NaN. Without it and `normalize` a sample with such a pixel is bad, unless the
            pixel is nodata and `fill` is given.
        validity: names a second tensor, uint8 and of the same layout: 1 where a pixel is valid, 0
            where it is nodata, masked or padding. Default: no such tensor.
        resample: the method by which a sampler brings windows to their size, and `grid` rasters to
            one grid: "nearest", "bilinear" or "antialias", which is for floats: bilinear with a
            filter that widens as windows shrink. Default: "bilinear" for tensors of floats, else
            "nearest". See docs/order.md.
        times: picks steps of time by their index from 0, in this order, of files that have them,
            or the files of a sequence of TACO 3 by their numbers. A step may be repeated; one that
            a file lacks is padding. Default: all.
        pages: says what the pages of TIFFs of several are: "bands", all bands of the first, then
            all of the second, and so on, or "steps" of time. They must be alike: in size, bands,
            dtype, compression and nodata. Other formats have no pages. Default: the first page is
            read, and no other.
        dims: names the axes of the field's arrays in their order: of NumPy files by t, b, y and x,
            as in "y x b", of Zarr and TileDB arrays as the dims of the source do, in place of
            these. Other files ignore it. Default for NumPy files: "y x", "b y x" or "t b y x"; but
            "y x b" for pictures, whose last axis has 3 or 4, the others at least 32.
        ground: says whether the rasters of this field must lie where the first raster field's lie:
            "match" (default) makes a sample bad whose rasters have corners more than half a pixel
            of the coarser one apart, in the CRS of the first; "ignore" goes by their sizes only.
            Rasters without a place are not compared.
        vector: makes this a field of shapes, drawn into the window. Such a field has no other
            members but `name`, and comes last in a batch.
        columns: makes one tensor of rasters that lie in columns of their own, such as the bands of
            a satellite scene: all bands of the first, then all of the second, and so on. Each is a
            column as `column` says. The rasters of a sample are brought to one grid: see `grid`. A
            sample that lacks one of them is bad. `columns` of numbers make one tensor (n k): int64,
            or float64 if one has floats.
        patterns: `columns` for files that are found by their paths: each is a pattern as `pattern`
            says.
        grid: the grid of the rasters of `columns` or `patterns`: "first" (default) for the first
            one's, or the size of its pixels in metres, from the upper left corner of the first one.
            Rasters on this grid, or moved by whole pixels, are copied. Others are resampled as
            `resample` says, on the ground or, without a place or with `ground` "ignore", by their
            sizes. Pixels that a raster does not cover are nodata.
        classes: the strings of `column` in the order of their values, with kind "class", its
            default: the first one is 0. JSON may have integers here, for a column of integers. A
            sample with another string is bad. Of a column of lists the tensor is (n, k): for each
            class 1 if the list has it, else 0. Default: all strings of the column in the order of
            their bytes, or its integers in theirs, of all sources together and also of rows that
            are not selected, so that parts of a split have the same values. The engine fills them
            in.
        scenes: the paths of the datasets of scenes that the field has rasters in, for windows on
            the ground: labels that lie elsewhere than images, for example. "" is the source of the
            spec. `column`, `pattern` and the like are those of each of them. `ground`.Cover says
            where windows lie then. Default: the source.
        match: gives the field an axis t in sequences of scenes with the steps of another dataset:
            "step" takes the scenes that have the step's value in the column of the step, such as
            its day, and "nearest" the one whose time is nearest to the step's. The field is missing
            in a step without such a scene. Default: one image without an axis t, as labels are.
        match_days: how many days a scene may be from its step with `match` "nearest". Default: any
            number.
        physical: makes physical values of stored pixels, before `normalize`: sample*scale + offset,
            by the scales and offsets that each file has of its bands (SCALE and OFFSET of GDAL in
            TIFF and rumi files, scale_factor and add_offset in Zarr); bands without them keep their
            samples. `dtype` must be a float, or "auto". `nodata` and masks are of stored pixels.
        scale: columns with scales of the row, as `offset` has offsets: `physical` values by these
            in place of those of the file. One for all bands of a file, or one for each; with
            `columns` or `patterns` it may be one for each raster. Without one, a file's own counts.
        offset: columns with offsets of the row: see `scale`.
        lut: a look-up table for rasters, {10: 0, 20: 1}, or a list or array that has the value of
            each number as `np.take` finds it: of int8 it has 256 values, those of the negative
            numbers at the end. It applies to stored pixels before `normalize`; nodata and masks are
            those of the file, and windows are resampled before it, with the nearest pixels. Numbers
            without a value are nodata and need a `fill`. A value may be a list with one for each
            band of the tensor, if the raster has one band. Colours of three or four bands, {(255,
            0, 0): 1}, make one band of uint8 or uint16; a sample with another colour is bad, unless
            there is a `fill`.
        wavelengths: the centre wavelengths of the bands of the tensor in micrometres, which chaski
            passes on: models that take any sensor are given them beside each batch.
        gsd: the ground sampling distance of the field in metres, which chaski passes on like
            `wavelengths`.
    """

    column: str | None = None
    pattern: str | None = None
    blob: str | None = None
    kind: Kind | None = None
    bands: Sequence[int] | Sequence[str] | Literal["position"] | None = None
    dtype: DTypeLike | None = None
    layout: str | None = None
    sizes: Mapping[str, int] | None = None
    normalize: NormalizeLike = None
    fill: float | None = None
    nodata: NoData | None = None
    missing: Literal["error", "fill"] | None = None
    pad: bool | None = None
    clip: bool | None = None
    validity: str | None = None
    resample: Literal["nearest", "bilinear", "antialias"] | None = None
    times: Sequence[int] | None = None
    pages: Literal["bands", "steps"] | None = None
    dims: str | None = None
    ground: Literal["match", "ignore"] | None = None
    vector: Vector | Mapping[str, Any] | None = None
    columns: Sequence[str] | None = None
    patterns: Sequence[str] | None = None
    grid: Literal["first"] | float | None = None
    classes: Sequence[str] | Sequence[int] | None = None
    scenes: Sequence[str] | None = None
    match: Literal["step", "nearest"] | None = None
    match_days: float | None = None
    physical: bool | None = None
    scale: str | Sequence[str] | None = None
    offset: str | Sequence[str] | None = None
    lut: Mapping[int | tuple[int, ...], Any] | Sequence[Any] | npt.NDArray[Any] | None = None
    wavelengths: Sequence[float] | None = None
    gsd: float | None = None


@dataclass(frozen=True, repr=False)
class Pixels(Argument):
    """What the pixels of a batch look like: defaults of all raster fields.

    A `Field` overrides them. They do not apply to metadata columns.

    Attributes:
        bands: bands of "image", as of a `Field`, or of the only one in `fields`.
        dtype: the dtype of the tensor: "native" (as stored), "float32", "float16", "bfloat16",
            "uint8" or "int64". "int64" is for real rasters; a sample with a number that int64 lacks
            is bad. "auto" is float32, but as stored for classes, which have a palette in their
            file, unless they are normalised. With kind "number" or "array" numbers may have any
            real dtype; a row whose number the dtype cannot hold is a bad sample. By default numbers
            are int64 or float64, and rasters native. Also as np.float32 or torch.float32.
        layout: an einops pattern over the axes n b y x, and t for sequences and for files with
            steps of time. Default "n b y x", or "n t b y x" for sequences, also of files, and for
            several steps. A field whose layout has no t has one raster for each sequence of
            rows; "n" is this layout for numbers and strings.
        sizes: gives the lengths of names in the layout that are not axes.
        fill: the value of nodata and padding, in units of the result. Pixels that the mask of a
            file marks as not valid are nodata, too. By default padding is 0. By default nodata is 0
            if `dtype` is a float or the field is normalised; native and integer tensors keep it as
            stored, because 0 may be a class there. Of several fields, those of dtype "native", and
            of integers without arithmetic, are labels, and only their own `Field(fill=...)` counts.
        pad: lets a window reach past the edge of the asset, with padding there. Without it windows
            are moved inside, and assets smaller than the window are an error.
        clip: lets dtype "uint8" make 0 of stored numbers below 0, 255 of those above 255, and 0, or
            `fill`, of NaN. Without it and `normalize` a sample with such a pixel is bad, unless the
            pixel is nodata and `fill` is given.
        validity: names a second tensor, uint8 and of the same layout: 1 where a pixel is valid, 0
            where it is nodata, masked or padding. Default: no such tensor. It is that of "image",
            or of the only field in `fields`.
        augment: a set of flips and rotations: "flip_x", "flip_y", "flips", "rotations" or "d4".
            Every sample gets one of the set. Default: none.
        windows: adds the int64 tensor "window" (n, 4) to batches: y, x, height and width of the
            window of each row in pixels of its first raster field, before it is resampled or
            turned; -1 without a sample. With several windows of a sample it is (n, v, 4).
        geo: adds to batches where the window of each row lies on the ground: "geo.transform", which
            converts pixel corners of the tensor to coordinates as GDAL's geotransform does,
            "geo.epsg", "geo.bounds" (least x and y, greatest x and y), "geo.lonlat" of the centre
            in degrees, and "geo.gsd", the size of a pixel in metres. Without a place they are NaN,
            and the EPSG code 0. "geo.time" has microseconds since 1970 UTC, the least int64 where
            there is no time: of the column that orders sequences, the column of "newest" and
            "oldest", or the first of istac:time_start, stac:time_start and datetime. `batch["geo"]`
            is a dict of them.
    """

    bands: Sequence[int] | Sequence[str] | Literal["position"] | None = None
    dtype: DTypeLike = "auto"
    layout: str | None = None
    sizes: Mapping[str, int] | None = None
    fill: float | None = None
    pad: bool = False
    clip: bool = False
    validity: str | None = None
    augment: Augment | None = None
    windows: bool = False
    geo: bool = False


@dataclass(frozen=True, repr=False)
class OnBad(Argument):
    """What a run does with samples that cannot be read.

    `Loader.bad` counts and lists them.

    Network and permission errors are not faults of a sample. They always end the run.

    Attributes:
        action: says what happens to samples that cannot be read: "error" (default) ends the run,
            "skip" marks the row as not valid, "replace" reads another sample, "fill" keeps what can
            be read: fields that cannot are nodata, of a sequence only their steps that cannot.
            `batch["there"]` says for each field where it is there.
        max_count: the number of bad rows that are allowed, at least 0. Default: any number. Every
            rank counts its own, from the start of the epoch or from where its loader began: a state
            has no count.
        max_rate: the share of the rank's rows of a whole epoch that may be bad, from 0 to 1.
            Default: any share.
        quarantine: file that bad samples are appended to, as lines of JSON that `Rows(bad=FILE)`
            reads; several processes may share one.
    """

    action: BadSamples = "error"
    max_count: int | None = None
    max_rate: float | None = None
    quarantine: str | os.PathLike[str] | None = None


@dataclass(frozen=True, repr=False)
class WholeChip(Argument):
    """The whole asset: one sample each.

    Attributes:
        size: height and width of the batch's tensors; assets that are smaller are padded, if the
            field pads. Default: the size of the first asset.
        max_nodata: the largest share of a window, from 0 to 1, that may have no data, for "chip",
            "random_window" and "grid": other windows are not in the dataset. It needs `coverage`,
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
        max_nodata: the largest share of a window, from 0 to 1, that may have no data, for "chip",
            "random_window" and "grid": other windows are not in the dataset. It needs `coverage`,
            which says it by cells: exactly for windows of whole cells, and else as if the valid
            pixels of a cell were spread evenly. Default: 1.
        coverage: the path of the file for `max_nodata`, with the valid pixels of each cell, as
            'chaski stats --sampling' writes it without classes. The spec hash covers the content of
            the file, not its path.
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
        pad: leaves the last windows of "grid" at their stride, so that they reach past the edge;
            every raster field must pad. Without it they are moved inside.
        max_nodata: the largest share of a window, from 0 to 1, that may have no data, for "chip",
            "random_window" and "grid": other windows are not in the dataset. It needs `coverage`,
            which says it by cells: exactly for windows of whole cells, and else as if the valid
            pixels of a cell were spread evenly. Default: 1.
        coverage: the path of the file for `max_nodata`, with the valid pixels of each cell, as
            'chaski stats --sampling' writes it without classes. The spec hash covers the content of
            the file, not its path.
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
        ratio: bounds the aspect of the window of "resized_window", relative to the aspect of the
            result: from 1/`ratio` to `ratio`. Default 4/3.
        of_asset: makes `scale` relative to the area of the asset.
        per_asset: samples that an epoch takes from each asset.
        whole: makes the window of "resized_window" the whole asset, so that assets of any size
            become tensors of one size. `scale`, `ratio`, `of_asset` and `per_asset` are not for it.
        sizes: sides of squares in place of `size`: each batch has one of them, at random.
        min_overlap: the least part of its area, from 0 to 1, that a window of a list after the
            first shares with the first one, or of the area of the first window if that is smaller.
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
        per_asset: samples that an epoch takes from each asset.
        sizes: sides of squares in place of `size`: each batch has one of them, at random.
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
        per_visit: the number of windows that a visit of "tile_window" takes from its tile. Default
            16.
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
class RowWindow(RowJson):
    """One window for each row, at the box that columns of the row hold.

    A box that is null or not finite, narrower than a pixel, or outside of the image is a bad
    sample.

    Attributes:
        size: height and width of the window, or the side of a square.
        x: the column with the left edge of the box of "row_window", in pixels of the first raster
            field. Edges between pixels move out to whole ones. Default "x".
        y: the column with the top edge of the box. Default "y".
        width: the column with the width of the box. Default "w".
        height: the column with the height of the box. Default "h".
        fit: says how a box of "row_window" becomes a window of one size. "resize" (default)
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
        cover: says where windows lie if fields have scenes of several datasets (Field.Scenes):
            "all" (default) where every dataset has ground, "any" where one of them has. There the
            fields of the others are missing.
        overviews: says which fields are read from the overviews of a TIFF where windows are coarser
            than its pixels: from the coarsest whose pixels are no larger than the pixels of the
            window. "auto" (default): fields that are resampled bilinearly or antialiased; others,
            such as labels, are read from the raster itself, because their overviews may hold
            averages. "all" (true) or "none" (false) of the fields.
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


@dataclass(frozen=True, repr=False)
class Strata(Argument):
    """Draws from the rows of every value of a column in fixed proportions.

    Attributes:
        column: the column whose values make the strata.
        temperature: weights each value by its number of rows, as in Mixture. Default: every value
            is drawn equally often (class-balanced).
        until: "shortest" or "longest" of the values' rows, or samples of an epoch. Default: as many
            as all rows have.
        per_batch: makes the shares exact in every global batch, and an epoch a whole number of
            batches, as in Mixture. In a mixture it needs `per_batch` of that mixture, too.
    """

    column: str
    temperature: float | None = None
    until: Until | None = None
    per_batch: bool = False


@dataclass(frozen=True, repr=False)
class Time(Argument):
    """Groups rows into sequences: the rows with one value of `key`, ordered by `order`.

    An axis t is then in layouts such as "n t b y x".

    Attributes:
        key: the column whose value is the same for all rows of a series.
        order: the column that orders the rows of a series: numbers, times, or strings that say a
            time, such as ISO 8601 dates. Other strings are refused.
        length: the number of steps of a sample, from 1 to 65,536.
        stride: the number of steps from the start of one sample of a series to the start of the
            next. Default: `length`, so that samples do not overlap.
        cut: leaves out the end of a series if it does not fill a sample. Without it the end is
            padded.
        validity: names a second tensor, uint8 (n t): 1 for a step that exists, 0 for padding.
            Default "steps".
    """

    key: str
    order: str
    length: int
    stride: int | None = None
    cut: bool = False
    validity: str = "steps"


@dataclass(frozen=True, repr=False)
class Rows(RowsJson):
    """Which rows of a source are samples, and how many of them make an epoch.

    Attributes:
        ids: the samples that count: a list, or the path of one: a text file with an id on each
            line, or PATH::COLUMN, a column of a table (.csv, .tsv, .parquet, .json). A column by
            its number, from 0, is of a CSV file without a header. An id is what the sample is
            called, or the end of the path of one of its rasters from a slash on, with or without
            the ending. Samples keep the dataset's order. An id that names no sample is an error:
            see `missing`.
        id_column: the column of the dataset that holds the ids. Each id then names all rows that
            have it. Default: what the samples are called.
        where: conditions (column, operator, value) that rows have to meet, such as ("cloud", "<",
            10); operators are == != < <= > >= and "in" with a list. Of a container also SQL, as a
            string: "cloud < 10 AND country = 'PE'".
        bbox: a bounding box (west, south, east, north) in the CRS of `bbox_crs`. It selects samples
            whose geometry, or in a catalog the bounds of the raster, intersects the box. In
            longitude and latitude the box crosses the antimeridian if west is greater than east.
            Geometries in another CRS are compared by where they lie on Earth; an unknown CRS is an
            error.
        bbox_crs: the EPSG code of the CRS of `bbox`. Default: 4326, longitude and latitude in
            degrees. Also as "EPSG:32633", or an object with `to_epsg()`.
        datetime: a range "A/B" of dates, which are whole days in UTC, or timestamps. It selects
            samples that begin in the range.
        bad: the samples that are left out: their ids, or the file that `chaski verify --samples` or
            `OnBad(quarantine=FILE)` wrote.
        split: divides the rows into named parts. It needs `use`. A string is the part that counts,
            where a column has the part of each row.
        use: the name of the part of `split` whose rows the run reads.
        strata: draws the rows of every value of a column in fixed shares. A string is the column.
        time: groups rows into sequences, which are then the samples. See `Time`.
        take: the number of samples of an epoch. The next epoch continues where this one ends, so
            every sample comes once before any comes again. Default: as many samples as the dataset
            has. Not for a `Source`.
        steps_per_epoch: the same in steps of `batch_size` samples.
        missing: says what happens to ids for which a field with a pattern has no file: "error"
            (default) refuses the dataset, "drop" leaves the ids out, and the engine logs how many.
            The same holds for `ids` that name no sample, and for samples without a row in one of
            `tables`.
        base_path: the directory of the containers of a TACOCAT or a TACOLLECTION.json. Default: the
            directory beside it.
        dims: names the dimensions of an array in their order: n, b, y and x, and t of a Zarr array.
            An array may lack n, t and b. Default: the names that the array has for them.
        timestamp: opens an array as it was in a range of time: only fragments that were written in
            this range are read. Default: all fragments. A time, or the first and last one:
            milliseconds since 1970, or datetimes with a time zone.
    """

    where: Where = ()
    bbox: BBox | None = None
    bbox_crs: Crs | None = None
    datetime: str | None = None
    bad: Path | Sequence[str] | None = None
    split: Split | str | None = None
    use: str | None = None
    strata: Strata | str | None = None
    time: Time | None = None
    take: int | None = None
    steps_per_epoch: int | None = None
    missing: Missing = "error"
    base_path: Path | None = None
    dims: str | None = None
    timestamp: Timestamp | None = None
    ids: Path | Sequence[str] | None = None
    id_column: str | None = None


@dataclass(frozen=True, repr=False)
class Source(Argument):
    """One of the datasets of a `Mixture`.

    Attributes:
        source: as `load` takes it.
        weight: the share of the source, relative to the other sources. Default 1.
        fields: how its fields differ from those of `load` with the same name: where they are found,
            `bands`, `normalize`, `fill`, `pad`, `wavelengths`, `gsd`, `vector`.
        window: in place of that of `load`; windows must come out at the same size.
        rows: which rows of it are samples.
        tables: as `load` takes them.
    """

    source: Path | Sequence[Path] | Columns
    weight: float = 1.0
    fields: Mapping[str, FieldLike] | None = None
    window: Size | Sampler | Sequence[Sampler] | None = None
    rows: Rows = field(default_factory=Rows)
    tables: Tables | None = None


@dataclass(frozen=True, repr=False)
class Mixture(Argument):
    """Draws samples from several sources in fixed proportions: in place of a source of `load`.

    Batches have a tensor "source": the number of a row's dataset, from 0 in the order of the
    sources (nested ones in their places), and -1 for padding. With `batches` it is the same in
    all rows, and `source` and `fields` of a batch say what that source is.

    Attributes:
        sources: by name: a `Source`, what `Source.source` is, or a `Mixture` again.
        temperature: weights each source by its number of samples to the power of 1/`temperature`: 1
            draws in proportion to the sizes, more draws more evenly. Default: the weights of the
            sources.
        until: an epoch ends when the "shortest" source would begin again, when the "longest" has
            given every sample, or after a number of samples.
        weight: its share in a mixture around it.
        per_batch: makes the shares exact in every global batch, and an epoch a whole number of
            batches. Without it they are exact in every 10,000 samples in a row. A mixture in a
            mixture can only have it if the outer one has it, too.
        batches: "one source" if every global batch comes wholly from one source, the same on all
            ranks. `sources` may then differ in bands, shapes, dtypes and steps of time. Shares are
            of batches: exact in every 10,000 in a row, and in any stretch but for about one batch;
            an epoch is a whole number of batches. A mixture in a mixture can only have it if the
            outer one has it, too. Default: batches are mixed, and all sources have one shape.
    """

    sources: Mapping[str, Source | Mixture | Path | Sequence[Path] | Columns]
    temperature: float | None = None
    until: Until = "shortest"
    weight: float = field(default=1.0, kw_only=True)
    per_batch: bool = field(default=False, kw_only=True)
    batches: Literal["one source"] | None = field(default=None, kw_only=True)


@dataclass(frozen=True, repr=False)
class Engine(HasToken):
    """How batches are made and received.

    None of it changes what is in them.

    Attributes:
        workers: threads that decode; default: one a core. Only for `load`.
        memory: bytes that the engine may hold in batches that are in the making. In shared memory
            batches that you keep count, too, until there is room for only one more. A batch that
            does not fit is a LimitError; where fewer than `prefetch` + 1 fit, a warning is logged.
            Default: eight batches of all ranks and the pools of a `TileWindow`, but at least 256
            MiB and at most a quarter of the machine's memory. Only for `load`.
        max_chunk: bytes of the largest chunk (a file's tile, strip or frame) that is decoded whole;
            default: 64 MiB. Larger tiles and strips of TIFFs are decoded in pieces of rows; larger
            chunks of other formats are a LimitError. Whole chunks over 64 MiB are decoded by as
            many workers at a time as `memory` has room for, at least one. Only for `load`.
        cache: a folder on a local disk that keeps ranges of remote files, also for later runs and
            other engines; default: what the environment variable CHASKI_CACHE_DIR has. Only for
            `load`.
        cache_bytes: the most that `cache` may take on disk, at least 64 KiB; default: what the
            environment variable CHASKI_CACHE_BYTES has. Only for `load`.
        prefetch: batches requested ahead. Without a number, as many as suit the data: 3, and of
            small samples of remote files up to 32, within a quarter of the engine's memory and 256
            MiB.
        transport: "shm" takes batches from memory shared with an engine on this host, without a
            copy, and fails where that is not possible; "grpc" has the engine that is asked send
            them; "auto" uses shared memory where it can. The batches are the same, bit for bit.
        wire: where a local engine is the client of servers (`connect`), "native" and "auto" let
            them send pixels as stored where that is smaller, and the local engine converts them;
            "final" has the servers convert. The batches are the same, bit for bit. Whatever hands
            batches to Python has converted them, so `wire` changes nothing without that engine.
        reuse: memory of batches that nothing refers to any more is used again (shared memory always
            is).
        timeout: seconds that an engine which owes an answer may be silent; then it counts as lost,
            and an error is raised. With several servers, the requests of a silent one go to
            another. The error comes when all are silent for so long, or, if they reconnect and stay
            silent, after twice that time.
        max_batch_bytes: the largest size of a batch.
        retries: how often in a row a broken connection is opened again, counted for each of several
            servers. Only for `connect`.
        hedge: with several servers, a batch is also requested from a second one when the first
            takes longer than twice the time within which this share of the last batches arrived;
            the first answer counts. Without a share, never. None is no share. Only for `connect`.
        prefetch_bytes: with several servers and a tile-aware order (`TileWindow`), more than
            `prefetch` batches are requested, so that every server has a pool of tiles to work on,
            while all of them fit into this many bytes. 0 keeps to `prefetch`. Only for `connect`.
        credentials: for TLS, what `chaski.tls` or `grpc.ssl_channel_credentials` returns; of one
            server, any credentials of gRPC. Default: plain text. Only for `connect`.
        token: for servers that ask for one: a `Token`, or its text. Default: what the environment
            variable CHASKI_TOKEN has, or the file that CHASKI_TOKEN_FILE names. Only for `connect`.
        plain_token: the token may go to other hosts in plain text, where others can read it. Only
            for `connect`.
        share: the processes of a job on this host share one engine, if their settings are equal:
            the first one starts it, and it ends with the last. Its workers and memory are then
            those of all together. False is an engine of this process's own.
        ledger: folder to which each rank appends what batches its loop was given, before it has
            them; `chaski ledger check` proves of it that every sample came once. Default: none.
    """

    workers: int | None = None
    memory: int | None = None
    max_chunk: int | None = None
    cache: Path | None = None
    cache_bytes: int | None = None
    prefetch: int | None = None
    transport: Transport = "auto"
    wire: Wire = "auto"
    reuse: bool = True
    timeout: float = 120.0
    max_batch_bytes: int = 8 << 30
    retries: int = 5
    hedge: float | None = 0.95
    prefetch_bytes: int = 2 << 30
    credentials: grpc.ChannelCredentials | None = None
    token: Token | str | None = None
    plain_token: bool = False
    share: bool = True
    ledger: str | os.PathLike[str] | None = None


NoData: TypeAlias = float | Literal["nan"] | Sequence[float] | Sequence[Sequence[float]]
NormalizeLike: TypeAlias = Normalize | Method | Mapping[str, Any] | Literal[False] | None
FieldLike: TypeAlias = Field | Vector | str | Mapping[str, Any]
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
SourceLike: TypeAlias = Path | Sequence[Path] | Columns | Mixture | Scenes

for _record in (FieldInfo, SourceInfo, SampleRef, BadRow):
    _record.__module__ = __name__  # pickles find them here
entries(Argument)
