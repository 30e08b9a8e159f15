"""Tickets up, batches down: a sequence of tickets, answered in order by one engine."""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import math
import os
import queue
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from chaski import _trace
from chaski._assemble import Assembler, Batch, Pool, Whole
from chaski._grpc import grpc, pb
from chaski._map import wait
from chaski._rpc import MAX_MESSAGE, Connection, Description, fault_error, parse_reply
from chaski._shared import Side
from chaski.errors import DeadlineError, PayloadError, UnavailableError
from chaski.order import Ticket

if TYPE_CHECKING:
    from chaski._arguments import Engine

_STATUS = 5.0
"""Seconds until a call whose pipe has ended says why. The server closes the pipe as it ends the
call, so what takes longer is a pipe that broke on the way."""
_SLICE = 0.5
"""Seconds of one wait: a signal that comes just before it begins does not end it, and Ctrl-C would
have to wait for the deadline."""


@dataclass(frozen=True, slots=True)
class Job:
    """A ticket with its id, which is its place in the run, from 1."""

    id: int
    step: int  # in the epoch
    ticket: Ticket


class Moves(Protocol):
    """What works on batches ahead of the loop: `_device.Mover`, or the `_map.Mapper` of `map`."""

    native: bool
    """It does the arithmetic that an engine can leave to the receiver."""
    ahead: int
    """Batches that it has before the owner takes them."""

    def move(self, batch: Batch) -> None:
        """Moves a batch, or begins to, and lets go of the memory where it was."""


Answer: TypeAlias = "Batch | pb.Fault | Exception"
"""The answer to the next ticket, or what ended the stream."""


_runs: weakref.WeakSet[Run] = weakref.WeakSet()


@atexit.register
def _keep_calls() -> None:
    """Keeps the calls from ever being destroyed, for Python is about to stop all threads.

    gRPC's threads may stop while they hold the lock of a call, and its destructor would wait for
    that lock for ever.
    """
    for run in list(_runs):
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(run))


class Run:
    """Gives the batches of a sequence of tickets, in order. For one thread.

    It is one call of Stream, and a thread that receives from it. It ends with the first error, or
    by `close`. An engine keeps nothing between tickets, so another run may ask for the rest.
    """

    def __init__(
        self,
        connection: Connection,
        description: Description,
        jobs: Iterator[Job],
        options: Engine,
        pool: Pool,
        tickets: int = 1,
        mover: Moves | None = None,
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
            mover: works on batches ahead of the owner.
        """
        self._connection = connection
        self._target = connection.target
        self._description = description
        self._jobs = jobs
        self._options = options
        self._pool = pool
        ahead = 1 if mover is None else mover.ahead
        prefetch = max(options.prefetch or description.prefetch, ahead)
        self._known = max(prefetch, tickets)
        self._mover = mover
        self._room = threading.Semaphore(ahead)  # for batches that are moved ahead
        self._native = mover is not None and mover.native
        self._pid = os.getpid()
        self._open: deque[Job] = deque()  # asked for, and not given to the user
        self._spans: deque[Any] = deque()  # of the open jobs
        self._expected: deque[Job] = deque()  # asked for, and not answered
        self._answers: queue.SimpleQueue[Answer] = queue.SimpleQueue()
        self._given = 0.0  # when the owner got the last batch
        self._heard = time.monotonic()  # when the engine last said something
        self._closed = False
        self._served = False  # the server let the stream in
        self._side = self._find_side()
        self._number = 0 if self._side is None else self._side.begin()  # of the stream, by Attach
        self._pipe = connection.pipe(description.reply.pipe, self._hear)
        self._requests: queue.SimpleQueue[pb.StreamRequest | None] = queue.SimpleQueue()
        self._piped = False  # requests go by the pipe, and those of the call have ended
        self._came = False  # a reply by the pipe, so the server knows it
        attach = pb.Attach(stream=self._number)
        if self._side is not None:
            attach.secret, attach.native = self._side.secret, self._native
        if self._pipe is not None:
            attach.pipe, attach.requests = self._pipe.secret, True
        if attach.secret or attach.pipe:
            self._requests.put(pb.StreamRequest(attach=attach))
        self._call: Any = None
        _runs.add(self)
        self._thread = threading.Thread(target=self._receive, name="chaski-receive", daemon=True)
        try:
            self._thread.start()
            self._take(prefetch)
        except BaseException:
            self.close()
            raise

    def _find_side(self) -> Side | None:
        """Returns the connection to the lease socket, or None if batches come over gRPC."""
        if self._options.transport == "grpc":
            return None
        try:
            return self._connection.side(self._description.reply.shared)
        except UnavailableError:
            if self._options.transport == "shm":
                raise
            return None

    # The thread that receives.

    def _hear(self) -> None:
        self._heard = time.monotonic()

    def _replies(self, call: Any) -> Iterator[Whole | bytes]:
        """Yields the replies as they came: by the pipe until that ends, then by the call."""
        if (pipe := self._pipe) is not None:
            most = self._options.max_batch_bytes
            call.add_done_callback(self._refused)
            while (reply := pipe.reply(self._pool, most, MAX_MESSAGE)) is not None:
                replies = [reply]
                del reply  # the memory of a batch is used again when its user is done with it
                self._came = True
                yield replies.pop()
            if self._came:  # so what is left of the call is its status
                with contextlib.suppress(grpc.FutureTimeoutError, grpc.FutureCancelledError):
                    call.exception(_STATUS)
                if call.is_active():
                    raise UnavailableError(f"{self._target}: the pipe of the stream broke")
        yield from call

    def _refused(self, call: Any) -> None:
        """Ends a pipe that the server will not know of, because it has refused the call."""
        if self._pipe is not None and not self._came and call.code() is not grpc.StatusCode.OK:
            self._pipe.close()

    def _receive(self) -> None:
        """Makes answers of replies, in the order of the tickets."""
        assembler = Assembler(self._pool, self._options.max_batch_bytes, self._side)
        try:
            # Not by the owner: Ctrl-C in between would leave locks of gRPC locked for ever.
            self._call = call = self._connection.stream(iter(self._requests.get, None))
            if self._closed:  # close may have come before the call
                call.cancel()
            for raw in self._replies(call):
                self._hear()
                reply = raw if isinstance(raw, Whole) else parse_reply(raw)
                del raw
                if not self._expected or isinstance(reply, pb.Shared):
                    raise PayloadError(f"{self._target}: a reply that no ticket asked for")
                job = self._expected[0]
                if reply.ticket != job.id:
                    raise PayloadError(
                        f"{self._target}: ticket {reply.ticket} answered before {job.id}"
                    )
                answer: Answer | None
                if isinstance(reply, pb.Fault):
                    assembler.clear()
                    answer = reply
                elif (answer := assembler.add(reply)) is not None:
                    self._check(answer, job)
                    self._move(answer)
                del reply
                if answer is not None:
                    self._expected.popleft()
                    self._answers.put(answer)
                    del answer
            raise UnavailableError(f"{self._target}: the server ended the stream")
        except Exception as e:
            # The call is its own exception: with a traceback it would keep this frame, and so the
            # batches in the queue, in a circle.
            e.__traceback__ = None
            if not self._closed:
                self._answers.put(e)
        finally:
            if self._pipe is not None:
                self._pipe.end()
            if self._side is not None:
                self._side.end(self._number)

    def _check(self, batch: Batch, job: Job) -> None:
        """Checks that a batch is what its ticket asked for."""
        positions = job.ticket.positions(self._description.reply.samples)
        same = batch["position"].tobytes() == positions.tobytes()
        if not same or batch.epoch != job.ticket.epoch:
            raise PayloadError(f"{self._target}: ticket {job.id} answered with other positions")
        if batch._converts and not self._native:
            raise PayloadError(f"{self._target}: ticket {job.id} answered with what is not final")
        batch.step, batch._weights = job.step, job.ticket.weights

    def _move(self, batch: Batch) -> None:
        """Moves a batch, once the owner has taken enough of those before."""
        if self._mover is not None:
            self._room.acquire()
            if self._closed:  # nobody takes it, nor those that came behind it
                self._room.release()
                return
            self._mover.move(batch)

    # What the owner calls.

    def _take(self, batches: int, waited: float = 0, stepped: float = 0) -> None:
        """Asks for jobs until so many are open as the engine is to know of.

        So many more batches are welcome: the engine begins with as many tickets. The owner waited
        for the last one so many seconds, and stepped for so many before.
        """
        new: list[Job] = []
        while len(self._open) + len(new) < self._known and (job := next(self._jobs, None)):
            new.append(job)
        self._ask(new, batches, waited, stepped)

    def _ask(
        self, jobs: Sequence[Job], batches: int, waited: float = 0, stepped: float = 0
    ) -> None:
        """Sends the tickets of jobs, and credits with the figures of `_take`."""
        requests = [pb.StreamRequest(ticket=self._ticket(job)) for job in jobs]
        if self._open or waited or stepped:
            credit = pb.Credit(
                batches=batches if self._open else 0,
                waited=int(1e9 * waited),
                stepped=int(1e9 * stepped),
            )
            requests.append(pb.StreamRequest(credit=credit))
        if self._came and self._pipe is not None:
            if not self._piped:
                self._requests.put(None)  # behind all that went by the call
                self._piped = True
            self._pipe.send(*(r.SerializeToString() for r in requests))
        else:
            for r in requests:
                self._requests.put(r)

    def _ticket(self, job: Job) -> pb.Ticket:
        """Returns the ticket of a job, which is open from now on."""
        t = job.ticket
        span, trace = _trace.begin("chaski.step", epoch=t.epoch, step=job.step, rank=t.row_start)
        self._open.append(job)
        self._spans.append(span)
        self._expected.append(job)
        return pb.Ticket(
            id=job.id,
            handle=self._description.reply.handle,
            epoch=t.epoch,
            first=t.first,
            count=t.count,
            row_start=t.row_start,
            row_stride=t.row_stride,
            positions=t.named,
            corners=t.corners,
            unpadded=t.unpadded,
            weights=None
            if t.weights is None
            else pb.RowWeights(path=t.weights.path, hash=t.weights.hash, once=t.weights.once),
            native=self._native or self._options.wire == "native",
            trace=trace,
        )

    def next(self) -> Batch | None:
        """Waits for the next batch and returns it, or None after the last one.

        An error closes the run.
        """
        if not self._open:
            self.close()
            return None
        asked = time.monotonic()
        batch = self._received()
        given, now = self._given or asked, time.monotonic()
        try:
            self._take(1, now - asked, asked - given)
        except BaseException:  # weights that cannot be written: another run begins with this batch
            self.close()
            raise
        # What the owner does between epochs is no step.
        self._given = now if self._open and self._open[0].ticket.epoch == batch.epoch else 0.0
        return batch

    def made_for(self, description: Description, mover: Moves | None) -> bool:
        """Reports whether it was made with these."""
        return self._description is description and self._mover is mover

    def next_is(self, epoch: int, step: int) -> bool:
        """Reports whether it goes on, and the next batch is this step's."""
        job = self._open[0] if self._open and self._thread.is_alive() else None
        return job is not None and (job.ticket.epoch, job.step) == (epoch, step)

    def asked_from(self, epoch: int, step: int) -> bool:
        """Reports whether it has asked for a place from this one on."""
        return bool(self._open) and (self._open[-1].ticket.epoch, self._open[-1].step) >= (
            epoch,
            step,
        )

    def one(self, job: Job) -> Batch:
        """Returns the batch of one more ticket, in a run without jobs of its own, which stays open.

        An error closes the run.
        """
        self._ask([job], 1)
        return self._received()

    def _received(self) -> Batch:
        """Waits for the batch of the first open job."""
        try:
            batch = self._batch_of(self._answer())
        except BaseException:
            self.close()
            raise
        self._open.popleft()
        self._served = True
        _trace.end(self._spans.popleft())
        return batch

    def _answer(self) -> Answer:
        """Returns the answer to the first open job, which is what the engine answers next."""
        asked = time.monotonic()
        while True:
            begun = time.monotonic()
            left = self._options.timeout - (begun - max(asked, self._heard))
            if left <= 0:
                job = self._open[0]
                raise DeadlineError(
                    f"{self._target}: nothing for {self._options.timeout:g} s while waiting for "
                    f"ticket {job.id} (epoch {job.ticket.epoch}, step {job.step})"
                )
            try:
                return self._answers.get(timeout=min(left, _SLICE))
            except queue.Empty:
                if time.monotonic() - begun > 2 * _SLICE:
                    asked = time.monotonic()  # this process was stopped: the engine was not silent

    def _batch_of(self, answer: Answer) -> Batch:
        """Returns the batch that an answer is, or raises the error that it is."""
        if isinstance(answer, Batch):
            self._room.release()
            wait(answer)
            return answer
        if isinstance(answer, pb.Fault):
            raise fault_error(answer)
        if isinstance(answer, grpc.RpcError):
            raise self._connection.error(answer, f"ticket {self._open[0].id}")
        raise answer

    def close(self) -> None:
        """Ends the stream. Batches that were returned stay valid."""
        self._open.clear()
        while self._spans:
            _trace.end(self._spans.popleft())
        if os.getpid() == self._pid:  # a forked child has neither the thread nor the call
            self._closed = True
            if self._served:
                resting.freed = time.monotonic()
            self._requests.put(None)
            if self._pipe is not None:
                self._pipe.close()
            if self._call is not None:
                self._call.cancel()
            self._room.release()
            if self._thread.is_alive() and threading.current_thread() is not self._thread:
                self._thread.join(5)
        with contextlib.suppress(queue.Empty):  # batches that nobody will ask for
            while True:
                self._answers.get_nowait()


class Finalizer(weakref.finalize):  # type: ignore[type-arg]
    """Ends a run when its owner is gone: at once if it is called, else in a thread of its own.

    Python may find that an owner is gone at any point of any thread, also where that thread holds a
    lock of gRPC, and to cancel a call takes another one.
    """

    __slots__ = ()
    _gone: queue.SimpleQueue[Callable[[], object]] = queue.SimpleQueue()
    _in = 0  # the process that has the thread

    def __init__(self, owner: object, close: Callable[[], object]) -> None:
        super().__init__(owner, close)
        if Finalizer._in != os.getpid():
            Finalizer._in = os.getpid()
            threading.Thread(target=self._end, name="chaski-end", daemon=True).start()

    @classmethod
    def _end(cls) -> None:
        while True:
            with contextlib.suppress(Exception):
                cls._gone.get()()

    def __call__(self, gone: object = None) -> object:
        """Closes; weakref gives it what is gone."""
        if gone is None:
            return super().__call__()
        self._gone.put(super().__call__)
        return None


class Resting:
    """Runs between two loops of their loaders. Loaders may be of several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._runs: weakref.WeakSet[Run] = weakref.WeakSet()
        self.freed = -math.inf
        """When a run of this process last ended that a server had let in, by the monotonic clock:
        the server sees that a moment later."""

    def add(self, run: Run) -> None:
        with self._lock:
            self._runs.add(run)

    def take(self, run: Run) -> bool:
        """Reports whether a run was there, which is the caller's now."""
        with self._lock:
            there = run in self._runs
            self._runs.discard(run)
            return there

    def end(self) -> None:
        """Ends all, because another stream needs what they have."""
        with self._lock:
            runs = list(self._runs)
            self._runs.clear()
        for run in runs:
            run.close()


resting = Resting()
