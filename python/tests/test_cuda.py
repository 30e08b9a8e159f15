"""Batches on a device are those of the engine, bit for bit, and come one ahead.

With a GPU this takes a minute, and is all that has to be run: pytest python/tests/test_cuda.py
"""

from __future__ import annotations

import contextlib
import logging
import pickle
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from conftest import nonempty

torch = pytest.importorskip("torch")

import chaski.torch  # noqa: E402
from chaski import _device, _run  # noqa: E402
from chaski._assemble import Batch, Convert, Ragged  # noqa: E402
from chaski.errors import PayloadError  # noqa: E402
from chaski.order import Ticket  # noqa: E402

TESTDATA = Path(__file__).resolve().parents[2] / "testdata"
COAST = TESTDATA / "demo" / "coast.tif"  # uint16, 6 bands
WINDOW = chaski.RandomWindow((64, 48), 20)
STATS = {
    "mean": [900.0, 1000.5, 1100.25, 1300, 2000, 1500],
    "std": [301, 402.5, 503, 604, 705, 806],
}


@pytest.fixture(params=["cpu", "cuda", "mps"])
def device(request) -> str:
    there = {
        "cpu": lambda: True,
        "cuda": torch.cuda.is_available,
        "mps": torch.backends.mps.is_available,
    }
    if not there[request.param]():
        pytest.skip(f"no {request.param}")
    return request.param


def bits(a) -> np.ndarray:
    """Returns what an array or a tensor is made of."""
    if torch.is_tensor(a):
        a = a.detach().cpu().contiguous()
        return a.reshape(-1).view(torch.uint8).numpy()
    return np.ascontiguousarray(a).reshape(-1).view(np.uint8)


def same(got: dict, want: chaski.Batch) -> None:
    assert got.keys() == want.keys()
    for name, w in want.items():
        g = got[name]
        for x, y in zip(g, w, strict=True) if isinstance(w, Ragged) else [(g, w)]:
            if isinstance(x, list):
                assert x == y.tolist()
                continue
            assert tuple(x.shape) == y.shape, name
            assert np.array_equal(bits(x), bits(y)), name
    assert got.dtypes == want.dtypes and got.axes == want.axes


PIXELS = {
    "float32": chaski.Pixels(),
    "float32 clipped": chaski.Pixels(),
    "bfloat16 of bytes": chaski.Pixels(dtype="bfloat16"),
    "float16 of bytes": chaski.Pixels(dtype="float16"),
    "bands last": chaski.Pixels(layout="n y x b"),
    "one axis": chaski.Pixels(layout="n (b y) x"),
    "int64": chaski.Pixels(dtype="int64"),
    "final": chaski.Pixels(validity="seen"),
    "as stored": chaski.Pixels(dtype="native"),
}


@pytest.fixture(scope="module")
def files(tmp_path_factory) -> dict[str, Path]:
    """Returns a raster with and one without nodata, of 8 and of 16 bits."""
    rasterio = pytest.importorskip("rasterio")
    folder = tmp_path_factory.mktemp("files")
    g = np.random.default_rng(3)
    out = {}
    for dtype, top in (("uint8", 256), ("uint16", 65536), ("int16", 9000)):
        for nodata in (None, 0):
            path = folder / f"{dtype}-{nodata}.tif"
            size = {"width": 200, "height": 170, "count": 6, "tiled": True}
            size |= {"blockxsize": 64, "blockysize": 64}
            with rasterio.open(path, "w", dtype=dtype, nodata=nodata, **size) as d:
                pixels = g.integers(0, top, (6, 170, 200)).astype(dtype)
                pixels[:, 40:90, 30:99] = 0
                d.write(pixels)
            out[f"{dtype} {nodata}"] = path
    return out


@pytest.mark.parametrize("nodata", [None, 0])
@pytest.mark.parametrize("how", PIXELS)
def test_the_same_bits(binary, device, files, how, nodata, monkeypatch):
    converted, convert = [], _device.convert
    monkeypatch.setattr(
        _device, "convert", lambda x, c, m: (converted.append((x.dtype, c.to)), convert(x, c, m))[1]
    )
    kind = "uint8" if "bytes" in how else "uint16"
    options = {"batch_size": 7, "window": WINDOW, "pixels": PIXELS[how], "shuffle": True}
    if how not in ("as stored", "int64", "one axis"):
        options["normalize"] = STATS | ({"clip": [-1, 1.5]} if "clipped" in how else {})
    source = files[f"{kind} {nodata}"]
    epochs = chaski.load(source, **options)
    want = list(epochs) + list(epochs)
    with chaski.torch.IterableDataset(source, device=device, **options) as d:
        for got, w in nonempty(zip(list(d) + list(d), want, strict=True)):
            assert got["image"].device.type == device
            same(got, w)
    native = device != "mps" and how not in ("final", "as stored")
    assert bool(converted) == native
    if native:
        assert {to for _, to in converted} == {how.split()[0]} - {"bands", "one"} or {
            to for _, to in converted
        } == {"float32"}


def test_shapes_texts_and_places(binary, device):
    """Members that are no rasters come along."""
    fields = {"image": "path", "where": chaski.Field(column="name", kind="text")}
    pixels = chaski.Pixels(geo=True)
    options = {"batch_size": 4, "window": WINDOW, "fields": fields, "pixels": pixels}
    table = {"path": [str(COAST)], "name": ["coast é"]}
    want = next(iter(chaski.load(table, **options)))
    with chaski.torch.IterableDataset(table, device=device, **options) as d:
        got = next(iter(d))
    assert got["where"] == want["where"].tolist()
    if device != "mps":
        same(got, want)
    boxes = Ragged(np.array([0, 1, 3]), np.arange(12, dtype=np.float32).reshape(3, 4))
    batch = Batch(boxes=boxes)
    _device.mover(torch.device(device), chaski.torch.to_tensors).move(batch)
    assert batch["boxes"].values.device.type == device
    assert [r.tolist() for r in batch["boxes"].rows()] == [r.tolist() for r in boxes.rows()]


def test_arithmetic():
    """The judge is numpy, whose operations round one by one, too."""
    g = np.random.default_rng(5)
    scale = g.normal(size=3).astype(np.float32) / 977
    offset = g.normal(size=3).astype(np.float32) * 7
    x = g.integers(0, 65536, (5, 3, 31, 17)).astype(np.uint16)
    mask = (g.random(x.shape) > 0.1).astype(np.uint8)
    shape = (1, 3, 1, 1)
    want = (x.astype(np.float32) * scale.reshape(shape)) + offset.reshape(shape)
    want = np.where(mask, np.clip(want, np.float32(-5.5), np.float32(40.25)), np.float32(-7))
    c = Convert("float32", scale, offset, 1, (-5.5, 40.25), -7.0, mask)
    got = _device.convert(torch.from_numpy(x.copy()), c, torch.from_numpy(mask))
    assert np.array_equal(got.numpy().view(np.uint32), want.view(np.uint32))


class Late(_device.Stream):
    """A stream whose copies end when they are waited for, which sees what happens until then."""

    def __init__(self, device, held=lambda: 0) -> None:
        super().__init__(device)
        self.held, self.log, self.moved, self.taken = held, [], 0, 0
        self.copies = []

    def copy(self, tensor):
        out = super().copy(tensor)
        self.copies.append((tensor, out.clone()))
        return out

    def copied(self):
        def wait():
            time.sleep(0.01)
            self.log.append(("copied", self.held()))
            for source, at_once in self.copies:  # nobody has written there since
                assert np.array_equal(bits(source), bits(at_once))
            self.copies.clear()
            self.moved += 1

        return wait

    def done(self, results):
        def wait():
            self.taken += 1

        return wait


def late(dataset: chaski.torch.IterableDataset) -> Late:
    stream = Late(torch.device("cpu"), lambda: len(dataset.loader._link.connection._side._held))
    dataset._mover = _device.Mover(stream, chaski.torch.to_tensors)
    return stream


def test_memory_goes_back_after_the_copy(binary, monkeypatch):
    with chaski.torch.IterableDataset(COAST, batch_size=4, window=WINDOW, normalize=STATS) as d:
        if not d.loader._link.described.reply.shared.address:
            pytest.skip("no shared memory")
        stream = late(d)
        move = _device.Mover.move
        after = []

        def moved(mover, batch):
            move(mover, batch)
            after.append(stream.held())

        monkeypatch.setattr(_device.Mover, "move", moved)
        kept = list(d)
        assert len(kept) == len(d) == 5
        assert [held for _, held in stream.log] == [1] * 5  # the batch that is copied
        assert after == [0] * 5  # also while the loop keeps all batches


def test_one_ahead(binary):
    with chaski.torch.IterableDataset(COAST, batch_size=2, window=WINDOW, normalize=STATS) as d:
        stream = late(d)
        for k, _ in enumerate(d, 1):
            deadline = time.monotonic() + 20
            while stream.moved < min(k + 1, len(d)) and time.monotonic() < deadline:
                time.sleep(0.01)
            time.sleep(0.02)
            assert (stream.taken, stream.moved) == (k, min(k + 1, len(d)))
            assert d.state_dict()["samples"] == 2 * k  # and not what is ahead
            if k == 6:
                break
        d.load_state_dict(d.state_dict())
        rest = list(d)
        assert len(rest) == len(d) - 6 and d.epoch == 1


def test_what_a_copy_raises(binary, device, monkeypatch):
    """The loop raises it, and a new one goes on at the same step."""
    options = {"batch_size": 4, "window": WINDOW}
    with chaski.torch.IterableDataset(COAST, device=device, **options) as d:
        move, calls = _device.Mover.move, []

        def full(mover, batch):
            calls.append(batch.step)
            if len(calls) == 3:
                raise torch.OutOfMemoryError("no memory")
            move(mover, batch)

        monkeypatch.setattr(_device.Mover, "move", full)
        with pytest.raises(torch.OutOfMemoryError):
            list(d)
        assert len(list(d)) == 3


def test_a_device_that_is_not_there():
    with pytest.raises(RuntimeError):
        chaski.torch.IterableDataset(COAST, batch_size=4, device="cuda:99")
    with pytest.raises(RuntimeError):
        chaski.torch.IterableDataset(COAST, batch_size=4, device="somewhere")


def test_a_loader_and_a_device(binary, device):
    with chaski.load(COAST, batch_size=4, window=WINDOW) as loader:
        d = chaski.torch.IterableDataset(loader, device=device)
        assert next(iter(d))["image"].device.type == device
        pickle.dumps(d)  # for the workers of a DataLoader, which say why they do not work
        assert isinstance(next(iter(loader))["image"], np.ndarray)


def test_registered_once(binary, monkeypatch, caplog):
    """Each segment once, until it is unmapped; what is refused is said once, and copied."""
    now: dict[int, int] = {}
    ever = []

    class Registering(Late):
        def register(self, memory):
            at = memory.ctypes.data
            assert at not in now
            if len(ever) >= 2:
                raise OSError("no more")
            now[at] = memory.nbytes
            ever.append(at)
            return lambda: now.pop(at)

    monkeypatch.setattr(_device, "_refused", False)
    options = {"batch_size": 4, "window": chaski.RandomWindow(256, 20), "normalize": STATS}
    own = chaski.Engine(share=False, reuse=False)  # its segments are of this loader alone
    with caplog.at_level(logging.WARNING), contextlib.ExitStack() as stack:
        d = stack.enter_context(chaski.torch.IterableDataset(COAST, **options, engine=own))
        if not d.loader._link.described.reply.shared.address:
            pytest.skip("no shared memory")
        d._mover = _device.Mover(Registering(torch.device("cpu")), chaski.torch.to_tensors)
        want = stack.enter_context(chaski.load(COAST, **options))
        for _ in range(2):
            for got, w in zip(d, want, strict=True):
                same(got, w)
        side = d.loader._link.connection._side
        assert 0 < len(now) <= len(side._segments) and set(now) == set(ever)
        refused = len(side._segments) > 2
    assert [r for r in caplog.records if "pageable" in r.message] == [] or refused
    assert len([r for r in caplog.records if "pageable" in r.message]) <= 1
    deadline = time.monotonic() + 20
    del got, w, want, d, side  # all batches: those of both loops may share a segment
    while now and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not now


def test_what_is_not_final_is_refused_by_who_did_not_ask():
    run = object.__new__(_run.Run)
    run._target, run._native = "here", False
    run._description = SimpleNamespace(reply=SimpleNamespace(samples=4))
    batch = Batch(position=np.arange(4))
    job = _run.Job(1, 0, Ticket.of_step(0, 0, 4))
    run._check(batch, job)
    batch._converts = {"image": Convert("float32", np.ones(0), np.ones(0), -1, None, 0, None)}
    with pytest.raises(PayloadError, match="not final"):
        run._check(batch, job)


@pytest.fixture
def cuda() -> _device._Cuda:
    if not torch.cuda.is_available():
        pytest.skip("no cuda")
    return _device._Cuda(torch.device("cuda"))


def test_cuda_waits_for_the_side_stream(cuda):
    """What the loop's stream computes sees the batch, however late the copy is."""
    memory = np.full(1 << 24, 7, np.uint8)
    end = cuda.register(memory)
    source = torch.from_numpy(memory)
    assert source.is_pinned()
    with cuda.order():
        torch.cuda._sleep(200_000_000)
        moved = cuda.copy(source)
        copied = cuda.copied()
        y = moved.to(torch.float32).mul_(2)
        arrived = cuda.done([y])
    arrived()
    total = y.sum()
    copied()
    memory[:] = 0
    assert float(total) == 14.0 * memory.size
    del source
    end()


def test_cuda_refuses(cuda):
    """Memory that CUDA does not register is copied all the same, and no later call fails of it."""
    memory = np.full(1 << 20, 3, np.uint8)
    end = cuda.register(memory)
    with pytest.raises(OSError, match="error 712"):  # cudaErrorHostMemoryAlreadyRegistered
        cuda.register(memory)
    end()
    with cuda.order():
        moved = cuda.copy(torch.from_numpy(memory))
        copied = cuda.copied()
        arrived = cuda.done([moved])
    copied()
    arrived()
    assert int(moved.sum()) == 3 << 20
