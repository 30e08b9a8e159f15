"""Predictions for windows of a scene or on the ground, put together to a raster."""

from __future__ import annotations

import dataclasses
import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from chaski._files import replace_file
from chaski._plain import count, positive
from chaski._proto import chaski_pb2 as pb
from chaski._proto.arguments import Grid
from chaski._read import Server, ask, info, words
from chaski._rpc import PIECE
from chaski.errors import SpecError

Part: TypeAlias = "tuple[npt.ArrayLike | Mapping[str, Any], npt.ArrayLike]"


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
        except (TypeError, ValueError):
            pixels = []
        if not pixels or not (west < east and south < north):
            raise SpecError(
                f"bounds is {self.bounds!r}: it must be four numbers: west, south, east, north"
            )
        if not all(abs(n) < 2**31 and abs(n - round(n)) <= ALIKE for n in pixels):
            raise SpecError(
                f"bounds is {self.bounds}: each must be a whole multiple of {self.resolution}, "
                "the resolution"
            )

    @property
    def shape(self) -> tuple[int, int]:
        """The height and width in pixels."""
        west, south, east, north = (round(b / self.resolution) for b in self.bounds)
        return north - south, east - west


ALIKE = 1e-3
"""The part of a pixel by which corners may be off the grid: coordinates are rounded."""


def paste(
    predictions: npt.NDArray[Any] | Iterable[Part],
    scene: str | os.PathLike[str] | None,
    out: str | os.PathLike[str],
    *,
    grid: Grid | GroundGrid,
    blend: Literal["linear", "mean"] = "linear",
    argmax: bool = False,
    timeout: float | None = 3600.0,
    server: Server | None = None,
) -> None:
    """Writes predictions for the windows of a scene as one raster, a TOG that lies where it does.

        grid = chaski.Grid(256, overlap=64)
        with chaski.load(scene, window=grid, shuffle=False, batch_size=16) as loader:
            parts = ((b["sample"], model(b["image"])) for b in loader)
            chaski.paste(parts, scene, "probability.tif", grid=grid)

    Windows on the ground (`GeoWindow`) go on a grid of their own, one for each map:

        box = (747000, 4597000, 750000, 4600000)
        grid = chaski.GroundGrid(epsg=32630, bounds=box, resolution=10)
        parts = ((b["geo"], model(b["image"])) for b in loader)  # pixels=chaski.Pixels(geo=True)
        chaski.paste(parts, None, "probability.tif", grid=grid)

    The engine does it, as the command `chaski paste`; predictions go to it by a temporary file.

    Args:
        predictions: an array (windows, bands, height, width), in the order of the samples; or pairs
            of a batch's "sample" and an array of as many rows, in any order. Rows of sample -1 are
            padding and left out. With a `GroundGrid`: pairs of a batch's "geo" and an array; rows
            without a place, on other maps and beside the grid are left out. Tensors of torch may be
            on a device, and have a gradient. All are taken as float32.
        scene: the raster that the windows were cut from; None with a `GroundGrid`.
        out: the file to write; one that exists is replaced.
        grid: the sampler that cut the windows; or a `GroundGrid`, whose pixels without a window are
            nodata: NaN, or 255 with `argmax`.
        blend: windows that overlap are weighted by the distance to their edges ("linear"), or
            alike ("mean").
        argmax: write the number of the greatest band as uint8, after blending.
        timeout: seconds for the engine; None waits for as long as it takes.
        server: a running engine (`chaski serve`) that has the scene, as "host:port" or a
            `Connection`; `out` is a file here. Default: the engine that `load` starts.

    Raises:
        SpecError: an argument is wrong, a window is missing, or one comes twice. With a
            `GroundGrid`: a window does not lie on its pixels, or none lies on it.
        Error: the scene cannot be opened; of the kind that fits.
    """
    if isinstance(grid, GroundGrid):
        if scene is not None:
            raise SpecError(f"scene is {scene!r}: it must be None with a GroundGrid")
        replace_file(out, [_on_ground(predictions, grid, blend, argmax, timeout, server)])
        return
    if not isinstance(grid, Grid) or scene is None:
        raise SpecError(
            f"grid is {grid!r} and scene {scene!r}: grid must be the Grid that cut the windows of "
            "a scene, or a GroundGrid"
        )
    h, w, stride_y, stride_x = grid.sides()
    _, height, width = info(scene, server=server)["raster"]["shape"]
    n = grid.count(height, width)
    question = pb.PasteQuestion(
        scene=words(server, scene),
        height=h,
        width=w,
        stride_y=stride_y,
        stride_x=stride_x,
        pad=bool(grid.pad),
        blend=blend,
        argmax=argmax,
    )
    with tempfile.NamedTemporaryFile(prefix="chaski-paste-") as f:
        _write(f.name, predictions, n, h, w)
        pieces = iter(lambda: f.read(PIECE), b"")
        raster, _ = ask(server, pb.AskRequest(paste=question), timeout, pieces)
    replace_file(out, [raster])


def _array(x: Any) -> npt.NDArray[Any]:
    """Returns an array, also of a tensor of torch, as float32 where numpy has no such dtype."""
    if not hasattr(x, "detach"):
        return np.asarray(x)
    x = x.detach().cpu()
    return np.asarray(x.float() if str(x.dtype) == "torch.bfloat16" else x)


def _check_real(values: npt.NDArray[Any]) -> None:
    if values.dtype.kind not in "biuf":
        raise SpecError(f"predictions are {values.dtype}: they must be real numbers")


def _on_ground(
    predictions: npt.NDArray[Any] | Iterable[Part],
    grid: GroundGrid,
    blend: str,
    argmax: bool,
    timeout: float | None,
    server: Server | None,
) -> bytes:
    """Returns the raster of windows on the ground."""
    with tempfile.TemporaryFile(prefix="chaski-paste-") as f:
        corners, shape = [np.empty((0, 2), np.int32)], None
        for pair in predictions:
            if not isinstance(pair, (tuple, list)) or len(pair) != 2:
                raise SpecError('predictions must be pairs of a batch\'s "geo" and an array')
            at, values = _corners(pair[0], pair[1], grid)
            if shape not in (None, values.shape[1:]):
                raise SpecError(f"predictions are {values.shape}: others are (n, *{shape})")
            shape = values.shape[1:]
            corners.append(at)
            f.write(np.ascontiguousarray(values, "<f4").data)
        where = np.concatenate(corners)
        if not len(where) or shape is None:
            raise SpecError(f"no window lies on the grid {grid}")
        f.flush()
        windows = np.memmap(f, "<f4", "r", shape=(len(where), *shape))
        height, width = grid.shape
        question = pb.PasteQuestion(
            bands=shape[0], height=shape[1], width=shape[2], blend=blend, argmax=argmax
        )
        question.ground.epsg, question.ground.resolution = grid.epsg, grid.resolution
        question.ground.west, question.ground.north = grid.bounds[0], grid.bounds[3]
        question.ground.height, question.ground.width = height, width

        def pieces() -> Iterator[bytes]:
            # By place, so that the raster is the same for batches in any order.
            for k in np.lexsort((where[:, 1], where[:, 0])):
                yield where[k].astype("<i4").tobytes() + windows[k].tobytes()

        return ask(server, pb.AskRequest(paste=question), timeout, pieces())[0]


def _corners(
    geo: Any, predictions: Any, grid: GroundGrid
) -> tuple[npt.NDArray[np.int32], npt.NDArray[Any]]:
    """Returns rows and columns of the windows that lie on a grid, and their predictions."""
    if not isinstance(geo, Mapping) or not {"epsg", "transform"} <= geo.keys():
        raise SpecError(
            'predictions must be pairs of a batch\'s "geo", which chaski.Pixels(geo=True) gives, '
            "and an array"
        )
    epsg, transform, values = _array(geo["epsg"]), _array(geo["transform"]), _array(predictions)
    _check_real(values)
    if values.ndim != 4 or epsg.shape != (len(values),) or transform.shape != (len(values), 6):
        raise SpecError(
            f"predictions are {values.shape} for {epsg.size} places: they must be (n, bands, "
            "height, width)"
        )
    if 0 in values.shape[1:]:
        raise SpecError(f"predictions are {values.shape}: they have no values")
    rows = np.flatnonzero(epsg == grid.epsg)  # without padding, whose code is 0
    t, values, size = transform[rows], values[rows], grid.resolution
    pixel = np.array([size, 0, 0, -size])
    wrong = np.abs(t[:, [1, 2, 4, 5]] - pixel).max(axis=1, initial=0) > ALIKE / 1e4 * size
    offset = np.stack([grid.bounds[3] - t[:, 3], t[:, 0] - grid.bounds[0]], axis=1) / size
    wrong |= (np.abs(offset - np.rint(offset)) > ALIKE).any(axis=1)
    if wrong.any():
        raise SpecError(
            f"a window has the transform {t[wrong][0].tolist()}: it must lie on the pixels of "
            f"{grid}"
        )
    if "bounds" in geo and len(rows):
        west, south, east, north = _array(geo["bounds"])[rows].T
        sides = np.rint(np.stack([north - south, east - west], axis=1) / size)
        if (wrong := (sides != values.shape[2:]).any(axis=1)).any():
            raise SpecError(
                f"predictions are {values.shape}, and a window has {sides[wrong][0].astype(int)} "
                "rows and columns: give a value for each pixel; if they are parts of windows, "
                'leave "bounds" out and give their own "transform"'
            )
    at = np.rint(offset)
    inside = ((at < grid.shape) & (at > -np.array(values.shape[2:]))).all(axis=1)
    return at[inside].astype(np.int32), values[inside]


def _write(
    path: str, predictions: npt.NDArray[Any] | Iterable[Part], n: int, h: int, w: int
) -> None:
    """Writes the windows as one array, in order."""
    if isinstance(predictions, np.ndarray) or hasattr(predictions, "detach"):
        whole = _array(predictions)
        predictions = [(np.arange(len(whole)), whole)]
    to: np.memmap[Any, np.dtype[np.float32]] | None = None
    seen = np.zeros(n, bool)
    for pair in predictions:
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            raise SpecError("predictions must be an array, or pairs of samples and an array")
        index, values = _array(pair[0]), _array(pair[1])
        if index.ndim != 1 or index.dtype.kind not in "iu":
            raise SpecError(
                f"samples are {index.dtype} {index.shape}: they must be the numbers of windows"
            )
        _check_real(values)
        if values.ndim != 4 or len(values) != len(index) or values.shape[2:] != (h, w):
            raise SpecError(
                f"predictions are {values.shape} for {len(index)} samples: they must be "
                f"(n, bands, {h}, {w})"
            )
        if to is None:
            size = (n, values.shape[1], h, w)
            open_memmap: Any = np.lib.format.open_memmap
            to = open_memmap(path, "w+", np.dtype("<f4"), size)
        assert to is not None
        rows = np.flatnonzero(index >= 0)
        picked = index[rows]
        if len(picked) and (picked.max() >= n or values.shape[1] != to.shape[1]):
            raise SpecError(f"the grid has {n} windows of {to.shape[1]} bands in this scene")
        if seen[picked].any() or len(np.unique(picked)) != len(picked):
            raise SpecError("a window comes twice")
        seen[picked] = True
        to[picked] = values[rows]
    if to is None or not seen.all():
        raise SpecError(f"{n - int(seen.sum())} of {n} windows are missing")
    to.flush()
