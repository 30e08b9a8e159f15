"""The door of an engine that processes of one job on this host share: where it is, and who may in.

The processes agree on its name without a word to each other: it is a hash of the user, the job and
the limits of the engine. Whoever finds nobody behind it starts the engine. The environment is not
in the name, which all users see, because it has passwords: who comes shows the engine a digest of
it under a number that the engine chose, and goes to the next door if the engine has another one.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import json
import os
import re
import secrets
import socket
import struct
import sys
import tempfile
from collections.abc import Mapping
from io import BufferedReader

from chaski.errors import UnavailableError

_JOB = (
    "CHASKI_JOB",
    *("TORCHELASTIC_RUN_ID", "SLURM_JOB_ID", "SLURM_STEP_ID", "LSB_JOBID", "PBS_JOBID"),
    *("PMIX_NAMESPACE", "MASTER_ADDR", "MASTER_PORT"),
)
"""Variables by which launchers name a job, the same in all of its ranks."""

_READ = re.compile(
    r"(AWS|AZURE|CHASKI|CLOUDSDK|GCE|GOOGLE|GS|HF|IDENTITY|MSI|SSL|STORAGE)_|GO[A-Z]+$|HOME$"
    r"|TMPDIR$|.*(_PROXY|TOKEN|SECRET|PASSWORD|KEY)$",
    re.IGNORECASE,
)
"""Variables that engines, and commands that sign for them, read. Others, such as RANK, may differ
between processes that share an engine."""

SUPPORTED = sys.platform == "linux" and not os.environ.get("CHASKI_PORTABLE")
"""Whether sockets can have abstract names, and pass on memory that two processes share.

CHASKI_PORTABLE=1 does without, as other systems do.
"""

_PATH_BYTES = 103
"""The longest path of a socket on macOS; Linux has 107."""

DOORS = 8
"""How many engines of a job, with environments of their own, are looked for."""

HELD_FOR = "CHASKI_HELD_FOR"
"""The variable by which an engine learns the digest of its settings; /proc hides it from others."""

Settings = tuple[str, tuple[tuple[str, float | str], ...], tuple[tuple[str, str], ...]]


def settings(binary: str, limits: Mapping[str, float | str]) -> Settings:
    """Returns all that makes one engine of this process unlike another."""
    environment = ((k, v) for k, v in os.environ.items() if _READ.match(k) and k != HELD_FOR)
    return binary, tuple(sorted(limits.items())), tuple(sorted(environment))


def digest(of: Settings) -> str:
    """Returns a digest of the settings. Who knows it can try passwords, so it is a secret."""
    return hashlib.sha256(json.dumps(of).encode()).hexdigest()


class OtherSettingsError(Exception):
    """An engine has other settings."""


def door(of: Settings, number: int = 0) -> str | None:
    """Returns where the processes of this job find an engine with such limits.

    Of engines whose environments differ each has a number. None where sockets have no place that
    only this user reaches.
    """
    if not hasattr(socket, "AF_UNIX"):
        return None
    job = [v for name in _JOB if (v := os.environ.get(name))] or [str(os.getpgrp())]
    root = os.stat("/")  # of other containers, which may have the network in common
    place: list[object] = [root.st_dev, root.st_ino, os.stat(of[0]).st_mtime_ns]
    with contextlib.suppress(OSError):
        place.append(os.readlink("/proc/self/ns/mnt"))
    if hasattr(os, "sched_getaffinity"):  # an engine has the cores of who starts it, and no others
        place.append(sorted(os.sched_getaffinity(0)))
    text = json.dumps([os.geteuid(), job, place, of[:2], number])
    name = "chaski-" + hashlib.sha256(text.encode()).hexdigest()[:32]
    if abstract_works():
        return f"unix-abstract:{name}"
    folder = os.environ.get("XDG_RUNTIME_DIR") or tempfile.gettempdir()
    owner, path = os.stat(folder), os.path.join(folder, name)
    private = owner.st_uid == os.geteuid() and not owner.st_mode & 0o077
    return f"unix:{path}" if private and len(os.fsencode(path)) <= _PATH_BYTES else None


def abstract_works() -> bool:
    """Reports whether sockets can have names that are no files."""
    if not SUPPORTED:
        return False
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as s:
        try:
            s.bind("\0" + abstract_name())
        except OSError:
            return False
    return True


def abstract_name() -> str:
    """Returns a name that nobody can guess."""
    return f"chaski-{os.getpid()}-{secrets.token_hex(16)}"


def check_user(s: socket.socket) -> None:
    """Raises UnavailableError if the program at the other end is not this user's."""
    if not hasattr(socket, "SO_PEERCRED"):
        return  # the folder of the socket is for this user alone
    size = struct.calcsize("3i")
    _, uid, _ = struct.unpack("3i", s.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size))
    if uid != os.geteuid():
        raise UnavailableError(f"a socket of another user ({uid})")


def enter(
    address: str, settings: str, seconds: float
) -> tuple[socket.socket, BufferedReader, bytes] | None:
    """Connects to the engine behind a door, which lives on for as long as this connection.

    settings is the digest of what the engine must have.

    Returns:
        The connection, what the engine says by it, and the line that tells where it listens. None
        if there is no engine.

    Raises:
        OtherSettingsError: the engine has others.
        OSError: it does not answer, or is another user's.
    """
    try:
        s = connected(address, seconds)
    except (ConnectionError, FileNotFoundError):
        return None
    try:
        check_user(s)
        stream = s.makefile("rb")
        if number := stream.readline(64).strip():
            shown = hmac.digest(settings.encode(), bytes.fromhex(number.decode()), "sha256")
            s.sendall(shown.hex().encode())
            line = stream.readline(1 << 16)
            if line == b"other\n":
                raise OtherSettingsError
            if line:
                s.settimeout(None)
                return s, stream, line
    except (ConnectionResetError, BrokenPipeError):
        pass
    except ValueError:
        s.close()
        raise OSError("it is no engine") from None
    except BaseException:
        s.close()
        raise
    s.close()
    return None


def connected(address: str, seconds: float) -> socket.socket:
    """Returns a connection to an address as gRPC names it: unix:, unix-abstract:, or host:port."""
    kind, _, name = address.partition(":")
    if kind not in ("unix", "unix-abstract"):
        host, _, port = address.removeprefix("dns:").lstrip("/").rpartition(":")
        return socket.create_connection((host.strip("[]"), int(port)), seconds)
    if not hasattr(socket, "AF_UNIX"):
        raise OSError(f"{address}: this system has no such sockets")
    s = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        s.settimeout(seconds)
        s.connect("\0" + name if kind == "unix-abstract" else name.removeprefix("//"))
    except BaseException:
        s.close()
        raise
    return s
