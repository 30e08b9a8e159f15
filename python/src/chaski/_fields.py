"""The classes of fields: their rasters, shapes, normalisation and what all fields of a run have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy.typing as npt

from chaski._argument import Argument
from chaski._plain import Columns, DTypeLike, Path

__all__ = ["Normalize", "Vector", "Field", "Pixels"]
DTYPE_NAMES = (
    "uint8 uint16 uint32 uint64 int8 int16 int32 int64 float16 float32 float64 complex64 "
    "complex128 complex_int16 complex_int32 complex_float16 bfloat16 uint1 uint2 uint4 int2 int4 "
    "float8_e4m3fn float8_e5m2 float8_e8m0fnu float6_e2m3fn float6_e3m2fn float4_e2m1fn"
).split()
Augment: TypeAlias = Literal["flip_x", "flip_y", "flips", "rotations", "d4"]
Kind: TypeAlias = Literal["raster", "number", "text", "class"]
Method: TypeAlias = Literal["mean_std", "min_max", "percentile"]


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
        classes: the strings of `column`, or its whole numbers as strings, in the order of their
            values: the first one is 1. Shapes of other classes are not drawn; the log counts them.
            A name that shapes have in other letters is an error. For YOLO they are the names of the
            numbers 0, 1 and so on. Default: the strings in all files, in the order of their bytes,
            if `column` has strings.
        dtype: the dtype of the values: "uint8", "int16", "int32", "int64" or "float32". A value
            that it cannot hold is an error. Default: "int32" for "instances", "float32" for
            numbers that are not whole, "uint8" for masks without values or of classes, "int64" for
            all others, and for all numbers with `pattern`.
        crs: the CRS of the coordinates: "EPSG:32630", or WKT; or "pixels" of the image, from its
            upper left corner, or "shares" of its width and height. Default: what the file or its
            format says.
        image: the column with the path of the image that each shape lies on, or what the sample is
            called, or a path with the column in braces: "pan_{ImageId}.tif". Shapes then are in
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
        box: where the coordinates of an object lie, by what they are: {"x y w h": ["left", "top",
            "width", "height"]}, or {"x y w h": "bbox"} where one place has all. They are corners
            ("x0 y0 x1 y1"), a corner and the size ("x y w h"), the middle and the size ("cx cy w
            h", with "angle" in radians or "degrees", clockwise as pictures are seen), a point ("x
            y"), the vertices of an outline ("x1 y1 x2 y2 x3 y3 ..."; or "outline", of x and y in
            turn), a mask of runs ("runs") or WKT ("wkt"). A place is the name of a column of a
            text, CSV or Parquet file or its number, from 0, or the path of members of JSON, XML or
            Parquet's structs: "objects.bbox", "object/polygon/x1", "image/box/@left". `column`,
            `columns` and `where` name such places, too. Of lists each element is an object. `image`
            may have several places in braces, with the number of digits: "{seq}/img{0:06}.jpg".
            Without `path` and `pattern` the places are columns of the dataset's own table. Default:
            where the format of the file has them, in pixels.
        where: comparisons (column, operator, value) that objects must meet; others are left out.
            It needs `box`.
        names: makes columns of parts of the columns of a text: {"Image_Label": "{image}_{label}"}.
            A name stands for text that is as long as possible, the first ones first.
    """

    path: Path | Columns | None = None
    column: str | int | None = None
    kind: Literal["mask", "instances", "boxes", "polygons"] | None = None
    all_touched: bool = False
    classes: Sequence[str] | None = None
    dtype: DTypeLike | None = None
    crs: str | None = None
    image: str | int | None = None
    pattern: str | None = None
    missing: Literal["error", "empty"] | None = None
    columns: Sequence[str | int] | None = None
    unnamed: str | None = None
    box: Mapping[str, str | int | Sequence[str | int]] | None = None
    where: Sequence[tuple[str | int, str, Any]] | None = None
    names: Mapping[str | int, str] | None = None


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
            is bad. "auto" is float32, but as stored for classes, unless they are normalised: these
            have a palette in their file, or one band of 8 bits with a nodata value that is not 0
            and no `fill`. With kind "number", and where a column has numbers, any real
            dtype; a row whose number the dtype cannot hold is a bad sample. By default numbers are
            int64 or float64, and rasters "auto". Also as np.float32 or torch.float32.
        layout: an einops pattern over the axes n b y x, and t for sequences and for files with
            steps of time. Default "n b y x", or "n t b y x" for sequences, for files with an axis
            of time, also of one step, and with `times` or pages "steps". A field whose layout has
            no t has one raster for each sequence of rows; "n" is this layout for numbers and
            strings.
        sizes: gives the lengths of names in the layout that are not axes and, of lists of samples
            in cells, those of the axes, as in {"y": 64, "x": 64}.
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
            field where it is there. Of windows on the ground the scenes count that have the field.
            In each dataset one raster field must not lack: its files make the windows.
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
            these. An axis that it leaves out has the length 1. Other files ignore it. Default for
            NumPy files: "y x", "b y x" or "t b y x"; but "y x b" for pictures, whose last axis has
            3 or 4, the others at least 32. Default for lists of samples in cells: "y x", behind t
            and b if sizes has them.
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
        split: separates the strings in a text of `column`, such as " " of "clear primary", which is
            then a list of them. Blanks around them do not count.
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
            TIFF and rumi files, scale_factor and add_offset in Zarr, HDF5 and NetCDF); bands
            without them keep their samples. `dtype` must be a float, or "auto". `nodata` and masks
            are of stored pixels. Default: True for arrays that have such attributes, as xarray
            decodes them, if `dtype` and `lut` allow it; False for other rasters.
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
            there is a `fill`. "masks" takes each band, or each file of `patterns`, for the mask of
            one class, and makes one band: the number of the last band, from 1, that is not 0, else
            0; with missing="fill" a mask without a file has no pixels.
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
    split: str | None = None
    scenes: Sequence[str] | None = None
    match: Literal["step", "nearest"] | None = None
    match_days: float | None = None
    physical: bool | None = None
    scale: str | Sequence[str] | None = None
    offset: str | Sequence[str] | None = None
    lut: LUTLike = None
    wavelengths: Sequence[float] | None = None
    gsd: float | None = None


@dataclass(frozen=True, repr=False)
class Pixels(Argument):
    """What the pixels of a batch look like: defaults of all raster fields.

    A `Field` overrides them. They do not apply to metadata columns.

    Attributes:
        bands: bands of "image", as of a `Field`, or of the only one in `fields`.
        dtype: as of a `Field`.
        layout: as of a `Field`.
        sizes: as of a `Field`.
        fill: as of a `Field`. Of several fields, those of dtype "native", and of integers without
            arithmetic, are labels, and only their own `Field(fill=...)` counts.
        pad: as of a `Field`.
        clip: as of a `Field`.
        validity: as of a `Field`, for "image" or the only field in `fields`.
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
            "oldest", the first of istac:time_start, stac:time_start and datetime, or the
            coordinate of t or n of an array. `batch["geo"]` is a dict of them.
        strict: a chunk or shard whose object a Zarr store lacks cannot be read. Without it, it was
            not written, and its pixels are the fill value of the array, as Zarr has it: a server
            that lost an object goes unnoticed.
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
    strict: bool = False


NoData: TypeAlias = float | Literal["nan"] | Sequence[float] | Sequence[Sequence[float]]
LUTLike: TypeAlias = (
    Mapping[int | tuple[int, ...], Any] | Sequence[Any] | npt.NDArray[Any] | Literal["masks"] | None
)
NormalizeLike: TypeAlias = Normalize | Method | Mapping[str, Any] | Literal[False] | None
FieldLike: TypeAlias = Field | Vector | str | Mapping[str, Any]
