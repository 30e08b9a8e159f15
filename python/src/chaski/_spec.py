"""The arguments of `load` and `connect`, and the spec that they make.

They are named, typed and given defaults once, for both. The engine checks and hashes the spec.
"""

from __future__ import annotations

import functools
import inspect
import json
import os
import pathlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Concatenate, ParamSpec, TypeAlias, TypeVar

from chaski._arguments import (
    VERSION,
    BadSamples,
    Engine,
    Last,
    Map,
    Mixture,
    OnBad,
    Rows,
    Source,
    SourceLike,
)
from chaski._calls import elsewhere, instead, raised
from chaski._fields import Field, FieldLike, NormalizeLike, Pixels, Vector
from chaski._plain import (
    Path,
    Size,
    Tables,
    above_zero,
    absolute,
    count,
    dtype_name,
    instance,
    listed,
    members,
    plain,
    stated,
)
from chaski._quarantine import bad_ids
from chaski._sources import Scenes
from chaski._tables import Files
from chaski._windows import SAMPLER_PATHS, Blocks, Sampler, WholeChip
from chaski.errors import NotFoundError, SpecError

T = TypeVar("T")
P = ParamSpec("P")
O = TypeVar("O")  # noqa: E741
R = TypeVar("R")
S = TypeVar("S")
StatsLike: TypeAlias = Path | Mapping[str, Any]
_NAME = re.compile(r"\{[^{}/*]+\}")
"""A name in a pattern."""


@dataclass(frozen=True, kw_only=True)
class SampleOptions:
    """The arguments of `load` that determine its samples; `load` documents them."""

    fields: Mapping[str, FieldLike] | None = None
    pixels: Pixels = field(default_factory=Pixels)
    normalize: NormalizeLike = None
    stats: StatsLike | None = None
    window: Size | Sampler | Sequence[Sampler] | None = None
    seed: int = 0
    rows: Rows = field(default_factory=Rows)
    tables: Tables | None = None
    on_bad: BadSamples | OnBad = "error"


@dataclass(frozen=True, kw_only=True)
class BatchOptions(SampleOptions):
    """The arguments of `load` that make batches of samples."""

    shuffle: bool | Blocks = True
    last: Last = "short"
    map: Map | Callable[[Any], Any] | None = None


@dataclass(frozen=True, kw_only=True)
class SpecOptions(BatchOptions):
    """What `load` and `connect` both take; `load` documents it."""

    batch_size: int
    rank: int = 0
    world_size: int = 1
    engine: Engine = field(default_factory=Engine)


@dataclass(frozen=True, kw_only=True)
class LoadOptions(SpecOptions):
    """The arguments of `load`."""

    source: SourceLike = field(kw_only=False)


@dataclass(frozen=True, kw_only=True)
class ConnectOptions(SpecOptions):
    """The arguments of `connect`."""

    target: str | Sequence[str] = field(kw_only=False)
    source: SourceLike = field(kw_only=False)


def _taking(f: Callable[..., R], options: Callable[..., object], own: int) -> Callable[..., R]:
    """Returns f with the parts of options as arguments, behind so many of its own."""
    parts = [x.name for x in fields(options)]  # type: ignore[arg-type]

    placed = [x.name for x in fields(options) if not x.kw_only]  # type: ignore[arg-type]
    name = f.__qualname__.removesuffix(".__init__")

    @functools.wraps(f)
    def call(*args: Any, **kwargs: Any) -> R:
        if len(args) > own + len(placed):
            raise TypeError(f"{name}() takes {' and '.join(placed)}: name all others, as rows=...")
        try:
            o = options(*args[own:], **kwargs)
        except TypeError as e:
            said = str(e).replace(f"{getattr(options, '__name__', '')}.__init__", name)
            words = instead("load", kwargs, parts, _written(options))
            raise TypeError(said + words) from None
        try:
            return f(*args[:own], o)
        except BaseException as e:
            raise raised(e, quiet=True)  # noqa: B904 (its own cause stays)

    of_f = inspect.signature(f)
    before = [p.replace(kind=p.POSITIONAL_ONLY) for p in list(of_f.parameters.values())[:own]]
    own_parts = inspect.signature(options).parameters.values()
    call.__signature__ = of_f.replace(parameters=[*before, *own_parts])  # type: ignore[attr-defined]
    return call


def _written(options: Any) -> dict[str, str]:
    """Returns how options, and members of the objects that they are, are written."""
    out = {f.name: f"{f.name}=..." for f in fields(options)}
    for part in fields(options):
        kind = part.default_factory
        if isinstance(kind, type):
            for name in inspect.signature(kind).parameters:
                out.setdefault(name, f"{part.name}=chaski.{kind.__name__}({name}=...)")
    return out


elsewhere.update(_written(LoadOptions))


def takes(options: Callable[P, O]) -> Callable[[Callable[[O], R]], Callable[P, R]]:
    """Makes a function of options one of their parts, as arguments.

    Type checkers, IDEs and `inspect.signature` see the arguments one by one, with their types and
    defaults.
    """
    return lambda f: _taking(f, options, 0)


def init_takes(
    options: Callable[P, O],
) -> Callable[[Callable[[S, O], None]], Callable[Concatenate[S, P], None]]:
    """Does what `takes` does for an `__init__`."""
    return lambda f: _taking(f, options, 1)


def paths(source: object) -> list[Path]:
    """Returns the paths of a source that is no mixture."""
    if isinstance(source, Mapping):
        raise SpecError(
            "source is a dict, whose values are not columns; several sources are a Mixture, and "
            "patterns of images and masks are fields: load(directory, fields=...)"
        )
    if isinstance(source, Source):
        raise SpecError("a Source is part of a Mixture; give its members to load")
    if not isinstance(source, (os.PathLike, Sequence)):  # an iterator would be used up here
        raise SpecError(f"source is {source!r:.200}: it must be a path or a list of paths")
    return listed("source", source)


def _place(source: SourceLike, rows: Rows, files: Files) -> dict[str, Any]:
    """Returns the members that say where a source lies: one path, or several containers."""
    first, *parts = (files.path(os.fspath(p)) for p in paths(files.source(source)))
    out: dict[str, Any] = {"source": first}
    if parts:
        out["parts"] = parts
    if rows.base_path is not None:
        out["base_path"] = files.path(plain("base_path", rows.base_path), "base_path")
    return out


def policy(on_bad: BadSamples | OnBad) -> OnBad:
    """Returns what to do with bad samples, however it was given."""
    return on_bad if isinstance(on_bad, OnBad) else OnBad(on_bad)


def build_spec(source: SourceLike, o: SpecOptions, files: Files | None = None) -> dict[str, Any]:
    """Returns the spec that the arguments of `load` describe, as what its JSON holds.

    Tables in memory become files.
    """
    files = files or Files(o.fields)
    if isinstance(source, Scenes):
        if o.fields is not None:
            raise SpecError("fields are in the Scenes, and not beside them")
        place, named, window = source.arguments(o.window, build_field, files.source)
        source, o = place, replace(o, fields=named, window=window)
    instance("pixels", o.pixels, Pixels)
    instance("rows", o.rows, Rows)
    size, pixels, bad = count("batch_size", o.batch_size), o.pixels, policy(o.on_bad)
    names = [f.name for f in fields(Field)]
    spec: dict[str, Any] = {
        "version": VERSION,
        "source": "",
        "defaults": {
            **members(pixels, *(f.name for f in fields(pixels) if f.name not in names)),
            "dtype": dtype_name("dtype", pixels.dtype),
        },
        "batch_size": size,
        **_order(o.shuffle),
        "seed": stated("seed", o.seed),
        "last": stated("last", o.last),
        "sampler": _sampler(WholeChip() if o.window is None else o.window, files),
        "bad_samples": stated("on_bad", bad.action),
        **_rows(o.rows, "", files, o.tables),
        **members(pixels, *names),
    }
    if o.normalize is not None:
        spec["defaults"]["normalize"] = plain("normalize", o.normalize)
    if o.stats is not None:
        spec["stats"] = _load_stats(o.stats)
    if o.fields is not None:
        spec["fields"] = _fields(o.fields, files)
    if isinstance(source, Mixture):
        given = set(o.rows._changed()) | ({"tables"} if o.tables is not None else set())
        for name in sorted(given - {"take", "steps_per_epoch"}):
            raise SpecError(f"{name} is for each Source of a Mixture, not for all of it")
        spec |= _mixture(source, files)
    else:
        made = files.made
        spec |= _place(source, o.rows, files)
        if files.made > made:  # a table, which lies elsewhere than the program runs
            for f in spec.get("fields", {}).values():
                _here(f)
    limits = {"count": bad.max_count, "rate": bad.max_rate}
    if limits := {k: plain(f"max_{k}", v) for k, v in limits.items() if v is not None}:
        spec["bad_limit"] = limits
    if o.rows.take is not None and o.rows.steps_per_epoch is not None:
        raise SpecError("give take, in samples, or steps_per_epoch, not both")
    if o.rows.take is not None:
        spec["take"] = above_zero("take", o.rows.take)
    if o.rows.steps_per_epoch is not None:
        spec["take"] = count("steps_per_epoch", o.rows.steps_per_epoch) * size
    return spec


def _order(shuffle: bool | Blocks) -> dict[str, Any]:
    """Returns the members that say in which order samples come."""
    if isinstance(shuffle, Blocks):
        return {"shuffle": True, "blocks": members(shuffle)}
    return {"shuffle": stated("shuffle", shuffle)}


def _rows(rows: Rows, source: str, files: Files, tables: Tables | None) -> dict[str, Any]:
    """Returns the members that say which rows are samples, of a source of a mixture or without."""
    if isinstance(rows.split, Mapping) and "by" not in rows.split:
        raise SpecError(f"split is {rows.split!r}: write chaski.Split.by_hash({rows.split!r})")
    bad = [] if rows.bad is None else bad_ids(rows.bad, source)
    out = rows.to_json() | ({"bad": bad} if bad else {})
    if tables is not None:
        out["tables"] = files.tables(tables)
    return out if rows.ids is None else out | {"id_list": files.ids(rows.ids)}


def _sampler(window: Any, files: Files) -> Any:
    """Returns the JSON of a window, or of several of a sample."""
    out = plain("window", window)
    for one in out if isinstance(out, list) else [out]:
        for key in SAMPLER_PATHS if isinstance(one, dict) else ():
            text = one.get(key)
            geojson = key == "roi" and (not isinstance(text, str) or text.lstrip().startswith("{"))
            if text and not geojson:
                one[key] = files.path(text, f"window: {key}")
    return out


def _fields(named: Any, files: Files) -> dict[str, Any]:
    """Returns the JSON of fields by name."""
    if not isinstance(named, Mapping):
        raise SpecError(f"fields is {named!r}: it must be a dict of fields by name")
    for name in named:
        if not isinstance(name, str):
            raise SpecError(f"fields has the name {name!r}: it must be a str")
    return {name: _field(name, f, files) for name, f in named.items()}


def _field(name: str, given: FieldLike, files: Files) -> dict[str, Any]:
    """Returns the JSON of a field."""
    f, where = build_field(name, given), f"field {name!r}: "
    out = members(f, "vector", where=where)
    if f.vector is not None:
        v = _of_dict(Vector, where + "vector", f.vector)
        if isinstance(v.path, str) and _NAME.search(v.path) and v.pattern is None:
            v = replace(v, path=None, pattern=v.path)
        v = replace(v, path=files.shapes(where + "vector: path", v.path))
        v = _placed(v, where + "vector: ")
        out["vector"] = members(v, where=where + "vector: ")
    if "scenes" in out:
        out["scenes"] = [files.path(p, where + "scenes") for p in out["scenes"]]
    return out


def _placed(v: Vector, where: str) -> Vector:
    """Returns shapes whose places are strings, each with its own coordinates."""
    box: dict[str, str] = {}
    for roles, place in (v.box or {}).items():
        if isinstance(place, (str, int)):
            box[roles] = str(place)
            continue
        if len(roles.split()) != len(place):
            raise SpecError(
                f"{where}box has {len(place)} places for {roles!r}: {list(place)!r:.100}"
            )
        box |= {role: str(name) for role, name in zip(roles.split(), place, strict=True)}
    return replace(
        v,
        box=None if v.box is None else box,
        column=None if v.column is None else str(v.column),
        image=None if v.image is None else str(v.image),
        columns=v.columns and [str(c) for c in v.columns],
        where=v.where and [(str(c), *rest) for c, *rest in v.where],
    )


def _here(f: dict[str, Any]) -> None:
    """Makes the patterns of a field begin in the folder of the program."""
    if "pattern" in f:
        f["pattern"] = absolute(f["pattern"])
    if "patterns" in f:
        f["patterns"] = [absolute(p) for p in f["patterns"]]
    if "vector" in f:
        _here(f["vector"])


def _of_dict(kind: type[T], where: str, v: Any) -> T:
    """Returns an object of a class, also of a dict of its members."""
    if isinstance(v, kind):
        return v
    if not isinstance(v, Mapping):
        one = "a Field, Vector, str" if kind is Field else "a Vector"
        raise SpecError(f"{where} is {v!r}: it must be {one} or a dict")
    names = [x.name for x in fields(kind)]  # type: ignore[arg-type]
    for unknown in [k for k in v if k not in names]:
        words = instead(kind.__name__, [str(unknown)], names)
        raise SpecError(f"{where}: there is no {unknown!r}{words}")
    return kind(**v)


def build_field(name: str, given: FieldLike) -> Field:
    """Returns a field, however it was given."""
    if isinstance(given, str):
        return Field(pattern=given) if _NAME.search(given) else Field(column=given)
    if isinstance(given, Vector):
        return Field(vector=given)
    f = _of_dict(Field, f"field {name!r}", given)
    if isinstance(f.column, (list, tuple)):
        raise SpecError(
            f"field {name!r}: column is {f.column!r}: several columns are Field(columns=[...])"
        )
    if isinstance(f.column, str) and _NAME.search(f.column):
        raise SpecError(
            f"field {name!r}: column is {f.column!r}: a pattern is Field(pattern={f.column!r})"
        )
    return f


def _mixture(m: Mixture, files: Files) -> dict[str, Any]:
    """Returns a mixture's members."""
    if not m.sources or not isinstance(m.sources, Mapping):
        raise SpecError(f"sources is {m.sources!r}: it must be a dict of sources by name")
    return {
        "sources": [_source(name, s, files) for name, s in m.sources.items()],
        **members(m, "sources", "weight"),
    }


def _source(name: str, s: Source | SourceLike, files: Files) -> dict[str, Any]:
    """Returns the JSON of a source of a mixture."""
    if isinstance(s, Scenes):
        raise SpecError(f"source {name!r} is {s!r}: a Mixture does not take Scenes")
    if not isinstance(s, (Source, Mixture)):
        s = Source(s)
    out = {"name": name, "weight": above_zero(f"weight of source {name!r}", s.weight)}
    if isinstance(s, Mixture):
        return out | _mixture(s, files)
    instance(f"source {name!r}: rows", s.rows, Rows)
    if s.rows.take is not None or s.rows.steps_per_epoch is not None:
        raise SpecError(f"source {name!r}: take and steps_per_epoch are for the whole Mixture")
    out |= _place(s.source, s.rows, files) | _rows(s.rows, name, files, s.tables)
    if s.window is not None:
        out["sampler"] = _sampler(s.window, files)
    if s.fields:
        out["fields"] = _fields(s.fields, files)
    return out


def _numbers(v: Any) -> Any:
    """Returns statistics without histograms: a spec has at most 1 MiB."""
    if isinstance(v, Mapping):
        return {k: _numbers(x) for k, x in v.items() if k != "histogram"}
    return [_numbers(x) for x in v] if isinstance(v, (list, tuple)) else plain("stats", v)


_STATS = "what chaski.stats(source) returns, or the path of the JSON that its save(path) wrote"


def _load_stats(stats: StatsLike) -> dict[str, Any]:
    """Returns the fields of a `chaski stats` JSON: a path, what it holds, or the fields alone."""
    shown = f"stats is {stats!r:.100}"
    if not isinstance(stats, (str, os.PathLike, Mapping)):
        raise SpecError(f"{shown}: it must be {_STATS}")
    if not isinstance(stats, Mapping):
        path = pathlib.Path(stats).expanduser()
        if path.is_dir():
            raise SpecError(f"{shown}, a directory: it must be {_STATS}")
        try:
            stats = json.loads(path.read_bytes())
        except FileNotFoundError:
            raise NotFoundError(
                f"{shown}: not found: it must be {_STATS}", file=str(path)
            ) from None
        except (OSError, ValueError) as e:
            raise SpecError(f"{shown}: {e}: it must be {_STATS}") from None
    table = stats.get("fields", stats) if isinstance(stats, Mapping) else None
    if not isinstance(table, Mapping):
        raise SpecError(f"{shown}: it must be {_STATS}")
    if wrong := [n for n, f in table.items() if not (isinstance(f, Mapping) and "bands" in f)]:
        raise SpecError(
            f"{shown}: {wrong[0]!r} is no field with bands: it must be {_STATS}; published numbers "
            'are for a field: chaski.Field(normalize={"mean": [...], "std": [...]})'
        )
    return {name: _numbers(f) for name, f in table.items()}
