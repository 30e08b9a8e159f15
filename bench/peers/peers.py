"""One step of run.py, as a process that shares no thread pools and caches.

    python peers.py '{"verb": "one", ...}'

The argument is a Job; the last line of standard output is a JSON object, the answer. Verbs:

    versions   the installed packages and their versions
    imagery    join the scene of a shape, SCENE.npy, from files of imagery or their stand-ins
    truth      statistics of the bands, and signatures of an epoch's samples
    make       write the samples of a shape in a format: tog, rumi, rumi1, mds, zarr
    check      one epoch of a loader: every sample once, with the right pixels
    one        samples per second of a loader, with their processor time and memory
    decode     bytes per second of whole files in one thread, without a loader

Needs numpy, rasterio for imagery and tog, and for each format and loader the package of its name.
"""

from __future__ import annotations

import atexit
import functools
import importlib
import importlib.metadata
import itertools
import json
import math
import os
import platform
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from shapes import Shape

Image = npt.NDArray[Any]  # (bands, y, x)
Numbers = npt.NDArray[np.float64]

CACHE = 64  # MB of decoded tiles that a process may keep, as chaski's engine has by default
os.environ.setdefault("GDAL_CACHEMAX", str(CACHE))


@dataclass(frozen=True)
class Job:
    """What is to be done."""

    verb: str
    folder: Path = Path()  # of the shape
    shape: Shape | None = None
    imagery: tuple[str, ...] = ()  # files, for the verb imagery
    format: str = ""
    loader: str = ""
    transport: str = "auto"
    workers: int = 1
    seconds: float = 1.0
    packages: tuple[str, ...] = ()  # for the verb versions

    @classmethod
    def parse(cls, text: str) -> Job:
        """Parses the argument."""
        values = json.loads(text)
        values["folder"] = Path(values.get("folder", ""))
        if values.get("shape") is not None:
            values["shape"] = Shape(**values["shape"])
        for name in ("imagery", "packages"):
            values[name] = tuple(values.get(name) or ())
        return cls(**values)

    @property
    def of(self) -> Shape:
        """The shape, for verbs that have one."""
        assert self.shape is not None
        return self.shape

    @property
    def batch(self) -> int:
        """Samples of a batch."""
        return self.of.batch

    @property
    def stats(self) -> tuple[list[float], list[float]]:
        """Mean and standard deviation of the bands."""
        s = json.loads((self.folder / "stats.json").read_text())
        return s["mean"], s["std"]

    def files(self) -> list[Path]:
        """Returns the files of the format, in the order of their images."""
        folder = self.folder / self.format
        found = sorted(p for p in folder.glob("*") if p.suffix in (".tif", ".rumi"))
        if not found:
            raise FileNotFoundError(f"{self.format} is not made")
        return found


def package(name: str) -> Any:
    """Imports a package that only some verbs need, so its types are unchecked."""
    return importlib.import_module(name)


# The imagery, and the images cut from it.


def read_imagery(path: Path) -> Image:
    """Reads the pixels of an .npy file or of a file that GDAL reads."""
    if path.suffix == ".npy":
        return np.asarray(np.load(path, mmap_mode="r"))
    rasterio = package("rasterio")

    with rasterio.open(path) as d:
        return np.asarray(d.read())


def imagery(job: Job) -> dict[str, Any]:
    """Writes the scene of a shape, and returns what it was made from."""
    shape = job.of
    best: tuple[int, Path, Image] | None = None
    for name in job.imagery:
        try:
            image = read_imagery(Path(name))
        except Exception:  # what is no imagery is no imagery
            continue
        if image.ndim != 3 or image.dtype not in (np.uint8, np.uint16) or min(image.shape[1:]) < 64:
            continue
        if best is None or image.size > best[0]:
            best = (image.size, Path(name), image)
    if best is None:
        raise FileNotFoundError(f"no imagery for {shape.imagery} in {len(job.imagery)} files")
    _, path, image = best
    made = (
        f"{path.name}: {image.shape[0]} bands, {image.shape[1]} x {image.shape[2]}, {image.dtype}"
    )
    scene = as_dtype(image, shape.dtype, shape.bands)
    if scene.dtype != image.dtype:
        made += f", made {scene.dtype}"
    if shape.bands > image.shape[0]:
        made += f", {shape.bands} bands by mirroring"
    scene = with_bands(scene, shape.bands)
    if min(scene.shape[1:]) <= shape.side:
        made += ", enlarged by mirroring"
        scene = mirrored(scene, shape.side + 64)
    job.folder.mkdir(parents=True, exist_ok=True)
    np.save(job.folder / "scene.npy", np.ascontiguousarray(scene))
    return {"imagery": made}


def as_dtype(image: Image, dtype: str, bands: int) -> Image:
    """Returns imagery in another type.

    For float32 these are normalised differences between the third band from the end (near infrared
    of the six 20 m bands of Sentinel-2) and the others.
    """
    if image.dtype == dtype:
        return image
    if dtype == "float32":
        f = image.astype(np.float32)
        a, b = f[max(0, len(f) - 3)], f[:bands]
        return np.asarray((a - b) / np.maximum(a + b, 1), np.float32)
    top = np.percentile(image, 99.5)
    limit = np.iinfo(dtype).max if dtype == "uint8" else 10000
    return np.clip(image.astype(np.float64) * limit / top, 0, limit).astype(dtype)


def with_bands(image: Image, bands: int) -> Image:
    """Returns the given number of bands; those beyond the imagery's are its bands, mirrored."""
    out = []
    for k in range(bands):
        band, turn = image[k % len(image)], k // len(image)
        out.append(band[:: -1 if turn & 1 else 1, :: -1 if turn & 2 else 1])
    return np.stack(out)


def mirrored(image: Image, side: int) -> Image:
    """Returns an image of at least side by side pixels, from mirrored copies without seams."""
    ny, nx = (-(-side // n) for n in image.shape[1:])
    rows = [image[:, :: -1 if y & 1 else 1] for y in range(ny)]
    tall = np.concatenate(rows, axis=1)
    return np.concatenate([tall[:, :, :: -1 if x & 1 else 1] for x in range(nx)], axis=2)


def images(job: Job) -> Iterator[Image]:
    """Yields the images of a shape, the same ones in every call and on every machine."""
    scene = np.load(job.folder / "scene.npy")
    yield from (scenes if job.of.windows else chips)(job.of, scene)


def chips(shape: Shape, scene: Image) -> Iterator[Image]:
    """Yields crops of the scene, rotated by multiples of 90 degrees."""
    r = np.random.default_rng(7)
    side = shape.side
    for _ in range(shape.images):
        y = r.integers(0, scene.shape[1] - side)
        x = r.integers(0, scene.shape[2] - side)
        crop = scene[:, y : y + side, x : x + side]
        yield np.ascontiguousarray(np.rot90(crop, r.integers(4), axes=(1, 2)))


def scenes(shape: Shape, scene: Image) -> Iterator[Image]:
    """Yields large scenes, joined from mirrored copies so that no seam shows."""
    r = np.random.default_rng(8)
    n = min(scene.shape[1:]) // 64 * 64
    for i in range(shape.images):
        t = np.rot90(scene[:, :n, :n], i % 4, axes=(1, 2))
        big = mirrored(t, max(3 * n, shape.scene + 64))
        y, x = r.integers(0, big.shape[1] - shape.scene, 2)
        yield np.ascontiguousarray(big[:, y : y + shape.scene, x : x + shape.scene])


def random_windows(shape: Shape) -> npt.NDArray[np.int64]:
    """Returns (image, y, x) of the samples of an epoch."""
    if not shape.windows:
        whole = np.zeros((shape.images, 3), np.int64)
        whole[:, 0] = np.arange(shape.images)
        return whole
    r = np.random.default_rng(1)
    corner = shape.scene - shape.side
    columns = (r.integers(0, n, shape.samples) for n in (shape.images, corner, corner))
    return np.stack(list(columns), axis=1)


# The expected samples. A signature of a sample is two sums over its normalised values, each with
# random weights: it changes with the pixels, their order, and the order of bands.


def weights(shape: Shape) -> Numbers:
    """Returns the weights of signatures, (values of a sample, 2)."""
    size = shape.bands * shape.side**2
    w: Numbers = np.random.default_rng(11).standard_normal((size, 2))
    return w


def tolerance(shape: Shape) -> float:
    """Returns how much signatures may differ: by float32 rounding, but less than by one pixel."""
    return 1e-5 * shape.side * math.sqrt(shape.bands)


def signatures_of(job: Job, where: npt.NDArray[np.int64]) -> Numbers:
    """Returns the signatures of the samples at (image, y, x), in float64."""
    shape, w = job.of, weights(job.of)
    mean, std = (np.asarray(v)[:, None, None] for v in job.stats)
    out = np.zeros((len(where), 2))
    for i, image in enumerate(images(job)):
        for k in np.flatnonzero(where[:, 0] == i):
            _, y, x = where[k]
            sample = image[:, y : y + shape.side, x : x + shape.side]
            out[k] = ((sample - mean) / std).reshape(-1) @ w
    return out


def truth(job: Job) -> dict[str, Any]:
    """Writes statistics and signatures."""
    shape = job.of
    total = squares = np.zeros(shape.bands)
    pixels = 0
    for image in images(job):
        f = image.astype(np.float64)
        total, squares = total + f.sum((1, 2)), squares + (f * f).sum((1, 2))
        pixels += image[0].size
    mean = total / pixels
    std = np.sqrt(squares / pixels - mean**2)
    (job.folder / "stats.json").write_text(json.dumps({"mean": list(mean), "std": list(std)}))
    where = random_windows(shape)
    np.save(job.folder / "truth.npy", signatures_of(job, where))
    np.save(job.folder / "windows.npy", where)
    return {}


# Writing the formats.


def write_togs(job: Job, out: Path) -> None:
    """Writes TACO optimized GeoTIFFs with GDAL's COG driver."""
    rasterio, copy = package("rasterio"), package("rasterio.shutil").copy

    options = {
        "INTERLEAVE": "TILE",
        "BLOCKSIZE": job.of.tile,
        "COMPRESS": "ZSTD",
        "LEVEL": 13,
        "PREDICTOR": "YES",
        "BIGTIFF": "YES",
        "OVERVIEWS": "NONE",
    }
    for i, image in enumerate(images(job)):
        profile = {
            "driver": "GTiff",
            "height": image.shape[1],
            "width": image.shape[2],
            "count": image.shape[0],
            "dtype": image.dtype,
        }
        with rasterio.MemoryFile() as m:
            with m.open(**profile) as d:
                d.write(image)
            with m.open() as d:
                copy(d, out / f"{i:05d}.tif", driver="COG", **options)


def write_rumi(job: Job, out: Path) -> None:
    """Writes rumi files of the current generation, and header blobs beside them."""
    rumi, geozl = package("rumi"), package("geozl")

    recipe = "planar>zigzag>transpose>entropy"
    if job.of.dtype == "uint8":
        recipe = "planar>zigzag>entropy"
    graph = None
    for i, image in enumerate(images(job)):
        path = out / f"{i:05d}.rumi"
        pattern = "b (row h) (col w) -> row col b (h w)"
        frames = rumi.frames(image, pattern, tile_size=job.of.tile)
        for f in frames:
            graph = graph or geozl.graph(f.data, recipe)
            f.compressed = geozl.compress(f.data, graph=graph)
        names = [f"B{k}" for k in range(image.shape[0])]
        _, header = rumi.write(str(path), frames, bands=names, time=["2024-01-01"])
        blob_of(path).write_bytes(header)


def blob_of(path: Path) -> Path:
    """Returns the path of a rumi file's header blob."""
    return path.with_name(path.name + ".hdr")


def write_rumi1(job: Job, out: Path) -> None:
    """Writes rumi files of generation 1, with the graph delta > transpose > entropy."""
    rumi, zl = package("rumi"), package("openzl.ext")

    c = zl.Compressor()
    last = zl.graphs.Entropy()(c)
    if job.of.dtype == "uint8":
        numbers = zl.nodes.ConvertNumToSerialLE()(c, last)
    else:
        numbers = zl.nodes.ConvertNumToStructLE()(c, zl.nodes.TransposeSplit()(c, last))
    c.select_starting_graph(zl.nodes.DeltaInt()(c, numbers))

    def compress(tile: npt.NDArray[Any]) -> bytes:
        context = zl.CCtx()
        context.ref_compressor(c)
        context.set_parameter(zl.CParam.FormatVersion, rumi.OPENZL_VERSION)
        flat = np.ascontiguousarray(tile).reshape(-1)
        return bytes(context.compress([zl.Input(zl.Type.Numeric, flat)]))

    for i, image in enumerate(images(job)):
        path = out / f"{i:05d}.tif"
        tiles, layout = rumi.tile(image, tile=job.of.tile)
        rumi.write(str(path), [compress(t) for t in tiles], layout)
        blob_of(path).write_bytes(rumi.index_file(str(path)))


def write_mds(job: Job, out: Path) -> None:
    """Writes the chips as shards of mosaicml-streaming."""
    MDSWriter = package("streaming").MDSWriter

    s = job.of
    columns = {"x": f"ndarray:{s.dtype}:{s.bands},{s.side},{s.side}"}
    with MDSWriter(out=str(out), columns=columns, compression="zstd:3", size_limit=1 << 24) as w:
        for image in images(job):
            w.write({"x": image})


def write_zarr(job: Job, out: Path) -> None:
    """Writes one zarr array with one chunk for each chip or, in scenes, each tile of all bands."""
    zarr = package("zarr")

    s = job.of
    side = s.tile if s.windows else s.side
    codec = zarr.codecs.BloscCodec(cname="zstd", clevel=5, shuffle="shuffle")
    z = zarr.create_array(
        str(out),
        shape=(s.images, s.bands, s.file_side, s.file_side),
        chunks=(1, s.bands, side, side),
        dtype=s.dtype,
        compressors=codec,
    )
    for i, image in enumerate(images(job)):
        z[i] = image


WRITERS: dict[str, Callable[[Job, Path], None]] = {
    "tog": write_togs,
    "rumi": write_rumi,
    "rumi1": write_rumi1,
    "mds": write_mds,
    "zarr": write_zarr,
}


def make(job: Job) -> dict[str, Any]:
    """Writes a format, which appears completely or not at all."""
    final = job.folder / job.format
    out = final.with_name(final.name + ".part")
    shutil.rmtree(out, ignore_errors=True)
    if job.format not in ("mds", "zarr"):  # which make their folder themselves
        out.mkdir(parents=True)
    WRITERS[job.format](job, out)
    shutil.rmtree(final, ignore_errors=True)
    out.rename(final)
    size = sum(p.stat().st_size for p in final.rglob("*") if p.is_file())
    return {"bytes": size}


# The loaders. Each yields batches of endless epochs, (n, b, y, x) float32 tensors.

Read = Callable[[Path, "tuple[int, int] | None"], Image]
"""Reads a file, or its window of the shape's side from (y, x)."""


def data_loader(job: Job, dataset: Any) -> Any:
    """Returns torch's DataLoader for a dataset, with the usual settings."""
    torch = package("torch")

    return torch.utils.data.DataLoader(
        dataset,
        batch_size=job.batch,
        shuffle=True,
        drop_last=True,
        num_workers=job.workers,
        persistent_workers=job.workers > 0,
    )


def normalizer(job: Job) -> Callable[[Image], Any]:
    """Returns the function that turns an image into a tensor in a worker."""
    torch = package("torch")

    mean, std = (np.asarray(v, np.float32)[:, None, None] for v in job.stats)
    return lambda image: torch.from_numpy((image.astype(np.float32) - mean) / std)


class Items:
    """A map-style dataset of whole images or of windows of them."""

    def __init__(self, job: Job, read: Callable[[int, tuple[int, int] | None], Image]) -> None:
        """Computes where the samples are."""
        self.whole = not job.of.windows
        self.where = np.load(job.folder / "windows.npy")
        self.read = read
        self.normalize = normalizer(job)

    def __len__(self) -> int:
        """Returns the samples of an epoch."""
        return len(self.where)

    def __getitem__(self, i: int) -> Any:
        """Returns a sample."""
        k, y, x = (int(v) for v in self.where[i])
        return self.normalize(self.read(k, None if self.whole else (y, x)))


def rasterio_reader(job: Job) -> Read:
    """GDAL. Each worker keeps the datasets of scenes open."""
    rasterio, Window = package("rasterio"), package("rasterio.windows").Window

    opened = functools.cache(rasterio.open)
    side = job.of.side

    def read(path: Path, at: tuple[int, int] | None) -> Image:
        if at is None:
            with rasterio.open(path) as d:
                return np.asarray(d.read())
        return np.asarray(opened(path).read(window=Window(at[1], at[0], side, side)))

    return read


def tifffile_reader(_: Job) -> Read:
    """Tifffile and imagecodecs, whole files."""
    tifffile = package("tifffile")

    def read(path: Path, _: tuple[int, int] | None) -> Image:
        image = np.asarray(tifffile.imread(path))
        return image[None] if image.ndim == 2 else image

    return read


def rumi_reader(job: Job) -> Read:
    """The package rumi, current generation."""
    rumi = package("rumi")

    rumi.set_num_threads(1)
    blob = functools.cache(lambda path: blob_of(path).read_bytes())

    def read(path: Path, at: tuple[int, int] | None) -> Image:
        window = {} if at is None else {"window": (*at, job.of.side, job.of.side)}
        return np.asarray(rumi.read(str(path), blob(path), pattern="b y x", **window))

    return read


def rumi1_reader(job: Job) -> Read:
    """The package rumi of generation 1, release 0.8.3."""
    rumi = package("rumi")

    if not hasattr(rumi, "parse"):
        raise ImportError("rumi-eo is not 0.8.3")
    header = functools.cache(lambda path: rumi.parse(blob_of(path).read_bytes()))
    side = job.of.side

    def read(path: Path, at: tuple[int, int] | None) -> Image:
        window = {} if at is None else {a: (v, v + side) for a, v in zip("yx", at, strict=True)}
        return np.asarray(rumi.read(str(path), header(path), "b y x", **window))

    return read


READERS: dict[str, Callable[[Job], Read]] = {
    "rasterio": rasterio_reader,
    "tifffile": tifffile_reader,
    "rumi": rumi_reader,
    "rumi1": rumi1_reader,
}


def with_reader(job: Job) -> Any:
    """Returns a DataLoader over a function that reads one file at a time."""
    files, read = job.files(), READERS[job.loader](job)
    return data_loader(job, Items(job, lambda k, at: read(files[k], at)))


def with_rumi_many(job: Job) -> Iterator[Any]:
    """The package rumi, current generation, one read a batch in threads of this process."""
    rumi, torch = package("rumi"), package("torch")

    rumi.set_num_threads(max(1, job.workers))
    files = [str(p) for p in job.files()]
    blobs = [blob_of(Path(p)).read_bytes() for p in files]
    mean, std = (torch.tensor(v, dtype=torch.float32)[:, None, None] for v in job.stats)
    where, side = np.load(job.folder / "windows.npy"), job.of.side
    r = np.random.default_rng(3)
    while True:
        order = r.permutation(len(where))
        for start in range(0, len(order) - job.batch + 1, job.batch):
            picked = where[order[start : start + job.batch]]
            at = {}
            if job.of.windows:
                at["windows"] = [(int(y), int(x), side, side) for _, y, x in picked]
            a = rumi.read_many(
                [files[k] for k in picked[:, 0]],
                [blobs[k] for k in picked[:, 0]],
                framework="torch",
                **at,
            )
            yield (a.to(torch.float32) - mean) / std


def with_zarr(job: Job) -> Any:
    """One zarr array."""
    zarr = package("zarr")

    if not (job.folder / "zarr").exists():
        raise FileNotFoundError("zarr is not made")
    array, side = zarr.open_array(str(job.folder / "zarr"), mode="r"), job.of.side

    def read(k: int, at: tuple[int, int] | None) -> Image:
        if at is None:
            return np.asarray(array[k])
        y, x = at
        return np.asarray(array[k, :, y : y + side, x : x + side])

    return data_loader(job, Items(job, read))


def with_mds(job: Job) -> Any:
    """Shards of mosaicml-streaming, decompressed at the first visit."""
    torch = package("torch")
    base: Any = package("streaming").StreamingDataset

    if not (job.folder / "mds").exists():
        raise FileNotFoundError("mds is not made")
    package("streaming.base.util").clean_stale_shared_memory()
    normalize = normalizer(job)

    def item(self: Any, i: int) -> Any:
        return normalize(base.__getitem__(self, i)["x"])

    shards: Any = type("Shards", (base,), {"__getitem__": item})
    data = shards(local=str(job.folder / "mds"), shuffle=True, batch_size=job.batch, predownload=64)
    return torch.utils.data.DataLoader(
        data,
        batch_size=job.batch,
        num_workers=job.workers,
        drop_last=True,
        persistent_workers=job.workers > 0,
    )


def chaski_dataset(job: Job) -> Any:
    """chaski: its own engine, with batches in shared memory or over gRPC into this process."""
    chaski = package("chaski")

    mean, std = (np.asarray(v) for v in job.stats)
    options: dict[str, Any] = {}
    if job.of.windows:
        options = {"window": chaski.RandomWindow(job.of.side, per_asset=job.of.per_asset)}
    workers, transport = max(1, job.workers), job.transport
    if transport == "connect":
        options["target"] = serve(job.folder, workers)
        engine = chaski.Engine(share=False)
    else:
        engine = chaski.Engine(workers=workers, transport=transport, share=False)
    return package("chaski.torch").IterableDataset(
        f"{job.folder}/{job.format}/*{job.files()[0].suffix}",
        batch_size=job.batch,
        shuffle=True,
        last="drop",
        pixels=chaski.Pixels(dtype="float32"),
        normalize=chaski.Normalize(1 / std, -mean / std),
        engine=engine,
        **options,
    )


def serve(root: Path, workers: int) -> str:
    """Starts a server that ends with this process, and returns its address.

    It refuses shared memory, so that its batches come as from another machine.
    """
    # No path of a file: the name has to be short, and the folder of the samples need not be.
    command = [os.environ["CHASKI_BIN"], "serve", "--listen", f"unix-abstract:peers-{os.getpid()}"]
    command += ["--root", str(root), "--workers", str(workers), "--no-shared-memory"]
    command += ["--stop-on-eof", "--log-level", "error"]
    server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert server.stdin is not None and server.stdout is not None
    atexit.register(stop, server)
    target: str = json.loads(server.stdout.readline())["listen"]
    return target


def stop(server: subprocess.Popen[str]) -> None:
    """Ends a server. It says how it ended to nobody: what was measured is measured."""
    assert server.stdin is not None
    server.stdin.close()
    try:
        server.wait(10)
    except subprocess.TimeoutExpired:
        server.kill()


def with_chaski(job: Job) -> Iterator[Any]:
    """The images of chaski's batches."""
    batches = chaski_dataset(job)
    while True:
        for batch in batches:
            yield batch["image"]


LOADERS: dict[str, Callable[[Job], Iterable[Any]]] = {
    "chaski": with_chaski,
    **dict.fromkeys(READERS, with_reader),
    "rumi-many": with_rumi_many,
    "mds": with_mds,
    "zarr": with_zarr,
}


# Checking.


def epoch_of(job: Job) -> Iterator[tuple[Any, list[tuple[int, int, int, int]]]]:
    """Yields the batches of an epoch and, for chaski, (sample, image, y, x) of their rows.

    Which sample stands where, and which window of it, follows from seed, epoch and position.
    """
    if job.loader != "chaski":
        endless = forever(LOADERS[job.loader](job))
        for _ in range(job.of.samples // job.batch):
            yield next(endless), []
        return
    order, s = package("chaski.order"), job.of
    side = (s.scene, s.scene, s.side, s.side)
    for batch in chaski_dataset(job):
        rows = zip(batch["sample"].tolist(), batch["position"].tolist(), strict=True)
        if s.windows:
            places = [(k, k // s.per_asset, *order.window(0, 0, p, *side)) for k, p in rows]
        else:
            places = [(k, k, 0, 0) for k, _ in rows]
        yield batch["image"], places


def forever(batches: Iterable[Any]) -> Iterator[Any]:
    """Yields the batches of one epoch after the other."""
    while True:
        yield from batches


def check(job: Job) -> dict[str, Any]:
    """Compares the samples of an epoch with the truth."""
    shape, w = job.of, weights(job.of)
    found: list[Numbers] = []
    rows: list[tuple[int, int, int, int]] = []
    for batch, places in epoch_of(job):
        want = (job.batch, shape.bands, shape.side, shape.side)
        if str(batch.dtype) != "torch.float32" or tuple(batch.shape) != want:
            raise ValueError(f"a batch is {batch.dtype} {tuple(batch.shape)}, not float32 {want}")
        found += [sample.reshape(-1).double().numpy() @ w for sample in batch]
        rows += places
    if len(found) != shape.samples:
        return {"wrong": f"{len(found)} samples, not {shape.samples}"}
    signatures = np.array(found)
    if not rows:
        expected = np.load(job.folder / "truth.npy")
        return verdict(paired(signatures, expected, tolerance(shape)), tolerance(shape))
    if len({sample for sample, *_ in rows}) < len(rows):
        return {"wrong": "samples come twice in an epoch"}
    expected = signatures_of(job, np.array(rows)[:, 1:])
    return verdict(np.abs(signatures - expected).max(axis=1), tolerance(shape))


def paired(found: Numbers, expected: Numbers, limit: float) -> Numbers:
    """Returns how far each signature is from its own: the nearest that no other has taken.

    A sample without one is infinitely far. Sorting both by size would exchange samples whose first
    sums are equal but for rounding.
    """
    expected = expected[np.argsort(expected[:, 0])]
    free = np.ones(len(expected), bool)
    off = np.full(len(found), np.inf)
    for i, signature in enumerate(found):
        low, high = np.searchsorted(expected[:, 0], signature[0] + np.array([-limit, limit]))
        near = np.flatnonzero(free[low : high + 1]) + low
        if len(near):
            far = np.abs(expected[near] - signature).max(axis=1)
            free[near[far.argmin()]], off[i] = far.min() > limit, far.min()
    return off


def verdict(off: Numbers, limit: float) -> dict[str, Any]:
    """Says whether all samples are near their signatures; off is how far each is."""
    bad = int(np.count_nonzero(~(off <= limit)))
    if bad:
        return {"wrong": f"{bad} of {len(off)} samples are not those that were written"}
    return {"samples": len(off), "off": float(off.max(initial=0))}


# Measuring.


def measure(job: Job) -> dict[str, Any]:
    """Times the loop of a consumer that only touches each batch."""
    package("torch")  # which every consumer has imported

    born = time.perf_counter()
    batches = forever(LOADERS[job.loader](job))
    first = next(batches)
    float(first[:, 0, 0, 0].sum())
    answer: dict[str, Any] = {"first_batch_s": time.perf_counter() - born}
    del first  # or its memory would be no loader's for the next batches
    for _ in range(max(1, job.workers)):
        batch = next(batches)
        float(batch[:, 0, 0, 0].sum())
    waits: list[float] = []
    samples = 0
    cpu = cpu_seconds()
    now = start = time.perf_counter()
    while now - start < job.seconds or not waits:
        asked = now
        batch = next(batches)
        waits.append(time.perf_counter() - asked)
        float(batch[:, 0, 0, 0].sum())
        samples += batch.shape[0]
        now = time.perf_counter()
    passed = now - start
    answer |= {"samples": samples, "seconds": passed, "samples_per_s": samples / passed}
    if cpu is not None:
        answer["cpu_s_per_sample"] = (cpu_seconds() - cpu) / samples
    p50, p99 = np.percentile(waits, [50, 99])
    return answer | {"wait_p50_s": p50, "wait_p99_s": p99, "waits": len(waits)} | memory()


def decode(job: Job) -> dict[str, Any]:
    """Times a reader by itself."""
    files, read = job.files(), READERS[job.loader](job)
    for path in files[:4]:
        read(path, None)
    size, start = 0, time.perf_counter()
    for path in itertools.cycle(files):
        size += read(path, None).nbytes
        if time.perf_counter() - start >= job.seconds:
            break
    return {"decode_bytes_per_s": size / (time.perf_counter() - start)}


def tree() -> list[int]:
    """Returns this process and its descendants, or nothing on systems without /proc."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            parents[int(entry.parent.name)] = int(entry.read_text().rpartition(")")[2].split()[1])
        except (OSError, IndexError, ValueError):
            continue  # it has ended
    mine = {os.getpid()} & parents.keys()
    while more := {p for p, parent in parents.items() if parent in mine} - mine:
        mine |= more
    return sorted(mine)


def cpu_seconds() -> Any:
    """Returns the CPU time of this process, its descendants, and those that have ended."""
    ticks = 0
    pids = tree()
    for pid in pids:
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        ticks += sum(int(v) for v in fields[11:15])  # user and system, own and of ended children
    return ticks / os.sysconf("SC_CLK_TCK") if pids else None


def memory() -> dict[str, float]:
    """Returns the memory of this process and its descendants, in bytes.

    The first is the sum of each process's peak, in which shared pages count several times. The
    second is the present memory, in which shared pages count once.
    """
    peak = now = 0
    for pid in tree():
        try:
            status = Path(f"/proc/{pid}/status").read_text()
            peak += 1024 * int(status.split("VmHWM:")[1].split()[0])
            rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
            now += 1024 * int(rollup.split("\nPss:")[1].split()[0])
        except (OSError, IndexError, ValueError):
            continue
    return {"rss_bytes": peak, "pss_bytes": now} if peak else {}


def versions(job: Job) -> dict[str, Any]:
    """Returns which of the named packages are installed, with their versions."""
    found = {}
    for name in job.packages:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            pass
    if "chaski" in job.packages:
        try:
            found["chaski"] = package("chaski").__version__
        except ImportError:
            pass
    if "rasterio" in found:
        rasterio = package("rasterio")

        found["GDAL"] = rasterio.__gdal_version__
    return {"python": platform.python_version(), "versions": found}


VERBS: dict[str, Callable[[Job], dict[str, Any]]] = {
    "versions": versions,
    "imagery": imagery,
    "truth": truth,
    "make": make,
    "check": check,
    "one": measure,
    "decode": decode,
}


def main() -> None:
    """Does the job. A failure is an answer too."""
    job = Job.parse(sys.argv[1])
    try:
        answer = VERBS[job.verb](job)
    except ImportError as e:
        answer = {"missing": str(e)}
    except Exception as e:
        answer = {"failed": " ".join(f"{type(e).__name__}: {e}".split())[:300]}
    print("\n" + json.dumps(answer), flush=True)
    os._exit(0)  # workers and thread pools of peers do not always end


if __name__ == "__main__":
    main()
