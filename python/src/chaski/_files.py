"""Files that appear under their names once they are complete."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterable


def replace_file(path: str | os.PathLike[str], parts: Iterable[bytes | memoryview]) -> None:
    """Writes a file beside its place and moves it there. A file that is there is replaced whole.

    Raises:
        OSError: the file cannot be written.
    """
    path = os.path.abspath(path)
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
