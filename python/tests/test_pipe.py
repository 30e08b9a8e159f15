"""Pipes: the same batches into memory that is used again, and gRPC where there is no pipe."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import struct
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from helpers import alone, eventually
from test_access import serving

import chaski
from chaski import _pipe, _run
from chaski._assemble import Pool, Whole
from chaski.errors import LimitError, PayloadError, UnavailableError

SCENE = Path(__file__).resolve().parents[2] / "testdata" / "demo" / "coast.tif"
OPTIONS = {"batch_size": 8, "window": chaski.RandomWindow((64, 48), 60), "shuffle": True}
HIDDEN = "--no-shared-memory", "--stop-on-eof"


@pytest.fixture
def made(monkeypatch) -> list[_pipe.Pipe]:
    """Returns the pipes that are opened from now on."""
    pipes: list[_pipe.Pipe] = []
    opened = _pipe.Pipe.__init__

    def init(pipe, *given):
        opened(pipe, *given)
        pipes.append(pipe)

    monkeypatch.setattr(_pipe.Pipe, "__init__", init)
    return pipes


def images(loader: chaski.Loader) -> np.ndarray:
    return np.concatenate([b["image"][b["valid"]] for b in loader])


@pytest.fixture(scope="module")
def wanted(binary) -> np.ndarray:
    with chaski.load(SCENE, **OPTIONS) as loader:
        return images(loader)


def test_the_same_batches(binary, made, wanted, monkeypatch):
    with serving(binary, *HIDDEN[:1]) as (target, token):
        options = {"token": token}
        alone(monkeypatch)
        with chaski.connect(target, SCENE, **OPTIONS, engine=chaski.Engine(**options)) as loader:
            assert np.array_equal(images(loader), wanted) and len(made) == 1
            assert loader.sample(3)["image"].shape == (6, 64, 48) and len(made) == 2
            for _ in loader:
                break
            state = loader.state_dict()
        with chaski.connect(target, SCENE, **OPTIONS, engine=chaski.Engine(**options)) as loader:
            loader.load_state_dict(state)
            assert (loader.epoch, next(iter(loader)).step) == (1, 1)
        assert eventually(lambda: all(p._socket.fileno() < 0 for p in made))


@pytest.mark.parametrize("how", ["plain", "shared"])
def test_requests_go_by_the_pipe(binary, how, made, wanted, monkeypatch):
    """All but the first ones."""
    sent, send = [], _pipe.Pipe.send
    monkeypatch.setattr(_pipe.Pipe, "send", lambda p, *all: (sent.append(len(all)), send(p, *all)))
    if how != "shared":
        alone(monkeypatch)
    with contextlib.ExitStack() as stack:
        if how == "shared":
            loader = chaski.load(SCENE, **OPTIONS)
        else:
            target, token = stack.enter_context(serving(binary, *HIDDEN[:1]))
            loader = chaski.connect(target, SCENE, **OPTIONS, engine=chaski.Engine(token=token))
        stack.enter_context(loader)
        assert np.array_equal(images(loader), wanted)
        assert len(loader) == 8
        assert len(sent) >= 7 and sum(sent) <= 2 * 8
        for i in (3, 5, 3):
            assert np.array_equal(loader.fetch([i])["image"][0], loader.sample(i)["image"])


def test_memory_is_used_again(binary, made):
    engine = chaski.Engine(transport="grpc")
    with chaski.load(SCENE, **OPTIONS, last="pad", engine=engine) as loader:
        places = set()
        for _ in range(5):
            loader.set_epoch(0)  # a stream of its own
            places |= {b["image"].ctypes.data for b in loader}
        batches = iter(loader)
        kept = [next(batches) for _ in range(3)]
    assert len(made) == 6 and len(places) <= 8
    assert len({b["image"].ctypes.data for b in kept}) == 3


def test_without_a_pipe(binary, wanted, monkeypatch):
    asked = []

    def refuse(*given):
        asked.append(given)
        raise TimeoutError("no way")

    monkeypatch.setattr(_pipe, "connected", refuse)
    engine = chaski.Engine(transport="grpc", workers=1)
    with chaski.load(SCENE, **OPTIONS, engine=engine) as loader:
        assert np.array_equal(images(loader), wanted)
        images(loader)
    assert len(asked) == 1


def test_a_server_that_is_killed(binary, made, wanted, monkeypatch):
    alone(monkeypatch)
    listen = f"unix-abstract:chaski-pipe-{os.getpid()}"
    line = [binary, "serve", "--listen", listen, "--root", SCENE.parent, *HIDDEN]
    with subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        server.stdout.readline()
        options = {**OPTIONS, "engine": chaski.Engine(patience=0)}
        with chaski.connect(listen, SCENE, **options) as loader:
            seen = [next(iter(loader))]
            os.kill(server.pid, signal.SIGKILL)
            with pytest.raises(UnavailableError):
                seen.extend(loader)
    assert len(made) == 1
    assert np.array_equal(np.concatenate([b["image"] for b in seen]), wanted[: 8 * len(seen)])


@pytest.mark.parametrize("lost", [True, False])
def test_a_pipe_that_breaks(binary, made, wanted, monkeypatch, lost):
    """The next batches come by another one, also where the server has sent all and sees nothing."""
    monkeypatch.setattr(_run, "_STATUS", 0.2)
    alone(monkeypatch)
    with serving(binary, *HIDDEN[:1]) as (target, token):
        engine = chaski.Engine(token=token, prefetch=100 if lost else 1)
        with chaski.connect(target, SCENE, **OPTIONS, engine=engine) as loader:
            reply = _pipe.Pipe.reply

            def cut(pipe, *given):
                if len(made) == 1 and len(asked) == 3:
                    if lost:  # it reads no more, and hears nothing of the end
                        return None
                    pipe.close()
                asked.append(pipe)
                return reply(pipe, *given)

            asked = []
            monkeypatch.setattr(_pipe.Pipe, "reply", cut)
            assert np.array_equal(images(loader), wanted)
    assert len(made) == 2


@contextlib.contextmanager
def answering(sent: bytes) -> Iterator[_pipe.Pipe]:
    """Yields a pipe to a server that sends something and ends."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(60)
        answer = _pipe._MAGIC + sent

        def serve() -> None:
            conn = listener.accept()[0]
            with conn:
                conn.recv(40, socket.MSG_WAITALL)
                conn.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        pipe = _pipe.Pipe(f"127.0.0.1:{listener.getsockname()[1]}", bytes(16), lambda: None)
        yield pipe
        pipe._socket.close()
        thread.join()


HEAD = struct.Struct("<3Q").pack


def test_replies():
    sent = HEAD(1, 7, 3) + b"abc" + HEAD(2, 0, 2) + b"xy" + HEAD(1, 8, 9) + b"cut"
    with answering(sent) as pipe:
        whole = pipe.reply(Pool(), 9, 9)
        assert isinstance(whole, Whole) and (whole.ticket, bytes(whole.memory)) == (7, b"abc")
        assert pipe.reply(Pool(), 9, 9) == b"xy"
        assert pipe.reply(Pool(), 9, 9) is None and pipe.reply(Pool(), 9, 9) is None


@pytest.mark.parametrize(
    ("head", "error"),
    [
        (HEAD(1, 7, 10), LimitError),
        (HEAD(1, 7, 1 << 63), LimitError),
        (HEAD(2, 0, 10), PayloadError),
        (HEAD(3, 0, 1), PayloadError),
    ],
)
def test_strange_replies(head, error):
    with answering(head) as pipe, pytest.raises(error):
        pipe.reply(Pool(), 9, 9)
