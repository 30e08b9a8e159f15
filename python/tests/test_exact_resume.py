"""A trainer of each framework is killed within epochs, and goes on with other numbers of ranks.

Every row of every step has the position, the sample and the pixels of an undisturbed run, also with
several windows of each sample, with weights of samples that change meanwhile, and with weights by
losses that come in any hook of the framework. CHASKI_SOAK_FORMS has the forms of runs; without it,
only the form with one window in the order of the epoch.
CHASKI_SOAK_KILLS sets how often each trainer is killed: once, if it is not set.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import itertools
import json
import operator
import os
import random
import signal
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from forked import Forks, Run

pytest.importorskip("torch")

import trainers  # noqa: E402
from trainers import BATCH, EPOCHS, SAVE_EVERY, STEPS, WINDOWS  # noqa: E402

import chaski  # noqa: E402

TESTS = Path(__file__).parent
WORLDS = 2, 1, 3  # ranks of the first run, of the second, and so on
SECONDS = 900  # for a step, or an end: on a busy machine, Ray starts workers for over 300
SEED = 3

# What each framework needs, which is imported once for all ranks. The names are of trainers.py.
MODULES = {
    "ddp": ["torch"],
    "fsdp2": ["torch", "torch.distributed.checkpoint", "torch.distributed.fsdp"],
    "torchdata": ["torch", "torchdata.stateful_dataloader"],
    "accelerate": ["torch", "accelerate"],
    "transformers": ["torch", "accelerate", "transformers"],
    "lightning": ["torch", "lightning"],
    "ray": ["torch", "ray"],
}

Rows = dict[int, tuple[int, str]]  # the sample and the digest of each position


FORMS = os.environ.get("CHASKI_SOAK_FORMS", "plain").split()


@pytest.fixture(scope="module", params=FORMS)
def form(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def undisturbed(form: str, binary: str, tmp_path_factory: pytest.TempPathFactory) -> list[Rows]:
    """The rows of each step of a loop without any framework."""
    steps: list[Rows] = []
    folder = tmp_path_factory.mktemp("weights")
    with chaski.load(trainers.SCENE, **trainers.options(form)) as loader:
        for _ in range(EPOCHS):
            for batch in loader:
                if form == "weights" and len(steps) in trainers.CHANGES:
                    trainers.reweigh(loader, len(steps), folder)
                if form == "scores":
                    trainers.score(loader, len(steps), batch, folder)
                digests = [hashlib.sha256(image.tobytes()).hexdigest() for image in batch["image"]]
                rows = zip(batch["position"], batch["sample"], digests, strict=True)
                steps.append({int(p): (int(i), digest) for p, i, digest in rows if p >= 0})
    assert len(steps) == STEPS
    assert len({str(rows) for rows in steps}) == STEPS, "an epoch is shuffled like another"
    often = [sample for rows in steps[13:] for sample, _ in rows.values()]
    weighted = form in ("weights", "scores")
    assert (len(set(often)) < 0.75 * WINDOWS) == weighted, "weights draw the samples"
    return steps


class Training:
    """The runs of one trainer in a folder, each from the checkpoint of the one before."""

    def __init__(self, name: str, form: str, fork: Forks, folder: Path, rng: random.Random) -> None:
        self.name, self.form, self.fork, self.folder, self.rng = name, form, fork, folder, rng
        self.worlds: list[int] = []  # of each run
        self.ranks: list[Run] = []
        self.logs: list[Path] = []
        self.old = 0  # lines of rank 0 in this run from before a kill
        folder.mkdir()

    def start(self, world: int) -> None:
        """Starts all ranks of a run."""
        run = len(self.worlds)
        self.worlds.append(world)
        self.old = 0
        processes = range(1 if self.name == "ray" else world)  # Ray starts workers itself
        commands = [[TESTS / "trainers.py", self.name] for _ in processes]
        self.logs = [self.folder / f"log-{run}-{r}" for r in processes]
        env = {"RUN": str(run), "WORLD_SIZE": str(world), "FORM": self.form}
        self.ranks = self.fork.ranks(commands, self.logs, self.folder, **env)

    def may_go_to(self, most: int) -> None:
        """Lets it go on to a number of steps, so that none is over before it is killed."""
        (self.folder / "most.new").write_text(str(most))
        (self.folder / "most.new").replace(self.folder / "most")

    def rows(self, run: int, rank: int) -> list[tuple[int, int, list[Any]]]:
        """What a rank wrote down: (process, step, rows), without a line that is not complete."""
        diary = self.folder / f"rows-{run}-{rank}"
        text = diary.read_text() if diary.exists() else ""
        return [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]

    def kill_at(self, step: int) -> bool:
        """Kills all ranks, in any order, some time after the first one has begun a step.

        Reports whether the run goes on nevertheless: Ray starts workers again.
        """
        self.may_go_to(min(step + 2, STEPS - 1))
        deadline = time.monotonic() + SECONDS
        while not any(s >= step for _, s, _ in self.rows(len(self.worlds) - 1, 0)[self.old :]):
            assert time.monotonic() < deadline, self.logs[0].read_text()
            time.sleep(0.01)
        time.sleep(self.rng.uniform(0, 0.1))
        if self.name == "ray":
            return self.kill_worker()
        first, *others = self.rng.sample(range(len(self.ranks)), len(self.ranks))
        self.ranks[first].kill()
        assert self.ranks[first].wait(0) == -signal.SIGKILL, self.logs[first].read_text()
        for r in others:  # they may have failed meanwhile, without the first one
            self.ranks[r].kill()
        return False

    def kill_worker(self) -> bool:
        """Kills a worker of Ray, every other time after the driver and with all other workers."""
        run = len(self.worlds) - 1
        workers = [rows[-1][0] for r in range(self.worlds[run]) if (rows := self.rows(run, r))]
        self.old = len(self.rows(run, 0))
        goes_on = self.rng.random() < 0.5
        if not goes_on:
            self.ranks[0].kill()
        for pid in workers[:1] if goes_on else workers:
            with contextlib.suppress(OSError):  # it has ended with its driver
                if b"RayTrainWorker" in Path(f"/proc/{pid}/cmdline").read_bytes():
                    os.kill(pid, signal.SIGKILL)
        return goes_on

    def end(self) -> None:
        """Waits until the run has done all steps."""
        self.may_go_to(STEPS)
        for r, running in enumerate(self.ranks):
            assert running.wait(SECONDS) == 0, self.logs[r].read_text()

    def check(self, want: list[Rows]) -> int:
        """Compares every row that any process gave, and where each process began.

        Returns the number of these rows.
        """
        compared = 0
        missing = [set(rows) for rows in want]
        reached = 0  # steps that a rank has begun
        for run, world in enumerate(self.worlds):
            before, began = reached, set()
            for rank in range(world):
                at = before
                processes = itertools.groupby(self.rows(run, rank), operator.itemgetter(0))
                for number, (_, lines) in enumerate(processes):
                    steps = []
                    for _, step, rows in lines:
                        got = {position: (sample, digest) for position, sample, digest in rows}
                        own = {p: row for p, row in want[step].items() if p % BATCH % world == rank}
                        assert got == own, (run, rank, step)
                        missing[step] -= got.keys()
                        compared += len(got)
                        steps.append(step)
                    assert steps == list(range(steps[0], steps[-1] + 1))
                    assert at - 3 * SAVE_EVERY < steps[0] <= at, "not from the last checkpoint"
                    if number == 0:
                        began.add(steps[0])
                    at = steps[-1] + 1
                reached = max(reached, at)
            assert len(began) <= 1, "ranks began at different steps"
        assert reached == STEPS
        assert not any(missing)
        return compared


@pytest.mark.parametrize("name", MODULES)
@pytest.mark.timeout(7200)
def test_every_row_after_kills(
    name: str,
    form: str,
    forks: Callable[..., Forks],
    tmp_path: Path,
    undisturbed: list[Rows],
    capsys: pytest.CaptureFixture[str],
) -> None:
    for module in MODULES[name]:
        if importlib.util.find_spec(module.split(".")[0]) is None:
            pytest.skip(f"needs {module}")
    fork = forks(*(module for module in MODULES[name] if module != "ray"))  # it imports gRPC
    kills = int(os.environ.get("CHASKI_SOAK_KILLS", "1"))
    rng = random.Random(SEED)
    per_epoch = STEPS // EPOCHS
    done = compared = 0
    while done < kills:
        training = Training(name, form, fork, tmp_path / str(done), rng)
        step = per_epoch if kills == 1 else 0  # within the second epoch, or any
        worlds = itertools.cycle(WORLDS)
        try:
            training.start(next(worlds))
            while done < kills and (step := step + rng.randint(1, per_epoch - 2)) < STEPS - 1:
                goes_on = training.kill_at(step)
                done += 1
                if not goes_on:
                    training.start(next(worlds))
            training.end()
        finally:
            for running in training.ranks:
                running.kill()
        compared += training.check(undisturbed)
    module = MODULES[name][-1].split(".")[0]
    with capsys.disabled():
        said = f"{done} kills, {compared} rows as undisturbed"
        print(f"\n{name}, {module} {version(module)}, {form}: {said}")
