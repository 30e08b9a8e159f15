"""Zarr groups as datasets: the page docs/zarr.md runs, and its windows are those of NumPy."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers import web

import chaski

pytestmark = pytest.mark.usefixtures("one_engine")

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "zarr.md").read_text()
BLOCKS = re.findall(r"```(bash|python)\n(.*?)```\n", PAGE, re.DOTALL)


def write_array(path: Path, data: np.ndarray[Any, np.dtype[np.uint16]], chunk: int) -> None:
    """Writes a Zarr array of version 3 with chunks of bytes, as its specification has them."""
    path.mkdir(parents=True)
    meta = {
        "zarr_format": 3,
        "node_type": "array",
        "shape": data.shape,
        "data_type": "uint16",
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [chunk, chunk]}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
        "fill_value": 0,
        "dimension_names": ["y", "x"],
        "attributes": {},
    }
    (path / "zarr.json").write_text(json.dumps(meta))
    for y in range(0, data.shape[0], chunk):
        for x in range(0, data.shape[1], chunk):
            part = path / "c" / str(y // chunk) / str(x // chunk)
            part.parent.mkdir(parents=True, exist_ok=True)
            part.write_bytes(data[y : y + chunk, x : x + chunk].astype("<u2").tobytes())


def write_scene(path: Path) -> dict[str, np.ndarray[Any, np.dtype[np.uint16]]]:
    """Writes a group with two bands at 10 m and one at 20 m, and returns them."""
    rng = np.random.default_rng(5)
    root = path / "measurements" / "reflectance"
    bands = {}
    for name, size in (("r10m/b02", 512), ("r10m/b03", 512), ("r20m/b11", 256)):
        bands[name] = rng.integers(1, 4000, (size, size), dtype=np.uint16)
        write_array(root / name, bands[name], 128)
    for d in (path, path / "measurements", root, root / "r10m", root / "r20m"):
        group = {"zarr_format": 3, "node_type": "group", "attributes": {}}
        (d / "zarr.json").write_text(json.dumps(group))
    return bands


def test_the_page_runs(binary: str, tmp_path: Path, monkeypatch: Any) -> None:
    write_scene(tmp_path / "s2.zarr")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "chaski").symlink_to(Path(binary).resolve())
    path = f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}"
    monkeypatch.chdir(tmp_path)
    assert [language for language, _ in BLOCKS] == ["python", "bash"]
    shapes = set()

    def step(image: np.ndarray[Any, Any], swir: np.ndarray[Any, Any]) -> None:
        shapes.add((image.shape[1:], swir.shape[1:]))

    exec(BLOCKS[0][1], {"step": step})
    assert shapes == {((2, 256, 256), (1, 128, 128))}
    for line in BLOCKS[1][1].splitlines():
        env = os.environ | {"PATH": path}
        done = subprocess.run(["bash", "-e", "-c", line], env=env, capture_output=True)
        assert done.returncode == 0, line + done.stderr.decode()


def test_windows_of_two_resolutions(binary: str, tmp_path: Path) -> None:
    """A window of a group of bands, and that of an array of half its resolution."""
    bands = write_scene(tmp_path / "s2.zarr")
    with chaski.load(
        str(tmp_path / "s2.zarr"),
        batch_size=7,
        window=chaski.RandomWindow((64, 96), per_asset=21),
        fields={
            "image": chaski.Field(column="measurements/reflectance/r10m"),
            "swir": chaski.Field(column="measurements/reflectance/r20m/b11"),
        },
        pixels=chaski.Pixels(windows=True, dtype="native"),
    ) as loader:
        seen = 0
        for batch in loader:
            for k in np.flatnonzero(batch["valid"]):
                y, x, h, w = batch["window"][k]
                want = [bands[f"r10m/{b}"][y : y + h, x : x + w] for b in ("b02", "b03")]
                np.testing.assert_array_equal(batch["image"][k], want)
                half = bands["r20m/b11"][y // 2 : (y + h) // 2, x // 2 : (x + w) // 2]
                np.testing.assert_array_equal(batch["swir"][k, 0], half)
                seen += 1
    assert seen == 21


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize(
    ("dtype", "packing", "known"),
    [
        ("<i2", {"scale_factor": 10.0}, True),
        ("<i2", {"scale_factor": [10.0], "add_offset": [35.0], "_FillValue": -32768}, True),
        ("<i4", {"add_offset": 500000}, True),
        ("<i2", {"scale_factor": "10.0", "add_offset": " 35", "_FillValue": "-32768"}, True),
        ("<f8", {"scale_factor": 0.5, "_FillValue": "NaN"}, True),
        ("<u1", {"scale_factor": -30.0, "add_offset": 4.6e6, "missing_value": 3}, False),
        ("<i2", {"scale_factor": 0.0, "add_offset": 5.0}, False),
    ],
)
def test_packed_coordinates(binary, tmp_path, version, dtype, packing, known) -> None:
    """Coordinates are unpacked as CF says; a missing one gives no place."""
    stored = np.arange(2, 18).astype(dtype)

    def number(name: str, default: float) -> float:
        return float(np.ravel(packing.get(name, default))[0])

    centres = stored * number("scale_factor", 1) + number("add_offset", 0)

    def array(name: str, data: Any, dims: list[str], attributes: dict[str, Any]) -> None:
        folder = tmp_path / "a.zarr" / name
        folder.mkdir(parents=True)
        if version == 2:
            head = {"zarr_format": 2, "shape": data.shape, "chunks": data.shape, "order": "C"}
            head |= {"dtype": data.dtype.str, "compressor": None, "filters": None}
            (folder / ".zarray").write_text(json.dumps({**head, "fill_value": None}))
            (folder / ".zattrs").write_text(json.dumps({"_ARRAY_DIMENSIONS": dims, **attributes}))
            (folder / ".".join("0" * data.ndim)).write_bytes(data.tobytes())
            return
        grid = {"name": "regular", "configuration": {"chunk_shape": data.shape}}
        codec = {"name": "bytes", "configuration": {"endian": "little"}}
        head = {"zarr_format": 3, "node_type": "array", "shape": data.shape, "chunk_grid": grid}
        head |= {"chunk_key_encoding": {"name": "default"}, "codecs": [codec], "fill_value": 0}
        head |= {"data_type": data.dtype.name, "dimension_names": dims, "attributes": attributes}
        (folder / "zarr.json").write_text(json.dumps(head))
        chunk = folder / "/".join("c" + "0" * data.ndim)
        chunk.parent.mkdir(parents=True)
        chunk.write_bytes(data.tobytes())

    array("v", np.ones((16, 16), "<f4"), ["y", "x"], {})
    for name in "yx":
        array(name, stored, [name], packing)
    group = {"zarr_format": version} | ({"node_type": "group"} if version == 3 else {})
    (tmp_path / "a.zarr" / ("zarr.json" if version == 3 else ".zgroup")).write_text(
        json.dumps(group)
    )
    pixels = chaski.Pixels(geo=True)
    fields = {"v": chaski.Field(column="v")}
    with chaski.load(tmp_path / "a.zarr", batch_size=1, fields=fields, pixels=pixels) as loader:
        got = np.asarray(next(iter(loader))["geo"]["transform"])[0]
    step = centres[1] - centres[0]
    want = [centres[0] - step / 2, step, 0, centres[0] - step / 2, 0, step]
    assert np.allclose(got, want) if known else np.isnan(got).all()


def test_labels(binary: str, tmp_path: Path) -> None:
    """Arrays of values along n are labels: numbers, vectors, and conditions on them."""
    rng = np.random.default_rng(3)
    arrays = {
        "image": rng.integers(0, 99, (6, 4, 5), dtype=np.uint16),
        "class": np.arange(6, dtype=np.int32) % 3,
        "share": rng.random((6, 4)),
    }
    (tmp_path / "a.zarr").mkdir()
    (tmp_path / "a.zarr" / ".zgroup").write_text('{"zarr_format": 2}')
    for name, data in arrays.items():
        folder = tmp_path / "a.zarr" / name
        folder.mkdir()
        meta = {
            "zarr_format": 2,
            "shape": data.shape,
            "chunks": data.shape,
            "dtype": data.dtype.str,
            "order": "C",
        }
        (folder / ".zarray").write_text(
            json.dumps(meta | {"compressor": None, "filters": None, "fill_value": 0})
        )
        (folder / ".".join("0" * data.ndim)).write_bytes(data.tobytes())
    with chaski.load(
        str(tmp_path / "a.zarr"),
        batch_size=6,
        shuffle=False,
        rows=chaski.Rows(dims="n y x", where=[("class", ">=", 1)]),
        fields={
            "image": {},
            "class": {"kind": "number"},
            "share": {"kind": "number", "dtype": "float64"},
        },
        pixels=chaski.Pixels(dtype="native"),
    ) as loader:
        (batch,) = list(loader)
    rows = np.flatnonzero(arrays["class"] >= 1)
    np.testing.assert_array_equal(batch["image"][:, 0], arrays["image"][rows])
    np.testing.assert_array_equal(batch["class"], arrays["class"][rows])
    np.testing.assert_array_equal(
        [batch["share"][i] for i in range(len(rows))], arrays["share"][rows]
    )


@pytest.mark.parametrize("dtype", ["u1", "<i2", "<u4", "<f4", "<f8"])
@pytest.mark.parametrize("key", ["_FillValue", "missing_value"])
@pytest.mark.parametrize("value", ["7", [7], ["7"], 7, "7.0"])
def test_nodata_as_writers_have_it(binary, tmp_path, dtype, key, value) -> None:
    """A number, a string of one, or a list of one of either."""
    cells = np.arange(16).reshape(4, 4).astype(dtype)
    head = {"zarr_format": 2, "shape": [4, 4], "chunks": [4, 4], "order": "C", "filters": None}
    head |= {"dtype": cells.dtype.str, "compressor": None, "fill_value": None}
    folder = tmp_path / "a.zarr"
    folder.mkdir()
    (folder / ".zarray").write_text(json.dumps(head))
    (folder / ".zattrs").write_text(json.dumps({"_ARRAY_DIMENSIONS": ["y", "x"], key: value}))
    (folder / "0.0").write_bytes(cells.tobytes())
    pixels = chaski.Pixels(dtype="native", validity="ok")
    with chaski.load(folder, batch_size=1, pixels=pixels) as loader:
        (batch,) = loader
    assert np.array_equal(batch["ok"].squeeze() == 1, cells != 7)


@pytest.mark.parametrize("shards", [False, True])
@pytest.mark.parametrize("remote", [False, True])
def test_a_chunk_that_the_store_lacks(tmp_path: Path, remote: bool, shards: bool) -> None:
    """It has the fill value, also where a server answers 404; strict makes it an error."""
    chunk = {"name": "regular", "configuration": {"chunk_shape": [1, 8, 8]}}
    raw = {"name": "bytes", "configuration": {"endian": "little"}}
    inner = {"chunk_shape": [1, 4, 8], "codecs": [raw], "index_codecs": [raw]}
    meta = {
        "zarr_format": 3,
        "node_type": "array",
        "shape": [4, 8, 8],
        "data_type": "uint8",
        "chunk_grid": chunk,
        "chunk_key_encoding": {"name": "v2", "configuration": {"separator": "."}},
        "codecs": [{"name": "sharding_indexed", "configuration": inner} if shards else raw],
        "fill_value": 7,
    }
    (tmp_path / "a.zarr").mkdir()
    (tmp_path / "a.zarr" / "zarr.json").write_text(json.dumps(meta))
    for i in (0, 2):
        index = [0, 32, 2**64 - 1, 2**64 - 1]  # the second half was not written
        body = bytes([i + 1]) * 32 + (np.array(index, "<u8").tobytes() if shards else bytes(32))
        (tmp_path / "a.zarr" / f"{i}.0.0").write_bytes(body)

    def first(**pixels: Any) -> Any:
        options = {"batch_size": 4, "shuffle": False, "rows": chaski.Rows(dims="n y x")}
        with chaski.load(uri, pixels=chaski.Pixels(**pixels), **options) as loader:
            return np.asarray(next(iter(loader))["image"])[:, 0, [0, 7], 0].tolist()

    with web(tmp_path) if remote else nullcontext((str(tmp_path), None)) as (root, _):
        uri = f"{root}/a.zarr"
        end = 7 if shards else 0
        assert first() == [[1, end], [7, 7], [3, end], [7, 7]]
        with pytest.raises(chaski.NotFoundError, match=r"a\.zarr/[13]\.0\.0.*strict"):
            first(strict=True)
        shutil.copytree(tmp_path / "a.zarr", tmp_path / "whole.zarr")
        for i in (1, 3):
            name = tmp_path / "whole.zarr" / f"{i}.0.0"
            name.write_bytes((tmp_path / "a.zarr" / "0.0.0").read_bytes())
        uri = f"{root}/whole.zarr"
        assert first(strict=True)[1] == [1, end]


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("kind", ["object", "str", "bytes"])
@pytest.mark.parametrize("codec", ["default", "gzip", "blosc", None])
def test_strings_are_labels_and_names_of_bands(tmp_path, binary, version, kind, codec) -> None:
    xarray = pytest.importorskip("xarray")
    codecs, zarr = pytest.importorskip("numcodecs"), pytest.importorskip("zarr")
    image = np.arange(4 * 3 * 8 * 8, dtype="i2").reshape(4, 3, 8, 8)
    texts = ["a", "bb", "", "dül" if kind != "bytes" else "x"]
    values = np.array(texts, object) if kind == "object" else np.array(texts)
    values = np.array([t.encode() for t in texts]) if kind == "bytes" else values
    bands = {"band": ["B02", "B08", "B11"]}
    axes = ("sample", "band", "y", "x")
    store = xarray.Dataset({"image": (axes, image), "text": ("sample", values)}, coords=bands)
    how: dict[str, Any] = {"chunks": (3,)}
    if codec != "default":
        zarr_codecs = zarr.codecs
        made = {
            (2, "gzip"): codecs.GZip(),
            (2, "blosc"): codecs.Blosc(),
            (3, "gzip"): zarr_codecs.GzipCodec(),
            (3, "blosc"): zarr_codecs.BloscCodec(),
        }.get((version, codec))
        how["compressors"] = [made] if made else None
    path = tmp_path / "x.zarr"
    store.to_zarr(path, zarr_format=version, encoding={"text": how})
    fields = {
        "image": chaski.Field(column="image", bands=["B08"], dtype="native"),
        "text": chaski.Field(column="text"),
    }
    with chaski.load(path, batch_size=4, shuffle=False, fields=fields) as loader:
        (batch,) = loader
    assert batch["text"].tolist() == texts
    assert (batch["image"][:, 0] == image[:, 1]).all()
    for command in ("verify", "info"):
        subprocess.run([binary, command, path], check=True, capture_output=True)
