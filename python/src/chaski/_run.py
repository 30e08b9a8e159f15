"""A sequence of tickets, answered in order by one engine or several that see the same data."""

from __future__ import annotations

import contextlib
import itertools
import logging
import queue
import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from chaski._assemble import Batch, Pool
from chaski._grpc import grpc
from chaski._proto import chaski_pb2 as pb
from chaski._rpc import Connection, Description, fault_error
from chaski._shared import Side
from chaski._sources import count, positive
from chaski._stream import Event, Events, Job, Stream
from chaski.errors import DeadlineError, Error, SpecError, StateError, UnavailableError
from chaski.order import hash_words

Transport = Literal["auto", "shm", "grpc"]

_log = logging.getLogger("chaski")

_SLICE = 0.5
"""Seconds of one wait: a signal that comes just before it begins does not end it, and Ctrl-C would
have to wait for the deadline."""

_HEDGE_AFTER = 10
"""Answers that must be known before one counts as slow."""

_HEDGE_KEPT = 200
_HEDGE_SECONDS = 0.05
"""No answer is slow before this, however fast the others are."""

_LONGEST_PAUSE = 2.0
"""Seconds between two attempts to open a server again, at most."""

_MOST_OPEN = 1024
"""Jobs that are open at most, however small their batches are."""


@dataclass(frozen=True, slots=True)
class RunOptions:
    """How a run is received; nothing here changes a byte of a batch.

    Attributes:
        prefetch: batches asked for beyond the one that the user holds.
        timeout: seconds without any sign of a server that owes an answer until it is given up.
        retries: times in a row that a broken connection is opened again.
        native: ask for tensors in their native dtype where they are smaller so.
        limit: bytes that a payload may have.
        transport: "shm" fails without shared memory, "grpc" does not ask for it, "auto" takes it
            where it works.
        hedge: with several servers, ask a second one when the first takes longer for a batch than
            twice this share of the answers took; None never does.
        prefetch_bytes: with several servers and groups of jobs, more than `prefetch` are asked for,
            so that every server has a group to work on, as far as batches take no more than this.
        batch_bytes: that a batch takes, as far as that is known before one is there.
    """

    prefetch: int
    timeout: float
    retries: int
    native: bool
    limit: int
    transport: Transport = "auto"
    hedge: float | None = None
    prefetch_bytes: int = 0
    batch_bytes: int = 1

    def __post_init__(self) -> None:
        """Checks what the user gave.

        Raises:
            SpecError: an option is wrong.
        """
        count("prefetch", self.prefetch)
        count("retries", self.retries, 0)
        count("max_batch_bytes", self.limit)
        count("prefetch_bytes", self.prefetch_bytes, 0)
        positive("timeout", self.timeout)
        if self.transport not in ("auto", "shm", "grpc"):
            raise SpecError(f"transport is {self.transport!r}, none of 'auto', 'shm', 'grpc'")
        if self.hedge is not None and not positive("hedge", self.hedge) < 1:
            raise SpecError(f"hedge is {self.hedge!r}, not a share between 0 and 1")


@dataclass(slots=True)
class Server:
    """An engine that answers tickets of a spec.

    Attributes:
        connection: to it.
        description: how it describes the spec, or None while it cannot be reached.
    """

    connection: Connection
    description: Description | None


class _Lane:
    """The way to one server: its stream if there is one, and the jobs that it owes."""

    def __init__(self, server: Server, index: int) -> None:
        self.server = server
        self.index = index  # among the servers
        self.stream: Stream | None = None
        self.key = 0  # of the stream, or of the attempt to open it
        self.jobs: dict[int, Job] = {}
        self.since: dict[int, float] = {}  # when each of them was sent
        self.answered = 0.0  # when the last answer came
        self.failures = 0  # in a row
        self.retry = 0.0  # when to open it again
        self.reviving = False
        self.stalled: Error | None = None  # that it was given up for, being silent
        self.said = 0.0  # when a stream before this one last said something

    @property
    def heard(self) -> float:
        """When it last said something on a stream, on the monotonic clock."""
        return self.said if self.stream is None else max(self.said, self.stream.heard)

    @property
    def target(self) -> str:
        return self.server.connection.target

    def silent(self, asked: float) -> float:
        """Returns the seconds since `asked` for which the server owes and says nothing."""
        if self.stream is None or not self.jobs:
            return 0.0
        return time.monotonic() - max(asked, self.stream.heard, min(self.since.values()))

    def working(self, job: int, until: float) -> float:
        """Returns the seconds until `until` that the server has had for a job alone."""
        return until - max(self.since[job], self.answered)

    def drop(self) -> list[Job]:
        """Ends the stream and returns what the server owed."""
        self.said = self.heard
        if self.stream is not None:
            self.stream.close()
        self.stream, self.key = None, 0
        owed = list(self.jobs.values())
        self.jobs.clear()
        self.since.clear()
        return owed


class Run:
    """Gives the batches of a sequence of tickets, in order. For one thread.

    Every server can answer every ticket, so what one owes when it dies, drains or is silent is
    asked of another. One that broke is tried again in the background. Jobs of a group go to the
    same server as long as it lives, others to the one that owes the least.

    Groups come one after the other, so with `prefetch` jobs open mostly one server would work. Of
    several, all are to have one: jobs are open until they are of as many groups, within
    `prefetch_bytes`. A server is asked for `prefetch` of them at a time, so that none has much to
    do before what another one leaves it, or another rank asks.
    """

    def __init__(
        self,
        servers: Sequence[Server],
        jobs: Iterator[Job],
        options: RunOptions,
        pool: Pool,
        scratch: Pool,
    ) -> None:
        """Opens the streams and sends the first tickets."""
        self._lanes = [_Lane(s, i) for i, s in enumerate(servers)]
        described = next(s.description for s in servers if s.description is not None)
        self._spec, self._spec_hash = described.spec, described.spec_hash
        self._jobs = jobs
        self._options = options
        self._pool = pool
        self._scratch = scratch
        self._keys = itertools.count(1)
        self._events: Events = queue.SimpleQueue()
        self._open: deque[Job] = deque()  # taken, and not given to the user
        self._spans: deque[list[int]] = deque()  # groups of the open ones in a row: [group, jobs]
        self._through = 0  # jobs of the first of these groups that the user was given
        self._bytes = options.batch_bytes  # of the largest batch
        self._told = False  # that prefetch_bytes is short
        self._ready: dict[int, Batch | pb.Fault] = {}  # by id
        self._waiting: deque[Job] = deque()  # of the open ones, those that no server was asked for
        self._times: deque[float] = deque(maxlen=_HEDGE_KEPT)
        self._asked = 0.0  # when the user began to wait
        self._take()
        if not self._open:
            return
        try:
            for lane in self._lanes:
                if lane.server.description is not None:
                    self._open_lane(lane)
            self._assign()
        except BaseException:
            self.close()
            raise

    def _take(self) -> None:
        """Takes jobs until `prefetch` are open, or more where groups need them."""
        while self._wants():
            job = next(self._jobs, None)
            if job is None:
                return
            self._open.append(job)
            self._waiting.append(job)
            if not self._spans or self._spans[-1][0] != job.group:
                self._spans.append([job.group, 0])
            self._spans[-1][1] += 1

    def _wants(self) -> bool:
        """Reports whether one more job is to be open."""
        least, spans, lanes = self._options.prefetch, self._spans, len(self._lanes)
        if len(self._open) < least:
            return True
        if lanes == 1 or spans[-1][0] < 0:
            return False
        # Every server has a group, and the last one is as far ahead as the user is in the first.
        if sum(n for _, n in itertools.islice(spans, lanes - 1, None)) >= self._through + least:
            return False
        if len(self._open) < min(self._options.prefetch_bytes // self._bytes, _MOST_OPEN):
            return True
        if not self._told:
            self._told = True
            _log.info(
                "%d batches of %d bytes are of %d groups: so many of %d servers have work at a "
                "time; a larger prefetch_bytes would reach further",
                *(len(self._open), self._bytes, len(spans), lanes),
            )
        return False

    def _given(self) -> None:
        """Forgets the oldest open job: the user has its batch."""
        self._open.popleft()
        self._through += 1
        self._spans[0][1] -= 1
        if not self._spans[0][1]:
            self._spans.popleft()
            self._through = 0

    def _assign(self) -> None:
        """Sends the jobs that wait to servers, as far as there are any with room for them."""
        up = sum(lane.stream is not None for lane in self._lanes)
        left: list[Job] = []
        full: set[int] = set()
        while self._waiting and len(full) < up:
            job = self._waiting.popleft()
            lane = self._choose(job)
            if lane is None:
                left.append(job)
                break
            if len(lane.jobs) >= self._options.prefetch and job is not self._open[0]:
                full.add(lane.index)
                left.append(job)
            else:
                self._send(lane, job)
        self._waiting.extendleft(reversed(left))

    def _choose(self, job: Job, but: _Lane | None = None) -> _Lane | None:
        """Returns the server for a job, or None if there is none."""
        up = [lane for lane in self._lanes if lane.stream is not None and lane is not but]
        if not up:
            return None
        if job.group >= 0:
            home = self._lanes[job.turn % len(self._lanes)]
            if home in up:
                return home
            # The highest of a hash a server: when one leaves, only its groups move.
            return max(up, key=lambda lane: hash_words(job.group, lane.index))
        n = len(self._lanes)
        return min(up, key=lambda lane: (len(lane.jobs), (lane.index - job.step) % n))

    def _send(self, lane: _Lane, job: Job) -> None:
        assert lane.stream is not None
        lane.jobs[job.id] = job
        lane.since[job.id] = time.monotonic()
        lane.stream.send(job, self._options.native)

    def _connect(self, lane: _Lane) -> None:
        """Opens a stream to a server that is described."""
        d = lane.server.description
        assert d is not None
        lane.key = next(self._keys)
        lane.stream = Stream(
            lane.server.connection,
            d,
            key=lane.key,
            events=self._events,
            side=self._side(lane, d),
            pool=self._pool,
            scratch=self._scratch,
            limit=self._options.limit,
        )

    def _open_lane(self, lane: _Lane) -> None:
        """Connects, or goes on without a server that has lost its shared memory."""
        try:
            self._connect(lane)
        except UnavailableError as e:
            self._broken(lane, e)

    def _side(self, lane: _Lane, d: Description) -> Side | None:
        if self._options.transport == "grpc":
            return None
        try:
            return lane.server.connection.side(d.shared)
        except UnavailableError:
            if self._options.transport == "shm":
                raise
            return None

    def next(self) -> Batch | None:
        """Waits for the next batch and returns it, or None after the last one.

        Raises:
            Error: there is a fault for its ticket, no server can be reached, or one breaks the
                rules. The run is closed then.
        """
        if not self._open:
            self.close()
            return None
        try:
            wanted = self._open[0].id
            self._asked = time.monotonic()
            if self._waiting:  # there may be room for them now
                self._drain()
            while wanted not in self._ready:
                self._wait()
            answer = self._ready.pop(wanted)
            if isinstance(answer, pb.Fault):
                raise fault_error(answer)
        except BaseException:
            self.close()
            raise
        self._given()
        self._take()
        self._assign()
        return answer

    def _drain(self) -> None:
        """Handles the events that are there, and gives servers what they have room for then."""
        with contextlib.suppress(queue.Empty):
            while True:
                self._handle(self._events.get_nowait())
        self._assign()

    def _wait(self) -> None:
        """Waits for an event, or for the time to do something about the lack of it."""
        patience, begun = self._patience(), time.monotonic()
        with contextlib.suppress(queue.Empty):
            self._handle(self._events.get(timeout=patience))
        if time.monotonic() - begun > patience + _SLICE:
            self._asked = time.monotonic()  # this process was stopped: no server was silent
        self._drain()  # what came while the user was busy is no sign of slowness
        now = time.monotonic()
        for lane in self._lanes:
            if lane.stream is None and not lane.reviving and lane.retry <= now:
                self._revive(lane)
            elif lane.silent(self._asked) >= self._options.timeout:
                self._give_up(lane)
        self._check_stalled()
        self._hedge()

    def _check_stalled(self) -> None:
        """Ends the wait for servers that are opened again and again, and stall again.

        One that is up and was not silent yet has its own time.

        Raises:
            DeadlineError: there was no sign of any for twice the time that one may be silent.
        """
        if any(lane.stream is not None and lane.stalled is None for lane in self._lanes):
            return
        stalled = next((lane.stalled for lane in self._lanes if lane.stalled is not None), None)
        heard = max(self._asked, *(lane.heard for lane in self._lanes))
        if stalled is not None and time.monotonic() - heard >= 2 * self._options.timeout:
            raise stalled

    def _patience(self) -> float:
        """Returns the seconds until something is to be done, whatever comes."""
        now = time.monotonic()
        left = _SLICE
        for lane in self._lanes:
            if lane.stream is None:
                left = min(left, _SLICE if lane.reviving else lane.retry - now)
            elif lane.jobs:
                left = min(left, self._options.timeout - lane.silent(self._asked))
        slow, owing = self._slow(), self._alone(self._open[0].id)
        if slow is not None and owing is not None:
            left = min(left, slow - owing.working(self._open[0].id, now))
        return max(left, 0.001)

    def _handle(self, event: Event) -> None:
        """Takes an event. Those of streams that are closed say nothing any more."""
        lane = next((lane for lane in self._lanes if lane.key == event.key), None)
        if lane is None:
            return
        what = event.what
        if isinstance(what, Batch):
            self._answered(lane, event, what)
            lane.failures = 0
        elif isinstance(what, pb.Fault):
            if what.kind == "unknown spec":
                self._broken(lane, fault_error(what), at_once=True)
            else:
                self._answered(lane, event, what)
        elif isinstance(what, Description):
            self._revived(lane, what)
        else:
            self._failed(lane, what)

    def _answered(self, lane: _Lane, event: Event, answer: Batch | pb.Fault) -> None:
        job = event.job
        self._times.append(lane.working(job, event.at))
        lane.answered, lane.stalled = event.at, None
        del lane.jobs[job], lane.since[job]
        if isinstance(answer, Batch):
            self._bytes = max(self._bytes, answer.nbytes)
        if job >= self._open[0].id and job not in self._ready:  # not from another server before
            self._ready[job] = answer

    def _failed(self, lane: _Lane, e: Exception) -> None:
        """Goes on without a server if that helps against what happened; raises it otherwise."""
        if isinstance(e, grpc.RpcError):
            doing = f"ticket {min(lane.jobs)}" if lane.jobs else "stream"
            error = lane.server.connection.error(e, doing)
        elif isinstance(e, Error):
            error = e
        else:
            raise e
        lost = isinstance(error, UnavailableError) or (lane.reviving and len(self._lanes) > 1)
        if not lost:
            raise error from None
        self._broken(lane, error)

    def _broken(self, lane: _Lane, error: Error, *, at_once: bool = False) -> None:
        """Takes from a server what it owes, and opens it again later.

        Raises:
            Error: no server is left, and each was silent or tried as often as it may be.
        """
        lane.reviving = False
        if isinstance(error, DeadlineError):
            lane.stalled = error
        lane.failures += 1
        wait = min(0.1 * 2 ** (lane.failures - 1), _LONGEST_PAUSE)
        lane.retry = time.monotonic() + (0.0 if at_once and lane.failures == 1 else wait)
        elsewhere = {i for other in self._lanes if other is not lane for i in other.jobs}
        owed = [j for j in lane.drop() if j.id not in self._ready and j.id not in elsewhere]
        owed = [j for j in owed if j.id >= self._open[0].id]
        self._waiting = deque(sorted([*owed, *self._waiting], key=lambda j: j.id))
        down = [other for other in self._lanes if other.stream is None]
        if len(down) == len(self._lanes) and all(
            other.stalled is not None or other.failures > self._options.retries for other in down
        ):
            raise error from None
        if len(self._lanes) > 1:
            _log.info("%s: gone on without: %s", lane.target, error)
        self._assign()

    def _give_up(self, lane: _Lane) -> None:
        """Takes from a silent server what it owes.

        Raises:
            DeadlineError: there is no other one.
        """
        job = lane.jobs[min(lane.jobs)]
        error = DeadlineError(
            f"{lane.target}: nothing for {self._options.timeout:g} s while waiting for ticket "
            f"{job.id} (epoch {job.ticket.epoch}, step {job.step})"
        )
        if len(self._lanes) == 1:
            raise error
        self._broken(lane, error)

    def _revive(self, lane: _Lane) -> None:
        """Asks a server for its description, in the background: it may be slow to say anything."""
        lane.reviving = True
        lane.key = key = next(self._keys)
        connection, events, timeout = lane.server.connection, self._events, self._options.timeout
        spec = self._spec

        def ask() -> None:
            try:
                events.put(Event(key, 0, connection.describe(spec, timeout)))
            except Exception as e:
                e.__traceback__ = None
                events.put(Event(key, 0, e))

        threading.Thread(target=ask, name="chaski-describe", daemon=True).start()

    def _revived(self, lane: _Lane, d: Description) -> None:
        lane.reviving = False
        if d.spec_hash != self._spec_hash:
            raise StateError(
                f"{lane.target}: the server now sees other data: fingerprint {d.fingerprint}; this "
                f"run has spec hash {self._spec_hash}, the server {d.spec_hash}"
            )
        lane.server.description = d
        self._open_lane(lane)
        self._assign()

    def _slow(self) -> float | None:
        """Returns the seconds after which an answer is slow, or None if none is."""
        share = self._options.hedge
        if share is None or len(self._lanes) == 1 or len(self._times) < _HEDGE_AFTER:
            return None
        times = sorted(self._times)
        return max(_HEDGE_SECONDS, 2 * times[min(int(share * len(times)), len(times) - 1)])

    def _alone(self, job: int) -> _Lane | None:
        """Returns the server that owes a job if it is the only one."""
        owing = [lane for lane in self._lanes if job in lane.jobs]
        return owing[0] if len(owing) == 1 and job not in self._ready else None

    def _hedge(self) -> None:
        """Asks a second server for what is wanted now, when the first is slow.

        The first answer counts; they are the same.
        """
        job, slow = self._open[0], self._slow()
        lane = self._alone(job.id)
        if slow is None or lane is None or lane.working(job.id, time.monotonic()) < slow:
            return
        other = self._choose(job, lane)
        if other is not None:
            _log.info("%s: slow with step %d; %s is asked too", lane.target, job.step, other.target)
            self._send(other, job)

    def close(self) -> None:
        """Ends the streams. Batches that were returned stay valid."""
        self._open.clear()
        self._waiting.clear()
        self._ready.clear()
        for lane in self._lanes:
            lane.drop()
            lane.reviving = False
        with contextlib.suppress(queue.Empty):  # batches that nobody will ask for
            while True:
                self._events.get_nowait()
