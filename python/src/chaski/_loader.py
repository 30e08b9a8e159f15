"""`Loader`: iterates over the batches of a dataset."""

from __future__ import annotations

import contextlib
import json
import logging
import operator
import os
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any, TypeVar, overload

from chaski import _engine, _show
from chaski._arguments import Engine, FieldInfo, SourceInfo
from chaski._assemble import Batch, Pool, row_of
from chaski._bad import BadRows, bad_rows
from chaski._calls import entry, raised
from chaski._grpc import pb
from chaski._ledger import Ledger
from chaski._plain import count, is_bool
from chaski._quarantine import Quarantine
from chaski._read import sizes_and_corners
from chaski._rpc import Connection, Description
from chaski._run import Job, Moves, Run, resting
from chaski._spec import LoadOptions, SpecOptions, policy
from chaski._weights import Changes, written
from chaski._windows import GeoWindow
from chaski.errors import Error, LimitError, SpecError, StateError, UnavailableError
from chaski.order import State, Ticket, Weights, local_rows, steps

_log = logging.getLogger("chaski")

T = TypeVar("T")

_NEW_ENGINES = 2
"""Times an hour that a new engine takes the place of one that ended. An end may be bad luck, such
as another program that took the memory; of the third one the user has to know."""
_HOUR = 3600.0
_LONGEST_PAUSE = 2.0
"""Seconds between two attempts to open a connection again, at most."""
_EPOCHS = 1 << 64  # numbers of epochs have 64 bits
_MAX_FETCHED = 1 << 16  # as many positions may a ticket name
_MAX_PLANNED = 1 << 14  # epochs of a question
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


_OPTIONS = {f.name for f in fields(LoadOptions)}


def refuse_setting(name: str, value: object) -> None:
    """Raises if a loader that is open would be given another option, or an epoch."""
    if name == "epoch":
        raise AttributeError(f"epoch is set by a call: set_epoch({value!r})")
    if name in _OPTIONS:
        raise AttributeError(
            f"{name} is an option with which a loader opens: open another one with "
            f"{name}={value!r:.50}, and have it go on from this one's place by "
            "load_state_dict(state, strict=False)"
        )


class Loader:
    """Batches of a dataset, epoch by epoch; `load` and `connect` make it.

    A loader has one place in its epochs, which `state_dict` returns. As with a DataLoader, a
    `for batch in loader` is one epoch, also where the loop before was left by `break`. After a
    loaded state it is the rest of that epoch, and after an error of the loop the rest from the step
    that failed. `set_epoch(loader.epoch)` begins the epoch again, and `peek` looks at its first
    batch. Two loops at a time need two loaders: when a second one begins, or the place
    changes, the first one raises RuntimeError; if it gave no batch yet, it goes along.

    From its second epoch on, the first batches of the next epoch are asked for with the last ones
    of each, so that a loop waits for nothing where it begins; but not where several loaders of this
    process share servers through the engine on this host.

    A loader is for one thread, and closes itself at the end of a `with` or of its life. It cannot
    be pickled, and raises RuntimeError in a fork and in workers of a DataLoader.

    Attributes:
        batch_size: samples of a global batch, over all ranks.
        rank: this process among `world_size`.
        world_size: processes that share every global batch.
        samples: samples of an epoch.
        fields: names, dtypes and shapes of the tensors of a batch; where batches are of one source,
            those of the first one, and where they have several sizes, of the largest.
        sources: of a mixture, name and fields of each source, in the order of their numbers in
            "source".
        spec: the spec that determines the batches, with its defaults filled in.
        spec_hash: names this spec on this data.
        bad: counts of the bad samples so far.
    """

    def __init__(
        self,
        connection: Connection,
        spec: dict[str, Any],
        o: SpecOptions,
        options: Engine,
        release: Callable[[], None],
        held: _engine.Held | None = None,
        upstream: pb.Upstream | None = None,
        described: Description | None = None,
        tickets: int | None = 1,
    ) -> None:
        """Opens the dataset; use `load` or `connect`."""
        self._asked = spec
        self._given = connection
        self._options = options
        self._upstream = upstream  # the servers, if the engine is their client
        self._held = held  # the engine, if it is this process's own
        self._ends: list[float] = []  # times at which engines ended
        self._pid = os.getpid()
        self._loop: Callable[[], _Loop | None] = lambda: None
        self._close = weakref.finalize(self, release)
        if upstream is not None:
            _clients.add(self)
        try:
            refuse_worker()
            self.batch_size: int = spec["batch_size"]
            self.rank = o.rank
            self.world_size = o.world_size
            d = self._described = described or self._describe(spec, self.local_batch_size)
            prefetch = options.prefetch or d.prefetch
            # Tickets that an engine knows of: None is for one that asks one server.
            self._known = d.prefetch + 1 if tickets is None else tickets
            if 0 < d.reply.batches <= prefetch:
                _log.warning(
                    "the engine's memory holds %d batches: at most %d are prefetched, not %d; "
                    "raise memory, or take smaller batches",
                    *(d.reply.batches, max(d.reply.batches - 1, 1), prefetch),
                )
            self.samples = d.reply.samples
            self.fields: tuple[FieldInfo, ...] = d.fields
            self.sources: tuple[SourceInfo, ...] = d.sources
            self.spec: dict[str, Any] = d.spec
            self.spec_hash = d.reply.spec_hash
            self._steps = steps(d.reply.samples, self.batch_size, self._asked["last"] == "drop")
            if self._steps == 0:
                raise SpecError(
                    f"an epoch of {d.reply.samples} samples has no whole batch of {self.batch_size}"
                )
            self._list: Quarantine | None = None
            if (quarantine := policy(o.on_bad).quarantine) is not None:
                self._list = Quarantine(quarantine, d.reply.fingerprint)
                weakref.finalize(self, self._list.close)
            self._ledger: Ledger | None = None
            if options.ledger is not None:
                self._ledger = Ledger(
                    options.ledger,
                    run=self.spec_hash,
                    data=d.reply.fingerprint,
                    samples=self.samples,
                    batch_size=self.batch_size,
                    steps=self._steps,
                    rank=self.rank,
                    world_size=self.world_size,
                )
                weakref.finalize(self, self._ledger.close)
        except BaseException:
            self._close()
            raise
        # Of samples one by one, with a size of windows too, and of their ids.
        self._singles: dict[tuple[bool, tuple[int, int] | None], Description] = {}
        self._fetch_lock = threading.Lock()
        self._fetching: Run | None = None  # the stream of fetch
        self._end_fetching: Callable[[], object] = lambda: None
        self._start_state = State(d.reply.spec_hash, spec["seed"], 0, 0, run=d.run)
        self._changes = Changes()
        self._pool = Pool(o.engine.reuse)
        self.bad = BadRows()
        self._reported = b""  # figures of the last report
        # Epoch, its first step that was counted, the one after the last, and their bad rows.
        self._counted = -1, 0, 0, 0
        self._run: Run | None = None  # of the last loop; the next one may go on with it
        self._end_run: Callable[[], object] = lambda: None
        self._over: int | None = None  # the epoch after the last one that a loop has ended
        self._epoch = 0
        self._walked = range(0)  # epochs that gave batches, each after the one before
        self._step = 0
        self._begun = False  # a loop gave a batch of this epoch, and did not fail

    def __setattr__(self, name: str, value: Any) -> None:
        if "_begun" in self.__dict__:
            refuse_setting(name, value)
        super().__setattr__(name, value)

    def __len__(self) -> int:
        """Returns the steps of an epoch, the same on every rank."""
        return self._steps

    def _about(self) -> str:
        """Returns its size and its place."""
        share = "" if self.world_size == 1 else f", rank {self.rank} of {self.world_size}"
        return (
            f"chaski.Loader: {self.samples} samples, {len(self)} steps of {self.batch_size}{share}"
        )

    def __repr__(self) -> str:
        fields = "; ".join(
            f"{f.name} {f.dtype or 'text'} ({' '.join(f.axes)})"
            + (f" {(self.local_batch_size, *f.shape[1:])}" if f.axes[:1] == ("n",) else "")
            for f in self.fields
        )
        return f"<{self._about()}; step {self._step} of epoch {self.epoch}; {fields}>"

    def _repr_html_(self) -> str:
        """Returns what notebooks show: the fields with their shapes."""
        caption = f"{self._about()}, {self.spec.get('source') or ''}"
        rows = [(f.name, f.kind, f.dtype, " ".join(f.axes), f.shape) for f in self.fields]
        return _show.table(caption, rows, ("field", "kind", "dtype", "axes", "shape of one row"))

    @property
    def epoch(self) -> int:
        """The epoch being iterated, or left before its end; else the next one."""
        return self._epoch

    @property
    def local_batch_size(self) -> int:
        """Rows of a batch on this rank, at most; with last="pad" of each.

        It is batch_size / world_size, rounded up.
        """
        return local_rows(self.batch_size, self.world_size)

    @property
    def classes(self) -> dict[str, list[str]]:
        """The strings of each field of kind "class", in the order of their values from 0.

        Rasters whose first file names its classes have these names, "" for a number without one:
        CategoryNames of GDAL, or an attribute table. Classes of shapes begin at 1, behind "".
        """
        found = {f["name"]: f["classes"] for f in self.spec["fields"] if f.get("kind") == "class"}
        for f in self.spec["fields"]:
            if names := f.get("vector", {}).get("classes"):
                found[f["name"]] = ["", *names]
        return found | {f.name: list(f.classes) for f in self.fields if f.classes}

    def __iter__(self) -> Iterator[Batch]:
        """Iterates over an epoch, or over the rest of one after a loaded state or an error.

        A loop that is going on raises RuntimeError at its next batch.
        """
        return self._iterate()

    def _iterate(self, mover: Moves | None = None) -> Iterator[Batch]:
        """Iterates over an epoch; a mover has the batches of this loop on a device."""
        self._check_usable()
        self._end_loop("another one began; a loop inside a loop needs a loader of its own")
        self._epoch, self._step = self._place()
        self._begun = False
        loop = _Loop(self, mover)
        self._loop = weakref.ref(loop)
        return loop

    def _place(self) -> tuple[int, int]:
        """Returns the epoch and the step where the next loop begins."""
        over = self._begun or self._step >= self._steps
        epoch, step = (self._epoch + 1, 0) if over else (self._epoch, self._step)
        if epoch >= _EPOCHS:
            raise ValueError("the last epoch has ended: their numbers are in [0, 2**64)")
        return epoch, step

    @entry
    def peek(self) -> Batch:
        """Returns the batch with which the next loop begins. It begins no loop, and disturbs none.

        Every call is a request of its own to the engine.
        """
        self._check_usable()
        epoch, step = self._place()
        job = Job(1, step, self._tickets()(epoch, step))

        def ask() -> Batch:
            run = Run(self._connection, self._described, iter(()), self._options, self._pool)
            with contextlib.closing(run):
                return run.one(job)

        batch = self._outlive(ask)
        self._tell(batch)
        return batch

    def _tickets(self) -> Callable[[int, int], Ticket]:
        """Returns what gives this rank's ticket of a step of an epoch, without the loader."""
        shares = self.batch_size, self.rank, self.world_size
        samples = None if self._asked["last"] == "pad" else self.samples
        changes = self._changes

        def ticket(epoch: int, step: int) -> Ticket:
            t = Ticket.of_step(epoch, step, *shares)
            if weights := changes.at(epoch, t.first):
                t = replace(t, weights=weights)
            return t if samples is None else t.without_padding(samples)

        return ticket

    def _check_process(self) -> None:
        if os.getpid() != self._pid:
            raise RuntimeError(
                "a chaski.Loader does not work in a fork of the process that made it"
            )

    def _check_usable(self) -> None:
        refuse_worker()
        self._check_process()
        if not self._close.alive:
            raise RuntimeError("this chaski.Loader is closed")

    @entry
    def sample(self, i: int) -> dict[str, Any]:
        """Returns one sample, to look at: a dict of arrays without the axis n.

        i is the number of a sample in the order of the dataset, as "sample" of a batch has it: it
        does not depend on the shuffling, rank and epoch of this loader. Of a mixture, and with
        strata, it is a position of the first epoch without shuffling. Windows are those of epoch 0
        without shuffling. Where the layout merges n with other axes, as in "(n y) x b", the array
        is that of a batch of one. A running iteration over the loader is not disturbed.

        Every call is one request to the engine and waits for it: this is not for training.

        Args:
            i: index as of `fetch`. With bad_samples="skip", "valid" of what cannot be read is
                False.

        Raises:
            IndexError: there is no such sample.
        """
        batch = self.fetch([i])
        return row_of(batch, batch)

    @entry
    def fetch(
        self, samples: Sequence[int], windows: Sequence[Sequence[int]] | None = None
    ) -> Batch:
        """Returns samples as one batch, in their order: all workers of the engine read them.

        For samplers of one's own: what a sample is, `sample` says; "position" of the batch has the
        indices, too. A sample may come several times. A running iteration over the loader is not
        disturbed. The first call opens the samples one by one beside the shuffled ones, and the
        engine keeps them open until the loader is closed.

        Args:
            samples: indices in [0, `samples`), or without `take` if that is given; negative ones
                count from the end. At most 65,536. Or a mask of bools, one for each sample.
            windows: (row, column, height, width) of the window of each, all of one size, in pixels
                of the first raster field. `samples` are then indices of the rasters, whatever
                `window` of this loader is. Windows of one call share decoded tiles; with a
                `TileWindow`, those of all calls do. "window" of batches has this form.

        Raises:
            IndexError: there is no such sample.
            SpecError: there are none, or too many; or windows are not one each, or of a `Mixture`.
            Error: a sample cannot be read, or has no such window. With bad_samples="skip", its row
                is not "valid" instead.
        """
        self._check_usable()
        size, corners = None, list[int]()
        picked, mask = _indices(samples)
        if windows is not None:
            height, width, corners = sizes_and_corners(windows, len(picked))
            size = height, width
            if "sources" in self._asked:
                raise SpecError("windows are for one dataset: of a Mixture, name samples alone")
        n = self._outlive(lambda: self._all_samples(size))
        if mask not in (None, n):
            raise SpecError(f"samples is a mask of {mask} bools: it must have one for each of {n}")
        if not 0 < len(picked) <= _MAX_FETCHED:
            raise SpecError(f"{len(picked)} samples: it must be 1 to {_MAX_FETCHED} at a time")
        for i in picked:
            if not -n <= i < n:
                raise IndexError(f"sample {i} of {n}")
        # Positions of epoch 0 without shuffling.
        ticket = Ticket(0, named=tuple(i % n for i in picked), corners=tuple(corners))
        batch = self._outlive(lambda: self._fetched(ticket, size=size))
        self._tell(batch)
        return batch

    def _fetched(
        self, ticket: Ticket, ids: bool = False, size: tuple[int, int] | None = None
    ) -> Batch:
        """Returns samples as one batch, by a stream that stays open for more of their kind."""
        job = Job(1, 0, ticket)
        with self._fetch_lock:
            batch, run = None, self._fetching
            described = self._describe_single(ids, size)
            if run is not None and run.made_for(described, None) and resting.take(run):
                with contextlib.suppress(UnavailableError):  # an engine may have ended an idle one
                    batch = run.one(job)
            if run is None or batch is None:
                self._end_fetching()
                run = Run(self._connection, described, iter(()), self._options, self._pool)
                self._fetching, self._end_fetching = run, weakref.finalize(self, run.close)
                batch = run.one(job)
            resting.add(run)
            return batch

    @property
    def ids(self) -> Ids:
        """What the samples are called, by their index in the dataset: "sample" of a batch.

            loader.ids[batch["sample"][0]]

        The id of a sample is the path of its first raster, as the dataset has it: below the folder,
        as the table or catalog has it, in the container; of a row without one, that of the row.
        Each is asked of the engine when it is wanted, and costs no pixel; for all rows of every
        batch, a field of kind "text" is faster.

        Raises:
            SpecError: samples of a `Mixture`, or with `strata`, are counted within their dataset or
                value, with `time` they have several rasters, and windows of a `GeoWindow` lie on
                any scenes, so that an index does not name one.
        """
        if any(self.spec.get(m) for m in ("sources", "strata", "time")):
            raise SpecError(
                "ids: of a Mixture, and with strata or time, an index does not name one file; add "
                'Field(column="path", kind="text") to fields'
            )
        if self.spec["sampler"]["kind"] == GeoWindow._kind:
            raise SpecError(
                "ids: a GeoWindow has windows at places, which several scenes may cover, and an "
                'index does not name one; Pixels(geo=True) says in batch["geo"] where they lie'
            )
        return Ids(self)

    def _all_samples(self, size: tuple[int, int] | None = None) -> int:
        """Returns the samples of an epoch without `take`; with the size of windows, the rasters."""
        if "take" not in self._asked and size is None:
            return self.samples
        self._check_usable()  # a closed loader must not start an engine
        return self._outlive(lambda: self._describe_single(size=size)).reply.samples

    def _describe(self, spec: dict[str, Any], rows: int) -> Description:
        """Has the engine describe a spec, for tickets of so many rows."""
        connection = self._connection
        d = connection.describe(
            spec,
            self._options.timeout,
            rows=rows,
            rank=self.rank,
            world_size=self.world_size,
            upstream=self._upstream,
        )
        if self._options.transport == "shm":
            connection.side(d.reply.shared)
        return d

    def _describe_single(
        self, ids: bool = False, size: tuple[int, int] | None = None
    ) -> Description:
        """Returns the description of samples one by one.

        With ids, it is that of their ids alone; with a size, of such a window of each raster.
        """
        if (d := self._singles.get((ids, size))) is None:
            # The batch size stays: with per_batch, it says what the shares are of. take goes: it
            # leaves samples out of an epoch, not of the dataset.
            spec = {**self._asked, "shuffle": False, "last": "short"}
            spec.pop("take", None)
            if ids:
                spec["ids"] = True
            if size:
                asked, spec["sampler"] = spec.get("sampler"), list(size)
                if isinstance(asked, dict) and asked["kind"] == "tile_window":
                    once = {"size": list(size), "visits": 1, "per_visit": 1}
                    spec["sampler"] = {**asked, **once}
            d = self._singles[ids, size] = self._describe(spec, 1)
        return d

    def _start(self, mover: Moves | None) -> Run:
        """Returns a run that stands where the loader does.

        Once a loop has begun where another ended an epoch, its run asks for the epochs that follow,
        too, and is the next loop's. A first loop may be the last, and asks for nothing in vain.
        """
        epoch, step, described = self._epoch, self._step, self._described
        run = self._run
        if run is not None and resting.take(run):
            if run.made_for(described, mover) and run.next_is(epoch, step):
                return run
        self._end_run()
        if self._upstream is not None:
            resting.end()  # a server may give a client few streams, and an engine asks it for long
        # A stream may stay between two loops, but servers may give a client few.
        others = any(c is not self and c._close.alive for c in list(_clients))
        may_stay = self._upstream is None or not others
        goes_on = epoch == self._over and step == 0 and may_stay
        epochs = range(epoch, _EPOCHS if goes_on else epoch + 1)
        steps = range(step, self._steps)
        places = ((e, s) for e in epochs for s in steps)
        ticket = self._tickets()
        jobs = (Job(i, s, ticket(e, s)) for i, (e, s) in enumerate(places, 1))
        tickets = self._known
        self._run = run = Run(
            self._connection, described, jobs, self._options, self._pool, tickets, mover=mover
        )
        self._end_run = weakref.finalize(self, run.close)
        return run

    @property
    def _connection(self) -> Connection:
        """The connection to the engine."""
        if self._held is None:
            return self._given
        if not self._held.engine.alive:
            raise UnavailableError(self._held.engine.last_words())
        return self._held.engine.connection

    def _outlive(self, ask: Callable[[], T]) -> T:
        """Returns what ask does; asks again where the connection or the loader's engine is lost."""
        failures = 0
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
                # What else an engine says itself is about a server, of data or of files.
                if not unknown and (e._answered or not isinstance(e, UnavailableError)):
                    raise
                failures += 1
                held = self._held
                ended = held is not None and not unknown and held.engine.ended()
                if not ended and failures > self._options.retries:
                    raise
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
            *(self._step, self._epoch, said),
        )
        held.replace()

    def _describe_again(self) -> None:
        """Has the engine describe the specs anew."""
        self._singles.clear()
        d = self._describe(self._asked, self.local_batch_size)
        if d.reply.spec_hash != self.spec_hash:
            raise StateError(
                f"{self._connection.target}: the engine now sees other data: fingerprint "
                f"{d.reply.fingerprint}; this loader has spec hash {self.spec_hash}, the engine "
                f"{d.reply.spec_hash}"
            )
        self._described = d

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
        self._epoch, self._step, self._begun = epoch, step, False

    def _check_bad(self, batch: Batch) -> None:
        """Lists bad rows, and raises once more of the epoch were bad than allowed."""
        if self._list is not None:
            self._list.rows(batch.bad)
        if not self._described.reply.HasField("bad_limit"):
            return
        limit = self._described.reply.bad_limit
        epoch, begun, seen, count = self._counted
        if epoch != batch.epoch:
            epoch, begun, seen, count = batch.epoch, batch.step, batch.step, 0
        if batch.step >= seen:
            seen, count = batch.step + 1, count + bad_rows(batch)
        self._counted = epoch, begun, seen, count
        if batch.bad and count > limit:
            rank = f" among the rows of rank {self.rank} of {self.world_size}"
            of = rank if self.world_size > 1 else ""
            if begun:
                of += f" since position {begun * self.batch_size}, where this loader began"
            raise LimitError(
                f"{count} bad samples in epoch {epoch}{of}, over the limit of {limit}; the "
                f"last one, at position {batch.bad[-1].position}: {batch.bad[-1].message}"
            )

    def _yielded(self, batch: Batch) -> None:
        self._tell(batch)
        if self._ledger is not None:
            self._ledger.add(batch)
        self._step, self._begun = batch.step + 1, True
        if batch.epoch not in self._walked:
            first = self._walked.start if batch.epoch == self._walked.stop else batch.epoch
            self._walked = range(first, batch.epoch + 1)
        self.bad.count += bad_rows(batch)
        self.bad.rows.extend((batch.epoch, row) for row in batch.bad)

    def _tell(self, batch: Batch) -> None:
        """Tells a batch what its fields are, and of which source."""
        fields = self.fields
        if self.sources and self.spec.get("batches"):
            source = self.sources[int(batch["source"][0])]
            batch.source, fields = source.name, source.fields
        batch.fields = {f.name: f for f in fields}
        batch._spec = {f["name"]: f for f in self.spec.get("fields", ())}

    def _finished(self) -> None:
        self._epoch, self._step, self._begun = self._epoch + 1, 0, False

    def _failed(self, e: BaseException) -> None:
        if isinstance(e, Exception):
            self._begun = False
        if self._list is not None and isinstance(e, Error):
            self._list.error(e)

    def set_epoch(self, epoch: int) -> None:
        """Makes `epoch` the next one to be iterated, from its start.

        A state loaded in the middle of that epoch keeps its step, so that the usual loop
        `for e in range(loader.epoch, epochs): loader.set_epoch(e); ...` resumes.

        Raises:
            ValueError: the epoch is not in [0, 2**64).
        """
        if not hasattr(epoch, "__index__"):
            raise TypeError(f"epoch is {epoch!r}: it must be an int")
        epoch = operator.index(epoch)
        if epoch not in range(_EPOCHS):
            raise ValueError(f"epoch {epoch} is not in [0, 2**64)")
        if epoch != self._epoch or self._begun:
            self._move(epoch, 0, "set_epoch")

    def state_dict(self) -> dict[str, Any]:
        """Returns the state after the last batch that the loop received.

        The dict is the same on every rank after the same step, serves any world size, and may be
        kept as JSON: {"version", "spec", "seed", "epoch", "samples", "run"}; "run" has the members
        that the spec hash is computed from. After `reweight` it has "weights", too: where each
        file lies, and its hash.
        """
        if self._ledger is not None:
            self._ledger.sync()
        samples = min(self._step * self.batch_size, self.samples)
        weights = self._changes.since(self._epoch, samples)
        state = replace(self._start_state, epoch=self._epoch, samples=samples, weights=weights)
        return state.to_dict()

    def load_state_dict(self, state: Mapping[str, Any], strict: bool = True) -> None:
        """Continues after the step that a state stands at, in constant time.

        Args:
            state: what `state_dict` returned.
            strict: a state of another run is an error. Without, this run goes on in its own order
                after as many samples of the epoch, in whole steps: say with more data, or other
                weights of a mixture. What differs and what follows is logged as a warning;
                docs/order.md, State, defines it.

        Raises:
            StateError: the state is of another run; the message says what differs.
        """
        drops = self._asked["last"] == "drop"
        s, note = State.from_dict(state).resume(
            self._start_state, self.samples, self.batch_size, drops, strict
        )
        if note:
            _log.warning("%s", note)
        step = s.step(self.samples, self.batch_size)
        self._end_run()  # it may have asked ahead, by other weights
        self._changes.load(s.weights)
        self._move(s.epoch, step, "load_state_dict")
        if self._ledger is not None:
            self._ledger.restored = True
        if step >= self._steps:
            self._finished()

    @entry
    def reweight(
        self,
        weights: Any,
        from_step: int | None = None,
        *,
        folder: str | os.PathLike[str],
        each_once: bool = False,
    ) -> None:
        """Draws samples by weight from a step on: hard examples more often, say.

        Sample i of the dataset, as "sample" of a batch counts, comes with probability
        weights[i] / sum(weights), independently at each position. All ranks must give the same
        weights for the same step. Batches of later steps that the engine works on already are
        asked for anew.

        Args:
            weights: a number of at least 0 for each sample, or for each row if all have equally
                many windows: an array, or the path of a .npy file.
            from_step: the first step with these weights, counted from the start of this epoch;
                steps of the next epoch begin at `len(loader)`. Default: the next step.
            folder: where the weights are written, by their hash. A resumed run, and servers, read
                them there, so it must stay. Each file has 4 bytes a weight.
            each_once: each sample comes once in an epoch, and weights draw the others: for
                `Rows(take=...)` of more samples than there are, from the start of an epoch.

        Raises:
            SpecError: a weight is negative, infinite or not a number, or all are 0; or the loader
                is of a mixture, or has strata, a `TileWindow` or a `GeoWindow`.
        """
        self._check_usable()
        epoch, now = self._place() if self._loop() is None else (self._epoch, self._step)
        step = now if from_step is None else count("from_step", from_step, 0)
        if (ahead := step - now) < 0:
            raise SpecError(f"from_step is {step}: the next step of epoch {epoch} is {now}")
        epoch, step = (epoch + step // self._steps, step % self._steps) if ahead else (epoch, step)
        if step >= self._steps:
            epoch, step = epoch + 1, 0
        path, digest = written(weights, folder)
        change = Weights(path, digest, each_once, epoch, step * self.batch_size)
        before = self._changes.at(epoch, change.samples)
        if each_once and step and not (before and before.once):
            raise SpecError(
                f"each_once from step {step} of epoch {epoch}: the samples that came before are "
                f"not known to it; it begins with an epoch, at from_step={self._steps}"
            )
        # Padding: the engine opens the weights for it, and reads no sample.
        probe = Ticket(epoch, self.samples, 1, 0, 1, weights=change)

        def ask() -> Batch:
            run = Run(self._connection, self._described, iter(()), self._options, self._pool)
            with contextlib.closing(run):
                return run.one(Job(1, 0, probe))

        self._outlive(ask)
        self._changes.add(change)
        if self._run is not None and self._run.asked_from(epoch, step):
            resting.take(self._run)
            if (loop := self._loop()) is not None:
                loop.begin_again()
            self._end_run()

    def report(self) -> str:
        """Returns a table of what training waits for, since the last report or the engine's start.

        Is it bound by data? Which stage takes longest, which rank waits most, which source and
        which file is slow? `chaski top` shows the same of running engines
        ([Metrics](docs/metrics.md)).
        """
        self._check_usable()
        table, self._reported = self._outlive(lambda: self._connection.report(self._reported))
        return table

    def metrics(self, planned: bool = False) -> dict[str, Any]:
        """Returns the figures of `report` since the engine's start ([Metrics](docs/metrics.md)).

        The dict has "seconds", "ranks", "sources", "slowest" and "cache": the bytes that all ranks
        of the engine had "from_cache" and "from_store", what the cache on disk has "used" and its
        "quota"; None if the engine has no such cache, or has worked on no batch yet.

        Args:
            planned: "planned" beside them has "from_cache" and "from_store" of each epoch that gave
                this loader batches, for a cache that was empty before them: what `chaski plan`
                prints. They begin anew where the loader goes to an epoch that is not the next one,
                and are at most 16,384. The engine walks through the order of these epochs for it,
                without reading pixels.
        """
        self._check_usable()
        _, text = self._outlive(lambda: self._connection.report(b""))
        out: dict[str, Any] = json.loads(text)
        if planned:
            out["planned"] = self._planned(out["cache"]["quota"]) if out["cache"] else []
        return out

    def _planned(self, quota: int) -> list[dict[str, int]]:
        """Returns what a cache of a quota saves in the epochs that were walked through."""
        request = pb.PlanRequest(
            first_epoch=self._walked.start,
            epochs=min(self._walked.stop - self._walked.start, _MAX_PLANNED),
            rank=self.rank,
            world_size=self.world_size,
            cache_bytes=quota,
        )

        def ask() -> Any:
            request.handle = self._described.reply.handle  # of the engine that lives now
            return self._connection.plan(request)

        said: list[dict[str, int]] = self._outlive(ask)
        return said

    def close(self) -> None:
        """Gives the engine back. Batches that were received stay valid."""
        self._end_loop("it was closed")
        self._end_fetching()
        self._end_run()
        for file in (self._list, self._ledger):
            if file is not None:
                file.close()
        self._close()

    def __reduce__(self) -> Any:
        """Refuses to be pickled."""
        raise TypeError(
            "a chaski.Loader cannot be pickled or copied: it belongs to the process that made it. "
            "Call chaski.load in the other process, and load_state_dict what state_dict gave here; "
            "worker processes of a DataLoader need none (num_workers=0)"
        )

    def __enter__(self) -> Loader:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


_clients: weakref.WeakSet[Loader] = weakref.WeakSet()
"""Loaders whose engine is the client of servers."""


def _indices(samples: Sequence[int]) -> tuple[list[int], int | None]:
    """Returns the indices that `fetch` is given, and the length of a mask that gives them."""
    with contextlib.suppress(TypeError):
        picked = list(samples)
        scalars = not any(getattr(i, "shape", ()) for i in picked)
        if scalars and picked and all(is_bool(i) for i in picked):
            return [i for i, chosen in enumerate(picked) if chosen], len(picked)
        if not any(is_bool(i) for i in picked):
            return [operator.index(i) for i in picked], None
    raise SpecError(f"samples is {samples!r:.100}: it must be a list of ints, or a mask of bools")


class Ids(Sequence[str]):
    """What the samples of a loader are called, by their index; see `Loader.ids`."""

    def __init__(self, loader: Loader) -> None:
        self._loader = loader

    def __len__(self) -> int:
        return self._loader._all_samples()

    @overload
    def __getitem__(self, i: int) -> str: ...
    @overload
    def __getitem__(self, i: slice) -> list[str]: ...
    def __getitem__(self, i: int | slice) -> str | list[str]:
        """Returns the id of sample i, or those of a slice. "sample" of padding, -1, has none."""
        self._loader._check_usable()
        n = len(self)
        if isinstance(i, slice):
            return self._loader._outlive(lambda: self._named(range(n)[i]))
        if is_bool(i):
            raise SpecError(f"sample is {i!r}: it must be an int")
        if not 0 <= operator.index(i) < n:
            raise IndexError(f"sample {i} of {n}")
        return self._loader._outlive(lambda: self._named([operator.index(i)]))[0]

    def _named(self, samples: Sequence[int]) -> list[str]:
        out: list[str] = []
        for first in range(0, len(samples), _MAX_FETCHED):
            some = Ticket(0, named=tuple(samples[first : first + _MAX_FETCHED]))
            out.extend(self._loader._fetched(some, ids=True)["id"])
        return out


class _Loop(Iterator[Batch]):
    """A loop over the rest of an epoch. Ends when it is dropped."""

    def __init__(self, loader: Loader, mover: Moves | None) -> None:
        self._loader: Loader | None = loader
        self._mover = mover
        self._ended = ""  # why, if not at the end of the epoch
        self.fresh = True  # it gave no batch yet
        self._run: Run | None = None
        with contextlib.suppress(UnavailableError):  # the first batch asks once more
            self._run = loader._start(self._mover)

    def __next__(self) -> Batch:
        loader = self._loader
        if loader is None:
            if self._ended:
                raise RuntimeError(f"this loop over a chaski.Loader ended: {self._ended}")
            raise StopIteration
        loader._check_process()
        try:
            batch = loader._outlive(lambda: self._next(loader))
            if batch is not None:
                loader._check_bad(batch)
        except BaseException as e:
            loader._failed(e)
            self.end(f"it failed: {e or type(e).__name__}")
            raise raised(e)  # noqa: B904 (its own cause stays)
        if batch is None:
            loader._finished()
            loader._over = loader._epoch
            if self._run is not None and self._run.next_is(loader._epoch, 0):
                resting.add(self._run)
                self._run = None  # the next loop's
            self.end("")
            raise StopIteration
        self.fresh = False
        loader._yielded(batch)
        return batch

    def _next(self, loader: Loader) -> Batch | None:
        try:
            if self._run is None:
                self._run = loader._start(self._mover)
            return self._run.next() if loader._step < len(loader) else None
        except Error:
            self._run = None  # it has closed itself, and may be asked for once more
            raise

    def begin_again(self) -> None:
        """Lets the first batch be that of the place where the loader stands then."""
        run, self._run = self._run, None
        if run is not None:
            run.close()

    def end(self, why: str) -> None:
        """Ends the loop, unless it has ended; its next batch is then an error if there is a why."""
        if self._loader is not None:
            self._loader, self._ended = None, why
            self.begin_again()

    def __del__(self) -> None:
        # At the end of Python all other threads stand still, and may hold the locks of the stream.
        if not sys.is_finalizing():
            self.end("")
