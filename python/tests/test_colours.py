"""Masks in colours become the classes that numpy finds for each pixel."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import rasters
from conftest import nonempty
from test_access import serving

import chaski

pytestmark = pytest.mark.usefixtures("one_engine")
rasterio = pytest.importorskip("rasterio")
N, SIDE = 6, 48
PALETTE = np.array([[0, 0, 0], [255, 0, 0], [0, 128, 0], [0, 128, 7], [200, 200, 200]])
FORMS = ["npy", "png", "planar", "pixel", "tiled"]


def write(folder: Path, form: str, dtype: str = "uint8", bands: int = 3, **more: Any) -> np.ndarray:
    """Writes N masks, and returns the number of each pixel's colour in PALETTE."""
    rng = np.random.default_rng(7)
    codes = rng.integers(0, len(PALETTE), (N, SIDE, SIDE))
    codes[:, : SIDE // 2] = codes[:, :1, :1]  # areas of one colour
    for i, image in enumerate(palette(dtype, bands)[codes].transpose(0, 3, 1, 2)):
        if form == "npy":
            np.save(folder / f"{i}.npy", image)
            continue
        profile = {"dtype": dtype, "count": bands, "height": SIDE, "width": SIDE, **more}
        if form == "png":
            profile["driver"] = "PNG"
        else:
            profile |= {"interleave": "band" if form == "planar" else "pixel", "photometric": "RGB"}
            if form == "tiled":
                profile |= {"tiled": True, "blockxsize": 16, "blockysize": 16}
        name = f"{i}.png" if form == "png" else f"{i}.tif"
        rasters.write(folder / name, image, **profile)
    return codes


def palette(dtype: str, bands: int) -> np.ndarray:
    colours = PALETTE * (257 if dtype == "uint16" else 1)
    more = np.arange(len(colours))[:, None] % 2 + 3
    return np.concatenate([colours, more], axis=1)[:, :bands].astype(dtype)


def lut(values: Any, dtype: str = "uint8", bands: int = 3) -> dict[tuple[int, ...], Any]:
    values = list(values)
    colours = palette(dtype, bands).tolist()[: len(values)]
    return {tuple(c): v for c, v in zip(colours, values, strict=True)}


def read(folder: Path, field: dict[str, Any], **more: Any) -> dict[str, np.ndarray]:
    ending = sorted(folder.iterdir())[0].suffix
    fields = {"mask": chaski.Field(pattern="{id}" + ending, **field)}
    with chaski.load(folder, fields=fields, batch_size=N, shuffle=False, **more) as loader:
        return {name: np.array(v) for name, v in next(iter(loader)).items()}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dtype", ["uint8", "uint16"])
@pytest.mark.parametrize("to", ["native", "int64", "float32"])
def test_colours(tmp_path, form, dtype, to):
    codes = write(tmp_path, form, dtype)
    values = np.array([3, 0, 17, 200, 1])
    got = read(tmp_path, {"lut": lut(values, dtype), "dtype": to})["mask"]
    assert got.dtype == (dtype if to == "native" else to)
    np.testing.assert_array_equal(got, values[codes][:, None])
    got = read(tmp_path, {"lut": lut(values, dtype), "dtype": to, "layout": "n y x"})["mask"]
    np.testing.assert_array_equal(got, values[codes])


def test_four_bands_and_picked_ones(tmp_path):
    codes = write(tmp_path, "npy", bands=4)
    got = read(tmp_path, {"lut": lut(range(5), bands=4)})["mask"]
    np.testing.assert_array_equal(got[:, 0], codes)
    turned = {colour[::-1]: v for colour, v in lut(range(5)).items()}
    got = read(tmp_path, {"lut": turned, "bands": [2, 1, 0]})["mask"]
    np.testing.assert_array_equal(got[:, 0], codes)
    with pytest.raises(chaski.Error, match="3 numbers, and the field has 4 bands"):
        read(tmp_path, {"lut": lut(range(5)), "bands": [0, 1, 2, 3]})


def test_vectors_of_classes(tmp_path):
    codes = write(tmp_path, "tiled")
    values = np.random.default_rng(1).normal(size=(5, 4)).astype("f4")
    got = read(tmp_path, {"lut": lut(values.tolist()), "dtype": "float32"})["mask"]
    np.testing.assert_array_equal(got, values[codes].transpose(0, 3, 1, 2))


@pytest.mark.parametrize("form", ["npy", "planar", "tiled"])
def test_windows(tmp_path, form):
    """Windows have the classes of the nearest pixels: none in between."""
    codes = write(tmp_path, form)
    pixels = chaski.Pixels(windows=True)
    for window, each in (
        (chaski.RandomWindow(20, per_asset=3), 3),
        (chaski.ResizedWindow(20, scale=(0.1, 0.9), per_asset=3), 3),
        (chaski.Grid(20, stride=16), 9),
    ):
        field = {"lut": lut(range(5)), "dtype": "int64", "layout": "n y x"}
        batch = read(tmp_path, field, window=window, pixels=pixels)
        for k, (y, x, h, w) in nonempty(enumerate(batch["window"])):
            rows = y + (2 * np.arange(20) + 1) * h // 40
            columns = x + (2 * np.arange(20) + 1) * w // 40
            want = codes[batch["sample"][k] // each][np.ix_(rows, columns)]
            np.testing.assert_array_equal(batch["mask"][k], want)


@pytest.mark.parametrize("augment", ["flip_x", "flip_y", "flips", "rotations", "d4"])
@pytest.mark.parametrize("side", [20, 70])
def test_windows_resized_and_turned(tmp_path, augment, side):
    """A window that is resized and turned is one of numpy's turns of the nearest pixels."""
    codes = write(tmp_path, "planar")
    field = {"lut": lut(range(5)), "dtype": "int64", "layout": "n y x", "validity": "ok"}
    pixels = chaski.Pixels(windows=True, augment=augment)
    window = chaski.ResizedWindow(side, scale=(0.1, 0.9), per_asset=2)
    batch = read(tmp_path, field, window=window, pixels=pixels)
    assert batch["ok"].all()
    for k, (y, x, h, w) in nonempty(enumerate(batch["window"])):
        rows = y + (2 * np.arange(side) + 1) * h // (2 * side)
        columns = x + (2 * np.arange(side) + 1) * w // (2 * side)
        want = codes[batch["sample"][k] // 2][np.ix_(rows, columns)]
        ways = [np.rot90(a, r) for a in (want, want.T) for r in range(4)]
        assert any(np.array_equal(batch["mask"][k], way) for way in ways)


def test_flips_padding_and_validity(tmp_path):
    codes = write(tmp_path, "planar")
    field = {"lut": lut([1, 2, 3, 4, 5]), "dtype": "int64", "pad": True, "validity": "ok"}
    batch = read(tmp_path, field, window=chaski.Grid(64, stride=64, pad=True))
    want = np.zeros((N, 64, 64), int)
    want[:, :SIDE, :SIDE] = codes + 1
    np.testing.assert_array_equal(batch["mask"][:, 0], want)
    np.testing.assert_array_equal(batch["ok"][:, 0], want > 0)
    turned = read(tmp_path, {"lut": lut(range(5))}, pixels=chaski.Pixels(augment="d4"))["mask"]
    for k, got in nonempty(enumerate(turned[:, 0])):
        ways = [np.rot90(a, r) for a in (codes[k], codes[k].T) for r in range(4)]
        assert any(np.array_equal(got, way) for way in ways)


def test_nodata(tmp_path):
    """A pixel whose bands are all nodata is nodata; one that has a 0 in a band is not."""
    codes = write(tmp_path, "tiled", nodata=0)
    field = {"lut": lut(range(5)), "dtype": "int64", "validity": "ok"}
    batch = read(tmp_path, {**field, "fill": 9})
    np.testing.assert_array_equal(batch["mask"][:, 0], np.where(codes == 0, 9, codes))
    np.testing.assert_array_equal(batch["ok"][:, 0], codes != 0)
    np.testing.assert_array_equal(read(tmp_path, field)["mask"][:, 0], codes)


def test_alpha_and_nodata_of_the_field(tmp_path):
    """Where a file or the field says that pixels are missing, their colours count for nothing."""
    codes = write(tmp_path, "pixel")
    shown = np.random.default_rng(2).integers(0, 2, (N, SIDE, SIDE))
    for i in range(N):
        image = np.where(shown[i], palette("uint8", 3)[codes[i]].transpose(2, 0, 1), 77)
        rasters.write(
            tmp_path / f"{i}.tif",
            np.concatenate([image, 255 * shown[i : i + 1]]).astype("uint8"),
            photometric="RGB",
            alpha="yes",
        )
    got = read(tmp_path, {"lut": lut(range(5)), "fill": 9, "validity": "ok"})
    np.testing.assert_array_equal(got["mask"][:, 0], np.where(shown, codes, 9))
    np.testing.assert_array_equal(got["ok"][:, 0], shown)
    codes = write(tmp_path, "tiled")
    field = {"lut": lut(range(4)), "dtype": "int64", "nodata": 200, "validity": "ok"}
    np.testing.assert_array_equal(read(tmp_path, field)["ok"][:, 0], codes != 4)
    got = read(tmp_path, {**field, "fill": 8})["mask"][:, 0]
    np.testing.assert_array_equal(got, np.where(codes == 4, 8, codes))


def test_unknown_colours(tmp_path):
    """They are an error of their file, or nodata where the field has a fill."""
    codes = write(tmp_path, "pixel")
    count, (y, x) = (codes[0] == 4).sum(), np.argwhere(codes[0] == 4)[0]
    message = rf"0\.tif.*{count} pixels.*\(200, 200, 200\) at row {y}, column {x}"
    with pytest.raises(chaski.Error, match=message):
        read(tmp_path, {"lut": lut(range(4))})
    batch = read(tmp_path, {"lut": lut(range(4)), "fill": 99, "validity": "ok"})
    np.testing.assert_array_equal(batch["mask"][:, 0], np.where(codes == 4, 99, codes))
    np.testing.assert_array_equal(batch["ok"][:, 0], codes != 4)
    assert not read(tmp_path, {"lut": lut(range(4))}, on_bad="skip")["valid"].any()


def test_windows_on_the_ground(tmp_path):
    place = {"crs": "EPSG:32630", "transform": rasterio.Affine(10, 0, 500000, 0, -10, 4600000)}
    codes = write(tmp_path, "tiled", **place)[-1:]
    for path in sorted(tmp_path.iterdir())[:-1]:
        path.unlink()
    window = chaski.GeoWindow(160, 10, per_epoch=8)
    pixels = chaski.Pixels(geo=True)
    field = {"lut": lut(range(5)), "fill": 77}
    batch = read(tmp_path, field, window=window, pixels=pixels)
    for got, t in nonempty(zip(batch["mask"][:, 0], batch["geo.transform"], strict=True)):
        y, x = round((4600000 - t[3]) / 10), round((t[0] - 500000) / 10)
        np.testing.assert_array_equal(got, codes[0, y : y + 16, x : x + 16])


def test_a_server_and_the_command(tmp_path, binary):
    codes = write(tmp_path, "npy")
    fields = {"mask": chaski.Field(pattern="{id}.npy", lut=lut(range(5)), dtype="int64")}
    with serving(binary, "--root", str(tmp_path)) as (target, token):
        engine = chaski.Engine(token=token)
        with chaski.connect(
            target, tmp_path, fields=fields, batch_size=N, shuffle=False, engine=engine
        ) as loader:
            np.testing.assert_array_equal(next(iter(loader))["mask"][:, 0], codes)
    table = {",".join(map(str, c)): v for c, v in lut(range(5)).items()}
    spec = {
        "source": str(tmp_path),
        "batch_size": 2,
        "fields": {"mask": {"pattern": "{id}.npy", "lut": table, "dtype": "int64"}},
    }
    (tmp_path / "spec.json").write_text(json.dumps(spec))
    run = [binary, "spec", tmp_path / "spec.json"]
    printed = json.loads(subprocess.run(run, check=True, capture_output=True).stdout)
    assert printed["fields"][0]["lut"]["colours"] == [list(c) for c in lut(range(5))]
    run = [binary, "plan", "--json", tmp_path / "spec.json"]
    subprocess.run(run, check=True, capture_output=True)


@pytest.mark.parametrize(
    "table, message",
    [
        ({(1, 2): 0}, "3 or all 4 numbers"),
        ({(1, 2, 3): 0, 4: 1}, "3 or all 4 numbers"),
        ({(1, 2, 3): 0, (1, 2, 3, 4): 1}, "3 or all 4 numbers"),
        ({(1, 2, 70000): 0}, "from 0 to 65535"),
        ({(1, 2, 0.5): 0}, "whole number"),
        ({(1, 2, 3): 300}, "300 is not a number of uint8"),
    ],
)
def test_wrong_tables(tmp_path, table, message):
    write(tmp_path, "npy")
    with pytest.raises(chaski.Error, match=message):
        read(tmp_path, {"lut": table, "dtype": "uint8"})
    (tmp_path / "0.npy").unlink()
    np.save(tmp_path / "0.npy", np.zeros((3, 4, 4), "f4"))
    with pytest.raises(chaski.Error, match="uint8 and uint16"):
        read(tmp_path, {"lut": {(1, 2, 3): 0}})


CLASSES = ("water", "road", "tree", "roof")


def write_masks(folder: Path, keep: float, **more: Any) -> np.ndarray:
    """Writes a mask for each class of N images, or a part of them; returns the classes."""
    rng = np.random.default_rng(11)
    out = np.zeros((N, SIDE, SIDE), int)
    for i in range(N):
        image = np.full((1, SIDE, SIDE), i, "uint8")
        rasters.write(folder / f"{i}.tif", image, count=1, height=SIDE, width=SIDE, **more)
        for k, name in enumerate(CLASSES):
            mask = rng.random((SIDE, SIDE)) < 0.3
            if rng.random() < keep:
                values = mask[None].astype("uint8") * (255 if k % 2 else 1)
                path = folder / f"{i}_{name}.tif"
                rasters.write(path, values, count=1, height=SIDE, width=SIDE, **more)
                out[i][mask] = k + 1
    return out


MASKS = {"patterns": [f"{{id}}_{c}.tif" for c in CLASSES], "lut": "masks", "missing": "fill"}


@pytest.mark.parametrize("window", [None, (20, 20), chaski.Grid(20)])
def test_masks_of_one_class_a_file(tmp_path, window):
    want = write_masks(tmp_path, keep=0.5, dtype="uint8")
    fields = {"image": "{id}.tif", "mask": chaski.Field(**MASKS, dtype="int64")}
    options = {"window": window, "pixels": chaski.Pixels(windows=True, pad=True)}
    read = 0
    with chaski.load(tmp_path, fields=fields, batch_size=2, **options) as loader:
        for batch in loader:
            rows = zip(batch["image"][:, 0], batch["mask"][:, 0], batch["window"], strict=True)
            for image, mask, (y, x, h, w) in nonempty(rows):
                part = want[int(image.max())][y : y + h, x : x + w]
                whole = np.pad(part, [(0, h - len(part)), (0, w - len(part[0]))])
                np.testing.assert_array_equal(mask, whole)
                read += 1
    assert read >= N


def test_masks_on_the_ground(tmp_path):
    place = {"crs": "EPSG:32630", "transform": rasterio.Affine(10, 0, 500000, 0, -10, 4600000)}
    want = write_masks(tmp_path, keep=1, dtype="uint8", **place)[-1]
    for path in tmp_path.iterdir():
        if not path.name.startswith(str(N - 1)):
            path.unlink()
    window = chaski.GeoWindow(160, 10, per_epoch=8)
    fields = {"mask": chaski.Field(**MASKS | {"missing": "error"})}
    pixels = chaski.Pixels(geo=True)
    with chaski.load(tmp_path, fields=fields, batch_size=4, window=window, pixels=pixels) as loader:
        for batch in nonempty(loader):
            rows = zip(batch["mask"][:, 0], batch["geo.transform"], strict=True)
            for got, t in nonempty(rows):
                y, x = round((4600000 - t[3]) / 10), round((t[0] - 500000) / 10)
                np.testing.assert_array_equal(got, want[y : y + 16, x : x + 16])


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_masks_with_negative_zeros(tmp_path, dtype):
    """What numpy finds equal to 0 is in no mask, also -0.0, which has other bits."""
    x = np.random.default_rng(4).choice([0.0, -0.0, 1.0], (2, SIDE, SIDE)).astype(dtype)
    assert np.signbit(x).any()
    np.save(tmp_path / "0.npy", x)
    got = read(tmp_path, {"lut": "masks", "dtype": "int64", "dims": "b y x"})["mask"]
    want = ((x != 0) * np.array([1, 2])[:, None, None]).max(axis=0)
    np.testing.assert_array_equal(got[0, 0], want)


@pytest.mark.parametrize("said", [{"dims": "b y x"}, {"bands": [0, 1, 2]}])
def test_masks_that_agree_in_a_window(tmp_path, said):
    """Three masks in each other are no picture in grey, where the field says what they are."""
    x = np.zeros((3, 40, 40), "uint8")
    for k in range(3):
        x[k, k * 10 :] = 1  # of the windows below 20, all masks are full
    np.save(tmp_path / "0.npy", x)
    got = read(tmp_path, {"lut": "masks", "dtype": "int64", **said}, window=chaski.Grid(20))
    whole = (x * np.arange(1, 4)[:, None, None]).max(axis=0)
    want = [whole[y : y + 20, x : x + 20] for y in (0, 20) for x in (0, 20)]
    np.testing.assert_array_equal(got["mask"][got["valid"].astype(bool), 0], want)


def test_masks_of_several_dtypes(tmp_path):
    for name, dtype in (("a", "uint8"), ("b", "uint16")):
        np.save(tmp_path / f"0_{name}.npy", np.ones((1, 4, 4), dtype))
    field = chaski.Field(patterns=["{id}_a.npy", "{id}_b.npy"], lut="masks", dtype="int64")
    with pytest.raises(chaski.UnsupportedError, match="masks of one map have one dtype"):
        chaski.load(tmp_path, fields={"mask": field}, batch_size=1).close()


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int16", "float32"])
def test_bands_that_are_masks(tmp_path, dtype):
    x = (np.random.default_rng(5).random((5, SIDE, SIDE)) < 0.2).astype(dtype)
    np.save(tmp_path / "0.npy", x)
    want = (x * np.arange(1, 6)[:, None, None]).max(axis=0)
    got = read(tmp_path, {"lut": "masks", "dtype": "uint8", "dims": "b y x"})["mask"]
    np.testing.assert_array_equal(got[0, 0], want)


def test_masks_that_are_pictures_in_grey(tmp_path):
    x = np.random.default_rng(2).integers(0, 2, (2, 1, SIDE, SIDE)).astype("uint8") * 255
    profile = {"count": 3, "height": SIDE, "width": SIDE, "dtype": "uint8", "driver": "PNG"}
    for name, mask in zip("ab", x, strict=True):
        rasters.write(tmp_path / f"0_{name}.png", np.repeat(mask, 3, axis=0), **profile)
    field = chaski.Field(patterns=["{id}_a.png", "{id}_b.png"], lut="masks", dtype="int64")
    with chaski.load(tmp_path, fields={"mask": field}, batch_size=1) as loader:
        want = np.where(x[1] > 0, 2, x[0] > 0)
        np.testing.assert_array_equal(next(iter(loader))["mask"][0], want)
    with pytest.raises(chaski.UnsupportedError, match=r"three bands are equal.*bands=\[0\]"):
        read(tmp_path, {"lut": "masks"})


@pytest.mark.parametrize("window", [None, chaski.Grid(16)])
@pytest.mark.parametrize("form", ["h5", "npz", "npy"])
def test_masks_that_are_arrays(tmp_path, form, window):
    """Arrays that a file has not, and files that are not there, are background, also the first."""
    h5py = pytest.importorskip("h5py", reason="writes HDF5") if form == "h5" else None
    rng, want = np.random.default_rng(8), np.zeros((N, SIDE, SIDE), int)
    for i in range(N):
        arrays = {"image": np.full((SIDE, SIDE), i, "uint8")}
        for k, name in enumerate("abc"):
            mask = rng.random((SIDE, SIDE)) < 0.3
            if (i + k) % 3:
                arrays[name] = mask.astype("uint8") * 255
                want[i][mask] = k + 1
        if h5py:
            with h5py.File(tmp_path / f"{i}.h5", "w") as f:
                for name, x in arrays.items():
                    f.create_dataset(name, data=x, chunks=(16, 16))
        elif form == "npz":
            np.savez(tmp_path / f"{i}.npz", **arrays)
        else:
            for name, x in arrays.items():
                np.save(tmp_path / f"{i}_{name}.npy", x)
    path = "{id}_%s.npy" if form == "npy" else "{id}." + form + "::%s"
    masks = {"patterns": [path % name for name in "abc"], "lut": "masks", "missing": "fill"}
    fields = {
        "image": chaski.Field(pattern=path % "image", dims="y x"),
        "mask": chaski.Field(**masks, dims="y x", dtype="int64"),
    }
    pixels, read = chaski.Pixels(windows=True), 0
    options = {"window": window, "pixels": pixels, "batch_size": 4}
    with chaski.load(tmp_path, fields=fields, **options) as loader:
        for batch in loader:
            rows = zip(batch["image"], batch["mask"], batch["window"], batch["valid"], strict=True)
            for image, mask, (y, x, h, w), valid in rows:
                if valid:
                    part = want[int(image.max())][y : y + h, x : x + w]
                    np.testing.assert_array_equal(mask[0], part)
                    read += 1
    assert read == N * (9 if window else 1)


@pytest.mark.parametrize("side", [SIDE, 20])
def test_masks_with_nodata(tmp_path, side):
    """Pixels that a file declares as nodata are in no mask, and nodata if all files say so."""
    x = np.random.default_rng(3).choice([0, 1, 255], (2, 1, SIDE, SIDE)).astype("uint8")
    for name, mask in zip("ab", x, strict=True):
        path = tmp_path / f"0_{name}.tif"
        rasters.write(path, mask, count=1, height=SIDE, width=SIDE, dtype="uint8", nodata=255)
    patterns = ["{id}_a.tif", "{id}_b.tif"]
    field = chaski.Field(patterns=patterns, lut="masks", dtype="int64", fill=9, validity="ok")
    window = None if side == SIDE else chaski.ResizedWindow(side, whole=True)
    with chaski.load(tmp_path, fields={"mask": field}, batch_size=1, window=window) as loader:
        batch = next(iter(loader))
    at = np.minimum(((np.arange(side) + 0.5) * SIDE / side).astype(int), SIDE - 1)
    a, b = x[:, 0][:, at][:, :, at]
    want = np.where(b == 1, 2, a == 1)
    missing = (a == 255) & (b == 255)
    np.testing.assert_array_equal(batch["mask"][0, 0], np.where(missing, 9, want))
    np.testing.assert_array_equal(batch["ok"][0, 0], ~missing)


def test_masks_with_several_numbers_are_bad(tmp_path):
    x = np.zeros((2, SIDE, SIDE), "uint8")
    x[1, 3, 4], x[1, 5, 6] = 254, 255
    np.save(tmp_path / "0.npy", x)
    with pytest.raises(chaski.UnsupportedError, match="band 1 has two numbers besides 0.*row 5"):
        read(tmp_path, {"lut": "masks", "dims": "b y x"})
