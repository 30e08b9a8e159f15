"""A fake local engine is found, started, shared and stopped, and leaves nothing behind."""

from __future__ import annotations

import copy
import gc
import io
import logging
import math
import os
import pickle
import resource
import signal
import subprocess
import sys
import tempfile
import time
import zipfile
from collections import deque
from pathlib import Path
from types import SimpleNamespace

import pytest
from patience import patiently

import chaski
from chaski import _engine, _link, _read

TESTS = Path(__file__).parent
SRC = TESTS.parent / "src"


@pytest.fixture
def fake_binary(tmp_path, monkeypatch):
    """Installs fake_chaski.py as the command `chaski`, and returns its arguments."""
    path = tmp_path / "bin" / "chaski"
    path.parent.mkdir()
    path.write_text(
        f'#!/bin/sh\nPYTHONPATH={SRC}:{TESTS} exec {sys.executable} {TESTS}/fake_chaski.py "$@"\n'
    )
    path.chmod(0o755)
    log = tmp_path / "log"
    log.touch()
    sockets = tmp_path / "t"
    sockets.mkdir()
    monkeypatch.setenv("CHASKI_BIN", str(path))
    monkeypatch.setenv("FAKE_CHASKI_LOG", str(log))
    monkeypatch.setattr(tempfile, "tempdir", str(sockets))
    # An engine that another test left running, such as that of chaski.read, must not be found.
    monkeypatch.setattr(_engine, "_running", {})
    monkeypatch.setattr(_read, "_kept", {})
    yield lambda: [(int(p), *rest) for p, *rest in map(str.split, log.read_text().splitlines())]
    assert list(sockets.iterdir()) == []


def gone(pid: int, seconds: float = 300) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            if Path(f"/proc/{pid}/stat").read_text().split(")")[1].split()[0] == "Z":
                return True
        except (FileNotFoundError, ProcessLookupError):  # it ended before or while it was read
            return True
        time.sleep(0.02)
    return False


def test_loaders_share_an_engine(fake_binary):
    with chaski.load("d", batch_size=4) as a, chaski.load("d", batch_size=8) as b:
        assert len(list(a)) == 10 and len(list(b)) == 5
        assert len(fake_binary()) == 1
        with chaski.load("d", batch_size=4, engine=chaski.Engine(workers=3, memory=1 << 20)):
            calls = fake_binary()
            assert len(calls) == 2
            assert calls[1][-2:] == ("--workers=3", "--memory=1048576")
        assert gone(calls[1][0])
        with chaski.load("d", batch_size=4, engine=chaski.Engine(max_chunk=200_000_000)):
            assert fake_binary()[2][-1] == "--max-chunk=200000000"
        with pytest.raises(chaski.SpecError, match="max_chunk"):
            chaski.load("d", batch_size=4, engine=chaski.Engine(max_chunk=0))
        assert len(list(a)) == 10
    assert gone(calls[0][0])
    assert not _engine._running


def test_an_engine_has_a_cache(fake_binary, tmp_path, monkeypatch):
    monkeypatch.delenv("CHASKI_CACHE_BYTES", raising=False)
    monkeypatch.chdir(tmp_path)
    with chaski.load("d", batch_size=4, engine=chaski.Engine(cache="c", cache_bytes=1 << 30)):
        assert fake_binary()[0][-2:] == (f"--cache-dir={tmp_path}/c", "--cache-bytes=1073741824")
    with chaski.load("d", batch_size=4, engine=chaski.Engine(recode=True)):
        assert fake_binary()[1][-1] == "--recode=true"
    with chaski.load("d", batch_size=4, engine=chaski.Engine(recode=0.2)):
        assert fake_binary()[2][-2:] == ("--recode=true", "--recode-share=0.2")
    for wrong in (1, 0.0, 1.0, math.nan, "yes"):
        with pytest.raises(chaski.SpecError, match="recode is"):
            chaski.load("d", batch_size=4, engine=chaski.Engine(recode=wrong))
    for wrong in ({"cache": "c"}, {"cache": "c", "cache_bytes": 0}, {"cache_bytes": -1}):
        with pytest.raises(chaski.SpecError, match="cache_bytes"):
            chaski.load("d", batch_size=4, engine=chaski.Engine(**wrong))


def test_an_engine_ends_with_its_last_loader_object(fake_binary):
    loader = chaski.load("d", batch_size=4)
    it = iter(loader)
    next(it)
    (pid, *_), *_ = fake_binary()
    del loader, it
    gc.collect()
    assert gone(pid)


def test_source_is_absolute_for_the_engine(fake_binary, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with chaski.load("chips", batch_size=4) as loader:
        assert loader.spec["source"] == str(tmp_path / "chips")
    with chaski.load("s3://bucket/chips", batch_size=4) as loader:
        assert loader.spec["source"] == "s3://bucket/chips"


@pytest.mark.parametrize(
    "mode,match",
    [
        ("die", r"(?s)ended at once \(exit status 1\).*some log line.*no memory"),
        ("nonsense", "hello"),
        ("number", r"said b'.*listen.*7"),
        ("long", "said b'x{200}', not"),
        ("elsewhere", "^a token would go to 192.0.2.1:7 in plain text"),
        ("silent", "(?s)not ready.*some log line"),
        ("wrapper", "(?s)not ready.*some log line"),
    ],
)
def test_engines_that_do_not_start(fake_binary, monkeypatch, mode, match):
    monkeypatch.setenv("FAKE_CHASKI", mode)

    def run(timeout: float) -> None:
        monkeypatch.setattr(_engine, "_START_SECONDS", timeout)
        started = time.monotonic()
        with pytest.raises((chaski.EngineError, chaski.SpecError), match=match):
            chaski.load("d", batch_size=4)
        assert gone(fake_binary()[-1][0])
        if mode == "wrapper":
            assert time.monotonic() - started < timeout + 50

    if mode in ("silent", "wrapper"):
        patiently(run, 3)
    else:
        run(300)


@pytest.mark.parametrize(
    "wrong",
    [
        {"wire": "x"},
        {"transport": "x"},
        {"timeout": None},
        {"timeout": float("inf")},
        {"timeout": 0},
        {"prefetch": 0},
        {"prefetch": 1.5},
        {"max_batch_bytes": 0},
        {"workers": -1},
        {"workers": "2"},
        {"workers": 4097},
        {"memory": 0},
    ],
    ids=str,
)
def test_wrong_arguments_start_no_engine(fake_binary, wrong):
    (name,) = wrong
    with pytest.raises(chaski.SpecError, match=f"^{name} is "):
        chaski.load("d", batch_size=4, engine=chaski.Engine(**wrong))
    assert fake_binary() == [] and not _engine._running


@pytest.mark.parametrize(
    "wrong",
    [
        {"rows": chaski.Rows(base_path=3)},
        {"rows": chaski.Rows(base_path=b"d")},
        {"window": chaski.WeightedWindow(8, weights=3)},
        {"fields": {"v": {"vector": {"path": 3}}}},
    ],
    ids=str,
)
def test_what_is_no_path_starts_no_engine(fake_binary, wrong):
    with pytest.raises(
        chaski.SpecError, match="a str or an os.PathLike$|a spec cannot hold bytes$"
    ):
        chaski.load("d", batch_size=4, **wrong)
    assert fake_binary() == [] and not _engine._running


@pytest.mark.parametrize("wrong", [{"rank": 1}, {"rank": "0"}, {"world_size": 1.5}], ids=str)
def test_wrong_ranks_leave_no_engine(fake_binary, wrong):
    with pytest.raises(chaski.SpecError, match="rank|world_size"):
        chaski.load("d", batch_size=4, **wrong)
    assert not _engine._running


def test_an_engine_that_ends_is_replaced_twice(fake_binary, caplog):
    """The loop resumes at its step; a third exit in an hour is an error with the output."""
    with chaski.load("d", batch_size=1) as loader:
        it = iter(loader)
        steps = [next(it).step]
        for ends in (1, 2):
            os.kill(fake_binary()[-1][0], signal.SIGKILL)
            while len(fake_binary()) == ends:  # batches that had come are still given
                steps.append(next(it).step)
        assert steps == list(range(len(steps)))
        os.kill(fake_binary()[-1][0], signal.SIGKILL)
        match = r"(?s)exit status -9.*some log line.*3 engines have ended within an hour.*`memory`"
        with pytest.raises(chaski.UnavailableError, match=match):
            steps += [b.step for b in it]
        assert len(fake_binary()) == 3
        told = [r.message for r in caplog.records if "a new one goes on" in r.message]
        assert len(told) == 2 and all("exit status -9" in m for m in told)
        loader.set_epoch(1)
        assert [b.step for b in loader] == list(range(40))
    assert not _engine._running


@pytest.mark.parametrize("ask", ["sample", "loop"])
def test_engines_that_end_hours_apart_are_all_replaced(fake_binary, monkeypatch, ask):
    """Samplers of one's own stay in epoch 0 for a whole training."""
    hours = 0
    clock = SimpleNamespace(monotonic=lambda: hours * 3600.0, sleep=time.sleep)
    monkeypatch.setattr(_link, "time", clock)
    with chaski.load("d", batch_size=1) as loader:
        it = iter(loader)
        for ends in range(1, 4):  # the third within an hour would be an error
            os.kill(fake_binary()[-1][0], signal.SIGKILL)
            hours += 1
            while len(fake_binary()) == ends:
                assert loader.sample(7)["image"] == 7 if ask == "sample" else next(it).epoch == 0
        assert len(fake_binary()) == 4


def test_loaders_of_an_engine_that_ends_share_the_next_one(fake_binary):
    with chaski.load("d", batch_size=4) as a, chaski.load("d", batch_size=8) as b:
        for loader in (a, b):
            next(iter(loader))
        os.kill(fake_binary()[0][0], signal.SIGKILL)
        a.load_state_dict(a.state_dict())
        assert [x.step for x in a] == list(range(1, 10))
        assert [x.step for x in b] == list(range(5))
        assert a.sample(3)["image"] == 3
        assert len(fake_binary()) == 2
    assert not _engine._running and gone(fake_binary()[1][0])


def test_a_sample_after_the_end_of_an_engine(fake_binary):
    with chaski.load("d", batch_size=4) as loader:
        assert loader.sample(3)["image"] == 3
        os.kill(fake_binary()[0][0], signal.SIGKILL)
        assert gone(fake_binary()[0][0])
        assert loader.sample(4)["image"] == 4


def test_a_loader_is_not_pickled(fake_binary):
    with chaski.load("d", batch_size=4) as loader:
        for refused in (pickle.dumps, copy.copy, copy.deepcopy):
            with pytest.raises(TypeError, match="belongs to the process that made it. Call chaski"):
                refused(loader)


FORKS = """
import gc, multiprocessing, os, subprocess, sys
import chaski

loader = chaski.load('d', batch_size=4)
it = iter(loader)
next(it)
for _ in range(3):
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    subprocess.run(['true'], check=True)
p = multiprocessing.get_context('fork').Process(target=gc.collect)
p.start()
p.join(300)
assert p.exitcode == 0
assert len(list(it)) == 9
assert 'GRPC_ENABLE_FORK_SUPPORT' not in os.environ
pid = os.fork()  # of a loader that is idle
if pid == 0:
    del loader, it
    gc.collect()
    os._exit(0)
assert os.waitpid(pid, 0)[1] == 0
"""


def test_grpc_says_nothing_at_a_fork(fake_binary):
    env = {**os.environ, "PYTHONPATH": str(SRC), "TMPDIR": tempfile.gettempdir()}
    env.pop("GRPC_ENABLE_FORK_SUPPORT", None)
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FORKS], env=env, timeout=500, capture_output=True
    )
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize("portable", ["", "1"])
@pytest.mark.parametrize("how", ["exit", "kill"])
def test_engine_ends_with_its_parent(fake_binary, how, portable):
    code = (
        "import chaski, os, signal\n"
        "loader = chaski.load('d', batch_size=4)\n"
        "it = iter(loader); next(it)\n"
        f"os.kill(os.getpid(), signal.SIGKILL) if '{how}' == 'kill' else None\n"
    )
    env = {**os.environ, "PYTHONPATH": str(SRC), "TMPDIR": tempfile.gettempdir()}
    env["CHASKI_PORTABLE"] = portable
    done = subprocess.run([sys.executable, "-c", code], env=env, timeout=500, capture_output=True)
    assert done.returncode == (-9 if how == "kill" else 0), done.stderr
    ((pid, *arguments),) = fake_binary()
    assert ("--listen=127.0.0.1:0" in arguments) == bool(portable or sys.platform != "linux")
    assert gone(pid)
    assert os.listdir(tempfile.gettempdir()) == []


def test_ctrl_c_is_prompt_and_leaves_the_engine(fake_binary):
    code = (
        "import chaski, os, signal, threading, time\n"
        # A shell ignores the signal for background commands, and so for their children.
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "loader = chaski.load('d', batch_size=4, engine=chaski.Engine(timeout=3600))\n"
        "it = iter(loader); next(it); next(it)\n"
        "start = time.monotonic()\n"
        "try:\n"
        "    threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()\n"
        "    while True: next(it)\n"
        "except KeyboardInterrupt:\n"
        "    assert time.monotonic() - start < 600\n"
        "loader.load_state_dict(loader.state_dict())\n"
        "assert [b.step for b in loader] == list(range(2, 10))\n"
        "print('fine')\n"
    )
    env = {**os.environ, "PYTHONPATH": str(SRC), "TMPDIR": tempfile.gettempdir()}
    env["FAKE_CHASKI"] = "stuck"
    done = subprocess.run([sys.executable, "-c", code], env=env, timeout=500, capture_output=True)
    assert done.stdout == b"fine\n", done.stderr
    assert gone(fake_binary()[0][0])


def test_fork(fake_binary):
    with chaski.load("d", batch_size=4) as loader:
        pid = os.fork()
        if pid == 0:
            try:
                iter(loader)
            except RuntimeError as e:
                os._exit(0 if "fork" in str(e) else 2)
            os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        assert len(list(loader)) == 10


def test_many_open_files(fake_binary):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < 2048:
        pytest.skip(f"at most {hard} files may be open")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 2048), hard))
    files = [os.open(os.devnull, os.O_RDONLY) for _ in range(1100)]
    try:
        with chaski.load("d", batch_size=4) as loader:
            assert len(list(loader)) == 10
    finally:
        for f in files:
            os.close(f)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_fork_leaves_the_files_of_the_child_alone(fake_binary):
    code = (
        "import chaski, gc, os, sys\n"
        "loader = chaski.load('d', batch_size=4)\n"
        "(engine,) = chaski._engine._running.values()\n"
        "pipe = engine._hold.fileno()\n"
        "if os.fork() == 0:\n"
        "    f = os.open(os.devnull, os.O_WRONLY)\n"
        "    while f < pipe: f = os.dup(f)\n"
        "    assert f == pipe\n"
        "    del loader, engine\n"
        "    gc.collect()\n"
        "    os.write(pipe, b'x')\n"
        "    os._exit(0)\n"
        "assert os.wait()[1] == 0\n"
        "assert len(list(loader)) == 10\n"
    )
    env = {**os.environ, "PYTHONPATH": str(SRC), "TMPDIR": tempfile.gettempdir()}
    done = subprocess.run([sys.executable, "-c", code], env=env, timeout=500, capture_output=True)
    assert done.returncode == 0, done.stderr
    assert gone(fake_binary()[0][0])


def test_a_log_that_fails_does_not_end_the_engine(caplog, capsys):
    class Fails(logging.Filter):
        def filter(self, record):
            raise RuntimeError("no room in the log")

    tail: deque[str] = deque()
    lines = [
        b'time=0 level=WARN msg="one \\"thing\\"" file=a\n',
        b"level=ERROR msg=two\n",
        b"end\n",
    ]
    logger, fails = logging.getLogger("chaski"), Fails()
    logger.addFilter(fails)
    try:
        _engine._hear(io.BytesIO(b"".join(lines)), tail)
    finally:
        logger.removeFilter(fails)
    assert len(tail) == 3
    assert capsys.readouterr().err.count("RuntimeError: no room in the log") == 2
    _engine._hear(io.BytesIO(b"".join(lines)), tail)
    assert [(r.levelname, r.message) for r in caplog.records] == [
        ("WARNING", 'one "thing" (file=a)'),
        ("ERROR", "two"),
    ]


def test_read_and_info(fake_binary):
    assert chaski.read("a.tif", b=[0], y=(0, 2)).tolist() == [[0, 1, 2], [3, 4, 5]]
    assert chaski.info("/x/a.tif") == {"path": "/x/a.tif"}
    assert issubclass(chaski.NotFoundError, FileNotFoundError)
    with pytest.raises(chaski.NotFoundError, match="not found"):
        chaski.info("/x/missing")
    assert len(fake_binary()) == 1
    # Another limit needs another engine, which all callers with that limit share.
    for _ in range(2):
        chaski.read("a.tif", b=[0], y=(0, 2), max_chunk=1 << 30)
    assert len(fake_binary()) == 2
    assert fake_binary()[1][-1] == "--max-chunk=1073741824"
    # A different limit for every file would need an engine for each.
    for n in range(3):
        chaski.read("a.tif", b=[0], y=(0, 2), max_chunk=(1 << 30) + n)
    assert len(fake_binary()) == 4
    assert len(_engine._running) == 2 and all(e.users == 1 for e in _engine._running.values())
    assert gone(fake_binary()[2][0])
    for engine in _read._kept.values():
        _engine.release(engine)


def test_finding_the_binary(tmp_path, monkeypatch):
    carried = tmp_path / "carried"
    monkeypatch.setattr(_engine, "carried_binary", lambda: carried)
    script, real = tmp_path / "script" / "chaski", tmp_path / "real" / "chaski"
    for path, head in ((script, b"#!/usr/bin/python\n"), (real, b"\x7fELF")):
        path.parent.mkdir()
        path.write_bytes(head)
        path.chmod(0o755)
    monkeypatch.setenv("PATH", str(script.parent))
    monkeypatch.delenv("CHASKI_BIN", raising=False)
    with pytest.raises(chaski.EngineError, match="no engine"):
        _engine.find_binary()
    monkeypatch.setenv("PATH", f"{script.parent}{os.pathsep}{real.parent}")
    assert _engine.find_binary() == str(real)
    carried.touch()
    assert _engine.find_binary() == str(carried)
    monkeypatch.setenv("CHASKI_BIN", str(script))
    assert _engine.find_binary() == str(script)
    for wrong in (tmp_path / "nothing", tmp_path):
        monkeypatch.setenv("CHASKI_BIN", str(wrong))
        with pytest.raises(chaski.EngineError, match=f"CHASKI_BIN is {wrong}, which is not an"):
            _engine.find_binary()


def test_the_command_of_the_package_is_no_engine(tmp_path, monkeypatch):
    """It would start itself: as a script, as a program with it in a ZIP, or by one between."""
    code = "import sys\nfrom chaski._cli import main\nsys.exit(main())\n"
    script, program, between = (tmp_path / name for name in ("chaski", "chaski.exe", "between"))
    script.write_text(f"#!{sys.executable}\n{code}")
    between.write_text(f'#!/bin/sh\nexec {script} "$@"\n')
    with zipfile.ZipFile(program, "w") as z:
        z.writestr("__main__.py", code)
    for path in (script, program, between):
        path.chmod(0o755)
    env = {**os.environ, "PYTHONPATH": str(SRC)}
    for path in (script, program):
        monkeypatch.setenv("CHASKI_BIN", str(path))
        with pytest.raises(chaski.EngineError, match=f"{path}, the command of this package"):
            chaski.load({"x": [1]}, fields={"x": "x"}, batch_size=1)
        with pytest.raises(chaski.EngineError, match="the command of this package"):
            chaski.info("a.tif")
        done = subprocess.run([script], env=env | {"CHASKI_BIN": str(path)}, capture_output=True)
        assert done.returncode == 1 and b"the command of this package" in done.stderr
    done = subprocess.run([script], env=env | {"CHASKI_BIN": str(between)}, capture_output=True)
    assert done.returncode == 1 and b"between, which starts this command again" in done.stderr


@pytest.mark.parametrize("share", [True, False])
@pytest.mark.parametrize("says", ["nothing", "where it listens"])
def test_what_never_answers_is_ended(tmp_path, monkeypatch, says, share):
    log, path = tmp_path / "log", tmp_path / "chaski"
    line = '{"listen": "unix-abstract:nobody-is-here"}' if says != "nothing" else ""
    echo = f"echo '{line}'" if line else ""
    path.write_text(f"#!/bin/sh\necho $$ >> {log}\n{echo}\nexec sleep 600\n")
    path.chmod(0o755)
    monkeypatch.setenv("CHASKI_BIN", str(path))
    monkeypatch.setattr(_engine, "_START_SECONDS", 5.0)
    monkeypatch.setattr(_engine, "_STOP_SECONDS", 0.2)
    engine = chaski.Engine(share=share, timeout=1)
    with pytest.raises(chaski.Error):
        chaski.load({"x": [1]}, fields={"x": "x"}, batch_size=1, engine=engine)
    started = [int(pid) for pid in log.read_text().split()]
    assert started and all(map(gone, started))


def test_the_command_waits_for_an_engine_that_ends_by_ctrl_c(tmp_path):
    """As on Windows, whose console sends it to both."""
    path = tmp_path / "chaski"
    path.write_text("#!/bin/sh\ntrap 'sleep 2; exit 7' INT\necho ready\nsleep 60 & wait\n")
    path.chmod(0o755)
    code = "import sys, chaski._cli as c; sys.platform = 'win32'; c.main()"
    with subprocess.Popen(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": str(SRC), "CHASKI_BIN": str(path)},
        stdout=subprocess.PIPE,
        start_new_session=True,
    ) as p:
        assert p.stdout is not None and p.stdout.readline() == b"ready\n"
        os.killpg(p.pid, signal.SIGINT)
        assert p.wait(60) == 7
