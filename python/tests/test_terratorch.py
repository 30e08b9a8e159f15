"""Data modules of TerraTorch give the same batches whether rioxarray or the engine reads files."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pytest
import rasters
from conftest import nonempty

pytest.importorskip("terratorch", reason="TerraTorch is not installed: make frameworks")

import terratorch.datamodules as theirs
import torch
from rasterio.transform import from_origin

import chaski.terratorch as ours

pytestmark = pytest.mark.usefixtures("binary")

N, SIDE = 14, 32


def write(path, x, nodata=None):
    where = from_origin(5e5, 4e6, 10, 10)
    rasters.write(path, x, crs="EPSG:32633", transform=where, nodata=nodata)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    root = tmp_path_factory.mktemp("terratorch")
    rng = np.random.default_rng(0)
    for i in range(N):
        image = rng.integers(0, 4000, (6, SIDE, SIDE)).astype("uint16")
        write(root / f"c{i:02}_image.tif", image, 7)
        write(root / f"c{i:02}_mask.tif", (image[:1] % 4).astype("uint8"))
        real = rng.normal(0, 1, (1, SIDE, SIDE)).astype("float32")
        real[:, 3:9] = np.nan
        write(root / f"c{i:02}_real.tif", real, -1.0)
        write(root / f"c{i:02}_wide.tif", (image[:1].astype("int32") - 100) * 30001, 0)
    (root / "train.txt").write_text("".join(f"c{i:02}\n" for i in range(10)))
    (root / "val.txt").write_text("".join(f"c{i:02}\n" for i in range(10, N)))
    return root


def options(folder, label="mask", **more):
    roots = {f"{s}_data_root": folder for s in ("train", "val", "test")}
    grep = {"img_grep": "*_image.tif", "label_grep": f"*_{label}.tif"}
    splits = {"train_split": folder / "train.txt", "val_split": folder / "val.txt"}
    return {"batch_size": 4, "num_workers": 0, **roots, **grep, **splits, **more}


def same(a, b):
    assert a.keys() == b.keys()
    for name, v in a.items():
        if isinstance(v, dict):
            same(v, b[name])
            continue
        if not isinstance(v, torch.Tensor):
            assert str(v) == str(b[name]), name
            continue
        assert v.dtype == b[name].dtype and v.shape == b[name].shape, name
        assert torch.equal(torch.nan_to_num(v, -9.0), torch.nan_to_num(b[name], -9.0)), name


SEGMENTATION = "GenericNonGeoSegmentationDataModule"
REGRESSION = "GenericNonGeoPixelwiseRegressionDataModule"
BANDS = ["BLUE", "GREEN", "RED", "NIR_BROAD", "SWIR_1", "SWIR_2"]


@pytest.mark.parametrize(
    ("name", "label", "more"),
    [
        (SEGMENTATION, "mask", {}),
        (SEGMENTATION, "mask", {"no_data_replace": -1, "reduce_zero_label": True}),
        (SEGMENTATION, "mask", {"dataset_bands": BANDS, "output_bands": ["RED", "BLUE"]}),
        (SEGMENTATION, "mask", {"constant_scale": 0.0001, "return_georeference": True}),
        (
            SEGMENTATION,
            "mask",
            {
                "dataset_bands": ["a", "b"],
                "output_bands": ["a", "b"],
                "expand_temporal_dimension": True,
            },
        ),
        (REGRESSION, "real", {"no_data_replace": 0}),
        (REGRESSION, "real", {"no_label_replace": -1}),
        (SEGMENTATION, "wide", {"no_label_replace": 0}),
    ],
)
def test_equal(folder, name, label, more):
    if name == SEGMENTATION:
        more = {**more, "num_classes": 4}
    both(name, options(folder, label, **more))


def both(name, how):
    """Compares the batches of a module of TerraTorch with those of ours."""
    batches = []
    for module in (theirs, ours):
        data = getattr(module, name)(**how)
        data.setup("fit")
        data.setup("test")
        torch.manual_seed(3)
        np.random.seed(3)
        with warnings.catch_warnings():
            if module is ours:
                warnings.filterwarnings("error", message="TerraTorch reads")
            loaders = data.train_dataloader(), data.val_dataloader(), data.test_dataloader()
            batches.append([b for loader in loaders for b in loader])
    assert all(d._ahead for d in (data.train_dataset, data.val_dataset))
    assert len(batches[0]) == len(batches[1]) > 5
    for a, b in nonempty(zip(*batches, strict=True)):
        same(a, b)
    return data


@pytest.mark.parametrize("kind", ["tif", "planar.tif", "real.tif", "png", "jpg"])
def test_classes(tmp_path, kind):
    """Images in folders, in the layouts that PIL and tifffile have them."""
    rng = np.random.default_rng(1)
    drivers = {"tif": "GTiff", "png": "PNG", "jpg": "JPEG"}
    for i in range(24):
        path = tmp_path / "ab"[i % 2] / f"{i:02}.{kind.split('.')[-1]}"
        path.parent.mkdir(exist_ok=True)
        x = rng.integers(0, 255, (3, SIDE, SIDE)).astype("uint8")
        how = {"driver": drivers[path.suffix[1:]]}
        if kind == "real.tif":
            x = rng.normal(0, 1, (5, SIDE, SIDE)).astype("float32")
        if path.suffix == ".tif":
            how["interleave"] = "band" if "planar" in kind else "pixel"
        rasters.write(path, x, **how)
    roots = {f"{s}_data_root": tmp_path for s in ("train", "val", "test")}
    more = {"means": [0.0] * len(x), "stds": [1.0] * len(x), "num_classes": 2}
    data = both(
        "GenericNonGeoClassificationDataModule",
        {"batch_size": 4, "num_workers": 0, **roots, **more},
    )
    assert any(data.train_dataset._layouts.values())


@pytest.mark.parametrize(
    "more",
    [
        {"task": "segmentation", "num_classes": 4},
        {"task": "regression", "no_data_replace": 0, "label_grep": "*_real.tif"},
        {"task": "segmentation", "num_classes": 4, "sample_num_modalities": 1},
        {"concat_bands": True, "task": "segmentation", "num_classes": 4},
    ],
)
def test_modalities(folder, tmp_path, more):
    for what in ("image", "mask", "real", "wide"):
        (tmp_path / what).mkdir()
    for i in range(24):
        for what in ("image", "mask", "real", "wide"):
            name = f"c{i % N:02}_{what}.tif"
            (tmp_path / what / f"s{i:02}_{what}.tif").symlink_to(folder / name)
    roots = {"s2": str(tmp_path / "image"), "dem": str(tmp_path / "wide")}
    label = "real" if more["task"] == "regression" else "mask"
    how = {
        "batch_size": 4,
        "modalities": ["s2", "dem"],
        "means": {"s2": [0.0] * 6, "dem": [0.0]},
        "stds": {"s2": [1.0] * 6, "dem": [1.0]},
        **{f"{s}_data_root": roots for s in ("train", "val", "test")},
        **{f"{s}_label_data_root": str(tmp_path / label) for s in ("train", "val", "test")},
        "image_grep": {"s2": "*_image.tif", "dem": "*_wide.tif"},
        "label_grep": f"*_{label}.tif",
        "check_stackability": False,
        **more,
    }
    both("GenericMultiModalDataModule", how)


def test_what_terratorch_reads():
    with pytest.warns(UserWarning, match="no generic dataset"):
        assert ours.accelerate([1]) == [1]  # type: ignore[type-var]


def test_a_configuration(folder):
    from jsonargparse import ArgumentParser
    from lightning import LightningDataModule

    parser = ArgumentParser()
    parser.add_subclass_arguments(LightningDataModule, "data")
    arguments = {k: str(v) for k, v in options(folder, num_classes=4).items()}
    arguments |= {"batch_size": 4, "num_workers": 3, "num_classes": 4}
    config = {"class_path": f"chaski.terratorch.{SEGMENTATION}", "init_args": arguments}
    data = parser.instantiate_classes(parser.parse_object({"data": config})).data
    assert type(data) is ours.GenericNonGeoSegmentationDataModule
    data.setup("validate")
    assert data.num_workers == 0
    assert [len(b["image"]) for b in data.val_dataloader()] == [4]


def test_files_of_several_sizes(folder, tmp_path):
    for i in range(3):
        x = np.full((1, SIDE + i, SIDE), i, "uint8")
        write(tmp_path / f"{i}_image.tif", x)
        write(tmp_path / f"{i}_mask.tif", x)
    roots = {f"{s}_data_root": tmp_path for s in ("train", "val", "test")}
    more = {"train_split": None, "val_split": None, "num_classes": 4, **roots}
    pair = [getattr(m, SEGMENTATION)(**options(folder, **more)) for m in (theirs, ours)]
    for data in pair:
        data.setup("test")
    with pytest.warns(UserWarning, match="TerraTorch reads"):
        for i in range(3):
            same(pair[0].test_dataset[i], pair[1].test_dataset[i])


def test_copies(folder):
    data = ours.GenericNonGeoSegmentationDataModule(**options(folder, num_classes=4))
    data.setup("validate")
    same(data.val_dataset[1], pickle.loads(pickle.dumps(data.val_dataset))[1])
    figure = data.val_dataset.plot(data.val_dataset[0])
    assert len(figure.axes) > 1
