"""What errors, batches and files say: classes that need no errors and no arguments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from chaski._argument import Argument


@dataclass(frozen=True, repr=False)
class SplitMembers(Argument):
    """Gives every row to one of several parts, the same in every run; make it with a `by_` method.

    A row that is added or taken away later moves no other, unless shares are exact. What several
    methods take:

    Attributes:
        by: decides the part of a row: "hash" (its id), "column" (the value of `column`, so equal
            values stay together), "date" (`ranges` of `column`), "cell" (its place on the ground,
            so neighbours stay together), "given" (`column` holds the name of the part) or "place",
            which divides windows on the ground, not rows: windows of two parts do not overlap.
        parts: the parts by name. As `shares` their weights, such as {"train": 0.8, "val": 0.2}; as
            `ranges` (from, to), where `to` is not in the part and None is no bound.
        column: the column for "column", "date" and "given". Default for "given": the first of
            split, tortilla:data_split, split:split and ml:split that the table has.
        seed: the seed of the hash. It is apart from the seed of the spec, so that a split stays the
            same from run to run. Default 0.
        size: the side of a cell: in units of the bounds (degrees or metres), or as `degrees`.
        columns: the columns of the minimum x, minimum y, maximum x and maximum y of a row. Default:
            minx, miny, maxx and maxy, as in catalogs.
        crs: the column of EPSG codes that `columns` are in; catalogs have the default.
        margin_m: the least distance of windows of two parts for "place", in metres of the map.
            Default 0.
        exact: keeps the shares among the ids, values or cells of all rows, for "hash", "column" and
            "cell": of 4 ids at 3 : 1, 3 and 1. A part has at least one, if there are enough. Rows
            that are added later may move others. By default each is a draw of its own.
    """

    by: str
    parts: Mapping[str, Any]
    column: str | None = None
    seed: int = 0
    size: float | None = None
    columns: Sequence[str] | None = None
    crs: str | None = None
    margin_m: float | None = None
    exact: bool = False


@dataclass(frozen=True, repr=False, slots=True)
class FieldInfo(Argument):
    """What a tensor of a batch looks like.

    Attributes:
        name: its key in the batch.
        kind: "raster", "int", "float", "text", "mask" (the validity of another field), "boxes",
            "polygons" or "vector".
        dtype: dtype as chaski calls it; "" for text.
        shape: shape for a batch of one row.
        axes: names of the axes: "n", "b", "(h w)", ...
        bands: names of the bands of a raster, if the spec or the first file has them.
        wavelengths: centre wavelength of each band in micrometres, if the spec has them.
        gsd: ground sampling distance in metres, 0 if the spec has none.
        classes: names of the numbers from 0 on of a raster, if the first file has them
            (CategoryNames of GDAL, or an attribute table); "" for a number without a name.
        palette: colours of these numbers, if the first file has a palette: "#rrggbb", or
            "#rrggbbaa" where they are not opaque. Numbers beyond are black.
    """

    name: str
    kind: str
    dtype: str
    shape: tuple[int, ...]
    axes: tuple[str, ...]
    bands: tuple[str, ...] = ()
    wavelengths: tuple[float, ...] = ()
    gsd: float = 0.0
    classes: tuple[str, ...] = ()
    palette: tuple[str, ...] = ()


@dataclass(frozen=True, repr=False, slots=True)
class SourceInfo(Argument):
    """What a dataset of a mixture is.

    Attributes:
        name: its name, after the names of the mixtures around it.
        fields: names, dtypes and shapes of the tensors of batches with rows of it. They differ from
            source to source where batches are of one source.
    """

    name: str
    fields: tuple[FieldInfo, ...]


@dataclass(frozen=True, repr=False, slots=True)
class SampleRef(Argument):
    """Says which sample one is.

    Attributes:
        index: its index in its dataset, as "sample" of a batch has it.
        row: the row of the table that it is made of; of a sequence, its first, or that of the
            filled step.
        id: what that row is called; "" where this cannot be read.
    """

    index: int
    row: int
    id: str


@dataclass(frozen=True, repr=False, slots=True)
class BadRow(Argument):
    """A row that the bad-sample policy touched; with "fill", a step of a sequence.

    Attributes:
        row: index of the row in the batch.
        position: position of the sample in the epoch.
        message: what is wrong with the sample, on one line.
        source: of a mixture, the name of the sample's source.
        sample: the sample that is bad; none where an older server does not say.
        instead: the sample that stands in its place, with on_bad="replace"; none where nothing
            does.
        kind: "corrupt", "unsupported", "limit", "not found" or "misplaced"; "" where an older
            server does not say.
        file: path or URI of the file that is at fault, or "".
        part: the place as the format of the file calls it ("tile 18"), or "".
        offset: byte offset in the file, or -1.
    """

    row: int
    position: int
    message: str
    source: str = ""
    sample: SampleRef | None = None
    instead: SampleRef | None = None
    kind: str = ""
    file: str = ""
    part: str = ""
    offset: int = -1


@dataclass(frozen=True, repr=False)
class RumiLayout(Argument):
    """The grid and dtype of an image that was cut into tiles.

    Attributes:
        shape: bands, height and width.
        dtype: of the samples, little-endian.
        tile: height and width of a tile.
        generation: 1 to 3.
        cells: a frame holds all bands of a grid position (generation 2).
        times: steps of time (generation 3). 0 is 1.
        unit: what a frame holds (generation 3): "tile", "step", "cell" or axes such as "h w b".
    """

    shape: tuple[int, int, int]
    dtype: np.dtype[Any]
    tile: tuple[int, int]
    generation: int = 1
    cells: bool = False
    times: int = 1
    unit: str = ""


@dataclass(frozen=True, repr=False)
class RumiHeader(Argument):
    """What a header blob says, and `info` of a file.

    Headers of equal blobs are equal.

    Attributes:
        blob: the header as bytes; header is another name of it.
        shape: bands, height, width, with the steps of time in front if there are several.
        dtype: of the samples. Generations 2 and 3 also have types of the package ml_dtypes, which
            must then be installed; complex types that numpy has no name for are structured, "re"
            and "im".
        tile: height and width of a tile, in pixels.
        generation: of the format, 1 to 3.
        cells: a frame holds all bands and steps of a place in the grid, not one.
        time_count: steps of time.
        frame_layout: axes of a frame, such as "h w b".
        index_order: axes along which a place in the grid has several frames.
        offsets: where the frames start in the file; frames is their number.
        counts: bytes of the frames.
        bands: their names; None, like all that follow, if only the file knows.
        time_kind: "instant" or "interval".
        time: a date or a time in UTC for each step, or a pair of them.
        transform: affine coefficients (a, b, c, d, e, f).
        crs: EPSG code.
        pixel_is_point: transform refers to the centres of pixels.
    """

    blob: bytes
    shape: tuple[int, ...] = field(compare=False)
    dtype: np.dtype[Any] = field(compare=False)
    tile: tuple[int, int] = field(compare=False)
    generation: int = field(compare=False)
    cells: bool = field(compare=False)
    time_count: int = field(compare=False)
    frame_layout: str = field(compare=False)
    index_order: tuple[str, ...] = field(compare=False)
    offsets: npt.NDArray[np.int64] = field(compare=False, repr=False)
    counts: npt.NDArray[np.int64] = field(compare=False, repr=False)
    bands: list[str] | None = field(compare=False, default=None)
    time_kind: str | None = field(compare=False, default=None)
    time: list[Any] | None = field(compare=False, default=None)
    transform: tuple[float, ...] | None = field(compare=False, default=None)
    crs: int | None = field(compare=False, default=None)
    pixel_is_point: bool | None = field(compare=False, default=None)


class About:
    """What a dataset is."""

    @property
    def _about(self) -> Mapping[str, Any]:
        raise NotImplementedError

    @property
    def format(self) -> str:
        """What the containers are: "TACO 2 (ZIP)"."""
        found: str = self._about["format"]
        return found

    @property
    def levels(self) -> int:
        """The number of levels."""
        found: int = self._about["levels"]
        return found

    @property
    def files(self) -> list[str]:
        """The containers that were opened."""
        return list(self._about.get("parts") or [])

    @property
    def collection(self) -> dict[str, Any]:
        """The document about the dataset, as JSON has it; {} if there is none."""
        found: dict[str, Any] = self._about["collection"] or {}
        return found


class Document(About):
    """What the document of a dataset says; None or an empty list is what it does not say."""

    @property
    def id(self) -> str | None:
        """The id of the dataset, of a-z, 0-9, "_" and "-" only."""
        found: str | None = self.collection.get("id")
        return found

    @property
    def version(self) -> str | None:
        """The version of the dataset."""
        found: str | None = self.collection.get("dataset_version")
        return found

    @property
    def title(self) -> str | None:
        """The title of the dataset."""
        found: str | None = self.collection.get("title")
        return found

    @property
    def description(self) -> str | None:
        """The description of the dataset."""
        found: str | None = self.collection.get("description")
        return found

    @property
    def tasks(self) -> list[str]:
        """The tasks that the dataset is for."""
        return list(self.collection.get("tasks") or [])

    @property
    def licenses(self) -> list[str]:
        """The licences of the dataset."""
        return list(self.collection.get("licenses") or [])

    @property
    def providers(self) -> list[dict[str, Any]]:
        """Those who made the dataset."""
        return list(self.collection.get("providers") or [])

    @property
    def curators(self) -> list[dict[str, Any]]:
        """Those who made TACO of the dataset."""
        return list(self.collection.get("curators") or [])

    @property
    def keywords(self) -> list[str]:
        """The keywords of the dataset."""
        return list(self.collection.get("keywords") or [])

    @property
    def extent(self) -> dict[str, Any] | None:
        """The place and time of all samples."""
        found: dict[str, Any] | None = self.collection.get("extent")
        return found


@dataclass(frozen=True, repr=False)
class Suggestion(Argument):
    """What `suggest` found: str() of it is the text of `chaski suggest`.

    Attributes:
        calls: texts of calls of `load`, by their splits; "" without splits.
        found: what was counted.
        check: what only you can know, such as the classes of a mask in colours.
        unused: files that the calls do not use.
        another: the calls of another reading that explains as many files, if there is one.
    """

    calls: dict[str, str]
    found: list[str]
    check: list[str]
    unused: list[str]
    another: dict[str, str]

    def __str__(self) -> str:
        lines = []
        for split, call in self.calls.items():
            lines += [f"# {split}", call] if split else [call]
        another = list(self.another.values())[:1]
        parts = {"Found": self.found, "Check": self.check, "Not used": self.unused}
        for title, rest in {**parts, "Another reading": another}.items():
            if rest:
                lines += ["", f"{title}:", *(f"  {line}" for line in rest)]
        return "\n".join(lines)
