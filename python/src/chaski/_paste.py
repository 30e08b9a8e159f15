"""Predictions for windows of a scene or on the ground, put together to a raster."""

from __future__ import annotations

import csv
import dataclasses
import io
import itertools
import math
import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import IO, Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from chaski._calls import entry
from chaski._command import ask
from chaski._files import absolute_path, check_folder
from chaski._members import Classes, by_number
from chaski._plain import absolute, as_array, count, positive
from chaski._progress import Bar
from chaski._read import info
from chaski._show import palette as colours_of
from chaski._windows import Grid
from chaski.errors import SpecError

Part: TypeAlias = "tuple[npt.ArrayLike | Mapping[str, Any], npt.ArrayLike]"
Placed: TypeAlias = Iterator[tuple[npt.NDArray[Any], npt.NDArray[Any]]]


@dataclasses.dataclass(frozen=True, kw_only=True)
class GroundGrid:
    """A grid of pixels on one map, which `paste` puts windows of a `GeoWindow` on.

    Args:
        epsg: the map, such as a zone of UTM that windows lie in.
        bounds: west, south, east and north in units of the map: whole multiples of `resolution`, as
            the corners of windows are.
        resolution: the side of a pixel: that of the windows.
    """

    epsg: int
    bounds: tuple[float, float, float, float]
    resolution: float

    def __post_init__(self) -> None:
        count("epsg", self.epsg)
        size = positive("resolution", self.resolution)
        try:
            west, south, east, north = pixels = [float(b) / size for b in self.bounds]
            whole = all(abs(n) < 2**31 and abs(n - round(n)) <= ALIKE for n in pixels)
        except (TypeError, ValueError):
            whole = False
        if not whole or not (west < east and south < north):
            raise SpecError(
                f"bounds is {self.bounds!r}: it must be west, south, east and north, each a whole "
                f"multiple of {self.resolution}, the resolution"
            )

    @property
    def shape(self) -> tuple[int, int]:
        """The height and width in pixels."""
        west, south, east, north = (round(b / self.resolution) for b in self.bounds)
        return north - south, east - west


GroundGrid.__init__ = entry(GroundGrid.__init__)  # type: ignore[method-assign]

MOST_CLASSES = 254
"""The greatest number of a class: 255 is nodata."""

PIECE = 1 << 20
"""Bytes of windows that are written at a time."""

ALIKE = 1e-3
"""The part of a pixel by which corners may be off the grid: coordinates are rounded."""


@entry
def paste(
    predictions: npt.NDArray[Any] | Iterable[Part],
    scene: str | os.PathLike[str] | None,
    out: str | os.PathLike[str],
    *,
    grid: Grid | GroundGrid,
    blend: Literal["linear", "mean"] = "linear",
    argmax: bool = False,
    classes: Classes | None = None,
    palette: Classes | None = None,
    overviews: bool = False,
    max_bytes: int = 8 << 30,
    resume: str | os.PathLike[str] | None = None,
    timeout: float | None = 3600.0,
) -> None:
    """Writes predictions for the windows of a scene as one raster, a TOG that lies where it does.

        grid = chaski.Grid(256, overlap=64)
        with chaski.load(scene, window=grid, shuffle=False, batch_size=16) as loader:
            parts = ((b["sample"], model(b["image"])) for b in loader)
            chaski.paste(parts, scene, "probability.tif", grid=grid)

    Windows on the ground (`GeoWindow`) go on a grid of their own, one for each map:

        box = (747000, 4597000, 750000, 4600000)
        grid = chaski.GroundGrid(epsg=32630, bounds=box, resolution=10)
        # of a loader with pixels=chaski.Pixels(geo=True)
        parts = ((b["geo"], model(b["image"])) for b in loader)
        chaski.paste(parts, None, "probability.tif", grid=grid)

    The command `chaski paste` assembles the raster while predictions come, and writes it when all
    are there. It holds the rows that the next windows may reach; compressed tiles, windows that
    come before their turn, and all windows on the ground lie in temporary files. With windows
    of 512 by 512, three classes and a scene of 100,000 by 100,000 that is 2.3 GB of memory.

    Args:
        predictions: an array (windows, bands, height, width), in the order of the samples; or pairs
            of a batch's "sample" and an array of as many rows, in any order. Rows of sample -1 are
            padding and left out. With a `GroundGrid`: pairs of a batch's "geo" and an array; rows
            without a place, on other maps and beside the grid are left out. Tensors of torch may be
            on a device, and have a gradient. All are taken as float32.
        scene: the raster that the windows were cut from; None with a `GroundGrid`. Its nodata is
            that of the result: NaN, or 255 with `argmax`. So is a prediction of NaN.
        out: the file to write; one that exists is replaced.
        grid: the sampler that cut the windows; or a `GroundGrid`, whose pixels without a window are
            nodata: NaN, or 255 with `argmax`.
        blend: windows that overlap are weighted by the distance to their edges ("linear"), or
            alike ("mean").
        argmax: write the number of the greatest band as uint8, after blending.
        classes: names of the classes by number, as a list or a dict: with `argmax`, an attribute
            table of the file. `load` reads it, and GDAL from 3.12 on.
        palette: colours of the classes by number ("#rrggbb"): with `argmax`, the colour table of
            the file. Default: those that `plot` gives to such names, or none.
        overviews: write smaller versions for maps too: of four pixels the mean, or the class that
            most of them have.
        max_bytes: the memory that the command may take.
        resume: a file that keeps the windows of a scene until the raster is written, in their
            order, as a NumPy file that grows. What is in it when a run begins, `pasted` windows,
            is not needed again.
        timeout: seconds that the engine may take after the last window; None waits for as long as
            it takes.

    Raises:
        SpecError: a window is missing, or comes twice. With a `GroundGrid`: one does not lie on its
            pixels, or none lies on it.
    """
    # What is wrong is said before the predictions, which may take hours.
    if blend not in ("linear", "mean"):
        raise SpecError(f"blend is {blend!r}: it must be linear or mean")
    if timeout is not None:
        positive("timeout", timeout)
    check_folder(out)
    out = absolute_path(os.fspath(out))
    line = ["paste", f"--blend={blend}", f"--output={out}", f"--max-bytes={max_bytes}"]
    line += ["--argmax"] * bool(argmax) + ["--overviews"] * bool(overviews)
    line += _legend(argmax, classes, palette)
    if isinstance(grid, GroundGrid):
        if resume is not None:
            raise SpecError("resume is for the windows of a scene, and grid is a GroundGrid")
        if scene is not None:
            raise SpecError(f"scene is {scene!r}: it must be None with a GroundGrid")
        placed = _corners(predictions, grid)
    elif isinstance(grid, Grid) and grid.max_nodata is not None:
        raise SpecError(
            f"grid has max_nodata={grid.max_nodata!r}: it leaves windows out, so that their "
            "numbers are not those of the grid"
        )
    elif isinstance(grid, Grid) and scene is not None:
        height, width, stride_y, stride_x = grid.sides()
        line += [f"--like={absolute(scene)}", f"--stride={stride_y}x{stride_x}"]
        line += [f"--window={height}x{width}", *["--pad"] * bool(grid.pad)]
        n = grid.count(*info(scene)["raster"]["shape"][1:])
        kept = _Kept(resume, (n, height, width)) if resume is not None else None
        placed = _numbers(predictions, n, (height, width), kept.n if kept else 0)
    else:
        raise SpecError(
            f"grid is {grid!r} and scene {scene!r}: grid must be the Grid that cut the windows of "
            "a scene, or a GroundGrid"
        )
    with tempfile.TemporaryFile(prefix="chaski-paste-") as f:
        if isinstance(grid, GroundGrid):
            places, shape = _keep(placed, f)
            if not len(places):
                raise SpecError(f"no window lies on the grid {grid}")
            west, _, _, north = grid.bounds
            numbers = (grid.epsg, west, north, grid.resolution, shape[0], *grid.shape)
            line.append("--ground=" + ",".join(map(str, numbers)))
            line.append(f"--window={shape[1]}x{shape[2]}")
            ask([*line, "-"], _from_the_top(places, shape, f), timeout)
        elif kept is None:
            ask([*line, "-"], _in_turn(placed, n, f), timeout)
        else:
            with kept:
                ask([*line, "-"], kept.and_new(_in_turn(placed, n, f, kept.n)), timeout)
            os.unlink(kept.path)


@entry
def pasted(resume: str | os.PathLike[str]) -> int:
    """Returns how many windows of a scene `paste` has kept in a file, 0 if there is none.

    A loop goes on behind them, in whole batches:

        with chaski.load(scene, window=grid, shuffle=False, batch_size=16) as loader:
            done = chaski.pasted("map.part") // 16 * 16
            loader.load_state_dict({**loader.state_dict(), "samples": done})
            parts = ((b["sample"], model(b["image"])) for b in loader)
            chaski.paste(parts, scene, "map.tif", grid=grid, resume="map.part")
    """
    if not os.path.exists(resume):
        return 0
    with _Kept(resume) as kept:
        return kept.n


class _Kept:
    """A NumPy file of all windows of a scene, of which the first `n` are there."""

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
        if want is not None:  # a window that was cut is none
            self._file.truncate(len(self._head) + self.n * each)

    def __enter__(self) -> _Kept:
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


def _legend(argmax: bool, classes: Classes | None, palette: Classes | None) -> list[str]:
    """Returns the flags of the names and the colours of classes."""
    names, given = by_number("classes", classes or ()), by_number("palette", palette or ())
    if (names or given) and not argmax:
        raise SpecError("classes and palette name the classes that argmax=True writes")
    last = max([*names, *given], default=-1)
    if last > MOST_CLASSES:
        raise SpecError(f"classes or palette has the number {last}: at most {MOST_CLASSES}")
    colours = colours_of((), names, given)[: last + 1]
    rows = (("classes", [names.get(i, "") for i in range(last + 1)]), ("palette", colours))
    flags = []
    for flag, values in rows:
        if any(values):
            line = io.StringIO()
            csv.writer(line, lineterminator="").writerow(values)
            flags.append(f"--{flag}={line.getvalue()}")
    return flags


def _in_turn(placed: Placed, n: int, f: IO[bytes], turn: int = 0) -> Iterator[bytes]:
    """Yields the head of a NumPy file, then windows in the order of their numbers from turn on.

    A window that comes before its turn waits in a file, so a loop in order takes no disk.
    """
    waiting: dict[int, int] = {}  # by number: the place of a window in the file
    free: list[int] = []
    total, first, bar = turn, True, Bar("paste")
    for numbers, windows in placed:
        windows = np.ascontiguousarray(windows, "<f4")
        if first:
            first = False
            head = io.BytesIO()
            said = {"descr": "<f4", "fortran_order": False, "shape": (n, *windows.shape[1:])}
            np.lib.format.write_array_header_1_0(head, said)  # type: ignore[no-untyped-call, unused-ignore]
            yield head.getvalue()
        for number, window in zip(numbers[:, 0].tolist(), windows, strict=True):
            total += 1
            if number != turn:
                waiting[number] = free.pop() if free else len(waiting)
                f.seek(waiting[number] * window.nbytes)
                f.write(window.data)
                continue
            yield window.tobytes()
            turn += 1
            while turn in waiting:
                free.append(waiting.pop(turn))
                f.seek(free[-1] * window.nbytes)
                yield f.read(window.nbytes)
                turn += 1
        bar.set(total, n)
    bar.close()


def _keep(placed: Placed, f: IO[bytes]) -> tuple[npt.NDArray[Any], tuple[int, ...]]:
    """Writes windows into a file, and returns their places and their shape."""
    places, shape, total, bar = [np.empty((0, 2))], (0, 0, 0), 0, Bar("paste")
    for place, windows in placed:
        places.append(place)
        shape = windows.shape[1:]
        f.write(np.ascontiguousarray(windows, "<f4").data)
        total += len(place)
        bar.set(total, 0)
    bar.close()
    f.flush()
    return np.concatenate(places), shape


def _from_the_top(
    places: npt.NDArray[Any], shape: tuple[int, ...], f: IO[bytes]
) -> Iterator[bytes]:
    """Yields the windows of a file by their places, so the raster does not depend on batches."""
    windows = np.memmap(f, "<f4", "r", shape=(len(places), *shape))
    order = np.lexsort(places.T[::-1])
    each = max(1, PIECE // windows[0].nbytes)
    for i in range(0, len(order), each):
        yield b"".join(
            places[k].astype("<i4").tobytes() + windows[k].tobytes() for k in order[i : i + each]
        )


def _pairs(predictions: Any) -> Iterator[tuple[Any, npt.NDArray[Any]]]:
    """Yields the numbers or places of windows, and the windows."""
    if isinstance(predictions, np.ndarray) or hasattr(predictions, "detach"):
        predictions = [(np.arange(len(predictions)), predictions)]
    shape: tuple[int, ...] = ()
    for pair in predictions:
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            raise SpecError(
                "predictions must be an array, or pairs of a batch's numbers or places and an array"
            )
        values = as_array(pair[1])
        if values.dtype.kind not in "biuf":
            raise SpecError(f"predictions are {values.dtype}: they must be real numbers")
        if values.ndim != 4 or 0 in values.shape[1:]:
            said = "have no values" if values.ndim == 4 else "must be (n, bands, height, width)"
            raise SpecError(f"predictions are {values.shape}: they {said}")
        shape = shape or values.shape[1:]
        if values.shape[1:] != shape:
            raise SpecError(f"predictions are {values.shape}: others are (n, *{shape})")
        yield pair[0], values


def _numbers(predictions: Any, n: int, sides: Sequence[int], done: int = 0) -> Placed:
    """Yields the numbers of windows of a grid over a scene, and the windows, from done on."""
    seen = np.arange(n) < done
    for given, values in _pairs(predictions):
        index = as_array(given)
        if index.ndim != 1 or index.dtype.kind not in "iu":
            raise SpecError(
                f"samples are {index.dtype} {index.shape}: they must be the numbers of windows"
            )
        if len(values) != len(index) or list(values.shape[2:]) != list(sides):
            raise SpecError(
                f"predictions are {values.shape} for {len(index)} samples: they must be "
                f"(n, bands, {sides[0]}, {sides[1]})"
            )
        rows = index >= done  # without padding, which is -1
        index = index[rows]
        if index.max(initial=0) >= n:
            raise SpecError(f"a sample is {index.max()}: the grid has {n} windows in this scene")
        if seen[index].any() or len(np.unique(index)) != len(index):
            raise SpecError("a window comes twice")
        seen[index] = True
        yield index[:, None], values[rows]
    if not seen.all():
        raise SpecError(f"{n - int(seen.sum())} of {n} windows are missing")


def _corners(predictions: Any, grid: GroundGrid) -> Placed:
    """Yields rows and columns of the windows that lie on a grid, and the windows."""
    for geo, values in _pairs(predictions):
        if not isinstance(geo, Mapping) or not {"epsg", "transform"} <= geo.keys():
            raise SpecError(
                'predictions must be pairs of a batch\'s "geo", which chaski.Pixels(geo=True) '
                "gives, and an array"
            )
        epsg, transform = as_array(geo["epsg"]), as_array(geo["transform"])
        if epsg.shape != (len(values),) or transform.shape != (len(values), 6):
            raise SpecError(
                f"predictions are {values.shape}, with an epsg of {epsg.shape} and a transform of "
                f"{transform.shape}: all must have as many rows, and a transform 6 numbers in each"
            )
        rows = np.flatnonzero(epsg == grid.epsg)  # without padding, whose code is 0
        t, values, size = transform[rows], values[rows], grid.resolution
        pixel = np.array([size, 0, 0, -size])
        wrong = np.abs(t[:, [1, 2, 4, 5]] - pixel).max(axis=1, initial=0) > ALIKE / 1e4 * size
        offset = np.stack([grid.bounds[3] - t[:, 3], t[:, 0] - grid.bounds[0]], axis=1) / size
        at = np.rint(offset)
        wrong |= (np.abs(offset - at) > ALIKE).any(axis=1)
        if wrong.any():
            raise SpecError(
                f"a window has the transform {t[wrong][0].tolist()}: it must lie on the pixels of "
                f"{grid}"
            )
        if "bounds" in geo and len(rows):
            west, south, east, north = as_array(geo["bounds"])[rows].T
            sides = np.rint(np.stack([north - south, east - west], axis=1) / size)
            if (wrong := (sides != values.shape[2:]).any(axis=1)).any():
                raise SpecError(
                    f"predictions are {values.shape}, and a window has "
                    f"{sides[wrong][0].astype(int)} rows and columns: give a value for each pixel; "
                    'if they are parts of windows, leave "bounds" out and give their own '
                    '"transform"'
                )
        inside = ((at < grid.shape) & (at > -np.array(values.shape[2:]))).all(axis=1)
        yield at[inside].astype(np.int32), values[inside]
