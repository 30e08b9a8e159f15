"""Fields of shapes through the real engine, against rasterio."""

from __future__ import annotations

import contextlib
import json
import re
import struct
import subprocess
from pathlib import Path

import numpy as np
import pytest
import rasters
from conftest import nonempty

import chaski

rasterio = pytest.importorskip("rasterio")
pq = pytest.importorskip("pyarrow.parquet")

pytestmark = pytest.mark.usefixtures("one_engine")

N, SIZE = 6, 64


def transform(i: int) -> rasterio.Affine:
    return rasterio.Affine(10, 0, 500000 + 300 * i, 0, -10, 4600000 - 200 * i)


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, list[tuple[dict, int]]]:
    """A directory of images, a GeoParquet file of triangles, and the triangles."""
    folder = tmp_path_factory.mktemp("vector")
    (folder / "images").mkdir()
    for i in range(N):
        rasters.write(
            folder / "images" / f"{i}.tif",
            np.full((1, SIZE, SIZE), i, np.uint8),
            crs="EPSG:32630",
            transform=transform(i),
        )
    rng = np.random.default_rng(4)
    rings = rng.uniform((500000, 4598000), (502500, 4600000), (80, 1, 2)) + rng.uniform(
        -120, 120, (80, 3, 2)
    )
    rings = np.concatenate([rings, rings[:, :1]], axis=1)
    values = rng.integers(1, 200, 80)
    head = struct.pack("<BIII", 1, 3, 1, 4)
    pa = pytest.importorskip("pyarrow")
    crs = {"name": "UTM", "id": {"authority": "EPSG", "code": 32630}}
    column = {"encoding": "WKB", "geometry_types": ["Polygon"], "crs": crs}
    geo = {"version": "1.1.0", "primary_column": "geometry", "columns": {"geometry": column}}
    table = pa.table(
        {
            "class": values,
            "name": ["even" if v % 2 == 0 else "odd" for v in values],
            "geometry": [head + ring.astype("<f8").tobytes() for ring in rings],
        }
    )
    path = folder / "shapes.parquet"
    pq.write_table(table.replace_schema_metadata({"geo": json.dumps(geo)}), path)
    shapes = [{"type": "Polygon", "coordinates": [ring.tolist()]} for ring in rings]
    return folder / "images", path, list(zip(shapes, map(int, values), strict=True))


def burn(shapes: list[tuple[dict, int]], t: rasterio.Affine, size: int, **o: bool) -> np.ndarray:
    from rasterio.features import rasterize

    return rasterize(shapes, (size, size), transform=t, dtype="int64", **o)


@pytest.mark.parametrize("touched", [False, True])
def test_masks_of_windows(scene, touched: bool):
    images, path, shapes = scene
    fields = {
        "image": chaski.Field(),
        "mask": chaski.Vector(path, "class", all_touched=touched),
        "id": chaski.Vector(path, kind="instances", all_touched=touched),
        "odd": chaski.Vector(path, "name", classes=["odd", "none"], all_touched=touched),
    }
    rows = 0
    with chaski.load(
        images, batch_size=4, window=32, fields=fields, pixels=chaski.Pixels(windows=True)
    ) as loader:
        kinds = {f.name: (f.kind, f.dtype, f.axes) for f in loader.fields}
        assert kinds["mask"] == ("vector", "int64", ("n", "y", "x"))
        assert kinds["id"][1] == "int32"
        assert kinds["odd"][1] == "uint8"
        for batch in loader:
            for k in np.flatnonzero(batch["valid"]):
                y, x = batch["window"][k][:2]
                t = transform(int(batch["image"][k].max())) @ rasterio.Affine.translation(x, y)
                mask = burn(shapes, t, 32, all_touched=touched)
                assert np.array_equal(batch["mask"][k], mask)
                ids = [(s, i + 1) for i, (s, _) in enumerate(shapes)]
                assert np.array_equal(batch["id"][k], burn(ids, t, 32, all_touched=touched))
                odd = [(s, 1) for s, v in shapes if v % 2]
                assert np.array_equal(batch["odd"][k], burn(odd, t, 32, all_touched=touched))
                rows += mask.any()
    assert rows >= N - 2


@pytest.mark.parametrize("kind", ["pyarrow", "pandas", "geopandas"])
def test_shapes_in_memory(scene, kind: str):
    """A table in memory is drawn as the file of the same shapes, also as of a Source or a dict."""
    images, path, _ = scene
    frame, crs = pq.read_table(path), "EPSG:32630"
    if kind != "pyarrow":
        frame = frame.to_pandas().set_index("class", drop=False)
        frame["name"] = frame["name"].astype("category")
    if kind == "geopandas":
        geopandas = pytest.importorskip("geopandas")
        place = geopandas.GeoSeries.from_wkb(frame.pop("geometry"), crs=crs)
        frame, crs = geopandas.GeoDataFrame(frame, geometry=place).rename_geometry("place"), None
    vector = chaski.Vector(frame, "name", classes=["odd"], crs=crs)

    def masks(source, mask):
        fields = {"image": {}, "mask": mask}
        with chaski.load(source, batch_size=2, fields=fields, shuffle=False) as loader:
            return np.concatenate([b["mask"] for b in loader])

    want = masks(images, chaski.Vector(path, "name", classes=["odd"]))
    assert np.count_nonzero(want) > 100
    for source, mask in [
        (images, vector),
        (images, {"vector": {"path": frame, "column": "name", "classes": ["odd"], "crs": crs}}),
        (chaski.Mixture({"a": chaski.Source(images, fields={"mask": vector})}), vector),
    ]:
        np.testing.assert_array_equal(masks(source, mask)[: len(want)], want[: len(want)])


def test_state_and_dict(scene):
    images, path, _ = scene
    fields = {"image": {}, "mask": {"vector": {"path": path, "column": "class", "dtype": "uint8"}}}
    options = dict(batch_size=1, window=32, fields=fields, seed=5)
    with chaski.load(images, **options) as loader:
        want = [b["mask"].copy() for b in loader]
    for step in range(N):
        with chaski.load(images, **options) as loader:
            it = iter(loader)
            for _ in range(step):
                next(it)
            state = loader.state_dict()
        with chaski.load(images, **options) as loader:
            loader.load_state_dict(state)
            assert np.array_equal([b["mask"] for b in loader], want[step:])


@pytest.mark.parametrize(
    ("vector", "says"),
    [
        ({"path": "x", "kind": "boxes", "all_touched": True}, "all_touched"),
        ({"path": "x", "colour": 1}, "colour"),
        ("x", "must be a Vector"),
    ],
)
def test_vectors_that_are_wrong(scene, vector, says):
    with pytest.raises(chaski.SpecError, match=says):
        chaski.load(scene[0], batch_size=1, fields={"image": {}, "mask": {"vector": vector}})


def test_page(scene, tmp_path, monkeypatch):
    """The blocks of docs/labels.md about shapes run."""
    page = Path(__file__).resolve().parents[2] / "docs" / "labels.md"
    blocks = re.findall(r"^```python\n(.*?)^```$", page.read_text(), re.DOTALL | re.MULTILINE)
    blocks = [b for b in blocks if "chaski.Vector(" in b and "pattern=" not in b]
    (tmp_path / "images").symlink_to(scene[0])
    (tmp_path / "buildings.parquet").symlink_to(scene[1])
    monkeypatch.chdir(tmp_path)
    seen = []
    exec(blocks[1].replace("window=128", "window=32"), {"step": lambda *x: seen.append(x)})
    assert len(seen) == N
    for image, boxes, labels, shapes in nonempty(seen):
        assert image.shape == (1, 32, 32)
        assert boxes.shape == (len(labels), 4) and len(shapes) == len(labels)
    assert sum(len(x[1]) for x in seen) > 5
    seen.clear()
    exec(blocks[0].replace("window=128", "window=32"), {"step": lambda x, y: seen.append((x, y))})
    assert sum(len(y) for _, y in seen) == N
    assert all(x.shape[1:] == (1, 32, 32) and y.shape[1:] == (32, 32) for x, y in seen)
    assert any(y.any() for _, y in seen)


def cut(ring: np.ndarray, size: int) -> np.ndarray | None:
    """Returns the box of what of a triangle lies in a window, by a fine grid of places."""
    at = (np.arange(size * 16) + 0.5) / 16
    x, y = np.meshgrid(at, at)
    a, b, c = ring[:3]

    def side(p, q):
        return (q[0] - p[0]) * (y - p[1]) - (q[1] - p[1]) * (x - p[0])

    signs = np.stack([side(a, b), side(b, c), side(c, a)])
    inside = (signs >= 0).all(0) | (signs <= 0).all(0)
    if not inside.any():
        return None
    return np.array([x[inside].min(), y[inside].min(), x[inside].max(), y[inside].max()])


@pytest.mark.parametrize("through", ["load", "connect"])
def test_boxes_and_polygons(scene, binary, through: str):
    images, path, shapes = scene
    fields = {
        "image": chaski.Field(),
        "boxes": chaski.Vector(path, "class", kind="boxes"),
        "shapes": chaski.Vector(path, "name", kind="polygons", classes=["even", "odd"]),
    }
    options = {
        "batch_size": 4,
        "window": 32,
        "fields": fields,
        "pixels": chaski.Pixels(windows=True),
        "seed": 2,
    }
    with contextlib.ExitStack() as stack:
        if through == "load":
            loader = stack.enter_context(chaski.load(images, **options))
        else:
            command = [binary, "serve", "--listen", "127.0.0.1:0", "--root", str(images.parent)]
            p = stack.enter_context(
                subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            )
            stack.callback(p.terminate)
            target = json.loads(p.stdout.readline())["listen"]
            token = re.search(r"CHASKI_TOKEN=(\S+)", p.stderr.readline() + p.stderr.readline())[1]
            engine = chaski.Engine(token=token)
            loader = stack.enter_context(chaski.connect(target, images, **options, engine=engine))
        kinds = {f.name: (f.kind, f.dtype, f.axes) for f in loader.fields}
        assert kinds["boxes"] == ("boxes", "float32", ("n", "xyxy"))
        assert kinds["boxes_values"] == ("boxes", "int64", ("n",))
        found = 0
        for batch in loader:
            boxes, values = batch["boxes"], batch["boxes_values"]
            assert isinstance(boxes, chaski.Ragged) and boxes.values.shape[1:] == (4,)
            assert boxes.offsets.tolist() == values.offsets.tolist()
            assert "ragged" in repr(batch)
            rows = zip(
                batch["valid"], boxes.rows(), values.rows(), chaski.polygons(batch, "shapes"),
                strict=True,
            )  # fmt: skip
            for k, (valid, box, value, polygons) in enumerate(rows):
                if not valid:
                    assert len(box) == len(value) == len(polygons) == 0
                    continue
                y, x = batch["window"][k][:2]
                t = ~(transform(int(batch["image"][k].max())) @ rasterio.Affine.translation(x, y))
                # What covers no place of the grid may still be there, so that values are compared
                # one after the other.
                at = 0
                for s, v in shapes:
                    ring = np.array([t @ p for p in s["coordinates"][0]])
                    want = cut(ring, 32)
                    if at < len(value) and value[at] == v:
                        if want is not None:
                            assert np.abs(want - box[at]).max() < 1
                        (rings,) = polygons[at]
                        assert np.allclose([*rings[0].min(0), *rings[0].max(0)], box[at], atol=1e-3)
                        at += 1
                        found += want is not None
                    else:
                        assert want is None
                assert at == len(value)
                assert batch["shapes_values"].rows()[k].tolist() == [
                    2 if v % 2 else 1 for v in value
                ]
        assert found > 10


def test_boxes_in_torch(scene):
    torch = pytest.importorskip("torch")
    import chaski.torch

    images, path, _ = scene
    fields = {"image": chaski.Field(), "boxes": chaski.Vector(path, "class", kind="boxes")}
    options = {"window": 32, "fields": fields}
    with chaski.torch.IterableDataset(images, batch_size=2, **options) as dataset:
        batches = list(torch.utils.data.DataLoader(dataset, batch_size=None))
        for batch in batches:
            assert [len(b) for b in batch["boxes"].rows()] == [
                len(v) for v in batch["boxes_values"].rows()
            ]
            assert batch["boxes"].values.dtype == torch.float32
    with chaski.torch.MapDataset(images, **options) as dataset:
        loader = torch.utils.data.DataLoader(dataset, batch_size=3, collate_fn=dataset.collate)
        seen = list(loader)
        assert [tuple(b["image"].shape) for b in seen] == [(3, 1, 32, 32)] * 2
        items = [dataset[i] for i in range(N)]
        flat = [box for b in seen for box in b["boxes"]]
        assert all(torch.equal(a["boxes"], b) for a, b in zip(items, flat, strict=True))
        assert len({len(b) for b in flat}) > 1


def test_shapes_and_windows_on_arrays_that_have_a_place(tmp_path):
    """As on a GeoTIFF of the same pixels. Labels in pixels need names, which arrays do not have."""
    xarray = pytest.importorskip("xarray")
    pytest.importorskip("rioxarray")
    x = np.arange(64 * 64, dtype="float32").reshape(64, 64)
    axes = {"y": 4599995.0 - 10 * np.arange(64), "x": 500005.0 + 10 * np.arange(64)}
    made = xarray.Dataset({"b": (("y", "x"), x)}, axes).rio.write_crs(32630)
    made.to_netcdf(tmp_path / "a.nc")
    made.to_zarr(tmp_path / "a.zarr", zarr_format=2)
    place = transform(0)
    rasters.write(tmp_path / "a.tif", x, crs="EPSG:32630", transform=place)
    ring = [[500020, 4599980], [500200, 4599980], [500205, 4599800], [500020, 4599980]]
    shape = {"type": "Polygon", "coordinates": [ring]}
    crs = {"type": "name", "properties": {"name": "EPSG:32630"}}
    feature = {"type": "Feature", "properties": {}, "geometry": shape}
    document = {"type": "FeatureCollection", "crs": crs, "features": [feature]}
    (tmp_path / "s.geojson").write_text(json.dumps(document))
    want = rasterio.features.rasterize([shape], x.shape, transform=place)
    window = chaski.GeoWindow(size_m=160, resolution=10, stride_m=160)
    seen = []
    for name in ("a.tif", "a.nc", "a.zarr"):
        image = chaski.Field(column=None if name == "a.tif" else "b")
        fields = {"b": image, "m": chaski.Vector(tmp_path / "s.geojson")}
        with chaski.load(tmp_path / name, batch_size=1, fields=fields) as loader:
            assert np.array_equal(next(iter(loader))["m"][0], want)
        how = {"window": window, "pixels": chaski.Pixels(geo=True), "shuffle": False}
        with chaski.load(tmp_path / name, batch_size=16, fields={"b": image}, **how) as loader:
            b = next(iter(loader))
        assert b["valid"].all()
        seen.append(sorted((t.tolist(), p.tolist()) for t, p in zip(
            b["geo"]["transform"].round(3), b["b"], strict=True)))  # fmt: skip
    assert seen[0] == seen[1] == seen[2]
    (tmp_path / "c.json").write_text(
        '{"images": [{"id": 1, "file_name": "a.nc"}], "annotations": []}'
    )
    fields = {"b": chaski.Field(column="b"), "m": chaski.Vector(tmp_path / "c.json", kind="boxes")}
    with pytest.raises(chaski.UnsupportedError, match="images of arrays have no names"):
        chaski.load(tmp_path / "a.nc", batch_size=1, fields=fields)
