"""Labels of detectors in the files that they come in, against what json, xml and rasterio read."""

from __future__ import annotations

import csv
import io
import json
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import rasters
from conftest import nonempty
from patience import logged

import chaski

rasterio = pytest.importorskip("rasterio")
features = pytest.importorskip("rasterio.features")

pytestmark = pytest.mark.usefixtures("one_engine")

N, HEIGHT, WIDTH = 6, 60, 80
EMPTY, MISSING = 2, 4  # images with a label of no objects, and without a label
NAMES = ["ship", "airplane", "storage-tank"]
Objects = list[dict[str, Any]]
rng = np.random.default_rng(8)


def some(i: int) -> Objects:
    """Objects of an image: the corners of an oriented box, the box around it, and values."""
    found = []
    for k in range(0 if i in (EMPTY, MISSING) else 5):
        middle, half, turn = (
            rng.uniform(0, (WIDTH, HEIGHT)),
            rng.uniform(3, 15, 2),
            rng.uniform(0, 6),
        )
        flat = np.array([(-1, -1), (1, -1), (1, 1), (-1, 1)]) * half
        corners = flat @ [[np.cos(turn), np.sin(turn)], [-np.sin(turn), np.cos(turn)]] + middle
        corners = corners.round(3)
        found.append({"corners": corners, "box": [*corners.min(0), *corners.max(0)],
                      "name": NAMES[(i + k) % 3], "difficult": int(k % 2)})  # fmt: skip
    return found


def images(root: Path) -> None:
    """PNG files whose pixels say where they are, and in which file."""
    (root / "images").mkdir(parents=True)
    y, x = np.mgrid[:HEIGHT, :WIDTH].astype(np.uint8)
    for i in range(N):
        rasters.write(root / f"images/im{i}.png", np.stack([y, x, np.full_like(x, i)]))


def voc(objects: Objects, image: int) -> str:
    text = f"<annotation><filename>im{image}.png</filename><!-- a comment -->"
    text += f"<size><width>{WIDTH}</width><height>{HEIGHT}</height><depth>3</depth></size>"
    for o in objects:
        sides = zip(["xmin", "ymin", "xmax", "ymax"], o["box"], strict=True)
        box = "".join(f"<{k}>{v}</{k}>" for k, v in sides)
        part = "<part><name>bow</name><bndbox><xmin>1</xmin></bndbox></part>"
        text += f"<object>{part}<name>{o['name']}</name><pose>Left</pose>"
        text += f"<difficult>{o['difficult']}</difficult><bndbox>{box}</bndbox></object>\n"
    return '<?xml version="1.0"?>\r\n' + text + "</annotation>"


def fair1m(objects: Objects, image: int) -> str:
    text = f"<annotation><source><filename>im{image}.png</filename></source><objects>"
    for o in objects:
        ring = [*o["corners"], o["corners"][0]]
        points = "".join(f"<point>{x:.6f},{y:.6f}</point>" for x, y in ring)
        text += "<object><coordinate>pixel</coordinate><type>rectangle</type><possibleresult>"
        text += f"<name>{o['name']}</name></possibleresult><points>{points}</points></object>"
    return text + "</objects></annotation>"


def dota(objects: Objects, image: int) -> str:
    lines = ["imagesource:GoogleEarth", "gsd:0.146"] if image % 2 else []
    for o in objects:
        lines.append(" ".join(map(str, [*o["corners"].ravel(), o["name"], o["difficult"]])))
    return "\n".join(lines) + "\n"


def yolo(objects: Objects, image: int) -> str:
    size = np.array([WIDTH, HEIGHT])
    lines = []
    for o in objects:
        low, high = np.array(o["box"][:2]) / size, np.array(o["box"][2:]) / size
        shares = [*((low + high) / 2), *(high - low)]
        lines.append(" ".join(map(str, [NAMES.index(o["name"]), *shares])))
    return "\r\n".join(lines)


def yolo_oriented(objects: Objects, image: int) -> str:
    return "\n".join(
        " ".join(map(str, [NAMES.index(o["name"]), *(o["corners"] / [WIDTH, HEIGHT]).ravel()]))
        for o in objects
    )


def soda(objects: Objects, image: int) -> str:
    listed = [
        {"poly": o["corners"].ravel().tolist(), "area": 9.5, "id": k, "image_id": 77,
         "category_id": NAMES.index(o["name"])}
        for k, o in enumerate(objects)
    ]  # fmt: skip
    return json.dumps({
        "type": "instance", "images": {"file_name": f"im{image}.png", "id": 77},
        "annotations": listed, "categories": [{"id": k, "name": n} for k, n in enumerate(NAMES)],
    })  # fmt: skip


def xbd(objects: Objects, image: int) -> str:
    def listed(scale: float) -> list[Any]:
        out = []
        for k, o in enumerate(objects):
            corners = (np.array([*o["corners"], o["corners"][0]]) * scale).tolist()
            ring = ", ".join(f"{x!r} {y!r}" for x, y in corners)
            values = {"feature_type": "building", "subtype": o["name"], "uid": f"u{k}"}
            values["difficult"] = o["difficult"]
            out.append({"properties": values, "wkt": f"POLYGON (({ring}))"})
        return out

    both = {"lng_lat": listed(0.01), "xy": listed(1)}
    return json.dumps({"features": both, "metadata": {"img_name": f"im{image}.png"}})


def geojson(objects: Objects, image: int) -> str:
    listed = []
    for o in objects:
        ring = [*o["corners"].tolist(), o["corners"][0].tolist()]
        values = {"kind": o["name"], "difficult": o["difficult"]}
        shape = {"type": "Polygon", "coordinates": [ring]}
        listed.append({"type": "Feature", "properties": values, "geometry": shape})
    return json.dumps({"type": "FeatureCollection", "features": listed})


def qupath(objects: Objects, image: int) -> str:
    file = json.loads(geojson(objects, image))
    for f in file["features"]:
        values = f["properties"]
        values["classification"] = {"name": values.pop("kind"), "color": [200, 0, 0]}
    return json.dumps(file)


def hrsc(objects: Objects, image: int) -> str:
    text = f"<Img_FileName>im{image}</Img_FileName><HRSC_Objects>"
    for o in objects:
        sides = zip(["xmin", "ymin", "xmax", "ymax"], o["box"], strict=True)
        text += "".join(f"<box_{k}>{v}</box_{k}>" for k, v in sides).join(
            [f"<HRSC_Object><Class_ID>{o['name']}</Class_ID>", "</HRSC_Object>"]
        )
    return f"<HRSC_Image>{text}</HRSC_Objects></HRSC_Image>"


def hrsc_turned(objects: Objects, image: int) -> str:
    text = ""
    for o in objects:
        first, second, third, _ = o["corners"]
        middle, (width, height) = (
            (first + third) / 2,
            np.hypot(*np.diff(o["corners"][:3], axis=0).T),
        )
        angle = np.arctan2(*(second - first)[::-1])
        members = zip(["cx", "cy", "w", "h", "ang"], [*middle, width, height, angle], strict=True)
        text += f"<HRSC_Object><Class_ID>{o['name']}</Class_ID>"
        text += "".join(f"<mbox_{k}>{v}</mbox_{k}>" for k, v in members) + "</HRSC_Object>"
    return f"<HRSC_Image><HRSC_Objects>{text}</HRSC_Objects></HRSC_Image>"


def kitti(objects: Objects, image: int) -> str:
    """As ArcGIS exports it; names of classes or, in every second file, also numbers."""
    lines = [[o["name"], 0.0, 0, 0.0, *o["box"], *[0] * 7, *[0.5] * (image % 2)] for o in objects]
    return "\n".join(" ".join(map(str, line)) for line in lines)


def kitti_numbers(objects: Objects, image: int) -> str:
    return "\n".join(f"{3 + len(line)}{line[line.index(' '):]}" for line in
                     kitti(objects, image).splitlines())  # fmt: skip


def array(objects: Objects, image: int) -> bytes:
    rows = [[*o["box"], NAMES.index(o["name"])] for o in objects]
    out = io.BytesIO()
    np.save(out, np.array(rows, [">f8", "<f4", "<f8"][image % 3]))
    return out.getvalue()


def read_array(data: bytes) -> list[Any]:
    out = []
    for x0, y0, x1, y1, n in np.load(io.BytesIO(data)).tolist():
        out.append(([[x0, y0], [x1, y0], [x1, y1], [x0, y1]], int(n), 0))
    return out


def labelme(objects: Objects, image: int) -> str:
    shapes = [
        {"label": o["name"], "points": o["corners"].tolist(), "group_id": None, "flags": {},
         "shape_type": "polygon", "difficult": o["difficult"]}
        for o in objects
    ]  # fmt: skip
    data = "QUJD" * (1 << 21)  # of 8 MiB, more than a part of a file may have
    return json.dumps({"version": "5.2.1", "flags": {}, "shapes": shapes, "imageData": data,
                       "imagePath": f"im{image}.png", "imageHeight": HEIGHT})  # fmt: skip


def regions(objects: Objects) -> list[Any]:
    out = []
    for o in objects:
        x, y = o["corners"].T.tolist()
        shape = {"name": "polygon", "all_points_x": x, "all_points_y": y}
        values = {"difficult": o["difficult"], "type": o["name"]}
        out.append({"shape_attributes": shape, "region_attributes": values})
    return out


def via(objects: Objects, image: int) -> str:
    name = f"im{image}.png"
    entry = {"filename": name, "size": 99, "regions": regions(objects), "file_attributes": {}}
    images = {f"{name}99": entry}
    return json.dumps({"_via_img_metadata": images} if image % 2 else images)


def via_csv(objects: Objects, image: int) -> str:
    out = io.StringIO()
    names = ["filename", "region_count", "region_id", "region_shape_attributes"]
    rows = csv.writer(out)
    rows.writerow([*names, "region_attributes"])
    for k, r in enumerate(regions(objects)):
        cells = [json.dumps(r[n]) for n in ("shape_attributes", "region_attributes")]
        rows.writerow([f"im{image}.png", len(objects), k, *cells])
    return out.getvalue()


def wkt(objects: Objects, image: int) -> str:
    out = io.StringIO()
    rows = csv.writer(out)
    rows.writerow(["ImageId", "BuildingId", "PolygonWKT_Pix", "class", "difficult"])
    for k, o in enumerate(objects):
        ring = ", ".join(
            f"{x!r} {y!r} 0" for x, y in [*o["corners"].tolist(), o["corners"][0].tolist()]
        )
        rows.writerow([image, k, f"POLYGON (({ring}))", o["name"], o["difficult"]])
    return out.getvalue()


def table(objects: Objects, image: int) -> str:
    lines = ["xmin,ymin,xmax,ymax,label,difficult"]
    lines += [",".join(map(str, [*o["box"], o["name"], o["difficult"]])) for o in objects]
    return "\n".join(lines)


Read = Callable[[Any], list[tuple[list[list[float]], Any, int]]]


def read_voc(text: str) -> list[Any]:
    out = []
    for o in ET.fromstring(text).iter("object"):
        box = o.find("bndbox")
        x0, y0, x1, y1 = (float(box.find(k).text) for k in ["xmin", "ymin", "xmax", "ymax"])
        ring = [[x0, y0], [x1, y0], [x1, y1], [x0, y1]]
        out.append((ring, o.find("name").text, int(o.find("difficult").text)))
    return out


def read_fair1m(text: str) -> list[Any]:
    return [
        ([list(map(float, p.text.split(","))) for p in o.find("points")][:-1],
         o.find("possibleresult").find("name").text, 0)
        for o in ET.fromstring(text).find("objects")
    ]  # fmt: skip


def read_dota(text: str) -> list[Any]:
    lines = [line.split() for line in text.splitlines() if ":" not in line]
    return [
        (np.array(line[:8], float).reshape(4, 2).tolist(), line[8], int(line[9])) for line in lines
    ]


def read_yolo(text: str) -> list[Any]:
    out = []
    for line in text.splitlines():
        kind, *rest = map(float, line.split())
        ring = np.array(rest).reshape(-1, 2)
        if len(rest) == 4:
            (x, y), (w, h) = ring
            low, high = (x - w / 2, y - h / 2), (x + w / 2, y + h / 2)
            ring = np.array([low, (high[0], low[1]), high, (low[0], high[1])])
        out.append(((ring * [WIDTH, HEIGHT]).tolist(), int(kind), 0))
    return out


def read_soda(text: str) -> list[Any]:
    file = json.loads(text)
    names = {c["id"]: c["name"] for c in file["categories"]}
    return [
        (np.reshape(a["poly"], (4, 2)).tolist(), names[a["category_id"]], 0)
        for a in file["annotations"]
    ]


def read_xbd(text: str) -> list[Any]:
    out = []
    for o in json.loads(text)["features"]["xy"]:
        points = o["wkt"].removeprefix("POLYGON ((").removesuffix("))").split(", ")
        ring = [[float(v) for v in p.split(" ")] for p in points][:-1]
        out.append((ring, o["properties"]["subtype"], o["properties"]["difficult"]))
    return out


def read_geojson(text: str) -> list[Any]:
    return [
        (
            f["geometry"]["coordinates"][0][:-1],
            f["properties"]["kind"],
            f["properties"]["difficult"],
        )
        for f in json.loads(text)["features"]
    ]


def read_qupath(text: str) -> list[Any]:
    out = []
    for f in json.loads(text)["features"]:
        values = f["properties"]
        ring = f["geometry"]["coordinates"][0][:-1]
        out.append((ring, values["classification"]["name"], values["difficult"]))
    return out


def read_hrsc(text: str) -> list[Any]:
    out = []
    for o in ET.fromstring(text).iter("HRSC_Object"):
        value = {k.tag: k.text for k in o}
        if "mbox_cx" in value:
            keys = ("cx", "cy", "w", "h", "ang")
            x, y, w, h, turn = (float(value[f"mbox_{k}"]) for k in keys)
            along = np.array([np.cos(turn), np.sin(turn)]) * w / 2
            across = np.array([-np.sin(turn), np.cos(turn)]) * h / 2
            signs = [(-1, -1), (1, -1), (1, 1), (-1, 1)]
            ring = [[x, y] + a * along + b * across for a, b in signs]
        else:
            keys = ("xmin", "ymin", "xmax", "ymax")
            x0, y0, x1, y1 = (float(value[f"box_{k}"]) for k in keys)
            ring = [[x0, y0], [x1, y0], [x1, y1], [x0, y1]]
        out.append((np.array(ring).tolist(), value["Class_ID"], 0))
    return out


def read_kitti(text: str) -> list[Any]:
    out = []
    for words in map(str.split, text.splitlines()):
        x0, y0, x1, y1 = map(float, words[4:8])
        out.append(([[x0, y0], [x1, y0], [x1, y1], [x0, y1]], words[0], 0))
    return out


def read_labelme(text: str) -> list[Any]:
    return [(s["points"], s["label"], s["difficult"]) for s in json.loads(text)["shapes"]]


def region(shape: dict[str, Any], values: dict[str, Any]) -> tuple[Any, ...]:
    ring = list(zip(shape["all_points_x"], shape["all_points_y"], strict=True))
    return ring, values["type"], values["difficult"]


def read_via(text: str) -> list[Any]:
    file = json.loads(text)
    (image,) = file.get("_via_img_metadata", file).values()
    return [region(r["shape_attributes"], r["region_attributes"]) for r in image["regions"]]


def read_via_csv(text: str) -> list[Any]:
    rows = csv.DictReader(io.StringIO(text))
    names = ("region_shape_attributes", "region_attributes")
    return [region(*(json.loads(r[n]) for n in names)) for r in rows]


def read_wkt(text: str) -> list[Any]:
    out = []
    for r in csv.DictReader(io.StringIO(text)):
        points = r["PolygonWKT_Pix"].removeprefix("POLYGON ((").removesuffix("))").split(", ")
        ring = [[float(v) for v in p.split(" ")[:2]] for p in points][:-1]
        out.append((ring, r["class"], int(r["difficult"])))
    return out


def read_table(text: str) -> list[Any]:
    out = []
    for o in csv.DictReader(text.splitlines()):
        x0, y0, x1, y1 = (float(o[k]) for k in ["xmin", "ymin", "xmax", "ymax"])
        out.append(([[x0, y0], [x1, y0], [x1, y1], [x0, y1]], o["label"], int(o["difficult"])))
    return out


FORMATS: dict[str, tuple[str, Callable[[Objects, int], str | bytes], Read, dict[str, Any]]] = {
    "voc": ("xml", voc, read_voc, {"columns": ["difficult"]}),
    "fair1m": ("xml", fair1m, read_fair1m, {}),
    "dota": ("txt", dota, read_dota, {"columns": ["difficult"]}),
    "yolo": ("txt", yolo, read_yolo, {}),
    "yolo named": ("txt", yolo, read_yolo, {"classes": NAMES}),
    "yolo oriented": ("txt", yolo_oriented, read_yolo, {}),
    "soda": ("json", soda, read_soda, {}),
    "xbd": ("json", xbd, read_xbd, {"columns": ["difficult"]}),
    "geojson": ("geojson", geojson, read_geojson,
                {"crs": "pixels", "column": "kind", "columns": ["difficult"]}),
    "qupath": ("geojson", qupath, read_qupath,
               {"crs": "pixels", "column": "classification.name",
                "columns": ["difficult"]}),
    "hrsc": ("xml", hrsc, read_hrsc, {}),
    "hrsc turned": ("xml", hrsc_turned, read_hrsc, {}),
    "kitti": ("txt", kitti, read_kitti, {}),
    "kitti of numbers": ("txt", kitti_numbers, read_kitti, {}),
    "npy": ("npy", array, read_array, {}),
    "csv": ("csv", table, read_table, {"columns": ["difficult"]}),
    "labelme": ("json", labelme, read_labelme, {"columns": ["difficult"]}),
    "via": ("json", via, read_via, {"columns": ["difficult"]}),
    "via csv": ("csv", via_csv, read_via_csv, {"columns": ["difficult"]}),
    "wkt": ("csv", wkt, read_wkt, {"columns": ["difficult"]}),
    "classes": ("xml", voc, read_voc, {"classes": ["storage-tank", "ship", "none"]}),
}  # fmt: skip


@pytest.fixture(scope="module", params=list(FORMATS))
def labelled(request, tmp_path_factory) -> tuple[Path, str, dict[int, list[Any]], dict[str, Any]]:
    """A folder of images and labels, the pattern of these, and the objects in the files."""
    suffix, write, read, arguments = FORMATS[request.param]
    root = tmp_path_factory.mktemp("labels")
    images(root)
    (root / "labels").mkdir()
    objects = {}
    for i in range(N):
        path = root / f"labels/im{i}.{suffix}"
        if i != MISSING:
            data = write(some(i), i)
            path.write_bytes(data if isinstance(data, bytes) else data.encode())
        if i == EMPTY and request.param != "fair1m":
            path.write_bytes(b"")
        if i in (EMPTY, MISSING):
            objects[i] = []
        else:
            objects[i] = read(path.read_bytes() if suffix == "npy" else path.read_text())
    assert sum(map(len, objects.values())) == 20
    return root, f"../labels/{{id}}.{suffix}", objects, arguments


def numbers(objects: dict[int, list[Any]], arguments: dict[str, Any]) -> dict[Any, int]:
    """The values of the names of classes; a class that is not there is left out."""
    names = {name for image in objects.values() for _, name, _ in image}
    if all(isinstance(n, int) for n in names):
        return {n: n + ("classes" in arguments) for n in names}
    listed = arguments.get("classes", sorted(names))
    return {n: listed.index(n) + 1 for n in names if n in listed}


def clipped(ring: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """The part of a convex ring between two corners: each side cuts it in turn."""
    for axis, bound, sign in [(0, low[0], 1), (0, high[0], -1), (1, low[1], 1), (1, high[1], -1)]:
        kept = []
        for a, b in zip(ring, np.roll(ring, -1, 0), strict=True):
            da, db = sign * (a[axis] - bound), sign * (b[axis] - bound)
            if da >= 0:
                kept.append(a)
            if da * db < 0:
                kept.append(a + (b - a) * da / (da - db))
        ring = np.reshape(kept, (-1, 2))
    return ring


def inside(ring: list[list[float]], image: np.ndarray) -> np.ndarray | None:
    """The box around a ring cut to a window, in its pixels, by the places that these have."""
    y, x = image[:2].astype(float)
    low, high = np.array([x.min(), y.min()]), np.array([x.max() + 1, y.max() + 1])
    part = clipped(np.array(ring), low, high)
    if len(part) == 0:
        return None
    right = np.array([x[0, 1] - x[0, 0], y[0, 1] - y[0, 0]])
    down = np.array([x[1, 0] - x[0, 0], y[1, 0] - y[0, 0]])
    first = np.array([x[0, 0], y[0, 0]]) + 0.5 - (right + down) / 2
    turned = (part - first) @ np.stack([right, down], 1)
    return np.concatenate([turned.min(0), turned.max(0)])


def load(root: Path, vectors: dict[str, Any], **options: Any) -> chaski.Loader:
    fields = {"image": chaski.Field(pattern="{id}.png", dtype="uint8"), **vectors}
    return chaski.load(str(root / "images"), fields=fields, **{"batch_size": 4} | options)


def test_boxes_of_windows(labelled):
    root, pattern, objects, arguments = labelled
    vector = chaski.Vector(pattern, kind="boxes", missing="empty", **arguments)
    values, seen, cut = numbers(objects, arguments), 0, 0
    window = chaski.Grid((32, 32))
    with load(root, {"boxes": vector}, window=window, pixels=chaski.Pixels(augment="d4")) as loader:
        if not all(isinstance(v, int) for v in values) or "classes" in arguments:
            names = arguments.get("classes", sorted(values))
            assert loader.classes["boxes"] == ["", *names]
        for batch in loader:
            for k in np.flatnonzero(batch["valid"]):
                image = batch["image"][k]
                mine = objects[int(image[2, 0, 0])]
                mine = [o for o in mine if o[1] in values]
                wanted = [(inside(ring, image), *rest) for ring, *rest in mine]
                want = [o for o in wanted if o[0] is not None]
                boxes = batch["boxes"].rows()[k]
                assert boxes.shape == (len(want), 4)
                assert np.allclose(boxes, np.reshape([o[0] for o in want], (-1, 4)), atol=1e-4)
                found = batch["boxes_values"].rows()[k]
                assert found.dtype == np.int64
                assert found.tolist() == [values[o[1]] for o in want]
                if "columns" in arguments:
                    found = batch["boxes_difficult"].rows()[k]
                    assert found.tolist() == [o[2] for o in want]
                seen += len(want)
                cut += len(wanted) - len(want)
    assert seen > 20 and cut > 20


def test_polygons_and_masks_of_images(labelled):
    root, pattern, objects, arguments = labelled
    shared = {k: v for k, v in arguments.items() if k != "columns"}
    polygons = chaski.Vector(pattern, kind="polygons", missing="empty", **shared)
    values = numbers(objects, arguments)
    vectors = {"outlines": polygons, "mask": chaski.Vector(pattern, missing="empty", **shared)}
    if 0 in values.values():
        with pytest.raises(chaski.Error, match="give classes"):
            next(iter(load(root, vectors)))
        del vectors["mask"]
    with load(root, vectors, batch_size=N, shuffle=False) as loader:
        (batch,) = loader
    for k, shapes in nonempty(enumerate(chaski.polygons(batch, "outlines"))):
        mine = [o for o in objects[k] if o[1] in values]
        whole = [o for o in mine if all(0 < x < WIDTH and 0 < y < HEIGHT for x, y in o[0])]
        rings = [np.array(ring) for ring, *_ in whole]
        found = [p[0][0] for p in shapes if len(p[0][0]) == 4]
        assert all(any(same(ring, f) for f in found) for ring in rings)
        if "mask" in vectors:
            drawn = [
                ({"type": "Polygon", "coordinates": [[*r, r[0]]]}, values[n]) for r, n, _ in mine
            ]
            want = np.zeros((HEIGHT, WIDTH), np.uint8)
            if drawn:
                want = features.rasterize(drawn, want.shape, dtype="uint8")
            assert batch["mask"].dtype == np.uint8
            assert np.array_equal(batch["mask"][k], want)


def same(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether two outlines have the same vertices, in any direction from any of them."""
    if a.shape != b.shape:
        return False
    turns = [np.roll(way, k, 0) for way in (a, a[::-1]) for k in range(len(a))]
    return any(np.allclose(t, b, atol=1e-4) for t in turns)


def test_images_without_labels(labelled):
    root, pattern, *_ = labelled
    crs = "pixels" if pattern.endswith(".geojson") else None
    vector = chaski.Vector(pattern, kind="boxes", crs=crs)
    with pytest.raises(chaski.Error, match=f"im{MISSING}"):
        load(root, {"boxes": vector})
    with load(root, {"boxes": vector}, rows=chaski.Rows(missing="drop"), shuffle=False) as loader:
        seen = [int(i[2, 0, 0]) for b in loader for i in b["image"][b["valid"].astype(bool)]]
    assert seen == [i for i in range(N) if i != MISSING]


def coco(root: Path, seed: int) -> dict[str, Any]:
    """Annotations of all images in one file, as COCO has them, behind their images or before."""
    random = np.random.default_rng(seed)
    categories = [{"id": 3 * k + 2, "name": n} for k, n in enumerate(NAMES)]
    listed = []
    for i in range(N):
        for o in some(i):
            low, high = o["corners"].min(0), o["corners"].max(0)
            listed.append({
                "id": len(listed), "image_id": 500 - i, "iscrowd": int(random.integers(2)),
                "category_id": categories[NAMES.index(o["name"])]["id"],
                "bbox": [*low.tolist(), *(high - low).tolist()], "area": random.random(),
                "segmentation": [o["corners"].ravel().tolist()],
            })  # fmt: skip
    listed = [listed[k] for k in random.permutation(len(listed))]
    files = [{"id": 500 - i, "file_name": f"im{i}.png", "height": HEIGHT, "width": WIDTH}
             for i in range(N) if i != MISSING]  # fmt: skip
    file = {
        "info": {"year": 2026},
        "annotations": listed,
        "images": files,
        "categories": categories,
    }
    (root / "annotations.json").write_text(json.dumps(file))
    return file


def boxes_of(batch: chaski.Batch, k: int) -> tuple[np.ndarray, list[int]]:
    return batch["boxes"].rows()[k], batch["boxes_values"].rows()[k].tolist()


def test_coco_for_all_images(tmp_path):
    images(tmp_path)
    file = coco(tmp_path, 3)
    path = tmp_path / "annotations.json"
    boxes = chaski.Vector(path, kind="boxes", missing="empty", columns=["iscrowd", "area"])
    numbered = chaski.Vector(path, "category_id", kind="boxes", missing="empty")
    with load(tmp_path, {"boxes": boxes, "ids": numbered}, batch_size=N, shuffle=False) as loader:
        assert loader.classes == {"boxes": ["", *sorted(NAMES)]}
        (batch,) = loader
    names = {c["id"]: c["name"] for c in file["categories"]}
    for i in range(N):
        mine = [a for a in file["annotations"] if a["image_id"] == 500 - i]
        found, values = boxes_of(batch, i)
        sides = np.reshape([a["bbox"] for a in mine], (-1, 4))
        low, high = sides[:, :2], sides[:, :2] + sides[:, 2:]
        want = np.hstack([low.clip(0), high.clip(0, (WIDTH, HEIGHT))])
        assert np.allclose(found, want, atol=1e-4)
        assert values == [sorted(NAMES).index(names[a["category_id"]]) + 1 for a in mine]
        assert batch["ids_values"].rows()[i].tolist() == [a["category_id"] for a in mine]
        crowd, area = batch["boxes_iscrowd"].rows()[i], batch["boxes_area"].rows()[i]
        assert crowd.dtype == np.int64 and crowd.tolist() == [a["iscrowd"] for a in mine]
        assert area.dtype == np.float32 and np.allclose(area, [a["area"] for a in mine])


def test_coco_that_does_not_name_an_image(tmp_path):
    images(tmp_path)
    coco(tmp_path, 3)
    vector = chaski.Vector(tmp_path / "annotations.json", kind="boxes")
    with (
        load(tmp_path, {"boxes": vector}, batch_size=N) as loader,
        pytest.raises(chaski.Error, match=f"no shape names .im{MISSING}"),
    ):
        list(loader)


def test_masks_of_coco(tmp_path):
    """Outlines and runs are drawn as pycocotools decodes them, outlines by GDAL's rule."""
    mask = pytest.importorskip("pycocotools.mask")
    images(tmp_path)
    file = coco(tmp_path, 4)
    random = np.random.default_rng(4)
    for k, a in enumerate(file["annotations"]):
        if k % 3:
            noise = random.random((HEIGHT, WIDTH)) < 0.3
            rle = mask.encode(np.asfortranarray(noise.astype(np.uint8)))
            if k % 3 == 1:
                a["segmentation"] = {"size": rle["size"], "counts": rle["counts"].decode()}
            else:
                flat = noise.ravel(order="F")
                ends = np.flatnonzero(np.diff(flat)) + 1
                runs = np.diff([0, *ends, flat.size]).tolist()
                a["segmentation"] = {"size": rle["size"], "counts": [0] * int(flat[0]) + runs}
            a["decoded"] = noise.tolist()
    (tmp_path / "annotations.json").write_text(json.dumps(file))
    vector = chaski.Vector(tmp_path / "annotations.json", "category_id", missing="empty")
    with load(tmp_path, {"mask": vector}, batch_size=N, shuffle=False) as loader:
        (batch,) = loader
    drawn = 0
    for i in range(N):
        want = np.zeros((HEIGHT, WIDTH), np.int64)
        for a in file["annotations"]:
            if a["image_id"] != 500 - i:
                continue
            if "decoded" in a:
                pixels = np.array(a["decoded"])
                drawn += 1
            else:
                ring = np.reshape(a["segmentation"], (-1, 2)).tolist()
                shape = {"type": "Polygon", "coordinates": [[*ring, ring[0]]]}
                pixels = features.rasterize([shape], want.shape) == 1
            want[pixels] = a["category_id"]
        assert np.array_equal(batch["mask"][i], want)
    assert drawn > 5


@pytest.mark.parametrize("shares", [False, True])
@pytest.mark.parametrize("head", ["img_path,xmin,ymin,xmax,ymax,group", "Filename,x,y,w,h,group"])
def test_csv_for_all_images(tmp_path, head, shares):
    images(tmp_path)
    size = np.tile([WIDTH, HEIGHT], 2) if shares else np.ones(4)
    lines, want = [head], {i: [] for i in range(N)}
    for i in range(N):
        for o in some(i):
            x0, y0, x1, y1 = np.array(o["box"]) / size
            sides = [x0, y0, x1 - x0, y1 - y0] if "w,h" in head else [x0, y0, x1, y1]
            lines.append(",".join(map(str, [f"images/im{i}.png", *sides, f'"{o["name"]}"'])))
            want[i].append((o["box"], o["name"]))
    lines.append(f"im{EMPTY}.png,,,,,")
    (tmp_path / "boxes.csv").write_text("\n".join(lines) + "\n")
    classes = ["storage-tank", "ship"]
    vector = chaski.Vector(
        tmp_path / "boxes.csv", "group", kind="boxes", classes=classes, missing="empty",
        crs="shares" if shares else None,
    )  # fmt: skip
    with load(tmp_path, {"boxes": vector}, batch_size=N, shuffle=False) as loader:
        (batch,) = loader
    for i in range(N):
        found, values = boxes_of(batch, i)
        mine = [(b, n) for b, n in want[i] if n in classes]
        low, high = np.split(np.reshape([b for b, _ in mine], (-1, 4)), 2, axis=1)
        limits = (WIDTH, HEIGHT)
        assert np.allclose(found, np.hstack([low.clip(0), high.clip(0, limits)]), atol=1e-4)
        assert values == [classes.index(n) + 1 for _, n in mine]


@pytest.mark.parametrize("name", ["im{}", "im{}.jpg", "images\\im{}.png", "d:\\set\\im{}.tif"])
def test_names_of_images_as_other_programs_write_them(tmp_path, name):
    """Names without their endings, with others, and with the separators of Windows."""
    images(tmp_path)
    lines = ["ImageID,LabelName,XMin,XMax,YMin,YMax"]
    lines += [f"{name.format(i)},car,0.{i},0.9,0.25,0.5" for i in range(N)]
    (tmp_path / "boxes.csv").write_text("\n".join(lines) + "\n")
    vector = chaski.Vector(tmp_path / "boxes.csv", kind="boxes", crs="shares")
    with load(tmp_path, {"boxes": vector}, batch_size=N, shuffle=False) as loader:
        (batch,) = loader
    want = [[[i / 10 * WIDTH, HEIGHT / 4, 0.9 * WIDTH, HEIGHT / 2]] for i in range(N)]
    assert np.allclose(np.stack(batch["boxes"].rows()), want)
    with pytest.raises(chaski.UnsupportedError, match='say crs="shares"'):
        chaski.load(
            tmp_path / "images/*.png",
            batch_size=N,
            fields={"image": chaski.Field(), "y": chaski.Vector(tmp_path / "boxes.csv")},
        )


def test_a_file_that_names_no_image(tmp_path, caplog):
    images(tmp_path)
    (tmp_path / "boxes.csv").write_text("image,x,y,w,h\nother.png,1,2,3,4\n")
    for missing in (None, "empty"):
        vector = chaski.Vector(tmp_path / "boxes.csv", kind="boxes", missing=missing)
        with load(tmp_path, {"boxes": vector}, batch_size=N, shuffle=False) as loader:
            if missing is None:
                with pytest.raises(chaski.NotFoundError, match=r'names such as "other\.png"'):
                    next(iter(loader))
    text = logged(caplog, "no image has shapes", "other.png")
    assert any("no image has shapes" in line and "other.png" in line for line in text.splitlines())


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("tasks.json", '[{"id": 1, "data": {"image": "im0.png"}}]', "not JSON-MIN"),
        ("cvat.xml", '<?xml version="1.0"?>\n<annotations></annotations>', "CVAT exports it"),
    ],
)
def test_exports_that_are_not_read_say_the_way(tmp_path, name, text, says):
    images(tmp_path)
    (tmp_path / name).write_text(text)
    with pytest.raises(chaski.UnsupportedError, match=says):
        load(tmp_path, {"y": chaski.Vector(tmp_path / name, kind="boxes")}, batch_size=1)


def percent(points: np.ndarray) -> np.ndarray:
    return points * 100 / [WIDTH, HEIGHT]


def turned(ring: np.ndarray, middle: np.ndarray, degrees: float) -> np.ndarray:
    """Points that are turned clockwise, as pictures are seen."""
    sin, cos = np.sin(np.radians(degrees)), np.cos(np.radians(degrees))
    return (ring - middle) @ [[cos, sin], [-sin, cos]] + middle


def task(i: int, name: str, cancelled: bool = False) -> tuple[dict[str, Any], list[Any]]:
    """A task of Label Studio, and the outlines that its results mean."""
    draw = np.random.default_rng(50 + i)
    results, want = [], []
    for k in range(5):
        corner, size = draw.uniform((20, 15), (45, 30)), draw.uniform(4, 12, 2)
        kind, label = ["rectangle", "polygon", "ellipse", "rectangle", "keypoint"][k], NAMES[k % 3]
        box = corner + [(0, 0), (size[0], 0), size, (0, size[1])]
        turn = [0, 0, 20, 35, 0][k]
        value: dict[str, Any] = {f"{kind}labels": [label], "rotation": turn}
        if kind == "polygon":
            value = {f"{kind}labels": [label], "points": percent(box[:3]).tolist(), "closed": True}
            ring = box[:3]
        elif kind == "ellipse":
            radius = percent(size / 2)
            value |= {"radiusX": radius[0], "radiusY": radius[1]}
            angles = np.linspace(0, 2 * np.pi, 64, endpoint=False)
            circle = np.stack([np.cos(angles), np.sin(angles)], 1)
            ring = turned(corner + circle * size / 2, corner, turn)
        else:
            value |= dict(zip(["width", "height"], percent(size), strict=True))
            ring = turned(box, corner, turn)
        if kind != "polygon":
            value |= dict(zip("xy", percent(corner), strict=True))
        results.append({"original_width": WIDTH, "original_height": HEIGHT, "image_rotation": 0,
                        "value": value, "id": f"r{k}", "type": f"{kind}labels"})  # fmt: skip
        if kind != "keypoint":
            want.append((ring, label))
    results.append({"type": "relation", "from_id": "r0", "to_id": "r1"})
    skipped = {"result": results[:1] * 2, "was_cancelled": True}
    annotation = {"id": i, "completed_by": 1, "result": results, "was_cancelled": False}
    annotations = [skipped, annotation, skipped] if cancelled else [annotation]
    drafts: dict[str, Any] = {"drafts": [], "predictions": [{"result": results[:2]}]}
    return {"id": i, "annotations": annotations, "data": {"image": name}} | drafts, want


@pytest.mark.parametrize(
    "name", ["/data/upload/3/0a1b2c3d-im{}.png", "/data/local-files/?d=images%2Fim{}.png",
             "s3://bucket/images/im{}.png"],
)  # fmt: skip
@pytest.mark.parametrize("kind", ["boxes", "mask"])
def test_tasks_of_label_studio(tmp_path, name, kind):
    images(tmp_path)
    tasks, want = zip(*[task(i, name.format(i), i % 2 == 1) for i in range(N)], strict=True)
    tasks[EMPTY]["annotations"] = []
    (tmp_path / "tasks.json").write_text(json.dumps(tasks))
    vector = chaski.Vector(tmp_path / "tasks.json", kind=kind)
    with load(tmp_path, {"y": vector}, batch_size=N, shuffle=False) as loader:
        (batch,) = loader
        assert loader.classes["y"] == ["", *sorted(NAMES)]
    classes = sorted(NAMES)
    for i in range(N):
        mine = [(r, classes.index(n) + 1) for r, n in want[i]] if i != EMPTY else []
        if kind == "boxes":
            found = batch["y"].rows()[i]
            boxes = np.reshape([[*r.min(0), *r.max(0)] for r, _ in mine], (-1, 4))
            assert np.allclose(found, boxes, atol=1e-4)
            assert batch["y_values"].rows()[i].tolist() == [n for _, n in mine]
        else:
            rings = [({"type": "Polygon", "coordinates": [[*r, r[0]]]}, n) for r, n in mine]
            drawn = (
                features.rasterize(rings, (HEIGHT, WIDTH)) if mine else np.zeros((HEIGHT, WIDTH))
            )
            assert np.array_equal(batch["y"][i], drawn)


def test_several_annotators_of_label_studio_are_logged(tmp_path, caplog):
    images(tmp_path)
    tasks = [task(i, f"im{i}.png")[0] for i in range(N)]
    tasks[1]["annotations"] *= 2
    (tmp_path / "tasks.json").write_text(json.dumps(tasks))
    vector = chaski.Vector(tmp_path / "tasks.json", kind="boxes")
    with load(tmp_path, {"y": vector}, batch_size=N, shuffle=False) as loader:
        (batch,) = loader
    assert [len(rows) for rows in batch["y"].rows()] == [4, 8, 4, 4, 4, 4]
    assert "im1.png" in logged(caplog, "several annotators", "im1.png")


@pytest.mark.parametrize(
    ("change", "says"),
    [({"type": "brushlabels", "value": {"format": "rle", "rle": [1]}}, "as PNG"),
     ({"image_rotation": 90}, "turned image"), ({"original_width": None}, "original_width")],
)  # fmt: skip
def test_results_of_label_studio_that_are_refused(tmp_path, change, says):
    images(tmp_path)
    tasks = [task(i, f"im{i}.png")[0] for i in range(N)]
    tasks[1]["annotations"][0]["result"][0] |= change
    (tmp_path / "tasks.json").write_text(json.dumps(tasks))
    with pytest.raises(chaski.Error, match=says):
        load(tmp_path, {"y": chaski.Vector(tmp_path / "tasks.json", kind="boxes")})


@pytest.mark.parametrize("form", ["labelme", "via", "via of all"])
@pytest.mark.parametrize("kind", ["boxes", "polygons", "mask"])
def test_lines_and_points_are_left_out(tmp_path, caplog, form, kind):
    for k in range(2):
        np.save(tmp_path / f"{k}.npy", np.zeros((1, 16, 16), np.uint8))
    if form == "labelme":
        box = {"label": "a", "shape_type": "rectangle", "points": [[2, 3], [6, 9]]}
        line = {"label": "a", "shape_type": "linestrip", "points": [[1, 1], [5, 5], [6, 1]]}
        files = [{"imagePath": f"{k}.npy", "shapes": [line, box, line]} for k in range(2)]
    else:
        box = {"name": "rect", "x": 2, "y": 3, "width": 4, "height": 6}
        shapes = [{"name": "point", "cx": 1, "cy": 1}, box, {"name": "polyline"}]
        regions = [{"shape_attributes": s, "region_attributes": {"class": "a"}} for s in shapes]
        files = [{f"{k}": {"filename": f"{k}.npy", "regions": regions}} for k in range(2)]
    if form == "via of all":
        files = [files[0] | files[1]]
    for k, text in enumerate(files):
        (tmp_path / f"{k}.json").write_text(json.dumps(text))
    name = "0.json" if form == "via of all" else "{id}.json"
    fields = {"image": "{id}.npy", "y": chaski.Vector(name, kind=kind)}
    if name == "0.json":
        fields |= {"image": chaski.Field(), "y": chaski.Vector(tmp_path / name, kind=kind)}
    with chaski.load(f"{tmp_path}/*.npy", fields=fields, batch_size=2) as loader:
        (batch,) = loader
    want = np.zeros((16, 16), bool)
    want[3:9, 2:6] = True
    for k in range(2):
        if kind == "mask":
            assert np.array_equal(batch["y"][k] > 0, want)
        else:
            shape = np.asarray(batch["y"].rows()[k]).reshape(-1, 2)
            assert shape.min(0).tolist() == [2, 3] and shape.max(0).tolist() == [6, 9]
    text = logged(caplog, "no outlines", "are left out")
    assert any("no outlines" in line and "are left out" in line for line in text.splitlines())


def test_classes_of_a_mixture(tmp_path):
    """Classes that are found are those of all sources, so that a name has one number."""
    vectors = {}
    for name, kinds in [("a", ["tank", "ship"]), ("b", ["boat", "tank"])]:
        images(tmp_path / name)
        lines = ["image,xmin,ymin,xmax,ymax,label"]
        lines += [f"im{i}.png,1,1,9,9,{kinds[i % 2]}" for i in range(N)]
        (tmp_path / f"{name}.csv").write_text("\n".join(lines))
        vectors[name] = chaski.Vector(tmp_path / f"{name}.csv", kind="boxes")
    mixture = chaski.Mixture({
        n: chaski.Source(str(tmp_path / n / "images"), fields={"boxes": v})
        for n, v in vectors.items()
    })  # fmt: skip
    fields = {"image": chaski.Field(dtype="uint8"), "boxes": vectors["a"]}
    with chaski.load(mixture, batch_size=2, fields=fields, seed=3, shuffle=False) as loader:
        assert loader.classes["boxes"] == ["", "boat", "ship", "tank"]
        seen = {v for b in loader for row in b["boxes_values"].rows() for v in row.tolist()}
    assert seen == {1, 2, 3}


def test_objects_without_a_class(tmp_path):
    """Larch Casebearer has a member "damage" that some trees lack."""
    images(tmp_path)
    (tmp_path / "labels").mkdir()
    box = "<bndbox><xmin>1</xmin><ymin>2</ymin><xmax>9</xmax><ymax>8</ymax></bndbox>"
    for i in range(N):
        tree = f"<object><damage>LD</damage>{box}</object>" if i != 1 else ""
        text = f"<annotation>{tree}<object>{box}</object></annotation>"
        (tmp_path / f"labels/im{i}.xml").write_text(text)
    pattern = "../labels/{id}.xml"
    trees = chaski.Vector(pattern, "damage", kind="boxes")
    classes = ["other", "H", "LD", "HD"]
    named = chaski.Vector(pattern, "damage", kind="boxes", classes=classes, unnamed="other")
    found = chaski.Vector(pattern, "damage", kind="boxes", unnamed="none")
    vectors = {"trees": trees, "named": named, "found": found}
    with load(tmp_path, vectors, batch_size=N, shuffle=False) as loader:
        assert loader.classes["trees"] == ["", "LD"]
        assert loader.classes["found"] == ["", "LD", "none"]
        (batch,) = loader
    one = [[1]] * N
    one[1] = []
    assert [r.tolist() for r in batch["trees_values"].rows()] == one
    assert [r.tolist() for r in batch["named_values"].rows()] == [[3, 1]] + [[1]] + [[3, 1]] * 4
    assert [r.tolist() for r in batch["found_values"].rows()] == [[1, 2]] + [[2]] + [[1, 2]] * 4


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"columns": ["difficult"]}, "columns is"),
        ({"columns": ["difficult", "difficult"], "kind": "boxes"}, "different names"),
        ({"columns": ["none"], "kind": "boxes"}, "none"),
        ({"column": "none", "kind": "boxes"}, "none"),
        ({"classes": ["a"], "unnamed": "b"}, "must be one of classes"),
        ({"crs": "EPSG:32630", "kind": "boxes"}, "in pixels of images"),
        ({"classes": ["a"], "kind": "instances"}, "classes is given and kind is .instances"),
        ({"unnamed": "a", "kind": "instances"}, "unnamed is given and kind is .instances"),
        ({"path": 5}, "field 'boxes': vector: path is 5: it must be a str"),
        ({"columns": ["name"], "kind": "boxes"}, "has strings"),
        ({"path": "labels/im0.xml"}, "labels of one image"),
    ],
)
def test_arguments_that_are_wrong(tmp_path, arguments, says):
    images(tmp_path)
    (tmp_path / "labels").mkdir()
    for i in range(N):
        (tmp_path / f"labels/im{i}.xml").write_text(voc(some(0), 0))
    where = {"pattern": "../labels/{id}.xml"}
    if isinstance(arguments.get("path"), str):
        where = {"path": str(tmp_path / arguments["path"])}
    elif "path" in arguments:
        where = {}
    vector = chaski.Vector(**{**arguments, **where})
    with (  # noqa: PT012
        pytest.raises(chaski.Error, match=says),
        load(tmp_path, {"boxes": vector}) as loader,
    ):
        next(iter(loader))


def test_a_damaged_file_among_others(tmp_path):
    """Classes are found in the files that can be read, and a damaged one is a bad sample."""
    images(tmp_path)
    (tmp_path / "labels").mkdir()
    for i in range(N):
        (tmp_path / f"labels/im{i}.xml").write_text(voc(some(0), 0) if i else "<annotation>")
    vector = chaski.Vector("../labels/{id}.xml", kind="boxes")
    options = {"batch_size": N, "shuffle": False, "on_bad": "skip"}
    with load(tmp_path, {"boxes": vector}, **options) as loader:
        assert loader.classes["boxes"] == ["", *sorted(NAMES)]
        (batch,) = loader
    assert batch["valid"].tolist() == [False, True, True, True, True, True]


def test_arrays_as_pandas_writes_them(tmp_path) -> None:
    """Arrays in Fortran order have the same boxes; NaN and infinity are errors, as in CSV."""
    images(tmp_path)
    boxes = [np.random.default_rng(n).integers(0, 30, (n, 5)).cumsum(1) for n in range(N)]
    fields = {"image": "images/im{id}.png", "box": chaski.Vector("{id}.npy", kind="boxes")}
    for i, x in enumerate(boxes):
        np.save(tmp_path / f"{i}.npy", np.asfortranarray(x[:, :4].astype("float32")))
    with chaski.load(tmp_path, batch_size=N, shuffle=False, fields=fields) as loader:
        got = np.asarray(next(iter(loader))["box"][1])
    want = [b[:4] for x in boxes for b in x if b[0] < min(b[2], WIDTH) and b[1] < min(b[3], HEIGHT)]
    np.testing.assert_array_equal(got, np.minimum(want, [WIDTH, HEIGHT] * 2))
    for bad in (np.nan, np.inf):
        np.save(tmp_path / "3.npy", np.array([[1, 2, 3, 4], [1, 2, bad, 4]]))
        with pytest.raises(chaski.errors.CorruptError, match="is no coordinate"):
            with chaski.load(tmp_path, batch_size=N, shuffle=False, fields=fields) as loader:
                next(iter(loader))


@pytest.mark.parametrize(
    ("text", "says"),
    [("<kml><Document/></kml>", "KML is not read: in Python, give"),
     ("<gml:FeatureCollection></gml:FeatureCollection>", "GML is not read: in Python, give"),
     ("<svg><rect/></svg>", "<svg> has no <object>"),
     ("<annotation><size/></annotation>", None)],
)  # fmt: skip
def test_xml_of_other_programs(tmp_path, text, says):
    """XML that is no annotation is an error; an annotation without an object has none."""
    images(tmp_path)
    for i in range(N):
        (tmp_path / f"images/im{i}.xml").write_text(f'<?xml version="1.0"?>\n{text}')
    with load(tmp_path, {"y": chaski.Vector(pattern="{id}.xml", kind="boxes")}) as loader:
        if says is None:
            assert sum(len(rows) for batch in loader for rows in batch["y"].rows()) == 0
            return
        with pytest.raises(chaski.UnsupportedError, match=says):
            next(iter(loader))
