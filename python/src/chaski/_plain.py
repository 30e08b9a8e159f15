"""Arguments as the JSON of a spec has them, and the types that several arguments have."""

from __future__ import annotations

import contextlib
import datetime as dt
import json
import math
import operator
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any, Literal, Protocol, TypeAlias, TypeGuard

from chaski._files import absolute_path
from chaski.errors import SpecError


class HasEpsg(Protocol):
    """A coordinate reference system of pyproj, rasterio or the like."""

    def to_epsg(self) -> int | None:
        """Returns the EPSG code, None if there is none."""
        ...


class ArrowStream(Protocol):
    """A table in memory: of pyarrow, pandas, polars, ..."""

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any: ...


Size: TypeAlias = int | tuple[int, int]
Until: TypeAlias = Literal["shortest", "longest"] | int
Path: TypeAlias = str | os.PathLike[str]
Columns: TypeAlias = Mapping[str, Sequence[Any]] | ArrowStream  # a table in memory
Condition: TypeAlias = str | tuple[str, str, Any] | Mapping[str, Any]
Where: TypeAlias = str | Sequence[Condition]
BBox: TypeAlias = tuple[float, float, float, float]
Crs: TypeAlias = int | str | HasEpsg
Timestamp: TypeAlias = int | dt.datetime | tuple[int | dt.datetime, int | dt.datetime]
DTypeLike: TypeAlias = Any
"""A name ("float32", "bfloat16", "native", "f4"), or a dtype of numpy, ml_dtypes or torch."""


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

    Arrays and iterables become lists, dataclasses objects, paths strings, NaN and infinities "nan",
    "inf" and "-inf".
    """
    if hasattr(v, "tolist") and not isinstance(v, type):  # arrays and scalars of numpy and torch
        v = v.tolist()
    if isinstance(v, os.PathLike):
        return os.fspath(v)
    if isinstance(v, float) and not math.isfinite(v):
        return str(v)
    if v is None or isinstance(v, (bool, int, float, str)):
        return v
    if is_dataclass(v) and not isinstance(v, type):
        return members(v)
    if isinstance(v, Mapping):
        return {str(k): plain(name, x) for k, x in v.items()}
    if isinstance(v, Iterable) and not isinstance(v, (bytes, type)):
        return [plain(name, x) for x in v]
    if hasattr(v, "__index__") and not isinstance(v, type):
        return operator.index(v)
    if hasattr(v, "__float__") and not isinstance(v, type):  # of fractions and decimal
        return plain(name, float(v))
    raise SpecError(f"{name} is {v!r}: a spec cannot hold {type(v).__name__}")


def json_text(name: str, v: Any) -> str:
    """Returns the JSON of an argument that the engine reads from a file."""
    try:
        return json.dumps(v, allow_nan=False)
    except (TypeError, ValueError) as e:
        raise SpecError(f"{name} is not JSON: {e}") from None


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
    """Returns the members of a dataclass that are neither None nor off, but for `others`."""
    out = {}
    for f in fields(o):
        v = getattr(o, f.name)
        if v is None or v is False is f.default or f.name in others:
            continue
        may_be_0 = f.name in ("fill", "pad", "scale") or f.default == 0
        out[f.name] = plain(f.name, v) if may_be_0 else above_zero(f.name, v)
    return out


def instance(name: str, v: Any, kind: type) -> TypeGuard[Any]:
    """Reports whether an argument is an object of one of the package's classes, and not None."""
    if v is None or isinstance(v, kind):
        return v is not None
    raise SpecError(f"{name} is {v!r}: it must be a chaski.{kind.__name__.removesuffix('Json')}")


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


def until_json(until: Until | None) -> dict[str, Any]:
    """Returns the members of a mixture that say when an epoch ends."""
    if until is None or isinstance(until, str):
        return {} if until is None else {"until": until}
    return {"until": "length", "length": count("until", until)}


_OPERATORS = ("==", "=", "!=", "<>", "<", "<=", ">", ">=", "in")


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
