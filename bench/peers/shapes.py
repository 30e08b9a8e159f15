"""What is compared: the shapes of samples, and the loaders with the files that they read."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Shape:
    """What samples look like, and how many there are.

    Samples are whole files ("chips") or windows of larger ones ("windows").
    """

    name: str
    imagery: str  # a key of IMAGERY: what samples are cut from
    bands: int
    side: int  # pixels of a sample along y and x
    dtype: str
    tile: int  # pixels of a tile along y and x
    images: int  # files
    samples: int  # of an epoch
    batch: int  # samples of a batch
    scene: int = 0  # pixels of a file along y and x; 0: a file is a sample
    files: str = ""  # the name of the directory of its samples; "": its own name
    form: str = ""  # the format that readers of any file read instead of "tog"
    delay: int = 0  # milliseconds of a request to a store; 0: files are local
    rate: int = 0  # MB a second of the link to the store
    late: int = 0  # every so many requests one is 2 s late; 0: none

    @property
    def windows(self) -> bool:
        """Samples are windows of larger files."""
        return self.scene > 0

    @property
    def traits(self) -> set[str]:
        """What not every peer can do."""
        traits = {"windows": self.windows, "store": self.delay}
        traits["picture"] = self.form in ("jpeg", "png")
        traits["raster"] = not traits["picture"]
        return {name for name, on in traits.items() if on}

    @property
    def local(self) -> Shape:
        """The shape of its samples, without a link."""
        name = self.files or self.name
        return dataclasses.replace(self, name=name, files="", delay=0, rate=0, late=0)

    @property
    def needed(self) -> float:
        """The files' share that a sample needs: itself, or the tiles that its window touches."""
        if not self.windows:
            return 1 / self.images
        # Along an axis, on average: each edge between two tiles is inside of side - 1 windows.
        edges = self.scene // self.tile - 1
        tiles = 1 + edges * (self.side - 1) / (self.scene - self.side + 1)
        return (tiles * self.tile / self.scene) ** 2 / self.images

    @property
    def file_side(self) -> int:
        """The side of a file in pixels, along y and x."""
        return self.scene or self.side

    @property
    def per_asset(self) -> int:
        """Windows of each file in an epoch, rounded up."""
        return -(-self.samples // self.images)

    def small(self) -> Shape:
        """Returns the shape with fewer files and samples, for a quick try of all peers."""
        if self.windows:
            scene = max(1024, 2 * self.tile)
            return dataclasses.replace(self, images=2, scene=scene, samples=4 * self.batch)
        batch = min(self.batch, 16)
        images = max(4 * batch, self.images // 64 // batch * batch)
        return dataclasses.replace(self, batch=batch, images=images, samples=images)

    def __str__(self) -> str:
        sample = f"({self.bands}, {self.side}, {self.side}) {self.dtype}"
        rest = f"tiles of {self.tile}, batches of {self.batch}"
        if self.form:
            rest = f"{FORMS[self.form]}, batches of {self.batch}"
        if self.delay:
            rest += f", from a store at {self.delay} ms x {self.rate} MB/s"
        if self.late:
            rest += f", each {self.late}th request 2 s late"
        if self.windows:
            sizes = f"{self.images} files of {self.scene} x {self.scene}"
            return f"windows {sample} of {sizes}, {rest}"
        return f"{self.images} files {sample}, {rest}"


def chips(
    name: str, imagery: str, bands: int, side: int, dtype: str, tile: int, images: int, batch: int
) -> Shape:
    """Returns a shape of whole files."""
    return Shape(name, imagery, bands, side, dtype, tile, images, images, batch)


def windows(
    name: str, imagery: str, bands: int, side: int, dtype: str, tile: int, images: int, scene: int
) -> Shape:
    """Returns a shape of 4,096 windows in batches of 32."""
    return Shape(name, imagery, bands, side, dtype, tile, images, 4096, 32, scene)


# What a store serves: chips, chips of 8 KB, and windows. An epoch takes 2 to 20 s of the link.
CHIPS = chips("chips", "s2", 6, 256, "uint16", 128, 512, 32)
STORED = {
    "": CHIPS,
    "-8kb": chips("stored-8kb", "s2", 1, 80, "uint16", 80, 8192, 64),
    "-windows": Shape("stored-windows", "s2", 6, 256, "uint16", 256, 4, 192, 8, 2048),
}


def behind(delay: int, rate: int) -> list[Shape]:
    """Returns the shapes of a store at a distance: milliseconds, and MB a second."""
    found = [
        dataclasses.replace(s, name=f"store-{delay}ms{kind}", files=s.name, delay=delay, rate=rate)
        for kind, s in STORED.items()
    ]
    return [*found, dataclasses.replace(found[0], name=f"store-{delay}ms-late", late=100)]


# Forms of files that only some loaders read.
FORMS = {
    "vrt": "virtual rasters of four files each, tiles of 256",
    "raw": "uncompressed, tiles of 256",
    "strips": "uncompressed, as GDAL writes without options",
    "rows": "chips, uncompressed, strips of one row",
    "sparse": "zstd, half of the tiles absent",
    "cog": "COGs, zstd, bands interleaved by pixel, tiles of 512",
    "cells": "GeoTIFFs in the cells of a Parquet table",
    "jpeg": "JPEG pictures",
    "png": "PNG pictures",
}


def formed(form: str) -> Shape:
    """Returns the shape of a form: 1,024 windows, or 512 files."""
    side = 512 if form in ("jpeg", "png") else 256
    if side == 512 or form in ("cells", "rows"):
        bands, dtype = (3, "uint8") if side == 512 else (6, "uint16")
        return Shape(form, "s2", bands, side, dtype, 128, 512, 512, 32, form=form)
    tile = 512 if form == "cog" else 256
    return Shape(form, "s2", 6, side, "uint16", tile, 4, 1024, 32, 2048, form=form)


# In the order in which they are measured. Their files decode to 100 to 450 MB: more than caches of
# decoded tiles hold, and little enough for the page cache.
SHAPES = [
    CHIPS,
    windows("windows", "s2", 6, 256, "uint16", 256, 6, 2048),
    *map(formed, FORMS),
    chips("s2-13x256", "s2", 13, 256, "uint16", 64, 192, 16),
    chips("s2-13x512", "s2", 13, 512, "uint16", 256, 64, 8),
    chips("s2-6x512", "s2", 6, 512, "uint16", 512, 128, 16),
    windows("s2-13x128-windows", "s2", 13, 128, "uint16", 512, 4, 2048),
    chips("naip-3x256", "naip", 3, 256, "uint8", 256, 1024, 32),
    windows("naip-3x256-windows", "naip", 3, 256, "uint8", 512, 6, 4096),
    chips("landsat-7x256", "landsat", 7, 256, "uint16", 128, 384, 32),
    chips("index-1x256", "s2", 1, 256, "float32", 256, 1024, 32),
    chips("index-1x64", "s2", 1, 64, "float32", 64, 8192, 64),
    *behind(30, 30),
    *behind(100, 20),
]

# For each kind of imagery, parts of the names of its files, and the file of testdata that replaces
# missing imagery.
IMAGERY = {
    "s2": (("s2", "sentinel"), "demo/coast.tif"),
    "naip": (("naip",), "raster/tog/rel-lzw-u8-pixel.tif"),
    "landsat": (("landsat", "l8", "l9"), "raster/tog/tog-series-0.tif"),
}


@dataclass(frozen=True)
class Peer:
    """A loader, with the files that it reads."""

    name: str
    about: str
    format: str  # of its files
    loader: str = ""  # a key of LOADERS in peers.py; "" for the engine alone
    transport: str = "auto"  # of chaski's batches
    decodes: bool = False  # its decoding is also measured alone
    large: bool = False  # it has the memory that it takes by default, not 64 MB for tiles
    pause: float | None = None  # of a first epoch that is not measured: seconds after each batch
    cannot: dict[str, str] = field(default_factory=dict)  # traits of shapes, and why

    def form(self, shape: Shape) -> str:
        """Returns the format that it reads of a shape."""
        any_form = self.format == "tog" and self.loader in ANY
        return shape.form if shape.form and any_form else self.format

    def hindrance(self, shape: Shape) -> str:
        """Returns why it cannot load a shape, or nothing."""
        for trait in sorted(shape.traits & self.cannot.keys()):
            return f"{trait}: {self.cannot[trait]}"
        other = shape.form and self.form(shape) != shape.form
        return f"its files are no {shape.form}" if other else ""


BASELINE = "rasterio"  # ratios compare with this peer

WHOLE = {"windows": "its shards hold whole samples"}
FAR = {"store": "its server stands beside the data, not behind the link"}
LATER = {"store": "a store is measured in the first epoch"}
# Loaders that read every form, or all that they read.
ANY = (
    "chaski",
    "chaski-recode",
    "rasterio",
    "rasterio-loop",
    "tifffile-loop",
    "cv2-loop",
    "pillow",
)
PICTURES = {"raster": "it reads pictures"}
OWN_CLOCK = {"store": "its own clock starts after the first batches"}
FILES = {"store": "reads local files"}

PEERS = [
    Peer("chaski", "the package chaski, batches in shared memory", "tog", "chaski"),
    Peer("chaski-grpc", "the same, batches over gRPC", "tog", "chaski", "grpc"),
    Peer(
        "chaski-connect",
        "chaski.connect: a server without shared memory, a local engine as its client",
        "tog",
        "chaski",
        "connect",
        cannot=FAR,
    ),
    Peer(
        "chaski-host",
        "chaski.connect: a server on the host, batches in its shared memory",
        "tog",
        "chaski",
        "host",
        cannot=FAR,
    ),
    Peer("chaski-rumi", "chaski on rumi files of the current generation", "rumi", "chaski"),
    Peer("chaski-fast", "chaski on what convert --codec fast writes", "fast", "chaski"),
    Peer("chaski-rumi1", "chaski on rumi files of generation 1", "rumi1", "chaski", cannot=FILES),
    Peer("chaski-taco", "chaski on a TACO ZIP", "taco", "chaski"),
    Peer("chaski-cells", "chaski on GeoTIFFs in the cells of a Parquet table", "cells", "chaski"),
    Peer(
        "chaski-load",
        "the engine by itself in a Go process, no Python",
        "tog",
        decodes=True,
        cannot=OWN_CLOCK,
    ),
    Peer(
        "chaski-load-rumi1",
        "the engine by itself on rumi files of generation 1",
        "rumi1",
        decodes=True,
        cannot=OWN_CLOCK,
    ),
    Peer(
        "chaski-large",
        "chaski with the memory that it takes by default, from the second epoch",
        "tog",
        "chaski",
        large=True,
        pause=0,
        cannot=LATER,
    ),
    Peer(
        "chaski-recode",
        "chaski with recode, the second epoch after one with 0.1 s of training a batch",
        "tog",
        "chaski-recode",
        large=True,
        pause=0.1,
        cannot=LATER,
    ),
    Peer("rasterio", "rasterio (GDAL) and a DataLoader", "tog", "rasterio", decodes=True),
    Peer(
        "rasterio-large",
        "the same with GDAL's default cache, from the second epoch",
        "tog",
        "rasterio",
        large=True,
        pause=0,
        cannot=LATER,
    ),
    Peer(
        "rasterio-loop",
        "rasterio in a plain loop, files stay open, GDAL's default cache, from the second epoch",
        "tog",
        "rasterio-loop",
        large=True,
        pause=0,
        cannot=LATER,
    ),
    Peer(
        "tifffile-loop",
        "tifffile with imagecodecs in a plain loop",
        "tog",
        "tifffile-loop",
        cannot=LATER | {"windows": "it is set up to read whole files", "picture": "it reads TIFFs"},
    ),
    Peer("cv2-loop", "OpenCV in a plain loop", "tog", "cv2-loop", cannot=LATER | PICTURES),
    Peer("zarrs-loop", "zarr with zarrs' codecs in a loop", "zarr", "zarrs-loop", cannot=LATER),
    Peer("h5py-loop", "h5py (gzip, shuffle) in a plain loop", "hdf5", "h5py-loop", cannot=LATER),
    Peer("pillow", "Pillow and a DataLoader", "tog", "pillow", cannot=PICTURES),
    Peer("torchgeo", "TorchGeo's RasterDataset and a DataLoader", "tog", "torchgeo"),
    Peer(
        "tacoreader",
        "tacoreader, rasterio and a DataLoader",
        "taco",
        "tacoreader",
        cannot={"store": "it takes no plain HTTP, which the link speaks"},
    ),
    Peer("spdl", "SPDL, rasterio in its threads", "tog", "spdl"),
    # async-tiff 0.7.2 undoes the predictor of interleaved tiles wrongly.
    Peer("async-geotiff", "async-geotiff with obstore, 32 requests", "cog", "async-geotiff"),
    Peer(
        "litdata",
        "LitData, chunks that the first epoch has decompressed",
        "litdata",
        "litdata",
        cannot=WHOLE,
    ),
    Peer("webdataset", "WebDataset, GeoTIFFs in tars", "webdataset", "webdataset", cannot=WHOLE),
    Peer(
        "tifffile",
        "tifffile with imagecodecs and a DataLoader",
        "tog",
        "tifffile",
        decodes=True,
        cannot=FILES | {"windows": "it is set up to read whole files"},
    ),
    Peer(
        "mds",
        "MosaicML streaming, shards that the first epoch has decompressed",
        "mds",
        "mds",
        cannot=WHOLE,
    ),
    Peer("zarr", "zarr (Blosc, zstd) and a DataLoader", "zarr", "zarr"),
    Peer(
        "rumi",
        "rumi-eo, the current generation, and a DataLoader",
        "rumi",
        "rumi",
        decodes=True,
    ),
    Peer("rumi-many", "rumi-eo, a read a batch in threads", "rumi", "rumi-many"),
    Peer(
        "rumi1",
        "rumi-eo 0.8.3, generation 1, and a DataLoader",
        "rumi1",
        "rumi1",
        decodes=True,
        cannot=FILES,
    ),
]
