"""Files that appear under their names once they are complete."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterable


def absolute_path(path: str) -> str:
    """Is `os.path.abspath`, but keeps ".." after a name.

    The name may be a link, and then the kernel goes up from where the link leads.
    """
    names = path.split(os.sep)
    if os.pardir not in names:
        return os.path.abspath(path)
    # getcwd has no links, so ".." may be applied to its text. At the root it has no effect.
    kept = [""] if os.path.isabs(path) else os.getcwd().rstrip(os.sep).split(os.sep)
    own = len(kept)
    for name in names:
        if name == os.pardir and len(kept) <= own:
            del kept[max(len(kept) - 1, 1) :]
            own = len(kept)
        elif name and name != os.curdir:
            kept.append(name)
    return os.sep.join(kept) if len(kept) > 1 else os.sep


def replace_file(path: str | os.PathLike[str], parts: Iterable[bytes | memoryview]) -> None:
    """Writes a file beside its place and moves it there. A file that is there is replaced whole.

    Raises:
        OSError: the file cannot be written.
    """
    path = absolute_path(os.fspath(path))
    fd, part = tempfile.mkstemp(prefix=".chaski-", dir=os.path.dirname(path))
    try:
        with open(fd, "wb") as f:
            f.writelines(parts)
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(part, 0o666 & ~umask)
        os.replace(part, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(part)
        raise
