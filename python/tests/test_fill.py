"""`on_bad="fill"`: what can be read of a row stays, and "there" says what is there."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import rasters
from conftest import nonempty

import chaski

pytestmark = pytest.mark.usefixtures("one_engine")

rasterio = pytest.importorskip("rasterio", reason="needs rasterio to write chips")
pytest.importorskip("rasterio.features")

N, SIDE = 6, 64
BROKEN = {"image": {1, 5}, "radar": {2, 5}, "mask": {3, 5}}  # rows whose file is damaged
RING = [[5e5, 4599800], [503840, 4599800], [5e5, 4599360], [5e5, 4599800]]
SHAPE = {"type": "Polygon", "coordinates": [RING]}
WAYS = [{"engine": chaski.Engine(transport=t)} for t in ("grpc", "auto")]


def damage_pixels(path: Path) -> None:
    data = path.read_bytes()
    third = len(data) // 3
    path.write_bytes(data[:third] + b"\xff" * third + data[2 * third :])


def damage_header(path: Path) -> None:
    path.write_bytes(b"II*\0" + b"\xff" * 60)


def remove(path: Path) -> None:
    path.unlink()


CROPS = ["wheat", "maize", "", "wheat", "rye", "maize"]
SIZES = ["1.5", "2.5", "3.5", "", "4.5", "5.5"]
CLASSES = ["maize", "rye", "wheat"]
FILES = {
    "image": (3, SIDE, "uint16"),
    "radar": (2, SIDE // 2, "float32"),
    "mask": (1, SIDE, "uint8"),
}
FILLS = {"image": -1, "radar": -2, "mask": 255}


def fields(folder: Path) -> dict[str, chaski.Field]:
    return {
        "image": chaski.Field(column="image", dtype="float32", fill=-1, validity="image_ok"),
        "radar": chaski.Field(column="radar", dtype="float32", fill=-2),
        "mask": chaski.Field(column="mask", dtype="int64", layout="n y x", fill=255),
        "crop": chaski.Field(kind="class", classes=CLASSES),
        "size": chaski.Field(),
        "name": chaski.Field(),
        "parcels": chaski.Field(vector=chaski.Vector(str(folder / "parcels.geojson"))),
    }


def place(i: int) -> Any:
    return rasterio.Affine(10, 0, 5e5 + i * 640, 0, -10, 46e5)


def stored(i: int, name: str) -> np.ndarray[Any, Any]:
    bands, side, dtype = FILES[name]
    seed = 10 * i + list(FILES).index(name)
    return np.random.default_rng(seed).integers(1, 250, (bands, side, side)).astype(dtype)


@pytest.fixture(params=[damage_pixels, damage_header, remove])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A table of samples, each with some fields that cannot be read."""
    harm: Callable[[Path], None] = request.param
    lines = ["image,radar,mask,crop,size,name"]
    for i in range(N):
        for name, (bands, side, dtype) in FILES.items():
            profile = {"count": bands, "height": side, "width": side, "dtype": dtype}
            profile |= {
                "crs": "EPSG:32632",
                "transform": place(i) @ rasterio.Affine.scale(SIDE // side),
            }
            profile |= {"tiled": True, "blockxsize": 16, "blockysize": 16, "compress": "deflate"}
            path = tmp_path / f"{name}{i}.tif"
            rasters.write(path, stored(i, name), **profile)
            if i in BROKEN[name]:
                harm(path)
        lines.append(f"image{i}.tif,radar{i}.tif,mask{i}.tif,{CROPS[i]},{SIZES[i]},chip {i}")
    (tmp_path / "t.csv").write_text("\n".join(lines) + "\n")
    crs = {"type": "name", "properties": {"name": "EPSG:32632"}}
    feature = {"type": "Feature", "properties": {}, "geometry": SHAPE}
    collection = {"type": "FeatureCollection", "crs": crs, "features": [feature]}
    (tmp_path / "parcels.geojson").write_text(json.dumps(collection))
    return tmp_path / "t.csv"


def check(b: Any, k: int, i: int, partly: bool) -> set[str]:
    """Compares row k with sample i; returns which fields must be missing."""
    gone = {name for name, rows in BROKEN.items() if i in rows}
    y, x, h, w = b["window"][k].tolist()
    if partly:  # the window may have no damaged pixel; then its pixels are compared
        gone -= {name for name in gone if b[f"there.{name}"][k]}
    for name, fill in FILLS.items():
        if name in gone:
            assert (b[name][k] == fill).all(), name
            continue
        s = SIDE // FILES[name][1]
        want = stored(i, name)[:, y // s : (y + h) // s, x // s : (x + w) // s]
        assert np.array_equal(b[name][k], want.reshape(b[name][k].shape)), name
    assert (b["image_ok"][k] == ("image" not in gone)).all()
    assert b["name"][k] == f"chip {i}"
    if not CROPS[i]:
        gone.add("crop")
    assert b["crop"][k] == (CLASSES.index(CROPS[i]) if CROPS[i] else 0)
    if not SIZES[i]:
        gone.add("size")
    assert np.array_equal(b["size"][k], float(SIZES[i] or "nan"), equal_nan=True)
    if h < 0:  # no raster says where the window lies
        assert gone >= set(FILES) and (b["parcels"][k] == 0).all()
        return gone | {"parcels"}
    shift = place(i) @ rasterio.Affine.translation(x, y)
    drawn = rasterio.features.rasterize([SHAPE], out_shape=(h, w), transform=shift)
    assert np.array_equal(b["parcels"][k], drawn) and (i > 4 or h < SIDE or drawn.any())
    return gone


@pytest.mark.parametrize("way", WAYS, ids=["grpc", "shared memory"])
@pytest.mark.parametrize("window", [None, 32, chaski.Grid(32)], ids=["chips", "random", "grid"])
def test_what_can_be_read_stays(table: Path, way: dict[str, Any], window: Any) -> None:
    given = fields(table.parent)
    options = {"fields": given, "on_bad": "fill", "batch_size": 4, "last": "pad", **way}
    seen, lost = set(), set()
    partly = window is not None and (table.parent / "image1.tif").exists()
    with chaski.load(table, window=window, pixels=chaski.Pixels(windows=True), **options) as loader:
        described = {f.name: f for f in loader.fields}
        for b in nonempty(loader):
            assert set(b["there"]) == set(given)
            for name, there in b["there"].items():
                assert there.dtype == np.uint8 and there.shape == (4,)
                assert described[f"there.{name}"].axes == ("n",)
            for k in range(4):
                missing = {n for n, there in b["there"].items() if not there[k]}
                if b["position"][k] < 0:
                    assert not b["valid"][k] and missing == set(given)
                    continue
                i = int(b["name"][k].removeprefix("chip "))
                seen.add(i)
                assert missing == check(b, k, i, partly)
                lost |= missing
                assert b["valid"][k]
                assert (k in {x.row for x in b.bad}) == bool(missing - {"size"})
    assert seen == set(range(N)) and lost >= {*FILES, "crop", "size"}


def test_a_row_of_which_nothing_is_there_is_not_valid(table: Path) -> None:
    given = {n: f for n, f in fields(table.parent).items() if n in FILES}
    with chaski.load(table, fields=given, on_bad="fill", batch_size=N) as loader:
        b = next(iter(loader))
        assert sorted(b["sample"][~b["valid"]].tolist()) == [5]
        fetched = loader.fetch([1, 4])
        assert fetched["there.image"].tolist() == [0, 1]
        assert np.array_equal(fetched["radar"][0], stored(1, "radar"))


def test_steps(tmp_path: Path) -> None:
    """Of series, each field says for each step whether it is there."""
    r = np.random.default_rng(3)
    stack, lines = {}, ["site,date,a,b,cloud"]
    for site in range(3):
        for date in range(3):
            for name in "ab":
                stack[site, date, name] = x = r.integers(1, 99, (1, 16, 16), dtype=np.uint8)
                path = tmp_path / f"{name}{site}{date}.tif"
                rasters.write(path, x, dtype="uint8")
            lines.append(f"{site},2020-01-0{date + 1},a{site}{date}.tif,b{site}{date}.tif,{date}")
    broken = {(0, 0, "a"), (1, 1, "b"), (2, 2, "a"), (2, 2, "b")}
    for site, date, name in broken:
        damage_header(tmp_path / f"{name}{site}{date}.tif")
    (tmp_path / "t.csv").write_text("\n".join(lines) + "\n")
    given = {n: chaski.Field(column=n, dtype="float32", fill=-1) for n in "ab"}
    given["cloud"] = chaski.Field()
    rows = chaski.Rows(time=chaski.Time(key="site", order="date", length=3))
    with chaski.load(
        tmp_path / "t.csv", fields=given, rows=rows, on_bad="fill", batch_size=3
    ) as loader:
        b = next(iter(loader))
        assert b.axes["there.a"] == b.axes["there.cloud"] == ("n", "t") and b["valid"].all()
        for k, site in nonempty(enumerate(b["sample"].tolist())):
            for date in range(3):
                for name in "ab":
                    there = (site, date, name) not in broken
                    want = stack[site, date, name] if there else -1
                    assert (b[name][k, date] == want).all() and b[f"there.{name}"][k, date] == there
                assert b["cloud"][k, date] == date and b["there.cloud"][k, date] == 1
                assert b["steps"][k, date] == ((site, date) != (2, 2))


def test_tensors(table: Path) -> None:
    torch = pytest.importorskip("torch")
    import chaski.torch

    given = {n: f for n, f in fields(table.parent).items() if n in FILES}
    batches = chaski.torch.IterableDataset(table, fields=given, on_bad="fill", batch_size=N)
    (b,) = nonempty(batches)
    assert {n: v.tolist() for n, v in b["there"].items()} == {
        n: [int(i not in BROKEN[n]) for i in b["sample"].tolist()] for n in given
    }
    loss = torch.arange(float(N))
    here = b["there.radar"].bool()
    assert chaski.torch.masked_mean(loss, b, validity="there.radar") == loss[here].mean()


def test_pictures(table: Path) -> None:
    """What is not there is grey, also without a fill."""
    pytest.importorskip("matplotlib")
    given = {n: chaski.Field(column=n, dtype="native", layout=y) for n, y in LAYOUTS.items()}
    with chaski.load(table, fields=given, on_bad="fill", batch_size=N) as loader:
        b = next(iter(loader))
    figure = b.plot("image", "mask", rows=N, size=1)
    drawn = [a.get_images()[0].get_array() for a in figure.axes if a.get_images()]
    valid = [k for k in range(N) if b["valid"][k]]
    assert len(drawn) == 2 * len(valid)
    for k, image, mask in nonempty(zip(valid, drawn[::2], drawn[1::2], strict=True)):
        for name, picture in (("image", image), ("mask", mask)):
            flat = np.asarray(picture)[..., :3].reshape(-1, 3)
            grey = (flat == flat[0]).all() and len(set(flat[0].tolist())) == 1
            assert grey == (b["sample"][k] in BROKEN[name]), name


LAYOUTS = {"image": "n b y x", "radar": "n b y x", "mask": "n y x"}


def test_names(table: Path) -> None:
    given = {"there.image": chaski.Field(column="radar"), "image": chaski.Field(column="image")}
    chaski.load(table, fields=given, on_bad="skip", batch_size=2).close()
    with pytest.raises(chaski.SpecError, match="there.image"):
        chaski.load(table, fields=given, on_bad="fill", batch_size=2)
