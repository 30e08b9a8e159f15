"""`chaski replay` writes the batch that the client got; `chaski plan` takes the client's spec."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import numpy as np
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
    spec, state, npz = tmp_path / "spec.json", tmp_path / "state.json", tmp_path / "step.npz"
    with chaski.load(chips[0], **options) as loader:
        spec.write_text(json.dumps(loader.spec))
        seen = 0
        for epoch in range(2):
            for batch in loader:
                state.write_text(json.dumps(loader.state_dict()))
                if batch.step % 3 and batch.step + 1 < len(loader):
                    continue
                seen += 1
                args = ("--state", state, "--back", 1, "--rank", rank, "--world", world)
                run(binary, "replay", *args, "-o", npz, spec)
                with np.load(npz) as again:
                    note = json.loads(again["step.json"])
                    assert (note["epoch"], note["step"]) == (epoch, batch.step)
                    assert note["spec"] == loader.spec_hash
                    for name in ("image", "there", "valid", "position", "sample"):
                        assert again[name].dtype == batch[name].dtype
                        assert again[name].shape == batch[name].shape
                        assert again[name].tobytes() == batch[name].tobytes(), name
        assert seen >= 4
        plan = json.loads(run(binary, "plan", "--json", spec))
        assert (plan["spec"], plan["steps"]) == (loader.spec_hash, len(loader))
        assert (plan["exact"] or plan["loose"]) and plan["total"]["rows"] == loader.samples
