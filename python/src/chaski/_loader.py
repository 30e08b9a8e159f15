"""`Loader`: the batches of a dataset, epoch by epoch."""

from __future__ import annotations

import json
import logging
import os
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields
from typing import Any

from chaski import _engine, _show
from chaski._arguments import Engine, FieldInfo, SourceInfo
from chaski._assemble import Batch, row_of
from chaski._bad import BadRows, Watch
from chaski._calls import entry
from chaski._classes import compare
from chaski._grpc import pb
from chaski._ledger import Ledger
from chaski._link import Link, refuse_worker
from chaski._map import Mapper, made
from chaski._quarantine import Quarantine
from chaski._ranks import Ranks
from chaski._rpc import Connection, Description
from chaski._samples import Ids, Samples
from chaski._scores import Scores
from chaski._spec import LoadOptions, SpecOptions, policy
from chaski._walk import Walk
from chaski._weights import COMPARED
from chaski._windows import GeoWindow
from chaski.errors import SpecError
from chaski.order import local_rows, steps

_log = logging.getLogger("chaski")

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
    batch. Two loops at a time need two loaders: when a second one begins, the first one raises
    RuntimeError at its next batch. So it does when the place changes, by `set_epoch` or
    `load_state_dict`, unless it gave no batch yet: then it begins at the new place.

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
        link = self._link = Link(
            *(connection, spec, options, release),
            rank=o.rank,
            world_size=o.world_size,
            held=held,
            upstream=upstream,
        )
        try:
            refuse_worker()
            self.batch_size: int = spec["batch_size"]
            self.rank = o.rank
            self.world_size = o.world_size
            if o.rank == 0 and o.world_size > self.batch_size:
                _log.warning(
                    "batch_size, of all ranks together, is %d: %d of the %d ranks never have a "
                    "valid row",
                    *(self.batch_size, o.world_size - self.batch_size, o.world_size),
                )
            d = link.described = described or link.describe_all()
            prefetch = options.prefetch or d.prefetch
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
            compare(spec, d.spec)
            self._steps = steps(d.reply.samples, self.batch_size, spec["last"] == "drop")
            if self._steps == 0:
                raise SpecError(
                    f"an epoch of {d.reply.samples} samples has no whole batch of {self.batch_size}"
                )
            share = {"rank": self.rank, "world_size": self.world_size}
            limit = d.reply.bad_limit if d.reply.HasField("bad_limit") else None
            listed = policy(o.on_bad).quarantine
            quarantine = None if listed is None else Quarantine(listed, d.reply.fingerprint)
            bad = Watch(limit, quarantine, batch_size=self.batch_size, **share)
            ledger = None
            if options.ledger is not None:
                ledger = Ledger(
                    options.ledger,
                    run=self.spec_hash,
                    data=d.reply.fingerprint,
                    samples=self.samples,
                    batch_size=self.batch_size,
                    steps=self._steps,
                    take=bool(spec.get("take")),
                    mixture=any(spec.get(m) for m in ("sources", "strata")),
                    **share,
                )
        except BaseException:
            link.close()
            raise
        self._samples = Samples(link)
        self._map = None if o.map is None else Mapper(o.map, link.tell, o.seed, o.rank)
        if self._map is not None:
            weakref.finalize(self, self._map.close)  # a run keeps the mapper for longer
        self._walk = Walk(link, bad, ledger, self._steps, tickets)
        self.bad: BadRows = bad.met
        self._reported = b""  # figures of the last report

    def __setattr__(self, name: str, value: Any) -> None:
        if "_reported" in self.__dict__:
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
        return f"<{self._about()}; step {self._link.place.step} of epoch {self.epoch}; {fields}>"

    def _repr_html_(self) -> str:
        """Returns what notebooks show: the fields with their shapes."""
        caption = f"{self._about()}, {self.spec.get('source') or ''}"
        rows = [(f.name, f.kind, f.dtype, " ".join(f.axes), f.shape) for f in self.fields]
        return _show.table(caption, rows, ("field", "kind", "dtype", "axes", "shape of one row"))

    @property
    def epoch(self) -> int:
        """The epoch being iterated, or left before its end; else the next one."""
        return self._link.place.epoch

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

    def __iter__(self) -> Iterator[Any]:
        """Iterates over an epoch, or over the rest of one after a loaded state or an error.

        It yields a `Batch` for each step, or what `map` makes of it.
        A loop that is going on raises RuntimeError at its next batch.
        """
        if self._map is None:
            return self._walk.iterate()
        return map(made, self._walk.iterate(self._map))

    @entry
    def peek(self) -> Any:
        """Returns the batch with which the next loop begins. It begins no loop, and disturbs none.

        Every call is a request of its own to the engine.
        """
        batch = self._walk.peek()
        return batch if self._map is None else self._map.one(batch)

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
            i: index as of `fetch`. With on_bad="skip", "valid" of what cannot be read is
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
            Error: a sample cannot be read, or has no such window. With on_bad="skip", its row
                is not "valid" instead.
        """
        return self._samples.fetch(samples, windows)

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
        return Ids(self._samples)

    def set_epoch(self, epoch: int) -> None:
        """Makes `epoch` the next one to be iterated, from its start.

        A state loaded in the middle of that epoch keeps its step, so that the usual loop
        `for e in range(loader.epoch, epochs): loader.set_epoch(e); ...` resumes.

        Raises:
            ValueError: the epoch is not in [0, 2**64).
        """
        self._walk.set_epoch(epoch)

    def state_dict(self) -> dict[str, Any]:
        """Returns the state after the last batch that the loop received.

        The dict is the same on every rank after the same step, serves any world size, and may be
        kept as JSON: {"version", "spec", "seed", "epoch", "samples", "run"}; "run" has the members
        that the spec hash is computed from. After `reweight` it has "weights", too: where each
        file lies, and its hash; and with `scores` "scores", the file with the means, which this
        call writes.
        """
        return self._walk.state()

    @entry
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
        self._walk.load(state, strict)

    @entry
    def reweight(
        self,
        weights: Any,
        from_step: int | None = None,
        *,
        folder: str | os.PathLike[str] | None = None,
        each_once: bool = False,
        group: Any = None,
    ) -> None:
        """Draws samples by weight from a step on: hard examples more often, say.

        Sample i of the dataset, as "sample" of a batch counts, comes with probability
        weights[i] / sum(weights), independently at each position. So does what takes the place of
        one that cannot be read (on_bad="replace"). All ranks must give the same weights for the
        same step, and are compared where torch.distributed is initialised. Batches of later steps
        that the engine works on already are asked for anew.

        Weights hold up to the step from which others do, in whatever order the calls come: a call
        for an earlier step keeps those of a later one, and a call for the same step replaces them.

        Weights from the next step on are written and opened before the call returns. Those of a
        later step are copied, unless the array is not writeable, into memory that the loader keeps
        for the next call (means of `scores` need no copy), and a thread writes them: `state_dict`,
        and the loop where it asks for the first batch with them, wait for it, and raise its errors.

        Args:
            weights: a number of at least 0 for each sample, or for each row if all have equally
                many windows: an array, a tensor, the name of a column of the dataset, or the path
                of a .npy file or of a Parquet file of one column; or what `scores` returned.
            from_step: the first step with these weights, counted from the start of this epoch;
                steps of the next epoch begin at `len(loader)`. Default: the next step.
            folder: where the weights are written, by their hash. A resumed run, and servers, read
                them there, so it must stay. Each file has 4 bytes a weight. Default: the
                folder of the scores.
            each_once: each sample comes once in an epoch, and weights draw the others: for
                `Rows(take=...)` of more samples than there are, from the start of an epoch.
            group: as of `scores`. Default: that of the scores, if weights are scores.

        Raises:
            SpecError: a weight is negative, infinite or not a number, or all are 0; or the loader
                is of a mixture, or has strata, a `TileWindow` or a `GeoWindow`; or the call fails
                on another rank.
        """
        if group is None and isinstance(weights, Scores):
            group = weights.ranks.group
        with Ranks(self.rank, self.world_size, group).together(COMPARED) as ranks:
            if isinstance(weights, str) and not weights.endswith((".npy", ".parquet")):
                weights = self._samples.column(weights)
            samples = self._samples.count()
            self._walk.reweight(weights, from_step, folder, each_once, samples, ranks)

    @entry
    def scores(
        self, folder: str | os.PathLike[str], decay: float = 0.5, *, group: Any = None
    ) -> Scores:
        """Returns the running mean of the loss of each sample, as weights for `reweight`.

            scores = loader.scores("weights")
            for batch in loader:
                scores.add(batch, step(batch["image"], batch["mask"]))
            loader.reweight(scores)

        `add` takes a loss for each row of a batch. Where torch.distributed is initialised, all
        processes call it in every step, and all have the losses of the whole global batch, so that
        any number of ranks has the same means; elsewhere each has those that it is given. With
        tensor, pipeline or context parallelism, several processes are one rank of the loader: they
        must give the same losses, those of the whole model.

        A loader has one running mean of each sample: a second call returns the same object, and
        must have the same arguments.
        `scores.means` has NaN for samples without a loss, `scores.weights()` the mean of all others
        there; weights of another form are computed of these.

        Means take 4 bytes a sample. `state_dict` writes them to the folder, by their hash, and
        names the file; after `load_state_dict` they are those of the state.

        Args:
            folder: where states keep the means, and `reweight(scores)` the weights.
            decay: the part of a mean that stays when another loss comes. The default halves the
                noise that windows and augmentation bring to a loss to 58 % (the square root of (1 -
                decay) / (1 + decay)), and forgets 7/8 of a loss in three more visits, because a
                model that trains makes old ones wrong.
            group: the processes that call `add` and `reweight` together, a ProcessGroup of
                torch.distributed with at least one process of each rank of this loader, such as
                `mesh["data"].get_group()`. Default: all processes. Give it if some have no loader.

        Raises:
            SpecError: the call before had other arguments; or the loader is of a mixture, or has
                strata or a `GeoWindow`, where "sample" of a batch does not name one sample of all.
        """
        self._link.check()
        windows = self.spec["sampler"]["kind"] == GeoWindow._kind
        if windows or any(self.spec.get(m) for m in ("sources", "strata")):
            raise SpecError(
                'scores: of a Mixture, with strata and of a GeoWindow, "sample" of a batch does '
                "not name one sample of all"
            )
        return self._walk.scores(self._samples.count(), folder, decay, group)

    def report(self) -> str:
        """Returns a table of what training waits for, since the last report or the engine's start.

        Is it bound by data? Which stage takes longest, which rank waits most, which source and
        which file is slow? `chaski top` shows the same of running engines
        ([Metrics](docs/metrics.md)).
        """
        table, self._reported = self._report(self._reported)
        return table

    def _report(self, since: bytes) -> tuple[str, bytes]:
        self._link.check()
        return self._link.outlive(lambda: self._link.connection.report(since))

    @entry
    def metrics(self, planned: bool = False) -> dict[str, Any]:
        """Returns the figures of `report` since the engine's start ([Metrics](docs/metrics.md)).

        The dict has "seconds", "ranks", "sources", "slowest" and "cache": the bytes that all ranks
        of the engine had "from_cache" and "from_store", what the cache on disk has "used" and its
        "quota"; None if the engine has no such cache, or has worked on no batch yet. "recoded" has
        of each data the "bytes" that `recode` holds in memory, and how many chunks were decoded
        from these ("used") and from files ("missed").

        Args:
            planned: "planned" beside them has "from_cache" and "from_store" of each epoch that gave
                this loader batches, for a cache that was empty before them: what `chaski plan`
                prints. They begin anew where the loader goes to an epoch that is not the next one,
                and are at most 16,384. The engine walks through the order of these epochs for it,
                without reading pixels.
        """
        out: dict[str, Any] = json.loads(self._report(b"")[1])
        if planned:
            out["planned"] = self._walk.planned(out["cache"]["quota"]) if out["cache"] else []
        return out

    def close(self) -> None:
        """Gives the engine back. Batches that were received stay valid."""
        self._walk.close()
        if self._map is not None:
            self._map.close()
        self._samples.close()
        self._link.close()

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
