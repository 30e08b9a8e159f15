from __future__ import annotations

import os

# PyTorch's threads spin while they wait, unless they are told not to: beside other work, small
# networks take five times as much of a processor. OpenMP reads it when it is loaded.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

# Before gRPC, whose first import decides what it does around a fork (chaski._rpc). Its own handlers
# let a child read what is for its parent, and hang now and then.
import chaski  # noqa: F401  # isort: skip

import importlib.util
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TypeVar

import pytest
from forked import Forks
from helpers import FakeEngine, serve

from chaski import _engine

# Processes of other tests, and tests that run beside these, are not of the same job.
os.environ["CHASKI_JOB"] = f"test-{os.getpid()}"

ROOT = Path(__file__).resolve().parents[2]
T = TypeVar("T")


def nonempty(things: Iterable[T]) -> Iterator[T]:
    """Yields the things; fails if there are none, because a loop over nothing asserts nothing."""
    some = False
    for thing in things:
        some = True
        yield thing
    assert some, "there is nothing to loop over"


@pytest.fixture
def fake() -> Iterator[Callable[[FakeEngine], str]]:
    """Starts fake engines, and returns their targets."""
    servers = []

    def start(engine: FakeEngine) -> str:
        server, port = serve(engine)
        servers.append(server)
        return f"127.0.0.1:{port}"

    yield start
    for s in servers:
        s.stop(0)


@pytest.fixture(scope="session")
def forks() -> Iterator[Callable[..., Forks]]:
    """Returns a process that has imported libraries, for scripts that are run in forks of it."""
    made: dict[tuple[str, ...], Forks] = {}
    with tempfile.TemporaryDirectory() as folder:  # pytest's names are too long for a socket

        def of(*libraries: str) -> Forks:
            for name in libraries:
                if importlib.util.find_spec(name) is None:
                    pytest.skip(f"needs {name}")
            if libraries not in made:  # PyTorch is imported once for all that need it
                first, *more = libraries
                base = of(first) if first == "torch" and more else None
                made[libraries] = Forks(Path(folder) / str(len(made)), libraries, base)
            return made[libraries]

        yield of
        for f in made.values():
            f.close()


@pytest.fixture(scope="session")
def binary() -> str:
    """Sets the real engine as the one that chaski.load finds."""
    path = os.environ.get("CHASKI_BIN") or str(ROOT / "bin" / "chaski")
    if not os.access(path, os.X_OK):
        pytest.skip(f"no engine at {path}: run make build, or set CHASKI_BIN")
    os.environ["CHASKI_BIN"] = path
    return path


@pytest.fixture(scope="module")
def one_engine(binary: str) -> Iterator[None]:
    """Keeps an engine for the tests of a module, which otherwise start one for each load.

    An engine takes as much time to start as most tests. Loads with other limits, or of a test that
    sets variables, start their own. Modules whose tests look at engines do without.
    """
    held = _engine.Held(share=True)
    yield
    held.release()
