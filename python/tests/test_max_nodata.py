"""Windows with more nodata than `max_nodata` are not in the dataset, against numpy."""

from __future__ import annotations

import functools
import json
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import rasters
from conftest import nonempty
from patience import logged

import chaski

rasterio = pytest.importorskip("rasterio")

pytestmark = pytest.mark.usefixtures("one_engine")

N, HEIGHT, WIDTH, CELL = 5, 112, 141, 8
KINDS = ["nodata", "mask", "alpha", "said", "nan"]
FIELDS = {k: {"image": chaski.Field(dtype="native", validity="ok")} for k in KINDS}
FIELDS["said"] = {"image": chaski.Field(nodata=0, dtype="native", validity="ok")}


@functools.cache
def holes(i: int) -> np.ndarray:
    """Where image i has no data: the left of a line that leans, or everywhere."""
    y, x = np.mgrid[:HEIGHT, :WIDTH]
    noise = np.random.default_rng(i).random((HEIGHT, WIDTH)) < 0.02 * i
    return (x + y * 0.7 < 25 * i) | noise if i < N - 1 else np.ones((HEIGHT, WIDTH), bool)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("covered")
    for kind in KINDS:
        (root / kind).mkdir()
        for i in range(N):
            gone = holes(i)
            x = np.where(gone, 0, 1 + i + np.arange(HEIGHT * WIDTH).reshape(gone.shape) % 199)
            x = x.astype("float32" if kind == "nan" else "uint8")
            profile: dict[str, Any] = {"count": 1, "dtype": x.dtype}
            if kind == "nodata":
                profile["nodata"] = 0
            if kind == "nan":
                x[gone] = np.nan
            if kind == "alpha":
                profile |= {"count": 2, "alpha": "yes"}
            with (
                rasterio.Env(GDAL_TIFF_INTERNAL_MASK=True),
                rasterio.open(
                    root / kind / f"{i}.tif", "w", "GTiff", height=HEIGHT, width=WIDTH, **profile
                ) as f,
            ):
                f.write(x, 1)
                if kind == "alpha":
                    f.write((255 * ~gone).astype(np.uint8), 2)
                    f.colorinterp = [
                        rasterio.enums.ColorInterp.gray,
                        rasterio.enums.ColorInterp.alpha,
                    ]
                if kind == "mask":
                    f.write_mask(~gone)
    return root


def counted(binary: str, source: Path, fields: dict[str, Any], cell: int = CELL) -> Path:
    """Counts the valid pixels of a dataset."""
    out = source.with_name(f"{source.name}-{cell}.weights")
    if not out.exists():
        with chaski.load(source, batch_size=1, fields=fields) as loader:
            out.with_suffix(".json").write_text(json.dumps(loader.spec))
        command = [binary, "stats", "--sampling", "--cell", str(cell), "-o", str(out)]
        subprocess.run([*command, str(out.with_suffix(".json"))], check=True, capture_output=True)
    return out


def share(i: int, y: int, x: int, h: int, w: int) -> float:
    """The share of a window that has no data."""
    valid = np.zeros((h, w), bool)
    part = ~holes(i)[y : y + h, x : x + w]
    valid[: part.shape[0], : part.shape[1]] = part
    return int((~valid).sum()) / (h * w)


@functools.cache
def spread_valid(i: int) -> np.ndarray:
    valid, mean = ~holes(i), np.zeros((HEIGHT, WIDTH))
    for top in range(0, HEIGHT, CELL):
        for left in range(0, WIDTH, CELL):
            box = slice(top, top + CELL), slice(left, left + CELL)
            mean[box] = valid[box].mean()
    return mean


def spread(i: int, y: int, x: int, h: int, w: int) -> float:
    """The same share if the valid pixels of each cell were spread over it."""
    return 1 - spread_valid(i)[y : y + h, x : x + w].sum() / (h * w)


def windows(source: Path, **options: Any) -> list[tuple[int, int, int, int, int]]:
    """The samples of an epoch: which image, and where."""
    options = {"pixels": chaski.Pixels(windows=True), "batch_size": 4, **options}
    out = []
    with chaski.load(source, **options) as loader:
        for batch in loader:
            for k in np.flatnonzero(batch["valid"]):
                path = str(batch["path"][k])
                out.append((int(path.split(".")[0]), *map(int, batch["window"][k])))
                i, y, x, h, w = out[-1]
                assert 1 - share(i, y, x, h, w) == pytest.approx(batch["ok"][k].mean())
    return out


def fields_of(kind: str) -> dict[str, Any]:
    return {**FIELDS[kind], "path": chaski.Field(kind="text")}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("most", [0, 0.3, 0.75])
def test_grid(folder: Path, binary, kind: str, most: float):
    fields = fields_of(kind)
    coverage = counted(binary, folder / kind, FIELDS[kind])
    grid = chaski.Grid((16, 24), stride=(16, 24), max_nodata=most, coverage=coverage)
    got = windows(folder / kind, fields=fields, window=grid)
    # The last column of windows is moved inside, and cuts cells.
    places = [
        (i, y, min(x, WIDTH - 24), 16, 24)
        for i in range(N)
        for y in range(0, HEIGHT, 16)
        for x in range(0, WIDTH, 24)
    ]
    exact = [p for p in places if p[2] % CELL == 0 and share(*p) <= most]
    assert sorted(p for p in got if p[2] % CELL == 0) == sorted(exact)
    cut = [p for p in places if p[2] % CELL]
    near = [p for p in cut if abs(spread(*p) - most) < 1e-9]
    want = [p for p in cut if spread(*p) <= most and p not in near]
    assert sorted(p for p in got if p[2] % CELL and p not in near) == sorted(want)


@pytest.mark.parametrize("kind", KINDS)
def test_random_windows(folder: Path, binary, kind: str):
    """They all have their share, are the same however they are read, and lie all over the image."""
    fields = fields_of(kind)
    most = 0.25
    coverage = counted(binary, folder / kind, FIELDS[kind])
    window = chaski.RandomWindow(16, per_asset=300, max_nodata=most, coverage=coverage)
    options: dict[str, Any] = {"fields": fields, "window": window, "seed": 5}
    got = windows(folder / kind, **options)
    assert len(got) == 300 * (N - 1)  # the last image has no window
    assert all(spread(*w) <= most + 1e-9 for w in nonempty(got))
    assert got == windows(folder / kind, **options, batch_size=7, engine=chaski.Engine(workers=1))
    for i in range(N - 1):
        places = [(y, x) for y in range(HEIGHT - 15) for x in range(WIDTH - 15)]
        allowed = [p for p in places if spread(i, *p, 16, 16) <= most]
        mine = np.array([w[1:3] for w in got if w[0] == i])
        want = np.array(allowed)
        assert {tuple(p) for p in mine.tolist()} <= set(allowed)
        # The mean of 300 windows lies within 4 deviations of the mean of all that count.
        bound = 4 * want.std(0) / np.sqrt(len(mine)) + 1e-9
        assert (np.abs(mine.mean(0) - want.mean(0)) <= bound).all()


def test_rare_windows_are_found(tmp_path: Path, binary):
    """Where one place in thousands counts, the windows at the corners of cells are drawn."""
    x = np.zeros((1, 256, 256), np.uint8)
    x[0, 160:176, 96:112] = 7
    x[0, 200:216, 0:16] = 7
    (tmp_path / "images").mkdir()
    profile: dict[str, Any] = {"count": 1, "dtype": "uint8", "nodata": 0}
    rasters.write(tmp_path / "images/0.tif", x, **profile)
    coverage = counted(binary, tmp_path / "images", FIELDS["nodata"])
    window = chaski.RandomWindow(16, per_asset=40, max_nodata=0, coverage=coverage)
    options: dict[str, Any] = {"fields": FIELDS["nodata"], "window": window, "batch_size": 40}
    with chaski.load(tmp_path / "images", pixels=chaski.Pixels(windows=True), **options) as loader:
        (batch,) = loader
    found = Counter(map(tuple, batch["window"].tolist()))
    assert set(found) == {(160, 96, 16, 16), (200, 0, 16, 16)}
    assert min(found.values()) > 8
    assert (batch["image"] == 7).all()


def test_nothing_is_left(folder: Path, binary, tmp_path: Path):
    (tmp_path / "gone").mkdir()
    (tmp_path / "gone/4.tif").write_bytes((folder / f"nodata/{N - 1}.tif").read_bytes())
    limit: dict[str, Any] = {"max_nodata": 0.9}
    limit["coverage"] = counted(binary, tmp_path / "gone", FIELDS["nodata"])
    for window in nonempty(
        [chaski.WholeChip(**limit), chaski.RandomWindow(16, **limit), chaski.Grid(16, **limit)]
    ):
        with pytest.raises(chaski.NotFoundError, match="more nodata than max_nodata, 0.9"):
            chaski.load(tmp_path / "gone", batch_size=1, window=window)


def test_sizes_of_batches(folder: Path, binary):
    coverage = counted(binary, folder / "nodata", FIELDS["nodata"])
    window = chaski.RandomWindow(sizes=[16, 32], per_asset=40, max_nodata=0.2, coverage=coverage)
    got = windows(folder / "nodata", fields=fields_of("nodata"), window=window)
    assert {w[3] for w in got} == {16, 32}
    assert all(spread(*w) <= 0.2 + 1e-9 for w in nonempty(got))


def test_whole_chips(folder: Path, binary):
    coverage = counted(binary, folder / "mask", FIELDS["mask"])
    shares = [share(i, 0, 0, HEIGHT, WIDTH) for i in range(N)]
    assert shares == sorted(shares)
    for most, n in [(shares[2], 3), (np.nextafter(shares[2], 0), 2), (1, N)]:
        window = chaski.WholeChip(max_nodata=float(most), coverage=coverage)
        options: dict[str, Any] = {"fields": fields_of("mask"), "window": window, "batch_size": 2}
        with chaski.load(folder / "mask", **options) as loader:
            paths = sorted(str(p) for b in loader for p in b["path"][b["valid"] > 0])
        assert paths == [f"{i}.tif" for i in range(n)]


def test_ranks_epochs_and_states(folder: Path, binary):
    """All ranks and epochs share the same windows, and a state goes on where it was."""
    coverage = counted(binary, folder / "alpha", FIELDS["alpha"])
    grid = chaski.Grid(16, max_nodata=0.5, coverage=coverage)
    options: dict[str, Any] = {"fields": fields_of("alpha"), "window": grid, "seed": 9}
    options |= {"pixels": chaski.Pixels(windows=True), "batch_size": 6, "last": "pad"}

    def places(batch: Any) -> list[tuple[Any, ...]]:
        rows = np.flatnonzero(batch["valid"])
        return [(str(batch["path"][k]), *map(int, batch["window"][k])) for k in rows]

    with chaski.load(folder / "alpha", **options) as loader:
        epochs = [[p for b in loader for p in places(b)] for _ in range(2)]
        assert epochs[0] != epochs[1] and sorted(epochs[0]) == sorted(epochs[1])
        it = iter(loader)
        next(it)
        state = loader.state_dict()
        rest = [p for b in it for p in places(b)]
    ranks = []
    for rank in range(2):
        with chaski.load(folder / "alpha", rank=rank, world_size=2, **options) as loader:
            ranks += [p for b in loader for p in places(b)]
    assert sorted(ranks) == sorted(epochs[0])
    with chaski.load(folder / "alpha", **options) as loader:
        loader.load_state_dict(state)
        assert [p for b in loader for p in places(b)] == rest
    other = {**options, "window": chaski.Grid(16, max_nodata=0.4, coverage=coverage)}
    with chaski.load(folder / "alpha", **other) as loader, pytest.raises(chaski.StateError):
        loader.load_state_dict(state)


def test_what_is_left_out_is_said(folder: Path, binary, caplog):
    coverage = counted(binary, folder / "nodata", FIELDS["nodata"])
    grid = chaski.Grid(16, stride=16, max_nodata=0.5, coverage=coverage)
    with chaski.load(folder / "nodata", batch_size=1, window=grid) as loader:
        n = loader.samples
    text = logged(caplog, "max_nodata=0.5")
    everything = N * 7 * 9
    assert f"windows={everything - n} left={n} max_nodata=0.5" in text


def test_conditions_and_strata(folder: Path, binary):
    """Rows of the coverage are those of the table, whatever is selected."""
    table = folder / "rows.csv"
    lines = [f"nodata/{i}.tif,{'a' if i % 2 else 'b'},{i}" for i in range(N)]
    table.write_text("\n".join(["path,group,n", *lines]))
    fields: dict[str, Any] = {
        "image": chaski.Field(column="path", dtype="native", validity="ok"),
        "n": "n",
    }
    named: dict[str, Any] = {"image": fields["image"]}
    coverage = counted(binary, table, named)
    rows = chaski.Rows(where=[("n", ">", 0)], strata="group")
    for window in nonempty(
        [
            chaski.Grid(16, stride=16, max_nodata=0.5, coverage=coverage),
            chaski.RandomWindow(16, per_asset=9, max_nodata=0.5, coverage=coverage),
        ]
    ):
        options: dict[str, Any] = {"pixels": chaski.Pixels(windows=True), "window": window}
        seen = set()
        with chaski.load(table, batch_size=8, fields=fields, rows=rows, **options) as loader:
            for batch in loader:
                for k in np.flatnonzero(batch["valid"]):
                    i, (y, x, h, w) = int(batch["n"][k]), map(int, batch["window"][k])
                    assert spread(i, y, x, h, w) <= 0.5 + 1e-9
                    seen.add(i)
        assert seen == {1, 2, 3}


def test_what_does_not_fit(folder: Path, binary, tmp_path: Path):
    coverage = counted(binary, folder / "nodata", FIELDS["nodata"])
    limit: dict[str, Any] = {"max_nodata": 0.5, "coverage": coverage}
    tiles = {"kind": "tile_window", "size": 16, "max_nodata": 0.5, "coverage": str(coverage)}
    classes = tmp_path / "classes.weights"
    command = [binary, "stats", "--sampling", "--classes", "7", "-o", str(classes)]
    subprocess.run([*command, str(folder / "nodata")], check=True, capture_output=True)
    refused = [
        (chaski.Grid(16, max_nodata=0.5), "it needs coverage"),
        (chaski.Grid(16, coverage=coverage), "it is for max_nodata"),
        (chaski.Grid(16, max_nodata=1.5, coverage=coverage), "from 0 to 1"),
        (chaski.Grid(16, max_nodata=-0.5, coverage=coverage), "from 0 to 1"),
        (chaski.Grid(16, max_nodata=0.5, coverage=classes), "without classes"),
        (chaski.Grid(16, max_nodata=0.5, coverage=folder / "none"), "none"),
        (tiles, 'only chip, .* leave windows out; "weighted_window" with the'),
    ]
    # The way out that the refusal of tiles names.
    away = chaski.WeightedWindow(16, weights=coverage)
    with chaski.load(folder / "nodata", batch_size=1, window=away) as loader:
        assert loader.samples
    for window, says in nonempty(refused):
        with pytest.raises((chaski.Error, ValueError), match=says):
            chaski.load(folder / "nodata", batch_size=1, window=window)
    with pytest.raises(chaski.SpecError, match="leaves windows out"):
        chaski.paste([], folder / "nodata/0.tif", tmp_path / "a.tif", grid=chaski.Grid(16, **limit))
    # The counts are of other files.
    (tmp_path / "few").mkdir()
    (tmp_path / "few/0.tif").write_bytes((folder / "nodata/0.tif").read_bytes())
    with pytest.raises(chaski.UnsupportedError, match="rows"):
        chaski.load(tmp_path / "few", batch_size=1, window=chaski.Grid(16, **limit))


@pytest.mark.parametrize("argmax", [True, False])
@pytest.mark.parametrize("missing", ["nodata", "mask", "alpha", "no"])
def test_pasted_nodata(binary, tmp_path, argmax, missing):
    """A prediction of NaN, and a pixel that the scene lacks, is nodata in the pasted raster."""
    rng = np.random.default_rng(2)
    scene = rng.integers(0, 3, (2, 48, 40)).astype("uint8")
    profile = {"driver": "GTiff", "width": 40, "height": 48, "dtype": "uint8", "count": 2}
    profile |= {"nodata": 0} if missing == "nodata" else {}
    profile |= {"alpha": "yes"} if missing == "alpha" else {"alpha": "no"}
    with (
        rasterio.Env(GDAL_TIFF_INTERNAL_MASK=True),
        rasterio.open(
            tmp_path / "s.tif", "w", tiled=True, blockxsize=16, blockysize=16, **profile
        ) as f,
    ):
        f.write(scene)
        if missing == "mask":
            f.write_mask(scene[0] > 0)
    scores = rng.random((12, 5, 12, 16), "float32")
    scores[3, :, 2:9] = np.nan
    scores[5, 1] = np.nan
    grid = chaski.Grid((12, 16), pad=True)
    chaski.paste(scores, tmp_path / "s.tif", tmp_path / "o.tif", grid=grid, argmax=argmax)
    whole = np.full((5, 48, 48), np.nan, "float32")
    for k, s in enumerate(scores):
        whole[:, k // 3 * 12 :, k % 3 * 16 :][:, :12, :16] = s
    whole = whole[:, :, :40]
    with rasterio.open(tmp_path / "s.tif") as f:
        whole[:, f.dataset_mask() == 0] = np.nan
    empty = np.isnan(whole).all(0)
    with rasterio.open(tmp_path / "o.tif") as f:
        if argmax:
            assert f.nodata == 255
            want = np.where(np.isnan(whole), -1, whole).argmax(0)
            want[empty] = 255
            assert np.array_equal(f.read(1), want)
        else:
            assert np.isnan(f.nodata) and np.allclose(f.read(), whole, equal_nan=True)
    assert empty.any() and not empty.all()
