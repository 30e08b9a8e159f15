"""Commands that a Python process waits for end when it does, and leave nothing half."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from helpers import eventually

from chaski import _command

pytestmark = [
    pytest.mark.usefixtures("binary"),
    pytest.mark.skipif(sys.platform == "win32", reason="needs signals of POSIX"),
]
CALLS = {
    "index": "chaski.rumi.index_file({url!r})",
    "stats": "chaski.stats({url!r})",
    "paste": "chaski.paste(parts(), {scene!r}, {out!r}, grid=chaski.Grid(8))",
}
SCRIPT = """
import time
import numpy as np
import chaski, chaski.rumi

def parts():
    yield [0], np.ones((1, 1, 8, 8), "float32")
    time.sleep(600)

print("ready", flush=True)
{call}
"""


@pytest.fixture
def silent():
    """An HTTP server that takes requests, and answers none."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        held: list[socket.socket] = []

        def serve() -> None:
            while True:
                try:
                    held.append(server.accept()[0])
                except OSError:
                    return

        threading.Thread(target=serve, daemon=True).start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}/a.tif"
        server.shutdown(socket.SHUT_RDWR)
        for one in held:
            one.close()


def processes() -> dict[int, tuple[int, str, str]]:
    """Returns the parent, the state and the words of each process."""
    line = ["ps", "-A", "-ww", "-o", "pid=,ppid=,stat=,args="]
    out = subprocess.run(line, capture_output=True, text=True).stdout
    rows = (line.split(maxsplit=3) for line in out.splitlines())
    return {int(pid): (int(parent), stat, args) for pid, parent, stat, args in rows}


def runs(pid: int) -> bool:
    return processes().get(pid, (0, "Z"))[1][0] != "Z"


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
@pytest.mark.parametrize("call", list(CALLS))
def test_a_command_ends_with_its_parent(tmp_path: Path, silent: str, call: str, how: int) -> None:
    np.save(tmp_path / "scene.npy", np.ones((1, 16, 16), "uint8"))
    out = tmp_path / "out"
    out.mkdir()
    given = dict(url=silent, scene=str(tmp_path / "scene.npy"), out=str(out / "map.tif"))
    script = SCRIPT.format(call=CALLS[call].format(**given))
    parent = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE)
    try:
        assert parent.stdout is not None and parent.stdout.readline() == b"ready\n"

        def children() -> list[int]:
            found = processes().items()
            return [p for p, (above, _, args) in found if above == parent.pid and "@-" in args]

        assert eventually(children)
        (child,) = children()
        parent.send_signal(how)
        parent.wait()
        assert eventually(lambda: not runs(child))
        assert not list(out.iterdir())
    finally:
        parent.kill()
        parent.wait()
        parent.stdout.close()


def test_thousands_of_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A command takes more names than a system has room for in the words of a process."""
    monkeypatch.chdir(tmp_path)
    deep = tmp_path / "/".join(["x" * 200] * 4)
    deep.mkdir(parents=True)
    np.save(deep / "a.npy", np.ones((1, 4, 4), "uint8"))
    names = [f"{deep}/{'./' * (i % 7)}a.npy" for i in range(8000)]
    assert sum(map(len, names)) > 4 << 20  # twice what Linux takes
    got, _ = _command.ask(["index", "--format=hex", "--", *names])
    assert len(got.split()) == len(names) and len(set(got.split())) == 1


def test_names_of_any_bytes(tmp_path: Path) -> None:
    name = tmp_path / "caf\udce9.npy"
    try:
        np.save(name, np.ones((1, 4, 4), "uint8"))
    except (OSError, UnicodeEncodeError):
        pytest.skip("this file system has names of Unicode alone")
    assert _command.ask(["index", "--format=hex", "--", str(name)])[0]
