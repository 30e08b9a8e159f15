"""The engine of a loader: it describes specs, and is asked again where it was lost."""

from __future__ import annotations

import contextlib
import logging
import os
import sys
import time
import weakref
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

from chaski import _engine
from chaski._arguments import Engine
from chaski._assemble import Batch, Pool
from chaski._grpc import pb
from chaski._rpc import Connection, Description
from chaski._run import Job, Moves, Run, resting
from chaski.errors import DeadlineError, Error, LimitError, StateError, UnavailableError
from chaski.order import local_rows

_log = logging.getLogger("chaski")

T = TypeVar("T")

_NEW_ENGINES = 2
"""Times an hour that a new engine takes the place of one that ended. An end may be bad luck, such
as another program that took the memory; of the third one the user has to know."""
_HOUR = 3600.0
_LONGEST_PAUSE = 10.0
"""Seconds between two attempts to open a connection again, at most."""
_SERVER_SEES = 5.0
"""Seconds in which a server sees that a stream has ended."""


def refuse_worker() -> None:
    """Raises in a worker process of torch's DataLoader."""
    data = sys.modules.get("torch.utils.data")
    if data is not None and data.get_worker_info() is not None:
        raise RuntimeError(
            "chaski does not run in DataLoader workers: the engine already decodes in parallel and "
            "ahead of the training loop, workers would each load every batch again, and its "
            "connection does not survive their fork. Iterate over the dataset itself, or use "
            "DataLoader(dataset, batch_size=None, num_workers=0)."
        )


@dataclass
class Place:
    """Where a loop stands: an epoch, and its next step."""

    epoch: int = 0
    step: int = 0


class Link:
    """What asks the engine of one loader. Nothing of it refers to the loader, which ends it.

    Attributes:
        asked: the spec, without the defaults that the engine fills in.
        described: what the engine that is there now says of it.
        place: where the loop stands. A new engine goes on there, and the log says so.
    """

    described: Description

    def __init__(
        self,
        connection: Connection,
        asked: dict[str, Any],
        options: Engine,
        release: Callable[[], None],
        *,
        rank: int,
        world_size: int,
        held: _engine.Held | None,
        upstream: pb.Upstream | None,
    ) -> None:
        """Takes a connection; release gives the engine back."""
        self.asked, self.options = asked, options
        self.rank, self.world_size = rank, world_size
        self.place = Place()
        self._given = connection
        self._held = held  # the engine, if it is this process's own
        self.upstream = upstream  # the servers, if the engine is their client
        self._ends: list[float] = []  # times at which engines ended
        self._pid = os.getpid()
        self._pool = Pool(options.reuse)
        # Of samples one by one: whole, with a size of windows, their ids, a column of them.
        self._singles: dict[tuple[bool, tuple[int, int] | None, str | None], Description] = {}
        self.close = weakref.finalize(self, release)
        if upstream is not None:
            _clients.add(self)

    def check_process(self) -> None:
        """Raises in a fork."""
        if os.getpid() != self._pid:
            raise RuntimeError(
                "a chaski.Loader does not work in a fork of the process that made it"
            )

    def check(self) -> None:
        """Raises where nothing can be asked."""
        refuse_worker()
        self.check_process()
        if not self.close.alive:
            raise RuntimeError("this chaski.Loader is closed")

    def may_rest(self) -> bool:
        """Reports whether a stream may stay between two loops: servers may give a client few."""
        others = any(c is not self and c.close.alive for c in list(_clients))
        return self.upstream is None or not others

    @property
    def connection(self) -> Connection:
        """The connection to the engine."""
        if self._held is None:
            return self._given
        if not self._held.engine.alive:
            raise UnavailableError(self._held.engine.last_words())
        return self._held.engine.connection

    def describe(self, spec: dict[str, Any], rows: int) -> Description:
        """Has the engine describe a spec, for tickets of so many rows."""
        connection = self.connection
        d = connection.describe(
            spec,
            self.options.timeout,
            rows=rows,
            rank=self.rank,
            world_size=self.world_size,
            upstream=self.upstream,
        )
        if self.options.transport == "shm":
            connection.side(d.reply.shared)
        return d

    def describe_all(self) -> Description:
        """Has the engine describe the spec of the loader, for its tickets."""
        return self.describe(self.asked, local_rows(self.asked["batch_size"], self.world_size))

    def describe_single(
        self, ids: bool = False, size: tuple[int, int] | None = None, column: str | None = None
    ) -> Description:
        """Returns the description of samples one by one.

        With ids, it is that of their ids alone, and with a column that of a field of its numbers;
        with a size, of such a window of each raster.
        """
        if (d := self._singles.get((ids, size, column))) is None:
            # The batch size stays: with per_batch, it says what the shares are of. take goes: it
            # leaves samples out of an epoch, not of the dataset.
            spec = {**self.asked, "shuffle": False, "last": "short"}
            spec.pop("take", None)
            if ids:
                spec["only"] = ["id"]
            if column is not None:
                self._add_column(spec, column)
            if size:
                asked, spec["sampler"] = spec.get("sampler"), list(size)
                if isinstance(asked, dict) and asked["kind"] == "tile_window":
                    once = {"size": list(size), "visits": 1, "per_visit": 1}
                    spec["sampler"] = {**asked, **once}
            d = self._singles[ids, size, column] = self.describe(spec, 1)
        return d

    def _add_column(self, spec: dict[str, Any], column: str) -> None:
        """Makes a spec that of a field of numbers. Its other fields still say which rows count."""
        fields = self.described.spec["fields"]  # also those that the user left out
        name = "weights"
        while any(f["name"] == name for f in fields):
            name += "_"
        spec["fields"] = [*fields, {"name": name, "column": column, "kind": "number"}]
        spec["only"] = [name]
        for member in ("defaults", "stats", "all_fields", "windows", "geo", "augment"):
            spec.pop(member, None)  # they are filled in, or say nothing of rows
        if spec.get("bad_samples") in ("replace", "fill"):  # others have no part here
            spec["bad_samples"] = "skip"

    def run(
        self,
        jobs: Iterable[Job] = (),
        described: Description | None = None,
        tickets: int = 1,
        mover: Moves | None = None,
    ) -> Run:
        """Opens a stream; see `Run`."""
        described = described or self.described
        return Run(self.connection, described, iter(jobs), self.options, self._pool, tickets, mover)

    def one(self, job: Job) -> Batch:
        """Returns the batch of a ticket, by a stream of its own."""

        def ask() -> Batch:
            with contextlib.closing(self.run()) as run:
                return run.one(job)

        return self.outlive(ask)

    def tell(self, batch: Batch) -> None:
        """Tells a batch what its fields are, and of which source."""
        d = self.described
        fields = d.fields
        if d.sources and d.spec.get("batches"):
            source = d.sources[int(batch["source"][0])]
            batch.source, fields = source.name, source.fields
        batch.fields = {f.name: f for f in fields}
        batch._spec = {f["name"]: f for f in d.spec.get("fields", ())}

    def outlive(self, ask: Callable[[], T]) -> T:
        """Returns what ask does; asks again where the connection or the loader's engine is lost.

        A server alone that refuses, is silent or away is asked for `patience`, with growing pauses.
        """
        failures, since = 0, 0.0
        while True:
            try:
                if failures:
                    self._describe_again()
                return ask()
            except Error as e:
                if isinstance(e, LimitError) and not e._answered:  # of streams, perhaps
                    resting.end()
                    if time.monotonic() < resting.freed + _SERVER_SEES:
                        time.sleep(0.1)
                        continue
                unknown = e.kind == "unknown spec"  # of a server that has started again
                held = self._held
                # What else an engine of this process says is about files, or all servers.
                answered = e._answered and held is not None
                away = isinstance(e, UnavailableError) or (
                    isinstance(e, DeadlineError) and held is None
                )
                if not unknown and (answered or not away):
                    raise
                failures += 1
                since = since or time.monotonic()
                ended = held is not None and not unknown and held.engine.ended()
                over = time.monotonic() >= since + self.options.patience
                if over and not ended and not (unknown and failures == 1):
                    raise
                if failures == 2 and not ended:
                    _log.warning(
                        "no server answers, and the loop waits up to %g s: %s",
                        *(self.options.patience, e),
                    )
            if held is not None and ended:
                self._replace_engine(held)
            elif failures > 1 or not unknown:
                time.sleep(min(0.1 * 2 ** (failures - 1), _LONGEST_PAUSE))

    def _replace_engine(self, held: _engine.Held) -> None:
        """Starts a new engine in place of one that ended."""
        said = held.engine.last_words()
        now = time.monotonic()
        self._ends = [t for t in self._ends if now - t < _HOUR] + [now]
        if (ends := len(self._ends)) > _NEW_ENGINES:
            self._ends.clear()  # a caller that goes on knows of them
            raise UnavailableError(
                f"{said}\n{ends} engines have ended within an hour. "
                "If the system killed them for want of memory (exit status -9), give less to "
                "`memory`, `prefetch` or `workers`"
            )
        _log.warning(
            "the engine ended, a new one goes on at step %d of epoch %d: %s",
            *(self.place.step, self.place.epoch, said),
        )
        held.replace()

    def _describe_again(self) -> None:
        """Has the engine describe the specs anew."""
        self._singles.clear()
        d, before = self.describe_all(), self.described.reply.spec_hash
        if d.reply.spec_hash != before:
            raise StateError(
                f"{self.connection.target}: the engine now sees other data: fingerprint "
                f"{d.reply.fingerprint}; this loader has spec hash {before}, the engine "
                f"{d.reply.spec_hash}"
            )
        self.described = d


_clients: weakref.WeakSet[Link] = weakref.WeakSet()
"""Links to an engine that is the client of servers."""
