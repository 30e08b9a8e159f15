"""Names, words and defaults of the package are those of the engine's JSON Schema of specs."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import json
import re
import subprocess
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest
from conftest import nonempty
from helpers import spec_options

import chaski
from chaski import _arguments as arguments
from chaski import _fields, _spec, _windows

FULL = dict(
    batch_size=4,
    fields={
        "image": chaski.Field(
            pattern="i/{id}.tif",
            bands=["B04"],
            dtype="float32",
            layout="n (y p) x b",
            sizes={"p": 8},
            normalize=chaski.Normalize(2, 1, clip=(0, float("inf"))),
            fill=float("nan"),
            pad=True,
            validity="ok",
            resample="antialias",
            ground="ignore",
            wavelengths=[0.665],
            gsd=10,
        ),
        "bands": chaski.Field(columns=["B02", "B03"], grid=20.0, bands=[1, 0]),
        "files": chaski.Field(patterns=["{id}_a.tif", "{id}_b.tif"], grid="first"),
        "mask": chaski.Field(column="m", blob="b", kind="raster", bands=[0], dtype="native"),
        "v": chaski.Vector("s.parquet", "c", classes=["a"], all_touched=True, dtype="i8"),
    },
    augment="d4",
    windows=True,
    last="drop",
    take=100,
    action="skip",
    max_count=3,
    max_rate=0.5,
)
ROWS = dict(
    where=["a > 1", ("b", "in", [1, 2])],
    bbox=(0, 0, 1, 1),
    bbox_crs=32633,
    datetime="2020-01-01/2020-02-01",
    split=chaski.Split.by_lonlat(0.1, {"train": 1}, seed=3),
    use="train",
    strata=chaski.Strata("c", temperature=2, until=7, per_batch=True),
    missing="drop",
    base_path="b",
    dims="n y x",
    timestamp=(1, 2),
)
WINDOWS = [
    chaski.WholeChip(8),
    chaski.RandomWindow(8),
    chaski.Grid(8, overlap=2, pad=True),
    chaski.ResizedWindow(8, scale=(0.5, 2), of_asset=True),
    chaski.WeightedWindow(8, "w"),
    chaski.TileWindow(8, visits=2, tile=16, pool=3, pool_bytes=1 << 20),
    chaski.RowWindow(8, x="left", width="wide", fit="crop"),
    chaski.GeoWindow(80, 10, bounds=(0, 1, 2, 3), per_epoch=7, edge=True, pick="newest"),
    chaski.GeoWindow(80, 10, "EPSG:3035", roi={"type": "Polygon", "coordinates": []}, stride_m=40),
]
SPLITS = [
    chaski.Split.by_hash({"a": 1}),
    chaski.Split.by_column("c", {"a": 1}),
    chaski.Split.by_cell(3, {"a": 1}),
    chaski.Split.by_place(3, {"a": 1}, margin_m=500),
    chaski.Split.by_date("d", {"a": (None, "2020-01-01"), "b": ("2020-01-01", None)}),
    chaski.Split.given("part"),
]


@pytest.fixture(scope="module")
def schema(binary: str) -> Any:
    return json.loads(subprocess.check_output([binary, "spec", "--schema"]))


def check(root: Any, s: Any, v: Any, where: str) -> None:
    """Checks a value by the keywords that the schema uses."""
    while "$ref" in s:
        of = functools.reduce(dict.__getitem__, s["$ref"].split("/")[1:], root)
        s = {**{k: x for k, x in s.items() if k != "$ref"}, **of}
    if "anyOf" in s:
        fits = []
        for one in s["anyOf"]:
            with contextlib.suppress(AssertionError):
                check(root, one, v, where)
                fits.append(one)
        assert fits, f"{where}: {v!r} is none of {s['anyOf']}"
    if "enum" in s:
        assert v in s["enum"], f"{where}: {v}"
    kinds: Any = {"object": dict, "array": list, "string": str, "boolean": bool, "integer": int}
    kind = {**kinds, "number": (int, float)}.get(s.get("type"), object)
    assert isinstance(v, kind) and (kind is bool or not isinstance(v, bool)), f"{where}: {v!r}"
    if s.get("type") == "array":
        assert s.get("minItems", 0) <= len(v) <= s.get("maxItems", len(v)), where
        for x in v:
            check(root, s["items"], x, where)
    if isinstance(values := s.get("additionalProperties"), dict):
        for k, x in v.items():
            check(root, values, x, f"{where}.{k}")
    if "properties" in s:
        assert set(s.get("required", ())) <= set(v), where
        for k, x in v.items():
            assert k in s["properties"], f"{where}: {k}"
            check(root, s["properties"][k], x, f"{where}.{k}")


def test_specs_are_of_the_schema(schema: Any) -> None:
    def hold(source: Any = "d", **arguments: Any) -> None:
        spec = _spec.build_spec(source, spec_options(**arguments))
        check(schema, schema, json.loads(json.dumps(spec)), "spec")

    hold(**FULL, **ROWS)
    hold(batch_size=1, pixels=chaski.Pixels(geo=True))
    hold(["d", "e"], batch_size=1, time=chaski.Time("k", "o", 3, stride=1, cut=True))
    for window in WINDOWS:
        hold(batch_size=1, window=window)
    for split in SPLITS:
        hold(batch_size=1, split=split)
    source = chaski.Source("d", 2, {"image": chaski.Field(bands=[1])}, 8, chaski.Rows(dims="y x"))
    nested = chaski.Mixture({"b": "e"}, until="longest")
    hold(chaski.Mixture({"a": source, "n": nested}, until=7, per_batch=True), batch_size=1)
    hold(chaski.Mixture({"a": source}, batches="one source"), batch_size=1)


def test_words(schema: Any) -> None:
    def words(name: str, of: Any = schema) -> set[str]:
        return set(of["properties"][name]["enum"])

    defs = schema["$defs"]
    assert set(get_args(_fields.Augment)) == words("augment")
    assert set(get_args(arguments.BadSamples)) == words("bad_samples")
    assert set(get_args(arguments.Missing)) == words("missing")
    assert set(get_args(arguments.Last)) == words("last")
    assert set(get_args(_fields.Method)) == words("method", defs["Normalize"])
    until = schema["properties"]["until"]["anyOf"][0]["enum"]
    assert set(get_args(get_args(arguments.Until)[0])) == set(until) - {"length"}
    assert set(get_args(_fields.Kind)) == words("kind", defs["Field"]) - {"array"}
    assert {w._kind for w in WINDOWS} == words("kind", defs["Sampler"])
    assert {s.by for s in SPLITS} == words("by", defs["Split"])


def test_names_and_defaults(schema: Any) -> None:
    defs = schema["$defs"]
    same = {
        chaski.Field: (defs["Field"], {"bands"}),
        chaski.Vector: (defs["Vector"], set()),
        chaski.Normalize: (defs["Normalize"], {"scale", "offset"}),
        chaski.Strata: (defs["Strata"], {"until"}),
        chaski.Time: (defs["Time"], set()),
        chaski.Mixture: (schema, {"weight"}),
        chaski.ResizedWindow: (defs["Sampler"], {"size", "scale"}),
        chaski.TileWindow: (defs["Sampler"], {"size", "visits", "tile"}),
        chaski.RandomWindow: (defs["Sampler"], {"size"}),
        chaski.GeoWindow: (defs["Sampler"], set()),
        chaski.Rows: (schema, {"bbox", "bbox_crs", "datetime", "ids", "steps_per_epoch"}),
        chaski.Pixels: ({"properties": schema["properties"] | defs["Field"]["properties"]}, set()),
    }
    for kind, (of, other) in same.items():
        for f in nonempty(dataclasses.fields(kind)):  # type: ignore[arg-type]
            if f.name in other:
                continue
            member = of["properties"][f.name]  # KeyError: the engine has no such member
            if f.default not in (None, dataclasses.MISSING, False, ()) and f.name != "dtype":
                assert member["default"] == f.default, (kind, f.name)
    assert chaski.OnBad().action == schema["properties"]["bad_samples"]["default"]
    assert schema["properties"]["version"]["default"] == arguments.VERSION


def test_windows_have_all_members_of_their_kind(schema: Any) -> None:
    """A pair stands for its sides, and the side of a box for that of a `RowWindow`."""
    members = schema["$defs"]["Sampler"]["properties"]
    for window in WINDOWS:
        have = {f.name for f in dataclasses.fields(window)}
        sides = ("_y", "_x", "_height", "_width", "_min", "_max")
        have |= {name + side for name in have for side in sides}
        have |= {f"box_{name}" for name in have}
        of_kind = {n for n, m in members.items() if m.get("x-kind") == window._kind}
        assert of_kind <= have, window._kind
    assert [n for n, m in members.items() if m.get("x-path")] == _windows.SAMPLER_PATHS


def test_names_of_dtypes_have_the_order_of_the_engine() -> None:
    source = (Path(__file__).parents[2] / "format" / "dtype" / "dtype.go").read_text()
    names = dict(re.findall(r'(\w+): +\{"(\w+)"', source))
    constants = re.findall(r"^\t(\w+)$", source, re.MULTILINE)
    assert [names[c] for c in constants if c in names] == _fields.DTYPE_NAMES


def test_types_can_be_read_at_run_time() -> None:
    for kind in (chaski.Field, chaski.Rows, chaski.Mixture, chaski.TileWindow, chaski.Vector):
        assert get_type_hints(kind).keys() >= {f.name for f in dataclasses.fields(kind)}
