"""TACO containers and Tortillas: samples by id, place, time and SQL, and loaders of them.

    import chaski

    ds = chaski.taco.load("data.tacozip")
    ds = ds.filter_bbox(-80, -20, -60, 0).sql("SELECT * FROM data WHERE cloud_cover < 10")
    ds.data                                   # a pyarrow.Table
    ds.read(0).read("s2/img.tif").array()     # pixels of the first sample's image
    fields = {"image": "s2/img.tif", "mask": "label.tif"}
    with ds.loader(fields=fields, batch_size=32) as loader:
        for batch in loader:
            ...

A dataset is a list of containers and of conditions; nothing is opened before something is asked of
it, and errors come then. The command `chaski sql` reads and filters; see `chaski help sql`. Tables
need pyarrow: without it they raise ImportError.
"""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime, time
from typing import TYPE_CHECKING, Any, TypeAlias

from chaski import _show
from chaski._arguments import Rows
from chaski._assets import Asset, Chunk, Entries, vsi_name
from chaski._calls import entry
from chaski._containers import Mode, needs_pyarrow
from chaski._containers import Source as _Source
from chaski._fields import FieldLike
from chaski._loader import Loader
from chaski._open import load as _load
from chaski._plain import (
    Crs,
    Path,
    Where,
    absolute,
    count,
    crs_code,
    instance,
    is_local,
    listed,
    optional,
    plain,
)
from chaski._records import Document
from chaski._secrets import without_secrets
from chaski.errors import NotFoundError, SpecError

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

__all__ = ["Asset", "Chunk", "Dataset", "Folder", "concat", "load"]

for _moved in (Asset, Chunk):
    _moved.__module__ = __name__  # pickles find them here

Instant: TypeAlias = "str | date | datetime"


@entry
def load(
    path: Path | Sequence[Path],
    base_path: Path | None = None,
    *,
    column_mode: Mode = "intersection",
    timeout: float | None = 600.0,
) -> Dataset:
    """Returns the samples of a container, or of several one after the other.

    Args:
        path: TACO (ZIP, folder, `__TACOCAT__`, `.tacocat`, `TACOLLECTION.json`, `.taco`), Tortilla;
            or several of one hierarchy.
        base_path: folder of the containers of a catalog, where they are not beside it.
        column_mode: what becomes of columns that not all of several containers have: they are left
            out, filled with null, or an error. A `UserWarning` of the first question that joins the
            columns says what was left out or filled, and what became strings.
        timeout: seconds for each question to the engine; None waits for as long as it takes.

    Raises:
        NotFoundError: a local container is not there.
    """
    paths = [absolute(p) for p in listed("path", path)]
    for p in paths:
        if is_local(p) and not os.path.lexists(p):
            raise NotFoundError(f"{p}: container: not found", kind="not found", file=p)
    base = None if base_path is None else absolute(base_path)
    return Dataset(_Source(paths, base, column_mode, timeout), ())


@entry
def concat(datasets: Sequence[Dataset], column_mode: Mode = "intersection") -> Dataset:
    """Returns the samples of several datasets, one after the other.

    Of those with conditions, these are the samples that they leave: in the order and with the
    columns of a `sql`, which must have the column of the ids. The tables level1, … and l0, l1, …
    have what lies below them.

    Args:
        datasets: two or more, of one hierarchy.
        column_mode: see `load`.
    """
    datasets = list(datasets) if isinstance(datasets, Iterable) else [datasets]
    for d in datasets:
        if not isinstance(d, Dataset):
            raise SpecError(f"concat has {d!r:.100}: it must have at least 2 datasets, no others")
    if len(datasets) < 2:
        raise SpecError(f"concat has {len(datasets)} datasets: it must have at least 2")
    first = datasets[0]._source
    several = [d._source.base_path for d in datasets]
    if any(v != several[0] for v in several):
        raise SpecError(f"concat of datasets of several base_paths: {several}")
    paths = [p for d in datasets for p in d._source.paths]
    joined = Dataset(replace(first, paths=paths, mode=column_mode), ())
    if not any(d._steps for d in datasets):
        return joined
    return joined._with({"concat": [d._group() for d in datasets]})


class _Node:
    """Samples that can be read by id, path or position."""

    _source: _Source
    _dataset: Dataset
    _path: str
    _level: int

    def _list(self) -> tuple[Entries, Sequence[int]]:
        """Returns the entries of the level, and which of them are here."""
        raise NotImplementedError

    @property
    def data(self) -> pyarrow.Table:
        """The rows of the samples."""
        raise NotImplementedError

    @property
    def data_raw(self) -> pyarrow.Table:
        """`data` with the columns "internal:gdal_vsi" and "internal:source_path".

        They are what GDAL opens a row's bytes by, and the container that holds them. The result of
        a `sql` must have the column of the ids.
        """
        table, (entries, here) = self.data, self._list()
        places = [entries.place(int(i)) for i in here]
        opened, sources = [vsi_name(*place) for place in places], [uri for uri, _, _ in places]
        for name, v in ("internal:gdal_vsi", opened), ("internal:source_path", sources):
            if name not in table.column_names:
                table = table.append_column(name, needs_pyarrow().array(v, "string"))
        return table

    @functools.cached_property
    def _positions(self) -> dict[str, int]:
        entries, here = self._list()
        return {entries.id(i): int(i) for i in reversed(here)}  # of equal ids the first

    @property
    def ids(self) -> list[str]:
        """The ids of the samples, in order."""
        entries, here = self._list()
        return [entries.id(i) for i in here]

    def __len__(self) -> int:
        return len(self._list()[1])

    def __iter__(self) -> Iterator[Asset | Folder]:
        entries, here = self._list()
        return (self._sample(entries, int(i)) for i in here)

    def __contains__(self, key: object) -> bool:
        """Reports whether there is a sample: by its id, or a path of ids, as `read` takes them."""
        if not isinstance(key, str):
            return any(s == key for s in self)
        self._list()  # containers that are not there are an error
        try:
            self.read(key)
        except NotFoundError:
            return False
        return True

    def __getitem__(self, key: int | str) -> Asset | Folder | Chunk:
        return self.read(key)

    def read(self, key: int | str) -> Asset | Folder | Chunk:
        """Returns a sample, or what lies below one.

        Args:
            key: position from 0 (negative ones count from the end); an id; or a path of ids, such
                as "roi_1/s2/img.tif"; or of a streaming TACO "img.tif::3", a chunk by its number.

        Returns:
            An `Asset` of a sample with bytes, a `Chunk` of a chunk, else a `Folder`.

        Raises:
            IndexError: there is no such position.
            NotFoundError: there is no such id; the message lists those that there are.
        """
        entries, here = self._list()
        if not isinstance(key, str):
            if isinstance(key, (bool, slice)) or not hasattr(key, "__index__"):
                raise TypeError(f"read takes a position, an id or a path of ids, not {key!r}")
            try:
                return self._sample(entries, int(here[key]))
            except IndexError:
                raise IndexError(f"sample {key} of {len(here)}") from None
        end = len(key)
        while end > 0:  # the longest id that fits, as ids of old formats may hold "/"
            i = self._positions.get(key[:end])
            if i is not None:
                found = self._sample(entries, i)
                if end == len(key):
                    return found
                if isinstance(found, Folder):
                    return found.read(key[end + 1 :])
            end = key.rfind("/", 0, end)
        sample, _, number = key.rpartition("::")
        if sample and number.isdecimal():
            of = self.read(sample)
            if isinstance(of, Asset):
                return Chunk(f"{of.id}::{number}", f"{of.path}::{number}", of.uri)
        some = ", ".join([entries.id(i) for i in here[:10]] + ["…"] * (len(here) > 10))
        where = f"{self._path}: " if self._path else ""
        raise NotFoundError(f"{where}no id {key!r}; there are {some or 'none'}")

    def _sample(self, entries: Entries, i: int) -> Asset | Folder:
        id = entries.id(i)
        path = f"{self._path}/{id}" if self._path else id
        if entries.folder[i]:
            return Folder(self, id, path, int(entries.row[i]))
        return Asset(id, path, *entries.place(i))


class Folder(_Node):
    """A sample that holds samples, with `id` and `path` as of an `Asset`."""

    def __init__(self, above: _Node, id: str, path: str, row: int) -> None:
        self._source, self._dataset = above._source, above._dataset
        self._path, self._level, self._row = path, above._level + 1, row
        self.id, self.path = id, path

    def _list(self) -> tuple[Entries, Sequence[int]]:
        entries = self._dataset._entries(self._level)
        return entries, entries.below(self._row)  # type: ignore[return-value]

    @property
    def data(self) -> pyarrow.Table:
        """The rows of its samples: a `pyarrow.Table` with all columns that are stored."""
        entries, here = self._list()
        return self._source.table(self._level).take(entries.row[here])

    def __repr__(self) -> str:
        return f"<Folder {without_secrets(self.path)}: {', '.join(self.ids)}>"


class Dataset(_Node, Document):
    """The samples of containers that some conditions leave; `load` makes it.

    Every condition gives a new dataset.
    """

    def __init__(
        self,
        source: _Source,
        steps: tuple[dict[str, Any], ...],
        order: tuple[str, bool] | None = None,
        most: int | None = None,
    ) -> None:
        self._source, self._steps = source, steps
        self._order, self._most = order, most
        self._dataset, self._path, self._level = self, "", 0
        self._data: pyarrow.Table | None = None
        self._found: dict[int, Entries] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles what it is made of, not what was learnt."""
        return Dataset, (self._source, self._steps, self._order, self._most)

    def _with(self, *steps: dict[str, Any], **others: Any) -> Dataset:
        """Returns the dataset with further conditions, or another order or limit of `flatten`."""
        given = {"order": self._order, "most": self._most} | others
        return Dataset(self._source, (*self._steps, *steps), **given)

    def _group(self) -> dict[str, Any]:
        """Returns what stands for it in a condition that joins datasets."""
        mode = _set("columns", self._source.mode.removeprefix("intersection"))
        return {"paths": len(self._source.paths), **_set("where", list(self._steps)), **mode}

    def sql(self, query: str) -> Dataset:
        """Returns the samples that the result of a SELECT has.

        The table "data" has the samples of this dataset, or its result if it is one of `sql`;
        level1, … and l0, l1, … are those of all its containers. `data` of the dataset that is
        returned is the result as it is, so also that of COUNT or GROUP BY. For all else it must
        have the column of the ids.

        A query that is beyond the engine (`chaski help sql`) is run by the package duckdb, if that
        is installed: its result is `data`, and the dataset has nothing else.

        Args:
            query: one SELECT.
        """
        return self._with({"select": _text(query, "query")})

    def where(self, condition: str) -> Dataset:
        """Returns the samples that meet a condition: what stands behind WHERE in SQL."""
        return self._with({"sql": _text(condition, "condition")})

    def filter_bbox(
        self,
        minx: float,
        miny: float,
        maxx: float,
        maxy: float,
        geometry_col: str = "auto",
        level: int = 0,
        *,
        within: bool = False,
        bbox_crs: Crs | None = None,
    ) -> Dataset:
        """Returns the samples whose geometry has a point in common with a box.

        Args:
            minx: west, in degrees of longitude, or in `bbox_crs`. One greater than the east crosses
                the antimeridian.
            miny: south.
            maxx: east.
            maxy: north.
            geometry_col: column of geometries. Default: istac:geometry, stac:centroid or
                istac:centroid.
            level: whose rows are looked at: a sample matches if one below it does, and `read` and
                `flatten` then have only the rows that match and what lies below these. Default: 0,
                or the first level that has such a column.
            within: the geometry may not leave the box.
            bbox_crs: CRS of the box, as for `chaski.load`. Geometries are in longitude and
                latitude, or in the CRS that the container says.
        """
        sides = plain("bbox", (minx, miny, maxx, maxy))
        if not all(isinstance(v, (int, float)) for v in sides):
            raise SpecError(f"bbox is {sides}: its sides must be finite numbers")
        step = {"bbox": sides, **_columns(geometry_col, level), **_set("within", within)}
        if bbox_crs is not None:
            step["bbox_crs"] = crs_code("bbox_crs", bbox_crs)
        return self._with(step)

    def filter_datetime(
        self,
        datetime_range: Instant | tuple[Instant, Instant],
        time_col: str = "auto",
        level: int = 0,
    ) -> Dataset:
        """Returns the samples that begin in a range of time.

        Args:
            datetime_range: "A/B", one day or instant, or two; days are whole ones, in UTC. A
                `datetime` alone that is midnight of UTC, or has no zone, stands for its day.
            time_col: column of times. Default: istac:time_start or stac:time_start.
            level: see `filter_bbox`.
        """
        t = datetime_range
        if isinstance(t, datetime) and t.time() == time() and not t.utcoffset():
            t = t.date()
        text = "/".join(
            v.isoformat(timespec="microseconds") if isinstance(v, datetime) else str(v)
            for v in (t if isinstance(t, (tuple, list)) else [t])
        )
        text = _text(text, "datetime_range")
        return self._with({"datetime": text, **_columns(time_col, level)})

    def concat(
        self, *others: Dataset | Sequence[Dataset], column_mode: Mode = "intersection"
    ) -> Dataset:
        """Returns the samples of this dataset and of others; see `chaski.taco.concat`."""
        all = [self]
        for o in others:
            all += [o] if isinstance(o, Dataset) else list(o)
        return concat(all, column_mode)

    @property
    def data(self) -> pyarrow.Table:
        """The rows of the samples, without placeholders: a `pyarrow.Table`.

        It has all columns that are stored, or those of the last `sql`.

        Raises:
            UnsupportedError: the last `sql` is beyond the engine, and duckdb is not installed.
            SpecError: the last `sql` is wrong.
        """
        if self._data is None:
            selected = self._steps and self._steps[-1].get("select")
            given = self._steps[:-1] if selected else self._steps
            self._data = self._source.query(selected or "SELECT * FROM data", given)
        return self._data

    def to_pandas(self) -> pandas.DataFrame:
        """Returns `data` for pandas."""
        optional("pandas", "to_pandas needs pandas (pip install pandas); data is pyarrow's table")
        return self.data.to_pandas()

    def sort(self, by: str, descending: bool = False) -> Dataset:
        """Returns the dataset with another order of the rows of `flatten`.

        It changes neither `data` nor the order of a loader: `sql` with ORDER BY does.

        Args:
            by: column of `flatten`, such as "l0:stac:time_start".
            descending: from the last value to the first. Nulls are last in both directions.
        """
        return self._with(order=(_text(by, "by"), bool(descending)))

    def limit(self, n: int) -> Dataset:
        """Returns the dataset with at most n rows of `flatten`; see `sort`."""
        return self._with(most=count("n", n, 0))

    def flatten(self, level: int | None = None) -> pyarrow.Table:
        """Returns the samples with bytes at a level: a `pyarrow.Table` with a row for each.

        It has the columns of the level and of those above it, named "l2:id", "l0:split", …,
        without those of the format itself, and "gdal_vsi": what GDAL opens the row's file by. Rows
        are those below the samples of this dataset, in the order of these (each once), without
        those that a filter by place or time of a lower level drops. `sort` and `limit` apply.

        Args:
            level: default: the deepest.

        Raises:
            NotFoundError: there is no such level, or no such column to sort by.
        """
        level = self.levels - 1 if level is None else count("level", level, 0)
        sql = f'SELECT * EXCLUDE ("chaski:folder") FROM below{level} WHERE "chaski:folder" = 0'
        if self._order is not None:
            by, descending = self._order
            name = by.replace('"', '""')
            sql += f' ORDER BY "{name}" {"DESC" if descending else "ASC"} NULLS LAST'
        if self._most is not None:
            sql += f" LIMIT {self._most}"
        return self._source.sql(sql, self._steps)

    def to_polars(self) -> polars.DataFrame:
        """Returns `data` for polars."""
        why = "to_polars needs polars (pip install polars); data is pyarrow's table"
        frame: polars.DataFrame = optional("polars", why).DataFrame(self.data)
        return frame

    def _entries(self, level: int) -> Entries:
        """Returns where its samples at a level are. All folders of the level share them."""
        if level not in self._found:
            sql = f"SELECT * FROM entries{level}"
            self._found[level] = Entries(self._source.ask("json", sql=sql, where=self._steps))
        return self._found[level]

    def _list(self) -> tuple[Entries, Sequence[int]]:
        entries = self._entries(0)
        return entries, range(len(entries))

    @property
    def _about(self) -> dict[str, Any]:
        return self._source.info

    def close(self) -> None:
        """Does nothing: a dataset holds nothing open. The engine does, see `chaski.taco`."""

    def __enter__(self) -> Dataset:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def is_rsut(self) -> bool:
        """Reports whether all samples have the same ids one level below.

        A filter by place or time of a lower level may leave some samples more than others.
        """
        if self.levels < 2:
            return True
        below = self._entries(1)
        rows = set(self._entries(0).row.tolist())
        return len({frozenset(map(below.id, below.below(row))) for row in rows}) <= 1

    @property
    def pit_schema(self) -> dict[str, Any] | None:
        """The hierarchy that the containers declare, or None."""
        return self.collection.get("taco:pit_schema")

    @property
    def field_schema(self) -> dict[str, Any] | None:
        """The columns that the containers declare, by level, or None."""
        return self.collection.get("taco:field_schema")

    def loader(
        self, *, batch_size: int, fields: Mapping[str, FieldLike] | None = None, **options: Any
    ) -> Loader:
        """Returns a loader of the samples.

        Args:
            batch_size: samples of a global batch, over all ranks.
            fields: members of a sample by name: a column, or the path of ids below a sample that
                leads to a raster, such as "s2/img.tif".
            options: all else of `chaski.load`; conditions of `rows` are further ones.
        """
        steps: Sequence[Any] = self._steps
        if self._source.mode != "intersection":
            steps = [{"concat": [self._group()]}]
        rows = options.pop("rows", Rows())
        instance("rows", rows, Rows)
        options["rows"] = replace(
            rows, base_path=self._source.base_path, where=[*steps, *_conditions(rows.where)]
        )
        return _load(self._source.paths, batch_size=batch_size, fields=fields, **options)

    def __repr__(self) -> str:
        steps = "".join(f", {step}" for step in self._steps)
        paths = without_secrets(", ".join(self._source.paths))
        return f"<Dataset {paths}{steps}>"

    def _repr_html_(self) -> str:
        """Returns what notebooks show: what the document says, and how many samples there are."""
        names = "title version format description tasks licenses keywords levels".split()
        said: dict[str, Any] = {name: getattr(self, name) for name in names}
        said["providers"] = [p.get("name", p) for p in self.providers]
        said["extent"] = json.dumps(self.extent) if self.extent else None
        said["conditions"] = list(self._steps)
        said["samples"] = len(self)
        rows = {k: ", ".join(map(str, v)) if isinstance(v, list) else v for k, v in said.items()}
        caption = self.id or ", ".join(self._source.paths)
        return _show.table(caption, [row for row in rows.items() if row[1] not in (None, "")])


def _columns(column: str, level: int) -> dict[str, Any]:
    return {**_set("column", "" if column == "auto" else column), **_set("level", int(level))}


def _set(key: str, value: Any) -> dict[str, Any]:
    return {key: value} if value else {}


def _text(v: object, name: str) -> str:
    """Returns a text that chooses; an empty one is a variable that was not set."""
    if not (text := str(v)).strip():
        raise SpecError(f"{name} is empty; leave it out for all samples")
    return text


def _conditions(where: Where) -> Sequence[Any]:
    """Returns the conditions of a list, or the one that SQL is."""
    if isinstance(where, str):
        return [where]
    if isinstance(where, Mapping) or not isinstance(where, Iterable):
        raise SpecError(f"where is {where!r}: it must be SQL or a list of conditions")
    return list(where)
