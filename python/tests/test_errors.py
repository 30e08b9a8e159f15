"""Errors name the page of the documentation about them."""

from __future__ import annotations

import json
import pickle
import re
import sys
import traceback
import zipfile
from pathlib import Path

import numpy as np
import pytest

import chaski
from chaski import errors

DOCS = Path(__file__).resolve().parents[2] / "docs"


def anchors(page: str) -> set[str]:
    """Returns the anchors of a page's headings, as GitHub makes them."""
    heads = re.findall(r"^#+ (.*)$", (DOCS / page).read_text(), re.M)
    return {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in heads}


@pytest.mark.parametrize("link", sorted(set(errors._PAGES.values())))
def test_pages_are_there(link):
    page, _, anchor = link.partition("#")
    assert (DOCS / page).is_file()
    assert not anchor or anchor in anchors(page)


def test_a_page_is_shown():
    one = chaski.UnsupportedError("a.tif: bands: no", file="a.tif", part="bands")
    assert one.page.endswith("/docs/fields.md#bands-by-name") and str(one) == "a.tif: bands: no"
    for e in (one, pickle.loads(pickle.dumps(one))):
        shown = "".join(traceback.format_exception(e))
        assert (f"See {one.page}" in shown) == (sys.version_info >= (3, 11))
        assert shown.count("See ") <= 1
    assert chaski.UnsupportedError("a.tif: header: no", part="header").page == ""
    assert chaski.Error("no").page == ""


def test_errors_of_files_have_a_page(binary, tmp_path):
    (tmp_path / "a.tif").write_bytes(b"II*\0")
    with pytest.raises(chaski.CorruptError) as e:
        chaski.read(tmp_path / "a.tif")
    assert e.value.page.endswith("sampling.md#bad-samples")


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("a.xlsx", "an Excel file .*is not read: .*pandas.read_excel"),
        ("a.jp2", "a JPEG 2000 image .*is not read: .*gdal_translate -of COG a.jp2 a.tif"),
    ],
)
def test_formats_that_are_not_read_are_named_with_the_way(tmp_path, name, told):
    """By a file, a list, a directory, a glob and a pattern: no one is told of containers."""
    path = tmp_path / name
    if name == "a.xlsx":
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("[Content_Types].xml", "<Types/>" * 99)
    else:
        path.write_bytes(b"\0\0\0\x0cjP  \r\n\x87\n" + bytes(300))
    told = told.replace(" .*is", "(, such as .*,)? is")
    for open_ in (chaski.read, chaski.info):
        with pytest.raises(chaski.UnsupportedError, match=told):
            open_(path)
    fields = {"image": "{id}" + path.suffix}
    for source, more in [
        (path, {}),
        ([path], {}),
        (tmp_path, {}),
        (tmp_path / f"*{path.suffix}", {}),
        (tmp_path, {"fields": fields}),
    ]:
        with pytest.raises(chaski.UnsupportedError, match=told):
            chaski.load(source, batch_size=1, **more)


@pytest.mark.parametrize("name", ["a.h5", "a.zarr", "b.zarr.zip"])
@pytest.mark.parametrize("call", [lambda p: chaski.load(p, batch_size=1), chaski.info])
def test_an_array_that_is_misspelt_is_told_what_there_is(binary, tmp_path, name, call):
    h5py, zarr = pytest.importorskip("h5py"), pytest.importorskip("zarr")
    with h5py.File(tmp_path / "a.h5", "w") as f:
        f["image"], f["more/mask"] = np.zeros((2, 2)), np.zeros((2, 2))
    for store in tmp_path / "a.zarr", zarr.storage.ZipStore(tmp_path / "b.zarr.zip", mode="w"):
        group = zarr.open_group(store, mode="w")
        for path in "image", "more/mask":
            group.create_array(path, shape=(2, 2), dtype="u1")
        getattr(store, "close", str)()
    with pytest.raises(chaski.NotFoundError, match='"imag"; there are image, more/mask') as e:
        call(f"{tmp_path / name}::imag")
    assert str(tmp_path / name) in e.value.file


@pytest.mark.skipif(sys.platform != "linux", reason="root may write all folders but those of /proc")
def test_a_cache_that_cannot_be_written_is_told(binary, tmp_path, caplog):
    np.save(tmp_path / "a.npy", np.zeros((4, 4)))
    engine = chaski.Engine(cache="/proc/cache", cache_bytes=1 << 20)
    with chaski.load([tmp_path / "a.npy"], batch_size=1, engine=engine) as loader:
        next(iter(loader))
    assert "going on without the cache on disk (folder=/proc/cache" in caplog.text


def test_a_batch_that_is_too_large_is_asked_for_once(binary, tmp_path, monkeypatch):
    """Also after another loader, whose place an engine with a limit of streams may still hold."""
    np.save(tmp_path / "a.npy", np.zeros((4, 4)))
    with chaski.load([tmp_path / "a.npy"], batch_size=1) as loader:
        next(iter(loader))
    streams = []
    stream = chaski._rpc.Connection.stream
    monkeypatch.setattr(
        chaski._rpc.Connection, "stream", lambda *args: streams.append(1) or stream(*args)
    )
    engine = chaski.Engine(max_batch_bytes=10)
    with (
        chaski.load([tmp_path / "a.npy"], batch_size=1, engine=engine) as loader,
        pytest.raises(chaski.LimitError, match="at most 10 .max_batch_bytes"),
    ):
        next(iter(loader))
    assert len(streams) == 1


@pytest.mark.parametrize("column", ["image", "images"])
def test_a_file_of_labels_as_the_dataset_is_told_its_place(binary, tmp_path, column):
    """Whether or not it has a member with the name of the column."""
    labels = {"images": [{"id": 1, "file_name": "a.tif"}], "annotations": [], "categories": []}
    (tmp_path / "coco.json").write_text(json.dumps(labels))
    with pytest.raises(chaski.Error, match="COCO, are the path of a Vector"):
        chaski.load(tmp_path / "coco.json", batch_size=1, fields={"image": column})
