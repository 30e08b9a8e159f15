"""Files of arrays of other programs as datasets, compared with what their libraries read."""

from __future__ import annotations

import hashlib
import json
import pickle
import shutil
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import chaski

pytestmark = pytest.mark.usefixtures("one_engine")

DATA = Path(__file__).parents[2] / "testdata"


def expected(folder: str, file: str, array: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((DATA / folder / "expected.json").read_text())[file][array]
    return found


def rows(source: Path | str, fields: dict[str, Any], **options: Any) -> dict[str, Any]:
    """The one batch of a dataset, in the order of its rows, as stored."""
    options = {"batch_size": 4, "shuffle": False, "pixels": chaski.Pixels(dtype="native")} | options
    with chaski.load(source, fields=fields, **options) as loader:
        (batch,) = list(loader)
    return {name: np.asarray(batch[name])[np.asarray(batch["valid"])] for name in fields}


def digest(array: Any) -> str:
    return hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()


def test_matlab(tmp_path: Path) -> None:
    """A file a sample, plain or compressed: a cube (y, x, b), a member of a structure, a series."""
    for k, name in enumerate(("plain", "packed")):
        shutil.copy(DATA / "matlab" / f"{name}.mat", tmp_path / f"{k}_scene.mat")
    fields = {
        "image": chaski.Field(pattern="{id}_scene.mat::cube", dims="y x b", layout="n y x b"),
        "mask": chaski.Field(pattern="{id}_scene.mat::scene.gt", dims="y x", layout="n y x"),
        "series": chaski.Field(
            pattern="{id}_scene.mat::series", dims="y t x b", layout="n y t x b"
        ),
    }
    got = rows(tmp_path, fields)
    for name, array in (("image", "cube"), ("mask", "scene.gt"), ("series", "series")):
        want = expected("matlab", "plain.mat", array)
        assert len(got[name]) == 2
        for sample in got[name]:
            assert list(sample.shape) == want["shape"]
            assert digest(sample) == want["sha256"]


def test_matlab_texts() -> None:
    """Arrays (y, x, n), and a matrix of characters as their texts."""
    fields = {
        "chips": chaski.Field(layout="y x n"),
        "name": chaski.Field(column="names", kind="text"),
    }
    with chaski.load(
        DATA / "matlab" / "packed.mat",
        batch_size=2,
        shuffle=False,
        rows=chaski.Rows(dims="y x n"),
        fields=fields,
        pixels=chaski.Pixels(dtype="native"),
    ) as loader:
        (batch,) = list(loader)
    assert list(batch["name"]) == ["sea ", "land"]
    assert digest(batch["chips"]) == expected("matlab", "packed.mat", "chips")["sha256"]


def test_tensors(tmp_path: Path) -> None:
    """What torch.save writes: a tensor (n, b, y, x) a file, and a dict of one and its labels."""
    shutil.copy(DATA / "tensors" / "chips.pt", tmp_path / "a_10m.pt")
    want = expected("tensors", "chips.pt", "")
    got = rows(tmp_path, {"image": chaski.Field(pattern="{id}_10m.pt", dims="n b y x")})
    assert list(got["image"].shape) == want["shape"]
    assert digest(got["image"]) == want["sha256"]
    fields = {
        "image": chaski.Field(column="image", dims="n b y x"),
        "y": chaski.Field(column="labels"),
    }
    for name in ("nested.pt", "flat.safetensors"):
        got = rows(DATA / "tensors" / name, fields)
        assert digest(got["image"]) == want["sha256"]
        assert got["y"].tolist() == [3, 1, 2, 0]


def test_tensors_execute_nothing(tmp_path: Path) -> None:
    """A pickle that would call a function is refused with its name."""

    class Evil:
        def __reduce__(self) -> tuple[Any, tuple[str]]:
            return Path.touch, (Path(tmp_path / "called"),)

    with zipfile.ZipFile(tmp_path / "a.pt", "w") as z:
        z.writestr("a/data.pkl", pickle.dumps({"x": Evil()}, protocol=2))
    with pytest.raises(chaski.UnsupportedError, match=r"what .* makes: tensors in dicts"):
        chaski.info(tmp_path / "a.pt")
    assert not (tmp_path / "called").exists()


@pytest.mark.parametrize("interleave", ["bsq", "bil", "bip"])
@pytest.mark.parametrize("name", ["a.dat", "a.img", "a.bil"])
def test_envi(tmp_path: Path, interleave: str, name: str) -> None:
    """ENVI rasters that GDAL writes, with their nodata, place and names of bands."""
    rasterio = pytest.importorskip("rasterio")
    image = np.arange(3 * 50 * 70, dtype="i2").reshape(3, 50, 70) * 7
    profile = {"count": 3, "height": 50, "width": 70, "dtype": "int16", "crs": "EPSG:32719"}
    transform = rasterio.transform.from_origin(500000, 8000000, 10, 20)
    with rasterio.open(
        tmp_path / name, "w", driver="ENVI", interleave=interleave, transform=transform, **profile
    ) as f:
        f.write(image)
        f.descriptions = ("blue", "green", "red")
    with (tmp_path / "a.hdr").open("a") as f:
        f.write("data ignore value = 700\n")
    (tmp_path / f"{name}.aux.xml").unlink(missing_ok=True)
    with rasterio.open(tmp_path / name) as f:
        assert (f.nodata, f.descriptions[1]) == (700, "green")
        want = f.read()
        bounds = list(f.bounds)
    pattern = "{id}" + name[1:]
    got = rows(tmp_path, {"image": chaski.Field(pattern=pattern, bands=["red", "blue"])})
    assert np.array_equal(got["image"][0], want[[2, 0]])
    got = rows(tmp_path / name, {"image": chaski.Field()}, window=chaski.Grid((25, 35)))
    chips = want.reshape(3, 2, 25, 2, 35).transpose(1, 3, 0, 2, 4).reshape(4, 3, 25, 35)
    assert np.array_equal(got["image"], chips)
    info = chaski.info(tmp_path / name)
    assert (info["kind"], info["envi"]["epsg"], info["envi"]["bounds"]) == ("envi", 32719, bounds)
    (tmp_path / name).write_bytes(image.tobytes()[:-1])
    with pytest.raises(chaski.CorruptError, match="do not fit"):
        chaski.info(tmp_path / name)


def test_envi_by_hand(tmp_path: Path) -> None:
    """Big-endian samples behind an offset, as GDAL reads them; wavelengths are names of bands."""
    rasterio = pytest.importorskip("rasterio")
    image = np.random.default_rng(1).normal(size=(6, 4, 5)).astype(">f4")
    (tmp_path / "cube.bip").write_bytes(bytes(7) + image.tobytes())
    (tmp_path / "cube.hdr").write_text(
        "ENVI\nsamples = 4\nlines = 6\nbands = 5\nheader offset = 7\ndata type = 4\n"
        "interleave = bip\nbyte order = 1\n"
        "map info = {UTM, 1.5, 1.5, 10, 20, 2, 3, 33, South, WGS-84}\n"
        "wavelength = {\n 400.5, 500,\n 600, 700, 800}\n"
    )
    with rasterio.open(tmp_path / "cube.bip") as f:
        want, transform, crs = f.read(), f.transform, f.crs
    got = rows(tmp_path, {"image": chaski.Field(pattern="{id}.bip", bands=["800", "400.5"])})
    assert np.array_equal(got["image"][0], want[[4, 0]])
    info = chaski.info(tmp_path / "cube.bip")["envi"]
    assert (info["epsg"], info["transform"]) == (crs.to_epsg(), list(transform.to_gdal()))


def test_lmdb(tmp_path: Path) -> None:
    """Values of a database by their keys: arrays of safetensors, an image, texts."""
    shutil.copytree(DATA / "lmdb" / "a.lmdb", tmp_path / "a.lmdb")
    fields = {
        name: chaski.Field(pattern=f"a.lmdb/data.mdb/S2A_{{id}}::{array}")
        for name, array in (("image", "B02"), ("low", "B05"))
    }
    got = rows(tmp_path, fields, batch_size=6)
    for name, (h, w) in (("image", (40, 30)), ("low", (20, 15))):
        for k, image in enumerate(got[name]):
            assert np.array_equal(image[0], np.arange(k, k + h * w).reshape(h, w))
    shutil.copy(tmp_path / "a.lmdb" / "data.mdb", tmp_path / "one.lmdb")
    picture = rows(tmp_path, {"image": chaski.Field(pattern="one.lmdb/pic{id}")})["image"]
    assert np.array_equal(picture[0, 0], np.arange(72, dtype="u1").reshape(9, 8))
    fields = {
        "image": chaski.Field(pattern="one.lmdb/S2A_{id}::B02"),
        "text": chaski.Field(pattern="a.lmdb/data.mdb/text/0{id}", kind="text"),
    }
    with chaski.load(
        tmp_path, batch_size=4, fields=fields, shuffle=False, rows=chaski.Rows(missing="drop")
    ) as loader:
        texts = [text for batch in loader for text in np.asarray(batch["text"])[batch["valid"]]]
    assert texts == [f"río {k}" * 3 for k in (0, 1, 2, 4, 5)]
    with pytest.raises(chaski.UnsupportedError, match=r"data\.mdb/{id}::KEY"):
        chaski.load(tmp_path / "a.lmdb", batch_size=1)


def test_bmp(tmp_path: Path) -> None:
    """BMP images of Pillow and GDAL, as GDAL reads them, and in a folder by a pattern."""
    rasterio = pytest.importorskip("rasterio")
    rng = np.random.default_rng(0)
    grey, colours = rng.integers(0, 256, (7, 5), "u1"), rng.integers(0, 256, (7, 5, 3), "u1")
    made = {
        "grey": Image.fromarray(grey),
        "rgb": Image.fromarray(colours),
        "bits": Image.fromarray(grey > 100),
        "alpha": Image.fromarray(np.dstack([colours, grey])),
        "palette": Image.fromarray(colours).quantize(16),
    }
    for name, image in made.items():
        image.save(tmp_path / f"{name}.bmp")
    with rasterio.open(
        tmp_path / "by_gdal.bmp", "w", driver="BMP", count=3, height=7, width=5, dtype="uint8"
    ) as f:
        f.write(colours.transpose(2, 0, 1))
    for path in tmp_path.glob("*.bmp"):
        with rasterio.open(path) as f:
            assert np.array_equal(chaski.read(path), f.read()), path
    got = rows(tmp_path, {"image": chaski.Field(pattern="r{id}.bmp")})
    assert np.array_equal(got["image"][0], colours.transpose(2, 0, 1))
    data = bytearray((tmp_path / "rgb.bmp").read_bytes())
    data[30] = 1
    (tmp_path / "runs.bmp").write_bytes(data)
    with pytest.raises(chaski.UnsupportedError, match="compression 1"):
        chaski.read(tmp_path / "runs.bmp")


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda torch, x: {1: x, "1": x + 100}, "two tensors have this path"),
        (lambda torch, x: {"a/b": x, "a": {"b": x + 100}}, "two tensors have this path"),
        (lambda torch, x: {"1": torch._neg_view(x.float())}, "save x.clone"),
    ],
)
def test_tensors_that_would_be_other_ones(tmp_path, make, says) -> None:
    """Keys that are one path, and views that negate, are errors, and not another tensor."""
    torch = pytest.importorskip("torch")
    torch.save(make(torch, torch.ones(3, 4, 4, dtype=torch.uint8)), tmp_path / "a.pt")
    fields = {"image": chaski.Field(pattern="{id}.pt::1", dims="b y x")}
    with pytest.raises(chaski.UnsupportedError, match=says):
        rows(tmp_path, fields)


def written(path: Path, arrays: dict[str, Any]) -> Path:
    """Writes arrays to a file of the kind that its name says."""
    if path.suffix == ".npz":
        np.savez(path, **arrays)
    elif path.suffix == ".mat":
        pytest.importorskip("scipy.io").savemat(path, arrays)
    else:
        with pytest.importorskip("h5py").File(path, "w") as file:
            for name, array in arrays.items():
                file[name] = array
    return path


@pytest.mark.parametrize("name", ["a.npz", "a.h5", "a.mat"])
def test_lists_of_labels_are_no_image_of_all(tmp_path: Path, name: str) -> None:
    """Lists (n, k) and (k, n), as SAT-6 has its classes: said by dims, or refused."""
    random = np.random.default_rng(0)
    labels = random.integers(0, 99, (6, 4))
    turned = np.ascontiguousarray(labels.T)
    path = written(
        tmp_path / name,
        {"x": random.integers(0, 99, (6, 8, 8, 3)), "y": labels, "turned": turned},
    )

    def lists(**options: Any) -> Any:
        field = chaski.Field(**options)
        image = chaski.Field(column="x", dims="n y x b")
        return rows(path, {"image": image, "y": field}, batch_size=6)["y"]

    for column, dims in (("y", "n b"), ("turned", "b n")):
        assert (lists(column=column, dims=dims, layout="n b") == labels).all()
        with pytest.raises(chaski.UnsupportedError, match=f'there are 6 images: kind.*"{dims}"'):
            lists(column=column)
    assert (lists(column="y", kind="number") == labels).all()
    assert (lists(column="turned", dims="y x", layout="n y x") == turned).all()  # for each image


@pytest.mark.parametrize("form", ["s{id}.npy", "s{id}.npz::a", "s{id}.h5::a", "all.h5::s{id}"])
def test_series_without_y_and_x(tmp_path: Path, form: str) -> None:
    """Series (t, b) of parcels, as EuroCropsML and BreizhCrops have them, of several lengths."""
    random = np.random.default_rng(0)
    series = [random.integers(0, 9999, (5 + k, 4)).astype(np.uint16) for k in range(3)]
    for k, a in enumerate(series):
        np.save(tmp_path / f"s{k}.npy", a)
        for end in ("npz", "h5"):
            written(tmp_path / f"s{k}.{end}", {"a": a})
    written(tmp_path / "all.h5", {f"s{k}": a for k, a in enumerate(series)})
    field = chaski.Field(pattern=form, dims="t b", layout="n t b", times=range(7))
    with chaski.load(tmp_path, fields={"a": field}, batch_size=3, shuffle=False) as loader:
        (batch,) = list(loader)
    for k, a in enumerate(series):
        assert (batch["a"][k] == np.pad(a, ((0, 7 - len(a)), (0, 0)))).all()
        assert batch["steps"][k].sum() == len(a)
