"""The samples of containers that have bytes, and where these lie."""

from __future__ import annotations

import functools
import json
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from chaski._command import ask
from chaski._read import read
from chaski.errors import UnsupportedError


class Entries:
    """Where the samples of a level are, by column: the table "entries" of `chaski sql`."""

    def __init__(self, answer: bytes) -> None:
        said = json.loads(answer)
        columns: list[Any] = list(zip(*said["rows"], strict=True)) or [()] * len(said["columns"])
        by_name = dict(zip(said["columns"], columns, strict=True))
        self.row, self.parent, self.folder, self.offset, self.size = (
            np.array(by_name[name], np.int64)
            for name in ("row", "parent", "folder", "offset", "size")
        )
        self._ids, self._uris = by_name["id"], by_name["uri"]

    def __len__(self) -> int:
        return len(self.row)

    def id(self, i: int) -> str:
        return str(self._ids[i])

    def place(self, i: int) -> tuple[str, int, int | None]:
        """Returns the file of a sample, and its range there; of a folder, that of its samples."""
        uri, size = self._uris[i], int(self.size[i])
        return (uri, int(self.offset[i]), size) if size >= 0 else (uri, 0, None)

    @functools.cached_property
    def _by_parent(self) -> npt.NDArray[np.int64]:
        return np.argsort(self.parent, kind="stable")

    def below(self, row: int) -> npt.NDArray[np.int64]:
        """Returns which entries lie below a row of the level above."""
        lo, hi = np.searchsorted(self.parent, [row, row + 1], sorter=self._by_parent)
        return self._by_parent[lo:hi]


_VSI = {"http": "/vsicurl/http://", "https": "/vsicurl/https://"}
_VSI |= {"s3": "/vsis3/", "gs": "/vsigs/", "az": "/vsiaz/", "file": ""}


def vsi_name(uri: str, offset: int, size: int | None) -> str:
    """Returns what GDAL opens a file, or a range of it, by."""
    scheme, separator, rest = uri.partition("://")
    if separator and not uri.startswith("/vsi"):
        if scheme.lower() not in _VSI:
            raise UnsupportedError(f"GDAL has no name for {uri}")
        uri = _VSI[scheme.lower()] + rest
    return _range(uri, offset, size)


def _range(uri: str, offset: int, size: int | None) -> str:
    return uri if size is None else f"/vsisubfile/{offset}_{size},{uri}"


@dataclass(frozen=True)
class Asset:
    """A sample with bytes.

    Attributes:
        id: its id.
        path: the ids from level 0 down, joined by "/".
        uri: the file that holds it.
        offset: of its first byte in the file; 0 if it is the whole file.
        size: in bytes; None if it is the whole file.
    """

    id: str
    path: str
    uri: str
    offset: int
    size: int | None

    @property
    def name(self) -> str:
        """What `chaski.read` opens it by: the file, or /vsisubfile/OFFSET_SIZE,FILE as for GDAL."""
        return _range(self.uri, self.offset, self.size)

    @property
    def vsi(self) -> str:
        """What GDAL opens it by, also where it is remote; `rasterio.open` takes the asset itself.

        Raises:
            UnsupportedError: GDAL has no name for it, as for `hf://`.
        """
        return vsi_name(self.uri, self.offset, self.size)

    def __fspath__(self) -> str:
        return self.vsi

    def array(self, **window: Any) -> npt.NDArray[Any]:
        """Returns pixels, or a window of them: arguments as for `chaski.read`."""
        return read(self.name, **window)

    def bytes(self, *, timeout: float | None = 600.0) -> bytes:
        """Returns its bytes.

        Args:
            timeout: seconds that a remote file may take; None waits for as long as it takes.

        Raises:
            OSError: a local file cannot be read.
        """
        if "://" in self.uri or self.uri.startswith("/vsi"):
            return ask(["extract", "--", self.name], timeout=timeout)[0]
        with open(self.uri, "rb") as f:
            f.seek(self.offset)
            return f.read() if self.size is None else f.read(self.size)


@dataclass(frozen=True)
class Chunk:
    """A chunk of a sample of a streaming TACO.

    Attributes:
        id: id of its sample and its number, joined by "::".
        path: the same with the ids from level 0 down before it.
        uri: the file that holds it.
    """

    id: str
    path: str
    uri: str

    @property
    def name(self) -> str:
        """What `chaski.read` opens it by: FILE::PATH."""
        return f"{self.uri}::{self.path}"

    def array(self, **window: Any) -> npt.NDArray[Any]:
        """Returns its pixels, or a window of them: arguments as for `chaski.read`."""
        return read(self.name, **window)
