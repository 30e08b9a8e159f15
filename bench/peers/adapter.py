"""TorchGeo's raster datasets with and without an engine: the same samplers, loops and pixels.

    make frameworks PYTHON=python3.12
    PYTHONPATH=python/src .frameworks-env/torchgeo/bin/python bench/peers/adapter.py \
      --imagery imagery/s2.npy --work .peers/adapter --layout cog --codec zstd

It cuts the imagery, uint16 bands of (b y x), into scenes on one map with masks beside them, and
takes windows of 256 pixels by TorchGeo's own samplers: at random, and on a grid. In every round
each side takes its turn: `RasterDataset` (with `--layout arrays --images` `XarrayDataset`) in a
DataLoader with --workers processes, and the same by `chaski.torchgeo.accelerate` with an engine of
as many workers. Both are warm, and all files are in the page cache. Printed are samples a second,
and milliseconds of processor time a sample of all processes, medians of the rounds, and their
ratios with the lowest and the highest of one round.
Samples are compared after it.
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import chaski
import chaski.torchgeo
import numpy as np
import pyproj
import rasterio
import rioxarray  # noqa: F401  (Dataset.rio)
import torch
import xarray
from rasterio.transform import from_origin
from sides import measure, of_rounds
from torch.utils.data import DataLoader
from torchgeo.datasets import RasterDataset, XarrayDataset, stack_samples
from torchgeo.samplers import GriddedPatchSampler, RandomPatchSampler

SIDE, BATCH = 256, 16
# How files are written. "bands" has a file for each band, "arrays" has NetCDF files of two days.
LAYOUTS: dict[str, dict[str, Any]] = {
    "tiles": {"driver": "GTiff", "tiled": True, "blockxsize": 256, "blockysize": 256},
    "strips": {"driver": "GTiff"},
    "cog": {"driver": "COG", "blocksize": 512, "overviews": "IGNORE_EXISTING"},
}
LAYOUTS["bands"] = LAYOUTS["arrays"] = LAYOUTS["tiles"]


class Passes:
    """Windows, of which each pass has the next ones: none is still in a cache."""

    def __init__(self, windows: Iterable[Any], count: int) -> None:
        self._windows, self._count = iter(windows), count

    def __iter__(self) -> Iterator[Any]:
        return itertools.islice(self._windows, self._count)


class Masks(RasterDataset):  # type: ignore[misc]
    """Labels beside the scenes."""

    is_image = False


class Scenes(RasterDataset):  # type: ignore[misc]
    """Scenes of one file each."""


class Bands(RasterDataset):  # type: ignore[misc]
    """Scenes with a file for each band."""

    filename_glob = "*_B0.tif"
    filename_regex = r"\d+_(?P<band>B\d)"
    separate_files = True
    all_bands = tuple(f"B{i}" for i in range(6))


class Arrays(XarrayDataset):  # type: ignore[misc]
    """Scenes with an array for each band."""

    def __init__(self, paths: Path, crs: Any, res: float | None) -> None:
        super().__init__(paths, crs, res or 20.0, data_vars=Bands.all_bands)


def write_arrays(path: Path, bands: Any, east: float, crs: str) -> None:
    """Writes a scene as an array (time y x) for each band."""
    y, x = (20 * (np.arange(n) + 0.5) for n in bands.shape[1:])
    x += east
    names = dict(zip(Bands.all_bands, bands, strict=True))
    scene = xarray.Dataset(
        {name: (("time", "y", "x"), np.stack([b, b[::-1]])) for name, b in names.items()},
        coords={"time": np.array(["2024-06-01", "2024-06-02"], "M8[ns]"), "y": 4e6 - y, "x": x},
    )
    how = {"zlib": True, "chunksizes": (1, SIDE, SIDE), "grid_mapping": "spatial_ref"}
    scene.rio.write_crs(crs).to_netcdf(path, encoding={name: how for name in names})


def write(work: Path, imagery: Path, n: int, codec: str, layout: str, zones: bool) -> None:
    """Writes n scenes and masks in a row; each has the imagery turned and moved.

    With zones, the first half is at the eastern edge of a UTM zone, the others in the next one.
    """
    bands = np.load(imagery)
    side = min(bands.shape[1:]) // 64 * 64
    how = {**LAYOUTS[layout], "compress": codec}
    if codec != "none":
        how["predictor"] = "YES" if layout == "cog" else 2
    for kind in ("scenes", "masks"):
        (work / kind).mkdir(parents=True)
    for i in range(n):
        x = np.rot90(np.roll(bands, 97 * i, axis=2)[:, :side, :side], i, axes=(1, 2))
        east, crs = 5e5 + i * side * 20, "EPSG:32618"
        if zones:  # their central meridians are 6 degrees apart
            half = n // 2
            crs = f"EPSG:{32618 + i // half}"
            east = (7.7e5 - half * side * 20, 2.3e5)[i // half] + i % half * side * 20
        where = from_origin(east, 4e6, 20, 20)
        files = {f"scenes/{i:03}.tif": x}
        if layout == "arrays":
            files = {}
            write_arrays(work / f"scenes/{i:03}.nc", x, east, crs)
        if layout == "bands":
            files = {f"scenes/{i:03}_B{b}.tif": x[b : b + 1] for b in range(len(x))}
        for name, data in {**files, f"masks/{i:03}.tif": (x[:1] < 900).astype(np.uint8)}.items():
            shape = {"count": len(data), "height": side, "width": side, "dtype": data.dtype}
            with rasterio.open(work / name, "w", **how, **shape, crs=crs, transform=where) as f:
                f.write(data)


def loop(dataset: Any, sampler: Any, workers: int) -> Any:
    """Returns the batches of a dataset in a DataLoader."""
    how: dict[str, Any] = {"collate_fn": stack_samples, "persistent_workers": workers > 0}
    return DataLoader(dataset, BATCH, sampler=sampler, num_workers=workers, **how)


def on_the_ground(work: Path, crs: str | None, windows: int, workers: int) -> Any:
    """Returns random windows of the data module, each from all scenes and masks that it touches."""
    raster: dict[str, Any] = {"kind": "raster", "resample": "nearest"}
    fields = {
        "image": chaski.Field(pattern="scenes/{id}.tif", dtype="float32", **raster),
        "mask": chaski.Field(pattern="masks/{id}.tif", dtype="int64", **raster),
    }
    crs = crs or "EPSG:32618"
    window = chaski.GeoWindow(SIDE * 20, 20, crs=crs, per_epoch=windows)
    data = chaski.torchgeo.ChaskiDataModule(
        work,
        batch_size=BATCH,
        fields=fields,
        window=window,
        engine=chaski.Engine(workers=workers, share=False),
    )
    return data.train_dataloader()


def row(name: str, order: str, loaders: Sequence[Any], rounds: int) -> None:
    """Measures TorchGeo's batches and ours in turns, and prints a row of the table."""
    for batches in loaders:
        measure(batches)  # opens files, starts processes
    speeds = [[measure(batches) for batches in loaders] for _ in range(rounds)]
    columns = [
        of_rounds(*([speed[k] for speed in side] for side in zip(*speeds, strict=True)))
        for k in (0, 1)
    ]
    print(f"| {name} | {order} | {' '.join(columns)}", flush=True)


def main() -> None:
    """Compares, and prints a table."""
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("--imagery", type=Path, required=True)
    p.add_argument("--work", type=Path, required=True)
    p.add_argument("--scenes", type=int, default=16)
    p.add_argument("--codec", default="deflate")
    p.add_argument("--layout", choices=LAYOUTS, default="tiles")
    p.add_argument("--workers", type=int, default=2)
    p.add_argument("--windows", type=int, default=10 * BATCH, help="of a pass")
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--images", action="store_true", help="without masks")
    p.add_argument("--ground", action="store_true", help="compare with windows of our data module")
    p.add_argument("--zones", action="store_true", help="half of the scenes in the next UTM zone")
    p.add_argument("--crs", help="another map, to which scenes are warped")
    p.add_argument("--res", type=float, help="another resolution, in units of the map")
    o = p.parse_args()
    if not (o.work / "masks").exists():
        write(o.work, o.imagery, o.scenes, o.codec, o.layout, o.zones)
    crs = pyproj.CRS(o.crs) if o.crs else None
    kind = {"bands": Bands, "arrays": Arrays}.get(o.layout, Scenes)
    engine = chaski.Engine(workers=o.workers, share=False)

    def sides(masks: bool) -> list[Any]:
        """Returns a dataset and one with an engine.

        Made anew each time: processes of a DataLoader must not inherit files that GDAL has open.
        """
        pair = [kind(o.work / "scenes", crs, o.res) for _ in range(2)]
        if masks:
            pair = [d & Masks(o.work / "masks", crs, o.res) for d in pair]
        return [pair[0], chaski.torchgeo.accelerate(pair[1], engine=engine)]

    pairs: dict[str, Callable[[], list[Any]]] = {
        "images": lambda: sides(False),
        "images & masks": lambda: sides(True),
    }
    all_windows = o.windows * (o.rounds + 1)
    samplers: dict[str, Callable[[Any], Any]] = {
        "random": lambda d: RandomPatchSampler(d, size=SIDE, length=all_windows, generator=1),
        "grid": lambda d: GriddedPatchSampler(d, size=SIDE),
        "overlapping grid": lambda d: GriddedPatchSampler(d, size=SIDE, stride=SIDE // 2),
    }
    columns = "TorchGeo | with an engine | ratio |"
    print(f"| windows of | sampler | {columns} by processor time: {columns}")
    print(f"|---|---{'|--:|--:|---' * 2}|")
    if o.ground:
        dataset = pairs["images & masks"]()[0]
        theirs = loop(dataset, Passes(samplers["random"](dataset), o.windows), o.workers)
        ours = on_the_ground(o.work, o.crs, o.windows, o.workers)
        row("images & masks", "GeoWindow", (theirs, ours), o.rounds)
        return
    for name, make in list(pairs.items())[: 1 if o.images else 2]:
        for order, sampler in samplers.items():
            datasets = make()
            if (there := len(sampler(datasets[0]))) < all_windows:
                print(f"| {name} | {order} | {there} windows of {all_windows}: more --scenes |")
                continue
            loaders = [
                loop(d, Passes(sampler(d), o.windows), n)
                for d, n in zip(datasets, (o.workers, 0), strict=True)
            ]
            row(name, order, loaders, o.rounds)
            for index in list(sampler(datasets[0]))[:8]:
                one, other = (d[index] for d in datasets)
                assert all(torch.equal(v, other[k]) for k, v in one.items()), "samples differ"


if __name__ == "__main__":
    main()
