"""TileDB arrays through the real engine, against numpy."""

from __future__ import annotations

import datetime as dt
import subprocess
from pathlib import Path

import numpy as np
import pytest
from conftest import nonempty

import chaski
from chaski import _engine

rasterio = pytest.importorskip("rasterio")

ARRAYS = Path(__file__).resolve().parents[2] / "testdata" / "tiledb" / "arrays"

pytestmark = pytest.mark.usefixtures("binary")

N, BANDS, H, W = 6, 3, 40, 52


def run(*args: object) -> str:
    command = [_engine.find_binary(), *(str(a) for a in args)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


@pytest.fixture(scope="module")
def cube() -> tuple[Path, np.ndarray]:
    """An array (b, n, y, x) in tiles of 1, 2, 16 and 16, and its pixels."""
    pixels = np.random.default_rng(1).integers(0, 4000, (N, BANDS, H, W), dtype=np.uint16)
    return ARRAYS.parent / "cube", pixels


def test_chips(cube):
    path, pixels = cube
    with chaski.load(
        path, batch_size=4, shuffle=False, pixels=chaski.Pixels(dtype="native")
    ) as loader:
        assert loader.samples == N
        got = np.concatenate([b["image"][b["valid"]] for b in loader])
    assert np.array_equal(got, pixels)


def test_dims_and_layout(cube):
    path, pixels = cube
    fields = {"a": {"column": "dn", "dtype": "native", "layout": "n y x b"}}
    with chaski.load(
        path,
        batch_size=3,
        shuffle=False,
        rows=chaski.Rows(dims="n b y x"),
        fields=fields,
        engine=chaski.Engine(transport="grpc"),
    ) as loader:
        got = next(iter(loader))["a"]
    assert np.array_equal(got, pixels.transpose(1, 2, 3, 0))


def test_normalised_windows(cube):
    path, pixels = cube
    s = chaski.stats(path, fields={"image": "dn"}, rows=chaski.Rows(dims="b n y x"))
    mean, std = pixels.mean((0, 2, 3)), pixels.std((0, 2, 3))
    assert np.allclose(s.mean(), mean) and np.allclose(s.std(), std)
    unused = {int(v) for v in pixels[:, 0].ravel()}
    with chaski.load(
        path,
        batch_size=4,
        window=chaski.RandomWindow((16, 16), per_asset=3),
        normalize="mean_std",
        stats=s,
    ) as loader:
        for batch in nonempty(loader):
            image = batch["image"] * std[:, None, None] + mean[:, None, None]
            for row in nonempty(np.flatnonzero(batch["valid"])):
                chip = pixels[batch["sample"][row] // 3, 0]
                windows = np.lib.stride_tricks.sliding_window_view(chip, (16, 16))
                wanted = np.rint(image[row, 0]).astype(np.int64)
                assert (windows == wanted).all((2, 3)).any()
                assert {int(v) for v in wanted.ravel()} <= unused


def test_torch(cube):
    torch = pytest.importorskip("torch")
    from chaski.torch import IterableDataset

    path, pixels = cube
    with chaski.load(
        path, batch_size=2, shuffle=False, pixels=chaski.Pixels(dtype="float32")
    ) as loader:
        batches = list(torch.utils.data.DataLoader(IterableDataset(loader), batch_size=None))
    got = torch.cat([b["image"] for b in batches])
    assert got.dtype == torch.float32 and torch.equal(got, torch.from_numpy(pixels).float())


def test_what_is_no_cube(cube):
    with pytest.raises(chaski.UnsupportedError, match="dimensions"):
        chaski.load(cube[0], batch_size=1, rows=chaski.Rows(dims="y x"))
    with pytest.raises(chaski.NotFoundError, match="attribute"):
        chaski.load(cube[0], batch_size=1, fields={"image": "nothing"})


def test_opening_at_a_time():
    """The first fragment, from ...659, has all cells; the second, from ...665, has some."""
    path = ARRAYS / "dense_with_sparse_fragment"
    first, second = 1795145296659, 1795145296665
    day = dt.datetime.fromtimestamp(first / 1000, dt.timezone.utc)

    def chip(timestamp):
        with chaski.load(
            path,
            batch_size=1,
            rows=chaski.Rows(dims="y x", timestamp=timestamp),
            fields={"a": {"dtype": "native"}},
        ) as loader:
            return next(iter(loader))["a"].tobytes(), loader.spec

    now, then = chip(None)[0], chip(first)[0]
    assert now != then
    assert chip(second)[0] == chip((first, second + 1))[0] == now
    assert chip(day)[0] == chip((day, day))[0] == chip(second - 1)[0] == then
    assert chip(first)[1]["timestamp"] == [0, first]
    with pytest.raises(chaski.Error):
        chip((second + 1, second + 2))  # nothing was written then

    def stats(timestamp):
        return chaski.stats(
            path, fields={"a": "a"}, rows=chaski.Rows(dims="y x", timestamp=timestamp)
        )

    assert stats(first) == stats((1, first)) != stats(None) == stats(second)


@pytest.mark.parametrize("wrong", [-1, 0, (5, 4), (1, 2, 3), "now", True, dt.datetime(2026, 1, 1)])
def test_what_is_no_time(cube, wrong):
    with pytest.raises(chaski.SpecError, match="timestamp"):
        chaski.load(cube[0], batch_size=1, rows=chaski.Rows(timestamp=wrong))
