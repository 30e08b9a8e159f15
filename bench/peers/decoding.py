"""Decoding speed by codec: chaski, GDAL and imagecodecs on the same files, one core each.

    python decoding.py --chaski bin/chaski --imagery imagery/s2.npy --work .peers/codecs --rounds 5

It writes the imagery, uint16 bands of (b y x), with GDAL: as uint16, as uint8 (the high bits of
three bands) and as float32, in tiles of 256 by 256 pixels, with every codec that other people's
files have. In every round each reader takes its turn on each file: `chaski bench decode` and
rasterio read the whole file into an array, imagecodecs decodes its tiles without undoing the
predictor, so that it does less. Pillow stands in its place for the PNG files, of three bands as
uint8 and of one as uint16. Files come from the page cache. Printed is MB of pixels a second,
the median of the rounds, and the ratio to GDAL with the lowest and the highest of one round. With
--processor the seconds are those of the processor, which other work on the machine stretches less.

Needs numpy, rasterio, tifffile, imagecodecs and Pillow; without the second two that column is empty
for TIFFs.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

TILE = 256
# What is written: dtype, and options of GDAL's driver.
FILES: dict[str, tuple[str, dict[str, Any]]] = {
    "none uint16": ("uint16", {}),
    "deflate uint8": ("uint8", {"compress": "deflate"}),
    "deflate uint16": ("uint16", {"compress": "deflate", "predictor": 2}),
    "deflate float32": ("float32", {"compress": "deflate", "predictor": 3}),
    "lzw uint8": ("uint8", {"compress": "lzw"}),
    "lzw uint16": ("uint16", {"compress": "lzw", "predictor": 2}),
    "lzw uint16 plain": ("uint16", {"compress": "lzw"}),
    "zstd uint16": ("uint16", {"compress": "zstd", "predictor": 2}),
    "jpeg uint8": ("uint8", {"compress": "jpeg", "photometric": "ycbcr", "interleave": "pixel"}),
    "lerc uint16": ("uint16", {"compress": "lerc"}),
    "lerc float32": ("float32", {"compress": "lerc", "max_z_error": 0.01}),
    "webp uint8": ("uint8", {"compress": "webp", "interleave": "pixel"}),
    "lzma uint16": ("uint16", {"compress": "lzma"}),
    "png uint8": ("uint8", {"driver": "PNG"}),
    "png uint16": ("uint16", {"driver": "PNG"}),
}


def make(path: Path, bands: Any, dtype: str, options: dict[str, Any]) -> None:
    """Writes the bands as one file of a dtype."""
    import numpy as np
    import rasterio

    data = bands.astype(dtype)
    if dtype == "uint8":
        low, high = np.percentile(bands[:3], (1, 99))
        data = ((bands[:3] - low) / (high - low) * 255).clip(0, 255).astype("uint8")
    layout: dict[str, Any] = {"driver": "GTiff", "tiled": True, "interleave": "band"}
    layout |= {"blockxsize": TILE, "blockysize": TILE}
    if "driver" in options:
        data, layout = data[: 3 if dtype == "uint8" else 1], {}
    shape = {"count": len(data), "height": data.shape[1], "width": data.shape[2], "dtype": dtype}
    with rasterio.open(path, "w", **shape, **(layout | options)) as dst:
        dst.write(data)


def with_chaski(chaski: str, path: Path, seconds: float, processor: bool) -> float:
    """Returns the MB a second of one round of `chaski bench decode`."""
    argv = [chaski, "bench", "decode", "--json", "--workers", "1", "--rounds", "1"]
    run = subprocess.run(
        [*argv, "--seconds", str(seconds), str(path)],
        check=True,
        stdout=subprocess.PIPE,
        env=os.environ | {"GOMAXPROCS": "1"},
    )
    figures = {f["name"]: f["median"] for f in json.loads(run.stdout)["figures"]}
    if processor:
        return float(figures["decoded"] / figures["files"] / figures["cpu"] * 1e3)
    return float(figures["decoded"])


def rate(decode: Callable[[], int], seconds: float, processor: bool) -> float:
    """Returns the MB a second of a function that returns how many bytes it made."""
    clock = time.process_time if processor else time.perf_counter
    decode()
    start, made = clock(), 0
    while (took := clock() - start) < seconds:
        made += decode()
    return made / took / 1e6


def with_gdal(path: Path) -> int:
    """Reads a file with rasterio."""
    import rasterio

    with rasterio.open(path) as src:
        return int(src.read().nbytes)


def tiles_of(path: Path) -> Callable[[], int] | None:
    """Returns what decodes the tiles of a file with imagecodecs, or a PNG with Pillow, or None."""
    if path.suffix == ".png":
        import numpy as np
        from PIL import Image

        return lambda: int(np.asarray(Image.open(path)).nbytes)
    try:
        import imagecodecs  # type: ignore[import-not-found]
        import tifffile
    except ImportError:
        return None
    with tifffile.TiffFile(path) as file:
        page = file.pages[0]
        name, tables = page.compression.name.lower(), page.jpegtables
        with path.open("rb") as f:
            tiles = []
            for offset, size in zip(page.dataoffsets, page.databytecounts, strict=True):
                f.seek(offset)
                tiles.append(f.read(size))
    name = {"adobe_deflate": "zlib"}.get(name, name)
    decode = getattr(imagecodecs, f"{name}_decode", None)
    if name == "none" or decode is None:
        return None
    if name == "jpeg":
        return lambda: sum(decode(t, tables=tables).nbytes for t in tiles)

    def bytes_of(out: Any) -> int:
        return int(getattr(out, "nbytes", 0) or len(out))

    return lambda: sum(bytes_of(decode(t)) for t in tiles)


def main() -> None:
    """Makes the files, measures, and prints a table."""
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--chaski", default="bin/chaski")
    p.add_argument("--imagery", type=Path, required=True, help="uint16 (b y x) as .npy")
    p.add_argument("--work", type=Path, default=Path(".peers/codecs"))
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--seconds", type=float, default=0.5, help="of one turn")
    p.add_argument("--processor", action="store_true", help="count the processor's time")
    p.add_argument("--only", default="", help="files whose names contain this")
    args = p.parse_args()
    import numpy as np

    os.environ["GDAL_NUM_THREADS"] = "1"
    args.work.mkdir(parents=True, exist_ok=True)
    bands = np.load(args.imagery)
    print("| file | chaski | GDAL | imagecodecs | chaski / GDAL |\n|---|--:|--:|--:|---|")
    for name, (dtype, options) in FILES.items():
        if args.only not in name:
            continue
        path = args.work / f"{name.replace(' ', '-')}.{'png' if 'driver' in options else 'tif'}"
        if not path.exists():
            make(path, bands, dtype, options)
        tiles = tiles_of(path)
        rounds = []
        for _ in range(args.rounds):
            turn = [with_chaski(args.chaski, path, args.seconds, args.processor)]
            turn.append(rate(partial(with_gdal, path), args.seconds, args.processor))
            turn.append(rate(tiles, args.seconds, args.processor) if tiles else 0)
            rounds.append(turn)
        ours, gdal, codecs = (statistics.median(r) for r in zip(*rounds, strict=True))
        ratios = sorted(r[0] / r[1] for r in rounds)
        print(
            f"| {name} | {ours:.0f} | {gdal:.0f} | {f'{codecs:.0f}' if codecs else ''} | "
            f"{statistics.median(ratios):.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f}) |",
            flush=True,
        )


if __name__ == "__main__":
    main()
