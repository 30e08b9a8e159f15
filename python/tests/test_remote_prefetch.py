"""How many batches are asked for ahead where the user does not say: as many as the engine says."""

from __future__ import annotations

import threading

import numpy as np
import pytest
import rasterio
import rasters
from conftest import nonempty
from helpers import FakeEngine, alone, eventually, web

import chaski

CHIPS, BATCH = 200, 4


@pytest.mark.usefixtures("binary")
@pytest.mark.parametrize("way", ["plain", "engine"])
@pytest.mark.parametrize(("said", "ahead"), [(0, 3), (1, 3), (8, 8), (1 << 31, 32)])
def test_what_an_engine_says_counts_within_bounds(fake, monkeypatch, way, said, ahead):
    """Engines of other versions say nothing, and others may say anything."""
    if way == "plain":
        alone(monkeypatch)
    engine = FakeEngine(samples=4 * 60, prefetch=said)
    with chaski.connect(fake(engine), "chips", batch_size=4) as loader:
        most = 0
        for received, _ in nonempty(enumerate(loader, 1)):
            if received == 5:
                assert eventually(lambda: len(engine.tickets) >= 5 + ahead - 2)
            most = max(most, len(engine.tickets) - received)
    assert most <= ahead + 1


@pytest.mark.usefixtures("binary")
@pytest.mark.parametrize(("prefetch", "least", "most"), [(None, 60, CHIPS), (3, 12, 20)])
def test_small_chips_of_a_store_are_read_further_ahead(tmp_path, prefetch, least, most):
    """The store answers when so many requests wait for it, or after 20 s."""
    (tmp_path / "chips").mkdir()
    want = np.random.default_rng(1).integers(0, 255, (CHIPS, 1, 16, 16), np.uint8)
    for i, pixels in enumerate(want):
        shape = {"width": 16, "height": 16, "count": 1, "dtype": "uint8"}
        shape["transform"] = rasterio.transform.from_origin(5, 5, 10, 10)
        rasters.write(tmp_path / f"chips/{i:03}.tif", pixels, **shape)
    held, waiting, highest = threading.Condition(), [0], [0]
    begun = threading.Event()

    def allows(query, headers):
        if begun.is_set():
            with held:
                waiting[0] += 1
                highest[0] = max(highest[0], waiting[0])
                held.notify_all()
                held.wait_for(lambda: highest[0] >= least, 20)
                waiting[0] -= 1
        return True

    with web(tmp_path, allows) as (url, _):
        table = tmp_path / "chips.csv"
        table.write_text("path\n" + "".join(f"{url}/chips/{i:03}.tif\n" for i in range(CHIPS)))
        with chaski.load(
            table,
            batch_size=BATCH,
            shuffle=False,
            fields={"image": chaski.Field(column="path", dtype="native")},
            engine=chaski.Engine(prefetch=prefetch),
        ) as loader:
            begun.set()
            got = np.concatenate([b["image"] for b in nonempty(loader)])
    assert least <= highest[0] <= most
    assert (got == want).all()
