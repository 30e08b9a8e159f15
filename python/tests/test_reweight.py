"""Weights that change within a run: which samples come, in a resumed run and on any ranks."""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import json
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from conftest import nonempty

import chaski
from chaski import _walk, _weights, order

ROWS, BATCH, SEED = 1000, 20, 7
Array = npt.NDArray[Any]


def load(**options: Any) -> chaski.Loader:
    table = {"x": np.arange(ROWS)}
    given = {"fields": {"x": "x"}, "batch_size": BATCH, "seed": SEED, **options}
    return chaski.load(table, **given)


def take(loader: chaski.Loader, steps: int) -> Array:
    """Returns the samples of the next steps of an epoch; each row is the sample that it names."""
    out = []
    for batch in itertools.islice(loader, steps):
        assert (batch["x"] == batch["sample"]).all()
        out.append(batch["sample"].copy())
    return np.array(out)


def slowly(weights: Array, epoch: int, positions: Iterable[int]) -> list[int]:
    """Returns the samples at positions, by docs/order.md in exact fractions."""
    bits = min(36, 62 - len(bin(len(weights))) + 2)
    exact = [Fraction(float(np.float32(w))) for w in weights]
    top = max(exact)
    scale = Fraction(1)
    while top * scale >= 1:
        scale /= 2
    while top * scale < Fraction(1, 2):
        scale *= 2
    whole = [max(int(w * scale * 2**bits), 1) if w else 0 for w in exact]
    sums = list(itertools.accumulate(whole))
    places = (order.hash_words(SEED, 19, epoch, p, 0) * sums[-1] >> 64 for p in positions)
    return [next(i for i, s in enumerate(sums) if s > place) for place in places]


WEIGHTS = np.random.default_rng(1).gamma(0.3, size=ROWS).astype(np.float32)
WEIGHTS[::7] = 0
WEIGHTS[3] = np.float32(1e-44)  # a subnormal number


def test_samples_are_those_of_the_definition(tmp_path: Path) -> None:
    with load() as loader:
        plain = [take(loader, len(loader)) for _ in range(2)]
    with load() as loader:
        loop = iter(loader)
        first = [next(loop)["sample"] for _ in range(3)]  # others are under way
        loader.reweight(WEIGHTS, folder=tmp_path)
        rest = np.array([b["sample"] for b in loop])
        second = take(loader, len(loader))
    assert (np.array(first) == plain[0][:3]).all()
    positions = np.arange(3 * BATCH, ROWS)
    want = slowly(WEIGHTS, 0, map(int, positions))
    assert rest.ravel().tolist() == want
    assert order.drawn(SEED, 0, positions, WEIGHTS).tolist() == want
    assert (second.ravel() == order.drawn(SEED, 1, np.arange(ROWS), WEIGHTS)).all()


def test_chi_square_of_the_draws(tmp_path: Path) -> None:
    weights = np.linspace(0, 3, ROWS)
    with load() as loader:
        loader.reweight(weights, folder=tmp_path)
        counts = np.zeros(ROWS)
        for _ in range(20):
            counts += np.bincount(take(loader, len(loader)).ravel(), minlength=ROWS)
    want = weights / weights.sum() * counts.sum()
    assert counts[0] == 0
    groups = [range(i, i + 50) for i in range(1, ROWS - 49, 50)]
    observed = np.array([counts[g].sum() for g in groups] + [counts[951:].sum()])
    expected = np.array([want[g].sum() for g in groups] + [want[951:].sum()])
    # The quantile 0.9999 of chi-square with 19 degrees of freedom.
    assert len(observed) == 20 and ((observed - expected) ** 2 / expected).sum() < 50.8


@pytest.mark.parametrize("ranks", [1, 3])
def test_resumed_runs_and_ranks_give_the_same_batches(tmp_path: Path, ranks: int) -> None:
    later = WEIGHTS[::-1].copy()
    with load() as loader:
        loader.reweight(WEIGHTS, 2, folder=tmp_path)
        loader.reweight(later, len(loader) + 5, folder=tmp_path)
        whole = [take(loader, len(loader)) for _ in range(2)]
    assert whole[0][2:].ravel().tolist() == slowly(WEIGHTS, 0, range(2 * BATCH, ROWS))
    assert (whole[1][5:].ravel() == order.drawn(SEED, 1, np.arange(100, ROWS), later)).all()
    with load() as loader:
        loop = iter(loader)
        loader.reweight(WEIGHTS, 2, folder=tmp_path)
        loader.reweight(later, len(loader) + 5, folder=tmp_path)
        for _ in range(11):
            next(loop)
        state = json.dumps(loader.state_dict())
    changes = json.loads(state)["weights"]
    assert len(changes) == 2 and all(len(json.dumps(c)) <= 1024 for c in changes)
    for rank in range(ranks):
        with load(rank=rank, world_size=ranks) as loader:
            loader.load_state_dict(json.loads(state))
            assert (take(loader, len(loader)) == whole[0][11:, rank::ranks]).all()
            assert (take(loader, len(loader)) == whole[1][:, rank::ranks]).all()
            assert len(loader.state_dict()["weights"]) == 1


KILLED = """
import json, os, signal, sys, numpy as np, chaski
sys.path.insert(0, sys.argv[1])
from test_reweight import WEIGHTS, load
with load() as loader:
    for i, batch in enumerate(loader):
        if i == 4:
            loader.reweight(WEIGHTS, folder=sys.argv[2])
        if i == 9:
            print(json.dumps(loader.state_dict()), flush=True)
            os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_killed_run_goes_on(tmp_path: Path) -> None:
    command = [sys.executable, "-c", KILLED, str(Path(__file__).parent), str(tmp_path)]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == -9, done.stderr
    with load() as loader:
        loader.load_state_dict(json.loads(done.stdout))
        rest = take(loader, len(loader))
    assert (rest.ravel() == order.drawn(SEED, 0, np.arange(10 * BATCH, ROWS), WEIGHTS)).all()


def test_each_sample_once_and_others_by_weight(tmp_path: Path) -> None:
    weights = np.zeros(ROWS)
    weights[[10, 20]] = 1, 3
    with load(rows=chaski.Rows(take=1400)) as loader:
        loader.reweight(weights, folder=tmp_path, each_once=True)
        epochs = [take(loader, len(loader)).ravel() for _ in range(3)]
    for samples in epochs:
        counts = Counter(samples.tolist())
        assert all(counts[i] == 1 for i in range(ROWS) if i not in (10, 20))
        assert min(counts[10], counts[20]) > 60 and counts[10] + counts[20] == 402
    assert (epochs[0] != epochs[1]).any()
    with load() as loader, pytest.raises(chaski.Error, match="no room"):
        loader.reweight(weights, folder=tmp_path, each_once=True)
    with load(rows=chaski.Rows(take=1400)) as loader:
        next(iter(loader))
        loader.set_epoch(0)
        with pytest.raises(chaski.SpecError, match="begins with an epoch"):
            loader.reweight(weights, 3, folder=tmp_path, each_once=True)


def test_a_weight_of_each_row_is_that_of_its_windows(tmp_path: Path) -> None:
    for i in range(4):
        np.save(tmp_path / f"{i}.npy", np.full((1, 8, 8), i, np.uint8))
    window = chaski.RandomWindow((4, 4), per_asset=3)
    with chaski.load(tmp_path, window=window, batch_size=6, seed=SEED) as loader:
        loader.reweight([0, 1, 0, 0], folder=tmp_path / "weights")
        samples = np.concatenate([b["sample"] for _ in range(20) for b in loader])
    assert set(samples.tolist()) == {3, 4, 5}


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1.0] * 5 + [-1] + [1] * 994, "row 5 is -1.0"),
        ([1.0] * 999 + [np.nan], "row 999 is nan"),
        ([1.0] * 998 + [np.inf, 1], "row 998 is inf"),
        ([1.0] * 998 + [1e300, 1], "row 998 is 1e"),
        ([0.0] * 1000, "all 1000 rows are 0"),
        ([1.0] * 999, "999 weights for 1000 samples"),
        ([[1.0]], "shape"),
        (["a"], "one number"),
    ],
)
def test_wrong_weights(tmp_path: Path, weights: list[Any], message: str) -> None:
    with load() as loader:
        with pytest.raises(chaski.Error, match=message):
            loader.reweight(weights, folder=tmp_path)
        assert "weights" not in loader.state_dict()
        assert not list(tmp_path.glob(".*"))
        with pytest.raises(chaski.Error, match=message):
            loader.reweight(weights, 3, folder=tmp_path)
        assert "weights" not in loader.state_dict()
        with pytest.raises(chaski.SpecError, match="from_step"):
            loader.reweight(WEIGHTS, -1, folder=tmp_path)


def test_a_file_that_changed_or_is_gone(tmp_path: Path) -> None:
    np.save(tmp_path / "w.npy", WEIGHTS)
    with load() as loader:
        loader.reweight(str(tmp_path / "w.npy"), folder=tmp_path)
        state = loader.state_dict()
    path = Path(state["weights"][0]["path"])
    data = bytearray(path.read_bytes())
    data[200] ^= 1
    path.write_bytes(data)
    with load(engine=chaski.Engine(share=False, reuse=False)) as loader:
        loader.load_state_dict(state)
        with pytest.raises(chaski.Error, match="other weights than the run was given"):
            next(iter(loader))
    path.unlink()
    with load(engine=chaski.Engine(share=False, reuse=False)) as loader:
        loader.load_state_dict(state)
        with pytest.raises(chaski.Error, match=path.name):
            next(iter(loader))


def test_weights_of_a_later_step_are_written_in_a_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write, go = _walk.written, threading.Event()

    def late(*args: Any) -> Any:
        assert go.wait(600)
        return write(*args)

    monkeypatch.setattr(_walk, "written", late)
    weights = WEIGHTS.copy()
    with load() as loader:
        plain = take(loader, len(loader))
        loop = iter(loader)
        loader.reweight(weights, 40, folder=tmp_path)
        weights[:] = 1  # the call has copied them
        first = [next(loop)["sample"] for _ in range(20)]
        assert not list(tmp_path.iterdir())
        go.set()
        (change,) = loader.state_dict()["weights"]
        assert (change["epoch"], change["samples"]) == (1, 40 * BATCH)
        data = Path(change["path"]).read_bytes()
        piece = hashlib.sha256(data[16:]).digest()  # a file of few weights has one
        assert hashlib.sha256(data[:16] + piece).hexdigest() == change["hash"]
        rest = [b["sample"] for b in loop]
    assert (np.array(first) != plain[:20]).any()
    assert (np.array(rest[:20]).ravel() == order.Order(SEED, 1, ROWS).at(np.arange(400, 800))).all()
    assert (
        np.array(rest[20:]).ravel() == order.drawn(SEED, 1, np.arange(800, ROWS), WEIGHTS)
    ).all()


def test_copies_of_weights_share_their_memory_one_after_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write, go = _walk.written, threading.Event()
    arrays = []

    def late(n: int, weights: Callable[[int, int], Array], folder: Any) -> Any:
        arrays.append(weights(0, n))
        assert go.wait(600)
        return write(n, weights, folder)

    monkeypatch.setattr(_walk, "written", late)
    later = WEIGHTS[::-1].copy()
    with load() as loader:
        weights = WEIGHTS.copy()
        loader.reweight(weights, 10, folder=tmp_path)
        weights[:] = later  # while the first are not written
        loader.reweight(weights, 20, folder=tmp_path)
        weights[:] = 0
        go.set()
        loader.state_dict()
        weights[:] = WEIGHTS * 2
        loader.reweight(weights, 30, folder=tmp_path)
        weights[:] = 0
        loader.state_dict()
        mine = later.copy()
        mine.flags.writeable = False  # not copied, and not memory for others, whatever it becomes
        loader.reweight(mine, 40, folder=tmp_path)
        loader.state_dict()
        mine.flags.writeable = True
        loader.reweight(weights + 1, 45, folder=tmp_path)
        loader.state_dict()
        samples = take(loader, len(loader)).ravel()
    assert (mine == later).all() and np.shares_memory(arrays[3], mine)
    assert not np.shares_memory(arrays[0], arrays[1])
    assert any(np.shares_memory(arrays[2], a) for a in arrays[:2])
    places = zip((10, 20, 30, 40), (WEIGHTS, later, WEIGHTS, later), strict=True)
    for step, held in places:
        positions = np.arange(step * BATCH, min(step + 10, 45) * BATCH)
        assert (samples[positions] == order.drawn(SEED, 0, positions, held)).all()


def test_what_is_known_is_refused_by_the_call(tmp_path: Path) -> None:
    fixed = np.zeros(ROWS, np.float32)
    fixed.flags.writeable = False
    with load() as loader:
        for weights in (np.zeros(ROWS), -np.zeros(ROWS), np.zeros(ROWS, bool), fixed):
            with pytest.raises(chaski.SpecError, match="all 1000 rows are 0"):
                loader.reweight(weights, 3, folder=tmp_path)
        with pytest.raises(chaski.SpecError, match="1000 samples has no room for each of 1000"):
            loader.reweight(WEIGHTS, len(loader), folder=tmp_path, each_once=True)
        assert "weights" not in loader.state_dict()
    with load(rows=chaski.Rows(take=900)) as loader:
        with pytest.raises(chaski.SpecError, match="900 samples has no room for each of 1000"):
            loader.reweight(WEIGHTS, len(loader), folder=tmp_path, each_once=True)
    assert not list(tmp_path.iterdir())
    with load(rows=chaski.Rows(take=1400)) as loader:  # of 1000 samples
        with pytest.raises(chaski.Error, match="1400 weights for 1000 samples of 1000 rows"):
            loader.reweight(np.ones(1400), 3, folder=tmp_path)
        loader.reweight(WEIGHTS, 3, folder=tmp_path)
    for source in (chaski.Mixture({"a": {"x": range(6)}, "b": {"x": [3]}}), tmp_path):
        tiles = chaski.TileWindow(4, per_visit=2)
        np.save(tmp_path / "a.npy", np.zeros((1, 8, 12), np.uint8))
        given = {"window": tiles} if source is tmp_path else {"fields": {"x": "x"}}
        with chaski.load(source, batch_size=1, **given) as loader:
            weights = np.ones(loader.samples)
            with pytest.raises(chaski.Error, match="not for a mixture|no use for windows"):
                loader.reweight(weights, 3, folder=tmp_path / "w")
            assert "weights" not in loader.state_dict()


def test_a_thread_that_cannot_write(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with load() as loader:
        loop = iter(loader)
        loader.reweight(WEIGHTS, 30, folder=tmp_path / "file/folder")
        with pytest.raises(NotADirectoryError):
            loader.state_dict()
        with pytest.raises(NotADirectoryError):
            for _ in loop:
                pass
        loader.reweight(WEIGHTS, 30, folder=tmp_path)
        done = loader.state_dict()["samples"] // BATCH
        rest = take(loader, len(loader))
    plain = order.Order(SEED, 0, ROWS).at(np.arange(done * BATCH, 30 * BATCH))
    drawn = order.drawn(SEED, 0, np.arange(30 * BATCH, ROWS), WEIGHTS)
    assert rest.ravel().tolist() == [*plain, *drawn]


def test_files_of_weights(tmp_path: Path) -> None:
    np.save(tmp_path / "w.npy", WEIGHTS)
    pq.write_table(pa.table({"w": WEIGHTS.astype(np.float64)}), tmp_path / "w.parquet")
    pq.write_table(pa.table({"w": WEIGHTS, "v": WEIGHTS}), tmp_path / "two.parquet")
    hashes = set()
    with load() as loader:
        for weights in (
            WEIGHTS,
            pytest.importorskip("torch").from_numpy(WEIGHTS),
            tmp_path / "w.npy",
            tmp_path / "w.parquet",
        ):
            for step in (None, 5):
                loader.reweight(weights, step, folder=tmp_path)
                hashes |= {w["hash"] for w in loader.state_dict()["weights"]}
        assert len(hashes) == 1
        with pytest.raises(chaski.SpecError, match="2 columns, not one"):
            loader.reweight(tmp_path / "two.parquet", folder=tmp_path)


def test_several_servers_draw_the_same(tmp_path: Path, binary: str) -> None:
    """Of two servers, which read the files of weights, and one server less in the end."""
    (tmp_path / "rows.csv").write_text("x\n" + "\n".join(map(str, range(ROWS))) + "\n")
    command = [binary, "serve", "--listen", "127.0.0.1:0", "--insecure", "--stop-on-eof"]
    with contextlib.ExitStack() as stack:
        servers, targets = [], []
        for _ in range(2):
            server = subprocess.Popen(
                [*command, "--root", tmp_path], stdin=subprocess.PIPE, stdout=subprocess.PIPE
            )
            stack.enter_context(server)
            assert server.stdin and server.stdout
            stack.callback(server.stdin.close)
            targets.append(json.loads(server.stdout.readline())["listen"])
            servers.append(server)
        given: dict[str, Any] = {"fields": {"x": "x"}, "batch_size": BATCH, "seed": SEED}
        for transport in ("shm", "grpc"):
            engine = chaski.Engine(transport="auto" if transport == "shm" else "grpc")
            with chaski.connect(targets, tmp_path / "rows.csv", engine=engine, **given) as loader:
                loader.reweight(WEIGHTS, folder=tmp_path / "weights")
                loader.reweight(WEIGHTS[::-1], 30, folder=tmp_path / "weights")
                first = take(loader, 20)
                if transport == "grpc":
                    servers[0].kill()
                loader.load_state_dict(loader.state_dict())
                rest = take(loader, len(loader))
            samples = np.concatenate([first, rest]).ravel()
            want = order.drawn(SEED, 0, np.arange(600), WEIGHTS)
            assert (samples[:600] == want).all()
            want = order.drawn(SEED, 0, np.arange(600, ROWS), WEIGHTS[::-1])
            assert (samples[600:] == want).all()


def test_explain_and_plan_say_which_weights(tmp_path: Path, binary: str) -> None:
    """The samples are those that come next, their probabilities those of the weights."""
    (tmp_path / "rows.csv").write_text("x\n" + "\n".join(map(str, range(ROWS))) + "\n")
    given: dict[str, Any] = {"fields": {"x": "x"}, "batch_size": BATCH, "seed": SEED}
    later = WEIGHTS[::-1].copy()
    with chaski.load(tmp_path / "rows.csv", **given) as loader:
        loop = iter(loader)
        next(loop)
        loader.reweight(WEIGHTS, 4, folder=tmp_path)
        loader.reweight(later, 45, folder=tmp_path)
        (tmp_path / "spec.json").write_text(json.dumps(loader.spec))
        states, batches = {}, [None]
        for step in range(1, 50):
            states[step] = loader.state_dict()
            batches.append(next(loop)["sample"].tolist())

    def asked(command: str, state: int, *flags: str) -> Any:
        (tmp_path / "state.json").write_text(json.dumps(states[state]))
        line = [binary, command, "--json", "--state", tmp_path / "state.json", *flags]
        done = subprocess.run([*line, tmp_path / "spec.json"], capture_output=True, text=True)
        return json.loads(done.stdout) if done.returncode == 0 else done.stderr

    for state, back, weights, since in (
        (2, 0, None, 0),
        (2, 1, None, 0),
        (7, 0, WEIGHTS, 4),
        (7, 2, WEIGHTS, 4),
        (46, 0, later, 45),
    ):
        said, step = asked("explain", state, f"--back={back}"), state - back
        rows = said["rows"]
        assert [r["draw"]["sample"] for r in rows] == batches[step]
        if weights is None:
            assert "weights" not in said and not any("probability" in r for r in rows)
            continue
        change = next(c for c in states[state]["weights"] if c["samples"] == since * BATCH)
        assert said["weights"] == {
            "path": change["path"], "hash": change["hash"], "epoch": 0, "step": since
        }  # fmt: skip
        want = weights / weights.sum(dtype=np.float64)
        found = [r["probability"] for r in rows]
        np.testing.assert_allclose(found, want[batches[step]], rtol=1e-6)
    # The state of step 46 has not what held before step 45.
    assert "weights: they hold from step 45 of epoch 0 on" in asked("explain", 46, "--back=10")
    said = asked("plan", 2)
    assert (said["epoch"], said["total"]["rows"]) == (0, ROWS)
    assert [w["step"] for w in said["weights"]] == [4, 45]
    assert [w["step"] for w in asked("plan", 2, "--epoch=1")["weights"]] == [45]
    Path(states[7]["weights"][0]["path"]).unlink()
    assert ".weights" in asked("explain", 7)


def test_a_column_of_the_table(tmp_path: Path) -> None:
    chips = []
    for i in range(6):
        np.save(tmp_path / f"{i}.npy", np.full((1, 8, 8), i, np.uint8))
        chips.append(f"{i}.npy,{(0, 9, 0, 0, 5, 2.5)[i]},{'ab'[i % 2]}")
    (tmp_path / "t.csv").write_text("image,loss,site\n" + "\n".join(chips) + "\n")
    window = chaski.RandomWindow((4, 4), per_asset=200)
    field = chaski.Field(column="image", kind="raster")
    options: dict[str, Any] = {"fields": {"image": field}, "window": window, "batch_size": 60}
    rows = chaski.Rows(where=[("site", "==", "b")], take=600)  # of 9, 0 and 2.5
    with chaski.load(
        tmp_path / "t.csv", rows=rows, pixels=chaski.Pixels(augment="d4"), **options
    ) as loader:
        loader.reweight("loss", folder=tmp_path / "w")
        found = np.concatenate([b["image"][:, 0, 0, 0] for b in loader])
        assert set(found.tolist()) == {1, 5}
        # Five standard deviations of 600 draws.
        assert abs((found == 1).sum() - 600 * 9 / 11.5) < 5 * np.sqrt(600 * 9 * 2.5 / 11.5**2)
        with pytest.raises(chaski.Error, match="nothing"):
            loader.reweight("nothing", folder=tmp_path / "w")
        with pytest.raises(chaski.Error, match='column "site" holds texts'):
            loader.reweight("site", folder=tmp_path / "w")
    views = [window, chaski.RandomWindow((5, 5))]
    with chaski.load(tmp_path / "t.csv", **(options | {"window": views})) as loader:
        loader.reweight("loss", folder=tmp_path / "w")
        found = np.concatenate([b["sample"] // 200 for b in loader])
        assert set(found.tolist()) == {1, 4, 5}


def test_each_sample_comes_once_without_the_last_short_batch(tmp_path: Path) -> None:
    weights = np.zeros(ROWS)
    weights[[10, 20]] = 1
    with load(rows=chaski.Rows(take=1015), last="drop") as loader:
        loader.reweight(weights, folder=tmp_path, each_once=True)
        for _ in range(3):
            counts = np.bincount(take(loader, len(loader)).ravel(), minlength=ROWS)
            assert counts.min() == 1 and counts.sum() == 1000
        (held,) = loader.state_dict()["weights"]
    with load(rows=chaski.Rows(take=1019), last="drop", batch_size=510) as loader:
        with pytest.raises(chaski.SpecError, match="510 samples has no room"):
            loader.reweight(weights, folder=tmp_path, each_once=True)
        loader.load_state_dict(loader.state_dict() | {"weights": [held]})
        with pytest.raises(chaski.Error, match="510 samples has no room"):
            next(iter(loader))


def test_substitutes_are_drawn_by_weight(tmp_path: Path) -> None:
    """Those of docs/order.md: of the rows that can be read, by the weights, in the same order."""
    for i in range(10):
        np.save(tmp_path / f"{i}.npy", np.full((1, 8, 8), i, np.uint8))
    for i in (3, 6):
        (tmp_path / f"{i}.npy").write_bytes(b"junk")
    weights = np.array([0, 0, 0, 1, 1, 0, 2, 0, 3, 0], np.float32)
    options: dict[str, Any] = {"batch_size": 50, "seed": SEED, "on_bad": "replace"}
    with chaski.load(tmp_path, rows=chaski.Rows(take=300), **options) as loader:
        loader.reweight(weights, folder=tmp_path / "w")
        batches = list(loader)
    found = np.concatenate([b["sample"] for b in batches])
    want = order.drawn(SEED, 0, np.arange(300), weights)
    for p in np.flatnonzero(np.isin(want, (3, 6))).tolist():
        epoch, place = divmod(p, 10)  # of the dataset
        for attempt in range(1, 17):
            seed = order.hash_words(SEED, 13, epoch, place, attempt)
            (want[p],) = order.drawn(seed, epoch, np.array([place]), weights)
            if want[p] not in (3, 6):
                break
    assert (found == want).all() and set(found.tolist()) == {4, 8}
    assert (np.concatenate([b["image"][:, 0, 0, 0] for b in batches]) == want).all()


def test_weights_of_a_later_step_stay(tmp_path: Path) -> None:
    """Calls in any order hold from their steps on; one for the same step replaces the other."""
    one, two, three = (np.eye(1, ROWS, i, dtype=np.float32)[0] for i in (1, 2, 3))
    with load() as loader:
        plain = order.Order(SEED, 0, ROWS).at(np.arange(2 * BATCH))
        loader.reweight(one, 4, folder=tmp_path)
        loader.reweight(three, 2, folder=tmp_path)
        loader.reweight(two, 2, folder=tmp_path)
        state = loader.state_dict()
        samples = take(loader, 7)
        loader.load_state_dict(state)
        assert (take(loader, 7) == samples).all()
    assert (samples[:2].ravel() == plain).all()
    assert (samples[2:4] == 2).all() and (samples[4:] == 1).all()
    with load(rows=chaski.Rows(take=1400)) as loader:
        loader.reweight(one, folder=tmp_path, each_once=True)
        loader.reweight(two, 9, folder=tmp_path, each_once=True)
        with pytest.raises(chaski.SpecError, match="without each_once: those from step 9"):
            loader.reweight(three, 5, folder=tmp_path)
        with pytest.raises(chaski.SpecError, match=f"from_step is {2**70}.* below"):
            loader.reweight(three, 2**70, folder=tmp_path)
        loader.load_state_dict(loader.state_dict() | {"epoch": 2**64 - 1})
        with pytest.raises(chaski.SpecError, match=f"in epoch {2**64}: "):
            loader.reweight(three, len(loader), folder=tmp_path)


def test_old_weights_are_forgotten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A loop never needs them; going back there says so, and the figures begin later."""
    monkeypatch.setattr(_weights, "_MAX_PAST", 8)
    weights = np.ones(ROWS)
    with load(batch_size=100) as loader:
        for epoch in range(3):
            for batch in loader:
                weights[:] = 0
                weights[10 * epoch + batch.step] = 1
                loader.reweight(weights, folder=tmp_path)
        known = loader._walk._changes.known()
        assert len(known[1]) <= 9 and known[0] == 3
        assert (take(loader, 1) == 29).all()
        loader.set_epoch(1)
        with pytest.raises(chaski.SpecError, match="weights of epoch 1 are not known any more"):
            next(iter(loader))
        loader.set_epoch(3)
        assert (take(loader, 1) == 29).all()


def test_a_file_that_is_overwritten_while_its_weights_are_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write, go = _walk.written, threading.Event()

    def late(*args: Any) -> Any:
        assert go.wait(600)
        return write(*args)

    monkeypatch.setattr(_walk, "written", late)
    np.save(tmp_path / "w.npy", WEIGHTS)
    with load() as loader:
        loader.reweight(tmp_path / "w.npy", 1, folder=tmp_path / "w")
        (tmp_path / "w.npy").write_bytes(b"")
        go.set()
        samples = take(loader, 3)[1:].ravel()
    assert (samples == order.drawn(SEED, 0, np.arange(BATCH, 3 * BATCH), WEIGHTS)).all()


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="Linux lists open files")
def test_files_of_closed_loaders_are_closed(tmp_path: Path) -> None:
    def held(pid: int) -> int:
        found = 0
        for link in Path(f"/proc/{pid}/fd").iterdir():
            with contextlib.suppress(FileNotFoundError):  # the engine has closed it meanwhile
                found += ".weights" in str(link.readlink())
        return found

    with load() as first:
        pid = first._link._held.engine.pid
        for seed in range(6):
            with load(seed=seed) as loader:
                for i in range(3):
                    loader.reweight(WEIGHTS + i, folder=tmp_path)
                    take(loader, 1)
        for _ in range(600):  # an engine sees a moment later that a stream has ended
            if not held(pid):
                break
            threading.Event().wait(0.1)
        assert held(pid) == 0


def test_columns_of_all_kinds_of_datasets(tmp_path: Path) -> None:
    """Rows that are left out have no weight; arrays, attributes and joined tables have columns."""
    h5py, zarr = pytest.importorskip("h5py"), pytest.importorskip("zarr")
    images = np.arange(24, dtype=np.uint8)[:, None, None, None] * np.ones((1, 8, 8, 1), np.uint8)
    for i in range(24):
        np.save(tmp_path / f"{i:02}.npy", images[i].reshape(1, 8, 8))
    table = "image,id,wt\n" + "".join(f"{i:02}.npy,{i:02},{i % 3}\n" for i in range(24))
    (tmp_path / "t.csv").write_text(table)
    with h5py.File(tmp_path / "arrays.h5", "w") as f, h5py.File(tmp_path / "groups.h5", "w") as g:
        f["image"], f["wt"] = images, np.arange(24) % 3
        for i in range(24):
            g[f"{i:02}/image"] = images[i]
            g[f"{i:02}"].attrs["wt"] = i % 3
    group = zarr.open_group(str(tmp_path / "arrays.zarr"), mode="w", zarr_format=2)
    group["image"], group["wt"] = images, np.arange(24) % 3
    (tmp_path / "05.npy").write_bytes(b"junk")
    field = {"image": chaski.Field(column="image", kind="raster", dtype="native")}
    skip: dict[str, Any] = {"on_bad": chaski.OnBad("skip", quarantine=tmp_path / "bad")}
    with chaski.load(tmp_path / "t.csv", fields=field, batch_size=6, **skip) as loader:
        for _ in loader:
            pass
    arrays: dict[str, Any] = {"rows": chaski.Rows(dims="n y x b"), "fields": {"image": "image"}}
    views = [chaski.RandomWindow(4, per_asset=2), chaski.RandomWindow(2)]
    cases: list[tuple[str, dict[str, Any]]] = [
        ("t.csv", {"fields": field, "rows": chaski.Rows(bad=tmp_path / "bad")}),
        ("t.csv", {"fields": field, "window": chaski.Grid(4, stride=2), "on_bad": "replace"}),
        ("t.csv", {"fields": field, "window": chaski.RandomWindow(4, per_asset=3), **skip}),
        ("t.csv", {"fields": field, "window": views, "rows": chaski.Rows(take=99), **skip}),
        ("*.npy", {"tables": {tmp_path / "t.csv": "id"}, "on_bad": "replace"}),
        ("arrays.h5", arrays),
        ("arrays.zarr", arrays),
        ("groups.h5", {"rows": chaski.Rows(dims="y x b"), "fields": {"image": "{id}/image"}}),
    ]
    for source, options in nonempty(cases):
        with chaski.load(tmp_path / source, batch_size=6, **options) as loader:
            loader.reweight("wt", folder=tmp_path / "w")
            name = next(f.name for f in loader.fields if f.kind == "raster")
            rows = [b[name].reshape(len(b["sample"]), -1)[b["valid"], 0] for b in loader]
        found = np.concatenate(rows).astype(int)
        assert len(found) > 8 and (found % 3 > 0).all(), (source, options, found)
