"""One-off reads: `read` and `info`."""

from __future__ import annotations

import contextlib
import operator
import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy.typing as npt

from chaski import _apart, _engine
from chaski._assemble import Pool
from chaski._calls import entry
from chaski._grpc import at_fork, pb
from chaski._plain import MAX_WORKERS, Path, absolute, count, indices, listed
from chaski._rpc import Connection, stands_still
from chaski.errors import SpecError, UnsupportedError

Slice: TypeAlias = "tuple[int, int] | slice"
Selection: TypeAlias = "tuple[int, int] | slice | Sequence[int]"
Server: TypeAlias = "str | Connection"

_guard = threading.Lock()
_kept: dict[bool, _engine.LocalEngine] = {}
_servers: dict[str, Connection] = {}
_parents: list[object] = []
"""Of a forked process: engines and connections of the process it was forked from."""


def _after_fork() -> None:
    """Lets a forked process make connections of its own: the lock may have been held."""
    global _guard
    _guard = threading.Lock()
    # Never freed: a channel that is freed waits for its threads, which a fork does not have.
    _parents.extend([*_kept.values(), *_servers.values()])
    _servers.clear()
    _kept.clear()


at_fork(after_in_child=_after_fork)


@contextlib.contextmanager
def connection(server: Server | None, max_chunk: int | None = None) -> Iterator[Connection]:
    """Yields a connection to a server, or to the shared engine, which stays after it.

    Each limit of a chunk has an engine of its own. Only the one without a limit, and the last one
    with one, stay: a program may give every file a limit of its own.
    """
    if server is not None:
        if not isinstance(server, (str, Connection)):
            raise SpecError(f"server is {server!r:.100}: it must be a str or a chaski.Connection")
        if max_chunk is not None:
            raise SpecError("max_chunk is for the engine of this process: the server has its own")
        if isinstance(server, str):
            with _guard:
                if server not in _servers:
                    _servers[server] = Connection(server)
                server = _servers[server]
        yield server
        return
    engine = _engine.acquire(max_chunk=max_chunk)  # another thread may let go of it meanwhile
    try:
        with _guard:
            limited = max_chunk is not None
            before = _kept.get(limited)
            if before is not engine:
                _kept[limited] = _engine.acquire(max_chunk=max_chunk)
                if before is not None:
                    _engine.release(before)
        yield engine.connection
    finally:
        _engine.release(engine)


def words(server: Server | None, path: Path) -> str:
    """Returns a path in the words of the engine that opens it: ours knows our directory."""
    return absolute(path) if server is None else os.fspath(path)


def call(server: Server | None, max_chunk: int | None, method: str, *args: Any) -> Any:
    """Calls a method of a connection. Where gRPC stands still, another process does it."""
    if stands_still():
        return _apart.call(call, _target(server), max_chunk, method, *args)
    with connection(server, max_chunk) as c:
        return getattr(c, method)(*args)


def _target(server: Server | None) -> str | None:
    """Returns a server by its target, which another process can connect to."""
    if server is None or isinstance(server, str):
        return server
    if server.token is not None or server.credentials is not None:
        raise UnsupportedError(
            "a forked process has no connections with TLS, or with a token of their own: set "
            "CHASKI_TOKEN or CHASKI_TOKEN_FILE for that"
        )
    return server.target


def selection(axis: str, s: Selection | None, *, picks: bool) -> str:
    """Returns a selection as the wire has it: "start:stop", "i,j,k", or "" for all."""
    if s is None:
        return ""
    if isinstance(s, (tuple, slice)):
        two = s if isinstance(s, tuple) else (s.start, s.stop)
        step = s.step if isinstance(s, slice) else None
        if len(two) != 2 or not all(hasattr(i, "__index__") for i in two) or step not in (None, 1):
            raise SpecError(f"{axis} is {s}: it must be (start, stop), two ints; pick with a list")
        return ":".join(str(operator.index(i)) for i in two)
    if not picks:
        raise SpecError(f"{axis} is {s!r}: this axis takes (start, stop)")
    return ",".join(map(str, indices(axis, s)))


def _headers(header: bytes | Sequence[bytes] | None, paths: Sequence[Path]) -> list[bytes]:
    """Returns one blob a path, or none."""
    if header is None:
        return []
    blobs: list[Any] = [header] if isinstance(header, bytes) else list(header)
    kinds = {type(b).__name__ for b in blobs} or {"bytes"}
    if len(blobs) != len(paths) or kinds != {"bytes"}:
        raise SpecError(
            f"read: {len(blobs)} headers for {len(paths)} paths, of {', '.join(sorted(kinds))}: "
            "header must be bytes, one for each path"
        )
    return blobs


class Checked(list[bytes]):
    """Headers that must be the files' own, which are read too."""


_MAX_CORNER = 0xFFFFFFFF  # a corner in a request has 32 bits


def sizes_and_corners(windows: Sequence[Sequence[int]], n: int) -> tuple[int, int, list[int]]:
    """Returns height and width of n windows of one size, and row and column of each."""
    try:
        all_ = [[count("windows", v, 0) for v in w] for w in windows]
    except TypeError:  # they cannot be iterated over
        raise SpecError(f"windows is {windows!r:.100}: it must be a list of windows") from None
    if not n or len(all_) != n or any(len(w) != 4 or w[2:] != all_[0][2:] for w in all_):
        raise SpecError(
            f"windows are {len(all_)}: they must be {n} of one size, each (row, column, height, "
            "width)"
        )
    corners = [v for w in all_ for v in w[:2]]
    if max(corners) > _MAX_CORNER:
        raise SpecError(f"windows: row and column must be at most {_MAX_CORNER}")
    return all_[0][2], all_[0][3], corners


@entry
def read(
    path: Path | Sequence[Path],
    *,
    layout: str | None = None,
    n: Selection | None = None,
    t: Selection | None = None,
    b: Selection | None = None,
    y: Slice | None = None,
    x: Slice | None = None,
    windows: Sequence[Sequence[int]] | None = None,
    overview: int | None = None,
    sizes: Mapping[str, int] | None = None,
    header: bytes | Sequence[bytes] | None = None,
    num_threads: int = 0,
    max_chunk: int | None = None,
    timeout: float = 120.0,
    server: Server | None = None,
) -> npt.NDArray[Any]:
    """Reads a window of one file, or of several of equal shape stacked along n.

    Args:
        path: a file, or several.
        layout: einops pattern. Default: "b y x", for files with an axis of time "t b y x", and for
            a sequence of several paths with "n" in front.
        n: files: (start, stop) for a slice, a list for picks in its order.
        t: steps of time, likewise.
        b: bands, likewise.
        y: rows of pixels: (start, stop).
        x: columns of pixels: (start, stop).
        windows: (row, column, height, width) in each file, in place of y and x. All are of one
            size; the files need not be.
        overview: read this overview in place of the raster: 0 is the largest, as in
            `info`. y, x and windows count its pixels. A raster without overviews has those of the
            file PATH.ovr.
        sizes: lengths of the layout's names that are no axes.
        header: header blob of the file (of a rumi file, or the chunk index of a TIFF, as `chaski
            index` and catalogs have it), or a sequence with one for each of several. The file's
            own header is not read then.
        num_threads: threads that decode; 0 leaves it to the engine.
        max_chunk: bytes of the largest chunk (tile, strip or frame) that is decoded whole; default:
            64 MiB. Larger tiles and strips of TIFFs are decoded in pieces of rows; larger chunks of
            other formats are a LimitError.
        timeout: seconds.
        server: see `info`.

    Returns:
        An array in the file's dtype; bfloat16 as its bits in uint16, types of at most 8 bits of the
        package ml_dtypes as theirs in uint8, complex integers as a structured dtype with "re" and
        "im". It may lie in shared memory: what a forked process writes into it, its parent sees.
    """
    paths = listed("path", path)
    corners: list[int] = []
    if windows is not None:
        if y is not None or x is not None:
            raise SpecError("windows are given, and y or x: windows are in place of these")
        height, width, corners = sizes_and_corners(windows, len(paths))
        y, x = (0, height), (0, width)
    if sizes is not None and not isinstance(sizes, Mapping):
        raise SpecError(f"sizes is {sizes!r:.100}: it must be a dict of lengths by name")
    request = pb.ReadRequest(
        paths=[words(server, p) for p in paths],
        layout=str(layout or ""),
        sizes={str(k): count(f"sizes: {k}", v) for k, v in (sizes or {}).items()},
        headers=_headers(header, paths),
        n=selection("n", n, picks=True),
        t=selection("t", t, picks=True),
        b=selection("b", b, picks=True),
        y=selection("y", y, picks=False),
        x=selection("x", x, picks=False),
        num_threads=count("num_threads", num_threads, 0, MAX_WORKERS),
        corners=corners,
        overview=None if overview is None else count("overview", overview, 0),
        check_headers=isinstance(header, Checked),
    )
    if max_chunk is not None:
        count("max_chunk", max_chunk)
    pool = Pool(reuse=False)
    out: npt.NDArray[Any] = call(server, max_chunk, "read", request, pool, 64 << 30, timeout)
    return out


@entry
def info(path: Path, *, timeout: float = 120.0, server: Server | None = None) -> dict[str, Any]:
    """Describes a file, container or array: the JSON of `chaski info --json`.

    Args:
        path: of it.
        timeout: seconds.
        server: a running engine (`chaski serve`) that has the file, as "host:port" or a
            `chaski.Connection`. Default: the engine that `load` starts.
    """
    said: dict[str, Any] = call(server, None, "info", words(server, path), timeout)
    return said
