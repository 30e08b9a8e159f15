"""`map=`: a function of a batch ahead of the loop, in a thread and in processes."""

from __future__ import annotations

import gc
import json
import multiprocessing
import os
import random
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import nonempty

import chaski
from chaski import Map

pytestmark = pytest.mark.usefixtures("one_engine")

ROOT = Path(__file__).parents[2]
COAST = str(ROOT / "testdata" / "demo" / "coast.tif")
OPTIONS: dict[str, Any] = {
    "window": chaski.RandomWindow(32, per_asset=20),
    "batch_size": 6,
    "fields": {"image": chaski.Field(column="path")},
}
FILE = {"path": [COAST]}


def turned(batch: chaski.Batch) -> dict[str, Any]:
    return {
        "turned": batch["image"].swapaxes(2, 3),  # not contiguous
        "place": (batch.epoch, batch.step),
        "mean": batch["image"].mean(axis=(0, 2, 3)),
        "none": batch["image"][:0],
        "names": [str(i) for i in batch["sample"]],
    }


def drawn(batch: chaski.Batch) -> tuple[float, float]:
    return random.random(), float(np.random.random())


def fails(batch: chaski.Batch) -> chaski.Batch:
    if batch.step == 1 and os.environ.get("FAILS"):
        raise KeyError("band 7")
    return batch


def dies(batch: chaski.Batch) -> chaski.Batch:
    if batch.step == 1:
        os._exit(3)
    return batch


class OwnError(Exception):
    """Does not survive a pickle: it takes two arguments."""

    def __init__(self, a: int, b: int) -> None:
        super().__init__(f"{a} and {b}")


def odd(batch: chaski.Batch) -> None:
    raise OwnError(1, 2)


def name(batch: chaski.Batch) -> int:
    return os.getpid()


def slow(batch: chaski.Batch) -> int:
    time.sleep(0.02)
    return batch.step


HOW = pytest.mark.parametrize("processes", [0, 1])


def check(got: dict[str, Any], want: chaski.Batch) -> None:
    assert np.array_equal(got["turned"], want["image"].swapaxes(2, 3))
    assert got["place"] == (want.epoch, want.step)
    assert np.array_equal(got["mean"], want["image"].mean(axis=(0, 2, 3)))
    assert got["none"].shape == (0, *want["image"].shape[1:])
    assert got["names"] == [str(i) for i in want["sample"]]


def two_epochs(loader: chaski.Loader) -> list[Any]:
    return [*loader, *loader]


@pytest.fixture(scope="module")
def sources(binary: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """The scene as a table, a catalog, a container, and on a server."""
    folder = tmp_path_factory.mktemp("map")
    catalog = folder / "catalog.parquet"
    subprocess.run([binary, "index", COAST, "-o", catalog], check=True, capture_output=True)
    about = {"id": "coast", "dataset_version": "1.0", "description": "A scene", "tasks": ["other"]}
    about |= {"licenses": ["MIT"], "providers": [{"name": "Ana"}]}
    chaski.pack([{"id": "coast", "path": COAST}], folder / "c.tacozip", about)
    line = [binary, "serve", "--listen", "127.0.0.1:0", "--root", ROOT / "testdata", "--insecure"]
    with subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as p:
        assert p.stdout is not None
        yield {
            "table": FILE,
            "catalog": catalog,
            "container": folder / "c.tacozip",
            "server": json.loads(p.stdout.readline())["listen"],
        }
        p.terminate()


@HOW
@pytest.mark.parametrize("kind", ["table", "catalog", "container", "server"])
def test_what_a_loop_over_the_batches_would_make(
    sources: dict[str, Any], kind: str, processes: int
) -> None:
    options = {k: v for k, v in OPTIONS.items() if k != "fields" or kind == "table"}

    def opened(**more: Any) -> chaski.Loader:
        if kind == "server":
            engine = chaski.Engine(transport="grpc")
            return chaski.connect(sources[kind], COAST, engine=engine, **options, **more)
        return chaski.load(sources[kind], **options, **more)

    with opened() as plain, opened(map=Map(turned, processes)) as mapped:
        for got, want in nonempty(zip(two_epochs(mapped), two_epochs(plain), strict=True)):
            check(got, want)
        check(mapped.peek(), plain.peek())


@HOW
def test_every_step_resumes(processes: int) -> None:
    how = Map(turned, processes)
    with chaski.load(FILE, **OPTIONS) as plain, chaski.load(FILE, map=how, **OPTIONS) as mapped:
        want = two_epochs(plain)
        states = [mapped.state_dict()]
        for _ in mapped:
            states.append(mapped.state_dict())
        assert [s["samples"] for s in states] == [0, 6, 12, 18, 20]
        for k, state in enumerate(states):
            mapped.load_state_dict(state)
            rest = list(mapped)
            assert len(rest) == (4 - k if k < 4 else 4)
            for got, w in nonempty(zip(rest, want[k:][: len(rest)], strict=True)):
                check(got, w)
        mapped.set_epoch(0)
        next(iter(mapped))  # a loop that is left
        check(next(iter(mapped)), want[4])


@HOW
def test_an_error_names_the_batch_and_the_loop_goes_on(
    processes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAILS", "1")
    with chaski.load(FILE, map=Map(fails, processes), **OPTIONS, shuffle=False) as loader:
        got = []
        with pytest.raises(RuntimeError) as raised:
            for batch in loader:
                got.append(batch.step)
        assert got == [0]
        said = "map: fails of step 1 of epoch 0 (samples 6, 7, 8, 9, 10, 11): KeyError: 'band 7'"
        assert str(raised.value) == said
        cause = raised.value.__cause__
        assert isinstance(cause, KeyError) and cause.args == ("band 7",)
        assert processes == 0 or "in fails" in str(cause.__cause__)  # the other traceback
        assert loader.state_dict()["samples"] == 6
        if processes == 0:
            monkeypatch.delenv("FAILS")
            assert [b.step for b in loader] == [1, 2, 3]


def test_processes_that_end_are_an_error() -> None:
    with chaski.load(FILE, map=Map(dies, 1), **OPTIONS) as loader:
        for _ in range(2):  # another process is there for the next loop
            with pytest.raises(RuntimeError, match="step 1 of epoch 0.*ended with code 3"):
                list(loader)
            loader.set_epoch(0)
    with chaski.load(FILE, map=Map(odd, 1), **OPTIONS) as loader:
        with pytest.raises(RuntimeError, match="step 0 .*OwnError: 1 and 2"):
            list(loader)


def test_random_numbers_of_processes_are_of_the_batch() -> None:
    runs = []
    for processes in (1, 3):
        with chaski.load(FILE, map=Map(drawn, processes), **OPTIONS) as loader:
            runs.append(two_epochs(loader))
    assert runs[0] == runs[1]
    assert len({v for pair in runs[0] for v in pair}) == 2 * len(runs[0])


def test_ahead_of_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[int] = []

    def note(batch: chaski.Batch) -> int:
        begun.append(batch.step)
        return batch.step

    with chaski.load(FILE, map=Map(note, ahead=2), **OPTIONS) as loader:
        loop = iter(loader)
        assert next(loop) == 0
        deadline = time.monotonic() + 10
        while len(begun) < 3 and time.monotonic() < deadline:
            time.sleep(0.01)
        time.sleep(0.1)
        assert begun == [0, 1, 2]


def test_arrays_stay_as_long_as_they_are_held() -> None:
    with (
        chaski.load(FILE, map=Map(fails, 1), **OPTIONS) as mapped,
        chaski.load(FILE, **OPTIONS) as plain,
    ):
        kept = two_epochs(mapped)
        for got, want in zip(kept, two_epochs(plain), strict=True):
            assert np.array_equal(got["image"], want["image"])
            assert (got.step, got.fields, got.dtypes) == (want.step, want.fields, want.dtypes)
            got["image"] += 1  # writable
    assert np.array_equal(kept[0]["image"].shape, (6, 6, 32, 32))


@HOW
def test_nothing_is_left_after_close(processes: int) -> None:
    others = {*threading.enumerate()}  # of tests whose errors hold their loaders
    loader = chaski.load(FILE, map=Map(slow, processes), **OPTIONS)
    assert list(loader) == [0, 1, 2, 3]
    next(iter(loader))
    if processes:
        assert multiprocessing.active_children()
    loader.close()
    assert not multiprocessing.active_children()
    loader = chaski.load(FILE, map=Map(slow, processes), **OPTIONS)
    next(iter(loader))
    del loader  # by its end, too
    gc.collect()
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        begun = {*threading.enumerate()} - others
        left = [t for t in begun if t.name.startswith("chaski-map")]
        if not left and not multiprocessing.active_children():
            break
        time.sleep(0.02)
    assert not left and not multiprocessing.active_children()


def test_processes_end_with_a_killed_program(binary: str, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import os, chaski\n"
        "def name(batch):\n"
        "    return os.getpid()\n"
        "if __name__ == '__main__':\n"
        f"    loader = chaski.load({COAST!r}, batch_size=2, window=chaski.RandomWindow(8, "
        "per_asset=9), map=chaski.Map(name, 1))\n"
        "    print(next(iter(loader)), flush=True)\n"
        "    input()\n"
    )
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, program], stdin=pipe, stdout=pipe, text=True) as p:
        assert p.stdout is not None
        other = int(p.stdout.readline())
        assert other not in (p.pid, os.getpid())
        p.kill()
        p.communicate(timeout=20)  # the other process has the pipe, too


def test_what_is_no_function_is_refused() -> None:
    with pytest.raises(chaski.SpecError, match="map is 3: it must be a function of a batch"):
        chaski.load(FILE, map=3, **OPTIONS)
    with pytest.raises(chaski.SpecError, match="cannot be sent to processes"):
        chaski.load(FILE, map=Map(lambda b: b, 1), **OPTIONS)
    with pytest.raises(chaski.SpecError, match="processes is -1"):
        chaski.load(FILE, map=Map(name, -1), **OPTIONS)
    with pytest.raises(chaski.SpecError, match="ahead is 0"):
        chaski.load(FILE, map=Map(name, ahead=0), **OPTIONS)


def torch_parts(batch: dict[str, Any]) -> Any:
    import torch

    image = batch["image"]
    many = {"half": image.to(torch.bfloat16), "step": batch.step}  # type: ignore[attr-defined]
    return (image.transpose(2, 3), [many, image[0, 0, 0, 0]], chaski.Ragged(image, image.bool()))


@HOW
@pytest.mark.parametrize("device", [None, "cpu"])
def test_tensors(processes: int, device: str | None) -> None:
    torch = pytest.importorskip("torch")
    from chaski.torch import IterableDataset

    how = {"map": Map(torch_parts, processes), "device": device}
    with (
        IterableDataset(FILE, **how, **OPTIONS) as mapped,
        IterableDataset(FILE, **OPTIONS) as plain,
    ):
        for (image, (many, one), ragged), want in nonempty(zip(mapped, plain, strict=True)):
            assert torch.equal(image, want["image"].transpose(2, 3))
            assert torch.equal(many["half"], want["image"].to(torch.bfloat16))
            assert one == want["image"][0, 0, 0, 0] and one.shape == ()
            assert torch.equal(ragged.values, want["image"].bool())
        state = mapped.state_dict()
    with chaski.load(FILE, **OPTIONS, map=Map(torch_parts, processes)) as loader:
        again = IterableDataset(loader)
        again.load_state_dict(state)
        assert next(iter(again))[1][0]["step"] == 0
        assert again.epoch == 1
