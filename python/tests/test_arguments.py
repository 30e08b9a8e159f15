"""`load` has few arguments, with one type everywhere; those of earlier versions still work."""

from __future__ import annotations

import dataclasses
import inspect

import pytest

import chaski
import chaski.torch
from chaski._options import _CLASSES, _MOVED, LoadOptions, renewed
from chaski._spec import build_spec

NAMES = [f.name for f in dataclasses.fields(LoadOptions)]


def test_few_arguments():
    load = inspect.signature(chaski.load).parameters
    assert len(load) <= 16
    connect = inspect.signature(chaski.connect).parameters
    assert set(connect) == set(load) | {"target"}
    iterable = inspect.signature(chaski.torch.IterableDataset).parameters
    assert set(iterable) == set(connect)
    for name in set(load) - {"source", "batch_size", "rank", "world_size"}:
        assert iterable[name].annotation == load[name].annotation
    mapped = inspect.signature(chaski.torch.MapDataset).parameters
    gone = {"batch_size", "shuffle", "drop_last", "rank", "world_size"}
    assert set(mapped) == set(connect) - gone


def test_every_old_argument_has_a_place():
    for argument, member in _MOVED.values():
        assert argument in NAMES
        assert member in [f.name for f in dataclasses.fields(_CLASSES[argument])]


def test_old_arguments_give_the_same_spec():
    old = dict(
        batch_size=4,
        bands=["B04"],
        dtype="float16",
        fill=-1,
        pad=True,
        augment="d4",
        window=64,
        windows_per_asset=2,
        where=[("cloud", "<", 10)],
        split="train",
        take=100,
        bad_samples="skip",
        max_bad=3,
        workers=2,
        timeout=5,
    )
    new = LoadOptions(
        "d",
        batch_size=4,
        pixels=chaski.Pixels(bands=["B04"], dtype="float16", fill=-1, pad=True, augment="d4"),
        window=chaski.RandomWindow(64, per_asset=2),
        rows=chaski.Rows(where=[("cloud", "<", 10)], split="train", take=100),
        on_bad=chaski.OnBad("skip", max_count=3),
        engine=chaski.Engine(workers=2, timeout=5),
    )
    with pytest.warns(DeprecationWarning, match=r"where= is now rows=chaski.Rows\(where=...\)"):
        renamed = LoadOptions("d", **renewed("load", NAMES, old))
    assert renamed == new
    assert build_spec("d", renamed) == build_spec("d", new)
    with pytest.warns(DeprecationWarning, match="load: sampler= is now window="):
        mixed = renewed("load", NAMES, {"sampler": chaski.Grid(8), "on_bad": "skip", "max_bad": 1})
    assert mixed == {"window": chaski.Grid(8), "on_bad": chaski.OnBad("skip", max_count=1)}
    with pytest.warns(DeprecationWarning, match="Source: use= is now"):
        source = chaski.Source("d", use="train")
    assert source == chaski.Source("d", rows=chaski.Rows(use="train"))


def test_the_warning_is_about_the_callers_line():
    with pytest.warns(DeprecationWarning, match="load: dtype=") as seen:
        with pytest.raises(chaski.SpecError, match="batch_size"):
            chaski.load("d", batch_size=0, dtype="uint8")
    assert seen[0].filename == __file__


@pytest.mark.parametrize(
    "args,error,match",
    [
        ({"wher": []}, TypeError, r"load\(\) got an unexpected keyword argument 'wher'"),
        (
            {"rows": "cloud < 10"},
            chaski.SpecError,
            "rows is 'cloud < 10': it must be a chaski.Rows",
        ),
        ({"engine": 8}, chaski.SpecError, "engine is 8: it must be a chaski.Engine"),
        ({"pixels": {}}, chaski.SpecError, "pixels is {}: it must be a chaski.Pixels"),
        ({"fields": 3}, chaski.SpecError, "fields is 3: it must be a dict of fields by name"),
        ({"seed": None}, chaski.SpecError, "seed is None"),
        ({"shuffle": None}, chaski.SpecError, "shuffle is None"),
        ({"drop_last": None}, chaski.SpecError, "drop_last is None"),
        ({"rows": chaski.Rows(missing=None)}, chaski.SpecError, "missing is None"),
        ({"engine": chaski.Engine(retries=3)}, chaski.SpecError, "retries is 3: load has no use"),
    ],
)
def test_wrong_arguments(args, error, match):
    with pytest.raises(error, match=match):
        chaski.load("d", batch_size=1, **args)


def test_every_class_has_one_name():
    classes = [v for v in vars(chaski).values() if inspect.isclass(v)]
    for module in (chaski.taco, chaski.torch):
        classes += [getattr(module, name) for name in module.__all__]
    named: dict[str, object] = {}
    for c in classes:
        if inspect.isclass(c):
            assert named.setdefault(c.__name__, c) is c
