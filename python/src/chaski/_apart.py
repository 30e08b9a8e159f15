"""Calls of forked processes, which another process makes for them.

gRPC stands still in a fork of a process that used it. Such a fork starts an interpreter that reads
its calls from a pipe.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from multiprocessing.connection import Connection, Pipe
from typing import Any

from chaski._grpc import at_fork
from chaski.errors import EngineError

_REAP = 5.0
"""Seconds until a process that was killed has ended, even on a busy machine."""
_guard = threading.Lock()  # one call at a time goes through the pipe
_other: tuple[subprocess.Popen[bytes], Connection] | None = None


def _hang_up(of_parent: bool = False) -> None:
    """Closes the pipe. The process ends, but that of a parent, which answers its parent alone."""
    global _guard, _other
    if _other is not None:
        process, pipe = _other
        pipe.close()
        if of_parent:
            process.returncode = 0  # not ours to wait for
        process.wait()
    _guard, _other = threading.Lock(), None


atexit.register(_hang_up)
at_fork(after_in_child=functools.partial(_hang_up, True))


def call(function: Callable[..., Any], *args: Any) -> Any:
    """Calls a function of a module in the other process, and returns or raises what it does."""
    global _other
    with _guard:
        if _other is None or _other[0].poll() is not None:
            pipe, end = Pipe()
            with end:
                process = subprocess.Popen(
                    [sys.executable, "-c", "from chaski import _apart; _apart.answer()"],
                    stdin=end.fileno(),
                    env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
                )
            _other = process, pipe
        process, pipe = _other
        try:
            pipe.send((function, args))
            result, error = pipe.recv()
        except BaseException as e:
            _other = None  # the next call would take the answer to one that was interrupted
            process.kill()
            # Not without a limit: an exception within a method of `process` may have left the lock
            # that wait needs locked.
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(_REAP)
            if not isinstance(e, (OSError, EOFError)) or isinstance(e, TimeoutError):
                raise  # of a handler of signals
            raise EngineError(
                f"the process that calls for this fork ended with status {process.returncode}"
            ) from None
    if error is not None:
        raise error
    return result


def answer() -> None:
    """Answers calls on standard input until it is closed."""
    pipe = Connection(0)
    with contextlib.suppress(OSError, EOFError):
        while True:
            function, args = pipe.recv()
            try:
                pipe.send((function(*args), None))
            except Exception as e:
                pipe.send((None, e))
