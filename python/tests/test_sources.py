"""Samplers, subsets, mixtures and sequences of the real engine, against numpy."""

from __future__ import annotations

import itertools
import json
import math
import re
import subprocess
from dataclasses import replace
from datetime import date, datetime, timezone
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
import rasterio
import rasters
from conftest import nonempty
from helpers import refuse, spec_options, web
from patience import logged
from rasterio import warp
from reference import sampling
from reference.sampling import Dataset, Plan, Runs

import chaski
from chaski._spec import build_spec, paths
from chaski.order import Order

pytestmark = pytest.mark.usefixtures("one_engine")

N, H, W, NODATA, TILE = 12, 96, 112, 7, 32
HOW = [{"engine": chaski.Engine(transport="grpc")}, {}]


def write(path: Path, x: np.ndarray) -> None:
    options = {"compress": "zstd", "tiled": True, "nodata": NODATA}
    rasters.write(path, x, blockxsize=TILE, blockysize=TILE, **options)


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> tuple[Path, np.ndarray, np.ndarray]:
    """A directory of images and masks, a table of them, and the pixels of both."""
    folder = tmp_path_factory.mktemp("sampled")
    r = np.random.default_rng(5)
    images = r.integers(8, 4000, (N, 2, H, W), dtype=np.uint16)
    images[r.random(images.shape) < 0.05] = NODATA
    masks = (r.random((N, 1, H, W)) < 0.02).astype(np.uint8) * 3
    masks[:, :, : H // 2] = 0
    lines = ["image,mask,site,date,cloud,scene"]
    for i in range(N):
        write(folder / f"image{i:02}.tif", images[i])
        write(folder / f"mask{i:02}.tif", masks[i])
        day = f"2024-{(i * 5) % 12 + 1:02}-01"
        lines.append(f"image{i:02}.tif,mask{i:02}.tif,{i % 3},{day},{i * 7 % 10},s{i // 2}")
    (folder / "table.csv").write_text("\n".join(lines) + "\n")
    return folder / "table.csv", images, masks


FIELDS = {
    "image": chaski.Field(column="image", dtype="float32", fill=-1.0),
    "mask": chaski.Field(column="mask", dtype="native"),
}


def dihedral(a: np.ndarray, g: int) -> np.ndarray:
    """Applies a transform to the last two axes with numpy."""
    if g & 1:
        a = a[..., :, ::-1]
    if g & 2:
        a = a[..., ::-1, :]
    return a.swapaxes(-1, -2) if g & 4 else a


def crop(a: np.ndarray, box: sampling.Box) -> np.ndarray:
    return a[..., box.y : box.y + box.h, box.x : box.x + box.w]


def filled(x: np.ndarray) -> np.ndarray:
    return np.where(x == NODATA, np.float32(-1), x.astype(np.float32))


def check(loader, plan, images, masks, *, weights=None, epochs=1):
    """Compares epochs with the plan, window by window."""
    assert loader.samples == len(plan)
    n = 0
    for epoch in range(epochs):
        for b in loader:
            assert b.epoch == epoch
            for k in np.flatnonzero(b["valid"]):
                d = plan.at(epoch, int(b["position"][k]))
                assert b["sample"][k] == d.sample
                w = None if weights is None else weights[d.row]
                box, _ = plan.window(d, H, W, w)
                want = dihedral(filled(crop(images[d.row], box)), d.transform)
                assert np.array_equal(b["image"][k], want)
                mask = dihedral(crop(masks[d.row], box), d.transform)
                assert np.array_equal(b["mask"][k], mask)
                n += 1
    assert n == epochs * len(plan)


D4 = tuple(range(8))


@pytest.mark.parametrize("how", HOW, ids=["grpc", "auto"])
def test_random_windows_turned(data, how):
    table, images, masks = data
    sampler = chaski.RandomWindow(40, per_asset=3)
    options = {
        "batch_size": 7,
        "seed": 9,
        "fields": FIELDS,
        "pixels": chaski.Pixels(augment="d4"),
        "window": sampler,
    }
    plan = Plan(9, Dataset(N, sampling.RandomWindow(40, 40, per_item=3), transforms=D4))
    with chaski.load(table, **options, **how) as loader:
        check(loader, plan, images, masks, epochs=2)


@pytest.mark.parametrize(("shape", "augment"), [((48, 32), "flips"), ((48, 48), None)])
def test_grid(data, shape, augment):
    table, images, masks = data
    g = chaski.Grid(shape, overlap=16)
    grid = sampling.Grid(*shape, shape[0] - 16, shape[1] - 16)
    runs = Runs([grid.count(H, W)] * N)
    grid = sampling.Grid(*shape, shape[0] - 16, shape[1] - 16, runs=runs)
    plan = Plan(0, Dataset(N, grid, transforms=(0, 1, 2, 3) if augment else ()), shuffle=False)
    options = {
        "batch_size": 8,
        "fields": FIELDS,
        "pixels": chaski.Pixels(augment=augment),
        "shuffle": False,
    }
    with chaski.load(table, window=g, **options) as loader:
        check(loader, plan, images, masks)


@pytest.mark.parametrize("how", HOW, ids=["grpc", "auto"])
def test_tiles(data, how):
    table, images, masks = data
    v = sampling.Visits(40, 40, TILE, TILE, per_visit=4, pool=5, runs=Runs([1]))
    v = sampling.Visits(40, 40, TILE, TILE, per_visit=4, pool=5, runs=Runs([v.tiles(H, W)] * N))
    plan = Plan(2, Dataset(N, v, transforms=D4))
    sampler = chaski.TileWindow(40, per_visit=4, pool=5)
    options = {
        "batch_size": 16,
        "seed": 2,
        "fields": FIELDS,
        "pixels": chaski.Pixels(augment="d4"),
        "window": sampler,
    }
    with chaski.load(table, **options, **how) as loader:
        assert loader.spec["sampler"]["tile_height"] == TILE
        check(loader, plan, images, masks, epochs=2)


@pytest.mark.parametrize("classes", [None, "3"])
def test_weights(data, binary, tmp_path, classes):
    table, images, masks = data
    out = tmp_path / "weights"
    counted = ["--count", "mask", "--classes", classes] if classes else ["--count", "image"]
    fields = ["--field", "image=image", "--field", "mask=mask"]
    command = [binary, "stats", "--sampling", *fields, *counted, "--cell", "20", "-o", out, table]
    subprocess.run(command, check=True, capture_output=True)
    there = masks[:, 0] == 3 if classes else (images != NODATA).any(1)
    weights = []
    for t in there:
        cells = [
            int(t[y : y + 20, x : x + 20].sum()) for y in range(0, H, 20) for x in range(0, W, 20)
        ]
        weights.append(sampling.Weights(cells, 20, 20, W))
    plan = Plan(1, Dataset(N, sampling.Weighted(24, 24, per_item=4)))
    sampler = chaski.WeightedWindow(24, out, per_asset=4)
    options = {"batch_size": 5, "seed": 1, "fields": FIELDS, "window": sampler}
    with chaski.load(table, **options) as loader:
        check(loader, plan, images, masks, weights=weights)
        if classes:
            share = np.mean([(b["mask"] == 3).any((1, 2, 3)).mean() for b in loader])
            assert share > 0.95


def places(m: int, n: int) -> list[tuple[int, int, int, np.float32]]:
    out = []
    for i in range(n):
        at = Fraction((2 * i + 1) * m, 2 * n)
        low = (at - Fraction(1, 2)).__floor__()
        w = np.float32(float(at - Fraction(1, 2) - low))
        out.append((min(max(low, 0), m - 1), min(max(low + 1, 0), m - 1), int(at), w))
    return out


def between(a: np.ndarray, b: np.ndarray, w: np.ndarray) -> np.ndarray:
    return np.where((w == 0) | (a == b), a, a + w * (b - a))


def resized(x: np.ndarray, h: int, w: int) -> np.ndarray:
    """Resamples (b, y, x) bilinearly as docs/order.md says, nodata filled with -1."""
    ya, yb, yn, wy = (np.array(v) for v in zip(*places(x.shape[1], h), strict=True))
    xa, xb, xn, wx = (np.array(v) for v in zip(*places(x.shape[2], w), strict=True))
    wy = wy.astype(np.float32)[:, None]
    wx = wx.astype(np.float32)
    near = x[:, yn[:, None], xn]

    def at(y, c):
        v = x[:, y[:, None], c]
        return np.where(v == NODATA, near, v).astype(np.float32)

    v = between(between(at(ya, xa), at(ya, xb), wx), between(at(yb, xa), at(yb, xb), wx), wy)
    assert v.dtype == np.float32
    return np.where(near == NODATA, np.float32(-1), v)


@pytest.mark.parametrize("of_asset", [False, True])
def test_resized_windows(data, of_asset):
    table, images, masks = data
    r = sampling.Resized(
        32, 32, *((0.08, 1) if of_asset else (0.5, 2)), 4 / 3, of_asset, per_item=2
    )
    plan = Plan(4, Dataset(N, r, transforms=D4))
    sampler = chaski.ResizedWindow(32, of_asset=of_asset, per_asset=2)
    options = {
        "batch_size": 6,
        "seed": 4,
        "fields": FIELDS,
        "pixels": chaski.Pixels(augment="d4"),
        "window": sampler,
    }
    with chaski.load(table, **options) as loader:
        assert loader.samples == 2 * N
        for b in nonempty(loader):
            for k in range(6):
                d = plan.at(0, int(b["position"][k]))
                box, _ = plan.window(d, H, W)
                image = dihedral(resized(crop(images[d.row], box), 32, 32), d.transform)
                assert np.array_equal(b["image"][k], image)
                ny = [p[2] for p in places(box.h, 32)]
                nx = [p[2] for p in places(box.w, 32)]
                near = crop(masks[d.row], box)[:, np.array(ny)[:, None], nx]
                assert np.array_equal(b["mask"][k], dihedral(near, d.transform))


def tents(m: int, n: int) -> np.ndarray:
    """The weights (n, m) of docs/order.md: triangles, as whole numbers."""
    i, j = np.arange(n)[:, None], np.arange(m)
    w = 2 * max(m, n) - np.abs((2 * j + 1) * n - (2 * i + 1) * m)
    return np.maximum(w, 0).astype(np.float64)


def antialiased(x: np.ndarray, h: int, w: int) -> np.ndarray:
    """Resamples (b, y, x) with antialiasing, sample by sample, nodata filled with -1."""
    ky, kx = tents(x.shape[1], h), tents(x.shape[2], w)
    there = (x != NODATA).astype(np.float64)
    values = np.where(there, x, 0).astype(np.float64)

    def weigh(a: np.ndarray) -> np.ndarray:
        rows = np.zeros((*a.shape[:2], w))
        for c in range(a.shape[2]):
            rows += kx[:, c] * a[:, :, c, None]
        out = np.zeros((a.shape[0], h, w))
        for r in range(a.shape[1]):
            out += ky[:, r, None] * rows[:, None, r]
        return out

    s, weight = weigh(values), weigh(there)
    missing = 2 * weight < ky.sum(1)[:, None] * kx.sum(1)
    v = (s / np.where(missing, 1, weight)).astype(np.float32)
    return np.where(missing, np.float32(-1), v)


@pytest.mark.parametrize("whole", [False, True], ids=["with nodata", "against torch"])
def test_antialiasing(data, tmp_path, whole):
    """Windows that shrink, and some that grow, follow the page, and torch nearly."""
    table, images, _ = data
    if whole:
        images = np.maximum(images, NODATA + 1)
        for i in range(N):
            write(tmp_path / f"{i:02}.tif", images[i])
        table = tmp_path
    interpolate = pytest.importorskip("torch").nn.functional.interpolate
    from_numpy = pytest.importorskip("torch").from_numpy
    field = chaski.Field(
        column=None if whole else "image",
        dtype="float32",
        fill=-1.0,
        resample="antialias",
        validity="there",
    )
    lo, hi = 0.3, 20
    r = sampling.Resized(10, 12, lo, hi, 2, per_item=6)
    plan = Plan(4, Dataset(N, r))
    sampler = chaski.ResizedWindow((10, 12), scale=(lo, hi), ratio=2, per_asset=6)
    options = {"batch_size": 6, "seed": 4, "fields": {"image": field}, "window": sampler}
    shrunk = grown = missing = 0
    with chaski.load(table, **options) as loader:
        for b in loader:
            for k in range(6):
                d = plan.at(0, int(b["position"][k]))
                box, _ = plan.window(d, H, W)
                x = crop(images[d.row], box)
                want = antialiased(x, 10, 12)
                assert np.array_equal(b["image"][k], want)
                assert np.array_equal(b["there"][k], want != -1)
                shrunk, grown = shrunk + (box.h > 25), grown + (box.h < 10 or box.w < 12)
                missing += (want == -1).sum()
                if whole:
                    t = from_numpy(x.astype(np.float32))[None]
                    t = interpolate(t, (10, 12), mode="bilinear", antialias=True)[0].numpy()
                    assert np.allclose(b["image"][k], t, rtol=1e-5)
    assert shrunk > 10 and grown > 0 and (missing > 0) == (not whole)
    with (
        pytest.raises(chaski.UnsupportedError, match="antialias of uint16 to uint16"),
        chaski.load(table, **options | {"fields": {"image": replace(field, dtype="native")}}),
    ):
        pass


def samples(loader) -> list[int]:
    return sorted(int(s) for b in loader for s in b["sample"][b["valid"]])


@pytest.mark.parametrize("names", [("train", "val"), ("train", "other")])
def test_a_column_of_the_names_of_parts_is_told(data, tmp_path, caplog, names):
    table, lines = tmp_path / "t.csv", [f"{data[0].parent}/image{i:02}.tif" for i in range(4)]
    table.write_text("image,part\n" + "".join(f"{p},{names[i % 2]}\n" for i, p in enumerate(lines)))
    split = chaski.Split.by_column("part", {"train": 1, "val": 1}, exact=True)
    rows = chaski.Rows(split=split, use="train")
    with chaski.load(table, batch_size=1, rows=rows, fields={"image": "image"}) as loader:
        assert loader.samples == 2
    told = 'by "given" (Split.given) takes the part that each row names'
    if names[1] == "val":
        logged(caplog, told)
    assert caplog.text.count(told) == (names[1] == "val")


def test_where_and_splits(data):
    table, images, _ = data
    kept = [i for i in range(N) if i * 7 % 10 < 6 and i % 3 in (0, 2)]
    where = [("cloud", "<", 6), ("site", "in", [0, 2])]
    options = {"batch_size": 4, "fields": FIELDS, "shuffle": False}
    with chaski.load(table, rows=chaski.Rows(where=where), **options) as loader:
        assert loader.samples == len(kept)
        got = np.concatenate([b["image"][b["valid"]].copy() for b in loader])
        assert np.array_equal(got, filled(images[kept]))
    parts = {"train": 2.0, "val": 1.0}
    shares = sampling.apportion(1 << 32, list(parts.values()))
    for split, key in (
        (chaski.Split.by_hash(parts, seed=3), lambda i: f"image{i:02}.tif"),
        (chaski.Split.by_column("scene", parts, seed=3), lambda i: f"s{i // 2}"),
    ):
        for part, use in enumerate(parts):
            want = [i for i in range(N) if sampling.share_of_text(3, shares, key(i)) == part]
            with chaski.load(table, rows=chaski.Rows(split=split, use=use), **options) as loader:
                got = np.concatenate([b["image"][b["valid"]].copy() for b in loader])
                assert np.array_equal(got, filled(images[want]))
    dates = chaski.Split.by_date("date", {"old": (None, "2024-06-01"), "new": ("2024-06-01", None)})
    for use in ("old", "new"):
        want = [i for i in range(N) if ((i * 5) % 12 + 1 < 6) == (use == "old")]
        with chaski.load(table, rows=chaski.Rows(split=dates, use=use), **options) as loader:
            assert loader.samples == len(want)
    with pytest.raises(chaski.SpecError, match="no part"):
        chaski.load(table, rows=chaski.Rows(split=dates, use="never"), **options)
    with pytest.raises(chaski.NotFoundError, match="cloudy"):
        chaski.load(table, rows=chaski.Rows(where=[("cloudy", "<", 1)]), **options)


def test_parts_of_a_split_do_not_depend_on_fields(tmp_path):
    """The key of a sample is the {id}, or the path in the first column of files of its table."""
    pytest.importorskip("rasterio")
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    for kind in ("a", "b"):
        (tmp_path / kind).mkdir()
        for i in range(20):
            rasters.write(tmp_path / kind / f"{i:02}.tif", np.full((1, 4, 4), i, "uint8"))
    columns = {"n": range(20), **{k: [f"{k}/{i:02}.tif" for i in range(20)] for k in "ab"}}
    lines = [",".join(map(str, row)) for row in zip(*columns.values(), strict=True)]
    (tmp_path / "t.csv").write_text("\n".join(["n,a,b", *lines]) + "\n")
    pq.write_table(pa.table({k: list(v) for k, v in columns.items()}), tmp_path / "t.parquet")
    parts = {"train": 0.5, "val": 0.5}
    shares = sampling.apportion(1 << 32, list(parts.values()))
    patterns = {k: k + "/{id}.tif" for k in "ab"}
    named = {k: chaski.Field(column=k) for k in "ab"}
    for source, fields, key in (
        (tmp_path, patterns, "{:02}"),
        (tmp_path / "t.csv", named, "a/{:02}.tif"),
        (tmp_path / "t.parquet", named, "a/{:02}.tif"),
    ):
        want = [i for i in range(20) if sampling.share_of_text(7, shares, key.format(i)) == 0]
        for order in ("ab", "ba", "a", "b"):
            rows = chaski.Rows(split=chaski.Split.by_hash(parts, seed=7), use="train")
            some = {k: fields[k] for k in order}
            with chaski.load(
                source, rows=rows, batch_size=20, fields=some, shuffle=False
            ) as loader:
                batch = next(iter(loader))
                first = batch[order[0]][:, 0, 0, 0].astype(int).tolist()
                names = loader.ids[:]
            assert first == want, (source, order)
            assert [int(Path(n).stem) for n in names] == want
        # Bad rows are those of any field's path, as a run with another field first lists them.
        bad = chaski.Rows(bad=["b/03.tif"])
        with chaski.load(source, rows=bad, batch_size=20, fields=fields, shuffle=False) as loader:
            left = next(iter(loader))["a"][:, 0, 0, 0].astype(int).tolist()
        assert left == [i for i in range(20) if i != 3]


def test_splits_of_few_scenes_are_exact(tmp_path):
    """Among few scenes the shares are kept, whatever the seed, and no scene is in two parts."""
    lines = ["path,scene,minx,miny,maxx,maxy"]
    for i in range(8):
        rasters.write(tmp_path / f"{i}.tif", np.full((1, 4, 4), i, "uint8"), dtype="uint8")
        x = 10 * (i // 2)
        lines.append(f"{i}.tif,{i // 2 if i != 7 else ''},{x},0,{x + 1},1")
    (tmp_path / "t.csv").write_text("\n".join(lines) + "\n")
    names = ("train", "val", "test")
    for seed, (shares, want) in nonempty(
        itertools.product(range(6), [((2, 1, 1), (2, 1, 1)), ((8, 1, 1), (2, 1, 1))])
    ):
        parts = dict(zip(names, shares, strict=True))
        for split, size in (
            (chaski.Split.by_hash(parts, seed, exact=True), 1),
            (chaski.Split.by_column("scene", parts, seed, exact=True), 2),
            (chaski.Split.by_cell(5, parts, seed, exact=True), 2),
        ):
            found = {}
            for name in names:
                rows = chaski.Rows(split=split, use=name)
                fields = {"image": "path"}
                with chaski.load(
                    tmp_path / "t.csv", batch_size=8, rows=rows, fields=fields, shuffle=False
                ) as loader:
                    batch = next(iter(loader))
                    found[name] = batch["image"][batch["valid"]][:, 0, 0, 0].astype(int)
            every = np.sort(np.concatenate(list(found.values())))
            lost = split.by == "column"  # the row without a scene is in no part
            assert every.tolist() == list(range(8 - lost))
            if size == 2:
                assert [len({i // 2 for i in found[n]}) for n in names] == list(want)
            else:
                assert [len(found[n]) for n in names] == [
                    round(8 * s / sum(shares)) for s in shares
                ]


def test_mixture(data):
    table, images, masks = data
    mix = chaski.Mixture(
        {
            "clear": chaski.Source(table, weight=3, rows=chaski.Rows(where=[("cloud", "<", 6)])),
            "all": chaski.Source(
                table, fields={"image": chaski.Field(column="image", bands=[1, 0])}
            ),
        },
        until="longest",
    )
    clear = [i for i in range(N) if i * 7 % 10 < 6]
    w = sampling.RandomWindow(24, 24)
    parts = [Dataset(N, w, rows=clear), Dataset(N, w)]
    plan = Plan(6, sampling.Mixture(parts, [7500, 2500]))
    options = {"batch_size": 9, "seed": 6, "fields": FIELDS, "window": (24, 24)}
    with chaski.load(mix, **options) as loader:
        assert loader.samples == len(plan)
        assert [s["count"] for s in loader.spec["sources"]] == [7500, 2500]
        for epoch in range(2):
            for b in nonempty(loader):
                for k, p in nonempty(enumerate(b["position"])):
                    if p < 0:
                        assert b["source"][k] == -1
                        continue
                    d = plan.at(epoch, int(p))
                    assert (b["source"][k], b["sample"][k]) == (d.dataset, d.sample)
                    box, _ = plan.window(d, H, W)
                    x = images[d.row] if d.dataset == 0 else images[d.row][::-1]
                    assert np.array_equal(b["image"][k], filled(crop(x, box)))
    with pytest.raises(chaski.NotFoundError, match="nowhere"):
        chaski.load(chaski.Mixture({"a": table, "b": table.parent / "nowhere.csv"}), **options)


def test_balanced(data):
    table, _, _ = data
    with chaski.load(
        table, rows=chaski.Rows(strata="site"), batch_size=3, fields=FIELDS, seed=1
    ) as loader:
        assert loader.samples == N


@pytest.mark.parametrize("take", [0, 24])
def test_exact_shares(data, take):
    """Every batch has its share of every value, with the samples of docs/order.md's plan."""
    table, _, _ = data
    strata = chaski.Strata("site", per_batch=True, until="longest")
    of = chaski.Rows(strata=strata, steps_per_epoch=take // 8 or None)
    options = {"batch_size": 8, "fields": FIELDS, "seed": 1, "rows": of}
    rows = [[i for i in range(N) if i % 3 == s] for s in range(3)]
    counts = sampling.apportion(8, [1, 1, 1])
    mixture = sampling.Mixture([sampling.Dataset(N, rows=r) for r in rows], counts, batch=8)
    plan = sampling.Plan(1, mixture, take=take)
    with chaski.load(table, **options) as whole:
        assert whole.samples == len(plan) and whole.samples % 8 == 0
        batches = [b for _ in range(3) for b in whole]
        for b in batches:
            draws = [plan.at(b.epoch, int(p)) for p in b["position"]]
            assert [int(s) for s in b["sample"]] == [d.sample for d in draws]
            assert [sum(d.dataset == i for d in draws) for i in range(3)] == counts == [3, 3, 2]
        for at in (1, len(whole), len(whole) + 2):
            with chaski.load(table, **options) as again:
                epoch, step = divmod(at, len(whole))
                state = {**whole.state_dict(), "epoch": epoch, "samples": step * 8}
                again.load_state_dict(state)
                rest = [b for _ in range(3 - epoch) for b in again]
            for a, b in zip(rest, batches[at:], strict=True):
                assert all(a[k].tobytes() == b[k].tobytes() for k in b)
    for rank in range(3):
        with chaski.load(table, rank=rank, world_size=3, **options) as part:
            for a, b in nonempty(zip(part, batches[: len(batches) // 3], strict=True)):
                ok = a["position"] >= 0
                assert a["position"][ok].tolist() == b["position"][rank::3].tolist()


def test_exact_shares_of_a_mixture(data):
    table, _, _ = data
    sources = {
        "even": chaski.Source(
            table, weight=3, rows=chaski.Rows(strata=chaski.Strata("site", per_batch=True))
        ),
        "rest": chaski.Source(table, rows=chaski.Rows(where=[("cloud", "<", 5)]), weight=1),
    }
    mixed = chaski.Mixture(sources, per_batch=True, until="longest")
    with chaski.load(mixed, batch_size=12, fields=FIELDS | {"site": "site"}, seed=4) as loader:
        for b in nonempty(b for _ in range(2) for b in loader):
            even = b["source"] == 0
            assert even.sum() == 9 and b["valid"].all()
            assert np.bincount(b["site"][even]).tolist() == [3, 3, 3]
    for wrong, match in (
        (chaski.Mixture(sources), "strata: per_batch needs per_batch.*of the mixture around it"),
        (chaski.Mixture(sources, per_batch="no"), r'per_batch is "no": it must be True or False'),
        (
            chaski.Mixture(sources, per_batch=True, until=30),
            "until is 30 samples: .* batches of 12",
        ),
    ):
        with pytest.raises(chaski.SpecError, match=match):
            chaski.load(wrong, batch_size=12, fields=FIELDS | {"site": "site"})
    exact = chaski.Mixture({"a": table, "b": table}, per_batch=True)
    with pytest.raises(
        chaski.SpecError, match="take is 10: it must be a whole number of batches of 4"
    ):
        chaski.load(exact, rows=chaski.Rows(take=10), batch_size=4, fields=FIELDS)
    with pytest.raises(chaski.SpecError, match="3 values of column .site. do not fit into the 2"):
        few = chaski.Strata("site", per_batch=True)
        chaski.load(table, rows=chaski.Rows(strata=few), batch_size=2, fields=FIELDS)


def test_take(data):
    """Epochs of 10 of N samples are one run, in which every sample comes before any repeats."""
    table, _, _ = data
    with chaski.load(
        table, batch_size=5, rows=chaski.Rows(take=10), fields=FIELDS, seed=3
    ) as loader:
        assert (loader.samples, len(loader)) == (10, 2)
        got = [int(s) for _ in range(N) for b in loader for s in b["sample"]]
        for e in range(10):
            assert got[e * N : (e + 1) * N] == [Order(3, e, N).at(p) for p in range(N)]
    for wrong in ({"take": 0}, {"take": 3, "steps_per_epoch": 1}, {"steps_per_epoch": -1}):
        with pytest.raises(chaski.SpecError, match=next(iter(wrong))):
            chaski.load(table, batch_size=5, fields=FIELDS, rows=chaski.Rows(**wrong))


def test_time(data):
    table, images, _ = data
    order = sorted(range(N), key=lambda i: ((i * 5) % 12, i))
    series = [[i for i in order if i % 3 == site] for site in range(3)]
    fields = {"image": FIELDS["image"], "cloud": "cloud", "date": "date"}
    for layout in (None, "(n t) b y x"):
        with chaski.load(
            table,
            rows=chaski.Rows(time=chaski.Time(key="site", order="date", length=3)),
            fields=fields,
            batch_size=2,
            shuffle=False,
            pixels=chaski.Pixels(layout=layout),
        ) as loader:
            assert loader.samples == 6
            for b in nonempty(loader):
                image = b["image"].reshape(2, 3, 2, H, W)
                for k, s in nonempty(enumerate(b["sample"])):
                    rows = series[s // 2][s % 2 * 3 :][:3]
                    assert b["steps"][k].tolist() == [1] * len(rows) + [0] * (3 - len(rows))
                    assert np.array_equal(image[k][: len(rows)], filled(images[rows]))
                    assert (image[k][len(rows) :] == -1).all()
                    assert b["cloud"][k][: len(rows)].tolist() == [i * 7 % 10 for i in rows]
                    dates = [f"2024-{(i * 5) % 12 + 1:02}-01" for i in rows] + [""] * 3
                    assert b["date"][k].tolist() == dates[:3]


@pytest.mark.parametrize("policy", ["skip", "replace", "fill"])
def test_bad_samples(data, tmp_path, policy):
    table, images, _ = data
    for i in range(N):
        write(tmp_path / f"{i:02}.tif", images[i])
    whole = (tmp_path / "05.tif").read_bytes()
    (tmp_path / "05.tif").write_bytes(whole[: len(whole) // 2])
    options = {"batch_size": 4, "pixels": chaski.Pixels(fill=-1.0), "seed": 8}
    plan = Plan(8, Dataset(N))
    with chaski.load(tmp_path, on_bad=policy, **options) as loader:
        for b in loader:
            for k, p in enumerate(b["position"]):
                d = plan.at(0, int(p))
                if d.row != 5:
                    assert np.array_equal(b["image"][k], filled(images[d.row]))
                    continue
                (bad,) = b.bad
                assert bad.row == k and b["valid"][k] == (policy == "replace")
                assert bad.sample == chaski.SampleRef(d.sample, 5, "05.tif") and bad.source == ""
                if policy == "replace":
                    d = next(s for s in (plan.substitute(d, a) for a in range(1, 17)) if s.row != 5)
                    assert np.array_equal(b["image"][k], filled(images[d.row]))
                    assert b["sample"][k] == d.sample
                    assert bad.instead == chaski.SampleRef(d.sample, d.row, f"{d.row:02}.tif")
                else:
                    assert bad.instead is None
                    assert (b["image"][k] == -1).all()
        assert loader.bad.count == 1
    with (
        chaski.load(tmp_path, on_bad=chaski.OnBad(policy, max_count=0), **options) as loader,
        pytest.raises(chaski.LimitError, match="1 bad samples in epoch 0"),
    ):
        list(loader)
    with chaski.load(tmp_path, on_bad=chaski.OnBad(policy, max_rate=0.1), **options) as loader:
        assert len(list(loader)) == 3


def test_bad_steps_are_filled(data, tmp_path):
    """With "fill", only the fields of a step that cannot be read are missing."""
    table, images, _ = data
    folder = table.parent
    for f in folder.iterdir():
        (tmp_path / f.name).write_bytes(f.read_bytes())
    order = sorted(range(N), key=lambda i: ((i * 5) % 12, i))
    series = [[i for i in order if i % 3 == site] for site in range(3)]
    # One sequence's first step lacks its header, another's second its pixels, a third a mask.
    first, second, masked = series[0][0], series[1][1], series[2][2]
    bad = {first: "image", second: "image", masked: "mask"}
    for i, name in bad.items():
        path = tmp_path / f"{name}{i:02}.tif"
        path.write_bytes(b"II*\0" if i == first else path.read_bytes()[: path.stat().st_size // 2])
    options = {
        "rows": chaski.Rows(time=chaski.Time(key="site", order="date", length=4)),
        "fields": {**FIELDS, "cloud": "cloud"},
        "batch_size": 3,
        "window": (32, 32),
        "seed": 4,
    }
    with chaski.load(table, **options) as loader:
        (want,) = list(loader)
    with chaski.load(tmp_path / "table.csv", **options, on_bad="fill") as loader:
        (got,) = list(loader)
        assert loader.bad.count == 3
    assert got["valid"].all() and np.array_equal(got["sample"], want["sample"])
    told = []
    for k, s in enumerate(got["sample"]):
        for t, i in enumerate(series[s]):
            assert got["steps"][k, t] == 1
            told += [(k, i)] * (i in bad)
            for name, missing in (("image", -1), ("mask", 0), ("cloud", None)):
                there = bad.get(i) != name
                assert got["there"][name][k, t] == there
                whole = want[name][k, t]
                assert np.array_equal(
                    got[name][k, t], whole if there else np.full_like(whole, missing)
                )
    assert [(b.row, b.sample.row) for b in got.bad] == told
    for b in got.bad:
        assert f"{bad[b.sample.row]}{b.sample.row:02}.tif" in b.message
    for rank in range(2):
        ranks = {"rank": rank, "world_size": 2, "on_bad": "fill"}
        with chaski.load(tmp_path / "table.csv", **options, **ranks) as loader:
            (b,) = list(loader)
        for j, k in enumerate(range(rank, 3, 2)):
            assert np.array_equal(b["image"][j], got["image"][k])
            assert np.array_equal(b["steps"][j], got["steps"][k])


@pytest.mark.parametrize("mixed", [False, True])
@pytest.mark.parametrize(
    ("time", "layout"),
    [(None, "n b y x"), (chaski.Time("site", "date", 3), "n t b y x")],
    ids=["rows", "sequences"],
)
def test_the_layout_that_is_not_given(data, time, layout, mixed):
    """A run is the same one, by its hash, whether its default layout is given or not."""
    table, rows = data[0], chaski.Rows(time=time)
    source = chaski.Mixture({"a": chaski.Source(table, rows=rows)}) if mixed else table
    options = {} if mixed else {"rows": rows}
    options |= {"fields": {"image": FIELDS["image"]}, "batch_size": 2, "window": 32}
    with (
        chaski.load(source, **options) as default,
        chaski.load(source, **options, pixels=chaski.Pixels(layout=layout)) as given,
    ):
        assert default.spec_hash == given.spec_hash


def test_more_bad_steps_than_rows(data, tmp_path):
    """All steps of one row except the last are bad, so the batch has more of them than rows."""
    table, images, _ = data
    for f in table.parent.iterdir():
        (tmp_path / f.name).write_bytes(f.read_bytes())
    series = sorted((i for i in range(N) if i % 3 == 0), key=lambda i: ((i * 5) % 12, i))
    for i in series[:-1]:
        (tmp_path / f"image{i:02}.tif").write_bytes(b"II*\0")
    options = {
        "rows": chaski.Rows(
            time=chaski.Time(key="site", order="date", length=4), where=[("site", "==", 0)]
        ),
        "fields": {"image": FIELDS["image"]},
        "batch_size": 1,
        "shuffle": False,
        "on_bad": "fill",
    }
    for how in HOW:
        with chaski.load(tmp_path / "table.csv", **options, **how) as loader:
            (b,) = list(loader)
        assert [(x.row, x.sample.row) for x in b.bad] == [(0, i) for i in series[:-1]]
        assert b["steps"].tolist() == [[0, 0, 0, 1]]
        assert np.array_equal(b["image"][0, 3], filled(images[series[-1]]))


def test_errors_of_any_length(tmp_path):
    """With many columns or a long name in a table, the error still names the problem."""
    write(tmp_path / "a.tif", np.zeros((1, 32, 32), np.uint16))
    names = [f"feature_{i:05}" for i in range(5000)]
    for n in (400, 5000):
        lines = [",".join(["image", *names[:n]]), ",".join(["a.tif"] + ["1"] * n)]
        (tmp_path / "wide.csv").write_text("\n".join(lines) + "\n")
        with pytest.raises(chaski.NotFoundError, match='no column "imag"; there are image, feat'):
            chaski.load(tmp_path / "wide.csv", fields={"x": chaski.Field("imag")}, batch_size=1)
    path = "é" * 70_000 + ".tif"
    (tmp_path / "long.csv").write_text(f"image\na.tif\n{path}\n")
    fields = {"x": chaski.Field("image")}
    for how in HOW:
        options = {"fields": fields, "batch_size": 2, "shuffle": False, **how}
        with chaski.load(tmp_path / "long.csv", on_bad="skip", **options) as loader:
            (b,) = list(loader)
        assert b["valid"].tolist() == [True, False]
        assert b.bad[0].message.endswith(": not found") and " … " in b.bad[0].message
        with (
            chaski.load(tmp_path / "long.csv", **options) as loader,
            pytest.raises(chaski.NotFoundError, match="sample 1 at position 1 of epoch 0: .*é"),
        ):
            list(loader)


def test_what_a_limit_counts(data, tmp_path):
    """The error counts a rank's own rows since its loader began."""
    _, images, _ = data
    for i in range(N):
        write(tmp_path / f"{i:02}.tif", images[i])
    for i in (5, 9, 14):
        (tmp_path / f"{i:02}.tif").write_bytes(b"II*\0")
    options = {"batch_size": 4, "shuffle": False}
    for rank, world, start, limit, want in (
        (0, 1, 0, 2, "3 bad samples in epoch 0, over the limit of 2"),
        (0, 1, 8, 2, None),
        (0, 1, 8, 0, "1 bad samples in epoch 0 since position 8, where this loader began, over"),
        (0, 2, 0, 0, "1 bad samples in epoch 0 among the rows of rank 0 of 2, over the limit of 0"),
        (1, 2, 0, 1, "2 bad samples in epoch 0 among the rows of rank 1 of 2, over the limit of 1"),
        (1, 2, 8, 1, None),
    ):
        ranks = {"rank": rank, "world_size": world}
        on_bad = chaski.OnBad("skip", max_count=limit)
        with chaski.load(tmp_path, **options, **ranks, on_bad=on_bad) as loader:
            loader.load_state_dict({**loader.state_dict(), "samples": start})
            got = None
            try:
                list(loader)
            except chaski.LimitError as e:
                got = str(e)
        assert (got is None) == (want is None) and (want or "") in (got or ""), (got, want)


def test_resume_of_everything(data):
    table, _, _ = data
    mix = chaski.Mixture(
        {"a": chaski.Source(table, rows=chaski.Rows(where=[("cloud", "<", 6)])), "b": table}
    )
    options = {
        "batch_size": 5,
        "fields": FIELDS,
        "window": chaski.TileWindow(32, per_visit=4, pool=3, visits=2),
        "pixels": chaski.Pixels(augment="d4"),
    }
    with chaski.load(mix, **options) as loader:
        states, want = [], []
        for b in loader:
            states.append(json.loads(json.dumps(loader.state_dict())))
            want.append(b["image"].copy())
    for at in (0, len(want) // 2, len(want) - 2):
        with chaski.load(mix, **options) as loader:
            loader.load_state_dict(states[at])
            for b, w in nonempty(zip(loader, want[at + 1 :], strict=True)):
                assert np.array_equal(b["image"], w)


def test_arguments():
    bad = chaski.Source("x", fields={"image": chaski.Field(dtype="uint8")})
    for source, match, args in (
        ("x", "not both", {"window": chaski.Grid(4, stride=2, overlap=2)}),
        (chaski.Mixture({"a": bad}), "dtype and validity are the spec's", {}),
        ("x", r"where\[0\] is", {"where": [("cloud", "<")]}),
    ):
        with pytest.raises(chaski.SpecError, match=match):
            refuse(source, batch_size=1, **args)
    nested = chaski.Mixture({"a": "x", "b": chaski.Mixture({"c": "y"}, until=100)}, temperature=2)
    spec = build_spec(nested, spec_options(batch_size=1))
    assert spec["source"] == "" and spec["temperature"] == 2
    assert spec["sources"][1]["sources"][0] == {"name": "c", "source": "y", "weight": 1.0}
    assert spec["sources"][1]["until"] == 100


@pytest.mark.parametrize(
    "value,want",
    [
        (np.bool_(False), False),
        (np.int16(3), 3),
        (np.float32(0.5), 0.5),
        (date(2024, 3, 1), "2024-03-01"),
        (datetime(2024, 3, 1, 12, tzinfo=timezone.utc), "2024-03-01T12:00:00+00:00"),
        (np.datetime64("2024-03-01"), "2024-03-01"),
        (np.datetime64("2024-03-01T00:00:00.000000001"), "2024-03-01T00:00:00.000000001"),
    ],
)
def test_values_of_conditions(value, want):
    (got,) = build_spec("x", spec_options(batch_size=1, where=[("c", "==", value)]))["where"]
    assert got == ["c", "==", want] and type(got[2]) is type(want)
    (listed,) = build_spec("x", spec_options(batch_size=1, where=[("c", "in", {value})]))["where"]
    assert listed == ["c", "in", [want]]


def test_conditions_may_be_an_array():
    rows = chaski.Rows(where=np.array([["site", "==", "a"]]))
    assert rows.to_json() == {"where": [["site", "==", "a"]]}


MIXED = {"a": "x", "b": chaski.Source("y", weight=2)}


@pytest.mark.parametrize(
    "args,match",
    [
        # Values that the spec's JSON would read as the default or as another number.
        ({"window": chaski.WholeChip(0)}, "size is 0"),
        ({"window": chaski.RandomWindow(8, 0)}, "per_asset is 0"),
        ({"window": chaski.RandomWindow(8, 2.5)}, "per_asset is 2.5"),
        ({"window": chaski.RandomWindow((8.5, 8))}, r"size is .8.5,8.: it must be the side"),
        ({"window": chaski.TileWindow(8, per_visit=0)}, "per_visit is 0"),
        ({"window": chaski.TileWindow(8, visits=0)}, "visits is 0"),
        ({"window": chaski.TileWindow(8, pool=0)}, "pool is 0"),
        ({"window": chaski.TileWindow(8, tile=0)}, "tile is 0"),
        (
            {"window": chaski.ResizedWindow(8, scale=(0, 0))},
            r"scale is \[0,0\]: both must be above 0",
        ),
        ({"window": chaski.ResizedWindow(8, scale=2)}, "scale is 2"),
        ({"window": chaski.ResizedWindow(8, ratio=(3 / 4, 4 / 3))}, "ratio is"),
        ({"window": chaski.ResizedWindow(8, ratio=math.nan)}, 'ratio is "nan"'),
        ({"window": chaski.Grid(8, overlap=-2)}, "overlap is -2"),
        ({"window": chaski.Grid}, "window is <class"),
        ({"window": chaski.WeightedWindow(8, None)}, "needs weights"),
        ({"time": chaski.Time("k", "t", 0)}, "length is 0"),
        ({"time": chaski.Time("k", "t", 3, stride=0)}, "stride is 0"),
        ({"strata": chaski.Strata("c", temperature=0)}, "temperature is 0"),
        ({"strata": chaski.Strata("c", until=0)}, "until is 0"),
        ({"strata": chaski.Strata("c", until=10.0)}, "strata.until is 10.0"),
        ({"where": [("c", "<", math.nan)]}, "nan, which is not a number"),
        ({"split": chaski.Split.by_hash({"a": 1, "b": 0}), "use": "a"}, 'share "b" is 0'),
        ({"split": chaski.Split.by_hash(["a", "b"])}, r"shares\[0\] is"),
        ({"split": chaski.Split.by_hash({"a": 1}, seed=-1)}, "seed is -1"),
        ({"split": chaski.Split.by_date("c", {"a": "2024"})}, "ranges.a is"),
        ({"split": chaski.Split.by_cell(0, {"a": 1})}, "size is 0"),
        ({"source": chaski.Mixture({})}, "sources by name"),
        ({"source": chaski.Mixture(["x"])}, "sources by name"),
        (
            {"source": chaski.Mixture({"a": chaski.Source("x", weight=0)})},
            "weight of source 'a' is 0",
        ),
        (
            {"source": chaski.Mixture({"a": chaski.Mixture({"b": "x"}, weight=0)})},
            "source 'a' is 0",
        ),
        ({"source": chaski.Mixture(MIXED, temperature=0)}, "temperature is 0"),
        (
            {"source": chaski.Mixture(MIXED, temperature=2)},
            '"b" has a weight, and the mixture a temp',
        ),
        ({"source": chaski.Mixture(MIXED, until=0)}, "until is 0"),
        ({"source": {"a": "x"}}, "a Mixture"),
        ({"source": chaski.Source("x")}, "part of a Mixture"),
        ({"source": [chaski.Source("x")]}, "must be a path or a list of paths"),
    ],
)
def test_wrong_sampling(args, match):
    args = {"source": "x", "batch_size": 1, "window": None, **args}
    with pytest.raises(chaski.SpecError, match=match):
        refuse(args.pop("source"), **args)


def test_a_path_that_lists_its_folder_is_one_path(tmp_path):
    class Folder:
        def __fspath__(self):
            return str(tmp_path)

        def __iter__(self):
            return iter(["a.tif", "b.tif"])

    folder = Folder()
    assert paths(folder) == [folder]


def test_lists_of_containers_are_sources():
    mixed = chaski.Mixture({"a": ["x.tacozip", "y.tacozip"], "b": "z"})
    a, b = build_spec(mixed, spec_options(batch_size=1))["sources"]
    assert a == {"name": "a", "source": "x.tacozip", "parts": ["y.tacozip"], "weight": 1.0}
    assert b == {"name": "b", "source": "z", "weight": 1.0}
    with pytest.raises(chaski.NotFoundError, match=r'source "a".*/x.tacozip'):
        chaski.load(mixed, batch_size=1)


@pytest.mark.parametrize("blend", ["linear", "mean"])
@pytest.mark.parametrize("pad", [False, True])
def test_paste(data, tmp_path, blend, pad):
    """A model that returns its input predicts the scene again, at its location."""
    _, images, _ = data
    scene, out = tmp_path / "scene.tif", tmp_path / "out.tif"
    place = rasterio.transform.from_origin(5e5, 4e6, 10, 10)
    rasters.write(scene, images[0], crs="EPSG:32618", transform=place, dtype="uint16")
    grid = chaski.Grid((40, 32), overlap=(16, 8), pad=pad)
    with chaski.load(
        scene, window=grid, batch_size=5, pixels=chaski.Pixels(pad=pad), seed=3
    ) as loader:
        parts = [(b["sample"].copy(), b["image"].copy()) for b in loader]
        chaski.paste(parts, scene, out, grid=grid, blend=blend)
        with rasterio.open(out) as f:
            assert f.transform == place and f.crs.to_epsg() == 32618
            assert np.allclose(f.read(), images[0], rtol=1e-6)
        scores = ((s, np.concatenate([i, i + 5 * (i < 100)], 1)[:, ::2]) for s, i in parts)
        chaski.paste(scores, scene, out, grid=grid, blend=blend, argmax=True)
        with rasterio.open(out) as f:
            assert f.dtypes == ("uint8",)
            assert np.array_equal(f.read(1), (images[0, 0] < 100).astype(np.uint8))
    with pytest.raises(chaski.SpecError, match="are missing"):
        chaski.paste(parts[1:], scene, out, grid=grid)
    with pytest.raises(chaski.SpecError, match="twice"):
        chaski.paste(parts + parts[:1], scene, out, grid=grid)
    for wrong, match in (
        ([i for _, i in parts], "must be an array, or pairs"),
        ([(s, 1j * i) for s, i in parts], "complex64: they must be real"),
        ([(s * 1.0, i) for s, i in parts], "must be the numbers of windows"),
    ):
        with pytest.raises(chaski.SpecError, match=match):
            chaski.paste(wrong, scene, out, grid=grid)
    for other in (None, chaski.RandomWindow(40)):
        with pytest.raises(chaski.SpecError, match="must be the Grid"):
            chaski.paste(parts, scene, out, grid=other)
    never = iter(parts)  # what is wrong is said before the first prediction is taken
    for name, value in (("blend", "max"), ("timeout", "5"), ("timeout", 0)):
        with pytest.raises(chaski.SpecError, match=f"{name} is {value!r}"):
            chaski.paste(never, scene, out, grid=grid, **{name: value})
    (tmp_path / "folder.tif").mkdir()
    for wrong in (tmp_path / "folder.tif", tmp_path / "none" / "out.tif", scene / "out.tif"):
        with pytest.raises(OSError, match=re.escape(str(wrong))):
            chaski.paste(never, scene, wrong, grid=grid)
    assert len(list(never)) == len(parts)


def test_paste_keeps_ground_control_points(tmp_path):
    """A scene without a transform lies where its points say, and its RPCs stay."""
    scene, out = tmp_path / "scene.tif", tmp_path / "out.tif"
    point = rasterio.control.GroundControlPoint
    corners = ((0, 0, -3.0, 40.0), (0, 48, -2.9, 40.0), (40, 0, -3.0, 39.9), (40, 48, -2.9, 39.89))
    rpc = rasterio.rpc.RPC(
        *(10.0, 5.0, 40.0, 0.1, [1.0] + [0.0] * 19, [0.5] * 20),
        *(20.0, 10.0, -3.0, 0.1, [1.0] + [0.0] * 19, [0.25] * 20),
        *(24.0, 12.0),
    )
    rasters.write(
        scene,
        np.zeros((1, 40, 48), np.uint8),
        gcps=[point(*c) for c in corners],
        crs="EPSG:4326",
        rpcs=rpc,
    )
    chaski.paste(np.ones((4, 1, 32, 32), np.float32), scene, out, grid=chaski.Grid(32))
    with rasterio.open(scene) as want, rasterio.open(out) as got:
        assert got.gcps[1] == want.gcps[1] and got.gcps[1].to_epsg() == 4326
        assert [(p.row, p.col, p.x, p.y) for p in got.gcps[0]] == list(corners)
        assert got.rpcs.to_gdal() == want.rpcs.to_gdal()


def test_paste_on_a_remote_scene(data, tmp_path):
    with web(data[0].parent) as (url, _):
        scene, grid = f"{url}/image00.tif?sig=a", chaski.Grid(TILE)
        with chaski.load(scene, window=grid, batch_size=5) as loader:
            parts = [(b["sample"].copy(), b["image"].copy()) for b in loader]
        chaski.paste(parts, scene, tmp_path / "out.tif", grid=grid)
    with rasterio.open(tmp_path / "out.tif") as f:
        x = data[1][0]
        want = np.where(x == NODATA, 0, x.astype(np.float32))
        want[:, (x == NODATA).all(0)] = np.nan
        assert np.allclose(f.read(), want, rtol=1e-6, equal_nan=True)


def test_paste_of_tensors(data, tmp_path):
    """Outputs of a torch model need no conversion, in any dtype."""
    torch = pytest.importorskip("torch")
    scene, want, out = (tmp_path / name for name in ("scene.tif", "want.tif", "out.tif"))
    rasters.write(scene, np.zeros((1, 40, 48), np.uint8))
    r = np.random.default_rng(2).integers(0, 255, (4, 2, 32, 32)).astype(np.float32)
    grid = chaski.Grid(32)
    chaski.paste(r, scene, want, grid=grid)
    x = torch.from_numpy(r)
    for values in (x.clone().requires_grad_(), x.bfloat16(), x.half(), x.double(), x.byte()):
        pairs = [(torch.arange(4), values)]
        for predictions in (values, pairs):
            chaski.paste(predictions, scene, out, grid=grid)
            with rasterio.open(out) as f, rasterio.open(want) as g:
                assert np.array_equal(f.read(), g.read())


def test_split_by_lonlat(binary, tmp_path):
    """Neighbouring chips in two UTM zones are in one part; unknown CRSs are an error."""
    chips = tmp_path / "chips"
    chips.mkdir()
    places = [(6.0 + 0.02 * (i - 6), 50.0 - 0.3 * (i % 3)) for i in range(12)]
    want = {}
    for i, (lon, lat) in enumerate(places):
        crs = 32631 if i % 2 else 32632  # both, on both sides of the seam
        (x,), (y,) = warp.transform("EPSG:4326", f"EPSG:{crs}", [lon], [lat])
        place = rasterio.transform.from_origin(x - 80, y + 80, 10, 10)
        rasters.write(
            chips / f"{i:02}.tif",
            np.full((1, 16, 16), i, np.uint16),
            crs=f"EPSG:{crs}",
            transform=place,
        )
        shares = sampling.apportion(1 << 32, [1.0, 1.0])
        want[i] = sampling.share_of_cell(2, shares, (lon, lat, lon, lat), 0.127)
    assert set(want.values()) == {0, 1}

    def index(name):
        out = tmp_path / name
        command = [binary, "index", "--format", "parquet", "-o", out, *sorted(chips.glob("*.tif"))]
        subprocess.run(command, check=True, capture_output=True)
        return out

    split = chaski.Split.by_lonlat(0.127, {"a": 1.0, "b": 1.0}, seed=2)
    for part, use in enumerate("ab"):
        with chaski.load(
            index("c.parquet"), batch_size=12, rows=chaski.Rows(split=split, use=use)
        ) as loader:
            (b,) = list(loader)
        got = sorted(int(v) for v in b["image"][b["valid"]][:, 0, 0, 0])
        assert got == [i for i in want if want[i] == part]
    rasters.write(
        chips / "99.tif",
        np.zeros((1, 16, 16), np.uint16),
        crs="EPSG:2154",
        transform=place,
    )
    with pytest.raises(
        chaski.UnsupportedError, match="row 12: .*EPSG:2154 cannot be converted to longitude"
    ):
        chaski.load(index("d.parquet"), batch_size=12, rows=chaski.Rows(split=split, use="a"))


def test_catalog(data, binary, tmp_path):
    """A catalog's sizes and bounds allow grids of assets of many sizes, and splits by cell."""
    r = np.random.default_rng(2)
    images, bounds = [], []
    for i in range(10):
        h, w = int(r.integers(30, 90)), int(r.integers(30, 90))
        images.append(r.integers(8, 4000, (1, h, w), dtype=np.uint16))
        x, y = 5e5 + 400 * (i % 5), 4e6 + 3000 * (i // 5)
        options = {"dtype": "uint16"}
        place = rasterio.transform.from_origin(x, y, 10, 10)
        rasters.write(
            tmp_path / f"{i}.tif", images[-1], crs="EPSG:32618", transform=place, **options
        )
        bounds.append((x, y - 10 * h, x + 10 * w, y))
    out = tmp_path / "catalog.parquet"
    command = [binary, "index", "--format", "parquet", "-o", out, *tmp_path.glob("*.tif")]
    subprocess.run(command, check=True, capture_output=True)
    grid = sampling.Grid(24, 24, 20, 20)
    counts = [grid.count(*x.shape[1:]) for x in images]
    plan = Plan(0, Dataset(10, sampling.Grid(24, 24, 20, 20, runs=Runs(counts))))
    for source in (out, tmp_path / "*.tif"):
        with chaski.load(source, batch_size=8, window=chaski.Grid(24, overlap=4)) as loader:
            assert loader.samples == sum(counts)
            for b in nonempty(loader):
                for k in nonempty(np.flatnonzero(b["valid"])):
                    d = plan.at(0, int(b["position"][k]))
                    box, _ = plan.window(d, *images[d.row].shape[1:])
                    assert np.array_equal(b["image"][k], crop(images[d.row], box).astype("f4"))
    parts = {"a": 1.0, "b": 1.0}
    split = chaski.Split.by_cell(1000, parts, seed=4)
    shares = sampling.apportion(1 << 32, [1.0, 1.0])
    for part, use in enumerate(parts):
        want = [i for i in range(10) if sampling.share_of_cell(4, shares, bounds[i], 1000) == part]
        with chaski.load(
            out,
            batch_size=1,
            rows=chaski.Rows(split=split, use=use),
            window=chaski.RandomWindow(8),
            shuffle=False,
        ) as loader:
            assert loader.samples == len(want) > 0


def test_a_damaged_image_inside_a_table_is_named(tmp_path):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    image = [{"bytes": b"\x89PNG\r\n\x1a\n" + bytes(90), "path": "a.png"}]
    pq.write_table(pa.table({"image": image}), tmp_path / "t.parquet")  # as `datasets` writes them
    with pytest.raises(chaski.CorruptError, match="t.parquet: sample 0/image png"):
        chaski.load(tmp_path / "t.parquet", fields={"x": "image.bytes"}, batch_size=1)


@pytest.mark.parametrize(
    "texts",
    [
        ["2024-01-05T23:00:00-10:00", "2024-01-06T10:00:00Z", "2024-01-06T23:30:00+09:00", None],
        ["2024-1-5", "2024-1-20", "2024-2-1", "2024-10-1"],
        ["05.01.2024", "20.01.2024", "01.02.2024", "01.10.2024"],
        [f"S2A_MSIL2A_2024{d}T103421_N0510_R008_T32TQM" for d in ("0105", "0120", "0201", "1001")],
    ],
    ids=["zones", "short", "days first", "products"],
)
def test_steps_stand_in_the_order_of_time(tmp_path, texts):
    texts = [t for t in texts if t]
    for i in range(len(texts)):
        np.save(tmp_path / f"{i}.npy", np.full((1, 8, 8), i, "uint8"))
    lines = [f"{i}.npy,a,{t}" for i, t in reversed(list(enumerate(texts)))]
    (tmp_path / "t.csv").write_text("\n".join(["image,site,date", *lines]) + "\n")
    how = {
        "fields": {"image": chaski.Field(column="image", kind="raster")},
        "rows": chaski.Rows(time=chaski.Time(key="site", order="date", length=len(texts))),
    }
    with chaski.load(tmp_path / "t.csv", batch_size=1, **how) as loader:
        steps = loader.peek()["image"].reshape(len(texts), -1)[:, 0].tolist()
    assert steps == list(range(len(texts)))
    with open(tmp_path / "t.csv", "a") as f:
        f.write("0.npy,a,1/5/2024\n")  # of two dates
    with pytest.raises(
        chaski.UnsupportedError, match=rf'column date, row {len(texts)}: "1/5/2024"'
    ):
        chaski.load(tmp_path / "t.csv", batch_size=1, **how)


def test_rasters_by_every_ending(data, tmp_path):
    """The endings of TIFFs count alike in a directory, a glob, a list, a column and a pattern."""
    for k, ending in enumerate((".tif", ".TIFF", ".geotiff")):
        write(tmp_path / f"{k}{ending}", data[1][k])
        (tmp_path / f"{k}.csv").write_text(f"image\n{k}{ending}\n")
        sources = [(tmp_path / f"{k}.csv", {"image": "image"}), ([tmp_path / f"{k}{ending}"], None)]
        sources += [(tmp_path / f"*{ending}", None), (tmp_path, {"image": "{id}" + ending})]
        for source, fields in sources:
            with chaski.load(source, batch_size=1, fields=fields) as loader:
                (b,) = loader
            assert np.array_equal(np.where(data[1][k] == NODATA, 0, data[1][k]), b["image"][0])
    with chaski.load(tmp_path, batch_size=4) as loader:
        assert loader.samples == 3


def test_split_by_dates_of_any_form(tmp_path):
    """Texts that are times are in the ranges of their times, in whatever form."""
    pd = pytest.importorskip("pandas")
    days = pd.date_range("2020-12-20", periods=12, freq="9D")
    for k in range(len(days)):
        np.save(tmp_path / f"{k}.npy", np.full((4, 4), k, "uint8"))
    parts = {"a": (None, "2021-01-16"), "b": ("2021-01-16", "2021-03-01"), "c": ("2021-03", None)}
    for form in ("%Y-%m-%d", "%Y_%m_%d", "%d.%m.%Y", "S2A_%Y%m%dT101010_T32", "%Y_%m", "%Y%m%d"):
        texts = list(days.strftime(form))
        starts = pd.to_datetime(days.strftime("%Y-%m-01")) if form == "%Y_%m" else days
        text = "".join(f"{k}.npy,{k},{t}\n" for k, t in enumerate(texts)) + "0.npy,0,\n"
        (tmp_path / "t.csv").write_text("image,k,d\n" + text)
        for use, (start, end) in parts.items():
            late = starts >= pd.Timestamp(start or 0)
            want = np.flatnonzero(late & (starts < pd.Timestamp(end or "2100")))
            rows = chaski.Rows(split=chaski.Split.by_date("d", parts), use=use)
            options = {"fields": {"image": "image", "k": "k"}, "shuffle": False, "rows": rows}
            with chaski.load(tmp_path / "t.csv", batch_size=12, **options) as loader:
                got = next(iter(loader))["k"]
            assert list(got) == list(want), (form, use)
    (tmp_path / "t.csv").write_text("image,d\n0.npy,20210105\n1.npy,20211305\n")
    with pytest.raises(chaski.errors.UnsupportedError, match="20211305.*is no time"):
        chaski.load(tmp_path / "t.csv", batch_size=1, rows=rows)
    (tmp_path / "t.csv").write_text("image,d\n0.npy,2021-01-05\n1.npy,soon\n")
    with pytest.raises(chaski.errors.UnsupportedError, match="soon.*is no time"):
        chaski.load(tmp_path / "t.csv", batch_size=1, rows=rows)


@pytest.mark.parametrize("form", ["%Y%m%d", "%Y%j", "%d%m%Y", "%m%d%Y"])
def test_order_of_dates_that_are_numbers(tmp_path, form):
    """Days are in order of time, or refused where the year stands last."""
    pd = pytest.importorskip("pandas")
    days = list(pd.date_range("2019-12-25", periods=6, freq="40D").strftime(form))
    for k, day in enumerate(days):
        np.save(tmp_path / f"site_{day}.npy", np.full((1, 4, 4), k, "uint8"))
    rows = chaski.Rows(time=chaski.Time(key="site", order="date", length=6))
    options = {"fields": {"image": "{site}_{date}.npy"}, "rows": rows, "batch_size": 1}
    if form.endswith("%Y"):
        with pytest.raises(
            chaski.errors.UnsupportedError, match=f"{sorted(days)[0]} and .* order of"
        ):
            chaski.load(tmp_path, **options)
        return
    with chaski.load(tmp_path, **options) as loader:
        (b,) = loader
    assert np.asarray(b["image"])[0, :, 0, 0, 0].tolist() == list(range(6))
