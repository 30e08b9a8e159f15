"""Jobs on executors: the same bytes on each, and nothing lost with a worker."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from importlib.util import find_spec
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest

from chaski import jobs
from chaski.errors import EngineError

CHIPS = Path(__file__).resolve().parents[2] / "testdata" / "coast" / "coast_dir" / "DATA"


def chaski(binary: str, *args: object) -> bytes:
    return subprocess.run([binary, *map(str, args)], check=True, capture_output=True).stdout


@pytest.fixture
def job(binary: str, tmp_path: Path) -> Path:
    """A job of one shard a chip."""
    folder = tmp_path / "job"
    chaski(binary, "job", "plan", "stats", "-o", folder, "--shard-items", 1, CHIPS / "*/s2/img.tif")
    return folder


def check(binary: str, job: Path) -> None:
    """All shards are done, and the merged bytes are those of one pass."""
    assert jobs.status(job)["missing"] == []
    assert chaski(binary, "job", "merge", job) == chaski(binary, "stats", CHIPS / "*/s2/img.tif")


def processes() -> ProcessPoolExecutor:
    return ProcessPoolExecutor(2, mp_context=get_context("spawn"))


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


class Killed(ProcessPoolExecutor):
    """A pool, one of whose workers dies when it has a shard, once."""

    submitted = 0

    def __init__(self) -> None:
        super().__init__(2, mp_context=get_context("spawn"))

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        Killed.submitted += 1
        if Killed.submitted == 2:
            assert isinstance(super().submit(die).exception(), BrokenProcessPool)
        return super().submit(fn, *args, **kwargs)


def test_own_pool(binary: str, job: Path) -> None:
    jobs.run(job)
    check(binary, job)
    before = sorted((p.name, p.stat().st_mtime_ns) for p in (job / "results").iterdir())
    jobs.run(job)  # it is done
    assert before == sorted((p.name, p.stat().st_mtime_ns) for p in (job / "results").iterdir())


def test_given_executor(binary: str, job: Path) -> None:
    with processes() as pool:
        jobs.run(job, pool)
        assert pool.submit(abs, -1).result() == 1  # it stays whose it was
    check(binary, job)


def test_killed_worker(binary: str, job: Path) -> None:
    Killed.submitted = 0
    jobs.run(job, Killed)
    assert Killed.submitted > 3
    check(binary, job)


def test_broken_executor(binary: str, job: Path) -> None:
    Killed.submitted = 0
    with Killed() as pool, pytest.raises(EngineError, match="lose their workers"):
        jobs.run(job, pool)
    jobs.run(job)
    check(binary, job)


def test_killed_command(
    binary: str, job: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A command that the system kills, for memory for example, is run again."""
    script = tmp_path / "chaski"
    script.write_text(
        f'#!/bin/sh\n[ "$2" = run ] && mkdir "{tmp_path}/once" 2>/dev/null && kill -9 $$\n'
        f'exec "{os.path.abspath(binary)}" "$@"\n'
    )
    script.chmod(0o755)
    monkeypatch.setenv("CHASKI_BIN", str(script))
    jobs.run(job)
    assert (tmp_path / "once").is_dir()
    check(binary, job)


def test_bad_file(binary: str, tmp_path: Path) -> None:
    """A fault of a file is an error, after the other shards are done."""
    chips = tmp_path / "chips"
    chips.mkdir()
    for name in ("a.tif", "c.tif"):
        (chips / name).symlink_to(CHIPS / "tile_00" / "s2" / "img.tif")
    (chips / "b.tif").write_bytes(b"no TIFF")
    job = tmp_path / "job"
    chaski(binary, "job", "plan", "index", "-o", job, "--shard-items", 1, chips)
    with pytest.raises(
        EngineError, match=r"1 shards failed; the first: shard 1: .*b\.tif.*corrupt"
    ):
        jobs.run(job)
    assert jobs.status(job)["failed"] == [1]


def test_arguments(job: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="executor is 'dusk'"):
        jobs.run(job, "dusk")
    with pytest.raises(EngineError, match="not found"):
        jobs.run(tmp_path / "nothing")


def test_dask(binary: str, job: Path) -> None:
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as c,
        distributed.Client(c) as client,
    ):
        executor: Executor = client.get_executor()
        jobs.run(job, executor)
    check(binary, job)


def test_ray(binary: str, job: Path) -> None:
    ray = pytest.importorskip("ray")
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    try:
        jobs.run(job, "ray")
    finally:
        ray.shutdown()
    check(binary, job)


def test_without_ray(job: Path) -> None:
    if find_spec("ray"):
        pytest.skip("Ray is installed")
    with pytest.raises(ImportError):
        jobs.run(job, "ray")


class Held(Executor):
    """An executor that does nothing until it is asked to."""

    def __init__(self) -> None:
        self.futures: list[Future[Any]] = []

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        self.futures.append(Future())
        return self.futures[-1]


def test_interrupt(job: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After Ctrl-C, no shard that waits for a worker of a given executor begins."""

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(jobs, "wait", interrupted)
    pool = Held()
    with pytest.raises(KeyboardInterrupt):
        jobs.run(job, pool)
    assert len(pool.futures) > 1
    assert all(f.cancelled() for f in pool.futures)


class Cancelled(Held):
    """An executor whose owner cancels its first shard."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future = super().submit(fn, *args, **kwargs)
        if len(self.futures) == 1:
            future.cancel()
            future.set_running_or_notify_cancel()
        else:
            future.set_result(fn(*args, **kwargs))
        return future


def test_cancelled_shard(binary: str, job: Path) -> None:
    """A shard that somebody cancels is lost with its worker, and done again."""
    jobs.run(job, Cancelled())
    check(binary, job)


class Broken(Held):
    """An executor that loses its workers when they have all shards."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future = super().submit(fn, *args, **kwargs)
        future.set_exception(BrokenProcessPool())
        return future


class Listed(Held):
    """An executor that does shards at once, and lists them."""

    def __init__(self) -> None:
        super().__init__()
        self.shards: list[int] = []

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        self.shards.append(args[0])
        future = super().submit(fn, *args, **kwargs)
        future.set_result(fn(*args, **kwargs))
        return future


def test_order_after_loss(binary: str, job: Path) -> None:
    """Shards that ran when a pool broke come last: what its workers began may end meanwhile."""
    second = Listed()
    pools: list[Executor] = [Broken(), second]
    jobs.run(job, lambda: pools.pop(0))
    check(binary, job)
    assert second.shards == list(reversed(range(jobs.status(job)["shards"])))
    assert len(second.shards) > 2


def test_torn_result(binary: str, job: Path) -> None:
    """A result that was cut short is made again."""
    jobs.run(job)
    torn = next(iter(sorted((job / "results").iterdir())))
    torn.write_bytes(torn.read_bytes()[:-10])
    jobs.run(job)
    check(binary, job)


def test_executor_shut_down(binary: str, job: Path) -> None:
    """Shards whose executor somebody shuts down are lost with it, and done by the next one."""
    pools = []

    def make() -> ThreadPoolExecutor:
        pools.append(ThreadPoolExecutor(1))
        if len(pools) == 1:
            started, go = threading.Event(), threading.Event()
            pools[0].submit(lambda: (started.set(), go.wait(300)))
            started.wait(300)

            def shut() -> None:
                pools[0].shutdown(wait=False, cancel_futures=True)
                go.set()

            threading.Timer(0.5, shut).start()
        return pools[-1]

    jobs.run(job, make)
    check(binary, job)
    assert len(pools) == 2


def test_any_name(binary: str, job: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder may have the name of a flag, and the name of a bad file may not be UTF-8."""
    monkeypatch.setenv("CHASKI_BIN", os.path.abspath(binary))
    monkeypatch.chdir(tmp_path)
    job.rename("-job")
    jobs.run("-job")
    check(binary, tmp_path / "-job")
    script = tmp_path / "chaski"
    script.write_text(
        f'#!/bin/sh\n[ "$2" = status ] && exec "{os.path.abspath(binary)}" "$@"\n'
        "printf 'chaski: lat\\351in.tif: bad\\n' >&2\nexit 1\n"
    )
    script.chmod(0o755)
    for result in (tmp_path / "-job" / "results").iterdir():
        result.unlink()
    monkeypatch.setenv("CHASKI_BIN", str(script))
    with pytest.raises(EngineError, match="lat\ufffdin.tif: bad"):
        jobs.run("-job")


def test_make(binary: str, tmp_path: Path) -> None:
    """A recipe on a pool, a worker of which dies, has the bytes of chaski make."""
    recipe = CHIPS.parents[3] / "examples" / "coast.yaml"
    folder, one, out = tmp_path / "job", tmp_path / "one.tacozip", tmp_path / "out.tacozip"
    chaski(binary, "make", "-o", one, recipe)
    chaski(binary, "job", "plan", "make", "-o", folder, "--shards", 5, recipe)
    Killed.submitted = 0
    jobs.run(folder, Killed)
    assert Killed.submitted > 5
    chaski(binary, "job", "merge", "-o", out, folder)
    assert out.read_bytes() == one.read_bytes()
