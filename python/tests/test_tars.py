"""Members of tars are files of a dataset: of patterns, globs, tables and catalogs."""

from __future__ import annotations

import io
import shutil
import tarfile
import zipfile
from pathlib import Path

import numpy as np
import pytest
import rasters
from conftest import nonempty
from PIL import Image

import chaski
from chaski import Field, Rows, Vector

pytestmark = pytest.mark.usefixtures("one_engine")

NATIVE = {"batch_size": 4, "shuffle": False, "pixels": chaski.Pixels(dtype="native")}


@pytest.fixture
def shards(tmp_path, monkeypatch) -> Path:
    """Three samples in each of two tars; sample k is full of k."""
    for shard in range(2):
        with tarfile.open(tmp_path / f"{shard}.tar", "w") as tar:
            for k in range(3 * shard, 3 * shard + 3):
                np.save(image := io.BytesIO(), np.full((2, 16, 16), k, "u2"))
                boxes = f"{k % 2} 0.5 0.5 {(k + 1) / 16} 0.5\n".encode()
                for name, data in {"npy": image.getvalue(), "txt": boxes, "json": b"{}"}.items():
                    member = tarfile.TarInfo(f"./{k}.{name}")
                    member.size = len(data)
                    tar.addfile(member, io.BytesIO(data))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def firsts(source, **options) -> list[int]:
    with chaski.load(source, **(NATIVE | options)) as loader:
        batches = [b["image"][b["valid"], 0, 0, 0] for b in loader]
    return np.concatenate(batches).tolist()


def test_every_way_in(shards, binary) -> None:
    every = list(range(6))
    pattern = {"image": "{shard}.tar/{id}.npy"}
    assert firsts(".", fields=pattern) == every
    assert firsts(".", fields=pattern, rows=Rows(where="shard = '1'")) == every[3:]
    assert firsts("*.tar/*.npy") == every
    assert firsts("1.tar/*.npy") == firsts(shards / "1.tar/**/*.npy") == every[3:]
    assert firsts("1.tar") == firsts("/vsitar/1.tar") == every[3:]
    table = [{"path": f"{k // 3}.tar/{k}.npy"} for k in (4, 1)]
    table.append({"path": f"file://{shards}/1.tar/5.npy"})
    assert firsts(table, fields={"image": Field(column="path", kind="raster")}) == [4, 1, 5]
    assert chaski.read("/vsitar/0.tar/2.npy")[0, 0, 0] == 2


def test_boxes_beside(shards, binary) -> None:
    boxes = Vector("{shard}.tar/{id}.txt", kind="boxes", classes=["a", "b"])
    fields = {"image": "{shard}.tar/{id}.npy", "y": boxes}
    with chaski.load(".", fields=fields, **(NATIVE | {"batch_size": 6})) as loader:
        (batch,) = loader
    rows = batch["y"].rows()
    for k in range(6):
        assert np.allclose(rows[k][0], [7.5 - k / 2, 4, 8.5 + k / 2, 12])
    assert np.concatenate(batch["y_values"].rows()).tolist() == [1, 2] * 3


def test_tars_that_no_pattern_names_are_not_read(shards, binary) -> None:
    for folder in (shards / "more", shards / "sub"):
        folder.mkdir()
    (shards / "more" / "damaged.tar").write_bytes(b"x" * 2000)
    (shards / "8-damaged.tar").write_bytes(b"x" * 2000)
    np.save("sub/1.npy", np.full((2, 16, 16), 9, "u2"))
    for pattern in ("1.tar/{id}.npy", "{shard}.tar/{id}.npy"):
        if pattern == "{shard}.tar/{id}.npy":
            (shards / "8-damaged.tar").unlink()
        assert firsts(".", fields={"image": pattern})[-3:] == [3, 4, 5]
    assert firsts("sub", fields={"image": "../1.tar/{id}.npy"}) == [3, 4, 5]
    with pytest.raises(chaski.CorruptError):
        firsts(".", fields={"image": "more/{shard}.tar/{id}.npy"})


def test_tars_without_a_pattern_are_named(shards, binary) -> None:
    with pytest.raises(chaski.UnsupportedError, match=r'patterns, as in "0.tar/\{id\}.tif"'):
        chaski.load(".", batch_size=1)


@pytest.mark.parametrize("name", ["/vsitar/no.tar", "/vsizip/no.zip"])
def test_archives_that_are_not_there(shards, binary, name) -> None:
    with pytest.raises(chaski.NotFoundError):
        chaski.load(name, batch_size=1)


def test_a_directory_may_have_the_name_of_a_tar(tmp_path, binary) -> None:
    (tmp_path / "x.tar").mkdir()
    np.save(tmp_path / "x.tar/a.npy", np.full((1, 4, 4), 7, "u2"))
    assert firsts(tmp_path, fields={"image": "{folder_}.tar/{id}.npy"}) == [7]
    assert firsts(tmp_path / "x.tar") == [7]
    # What lies beside a raster counts there as elsewhere.
    rasters.write(tmp_path / "x.tar/b.tif", np.ones((1, 4, 4), "u1"), crs="EPSG:32633")
    band = "<PAMRasterBand band='1'><NoDataValue>1</NoDataValue></PAMRasterBand>"
    (tmp_path / "x.tar/b.tif.aux.xml").write_text(f"<PAMDataset>{band}</PAMDataset>")
    fields = {"image": Field(pattern="{folder}/{id}.tif", fill=9)}
    with chaski.load(tmp_path, fields=fields, **NATIVE) as loader:
        assert [batch["image"].tolist() for batch in loader] == [np.full((1, 1, 4, 4), 9).tolist()]


@pytest.mark.parametrize("archive", ["a.tar", "/vsizip/a.zip"])
def test_members_are_no_files_elsewhere(tmp_path, binary, archive, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    np.save("elsewhere.npy", np.full((1, 4, 4), 99, "u2"))
    np.save(image := io.BytesIO(), np.full((1, 4, 4), 7, "u2"))
    names = [f"{tmp_path}/elsewhere.npy", "../above.npy", "http://127.0.0.1:9/a.npy"]
    with tarfile.open("a.tar", "w") as tar, zipfile.ZipFile("a.zip", "w") as packed:
        for name in names:
            (member := tarfile.TarInfo(name)).size = len(image.getvalue())
            tar.addfile(member, io.BytesIO(image.getvalue()))
            packed.writestr(name, image.getvalue())
    assert firsts(archive) == [7, 7, 7]


@pytest.mark.parametrize("inside", [True, False])
def test_members_of_any_ending(tmp_path: Path, inside: bool) -> None:
    """Images of an ending that is no format's, and texts beside them, in tars and in folders."""
    images = np.random.default_rng(0).integers(0, 255, (4, 8, 9, 3), dtype="u1")
    for k, image in enumerate(images):
        folder = tmp_path / f"s{k % 2}.tar"
        folder.mkdir(exist_ok=True)
        Image.fromarray(image).save(folder / f"{k}.img_content", "PNG")
        for end in ("caption", "txt", "json"):
            (folder / f"{k}.{end}").write_text(f"a río, {k}\n", encoding="utf-8")
    for folder in sorted(tmp_path.iterdir()):
        if inside:
            with tarfile.open(tmp_path / "packed", "w") as t:
                for file in sorted(folder.iterdir()):
                    t.add(file, file.name)
            shutil.rmtree(folder)
            (tmp_path / "packed").rename(folder)
    for end in ("caption", "txt", "json"):
        fields = {
            "image": chaski.Field(pattern="{shard}.tar/{id}.img_content"),
            "text": chaski.Field(pattern="{shard}.tar/{id}." + end, kind="text"),
        }
        with chaski.load(tmp_path, batch_size=4, shuffle=False, fields=fields) as loader:
            (batch,) = list(loader)
        for image, text in nonempty(zip(batch["image"], batch["text"], strict=True)):
            k = int(text[-2])
            assert text == f"a río, {k}\n"
            assert np.array_equal(image, images[k].transpose(2, 0, 1))
    if not inside:
        (tmp_path / "s0.tar" / "0.txt").write_bytes(b"\xff")
        fields["text"] = chaski.Field(pattern="{shard}.tar/{id}.txt", kind="text")
        with chaski.load(tmp_path, batch_size=4, fields=fields) as loader:
            with pytest.raises(chaski.CorruptError, match=r"0\.txt.*not UTF-8"):
                next(iter(loader))


@pytest.mark.parametrize("values", [["3", "-1\n", "12", "0"], ["0.5", "2", "1e-3", "-4"]])
def test_texts_that_are_labels(tmp_path: Path, values: list[str]) -> None:
    """A file of a number or of the name of a class, as WebDataset has `.cls`, is a label.

    Every second one begins with the mark that programs on Windows write.
    """
    marked = "utf-8-sig", "utf-8"
    for shard in (0, 1):
        with tarfile.open(tmp_path / f"{shard}.tar", "w") as t:
            for k in (2 * shard, 2 * shard + 1):
                np.save(made := io.BytesIO(), np.full((1, 4, 4), k, "u1"))
                text = values[k].encode(marked[k % 2])
                for end, data in (("npy", made.getvalue()), ("cls", text)):
                    (member := tarfile.TarInfo(f"{k}.{end}")).size = len(data)
                    t.addfile(member, io.BytesIO(data))
    field = {"pattern": "{shard}.tar/{id}.cls"}
    fields = {
        "image": "{shard}.tar/{id}.npy",
        "number": chaski.Field(**field, kind="number"),
        "class": chaski.Field(**field, kind="class"),
    }
    names = sorted(v.strip() for v in values)
    with chaski.load(tmp_path, batch_size=4, shuffle=False, fields=fields) as loader:
        assert loader.classes["class"] == names
        (batch,) = list(loader)
    whole = "." not in "".join(values)
    assert batch["number"].dtype == ("int64" if whole else "float64")
    where = batch["image"][:, 0, 0, 0].astype(int)
    for k, number, of in nonempty(zip(where, batch["number"], batch["class"], strict=True)):
        assert number == float(values[k]) and names[of] == values[k].strip()
    fields["number"] = chaski.Field(pattern="{shard}.tar/{id}.npy", kind="number")
    with pytest.raises(chaski.errors.SpecError, match="files hold rasters"):
        chaski.load(tmp_path, batch_size=4, fields=fields)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_whole_and_other_numbers_in_texts(tmp_path: Path, dtype: str) -> None:
    """A dtype of floats takes fractions behind a whole number; without it the error says so."""
    values = ["1", "0.5", "2"]
    for k, value in enumerate(values):
        np.save(tmp_path / f"{k}.npy", np.zeros((1, 4, 4), "u1"))
        (tmp_path / f"{k}.txt").write_text(value)
    fields = {"image": "{id}.npy", "y": chaski.Field(pattern="{id}.txt", kind="number")}
    with chaski.load(tmp_path, batch_size=3, shuffle=False, fields=fields) as loader:
        with pytest.raises(chaski.CorruptError, match='text of field y: "0.5".*"float64"'):
            next(iter(loader))
    fields["y"] = chaski.Field(pattern="{id}.txt", kind="number", dtype=dtype)
    with chaski.load(tmp_path, batch_size=3, shuffle=False, fields=fields) as loader:
        np.testing.assert_array_equal(next(iter(loader))["y"], np.array(values, dtype))
