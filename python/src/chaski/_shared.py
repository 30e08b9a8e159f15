"""The lease socket to an engine on this host: batches in shared memory, leased and returned.

The message Shared of proto/chaski/v1/chaski.proto describes the protocol. Why it is safe:

- A lease ends when the last array over it is gone, whatever that is: see `Owner`.
- `Owner.__del__` may run at any point of any thread, so what it calls takes no lock: it sends one
  packet and does not wait. The engine lets a client have no more leases than such packets fit into
  the socket's buffer.
- A forked child sees the arrays of its parent. Leases that were out at a fork are not used again by
  the engine: their end is a DISCARD.
- When the engine is gone or has closed the connection, the memory stays as it is: no other process
  uses it.
"""

from __future__ import annotations

import contextlib
import functools
import mmap
import os
import socket
import struct
import threading
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from chaski._grpc import at_fork
from chaski._host import check_user
from chaski.errors import PayloadError, UnavailableError

_PACKET = struct.Struct("<4Q")
_HELLO, _WELCOME, _GIVE, _FORGET, _RECALL, _RETURN, _DISCARD = range(1, 8)
_VERSION = 1
_SECONDS = 5.0
_HUGE = 2 << 20

Bytes = npt.NDArray[np.uint8]


class Owner:
    """Owns memory on behalf of the arrays over it, and calls `end` after the last one.

    numpy keeps the object that it got memory from alive as long as any view exists, so this is safe
    for whatever a user does with a batch: views, slices, tensors that share memory.
    """

    def __init__(self, memory: Bytes, end: Callable[[], object]) -> None:
        self._memory = memory
        self._end = end
        self.__array_interface__ = memory.__array_interface__

    def __del__(self) -> None:
        self._end()


class Lease(Owner):
    """Owns the memory of one batch that an engine lends."""


class Side:
    """A connection to a lease socket. Arrays keep it open; otherwise `close` ends it."""

    def __init__(self, address: str, token: bytes) -> None:
        """Connects; an OSError says that this host has no such socket."""
        self.token = token
        self.secret = b""
        self._pid = os.getpid()
        self._over = False
        self._closing = False
        # A finalizer may need the lock's own thread at any point; see above.
        self._changed = threading.Condition(threading.RLock())
        self._segments: dict[int, Bytes] = {}
        self._held: dict[int, list[bool]] = {}
        self._streams: dict[int, list[int]] = {}
        self._last_stream = 0
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            self._greet(address)
        except BaseException:
            self._socket.close()
            raise
        _open.add(self)
        self._thread = threading.Thread(target=self._read, name="chaski-shared", daemon=True)
        self._thread.start()

    def _greet(self, address: str) -> None:
        s = self._socket
        s.settimeout(_SECONDS)
        s.connect("\0" + address)
        check_user(s)
        if len(self.token) != 16:
            raise UnavailableError(f"shared memory: a token of {len(self.token)} bytes, not 16")
        s.send(struct.pack("<Q", _HELLO) + self.token + struct.pack("<Q", _VERSION))
        answer = s.recv(_PACKET.size + 1)
        if len(answer) != _PACKET.size or _PACKET.unpack(answer)[::3] != (_WELCOME, _VERSION):
            raise UnavailableError("shared memory: the engine does not let this client in")
        self.secret = answer[8:24]
        s.settimeout(None)

    @property
    def over(self) -> bool:
        """Whether the other side is gone, or this is closed or another process's."""
        return self._over or self._closing or os.getpid() != self._pid

    # The thread that reads.

    def _read(self) -> None:
        try:
            while self._packet():
                pass
        except (OSError, PayloadError):
            pass  # whatever is wrong, the connection ends: the engine does not use its leases again
        finally:
            with self._changed:
                self._over = True
                self._changed.notify_all()
            self._socket.close()

    def _packet(self) -> bool:
        data, files, flags, _ = socket.recv_fds(
            self._socket, _PACKET.size + 1, 4, socket.MSG_CMSG_CLOEXEC
        )
        try:
            if not data and not files:
                return False
            if len(data) != _PACKET.size or flags & socket.MSG_CTRUNC:
                raise PayloadError(f"lease socket: a packet of {len(data)} bytes")
            kind, a, b, _ = _PACKET.unpack(data)
            if len(files) != (kind == _GIVE):
                raise PayloadError(f"lease socket: packet {kind} with {len(files)} files")
            self._take(kind, a, b, files)
        finally:
            for f in files:
                os.close(f)
        return True

    def _take(self, kind: int, a: int, b: int, files: list[int]) -> None:
        if kind == _GIVE:
            memory = _map(files[0], b)
            with self._changed:
                if a in self._segments:
                    raise PayloadError(f"lease socket: segment {a} is given twice")
                self._segments[a] = memory
                self._changed.notify_all()
        elif kind == _FORGET:
            with self._changed:
                self._segments.pop(a, None)
        elif kind == _RECALL:
            with self._changed:
                waiting = self._streams.get(b)
                if waiting is not None:  # its last replies may still bring the lease
                    waiting.append(a)
                    return
                self._answer(a)
        else:
            raise PayloadError(f"lease socket: packet {kind}")

    def _answer(self, lease: int) -> None:
        """Answers a recall: what is not held here is not held by anybody."""
        if lease not in self._held:
            self._send(_RETURN, lease)

    # What streams call.

    def begin(self) -> int:
        """Returns the number of a new stream."""
        with self._changed:
            self._last_stream += 1
            self._streams[self._last_stream] = []
            return self._last_stream

    def end(self, stream: int) -> None:
        """Says that the stream's replies have all been seen."""
        with self._changed:
            for lease in self._streams.pop(stream, ()):
                self._answer(lease)

    def claim(self, lease: int, segment: int) -> Bytes:
        """Returns the memory of a lease; the lease ends with the last array over it."""
        with self._changed:
            if segment not in self._segments:
                self._changed.wait_for(lambda: segment in self._segments or self._over, _SECONDS)
            memory = self._segments.get(segment)
            if memory is None:
                raise UnavailableError(f"shared memory: segment {segment} has not come")
            if lease in self._held:
                raise PayloadError(f"shared memory: lease {lease} comes twice")
            forked = self._held[lease] = [False]
            return np.asarray(Lease(memory, functools.partial(self._ended, lease, forked)))

    # What finalizers call, without a lock.

    def _ended(self, lease: int, forked: list[bool]) -> None:
        self._held.pop(lease, None)
        if os.getpid() != self._pid or self._over:
            return
        self._send(_DISCARD if forked[0] else _RETURN, lease)
        if self._closing and not self._held:
            self._shut()

    def _send(self, kind: int, lease: int) -> None:
        try:
            self._socket.send(
                _PACKET.pack(kind, lease, 0, 0), socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL
            )
        except OSError:  # it does not read, or is gone
            self._shut()

    def _shut(self) -> None:
        self._over = True  # at once: the thread that reads may see the end after the next stream
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Ends the connection when the last array over shared memory is gone. For any thread."""
        if os.getpid() != self._pid:
            return
        with self._changed:
            self._closing = True
            self._segments.clear()
            held = bool(self._held)
        if not held:
            self._shut()
            if threading.current_thread() is not self._thread:
                self._thread.join(_SECONDS)


def _map(file: int, size: int) -> Bytes:
    """Maps a segment, writable, as all memory of batches is."""
    import fcntl

    real = os.fstat(file).st_size
    if real != size or size < 1:
        raise PayloadError(f"lease socket: a segment of {real} bytes is said to have {size}")
    if not fcntl.fcntl(file, fcntl.F_GET_SEALS) & fcntl.F_SEAL_SHRINK:
        raise PayloadError("lease socket: a segment that is not sealed")
    m = mmap.mmap(file, size)
    if size >= _HUGE:
        with contextlib.suppress(OSError):
            m.madvise(mmap.MADV_HUGEPAGE)
    memory: npt.NDArray[Any] = np.frombuffer(m, np.uint8)
    return memory


_open: weakref.WeakSet[Side] = weakref.WeakSet()


def _before_fork() -> None:
    for side in list(_open):
        for forked in list(side._held.values()):
            forked[0] = True


def _in_child() -> None:
    for side in list(_open):
        side._over = True
        side._segments = {}
        side._socket.close()


at_fork(before=_before_fork, after_in_child=_in_child)
