"""Several windows of one sample, cut again with numpy where the batch says they lie."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
import rasters
from conftest import nonempty
from resumed import epochs, equal, goes_on

import chaski
from chaski.order import hash_words, window

rasterio = pytest.importorskip("rasterio", reason="needs rasterio to write chips")
pytestmark = pytest.mark.usefixtures("one_engine")

SIDE, N = 96, 9
VIEW = 18  # the domain of views in docs/order.md
R, Z = chaski.RandomWindow, chaski.ResizedWindow
NATIVE = chaski.Pixels(dtype="native", windows=True)


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> tuple[Path, np.ndarray, np.ndarray]:
    """Images with masks of half their resolution, in tiles; a table of two dates of each place."""
    folder = tmp_path_factory.mktemp("views")
    r = np.random.default_rng(1)
    images = r.integers(1, 60000, (N, 3, SIDE, SIDE), dtype=np.uint16)
    masks = r.integers(0, 5, (N, 1, SIDE // 2, SIDE // 2), dtype=np.uint8)
    lines = ["image,mask,site,date"]
    for i in range(N):
        for kind, x in (("image", images[i]), ("mask", masks[i])):
            profile = {"count": len(x), "height": x.shape[1], "width": x.shape[2], "dtype": x.dtype}
            profile |= {"tiled": True, "blockxsize": 32, "blockysize": 32, "compress": "deflate"}
            place = rasterio.transform.from_origin(500000, 5e6, 960 / x.shape[2], 960 / x.shape[1])
            name = folder / f"{kind}{i}.tif"
            rasters.write(name, x, crs="EPSG:32633", transform=place, **profile)
        lines.append(f"image{i}.tif,mask{i}.tif,{i // 2},{i % 2}")
    (folder / "chips.csv").write_text("\n".join(lines) + "\n")
    return folder / "chips.csv", images, masks


FIELDS = {"image": "image", "mask": "mask"}


def load(source: Path, views, **how):
    how = {"batch_size": 4, "fields": FIELDS, "pixels": NATIVE, "seed": 7} | how
    return chaski.load(source, window=views, **how)


def crop(x: np.ndarray, box, scale: int = 1) -> np.ndarray:
    y, x0, h, w = (int(v) // scale for v in box)
    return x[..., y : y + h, x0 : x0 + w]


def turns(x: np.ndarray) -> list[np.ndarray]:
    """Returns the eight symmetries of an image, in the order of their numbers."""
    flipped = [x, x[..., ::-1], x[..., ::-1, :], x[..., ::-1, ::-1]]
    return flipped + [np.swapaxes(f, -1, -2) for f in flipped]


def test_crops_of_images_and_masks(data):
    source, images, masks = data
    with load(source, [R(32), R(32), R(32)]) as loader:
        for batch in nonempty(loader):
            n = len(batch["sample"])
            assert batch["image"].shape == (n, 3, 3, 32, 32)
            assert batch["mask"].shape == (n, 3, 1, 16, 16) and batch["window"].shape == (n, 3, 4)
            for k, sample in nonempty(enumerate(batch["sample"])):
                for v, box in nonempty(enumerate(batch["window"][k])):
                    assert np.array_equal(batch["image"][k, v], crop(images[sample], box))
                    assert np.array_equal(batch["mask"][k, v], crop(masks[sample], box, 2))


def test_windows_are_those_of_the_order(data):
    """Each further view is the random window of a seed of its own."""
    with load(data[0], [R(32), R((16, 48)), R(32)]) as loader:
        for at, batch in nonempty(enumerate(epochs(loader, 2))):
            epoch = at // 3
            for p, boxes in nonempty(zip(batch["position"], batch["window"], strict=True)):
                for v, (h, w) in enumerate([(32, 32), (16, 48), (32, 32)]):
                    seed = hash_words(7, VIEW, v, 0) if v else 7
                    y, x = window(seed, epoch, int(p), SIDE, SIDE, h, w, 2, 2)
                    assert boxes[v].tolist() == [y, x, h, w]


def test_first_view_is_the_window_alone(data):
    """A list of one window is the window, and further ones change nothing of the first."""
    how = {"pixels": dataclasses.replace(NATIVE, augment="d4")}
    for first in (R(32, per_asset=2), Z(32), chaski.Grid(48), chaski.WholeChip()):
        with (
            load(data[0], first, **how) as one,
            load(data[0], [first], **how) as same,
            load(data[0], [first, R(32), Z(32)], **how) as several,
        ):
            runs = [epochs(loader, 2) for loader in (one, same, several)]
            for a, b, c in nonempty(zip(*runs, strict=True)):
                assert equal(a, b)
                size = "" if a["image"].shape[-1] == 32 else f".{a['image'].shape[-1]}"
                assert np.array_equal(a["image"], c["image" + size][:, 0])
                assert np.array_equal(a["mask"], c["mask" + size][:, 0])
                assert np.array_equal(a["window"], c["window"][:, 0])
                assert np.array_equal(a["sample"], c["sample"])


def test_sizes_have_tensors_of_their_own(data):
    source, images, masks = data
    views = [R(48), R(16), R(48), R((16, 32)), R(16), chaski.WholeChip()]
    with load(source, views) as loader:
        names = [f.name for f in loader.fields]
        assert names[:4] == ["image.48", "image.16", "image.16x32", f"image.{SIDE}"]
        for batch in nonempty(loader):
            for k, sample in nonempty(enumerate(batch["sample"])):
                for size, numbers in [("48", [0, 2]), ("16", [1, 4]), ("16x32", [3]), ("96", [5])]:
                    assert batch["image." + size].shape[1] == len(numbers)
                    for i, v in nonempty(enumerate(numbers)):
                        box = batch["window"][k, v]
                        image, mask = batch["image." + size], batch["mask." + size]
                        assert np.array_equal(image[k, i], crop(images[sample], box))
                        assert np.array_equal(mask[k, i], crop(masks[sample], box, 2))


def test_flips_are_of_each_view_and_of_all_its_fields(data):
    source, images, masks = data
    seen = set()
    with load(source, [R(32)] * 2, pixels=dataclasses.replace(NATIVE, augment="d4")) as loader:
        for batch in nonempty(loader):
            for k, sample in enumerate(batch["sample"]):
                pair = []
                for v, box in nonempty(enumerate(batch["window"][k])):
                    found = turns(crop(images[sample], box))
                    (turn,) = [i for i, x in enumerate(found) if (x == batch["image"][k, v]).all()]
                    mask = turns(crop(masks[sample], box, 2))[turn]
                    assert np.array_equal(batch["mask"][k, v], mask)
                    pair.append(turn)
                seen.add(tuple(pair))
    assert any(a != b for a, b in seen)


def test_resized_views_are_boxes_of_rows(data, tmp_path):
    """Each is what a `RowWindow` reads at its box."""
    source, _, _ = data
    image = {"image": chaski.Field(column="image", dtype="float32")}
    pixels = chaski.Pixels(windows=True)
    with load(source, [Z(32), Z(32, of_asset=True)], fields=image, pixels=pixels) as loader:
        batches = list(loader)
    lines = ["image,x,y,w,h"]
    for batch in batches:
        for sample, boxes in zip(batch["sample"], batch["window"], strict=True):
            for y, x, h, w in boxes:
                lines.append(f"{source.parent / f'image{sample}.tif'},{x},{y},{w},{h}")
    (tmp_path / "boxes.csv").write_text("\n".join(lines) + "\n")
    rows = chaski.RowWindow(32, x="x", y="y", width="w", height="h")
    with load(
        tmp_path / "boxes.csv", rows, fields=image, pixels=pixels, shuffle=False, batch_size=2 * N
    ) as loader:
        (want,) = loader
    got = np.concatenate([b["image"].reshape(-1, 3, 32, 32) for b in batches])
    assert np.array_equal(got, want["image"])


def share(a, b) -> float:
    h = min(a[0] + a[2], b[0] + b[2]) - max(a[0], b[0])
    w = min(a[1] + a[3], b[1] + b[3]) - max(a[1], b[1])
    return max(h, 0) * max(w, 0) / min(a[2] * a[3], b[2] * b[3])


def test_overlap(data):
    least = {1: 0.3, 2: 0.9, 3: 1.0, 4: 0.5}
    sizes = [32, 32, 16, 24]
    views = [R(32)] + [R(s, min_overlap=least[v + 1]) for v, s in enumerate(sizes[:3])]
    views.append(Z(24, min_overlap=0.5))
    with load(data[0], views) as loader:
        boxes = np.concatenate([b["window"] for b in epochs(loader, 30)])
    assert len(boxes) == 30 * N
    for v, want in least.items():
        shares = np.array([share(b[0], b[v]) for b in boxes])
        assert shares.min() >= want
        assert (boxes[:, v, :2] % 2 == 0).all() and (boxes[:, v, :2] >= 0).all()
        assert (boxes[:, v, :2] + boxes[:, v, 2:] <= SIDE).all()
    free = np.array([share(b[0], b[1]) for b in boxes])
    assert free.min() < 0.4 and free.max() > 0.9  # not all at one place


def test_overlap_that_sizes_exclude(data):
    with (
        load(data[0], [R((16, 64)), R((64, 16), min_overlap=0.5)]) as loader,
        pytest.raises(chaski.Error, match=r"min_overlap is 0.5, and a window of 64 by 16 .*0.25"),
    ):
        next(iter(loader))


def test_resume_ranks_and_fetch(data):
    views = [R(32, per_asset=2), R(32, min_overlap=0.2), Z(16)]
    how = {"pixels": dataclasses.replace(NATIVE, augment="flips")}
    with load(data[0], views, **how) as loader:
        want = epochs(loader, 2)
    goes_on(lambda: load(data[0], views, **how), want, (1, 4))
    for rank in range(3):
        with load(data[0], views, rank=rank, world_size=3, **how) as loader:
            for a, b in zip(epochs(loader, 2), want, strict=True):
                rows = b["position"][rank::3]
                if len(rows) == 0:
                    continue
                assert np.array_equal(a["position"], rows)
                assert np.array_equal(a["image.32"], b["image.32"][rank::3])
                assert np.array_equal(a["image.16"], b["image.16"][rank::3])
    with load(data[0], views, shuffle=False, **how) as loader:
        first = next(iter(loader))
        fetched = loader.fetch(first["sample"][[2, 0]])
        assert np.array_equal(fetched["image.32"], first["image.32"][[2, 0]])
        assert np.array_equal(fetched["window"], first["window"][[2, 0]])
    with load(data[0], [R(32), R(16)]) as loader:
        one = loader.fetch([3], windows=[(8, 2, 32, 32)])  # in place of the views
        assert np.array_equal(one["image"][0], crop(data[1][3], (8, 2, 32, 32)))


def test_series_and_places(data):
    """A view shows all dates of a place; "geo" says where each view lies."""
    source, images, _ = data
    rows = chaski.Rows(time=chaski.Time(key="site", order="date", length=2))
    pixels = dataclasses.replace(NATIVE, geo=True)
    fields = {"image": "image"}
    with load(source, [R(32), R(32)], rows=rows, pixels=pixels, fields=fields) as loader:
        for batch in nonempty(loader):
            assert batch["image"].shape[1:] == (2, 2, 3, 32, 32)  # n v t b y x
            assert batch["geo.transform"].shape[1:] == (2, 6)
            for k, sample in nonempty(enumerate(batch["sample"])):
                for v, box in nonempty(enumerate(batch["window"][k])):
                    for t in range(int(batch["steps"][k].sum())):
                        want = crop(images[2 * sample + t], box)
                        assert np.array_equal(batch["image"][k, v, t], want)
                    place = batch["geo.transform"][k, v]
                    assert place.tolist() == [
                        500000 + 10 * box[1], 10, 0, 5e6 - 10 * box[0], 0, -10,
                    ]  # fmt: skip


def test_layouts(data):
    source, images, _ = data
    fields = {"image": chaski.Field(column="image", layout="(n v) b y x")}
    with load(source, [R(32), R(32)], fields=fields) as loader:
        batch = next(iter(loader))
        for i, box in nonempty(enumerate(batch["window"].reshape(-1, 4))):
            want = crop(images[batch["sample"][i // 2]], box)
            assert np.array_equal(batch["image"][i], want)
    fields = {"image": chaski.Field(column="image", layout="n y x b")}
    with pytest.raises(chaski.Error, match='layout is "n y x b": .* needs the axis v'):
        load(source, [R(32), R(32)], fields=fields)


def test_bad_samples(data, tmp_path):
    """A bad row is bad in all its views; its substitute has views of its own."""
    source, images, _ = data
    for i in range(N):
        text = (source.parent / f"image{i}.tif").read_bytes()
        (tmp_path / f"image{i}.tif").write_bytes(text[:300] if i == 4 else text)
        (tmp_path / f"mask{i}.tif").write_bytes((source.parent / f"mask{i}.tif").read_bytes())
    (tmp_path / "chips.csv").write_text(source.read_text())
    views = [R(32), R(16), R(32)]
    for policy in ("skip", "replace", "fill"):
        how = {"on_bad": chaski.OnBad(policy), "batch_size": N}
        with load(tmp_path / "chips.csv", views, **how) as loader:
            (batch,) = loader
        (bad,) = batch.bad
        for k, sample in nonempty(enumerate(batch["sample"])):
            image, boxes = batch["image.32"], batch["window"][k]
            if k == bad.row and policy != "replace":
                assert not image[k].any() and not batch["image.16"][k].any()
                assert batch["mask.32"][k].any() == (policy == "fill")
                continue
            assert batch["valid"][k]
            assert np.array_equal(image[k, 1], crop(images[sample], boxes[2]))
            assert np.array_equal(batch["image.16"][k, 0], crop(images[sample], boxes[1]))


@pytest.mark.parametrize(
    ("views", "says"),
    [
        ([R(32, min_overlap=0.5), R(32)], "min_overlap is 0.5: it is for the windows of a list"),
        ([R(32), R(32, min_overlap=2)], "window 1: min_overlap is 2: it must be from 0 to 1"),
        ([R(32), R(32, per_asset=2)], "window 1: per_asset is 2"),
        ([R(32), chaski.Grid(32)], 'window 1: its kind is "grid"'),
        ([R(32), chaski.TileWindow(32)], 'its kind is "tile_window"'),
        ([R(sizes=[16, 32]), R(32)], r"sizes is \[16"),
        ([R(32), chaski.WholeChip(max_nodata=0.5, coverage="c")], "window 1: max_nodata is 0.5"),
        ([R(32)] * 65, "65 windows of a sample, at most 64"),
        ([R(32), R(33)], "window 1: .*33 by 33 pixels has no whole size in every field"),
        ([R(32), 5.5], "a pair of sides|the side of a square|it must be"),
    ],
)
def test_refused(data, views, says):
    with pytest.raises(chaski.Error, match=says):
        load(data[0], views)


@pytest.mark.parametrize("name", ["image.32", "ok.16"])
def test_names_with_sizes_are_of_one_tensor(data, name):
    fields = {"image": chaski.Field("image", validity="ok"), name: "site"}
    with pytest.raises(chaski.SpecError, match=f'two tensors "{name}"'):
        load(data[0], [R(32), R(16)], fields=fields)
    with load(data[0], [R(32), R(32)], fields=fields) as loader:
        assert {"image", "ok", *fields} <= next(iter(loader)).keys()
