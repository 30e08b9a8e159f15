"""The samples of a shape: cut from imagery, described by signatures, and written in every format.

Needs numpy, rasterio for imagery and tog, and for each format the package of its name.
"""

from __future__ import annotations

import functools
import importlib
import io
import json
import math
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from shapes import Shape

Image = npt.NDArray[Any]  # (bands, y, x)
Numbers = npt.NDArray[np.float64]

FILES = (".tif", ".rumi", ".tar", ".vrt", ".jpg", ".png")

CACHE = 64  # MB of decoded tiles that a process may keep, as chaski's engine has by default


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
    url: str = ""  # of a server with the folder, for shapes behind a link
    large: bool = False  # the memory that the loader takes by default
    pause: float | None = None  # of a first epoch that is not measured, after each batch
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

    @property
    def place(self) -> str:
        """The directory of the format, as a path or a URL."""
        return f"{self.url or self.folder}/{self.format}"

    def files(self) -> list[str]:
        """Returns the files of the format as paths or URLs, in the order of their images."""
        folder = self.folder / self.format
        found = sorted(p.name for p in folder.glob("*") if p.suffix in FILES)
        if not found:
            raise FileNotFoundError(f"{self.format} is not made")
        return [f"{self.place}/{name}" for name in found]


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
    stretched: npt.NDArray[Any] = np.clip(image.astype(np.float64) * limit / top, 0, limit)
    return stretched.astype(dtype)


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
    change = {"sparse": holed, "jpeg": lossy}.get(job.of.form, lambda image: image)
    yield from map(change, (scenes if job.of.windows else chips)(job.of, scene))


def holed(image: Image) -> Image:
    """Returns an image whose tiles of 256 are zero like the dark squares of a chessboard."""
    out: Image = image.copy()
    for y in range(0, out.shape[1], 256):
        for x in range(256 - y % 512, out.shape[2], 512):
            out[:, y : y + 256, x : x + 256] = 0
    return out


def lossy(image: Image) -> Image:
    """Returns the pixels that Pillow decodes of an image's JPEG."""
    opened = package("PIL.Image").open(io.BytesIO(picture(image, "JPEG")))
    return np.asarray(np.moveaxis(np.asarray(opened), -1, 0))


def picture(image: Image, form: str) -> bytes:
    """Returns an image of three bands as a picture by Pillow, with its default options."""
    out = io.BytesIO()
    package("PIL.Image").fromarray(np.moveaxis(image, 0, -1)).save(out, form)
    return out.getvalue()


def chips(shape: Shape, scene: Image) -> Iterator[Image]:
    """Yields crops of the scene, rotated by multiples of 90 degrees."""
    r = np.random.default_rng(7)
    side = shape.side
    for _ in range(shape.images):
        y = r.integers(0, scene.shape[1] - side)
        x = r.integers(0, scene.shape[2] - side)
        crop = scene[:, y : y + side, x : x + side]
        yield np.ascontiguousarray(np.rot90(crop, int(r.integers(4)), axes=(1, 2)))


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
    """Returns how much signatures may differ: by float32 rounding, but less than by one pixel.

    Decoders of JPEG differ by 1 in some pixels. Another sample is off by about side * sqrt(bands).
    """
    return (0.2 if shape.form == "jpeg" else 1e-5) * shape.side * math.sqrt(shape.bands)


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

CATALOG = "catalog.parquet"

PIXEL = 10  # metres


def corner(shape: Shape, k: int) -> tuple[int, int]:
    """Returns the west and north of image k: images lie in rows of 32, with gaps between them."""
    step = 2 * shape.file_side * PIXEL
    return 500_000 + k % 32 * step, 9_000_000 - k // 32 * step


def togs(job: Job, interleave: str = "TILE") -> Iterator[bytes]:
    """Yields the images as GeoTIFFs of GDAL's COG driver, tiles interleaved: TOGs, written once."""
    made = sorted((job.folder / "tog").glob("*.tif"))
    if made and (interleave == "TILE" or job.of.bands == 1):
        yield from (path.read_bytes() for path in made)
        return
    rasterio, copy = package("rasterio"), package("rasterio.shutil").copy

    options = {
        "INTERLEAVE": interleave,
        "BLOCKSIZE": job.of.tile,
        "COMPRESS": "ZSTD",
        "LEVEL": 13,
        "PREDICTOR": "YES",
        "BIGTIFF": "YES",
        "OVERVIEWS": "NONE",
    }
    for i, image in enumerate(images(job)):
        profile = profile_of(image, *corner(job.of, i))
        with rasterio.MemoryFile() as m, rasterio.MemoryFile() as cog:
            with m.open(**profile) as d:
                d.write(image)
            with m.open() as d:
                copy(d, cog.name, driver="COG", **options)
            yield bytes(cog.read())


def profile_of(image: Image, west: int, north: int) -> dict[str, Any]:
    """Returns how rasterio opens a GeoTIFF for an image."""
    return {
        "driver": "GTiff",
        "height": image.shape[1],
        "width": image.shape[2],
        "count": image.shape[0],
        "dtype": image.dtype,
        "crs": "EPSG:32618",
        "transform": package("rasterio").transform.from_origin(west, north, PIXEL, PIXEL),
    }


def write_tiffs(job: Job, out: Path) -> None:
    """Writes GeoTIFFs: uncompressed in tiles or strips, also of one row, or with absent tiles."""
    tiles: dict[str, Any] = {"tiled": True, "blockxsize": job.of.tile, "blockysize": job.of.tile}
    tiles["interleave"] = "band"
    zstd = {"compress": "zstd", "zstd_level": 13, "predictor": 2}
    options: dict[str, Any] = {
        "raw": tiles,
        "strips": {},
        "rows": {"blockysize": 1, "interleave": "band"},
        "sparse": tiles | zstd,
    }[job.format]
    for i, image in enumerate(images(job)):
        profile = profile_of(image, *corner(job.of, i)) | options
        sparse = {"sparse_ok": True} if job.format == "sparse" else {}
        with package("rasterio").open(out / f"{i:05d}.tif", "w", **profile, **sparse) as d:
            d.write(image)


def write_vrts(job: Job, out: Path) -> None:
    """Writes each image as four GeoTIFFs, and the virtual raster that joins them."""
    (out / "parts").mkdir()
    kinds, half = {"uint8": "Byte", "uint16": "UInt16"}, job.of.scene // 2
    options: dict[str, Any] = {"tiled": True, "blockxsize": job.of.tile, "blockysize": job.of.tile}
    options |= {"interleave": "band", "compress": "zstd", "zstd_level": 13, "predictor": 2}
    for i, image in enumerate(images(job)):
        west, north = corner(job.of, i)
        sources = []
        for y in (0, half):
            for x in (0, half):
                name, part = f"parts/{i:05d}-{y}-{x}.tif", image[:, y : y + half, x : x + half]
                profile = profile_of(part, west + x * PIXEL, north - y * PIXEL) | options
                with package("rasterio").open(out / name, "w", **profile) as d:
                    d.write(part)
                size = f'xSize="{half}" ySize="{half}"'
                sources.append(
                    f'<SimpleSource><SourceFilename relativeToVRT="1">{name}</SourceFilename>'
                    f'<SourceBand>BAND</SourceBand><SrcRect xOff="0" yOff="0" {size}/>'
                    f'<DstRect xOff="{x}" yOff="{y}" {size}/></SimpleSource>'
                )
        bands = (
            f'<VRTRasterBand dataType="{kinds[job.of.dtype]}" band="{band}">'
            + "".join(sources).replace("BAND", str(band))
            + "</VRTRasterBand>"
            for band in range(1, job.of.bands + 1)
        )
        (out / f"{i:05d}.vrt").write_text(
            f'<VRTDataset rasterXSize="{job.of.scene}" rasterYSize="{job.of.scene}">'
            f"<SRS>EPSG:32618</SRS><GeoTransform>{west}, {PIXEL}, 0, {north}, 0, -{PIXEL}"
            f"</GeoTransform>{''.join(bands)}</VRTDataset>"
        )


def write_pictures(job: Job, out: Path) -> None:
    """Writes JPEG or PNG files."""
    form, suffix = {"jpeg": ("JPEG", "jpg"), "png": ("PNG", "png")}[job.format]
    for i, image in enumerate(chips(job.of, np.load(job.folder / "scene.npy"))):
        (out / f"{i:05d}.{suffix}").write_bytes(picture(image, form))


def write_togs(job: Job, out: Path) -> None:
    """Writes a file for each image, and a catalog of them."""
    for i, tog in enumerate(togs(job)):
        (out / f"{i:05d}.tif").write_bytes(tog)
    write_catalog(out)


def write_cogs(job: Job, out: Path) -> None:
    """Writes a file for each image, bands interleaved by pixel as COGs mostly are."""
    for i, cog in enumerate(togs(job, "PIXEL")):
        (out / f"{i:05d}.tif").write_bytes(cog)


def write_catalog(out: Path) -> None:
    """Writes a catalog of the rasters in a directory, which chaski needs on a web server."""
    command = [os.environ["CHASKI_BIN"], "index", "--format", "parquet"]
    subprocess.run([*command, "-o", str(out / CATALOG), str(out)], check=True)


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
    write_catalog(out)


def write_fast(job: Job, out: Path) -> None:
    """Writes what chaski convert makes of the GeoTIFFs with its fastest codec."""
    (out / "togs").mkdir()
    for i, tog in enumerate(togs(job)):
        (out / "togs" / f"{i:05d}.tif").write_bytes(tog)
    command = [os.environ["CHASKI_BIN"], "convert", "--codec", "fast", "--time", "2024-01-01"]
    command += ["--tile", str(job.of.tile), "-o", f"{out}/", str(out / "togs")]
    subprocess.run(command, check=True)
    shutil.rmtree(out / "togs")
    write_catalog(out)


def blob_of(path: str | Path) -> Path:
    """Returns the path of a rumi file's header blob."""
    return Path(f"{path}.hdr")


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


def write_hdf5(job: Job, out: Path) -> None:
    """Writes one HDF5 file, with chunks as the zarr array has them."""
    s = job.of
    side = s.tile if s.windows else s.side
    with package("h5py").File(out / "all.h5", "w") as f:
        data = f.create_dataset(
            "image",
            (s.images, s.bands, s.file_side, s.file_side),
            s.dtype,
            chunks=(1, s.bands, side, side),
            compression="gzip",
            shuffle=True,
        )
        for i, image in enumerate(images(job)):
            data[i] = image


def litdata_samples(job: Job, _: int) -> Iterator[dict[str, Image]]:
    """Yields what LitData stores."""
    yield from ({"x": image} for image in images(job))


def write_litdata(job: Job, out: Path) -> None:
    """Writes the chips as chunks of LitData, compressed."""
    package("litdata").optimize(
        fn=functools.partial(litdata_samples, job),
        inputs=[0],
        output_dir=str(out / "chips"),  # S3 wants a key below the bucket
        num_workers=1,
        chunk_bytes="16MB",
        compression="zstd",
    )


def write_webdataset(job: Job, out: Path) -> None:
    """Writes the chips' GeoTIFFs into tar shards, as WebDataset keeps encoded images."""
    writer = package("webdataset").ShardWriter
    with writer(str(out / "%05d.tar"), maxsize=1 << 24, verbose=0) as shards:
        for i, tog in enumerate(togs(job)):
            shards.write({"__key__": f"{i:05d}", "tif": tog})


def write_taco(job: Job, out: Path) -> None:
    """Writes the GeoTIFFs into one TACO 2 ZIP."""
    about: dict[str, Any] = {
        "id": "bench",
        "dataset_version": "1.0",
        "description": "chips",
        "tasks": ["other"],
    }
    about |= {"licenses": ["CC0-1.0"], "providers": [{"name": "bench"}]}
    rows = [{"id": f"{i:05d}", "path": tog} for i, tog in enumerate(togs(job))]
    package("chaski").pack(rows, str(out / "all.tacozip"), about)


def write_cells(job: Job, out: Path) -> None:
    """Writes a Parquet table with the GeoTIFFs in its cells, a chip a page."""
    pa, pq = package("pyarrow"), package("pyarrow.parquet")
    table = pa.table({"image": list(togs(job))})
    pages = {"row_group_size": 1024, "data_page_size": 1, "write_batch_size": 1}
    pages["write_page_index"] = True
    stored = {"use_dictionary": False, "compression": "none"}
    pq.write_table(table, out / "all.parquet", **pages, **stored)


WRITERS: dict[str, Callable[[Job, Path], None]] = {
    "tog": write_togs,
    "cog": write_cogs,
    "rumi": write_rumi,
    "rumi1": write_rumi1,
    "fast": write_fast,
    "hdf5": write_hdf5,
    "mds": write_mds,
    "zarr": write_zarr,
    "litdata": write_litdata,
    "webdataset": write_webdataset,
    "taco": write_taco,
    "cells": write_cells,
    "vrt": write_vrts,
    **dict.fromkeys(("raw", "strips", "rows", "sparse"), write_tiffs),
    **dict.fromkeys(("jpeg", "png"), write_pictures),
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
    files = [p for p in final.rglob("*") if p.is_file() and p.name != CATALOG]
    size = sum(p.stat().st_size for p in files)
    return {"bytes": size}
