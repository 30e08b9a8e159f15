"""Samplers, mixtures, sequences, splits and transforms agree with testdata/order.json."""

from __future__ import annotations

import json
import math
from collections import Counter
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import nonempty
from reference import sampling
from reference.sampling import Dataset, Groups, Mixture, Plan, Runs, Source

import chaski
from chaski.order import Order, Ticket, window

pytestmark = pytest.mark.usefixtures("one_engine")

ROOT = Path(__file__).resolve().parents[2]
VECTORS = json.loads((ROOT / "testdata" / "order.json").read_text())


def vectors(name: str) -> list[dict]:
    assert VECTORS[name]
    return VECTORS[name]


def with_batches(name: str) -> list[dict]:
    """The vectors of order.json and of order_batches.json."""
    return vectors(name) + json.loads((ROOT / "testdata" / "order_batches.json").read_text())[name]


def test_grid():
    for v in nonempty(vectors("grids")):
        keys = "h", "w", "stride_y", "stride_x", "align_y", "align_x", "pad"
        g = sampling.Grid(**{k: v[k] for k in keys})
        size = v["height"], v["width"]
        assert g.shape(*size) == (v["down"], v["across"])
        assert [list(g.at(j, *size)[:2]) for j in range(g.count(*size))] == v["windows"]


def test_resized():
    for v in nonempty(vectors("resized")):
        keys = "h", "w", "lo", "hi", "ratio", "of_asset", "align_y", "align_x"
        r = sampling.Resized(**{k: v[k] for k in keys})
        at = v["seed"], v["epoch"], v["p"], v["height"], v["width"]
        assert list(r.at(*at)) == v["box"]


def test_weighted():
    for v in nonempty(vectors("weighted")):
        w = sampling.Weights(v["weights"], v["cell_h"], v["cell_w"], v["width"])
        keys = "seed", "epoch", "p", "height", "width", "h", "w", "align_y", "align_x"
        assert w.corner(*(v[k] for k in keys)) == (v["y"], v["x"], v["weighted"])


def test_ground():
    for v in nonempty(vectors("ground")):
        g = sampling.Ground(v["side"], v["cell"], v["runs"])
        assert g.place(v["seed"], v["epoch"], v["p"]) == (v["map"], v["y"], v["x"])


def test_ground_scenes():
    for v in nonempty(vectors("ground_scenes")):
        rings = [sampling.Scenes.ring(s["transform"], s["height"], s["width"]) for s in v["scenes"]]
        datasets = [s["dataset"] for s in v["scenes"]]
        keys = "side", "stride", "edge", "cover"
        s = sampling.Scenes(
            rings, datasets, resolution=Fraction(v["resolution"]), **{k: v[k] for k in keys}
        )
        assert s.cell == v["cell"]
        want = [(y, x + i) for _, y, x, n in v["runs"] for i in range(n)]
        assert s.cells() == want
        for seed, epoch, p, y, x, row, seen in nonempty(v["at"]):
            if v["stride"]:
                at = want[Order(seed, epoch, len(want)).at(p)]
                assert [c * v["stride"] for c in at] == [y, x]
            else:
                g = sampling.Ground(v["side"], v["cell"], v["runs"])
                assert g.place(seed, epoch, p) == (0, y, x)
            assert row in seen and seen == sorted(seen)


def test_scene_sequences():
    for v in nonempty(vectors("scene_sequences")):
        for y, x, steps, matched in nonempty(v["at"]):
            groups, others = sequence_of(v, y, x)
            assert (groups, others) == (steps, matched[0] if matched else [[] for _ in steps])


def sequence_of(v: dict, y: int, x: int) -> tuple[list, list]:
    """The steps of a window over scenes that lie straight, and what is taken of dataset 1."""
    side, r = v["side"], v["resolution"]
    order: dict[str | None, list[int]] = {}
    for rule in ("pick", "order"):

        def key(i: int, by: Any = v[rule]) -> Any:
            value = by and v["scenes"][i][by[0]]
            return (by is not None and value is None, (value or 0) * (-1 if by and by[1] else 1))

        order[rule] = sorted(range(len(v["scenes"])), key=key)

    def seen(inset: float, leads: bool) -> list[int]:
        out = []
        for i in order["pick"]:
            s = v["scenes"][i]
            left, _, _, top, _, _ = s["transform"]
            right, bottom = left + s["width"] * r, top - s["height"] * r
            across = (x + inset) * r <= right and (x + side - inset) * r >= left
            down = -(y + inset) * r >= bottom and -(y + side - inset) * r <= top
            if across and down and (s["dataset"] in v["leads"]) == leads:
                out.append(i)
        return out

    def grouped(scenes: list[int]) -> dict[Any, list[int]]:
        groups: dict[Any, list[int]] = {}
        for i in scenes:
            step = v["scenes"][i]["step"]
            groups.setdefault((i,) if step is None else step, []).append(i)
        return groups

    groups = list(grouped(seen(3 / 8, True) or seen(0, True)).values())[: v["length"]]
    if v["order"]:
        groups.sort(key=lambda g: order["order"].index(g[0]))
    beside = seen(3 / 8, False)
    taken = []
    for g in groups:
        step, t = (v["scenes"][g[0]][k] for k in ("step", "time"))
        if v["match"] == "nearest":
            days = v["match_days"] or 10**6
            off = {i: abs(v["scenes"][i]["time"] - (t or 0)) for i in beside
                   if v["scenes"][i]["time"] is not None}  # fmt: skip
            off = {i: d for i, d in off.items() if t is not None and d <= days * 86_400_000_000}
            best = min(off, key=off.__getitem__, default=None)
            step = best is not None and v["scenes"][best]["step"]
            if step is None:
                taken.append([best])
                continue
        taken.append(grouped(beside).get(step, []) if step is not None and v["match"] else [])
    return groups, taken


def test_visits():
    for v in nonempty(vectors("visits")):
        keys = "h", "w", "tile_h", "tile_w", "per_visit", "pool", "align_y", "align_x"
        s = sampling.Visits(**{k: v[k] for k in keys}, runs=Runs([n for *_, n in v["items"]]))
        plan = Plan(v["seed"], Dataset(len(v["items"]), s))
        assert len(plan) == len(v["at"])
        for p, want in nonempty(enumerate(v["at"])):
            d = plan.at(v["epoch"], p)
            height, width, _ = v["items"][d.item]
            tile = s.tile(d.seed, d.epoch, d.item, d.sub, height, width)
            box, _ = plan.window(d, height, width)
            assert [d.sample, d.item, d.sub, *tile, box.y, box.x] == want
            assert plan.position(0, v["epoch"], d.sample) == p


def source(v: dict) -> Source:
    if "visits" in v:
        runs = Runs([v["visits"]])
        return Dataset(1, sampling.Visits(1, 1, 1, 1, v["per_visit"], v["pool"], runs))
    if "n" in v:
        return Dataset(v["n"])
    sources = [source(s) for s in v["sources"]]
    more = {name: v.get(name, 0) for name in ("length", "batch", "block")}
    return Mixture(sources, v["counts"], v["until"], **more)


def test_mixture():
    for v in nonempty(with_batches("mixtures")):
        plan = Plan(v["seed"], source(v["source"]), take=v.get("take", 0))
        assert len(plan) == v["n"]
        for epoch, p, *want in nonempty(v["at"]):
            d = plan.at(epoch, p)
            assert [d.dataset, d.epoch, d.position, d.sample] == want


def test_groups():
    for v in with_batches("groups"):
        levels = tuple((drawn, n) for drawn, n in v["levels"])
        groups = Plan(v["seed"], source(v["source"]), take=v.get("take", 0)).groups()
        assert groups == Groups(v["dataset"], v["pool"], v["n"], levels)
        for epoch, first, want in nonempty(v["at"]):
            assert groups.of(Ticket(epoch, first, 1, 0, 1)) == want
    # Draw 2*80 + 50 = 210 is position 10 of epoch 4, in the second of eight pools.
    assert Groups(1, 7, 160, ((80, 50),)).turn(Ticket(2, 100, 10, 0, 1)) == 4 * 8 + 1
    assert Plan(0, Dataset(10)).groups() is None
    with pytest.raises(ValueError, match="pool=0"):
        Groups(0, 0, 10)
    with pytest.raises(ValueError, match=r"\(11, 3\)"):
        Groups(0, 5, 10, ((11, 3),))


def test_splits():
    for v in vectors("texts"):
        assert sampling.share_of_text(v["seed"], v["parts"], v["text"]) == v["share"]
    for v in vectors("cells"):
        share = sampling.share_of_cell(v["seed"], v["parts"], tuple(v["bounds"]), v["size"])
        assert share == v["share"]
    assert sampling.share_of_cell(0, [1 << 32], (0, 0, float("inf"), 1), 1) is None
    assert [sampling.share_of_time([(0, 5), (5, 9)], t) for t in (-1, 0, 4, 5, 9)] == [
        None, 0, 0, 1, None,
    ]  # fmt: skip


def test_transforms():
    for v in vectors("transforms"):
        for (y, row), x in product(enumerate(["abc", "def"]), range(3)):
            to_y, to_x = sampling.apply(v["element"], y, x, 2, 3)
            assert v["image"][to_y][to_x] == row[x]
    for v in vectors("drawn_transforms"):
        elements = [sampling.transform(v["elements"], v["seed"], v["epoch"], p) for p in range(20)]
        assert elements == v["at"]
    image = np.arange(9).reshape(3, 3)
    assert (transformed(5, image) == np.rot90(image)).all()
    assert (transformed(6, image) == np.rot90(image, -1)).all()
    for a, b in product(range(8), range(8)):
        both = transformed(b, transformed(a, image))
        assert (transformed(sampling.then(a, b), image) == both).all()
    assert [sampling.then(g, sampling.inverse(g)) for g in range(8)] == [0] * 8


def transformed(g: int, image: np.ndarray) -> np.ndarray:
    out = np.empty_like(image)
    for y, x in np.ndindex(*image.shape):
        out[sampling.apply(g, y, x, *image.shape)] = image[y, x]
    return out


def test_series():
    for v in nonempty(vectors("series")):
        keys = "keys", "times", "length", "stride", "cut", "rows"
        s = sampling.Series(**{k: v[k] for k in keys})
        assert [s.rows(i) for i in range(len(s))] == v["sequences"]
        plan = Plan(3, Dataset(len(v["keys"]), series=s))
        drawn = [plan.rows(plan.at(1, p)) for p in range(len(plan))]
        assert sorted(drawn) == sorted(v["sequences"])


def test_substitute():
    for v in nonempty(vectors("substitutes")):
        s = sampling.RandomWindow(64, 64)
        plan = Plan(v["seed"], Dataset(v["n"], s, transforms=sampling.D4))
        d = sampling.Draw(0, v["seed"], v["epoch"], v["p"], 0, 0, 0, 0, 0)
        got = plan.substitute(d, v["attempt"])
        box, _ = plan.window(got, 512, 300)
        assert (got.seed, got.sample, got.row) == (v["new_seed"], v["sample"], v["sample"])
        assert ([*box[:2]], got.transform) == (v["window"], v["element"])
        with pytest.raises(ValueError, match="attempt 17"):
            plan.substitute(d, 17)


def test_apportion():
    for v in vectors("apportion"):
        assert sampling.apportion(v["total"], v["weights"]) == v["parts"]
    for bad in ([], [0, 1], [float("nan")], [-1, 2], [1] * 11):
        with pytest.raises(ValueError):
            sampling.apportion(10, bad)
    sizes = [10, 1000, 100000]
    assert sampling.apportion(111, sampling.temperature(sizes, 2)) == [1, 10, 100]


def test_plan_of_one_dataset_is_the_order():
    for shuffle in (True, False):
        plan = Plan(9, Dataset(37, sampling.RandomWindow(16, 24, per_item=3)), shuffle)
        o = Order(9, 2, 111, shuffle)
        for p in range(len(plan)):
            d = plan.at(2, p)
            assert (d.sample, d.row, d.sub) == (o.at(p), o.at(p) // 3, o.at(p) % 3)
            assert plan.window(d, 100, 80)[0][:2] == window(9, 2, p, 100, 80, 16, 24)
        with pytest.raises(IndexError):
            plan.at(0, 111)


@pytest.mark.parametrize("number", [np.int64, np.uint64, np.int16])
def test_ints_of_numpy(number):
    """Numpy integers count as Python integers: no sum overflows their 64 bits or fewer."""
    pools = sampling.Visits(8, 8, 16, 16, 2, 3, Runs(np.full(40, 4)))
    counts = [200, sampling.WORD_LEN - 200]
    mixture = Mixture([Dataset(40, pools), Dataset(300)], counts, "given", 20_000)
    for shuffle in (True, False):
        plan = Plan(2**64 - 5, mixture, shuffle)
        for p in (0, 7, 4000, 19_999):
            at = number(3), number(p)
            assert plan.at(*at) == plan.at(3, p)
            assert plan.pool_of(*at) == plan.pool_of(3, p)
            d = plan.at(3, p)
            assert plan.position(d.dataset, number(d.epoch), number(d.sample)) == d.position
        order = Order(9, number(3), number(1000), shuffle)
        assert [order.at(number(p)) for p in (0, 999)] == [order.at(p) for p in (0, 999)]
        assert all(type(order.at(number(p))) is int for p in (0, 999))
        assert order.position(number(5)) == order.position(5)
    assert window(7, number(1), number(2), number(90), number(80), 32, 32) == window(
        7, 1, 2, 90, 80, 32, 32
    )
    with pytest.raises(TypeError):
        Plan(0, Dataset(10)).at(0, 1.0)


def test_strata_make_a_balanced_mixture():
    keys = ["sea"] * 90 + ["ice"] * 10
    strata = sampling.strata(keys)
    assert [(k, len(rows)) for k, rows in strata] == [("ice", 10), ("sea", 90)]
    counts = sampling.apportion(sampling.WORD_LEN, [1, 1])
    sources = [Dataset(100, rows=rows) for _, rows in strata]
    plan = Plan(1, Mixture(sources, counts, "given", 10_000))
    assert Counter(keys[plan.at(0, p).row] for p in range(10_000)) == {"sea": 5000, "ice": 5000}


@pytest.mark.parametrize(
    ("bad", "match"),
    [
        (Mixture([Dataset(3)], [9999]), "counts"),
        (Mixture([Dataset(3)], [4], batch=4), "0 positions"),
        (Mixture([Dataset(9)], [4], "given", 6, 4), "whole batches"),
        (Mixture([Mixture([Dataset(9)], [4], batch=4)], [10_000]), "batches of 4 in a mixture"),
        (Mixture([Dataset(3), Dataset(0)], [5000, 5000]), "empty"),
        (Mixture([Dataset(3)], [10_000], "given"), "0 positions"),
        (Mixture([Dataset(3)], [10_000], "never"), "never"),
        (Dataset(3, sampling.Grid(1, 1, 1, 1, runs=Runs([4]))), "1 items, for 3"),
    ],
)
def test_plan_refuses(bad, match):
    with pytest.raises(ValueError, match=match):
        Plan(0, bad)


def test_lonlat():
    """The vectors for Go equal the results computed here, and nearly PROJ's."""
    vectors = json.loads((ROOT / "testdata" / "lonlat.json").read_text())
    assert len(vectors) > 50
    for epsg, x, y, lon, lat, *bits in vectors:
        got = sampling.lonlat(epsg, x, y)
        assert got == tuple(map(float.fromhex, bits))
        assert abs(math.remainder(got[0] - lon, 360)) < 1e-8 and abs(got[1] - lat) < 1e-8
    for epsg in (0, -1, 3031, 32600, 32661, 32700, 32761, 25827, 26924, 2154):
        with pytest.raises(ValueError, match=str(epsg)):
            sampling.lonlat(epsg, 0, 0)
    for x, y in ((math.inf, 0), (0, math.nan), (1e300, 0), (5e5, 12_600_000)):
        assert sampling.lonlat(32633, x, y) is None and sampling.lonlat(4326, x, y) is None
    assert sampling.lonlat(4326, 190, 10) == (-170, 10) and sampling.lonlat(4326, 180, 0) == (
        -180,
        0,
    )


def test_windows_of_a_grid() -> None:
    for size, side, stride, pad in product(
        (1, 5, 64, 65, 100), (5, 16), (3, 16, 20), (False, True)
    ):
        ours = chaski.Grid(side, stride=stride, pad=pad).count(size, 2 * size)
        reference_grid = sampling.Grid(side, side, stride, stride, pad=pad)
        assert ours == reference_grid.count(size, 2 * size)


@pytest.mark.parametrize(
    "members, said",
    [
        ({"size": 0}, "size is 0"),
        ({"size": 8.5}, "size is 8.5"),
        ({"size": True}, "size is True"),
        ({"size": (1, 2, 3)}, r"size is \(1, 2, 3\)"),
        ({"size": 8, "overlap": -1}, "overlap is -1"),
        ({"size": 8, "overlap": (0, 8)}, r"overlap is \(0, 8\)"),
        ({"size": 8, "stride": 0}, "stride is 0"),
        ({"size": 8, "stride": 4, "overlap": 2}, "stride is 4 and overlap is 2"),
    ],
)
def test_windows_of_no_grid_are_not_counted(members, said):
    with pytest.raises(chaski.SpecError, match=said):
        chaski.Grid(**members).count(100, 90)
