"""The call that `suggest` finds loads what numpy reads of the same files."""

from __future__ import annotations

import csv
import json
import subprocess
import sys

import numpy as np
import pytest
from conftest import nonempty

import chaski

Image = pytest.importorskip("PIL.Image", reason="writes and judges the pictures")

pytestmark = pytest.mark.usefixtures("one_engine")


class Folder:
    """Writes files below the working directory, and reads them."""

    def __init__(self, root) -> None:
        self.root, self.random = root, np.random.default_rng(7)

    def path(self, name):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def picture(self, name, *, values=None, bands=3, side=32):
        shape = (side, side, bands) if bands > 1 else (side, side)
        pixels = self.random.integers(0, 256, shape).astype(np.uint8)
        if values is not None:
            pixels = np.array(values, np.uint8)[self.random.integers(0, len(values), (side, side))]
        Image.fromarray(pixels).save(self.path(name))

    def text(self, name, text):
        self.path(name).write_text(text)

    def table(self, name, rows):
        with self.path(name).open("w", newline="") as file:
            csv.writer(file).writerows(rows)

    def read(self, name):
        pixels = np.asarray(Image.open(self.root / name))
        return pixels[None] if pixels.ndim == 2 else pixels.transpose(2, 0, 1)


@pytest.fixture
def folder(tmp_path, monkeypatch, binary):
    monkeypatch.chdir(tmp_path)
    return Folder(tmp_path)


def load(call: str) -> tuple[list[dict[str, np.ndarray]], dict[str, list[str]]]:
    """Runs a call, and returns the rows in the order of the samples, and the classes."""
    rows = []
    with eval(call.removesuffix(")") + ", shuffle=False)", {"chaski": chaski}) as loader:
        for batch in loader:
            for i in np.flatnonzero(batch["valid"]):
                row = {
                    name: batch[name].rows()[i]
                    if isinstance(batch[name], chaski.Ragged)
                    else batch[name][i]
                    for name in batch.keys()  # noqa: SIM118 (a batch iterates over more)
                }
                rows.append(row)
        return rows, dict(loader.classes or {})


def only(folder) -> tuple[list[dict[str, np.ndarray]], dict[str, list[str]], chaski.Suggestion]:
    found = chaski.suggest(".")
    assert list(found.calls) == [""]
    return *load(found.calls[""]), found


def test_images_and_masks_of_splits(folder) -> None:
    for split, count in (("train", 3), ("val", 2)):
        for i in range(count):
            folder.picture(f"{split}/images/{split}{i}.png")
            folder.picture(f"{split}/masks/{split}{i}.png", values=[0, 255])
    found = chaski.suggest(".")
    assert list(found.calls) == ["train", "val"]
    assert not found.check and not found.unused
    for split, count in (("train", 3), ("val", 2)):
        rows, _ = load(found.calls[split])
        assert len(rows) == count
        for i, row in enumerate(rows):
            np.testing.assert_array_equal(
                row["image"], folder.read(f"{split}/images/{split}{i}.png")
            )
            mask = folder.read(f"{split}/masks/{split}{i}.png") // 255
            np.testing.assert_array_equal(row["mask"], mask)


def test_kinds_by_the_ends_of_names(folder) -> None:
    for i in (4, 7, 9):
        folder.picture(f"a/tile_{i}_data.png")
        folder.picture(f"a/tile_{i}_mask.png", values=range(5), bands=1)
    rows, _, _ = only(folder)
    for i, row in zip((4, 7, 9), rows, strict=True):
        np.testing.assert_array_equal(row["image"], folder.read(f"a/tile_{i}_data.png"))
        np.testing.assert_array_equal(row["mask"], folder.read(f"a/tile_{i}_mask.png"))


def test_folders_of_classes(folder) -> None:
    names = [f"{c}/{c}_{i}.png" for c in ("beach", "forest") for i in range(3)]
    for name in names:
        folder.picture(name)
    rows, classes, _ = only(folder)
    for name, row in zip(names, rows, strict=True):
        np.testing.assert_array_equal(row["image"], folder.read(name))
        assert classes["class"][int(row["class"])] == name.split("/")[0]


def test_colours_are_classes_and_want_a_look(folder) -> None:
    colours = [(0, 0, 0), (0, 255, 0), (255, 0, 0)]
    for i in range(3):
        folder.picture(f"images/{i}5.png")
        folder.picture(f"labels/{i}5.png", values=colours)
    rows, _, found = only(folder)
    assert any("order of their colours" in line for line in found.check)
    for i, row in enumerate(rows):
        want = folder.read(f"labels/{i}5.png")
        got = np.array(colours)[row["mask"].reshape(32, 32)].transpose(2, 0, 1)
        np.testing.assert_array_equal(got, want)


def test_a_table_makes_the_paths(folder) -> None:
    rows = [["name", "place", "class"]]
    for i in range(4):
        rows.append([f"s{i}.png", f"p{i % 2}", ["wood", "water"][i % 2]])
        folder.picture(f"all/p{i % 2}/s{i}.png")
    folder.picture("all/p0/other.png")
    folder.table("train.csv", rows)
    folder.table("val.csv", rows[:1] + rows[3:])
    found = chaski.suggest(".")
    assert list(found.calls) == ["train", "val"]
    got, classes = load(found.calls["train"])
    for (name, place, kind), row in nonempty(zip(rows[1:], got, strict=True)):
        np.testing.assert_array_equal(row["image"], folder.read(f"all/{place}/{name}"))
        assert classes["class"][int(row["class"])] == kind
    assert len(load(found.calls["val"])[0]) == 2


def test_a_table_beside_images(folder) -> None:
    rows = [["id", "label", "subset"]]
    for i in range(6):
        folder.picture(f"x/{i}1_rgb.png")
        folder.picture(f"x/{i}1_nir.png", bands=1)
        rows.append([f"{i}1", str(i % 3), ["fit", "check"][i // 4]])
    folder.table("labels.csv", rows)
    found = chaski.suggest(".")
    assert list(found.calls) == ["check", "fit"]
    got, _ = load(found.calls["fit"])
    for (name, label, _), row in nonempty(zip(rows[1:5], got, strict=True)):
        np.testing.assert_array_equal(row["image"], folder.read(f"x/{name}_rgb.png"))
        np.testing.assert_array_equal(row["nir"], folder.read(f"x/{name}_nir.png"))
        assert row["label"] == int(label)


def test_lists_of_ids(folder) -> None:
    for i in range(5):
        folder.picture(f"pics/n{i}x.png")
    folder.text("sets/train.txt", "n0x\nn3x\n")
    folder.text("sets/val.txt", "n1x\nn4x\n")
    found = chaski.suggest(".")
    for split, ids in (("train", (0, 3)), ("val", (1, 4))):
        rows, _ = load(found.calls[split])
        for i, row in zip(ids, rows, strict=True):
            np.testing.assert_array_equal(row["image"], folder.read(f"pics/n{i}x.png"))


def test_row_numbers_want_a_look(folder) -> None:
    rows = [["place", "label"]]
    for i in range(5):
        folder.picture(f"pics/img_{i}.png")
        rows.append([["there", "here"][i % 2], str(10 + i)])
    folder.table("about.csv", rows)
    got, _, found = only(folder)
    assert any("numbers of its rows" in line for line in found.check)
    assert [int(row["label"]) for row in got] == [10, 11, 12, 13, 14]


def test_captions_of_a_member_of_json(folder) -> None:
    images = []
    for i in range(4):
        folder.picture(f"pics/c{i}.png")
        texts = [{"raw": f"a river {i} {k}", "id": k} for k in range(2)]
        images.append({"filename": f"c{i}.png", "split": "train" if i < 3 else "test"})
        images[-1]["sentences"] = texts
    folder.text("captions.json", json.dumps({"images": images, "dataset": "x"}))
    found = chaski.suggest(".")
    rows, _ = load(found.calls["train"])
    for i, row in enumerate(rows):
        np.testing.assert_array_equal(row["image"], folder.read(f"pics/c{i}.png"))
        text = row["sentences_raw"]
        assert (json.loads(text) if isinstance(text, str) else list(text)) == [
            f"a river {i} 0",
            f"a river {i} 1",
        ]
    assert len(rows) == 3


def test_captions_with_commas_and_without_quotes(folder) -> None:
    lines = ["image,caption"]
    for i in range(3):
        folder.picture(f"pics/c{i}.png")
        lines += [f'c{i}.png,a river, a "large" bridge and {i} boats']
    folder.text("captions.csv", "\n".join(lines))
    rows, _, _ = only(folder)
    for i, row in enumerate(rows):
        np.testing.assert_array_equal(row["image"], folder.read(f"pics/c{i}.png"))
        assert row["caption"] == f'a river, a "large" bridge and {i} boats'


def test_boxes_of_yolo_and_coco(folder) -> None:
    images, boxes = [], []
    for i in range(3):
        folder.picture(f"yolo/images/{i}7.png")
        folder.text(f"yolo/labels/{i}7.txt", "1 0.5 0.5 0.25 0.5\n")
        folder.picture(f"coco/pics/{i}8.png")
        images.append({"id": i, "file_name": f"{i}8.png", "width": 32, "height": 32})
        boxes.append({"id": i, "image_id": i, "category_id": 1, "bbox": [4, 8, 10 + i, 6]})
    folder.text("yolo/data.yaml", "nc: 2\nnames: ['ship', 'plane']\n")
    about = {"images": images, "annotations": boxes, "categories": [{"id": 1, "name": "pool"}]}
    folder.text("coco/boxes.json", json.dumps(about))
    rows, classes = load(chaski.suggest("yolo").calls[""])
    for row in rows:
        np.testing.assert_allclose(row["boxes"], [[12, 8, 20, 24]])
        assert classes["boxes"][int(row["boxes_values"][0])] == "plane"
    rows, _ = load(chaski.suggest("coco").calls[""])
    for i, row in enumerate(rows):
        np.testing.assert_allclose(row["boxes"], [[4, 8, 14 + i, 14]])


def test_axes_of_arrays(folder) -> None:
    for i in range(3):
        np.save(folder.path(f"img/image_{i}.npy"), folder.random.random((32, 32, 6), np.float32))
        np.save(folder.path(f"mask/mask_{i}.npy"), folder.random.integers(0, 3, (32, 32), np.uint8))
    rows, _, _ = only(folder)
    for i, row in enumerate(rows):
        want = np.load(f"img/image_{i}.npy").transpose(2, 0, 1)
        np.testing.assert_array_equal(row["image"], want)
        np.testing.assert_array_equal(row["mask"].reshape(32, 32), np.load(f"mask/mask_{i}.npy"))


def test_bands_in_files_of_their_own(folder) -> None:
    for i in range(3):
        for band in ("red", "green", "blue"):
            folder.picture(f"{band}/{band}_a{i}.png", bands=1)
    rows, _, _ = only(folder)
    for i, row in enumerate(rows):
        want = [folder.read(f"{b}/{b}_a{i}.png")[0] for b in ("red", "green", "blue")]
        np.testing.assert_array_equal(row["image"], want)


def test_what_is_not_used_is_listed(folder) -> None:
    for i in range(3):
        folder.picture(f"images/{i}9.png")
    folder.table("about.csv", [["what", "when"], ["x", "2020"], ["y", "2021"]])
    _, _, found = only(folder)
    assert found.unused == ["1 files ./*.csv"]


def test_folders_that_may_be_classes_or_fields_want_a_look(folder) -> None:
    for name in ("left", "right"):
        for i in range(3):
            folder.picture(f"{name}/{i}.png")
    _, _, found = only(folder)
    assert any("equal names" in line for line in found.check)


def test_a_folder_without_images(folder) -> None:
    folder.text("readme.txt", "nothing\n")
    with pytest.raises(chaski.UnsupportedError, match="no images"):
        chaski.suggest(".")


def test_the_command_says_the_same(folder, binary) -> None:
    for i in range(3):
        folder.picture(f"images/{i}9.png")
    out = subprocess.run([binary, "suggest", "."], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == str(chaski.suggest(".")).strip()


@pytest.mark.skipif(sys.version_info < (3, 11), reason="errors have no notes")
def test_an_error_has_the_call(folder) -> None:
    for k in range(2):
        folder.picture(f"images/{k}.png")
        folder.picture(f"masks/{k}_m.png", values=[0, 1], bands=1)
    fields = {"image": "images/{id}.png", "mask": chaski.Field(pattern="masks/{id}.png")}
    with pytest.raises(chaski.NotFoundError) as failed:
        chaski.load(".", batch_size=2, fields=fields)
    note = next(n for n in failed.value.__notes__ if n.startswith("chaski.suggest('.') finds: "))
    rows, _ = load(note.partition("finds: ")[2].replace("batch_size=16", "batch_size=2"))
    assert [r["image"].shape for r in rows] == [(3, 32, 32)] * 2 and "mask" in rows[0]
    for source in ("nowhere", "images/0.png"):  # no folder
        with pytest.raises(chaski.Error) as failed:
            chaski.load(source, batch_size=2, fields={"image": "{id}.tif"})
        assert not any("suggest" in n for n in getattr(failed.value, "__notes__", ()))


def test_rows_of_a_json_by_class_or_by_file(folder) -> None:
    captions, questions = {}, {}
    for c in ("dam", "zoo"):
        rows = []
        for k in range(3):
            folder.picture(f"images/{c}/{c}_{k}.png", side=8)
            rows.append({"filename": f"{c}_{k}.png", "raw": f"a {c}, {k}"})
        captions[c] = rows
    folder.text("captions.json", json.dumps(captions))
    rows, classes, _ = only(folder)
    assert [row["raw"] for row in rows] == [r["raw"] for of in captions.values() for r in of]
    assert (
        classes["class"] == ["dam", "zoo"] and [row["class"] for row in rows] == [0] * 3 + [1] * 3
    )
    (folder.root / "captions.json").unlink()
    for k in range(3):
        folder.picture(f"train/pictures/{k}.png", side=8)
        questions[f"{k}.png"] = [{"Question": f"q{k}{i}", "Answer": "yes"} for i in range(k + 1)]
    folder.text("qa.json", json.dumps(questions))
    for path in (folder.root / "images").rglob("*.png"):
        path.unlink()
    rows, _, _ = only(folder)
    assert [row["question"] for row in rows] == ["q00", "q10", "q11", "q20", "q21", "q22"]
    for row in rows:
        name = f"train/pictures/{row['question'][1]}.png"
        np.testing.assert_array_equal(row["image"], folder.read(name))


def test_two_tables_of_captions(folder) -> None:
    for k in range(4):
        folder.picture(f"images/{k}.png", side=8)
    for name in ("short", "long"):
        lines = [f"{k}.png,{name} {k}, with commas, and more" for k in range(4)]
        folder.text(f"{name}.csv", "\n".join(["image,caption", *lines]))
    rows, _, _ = only(folder)
    texts = [{value for value in row.values() if isinstance(value, str)} for row in rows]
    ends = ", with commas, and more"
    assert texts == [{f"short {k}{ends}", f"long {k}{ends}"} for k in range(4)]


def test_masks_are_no_images(folder) -> None:
    for k in range(3):
        folder.picture(f"original_images/{k}.png", side=16)
        folder.picture(f"RGB_color_image_masks/{k}.png", values=[[0, 0, 9], [9, 0, 0]], side=16)
        folder.picture(f"masks/{k}.png", bands=1, values=[0, 1, 2], side=16)
    rows, _, _ = only(folder)
    for k, row in enumerate(rows):
        np.testing.assert_array_equal(row["image"], folder.read(f"original_images/{k}.png"))


def test_a_mask_a_class_of_which_some_lack(folder) -> None:
    names = ["building", "road", "water"]
    for k in range(4):
        folder.picture(f"images/{k}.png", side=8)
        for i, name in enumerate(names):
            if (k + i) % 4:
                folder.picture(f"masks/{name}/{k}.png", bands=1, values=[0, 255], side=8)
    rows, _, found = only(folder)
    for k, row in enumerate(rows):
        want = [
            folder.read(f"masks/{n}/{k}.png")[0] > 0 if (k + i) % 4 else np.zeros((8, 8), bool)
            for i, n in enumerate(names)
        ]
        np.testing.assert_array_equal(row["masks"], want)
    assert any('lut="masks"' in line for line in found.check)


def test_images_in_the_cells_of_parquet(folder) -> None:
    pq = pytest.importorskip("pyarrow.parquet", reason="writes Parquet")
    pa = pytest.importorskip("pyarrow")
    made, pictures = {}, {}
    for split, shards in (("train", 2), ("test", 1)):
        for shard in range(shards):
            rows = []
            for k in range(3):
                name = f"{split}-{shard}-{k}.png"
                folder.picture(name, side=16)
                data, pictures[name] = (folder.root / name).read_bytes(), folder.read(name)
                (folder.root / name).unlink()
                box = [[float(k), 2.0, 5.0, 4.0 + shard]]
                rows.append(
                    {
                        "image": {"bytes": data, "path": None},
                        "caption": f"{split}, {shard}{k}",
                        "labels": list(range(k + 1)),
                        "objects": {"bbox": box, "category": [k]},
                    }
                )
            path = folder.path(f"data/{split}-0000{shard}-of-0000{shards}.parquet")
            pq.write_table(pa.Table.from_pylist(rows), path)
            made.setdefault(split, []).extend(rows)
    found = chaski.suggest(".")
    assert list(found.calls) == ["test", "train"]
    for split, call in nonempty(found.calls.items()):
        rows, _ = load(call)
        for row, want in zip(rows, made[split], strict=True):
            shard, k = want["caption"][-2:]
            np.testing.assert_array_equal(row["image"], pictures[f"{split}-{shard}-{k}.png"])
            x, y, w, h = want["objects"]["bbox"][0]
            np.testing.assert_array_equal(row["boxes"], [[x, y, x + w, y + h]])
            assert row["caption"] == want["caption"]
            assert list(row["labels"]) == [int(c in want["labels"]) for c in range(3)]
