"""One rule for labels of all formats: what becomes no part of a batch, or may not be what its
writer meant, is an error or one counted line of the log.
"""

from __future__ import annotations

import csv
import io
import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import rasters
from patience import logged

import chaski

pytestmark = pytest.mark.usefixtures("one_engine")

HEIGHT, WIDTH = 40, 60
BOX = [8, 12, 28, 36]


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> Path:
    root = tmp_path_factory.mktemp("rule")
    (root / "images").mkdir()
    for k in range(3):
        rasters.write(root / f"images/im{k}.png", np.zeros((3, HEIGHT, WIDTH), np.uint8))
    return root


def coco(objects, size=(WIDTH, HEIGHT), name="im0.png") -> str:
    listed = [
        {"id": k, "image_id": 1, "category_id": 1 + (kind != "ship"), "iscrowd": 0,
         "bbox": [x0, y0, x1 - x0, y1 - y0]}
        for k, (kind, (x0, y0, x1, y1)) in enumerate(objects)
    ]  # fmt: skip
    kinds = list(dict.fromkeys(["ship", *[kind for kind, _ in objects]]))
    image = {"id": 1, "file_name": name, "width": size[0], "height": size[1]}
    names = [{"id": k + 1, "name": n} for k, n in enumerate(kinds)]
    return json.dumps({"images": [image], "annotations": listed, "categories": names})


def voc(objects, size=(WIDTH, HEIGHT), name="im0.png") -> str:
    text = f"<filename>{name}</filename><size><width>{size[0]}</width>"
    text += f"<height>{size[1]}</height><depth>3</depth></size>"
    for kind, box in objects:
        sides = zip(["xmin", "ymin", "xmax", "ymax"], box, strict=True)
        text += f"<object><name>{kind}</name><bndbox>"
        text += "".join(f"<{k}>{v}</{k}>" for k, v in sides) + "</bndbox></object>"
    return f"<annotation>{text}</annotation>"


def labelme(objects, size=(WIDTH, HEIGHT), name="im0.png") -> str:
    shapes = [
        {"label": kind, "points": [b[:2], b[2:]], "shape_type": "rectangle"} for kind, b in objects
    ]
    return json.dumps({"shapes": shapes, "imagePath": name, "imageHeight": size[1],
                       "imageWidth": size[0]})  # fmt: skip


def xbd(objects, size=(WIDTH, HEIGHT), name="im0.png") -> str:
    listed = []
    for kind, (x0, y0, x1, y1) in objects:
        ring = f"{x0} {y0}, {x1} {y0}, {x1} {y1}, {x0} {y1}, {x0} {y0}"
        listed.append({"properties": {"subtype": kind}, "wkt": f"POLYGON (({ring}))"})
    says = {"width": size[0], "height": size[1], "img_name": name}
    return json.dumps({"features": {"xy": listed}, "metadata": says})


def table(objects, size=(WIDTH, HEIGHT), name="im0.png") -> str:
    out = io.StringIO()
    rows = csv.writer(out)
    rows.writerow(["filename", "width", "height", "class", "xmin", "ymin", "xmax", "ymax"])
    rows.writerows([name, *size, kind, *box] for kind, box in objects)
    return out.getvalue()


def dota(objects, **_) -> str:
    corners = [(kind, [x0, y0, x1, y0, x1, y1, x0, y1]) for kind, (x0, y0, x1, y1) in objects]
    return "".join(" ".join(map(str, [*xy, kind, 0])) + "\n" for kind, xy in corners)


def via(objects, size=None, name="im0.png") -> str:
    regions = []
    for kind, (x0, y0, x1, y1) in objects:
        shape = {"name": "rect", "x": x0, "y": y0, "width": x1 - x0, "height": y1 - y0}
        regions.append({"shape_attributes": shape, "region_attributes": {"label": kind}})
    return json.dumps({name: {"filename": name, "regions": regions, "file_attributes": {}}})


FORMATS = {
    "voc": (voc, "xml"), "coco": (coco, "json"), "labelme": (labelme, "json"), "xbd": (xbd, "json"),
    "csv": (table, "csv"), "dota": (dota, "txt"), "via": (via, "json"),
}  # fmt: skip
SIZED = ["voc", "coco", "labelme", "xbd", "csv"]
ONE_FOR_ALL = ["coco", "csv", "via"]
SHIP = [("ship", BOX)]


def read(data, tmp_path, vector, n=1) -> list[dict[str, Any]]:
    fields = {"image": "images/{id}.png", "y": vector}
    with chaski.load(data, fields=fields, batch_size=1, shuffle=False) as run:
        return list(itertools.islice(run, n))


def of_one(data, tmp_path, form: str, text: str, **options) -> list[dict[str, Any]]:
    """Reads a label of the first image as a file of its own; the other images have none."""
    (tmp_path / f"im0.{FORMATS[form][1]}").write_text(text)
    pattern = f"{tmp_path}/{{id}}.{FORMATS[form][1]}"
    options = {"kind": "boxes", "missing": "empty", **options}
    return read(data, tmp_path, chaski.Vector(pattern=pattern, **options))


@pytest.mark.parametrize("form", FORMATS)
def test_nothing_to_say(data, tmp_path, form, caplog) -> None:
    objects = [*SHIP, ("plane", [1, 1, 9, 9])]
    got = of_one(data, tmp_path, form, FORMATS[form][0](objects), classes=["ship", "plane"])
    assert np.allclose(got[0]["y"].rows()[0], [BOX, [1, 1, 9, 9]])
    assert got[0]["y_values"].rows()[0].tolist() == [1, 2]
    assert not caplog.records


@pytest.mark.parametrize("form", SIZED)
@pytest.mark.parametrize(
    "size, said", [((120, 80), True), ((HEIGHT, WIDTH), True), ((0, 0), False)]
)
def test_another_size(data, tmp_path, form, size, said, caplog) -> None:
    """A size of 0 is one that its program did not know."""
    of_one(data, tmp_path, form, FORMATS[form][0](SHIP, size=size))
    due = f"{size[0]}x{size[1]}, and " if said else ""
    text = logged(caplog, *[due] * said)
    assert ("images of another size" in text) == said and due in text


@pytest.mark.parametrize("form", [*SIZED, "via"])
def test_another_image(data, tmp_path, form, caplog) -> None:
    of_one(data, tmp_path, form, FORMATS[form][0](SHIP, name="im1.png"))
    assert "im1.png for " in logged(caplog, "labels name another image")


@pytest.mark.parametrize("form", FORMATS)
def test_names_of_classes(data, tmp_path, form, caplog) -> None:
    """A class in other letters is an error; others that are left out are counted."""
    text = FORMATS[form][0]([("storage tank", BOX), ("ship", BOX), ("ship", BOX)])
    with pytest.raises(chaski.NotFoundError, match='"Storage-Tank", which no shape has.*"storage'):
        of_one(data, tmp_path, form, text, classes=["Storage-Tank", "ship"])
    got = of_one(data, tmp_path, form, text, classes=["storage tank"])
    assert got[0]["y_values"].rows()[0].tolist() == [1]
    assert "shapes=2" in logged(caplog, "shapes of classes that classes does not name")


@pytest.mark.parametrize("form", ONE_FOR_ALL)
def test_classes_of_no_shape(data, tmp_path, form, caplog) -> None:
    path = tmp_path / f"all.{FORMATS[form][1]}"
    path.write_text(FORMATS[form][0](SHIP))
    options = {"kind": "boxes", "missing": "empty"}
    with pytest.raises(chaski.NotFoundError, match="one of classes: they have ship"):
        read(data, tmp_path, chaski.Vector(path, classes=["boat", "car"], **options))
    read(data, tmp_path, chaski.Vector(path, classes=["ship", "car"], **options))
    assert '"such as"=car' in logged(caplog, "classes has names that no shape has")


@pytest.mark.parametrize("form", FORMATS)
def test_boxes_outside_and_without_area(data, tmp_path, form, caplog) -> None:
    boxes = [[50, 10, 110, 20], [5, 50, 9, 60], BOX]
    of_one(data, tmp_path, form, FORMATS[form][0]([("ship", b) for b in boxes]))
    assert "shapes=2" in logged(caplog, "mostly outside of their image")
    if form not in ("dota", "xbd"):  # which have outlines
        of_one(data, tmp_path, form, FORMATS[form][0]([("ship", [5, 9, 5, 20]), *SHIP]))
        assert "shapes=1" in logged(caplog, "boxes without width or height")


@pytest.mark.parametrize("form", FORMATS)
def test_labels_of_no_objects(data, tmp_path, form, caplog) -> None:
    """Files of all images that have no shapes, known when they are opened or after all images."""
    for k in range(3):
        text = FORMATS[form][0]([], name=f"im{k}.png")
        (tmp_path / f"im{k}.{FORMATS[form][1]}").write_text(text)
    pattern = f"{tmp_path}/{{id}}.{FORMATS[form][1]}"
    for classes in (None, ["ship"]):
        caplog.clear()
        read(data, tmp_path, chaski.Vector(pattern=pattern, kind="boxes", classes=classes), 3)
        assert logged(caplog, "no image has shapes so far").count("no image has shapes") == 1


def test_an_empty_geojson(data, tmp_path, caplog) -> None:
    affine = pytest.importorskip("rasterio").Affine(10, 0, 5e5, 0, -10, 4e6)
    (tmp_path / "images").mkdir()
    rasters.write(tmp_path / "images/a.tif", np.zeros((8, 8), np.uint8), crs="EPSG:32630",
                  transform=affine)  # fmt: skip
    (tmp_path / "none.geojson").write_text('{"type": "FeatureCollection", "features": []}')
    fields = {"image": "images/{id}.tif", "y": chaski.Vector(tmp_path / "none.geojson")}
    with chaski.load(tmp_path, fields=fields, batch_size=1) as run:
        next(iter(run))
    assert "no image has shapes so far" in logged(caplog, "no image has shapes so far")


@pytest.mark.parametrize("form", ONE_FOR_ALL)
def test_images_that_a_file_does_not_name(data, tmp_path, form, caplog) -> None:
    """Of which the others have shapes, and which are taken as without."""
    for name, said in (("IM0.png", "names others"), ("im0.png", "")):
        path = tmp_path / f"all_{name}.{FORMATS[form][1]}"
        path.write_text(FORMATS[form][0](SHIP, name=name))
        got = read(data, tmp_path, chaski.Vector(path, kind="boxes", missing="empty"), 3)
        assert sum(len(b["y"].rows()[0]) for b in got) == (said == "")
        assert said in logged(caplog, *[said] * bool(said))
        assert any(path.name in r.getMessage() for r in caplog.records) == bool(said)


def test_several_images_of_a_file_for_one(data, tmp_path) -> None:
    """Boxes of other images are not boxes of this one."""
    text = table(SHIP) + table(SHIP, name="im1.png").splitlines()[1]
    with pytest.raises(chaski.UnsupportedError, match='2 images, such as "im0.png" and "im1.png"'):
        of_one(data, tmp_path, "csv", text)


def test_ids_that_fit_no_image(data, tmp_path, caplog) -> None:
    content = json.loads(coco([*SHIP, *SHIP]))
    content["annotations"][0]["image_id"] = 1.0
    content["annotations"][1]["image_id"] = 77
    (tmp_path / "c.json").write_text(json.dumps(content))
    vector = chaski.Vector(tmp_path / "c.json", kind="boxes", missing="empty")
    assert [len(b["y"].rows()[0]) for b in read(data, tmp_path, vector, 3)] == [1, 0, 0]
    assert "shapes=1" in logged(caplog, "images that the file does not have")


@pytest.mark.parametrize("form", ["geojson", "csv", "frame", "coco", "parquet"])
def test_class_0_is_no_background(data, tmp_path, form, caplog) -> None:
    boxes = [BOX, [30, 2, 50, 9]]
    rings = [[[x0, y0], [x1, y0], [x1, y1], [x0, y1], [x0, y0]] for x0, y0, x1, y1 in boxes]
    options = {"column": "kind", "image": "image"}
    path: Any = tmp_path / f"a.{form}"
    if form == "csv":
        lines = [f"im0.png,{','.join(map(str, b))},{k}" for k, b in enumerate(boxes)]
        path.write_text("\n".join(["image,xmin,ymin,xmax,ymax,kind", *lines]))
    elif form == "coco":
        file = json.loads(coco([(str(k), b) for k, b in enumerate(boxes)]))
        for k, o in enumerate(file["annotations"]):
            o["category_id"] = float(k)
        path.write_text(json.dumps(file))
        options = {"column": "category_id"}
    elif form == "geojson":
        listed = [
            {"type": "Feature", "properties": {"kind": k, "image": "im0.png"},
             "geometry": {"type": "Polygon", "coordinates": [ring]}}
            for k, ring in enumerate(rings)
        ]  # fmt: skip
        path.write_text(json.dumps({"type": "FeatureCollection", "features": listed}))
    else:
        geopandas = pytest.importorskip("geopandas")
        shapely = pytest.importorskip("shapely")
        frame = geopandas.GeoDataFrame({"kind": [0, 1], "image": ["im0.png"] * 2},
                                       geometry=[shapely.Polygon(r) for r in rings])  # fmt: skip
        if form == "frame":
            path = frame
        else:
            frame.to_parquet(path)
    fields = {"missing": "empty", **options}
    read(data, tmp_path, chaski.Vector(path, **fields))
    assert "shapes=1" in logged(caplog, "shapes of the value 0 are drawn as where no shape is")
    got = read(data, tmp_path, chaski.Vector(path, classes=["0", "1"], **fields))[0]["y"][0]
    assert (got[20, 20], got[5, 40], got[39, 59]) == (1, 2, 0)


def test_objects_without_a_class(data, tmp_path, caplog) -> None:
    of_one(data, tmp_path, "voc", voc([("", BOX), *SHIP]))
    assert "shapes=1" in logged(caplog, "shapes without a value are left out")


YOLO = {
    "an angle": "0 0.5 0.5 0.4 0.1 45",
    "an angle in radians": "0 0.5 0.5 0.4 0.1 -0.7",
    "a cosine and a sine": "0 0.5 0.5 0.4 0.1 0.70711 0.70711",
    "keypoints seen": "0 0.6 0.6 0.2 0.2 0.55 0.6 2 0.65 0.62 2",
    "keypoints hidden": "0 0.8 0.8 0.2 0.2 0.75 0.8 0 0.85 0.82 1",
    "one keypoint": "0 0.6 0.6 0.2 0.2 0.55 0.6 2",
    "keypoints without visibility": "0 0.8 0.8 0.1 0.1 0.77 0.8 0.81 0.82 0.83 0.79",
    "a class that is not whole": "0.5 0.5 0.5 0.4 0.1",
    "corners in pixels": "10 5 30 25 0",
}


@pytest.mark.parametrize("line", YOLO.values(), ids=YOLO)
def test_lines_that_are_no_boxes_of_yolo(data, tmp_path, line, caplog) -> None:
    (tmp_path / "im0.txt").write_text(line + "\n")
    vector = chaski.Vector(pattern=f"{tmp_path}/{{id}}.txt", kind="polygons", missing="empty")
    with pytest.raises(chaski.Error, match="class, x and y of the middle|coordinates"):
        read(data, tmp_path, vector)


def test_an_array_of_classes_that_are_not_whole(data, tmp_path) -> None:
    np.save(tmp_path / "im0.npy", np.array([[1, 2, 9, 9, 0.5]]))
    vector = chaski.Vector(pattern=f"{tmp_path}/{{id}}.npy", kind="boxes", missing="empty")
    with pytest.raises(chaski.CorruptError, match="they are whole"):
        read(data, tmp_path, vector)


@pytest.mark.parametrize(
    "line, due, options",
    [
        ("0 0.5 0.5 0.4 0.1 0.9", "sixth number of objects is taken for a score", {}),
        ("0 0.5 0.5 0.4 0.1 0.9", "", {"columns": ["score"]}),
        ("0 0.1 0.1 0.4 0.1 0.4 0.3", "outlines of three points", {"kind": "polygons"}),
        ("0 0.2 0.2 0.4 0.2 0.4 0.4 0.2 0.4", "", {"kind": "polygons"}),
        ("0 0.9 0.9 0.95 0.91 0.93 0.95 0.91 0.97 0.9 0.95", "", {"kind": "polygons"}),
        ("0 30 20 10 10", "", {"box": {"cx cy w h": [1, 2, 3, 4]}, "column": 0}),
        ("100 4 130 22 1", "mostly outside", {"box": {"cx cy w h": [1, 2, 3, 4]}, "column": 0}),
    ],
)
def test_lines_of_yolo_that_may_be_others(data, tmp_path, line, due, options, caplog) -> None:
    (tmp_path / "im0.txt").write_text(line + "\n")
    options = {"kind": "boxes", "missing": "empty", **options}
    got = read(data, tmp_path, chaski.Vector(pattern=f"{tmp_path}/{{id}}.txt", **options))
    assert len(got[0]["y_values"].rows()[0]) == (due != "mostly outside")
    assert due in logged(caplog, *[due] * bool(due))
    assert bool(caplog.records) == bool(due)


@pytest.mark.parametrize("crs", [None, "pixels"])
@pytest.mark.parametrize("line", ["100 4 130 22 1", "10 5 30 25 0", " ".join(map(str, range(13)))])
def test_numbers_in_an_order_that_is_not_said(data, tmp_path, line, crs) -> None:
    """The error says how to give the order, and nothing that it names makes other boxes."""
    (tmp_path / "im0.txt").write_text(line + "\n")
    vector = chaski.Vector(f"{tmp_path}/{{id}}.txt", kind="boxes", missing="empty", crs=crs)
    with pytest.raises(chaski.Error, match="The order of YOLO's text is class, x and y.*box says"):
        read(data, tmp_path, vector)


def test_one_bad_line_of_a_class_that_is_not_whole(data, tmp_path) -> None:
    """It makes one sample bad."""
    for k, line in enumerate(["0 0.5 0.5 0.2 0.2", "1.5 0.5 0.5 0.2 0.2", "0 0.5 0.5 0.2 0.2"]):
        (tmp_path / f"im{k}.txt").write_text(line + "\n")
    for options in ({}, {"classes": ["ship"]}, {"column": "class"}):
        vector = chaski.Vector(f"{tmp_path}/{{id}}.txt", kind="boxes", **options)
        fields = {"image": chaski.Field(pattern="images/{id}.png"), "y": vector}
        loader = chaski.load(data, fields=fields, batch_size=3, shuffle=False, on_bad="skip")
        with loader:
            assert [b["valid"].tolist() for b in loader] == [[True, False, True]]


@pytest.mark.parametrize(
    "ends, classes",
    [
        (["storage tank", "storage shed 1"], ["", "storage shed", "storage tank"]),
        (["storage tank 0", "ship"], ["", "ship", "storage tank"]),
        (["plane 0.93"], None),
        (["Boeing 737"], None),
    ],
)
def test_classes_of_several_words(data, tmp_path, ends, classes) -> None:
    lines = [f"4 6 14 6 14 18 4 18 {end}" for end in ends]
    (tmp_path / "im0.txt").write_text("\n".join(lines))
    vector = chaski.Vector(pattern=f"{tmp_path}/{{id}}.txt", kind="boxes", missing="empty")
    fields = {"image": "images/{id}.png", "y": vector}
    if classes is None:
        with pytest.raises(chaski.CorruptError, match="may be a part of it, or say whether"):
            read(data, tmp_path, vector)
        return
    with chaski.load(data, fields=fields, batch_size=1) as run:
        next(iter(run))
        assert run.classes["y"] == classes


def test_mask_of_runs_of_another_size(data, tmp_path, caplog) -> None:
    file = json.loads(coco(SHIP))
    file["annotations"][0]["segmentation"] = {"size": [20, 30], "counts": [100, 500]}
    of_one(data, tmp_path, "coco", json.dumps(file), kind="mask")
    assert "60x40, and 30x20" in logged(caplog, "images of another size")


def test_images_in_cells_of_several_files(data, tmp_path) -> None:
    """Each has the boxes of its own name, as loader.ids has it, and not those of its member."""
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    png = (data / "images/im0.png").read_bytes()
    for shard in range(2):
        cells = [{"bytes": png, "path": None}] * 3
        pq.write_table(pa.table({"image": cells}), tmp_path / f"train-{shard}.parquet")
    fields = {"image": chaski.Field(column="image")}
    source = tmp_path / "train-*.parquet"
    with chaski.load(source, fields=fields, batch_size=6, shuffle=False) as run:
        names = [run.ids[k] for k in range(6)]
    lines = [f"{name},{k},1,{k + 2},5" for k, name in enumerate(names)]
    (tmp_path / "boxes.csv").write_text("\n".join(["image,xmin,ymin,xmax,ymax", *lines]))
    fields["y"] = chaski.Vector(tmp_path / "boxes.csv", kind="boxes")
    with chaski.load(source, fields=fields, batch_size=6, shuffle=False) as run:
        rows = next(iter(run))["y"].rows()
    assert [r[0][0] for r in rows] == list(range(6))
