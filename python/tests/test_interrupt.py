"""Ctrl-C in a command that takes long ends it with a line and the exit code of a signal."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import traceback
from pathlib import Path

import numpy as np
import pytest

import chaski

STATS = "import chaski, sys; chaski.stats(sys.argv[1])"
PASTE = "import chaski, sys; chaski.paste([], sys.argv[1], 'o.tif', grid=chaski.Grid(8))"


def accepted(server: socket.socket, process: subprocess.Popen[str]) -> socket.socket:
    """Waits for the connection of a process, at most 5 minutes."""
    for _ in range(600):
        try:
            return server.accept()[0]
        except TimeoutError:
            if process.poll() is not None:
                break
    process.kill()
    pytest.fail(f"no connection came; the process said {process.communicate()[1]!r}")


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
@pytest.mark.parametrize(
    "words",
    [["-c", STATS], ["-c", PASTE], ["-m", "chaski", "stats"]],
    ids=["stats", "paste", "command"],
)
def test_a_line(words, binary):
    """A server that never answers holds it; a shell sees 130 of a process that SIGINT ended."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.5)
        uri = f"http://127.0.0.1:{server.getsockname()[1]}/a.tif"
        line = [sys.executable, *words, uri]
        # A shell's background jobs ignore SIGINT, and so would what such a run of the tests starts:
        # a signal with a handler is reset. With preexec_fn gRPC's threads may hang in the fork.
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            started = subprocess.Popen(line, stderr=subprocess.PIPE, text=True)
        finally:
            signal.signal(signal.SIGINT, before)
        with started as process:
            try:
                connection = accepted(server, process)
                process.send_signal(signal.SIGINT)
                assert process.communicate(timeout=300)[1] == "chaski: interrupted\n"
            finally:
                process.kill()
            connection.close()
    assert process.returncode in (130, -signal.SIGINT)


def frames_of_ours(e):
    """Returns the frames of the package in the traceback of an exception."""
    folder = str(Path(chaski.__file__).parent)
    return [f.name for f in traceback.extract_tb(e.__traceback__) if f.filename.startswith(folder)]


def test_what_a_user_computes_is_interrupted_without_frames_of_ours(tmp_path, binary):
    """In the loop over the parts that `paste` puts together, and in that over batches."""
    np.save(tmp_path / "a.npy", np.zeros((1, 8, 8), "u1"))

    def parts():
        with chaski.load([tmp_path / "a.npy"], batch_size=1) as loader:
            for batch in loader:
                yield batch["sample"], batch["image"]
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as e:
        chaski.paste(parts(), tmp_path / "a.npy", tmp_path / "o.tif", grid=chaski.Grid(8))
    assert len(frames_of_ours(e.value)) == 1
    assert not (tmp_path / "o.tif").exists()


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_errors_where_the_system_keeps_no_exit_codes(tmp_path, binary):
    """Some servers ignore SIGCHLD. Then a command that failed seems to end with 0."""
    np.save(tmp_path / "a.npy", np.zeros((1, 8, 8), np.uint8))
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        assert chaski.stats(tmp_path / "a.npy")["samples"] == 1
        with pytest.raises(chaski.NotFoundError, match="none.tif"):
            chaski.stats(tmp_path / "none.tif")
        with pytest.raises(chaski.NotFoundError, match="none.tif: file: not found"):
            chaski.pack(tmp_path / "none.tif", tmp_path / "o.tacozip")
        with pytest.raises(chaski.SpecError, match='form is "zz"'):
            chaski.pack(tmp_path / "a.npy", tmp_path / "o.tacozip", form="zz")
    finally:
        signal.signal(signal.SIGCHLD, before)
