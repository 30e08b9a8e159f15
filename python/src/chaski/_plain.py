"""Arguments as the JSON of a spec has them, and the types that several arguments have."""

from __future__ import annotations

import contextlib
import datetime as dt
import importlib
import json
import math
import operator
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from chaski._argument import Argument
from chaski._files import absolute_path
from chaski.errors import SpecError


class HasEpsg(Protocol):
    """A coordinate reference system of pyproj, rasterio or the like."""

    def to_epsg(self) -> int | None:
        """Returns the EPSG code, None if there is none."""
        ...


class ArrowStream(Protocol):
    """A table in memory: of pyarrow, pandas, geopandas, polars, ..."""

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any: ...


Size: TypeAlias = int | tuple[int, int]
Path: TypeAlias = str | os.PathLike[str]
Columns: TypeAlias = Mapping[str, Sequence[Any]] | Sequence[Mapping[str, Any]] | ArrowStream
"""A table in memory: columns, rows, or a table of another library."""
Tables: TypeAlias = (
    Mapping[Path, str | Mapping[str, str]]
    | Sequence[tuple[Path | Columns, str | Mapping[str, str]]]
)
"""Tables with the column of the dataset that has their keys, or {their column: the dataset's}."""
Condition: TypeAlias = str | tuple[str, str, Any] | Mapping[str, Any]
Where: TypeAlias = str | Sequence[Condition]
BBox: TypeAlias = tuple[float, float, float, float]
Crs: TypeAlias = int | str | HasEpsg
Timestamp: TypeAlias = int | dt.datetime | tuple[int | dt.datetime, int | dt.datetime]
DTypeLike: TypeAlias = Any
"""A name ("float32", "bfloat16", "native", "f4"), or a dtype of numpy, ml_dtypes or torch."""


def absolute(path: Path, name: str = "path") -> str:
    """Returns a path as an engine in any folder takes it: absolute; a URI stays as it is."""
    return _absolute(os.fspath(as_path(name, path)))


def as_path(name: str, path: object) -> Path:
    """Returns an argument that is a path."""
    if not isinstance(path, (str, os.PathLike)):
        raise SpecError(f"{name} is {path!r:.100}: it must be a str or an os.PathLike")
    if path == "":
        raise SpecError(f"{name} is empty: it must be a path")
    return path


def as_folder(name: str, path: object) -> Path:
    """Returns an argument that is the path of a folder, which need not be there."""
    found = as_path(name, path)
    if os.path.lexists(there := absolute_path(os.fspath(found))) and not os.path.isdir(there):
        raise SpecError(f"{name} is the file {os.fspath(found)!r}: it must be a folder")
    return found


# A path follows the names of these file systems of GDAL. Behind all others is no local path.
_PART = re.compile(r"/vsi(?:zip|tar)/\{?|/vsisubfile/[0-9]+(?:_[0-9]+)?,")
_VSI = re.compile(r"/vsi[a-z0-9_]+[/?]")


def _absolute(name: str) -> str:
    if part := _PART.match(name):
        rest = name[part.end() :]
        if _VSI.match(f"/{rest}"):  # GDAL takes /vsizip/vsicurl/ for /vsizip//vsicurl/
            rest = f"/{rest}"
        return part[0] + _absolute(rest)
    return absolute_path(name) if is_local(name) else name


def is_local(name: str) -> bool:
    """Reports whether a path is a file's, not a URI or one of GDAL's file systems."""
    return "://" not in name and not _VSI.match(name)


def listed(name: str, v: object) -> list[Path]:
    """Returns the paths that one, or several in a sequence or iterator, stand for."""
    one = isinstance(v, (str, bytes, os.PathLike)) or not isinstance(v, Iterable)
    paths: list[Any] = [v] if one else list(v)  # type: ignore[call-overload]
    if not paths or not all(isinstance(p, (str, os.PathLike)) for p in paths):
        raise SpecError(f"{name} is {v!r:.200}: it must be a path or a list of paths")
    return paths


def plain(name: str, v: Any) -> Any:
    """Returns an argument as JSON has it, so that the engine can check it.

    Arrays and iterables become lists, paths and times strings, CRSs their EPSG codes, shapes
    GeoJSON, objects of the package their members, NaN and infinities "nan", "inf" and "-inf".
    """
    if isinstance(v, (bytes, type)):
        raise SpecError(f"{name} is {v!r}: a spec cannot hold {type(v).__name__}")
    if isinstance(v, (np.ndarray, np.generic)) and v.dtype.kind == "M":
        v = np.datetime_as_string(v)  # type: ignore[arg-type, unused-ignore]
    if hasattr(v, "isoformat"):
        return v.isoformat()
    if is_dataclass(v):
        return v.to_json() if hasattr(v, "to_json") else members(v)
    if hasattr(v, "to_epsg"):
        return crs_code(name, v)
    v = getattr(v, "__geo_interface__", v)
    if hasattr(v, "tolist"):  # arrays and scalars of numpy and torch
        v = v.tolist()
    if isinstance(v, os.PathLike):
        return os.fspath(v)
    if isinstance(v, float) and not math.isfinite(v):
        if name.startswith("where") or name == "parts":  # where a string is compared with strings
            raise SpecError(f"{name} has {v!r}, which is not a number to compare with")
        return str(v)
    if v is None or isinstance(v, (bool, int, float, str)):
        return v
    if name == "where" and isinstance(v, (tuple, Mapping)):
        name = f"where {v!r}"
    if isinstance(v, Mapping):
        return {_key(name, k): plain(name, x) for k, x in v.items()}
    if isinstance(v, Iterable):
        return [plain(name, x) for x in v]
    if hasattr(v, "__index__"):
        return operator.index(v)
    if hasattr(v, "__float__"):  # of fractions and decimal
        return plain(name, float(v))
    raise SpecError(f"{name} is {v!r}: a spec cannot hold {type(v).__name__}")


def _key(name: str, k: Any) -> str:
    """Returns a key as JSON has it: of a colour its numbers with commas."""
    return ",".join(str(plain(name, x)) for x in k) if isinstance(k, tuple) else str(k)


def json_text(name: str, v: Any) -> str:
    """Returns the JSON of an argument that the engine reads from a file."""
    try:
        return json.dumps(v, allow_nan=False)
    except (TypeError, ValueError) as e:
        raise SpecError(f"{name} is not JSON: {e}") from None


def stated(name: str, v: Any) -> Any:
    """Is `plain` of what may not be None or "", which the engine would take for the default."""
    if v is None or isinstance(v, str) and v == "":
        raise SpecError(f"{name} is {v!r}: it must have a value")
    return plain(name, v)


def above_zero(name: str, v: Any) -> Any:
    """Is `plain` of what may not be 0, which stands for the default in a spec."""
    v = plain(name, v)
    if isinstance(v, (int, float)) and v == 0 and not isinstance(v, bool):
        raise SpecError(f"{name} is {v!r}: it must be above 0")
    return v


_MAY_BE_0 = ("fill", "nodata", "max_nodata", "pad", "scale", "offset", "mean", "std")


def members(o: Any, *others: str, where: str = "") -> dict[str, Any]:
    """Returns the members of a dataclass that are neither None nor off, but for `others`."""
    out = {"kind": o._kind} if hasattr(o, "_kind") else {}
    for f in fields(o):
        v = getattr(o, f.name)
        if v is None or v is False is f.default or f.name in others:
            continue
        if isinstance(v, str) and f.default != "":
            stated(where + f.name, v)
        may_be_0 = f.name in _MAY_BE_0 or f.default == 0
        read = dtype_name if f.name == "dtype" else plain if may_be_0 else above_zero
        out[f.name] = read(where + f.name, v)
    return out


def dtype_name(name: str, v: DTypeLike) -> str:
    """Returns what the engine calls a dtype: one of numpy, ml_dtypes or torch, or a name of one."""
    if type(v).__module__ == "torch" and str(v).startswith("torch."):
        return str(v).removeprefix("torch.")
    try:
        if v is None:
            raise TypeError
        dtype = np.dtype(v)
    except TypeError:
        if isinstance(v, str):  # the engine says what there is
            return v
        raise SpecError(f"{name} is {v!r}: it must be a dtype") from None
    if not dtype.isnative:
        raise SpecError(f"{name} is {v!r}: batches are in the byte order of this machine")
    found: str = dtype.name
    return found


def instance(name: str, v: Any, kind: type) -> None:
    """Raises if an argument is not an object of a class of the package."""
    if not isinstance(v, kind):
        raise SpecError(f"{name} is {v!r}: it must be a chaski.{kind.__name__}")


@contextlib.contextmanager
def needs(why: str) -> Iterator[None]:
    """Imports packages that not every installation has; why says what needs them."""
    try:
        yield
    except ModuleNotFoundError as e:
        raise ModuleNotFoundError(why, name=e.name) from e


def optional(module: str, why: str) -> Any:
    """Imports a module as `needs` does."""
    with needs(why):
        return importlib.import_module(module)


def as_array(x: Any) -> npt.NDArray[Any]:
    """Returns an array, also of a tensor of torch: of less than float32 as float32."""
    if hasattr(x, "detach"):
        x = x.detach().cpu()
        x = x.float() if x.is_floating_point() and x.element_size() < 4 else x
    return np.asarray(x)


def is_bool(v: object) -> bool:
    """Reports whether a value is a bool: of Python, numpy, or a tensor, which are ints too."""
    return isinstance(v, bool) or str(getattr(v, "dtype", "")).rpartition(".")[2] == "bool"


MAX_WORKERS = 4096  # of an engine


def count(name: str, v: Any, least: int = 1, most: float = math.inf) -> int:
    """Returns a whole number."""
    try:
        n = operator.index(v)
    except TypeError:
        n = least - 1
    if n < least or is_bool(v):
        raise SpecError(f"{name} is {v!r}: it must be an int of at least {least}")
    if n > most:
        raise SpecError(f"{name} is {v!r}: it must be at most {most}")
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


def positive(name: str, v: Any, zero: bool = False) -> float:
    """Returns a finite number above 0, or with zero also that."""
    try:
        f = math.nan if isinstance(v, (str, bytes, bool)) else float(v)
    except (TypeError, ValueError, OverflowError):
        f = math.nan
    if not (0 < f < math.inf or (zero and f == 0)):
        raise SpecError(f"{name} is {v!r}: it must be a positive number{' or 0' * zero}")
    return f


def crs_code(name: str, crs: Crs) -> int:
    """Returns the EPSG code of a CRS, or the one that ESRI gave it."""
    code = crs.to_epsg() if hasattr(crs, "to_epsg") else crs
    authority, _, digits = str(code).upper().rpartition(":")
    if authority in ("", "EPSG", "ESRI") and digits.isdecimal() and 0 < int(digits) < 1 << 31:
        return int(digits)
    raise SpecError(f"{name} is {crs!r}, which has no EPSG code, such as 32633 or 'EPSG:32633'")


class RowJson(Argument):
    """What a `RowWindow` does."""

    def to_json(self) -> dict[str, Any]:
        """Returns the sampler of a spec, where `width` and `height` are the size of windows."""
        box = ("x", "y", "width", "height")
        return members(self, *box) | {f"box_{side}": getattr(self, side) for side in box}


class GridJson(Argument):
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


class RowsJson(Argument):
    """What `Rows` do."""

    def to_json(self) -> dict[str, Any]:
        """Returns what the spec's JSON holds, but for an epoch's length, paths and `bad`."""
        names = set(self._changed()) - {"take", "steps_per_epoch", "base_path", "bad", "ids"}
        return {name: stated(name, getattr(self, name)) for name in sorted(names)}
