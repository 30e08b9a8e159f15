"""rumi files of generation 3: against the files of the original package, and against numpy."""

from __future__ import annotations

import datetime
import hashlib
import json
import os
import subprocess
from pathlib import Path

import numpy as np
import pytest
from conftest import nonempty

import chaski
from chaski import rumi
from chaski.errors import SpecError

RASTER = Path(__file__).resolve().parents[2] / "testdata" / "raster" / "rumi-3"
ROWS = [json.loads(line) for line in (RASTER / "manifest.jsonl").read_text().splitlines()]
UNITS = [r for r in ROWS if r["path"].startswith("unit-")]
PLAIN = [r for r in ROWS if r["dtype"] in ("uint8", "uint16", "int64", "float32", "complex128")]
pytestmark = pytest.mark.usefixtures("one_engine")


def whole(row: dict) -> np.ndarray:
    """Returns the image of a file, (t, b, y, x), which is that of the original."""
    a = rumi.read(RASTER / row["path"], pattern="t b y x")
    assert hashlib.sha256(a.tobytes()).hexdigest() == row["sha256"]
    return a


def seconds(v: datetime.date) -> int:
    return int(
        np.datetime64(v if type(v) is datetime.date else v.replace(tzinfo=None), "s").astype(int)
    )


@pytest.mark.parametrize("row", PLAIN, ids=lambda r: r["path"])
def test_info(row):
    i = rumi.info(source=RASTER / row["path"])
    t, *shape = row["shape"]
    assert i.shape == ((t, *shape) if t > 1 else tuple(shape))
    assert (str(i.dtype), i.tile, i.time_count) == (row["dtype"], (row["tile"],) * 2, t)
    assert (i.frames, i.frame_layout, i.bands) == (row["frames"], row["frame"], row["bands"])
    assert i.header.hex() == row["blob"]
    times = [s for v in i.time for s in (v if isinstance(v, tuple) else [v])]
    assert [seconds(v) for v in times] == row["times"]
    assert i.time_kind == (row["time_kind"] or i.time_kind)
    if row["transform"] is not None:
        assert i.transform == pytest.approx(row["transform"], rel=1e-15)
        assert all(type(v) is float for v in i.transform)
        assert (i.crs, i.pixel_is_point) == (row["crs"], row["point"])
    alone = rumi.info(header=i.header)
    assert alone == i and alone.bands is None and alone.shape == i.shape


def axes_of(row: dict) -> str:
    """Returns the pattern of `frames` that a file was written with."""
    outer = {"t-b-y-x-0": "b t", "t-b-y-x-9": "t b", "b-y-x-0": "b", "t-y-x-0": "t"}
    name = row["path"].removeprefix("unit-").removesuffix(".rumi")
    order = outer.get(name, "")
    # An array has axes of length one, too.
    frame = " ".join([k for k in "tb" if k not in row["frame"] + order] + [row["frame"]])
    return f"t b (y h) (x w) -> y x {order} ({frame})".replace("  ", " ")


@pytest.mark.parametrize("row", UNITS, ids=lambda r: r["path"])
def test_frames_and_write(row, tmp_path):
    """An image is cut as the original cut it, and its frames give the file again."""
    path = RASTER / row["path"]
    h, data = rumi.info(source=path), path.read_bytes()
    a = whole(row)
    table = rumi.frames(a, axes_of(row), row["tile"])
    assert len(table) == h.frames == table.layout.frames
    for f, at, n in zip(table, h.offsets, h.counts, strict=True):
        f.compressed = data[at : at + n]
    out = tmp_path / "x.rumi"
    assert rumi.write(out, table, bands=row["bands"], time=h.time).hex() == row["blob"]
    assert out.read_bytes() == data
    # The samples of the frames, by places in the grid: what is cut is the image.
    step = row["tile"]
    for k, f in nonempty(enumerate(table)):
        cell = k // (len(table) // np.prod(table.layout.grid))
        r, c = divmod(int(cell), table.layout.grid[1])
        box = a[..., r * step : (r + 1) * step, c * step : (c + 1) * step]
        assert set(f.data.ravel()) <= set(box.ravel())


def test_read_selects(tmp_path):
    rng = np.random.default_rng(3)
    for row in UNITS:
        a, path = whole(row), RASTER / row["path"]
        header = rumi.info(source=path).header
        for _ in range(3):
            t, b = (rng.integers(0, n, rng.integers(1, 4)).tolist() for n in a.shape[:2])
            y, x = (int(rng.integers(0, n)) for n in a.shape[2:])
            h, w = int(rng.integers(1, 21 - y)), int(rng.integers(1, 22 - x))
            want = a[t][:, b][..., y : y + h, x : x + w]
            one = {"time": t, "bands": b, "window": (y, x, h, w)}
            assert np.array_equal(rumi.read(path, header, "t b y x", **one), want)
            got = chaski.read(path, layout="(b t) y x", t=t, b=b, y=(y, y + h), x=(x, x + w))
            assert np.array_equal(got, want.swapaxes(0, 1).reshape(-1, h, w))
        assert np.array_equal(rumi.read(path, time=(0, 1), pattern="byx"), a[0])
        default = rumi.read(path)
        assert np.array_equal(default, a if len(a) > 1 else a[0])
    with pytest.raises(SpecError, match="given twice"):
        rumi.read(path, bands=[0], b=[0])
    with pytest.raises(chaski.NotFoundError):
        rumi.read(path, time=[9])


def test_read_many():
    a = [r for r in UNITS if r["shape"][:2] == [3, 2]]
    paths, images = [RASTER / r["path"] for r in a], [whole(r) for r in a]
    rng = np.random.default_rng(4)
    windows = [(int(rng.integers(0, 14)), int(rng.integers(0, 12)), 7, 10) for _ in a]
    want = np.stack(
        [v[..., y : y + h, x : x + w] for v, (y, x, h, w) in zip(images, windows, strict=True)]
    )
    headers = [rumi.index_file(p) for p in paths]
    for given in (headers, [rumi.parse(h) for h in headers], None):
        assert np.array_equal(rumi.read_many(paths, given, windows=windows), want)
    got = rumi.read_many(paths, headers, windows=windows, time=[2, 0], bands=[1], pattern="n t y x")
    assert np.array_equal(got, want[:, [2, 0], 1])
    assert rumi.read_many(paths[:1], headers[:1]).shape == (1, 3, 2, 20, 21)
    single = next(r for r in UNITS if r["shape"][0] == 1)
    path, image = RASTER / single["path"], whole(single)[0]
    for count in (1, 2):
        assert np.array_equal(rumi.read_many([path] * count), np.stack([image] * count))
    for wrong in (windows[:1], [*windows[1:], (0, 0, 7, 9)], [(0, 0, 7)] * len(a)):
        with pytest.raises(SpecError):
            rumi.read_many(paths, headers, windows=wrong)
    with pytest.raises(chaski.NotFoundError):
        rumi.read_many(paths, headers, windows=[(14, 0, 7, 10)] * len(a))


def test_write_compresses(tmp_path):
    """Arrays that the engine compresses are read as they were, in fewer bytes."""
    rng = np.random.default_rng(6)
    a = np.cumsum(rng.integers(-3, 4, (2, 3, 70, 90)), -1).astype("i4")
    said = {"bands": list("abc"), "time": ["2024-05-06", "2024-05-07"], "crs": 32633}
    said["transform"] = (10, 0, 0, 0, -10, 0)
    for graph in ("auto", "best", "fast", "planar>zigzag>pfor"):
        for frame in ("t b h w", "h w b t", "b t h w"):
            table = rumi.frames(a, f"t b (y h) (x w) -> y x ({frame})", 32)
            header = rumi.write(tmp_path / "x.rumi", table, graph=graph, **said)
            assert np.array_equal(rumi.read(tmp_path / "x.rumi", header), a)
            assert (tmp_path / "x.rumi").stat().st_size < a.nbytes / 3
    chunks, layout = rumi.tile(a[0], 32)
    rumi.write(tmp_path / "x.tif", chunks, layout, graph="delta>zstd")
    assert np.array_equal(rumi.read(tmp_path / "x.tif"), a[0])
    before = (tmp_path / "x.rumi").read_bytes()
    for wrong in ({"graph": "planer>zstd"}, {"graph": "planar>zigzag>pivco"}, {"bands": ["a"]}):
        with pytest.raises((SpecError, chaski.UnsupportedError)):
            rumi.write(tmp_path / "x.rumi", table, **{"graph": "auto", **said, **wrong})
    for short in (table[:-1], [*table, table[0]]):
        data = [f.data for f in short]
        with pytest.raises(chaski.Error, match="samples"):
            rumi.write(tmp_path / "x.rumi", data, table.layout, graph="auto", **said)
    assert (tmp_path / "x.rumi").read_bytes() == before


def test_refuses(tmp_path):
    a = np.zeros((2, 20, 21), "u2")
    for pattern in ("b y x", "b (y h) (x w) -> y x (h b w)", "(y h) (x w) -> y x (h w)", "b -> b"):
        with pytest.raises(SpecError, match="pattern"):
            rumi.frames(a, pattern)
    table = rumi.frames(a, "b (y h) (x w) -> y x (b h w)", 16)
    for f in table:
        f.compressed = b"x"
    good = {"bands": ["a", "b"], "time": ["2024-05-06"]}
    out = tmp_path / "x.rumi"
    for wrong in ({"bands": ["a"]}, {"bands": ["a", "a"]}, {"time": []}, {"time": ["May"]}):
        with pytest.raises(SpecError):
            rumi.write(out, table, **(good | wrong))
    table[0].compressed = None
    with pytest.raises(SpecError):
        rumi.write(out, table, **good)
    assert not out.exists()


ORACLE = r"""
import datetime, json, sys
import geozl
import numpy as np
import rumi

folder = sys.argv[1]
for k, c in enumerate(json.load(open(f"{folder}/cases.json"))):
    a = np.load(f"{folder}/{k}.npy")
    table = rumi.frames(a, c["pattern"], c["tile"])
    ours = np.load(f"{folder}/{k}.npz")
    frames = []
    for i, f in enumerate(table):
        data = np.ascontiguousarray(f.data)
        assert np.array_equal(data, ours[str(i)]), (c, i)
        data = data.view("u1") if data.dtype == bool else data
        data = data.view(f"f{data.dtype.itemsize // 2}") if data.dtype.kind == "c" else data
        f.compressed = geozl.compress(data, graph=geozl.graph(data, c["method"]))
        frames.append(bytes(f.compressed).hex())
    time = [datetime.datetime.fromisoformat(t) for t in c["time"]]
    rumi.write(f"{folder}/{k}.rumi", table, bands=c["bands"], time=time, **c["geo"])
    i = rumi.info(source=f"{folder}/{k}.rumi")
    windows = [tuple(w) for w in c["windows"]]
    written = f"{folder}/{k}-graph.rumi"  # with frames of chaski's encoder
    j = rumi.info(source=written)
    assert (i.bands, i.time, i.transform) == (j.bands, j.time, j.transform), c
    whole = rumi.read_many([written], [j.header], windows=[(0, 0, *a.shape[-2:])])
    assert whole.dtype == a.dtype and np.array_equal(whole.reshape(a.shape), a), c
    many = rumi.read_many([f"{folder}/{k}.rumi"] * 2, [i.header] * 2, windows=windows)
    np.save(f"{folder}/{k}-many.npy", many)
    json.dump({"frames": frames, "header": i.header.hex(), "order": i.index_order,
               "layout": i.frame_layout, "shape": i.shape, "transform": i.transform},
              open(f"{folder}/{k}.json", "w"))
"""


GRAPHS = ["auto", "best", "zstd", "delta>zigzag>transpose>entropy", "planar>zigzag>pfor", "bitpack"]
GRAPHS += ["planar>zigzag>transpose>zstd", "store", "fast"]


def random_case(rng: np.random.Generator) -> tuple[dict, np.ndarray]:
    t, b = (int(v) for v in rng.choice([1, 1, 2, 5], 2))
    y, x = (int(v) for v in rng.integers(1, 60, 2))
    whole_cell = rng.random() < 0.6
    order = [str(v) for v in rng.permutation(["t", "b"])]
    cut = int(rng.integers(0, 3))
    inner = [*order[:cut], "h", "w", *order[cut:]] if whole_cell else ["h", "w"]
    outer = "" if whole_cell else " ".join(order)
    kind = str(rng.choice(["u1", "u2", "i4", "i8", "f2", "f4", "f8", "c8", "c16", "?"]))
    a = rng.integers(0, 300, (t, b, y, x)).astype(kind)
    epoch = datetime.datetime(1965, 1, 1, tzinfo=datetime.timezone.utc)
    days = np.cumsum(rng.integers(1, 90, t)) * (86400 if rng.random() < 0.5 else 5003)
    h, w = (int(rng.integers(1, n + 1)) for n in (y, x))
    windows = [
        (int(rng.integers(0, y - h + 1)), int(rng.integers(0, x - w + 1)), h, w) for _ in "ab"
    ]
    geo = {"transform": [10.0, 0.5, 5e5, 0.25, -10.0, 4e6], "crs": int(rng.choice([32633, 4326]))}
    geo["pixel_is_point"] = bool(rng.random() < 0.3)
    return {
        "pattern": f"t b (y h) (x w) -> y x {outer} ({' '.join(inner)})".replace("  ", " "),
        "tile": int(rng.integers(1, 70)),
        "method": "id>zstd",
        "graph": str(rng.choice(GRAPHS)),
        "time": [(epoch + datetime.timedelta(seconds=int(d))).isoformat() for d in days],
        "bands": [f"B{k}" for k in range(b)],
        "windows": windows,
        "geo": geo if rng.random() < 0.5 else {},
    }, a


def test_both_ways_with_the_original(tmp_path):
    """Random images: CHASKI_ORACLE_PYTHON26 names a Python with rumi-eo 0.26.1."""
    python = os.environ.get("CHASKI_ORACLE_PYTHON26")
    if not python:
        pytest.skip("CHASKI_ORACLE_PYTHON26 names no Python with rumi-eo 0.26.1")
    seed = int(os.environ.get("CHASKI_ORACLE_SEED", 0)) or int.from_bytes(os.urandom(4), "little")
    print(f"CHASKI_ORACLE_SEED={seed}")
    rng = np.random.default_rng(seed)
    cases = [random_case(rng) for _ in range(150)]
    tables = []
    for k, (c, a) in enumerate(cases):
        np.save(tmp_path / f"{k}.npy", a)
        tables.append(rumi.frames(a, c["pattern"], c["tile"]))
        np.savez(tmp_path / f"{k}.npz", **{str(i): f.data for i, f in enumerate(tables[k])})
        said = {"bands": c["bands"], "time": c["time"]} | c["geo"]
        rumi.write(tmp_path / f"{k}-graph.rumi", tables[k], graph=c["graph"], **said)
    (tmp_path / "cases.json").write_text(json.dumps([c for c, _ in cases]))
    subprocess.run([python, "-c", ORACLE, str(tmp_path)], check=True)
    for k, (c, a) in enumerate(cases):
        path, said = tmp_path / f"{k}.rumi", json.loads((tmp_path / f"{k}.json").read_text())
        for f, stored in zip(tables[k], said["frames"], strict=True):
            f.compressed = bytes.fromhex(stored)
        header = rumi.write(tmp_path / "x", tables[k], bands=c["bands"], time=c["time"], **c["geo"])
        assert (tmp_path / "x").read_bytes() == path.read_bytes(), c
        assert header.hex() == said["header"]
        i = rumi.info(source=path)
        assert (i.header.hex(), list(i.index_order)) == (said["header"], said["order"]), c
        assert (list(i.shape), i.frame_layout) == (said["shape"], said["layout"]), c
        got = rumi.read(path, i.header, "t b y x")
        assert np.array_equal(got.view(a.dtype) if a.dtype == bool else got, a), c
        many = rumi.read_many([path] * 2, [header] * 2, windows=c["windows"])
        want = np.load(tmp_path / f"{k}-many.npy")
        assert np.array_equal(many.reshape(want.shape), want), c


@pytest.mark.parametrize("name", ["bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu"])
def test_torch_has_types_of_its_own(name):
    """A field of such a file becomes a tensor of torch's type, with the same bits."""
    torch = pytest.importorskip("torch")
    from chaski.torch import to_tensors

    files = [RASTER / f"{name}.rumi"]
    fields = {"image": chaski.Field(layout="n t b y x", dtype="native")}
    with chaski.load(files, batch_size=1, fields=fields) as loader:
        batch = next(iter(loader))
        got = to_tensors(batch)["image"]
        bits = got.view(torch.int16 if name == "bfloat16" else torch.uint8).numpy().tobytes()
    want = chaski.read(files[0], layout="t b y x")
    assert bits == want.tobytes()
    assert got.dtype == getattr(torch, name, torch.uint8)


@pytest.mark.parametrize("dtype", ["u1", "u2", "i2", "f4"])
def test_fast_files_train_like_their_sources(binary, tmp_path, dtype):
    """Batches of what `convert --codec fast` writes are those of numpy, also cut and turned."""
    rng = np.random.default_rng(8)
    images = np.cumsum(rng.integers(-3, 4, (6, 3, 130, 192)), -1).astype(dtype)
    for i, image in enumerate(images):
        chunks, layout = rumi.tile(image, 64)
        rumi.write(tmp_path / f"{i}.tif", chunks, layout, graph="zstd")
    command = [binary, "convert", "--codec", "fast", "--tile", "64", "--time", "2024-05-06"]
    subprocess.run([*command, "-o", f"{tmp_path}/fast/", f"{tmp_path}"], check=True)
    mean, std = np.float32(7), np.float32(3)
    seen = 0
    for more in ({}, {"window": (50, 70)}, {"pixels": chaski.Pixels(augment="d4"), "window": 64}):
        options = {"batch_size": 3, "shuffle": True, "seed": 4, **more}
        fast = chaski.load(tmp_path / "fast", **options)
        scale = chaski.Normalize(mean=float(mean), std=float(std))
        floats = chaski.load(tmp_path / "fast", normalize=scale, **options)
        plain = chaski.load(f"{tmp_path}/*.tif", **options)
        for a, b, c in zip(fast, floats, plain, strict=True):
            assert np.array_equal(np.asarray(a["image"]), np.asarray(c["image"]))
            want = (np.asarray(c["image"]).astype("f4") - mean) / std
            np.testing.assert_allclose(np.asarray(b["image"]), want, rtol=1e-6, atol=1e-6)
            if not more:
                assert np.array_equal(np.asarray(c["image"]), images[c["sample"]])
            seen += len(a["sample"])
    assert seen == 3 * len(images)
