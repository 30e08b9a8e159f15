"""A run resumes with another number of ranks: one process for each, and a state in a file."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import nonempty
from forked import Forks

import chaski

SCENE = Path(__file__).resolve().parents[2] / "testdata" / "demo" / "coast.tif"
WINDOWS, BATCH, EPOCHS = 44, 13, 2
# What a process has imported that ranks are forked from. Each of 18 imports the rest of chaski,
# in 0.11 s of a processor instead of 0.27.
IMPORTED = "numpy", "google.protobuf.descriptor", "asyncio", "importlib.metadata", "http.client"

# A rank takes some steps from the present state. It prints its samples and the new state.
RANK = """
import hashlib, json, os, sys
import chaski

scene, state, out, steps, options = sys.argv[1:]
steps, options = int(steps), json.loads(options)
options["window"] = chaski.RandomWindow(*options["window"])
rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
seen = []
one = chaski.Engine(workers=1)
with chaski.load(scene, rank=rank, world_size=world, engine=one, **options) as loader:
    if os.path.exists(state):
        loader.load_state_dict(json.load(open(state)))
    while steps and loader.epoch < 2:
        for batch in loader:
            for k in range(len(batch["valid"])):
                if batch["position"][k] >= 0:
                    seen.append([
                        batch.epoch, batch.step, int(batch["position"][k]), int(batch["sample"][k]),
                        hashlib.sha256(batch["image"][k].tobytes()).hexdigest(),
                    ])
            steps -= 1
            if not steps:
                break
    after = loader.state_dict()
json.dump({"seen": seen, "state": after}, open(out, "w"))
"""


def generation(
    forks: Forks, script: Path, state: Path, world: int, steps: int, options: str
) -> list[Any]:
    """Runs all ranks of a world, and returns their samples."""
    running, outs = [], [state.with_name(f"{r}-of-{world}.json") for r in range(world)]
    for r in range(world):
        env = {"RANK": str(r), "WORLD_SIZE": str(world)}
        args = [script, SCENE, state, outs[r], steps, options]
        running.append(forks.run(args, outs[r].with_suffix(".log"), state.parent, **env))
    try:
        assert [p.wait(500) for p in running] == [0] * world
    finally:
        for p in running:
            p.kill()
    return [json.loads(o.read_text()) for o in outs]


@pytest.mark.parametrize("sizes", [[(8, 3), (3, 100)], [(2, 5), (5, 100)]])
@pytest.mark.timeout(1200)
def test_world_size_changes(
    binary: str, forks: Callable[..., Forks], tmp_path: Path, sizes: list[tuple[int, int]]
) -> None:
    """A state from W = 8 resumes at W = 3, bit for bit, and no sample is lost or repeated."""
    window = [48, 32], WINDOWS
    options = {"batch_size": BATCH, "seed": 7}
    want: list[list[Any]] = []
    with chaski.load(SCENE, window=chaski.RandomWindow(*window), **options) as loader:
        for _ in range(EPOCHS):
            for b in loader:
                for k in range(len(b["valid"])):
                    if b["position"][k] >= 0:
                        digest = hashlib.sha256(b["image"][k].tobytes()).hexdigest()
                        at = (int(b["position"][k]), int(b["sample"][k]))
                        want.append([b.epoch, b.step, *at, digest])
        assert len(want) == EPOCHS * WINDOWS
    script, state = tmp_path / "rank.py", tmp_path / "state.json"
    script.write_text(RANK)
    got: list[list[Any]] = []
    for world, steps in sizes:
        given = json.dumps({**options, "window": window})
        answers = generation(forks(*IMPORTED), script, state, world, steps, given)
        states = [a["state"] for a in answers]
        assert states == states[:1] * world, "the state is that of every rank"
        for r, a in nonempty(enumerate(answers)):
            assert all(row[2] % BATCH % world == r for row in a["seen"])
        got += sorted(row for a in answers for row in a["seen"])
        state.write_text(json.dumps(states[0]))
    assert got == want, "every position once, in order, and the same bytes"
