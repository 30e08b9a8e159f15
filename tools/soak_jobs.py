"""Does jobs over many files on pools and clusters of two workers, and kills a worker in the middle.

    python tools/soak_jobs.py [--files 20000] [--shards 10] [--only EXECUTOR ...] [--data FOLDER]

The files are copies of the chips of .demo/train (examples/demo-dataset), in FOLDER or a temporary
one, and the work is the statistics of a catalog of them. Each executor does it twice: undisturbed,
and with one worker killed by SIGKILL, along with the command that it runs, when half of the shards
have begun. The merged bytes have to be those of one pass, no shard but the lost one may be done
twice, and an undisturbed run may take at most 1.15 times the ideal time. A script in place of the
command counts which shards begin without a part.

The ideal time is half of one pass with one worker. What a run takes is told from its processor
time, because other work on the machine does not change that: U seconds of the run and of all
processes of its executor, which use R of a processor also at rest, end after (U - R t) / (2 - R)
seconds on two processors that have nothing else to do, where t is how long the run took here.

How much of that is the executor's own is told by empty tasks: as many as there are shards, handed
to it without chaski, each a command that only uses a processor for as long as a shard of the ideal.
What an executor takes for them above their ideal time, a run may take as well. The elapsed time is
compared with half of that of one pass; on a machine with other work, whose load is printed, it says
little.

Executors: pool (the default of chaski.jobs.run), processes (ProcessPoolExecutor), dask
(LocalCluster), ray (ray.cluster_utils, two nodes). Workers are up, and have imported the package,
before a job begins. Linux only, for /proc. Exit status 1 and a line for each broken promise.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from chaski import jobs
from chaski._engine import find_binary

ROOT = Path(__file__).resolve().parent.parent
CHASKI = os.path.abspath(os.environ.get("CHASKI_BIN", ROOT / "bin" / "chaski"))
WORKERS = 2
# How much longer than the ideal time a run may take, beside what the executor takes itself.
MOST = 1.15
# Seconds for one run; the slowest was seen to take a minute beside other work.
LIMIT = 600
# prctl(2): orphans of workers become children of this process, so that their time counts.
SET_CHILD_SUBREAPER = 36
TICKS = os.sysconf("SC_CLK_TCK")
REST = 5
"""Seconds of a cluster that has nothing to do, in which its own processor time is measured."""
PAUSE = 0.005
"""Seconds between looks at a job that is to lose a worker: little beside a shard."""


def main() -> int:
    """Returns the exit status."""
    args = arguments()
    if not 0 < args.shards <= args.files:
        sys.exit("soak_jobs: --shards is more than --files, or not positive")
    ctypes.CDLL(None).prctl(SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    with tempfile.TemporaryDirectory() as tmp:
        data = args.data or Path(tmp) / "chips"
        copy_chips(data, args.files)
        catalog = Path(tmp) / "catalog.parquet"
        chaski("index", "--format", "parquet", "-o", catalog, data)
        soak = Soak(Path(tmp), catalog, args.shards)
        for name in args.only or EXECUTORS:
            soak.one(name)
        print("\n".join(soak.table))
        for line in soak.broken:
            print(f"soak_jobs: {line}")
        return 1 if soak.broken else 0


def arguments() -> argparse.Namespace:
    """Parses the command line."""
    p = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    p.add_argument("--files", type=int, default=20_000)
    p.add_argument("--shards", type=int, default=10)
    p.add_argument("--only", nargs="+", choices=EXECUTORS)
    p.add_argument("--data", type=Path, help="folder for the files, which stays")
    return p.parse_args()


def copy_chips(to: Path, n: int) -> None:
    """Copies the chips of the demo dataset until there are n files."""
    chips = sorted((ROOT / ".demo" / "train" / "images").iterdir())
    for i in range(n):
        chip = chips[i % len(chips)]
        new = to / f"{i // 1000:03d}" / f"{i:06d}{chip.suffix}"
        if not new.exists():
            new.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(chip, new)
    if sum(1 for p in to.rglob("*") if p.is_file()) != n:
        sys.exit(f"soak_jobs: {to} has other files than the {n} chips")


def chaski(*args: object) -> bytes:
    """Runs the command and returns what it printed."""
    run = subprocess.run([CHASKI, *map(str, args)], capture_output=True)
    if run.returncode != 0:
        sys.exit(f"soak_jobs: chaski {args[0]}: {run.stderr.decode(errors='replace').strip()}")
    return run.stdout


class Soak:
    """Runs of one job on several executors, and what they broke."""

    def __init__(self, tmp: Path, data: Path, shards: int) -> None:
        self.tmp, self.data, self.shards = tmp, data, shards
        self.broken: list[str] = []
        # It also warms the system's cache of files, so that what it took does not count.
        self.want = chaski("stats", "--workers", 1, data)
        self.table = [
            "| executor | one pass | the run | at rest | of the ideal time | empty tasks "
            "| by the clock | load | done twice |",
            "|---|---:|---:|---:|---:|---:|---:|---:|---:|",
        ]
        # The command is `stats --shard=K/N --workers=1 -o OUT DATA`.
        self.script = tmp / "chaski"
        self.script.write_text(
            '#!/bin/sh\ncase "$2" in --shard=*)\n'
            "  k=${2#--shard=}; k=${k%/*}\n"
            f'  [ -e "$5.part-$k-of-{shards}" ] || echo "$k" >>"$5.begun"\n'
            f'esac\nexec "{CHASKI}" "$@"\n'
        )
        self.script.chmod(0o755)

    def one(self, name: str) -> None:
        """Does the job twice on an executor: undisturbed, and with the loss of a worker."""
        signal.alarm(2 * LIMIT)  # a run that hangs ends with the signal
        os.environ["CHASKI_BIN"] = str(self.script)
        with EXECUTORS[name]() as executor:
            used, took = measured(lambda: time.sleep(REST))
            rest = used / took
            out = self.tmp / f"{name}-whole"
            # Other work slows a processor down, so that a pass is measured right before and after.
            passes = [self.one_pass(rest)]
            load = os.getloadavg()[0]
            used, took = measured(lambda: self.run(out, executor))
            passes.append(self.one_pass(rest))
            one, elapsed = (sum(x) / len(passes) for x in zip(*passes, strict=True))
            ratio = alone(used, took, rest) / (one / WORKERS)
            own = alone(*measured(lambda: self.empty(executor, one)), rest) / (one / WORKERS)
            self.check(out, lost=None)
            out = self.tmp / f"{name}-killed"
            lost: list[int] = []
            killer = threading.Thread(
                target=kill_one, args=(out, self.shards, name != "pool", lost)
            )
            killer.start()
            self.run(out, executor)
            killer.join()
            twice = self.check(out, lost=lost[0] if lost else -1)
        signal.alarm(0)
        if ratio > MOST + max(0, own - 1):
            self.broken.append(f"{name}: {ratio:.2f} times the ideal time; empty tasks {own:.2f}")
        self.table.append(
            f"| {name} | {one:.1f} s | {used:.1f} s in {took:.1f} s | {rest:.1%} | {ratio:.2f} "
            f"| {own:.2f} | {took / (elapsed / WORKERS):.2f} | {load:.0f} | {twice} |"
        )
        print(self.table[-1], flush=True)

    def one_pass(self, rest: float) -> tuple[float, float]:
        """The processor time of one pass, without that of an executor at rest, and the elapsed."""
        used, took = measured(lambda: chaski("stats", "--workers", 1, self.data))
        return used - rest * took, took

    def empty(self, executor: Any, seconds: float) -> None:
        """Has an executor do as many tasks as there are shards, of so much work together."""
        given = isinstance(executor, Executor)
        tasks = executor if given else jobs._maker(executor)()
        for future in [tasks.submit(spin, i, seconds / self.shards) for i in range(self.shards)]:
            future.result()
        if not given:
            tasks.shutdown()

    def run(self, out: Path, executor: Any) -> None:
        """Does all shards, and merges them."""
        jobs.run(["stats", "-o", out, self.data], self.shards, executor, workers=1)

    def check(self, out: Path, lost: int | None) -> int:
        """Notes what a run broke. Returns how many shards began again."""
        begun = Counter(map(int, Path(f"{out}.begun").read_text().split()))
        again = {shard: n - 1 for shard, n in begun.items() if n > 1}
        if out.read_bytes() != self.want:
            self.broken.append(f"{out.name}: other bytes than those of one pass")
        if lost == -1:
            self.broken.append(f"{out.name}: no worker was killed while it had a shard")
        if sorted(begun) != list(range(self.shards)):
            self.broken.append(f"{out.name}: the shards that began are {sorted(begun)}")
        if again and again != {lost: 1}:
            self.broken.append(f"{out.name}: shard {lost} was lost, and {again} were done again")
        return sum(again.values())


def measured(what: Callable[[], object]) -> tuple[float, float]:
    """The processor time and the elapsed time that a call takes, in seconds."""
    start, used = time.monotonic(), processor_time()
    what()
    return processor_time() - used, time.monotonic() - start


def alone(used: float, took: float, rest: float) -> float:
    """Seconds that a run takes on processors that have nothing else to do."""
    return (used - rest * took) / (WORKERS - rest)


def spin(_: int, seconds: float) -> None:
    """Uses a processor for so many seconds, in a process of its own, as a shard does.

    The number of the task makes its arguments differ: Dask does equal tasks once.
    """
    command = f"import time\nwhile time.process_time() < {seconds}:\n    pass"
    subprocess.run([sys.executable, "-S", "-c", command], check=True, capture_output=True)


def kill_one(out: Path, shards: int, worker: bool, lost: list[int]) -> None:
    """Kills a command that does a shard, and its worker, once half of the shards have begun."""
    begun = Path(f"{out}.begun")
    while not out.exists():
        time.sleep(PAUSE)
        done = begun.read_text().split() if begun.exists() else []
        if len(done) < shards // 2:
            continue
        for pid, shard in running(out):
            victims = [parent_of(pid), pid] if worker else [pid]
            for victim in victims:
                try:
                    os.kill(victim, signal.SIGKILL)
                except ProcessLookupError:  # it has ended
                    break
            else:
                if not Path(f"{out}.part-{shard}-of-{shards}").exists():
                    lost.append(shard)
                    return


def running(out: Path) -> list[tuple[int, int]]:
    """The processes that do shards of an output, and which."""
    found = []
    for pid in descendants():
        try:
            args = Path(f"/proc/{pid}/cmdline").read_bytes().decode().split("\0")
        except OSError:
            continue
        if args[0] == CHASKI and args[1] == "stats" and str(out) in args:
            if m := re.fullmatch(r"--shard=(\d+)/\d+", args[2]):
                found.append((pid, int(m[1])))
    return found


def stat_of(pid: int) -> list[str]:
    """The fields of /proc/PID/stat after the name, which may have any characters: proc(5)."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


def parent_of(pid: int) -> int:
    """The process that a process is a child of."""
    return int(stat_of(pid)[1])


def descendants() -> list[int]:
    """All processes below this one."""
    children: dict[int, list[int]] = {}
    for p in Path("/proc").iterdir():
        if p.name.isdigit():
            try:
                children.setdefault(parent_of(int(p.name)), []).append(int(p.name))
            except OSError:  # it has ended
                continue
    out, todo = [], [os.getpid()]
    while todo:
        for pid in children.get(todo.pop(), []):
            out.append(pid)
            todo.append(pid)
    return out


def processor_time() -> float:
    """Seconds of a processor that this process and all below it used, also those that ended."""
    total = 0.0
    for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN):
        u = resource.getrusage(who)
        total += u.ru_utime + u.ru_stime
    for pid in descendants():
        try:
            # Its own time, and that of the children that it waited for.
            total += sum(map(int, stat_of(pid)[11:15])) / TICKS
        except OSError:
            continue
    return total


def warm(executor: Executor) -> Executor:
    """Has each worker import the package: a task waits until all have one."""
    with tempfile.TemporaryDirectory() as here:
        for future in [executor.submit(meet, here) for _ in range(WORKERS)]:
            future.result()
    return executor


def meet(here: str) -> None:
    """Waits until all workers are here."""
    (Path(here) / str(os.getpid())).touch()
    while len(os.listdir(here)) < WORKERS:
        time.sleep(PAUSE)


@contextmanager
def pool() -> Iterator[Callable[[], Executor]]:
    """Threads that each run the command."""
    yield lambda: ThreadPoolExecutor(WORKERS)


@contextmanager
def processes() -> Iterator[Callable[[], Executor]]:
    """Processes; a pool that lost one is broken, and the next one is new."""

    def make() -> Executor:
        return ProcessPoolExecutor(WORKERS, mp_context=get_context("spawn"))

    first = [warm(make()), warm(make())]  # for the undisturbed run and the empty tasks
    yield lambda: first.pop() if first else make()


@contextmanager
def dask() -> Iterator[Executor]:
    """A cluster of processes."""
    from distributed import Client, LocalCluster

    with (
        LocalCluster(n_workers=WORKERS, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        client.wait_for_workers(WORKERS)
        client.run(find_binary)
        yield client.get_executor()


@contextmanager
def ray() -> Iterator[str]:
    """A cluster of nodes on this machine."""
    import ray
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    try:
        for _ in range(WORKERS - 1):
            cluster.add_node(num_cpus=1)
        ray.init(address=cluster.address, log_to_driver=False)
        warm(jobs._Ray())
        yield "ray"
    finally:
        ray.shutdown()
        cluster.shutdown()


EXECUTORS: dict[str, Callable[[], Any]] = {
    "pool": pool,
    "processes": processes,
    "dask": dask,
    "ray": ray,
}

if __name__ == "__main__":
    sys.exit(main())
