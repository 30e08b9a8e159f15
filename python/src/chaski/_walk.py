"""The way of a loader through its epochs: loops, their streams, and states."""

from __future__ import annotations

import contextlib
import logging
import operator
import os
import sys
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from chaski._assemble import Batch
from chaski._bad import Watch
from chaski._calls import raised
from chaski._grpc import pb
from chaski._ledger import Ledger
from chaski._link import Link
from chaski._plain import absolute, as_folder, count
from chaski._ranks import Ranks, Together
from chaski._run import Finalizer, Job, Moves, Run, resting
from chaski._scores import Scores
from chaski._weights import (
    Change,
    Changes,
    Copies,
    File,
    at_once,
    check_ranks,
    in_background,
    pieces_of,
    read,
    written,
)
from chaski._windows import GeoWindow, TileWindow
from chaski.errors import Error, SpecError, UnavailableError
from chaski.order import State, Ticket, Weights, local_rows

_log = logging.getLogger("chaski")

_EPOCHS = 1 << 64  # numbers of epochs have 64 bits
_MAX_PLANNED = 1 << 14  # epochs of a question
_UNWEIGHTED = {TileWindow._kind, GeoWindow._kind}


class Walk:
    """Where a loader stands, and its loops over the batches from there."""

    def __init__(
        self, link: Link, bad: Watch, ledger: Ledger | None, steps: int, tickets: int | None
    ) -> None:
        """Stands at the start of epoch 0, of so many steps.

        An engine knows of so many tickets; None is for one that asks one server.
        """
        d = link.described
        self._link, self._bad, self._ledger = link, bad, ledger
        self._at = link.place
        # Of the place, the weights and the means: another thread may ask for a state.
        self._moment = threading.Lock()
        self._steps = steps
        self._known = d.prefetch + 1 if tickets is None else tickets
        self._batch_size: int = link.asked["batch_size"]
        self._samples: int = d.reply.samples
        self._start_state = State(d.reply.spec_hash, link.asked["seed"], 0, 0, run=d.run)
        self._changes, self._copies = Changes(), Copies()
        self._scores: Scores | None = None
        self._means: tuple[str, str] | None = None  # of the state that was loaded
        self._loop: Callable[[], Loop | None] = lambda: None
        self._run: Run | None = None  # of the last loop; the next one may go on with it
        self._end_run: Callable[[], object] = lambda: None
        self._over: int | None = None  # the epoch after the last one that a loop has ended
        self._walked = range(0)  # epochs that gave batches, each after the one before
        self._begun = False  # a loop gave a batch of this epoch, and did not fail
        if ledger is not None:
            weakref.finalize(self, ledger.close)

    def iterate(self, mover: Moves | None = None) -> Iterator[Batch]:
        """Iterates over an epoch; a mover has the batches of this loop on a device."""
        self._link.check()
        self._end_loop("another one began; a loop inside a loop needs a loader of its own")
        self._stand(*self._next_place())
        loop = Loop(self, mover)
        self._loop = weakref.ref(loop)
        return loop

    def peek(self) -> Batch:
        """Returns the batch with which the next loop begins."""
        self._link.check()
        epoch, step = self._next_place()
        batch = self._link.one(Job(1, step, self._tickets()(epoch, step)))
        self._link.tell(batch)
        return batch

    def _stand(self, epoch: int, step: int, begun: bool = False) -> None:
        """Takes a place. begun: a loop gave a batch of this epoch."""
        with self._moment:
            self._at.epoch, self._at.step, self._begun = epoch, step, begun

    def _next_place(self) -> tuple[int, int]:
        """Returns the epoch and the step where the next loop begins."""
        at = self._at
        over = self._begun or at.step >= self._steps
        epoch, step = (at.epoch + 1, 0) if over else (at.epoch, at.step)
        if epoch >= _EPOCHS:
            raise ValueError("the last epoch has ended: their numbers are in [0, 2**64)")
        return epoch, step

    def _tickets(self) -> Callable[[int, int], Ticket]:
        """Returns what gives this rank's ticket of a step of an epoch, without the loader."""
        shares = self._batch_size, self._link.rank, self._link.world_size
        samples = None if self._link.asked["last"] == "pad" else self._samples
        changes = self._changes

        def ticket(epoch: int, step: int) -> Ticket:
            t = Ticket.of_step(epoch, step, *shares)
            if change := changes.at(epoch, t.first):
                t = replace(t, weights=change.weights())
            return t if samples is None else t.without_padding(samples)

        return ticket

    def _start(self, mover: Moves | None) -> Run:
        """Returns a run that stands where the loader does.

        Once a loop has begun where another ended an epoch, its run asks for the epochs that follow,
        too, and is the next loop's. A first loop may be the last, and asks for nothing in vain.
        """
        link, epoch, step = self._link, self._at.epoch, self._at.step
        run = self._run
        if run is not None and resting.take(run):
            if run.made_for(link.described, mover) and run.next_is(epoch, step):
                return run
        self._end_run()
        if link.upstream is not None:
            resting.end()  # a server may give a client few streams, and an engine asks it for long
        goes_on = epoch == self._over and step == 0 and link.may_rest()
        epochs = range(epoch, _EPOCHS if goes_on else epoch + 1)
        steps = range(step, self._steps)
        places = ((e, s) for e in epochs for s in steps)
        ticket = self._tickets()
        jobs = (Job(i, s, ticket(e, s)) for i, (e, s) in enumerate(places, 1))
        self._run = run = link.run(jobs, tickets=self._known, mover=mover)
        self._end_run = Finalizer(self, run.close)
        return run

    def _end_loop(self, why: str) -> None:
        """Ends the loop that is going on: its next batch is a RuntimeError that says why."""
        if (loop := self._loop()) is not None:
            loop.end(why)

    def _move(self, epoch: int, step: int, call: str) -> None:
        """Goes to another place. A loop that gave no batch yet goes along, any other one ends."""
        loop = self._loop()
        if loop is not None and loop.fresh:
            loop.begin_again()
        else:
            self._end_loop(f"{call} was called")
        self._stand(epoch, step)

    def _yielded(self, batch: Batch) -> None:
        self._link.tell(batch)
        if self._ledger is not None:
            self._ledger.add(batch)
        self._stand(self._at.epoch, batch.step + 1, begun=True)
        if batch.epoch not in self._walked:
            first = self._walked.start if batch.epoch == self._walked.stop else batch.epoch
            self._walked = range(first, batch.epoch + 1)
        self._bad.count(batch)

    def _finished(self) -> None:
        self._stand(self._at.epoch + 1, 0)

    def _failed(self, e: BaseException) -> None:
        if isinstance(e, Exception):
            self._begun = False
        self._bad.error(e)

    def set_epoch(self, epoch: int) -> None:
        """See `chaski.Loader.set_epoch`."""
        if not hasattr(epoch, "__index__"):
            raise TypeError(f"epoch is {epoch!r}: it must be an int")
        epoch = operator.index(epoch)
        if epoch not in range(_EPOCHS):
            raise ValueError(f"epoch {epoch} is not in [0, 2**64)")
        if epoch != self._at.epoch or self._begun:
            self._move(epoch, 0, "set_epoch")

    def state(self, begin: int | None = None) -> dict[str, Any]:
        """See `chaski.Loader.state_dict`; with an epoch, it is of where that begins."""
        with self._moment:
            epoch, samples = self._at.epoch, min(self._at.step * self._batch_size, self._samples)
            if begin is not None:
                epoch, samples = begin, 0
            changes = self._changes.since(epoch, samples)
            means = self._means
            write = None if self._scores is None else self._scores.moment()
        if self._ledger is not None:
            self._ledger.sync()
        return replace(
            self._start_state,
            epoch=epoch,
            samples=samples,
            weights=tuple(c.kept() for c in changes),
            scores=write() if write else means,
        ).to_dict()

    def load(self, state: Mapping[str, Any], strict: bool) -> None:
        """See `chaski.Loader.load_state_dict`."""
        drops = self._link.asked["last"] == "drop"
        s, note = State.from_dict(state).resume(
            self._start_state, self._samples, self._batch_size, drops, strict
        )
        if note:
            _log.warning("%s", note)
        step = s.step(self._samples, self._batch_size)
        if self._scores is not None:
            self._restore(self._scores, s.scores)
        self._means = s.scores
        self._end_run()  # it may have asked ahead, by other weights
        self._changes.load(s.weights)
        self._move(s.epoch, step, "load_state_dict")
        if self._ledger is not None:
            self._ledger.restored = True
        if step >= self._steps:
            self._finished()

    def scores(
        self, samples: int, folder: str | os.PathLike[str], decay: float, group: Any
    ) -> Scores:
        """See `chaski.Loader.scores`."""
        as_folder("folder", folder)
        link = self._link
        ranks = Ranks(link.rank, link.world_size, group)
        if (scores := self._scores) is None:
            rows = local_rows(self._batch_size, link.world_size)
            scores = Scores(samples, folder, decay, rows, ranks, self._moment)
            self._restore(scores, self._means)
            self._scores = scores
        for name, given, there, same in (
            ("folder", folder, scores.folder, absolute(folder) == absolute(scores.folder)),
            ("decay", decay, scores.decay, decay == scores.decay),
            ("group", group, scores.ranks.group, group is scores.ranks.group),
        ):
            if not same:
                raise SpecError(
                    f"{name} is {given!r}, and the scores that this loader has were made with "
                    f"{name}={there!r}: a loader has one running mean of each sample"
                )
        return scores

    def _restore(self, scores: Scores, means: tuple[str, str] | None) -> None:
        """Gives scores the means of a state."""
        scores.clear() if means is None else scores.load(*means)

    def reweight(
        self,
        weights: Any,
        from_step: int | None,
        folder: str | os.PathLike[str] | None,
        each_once: bool,
        samples: int,
        ranks: Together,
    ) -> None:
        """See `chaski.Loader.reweight`. The dataset has so many samples."""
        self._link.check()
        given = self._samples
        if self._link.asked["last"] == "drop":
            given -= given % self._batch_size
        if each_once and (self._samples <= samples or given < samples):
            raise SpecError(
                f"each_once: an epoch of {given} samples has no room for each of {samples} "
                "once and others by weight: take more, with Rows(take=...)"
            )
        at = self._at
        epoch, now = self._next_place() if self._loop() is None else (at.epoch, at.step)
        step = now if from_step is None else count("from_step", from_step, 0)
        if (ahead := step - now) < 0:
            raise SpecError(f"from_step is {step}: the next step of epoch {epoch} is {now}")
        epoch, step = (epoch + step // self._steps, step % self._steps) if ahead else (epoch, step)
        if step >= self._steps:
            epoch, step = epoch + 1, 0
        if max(epoch, from_step or 0) >= _EPOCHS:
            raise SpecError(
                f"from_step is {from_step}, in epoch {epoch}: both numbers must be below 2**64"
            )
        first = step * self._batch_size
        before, behind = self._changes.at(epoch, first), self._changes.behind(epoch, first)
        if each_once and step and not (before and before.once):
            raise SpecError(
                f"each_once from step {step} of epoch {epoch}: the samples that came before are "
                f"not known to it; it begins with an epoch, at from_step={self._steps}"
            )
        if behind and behind.once and behind.epoch == epoch and not each_once:
            raise SpecError(
                f"weights from step {step} of epoch {epoch} without each_once: those from step "
                f"{behind.samples // self._batch_size} on have it, and need it from the start of "
                "the epoch"
            )
        if isinstance(weights, Scores):
            folder = folder or weights.folder
        folder = as_folder("folder", folder)
        n, write = self._writer(weights, (epoch, first), bool(ahead), ranks)
        early = bool(ahead) and self._takes(n, samples)

        def make(to: str | os.PathLike[str] = folder) -> File:
            made = write(to)
            self._open(Weights(made.path, made.hash, each_once, epoch, first), early)
            return made

        file = in_background(make) if early else at_once(make())
        change, here = Change(epoch, first, each_once, file), (at.epoch, at.step * self._batch_size)
        with self._moment:
            self._changes.add(change, here)
        if self._run is not None and self._run.asked_from(epoch, step):
            resting.take(self._run)
            if (loop := self._loop()) is not None:
                loop.begin_again()
            self._end_run()

    def _writer(
        self, weights: Any, place: tuple[int, int], keep: bool, ranks: Together
    ) -> tuple[int, Callable[[str | os.PathLike[str]], File]]:
        """Returns the number of weights, or means, and what writes them to a folder.

        With keep, the caller of `reweight` may change its array before that.
        """
        if isinstance(weights, Scores):
            n, snapshot = len(weights), weights.snapshot()
            check_ranks(snapshot.means, place, ranks)
            return n, lambda to: written(n, snapshot.weights(), to)
        given = read(weights)
        check_ranks(given, place, ranks)
        keep = keep and not isinstance(weights, str | os.PathLike)
        array = self._copies.take(given) if keep else given

        def write(to: str | os.PathLike[str]) -> File:
            made = written(array.size, pieces_of(array), to)
            if array is not given:
                self._copies.give_back(array)
            return made

        return array.size, write

    def _takes(self, n: int, samples: int) -> bool:
        """Reports whether it is known here that so many weights fit; the engine knows it of all."""
        spec, rows = self._link.described.spec, self._start_state.run.get("rows")
        kind = spec["sampler"]["kind"]
        if any(spec.get(m) for m in ("sources", "strata")) or kind in _UNWEIGHTED:
            return False
        return n == samples or (n == rows and samples % n == 0)

    def _open(self, weights: Weights, early: bool) -> None:
        """Has the engine open weights; early is for a thread, beside the loop."""
        # Padding: the engine opens the weights for it, and reads no sample.
        job = Job(1, 0, Ticket(weights.epoch, self._samples, 1, 0, 1, weights=weights))
        if not early:
            self._link.one(job)
            return
        try:
            with contextlib.closing(self._link.run()) as run:
                run.one(job)
        except Error as e:
            # The tickets of the loop meet again what is not about the weights, and outlive it.
            if e._answered and e.kind != "unknown spec" and not isinstance(e, UnavailableError):
                raise

    def planned(self, quota: int) -> list[dict[str, int]]:
        """Returns what a cache of a quota saves in the epochs that were walked through."""
        link = self._link
        whole, known = self._changes.known()
        epochs = range(max(self._walked.start, whole), self._walked.stop)
        request = pb.PlanRequest(
            first_epoch=epochs.start,
            epochs=min(len(epochs), _MAX_PLANNED),
            rank=link.rank,
            world_size=link.world_size,
            cache_bytes=quota,
            weights=[
                pb.WeightsSince(
                    weights=pb.RowWeights(path=w.path, hash=w.hash, once=w.once),
                    epoch=w.epoch,
                    samples=w.samples,
                )
                for w in known
            ],
        )

        def ask() -> Any:
            request.handle = link.described.reply.handle  # of the engine that lives now
            return link.connection.plan(request)

        said: list[dict[str, int]] = link.outlive(ask)
        return said

    def close(self) -> None:
        """Ends the loop and its stream, and closes the files that loops write."""
        self._end_loop("it was closed")
        self._end_run()
        self._bad.close()
        if self._ledger is not None:
            self._ledger.close()


class Loop(Iterator[Batch]):
    """A loop over the rest of an epoch. Ends when it is dropped."""

    def __init__(self, walk: Walk, mover: Moves | None) -> None:
        self._walk: Walk | None = walk
        self._mover = mover
        self._ended = ""  # why, if not at the end of the epoch
        self.fresh = True  # it gave no batch yet
        self._run: Run | None = None
        with contextlib.suppress(UnavailableError):  # the first batch asks once more
            self._run = walk._start(self._mover)

    def __reduce__(self) -> Any:
        """Refuses to be copied or pickled."""
        raise TypeError("a loop over a chaski.Loader cannot be pickled or copied")

    def __next__(self) -> Batch:
        walk = self._walk
        if walk is None:
            if self._ended:
                raise RuntimeError(f"this loop over a chaski.Loader ended: {self._ended}")
            raise StopIteration
        walk._link.check_process()
        try:
            batch = walk._link.outlive(lambda: self._next(walk))
            if batch is not None:
                walk._bad.check(batch)
        except BaseException as e:
            walk._failed(e)
            self.end(f"it failed: {e or type(e).__name__}")
            raise raised(e)  # noqa: B904 (its own cause stays)
        if batch is None:
            walk._finished()
            walk._over = walk._at.epoch
            if self._run is not None and self._run.next_is(walk._over, 0):
                resting.add(self._run)
                self._run = None  # the next loop's
            self.end("")
            raise StopIteration
        self.fresh = False
        walk._yielded(batch)
        return batch

    def _next(self, walk: Walk) -> Batch | None:
        try:
            if self._run is None:
                self._run = walk._start(self._mover)
            return self._run.next() if walk._at.step < walk._steps else None
        except Error:
            self._run = None  # it has closed itself, and may be asked for once more
            raise

    def begin_again(self) -> None:
        """Drops the run: the next batch follows the place where the loader stands then."""
        run, self._run = self._run, None
        if run is not None:
            run.close()

    def end(self, why: str) -> None:
        """Ends the loop, unless it has ended; its next batch is then an error if there is a why."""
        if self._walk is not None:
            self._walk, self._ended = None, why
            self.begin_again()

    def __del__(self) -> None:
        # At the end of Python all other threads stand still, and may hold the locks of the stream.
        if not sys.is_finalizing():
            self.end("")
