"""Blocks are an order like the others: that of docs/order.md, exact on resume, for any ranks."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import rasters
from conftest import nonempty
from helpers import web

import chaski
from chaski import Blocks, Rows

h5py = pytest.importorskip("h5py")
zarr = pytest.importorskip("zarr")

ORDER = Path(__file__).resolve().parents[2] / "testdata" / "order.json"
VECTORS = json.loads(ORDER.read_text())["blocks"]
N = 43


@pytest.fixture(scope="module")
def sources(tmp_path_factory) -> dict[str, tuple[str, Rows]]:
    """Datasets of 43 chips, whose pixels are their number."""
    root = tmp_path_factory.mktemp("blocks")
    x = np.arange(N, dtype="u1")[:, None, None, None] * np.ones((1, 2, 8, 8), "u1")
    (root / "tif").mkdir()
    for i in range(N):
        rasters.write(root / f"tif/{i:02d}.tif", x[i])
    paths = [f"{root}/tif/{i:02d}.tif" for i in range(N)]
    lines = [f"{path},{k}" for k, path in enumerate(paths)]
    (root / "t.csv").write_text("\n".join(["image,k", *lines]))
    with h5py.File(root / "x.h5", "w") as f:
        f.create_dataset("x", data=x, chunks=(8, 2, 8, 8), compression="gzip")
    zarr.open_group(root / "x.zarr", mode="w").create_array("x", data=x, chunks=(8, 2, 8, 8))
    dims = Rows(dims="n b y x")
    return {
        "files": (f"{root}/tif", Rows()),
        "table": (f"{root}/t.csv", Rows()),
        "hdf5": (f"{root}/x.h5::x", dims),
        "zarr": (f"{root}/x.zarr/x", dims),
    }


def numbers(batch: Any) -> list[int]:
    return [int(v) for v, ok in zip(batch["image"][:, 0, 0, 0], batch["valid"], strict=True) if ok]


def rows_of(loader: Any) -> list[int]:
    return [i for batch in loader for i in numbers(batch)]


@pytest.mark.parametrize("kind", ["files", "table", "hdf5", "zarr"])
@pytest.mark.parametrize("vector", [v for v in VECTORS if v["n"] == N])
def test_the_order_is_that_of_the_vectors(sources, binary, kind, vector) -> None:
    source, rows = sources[kind]
    lanes = vector.get("lanes", 1)
    blocks = Blocks(rows=vector["rows"], pool=vector["pool"] * lanes)
    batch = lanes if lanes > 1 else 7  # with which no pool has a common divisor
    options: dict[str, Any] = {"batch_size": batch, "seed": vector["seed"], "rows": rows}
    with chaski.load(source, shuffle=blocks, **options) as loader:
        loader.set_epoch(vector["epoch"])
        assert rows_of(loader) == vector["at"]


def test_a_chunk_is_the_default_block(sources, binary) -> None:
    source, rows = sources["hdf5"]
    with chaski.load(source, batch_size=5, rows=rows, shuffle=Blocks()) as loader:
        assert loader.spec["blocks"] == {"rows": 8, "pool": 40}
        assert sorted(rows_of(loader)) == list(range(N))
    source, rows = sources["files"]  # all 43 chips of 128 bytes are in 4 MiB
    with chaski.load(source, batch_size=5, rows=rows, shuffle=Blocks()) as loader:
        assert loader.spec["blocks"] == {"rows": 32768, "pool": 40}


@pytest.mark.parametrize("kind", ["files", "hdf5"])
@pytest.mark.parametrize("pool", [5, 2, 12])  # of batches of 6: in 1, 2 and 6 lanes
def test_a_run_resumes_with_other_ranks(sources, binary, kind, pool) -> None:
    source, rows = sources[kind]
    options: dict[str, Any] = {"batch_size": 6, "seed": 4, "rows": rows, "shuffle": Blocks(8, pool)}
    with chaski.load(source, **options) as loader:
        steps = [numbers(b) for b in loader] + [numbers(b) for b in loader]
    epoch = len(steps) // 2
    assert steps[:epoch] != steps[epoch:]
    for at in (1, epoch - 1, epoch + 2):
        with chaski.load(source, **options) as loader:
            loop = iter(loader)
            for k in range(at):
                if k == epoch:
                    loop = iter(loader)
                next(loop)
            state = loader.state_dict()
        ranks = []
        for rank in range(3):
            with chaski.load(source, rank=rank, world_size=3, **options) as loader:
                loader.load_state_dict(state)
                ranks.append([numbers(b) for b in loader])
        left = steps[at : epoch if at < epoch else None]
        for step, parts in nonempty(zip(left, zip(*ranks, strict=True), strict=True)):
            assert sorted(step) == sorted(i for part in parts for i in part)


@pytest.mark.parametrize("kind", ["files", "hdf5"])
def test_a_rank_reads_blocks_of_its_own(sources, binary, kind) -> None:
    source, rows = sources[kind]
    of = []
    for rank in range(3):
        options: dict[str, Any] = {"rows": rows, "batch_size": 6, "rank": rank, "world_size": 3}
        with chaski.load(source, shuffle=Blocks(2, 6), **options) as loader:
            of.append({row // 2 for row in rows_of(loader)})
    assert set().union(*of) == set(range(22))
    assert sum(map(len, of)) <= 22 + 5  # six lanes have five ends, where two share a block


def test_rows_of_a_condition_and_windows_are_in_blocks(sources, binary) -> None:
    source, _ = sources["table"]
    rows = Rows(where=[("k", "<", 40)])
    options: dict[str, Any] = {"rows": rows, "batch_size": 3, "shuffle": Blocks(4, 2)}
    with chaski.load(source, window=chaski.RandomWindow(4, per_asset=3), **options) as loader:
        found = rows_of(loader)
    assert sorted(found) == sorted(list(range(40)) * 3)
    for first in range(0, len(found), 24):  # a pool: two blocks of four rows, three windows each
        pool = found[first : first + 24]
        assert len({row // 4 for row in pool}) == 2
        assert pool != sorted(pool)


@pytest.mark.parametrize(
    ("shuffle", "more", "words"),
    [
        (Blocks(rows=-1), {}, "blocks.rows is -1"),
        (Blocks(pool=-2), {}, "blocks.pool is -2"),
        (Blocks, {}, "shuffle is"),
        (Blocks(), {"window": chaski.TileWindow(4)}, "order of its own"),
    ],
)
def test_refused(sources, binary, shuffle, more, words) -> None:
    source, rows = sources["hdf5"]
    with pytest.raises(chaski.SpecError, match=words):
        chaski.load(source, batch_size=5, rows=rows, shuffle=shuffle, **more)


CHIPS, SIDE = 512, 64
PIXELS = np.random.default_rng(5).integers(0, 2**16, (CHIPS, 1, SIDE, SIDE), "u2")
STORES = {
    "container": ("chips.tacozip", 64, {}),
    "chunks of one": ("ones.h5::x", 64, {}),
    "chunks of 32": ("many.h5::x", 32, {}),
    "shards": ("shards.zarr/x", 64, {}),
    "cells": ("cells.parquet", 64, {}),
    "cells of a page": ("page.parquet", 64, {}),
}


@pytest.fixture(scope="module")
def stores(tmp_path_factory, binary) -> Path:
    """The same chips in stores of several kinds, of 4 MB."""
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    root = tmp_path_factory.mktemp("stores")
    (root / "chips").mkdir()
    for i, chip in enumerate(PIXELS):
        rasters.write(root / f"chips/{i:04d}.tif", chip)
    about = {"id": "a", "dataset_version": "1", "description": "d", "licenses": ["cc0"]}
    about |= {"providers": [{"name": "x", "roles": ["producer"]}], "tasks": ["classification"]}
    (root / "about.json").write_text(json.dumps(about))
    pack = [str(binary), "pack", "-o", root / "chips.tacozip", "--collection", root / "about.json"]
    subprocess.run([*pack, root / "chips"], check=True, capture_output=True)
    for name, rows in (("ones", 1), ("many", 32)):
        with h5py.File(root / f"{name}.h5", "w", libver="latest") as f:
            chunks = (rows, *PIXELS.shape[1:])
            f.create_dataset("x", data=PIXELS, chunks=chunks, compression="gzip")
    group = zarr.open_group(root / "shards.zarr", mode="w")
    shape = PIXELS.shape[1:]
    layout: dict[str, Any] = {"chunks": (1, *shape), "shards": (64, *shape)}
    group.create_array("x", shape=PIXELS.shape, dtype="u2", **layout)[:] = PIXELS
    cells = [(root / f"chips/{i:04d}.tif").read_bytes() for i in range(CHIPS)]
    table = pyarrow.table({"image": cells})
    plain: dict[str, Any] = {"compression": "none", "use_dictionary": False}
    pages = {"write_batch_size": 1, "data_page_size": 4096, "write_page_index": True}
    parquet.write_table(table, root / "cells.parquet", **plain, **pages)
    parquet.write_table(table, root / "page.parquet", row_group_size=64, **plain)
    return root


@pytest.mark.parametrize("kind", STORES)
def test_neighbours_of_a_block_are_one_request(stores, binary, kind) -> None:
    name, rows, _ = STORES[kind]
    options: dict[str, Any] = {"batch_size": 16, "seed": 3, "shuffle": Blocks(rows, 3)}
    if "::" in name or ".zarr/" in name:
        options["rows"] = Rows(dims="n b y x")
    file = stores / name.split("::")[0]
    size = sum(f.stat().st_size for f in [file, *file.rglob("*")] if f.is_file())
    with chaski.load(f"{stores}/{name}", **options) as loader:
        near = [batch["image"].copy() for batch in nonempty(loader)]
    with web(stores) as (url, asked), chaski.load(f"{url}/{name}", **options) as loader:
        spec = stores / "spec.json"
        spec.write_text(json.dumps(loader.spec))
        said = subprocess.run(
            [str(binary), "plan", "--json", spec], capture_output=True, check=True
        )
        planned = json.loads(said.stdout)
        asked.clear()
        far = [batch["image"].copy() for batch in nonempty(loader)]
        opening = 8
        assert len(asked) <= CHIPS // 32 + opening
        if "cells" not in kind:  # the cache of a small table has all of its pages
            assert abs(len(asked) - planned["total"]["requests"]) <= opening
        blocks = CHIPS // rows
        assert planned["variance"] == pytest.approx(1 + 15 / 3 * (blocks - 3) / (blocks - 1))
        assert sum(n for _, _, n in asked) <= 1.2 * size + opening * (64 << 10)
    assert all((a == b).all() for a, b in zip(near, far, strict=True))


@pytest.mark.parametrize("kind", ["container", "chunks of one", "cells"])
def test_each_host_reads_a_part_of_a_store(stores, binary, kind) -> None:
    """Four ranks on hosts of their own read a block once, and not each of them all of it."""
    name, _, _ = STORES[kind]
    options: dict[str, Any] = {"batch_size": 16, "seed": 3, "shuffle": Blocks(8, 16)}
    if "::" in name:
        options["rows"] = Rows(dims="n b y x")
    size, ends, opening = PIXELS.nbytes, 15, 8
    requests = read = 0
    with web(stores) as (url, asked):
        for rank in range(4):
            with chaski.load(f"{url}/{name}", rank=rank, world_size=4, **options) as loader:
                asked.clear()
                assert sum(int(batch["valid"].sum()) for batch in loader) == CHIPS // 4
                requests += len(asked)
                read += sum(n for _, _, n in asked)
    assert requests <= CHIPS // 8 + ends + 4 * opening
    assert read <= 1.2 * size + 4 * opening * (64 << 10) + ends * 8 * size // CHIPS
