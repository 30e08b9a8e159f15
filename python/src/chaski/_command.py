"""Commands of the engine, run to their end: what they write, and their errors as ours."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import re
import subprocess
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import IO, Any

from chaski import _progress, _sign
from chaski._engine import find_binary, written
from chaski.errors import DeadlineError, EngineError, Error, SpecError

Line = Sequence["str | os.PathLike[str]"]

_USAGE = 2  # the exit code of a command after wrong arguments
_WARNING = "chaski: warning: "


def command(
    word: str,
    *args: str | os.PathLike[str],
    given: str = "",
    named: Mapping[str, str],
    **options: Any,
) -> None:
    """Runs a command of the engine, such as "pack", to its end, or raises what `check` does."""
    paths = [os.path.expanduser(os.fspath(a)) for a in args]
    check(run_line([word, *written(options), "--", *paths], given), named)


class Done(subprocess.CompletedProcess[str]):
    """A command that ended, and its error as JSON; {} without one that has a kind."""

    def __init__(self, args: Any, code: int, out: str, said: str, fault: dict[str, Any]) -> None:
        super().__init__(args, code, out, said)
        self.fault = fault


def run_line(line: Line, given: str = "") -> Done:
    """Runs the engine with a command line to its end; given is standard input."""
    out, fault = _run(line, [given.encode()], None)
    stdout = out.stdout.decode("utf-8", "replace")
    return Done(out.args, out.returncode, stdout, out.stderr, fault)


def ask(
    line: Line, data: Iterable[bytes | memoryview] = (), timeout: float | None = None
) -> tuple[bytes, list[str]]:
    """Runs a command, and returns what it writes and what it warns of.

    Args:
        line: the words of the command.
        data: standard input, in pieces. The calling thread makes them, as modes of PyTorch such as
            `no_grad` are of a thread.
        timeout: seconds after the last piece; None waits for as long as it takes.

    Raises:
        Error: of the kind that the command says.
        DeadlineError: it took longer than the timeout.
    """
    out, fault = _run(line, data, timeout)
    if out.returncode != 0:
        raise _error(fault) if fault else EngineError(message(out))
    said = [s.removeprefix(_WARNING) for s in out.stderr.splitlines() if s.startswith(_WARNING)]
    return out.stdout, said


def _run(
    line: Line, data: Iterable[bytes | memoryview], timeout: float | None
) -> tuple[subprocess.CompletedProcess[Any], dict[str, Any]]:
    """Runs a command line, and returns its output as bytes, its text and its error as JSON."""
    words, *rest = [os.fspath(word) for word in line]
    # All users of the machine see the words of a process, and a system takes only so many words.
    argv = [find_binary(), words, "@-"]
    for word in rest:
        if "\0" in word:
            raise SpecError(f"{word!r} has a zero byte, which no name and no value may have")
    listed = b"".join(os.fsencode(word) + b"\0" for word in rest)
    data = itertools.chain([b"%d\n" % len(listed), listed], _pieces(data))
    said: list[str] = []
    fault: dict[str, Any] = {}
    answer: list[bytes] = []
    with _sign.given() as options:
        options["env"] = {**options.get("env", os.environ), "CHASKI_PROGRESS": "1"}
        pipe = subprocess.PIPE
        process = subprocess.Popen(argv, stdin=pipe, stdout=pipe, stderr=pipe, **options)
    stdin, stdout, stderr = process.stdin, process.stdout, process.stderr
    assert stdin is not None and stdout is not None and stderr is not None
    threads = [
        threading.Thread(target=_read, args=(stdout, answer), daemon=True),
        threading.Thread(target=_follow, args=(words, stderr, said, fault), daemon=True),
    ]
    try:
        for thread in threads:
            thread.start()
        _feed(stdin, data)
        process.wait(timeout)
        for thread in threads:
            thread.join()
    except subprocess.TimeoutExpired:
        raise DeadlineError(f"{words}: no answer in time") from None
    finally:
        if process.poll() is None:  # after an interrupt, too
            process.kill()
            process.wait()
        with contextlib.suppress(OSError):
            stdin.close()
    code = process.returncode
    if fault and code == 0:  # where SIGCHLD is ignored, the system keeps no exit codes
        code = _USAGE if fault["kind"] == "spec" else 1
    return subprocess.CompletedProcess(argv, code, b"".join(answer), "".join(said)), fault


def _feed(stdin: IO[bytes], data: Iterable[bytes | memoryview]) -> None:
    """Writes standard input, as far as the command reads it: one that fails does not read the rest.

    It stays open: where it ends, because this process does, the command ends, too.
    """
    for piece in data:
        try:
            stdin.write(piece)
        except OSError:
            return
    with contextlib.suppress(OSError):
        stdin.flush()


def _pieces(data: Iterable[bytes | memoryview]) -> Iterator[bytes | memoryview]:
    """Yields the input of a command in pieces, and that they are all: one cut is not the whole."""
    for piece in data:
        if size := memoryview(piece).nbytes:
            yield b"%d\n" % size
            yield piece
    yield b"0\n"


def _read(stdout: IO[bytes], answer: list[bytes]) -> None:
    """Reads standard output."""
    with stdout:
        answer.append(stdout.read())


def _follow(words: str, stderr: IO[bytes], said: list[str], fault: dict[str, Any]) -> None:
    """Draws the lines of a command that say how far it is, and keeps the others."""
    bar = _progress.Bar(words)
    # Names of files in an error may be of any bytes.
    with stderr:
        lines = (line.decode("utf-8", "replace") for line in stderr)
        try:
            for line in lines:
                if line.startswith("\x1e{"):
                    fault.update(json.loads(line[1:]))
                elif m := re.fullmatch(r"\x1e(\d+) (-?\d+)\n", line):
                    bar.set(int(m[1]), int(m[2]))
                else:
                    said.append(line)
            bar.close()
        finally:  # when a bar fails: unread, the command would stop
            said += (line for line in lines if not line.startswith("\x1e"))


def _error(fault: dict[str, Any]) -> Error:
    """Returns the error that a command says."""
    from chaski._grpc import pb
    from chaski._rpc import fault_error, spec_error

    f = pb.Fault(**fault)
    if f.kind == "spec":
        return spec_error(_in_python(f.message), f.member if f.HasField("member") else None)
    return fault_error(f)


def message(out: subprocess.CompletedProcess[Any]) -> str:
    """Returns why a command failed."""
    said = str(out.stderr).partition("\nTry 'chaski")[0].strip()
    return said.removeprefix("chaski: ") or f"exit code {out.returncode}"


def check(out: Done, named: Mapping[str, str]) -> None:
    """Raises if a command failed. named are words for files that the user does not know.

    Raises:
        SpecError: an argument of the command is wrong.
        Error: of the kind that the command says, as NotFoundError.
        EngineError: it failed for another reason.
    """
    if out.returncode == 0:
        return
    said = message(out)
    for word, file in named.items():
        said = said.replace(file, word)
    if out.returncode == _USAGE:
        raise SpecError(_in_python(said))
    raise failed(said, out.fault)


def failed(said: str, fault: Mapping[str, Any]) -> Error:
    """Returns the error that a text is, of the kind that a command said."""
    return _error({**fault, "message": said}) if fault else EngineError(said)


def _in_python(said: str) -> str:
    """Returns a text with the names of flags as Python has them: --max-bytes is max_bytes."""
    return re.sub(r"(?<![^\s(])--([a-z][a-z-]*)", lambda m: m[1].replace("-", "_"), said)
