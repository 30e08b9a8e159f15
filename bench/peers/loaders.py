"""The loaders that run.py compares, one function each: batches of endless epochs.

Batches are (n, b, y, x) float32 tensors. A loader reads local files or, if the job has a URL, the
same files from a web server; those that know only S3 get the server as an S3 endpoint.
"""

from __future__ import annotations

import asyncio
import atexit
import collections
import functools
import io
import itertools
import json
import os
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from samples import CATALOG, PIXEL, Image, Job, blob_of, corner, package

FETCH = (
    32  # requests at a time of loaders that are told how many, as chaski's engine has by default
)

Read = Callable[[str, "tuple[int, int] | None"], Image]
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

    # GDAL lets no two threads read from one dataset.
    opened = functools.cache(lambda path, _: rasterio.open(path))
    side = job.of.side

    def read(path: str, at: tuple[int, int] | None) -> Image:
        if at is None:
            with rasterio.open(path) as d:
                return np.asarray(d.read())
        return np.asarray(
            opened(path, threading.get_ident()).read(window=Window(at[1], at[0], side, side))
        )

    return read


def pillow_reader(_: Job) -> Read:
    """Pillow, whole pictures."""
    pictures = package("PIL.Image")

    def read(path: str, _: tuple[int, int] | None) -> Image:
        with pictures.open(path) as picture:
            return np.moveaxis(np.asarray(picture), -1, 0)

    return read


def cv2_reader(_: Job) -> Read:
    """OpenCV, whole pictures, in one thread."""
    cv2 = package("cv2")
    cv2.setNumThreads(1)

    def read(path: str, _: tuple[int, int] | None) -> Image:
        return np.moveaxis(cv2.imread(path, cv2.IMREAD_COLOR_RGB), -1, 0)

    return read


def cells_reader(job: Job) -> Read:
    """GDAL, or tifffile in its loop, on the bytes of a cell. A path is the number of its row."""
    memory = package("rasterio").MemoryFile
    parquet = package("pyarrow.parquet")
    column = functools.cache(
        lambda: parquet.read_table(f"{job.place}/all.parquet", memory_map=True)["image"]
    )

    def read(path: str, _: tuple[int, int] | None) -> Image:
        cell = column()[int(path)].as_py()
        if job.loader == "tifffile-loop":
            return bands_first(package("tifffile").imread(io.BytesIO(cell)), job.of.bands)
        with memory(cell) as file, file.open() as d:
            return np.asarray(d.read())

    return read


def bands_first(image: Image, bands: int) -> Image:
    """Returns an image of tifffile, whose axes are those of the file, with bands first."""
    if image.ndim == 2:
        return image[None]
    return image if image.shape[0] == bands else np.moveaxis(image, -1, 0)


def tifffile_reader(job: Job) -> Read:
    """Tifffile and imagecodecs, whole files."""
    tifffile = package("tifffile")

    def read(path: str, _: tuple[int, int] | None) -> Image:
        return bands_first(tifffile.imread(path), job.of.bands)

    return read


def rumi_reader(job: Job) -> Read:
    """The package rumi, current generation."""
    rumi = package("rumi")

    rumi.set_num_threads(1)
    blob = functools.cache(lambda path: blob_of(path).read_bytes())

    def read(path: str, at: tuple[int, int] | None) -> Image:
        window = {} if at is None else {"window": (*at, job.of.side, job.of.side)}
        return np.asarray(rumi.read(path, blob(path), pattern="b y x", **window))

    return read


def rumi1_reader(job: Job) -> Read:
    """The package rumi of generation 1, release 0.8.3."""
    rumi = package("rumi")

    if not hasattr(rumi, "parse"):
        raise ImportError("rumi-eo is not 0.8.3")
    header = functools.cache(lambda path: rumi.parse(blob_of(path).read_bytes()))
    side = job.of.side

    def read(path: str, at: tuple[int, int] | None) -> Image:
        window = {} if at is None else {a: (v, v + side) for a, v in zip("yx", at, strict=True)}
        return np.asarray(rumi.read(path, header(path), "b y x", **window))

    return read


READERS: dict[str, Callable[[Job], Read]] = {
    "rasterio": rasterio_reader,
    "pillow": pillow_reader,
    "tifffile": tifffile_reader,
    "rumi": rumi_reader,
    "rumi1": rumi1_reader,
}


def with_reader(job: Job) -> Any:
    """Returns a DataLoader over a function that reads one file at a time."""
    return data_loader(job, items_of(job, READERS[job.loader]))


def items_of(job: Job, reader: Callable[[Job], Read]) -> Items:
    """Returns the samples as a reader reads them, or GDAL's of the cells of a table."""
    if job.format == "cells":
        files, reader = [str(k) for k in range(job.of.images)], cells_reader
    else:
        files = job.files()
    read = reader(job)
    return Items(job, lambda k, at: read(files[k], at))


LOOPS: dict[str, Callable[[Job], Items]] = {
    "rasterio-loop": lambda job: items_of(job, rasterio_reader),
    "tifffile-loop": lambda job: items_of(job, tifffile_reader),
    "cv2-loop": lambda job: items_of(job, cv2_reader),
    "zarrs-loop": lambda job: zarr_items(job, "zarrs.ZarrsCodecPipeline"),
    "h5py-loop": lambda job: h5py_items(job),
}


def with_loop(job: Job) -> Iterator[Any]:
    """A reader in this process, without a DataLoader."""
    torch, items = package("torch"), LOOPS[job.loader](job)
    for order in orders(job):
        for picked in np.split(order, len(order) // job.batch):
            yield torch.stack([items[int(i)] for i in picked])


def with_tacoreader(job: Job) -> Any:
    """Tacoreader, which knows where in the container each sample lies, and rasterio."""
    data = package("tacoreader").load(f"{job.place}/all.tacozip").data
    files = [data.read(k) for k in range(len(data))]
    read = rasterio_reader(job)
    return data_loader(job, Items(job, lambda k, at: read(files[k], at)))


def orders(job: Job) -> Iterator[Any]:
    """Yields the samples of endless epochs in random orders; behind a link, of one epoch."""
    r = np.random.default_rng(3)
    for _ in itertools.repeat(None, 1) if job.url else itertools.count():
        yield r.permutation(job.of.samples)


def with_spdl(job: Job) -> Any:
    """SPDL's pipeline of threads that read with rasterio."""
    torch, files = package("torch"), job.files()
    read = rasterio_reader(job)
    items = Items(job, lambda k, at: read(files[k], at))
    threads = FETCH if job.url else job.workers
    pipeline = (
        package("spdl.pipeline")
        .PipelineBuilder()
        .add_source(int(i) for order in orders(job) for i in order)
        .pipe(items.__getitem__, concurrency=threads, output_order="input")
        .aggregate(job.batch, drop_last=True)
        .pipe(torch.stack)
        .add_sink(3)
        .build(num_threads=threads + 1)
    )
    with pipeline.auto_stop():
        yield from pipeline


def store_of(job: Job) -> Any:
    """Returns obstore's store of the format's directory."""
    store = package("obstore.store")
    if job.url:
        return store.HTTPStore.from_url(job.place, client_options={"allow_http": True})
    return store.LocalStore(job.place)


def with_async_geotiff(job: Job) -> Iterator[Any]:
    """Async-geotiff: an event loop in a thread, some batches ahead; it decodes in threads."""
    torch, geotiff = package("torch"), package("async_geotiff")
    store, side, normalize = store_of(job), job.of.side, normalizer(job)
    names = [path.rpartition("/")[2] for path in job.files()]
    where = np.load(job.folder / "windows.npy")
    loop, limit = asyncio.new_event_loop(), asyncio.Semaphore(FETCH)
    threading.Thread(target=loop.run_forever, daemon=True).start()
    opened: dict[int, Any] = {}

    async def file(k: int) -> Any:
        if not job.of.windows:
            return await geotiff.GeoTIFF.open(names[k], store=store)
        if k not in opened:
            opened[k] = asyncio.ensure_future(geotiff.GeoTIFF.open(names[k], store=store))
        return await opened[k]

    async def sample(i: int) -> Any:
        k, y, x = (int(v) for v in where[i])
        async with limit:
            window = geotiff.Window(col_off=x, row_off=y, width=side, height=side)
            image = (await (await file(k)).read(window=window)).data
        return await asyncio.to_thread(normalize, image)

    async def batch(picked: Any) -> Any:
        return torch.stack(await asyncio.gather(*(sample(i) for i in picked)))

    ahead: collections.deque[Any] = collections.deque()
    for order in orders(job):
        for picked in np.split(order, len(order) // job.batch):
            ahead.append(asyncio.run_coroutine_threadsafe(batch(picked), loop))
            if len(ahead) > 3:
                yield ahead.popleft().result()
    while ahead:
        yield ahead.popleft().result()


def with_torchgeo(job: Job) -> Iterator[Any]:
    """TorchGeo's RasterDataset, asked for the places of the samples."""
    datasets, torch = package("torchgeo.datasets"), package("torch")
    normalize, shape = normalizer(job), job.of

    def transform(sample: dict[str, Any]) -> dict[str, Any]:
        return {"image": normalize(sample["image"].numpy())}

    files = [f"/vsicurl/{path}" for path in job.files()] if job.url else job.files()
    data = datasets.RasterDataset(files, transforms=transform)
    queries = []
    for k, y, x in np.load(job.folder / "windows.npy").tolist():
        west, north = corner(shape, k)
        west, north, size = west + x * PIXEL, north - y * PIXEL, shape.side * PIXEL
        queries.append((slice(west, west + size), slice(north - size, north)))
    sampler = torch.utils.data.SubsetRandomSampler(queries)
    options = {"num_workers": job.workers, "persistent_workers": job.workers > 0}
    batches = torch.utils.data.DataLoader(
        data,
        batch_size=job.batch,
        sampler=sampler,
        collate_fn=datasets.stack_samples,
        drop_last=True,
        **options,
    )
    while True:
        for batch in batches:
            yield batch["image"]


def scratch() -> str:
    """Returns an empty directory, which run.py removes."""
    return tempfile.mkdtemp()


def with_litdata(job: Job) -> Any:
    """LitData's chunks. Behind a link they go into an empty cache."""
    litdata, normalize = package("litdata"), normalizer(job)
    where: dict[str, Any] = {"input_dir": f"{job.place}/chips"}
    where["cache_dir"] = str(job.folder / "litdata-cache")
    if job.url:
        where = {"input_dir": "s3://litdata/chips", "cache_dir": scratch()}
        where["storage_options"] = {"endpoint_url": job.url}
        # With obstore it takes no plain HTTP; without, as it comes, it downloads by boto3.
        package("litdata.streaming.downloader")._OBSTORE_AVAILABLE = False
    data = litdata.StreamingDataset(
        **where, shuffle=True, drop_last=True, transform=lambda sample: normalize(sample["x"])
    )
    options = {"num_workers": job.workers, "persistent_workers": job.workers > 0}
    return litdata.StreamingDataLoader(data, batch_size=job.batch, drop_last=True, **options)


def with_webdataset(job: Job) -> Any:
    """WebDataset's tar shards: each worker reads its own, and buffers mix the samples."""
    wds, rasterio = package("webdataset"), package("rasterio")
    normalize = normalizer(job)

    def decode(sample: dict[str, Any]) -> Any:
        with rasterio.MemoryFile(sample["tif"]) as file, file.open() as d:
            return (normalize(d.read()),)

    data = wds.WebDataset(job.files(), shardshuffle=100).shuffle(1000).map(decode)
    loader = wds.WebLoader(data.batched(job.batch), batch_size=None, num_workers=job.workers)
    return loader.unbatched().shuffle(1000).batched(job.batch).map(lambda batch: batch[0])


def with_rumi_many(job: Job) -> Iterator[Any]:
    """The package rumi, current generation, one read a batch in threads of this process."""
    rumi, torch = package("rumi"), package("torch")

    rumi.set_num_threads(max(1, job.workers))
    files = job.files()
    blobs = [blob_of(p).read_bytes() for p in files]
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


def h5py_items(job: Job) -> Items:
    """One dataset of an HDF5 file, which stays open."""
    data, side = package("h5py").File(f"{job.place}/all.h5")["image"], job.of.side

    def read(k: int, at: tuple[int, int] | None) -> Image:
        y, x = at or (0, 0)
        return np.asarray(data[k, :, y : y + side, x : x + side])

    return Items(job, read)


def with_zarr(job: Job) -> Any:
    """One zarr array and a DataLoader."""
    return data_loader(job, zarr_items(job))


def zarr_items(job: Job, codecs: str = "") -> Items:
    """One zarr array, decoded by zarr or by another package's codecs."""
    zarr = package("zarr")
    if codecs:
        package(codecs.partition(".")[0])
        zarr.config.set({"codec_pipeline.path": codecs, "threading.max_workers": 1})

    if not (job.folder / "zarr").exists():
        raise FileNotFoundError("zarr is not made")
    side = job.of.side

    @functools.cache
    def array() -> Any:  # in each worker, because threads of a store do not survive a fork
        where: Any = job.place
        if job.url:
            where = zarr.storage.ObjectStore(store_of(job), read_only=True)
        return zarr.open_array(where, mode="r")

    def read(k: int, at: tuple[int, int] | None) -> Image:
        if at is None:
            return np.asarray(array()[k])
        y, x = at
        return np.asarray(array()[k, :, y : y + side, x : x + side])

    return Items(job, read)


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
    where = {"local": job.place}
    if job.url:
        where = {"local": scratch(), "remote": "s3://mds"}
    data = shards(**where, shuffle=True, batch_size=job.batch, predownload=64)
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
    if transport in ("connect", "host"):
        options["target"] = serve(job.folder, workers, memory_of(job), transport == "host")
        engine = chaski.Engine(share=False)
    else:
        more: dict[str, Any] = {} if job.large else {"memory": memory_of(job)}
        more["recode"] = job.loader == "chaski-recode"
        engine = chaski.Engine(workers=workers, transport=transport, share=False, **more)
    name = {"taco": "all.tacozip", "cells": "all.parquet"}.get(job.format, "")
    name = name or (CATALOG if job.url else "*" + Path(job.files()[0]).suffix)
    return package("chaski.torch").IterableDataset(
        f"{job.place}/{name}",
        batch_size=job.batch,
        shuffle=True,
        last="drop",
        pixels=chaski.Pixels(dtype="float32"),
        normalize=chaski.Normalize(1 / std, -mean / std),
        engine=engine,
        **options,
    )


def memory_of(job: Job) -> int:
    """Returns the memory of chaski's engine for eight batches, a quarter of it for tiles.

    By default it would keep more tiles than the other loaders may.
    """
    return max(256 << 20, 8 * job.batch * job.of.bands * job.of.side**2 * 4)


def serve(root: Path, workers: int, memory: int, shared: bool) -> str:
    """Starts a server that ends with this process, and returns its address.

    If it shares no memory, its batches come as from another machine.
    """
    # No path of a file: the name has to be short, and the folder of the samples need not be.
    command = [os.environ["CHASKI_BIN"], "serve", "--listen", f"unix-abstract:peers-{os.getpid()}"]
    command += ["--root", str(root), "--workers", str(workers)]
    command += ["--memory", str(memory), *["--no-shared-memory"] * (not shared)]
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
    **dict.fromkeys(("chaski", "chaski-recode"), with_chaski),
    **dict.fromkeys(LOOPS, with_loop),
    **dict.fromkeys(READERS, with_reader),
    "rumi-many": with_rumi_many,
    "mds": with_mds,
    "litdata": with_litdata,
    "webdataset": with_webdataset,
    "spdl": with_spdl,
    "async-geotiff": with_async_geotiff,
    "torchgeo": with_torchgeo,
    "tacoreader": with_tacoreader,
    "zarr": with_zarr,
}
