"""Datasets that a DataLoader asks for batches read them ahead of its loop, without workers."""

from __future__ import annotations

import contextlib
import functools
import sys
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Generic, TypeVar

import torch
import torch.utils.data

Read = TypeVar("Read")


class Ahead(Generic[Read]):
    """Reads batches of indices in a thread of its own, in the order in which they are begun."""

    def __init__(self, read: Callable[[Sequence[Any]], Read]) -> None:
        self._read = read
        self._thread = ThreadPoolExecutor(1)
        self.begun = deque[tuple[list[Any], Future[Read]]]()

    def begin(self, indices: Sequence[Any]) -> None:
        """Begins to read a batch."""
        self.begun.append((list(indices), self._thread.submit(self._read, indices)))

    def take(self, indices: Sequence[Any]) -> Read:
        """Returns what a batch is read as, whether it was begun or not."""
        asked = list(indices)
        if not any(asked == begun for begun, _ in self.begun):
            return self._read(indices)
        while (first := self.begun.popleft())[0] != asked:
            first[1].cancel()  # of a loop that was left
        return first[1].result()


class Accelerated:
    """What datasets that an engine reads have before the members of their class."""

    _made: tuple[Any, ...]  # of what its class is made: see kind_of
    _OPENED: tuple[str, ...] = ()
    """Members that a copy does not have: it opens its files anew."""

    def __reduce_ex__(self, protocol: Any) -> Any:
        return _again, (self._made, {k: v for k, v in vars(self).items() if k not in self._OPENED})


@functools.cache
def _kind_of(kind: Any, before: tuple[type, ...], after: tuple[type, ...]) -> Any:
    """Returns a class of datasets that is theirs, with other members before and after."""
    bases = (
        (*before, *after) if any(issubclass(a, kind) for a in after) else (*before, kind, *after)
    )
    names = {"_made": (kind, before, after), "__doc__": kind.__doc__}
    names |= {"__module__": kind.__module__, "__qualname__": kind.__qualname__}
    return type(kind.__name__, bases, names)


def _again(made: Any, members: dict[str, Any]) -> Any:
    fast: Any = object.__new__(_kind_of(*made))
    vars(fast).update(members)
    return fast


def accelerated(
    dataset: Any, before: tuple[type, ...], after: tuple[type, ...] = (), **members: Any
) -> Any:
    """Returns a dataset with the members of another one, and of classes that come before its own.

    Those that come after its own stand in place of the members of their base class.
    """
    return _again((type(dataset), before, after), {**vars(dataset), **members})


class _Batches(Iterator[Any]):
    """The batches of a sampler, which a dataset begins to read before it is asked for them."""

    def __init__(self, batches: Iterator[Any], dataset: Any, ahead: int) -> None:
        self._batches, self._dataset, self._ahead = batches, dataset, ahead
        self._begun = deque[Any]()
        self._begin()

    def _begin(self) -> None:
        while len(self._begun) < self._ahead and (batch := next(self._batches, None)) is not None:
            self._dataset._will_read(batch)
            self._begun.append(batch)

    def __next__(self) -> Any:
        if not self._begun:
            raise StopIteration
        batch = self._begun.popleft()
        self._begin()
        return batch


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """Has torch work in this thread alone, as it does in worker processes of a DataLoader.

    Its other threads, which are busy while they wait, would keep processors from the engine.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def read_ahead(dataset: Any, ahead: int) -> None:
    """Has the loop of a DataLoader that asks a dataset for a batch tell it of its next ones.

    A DataLoader itself looks ahead for worker processes only. In other loops than torch's own,
    nothing is read ahead. `__getitems__` of a dataset calls this, and `_will_read` is called with
    as many of the next batches.
    """
    fetch = sys._getframe(2)
    loop: Any = fetch.f_back.f_locals.get("self") if fetch.f_back else None
    kind = getattr(torch.utils.data.dataloader, "_SingleProcessDataLoaderIter", None)
    if type(loop) is kind and loop._auto_collation and type(loop._sampler_iter) is not _Batches:
        loop._sampler_iter = _Batches(loop._sampler_iter, dataset, ahead)
        fetcher = loop._dataset_fetcher
        fetcher.collate_fn = one_thread()(fetcher.collate_fn)
