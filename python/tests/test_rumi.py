"""rumi files: against the files and blobs of the original package, and against numpy."""

from __future__ import annotations

import hashlib
import json
import os
import struct
import subprocess
from pathlib import Path

import numpy as np
import pytest
import rasters
from reference import rumi as reference

import chaski
from chaski import rumi
from chaski.errors import SpecError

pytestmark = pytest.mark.usefixtures("one_engine")

RASTER = Path(__file__).resolve().parents[2] / "testdata" / "raster"
WRITTEN = RASTER / "rumi-new" / "written"


def rows(folder: Path) -> list[dict]:
    lines = (folder / "manifest.jsonl").read_text().splitlines()
    return [{**m, "file": folder / m["path"]} for m in map(json.loads, lines)]


ALL = rows(RASTER)
GOOD = [m for m in ALL + rows(WRITTEN) if m["kind"] in ("rumi", "rumi-new")]
BASES = {m["path"]: m for m in ALL}
BAD = [m for m in ALL if m["kind"] == "bad" and m["format"].startswith("rumi")]
ML = {"uint2", "uint4", "int2", "int4", "bfloat16"}


def needs_ml_dtypes(m: dict) -> None:
    if m["dtype"] in ML or m["dtype"].startswith(("float8", "float6", "float4")):
        pytest.importorskip("ml_dtypes")


def frames(file: Path, h: rumi.Header) -> list[bytes]:
    data = file.read_bytes()
    return [data[o : o + n] for o, n in zip(h.offsets, h.counts, strict=True)]


@pytest.mark.parametrize("m", GOOD, ids=lambda m: m["path"])
def test_index_and_parse(m):
    blob = rumi.index_file(m["file"])
    assert blob.hex() == m["blob"]
    needs_ml_dtypes(m)
    h = rumi.parse(blob)
    assert (list(h.shape), str(h.dtype), h.tile) == (m["shape"], m["dtype"], (m["tile"],) * 2)
    assert h.generation == (1 if m["kind"] == "rumi" else 2)
    assert h.shape[0] == 1 or h.cells == (m.get("unit") == "cell")
    assert h.offsets[-1] + h.counts[-1] == m["file"].stat().st_size
    assert rumi.parse(bytearray(blob)) == h
    assert rumi.parse(memoryview(blob)).blob == blob


@pytest.mark.parametrize("m", BAD, ids=lambda m: m["path"])
def test_bad_files_and_blobs(m):
    """Damage that the index does not show is an error of its frame; the rest is refused."""
    frame = m["path"] in ("bad/rumi-checksum.tif", "bad/rumi-frame-serial.tif")
    frame = frame or "bomb" in m["path"] or not m["format"].endswith("-blob")
    try:
        if m["format"].endswith("-blob"):
            h = rumi.parse(m["file"].read_bytes())
        else:
            h = rumi.parse(rumi.index_file(m["file"]))
    except chaski.Error as e:
        assert e.kind in ("corrupt", "unsupported", "limit")
        return
    base = BASES[m["base"]]
    same_grid = (list(h.shape), str(h.dtype)) == (base["shape"], base["dtype"])
    # A blob of another file parses, but `read` refuses it.
    if m["format"].endswith("-blob") and h.blob.hex() != base["blob"]:
        with pytest.raises(chaski.SpecError, match="another file"):
            rumi.read(base["file"], h)
    else:
        assert frame and same_grid


@pytest.mark.parametrize("m", GOOD, ids=lambda m: m["path"])
def test_write_gives_the_file_again(m, tmp_path):
    needs_ml_dtypes(m)
    h = rumi.parse(rumi.index_file(m["file"]))
    out = tmp_path / "x.tif"
    layout = rumi.Layout(h.shape, h.dtype, h.tile, h.generation, h.cells)
    geo = {}
    if "geo" in m:
        a, b, c, d, e, f = m["geo"]["transform"]
        if point := "point" in m["path"]:  # there the transform is that of corners
            c, f = c + (a + b) / 2, f + (d + e) / 2
        geo = {"transform": (a, b, c, d, e, f), "crs": m["geo"]["crs"], "pixel_is_point": point}
    blob = rumi.write(out, frames(m["file"], h), layout, **geo)
    assert out.read_bytes() == m["file"].read_bytes()
    assert blob.hex() == m["blob"]


PLAIN = ["u1", "u2", "u4", "u8", "i1", "i2", "i4", "i8", "f2", "f4", "f8", "c8", "c16"]
SMALL = [
    *("uint1", "uint2", "uint4", "int2", "int4", "bfloat16", "float8_e4m3fn", "float8_e5m2"),
    *("float8_e8m0fnu", "float6_e2m3fn", "float6_e3m2fn", "float4_e2m1fn"),
]


def small_dtypes() -> list[np.dtype]:
    """Returns the dtypes of generation 2 alone that the installed ml_dtypes has."""
    try:
        import ml_dtypes
    except ImportError:
        return []
    return [np.dtype(getattr(ml_dtypes, n)) for n in SMALL if hasattr(ml_dtypes, n)]


@pytest.mark.usefixtures("binary")
def test_write_gives_what_the_reference_gives(tmp_path):
    """Random layouts, georeferencing included, are bit for bit those of the reference."""
    rng = np.random.default_rng(14)
    out = tmp_path / "x.tif"
    codes = {4326: True, 7844: True, 4647: False, 32633: False, 32766: False, 1024: False}
    t = [10, 0, 500000.1, 0, -10, 4600000.3]
    turned = [[0.1, 0.01, 7, 0.02, -0.1, 50], [10, 0, 1 / 3, 0, 10, 2 / 3], [-0.0, 0, 0, 0, -1, 0]]
    for i in range(100):
        generation = 1 + i % 2
        dtypes = [*map(np.dtype, PLAIN), *(small_dtypes() if generation == 2 else [])]
        bands, h, w = int(rng.integers(1, 8)), *map(int, rng.integers(1, 200, 2))
        tile = (int(rng.integers(16, 90)), int(rng.integers(16, 90)))
        dtype = dtypes[int(rng.integers(len(dtypes)))].newbyteorder("<")
        layout = rumi.Layout((bands, h, w), dtype, tile, generation, generation == 2 and i % 4 > 1)
        largest = int(rng.choice([1, 2, 3, 300, 70000])) if i % 50 else 1 << 21
        sizes = rng.integers(1, largest + 1, layout.frames)
        sizes[5:] %= 300  # of a few frames, so that 100 layouts are 14 MB
        frames = [bytes(max(1, int(n))) for n in sizes]
        place, geo, geographic = None, {}, False
        if rng.random() < 0.7:
            crs = int(rng.choice([*codes, *([1, 1023] if generation == 1 else [])]))
            transform = [t, *turned, *rng.normal(size=(1, 6)).tolist()][int(rng.integers(5))]
            place = transform, crs, bool(rng.random() < 0.5)
            geo = {"transform": transform, "crs": crs, "pixel_is_point": place[2]}
            geographic = codes.get(crs, False)
        blob = rumi.write(out, frames, layout, **geo)
        data, want = reference.write(frames, layout, place, geographic=geographic)
        assert (blob, out.read_bytes()) == (want, data), (layout, place)


@pytest.mark.usefixtures("binary")
def test_write_of_more_frames_than_a_message_holds(tmp_path):
    """140,000 sizes take 1.1 MB, and a message has 1 MiB of them."""
    layout = rumi.Layout((1, 400, 350), np.dtype("u1"), (1, 1))
    frames = [b"x" * (1 + i % 3) for i in range(layout.frames)]
    blob = rumi.write(tmp_path / "x.tif", frames, layout)
    data, want = reference.write(frames, layout)
    assert blob == want and (tmp_path / "x.tif").read_bytes() == data


@pytest.mark.parametrize("dtype", ["uint8", "<i2", ">u4", "f4", "f8", "c8", "f2", "u8", "c16"])
def test_tile_against_padding(dtype):
    a = np.arange(3 * 20 * 37).reshape(3, 20, 37).astype(dtype)
    chunks, layout = rumi.tile(a, 16)
    padded = np.pad(a, ((0, 0), (0, 12), (0, 11)))
    want = [
        padded[b, y : y + 16, x : x + 16] for y in (0, 16) for x in (0, 16, 32) for b in range(3)
    ]
    assert np.array_equal(chunks, want)
    assert chunks.dtype.newbyteorder("=") == np.dtype(dtype).newbyteorder("=")
    assert (layout.shape, layout.grid, layout.frames) == ((3, 20, 37), (2, 3), 18)
    assert np.array_equal(
        rumi.tile(a[:, ::-1, ::2], 16)[0], rumi.tile(a[:, ::-1, ::2].copy(), 16)[0]
    )


@pytest.mark.parametrize("cells", [False, True])
def test_tile2_against_slices(cells):
    a = np.arange(3 * 20 * 37, dtype=">u2").reshape(3, 20, 37)
    chunks, layout = rumi.tile2(a, 16, cells=cells)
    want = [a[:, y : y + 16, x : x + 16] for y in (0, 16) for x in (0, 16, 32)]
    if not cells:
        want = [band for cell in want for band in cell]
    assert len(chunks) == len(want) == layout.frames
    for got, box in zip(chunks, want, strict=True):
        assert got.dtype == "<u2" and got.flags.c_contiguous and np.array_equal(got, box)


@pytest.mark.parametrize(
    "a, tile",
    [
        (np.zeros((20, 20)), 16),
        (np.zeros((0, 20, 20)), 16),
        (np.zeros((1, 2, 2), bool), 16),
        (np.zeros((1, 2, 2), "U3"), 16),
        (np.zeros((1, 2, 2)), 0),
        (np.zeros((1, 2, 2)), 65536),
    ],
)
def test_tile_refuses(a, tile):
    with pytest.raises(chaski.SpecError):
        rumi.tile(a, tile)
    with pytest.raises(chaski.SpecError) as e:
        rumi.tile2(a, tile)
    assert "pattern" not in str(e.value)  # which nobody gave


def test_write_refuses_and_leaves_what_was_there(tmp_path):
    _, layout = rumi.tile(np.zeros((2, 20, 20), "u1"), 16)
    out = tmp_path / "x.tif"
    out.write_bytes(b"old")

    def broken():
        yield b"x"
        raise RuntimeError("compression failed")

    good = [b"x"] * 8
    t = (10, 0, 0, 0, -10, 0)
    for bad, keys in (
        (good[1:], {}),
        ([*good, b"x"], {}),
        ([b"", *good[1:]], {}),
        (good, {"transform": t}),
        (good, {"crs": 32633}),
        (good, {"transform": t[:5], "crs": 32633}),
        (good, {"transform": (*t[:5], float("nan")), "crs": 32633}),
        (good, {"transform": t, "crs": "OGC:CRS84"}),
        (good, {"transform": t, "crs": 32767}),
    ):
        with pytest.raises(chaski.SpecError):
            rumi.write(out, bad, layout, **keys)
    with pytest.raises(RuntimeError):
        rumi.write(out, broken(), layout)
    with pytest.raises(OSError):
        rumi.write(tmp_path / "none" / "x.tif", good, layout)
    assert [p.read_bytes() for p in tmp_path.iterdir()] == [b"old"]
    rumi.write(out, iter(good), layout)
    assert rumi.index_file(out) and len(list(tmp_path.iterdir())) == 1


def test_index_file_of_what_is_none(tmp_path):
    with pytest.raises(chaski.NotFoundError):
        rumi.index_file(tmp_path / "none.tif")
    good = GOOD[0]["file"].read_bytes()
    new = WRITTEN / "geo-projected.rumi"
    for name, data in {
        "empty": b"",
        "later": b"RUMI\x01\0\0\0\x10",
        "text": b"hello, world, hello, world",
        "tog": (RASTER / "tog" / "tog-odd-16.tif").read_bytes(),
        "strange": (RASTER / "tog" / "tf-strips-be-u16.tif").read_bytes(),
        "longer": new.read_bytes() + b"\0",
        **{f"cut {n}": good[:n] for n in (1, 15, 16, 20, 100, len(good) - 1)},
        **{f"cut {n} of 2": new.read_bytes()[:n] for n in (200, 300, 600)},
    }.items():
        p = tmp_path / "x.tif"
        p.write_bytes(data)
        for ask in (rumi.index_file, lambda p: rumi.info(source=p)):
            with pytest.raises((chaski.CorruptError, chaski.UnsupportedError)):
                pytest.fail(f"{name}: {ask(p)!r}")


@pytest.mark.usefixtures("binary")
def test_blob_of_generation_2_in_no_bits():
    """Equal frames take no bytes of the blob, so their number has a limit."""
    head = bytes.fromhex("4c4f56450100ffffff00ffffff000100010001000801000100000000")
    with pytest.raises(chaski.LimitError):
        rumi.parse(head)
    small = head[:6] + bytes.fromhex("0300000003000000") + head[14:]
    assert rumi.parse(small).counts.tolist() == [1] * 9


# Reading needs the engine.


@pytest.mark.usefixtures("binary")
@pytest.mark.parametrize("m", GOOD, ids=lambda m: m["path"])
def test_read(m):
    needs_ml_dtypes(m)
    header = rumi.parse(rumi.index_file(m["file"]))
    a = rumi.read(m["file"], header)
    assert (a.shape, a.dtype) == (header.shape, header.dtype)
    assert hashlib.sha256(a.tobytes()).hexdigest() == m["sha256"]
    assert np.array_equal(
        rumi.read([m["file"]], [header.blob], num_threads=2).view("u1"), a.view("u1")
    )


def test_read_by_the_names_of_the_original(binary):
    m = next(m for m in GOOD if m["kind"] == "rumi" and m["shape"][0] > 1)
    spec = rumi.parse(rumi.index_file(os.fsencode(m["file"])))
    want = rumi.read(m["file"], spec, "b y x")
    assert np.array_equal(rumi.read(m["file"], specs=spec, pattern="yxb"), want.transpose(1, 2, 0))
    twice = (p for p in [m["file"], os.fsencode(m["file"])])
    got = rumi.read(twice, specs=(s for s in [spec, spec.blob]), pattern="(nb) y x")
    assert np.array_equal(got, np.concatenate([want, want]))
    assert np.array_equal(rumi.read(m["file"], headers=spec, layout="b y x"), want)
    for wrong in ({"specs": spec, "headers": spec}, {"pattern": "byx", "layout": "b y x"}):
        with pytest.raises(SpecError, match="given twice"):
            rumi.read(m["file"], **wrong)
    for pattern in ("", "yx", "b y c x"):
        with pytest.raises(SpecError, match="pattern"):
            rumi.read(m["file"], spec, pattern)


def compress(zl, chunk, graph):
    """Compresses a tile with OpenZL as the README of rumi does."""
    c = zl.Compressor()
    g = zl.graphs.Zstd()
    g = zl.nodes.ConvertNumToSerialLE()(c, g)
    if graph:
        g = zl.nodes.DeltaInt()(c, g)
    c.select_starting_graph(g)
    cctx = zl.CCtx()
    cctx.ref_compressor(c)
    cctx.set_parameter(zl.CParam.FormatVersion, rumi.OPENZL_VERSION)
    return cctx.compress([zl.Input(zl.Type.Numeric, chunk.ravel())])


@pytest.mark.usefixtures("binary")
def test_the_examples_of_the_readme(tmp_path):
    zl = pytest.importorskip("openzl.ext")
    rng = np.random.default_rng(8)
    arrays = [rng.integers(0, 5000, (4, 520, 530)).astype("uint16") for _ in range(3)]
    paths = [str(tmp_path / f"{i}.tif") for i in range(3)]
    for path, arr in zip(paths, arrays, strict=True):
        chunks, layout = rumi.tile(arr, tile=512)
        # The graph may differ from tile to tile.
        frames = [compress(zl, ch, i % 2) for i, ch in enumerate(chunks)]
        rumi.write(path, frames, layout)
    arr = arrays[0]
    blob = rumi.index_file(paths[0])
    header = rumi.parse(blob)
    assert (header.shape, header.dtype) == (arr.shape, arr.dtype)
    assert np.array_equal(rumi.read(paths[0], header, "b y x"), arr)
    got = rumi.read(paths[0], header, "b y x", b=(0, 3), y=(0, 512), x=(0, 512))
    assert np.array_equal(got, arr[0:3, :512, :512])
    got = rumi.read(paths[0], header, "y x b", b=[3, 2, 1])
    assert np.array_equal(got, arr[[3, 2, 1]].transpose(1, 2, 0))
    assert np.array_equal(rumi.read(paths[0], header, num_threads=4), arr)

    headers = [rumi.parse(rumi.index_file(p)) for p in paths]
    cube = np.stack(arrays)
    got = rumi.read(paths, headers, "n b y x", n=(0, 2), b=(0, 4))
    assert np.array_equal(got, cube[:2])
    got = rumi.read(paths, headers, "(n b) y x", b=(0, 4))
    assert np.array_equal(got, cube.reshape(-1, 520, 530))
    got = rumi.read(paths, headers, "n (y x) b", b=(0, 4), n=[2, 0, 2])
    assert np.array_equal(got, cube[[2, 0, 2]].reshape(3, 4, -1).transpose(0, 2, 1))
    assert np.array_equal(rumi.read(paths, headers), cube)
    assert np.array_equal(rumi.read(paths, headers, n=[1]), cube[1])
    assert np.array_equal(rumi.read(paths, n=(1, 3), y=(5, 6)), cube[1:, :, 5:6])
    for wrong in (headers[:2], [headers[1], headers[0], headers[2]], headers[0]):
        with pytest.raises(chaski.SpecError):
            rumi.read(paths, wrong)
    with pytest.raises(chaski.SpecError):
        rumi.read(paths[0], headers)


@pytest.mark.usefixtures("binary")
@pytest.mark.parametrize(
    "transform, crs, point",
    [
        ((10, 0, 500000, 0, -10, 4600000), 32633, False),
        ((0.1, 0.01, 7, 0.02, -0.1, 50), "EPSG:4326", False),
        ((10, 0, 500000, 0, -10, 4600000), "epsg:32633", True),
    ],
)
def test_georeferencing(tmp_path, transform, crs, point):
    m = GOOD[0]
    h = rumi.parse(rumi.index_file(m["file"]))
    out = tmp_path / "x.tif"
    layout = rumi.Layout(h.shape, h.dtype, h.tile)
    rumi.write(
        out, frames(m["file"], h), layout, transform=transform, crs=crs, pixel_is_point=point
    )
    a, b, c, d, e, f = transform
    half = 0.5 if point else 0
    got = chaski.info(out)["tiff"]
    assert got["epsg"] == int(str(crs).split(":")[-1])
    assert got["transform"] == pytest.approx([c - half * (a + b), a, b, f - half * (d + e), d, e])


@pytest.mark.usefixtures("binary")
@pytest.mark.parametrize("crs,model", [(4326, 2), (7844, 2), (4647, 1), (32633, 1)])
@pytest.mark.parametrize("generation", [1, 2])
def test_the_kind_of_a_crs_is_the_engines(tmp_path, crs, model, generation):
    """7844 is geographic and 4647 is not, so ranges of codes do not decide."""
    m = next(m for m in GOOD if m["kind"] == ("rumi" if generation == 1 else "rumi-new"))
    h = rumi.parse(rumi.index_file(m["file"]))
    layout = rumi.Layout(h.shape, h.dtype, h.tile, generation, h.cells)
    t = (0.1, 0, 7, 0, -0.1, 50)
    out = tmp_path / "x.tif"
    rumi.write(out, frames(m["file"], h), layout, transform=t, crs=crs)
    key = 2048 if model == 2 else 3072
    keys = struct.pack("<12H", 1024, 0, 1, model, 1025, 0, 1, 1, key, 0, 1, crs)
    assert out.read_bytes().count(keys) == 1
    assert chaski.info(out)["tiff"]["epsg"] == crs


ORACLE = r"""
import json, sys
import numpy as np
import rumi
import openzl.ext as zl

def compress(ch, delta):
    c = zl.Compressor()
    g = zl.nodes.ConvertNumToSerialLE()(c, zl.graphs.Zstd())
    if delta:
        g = zl.nodes.DeltaInt()(c, g)
    c.select_starting_graph(g)
    cctx = zl.CCtx()
    cctx.ref_compressor(c)
    cctx.set_parameter(zl.CParam.FormatVersion, rumi.OPENZL_VERSION)
    return cctx.compress([zl.Input(zl.Type.Numeric, ch.ravel())])

folder, what = sys.argv[1], sys.argv[2]
for name in json.load(open(folder + "/names.json")):
    arr = np.load(f"{folder}/{name}.npy")
    if what == "write":
        chunks, layout = rumi.tile(arr, tile=64)
        frames = [compress(ch, i % 3) for i, ch in enumerate(chunks)]
        rumi.write(f"{folder}/{name}.tif", frames, layout)
        open(f"{folder}/{name}.blob", "wb").write(rumi.index_file(f"{folder}/{name}.tif"))
        np.save(f"{folder}/{name}.chunks.npy", chunks)
        open(f"{folder}/{name}.frames", "wb").write(b"".join(frames))
    else:
        path = f"{folder}/{name}.ours.tif"
        blob = rumi.index_file(path)
        assert blob == open(f"{folder}/{name}.ours.blob", "rb").read(), name
        assert np.array_equal(rumi.read(path, rumi.parse(blob), "b y x"), arr), name
        got = rumi.read(path, rumi.parse(blob), "y x b", b=[1, 0], y=(3, 70), x=(1, 65))
        assert np.array_equal(got, arr[[1, 0], 3:70, 1:65].transpose(1, 2, 0)), name
"""


@pytest.mark.usefixtures("binary")
def test_both_ways_with_the_original(tmp_path):
    """CHASKI_ORACLE_PYTHON08 names a Python with rumi-eo 0.8.3 and openzl."""
    python = os.environ.get("CHASKI_ORACLE_PYTHON08")
    if not python:
        pytest.skip("CHASKI_ORACLE_PYTHON08 names no Python with rumi-eo 0.8.3")
    rng = np.random.default_rng(83)
    kinds = ["u1", "u2", "u4", "u8", "i1", "i2", "i4", "i8", "f2", "f4", "f8", "c8"]
    arrays = {k: rng.integers(0, 100, (3, 100, 90)).astype(k) for k in kinds}
    for k, a in arrays.items():
        np.save(tmp_path / f"{k}.npy", a)
    (tmp_path / "names.json").write_text(json.dumps(kinds))
    run = [python, "-c", ORACLE, str(tmp_path)]
    subprocess.run([*run, "write"], check=True)
    for k, a in arrays.items():
        theirs = tmp_path / f"{k}.tif"
        blob = rumi.index_file(theirs)
        assert blob == (tmp_path / f"{k}.blob").read_bytes()
        header = rumi.parse(blob)
        assert np.array_equal(rumi.read(theirs, header), a)
        chunks, layout = rumi.tile(a, 64)
        assert np.array_equal(chunks, np.load(tmp_path / f"{k}.chunks.npy"))
        ours = tmp_path / f"{k}.ours.tif"
        ours_blob = rumi.write(ours, frames(theirs, header), layout)
        assert ours.read_bytes() == theirs.read_bytes()
        (tmp_path / f"{k}.ours.blob").write_bytes(ours_blob)
    subprocess.run([*run, "read"], check=True)


READS = r"""
import json, sys
import numpy as np
import rumi

folder = sys.argv[1]
paths = [f"{folder}/{i}.tif" for i in range(3)]
specs = [rumi.parse(rumi.index_file(p)) for p in paths]
for i, call in enumerate(json.load(open(folder + "/calls.json"))):
    k = {}
    for a, v in call["named"].items():
        k[a] = v if a == "pattern" else tuple(v[1]) if v[0] else v[1]
    few = slice(None) if call["all"] else 1
    np.save(f"{folder}/{i}.npy", rumi.read(paths[few], specs=specs[few], **k))
"""


def random_call(rng):
    """Returns the keyword arguments of a random call of `read` that rumi 0.8.3 accepts."""

    def span(size):
        start = int(rng.integers(size))
        return [True, [start, int(rng.integers(start, size)) + 1]]

    def picks(size):
        return [False, rng.integers(0, size, int(rng.integers(1, 5))).tolist()]

    named = {}
    several = bool(rng.random() < 0.6)
    for axis, size in {"n": 3 if several else 1, "b": 4, "y": 75, "x": 90}.items():
        if rng.random() < 0.6 and (axis != "n" or several):
            named[axis] = picks(size) if axis in "nb" and rng.random() < 0.5 else span(size)
    if rng.random() < 0.8:
        axes = list("nbyx")
        rng.shuffle(axes)
        text = axes[0]
        depth = 0
        if rng.random() < 0.3:
            text, depth = f"({text}", 1
        for axis in axes[1:]:
            blank = " " * int(rng.integers(0, 3))
            if depth and rng.random() < 0.5:
                text, depth = text + ")", 0
            elif not depth and rng.random() < 0.3:
                axis, depth = f"({axis}", 1
            text += blank + axis
        named["pattern"] = text + ")" * depth
    return {"named": named, "all": several}


@pytest.mark.usefixtures("binary")
def test_read_takes_the_arguments_of_the_original(tmp_path):
    """Random specs, patterns and selections read the same as in rumi-eo 0.8.3."""
    python = os.environ.get("CHASKI_ORACLE_PYTHON08")
    if not python:
        pytest.skip("CHASKI_ORACLE_PYTHON08 names no Python with rumi-eo 0.8.3")
    rng = np.random.default_rng(84)
    for i in range(3):
        arr = rng.integers(0, 1000, (4, 75, 90)).astype("u2")
        np.save(tmp_path / f"{i}.npy", arr)
    (tmp_path / "names.json").write_text(json.dumps(["0", "1", "2"]))
    subprocess.run([python, "-c", ORACLE, str(tmp_path), "write"], check=True)
    calls = [random_call(rng) for _ in range(120)]
    (tmp_path / "calls.json").write_text(json.dumps(calls))
    subprocess.run([python, "-c", READS, str(tmp_path)], check=True)
    paths = [tmp_path / f"{i}.tif" for i in range(3)]
    specs = [rumi.parse(rumi.index_file(p)) for p in paths]
    for i, call in enumerate(calls):
        named = {
            k: v if k == "pattern" else tuple(v[1]) if v[0] else v[1]
            for k, v in call["named"].items()
        }
        few = slice(None) if call["all"] else 1
        got = rumi.read(paths[few], specs=specs[few], **named)
        want = np.load(tmp_path / f"{i}.npy")
        assert got.dtype == want.dtype
        assert np.array_equal(got, want), named


ORACLE2 = r"""
import json, sys
import numpy as np
import rumi

for path, want in json.loads(sys.argv[1]).items():
    header = open(path + ".blob", "rb").read()
    assert np.array_equal(rumi.read(path, header, pattern="b y x"), np.load(want)), path
    assert np.array_equal(rumi.read(path, pattern="b y x"), np.load(want)), path
"""


@pytest.mark.usefixtures("binary")
def test_generation_2_is_read_by_the_original(tmp_path):
    """CHASKI_ORACLE_PYTHON16 names a Python with rumi-eo 0.16.0. Frames need openzl here."""
    zl = pytest.importorskip("openzl.ext")
    rng = np.random.default_rng(16)
    pairs = {}
    for kind in ("u1", "u2", "i4", "u8", "f2", "f4", "f8"):
        for cells in (False, True):
            a = rng.integers(0, 100, (6, 50, 40)).astype(kind)
            chunks, layout = rumi.tile2(a, 32, cells=cells)
            out = tmp_path / f"{kind}-{cells}.rumi"
            geo = {"transform": (10, 1, 5, 2, -10, 6), "crs": 32633} if cells else {}
            blob = rumi.write(
                out, [compress(zl, c, i % 2) for i, c in enumerate(chunks)], layout, **geo
            )
            header = rumi.parse(blob)
            assert header.blob == rumi.index_file(out) and header.cells == cells
            assert np.array_equal(rumi.read(out, header), a)
            np.save(tmp_path / f"{out.name}.npy", a)
            Path(f"{out}.blob").write_bytes(blob)
            pairs[str(out)] = str(tmp_path / f"{out.name}.npy")
    python = os.environ.get("CHASKI_ORACLE_PYTHON16")
    if python:
        subprocess.run([python, "-c", ORACLE2, json.dumps(pairs)], check=True)


def test_nodata_of_generation_1(tmp_path, binary):
    """GDAL's tag is kept, and 'chaski info' prints it."""
    pytest.importorskip("rasterio")
    pixels = np.random.default_rng(3).integers(0, 4, (2, 32, 32)).astype("u2")
    rasters.write(tmp_path / "0.tif", pixels, nodata=0, dtype="uint16")
    chip = tmp_path / "0.rumi"
    subprocess.run([binary, "convert", "--to", "rumi", "-o", chip, tmp_path / "0.tif"], check=True)
    said = subprocess.run([binary, "info", "--json", chip], check=True, capture_output=True)
    assert json.loads(said.stdout)["raster"]["nodata"] == 0
