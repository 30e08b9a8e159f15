"""`map=`: a function of the user's makes something of each batch, ahead of the loop.

The thread that receives batches hands each one over, and goes on. Where the function runs in
processes, a thread for each of them sends a batch and waits for what becomes of it. Arrays and
tensors lie in memory that both processes see, so a batch is copied once on the way there and once
on the way back.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import io
import itertools
import mmap
import multiprocessing
import os
import pickle
import queue
import random
import signal
import sys
import tempfile
import threading
import traceback
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as NotYet  # before Python 3.11 not the builtin one
from typing import Any, Protocol

import numpy as np

from chaski._arguments import Map
from chaski._assemble import Batch
from chaski._plain import count
from chaski._shared import Bytes, Owner
from chaski.errors import SpecError
from chaski.order import hash_words

_SLICE = 0.5
"""Seconds of one wait: a signal that comes just before it begins does not end it."""
_ROUND = 1 << 20
_KEPT = ("valid", "position", "sample", "source")
"""Members by which loaders account for a batch; the function has all."""
_SHOWN = 8


class Places(Protocol):
    """What has a value on a device: `_device.Mover`."""

    def place(self, value: Any) -> tuple[Any, Callable[[], object]]:
        """Returns a value there, and what has the loop's stream wait for it."""


class Mapper:
    """Applies the function of a loader to its batches; see `_run.Moves`."""

    native = False

    def __init__(self, given: Any, tell: Callable[[Batch], None], seed: int, rank: int) -> None:
        """Takes the argument `map`. tell gives a batch what its fields are."""
        m = given if isinstance(given, Map) else Map(given)
        if not callable(m.function):
            raise SpecError(f"map is {m.function!r:.100}: it must be a function of a batch, or Map")
        count("map: processes", m.processes, 0)
        threads = max(m.processes, 1)
        self.ahead = threads + 1 if m.ahead is None else count("map: ahead", m.ahead)
        name = getattr(m.function, "__qualname__", type(m.function).__name__)
        if m.processes:
            try:
                pickle.dumps(m.function)
            except Exception as e:
                raise SpecError(
                    f"map: {name} cannot be sent to processes ({e}): define it with def at the top "
                    "of a module, or write processes=0"
                ) from None
        self._name, self._tell, self._seed, self._rank = name, tell, seed, rank
        self._idle: queue.SimpleQueue[_Process | None] = queue.SimpleQueue()
        self._processes: list[_Process] | None = [] if m.processes else None
        for _ in range(threads):
            self._idle.put(None)
        self._function, self._over = m.function, threading.Event()
        self._threads = ThreadPoolExecutor(threads, "chaski-map")
        self.view: Callable[[Batch], Any] = copy.copy
        """Makes what the function is given of a batch."""
        self.places: Places | None = None
        self.close = weakref.finalize(self, _end, self._over, self._threads, self._processes)

    def move(self, batch: Batch) -> None:
        """Begins to work on a batch, whose memory only the function has then."""
        self._tell(batch)
        seed = hash_words(self._seed, batch.epoch, batch.step, self._rank)
        samples = batch["sample"][batch["valid"]].tolist()
        some = ", ".join(map(str, samples[:_SHOWN])) + ", ..." * (len(samples) > _SHOWN)
        where = f"map: {self._name} of step {batch.step} of epoch {batch.epoch} (samples {some})"
        given = [self.view(batch)]
        batch._made = self._threads.submit(self._make, given, where, seed)
        kept = {k: batch[k].copy() for k in _KEPT if k in batch}
        batch.clear()
        batch.update(kept)

    def one(self, batch: Batch) -> Any:
        """Returns what becomes of a batch."""
        self.move(batch)
        return made(batch)

    def _make(self, given: list[Any], where: str, seed: int) -> tuple[Any, Callable[[], object]]:
        try:
            value = self._call(given.pop(), seed)
        except BaseException as e:  # what ends a thread alone would leave the loop waiting
            raise RuntimeError(f"{where}: {type(e).__name__}: {e}") from e
        return (value, _nothing) if self.places is None else self.places.place(value)

    def _call(self, given: Any, seed: int) -> Any:
        """Calls the function, in this thread or in a process of its own."""
        if self._processes is None:
            return self._function(given)
        process = self._idle.get()
        try:
            if process is None:
                process = _Process(self._function)
                self._processes.append(process)
                if self._over.is_set():  # `close` may not have seen it
                    process.close()
            return process.call(given, seed)
        except EOFError:
            assert process is not None
            code = process.close()
            self._processes.remove(process)
            process = None
            raise ChildProcessError(
                f"its process ended with code {code}. A program whose loader has processes begins "
                'its work below `if __name__ == "__main__":`, as they import it'
            ) from None
        finally:
            self._idle.put(process)


def _nothing() -> None:
    pass


def wait(batch: Batch) -> None:
    """Waits until a batch is what the function makes of it, or raises what that raised."""
    while batch._made is not None:
        with contextlib.suppress(NotYet):
            batch._made.result(_SLICE)
            return


def made(batch: Batch) -> Any:
    """Returns what the function made of a batch, which the loop's stream may use then."""
    assert batch._made is not None
    value, arrived = batch._made.result()
    arrived()
    return value


def _end(
    over: threading.Event, threads: ThreadPoolExecutor, processes: list[_Process] | None
) -> None:
    over.set()
    threads.shutdown(wait=False, cancel_futures=True)  # a function may take its time
    for process in list(processes or ()):
        process.close()
    if processes is not None:  # their threads end now
        with contextlib.suppress(RuntimeError):  # this is one of them
            threads.shutdown()


_numbers = itertools.count()


class _Slab:
    """Memory that other processes map by its name."""

    def __init__(self, size: int) -> None:
        self.size = max(size + -size % _ROUND, _ROUND)
        if hasattr(os, "memfd_create"):  # no mount bounds it, as Docker's 64 MiB do /dev/shm
            file = os.memfd_create("chaski-map", os.MFD_CLOEXEC)
            path, end = f"/proc/{os.getpid()}/fd/{file}", functools.partial(os.close, file)
        else:
            file, path = tempfile.mkstemp(prefix="chaski-map-")
            end = functools.partial(_drop, file, path)
        self.name = next(_numbers), path  # another slab may have the same path later
        self.close = weakref.finalize(self, end)
        os.ftruncate(file, self.size)
        self.memory: Bytes = np.frombuffer(mmap.mmap(file, self.size), np.uint8)


def _drop(file: int, name: str) -> None:
    os.close(file)
    with contextlib.suppress(OSError):  # on Windows, where arrays over it live
        os.unlink(name)


class _Pickler(pickle.Pickler):
    """Leaves the memory of arrays and tensors out."""

    def reducer_override(self, v: Any) -> Any:
        torch: Any = sys.modules.get("torch")
        if torch is None or type(v) is not torch.Tensor or v.device.type != "cpu" or v.is_sparse:
            return NotImplemented
        dense, dtype = v.detach().contiguous(), str(v.dtype).removeprefix("torch.")
        try:
            return _tensor, (dense.numpy(), "")
        except TypeError:  # numpy lacks the type
            bits = {1: torch.uint8, 2: torch.int16}.get(v.element_size())
            return (_tensor, (dense.view(bits).numpy(), dtype)) if bits else NotImplemented


def _tensor(a: Any, dtype: str) -> Any:
    import torch

    return torch.from_numpy(a).view(getattr(torch, dtype)) if dtype else torch.from_numpy(a)


def _dumps(value: Any) -> tuple[bytes, list[int], list[memoryview]]:
    """Returns a value without the memory of its arrays, the sizes of these, and that memory."""
    parts: list[pickle.PickleBuffer] = []
    out = io.BytesIO()
    _Pickler(out, 5, buffer_callback=parts.append).dump(value)
    raw = [p.raw() for p in parts]
    return out.getvalue(), [r.nbytes for r in raw], raw


def _places(sizes: Sequence[int]) -> list[slice]:
    """Returns where arrays lie in a slab; each begins at a multiple of 64 bytes."""
    out, begin = [], 0
    for n in sizes:
        out.append(slice(begin, begin + n))
        begin += n + -n % 64
    return out


def _write(memory: Bytes, raw: Sequence[memoryview]) -> None:
    for place, part in zip(_places([r.nbytes for r in raw]), raw, strict=True):
        memory[place] = np.frombuffer(part, np.uint8)


def _loads(head: bytes, sizes: Sequence[int], memory: Bytes) -> Any:
    return pickle.loads(head, buffers=[memory[place] for place in _places(sizes)])


class _Process:
    """A process that has the function. For one thread at a time."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        spawn = multiprocessing.get_context("spawn")  # gRPC and PyTorch do not survive a fork
        self._pipe, theirs = spawn.Pipe()
        self._process = spawn.Process(target=_serve, args=(theirs, function), daemon=True)
        self._process.start()
        theirs.close()  # so that the end of the process is the end of the pipe
        self._given = _Slab(0)
        self._free = deque[_Slab]()  # without an array of the loop

    def _slab(self, size: int) -> _Slab:
        """Returns memory for a result."""
        for _ in range(len(self._free)):
            if (slab := self._free.popleft()).size >= size:
                return slab
        return _Slab(size)

    def call(self, given: Any, seed: int) -> Any:
        """Returns what the function makes of a value.

        Raises:
            EOFError: the process has ended.
        """
        head, sizes, raw = _dumps(given)
        if (end := _places(sizes)[-1].stop if sizes else 0) > self._given.size:
            self._given = _Slab(end)
        _write(self._given.memory, raw)
        del raw, given  # an engine has the memory back
        try:
            self._pipe.send((self._given.name, head, sizes, seed))
            head, sizes, error = self._pipe.recv()
            if error is not None:
                raise pickle.loads(error) from _RemoteError(head.decode())
            slab = self._slab(_places(sizes)[-1].stop if sizes else 0)
            self._pipe.send(slab.name)
            self._pipe.recv()
        except OSError:
            raise EOFError from None
        back = functools.partial(self._free.append, slab)
        return _loads(head, sizes, np.asarray(Owner(slab.memory, back)))

    def close(self) -> int | None:
        """Ends the process, and returns its exit code."""
        self._process.terminate()
        self._process.join(5)
        return self._process.exitcode


class _RemoteError(Exception):
    """The traceback of an exception in another process."""

    def __str__(self) -> str:
        return f'\n"""\n{self.args[0]}"""'


@functools.lru_cache(maxsize=8)  # a new mapping costs a page fault every 4 KiB
def _map(number: int, name: str) -> Bytes:
    with open(name, "r+b") as f:
        memory: Bytes = np.frombuffer(mmap.mmap(f.fileno(), 0), np.uint8)
    return memory


def _serve(pipe: Any, function: Callable[[Any], Any]) -> None:
    """Is what a process does: it answers until its parent has closed the pipe, or is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent
    if torch := sys.modules.get("torch"):
        torch.set_num_threads(1)
    with contextlib.suppress(EOFError, OSError):
        while True:
            slab, head, sizes, seed = pipe.recv()
            try:
                _seed(seed)
                head, sizes, raw = _dumps(function(_loads(head, sizes, _map(*slab))))
            except BaseException as e:
                pipe.send((traceback.format_exc().encode(), [], _error(e)))
                continue
            pipe.send((head, sizes, None))
            _write(_map(*pipe.recv()), raw)
            del raw
            pipe.send(None)


def _seed(seed: int) -> None:
    """Has random numbers of Python, numpy and PyTorch depend on the batch alone."""
    random.seed(seed)
    np.random.seed(seed & 0xFFFFFFFF)
    if torch := sys.modules.get("torch"):
        torch.manual_seed(seed & (1 << 63) - 1)


def _error(e: BaseException) -> bytes:
    try:
        data = pickle.dumps(e)
        pickle.loads(data)
    except Exception:
        return pickle.dumps(RuntimeError(f"{type(e).__name__}: {e}"))
    return data
