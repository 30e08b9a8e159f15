"""Bytes and states of others are refused, or mean what another reader says."""

from __future__ import annotations

import random

import pytest
from mutations import TRIES

# Less than a second each, on one core.
COUNTS = {"payload": 1500, "reply": 5000, "state": 10_000, "packets": 1500}


@pytest.mark.parametrize("name", TRIES)
def test_mutations(name):
    accepted = 0
    for seed in range(COUNTS[name]):
        try:
            accepted += TRIES[name](random.Random(seed))
        except BaseException as e:
            raise AssertionError(f"{name}, seed {seed}: {e!r}") from e
    assert COUNTS[name] // 20 < accepted < COUNTS[name], "nearly all are refused, or none is"
