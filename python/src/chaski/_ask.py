"""Questions about containers: to one `chaski ask`, which stays, a child of this process."""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import select
import subprocess
import tempfile
import threading
import time
from collections.abc import Sequence

from chaski._stats import answer
from chaski.errors import DeadlineError, EngineError

_WARNING = "chaski: warning: "
"""What a line of standard error begins with that is no error."""


class Asker:
    """One running `chaski ask`. It ends when its standard input closes: with this process."""

    def __init__(self, binary: str) -> None:
        """Starts it.

        Raises:
            EngineError: it does not start.
        """
        self.binary = binary
        self.pid = os.getpid()
        self.environ = dict(os.environ)
        self._said = tempfile.TemporaryFile()  # noqa: SIM115  (closed with the process)
        try:
            # A session of its own: Ctrl-C in a terminal is for this process to handle.
            self._process = subprocess.Popen(
                [binary, "ask"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._said,
                bufsize=0,  # nothing is left over that a fork of this process could write too
                start_new_session=True,
            )
        except OSError as e:
            self._said.close()
            raise EngineError(f"the engine {binary} does not run: {e}") from None
        assert self._process.stdin is not None
        os.set_blocking(self._process.stdin.fileno(), False)

    @property
    def alive(self) -> bool:
        """Whether it is there to be asked by this process."""
        return self.pid == os.getpid() and self._process.poll() is None

    @property
    def current(self) -> bool:
        """Whether it is `alive` and has the environment of this process, such as credentials."""
        return self.alive and dict(os.environ) == self.environ

    def ask(self, args: Sequence[str], timeout: float | None) -> tuple[bytes, list[str]]:
        """Asks one question. Whatever ends it early ends the process too.

        Returns:
            What the command printed, and what it warned of.

        Raises:
            Error: the command failed; of the kind that fits.
        """
        try:
            code, out, err = self._exchange(args, timeout)
        except BaseException:
            self.close()
            raise
        printed = answer([self.binary, *args], code, out, err)
        said = err.decode("utf-8", "replace").splitlines()
        return printed, [s.removeprefix(_WARNING) for s in said if s.startswith(_WARNING)]

    def _exchange(self, args: Sequence[str], timeout: float | None) -> tuple[int, bytes, bytes]:
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        deadline = None if timeout is None else time.monotonic() + timeout

        def wait(fd: int, event: int) -> None:
            left = None if deadline is None else max(0.0, deadline - time.monotonic()) * 1000
            poll = select.poll()  # select.select takes no descriptors from 1024 on
            poll.register(fd, event)
            if not poll.poll(left):
                raise DeadlineError(f"{args[0]} of {args[-1]}: no end within {timeout} s")

        question = memoryview(json.dumps(list(args)).encode() + b"\n")
        try:
            while question:
                wait(stdin.fileno(), select.POLLOUT)
                with contextlib.suppress(BlockingIOError):
                    question = question[os.write(stdin.fileno(), question) :]
        except BrokenPipeError:
            raise self._ended() from None
        fd, got, parts = stdout.fileno(), bytearray(), {"o": bytearray(), "e": bytearray()}
        while True:
            at = 0
            while len(got) - at >= 5:
                end = at + 5 + int.from_bytes(got[at + 1 : at + 5], "little")
                if len(got) < end:
                    break
                letter, part = chr(got[at]), got[at + 5 : end]
                at = end
                if letter == "x":
                    return int(part), bytes(parts["o"]), bytes(parts["e"])
                parts[letter] += part
            del got[:at]
            wait(fd, select.POLLIN)
            more = os.read(fd, 1 << 20)
            if not more:
                raise self._ended()
            got += more

    def _ended(self) -> EngineError:
        code = self._process.wait()
        self._said.seek(0)
        said = self._said.read(1 << 16).decode("utf-8", "replace").strip()
        return EngineError(f"the engine {self.binary} ended (exit status {code}); it said: {said}")

    def close(self) -> None:
        """Ends it."""
        if self.pid != os.getpid():
            return  # that of the process that this one was forked from
        self._process.kill()
        self._process.wait()
        self.forget()

    def forget(self) -> None:
        """Lets go of the pipes: where this process was forked, it ends with the one that asks."""
        for f in (self._process.stdin, self._process.stdout, self._said):
            if f is not None:
                try:
                    f.close()
                except OSError:
                    pass


_lock = threading.Lock()
_asker: Asker | None = None


def ask(binary: str, args: Sequence[str], timeout: float | None) -> tuple[bytes, list[str]]:
    """Runs a command of the engine that asks about containers.

    Containers stay open in a process that is kept for it. While that is busy with the question of
    another thread, a question has a process for itself.

    Returns:
        What the command printed, and what it warned of.

    Raises:
        Error: it failed; of the kind that fits.
    """
    global _asker
    if not _lock.acquire(blocking=False):
        one = Asker(binary)  # as arguments of a command long conditions would be refused
        try:
            return one.ask(args, timeout)
        finally:
            one.close()
    try:
        if _asker is None or _asker.binary != binary or not _asker.current:
            if _asker is not None:
                _asker.close()
            _asker = Asker(binary)
        return _asker.ask(args, timeout)
    finally:
        _lock.release()


def close() -> None:
    """Ends the process that is kept, if there is one; the next question starts another."""
    global _asker
    with _lock:
        if _asker is not None:
            _asker.close()
        _asker = None


def _forked() -> None:
    """Lets a forked process have one of its own: the lock may have been held."""
    global _lock, _asker
    if _asker is not None:
        _asker.forget()
        _asker._process.returncode = 0  # no child of this process, which need not wait for it
    _lock, _asker = threading.Lock(), None


def _exiting() -> None:
    """Ends the process that is kept, unless a thread that is still there asks it."""
    global _asker
    if _lock.acquire(blocking=False):
        if _asker is not None:
            _asker.close()
        _asker = None
        _lock.release()


os.register_at_fork(after_in_child=_forked)
atexit.register(_exiting)
