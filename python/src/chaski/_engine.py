"""The local engine: `chaski serve`, one for all loaders of this process, or of its job here."""

from __future__ import annotations

import atexit
import contextlib
import functools
import io
import json
import logging
import os
import queue
import re
import socket
import subprocess
import sys
import threading
import traceback
import zipfile
from collections import deque
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any, cast

from chaski import _grpc, _host, _sign
from chaski._grpc import at_fork
from chaski._host import HELD_FOR, OtherSettingsError, abstract_name, abstract_works, enter
from chaski._rpc import Connection
from chaski.errors import EngineError

_log = logging.getLogger("chaski")

_START_SECONDS = 20.0
_TRIES = 4  # of engines that end just as this process comes
_HELD = "8760h"  # a year
_STOP_SECONDS = 5.0
_TAIL_LINES = 20
_NAME = "chaski.exe" if sys.platform == "win32" else "chaski"


def carried_binary() -> Path:
    """Returns where the wheel carries the engine."""
    return Path(__file__).parent / "_bin" / _NAME


def find_binary() -> str:
    """Returns the engine that CHASKI_BIN names, else that of the wheel, else `chaski` on PATH."""
    named = os.environ.get("CHASKI_BIN")
    if named:
        if not (os.path.isfile(named) and os.access(named, os.X_OK)):
            raise EngineError(f"CHASKI_BIN is {named}, which is not an executable file")
        # What pip makes holds this text; in the ZIP of Windows it is stored.
        if _is_script(named) and b"chaski._cli" in Path(named).read_bytes():
            raise EngineError(
                f"CHASKI_BIN is {named}, the command of this package, which starts what CHASKI_BIN "
                "names: unset it, or name the engine itself"
            )
        return named
    carried = carried_binary()
    if carried.is_file():
        return str(carried)
    for folder in os.environ.get("PATH", os.defpath).split(os.pathsep):
        path = os.path.join(folder, _NAME)
        if os.path.isfile(path) and os.access(path, os.X_OK) and not _is_script(path):
            return path
    raise EngineError(
        "no engine: CHASKI_BIN is not set, this installation carries no chaski binary, and PATH "
        "has none; install a wheel for this platform, or build one (make build) and set CHASKI_BIN"
    )


def written(flags: Mapping[str, Any]) -> Iterator[str]:
    """Yields flags of a command: max_bytes=4 is --max-bytes=4, and a list repeats its flag.

    None leaves a flag out.
    """
    for name, value in flags.items():
        for v in value if isinstance(value, list) else [value]:
            if v is not None:
                text = os.path.expanduser(v) if isinstance(v, (str, os.PathLike)) else v
                yield f"--{name.replace('_', '-')}={text}"


def _is_script(path: str) -> bool:
    """Reports whether path is a script: the `chaski` that pip makes would look for itself.

    On Windows that is a program with the script in a ZIP at its end.
    """
    with open(path, "rb") as f:
        return f.read(2) == b"#!" or zipfile.is_zipfile(f)


class LocalEngine:
    """A running `chaski serve` that only this user can reach: this process's, or its job's.

    On Linux it listens on a socket in the abstract namespace; elsewhere on a port of this host
    alone, with a token that it tells nobody else. Nothing is left behind when processes are killed:
    an engine of this process ends when its standard input closes, one that processes share when
    the last of their connections to its door does, whoever started it.
    """

    def __init__(
        self, binary: str, shared: _host.Settings | None = None, **limits: float | str | None
    ) -> None:
        """Starts the engine, with limits as of `Engine`, and waits until it listens.

        With settings by which processes share an engine, it is started only if none is there.
        None is an engine of this process.
        """
        self.binary = binary
        self.users = 0
        self.pid = 0  # of the engine
        self._pid = os.getpid()
        self._closed = False
        self._tail: deque[str] = deque(maxlen=_TAIL_LINES)
        self._process: subprocess.Popen[bytes] | None = None  # None: another process's child
        self._hold: socket.socket | None = None
        self._readers: list[threading.Thread] = []
        self._flags = {
            "listen": f"unix-abstract:{abstract_name()}" if abstract_works() else "127.0.0.1:0",
            "log_level": "warn",
            # It serves processes of this user alone, which may read what the user may.
            "root": ["/", "http://", "https://", "hf://", "s3://", "gs://", "az://", "abfs://"],
            "allow_redirects": True,
            "allow_upstream": True,
            **limits,
        }
        try:
            line = self._enter(shared) if shared else self._start(stop_on_eof=True)
            listen, token = self._listens(line)
            if self._hold is not None:
                self._readers.append(_listener(self._stream, self._tail))
            self.connection = Connection(listen, token=token, hint=self.last_words, own=True)
        except BaseException:
            self.close()
            raise

    def _enter(self, shared: _host.Settings) -> bytes:
        """Holds the engine with settings, started if need be; returns what it says first."""
        digest = _host.digest(shared)
        for number in range(_host.DOORS):
            if (door := _host.door(shared, number)) is None:
                return self._start(stop_on_eof=True)
            try:
                return self._hold_at(door, digest)
            except OtherSettingsError:
                continue
            except OSError as e:
                _log.warning("this process has an engine of its own: that of its job: %s", e)
                break
        return self._start(stop_on_eof=True)

    def _hold_at(self, door: str, digest: str) -> bytes:
        for _ in range(_TRIES):
            entered = enter(door, digest, _START_SECONDS)
            if entered is not None:
                self._hold, self._stream, line = entered
                return line
            self._end_unheld()  # it was ready, and nobody can enter it
            # A rank that may stay away for an hour must find its stream as it was.
            self._start(digest, held_at=door, idle_timeout=_HELD)
        raise EngineError(f"the engine {self.binary} ends as soon as it is ready{self._said()}")

    def _end_unheld(self) -> None:
        """Ends the engine that this process has started for others, and that none of them holds."""
        if self._process is not None and self._process.stdin is None:
            self._process.kill()
            self._reap(_STOP_SECONDS)

    def _start(self, held_for: str = "", **flags: Any) -> bytes:
        """Starts the engine; returns its first line, "" if another one was faster at its door."""
        own = not held_for
        try:
            # A session of its own: Ctrl-C in a terminal is for this process to handle.
            with _sign.given() as signers:
                if held_for:
                    signers["env"] = {**signers.get("env", os.environ), HELD_FOR: held_for}
                self._process = subprocess.Popen(
                    [self.binary, "serve", *written({**flags, **self._flags})],
                    stdin=subprocess.PIPE if own else subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    start_new_session=True,
                    creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),  # so on Windows
                    **signers,
                )
        except OSError as e:
            raise EngineError(f"the engine {self.binary} does not start: {e}") from None
        self.pid = self._process.pid
        assert self._process.stdout is not None and self._process.stderr is not None
        self._readers = [_listener(self._process.stderr, self._tail, self._process)]
        _children[self.pid] = self._process, self._tail, self._readers[0]
        said: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        stdout = self._process.stdout

        def read() -> None:
            # Closed here: close would wait for a read, which a child of the engine may hold up.
            with stdout:
                said.put(stdout.readline(1 << 16))

        # A thread reads: each system has another way to wait for a pipe no longer than some time.
        threading.Thread(target=read, name="chaski-ready", daemon=True).start()
        _grpc.load()  # while the engine starts
        try:
            line = said.get(timeout=_START_SECONDS)
        except queue.Empty:
            raise EngineError(f"the engine {self.binary} is not ready{self._said()}") from None
        if not line:
            self._reap(_STOP_SECONDS)
            status = self._process.poll()
            if own or status != 0:
                raise EngineError(
                    f"the engine {self.binary} ended at once (exit status {status}){self._said()}"
                )
        return line

    def _listens(self, line: bytes) -> tuple[str, str | None]:
        """Returns where the engine listens, and the token that it asks for, if any."""
        with contextlib.suppress(ValueError):
            match json.loads(line):
                case {"listen": str(listen)} as ready:
                    self.pid = ready.get("pid", self.pid)
                    if self._process is None or self._process.pid != self.pid:
                        self._process, self._tail, *self._readers = _children.get(
                            self.pid, (None, self._tail)
                        )
                    return listen, ready.get("token")
        raise EngineError(f"the engine {self.binary} said {line[:200]!r}, not where it listens")

    def _reap(self, seconds: float) -> None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            if self._process is not None:
                self._process.wait(seconds)
            for thread in self._readers:
                thread.join(seconds)

    def _said(self) -> str:
        text = "\n".join(self._tail)
        return f"; it said:\n{text}" if text else ""

    def last_words(self) -> str:
        """Returns how the engine ended and what it said last, or "" while it lives."""
        self._reap(0.5)
        if self._runs():
            return ""
        status = None if self._process is None else self._process.poll()
        who = f"process {self.pid}" if status is None else f"exit status {status}"
        return f"the engine {self.binary} ended ({who}){self._said()}"

    def _runs(self) -> bool:
        child = self._process
        if child is not None and child.pid == self.pid and child.poll() is not None:
            return False  # also before the connection to its door tells
        if self._hold is not None:
            return self._readers[-1].is_alive()  # of the connection to its door
        return child is not None

    @property
    def alive(self) -> bool:
        """Whether the engine is running, and this process holds it."""
        return not self._closed and os.getpid() == self._pid and self._runs()

    def ended(self) -> bool:
        """Reports whether the engine has ended, or is about to: its connection broke just now."""
        self._reap(_STOP_SECONDS)  # on a busy machine the end of a process takes its time
        return not self.alive

    def close(self) -> None:
        """Stops the engine. Does nothing in a forked child."""
        if self._closed or os.getpid() != self._pid:
            return
        self._closed = True
        if hasattr(self, "connection"):
            self.connection.close()
        if self._hold is not None:
            with contextlib.suppress(OSError):
                self._hold.shutdown(socket.SHUT_RDWR)
            self._hold.close()
            return  # others may hold it, too
        if self._process is None:
            return
        if self._process.stdin is None:
            self._end_unheld()
        else:
            with contextlib.suppress(OSError):
                self._process.stdin.close()
        try:
            self._process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
        self._reap(_STOP_SECONDS)

    def forget(self) -> None:
        """In a forked child: lets go of the engine, so that it sees the end of the parent."""
        self._closed = True
        if self._hold is not None:
            os.close(self._hold.detach())
        # The files, not their numbers: when an object goes, it would close what has its number
        # then. Below the buffer, whose lock another thread of the parent may have held.
        for pipe in (self._process.stdin, self._process.stderr) if self._process else ():
            if pipe is not None:
                with contextlib.suppress(OSError):
                    cast(io.BufferedWriter, pipe).raw.close()


_children: dict[int, tuple[subprocess.Popen[bytes], deque[str], threading.Thread]] = {}
"""Engines that this process started and that run, with what they said last, and who hears it."""


def _listener(
    stream: IO[bytes], tail: deque[str], process: subprocess.Popen[bytes] | None = None
) -> threading.Thread:
    """Starts a thread that hears what an engine says, and waits for the end of a process."""

    def hear() -> None:
        _hear(stream, tail)
        if process is not None:
            process.wait()
            _children.pop(process.pid, None)

    thread = threading.Thread(target=hear, name="chaski-hear", daemon=True)
    thread.start()
    return thread


# A line as Go's log/slog writes it.
_SAID = re.compile(r'level=(INFO|WARN|ERROR) msg=("(?:[^"\\]|\\.)*"|\S+) ?(.*)')


def _hear(stream: IO[bytes], tail: deque[str]) -> None:
    """Keeps the last lines of what an engine says, and passes what concerns the user on to the log.

    What fails is not among them: who asked for it has it as an error.
    """
    with stream:
        while line := stream.readline(4096):
            text = line.decode("utf-8", "replace").rstrip()
            tail.append(text)
            if said := _SAID.search(text):
                level, message, rest = said.groups()
                with contextlib.suppress(ValueError):  # Go and JSON quote some texts differently
                    message = json.loads(message)
                message = f"{message} ({rest})" if rest else message
                try:
                    _log.log(getattr(logging, level), "%s", message)
                except Exception:  # of a handler: unheard, the engine would end with its next line
                    traceback.print_exc()


# A finalizer may release an engine at any point of this thread, so the lock can be taken twice.
_guard = threading.RLock()
_running: dict[object, LocalEngine] = {}


def acquire(share: bool = True, **limits: float | str | None) -> LocalEngine:
    """Returns the engine with limits as of `LocalEngine`, started if need be.

    `release` gives it back.

    It has the environment of now, such as credentials that were set after the last one started,
    and so it has the functions that sign, which other processes do not have.
    """
    given = {name: limit for name, limit in limits.items() if limit is not None}
    binary, signers = find_binary(), _sign.key()
    settings = _host.settings(binary, given)
    share = share and not signers
    key = (settings, signers, share)
    with _guard:
        engine = _running.get(key)
        if engine is None or not engine.alive:
            if engine is not None:
                engine.close()
            engine = _running[key] = LocalEngine(binary, settings if share else None, **given)
        engine.users += 1
        return engine


def release(engine: LocalEngine) -> None:
    """Gives an engine back; its last user stops it."""
    with _guard:
        engine.users -= 1
        if engine.users > 0:
            return
        for key in [k for k, e in _running.items() if e is engine]:
            del _running[key]
        engine.close()


class Held:
    """An engine that is held, and that another one can take the place of."""

    def __init__(self, share: bool, **limits: float | str | None) -> None:
        self._acquire = functools.partial(acquire, share, **limits)
        self.engine = self._acquire()

    def replace(self) -> None:
        """Acquires another one."""
        old, self.engine = self.engine, self._acquire()
        release(old)

    def release(self) -> None:
        """Gives the engine back."""
        release(self.engine)


def _stop_all() -> None:
    with _guard:
        for engine in _running.values():
            engine.close()
        _running.clear()


def _after_fork() -> None:
    global _guard
    _guard = threading.RLock()
    for engine in _running.values():
        engine.forget()
    _running.clear()
    _children.clear()


atexit.register(_stop_all)
at_fork(after_in_child=_after_fork)
