"""Functions of this process that sign the URLs of a store, for the engines that it starts."""

from __future__ import annotations

import contextlib
import datetime
import json
import os
import socket
import sys
import threading
import urllib.parse
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from chaski._calls import entry
from chaski.errors import SpecError, UnsupportedError

Signed: TypeAlias = "str | Mapping[str, Any]"
Signer: TypeAlias = "Callable[[str], Signed]"

VARIABLE = "CHASKI_SIGN"
"""The environment variable of the commands that sign, and of the socket to this process."""

_signers: dict[str, Signer] = {}


@entry
def sign(prefix: str, function: Signer | None) -> None:
    """Lets a function sign the URLs below a prefix, for all that this process reads from now on.

    Signatures stay in memory: catalogs, logs, specs and errors have the URLs without them.

        chaski.sign("https://", planetary_computer.sign)
        token = earthaccess.get_edl_token
        chaski.sign("https://data.lpdaac.earthdatacloud.nasa.gov/", lambda url: {
            "headers": {"Authorization": f"Bearer {token()['access_token']}"},
        })

    Where the variable CHASKI_SIGN names a file of commands, these functions take its place.
    Servers, the workers of jobs, and forks that call `read` have only that file.

    Args:
        prefix: what the URLs begin with: "https://HOST/" and a path that ends with "/". "https://"
            stands for all hosts, and its function must return a URL. The longest prefix counts.
        function: takes a URL, and returns the signed one; or a dict with "url", "query" (what to
            add to the URL) or "headers", and when it ends: "expires" (a datetime with a time zone,
            or RFC 3339) or "expires_in" (seconds). A query or headers serve all URLs below the
            prefix. It is called again before the end, and when the store refuses the signature; one
            call at a time, in a thread of its own. None takes away the function of the prefix.
    """
    prefix = _checked(prefix)
    if function is None:
        _signers.pop(prefix, None)
    elif callable(function):
        _signers[prefix] = function
    else:
        raise SpecError(f"function is {type(function).__name__}, which cannot be called")


def _checked(prefix: str) -> str:
    """Returns a prefix with its host in lower case, so that a host has one spelling."""
    if prefix == "https://":
        return prefix
    try:
        url = urllib.parse.urlsplit(str(prefix))
        host, _ = url.hostname, url.port  # a wrong port is a ValueError
        plain = prefix.isprintable() and prefix.endswith("/") and set(prefix).isdisjoint(" ?#")
    except (AttributeError, ValueError):
        plain = False
    if not plain or not host or url.scheme not in ("https", "http"):
        raise SpecError(
            f'prefix is {prefix!r}: it must be "https://HOST/" and a path that ends with "/"'
        )
    if url.scheme == "http" and host not in ("localhost", "127.0.0.1", "::1"):
        raise SpecError(
            f"prefix is {prefix!r}: it must begin with https://: over http, "
            "others could read the signatures"
        )
    return f"{url.scheme}://{url.netloc.lower()}{url.path}"


def key() -> tuple[tuple[str, int], ...]:
    """Returns a key of the present functions. An engine keeps those with which it started.

    It has the ids of the functions, because a callable need not have a hash. The thread of an
    engine keeps its functions alive, so that no other object gets their ids.
    """
    return tuple((prefix, id(function)) for prefix, function in _signers.items())


@contextlib.contextmanager
def given() -> Iterator[dict[str, Any]]:
    """Yields the arguments by which a process of `subprocess` can ask the present functions."""
    signers = tuple(_signers.items())
    if not signers:
        yield {}
        return
    if sys.platform == "win32":
        raise UnsupportedError(
            "functions that sign need Linux or macOS: on Windows, give the engine rules in a file "
            f"({VARIABLE})"
        )
    here, there = socket.socketpair()
    with there:
        threading.Thread(
            target=_answer, args=(here, signers), name="chaski-sign", daemon=True
        ).start()
        number = there.fileno()
        yield {"env": {**os.environ, VARIABLE: f"fd:{number}"}, "pass_fds": (number,)}


def _answer(conn: socket.socket, signers: Sequence[tuple[str, Signer]]) -> None:
    """Answers the questions of a process until it ends: see package sign of the engine."""
    with conn, contextlib.suppress(OSError), conn.makefile("rwb") as f:
        f.write(json.dumps([prefix for prefix, _ in signers]).encode() + b"\n")
        f.flush()
        for line in f:
            question = json.loads(line)
            reply: dict[str, Any] = {"id": question["id"]}
            try:
                signed = signers[question["rule"]][1](question["uri"])
                reply["answer"] = {"url": signed} if isinstance(signed, str) else dict(signed)
                text = json.dumps(reply, default=datetime.datetime.isoformat)
            except Exception as e:  # its message may hold the signature
                text = json.dumps({"id": question["id"], "error": type(e).__name__})
            f.write(text.encode() + b"\n")
            f.flush()
