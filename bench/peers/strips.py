"""Windows of an image in one compressed strip: chaski and rasterio, time and memory.

    python strips.py --chaski bin/chaski --scene testdata/demo/coast.tif --work .peers --rounds 5

It makes files of 10,000 by 10,000 uint16 in one strip, and reads windows of 256 by 256 pixels at
the top, in the middle and at the end. In every round both readers take their turn, each in a
process of its own, and the pixels are compared. The time of chaski is that of its whole process
(`chaski cat`), the time of rasterio that of opening and reading. Memory is the peak of the process;
"idle" is that of Python with rasterio and numpy before it opens a file, and that of `chaski
--version`.

Needs numpy and rasterio.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

SIDE, WINDOW = 10_000, 256
CODECS: dict[str, dict[str, Any]] = {
    "deflate": {"compress": "deflate", "predictor": 2},
    "zstd": {"compress": "zstd", "predictor": 2},
    "lzw": {"compress": "lzw", "predictor": 2},
    "packbits": {"compress": "packbits"},
}
TOPS = {"top": 0, "middle": SIDE // 2, "end": SIDE - WINDOW}


def make(path: Path, scene: Path, options: dict[str, Any]) -> None:
    """Writes one strip: the first band of the scene, side by side and below itself."""
    import numpy as np
    import rasterio

    with rasterio.open(scene) as src:
        band = src.read(1).astype("uint16")
    data = np.tile(band, [-(-SIDE // n) for n in band.shape])[:SIDE, :SIDE]
    shape: dict[str, Any] = {
        "width": SIDE,
        "height": SIDE,
        "count": 1,
        "dtype": "uint16",
        "blockysize": SIDE,
    }
    shape["transform"] = rasterio.Affine(20, 0, 0, 0, -20, 0)
    with rasterio.open(path, "w", driver="GTiff", tiled=False, **shape, **options) as dst:
        dst.write(data, 1)


def with_rasterio(path: str, top: int) -> None:
    """Reads a window in this process and prints what it took."""
    import numpy  # noqa: F401  # counts as idle
    import rasterio
    from rasterio.windows import Window

    idle = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.perf_counter()
    with rasterio.open(path) as src:
        data = src.read(1, window=Window(0, top, WINDOW, WINDOW)).tobytes()
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(json.dumps([seconds, peak, idle, hashlib.sha256(data).hexdigest()]))


def with_chaski(chaski: str, path: str, top: int) -> None:
    """Reads a window with `chaski cat` and prints what it took."""
    subprocess.run([chaski, "--version"], check=True, stdout=subprocess.DEVNULL)
    idle = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    argv = [chaski, "cat", "--format", "raw", "--threads", "1", f"--y={top}:{top + WINDOW}"]
    start = time.perf_counter()
    run = subprocess.run([*argv, f"--x=0:{WINDOW}", path], check=True, stdout=subprocess.PIPE)
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    print(json.dumps([seconds, peak, idle, hashlib.sha256(run.stdout).hexdigest()]))


def measure(options: argparse.Namespace) -> None:
    """Prints a table of medians."""
    options.work.mkdir(parents=True, exist_ok=True)
    mib = 1 << 10  # ru_maxrss is in KiB
    for codec in CODECS:
        path = options.work / f"strip-{codec}.tif"
        # In a process of its own, because a child begins with the peak of its parent.
        subprocess.check_call(
            [sys.executable, __file__, "--make", codec, "--path", path, "--scene", options.scene]
        )
        print(f"{codec}: {path.stat().st_size >> 20} MiB")
        for where, top in TOPS.items():
            took: dict[str, list[Any]] = {"chaski": [], "rasterio": []}
            for _ in range(options.rounds):
                for reader, results in took.items():
                    argv = [sys.executable, __file__, "--chaski", options.chaski, "--one", reader]
                    out = subprocess.check_output([*argv, "--path", path, "--top", str(top)])
                    results.append(json.loads(out))
            if len({r[3] for results in took.values() for r in results}) != 1:
                raise SystemExit(f"{path} {where}: other pixels")
            for reader, results in took.items():
                seconds = [r[0] for r in results]
                print(
                    f"  {where:7}{reader:9} {statistics.median(seconds):.3f} s"
                    f" ({min(seconds):.3f} to {max(seconds):.3f}),"
                    f" peak {max(r[1] for r in results) // mib} MiB,"
                    f" idle {max(r[2] for r in results) // mib} MiB"
                )
        path.unlink()


def main() -> None:
    """Parses the command line and measures, or does one step of it in this process."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--chaski", default="bin/chaski")
    parser.add_argument("--scene", type=Path, default=Path("testdata/demo/coast.tif"))
    parser.add_argument("--work", type=Path, default=Path(".peers"))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--one", choices=["chaski", "rasterio"], help=argparse.SUPPRESS)
    parser.add_argument("--make", choices=CODECS, help=argparse.SUPPRESS)
    parser.add_argument("--path", help=argparse.SUPPRESS)
    parser.add_argument("--top", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.make:
        make(Path(options.path), options.scene, CODECS[options.make])
    elif options.one == "chaski":
        with_chaski(options.chaski, options.path, options.top)
    elif options.one == "rasterio":
        with_rasterio(options.path, options.top)
    else:
        measure(options)


if __name__ == "__main__":
    main()
