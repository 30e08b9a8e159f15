"""Blocks are an order like the others: that of docs/order.md, exact on resume, for any ranks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import rasters
from conftest import nonempty

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
    blocks = Blocks(rows=vector["rows"], pool=vector["pool"])
    options: dict[str, Any] = {"batch_size": 5, "seed": vector["seed"], "rows": rows}
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
def test_a_run_resumes_with_other_ranks(sources, binary, kind) -> None:
    source, rows = sources[kind]
    options: dict[str, Any] = {"batch_size": 6, "seed": 4, "rows": rows, "shuffle": Blocks(8, 2)}
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


def test_rows_of_a_condition_and_windows_are_in_blocks(sources, binary) -> None:
    source, _ = sources["table"]
    rows = Rows(where=[("k", "<", 40)])
    options: dict[str, Any] = {"rows": rows, "batch_size": 4, "shuffle": Blocks(4, 2)}
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
