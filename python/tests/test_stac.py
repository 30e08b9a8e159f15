"""STAC items become catalogs, and datasets."""

from __future__ import annotations

import json
import subprocess
import sys
import types
from pathlib import Path

import numpy as np
import pytest
import rasters

import chaski
from chaski import Field

pytestmark = pytest.mark.usefixtures("one_engine")

rasterio = pytest.importorskip("rasterio", reason="needs rasterio to write scenes")
N = 5


@pytest.fixture(scope="module")
def scenes(tmp_path_factory):
    """A folder with the assets of items, and the items, whose paths are relative to the folder."""
    folder = tmp_path_factory.mktemp("scenes")
    rng = np.random.default_rng(1)
    items = []
    for i in range(N):
        item = {
            "type": "Feature",
            "stac_version": "1.1.0",
            "id": f"S2_{i}",
            "bbox": [-3.0, 41.5, -2.9, 41.6],
            "geometry": None,
            "links": [{"rel": "self", "href": "x"}],
            "properties": {
                "datetime": f"2024-0{i + 1}-01T10:00:00Z",
                "eo:cloud_cover": 10 * i,
                "platform": "sentinel-2a",
                "proj:shape": [16, 16],
            },
            "assets": {},
        }
        for band in ("B04", "B08"):
            name = f"{i}_{band}.tif"
            place = rasterio.Affine(10, 0, 500000, 0, -10, 4600000 - 160 * i)
            rasters.write(
                folder / name,
                rng.integers(0, 9999, (1, 16, 16), np.uint16),
                crs="EPSG:32630",
                transform=place,
            )
            item["assets"][band] = {"href": name, "type": "image/tiff; application=geotiff"}
        items.append(item)
    (folder / "items.json").write_text(json.dumps({"type": "FeatureCollection", "features": items}))
    return folder, items


def pixels(folder: Path, i: int, band: str) -> np.ndarray:
    with rasterio.open(folder / f"{i}_{band}.tif") as d:
        return d.read()


def read_all(source, folder, **options) -> list[int]:
    """Checks all rows against rasterio, and returns the items in the order of the batches."""
    seen = []
    with chaski.load(source, batch_size=2, shuffle=False, **options) as loader:
        for batch in loader:
            for row in np.flatnonzero(batch["valid"]):
                i = int(batch["cloud"][row]) // 10
                seen.append(i)
                assert (batch["x"][row] == np.concatenate(
                    [pixels(folder, i, "B04"), pixels(folder, i, "B08")])).all()  # fmt: skip
    return seen


class Collection:
    """What pystac and pystac-client give: an object with to_dict."""

    def __init__(self, items):
        self.items = items

    def to_dict(self):
        return {"type": "FeatureCollection", "features": self.items}


@pytest.mark.parametrize("form", ["path", "dict", "object", "list", "generator"])
def test_catalog_of_items(scenes, tmp_path, form, monkeypatch):
    folder, items = scenes
    whole = [
        {**i, "assets": {k: {"href": str(folder / v["href"])} for k, v in i["assets"].items()}}
        for i in items
    ]
    given = {
        "path": folder / "items.json",
        "dict": Collection(whole).to_dict(),
        "object": Collection(whole),
        "list": whole,
        "generator": (i for i in whole),
    }[form]
    monkeypatch.chdir(tmp_path)
    out = chaski.stac(given, "scenes.parquet", {"red": "B04", "B08": "B08"})
    assert out == tmp_path / "scenes.parquet"
    fields = {
        "x": Field(columns=["red", "B08"]),
        "cloud": Field(column="eo:cloud_cover"),
    }
    assert read_all(out, folder, fields=fields) == list(range(N))
    rows = chaski.Rows(where="\"eo:cloud_cover\" < 30 AND platform = 'sentinel-2a'")
    assert read_all(out, folder, fields=fields, rows=rows) == [0, 1, 2]
    rows = chaski.Rows(datetime="2024-02-01/2024-03-31")
    assert read_all(out, folder, fields=fields, rows=rows) == [1, 2]


def geoparquet(folder: Path, items: list[dict]) -> Path:
    """Writes items as STAC-GeoParquet: properties at the top, assets and bbox as structs."""
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    rows = [
        {
            "id": i["id"],
            "datetime": np.datetime64(i["properties"]["datetime"].rstrip("Z"), "us"),
            **{k: v for k, v in i["properties"].items() if k != "datetime"},
            "bbox": dict(zip(("xmin", "ymin", "xmax", "ymax"), i["bbox"], strict=True)),
            "assets": i["assets"],
            "links": i["links"],
        }
        for i in items
    ]
    out = folder / "items.parquet"
    pq.write_table(pa.Table.from_pylist(rows), out)
    return out


@pytest.mark.parametrize("form", ["json", "parquet"])
def test_items_are_a_dataset(scenes, form):
    """Without a catalog, also; an asset goes by its name or by that of its column."""
    folder, items = scenes
    source = folder / "items.json" if form == "json" else geoparquet(folder, items)
    for names in (["B04", "B08"], ["assets.B04.href", "assets.B08.href"]):
        fields = {"x": Field(columns=names), "cloud": Field(column="eo:cloud_cover")}
        assert read_all(source, folder, fields=fields) == list(range(N))
    rows = chaski.Rows(datetime="2024-02-01/2024-03-31")
    assert read_all(source, folder, fields=fields, rows=rows) == [1, 2]


def test_catalog_of_geoparquet(scenes, tmp_path):
    folder, items = scenes
    out = chaski.stac(geoparquet(folder, items), tmp_path / "s.parquet", ["B04", "B08"])
    fields = {"x": Field(columns=["B04", "B08"]), "cloud": Field(column="eo:cloud_cover")}
    assert read_all(out, folder, fields=fields) == list(range(N))


def test_missing_and_bad_assets(scenes, tmp_path):
    folder, items = scenes
    absolute = [
        {**i, "assets": {k: {"href": str(folder / v["href"])} for k, v in i["assets"].items()}}
        for i in items
    ]
    del absolute[1]["assets"]["B08"]
    absolute[3]["assets"]["B04"]["href"] = str(folder / "none.tif")
    with pytest.raises(chaski.NotFoundError, match='^items: field "B08" row 1'):
        chaski.stac(absolute, tmp_path / "s.parquet", ["B04", "B08"])
    with pytest.raises(chaski.NotFoundError, match=r"none\.tif"):
        chaski.stac(absolute, tmp_path / "s.parquet", ["B04", "B08"], drop_missing=True)
    assert not (tmp_path / "s.parquet").exists()
    chaski.stac(absolute, tmp_path / "s.parquet", ["B04", "B08"], drop_missing=True, skip_bad=True)
    fields = {"x": Field(columns=["B04", "B08"]), "cloud": Field(column="eo:cloud_cover")}
    assert read_all(tmp_path / "s.parquet", folder, fields=fields) == [0, 2, 4]


@pytest.mark.parametrize(
    ("items", "assets", "error", "said"),
    [
        (3, ["B04"], chaski.SpecError, "or STAC items, as dicts"),
        ([3], ["B04"], chaski.SpecError, "or STAC items, as dicts"),
        ([], ["B04"], chaski.CorruptError, "no item"),
        ([{"properties": {"gsd": float("nan")}}], ["B04"], chaski.SpecError, "not JSON"),
        ([{"properties": {"datetime": Path}}], ["B04"], chaski.SpecError, "not JSON"),
        ([{"type": "Feature"}], ["B04"], chaski.NotFoundError, r'no column "B04"'),
        ([], [], chaski.SpecError, "assets"),
        ([], "B04", chaski.SpecError, "assets"),
        ("none.json", ["B04"], chaski.NotFoundError, r"none\.json"),
    ],
    ids=str,
)
def test_refused(tmp_path, items, assets, error, said):
    with pytest.raises(error, match=said):
        chaski.stac(items, tmp_path / "s.parquet", assets)


def test_an_asset_that_no_item_has(scenes, tmp_path):
    with pytest.raises(chaski.NotFoundError, match="B12"):
        chaski.stac(scenes[0] / "items.json", tmp_path / "s.parquet", ["B12"])


def test_the_page(scenes, monkeypatch, tmp_path):
    folder, items = scenes
    whole = [
        {
            **i,
            "properties": {**i["properties"], "eo:cloud_cover": 5},
            "assets": {k: {"href": str(folder / v["href"])} for k, v in i["assets"].items()},
        }
        for i in items
    ]
    search = types.SimpleNamespace(item_collection=lambda: Collection(whole))
    client = types.SimpleNamespace(search=lambda **_: search)
    found = types.SimpleNamespace(Client=types.SimpleNamespace(open=lambda _: client))
    monkeypatch.setitem(sys.modules, "pystac_client", found)
    monkeypatch.chdir(tmp_path)
    page = (Path(__file__).parents[2] / "docs/stac.md").read_text()
    blocks = [b.split("```")[0] for b in page.split("```python\n")[1:]]
    assert len(blocks) == 2
    shapes = []
    for block in blocks:
        small = block.replace("window=256", "window=16")
        exec(small, {"step": lambda x: shapes.append(x.shape)})
    assert shapes == [(2, 2, 16, 16)]  # those of March and April


def test_the_command(scenes, binary, tmp_path):
    """A column of lists is one of the catalog."""
    folder, items = scenes
    pq = pytest.importorskip("pyarrow.parquet")
    command = [binary, "index", "--field", "B04", "-o", tmp_path / "s.parquet"]
    source = geoparquet(folder, items)
    ran = subprocess.run([*command, source], capture_output=True, text=True, check=True)
    assert ran.stderr == ""
    shapes = pq.read_table(tmp_path / "s.parquet")["proj:shape"]
    assert shapes.to_pylist() == pq.read_table(source)["proj:shape"].to_pylist()
