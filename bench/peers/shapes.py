"""What is compared: the shapes of samples, and the loaders with the files that they read."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass


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

    @property
    def windows(self) -> bool:
        """Samples are windows of larger files."""
        return self.scene > 0

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


# In the order in which they are measured. Their files decode to 100 to 450 MB: more than caches of
# decoded tiles hold, and little enough for the page cache.
SHAPES = [
    chips("chips", "s2", 6, 256, "uint16", 128, 512, 32),
    windows("windows", "s2", 6, 256, "uint16", 256, 6, 2048),
    chips("s2-13x256", "s2", 13, 256, "uint16", 64, 192, 16),
    chips("s2-13x512", "s2", 13, 512, "uint16", 256, 64, 8),
    chips("s2-6x512", "s2", 6, 512, "uint16", 512, 128, 16),
    windows("s2-13x128-windows", "s2", 13, 128, "uint16", 512, 4, 2048),
    chips("naip-3x256", "naip", 3, 256, "uint8", 256, 1024, 32),
    windows("naip-3x256-windows", "naip", 3, 256, "uint8", 512, 6, 4096),
    chips("landsat-7x256", "landsat", 7, 256, "uint16", 128, 384, 32),
    chips("index-1x256", "s2", 1, 256, "float32", 256, 1024, 32),
    chips("index-1x64", "s2", 1, 64, "float32", 64, 8192, 64),
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
    chips: bool = False  # reads whole files only
    decodes: bool = False  # its decoding is also measured alone


BASELINE = "rasterio"  # ratios compare with this peer

PEERS = [
    Peer("chaski", "the package chaski, batches in shared memory", "tog", "chaski"),
    Peer("chaski-grpc", "the same, batches over gRPC", "tog", "chaski", "grpc"),
    Peer(
        "chaski-connect",
        "chaski.connect: a server without shared memory, a local engine as its client",
        "tog",
        "chaski",
        "connect",
    ),
    Peer("chaski-rumi", "chaski on rumi files of the current generation", "rumi", "chaski"),
    Peer("chaski-rumi1", "chaski on rumi files of generation 1", "rumi1", "chaski"),
    Peer("chaski-load", "the engine by itself in a Go process, no Python", "tog", decodes=True),
    Peer(
        "chaski-load-rumi1",
        "the engine by itself on rumi files of generation 1",
        "rumi1",
        decodes=True,
    ),
    Peer("rasterio", "rasterio (GDAL) and a DataLoader", "tog", "rasterio", decodes=True),
    Peer(
        "tifffile",
        "tifffile with imagecodecs and a DataLoader",
        "tog",
        "tifffile",
        chips=True,
        decodes=True,
    ),
    Peer(
        "mds",
        "MosaicML streaming, shards that the first epoch has decompressed",
        "mds",
        "mds",
        chips=True,
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
    Peer("rumi1", "rumi-eo 0.8.3, generation 1, and a DataLoader", "rumi1", "rumi1", decodes=True),
]
