"""Arguments become the JSON that the engine parses."""

from __future__ import annotations

import inspect
import json
import math
import os
import re
from dataclasses import replace
from datetime import datetime, timezone
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from conftest import nonempty
from helpers import refuse, spec_options

import chaski
from chaski import Field, Mixture, Normalize, SpecError, Time
from chaski._plain import dtype_name, plain
from chaski._read import selection
from chaski._spec import build_spec
from chaski._tables import Files

BASE = {
    "version": 1,
    "source": "d",
    "defaults": {"dtype": "auto"},
    "batch_size": 4,
    "shuffle": True,
    "seed": 0,
    "last": "short",
    "sampler": {"kind": "chip"},
    "bad_samples": "error",
}
STATS = {
    "fields": {
        "image": {
            "bands": [
                {"mean": 10, "std": 4, "min": 2, "max": 12, "percentiles": {"2.5": 3, "98.5": 8}},
                {"mean": 5, "std": 0, "min": 5, "max": 5, "percentiles": {"2.5": 5, "98.5": 5}},
            ]
        }
    }
}


def defaults(**members):
    return {"defaults": {**BASE["defaults"], **members}}


@pytest.mark.parametrize(
    "args,want",
    [
        ({}, {}),
        ({"layout": "n y x b", "dtype": "native"}, defaults(layout="n y x b", dtype="native")),
        ({"bands": (2, 0), "pad": True, "fill": 1}, defaults(bands=[2, 0], pad=True, fill=1.0)),
        ({"fill": math.nan}, defaults(fill="nan")),
        ({"fill": -math.inf, "validity": "ok"}, defaults(fill="-inf", validity="ok")),
        (
            {"sizes": {"p": 8}, "layout": "n b (y p) x"},
            defaults(sizes={"p": 8}, layout="n b (y p) x"),
        ),
        (
            {"normalize": Normalize(0.5, (1, 2), clip=(0, math.inf))},
            defaults(normalize={"scale": 0.5, "offset": [1, 2], "clip": [0, "inf"]}),
        ),
        ({"normalize": {"scale": np.array([2.0])}}, defaults(normalize={"scale": [2.0]})),
        ({"normalize": Normalize(offset=0)}, defaults(normalize={"offset": 0})),
        (
            {"normalize": Normalize(mean=0, std=np.array([2.0]))},
            defaults(normalize={"mean": 0, "std": [2.0]}),
        ),
        ({"stats": STATS["fields"]}, {"stats": STATS["fields"]}),
        (
            {"normalize": "mean_std", "stats": STATS},
            {**defaults(normalize="mean_std"), "stats": STATS["fields"]},
        ),
        ({"seed": 2**64 - 1, "shuffle": False}, {"seed": 2**64 - 1, "shuffle": False}),
        ({"last": "drop", "action": "skip"}, {"last": "drop", "bad_samples": "skip"}),
        (
            {"window": chaski.RandomWindow((64, 32), 4)},
            {"sampler": {"kind": "random_window", "size": [64, 32], "per_asset": 4}},
        ),
        ({"window": {"kind": "grid", "size": 8}}, {"sampler": {"kind": "grid", "size": 8}}),
        (
            {
                "fields": {
                    "image": "img/{id}.tif",
                    "mask": Field(pattern="m/{id}.tif", dtype="native", layout="n y x"),
                    "label": "class",
                    "dem": {"column": "dem", "normalize": False, "fill": math.nan},
                },
                "normalize": {"scale": 2.0},
            },
            {
                **defaults(normalize={"scale": 2.0}),
                "fields": {
                    "image": {"pattern": "img/{id}.tif"},
                    "mask": {"pattern": "m/{id}.tif", "dtype": "native", "layout": "n y x"},
                    "label": {"column": "class"},
                    "dem": {"column": "dem", "normalize": False, "fill": "nan"},
                },
            },
        ),
    ],
)
def test_spec(args, want):
    got = build_spec("d", spec_options(batch_size=4, **args))
    assert got == {**BASE, **want}
    json.dumps(got, allow_nan=False)


@pytest.mark.parametrize(
    "args,match",
    [
        ({"batch_size": 0}, "batch_size"),
        ({"batch_size": 2.0}, "batch_size"),
        ({"seed": -1}, "seed"),
        ({"seed": 1 << 64}, "seed"),
        ({"fields": {}}, "fields is empty"),
        ({"fields": {"valid": "c"}}, 'two members of a batch are called "valid", which has'),
        (
            {"rows": chaski.Rows(split=chaski.Split("hash", {"a": 1}, column="c"), use="a")},
            'by is "hash", and column is "c": "column" and "date" need one',
        ),
        ({"fields": {"geo": "c"}}, '"geo" is the name of the place of a window'),
        ({"fields": {"image": {"colunm": "c"}}}, "'colunm'"),
        ({"fields": {"image": 3}}, "image"),
        ({"fields": {"image": "c", "mask": "m"}, "bands": [1]}, "bands"),
        ({"bands": []}, "bands is empty"),
        ({"normalize": "mean_std"}, "needs stats"),
        ({"normalize": "mean"}, '^normalize is "mean": it must be .*mean_std.*percentile'),
        ({"on_bad": "guess"}, 'on_bad is "guess": it must be one of error, skip'),
        ({"fields": {"a": Field(bands=["B", 1])}}, r'field "a": bands\[0\] is "B"'),
        ({"normalize": "zscore", "stats": STATS}, "zscore"),
        ({"normalize": {"meen": 3}}, 'no member "normalize.meen"; there are clip'),
        ({"normalize": {"mean": 3}}, "mean has 1 values and std has 0"),
        ({"normalize": 3}, "normalize is 3"),
        ({"normalize": Normalize()}, "normalize: it is empty"),
        ({"fields": {"image": {"column": "c", "normalize": {}}}}, "normalize: it is empty"),
        ({"normalize": Normalize(math.nan)}, r'scale is "nan": it must be a number'),
        ({"normalize": "mean_std", "stats": {"bands": []}}, "'bands' is no field with bands"),
        ({"normalize": "mean_std", "stats": {"fields": []}}, "it must be what chaski.stats"),
        ({"normalize": "mean_std", "stats": STATS, "bands": [2]}, "2 bands"),
        ({"normalize": "mean_std", "stats": {"fields": {"image": {"bands": [1]}}}}, "is a number"),
        (
            {"fields": {"x": Field(normalize="mean_std")}, "stats": STATS},
            r'stats has \["image"\]',
        ),
        (
            {"normalize": "mean_std", "stats": {"fields": {"image": {"bands": [{"mean": 1}]}}}},
            "band 0",
        ),
        ({"window": True}, "window is True: it must be the side of a square, "),
        ({"window": "64"}, 'window is "64"'),
        ({"window": (64, 64, 1.5)}, "window is"),
        ({"fields": ["image"]}, "must be a dict"),
        ({"batch_size": True}, "batch_size"),
        ({"batch_size": np.float32(4)}, "batch_size"),
        ({"seed": np.int64(-1)}, "seed"),
        ({"augment": ["flip_x"]}, "augment is"),
        ({"use": 3}, "use is 3"),
        ({"where": ("cloud", "<", 10)}, r"^where\[1\] is .*goes into a list, \[\["),
        ({"where": ("site", "==", "a")}, "goes into a list"),
        ({"where": {"column": "cloud"}}, "must be SQL or a list"),
        ({"where": 3}, "must be SQL or a list"),
        ({"datetime": ("2020-01-01", "2020-02-01")}, r"datetime is \[.*: it must be a string"),
        (
            {"normalize": "mean_std", "stats": STATS, "fields": {"img": "a", "mask": "b"}},
            r'stats has \["image"\], and none of \["img" "mask"\]',
        ),
        ({"normalize": "mean_std", "stats": STATS, "dtype": "native"}, "as stored"),
        ({"bands": [0.7]}, r"bands\[0\] is 0.7: it must be a whole number"),
        ({"bands": [-1]}, "bands has -1: indices must be from 0"),
        ({"bands": "01"}, 'bands is "01": it must be a list'),
        ({"bands": 1}, "bands is 1"),
        ({"bands": np.array(1)}, "bands is 1: it must be a list"),
        ({"bands": [True, False]}, r"bands\[0\] is True"),
        ({"sizes": {"p": 1.5}}, "sizes.p is 1.5"),
        ({"sizes": [("p", 1)]}, "sizes is"),
        ({"fill": "none"}, 'fill is "none": it must be a number'),
        ({"normalize": {"scale": "12"}}, r'scale is "12"'),
        ({"normalize": {"offset": [0, "a"]}}, r'offset\[1\] is "a"'),
        ({"normalize": Normalize(clip=3)}, "clip is 3"),
        ({"normalize": Normalize(clip=(0, None))}, r"clip\[1\] is None"),
        ({"time": "date"}, 'time is "date": it must be a chaski.Time'),
        ({"strata": 3}, "strata is 3"),
        ({"split": ("a", "b")}, "split is .*: it must be the name of a part, or a split"),
        ({"window": "grid"}, 'window is "grid"'),
        ({"shuffle": "no"}, 'shuffle is "no": it must be True or False'),
        ({"shuffle": 0}, "shuffle is 0"),
        ({"last": True}, "last is True"),
        ({"pad": "True"}, 'pad is "True"'),
        ({"windows": "window"}, 'windows is "window"'),
        ({"fields": {"a": Field(pad=1)}}, 'field "a": pad is 1'),
        ({"max_count": 3}, "max_count is 3: the run ends at the first bad sample"),
        ({"max_rate": 0.1}, "max_rate is 0.1: the run ends at the first bad sample"),
        ({"max_count": -1, "action": "skip"}, "max_count is -1"),
        ({"max_count": 1.5, "action": "skip"}, "max_count is 1.5"),
        ({"max_rate": 2, "action": "skip"}, "max_rate is 2"),
        ({"max_rate": math.nan, "action": "skip"}, 'max_rate is "nan"'),
        ({"dtype": None}, "dtype is None"),
        ({"dtype": 3}, "dtype is 3"),
        ({"dtype": ">f4"}, "byte order"),
        ({"fields": {"a": Field(dtype=b"x")}}, "field 'a': dtype is b'x'"),
        ({"fields": {"a": Field(column=3)}}, 'field "a": column is 3: it must be a string'),
        ({"fields": {"a": Field(layout=("n", "x"))}}, 'field "a": layout is'),
        (
            {"fields": {"a": "a", "b": Field(column="b", dtype="native", pad=True)}, "fill": 0},
            'field "b": dtype is "native" and pad is true',
        ),
        (
            {"fields": {"a": "a", "b": "b"}, "dtype": "native", "fill": 0},
            "fill is 0, but no field takes it",
        ),
        ({"normalize": "mean_std", "stats": STATS, "dtype": "int64"}, "as stored"),
        ({"bbox_crs": 32633}, "there is no bbox"),
        ({"bbox": (0, 0, 1, 1), "bbox_crs": 0}, "bbox_crs is 0: it must be an EPSG code"),
        ({"bbox": (0, 0, 1, 1), "bbox_crs": "WGS 84"}, 'bbox_crs is "WGS 84"'),
    ],
)
def test_wrong_arguments(args, match):
    with pytest.raises(SpecError, match=match):
        refuse("d", **{"batch_size": 4, **args})


@pytest.mark.parametrize(
    "dtype,want",
    [
        ("native", "native"),
        ("bfloat16", "bfloat16"),
        ("f4", "float32"),
        ("<f4", "float32"),
        (np.float32, "float32"),
        (np.dtype("float16"), "float16"),
        (np.dtype(np.int64), "int64"),
        (np.uint8, "uint8"),
        ("flaot32", "flaot32"),  # the engine lists what there is
    ],
)
def test_dtypes_by_any_name(dtype, want):
    spec = build_spec("d", spec_options(batch_size=4, dtype=dtype))
    assert spec["defaults"] == {"dtype": want}
    spec = build_spec("d", spec_options(batch_size=4, fields={"a": Field(dtype=dtype)}))
    assert spec["fields"] == {"a": {"dtype": want}}


def test_dtypes_of_torch_and_ml_dtypes():
    torch = pytest.importorskip("torch")
    for dtype in ("float32", "float16", "bfloat16", "uint8", "int64"):
        assert dtype_name("dtype", getattr(torch, dtype)) == dtype
    ml_dtypes = pytest.importorskip("ml_dtypes")
    assert dtype_name("dtype", ml_dtypes.bfloat16) == "bfloat16"


def test_wrong_sampler_of_a_source():
    mixed = chaski.Mixture({"a": chaski.Source("d", window=chaski.Grid)})
    with pytest.raises(SpecError, match="window is .*Grid"):
        build_spec(mixed, spec_options(batch_size=4))


def documented(f):
    """Returns the names under "Args:" of a docstring."""
    args = inspect.getdoc(f).split("\nArgs:\n")[1].split("\n\n")[0]
    return re.findall(r"^    (\w+):", args, re.MULTILINE)


def test_signatures():
    """Both functions show all their arguments, and `load` documents what they share."""
    load, connect = (inspect.signature(f).parameters for f in (chaski.load, chaski.connect))
    assert set(documented(chaski.load)) == set(load)
    assert set(load) - {"workers", "memory", "max_chunk"} | set(documented(chaski.connect)) == set(
        connect
    )
    for name, p in nonempty(load.items()):
        assert p.kind == (p.POSITIONAL_OR_KEYWORD if name == "source" else p.KEYWORD_ONLY)
        assert name not in connect or connect[name] == p
    with pytest.raises(TypeError, match=r"^load\(\) got an unexpected keyword argument 'colour'"):
        chaski.load("x", batch_size=1, colour=3)
    with pytest.raises(TypeError, match=r"^connect\(\) missing 1 required.*'source'"):
        chaski.connect("x", batch_size=1)


@pytest.mark.parametrize(
    "args",
    [
        {"where": [("cloud", "<", 10)]},
        {"bbox": (0, 0, 1, 1)},
        {"bbox": (0, 0, 1, 1), "bbox_crs": 32633},
        {"split": "train"},
        {"time": Time("site", "date", 2)},
        {"base_path": "."},
        {"dims": "n y x"},
    ],
)
def test_conditions_are_for_the_sources_of_a_mixture(args):
    with pytest.raises(SpecError, match=f"^{next(iter(args))} is for each Source of a Mixture"):
        build_spec(Mixture({"a": "d", "b": "e"}), spec_options(batch_size=4, **args))


def test_numbers_of_numpy():
    o = spec_options(batch_size=np.int64(4), seed=np.uint8(7))
    a = build_spec("d", o)
    b = build_spec("d", replace(o, batch_size=4, seed=7))
    assert json.dumps(a) == json.dumps(b)


def test_arguments_as_json_has_them():
    """Numbers, lists and paths of other packages, and floats that JSON has no number for."""
    tensor = pytest.importorskip("torch").tensor
    for given, want in (
        (np.int16(3), 3),
        (Fraction(1, 4), 0.25),
        (Decimal("0.5"), 0.5),
        (np.array([1, 2]), [1, 2]),
        (tensor([1.5]), [1.5]),
        (range(2), [0, 1]),
        (Path("a") / "b", "a/b"),
        ({"p": np.uint8(2)}, {"p": 2}),
        ((math.nan, -math.inf), ["nan", "-inf"]),
        (np.True_, True),
        (Time("k", "t", 2), {"key": "k", "order": "t", "length": 2, "validity": "steps"}),
        (chaski.Grid(8), {"kind": "grid", "size": 8, "overlap": 0}),
        (np.array(["2020-01-02"], "datetime64[D]"), ["2020-01-02"]),
        (datetime(2020, 1, 2, tzinfo=timezone.utc), "2020-01-02T00:00:00+00:00"),
        (SimpleNamespace(to_epsg=lambda: 32630), 32630),
        (SimpleNamespace(__geo_interface__={"type": "Point"}), {"type": "Point"}),
    ):
        got = plain("x", given)
        assert got == want and type(got) is type(want)
        json.dumps(got, allow_nan=False)
    with pytest.raises(SpecError, match="^x is .*, which has no EPSG code"):
        plain("x", SimpleNamespace(to_epsg=lambda: None))
    for given in (b"x", object(), int, chaski.Grid):
        with pytest.raises(SpecError, match="^x is .*: a spec cannot hold"):
            plain("x", given)


def test_histograms_are_not_sent():
    given = {"fields": {"image": {"dtype": "uint8", "bands": [{"mean": 1, "histogram": [0] * 9}]}}}
    spec = build_spec("d", spec_options(batch_size=4, normalize="mean_std", stats=given))
    assert spec["stats"] == {"image": {"dtype": "uint8", "bands": [{"mean": 1}]}}


def test_stats_file(tmp_path):
    p = tmp_path / "stats.json"
    p.write_text(json.dumps(STATS))
    want = build_spec("d", spec_options(batch_size=4, normalize="min_max", stats=STATS))
    assert build_spec("d", spec_options(batch_size=4, normalize="min_max", stats=p)) == want
    p.write_text("{")
    with pytest.raises(SpecError, match=r"stats\.json"):
        build_spec("d", spec_options(batch_size=4, normalize="min_max", stats=str(p)))


@pytest.mark.parametrize(
    "s,want",
    [(None, ""), ((2, 5), "2:5"), (slice(2, 5), "2:5"), ([3, 1, 1], "3,1,1"), (np.array([4]), "4")],
)
def test_selection(s, want):
    assert selection("b", s, picks=True) == want


@pytest.mark.parametrize(
    "s", [(1, 2, 3), slice(1, 5, 2), slice(None, 5), [], [1], 5, "0:5", (0, 2.9), ("0", "2")]
)
def test_wrong_selections(s):
    with pytest.raises(SpecError, match="^y is"):
        selection("y", s, picks=False)


@pytest.mark.parametrize("s", [0, [], "01", [0.7], [None], [-1], np.array(0)])
def test_wrong_picks(s):
    with pytest.raises(SpecError, match="^b"):
        selection("b", s, picks=True)


def test_paths_of_scenes_are_absolute():
    """An engine may have been started in another folder."""
    fields = {"x": Field(scenes=["", "b", "s3://c/d"])}
    spec = build_spec("a", spec_options(batch_size=1, fields=fields), Files(fields, local=True))
    assert spec["fields"]["x"]["scenes"] == ["", os.path.abspath("b"), "s3://c/d"]
