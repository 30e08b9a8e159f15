"""Arrays of samples: chaski against the fastest plain loop of one thread, by processor time.

    PYTHONPATH=python/src CHASKI_BIN=bin/chaski python bench/peers/arrays.py [--only WORDS]

Each row is one HDF5, NetCDF-4 or Zarr file of real imagery, and one way to read it. The loop is
what a user could write without a loader: the library's own slice into a float32 batch, of the same
samples in the same order. The loader gives the same batches, which are compared once; of random
windows each draws its own. Its engine has one worker and 256 MiB. Rounds take turns; the first
batches of each turn are not counted, as they open files. Figures are milliseconds of processor time
of all processes for a sample; the ratio is the median of the rounds, with the lowest and the
highest.

Needs numpy, h5py, netCDF4 and zarr; with the package zarrs, zarr decodes by it.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Loop = Callable[[Path, Array, int], Iterator[Array]]
SIDE = 64
# Samples of files whose chunks have many samples; and of those whose chunks are decoded for one
# sample: 400 MB, more than the engine and the libraries keep.
SAMPLES = 512
MANY = 8192
PACKED = 192
SERIES = 224


@dataclass
class Row:
    """A file and how it is read."""

    name: str
    make: Callable[[Path, Array], Any]
    loops: Mapping[str, Loop]
    options: dict[str, Any]
    batch: int = 128
    count: int = SAMPLES  # of samples in the file
    inside: str = "x"
    suffix: str = ".h5"
    extra: dict[str, Any] = field(default_factory=dict)
    pool: int = 0  # of Blocks; 0 for a shuffle of all
    windows: int = 0  # the side of random windows; 0 for whole samples


def chips(scene: Array, count: int, side: int, seed: int = 1) -> Array:
    """Cuts chips (n b y x) from the scene at random."""
    rng = np.random.default_rng(seed)
    _, height, width = scene.shape
    out = np.empty((count, len(scene), side, side), scene.dtype)
    for k in range(count):
        y, x = rng.integers(0, height - side), rng.integers(0, width - side)
        out[k] = scene[:, y : y + side, x : x + side]
    return out


def mosaic(scene: Array, side: int) -> Array:
    """Repeats the first band of the scene, with noise, to a square."""
    rng = np.random.default_rng(2)
    band = np.tile(scene[0], (side // scene.shape[1] + 1, side // scene.shape[2] + 1))
    return (band[:side, :side] + rng.integers(0, 8, (side, side))).astype("u2")


def h5(data: Callable[[Array], Array], **options: Any) -> Callable[[Path, Array], None]:
    """Returns what writes an HDF5 file of one dataset."""

    def make(path: Path, scene: Array) -> None:
        import h5py  # type: ignore[import-untyped]

        with h5py.File(path, "w") as f:
            f.create_dataset("x", data=data(scene), **options)

    return make


def zarr_of(data: Callable[[Array], Array], **options: Any) -> Callable[[Path, Array], None]:
    """Returns what writes a Zarr group of one array."""

    def make(path: Path, scene: Array) -> None:
        import zarr

        values = data(scene)
        made = zarr.open_group(path, mode="w").create_array(
            "x", shape=values.shape, dtype=values.dtype, **options
        )
        made[:] = values

    return make


def series(scene: Array) -> Array:
    """Returns series (n y x t) of one byte, as SEVIR has them."""
    rng = np.random.default_rng(3)
    eight = (mosaic(scene, 192 + 64)[:, :, None] >> 4).astype("u1")
    out = np.empty((SERIES, 192, 192, 49), "u1")
    for n in range(len(out)):
        y, x = rng.integers(0, 64, 2)
        out[n] = np.roll(eight[y : y + 192, x : x + 192], n, 0)
        out[n] += rng.integers(0, 3, out[n].shape, dtype="u1")
    return out


def packed(path: Path, scene: Array) -> None:
    """Writes images packed as NetCDF has them."""
    import netCDF4

    planes = chips(scene, PACKED * 64 // len(scene) + 1, 128).reshape(-1, 128, 128)
    values = planes[: PACKED * 64].reshape(PACKED, 64, 128, 128)
    with netCDF4.Dataset(path, "w") as f:
        for name, size in zip("nbyx", values.shape, strict=True):
            f.createDimension(name, size)
        chunks = (1, *values.shape[1:])
        v = f.createVariable("v", "i2", tuple("nbyx"), zlib=True, chunksizes=chunks, fill_value=-1)
        v.set_auto_maskandscale(False)
        v.scale_factor, v.add_offset = np.float32(0.0001), np.float32(0.5)
        v[:] = (values & 0x7FFF).astype("i2")


def batches(
    order: Array, batch: int, shape: tuple[int, ...], read: Callable[[Any], Array]
) -> Iterator[Array]:
    """Yields batches of float32, of samples of a shape that are read one by one."""
    for at in range(0, len(order), batch):
        samples = order[at : at + batch]
        out = np.empty((len(samples), *shape), "f4")
        for k, sample in enumerate(samples):
            out[k] = read(sample)
        yield out


def whole(x: Any, order: Array, batch: int) -> Iterator[Array]:
    """Reads whole samples."""
    return batches(order, batch, x.shape[1:], lambda n: x[int(n)])


def windows(x: Any, order: Array, batch: int) -> Iterator[Array]:
    """Reads windows."""
    side = int(order[0][2])

    def read(window: Any) -> Array:
        top, left, _ = window
        return np.asarray(x[top : top + side, left : left + side])

    return batches(order, batch, (1, side, side), read)


def read_h5(path: Path, order: Array, batch: int) -> Iterator[Array]:
    """Reads whole samples with h5py."""
    import h5py

    with h5py.File(path) as f:
        yield from whole(f["v" if "v" in f else "x"], order, batch)


def read_h5_window(path: Path, order: Array, batch: int) -> Iterator[Array]:
    """Reads windows with h5py."""
    import h5py

    with h5py.File(path) as f:
        yield from windows(f["x"], order, batch)


def opened(path: Path) -> Any:
    """Opens an array with zarr, which decodes by zarrs if it is there."""
    import zarr

    try:
        import zarrs  # type: ignore[import-not-found]  # noqa: F401

        zarr.config.set({"codec_pipeline.path": "zarrs.ZarrsCodecPipeline"})
        zarr.config.set({"threading.max_workers": 1})
    except ImportError:
        pass
    return zarr.open_group(path, mode="r")["x"]


def read_zarr(path: Path, order: Array, batch: int) -> Iterator[Array]:
    """Reads whole samples with zarr."""
    return whole(opened(path), order, batch)


def read_zarr_window(path: Path, order: Array, batch: int) -> Iterator[Array]:
    """Reads windows with zarr."""
    return windows(opened(path), order, batch)


def read_series(path: Path, order: Array, batch: int) -> Iterator[Array]:
    """Reads series, whose time comes first in the batch."""
    import h5py

    with h5py.File(path) as f:
        x = f["x"]
        shape = (x.shape[3], 1, *x.shape[1:3])
        yield from batches(order, batch, shape, lambda n: x[int(n)].transpose(2, 0, 1)[:, None])


def read_packed_h5(path: Path, order: Array, batch: int) -> Iterator[Array]:
    """Reads packed images with h5py, and decodes them in place."""
    for out in read_h5(path, order, batch):
        out *= np.float32(0.0001)
        out += np.float32(0.5)
        yield out


def read_packed_netcdf(path: Path, order: Array, batch: int) -> Iterator[Array]:
    """Reads packed images with netCDF4, which decodes them."""
    import netCDF4

    with netCDF4.Dataset(path) as f:
        f["v"].set_auto_mask(False)
        yield from whole(f["v"], order, batch)


GZIP = {"compression": "gzip", "shuffle": True}
WHOLE = {"dims": "n b y x"}


def small(scene: Array) -> Array:
    """Returns chips (512, 6, 64, 64)."""
    return chips(scene, SAMPLES, SIDE)


def many(scene: Array) -> Array:
    """Returns chips (8192, 6, 64, 64)."""
    return chips(scene, MANY, SIDE)


def scene_of(scene: Array) -> Array:
    """Returns a scene of 8,192²."""
    return mosaic(scene, 8192)


def rows() -> list[Row]:
    """Returns the rows of the table."""
    from zarr.codecs import BloscCodec, ZstdCodec

    h5s, wins = {"h5py": read_h5}, {"h5py": read_h5_window}
    zw = {"zarr": read_zarr_window}
    chunk = (1, 6, SIDE, SIDE)
    window: dict[str, Any] = {"windows": 128, "batch": 16, "count": 1, "options": {"dims": "y x"}}
    return [
        Row("a chunk a sample, gzip", h5(many, chunks=chunk, **GZIP), h5s, WHOLE),
        Row("32 samples a chunk, gzip", h5(small, chunks=(32, *chunk[1:]), **GZIP), h5s, WHOLE),
        Row("more of 32 a chunk, gzip", h5(many, chunks=(32, *chunk[1:]), **GZIP), h5s, WHOLE),
        Row(
            "the same, Blocks(pool=32)",
            h5(many, chunks=(32, *chunk[1:]), **GZIP),
            h5s,
            WHOLE,
            pool=32,
        ),
        Row("`chunks=True`, gzip", h5(small, chunks=True, **GZIP), h5s, WHOLE),
        Row("contiguous", h5(many), h5s, WHOLE),
        Row("windows of 8,192², gzip", h5(scene_of, chunks=(512, 512), **GZIP), wins, **window),
        Row(
            "series (n y x t), gzip",
            h5(series, chunks=(1, 192, 192, 49), compression="gzip"),
            {"h5py": read_series},
            {"dims": "n y x t"},
            batch=4,
            count=SERIES,
        ),
        Row(
            "NetCDF-4, packed",
            packed,
            {"h5py": read_packed_h5, "netCDF4": read_packed_netcdf},
            WHOLE,
            batch=4,
            count=PACKED,
            suffix=".nc",
            inside="v",
            extra={"physical": True},
        ),
        Row(
            "Zarr windows, zstd",
            zarr_of(scene_of, chunks=(256, 256), compressors=[ZstdCodec(level=3)]),
            zw,
            suffix=".zarr",
            **window,
        ),
        Row(
            "Zarr windows, shards",
            zarr_of(
                scene_of,
                chunks=(256, 256),
                shards=(1024, 1024),
                compressors=[ZstdCodec(level=3)],
            ),
            zw,
            suffix=".zarr",
            **window,
        ),
        Row(
            "Zarr windows, Blosc",
            zarr_of(scene_of, chunks=(256, 256), compressors=[BloscCodec(cname="lz4")]),
            zw,
            suffix=".zarr",
            **window,
        ),
        Row(
            "Zarr, 32 samples a chunk",
            zarr_of(small, chunks=(32, *chunk[1:]), compressors=[ZstdCodec(level=3)]),
            {"zarr": read_zarr},
            WHOLE,
            suffix=".zarr",
        ),
    ]


def family() -> float:
    """Returns the seconds of processor time of this process and of all that it started."""
    pid = os.getpid()
    ticks = os.sysconf("SC_CLK_TCK")
    stats: dict[int, tuple[int, float]] = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                text = Path("/proc", entry, "stat").read_text()
            except OSError:
                continue
            parts = text.rpartition(")")[2].split()
            stats[int(entry)] = int(parts[1]), (int(parts[11]) + int(parts[12])) / ticks
    members, grown = {pid}, True
    while grown:
        children = {child for child, (parent, _) in stats.items() if parent in members}
        grown = not children <= members
        members |= children
    return sum(stats[m][1] for m in members)


def timed(batches: Iterator[Any], skip: int, seconds: float, used: Callable[[], float]) -> float:
    """Returns the milliseconds of a processor for a sample."""
    for _ in range(skip):
        next(batches)
    start, clock, samples = used(), time.monotonic(), 0
    for batch in batches:
        samples += len(batch)
        if time.monotonic() - clock > seconds:
            break
    return (used() - start) / samples * 1e3


def load(row: Row, path: Path, memory: int) -> Any:
    """Opens the file with chaski."""
    import chaski

    options: dict[str, Any] = {"rows": chaski.Rows(**row.options), "batch_size": row.batch}
    if row.windows:
        options["window"] = chaski.RandomWindow(row.windows, per_asset=4096)
    if row.pool:
        options["shuffle"] = chaski.Blocks(pool=row.pool)
    options["pixels"] = chaski.Pixels(dtype="float32")
    options["fields"] = {"image": chaski.Field(**row.extra)}
    engine = chaski.Engine(workers=1, memory=memory)
    return chaski.load(f"{path}::{row.inside}", seed=7, engine=engine, **options)


def ours(row: Row, loader: Any) -> Iterator[Array]:
    """Yields the batches of chaski."""
    while True:
        for batch in loader:
            yield batch["image"]


def order_of(row: Row, path: Path, memory: int) -> tuple[Array, Array]:
    """Returns the samples of chaski's first epoch, in its order, and its first batch."""
    with load(row, path, memory) as loader:
        found: list[Any] = []
        first: Array | None = None
        for batch in loader:
            first = batch["image"].copy() if first is None else first
            found += [int(i) for i in batch["sample"]]
            if len(found) >= 2048:
                break
    assert first is not None
    if row.windows:  # the loops draw windows of their own
        corners = np.random.default_rng(4).integers(0, 8192 - row.windows, (2048, 2))
        return np.insert(corners, 2, row.windows, 1), first
    return np.array(found), first


def main() -> None:
    """Makes the files, compares, measures, and prints a table."""
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--imagery", type=Path, help="uint16 (b y x) as .npy; default: the demo's scene")
    p.add_argument("--work", type=Path, default=Path(".peers/arrays"))
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--seconds", type=float, default=2.0, help="of one turn")
    p.add_argument("--memory", type=int, default=256 << 20, help="bytes of the engine")
    p.add_argument("--only", default="", help="rows whose names contain this")
    args = p.parse_args()
    args.work.mkdir(parents=True, exist_ok=True)
    if args.imagery:
        scene = np.load(args.imagery)
    else:
        import rasterio

        with rasterio.open("testdata/demo/coast.tif") as f:
            scene = f.read()
    print("| file | chaski ms | loop | ms | ratio |\n|---|--:|---|--:|---|")
    for row in rows():
        if args.only not in row.name:
            continue
        path = args.work / ("".join(c if c.isalnum() else "-" for c in row.name) + row.suffix)
        if not path.exists():
            row.make(path, scene)
        order, first = order_of(row, path, args.memory)
        for name, loop in row.loops.items():
            theirs = next(loop(path, order, row.batch))
            if not row.windows and not np.allclose(theirs.reshape(first.shape), first):
                raise SystemExit(f"{row.name}: chaski and {name} differ")
        tiled = np.concatenate([order] * 50)
        turns: dict[str, list[float]] = {"chaski": [], **{name: [] for name in row.loops}}
        for _ in range(args.rounds):
            with load(row, path, args.memory) as loader:
                turns["chaski"].append(timed(ours(row, loader), 8, args.seconds, family))
            for name, loop in row.loops.items():
                turns[name].append(
                    timed(loop(path, tiled, row.batch), 2, args.seconds, time.process_time)
                )
        for name in row.loops:
            ratios = sorted(b / a for a, b in zip(turns["chaski"], turns[name], strict=True))
            print(
                f"| {row.name} | {statistics.median(turns['chaski']):.3g} | {name} "
                f"| {statistics.median(turns[name]):.3g} | {statistics.median(ratios):.2f} "
                f"({ratios[0]:.2f} to {ratios[-1]:.2f}) |",
                flush=True,
            )


if __name__ == "__main__":
    main()
