"""Data modules of TerraTorch give the same batches whether rioxarray or the engine reads files."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pytest
import rasters
from conftest import nonempty

pytest.importorskip("terratorch", reason="TerraTorch is not installed: make frameworks")

import terratorch.datamodules.generic_pixel_wise_data_module as theirs
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
    batches = []
    for module in (theirs, ours):
        data = getattr(module, name)(**options(folder, label, **more))
        data.setup("fit")
        data.setup("test")
        torch.manual_seed(3)
        with warnings.catch_warnings():
            if module is ours:
                warnings.filterwarnings("error", message="TerraTorch reads")
            loaders = data.train_dataloader(), data.val_dataloader(), data.test_dataloader()
            batches.append([b for loader in loaders for b in loader])
    assert all(d._ahead for d in (data.train_dataset, data.val_dataset))
    assert len(batches[0]) == len(batches[1]) > 5
    for a, b in nonempty(zip(*batches, strict=True)):
        same(a, b)


def test_a_configuration(folder):
    from jsonargparse import ArgumentParser
    from lightning import LightningDataModule

    parser = ArgumentParser()
    parser.add_subclass_arguments(LightningDataModule, "data")
    arguments = {k: str(v) for k, v in options(folder, num_classes=4).items()}
    arguments |= {"batch_size": 4, "num_workers": 3, "num_classes": 4}
    config = {"class_path": f"chaski.terratorch.{SEGMENTATION}", "init_args": arguments}
    data = parser.instantiate_classes(parser.parse_object({"data": config})).data
    assert type(data) is ours.GenericNonGeoSegmentationDataModule and data.num_workers == 0
    data.setup("validate")
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
