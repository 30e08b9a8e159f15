"""Views that lie beside the first window: in its tile, and on the ground; and shapes in views."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import numpy as np
import pytest
import rasters
from conftest import nonempty
from resumed import epochs, equal, goes_on

import chaski
from chaski.order import below, hash_words

rasterio = pytest.importorskip("rasterio", reason="needs rasterio to write scenes")
pytestmark = pytest.mark.usefixtures("binary")

T, R, Z, G = chaski.TileWindow, chaski.RandomWindow, chaski.ResizedWindow, chaski.GeoWindow
VIEW, CORNER = 18, 11  # domains of docs/order.md
SIDE, TILE, N = 192, 64, 2
NATIVE = chaski.Pixels(dtype="native", windows=True)
TOP, LEFT = 4_600_000, 500_000


def write(path: Path, x: np.ndarray, left: float, top: float, pixel: float) -> None:
    profile = {"count": len(x), "height": x.shape[1], "width": x.shape[2], "dtype": x.dtype}
    profile |= {"tiled": True, "blockxsize": TILE, "blockysize": TILE, "compress": "deflate"}
    place = rasterio.Affine(pixel, 0, left, 0, -pixel, top)
    rasters.write(path, x, crs="EPSG:32630", transform=place, **profile)


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> tuple[Path, np.ndarray, np.ndarray, list]:
    """Two scenes side by side, in tiles, with masks of half their resolution; and triangles."""
    folder = tmp_path_factory.mktemp("beside")
    r = np.random.default_rng(2)
    images = r.integers(1, 60000, (3, SIDE, N * SIDE), dtype=np.uint16)
    masks = r.integers(1, 200, (1, SIDE // 2, N * SIDE // 2), dtype=np.uint8)
    lines = ["image,mask"]
    for i in range(N):
        image, mask = images[..., i * SIDE :][..., :SIDE], masks[..., i * SIDE // 2 :]
        write(folder / f"image{i}.tif", image, LEFT + 10 * i * SIDE, TOP, 10)
        write(folder / f"mask{i}.tif", mask[..., : SIDE // 2], LEFT + 10 * i * SIDE, TOP, 20)
        lines.append(f"image{i}.tif,mask{i}.tif")
    (folder / "scenes.csv").write_text("\n".join(lines) + "\n")
    corners = r.uniform((LEFT, TOP - 10 * SIDE), (LEFT + 10 * N * SIDE, TOP), (300, 1, 2))
    rings = corners + r.uniform(-150, 150, (300, 3, 2))
    rings = np.concatenate([rings, rings[:, :1]], axis=1)
    shapes = [{"type": "Polygon", "coordinates": [ring.tolist()]} for ring in rings]
    collection = {
        "type": "FeatureCollection",
        "crs": {"type": "name", "properties": {"name": "EPSG:32630"}},
        "features": [
            {"type": "Feature", "properties": {"kind": i % 7 + 1}, "geometry": s}
            for i, s in enumerate(shapes)
        ],
    }
    (folder / "shapes.geojson").write_text(json.dumps(collection))
    return folder / "scenes.csv", images, masks, [(s, i % 7 + 1) for i, s in enumerate(shapes)]


FIELDS = {"image": "image", "mask": "mask"}


def load(source: Path, views, **how):
    return chaski.load(
        source,
        window=views,
        **{"batch_size": 8, "fields": FIELDS, "pixels": NATIVE, "seed": 7} | how,
    )


def asked(command: str, loader, folder: Path) -> dict:
    """Returns what a command prints of the run."""
    (folder / "spec.json").write_text(json.dumps(loader.spec))
    line = [os.environ["CHASKI_BIN"], command, "--json", str(folder / "spec.json")]
    return json.loads(subprocess.run(line, check=True, capture_output=True, text=True).stdout)


def crop(x: np.ndarray, box, scene: int, scale: int = 1) -> np.ndarray:
    y, x0, h, w = (int(v) // scale for v in box)
    x0 += scene * SIDE // scale
    return x[..., y : y + h, x0 : x0 + w]


# --- tiles


def test_views_lie_in_the_tile_of_the_first(data):
    """As docs/order.md says it: the corner of a view is drawn in the tile, with its own seed."""
    source, images, masks, _ = data
    first = T(32, visits=4, per_visit=8, tile=TILE, pool=2)
    seen = 0
    with load(source, [first, T(32), T(48), R(32, min_overlap=0.4), R(16)]) as loader:
        for epoch in range(2):
            for batch in nonempty(loader):
                for k, sample in nonempty(enumerate(batch["sample"])):
                    scene, boxes = int(sample) // 32, batch["window"][k]
                    for v, side in ((1, 32), (2, 48)):
                        seed = hash_words(7, VIEW, v, 0)
                        for axis in (0, 1):
                            tile = int(boxes[0][axis]) // TILE
                            corners = (SIDE - side) // 2 + 1
                            low = min(tile * TILE // 2, corners - 1)
                            n = min(TILE // 2, corners - low)
                            h = hash_words(seed, CORNER, epoch, int(sample), axis)
                            assert boxes[v][axis] == 2 * (low + below(h, n))
                    for name, of in (("image", images), ("mask", masks)):
                        scale = 2 if name == "mask" else 1
                        views = (
                            batch[f"{name}.32"][k],
                            batch[f"{name}.48"][k],
                            batch[f"{name}.16"][k],
                        )
                        for got, box in zip(
                            [*views[0], *views[1], *views[2]], boxes[[0, 1, 3, 2, 4]], strict=True
                        ):
                            assert np.array_equal(got, crop(of, box, scene, scale))
                            seen += 1
    assert seen == 2 * 2 * 32 * 2 * 5


def test_a_list_of_one_tile_window_is_the_window(data):
    how = {"pixels": chaski.Pixels(dtype="native", windows=True, augment="d4")}
    first = T(32, visits=4, per_visit=8, tile=TILE)
    with (
        load(data[0], first, **how) as one,
        load(data[0], [first], **how) as same,
        load(data[0], [first, T(32), T(16), Z(32)], **how) as several,
    ):
        for a, b, c in nonempty(
            zip(epochs(one, 2), epochs(same, 2), epochs(several, 2), strict=True)
        ):
            assert equal(a, b)
            assert np.array_equal(a["image"], c["image.32"][:, 0])
            assert np.array_equal(a["mask"], c["mask.32"][:, 0])
            assert np.array_equal(a["window"], c["window"][:, 0])
            assert np.array_equal(a["sample"], c["sample"])


def test_a_tile_is_decoded_once_for_all_views(data, tmp_path):
    tiles = {"per_visit": 16, "tile": TILE, "pool": 2}
    with load(data[0], T(32, **tiles)) as one, load(data[0], [T(32, **tiles)] * 3) as several:
        chunks = [asked("plan", loader, tmp_path)["total"]["chunks"] for loader in (one, several)]
    assert chunks[0] <= chunks[1] <= 1.2 * chunks[0]


# --- the ground


def place_of(transform) -> tuple[int, int]:
    """Returns the first row and column of a window on the scenes side by side."""
    row, column = (TOP - transform[3]) / 10, (transform[0] - LEFT) / 10
    assert row == round(row) and column == round(column)
    return round(row), round(column)


def ground(x: np.ndarray, transform, side: int, scale: int = 1) -> np.ndarray:
    row, column = place_of(transform)
    return x[..., row : row + side, column : column + side][
        ..., scale // 2 :: scale, scale // 2 :: scale
    ]


GROUND = chaski.Pixels(dtype="native", geo=True)
NEAREST = {
    "image": chaski.Field("image", resample="nearest"),
    "mask": chaski.Field("mask", resample="nearest"),
}


def test_views_on_the_ground(data):
    """Of one size, smaller, and coarser: each shows the ground where it says that it lies."""
    source, images, masks, _ = data
    masks = masks.repeat(2, axis=1).repeat(2, axis=2)
    views = [
        G(960, 10, per_epoch=60),
        G(960, 10, min_overlap=0.3),
        G(480, 10),
        G(960, 30, min_overlap=0.5),
    ]
    views.append(G(480, 10, min_overlap=1))
    shares, apart = [], 0
    with load(source, views, fields=NEAREST, pixels=GROUND) as loader:
        assert {"image.96", "image.48", "image.32", "mask.32"} <= {f.name for f in loader.fields}
        for batch in nonempty(epochs(loader, 2)):
            places = batch["geo.transform"]
            assert places.shape[1:] == (5, 6)
            for k in range(len(places)):
                t = places[k]
                for name, x in (("image", images), ("mask", masks)):
                    got = batch[f"{name}.96"][k], batch[f"{name}.48"][k], batch[f"{name}.32"][k]
                    assert np.array_equal(got[0][0], ground(x, t[0], 96))
                    assert np.array_equal(got[0][1], ground(x, t[1], 96))
                    assert np.array_equal(got[1][0], ground(x, t[2], 48))
                    assert np.array_equal(got[1][1], ground(x, t[4], 48))
                    assert np.array_equal(got[2][0], ground(x, t[3], 96, 3))
                assert t[3][1] == 30
                first = place_of(t[0])
                for v, (side, least) in enumerate([(96, 0.3), (48, 0), (96, 0.5), (48, 1)], 1):
                    y, x = place_of(t[v])
                    high = min(y + side, first[0] + 96) - max(y, first[0])
                    wide = min(x + side, first[1] + 96) - max(x, first[1])
                    assert high > 0 and wide > 0 and high * wide / side**2 >= least
                    # All of it lies on the scenes.
                    assert 0 <= y <= SIDE - side and 0 <= x <= N * SIDE - side
                    shares.append(high * wide / side**2)
                    apart += not (first[0] <= y <= first[0] + 96 - side)
    assert len(shares) == 2 * 60 * 4 and min(shares) < 0.3 < 0.9 < max(shares) and apart


def test_views_on_the_ground_are_the_windows_alone(data):
    """The first is the window without views, and each other one what a grid has at its place."""
    source = data[0]
    how = {"fields": NEAREST, "pixels": chaski.Pixels(dtype="native", geo=True, augment="d4")}
    first = G(960, 10, per_epoch=24)
    with (
        load(source, first, **how) as one,
        load(source, [first], **how) as same,
        load(source, [first, G(960, 10, min_overlap=0.2), G(320, 10)], **how) as several,
    ):
        for a, b, c in nonempty(
            zip(epochs(one, 2), epochs(same, 2), epochs(several, 2), strict=True)
        ):
            assert equal(a, b)
            assert np.array_equal(a["image"], c["image.96"][:, 0])
            assert np.array_equal(a["geo.transform"], c["geo.transform"][:, 0])
            assert np.array_equal(a["sample"], c["sample"])
            for k, (image, t) in nonempty(
                enumerate(zip(c["image.96"][:, 1], c["geo.transform"][:, 1], strict=True))
            ):
                with rasterio.open(source.parent / "image0.tif") as left:
                    outline = rasterio.Affine(*t[1:3], t[0], *t[4:6], t[3])
                    # A turned window: each of its pixels, by its centre.
                    y, x = np.mgrid[:96, :96] + 0.5
                    column, row = ~left.transform * (outline * (x, y))
                want = data[1][:, row.astype(int), column.astype(int)]
                assert np.array_equal(image, want), k


def test_dates_of_a_view_are_those_of_the_first(tmp_path):
    """Scenes of three dates, of which the second covers the left half only."""
    r = np.random.default_rng(3)
    dates = r.integers(1, 60000, (3, 2, 128, 128), dtype=np.uint16)
    lines = ["image,datetime"]
    for i, x in enumerate(dates):
        write(tmp_path / f"{i}.tif", x[..., : 64 if i == 1 else 128], LEFT, TOP, 10)
        lines.append(f"{i}.tif,2024-0{i + 1}-01")
    (tmp_path / "dates.csv").write_text("\n".join(lines) + "\n")
    views = [
        G(320, 10, per_epoch=40, length=3, order="oldest"),
        G(320, 10),
        G(160, 10, min_overlap=1),
    ]
    found = set()
    with load(tmp_path / "dates.csv", views, fields={"image": "image"}, pixels=GROUND) as loader:
        for batch in nonempty(loader):
            assert batch["image.32"].shape[1:] == (2, 3, 2, 32, 32)
            for k, steps in enumerate(batch["steps"]):
                first = place_of(batch["geo.transform"][k, 0])
                present = [0, 1, 2] if first[1] < 64 else [0, 2]
                assert steps.sum() == len(present)
                for v, got in (
                    (0, batch["image.32"][k, 0]),
                    (1, batch["image.32"][k, 1]),
                    (2, batch["image.16"][k, 0]),
                ):
                    t, side = batch["geo.transform"][k, v], got.shape[-1]
                    for step in range(3):
                        want = np.zeros((2, side, side), np.uint16)
                        if step < len(present):
                            date = present[step]
                            seen = ground(dates[date][..., : 64 if date == 1 else 128], t, side)
                            want[..., : seen.shape[-1]] = seen
                        assert np.array_equal(got[step], want)
                        found.add((len(present), v, bool(want.any())))
    assert (3, 1, False) in found or (3, 1, True) in found
    assert {(2, 0, True), (3, 0, True), (3, 2, True)} <= found


# --- order, resume, ranks


@pytest.mark.parametrize(
    "views",
    [
        [T(32, visits=4, per_visit=8, tile=TILE), T(32), R(16, min_overlap=0.2)],
        [G(960, 10, per_epoch=60), G(960, 10, min_overlap=0.2), G(320, 10)],
    ],
    ids=["tiles", "ground"],
)
def test_resume_ranks_and_explain(data, views, tmp_path):
    pixels = chaski.Pixels(geo=True, augment="d4")
    fields = {**FIELDS, "boxes": chaski.Vector(data[0].parent / "shapes.geojson", kind="boxes")}
    how = {"pixels": pixels, "fields": fields}
    with load(data[0], views, **how) as loader:
        want = epochs(loader, 2)
        assert len(want) == 2 * 8
    goes_on(lambda: load(data[0], views, **how), want, (1, 5))
    for rank in range(3):
        with load(data[0], views, rank=rank, world_size=3, **how) as loader:
            for a, b in nonempty(zip(epochs(loader, 2), want, strict=True)):
                rows = b["position"][rank::3]
                for name in [n for n in b if n.startswith(("image", "mask", "geo"))]:
                    assert np.array_equal(a[name][: len(rows)], b[name][rank::3])
                lists = [n for n in b if n.startswith("boxes") and not n.endswith("_values")]
                for name in nonempty(lists):
                    each = len(b[name].rows()) // len(b["valid"])
                    mine, all_of_them = a[name].rows(), b[name].rows()
                    for i in range(len(rows)):
                        for v in range(each):
                            assert np.array_equal(
                                mine[i * each + v], all_of_them[(rank + 3 * i) * each + v]
                            )
    with load(data[0], views, **how) as loader:
        rows = asked("explain", loader, tmp_path)["rows"]
        assert {a.get("view", 0) for row in rows for a in row["assets"]} == {0, 1, 2}
        total = asked("plan", loader, tmp_path)["total"]
        assert total["rows"] == loader.samples and total["bad"] == 0


# --- shapes


def burn(shapes: list, transform, height: int, width: int) -> np.ndarray:
    from rasterio.features import rasterize

    at = rasterio.Affine(*transform[1:3], transform[0], *transform[4:6], transform[3])
    return rasterize(shapes, (height, width), transform=at, dtype="int64")


@pytest.mark.parametrize("augment", [None, "d4"])
@pytest.mark.parametrize(
    "views",
    [
        [R(32, per_asset=6), R(48), R(32), Z(32)],
        [T(32, visits=3, per_visit=4, tile=TILE), T(32), T(48)],
        [G(960, 10, per_epoch=12), G(480, 10), G(960, 10, min_overlap=0.3)],
    ],
    ids=["random", "tiles", "ground"],
)
def test_masks_of_shapes(data, views, augment):
    """In each view they are what rasterio draws where it lies, flips included."""
    source, _, _, shapes = data
    fields = {**FIELDS, "shapes": chaski.Vector(source.parent / "shapes.geojson", "kind")}
    sides = [v.size_m // 10 if isinstance(v, G) else v.size for v in views]
    drawn = 0
    with load(
        source, views, fields=fields, pixels=chaski.Pixels(geo=True, augment=augment)
    ) as loader:
        for batch in nonempty(loader):
            for k, places in enumerate(batch["geo.transform"]):
                count = dict.fromkeys(sides, 0)
                for side, place in zip(sides, places, strict=True):
                    got = batch[f"shapes.{int(side)}"][k, count[side]]
                    count[side] += 1
                    want = burn(shapes, place, int(side), int(side))
                    assert np.array_equal(got, want)
                    drawn += want.any()
    assert drawn >= 30


@pytest.mark.parametrize("kind", ["boxes", "polygons"])
def test_boxes_of_views_are_those_of_the_windows_alone(data, kind, tmp_path):
    """There is a list for each window, as for a sample with that window only."""
    source, _, _, _ = data
    shapes = chaski.Vector(source.parent / "shapes.geojson", "kind", kind=kind)
    fields = {"image": "image", "shapes": shapes}
    views = [R(32, per_asset=6), R(48), R(32)]
    with load(source, views, fields=fields) as loader:
        batches = epochs(loader)
        infos = {f.name: f for f in loader.fields}
    assert infos["shapes.32"].axes[:2] == ("n", "v")
    names = ["shapes", "shapes_values"] + ["shapes_rings"] * (kind == "polygons")
    found = 0
    for side, numbers in ((32, [0, 2]), (48, [1])):
        lines = ["image,x,y,w,h"]
        for batch in batches:
            for sample, boxes in zip(batch["sample"], batch["window"], strict=True):
                for y, x, h, w in boxes[numbers]:
                    path = source.parent / f"image{sample // 6}.tif"
                    lines.append(f"{path},{x},{y},{w},{h}")
        (tmp_path / "boxes.csv").write_text("\n".join(lines) + "\n")
        rows = chaski.RowWindow(side, fit="crop")
        with load(
            tmp_path / "boxes.csv", rows, fields=fields, shuffle=False, batch_size=len(lines) - 1
        ) as alone:
            (want,) = alone
        for name in names:
            base, _, part = name.partition("_")
            sized = f"{base}.{side}" + ("_" + part if part else "")
            got = [row for batch in batches for row in batch[sized].rows()]
            assert len(got) == len(lines) - 1
            for a, b in zip(got, want[name].rows(), strict=True):
                assert np.array_equal(a, b)
                found += len(a)
        if kind == "polygons":
            some = [p for b in batches for row in chaski.polygons(b, f"shapes.{side}") for p in row]
            assert len(some) == sum(len(p) for p in chaski.polygons(want, "shapes"))
    assert found > 100


def test_boxes_of_one_sample(data):
    torch = pytest.importorskip("torch")
    import chaski.torch

    shapes = chaski.Vector(data[0].parent / "shapes.geojson", "kind", kind="boxes")
    fields = {"image": "image", "boxes": shapes}
    how = {"batch_size": 4, "fields": fields, "seed": 7}
    with chaski.load(data[0], window=[R(32, per_asset=6), R(32)], shuffle=False, **how) as loader:
        batch = next(iter(loader))
        one = loader.sample(2)
        assert [x.tolist() for x in one["boxes"]] == [
            x.tolist() for x in batch["boxes"].rows()[4:6]
        ]
    how.pop("batch_size")
    samples = chaski.torch.MapDataset(data[0], window=[R(32, per_asset=6), R(32)], **how)
    two = samples.__getitems__([2, 3])
    assert [len(s["boxes"]) for s in two] == [2, 2]
    joint = samples.collate(two)
    assert joint["image"].shape[:2] == (2, 2)
    flat = [torch.as_tensor(x) for boxes in joint["boxes"] for x in boxes]
    assert [x.tolist() for x in flat] == [x.tolist() for x in batch["boxes"].rows()[4:8]]


def test_bad_shapes_are_bad_in_all_views(tmp_path, data):
    """An image whose labels cannot be read: with "fill" its pixels stay, and its labels are 0."""
    folder = tmp_path / "labels"
    folder.mkdir()
    for i in range(3):
        text = "0 0.5 0.5 0.4 0.4\n" if i != 1 else "not a label\n"
        (folder / f"image{i}.txt").write_text(text)
        write(tmp_path / f"image{i}.tif", data[1][..., :SIDE], LEFT, TOP, 10)
    label = chaski.Vector(pattern="labels/{id}.txt", classes=["a"])
    fields = {"image": chaski.Field(pattern="{id}.tif"), "label": label}
    how = {"fields": fields, "shuffle": False, "batch_size": 3, "on_bad": chaski.OnBad("fill")}
    with load(tmp_path, [R(64), R(32), R(64)], **how) as loader:
        (batch,) = loader
    (bad,) = batch.bad
    assert bad.row == 1 and batch["valid"].all() and batch["there.label"].tolist() == [1, 0, 1]
    for k in range(3):
        for name, numbers in (("64", [0, 2]), ("32", [1])):
            for i, v in nonempty(enumerate(numbers)):
                y, x, h, w = batch["window"][k, v]
                want = np.zeros((SIDE, SIDE), np.int64)
                if k != 1:
                    low, high = round(0.3 * SIDE), round(0.7 * SIDE)
                    want[low:high, low:high] = 1
                got = batch[f"label.{name}"][k, i]
                assert np.array_equal(got != 0, want[y : y + h, x : x + w] != 0)
                assert batch[f"image.{name}"][k, i].any()


# --- what is refused


@pytest.mark.parametrize(
    ("views", "says"),
    [
        (
            [G(960, 10), R(32)],
            'its kind is "random_window": after a first one of kind "geo_window"',
        ),
        (
            [R(32), G(960, 10)],
            'its kind is "geo_window": after a first one of kind "random_window"',
        ),
        ([R(32), T(32)], 'its kind is "tile_window"'),
        (
            [G(480, 10), G(960, 10)],
            r"size_m is 960.*the first window, of 480 m, must be the largest",
        ),
        (
            [G(960, 10), G(482, 2)],
            "size_m is 482.*whole number of pixels of the first window, of 10 m",
        ),
        ([G(960, 10), G(480, 10, pick="newest")], "pick is .*the first window says it for all"),
        ([G(960, 10), G(480, 10, per_epoch=3)], "per_epoch is 3"),
        ([T(32), T(32, per_visit=4)], "per_visit is 4: the first window says it for all"),
        ([T(32), T(32, visits=4)], "per_asset is 4: the first window says how many"),
        ([T(32), T(33)], "33 by 33 pixels has no whole size in every field"),
        ([G(960, 10, min_overlap=0.5), G(960, 10)], "min_overlap is 0.5: it is for"),
    ],
)
def test_refused(data, views, says):
    with pytest.raises(chaski.Error, match=says):
        load(data[0], views)


def test_names_of_samples(data):
    """`ids` reads no pixel of any view."""
    for views in ([R(32, per_asset=2), R(16)], [T(32, visits=2, tile=TILE), T(16)]):
        with load(data[0], views) as loader:
            names = loader.ids[:]
            assert len(names) == loader.samples and len(set(names)) == N


@pytest.mark.parametrize(
    "views",
    [
        [T(32, visits=4, per_visit=8, tile=TILE), T(32), R(16, min_overlap=0.2)],
        [G(960, 10, stride_m=480), G(960, 10, min_overlap=0.2), G(320, 10)],
    ],
    ids=["tiles", "ground"],
)
def test_fetch(data, views):
    fields = {**FIELDS, "boxes": chaski.Vector(data[0].parent / "shapes.geojson", kind="boxes")}
    pixels = chaski.Pixels(geo=True)
    with load(data[0], views, fields=fields, pixels=pixels, shuffle=False) as loader:
        batch = next(iter(loader))
        some = loader.fetch(batch["sample"][[5, 1]])
    for name in nonempty([n for n in batch if n.startswith(("image", "mask", "geo"))]):
        assert np.array_equal(some[name], batch[name][[5, 1]])
    for name in nonempty([n for n in batch if n.startswith("boxes")]):
        each = len(some[name].rows()) // 2
        want = [batch[name].rows()[k * each + v] for k in (5, 1) for v in range(each)]
        for a, b in nonempty(zip(some[name].rows(), want, strict=True)):
            assert np.array_equal(a, b)


def test_scenes_are_decoded_once_for_views_that_overlap(data, tmp_path):
    first = G(960, 10, per_epoch=60)
    near = G(960, 10, min_overlap=0.8)
    with (
        load(data[0], first, pixels=GROUND) as one,
        load(data[0], [first, near, near], pixels=GROUND) as three,
    ):
        chunks = [asked("plan", loader, tmp_path)["total"]["chunks"] for loader in (one, three)]
    assert chunks[0] < chunks[1] < 1.8 * chunks[0]  # three times as many without
