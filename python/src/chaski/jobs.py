"""Does a command in shards on any executor of `concurrent.futures`, and merges them.

    from chaski import jobs

    stats = ["stats", "-o", "stats.json", "s3://bucket/train.parquet"]
    jobs.run(stats, 200)                                   # a pool on this machine
    jobs.run(stats, 200, dask_client.get_executor())       # workers of Dask
    jobs.run(stats, 200, "ray")                            # tasks of Ray

Each worker runs the command of its own installation, with the credentials of its own environment,
and sees the inputs and the output under the same names. Shards that are done are kept, so an
interrupted run is simply started again.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from chaski._command import Done, check, failed, message, run_line
from chaski.errors import OF_FILES, EngineError

__all__ = ["merge", "run", "shard"]

# How many shards an executor has at the same time: enough for a thousand workers, and few enough
# that 100,000 shards do not fill the memory of a scheduler.
_AHEAD = 4096
_LOOK = 1.0
"""Seconds between two looks at the running shards: little beside the minutes of a shard."""
_ALONE = 60.0
"""Seconds without a worker until shards count as lost: a machine in a cloud starts in as many."""


def run(
    command: Sequence[str | os.PathLike[str]],
    shards: int,
    executor: Executor | Callable[[], Executor] | str | None = None,
    *,
    workers: int = 0,
    retries: int = 2,
    patience: float = 300,
) -> list[str]:
    """Does a command in shards, and merges their parts into its output.

    Args:
        command: The words of the command as for a shell, without `chaski`, `--shard` and `--merge`,
            such as `["index", "-o", "chips.parquet", "chips/"]`. docs/jobs.md names the commands
            that have shards.
        shards: How many shards.
        executor: Any executor of `concurrent.futures`, or a function that makes one, which is
            called again if the workers of the last one died. "ray" is for tasks of Ray
            (`chaski-eo[ray]`). None is a pool on this machine, with a shard for each processor.
        workers: Decoding workers of a shard. 0: one in the pool of this machine, otherwise as many
            as the worker's machine has processors.
        retries: How often a shard is tried again whose worker was lost, or which failed for
            another reason than a fault of a file.
        patience: How many seconds to go on while workers die, or there are none, and no shard is
            done. It is not for a pool of `concurrent.futures` that is given, since that stays
            broken.

    Returns:
        What the command says about its output, a line each, such as the files that it left out.

    Raises:
        Error: A shard failed, after all others were done, or the merge did: of the kind that the
            command says, as NotFoundError, or else an EngineError.
    """
    line = _line(command)
    _check(shards=(shards, 1), workers=(workers, 0), retries=(retries, 0))
    make = _maker(executor)
    if isinstance(executor, Executor) and not hasattr(executor, "_client"):
        patience = 0  # a pool that broke stays so
    if executor is None:
        workers = workers or 1
    if workers:
        line.insert(1, f"--workers={workers}")
    todo = list(range(shards))
    faults: list[tuple[int, Done]] = []
    idle, since = 0, time.monotonic()  # passes in a row in which no shard was done
    while todo:
        with make() as pool:
            lost = _one_pass(pool, todo, (shards, line, retries), faults)
        if len(lost) < len(todo):
            idle, since = 0, time.monotonic()
        elif (idle := idle + 1) > retries and time.monotonic() - since >= patience:
            raise EngineError(f"{len(todo)} shards lose their workers; the first is {min(todo)}")
        elif idle > 1:  # workers die faster than they start
            time.sleep(min(2.0**idle, patience / 8))
        todo = lost
    if faults:
        shard, out = faults[0]
        why = f"{len(faults)} shards failed; the first: shard {shard}: {message(out)}"
        raise failed(why, out.fault)
    return merge(line, shards)


def shard(command: Sequence[str | os.PathLike[str]], number: int, shards: int) -> None:
    """Does one shard of a command, which ends at once if its part is there.

    It is for frameworks that spread work in their own way. `merge` then writes the output.

    Args:
        command: The words of the command, as for `run`.
        number: The number of the shard, from 0 on.
        shards: How many shards there are.

    Raises:
        Error: The shard failed, of the kind that the command says, or else an EngineError.
    """
    _check(number=(number, 0), shards=(shards, number + 1))
    check(_divided(_line(command), f"--shard={number}/{shards}"), {})


def merge(command: Sequence[str | os.PathLike[str]], shards: int) -> list[str]:
    """Merges the parts of all shards of a command into its output.

    Args:
        command: The words of the command, as for `run`.
        shards: How many shards there are.

    Returns:
        What the command says about its output, a line each.

    Raises:
        Error: A part is missing or of other inputs, or the output cannot be written.
    """
    _check(shards=(shards, 1))
    out = _divided(_line(command), f"--merge={shards}")
    check(out, {})
    return [said.removeprefix("chaski: ") for said in out.stderr.splitlines()]


def _divided(line: list[str], flag: str) -> Done:
    """Runs a command with a flag of shards."""
    return run_line([line[0], flag, *line[1:]])


def _line(command: Sequence[str | os.PathLike[str]]) -> list[str]:
    if isinstance(command, str) or not command:
        raise ValueError(f'command is {command!r}: it must be a list of words, as ["index", ...]')
    return [os.path.expanduser(os.fspath(word)) for word in command]


def _check(**numbers: tuple[int, int]) -> None:
    """Checks numbers, each with the least that it may be."""
    for name, (n, least) in numbers.items():
        if not isinstance(n, int) or n < least:
            raise ValueError(f"{name} is {n!r}: it must be an int of at least {least}")


def _maker(
    executor: Executor | Callable[[], Executor] | str | None,
) -> Callable[[], AbstractContextManager[Executor]]:
    if isinstance(executor, Executor):
        return lambda: nullcontext(executor)
    if executor is None:
        return lambda: ThreadPoolExecutor(os.cpu_count())
    if callable(executor):
        return executor
    if executor == "ray":
        return _Ray
    raise ValueError(f"executor is {executor!r}: it must be an executor, a function, or 'ray'")


def _one_pass(
    pool: Executor,
    todo: list[int],
    args: tuple[int, list[str], int],
    faults: list[tuple[int, Done]],
) -> list[int]:
    """Does shards once, adds to faults those that could not be done, and returns the lost ones."""
    left, lost = list(reversed(todo)), []
    running: dict[Future[Done | None], int] = {}
    seen = time.monotonic()
    try:
        while left or running:
            while left and len(running) < _AHEAD:
                try:
                    running[pool.submit(_shard, left[-1], *args)] = left[-1]
                except RuntimeError:  # it is broken or shut down, and the rest is lost with it
                    lost += left
                    left.clear()
                    break
                left.pop()
            # wait stays blocked when a shut-down executor cancels its futures, so it has a timeout.
            done, _ = wait(running, timeout=_LOOK, return_when=FIRST_COMPLETED)
            if done or _has_workers(pool):
                seen = time.monotonic()
            elif time.monotonic() - seen > _ALONE:
                lost += [*left, *running.values()]
                return lost
            for future in [f for f in running if f.done()]:
                shard = running.pop(future)
                out = None if future.cancelled() or future.exception() else future.result()
                if future.cancelled() or future.exception() or out and out.returncode < 0:
                    lost.append(shard)
                elif out:
                    faults.append((shard, out))
    finally:  # after an interrupt, nothing that waits for a worker begins
        for future in running:
            future.cancel()
    # Shards that ran when a pool lost a worker come last: its other workers may still finish them.
    place = {shard: i for i, shard in enumerate(todo)}
    return sorted(lost, key=place.__getitem__, reverse=True)


def _has_workers(pool: Executor) -> bool:
    """Reports whether an executor of Dask has workers, which wait for ever for the first one."""
    client = getattr(pool, "_client", None)
    return client is None or bool(client.scheduler_info()["workers"])


def _shard(shard: int, shards: int, line: list[str], retries: int) -> Done | None:
    """Does a shard in a worker. Returns the command if it failed or was killed."""
    for left in range(retries, -1, -1):
        out = _divided(line, f"--shard={shard}/{shards}")
        if out.returncode == 0:
            return None
        # Another try would only repeat the fault of a file, and this worker may be killed again.
        if not left or out.returncode not in (0, 1) or message(out).endswith(OF_FILES):
            break
    return out


class _Ray(Executor):
    """Tasks of Ray, which does those of lost workers again."""

    def __init__(self) -> None:
        # Ray sends a function to all workers whenever one is made remote.
        self._remote: dict[Callable[..., Any], Any] = {}

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        import ray

        if fn not in self._remote:
            self._remote[fn] = ray.remote(fn)
        future: Future[Any] = self._remote[fn].remote(*args, **kwargs).future()
        return future
