"""Annotations in COCO's JSON through the real engine, against slow versions and pycocotools."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from conftest import nonempty

import chaski

rasterio = pytest.importorskip("rasterio")

pytestmark = [
    pytest.mark.usefixtures("binary"),
    pytest.mark.filterwarnings("ignore::rasterio.errors.NotGeoreferencedWarning"),
]

N, HEIGHT, WIDTH = 5, 60, 80
CATEGORIES = {7: "car", 3: "boat", 90: "tree"}


def runs(mask: np.ndarray) -> list[int]:
    """Returns the lengths of runs of a mask, column by column, the first of zeros."""
    flat = mask.T.ravel()
    edges = np.flatnonzero(np.diff(flat)) + 1
    lengths = np.diff(np.concatenate([[0], edges, [flat.size]])).tolist()
    return [0, *lengths] if flat[0] else lengths


def packed(counts: list[int]) -> str:
    """Returns runs as COCO packs them."""
    out = ""
    for i, n in enumerate(counts):
        n -= counts[i - 2] if i > 2 else 0
        while True:
            group, n = n & 31, n >> 5
            more = n != (-1 if group & 16 else 0)
            out += chr(48 + group + 32 * more)
            if not more:
                break
    return out


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[dict], dict]:
    """A folder of PNG files whose pixels say where they are, and annotations of them."""
    folder = tmp_path_factory.mktemp("coco")
    rng = np.random.default_rng(5)
    y, x = np.mgrid[:HEIGHT, :WIDTH].astype(np.uint8)
    images, annotations, masks = [], [], {}
    for i in range(N):
        with rasterio.open(folder / f"{i}.png", "w", "PNG", WIDTH, HEIGHT, 3, None, None, "uint8") as f:  # fmt: skip  # noqa: E501
            f.write(np.stack([y, x, np.full_like(x, i)]))
        images.append({"id": 100 + i, "file_name": f"a/{i}.png", "height": HEIGHT, "width": WIDTH})
    for k in range(40):
        i = int(rng.integers(N))
        cy, cx = rng.uniform(0, HEIGHT), rng.uniform(0, WIDTH)
        ry, rx = rng.uniform(3, 20, 2)
        a = {
            "id": k, "image_id": 100 + i, "category_id": int(rng.choice(list(CATEGORIES))),
            "bbox": [round(float(v), 2) for v in (cx - rx, cy - ry, 2 * rx, 2 * ry)],
            "iscrowd": int(k % 9 == 0),
        }  # fmt: skip
        if k % 3 == 0:
            corners = cx + rx * np.cos([0, 1, 3, 5]), cy + ry * np.sin([0, 1, 3, 5])
            a["segmentation"] = [np.stack(corners, 1).round(2).ravel().tolist()]
            a["iscrowd"] = 0
        else:
            mask = ((y - cy) / ry) ** 2 + ((x - cx) / rx) ** 2 < 1
            counts = runs(mask)
            a["segmentation"] = {
                "size": [HEIGHT, WIDTH],
                "counts": counts if k % 3 == 1 else packed(counts),
            }
            masks[k] = mask
        annotations.append(a)
    categories = [{"id": i, "name": name} for i, name in CATEGORIES.items()]
    text = {"images": images, "annotations": annotations, "categories": categories}
    (folder / "annotations.json").write_text(json.dumps(text))
    return folder, annotations, masks


def drawn(photos, image: int, values) -> np.ndarray:
    """Returns the annotations of an image, drawn one after the other."""
    from rasterio.features import rasterize

    _, annotations, masks = photos
    out = np.zeros((HEIGHT, WIDTH), np.int64)
    for k, a in enumerate(annotations):
        if a["image_id"] != 100 + image or not values(k, a):
            continue
        mask = masks.get(k)
        if mask is None:
            corners = np.reshape(a["segmentation"][0], (-1, 2)).tolist()
            shape = {"type": "Polygon", "coordinates": [[*corners, corners[0]]]}
            identity = rasterio.Affine.identity()
            mask = rasterize([shape], (HEIGHT, WIDTH), transform=identity).astype(bool)
        out[mask] = values(k, a)
    return out


@pytest.mark.parametrize("window", [(32, 32), chaski.Grid((24, 24))])
def test_masks_of_annotations(photos, window):
    folder = photos[0]
    classes = ["tree", "boat"]
    number = {90: 1, 3: 2, 7: 0}
    fields = {
        "image": chaski.Field(dtype="uint8"),
        "mask": chaski.Coco(folder / "annotations.json"),
        "object": chaski.Coco(folder / "annotations.json", kind="instances"),
        "named": chaski.Coco(folder / "annotations.json", classes=classes),
    }
    covered = 0
    with chaski.load(
        str(folder / "*.png"), batch_size=2, window=window, fields=fields,
        pixels=chaski.Pixels(augment="d4"),
    ) as loader:  # fmt: skip
        for batch in loader:
            for k in np.flatnonzero(batch["valid"]):
                y, x, number_of = batch["image"][k]
                i = int(number_of[0, 0])
                for name, values in {
                    "mask": lambda _, a: a["category_id"],
                    "object": lambda k, _: k + 1,
                    "named": lambda _, a: number[a["category_id"]],
                }.items():
                    want = drawn(photos, i, values)[y, x]
                    assert np.array_equal(batch[name][k], want), (name, i)
                    covered += np.count_nonzero(want)
    assert covered > 2000


def test_boxes_of_annotations(photos):
    folder, annotations, _ = photos
    fields = {"image": chaski.Field(), "boxes": chaski.Coco(folder / "annotations.json", "boxes")}
    found = 0
    with chaski.load(
        str(folder / "*.png"),
        batch_size=2,
        window=32,
        fields=fields,
        pixels=chaski.Pixels(windows=True),
    ) as loader:
        for batch in loader:
            for k in np.flatnonzero(batch["valid"]):
                top, left = batch["window"][k][:2]
                want, values = [], []
                for a in annotations:
                    if a["image_id"] != 100 + int(batch["image"][k][2, 0, 0]) or a["iscrowd"]:
                        continue
                    x, y, w, h = a["bbox"]
                    box = np.array([x - left, y - top, x + w - left, y + h - top]).clip(0, 32)
                    if box[0] < box[2] and box[1] < box[3]:
                        want.append(box)
                        values.append(a["category_id"])
                assert np.allclose(batch["boxes"].rows()[k], np.reshape(want, (-1, 4)), atol=1e-4)
                assert batch["boxes_values"].rows()[k].tolist() == values
                found += len(values)
    assert found > 5


def test_polygons_of_annotations(photos, tmp_path):
    folder, annotations, _ = photos
    text = json.loads((folder / "annotations.json").read_text())
    kept = [a for a in annotations if isinstance(a["segmentation"], list)]
    (tmp_path / "polygons.json").write_text(json.dumps({**text, "annotations": kept}))
    fields = {"image": {}, "shapes": chaski.Coco(tmp_path / "polygons.json", kind="polygons")}
    with chaski.load(str(folder / "*.png"), batch_size=N, fields=fields, shuffle=False) as loader:
        (batch,) = loader
    for k, shapes in enumerate(chaski.polygons(batch, "shapes")):
        mine = [a for a in kept if a["image_id"] == 100 + k]
        inside = [np.reshape(a["segmentation"][0], (-1, 2)) for a in mine]
        assert len(shapes) == len(mine)
        for ((ring,),), corners in nonempty(zip(shapes, inside, strict=True)):
            low, high = corners.min(0).clip(0), np.minimum(corners.max(0), (WIDTH, HEIGHT))
            if (corners >= 0).all() and (corners <= (WIDTH, HEIGHT)).all():
                assert np.allclose([ring.min(0), ring.max(0)], [low, high], atol=1e-4)
    fields["shapes"] = chaski.Coco(folder / "annotations.json", kind="polygons")
    with (
        chaski.load(str(folder / "*.png"), batch_size=N, fields=fields) as loader,
        pytest.raises(chaski.Error, match="has a mask"),
    ):
        next(iter(loader))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda t: t["images"].pop(), "image_id"),
        (lambda t: t["images"][0].update(width=81), "81"),
        (lambda t: t["images"][0].update(file_name="b.png"), "no file_name"),
        (lambda t: t["images"].append({**t["images"][0], "id": 7}), "several images"),
        (lambda t: t["annotations"][1]["segmentation"].update(counts=[5]), "runs of 5 pixels"),
        (lambda t: t["annotations"][1].update(bbox=[1, 2]), "2 numbers"),
        (lambda t: t.pop("annotations"), "annotations"),
    ],
)
def test_files_that_are_wrong(photos, tmp_path, change, says):
    text = json.loads((photos[0] / "annotations.json").read_text())
    change(text)
    (tmp_path / "a.json").write_text(json.dumps(text))
    fields = {"image": {}, "mask": chaski.Coco(tmp_path / "a.json")}
    with (  # noqa: PT012
        pytest.raises(chaski.Error, match=says),
        chaski.load(str(photos[0] / "*.png"), batch_size=N, fields=fields) as loader,
    ):
        next(iter(loader))


def test_like_pycocotools(photos):
    """Masks are those of pycocotools; outlines are drawn by the middles of pixels, as GDAL does."""
    coco = pytest.importorskip("pycocotools.coco")
    folder, annotations, masks = photos
    api = coco.COCO(str(folder / "annotations.json"))
    outline = area = 0
    for k, a in enumerate(annotations):
        mask = api.annToMask(api.loadAnns([k])[0]).astype(bool)
        if k in masks:
            assert np.array_equal(mask, masks[k])
        else:
            mine = drawn(photos, a["image_id"] - 100, lambda j, _, k=k: j == k).astype(bool)
            outline += np.count_nonzero(mine != mask)
            area += np.count_nonzero(mask)
    print(f"{outline} of {area} pixels of polygons differ from pycocotools")
    assert outline < area / 20


def test_page(photos, tmp_path, monkeypatch):
    """The block of docs/labels.md about annotations runs."""
    page = Path(__file__).resolve().parents[2] / "docs" / "labels.md"
    blocks = re.findall(r"^```python\n(.*?)^```$", page.read_text(), re.DOTALL | re.MULTILINE)
    (block,) = (b for b in blocks if "chaski.Coco(" in b)
    (tmp_path / "photos").symlink_to(photos[0])
    (tmp_path / "annotations.json").symlink_to(photos[0] / "annotations.json")
    monkeypatch.chdir(tmp_path)
    seen = []
    exec(block.replace("*.jpg", "*.png"), {"step": lambda *x: seen.append(x)})
    assert len(seen) == N and sum(len(boxes) for _, boxes, _ in seen) > 5


def test_classes_are_categories(photos, tmp_path):
    """A misspelt class is an error, not a mask of zeros; one without an annotation is fine."""
    text = json.loads((photos[0] / "annotations.json").read_text())
    text["categories"].append({"id": 1000, "name": "unused"})
    path = tmp_path / "a.json"
    path.write_text(json.dumps(text))

    def first(classes):
        fields = {"image": {}, "mask": chaski.Coco(path, classes=classes)}
        with chaski.load(str(photos[0] / "*.png"), batch_size=N, fields=fields) as loader:
            return next(iter(loader))["mask"].copy()

    np.testing.assert_array_equal(first(["tree", "unused"]), first(["tree"]))
    assert first(["tree"]).any()
    with pytest.raises(
        chaski.SpecError, match='classes has "Tree": the categories of the file are'
    ):
        first(["boat", "Tree"])
    path.write_text("[]")
    with pytest.raises(chaski.CorruptError, match=r"malformed JSON: it has '\[' where '\{' must"):
        first(["tree"])
