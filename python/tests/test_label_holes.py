"""Holes of outlines, masks that are pictures, long outlines: what rasterio and Pillow draw."""

from __future__ import annotations

import base64
import io
import json
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import rasters
from patience import logged

import chaski

features = pytest.importorskip("rasterio.features")
image_module = pytest.importorskip("PIL.Image")

pytestmark = pytest.mark.usefixtures("one_engine")

N, HEIGHT, WIDTH = 4, 50, 70
NAMES = ["lake", "field", "roof"]
Shape = tuple[str, list[Any]]  # the class, and the rings of a polygon


def circle(middle: np.ndarray, radius: float, sides: int) -> list[list[float]]:
    turns = np.linspace(0, 2 * np.pi, sides, endpoint=False)
    ring = middle + radius * np.stack([np.cos(turns), np.sin(turns)], 1)
    return [*ring.round(2).tolist(), ring[0].round(2).tolist()]


def shapes(i: int) -> list[Shape]:
    """Polygons of an image with up to two holes."""
    rng = np.random.default_rng(i)
    found = []
    for k in range(3):
        middle = rng.uniform((15, 15), (WIDTH - 15, HEIGHT - 15))
        holes = [circle(middle + (4 * j - 2, rng.uniform(-2, 2)), 1.7, 7) for j in range(k)]
        found.append((NAMES[(i + k) % 3], [circle(middle, 14 - 4 * k, 9), *holes]))
    return found


def noise(i: int, size: tuple[int, int] = (20, 30)) -> np.ndarray:
    blobs = np.random.default_rng(i).random((size[0] // 5 + 1, size[1] // 5 + 1)) < 0.5
    return blobs.repeat(5, 0).repeat(5, 1)[: size[0], : size[1]]


def png(mask: np.ndarray, how: str) -> bytes:
    """A mask as the toolkits write it: a palette with a transparent colour, grey, or alpha."""
    picture = image_module.fromarray(mask.astype(np.uint8) * (1 if how == "palette" else 255))
    options: dict[str, Any] = {}
    if how == "palette":
        picture.putpalette([0, 0, 0, 255, 255, 255])
        options = {"transparency": 0}
    elif how == "alpha":
        colour = image_module.new("RGBA", picture.size, (9, 9, 9, 0))
        colour.putalpha(picture)
        picture = colour
    elif how == "bits":
        picture = picture.convert("1")
    out = io.BytesIO()
    picture.save(out, "PNG", **options)
    return out.getvalue()


def images(root: Path) -> None:
    for i in range(N):
        rasters.write(root / f"img/im{i}.png", np.full((1, HEIGHT, WIDTH), i, np.uint8))


def drawn(found: list[Shape], classes: list[str]) -> np.ndarray:
    geometry = [({"type": "Polygon", "coordinates": r}, classes.index(n)) for n, r in found]
    return features.rasterize(geometry, (HEIGHT, WIDTH), dtype="int64")


def masks(root: Path, vector: chaski.Vector) -> tuple[np.ndarray, list[str]]:
    fields = {"image": "im{id}.png", "mask": vector}
    with chaski.load(root / "img", fields=fields, batch_size=N, shuffle=False) as loader:
        (batch,) = loader
        return batch["mask"], loader.classes.get("mask", [])


def write(root: Path, name: str, text: Any) -> None:
    (root / "ann").mkdir(exist_ok=True)
    (root / "ann" / name).write_text(text if isinstance(text, str) else json.dumps(text))


def supervisely(found: list[Shape], more: list[dict[str, Any]] = ()) -> dict[str, Any]:
    objects = [
        {"id": k, "classTitle": name, "geometryType": "polygon", "tags": [{"name": "a"}],
         "points": {"exterior": rings[0][:-1], "interior": [r[:-1] for r in rings[1:]]}}
        for k, (name, rings) in enumerate(found)
    ]  # fmt: skip
    return {
        "description": "", "tags": [], "size": {"height": HEIGHT, "width": WIDTH},
        "objects": [*objects, *more],
    }  # fmt: skip


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "img").mkdir()
    images(tmp_path)
    return tmp_path


def test_polygons_of_supervisely_have_holes(root: Path) -> None:
    point = {"geometryType": "point", "classTitle": "lake", "points": {"exterior": [[3, 3]]}}
    for i in range(N):
        write(root, f"im{i}.png.json", supervisely(shapes(i), [point]))
    for kind in (
        {},
        {"box": {"outline": "objects/points/exterior"}, "column": "objects/classTitle"},
    ):
        if kind:  # the point is no outline there
            for i in range(N):
                write(root, f"im{i}.png.json", supervisely(shapes(i)))
        got, classes = masks(root, chaski.Vector("../ann/im{id}.png.json", **kind))
        assert classes == ["", *sorted(NAMES)]
        for i in range(N):
            assert np.array_equal(got[i], drawn(shapes(i), classes))


def test_rectangles_of_supervisely(root: Path) -> None:
    corners = [[12, 30], [40, 5]]
    box = {
        "geometryType": "rectangle",
        "classTitle": "roof",
        "points": {"exterior": corners, "interior": []},
    }
    for i in range(N):
        write(root, f"im{i}.png.json", supervisely([], [box]))
    vector = chaski.Vector("../ann/im{id}.png.json", kind="boxes")
    fields = {"image": "im{id}.png", "y": vector}
    with chaski.load(root / "img", fields=fields, batch_size=N) as loader:
        (batch,) = loader
    assert [r.tolist() for r in batch["y"].rows()] == [[[12, 5, 40, 30]]] * N


@pytest.mark.parametrize("how", ["palette", "grey", "alpha", "bits"])
@pytest.mark.parametrize("form", ["supervisely", "labelme"])
def test_masks_that_are_pictures(root: Path, how: str, form: str) -> None:
    want = np.zeros((N, HEIGHT, WIDTH), np.int64)
    for i in range(N):
        mask, (x, y) = noise(i), (i * 7, i * 10 % 30)
        want[i, y : y + 20, x : x + 30][mask] = 1
        file = png(mask, how)
        if form == "supervisely":
            data = base64.b64encode(zlib.compress(file)).decode()
            bitmap = {"origin": [x, y], "data": data}
            mine = {"geometryType": "bitmap", "classTitle": "lake", "bitmap": bitmap}
            write(root, f"im{i}.json", supervisely([], [mine]))
        else:
            data = base64.b64encode(file).decode()
            mine = {
                "label": "lake",
                "shape_type": "mask",
                "mask": data,
                "points": [[x, y], [x + 29, y + 19]],
            }
            size = {"imageHeight": HEIGHT, "imageWidth": WIDTH}
            write(
                root,
                f"im{i}.json",
                {"shapes": [mine], "imagePath": f"im{i}.png", "imageData": None} | size,
            )
    got, _ = masks(root, chaski.Vector("../ann/im{id}.json"))
    assert np.array_equal(got, want)


def test_many_pictures_in_a_file(root: Path) -> None:
    """Masks of different sizes follow each other, and their boxes are those of their pixels."""
    want = []
    for i in range(N):
        objects, mine = [], []
        for k, size in enumerate([(8, 9), (20, 30), (3, 5)]):
            mask = np.zeros(size, bool)
            mask[1:-1, 1:-2] = True
            data = base64.b64encode(zlib.compress(png(mask, "palette"))).decode()
            objects.append({"classTitle": "roof", "bitmap": {"origin": [k, i], "data": data}})
            mine.append([k + 1, i + 1, k + size[1] - 2, i + size[0] - 1])
        write(root, f"im{i}.json", supervisely([], objects))
        want.append(mine)
    fields = {"image": "im{id}.png", "y": chaski.Vector("../ann/im{id}.json", kind="boxes")}
    with chaski.load(root / "img", fields=fields, batch_size=N, shuffle=False) as loader:
        (batch,) = loader
    assert [r.tolist() for r in batch["y"].rows()] == want


@pytest.mark.parametrize("form", ["geometry", "texts", "parquet"])
def test_polygons_of_geojson_in_members(root: Path, form: str) -> None:
    classes = ["", *sorted(NAMES)]
    rows = []
    for i in range(N):
        parts = [shapes(i)[2][1], [[[1, 1], [9, 1], [9, 7], [1, 1]]]]
        found = [("MultiPolygon", NAMES[0], parts)]
        found += [("Polygon", name, rings) for name, rings in shapes(i)]
        objects = [{"name": n, "where": {"type": t, "coordinates": c}} for t, n, c in found]
        if form == "texts":
            for o in objects:
                o["where"] = json.dumps(o["where"])
        if form == "parquet":
            objects = [o for o in objects if o["where"]["type"] == "Polygon"]
        rows.append({"file": f"im{i}.png", "objects": objects})
    if form == "parquet":
        pa = pytest.importorskip("pyarrow")
        pytest.importorskip("pyarrow.parquet").write_table(
            pa.Table.from_pylist(rows), root / "a.parquet"
        )
    else:
        (root / "a.json").write_text(json.dumps(rows))
    path = root / ("a.parquet" if form == "parquet" else "a.json")
    vector = chaski.Vector(path, "objects.name", box={"outline": "objects.where"}, image="file")
    got, found_classes = masks(root, vector)
    assert found_classes == classes
    for i in range(N):
        geometry = [
            (json.loads(w) if isinstance(w := o["where"], str) else w, classes.index(o["name"]))
            for o in rows[i]["objects"]
        ]
        assert np.array_equal(got[i], features.rasterize(geometry, (HEIGHT, WIDTH), dtype="int64"))


def voc(outlines: list[Any]) -> str:
    text = "<annotation>"
    for ring in outlines:
        low, high = np.min(ring, 0), np.max(ring, 0)
        box = "".join(
            f"<{k}>{v}</{k}>"
            for k, v in zip(["xmin", "ymin", "xmax", "ymax"], [*low, *high], strict=True)
        )
        points = "".join(f"<x{k}>{x}</x{k}><y{k}>{y}</y{k}>" for k, (x, y) in enumerate(ring, 1))
        text += (
            f"<object><name>roof</name><bndbox>{box}</bndbox><polygon>{points}</polygon></object>"
        )
    return f"{text}</annotation>"


def test_outlines_of_voc_have_all_their_vertices(root: Path) -> None:
    for i in range(N):
        write(root, f"im{i}.xml", voc([rings[0][:-1] for _, rings in shapes(i)[1:]]))
    got, classes = masks(root, chaski.Vector("../ann/im{id}.xml"))
    for i in range(N):
        solid = [("roof", rings[:1]) for _, rings in shapes(i)[1:]]
        assert np.array_equal(got[i], drawn(solid, classes))


RING = [[1, 1], [9, 1], [9, 9]]
TWISTED = "<x1>1</x1><x2>2</x2><y1>1</y1><y2>2</y2>"


def annotation(objects: str) -> str:
    return f"<annotation><object><name>a</name>{objects}</object></annotation>"


def bitmap(x: int) -> dict[str, Any]:
    return supervisely([], [{"bitmap": {"origin": [x, 0], "data": "aGVsbG8="}}])


def holed(interior: Any) -> dict[str, Any]:
    return {"objects": [{"points": {"exterior": RING, "interior": interior}}]}


@pytest.mark.parametrize(
    ("name", "text", "options", "says"),
    [
        ("json", supervisely([], [{"geometryType": "graph", "nodes": {}}]), {}, "neither points"),
        ("json", bitmap(0), {}, "bitmap"),
        ("json", bitmap(-5), {}, "begins at"),
        ("json", holed([[1, 2, 3]]), {}, "holes"),
        ("json", holed([[[1, 2, 3], [4, 5, 6]]]), {}, "is no outline"),
        ("json", {"a": {"coordinates": [RING, RING]}}, {"box": {"outline": "a.coordinates"}},
         "may have holes"),
        ("json", {"o": [[1, 1, 9, 1, 9, 9], [1, 1, 9, 1, 9, 9]], "h": [[2, 2, 3, 2, 3, 3]]},
         {"box": {"outline": "o", "holes": "h"}}, "they are of one outline"),
        ("xml", annotation(f"<polygon>{TWISTED}</polygon>"), {}, "box says where they lie"),
    ],
)  # fmt: skip
def test_what_is_refused(
    root: Path, name: str, text: Any, options: dict[str, Any], says: str
) -> None:
    for i in range(N):
        write(root, f"im{i}.{name}", text)
    with pytest.raises(chaski.Error, match=says):
        masks(root, chaski.Vector(f"../ann/im{{id}}.{name}", **options))


def test_an_image_of_another_size_is_logged(root: Path, caplog: Any) -> None:
    text = supervisely(shapes(0)) | {"size": {"height": 2 * HEIGHT, "width": 2 * WIDTH}}
    for i in range(N):
        write(root, f"im{i}.json", text)
    masks(root, chaski.Vector("../ann/im{id}.json"))
    assert "another size" in logged(caplog, "another size")
