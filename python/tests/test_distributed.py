"""Two ranks in a process group get every sample once an epoch together, or are refused."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import nonempty
from forked import Forks
from test_real import N, chips  # noqa: F401

from chaski.order import Order

TESTS = Path(__file__).parent
WORLD = 2
SECONDS = 500  # importing PyTorch twice takes a minute on a busy machine

pytestmark = pytest.mark.usefixtures("binary")


def ranks(
    forks: Callable[..., Forks], tmp_path: Path, folder: Path, library: str, how: str
) -> list[Any]:
    """Runs rank.py once for each rank, and returns the outputs."""
    imported = forks(*dict.fromkeys(("torch", library)))
    outs = [tmp_path / f"{r}.json" for r in range(WORLD)]
    logs = [tmp_path / f"{r}.log" for r in range(WORLD)]
    commands = [[TESTS / "rank.py", out, folder, library, how] for out in outs]
    running = imported.ranks(commands, logs, tmp_path)
    try:
        deadline = time.monotonic() + SECONDS
        for r, p in enumerate(running):
            code = p.wait(deadline - time.monotonic())
            assert code == 0, logs[r].read_text()
    finally:
        for p in running:
            p.kill()
    return [json.loads(out.read_text()) for out in outs]


@pytest.mark.parametrize(
    ("library", "how"),
    [
        ("torch", "itself"),
        ("torch", "loader"),
        ("accelerate", "itself"),
        ("lightning", "itself"),
        ("lightning", "loader"),
        ("lightning", "resume"),  # from a checkpoint in the middle of the second epoch
        ("lightning", "resume-end"),  # from one at the end of the first
    ],
)
def test_every_sample_comes_once(chips, forks, tmp_path, library, how):  # noqa: F811
    """Epochs come in order, and a framework that requests two iterators skips none."""
    answers = ranks(forks, tmp_path, chips[0], library, how)
    a, b = (x.get("epochs", x) for x in answers)
    assert len(a) == len(b) == 2, (a, b)
    for epoch, (of_a, of_b) in nonempty(enumerate(zip(a, b, strict=True))):
        assert sorted(sum(of_a + of_b, [])) == list(range(N))
        order = [Order(5, epoch, N).at(p) for p in range(N)]
        for rank, of_rank in enumerate((of_a, of_b)):
            assert of_rank == [order[p : p + 6][rank::WORLD] for p in range(0, N, 6)]


@pytest.mark.parametrize(
    ("library", "how", "match"),
    [
        ("torch", "early", "made as rank 0 of 1, and torch.distributed now says {rank} of 2"),
        ("lightning", "early", "made as rank 0 of 1, and torch.distributed now says {rank} of 2"),
        ("accelerate", "default", "rank {rank} of 2 already, and Accelerate would share"),
        ("accelerate", "shard", "rank {rank} of 2 already, and Accelerate would share"),
    ],
)
def test_no_sample_is_lost_without_a_word(chips, forks, tmp_path, library, how, match):  # noqa: F811
    for rank, answer in nonempty(enumerate(ranks(forks, tmp_path, chips[0], library, how))):
        assert "RuntimeError" in answer.get("error", ""), answer
        assert match.format(rank=rank) in answer["error"]
