"""Ctrl-C in a command that takes long ends it with a line and the exit code of a signal."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from functools import partial

import pytest

SCRIPT = "import chaski, sys; chaski.stats(sys.argv[1])"


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
@pytest.mark.parametrize("words", [["-c", SCRIPT], ["-m", "chaski", "stats"]], ids=["call", "cli"])
def test_stats(words, binary):
    """A server that never answers holds it; a shell sees 130 of a process that SIGINT ended."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(300)
        uri = f"http://127.0.0.1:{server.getsockname()[1]}/a.tif"
        line = [sys.executable, *words, uri]
        # A shell's background jobs ignore SIGINT, and so would what such a run of the tests starts.
        default = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
        pipe = subprocess.PIPE
        with subprocess.Popen(line, stderr=pipe, text=True, preexec_fn=default) as process:
            try:
                connection, _ = server.accept()
                process.send_signal(signal.SIGINT)
                assert process.communicate(timeout=300)[1] == "chaski: interrupted\n"
            finally:
                process.kill()
            connection.close()
    assert process.returncode in (130, -signal.SIGINT)
