"""Windows on the ground: chaski beside TorchGeo on scenes of two UTM zones, by processor time.

ground.py make DIR [CODEC]  makes the scenes; CODEC is deflate (default), zstd or none
ground.py chaski DIR        draws windows by the command CHASKI_BIN, prints what one costs
ground.py torchgeo DIR      draws windows by TorchGeo, prints what one costs
ground.py hash DIR          prints a hash of the batches of chaski, to compare two commands
"""

from __future__ import annotations

import hashlib
import importlib
import os
import resource
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

BATCH, WORKERS, SIDE = 32, 2, 5490
WINDOWS = int(os.environ.get("WINDOWS", "512"))


def make(folder: Path, codec: str) -> None:
    """Write three overlapping scenes in each zone: four bands, uint16, tiles of 512 by 512."""
    import numpy as np

    rasterio: Any = importlib.import_module("rasterio")
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(1)
    for zone in (30, 31):
        for k in range(3):
            coarse = rng.integers(500, 3000, (4, SIDE // 32 + 1, SIDE // 32 + 1))
            pixels = np.repeat(np.repeat(coarse, 32, 1), 32, 2)[:, :SIDE, :SIDE]
            pixels = (pixels + rng.integers(0, 128, pixels.shape)).astype("uint16")
            west = (300000 if zone == 31 else 500000) + k * (SIDE - 490) * 10
            with rasterio.open(
                folder / f"T{zone}_{k}.tif",
                "w",
                driver="GTiff",
                width=SIDE,
                height=SIDE,
                count=4,
                dtype="uint16",
                crs=f"EPSG:326{zone}",
                transform=rasterio.transform.from_origin(west, 4600000, 10, 10),
                nodata=0,
                tiled=True,
                blockxsize=512,
                blockysize=512,
                compress=codec,
                predictor=1 if codec == "none" else 2,
                interleave="band",
            ) as f:
                f.write(pixels)


def of_chaski(folder: Path) -> Iterator[Any]:
    """Return an epoch of batches of chaski."""
    import chaski

    window = chaski.GeoWindow(size_m=2560, resolution=10, per_epoch=WINDOWS)
    field = chaski.Field(dtype="float32")
    with chaski.load(
        str(folder),
        fields={"image": field},
        batch_size=BATCH,
        window=window,
        seed=1,
        engine=chaski.Engine(workers=WORKERS),
    ) as loader:
        for batch in loader:
            yield batch["image"]


def of_torchgeo(folder: Path) -> Iterator[Any]:
    """Return an epoch of batches of TorchGeo."""
    data: Any = importlib.import_module("torch.utils.data")
    geo: Any = importlib.import_module("torchgeo.datasets")
    samplers: Any = importlib.import_module("torchgeo.samplers")
    scenes = type("Scenes", (geo.RasterDataset,), {"filename_glob": "T*.tif"})(str(folder))
    sampler = samplers.RandomGeoSampler(scenes, size=256, length=WINDOWS)
    for batch in data.DataLoader(
        scenes, BATCH, sampler=sampler, num_workers=WORKERS, collate_fn=geo.stack_samples
    ):
        yield batch["image"]


def spent() -> float:
    """Return the processor time of this process and of its ended children, in seconds."""
    whose = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    return sum(u.ru_utime + u.ru_stime for u in map(resource.getrusage, whose))


def main() -> None:
    """Run what the command line names."""
    what, folder = sys.argv[1], Path(sys.argv[2])
    if what == "make":
        make(folder, sys.argv[3] if len(sys.argv) > 3 else "deflate")
        return
    if what == "hash":
        import numpy as np

        digest = hashlib.sha256()
        for image in of_chaski(folder):
            digest.update(np.asarray(image).tobytes())
        print(digest.hexdigest())
        return
    os.environ["GDAL_CACHEMAX"] = "32"
    importlib.import_module("torch")  # what it costs is not counted

    begin, clock, rows = spent(), time.perf_counter(), 0
    for image in (of_chaski if what == "chaski" else of_torchgeo)(folder):
        assert image.shape[1:] == (4, 256, 256), image.shape
        rows += len(image)
    wall = time.perf_counter() - clock
    cpu = spent() - begin
    print(f"{what}: {rows} windows, {rows / cpu:.1f} a second of processor time", end=", ")
    print(f"{rows / wall:.1f} by the clock")


if __name__ == "__main__":
    main()
