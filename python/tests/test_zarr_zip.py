"""ZIPs of Zarr stores as datasets, against what zarr-python read of them (testdata/stores)."""

from __future__ import annotations

import hashlib
import json
import math
import os
import shutil
import subprocess
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import chaski
from chaski import Field

STORES = Path(__file__).resolve().parents[2] / "testdata/stores"
VALUES: dict[str, dict[str, list[str]]] = json.loads((STORES / "values.json").read_text())
pytestmark = pytest.mark.usefixtures("one_engine")
NATIVE: dict[str, Any] = {"dtype": "native"}


def run(*args: Any, check: bool = True) -> str:
    """The output of a command."""
    command = [os.environ["CHASKI_BIN"], *map(str, args)]
    return subprocess.run(command, check=check, capture_output=True, text=True).stdout


def wanted(folder: str, array: str = "bands", names: str = "abc") -> list[str]:
    """The hashes of all images of a folder, one store after the other."""
    return [h for n in names for h in VALUES[f"{folder}/{n}.zarr.zip"][array]]


def digest(x: Any) -> str:
    return hashlib.sha256(np.ascontiguousarray(x).tobytes()).hexdigest()


def images(source: Any, **options: Any) -> dict[str, list[str]]:
    """The hashes of the images of each field, in the order of the dataset."""
    found: dict[str, list[str]] = {}
    with chaski.load(source, batch_size=2, shuffle=False, **options) as loader:
        assert len(loader) > 0
        for batch in loader:
            for field in options["fields"]:
                rows = np.asarray(batch[field])
                if not rows.dtype.kind == "i" or rows.ndim > 1:
                    found.setdefault(field, []).extend(digest(x) for x in rows)
    return found


@pytest.fixture(scope="module")
def unzipped(tmp_path_factory) -> Path:
    """The stores as directories NAME.zarr, as zipfile unpacks them."""
    root = tmp_path_factory.mktemp("unzipped")
    for path in sorted(STORES.rglob("*.zarr.zip")):
        with zipfile.ZipFile(path) as z:
            z.extractall(root / path.relative_to(STORES).with_suffix(""))
    return root


ALONE = {"image": Field(column="bands", **NATIVE)}


@pytest.mark.parametrize("folder", ["s2", "s1", "chips"])
def test_folders_and_globs(folder, unzipped):
    """A folder or a glob of ZIPs, or of directories, has the images of all of them."""
    want = {"image": wanted(folder)}
    for source in (STORES / folder, STORES / folder / "*.zarr.zip", unzipped / folder):
        assert images(source, fields=ALONE) == want
    assert images(unzipped / folder / "?.zarr", fields=ALONE) == want
    one = images(STORES / folder / "b.zarr.zip", fields=ALONE)
    assert one == {"image": wanted(folder, names="b")}


def test_arrays_as_sources(unzipped):
    """STORE::ARRAY is an array, as FILE.h5::ARRAY is."""
    alone = {"image": Field(**NATIVE)}
    for array in ("bands", "cloud_mask"):
        want = wanted("s2", array, names="b")
        for store in (STORES / "s2/b.zarr.zip", unzipped / "s2/b.zarr"):
            name = f"{store}::{array}"
            assert images(name, fields=alone) == {"image": want}
            (about,) = json.loads(run("info", "--json", name))["arrays"]
            assert about["shape"][0] == len(want)
    with pytest.raises(chaski.NotFoundError):
        chaski.load(f"{STORES / 's2/b.zarr.zip'}::absent", batch_size=1)


def test_globs_that_end_otherwise():
    with pytest.raises(chaski.NotFoundError, match="but 3 Zarr stores: a glob"):
        chaski.load(STORES / "s2/*", batch_size=2)


def test_fields_by_the_names_of_arrays():
    fields = {"bands": Field(**NATIVE), "cloud_mask": Field(**NATIVE)}
    want = {"bands": wanted("s2"), "cloud_mask": wanted("s2", "cloud_mask")}
    assert images(STORES / "s2", fields=fields) == want


def pairs(**options: Any) -> dict[str, Field]:
    return {
        "s2": Field(pattern="s2/{id}.zarr.zip::bands", **NATIVE, **options),
        "cloud": Field(pattern="s2/{id}.zarr.zip::cloud_mask", **NATIVE, **options),
        "s1": Field(pattern="s1/{id}.zarr.zip::bands", **NATIVE, **options),
    }


PAIRS = {"s2": wanted("s2"), "cloud": wanted("s2", "cloud_mask"), "s1": wanted("s1")}


def test_pairs():
    assert images(STORES, fields=pairs()) == PAIRS


def test_pairs_of_unlike_numbers_of_images(tmp_path):
    shutil.copytree(STORES, tmp_path / "x")
    shutil.copy(STORES / "s1/a.zarr.zip", tmp_path / "x/s1/b.zarr.zip")
    with pytest.raises(chaski.Error, match=r"2 images along n, 3 in .*s2/b\.zarr\.zip"):
        images(tmp_path / "x", fields=pairs())


def test_tables(tmp_path):
    """Rows of tables are repeated for each image, with their other columns."""
    rows = [{"path": str(STORES / f"s2/{n}.zarr.zip"), "y": k} for k, n in enumerate("abc")]
    named = [{**r, "path": f"{r['path']}::bands"} for r in rows]
    (tmp_path / "t.csv").write_text("bands,y\n" + "".join(f"{r['path']},{r['y']}\n" for r in rows))
    bands, label = Field(column="path", **NATIVE), Field(column="y")
    for source, fields in (
        (rows, {"bands": bands, "y": label}),
        (named, {"image": bands, "y": label}),
        (tmp_path / "t.csv", {"bands": Field(**NATIVE), "y": label}),
    ):
        name = next(iter(fields))
        assert images(source, fields=fields)[name] == wanted("s2")
        with chaski.load(source, batch_size=9, shuffle=False, fields=fields) as loader:
            assert [b["y"].tolist() for b in loader] == [[0, 0, 1, 1, 1, 2, 2, 2, 2]]


def test_catalogs(tmp_path):
    run("index", "--format", "parquet", "-o", tmp_path / "one.parquet", STORES / "s1")
    named = {"bands": Field(**NATIVE)}
    assert images(tmp_path / "one.parquet", fields=named) == {"bands": wanted("s1")}
    patterns = [f"--field={name}={field.pattern}" for name, field in pairs().items()]
    run("index", "--format", "parquet", "-o", tmp_path / "pairs.parquet", *patterns, STORES)
    fields = {name: Field(**NATIVE) for name in PAIRS}
    assert images(tmp_path / "pairs.parquet", fields=fields) == PAIRS
    checked = json.loads(run("verify", tmp_path / "pairs.parquet"))
    assert (checked["rows"], checked["arrays"], checked["faulty"]) == (9, 9, 0)


def test_shuffled_and_resumed():
    """Every image comes once in an epoch, whatever its place in a store."""
    with chaski.load(STORES / "s2", batch_size=3, seed=4, fields=ALONE) as loader:
        whole = [[digest(x) for x in np.asarray(b["image"])] for b in loader]
        assert sorted(sum(whole, [])) == sorted(wanted("s2"))
        assert sum(whole, []) != wanted("s2")
        again = iter(loader)
        next(again)
        state = loader.state_dict()
    with chaski.load(STORES / "s2", batch_size=3, seed=4, fields=ALONE) as loader:
        loader.load_state_dict(state)
        rest = [[digest(x) for x in np.asarray(b["image"])] for b in loader]
    assert rest != whole
    assert len(rest) == len(whole) - 1


def test_chunks_that_are_damaged(tmp_path):
    """A chunk that the ZIP's CRC-32 disagrees with is refused, also without a codec."""
    path = tmp_path / "x.zarr.zip"
    data = np.arange(16, dtype="uint8").tobytes()
    meta = {
        "zarr_format": 2,
        "shape": [4, 4],
        "chunks": [4, 4],
        "dtype": "|u1",
        "compressor": None,
        "filters": None,
        "fill_value": 0,
        "order": "C",
    }
    with zipfile.ZipFile(path, "w") as z:
        z.writestr(".zarray", json.dumps(meta))
        z.writestr("0.0", data)
    assert chaski.read(path).ravel().tolist() == list(data)
    path.write_bytes(path.read_bytes().replace(data, data[:-1] + b"\xff"))
    with pytest.raises(chaski.Error, match=r"CRC-32 of its 16 bytes"):
        chaski.read(path)
    checked = json.loads(run("verify", path, check=False))
    assert checked["faulty"] == 1


def damaged(change: Callable[[bytes], bytes], path: Path) -> Path:
    path.write_bytes(change((STORES / "s2/a.zarr.zip").read_bytes()))
    return path


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda b: b[: len(b) // 2], "end-of-directory"),
        (lambda b: b.replace(b"bands/", b"bends/"), "the CRC-32 of its"),
        (lambda b: b"PK\x03\x04", "end-of-directory"),
    ],
)
def test_broken_archives(tmp_path, change, message):
    damaged(change, tmp_path / "a.zarr.zip")
    shutil.copy(STORES / "s2/b.zarr.zip", tmp_path)
    with pytest.raises(chaski.Error, match=message):
        images(tmp_path, fields=ALONE)


def test_said_by_info_and_plan():
    info = json.loads(run("info", "--json", STORES / "s2/b.zarr.zip"))
    assert info["kind"] == "zarr"
    (bands,) = [a for a in info["arrays"] if a["path"] == "bands"]
    assert bands["shape"] == [3, 2, 3, 16, 16]
    fields = ["--field", "image=bands", STORES / "s2"]
    plan = json.loads(run("plan", "--json", "--batch", "3", *fields))
    sides = zip(bands["shape"], bands["chunks"], strict=True)
    chunks = math.prod(-(-side // chunk) for side, chunk in sides)  # each is an object
    assert (plan["samples"], plan["total"]["requests"]) == (9, 3 * chunks)


def test_the_directory_of_a_store_in_a_zip(tmp_path):
    """A ZIP of the directory, not of what it holds, is refused with the way out."""
    path = tmp_path / "a.zarr.zip"
    with zipfile.ZipFile(STORES / "chips/a.zarr.zip") as z, zipfile.ZipFile(path, "w") as out:
        for name in z.namelist():
            out.writestr(f"a.zarr/{name}", z.read(name))
    for source in (path, tmp_path, tmp_path / "*.zarr.zip"):
        with pytest.raises(chaski.NotFoundError, match="zip what the store has in it"):
            images(source, fields=ALONE)
