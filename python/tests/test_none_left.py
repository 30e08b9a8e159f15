"""Errors about conditions that no row meets say what there is."""

from __future__ import annotations

import re

import numpy as np
import pytest

import chaski

pytestmark = pytest.mark.usefixtures("one_engine")


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    root = tmp_path_factory.mktemp("none")
    for k in range(24):
        (root / f"site{k % 3}").mkdir(exist_ok=True)
        np.save(root / f"site{k % 3}/{k}.npy", np.full((1, 4, 4), k, np.uint8))
    lines = [f"site{k % 3}/{k}.npy,{k % 3 / 2},id{k},site{k % 3}" for k in range(24)]
    (root / "t.csv").write_text("image,cloud,id,site\n" + "\n".join(lines) + "\n")
    return root


WRONG = [
    ([["site", "==", "train"]], 'the condition on "site", which has ["site0" "site1" "site2"]'),
    ([["site", "==", "site0"], ["site", "==", "site1"]], 'on "site", which has ["site0"]'),
    ([["id", "in", ["x"]]], 'on "id", which has ["id0" "id1" "id10" "id2"'),
    ([["cloud", ">", 1]], 'on "cloud", which has ["0" "0.5" "1"]'),
    ("cloud > 1", "none of its 24 rows is selected: no row meets cloud > 1"),
]


@pytest.mark.parametrize("where, message", WRONG)
def test_conditions(data, binary, where, message) -> None:
    rows = chaski.Rows(where=where)
    fields = {"image": chaski.Field(kind="raster")}
    with pytest.raises(chaski.errors.NotFoundError, match=re.escape(message)):
        chaski.load(data / "t.csv", fields=fields, rows=rows, batch_size=2)


def test_many_numbers(data, binary) -> None:
    """Of more than ten numbers, the least and the greatest."""
    rows = chaski.Rows(where=[["n", "<", 0]])
    with pytest.raises(chaski.errors.NotFoundError, match=re.escape("has numbers from 0 to 23")):
        chaski.load(data, fields={"image": "*/{n}.npy", "n": "n"}, rows=rows, batch_size=2)
