"""What a run samples: windows, subsets of rows, sequences, mixtures. All of it becomes JSON."""

from __future__ import annotations

import contextlib
import datetime as dt
import functools
import math
import operator
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, TypeAlias, TypeGuard, TypeVar

import numpy as np

from chaski._files import absolute_path
from chaski.errors import SpecError

if TYPE_CHECKING:
    from chaski._spec import FieldLike

T = TypeVar("T")
Size: TypeAlias = "int | tuple[int, int]"
Until: TypeAlias = 'Literal["shortest", "longest"] | int'
Path: TypeAlias = "str | os.PathLike[str]"
Columns: TypeAlias = "Mapping[str, Sequence[Any]] | ArrowStream"  # a table in memory
Condition: TypeAlias = "str | tuple[str, str, Any] | Mapping[str, Any]"
Where: TypeAlias = "str | Sequence[Condition]"
BBox: TypeAlias = "tuple[float, float, float, float]"


class HasEpsg(Protocol):
    """A coordinate reference system of pyproj, rasterio or the like."""

    def to_epsg(self) -> int | None:
        """Returns the EPSG code, None if there is none."""
        ...


Crs: TypeAlias = "int | str | HasEpsg"
Timestamp: TypeAlias = "int | dt.datetime | tuple[int | dt.datetime, int | dt.datetime]"
Missing: TypeAlias = Literal["error", "drop"]
Augment: TypeAlias = Literal["flip_x", "flip_y", "flips", "rotations", "d4"]


class ArrowStream(Protocol):
    """A table in memory: of pyarrow, pandas, polars, ..."""

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any: ...


def absolute(path: Path) -> str:
    """Returns a path as an engine in any folder takes it: absolute; a URI stays as it is."""
    if not isinstance(path, (str, os.PathLike)):
        raise SpecError(f"{path!r} is not a path")
    p = os.fspath(path)
    return p if "://" in p else absolute_path(p)


def listed(name: str, v: object) -> list[Path]:
    """Returns the paths that one, or several in a sequence or iterator, stand for."""
    one = isinstance(v, (str, bytes, os.PathLike)) or not isinstance(v, Iterable)
    paths: list[Any] = [v] if one else list(v)  # type: ignore[call-overload]
    if not paths or not all(isinstance(p, (str, os.PathLike)) for p in paths):
        raise SpecError(f"{name} is {v!r}: it must be a path or a list of paths")
    return paths


def plain(name: str, v: Any) -> Any:
    """Returns an argument as JSON has it, so that the engine can check it.

    Arrays and iterables become lists, paths strings, NaN and infinities "nan", "inf" and "-inf".
    """
    if hasattr(v, "tolist") and not isinstance(v, type):  # arrays and scalars of numpy and torch
        v = v.tolist()
    if isinstance(v, os.PathLike):
        return os.fspath(v)
    if isinstance(v, float) and not math.isfinite(v):
        return str(v)
    if v is None or isinstance(v, (bool, int, float, str)):
        return v
    if isinstance(v, Mapping):
        return {str(k): plain(name, x) for k, x in v.items()}
    if isinstance(v, Iterable) and not isinstance(v, (bytes, type)):
        return [plain(name, x) for x in v]
    if hasattr(v, "__index__") and not isinstance(v, type):
        return operator.index(v)
    if hasattr(v, "__float__") and not isinstance(v, type):  # of fractions and decimal
        return plain(name, float(v))
    raise SpecError(f"{name} is {v!r}: a spec cannot hold {type(v).__name__}")


def stated(name: str, v: Any) -> Any:
    """Is `plain` of what may not be None, which the engine would take for the default."""
    if v is None:
        raise SpecError(f"{name} is None: it must have a value")
    return plain(name, v)


def above_zero(name: str, v: Any) -> Any:
    """Is `plain` of what may not be 0, which stands for the default in a spec."""
    v = plain(name, v)
    if isinstance(v, (int, float)) and v == 0 and not isinstance(v, bool):
        raise SpecError(f"{name} is {v!r}: it must be above 0")
    return v


def members(o: Any, *others: str) -> dict[str, Any]:
    """Returns the members of a dataclass that are neither None nor False, but for `others`."""
    out = {}
    for f in fields(o):
        v = getattr(o, f.name)
        if v is None or v is False or f.name in others:
            continue
        may_be_0 = f.name in ("fill", "pad", "seed") or f.default is False
        out[f.name] = plain(f.name, v) if may_be_0 else above_zero(f.name, v)
    return out


def instance(name: str, v: Any, kind: type) -> TypeGuard[Any]:
    """Reports whether an argument is an object of one of the package's classes, and not None."""
    if v is None or isinstance(v, kind):
        return v is not None
    raise SpecError(f"{name} is {v!r}: it must be a chaski.{kind.__name__}")


_PAIRS = {
    "size": "the side of a square, or (height, width) in pixels",
    "window": "the side of a square, (height, width) in pixels, or a sampler like chaski.Grid",
    "scale": "(least, greatest)",
}


def pair(name: str, v: Any, least: int = 1) -> list[Any]:
    """Returns (height, width) of a size, or of the side of a square; of a scale its two bounds."""
    sides, kinds = plain(name, v), (int, float) if name == "scale" else (int,)
    if type(sides) is int and name != "scale":
        sides = [sides, sides]
    # type, as a bool is an int too
    if not isinstance(sides, list) or len(sides) != 2 or any(type(n) not in kinds for n in sides):
        raise SpecError(f"{name} is {v!r}: it must be {_PAIRS.get(name, _PAIRS['size'])}")
    if least and 0 in sides:
        raise SpecError(f"{name} is {v!r}: it must be above 0")
    return sides


def count(name: str, v: Any, least: int = 1) -> int:
    """Returns a whole number."""
    try:
        n = operator.index(v)
    except TypeError:
        n = least - 1
    if n < least or isinstance(v, bool):
        raise SpecError(f"{name} is {v!r}: it must be an int of at least {least}")
    return n


def indices(name: str, v: object) -> list[int]:
    """Returns indices from 0: of an array, a list or another iterable of whole numbers."""
    several = None
    if not isinstance(v, (str, bytes, Mapping)):
        with contextlib.suppress(TypeError):  # also of arrays without an axis, which are Iterable
            several = iter(v)  # type: ignore[call-overload]
    if several is None:
        raise SpecError(f"{name} is {v!r}: it must be a list of indices from 0")
    picked = [count(f"{name}: an index", i, 0) for i in several]
    if not picked:
        raise SpecError(f"{name} is empty")
    return picked


def positive(name: str, v: Any) -> float:
    """Returns a finite number above 0."""
    try:
        f = math.nan if isinstance(v, (str, bytes)) else float(v)
    except (TypeError, ValueError, OverflowError):
        f = math.nan
    if not 0 < f < math.inf:
        raise SpecError(f"{name} is {v!r}: it must be a positive number")
    return f


def _names(what: str, v: Any) -> Mapping[str, Any]:
    if not isinstance(v, Mapping) or not v:
        raise SpecError(f"{what} is {v!r}: it must be a dict by name")
    return v


def timestamp_json(t: Timestamp) -> list[int]:
    """Returns the first and last millisecond since 1970 of a time at which an array is opened."""
    first, last = t if isinstance(t, (tuple, list)) and len(t) == 2 else (0, t)
    return [_milliseconds(first), _milliseconds(last)]


def _milliseconds(t: Any) -> int:
    if isinstance(t, dt.datetime) and t.tzinfo is not None:
        return (t - dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc)) // dt.timedelta(milliseconds=1)
    if isinstance(t, bool) or isinstance(t, dt.datetime) or not hasattr(t, "__index__"):
        raise SpecError(
            f"timestamp is {t!r}: it must be milliseconds since 1970 or a datetime with a time zone"
        )
    return operator.index(t)


_SIDES = {
    "size": ("height", "width"),
    "stride": ("stride_y", "stride_x"),
    "tile": ("tile_height", "tile_width"),
    "scale": ("scale_min", "scale_max"),
}


class _Sampler:
    """What the kinds of windows share."""

    _kind: ClassVar[str]

    def to_json(self) -> dict[str, Any]:
        """Returns what the spec's JSON holds.

        Raises:
            SpecError: a member is wrong; the engine checks what this does not.
        """
        out: dict[str, Any] = {"kind": self._kind}
        for name, v in members(self, "overlap").items():
            if name in _SIDES:
                out |= zip(_SIDES[name], pair(name, v), strict=True)
            else:
                out["per_asset" if name == "visits" else name] = v
        return out


@dataclass(frozen=True)
class WholeChip(_Sampler):
    """The whole asset: one sample each.

    Attributes:
        size: (height, width) of the batch's tensors; assets that are smaller are padded, if the
            field pads. Default: the size of the first asset.
    """

    _kind = "chip"
    size: Size | None = None


@dataclass(frozen=True)
class RandomWindow(_Sampler):
    """Windows at corners that are all as likely.

    Attributes:
        size: (height, width) in pixels of the first raster field, or the side of a square.
        per_asset: samples that an epoch takes from each asset.
    """

    _kind = "random_window"
    size: Size
    per_asset: int = 1


@dataclass(frozen=True)
class Grid(_Sampler):
    """Windows side by side, or overlapping, which together cover every asset.

    Attributes:
        size: (height, width) in pixels of the first raster field, or the side of a square.
        stride: steps from window to window. Default: `size` less `overlap`.
        overlap: pixels that neighbours share, in place of `stride`.
        pad: the last windows pass the edge (fields must pad); otherwise they are moved inside.
    """

    _kind = "grid"
    size: Size
    stride: Size | None = None
    overlap: Size = 0
    pad: bool = False

    def to_json(self) -> dict[str, Any]:
        """Returns what the spec's JSON holds.

        Raises:
            SpecError: both stride and overlap are given, or the overlap is negative or as large as
                the window.
        """
        size, overlap = pair("size", self.size), pair("overlap", self.overlap, least=0)
        if self.stride is not None and any(overlap):
            raise SpecError("a Grid has a stride or an overlap, not both")
        steps = [side - n for side, n in zip(size, overlap, strict=True)]
        if min(overlap) < 0 or min(steps) < 1:
            raise SpecError(
                f"overlap is {self.overlap!r}: it must be from 0 to less than the size, "
                f"{self.size}; with gaps between windows, give a stride"
            )
        return {"stride_y": steps[0], "stride_x": steps[1], **super().to_json()}

    def count(self, height: int, width: int) -> int:
        """Returns the number of windows in a raster of height by width pixels."""
        g = self.to_json()
        n = 1
        for size, side, stride in (
            (height, g["height"], g["stride_y"]),
            (width, g["width"], g["stride_x"]),
        ):
            along = -(-max(size - side, 0) // stride) + 1
            if self.pad:  # a stride above the window's side may begin the last one past the edge
                along = min(along, -(-size // stride))
            n *= max(along, 1)
        return n


@dataclass(frozen=True)
class ResizedWindow(_Sampler):
    """Windows of random area and aspect, resampled to one size: bilinearly to floats, else nearest.

    Attributes:
        size: (height, width) of the result, or the side of a square.
        scale: least and greatest area, relative to `size` or, with `of_asset`, to the asset.
            Default: (0.5, 2), and (0.08, 1) of the asset.
        ratio: the aspect is between 1 / ratio and ratio times that of `size`.
        of_asset: `scale` is relative to the asset.
        per_asset: samples that an epoch takes from each asset.
    """

    _kind = "resized_window"
    size: Size
    scale: tuple[float, float] | None = None
    ratio: float = 4 / 3
    of_asset: bool = False
    per_asset: int = 1


@dataclass(frozen=True)
class WeightedWindow(_Sampler):
    """Windows about pixels that count: valid ones, or those of a class of a mask.

    Attributes:
        size: (height, width) in pixels of the first raster field, or the side of a square.
        weights: file that `chaski stats --sampling` wrote.
        per_asset: samples that an epoch takes from each asset.
    """

    _kind = "weighted_window"
    size: Size
    weights: Path
    per_asset: int = 1


@dataclass(frozen=True)
class TileWindow(_Sampler):
    """Random windows in an order in which a tile is decoded once for many of them.

    A visit of a tile takes `per_visit` windows whose corners lie in it; the windows of a pool of
    visits are shuffled together. Every corner is as likely as with `RandomWindow`.

    Attributes:
        size: (height, width) in pixels of the first raster field, or the side of a square.
        per_visit: windows that a visit takes.
        visits: of each asset in an epoch. Default: as many as it has tiles.
        tile: (height, width) of a tile. Default: the chunks of the first asset.
        pool: visits that are shuffled together. Default: as many as `pool_bytes` has room for.
        pool_bytes: memory for the decoded tiles of a pool. Default: 64 MiB.
    """

    _kind = "tile_window"
    size: Size
    per_visit: int = 16
    visits: int | None = None
    tile: Size | None = None
    pool: int | None = None
    pool_bytes: int | None = None


Sampler: TypeAlias = WholeChip | RandomWindow | Grid | ResizedWindow | WeightedWindow | TileWindow


@dataclass(frozen=True)
class Split:
    """Gives every row to one of several parts, the same in every run; make it with a `by_` method.

    A row that is added or taken away later moves no other.
    """

    by: str
    parts: Mapping[str, Any]
    column: str | None = None
    seed: int = 0
    size: float | None = None
    columns: Sequence[str] | None = None
    crs: str | None = None

    @staticmethod
    def by_hash(shares: Mapping[str, float], seed: int = 0) -> Split:
        """Splits by the samples' ids: their paths, as the dataset has them.

        Args:
            shares: weights of the parts by name, such as {"train": 0.8, "val": 0.2}.
            seed: gives another split.
        """
        return Split("hash", shares, seed=seed)

    @staticmethod
    def by_column(column: str, shares: Mapping[str, float], seed: int = 0) -> Split:
        """Splits by the value of a column: rows with the same scene or site stay together.

        Args:
            column: of the table.
            shares: weights of the parts by name.
            seed: gives another split.
        """
        return Split("column", shares, column=column, seed=seed)

    @staticmethod
    def by_cell(
        size: float,
        shares: Mapping[str, float],
        seed: int = 0,
        columns: Sequence[str] = ("minx", "miny", "maxx", "maxy"),
    ) -> Split:
        """Splits by place: all rows whose centre lies in one square cell stay together.

        A place is what the bounds say, each in the CRS of its file: where a dataset has several,
        see `by_lonlat`.

        Args:
            size: side of a cell, in units of the bounds (degrees or metres).
            shares: weights of the parts by name.
            seed: gives another split.
            columns: least x, least y, greatest x, greatest y; catalogs have the default.
        """
        return Split("cell", shares, seed=seed, size=size, columns=list(columns))

    @staticmethod
    def by_lonlat(
        degrees: float,
        shares: Mapping[str, float],
        seed: int = 0,
        columns: Sequence[str] = ("minx", "miny", "maxx", "maxy"),
        crs: str = "epsg",
    ) -> Split:
        """Splits by place in longitude and latitude, whatever the CRSs of the files.

        All rows whose centre lies in one cell stay together, also across the seams of UTM's zones.
        A row without a CRS is in no part; one with a CRS that is none of longitude and latitude,
        UTM or web Mercator is an error. Of a container without such columns, the centroids of its
        samples count (stac:centroid, istac:centroid).

        Args:
            degrees: side of a cell.
            shares: weights of the parts by name.
            seed: gives another split.
            columns: least x, least y, greatest x, greatest y; catalogs have the default.
            crs: column of the EPSG codes of these; catalogs have the default.
        """
        return Split("cell", shares, seed=seed, size=degrees, columns=list(columns), crs=crs)

    @staticmethod
    def given(column: str | None = None) -> Split:
        """Splits as a column says.

        Args:
            column: of the table. Default: "split", or what containers call it.
        """
        return Split("given", {}, column=column)

    @staticmethod
    def by_date(column: str, ranges: Mapping[str, tuple[Any, Any]]) -> Split:
        """Splits by time.

        Args:
            column: dates, instants, numbers, or texts in the order of time, such as ISO 8601 dates.
            ranges: (from, to) of the parts by name; `to` is not in the part, None is no bound.
        """
        return Split("date", ranges, column=column)

    def to_json(self) -> dict[str, Any]:
        """Returns what the spec's JSON holds.

        Raises:
            SpecError: a part has no share or range; the engine checks the rest.
        """
        out = members(self, "parts")
        if self.crs is not None:
            out["lonlat"] = True
        if self.by == "date":
            named = _names("ranges", self.parts)
            out["ranges"] = [_range(name, bounds) for name, bounds in named.items()]
        elif self.by != "given":
            shares = _names("shares", self.parts).items()
            out["shares"] = [
                {"name": n, "weight": above_zero(f"share {n!r}", w)} for n, w in shares
            ]
        return out


def _range(name: str, bounds: Any) -> dict[str, Any]:
    """Returns a named range of a split as JSON has it."""
    if isinstance(bounds, (list, tuple)) and len(bounds) == 2:
        sides = zip(("from", "to"), map(_value, bounds), strict=True)
        return {"name": name} | {k: v for k, v in sides if v is not None}
    raise SpecError(f"range {name!r} is {bounds!r}: it must be (from, to)")


def _value(v: Any) -> Any:
    """Returns a number, string or date to compare a column with, as JSON has it."""
    if isinstance(v, np.datetime64):
        return str(v)
    if hasattr(v, "isoformat"):
        return v.isoformat()
    v = v.item() if isinstance(v, np.generic) else v
    if isinstance(v, float) and not math.isfinite(v):
        raise SpecError(f"{v!r} is not a number to compare with")
    return int(v) if isinstance(v, bool) else plain("value", v)  # tables hold 0 and 1


@dataclass(frozen=True)
class Strata:
    """Draws from the rows of every value of a column in fixed proportions.

    Attributes:
        column: of the table.
        temperature: None gives every value the same share (class-balanced); 1 its share of the
            samples, and what is between evens them out.
        until: "shortest" or "longest" of the values' rows, or samples of an epoch. Default: as
            many as all rows have.
        per_batch: every global batch has the same number of rows of each value (which temperature
            says; largest remainders), and epochs a whole number of batches. Otherwise shares are
            exact in 10,000 samples in a row.
    """

    column: str
    temperature: float | None = None
    until: Until | None = None
    per_batch: bool = False

    def to_json(self) -> dict[str, Any]:
        """Returns what the spec's JSON holds."""
        return members(self, "until") | until_json(self.until)


def until_json(until: Until | None) -> dict[str, Any]:
    """Returns the members of a mixture that say when an epoch ends."""
    if until is None or isinstance(until, str):
        return {} if until is None else {"until": until}
    return {"until": "length", "length": count("until", until)}


@dataclass(frozen=True)
class Time:
    """Makes sequences of rows the samples: an axis t in layouts such as "n t b y x".

    Attributes:
        key: column whose value the rows of a series share: a site, a tile.
        order: column that orders them: numbers, or texts such as ISO 8601 dates.
        length: steps of a sample.
        stride: steps from the begin of a sample to that of the next. Default: `length`.
        cut: leave out the end of a series that does not fill a sample, instead of padding it.
        validity: name of the uint8 tensor (n t) that is 1 for steps that exist.
    """

    key: str
    order: str
    length: int
    stride: int | None = None
    cut: bool = False
    validity: str = "steps"

    def to_json(self) -> dict[str, Any]:
        """Returns what the spec's JSON holds."""
        return members(self)


@dataclass(frozen=True)
class Rows:
    """Which rows of a source are samples, and how many of them make an epoch.

    Attributes:
        where: conditions (column, operator, value) that rows have to meet, such as
            ("cloud", "<", 10); operators are == != < <= > >= and "in" with a list. Of a container
            also SQL, as a string: "cloud < 10 AND country = 'PE'".
        bbox: (west, south, east, north) in degrees of longitude and latitude: samples of a
            container or table whose geometry meets it, or rows of a catalog whose raster does,
            whatever its CRS. A west greater than the east crosses the antimeridian. A raster
            without a known CRS is an error.
        bbox_crs: CRS of `bbox` in place of longitude and latitude: an EPSG code, "EPSG:32633", or
            an object with `to_epsg()`.
        datetime: "A/B": samples of a container that begin in a range of dates or timestamps.
        split: gives rows to named parts; see `Split`. A string names the part that counts, where a
            column has the part of each row.
        use: the part of the split that counts.
        strata: draws from the rows of every value of a column in fixed proportions: a `Strata`, or
            the name of the column to balance.
        time: makes sequences of rows the samples; see `Time`.
        take: samples of an epoch, in place of as many as there are; more is fine. The next epoch
            goes on where this one ended: every sample comes once before any comes again. Not for a
            `Source`.
        steps_per_epoch: the same in steps of `batch_size` samples.
        missing: "error" refuses a dataset in which a field with a pattern lacks a file that the id
            of another field's file asks for; "drop" leaves such samples out, and logs how many.
        base_path: directory of the containers of a catalog (TACOCAT), where they are not beside it.
        dims: what the dimensions of an array are, in their order: "n b y x", of which n and b may
            be missing. Default: their names.
        timestamp: opens an array as it was then, or with what was written from the first to the
            second of two times: milliseconds since 1970, or datetimes with a time zone.
    """

    where: Where = ()
    bbox: BBox | None = None
    bbox_crs: Crs | None = None
    datetime: str | None = None
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

    def changed(self) -> list[str]:
        """Returns the names of the members that differ from their defaults."""
        default = Rows()
        pairs = ((f.name, getattr(self, f.name), getattr(default, f.name)) for f in fields(self))
        return [name for name, v, d in pairs if v is not d and not (name == "where" and not v)]

    def to_json(self) -> dict[str, Any]:
        """Returns what the spec's JSON holds, without the length of an epoch and `base_path`.

        Raises:
            SpecError: a member is wrong; the engine checks what this does not.
        """
        where = [_condition(c) for c in conditions(self.where)]
        if self.bbox is not None:
            where.append(bbox_json(self.bbox, self.bbox_crs))
        elif self.bbox_crs is not None:
            raise SpecError(f"bbox_crs is {self.bbox_crs!r}, but there is no bbox")
        if self.datetime is not None:
            where.append({"datetime": given(self.datetime, "datetime")})
        out = members(self, *(f.name for f in fields(self) if f.name not in ("use", "dims")))
        strata, split, time = self.strata, self.split, self.time
        if isinstance(strata, str):
            strata = Strata(strata)
        if isinstance(split, str):
            if self.use is not None:
                raise SpecError(f"use is {self.use!r}, but split={split!r} already names the part")
            out["use"], split = given(split, "split"), Split.given()
        parts: Any = (("split", split, Split), ("strata", strata, Strata), ("time", time, Time))
        for name, v, kind in parts:
            if instance(name, v, kind):
                out[name] = v.to_json()
        if where:
            out["where"] = where
        if self.missing != "error":
            out["missing"] = stated("missing", self.missing)
        if self.timestamp is not None:
            out["timestamp"] = timestamp_json(self.timestamp)
        return out


def _takes_old_names(cls: type[T]) -> type[T]:
    """Lets a dataclass take the arguments of earlier versions, with a DeprecationWarning."""
    init: Callable[..., None] = cls.__init__
    names = [f.name for f in fields(cls)]  # type: ignore[arg-type]

    @functools.wraps(init)
    def renewed_init(self: T, *args: Any, **kwargs: Any) -> None:
        if not kwargs.keys() <= set(names):
            from chaski._options import renewed  # which needs this module

            kwargs = renewed(cls.__name__, names, kwargs, stacklevel=3)
        init(self, *args, **kwargs)

    cls.__init__ = renewed_init  # type: ignore[assignment]
    return cls


@_takes_old_names
@dataclass(frozen=True)
class Source:
    """One of the datasets of a `Mixture`.

    Attributes:
        source: as `load` takes it.
        weight: its share, relative to that of the others.
        fields: how its fields differ from those of `load` with the same name: where they are found,
            `bands`, `normalize`, `fill`, `pad`, `points`, `vector`.
        window: in place of that of `load`; windows must come out at the same size.
        rows: which rows of it are samples.
    """

    source: Path | Sequence[Path] | Columns
    weight: float = 1.0
    fields: Mapping[str, FieldLike] | None = None
    window: Size | Sampler | None = None
    rows: Rows = field(default_factory=Rows)


@dataclass(frozen=True)
class Mixture:
    """Draws samples from several sources in fixed proportions: in place of a source of `load`.

    Batches have a tensor "source": the number of a row's dataset, from 0 in the order of the
    sources (nested ones in their places), and -1 for padding.

    Attributes:
        sources: by name: a `Source`, what `Source.source` is, or a `Mixture` again.
        temperature: None draws by the weights; 1 in proportion to the samples of the sources,
            more evenly above.
        until: an epoch ends when the "shortest" source would begin again, when the "longest" has
            given every sample, or after a number of samples.
        weight: its share in a mixture around it.
        per_batch: every global batch has the same number of rows of each source (by the weights;
            largest remainders), and epochs a whole number of batches. Otherwise shares are exact in
            10,000 samples in a row. Of a mixture, or `Strata`, in a mixture both need it.
    """

    sources: Mapping[str, Source | Mixture | Path | Sequence[Path] | Columns]
    temperature: float | None = None
    until: Until = "shortest"
    weight: float = field(default=1.0, kw_only=True)
    per_batch: bool = field(default=False, kw_only=True)


SourceLike: TypeAlias = "Path | Sequence[Path] | Columns | Mixture"


def check_source(source: object) -> None:
    """Checks that a source is a path, a sequence of paths, or a mixture of sources by name."""
    if isinstance(source, Mixture):
        if not source.sources or not isinstance(source.sources, Mapping):
            raise SpecError(f"sources is {source.sources!r}: it must be a dict of sources by name")
        return
    if isinstance(source, Mapping):
        raise SpecError(
            "source is a dict, whose values are not columns; several sources are a Mixture"
        )
    if isinstance(source, Source):
        raise SpecError("a Source is part of a Mixture; give its members to load")
    if not isinstance(source, (os.PathLike, Sequence)):  # an iterator would be used up here
        raise SpecError(f"source is {source!r}: it must be a path or a list of paths")
    listed("source", source)


def absolute_paths(source: Path | Sequence[Path] | Columns) -> list[str]:
    """Returns the paths of a source that is no mixture, each as `absolute` says."""
    check_source(source)
    return [absolute(p) for p in listed("source", source)]


def place_json(source: Path | Sequence[Path] | Columns, base_path: Path | None) -> dict[str, Any]:
    """Returns the members that say where a source lies: one path, or several containers."""
    check_source(source)
    paths = listed("source", source)
    out: dict[str, Any] = {"source": os.fspath(paths[0])}
    if len(paths) > 1:
        out["parts"] = [os.fspath(p) for p in paths[1:]]
    if base_path is not None:
        out["base_path"] = plain("base_path", base_path)
    return out


def conditions(where: Where) -> Sequence[Condition]:
    """Returns the list that `where` is, or stands for."""
    if isinstance(where, str):
        return [where]
    if isinstance(where, Mapping) or not hasattr(where, "__iter__"):
        raise SpecError(f"where is {where!r}: it must be SQL or a list of conditions")
    listing = list(where)
    if len(listing) == 3 and listing[1] in _OPERATORS:
        raise SpecError(f"where is {where!r}: a condition goes into a list, [{where!r}]")
    return listing


_OPERATORS = ("==", "=", "!=", "<>", "<", "<=", ">", ">=", "in")


def _condition(c: Condition) -> dict[str, Any]:
    """Returns a condition's JSON."""
    if isinstance(c, str):
        return {"sql": given(c, "where")}
    if isinstance(c, Mapping):
        return dict(c)
    try:
        column, op, value = c
    except (TypeError, ValueError):
        raise SpecError(
            f"where has {c!r}: a condition is (column, operator, value) or SQL"
        ) from None
    several = isinstance(value, (list, tuple, set, frozenset))
    value = [_value(v) for v in value] if several else _value(value)
    return {"column": plain("column", column), "op": plain("operator", op), "value": value}


def given(text: Any, name: str) -> Any:
    """Is `plain` of a text that chooses; an empty one is a variable that was not set."""
    if isinstance(text, str) and not text.strip():
        raise SpecError(f"{name} is empty; leave it out for all samples")
    return plain(name, text)


def bbox_json(bbox: BBox, crs: Crs | None = None) -> dict[str, Any]:
    """Returns the members of a condition on place: (west, south, east, north) and their CRS."""
    sides = plain("bbox", bbox)
    if not isinstance(sides, list) or not all(isinstance(v, (int, float)) for v in sides):
        raise SpecError(f"bbox is {bbox!r}: its sides must be finite numbers")
    out: dict[str, Any] = {"bbox": sides}
    if crs is not None:
        out["bbox_crs"] = crs_code("bbox_crs", crs)
    return out


def crs_code(name: str, crs: Crs) -> int:
    """Returns the EPSG code of a CRS, or the one that ESRI gave it."""
    code: Any = crs
    if isinstance(crs, str):
        prefix, _, digits = crs.partition(":")
        code = int(digits) if prefix.upper() in ("EPSG", "ESRI") and digits.isdigit() else None
    elif hasattr(crs, "to_epsg"):
        code = crs.to_epsg()
    if isinstance(code, bool) or not hasattr(code, "__index__") or not 0 < code < 1 << 31:
        raise SpecError(f"{name} is {crs!r}, which has no EPSG code, such as 32633 or 'EPSG:32633'")
    return operator.index(code)
