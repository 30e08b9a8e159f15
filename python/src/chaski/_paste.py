"""Predictions for the windows of a scene, put together to a raster."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from chaski._files import replace_file
from chaski._proto import chaski_pb2 as pb
from chaski._proto.arguments import Grid
from chaski._read import Server, ask, info, words
from chaski._rpc import PIECE
from chaski.errors import SpecError

Part: TypeAlias = "tuple[npt.ArrayLike, npt.ArrayLike]"


def paste(
    predictions: npt.NDArray[Any] | Iterable[Part],
    scene: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    grid: Grid,
    blend: Literal["linear", "mean"] = "linear",
    argmax: bool = False,
    timeout: float | None = 3600.0,
    server: Server | None = None,
) -> None:
    """Writes predictions for the windows of a scene as one raster, a TOG that lies where it does.

        grid = chaski.Grid(256, overlap=64)
        with chaski.load(scene, sampler=grid, shuffle=False, batch_size=16) as loader:
            parts = ((b["sample"], model(b["image"])) for b in loader)
            chaski.paste(parts, scene, "probability.tif", grid=grid)

    The engine does it, as the command `chaski paste`; predictions go to it by a temporary file.

    Args:
        predictions: an array (windows, bands, height, width), in the order of the samples; or pairs
            of a batch's "sample" and an array of as many rows, in any order. Rows of sample -1 are
            padding and left out. Tensors of torch may be on a device, and have a gradient. All are
            taken as float32.
        scene: the raster that the windows were cut from.
        out: the file to write; one that exists is replaced.
        grid: the sampler that cut the windows.
        blend: windows that overlap are weighted by the distance to their edges ("linear"), or
            alike ("mean").
        argmax: write the number of the greatest band as uint8, after blending.
        timeout: seconds for the engine; None waits for as long as it takes.
        server: a running engine (`chaski serve`) that has the scene, as "host:port" or a
            `Connection`; `out` is a file here. Default: the engine that `load` starts.

    Raises:
        SpecError: an argument is wrong, a window is missing, or one comes twice.
        Error: the scene cannot be opened; of the kind that fits.
    """
    if not isinstance(grid, Grid):
        raise SpecError(f"grid is {grid!r}: it must be the Grid that cut the windows")
    g = grid.to_json()
    h, w = g["height"], g["width"]
    _, height, width = info(scene, server=server)["raster"]["shape"]
    n = grid.count(height, width)
    question = pb.PasteQuestion(
        scene=words(server, scene),
        height=h,
        width=w,
        stride_y=g["stride_y"],
        stride_x=g["stride_x"],
        pad=bool(g.get("pad")),
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
        if values.dtype.kind not in "biuf":
            raise SpecError(f"predictions are {values.dtype}: they must be real numbers")
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
