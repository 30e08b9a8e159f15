"""Labels of a series: one for all its steps, or an error where its rows differ."""

from __future__ import annotations

import csv
from typing import Any

import numpy as np
import pytest

import chaski
from chaski import Field

pytestmark = pytest.mark.usefixtures("one_engine")
ROWS = [("p", 3, 7.5), ("q", 1, 2.0), ("p", 1, 7.5), ("p", 2, 7.5), ("r", 4, float("nan"))]


@pytest.fixture
def rows(tmp_path) -> list[dict[str, Any]]:
    for i in range(len(ROWS)):
        np.save(tmp_path / f"{i}.npy", np.full((2, 8, 9), i, "uint8"))
    for place in "pqr":
        np.save(tmp_path / f"{place}.npy", np.full((8, 9), ord(place), "uint8"))
    return [
        {"path": f"{i}.npy", "mask": f"{p}.npy", "place": p, "day": d, "y": y, "n": i}
        for i, (p, d, y) in enumerate(ROWS)
    ]


def load(tmp_path, rows, **fields: Any) -> Any:
    time = chaski.Time(key="place", order="day", length=2)
    options: dict[str, Any] = {"rows": chaski.Rows(time=time)}
    with open(tmp_path / "rows.csv", "w", newline="") as f:
        table = csv.DictWriter(f, list(rows[0]))
        table.writeheader()
        table.writerows(rows)
    return chaski.load(tmp_path / "rows.csv", fields=fields, batch_size=4, shuffle=False, **options)


@pytest.mark.parametrize("first", ["image", "mask"])
def test_one_label(tmp_path, rows, first):
    fields = {
        "image": Field(column="path", kind="raster", dtype="native"),
        "mask": Field(column="mask", dtype="int64", layout="n y x"),
        "y": Field(column="y", layout="n"),
        "place": Field(column="place", kind="text", layout="n"),
    }
    fields = {first: fields.pop(first), **fields}
    with load(tmp_path, rows, n="n", **fields) as loader:
        (b,) = list(loader)
    steps = [(2, 3), (0, None), (1, None), (4, None)]  # two sequences of p, one of q and r
    for row, k in enumerate(b["sample"]):
        place, _, y = ROWS[steps[k][0]]
        assert (b["mask"][row] == ord(place)).all() and b["mask"].shape == (4, 8, 9)
        np.testing.assert_array_equal(b["y"][row], y)
        assert b["place"][row] == place
        assert b["steps"][row].tolist() == [s is not None for s in steps[k]]
        for step, n in enumerate(steps[k]):
            if n is not None:
                assert (b["image"][row, step] == n).all() and b["n"][row, step] == n
    assert b["y"].shape == (4,) and b["image"].shape == (4, 2, 2, 8, 9)


@pytest.mark.parametrize("field", ["y", "mask"])
def test_labels_that_differ(tmp_path, rows, field):
    rows[3][field] = 1.0 if field == "y" else "q.npy"
    layout = "n" if field == "y" else "n y x"
    with pytest.raises(chaski.Error, match=rf"field {field} .*rows 2 and 3 of one sequence differ"):
        load(
            tmp_path,
            rows,
            image=Field(column="path", kind="raster"),
            **{field: Field(column=field, layout=layout)},
        )
