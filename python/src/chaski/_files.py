"""Files that appear under their names once they are complete."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import pathlib
import secrets
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import IO

from chaski._secrets import without_secrets
from chaski.errors import UnsupportedError

UNSYNCED = (errno.EINVAL, errno.ENOTSUP, errno.ENOSYS)
"""Errors where a system or a network file system cannot sync a folder, pipe or device."""


def absolute_path(path: str) -> str:
    """Is `os.path.abspath` of a path that a user gives, "~" expanded; it keeps ".." after a name.

    The name may be a link, and then the kernel goes up from where the link leads. A URI is an
    UnsupportedError: a local folder "s3:" would look as if the store had been written.
    """
    if "://" in path:
        raise UnsupportedError(f"{without_secrets(path)} is a URI: a local path is needed here")
    p = pathlib.Path(os.path.expanduser(path))
    folder, names = pathlib.Path(p.anchor or os.getcwd()), p.relative_to(p.anchor).parts
    while names[:1] == ("..",):  # getcwd has no links, and specs hash the paths of lists
        folder, names = folder.parent, names[1:]
    return str(folder.joinpath(*names))


def sync(fd: int) -> None:
    """Waits until an open file, or the names in an open folder, are on the disk."""
    try:
        if sys.platform == "darwin":
            import fcntl

            fcntl.fcntl(fd, fcntl.F_FULLFSYNC)  # fsync leaves the content in the drive's cache
        else:
            os.fsync(fd)
    except OSError as e:
        if e.errno not in UNSYNCED:
            raise


def sync_names(folder: str) -> None:
    """Waits until the names in a folder are on the disk. Windows does not open folders."""
    if sys.platform != "win32":
        fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            sync(fd)
        finally:
            os.close(fd)


def check_folder(path: str | os.PathLike[str]) -> None:
    """Raises if `replace_file` could not make the file, for those who would only learn it late."""
    path = absolute_path(os.fspath(path))
    folder = os.path.dirname(path)
    code = errno.EISDIR if os.path.isdir(path) else 0
    if not os.path.isdir(folder):
        code = errno.ENOTDIR if os.path.exists(folder) else errno.ENOENT
    elif not os.access(folder, os.W_OK | os.X_OK):
        code = errno.EACCES
    if code:
        raise OSError(code, os.strerror(code), path)


def replace_file(path: str | os.PathLike[str], parts: Iterable[bytes | memoryview]) -> None:
    """Writes a file beside its place and moves it there. A file that is there is replaced whole.

    A crash of the machine leaves the old file or the new one: without the sync of the file, its
    name may come without its content; without the sync of the folder, the name may be gone.
    """
    path = absolute_path(os.fspath(path))
    folder, name = os.path.split(path)
    _place(folder, lambda f: f.writelines(parts), lambda: name, path)


def write_hashed(
    folder: str | os.PathLike[str], parts: Iterable[bytes | memoryview], ending: str
) -> tuple[str, str]:
    """Writes a file in a folder as SHA256.ending, as `replace_file` does. Returns path and hash."""
    digest = hashlib.sha256()

    def hashed() -> Iterator[bytes | memoryview]:
        for part in parts:
            digest.update(part)
            yield part

    return _place_hashed(folder, lambda f: f.writelines(hashed()), digest, ending)


def _place_hashed(
    folder: str | os.PathLike[str],
    fill: Callable[[IO[bytes]], None],
    digest: hashlib._Hash,
    ending: str,
    durable: bool = True,
) -> tuple[str, str]:
    """Makes the folder, and in it the file HASH.ending. fill writes it and updates the digest."""
    folder = absolute_path(os.fspath(folder))
    os.makedirs(folder, exist_ok=True)
    path = _place(folder, fill, lambda: f"{digest.hexdigest()}.{ending}", durable=durable)
    return path, digest.hexdigest()


WRITERS = 2
"""Threads that write the pieces of a file: more do not help where memory is what they wait for."""


def write_pieces(
    folder: str | os.PathLike[str],
    head: bytes,
    n: int,
    size: int,
    piece: Callable[[int], memoryview],
    ending: str,
) -> tuple[str, str]:
    """Writes a file of n pieces, by several threads, and names it HASH.ending.

    The hash is SHA-256 of the head and of the SHA-256 of each piece. All pieces but the last have
    size bytes. Returns the path and the hash. `sync_file` waits until both are on the disk.
    """
    digest = hashlib.sha256(head)

    def fill(f: IO[bytes]) -> None:
        f.write(head)
        f.flush()
        lock = threading.Lock()

        def one(i: int) -> bytes:
            data, place = piece(i), len(head) + i * size
            if hasattr(os, "pwrite"):
                done = 0
                while done < len(data):
                    done += os.pwrite(f.fileno(), data[done:], place + done)
            else:
                with lock:
                    f.seek(place)
                    f.write(data)
            return hashlib.sha256(data).digest()

        with ThreadPoolExecutor(WRITERS) as threads:
            for hashed in threads.map(one, range(n)):
                digest.update(hashed)

    return _place_hashed(folder, fill, digest, ending, durable=False)


def sync_file(path: str) -> None:
    """Waits until a file and its name are on the disk."""
    with open(path, "rb+") as f:
        sync(f.fileno())
    sync_names(os.path.dirname(path))


def _place(
    folder: str,
    fill: Callable[[IO[bytes]], object],
    name: Callable[[], str],
    shown: str = "",
    durable: bool = True,
) -> str:
    """Writes a file in a folder, and gives it the name that is known then. Returns its path.

    shown is what errors about the temporary name say in its place; default: the folder.
    """
    part = os.path.join(folder, f".chaski-{secrets.token_hex(8)}")
    try:
        f = open(part, "xb")
    except OSError as e:
        e.filename = shown or folder  # the user does not know the temporary name
        raise
    try:
        with f:
            fill(f)
            f.flush()
            if durable:
                sync(f.fileno())
        path = os.path.join(folder, name())
        os.replace(part, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(part)
        raise
    if durable:
        sync_names(folder)
    return path
