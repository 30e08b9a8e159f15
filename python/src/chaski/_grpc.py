"""Imports gRPC without its handlers around a fork. Other modules take `grpc` from here."""

from __future__ import annotations

import os

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
