"""The blocks of docs/coming-from.md run, and both sides of each pair give the same samples."""

from __future__ import annotations

import importlib.util
import io
import json
import re
import subprocess
import tarfile
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import rasters
from conftest import nonempty
from forked import Forks

import chaski

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "coming-from.md").read_text()
BLOCK = re.compile(r"<!-- needs: ([\w ]+) -->\n```python\n(.*?)```\n", re.DOTALL)
SIZE = 128
SCENE = 320

# Records the size and type of every batch, and two numbers that identify each sample.
BEFORE = """
import json, sys
import numpy as np

seen = {"shapes": [], "samples": []}
MEAN, STD = (np.array(v) for v in json.loads(sys.argv[2]))


def step(*tensors):
    seen["shapes"].append([[list(t.shape), str(t.dtype)] for t in tensors])
    for row in zip(*tensors, strict=True):
        seen["samples"].append([float(t.double().mean()) for t in row])
"""
AFTER = """
with open(sys.argv[1], "w") as f:
    json.dump(seen, f)
"""


def pairs() -> dict[str, list[tuple[list[str], str]]]:
    """Returns the two blocks of every section, with their requirements and their code."""
    sections = [s for s in PAGE.split("\n## ")[1:] if "<!-- needs: " in s]
    return {s.splitlines()[0]: [(m[1].split(), m[2]) for m in BLOCK.finditer(s)] for s in sections}


PAIRS = pairs()
CONVERSIONS = dict(re.findall(r"<!-- convert: (\w+) -->\n```python\n(.*?)```\n", PAGE, re.DOTALL))


def test_every_block_is_run():
    assert len(PAIRS) == 8 and all(len(p) == 2 for p in PAIRS.values())
    assert PAGE.count("```python") == sum(map(len, PAIRS.values())) + len(CONVERSIONS)


@pytest.fixture(scope="module")
def data(binary, tmp_path_factory) -> tuple[Path, np.ndarray]:
    """A directory as the page describes it, cut from a real scene, and its chips."""
    rasterio = pytest.importorskip("rasterio", reason="needs rasterio to write chips")
    coast = np.load(_pixels(binary, tmp_path_factory.mktemp("coast") / "a.npy"))
    folder = tmp_path_factory.mktemp("data")
    for sub in ("chips/images", "chips/masks", "scenes"):
        (folder / sub).mkdir(parents=True)

    def write(path: str, x: np.ndarray, east: int, north: int) -> None:
        tiles = {"tiled": True, "blockxsize": 64, "blockysize": 64, "compress": "zstd"}
        transform = rasterio.transform.from_origin(5e5 + east * 20, 4e6 - north * 20, 20, 20)
        rasters.write(folder / path, x, **tiles, crs="EPSG:32618", transform=transform)

    chips = []
    for y, x in list(product(range(0, 640, SIZE), repeat=2))[:24]:
        chips.append(coast[:, y : y + SIZE, x : x + SIZE])
        write(f"chips/images/{y}_{x}.tif", chips[-1], x, y)
        write(f"chips/masks/{y}_{x}.tif", (chips[-1][:1] < 900).astype(np.uint8), x, y)
    _others(binary, folder)
    for y, x in product((0, SCENE), repeat=2):
        write(f"scenes/{y}_{x}.tif", coast[:, y : y + SCENE, x : x + SCENE], x, y)
    return folder, np.stack(chips)


def _others(binary: str, folder: Path) -> None:
    """Writes the chips as a container and as rumi files."""
    lines, about = ["id,path"], {"id": "chips", "dataset_version": "1", "description": "chips"}
    about |= {"licenses": ["CC0-1.0"], "providers": [{"name": "chaski"}], "tasks": ["other"]}
    for image in sorted((folder / "chips/images").iterdir()):
        mask = image.parents[1] / "masks" / image.name
        lines += [f"{image.stem}/image.tif,{image}", f"{image.stem}/mask.tif,{mask}"]
    (folder / "chips.csv").write_text("\n".join(lines))
    (folder / "about.json").write_text(json.dumps(about))
    pack = ["pack", "--collection", "about.json", "-o", "chips.tacozip", "chips.csv"]
    subprocess.run([binary, *pack], cwd=folder, check=True, capture_output=True)
    for sub in ("images", "masks"):
        line = [
            binary,
            "convert",
            "--to",
            "rumi3",
            "--time",
            "2024-01-01",
            "-o",
            f"rumi/{sub}/",
            f"chips/{sub}",
        ]
        subprocess.run(line, cwd=folder, check=True, capture_output=True)


def _pixels(binary: str, out: Path) -> Path:
    # Not chaski.read: its engine would keep running into later tests of engines.
    scene = ROOT / "testdata" / "demo" / "coast.tif"
    with open(out, "wb") as f:
        subprocess.run([binary, "cat", "--format", "npy", scene], stdout=f, check=True)
    return out


def run(forks: Forks, code: str, data: tuple[Path, np.ndarray], tmp_path: Path) -> dict[str, Any]:
    """Runs a block in a separate process, and returns the data of its steps."""
    folder, chips = data
    (tmp_path / "block.py").write_text(BEFORE + code + AFTER)
    x = chips.astype(np.float64)
    moments = json.dumps([x.mean((0, 2, 3)).tolist(), x.std((0, 2, 3)).tolist()])
    log = tmp_path / "log"
    p = forks.run([tmp_path / "block.py", tmp_path / "out.json", moments], log, folder)
    try:
        assert p.wait(500) == 0, log.read_text()
    finally:
        p.kill()
    out: dict[str, Any] = json.loads((tmp_path / "out.json").read_text())
    return out


@pytest.mark.parametrize("side", [0, 1], ids=["theirs", "ours"])
@pytest.mark.parametrize("section", PAIRS)
def test_block(data, forks, tmp_path, section, side):
    needs, code = PAIRS[section][side]
    for name in needs:
        spec = importlib.util.find_spec(name)
        if spec is None or spec.origin is None:  # a folder of the name, as rumi/ of this project
            pytest.skip(f"needs {name}")
    assert ("chaski" in code) == (side == 1)
    seen = run(forks("torch"), code, data, tmp_path)
    if "TorchGeo" in section:  # windows are random: theirs are others than ours
        image = [[8, 6, SIZE, SIZE], "torch.float32"]
        assert seen["shapes"] == [[image]] * 8
        return
    _, chips = data
    x = chips.astype(np.float64)
    kind, mask = "torch.uint16", [[8, 1, SIZE, SIZE], "torch.uint8"]
    if "rasterio" in section:
        kind = "torch.float32"
        x = (x - x.mean((0, 2, 3), keepdims=True)) / x.std((0, 2, 3), keepdims=True)
    elif "TerraTorch" in section:
        kind, mask = "torch.float32", [[8, SIZE, SIZE], "torch.int64"]
    assert seen["shapes"] == [[[[8, 6, SIZE, SIZE], kind], mask]] * 3
    masks = chips[:, :1] < 900
    want = [[a.mean(), b.mean()] for a, b in zip(x, masks, strict=True)]
    assert seen["samples"] != want  # shuffled
    pairs = [np.abs(np.subtract(want, one)).max(axis=1) for one in seen["samples"]]
    assert sorted(int(off.argmin()) for off in pairs) == list(range(len(want)))  # each once
    assert max(off.min() for off in pairs) < 1e-5


def write_mds(folder: Path, samples: dict[str, dict[str, np.ndarray[Any, Any]]]) -> None:
    columns = {"image": "ndarray", "mask": "ndarray"}
    with importlib.import_module("streaming").MDSWriter(out=str(folder), columns=columns) as out:
        for sample in samples.values():
            out.write(sample)


def write_tar(path: Path, samples: dict[str, dict[str, np.ndarray[Any, Any]]]) -> None:
    with tarfile.open(path, "w") as tar:
        for key, sample in samples.items():
            for name, array in sample.items():
                np.save(buffer := io.BytesIO(), array)
                member = tarfile.TarInfo(f"{key}.{name}.npy")
                member.size = buffer.tell()
                buffer.seek(0)
                tar.addfile(member, buffer)


@pytest.mark.parametrize("package", ["streaming", "webdataset"])
def test_shards(package, tmp_path, monkeypatch, binary):
    monkeypatch.chdir(tmp_path)
    samples = {
        f"{k:06d}": {
            "image": np.full((3, 8, 9), k, np.uint16),
            "mask": np.full((1, 8, 9), 2 * k, np.uint8),
        }
        for k in range(7)
    }
    if package == "streaming":
        pytest.importorskip(package)
        write_mds(tmp_path / "mds", samples)
        exec(CONVERSIONS[package], {})
        source, fields = "from-mds", {"image": "image/{id}.npy", "mask": "mask/{id}.npy"}
    else:
        write_tar(tmp_path / "chips.tar", samples)
        source, fields = "chips.tar", {"image": "{id}.image.npy", "mask": "{id}.mask.npy"}
    assert f'chaski.load("{source}", fields={json.dumps(fields)}, …)' in " ".join(PAGE.split())
    seen = []
    with chaski.load(source, fields=fields, batch_size=3, seed=1) as loader:
        for batch in loader:
            for i in np.flatnonzero(batch["valid"]):
                k = int(batch["image"][i].flat[0])
                assert (batch["image"][i] == k).all() and (batch["mask"][i] == 2 * k).all()
                seen.append(k)
    assert sorted(seen) == list(range(7))


def write_references(folder: Path) -> np.ndarray[Any, Any]:
    """Writes references to the two chunks of an image in a file, and returns the image."""
    image = np.random.default_rng(4).integers(0, 1 << 16, (64, 96)).astype("<u2")
    (folder / "x.nc").write_bytes(b"CDF\x01" + image.tobytes())
    array = {"zarr_format": 2, "shape": image.shape, "chunks": [32, 96], "dtype": "<u2"}
    array |= {"order": "C", "fill_value": None, "filters": None, "compressor": None}
    size = image.nbytes // 2
    refs: dict[str, Any] = {
        f"image/{k}.0": [str(folder / "x.nc"), 4 + k * size, size] for k in (0, 1)
    }
    refs |= {".zgroup": '{"zarr_format": 2}', "image/.zarray": json.dumps(array)}
    refs["image/.zattrs"] = '{"_ARRAY_DIMENSIONS": ["y", "x"]}'
    (folder / "references.json").write_text(json.dumps({"version": 1, "refs": refs}))
    return image


def test_references_are_converted(tmp_path, monkeypatch, binary):
    for package in ("kerchunk", "xarray", "zarr", "dask"):
        pytest.importorskip(package)
    monkeypatch.chdir(tmp_path)
    image = write_references(tmp_path)
    exec(CONVERSIONS["kerchunk"], {})
    with chaski.load(
        "from-references.zarr",
        batch_size=6,
        window=chaski.Grid((32, 32)),
        fields={"image": chaski.Field(column="image", dtype="native")},
        shuffle=False,
    ) as loader:
        seen = np.array(next(iter(loader))["image"])
    want = image.reshape(2, 32, 3, 32).swapaxes(1, 2).reshape(6, 1, 32, 32)
    assert np.array_equal(seen, want)


def test_rslearn_and_olmoearth(tmp_path, monkeypatch, binary):
    """The calls of the page load what rasterio and h5py read of files of these forms."""
    h5py = pytest.importorskip("h5py")
    section = PAGE.split("## From rslearn and OlmoEarth")[1].split("\n## ")[0]
    calls = re.findall(r"```\n(chaski\.load.*?)```", section, re.DOTALL)
    monkeypatch.chdir(tmp_path)
    r = np.random.default_rng(4)
    images, series = {}, {}
    for i in range(6):
        group = "train" if i < 4 else "val"
        for layer, bands, shape, dtype in (
            ("sentinel2", "B02_B03_B04_B08", (4, 32, 32), "uint16"),
            ("label", "class", (1, 32, 32), "uint8"),
        ):
            folder = tmp_path / f"dataset/windows/{group}/w{i}/layers/{layer}/{bands}"
            folder.mkdir(parents=True)
            pixels = r.integers(1, 200, shape).astype(dtype)
            rasters.write(folder / "geotiff.tif", pixels)
            if group == "train":
                images[layer, pixels[0, 0].tobytes()] = pixels
        (tmp_path / "h5").mkdir(exist_ok=True)
        with h5py.File(tmp_path / f"h5/sample_{i}.h5", "w") as f:
            for name, bands in (("sentinel2_l2a", 12), ("sentinel1", 2)):
                if i == 5 and name == "sentinel1":
                    continue
                x = r.normal(size=(16, 16, 12, bands)).astype("float32")
                f.create_dataset(name, data=x, compression="gzip")
                series[name, x[0, 0, 0, 0]] = x.transpose(2, 3, 0, 1)
    with eval(calls[0], {"chaski": chaski}) as loader:
        rows = [
            dict(zip(b, row, strict=True)) for b in loader for row in zip(*b.values(), strict=True)
        ]
    assert len(rows) == 4
    for row in rows:
        for name, layer, dtype in (("image", "sentinel2", "uint16"), ("mask", "label", "uint8")):
            key = row[name][0, 0].astype(dtype).tobytes()
            assert np.array_equal(row[name], images[layer, key])
    with eval(calls[1], {"chaski": chaski}) as loader:
        (batch,) = loader
    assert len(batch["sentinel2_l2a"]) == 6
    for name in ("sentinel2_l2a", "sentinel1"):
        there = batch["there.sentinel1"].astype(bool) if name == "sentinel1" else batch["valid"]
        assert there.sum() == (6 if name == "sentinel2_l2a" else 5)
        for x in nonempty(batch[name][there]):
            assert np.array_equal(x, series[name, x[0, 0, 0, 0]])
