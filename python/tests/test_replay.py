"""A state and a spec give the batch of a step again; `chaski plan` takes the client's spec."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from test_real import chips  # noqa: F401

import chaski


def run(binary: str, *args: object) -> str:
    return subprocess.run(
        [binary, *map(str, args)], check=True, capture_output=True, text=True
    ).stdout


@pytest.mark.parametrize("world", [1, 3])
@pytest.mark.timeout(1200)
def test_replay_is_what_the_client_got(binary, chips, tmp_path: Path, world: int):  # noqa: F811
    rank = world - 1
    options = {
        "batch_size": 5,
        "seed": 6,
        "window": chaski.RandomWindow((24, 16), 2),
        "rank": rank,
        "world_size": world,
        "normalize": chaski.Normalize(0.5, -2.0),
        "pixels": chaski.Pixels(validity="there"),
    }
    spec, seen = tmp_path / "spec.json", 0
    with chaski.load(chips[0], **options) as loader, chaski.load(chips[0], **options) as again:
        spec.write_text(json.dumps(loader.spec))
        for _ in range(2):
            for batch in loader:
                if batch.step % 3 or batch.step + 1 == len(loader):
                    continue
                seen += 1
                state = loader.state_dict()
                state["samples"] -= options["batch_size"]
                again.load_state_dict(state)
                step = again.peek()
                assert (step.epoch, step.step) == (batch.epoch, batch.step)
                for name in ("image", "there", "valid", "position", "sample"):
                    assert step[name].dtype == batch[name].dtype
                    assert step[name].shape == batch[name].shape
                    assert step[name].tobytes() == batch[name].tobytes(), name
        assert seen >= 4
        plan = json.loads(run(binary, "plan", "--json", spec))
        assert (plan["spec"], plan["steps"]) == (loader.spec_hash, len(loader))
        assert (plan["exact"] or plan["loose"]) and plan["total"]["rows"] == loader.samples
