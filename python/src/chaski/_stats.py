"""`stats`: the means, deviations and percentiles that normalisation needs."""

from __future__ import annotations

import contextlib
import json
import operator
import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from chaski import _show
from chaski._arguments import OnBad, Rows
from chaski._calls import entry
from chaski._command import ask
from chaski._fields import FieldLike
from chaski._files import replace_file
from chaski._plain import Columns, Path, Tables, count, instance, positive
from chaski._spec import SpecOptions, build_spec, takes
from chaski._tables import Files
from chaski.errors import NotFoundError, SpecError


class Stats(dict[str, Any]):
    """What `chaski stats` prints, as a dict; `stats=` of `load` takes it, or the file of `save`.

    Its members: "version"; "samples", those that were read; "skipped", those that could not be, if
    any; "fields", for every raster field its "dtype" and its "bands", each with "count", "mean",
    "std" (of the population), "min", "max", "percentiles" and "histogram" of the pixels that are
    neither nodata, NaN nor infinite. "classes" counts the pixels of each number, by its text, in
    rasters of one band of 8 or 16 bits with at most 256 different numbers.
    """

    def mean(self, field: str = "image") -> npt.NDArray[np.float64]:
        """Returns the mean of every band of a field: float64, (bands,); NaN without any pixel."""
        return self._of_bands(field, "mean")

    def std(self, field: str = "image") -> npt.NDArray[np.float64]:
        """Returns the standard deviation (of the population) likewise."""
        return self._of_bands(field, "std")

    def _of_bands(self, field: str, member: str) -> npt.NDArray[np.float64]:
        fields = self.get("fields", {})
        if field not in fields:
            raise NotFoundError(f"stats has {sorted(fields)}, no {field!r}")
        return np.array([b[member] for b in fields[field]["bands"]], np.float64)  # of None NaN

    def __repr__(self) -> str:
        return _show.stats(self)

    def _repr_html_(self) -> str:
        """Returns what notebooks show: the bands with their histograms."""
        return _show.stats_html(self)

    @entry
    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the JSON that `load` takes by its path. A file that is there is replaced whole."""
        replace_file(path, [json.dumps(self).encode(), b"\n"])


@entry
def weights(
    stats: Mapping[str, Any], field: str = "mask", classes: int | Sequence[int] | None = None
) -> npt.NDArray[np.float32]:
    """Returns a weight for each class of a field, with which all classes count alike in a loss.

        stats = chaski.stats("pairs/", fields={"mask": chaski.Field(pattern="masks/{id}.tif")})
        loss = torch.nn.CrossEntropyLoss(weight=torch.from_numpy(chaski.weights(stats)))

    The weight is pixels / (classes · pixels of the class), as scikit-learn's "balanced", over the
    classes that have pixels; a class without pixels has weight 0.

    Args:
        stats: what `stats` returned, or its JSON.
        field: the name of the field of labels, a raster of one band of 8 or 16 bits.
        classes: how many classes there are, 0 to `classes` - 1, as a `lut` of the field makes them
            of the stored numbers; or the stored number of each class in the order of the loss.
            Numbers that are not listed count for nothing. Default: 0 to the largest number.

    Returns:
        float32, (classes,).
    """
    if not isinstance(stats, Mapping):
        raise SpecError(f"stats is {stats!r:.100}: it must be what chaski.stats(source) returns")
    fields = stats.get("fields", {})
    if field not in fields:
        raise NotFoundError(f"stats has {sorted(fields)}, no {field!r}")
    bands = fields[field]["bands"]
    found = {int(k): n for k, n in bands[0].get("classes", {}).items()}
    if not found and not any(b["count"] for b in bands):
        raise SpecError(f"field {field!r} has no pixel that counts")
    if not found:
        what = "it is no raster of one band of 8 or 16 bits"
        if len(bands) > 1:
            what = (
                f"it has {len(bands)} bands: give stats bands=[0], which picks one, for the field"
            )
        raise SpecError(f"field {field!r} has no classes: {what}")
    lut = fields[field].get("lut")
    if lut is not None and not hasattr(classes, "__len__"):  # which has stored numbers
        found = {v: sum(n for k, n in found.items() if lut.get(str(k)) == v) for v in lut.values()}
    if classes is None:
        classes = max(found, default=-1) + 1
    try:
        numbers = list(range(operator.index(classes)))  # type: ignore[arg-type]
    except TypeError:
        try:
            numbers = [operator.index(k) for k in classes]  # type: ignore[union-attr]
        except TypeError:
            raise SpecError(f"classes is {classes!r}: an int or a list of ints") from None
    if len(set(numbers)) < len(numbers):
        raise SpecError(f"classes is {classes!r}: a class may be there once")
    pixels = np.array([found.get(k, 0) for k in numbers], np.float64)
    there = pixels > 0
    if not there.any():
        raise SpecError(f"field {field!r} has the classes {sorted(found)}, none of those asked for")
    out = np.zeros(len(pixels), np.float32)
    out[there] = pixels.sum() / (there.sum() * pixels[there])
    return out


@dataclass(frozen=True, kw_only=True)
class StatsOptions:
    """The arguments of `stats`."""

    source: Path | Sequence[Path] | Columns = field(kw_only=False)
    fields: Mapping[str, FieldLike] | None = None
    rows: Rows = field(default_factory=Rows)
    tables: Tables | None = None
    on_bad: Literal["error", "skip"] | OnBad = "error"
    workers: int | None = None
    max_chunk: int | None = None
    timeout: float | None = 3600.0


@takes(StatsOptions)
def stats(o: StatsOptions) -> Stats:  # noqa: D417 (documented are the members of o)
    """Reads every raster of a dataset once, and computes the statistics for normalisation.

        stats = chaski.stats("chips/")
        loader = chaski.load("chips/", batch_size=64, normalize="mean_std", stats=stats)

    The command `chaski stats` does it. Whole rasters are counted, not only the
    windows of a loader, but no nodata and no pixels that a file's mask excludes. Of a field that
    picks bands or steps of time, these are counted; else all are. Pass the conditions and the split
    of the training, so that rows held back for validation are not counted.

    Args:
        source: as for `load`, but no mixture: its sources have statistics one by one.
        fields: as for `load`. Pixels are counted as they are stored: dtype, lut, fill, normalize
            and the like have no effect.
            Files may name their bands in different orders only if `bands` says which count: names
            are looked up in each file; numbers, and "position" for all, are positions. Metadata
            columns are left out.
        rows: which rows are counted: a `Rows`, as for `load`.
        tables: as for `load`.
        on_bad: "error" raises for a sample that cannot be read; "skip" leaves it out, and counts it
            in "skipped".
        workers: threads that decode; default: one a core.
        max_chunk: see `Engine`.
        timeout: seconds for all of it; None waits for as long as it takes.

    Raises:
        DeadlineError: it took longer than the timeout.
    """
    if o.timeout is not None:
        positive("timeout", o.timeout)
    if o.on_bad not in (OnBad("error"), OnBad("skip"), "error", "skip"):
        raise SpecError(f"on_bad is {o.on_bad!r}: it must be 'error' or 'skip', without a limit")
    instance("rows", o.rows, Rows)
    if o.rows.take is not None or o.rows.steps_per_epoch is not None:
        raise SpecError("stats reads every row once: take and steps_per_epoch are for load")
    line = ["stats", "--format=json"]
    if o.workers is not None:
        line.append(f"--workers={count('workers', o.workers, 0)}")
    if o.max_chunk is not None:
        line.append(f"--max-chunk={count('max_chunk', o.max_chunk)}")
    with (
        contextlib.closing(Files(o.fields, local=True)) as files,
        tempfile.TemporaryDirectory() as folder,
    ):
        options = SpecOptions(
            batch_size=1, fields=o.fields, rows=o.rows, tables=o.tables, on_bad=o.on_bad
        )
        path = os.path.join(folder, "spec.json")
        with open(path, "w") as f:
            json.dump(build_spec(o.source, options, files), f)
        return Stats(json.loads(ask([*line, path], timeout=o.timeout)[0]))
