"""Trainers write ledgers and are killed; `chaski ledger check` finds what was done to them.

The judge is the process that makes them train: it notes every batch that a trainer says it has,
and forgets those after the state to which the trainers go back.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import random
import shutil
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import chaski

CHIP = Path(__file__).resolve().parents[2] / "testdata" / "demo" / "coast.tif"
BATCH, EPOCHS, CHIPS, BAD = 6, 2, 20, 3
STEPS = -(-CHIPS // BATCH)
HISTORIES = int(os.environ.get("CHASKI_SOAK_LEDGER", "3"))
FAULTS = "none", "gap", "twin", "leave", "again"


@pytest.fixture(scope="module")
def server(binary: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    folder = tmp_path_factory.mktemp("chips")
    for i in range(CHIPS):
        shutil.copy(CHIP, folder / f"{i:02}.tif")
    (folder / f"{BAD:02}.tif").write_bytes(b"no TIFF")
    listen = f"unix-abstract:chaski-ledger-{os.getpid()}"
    line = [binary, "serve", "--listen", listen, "--root", str(folder), "--log-level", "error"]
    with subprocess.Popen(line, stdout=subprocess.PIPE) as p:
        assert p.stdout is not None and b"listen" in p.stdout.readline()
        yield listen, folder
        p.kill()


def options(ledger: Path) -> dict[str, Any]:
    return {
        "batch_size": BATCH,
        "window": chaski.RandomWindow(16),
        "on_bad": "skip",
        "seed": 3,
        "engine": chaski.Engine(ledger=ledger),
    }


def train(conn: Any, target: str, folder: Path, o: dict[str, Any], state: Any) -> None:
    """A trainer: says what it has, and takes the next step or goes to an epoch, as it is told."""
    with chaski.connect(target, folder, **o) as loader:
        if state is not None:
            loader.load_state_dict(state)
        while True:
            for batch in loader:
                rows = batch["position"][batch["position"] >= 0].tolist()
                bad = [b.position for b in batch.bad]
                conn.send((batch.epoch, batch.step, rows, bad, loader.state_dict()))
                if (epoch := conn.recv()) is not None:
                    if epoch == loader.epoch:  # else set_epoch keeps the place of a loaded state
                        loader.set_epoch(epoch + 1)
                    loader.set_epoch(epoch)
                    break


@dataclass
class History:
    """A run, and what its model was trained on."""

    server: tuple[str, Path]
    ledger: Path
    random: random.Random
    model: list[tuple[int, int]] = field(default_factory=list)  # epochs and positions
    bad: list[tuple[int, int]] = field(default_factory=list)
    saved: tuple[list[tuple[int, int]], list[tuple[int, int]]] = field(default=([], []))
    state: Any = None
    kills: int = 0

    def start(self, fault: str, last: bool) -> None:
        """Starts trainers, and kills them after some steps if this is not the last start."""
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(["chaski", "numpy"])
        world = self.random.randint(1, 3)
        ranks = list(range(world))
        if fault == "twin":  # a launcher that gives two processes one rank
            ranks = [0] * world if world > 1 else [0, 0]
            world = max(world, 2)
        self.model, self.bad = list(self.saved[0]), list(self.saved[1])
        processes, conns = [], []
        for rank in ranks:
            ours, theirs = context.Pipe()
            o = {**options(self.ledger), "rank": rank, "world_size": world}
            args = (theirs, *self.server, o, self.state)
            p = context.Process(target=train, args=args, daemon=True)
            p.start()
            theirs.close()
            processes.append(p)
            conns.append(ours)
        steps = 1000 if last else self.random.randint(1, 6)
        for n in range(steps):
            said = [c.recv() for c in conns]
            places = {(epoch, step) for epoch, step, *_ in said}
            assert len(places) == 1
            (epoch, step) = places.pop()
            for _, _, rows, bad, _ in said:
                self.model += [(epoch, p) for p in rows]
                self.bad += [(epoch, p) for p in bad]
            if epoch == EPOCHS:
                break
            go = None
            if n == 1 and fault == "leave" and epoch + 1 < EPOCHS:
                go = epoch + 1
            elif n == 1 and fault == "again" and step > 0:
                go, fault = epoch, "none"
            elif self.random.random() < 0.5:
                self.saved, self.state = (list(self.model), list(self.bad)), said[0][-1]
            if fault == "gap" and n == steps - 1:
                break  # killed while they wait, so that no batch is on its way
            for c in conns:
                c.send(go)
        victim = self.random.choice(processes)
        time.sleep(self.random.choice([0, 0.001, 0.01]))
        for p in [victim, *processes]:
            p.kill()
            p.join()
        self.kills += not last

    def check(self) -> tuple[int, dict[str, Any]]:
        line = [os.environ["CHASKI_BIN"], "ledger", "check", "--json", f"--epochs={EPOCHS}"]
        out = subprocess.run([*line, self.ledger], capture_output=True, text=True, check=False)
        report = json.loads(out.stdout)
        assert not report["damaged"] and len(report["runs"]) == 1, report
        return out.returncode, report["runs"][0]


def named(exceptions: list[dict[str, Any]], what: str) -> set[tuple[int, int]]:
    """Returns the epochs and positions that exceptions name."""
    out = set()
    for e in exceptions:
        if e["what"] != what:
            continue
        parts = [p.split("-") for p in e.get("ranks", "").split(", ") if p]
        ranks = {r for p in parts for r in range(int(p[0]), int(p[-1]) + 1)} or {0}
        world = e.get("world_size", 1)
        for step in range(e["first_step"], e["last_step"] + 1):
            rows = [r for r in range(BATCH) if r % world in ranks]
            out |= {(e["epoch"], step * BATCH + r) for r in rows if step * BATCH + r < CHIPS}
    return out


@pytest.mark.timeout(120 + 30 * HISTORIES)
@pytest.mark.parametrize("number", range(HISTORIES))
def test_killed_trainers(server: tuple[str, Path], tmp_path: Path, number: int) -> None:
    r = random.Random(number)
    h = History(server, tmp_path / "ledger", r)
    fault = FAULTS[number % len(FAULTS)]
    for _ in range(r.randint(1, 3)):
        h.start("gap" if fault == "gap" else "none", last=False)
    if fault in ("twin", "again", "leave"):  # from the beginning, where there are steps left
        h.state, h.saved = None, ([], [])
    if fault == "gap" and h.state is not None:  # a state of later than the trainers were killed
        later = max([p // BATCH for e, p in h.model if e == 0], default=0) + 2
        if any(e for e, _ in h.model) or later >= STEPS:
            later = STEPS - 1
        h.state = {**h.state, "epoch": 1, "samples": later * BATCH}
        place = 1, later * BATCH
        h.saved = [at for at in h.model if at < place], [at for at in h.bad if at < place]
    h.start(fault, last=True)

    code, run = h.check()
    counts = Counter(h.model)
    every = {(e, p) for e in range(EPOCHS) for p in range(CHIPS)}
    missing, twice = every - set(counts), {at for at, n in counts.items() if n > 1}
    assert named(run["exceptions"], "missing") == missing
    assert run["missing"] == len(missing)
    assert named(run["exceptions"], "twice") == twice
    assert run["twice"] == sum(n - 1 for n in counts.values())
    bad = [(e["epoch"], e["position"]) for e in run["exceptions"] if e["what"] == "skipped"]
    assert sorted(bad) == sorted(h.bad)
    complete = [e["complete"] for e in run["epochs"] if e["epoch"] < EPOCHS]
    assert (code == 0) == (not missing and not twice) == (complete == [True] * EPOCHS)
    assert sum(s["samples"] - s["superseded"] for s in run["starts"]) == sum(counts.values())
    if fault == "none":
        assert code == 0
    elif fault != "gap":
        assert missing if fault == "leave" else twice


def test_what_a_ledger_says(server: tuple[str, Path], tmp_path: Path) -> None:
    """A state that is loaded in the same process goes back; set_epoch gives samples once more."""
    target, folder = server
    with chaski.connect(target, folder, **options(tmp_path)) as loader:
        batches = iter(loader)
        next(batches)
        state = loader.state_dict()
        next(batches)
        loader.load_state_dict(state)
        assert [b.step for b in loader] == [1, 2, 3]
    (file,) = tmp_path.glob("*-0-of-1-*.ledger")
    records = [json.loads(line.split(b" ", 1)[1]) for line in file.read_bytes().splitlines()]
    assert records[0]["run"] == state["spec"] and records[0]["samples"] == CHIPS
    assert [(r["step"], r.get("restored", False)) for r in records[1:]] == [
        (0, False), (1, False), (1, True), (2, False), (3, False),
    ]  # fmt: skip
    out = subprocess.run(
        [os.environ["CHASKI_BIN"], "ledger", "check", tmp_path], capture_output=True, text=True
    )
    assert out.returncode == 0, out.stderr
    assert "{epoch: 0, complete: true, delivered: true, steps: 4, samples: 20}" in out.stdout


@pytest.mark.parametrize("how", ["weights", "take", "mixture", "drop"])
def test_what_is_counted(tmp_path: Path, how: str) -> None:
    """An epoch that has not each sample once is delivered, and not complete."""
    table: Any = {"x": list(range(20))}
    o: dict[str, Any] = {"fields": {"x": "x"}, "batch_size": BATCH}
    o["engine"] = chaski.Engine(ledger=tmp_path / "ledger")
    if how == "take":
        o["rows"] = chaski.Rows(take=18)
    elif how == "mixture":
        table = chaski.Mixture({"a": table, "b": {"x": [1, 2]}}, until="longest")
    elif how == "drop":
        o["last"] = "drop"
    with chaski.load(table, **o) as loader:
        if how == "weights":
            loader.reweight([1.0] + [0] * 19, 2, folder=tmp_path / "w")
            loader.reweight([0.0] + [1] * 19, 3, folder=tmp_path / "w")
        given = sum(len(b["sample"]) for b in loader)
        changes = loader.state_dict().get("weights", [])
    (file,) = (tmp_path / "ledger").iterdir()
    records = [json.loads(line.split(b" ", 1)[1]) for line in file.read_bytes().splitlines()]
    hashes = [r.get("weights") for r in records[1:]]
    if how == "weights":
        assert hashes[:2] == [None, None] and hashes[3] == changes[0]["hash"] != hashes[2]
    line = [os.environ["CHASKI_BIN"], "ledger", "check", "--json", "--epochs=1", file.parent]
    out = subprocess.run(line, capture_output=True, text=True)
    run = json.loads(out.stdout)["runs"][0]
    (epoch,) = run["epochs"]
    assert out.returncode == 0 and epoch["delivered"] and not epoch["complete"]
    assert epoch["samples"] == given and run["missing"] == run["twice"] == 0
    assert run["counted"] == ("positions" if how in ("take", "mixture") else "samples")
    assert run.get("dropped", 0) == 2 * (how == "drop")
    assert epoch.get("drawn_by_weight", 0) == 8 * (how == "weights")


def test_a_full_disk_ends_the_ledger_and_not_the_run(
    server: tuple[str, Path], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    target, folder = server
    with chaski.connect(target, folder, **options(tmp_path)) as loader:
        batches = iter(loader)
        next(batches)
        full = open("/dev/full", "wb", buffering=0)  # noqa: SIM115
        os.dup2(full.fileno(), loader._walk._ledger._file.fileno())  # type: ignore[union-attr]
        assert len(list(batches)) == 3
        loader.state_dict()
    assert caplog.text.count("the ledger ends here") == 1
    out = subprocess.run(
        [os.environ["CHASKI_BIN"], "ledger", "check", "--epochs=1", tmp_path], capture_output=True
    )
    assert out.returncode == 1
    assert b"chaski: " in out.stderr and b"14 samples are missing" in out.stderr


def test_a_wrong_folder_is_an_error_before_training(
    server: tuple[str, Path], tmp_path: Path
) -> None:
    target, folder = server
    (tmp_path / "file").touch()
    with pytest.raises(chaski.SpecError, match="it must be the path of a folder"):
        chaski.connect(target, folder, **options(tmp_path / "file"))
