"""A trainer or its engine is killed again and again; the batches that follow are those of an
undisturbed run, bit for bit.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ALL = 1000  # lines, more than there are
SCENE = Path(__file__).resolve().parents[2] / "testdata" / "demo" / "coast.tif"

# A careful user's loop: it saves the state beside the checkpoint, and replaces it atomically.
TRAINER = """
import hashlib, json, os, sys, time
import chaski

scene, folder = sys.argv[1], sys.argv[2]
state = os.path.join(folder, "state.json")
log = open(os.path.join(folder, "log"), "a")
with chaski.load(scene, batch_size=6, window=chaski.RandomWindow((48, 32), 40), seed=7,
                 normalize=chaski.Normalize([1e-3], [-1.0])) as loader:
    if os.path.exists(state):
        loader.load_state_dict(json.load(open(state)))
    while loader.epoch < 3:
        for batch in loader:
            digest = hashlib.sha256(batch["image"].tobytes() + batch["valid"].tobytes()).hexdigest()
            print(batch.epoch, batch.step, digest, file=log, flush=True)
            with open(state + ".new", "w") as f:
                json.dump(loader.state_dict(), f)
            os.replace(state + ".new", state)
            while sum(1 for _ in open(log.name)) >= int(open(os.path.join(folder, "most")).read()):
                time.sleep(0.01)
            time.sleep(0.03)
open(os.path.join(folder, "end"), "w").close()
"""


def may_log(folder: Path, most: int) -> None:
    """Lets a trainer go on to a number of lines, so that none is over before it is killed."""
    (folder / "most.new").write_text(str(most))
    (folder / "most.new").replace(folder / "most")


def trainer(folder: Path, script: Path) -> subprocess.Popen[bytes]:
    args = [sys.executable, str(script), str(SCENE), str(folder)]
    return subprocess.Popen(args, stderr=subprocess.DEVNULL)


def engines(pid: int) -> list[int]:
    """Child processes of a trainer."""
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    except OSError:
        return []
    return [int(p) for p in children.split()]


def log(folder: Path) -> list[tuple[tuple[int, int], str]]:
    rows = [line.split() for line in (folder / "log").read_text().splitlines()]
    return [((int(e), int(s)), digest) for e, s, digest in rows if len(digest) == 64]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="finds engines through /proc")
@pytest.mark.timeout(1800)
def test_kill_and_resume(binary: str, tmp_path: Path) -> None:
    script = tmp_path / "trainer.py"
    script.write_text(TRAINER)
    calm, rough = tmp_path / "calm", tmp_path / "rough"
    calm.mkdir(), rough.mkdir()
    may_log(calm, ALL)
    assert trainer(calm, script).wait(600) == 0
    want = dict(log(calm))
    assert len(want) == 21, "three epochs of 40 windows by 6"

    rng = random.Random(5)
    for kills in range(4):
        # Each time some steps further, at a random moment of a step.
        steps = 4 * kills + 2
        may_log(rough, steps + 3)
        p = trainer(rough, script)
        while not (rough / "log").exists() or len(log(rough)) < steps:
            assert p.poll() is None, "the run is over before it was killed"
            time.sleep(0.01)
        time.sleep(rng.uniform(0, 0.1))
        if kills % 2 == 0:  # the trainer goes on with another engine
            for victim in engines(p.pid):
                os.kill(victim, signal.SIGKILL)
            had = len(log(rough))
            may_log(rough, had + 4)
            while len(log(rough)) < had + 4:  # more than were on their way
                assert p.poll() is None, "the trainer ended with its engine"
                time.sleep(0.01)
        os.kill(p.pid, signal.SIGKILL)
        assert p.wait(600) != 0
    may_log(rough, ALL)
    assert trainer(rough, script).wait(600) == 0
    assert (rough / "end").exists()
    got = log(rough)
    assert {k for k, _ in got} == set(want), "a step is missing"
    assert [(k, d) for k, d in got if want[k] != d] == []
