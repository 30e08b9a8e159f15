"""Ids and keys of tables mean the samples that maps of strings find, of every kind of dataset."""

from __future__ import annotations

import random
import re
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import rasters
from test_ids import ABOUT

import chaski

pytestmark = pytest.mark.usefixtures("one_engine")

pytest.importorskip("rasterio", reason="needs rasterio to write rasters")

FOLDERS = ["", "a/", "b/", "x/a/"]
BASES = ["007", "7", "07", "12", "k", "k1"]
SAMPLES = 9


def ends(text: str) -> list[str]:
    parts = text.split("/")
    return ["/".join(parts[i:]) for i in range(len(parts))]


def stem(text: str) -> str:
    return re.sub(r"\.(tif|png|npy)$", "", text)


def matches(names: list[str], key: str, text: str) -> list[tuple[str, tuple[int, int, int]]]:
    """The names that the ends of a text have, and how near they are."""
    stems = {stem(name): name for name in names}
    found = []
    for end in ends(text):
        short = stem(end).lstrip("0") or "0"
        parts = end.count("/")
        if end in names:
            found.append((end, (3, parts, 2 if end == key else int(end == text))))
        elif stem(end) in stems:
            found.append((stems[stem(end)], (2, parts, 0)))
        elif stem(end).isdigit() and stem(end).startswith("0") and short in names:
            found.append((short, (1, 0, 0)))
    return found


def joined(names: list[str], samples: list[list[str]], one: bool) -> list[str | None] | None:
    """The name of each sample, whose key comes first among what it is called; None if one means
    several, or one sample has two.
    """
    hits: list[tuple[int, str, Any]] = []
    for row, texts in enumerate(samples):
        for text in texts:
            found = matches(names, texts[0], text)
            if one and found:
                name, near = max(found, key=lambda m: m[1])
                if not near[2] and any(m[0] > 1 and m[1] > near[1] for _, m in found):
                    return None  # another has more of the path, and another ending
                hits.append((row, name, near))
                break
            hits += [(row, *m) for m in found]
    nearest = {name: max(near for _, n, near in hits if n == name) for _, name, _ in hits}
    out: list[str | None] = [None] * len(samples)
    keys: dict[str, set[str]] = {}
    for row, name, near in hits:
        if near == nearest[name]:
            out[row] = name
            keys.setdefault(name, set()).add(samples[row][0])
    return None if any(len(k) > 1 for k in keys.values()) else out


def made(root: Path, binary: str, chance: random.Random) -> dict[str, Any]:
    """Datasets of the same rasters: how they are loaded, and what their samples are called."""
    every = [folder + base for folder in FOLDERS for base in BASES]
    names = sorted(f"{name}.tif" for name in chance.sample(every, SAMPLES))
    for k, name in enumerate(names):
        path = root / "images" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        rasters.write(path, np.full((1, 4, 4), k, np.uint8))
    for out, options in (("files", []), ("pairs", ["--field=image={id}.tif"])):
        command = [binary, "index", *options, "-o", f"{out}.parquet", "images"]
        subprocess.run(command, cwd=root, check=True)
    ids = [stem(name).replace("/", "_") for name in names]
    records = [{"id": i, "path": root / "images" / n} for i, n in zip(ids, names, strict=True)]
    chaski.pack(records, root / "data.tacozip", ABOUT)
    (root / "table.csv").write_text("path\n" + "".join(f"images/{n}\n" for n in names))
    lines = "".join(f"images/{n},{stem(n)}\n" for n in names)
    (root / "coded.csv").write_text(f"path,code\n{lines}")
    plain, below = [[n] for n in names], [[f"images/{n}"] for n in names]
    keyed = [[stem(n), n] for n in names]
    listed = [[n, f"images/{n}"] for n in names]
    paired = [[stem(n), f"images/{n}"] for n in names]
    image = {"image": chaski.Field()}
    column = {"image": chaski.Field(column="path")}
    return {
        "directory": ("images", image, plain, None),
        "glob": ("images/**/*.tif", image, plain, None),
        "pattern": ("images", {"image": chaski.Field(pattern="{id}.tif")}, keyed, None),
        "catalog": ("files.parquet", image, listed, None),
        "catalog of pairs": ("pairs.parquet", image, paired, None),
        "container": ("data.tacozip", image, [[i] for i in ids], None),
        "table": ("table.csv", column, below, None),
        "column": ("coded.csv", column, [[stem(n)] for n in names], "code"),
    }


@pytest.mark.parametrize("seed", range(3))
def test_names_mean_what_maps_of_strings_find(tmp_path, binary, seed) -> None:
    chance = random.Random(seed)
    sources, checked = made(tmp_path, binary, chance), 0
    for kind, (source, fields, samples, column) in sources.items():
        for _ in range(6):
            parts = [end for texts in samples for t in texts for end in ends(t)]
            drawn = [stem(p) + chance.choice(["", ".tif", ".png"]) for p in parts] + [
                "7",
                "12",
                "z",
            ]
            some = {stem(name): name for name in chance.sample(drawn, 5)}  # one of each stem
            names = list(some.values())
            picked = joined(names, samples, one=False)
            options = {"fields": fields, "batch_size": SAMPLES, "shuffle": False}
            rows = chaski.Rows(ids=names, missing="drop", id_column=column)
            checked += compare(tmp_path / source, picked, rows=rows, **options)
            labels = tmp_path / "labels.csv"
            labels.write_text("n,y\n" + "".join(f"{n},{k}\n" for k, n in enumerate(names)))
            options["fields"] = fields | {"y": "y"}
            options |= {"tables": {labels: {"n": column or "id"}}}
            has_id = kind in ("pattern", "catalog of pairs")  # a column
            called = [texts[:1] for texts in samples] if has_id else samples
            matched = joined(names, called, one=True)
            rows = chaski.Rows(missing="drop")
            checked += compare(tmp_path / source, matched, names, rows=rows, **options)
    assert checked > 40


def compare(
    source: Path, want: list[str | None] | None, names: list[str] | None = None, **options: Any
) -> int:
    """Compares the samples of a run, and their rows of a table, with those that are wanted."""
    if want is None:
        with pytest.raises(chaski.CorruptError, match="names several samples|both the sample"):
            chaski.load(source, **options)
        return 1
    if not any(want):  # then names may be of another machine
        return 0
    with chaski.load(source, **options) as loader:
        (batch,) = loader
    valid = np.asarray(batch["valid"], bool)
    got = np.asarray(batch["image"])[valid][:, 0, 0, 0].tolist()
    assert got == [row for row, name in enumerate(want) if name], (names, want)
    if names is not None:
        y = np.asarray(batch["y"])[valid].tolist()
        assert [names[k] for k in y] == [name for name in want if name]
    return 1
