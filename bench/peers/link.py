"""A link to a store: tools/slowstore in front of a directory, with its delay and rate."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from shapes import Shape

ROOT = Path(__file__).resolve().parents[2]


class NoLink(Exception):
    """The server cannot be built or does not answer."""


@dataclass
class Link:
    """A server on this machine; once it has ended, what it has sent."""

    url: str = ""
    requests: int = 0
    bytes: int = 0


def build(work: Path) -> Path:
    """Builds the server, which needs Go; its compiler's cache makes the second time quick."""
    command = work / "slowstore"
    try:
        done = subprocess.run(
            ["go", "build", "-o", str(command), "./tools/slowstore"],
            cwd=ROOT,
            env=os.environ | {"CGO_ENABLED": "0"},
            capture_output=True,
            text=True,
        )
    except OSError as e:
        raise NoLink(f"go build ./tools/slowstore: {e.strerror}") from None
    if done.returncode:
        raise NoLink(f"go build ./tools/slowstore: {done.stderr.strip().splitlines()[-1]}")
    return command


@contextmanager
def serve(command: Path, folder: Path, shape: Shape, slow: bool = True) -> Iterator[Link]:
    """Serves a folder as the shape says or, if not slow, without delay."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    argv = [str(command), "-addr", address, "-dir", str(folder)]
    if slow:
        argv += ["-delay", f"{shape.delay}ms", "-rate", str(shape.rate * 1e6)]
        argv += ["-late-every", str(shape.late), "-late", "2s"]
    server = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)
    link = Link(f"http://{address}")
    try:
        wait(address)
        yield link
    finally:
        server.send_signal(signal.SIGINT)
        try:
            words = server.communicate(timeout=10)[0].split()  # N requests, M bytes
        except subprocess.TimeoutExpired:
            server.kill()
            words = server.communicate()[0].split()
        if len(words) == 4:
            link.requests, link.bytes = int(words[0]), int(words[2])


def wait(address: str) -> None:
    """Returns when the server takes connections."""
    host, _, port = address.partition(":")
    for _ in range(200):
        try:
            socket.create_connection((host, int(port)), 1).close()
            return
        except OSError:
            time.sleep(0.05)
    raise NoLink(f"{address} does not answer")
