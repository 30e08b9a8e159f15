"""Tables that are in memory: they become files, which the engine reads like any others."""

from __future__ import annotations

import bisect
import csv
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from chaski._arguments import Mixture, Source
from chaski._plain import absolute, optional
from chaski.errors import SpecError

try:
    import fcntl
except ImportError:  # on Windows
    fcntl = None  # type: ignore[assignment]

_TEXTS = ("string", "large_string", "string_view")  # of Arrow; polars gives the last
_PYARROW = (
    "a table in memory needs pyarrow (pip install pyarrow); a list of files, and tables in .csv "
    "and .parquet files do without"
)
_PREFIX, _LOCK = "chaski-tables-", "lock"
_WKB = ("binary", "large_binary", "binary_view")
_RASTERS = (".tif", ".tiff", ".geotiff", ".rumi")  # as package catalog tells a column of rasters
_HDF5 = (".h5", ".hdf5", ".he5", ".nc", ".nc4", ".hdf")
_PICTURES = (".png", ".jpg", ".jpeg", ".npy", ".npz", ".vrt", ".zarr", ".zarr.zip", *_HDF5)
"""Of files that a column of strings holds where a field says that it is of rasters."""


def _is_table(source: object) -> bool:
    """Reports whether a source is a table in memory: a DataFrame, an Arrow table, dicts."""
    if _is_rows(source):
        return True
    if isinstance(source, Mapping):
        one = (str, bytes, os.PathLike, Mapping, Source, Mixture)
        return bool(source) and not any(isinstance(v, one) for v in source.values())
    return hasattr(source, "__arrow_c_stream__") or hasattr(source, "__dataframe__")


def _is_rows(source: object) -> bool:
    """Reports whether a source is a list of rows, each a dict."""
    texts = isinstance(source, (str, bytes))
    rows = isinstance(source, Sequence) and not texts and len(source) > 0
    return rows and all(isinstance(row, Mapping) for row in source)  # type: ignore[attr-defined]


def _has_pixels(source: object) -> bool:
    """Reports whether a source is an array of pixels, or holds arrays in place of paths."""

    def axes(v: object) -> int:  # lists of lists are values of a column
        if isinstance(v, list | tuple) and v and (inner := axes(v[0])):
            return inner + 1
        return len(getattr(v, "shape", ()))

    if _is_rows(source):
        return any(axes(v) > 1 for v in source[0].values())  # type: ignore[index]
    if isinstance(source, Mapping):
        return any(axes(column) > 2 for column in source.values())
    table = hasattr(source, "__dataframe__") or hasattr(source, "columns")
    return axes(source) > 1 and not table


def _is_list(source: object) -> bool:
    """Reports whether a source is a list of rasters. One of containers the engine opens itself."""
    return (
        isinstance(source, Sequence)
        and not isinstance(source, (str, bytes))
        and len(source) > 1
        and all(
            isinstance(p, (str, os.PathLike)) and _is_raster(os.fspath(p), _RASTERS + _PICTURES)
            for p in source
        )
    )


def _columns(fields: Any) -> tuple[set[str], set[str]]:
    """Returns the columns that fields may read rasters from, and those that hold nothing else."""
    maybe, rasters = set[str](), set[str]()
    for name, f in (fields if isinstance(fields, Mapping) else {"image": {}}).items():
        if isinstance(f, str):
            f = {"column": f}

        def member(key: str, f: Any = f) -> Any:
            return f.get(key) if isinstance(f, Mapping) else getattr(f, key, None)

        columns = [member("column") or name, *(member("columns") or ())]
        if member("kind") == "raster":
            rasters.update(c for c in columns if isinstance(c, str))
        if member("kind") in (None, "raster", "array"):
            maybe.update(c for c in (*columns, _file_name(name)) if isinstance(c, str))
    return maybe, rasters


def _file_name(field: str) -> str:
    """Returns the column of paths that makes rasters of a field, whatever they end in."""
    return "file_name" if field == "image" else f"{field}_file_name"


def _is_raster(path: object, endings: tuple[str, ...] = _RASTERS) -> bool:
    if not isinstance(path, str):
        return False
    if path.startswith(("http://", "https://")):
        path = path.partition("?")[0]  # the name of a signed URL ends there
    path = path.partition("::")[0]  # the name of a file ends there, of an array in it
    return path.startswith("/vsisubfile/") or path.lower().endswith(endings)


class Files:
    """The files of tables in memory, in a directory that only this user can read."""

    def __init__(self, fields: Any = None, local: bool = False) -> None:
        """Makes none yet; fields are those of the spec, which refuses them if they are none.

        A local engine, which has a folder of its own, takes absolute paths.
        """
        self._local = local
        self._fields = fields if fields and isinstance(fields, Mapping) else {"image": {}}
        self._folder = ""
        self._lock = -1  # a file that is open and locked as long as this process lives
        self.made = 0  # files
        self._pid = os.getpid()

    def path(self, path: Any, name: str = "path") -> Any:
        """Returns the path of an argument as the engine takes it; "" stands for the source."""
        return absolute(path, name) if self._local and path else path

    def source(self, source: Any, fields: Any = None) -> Any:
        """Returns a source with the path of a file in place of what is in memory.

        Paths in the file are absolute: it lies elsewhere than the program runs. fields are those of
        the source, if they are not those of the spec.
        """
        if _has_pixels(source):
            raise SpecError(
                "source has pixels in memory: write each image to a file, such as by "
                'np.save("0.npy", image), and give the paths, or a table of them'
            )
        fields = self._fields if fields is None else fields
        tolist = getattr(source, "tolist", getattr(source, "to_list", None))
        if tolist and len(getattr(source, "shape", ())) == 1:  # a Series, or an array of one axis
            source = tolist()
        if _is_list(source):
            return self._list([absolute(p) for p in source], fields)
        if hasattr(source, "to_wkb") and getattr(source, "crs", None):
            source = source.to_crs(4326)  # as GeoParquet: boxes that choose rows are in degrees
        if _is_table(source):
            return self._write("source", source, absolute, fields=fields)
        return source

    def _path(self, what: str, ending: str) -> str:
        """Returns the path of a new file. Errors name it, so it says what it was made of."""
        if not self._folder:
            _sweep()
            self._folder = tempfile.mkdtemp(prefix=_PREFIX)
            self._lock = _locked(self._folder)
        self.made += 1
        return os.path.join(self._folder, f"{what}-in-memory-{self.made}{ending}")

    def _list(self, paths: list[str], fields: Any) -> str:
        """Writes a table of rasters with a column for each field, and "path"."""
        names = list(fields)
        if not all(map(_is_raster, paths)):
            names = [_file_name(name) for name in names]
        columns = list(dict.fromkeys(["path", *names]))
        path = self._path("source", ".csv")
        with open(path, "w", newline="", encoding="utf-8") as f:
            rows = csv.writer(f)
            rows.writerow(columns)
            rows.writerows([p] * len(columns) for p in paths)
        return path

    def ids(self, ids: Any) -> str:
        """Returns the path of a list of ids; of one in memory, that of the file it becomes."""
        tolist = getattr(ids, "tolist", getattr(ids, "to_list", None))
        ids = tolist() if tolist else ids
        if isinstance(ids, (str, os.PathLike)):
            return str(self.path(os.fspath(ids)))
        if not isinstance(ids, Sequence) or isinstance(ids, bytes) or not len(ids):
            raise SpecError(f"ids is {ids!r:.100}: it must be a path, or a list of at least one id")
        lines = [str(id) for id in ids]
        for line in lines:
            if line != line.strip() or not line or len(line.splitlines()) > 1:
                raise SpecError(
                    f"ids has {line!r:.100}: an id has no spaces at its ends, and one line"
                )
        path = self._path("ids", ".txt")
        with open(path, "w", encoding="utf-8", newline="\n") as f:
            f.write("\n".join(lines) + "\n")
        return path

    def tables(self, tables: Any) -> list[dict[str, Any]]:
        """Returns the JSON of tables and the columns of their keys; some become files."""
        out = []
        if isinstance(tables, (str, os.PathLike)):
            path = os.fspath(tables)
            raise SpecError(
                f"tables is {path!r}: write {{{path!r}: column}}, with the column of the dataset "
                "that has the key of each row"
            )
        pairs = tables.items() if isinstance(tables, Mapping) else tables
        for pair in pairs if isinstance(pairs, Iterable) else [tables]:
            if not isinstance(pair, Sequence) or isinstance(pair, (str, bytes)) or len(pair) != 2:
                raise SpecError(
                    f"tables has {pair!r:.100}: write {{path: column}}, or [(table, column)]"
                )
            table, on = pair
            if isinstance(on, Mapping) and len(on) == 1:
                ((theirs, on),) = on.items()
            else:
                theirs = on
            if not isinstance(on, str) or not isinstance(theirs, str):
                raise SpecError(
                    f"tables has the key {pair[1]!r:.100}: it must be a column of the dataset, or "
                    "{column of the table: column of the dataset}"
                )
            if _is_table(table):
                path = self._write("tables", table, absolute, key=theirs)
            elif isinstance(table, (str, os.PathLike)):
                path = self.path(os.fspath(table))
            else:
                raise SpecError(f"tables has {table!r:.100}: it must be a path or a table")
            out.append({"path": path, "on": on, "column": theirs})
        return out

    def shapes(self, where: str, frame: Any) -> Any:
        """Returns a path of shapes; of a table in memory, that of the GeoParquet it becomes."""
        if _is_table(frame):
            return self._write(where, frame, str, "geometry")
        return self.path(frame, where)

    def _write(
        self,
        where: str,
        source: Any,
        raster: Callable[[str], str],
        geometry: str | None = None,
        fields: Any = None,
        key: str | None = None,
    ) -> str:
        """Writes a table; raster says what becomes of the paths of rasters, which fields read.

        Those in the column key stay as they are. It is GeoParquet if it has geometries: of
        geopandas, or in the column geometry as WKB.
        """
        crs = None
        if hasattr(source, "to_wkb"):  # of geopandas
            geometry = getattr(source, "active_geometry_name", "geometry")
            crs = getattr(source, "crs", None) if geometry else None
            source, crs = source.to_wkb(), crs and crs.to_json_dict()
        about: dict[str, Any] = {"encoding": "WKB", "geometry_types": [], "crs": crs}
        geo = {"version": "1.0.0", "primary_column": geometry, "columns": {geometry: about}}
        maybe, rasters = _columns(fields or {})
        pa, pq = (optional(module, _PYARROW) for module in ("pyarrow", "pyarrow.parquet"))
        try:
            table = pa.table(_texts(source))
            for i, name in enumerate(table.column_names):
                column = table.column(i)
                if pa.types.is_dictionary(column.type):  # of a categorical of pandas or polars
                    to = column.type.value_type  # Arrow itself casts no views of strings
                    to = pa.large_string() if str(to) in _TEXTS else to
                    column = pa.array(column.to_pylist(), to)
                if str(column.type) in _TEXTS and str(name) != key:
                    values = column.to_pylist()
                    first = next(filter(None, values), None)
                    ends = _RASTERS + _PICTURES if name in maybe else _RASTERS
                    if name in rasters or _is_raster(first, ends):
                        column = pa.array([v and raster(v) for v in values], pa.large_string())
                table = table.set_column(i, str(name), column)
            if geometry is not None:
                names = table.column_names
                if geometry not in names or str(table.column(geometry).type) not in _WKB:
                    raise ValueError(f"it has no column {geometry!r} of bytes, which are WKB")
                table = table.replace_schema_metadata({"geo": json.dumps(geo)})
            path = self._path(where if where.isalpha() else "shapes", ".parquet")
            pq.write_table(table, path)
        except (pa.ArrowException, TypeError, ValueError) as e:
            cell = _misfit(pa, source)
            raise SpecError(f"{where}: a table in memory cannot be written: {cell}{e}") from None
        return path

    def close(self) -> None:
        """Removes the files."""
        if self._folder and os.getpid() == self._pid:
            shutil.rmtree(self._folder, ignore_errors=True)
            if self._lock >= 0:
                os.close(self._lock)
            self._folder, self._lock = "", -1


def _locked(folder: str) -> int:
    """Locks a folder until this process ends, and returns the open file, -1 where none locks."""
    if fcntl is None:
        return -1
    path = os.path.join(folder, "making")
    fd = os.open(path, os.O_CREAT | os.O_RDWR, 0o600)
    fcntl.flock(fd, fcntl.LOCK_EX)
    os.rename(path, os.path.join(folder, _LOCK))  # which is there only once it is locked
    return fd


def _sweep() -> None:
    """Removes what processes left behind that were killed."""
    if fcntl is None:
        return
    place = tempfile.gettempdir()
    for name in os.listdir(place):
        folder = os.path.join(place, name)
        if not name.startswith(_PREFIX):
            continue
        try:  # of other users, and those that are being made or removed, cannot be opened
            fd = os.open(os.path.join(folder, _LOCK), os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK)
        except OSError:
            continue
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.lstat(folder).st_uid == os.getuid():
                shutil.rmtree(folder, ignore_errors=True)
        except OSError:  # its process lives
            pass
        finally:
            os.close(fd)


def _misfit(pa: Any, source: Any) -> str:
    """Returns the column and row of the first value that does not fit those before, or ""."""
    table = _texts(source)
    names = table if isinstance(table, Mapping) else getattr(table, "columns", ())

    def fits(values: list[Any]) -> bool:
        try:
            pa.array(values)
        except (pa.ArrowException, TypeError, ValueError):
            return False
        return True

    for name in names:
        if isinstance(name, str) and not fits(values := list(table[name])):
            row = bisect.bisect_left(
                range(len(values)), True, key=lambda i: not fits(values[: i + 1])
            )
            return f"column {name!r}, row {row}: "
    return ""


def _nulls(values: list[Any]) -> list[Any]:
    """Returns values with None for NaN beside strings, as rows of pandas have it."""
    if not any(isinstance(v, str) for v in values):
        return values
    return [None if isinstance(v, float) and v != v else v for v in values]


def _texts(source: Any) -> Any:
    """Returns a table with what Arrow knows: strings of paths, and lists of arrays of two axes."""

    def text(v: Any) -> Any:
        return os.fspath(v) if isinstance(v, os.PathLike) else v

    def objects(c: Any) -> bool:
        if len(getattr(c, "shape", ())) == 2:
            return True
        return isinstance(c, (list, tuple)) or str(getattr(c, "dtype", "")).lower() == "object"

    if _is_rows(source):
        names = dict.fromkeys(k for row in source for k in row)
        source = {k: _nulls([row.get(k) for row in source]) for k in names}
    if isinstance(source, Mapping):
        return {str(k): [text(v) for v in c] if objects(c) else c for k, c in source.items()}
    if type(source).__module__.split(".")[0] == "pandas":
        source = source.rename(columns=str).reset_index(drop=True)
        kinds = source.dtypes.items()
        return source.assign(
            **{k: source[k].map(text) for k, kind in kinds if str(kind) == "object"}
        )
    return source
