"""The list of bad samples that a loader appends to: lines of JSON, which `Rows(bad=FILE)` reads.

A line is about one thing that is wrong, and says how often it was met since the line before: the
first time and then every doubling is written, so the list grows with what is wrong, and not with
how often that is met. Lines are appended by one write each, so several processes may share a list.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from chaski._arguments import BadRow, SampleRef
from chaski._files import absolute_path, sync, sync_names
from chaski._plain import as_path
from chaski.errors import OF_FILES, Error, NotFoundError, SpecError

MAX_KNOWN = 10_000
"""Things that one loader tells apart."""
MAX_BYTES = 64 << 20
"""Size of a list that is appended to."""


def bad_ids(bad: str | os.PathLike[str] | Sequence[str], source: str) -> list[str]:
    """Returns the ids of bad samples, of a list in a file those of a source of a mixture.

    A line that is not whole, as a writer that was killed leaves one, is passed over.
    """
    if not isinstance(bad, (str, os.PathLike)):
        if not isinstance(bad, Iterable):
            raise SpecError(f"bad is {bad!r}: it must be a list of ids, or the path of a file")
        return list(bad)
    ids: dict[str, None] = {}
    lines = records = 0
    path = absolute_path(os.fspath(bad))
    if not os.path.exists(path):
        raise NotFoundError(f"bad is {bad!r}: there is no such file", file=path)
    with open(path, "rb") as file:
        for line in file:
            lines += 1
            try:
                record = json.loads(line)
                message, of = record["message"], record.get("source", "")
            except (ValueError, TypeError, KeyError, AttributeError):
                continue
            records += bool(message)
            if "id" in record and (not of or of == source):
                ids[record["id"]] = None
    if lines and not records:
        raise SpecError(f"bad is {os.fspath(bad)!r}, which is no list of bad samples")
    return list(ids)


def _members(s: SampleRef) -> dict[str, Any]:
    """Returns the known members of a record about a sample."""
    members = {"id": s.id, "row": s.row, "sample": s.index}
    return {k: v for k, v in members.items() if v not in ("", -1)}


@dataclass(slots=True)
class _Tally:
    record: dict[str, Any]
    met: int = 0
    written: int = 0


class Quarantine:
    """A list that is appended to. For one thread."""

    def __init__(self, path: str | os.PathLike[str], dataset: str) -> None:
        """Opens the list, or begins one; `dataset` is the fingerprint of what is read."""
        path = absolute_path(os.fspath(as_path("quarantine", path)))
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
        self._folder = os.path.dirname(path)
        self._pid = os.getpid()
        self._dataset = dataset
        self._known: dict[tuple[str, str, int], _Tally] = {}

    def rows(self, bad: tuple[BadRow, ...]) -> None:
        """Notes the bad rows of a batch."""
        for row in bad:
            self._met(row)

    def error(self, e: Error) -> None:
        """Notes the error that ended an epoch, if it is one of a sample."""
        if e.sample is not None and e.kind in OF_FILES:
            place = (e.kind, e.file, e.part, e.offset)
            self._met(BadRow(-1, -1, e._cause or str(e), e.source, e.sample, None, *place))

    def _met(self, bad: BadRow) -> None:
        # What names a file is one thing in every sample; what does not is one of its sample.
        key = (bad.message, "", -1)
        if not bad.file and bad.sample is not None:
            key = (bad.message, bad.source, bad.sample.index)
        t = self._known.get(key)
        if t is None:
            if len(self._known) >= MAX_KNOWN:
                return
            t = self._known[key] = _Tally(self._record(bad))
        t.met += 1
        if t.met & (t.met - 1) == 0:
            self._write(t)

    def _record(self, bad: BadRow) -> dict[str, Any]:
        place = {"source": bad.source, "uri": bad.file, "part": bad.part, "offset": bad.offset}
        return {
            "dataset": self._dataset,
            **({} if bad.sample is None else _members(bad.sample)),
            **{k: v for k, v in place.items() if v not in ("", -1)},
            **({} if bad.instead is None else {"instead": _members(bad.instead)}),
            "kind": bad.kind,
            "message": bad.message,
            "first_seen": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        }

    def _write(self, t: _Tally) -> None:
        """Writes what was met since the last time, unless the list is full.

        A list that cannot be written is no reason to stop training.
        """
        line = json.dumps({**t.record, "count": t.met - t.written}, ensure_ascii=False) + "\n"
        t.written = t.met
        try:
            if os.fstat(self._file).st_size <= MAX_BYTES:
                os.write(self._file, line.encode("utf-8", "replace"))
        except OSError:
            pass

    def close(self) -> None:
        """Writes the counts and closes the list. A forked child only closes it.

        The list is synced once, as it is read after a run has failed, maybe with its machine: a
        sync of each line would make training wait for the disk.
        """
        if self._file < 0:
            return
        try:
            if os.getpid() == self._pid:
                for t in self._known.values():
                    if t.met > t.written:
                        self._write(t)
                with contextlib.suppress(OSError):
                    sync(self._file)
                    sync_names(self._folder)
        finally:
            os.close(self._file)
            self._file = -1
