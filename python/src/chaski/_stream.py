"""Tickets up, batches down: one stream to one engine."""

from __future__ import annotations

import os
import queue
import threading
import time
from collections import deque
from dataclasses import dataclass, field

import numpy as np

from chaski._assemble import Assembler, Batch, Part, Pool, shared_batch
from chaski._proto import chaski_pb2 as pb
from chaski._rpc import Call, Connection, Description, parse_reply
from chaski._shared import Side
from chaski.errors import PayloadError, UnavailableError
from chaski.order import Ticket


@dataclass(frozen=True, slots=True)
class Job:
    """A ticket with its id, which is its place in the run.

    Attributes:
        id: its place in the run, from 1.
        step: the step in the epoch.
        ticket: what is asked for.
    """

    id: int
    step: int
    ticket: Ticket


Answer = Batch | pb.Fault | Exception
"""The answer to the next ticket, or what ended the stream."""
Answers = queue.SimpleQueue[Answer]


@dataclass(slots=True)
class _Shared:
    """What the receiving thread and its owner share. The thread holds nothing else of the owner."""

    target: str
    pool: Pool
    limit: int
    samples: int
    side: Side | None
    number: int  # of the stream, at the side door
    answers: Answers
    expected: deque[Job] = field(default_factory=deque)
    heard: float = 0.0
    closed: bool = False


def _receive(call: Call, s: _Shared) -> None:
    """Body of the thread: replies become answers, in the order of the tickets."""
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
                s.answers.put(reply)
                continue
            if isinstance(reply, Part):
                if assembler is None:
                    assembler = Assembler(s.pool, s.limit)
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
                s.answers.put(batch)
                del batch
        s.answers.put(UnavailableError(f"{s.target}: the server ended the stream"))
    except Exception as e:
        # The call is its own exception: with a traceback it would keep this frame, and so the
        # batches in the queue, in a circle.
        e.__traceback__ = None
        if not s.closed:
            s.answers.put(e)
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


class Stream:
    """One call of Stream, with the thread that receives from it."""

    def __init__(
        self,
        connection: Connection,
        description: Description,
        *,
        answers: Answers,
        side: Side | None,
        pool: Pool,
        limit: int,
    ) -> None:
        """Opens the stream.

        Args:
            connection: to the engine.
            description: of the spec, by this engine.
            answers: gets answers in the order of the tickets, and one error at the end.
            side: where leases are claimed, or None to have batches sent.
            pool: memory of batches.
            limit: bytes that a payload may have.
        """
        self._pid = os.getpid()
        self._handle = description.handle
        self._s = s = _Shared(
            connection.target,
            pool,
            limit,
            description.samples,
            side,
            0 if side is None else side.begin(),
            answers,
            heard=time.monotonic(),
        )
        self._requests: queue.SimpleQueue[pb.StreamRequest | None] = queue.SimpleQueue()
        if side is not None:
            attach = pb.Attach(secret=side.secret, stream=s.number)
            self._requests.put(pb.StreamRequest(attach=attach))
        self._call = connection.stream(iter(self._requests.get, None))
        self._thread = threading.Thread(
            target=_receive, args=(self._call, s), name="chaski-receive", daemon=True
        )
        self._thread.start()

    @property
    def heard(self) -> float:
        """When the engine last said something, on the monotonic clock; at first, when it began."""
        return self._s.heard

    def send(self, job: Job, native: bool) -> None:
        """Asks for a job. The engine begins with it once there is a credit."""
        t = job.ticket
        self._s.expected.append(job)
        ticket = pb.Ticket(
            id=job.id,
            handle=self._handle,
            epoch=t.epoch,
            first=t.first,
            count=t.count,
            row_start=t.row_start,
            row_stride=t.row_stride,
            native=native,
        )
        self._requests.put(pb.StreamRequest(ticket=ticket))

    def credit(self, batches: int) -> None:
        """Says that so many more batches are welcome."""
        self._requests.put(pb.StreamRequest(credit=pb.Credit(batches=batches)))

    def close(self) -> None:
        """Ends the stream; nothing is told of it any more, but for what was told before."""
        if os.getpid() != self._pid:  # a forked child has neither the thread nor the call
            return
        self._s.closed = True
        self._requests.put(None)
        self._call.cancel()
        if threading.current_thread() is not self._thread:
            self._thread.join(5)
