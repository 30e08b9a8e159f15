"""Servers of files that have equal names and sizes, and other pixels."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import rasters
import zarr
from conftest import nonempty

import chaski

N, SIDE = 12, 16


def write(root: Path, seed: int) -> None:
    """Writes the same dataset in several forms, with pixels of a seed."""
    x = np.random.default_rng(seed).integers(0, 2**16, (N, 1, SIDE, SIDE), "u2")
    (root / "tif").mkdir(parents=True)
    for i, chip in enumerate(x):
        rasters.write(root / f"tif/{i:02d}.tif", chip, compress=None)
    with h5py.File(root / "x.h5", "w") as f:
        f["x"] = x
    array = zarr.open_group(root / "x.zarr", mode="w").create_array(
        "x", shape=x.shape, dtype="u2", chunks=(1, 1, SIDE, SIDE), compressors=None
    )
    array[:] = x
    for file in root.rglob("*"):
        os.utime(file, (1_700_000_000, 1_700_000_000))  # copies by rsync -t have equal times


@contextlib.contextmanager
def served(binary: Path, roots: list[Path], *flags: str) -> Any:
    """Starts a server in each root. All serve data, which is another folder in each."""
    command = [str(binary), "serve", "--listen", "127.0.0.1:0", "--insecure", "--stop-on-eof"]
    with contextlib.ExitStack() as stack:
        targets = []
        for root in roots:
            p = stack.enter_context(
                subprocess.Popen(
                    [*command, "--root", "data", *flags],
                    cwd=root,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                )
            )
            stack.callback(p.stdin.close)
            targets.append(json.loads(p.stdout.readline())["listen"])
        yield targets


@pytest.fixture(scope="module")
def roots(tmp_path_factory) -> dict[str, Path]:
    """Two copies of a dataset, and another one with the same names, sizes and times."""
    root = tmp_path_factory.mktemp("contents")
    write(root / "a/data", 1)
    shutil.copytree(root / "a", root / "copy", copy_function=shutil.copy2)
    write(root / "other/data", 2)
    return {name: root / name for name in ("a", "copy", "other")}


SOURCES = {
    "files": ("data/tif", chaski.Rows()),
    "hdf5": ("data/x.h5::x", chaski.Rows(dims="n b y x")),
    "zarr": ("data/x.zarr/x", chaski.Rows(dims="n b y x")),
}


@pytest.mark.parametrize("kind", SOURCES)
def test_other_pixels_are_refused(binary, roots, kind) -> None:
    source, rows = SOURCES[kind]
    options: dict[str, Any] = {"batch_size": 4, "rows": rows}
    with served(binary, [roots["a"], roots["copy"]], "--verify-contents") as targets:
        with chaski.connect(targets, source, **options) as loader:
            assert sum(len(batch["image"]) for batch in nonempty(loader)) == N
    with served(binary, [roots["a"], roots["other"]], "--verify-contents") as targets:
        with pytest.raises(chaski.Error, match="samples of equal names have other tensors"):
            with chaski.connect(targets, source, **options) as loader:
                for _ in range(20):  # a server that takes long is heard later
                    list(loader)


def test_a_bad_sample_is_the_error_of_the_opening(binary, roots, tmp_path) -> None:
    shutil.copytree(roots["a"] / "data/tif", tmp_path / "data/tif")
    for file in (tmp_path / "data/tif").iterdir():
        file.write_bytes(file.read_bytes()[:200])
    with served(binary, [tmp_path], "--verify-contents") as targets:
        with pytest.raises(chaski.CorruptError, match="tif"):
            chaski.connect(targets, "data/tif", batch_size=4)
