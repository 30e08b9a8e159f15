"""Running means of losses: against a slow version, over a restart, and with several ranks."""

from __future__ import annotations

import copy
import io
import json
import os
import pickle
import subprocess
import sys
import threading
import zlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from forked import Forks, Run

import chaski
from chaski import _scores, order

ROWS, BATCH, SEED = 200, 12, 3
Array = npt.NDArray[Any]


def load(**options: Any) -> chaski.Loader:
    table = {"x": np.arange(ROWS)}
    return chaski.load(table, **{"fields": {"x": "x"}, "batch_size": BATCH, "seed": SEED} | options)


def loss_of(batch: Any, step: int) -> Array:
    """A loss that depends on the sample and the step alone, as a model's would."""
    return np.asarray(np.sin(np.asarray(batch["sample"]) * 1.7 + step) + 1.5, np.float32)


def slowly(batches: list[tuple[Array, Array]], decay: float) -> dict[int, float]:
    """Returns the means after batches of samples and losses."""
    means: dict[int, float] = {}
    for samples, losses in batches:
        for i in set(samples.tolist()):
            new = [float(x) for s, x in zip(samples, losses, strict=True) if s == i]
            mean = sum(new) / len(new)
            means[i] = mean if i not in means else decay * means[i] + (1 - decay) * mean
            means[i] = float(np.float32(means[i]))
    return means


@pytest.mark.parametrize("decay", [0.0, 0.5, 0.9])
def test_means_are_those_of_a_slow_version(tmp_path: Path, decay: float) -> None:
    import torch  # here, because killed trainers import this file

    seen = []
    with load(rows=chaski.Rows(take=2 * ROWS)) as loader:
        scores = loader.scores(tmp_path, decay)
        weights = np.zeros(ROWS)
        weights[:20] = 1  # of a few samples, so that a batch has some twice
        loader.reweight(weights, folder=tmp_path)
        for step, batch in enumerate(loader):
            loss = loss_of(batch, step)
            scores.add(batch, torch.from_numpy(loss) if step % 2 else loss)
            seen.append((batch["sample"].copy(), loss))
        assert loader.scores(str(tmp_path), decay) is scores
        means, weights = scores.means, scores.weights()
    want = slowly(seen, decay)
    assert len(means) == ROWS and set(want) == set(range(20))
    assert np.flatnonzero(~np.isnan(means)).tolist() == sorted(want)
    np.testing.assert_allclose(means[:20], [want[i] for i in range(20)], rtol=1e-6)
    np.testing.assert_allclose(weights[20:], np.mean(list(want.values())), rtol=1e-6)
    assert (weights[:20] == means[:20]).all()
    with pytest.raises(ValueError, match="read-only"):
        means[0] = 1


@pytest.mark.parametrize("step", [None, 2])
def test_the_means_of_the_call_count(tmp_path: Path, step: int | None) -> None:
    """Negative means, and those that are all 0, are refused; later losses change no weights."""
    samples = {"sample": np.arange(0, ROWS, 2)}
    with load() as loader:
        scores = loader.scores(tmp_path, 0)
        for low, message in ((0.0, "200 samples have a mean of 0"), (-0.5, "a mean of -0.5")):
            scores.add(samples, np.full(ROWS // 2, low))
            with pytest.raises(chaski.SpecError, match=message):
                loader.reweight(scores, step)
            assert "weights" not in loader.state_dict()
        losses = np.arange(1, ROWS // 2 + 1, dtype=np.float32)
        scores.add(samples, losses)
        for _ in range(2):
            loader.reweight(scores, step)
            scores.add(samples, np.ones(ROWS // 2))
            loader.state_dict()
            scores.add(samples, losses)
        drawn = np.concatenate([b["sample"] for b in loader])[BATCH * (step or 0) :]
    want = np.full(ROWS, losses.mean())
    want[::2] = losses
    first = BATCH * (step or 0)
    assert (drawn == order.drawn(SEED, 0, np.arange(first, ROWS), want)).all()


def test_weights_of_a_moment_while_means_change(tmp_path: Path, monkeypatch: Any) -> None:
    """Two moments, whose weights are read in any order while losses come."""
    monkeypatch.setattr(_scores, "_PIECE", 16)
    rng = np.random.default_rng(0)

    def add() -> None:
        rows = rng.integers(0, ROWS, 5)
        scores.add({"sample": rows}, rng.random(5) * (rng.random() < 0.8))

    with load() as loader:
        scores = loader.scores(tmp_path)
        for round in range(6):
            for _ in range(round):
                add()
            taken, moments = [], []
            for _ in range(2):
                taken.append(scores.weights())
                moments.append(scores.snapshot())
                add()
            if round == 5:  # means of a state
                scores.load(*scores.moment()())
            if round == 4:
                scores.clear()
            one, two = (m.weights() for m in moments)
            for first in rng.permutation(ROWS):
                end = min(first + rng.integers(1, 40), ROWS)
                assert (one(first, end) == taken[0][first:end]).all()
                assert (two(first, end) == taken[1][first:end]).all()
                add()


def test_what_leaves_the_means_as_they_are(tmp_path: Path) -> None:
    with load() as loader:
        scores = loader.scores(tmp_path)
        assert (scores.weights() == 1).all()
        batch = {"sample": np.array([-1, 3, 4, 5, 6]), "valid": np.array([0, 1, 0, 1, 1])}
        scores.add(batch, np.array([1, 2, 3, np.nan, np.inf]))
        scores.add(batch, np.array([np.inf, np.nan, np.inf, 1e39, -1e39]))
        assert np.flatnonzero(~np.isnan(scores.means)).tolist() == [3]
        for loss in (np.ones(4), np.ones((5, 2)), 1.0):
            with pytest.raises(chaski.SpecError, match="one for each row"):
                scores.add(batch, loss)
        with pytest.raises(chaski.SpecError, match="not in"):
            scores.add({"sample": np.array([ROWS])}, [1.0])
        with pytest.raises(chaski.SpecError, match="folder is None"):
            loader.reweight(np.ones(ROWS))
    with load() as loader, pytest.raises(chaski.SpecError, match="decay is 1"):
        loader.scores(tmp_path, 1)
    with chaski.load(
        chaski.Mixture({"a": {"x": [1, 2]}, "b": {"x": [3]}}), fields={"x": "x"}, batch_size=1
    ) as loader:
        with pytest.raises(chaski.SpecError, match="Mixture"):
            loader.scores(tmp_path)


def train(loader: chaski.Loader, scores: Any, steps: int, done: int = 0) -> list[list[int]]:
    """Trains so many steps, with new weights every 7 of them. Returns the samples."""
    out: list[list[int]] = []
    while len(out) < steps:
        for batch in loader:
            scores.add(batch, loss_of(batch, done))
            out.append(batch["sample"].tolist())
            done += 1
            if done % 7 == 0:
                loader.reweight(scores)
            if len(out) == steps:
                break
    return out


def test_a_resumed_run_has_the_same_means(tmp_path: Path) -> None:
    with load() as loader:
        whole = train(loader, loader.scores(tmp_path / "a"), 40)
    with load() as loader:
        first = train(loader, loader.scores(tmp_path / "b"), 25)
        state = json.dumps(loader.state_dict())
    assert len(state) <= 1024 + 1024  # the run, and the weights and means
    for before in (False, True):
        with load() as loader:
            scores = loader.scores(tmp_path / "c") if before else None
            loader.load_state_dict(json.loads(state))
            assert json.dumps(loader.state_dict()) == state
            rest = train(loader, scores or loader.scores(tmp_path / "c"), 15, 25)
        assert first + rest == whole
    data = bytearray(Path(json.loads(state)["scores"]["path"]).read_bytes())
    data[-1] ^= 1
    Path(json.loads(state)["scores"]["path"]).write_bytes(data)
    with load() as loader:
        loader.load_state_dict(json.loads(state))
        with pytest.raises(chaski.StateError, match="other means"):
            loader.scores(tmp_path)
    Path(json.loads(state)["scores"]["path"]).unlink()
    with load() as loader:
        loader.load_state_dict(json.loads(state))
        with pytest.raises(chaski.NotFoundError, match="the means of the state"):
            loader.scores(tmp_path)
    with pytest.raises(chaski.StateError, match="scores"):
        order.State.from_dict(json.loads(state) | {"scores": {"path": 1}})


def test_a_loader_has_one_running_mean(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with load() as loader:
        scores = loader.scores("a", 0.9)
        assert loader.scores(tmp_path / "a", decay=0.9) is scores
        with pytest.raises(chaski.SpecError, match="folder is 'b'.* folder='a'"):
            loader.scores("b", 0.9)
        with pytest.raises(chaski.SpecError, match=r"decay is 0\.5.* decay=0\.9"):
            loader.scores("a")
        with pytest.raises(chaski.SpecError, match="must be a ProcessGroup"):
            loader.reweight(np.ones(ROWS), folder="a", group="data")


def test_wrong_arguments(tmp_path: Path) -> None:
    import torch

    with load() as loader:
        scores, batch = loader.scores(tmp_path), next(iter(loader))
        ones = np.ones(BATCH)
        for wrong in (ones, torch.ones(BATCH), [1.0] * BATCH, 0.5, {"image": ones}):
            with pytest.raises(chaski.SpecError, match=r"batch is .*scores\.add\(batch, loss\)"):
                scores.add(wrong, batch)  # type: ignore[arg-type]
        for samples in (ones, np.array(["a"] * BATCH), np.zeros((BATCH, 1), int)):
            with pytest.raises(chaski.SpecError, match=r'batch\["sample"\] is array'):
                scores.add({"sample": samples}, ones)
        for loss in ("x", {"loss": ones}, ["a"] * BATCH):
            with pytest.raises(chaski.SpecError, match="loss is .*numbers, one for each row"):
                scores.add(batch, loss)
        assert np.isnan(scores.means).all()
        for copied in (copy.copy, copy.deepcopy, pickle.dumps):
            for thing in (scores, iter(loader), loader):
                with pytest.raises(TypeError, match="cannot be pickled or copied"):
                    copied(thing)
        assert next(iter(loader))["x"].size  # no copy has ended it
        for call in (loader.scores, lambda folder: loader.reweight(ones, folder=folder)):
            with pytest.raises(chaski.SpecError, match="folder is 3: it must be a str"):
                call(3)
            (tmp_path / "file").write_bytes(b"")
            with pytest.raises(chaski.SpecError, match="folder is the file .*: it must be a fol"):
                call(tmp_path / "file")
        for name in ("no.npy", "no.parquet"):
            with pytest.raises(chaski.NotFoundError, match=f"weights is '{name}'"):
                loader.reweight(name, folder=tmp_path)
    with load() as loader, pytest.raises(chaski.SpecError, match="decay is '0.5'"):
        loader.scores(tmp_path, "0.5")  # type: ignore[arg-type]


def test_means_and_weights_of_other_samples_are_left_out(tmp_path: Path, caplog: Any) -> None:
    with load() as loader:
        scores = loader.scores(tmp_path)
        train(loader, scores, 8)
        state, means = loader.state_dict(), scores.means.tolist()
    assert state["weights"] and state["scores"]
    options: dict[str, Any]
    for options, same in (
        ({"batch_size": 10}, True),
        ({"rows": chaski.Rows(take=500)}, True),
        ({"source": {"x": np.arange(ROWS + 10)}}, False),
    ):
        caplog.clear()
        source = options.pop("source", {"x": np.arange(ROWS)})
        given = {"fields": {"x": "x"}, "batch_size": BATCH, "seed": SEED} | options
        with chaski.load(source, **given) as loader:
            before = loader.scores(tmp_path)
            loader.load_state_dict(state, strict=False)
            assert ("of other samples, and are left out" in caplog.text) is not same
            assert len(loader.state_dict().get("weights", ())) == same
            for _ in loader:
                pass
            if same:
                np.testing.assert_array_equal(before.means, means)
            else:
                assert len(before) == ROWS + 10 and np.isnan(before.means).all()


def test_states_of_another_thread_are_of_one_moment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The means that a state names are those that belong to its step, whenever it is taken."""
    write, entered, go = _scores.write_hashed, threading.Event(), threading.Event()

    def late(*args: Any) -> Any:
        entered.set()
        assert go.wait(600)
        return write(*args)

    def read(state: Any) -> Array:
        return np.fromfile(state["scores"]["path"], "<f4", offset=16)

    monkeypatch.setattr(_scores, "write_hashed", late)
    with load() as loader, ThreadPoolExecutor() as threads:
        scores = loader.scores(tmp_path, 0)
        loop = iter(loader)
        for _ in range(3):
            scores.add(next(loop), np.full(BATCH, 1.0))
        before = scores.means.copy()
        saving = threads.submit(loader.state_dict)
        assert entered.wait(600)
        for _ in range(3):
            scores.add(next(loop), np.full(BATCH, 2.0))
        go.set()
        state, now = saving.result(), loader.state_dict()
        assert (state["samples"], now["samples"]) == (3 * BATCH, 6 * BATCH)
        np.testing.assert_array_equal(read(state), before)
        np.testing.assert_array_equal(read(now), scores.means)
        for saved in (state, now):
            loader.load_state_dict(saved)  # which compares the hash


def test_a_rank_alone_is_told(tmp_path: Path, caplog: Any) -> None:
    """Nothing joins the ranks: the losses are of this rank alone, unless the user gathers them."""
    with load(rank=1, world_size=2) as loader:
        scores, batch = loader.scores(tmp_path), next(iter(loader))
        scores.add({"sample": np.arange(BATCH)}, np.ones(BATCH))
        assert not caplog.messages
        for _ in range(2):
            scores.add(batch, np.ones(BATCH // 2))
    (said,) = caplog.messages
    assert "rank 1 of 2: torch.distributed does not join the ranks" in said


RANK = """
import json, os, signal, sys
import numpy as np, torch.distributed as d
rank, world, folder, tests = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4]
sys.path.insert(0, tests)
from test_scores import BATCH, ROWS, load, train
d.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=world)
with load(rank=rank, world_size=world) as loader:
    scores = loader.scores(folder)
    samples = train(loader, scores, 40)
    means, errors = scores.means.tolist(), []
    np.save(f"{folder}/w{rank}.npy", np.ones(ROWS))
    batch = {"sample": np.arange(2)}
    for call in (
        lambda: loader.reweight(np.full(ROWS, 1.0 + (rank == 1)), folder=folder),
        lambda: loader.reweight(f"{folder}/{'no' if rank else 'w'}{rank}.npy", folder=folder),
        lambda: loader.reweight("no" if rank == 1 else "x", folder=folder),
        lambda: loader.reweight(np.ones(ROWS), -1 if rank == 1 else None, folder=folder),
        lambda: scores.add(batch, np.ones(2 + (rank == 1))),
        lambda: scores.add({"sample": np.arange(rank * ROWS) % ROWS}, np.ones(rank * ROWS)),
    ):
        try:
            call()
            errors.append("")
        except Exception as e:
            errors.append(f"{type(e).__name__}: {e}")
    scores.add(batch, np.ones(2))  # all are at the same call
    out = {"samples": samples, "means": means, "errors": errors, "last": scores.means[:2].tolist()}
    with open(f"{folder}/{rank}.new", "w") as f:
        json.dump(out, f)
    os.rename(f"{folder}/{rank}.new", f"{folder}/{rank}.json")
    signal.pause()  # Gloo may abort a process that leaves while another one still runs
"""


def wait_for(files: list[Path], processes: list[Run]) -> None:
    while not all(f.exists() for f in files):
        for p in processes:
            try:
                code = p.wait(0.1)
            except TimeoutError:
                continue
            raise AssertionError(f"a rank ended with {code}")


def test_ranks_have_the_means_of_all(tmp_path: Path, forks: Callable[..., Forks]) -> None:
    ranks = 3
    with load() as loader:
        scores = loader.scores(tmp_path / "alone")
        whole, means = train(loader, scores, 40), scores.means.tolist()
    (tmp_path / "rank.py").write_text(RANK)
    commands = [
        [tmp_path / "rank.py", r, ranks, tmp_path, Path(__file__).parent] for r in range(ranks)
    ]
    logs = [tmp_path / f"{r}.log" for r in range(ranks)]
    processes = forks("torch").ranks(commands, logs, tmp_path)
    files = [tmp_path / f"{r}.json" for r in range(ranks)]
    try:
        wait_for(files, processes)
    finally:
        for p in processes:
            p.kill()
    for rank, file in enumerate(files):
        said = json.loads(file.read_text())
        assert said["samples"] == [step[rank::ranks] or [-1] for step in whole]
        np.testing.assert_array_equal(said["means"], means)
        assert said["last"] == [(m + 1) / 2 for m in np.array(means[:2], np.float32)]
        assert "ranks [1] give other weights" in said["errors"][0]
        fails = list(range(1, ranks)), [1], [1], [1], list(range(1, ranks))
        own = (
            "NotFoundError: weights is",
            'no column "no"',
            "from_step is -1",
            "loss has the shape",
            "0 rows: one of",
        )
        for error, failed, mine in zip(said["errors"][1:], fails, own, strict=True):
            others = f"SpecError: the call fails on ranks {failed}, whose errors say why"
            assert (mine in error) if rank in failed else (error == others), (rank, said["errors"])


MESH = """
import json, os, signal, sys
import numpy as np, torch.distributed as d
process, world, folder, tests = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4]
sys.path.insert(0, tests)
from test_scores import BATCH, ROWS, load, train
d.init_process_group("gloo", init_method=f"file://{folder}/store", rank=process, world_size=world)
data = [d.new_group([0, 3]), d.new_group([1, 2])]  # one process of each rank of the loader
model = [d.new_group([0, 2]), d.new_group([1, 3])]  # the processes of a rank
rank = process % 2
out = {"rank": rank, "samples": [], "means": [], "errors": []}
for group in (None, data[process in (1, 2)], d.group.WORLD):
    with load(rank=rank, world_size=2) as loader:
        scores = loader.scores(f"{folder}/{group is None}", group=group)
        out["samples"].append(train(loader, scores, 20))
        out["means"].append(scores.means.tolist())
batch = {"sample": np.arange(2)}
for group, loss, weight in ((None, process > 2, 0), (model[rank], 0, 0), (None, 0, process > 2)):
    with load(rank=rank, world_size=2) as loader:
        scores = loader.scores(folder, group=group)
        for call in (
            lambda: scores.add(batch, np.full(2, 1.0 + loss)),
            lambda: loader.reweight(np.full(ROWS, 1.0 + weight), folder=folder, group=group),
        ):
            try:
                call()
                out["errors"].append("")
            except Exception as e:
                out["errors"].append(f"{type(e).__name__}: {e}")
with load(rank=rank, world_size=2) as loader:
    try:
        loader.scores(folder, group=data[process in (0, 3)]).add(batch, np.ones(2))
    except Exception as e:
        out["errors"].append(f"{type(e).__name__}: {e}")
with open(f"{folder}/{process}.new", "w") as f:
    json.dump(out, f)
os.rename(f"{folder}/{process}.new", f"{folder}/{process}.json")
signal.pause()
"""


def test_processes_of_a_mesh(tmp_path: Path, forks: Callable[..., Forks]) -> None:
    """Of two processes each that share a rank of the loader, as with tensor parallelism."""
    with load() as loader:
        scores = loader.scores(tmp_path / "alone")
        whole, means = train(loader, scores, 20), scores.means.tolist()
    (tmp_path / "mesh.py").write_text(MESH)
    commands = [[tmp_path / "mesh.py", r, 4, tmp_path, Path(__file__).parent] for r in range(4)]
    processes = forks("torch").ranks(commands, [tmp_path / f"{r}.log" for r in range(4)], tmp_path)
    files = [tmp_path / f"{r}.json" for r in range(4)]
    try:
        wait_for(files, processes)
    finally:
        for p in processes:
            p.kill()
    for file in files:
        said = json.loads(file.read_text())
        assert said["samples"] == 3 * [[step[said["rank"] :: 2] or [-1] for step in whole]]
        np.testing.assert_array_equal(said["means"], 3 * [means])
        assert [bool(e) for e in said["errors"]] == [1, 0, 1, 1, 0, 1, 1]
        assert "processes 1 and 3 are both rank 1 of the loader" in said["errors"][0]
        assert f"have the ranks [{said['rank']}], and the loader has 2" in said["errors"][2]
        assert "processes 1 and 3 are both rank 1 of the loader" in said["errors"][5]
        assert "must be a ProcessGroup" in said["errors"][6]


SOAK = "CHASKI_SOAK_KILLS" in os.environ
STEPS = 90 if SOAK else 45
KILLS = int(os.environ.get("CHASKI_SOAK_KILLS", "2"))


def chips(folder: Path) -> Path:
    """Writes 25 chips of random pixels."""
    folder.mkdir()
    r = np.random.default_rng(0)
    for i in range(25):
        np.save(folder / f"{i:02}.npy", r.integers(0, 255, (1, 12, 12), np.uint8))
    return folder


def trainer(folder: str, views: bool, out: Any) -> None:
    """Trains to the end from the last state in a folder, and writes a line for each step."""
    first = chaski.RandomWindow((4, 4), per_asset=8)
    window = [first, chaski.RandomWindow((6, 6))] if views else first
    path = Path(folder) / "state.json"
    with chaski.load(f"{folder}/chips", window=window, batch_size=BATCH, seed=SEED) as loader:
        scores, done = loader.scores(f"{folder}/weights"), 0
        if path.exists():
            saved = json.loads(path.read_text())
            loader.load_state_dict(saved["loader"])
            done = saved["done"]
        while done < STEPS:
            for batch in loader:
                crc = 0
                for name in sorted(batch):
                    crc = zlib.crc32(np.ascontiguousarray(batch[name]).tobytes(), crc)
                out.write(f"{done} {batch['sample'].tolist()} {crc}\n")
                out.flush()
                scores.add(batch, loss_of(batch, done))
                done += 1
                if done % 7 == 0:  # from the next step on, or some steps later
                    later = batch.step + 5 if done % 2 else None
                    loader.reweight(scores.weights() ** (done % 3), later, folder=scores.folder)
                if done % 3 == 0:
                    new = path.with_suffix(".new")
                    new.write_text(json.dumps({"loader": loader.state_dict(), "done": done}))
                    new.replace(path)
                if done == STEPS:
                    break


TRAINER = """
import sys
import zlib
sys.path.insert(0, sys.argv[1])
from test_scores import trainer
trainer(sys.argv[2], sys.argv[3] == "views", sys.stdout)
"""


@pytest.mark.parametrize("windows", ["views", "one"] if SOAK else ["views"])
def test_killed_trainers_have_the_same_rows(tmp_path: Path, windows: str) -> None:
    (tmp_path / "alone").mkdir()
    chips(tmp_path / "alone" / "chips")
    chips(tmp_path / "chips")
    whole = io.StringIO()
    trainer(str(tmp_path / "alone"), windows == "views", whole)
    want = whole.getvalue().splitlines()
    assert len(want) == STEPS and len(set(want)) == STEPS
    random = np.random.default_rng(5)
    command = [sys.executable, "-c", TRAINER, str(Path(__file__).parent), str(tmp_path), windows]
    met: set[int] = set()
    for kill in range(KILLS + 1):
        lives = int(random.integers(1, STEPS // 3)) if kill < KILLS else STEPS + 1
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            for n, line in enumerate(process.stdout, 1):
                step = int(line.split()[0])
                assert line.rstrip("\n") == want[step], f"after {kill} kills"
                met.add(step)
                if n == lives:
                    process.kill()  # it may have gone on: its lines are read up to the last one
        assert process.returncode in ((-9, 0) if n >= lives else (0,))
    assert met == set(range(STEPS))
