"""The order of samples is that of docs/order.md and testdata/order.json."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from conftest import nonempty
from reference.sampling import Grid

import chaski
from chaski import StateError
from chaski.order import Order, State, Ticket, drawn, hash_words, local_rows, steps, window

VECTORS = json.loads((Path(__file__).resolve().parents[2] / "testdata" / "order.json").read_text())


def test_hash():
    assert VECTORS["hash"]
    for v in nonempty(VECTORS["hash"]):
        assert f"{hash_words(int(v['seed']), *map(int, v['words']))}" == f"{int(v['h'])}"


def test_order():
    assert VECTORS["orders"]
    for v in nonempty(VECTORS["orders"]):
        o = Order(int(v["seed"]), int(v["epoch"]), int(v["n"]))
        for p, i in v["at"]:
            assert o.at(p) == i
            assert o.position(i) == p
        p = np.array([p for p, _ in v["at"]], np.int64)
        assert o.at(p).tolist() == [i for _, i in v["at"]]


def test_window():
    assert VECTORS["windows"]
    for v in nonempty(VECTORS["windows"]):
        align = v.get("align_y", 1), v.get("align_x", 1)
        corner = window(
            *(int(v[k]) for k in ("seed", "epoch", "p", "height", "width", "h", "w")), *align
        )
        assert corner == (v["y"], v["x"])


def test_ticket():
    assert VECTORS["tickets"]
    for v in nonempty(VECTORS["tickets"]):
        t = Ticket(v["epoch"], v["first"], v["count"], v["row_start"], v["row_stride"])
        assert t.rows() == len(v["positions"])
        assert t.positions(v["n"]).tolist() == v["positions"]


def test_drawn():
    plain = [v for v in VECTORS["row_weights"] if v["each"] == 1 and not v["once"]]
    for v in nonempty(plain):
        weights, positions = np.array(v["weights"], np.float32), np.arange(len(v["at"]))
        assert drawn(v["seed"], v["epoch"], positions, weights).tolist() == v["at"]


def test_substitutes_by_weight():
    for v in nonempty([v for v in VECTORS["substitutes_by_weight"] if v["each"] == 1]):
        n = len(v["weights"])
        epoch, p = divmod(v["epoch"] * (v["take"] or n) + v["p"], n)
        seed = hash_words(v["seed"], 13, epoch, p, v["attempt"])
        weights = np.array(v["weights"], np.float32)
        assert drawn(seed, epoch, np.array([p]), weights).tolist() == [v["sample"]]


def test_weights_that_change():
    """Positions before the first weights, and those behind, have the samples of the vectors."""
    plain = [
        v
        for v in VECTORS["changed_weights"]
        if v["each"] == 1 and not v["take"] and not any(c["once"] for c in v["changes"])
    ]
    for v in nonempty(plain):
        for epoch, p, sample in nonempty(v["at"]):
            held = [c for c in v["changes"] if (c["epoch"], c["samples"]) <= (epoch, p)]
            if held:
                weights = np.array(held[-1]["weights"], np.float32)
                assert drawn(v["seed"], epoch, np.array([p]), weights).tolist() == [sample]
            else:
                assert Order(v["seed"], epoch, v["rows"]).at(p) == sample


@pytest.mark.parametrize("n", [0, 1, 2, 3, 4, 5, 63, 64, 65, 1000])
def test_order_is_a_permutation(n):
    o = Order(7, 3, n)
    at = o.at(np.arange(n))
    assert sorted(at.tolist()) == list(range(n))
    assert [o.position(i) for i in at.tolist()] == list(range(n))
    assert [o.at(p) for p in range(n)] == at.tolist()
    assert Order(7, 3, n, shuffled=False).at(np.arange(n)).tolist() == list(range(n))


def test_order_of_huge_dataset():
    n = (1 << 62) - 57
    o = Order((1 << 64) - 1, (1 << 64) - 1, n)
    p = np.array([0, 1, n // 2, n - 1], np.int64)
    assert o.at(p).tolist() == [o.at(int(x)) for x in p]
    assert all(0 <= i < n for i in o.at(p).tolist())


def test_order_refuses_positions_outside():
    o = Order(0, 0, 10)
    for p in (-1, 10, np.array([3, 10]), np.array([-1])):
        with pytest.raises(IndexError):
            o.at(p)
    with pytest.raises(IndexError):
        o.position(10)


@pytest.mark.parametrize("world", [1, 2, 3, 7, 64])
def test_ranks_share_every_step(world):
    n, g = 50, 12
    seen: list[int] = []
    for s in range(steps(n, g)):
        ranks = [Ticket.of_step(0, s, g, r, world).positions(n) for r in range(world)]
        assert {len(p) for p in ranks} == {local_rows(g, world)}
        seen += [int(p) for r in ranks for p in r if p >= 0]
    assert sorted(seen) == list(range(n))


def test_state():
    s = State("ab", 5, 2, 24)
    assert State.from_dict(json.loads(json.dumps(s.to_dict()))) == s
    assert s.step(50, 12) == 2
    assert State("ab", 5, 2, 50).step(50, 12) == 5
    for bad, match in [
        (State("ab", 5, 2, 25), "not between two steps"),
        (State("ab", 5, 2, 60), "after 60 samples of an epoch that has 50"),
        (State("ab", 5, 2, 24, version=2), "version 2"),
    ]:
        with pytest.raises(StateError, match=match):
            bad.step(50, 12)
    good = s.to_dict()
    for change, match in [
        ({"seed": "5"}, "seed"),
        ({"samples": True}, "samples"),
        ({"epoch": 1 << 64}, "epoch"),
        ({"extra": 1}, "extra"),
        ({"run": [1]}, "'run'"),
        ({"run": {"a": None}}, "'run'"),
    ]:
        with pytest.raises(StateError, match=match):
            State.from_dict({**good, **change})
    with pytest.raises(StateError, match="'spec'"):
        State.from_dict({k: v for k, v in good.items() if k != "spec"})
    for no_dict in (None, [], "{}"):
        with pytest.raises(StateError, match="not what state_dict returns"):
            State.from_dict(no_dict)


@pytest.mark.parametrize("number", [np.int64, np.uint64, np.int16])
def test_ints_of_numpy(number):
    """Numpy integers count as Python integers: no sum overflows their 64 bits or fewer."""
    for shuffle in (True, False):
        order = Order(9, number(3), number(1000), shuffle)
        assert [order.at(number(p)) for p in (0, 999)] == [order.at(p) for p in (0, 999)]
        assert all(type(order.at(number(p))) is int for p in (0, 999))
        assert order.position(number(5)) == order.position(5)
    assert window(7, number(1), number(2), number(90), number(80), 32, 32) == window(
        7, 1, 2, 90, 80, 32, 32
    )


def test_windows_of_a_grid() -> None:
    for size, side, stride, pad in product(
        (1, 5, 64, 65, 100), (5, 16), (3, 16, 20), (False, True)
    ):
        ours = chaski.Grid(side, stride=stride, pad=pad).count(size, 2 * size)
        assert ours == Grid(side, side, stride, stride, pad=pad).count(size, 2 * size)


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
