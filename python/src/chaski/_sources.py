"""What the classes of rows and windows do beside holding members, which are generated."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from chaski._plain import Size, count, members, plain, stated
from chaski.errors import SpecError


class GridJson:
    """What a `Grid` does."""

    size: Size
    stride: Size | None
    overlap: Size
    pad: bool

    def sides(self) -> list[int]:
        """Returns height, width, stride_y and stride_x.

        Raises:
            SpecError: the members make no grid; no engine is asked here that would say so.
        """
        size, overlap = _pair("size", self.size), _pair("overlap", self.overlap, least=0)
        if self.stride is not None:
            if any(overlap):
                raise SpecError(
                    f"stride is {self.stride!r} and overlap is {self.overlap!r}: a Grid has one"
                )
            return size + _pair("stride", self.stride)
        stride = [side - n for side, n in zip(size, overlap, strict=True)]
        if min(stride) < 1:
            raise SpecError(
                f"overlap is {self.overlap!r}: it must be less than size, which is {self.size!r}"
            )
        return size + stride

    def count(self, height: int, width: int) -> int:
        """Returns the number of windows in a raster of height by width pixels."""
        h, w, stride_y, stride_x = self.sides()
        n = 1
        for size, side, stride in ((height, h, stride_y), (width, w, stride_x)):
            along = -(-max(size - side, 0) // stride) + 1
            if self.pad:  # a stride above the window's side may begin the last one past the edge
                along = min(along, -(-size // stride))
            n *= max(along, 1)
        return n


def _pair(name: str, v: Any, least: int = 1) -> list[int]:
    """Returns (height, width) of a size, or of the side of a square."""
    sides = plain(name, v)
    sides = sides if isinstance(sides, list) else [sides, sides]
    if len(sides) != 2:
        raise SpecError(f"{name} is {v!r}: it must be the side of a square, or (height, width)")
    return [count(name, n, least) for n in sides]


_BOUNDS = ("minx", "miny", "maxx", "maxy")


@dataclass(frozen=True)
class Split:
    """Gives every row to one of several parts, the same in every run; make it with a `by_` method.

    A row that is added or taken away later moves no other. What several methods take:

    Attributes:
        parts: the parts by name. As `shares` their weights, such as {"train": 0.8, "val": 0.2}; as
            `ranges` (from, to), where `to` is not in the part and None is no bound.
        column: of the table, whose values decide.
        seed: gives another split.
        size: the side of a cell: in units of the bounds (degrees or metres), or as `degrees`.
        columns: least x, least y, greatest x, greatest y; catalogs have the default.
        crs: column of the EPSG codes of these; catalogs have the default.
        margin_m: least distance between windows of two parts, in metres of the map.
    """

    by: str
    parts: Mapping[str, Any]
    column: str | None = None
    seed: int = 0
    size: float | None = None
    columns: Sequence[str] | None = None
    crs: str | None = None
    margin_m: float | None = None

    @staticmethod
    def by_hash(shares: Mapping[str, float], seed: int = 0) -> Split:
        """Splits by the samples' ids: their paths, as the dataset has them."""
        return Split("hash", shares, seed=seed)

    @staticmethod
    def by_column(column: str, shares: Mapping[str, float], seed: int = 0) -> Split:
        """Splits by the value of a column: rows with the same scene or site stay together."""
        return Split("column", shares, column=column, seed=seed)

    @staticmethod
    def by_cell(
        size: float,
        shares: Mapping[str, float],
        seed: int = 0,
        columns: Sequence[str] = _BOUNDS,
    ) -> Split:
        """Splits by place: all rows whose centre lies in one square cell stay together.

        A place is what the bounds say, each in the CRS of its file: where a dataset has several,
        see `by_lonlat`.
        """
        return Split("cell", shares, seed=seed, size=size, columns=list(columns))

    @staticmethod
    def by_lonlat(
        degrees: float,
        shares: Mapping[str, float],
        seed: int = 0,
        columns: Sequence[str] = _BOUNDS,
        crs: str = "epsg",
    ) -> Split:
        """Splits by place in longitude and latitude, whatever the CRSs of the files.

        All rows whose centre lies in one cell stay together, also across the seams of UTM's zones.
        A row without a CRS is in no part; one with a CRS other than longitude and latitude,
        UTM or web Mercator is an error. Of a container without such columns, the centroids of its
        samples count (stac:centroid, istac:centroid).
        """
        return Split("cell", shares, seed=seed, size=degrees, columns=list(columns), crs=crs)

    @staticmethod
    def by_place(
        degrees: float, shares: Mapping[str, float], margin_m: float = 0, seed: int = 0
    ) -> Split:
        """Splits the windows of a `GeoWindow` by place: those of two parts never overlap.

        The ground is divided into the cells of `by_lonlat`, larger than a window; shares count
        cells. A window is in a part if all of it lies in cells of the part; windows across two
        parts are in none. Scenes are not divided.
        """
        return Split("place", shares, seed=seed, size=degrees, margin_m=margin_m or None)

    @staticmethod
    def given(column: str | None = None) -> Split:
        """Splits as a column says; default: "split", or what containers call it."""
        return Split("given", {}, column=column)

    @staticmethod
    def by_date(column: str, ranges: Mapping[str, tuple[Any, Any]]) -> Split:
        """Splits by time.

        The column has dates, timestamps, numbers, or strings that sort by time, as ISO 8601 does.
        """
        return Split("date", ranges, column=column)

    def to_json(self) -> dict[str, Any]:
        """Returns what the spec's JSON holds."""
        out = members(self, "parts")
        if self.by != "given":
            out["ranges" if self.by == "date" else "shares"] = plain("parts", self.parts)
        return out


def _is_empty_list(v: Any) -> bool:
    return isinstance(v, list) and not v  # an array has no truth value


class RowsJson:
    """What `Rows` do."""

    def changed(self) -> list[str]:
        """Returns the names of the members that differ from their defaults."""
        rows: Any = self
        default = type(rows)()
        pairs = ((f.name, getattr(rows, f.name), getattr(default, f.name)) for f in fields(rows))
        return [n for n, v, d in pairs if v is not d and not (n == "where" and _is_empty_list(v))]

    def to_json(self) -> dict[str, Any]:
        """Returns what the spec's JSON holds, without the length of an epoch and `base_path`."""
        names = set(self.changed()) - {"take", "steps_per_epoch", "base_path"}
        return {name: stated(name, getattr(self, name)) for name in sorted(names)}


class Scenes:
    """A dataset of scenes and the fields that it has, for windows on the ground.

    `a & b` has windows where both have ground, with the fields of both: images of one satellite and
    labels that were made elsewhere, for example. `a | b` has windows where either has ground; a
    field is missing where its own dataset has none. A field of one name and definition in both is
    then filled from both, `a` first. All lie in any CRS and resolution.

        both = chaski.Scenes("images", {"image": chaski.Field(dtype="float32")}) & chaski.Scenes(
            "crops.parquet", {"label": chaski.Field(column="crops", dtype="int64")}
        )
        chaski.load(both, batch_size=8, window=chaski.GeoWindow(2560, 10))

    Args:
        source: a folder, table, catalog or container of scenes, as for `load`.
        fields: its fields by name, as for `load`.
    """

    def __init__(self, source: str | os.PathLike[str], fields: Mapping[str, Any]) -> None:
        if not isinstance(fields, Mapping) or not fields:
            raise SpecError(f"fields is {fields!r}: it must be a dict of at least one field")
        self._parts: tuple[tuple[str, Mapping[str, Any]], ...]
        self._parts = ((os.fspath(source), dict(fields)),)
        self._cover: str | None = None

    def __and__(self, other: Scenes) -> Scenes:
        """Returns the ground that both have."""
        return self._with(other, "all")

    def __or__(self, other: Scenes) -> Scenes:
        """Returns the ground that either has."""
        return self._with(other, "any")

    def _with(self, other: Scenes, cover: str) -> Scenes:
        if not isinstance(other, Scenes):
            return NotImplemented
        if {self._cover, other._cover} - {None, cover}:
            raise SpecError("scenes are joined by & or by |, not by both")
        out = Scenes.__new__(Scenes)
        out._parts, out._cover = self._parts + other._parts, cover
        return out

    def __repr__(self) -> str:
        """Returns the sources and the operator between them."""
        return {None: "", "all": " & ", "any": " | "}[self._cover].join(
            f"chaski.Scenes({source!r}, {sorted(fields)})" for source, fields in self._parts
        )

    def arguments(self, window: Any, build: Any) -> tuple[str, dict[str, Any], Any]:
        """Returns the source, the fields and the window that `load` takes in place of it.

        Args:
            window: the window that `load` was given.
            build: makes a `Field` of a name and what `load` takes for a field.
        """
        if getattr(window, "_kind", None) != "geo_window":
            raise SpecError(f"window is {window!r}: Scenes need a chaski.GeoWindow")
        first = self._parts[0][0]
        found: dict[str, Any] = {}
        for source, named in self._parts:
            path = "" if source == first else source
            for name, f in named.items():
                field = build(name, f)
                old = found.get(name, field)
                if replace(old, scenes=None) != field or name in found and self._cover != "any":
                    raise SpecError(
                        f"two datasets of scenes have a field {name!r}: only a | b may, if both "
                        "define it alike"
                    )
                before = () if name not in found else old.scenes or ("",)
                paths = list(dict.fromkeys([*before, path]))
                found[name] = replace(field, scenes=None if paths == [""] else paths)
        if self._cover is not None:
            window = replace(window, cover=self._cover)
        return first, found, window
