"""Every form of source that the documentation has is found by a server with a bounded root."""

import json
import shutil
import tarfile
import zipfile
from pathlib import Path

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from conftest import nonempty
from rasters import write
from test_access import serving

import chaski
from chaski import Field, Rows, Vector

TESTDATA = Path(__file__).parents[2] / "testdata"
PIXELS = np.arange(2 * 8 * 8, dtype="u1").reshape(2, 8, 8)


def make(root: Path) -> None:
    """Writes a sample "a" as each form holds it."""
    (root / "chips").mkdir(parents=True)
    write(root / "chips" / "a.tif", PIXELS)
    shutil.copytree(root / "chips", root / "folder.tar")  # a directory that is named as a tar
    with tarfile.open(root / "chips.tar", "w") as t, zipfile.ZipFile(root / "chips.zip", "w") as z:
        t.add(root / "chips" / "a.tif", "a.tif")
        z.write(root / "chips" / "a.tif", "a.tif")
    np.savez(root / "a.npz", image=PIXELS)
    np.save(root / "a.npy", PIXELS)
    with h5py.File(root / "a.h5", "w") as f:
        f["g/image"], f["g/y"] = PIXELS[None], [3]
    for store in ("a.zarr", "g.zarr/image"):
        (root / store).mkdir(parents=True)
        array = {"zarr_format": 2, "shape": PIXELS.shape, "chunks": PIXELS.shape, "dtype": "|u1"}
        array |= {"compressor": None, "fill_value": 0, "order": "C", "filters": None}
        (root / store / ".zarray").write_text(json.dumps(array))
        (root / store / "0.0.0").write_bytes(PIXELS.tobytes())
    (root / "g.zarr" / ".zgroup").write_text('{"zarr_format": 2}')
    shutil.copytree(root / "a.zarr", root / "stores" / "a.zarr")
    with zipfile.ZipFile(root / "g.zarr.zip", "w") as z:
        for p in (root / "g.zarr").rglob("*"):
            z.write(p, p.relative_to(root / "g.zarr"))
    table = {"image": ["chips/a.tif"], "id": ["a"]}
    pa.parquet.write_table(pa.table(table), root / "t.parquet")
    bytes_ = [{"bytes": (root / "chips" / "a.tif").read_bytes(), "path": "a.tif"}]
    pa.parquet.write_table(pa.table({"image": bytes_}), root / "images.parquet")
    (root / "t.csv").write_text("image,id\nchips/a.tif,a\n")
    (root / "t.json").write_text(json.dumps([{"image": "chips/a.tif", "id": "a"}]))
    (root / "t.jsonl").write_text('{"image": "chips/a.tif", "id": "a"}\n')
    (root / "tar.csv").write_text("image\nchips.tar/a.tif\n")
    (root / "parts.csv").write_text("image\na.h5::g/image\n")
    (root / "ids.txt").write_text("a\n")
    np.save(root / "a.boxes.npy", np.array([[1.0, 1, 5, 5]]))
    item = {"type": "Feature", "id": "a", "assets": {"image": {"href": "chips/a.tif"}}}
    item |= {"stac_version": "1.0.0", "geometry": None, "properties": {"datetime": None}}
    (root / "item.json").write_text(json.dumps(item))
    vrt = '<VRTDataset rasterXSize="8" rasterYSize="8"><VRTRasterBand dataType="Byte" band="1">'
    vrt += '<SimpleSource><SourceFilename relativeToVRT="1">chips/a.tif</SourceFilename>'
    (root / "a.vrt").write_text(vrt + "</SimpleSource></VRTRasterBand></VRTDataset>")
    shutil.copy(TESTDATA / "coast" / "coast.tacozip", root)
    shutil.copytree(TESTDATA / "tiledb" / "cube", root / "cube")


ROWS = {"rows": Rows(dims="n b y x")}
BANDS = {"rows": Rows(dims="b y x")}
IMAGE = {"image": Field(column="image")}
SOURCES = {
    "chips": {},
    "chips/a.tif": {},
    "chips/*.tif": {},
    "folder.tar": {},
    "folder.tar/a.tif": {},
    "chips.tar": {},
    "chips.tar/*.tif": {},
    "/vsitar/{ROOT/chips.tar}/a.tif": {},
    "/vsizip/{ROOT/chips.zip}/a.tif": {},
    "a.npz::image": {},
    "a.npy": {},
    "a.h5": {**ROWS, "fields": {"image": Field(column="g/image")}},
    "a.h5::g": {**ROWS, "fields": {**IMAGE, "y": Field(column="y", kind="number")}},
    "a.h5::g/image": ROWS,
    "a.zarr": BANDS,
    "g.zarr": BANDS,
    "g.zarr::image": BANDS,
    "g.zarr/image": BANDS,
    "g.zarr.zip": BANDS,
    "g.zarr.zip::image": BANDS,
    "t.parquet": {"fields": IMAGE},
    "images.parquet": {"fields": IMAGE},
    "t.csv": {"fields": IMAGE},
    "t.json": {"fields": IMAGE},
    "t.jsonl": {"fields": IMAGE},
    "tar.csv": {"fields": IMAGE},
    "parts.csv": {"fields": {"image": Field(column="image", dims="t b y x")}},
    "item.json": {"fields": {"image": Field(column="image")}},
    "a.vrt": {},
    "coast.tacozip": {"fields": {"image": Field(column="s2/img.tif")}},
    "cube": {"window": chaski.Grid((16, 16))},
    "chips/": {
        "fields": {"image": "{id}.tif", "boxes": Vector("../{id}.boxes.npy", kind="boxes")},
        "rows": Rows(where="id = 'a'"),
    },
    ".": {
        "fields": {
            "image": "chips/{id}.tif",
            "h5": Field(pattern="{id}.h5::g/image", dims="t b y x"),
            "zarr": Field(pattern="stores/{id}.zarr", dims="b y x"),
            "npz": "{id}.npz::image",
            "class": Field(column="image", kind="text"),
        },
    },
}


@pytest.fixture(scope="module")
def served(binary, tmp_path_factory):
    """A root in a directory that is not served, and a server of it."""
    root = tmp_path_factory.mktemp("outside") / "root"
    make(root)
    with serving(binary, "--root", str(root)) as (target, token):
        yield root, target, token


@pytest.mark.parametrize("source", SOURCES)
def test_source_below_a_root(served, source):
    root, target, token = served
    options = {"batch_size": 1, "shuffle": False, **SOURCES[source]}
    if source == ".":  # files that are not the source
        options["tables"] = {str(root / "t.csv"): {"id": "id"}}
        options["rows"] = Rows(ids=str(root / "t.csv") + "::id")
    whole = source.replace("ROOT", str(root)) if source[0] == "/" else str(root / source)
    with chaski.load(whole, **options) as loader:
        want = next(iter(loader))
    with chaski.connect(target, whole, **options, engine=chaski.Engine(token=token)) as loader:
        got = next(iter(loader))
    assert got.keys() == want.keys()
    for name, value in nonempty(want.items()):
        if isinstance(value, np.ndarray):
            assert np.array_equal(got[name], value), name
