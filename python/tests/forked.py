"""Runs scripts in forks of a process that has imported libraries already.

    forked.py FD MODULE...       the process, which tests start by `Forks`
    forked.py SOCKET MODULE...   the same, as a fork of one that has imported other modules

PyTorch takes 3 s of a core to import, with what its optimizers need 5, and Lightning 3 more. Tests
of separate processes start many of them, whose Python is otherwise fresh: chaski and gRPC are
imported in the fork.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
SRC = str(HERE.parent / "src")


class Forks:
    """A process that has imported modules. `close` it after use."""

    def __init__(self, path: Path, modules: Iterable[str], base: Forks | None = None) -> None:
        """Starts it with a socket at a path, which must be short. base is the process to fork."""
        self._path = str(path)
        self._run: Run | None = None
        if base is not None:
            log = path.with_suffix(".log")
            self._run = base.run([__file__, path, *modules], log, path.parent)
            while not path.exists():
                with contextlib.suppress(TimeoutError):
                    raise RuntimeError(f"exit {self._run.wait(0.05)}: {log.read_text()}")
            return
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(self._path)
        listener.listen()
        with listener:  # requests wait in it until the modules are imported
            self._process = subprocess.Popen(
                [sys.executable, __file__, str(listener.fileno()), *modules],
                env={**os.environ, "PYTHONPATH": os.pathsep.join([SRC, *sys.path])},
                pass_fds=[listener.fileno()],
            )

    def run(self, command: Sequence[object], log: Path, cwd: Path, **env: str) -> Run:
        """Runs a script with arguments, and more variables. Its output goes to log.

        It has the standard input of this process.
        """
        what = {
            "command": list(map(str, command)),
            "log": str(log),
            "cwd": str(cwd),
            "env": {**os.environ, **env, "PYTHONPATH": os.pathsep.join([SRC, *sys.path])},
        }
        return Run(ask(self._path, what))

    def ranks(
        self, commands: Sequence[Sequence[object]], logs: Sequence[Path], cwd: Path, **env: str
    ) -> list[Run]:
        """Runs a script for each rank of a process group on this machine."""
        with socket.create_server(("127.0.0.1", 0)) as s:
            port = s.getsockname()[1]
        group = {
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(port),
            "GLOO_SOCKET_IFNAME": "lo" if sys.platform == "linux" else "lo0",
            "ACCELERATE_USE_CPU": "true",
            "CUDA_VISIBLE_DEVICES": "",
            "NODE_RANK": "0",
            "WORLD_SIZE": str(len(commands)),
        }
        return [
            self.run(command, log, cwd, **{**group, **env}, RANK=str(rank), LOCAL_RANK=str(rank))
            for rank, (command, log) in enumerate(zip(commands, logs, strict=True))
        ]

    def interpreter(self, path: Path) -> Path:
        """Writes a command that runs a script as Python does. Errors go to its output, too."""
        path.write_text(
            f"#!{sys.executable}\nimport sys\nsys.path.insert(0, {str(HERE)!r})\n"
            f"import forked\nforked.run_as_python({self._path!r}, sys.argv[1:])\n"
        )
        path.chmod(0o755)
        return path

    def close(self) -> None:
        """Ends the process. Runs go on."""
        if self._run is not None:
            self._run.kill()
            return
        self._process.kill()
        self._process.wait()


class Run:
    """A script that runs, or has run. `kill` it after use."""

    def __init__(self, s: socket.socket) -> None:
        """Is made by `Forks.run`."""
        self._socket = s
        self._code: int | None = None

    def wait(self, timeout: float | None) -> int:
        """Returns the exit code, negative for a signal.

        Raises:
            TimeoutError: it still runs.
        """
        if self._code is None:
            self._socket.settimeout(timeout)
            self._code = int(self._socket.recv(16))
        return self._code

    def kill(self) -> None:
        """Kills it if it runs, and waits for its end."""
        if self._code is None:
            self._socket.shutdown(socket.SHUT_WR)
            self.wait(300)
        self._socket.close()


def ask(path: str, what: dict[str, Any]) -> socket.socket:
    """Requests a run, and returns the socket that belongs to it."""
    s = socket.socket(socket.AF_UNIX)
    s.connect(path)
    socket.send_fds(s, [b"\n"], [0])  # the standard input
    s.sendall(json.dumps(what).encode() + b"\n")
    return s


def run_as_python(path: str, args: list[str]) -> None:
    """Runs the script of a command line of Python, and exits as it does."""
    while args[0].startswith("-"):  # -W and its value: the fork prints warnings
        args = args[2:]
    with tempfile.NamedTemporaryFile() as log:
        what = {"command": args, "log": log.name, "cwd": os.getcwd(), "env": dict(os.environ)}
        code = Run(ask(path, what)).wait(None)
        sys.stdout.buffer.write(Path(log.name).read_bytes())
    sys.exit(code)


def listen(path: str) -> socket.socket:
    """Listens at a path, which is there once connections are accepted."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(f"{path}.new")
    listener.listen()
    os.rename(f"{path}.new", path)
    return listener


def serve(listener: socket.socket) -> None:
    """Forks a supervisor for each request. Returns in the process that is to run the script."""
    signal.signal(signal.SIGCHLD, lambda *_: reap())
    while True:
        s, _ = listener.accept()
        if os.fork() == 0:
            break
        s.close()
    listener.close()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    _, (stdin,), _, _ = socket.recv_fds(s, 1, 1)
    with s.makefile() as request:
        what = json.loads(request.readline())
    if pid := os.fork():
        supervise(pid, s)
    s.close()
    os.chdir(what["cwd"])
    log = os.open(what["log"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
    os.dup2(stdin, 0)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.close(log)
    os.close(stdin)
    os.environ.update(what["env"])
    sys.argv = what["command"]


def reap() -> None:
    """Waits for supervisors that have ended, so that their processor time is counted."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def supervise(pid: int, s: socket.socket) -> None:
    """Kills a process if the test says so or ends, tells how it ended, and ends too."""
    ended = 0
    while not ended:  # it looks often enough, and a pid that it has not waited for is its child's
        asked, _, _ = select.select([s], [], [], 0.02)
        if asked:
            os.kill(pid, signal.SIGKILL)
        ended, status = os.waitpid(pid, 0 if asked else os.WNOHANG)
    with contextlib.suppress(OSError):
        s.sendall(str(os.waitstatus_to_exitcode(status)).encode())
    os._exit(0)


def run_script(path: str) -> int:
    """Runs a script as Python does, to the end of its threads and of what it does at exit."""
    code = 0
    try:
        runpy.run_path(path, run_name="__main__")
    except SystemExit as e:
        if e.code is not None and not isinstance(e.code, int):
            print(e.code, file=sys.stderr)
        code = e.code if isinstance(e.code, int) else int(e.code is not None)
    except BaseException:
        sys.excepthook(*sys.exc_info())  # type: ignore[arg-type]
        code = 1
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    return code


if __name__ == "__main__":
    where, *modules = sys.argv[1:]
    for name in modules:
        importlib.import_module(name)
    if "torch" in modules:  # the first optimizer imports it
        importlib.import_module("torch._dynamo")
    assert "grpc" not in sys.modules, "gRPC does not survive forks"
    # A fork that looks for garbage in PyTorch, and takes its modules apart at the end, spends 0.7 s
    # of a core on it.
    gc.collect()
    gc.freeze()
    serve(socket.socket(fileno=int(where)) if where.isdigit() else listen(where))
    sys.path[0] = os.path.dirname(sys.argv[0])
    os._exit(run_script(sys.argv[0]))
