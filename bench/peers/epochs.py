"""What a first and a second epoch cost: chaski with and without recode, and rasterio.

    python epochs.py --scene S2.npy --work .peers/epochs --rounds 3

The scene has bands of uint16. It is cut into chips of 256 by 256 pixels, and mirrored into scenes
of which windows are read; tiles of 128 and 256, zstd. Each way runs in a process of its own, in
turns, and makes float32, normalised, in batches of 16. Time is of that process and all that it
starts, for each sample.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from sides import processor_seconds

CHIPS, SCENES, EDGE, SIDE, BATCH, WORKERS = 1024, 4, 1792, 256, 16, 2
PAUSE = 0.1  # seconds of a step of training after each batch of the first epoch
MEAN, STD = np.float32(1000), np.float32(500)
GDAL = {"64 MB": "64", "GDAL's cache": ""}  # GDAL_CACHEMAX; "" is 5 % of the memory


def write(folder: Path, scene: Path) -> None:
    """Writes chips that lie anywhere in the scene, and scenes that mirror it."""
    import rasterio

    image, rng = np.load(scene), np.random.default_rng(0)

    def put(path: Path, pixels: Any, tile: int) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        options = {"driver": "GTiff", "dtype": pixels.dtype, "count": len(pixels)}
        options |= {"height": pixels.shape[1], "width": pixels.shape[2], "tiled": True}
        options |= {"blockxsize": tile, "blockysize": tile, "compress": "zstd", "zstd_level": 13}
        with rasterio.open(path, "w", interleave="band", predictor=2, **options) as f:
            f.write(pixels)

    for i in range(CHIPS):
        top, left = (int(rng.integers(0, n - SIDE + 1)) for n in image.shape[1:])
        put(folder / "chips" / f"{i:03}.tif", image[:, top : top + SIDE, left : left + SIDE], 128)
    more = [(0, EDGE - n) for n in image.shape[1:]]
    large = np.pad(image, [(0, 0), *more], mode="reflect")
    for i in range(SCENES):
        put(folder / "windows" / f"{i}.tif", np.rot90(large, i, (1, 2)), 256)


def chaski_epochs(folder: Path, recode: bool, pause: float) -> Iterator[Iterable[Any]]:
    """Yields two epochs of batches. A pause after each batch leaves workers idle."""
    import chaski

    band = {"mean": float(MEAN), "std": float(STD), "count": 1}
    stats = {"image": {"bands": [band] * 6}}
    window = chaski.RandomWindow(SIDE, per_asset=CHIPS // SCENES)
    more: dict[str, Any] = {"window": window} if folder.name == "windows" else {}
    engine = chaski.Engine(workers=WORKERS, recode=recode, share=False)
    with chaski.load(folder, batch_size=BATCH, shuffle=True, normalize="mean_std", stats=stats,
                     engine=engine, **more) as loader:  # fmt: skip
        for epoch in range(2):
            yield slowly(loader, pause if epoch == 0 else 0)


def slowly(batches: Iterable[Any], pause: float) -> Iterator[Any]:
    """Yields the samples of batches."""
    for batch in batches:
        yield from batch["image"]
        time.sleep(pause)


def rasterio_epochs(folder: Path, workers: int) -> Iterator[Iterable[Any]]:
    """Yields two epochs, of a DataLoader or, without workers, of a loop."""
    import warnings

    import rasterio
    from rasterio.windows import Window

    warnings.simplefilter("ignore", rasterio.errors.NotGeoreferencedWarning)
    files = sorted(folder.glob("*.tif"))
    opened: dict[Path, Any] = {}
    rng = np.random.default_rng(1)
    places = rng.integers(0, EDGE - SIDE + 1, (CHIPS, 2))

    class Samples:
        def __len__(self) -> int:
            return CHIPS

        def __getitem__(self, i: int) -> Any:
            if folder.name == "chips":
                with rasterio.open(files[i]) as f:
                    pixels = f.read()
            else:
                path = files[i % SCENES]
                f = opened.get(path) or opened.setdefault(path, rasterio.open(path))
                y, x = (int(v) for v in places[i])
                pixels = f.read(window=Window(x, y, SIDE, SIDE))
            return (pixels.astype(np.float32) - MEAN) / STD

    samples = Samples()
    if not workers:
        for _ in range(2):
            yield (samples[int(i)] for i in rng.permutation(CHIPS))
        return
    import torch.utils.data as data

    dataset: Any = samples  # of the protocol of torch's datasets
    loader: Any = data.DataLoader(dataset, batch_size=BATCH, shuffle=True, num_workers=workers,
                             persistent_workers=True)  # fmt: skip
    for _ in range(2):
        yield (sample for batch in loader for sample in batch)


WAYS: dict[str, Callable[[Path], Iterator[Iterable[Any]]]] = {
    "chaski": lambda f: chaski_epochs(f, False, 0),
    "chaski, with pauses": lambda f: chaski_epochs(f, False, PAUSE),
    "recode": lambda f: chaski_epochs(f, True, 0),
    "recode, with pauses": lambda f: chaski_epochs(f, True, PAUSE),
}
for cache in GDAL:
    WAYS[f"rasterio, DataLoader, {cache}"] = lambda f: rasterio_epochs(f, WORKERS)
    WAYS[f"rasterio, loop, {cache}"] = lambda f: rasterio_epochs(f, 0)


aside = 0.0  # seconds that this process took to look


def settled() -> float:
    """Returns what is spent once it stands still: what is encoded belongs to the epoch."""
    global aside
    last, now = -1.0, 0.0
    while now - last > 0.03:
        last = now
        time.sleep(0.3)
        start = time.process_time()
        now = processor_seconds() - aside
        aside += time.process_time() - start
    return now


def one(way: str, folder: Path) -> None:
    """Prints processor time and time of a sample, in ms, of both epochs."""
    out = []
    for epoch in WAYS[way](folder):
        before = settled()
        start, n = time.perf_counter(), 0
        for sample in epoch:
            n += sample[0, 0, 0] is not None
        spent = time.perf_counter() - start
        out.append([1e3 * (settled() - before) / n, 1e3 * spent / n])
    print(json.dumps(out), flush=True)
    os._exit(0)


def main() -> None:
    """Writes the files once, runs all ways in turns, and prints a table for each shape."""
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--scene", type=Path, required=True)
    p.add_argument("--work", type=Path, required=True)
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--shapes", nargs="*", default=["chips", "windows"])
    p.add_argument("--ways", nargs="*", default=list(WAYS), metavar="WAY", help=", ".join(WAYS))
    p.add_argument("--one", help=argparse.SUPPRESS)
    o = p.parse_args()
    if o.one:
        one(o.one, o.work)
        return
    if not (o.work / "windows").exists():
        write(o.work, o.scene)
    for shape in o.shapes:
        times: dict[str, list[Any]] = {way: [] for way in o.ways}
        for _ in range(o.rounds):
            for way, found in times.items():
                env = dict(os.environ)
                if cache := GDAL.get(way.rpartition(", ")[2]):
                    env["GDAL_CACHEMAX"] = cache
                command = [sys.executable, __file__, "--one", way, "--scene", o.scene,
                           "--work", o.work / shape]  # fmt: skip
                done = subprocess.run(command, env=env, check=True, stdout=subprocess.PIPE)
                found.append(json.loads(done.stdout))
        print(f"\n| {shape} | first epoch, CPU ms | × | second, CPU ms | × rasterio |")
        print("|---|---|---|---|---|")
        base = times["rasterio, DataLoader, 64 MB"]
        for way, found in times.items():
            plain = times.get("chaski, with pauses" if way.endswith("pauses") else "chaski", found)
            first, second = ([f[k][0] for f in found] for k in range(2))
            cells = [spread(first, 2), spread(over(found, plain, 0), 2)]
            cells += [spread(second, 2), spread(over(base, found, 1), 1)]
            print("|", " | ".join([way, *cells]), "|", flush=True)


def over(a: list[Any], b: list[Any], epoch: int) -> list[float]:
    """Returns the ratios of the processor time of two ways in an epoch, round by round."""
    return [x[epoch][0] / y[epoch][0] for x, y in zip(a, b, strict=True)]


def spread(values: list[float], digits: int) -> str:
    """Returns the median and the range."""
    return (f"{statistics.median(values):.{digits}f} "
            f"({min(values):.{digits}f}–{max(values):.{digits}f})")  # fmt: skip


if __name__ == "__main__":
    main()
