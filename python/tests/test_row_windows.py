"""Windows at the boxes that rows hold, against windowed reads of rasterio, and torch."""

from __future__ import annotations

import json
import math
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import rasters
from conftest import nonempty

import chaski

pytestmark = pytest.mark.usefixtures("one_engine")

rasterio = pytest.importorskip("rasterio", reason="needs rasterio to write rasters")
pa = pytest.importorskip("pyarrow", reason="needs pyarrow to write tables")

H, W, SIZE, FILL = 60, 80, (16, 12), 255
IMAGES = 3
NAN = math.nan
# left, top, width, height: inside, past each edge, with fractions, wide, tall, small, the image.
BOXES = [
    (10, 20, 12, 16),
    (-6, -3, 30, 20),
    (70, 50, 30, 30),
    (3.5, 7.25, 20.2, 10.5),
    (0, 30, 80, 5),
    (40, 0, 3, 60),
    (77, 58, 1, 1),
    (0, 0, 80, 60),
    (20.9, 31.1, 9, 33),
    (-14, 20, 25, 8),
]
ROWS = len(BOXES)
IMAGE = chaski.Field(
    column="image", dtype="native", fill=FILL, resample="nearest", validity="there"
)
FIELDS = {"image": IMAGE, "y": "y_label"}


def write(path: Path, x: np.ndarray) -> None:
    rasters.write(path, x, tiled=True, blockxsize=16, blockysize=16)


def columns(boxes: Any = BOXES) -> dict[str, list[Any]]:
    """A table in which several rows name one image."""
    x, y, w, h = ([float(v) for v in side] for side in zip(*boxes, strict=True))
    names = [f"{k % IMAGES}.tif" for k in range(len(boxes))]
    out = {"id": [f"{k}.tif" for k in range(len(boxes))], "image": names, "mask": names}
    out["mask"] = [f"mask{n}" for n in names]
    return out | {"x": x, "y": y, "w": w, "h": h, "y_label": list(range(len(boxes)))}


@pytest.fixture(scope="module")
def data(tmp_path_factory: Any, binary: str) -> Path:
    import pyarrow.csv
    import pyarrow.parquet

    root: Path = tmp_path_factory.mktemp("boxes")
    rng = np.random.default_rng(5)
    for i in range(IMAGES):
        write(root / f"{i}.tif", rng.integers(0, 250, (2, H, W), np.uint8))
        write(root / f"mask{i}.tif", rng.integers(0, 9, (1, H // 2, W // 2), np.uint8))
    table = pa.table(columns())
    pyarrow.csv.write_csv(table, root / "boxes.csv")
    pyarrow.parquet.write_table(table, root / "boxes.parquet")
    index = [binary, "index", "--field", "image=image", "--field", "mask=mask"]
    subprocess.run([*index, "-o", root / "catalog.parquet", root / "boxes.csv"], check=True)
    packed = table.append_column("path", table["image"]).drop_columns(["image", "mask"])
    pyarrow.parquet.write_table(packed, root / "samples.parquet")
    about = {"id": "a", "dataset_version": "1", "description": "b", "licenses": ["CC0-1.0"]}
    about |= {"providers": [{"name": "chaski"}], "tasks": ["other"]}
    (root / "about.json").write_text(json.dumps(about))
    pack = [binary, "pack", "--collection", root / "about.json"]
    subprocess.run([*pack, "-o", root / "boxes.tacozip", root / "samples.parquet"], check=True)
    return root


def source(data: Path, kind: str) -> Any:
    if kind == "memory":
        paths = [str(data / n) for n in columns()["image"]]
        return pa.table(columns() | {"image": paths})
    return data / kind


def whole(box: tuple[float, ...]) -> tuple[int, int, int, int]:
    """The first and last row and column of whole pixels."""
    x, y, w, h = box
    return math.floor(y), math.ceil(y + h), math.floor(x), math.ceil(x + w)


def window(box: tuple[float, ...], fit: str, pad: bool) -> tuple[int, int, int, int]:
    """Row and column, height and width of the window."""
    y0, y1, x0, x1 = whole(box)
    if fit == "resize":
        if not pad:
            y0, y1, x0, x1 = max(y0, 0), min(y1, H), max(x0, 0), min(x1, W)
        return y0, x0, y1 - y0, x1 - x0
    y, x = math.floor((y0 + y1 - SIZE[0]) / 2), math.floor((x0 + x1 - SIZE[1]) / 2)
    if not pad:
        y, x = min(max(y, 0), H - SIZE[0]), min(max(x, 0), W - SIZE[1])
    return y, x, *SIZE


def expected(data: Path, k: int, fit: str, pad: bool) -> np.ndarray:
    """Pixels and validity of row k, by windowed reads of GDAL."""
    y, x, h, w = window(BOXES[k], fit, pad)
    part = rasterio.windows.Window(x, y, w, h)
    with rasterio.open(data / f"{k % IMAGES}.tif") as f:
        out = f.read(window=part, boundless=True, fill_value=FILL)
    rows, cols = np.arange(y, y + h)[:, None], np.arange(x, x + w)
    there = (rows >= 0) & (rows < H) & (cols >= 0) & (cols < W)
    if fit == "pad":
        y0, y1, x0, x1 = whole(BOXES[k])
        there &= (rows >= y0) & (rows < y1) & (cols >= x0) & (cols < x1)
    out = np.vstack([np.where(there, out, FILL), there[None]])
    ys, xs = ((2 * np.arange(n) + 1) * m // (2 * n) for m, n in zip((h, w), SIZE, strict=True))
    return out[:, ys[:, None], xs] if fit == "resize" else out


def read(data: Path, window: Any, table: str = "boxes.csv", **more: Any) -> list[dict[str, Any]]:
    options = {"fields": FIELDS, "batch_size": 4, "shuffle": False, "window": window, **more}
    with chaski.load(source(data, table), **options) as loader:
        return [{k: np.array(v) for k, v in b.items()} for b in loader]


@pytest.mark.parametrize(
    "table", ["boxes.csv", "boxes.parquet", "memory", "catalog.parquet", "boxes.tacozip"]
)
@pytest.mark.parametrize(
    ("fit", "pad"),
    [("resize", False), ("resize", True), ("crop", False), ("crop", True), ("pad", True)],
)
def test_boxes(data, table, fit, pad):
    fields = FIELDS
    if table == "boxes.tacozip":
        fields = FIELDS | {"image": replace(IMAGE, column=None)}
    seen = 0
    for b in nonempty(
        read(
            data,
            chaski.RowWindow(SIZE, fit=fit),
            table,
            fields=fields,
            pixels=chaski.Pixels(pad=pad, windows=True),
        )
    ):
        for row in np.flatnonzero(b["valid"]):
            k = int(b["y"][row])
            assert b["window"][row].tolist() == list(window(BOXES[k], fit, pad))
            want = expected(data, k, fit, pad)
            assert np.array_equal(b["image"][row], want[:2]), k
            assert np.array_equal(b["there"][row], np.broadcast_to(want[2:], (2, *SIZE))), k
            seen += 1
    assert seen == ROWS


def test_blended(data):
    """Bilinear and antialiased windows are what torch makes of the box."""
    torch = pytest.importorskip("torch")
    for resample in ("bilinear", "antialias"):
        field = chaski.Field(column="image", dtype="float32", resample=resample)
        fields = {"image": field, "y": "y_label"}
        for b in nonempty(read(data, chaski.RowWindow(SIZE), fields=fields)):
            there = b["valid"]
            for k, image in nonempty(zip(b["y"][there], b["image"][there], strict=True)):
                y, x, h, w = window(BOXES[int(k)], "resize", False)
                with rasterio.open(data / f"{int(k) % IMAGES}.tif") as f:
                    box = f.read(window=rasterio.windows.Window(x, y, w, h)).astype(np.float32)
                want = torch.nn.functional.interpolate(
                    torch.from_numpy(box)[None],
                    SIZE,
                    mode="bilinear",
                    antialias=resample == "antialias",
                )
                assert np.allclose(image, want[0].numpy(), rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize(("fit", "pad"), [("resize", False), ("crop", False), ("pad", True)])
def test_a_mask_of_half_the_resolution_has_the_same_window(data, fit, pad):
    mask = chaski.Field(column="mask", dtype="native", fill=FILL, resample="nearest", pad=pad)
    fields = {"image": replace(IMAGE, pad=pad), "mask": mask, "y": "y_label"}
    pixels = chaski.Pixels(windows=True)
    checked = 0
    for b in read(data, chaski.RowWindow(SIZE, fit=fit), fields=fields, pixels=pixels):
        for row in np.flatnonzero(b["valid"]):
            k = int(b["y"][row])
            y, x, h, w = b["window"][row].tolist()
            assert all(side % 2 == 0 for side in (y, x, h, w))
            part = rasterio.windows.Window(x // 2, y // 2, w // 2, h // 2)
            with rasterio.open(data / f"mask{k % IMAGES}.tif") as f:
                want = f.read(window=part, boundless=True, fill_value=FILL)
            if fit == "resize":
                half = zip((h // 2, w // 2), (SIZE[0] // 2, SIZE[1] // 2), strict=True)
                ys, xs = ((2 * np.arange(n) + 1) * m // (2 * n) for m, n in half)
                want = want[:, ys[:, None], xs]
            elif fit == "pad":  # missing where the image is
                want = np.where(b["there"][row][:1, ::2, ::2] == 1, want, FILL)
            assert np.array_equal(b["mask"][row], want), k
            checked += 1
    assert checked == ROWS


def test_order_ranks_and_resume_are_those_of_chips(data):
    options = {"seed": 7, "shuffle": True, "pixels": chaski.Pixels(pad=True)}
    boxes = read(data, chaski.RowWindow(SIZE), **options)
    chips = read(data, chaski.WholeChip(), **options)
    assert [b["sample"].tolist() for b in boxes] == [b["sample"].tolist() for b in chips]
    assert [b["sample"].tolist() for b in boxes] != [b["sample"].tolist() for b in read(data, 8)]
    common = {"fields": FIELDS, "window": chaski.RowWindow(SIZE), **options}
    table = data / "boxes.csv"
    ranks = []
    for rank in range(2):
        with chaski.load(table, batch_size=4, rank=rank, world_size=2, **common) as loader:
            ranks.append([b["image"][b["valid"]].copy() for b in loader])
    for step, b in enumerate(boxes):
        parts = np.concatenate([r[step] for r in ranks])
        assert sorted(map(bytes, parts)) == sorted(map(bytes, b["image"][b["valid"]]))
    with chaski.load(table, batch_size=4, **common) as loader:
        next(iter(loader))
        state = loader.state_dict()
    with chaski.load(table, batch_size=4, **common) as loader:
        loader.load_state_dict(state)
        assert np.array_equal(next(iter(loader))["image"], boxes[1]["image"])


def test_other_boxes_are_another_run(data, tmp_path):
    states = []
    for boxes in (BOXES, [(11, *BOXES[0][1:]), *BOXES[1:]]):
        paths = [str(data / n) for n in columns()["image"]]
        table = pa.table(columns(boxes) | {"image": paths})
        options = {"fields": FIELDS, "batch_size": 4, "window": chaski.RowWindow(SIZE)}
        with chaski.load(table, **options) as loader:
            if states:
                with pytest.raises(chaski.Error, match="selected rows, weights, sizes or boxes"):
                    loader.load_state_dict(states[0])
            states.append(loader.state_dict())
    assert states[0] != states[1]


def test_augmentations_turn_the_box(data):
    window = chaski.RowWindow(12, fit="crop")
    plain = read(data, window, pixels=chaski.Pixels(pad=True))
    turned = read(data, window, pixels=chaski.Pixels(pad=True, augment="d4"))
    images = {int(k): x for b in plain for k, x in zip(b["sample"], b["image"], strict=True)}
    others = 0
    for b in turned:
        there = b["valid"]
        for k, x in zip(b["sample"][there], b["image"][there], strict=True):
            turns = [
                np.rot90(t, n, (1, 2)) for t in (images[k], images[k][:, ::-1]) for n in range(4)
            ]
            assert any(np.array_equal(x, t) for t in turns)
            others += not np.array_equal(x, images[k])
    assert others


def test_bands_of_two_files_have_the_same_window(data, tmp_path):
    """A stack of bands of 1 and 2 pixels, past the edges."""
    rng = np.random.default_rng(8)
    fine = rng.integers(1, 250, (1, H, W), np.uint8)
    coarse = rng.integers(1, 250, (1, H // 2, W // 2), np.uint8)
    for name, x, side in (("fine", fine, 10), ("coarse", coarse, 20)):
        place = {"crs": "EPSG:32630", "transform": rasterio.Affine(side, 0, 5e5, 0, -side, 4e6)}
        rasters.write(tmp_path / f"{name}.tif", x, **place)
    paths = {n: [str(tmp_path / f"{n}.tif")] * ROWS for n in ("fine", "coarse")}
    image = replace(IMAGE, column=None, columns=["fine", "coarse"], pad=True)
    options = {"fields": {"image": image}, "batch_size": ROWS, "shuffle": False}
    around = np.full((2, 3 * H, 3 * W), FILL, np.uint8)
    around[:, H : 2 * H, W : 2 * W] = np.vstack([fine, coarse.repeat(2, 1).repeat(2, 2)])
    table = pa.table(columns() | paths)
    with chaski.load(table, window=chaski.RowWindow(SIZE, fit="crop"), **options) as loader:
        (b,) = loader
        for k in range(ROWS):
            y, x, h, w = window(BOXES[k], "crop", True)
            want = around[:, y + H : y + H + h, x + W : x + W + w]
            assert np.array_equal(b["image"][k], want), k
    with pytest.raises(
        chaski.Error, match='fit is "pad", which is not for fields of several files'
    ):
        chaski.load(table, window=chaski.RowWindow(SIZE, fit="pad"), **options).close()


def test_masks_and_colours_of_a_padded_box(data, tmp_path):
    """What the file masks is missing in the box, and all that is around the box."""
    rng = np.random.default_rng(9)
    mask = rng.integers(0, 2, (H, W), np.uint8)
    red = np.zeros((3, H, W), np.uint8)
    red[0, :30] = 255
    size = {"count": 3, "height": H, "width": W, "dtype": "uint8"}
    with (
        rasterio.Env(GDAL_TIFF_INTERNAL_MASK=True),
        rasterio.open(tmp_path / "red.tif", "w", driver="GTiff", **size) as f,
    ):
        f.write(red)
        f.write_mask(mask * 255)
    table = pa.table(columns() | {"image": [str(tmp_path / "red.tif")] * ROWS})
    classes = {(255, 0, 0): 1, (0, 0, 0): 0}
    label = chaski.Field(column="image", dtype="int64", layout="n y x", fill=9, lut=classes)
    fields = {"image": replace(IMAGE, pad=True), "label": replace(label, pad=True)}
    options = {"fields": fields, "batch_size": ROWS, "shuffle": False}
    with chaski.load(table, window=chaski.RowWindow(SIZE, fit="pad"), **options) as loader:
        (b,) = loader
    for k, box in enumerate(BOXES):
        y0, y1, x0, x1 = whole(box)
        y, x, h, w = window(box, "pad", True)
        there = np.zeros((3 * H, 3 * W), np.uint8)
        there[H : 2 * H, W : 2 * W] = mask
        inside = np.zeros_like(there)
        inside[y0 + H : y1 + H, x0 + W : x1 + W] = 1
        there = (there & inside)[y + H : y + H + h, x + W : x + W + w]
        assert np.array_equal(b["there"][k], np.broadcast_to(there, (3, *SIZE))), k
        classes = np.arange(y, y + h)[:, None] < 30
        assert np.array_equal(b["label"][k], np.where(there, classes, 9)), k


def test_a_sequence_has_the_box_of_its_first_step(data):
    times = [f"2024-01-{k // 2 + 1:02}" for k in range(4)]
    table = columns(BOXES[:4]) | {"place": [0, 1, 0, 1], "time": times}
    paths = [str(data / f"{k % 2}.tif") for k in range(4)]
    rows = chaski.Rows(time=chaski.Time(key="place", order="time", length=2))
    options = {"fields": {"image": IMAGE}, "batch_size": 2, "shuffle": False, "rows": rows}
    options["window"] = chaski.RowWindow(SIZE, fit="crop")
    with chaski.load(pa.table(table | {"image": paths}), **options) as loader:
        (b,) = loader
        for k in range(2):
            for step in range(2):
                assert np.array_equal(b["image"][k, step], expected(data, k, "crop", False)[:2])


def test_sources_of_a_mixture_have_boxes_in_columns_of_their_own(data):
    left = {f"left_{n}" if n == "x" else n: v for n, v in columns().items()}
    paths = {"image": [str(data / n) for n in columns()["image"]]}
    tables = {"a": pa.table(columns() | paths), "b": pa.table(left | paths)}
    sources = {
        name: chaski.Source(table, window=chaski.RowWindow(SIZE, x=x))
        for (name, table), x in zip(tables.items(), ("x", "left_x"), strict=True)
    }
    with chaski.load(chaski.Mixture(sources), fields=FIELDS, batch_size=4) as loader:
        seen = 0
        for b in loader:
            for row in np.flatnonzero(b["valid"]):
                want = expected(data, int(b["y"][row]), "resize", False)
                assert np.array_equal(b["image"][row], want[:2])
                seen += 1
        assert seen == loader.samples


BAD = [
    (None, 5, 5, 5),
    (NAN, 5, 5, 5),
    (5, math.inf, 5, 5),
    (5, 5, 0.5, 5),
    (5, 5, 5, -3),
    (W, 5, 5, 5),
    (5, -5, 5, 5),
    (1e300, 5, 5, 5),
    (5, 5, 1e300, 5),
]


@pytest.mark.parametrize("fit", ["resize", "crop"])
def test_bad_boxes_are_bad_samples(data, fit):
    boxes = [BOXES[0], *BAD]
    x, y, w, h = (list(side) for side in zip(*boxes, strict=True))
    paths = [str(data / "0.tif")] * len(boxes)
    number = pa.float64()
    table = pa.table(
        {"image": paths, "y_label": range(len(boxes))}
        | {name: pa.array(side, number) for name, side in zip("xywh", (x, y, w, h), strict=True)}
    )
    options = {"fields": FIELDS, "batch_size": len(boxes), "shuffle": False}
    options["window"] = chaski.RowWindow(SIZE, fit=fit)
    with chaski.load(table, **options, on_bad="skip") as loader:
        (b,) = list(loader)
        assert sorted(row.sample.row for row in b.bad) == list(range(1, len(boxes)))
        assert b["valid"].sum() == 1
        assert np.array_equal(b["image"][0], expected(data, 0, fit, False)[:2])
    match = r"box: the columns .* they must be numbers"
    with chaski.load(table, **options) as loader, pytest.raises(chaski.CorruptError, match=match):
        list(loader)


def test_refusals(data):
    for window, match in [
        (chaski.RowWindow(SIZE, x="left"), "left"),
        (chaski.RowWindow(SIZE, x="image"), 'column "image" holds strings'),
        (chaski.RowWindow(SIZE, fit="pad"), 'fit is "pad", and some field does not pad'),
        (chaski.RowWindow(SIZE, fit="fill"), 'fit is "fill": it must be one of'),  # type: ignore[arg-type]
        (chaski.RowWindow(0), "size is 0"),
    ]:
        with pytest.raises(chaski.Error, match=match):
            read(data, window)
