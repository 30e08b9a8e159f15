"""Predictions for windows of a scene or on the ground, put together to a raster."""

from __future__ import annotations

import csv
import dataclasses
import hashlib
import io
import itertools
import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import IO, Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from chaski._calls import entry
from chaski._command import ask
from chaski._files import absolute_path, check_folder
from chaski._kept import Keeps
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

    Attributes:
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
"""Bytes of windows on the ground that are given to the command at a time."""

ALIKE = 1e-3
"""The part of a pixel by which corners may be off the grid: coordinates are rounded."""


@entry
def paste(
    predictions: npt.NDArray[Any] | Iterable[Part],
    scene: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | None,
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

    Of a list of scenes, `out` is a folder, which gets a raster for each under its name:

        scenes = sorted(Path("scenes").glob("*.tif"))
        with chaski.load(scenes, window=grid, shuffle=False, batch_size=16) as loader:
            parts = ((b["sample"], model(b["image"])) for b in loader)
            chaski.paste(parts, scenes, "probabilities", grid=grid)

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
        scene: the raster that the windows were cut from, or a list of them, as `load` has it; None
            with a `GroundGrid`. Its nodata is that of the result: NaN, or 255 with `argmax`. So is
            a prediction of NaN.
        out: the TIFF to write, or of a list of scenes the folder; files that exist are replaced.
        grid: the sampler that cut the windows; or a `GroundGrid`, whose pixels without a window are
            nodata: NaN, or 255 with `argmax`.
        blend: windows that overlap are weighted by the distance to their edges ("linear"), or
            alike ("mean").
        argmax: write the number of the greatest band as uint8, after blending: of two bands or
            more.
        classes: names of the classes by number, as a list or a dict: with `argmax`, an attribute
            table of the file. `load` reads it, and GDAL from 3.12 on.
        palette: colours of the classes by number ("#rrggbb"): with `argmax`, the colour table of
            the file. Default: those that `plot` gives to such names, or none.
        overviews: write smaller versions for maps too: of four pixels the mean, or the class that
            most of them have.
        max_bytes: the memory that the command may take.
        resume: a folder of its own that keeps the windows of a scene until its raster is written,
            in their order, for these scenes, `grid`, `blend`, `argmax`, `classes`, `palette` and
            `overviews`. What is in it when a run begins, `pasted` windows, is not needed again.
        timeout: seconds that the engine may take after the last window; None waits for as long as
            it takes.

    Raises:
        SpecError: a window is missing, or comes twice. With a `GroundGrid`: one does not lie on its
            pixels, or none lies on it.
    """
    # What is wrong is said before the predictions, which may take hours.
    if blend not in ("linear", "mean"):
        raise SpecError(f"blend is {blend!r}: it must be linear or mean")
    count("max_bytes", max_bytes)
    several = list(scene) if isinstance(scene, (list, tuple)) else None
    out = absolute_path(os.fspath(out))
    if several is None and not out.lower().endswith((".tif", ".tiff", ".geotiff")):
        raise SpecError(f"out is {out!r}: paste writes a TIFF, so the name must end with .tif")
    if resume is not None and os.path.realpath(absolute_path(os.fspath(resume))) == (
        os.path.realpath(out)
    ):
        raise SpecError(f"resume and out are both {out!r}: resume is removed when out is there")
    if several is None:
        check_folder(out)
    elif os.path.isfile(out):
        raise SpecError(f"out is the file {out!r}: for a list of scenes it must be a folder")
    else:
        os.makedirs(out, exist_ok=True)
    how = [f"--blend={blend}", *["--argmax"] * bool(argmax), *["--overviews"] * bool(overviews)]
    how += _legend(argmax, classes, palette)
    line = ["paste", f"--max-bytes={max_bytes}", *how]
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
        line += [f"--stride={stride_y}x{stride_x}"]
        line += [f"--window={height}x{width}", *["--pad"] * bool(grid.pad)]
        scenes = [_Scene(scene, out, grid, 0)] if several is None else _scenes(several, out, grid)
        sides = height, width
        keeps = None
        if resume is not None:
            keeps = Keeps(resume, _hash(scenes, grid, how))
        _paste_scenes(predictions, scenes, line, sides, keeps, timeout)
        return
    else:
        raise SpecError(
            f"grid is {grid!r} and scene {scene!r}: grid must be the Grid that cut the windows of "
            "a scene, or a GroundGrid"
        )
    with tempfile.TemporaryFile(prefix="chaski-paste-") as f:
        places, shape = _keep(placed, f)
        if not len(places):
            raise SpecError(f"no window lies on the grid {grid}")
        west, _, _, north = grid.bounds
        numbers = (grid.epsg, west, north, grid.resolution, shape[0], *grid.shape)
        line.append("--ground=" + ",".join(map(str, numbers)))
        line += [f"--window={shape[1]}x{shape[2]}", f"--output={out}", "-"]
        ask(line, _from_the_top(places, shape, f), timeout)


class _Scene:
    """A scene, the file of its map, and its windows: `n` from number `first` of all scenes on."""

    def __init__(self, path: Any, out: str, grid: Grid, first: int) -> None:
        self.path, self.out, self.first = absolute(path), out, first
        told = info(path)
        raster = told.get("raster")
        if raster is None:
            stores = "for arrays give None, a GroundGrid, and pairs of a batch's geo and windows"
            folders = "for a folder give the list of its files, as load gets it"
            way = stores if "arrays" in told else folders
            raise SpecError(f"scene is {os.fspath(path)!r}, which is no raster: {way}")
        self.n = grid.count(*raster["shape"][1:])
        self.end = first + self.n
        # What tells it from a scene of the same name, and stays where the file is moved.
        place = told.get("tiff", {}).get("transform")
        self.said = os.path.basename(self.path), told.get("bytes"), raster["shape"], place


def _scenes(paths: Sequence[Any], folder: str, grid: Grid) -> list[_Scene]:
    """Returns the scenes of a list."""
    scenes: list[_Scene] = []
    names: dict[str, Any] = {}
    for path in paths:
        name = os.path.splitext(os.path.basename(os.fspath(path)))[0] + ".tif"
        if name in names:
            raise SpecError(
                f"scene has {os.fspath(names[name])!r} and {os.fspath(path)!r}: the maps of both "
                f"would be {name!r}"
            )
        names[name] = path
        first = scenes[-1].end if scenes else 0
        scenes.append(_Scene(path, os.path.join(folder, name), grid, first))
    if not scenes:
        raise SpecError("scene is an empty list: it must have the scenes that load read")
    read = {os.path.realpath(scene.path) for scene in scenes}
    for scene in scenes:
        if os.path.realpath(scene.out) in read:
            raise SpecError(
                f"the map {scene.out!r} would replace a scene: out must be another folder"
            )
    return scenes


def _hash(scenes: Sequence[_Scene], grid: Grid, how: Sequence[str]) -> str:
    """Returns what tells the maps of scenes, in their order, by the windows of a grid from others.

    how are the words that say how a map is made.
    """
    said = repr(([scene.said for scene in scenes], grid.sides(), bool(grid.pad), how))
    return hashlib.sha256(said.encode()).hexdigest()[:16]


def _paste_scenes(
    predictions: Any,
    scenes: list[_Scene],
    line: list[str],
    sides: tuple[int, int],
    keeps: Keeps | None,
    timeout: float | None,
) -> None:
    """Pastes the windows of scenes, one scene after the other."""
    done = 0 if keeps is None else keeps.n
    total = scenes[-1].end
    if keeps is not None and done > total:
        raise SpecError(f"resume is {keeps.given!r}, which holds other windows")
    placed = _numbers(predictions, total, sides, done)
    with tempfile.TemporaryFile(prefix="chaski-paste-") as f:
        windows = _in_turn(placed, total, f, done)
        for scene in scenes:
            if keeps is not None and scene.end <= keeps.first:
                if not os.path.exists(scene.out):
                    raise SpecError(
                        f"out has no map {scene.out!r}, which was there for {keeps.given!r}: give "
                        "the folder that it began with, or remove resume to begin anew"
                    )
                continue
            words = [*line, f"--like={scene.path}", f"--output={scene.out}", "-"]
            left: Iterator[Any] = windows  # the last scene meets windows that come twice, too
            if scene is not scenes[-1]:
                left = itertools.islice(windows, scene.end - max(done, scene.first))
            if keeps is None:
                ask(words, _numpy(left, scene.n), timeout)
                continue
            with keeps.of(scene.first, (scene.n, *sides)) as kept:
                ask(words, kept.and_new(_numpy(left, scene.n)), timeout)
            keeps.over(scene.first, scene.end)
    if keeps is not None:
        keeps.remove()


def _numpy(windows: Iterable[npt.NDArray[np.float32]], n: int) -> Iterator[bytes]:
    """Yields a NumPy file of n windows: its head with the first of these."""
    for i, window in enumerate(windows):
        if i == 0:
            head = io.BytesIO()
            said = {"descr": "<f4", "fortran_order": False, "shape": (n, *window.shape)}
            np.lib.format.write_array_header_1_0(head, said)  # type: ignore[no-untyped-call, unused-ignore]
            yield head.getvalue()
        yield window.tobytes()


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


def _in_turn(
    placed: Placed, n: int, f: IO[bytes], turn: int = 0
) -> Iterator[npt.NDArray[np.float32]]:
    """Yields windows in the order of their numbers from turn on.

    A window that comes before its turn waits in a file, so a loop in order takes no disk.
    """
    waiting: dict[int, int] = {}  # by number: the place of a window in the file
    free: list[int] = []
    total, bar = turn, Bar("paste")
    for numbers, windows in placed:
        windows = np.ascontiguousarray(windows, "<f4")
        for number, window in zip(numbers[:, 0].tolist(), windows, strict=True):
            total += 1
            if number != turn:
                waiting[number] = free.pop() if free else len(waiting)
                f.seek(waiting[number] * window.nbytes)
                f.write(window.data)
                continue
            yield window
            turn += 1
            while turn in waiting:
                free.append(waiting.pop(turn))
                f.seek(free[-1] * window.nbytes)
                yield np.frombuffer(f.read(window.nbytes), "<f4").reshape(window.shape)
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
    if not isinstance(predictions, Iterable):
        predictions = [predictions]  # which is no pair
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
