"""What the classes of rows and windows do: they become JSON. Their members are generated."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar

import numpy as np

from chaski._plain import (
    Condition,
    Size,
    Until,
    above_zero,
    bbox_json,
    conditions,
    crs_code,
    given,
    instance,
    members,
    pair,
    plain,
    stated,
    timestamp_json,
    until_json,
)
from chaski.errors import SpecError

_SIDES = {
    "size": ("height", "width"),
    "stride": ("stride_y", "stride_x"),
    "tile": ("tile_height", "tile_width"),
    "scale": ("scale_min", "scale_max"),
}


class SamplerJson:
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


class GroundJson(SamplerJson):
    """What a `GeoWindow` does."""

    crs: Any
    roi: Any
    overviews: Any

    def to_json(self) -> dict[str, Any]:
        crs, roi, overviews = self.crs, self.roi, self.overviews
        if not isinstance(crs, str):
            crs = f"EPSG:{crs_code('crs', crs)}"
        if isinstance(overviews, bool):
            overviews = "all" if overviews else "none"
        if roi is not None and not isinstance(roi, (str, os.PathLike)):
            shape = getattr(roi, "__geo_interface__", roi)
            if not isinstance(shape, Mapping):
                raise SpecError(f"roi is {roi!r}: it must be a path, or GeoJSON as a dict")
            if shape.get("type") not in ("Feature", "FeatureCollection"):
                shape = {"type": "Feature", "properties": None, "geometry": shape}
            if shape["type"] == "Feature":
                shape = {"type": "FeatureCollection", "features": [shape]}
            roi = json.dumps(shape)
        worded: Any = replace(self, crs=crs, roi=roi, overviews=overviews)  # type: ignore[type-var]
        return SamplerJson.to_json(worded)


class GridJson(SamplerJson):
    """What a `Grid` does."""

    size: Size
    stride: Size | None
    overlap: Size
    pad: bool

    def to_json(self) -> dict[str, Any]:
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


def _names(what: str, v: Any) -> Mapping[str, Any]:
    if not isinstance(v, Mapping) or not v:
        raise SpecError(f"{what} is {v!r}: it must be a dict by name")
    return v


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


class StrataJson:
    """What `Strata` do."""

    until: Until | None

    def to_json(self) -> dict[str, Any]:
        """Returns what the spec's JSON holds."""
        return members(self, "until") | until_json(self.until)


class TimeJson:
    """What a `Time` does."""

    def to_json(self) -> dict[str, Any]:
        """Returns what the spec's JSON holds."""
        return members(self)


class RowsJson:
    """What `Rows` do."""

    def changed(self) -> list[str]:
        """Returns the names of the members that differ from their defaults."""
        rows: Any = self
        default = type(rows)()
        pairs = ((f.name, getattr(rows, f.name), getattr(default, f.name)) for f in fields(rows))
        return [name for name, v, d in pairs if v is not d and not (name == "where" and not v)]

    def to_json(self) -> dict[str, Any]:
        """Returns what the spec's JSON holds, without the length of an epoch and `base_path`.

        Raises:
            SpecError: a member is wrong; the engine checks what this does not.
        """
        rows: Any = self
        where = [_condition(c) for c in conditions(rows.where)]
        if rows.bbox is not None:
            where.append(bbox_json(rows.bbox, rows.bbox_crs))
        elif rows.bbox_crs is not None:
            raise SpecError(f"bbox_crs is {rows.bbox_crs!r}, but there is no bbox")
        if rows.datetime is not None:
            where.append({"datetime": given(rows.datetime, "datetime")})
        out = members(rows, *(f.name for f in fields(rows) if f.name not in ("use", "dims")))
        strata, split, time = rows.strata, rows.split, rows.time
        if isinstance(split, str):
            if rows.use is not None:
                raise SpecError(f"use is {rows.use!r}, but split={split!r} already names the part")
            out["use"], split = given(split, "split"), Split.given()
        parts: Any = (
            ("split", split, Split),
            ("strata", strata, StrataJson),
            ("time", time, TimeJson),
        )
        for name, v, kind in parts:
            if name == "strata" and isinstance(v, str):
                out[name] = {"column": v}
            elif instance(name, v, kind):
                out[name] = v.to_json()
        if where:
            out["where"] = where
        if rows.missing != "error":
            out["missing"] = stated("missing", rows.missing)
        if rows.timestamp is not None:
            out["timestamp"] = timestamp_json(rows.timestamp)
        return out


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
        if not isinstance(window, GroundJson):
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
            window = replace(window, cover=self._cover)  # type: ignore[type-var]
        return first, found, window
