"""The client against a fake engine: order, credits, resuming, faults, deadlines, reconnection."""

from __future__ import annotations

import contextlib
import gc
import itertools
import json
import os
import threading
import time
import weakref
from types import SimpleNamespace

import grpc
import numpy as np
import pytest
from conftest import nonempty
from helpers import FakeEngine, T, alone, image_batch, payload, placed, serve
from patience import patiently

import chaski
from chaski._proto import chaski_pb2 as pb
from chaski._rpc import Connection
from chaski._run import Run

WAYS = "plain", "engine"
"""Who speaks to the server: this process, or the engine on this host as its client."""

way = "plain"
plain_only = pytest.mark.parametrize("speaks", ["plain"], indirect=True)


@pytest.fixture(autouse=True, params=WAYS)
def speaks(request, monkeypatch):
    global way
    way = request.param
    if way == "engine":
        request.getfixturevalue("binary")
    else:
        alone(monkeypatch)
    yield
    way = "plain"


def connect(target: str, **options) -> chaski.Loader:
    defaults = {"batch_size": 4, "timeout": 300}
    return chaski.connect(target, "d", **placed(**{**defaults, **options}))


def positions(batches) -> list[int]:
    return [int(p) for b in batches for p in b["position"] if p >= 0]


def test_epochs_that_follow_are_asked_for_ahead(fake):
    """Once a loop has gone on from the epoch before; a first one may be the last."""
    engine = FakeEngine(samples=10)
    with connect(fake(engine), prefetch=2) as loader:
        assert positions(loader) == list(range(10))
        time.sleep(0.3)
        assert {t.epoch for t in engine.tickets} == {0}
        assert positions(loader) == list(range(10))
        deadline = time.monotonic() + 20
        while {t.epoch for t in engine.tickets} != {0, 1, 2} and time.monotonic() < deadline:
            time.sleep(0.01)
        streams = engine.streams
        batches = list(loader)
        assert positions(batches) == list(range(10))
        assert {b.epoch for b in batches} == {2} and loader.epoch == 3
        assert engine.streams == streams
        loader.set_epoch(1)
        assert {b.epoch for b in loader} == {1}
        gone = weakref.ref(loader)
    del loader
    gc.collect()
    assert gone() is None


class OneStream(FakeEngine):
    """It gives a client one stream at a time."""

    active = False

    def Stream(self, requests, context):
        if self.active:
            context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "one stream")
        self.active = True
        try:
            yield from super().Stream(requests, context)
        finally:
            time.sleep(0.1)  # a server sees a moment later that a stream has ended
            self.active = False


@plain_only
def test_loops_that_take_turns_need_one_stream(fake):
    target = fake(OneStream(samples=10))
    with connect(target) as train, connect(target) as valid:
        for epoch in range(4):
            for loader in (train, valid):
                assert places(loader) == [(epoch, s) for s in range(3)]


def test_nothing_comes_after_the_last_epoch(fake):
    with connect(fake(FakeEngine(samples=10)), prefetch=5) as loader:
        loader.set_epoch(2**64 - 2)
        assert places(loader) == [(2**64 - 2, s) for s in range(3)]
        assert places(loader) == [(2**64 - 1, s) for s in range(3)]
        for _ in range(2):
            with pytest.raises(ValueError, match="last epoch has ended"):
                iter(loader)


def test_a_stream_that_ended_between_epochs(fake):
    """Its batches are asked for again, and it counts as no failure."""
    engine = FakeEngine(samples=10)
    with connect(fake(engine), prefetch=2, patience=0) as loader:
        for _ in range(2):
            list(loader)
        if way == "plain":
            run = loader._walk._run
            run._call.cancel()
            run._thread.join(20)
        assert places(loader) == [(2, 0), (2, 1), (2, 2)]


def test_any_way_through_epochs(fake):
    """A loop gives the steps from where the loader stands, whatever came before."""
    g = np.random.default_rng(8)
    with connect(fake(FakeEngine(samples=10)), prefetch=2) as loader:
        place = 0, 0
        for action in nonempty(
            g.choice(["epoch", "some", "set_epoch", "state"], 60, p=[0.6, 0.2, 0.1, 0.1])
        ):
            if action == "epoch":
                assert places(loader) == [(place[0], s) for s in range(place[1], 3)]
                place = place[0] + 1, 0
            elif action == "some":
                n = int(g.integers(1, 3 - place[1] + 1))
                some = places(itertools.islice(loader, n))
                assert some == [(place[0], s) for s in range(place[1], place[1] + n)]
                state, place = loader.state_dict(), (place[0] + 1, 0)
                assert (state["epoch"], state["samples"]) == (
                    place[0] - 1,
                    min(4 * (some[-1][1] + 1), 10),
                )
            elif action == "set_epoch":
                place = int(g.integers(5)), 0
                loader.set_epoch(place[0])
            else:
                state = loader.state_dict()
                loader.set_epoch(9)
                next(iter(loader))
                loader.load_state_dict(state)
                place = state["epoch"], -(-state["samples"] // 4)
            if place[1] == 3:  # a loop that took the last batch goes on with the next epoch
                place = place[0] + 1, 0
            batch = loader.peek()
            assert (batch.epoch, batch.step) == place


def test_epochs(fake):
    with connect(fake(FakeEngine(samples=10))) as loader:
        assert (len(loader), loader.samples, loader.epoch) == (3, 10, 0)
        for epoch in range(3):
            assert loader.epoch == epoch
            batches = list(loader)
            assert [b.step for b in batches] == [0, 1, 2]
            assert {b.epoch for b in batches} == {epoch}
            assert positions(batches) == list(range(10))
            assert [len(b["valid"]) for b in batches] == [4, 4, 2]
            image = np.concatenate([b["image"].reshape(-1)[b["valid"]] for b in batches])
            assert image.tolist() == list(range(10))


def test_last(fake):
    with connect(fake(FakeEngine(samples=10)), last="drop") as loader:
        assert len(loader) == 2
        assert positions(loader) == list(range(8))
    with connect(fake(FakeEngine(samples=10, hash="padded")), last="pad") as loader:
        assert len(loader) == 3
        assert positions(loader) == list(range(10))
        assert loader.peek()["valid"].all()
        *_, last = loader
        assert last["valid"].tolist() == [True, True, False, False]


@pytest.mark.parametrize("world", [1, 2, 3, 5])
def test_ranks(fake, world):
    target, padded = fake(FakeEngine(samples=10)), fake(FakeEngine(samples=10, hash="padded"))
    seen = []
    for rank in range(world):
        with connect(target, rank=rank, world_size=world) as loader:
            batches = list(loader)
            assert len(batches) == 3
            for b in batches:  # its own rows of the step, or one that is not valid
                own = [p for p in range(4 * b.step, min(4 * b.step + 4, 10))][rank::world]
                assert positions([b]) == own
                assert b["valid"].tolist() == [True] * len(own) or [False]
            seen += positions(batches)
        with connect(padded, rank=rank, world_size=world, last="pad") as loader:
            assert {len(b["valid"]) for b in loader} == {loader.local_batch_size}
    assert sorted(seen) == list(range(10))


def test_resume_at_every_step(fake):
    target = fake(FakeEngine(samples=10))
    with connect(target) as loader:
        whole = [positions([b]) for _ in range(2) for b in loader]
    for stop in range(6):
        with connect(target) as loader:
            seen = []
            left = stop
            for _ in range(2):
                for batch in loader if left else ():
                    seen.append(positions([batch]))
                    left -= 1
                    if left == 0:
                        break
            state = json.loads(json.dumps(loader.state_dict()))
            assert set(state) == {
                "version",
                "spec",
                "seed",
                "epoch",
                "samples",
            }  # a server that tells no parts
        with connect(target, rank=0, world_size=1) as loader:
            loader.load_state_dict(state)
            assert loader.state_dict() == state or state["samples"] == 10
            while len(seen) < 6:
                seen += [positions([b]) for b in loader]
        assert seen == whole


def test_state_is_what_was_received_not_what_is_on_its_way(fake):
    engine = FakeEngine(samples=40)
    with connect(fake(engine), prefetch=4) as loader:
        it = iter(loader)
        assert loader.state_dict()["samples"] == 0
        for step in range(3):
            next(it)
            assert loader.state_dict()["samples"] == 4 * (step + 1)


def test_state_of_another_run(fake):
    target = fake(FakeEngine())
    with connect(target, seed=1) as loader:
        good = loader.state_dict()
        for change, match in [
            ({"seed": 2}, "seed is 1, in the state 2"),
            ({"spec": "dead"}, "spec hash is cafe, in the state dead.*batch_size"),
            ({"version": 9}, "version 9 of the order; this chaski has 1"),
            ({"samples": 3}, "not between two steps"),
            ({"samples": 12}, "an epoch that has 10"),
            ({"epoch": -1}, "epoch -1"),
        ]:
            with pytest.raises(chaski.StateError, match=match):
                loader.load_state_dict({**good, **change})
        assert loader.state_dict() == good


def places(batches) -> list[tuple[int, int]]:
    return [(b.epoch, b.step) for b in batches]


@pytest.mark.parametrize("stop", [1, 2, 3])
def test_a_loop_that_was_left_and_its_state(fake, caplog, stop):
    """The next loop begins the next epoch, and a loaded state goes on with the rest of its own."""
    target = fake(FakeEngine(samples=10))
    every = [(epoch, step) for epoch in range(4) for step in range(3)]
    with connect(target) as live, connect(target) as resumed:
        for batch in live:
            if batch.step + 1 == stop:
                break
        resumed.load_state_dict(live.state_dict())
        assert places([live.peek()]) == [(1, 0)]
        for loader, begin in ((live, 3), (resumed, stop)):
            got = [place for _ in range(3) for place in places(loader)]
            assert got == every[begin : begin + len(got)] and len(got) >= 6
    assert not caplog.records


def test_frameworks_that_look_at_batches_first(fake):
    """Three validations of some batches see the same ones, and training begins at its first."""
    with connect(fake(FakeEngine(samples=40)), shuffle=False) as loader:
        seen = [positions(itertools.islice(loader, 3)) for _ in range(3)]
        assert seen == [list(range(12))] * 3
        assert places([loader.peek(), loader.peek()]) == [(3, 0)] * 2
        assert len(places(loader)) == len(loader) == 10


def test_set_epoch_begins_an_epoch_again(fake, caplog):
    with connect(fake(FakeEngine(samples=10))) as loader:
        for _ in range(2):
            batches = iter(loader)
            for _ in range(3):
                next(batches)
            loader.set_epoch(0)
        assert places(loader) == [(0, 0), (0, 1), (0, 2)]
    assert not caplog.records


def test_an_iterator_that_gave_no_batch_skips_nothing(fake):
    """Lightning requests two iterators before it trains."""
    with connect(fake(FakeEngine())) as loader:
        iter(loader)
        assert [b.epoch for b in loader] == [0] * len(loader)
        iter(loader)
        it = iter(loader)
        assert (next(it).epoch, next(it).step) == (1, 1)
        state = loader.state_dict()
        loader.load_state_dict(state)
        iter(loader)
        assert loader.state_dict() == state
        assert [(b.epoch, b.step) for b in loader][0] == (1, 2)


def test_set_epoch(fake):
    with connect(fake(FakeEngine())) as loader:
        loader.set_epoch(7)
        assert {b.epoch for b in loader} == {7}
        next(iter(loader))
        loader.set_epoch(8)
        assert [b.step for b in loader] == [0, 1, 2]
        state = {**loader.state_dict(), "epoch": 5, "samples": 4}
        loader.load_state_dict(state)
        loader.set_epoch(5)
        assert [(b.epoch, b.step) for b in loader] == [(5, 1), (5, 2)]
        with pytest.raises(ValueError):
            loader.set_epoch(-1)


def test_two_loops_at_a_time_are_an_error(fake):
    target = fake(FakeEngine(samples=10))
    with connect(target) as loader:
        with pytest.raises(RuntimeError, match="another one began; a loop inside a loop needs"):
            list(zip(loader, loader, strict=True))
    with connect(target) as loader:
        seen = []
        with pytest.raises(RuntimeError, match="another one began"):
            for batch in loader:
                seen += positions([batch])
                seen += positions(loader)
        assert seen == [0, 1, 2, 3, *range(10)], "the second one is an epoch of its own"
    with connect(target) as loader:
        first = iter(loader)
        list(loader)
        for _ in range(2):  # it stays an error
            with pytest.raises(RuntimeError, match="another one began"):
                next(first)


@pytest.mark.parametrize("call", ["load_state_dict", "set_epoch", "close"])
def test_a_loop_does_not_end_quietly_where_its_place_changes(fake, call):
    with connect(fake(FakeEngine(samples=10))) as loader:
        arguments = {"load_state_dict": [loader.state_dict()], "set_epoch": [3], "close": []}
        with pytest.raises(RuntimeError, match="closed" if call == "close" else call):
            for _ in loader:
                getattr(loader, call)(*arguments[call])
        if call != "close":
            epoch = 3 if call == "set_epoch" else 0
            assert places(loader) == [(epoch, 0), (epoch, 1), (epoch, 2)]


def test_a_loop_asks_for_batches_before_the_first_one_is_wanted(fake):
    """So that they are made while the caller still prepares something else."""
    engine = FakeEngine(samples=10)
    with connect(fake(engine)) as loader:
        loop = iter(loader)
        deadline = time.monotonic() + 60
        while not engine.tickets and time.monotonic() < deadline:
            time.sleep(0.01)
        assert engine.tickets
        assert positions(loop) == list(range(10))


def test_ctrl_c_never_meets_a_call_that_begins(fake, monkeypatch):
    """The main thread alone runs signal handlers: there, locks of gRPC would stay locked."""
    begun = []
    stream = Connection.stream

    def beginning(*given):
        begun.append(threading.current_thread())
        return stream(*given)

    monkeypatch.setattr(Connection, "stream", beginning)
    with connect(fake(FakeEngine(samples=10))) as loader:
        assert positions(loader) == list(range(10))
        loader.sample(3)
    assert len(begun) == 2
    assert threading.main_thread() not in begun


def test_a_loop_that_is_interrupted_as_it_begins(fake, monkeypatch):
    """Its stream ends, and so does its thread."""
    take = Run._take

    def interrupted(run, batches):
        take(run, batches)
        raise KeyboardInterrupt

    with connect(fake(FakeEngine(samples=10))) as loader:
        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(Run, "_take", interrupted)
            iter(loader)
        assert not [t for t in threading.enumerate() if t.name == "chaski-receive"]
        assert positions(loader) == list(range(10))


def test_a_loop_that_gave_no_batch_goes_along(fake):
    """Lightning makes the iterator before it sets the epoch."""
    with connect(fake(FakeEngine(samples=10))) as loader:
        loop = iter(loader)
        loader.set_epoch(4)
        loader.load_state_dict({**loader.state_dict(), "samples": 4})
        loader.set_epoch(4)
        assert places(loop) == [(4, 1), (4, 2)]
        assert places(loop) == []


def test_a_loop_that_failed_does_not_end_quietly(fake):
    broken = [True]

    def answer(t, e):
        fault = pb.Fault(kind="corrupt", message="a.tif: cut short")
        return fault if t.first == 4 and broken[0] else image_batch(t, e.samples)

    with connect(fake(FakeEngine(samples=10, answer=answer))) as loader:
        loop = iter(loader)
        next(loop)
        with pytest.raises(chaski.CorruptError):
            next(loop)
        with pytest.raises(RuntimeError, match=r"ended: it failed: a.tif: cut short"):
            next(loop)
        broken[0] = False
        assert places(loader) == [(0, 1), (0, 2)]


@pytest.mark.parametrize("prefetch", [1, 2, 5])
def test_prefetch_bounds_what_is_asked_for(fake, prefetch):
    engine = FakeEngine(samples=80)
    between = way == "engine"  # which knows of one ticket more: of the batch that it passes on
    with connect(fake(engine), prefetch=prefetch) as loader:
        for received, _ in nonempty(enumerate(loader, 1)):
            assert len(engine.tickets) <= received + prefetch + between
    assert [t.first for t in engine.tickets] == list(range(0, 80, 4))


@pytest.mark.parametrize("wire", ["auto", "native", "final"])
def test_wire(fake, wire):
    """An engine that is the client converts; this process does not."""
    engine = FakeEngine()
    with connect(fake(engine), wire=wire) as loader:
        list(loader)
    assert {t.native for t in engine.tickets} == {way == "engine" and wire != "final"}


KINDS = {
    "corrupt": chaski.CorruptError,
    "unsupported": chaski.UnsupportedError,
    "limit": chaski.LimitError,
    "not found": chaski.NotFoundError,
    "misplaced": chaski.MisplacedError,
    "unavailable": chaski.UnavailableError,
    "internal": chaski.Error,
}


@pytest.mark.parametrize("kind", KINDS)
def test_faults(fake, kind):
    fault = pb.Fault(kind=kind, file="a.tif", part="tile 3", offset=99, message=f"a.tif: {kind}")
    broken = [True]

    def answer(t, e):
        return fault if t.first == 4 and broken[0] else image_batch(t, e.samples)

    with connect(fake(FakeEngine(answer=answer)), patience=0) as loader:
        seen = []
        with pytest.raises(KINDS[kind], match="a.tif") as e:
            for b in loader:
                seen += positions([b])
        assert (e.value.kind, e.value.file, e.value.part, e.value.offset) == (
            kind,
            "a.tif",
            "tile 3",
            99,
        )
        assert seen == [0, 1, 2, 3]
        assert loader.state_dict()["samples"] == 4
        broken[0] = False
        assert positions(loader) == [4, 5, 6, 7, 8, 9]


def test_bad_rows_are_counted(fake):
    def answer(t, e):
        p = np.arange(t.first, t.first + 4)
        return payload(
            [T("image", np.zeros((4, 1, 1, 1), np.float32), axes="nbyx")],
            first=t.first,
            positions=p,
            valid=p % 4 != 1,
            bad=[(1, t.first + 1, "b.tif: cut short: corrupt")],
        )

    with connect(fake(FakeEngine(samples=8, answer=answer)), on_bad="skip") as loader:
        batches = list(loader)
        assert [b.bad[0].position for b in batches] == [1, 5]
        assert len(loader.bad) == 2
        assert loader.bad.rows[1][1].message == "b.tif: cut short: corrupt"
        assert "b.tif" in repr(loader.bad)


@pytest.mark.parametrize(
    "reply",
    [
        lambda t, e: image_batch(t, e.samples)[:-1],
        lambda t, e: b"\0" * 500,
        lambda t, e: payload(
            [T("image", np.zeros((4, 1, 1, 1), np.float32))], first=t.first + 1, rows=4
        ),
        lambda t, e: payload(
            [T("image", np.zeros((3, 1, 1, 1), np.float32))], first=t.first, rows=3
        ),
        lambda t, e: payload([T("image", np.zeros(4))], rows=4, first=t.first, epoch=t.epoch + 1),
    ],
)
def test_server_that_breaks_the_rules(fake, reply):
    with connect(fake(FakeEngine(answer=reply))) as loader:
        with pytest.raises(chaski.PayloadError):
            list(loader)


def test_stuck_server(fake):
    def answer(t, e):
        return None if t.first == 4 else image_batch(t, e.samples)

    def run(timeout: float) -> None:
        engine = fake(FakeEngine(answer=answer))
        with connect(engine, timeout=timeout, patience=0.0) as loader:
            it = iter(loader)
            next(it)
            with pytest.raises(
                chaski.DeadlineError,
                match=r"127\.0\.0\.1:\d+.*ticket 2 \(epoch 0, (step 1|position 4)\)",
            ):
                next(it)

    patiently(run, 1.5)


def test_a_server_that_is_stuck_for_a_while(fake):
    """A run outlives the silence of its only server while patience lasts, in its order."""

    def run(timeout: float) -> None:
        stuck = []

        def answer(t, e):
            if t.first == 4 and len(stuck) < 2:
                stuck.append(t)
                return None
            return image_batch(t, e.samples)

        engine = fake(FakeEngine(answer=answer))
        with connect(engine, timeout=timeout, patience=100 * timeout) as loader:
            assert positions(loader) == list(range(10))
        assert len(stuck) == 2

    patiently(run, 1)


@plain_only
def test_who_was_stopped_has_not_waited(fake, monkeypatch):
    """Time while the process is stopped or its machine sleeps does not count as a timeout."""
    stopped = [0.0]
    clock = SimpleNamespace(monotonic=lambda: time.monotonic() + stopped[0])
    monkeypatch.setattr("chaski._run.time", clock)
    asked, go = threading.Event(), threading.Event()

    def answer(t, e):
        if t.first == 4:
            asked.set()
            assert go.wait(300)
        return image_batch(t, e.samples)

    def stop() -> None:
        assert asked.wait(300)
        time.sleep(0.2)  # the user waits by now
        stopped[0] += 1000.0
        time.sleep(1.5)  # some slices
        go.set()

    thread = threading.Thread(target=stop)
    with connect(fake(FakeEngine(answer=answer)), timeout=300) as loader:
        thread.start()
        assert positions(loader) == list(range(10))
    thread.join()


def test_slow_server_is_not_stuck(fake):
    """Parts arrive within the timeout each, although the whole batch takes longer."""

    def run(timeout: float) -> None:
        def answer(t, e):
            e.part_bytes = 150
            time.sleep(0.4 * timeout)
            return image_batch(t, e.samples)

        engine = FakeEngine(samples=12, answer=answer)
        with connect(fake(engine), timeout=timeout, prefetch=3) as loader:
            assert positions(loader) == list(range(12))

    patiently(run, 2.5)


def test_a_server_on_this_host_is_asked_once(fake, binary, monkeypatch):
    """Whether it has shared memory is known from the answer that the loader needs anyway."""
    monkeypatch.setattr("chaski._rpc.Connection.side", lambda self, shared: None)
    engine = FakeEngine(samples=4)
    chaski.connect(fake(engine), "d", batch_size=4).close()
    assert len(engine.describes) == 1


def test_unknown_spec_is_described_again(fake):
    engine = FakeEngine(samples=40)

    def answer(t, e):
        if t.first == 12 and len(e.describes) == 1:
            e.known.clear()  # as if restarted: the next ticket is not known
        return image_batch(t, e.samples)

    engine.answer = answer
    with connect(fake(engine)) as loader:
        assert positions(loader) == list(range(40))
    assert len(engine.describes) == 2


@plain_only
def test_samples_of_a_server_that_restarts(fake):
    engine = FakeEngine(samples=10)
    with connect(fake(engine)) as loader:
        assert loader.sample(3)["image"].reshape(-1)[0] == 3
        engine.known.clear()
        assert loader.sample(4)["image"].reshape(-1)[0] == 4
        next(it := iter(loader))
        engine.known.clear()
        assert loader.sample(5)["image"].reshape(-1)[0] == 5
        assert positions(it) == list(range(4, 10))


@plain_only
def test_an_engine_that_has_closed_a_dataset(fake):
    """It has done so for want of memory, and answers: nobody waits for its end."""
    engine = FakeEngine(samples=10)
    with connect(fake(engine)) as loader:
        own = SimpleNamespace(
            alive=True, connection=loader._link._given, ended=lambda: pytest.fail("?")
        )
        loader._link._held = SimpleNamespace(engine=own)
        engine.known.clear()
        assert positions(loader) == list(range(10))
    assert len(engine.describes) == 2


@plain_only
def test_unknown_spec_for_ever_ends(fake):
    engine = FakeEngine(hash="cafe")
    engine.known = type("Never", (set,), {"add": lambda *_: None})()
    with connect(fake(engine), patience=0.2) as loader:
        with pytest.raises(chaski.Error, match=r"\?"):
            list(loader)
    assert len(engine.describes) == 3


def test_other_data_after_a_restart(fake):
    def answer(t, e):
        e.known.clear()
        e.hash = "other"
        return image_batch(t, e.samples)

    with connect(fake(FakeEngine(answer=answer))) as loader:
        with pytest.raises(chaski.StateError, match="other data"):
            list(loader)


@plain_only
def test_broken_connection_is_opened_again(fake):
    failures = [0]

    def answer(t, e):
        if t.first % 12 == 8 and failures[0] < t.first // 12 + 1:
            failures[0] += 1
            return RuntimeError("gone")
        return image_batch(t, e.samples)

    engine = FakeEngine(samples=40, answer=answer)
    with connect(fake(engine)) as loader:
        assert positions(loader) == list(range(40))
    assert failures[0] == 3 and engine.streams == 4


def test_server_that_restarts(fake):
    engine = FakeEngine(samples=40)
    server, port = serve(engine)
    with connect(f"127.0.0.1:{port}", patience=600) as loader:
        it = iter(loader)
        seen = positions([next(it)])
        server.stop(0).wait()
        timer = threading.Timer(0.3, lambda: servers.append(serve(engine, port)[0]))
        servers: list = []
        timer.start()
        seen += positions(it)
        assert seen == list(range(40))
    timer.join()
    servers[0].stop(0)


def test_server_that_is_gone(fake):
    server, port = serve(FakeEngine(samples=40))
    with connect(f"127.0.0.1:{port}", patience=0.3) as loader:
        it = iter(loader)
        next(it)
        server.stop(0).wait()
        with pytest.raises(chaski.UnavailableError, match=f"127.0.0.1:{port}"):
            for _ in it:
                pass
    with pytest.raises(chaski.UnavailableError):
        connect(f"127.0.0.1:{port}")


def test_closed(fake):
    loader = connect(fake(FakeEngine()))
    it = iter(loader)
    batch = next(it)
    loader.close()
    loader.close()
    with pytest.raises(RuntimeError, match="it was closed"):
        next(it)
    assert batch["image"].reshape(-1).tolist() == [0, 1, 2, 3]
    with pytest.raises(RuntimeError, match="closed"):
        iter(loader)


def threads() -> set[str]:
    return {t.name for t in threading.enumerate() if t.name.startswith("chaski")}


@plain_only
def test_nothing_is_left_behind(fake):
    before = threads()  # the engine that one-off reads keep may be there
    target = fake(FakeEngine(samples=80))
    loader = connect(target)
    it = iter(loader)
    next(it)
    assert threads() - before == {"chaski-receive"}
    del it, loader
    gc.collect()
    assert threads() == before
    with connect(target) as loader:
        list(loader)
        assert threads() == before
        for _ in loader:
            break
    assert threads() == before


def test_fork_is_refused(fake):
    with connect(fake(FakeEngine())) as loader:
        pid = os.getpid()
        try:
            loader._link._pid = -1
            with pytest.raises(RuntimeError, match="fork"):
                iter(loader)
        finally:
            loader._link._pid = pid
        batches = iter(loader)
        assert next(batches) is not None
        try:
            loader._link._pid = -1
            with pytest.raises(RuntimeError, match="fork"):  # the parent's iterator, in the child
                next(batches)
        finally:
            loader._link._pid = pid
        assert next(batches, None) is not None, "the parent goes on"


def test_wrong_arguments(fake):
    target = fake(FakeEngine())
    for options in (
        {"rank": 2, "world_size": 2},
        {"world_size": 1 << 32},
        {"rank": -1},
        {"world_size": 0},
        {"prefetch": 0},
        {"timeout": 0},
        {"wire": "fast"},
        {"batch_size": 11, "last": "drop"},
    ):
        with pytest.raises(chaski.SpecError):
            connect(target, **options)


def test_torch(fake):
    torch = pytest.importorskip("torch")
    import chaski.torch

    target = fake(FakeEngine())
    data = torch.utils.data.DataLoader
    with chaski.torch.IterableDataset("d", target=target, batch_size=4) as d:
        assert len(d) == 3
        first = next(iter(d))
        assert first["image"].dtype == torch.float32 and first["valid"].dtype == torch.bool
        state = d.state_dict()
        assert state["samples"] == 4
        d.load_state_dict(state)
        rest = [b["position"].tolist() for b in d]
        assert rest == [[4, 5, 6, 7], [8, 9]]
        batches = list(data(d, batch_size=None, num_workers=0))
        assert [b["position"].tolist() for b in batches] == [[0, 1, 2, 3], *rest]
        with pytest.raises(TypeError):
            chaski.torch.IterableDataset(d.loader, rank=0, world_size=1)
        assert len(chaski.torch.IterableDataset(d.loader)) == 3
    with pytest.raises(TypeError):
        chaski.torch.IterableDataset("d", target=target, batch_size=4, rank=0)


def test_torch_tensors():
    torch = pytest.importorskip("torch")
    from test_payload import assemble

    from chaski.torch import to_tensors

    bits = np.array([0x3F80, 0xC040, 0x7FC0], np.uint16)
    b = assemble(
        payload(
            [
                T("bf", bits.tobytes(), dtype="bfloat16", shape=(3,)),
                T("u16", bits),
                T("c", np.arange(4, dtype=np.int16).tobytes(), dtype="complex_int16", shape=(2,)),
                T("z", np.array([1 + 2j], np.complex64)),
                T("r", np.arange(5), kind=1, offsets=np.array([0, 2, 5])),
                T("t", b"abc", kind=2, offsets=np.array([0, 1, 3])),
            ]
        )
    )
    t = to_tensors(b)
    assert t["bf"].dtype == torch.bfloat16
    assert t["bf"][:2].tolist() == [1.0, -3.0] and t["bf"].isnan().tolist() == [False, False, True]
    assert t["u16"].dtype == torch.uint16
    assert t["c"].tolist() == [[0, 1], [2, 3]]
    assert t["z"].tolist() == [1 + 2j]
    assert t["r"][0].tolist() == [0, 2, 5] and t["r"][1].tolist() == [0, 1, 2, 3, 4]
    assert t["t"] == ["a", "bc"]
    b["u16"][0] = 7
    assert t["u16"][0] == 7  # no copy


def test_torch_distributed(fake, tmp_path):
    torch = pytest.importorskip("torch")
    import chaski.torch

    os.environ["RANK"], os.environ["WORLD_SIZE"] = "3", "4"
    with contextlib.ExitStack() as stack:
        stack.callback(os.environ.pop, "RANK")
        stack.callback(os.environ.pop, "WORLD_SIZE")
        target = fake(FakeEngine())
        d = stack.enter_context(chaski.torch.IterableDataset("d", target=target, batch_size=4))
        assert (d.loader.rank, d.loader.world_size) == (0, 1)
        torch.distributed.init_process_group(
            "gloo", init_method=f"file://{tmp_path}/r", rank=0, world_size=1
        )
        stack.callback(torch.distributed.destroy_process_group)
        d = stack.enter_context(chaski.torch.IterableDataset("d", target=target, batch_size=4))
        assert (d.loader.rank, d.loader.world_size) == (0, 1)
