"""A trainer of each framework is killed within epochs, and goes on with other numbers of ranks.

Every row of every step has the position, the sample and the pixels of an undisturbed run.
CHASKI_SOAK_KILLS sets how often each trainer is killed: once, if it is not set.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import random
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import nonempty
from forked import Forks, Run
from helpers import free_port

pytest.importorskip("torch")

import trainers  # noqa: E402
from trainers import BATCH, EPOCHS, SAVE_EVERY, STEPS  # noqa: E402

import chaski  # noqa: E402

TESTS = Path(__file__).parent
WORLDS = 2, 1, 3  # ranks of the first run, of the second, and so on
SECONDS = 300  # for a step, or an end, on a busy machine
SEED = 3

# What each framework needs, which is imported once for all ranks. The names are of trainers.py.
MODULES = {
    "ddp": ["torch"],
    "fsdp2": ["torch", "torch.distributed.checkpoint", "torch.distributed.fsdp"],
    "torchdata": ["torch", "torchdata.stateful_dataloader"],
    "accelerate": ["torch", "accelerate"],
    "transformers": ["torch", "accelerate", "transformers"],
    "lightning": ["torch", "lightning"],
}

Rows = dict[int, tuple[int, str]]  # the sample and the digest of each position


@pytest.fixture(scope="module")
def undisturbed(binary: str) -> list[Rows]:
    """The rows of each step of a loop without any framework."""
    steps: list[Rows] = []
    with chaski.load(trainers.SCENE, **trainers.OPTIONS) as loader:
        for _ in range(EPOCHS):
            for batch in loader:
                digests = [hashlib.sha256(image.tobytes()).hexdigest() for image in batch["image"]]
                rows = zip(batch["position"], batch["sample"], digests, strict=True)
                steps.append({int(p): (int(i), digest) for p, i, digest in rows if p >= 0})
    assert len(steps) == STEPS
    assert len({str(rows) for rows in steps}) == STEPS, "an epoch is shuffled like another"
    return steps


class Training:
    """The runs of one trainer in a folder, each from the checkpoint of the one before."""

    def __init__(self, name: str, fork: Forks, folder: Path, rng: random.Random) -> None:
        self.name, self.fork, self.folder, self.rng = name, fork, folder, rng
        self.worlds: list[int] = []  # of each run
        self.ranks: list[Run] = []
        folder.mkdir()

    def start(self, world: int) -> None:
        """Starts all ranks of a run."""
        env = {
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(free_port()),
            "GLOO_SOCKET_IFNAME": "lo" if sys.platform == "linux" else "lo0",
            "ACCELERATE_USE_CPU": "true",
            "CUDA_VISIBLE_DEVICES": "",
            "NODE_RANK": "0",
            "WORLD_SIZE": str(world),
            "RUN": str(len(self.worlds)),
        }
        self.worlds.append(world)
        self.ranks = []
        for r in range(world):
            own = {"RANK": str(r), "LOCAL_RANK": str(r)}
            command = [TESTS / "trainers.py", self.name]
            self.ranks.append(self.fork.run(command, self.log(r), self.folder, **env, **own))

    def log(self, rank: int) -> Path:
        return self.folder / f"log-{len(self.worlds) - 1}-{rank}"

    def may_go_to(self, most: int) -> None:
        """Lets it go on to a number of steps, so that none is over before it is killed."""
        (self.folder / "most.new").write_text(str(most))
        (self.folder / "most.new").replace(self.folder / "most")

    def rows(self, run: int, rank: int) -> list[tuple[int, list[Any]]]:
        """What a rank wrote down: (step, rows), without a line that is not complete."""
        diary = self.folder / f"rows-{run}-{rank}"
        text = diary.read_text() if diary.exists() else ""
        return [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]

    def kill_at(self, step: int) -> None:
        """Kills all ranks, in any order, some time after one of them has begun a step."""
        self.may_go_to(step + 2)
        run, deadline = len(self.worlds) - 1, time.monotonic() + SECONDS
        while not any(s >= step for s, _ in self.rows(run, 0)):
            assert time.monotonic() < deadline, self.log(0).read_text()
            time.sleep(0.01)
        time.sleep(self.rng.uniform(0, 0.1))
        first, *others = self.rng.sample(range(len(self.ranks)), len(self.ranks))
        self.ranks[first].kill()
        assert self.ranks[first].wait(0) == -signal.SIGKILL, self.log(first).read_text()
        for r in others:  # they may have failed meanwhile, without the first one
            self.ranks[r].kill()

    def end(self) -> None:
        """Waits until the run has done all steps."""
        self.may_go_to(STEPS)
        for r, running in enumerate(self.ranks):
            assert running.wait(SECONDS) == 0, self.log(r).read_text()

    def check(self, want: list[Rows]) -> None:
        """Compares every row that any run gave, and where each run began."""
        before = 0
        for run, world in enumerate(self.worlds):
            first = []
            for rank in range(world):
                seen = self.rows(run, rank)
                steps = [step for step, _ in seen]
                if not steps and run < len(self.worlds) - 1:
                    continue  # killed before its first step
                assert steps == list(range(steps[0], steps[0] + len(steps)))
                first.append(steps[0])
                for step, rows in seen:
                    got = {position: (sample, digest) for position, sample, digest in rows}
                    own = {p: row for p, row in want[step].items() if p % BATCH % world == rank}
                    assert got == own, (run, rank, step)
            assert set(first) == {first[0]}, "ranks began at different steps"
            assert before - 2 * SAVE_EVERY < first[0] <= before, "not from the last checkpoint"
            before = steps[-1] + 1
        assert before == STEPS


@pytest.mark.parametrize("name", MODULES)
@pytest.mark.timeout(7200)
def test_every_row_after_kills(
    name: str, forks: Callable[..., Forks], tmp_path: Path, undisturbed: list[Rows]
) -> None:
    fork = forks(*MODULES[name])
    kills = int(os.environ.get("CHASKI_SOAK_KILLS", "1"))
    rng = random.Random(SEED)
    per_epoch = STEPS // EPOCHS
    done = 0
    for number in nonempty(itertools.count()):
        training = Training(name, fork, tmp_path / str(number), rng)
        step = per_epoch if kills == 1 else 0
        try:
            for world in itertools.cycle(WORLDS):
                training.start(world)
                step += rng.randint(1, per_epoch - 2)
                if done == kills or step >= STEPS - 1:
                    break
                training.kill_at(step)
                done += 1
            training.end()
        finally:
            for running in training.ranks:
                running.kill()
        training.check(undisturbed)
        if done == kills:
            break
