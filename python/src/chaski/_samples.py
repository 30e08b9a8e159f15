"""Samples by their index, beside the loop of a loader: `fetch`, and what they are called."""

from __future__ import annotations

import contextlib
import operator
import threading
from collections.abc import Callable, Sequence
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from chaski._assemble import Batch
from chaski._link import Link
from chaski._plain import is_bool
from chaski._read import sizes_and_corners
from chaski._run import Finalizer, Job, Run, resting
from chaski.errors import SpecError, UnavailableError
from chaski.order import Ticket

_MAX_FETCHED = 1 << 16  # as many positions may a ticket name


class Samples:
    """The samples of a dataset one by one, by a stream of their own that stays open."""

    def __init__(self, link: Link) -> None:
        self.link = link
        self._lock = threading.Lock()
        self._run: Run | None = None
        self.close: Callable[[], object] = lambda: None

    def count(self, size: tuple[int, int] | None = None) -> int:
        """Returns the samples of an epoch without `take`; with the size of windows, the rasters."""
        link = self.link
        if "take" not in link.asked and size is None:
            return link.described.reply.samples
        link.check()  # a closed loader must not start an engine
        return link.outlive(lambda: link.describe_single(size=size)).reply.samples

    def fetch(self, samples: Sequence[int], windows: Sequence[Sequence[int]] | None) -> Batch:
        """See `chaski.Loader.fetch`."""
        self.link.check()
        size, corners = None, list[int]()
        picked, mask = _indices(samples)
        if windows is not None:
            height, width, corners = sizes_and_corners(windows, len(picked))
            size = height, width
            if "sources" in self.link.asked:
                raise SpecError("windows are for one dataset: of a Mixture, name samples alone")
        n = self.count(size)
        if mask not in (None, n):
            raise SpecError(f"samples is a mask of {mask} bools: it must have one for each of {n}")
        if not 0 < len(picked) <= _MAX_FETCHED:
            raise SpecError(f"{len(picked)} samples: it must be 1 to {_MAX_FETCHED} at a time")
        for i in picked:
            if not -n <= i < n:
                raise IndexError(f"sample {i} of {n}")
        # Positions of epoch 0 without shuffling.
        ticket = Ticket(0, named=tuple(i % n for i in picked), corners=tuple(corners))
        batch = self._fetched(ticket, size=size)
        self.link.tell(batch)
        return batch

    def _fetched(
        self, ticket: Ticket, ids: bool = False, size: tuple[int, int] | None = None
    ) -> Batch:
        """Returns samples as one batch; the stream stays open for more of their kind."""
        job = Job(1, 0, ticket)

        def ask() -> Batch:
            with self._lock:
                batch, run = None, self._run
                described = self.link.describe_single(ids, size)
                if run is not None and run.made_for(described, None) and resting.take(run):
                    with contextlib.suppress(UnavailableError):  # it may have ended an idle one
                        batch = run.one(job)
                if run is None or batch is None:
                    self.close()
                    run = self.link.run(described=described)
                    self._run, self.close = run, Finalizer(self, run.close)
                    batch = run.one(job)
                resting.add(run)
                return batch

        return self.link.outlive(ask)

    def ids(self, samples: Sequence[int]) -> list[str]:
        """Returns what samples are called."""
        out: list[str] = []
        for first in range(0, len(samples), _MAX_FETCHED):
            some = Ticket(0, named=tuple(samples[first : first + _MAX_FETCHED]))
            out.extend(self._fetched(some, ids=True)["id"])
        return out

    def column(self, name: str) -> npt.NDArray[Any]:
        """Returns the values of a column, one for each row or, of a grid, for each sample."""
        link = self.link
        link.check()
        described = link.describe_single(column=name)
        n, member = described.reply.samples, described.spec["only"][0]
        each = described.spec["sampler"].get("per_asset", 1)
        if described.run.get("rows") != n // each:
            each = 1
        picked = range(0, n, each)

        def ask() -> npt.NDArray[Any]:
            out = []
            with contextlib.closing(link.run(described=described)) as run:
                for first in range(0, len(picked), _MAX_FETCHED):
                    some = Ticket(0, named=tuple(picked[first : first + _MAX_FETCHED]))
                    batch = run.one(Job(1, 0, some))
                    for bad in batch.bad:
                        raise SpecError(f"column {name!r} of sample {bad.sample}: {bad.message}")
                    out.append(batch[member])
            return np.concatenate(out)

        return link.outlive(ask)


class Ids(Sequence[str]):
    """What the samples of a loader are called, by their index; see `Loader.ids`."""

    def __init__(self, samples: Samples) -> None:
        self._samples = samples

    def __len__(self) -> int:
        return self._samples.count()

    @overload
    def __getitem__(self, i: int) -> str: ...
    @overload
    def __getitem__(self, i: slice) -> list[str]: ...
    def __getitem__(self, i: int | slice) -> str | list[str]:
        """Returns the id of sample i, or those of a slice. "sample" of padding, -1, has none."""
        self._samples.link.check()
        n = len(self)
        if isinstance(i, slice):
            return self._samples.ids(range(n)[i])
        if is_bool(i):
            raise SpecError(f"sample is {i!r}: it must be an int")
        if not 0 <= operator.index(i) < n:
            raise IndexError(f"sample {i} of {n}")
        return self._samples.ids([operator.index(i)])[0]


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
