"""Samples per second of chaski and of what one would use instead, side by side on one workload.

    peers.py make DIR --imagery SCENE.npy     write the workload in every peer's own format
    peers.py make1 DIR --imagery SCENE.npy    the same as rumi files of generation 1
    peers.py run DIR [--rounds 3] [--seconds 12] [--peer NAME] [--workload NAME] [--out REPORT]
    peers.py decode DIR                       MB/s of whole chips in one thread, without a loader
    peers.py list                             the peers of each workload

SCENE.npy holds Sentinel-2 samples of six 20 m bands, uint16, of shape (6, 973, 967) or larger.

Workload `chips`: 512 chips of (6, 256, 256) uint16, one file a chip, in tiles of 128 pixels. Every
epoch visits them in a new random order. Workload `windows`: 6 scenes of (6, 2048, 2048), in tiles
of 256 pixels, read as random windows of 256 by 256.

Of both, a batch is 32 samples as float32, (x - mean) / std of its band, "n b y x": a torch tensor
in this process, of which one value a sample is read. A figure is samples per second over
`--seconds`, after one batch of warm-up a worker. Peers get the same number of workers: processes of
a DataLoader, or threads that decode. Each runs in a process of its own. A round runs all peers
once, in an order that turns from round to round, so that a slow minute of the machine does not fall
on one of them. Nobody keeps decoded tiles: GDAL's block cache is held to 32 MB.

`make` needs numpy, torch, rasterio>=1.5 (GDAL>=3.11), and for the peers of that name tifffile,
imagecodecs, rumi-eo>=0.26, geozl, mosaicml-streaming and zarr; `make1` and the peer `rumi1` need
rumi-eo==0.8.3 and openzl, so an environment of their own (`run --python rumi1=PATH`, with torch).
`run` needs, beside those, grpcio and protobuf, and `make build` before it. What is missing is
reported as missing.
"""

from __future__ import annotations

import argparse
import datetime
import functools
import importlib.metadata
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

Image = npt.NDArray[np.uint16]  # (bands, y, x)

os.environ.setdefault("GDAL_CACHEMAX", "32")  # MB, of each process

# The package and the engine of this checkout, if no other is installed or named.
ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "python" / "src"))
if (ROOT / "bin" / "chaski").exists():
    os.environ.setdefault("CHASKI_BIN", str(ROOT / "bin" / "chaski"))

BANDS, SIDE = 6, 256
CHIPS, CHIP_TILE = 512, 128
SCENES, SCENE_SIDE, SCENE_TILE = 6, 2048, 256
WINDOWS = 4096  # of an epoch

BASELINE = "rasterio"


# The workload.


def chips(scene: Image) -> Iterator[Image]:
    """Yields crops of the scene, turned by multiples of 90 degrees."""
    r = np.random.default_rng(7)
    for _ in range(CHIPS):
        y = r.integers(0, scene.shape[1] - SIDE)
        x = r.integers(0, scene.shape[2] - SIDE)
        crop = scene[:, y : y + SIDE, x : x + SIDE]
        yield np.ascontiguousarray(np.rot90(crop, r.integers(4), axes=(1, 2)))


def scenes(scene: Image) -> Iterator[Image]:
    """Yields large scenes, put together from nine mirrored copies so that no edge shows."""
    r = np.random.default_rng(8)
    for i in range(SCENES):
        t = np.rot90(scene[:, :960, :960], i % 4, axes=(1, 2))
        middle = np.concatenate([t, t[:, :, ::-1], t], axis=2)
        big = np.concatenate([middle, middle[:, ::-1], middle], axis=1)
        y, x = r.integers(0, big.shape[1] - SCENE_SIDE, 2)
        yield np.ascontiguousarray(big[:, y : y + SCENE_SIDE, x : x + SCENE_SIDE])


WORKLOADS: dict[str, tuple[Callable[[Image], Iterator[Image]], int]] = {
    "chips": (chips, CHIP_TILE),
    "windows": (scenes, SCENE_TILE),
}


def random_windows() -> npt.NDArray[np.int64]:
    """Returns (scene, y, x) of the windows of an epoch."""
    r = np.random.default_rng(1)
    corner = SCENE_SIDE - SIDE
    columns = (r.integers(0, n, WINDOWS) for n in (SCENES, corner, corner))
    return np.stack(list(columns), axis=1)


def load_scene(path: Path) -> Image:
    """Reads the imagery that everything is cut from."""
    scene = np.load(path)
    if scene.dtype != np.uint16 or scene.ndim != 3 or scene.shape[0] != BANDS:
        raise SystemExit(f"{path}: {scene.dtype} of shape {scene.shape}, not uint16 of six bands")
    return scene


# Writing it.


def write_tog(path: Path, image: Image, tile: int) -> None:
    """Writes a TACO optimized GeoTIFF with GDAL's COG driver."""
    import rasterio.shutil

    profile = {
        "driver": "GTiff",
        "height": image.shape[1],
        "width": image.shape[2],
        "count": image.shape[0],
        "dtype": image.dtype,
    }
    options = {
        "INTERLEAVE": "TILE",
        "BLOCKSIZE": tile,
        "COMPRESS": "ZSTD",
        "LEVEL": 13,
        "PREDICTOR": "YES",
        "BIGTIFF": "YES",
        "OVERVIEWS": "NONE",
    }
    with rasterio.MemoryFile() as m:
        with m.open(**profile) as d:
            d.write(image)
        with m.open() as d:
            rasterio.shutil.copy(d, path, driver="COG", **options)


def write_rumi(path: Path, image: Image, tile: int) -> None:
    """Writes a rumi file of the current generation, and its header blob beside it."""
    import rumi

    import geozl

    frames = rumi.frames(image, "b (row h) (col w) -> row col b (h w)", tile_size=tile)
    graph = None
    for f in frames:
        graph = graph or geozl.graph(f.data, "planar>zigzag>transpose>entropy")
        f.compressed = geozl.compress(f.data, graph=graph)
    names = [f"B{i}" for i in range(image.shape[0])]
    _, header = rumi.write(str(path), frames, bands=names, time=["2024-01-01"])
    blob_of(path).write_bytes(header)


def blob_of(path: Path) -> Path:
    """Returns where the header blob of a rumi file lies."""
    return path.with_name(path.name + ".hdr")


def make(out: Path, scene: Image) -> None:
    """Writes TOGs, rumi files, and for `chips` MDS shards and a zarr array, and the statistics."""
    for name, (images, tile) in WORKLOADS.items():
        folder = out / name
        for sub in ("tog", "rumi"):
            (folder / sub).mkdir(parents=True, exist_ok=True)
        failed: dict[str, str] = {}
        total = squares = np.zeros(BANDS)
        pixels = 0
        for i, image in enumerate(images(scene)):
            f = image.astype(np.float64)
            total = total + f.sum((1, 2))
            squares = squares + (f * f).sum((1, 2))
            pixels += image[0].size
            write_tog(folder / "tog" / f"{i:05d}.tif", image, tile)
            if "rumi" not in failed:
                try:
                    write_rumi(folder / "rumi" / f"{i:05d}.rumi", image, tile)
                except Exception as e:
                    failed["rumi"] = repr(e)
        mean = total / pixels
        std = np.sqrt(squares / pixels - mean**2)
        (folder / "stats.json").write_text(json.dumps({"mean": list(mean), "std": list(std)}))
        if name == "chips":
            for kind, write in (("mds", write_mds), ("zarr", write_zarr)):
                try:
                    write(folder, scene)
                except Exception as e:
                    failed[kind] = repr(e)
        for kind, why in failed.items():
            print(f"{name}: {kind} is not written: {why[:200]}", file=sys.stderr)


def write_mds(folder: Path, scene: Image) -> None:
    """Writes the chips as shards of mosaicml-streaming."""
    from streaming import MDSWriter

    columns = {"x": f"ndarray:uint16:{BANDS},{SIDE},{SIDE}"}
    with MDSWriter(
        out=str(folder / "mds"), columns=columns, compression="zstd:3", size_limit=1 << 24
    ) as w:
        for image in chips(scene):
            w.write({"x": image})


def write_zarr(folder: Path, scene: Image) -> None:
    """Writes the chips as one zarr array, a chunk a chip."""
    import zarr

    shape = (BANDS, SIDE, SIDE)
    codec = zarr.codecs.BloscCodec(cname="zstd", clevel=5, shuffle="shuffle")
    z = zarr.create_array(
        str(folder / "chips.zarr"),
        shape=(CHIPS, *shape),
        chunks=(1, *shape),
        dtype="uint16",
        compressors=codec,
    )
    for i, image in enumerate(chips(scene)):
        z[i] = image


def make1(out: Path, scene: Image) -> None:
    """Writes rumi files of generation 1, with the graph delta > transpose > entropy."""
    import openzl.ext as zl
    import rumi

    compressor = zl.Compressor()
    entropy = zl.nodes.TransposeSplit()(compressor, zl.graphs.Entropy()(compressor))
    numbers = zl.nodes.ConvertNumToStructLE()(compressor, entropy)
    compressor.select_starting_graph(zl.nodes.DeltaInt()(compressor, numbers))

    def compress(tile: npt.NDArray[Any]) -> bytes:
        context = zl.CCtx()
        context.ref_compressor(compressor)
        context.set_parameter(zl.CParam.FormatVersion, rumi.OPENZL_VERSION)
        flat = np.ascontiguousarray(tile).reshape(-1)
        return bytes(context.compress([zl.Input(zl.Type.Numeric, flat)]))

    for name, (images, side) in WORKLOADS.items():
        folder = out / name / "rumi1"
        folder.mkdir(parents=True, exist_ok=True)
        for i, image in enumerate(images(scene)):
            path = folder / f"{i:05d}.tif"
            tiles, layout = rumi.tile(image, tile=side)
            rumi.write(str(path), [compress(t) for t in tiles], layout)
            blob_of(path).write_bytes(rumi.index_file(str(path)))


# The peers. Each makes an endless number of epochs of batches, (n, b, y, x) float32 tensors.


@dataclass(frozen=True)
class Job:
    """What a peer loads, and with what."""

    folder: Path
    workload: str
    batch: int
    workers: int

    def files(self, pattern: str) -> list[Path]:
        """Returns the workload's files."""
        found = sorted(self.folder.glob(pattern))
        if not found:
            raise FileNotFoundError(f"there is no {self.folder}/{pattern}: not made")
        return found

    @property
    def stats(self) -> tuple[list[float], list[float]]:
        """Mean and standard deviation of the bands."""
        s = json.loads((self.folder / "stats.json").read_text())
        return s["mean"], s["std"]


Read = Callable[[Path, "tuple[int, int] | None"], Image]
"""Reads a file, or its window of SIDE by SIDE pixels from (y, x)."""


def data_loader(job: Job, dataset: Any) -> Iterable[Any]:
    """Returns torch's DataLoader of a dataset, as one would set it up."""
    import torch

    return torch.utils.data.DataLoader(
        dataset,
        batch_size=job.batch,
        shuffle=True,
        drop_last=True,
        num_workers=job.workers,
        persistent_workers=job.workers > 0,
    )


def normalizer(job: Job) -> Callable[[Image], Any]:
    """Returns what makes a tensor of an image in a worker."""
    import torch

    mean, std = (np.asarray(v, np.float32)[:, None, None] for v in job.stats)
    return lambda image: torch.from_numpy((image.astype(np.float32) - mean) / std)


class Files:
    """A map-style dataset of files or of windows of them."""

    def __init__(self, job: Job, pattern: str, read: Read) -> None:
        """Finds the files."""
        self.files = job.files(pattern)
        self.windows = random_windows() if job.workload == "windows" else None
        self.read = read
        self.normalize = normalizer(job)

    def __len__(self) -> int:
        """Returns the samples of an epoch."""
        return len(self.files) if self.windows is None else len(self.windows)

    def __getitem__(self, i: int) -> Any:
        """Returns a sample."""
        if self.windows is None:
            return self.normalize(self.read(self.files[i], None))
        k, y, x = (int(v) for v in self.windows[i])
        return self.normalize(self.read(self.files[k], (y, x)))


def rasterio_reader() -> Read:
    """GDAL; of scenes, the open dataset is kept in each worker."""
    import rasterio
    from rasterio.windows import Window

    opened = functools.cache(rasterio.open)

    def read(path: Path, at: tuple[int, int] | None) -> Image:
        if at is None:
            with rasterio.open(path) as d:
                return d.read()
        return opened(path).read(window=Window(at[1], at[0], SIDE, SIDE))

    return read


def tifffile_reader() -> Read:
    """Tifffile and imagecodecs, whole files."""
    import tifffile

    return lambda path, _: tifffile.imread(path)


def rumi_reader() -> Read:
    """The package rumi, current generation."""
    import rumi

    rumi.set_num_threads(1)
    blob = functools.cache(lambda path: blob_of(path).read_bytes())

    def read(path: Path, at: tuple[int, int] | None) -> Image:
        window = {} if at is None else {"window": (*at, SIDE, SIDE)}
        return rumi.read(str(path), blob(path), pattern="b y x", **window)

    return read


def rumi1_reader() -> Read:
    """The package rumi of generation 1, release 0.8.3."""
    import rumi

    if not hasattr(rumi, "parse"):
        raise ImportError("rumi-eo is not 0.8.3; name an interpreter: --python rumi1=PATH")
    header = functools.cache(lambda path: rumi.parse(blob_of(path).read_bytes()))

    def read(path: Path, at: tuple[int, int] | None) -> Image:
        window = {} if at is None else {a: (v, v + SIDE) for a, v in zip("yx", at, strict=True)}
        return rumi.read(str(path), header(path), "b y x", **window)

    return read


# Those that read a file at a time, and the files that they read.
READERS: dict[str, tuple[str, Callable[[], Read]]] = {
    "rasterio": ("tog/*.tif", rasterio_reader),
    "tifffile": ("tog/*.tif", tifffile_reader),
    "rumi": ("rumi/*.rumi", rumi_reader),
    "rumi1": ("rumi1/*.tif", rumi1_reader),
}


def with_reader(job: Job, name: str) -> Iterable[Any]:
    """Returns a DataLoader of what reads a file at a time."""
    pattern, reader = READERS[name]
    return data_loader(job, Files(job, pattern, reader()))


def with_rumi_many(job: Job) -> Iterator[Any]:
    """The package rumi, current generation, a read a batch in threads of this process."""
    import rumi
    import torch

    rumi.set_num_threads(max(1, job.workers))
    files = [str(p) for p in job.files("rumi/*.rumi")]
    blobs = [blob_of(Path(p)).read_bytes() for p in files]
    mean, std = (torch.tensor(v, dtype=torch.float32)[:, None, None] for v in job.stats)
    windows = random_windows()
    if job.workload == "chips":
        windows = np.stack([np.arange(len(files))] * 3, axis=1)
    r = np.random.default_rng(3)
    while True:
        order = r.permutation(len(windows))
        for start in range(0, len(order) - job.batch + 1, job.batch):
            picked = windows[order[start : start + job.batch]]
            at = {}
            if job.workload == "windows":
                at["windows"] = [(int(y), int(x), SIDE, SIDE) for _, y, x in picked]
            a = rumi.read_many(
                [files[k] for k in picked[:, 0]],
                [blobs[k] for k in picked[:, 0]],
                framework="torch",
                **at,
            )
            yield (a.to(torch.float32) - mean) / std


def with_zarr(job: Job) -> Iterable[Any]:
    """One zarr array, a chunk a chip."""
    import zarr

    if not (job.folder / "chips.zarr").exists():
        raise FileNotFoundError("chips.zarr: not made")
    array = zarr.open(str(job.folder / "chips.zarr"), mode="r")
    normalize = normalizer(job)

    class Chips:
        def __len__(self) -> int:
            return CHIPS

        def __getitem__(self, i: int) -> Any:
            return normalize(array[i])

    return data_loader(job, Chips())


def with_mds(job: Job) -> Iterable[Any]:
    """Shards of mosaicml-streaming, which were decompressed before."""
    import torch
    from streaming import StreamingDataset

    job.files("mds/*")
    normalize = normalizer(job)

    class Shards(StreamingDataset):
        def __getitem__(self, i: int) -> Any:
            return normalize(super().__getitem__(i)["x"])

    data = Shards(local=str(job.folder / "mds"), shuffle=True, batch_size=job.batch, predownload=64)
    return torch.utils.data.DataLoader(
        data,
        batch_size=job.batch,
        num_workers=job.workers,
        persistent_workers=job.workers > 0,
    )


def with_chaski(job: Job, kind: str, transport: Any = "auto") -> Iterator[Any]:
    """chaski: an engine of its own, batches in shared memory or over gRPC into this process."""
    import chaski.torch

    files = job.files(f"{kind}/*.tif")
    mean, std = (np.asarray(v) for v in job.stats)
    options: dict[str, Any] = {}
    if job.workload == "windows":
        options = {"window": (SIDE, SIDE), "windows_per_asset": -(-WINDOWS // len(files))}
    batches = chaski.torch.IterableDataset(
        f"{job.folder}/{kind}/*.tif",
        batch_size=job.batch,
        shuffle=True,
        drop_last=True,
        dtype="float32",
        normalize=chaski.Normalize(1 / std, -mean / std),
        workers=max(1, job.workers),
        transport=transport,
        **options,
    )
    while True:
        for batch in batches:
            yield batch["image"]


PEERS: dict[str, Callable[[Job], Iterable[Any]]] = {
    "chaski": functools.partial(with_chaski, kind="tog"),
    "chaski-grpc": functools.partial(with_chaski, kind="tog", transport="grpc"),
    "chaski-rumi1": functools.partial(with_chaski, kind="rumi1"),
    **{name: functools.partial(with_reader, name=name) for name in READERS},
    "rumi-many": with_rumi_many,
    "mds": with_mds,
    "zarr": with_zarr,
}
# The engine alone: batches in a Go process, nothing handed over. Not a peer of the others.
ALONE = {"chaski-load": "tog", "chaski-load-rumi1": "rumi1"}

PEERS_OF = {
    "chips": [*PEERS, *ALONE],
    "windows": [
        "chaski",
        "chaski-grpc",
        "chaski-rumi1",
        "rasterio",
        "rumi",
        "rumi1",
        "rumi-many",
        *ALONE,
    ],
}


# Measuring.


def measure(batches: Iterable[Any], warm_up: int, seconds: float) -> float:
    """Returns samples per second: the loop of a consumer that does nothing else."""
    samples, start = 0, 0.0
    while True:
        for batch in batches:
            float(batch[:, 0, 0, 0].sum())
            if warm_up > 0:
                warm_up -= 1
                start = time.perf_counter()
                continue
            samples += batch.shape[0]
            passed = time.perf_counter() - start
            if passed > seconds:
                return samples / passed


def measure_alone(job: Job, kind: str, seconds: float) -> float:
    """Returns samples per second of the engine by itself."""
    job.files(f"{kind}/*.tif")
    command = [
        *(engine(), "bench", "load", "--json", "--rounds", "1", "--seconds", str(seconds)),
        *("--workers", str(max(1, job.workers)), "--batch", str(job.batch)),
        *("--normalize", "mean_std", "--stats", str(job.folder / "stats.json")),
    ]
    if job.workload == "windows":
        command += ["--window", f"{SIDE}x{SIDE}", "--per-asset", str(-(-WINDOWS // SCENES))]
    answer = subprocess.run(
        [*command, f"{job.folder}/{kind}/*.tif"], check=True, capture_output=True, text=True
    )
    return float(samples_per_second(json.loads(answer.stdout)))


def samples_per_second(report: Any) -> float:
    """Returns the median figure of a report of `chaski bench load --json`."""
    for row in report["figures"]:
        if row["name"] == "samples" or row.get("unit") == "samples/s":
            return row["median"]
    raise KeyError("samples per second")


def decode(folder: Path) -> None:
    """Prints MB/s of decoded samples of whole chips, in one thread, without a loader around it."""
    job = Job(folder / "chips", "chips", batch=1, workers=1)
    figures: dict[str, Any] = {}
    for name, (pattern, reader) in READERS.items():
        try:
            files = job.files(pattern)[:128]
            read = reader()
            for path in files[:4]:
                read(path, None)
            start, size = time.perf_counter(), 0
            for path in files * 3:
                size += read(path, None).nbytes
            figures[name] = round(size / 1e6 / (time.perf_counter() - start), 1)
        except Exception as e:
            figures[name] = f"missing: {e!r}"[:200]
    for name, kind in (("chaski", "tog"), ("chaski-rumi1", "rumi1")):
        try:
            files = job.files(f"{kind}/*.tif")[:128]
            command = [engine(), "bench", "decode", "--json", "--workers", "1", "--rounds", "3"]
            answer = subprocess.run(
                [*command, "--seconds", "1", *map(str, files)], check=True, capture_output=True
            )
            (row,) = (r for r in json.loads(answer.stdout)["figures"] if r["name"] == "decoded")
            figures[name] = round(row["median"], 1)
        except Exception as e:
            figures[name] = f"missing: {e!r}"[:200]
    print(json.dumps(figures, indent=1))


def engine() -> str:
    """Returns the chaski command."""
    from chaski import _engine

    return _engine.find_binary()


def measure_one(job: Job, peer: str, seconds: float) -> dict[str, Any]:
    """Returns one figure, or why there is none."""
    row: dict[str, Any] = {"workload": job.workload, "peer": peer}
    try:
        if peer in ALONE:
            rate = measure_alone(job, ALONE[peer], seconds)
        else:
            rate = measure(PEERS[peer](job), max(1, job.workers), seconds)
    except Exception as e:
        said = getattr(e, "stderr", None)
        return row | {"missing": " ".join(f"{e!r} {said or ''}".split())[:300]}
    return row | {"samples_per_second": round(rate, 1)}


def run(args: argparse.Namespace) -> None:
    """Runs all peers in turns, each in a process of its own, and prints and writes the tables."""
    jobs = [
        (workload, peer)
        for workload in args.workload or WORKLOADS
        for peer in args.peer or PEERS_OF[workload]
        if peer in PEERS_OF[workload]
    ]
    rows: list[dict[str, Any]] = []
    for r in range(args.rounds):
        turn = r * len(jobs) // max(1, args.rounds)
        for workload, peer in jobs[turn:] + jobs[:turn]:
            row = {"round": r} | in_process(args, workload, peer)
            rows.append(row)
            print(json.dumps(row), flush=True)
    report = {
        "settings": {
            "rounds": args.rounds,
            "seconds": args.seconds,
            "workers": args.workers,
            "batch": args.batch,
        },
        "machine": machine(),
        "rows": rows,
    }
    text = markdown(report)
    print("\n" + text)
    if args.out:
        args.out.parent.mkdir(parents=True, exist_ok=True)
        args.out.with_suffix(".json").write_text(json.dumps(report, indent=1) + "\n")
        args.out.with_suffix(".md").write_text(text)


def in_process(args: argparse.Namespace, workload: str, peer: str) -> dict[str, Any]:
    """Runs one peer in a process of its own: thread pools and caches are of the process."""
    pythons = dict(entry.split("=", 1) for entry in args.python)
    command = [
        *(pythons.get(peer, sys.executable), "-W", "ignore", __file__, "one", str(args.dir)),
        *("--workload", workload, "--peer", peer, "--seconds", str(args.seconds)),
        *("--workers", str(args.workers), "--batch", str(args.batch)),
    ]
    try:
        p = subprocess.run(command, capture_output=True, text=True, timeout=120 + 4 * args.seconds)
        return json.loads(p.stdout.splitlines()[-1])
    except (subprocess.TimeoutExpired, ValueError, IndexError) as e:
        return {"workload": workload, "peer": peer, "missing": repr(e)[:300]}


def machine() -> dict[str, Any]:
    """Returns what figures depend on."""
    cpu = platform.processor()
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        cpu = next(line.split(":")[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        pass
    versions = {}
    for name in (
        *("numpy", "torch", "rasterio", "tifffile", "imagecodecs"),
        *("rumi-eo", "mosaicml-streaming", "zarr", "grpcio"),
    ):
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            pass
    try:
        versions["chaski"] = (
            subprocess.run([engine(), "--version"], capture_output=True, text=True)
            .stdout.split(" ", 1)[1]
            .strip()
        )
        import rasterio

        versions["GDAL"] = rasterio.__gdal_version__
    except Exception:
        pass
    return {
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d"),
        "cpu": cpu,
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "load": round(os.getloadavg()[0], 2),
        "versions": versions,
    }


def markdown(report: dict[str, Any]) -> str:
    """Returns the tables of a report."""
    s, m = report["settings"], report["machine"]
    out = [
        f"{m['cpu']}, {m['cores']} cores, {m['system']}, Python {m['python']}; {m['date']}. "
        f"{s['rounds']} rounds of {s['seconds']:g} s, {s['workers']} workers, batches of "
        f"{s['batch']}; load average at the end {m['load']}.",
        "",
        ", ".join(f"{k} {v}" for k, v in m["versions"].items()) + ".",
    ]
    for workload in WORKLOADS:
        figures: dict[str, list[float]] = {}
        missing: dict[str, str] = {}
        for row in report["rows"]:
            if row["workload"] != workload:
                continue
            if "missing" in row:
                missing[row["peer"]] = row["missing"]
            else:
                figures.setdefault(row["peer"], []).append(row["samples_per_second"])
        if not figures and not missing:
            continue
        out += [
            "",
            f"| {workload} | samples/s, median | least – most | against {BASELINE} |",
            "|---|---:|---:|---:|",
        ]
        base = statistics.median(figures[BASELINE]) if BASELINE in figures else None
        ranked = sorted(figures.items(), key=lambda kv: -statistics.median(kv[1]))
        for peer, rates in ranked:
            median = statistics.median(rates)
            ratio = f"{median / base:.2f}" if base else ""
            span = f"{min(rates):.0f} – {max(rates):.0f}"
            out.append(f"| {peer} | {median:.0f} | {span} | {ratio} |")
        for peer, why in missing.items():
            if peer not in figures:
                out.append(f"| {peer} | missing: {why[:100].replace('|', '/')} | | |")
    return "\n".join(out) + "\n"


def main() -> None:
    """Reads the command line."""
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("verb", choices=["make", "make1", "run", "one", "decode", "list"])
    p.add_argument("dir", type=Path, nargs="?", default=Path(".peers"))
    p.add_argument("--imagery", type=Path, help="SCENE.npy, for make and make1")
    p.add_argument("--peer", action="append", choices=[*PEERS, *ALONE])
    p.add_argument("--workload", action="append", choices=list(WORKLOADS))
    p.add_argument("--workers", type=int, default=2)
    p.add_argument("--seconds", type=float, default=12.0)
    p.add_argument("--batch", type=int, default=32)
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument(
        "--python", action="append", default=[], metavar="PEER=PATH", help="interpreter of a peer"
    )
    p.add_argument("--out", type=Path, help="path of the report, without .md and .json")
    args = p.parse_args()
    match args.verb:
        case "make" | "make1":
            if args.imagery is None:
                p.error(f"{args.verb} needs --imagery")
            (make if args.verb == "make" else make1)(args.dir, load_scene(args.imagery))
        case "run":
            run(args)
        case "one":
            workload, peer = args.workload[0], args.peer[0]
            job = Job(args.dir / workload, workload, args.batch, args.workers)
            print(json.dumps(measure_one(job, peer, args.seconds)), flush=True)
            os._exit(0)  # workers and thread pools of peers do not always end
        case "decode":
            decode(args.dir)
        case "list":
            for workload, names in PEERS_OF.items():
                print(f"{workload}: {', '.join(names)}")


if __name__ == "__main__":
    main()
