"""Files that have the labels of all images in pixels, against json, csv, numpy and rasterio."""

from __future__ import annotations

import csv
import json
import os
import re
import struct
import subprocess
from pathlib import Path

import numpy as np
import pytest
import rasters
from conftest import nonempty

import chaski

rasterio = pytest.importorskip("rasterio")
features = pytest.importorskip("rasterio.features")

pytestmark = pytest.mark.usefixtures("one_engine")
SIZES = [(60, 80), (48, 33), (21, 90), (64, 64)]  # the last image has no objects
rng = np.random.default_rng(11)


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> Path:
    root = tmp_path_factory.mktemp("all")
    (root / "tiles").mkdir()
    for k, (height, width) in enumerate(SIZES):
        rasters.write(root / f"tiles/pan_{k}.png", np.full((1, height, width), k, np.uint8))
    return root


def boxes_of(k: int) -> list[list[int]]:
    """Boxes inside an image."""
    height, width = SIZES[k]
    if k == len(SIZES) - 1:
        return []
    low = rng.integers(0, (width // 2, height // 2), (4, 2))
    return np.hstack([low, low + rng.integers(2, 12, (4, 2))]).tolist()


def ring_of(box: list[int]) -> list[tuple[int, int]]:
    x0, y0, x1, y1 = box
    return [(x0, y0), (x1, y0), (x1, y1), (x0, y1), (x0, y0)]


def wkb(ring: list[tuple[int, int]]) -> bytes:
    """A polygon of one ring."""
    return struct.pack("<bIII", 1, 3, 1, len(ring)) + np.array(ring, "<f8").tobytes()


def read(root: Path, vector, **options) -> list[dict]:
    """A sample for each image: images differ in size, so each is a batch."""
    fields = {"image": chaski.Field(pattern="tiles/{id}.png"), "y": vector}
    out = []
    for k in range(len(SIZES)):
        rows = chaski.Rows(ids=[f"pan_{k}"])
        with chaski.load(root, fields=fields, rows=rows, batch_size=1, **options) as run:
            (batch,) = run
            assert batch["image"][0, 0, 0, 0] == k and batch["valid"].all()
            rows_of = {n: m.rows()[0] if isinstance(m, chaski.Ragged) else m[0]
                       for n, m in batch.items() if n.startswith("y")}  # fmt: skip
            out.append(rows_of | {"classes": run.classes.get("y")})
    return out


def runs_of(mask: np.ndarray) -> str:
    """The runs of a mask, from its numbers in the order of columns."""
    places = np.flatnonzero(mask.T.ravel()) + 1
    parts = np.split(places, np.flatnonzero(np.diff(places) > 1) + 1)
    return " ".join(f"{p[0]} {len(p)}" for p in parts if len(p))


@pytest.mark.parametrize(
    "head, none",
    [("ImageId,EncodedPixels", ""), ("id,rle_mask", "-1"), ("img;rle", "")],
)
def test_masks_of_runs(data, tmp_path, binary, head, none) -> None:
    """Kaggle's: a line is an object, and an image without objects has an empty one, or -1."""
    separator = ";" if ";" in head else ","
    masks: list[list[np.ndarray]] = []
    lines = [head]
    for k, size in enumerate(SIZES):
        some = [] if k == len(SIZES) - 1 else [rng.random(size) < 0.4 for _ in range(3)]
        if some:
            some[0][:] = True  # one run of all
            some[1][:, -1] = True  # the last pixel is in one
        masks.append(some)
        name = f"pan_{k}.png" if k % 2 else f"pan_{k}"
        lines += [f"{name}{separator}{runs_of(m)}" for m in some] or [f"{name}{separator}{none}"]
    path = tmp_path / "runs.csv"
    path.write_text("\n".join(lines) + "\n")
    drawn = read(data, chaski.Vector(path))
    instances = read(data, chaski.Vector(path, kind="instances"))
    for some, size, whole, each in zip(masks, SIZES, drawn, instances, strict=True):
        want = np.zeros(size, bool)
        last = np.zeros(size, int)
        for n, mask in enumerate(some):
            want |= mask
            last[mask] = n + 1
        assert np.array_equal(whole["y"], want)
        first = min(each["y"][each["y"] > 0], default=1) - 1  # numbers are of the whole file
        assert np.array_equal(np.where(each["y"] > 0, each["y"] - first, 0) > 0, want)
        assert len(np.unique(last[want])) == len(np.unique(each["y"][each["y"] > 0]))


@pytest.mark.parametrize(
    "text, message",
    [
        ("1 2 3", "3 numbers"),
        ("0 2", "the run 0 2"),
        ("5 2 6 1", "the run 6 1 follows pixel 6"),
        ("5 -1", "the run 5 -1"),
        ("1.5 1", "the run 1.5 1"),
        ("1 x", '"x" is not a number'),
    ],
)
def test_wrong_runs(data, tmp_path, binary, text, message) -> None:
    (tmp_path / "runs.csv").write_text(f"ImageId,EncodedPixels\npan_0,{text}\n")
    with pytest.raises(chaski.errors.CorruptError, match=re.escape(message)):
        read(data, chaski.Vector(tmp_path / "runs.csv", missing="empty"))


def test_spacenet(data, tmp_path, binary) -> None:
    """WKT in pixels; ids without what stands before and behind them in the names of images."""
    path, rings = tmp_path / "buildings.csv", []
    with open(path, "w", newline="") as f:
        rows = csv.writer(f)
        rows.writerow(["ImageId", "BuildingId", "PolygonWKT_Pix", "PolygonWKT_Geo"])
        for k in range(len(SIZES)):
            mine = []
            for n, (x0, y0, x1, y1) in enumerate(boxes_of(k)):
                ring = [(x0, y0), (x1, y0), (x1, y1 + 0.5), (x0 + 0.25, y1), (x0, y0)]
                text = ",".join(f"{x} {y} 0" for x, y in ring)
                rows.writerow([k, n, f"POLYGON (({text}))", "POLYGON ((0 0,1 0,1 1,0 0))"])
                mine.append(ring)
            if not mine:
                rows.writerow([k, -1, "POLYGON EMPTY", "POLYGON EMPTY"])
            rings.append(mine)
    drawn = read(data, chaski.Vector(path, image="pan_{ImageId}.png"))
    for mine, size, got in zip(rings, SIZES, drawn, strict=True):
        shapes = [{"type": "Polygon", "coordinates": [ring]} for ring in mine]
        want = features.rasterize(shapes, size, dtype="uint8") if shapes else np.zeros(size)
        assert np.array_equal(got["y"], want)
    with pytest.raises(chaski.errors.NotFoundError, match='no shape names "pan_0.png"'):
        read(data, chaski.Vector(path))


@pytest.mark.parametrize("form", ["images", "project", "csv"])
def test_via(data, tmp_path, binary, form) -> None:
    want, entries, lines = [], {}, []
    for k in range(len(SIZES)):
        regions = []
        boxes = boxes_of(k)
        for n, (x0, y0, x1, y1) in enumerate(boxes):
            middle, half = [(x0 + x1) / 2, (y0 + y1) / 2], [(x1 - x0) / 2, (y1 - y0) / 2]
            shape = {"name": "rect", "x": x0, "y": y0, "width": x1 - x0, "height": y1 - y0}
            if n == 1:
                shape = {"name": "ellipse", "cx": middle[0], "cy": middle[1], "rx": half[0],
                         "ry": half[1], "theta": 0}  # fmt: skip
            if n == 2:
                shape = {"name": "circle", "cx": middle[0], "cy": middle[1], "r": half[0]}
                boxes[n] = [x0, middle[1] - half[0], x1, middle[1] + half[0]]
            kind = ["boat", "car"][n % 2]
            regions.append({"shape_attributes": shape, "region_attributes": {"label": kind}})
            cells = (shape, {"label": kind})
            lines.append([f"pan_{k}.png", n, *map(json.dumps, cells)])
        if not regions:
            lines.append([f"pan_{k}.png", 0, "{}", "{}"])
        want.append(boxes)
        entry = {"filename": f"pan_{k}.png", "size": 9, "regions": regions, "file_attributes": {}}
        entries[f"pan_{k}.png9"] = entry
    if form == "csv":
        path = tmp_path / "via.csv"
        with open(path, "w", newline="") as f:
            rows = csv.writer(f)
            names = ["filename", "region_id", "region_shape_attributes", "region_attributes"]
            rows.writerows([names, *lines])
    else:
        path = tmp_path / "via.json"
        whole = {"_via_settings": {"ui": {}}, "_via_img_metadata": entries}
        path.write_text(json.dumps(entries if form == "images" else whole))
    for (height, width), boxes, got in zip(
        SIZES, want, read(data, chaski.Vector(path, kind="boxes")), strict=True
    ):
        inside = np.clip(np.reshape(boxes, (-1, 4)), 0, [width, height, width, height])
        assert np.allclose(got["y"], inside, atol=1e-4)
        assert got["y_values"].tolist() == [1 + n % 2 for n in range(len(boxes))]
        assert got["classes"] == ["", "boat", "car"]


def test_xview(data, tmp_path, binary) -> None:
    """With image, boxes are those in pixels, and not the places on the ground."""
    want, listed = [], []
    for k in range(len(SIZES)):
        want.append(boxes_of(k))
        for box in want[-1]:
            ring = [[-90.5, 14.5], [-90.4, 14.5], [-90.4, 14.6], [-90.5, 14.6], [-90.5, 14.5]]
            values = {"bounds_imcoords": ",".join(map(str, box)), "type_id": 11 + k,
                      "image_id": f"pan_{k}.png"}  # fmt: skip
            shape = {"type": "Polygon", "coordinates": [ring]}
            listed.append({"type": "Feature", "properties": values, "geometry": shape})
    path = tmp_path / "xView_train.geojson"
    path.write_text(json.dumps({"type": "FeatureCollection", "features": listed}))
    vector = chaski.Vector(path, kind="boxes", image="image_id", column="type_id", missing="empty")
    for k, (boxes, got) in nonempty(enumerate(zip(want, read(data, vector), strict=True))):
        height, width = SIZES[k]
        inside = np.clip(np.reshape(boxes, (-1, 4)), 0, [width, height, width, height])
        assert np.allclose(got["y"], inside)
        assert got["y_values"].tolist() == [11 + k] * len(boxes)


@pytest.mark.parametrize("kind", ["frame", "geojson"])
def test_paths_of_other_tables(data, tmp_path, binary, kind) -> None:
    """A path with the column in braces, of tables in memory and GeoJSON, of numbers or strings."""
    boxes = {k: [boxes_of(k)[0]] for k in range(3)}
    if kind == "frame":
        pd = pytest.importorskip("pandas")
        shapes = [wkb(ring_of(b[0])) for b in boxes.values()]
        source = pd.DataFrame({"geometry": shapes, "tile": list(boxes)})
    else:
        source = tmp_path / "boxes.geojson"
        listed = [
            {"type": "Feature", "properties": {"tile": str(k)},
              "geometry": {"type": "Polygon", "coordinates": [ring_of(b[0])]}}
            for k, b in boxes.items()
        ]  # fmt: skip
        source.write_text(json.dumps({"type": "FeatureCollection", "features": listed}))
    vector = chaski.Vector(source, kind="boxes", image="tiles/pan_{tile}.png", missing="empty")
    for k, got in nonempty(enumerate(read(data, vector))):
        assert np.allclose(got["y"], np.reshape(boxes.get(k, []), (-1, 4)))


def test_holes_of_spacenet(data, tmp_path, binary) -> None:
    """Holes are no buildings; of several polygons each has its own."""
    first = [[(1, 1), (21, 2), (20, 18), (1, 1)], [(8, 4), (15, 5), (15, 10), (8, 4)]]
    second = [ring_of([2, 2, 12, 12]), ring_of([3, 3, 5, 5]), ring_of([6, 6, 9, 11])]
    third = [ring_of([14, 1, 20, 20])]

    def text(rings: list) -> str:
        joined = ("(" + ", ".join(f"{x} {y} 0" for x, y in ring) + ")" for ring in rings)
        return "(" + ",".join(joined) + ")"

    lines = ["ImageId;PolygonWKT_Pix", f"0;POLYGON Z {text(first)}"]
    lines += [f"1;MULTIPOLYGON Z ({text(second)}, {text(third)})", "2;MULTIPOLYGON EMPTY"]
    (tmp_path / "holes.csv").write_text("\n".join(lines) + "\n")
    vector = chaski.Vector(tmp_path / "holes.csv", image="pan_{ImageId}.png", missing="empty")
    drawn = [[first], [second, third], [], []]
    for polygons, size, got in zip(drawn, SIZES, read(data, vector), strict=True):
        shapes = [{"type": "Polygon", "coordinates": rings} for rings in polygons]
        want = features.rasterize(shapes, size, dtype="uint8") if shapes else np.zeros(size)
        assert np.array_equal(got["y"], want)


NAMES = [f"pan_{k}.png" for k in range(len(SIZES))]
IMAGES = [{"id": k, "file_name": name} for k, name in enumerate(NAMES)]


@pytest.mark.parametrize(
    "name, content",
    [
        ("via.json", {n: {"filename": n, "regions": [], "file_attributes": {}} for n in NAMES}),
        ("via.json", {"_via_img_metadata": {n: {"filename": n} for n in NAMES}}),
        ("via.json", {"_via_img_metadata": {}}),
        ("coco.json", {"images": IMAGES, "annotations": [], "categories": []}),
        ("boxes.csv", "filename,region_shape_attributes,region_attributes\n"),
        ("boxes.csv", "filename,xmin,ymin,xmax,ymax\n"),
        ("shapes.geojson", {"type": "FeatureCollection", "features": []}),
    ],
)  # fmt: skip
def test_no_objects(data, tmp_path, binary, name, content) -> None:
    """A file that has labels of no image, as one has before somebody draws the first."""
    path = tmp_path / name
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    image = "image" if name.endswith(".geojson") else None
    for got in nonempty(read(data, chaski.Vector(path, image=image, missing="empty"))):
        assert not got["y"].any()


@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize(
    "more",
    [
        {"shapes": []},
        {"metadata": {"filename": "a", "regions": ["N"]}},
        {"metadata": {"filename": "a", "regions": {}, "file_attributes": {}}},
    ],
)
def test_members_of_other_formats(data, tmp_path, binary, more, first) -> None:
    """GeoJSON and COCO stay what they are with members that other formats have, too."""
    ring = ring_of([3, 4, 9, 11])
    shape = {"type": "Polygon", "coordinates": [ring]}
    listed = [{"type": "Feature", "properties": {"image": i["file_name"]}, "geometry": shape}
              for i in IMAGES]  # fmt: skip
    kind = {"type": "FeatureCollection"}
    geojson = more | kind if first else kind | more
    (tmp_path / "a.geojson").write_text(json.dumps(geojson | {"features": listed}))
    objects = [{"image_id": i["id"], "category_id": 1, "bbox": [3, 4, 6, 7]} for i in IMAGES]
    coco = {"images": IMAGES, "annotations": objects, "categories": [{"id": 1, "name": "car"}]}
    (tmp_path / "a.json").write_text(json.dumps(more | coco if first else coco | more))
    for name, image in [("a.geojson", "image"), ("a.json", None)]:
        got = read(data, chaski.Vector(tmp_path / name, image=image))
        for size, one in zip(SIZES, got, strict=True):
            assert np.array_equal(one["y"], features.rasterize([shape], size, dtype="uint8"))


def test_columns_that_via_lacks(data, tmp_path, binary) -> None:
    """A wrong name is an error, and no mask without a word."""
    shape = {"name": "rect", "x": 1, "y": 1, "width": 5, "height": 5}
    region = {"shape_attributes": shape, "region_attributes": {"kind": "boat"}}
    entries = {i["file_name"]: {"filename": i["file_name"], "regions": [region]} for i in IMAGES}
    (tmp_path / "via.json").write_text(json.dumps(entries))
    with pytest.raises(chaski.errors.NotFoundError, match="kinds: no feature has it; .* kind"):
        read(data, chaski.Vector(tmp_path / "via.json", column="kinds"))


def test_xview_without_a_box(data, tmp_path, binary) -> None:
    """A feature without a box in pixels has no shape: its place on the ground is no such one."""
    ring = [[1, 1], [9, 1], [9, 9], [1, 9], [1, 1]]
    listed = [{"type": "Feature", "geometry": {"type": "Polygon", "coordinates": [ring]},
               "properties": {"bounds_imcoords": "", "image_id": i["file_name"]}}
              for i in IMAGES]  # fmt: skip
    path = tmp_path / "x.geojson"
    path.write_text(json.dumps({"type": "FeatureCollection", "features": listed}))
    for got in nonempty(read(data, chaski.Vector(path, image="image_id"))):
        assert not got["y"].any()


@pytest.mark.parametrize("crs", ["pixels", "shares"])
def test_pixels_of_no_image(data, tmp_path, binary, crs) -> None:
    """Shapes in pixels need to say of which image."""
    ring = [[0.1, 0.1], [0.9, 0.1], [0.9, 0.9], [0.1, 0.9], [0.1, 0.1]]
    shape = {"type": "Polygon", "coordinates": [ring]}
    feature = {"type": "Feature", "properties": {}, "geometry": shape}
    path = tmp_path / "a.geojson"
    path.write_text(json.dumps({"type": "FeatureCollection", "features": [feature]}))
    with pytest.raises(chaski.errors.UnsupportedError, match="path of the image as image"):
        read(data, chaski.Vector(path, crs=crs))


@pytest.mark.parametrize("part", ["train", "val"])
def test_images_of_a_part(tmp_path, part) -> None:
    """The images that COCO's file of a part names are its samples; those without objects, too."""
    (tmp_path / "tiles").mkdir()
    for k in range(len(SIZES)):
        rasters.write(tmp_path / f"tiles/pan_{k}.png", np.full((1, 64, 64), k, np.uint8))
    mine = [k for k in range(len(SIZES)) if (k > 1) == (part == "val")]
    listed = [{"id": k, "license": {"id": 1}, "file_name": f"pan_{k}.png"} for k in mine]
    boxes = {k: boxes_of(k) for k in mine}
    found = [
        {"image_id": k, "category_id": 3, "bbox": [x0, y0, x1 - x0, y1 - y0]}
        for k in mine
        for x0, y0, x1, y1 in boxes[k]
    ]
    path = tmp_path / f"{part}.json"
    file = {"info": {"images": [7]}, "images": listed, "annotations": found}
    path.write_text(json.dumps(file | {"categories": [{"id": 3, "name": "ship"}]}))
    vector = chaski.Vector(path, kind="boxes")
    options = {"fields": {"image": chaski.Field(), "y": vector}, "batch_size": 1, "shuffle": False}
    with chaski.load(tmp_path / "tiles/*.png", **options) as run:
        with pytest.raises(
            chaski.NotFoundError, match=r'as "FILE\.json::images\.file_name" of COCO'
        ):
            list(run)
    rows = chaski.Rows(ids=f"{path}::images.file_name")
    with chaski.load(tmp_path / "tiles/*.png", rows=rows, **options) as run:
        got = [(int(b["image"][0, 0, 0, 0]), b["y"].rows()[0]) for b in run]
    assert [k for k, _ in got] == mine
    for k, rows_of in nonempty(got):
        np.testing.assert_allclose(rows_of, np.reshape(boxes[k], (-1, 4)))


@pytest.mark.parametrize("source", ["files", "catalog"])
def test_images_are_named_by_the_keys_of_samples(tmp_path: Path, source: str) -> None:
    """A file of labels may name a sample by what {id}, or several names, stand for."""
    boxes = {}
    for scene in ("a", "b"):
        for tile in (7, 12):
            folder = tmp_path / "images" / scene
            folder.mkdir(parents=True, exist_ok=True)
            for band in ("VV", "VH"):
                rasters.write(folder / f"{tile:03}_{band}.tif", np.zeros((1, 32, 32), np.uint8))
            low = rng.integers(0, 15, 2)
            boxes[f"{scene}/{tile:03}"] = [*low.tolist(), *(low + 9).tolist()]
    (tmp_path / "boxes.csv").write_text(
        "scene,tile,x0,y0,x1,y1\n"
        + "".join(
            f"{key.split('/')[0]},{int(key.split('/')[1])},{','.join(map(str, box))}\n"
            for key, box in sorted(boxes.items(), key=lambda item: item[1])
        )
    )
    patterns = {b: f"images/{{scene}}/{{tile}}_{b}.tif" for b in ("VV", "VH")}
    form = {"x0 y0 x1 y1": ["x0", "y0", "x1", "y1"]}
    root: Path = tmp_path
    fields: dict = {"vv": chaski.Field(pattern=patterns["VV"])}
    if source == "catalog":
        root = tmp_path / "train.parquet"
        line = ["index", "--field", f"vv={patterns['VV']}", "-o", str(root), str(tmp_path)]
        subprocess.run([os.environ["CHASKI_BIN"], *line], check=True)
        fields = {"vv": chaski.Field()}
    fields["y"] = chaski.Vector(
        tmp_path / "boxes.csv", box=form, image="{scene}/{tile:03}", kind="boxes"
    )
    fields |= {"scene": "scene", "tile": chaski.Field(column="tile", kind="text")}
    with chaski.load(root, fields=fields, batch_size=4, shuffle=False) as run:
        (batch,) = list(run)
    keys = [f"{scene}/{tile}" for scene, tile in zip(batch["scene"], batch["tile"], strict=True)]
    assert sorted(keys) == sorted(boxes)
    for key, (found,) in nonempty(zip(keys, batch["y"].rows(), strict=True)):
        np.testing.assert_allclose(found[:4], boxes[key], err_msg=key)
