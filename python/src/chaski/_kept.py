"""The windows that a run of `paste` keeps, for the next run to go on behind them."""

from __future__ import annotations

import contextlib
import itertools
import math
import os
import re
from collections.abc import Iterator

import numpy as np

from chaski._calls import entry
from chaski._files import absolute_path
from chaski._plain import as_folder
from chaski.errors import SpecError

PIECE = 1 << 20
"""Bytes of windows that are read at a time."""

NAME = re.compile(r"([0-9]+)-([0-9a-f]+)\.npy")
"""The name of a file of windows in a folder: the number of the first, the hash of the scenes."""


@entry
def pasted(resume: str | os.PathLike[str]) -> int:
    """Returns how many windows `paste` has kept in a folder, 0 if there is none.

    A loop goes on behind them, in whole batches:

        with chaski.load(scene, window=grid, shuffle=False, batch_size=16) as loader:
            done = chaski.pasted("map.part") // 16 * 16
            loader.load_state_dict({**loader.state_dict(), "samples": done})
            parts = ((b["sample"], model(b["image"])) for b in loader)
            chaski.paste(parts, scene, "map.tif", grid=grid, resume="map.part")

    Of a list of scenes, it counts the windows of those whose maps are there, too.
    """
    return Keeps(resume).n


class Keeps:
    """The folder that keeps the windows of a scene, or of several.

    In it is the file of the scene that is being pasted, called by the number of its first window
    and the hash of the scenes. The file of the next scene takes its place when its map is there,
    also if it is empty.
    """

    def __init__(self, path: str | os.PathLike[str], hashed: str = "") -> None:
        """Looks what is there.

        Args:
            path: the folder.
            hashed: the hash of scenes, for which the folder is made; one with another hash is
                refused. Default: any is taken.
        """
        self.given = os.fspath(as_folder("resume", path))
        self._path = absolute_path(self.given)
        if hashed:
            os.makedirs(self._path, exist_ok=True)
        self._hash = hashed
        names = os.listdir(self._path) if os.path.exists(self._path) else []
        found = [self._found(name) for name in names]
        self.first, self._hash = max(found, default=(0, hashed))
        """The first window of the scene that is being pasted: maps of those before are there."""
        self.n = self.first
        if found:
            with Kept(self._file(self.first)) as kept:
                self.n += kept.n

    def _found(self, name: str) -> tuple[int, str]:
        """Returns the number and the hash in the name of a file."""
        m = NAME.fullmatch(name)
        if not m:
            raise SpecError(
                f"resume is {self.given!r}, which holds {name!r}, and no windows: give a folder "
                "of its own"
            )
        if self._hash not in ("", m[2]):
            raise SpecError(
                f"resume is {self.given!r}, which holds windows of other scenes, or of these in "
                "another order, on another grid or for other maps: give what it began with, or "
                "remove it to begin anew"
            )
        return int(m[1]), m[2]

    def _file(self, first: int) -> str:
        return os.path.join(self._path, f"{first}-{self._hash}.npy")

    def of(self, first: int, want: tuple[int, int, int]) -> Kept:
        """Returns the windows of a scene, from a number of all scenes on."""
        return Kept(self._file(first), want)

    def over(self, first: int, end: int) -> None:
        """Notes that the map of a scene is there."""
        with open(self._file(end), "ab"):
            pass
        os.unlink(self._file(first))

    def remove(self) -> None:
        """Removes them: all maps are there."""
        for name in filter(NAME.fullmatch, os.listdir(self._path)):
            os.unlink(os.path.join(self._path, name))
        with contextlib.suppress(OSError):  # with files of others it stays
            os.rmdir(self._path)


class Kept:
    """A NumPy file for all windows of a scene. The first `n` windows are in it."""

    def __init__(
        self, path: str | os.PathLike[str], want: tuple[int, int, int] | None = None
    ) -> None:
        self.path = absolute_path(os.fspath(path))
        self._file = open(self.path, "rb" if want is None else "a+b")
        self.n, self._head, each = 0, b"", 1
        self._file.seek(0)
        if size := os.fstat(self._file.fileno()).st_size:
            try:
                np.lib.format.read_magic(self._file)  # type: ignore[no-untyped-call, unused-ignore]
                read_header = np.lib.format.read_array_header_1_0
                shape, _, dtype = read_header(self._file)  # type: ignore[no-untyped-call, unused-ignore]
                (n, *window), sides = shape, shape[2:]
            except ValueError:
                n, window, sides, dtype = 0, [], (), None
            if len(window) != 3 or dtype != "<f4" or want not in (None, (n, *sides)):
                raise SpecError(
                    f"resume is {os.fspath(path)!r}, which holds something other than windows of "
                    "this scene and grid: remove it to begin anew"
                )
            head, each = self._file.tell(), 4 * math.prod(window)
            self.n = (size - head) // each
            self._file.seek(0)
            self._head = self._file.read(head)
        if want is not None:  # a window that was cut does not count
            self._file.truncate(len(self._head) + self.n * each)

    def __enter__(self) -> Kept:
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()

    def and_new(self, pieces: Iterator[bytes]) -> Iterator[bytes]:
        """Yields the windows that are there, then others, which it keeps before."""
        self._file.seek(0)
        while piece := self._file.read(PIECE):
            yield piece
        head = next(pieces, self._head)
        if self._head and head != self._head:
            raise SpecError("predictions have other bands than those that resume holds")
        for piece in itertools.chain([head] * (not self._head), pieces):
            self._file.write(piece)
            self._file.flush()
            yield piece
