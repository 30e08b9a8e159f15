"""A file of shapes for each image, by every way in, against rasterio."""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import rasters
from conftest import nonempty

import chaski

rasterio = pytest.importorskip("rasterio")
warp = pytest.importorskip("rasterio.warp")
features = pytest.importorskip("rasterio.features")

pytestmark = pytest.mark.usefixtures("one_engine")

N, SIZE = 6, 64
NAMES = ["house", "tank", "mast"]
NO_FILE, NO_SHAPES = 2, 4  # images without a file, and with a file of no shapes


def transform(i: int) -> rasterio.Affine:
    return rasterio.Affine(10, 0, 500000 + 700 * i, 0, -10, 4600000 - 650 * i)


def collection(shapes: list[dict[str, Any]], crs: str | None) -> str:
    named = {"type": "name", "properties": {"name": crs}}
    return json.dumps(
        {"type": "FeatureCollection", "features": shapes} | ({"crs": named} if crs else {})
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Images, and their labels: in degrees and in metres, as SpaceNet has them."""
    root = tmp_path_factory.mktemp("labelled")
    for name in ("images", "labels"):
        (root / name).mkdir()
    rng = np.random.default_rng(12)
    for i in range(N):
        shape = {"height": SIZE, "width": SIZE, "count": 1, "dtype": "uint8"}
        place = {"crs": "EPSG:32630", "transform": transform(i)}
        rasters.write(
            root / f"images/img{i}.tif", np.full((1, SIZE, SIZE), i, np.uint8), **shape, **place
        )
        shapes = []
        for k in range(5):
            ring = rng.uniform(0, 10 * SIZE, 2) + rng.uniform(-150, 150, (3, 2))
            ring = ring * [1, -1] + [transform(i).c, transform(i).f]
            shape = {"type": "Polygon", "coordinates": [[*ring.tolist(), ring[0].tolist()]]}
            if i % 2:
                shape = warp.transform_geom("EPSG:32630", "EPSG:4326", shape, precision=12)
            values = {"height": 7 * k + 1, "name": NAMES[(k + i) % 3]}
            shapes.append({"type": "Feature", "geometry": shape, "properties": values})
        crs = None if i % 2 else "urn:ogc:def:crs:EPSG::32630"
        if i != NO_FILE:
            text = collection([] if i == NO_SHAPES else shapes, crs)
            (root / f"labels/buildings_{i}.geojson").write_text(text)
    (root / "labels/buildings_99.geojson").write_text(collection([], None))  # of no image
    return root


def shapes_of(root: Path, i: int) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    path = root / f"labels/buildings_{i}.geojson"
    if not path.exists():
        return []
    file = json.loads(path.read_text())
    crs = "EPSG:32630" if "crs" in file else "EPSG:4326"
    place = [warp.transform_geom(crs, "EPSG:32630", f["geometry"]) for f in file["features"]]
    return list(zip(place, [f["properties"] for f in file["features"]], strict=True))


def burn(shapes: list[tuple[dict[str, Any], int]], t: rasterio.Affine, size: int) -> np.ndarray:
    if not shapes:
        return np.zeros((size, size), np.int64)
    return features.rasterize(shapes, (size, size), transform=t, dtype="int64")


def check(loader: Any, root: Path, images: int = N) -> None:
    """Holds the fields of a loader to what rasterio draws of each file."""
    seen = set()
    for batch in loader:
        for k in np.flatnonzero(batch["valid"]):
            i = int(batch["image"][k].max())
            y, x = batch["window"][k][:2]
            t = transform(i) @ rasterio.Affine.translation(x, y)
            shapes = shapes_of(root, i)
            size = batch["image"].shape[-1]
            heights = [(s, v["height"]) for s, v in shapes]
            assert np.array_equal(batch["height"][k], burn(heights, t, size))
            numbers = [(s, j + 1) for j, (s, _) in enumerate(shapes)]
            assert np.array_equal(batch["id"][k], burn(numbers, t, size))
            houses = [(s, 1) for s, v in shapes if v["name"] == "house"]
            assert np.array_equal(batch["house"][k], burn(houses, t, size))
            seen.add(i)
    assert len(seen) == images
    dtypes = {f.name: f.dtype for f in loader.fields if f.name != "window"}
    assert dtypes == {"image": "uint8", "height": "int64", "id": "int32", "house": "uint8"}


def fields(image: str, pattern: str, **vector: Any) -> dict[str, Any]:
    vector = {"pattern": pattern, "missing": "empty"} | vector
    return {
        "image": chaski.Field(pattern=image, dtype="native"),
        "height": chaski.Vector(column="height", **vector),
        "id": chaski.Vector(kind="instances", **vector),
        "house": chaski.Vector(column="name", classes=["house", "barn"], **vector),
    }


def ways(root: Path, binary: str) -> dict[str, tuple[str, dict[str, Any]]]:
    """The ways to name the same images and labels: a source, and the fields."""
    labels = "labels/buildings_{id}.geojson"
    for name, options in {"relative": [], "absolute": ["--absolute"]}.items():
        command = [binary, "index", str(root / "images"), "-o", str(root / f"{name}.parquet")]
        subprocess.run([*command, *options], check=True, capture_output=True)
    return {
        "folder": (str(root), fields("images/img{id}.tif", labels)),
        "folder of images": (str(root / "images"), fields("img{id}.tif", f"../{labels}")),
        "absolute pattern": (str(root), fields("images/img{id}.tif", str(root / labels))),
        "URI": (f"file://{root}", fields("images/img{id}.tif", f"file://{root}/{labels}")),
        "glob": (str(root / "images/*.tif"), fields("img{id}.tif", f"../{labels}")),
        "catalog": (
            str(root / "relative.parquet"),
            fields("images/img{id}.tif", labels),
        ),
        "catalog of absolute paths": (
            str(root / "absolute.parquet"),
            fields("img{id}.tif", f"../{labels}"),
        ),
    }


WAYS = ["folder", "folder of images", "absolute pattern", "URI", "glob", "catalog"]


@pytest.mark.parametrize("way", [*WAYS, "catalog of absolute paths"])
def test_every_way_in(folder: Path, binary, way: str):
    source, named = ways(folder, binary)[way]
    options: dict[str, Any] = {"pixels": chaski.Pixels(windows=True), "seed": 3}
    window = chaski.RandomWindow(32, per_asset=3)
    with chaski.load(source, batch_size=4, fields=named, window=window, **options) as loader:
        check(loader, folder)


def test_by_a_server_below_its_roots(folder: Path, binary):
    options: dict[str, Any] = {"pixels": chaski.Pixels(windows=True)}
    command = [binary, "serve", "--listen", "127.0.0.1:0", "--root", str(folder)]
    with contextlib.ExitStack() as stack:
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        p = stack.enter_context(subprocess.Popen(command, **pipes))
        stack.callback(p.terminate)
        target = json.loads(p.stdout.readline())["listen"]
        token = re.search(r"CHASKI_TOKEN=(\S+)", p.stderr.readline() + p.stderr.readline())[1]
        engine = chaski.Engine(token=token)
        source, named = ways(folder, binary)["folder of images"]
        options |= {"batch_size": 4, "engine": engine}
        with chaski.connect(target, source, fields=named, **options) as loader:
            check(loader, folder)
        outside = fields("img{id}.tif", "../../elsewhere/{id}.geojson")
        with pytest.raises(chaski.NotFoundError, match="elsewhere"):
            chaski.connect(target, source, fields=outside, **options)


@pytest.mark.parametrize("kind", ["boxes", "polygons"])
def test_boxes_and_polygons(folder: Path, kind: str):
    named: dict[str, Any] = {
        "image": "images/img{id}.tif",
        "found": chaski.Vector(
            pattern="labels/buildings_{id}.geojson", column="height", kind=kind, missing="empty"
        ),
    }
    count = 0
    with chaski.load(folder, batch_size=3, fields=named) as loader:
        for batch in loader:
            values = batch["found_values"].rows()
            outlines = batch["found"].rows() if kind == "boxes" else chaski.polygons(batch, "found")
            for k in np.flatnonzero(batch["valid"]):
                i = int(batch["image"][k].max())
                inside = [
                    (shape, value["height"])
                    for shape, value in shapes_of(folder, i)
                    if burn([(shape, 1)], transform(i), SIZE).any()
                ]
                known = dict(zip(map(int, values[k]), outlines[k], strict=True))
                for shape, height in inside:
                    ring = np.array([~transform(i) @ p for p in shape["coordinates"][0]])
                    want = np.clip([*ring.min(0), *ring.max(0)], 0, SIZE)
                    got = known[height]
                    if kind == "polygons":
                        ring = got[0][0]
                        got = np.array([*ring.min(0), *ring.max(0)])
                    if ring.min() > 0 and ring.max() < SIZE:
                        assert np.abs(got - want).max() < 1e-2
                        count += 1
    assert count > 5


def test_geoparquet(folder: Path):
    geopandas = pytest.importorskip("geopandas")
    for i in range(N):
        path = folder / f"labels/buildings_{i}.geojson"
        if path.exists() and i != NO_SHAPES:
            geopandas.read_file(path).to_parquet(path.with_suffix(".parquet"))
    options: dict[str, Any] = {"pixels": chaski.Pixels(windows=True)}
    named = fields("images/img{id}.tif", "labels/buildings_{id}.parquet")
    with chaski.load(folder, batch_size=4, fields=named, window=32, **options) as loader:
        check(loader, folder)


def test_missing_files(folder: Path):
    pattern = "labels/buildings_{id}.geojson"
    named = fields("images/img{id}.tif", pattern, missing="error")
    with pytest.raises(chaski.NotFoundError, match=r'buildings_2\.geojson.*missing "empty"'):
        chaski.load(folder, batch_size=2, fields=named)
    options: dict[str, Any] = {"pixels": chaski.Pixels(windows=True), "batch_size": 2}
    rows = chaski.Rows(missing="drop")
    with chaski.load(folder, fields=named, rows=rows, **options) as loader:
        check(loader, folder, N - 1)
        ids = [loader.ids[i] for i in range(loader.samples)]
        assert ids == [f"images/img{i}.tif" for i in range(N) if i != NO_FILE]
    # A wrong pattern is no dataset without labels.
    for wrong in ("labels/none_{id}.geojson", "labels/buildings_9{id}.geojson"):
        with pytest.raises(chaski.NotFoundError, match=r"geojson"):
            chaski.load(folder, batch_size=2, fields=fields("images/img{id}.tif", wrong))


def test_paths_as_text(folder: Path):
    vector = chaski.Vector(pattern="labels/buildings_{id}.geojson", missing="empty")
    named = {"image": "images/img{id}.tif", "path": chaski.Field(kind="text", vector=vector)}
    seen = {}
    with chaski.load(folder, batch_size=4, fields=named) as loader:
        for batch in loader:
            seen |= {int(x.max()): p for x, p in zip(batch["image"], batch["path"], strict=True)}
    for i, path in nonempty(seen.items()):
        want = folder.resolve() / f"labels/buildings_{i}.geojson"
        assert path == ("" if i == NO_FILE else str(want))


def test_files_are_looked_at_again(tmp_path: Path, folder: Path):
    (tmp_path / "img1.tif").write_bytes((folder / "images/img1.tif").read_bytes())
    label = tmp_path / "1.geojson"

    def write(left: int) -> None:
        ring = [[left, 4599300], [left + 50, 4599300], [left + 50, 4599200], [left, 4599200]]
        shape = {"type": "Polygon", "coordinates": [[*ring, ring[0]]]}
        feature = {"type": "Feature", "geometry": shape, "properties": {}}
        label.write_text(collection([feature], "EPSG:32630"))

    named = {"image": "img{id}.tif", "roof": chaski.Vector(pattern="{id}.geojson")}
    write(500700)
    with chaski.load(tmp_path, batch_size=1, fields=named) as first:
        for column, when in [(0, 1000), (20, 2000)]:  # another file of the same size
            write(500700 + 10 * column)
            os.utime(label, (when, when))
            with chaski.load(tmp_path, batch_size=1, fields=named) as again:
                for loader in nonempty([first, again]):
                    (batch,) = loader
                    assert np.flatnonzero(batch["roof"][0].any(0))[0] == column


HOSTILE = {
    "cut": ('{"type": "FeatureCollection", "features": [{"ty', "JSON"),
    "text": ("no label", "not GeoParquet, GeoJSON"),
    "deep": ('{"type": ' + "[" * 100_000, "JSON"),
    "no such column": (
        '{"type": "FeatureCollection", "features": [{"type": "Feature", "geometry": null, '
        '"properties": {"other": 1}}]}',
        "property height",
    ),
    "blank": ("\0" * 9, "not GeoParquet, GeoJSON"),
    "metres": (
        '{"type": "FeatureCollection", "features": [{"type": "Feature", "geometry": {"type": '
        '"Point", "coordinates": [500005, 4599995]}, "properties": {"height": 1}}]}',
        "no degrees: give their CRS",
    ),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_bad_file_is_a_bad_sample(tmp_path: Path, folder: Path, name: str):
    text, says = HOSTILE[name]
    for i in (0, 1):
        (tmp_path / f"img{i}.tif").write_bytes((folder / f"images/img{i}.tif").read_bytes())
    (tmp_path / "0.geojson").write_text(text)
    (tmp_path / "1.geojson").write_text((folder / "labels/buildings_1.geojson").read_text())
    vector = chaski.Vector(pattern="{id}.geojson", column="height")
    named = {"image": "img{id}.tif", "height": vector}
    with (
        chaski.load(tmp_path, batch_size=2, fields=named) as loader,
        pytest.raises(chaski.Error, match=rf"0\.geojson.*{says}"),
    ):
        list(loader)
    with chaski.load(tmp_path, batch_size=2, fields=named, on_bad="skip") as loader:
        (batch,) = loader
        assert batch["valid"].tolist().count(True) == 1
        k = int(np.flatnonzero(batch["valid"])[0])
        heights = [(s, v["height"]) for s, v in shapes_of(folder, 1)]
        assert np.array_equal(batch["height"][k], burn(heights, transform(1), SIZE))
    if name == "metres":  # the same file for all images, and with its CRS
        one = {"path": tmp_path / "0.geojson", "column": "height"}
        with pytest.raises(chaski.UnsupportedError, match=says):
            chaski.load(tmp_path, batch_size=1, fields={"a": {}, "b": chaski.Vector(**one)})
        fields = {"a": {}, "b": chaski.Vector(**one, crs="EPSG:32630")}
        with chaski.load(tmp_path, batch_size=2, fields=fields) as loader:
            assert sum(int(batch["b"].sum()) for batch in loader) == 1


def test_page(folder: Path, tmp_path: Path, monkeypatch):
    page = Path(__file__).resolve().parents[2] / "docs/labels.md"
    blocks = re.findall(r"^```python\n(.*?)^```$", page.read_text(), re.DOTALL | re.MULTILINE)
    (block,) = [b for b in blocks if "Vector(pattern=" in b]
    for i in range(4):
        for name, path in {"images": f"img{i}.tif", "labels": f"buildings_{i}.geojson"}.items():
            (tmp_path / "spacenet" / name).mkdir(exist_ok=True, parents=True)
            copy = tmp_path / "spacenet" / name / f"{i}{Path(path).suffix}"
            if (folder / name / path).exists():
                copy.write_bytes((folder / name / path).read_bytes())
    monkeypatch.chdir(tmp_path)
    seen: list[Any] = []
    exec(block.replace("window=128", "window=64"), {"step": lambda *x: seen.append(x)})
    ((images, roofs),) = seen
    for x, y in nonempty(zip(images, roofs, strict=True)):
        shapes = [(s, 1) for s, _ in shapes_of(folder, int(x.max()))]
        assert np.array_equal(y, burn(shapes, transform(int(x.max())), SIZE))


def test_a_large_file_is_refused_before_it_is_read(tmp_path: Path, folder: Path):
    (tmp_path / "img0.tif").write_bytes((folder / "images/img0.tif").read_bytes())
    named = {"image": "img{id}.tif", "m": chaski.Vector(pattern="{id}.geojson")}
    for size in (64 << 20, 1 << 40):
        (tmp_path / "0.geojson").write_text('{"features": [')
        os.truncate(tmp_path / "0.geojson", size)
        with (
            chaski.load(tmp_path, batch_size=1, fields=named) as loader,
            pytest.raises(chaski.LimitError, match=r"0\.geojson: (byte range|shapes).*: limit"),
        ):
            list(loader)


def test_states_are_of_the_same_files(tmp_path: Path, folder: Path):
    for i in range(2):
        (tmp_path / f"img{i}.tif").write_bytes((folder / f"images/img{i}.tif").read_bytes())
        (tmp_path / f"{i}.geojson").write_text(collection([], None))
    named = {"image": "img{id}.tif", "m": chaski.Vector(pattern="{id}.geojson")}
    with chaski.load(tmp_path, batch_size=1, fields=named) as loader:
        next(iter(loader))
        state = loader.state_dict()
    with chaski.load(tmp_path, batch_size=1, fields=named) as loader:
        loader.load_state_dict(state)
        assert len(list(loader)) == 1
    (tmp_path / "1.geojson").write_text(collection([], "EPSG:32630"))
    with (
        chaski.load(tmp_path, batch_size=1, fields=named) as loader,
        pytest.raises(chaski.StateError),
    ):
        loader.load_state_dict(state)


def test_what_does_not_fit(folder: Path, tmp_path: Path):
    label = "labels/buildings_{id}.geojson"
    ground = chaski.GeoWindow(size_m=160, resolution=10)
    refused: list[tuple[dict[str, Any], dict[str, Any], str]] = [
        ({"pattern": label, "path": "a.geojson"}, {}, "both path and pattern"),
        ({"pattern": "labels/1.geojson"}, {}, "must have a name such as {id}"),
        ({"pattern": label, "image": "file"}, {}, "of one image"),
        ({"pattern": label, "missing": "drop"}, {}, 'must be "error" or "empty"'),
        ({}, {}, "path is empty"),
        ({"pattern": label}, {"window": ground}, "many images"),
    ]
    (tmp_path / "a.geojson").write_text(collection([], None))
    for vector, options, says in nonempty(refused):
        named = {"image": "images/img{id}.tif", "m": chaski.Vector(**{"missing": None} | vector)}
        if "window" in options:
            named["m"] = chaski.Vector(**vector, missing="empty")
        with pytest.raises((chaski.Error, ValueError), match=says):
            chaski.load(folder, batch_size=1, fields=named, **options)
    # {id} is that of an image.
    named = {"image": chaski.Field(), "m": chaski.Vector(pattern=label)}
    with pytest.raises(chaski.NotFoundError, match="give the image one"):
        chaski.load(folder, batch_size=1, fields=named)
    (tmp_path / "table.csv").write_text(f"image\n{folder}/images/img0.tif\n")
    with pytest.raises(chaski.NotFoundError, match='no column "id"'):
        chaski.load(tmp_path / "table.csv", batch_size=1, fields={**named, "image": "image"})
