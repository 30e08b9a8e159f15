"""gRPC without its handlers around a fork, and our own. Other modules take `grpc` from here."""

from __future__ import annotations

import os
from collections.abc import Callable

# The handlers serve children that go on with their parent's channels, which no chaski child does: a
# loader refuses to work in one. All that they do is to write "fork_posix.cc: Other threads are
# currently calling into gRPC, skipping fork() handlers" at every fork. gRPC decides about them when
# it is imported first; a program that has set this, or has imported gRPC before, keeps what it has.
_FORK = "GRPC_ENABLE_FORK_SUPPORT"
if _FORK in os.environ:
    import grpc as grpc
else:
    os.environ[_FORK] = "0"
    try:
        import grpc as grpc
    finally:
        del os.environ[_FORK]


def at_fork(**hooks: Callable[[], None]) -> None:
    """Calls `os.register_at_fork` where there are forks."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(**hooks)
