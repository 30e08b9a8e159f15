"""The real engine: files against their manifest, batches against numpy and rasterio."""

from __future__ import annotations

import contextlib
import hashlib
import json
import multiprocessing
import random
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
import rasters
from conftest import nonempty

import chaski
from chaski.order import Order, window

RASTER = Path(__file__).resolve().parents[2] / "testdata" / "raster"
MANIFEST = [json.loads(line) for line in (RASTER / "manifest.jsonl").read_text().splitlines()]
GOOD = [m for m in MANIFEST if "sha256" in m and not m["path"].startswith("bad/")]
BAD = [m for m in MANIFEST if m["path"].startswith("bad/") and m["path"].endswith(".tif")]

pytestmark = pytest.mark.usefixtures("binary")

N, BANDS, H, W = 23, 3, 40, 50
NODATA = 7


def sha(a: np.ndarray) -> str:
    return hashlib.sha256(np.ascontiguousarray(a).tobytes()).hexdigest()


def supported(path: Path) -> np.ndarray | None:
    try:
        return chaski.read(path)
    except chaski.UnsupportedError:  # a relative of what chaski reads
        return None


@pytest.mark.parametrize("m", GOOD, ids=lambda m: m["path"])
def test_read(m):
    a = supported(RASTER / m["path"])
    if a is None:
        assert not m["path"].startswith("rumi-v1/") and not m.get("tog")
        return
    assert (list(a.shape), str(a.dtype)) == (m["shape"], m["dtype"])
    assert sha(a) == m["sha256"]
    for r in nonempty(m.get("reads", ())):
        picks = {
            axis: tuple(s["slice"]) if "slice" in s else s["list"]
            for axis, s in ((axis, r[axis]) for axis in "byx" if axis in r)
        }
        if any(isinstance(picks.get(axis), list) for axis in "yx"):
            continue
        got = chaski.read(RASTER / m["path"], layout=r["pattern"], num_threads=2, **picks)
        assert (list(got.shape), sha(got)) == (r["shape"], r["sha256"]), r


@pytest.mark.parametrize("m", BAD, ids=lambda m: m["path"])
def test_read_of_bad_files(m):
    try:
        a = chaski.read(RASTER / m["path"])
    except chaski.Error as e:
        assert e.kind in ("corrupt", "unsupported", "limit") and m["path"] in e.file
    else:
        assert m["expect"] != "error"
        assert m["expect"] == "no-crash" or sha(a) == m["identical_sha256"]


def test_stack():
    path = RASTER / GOOD[0]["path"]
    one = chaski.read(path)
    assert np.array_equal(chaski.read([path, path], n=[1, 0, 1]), np.stack([one] * 3))


def blob(path):
    """The file's header blob, as the command prints it."""
    from chaski import _engine

    run = [_engine.find_binary(), "index", "--format", "hex", path]
    return bytes.fromhex(subprocess.run(run, check=True, capture_output=True, text=True).stdout)


@pytest.mark.parametrize("kind", ["tiff", "rumi", "rumi-new"])
def test_read_with_headers(kind, tmp_path):
    m = next(m for m in GOOD if m["kind"] == kind)
    path = RASTER / m["path"]
    one, header = chaski.read(path), blob(path)
    assert np.array_equal(chaski.read(path, header=header), one)
    two = chaski.read([path, path], header=[header, header], n=[1, 0])
    assert np.array_equal(two, np.stack([one] * 2))
    # The given header is read, so the file's own may be damaged.
    if kind == "rumi":
        lost = tmp_path / path.name
        lost.write_bytes(b"\0" * 16 + path.read_bytes()[16:])
        with pytest.raises(chaski.Error):
            chaski.read(lost)
        assert np.array_equal(chaski.read(lost, header=header), one)
    with pytest.raises(chaski.Error) as e:
        chaski.read(path, header=header[:-1])
    assert e.value.kind == "corrupt"


def test_headers_and_paths():
    path = RASTER / GOOD[0]["path"]
    for header, what in (
        ([b"x", b"y"], "2 headers for 1 paths"),
        ("00ff", "4 headers"),
        ([7], "int: header must be bytes"),
    ):
        with pytest.raises(chaski.SpecError, match=what):
            chaski.read(path, header=header)


@pytest.mark.parametrize(
    "path",
    [
        "tiledb/arrays/dense_2d_order_rc",
        "coast/coast.tacozip",
        "coast/coast_dir",
        "coast/parts/.tacocat",
        "containers/taco-v1/stream_n1.taco",
        "coast/coast.tacozip::tile_00/s2/img.tif",
        "raster",
        "demo/coast.tif",
    ],
)
def test_info_says_what_the_command_says(path, binary):
    path = RASTER.parent / path
    run = subprocess.run([binary, "info", "--json", path], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert chaski.info(path) == json.loads(run.stdout)


def test_info():
    assert isinstance(chaski.info(RASTER / GOOD[0]["path"]), dict)
    with pytest.raises(chaski.NotFoundError) as e:
        chaski.info("/no/such/file.tif")
    assert e.value.kind == "not found"


@pytest.fixture(scope="module")
def chips(tmp_path_factory) -> tuple[Path, np.ndarray]:
    """A directory of N chips of uint16 with nodata, and the pixels that rasterio reads."""
    rasterio = pytest.importorskip("rasterio", reason="needs rasterio to write chips")
    folder = tmp_path_factory.mktemp("chips")
    rng = np.random.default_rng(11)
    x = rng.integers(0, 4000, (N, BANDS, H, W), np.uint16)
    x[rng.random(x.shape) < 0.02] = NODATA
    for i in range(N):
        path = folder / f"chip_{i:03}.tif"
        tiles = {"tiled": True, "blockxsize": 16, "blockysize": 32, "compress": "zstd"}
        transform = rasterio.transform.from_origin(5e5, 9e6, 10, 10)
        rasters.write(path, x[i], dtype="uint16", nodata=NODATA, **tiles, transform=transform)
        with rasterio.open(path) as d:
            assert np.array_equal(d.read(), x[i])
    return folder, x


NORM = chaski.Normalize([1e-3, 2e-3, 0.37], [-1.5, 0.1, 3.0], clip=(-1.0, 4.5))


def normalised(x: np.ndarray) -> np.ndarray:
    a = np.array(NORM.scale, np.float32).reshape(-1, 1, 1)
    c = np.array(NORM.offset, np.float32).reshape(-1, 1, 1)
    y = x.astype(np.float32) * a
    y += c
    return np.clip(y, np.float32(-1), np.float32(4.5))


def rows(loader: chaski.Loader, name: str = "image") -> dict[int, np.ndarray]:
    """Returns one epoch by sample."""
    out = {}
    for b in loader:
        for k in np.flatnonzero(b["valid"]):
            out[int(b["sample"][k])] = b[name][k].copy()
    return out


@pytest.mark.parametrize(
    "how",
    [{"engine": chaski.Engine(transport="grpc")}, {"engine": chaski.Engine(transport="auto")}],
    ids=["grpc", "auto"],
)
def test_batches_against_numpy(chips, how):
    folder, x = chips
    with chaski.load(
        folder, batch_size=5, normalize=NORM, pixels=chaski.Pixels(fill=-9.0), seed=3, **how
    ) as loader:
        got = rows(loader)
    assert sorted(got) == list(range(N))
    want = np.where(x == NODATA, np.float32(-9), normalised(x))
    for i in range(N):
        assert np.array_equal(got[i], want[i]), i


MASKS = RASTER.parent / "masks"


@pytest.mark.parametrize(
    "m", [json.loads(line) for line in (MASKS / "manifest.jsonl").open()], ids=lambda m: m["path"]
)
@pytest.mark.parametrize(
    "how",
    [{"engine": chaski.Engine(transport="grpc")}, {}],
    ids=["grpc", "auto"],
)
def test_masks(m, how):
    """Pixels outside of a file's mask are filled like nodata."""
    path = MASKS / m["path"]
    with chaski.load(
        path, batch_size=1, pixels=chaski.Pixels(dtype="float32", fill=-7.0), **how
    ) as loader:
        (b,) = loader
        assert sha(b["image"][0]) == m["filled_sha256"]
    with chaski.load(
        path, batch_size=1, pixels=chaski.Pixels(dtype="float32", fill=-7.0, validity="ok"), **how
    ) as loader:
        (b,) = loader
        assert (sha(b["image"][0]), sha(b["ok"][0])) == (m["filled_sha256"], m["valid_sha256"])
    assert sha(chaski.read(path)) == m["sha256"]  # as stored
    bands = chaski.stats(path)["fields"]["image"]["bands"]
    assert [x["count"] + x.get("nan", 0) for x in bands] == m["valid"]  # a NaN may be in the mask


@pytest.fixture(scope="module")
def servers(binary, chips):
    """Two servers, which the local engine is the client of."""
    command = [
        binary,
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--insecure",
        "--stop-on-eof",
        "--root",
        chips[0],
    ]
    with contextlib.ExitStack() as stack:
        targets = []
        for _ in range(2):
            p = stack.enter_context(
                subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            )
            stack.callback(p.stdin.close)
            targets.append(json.loads(p.stdout.readline())["listen"])
        yield targets


@pytest.mark.parametrize("transport", ["shm", "grpc"])
def test_many_small_epochs(tmp_path, transport):
    """A model that is fitted to one chip asks for many epochs of one small batch."""
    shutil.copy(RASTER / "tog" / "tog-1x1.tif", tmp_path)
    with chaski.load(tmp_path, batch_size=1, engine=chaski.Engine(transport=transport)) as loader:
        for _ in range(250):
            assert len(list(loader)) == 1


def test_many_small_reads():
    """Points are sampled by a read for each pixel."""
    path = RASTER / "tog" / "tog-1x1.tif"
    for _ in range(600):
        assert chaski.read(path, y=(0, 1), x=(0, 1)).shape == (3, 1, 1)


@pytest.mark.parametrize("layout", ["n b y x", "n y x b", "b n (y x)", "(n y) x b"])
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "uint8", "native"])
def test_wires_give_the_same_bytes(chips, servers, dtype, layout):
    folder, _ = chips
    pixels = chaski.Pixels(dtype=dtype, layout=layout, fill=None if dtype == "native" else 3.0)
    options = {"pixels": pixels, "batch_size": 6, "seed": 5}
    if dtype != "native":
        options |= {"normalize": NORM}
    native, final = chaski.Engine(wire="native"), chaski.Engine(wire="final")
    with (
        chaski.load(folder, **options) as a,
        chaski.connect(servers, folder, engine=native, **options) as b,
        chaski.connect(servers, folder, engine=final, **options) as c,
    ):
        for p, q, r in nonempty(zip(a, b, c, strict=True)):
            for other in (q, r):
                assert p["image"].dtype == other["image"].dtype
                assert p["image"].shape == other["image"].shape
                assert p["image"].tobytes() == other["image"].tobytes()
                assert p.dtypes == other.dtypes
            assert p.dtypes["image"] == ("uint16" if dtype == "native" else dtype)


@pytest.mark.parametrize("method", ["mean_std", "min_max", "percentile"])
def test_statistics_of_the_engine(chips, binary, tmp_path, method):
    folder, x = chips
    out = tmp_path / "stats.json"
    subprocess.run([binary, "stats", "-o", out, folder], check=True, capture_output=True)
    options = {"batch_size": N, "normalize": method, "stats": out}
    pixels = chaski.Pixels(bands=[2, 0], fill=float("nan"))
    with chaski.load(folder, pixels=pixels, **options) as loader:
        (batch,) = loader
    y = batch["image"].astype(np.float64)
    for k, band in enumerate((2, 0)):
        valid = x[:, band][x[:, band] != NODATA].astype(np.float64)
        got = np.sort(y[:, k][~np.isnan(y[:, k])])
        assert len(got) == len(valid)
        if method == "mean_std":
            want = (valid - valid.mean()) / valid.std()
        elif method == "min_max":
            want = (valid - valid.min()) / (valid.max() - valid.min())
        else:
            low, high = np.percentile(valid, [2.5, 98.5])
            # Percentiles have several definitions, which differ by less than one sample's step.
            want = np.clip((valid - low) / (high - low), 0, 1)
            assert np.abs(got - np.sort(want)).max() < 2 / (high - low)
            continue
        assert np.abs(got - np.sort(want)).max() < 1e-5


MEAN, STD = [2100.0, 12.5, 900.0], [640.0, 3.0, 0.7]


@pytest.mark.parametrize(
    "how",
    [
        {"normalize": {"mean": MEAN, "std": STD}},
        {"normalize": chaski.Normalize(mean=np.array(MEAN), std=tuple(STD))},
        {"fields": {"image": {"pattern": "{id}.tif", "normalize": {"mean": MEAN, "std": STD}}}},
        {
            "normalize": "mean_std",
            "stats": {
                "image": {"bands": [{"mean": m, "std": s} for m, s in zip(MEAN, STD, strict=True)]}
            },
        },
    ],
    ids=["dict", "class", "field", "stats of fields"],
)
def test_mean_and_std_of_a_model(chips, how):
    """The numbers that published models come with, and statistics of a field alone."""
    folder, x = chips
    pixels = chaski.Pixels(fill=float("nan"))
    with chaski.load(folder, batch_size=N, shuffle=False, pixels=pixels, **how) as loader:
        (b,) = loader
    mean, std = (np.reshape(v, (-1, 1, 1)) for v in (MEAN, STD))
    want = np.where(x == NODATA, np.nan, (x - mean) / std)
    # Products and sums are rounded to float32 where the scaled pixels are, which are larger.
    np.testing.assert_allclose(b["image"], want, rtol=0, atol=2e-7 * (x / std).max())


def test_order_and_windows(chips):
    folder, x = chips
    with chaski.load(
        folder,
        batch_size=8,
        pixels=chaski.Pixels(dtype="native"),
        window=chaski.RandomWindow((16, 24), per_asset=3),
        seed=9,
    ) as loader:
        assert loader.samples == 3 * N
        for epoch in range(2):
            order = Order(9, epoch, 3 * N)
            seen = []
            for b in loader:
                for k in np.flatnonzero(b["valid"]):
                    p, sample = int(b["position"][k]), int(b["sample"][k])
                    assert order.at(p) == sample
                    y0, x0 = window(9, epoch, p, H, W, 16, 24)
                    want = x[sample // 3][:, y0 : y0 + 16, x0 : x0 + 24]
                    assert np.array_equal(b["image"][k], want)
                    seen.append(sample)
            assert sorted(seen) == list(range(3 * N))


def test_without_shuffle(chips):
    folder, x = chips
    with chaski.load(
        folder, batch_size=N, shuffle=False, pixels=chaski.Pixels(dtype="native", bands=[2, 0, 2])
    ) as loader:
        (batch,) = loader
        assert np.array_equal(batch["image"], x[:, [2, 0, 2]])


def test_padding_and_validity(chips):
    folder, x = chips
    with chaski.load(
        folder,
        batch_size=N + 2,
        shuffle=False,
        last="pad",
        window=(H + 8, W),
        pixels=chaski.Pixels(pad=True, validity="ok", fill=float("nan"), dtype="float32"),
    ) as loader:
        (b,) = loader
        ok = np.zeros((N + 2, BANDS, H + 8, W), bool)
        ok[:N, :, :H] = x != NODATA
        assert np.array_equal(b["ok"], ok)
        assert np.array_equal(np.isnan(b["image"]), ~ok)
        assert np.array_equal(b["image"][ok], x[x != NODATA].astype(np.float32))
        assert b["valid"].tolist() == [True] * N + [False] * 2


def test_resume_at_every_step(chips):
    folder, _ = chips
    options = {"batch_size": 5, "normalize": NORM, "window": (16, 16), "seed": 2}
    with chaski.load(folder, **options) as loader:
        whole = [b for _ in range(2) for b in loader]
        for stop in range(len(whole) + 1):
            epoch, step = divmod(stop, len(loader))
            state = {**loader.state_dict(), "epoch": epoch, "samples": min(step * 5, N)}
            with chaski.load(folder, **options) as other:
                other.load_state_dict(json.loads(json.dumps(state)))
                rest = [b for _ in range(2 - epoch) for b in other]
            rows, left = (
                [(b.epoch, b.step, *(b[k].tobytes() for k in b)) for b in part]
                for part in (rest, whole[stop:])
            )
            assert rows == left
    with chaski.load(folder, **{**options, "batch_size": 6}) as other:
        with pytest.raises(chaski.StateError, match="(?m)run: batch_size is 6, in the state 5$"):
            other.load_state_dict(state)


def test_a_state_goes_on_over_more_data(chips, tmp_path, caplog):
    """The run continues in the larger dataset's order at that position, and has its state."""
    folder, _ = chips
    for p in sorted(folder.iterdir())[: N - 4]:
        (tmp_path / p.name).symlink_to(p)
    options = {"batch_size": 5, "seed": 2, "pixels": chaski.Pixels(dtype="native")}
    with chaski.load(tmp_path, **options) as less, chaski.load(folder, **options) as more:
        it = iter(less)
        next(it), next(it)
        state = json.loads(json.dumps(less.state_dict()))
        with pytest.raises(chaski.StateError, match="rows is 23, in the state 19; samples is 23"):
            more.load_state_dict(state)
        more.load_state_dict(state, strict=False)
        assert "goes on in epoch 0 after 10 of 23 samples, in its own order" in caplog.text
        rest = [b["sample"][b["valid"]] for b in more]
        order = Order(2, 0, N)
        assert np.concatenate(rest).tolist() == [order.at(p) for p in range(10, N)]
        ends = {**state, "samples": N - 4}
        more.load_state_dict(ends, strict=False)
        assert (more.epoch, more.state_dict()["samples"]) == (1, 0)
        own = more.state_dict()
        more.load_state_dict(own)
        assert own["run"]["samples"] == N and "batch_size" in own["run"]


@pytest.mark.parametrize("world", [2, 3, 7])
def test_ranks(chips, world):
    folder, _ = chips
    options = {"batch_size": 6, "pixels": chaski.Pixels(dtype="native"), "seed": 4}
    with chaski.load(folder, **options) as loader:
        want = {
            (b.step, int(p)): a
            for b in loader
            for p, a in zip(b["position"], b["image"], strict=True)
        }
    got = {}
    for rank in range(world):
        with chaski.load(
            folder, rank=rank, world_size=world, engine=chaski.Engine(workers=2), **options
        ) as loader:
            assert len(loader) == 4
            for b in loader:
                assert len(b["image"]) == max(len(range(rank, min(6, N - 6 * b.step), world)), 1)
                for p, a in zip(b["position"], b["image"], strict=True):
                    if p >= 0:
                        got[b.step, int(p)] = a
    assert {k for k in want if k[1] >= 0} == set(got)
    assert all(np.array_equal(got[k], want[k]) for k in got)


def copy_with_bad_file(folder: Path, to: Path) -> tuple[Path, str]:
    for p in folder.iterdir():
        (to / p.name).write_bytes(p.read_bytes())
    bad = sorted(to.iterdir())[4]
    data = bytearray(bad.read_bytes())
    data[len(data) // 2 :] = random.Random(1).randbytes(len(data) - len(data) // 2)
    bad.write_bytes(data)
    return to, bad.name


def test_bad_samples(chips, tmp_path):
    folder, name = copy_with_bad_file(chips[0], tmp_path)
    with chaski.load(folder, batch_size=5, pixels=chaski.Pixels(dtype="native")) as loader:
        with pytest.raises(chaski.Error) as e:
            for _ in loader:
                pass
        assert e.value.kind in ("corrupt", "limit", "unsupported") and name in e.value.file
    with chaski.load(
        folder, batch_size=5, pixels=chaski.Pixels(dtype="native"), on_bad="skip"
    ) as loader:
        got = rows(loader)
        assert sorted(got) == [i for i in range(N) if i != 4]
        assert all(np.array_equal(a, chips[1][i]) for i, a in got.items())
        assert len(loader.bad) == 1 and name in loader.bad.rows[0][1].message


def test_fields(chips, tmp_path):
    pytest.importorskip("rasterio")
    folder, x = chips
    for sub in ("image", "mask"):
        (tmp_path / sub).mkdir()
    for i, p in enumerate(sorted(folder.iterdir())):
        (tmp_path / "image" / f"{i}.tif").write_bytes(p.read_bytes())
        rasters.write(
            tmp_path / "mask" / f"{i}.tif",
            (x[i][:1] > 2000).astype(np.uint8),
            tiled=True,
            blockxsize=16,
            blockysize=16,
            compress="zstd",
        )
    with chaski.load(
        tmp_path,
        batch_size=N,
        fields={
            "image": chaski.Field(pattern="image/{id}.tif", normalize=NORM),
            "mask": chaski.Field(pattern="mask/{id}.tif", dtype="native", layout="n (b y) x"),
        },
        window=(8, 8),
    ) as loader:
        (b,) = loader
        assert b["image"].shape == (N, BANDS, 8, 8) and b["image"].dtype == np.float32
        assert b["mask"].shape == (N, 8, 8) and b["mask"].dtype == np.uint8


def test_table(chips, tmp_path):
    folder, x = chips
    files = sorted(folder.iterdir())
    lines = ["path,label,score,id"]
    lines += [f"{p},{i * 3},{i / 4},chip-{i}" for i, p in enumerate(files)]
    (tmp_path / "table.csv").write_text("\n".join(lines) + "\n")
    with chaski.load(
        tmp_path / "table.csv",
        batch_size=7,
        fields={"image": "path", "label": "label", "score": "score", "id": "id"},
    ) as loader:
        assert [f.kind for f in loader.fields] == ["raster", "int", "float", "text"]
        for b in nonempty(loader):
            ok = b["valid"]
            i = b["sample"][ok]
            assert np.array_equal(b["label"][ok], 3 * i)
            assert np.array_equal(b["score"][ok], i / 4)
            assert b["id"][ok].tolist() == [f"chip-{k}" for k in i]
            want = np.where(x[i] == NODATA, 0, x[i]).astype(np.float32)
            assert np.array_equal(b["image"][ok], want)


def test_torch(chips):
    torch = pytest.importorskip("torch")
    import chaski.torch

    folder, x = chips
    with chaski.torch.IterableDataset(
        folder, batch_size=8, pixels=chaski.Pixels(dtype="bfloat16"), normalize=NORM
    ) as d:
        loader = torch.utils.data.DataLoader(d, batch_size=None)
        seen = []
        for b in loader:
            assert b["image"].dtype == torch.bfloat16
            i = b["sample"][b["valid"]]
            seen += i.tolist()
            want = torch.from_numpy(np.where(x == NODATA, 0, normalised(x)).astype(np.float32)[i])
            assert torch.equal(b["image"][b["valid"]], want.to(torch.bfloat16))
        assert sorted(seen) == list(range(N))
        for stacks in ({}, {"batch_size": 4}):
            with pytest.raises(RuntimeError, match=r"DataLoader\(dataset, batch_size=None\)"):
                next(iter(torch.utils.data.DataLoader(d, **stacks)))
        apart = torch.utils.data.DataLoader(d, batch_size=1, collate_fn=lambda items: items[0])
        assert next(iter(apart))["image"].shape[0] == 8
        # Not beside a server of gRPC in this process, which a fork may find with locks held.
        with pytest.raises(RuntimeError, match="num_workers=0"):
            list(torch.utils.data.DataLoader(d, batch_size=None, num_workers=1))


def serve(binary: str, root: Path, listen: str) -> tuple[subprocess.Popen, str]:
    command = [
        binary,
        "serve",
        "--listen",
        listen,
        "--root",
        str(root),
        "--stop-on-eof",
        "--insecure",
    ]
    p = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert p.stdout is not None
    return p, json.loads(p.stdout.readline())["listen"]


def test_connect_to_a_server_that_is_killed_and_restarted(chips, binary):
    folder, x = chips
    server, target = serve(binary, folder, "127.0.0.1:0")
    try:
        with chaski.connect(
            target,
            folder,
            batch_size=2,
            pixels=chaski.Pixels(dtype="native"),
            seed=1,
        ) as loader:
            got = {}
            for b in loader:
                for k in np.flatnonzero(b["valid"]):
                    got[int(b["sample"][k])] = b["image"][k]
                if b.step == 3:
                    server.kill()
                    server.communicate()
                    server, again = serve(binary, folder, target)
                    assert again == target
            assert sorted(got) == list(range(N))
            assert all(np.array_equal(a, x[i]) for i, a in got.items())
        with pytest.raises(chaski.NotFoundError):
            chaski.connect(target, "/", batch_size=2)
    finally:
        server.communicate(timeout=500)


def test_wrong_specs(chips):
    folder, _ = chips
    for options, match in [
        ({"pixels": chaski.Pixels(layout="n b y")}, "layout|axis|pattern|x"),
        ({"pixels": chaski.Pixels(bands=[3])}, "no band 3: bands are 0 to 2"),
        ({"normalize": chaski.Normalize([1, 2])}, "2 values for 3 bands"),
        ({"pixels": chaski.Pixels(dtype="int7")}, "int7"),
        ({"window": (64, 64)}, "the field does not pad"),
        ({"window": [8, 16, 24]}, "window is .*; several sides are the `sizes` of a sampler"),
        ({"window": chaski.RandomWindow((8, 16, 24))}, "size is .*; several sides are the `sizes`"),
        ({"window": chaski.RandomWindow()}, "size is missing: both sides must be from 1"),
        ({"window": chaski.RandomWindow(8, sizes=[8, 16])}, "size is 8, and its sides are given"),
        ({"window": chaski.RandomWindow(sizes=[])}, r"sizes is \[\]: it must have 1 to 64 sides"),
        ({"window": chaski.WeightedWindow(8)}, "weighted_window needs weights"),
        ({"normalize": chaski.Normalize(mean=[0] * 3, std=[1, 0, 1])}, "std has 0: it must be abo"),
        ({"fields": {"image": chaski.Field(wavelengths=[])}}, "wavelengths has 0 numbers"),
    ]:
        with pytest.raises(chaski.Error, match=match):
            with chaski.load(folder, batch_size=2, **options) as loader:
                next(iter(loader))


def _in_a_fork(path, pipe):
    """Reads in a process that was forked from one that has read, and says what became of it."""
    try:
        whole, part = chaski.read(path), chaski.read([path], y=(0, 8), x=(3, 5))
        with pytest.raises(chaski.Error):
            chaski.read(f"{path}.missing")
        with pytest.raises(RuntimeError, match="spawn"):  # and does not wait for ever
            chaski.load(path, batch_size=1)
        pipe.send((whole.sum(), part.shape, chaski.info(path)["bytes"]))
    except BaseException as e:
        pipe.send(repr(e))


def test_forks_of_a_process_that_has_read_can_read():
    """As the workers of a DataLoader are: gRPC stands still in them, others read for them."""
    path = RASTER.parent / "demo" / "coast.tif"
    whole, size = chaski.read(path), path.stat().st_size
    forks = multiprocessing.get_context("fork")
    for _ in range(2):
        here, there = forks.Pipe()
        worker = forks.Process(target=_in_a_fork, args=(path, there))
        worker.start()
        assert here.poll(300), "it stands still"
        assert here.recv() == (whole.sum(), (whole.shape[0], 8, 2), size)
        worker.join(300)
        assert worker.exitcode == 0
