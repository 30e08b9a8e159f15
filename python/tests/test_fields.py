"""What a field of a batch is, against what rasterio reads and numpy makes of it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import chaski
from chaski import Field

rasterio = pytest.importorskip("rasterio", reason="needs rasterio to write chips")

N, H, W = 6, 24, 40
WAYS = [
    {"transport": "grpc", "wire": "native"},
    {"transport": "grpc", "wire": "final"},
    {"transport": "auto"},
]


def write(path: Path, x: np.ndarray, nodata: float | None = None) -> None:
    path.parent.mkdir(exist_ok=True)
    profile = {"count": x.shape[0], "height": H, "width": W, "dtype": x.dtype, "nodata": nodata}
    with rasterio.open(path, "w", driver="GTiff", **profile) as d:
        d.write(x)


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


@pytest.mark.parametrize("how", WAYS, ids=str)
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
            folder / "t.csv", batch_size=4, fields=fields, fill=fill, seed=1, **how
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
    for b in chaski.torch.IterableDataset(data[0] / "t.csv", batch_size=3, fields=fields):
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
        pytest.raises(chaski.CorruptError, match="150 is no number of dtype int8"),
    ):
        next(iter(loader))
    with chaski.load(
        data[0] / "t.csv", batch_size=N, fields=fields, shuffle=False, bad_samples="skip"
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
        (Field(column="class", kind="text"), 'kind is "text", and column "class" holds ints'),
        (
            Field(column="image", kind="number"),
            'kind is "number", and column "image" holds rasters',
        ),
        (Field(column="name", kind="text", dtype="uint8"), "texts have no dtype"),
        (Field(column="image", dtype="int32"), 'dtype is "int32", and rasters have'),
        (Field(column="real", dtype="int64"), "float32 to int64"),
        (Field(column="image", normalize={"scale": 0.0}), "scale 0 of 1 is 0"),
        (Field(column="image", dtype="flaot32"), "is none of"),
    ],
)
def test_contradictions(data, field, match):
    with pytest.raises(chaski.Error, match=match):
        chaski.load(data[0] / "t.csv", batch_size=2, fields={"image": "image", "f": field})


def test_windows(data):
    folder, image, _, _ = data
    with chaski.load(
        folder / "image", batch_size=4, window=(8, 16), windows_per_asset=3, windows=True
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
