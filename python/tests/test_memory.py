"""How much of the real engine's memory batches may take."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest

import chaski

CHIPS = Path(__file__).resolve().parents[2] / "testdata" / "demo"

pytestmark = pytest.mark.usefixtures("binary")


def rows(n: int, world_size: int = 1, **engine: Any) -> chaski.Loader:
    """Batches of n rows with 1 MiB for each band."""
    return chaski.load(
        CHIPS,
        batch_size=n,
        last="pad",
        window=(1024, 1024),
        pixels=chaski.Pixels(pad=True, bands=[0], dtype="uint8", clip=True),
        world_size=world_size,
        engine=chaski.Engine(**engine),
    )


def test_a_batch_that_does_not_fit_is_an_error_of_load():
    with pytest.raises(chaski.LimitError, match="16 rows.*over the 6291456 bytes of batch memory"):
        rows(16, memory=8 << 20)
    with rows(16, memory=24 << 20, world_size=2) as loader:  # 8 rows a rank fit
        assert next(iter(loader))["image"].shape[0] == 8


def test_a_cut_of_what_is_prefetched_is_told(caplog):
    with caplog.at_level(logging.WARNING, "chaski"):
        rows(16, memory=65 << 20, prefetch=3).close()
        assert not [r for r in caplog.records if "batches" in r.message]
        rows(16, memory=40 << 20, prefetch=3).close()
    assert [r.message for r in caplog.records if "batches" in r.message] == [
        "the engine's memory holds 2 batches: at most 1 are prefetched, not 3; "
        "raise memory, or take smaller batches"
    ]


@pytest.mark.parametrize(("size", "rank", "told"), [(2, 0, 1), (2, 1, 0), (3, 0, 0)])
def test_ranks_without_a_row_are_told(caplog, size, rank, told):
    with caplog.at_level(logging.WARNING, "chaski"):
        chaski.load(CHIPS, batch_size=size, window=8, rank=rank, world_size=3).close()
    assert [r.message for r in caplog.records] == told * [
        "batch_size, of all ranks together, is 2: 1 of the 3 ranks never have a valid row"
    ]


def test_large_batches_have_room_by_default(caplog):
    with caplog.at_level(logging.WARNING, "chaski"), rows(96) as loader:  # four are 384 MiB
        assert loader.local_batch_size == 96
    assert not caplog.records
