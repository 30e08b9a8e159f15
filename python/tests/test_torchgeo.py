"""Datasets of TorchGeo give the same samples whether rasterio or the engine reads the pixels."""

from __future__ import annotations

import copy
import itertools
import pickle
import warnings

import numpy as np
import pytest

pytest.importorskip("torchgeo.datasets", reason="TorchGeo is not installed: make frameworks")

import pandas as pd
import pyproj
import rasterio
import rasterio.warp
import rasters
import torch
from affine import Affine
from conftest import nonempty
from rasterio.enums import Resampling
from rasterio.transform import from_origin
from rasterio.vrt import WarpedVRT
from torch.utils.data import DataLoader
from torchgeo.datasets import RasterDataset, stack_samples
from torchgeo.samplers import GriddedPatchSampler, RandomPatchSampler

import chaski.torchgeo
from chaski._rpc import PREFETCH
from chaski.torchgeo import accelerate

pytestmark = pytest.mark.usefixtures("binary")

RES, WEST, NORTH = 10.0, 500_000.0, 5_000_000.0
SIDE = 96
# Files side by side: the second one overlaps the first one, the third one lies apart.
FILES = {"20240101": (0, 0), "20240202": (64, 16), "20240303": (200, -30)}
SUFFIX = ("B02", "B03")


def write(path, column, row, x, nodata=None, epsg=32633):
    how = {"tiled": True, "blockxsize": 32, "blockysize": 32, "compress": "deflate"}
    transform = from_origin(WEST + column * RES, NORTH - row * RES, RES, RES)
    rasters.write(path, x, crs=f"EPSG:{epsg}", transform=transform, nodata=nodata, **how)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Images of three bands, masks, and the images with a file for each band."""
    root = tmp_path_factory.mktemp("torchgeo")
    rng = np.random.default_rng(0)
    for name in ("images", "masks", "bands", "floats", "nodata"):
        (root / name).mkdir()
    for date, (column, row) in FILES.items():
        image = rng.integers(0, 4000, (3, SIDE, SIDE)).astype("uint16")
        write(root / "images" / f"a_{date}.tif", column, row, image)
        write(
            root / "masks" / f"m_{date}.tif",
            column,
            row,
            rng.integers(0, 9, (1, SIDE, SIDE)).astype("uint8"),
        )
        for band, name in enumerate(SUFFIX):
            write(root / "bands" / f"s_{date}_{name}.tif", column, row, image[band : band + 1], 0)
        image[:, 20:60, 30:90] = 7
        write(root / "nodata" / f"n_{date}.tif", column, row, image, 7)
        real = rng.normal(0, 1, (1, SIDE, SIDE)).astype("float32")
        real[:, 20:60, 30:90] = np.nan
        write(root / "floats" / f"f_{date}.tif", column, row, real, np.nan)
    return root


class Dated(RasterDataset):
    filename_glob = "*.tif"
    filename_regex = r"._(?P<date>\d+)"


class Masks(Dated):
    is_image = False


class Picked(Dated):
    all_bands = ("one", "two", "three")


class Bands(Dated):
    filename_glob = "*_B02.tif"
    filename_regex = r"._(?P<date>\d+)_(?P<band>B\d+)"
    separate_files = True
    all_bands = SUFFIX


def both(kind, *args, **kwargs):
    """Returns a dataset as TorchGeo has it, and the same one with an engine."""
    return kind(*args, **kwargs), accelerate(kind(*args, **kwargs))


def boxes(n, height=40, width=56, seed=3):
    """Returns slices at pixels around the files, some of them past all edges."""
    rng = np.random.default_rng(seed)
    out = []
    for _ in range(n):
        column, row = rng.integers(-50, 320), rng.integers(-60, 120)
        x, y = WEST + column * RES, NORTH - row * RES
        out.append((slice(x, x + width * RES), slice(y - height * RES, y)))
    return out


def same(theirs, ours, close=0.0):
    assert theirs.keys() == ours.keys()
    for name, v in theirs.items():
        assert ours[name].dtype == v.dtype, name
        torch.testing.assert_close(ours[name], v, rtol=0, atol=close, equal_nan=True)


def compare(theirs, ours, slices, close=0.0):
    """Compares the samples of slices, and returns how many there are."""
    wanted = []
    for s in slices:
        try:
            wanted.append((s, theirs[s]))
        except IndexError:
            with pytest.raises(IndexError):
                ours[s]
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # the engine reads all of them
        got = ours.__getitems__([s for s, _ in wanted])
        for (s, sample), batched in zip(wanted, got, strict=True):
            same(sample, batched, close)
            same(sample, ours[s], close)
    return len(wanted)


@pytest.mark.parametrize(
    ("kind", "name", "options"),
    [
        (Dated, "images", {}),
        (Dated, "nodata", {}),
        (Dated, "floats", {}),
        (Dated, "images", {"time_series": True}),
        (Dated, "nodata", {"time_series": True, "cache": False}),
        (Dated, "images", {"transforms": lambda s: {**s, "image": s["image"] / 2}}),
        (Masks, "masks", {}),
        (Picked, "images", {"bands": ("three", "one")}),
        (Bands, "bands", {}),
        (Bands, "bands", {"bands": ("B03",), "time_series": True}),
    ],
)
def test_equal(folder, kind, name, options):
    theirs, ours = both(kind, folder / name, **options)
    assert ours.bounds == theirs.bounds and ours.crs == theirs.crs and ours.res == theirs.res
    assert ours.index.equals(theirs.index)
    assert compare(theirs, ours, boxes(60)) > 20
    days = pd.Timestamp("2024-02-01"), pd.Timestamp("2024-12-31")
    steps = itertools.cycle([None, 1, 2])
    dated = [(x, y, slice(*days, next(steps))) for x, y in boxes(40, seed=4)]
    assert compare(theirs, ours, dated) > 10
    x, y, _ = theirs.bounds
    assert compare(theirs, ours, [x, (x, y), (slice(None), slice(None))]) == 3


def test_samplers(folder):
    theirs, ours = both(Dated, folder / "images")
    masks, our_masks = both(Masks, folder / "masks")
    for dataset, engine in (
        (theirs, ours),
        (theirs & masks, ours & our_masks),
        (theirs & masks, ours & masks),
        (theirs & masks, accelerate(theirs & masks)),
    ):
        for sampler, options in (
            (RandomPatchSampler, {"length": 24, "generator": 5}),
            (GriddedPatchSampler, {"stride": 24}),
        ):
            batches = [
                list(
                    DataLoader(
                        d,
                        batch_size=7,
                        sampler=sampler(d, size=32, **options),
                        collate_fn=stack_samples,
                    )
                )
                for d in (dataset, engine)
            ]
            assert len(batches[0]) == len(batches[1]) > 1
            for a, b in zip(*batches, strict=True):
                same(a, b)
    chained, engine = (theirs & masks) & masks, (ours & our_masks) & our_masks
    window = boxes(1)[0]
    window = tuple(slice(s.start, s.start + 320) for s in theirs.bounds[:2])
    same(chained[window], engine.__getitems__([window])[0])


def test_read_ahead(folder):
    """Batches are read before a loop asks for them, also after a loop that was left."""
    theirs, ours = both(Dated, folder / "images")

    def loop(dataset):
        sampler = RandomPatchSampler(dataset, size=32, length=40, generator=5)
        return iter(DataLoader(dataset, 4, sampler=sampler, collate_fn=stack_samples))

    left = loop(ours)
    next(left)
    assert len(ours._ahead.begun) == PREFETCH
    for a, b in zip(loop(theirs), loop(ours), strict=True):
        same(a, b)
    assert not ours._ahead.begun


def test_tiles_in_common(folder):
    """Windows that overlap, and so share tiles, have the pixels of TorchGeo."""
    theirs, ours = both(Dated, folder / "images")
    grid = list(GriddedPatchSampler(theirs, size=48, stride=8))[:60]
    compare(theirs, ours, grid)


@pytest.mark.parametrize("kind", ["images", "masks", "nodata", "floats"])
@pytest.mark.parametrize(
    "options",
    [
        {"res": 20.0},
        {"res": (7.0, 12.5)},
        {"crs": 6933},
        {"crs": 32632, "res": 13.0},
        {"crs": 4326, "time_series": True},
    ],
)
def test_another_map_or_resolution(folder, kind, options):
    """Files are warped and resampled as TorchGeo has it, but for the last bit of floats."""
    if "crs" in options:
        options = {**options, "crs": pyproj.CRS.from_epsg(options["crs"])}
    theirs, ours = both(Masks if kind == "masks" else Dated, folder / kind, **options)
    close = 1e-6 if kind == "floats" else 0
    assert compare(theirs, ours, inside(theirs, 30), close) > 15


def inside(dataset, n, side=64):
    """Returns slices at random places, some of them on the grid of the dataset and some not."""
    rng = np.random.default_rng(7)
    x, y, _ = dataset.bounds
    out = []
    for k in range(n):
        column = rng.uniform(-side / 2, (x.stop - x.start) / x.step - side / 2)
        row = rng.uniform(-side / 2, (y.stop - y.start) / y.step - side / 2)
        if k % 2:
            column, row = round(column), round(row)
        west, north = x.start + column * x.step, y.stop - row * y.step
        out.append((slice(west, west + side * x.step), slice(north - side * y.step, north)))
    return out


class Overridden(Dated):
    """Reads other pixels than its files have where they have 7."""

    nodata = 7


class Opened(Dated):
    """Opens its files in a way of its own: scenes of another map, by the nearest pixel."""

    def _load_warp_file(self, filepath, crs=None):
        with rasterio.open(filepath) as file:
            return WarpedVRT(
                file,
                crs=crs or "EPSG:32633",
                transform=file.transform @ Affine.scale(2),
                width=SIDE // 2,
                height=SIDE // 2,
            )


class Cubic(Dated):
    """Opens its files in a way that the engine does not know."""

    def _load_warp_file(self, filepath, crs=None):
        with rasterio.open(filepath) as file:
            return WarpedVRT(file, crs="EPSG:32632", resampling=Resampling.cubic)


@pytest.mark.parametrize("kind", [Overridden, Opened])
def test_files_opened_in_a_way_of_their_own(folder, kind):
    theirs, ours = both(kind, folder / "nodata")
    assert compare(theirs, ours, inside(theirs, 30)) > 15


def test_what_torchgeo_reads(folder):
    """It says so once, and samples stay equal."""
    theirs, ours = both(Cubic, folder / "images")
    windows = [w for w in inside(theirs, 8) if there(theirs, w)]
    with pytest.warns(UserWarning, match="in a way of their own") as said:
        for window in windows:
            same(theirs[window], ours[window])
    assert len(said) == 1
    with pytest.warns(UserWarning, match="not a dataset of rasters"):
        assert accelerate(windows) is windows


def there(dataset, window):
    try:
        return dataset[window]
    except IndexError:
        return None


class Ordinal(Masks):
    """Maps its labels after they are read, as CDL does."""

    def __getitem__(self, index):
        sample = super().__getitem__(index)
        sample["mask"] = 100 + sample["mask"]
        return sample


class Pairs(Dated):
    """Reads masks beside its images, as LandCoverAIGeo does."""

    def __getitem__(self, index):
        x, y, t = self._disambiguate_slice(index)
        df = self.index.cx[x.start : x.stop, y.start : y.stop]
        if df.empty:
            raise IndexError
        masks = df.filepath.apply(lambda p: p.replace("images/a_", "masks/m_"))
        return {
            "image": self._merge_or_stack(df.filepath, index, self.band_indexes),
            "mask": self._merge_or_stack(masks, index).long(),
        }


@pytest.mark.parametrize(("kind", "name"), [(Ordinal, "masks"), (Pairs, "images")])
def test_a_getitem_of_its_own(folder, kind, name):
    theirs, ours = both(kind, folder / name)
    assert compare(theirs, ours, boxes(30)) > 10
    assert isinstance(ours, kind)


def test_one_file_of_another_map(folder, tmp_path):
    for f in (folder / "images").iterdir():
        (tmp_path / f.name).symlink_to(f)
    x = np.full((3, SIDE, SIDE), 9, "uint16")
    write(tmp_path / "z_20240404.tif", 0, 300, x, epsg=32632)
    theirs, ours = both(Dated, tmp_path)
    assert compare(theirs, ours, boxes(20)) > 5
    with rasterio.open(tmp_path / "z_20240404.tif") as f:
        west, south, east, north = rasterio.warp.transform_bounds(f.crs, "EPSG:32633", *f.bounds)
    middle = (west + east) / 2, (south + north) / 2
    window = tuple(slice(v - 160, v + 160) for v in middle)
    same(theirs[window], ours[window])


def test_copies(folder):
    _, ours = both(Dated, folder / "images")
    window = boxes(1, seed=1)[0]
    want = ours[window]
    same(want, copy.deepcopy(ours)[window])
    changed = copy.copy(ours)
    changed.index = ours.index.iloc[:1]
    theirs, _ = both(Dated, folder / "images")
    theirs.index = changed.index
    assert compare(theirs, changed, boxes(20)) > 2
    same(want, ours[window])


@pytest.mark.parametrize("how", ["fewer rows", "another file", "another outline", "other times"])
def test_an_index_that_is_changed_in_place(folder, how):
    theirs, ours = both(Dated, folder / "images")
    windows = boxes(20)
    before = images(ours, windows)
    for dataset in (theirs, ours):
        index = dataset.index
        if how == "fewer rows":
            index.drop(index.index[1:], inplace=True)
        elif how == "another file":
            paths = index.filepath.tolist()
            index["filepath"] = [paths[-1], *paths[1:]]
        elif how == "another outline":
            index["geometry"] = [index.geometry.iloc[-1]] * len(index)
        else:
            index.index = index.index[::-1]
    assert compare(theirs, ours, windows) > 0
    after = images(ours, windows)
    unlike = [
        a is None or b is None or not torch.equal(a, b)
        for a, b in zip(before, after, strict=True)
        if a is not b
    ]
    assert any(unlike) or how == "other times"


def images(dataset, windows):
    """Returns the pixels of windows, None where no file lies."""
    out = []
    for window in windows:
        try:
            out.append(dataset[window]["image"])
        except IndexError:
            out.append(None)
    return out


def test_pickled(folder):
    ours = accelerate(RasterDataset(folder / "masks"))
    window = boxes(1, seed=1)[0]
    same(ours[window], pickle.loads(pickle.dumps(ours))[window])


def test_workers(folder):
    """In worker processes TorchGeo reads, and a warning says what is faster."""
    theirs, ours = both(Dated, folder / "images")
    ours[boxes(1, seed=1)[0]]  # the engine runs already
    with warnings.catch_warnings(record=True):  # of the workers, which print them
        batches = [
            list(
                DataLoader(
                    d,
                    sampler=RandomPatchSampler(d, size=16, length=2, generator=1),
                    num_workers=1,
                    collate_fn=stack_samples,
                )
            )
            for d in (theirs, ours)
        ]
    for a, b in zip(*batches, strict=True):
        same(a, b)


def test_a_file_that_cannot_be_read(folder, tmp_path):
    for f in (folder / "images").iterdir():
        (tmp_path / f.name).write_bytes(f.read_bytes())
    _, ours = both(Dated, tmp_path)
    bad = tmp_path / "a_20240101.tif"
    bad.write_bytes(bad.read_bytes()[:2000])
    x, y, _ = ours.bounds
    with pytest.raises(chaski.Error) as e:
        ours[slice(x.start, x.start + 320), slice(NORTH - 320, NORTH)]
    assert "a_20240101.tif" in e.value.file


@pytest.fixture(scope="module")
def pairs(tmp_path_factory):
    """Chips with masks of three classes."""
    root = tmp_path_factory.mktemp("pairs")
    rng = np.random.default_rng(2)
    for name in ("images", "masks"):
        (root / name).mkdir()
    for i in range(22):
        image = rng.integers(0, 4000, (3, 32, 32)).astype("uint16")
        write(root / "images" / f"{i:02}.tif", i * 40, 0, image)
        write(root / "masks" / f"{i:02}.tif", i * 40, 0, (image[:1] % 3).astype("uint8"))
    return root


FIELDS = {
    "image": chaski.Field(
        pattern="images/{id}.tif",
        dtype="float32",
        normalize={"mean": [2000] * 3, "std": [1000] * 3},
    ),
    "mask": chaski.Field(pattern="masks/{id}.tif", dtype="uint8"),
}


def module(folder, **more):
    options = {"fields": FIELDS, "val": {"rows": chaski.Rows(take=6)}, "seed": 4, **more}
    return chaski.torchgeo.ChaskiDataModule(folder, batch_size=4, **options)


def task(seen):
    """Returns their task, which notes the samples of each step, and trains a small net."""
    from torchgeo.tasks import SemanticSegmentation

    class Task(SemanticSegmentation):
        def training_step(self, batch, *args):
            seen.append(batch["sample"].tolist())
            return super().training_step(batch, *args)

    return Task(model="unet", backbone="resnet18", in_channels=3, num_classes=3, loss="ce")


def trainer(**options):
    from lightning import Trainer

    quiet = {"logger": False, "enable_progress_bar": False, "enable_model_summary": False}
    quiet["enable_checkpointing"] = "callbacks" in options
    return Trainer(accelerator="cpu", **quiet, **options)


def test_their_task_trains(pairs, tmp_path):
    """It resumes from a checkpoint inside of an epoch with the batch that is next."""
    from lightning.pytorch.callbacks import ModelCheckpoint

    whole, rest = [], []
    saver = ModelCheckpoint(tmp_path, "a", every_n_train_steps=7)
    trainer(max_epochs=2, callbacks=[saver]).fit(task(whole), module(pairs))
    assert [len(s) for s in whole] == [4] * 10  # the last batch of each epoch is left out
    assert len({i for step in whole[:5] for i in step}) == 20 and whole[:5] != whole[5:]
    trainer(max_epochs=2).fit(task(rest), module(pairs), ckpt_path=tmp_path / "a.ckpt")
    assert rest == whole[7:]


def test_batches_and_pictures(pairs):
    data = module(pairs, pixels=chaski.Pixels(geo=True), test={})
    assert data.predict_dataloader() == []
    batches = list(data.val_dataloader())
    assert [len(b["image"]) for b in batches] == [4, 2]  # no rows that only pad
    for b in batches:
        assert b["image"].dtype == torch.float32 and b["mask"].dtype == torch.int64
        assert b["mask"].shape == b["image"][:, 0].shape
        for k, i in enumerate(nonempty(b["sample"].tolist())):
            with rasterio.open(pairs / "images" / f"{i:02}.tif") as f:
                want = torch.from_numpy((f.read().astype("float64") - 2000) / 1000)
                bounds = torch.tensor(f.bounds, dtype=torch.float64)
            assert torch.allclose(b["image"][k].double(), want, atol=1e-6)
            assert torch.equal(b["bounds"][k], bounds)
    sample = {k: v[0] for k, v in batches[0].items()}
    sample["prediction"] = sample["mask"]
    figure = data.plot(sample)
    assert len([a for a in figure.axes if a.images]) == 3
