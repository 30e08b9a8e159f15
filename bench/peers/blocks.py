"""Requests and bytes of an epoch from a distant store: a shuffle of all against Blocks.

    PYTHONPATH=python/src CHASKI_BIN=bin/chaski python bench/peers/blocks.py --store STORE

STORE is tools/slowstore, built. Each store has the same chips of noise; each figure is of an engine
that has read nothing before, with what opening takes. An epoch is read to its end, and what the
loader has asked for ahead by then counts.

Needs numpy, h5py, pyarrow, rasterio and zarr.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import socket
import subprocess
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import chaski
import numpy as np
import numpy.typing as npt

BATCH = 32
SIZES = {8: (4096, 64), 80: (1024, 200)}  # kB of a chip: how many, and pixels of a side
ABOUT = {
    "id": "a",
    "dataset_version": "1",
    "description": "noise",
    "licenses": ["cc0"],
    "providers": [{"name": "x", "roles": ["producer"]}],
    "tasks": ["classification"],
}


def container(root: Path, pixels: npt.NDArray[Any], size: int) -> str:
    """Writes the chips as TIFFs, and a TACO of them."""
    import rasterio

    chips = root / f"chips{size}"
    chips.mkdir()
    for i, chip in enumerate(pixels):
        with rasterio.open(
            chips / f"{i:05d}.tif",
            "w",
            driver="GTiff",
            dtype="uint16",
            count=1,
            height=chip.shape[1],
            width=chip.shape[2],
        ) as file:
            file.write(chip)
    (root / "about.json").write_text(json.dumps(ABOUT))
    name = f"{size}.tacozip"
    command = [os.environ["CHASKI_BIN"], "pack", "--collection", str(root / "about.json")]
    subprocess.run([*command, "-o", str(root / name), str(chips)], check=True, capture_output=True)
    return name


def stores(root: Path) -> dict[str, tuple[str, int]]:
    """Writes all stores. Returns their names below root, and their samples."""
    import h5py  # type: ignore[import-untyped]
    import pyarrow as pa
    import pyarrow.parquet as pq
    import zarr

    rng = np.random.default_rng(0)
    made = {}
    for size, (count, side) in SIZES.items():
        pixels = rng.integers(0, 2**16, (count, 1, side, side), "u2")
        made[f"TACO, chips of {size} KB"] = container(root, pixels, size), count
        if size == 80:
            continue
        shape = pixels.shape[1:]
        with h5py.File(root / "x.h5", "w") as f:
            f.create_dataset("x", data=pixels, chunks=(32, *shape), compression="gzip")
        made["HDF5, 32 samples a chunk"] = "x.h5::x", count
        for name, chunk, shards in (("shards", 1, (64, *shape)), ("chunks", 32, None)):
            array = zarr.open_group(root / f"{name}.zarr", mode="w").create_array(
                "x", shape=pixels.shape, dtype="u2", chunks=(chunk, *shape), shards=shards
            )
            array[:] = pixels
        made["Zarr, shards of 64 samples"] = "shards.zarr/x", count
        made["Zarr, 32 samples a chunk"] = "chunks.zarr/x", count
        cells = [(root / f"chips8/{i:05d}.tif").read_bytes() for i in range(count)]
        table, plain = pa.table({"image": cells}), {"compression": "none", "use_dictionary": False}
        one = {"write_batch_size": 1, "data_page_size": 4096, "write_page_index": True}
        pq.write_table(table, root / "one.parquet", **plain, **one)
        pq.write_table(table, root / "many.parquet", row_group_size=512, **plain)
        made["Parquet, a page a chip"] = "one.parquet", count
        made["Parquet, pages of 512 chips"] = "many.parquet", count
    return made


def epoch(
    root: Path, store: str, name: str, hosts: int, options: dict[str, Any]
) -> tuple[int, int, int]:
    """Reads an epoch on hosts of a rank each, one after another.

    Returns its samples, and the requests and bytes that the store counts.
    """
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = "{}:{}".format(*free.getsockname())
    command = [store, "-addr", address, "-dir", str(root), "-delay", "20ms"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        while not reached(address):
            time.sleep(0.02)
        array = "::" in name or ".zarr/" in name
        options["rows"] = chaski.Rows(dims="n b y x") if array else chaski.Rows()
        options["batch_size"], options["world_size"] = BATCH, hosts
        samples = 0
        for rank in range(hosts):
            with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as host:
                samples += host.submit(read, f"http://{address}/{name}", rank, options).result()
        server.send_signal(signal.SIGINT)
        said, _ = server.communicate()
    requests, _, size, _ = said.split()
    return samples, int(requests), int(size)


def read(url: str, rank: int, options: dict[str, Any]) -> int:
    """Reads the part of an epoch that a rank has, and returns its samples."""
    with chaski.load(url, rank=rank, **options) as loader:
        return sum(int(batch["valid"].sum()) for batch in loader)


def reached(address: str) -> bool:
    """Reports whether a server listens."""
    host, port = address.split(":")
    with socket.socket() as s:
        return s.connect_ex((host, int(port))) == 0


def main() -> None:
    """Prints a table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--store", required=True)
    parser.add_argument("--only", default="")
    parser.add_argument("--memory", type=int, default=0, help="bytes of the engine")
    parser.add_argument("--rows", type=int, default=None)
    parser.add_argument("--pool", type=int, default=None)
    parser.add_argument("--hosts", type=int, default=1)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        print("| store | all: requests a sample | bytes | Blocks: requests a sample | bytes | ÷ |")
        for what, (name, count) in stores(root).items():
            if args.only not in what:
                continue
            file = root / name.split("::")[0]
            size = sum(f.stat().st_size for f in [file, *file.rglob("*")] if f.is_file())
            cells, each = [], []
            engine = chaski.Engine(memory=args.memory or None, share=args.hosts == 1)
            for shuffle in (True, chaski.Blocks(args.rows, args.pool)):
                options = {"shuffle": shuffle, "engine": engine}
                samples, requests, bytes_read = epoch(root, args.store, name, args.hosts, options)
                assert samples == count
                each.append(requests / samples)
                cells.append(f"{requests / samples:.4f} | {bytes_read / size:.2f}")
            print(f"| {what} | {' | '.join(cells)} | {each[0] / each[1]:.0f} |", flush=True)


if __name__ == "__main__":
    main()
