"""Files that appear under their names once they are complete."""

from __future__ import annotations

import contextlib
import errno
import os
import pathlib
import shutil
import sys
import tempfile
from collections.abc import Iterable

if sys.platform != "win32":
    import fcntl

UNSYNCED = (errno.EINVAL, errno.ENOTSUP, errno.ENOSYS)
"""Errors where a system or a network file system cannot sync a folder, pipe or device."""


def absolute_path(path: str) -> str:
    """Is `os.path.abspath`, but keeps ".." after a name.

    The name may be a link, and then the kernel goes up from where the link leads.
    """
    p = pathlib.Path(path)
    folder, names = pathlib.Path(p.anchor or os.getcwd()), p.relative_to(p.anchor).parts
    while names[:1] == ("..",):  # getcwd has no links, and specs hash the paths of lists
        folder, names = folder.parent, names[1:]
    return str(folder.joinpath(*names))


def sync(fd: int) -> None:
    """Waits until an open file, or the names in an open folder, are on the disk."""
    try:
        if sys.platform == "darwin":
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


def replace_file(path: str | os.PathLike[str], parts: Iterable[bytes | memoryview]) -> None:
    """Writes a file beside its place and moves it there. A file that is there is replaced whole.

    A crash of the machine leaves the old file or the new one: without the sync of the file, its
    name may come without its content; without the sync of the folder, the name may be gone.
    """
    path = absolute_path(os.fspath(path))
    folder = os.path.dirname(path)
    try:
        fd, part = tempfile.mkstemp(prefix=".chaski-", dir=folder)
    except OSError as e:
        e.filename = path  # the user does not know the temporary name
        raise
    try:
        with open(fd, "wb") as f:
            f.writelines(parts)
            f.flush()
            sync(fd)
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(part, 0o666 & ~umask)
        os.replace(part, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(part)
        raise
    sync_names(folder)


class Folder:
    """A temporary folder of mode 0700. Its lock says that it is used."""

    def __init__(self) -> None:
        _sweep(tempfile.gettempdir())
        while True:
            self.path = tempfile.mkdtemp(prefix="chaski-")
            lock = os.path.join(self.path, "lock")
            self._lock = os.open(lock, os.O_CREAT | os.O_RDWR, 0o600)
            if sys.platform != "win32":  # where a file that is open cannot be removed
                fcntl.flock(self._lock, fcntl.LOCK_SH)
            if os.path.exists(lock):  # no sweep was faster
                return
            os.close(self._lock)

    def close(self) -> None:
        """Removes the folder."""
        if self._lock >= 0:
            os.close(self._lock)
            shutil.rmtree(self.path, ignore_errors=True)
            self._lock = -1


def _sweep(base: str) -> None:
    """Removes the folders of this user's processes that were killed before they could do it."""
    with contextlib.suppress(OSError), os.scandir(base) as entries:
        for e in entries:
            if e.name.startswith("chaski-") and e.is_dir(follow_symlinks=False):
                with contextlib.suppress(OSError):
                    _sweep_one(e)


def _sweep_one(folder: os.DirEntry[str]) -> None:
    lock = os.path.join(folder.path, "lock")
    if sys.platform == "win32":
        os.remove(lock)
        shutil.rmtree(folder.path, ignore_errors=True)
    elif folder.stat(follow_symlinks=False).st_uid == os.getuid():
        file = os.open(lock, os.O_RDWR | os.O_NOFOLLOW)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder.path, ignore_errors=True)
        finally:
            os.close(file)
