"""The samples of published data sets, by the names of docs/data-sets.md."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import h5py
import numpy as np
import pyarrow.parquet as pq
import rasterio
import rasterio.warp
import tortilla
import zarr_zip
from judge import (
    Part,
    Sample,
    beside,
    files,
    folder,
    mapped,
    members,
    numbered,
    pixels,
    raster,
    samples,
    seen,
    stacked,
)
from rasterio.features import rasterize
from recent import RECENT

PAGE = Path(__file__).resolve().parents[2] / "docs/data-sets.md"
Samples = Callable[[], list[Sample]]


def calls() -> dict[str, str]:
    """Returns the arguments of `chaski.load` of each data set of the page."""
    rows = re.findall(r"^\| ([^|]+) \| [^|]+ \| `(.+)` \|$", PAGE.read_text(), re.MULTILINE)
    return {name: call for names, call in rows for name in names.split("; ")}


def classes(pattern: str) -> Samples:
    """Images whose folder is their class."""
    return lambda: numbered(samples(pattern, y=folder), "y")


def of(pattern: str, image: Part = pixels, **parts: Part) -> Samples:
    """Images, and what belongs to each."""
    return lambda: samples(pattern, image, **parts)


def kept(p: Path) -> np.ndarray:
    """A raster of classes as it is stored."""
    return pixels(p, keep=True)


def label(old: str, new: str, bands: Sequence[int] | None = None) -> Part:
    """Another raster of classes."""
    return beside(old, new, bands=bands, keep=True)


def shapes(old: str, new: str, crs: str = "EPSG:4326") -> Part:
    """The shapes of a GeoJSON as a mask of a raster, as rasterio draws them."""

    def draw(p: Path) -> np.ndarray:
        text = seen(Path(re.sub(old, new, str(p)))).read_text()
        found = [f["geometry"] for f in json.loads(text)["features"]] if text else []
        with rasterio.open(p) as f:
            if not found:
                return np.zeros(f.shape, "uint8")
            moved = [rasterio.warp.transform_geom(crs, f.crs, g) for g in found]
            return rasterize(moved, f.shape, transform=f.transform, dtype="uint8")

    return draw


def newmask(p: Path) -> np.ndarray:
    """The mask beside an image of L7 Irish."""
    return kept(next(p.parent.glob("*_newmask2015.TIF")))


def grandparent(p: Path) -> str:
    """The folder above the one that a file lies in."""
    return p.parent.parent.name


def in_order(times: dict[str, Any]) -> list[str]:
    """Returns texts in their order, or in that of their numbers."""
    return sorted(times, key=int if all(t.isdigit() for t in times) else str)


def series(pattern: str, names: str, length: int = 0, **parts: Callable[[str], Any]) -> Samples:
    """Series (t, b, y, x), padded to a length.

    The place and the date of a file are the groups 1 and 2 of names, or k and t.
    """

    def read() -> list[Sample]:
        found: dict[str, dict[str, list[Path]]] = {}
        for p in files(pattern, every=True):
            m = re.search(names, str(p))
            assert m is not None
            k, t = (m["k"], m["t"]) if m.groupdict() else m.groups()
            found.setdefault(k, {}).setdefault(t, []).append(p)
        rows = []
        for k, d in found.items():
            x = np.stack([np.concatenate([pixels(p) for p in d[t]]) for t in in_order(d)])
            more = np.zeros((max(0, length - len(x)), *x.shape[1:]))
            rows.append({"image": np.concatenate([x, more])})
            rows[-1] |= {name: part(k) for name, part in parts.items()}
        return rows

    return read


def biomass(chip: str) -> np.ndarray:
    """The biomass of a chip of BioMassters."""
    return pixels(Path(f"train_agbm/{chip}_agbm.tif"))


def table(path: str, **options: Any) -> list[dict[str, str]]:
    """The rows of a CSV."""
    with open(seen(Path(path)), newline="") as f:
        return list(csv.DictReader(f, **options))


def skyscript() -> list[Sample]:
    """Images with their texts."""
    rows = table("SkyScript_train_top30pct_filtered_by_CLIP_openai.csv")
    return [{"image": pixels(Path(r["filepath"])), "text": r["title_multi_objects"]} for r in rows]


def groups(path: str, image: str, **parts: str) -> list[Sample]:
    """A sample for each group with the arrays (y, x, b) of an HDF5 file."""
    found: list[str] = []
    with h5py.File(seen(Path(path))) as f:
        f.visit(lambda name: found.append(name) if name.endswith("/" + image) else None)
        names = sorted(n.rsplit("/", 1)[0] for n in found)
        parts = {"image": image, **parts}
        return [{k: f[f"{n}/{v}"][()].transpose(2, 0, 1) for k, v in parts.items()} for n in names]


def arrays(path: str, **parts: str) -> list[Sample]:
    """A sample for each position of the first axis of arrays (n, ..., b)."""
    with h5py.File(seen(Path(path))) as f:
        whole = {k: f[v][()] for k, v in parts.items()}
    n = len(whole["image"])
    return [
        {k: np.moveaxis(x[i], -1, -3) if x.ndim > 3 else x[i] for k, x in whole.items()}
        for i in range(n)
    ]


def hdf5_files(pattern: str, image: str, **parts: str) -> list[Sample]:
    """A sample for each file of HDF5."""
    rows = []
    for p in files(pattern):
        with h5py.File(seen(p)) as f:
            row = {k: f[v][()] for k, v in {"image": image, **parts}.items()}
            rows.append({k: x if x.ndim > 2 else x[None] for k, x in row.items()})
    return rows


def boxed(pattern: str, boxes: Callable[[Path], list[list[float]]]) -> list[Sample]:
    """Images with the boxes of their objects."""
    return [{"image": pixels(p), "y": np.array(boxes(p)).reshape(-1, 4)} for p in files(pattern)]


def voc(p: Path) -> list[list[float]]:
    """Boxes of VOC XML."""
    path = re.sub("(Images)(.*)[.][a-zA-Z]+$", r"Annotations\2.xml", str(p))
    corners = ("xmin", "ymin", "xmax", "ymax")
    return [
        [float(b.findtext(c) or "nan") for c in corners]
        for b in ElementTree.parse(seen(Path(path))).iter("bndbox")
    ]


def fair1m(p: Path) -> list[list[float]]:
    """Boxes around the corners in XML of FAIR1M."""
    tree = ElementTree.parse(
        seen(Path(str(p).replace("images", "labelXml").replace(".tif", ".xml")))
    )
    every = [[q.text or "" for q in points] for points in tree.iter("points")]
    return [around([float(v) for q in points for v in q.split(",")]) for points in every]


def around(corners: Sequence[float]) -> list[float]:
    """The box around corners: x, y, x, y and so on."""
    x, y = corners[::2], corners[1::2]
    return [min(x), min(y), max(x), max(y)]


def dota(p: Path) -> list[list[float]]:
    """Boxes around the corners in text of DOTA."""
    lines = seen(Path(f"annotations/version1.0/{p.stem}.txt")).read_text().splitlines()
    return [around([float(v) for v in line.split()[:8]]) for line in lines[2:]]


def soda(p: Path) -> list[list[float]]:
    """Boxes around the corners in JSON of SODA."""
    text = seen(Path(f"Annotations/train/{p.stem}.json")).read_text()
    return [around(a["poly"]) for a in json.loads(text)["annotations"]]


def debris(p: Path) -> list[list[float]]:
    """Boxes of an array; those without an area are no objects."""
    boxes = pixels(Path(f"labels/{p.stem}.npy"))[:, :4]
    return boxes[(boxes[:, 2:] > boxes[:, :2]).all(1)].tolist()


def vhr10(p: Path) -> list[list[float]]:
    """Boxes of COCO JSON, by the name of the image."""
    said = json.loads(seen(Path("annotations.json")).read_text())
    (number,) = (i["id"] for i in said["images"] if i["file_name"] == p.name)
    boxes = (a["bbox"] for a in said["annotations"] if a["image_id"] == number)
    return [[x, y, x + w, y + h] for x, y, w, h in boxes]


def rows_of(path: str, column: str) -> Callable[[Path], list[list[float]]]:
    """Boxes of a CSV, by the column with the name of the image."""
    rows = table(path)
    return lambda p: [
        [float(r[c]) for c in ("xmin", "ymin", "xmax", "ymax")] for r in rows if r[column] == p.name
    ]


def other(pattern: str, **options: Any) -> Part:
    """The other file in a folder."""
    return lambda p: pixels(next(p.parent.glob(pattern)), **options)


def great_grandparent(p: Path) -> str:
    """The first folder of three."""
    return p.parents[2].name


def biomass_s3() -> list[Sample]:
    """One image of each patch, as a list without a header says."""
    rows = table("static_fnames-train.csv", fieldnames=["patch", "image"])
    return [
        {
            "image": pixels(Path(f"s3_olci/{r['patch']}/{r['image']}")),
            "y": pixels(Path(f"biomass/{r['patch']}.tif")),
        }
        for r in rows
    ]


def cyclone() -> list[Sample]:
    """Images with two columns of two tables."""
    speeds = {r["Image ID"]: r["Wind Speed"] for r in table("training_set_labels.csv")}
    oceans = {r["Image ID"]: r["Ocean"] for r in table("training_set_features.csv")}
    return samples(
        "train/*.jpg",
        lambda p: pixels(p)[:1],
        y=lambda p: np.float64(speeds[p.stem]),
        ocean=lambda p: np.int64(oceans[p.stem]),
    )


def usavars() -> list[Sample]:
    """Images with a column of each of two tables."""
    values = {
        name: {f"tile_{r['ID']}": np.float64(r[name]) for r in table(f"{name}.csv")}
        for name in ("treecover", "elevation")
    }
    return samples(
        "uar/*.tif",
        trees=lambda p: values["treecover"][p.stem],
        height=lambda p: values["elevation"][p.stem],
    )


def substation() -> list[Sample]:
    """Series and masks in .npz files."""
    rows = []
    for p in files("image_stack/*.npz"):
        mask = np.load(seen(Path(f"mask/{p.name}")))["arr_0"]
        rows.append({"image": np.load(seen(p))["arr_0"], "mask": mask[None]})
    return rows


def pastis() -> list[Sample]:
    """Series of different lengths, padded to 61."""
    rows = []
    for p in files("DATA_S2/*.npy"):
        x = pixels(p)
        padded = np.concatenate([x, np.zeros((61 - len(x), *x.shape[1:]))])
        number = p.stem.removeprefix("S2_")
        target = pixels(Path(f"ANNOTATIONS/TARGET_{number}.npy"))[:1]
        steps = np.arange(61) < len(x)
        rows.append({"image": padded, "mask": target, "steps": steps})
    return rows


def cowc(path: str) -> list[Sample]:
    """Images with the number after their path."""
    rows = table(path, fieldnames=["image", "y"], delimiter=" ")
    return [{"image": pixels(Path(r["image"])), "y": int(r["y"])} for r in rows]


def copernicus_bigearthnet() -> list[Sample]:
    """Images of two sensors with a column for each class."""
    rows = table("multilabel-train.csv")
    return [
        {
            "image": pixels(Path("BigEarthNet-S2-5%") / r["1"]),
            "s1": pixels(Path("BigEarthNet-S1-5%") / r["0"]),
            "y": np.array([int(r[str(i)]) for i in range(2, 21)]),
        }
        for r in rows
    ]


def bigearthnet1() -> list[Sample]:
    """Pairs of patches with the labels of a JSON file in the folder of the first."""
    rows = []
    for r in table("bigearthnet-train.csv", fieldnames=["s2", "s1"]):
        at = Path(f"BigEarthNet-v1.0/{r['s2']}/{r['s2']}_B02.tif")
        sar = Path(f"BigEarthNet-S1-v1.0/{r['s1']}/{r['s1']}_VH.tif")
        (said,) = at.parent.glob("*.json")
        rows.append(
            {
                "image": stacked(pixels, beside("B02", "B03"), beside("B02", "B04"))(at),
                "s1": pixels(sar),
                "y": json.loads(seen(said).read_text())["labels"],
            }
        )
    return many_hot(rows)


def many_hot(rows: list[Sample]) -> list[Sample]:
    """Makes a number for each class of the lists y."""
    names = sorted({name for r in rows for name in r["y"]}, key=str.encode)
    return [{**r, "y": np.array([int(name in r["y"]) for name in names])} for r in rows]


def treesat() -> list[Sample]:
    """Images with the names of a JSON file, each of which has a share."""
    said = json.loads(seen(Path("labels/TreeSatBA_v9_60m_multi_labels.json")).read_text())
    rows = [(p, said.get(p.name)) for p in files("s2/60m/*.tif")]
    return many_hot([{"image": pixels(p), "y": [s[0] for s in shares]} for p, shares in rows])


def mmearth() -> list[Sample]:
    """Arrays (n, b, y, x), with the split and the dates of JSON files."""
    name = "data_1M_v001_64"
    split, info = (
        json.loads(seen(Path(f"{name}_{what}.json")).read_text())
        for what in ("splits", "tile_info")
    )
    parts = {"image": "sentinel2", "s1": "sentinel1", "cover": "esa_worldcover", "biome": "biome"}
    with h5py.File(seen(Path(f"{name}.h5"))) as f:
        return [
            {k: f[v][i] for k, v in parts.items()} | {"date": info[str(i)]["S2_DATE"]}
            for i in split["train"]
        ]


def lc100_masks() -> list[Sample]:
    """One image of each place with its mask."""
    rows = table("static_fnames-train.csv", fieldnames=["place", "image"])
    return [
        {
            "image": pixels(Path(f"s3_olci/{r['place']}/{r['image']}")),
            "mask": kept(Path(f"lc100/{r['place']}.tif")),
        }
        for r in rows
    ]


def lc100_classes() -> list[Sample]:
    """One image of each place with a column for each class."""
    rows = table("multilabel-train.csv")
    every = table("static_fnames-train.csv", fieldnames=["place", "image"])
    images = {r["place"]: r["image"] for r in every}
    return [
        {
            "image": pixels(Path(f"s3_olci/{r['0']}/{images[r['0']]}")),
            "y": np.array([int(r[str(i)]) for i in range(1, 24)]),
        }
        for r in rows
    ]


def bigearthnet() -> list[Sample]:
    """Bands of 10 m with the labels of the table, a number for each."""
    said = {r["patch_id"]: r["labels"] for r in pq.read_table(seen(META)).to_pylist()}
    names = sorted({name for labels in said.values() for name in labels}, key=str.encode)
    parts = [beside("B02", b) for b in ("B02", "B03", "B04")]
    rows = []
    for p in files("BigEarthNet-S2/*/*/*_B02.tif"):
        y = np.array([c in said[p.parent.name] for c in names])
        rows.append({"image": stacked(*parts)(p), "y": y})
    return rows


META = Path("metadata.parquet")


def major_tom(bands: Sequence[str]) -> list[Sample]:
    """Rasters in the cells of Parquet, of places that a table beside calls clear."""
    said = {r["grid_cell"]: r["cloud_cover"] for r in pq.read_table(seen(META)).to_pylist()}
    rows = [r for p in files("images/*.parquet") for r in pq.read_table(seen(p)).to_pylist()]
    return [
        {
            "image": np.concatenate([raster(BytesIO(r[b])) for b in bands]),
            "mask": raster(BytesIO(r["cloud_mask"]), keep=True),
        }
        for r in rows
        if said[r["grid_cell"]] < 25
    ]


def geo_bench(name: str, image: str, split: str = "", **parts: str) -> list[Sample]:
    """The samples of a Tortilla, of all splits or of one: rasters, and labels of their rows."""
    rows = []
    for row, data in tortilla.read(seen(Path(f"geobench_{name}.tortilla")).read_bytes()):
        inner = {r["tortilla:id"]: BytesIO(file) for r, file in tortilla.read(data)}
        made = {k: raster(inner[v], keep=k == "mask") for k, v in {"image": image, **parts}.items()}
        if not split or row["tortilla:data_split"] == split:
            rows.append(made | ({"y": row["labels"]} if "labels" in row else {}))
    return many_hot(rows) if "y" in rows[0] else rows


def stores(found: dict[str, dict[str, bytes]], **parts: str) -> list[Sample]:
    """Arrays (n, t, b, y, x) or (t, b, y, x) of ZIPs of Zarr in folders of sensors, by name."""
    rows = []
    for name in next(iter(found.values())):
        whole = {}
        for field, part in parts.items():
            sensors, array = part.split("::")
            (data,) = (found[s][name] for s in sensors.split("|") if name in found[s])
            whole[field] = zarr_zip.read(data, array)
        each = zip(*whole.values(), strict=True) if whole["image"].ndim > 4 else [whole.values()]
        rows += [dict(zip(whole, row, strict=True)) for row in each]
    return [{k: x[:, None] if x.ndim == 3 else x for k, x in row.items()} for row in rows]


def shards(root: str, *sensors: str) -> dict[str, dict[str, bytes]]:
    """The ZIPs in the tars of each sensor, by name."""
    return {
        s: {name: data for p in files(f"{root}/{s}/*.tar") for name, data in members(p).items()}
        for s in sensors
    }


def ssl4eo(*sensors: str) -> dict[str, dict[str, bytes]]:
    """The ZIPs of each sensor that a list names."""
    names = seen(Path("splits/ssl4eos12_train.txt")).read_text().split()
    return {s: {n: seen(Path("train", s, n)).read_bytes() for n in names} for s in sensors}


AGRI = "ref_agrifieldnet_competition_v1"
WHITE, BLUE, CYAN, GREEN = (255, 255, 255), (0, 0, 255), (0, 255, 255), (0, 255, 0)
YELLOW, RED, PINK, BLACK = (255, 255, 0), (255, 0, 0), (255, 0, 255), (0, 0, 0)
ISPRS = dict(zip((WHITE, BLUE, CYAN, GREEN, YELLOW, RED), range(1, 7), strict=True)) | {None: 0}
DEEPGLOBE = dict(zip((CYAN, YELLOW, PINK, GREEN, BLUE, WHITE, BLACK), range(7), strict=True))
COVER = (10, 20, 30, 40, 50, 60, 70, 80, 90, 95, 100)
LANDSAT = [f"SR_B{i}" for i in range(1, 8)]
OSCD = [f"B{i:02}" for i in range(1, 13)]

# A folder of TorchGeo's tests, and the samples of its files.


def flair1() -> list[Sample]:
    """Images, masks in a folder beside, and a member of each image in a JSON of objects by name."""
    said = json.loads(seen(Path("flair-1_metadata_aerial.json")).read_text())
    return samples(
        "flair_aerial_train/*/*/img/*.tif",
        mask=lambda p: kept(
            Path(str(p).replace("aerial", "labels").replace("img", "msk").replace("IMG", "MSK"))
        ),
        camera=lambda p: said[p.stem]["camera"],
    )


def listed(pattern: str, path: str, name: Callable[[Path], str], **parts: Part) -> Samples:
    """The images of a glob whose name is in the first column of a list."""

    def read() -> list[Sample]:
        lines = seen(Path(path)).read_text().splitlines()
        chosen = {line.split(",")[0] for line in lines}
        rows = []
        for p in files(pattern, every=True):
            if name(p) in chosen:
                rows.append({"image": pixels(p), **{k: part(p) for k, part in parts.items()}})
        return rows

    return read


def padded(pattern: str, length: int) -> Samples:
    """Arrays (t, b, y, x), padded to a length."""

    def read() -> list[Sample]:
        rows = [np.load(seen(p)) for p in files(pattern)]
        return [
            {"image": np.concatenate([x, np.zeros((length - len(x), *x.shape[1:]))])} for x in rows
        ]

    return read


def sen2fire() -> list[Sample]:
    """Three arrays of a file."""
    rows = []
    for p in files("*/*.npz"):
        x = np.load(seen(p))
        row = {"image": x["image"], "aerosol": x["aerosol"][None].astype("float32")}
        rows.append(row | {"mask": x["label"][None]})
    return rows


def fmow() -> list[Sample]:
    """Images of the class of their folder, and a number of a JSON beside each."""

    def clouds(p: Path) -> np.int64:
        return np.int64(json.loads(seen(p.with_suffix(".json")).read_text())["cloud_cover"])

    return numbered(samples("*/*/*.jpg", y=grandparent, clouds=clouds), "y")


def xbd(p: Path) -> list[list[float]]:
    """Boxes around the outlines in pixels in JSON of xBD."""
    path = Path(f"labels/{p.stem}.json")
    objects = json.loads(seen(path).read_text())["features"]["xy"]
    return [around([float(v) for v in re.findall(r"[-0-9.]+", o["wkt"])]) for o in objects]


def cubes(pattern: str, *names: str, **parts: Part) -> Samples:
    """Arrays (t, y, x), or (y, x), of files of HDF5, as one band."""

    def read() -> list[Sample]:
        rows = []
        for p in files(pattern):
            with h5py.File(seen(p)) as f:
                found = [f[n][()] for n in names]
            row = {
                ("image", "red", "mask")[k]: x[:, None] if x.ndim == 3 else x[None]
                for k, x in enumerate(found)
            }
            rows.append(row | {k: part(p) for k, part in parts.items()})
        return rows

    return read


def boundaries() -> list[Sample]:
    """The cubes of AI4Boundaries that a table calls of the part train, with their masks."""
    train = [r["file_id"] for r in table("sampling.csv") if r["split"] == "train"]
    mask = beside("images/(.*)_S2_10m_256.nc", r"masks/\1_S2label_10m_256.tif")
    rows = cubes("sentinel2/images/*/*.nc", "NDVI", mask=mask)()
    every = files("sentinel2/images/*/*.nc")
    return [
        r for p, r in zip(every, rows, strict=True) if p.name[: -len("_S2_10m_256.nc")] in train
    ]


def opaque(p: Path) -> np.ndarray:
    """The bands before alpha, 0 where that is."""
    x = pixels(p)
    return x[:-1] * (x[-1:] > 0)


def worldstrat(tile: str) -> np.ndarray:
    """The fine image of a tile."""
    return pixels(Path(f"hr_dataset/{tile}/{tile}_ps.tiff"))


def mados() -> list[Sample]:
    """The crops of scenes whose scene and number a list has in one name, a file a band."""
    chosen = seen(Path("splits/train_X.txt")).read_text().split()
    rows = []
    for p in files("*/10/*_L2R_rhorc_492_*.tif", every=True):
        if f"{p.parents[1].name}_{p.stem.split('_')[-1]}" in chosen:
            image = stacked(pixels, beside("10/(.*)_492_", r"10/\1_560_"))
            mask = label("rhorc_492", "cl")
            rows.append({"image": image(p), "mask": mask(p)})
    return rows


def multisenge() -> list[Sample]:
    """Series of patches, whose tile and corner are in their names around the date."""
    name = r"s2/(?P<tile>[^_]*)_(?P<t>\d+)_S2_(?P<at>\d+_\d+)"
    found: dict[tuple[str, str], dict[str, np.ndarray]] = {}
    for p in files("s2/*.tif", every=True):
        m = re.match(name, str(p))
        assert m is not None
        found.setdefault((m["tile"], m["at"]), {})[m["t"]] = pixels(p)
    return [
        {
            "image": np.stack([d[t] for t in sorted(d)]),
            "mask": kept(Path(f"ground_reference/{tile}_GR_{at}.tif")),
        }
        for (tile, at), d in sorted(found.items(), key=lambda f: "_".join(f[0]))
    ]


SETS: dict[str, tuple[str, Samples]] = {
    "EuroSAT": ("eurosat", classes("ds/**/*.tif")),
    "RESISC45": ("resisc45", classes("NWPU-RESISC45/*/*.jpg")),
    "PatternNet": ("patternnet", classes("PatternNet/images/*/*.jpg")),
    "FireRisk": ("fire_risk", classes("FireRisk/train/*/*.png")),
    "Million-AID": ("millionaid", classes("train/**/*.jpg")),
    "Copernicus-Bench EuroSAT-S1": (
        "copernicus/l2_eurosat_s1s2/eurosat_s1",
        classes("all_imgs/*/*.tif"),
    ),
    "Copernicus-Bench EuroSAT-S2": (
        "copernicus/l2_eurosat_s1s2/eurosat_s2",
        classes("all_imgs/*/*.tif"),
    ),
    "Aboveground Woody Biomass": ("agb_live_woody_density", of("*.tif")),
    "Airphen": ("airphen", of("*.tif")),
    "ASTER GDEM": ("astergdem", of("*.tif")),
    "CDL": ("cdl", of("*/*.tif", kept)),
    "Chesapeake land use": ("chesapeake/lulc", of("*.tif", kept)),
    "CMS Mangrove Canopy": ("cms_mangrove_canopy", of("*/data/Mangrove_agb_*.tif")),
    "EnMAP": ("enmap", of("*.tiff")),
    "Esri 2020 Land Cover": ("esri2020", of("*/*.tif", kept)),
    "EU-DEM": ("eudem", of("*.TIF")),
    "Global Building Map": ("gbm", of("*.tif", kept)),
    "GlobBiomass": ("globbiomass", of("*_agb.tif", error=beside("_agb", "_agb_err"))),
    "NCCM": ("nccm", of("*.tif", kept)),
    "NLCD": ("nlcd", of("*.tif", kept)),
    "South America Soybean": ("south_america_soybean", of("*.tif", kept)),
    "Landsat 8 and 9": (
        "landsat8",
        of("*_SR_B1.TIF", stacked(*(beside("SR_B1", b) for b in LANDSAT))),
    ),
    "Sentinel-1 RTC": ("sentinel1", of("*/*_VV.tif", stacked(pixels, beside("_VV.", "_VH.")))),
    "HySpecNet-11k": ("hyspecnet", of("*/patches/*.TIF")),
    "GID-15": (
        "gid15/GID",
        of("img_dir/train/*.tif", mask=label("img_(dir.*).tif", r"ann_\1_15label.png")),
    ),
    "DeepGlobe Land Cover": (
        "deepglobelandcover/data/training_data",
        of(
            "images/*_sat.jpg",
            mask=mapped(beside("images(.*)_sat.jpg", r"masks\1_mask.png"), DEEPGLOBE),
        ),
    ),
    "LandCover.ai scenes": ("landcoverai", of("images/*.tif", mask=label("images", "masks"))),
    "LandCover.ai tiles": (
        "landcoverai/output",
        of("*.jpg", mask=label(".jpg", "_m.png", bands=[0])),
    ),
    "LEVIR-CD+": (
        "levircd/levircdplus/LEVIR-CD+/train",
        of("A/*.png", after=beside("A/", "B/"), mask=label("A/", "label/")),
    ),
    "LEVIR-CD": (
        "levircd/levircd",
        of("A/train_*.png", after=beside("A/", "B/"), mask=label("A/", "label/")),
    ),
    "BRIGHT": (
        "bright/dfc25_track2_trainval/train",
        of(
            "pre-event/*.tif",
            after=beside("pre-event(.*)_pre_", r"post-event\1_post_"),
            mask=label("pre-event(.*)_pre_disaster", r"target\1_building_damage"),
        ),
    ),
    "xView2": (
        "xview2/train",
        of(
            "images/*_pre_disaster.png",
            after=beside("_pre_", "_post_"),
            mask=label("images(.*)_pre_disaster", r"targets\1_post_disaster_target"),
        ),
    ),
    "Solar Plants Brazil": (
        "solar_plants_brazil/train",
        of("input/*.tif", mask=label("input/img", "labels/target")),
    ),
    "FTW": (
        "ftw/austria",
        of(
            "s2_images/window_a/*.tif",
            b=beside("window_a", "window_b"),
            mask=label("s2_images/window_a", "label_masks/semantic_3class"),
        ),
    ),
    "OSCD": (
        "oscd",
        of(
            "*Images/train*/imgs_1_rect/B01.tif",
            stacked(*(beside("B01", b) for b in OSCD)),
            after=stacked(*(beside("imgs_1(.*)B01", rf"imgs_2\g<1>{b}") for b in OSCD)),
            mask=label("Images(/train.*)/imgs_1_rect/B01.tif", r"Train Labels\1/cm/cm.png"),
        ),
    ),
    "MDAS": (
        "mdas/Augsburg_data_4_publication",
        of(
            "*/3K_RGB_*.tif",
            hsi=beside("3K_RGB", "EeteS_EnMAP_10m"),
            water=label("3K_RGB", "osm_water"),
        ),
    ),
    "SSL4EO-L benchmark": (
        "ssl4eo_benchmark_landsat",
        of(
            "ssl4eo_l_etm_sr_benchmark/*/*/*.tif",
            mask=label("etm_sr_benchmark(.*)all_bands", r"etm_nlcd\1nlcd_2019"),
        ),
    ),
    "SSL4EO-L": ("ssl4eo/l/ssl4eo_l_etm_sr", of("*/*/all_bands.tif")),
    "Copernicus-Bench Cloud-S2": (
        "copernicus/l1_cloud_s2/cloud_s2",
        of("s2_toa/*.tif", mask=label("s2_toa", "cloud")),
    ),
    "Copernicus-Bench Cloud-S3": (
        "copernicus/l1_cloud_s3/cloud_s3",
        of(
            "s3_olci/*.tif",
            binary=label("s3_olci", "cloud_binary"),
            multi=label("s3_olci", "cloud_multi"),
        ),
    ),
    "Copernicus-Bench DFC2020": (
        "copernicus/l2_dfc2020_s1s2/dfc2020_s1s2",
        of("s2/*.tif", s1=beside("s2", "s1"), mask=label("s2(.*)_s2_", r"dfc\1_dfc_")),
    ),
    "Copernicus-Bench AirQuality-S5P": (
        "copernicus/l3_airquality_s5p/airquality_s5p/no2",
        of(
            "s5p_annual/*/2021-01-01_2021-12-31.tif",
            y=beside("s5p_annual(.*)/2021.*", r"label_annual\1.tif"),
        ),
    ),
    "Inria Aerial Image Labeling": (
        "inria/AerialImageDataset/train",
        of("images/*.tif", mask=label("images", "gt", bands=[0])),
    ),
    "L8 Biome": ("l8biome/l8biome", of("*/*/*[0-9].TIF", mask=label(".TIF", "_fixedmask.TIF"))),
    "L7 Irish": ("l7irish/l7irish", of("*/*/L71*.TIF", mask=newmask)),
    "ISPRS Vaihingen": (
        "vaihingen",
        of("top_*.tif", mask=mapped(lambda p: kept("top" / p), ISPRS)),
    ),
    "ISPRS Potsdam": (
        "potsdam",
        of(
            "4_Ortho_RGBIR/*.tif",
            mask=mapped(label("4_Ortho_RGBIR/(.*)_RGBIR", r"\1_label"), ISPRS),
        ),
    ),
    "NAIP": ("naip", of("*.tif")),
    "EnviroAtlas": (
        "enviroatlas/enviroatlas_lotp",
        of("*/*_a_naip.tif", roads=label("_a_naip", "_c_roads")),
    ),
    "Chesapeake CVPR": ("chesapeake/cvpr", of("*/*_naip-new.tif", mask=label("_naip-new", "_lc"))),
    "TreeSatAI (labels)": ("treesatai", treesat),
    "MMEarth": ("mmearth/data_1M_v001_64", mmearth),
    "BigEarthNet 1": ("bigearthnet/v1", bigearthnet1),
    "TreeSatAI": (
        "treesatai",
        of("aerial/60m/*.tif", s1=beside("aerial", "s1"), s2=beside("aerial", "s2")),
    ),
    "CaFFe": (
        "caffe/caffe",
        of("sar_images/train/*.png", mask=label("sar_images(.*)__", r"zones\1_zones__")),
    ),
    "DFC2022": (
        "dfc2022/labeled_train",
        of(
            "*/BDORTHO/*.tif",
            dem=beside("BDORTHO(.*).tif", r"RGEALTI\1_RGEALTI.tif"),
            mask=label("BDORTHO(.*).tif", r"UrbanAtlas\1_UA2012.tif"),
        ),
    ),
    "ETCI2021": (
        "etci2021/train",
        of(
            "*/tiles/vv/*.png",
            vh=beside("vv/(.*)_vv", r"vh/\1_vh"),
            mask=label("vv/(.*)_vv", r"flood_label/\1"),
        ),
    ),
    "LoveDA": (
        "loveda/Train",
        of("*/images_png/*.png", mask=label("images_png", "masks_png"), zone=grandparent),
    ),
    "MMFlood": (
        "mmflood/activations",
        of("*/s1_raw/*.tif", dem=beside("s1_raw", "DEM"), mask=label("s1_raw", "mask")),
    ),
    "SEN12MS": (
        "sen12ms",
        of(
            "*/s2_*/*.tif",
            s1=beside("s2_", "s1_"),
            mask=label("s2_", "lc_"),
        ),
    ),
    "MapInWild": (
        "mapinwild",
        of("s2_summer/*/*.tif", mask=label("s2_summer/[^/]*/", "mask/mask/")),
    ),
    "Satlas": (
        "satlas/landsat",
        of("*/b1/*.png", stacked(*(beside("/b1/", f"/b{i}/") for i in range(1, 8)))),
    ),
    "CV4A Kenya Crop Type": (
        "cv4a_kenya_crop_type/data",
        series(
            "*/*/*_B0[23]_*.tif", r"(\d+)/(\d+)/", mask=lambda t: kept(Path(f"{t}/{t}_label.tif"))
        ),
    ),
    "South Africa Crop Type": (
        "south_africa_crop_type/train",
        series(
            "imagery/s2/*/*/*_B0[23]_10m.tif",
            r"s2/(\d+)/([^/]*)",
            mask=lambda t: kept(Path(f"labels/{t}.tif")),
        ),
    ),
    "SeCo": (
        "seco/seasonal_contrast_1m",
        series("*/*/B[234].tif", r"^(\d+)/([^/]*)"),
    ),
    "SSL4EO-S12": ("ssl4eo/s12/s2a", series("*/*/B[234].tif", r"^(\d+)/([^/]*)")),
    "SpaceNet 1": (
        "spacenet/spacenet1/SN1_buildings/train",
        of("8band/*.tif", roof=shapes("8band/8band_(.*).tif", r"geojson/Geo_\1.geojson")),
    ),
    "SkyScript": ("skyscript", skyscript),
    "BioMassters": (
        "biomassters",
        series("train_features/*_S1_*.tif", r"features/(\w+)_S1_(\d+)", 12, mask=biomass),
    ),
    "Rwanda Field Boundary": (
        "rwanda_field_boundary",
        series(
            "source/train/*/*_B0[1-4].tif",
            r"train/(?P<t>[^/]*)/(?P<k>\d+)_",
            mask=lambda k: kept(Path(f"labels/train/{k}.tif")),
        ),
    ),
    "Cloud Cover Detection": (
        "ref_cloud_cover_detection_challenge_v1/public",
        of(
            "train_features/*/B02.tif",
            stacked(*(beside("B02", b) for b in ("B02", "B03", "B04", "B08"))),
            mask=label("features(.*)/B02", r"labels\1"),
        ),
    ),
    "AgriFieldNet": (
        "agrifieldnet",
        of(
            "source/*/*_B01_10m.tif",
            stacked(*(beside("B01", b) for b in ("B01", "B02", "B03", "B04"))),
            mask=label("source/.*_source_(.*)_B01_10m", rf"train_labels/{AGRI}_labels_train_\1"),
        ),
    ),
    "ADVANCE": ("advance", classes("vision/*/*.jpg")),
    "UC Merced": ("ucmerced", classes("UCMerced_LandUse/Images/*/*.tif")),
    "PRISMA": ("prisma", of("*.tif")),
    "CaBuAr": ("cabuar", lambda: groups("512x512.hdf5", "pre_fire", after="post_fire")),
    "ChaBuD": ("chabud", lambda: groups("train_eval.hdf5", "pre_fire", after="post_fire")),
    "QuakeSet": ("quakeset", lambda: groups("earthquakes.h5", "before", after="post")),
    "So2Sat": (
        "so2sat/random",
        lambda: arrays("training.h5", image="sen2", sen1="sen1", y="label"),
    ),
    "Copernicus-Bench LCZ-S2": (
        "copernicus/l3_lcz_s2",
        lambda: arrays("lcz_train.h5", image="sen2", y="label"),
    ),
    "SKIPP'D": (
        "skippd",
        lambda: arrays(
            "2017_2019_images_pv_processed_nowcast.hdf5",
            image="trainval/images_log",
            y="trainval/pv_log",
        ),
    ),
    "ZueriCrop": ("zuericrop", lambda: arrays("ZueriCrop.hdf5", image="data", mask="gt")),
    "CropHarvest": ("cropharvest/features/arrays", lambda: hdf5_files("*.h5", "array")),
    "Digital Typhoon": ("digital_typhoon/WP/image", lambda: hdf5_files("*/*.h5", "Infrared")),
    "DL4GAM Alps": (
        "dl4gam_alps/dataset_large",
        lambda: hdf5_files("*/*.nc", "band_data", dem="dem"),
    ),
    "DIOR": ("dior", lambda: boxed("Images/trainval/*.jpg", voc)),
    "Forest Damage": ("forestdamage", lambda: boxed("*/*/Images/*.JPG", voc)),
    "FAIR1M": ("fair1m/train", lambda: boxed("*/images/*.tif", fair1m)),
    "DOTA": ("dota/train", lambda: boxed("images/*.png", dota)),
    "SODA": ("soda", lambda: boxed("Images/0000[123].jpg", soda)),
    "NASA Marine Debris": ("nasa_marine_debris", lambda: boxed("source/*.tif", debris)),
    "NWPU VHR-10": (
        "vhr10/NWPU VHR-10 dataset",
        lambda: boxed("positive image set/*.jpg", vhr10),
    ),
    "EverWatch": (
        "everwatch/everwatch-benchmark",
        lambda: boxed("train*.png", rows_of("train.csv", "image_path")),
    ),
    "ReforesTree": (
        "reforestree",
        lambda: boxed("tiles/*/*.png", rows_of("mapping/final_dataset.csv", "img_path")),
    ),
    "SpaceNet 6": (
        "spacenet/spacenet6/SN6_buildings/train/train/AOI_11_Rotterdam",
        of("PS-RGB/*.tif", sar=beside("PS-RGB", "SAR-Intensity")),
    ),
    "Smallholder Cashew Benin": (
        "technoserve-cashew-benin",
        of(
            "imagery/*/*/*_B01_10m.tif",
            stacked(*(beside("B01", b) for b in ("B01", "B02", "B03"))),
            mask=shapes(r"imagery/(\d+)/.*", r"labels/\1.geojson", crs="EPSG:32631"),
        ),
    ),
    "IDTReeS": (
        "idtrees/train/RemoteSensing",
        of("RGB/*.tif", hsi=beside("RGB", "HSI"), chm=beside("RGB", "CHM")),
    ),
    "Copernicus-Bench Flood-S1": (
        "copernicus/l3_flood_s1/flood_s1/data",
        of(
            "*/*/*/MS1_IVV_*.tif",
            stacked(pixels, other("MS1_IVH_*")),
            mask=other("MK0_*", keep=True),
        ),
    ),
    "Copernicus-Bench Biomass-S3": (
        "copernicus/l3_biomass_s3/biomass_s3",
        biomass_s3,
    ),
    "SeasoNet": (
        "seasonet",
        of(
            "fall/*/*/*_10m_RGB.tif",
            stacked(pixels, beside("RGB", "IR")),
            mask=label("10m_RGB", "labels"),
        ),
    ),
    "Tropical Cyclone": ("cyclone", cyclone),
    "USAVars": ("usavars", usavars),
    "Million-AID (all levels)": (
        "millionaid/train",
        lambda: numbered(
            samples("*/*/*/*.jpg", coarse=great_grandparent, fine=folder), "coarse", "fine"
        ),
    ),
    "Substation": ("substation", substation),
    "PASTIS": ("pastis/PASTIS-R", pastis),
    "IO Bench": (
        "iobench/preprocessed",
        of("landsat/*_SR_B1.TIF", stacked(*(beside("SR_B1", b) for b in LANDSAT))),
    ),
    "COWC counting": ("cowc_counting", lambda: cowc("COWC_train_list_64_class.txt")),
    "COWC detection": ("cowc_detection", lambda: cowc("COWC_train_list_detection.txt")),
    "Copernicus-Bench BigEarthNet": (
        "copernicus/l2_bigearthnet_s1s2/bigearthnet_s1s2",
        copernicus_bigearthnet,
    ),
    "Copernicus-Bench LC100 (classes)": ("copernicus/l2_lc100_s3/lc100_s3", lc100_classes),
    "Copernicus-Bench LC100 (masks)": ("copernicus/l2_lc100_s3/lc100_s3", lc100_masks),
    "BigEarthNet 2": ("bigearthnet/v2", bigearthnet),
    "SEN12MS-CR": (
        "sen12mscr",
        of(
            "*_s2_cloudy/*/*.tif",
            s1=beside("s2_cloudy", "s1"),
            clear=beside("s2_cloudy", "s2"),
        ),
    ),
    "Sen1Floods11": (
        "sen1floods11/v1.1",
        listed(
            "data/flood_events/HandLabeled/S2Hand/*.tif",
            "splits/flood_handlabeled/flood_train_data.csv",
            lambda p: p.name.replace("S2Hand", "S1Hand"),
            s1=beside("S2Hand", "S1Hand"),
            mask=label("S2Hand", "LabelHand"),
        ),
    ),
    "FLAIR #1": ("flair", flair1),
    "FLAIR #2": ("flair", padded("flair_sen_train/*/*/sen/*_data.npy", 120)),
    "OpenEarthMap": (
        "openearthmap",
        listed("*/images/*.tif", "train.txt", lambda p: p.name, mask=label("images", "labels")),
    ),
    "MARIDA": (
        "marida",
        listed(
            "patches/*/*_[0-9].tif",
            "splits/train_X.txt",
            lambda p: p.stem.removeprefix("S2_"),
            mask=label(".tif", "_cl.tif"),
        ),
    ),
    "DynamicEarthNet": (
        "dynamicearthnet",
        of(
            "planet/*/*/*/PF-SR/*-01.tif",
            mask=lambda p: kept(
                next(
                    Path(f"labels/{p.parts[3]}_{p.parts[1]}").glob(
                        f"Labels/Raster/*/*-{p.stem.replace('-', '_')}.tif"
                    )
                )
            ),
        ),
    ),
    "WorldStrat": (
        "worldstrat",
        series(
            "lr_dataset/*/L2A/*_data.tiff",
            r"lr_dataset/(?P<k>[^/]*)/.*-(?P<t>\d+)-L2A",
            hr=worldstrat,
        ),
    ),
    "Sen2Fire": ("sen2fire", sen2fire),
    "fMoW": ("fmow/train", fmow),
    "SpaceNet 7": (
        "spacenet7/train",
        of(
            "*/images/*.tif",
            opaque,
            roof=shapes("images/(.*).tif", r"labels/\1_Buildings.geojson", crs="EPSG:3857"),
        ),
    ),
    "xView2 (damage)": ("xbd/train", lambda: boxed("images/*_post_disaster.png", xbd)),
    "AI4Boundaries": ("ai4boundaries", boundaries),
    "Sen4AgriNet": (
        "sen4agrinet/2019",
        cubes("*/*.nc", "B02/B02", "B05/B05", "labels/labels"),
    ),
    "MADOS": ("mados", mados),
    "MultiSenGE": ("multisenge", multisenge),
    "WorldCover": (
        "worldcover",
        of("*_Map.tif", mapped(kept, {v: i for i, v in enumerate(COVER)} | {None: 255})),
    ),
    "Major TOM": ("majortom/Core-S2L2A", lambda: major_tom(("B04", "B03", "B02"))),
    "Major TOM (files)": (
        "majortom/unpacked/Core-S2L2A",
        of(
            "*/*/*/B04.tif",
            stacked(*(beside("B04", b) for b in ("B04", "B03", "B02"))),
            mask=label("B04", "cloud_mask"),
        ),
    ),
    "GEO-Bench 2 (classes)": ("geobench2/benv2", lambda: geo_bench("benv2", "s2", s1="s1")),
    "GEO-Bench 2 (masks)": (
        "geobench2/caffe",
        lambda: geo_bench("caffe", "img", split="train", mask="mask"),
    ),
    "SSL4EO-S12 1.1": (
        "ssl4eo-s12/hub",
        lambda: stores(
            shards("train", "S2L2A", "S1GRD"),
            image="S2L2A::bands",
            s1="S1GRD::bands",
            clouds="S2L2A::cloud_mask",
        ),
    ),
    "SSL4EO-S12 1.1 (ZIPs)": (
        "ssl4eo-s12",
        lambda: stores(
            ssl4eo("S2L2A", "S1GRD"),
            image="S2L2A::bands",
            s1="S1GRD::bands",
            clouds="S2L2A::cloud_mask",
        ),
    ),
    "TerraMesh": (
        "TerraMesh",
        lambda: stores(
            shards("val", "S2L2A", "S1GRD", "S1RTC", "LULC"),
            image="S2L2A::bands",
            s1="S1GRD|S1RTC::bands",
            mask="LULC::bands",
        ),
    ),
} | RECENT
