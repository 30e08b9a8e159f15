"""Calls of forked processes, which another process makes for them.

gRPC stands still in a fork of a process that used it. Such a fork starts an interpreter that reads
its calls from a pipe.
"""

from __future__ import annotations

import atexit
import os
import pickle
import subprocess
import sys
import threading
from typing import Any

from chaski.errors import EngineError

_guard = threading.Lock()  # one call at a time goes through the pipe
_process: subprocess.Popen[bytes] | None = None


def _after_fork() -> None:
    """The process of a parent answers its parent alone."""
    global _guard, _process
    _guard = threading.Lock()
    if _process is not None and _process.stdin is not None and _process.stdout is not None:
        _process.stdin.close()
        _process.stdout.close()
        _process.returncode = 0  # not ours to wait for
    _process = None


os.register_at_fork(after_in_child=_after_fork)


@atexit.register
def _end() -> None:
    """Ends the process, which would end by itself a moment later."""
    if _process is not None and _process.stdin is not None and _process.stdout is not None:
        _process.stdin.close()
        _process.stdout.close()
        _process.wait()


def call(*args: Any) -> Any:
    """Calls `_read.call` in the other process, and returns or raises what it does."""
    global _process
    with _guard:
        if _process is None or _process.poll() is not None:
            _process = subprocess.Popen(
                [sys.executable, "-c", "from chaski import _apart; _apart.answer()"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            )
        asked, answers = _process.stdin, _process.stdout
        assert asked is not None and answers is not None
        try:
            pickle.dump(args, asked)
            asked.flush()
            result, error = pickle.load(answers)
        except (OSError, EOFError):
            raise EngineError(
                f"the process that calls for this fork ended with status {_process.wait()}"
            ) from None
    if error is not None:
        raise error
    return result


def answer() -> None:
    """Answers calls on standard input until it is closed."""
    from chaski import _read  # which imports this module

    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints is no answer
    while True:
        try:
            args = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        reply: tuple[Any, Exception | None]
        try:
            reply = _read.call(*args), None
        except Exception as e:
            reply = None, e
        pickle.dump(reply, answers)
        answers.flush()
