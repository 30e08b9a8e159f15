"""gRPC, without its handlers around a fork.

They serve children that go on with their parent's channels, which no chaski child does: a loader
refuses to work in one. All that they do is to write "fork_posix.cc: Other threads are currently
calling into gRPC, skipping fork() handlers" at every fork. gRPC decides about them once, when it is
imported first; a program that has set GRPC_ENABLE_FORK_SUPPORT, or has imported gRPC before, keeps
what it has.
"""

from __future__ import annotations

import os

_NAME = "GRPC_ENABLE_FORK_SUPPORT"

if _NAME in os.environ:
    import grpc
else:
    os.environ[_NAME] = "0"
    try:
        import grpc
    finally:
        del os.environ[_NAME]

__all__ = ["grpc"]
