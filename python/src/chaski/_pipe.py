"""The pipe of a stream: a plain connection to this host by which its replies come, beside gRPC's.

The message Attach of proto/chaski/v1/chaski.proto describes the protocol. gRPC hands a batch over
in new memory, by three copies, and a request over to two threads; from a pipe, the system writes a
batch where its arrays will be, and the thread that has a request sends it. Servers of other hosts
are spoken to by the engine of this one, which has pipes to them.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import socket
import struct
import threading
import weakref
from collections.abc import Callable

from chaski._assemble import Pool, Whole
from chaski._grpc import at_fork
from chaski._host import connected
from chaski.errors import PayloadError, UnavailableError

_MAGIC = b"chaski\0\1"
_HEAD, _LENGTH = struct.Struct("<3Q"), struct.Struct("<I")
_BATCH, _REPLY = 1, 2
_SECONDS = 5.0
_PIECE = 1 << 20
"""Bytes that one call waits for: one call for some samples, and at 100 Mbit/s ten a second."""


class Pipe:
    """A connection for the replies and requests of one stream.

    One thread reads it, another one may send, any may close it.
    """

    def __init__(self, target: str, token: bytes, heard: Callable[[], object]) -> None:
        """Connects to a server with what DescribeReply.pipe has; heard is called as it lives on.

        Raises:
            OSError: the server cannot be reached so.
            EOFError: it does not let the pipe in.
            UnavailableError: neither does it.
        """
        self.secret = secrets.token_bytes(16)
        self._heard = heard
        self._pid = os.getpid()
        self._flags = 0
        # Of the end: a number of a closed socket may be another's. The other is of a thread that
        # sends, which may wait.
        self._guard, self._sending = threading.Lock(), threading.Lock()
        self._socket = connected(target, _SECONDS)
        try:
            self._socket.sendall(_MAGIC + token + self.secret)
            if self._read(len(_MAGIC)) != _MAGIC:
                raise UnavailableError(f"{target}: no pipe")
            self._socket.settimeout(None)
            self._flags = socket.MSG_WAITALL  # which some systems do not have with a timeout
        except BaseException:
            self._socket.close()
            raise
        _open.add(self)

    def _fill(self, memory: memoryview) -> None:
        have = 0
        while have < len(memory):
            n = self._socket.recv_into(memory[have : have + _PIECE], 0, self._flags)
            if n == 0:
                raise EOFError
            have += n
            self._heard()

    def _read(self, size: int) -> bytes:
        memory = bytearray(size)
        self._fill(memoryview(memory))
        return bytes(memory)

    def reply(self, pool: Pool, limit: int, most: int) -> Whole | bytes | None:
        """Returns the next reply, or None when the pipe has ended: its call says why.

        A batch, of memory of the pool, has at most limit bytes, and any other reply `most`.
        """
        try:
            kind, ticket, length = _HEAD.unpack(self._read(_HEAD.size))
            if kind == _BATCH:
                memory = pool.within(length, limit)
                self._fill(memory.data)
                return Whole(ticket, memory)
            if kind == _REPLY and length <= most:
                return self._read(length)
        except (EOFError, OSError):
            return None
        raise PayloadError(f"a reply of kind {kind} and {length} bytes on a pipe")

    def send(self, *requests: bytes) -> None:
        """Sends requests. Whether they arrive, the replies tell."""
        framed = b"".join(_LENGTH.pack(len(r)) + r for r in requests)
        with self._sending, contextlib.suppress(OSError):
            self._socket.sendall(framed)

    def close(self) -> None:
        """Ends the connection. Threads that read from it or send see the end."""
        if os.getpid() == self._pid:
            with self._guard, contextlib.suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)

    def end(self) -> None:
        """Gives the socket back. For the thread that reads."""
        self.close()
        with self._guard, self._sending:
            self._socket.close()


_open: weakref.WeakSet[Pipe] = weakref.WeakSet()


def _in_child() -> None:
    for pipe in list(_open):
        pipe._socket.close()


at_fork(after_in_child=_in_child)
