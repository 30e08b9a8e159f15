"""Whole images of any size, resampled to one: against GDAL, Pillow and torch."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import rasters
from conftest import nonempty

import chaski
from chaski import Field, ResizedWindow

pytestmark = pytest.mark.usefixtures("one_engine")

rasterio = pytest.importorskip("rasterio", reason="needs rasterio to write rasters")
SIZES = [(40, 50), (41, 47), (24, 20), (12, 70), (13, 9), (64, 64)]
H, W = 24, 20
ABOUT = {
    "id": "classes",
    "dataset_version": "1.0.0",
    "description": "land cover",
    "licenses": ["CC-BY-4.0"],
    "providers": [{"name": "us", "roles": ["producer"]}],
    "tasks": ["semantic-segmentation"],
}
WHOLE = ResizedWindow((H, W), whole=True)


def write(path: Path, x: np.ndarray, **profile: Any) -> None:
    path.parent.mkdir(exist_ok=True, parents=True)
    rasters.write(path, x, **profile)


@pytest.fixture(scope="module")
def data(tmp_path_factory, binary) -> Path:
    root = tmp_path_factory.mktemp("whole")
    rng = np.random.default_rng(7)
    for i, size in enumerate(SIZES):
        write(root / f"images/{i}.tif", rng.integers(1, 255, (3, *size), np.uint8))
        write(root / f"masks/{i}.png", rng.integers(0, 9, (1, *size), np.uint8))
        x = rng.random((2, *size), np.float32)
        x[rng.random(x.shape) < 0.05] = -1
        write(root / f"holes/{i}.tif", x, nodata=-1)
        write(root / f"large/{i}.tif", rng.integers(0, 9, (1, *(2 * s for s in size)), np.uint8))
    rows = [f"images/{i}.tif,masks/{i}.png,{i}" for i in range(len(SIZES))]
    (root / "table.csv").write_text("\n".join(["image,mask,number", *rows]))
    command = [binary, "index", "-o", str(root / "catalog.parquet"), str(root / "images")]
    subprocess.run(command, check=True, capture_output=True)
    return root


def gdal(path: Path, method: str = "nearest", size: tuple[int, int] = (H, W)) -> np.ndarray:
    with rasterio.open(path) as f:
        shape = (f.count, *size)
        return f.read(out_shape=shape, resampling=rasterio.enums.Resampling[method])


def bilinear(path: Path) -> np.ndarray:
    torch = pytest.importorskip("torch")
    with rasterio.open(path) as f:
        x = torch.from_numpy(f.read().astype(np.float32))[None]
    return torch.nn.functional.interpolate(x, (H, W), mode="bilinear")[0].numpy()


def read(source: Any, **options: Any) -> dict[str, np.ndarray]:
    options = {"batch_size": len(SIZES), "shuffle": False, "window": WHOLE, **options}
    with chaski.load(source, **options) as loader:
        (batch,) = list(loader)
        return {name: np.array(x) for name, x in batch.items()}


PAIRS = {"image": "images/{id}.tif", "mask": Field(pattern="masks/{id}.png", dtype="int64")}


def test_images_and_masks(data):
    b = read(data, fields=PAIRS, pixels=chaski.Pixels(windows=True))
    for i, size in enumerate(SIZES):
        assert b["window"][i].tolist() == [0, 0, *size]
        want = bilinear(data / f"images/{i}.tif")
        assert np.allclose(b["image"][i], want, rtol=1e-4, atol=1e-3)
        assert np.array_equal(b["mask"][i], gdal(data / f"masks/{i}.png"))


def test_antialiased_as_pillow(data):
    image = pytest.importorskip("PIL.Image")
    b = read(data, fields={"image": Field(pattern="images/{id}.tif", resample="antialias")})
    for i in range(len(SIZES)):
        with rasterio.open(data / f"images/{i}.tif") as f:
            bands = [image.fromarray(x.astype(np.float32)) for x in f.read()]
        want = np.stack([np.asarray(x.resize((W, H), image.Resampling.BILINEAR)) for x in bands])
        assert np.allclose(b["image"][i], want, rtol=1e-4, atol=1e-2)


@pytest.mark.parametrize("pixels", ["validity", "bilinear"])
def test_nodata(data, pixels):
    nearest = {"resample": "nearest"} if pixels == "validity" else {}
    b = read(data / "holes", fields={"image": Field(validity="ok", fill=-1.0, **nearest)})
    for i in range(len(SIZES)):
        if pixels == "validity":
            want = gdal(data / f"holes/{i}.tif")
            assert np.array_equal(b["image"][i], want)
            assert np.array_equal(b["ok"][i], want != -1)
        ok = b["ok"][i] > 0
        assert (b["image"][i][~ok] == -1).all() and (b["image"][i][ok] >= 0).all()
    assert 0 < b["ok"].mean() < 1


def test_masks_of_another_resolution(data):
    fields = {"image": "images/{id}.tif", "mask": Field(pattern="large/{id}.tif", dtype="native")}
    b = read(data, fields=fields)
    assert b["mask"].shape == (len(SIZES), 1, 2 * H, 2 * W)
    for i in range(len(SIZES)):
        assert np.array_equal(b["mask"][i], gdal(data / f"large/{i}.tif", size=(2 * H, 2 * W)))


@pytest.mark.parametrize("form", ["folder", "table", "catalog", "container"])
def test_sources(data, tmp_path, binary, form):
    """A folder, a table, a catalog and a container have the same tensors."""
    nearest = Field(dtype="native")
    source: Any = {"folder": "images", "table": "table.csv", "catalog": "catalog.parquet"}.get(form)
    fields = {"image": nearest}
    if form == "table":
        fields = {"image": Field(column="image", dtype="native")}
    if form == "container":
        source, about = tmp_path / "whole.tacozip", tmp_path / "about.json"
        about.write_text(json.dumps(ABOUT))
        command = [binary, "pack", "--collection", about, data / "images", "-o", source]
        subprocess.run(command, check=True, capture_output=True)
    b = read(data / source, fields=fields)
    for i in range(len(SIZES)):
        assert np.array_equal(b["image"][i], gdal(data / f"images/{i}.tif"))


def test_flips(data):
    """Each image is one of the eight symmetries of the whole one."""
    fields = {"image": Field(dtype="native")}
    window = ResizedWindow(16, whole=True)
    b = read(data / "images", fields=fields, window=window, pixels=chaski.Pixels(augment="d4"))
    seen = set()
    for i in range(len(SIZES)):
        x = gdal(data / f"images/{i}.tif", size=(16, 16))
        turns = [np.rot90(y, k, (1, 2)) for y in (x, x[:, ::-1]) for k in range(4)]
        (which,) = (k for k, y in enumerate(turns) if np.array_equal(b["image"][i], y))
        seen.add(which)
    assert len(seen) > 1


def test_order_and_resume(data):
    """The order is the order of whole chips, on each rank, and a run goes on where it was."""
    options: dict[str, Any] = {"batch_size": 2, "seed": 3}
    one = Field(dtype="native", bands=[0])
    with chaski.load(data / "images", fields={"image": one}, window=WHOLE, **options) as loader:
        got = [(np.array(b["sample"]), np.array(b["image"])) for b in loader]
    with chaski.load(data / "table.csv", fields={"number": "number"}, **options) as loader:
        assert [b["number"].tolist() for b in loader] == [s.tolist() for s, _ in got]
    with chaski.load(data / "images", fields={"image": one}, window=WHOLE, **options) as loader:
        next(iter(loader))
        state = loader.state_dict()
    with chaski.load(data / "images", fields={"image": one}, window=WHOLE, **options) as loader:
        loader.load_state_dict(state)
        rest = [np.array(b["image"]) for b in loader]
    assert len(rest) == 2
    for (_, want), x in nonempty(zip(got[1:], rest, strict=True)):
        assert np.array_equal(x, want)


def test_sizes(data):
    """Each batch has one of the sides."""
    window = ResizedWindow(sizes=[8, 12, 16], whole=True)
    seen = set()
    field = {"image": Field(dtype="native")}
    with chaski.load(data / "images", batch_size=1, fields=field, window=window) as loader:
        for b in nonempty(loader):
            (i,), side = b["sample"], b["image"].shape[-1]
            want = gdal(data / f"images/{i}.tif", size=(side, side))
            assert np.array_equal(b["image"][0], want)
            seen.add(side)
    assert seen <= {8, 12, 16}


def test_boxes_are_scaled(data):
    notes = {}
    for i, (h, w) in enumerate(SIZES):
        sides = f"<xmin>1</xmin><ymin>2</ymin><xmax>{w - 1}</xmax><ymax>{h - 3}</ymax>"
        box = f"<object><name>a</name><bndbox>{sides}</bndbox></object>"
        (data / "boxes").mkdir(exist_ok=True)
        (data / f"boxes/{i}.xml").write_text(f"<annotation>{box}</annotation>")
        notes[i] = np.array([1, 2, w - 1, h - 3]) * np.array([W / w, H / h] * 2)
    fields = {"image": "images/{id}.tif", "y": chaski.Vector("boxes/{id}.xml", kind="boxes")}
    options: dict[str, Any] = {"batch_size": len(SIZES), "shuffle": False, "window": WHOLE}
    with chaski.load(data, fields=fields, **options) as loader:
        (b,) = list(loader)
        for i, want in nonempty(notes.items()):
            assert np.allclose(b["y"].rows()[i], [want], atol=1e-3)


def test_statistics_are_of_stored_pixels(data):
    found = chaski.stats(data / "images", fields={"image": Field()})
    pixels = []
    for i in range(len(SIZES)):
        with rasterio.open(data / f"images/{i}.tif") as f:
            pixels.append(f.read().reshape(3, -1))
    want = np.concatenate(pixels, 1)
    assert np.allclose(found.mean("image"), want.mean(1))


def test_grey_and_rgb(data, tmp_path):
    """Bands that differ are refused by the file's name; with a band that all have they are read."""
    rng = np.random.default_rng(2)
    for i in range(4):
        write(tmp_path / f"{i}.png", rng.integers(0, 255, (3 if i % 2 else 1, 9 + i, 12), np.uint8))
    options: dict[str, Any] = {"batch_size": 4, "shuffle": False, "window": WHOLE}
    with (
        pytest.raises(chaski.UnsupportedError, match=r"1\.png.*it has 3 bands.*bands=\[0\]"),
        chaski.load(tmp_path, **options) as loader,
    ):
        next(iter(loader))
    b = read(tmp_path, fields={"image": Field(bands=[0], dtype="native")}, batch_size=4)
    for i in range(4):
        assert np.array_equal(b["image"][i], gdal(tmp_path / f"{i}.png")[:1])


@pytest.mark.parametrize(
    ("more", "match"),
    [
        ({"scale": (0.5, 1)}, "scale is"),
        ({"ratio": 2}, "ratio is 2"),
        ({"of_asset": True}, "of_asset is True"),
        ({"per_asset": 2}, "per_asset is 2"),
    ],
)
def test_what_whole_images_have_not(data, more, match):
    with pytest.raises(chaski.SpecError, match=match + ".*whole is given"):
        chaski.load(data / "images", batch_size=1, window=ResizedWindow(8, whole=True, **more))
