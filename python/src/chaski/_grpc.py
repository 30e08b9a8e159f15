"""gRPC without its handlers around a fork, our own handlers, and the messages of our service.

Other modules take `grpc` and `pb` from here. Both are imported at their first use: that takes as
long as an engine takes to start, and both can happen at the same time.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import grpc

    from chaski._proto import chaski_pb2 as pb

__all__ = ["at_fork", "grpc", "load", "pb"]

# The handlers serve children that go on with their parent's channels, which no chaski child does: a
# loader refuses to work in one. All that they do is to write "fork_posix.cc: Other threads are
# currently calling into gRPC, skipping fork() handlers" at every fork. gRPC decides about them when
# it is imported first; a program that has set this, or has imported gRPC before, keeps what it has.
_FORK = "GRPC_ENABLE_FORK_SUPPORT"


def _import(name: str) -> Any:
    """Imports a module without gRPC's handlers around a fork."""
    if _FORK in os.environ or "grpc" in sys.modules:  # other threads may read the environment
        return importlib.import_module(name)
    os.environ[_FORK] = "0"
    try:
        return importlib.import_module(name)
    finally:
        os.environ.pop(_FORK, None)  # another thread may have removed it


class _Late(ModuleType):
    """A module that is imported when an attribute of it is first used."""

    def __getattr__(self, name: str) -> Any:
        value = getattr(_import(self.__name__), name)
        setattr(self, name, value)  # the next use does not come here
        return value


if not TYPE_CHECKING:
    grpc, pb = _Late("grpc"), _Late("chaski._proto.chaski_pb2")


def load() -> None:
    """Imports both."""
    for name in ("grpc", "chaski._proto.chaski_pb2"):
        _import(name)


def at_fork(**hooks: Callable[[], None]) -> None:
    """Calls `os.register_at_fork` where there are forks."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(**hooks)
