"""`stats`: the means, deviations and percentiles that normalisation needs."""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from chaski import _engine, _show
from chaski._options import takes
from chaski._sources import Columns, Path, Rows, absolute, absolute_paths, count, positive
from chaski._spec import Field, FieldLike, OnBad, SpecOptions, build_field, build_spec, policy
from chaski._tables import Files
from chaski.errors import (
    CorruptError,
    DeadlineError,
    EngineError,
    Error,
    NotFoundError,
    SpecError,
    of_kind,
)

_KINDS = ("corrupt", "unsupported", "limit", "not found", "unavailable")
_PLACE = re.compile(r"(?P<part>[^:]+?)(?: at (?P<offset>\d+))?: ")


class Stats(dict[str, Any]):
    """What `chaski stats` prints, as a dict; `stats=` of `load` takes it, or the file of `save`.

    Its members: "version"; "samples", those that were read; "skipped", those that could not be, if
    any; "fields", for every raster field its "dtype" and its "bands", each with "count", "mean",
    "std" (of the population), "min", "max", "percentiles" and "histogram" of the pixels that are
    neither nodata, NaN nor infinite.
    """

    def mean(self, field: str = "image") -> npt.NDArray[np.float64]:
        """Returns the mean of every band of a field: float64, (bands,); NaN without any pixel.

        Raises:
            NotFoundError: there is no such field, or it is none of rasters.
        """
        return self._of_bands(field, "mean")

    def std(self, field: str = "image") -> npt.NDArray[np.float64]:
        """Returns the standard deviation (of the population) likewise.

        Raises:
            NotFoundError: there is no such field, or it is none of rasters.
        """
        return self._of_bands(field, "std")

    def _of_bands(self, field: str, member: str) -> npt.NDArray[np.float64]:
        fields = self.get("fields", {})
        if field not in fields:
            raise NotFoundError(f"stats has {sorted(fields)}, no {field!r}", kind="not found")
        values = [b[member] for b in fields[field]["bands"]]
        return np.array([np.nan if v is None else v for v in values], np.float64)

    def __repr__(self) -> str:
        """Returns the mean and deviation of every band."""
        return _show.stats(self)

    def _repr_html_(self) -> str:
        """Returns what notebooks show: the bands with their histograms."""
        return _show.stats_html(self)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the JSON that `load` takes by its path. A file that is there is replaced whole.

        Raises:
            OSError: the file cannot be written.
        """
        path = os.path.abspath(path)
        fd, part = tempfile.mkstemp(prefix=".stats-", dir=os.path.dirname(path))
        try:
            with open(fd, "w") as f:
                json.dump(self, f)
                f.write("\n")
            umask = os.umask(0)
            os.umask(umask)
            os.chmod(part, 0o666 & ~umask)
            os.replace(part, path)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(part)
            raise


@dataclass(frozen=True, kw_only=True)
class StatsOptions:
    """The arguments of `stats`."""

    source: Path | Sequence[Path] | Columns = field(kw_only=False)
    fields: Mapping[str, FieldLike] | None = None
    rows: Rows = field(default_factory=Rows)
    on_bad: Literal["error", "skip"] | OnBad = "error"
    workers: int | None = None
    max_chunk: int | None = None
    timeout: float | None = 3600.0


@takes(StatsOptions)
def stats(o: StatsOptions) -> Stats:  # noqa: D417 (documented are the members of o)
    """Reads every raster of a dataset once, and counts what normalisation needs.

        stats = chaski.stats("chips/")
        loader = chaski.load("chips/", batch_size=64, normalize="mean_std", stats=stats)

    It is the command `chaski stats`, run as a child process. Whole rasters are counted, whatever
    windows a loader takes of them, in all of their bands; nodata is left out, and so is what a
    file's mask takes out. Give it the conditions and the split that training has: what is held
    back for validation is not counted then.

    Args:
        source: as for `load`, but no mixture: its sources have statistics one by one.
        fields: as for `load`, of which only column and pattern matter. Metadata columns are left
            out.
        rows: which rows are counted: a `Rows`, as for `load`.
        on_bad: "error" raises for a sample that cannot be read; "skip" leaves it out, and counts it
            in "skipped".
        workers: threads that decode; default: one a core.
        max_chunk: see `Engine`.
        timeout: seconds for all of it; None waits for as long as it takes.

    Raises:
        SpecError: an argument is wrong.
        EngineError: there is no engine, or it does not run.
        DeadlineError: it took longer than the timeout.
        Error: a raster cannot be read; of the kind that fits.
    """
    if o.timeout is not None:
        positive("timeout", o.timeout)
    if policy(o.on_bad).action not in ("error", "skip"):
        raise SpecError(f"on_bad is {o.on_bad!r}: it must be 'error' or 'skip'")
    if o.rows.take is not None or o.rows.steps_per_epoch is not None:
        raise SpecError("stats reads every row once: take and steps_per_epoch are for load")
    with contextlib.ExitStack() as stack:
        files = stack.enter_context(Files())
        paths = absolute_paths(files.place(o.source, o.fields or ["image"]))
        base_path = o.rows.base_path
        rows = replace(o.rows, base_path=None if base_path is None else absolute(base_path))
        spec = build_spec(
            paths,
            SpecOptions(batch_size=1, fields=_places(o.fields), rows=rows, on_bad=o.on_bad),
        )
        f = stack.enter_context(tempfile.NamedTemporaryFile("w", suffix=".json", prefix="chaski-"))
        json.dump(spec, f)
        f.flush()
        command = [_engine.find_binary(), "stats"]
        if o.workers is not None:
            command += ["--workers", str(count("workers", o.workers, 0))]
        if o.max_chunk is not None:
            command += ["--max-chunk", str(count("max_chunk", o.max_chunk))]
        command += ["--", f.name]
        try:
            return _parse(command[0], run_command(command, o.timeout, about=paths[0]))
        except CorruptError as e:
            spec_of = f"{f.name}: spec: "
            if not str(e).startswith(spec_of):
                raise
            raise SpecError(str(e).removeprefix(spec_of).removesuffix(": corrupt")) from None


def _places(fields: Mapping[str, FieldLike] | None) -> Mapping[str, FieldLike] | None:
    """Returns where fields are found, without what becomes of them; points are left out."""
    if not isinstance(fields, Mapping):  # None, or what build_spec refuses
        return fields
    named = {name: build_field(name, f) for name, f in fields.items()}
    return {
        name: Field(column=f.column, pattern=f.pattern)
        for name, f in named.items()
        if f.points is None
    }


def run_command(command: list[str], timeout: float | None, about: str | None = None) -> bytes:
    """Runs a command of the engine and returns what it printed.

    Args:
        command: and its arguments.
        timeout: in seconds; None waits for as long as it takes.
        about: the source that errors are about; by default the last argument.

    Raises:
        Error: it failed; of the kind that fits.
    """
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, timeout=timeout
        )
    except subprocess.TimeoutExpired:
        raise DeadlineError(
            f"{command[1]} of {about or command[-1]}: no end within {timeout} s"
        ) from None
    except OSError as e:
        raise EngineError(f"the engine {command[0]} does not run: {e}") from None
    return answer(command, done.returncode, done.stdout, done.stderr, about)


def answer(
    command: list[str], code: int, out: bytes, err: bytes, about: str | None = None
) -> bytes:
    """Returns what a command of the engine printed, if that is how it ended.

    Raises:
        Error: it failed; of the kind that fits.
    """
    if code == 0:
        return out
    said = err.decode("utf-8", "replace").strip()
    lines = [s.removeprefix("chaski: ") for s in said.splitlines() if s.startswith("chaski: ")]
    last = lines[-1] if lines else said
    if code == 1 and lines:
        raise _error(last, about or command[-1])
    if code == 2 and lines:
        raise SpecError(last)
    raise EngineError(f"the engine {command[0]} ended (exit status {code}); it said: {said}")


def _error(line: str, source: str) -> Error:
    """Returns the error of a line "FILE: PART at OFFSET: what is wrong: KIND"."""
    message, _, kind = line.rpartition(": ")
    if kind not in _KINDS:
        return Error(line, kind="internal")
    file, rest = "", message
    # Names of files may hold ": ", too; the source tells where such a one goes on.
    start = source if line.startswith(source) else ""
    end = line.find(": ", len(start))
    if end > 0:
        file, rest = line[:end], message[end + 2 :]
    place = _PLACE.match(rest)
    if place is None:
        return of_kind(line, kind=kind, file=file)
    offset = -1 if place["offset"] is None else int(place["offset"])
    return of_kind(line, kind=kind, file=file, part=place["part"], offset=offset)


def _parse(binary: str, text: bytes) -> Stats:
    try:
        out = json.loads(text)
    except ValueError as e:
        raise EngineError(f"the engine {binary} printed no JSON: {e}") from None
    if not isinstance(out, dict) or not isinstance(out.get("fields"), dict):
        raise EngineError(f"the engine {binary} printed no statistics")
    return Stats(out)
