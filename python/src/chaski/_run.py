"""A sequence of tickets, answered in order by one engine."""

from __future__ import annotations

import contextlib
import itertools
import queue
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from chaski._assemble import Batch, Pool
from chaski._grpc import grpc
from chaski._proto import chaski_pb2 as pb
from chaski._rpc import Connection, Description, fault_error
from chaski._shared import Side
from chaski._stream import Event, Events, Job, Stream
from chaski.errors import DeadlineError, Error, StateError, UnavailableError

if TYPE_CHECKING:
    from chaski._options import Engine

_SLICE = 0.5
"""Seconds of one wait: a signal that comes just before it begins does not end it, and Ctrl-C would
have to wait for the deadline."""

_LONGEST_PAUSE = 2.0
"""Seconds between two attempts to open a connection again, at most."""


@dataclass(slots=True)
class Server:
    """An engine that answers tickets of a spec.

    Attributes:
        connection: to it.
        description: how it describes the spec.
        describe: asks it to describe the spec again.
    """

    connection: Connection
    description: Description
    describe: Callable[[], Description]


class Run:
    """Gives the batches of a sequence of tickets, in order. For one thread.

    An engine keeps nothing between tickets, so what it owes when the connection breaks is asked for
    again, over a new one.
    """

    def __init__(
        self,
        server: Server,
        jobs: Iterator[Job],
        options: Engine,
        pool: Pool,
        tickets: int = 1,
    ) -> None:
        """Opens the stream and sends the first tickets.

        Args:
            server: answers the tickets.
            jobs: the tickets.
            options: how batches are received. With wire "native", an engine that is the client of
                servers lets them send pixels as stored, and converts them.
            pool: where the memory of batches comes from.
            tickets: tickets that the engine knows of, if more than `prefetch`. An engine that is
                the client of several servers decides by them which server works on what.

        Raises:
            UnavailableError: there is no shared memory, which the options ask for.
        """
        self._server = server
        self._jobs = jobs
        self._options = options
        self._native = options.wire == "native"
        self._known = max(options.prefetch, tickets)
        self._pool = pool
        self._keys = itertools.count(1)
        self._events: Events = queue.SimpleQueue()
        self._open: deque[Job] = deque()  # asked for, and not given to the user
        self._stream: Stream | None = None
        self._key = 0  # of the stream
        self._failures = 0  # of connections, in a row
        self._take()
        if self._open:
            self._connect()

    def _take(self) -> None:
        """Takes jobs until so many are open as the engine is to know of."""
        while len(self._open) < self._known:
            job = next(self._jobs, None)
            if job is None:
                return
            self._open.append(job)
            if self._stream is not None:
                self._stream.send(job, self._native)

    def _connect(self) -> None:
        """Opens a stream, and asks for everything that is open."""
        self._key = next(self._keys)
        self._stream = Stream(
            self._server.connection,
            self._server.description,
            key=self._key,
            events=self._events,
            side=self._side(),
            pool=self._pool,
            limit=self._options.max_batch_bytes,
        )
        for job in self._open:
            self._stream.send(job, self._native)
        self._stream.credit(self._options.prefetch)

    def _side(self) -> Side | None:
        if self._options.transport == "grpc":
            return None
        try:
            return self._server.connection.side(self._server.description.shared)
        except UnavailableError:
            if self._options.transport == "shm":
                raise
            return None

    def next(self) -> Batch | None:
        """Waits for the next batch and returns it, or None after the last one.

        Raises:
            Error: there is a fault for its ticket, the engine cannot be reached, or it breaks the
                rules. The run is closed then.
        """
        if not self._open:
            self.close()
            return None
        try:
            while True:
                try:
                    batch = self._answer()
                    break
                except _LostError as e:
                    self._reopen(e.error, e.at_once)
        except BaseException:
            self.close()
            raise
        self._failures = 0
        self._open.popleft()
        assert self._stream is not None
        self._take()
        if self._open:
            self._stream.credit(1)
        return batch

    def _answer(self) -> Batch:
        """Returns the answer to the first open job, which is what the engine answers next.

        Raises:
            _LostError: the connection broke, or the engine does not know the spec any more.
            Error: anything else that is wrong.
        """
        asked = time.monotonic()
        while True:
            assert self._stream is not None
            begun = time.monotonic()
            left = self._options.timeout - (begun - max(asked, self._stream.heard))
            if left <= 0:
                raise self._silent()
            try:
                event = self._events.get(timeout=min(left, _SLICE))
            except queue.Empty:
                if time.monotonic() - begun > 2 * _SLICE:
                    asked = time.monotonic()  # this process was stopped: the engine was not silent
                continue
            if event.key == self._key:  # else it is of a stream that is closed
                return self._told(event)

    def _told(self, event: Event) -> Batch:
        """Returns the batch of an event, or raises what it tells of."""
        what = event.what
        if isinstance(what, Batch):
            return what
        if isinstance(what, pb.Fault):
            error = fault_error(what)
            if what.kind == "unknown spec":
                raise _LostError(error, at_once=True)
            raise error
        if isinstance(what, grpc.RpcError):
            error = self._server.connection.error(what, f"ticket {self._open[0].id}")
        elif isinstance(what, Error):
            error = what
        else:
            raise what
        if isinstance(error, UnavailableError):
            raise _LostError(error)
        raise error

    def _silent(self) -> DeadlineError:
        job = self._open[0]
        return DeadlineError(
            f"{self._server.connection.target}: nothing for {self._options.timeout:g} s while "
            f"waiting for ticket {job.id} (epoch {job.ticket.epoch}, step {job.step})"
        )

    def _reopen(self, error: Error, at_once: bool) -> None:
        """Opens the stream again, after a pause that doubles with every failure.

        Raises:
            Error: it was tried as often as it may be; `error`, or what the last try said.
            StateError: the engine sees other data now.
        """
        self._drop()
        while True:
            self._failures += 1
            if self._failures > self._options.retries:
                raise error from None
            if not at_once or self._failures > 1:
                time.sleep(min(0.1 * 2 ** (self._failures - 1), _LONGEST_PAUSE))
            try:
                d = self._server.describe()
            except UnavailableError as e:
                error = e
                continue
            break
        was = self._server.description.spec_hash
        if d.spec_hash != was:
            raise StateError(
                f"{self._server.connection.target}: the server now sees other data: fingerprint "
                f"{d.fingerprint}; this run has spec hash {was}, the server {d.spec_hash}"
            )
        self._server.description = d
        self._connect()

    def _drop(self) -> None:
        if self._stream is not None:
            self._stream.close()
        self._stream, self._key = None, 0

    def close(self) -> None:
        """Ends the stream. Batches that were returned stay valid."""
        self._open.clear()
        self._drop()
        with contextlib.suppress(queue.Empty):  # batches that nobody will ask for
            while True:
                self._events.get_nowait()


class _LostError(Exception):
    """The way to the engine is lost, and may be found again."""

    def __init__(self, error: Error, at_once: bool = False) -> None:
        super().__init__()
        self.error = error
        self.at_once = at_once  # without a pause, for the engine is there
