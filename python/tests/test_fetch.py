"""Samples that a sampler of one's own names come as one batch, equal to those read one by one."""

from __future__ import annotations

import gc
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from conftest import nonempty
from test_real import N, chips, copy_with_bad_file, servers  # noqa: F401

import chaski

pytestmark = pytest.mark.usefixtures("binary")

NATIVE = chaski.Pixels(dtype="native")
HOW = [{"engine": chaski.Engine(transport=t)} for t in ("grpc", "auto")]


@pytest.mark.parametrize("how", HOW, ids=["grpc", "auto"])
def test_against_numpy(chips, how):  # noqa: F811
    folder, x = chips
    rng = np.random.default_rng(1)
    with chaski.load(folder, batch_size=4, pixels=NATIVE, rank=1, world_size=2, **how) as loader:
        for n in (1, 2, 7, 3 * N):
            samples = rng.integers(-N, N, n)
            batch = loader.fetch(samples)
            assert batch["image"].dtype == x.dtype and np.array_equal(batch["image"], x[samples])
            assert np.array_equal(batch["sample"], samples % N) and batch["valid"].all()
            assert np.array_equal(batch["position"], samples % N)
        for wrong in ([N], [0, -N - 1], [1 << 70]):
            with pytest.raises(IndexError, match=f"of {N}"):
                loader.fetch(wrong)
        for wrong in ([], [0] * 65537):
            with pytest.raises(chaski.SpecError, match="1 to 65536"):
                loader.fetch(wrong)
        pair = np.ones((N, 2), bool)
        wrongs: list = [
            [1.5],
            ["1"],
            5,
            None,
            [None],
            [[1]],
            np.array([1.5]),
            np.array(2),
            pair,
            [True, 1],
        ]
        for wrong in wrongs:
            with pytest.raises(
                chaski.SpecError, match="(?s)samples is .*: it must be a list of ints"
            ):
                loader.fetch(wrong)
        with pytest.raises(
            chaski.SpecError, match=f"mask of 1 bools: it must have one for each of {N}"
        ):
            loader.fetch([True])
        with pytest.raises(chaski.SpecError, match=r"samples is \[1.5\]: it must"):
            loader.sample(1.5)  # type: ignore[arg-type]
        with pytest.raises(chaski.SpecError, match="windows is 5: it must be a list of windows"):
            loader.fetch([0], windows=5)  # type: ignore[arg-type]
        kept = loader.fetch([2, 0])["image"]
    assert np.array_equal(kept, x[[2, 0]])  # also after the end of the loader
    with pytest.raises(RuntimeError, match="closed"):
        loader.fetch([0])


def test_a_loop_goes_on(chips):  # noqa: F811
    folder, x = chips
    options = {"batch_size": 4, "pixels": NATIVE, "seed": 8}
    with chaski.load(folder, **options) as loader:
        want = [b["sample"].tolist() for b in loader]
    with chaski.load(folder, **options) as loader:
        got = []
        for b in nonempty(loader):
            got.append(b["sample"].tolist())
            named = b["sample"][b["valid"]][::-1]
            assert np.array_equal(loader.fetch(named)["image"], x[named])
        assert got == want and loader.epoch == 1


def test_threads(chips):  # noqa: F811
    folder, x = chips
    with chaski.load(folder, batch_size=4, pixels=NATIVE) as loader:

        def fetch(i: int) -> bool:
            named = [i % N, (i + 1) % N]
            windows = [(0, 0, 8, 8)] * 2 if i % 3 == 0 else None
            got = loader.fetch(named, windows)["image"]
            return np.array_equal(got, x[named][..., :8, :8] if windows else x[named])

        with ThreadPoolExecutor(4) as pool:
            assert all(pool.map(fetch, range(60)))


def test_windows(chips):  # noqa: F811
    folder, x = chips
    rng = np.random.default_rng(2)
    h, w = 16, 24
    samples = rng.integers(0, N, 9)
    corners = [
        (rng.integers(0, x.shape[2] - h + 1), rng.integers(0, x.shape[3] - w + 1)) for _ in samples
    ]
    windows = [(y0, x0, h, w) for y0, x0 in corners]
    want = np.stack(
        [x[i][:, a : a + h, b : b + w] for i, (a, b) in zip(samples, corners, strict=True)]
    )
    pixels = chaski.Pixels(dtype="native", windows=True)
    random = chaski.RandomWindow((8, 8), per_asset=3)
    for window in (None, random, chaski.Grid(10), chaski.TileWindow(8)):
        with chaski.load(folder, batch_size=4, pixels=pixels, window=window) as loader:
            whole = loader.fetch([0])["image"]
            got = loader.fetch(samples, windows)
            assert np.array_equal(got["image"], want)
            assert got["window"].tolist() == [list(map(int, v)) for v in windows]
            assert np.array_equal(loader.fetch([0])["image"], whole)
    with chaski.load(folder, batch_size=4, pixels=pixels) as loader:
        last = (x.shape[2] - h, x.shape[3] - w)
        assert loader.fetch([0], [(*last, h, w)])["image"].shape == (1, 3, h, w)
        for y0, x0 in ((last[0] + 1, 0), (0, last[1] + 1), (1 << 31, 0)):
            with pytest.raises(chaski.Error, match=f"row {y0} and column {x0}"):
                loader.fetch([0], [(y0, x0, h, w)])
        for wrong in ([], [(0, 0, h)], [(0, 0, h, w)] * 2, [(-1, 0, h, w)], [(0, 1 << 32, h, w)]):
            with pytest.raises(chaski.SpecError, match="windows"):
                loader.fetch([0], wrong)
        with pytest.raises(chaski.SpecError, match="windows"):
            loader.fetch([0, 1], [(0, 0, h, w), (0, 0, w, h)])
    with chaski.load(chaski.Mixture({"a": folder}), batch_size=4, pixels=NATIVE) as loader:
        assert np.array_equal(loader.fetch([3])["image"], x[[3]])
        with pytest.raises(chaski.SpecError, match="Mixture"):
            loader.fetch([3], [(0, 0, h, w)])


def test_windows_past_the_edge(chips):  # noqa: F811
    folder, x = chips
    pixels = chaski.Pixels(dtype="float32", pad=True, fill=-1.0)
    with chaski.load(folder, batch_size=4, pixels=pixels) as loader:
        height, width = x.shape[2:]
        got = loader.fetch([1], [(height - 4, width - 3, 8, 8)])["image"][0]
        assert (got[:, 4:] == -1).all() and (got[:, :, 3:] == -1).all()
        inside = x[1][:, height - 4 :, width - 3 :]
        assert ((got[:, :4, :3] == inside) | (got[:, :4, :3] == -1)).all()
        with pytest.raises(chaski.Error, match="row"):
            loader.fetch([1], [(height, 0, 8, 8)])


def test_samples_that_cannot_be_read(chips, tmp_path):  # noqa: F811
    folder, name = copy_with_bad_file(chips[0], tmp_path)
    with chaski.load(folder, batch_size=5, pixels=NATIVE) as loader:
        for _ in range(2):
            with pytest.raises(chaski.Error) as e:
                loader.fetch([3, 4])
            assert name in e.value.file
            assert np.array_equal(loader.fetch([5, 3])["image"], chips[1][[5, 3]])
    with chaski.load(folder, batch_size=5, pixels=NATIVE, on_bad="skip") as loader:
        assert loader.fetch([3, 4, 4])["valid"].tolist() == [True, False, False]


def test_a_new_engine_after_a_kill(chips):  # noqa: F811
    folder, x = chips
    engine = chaski.Engine(share=False)  # no other process's
    with chaski.load(folder, batch_size=4, pixels=NATIVE, engine=engine) as loader:
        assert np.array_equal(loader.fetch([1, 2])["image"], x[[1, 2]])
        assert loader._link._held is not None
        loader._link._held.engine._process.kill()
        assert np.array_equal(loader.fetch([2, 1])["image"], x[[2, 1]])


def test_servers(chips, servers):  # noqa: F811
    """Of one server, without an engine between, and of two through one."""
    folder, x = chips
    grpc = chaski.Engine(transport="grpc")
    for target, engine in ((servers[0], grpc), (servers[0], chaski.Engine()), (servers, None)):
        options = {"engine": engine} if engine else {}
        with chaski.connect(target, folder, batch_size=4, pixels=NATIVE, **options) as loader:
            for samples in ([4, 0, 4], [7]):
                assert np.array_equal(loader.fetch(samples)["image"], x[samples])
            got = loader.fetch([5], [(1, 2, 8, 9)])["image"][0]
            assert np.array_equal(got, x[5][:, 1:9, 2:11])


def test_a_sampler_of_ones_own(chips):  # noqa: F811
    torch = pytest.importorskip("torch")
    from chaski.torch import MapDataset

    folder, x = chips
    order = [5, 2, 9, 9, 0, 22, 1]
    for layout, axis in (("n b y x", 0), ("b y x n", 3), ("(n b) y x", 0)):
        pixels = chaski.Pixels(dtype="native", layout=layout)
        with MapDataset(folder, pixels=pixels) as d:
            loader = torch.utils.data.DataLoader(d, batch_size=3, sampler=order)
            got = torch.cat([b["image"] for b in nonempty(loader)])
            assert got.shape[1:] == (3, *x.shape[2:]), axis
            assert torch.equal(got, torch.from_numpy(x[order]))


def test_a_loader_that_goes_where_a_lock_is_held(chips):  # noqa: F811
    """Garbage is collected at any point of any thread, also where that thread is within gRPC."""
    folder, x = chips
    held, ended = threading.Lock(), threading.Event()

    class Cycle:
        def __init__(self):
            self.loader, self.self = chaski.load(folder, batch_size=4, pixels=NATIVE), self

    cycle = Cycle()
    assert np.array_equal(cycle.loader.fetch([1])["image"], x[[1]])
    run = cycle.loader._samples._run
    cancel = run._call.cancel

    def waits():
        with held:
            ended.set()
            return cancel()

    run._call.cancel = waits
    del run, waits
    with held:
        del cycle
        gc.collect()
        assert not ended.is_set()
    assert ended.wait(10)
