"""Directories of images with metadata, as Hugging Face has them, yield their images and labels."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import chaski

pytestmark = pytest.mark.usefixtures("one_engine")
Image = pytest.importorskip("PIL.Image")
N, SIDE = 12, 16


def images(folder: Path) -> list[np.ndarray]:
    """Writes a picture in each of two nested folders in turn, and returns them."""
    rng = np.random.default_rng(2)
    out = [rng.integers(0, 255, (SIDE, SIDE, 3), dtype=np.uint8) for _ in range(N)]
    for i, a in enumerate(out):
        path = folder / name(i)
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(a).save(path)
    return out


def name(i: int) -> str:
    return f"{['forest', 'water'][i % 2]}/{i:02d}.png"


def describe(folder: Path, kind: str, rows: list[dict[str, Any]]) -> Path:
    path = folder / f"metadata.{kind}"
    if kind == "jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    elif kind == "csv":
        lines = [",".join(map(str, row.values())) for row in rows]
        path.write_text("\n".join([",".join(rows[0]), *lines]) + "\n")
    else:
        pa = pytest.importorskip("pyarrow")
        pytest.importorskip("pyarrow.parquet").write_table(pa.Table.from_pylist(rows), path)
    return path


def read(source: object, **more: Any) -> list[tuple[np.ndarray, Any]]:
    fields = {
        "image": chaski.Field(layout="n y x b", **more.pop("image", {})),
        "label": more.pop("label", chaski.Field()),
    }
    out: list[tuple[np.ndarray, Any]] = []
    with chaski.load(source, fields=fields, batch_size=5, shuffle=False, **more) as loader:
        for b in loader:
            out += [(np.array(b["image"][i]), b["label"][i]) for i in np.flatnonzero(b["valid"])]
    return out


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_metadata(tmp_path, kind):
    made = images(tmp_path)
    rows = [{"file_name": name(i), "label": 100 + i, "text": f"no {i}"} for i in range(N)][::-1]
    file = describe(tmp_path, kind, rows)
    for source in (tmp_path, file):
        got = read(source)
        assert [label for _, label in got] == [row["label"] for row in rows]
        for image, label in got:
            np.testing.assert_array_equal(image, made[label - 100])
    where = chaski.Rows(where="label >= 104")
    assert len(read(tmp_path, rows=where)) == N - 4
    classes = chaski.Field(column="text", kind="class")
    assert sorted(label for _, label in read(tmp_path, label=classes)) == list(range(N))


def test_pairs_of_files(tmp_path):
    """Each column NAME_file_name is the field NAME."""
    made = images(tmp_path)
    rows = [
        {"image_file_name": name(i), "mask_file_name": name((i + 1) % N), "label": i}
        for i in range(N)
    ]
    describe(tmp_path, "jsonl", [{"file_name": r.pop("image_file_name"), **r} for r in rows])
    fields = {"image": chaski.Field(), "mask": chaski.Field(), "label": chaski.Field()}
    with chaski.load(tmp_path, fields=fields, batch_size=N, shuffle=False) as loader:
        batch = next(iter(loader))
    for i in range(N):
        mask = np.moveaxis(np.array(batch["mask"][i]), 0, 2)
        np.testing.assert_array_equal(mask, made[(i + 1) % N])


def test_classes_by_folder(tmp_path):
    made = images(tmp_path)
    got = read(tmp_path, label=chaski.Field(column="folder", kind="class"))
    assert [label for _, label in got] == [0] * (N // 2) + [1] * (N // 2)
    for (image, _), i in zip(got, [*range(0, N, 2), *range(1, N, 2)], strict=True):
        np.testing.assert_array_equal(image, made[i])


def test_rasters_stay_a_listing(tmp_path):
    """The metadata beside rasters counts only where a column of it is asked for."""
    made = images(tmp_path)
    for i, a in enumerate(made):
        Image.fromarray(a[:, :, 0]).save(tmp_path / f"{i:02d}.tif")
    rows = [{"file_name": f"{i:02d}.tif", "label": i} for i in range(3)]
    describe(tmp_path, "csv", rows)
    with chaski.load(tmp_path, batch_size=N, shuffle=False) as loader:
        assert loader.samples == N
    assert len(read(tmp_path, label=chaski.Field(column="label"))) == 3


def test_missing_files(tmp_path):
    images(tmp_path)
    describe(tmp_path, "csv", [{"file_name": "gone.png", "label": 1}])
    with pytest.raises(chaski.NotFoundError, match=r"gone\.png"):
        read(tmp_path)


def test_commands(tmp_path, binary):
    images(tmp_path)
    describe(tmp_path, "csv", [{"file_name": name(i), "label": i} for i in range(N)])
    done = subprocess.run([binary, "stats", tmp_path], capture_output=True, text=True, check=False)
    assert f'"samples":{N}' in done.stdout, done.stderr


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_metadata_of_splits(tmp_path, kind):
    """Hugging Face's usual layout: a folder with metadata for each split."""
    for split, k in (("test", 10), ("train", 20)):
        (tmp_path / split).mkdir()
        images(tmp_path / split)
        describe(tmp_path / split, kind, [{"file_name": name(i), "label": k + i} for i in range(N)])
    for split, k in (("test", 10), ("train", 20)):
        got = read(tmp_path, rows=chaski.Rows(split=split))
        want = read(tmp_path / split)
        assert (
            [label for _, label in got] == [k + i for i in range(N)] == [label for _, label in want]
        )
        assert all(np.array_equal(a, b) for (a, _), (b, _) in zip(got, want, strict=True))
    with pytest.raises(chaski.UnsupportedError, match=r'of several splits.*split="test"'):
        read(tmp_path)
    with pytest.raises(chaski.NotFoundError, match='no row is of the part "val"'):
        read(tmp_path, rows=chaski.Rows(split="val"))
    both = read(tmp_path, label=chaski.Field(column="split", kind="text"))
    assert [split for _, split in both] == ["test"] * N + ["train"] * N


def test_two_tables_of_metadata_are_refused(tmp_path):
    images(tmp_path)
    for kind in ("csv", "jsonl"):
        describe(tmp_path, kind, [{"file_name": name(0), "label": 1}])
    with pytest.raises(chaski.UnsupportedError, match="both metadata.csv and metadata.jsonl"):
        read(tmp_path)


@pytest.mark.parametrize("way", ["pictures", "folders", "rasters", "catalog"])
def test_a_label_is_not_the_image_again(binary, tmp_path, way):
    """A field without column and pattern is the image of the row, once."""
    folder = tmp_path / "chips"
    for place in [folder / "a", folder / "b"] if way == "folders" else [folder]:
        place.mkdir(parents=True)
        for i in range(2):
            kind = "tif" if way in ("rasters", "catalog") else "png"
            Image.fromarray(np.full((8, 8, 3), i, "uint8")).save(place / f"{i}.{kind}")
    source = folder
    if way == "catalog":
        source = tmp_path / "chips.parquet"
        subprocess.run([binary, "index", folder, "-o", source], check=True, capture_output=True)
    for label, match in [
        (
            chaski.Field(dtype="int64"),
            'field "label": it would be the image of the field "image" again',
        ),
        (chaski.Field(kind="class"), 'field "label": kind is "class": name its column'),
    ]:
        with pytest.raises(chaski.NotFoundError, match=match):
            read(source, label=label)
    got = read(source, label=chaski.Field(bands=[1], dtype="native", layout="n y x b"))
    assert all(np.array_equal(image[..., 1:2], label) for image, label in got)
