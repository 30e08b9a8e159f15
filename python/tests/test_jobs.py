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
from typing import Any, ClassVar

import pytest

from chaski import jobs
from chaski.errors import CorruptError, EngineError, NotFoundError, SpecError

CHIPS = Path(__file__).resolve().parents[2] / "testdata" / "coast" / "coast_dir" / "DATA"


SHARDS = len(list(CHIPS.glob("*/s2/img.tif")))


def chaski(binary: str, *args: object) -> bytes:
    return subprocess.run([binary, *map(str, args)], check=True, capture_output=True).stdout


@pytest.fixture
def stats(tmp_path: Path) -> list[str | Path]:
    """A command, of which each chip is a shard."""
    return ["stats", "-o", tmp_path / "stats.json", CHIPS / "*/s2/img.tif"]


def check(binary: str, stats: list[str | Path]) -> None:
    """The output has the bytes of one pass, and nothing lies beside it."""
    out = Path(stats[2])
    assert out.read_bytes() == chaski(binary, "stats", CHIPS / "*/s2/img.tif")
    assert not list(out.parent.glob(f"{out.name}.part-*"))


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


def test_own_pool(binary: str, stats: list[str | Path]) -> None:
    assert jobs.run(stats, SHARDS) == []
    check(binary, stats)


def test_given_executor(binary: str, stats: list[str | Path]) -> None:
    with processes() as pool:
        jobs.run(stats, SHARDS, pool)
        assert pool.submit(abs, -1).result() == 1  # it stays whose it was
    check(binary, stats)


def test_killed_worker(binary: str, stats: list[str | Path]) -> None:
    Killed.submitted = 0
    jobs.run(stats, SHARDS, Killed)
    assert Killed.submitted > SHARDS
    check(binary, stats)


def test_broken_executor(binary: str, stats: list[str | Path]) -> None:
    """Shards that are done stay so when the others cannot be done."""
    Killed.submitted = 0
    with Killed() as pool, pytest.raises(EngineError, match="lose their workers"):
        jobs.run(stats, SHARDS, pool)
    jobs.run(stats, SHARDS)
    check(binary, stats)


def test_killed_command(
    binary: str, stats: list[str | Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A command that the system kills, for memory for example, is run again."""
    script = tmp_path / "chaski"
    script.write_text(
        f'#!/bin/sh\nmkdir "{tmp_path}/once" 2>/dev/null && kill -9 $$\n'
        f'exec "{os.path.abspath(binary)}" "$@"\n'
    )
    script.chmod(0o755)
    monkeypatch.setenv("CHASKI_BIN", str(script))
    jobs.run(stats, SHARDS)
    assert (tmp_path / "once").is_dir()
    check(binary, stats)


@pytest.mark.parametrize(("said", "tries"), [("no answer: unavailable", 3), ("corrupt", 1)])
def test_tries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str, tries: int) -> None:
    """What a network says is tried again, and what a file says is not."""
    script, log = tmp_path / "chaski", tmp_path / "log"
    script.write_text(
        "#!/bin/sh\n"
        "read -r size\n"  # of the words, which are on standard input
        "words=$(head -c $size | tr '\\000' ' ')\n"
        f'echo "$1 ${{words% }}" >>"{log}"\n'
        f'echo "chaski: x: {said}" >&2\nexit 1\n'
    )
    script.chmod(0o755)
    monkeypatch.setenv("CHASKI_BIN", str(script))
    with pytest.raises(EngineError, match=f"1 shards failed; the first: shard 0: x: {said}"):
        jobs.run(["stats", "-o", "out", "chips"], 1)
    assert log.read_text() == "stats --shard=0/1 --workers=1 -o out chips\n" * tries


def test_bad_file(tmp_path: Path) -> None:
    """A fault of a file is an error, after the other shards are done."""
    chips = tmp_path / "chips"
    chips.mkdir()
    for name in ("a.tif", "c.tif"):
        (chips / name).symlink_to(CHIPS / "tile_00" / "s2" / "img.tif")
    (chips / "b.tif").write_bytes(b"no TIFF")
    index = ["index", "-o", tmp_path / "x.parquet", chips]
    with pytest.raises(
        CorruptError, match=r"1 shards failed; the first: shard 1: .*b\.tif.*corrupt"
    ):
        jobs.run(index, 3)
    parts = sorted(p.name for p in tmp_path.glob("x.parquet.*"))
    assert parts == ["x.parquet.part-0-of-3", "x.parquet.part-2-of-3"]
    said = jobs.run([*index, "--skip-bad"], 3)
    assert len(said) == 2
    assert said[0].startswith("skipped: ")
    assert said[1] == "files skipped: 1"


def test_arguments(stats: list[str | Path]) -> None:
    with pytest.raises(ValueError, match="executor is 'dusk'"):
        jobs.run(stats, 3, "dusk")
    with pytest.raises(ValueError, match="shards is 0"):
        jobs.run(stats, 0)
    with pytest.raises(NotFoundError, match="not found"):
        jobs.run(["stats", "-o", stats[2], "nothing"], 1)
    with pytest.raises(SpecError, match=r'"sampling"\].* flags begin with a dash$'):
        jobs.run([*stats, "sampling"], 1)


def test_dask(binary: str, stats: list[str | Path]) -> None:
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as c,
        distributed.Client(c) as client,
    ):
        executor: Executor = client.get_executor()
        jobs.run(stats, SHARDS, executor)
    check(binary, stats)


def test_ray(binary: str, stats: list[str | Path]) -> None:
    ray = pytest.importorskip("ray")
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    try:
        jobs.run(stats, SHARDS, "ray")
    finally:
        ray.shutdown()
    check(binary, stats)


def test_without_ray(stats: list[str | Path]) -> None:
    if find_spec("ray"):
        pytest.skip("Ray is installed")
    with pytest.raises(ImportError):
        jobs.run(stats, SHARDS, "ray")


class Held(Executor):
    """An executor that does nothing until it is asked to."""

    def __init__(self) -> None:
        self.futures: list[Future[Any]] = []

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        self.futures.append(Future())
        return self.futures[-1]


def test_interrupt(stats: list[str | Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """After Ctrl-C, no shard that waits for a worker of a given executor begins."""

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(jobs, "wait", interrupted)
    pool = Held()
    with pytest.raises(KeyboardInterrupt):
        jobs.run(stats, SHARDS, pool)
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


def test_cancelled_shard(binary: str, stats: list[str | Path]) -> None:
    """A shard that somebody cancels is lost with its worker, and done again."""
    jobs.run(stats, SHARDS, Cancelled())
    check(binary, stats)


class Broken(Held):
    """An executor that loses its workers when they have all shards."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future = super().submit(fn, *args, **kwargs)
        future.set_exception(BrokenProcessPool())
        return future


def test_workers_that_die_faster_than_they_start(binary: str, stats: list[str | Path]) -> None:
    """Passes in which all workers die are no end while the patience lasts."""
    pools: list[Executor] = [*(Broken() for _ in range(5)), Listed()]
    jobs.run(stats, SHARDS, lambda: pools.pop(0), retries=0, patience=8)
    check(binary, stats)
    with pytest.raises(EngineError, match="lose their workers"):
        jobs.run([*stats, "--bins", "7"], SHARDS, Broken, retries=1, patience=0.1)


class Alone(Held):
    """An executor of Dask without workers, which may come back."""

    class _client:  # noqa: N801 # as Dask calls it
        workers: ClassVar[dict[str, int]] = {}

        @classmethod
        def scheduler_info(cls) -> dict[str, dict[str, int]]:
            return {"workers": cls.workers}


def test_no_workers(stats: list[str | Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "_ALONE", 0.1)
    monkeypatch.setattr(jobs, "_LOOK", 0.1)
    with pytest.raises(EngineError, match="lose their workers"):
        jobs.run(stats, SHARDS, Alone(), patience=0.5)


def test_shards_of_another_framework(binary: str, stats: list[str | Path]) -> None:
    for number in range(SHARDS):
        jobs.shard(stats, number, SHARDS)
    jobs.merge(stats, SHARDS)
    check(binary, stats)
    with pytest.raises(ValueError, match="shards is 2: it must be an int of at least 3"):
        jobs.shard(stats, 2, 2)


def test_spark(binary: str, stats: list[str | Path]) -> None:
    sql = pytest.importorskip("pyspark.sql")
    spark = sql.SparkSession.builder.master("local[2]").getOrCreate()
    try:
        numbers = spark.sparkContext.parallelize(range(SHARDS), SHARDS)
        numbers.foreach(lambda number: jobs.shard(stats, number, SHARDS))
    finally:
        spark.stop()
    jobs.merge(stats, SHARDS)
    check(binary, stats)


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


def test_order_after_loss(binary: str, stats: list[str | Path]) -> None:
    """Shards that ran when a pool broke come last: what its workers began may end meanwhile."""
    second = Listed()
    pools: list[Executor] = [Broken(), second]
    jobs.run(stats, SHARDS, lambda: pools.pop(0))
    check(binary, stats)
    assert second.shards == list(reversed(range(SHARDS)))
    assert SHARDS > 2


def test_torn_part(binary: str, stats: list[str | Path]) -> None:
    """A part that was cut short is made again."""
    chaski(binary, *stats, "--shard", f"0/{SHARDS}")
    torn = Path(f"{stats[2]}.part-0-of-{SHARDS}")
    torn.write_bytes(torn.read_bytes()[:-10])
    jobs.run(stats, SHARDS)
    check(binary, stats)


def test_executor_shut_down(binary: str, stats: list[str | Path]) -> None:
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

    jobs.run(stats, SHARDS, make)
    check(binary, stats)
    assert len(pools) == 2


def test_any_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The name of a bad file may not be UTF-8."""
    script = tmp_path / "chaski"
    script.write_text("#!/bin/sh\nprintf 'chaski: lat\\351in.tif: bad\\n' >&2\nexit 1\n")
    script.chmod(0o755)
    monkeypatch.setenv("CHASKI_BIN", str(script))
    with pytest.raises(EngineError, match="lat\ufffdin.tif: bad"):
        jobs.run(["stats", "-o", "out", "chips"], 1, retries=0)
