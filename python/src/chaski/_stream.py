"""Tickets up, batches down: the stream to one engine, with credits, deadlines and reconnection."""

from __future__ import annotations

import contextlib
import os
import queue
import threading
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

import grpc
import numpy as np

from chaski._assemble import Assembler, Batch, Part, Pool, shared_batch
from chaski._proto import chaski_pb2 as pb
from chaski._rpc import Call, Connection, Description, fault_error, parse_reply
from chaski._shared import Side
from chaski.errors import DeadlineError, Error, PayloadError, StateError, UnavailableError
from chaski.order import Ticket

Transport = Literal["auto", "shm", "grpc"]


@dataclass(frozen=True, slots=True)
class Job:
    """A ticket with its id, which is its place in the run."""

    id: int
    step: int
    ticket: Ticket


@dataclass(slots=True)
class _Shared:
    """What the receiving thread and its owner share. The thread holds nothing else of the owner."""

    target: str
    pool: Pool
    scratch: Pool
    limit: int
    samples: int
    side: Side | None
    number: int  # of the stream, at the side door
    events: queue.SimpleQueue[Batch | pb.Fault | Exception] = field(
        default_factory=queue.SimpleQueue
    )
    expected: deque[Job] = field(default_factory=deque)
    heard: float = 0.0
    closed: bool = False


def _receive(call: Call, s: _Shared) -> None:
    """Body of the thread: replies become events, in the order of the tickets."""
    assembler: Assembler | None = None
    try:
        for raw in call:
            s.heard = time.monotonic()
            reply = parse_reply(raw)
            del raw
            if not s.expected:
                raise PayloadError(f"{s.target}: a reply that no ticket asked for")
            job = s.expected[0]
            if reply.ticket != job.id:
                raise PayloadError(f"{s.target}: ticket {reply.ticket} answered before {job.id}")
            if isinstance(reply, pb.Fault):
                s.expected.popleft()
                assembler = None
                s.events.put(reply)
                continue
            if isinstance(reply, Part):
                if assembler is None:
                    assembler = Assembler(s.pool, s.scratch, s.limit)
                batch = assembler.add(reply)
            elif assembler is not None:
                raise PayloadError(f"{s.target}: ticket {job.id}: a lease after parts")
            else:
                batch = _leased(reply, s)
            del reply
            if batch is not None:
                _check(batch, job, s)
                s.expected.popleft()
                assembler = None
                s.events.put(batch)
                del batch
        s.events.put(UnavailableError(f"{s.target}: the server ended the stream"))
    except Exception as e:
        # The call is its own exception: with a traceback it would keep this frame, and so the
        # batches in the queue, in a circle.
        e.__traceback__ = None
        if not s.closed:
            s.events.put(e)
    finally:
        if s.side is not None:
            s.side.end(s.number)


def _leased(reply: pb.Lease, s: _Shared) -> Batch:
    """Returns a batch in shared memory."""
    if s.side is None:
        raise PayloadError(f"{s.target}: a lease that was not asked for")
    memory = s.side.claim(reply.id, reply.segment)
    return shared_batch(reply.head, memory, s.pool, s.limit)


def _check(batch: Batch, job: Job, s: _Shared) -> None:
    """Checks that a batch is what its ticket asked for."""
    if batch.epoch != job.ticket.epoch or not np.array_equal(
        batch["position"], job.ticket.positions(s.samples)
    ):
        raise PayloadError(f"{s.target}: ticket {job.id} answered with other positions")
    batch.step = job.step


class _Stream:
    """One call of Stream, with the thread that receives from it."""

    def __init__(self, connection: Connection, s: _Shared) -> None:
        self._pid = os.getpid()
        self.shared = s
        s.heard = time.monotonic()
        self._requests: queue.SimpleQueue[pb.StreamRequest | None] = queue.SimpleQueue()
        if s.side is not None:
            attach = pb.Attach(secret=s.side.secret, stream=s.number)
            self._requests.put(pb.StreamRequest(attach=attach))
        self._call = connection.stream(iter(self._requests.get, None))
        self._thread = threading.Thread(
            target=_receive, args=(self._call, s), name="chaski-receive", daemon=True
        )
        self._thread.start()

    def send(self, job: Job, handle: str, native: bool) -> None:
        t = job.ticket
        self.shared.expected.append(job)
        ticket = pb.Ticket(
            id=job.id,
            handle=handle,
            epoch=t.epoch,
            first=t.first,
            count=t.count,
            row_start=t.row_start,
            row_stride=t.row_stride,
            native=native,
        )
        self._requests.put(pb.StreamRequest(ticket=ticket))

    def credit(self, batches: int) -> None:
        self._requests.put(pb.StreamRequest(credit=pb.Credit(batches=batches)))

    def close(self) -> None:
        if os.getpid() != self._pid:  # a forked child has neither the thread nor the call
            return
        self.shared.closed = True
        self._requests.put(None)
        self._call.cancel()
        if threading.current_thread() is not self._thread:
            self._thread.join(5)
        with contextlib.suppress(queue.Empty):  # batches that nobody will ask for
            while True:
                self.shared.events.get_nowait()


@dataclass(frozen=True, slots=True)
class RunOptions:
    """How a run is received; nothing here changes a byte of a batch.

    Attributes:
        prefetch: batches asked for beyond the one that the user holds.
        timeout: seconds without any sign of the server after which an error is raised.
        retries: times in a row that a broken connection is opened again.
        native: ask for tensors in their native dtype where they are smaller so.
        limit: bytes that a payload may have.
        transport: "shm" fails without shared memory, "grpc" does not ask for it, "auto" takes it
            where it works.
    """

    prefetch: int
    timeout: float
    retries: int
    native: bool
    limit: int
    transport: Transport = "auto"


class Run:
    """Gives the batches of a sequence of tickets, in order. For one thread."""

    def __init__(
        self,
        connection: Connection,
        description: Description,
        jobs: Iterator[Job],
        options: RunOptions,
        pool: Pool,
        scratch: Pool,
    ) -> None:
        """Opens the stream and sends the first tickets."""
        self._connection = connection
        self._description = description
        self._jobs = jobs
        self._options = options
        self._pool = pool
        self._scratch = scratch
        self._open: deque[Job] = deque()  # sent, and not given to the user
        self._broken = 0  # times in a row
        self._stream: _Stream | None = None
        self._fill()
        if self._open:
            self._connect()

    def _fill(self) -> None:
        """Takes jobs until `prefetch` are open, and sends them if there is a stream."""
        while len(self._open) < self._options.prefetch:
            job = next(self._jobs, None)
            if job is None:
                return
            self._open.append(job)
            if self._stream is not None:
                self._stream.send(job, self._description.handle, self._options.native)

    def _connect(self) -> None:
        """Opens a stream and sends what is open."""
        side = self._side()
        shared = _Shared(
            self._connection.target,
            self._pool,
            self._scratch,
            self._options.limit,
            self._description.samples,
            side,
            0 if side is None else side.begin(),
        )
        self._stream = _Stream(self._connection, shared)
        self._stream.credit(self._options.prefetch)
        for job in self._open:
            self._stream.send(job, self._description.handle, self._options.native)

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
            Error: the server has a fault for its ticket, cannot be reached, or breaks the rules.
                The run is closed then.
        """
        if not self._open:
            self.close()
            return None
        try:
            while True:
                event = self._wait()
                if isinstance(event, Batch):
                    break
                self._recover(event)
        except BaseException:
            self.close()
            raise
        self._broken = 0
        self._open.popleft()
        assert self._stream is not None
        self._stream.credit(1)
        self._fill()
        return event

    def _wait(self) -> Batch | pb.Fault | Exception:
        """Returns the next event; the deadline counts from the last sign of the server."""
        assert self._stream is not None
        s = self._stream.shared
        asked = time.monotonic()
        while True:
            left = max(s.heard, asked) + self._options.timeout - time.monotonic()
            if left <= 0:
                job = self._open[0]
                raise DeadlineError(
                    f"{s.target}: nothing for {self._options.timeout:g} s while waiting for ticket "
                    f"{job.id} (epoch {job.ticket.epoch}, step {job.step})"
                )
            try:
                # In slices: a signal that comes just before the wait begins does not end it, and
                # Ctrl-C would have to wait for the deadline.
                return s.events.get(timeout=min(left, 0.5))
            except queue.Empty:
                continue

    def _recover(self, event: pb.Fault | Exception) -> None:
        """Opens a new stream if that helps against what happened; raises it otherwise."""
        doing = f"ticket {self._open[0].id}"
        if isinstance(event, pb.Fault):
            if event.kind != "unknown spec":
                raise fault_error(event)
            error: Error = fault_error(event)
        elif isinstance(event, grpc.RpcError):
            error = self._connection.error(event, doing)
        elif isinstance(event, Error):
            error = event
        else:
            raise event
        unknown = isinstance(event, pb.Fault)
        if not unknown and not isinstance(error, UnavailableError):
            raise error from None
        assert self._stream is not None
        self._stream.close()
        while True:
            if self._broken >= self._options.retries:
                raise error from None
            self._broken += 1
            if not unknown or self._broken > 1:
                time.sleep(min(0.1 * 2 ** (self._broken - 1), 2.0))
            try:
                self._describe_again()
                break
            except UnavailableError as e:
                error = e
        self._connect()

    def _describe_again(self) -> None:
        d = self._connection.describe(self._description.spec, self._options.timeout)
        if d.spec_hash != self._description.spec_hash:
            raise StateError(
                f"{self._connection.target}: the server now sees other data: fingerprint "
                f"{d.fingerprint}, before {self._description.fingerprint}"
            )
        self._description = d

    def close(self) -> None:
        """Ends the stream. Batches that were returned stay valid."""
        self._open.clear()
        if self._stream is not None:
            self._stream.close()
            self._stream = None
