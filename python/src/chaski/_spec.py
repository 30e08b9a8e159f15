"""From Python arguments to the JSON of a spec, which the engine checks and hashes."""

from __future__ import annotations

import json
import os
import pathlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, TypeAlias, TypeVar, get_args

import numpy as np

from chaski._plain import (
    Columns,
    DTypeLike,
    Path,
    Size,
    above_zero,
    absolute,
    count,
    instance,
    listed,
    members,
    pair,
    plain,
    stated,
    timestamp_json,
    until_json,
)
from chaski._proto.arguments import (
    VERSION,
    BadSamples,
    Coco,
    Field,
    FieldLike,
    Method,
    Mixture,
    Normalize,
    NormalizeLike,
    OnBad,
    Pixels,
    Points,
    RandomWindow,
    Rows,
    Sampler,
    Source,
    SourceLike,
    Vector,
    WholeChip,
)
from chaski._sources import Scenes
from chaski.errors import SpecError

T = TypeVar("T")
METADATA = ("number", "text", "class")
"""Kinds of metadata columns, which take nothing of what `load` says of all fields."""
FLOATS = ("float32", "float16", "bfloat16")
LABELS = ("native", "int64")
"""dtypes without arithmetic: a normalize of `load` is not for them."""

StatsLike: TypeAlias = Path | Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class SampleOptions:
    """The arguments of `load` that determine its samples; `load` documents them."""

    fields: Mapping[str, FieldLike] | None = None
    pixels: Pixels = field(default_factory=Pixels)
    normalize: NormalizeLike = None
    stats: StatsLike | None = None
    window: Size | Sampler | None = None
    seed: int = 0
    rows: Rows = field(default_factory=Rows)
    on_bad: BadSamples | OnBad = "error"


@dataclass(frozen=True, kw_only=True)
class BatchOptions(SampleOptions):
    """The arguments of `load` that make batches of samples."""

    shuffle: bool = True
    drop_last: bool = False


@dataclass(frozen=True, kw_only=True)
class SpecOptions(BatchOptions):
    """The arguments of `load` that make the spec."""

    batch_size: int


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


def policy(on_bad: BadSamples | OnBad) -> OnBad:
    """Returns what to do with bad samples, however it was given."""
    return on_bad if isinstance(on_bad, OnBad) else OnBad(on_bad)


def build_spec(source: SourceLike, o: SpecOptions) -> dict[str, Any]:
    """Returns the spec that the arguments of `load` describe, as what its JSON holds."""
    if isinstance(source, Scenes):
        if o.fields is not None:
            raise SpecError("fields are in the Scenes, and not beside them")
        place, named, window = source.arguments(o.window, build_field)
        source, o = place, replace(o, fields=named, window=window)
    check_source(source)
    for name, v, kind in (("pixels", o.pixels, Pixels), ("rows", o.rows, Rows)):
        if not instance(name, v, kind):
            raise SpecError(f"{name} is None: it must be a chaski.{kind.__name__}")
    size, pixels, bad = count("batch_size", o.batch_size), o.pixels, policy(o.on_bad)
    default = Field(
        layout=pixels.layout,
        sizes=pixels.sizes,
        dtype=dtype_name("dtype", pixels.dtype),
        normalize=o.normalize,
        fill=pixels.fill,
        pad=pixels.pad,
    )
    named = _named(o)
    table = None if o.stats is None else _load_stats(o.stats)
    spec: dict[str, Any] = {
        "version": VERSION,
        "source": "",
        "fields": [
            _member(name, f, default, table, alone=o.fields is None) for name, f in named.items()
        ],
        "batch_size": size,
        "shuffle": stated("shuffle", o.shuffle),
        "seed": stated("seed", o.seed),
        "sampler": window_json(o.window) or WholeChip().to_json(),
        "bad_samples": plain("on_bad", bad.action),
        **o.rows.to_json(),
        **members(pixels, *(f.name for f in fields(Field))),
    }
    if isinstance(source, Mixture):
        _check_of_sources(o.rows)
        spec |= _mixture(source, table)
    else:
        spec |= place_json(source, o.rows.base_path)
        if isinstance(o.normalize, str):
            _check_normalized(o.normalize, spec["fields"], named, table)
        if o.fields is None and o.stats is None:  # a catalog of pairs has fields of its own
            spec["all_fields"] = True
    if pixels.fill is not None and not any("fill" in m for m in spec["fields"]):
        raise SpecError(
            f"fill={pixels.fill!r} goes with no field: fields of dtype 'native' and of integers "
            "are labels, which keep their nodata; Field(fill=...) fills them, too"
        )
    if limits := _limits(bad):
        spec["bad_limit"] = limits
    if o.drop_last is not False:
        spec["drop_last"] = stated("drop_last", o.drop_last)
    if o.rows.take is not None and o.rows.steps_per_epoch is not None:
        raise SpecError("give take, in samples, or steps_per_epoch, not both")
    if o.rows.take is not None:
        spec["take"] = above_zero("take", o.rows.take)
    if o.rows.steps_per_epoch is not None:
        spec["take"] = count("steps_per_epoch", o.rows.steps_per_epoch) * size
    return spec


def field_names(fields: Any) -> Iterable[str]:
    """Returns the names of the fields, or that of the default where build_spec refuses them."""
    return fields if fields and isinstance(fields, Mapping) else ["image"]


def _named(o: SpecOptions) -> dict[str, Field]:
    """Returns the fields by name."""
    if o.fields is None:
        return {"image": Field(bands=o.pixels.bands, validity=o.pixels.validity)}
    if o.pixels.bands is not None or o.pixels.validity is not None:
        raise SpecError("with fields, give bands and validity in the Field they belong to")
    if not isinstance(o.fields, Mapping):
        raise SpecError(f"fields is {o.fields!r}: it must be a dict of fields by name")
    if not o.fields:
        raise SpecError("fields is empty: it must have at least one field")
    return {name: build_field(name, f) for name, f in o.fields.items()}


def _limits(bad: OnBad) -> dict[str, Any]:
    """Returns the limits on bad samples."""
    given = {"max_count": bad.max_count, "max_rate": bad.max_rate}
    out = {k.removeprefix("max_"): plain(k, v) for k, v in given.items() if v is not None}
    if out and bad.action == "error":
        name = next(k for k, v in given.items() if v is not None)
        raise SpecError(
            f"{name} is {given[name]!r}, but action is 'error', which ends a run at the "
            "first bad sample: a limit needs 'skip', 'replace' or 'fill'"
        )
    return out


def dtype_name(name: str, v: DTypeLike) -> str:
    """Returns what the engine calls a dtype: one of numpy, ml_dtypes or torch, or a name of one."""
    if isinstance(v, str) and v in ("native", "bfloat16"):
        return v
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
    return dtype.name


def _check_of_sources(rows: Rows) -> None:
    """Refuses, for a mixture, what each of its sources has of its own."""
    for name in rows.changed():
        if name not in ("take", "steps_per_epoch"):
            raise SpecError(f"{name} is for each Source of a Mixture, not for all of it")


def _check_normalized(
    how: str,
    members: Sequence[Mapping[str, Any]],
    named: Mapping[str, Field],
    stats: Mapping[str, Any] | None,
) -> None:
    """Raises where the method that `load` was given is used by no field: that is a slip."""
    if any("normalize" in m or named[m["name"]].normalize is not None for m in members):
        return
    own = [m for m in members if "points" not in m and "vector" not in m]
    floats = [m["name"] for m in own if m.get("dtype") not in LABELS]
    if not floats:
        raise SpecError(
            f"normalize={how!r} goes with no field: fields of dtype 'native' and 'int64' are "
            "as stored"
        )
    raise SpecError(f"normalize={how!r}: stats has {sorted(stats or ())}, and none of {floats}")


def _of_dict(kind: type[T], where: str, v: Any) -> T:
    """Returns an object of a class, also of a dict of its members."""
    if isinstance(v, kind):
        return v
    if not isinstance(v, Mapping):
        one = "Points" if kind is Points else f"a {kind.__name__}"
        raise SpecError(f"{where} is {v!r}: it must be {one} or a dict")
    try:
        return kind(**v)
    except TypeError as e:
        names = [x.name for x in fields(kind)]  # type: ignore[arg-type]
        raise SpecError(f"{where}: {e}; there are {names}") from None


def build_field(name: str, f: FieldLike) -> Field:
    """Returns a field, however it was given."""
    if isinstance(f, Field):
        return f
    if isinstance(f, Points):
        return Field(points=f)
    if isinstance(f, Vector | Coco):
        return Field(vector=f)
    if isinstance(f, str):
        return Field(pattern=f) if "{id}" in f else Field(column=f)
    if isinstance(f, Mapping):
        return _of_dict(Field, f"field {name!r}", f)
    raise SpecError(
        f"field {name!r} is {f!r}: it must be a Field, Points, Vector, Coco, str or dict"
    )


def window_json(window: Size | Sampler | None) -> dict[str, Any] | None:
    """Returns the JSON of a sampler, or of random windows of a size; None if there is none."""
    if window is None or isinstance(window, get_args(Sampler)):
        return None if window is None else window.to_json()
    height, width = pair("window", window)
    return RandomWindow((height, width)).to_json()


def _mixture(m: Mixture, stats: Mapping[str, Any] | None) -> dict[str, Any]:
    """Returns a mixture's members."""
    check_source(m)
    return {
        "sources": [_source(name, s, stats) for name, s in m.sources.items()],
        **until_json(m.until),
        **members(m, "sources", "until", "weight"),
    }


def _source(name: str, s: Source | SourceLike, stats: Mapping[str, Any] | None) -> dict[str, Any]:
    """Returns the JSON of a source of a mixture."""
    if isinstance(s, Scenes):
        raise SpecError(f"source {name!r} is {s!r}: a Mixture does not take Scenes")
    if not isinstance(s, (Source, Mixture)):
        s = Source(s)
    out = {"name": name, "weight": above_zero(f"weight of source {name!r}", s.weight)}
    if isinstance(s, Mixture):
        return out | _mixture(s, stats)
    if s.rows.take is not None or s.rows.steps_per_epoch is not None:
        raise SpecError(f"source {name!r}: take and steps_per_epoch are for the whole Mixture")
    out |= place_json(s.source, s.rows.base_path) | s.rows.to_json()
    sampler = window_json(s.window)
    if sampler is not None:
        out["sampler"] = sampler
    if s.fields:
        out["fields"] = [_override(n, build_field(n, f), stats) for n, f in s.fields.items()]
    return out


def _override(name: str, f: Field, stats: Mapping[str, Any] | None) -> dict[str, Any]:
    """Returns the JSON of what a source's field has of its own."""
    out = _member(name, f, Field(), stats)
    if f.kind is None:  # a kind that the members imply; the engine refuses one that is given
        out.pop("kind", None)
    return out


def _kind(f: Field) -> str | None:
    """Returns what a field has to be: as it says, or because of what it gives.

    The engine does that for what `load` has not (bands, validity, ...); of the rest it cannot tell
    what is the field's own.
    """
    if f.kind is not None:
        return f.kind
    if any(v is not None for v in (f.layout, f.sizes, f.fill)) or f.pad:
        return "raster"
    if f.normalize is not None and f.normalize is not False:
        return "raster"
    return None if f.dtype is None else "array"


def _inherit(name: str, f: Field, default: Field, alone: bool) -> Field:
    """Returns a field with what `load` says of all fields.

    The fill of `load` is not for labels, where it would be a class: fields of dtype "native", and
    of integers without arithmetic. With one field (alone) it can mean nothing else.
    """
    dtype = default.dtype if f.dtype is None else dtype_name(f"field {name!r}: dtype", f.dtype)
    if f.kind in METADATA:
        return replace(f, dtype=None if f.dtype is None else dtype)
    pad = default.pad if f.pad is None else f.pad
    how = default.normalize if f.normalize is None else f.normalize
    as_is = how is None or how is False
    label = default.dtype is not None and (dtype in LABELS or dtype not in FLOATS and as_is)
    fill = f.fill
    if fill is None and (alone or not label):
        fill = default.fill
    elif fill is None and default.fill is not None and pad:
        raise SpecError(
            f"field {name!r}: dtype is {dtype!r} and pad is True: the fill of load is not for "
            "labels, and what is past the edge would be class 0; give Field(fill=...)"
        )
    return replace(
        f,
        layout=f.layout or default.layout,
        sizes=default.sizes if f.sizes is None else f.sizes,
        dtype=dtype,
        fill=fill,
        pad=pad,
    )


def _member(
    name: str, f: Field, default: Field, stats: Mapping[str, Any] | None, alone: bool = False
) -> dict[str, Any]:
    """Returns a field's JSON."""
    if f.points is not None:
        return {"name": name, **members(replace(f, points=None)), "points": _points(name, f.points)}
    if f.vector is not None:
        return {"name": name, **members(replace(f, vector=None)), "vector": _vector(name, f.vector)}
    inherited, how, kind = f.normalize is None, f.normalize, _kind(f)
    if inherited and f.kind not in METADATA:
        how = default.normalize
    f = _inherit(name, f, default, alone)
    out = {"name": name, **members(f, "kind", "bands", "normalize", "points", "vector")}
    if kind is not None:
        out["kind"] = kind
    bands = None if f.bands is None else plain(f"field {name!r}: bands", f.bands)
    if bands is not None:
        texts = isinstance(bands, list) and all(isinstance(b, str) for b in bands)
        out["band_names" if texts else "bands"] = bands
    if how is not None and how is not False and not (inherited and f.dtype in LABELS):
        n = _normalize(name, how, stats, inherited)
        if n is not None:
            out["normalize"] = n
    return out


def _points(name: str, p: Points | Mapping[str, Any]) -> dict[str, Any]:
    """Returns the JSON of the points of a field."""
    p = _of_dict(Points, f"field {name!r}: points", p)
    out = members(p, "timestamp", "space")
    if p.timestamp is not None:
        out["timestamp"] = timestamp_json(p.timestamp)
    if p.space != "pixel":
        out["in"] = p.space
    return out


def _vector(name: str, v: Vector | Coco | Mapping[str, Any]) -> dict[str, Any]:
    """Returns the JSON of the shapes of a field."""
    if not isinstance(v, Coco):
        v = _of_dict(Vector, f"field {name!r}: vector", v)
    out = members(v, "dtype")
    if isinstance(v, Coco):
        out["coco"] = True
    if v.dtype is not None:
        out["dtype"] = dtype_name(f"field {name!r}: vector: dtype", v.dtype)
    return out


def make_absolute(spec: dict[str, Any]) -> None:
    """Makes the paths of a spec, or of a source in it, absolute: an engine has its own folder."""
    for holder, key in (
        (spec, "source"),
        (spec, "base_path"),
        (spec.get("sampler", {}), "weights"),
        (spec.get("sampler", {}), "roi"),
        *((f["points"], "array") for f in spec.get("fields", ()) if "points" in f),
        *((f["vector"], "path") for f in spec.get("fields", ()) if "vector" in f),
    ):
        if holder.get(key) and not (key == "roi" and holder[key].lstrip().startswith("{")):
            holder[key] = absolute(holder[key])
    if "parts" in spec:
        spec["parts"] = [absolute(p) for p in spec["parts"]]
    for s in spec.get("sources", ()):
        make_absolute(s)


def _normalize(
    name: str,
    how: Normalize | str | Mapping[str, Any],
    stats: Mapping[str, Any] | None,
    inherited: bool,
) -> dict[str, Any] | None:
    """Returns the JSON of a normalisation, None if stats lacks a field that inherits it."""
    if isinstance(how, str):
        if how not in get_args(Method):
            raise SpecError(f"normalize is {how!r}: it must be one of {get_args(Method)}")
        if stats is None:
            raise SpecError(f"field {name!r}: normalize={how!r} needs stats")
        if name in stats:
            return {"method": how, "stats": _numbers(stats[name])}
        if inherited:  # a mask or a label
            return None
        raise SpecError(f"field {name!r}: stats has {sorted(stats)}")
    how = _of_dict(Normalize, f"field {name!r}: normalize", how)
    scale, offset = (
        list(v) if isinstance(v := plain(what, x), list) else [v]
        for what, x in (("scale", how.scale), ("offset", how.offset))
    )
    n = max(len(scale), len(offset))
    # -0 is made +0: the sum is the same but for the sign of a zero.
    offset = [v + 0.0 if isinstance(v, float) else v for v in offset]
    out = {
        "scale": scale * n if len(scale) == 1 else scale,
        "offset": offset * n if len(offset) == 1 else offset,
    }
    return out if how.clip is None else {**out, "clip": plain("clip", how.clip)}


def _numbers(field: Any) -> Any:
    """Returns the statistics of a field without histograms: a spec has at most 1 MiB."""
    bands = field.get("bands") if isinstance(field, Mapping) else None
    if not isinstance(bands, Sequence) or not all(isinstance(b, Mapping) for b in bands):
        return plain("stats", field)
    kept = ("name", "mean", "std", "min", "max", "percentiles")
    return {"bands": [{k: plain(k, b[k]) for k in kept if k in b} for b in bands]}


def _load_stats(stats: StatsLike) -> Mapping[str, Any]:
    """Returns the fields of a `chaski stats` JSON: a path, or what it holds."""
    if not isinstance(stats, Mapping):
        try:
            stats = json.loads(pathlib.Path(stats).read_bytes())
        except ValueError as e:
            raise SpecError(f"stats {stats}: {e}") from None
    table = stats.get("fields") if isinstance(stats, Mapping) else None
    if not isinstance(table, Mapping):
        raise SpecError("stats has no member 'fields'")
    return table
