"""The fields of a batch agree with rasterio's pixels and numpy's arithmetic."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest
import rasters
from conftest import nonempty

import chaski
from chaski import Field

pytestmark = pytest.mark.usefixtures("one_engine")

rasterio = pytest.importorskip("rasterio", reason="needs rasterio to write chips")

N, H, W = 6, 24, 40
WAYS = [{"engine": chaski.Engine(transport=t)} for t in ("grpc", "auto")]


def write(path: Path, x: np.ndarray, nodata: float | None = None) -> None:
    path.parent.mkdir(exist_ok=True)
    rasters.write(path, x, nodata=nodata)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """A table of images with nodata -9999, reflectances with NaN, and masks with 255."""
    folder = tmp_path_factory.mktemp("fields")
    rng = np.random.default_rng(3)
    image = rng.integers(-50, 4000, (N, 2, H, W), np.int16)
    image[rng.random(image.shape) < 0.1] = -9999
    real = rng.random((N, 1, H, W), np.float32)
    real[rng.random(real.shape) < 0.1] = np.nan
    mask = rng.integers(0, 5, (N, 1, H, W), np.uint8)
    mask[rng.random(mask.shape) < 0.1] = 255
    lines = ["image,real,mask,class,score,name,scan"]
    for i in range(N):
        write(folder / "image" / f"{i}.tif", image[i], -9999)
        write(folder / "real" / f"{i}.tif", real[i], np.nan)
        write(folder / "mask" / f"{i}.tif", mask[i], 255)
        kind = "" if i == 0 else f"c{i}"
        lines.append(f"image/{i}.tif,real/{i}.tif,mask/{i}.tif,{i * 50},{i / 4},{kind},{i}.jp2")
    (folder / "t.csv").write_text("\n".join(lines) + "\n")
    return folder, image, real, mask


@pytest.mark.parametrize("how", WAYS, ids=["grpc", "auto"])
def test_nodata_and_labels(data, how):
    folder, image, real, mask = data
    fields = {
        "image": "image",
        "real": Field(column="real", dtype=np.float16),
        "mask": Field(column="mask", dtype="native", layout="n y x"),
        "target": Field(column="mask", dtype="int64", layout="n y x"),
        "ignored": Field(column="mask", dtype="int64", layout="n y x", fill=-100),
        "stored": Field(column="image", dtype="native"),
    }
    for fill, of_floats in ((None, 0), (-5, -5)):
        with chaski.load(
            folder / "t.csv",
            batch_size=4,
            fields=fields,
            pixels=chaski.Pixels(fill=fill),
            seed=1,
            **how,
        ) as loader:
            seen = []
            for b in loader:
                k = b["sample"][b["valid"]]
                n = len(k)
                seen += k.tolist()
                x = image[k].astype(np.float32)
                x[image[k] == -9999] = of_floats
                assert b["image"].dtype == np.float32 and np.array_equal(b["image"][:n], x)
                r = np.where(np.isnan(real[k]), of_floats, real[k]).astype(np.float16)
                assert np.array_equal(b["real"][:n], r)
                m = mask[k][:, 0]
                assert b["mask"].dtype == np.uint8 and np.array_equal(b["mask"][:n], m)
                assert b["target"].dtype == np.int64 and np.array_equal(b["target"][:n], m)
                assert np.array_equal(b["ignored"][:n], np.where(m == 255, -100, m.astype(int)))
                assert np.array_equal(b["stored"][:n], image[k])
        assert sorted(seen) == list(range(N))


def test_cross_entropy_takes_targets(data):
    torch = pytest.importorskip("torch")
    import chaski.torch

    fields = {
        "image": Field(column="image"),
        "mask": Field(column="mask", dtype=torch.int64, layout="n y x", fill=-100),
    }
    for b in nonempty(chaski.torch.IterableDataset(data[0] / "t.csv", batch_size=3, fields=fields)):
        assert b["mask"].dtype == torch.int64
        scores = torch.cat([b["image"]] * 3, 1)[:, :5]
        loss = torch.nn.functional.cross_entropy(scores, b["mask"], ignore_index=-100)
        assert torch.isfinite(loss)


def test_numbers_and_texts(data):
    fields = {
        "label": Field(column="class", dtype="int64"),
        "half": Field(column="class", dtype=np.float16),
        "byte": Field(column="class", dtype="uint8"),
        "score": Field(column="score", dtype=np.float32),
        "plain": "class",
        "name": Field(column="name", kind="text"),
        "path": Field(column="image", kind="text"),
        "scan": "scan",
        "image": "image",
    }
    with chaski.load(data[0] / "t.csv", batch_size=N, fields=fields, shuffle=False) as loader:
        (b,) = loader
    i = np.arange(N)
    for name, dtype in (
        ("label", "int64"),
        ("half", "float16"),
        ("byte", "uint8"),
        ("plain", "int64"),
    ):
        assert b[name].dtype == dtype and np.array_equal(b[name], (50 * i).astype(dtype))
    assert b["score"].dtype == np.float32 and np.array_equal(b["score"], (i / 4).astype(np.float32))
    assert b["name"].tolist() == ["", *(f"c{k}" for k in range(1, N))]
    assert b["path"].tolist() == [f"image/{k}.tif" for k in i]
    assert b["scan"].tolist() == [f"{k}.jp2" for k in i]


def test_overflow_is_a_bad_row(data):
    fields = {"image": "image", "label": Field(column="class", dtype="int8")}
    with (
        chaski.load(data[0] / "t.csv", batch_size=N, fields=fields, shuffle=False) as loader,
        pytest.raises(chaski.CorruptError, match="150 is not a number of dtype int8"),
    ):
        next(iter(loader))
    with chaski.load(
        data[0] / "t.csv", batch_size=N, fields=fields, shuffle=False, on_bad="skip"
    ) as loader:
        (b,) = loader
    assert b["valid"].tolist() == [True] * 3 + [False] * 3
    assert b["label"].tolist() == [0, 50, 100, 0, 0, 0]


@pytest.mark.parametrize(
    "field,match",
    [
        (Field(column="scan", dtype="native"), 'dtype is "native".*column "scan" holds texts'),
        (Field(column="scan", bands=[0]), 'bands is given.*column "scan" holds texts'),
        (Field(column="class", layout="n y x"), 'the field is a raster.*column "class" holds ints'),
        (
            Field(column="image", kind="number"),
            'kind is "number", and column "image" holds rasters',
        ),
        (Field(column="name", kind="text", dtype="uint8"), "strings have no dtype"),
        (Field(column="image", dtype="int32"), 'dtype is "int32", and rasters have'),
        (Field(column="image", normalize={"scale": 0.0}), "scale 0 of 1 is 0"),
        (Field(column="image", dtype="flaot32"), "it must be one of"),
    ],
)
def test_contradictions(data, field, match):
    with pytest.raises(chaski.Error, match=match):
        chaski.load(data[0] / "t.csv", batch_size=2, fields={"image": "image", "f": field})


def test_windows(data):
    folder, image, _, _ = data
    with chaski.load(
        folder / "image",
        batch_size=4,
        window=chaski.RandomWindow((8, 16), per_asset=3),
        pixels=chaski.Pixels(windows=True),
    ) as loader:
        n = 0
        for b in loader:
            assert b["window"].dtype == np.int64 and b["window"].shape == (len(b["valid"]), 4)
            for row in range(len(b["valid"])):
                y, x, h, w = b["window"][row]
                if not b["valid"][row]:
                    assert (b["window"][row] == -1).all()
                    continue
                with rasterio.open(folder / "image" / f"{b['sample'][row] // 3}.tif") as d:
                    read = d.read(window=((y, y + h), (x, x + w)), masked=True).filled(0)
                assert np.array_equal(b["image"][row], read.astype(np.float32))
                n += 1
    assert n == 3 * N


def test_paths_of_a_folder(data):
    fields = {"image": Field(), "path": Field(kind="text")}
    with chaski.load(data[0] / "image", batch_size=N, fields=fields, shuffle=False) as loader:
        (b,) = loader
    assert [Path(p).name for p in b["path"]] == [f"{i}.tif" for i in range(N)]


@pytest.fixture(scope="module")
def named(tmp_path_factory):
    """Files of uint16 whose descriptions name the bands; every second file has another order."""
    folder = tmp_path_factory.mktemp("named")
    rng = np.random.default_rng(5)
    orders = [("B02", "B04", "B08"), ("B08", "B02", "B04")]
    x = rng.integers(1, 4000, (N, 3, H, W), np.uint16)
    by_name = []
    for i in range(N):
        order = orders[i % 2]
        with rasterio.open(
            folder / f"{i}.tif", "w", driver="GTiff", count=3, height=H, width=W, dtype="uint16"
        ) as d:
            d.write(x[i])
            d.descriptions = order
        with rasterio.open(folder / f"{i}.tif") as d:
            by_name.append({n: d.read(k + 1) for k, n in enumerate(d.descriptions)})
    return folder, by_name


@pytest.mark.parametrize("how", WAYS, ids=["grpc", "auto"])
def test_bands_by_name(named, how):
    folder, by_name = named
    for bands in (["B04", "B08"], ("B08", "B08", "B02"), ["B02", "B04", "B08"]):
        with chaski.load(
            folder, batch_size=4, pixels=chaski.Pixels(bands=bands), seed=2, **how
        ) as loader:
            assert loader.spec["fields"][0]["band_names"] == list(bands)
            for b in nonempty(loader):
                for row in nonempty(np.flatnonzero(b["valid"])):
                    want = np.stack([by_name[b["sample"][row]][n] for n in bands])
                    assert np.array_equal(b["image"][row], want.astype(np.float32))


def test_bands_by_name_when_resampled(named):
    folder, by_name = named
    sampler = chaski.ResizedWindow((H, W), scale=(1, 1), ratio=1)
    with chaski.load(
        folder,
        batch_size=N,
        pixels=chaski.Pixels(bands=["B08"], dtype="native", windows=True),
        window=sampler,
    ) as loader:
        (b,) = loader
    for row in range(N):
        y, x, h, w = b["window"][row]
        if (h, w) == (H, W):
            assert np.array_equal(b["image"][row, 0], by_name[b["sample"][row]]["B08"])


def test_names_that_are_not_there(named, data, tmp_path):
    folder, _ = named
    with pytest.raises(
        chaski.NotFoundError, match=r'no band "B03"; there are \["B02" "B04" "B08"\]'
    ):
        chaski.load(folder, batch_size=2, pixels=chaski.Pixels(bands=["B02", "B03"]))
    with pytest.raises(chaski.NotFoundError, match="the file has no band names"):
        chaski.load(data[0] / "image", batch_size=2, pixels=chaski.Pixels(bands=["B02"]))
    with pytest.raises(chaski.SpecError, match="bands"):
        chaski.load(folder, batch_size=2, pixels=chaski.Pixels(bands=["B02", 1]))
    for i, order in enumerate([("a", "b"), ("a", "c"), ("b", "b")]):
        with rasterio.open(
            tmp_path / f"{i}.tif", "w", driver="GTiff", count=2, height=H, width=W, dtype="uint8"
        ) as d:
            d.write(np.full((2, H, W), i, np.uint8))
            d.descriptions = order
    with chaski.load(
        tmp_path, batch_size=3, pixels=chaski.Pixels(bands=["b"]), shuffle=False, on_bad="skip"
    ) as loader:
        (b,) = loader
        assert b["valid"].tolist() == [True, False, False]
        said = [r.message for r in b.bad]
    assert 'no band "b"; there are ["a" "c"]' in said[0]
    assert 'two bands are called "b"' in said[1]


def test_stats_of_named_bands(named):
    folder, by_name = named
    with chaski.load(
        folder, batch_size=N, pixels=chaski.Pixels(bands=["B02"], dtype="float32")
    ) as loader:
        (b,) = loader
    with pytest.raises(chaski.UnsupportedError, match=r'1\.tif: bands: band 0 is "B08".*"B02"'):
        chaski.stats(folder)
    s = chaski.stats(folder, fields={"image": chaski.Field(bands=["B08", "B02"])})
    assert [r["name"] for r in s["fields"]["image"]["bands"]] == ["B08", "B02"]
    want = [np.mean([by_name[i][name] for i in range(N)]) for name in ("B08", "B02")]
    assert np.allclose(s.mean("image"), want)
    with pytest.raises(chaski.SpecError, match='one band called "B04": of 2 bands it has 0'):
        pixels = chaski.Pixels(bands=["B04"])
        chaski.load(folder, batch_size=3, pixels=pixels, normalize="mean_std", stats=s)
    same = [i for i in range(N) if i % 2 == 0]
    files = [str(folder / f"{i}.tif") for i in same]
    table = folder / "t.csv"
    table.write_text("\n".join(["image", *files]) + "\n")
    s = chaski.stats(table)
    with chaski.load(
        table,
        batch_size=3,
        pixels=chaski.Pixels(bands=["B08"]),
        normalize="mean_std",
        stats=s,
        shuffle=False,
    ) as loader:
        (b,) = loader
    x = np.stack([by_name[i]["B08"] for i in same]).astype(np.float64)
    assert np.allclose(b["image"][:, 0], (x - x.mean()) / x.std(), atol=1e-5)
    with pytest.raises(chaski.SpecError, match='one band called "B03": of 3 bands it has 0'):
        chaski.load(
            table, batch_size=3, pixels=chaski.Pixels(bands=["B03"]), normalize="mean_std", stats=s
        )


def test_cat_by_name(named, binary):
    folder, by_name = named
    command = [binary, "cat", "--format", "raw", "--b", "B08,B02"]
    out = subprocess.run([*command, folder / "1.tif"], check=True, capture_output=True).stdout
    want = np.stack([by_name[1]["B08"], by_name[1]["B02"]])
    assert np.array_equal(np.frombuffer(out, "<u2").reshape(want.shape), want)
    done = subprocess.run([*command, folder / "0.tif", folder / "1.tif"], capture_output=True)
    assert (
        done.returncode == 1
        and b"read only files with the same order of bands together" in done.stderr
    )


@pytest.mark.parametrize("catalog", [False, True])
@pytest.mark.parametrize("dtype", ["uint16", "int16", "float32", "float64"])
def test_wider_pixels_as_uint8(tmp_path, binary, dtype, catalog):
    rng = np.random.default_rng(5)
    pixels = rng.integers(0, 256, (6, 2, H, W)).astype(dtype)
    odd = {1: 256, 2: -1 if dtype != "uint16" else 65535, 4: np.nan if dtype[0] == "f" else 300}
    for i, v in odd.items():
        pixels[i, 1, 3, 2] = v
    if dtype[0] == "f":
        pixels[0, 0, 0, 0], pixels[3, 0, 0, 0] = 255.25, -0.25  # they round to what fits
    for i in range(6):
        rasters.write(tmp_path / f"{i}.tif", pixels[i], dtype=dtype)
    source = tmp_path
    if catalog:
        source = tmp_path / "chips.parquet"
        command = [binary, "index", "--format", "parquet", "-o", str(source), str(tmp_path)]
        subprocess.run(command, check=True, capture_output=True)
    narrow = np.nan_to_num(np.clip(np.rint(pixels.astype(np.float64)), 0, 255)).astype(np.uint8)

    def batch(**clip):
        with chaski.load(
            source,
            batch_size=6,
            pixels=chaski.Pixels(dtype="uint8", **clip),
            shuffle=False,
            on_bad="skip",
        ) as loader:
            (b,) = loader
        return b

    b = batch()
    assert b["valid"].tolist() == [i not in odd for i in range(6)]
    assert np.array_equal(b["image"][b["valid"]], narrow[b["valid"]])
    assert all("row 3, column 2 of band 1" in r.message for r in b.bad)
    b = batch(clip=True)
    assert b["valid"].all() and np.array_equal(b["image"], narrow)
    with pytest.raises(chaski.UnsupportedError, match=r'1\.tif: pixels: dtype is "uint8".*clip'):
        list(chaski.load(source, batch_size=6, pixels=chaski.Pixels(dtype="uint8"), shuffle=False))
    with pytest.raises(chaski.SpecError, match="clip is true, but no field takes it"):
        chaski.load(source, batch_size=6, pixels=chaski.Pixels(clip=True))
