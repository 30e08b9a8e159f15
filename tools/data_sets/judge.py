"""What the samples of a data set are, read plainly by rasterio, Pillow, h5py and json.

A call of `chaski.load` is compared with a list of samples, in the order of the dataset: each is a
dict of arrays, numbers or texts. Windows of scenes are cut out of the whole rasters.
"""

from __future__ import annotations

import contextlib
import re
import tarfile
from collections.abc import Callable, Iterable, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

import chaski
import numpy as np
import rasterio
import torch
from chaski import Ragged
from PIL import Image

Sample = dict[str, Any]
Part = Callable[[Path], Any]  # what belongs to the file of a sample


most = 0  # files of a glob, if they are only a few
read: set[Path] = set()  # all files that samples were read from


def seen(path: Path) -> Path:
    """Remembers a file that is there."""
    if path.exists():
        read.add(path)
    return path


def pixels(path: Path, bands: Sequence[int] | None = None, keep: bool = False) -> np.ndarray:
    """Returns (b, y, x); what the file declares as nodata is 0 unless keep, as for floats."""
    seen(path)
    if path.suffix == ".npy":
        return np.load(path)
    if path.suffix.lower() in (
        ".jpg",
        ".jpeg",
    ):  # GDAL's wheel has another decoder
        x = np.asarray(Image.open(path))
        return x[None] if x.ndim == 2 else x.transpose(2, 0, 1)
    return raster(path, bands, keep)


def raster(
    file: Path | BytesIO, bands: Sequence[int] | None = None, keep: bool = False
) -> np.ndarray:
    """Returns the pixels of a file that GDAL reads, as `pixels` does."""
    with rasterio.open(file) as f:
        x = f.read() if bands is None else f.read([b + 1 for b in bands])
        if not keep and f.nodata is not None:
            x[np.isnan(x) if np.isnan(f.nodata) else x == f.nodata] = 0
        return x


def members(path: Path) -> dict[str, bytes]:
    """Returns the files in a tar."""
    with tarfile.open(seen(path)) as tar:
        return {m.name: tar.extractfile(m).read() for m in tar if m.isfile()}


def files(pattern: str, every: bool = False) -> list[Path]:
    """Returns the files of a glob, ordered by the bytes of their paths."""
    found = sorted(Path().glob(pattern), key=lambda p: str(p).encode())
    return found[:: -(-len(found) // most)] if most and not every else found


def samples(pattern: str, image: Part = pixels, **parts: Part) -> list[Sample]:
    """Returns a sample for each file of a glob, unless the file of one of its parts is missing."""
    out = []
    for p in files(pattern):
        with contextlib.suppress(rasterio.errors.RasterioIOError, FileNotFoundError):
            out.append({name: part(p) for name, part in {"image": image, **parts}.items()})
    return out


def beside(old: str, new: str, **options: Any) -> Part:
    """Reads the file whose path has new where a regular expression matches (all of it, keep)."""

    def read(p: Path) -> np.ndarray:
        other, count = re.subn(old, new, str(p))
        assert count, (old, p)
        return pixels(Path(other), **options)

    return read


def stacked(*parts: Part) -> Part:
    """Reads the bands of several parts."""
    return lambda p: np.concatenate([part(p) for part in parts])


def mapped(part: Part, values: dict[Any, int]) -> Part:
    """Returns (1, y, x): a class for each value of a band, or for each colour of several."""

    def read(p: Path) -> np.ndarray:
        x = part(p)
        out = np.full(x.shape[1:], values.get(None, -1))
        for value, number in values.items():
            if value is not None:
                out[(x == np.reshape(value, (-1, 1, 1))).all(0)] = number
        return out[None]

    return read


def folder(p: Path) -> str:
    """Returns the folder that a file lies in."""
    return p.parent.name


def numbered(rows: list[Sample], *fields: str) -> list[Sample]:
    """Gives each text of some fields its position in their order."""
    for name in fields:
        names = sorted({r[name] for r in rows}, key=str.encode)
        rows = [{**r, name: names.index(r[name])} for r in rows]
    return rows


def compare(call: str, want: Iterable[Sample]) -> int:
    """Loads what a call says and compares each sample. Returns their number."""
    rows = list(want)
    given = eval(f"dict_of({call})", {"dict_of": lambda *a, **k: (a, k), **vars(chaski)})
    options = {"batch_size": 1, "shuffle": False, "pixels": chaski.Pixels(windows=True)}
    with chaski.load(*given[0], **(options | given[1])) as loader:
        ids = list(range(len(rows))) if "Time(" in call else list(loader.ids)
        if len(ids) == len(rows):  # an image may be of several samples
            ids = list(range(len(rows)))
        names = list(dict.fromkeys(ids))
        assert len(names) == len(rows) > 0, f"{len(names)} samples, not {len(rows)}: {names[:4]}"
        cut = len(ids) > len(names) or "Grid(" in call
        steps = 0
        for batch in loader:
            for k in np.flatnonzero(batch["valid"]):
                row = rows[names.index(ids[batch["sample"][k]])]
                for name, value in row.items():
                    got = batch[name].rows() if isinstance(batch[name], Ragged) else batch[name]
                    same(name, got[k], value, batch["window"][k] if cut else None)
                steps += 1
        assert steps == len(ids), f"{steps} of {len(ids)} samples are valid"
    return steps


def resized(want: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Returns a raster in another size, as torch's bilinear interpolation makes it."""
    x = torch.from_numpy(want.astype(np.float32))[None]
    return torch.nn.functional.interpolate(x, shape[-2:], mode="bilinear")[0].numpy()


def same(name: str, got: Any, want: Any, window: Any) -> None:
    """Compares a member of a sample; of a raster the window, or its other size."""
    if isinstance(want, str):
        assert got == want, f"{name}: {got!r} is {want!r}"
        return
    got, want = np.asarray(got), np.asarray(want)
    if window is not None and want.ndim > 1:
        y, x, height, width = window
        want = want[..., y : y + height, x : x + width]
        got = got[..., : want.shape[-2], : want.shape[-1]]
    if want.ndim == 3 and got.shape != want.shape and got.shape[0] == want.shape[0]:
        close = np.allclose(got, resized(want, got.shape), rtol=1e-4, atol=1e-3)
        assert close, f"{name}: other values after it was resized"
        return
    assert got.shape == want.shape, f"{name}: shape {got.shape}, not {want.shape}"
    exact = np.array_equal(got, want.astype(got.dtype), equal_nan=got.dtype.kind == "f")
    assert exact, f"{name}: other values"
