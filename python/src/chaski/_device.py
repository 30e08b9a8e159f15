"""Batches on a device, for `chaski.torch`: copied one ahead, and converted there.

A batch crosses as the files have it (uint8 or uint16 in place of float32, where the engine can
leave the arithmetic to its receiver), from memory that is registered with the device, on a stream
of its own. The arithmetic is the engine's, bit for bit (docs/order.md): each operation rounds by
itself, so it is several operations of PyTorch and not one kernel, whose compiler would fuse
x * a + c.

The thread that receives batches copies them, and gives the memory back to the engine when the copy
is done. What a loop gets is on the device, or its stream waits for it.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import logging
import os
import threading
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from chaski._assemble import Batch, Convert
from chaski._members import Ragged
from chaski._shared import Bytes, Lease

_log = logging.getLogger("chaski")


class Stream:
    """What copies to a device and computes there, beside the stream of the loop.

    This one is for devices whose copies are done when they return: processors, and those for which
    PyTorch waits.
    """

    def __init__(self, device: torch.device) -> None:
        self.device = device

    def order(self) -> contextlib.AbstractContextManager[object]:
        """Returns a context whose operations are those of this stream."""
        return contextlib.nullcontext()

    def copy(self, tensor: torch.Tensor) -> torch.Tensor:
        """Returns a copy on the device. The tensor is needed until `copied` has returned."""
        try:
            return tensor.to(self.device, copy=True)
        except TypeError:  # the device lacks the type, as Apple's lacks float64
            return tensor.clone()

    def copied(self) -> Callable[[], object]:
        """Returns what waits until all copies so far are done."""
        return lambda: None

    def done(self, results: list[torch.Tensor]) -> Callable[[], object]:
        """Returns what has the loop's stream wait for all operations so far, with these results."""
        return lambda: None

    def register(self, memory: Bytes) -> Callable[[], object]:
        """Registers memory for faster copies, and returns what ends that.

        Raises:
            OSError: it is not registered.
        """
        return lambda: None


class _Cuda(Stream):
    """A GPU of NVIDIA (or AMD, which PyTorch calls by the same name)."""

    def __init__(self, device: torch.device) -> None:
        index = torch.cuda.current_device() if device.index is None else device.index
        super().__init__(torch.device("cuda", index))
        self._stream = torch.cuda.Stream(self.device)  # type: ignore[no-untyped-call]

    def order(self) -> contextlib.AbstractContextManager[object]:
        return torch.cuda.stream(self._stream)  # it also makes the device the current one

    def copy(self, tensor: torch.Tensor) -> torch.Tensor:
        return tensor.to(self.device, copy=True, non_blocking=True)

    def copied(self) -> Callable[[], object]:
        # Others have the processor while a thread waits.
        event = torch.cuda.Event(blocking=True)  # type: ignore[no-untyped-call]
        event.record(self._stream)
        return event.synchronize

    def done(self, results: list[torch.Tensor]) -> Callable[[], object]:
        event = torch.cuda.Event()  # type: ignore[no-untyped-call]
        event.record(self._stream)

        def wait() -> None:
            current = torch.cuda.current_stream(self.device)
            current.wait_event(event)
            for t in results:  # or their memory would be used again while this stream reads it
                if t.is_cuda:
                    t.record_stream(current)

        return wait

    def register(self, memory: Bytes) -> Callable[[], object]:
        cudart = torch.cuda.cudart()  # type: ignore[no-untyped-call]
        at = memory.ctypes.data
        with torch.cuda.device(self.device):
            if code := int(cudart.cudaHostRegister(at, memory.nbytes, _PORTABLE)):
                # The next kernel would find the error that CUDA keeps, and raise it.
                with contextlib.suppress(RuntimeError):
                    torch.zeros(1, device=self.device)
                raise OSError(f"cudaHostRegister of {memory.nbytes} bytes: error {code}")
        return lambda: cudart.cudaHostUnregister(at)


_PORTABLE = 1  # cudaHostRegisterPortable: for all GPUs of the process


class Mover:
    """Moves the batches of a loop to a device: their members become tensors there."""

    ahead = 1

    def __init__(self, stream: Stream, tensors: Callable[[Batch], dict[str, Any]]) -> None:
        """Moves by a stream; tensors makes tensors of arrays, over the same memory."""
        self._stream = stream
        self._tensors = tensors
        # PyTorch knows uint16 on processors and GPUs of NVIDIA; for others, the engine converts.
        self.native = stream.device.type in ("cpu", "cuda")

    def move(self, batch: Batch) -> None:
        """Moves a batch, and lets go of the memory where it was. For the thread that receives."""
        stream = self._stream
        for a in batch.values():
            _register(stream, a)
        with stream.order():
            moved = {k: self._moved(v) for k, v in self._tensors(batch).items()}
            masks = {
                name: stream.copy(torch.from_numpy(c.mask))
                for name, c in batch._converts.items()
                if c.mask is not None
            }
            copied = stream.copied()
            for name, c in batch._converts.items():
                moved[name] = convert(moved[name], c, masks.get(name))
            parts = [t for v in moved.values() for t in (v if isinstance(v, Ragged) else (v,))]
            batch._arrived = stream.done([t for t in parts if isinstance(t, torch.Tensor)])
        copied()
        batch.update(moved)
        batch.dtypes = {**batch.dtypes, **{name: c.to for name, c in batch._converts.items()}}
        batch._converts = {}

    def place(self, value: Any) -> tuple[Any, Callable[[], object]]:
        """Returns what `map` made, with all tensors in it on the device. See `_map.Places`."""
        tensors: list[torch.Tensor] = []
        with self._stream.order():
            moved = self._moved(value, tensors)
            copied, arrived = self._stream.copied(), self._stream.done(tensors)
        copied()
        return moved, arrived

    def _moved(self, v: Any, tensors: list[torch.Tensor] | None = None) -> Any:
        if isinstance(v, torch.Tensor):
            moved = self._stream.copy(v)
            if tensors is not None:
                tensors.append(moved)
            return moved
        if isinstance(v, dict):
            out = copy.copy(v)  # of its class, with its attributes
            out.update({k: self._moved(x, tensors) for k, x in v.items()})
            return out
        if isinstance(v, list | tuple):
            parts = [self._moved(x, tensors) for x in v]
            return type(v)(*parts) if hasattr(v, "_fields") else type(v)(parts)
        return v


def mover(device: torch.device, tensors: Callable[[Batch], dict[str, Any]]) -> Mover:
    """Returns what moves batches to a device.

    Raises:
        RuntimeError: PyTorch cannot use the device.
    """
    stream = _Cuda(device) if device.type == "cuda" else Stream(device)
    torch.empty(0, device=stream.device)
    return Mover(stream, tensors)


def convert(x: torch.Tensor, c: Convert, mask: torch.Tensor | None) -> torch.Tensor:
    """Returns a tensor after the arithmetic of Convert (proto/chaski/v1/batch.fbs).

    Samples of at most 16 bits are whole in float32, as are those of 32 bits in int64.
    """
    to: torch.dtype = getattr(torch, c.to)
    if to == torch.int64:
        y = x.to(to)
    else:
        y = x.to(torch.float32)
        for bands, apply in ((c.scale, y.mul_), (c.offset, y.add_)):
            if len(bands):
                shape = [1] * x.ndim
                shape[c.band_axis] = len(bands)
                apply(_on(bands.tobytes(), x.device).view(shape))
        if c.clip is not None:
            y.clamp_(*c.clip)
        y = y.to(to)
    if mask is not None:
        fill = int(c.fill) if to == torch.int64 else c.fill
        y.masked_fill_(mask.view(x.shape) == 0, fill)
    return y


@functools.lru_cache(maxsize=256)
def _on(numbers: bytes, device: torch.device) -> torch.Tensor:
    """Returns float32 on a device. They are there when it returns: other streams use them, too."""
    t = torch.from_numpy(np.frombuffer(numbers, np.float32).copy()).to(device)
    if device.type == "cuda":
        torch.cuda.current_stream(device).synchronize()
    return t


_guard = threading.Lock()
_registered: set[int] = set()  # where the segments begin that are registered, or were refused
_refused = False


def _register(stream: Stream, a: object) -> None:
    """Registers the segment of shared memory that an array lies in, until it is unmapped."""
    global _refused
    while isinstance(a, np.ndarray):
        a = a.base
    if not isinstance(a, Lease):  # other memory may be gone after the next batch
        return
    memory, pid = a._memory, os.getpid()
    at = memory.ctypes.data
    with _guard:
        if at in _registered:
            return
        _registered.add(at)
        end: Callable[[], object] = lambda: None  # noqa: E731
        try:
            end = stream.register(memory)
        except OSError as e:
            if not _refused:
                _refused = True
                # Not e itself: a handler that keeps it keeps frames, whose batches hold segments.
                _log.warning("batches are copied from pageable memory, more slowly: %s", str(e))

    def over() -> None:  # before its memory is unmapped
        if os.getpid() == pid:
            end()
            _registered.discard(at)

    weakref.finalize(memory, over).atexit = False
