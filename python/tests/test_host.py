"""Processes of a job on one host share an engine, whichever of them is killed."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import chaski
from chaski import _engine, _host
from chaski.errors import UnavailableError

SCENE = Path(__file__).resolve().parents[2] / "testdata" / "demo" / "coast.tif"
SRC = Path(__file__).resolve().parents[1] / "src"
SECONDS = 300  # for what takes a second where nothing else runs

RANK = """
import json, os, sys
import chaski
from chaski import _engine

rank, world, share = map(int, sys.argv[2:])
loader = chaski.load(
    sys.argv[1], batch_size=8, window=chaski.RandomWindow((64, 48), 60), rank=rank,
    world_size=world, engine=chaski.Engine(share=bool(share)),
)
print(loader._link._held.engine.pid, flush=True)
for line in sys.stdin:  # each asks for epoch 0
    loader.set_epoch(0)
    samples = [int(s) for batch in loader for s in batch["sample"][batch["valid"]]]
    print(json.dumps([loader._link._held.engine.pid, samples]), flush=True)
"""


class Rank:
    """A process that loads as one rank of a job."""

    def __init__(self, rank: int, world: int = 4, share: bool = True, **env: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", RANK, SCENE, str(rank), str(world), str(int(share))],
            env={**os.environ, "PYTHONPATH": str(SRC), "RANK": str(rank), **env},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def engine(self) -> int:
        """Returns the process of its engine, once it has one."""
        return int(self._said())

    def ask(self) -> None:
        """Asks for the first epoch."""
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()

    def epoch(self) -> tuple[int, list[int]]:
        """Returns the engine after an epoch that was asked for, and its samples."""
        pid, samples = json.loads(self._said())
        return pid, samples

    def _said(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline()

    def kill(self) -> None:
        """Kills it, with its files, and waits for its end."""
        self._process.kill()
        self._process.communicate()


def samples(ranks: list[Rank]) -> tuple[set[int], list[int]]:
    """Returns the engines that served the first epoch, and its samples over all ranks."""
    for r in ranks:
        r.ask()
    epochs = [r.epoch() for r in ranks]
    return {pid for pid, _ in epochs}, sorted(s for _, part in epochs for s in part)


def runs(pid: int) -> bool:
    """Reports whether a process runs; one that ended may wait for its parent."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def ends(pid: int) -> bool:
    deadline = time.monotonic() + SECONDS
    while runs(pid) and time.monotonic() < deadline:
        time.sleep(0.02)
    return not runs(pid)


@pytest.fixture
def job(binary, request, monkeypatch) -> Iterator[Callable[..., Rank]]:
    """Starts ranks of a job of its own."""
    monkeypatch.setenv("CHASKI_JOB", f"{request.node.name}-{os.getpid()}")
    with contextlib.ExitStack() as stack:

        def start(*args, **options) -> Rank:
            rank = Rank(*args, **options)
            stack.callback(rank.kill)
            return rank

        yield start


def test_ranks_share_an_engine_until_the_last_is_gone(job):
    """Started at the same time; the first, and then others, are killed, and new ones come."""
    ranks = [job(r) for r in range(4)]
    engines = {r.engine() for r in ranks}
    assert len(engines) == 1
    (engine,) = engines
    assert samples(ranks) == ({engine}, list(range(60)))
    parent = int(Path(f"/proc/{engine}/stat").read_text().rpartition(")")[2].split()[1])
    starter = next(r for r in ranks if r._process.pid == parent)
    k = ranks.index(starter)
    starter.kill()
    ranks[k] = job(k)
    assert ranks[k].engine() == engine
    assert samples(ranks) == ({engine}, list(range(60)))
    for r in ranks[:3]:
        r.kill()
    time.sleep(3)  # longer than an engine lives that nobody holds
    assert runs(engine)
    ranks[3].kill()
    assert ends(engine)


def test_ranks_share_the_next_engine_after_a_kill(job):
    """In the middle of an epoch; all go on, and none gets a sample twice."""
    ranks = [job(r) for r in range(4)]
    (engine,) = {r.engine() for r in ranks}
    for r in ranks[1:]:
        r.ask()
    os.kill(engine, signal.SIGKILL)
    ranks[0].ask()
    epochs = [r.epoch() for r in ranks]
    assert sorted(s for _, part in epochs for s in part) == list(range(60))
    after, all_samples = samples(ranks)
    assert len(after) == 1 and after != {engine} and all_samples == list(range(60))


def test_who_has_an_engine_of_its_own(job):
    first = job(0)
    shared = first.engine()
    alone = job(0, share=False)
    other_job = job(0, CHASKI_JOB="another")
    other_settings = job(0, AWS_PROFILE="another")
    engines = [r.engine() for r in (alone, other_job, other_settings)]
    assert len({shared, *engines}) == 4
    assert samples([alone])[0] == {engines[0]}
    alone.kill()
    assert ends(engines[0]) and runs(shared)


def test_a_stopped_rank_holds_up_no_other(job):
    """And it goes on where it was."""
    ranks = [job(r) for r in range(2)]
    (engine,) = {r.engine() for r in ranks}
    ranks[0].ask()
    os.kill(ranks[0]._process.pid, signal.SIGSTOP)
    for _ in range(3):
        ranks[1].ask()
        assert ranks[1].epoch()[0] == engine
    os.kill(ranks[0]._process.pid, signal.SIGCONT)
    assert ranks[0].epoch()[0] == engine


def test_launchers_name_the_job(monkeypatch, binary):
    """Ranks differ in some variables, and have those in common that name their job."""
    for name in _host._JOB:
        monkeypatch.delenv(name, raising=False)

    def door(**env: str) -> str | None:
        with monkeypatch.context() as m:
            for name, value in env.items():
                m.setenv(name, value)
            return _host.door(_host.settings(binary, {}))

    assert door() == door(RANK="1", LOCAL_RANK="1", CUDA_VISIBLE_DEVICES="1", SLURM_PROCID="1")
    jobs = [
        {},
        {"TORCHELASTIC_RUN_ID": "none", "MASTER_ADDR": "a", "MASTER_PORT": "1"},
        {"TORCHELASTIC_RUN_ID": "none", "MASTER_ADDR": "a", "MASTER_PORT": "2"},
        {"SLURM_JOB_ID": "7", "SLURM_STEP_ID": "0"},
        {"SLURM_JOB_ID": "7", "SLURM_STEP_ID": "1"},
    ]
    doors = [door(**env) for env in jobs]
    assert None not in doors and len(set(doors)) == len(jobs)
    assert doors == [door(**env, RANK="1") for env in jobs]
    with monkeypatch.context() as m:  # a launcher may bind each rank to cores of its own
        m.setattr(os, "sched_getaffinity", lambda _: {-1})
        assert door() != doors[0]
    monkeypatch.setattr(os, "getpgrp", lambda: -1)
    assert doors[1:5] == [door(**env) for env in jobs[1:5]] and door() != doors[0]


SECRETS = {
    "AWS_SECRET_ACCESS_KEY": "hunter2",
    "AZURE_STORAGE_CONNECTION_STRING": "AccountKey=hunter2",
    "HF_TOKEN": "hunter2",
    "https_proxy": "http://user:hunter2@proxy",
    "SOME_PASSWORD": "hunter2",
}


@pytest.mark.parametrize("name", SECRETS)
def test_names_of_sockets_tell_no_password(monkeypatch, binary, name):
    """All users see them. What engines compare, with a number of their own, tells it apart."""
    monkeypatch.delenv(name, raising=False)
    without = _host.settings(binary, {})
    monkeypatch.setenv(name, SECRETS[name])
    given = _host.settings(binary, {})
    doors = [[_host.door(of, k) for k in range(_host.DOORS)] for of in (without, given)]
    assert doors[0] == doors[1] and len(set(doors[0])) == _host.DOORS
    assert _host.digest(without) != _host.digest(given)
    assert _host.digest(given) == _host.digest(_host.settings(binary, {}))


def test_ranks_with_other_passwords_share_no_engine(job):
    """Ranks with the same ones share theirs, and no command line or name of a socket has any."""
    others = [SECRETS | {name: SECRETS[name] + "-of-another"} for name in SECRETS]
    given = [SECRETS, SECRETS, *others, others[-1]]
    engines = [r.engine() for r in [job(k, len(given), **which) for k, which in enumerate(given)]]
    assert engines[0] == engines[1] and engines[-2] == engines[-1]
    assert len(set(engines)) == 1 + len(others)  # one secret of five is another
    for engine, which in zip(engines, given, strict=True):
        environ = Path(f"/proc/{engine}/environ").read_bytes().split(b"\0")
        assert all(f"{name}={value}".encode() in environ for name, value in which.items())
        line = Path(f"/proc/{engine}/cmdline").read_bytes()
        assert b"hunter2" not in line and b"CHASKI_HELD_FOR" not in line


def test_a_private_folder_where_sockets_need_one(monkeypatch, binary):
    monkeypatch.setattr(_host, "SUPPORTED", False)
    with tempfile.TemporaryDirectory() as folder:  # pytest's names are too long for a socket
        monkeypatch.setenv("XDG_RUNTIME_DIR", folder)
        for mode in (0o755, 0o770, 0o700):
            os.chmod(folder, mode)
            door = _host.door(_host.settings(binary, {}))
            assert (door is None) == (mode != 0o700)
        assert door is not None and door.startswith(f"unix:{folder}/chaski-")
        deep = Path(folder) / ("x" * 100)
        deep.mkdir(mode=0o700)
        monkeypatch.setenv("XDG_RUNTIME_DIR", str(deep))
        assert _host.door(_host.settings(binary, {})) is None


@pytest.mark.skipif(sys.platform == "win32", reason="sockets are files")
def test_ranks_share_an_engine_at_a_file(job, monkeypatch):
    """As on macOS; an engine that was killed leaves its file, which the next one replaces."""
    with tempfile.TemporaryDirectory() as folder:
        where = {"CHASKI_PORTABLE": "1", "XDG_RUNTIME_DIR": folder}
        ranks = [job(r, 2, **where) for r in range(2)]
        (engine,) = {r.engine() for r in ranks}
        assert samples(ranks) == ({engine}, list(range(60)))
        os.kill(engine, signal.SIGKILL)
        after, all_samples = samples(ranks)
        assert len(after) == 1 and engine not in after and all_samples == list(range(60))
        assert len(os.listdir(folder)) == 1
        for r in ranks:
            r.kill()
        assert ends(*after) and os.listdir(folder) == []


class _Foreign(socket.socket):
    """A socket whose peer runs as another user."""

    def getsockopt(self, *_):
        return struct.pack("3i", os.getpid(), os.geteuid() + 1, os.getegid())


@pytest.mark.skipif(not hasattr(socket, "SO_PEERCRED"), reason="a folder keeps others out")
def test_sockets_of_other_users_are_refused(monkeypatch, binary, caplog):
    a, b = socket.socketpair()
    with a, b:
        _host.check_user(a)
    with _Foreign(socket.AF_UNIX) as s, pytest.raises(UnavailableError, match="another user"):
        _host.check_user(s)
    # Somebody else may sit at our door: this process then has an engine of its own.
    monkeypatch.setenv("CHASKI_JOB", f"foreign-{os.getpid()}")
    monkeypatch.setattr(_engine, "_running", {})
    door = _host.door(_host.settings(binary, {}))
    with socket.socket(socket.AF_UNIX) as squatter:
        squatter.bind("\0" + door.partition(":")[2])
        squatter.listen()
        monkeypatch.setattr(_host.socket, "socket", _Foreign)
        with chaski.load(SCENE, batch_size=4) as loader:
            assert loader._link._held.engine._hold is None and len(list(loader)) == 1
    assert "another user" in caplog.text


def test_doors_without_an_engine(monkeypatch, binary):
    """A server that ends as a process comes is not joined: that process starts the next one."""
    monkeypatch.setenv("CHASKI_JOB", f"ends-{os.getpid()}")
    monkeypatch.setattr(_engine, "_running", {})
    door = _host.door(_host.settings(binary, {}))
    ending = socket.socket(socket.AF_UNIX)
    ending.bind("\0" + door.partition(":")[2])
    ending.listen()
    child = os.fork()
    if child == 0:
        ending.accept()[0].close()
        os._exit(0)
    ending.close()
    with chaski.load(SCENE, batch_size=4) as loader:
        assert len(list(loader)) == 1
    os.waitpid(child, 0)
