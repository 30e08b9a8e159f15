"""Each row of docs/your-data.md, on data made for it, against GDAL and numpy."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import rasters

import chaski

pytestmark = pytest.mark.usefixtures("one_engine")

rasterio = pytest.importorskip("rasterio", reason="needs rasterio to write rasters")
tifffile = pytest.importorskip("tifffile", reason="needs tifffile to write pages")
pa = pytest.importorskip("pyarrow", reason="needs pyarrow to write tables")

PAGE = Path(__file__).resolve().parents[2] / "docs/your-data.md"
ROWS = dict(re.findall(r"^\| ([^|]+) \| `([^|]+)` \| [^|]+ \|$", PAGE.read_text(), re.MULTILINE))
N, SIDE = 4, 32
COLOURS = {11: (0, 0, 255), 41: (0, 128, 0), 82: (255, 255, 0)}
Check = Callable[[dict[str, Any], Path], None]


def write(path: Path, x: np.ndarray, mask: np.ndarray | None = None, **profile: Any) -> None:
    path.parent.mkdir(exist_ok=True, parents=True)
    rasters.write(path, x, mask, **profile)
    if profile.get("photometric") == "PALETTE":
        with rasterio.open(path, "r+") as f:
            f.write_colormap(1, COLOURS)


def placed(left: float = 500000) -> dict[str, Any]:
    return {"crs": "EPSG:32630", "transform": rasterio.transform.from_origin(left, 4600000, 10, 10)}


@pytest.fixture(scope="module")
def data(tmp_path_factory, binary) -> Path:
    """The files of all rows."""
    root = tmp_path_factory.mktemp("your")
    rng = np.random.default_rng(1)
    for i in range(N):
        x = rng.integers(1, 255, (3, SIDE, SIDE), np.uint8)
        holes = (rng.random((SIDE, SIDE)) < 0.3).astype(np.uint8)
        rgba = {"photometric": "RGB", "alpha": "yes"}
        write(root / f"rgba/{i}.tif", np.vstack([x, 255 * (1 - holes[None])]), **rgba)
        write(root / f"masked/{i}.tif", x, mask=holes == 0)
        bordered = x.copy()
        bordered[:, :5] = 0
        bordered[:, 5:8] = 255
        write(root / f"borders/{i}.tif", bordered)
        write(root / f"declared/{i}.tif", x, nodata=int(x[0, 0, 0]))
        radar = rng.random((2, SIDE, SIDE), np.float32)
        radar[rng.random(radar.shape) < 0.1] = np.nan
        write(root / f"radar/{i}.tif", radar)
        write(root / f"pairs/images/{i}.tif", x)
        write(root / f"pairs/masks/{i}.tif", x[:1] // 64)
        classes = rng.choice(list(COLOURS), (1, SIDE, SIDE)).astype(np.uint8)
        write(root / f"palette/{i}.tif", classes, photometric="PALETTE")
        names = "<CategoryNames><Category>none</Category><Category>a</Category></CategoryNames>"
        pam = f'<PAMDataset><PAMRasterBand band="1">{names}</PAMRasterBand></PAMDataset>'
        (root / f"palette/{i}.tif.aux.xml").write_text(pam)
        red = np.zeros((3, SIDE, SIDE), np.uint8)
        red[0, : 8 * i] = 255
        write(root / f"colours/{i}.png", red)
        scene = root / f"sar/{'test' if i > 1 else 'train'}/s_{i % 2}"
        write(scene / f"vv/{i}_{i}_vv.png", x[:1])
        write(root / f"sar/labels/s_{i % 2}.png", np.full((1, SIDE, SIDE), i % 2, np.uint8))
        write(root / f"classes/{'water' if i % 2 else 'wood'}/{i}.png", x)
        write(root / f"sizes/{i}.tif", rng.integers(1, 255, (3, SIDE - i, SIDE + 2 * i), np.uint8))
        write(root / f"grey/{i}.png", rng.integers(1, 255, (3 if i % 2 else 1, 9 + i, 8), np.uint8))
        (root / "arrays").mkdir(exist_ok=True)
        np.save(root / f"arrays/{i}.npy", x)
        (root / "npz").mkdir(exist_ok=True)
        np.savez_compressed(root / f"npz/{i}.npz", image=x, mask=x[:1] // 64)
        stack(root, i, x)
        (root / "series").mkdir(exist_ok=True)
        np.save(root / f"series/{i}.npy", rng.integers(0, 99, (3, 2, SIDE, SIDE), np.uint8))
        (root / "pages").mkdir(exist_ok=True)
        dates = rng.integers(0, 99, (3, SIDE, SIDE), np.uint8)
        tifffile.imwrite(root / f"pages/{i}.tif", dates, photometric="minisblack")
    write(root / "placed/a.tif", rng.integers(1, 9, (1, 64, 64), np.uint8), **placed())
    corners = [[500100, 4599900], [500200, 4599900], [500200, 4599800], [500100, 4599800]]
    roof = {"type": "Polygon", "coordinates": [[*corners, corners[0]]]}
    feature = {"type": "Feature", "geometry": roof, "properties": {}}
    crs = {"type": "name", "properties": {"name": "EPSG:32630"}}
    collection = {"type": "FeatureCollection", "crs": crs, "features": [feature]}
    (root / "roofs.geojson").write_text(json.dumps(collection))
    for i in range(N):
        write(root / f"bordered/{i}.tif", np.where(np.arange(SIDE) < 8 * i, 0, x), nodata=0)
        write(root / f"spacenet/images/{i}.tif", x[:1], **placed(500000 + 20 * i))
        (root / "spacenet/labels").mkdir(exist_ok=True)
        if i != 2:
            (root / f"spacenet/labels/{i}.geojson").write_text(json.dumps(collection))
    (root / "split.txt").write_text("3.png\n1.png\n")
    tables(root)
    labels(root)
    shutil.copytree(PAGE.parents[1] / "testdata/stores", root / "stores")
    command = [binary, "stats", "--sampling", "--cell", "8", "-o", str(root / "bordered.coverage")]
    subprocess.run([*command, str(root / "bordered")], check=True, capture_output=True)
    return root


def stack(root: Path, i: int, x: np.ndarray) -> None:
    """Writes the bands into files of their own, and a VRT of them."""
    bands = ""
    for b in range(3):
        write(root / f"single/{i}_{b}.tif", x[b : b + 1])
        name = f'<SourceFilename relativeToVRT="1">../single/{i}_{b}.tif</SourceFilename>'
        source = f"<SimpleSource>{name}<SourceBand>1</SourceBand></SimpleSource>"
        bands += f'<VRTRasterBand dataType="Byte" band="{b + 1}">{source}</VRTRasterBand>'
    (root / "stacks").mkdir(exist_ok=True)
    size = f'rasterXSize="{SIDE}" rasterYSize="{SIDE}"'
    (root / f"stacks/{i}.vrt").write_text(f"<VRTDataset {size}>{bands}</VRTDataset>")


SHIPS = {0: [(2, 3, 12, 20)], 1: [(5, 5, 20, 9), (1, 22, 30, 28)], 2: [], 3: [(7, 0, 9, 31)]}
"""The boxes of each image; the second one is a plane."""


def labels(root: Path) -> None:
    """Writes the boxes as data sets of detectors have them, for images of SIDE by SIDE."""
    notes: list[dict[str, Any]] = []
    rows = ["image_path,xmin,ymin,xmax,ymax,label"]
    for i, boxes in SHIPS.items():
        files: dict[str, list[str]] = {
            f: [] for f in ("voc.xml", "fair1m.xml", "dota.txt", "yolo.txt")
        }
        for k, (x0, y0, x1, y1) in enumerate(boxes):
            name = ["ship", "plane"][k]
            ring = [(x0, y0), (x1, y0), (x1, y1), (x0, y1)]
            sides = f"<xmin>{x0}</xmin><ymin>{y0}</ymin><xmax>{x1}</xmax><ymax>{y1}</ymax>"
            box = f"<name>{name}</name><bndbox>{sides}</bndbox>"
            files["voc.xml"].append(f"<object>{box}</object>")
            points = "".join(f"<point>{x},{y}</point>" for x, y in [*ring, ring[0]])
            parts = f"<possibleresult><name>{name}</name></possibleresult><points>{points}</points>"
            files["fair1m.xml"].append(f"<object>{parts}</object>")
            files["dota.txt"].append(" ".join(f"{x} {y}" for x, y in ring) + f" {name} 0\n")
            shares = (x0 + x1) / 2, (y0 + y1) / 2, x1 - x0, y1 - y0
            files["yolo.txt"].append(
                " ".join(map(str, [1 - k, *(s / SIDE for s in shares)])) + "\n"
            )
            rows.append(f"images/{i}.tif,{x0},{y0},{x1},{y1},{name}")
            size = [x0, y0, x1 - x0, y1 - y0]
            notes.append({"image_id": i, "category_id": 9 - k, "bbox": size, "iscrowd": 0})
        for name, parts in files.items():
            kind, suffix = name.split(".")
            text = "".join(parts)
            (root / f"detect/{kind}").mkdir(exist_ok=True, parents=True)
            text = f"<annotation>{text}</annotation>" if suffix == "xml" else text
            (root / f"detect/{kind}/{i}.{suffix}").write_text(text)
    shutil.copytree(root / "pairs/images", root / "detect/images")
    pictures = [{"id": i, "file_name": f"{i}.tif", "height": SIDE, "width": SIDE} for i in SHIPS]
    names = [{"id": 9, "name": "ship"}, {"id": 8, "name": "plane"}]
    file = {"images": pictures, "annotations": notes, "categories": names}
    (root / "detect/coco.json").write_text(json.dumps(file))
    (root / "detect/boxes.csv").write_text("\n".join(rows))


def tables(root: Path) -> None:
    import pyarrow.parquet as pq

    (root / "tables").mkdir()
    paths = [f"../pairs/images/{i}.tif" for i in range(N)]
    rows = [f"{p},{'water' if i % 2 else 'wood'}" for i, p in enumerate(paths)]
    (root / "tables/class.csv").write_text("\n".join(["path,label", *rows]))
    rows = [f"{i}.tif,{'water' if i % 2 else 'wood'}" for i in (2, 0, 3, 1)]
    (root / "tables/labels.csv").write_text("\n".join(["file,label", *rows]))
    (root / "tables/species.csv").write_text(
        "file,label\n" + "".join(f"{i},{label}\n" for i in range(N) for label in ("a", f"b{i % 2}"))
    )
    (root / "tables/numbered.csv").write_text("\n".join(["y", *(f"{3 * i}" for i in range(N))]))
    said = ["a", '"a"']
    rows = [f"{p},{i}, {said[i % 2]}" for i, p in enumerate(paths)]
    (root / "tables/captions.csv").write_text("\n".join(["path,caption", *rows]))
    (root / "json").mkdir()
    captions = [
        {"filename": f"{i}.tif", "sentences": [{"raw": f"{i} {j}"} for j in range(1 + i % 2)]}
        for i in range(N)
    ]
    (root / "json/captions.json").write_text(json.dumps({"images": captions}))
    named = {"water": ["1", "3"], "wood": ["0", "2"]}
    (root / "json/classes.json").write_text(json.dumps(named))
    masks = [f"../pairs/masks/{i // 2}.tif" for i in range(N)]
    dates = [f"{p},p{i // 2},2024-0{2 - i % 2}-10,{masks[i]}" for i, p in enumerate(paths)]
    (root / "tables/dates.csv").write_text("\n".join(["path,place,date,mask", *dates]))
    boxes = [f"{p},{4 * i},3,{9 + 4 * i},20,{i}" for i, p in enumerate(paths)]
    (root / "tables/boxes.csv").write_text("\n".join(["path,x,y,w,h,label", *boxes]))
    scenes = [f"{p},{1 / 2**i},{-i}" for i, p in enumerate(paths)]
    (root / "tables/scaled.csv").write_text("\n".join(["path,gain,add", *scenes]))
    lists = {
        "path": paths,
        "labels": [["water"], ["wood", "crop"], [], ["wood"]],
        "vector": [[i, 0.5, -i] for i in range(N)],
    }
    pq.write_table(pa.table(lists), root / "tables/lists.parquet")
    cells = [
        {"bytes": (root / f"classes/{c}/{i}.png").read_bytes(), "path": None}
        for i, c in enumerate(["wood", "water"] * 2)
    ]
    pq.write_table(pa.table({"image": cells}), root / "tables/cells.parquet")


def pixels(folder: str) -> Callable[[Path, int], np.ndarray]:
    def read(root: Path, k: int) -> np.ndarray:
        with rasterio.open(sorted((root / folder).rglob("*.*"), key=lambda p: p.stem)[k]) as f:
            return f.read()

    return read


def valid(folder: str, said: Callable[[np.ndarray], np.ndarray] | None = None) -> Check:
    """The validity is GDAL's, or what numpy says of the pixels."""

    def check(b: dict[str, Any], root: Path) -> None:
        for row, k in enumerate(b["sample"]):
            with rasterio.open(root / folder / f"{k}.tif") as f:
                want = f.dataset_mask() > 0 if said is None else said(f.read())
            assert np.array_equal(b["ok"][row] > 0, np.broadcast_to(want, b["ok"][row].shape))
            assert 0 < want.mean()
        assert b["image"].shape[1] < 4

    return check


def has(
    folder: str, name: str = "image", change: Callable[[np.ndarray], Any] = lambda x: x
) -> Check:
    def check(b: dict[str, Any], root: Path) -> None:
        for row, k in enumerate(b["sample"]):
            assert np.array_equal(b[name][row], change(pixels(folder)(root, k)))

    return check


def values(name: str, want: list[Any]) -> Check:
    def check(b: dict[str, Any], root: Path) -> None:
        assert np.array_equal(b[name], np.array(want)[b["sample"]])

    return check


def images_and_masks(b: dict[str, Any], root: Path) -> None:
    has("pairs/images")(b, root)
    has("pairs/masks", "mask")(b, root)
    assert b["mask"].dtype == np.int64


def archived(b: dict[str, Any], root: Path) -> None:
    has("pairs/images")(b, root)
    has("pairs/masks", "mask")(b, root)


def listed(b: dict[str, Any], root: Path) -> None:
    assert len(b["image"]) == 2
    for image, mask, k in zip(b["image"], b["mask"], (1, 3), strict=True):
        assert np.array_equal(image, pixels("pairs/images")(root, k))
        assert np.array_equal(mask, pixels("pairs/masks")(root, k))


def names_in_paths(b: dict[str, Any], root: Path) -> None:
    assert list(b["scene"]) == ["s_0", "s_1"]
    for i in range(2):
        with rasterio.open(root / f"sar/train/s_{i}/vv/{i}_{i}_vv.png") as f:
            assert np.array_equal(b["vv"][i], f.read())
        assert (b["mask"][i] == i).all()


def palette(b: Any, root: Path) -> None:
    assert b.fields["image"].classes == ("none", "a")
    for number, (red, green, blue) in COLOURS.items():
        assert b.fields["image"].palette[number] == f"#{red:02x}{green:02x}{blue:02x}"
    assert b["image"].dtype == np.uint8 and set(np.unique(b["image"]).tolist()) == set(COLOURS)


def roofs(b: dict[str, Any], root: Path) -> None:
    want = np.zeros((64, 64))
    want[10:20, 10:20] = 1
    assert np.array_equal(b["roof"][0] > 0, want > 0)


def roofs_of_each(b: dict[str, Any], root: Path) -> None:
    for k, roof in zip(b["sample"], b["roof"], strict=True):
        want = np.zeros((SIDE, SIDE))
        want[10:20, 10 - 2 * k : 20 - 2 * k] = k != 2
        assert np.array_equal(roof, want)


def enough(b: dict[str, Any], root: Path) -> None:
    shares = [
        (x[:, top : top + 16, left : left + 16] == 0).all(0).mean()
        for x in (pixels("bordered")(root, i) for i in range(N))
        for top in (0, 16)
        for left in (0, 16)
    ]
    assert len(b["image"]) == min(N, sum(s <= 0.5 for s in shares)) < len(shares)
    assert all((x == 0).all(0).mean() <= 0.5 for x in b["image"])


def series(b: dict[str, Any], root: Path) -> None:
    for place, x in zip(b["sample"], b["image"], strict=True):
        steps = [pixels("pairs/images")(root, 2 * int(place) + k) for k in (1, 0)]
        assert np.array_equal(x, steps)  # the second file of a place is the earlier one


def one_label(b: dict[str, Any], root: Path) -> None:
    series(b, root)
    assert b["mask"].shape == (2, SIDE, SIDE) and b["image"].shape[:2] == (2, 2)
    for row, k in enumerate(b["sample"]):
        assert np.array_equal(b["mask"][row], pixels("pairs/masks")(root, k)[0])
    assert [*b["y"]] == [f"p{k}" for k in b["sample"]]


def steps(b: dict[str, Any], root: Path) -> None:
    whole = np.stack([np.load(root / f"series/{k}.npy") for k in range(N)])
    assert np.array_equal(b["image"], whole[:, [2, 0]])


def on_the_ground(b: dict[str, Any], root: Path) -> None:
    whole = pixels("placed")(root, 0)[0]
    windows = np.lib.stride_tricks.sliding_window_view(whole, (16, 16)).reshape(-1, 16, 16)
    for x in b["image"]:
        assert (windows == x[0]).all((1, 2)).any()


def dates(b: dict[str, Any], root: Path) -> None:
    want = [tifffile.imread(root / f"pages/{k}.tif") for k in range(N)]
    assert np.array_equal(b["image"][:, :, 0], want)


def boxes(b: dict[str, Any], root: Path) -> None:
    torch = pytest.importorskip("torch")
    for k, x in zip(b["y"].astype(int), b["image"], strict=True):
        box = pixels("pairs/images")(root, k)[:, 3:23, 4 * k : 9 + 8 * k].astype(np.float32)
        want = torch.nn.functional.interpolate(torch.from_numpy(box)[None], 16, mode="bilinear")
        assert np.allclose(x, want[0].numpy(), rtol=1e-4, atol=1e-3)


def resized(folder: str, h: int, w: int) -> Check:
    def check(b: dict[str, Any], root: Path) -> None:
        torch = pytest.importorskip("torch")
        for k, x in zip(b["sample"], b["image"], strict=True):
            whole = torch.from_numpy(pixels(folder)(root, k)[: len(x)].astype(np.float32))[None]
            want = torch.nn.functional.interpolate(whole, (h, w), mode="bilinear")[0].numpy()
            assert np.allclose(x, want, rtol=1e-4, atol=1e-3)

    return check


def stores(*fields: str) -> Check:
    """The images are those that zarr-python reads, by their hashes."""

    def check(b: dict[str, Any], root: Path) -> None:
        want = json.loads((root / "stores/values.json").read_text())
        folders = {"image": ("s2", "<i2"), "s1": ("s1", "<f4")}
        for field in fields:
            folder, dtype = folders[field]
            hashes = [h for n in "abc" for h in want[f"{folder}/{n}.zarr.zip"]["bands"]]
            got = [hashlib.sha256(x.astype(dtype).tobytes()).hexdigest() for x in b[field]]
            assert got == hashes[:N]

    return check


def scaled(b: dict[str, Any], root: Path) -> None:
    for row, k in enumerate(b["sample"]):
        with rasterio.open(root / f"pairs/images/{k}.tif") as f:
            assert np.array_equal(b["image"][row], f.read() / 2.0**k - k)


WOOD_OR_WATER = [1, 0, 1, 0]  # in alphabetical order water is 0


def ships(b: dict[str, Any], root: Path) -> None:
    for k, want in SHIPS.items():
        if "y_rings" in b:
            found = [[*r.min(0), *r.max(0)] for ((r,),) in chaski.polygons(b, "y")[k]]
        else:
            found = b["y"].rows()[k].tolist()
        assert np.allclose(found, want)
        assert b["y_values"].rows()[k].tolist() == [2, 1][: len(want)]


CHECKS: dict[str, Check] = {
    "a drone mosaic whose mask is alpha (TIFF, COG, PNG)": valid("rgba"),
    "a mask in the file": valid("masked"),
    "black borders that no file declares": valid("borders", lambda x: x != 0),
    "two values that mean nothing": valid("borders", lambda x: (x != 0) & (x != 255)),
    "a wrong nodata value in the files": valid("declared", lambda x: x == x),
    "radar with NaN": valid("radar", lambda x: ~np.isnan(x)),
    "scenes with wide borders of nodata": enough,
    "a folder of images and one of masks": images_and_masks,
    "masks in another place": images_and_masks,
    "a text file that lists the samples of a split": listed,
    "splits, scenes and sensors in paths": names_in_paths,
    "classes with a palette, and names for them": palette,
    "masks in colours": has("colours", "mask", lambda x: x[:1] // 255),
    "a folder for each class": values("y", [0, 0, 1, 1]),
    "captions of each image in a JSON file": values(
        "text", ['["0 0"]', '["1 0","1 1"]', '["2 0"]', '["3 0","3 1"]']
    ),
    "a question, phrase or caption for each row": values("text", ["0 0", "1 0", "1 1", "2 0"]),
    "captions with commas and without quotes in a CSV file": values(
        "text", ["0, a", '1, "a"', "2, a", '3, "a"']
    ),
    "lists of files by their class in a JSON file": values("y", WOOD_OR_WATER),
    "a table whose row numbers name the files": values("y", [0, 3, 6, 9]),
    "a class in a column": values("y", WOOD_OR_WATER),
    "a table of labels beside a folder": values("y", WOOD_OR_WATER),
    "a table with a row for each class of an image": values(
        "y", [[1, int(i % 2 == 0), i % 2] for i in range(N)]
    ),
    "several classes in a column of lists": values(
        "y", [[0, 1, 0], [1, 0, 1], [0, 0, 0], [0, 0, 1]]
    ),
    "a vector or an embedding for each row": values("v", [[i, 0.5, -i] for i in range(N)]),
    "a box for each row": boxes,
    "polygons in a file for each image": roofs_of_each,
    "polygons in one file": roofs,
    "boxes in VOC XML (DIOR)": ships,
    "oriented boxes in XML (FAIR1M)": ships,
    "DOTA text": ships,
    "YOLO text": ships,
    "COCO JSON": ships,
    "boxes in a CSV (EverWatch, ReforesTree)": ships,
    "a DataFrame, GeoDataFrame or Arrow table": values("y", [0.0, 0.5, 1.0, 1.5]),
    "a list of dicts": values("y", [0.0, 0.5, 1.0, 1.5]),
    "images whose sizes differ (UC Merced)": resized("sizes", 24, 20),
    "grey and RGB images together": resized("grey", 16, 16),
    "arrays in `.npy` files": has("classes"),
    "images and masks in `.npz` files": archived,
    "series (t, b, y, x) in `.npy` files": steps,
    "TIFFs whose pages are dates, or bands": dates,
    "a folder of ZIPs of Zarr (SSL4EO-S12, TerraMesh)": stores("image"),
    "ZIPs of Zarr of two sensors": stores("image", "s1"),
    "mosaics or stacks of bands in a VRT (gdalbuildvrt)": has("stacks"),
    "images in the cells of Parquet": has("classes"),
    "a scale and an offset for each scene": scaled,
    "dates in a column": series,
    "dates, and one label for all of them": one_label,
    "large scenes": on_the_ground,
}


def test_every_row_is_checked():
    assert list(ROWS) == list(CHECKS)
    assert len(PAGE.read_text().split()) <= 1500


@pytest.mark.parametrize("row", CHECKS)
def test_row(data, monkeypatch, row):
    monkeypatch.chdir(data)
    dicts = [{"path": f"pairs/images/{i}.tif", "score": i / 2} for i in range(N)]
    names = {**vars(chaski), "frame": pa.Table.from_pylist(dicts), "dicts": dicts}
    arguments = ROWS[row]
    with eval(f"load({arguments}, batch_size={N}, shuffle=False)", names) as loader:
        b = next(iter(loader))
    assert len(b["sample"])
    CHECKS[row](b, data)
