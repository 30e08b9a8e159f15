"""Shards of MDS and WebDataset, which testdata/shards/make.py wrote with the original packages."""

from __future__ import annotations

import io
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from conftest import nonempty
from helpers import web

import chaski

ROOT = Path(__file__).resolve().parents[2]
SHARDS = ROOT / "testdata" / "shards"
PAGE = (ROOT / "docs" / "shards.md").read_text()

pytestmark = pytest.mark.usefixtures("binary")


def pixels(k: int, bands: int, width: int = 9) -> np.ndarray:
    """The pixels of sample k, by the formula of make.py."""
    b, y, x = np.mgrid[:bands, :8, :width]
    return (31 * k + 7 * b + 3 * y + x) % 251


def batches(source, fields, **options):
    with chaski.load(source, fields=fields, batch_size=3, seed=5, **options) as loader:
        for batch in loader:
            for i in np.flatnonzero(batch["valid"]):
                yield {name: batch[name][i] for name in fields}


def check_mds(source):
    fields = {n: n for n in ["image", "array", "mask", "photo", "label", "small", "half", "count"]}
    seen = []
    for row in batches(source, fields):
        k = int(row["small"])
        seen.append(k)
        assert (row["image"] == pixels(k, 3)).all()
        assert (row["array"] == pixels(k, 2)).all()
        assert (row["mask"] == pixels(k, 1)).all()
        assert np.abs(row["photo"].astype(int) - pixels(k, 3)).mean() < 40  # JPEG of a steep ramp
        assert (row["label"], row["half"], row["count"]) == (k - 3, k / 2, 10 * k)
    assert sorted(seen) == list(range(7)) and seen != sorted(seen)


def check_wds(source):
    fields = {"image": "png", "array": "arr.npy", "mask": "mask.npy", "k": "cls", "c": "json:cloud"}
    seen = []
    for row in batches(source, fields):
        k = int(row["k"])
        seen.append(k)
        assert (row["image"] == pixels(k, 3)).all()
        assert (row["array"] == pixels(k, 2)).all()
        assert (row["mask"] == pixels(k, 1)).all()
        assert row["c"] == k / 4
    assert sorted(seen) == list(range(7))


@pytest.mark.parametrize("name", ["mds", "mds/index.json"])
def test_mds(name):
    check_mds(SHARDS / name)


@pytest.mark.parametrize("name", ["wds", "wds/shard-{000000..000001}.tar", "wds/shard-*.tar"])
def test_tars(name):
    check_wds(SHARDS / name)


def test_over_a_network():
    with web(SHARDS) as (url, asked):
        check_mds(f"{url}/mds/index.json")
        check_wds(f"{url}/wds/shard-{{000000..000001}}.tar")
        assert asked


def test_shapes_of_each_sample():
    """Arrays whose shape stands before each of them may differ."""
    for k in range(7):
        wide = chaski.read(f"{SHARDS}/mds::{k}/wide")
        assert wide.dtype == np.float32 and (wide == pixels(k, 2, 5 + k % 2)).all()


@pytest.mark.parametrize("name", ["mds", "mds/", "mds/index.json"])
def test_arrays_of_samples(name, monkeypatch):
    """Samples of `chaski.taco` read arrays, which have no header in their shard, and files."""
    monkeypatch.chdir(SHARDS)
    for source in (f"{SHARDS}/{name}", name):
        ds = chaski.taco.load(source)
        for k in range(7):
            sample = ds.read(k)
            assert (sample.read("array").array() == pixels(k, 2)).all()
            assert (sample.read("mask").array() == pixels(k, 1)).all()
            wide = sample.read("wide").array()
            assert wide.dtype == np.float32 and (wide == pixels(k, 2, 5 + k % 2)).all()
            assert (sample.read("image").array() == pixels(k, 3)).all()
            assert (sample.read("array").array(b=[1]) == pixels(k, 2)[1:]).all()


def test_arrays_of_samples_in_tars():
    ds = chaski.taco.load(SHARDS / "wds")
    for k in range(7):
        sample = ds.read(f"a/k{k:03d}")
        assert (sample.read("arr.npy").array() == pixels(k, 2)).all()
        assert (sample.read("png").array() == pixels(k, 3)).all()


def test_catalog(tmp_path, binary):
    """A catalog reads arrays, which have no header in their shard."""
    shutil.copytree(SHARDS, tmp_path, dirs_exist_ok=True)
    command = [binary, "index", "--format", "parquet", "-o", "c.parquet", "mds", "wds"]
    subprocess.run(command, check=True, cwd=tmp_path)
    fields = {"array": chaski.Field(pattern="mds/shard.{id}/array")}
    arrays = {
        int(row["array"][0, 0, 0]): row["array"] for row in batches(tmp_path / "c.parquet", fields)
    }
    assert len(arrays) == 7
    for k in range(7):
        assert (arrays[31 * k] == pixels(k, 2)).all()


def test_page(tmp_path, monkeypatch, binary):
    shutil.copytree(SHARDS, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    calls: list[list[int]] = []
    for block in re.findall(r"```python\n(.*?)```\n", PAGE, re.DOTALL):
        exec(block, {"step": lambda *tensors: calls.append([len(t) for t in tensors])})
    assert calls == [[4, 4, 4], [1, 1, 1], [4, 4], [3, 3]]
    for line in nonempty(re.findall(r"^chaski (.*)$", PAGE, re.MULTILINE)):
        done = subprocess.run(["bash", "-c", f"{binary} {line}"], capture_output=True)
        assert done.returncode == 0, (line, done.stderr)
    array = np.load(io.BytesIO((tmp_path / "array.npy").read_bytes()))
    assert array.dtype == np.uint16 and (array == pixels(3, 2)).all()
