"""Files of several dtypes in one field, and whole chips of any sizes, against rasterio."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import numpy as np
import pytest
import rasters
from conftest import nonempty

import chaski
from chaski import Field, Pixels

pytestmark = pytest.mark.usefixtures("one_engine")

rasterio = pytest.importorskip("rasterio", reason="needs rasterio to write rasters")

SIDE = 24


def write(path: Path, pixels: np.ndarray, x: int = 0, **profile) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    place = rasterio.transform.from_origin(500000 + 10 * x, 4600000, 10, 10)
    rasters.write(path, pixels, crs="EPSG:32630", transform=place, **profile)
    return path


def images(folder: Path, dtypes: list[str], bands: int = 2, high: int = 100, **profile) -> list:
    rng = np.random.default_rng(5)
    out = []
    for i, dtype in enumerate(dtypes):
        pixels = rng.integers(0, high, (bands, SIDE, SIDE)).astype(dtype)
        write(folder / f"{i:02}.tif", pixels, **profile)
        out.append(pixels)
    return out


MIXED = ["uint8", "uint16", "int16", "uint8", "float32", "int32", "float64", "uint16"]


def rows(path, **options) -> np.ndarray:
    options = {"batch_size": 3, "shuffle": False, **options}
    with chaski.load(path, **options) as loader:
        return np.concatenate([batch["image"] for batch in loader])


@pytest.mark.parametrize("dtype", ["float32", "int64", "uint8", "float16"])
def test_chips(tmp_path, dtype):
    want = images(tmp_path, MIXED)
    got = rows(tmp_path, fields={"image": Field(dtype=dtype)})
    np.testing.assert_array_equal(got, np.stack([x.astype(dtype) for x in want]))
    window = chaski.ResizedWindow(SIDE, scale=(1, 1), ratio=1)
    got = rows(tmp_path, fields={"image": Field(dtype=dtype, resample="nearest")}, window=window)
    np.testing.assert_array_equal(got, np.stack([x.astype(dtype) for x in want]))


def test_native_and_values_that_do_not_fit(tmp_path):
    images(tmp_path, ["uint8", "uint16"], high=255)
    with pytest.raises(chaski.Error, match=r'its dtype is uint16: .*"native": give the field'):
        rows(tmp_path, fields={"image": Field(dtype="native")})
    write(tmp_path / "01.tif", np.full((2, SIDE, SIDE), 300, "uint16"))
    with pytest.raises(chaski.Error, match=r"01\.tif.*uint16 at row 0.*not between 0 and 255"):
        rows(tmp_path, fields={"image": Field(dtype="uint8")})
    write(tmp_path / "01.tif", np.full((2, SIDE, SIDE), 1.5, "float32"))
    with pytest.raises(chaski.Error, match=r"01\.tif.*float32 at row 0.*whole number"):
        rows(tmp_path, fields={"image": Field(dtype="int64")})


def test_normalised_over_the_wire(tmp_path, binary):
    """Tensors that travel in the dtype of the files are converted once files of others come."""
    folder = tmp_path / "chips"
    want = images(folder, ["uint8"] * 4 + ["uint16"] + ["uint8"] * 7, nodata=3)
    norm = chaski.Normalize(mean=[3.0, 7.0], std=[2.0, 5.0])
    options = {"fields": {"image": Field(normalize=norm)}, "shuffle": False, "batch_size": 3}
    line = [binary, "serve", "--listen", f"unix:{tmp_path / 's'}", "--root", str(tmp_path)]
    server = subprocess.Popen(line, stdout=subprocess.PIPE)
    try:
        target = json.loads(server.stdout.readline())["listen"]
        how = chaski.Engine(wire="native", transport="grpc")
        with chaski.connect(target, folder, engine=how, **options) as loader:
            got = np.concatenate([batch["image"] for batch in loader])
    finally:
        server.terminate()
        server.wait(60)
    for have, x in zip(got, want, strict=True):
        y = (x.astype("float32") - np.float32([3, 7])[:, None, None]) / np.float32([2, 5])[
            :, None, None
        ]
        np.testing.assert_allclose(have, np.where(x == 3, 0, y), rtol=1e-5, atol=1e-6)


def test_masks(tmp_path):
    values = [0, 1, 2, 200]
    rng = np.random.default_rng(1)
    want = [
        rng.choice(values, (1, SIDE, SIDE)).astype(d) for d in ("uint8", "int16", "uint16", "uint8")
    ]
    for i, x in enumerate(want):
        write(tmp_path / f"{i}.tif", x)
    table = {0: 7, 1: 8, 2: 9, 200: 255}
    got = rows(tmp_path, fields={"image": Field(lut=table, fill=255, dtype="int64")})
    np.testing.assert_array_equal(got, np.stack([np.vectorize(table.get)(x) for x in want]))
    stats = chaski.stats(tmp_path, fields={"image": Field(dtype="int64")})
    counts = {int(k): v for k, v in stats["fields"]["image"]["bands"][0]["classes"].items()}
    assert counts == {v: sum(int((x == v).sum()) for x in want) for v in values}


def test_statistics(tmp_path):
    want = np.stack([x.astype("float64") for x in images(tmp_path, MIXED)])
    for workers in (None, 1):
        options = {} if workers is None else {"workers": workers}
        bands = chaski.stats(tmp_path, **options)["fields"]["image"]["bands"]
        for band, x in nonempty(zip(bands, np.moveaxis(want, 1, 0), strict=True)):
            assert band["count"] == x.size
            assert (float(band["min"]), float(band["max"])) == (x.min(), x.max())
            assert band["mean"] == pytest.approx(x.mean(), rel=1e-12)
            assert band["std"] == pytest.approx(x.std(), rel=1e-12)
            assert band["percentiles"]["50"] == pytest.approx(np.median(x), abs=1)


@pytest.mark.parametrize("dtype", ["float32", "int64", "uint8"])
@pytest.mark.parametrize("augment", [None, "d4"])
def test_scenes(tmp_path, dtype, augment):
    """The first scene with a valid pixel counts, whatever the dtypes of the others."""
    rng = np.random.default_rng(3)
    scenes = []
    for i, d in enumerate(["uint8", "int16", "uint8", "uint16", "int32"]):
        pixels = rng.integers(1, 200, (2, SIDE, SIDE)).astype(d)
        pixels[rng.random(pixels.shape) < 0.6] = 0
        write(tmp_path / f"{i}.tif", pixels, nodata=0)
        scenes.append(pixels)
    side = SIDE - 4
    window = chaski.GeoWindow(size_m=side * 10, resolution=10, crs="EPSG:32630")
    fields = {"image": Field(dtype=dtype, validity="ok", fill=0)}
    pixels = Pixels(augment=augment)
    with chaski.load(tmp_path, batch_size=1, fields=fields, window=window, pixels=pixels) as loader:
        batch = next(iter(loader))
    want = np.zeros((2, SIDE, SIDE))
    for x in reversed(scenes):
        want = np.where(x != 0, x, want)
    turns = [np.rot90(t, k, (1, 2)) for t in (want, want[:, ::-1]) for k in range(4)]
    turns = turns if augment else turns[:1]
    places = [(y, x) for y in range(5) for x in range(5)]
    got = batch["image"][0]
    assert any((got == t[:, y : y + side, x : x + side]).all() for t in turns for y, x in places)
    np.testing.assert_array_equal(batch["ok"][0] > 0, got != 0)


def test_series_and_stacks(tmp_path):
    rng = np.random.default_rng(9)
    lines, want = ["a,b,time,place"], []
    for i, (d, e) in enumerate(
        [("uint8", "uint16"), ("uint16", "uint8"), ("int16", "uint8"), ("uint8", "uint8")]
    ):
        a, b = (rng.integers(0, 200, (1, SIDE, SIDE)).astype(t) for t in (d, e))
        write(tmp_path / f"a{i}.tif", a)
        write(tmp_path / f"b{i}.tif", b)
        lines.append(f"a{i}.tif,b{i}.tif,2024-01-0{i + 1},x")
        want.append(np.concatenate([a, b]).astype("float32"))
    (tmp_path / "t.csv").write_text("\n".join(lines))
    fields = {"image": Field(columns=["a", "b"], dtype="float32")}
    got = rows(tmp_path / "t.csv", fields=fields)
    np.testing.assert_array_equal(got, np.stack(want))
    time = chaski.Rows(time=chaski.Time(key="place", order="time", length=4))
    got = rows(tmp_path / "t.csv", fields={"image": Field(column="a", dtype="float32")}, rows=time)
    np.testing.assert_array_equal(got[0, :, 0], np.stack(want)[:, 0])


def test_whole_chips_of_any_sizes(tmp_path):
    """An image of 256 pixels beside a mask of 43: each is read whole, and turned as the other."""
    rng = np.random.default_rng(2)
    want = []
    for i in range(3):
        image = rng.integers(0, 255, (3, 256, 256)).astype("uint8")
        mask = rng.integers(0, 9, (1, 43, 43)).astype("uint8")
        with rasterio.Env():
            for name, x in (("images", image), ("masks", mask)):
                path = tmp_path / name / f"{i}.png"
                path.parent.mkdir(exist_ok=True)
                rasters.write(path, x, driver="PNG", dtype="uint8")
        want.append((image, mask))
    fields = {
        "image": Field(pattern="images/{id}.png"),
        "mask": Field(pattern="masks/{id}.png", dtype="int64"),
    }
    with chaski.load(tmp_path, batch_size=3, shuffle=False, fields=fields) as loader:
        batch = next(iter(loader))
    for i, (image, mask) in enumerate(want):
        np.testing.assert_array_equal(batch["image"][i], image)
        np.testing.assert_array_equal(batch["mask"][i], mask)
    with pytest.raises(chaski.Error, match="only whole"):
        chaski.load(tmp_path, batch_size=3, fields=fields, window=chaski.RandomWindow(16))


def test_verify_says_it(tmp_path, binary):
    images(tmp_path, ["uint8", "uint16", "uint8"])
    done = subprocess.run([binary, "verify", str(tmp_path)], capture_output=True, text=True)
    notes = json.loads(done.stdout)["notes"]
    assert len(notes) == 1 and "01.tif: its dtype is uint16" in notes[0] and '"native"' in notes[0]


def test_classes_are_counted_by_shards(tmp_path, binary):
    """Files of several dtypes count as those of one; a class that no shard has is an error."""
    rng = np.random.default_rng(4)
    dtypes = ["uint8", "uint16", "float32", "uint8"]
    for i, dtype in enumerate(dtypes):
        x = rng.integers(0, 2, (1, SIDE, SIDE)) * (3 if i < 2 else 5)
        write(tmp_path / "mixed" / f"{i}.tif", x.astype(dtype))
        write(tmp_path / "same" / f"{i}.tif", x.astype("uint8"))

    def count(name: str, classes: str, *flags: str) -> subprocess.CompletedProcess:
        out = tmp_path / f"{name}.weights"
        line = [binary, "stats", "--sampling", "--cell", "8", "--classes", classes, "-o", out]
        line += [*flags, tmp_path / name]
        return subprocess.run(line, capture_output=True, text=True)

    for name in ("mixed", "same"):
        assert count(name, "3,5").returncode == 0
    mixed, same = ((tmp_path / f"{n}.weights").read_bytes() for n in ("mixed", "same"))
    assert mixed[-4 * 9 * len(dtypes) :] == same[-4 * 9 * len(dtypes) :]
    for shard in ("0/2", "1/2"):
        done = count("mixed", "3,5", "--shard", shard)
        assert done.returncode == 0, done.stderr
    done = count("mixed", "3,5", "--merge", "2")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "mixed.weights").read_bytes() == mixed
    for shard in ("0/2", "1/2"):
        assert count("mixed", "3,7", "--shard", shard).returncode == 0
    done = count("mixed", "3,7", "--merge", "2")
    assert done.returncode == 1 and "one of [7]: leave them out" in done.stderr
