"""Where a box lies is said: text, CSV, XML, JSON and Parquet as data sets have them, in one call.

The boxes of each are made here, and written as the data set's own readers take them.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import rasters
from conftest import nonempty
from patience import logged

import chaski
from chaski import Field, Vector

pytestmark = pytest.mark.usefixtures("one_engine")

HEIGHT, WIDTH = 48, 64
CLASSES = ["plane", "ship"]
# The objects of each image: class, and the box x0 y0 x1 y1. The last image has none.
OBJECTS: list[list[tuple[int, list[float]]]] = [
    [(1, [4, 6, 20, 16]), (0, [30, 8, 50, 40])],
    [(0, [10, 20, 26, 28])],
    [],
]
Objects = list[tuple[int, list[float]]]
Writer = Callable[[Path], Any]


def name(i: int) -> str:
    return f"{i:04}"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "images").mkdir()
    (tmp_path / "labels").mkdir()
    for i in range(len(OBJECTS)):
        pixels = np.full((3, HEIGHT, WIDTH), i, np.uint8)
        rasters.write(tmp_path / f"images/{name(i)}.png", pixels)
    return tmp_path


def each(root: Path, ending: str, text: Callable[[Objects], str]) -> str:
    """Writes a file for each image; returns their pattern."""
    for i, objects in enumerate(OBJECTS):
        (root / f"labels/{name(i)}.{ending}").write_text(text(objects))
    return "labels/{id}." + ending


def lines(of: Callable[[int, list[float]], str]) -> Callable[[Objects], str]:
    return lambda objects: "".join(of(c, b) + "\n" for c, b in objects)


def corners(b: list[float]) -> list[float]:
    x0, y0, x1, y1 = b
    return [x0, y0, x1, y0, x1, y1, x0, y1]


def sized(b: list[float]) -> list[float]:
    return [b[0], b[1], b[2] - b[0], b[3] - b[1]]


def middle(b: list[float]) -> list[float]:
    return [(b[0] + b[2]) / 2, (b[1] + b[3]) / 2, b[2] - b[0], b[3] - b[1]]


def texts(v: list[float], by: str = " ") -> str:
    return by.join(f"{x:g}" for x in v)


def got(root: Path, vector: Vector, image: Any = None, source: str = ".") -> tuple[Any, Any]:
    """The boxes of all images, sorted, and their classes by name or number."""
    image = image or Field(pattern="images/{id}.png")
    fields = {"image": image, "y": vector}
    out: list[Any] = [None] * len(OBJECTS)
    with chaski.load(root / source, fields=fields, batch_size=2, shuffle=False) as loader:
        names = (loader.classes or {}).get("y")
        for batch in loader:
            for k in np.flatnonzero(batch["valid"]):
                values = batch["y_values"].rows()[k].tolist()
                shown = [names[v] if names else v for v in values]
                boxes = batch["y"].rows()[k].astype(float).round(3).tolist()
                out[int(batch["image"][k].max())] = list(zip(shown, boxes, strict=True))
    return out, names


def named(classes: list[Any]) -> list[Any]:
    return [[(classes[c], b) for c, b in objects] for objects in OBJECTS]


def visdrone(root: Path) -> Vector:
    def text(objects: Objects) -> str:
        ignored = "1,1,30,30,0,0,0,0,\n"  # a region that is not judged
        rows = lines(lambda c, b: texts(sized(b), ",") + f",1,{c},0,2")
        return ignored + rows(objects)

    return Vector(
        each(root, "txt", text), box={"x y w h": [0, 1, 2, 3]}, column=5, where=[(4, "==", 1)],
        classes=CLASSES, kind="boxes",
    )  # fmt: skip


def nwpu(root: Path) -> Vector:
    of = lines(lambda c, b: f"( {b[0]:g},{b[1]:g}),({b[2]:g}, {b[3]:g}),{c}")
    box = {"x0 y0 x1 y1": [0, 1, 2, 3]}
    return Vector(each(root, "txt", of), box=box, column=4, classes=CLASSES, kind="boxes")


def ucas(root: Path) -> Vector:
    of = lines(lambda c, b: texts([*corners(b), 0, *sized(b)], "\t") + f"\t{CLASSES[c]}")
    box = {"x1 y1 x2 y2 x3 y3 x4 y4": list(range(8))}
    return Vector(each(root, "txt", of), box=box, column=13, kind="boxes")


def rsod(root: Path) -> Vector:
    of = lines(lambda c, b: f"a.jpg\t{CLASSES[c]}\t" + texts(b, "\t"))
    box = {"x0 y0 x1 y1": [2, 3, 4, 5]}
    return Vector(each(root, "txt", of), box=box, column=1, kind="boxes")


def shares(root: Path) -> Vector:
    def of(c: int, b: list[float]) -> str:
        v = np.array(middle(b)) / [WIDTH, HEIGHT, WIDTH, HEIGHT]
        return " ".join(f"{x:.9f}" for x in v) + f" {c}"

    pattern = each(root, "txt", lambda o: "# cx cy w h class\n" + lines(of)(o))
    box = {"cx cy w h": [0, 1, 2, 3]}
    return Vector(pattern, box=box, column=4, crs="shares", classes=CLASSES, kind="boxes")


def header(root: Path) -> Vector:
    def text(objects: Objects) -> str:
        rows = lines(lambda c, b: f"{CLASSES[c]};" + texts(middle(b), ";"))
        return "kind;xc;yc;breadth;height\n" + rows(objects)

    box = {"cx": "xc", "cy": "yc", "w": "breadth", "h": "height"}
    return Vector(each(root, "csv", text), box=box, column="kind", kind="boxes")


def vedai(root: Path) -> Vector:
    rows = [
        f"{i} {texts(middle(b)[:2])} 0 {texts(corners(b)[::2])} {texts(corners(b)[1::2])} {c} 1 0"
        for i, objects in enumerate(OBJECTS)
        for c, b in objects
    ]
    (root / "annotations.txt").write_text("\n".join(rows))
    box = {"x1 x2 x3 x4 y1 y2 y3 y4": list(range(4, 12))}
    return Vector(
        root / "annotations.txt", box=box, column=12, image="{0:04}", classes=CLASSES,
        missing="empty", kind="boxes",
    )  # fmt: skip


def open_images(root: Path) -> Vector:
    rows = ["ImageID,Source,LabelName,Confidence,XMin,XMax,YMin,YMax,IsOccluded"]
    for i, objects in enumerate(OBJECTS):
        for c, b in objects:
            v = np.array(b)[[0, 2, 1, 3]] / [WIDTH, WIDTH, HEIGHT, HEIGHT]
            sides = ",".join(f"{x:.9f}" for x in v)
            rows.append(f"{name(i)},x,{CLASSES[c]},1,{sides},0")
    (root / "boxes.csv").write_text("\n".join(rows))
    return Vector(
        root / "boxes.csv", box={"x0 x1 y0 y1": ["XMin", "XMax", "YMin", "YMax"]},
        column="LabelName", image="ImageID", crs="shares", missing="empty", kind="boxes",
    )  # fmt: skip


def wheat(root: Path) -> Vector:
    rows = ["image_name,BoxesString,domain"]
    rows += [f"{name(i)}.png,{';'.join(texts(b) for _, b in o)},d" for i, o in enumerate(OBJECTS)]
    (root / "wheat.csv").write_text("\n".join(rows))
    box = {"x0 y0 x1 y1": "BoxesString"}
    return Vector(root / "wheat.csv", box=box, image="image_name", kind="boxes")


def wheat_2020(root: Path) -> Vector:
    rows = ["image_id,width,height,bbox,source"]
    for i, objects in enumerate(OBJECTS):
        rows += [f'{name(i)},{WIDTH},{HEIGHT},"{sized(b)}",x' for _, b in objects]
    (root / "wheat.csv").write_text("\n".join(rows))
    return Vector(
        root / "wheat.csv", box={"x y w h": "bbox"}, image="{image_id}.png", missing="empty",
        kind="boxes",
    )  # fmt: skip


def fair1m(root: Path) -> Vector:
    def text(objects: Objects) -> str:
        out = "<annotation><source><filename>a.tif</filename></source><objects>"
        for c, b in objects:
            v = [*corners(b), *b[:2]]
            points = "".join(
                f"<point>{x},{y}</point>" for x, y in zip(v[::2], v[1::2], strict=True)
            )
            out += f"<object><possibleresult><name>{CLASSES[c]}</name></possibleresult>"
            out += f"<points>{points}</points></object>"
        return out + "</objects></annotation>"

    return Vector(
        each(root, "xml", text), box={"outline": "object/points/point"},
        column="object/possibleresult/name", kind="boxes",
    )  # fmt: skip


def vehicles(root: Path) -> Vector:
    def text(objects: Objects) -> str:
        out = "<annotation><filename>a.jpg</filename>"
        for c, b in objects:
            v = "".join(f"<{'xy'[k % 2]}{k // 2 + 1}>{x}</{'xy'[k % 2]}{k // 2 + 1}>"
                        for k, x in enumerate(corners(b)))  # fmt: skip
            out += f"<object><name>{CLASSES[c]}</name><polygon>{v}</polygon></object>"
        return out + "</annotation>"

    return Vector(each(root, "xml", text), kind="boxes")


def cvat(root: Path) -> Vector:
    out = "<?xml version='1.0'?><annotations>"
    for i, objects in enumerate(OBJECTS):
        out += f'<image id="{i}" name="train/{name(i)}.png">'
        for c, (x0, y0, x1, y1) in objects:
            out += f'<box label="{CLASSES[c]}" xtl="{x0}" ytl="{y0}" xbr="{x1}" ybr="{y1}"></box>'
        out += "</image>"
    (root / "cvat.xml").write_text(out + "</annotations>")
    sides = [f"image/box/@{side}" for side in ("xtl", "ytl", "xbr", "ybr")]
    return Vector(
        root / "cvat.xml", box={"x0 y0 x1 y1": sides}, column="image/box/@label",
        image="image/@name", missing="empty", kind="boxes",
    )  # fmt: skip


def soda(root: Path) -> Vector:
    def text(objects: Objects) -> str:
        listed = [{"poly": corners(b), "category_id": c, "id": 9} for c, b in objects]
        return json.dumps({"images": {"id": 0}, "annotations": listed, "categories": []})

    return Vector(
        each(root, "json", text), box={"outline": "annotations.poly"},
        column="annotations.category_id", classes=CLASSES, kind="boxes",
    )  # fmt: skip


def xview(root: Path) -> Vector:
    listed = [
        {"type": "Feature", "geometry": {"type": "Point", "coordinates": [8, 50]},
         "properties": {"bounds_imcoords": texts(b, ","), "type_id": c,
                        "image_id": f"{name(i)}.tif"}}
        for i, objects in enumerate(OBJECTS) for c, b in objects
    ]  # fmt: skip
    text = json.dumps({"type": "FeatureCollection", "features": listed})
    (root / "xview.geojson").write_text(text)
    return Vector(
        root / "xview.geojson", box={"x0 y0 x1 y1": "features.properties.bounds_imcoords"},
        column="features.properties.type_id", image="features.properties.image_id",
        classes=CLASSES, missing="empty", kind="boxes",
    )  # fmt: skip


def image_folder(root: Path) -> Vector:
    rows = [
        {"file_name": f"{name(i)}.png",
         "objects": {"bbox": [sized(b) for _, b in o], "categories": [CLASSES[c] for c, _ in o]}}
        for i, o in enumerate(OBJECTS)
    ]  # fmt: skip
    (root / "metadata.jsonl").write_text("\n".join(map(json.dumps, rows)))
    return Vector(
        root / "metadata.jsonl", box={"x y w h": "objects.bbox"}, column="objects.categories",
        image="file_name", kind="boxes",
    )  # fmt: skip


def nested(root: Path) -> Vector:
    images = [
        {"info": {"name": f"{name(i)}.png"},
         "objects": [{"position": {"x": b[0], "y": b[1]}, "size": sized(b)[2:],
                      "of": {"kind": CLASSES[c]}}
                     for c, b in o]}
        for i, o in enumerate(OBJECTS)
    ]  # fmt: skip
    (root / "all.json").write_text(json.dumps({"version": 1, "images": images}))
    objects = "images.objects."
    return Vector(
        root / "all.json",
        box={"x": objects + "position.x", "y": objects + "position.y", "w h": objects + "size"},
        column=objects + "of.kind", image="images.info.name", kind="boxes",
    )  # fmt: skip


def by_image(root: Path) -> Vector:
    of = {f"{name(i)}.png": [[*b, CLASSES[c]] for c, b in o] for i, o in enumerate(OBJECTS)}
    (root / "by.json").write_text(json.dumps(of))
    sides = {"x0 y0 x1 y1": [f"*.{k}" for k in range(4)]}
    return Vector(
        root / "by.json", box=sides, column="*.4", image="*", missing="empty", kind="boxes"
    )


def table_of_lists(root: Path) -> Vector:
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    rows = [
        {"file": f"x/{name(i)}.png", "annotations": [{"box": b, "label": CLASSES[c]} for c, b in o]}
        for i, o in enumerate(OBJECTS)
    ]
    pq.write_table(pa.Table.from_pylist(rows), root / "boxes.parquet")
    return Vector(
        root / "boxes.parquet", box={"x0 y0 x1 y1": "annotations.box"},
        column="annotations.label", image="file", kind="boxes",
    )  # fmt: skip


def munich(root: Path) -> Vector:
    """Lines before the objects, and a class of several words behind the last number."""
    of = lines(lambda c, b: texts(middle(b)) + f" 0 a  {CLASSES[c]}, moving")
    head = "@bbox\n@of cars\n\n"
    box = {"cx cy w h": [0, 1, 2, 3]}
    path = each(root, "samp", lambda objects: "# id\n" + head + of(objects))
    classes = {"classes": [f"a {c}, moving" for c in CLASSES]}
    return Vector(path, box=box, column="5+", kind="boxes", **classes)  # type: ignore[arg-type]


def airbus(root: Path) -> Vector:
    """Outlines as Python prints them."""
    rows = ["id,image_id,geometry,class"]
    for i, objects in enumerate(OBJECTS):
        for c, b in objects:
            v = [int(x) for x in [*corners(b), *b[:2]]]
            points = list(zip(v[::2], v[1::2], strict=True))
            rows.append(f'{i},{name(i)}.png,"{points}",{CLASSES[c]}')
    (root / "airbus.csv").write_text("\n".join(rows))
    return Vector(
        root / "airbus.csv", "class", box={"outline": "geometry"}, image="image_id",
        missing="empty", kind="boxes",
    )  # fmt: skip


def labelbox(root: Path) -> Vector:
    """Points that are objects, classes that are names of members, and texts in place of objects."""
    rows = []
    for i, objects in enumerate(OBJECTS):
        of: dict[str, Any] = {}
        for c, b in objects:
            v = corners(b)
            points = [{"x": x, "y": y} for x, y in zip(v[::2], v[1::2], strict=True)]
            of.setdefault(CLASSES[c], []).append({"geometry": points})
        rows.append({"label": of or "Skip", "file_name": f"{name(i)}.png"})
    (root / "labelbox.json").write_text(json.dumps(rows))
    return Vector(
        root / "labelbox.json", "label.*", box={"outline": "label.*.geometry"},
        image="file_name", kind="boxes",
    )  # fmt: skip


FORMS = [
    munich, airbus, labelbox, visdrone, nwpu, ucas, rsod, shares, header, vedai, open_images,
    wheat, wheat_2020, fair1m, vehicles, cvat, soda, xview, image_folder, nested, by_image,
    table_of_lists,
]  # fmt: skip


@pytest.mark.parametrize("form", FORMS, ids=lambda f: f.__name__)
def test_boxes_as_data_sets_have_them(form: Writer, root: Path) -> None:
    vector = form(root)
    out, names = got(root, vector)
    if form is munich:
        out = [[(n[2:].removesuffix(", moving"), b) for n, b in o] for o in out]
    want = named(CLASSES) if names else [[(1, b) for _, b in o] for o in OBJECTS]
    assert out == want


def test_frames_of_sequences(tmp_path: Path) -> None:
    """A file for each sequence, whose rows name the frames by number: MOT, UAVDT."""
    boxes = {}
    for s, sequence in enumerate(("M01", "M02")):
        rows = []
        (tmp_path / sequence).mkdir()
        for t in (1, 2, 3):
            pixels = np.full((3, 32, 32), 8 * s + t, np.uint8)
            rasters.write(tmp_path / f"{sequence}/img{t:06}.png", pixels)
            of = [] if t == 2 else [[3 + s, 4 + t, 10, 12]]
            boxes[8 * s + t] = [[x, y, x + w, y + h] for x, y, w, h in of]
            rows += [f"{t},1,{texts(b, ',')},1,1,{s + 1}" for b in of]
        (tmp_path / f"GT_{sequence}.txt").write_text("\n".join(rows))
    vector = Vector(
        "GT_{seq}.txt", box={"x y w h": [2, 3, 4, 5]}, column=8, image="img{0:06}",
        missing="empty", kind="boxes",
    )  # fmt: skip
    fields = {"image": Field(pattern="{seq}/{id}.png"), "y": vector}
    with chaski.load(tmp_path, fields=fields, batch_size=2, shuffle=False) as loader:
        seen = {}
        for batch in loader:
            for k in np.flatnonzero(batch["valid"]):
                seen[int(batch["image"][k].max())] = batch["y"].rows()[k].tolist()
    assert seen == boxes


def stored(root: Path, i: int) -> dict[str, Any]:
    """An image as Hugging Face's tables have it."""
    return {"bytes": (root / f"images/{name(i)}.png").read_bytes(), "path": None}


@pytest.mark.parametrize("structs", [False, True])
def test_cells_beside_the_images(root: Path, structs: bool) -> None:
    """Boxes and images in one table, of several shards, whose rows begin anew in each."""
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    (root / "data").mkdir()
    for i, objects in enumerate(OBJECTS):
        of: Any = [{"bbox": sized(b), "category": c} for c, b in objects]
        if not structs:
            of = {key: [o[key] for o in of] for key in ("bbox", "category")}
        objects_of = pa.struct({"bbox": pa.list_(pa.float64()), "category": pa.int64()})
        kind = pa.list_(objects_of) if structs else pa.struct(
            {"bbox": pa.list_(pa.list_(pa.float64())), "category": pa.list_(pa.int64())}
        )  # fmt: skip
        table = pa.table({
            "image": pa.array([stored(root, i)]), "objects": pa.array([of], kind)
        })  # fmt: skip
        pq.write_table(table, root / f"data/train-{i}.parquet")
    vector = Vector(box={"x y w h": "objects.bbox"}, column="objects.category", kind="boxes")
    out, _ = got(root, vector, Field(column="image"), "data/train-*.parquet")
    assert out == named([0, 1])
    vector = Vector(
        box={"x y w h": "objects.bbox"}, column="objects.category", classes=CLASSES,
        where=[("objects.category", "==", 1)], kind="boxes",
    )  # fmt: skip
    out, _ = got(root, vector, Field(column="image"), "data/train-*.parquet")
    assert out == [[o for o in of if o[0] == "ship"] for of in named(CLASSES)]


def test_json_in_texts_of_cells(root: Path) -> None:
    """A column of texts that json.dumps wrote, as OAM-TCD has its annotations; a text may be []."""
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")

    def write(texts_of: list[str]) -> None:
        images = [stored(root, i) for i in range(len(OBJECTS))]
        pq.write_table(pa.table({"image": images, "coco": texts_of}), root / "t.parquet")

    of = [[{"bbox": sized(b), "category": c} for c, b in objects] for objects in OBJECTS]
    write([json.dumps(o) for o in of])
    vector = Vector(box={"x y w h": "coco.bbox"}, column="coco.category", kind="boxes")
    assert got(root, vector, Field(column="image"), "t.parquet")[0] == named([0, 1])
    for text in ('[{"bbox": [1', '[{"bbox": [1, 2, 3, 4]}] []'):
        write([json.dumps(of[0]), text, "[]"])
        with pytest.raises(chaski.CorruptError, match="JSON"):
            got(root, vector, Field(column="image"), "t.parquet")


@pytest.mark.parametrize(
    "called", ["ids", "{folder}/train-{i}.parquet::0/image", "train-{i}.parquet::0/image"]
)
def test_names_of_images_in_cells(root: Path, called: str) -> None:
    """Images in cells are named as loader.ids shows them, or by their file, row and column."""
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    for i in range(len(OBJECTS)):
        table = pa.table({"image": pa.array([stored(root, i)])})
        pq.write_table(table, root / f"train-{i}.parquet")
    fields = {"image": Field(column="image")}
    with chaski.load(root / "train-*.parquet", fields=fields, batch_size=2) as loader:
        ids = list(loader.ids)
    rows = ["file,xmin,ymin,xmax,ymax,label"]
    for i, objects in enumerate(OBJECTS):
        of = ids[i] if called == "ids" else called.format(i=i, folder=root)
        rows += [f"{of},{texts(b, ',')},{CLASSES[c]}" for c, b in objects] or [f"{of},,,,,"]
    (root / "boxes.csv").write_text("\n".join(rows))
    vector = Vector(root / "boxes.csv", kind="boxes")
    out, _ = got(root, vector, Field(column="image"), "train-*.parquet")
    assert out == named(CLASSES)


def test_cells_of_the_datasets_csv(root: Path) -> None:
    rows = ["file,boxes"]
    rows += [
        f"images/{name(i)}.png,{' '.join(texts(b) for _, b in o)}" for i, o in enumerate(OBJECTS)
    ]
    (root / "set.csv").write_text("\n".join(rows))
    vector = Vector(box={"x0 y0 x1 y1": "boxes"}, kind="boxes")
    out, _ = got(root, vector, Field(column="file", kind="raster"), "set.csv")
    assert out == [[(1, b) for _, b in o] for o in OBJECTS]


def test_columns_of_truths(root: Path) -> None:
    """The words True and False are 1 and 0 among columns of numbers, and names as classes."""
    words = {0: "True", 1: "False"}
    rows = ["file,x,y,w,h,moves"]
    for i, objects in enumerate(OBJECTS):
        rows += [f"{name(i)}.png,{texts(sized(b), ',')},{words[c]}" for c, b in objects]
    (root / "truths.csv").write_text("\n".join(rows))
    vector = Vector(root / "truths.csv", "moves", columns=["moves"], missing="empty", kind="boxes")
    out, _ = got(root, vector)
    assert out == named([words[0], words[1]])
    fields = {"image": Field(pattern="images/{id}.png"), "y": vector}
    with chaski.load(root, fields=fields, batch_size=len(OBJECTS), shuffle=False) as loader:
        moves = [v.tolist() for v in next(iter(loader))["y_moves"].rows()]
    assert moves == [[c == 0 for c, _ in objects] for objects in OBJECTS]


@pytest.mark.parametrize("names", [{"column": "objects.kind"}, {"columns": ["objects.k"]}])
def test_a_column_that_no_object_has(root: Path, names: Any) -> None:
    image_folder(root)
    vector = Vector(
        root / "metadata.jsonl", box={"x y w h": "objects.bbox"}, image="file_name", kind="boxes",
        **names,
    )  # fmt: skip
    with pytest.raises(chaski.NotFoundError, match=r"objects\.k.*no feature has it.*categories"):
        got(root, vector)


def test_values_in_place_of_objects_are_counted(root: Path, caplog: Any) -> None:
    labelbox(root)
    rows = json.loads((root / "labelbox.json").read_text())
    for row in rows:
        row["label"] = "Skip"
    vector = Vector(root / "labelbox.json", box={"outline": "label.*.geometry"}, image="file_name")
    (root / "labelbox.json").write_text(json.dumps(rows))
    with pytest.raises(chaski.NotFoundError, match="no object has label"):
        got(root, vector)


@pytest.mark.parametrize("unit", ["angle", "degrees"])
def test_oriented_boxes(root: Path, unit: str) -> None:
    turned = math.radians(30)
    angle = turned if unit == "angle" else 30

    def text(objects: Objects) -> str:
        out = "<HRSC_Image><HRSC_Objects>"
        for c, b in objects:
            cx, cy, w, h = middle(b)
            out += f"<HRSC_Object><Class_ID>{c}</Class_ID><mbox_cx>{cx}</mbox_cx>"
            out += f"<mbox_cy>{cy}</mbox_cy><mbox_w>{w}</mbox_w><mbox_h>{h}</mbox_h>"
            out += f"<mbox_ang>{angle}</mbox_ang></HRSC_Object>"
        return out + "</HRSC_Objects></HRSC_Image>"

    places = [f"HRSC_Object/mbox_{k}" for k in ("cx", "cy", "w", "h", "ang")]
    vector = Vector(
        each(root, "xml", text), box={f"cx cy w h {unit}": places}, column="HRSC_Object/Class_ID",
        kind="boxes",
    )  # fmt: skip
    out, _ = got(root, vector)
    for found, objects in zip(out, OBJECTS, strict=True):
        for (value, box), (c, b) in zip(found, objects, strict=True):
            cx, cy, w, h = middle(b)
            half = np.array([[-w, -h], [w, -h], [w, h], [-w, h]]) / 2
            turn = np.array(
                [[math.cos(turned), -math.sin(turned)], [math.sin(turned), math.cos(turned)]]
            )
            points = half @ turn.T + [cx, cy]
            assert value == c
            assert np.allclose(box, [*points.min(0), *points.max(0)], atol=1e-3)


def test_points(root: Path) -> None:
    pattern = each(root, "txt", lines(lambda c, b: texts(b[:2], ",")))
    out, _ = got(root, Vector(pattern, box={"x y": [0, 1]}, kind="boxes"))
    assert out == [[(1, [b[0], b[1], b[0], b[1]]) for _, b in o] for o in OBJECTS]


def test_parts_of_a_column(root: Path) -> None:
    """The image and the class in one column, and a mask of runs beside it."""
    want = np.zeros((len(OBJECTS), HEIGHT, WIDTH), np.uint8)
    rows = ["Image_Label,EncodedPixels"]
    for i, objects in enumerate(OBJECTS):
        for c, kind in enumerate(CLASSES):
            mask = np.zeros((HEIGHT, WIDTH), bool)
            for of, (x0, y0, x1, y1) in objects:
                if of == c:
                    mask[y0:y1, x0:x1] = True
            edges = np.flatnonzero(np.diff(np.concatenate([[0], mask.T.ravel(), [0]])))
            runs = " ".join(
                f"{a + 1} {b - a}" for a, b in zip(edges[::2], edges[1::2], strict=True)
            )
            rows.append(f"{name(i)}.png_{kind},{runs}")
            want[i][mask] = c + 1
    (root / "train.csv").write_text("\n".join(rows))
    vector = Vector(root / "train.csv", names={"Image_Label": "{image}_{label}"})
    fields = {"image": Field(pattern="images/{id}.png"), "y": vector}
    with chaski.load(root, fields=fields, batch_size=3, shuffle=False) as loader:
        assert loader.classes["y"][1:] == CLASSES
        for batch in nonempty(loader):
            assert np.array_equal(batch["y"][np.argsort(batch["image"][:, 0, 0, 0])], want)


@pytest.mark.parametrize(
    ("vector", "says"),
    [
        ({"box": {"x y z": [0, 1, 2]}}, "x0 y0 x1 y1"),
        ({"box": {"x y w h": [0, 1, 2]}}, "3 places for 'x y w h'"),
        ({"box": {"x y w h": [0, 1, 2, 9]}}, "column.*9"),
        ({"box": {"x y w h": ["a", "b", "c", "d"]}}, "no column"),
        ({"box": {"x y w h": [0, 1, 2, 3]}, "column": 7}, "column.*7"),
        ({"box": {}}, "box has 0 places"),
        ({"box": {"x y w h": [0, 1, 2, 3]}, "where": [(4, "~", 1)]}, "operator"),
        ({"where": [(4, "==", 1)]}, "where is given"),
    ],
)
def test_what_is_refused(root: Path, vector: dict[str, Any], says: str) -> None:
    pattern = each(root, "txt", lines(lambda c, b: texts([*sized(b), c], ",")))
    with pytest.raises(chaski.Error, match=says):
        got(root, Vector(pattern, kind="boxes", **vector))


def test_a_path_that_nothing_has(root: Path) -> None:
    pattern = each(root, "json", lambda o: json.dumps({"objets": [{"bbox": b} for _, b in o]}))
    with pytest.raises(chaski.Error, match="no object has.*objects.bbox.*there are.*objets"):
        got(root, Vector(pattern, box={"x0 y0 x1 y1": "objects.bbox"}, kind="boxes"))


def test_corners_in_another_order_are_counted(root: Path, caplog: Any) -> None:
    pattern = each(root, "txt", lines(lambda c, b: texts([b[2], b[3], b[0], b[1]])))
    vector = Vector(pattern, box={"x0 y0 x1 y1": [0, 1, 2, 3]}, kind="boxes")
    out, _ = got(root, vector)
    assert out == [[(1, b) for _, b in o] for o in OBJECTS]
    assert "end before they begin" in logged(caplog, "end before they begin")


def test_image_elements_that_places_do_not_join(root: Path) -> None:
    """The number of a frame is of the objects in it only where their places begin with it."""
    frames = "".join(
        f"<frame number='{i}'><objects><object><box left='{b[0]}' top='{b[1]}' w='{b[2] - b[0]}' "
        f"h='{b[3] - b[1]}'/></object></objects></frame>"
        for i, objects in enumerate(OBJECTS) for _, b in objects
    )  # fmt: skip
    (root / "all.xml").write_text(f"<video>{frames}</video>")

    def vector(begin: str) -> Vector:
        sides = [f"{begin}/@{side}" for side in ("left", "top", "w", "h")]
        return Vector(
            root / "all.xml", box={"x y w h": sides}, image="{frame.@number:04}",
            missing="empty", kind="boxes",
        )  # fmt: skip

    out, _ = got(root, vector("frame/objects/object/box"))
    assert out == [[(1, b) for _, b in o] for o in OBJECTS]
    with pytest.raises(chaski.Error, match="several times beside the objects"):
        got(root, vector("object/box"))


def test_classes_of_several_words(root: Path) -> None:
    pattern = each(root, "txt", lambda o: "1 2 9 9 storage tank\n1 2 9 9 ship\n")
    vector = Vector(pattern, box={"x0 y0 x1 y1": [0, 1, 2, 3]}, column=4, kind="boxes")
    with pytest.raises(chaski.Error, match="5 words, and the first line has 6"):
        got(root, vector)


def test_an_image_is_named_by_the_number_of_a_column(tmp_path: Path) -> None:
    for k in (1, 2):
        rasters.write(tmp_path / f"{k}.png", np.full((1, 16, 16), k, np.uint8))
    (tmp_path / "points.csv").write_text("1.png,3,4\n2.png,5,6\n")
    vector = chaski.Vector(tmp_path / "points.csv", box={"x y": [1, 2]}, image=0, kind="boxes")
    fields = {"image": chaski.Field(), "y": vector}
    with chaski.load(tmp_path / "*.png", fields=fields, batch_size=2, shuffle=False) as run:
        (batch,) = list(run)
    assert [rows[:, :2].tolist() for rows in batch["y"].rows()] == [[[3, 4]], [[5, 6]]]
