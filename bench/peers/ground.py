"""Windows on the ground: chaski beside TorchGeo on scenes of two UTM zones, by processor time.

ground.py make SHAPE DIR [CODEC]  makes the files; CODEC is deflate (default), zstd or none
ground.py chaski SHAPE DIR        draws windows by the command CHASKI_BIN, prints what one costs
ground.py torchgeo SHAPE DIR      draws windows by TorchGeo, prints what one costs
ground.py equal SHAPE DIR         compares the pixels of both, needs a shape with bands
ground.py hash SHAPE DIR          prints a hash of the batches of chaski, to compare two commands

SHAPE  bands    a file for each of 10 bands, four of 10 m and six of 20 m, as Sentinel-2 has them
       labels   the same, and 30,000 polygons drawn as a mask
       stack    files of four bands of 10 m
"""

from __future__ import annotations

import hashlib
import importlib
import os
import resource
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

BATCH, WORKERS, SIDE, SHAPES = 32, 2, 5490, 30000
WINDOWS = int(os.environ.get("WINDOWS", "512"))
RUN = int(os.environ.get("SEED", "1"))
WEST, NORTH, STEP = {30: 500000, 31: 300000}, 4600000, (SIDE - 490) * 10
FINE, COARSE = ("B02", "B03", "B04", "B08"), ("B05", "B06", "B07", "B8A", "B11", "B12")
LABELS = "labels.parquet"
COAST = Path(__file__).resolve().parents[2] / "testdata" / "demo" / "coast.tif"


def write(path: Path, pixels: Any, zone: int, west: int, side: int, codec: str) -> None:
    """Write a scene with pixels of `side` metres in tiles of 512 by 512."""
    rasterio: Any = importlib.import_module("rasterio")
    with rasterio.open(
        path,
        "w",
        driver="GTiff",
        width=pixels.shape[2],
        height=pixels.shape[1],
        count=len(pixels),
        dtype="uint16",
        crs=f"EPSG:326{zone}",
        transform=rasterio.transform.from_origin(west, NORTH, side, side),
        nodata=0,
        tiled=True,
        blockxsize=512,
        blockysize=512,
        compress=codec,
        predictor=1 if codec == "none" else 2,
        interleave="band",
    ) as f:
        f.write(pixels)


def make_stack(folder: Path, codec: str) -> None:
    """Write three overlapping scenes in each zone: four bands, fields of 320 m and noise."""
    import numpy as np

    rng = np.random.default_rng(1)
    for zone in WEST:
        for k in range(3):
            coarse = rng.integers(500, 3000, (4, SIDE // 32 + 1, SIDE // 32 + 1))
            pixels = np.repeat(np.repeat(coarse, 32, 1), 32, 2)[:, :SIDE, :SIDE]
            pixels = (pixels + rng.integers(0, 128, pixels.shape)).astype("uint16")
            write(folder / f"T{zone}_{k}.tif", pixels, zone, WEST[zone] + k * STEP, 10, codec)


def make_bands(folder: Path, codec: str) -> None:
    """Write three scenes in each zone, a file for each band.

    The pixels are those of Sentinel-2 in the test data, mirrored side by side. Noise of 4 keeps
    DEFLATE from finding the copies.
    """
    import numpy as np

    rasterio: Any = importlib.import_module("rasterio")
    rng = np.random.default_rng(1)
    with rasterio.open(COAST) as f:
        coast = f.read().astype("float32")
    for zone in WEST:
        for k in range(3):
            for i, band in enumerate(FINE + COARSE):
                metres = 10 if band in FINE else 20
                side = SIDE * 10 // metres
                tile = np.rot90(coast[i % len(coast)], k)
                tile = np.block([[tile, tile[:, ::-1]], [tile[::-1], tile[::-1, ::-1]]])
                many = -(-side // len(tile))
                pixels = np.tile(tile, (many, many))[:side, :side]
                pixels = pixels + rng.normal(0, 4, pixels.shape).astype("float32")
                pixels = np.clip(pixels, 1, 20000).astype("uint16")[None]
                name = f"T{zone}_{k}_{band}.tif"
                write(folder / name, pixels, zone, WEST[zone] + k * STEP, metres, codec)
    make_labels(folder)


def make_labels(folder: Path) -> None:
    """Write polygons of 9 classes: octagons of 50 to 300 m, at random places of the scenes."""
    import numpy as np

    geopandas: Any = importlib.import_module("geopandas")
    shapely: Any = importlib.import_module("shapely")
    pandas: Any = importlib.import_module("pandas")
    rng = np.random.default_rng(2)
    parts = []
    for zone in WEST:
        n = SHAPES // len(WEST)
        x = rng.uniform(WEST[zone], WEST[zone] + 2 * STEP + SIDE * 10, (n, 1))
        y = rng.uniform(NORTH - SIDE * 10, NORTH, (n, 1))
        turn = np.linspace(0, 2 * np.pi, 9)[:8] + rng.uniform(0, 1, (n, 1))
        sizes = rng.uniform(50, 300, (n, 2, 1))
        corners = np.stack([x + sizes[:, 0] * np.cos(turn), y + sizes[:, 1] * np.sin(turn)], -1)
        shapes = geopandas.GeoDataFrame(
            {"class": rng.integers(1, 10, n).astype("int32")},
            geometry=shapely.polygons(corners),
            crs=f"EPSG:326{zone}",
        )
        parts.append(shapes.to_crs(4326))
    pandas.concat(parts).to_parquet(folder / LABELS, write_covering_bbox=True)


def chaski_arguments(shape: str, folder: Path, **options: Any) -> dict[str, Any]:
    """Return the arguments of chaski for an epoch of windows; options are those of the image."""
    import chaski

    fields: dict[str, Any] = {"image": chaski.Field(dtype="float32", **options)}
    if shape != "stack":
        patterns = ["{id}_" + band + ".tif" for band in FINE + COARSE]
        fields["image"] = chaski.Field(dtype="float32", patterns=patterns, grid="first", **options)
    if shape == "labels":
        fields["mask"] = chaski.Vector(str(folder / LABELS), column="class", dtype="int64")
    return {
        "source": str(folder),
        "fields": fields,
        "batch_size": BATCH,
        "window": chaski.GeoWindow(size_m=2560, resolution=10, per_epoch=WINDOWS),
        "seed": RUN,
        "engine": chaski.Engine(workers=WORKERS, share=False),
    }


def of_chaski(shape: str, folder: Path) -> Iterator[dict[str, Any]]:
    """Return an epoch of batches of chaski."""
    import chaski.torch

    with chaski.torch.IterableDataset(**chaski_arguments(shape, folder)) as dataset:
        yield from dataset


def torchgeo_scenes(shape: str, folder: Path, labels: Path, **options: Any) -> Any:
    """Return the scenes as a dataset of TorchGeo, with labels if the shape has them."""
    geo: Any = importlib.import_module("torchgeo.datasets")
    members: dict[str, Any] = {"filename_glob": "T*.tif"}
    if shape != "stack":
        members = {
            "filename_glob": f"T*_{FINE[0]}.tif",
            "filename_regex": r"T\d+_\d_(?P<band>B[018][\dA])\.tif",
            "all_bands": FINE + COARSE,
            "separate_files": True,
        }
    resampling = options.pop("resampling", None)
    if resampling is not None:
        members["resampling"] = property(lambda _: resampling)
    scenes = type("Scenes", (geo.RasterDataset,), members)(str(folder), **options)
    if shape != "labels":
        return scenes
    shapes = type("Labels", (geo.VectorDataset,), {"filename_glob": "*.parquet"})
    return scenes & shapes(str(labels), label_name="class")


def of_torchgeo(shape: str, folder: Path) -> Iterator[dict[str, Any]]:
    """Return an epoch of batches of TorchGeo."""
    data: Any = importlib.import_module("torch.utils.data")
    geo: Any = importlib.import_module("torchgeo.datasets")
    samplers: Any = importlib.import_module("torchgeo.samplers")
    torch: Any = importlib.import_module("torch")
    dataset = torchgeo_scenes(shape, folder, folder / LABELS)
    generator = torch.Generator().manual_seed(RUN)
    sampler = samplers.RandomGeoSampler(dataset, size=256, length=WINDOWS, generator=generator)
    yield from data.DataLoader(
        dataset, BATCH, sampler=sampler, num_workers=WORKERS, collate_fn=geo.stack_samples
    )


def in_zone(folder: Path, made: Path, zone: int) -> Path:
    """Write the labels in the CRS of a zone: of others TorchGeo leaves some out, see `equal`."""
    geopandas: Any = importlib.import_module("geopandas")
    labels = made / f"{zone}.parquet"
    geopandas.read_parquet(folder / LABELS).to_crs(f"EPSG:326{zone}").to_parquet(labels)
    return labels


def compare(row: dict[str, Any], other: dict[str, Any]) -> dict[str, bool]:
    """Return which parts of a window of chaski are those of TorchGeo, which rounds to uint16."""
    import numpy as np

    image, want = np.floor(row["image"] + 0.5), other["image"].numpy()
    fine = len(FINE)
    same = {"10 m": bool((image[:fine] == want[:fine]).all())}
    if len(image) > fine:
        same["20 m"] = bool((image[fine:] == want[fine:]).all())
    if "mask" in row:
        same["mask"] = bool((row["mask"] == other["mask"].numpy()).all())
    return same


def equal(shape: str, folder: Path) -> None:
    """Compare chaski's windows with those of TorchGeo at the same places, each in its own zone.

    The labels are compared in the CRS of the zone, too. In another one TorchGeo looks for shapes
    between two corners of the window, and misses some at the other two.
    """
    import chaski

    resampling: Any = importlib.import_module("rasterio.enums").Resampling
    times = slice(None, None)
    counts: dict[str, list[bool]] = {}
    with tempfile.TemporaryDirectory() as made:
        files = {zone: [folder / LABELS] for zone in WEST}
        if shape == "labels":
            files = {z: [in_zone(folder, Path(made), z), folder / LABELS] for z in WEST}
        for how in ("bilinear", "nearest"):
            options = {"res": 10, "resampling": resampling[how]}
            datasets = {
                zone: [
                    torchgeo_scenes(shape, folder, p, crs=f"EPSG:326{zone}", **options)
                    for p in paths
                ]
                for zone, paths in files.items()
            }
            files = {z: paths[:1] for z, paths in files.items()} if shape == "labels" else files
            arguments = chaski_arguments(shape, folder, resample=how)
            with chaski.load(**arguments, pixels=chaski.Pixels(geo=True)) as loader:
                for batch in loader:
                    for k in batch["valid"].nonzero()[0]:
                        x, y = batch["geo"]["transform"][k][[0, 3]]
                        place = (slice(x, x + 2560, 10), slice(y - 2560, y, 10), times)
                        row = {n: batch[n][k] for n in ("image", "mask") if n in batch}
                        both = datasets[int(batch["geo"]["epsg"][k]) - 32600]
                        # The CRS of the labels is tried once: without labels there is one dataset.
                        for crs, dataset in zip(
                            ("zone", "degrees")[: len(both)], both, strict=True
                        ):
                            for name, same in compare(row, dataset[place]).items():
                                where = f", labels in {crs}" if name == "mask" else ""
                                counts.setdefault(f"{how}, {name}{where}", []).append(same)
    for name, all_of in counts.items():
        print(f"{name}: {sum(all_of)} of {len(all_of)} windows are equal")
    exact = [all(v) for name, v in counts.items() if not name.endswith("degrees")]
    if not exact or not all(exact):
        raise SystemExit("not all windows are equal, other than by labels in degrees")


def spent() -> float:
    """Return the processor time of this process and of its ended children, in seconds."""
    whose = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    return sum(u.ru_utime + u.ru_stime for u in map(resource.getrusage, whose))


def measure(what: str, shape: str, folder: Path) -> None:
    """Draw an epoch and print what a window costs; the imports before it are not counted."""
    os.environ["GDAL_CACHEMAX"] = "32"
    for module in ("torch", "chaski.torch") if what == "chaski" else ("torch", "torchgeo.samplers"):
        importlib.import_module(module)
    begin, clock, rows = spent(), time.perf_counter(), 0
    bands = 4 if shape == "stack" else len(FINE + COARSE)
    for batch in (of_chaski if what == "chaski" else of_torchgeo)(shape, folder):
        image = batch["image"]
        assert image.shape[1:] == (bands, 256, 256), image.shape
        assert shape != "labels" or batch["mask"].shape[1:] == (256, 256), batch["mask"].shape
        rows += len(image)
    wall = time.perf_counter() - clock
    cpu = spent() - begin
    print(f"{what}: {rows} windows, {rows / cpu:.1f} a second of processor time", end=", ")
    print(f"{rows / wall:.1f} by the clock", flush=True)


def main() -> None:
    """Run what the command line names."""
    what, shape, folder = sys.argv[1], sys.argv[2], Path(sys.argv[3])
    if what == "make":
        folder.mkdir(parents=True, exist_ok=True)
        make_files = make_stack if shape == "stack" else make_bands
        make_files(folder, sys.argv[4] if len(sys.argv) > 4 else "deflate")
    elif what == "equal":
        equal(shape, folder)
    elif what == "hash":
        digest = hashlib.sha256()
        for batch in of_chaski(shape, folder):
            for name in sorted({"image", "mask"} & set(batch)):
                digest.update(batch[name].numpy().tobytes())
        print(digest.hexdigest())
    else:
        measure(what, shape, folder)


if __name__ == "__main__":
    main()
