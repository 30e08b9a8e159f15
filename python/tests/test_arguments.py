"""`load` has few arguments, with one type everywhere."""

from __future__ import annotations

import inspect
import pydoc
import re

import numpy as np
import pytest
from conftest import nonempty

import chaski
import chaski.torch
from chaski import jobs, order, rumi, taco
from chaski._quarantine import Quarantine


def test_few_arguments():
    load = inspect.signature(chaski.load).parameters
    assert len(load) <= 17
    connect = inspect.signature(chaski.connect).parameters
    assert set(connect) == set(load) | {"target"}
    iterable = inspect.signature(chaski.torch.IterableDataset).parameters
    assert set(iterable) == set(connect) | {"device"}
    for name in nonempty(set(load) - {"source", "batch_size", "rank", "world_size"}):
        assert iterable[name].annotation == load[name].annotation
    mapped = inspect.signature(chaski.torch.MapDataset).parameters
    gone = {"batch_size", "shuffle", "last", "map", "rank", "world_size"}
    assert set(mapped) == set(connect) - gone


@pytest.mark.parametrize(
    "args,error,match",
    [
        (
            {"wher": []},
            TypeError,
            r"load\(\) got an unexpected keyword argument 'wher': "
            r"did you mean rows=chaski.Rows\(where=...\)\?$",
        ),
        ({"batchsize": 2}, TypeError, r"'batchsize': did you mean batch_size=...\?$"),
        ({"colour": 3}, TypeError, r"load\(\) got an unexpected keyword argument 'colour'$"),
        ({"drop_last": True}, TypeError, "'drop_last': write last=\"drop\"$"),
        ({"patch_size": 64}, TypeError, r"'patch_size': write window=chaski.RandomWindow\(...\)"),
        ({"transforms": abs}, TypeError, "'transforms': write map=..."),
        (
            {"rows": chaski.Rows(split={"train": 3, "val": 1}, use="val")},
            chaski.SpecError,
            r"split is .*: write chaski.Split.by_hash\({'train': 3, 'val': 1}\)",
        ),
        ({"bands": [0]}, TypeError, r"'bands': write pixels=chaski.Pixels\(bands=...\)"),
        ({"where": []}, TypeError, r"'where': write rows=chaski.Rows\(where=...\)"),
        ({"workers": 2}, TypeError, r"'workers': write engine=chaski.Engine\(workers=...\)"),
        ({"num_workers": 2}, TypeError, r"'num_workers': .* engine=chaski.Engine\(workers=...\)"),
        ({"transform": abs}, TypeError, r"'transform': write map=..."),
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
        ({"last": None}, chaski.SpecError, "last is None"),
        ({"rows": chaski.Rows(missing=None)}, chaski.SpecError, "missing is None"),
        ({"engine": chaski.Engine(patience=3)}, chaski.SpecError, "patience is 3: load has no use"),
        (
            {"engine": chaski.Engine(share="no")},
            chaski.SpecError,
            "share is 'no': .* True or False",
        ),
        ({"engine": chaski.Engine(reuse=2)}, chaski.SpecError, "reuse is 2: it must be True or"),
        ({"engine": chaski.Engine(timeout=True)}, chaski.SpecError, "timeout is True: it must be"),
        ({"engine": chaski.Engine(cache_bytes=10**9)}, chaski.SpecError, "no cache is given"),
        (
            {"engine": chaski.Engine(cache="c", cache_bytes=10)},
            chaski.SpecError,
            "cache_bytes is 10: it must be an int of at least 65536",
        ),
        (
            {"engine": chaski.Engine(cache=True, cache_bytes=10**9)},
            chaski.SpecError,
            "cache is True: it must be the path of a folder",
        ),
        ({"engine": chaski.Engine(ledger=True)}, chaski.SpecError, "ledger is True: it must be"),
        ({"engine": chaski.Engine(ledger=__file__)}, chaski.SpecError, "ledger is .*py': it must"),
        ({"rows": chaski.Rows(bad=5)}, chaski.SpecError, "bad is 5: it must be a list of ids"),
    ],
)
def test_wrong_arguments(args, error, match, monkeypatch):
    monkeypatch.delenv("CHASKI_CACHE_DIR", raising=False)
    with pytest.raises(error, match=match) as e:
        chaski.load("d", batch_size=1, **args)
    assert error is TypeError or e.value.kind == "spec"  # as the kind of one that a server refuses


@pytest.mark.parametrize(
    "call,match",
    [
        (lambda: chaski.Field(colum="a"), r"^Field\(\) .*'colum': did you mean column=...\?$"),  # type: ignore[call-arg]
        (lambda: chaski.Field(augment="d4"), r"write pixels=chaski.Pixels\(augment=...\)$"),  # type: ignore[call-arg]
        (lambda: chaski.Field(window=8), "chaski.load has it: write window=...$"),  # type: ignore[call-arg]
        (lambda: chaski.Grid(8, overlaps=2), r"did you mean overlap=...\?$"),  # type: ignore[call-arg]
        (lambda: chaski.GroundGrid(epgs=2), r"^GroundGrid\(\) .*did you mean epsg=...\?$"),  # type: ignore[call-arg]
        (lambda: chaski.Engine(num_workers=2), "write workers=...$"),  # type: ignore[call-arg]
        (lambda: chaski.Rows(filter="a"), "write where=...$"),  # type: ignore[call-arg]
        (lambda: chaski.Split(zzz=2), r"^Split\(\) .*: there are by, parts, column, "),  # type: ignore[call-arg]
        (lambda: chaski.Split.by_hash({}, sed=2), r"did you mean seed=...\?$"),  # type: ignore[call-arg]
        (lambda: chaski.read("a", bands=[0]), r"write b=\[...\], from 0$"),  # type: ignore[call-arg]
        (lambda: chaski.read("a", window=0), r"write y=\(start, stop\) and x="),  # type: ignore[call-arg]
        (lambda: chaski.taco.load("a", base=1), r"there are path, base_path, "),  # type: ignore[call-arg]
    ],
)
def test_unknown_arguments_are_told_what_there_is(call, match):
    with pytest.raises(TypeError, match=match):
        call()


def test_every_call_tells_what_there_is():
    """Each public function and class of arguments, with one frame of the package."""
    calls = [getattr(m, n) for m in (chaski, taco, rumi) for n in m.__all__]
    calls = [c for c in calls if inspect.isfunction(c) or hasattr(c, "__dataclass_fields__")]
    told = [chaski.Batch, chaski.Token, chaski.polygons, chaski.tls, chaski.show]
    told += [taco.Asset, taco.Chunk, rumi.tile, rumi.tile2, rumi.frames]
    made = {n for n in dir(rumi) if n in ("Frame", "Header", "Layout")}
    for call in nonempty([c for c in calls if c not in told and c.__name__ not in made]):
        with pytest.raises(TypeError, match=r"keyword argument 'zzz'(: there are |$)") as e:
            call(zzz=1)
        assert len(e.traceback) == 2, call


def test_help_describes_what_is_public():
    """`help` shows a class's own docstring alone, not that of a generated base."""
    for module in (chaski, jobs, order, rumi, taco):
        for name in nonempty(module.__all__):
            thing = getattr(module, name)
            if inspect.isclass(thing) or inspect.isfunction(thing):
                assert thing.__doc__, f"{module.__name__}.{name}"
    assert "windows on the ground" in pydoc.render_doc(chaski.Split)


def test_every_class_has_one_name():
    classes = [v for v in vars(chaski).values() if inspect.isclass(v)]
    for module in (chaski.taco, chaski.torch):
        classes += [getattr(module, name) for name in module.__all__]
    named: dict[str, object] = {}
    for c in nonempty(classes):
        if inspect.isclass(c):
            assert named.setdefault(c.__name__, c) is c


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"engine": None}, "engine is None: it must be a chaski.Engine"),
        ({"engine": {"workers": 1}}, "engine is {'workers': 1}: it must be a chaski.Engine"),
        ({"rows": {"take": 1}}, "rows is {'take': 1}: it must be a chaski.Rows"),
        ({"pixels": 3}, "pixels is 3: it must be a chaski.Pixels"),
        ({"on_bad": None}, "on_bad is None: it must have a value"),
        ({"tables": 3}, "tables has 3: write {path: column}, or [(table, column)]"),
        (
            {"rows": chaski.Rows(where=[("cloud", "<", 1), ("snow", "<", float("nan"))])},
            "where ('snow', '<', nan) has nan, which is not a number to compare with",
        ),
        (
            {"window": chaski.WholeChip(max_nodata=0.5, coverage=5)},
            "window: coverage is 5: it must be a str or an os.PathLike",
        ),
    ],
)
def test_an_argument_of_another_type_is_named(arguments, said):
    with pytest.raises(chaski.SpecError, match=f"^{re.escape(said)}$"):
        chaski.load("d", batch_size=1, **arguments)


def test_an_argument_of_another_type_is_named_by_every_call():
    dataset = taco.load("https://example.com/a.tacozip")
    rows = "rows is None: it must be a chaski.Rows"
    source = chaski.Mixture({"a": chaski.Source("d", rows=None)})
    server = {"target": "127.0.0.1:1", "source": "d", "batch_size": 1}
    for call, said in (
        (lambda: chaski.load(source, batch_size=1), f"source 'a': {rows}"),
        (lambda: chaski.stats("d", rows=None), rows),
        (lambda: dataset.loader(batch_size=1, rows=None), rows),
        (lambda: taco.concat([dataset, 3]), "concat has 3: it must have at least 2 datasets"),
        (lambda: taco.concat([dataset]), "concat has 1 datasets: it must have at least 2"),
        (lambda: chaski.connect(**{**server, "target": 3}), "target is 3: it must name"),
        (
            lambda: chaski.connect(**server, engine=chaski.Engine(credentials=3)),
            "credentials is 3: it must be what chaski.tls() returns",
        ),
    ):
        with pytest.raises(chaski.SpecError, match=f"^{re.escape(said)}"):
            call()


def test_other_types_are_no_switch_path_or_number(tmp_path):
    """What Python would take for True, or answer with an error of its own, is named."""
    batch = chaski.Batch({"image": np.zeros((1, 2, 2))})
    windows, grid = np.zeros((1, 1, 2, 2)), chaski.Grid(2)
    out, sample = tmp_path / "a.tif", [{"id": "a", "path": b"a"}]
    for call, said in (
        (lambda: chaski.paste(windows, "a", out, grid=grid, argmax="no"), "argmax is 'no': it mu"),
        (lambda: chaski.paste(windows, "a", out, grid=grid, overviews=2), "overviews is 2: it mus"),
        (lambda: chaski.paste(windows, "a", out, grid=grid, max_bytes=-1), "max_bytes is -1: it m"),
        (lambda: chaski.paste(windows, "a", out, grid=grid, argmax=True, classes=5), "classes is"),
        (lambda: chaski.paste(windows, "a", 5, grid=grid), "out is 5: it must be a str or"),
        (lambda: chaski.pack(sample, sample, {}), "output is [{'id'"),
        (lambda: chaski.pack(sample, "a.tacozip", 5), "collection is 5: it must"),
        (lambda: chaski.stac("a.json", None, ["a"]), "out is None: it must"),
        (lambda: chaski.stac(tmp_path, "a.parquet", ["a"]), "items is the folder"),
        (lambda: chaski.pasted(5), "resume is 5: it must"),
        (lambda: chaski.info(""), "path is empty: it must"),
        (lambda: chaski.info("a", timeout=0), "timeout is 0: it must"),
        (lambda: chaski.read("a", timeout=None), "timeout is None: it must"),
        (lambda: chaski.read("a", server=5), "server is 5: it must"),
        (lambda: chaski.read("a", sizes=[1]), "sizes is [1]: it must"),
        (lambda: chaski.read("a", num_threads=1 << 40), "num_threads is 1099511627776: it must"),
        (lambda: chaski.read("a", windows=[(0, 0, 2, 2)], y=(0, 2)), "windows are given, and y"),
        (lambda: taco.load("a", timeout=0), "timeout is 0: it must"),
        (lambda: chaski.weights("stats.json"), "stats is 'stats.json': it must"),
        (lambda: chaski.Stats().save(5), "path is 5: it must"),
        (lambda: chaski.polygons(batch, "image"), "name is 'image': it must"),
        (lambda: batch.plot(overlay="no"), "overlay is 'no': it must"),
        (lambda: batch.plot(size=-1), "size is -1: it must"),
        (lambda: batch.plot(ignore=5), "ignore is 5: it must"),
        (lambda: batch.plot(classes={"image": "ab"}), "classes of image is 'ab': it must"),
        (lambda: Quarantine(5, ""), "quarantine is 5: it must"),
        (lambda: chaski.Connection(5), "target is 5: it must"),
        (lambda: chaski.stac("a.json", "a.csv", ["a"]), "out is 'a.csv': it is a Parquet file"),
        (lambda: chaski.load("d", batch_size=1, fields={5: "a"}), "fields has the name 5: it must"),
        (lambda: chaski.load("d", batch_size=1, rows=chaski.Rows(use="")), "use is '': it must"),
        (
            lambda: chaski.load("d", batch_size=1, pixels=chaski.Pixels(validity="")),
            "validity is '': it must",
        ),
        (
            lambda: chaski.load("d", batch_size=1, engine=chaski.Engine(wire="native")),
            "wire is 'native': load has no use for it, connect has",
        ),
    ):
        with pytest.raises(chaski.SpecError, match=f"^{re.escape(said)}"):
            call()
    with pytest.raises(chaski.NotFoundError, match="ignore has 'imag': the batch has"):
        batch.plot(ignore={"imag": 0})
    for call, match in (
        (lambda: jobs.run("stats", 2), "command is 'stats': it must be a list"),
        (lambda: jobs.run(["stats"], 2.5), "shards is 2.5: it must"),
        (lambda: jobs.run(["stats"], 2, retries=-1), "retries is -1: it must"),
        (lambda: order.steps(1, 0), "n is 1 and g is 0"),
        (lambda: order.local_rows(1, 0), "world_size is 0"),
    ):
        with pytest.raises(ValueError, match=match):
            call()
    with pytest.raises(TypeError, match=r"^load\(\) takes source: name all others, as rows=...$"):
        chaski.load("d", 2)
