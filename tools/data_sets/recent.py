"""The samples of data sets of texts, of labels of classes in files of their own, and of stacks."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import h5py
import numpy as np
from judge import Sample, beside, files, pixels, seen


def text(path: str | Path) -> Any:
    """Returns the JSON of a file."""
    return json.loads(seen(Path(path)).read_text())


def vrsbench() -> list[Sample]:
    """Images with a caption, and boxes in shares of the image."""
    rows = []
    for p in files("Images_train/*.png"):
        said, x = text(f"Annotations_train/{p.stem}.json"), pixels(p)
        height, width = x.shape[1:]
        boxes = np.array([o["obj_coord"] for o in said["objects"]])
        boxes = (boxes * [width, height, width, height]).astype(np.float32)
        rows.append({"image": x, "text": said["caption"], "y": boxes})
    return rows


def earthvqa() -> list[Sample]:
    """A sample for each question of an image."""
    return [
        {
            "image": pixels(Path("Train/images_png") / name),
            "mask": pixels(Path("Train/masks_png") / name, keep=True),
            "question": asked["Question"],
            "answer": asked["Answer"],
        }
        for name, questions in text("Train_QA.json").items()
        for asked in questions
    ]


def rsvg() -> list[Sample]:
    """A sample for each object of all files that the list has, by its number."""
    numbers = {int(line) for line in seen(Path("train.txt")).read_text().split()}
    rows, corners = [], ("xmin", "ymin", "xmax", "ymax")
    for p in files("Annotations/*.xml"):
        root = ElementTree.parse(seen(p)).getroot()
        x = pixels(Path("JPEGImages") / str(root.findtext("filename")))
        for o in root.iter("object"):
            box = np.array([int(str(o.findtext(f"bndbox/{c}"))) for c in corners])
            rows.append({"image": x, "text": o.findtext("description"), "box": box})
    return [row for k, row in enumerate(rows) if k in numbers]


def nwpu() -> list[Sample]:
    """The images of a split by class, with two of their captions."""
    return [
        {
            "image": pixels(Path("NWPU_images") / name / one["filename"]),
            "text": one["raw"],
            "other": one["raw_1"],
            "y": k,
        }
        for k, (name, images) in enumerate(text("dataset_nwpu.json").items())
        for one in images
        if one["split"] == "train"
    ]


def phileo() -> list[Sample]:
    """The samples (n, y, x, b) in several files."""
    rows = []
    for p in files("*_train_s2.npy"):
        x = np.load(seen(p))
        roads = np.load(seen(Path(str(p).replace("_s2", "_label_roads"))))
        rows += [
            {"image": i.transpose(2, 0, 1), "roads": r.transpose(2, 0, 1)}
            for i, r in zip(x, roads, strict=True)
        ]
    return rows


def contrails() -> list[Sample]:
    """The fifth of eight steps (y, x, t) of two bands, and its mask."""
    rows = []
    for mask in files("train/*/human_pixel_masks.npy"):
        bands = [np.load(seen(mask.parent / f"band_0{k}.npy"))[..., 4] for k in (8, 9)]
        rows.append({"image": np.stack(bands), "mask": np.load(seen(mask)).transpose(2, 0, 1)})
    return rows


def agbd() -> list[Sample]:
    """Samples (n, y, x) of groups of HDF5, with a number."""
    rows = []
    for p in files("*.h5"):
        with h5py.File(seen(p)) as f:
            for group in f.values():
                bands = [group[f"S2_bands/{b}"][()] for b in ("B02", "B03")]
                values = group["GEDI/agbd"][()]
                rows += [
                    {"image": np.stack(x), "y": y} for *x, y in zip(*bands, values, strict=True)
                ]
    return rows


def population() -> list[Sample]:
    """Images with the population that the table of their city has."""
    rows = []
    for p in files("train/*/sen2autumn/*/*.tif"):
        city = p.parts[1]
        with open(seen(Path(f"train/{city}/{city}.csv"))) as f:
            of = {row["GRD_ID"]: int(row["POP"]) for row in csv.DictReader(f)}
        rows.append({"image": pixels(p), "y": of[p.name.removesuffix("_sen2autumn.tif")]})
    return rows


def landcovernet() -> list[Sample]:
    """Series of scenes of two bands, and the first band of the labels."""
    rows = []
    for labels in files("ref_landcovernet_af_v1_labels_*/labels.tif"):
        tile = labels.parent.name.removeprefix("ref_landcovernet_af_v1_labels_")
        scenes = files(f"ref_landcovernet_af_v1_source_sentinel_2_{tile}_*/B02.tif", every=True)
        x = [np.concatenate([pixels(p), pixels(p.with_name("B03.tif"))]) for p in scenes]
        rows.append({"image": np.stack(x), "mask": pixels(labels, [0], keep=True)})
    return rows


def classes(*names: str) -> Callable[[Path], np.ndarray]:
    """Reads masks of one class a file as the numbers of the last classes from 1."""

    def read(p: Path) -> np.ndarray:
        out = np.zeros((1, *pixels(p).shape[1:]), int)
        for k, name in enumerate(names):
            path = Path(f"labels/{name}/{p.stem}.png")
            if path.exists():
                out[pixels(path, keep=True) > 0] = k + 1
        return out

    return read


def agriculture() -> list[Sample]:
    """Colours and near infrared, and a class for each pixel."""
    mask, nir = classes("double_plant", "drydown", "water"), beside("rgb", "nir")
    return [
        {"image": np.concatenate([pixels(p), nir(p)]), "mask": mask(p)}
        for p in files("images/rgb/*.jpg")
    ]


RECENT: dict[str, tuple[str, Callable[[], list[Sample]]]] = {
    "VRSBench": ("vrsbench", vrsbench),
    "EarthVQA": ("earthvqa", earthvqa),
    "DIOR-RSVG": ("rsvg", rsvg),
    "NWPU-Captions": ("nwpu_captions", nwpu),
    "PhilEO Bench": ("phileo", phileo),
    "Google Contrails": ("contrails", contrails),
    "AGBD": ("agbd", agbd),
    "So2Sat POP": ("so2sat_pop", population),
    "LandCoverNet": ("landcovernet", landcovernet),
    "Agriculture-Vision": ("agriculture_vision/train", agriculture),
}
