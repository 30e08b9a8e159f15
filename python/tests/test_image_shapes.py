"""Shapes in the pixels of images through the real engine, against rasterio and pycocotools."""

from __future__ import annotations

import json
import re
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import rasters

import chaski

rasterio = pytest.importorskip("rasterio")
pytest.importorskip("pyarrow")

pytestmark = pytest.mark.usefixtures("one_engine")

N, HEIGHT, WIDTH = 5, 60, 80
CATEGORIES = ["boat", "car", "tree"]


def wkb(corners: np.ndarray) -> bytes:
    """Returns a polygon as WKB."""
    closed = np.concatenate([corners, corners[:1]])
    return struct.pack("<BIII", 1, 3, 1, len(closed)) + closed.astype("<f8").tobytes()


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[dict[str, Any]]]:
    """A folder of PNG files whose pixels say where they are, and quadrangles on them."""
    folder = tmp_path_factory.mktemp("photos")
    rng = np.random.default_rng(5)
    y, x = np.mgrid[:HEIGHT, :WIDTH].astype(np.uint8)
    for i in range(N):
        rasters.write(folder / f"{i}.png", np.stack([y, x, np.full_like(x, i)]))
    objects = []
    for k in range(40):
        middle, radii = rng.uniform(0, (WIDTH, HEIGHT)), rng.uniform(3, 20, 2)
        angles = np.array([0, 1, 3, 5])
        corners = (middle + radii * np.stack([np.cos(angles), np.sin(angles)], 1)).round(2)
        name = CATEGORIES[k % 3]
        objects.append({"image": int(rng.integers(N - 1)), "name": name, "corners": corners})
    return folder, objects


def table(objects: list[dict[str, Any]]) -> dict[str, list[Any]]:
    """Returns a table of shapes, with a row without a shape for each image."""
    images = [*(o["image"] for o in objects), *range(N)]
    return {
        "file": [f"a/{i}.png" for i in images],
        "name": [*(o["name"] for o in objects), *[None] * N],
        "geometry": [*(wkb(o["corners"]) for o in objects), *[None] * N],
    }


def drawn(objects: list[dict[str, Any]], image: int, values: list[int]) -> np.ndarray:
    """Returns the shapes of an image with the values that are not 0, one after the other."""
    from rasterio.features import rasterize

    shapes = [
        (
            {
                "type": "Polygon",
                "coordinates": [[*o["corners"].tolist(), o["corners"][0].tolist()]],
            },
            v,
        )
        for o, v in zip(objects, values, strict=True)
        if o["image"] == image and v
    ]
    if not shapes:
        return np.zeros((HEIGHT, WIDTH), np.int64)
    identity = rasterio.Affine.identity()
    return rasterize(shapes, (HEIGHT, WIDTH), transform=identity, dtype="int64")


@pytest.mark.parametrize("window", [(32, 32), chaski.Grid((24, 24))])
def test_masks(photos, window):
    folder, objects = photos
    classes = ["tree", "boat"]
    fields = {
        "image": chaski.Field(dtype="uint8"),
        "mask": chaski.Vector(table(objects), image="file"),
        "object": chaski.Vector(table(objects), image="file", kind="instances"),
        "named": chaski.Vector(table(objects), "name", classes=classes, image="file"),
    }
    values = {
        "mask": [1] * len(objects),
        "object": list(range(1, len(objects) + 1)),
        "named": [1 + classes.index(o["name"]) if o["name"] in classes else 0 for o in objects],
    }
    covered = 0
    with chaski.load(
        str(folder / "*.png"), batch_size=2, window=window, fields=fields,
        pixels=chaski.Pixels(augment="d4"),
    ) as loader:  # fmt: skip
        for batch in loader:
            for k in np.flatnonzero(batch["valid"]):
                y, x, number_of = batch["image"][k]
                for name, v in values.items():
                    want = drawn(objects, int(number_of[0, 0]), v)[y, x]
                    assert np.array_equal(batch[name][k], want), name
                    covered += np.count_nonzero(want)
    assert covered > 2000


@pytest.mark.parametrize("kind", ["boxes", "polygons"])
def test_boxes_and_polygons(photos, kind):
    folder, objects = photos
    fields = {"image": {}, "shapes": chaski.Vector(table(objects), kind=kind, image="file")}
    with chaski.load(str(folder / "*.png"), batch_size=N, fields=fields, shuffle=False) as loader:
        (batch,) = loader
    if kind == "boxes":
        found = batch["shapes"].rows()
    else:
        found = [
            [np.concatenate([ring.min(0), ring.max(0)]) for ((ring,),) in shapes]
            for shapes in chaski.polygons(batch, "shapes")
        ]
    whole = 0
    for k, boxes in enumerate(found):
        mine = [o["corners"] for o in objects if o["image"] == k]
        assert len(boxes) == len(mine)
        for box, corners in zip(boxes, mine, strict=True):
            if (corners >= 0).all() and (corners <= (WIDTH, HEIGHT)).all():
                assert np.allclose(box, [*corners.min(0), *corners.max(0)], atol=1e-4)
                whole += 1
    assert whole > 10


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda t: {k: v[:-1] for k, v in t.items()}, "no shape names"),
        (
            lambda t: {**t, "file": [f"{i % 2}/{v[2:]}" for i, v in enumerate(t["file"])]},
            "are both",
        ),
        (lambda t: {**t, "file": list(range(len(t["file"])))}, "it has numbers"),
        (lambda t: {"file": t["file"]}, "no column 'geometry'"),
        (lambda t: {**t, "geometry": t["name"]}, "no column 'geometry' of bytes"),
    ],
)
def test_tables_that_are_wrong(photos, change, says):
    folder, objects = photos
    fields = {"image": {}, "mask": chaski.Vector(change(table(objects)), image="file")}
    with (  # noqa: PT012
        pytest.raises(chaski.Error, match=says),
        chaski.load(str(folder / "*.png"), batch_size=N, fields=fields) as loader,
    ):
        next(iter(loader))


@pytest.fixture
def annotations(photos, tmp_path: Path) -> list[dict[str, Any]]:
    """The shapes as COCO has them in tmp_path, beside the images."""
    folder, objects = photos
    listed = []
    for k, o in enumerate(objects):
        low, high = o["corners"].min(0), o["corners"].max(0)
        listed.append(
            {
                "id": k, "image_id": 100 + o["image"], "category_id": k % 3 + 1, "iscrowd": 0,
                "bbox": [*low.tolist(), *(high - low).tolist()],
                "segmentation": [o["corners"].ravel().tolist()],
            }
        )  # fmt: skip
    images = [
        {"id": 100 + i, "file_name": f"{i}.png", "height": HEIGHT, "width": WIDTH} for i in range(N)
    ]
    categories = [{"id": k + 1, "name": name} for k, name in enumerate(CATEGORIES)]
    text = {"images": images, "annotations": listed, "categories": categories}
    (tmp_path / "annotations.json").write_text(json.dumps(text))
    (tmp_path / "photos").symlink_to(folder)
    return listed


def test_page(annotations, tmp_path, monkeypatch):
    """The block of docs/labels.md about annotations runs."""
    page = Path(__file__).resolve().parents[2] / "docs" / "labels.md"
    blocks = re.findall(r"^```python\n(.*?)^```$", page.read_text(), re.DOTALL | re.MULTILINE)
    (block,) = (b for b in blocks if "annotations.json" in b)
    monkeypatch.chdir(tmp_path)
    seen = []
    exec(block.replace(".jpg", ".png"), {"step": lambda *x: seen.append(x)})
    assert len(seen) == N and sum(len(boxes) for _, boxes, _ in seen) > 5
    for _, boxes, labels in seen:
        assert len(boxes) == len(labels)


def test_masks_of_pycocotools(annotations, photos, tmp_path):
    """Masks that became polygons are drawn as they were."""
    coco = pytest.importorskip("pycocotools.coco")
    from rasterio.features import shapes

    api = coco.COCO(str(tmp_path / "annotations.json"))
    masks = [api.annToMask(a) for a in annotations]
    geometry, rows = [], {"file": [], "number": []}
    shapely = pytest.importorskip("shapely")
    for k, (a, mask) in enumerate(zip(annotations, masks, strict=True)):
        for s, v in shapes(mask):
            if v:
                geometry.append(shapely.to_wkb(shapely.geometry.shape(s)))
                rows["file"].append(f"{a['image_id'] - 100}.png")
                rows["number"].append(k + 1)
    rows["file"] += [f"{i}.png" for i in range(N)]
    rows["number"] += [0] * N
    frame = {**rows, "geometry": [*geometry, *[None] * N]}
    fields = {"image": {}, "mask": chaski.Vector(frame, "number", image="file")}
    pattern = str(photos[0] / "*.png")
    with chaski.load(pattern, batch_size=N, fields=fields, shuffle=False) as loader:
        (batch,) = loader
    for i in range(N):
        want = np.zeros((HEIGHT, WIDTH), np.int64)
        for k, (a, mask) in enumerate(zip(annotations, masks, strict=True)):
            if a["image_id"] == 100 + i:
                want[mask.astype(bool)] = k + 1
        assert np.array_equal(batch["mask"][i], want)


def test_a_name_is_of_one_image(tmp_path):
    """A name that two images have is refused with both, and a longer one is of its image."""
    for part in ("train", "val"):
        (tmp_path / part).mkdir()
        rasters.write(tmp_path / part / "1.tif", np.zeros((1, 16, 16), np.uint8))
    ring = [[1, 1], [5, 1], [5, 5], [1, 5], [1, 1]]

    def load(*names: str, source: str = "*/*.tif", on_bad: Any = "error") -> chaski.Batch:
        shape = {"type": "Polygon", "coordinates": [ring]}
        of = [{"type": "Feature", "properties": {"f": n}, "geometry": shape} for n in names]
        (tmp_path / "b.json").write_text(json.dumps({"type": "FeatureCollection", "features": of}))
        boxes = chaski.Vector(tmp_path / "b.json", kind="boxes", image="f")
        fields = {"image": chaski.Field(dtype="native"), "b": boxes}
        with chaski.load(
            tmp_path / source, batch_size=2, fields=fields, shuffle=False, on_bad=on_bad
        ) as loader:
            return next(iter(loader))

    with pytest.raises(
        chaski.CorruptError, match=r"several samples.*train/1\.tif.*val/1\.tif.: write"
    ):
        load("1.tif")
    assert len(load("1.tif", source="val/*.tif")["b"].rows()[0]) == 1
    assert [len(r) for r in load("train/1.tif", "val/1.tif", "val/1.tif")["b"].rows()] == [1, 2]
    one = load("/elsewhere/train/1.tif", on_bad="skip")
    assert one["valid"].tolist() == [True, False]
