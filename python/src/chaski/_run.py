"""A sequence of tickets, answered in order by one engine."""

from __future__ import annotations

import contextlib
import queue
import time
from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING

from chaski._assemble import Batch, Pool
from chaski._grpc import grpc
from chaski._proto import chaski_pb2 as pb
from chaski._rpc import Connection, Description, fault_error
from chaski._shared import Side
from chaski._stream import Answer, Answers, Job, Stream
from chaski.errors import DeadlineError, UnavailableError

if TYPE_CHECKING:
    from chaski._options import Engine

_SLICE = 0.5
"""Seconds of one wait: a signal that comes just before it begins does not end it, and Ctrl-C would
have to wait for the deadline."""


class Run:
    """Gives the batches of a sequence of tickets, in order. For one thread.

    It ends with the first error. An engine keeps nothing between tickets, so another run may ask
    for the rest.
    """

    def __init__(
        self,
        connection: Connection,
        description: Description,
        jobs: Iterator[Job],
        options: Engine,
        pool: Pool,
        tickets: int = 1,
    ) -> None:
        """Opens the stream and sends the first tickets.

        Args:
            connection: to the engine that answers the tickets.
            description: of the spec, by this engine.
            jobs: the tickets.
            options: how batches are received. With wire "native", an engine that is the client of
                servers lets them send pixels as stored, and converts them.
            pool: where the memory of batches comes from.
            tickets: tickets that the engine knows of, if more than `prefetch`. An engine that is
                the client of several servers decides by them which server works on what.

        Raises:
            UnavailableError: there is no shared memory, which the options ask for.
        """
        self._connection = connection
        self._description = description
        self._jobs = jobs
        self._options = options
        self._native = options.wire == "native"
        self._known = max(options.prefetch, tickets)
        self._pool = pool
        self._answers: Answers = queue.SimpleQueue()
        self._open: deque[Job] = deque()  # asked for, and not given to the user
        self._stream: Stream | None = None
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
        self._stream = Stream(
            self._connection,
            self._description,
            answers=self._answers,
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
            return self._connection.side(self._description.shared)
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
            batch = self._batch_of(self._answer())
        except BaseException:
            self.close()
            raise
        self._open.popleft()
        assert self._stream is not None
        self._take()
        if self._open:
            self._stream.credit(1)
        return batch

    def _answer(self) -> Answer:
        """Returns the answer to the first open job, which is what the engine answers next.

        Raises:
            DeadlineError: there is none in time.
        """
        asked = time.monotonic()
        while True:
            assert self._stream is not None
            begun = time.monotonic()
            left = self._options.timeout - (begun - max(asked, self._stream.heard))
            if left <= 0:
                raise self._silent()
            try:
                return self._answers.get(timeout=min(left, _SLICE))
            except queue.Empty:
                if time.monotonic() - begun > 2 * _SLICE:
                    asked = time.monotonic()  # this process was stopped: the engine was not silent

    def _batch_of(self, answer: Answer) -> Batch:
        """Returns the batch that an answer is, or raises the error that it is."""
        if isinstance(answer, Batch):
            return answer
        if isinstance(answer, pb.Fault):
            raise fault_error(answer)
        if isinstance(answer, grpc.RpcError):
            raise self._connection.error(answer, f"ticket {self._open[0].id}")
        raise answer

    def _silent(self) -> DeadlineError:
        job = self._open[0]
        return DeadlineError(
            f"{self._connection.target}: nothing for {self._options.timeout:g} s while "
            f"waiting for ticket {job.id} (epoch {job.ticket.epoch}, step {job.step})"
        )

    def close(self) -> None:
        """Ends the stream. Batches that were returned stay valid."""
        self._open.clear()
        if self._stream is not None:
            self._stream.close()
        self._stream = None
        with contextlib.suppress(queue.Empty):  # batches that nobody will ask for
            while True:
                self._answers.get_nowait()
