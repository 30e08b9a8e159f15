"""Ways to divide rows into parts, and scenes that are joined."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from chaski._calls import entry
from chaski._plain import members, plain
from chaski._records import SplitMembers
from chaski._secrets import without_secrets
from chaski.errors import SpecError

_BOUNDS = ("minx", "miny", "maxx", "maxy")


class Split(SplitMembers):  # noqa: D101 (it is that of the base)
    __doc__ = SplitMembers.__doc__

    @staticmethod
    @entry
    def by_hash(shares: Mapping[str, float], seed: int = 0, *, exact: bool = False) -> Split:
        """Splits by what the samples are called, whichever fields are read, and in which order.

        That is the {id} of patterns (or all their names, joined by "/"), the path in a directory or
        catalog, the id in a container or of a STAC item, and in other tables the path in the first
        column of files, or without one the number of the row.
        """
        return Split("hash", shares, seed=seed, exact=exact)

    @staticmethod
    @entry
    def by_column(
        column: str, shares: Mapping[str, float], seed: int = 0, *, exact: bool = False
    ) -> Split:
        """Splits by the value of a column: rows with the same scene or site stay together."""
        return Split("column", shares, column=column, seed=seed, exact=exact)

    @staticmethod
    @entry
    def by_cell(
        size: float,
        shares: Mapping[str, float],
        seed: int = 0,
        columns: Sequence[str] = _BOUNDS,
        *,
        exact: bool = False,
    ) -> Split:
        """Splits by place: all rows whose centre lies in one square cell stay together.

        A place is what the bounds say, each in the CRS of its file: where a dataset has several,
        see `by_lonlat`.
        """
        return Split("cell", shares, seed=seed, size=size, columns=list(columns), exact=exact)

    @staticmethod
    @entry
    def by_lonlat(
        degrees: float,
        shares: Mapping[str, float],
        seed: int = 0,
        columns: Sequence[str] = _BOUNDS,
        crs: str = "epsg",
        *,
        exact: bool = False,
    ) -> Split:
        """Splits by place in longitude and latitude, whatever the CRSs of the files.

        All rows whose centre lies in one cell stay together, also across the seams of UTM's zones.
        A row without a CRS is in no part; one with a CRS other than longitude and latitude,
        UTM or web Mercator is an error. Of a container without such columns, the centroids of its
        samples count (stac:centroid, istac:centroid).
        """
        return Split(
            "cell", shares, seed=seed, size=degrees, columns=list(columns), crs=crs, exact=exact
        )

    @staticmethod
    @entry
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
    @entry
    def given(column: str | None = None) -> Split:
        """Splits as a column says; default: "split", or what containers call it."""
        return Split("given", {}, column=column)

    @staticmethod
    @entry
    def by_date(column: str, ranges: Mapping[str, tuple[Any, Any]]) -> Split:
        """Splits by time.

        The column has dates, timestamps, numbers, or strings that sort by time, as ISO 8601 does.
        """
        return Split("date", ranges, column=column)

    def to_json(self) -> dict[str, Any]:
        """Returns what the spec's JSON holds."""
        if isinstance(self.parts, (int, float)):
            raise SpecError(
                f"shares is {self.parts!r}: it must be a dict of the parts by name, such as "
                '{"train": 0.8, "val": 0.2}'
            )
        out = members(self, "parts")
        if self.by != "given":
            out["ranges" if self.by == "date" else "shares"] = plain("parts", self.parts)
        return out


class Scenes:
    """A dataset of scenes and the fields that it has, for windows on the ground.

    `a & b` has windows where both have ground, with the fields of both: images of one satellite and
    labels that were made elsewhere, for example. `a | b` has windows where either has ground; a
    field is missing where its own dataset has none. A field of one name and definition in both is
    then filled from both, `a` first. All lie in any CRS and resolution.

        images = chaski.Scenes("images", {"image": chaski.Field(dtype="float32")})
        labels = {"label": chaski.Field(column="crops", dtype="int64")}
        both = images & chaski.Scenes("crops.parquet", labels)
        chaski.load(both, batch_size=8, window=chaski.GeoWindow(2560, 10))

    Args:
        source: a folder, table, catalog, container or list of scenes, or a table in memory, as for
            `load`.
        fields: its fields by name, as for `load`.
    """

    def __init__(self, source: Any, fields: Mapping[str, Any]) -> None:
        if not isinstance(fields, Mapping) or not fields:
            raise SpecError(f"fields is {fields!r}: it must be a dict of at least one field")
        self._parts: tuple[tuple[Any, Mapping[str, Any]], ...]
        if isinstance(source, os.PathLike):
            source = os.fspath(source)
        self._parts = ((source, dict(fields)),)
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
            f"chaski.Scenes({without_secrets(f'{source!r:.200}')}, {sorted(fields)})"
            for source, fields in self._parts
        )

    def arguments(self, window: Any, build: Any, place: Any) -> tuple[str, dict[str, Any], Any]:
        """Returns the source, the fields and the window that `load` takes in place of it.

        Args:
            window: the window that `load` was given.
            build: makes a `Field` of a name and what `load` takes for a field.
            place: makes a path of a source and its fields.
        """
        if getattr(window, "_kind", None) != "geo_window":
            raise SpecError(f"window is {window!r}: Scenes need a chaski.GeoWindow")
        places: dict[int, Any] = {}  # by the source, as a table is written once
        for source, named in self._parts:
            if (key := id(source)) not in places:
                places[key] = place(source, named)
            if not isinstance(places[key], str):
                raise SpecError(
                    f"source is {source!r:.100}: Scenes take a path, a list of rasters, or a table"
                )
        first = places[id(self._parts[0][0])]
        found: dict[str, Any] = {}
        for source, named in self._parts:
            path = "" if places[id(source)] == first else places[id(source)]
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
