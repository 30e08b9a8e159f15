"""Side by side: a TACO 2 ZIP of a folder of chips with statistics, by chaski and tacotoolbox.

    python pack.py make chips 100000            # 6 x 128 x 128 uint16, zstd; needs rasterio
    python pack.py run chips --rounds 3         # in turns; needs tacotoolbox, GDAL and pyarrow

tacotoolbox is used as its documentation does: a Sample for each file, GeotiffStats on each, create.
GDAL's side files (.aux.xml) are off, so that every round computes the statistics. Each run is a
process of its own; times are by the clock and of all processors, memory is the peak. Afterwards ids
and statistics of both containers are compared.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

ABOUT: dict[str, Any] = {
    "id": "chips",
    "dataset_version": "1.0.0",
    "description": "made chips",
    "licenses": ["CC0-1.0"],
    "providers": [{"name": "bench"}],
    "tasks": ["regression"],
}
# Statistics are min, max, mean, std, valid %, and percentiles. GDAL takes those of 100 bins.
EXACT = 5


def module(name: str) -> Any:
    """Imports a module without types."""
    return importlib.import_module(name)


def make(folder: Path, count: int) -> None:
    """Writes chips of smooth bands with noise: windows of one large image."""
    import numpy as np

    rasterio: Any = module("rasterio")

    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(1)
    y, x = np.mgrid[0:2048, 0:2048].astype("f4")
    waves = [np.sin(x / (37 + 9 * b)) + np.cos(y / (53 + 7 * b)) for b in range(6)]
    image = np.stack([900 + 150 * b + 300 * w for b, w in enumerate(waves)])
    image = (image + rng.normal(0, 12, image.shape)).astype("u2")
    how = {"driver": "GTiff", "dtype": "uint16", "count": 6, "height": 128, "width": 128}
    how |= {"compress": "zstd", "predictor": 2, "tiled": True, "blockxsize": 128}
    how |= {"blockysize": 128, "interleave": "pixel", "crs": "EPSG:32630"}
    for k in range(count):
        r, c = (int(v) for v in rng.integers(0, 2048 - 128, 2))
        place = rasterio.Affine(10, 0, 500000 + 10 * c, 0, -10, 4600000 - 10 * r)
        with rasterio.open(folder / f"c{k:06d}.tif", "w", transform=place, **how) as d:
            d.write(image[:, r : r + 128, c : c + 128])


def tacotoolbox(folder: Path, out: Path) -> None:
    """Makes the container with tacotoolbox."""
    toolbox, gdal = module("tacotoolbox"), module("osgeo.gdal")
    sample_of = module("tacotoolbox.sample.datamodel").Sample
    stats = module("tacotoolbox.sample.extensions.geotiff_stats").GeotiffStats
    model, tortilla = module("tacotoolbox.taco.datamodel"), module("tacotoolbox.tortilla.datamodel")

    gdal.UseExceptions()
    gdal.SetConfigOption("GDAL_PAM_ENABLED", "NO")
    samples = []
    for path in sorted(folder.iterdir()):
        sample = sample_of(id=path.stem, path=path)
        sample.extend_with(stats())
        samples.append(sample)
    about = {**ABOUT, "providers": [model.Provider(name="bench")], "taco_version": "2.0.0"}
    taco = model.Taco(tortilla=tortilla.Tortilla(samples=samples), **about)
    toolbox.create(taco, out, "zip", split_size=None)


def chaski(folder: Path, out: Path) -> None:
    """Makes the container with chaski."""
    about = out.with_suffix(".json")
    about.write_text(json.dumps(ABOUT))
    command = [os.environ["CHASKI_BIN"], "pack", "-o", str(out), "--collection", str(about)]
    subprocess.run([*command, "--columns", "stats", str(folder)], check=True)


SIDES = {"chaski": chaski, "tacotoolbox": tacotoolbox}


def step(side: str, folder: Path, out: Path) -> None:
    """Makes a container in this process and its children, and prints what that took."""
    start = time.perf_counter()
    SIDES[side](folder, out)
    wall = time.perf_counter() - start
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    cpu = sum(u.ru_utime + u.ru_stime for u in used)
    print(json.dumps([wall, cpu, max(u.ru_maxrss for u in used) / 1e3]))


def table(path: Path) -> Any:
    """Returns the ids and statistics of a container, by id."""
    import zipfile

    parquet = module("pyarrow.parquet")
    with zipfile.ZipFile(path) as z, z.open("METADATA/level0.parquet") as f:
        rows = parquet.read_table(f, columns=["id", "geotiff:stats"]).to_pylist()
    return {r["id"].removesuffix(".tif"): r["geotiff:stats"] for r in rows}


def differences(a: Path, b: Path) -> tuple[int, float]:
    """Returns how many samples both have, and the largest relative difference of exact values."""
    left, right = table(a), table(b)
    assert left.keys() == right.keys()
    most = 0.0
    for key, bands in left.items():
        for p, q in zip(bands, right[key], strict=True):
            pairs = zip(p[:EXACT], q[:EXACT], strict=True)
            most = max(most, *(abs(v - w) / max(abs(v), 1) for v, w in pairs))
    return len(left), most


def run(folder: Path, work: Path, rounds: int) -> None:
    """Measures in turns, and prints a table."""
    work.mkdir(parents=True, exist_ok=True)
    outs = {side: work / f"{side}.tacozip" for side in SIDES}
    found: dict[str, list[list[float]]] = {side: [] for side in SIDES}
    for _ in range(rounds):
        for side, out in outs.items():
            out.unlink(missing_ok=True)
            command = [sys.executable, __file__, "step", str(folder), "--side", side]
            text = subprocess.run(
                [*command, "--work", str(out)], check=True, stdout=subprocess.PIPE
            ).stdout
            found[side].append(json.loads(text.splitlines()[-1]))
    n, most = differences(*outs.values())
    print(f"{n} samples in both, statistics within {most:.1e}")
    for side, runs in found.items():
        wall, cpu, mb = ([r[k] for r in runs] for k in range(3))
        size = outs[side].stat().st_size / 1e6
        print(
            f"{side:12} {statistics.median(wall):8.1f} s ({min(wall):.1f} - {max(wall):.1f})"
            f" {statistics.median(cpu):8.1f} s of processors {max(mb):6.0f} MB, file {size:.0f} MB"
        )
    for k, name in enumerate(("clock", "processors")):
        times = [b[k] / a[k] for a, b in zip(found["chaski"], found["tacotoolbox"], strict=True)]
        print(
            f"by the {name}: {statistics.median(times):.2f} ({min(times):.2f} - {max(times):.2f})"
        )


def main() -> None:
    """Runs the command line."""
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("what", choices=["make", "run", "step"])
    p.add_argument("folder", type=Path)
    p.add_argument("count", type=int, nargs="?", default=100_000)
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--work", type=Path, default=Path(".peers/pack"))
    p.add_argument("--side", choices=SIDES, help=argparse.SUPPRESS)
    args = p.parse_args()
    if args.what == "make":
        make(args.folder, args.count)
    elif args.what == "step":
        step(args.side, args.folder.absolute(), args.work)
    else:
        run(args.folder, args.work.absolute(), args.rounds)


if __name__ == "__main__":
    main()
