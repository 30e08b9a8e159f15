"""Files of weights count, in cells, the pixels that numpy counts."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import rasters

import chaski

rasterio = pytest.importorskip("rasterio", reason="needs rasterio to write rasters")
from rasterio.warp import transform  # noqa: E402

pytestmark = pytest.mark.usefixtures("one_engine")
SIDE, CELL = 32, 8


def count(binary: Path, folder: Path, field: dict[str, Any], *flags: str) -> np.ndarray:
    """Returns the counts of the cells of all rasters."""
    fields = {"image": {"pattern": "{id}.tif", **field}}
    return weigh(binary, folder, {"source": str(folder), "batch_size": 1, "fields": fields}, *flags)


def weigh(binary: Path, folder: Path, spec: dict[str, Any], *flags: str) -> np.ndarray:
    (folder / "spec.json").write_text(json.dumps(spec))
    command = [binary, "stats", "--sampling", "--cell", str(CELL), "-o", folder / "w", *flags]
    subprocess.run([*command, folder / "spec.json"], check=True, capture_output=True, text=True)
    written = (folder / "w").read_bytes()
    begin = 12 + int.from_bytes(written[8:12], "little")
    return np.frombuffer(written[begin + 8 * json.loads(written[12:begin])["rows"] :], "<u4")


def laid(folder: Path, fields: dict[str, Any]) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Returns the spec of the whole chips of a folder, and their tensors."""
    with chaski.load(folder, batch_size=100, fields=fields, shuffle=False) as loader:
        batch = next(iter(loader))
        return loader.spec, {name: batch[name] for name in batch}


def cells(counts: np.ndarray) -> np.ndarray:
    """Returns how many pixels of (n, y, x) count in each cell."""
    k = counts.shape[-1] // CELL
    return counts.reshape(-1, k, CELL, k, CELL).sum((2, 4)).ravel()


@pytest.mark.parametrize("interleave", ["pixel", "band"])
@pytest.mark.parametrize("bands", [None, [0], [2, 1], [3]])
@pytest.mark.parametrize("nodata", [0, [[0], [1], [2], [3, 0]]])
def test_picked_bands(tmp_path, binary, bands, nodata, interleave):
    """A pixel is valid where one of the picked bands is, each with its own nodata."""
    x = np.random.default_rng(1).integers(0, 4, (2, 4, SIDE, SIDE)).astype("uint16")
    for i in range(2):
        rasters.write(tmp_path / f"{i}.tif", x[i], interleave=interleave, nodata=0)
    picked = list(range(4)) if bands is None else bands
    own = [[0]] * len(picked) if nodata == 0 else [nodata[b] for b in picked]
    field = {"nodata": own} | ({} if bands is None else {"bands": bands})
    if nodata == 0:
        del field["nodata"]
    valid = np.any([~np.isin(x[:, b], gone) for b, gone in zip(picked, own, strict=True)], axis=0)
    np.testing.assert_array_equal(count(binary, tmp_path, field), cells(valid))


def test_bands_by_name(tmp_path, binary):
    x = np.random.default_rng(2).integers(0, 2, (2, 3, SIDE, SIDE)).astype("uint8")
    orders = [["a", "b", "c"], ["c", "a", "b"]]
    for i, names in enumerate(orders):
        rasters.write(tmp_path / f"{i}.tif", x[i], nodata=0)
        with rasterio.open(tmp_path / f"{i}.tif", "r+") as f:
            f.descriptions = names
    want = np.stack([x[i, names.index("c")] > 0 for i, names in enumerate(orders)])
    np.testing.assert_array_equal(count(binary, tmp_path, {"bands": ["c"]}), cells(want))


@pytest.mark.parametrize(
    "dtype", ["uint8", "int16", "int32", "uint32", "int64", "uint64", "float32", "float64"]
)
def test_classes_are_compared_as_stored(tmp_path, binary, dtype):
    code = {"uint8": 200, "int16": -30000, "float32": 2**24}.get(dtype, 2**24 + 1)
    codes = np.array([0, code, code - 1 if dtype != "float32" else 5, 7], dtype)
    x = codes[np.random.default_rng(3).integers(0, 4, (1, SIDE, SIDE))]
    rasters.write(tmp_path / "a.tif", x)
    got = count(binary, tmp_path, {"dtype": "native"}, "--classes", str(code))
    np.testing.assert_array_equal(got, cells(x == code))


def test_a_class_that_no_pixel_has(tmp_path, binary):
    rasters.write(tmp_path / "a.tif", np.ones((1, SIDE, SIDE), "uint8"))
    for classes, said in (
        ("1,7", 'no pixel of field "image" is one of [7]'),
        ("1,700", "has no 700"),
    ):
        with pytest.raises(subprocess.CalledProcessError) as e:
            count(binary, tmp_path, {}, "--classes", classes)
        assert said in e.value.stderr


def test_max_nodata_of_picked_bands(tmp_path, binary):
    """Windows without a valid pixel of the band that is picked are not drawn."""
    x = np.ones((1, 2, SIDE, SIDE), "uint8")
    x[0, 1, :, : SIDE // 2] = 0
    rasters.write(tmp_path / "0.tif", x[0], nodata=0)
    count(binary, tmp_path, {"bands": [1]})
    fields = {"image": chaski.Field(pattern="{id}.tif", bands=[1], dtype="native", validity="ok")}
    window = chaski.Grid(CELL, max_nodata=0, coverage=tmp_path / "w")
    with chaski.load(tmp_path, batch_size=4, fields=fields, window=window) as loader:
        batches = list(loader)
    assert all(b["ok"].all() for b in batches)
    assert sum(len(b["ok"]) for b in batches) == (SIDE // CELL) ** 2 // 2


PARTS = ["first/{id}.tif", "near/{id}.tif", "coarse/{id}.tif", "zone/{id}.tif"]


@pytest.fixture(scope="module")
def stacks(tmp_path_factory) -> Path:
    """Rasters that lie beside each other, on a coarser grid, and in another zone."""
    folder, rng = tmp_path_factory.mktemp("stacks"), np.random.default_rng(4)
    for name in ("first", "near", "coarse", "zone"):
        (folder / name).mkdir()
    for i in range(2):
        for name, bands, dtype, size, off, zone in (
            ("first", 1, "uint8", 10, 0, 32630),
            ("near", 2, "uint8", 10, 70, 32630),
            ("coarse", 1, "int16", 20, -40, 32630),
            ("zone", 1, "uint16", 10, 0, 32629),
        ):
            place = rasterio.transform.from_origin(500000 + off, 4600000 - off, size, size)
            if zone == 32629:
                x, y = transform("EPSG:32630", "EPSG:32629", [500000], [4600000])
                place = rasterio.transform.from_origin(x[0] - 60, y[0] - 90, size, size)
            x = rng.integers(0, 4, (bands, SIDE, SIDE)).astype(dtype)
            rasters.write(
                folder / name / f"{i}.tif", x, nodata=0, crs=f"EPSG:{zone}", transform=place
            )
    return folder


@pytest.mark.parametrize(
    ("parts", "dtype", "grid"),
    [
        ([0, 1], "native", "first"),
        ([0, 2], "int64", "first"),
        ([2, 3], "float32", "first"),
        ([0, 1, 2, 3], "int64", 20),
        ([0, 1, 2, 3], "float32", 20),
    ],
)
def test_stacks_are_counted_as_they_are_laid(stacks, binary, parts, dtype, grid):
    patterns = [PARTS[k] for k in parts]
    every = chaski.Field(patterns=patterns, dtype=dtype, grid=grid, validity="ok")
    spec, got = laid(stacks, {"stack": every})
    counts = weigh(binary, stacks, spec)
    ok = got["ok"].astype(bool)
    assert 0 < ok.any(1).sum() < ok[:, 0].size
    np.testing.assert_array_equal(counts, cells(ok.any(1)))
    for band in range(ok.shape[1]):
        one = chaski.Field(patterns=patterns, bands=[band], dtype="int64", grid=grid, validity="ok")
        spec, got = laid(stacks, {"stack": one})
        counts = weigh(binary, stacks, spec, "--classes", "1,3")
        want = np.isin(got["stack"], [1, 3]) & got["ok"].astype(bool)
        assert want.any()
        np.testing.assert_array_equal(counts, cells(want[:, 0]))


def geojson(path: Path, shapes: list[tuple[list[tuple[float, float]], int]]) -> None:
    features = [
        {"type": "Feature", "properties": {"class": k, "name": f"c{k}"},
         "geometry": {"type": "Polygon", "coordinates": [[*ring, ring[0]]]}}
        for ring, k in shapes
    ]  # fmt: skip
    crs = {"type": "name", "properties": {"name": "urn:ogc:def:crs:EPSG::32630"}}
    path.write_text(json.dumps({"type": "FeatureCollection", "crs": crs, "features": features}))


@pytest.fixture(scope="module")
def labels(tmp_path_factory) -> Path:
    """Images side by side, triangles on all of them, and boxes of each of them."""
    folder, rng = tmp_path_factory.mktemp("labels"), np.random.default_rng(5)
    every = []
    for i in range(2):
        place = rasterio.transform.from_origin(500000 + 320 * i, 4600000, 10, 10)
        x = rng.integers(0, 9, (1, SIDE, SIDE)).astype("uint8")
        rasters.write(folder / f"{i}.tif", x, crs="EPSG:32630", transform=place)
        lines = []
        for _ in range(6):
            x, y = rng.uniform(0, 320, (2, 3))
            corners = zip(500000 + 320 * i + x, 4600000 - y, strict=True)
            every.append(([(float(a), float(b)) for a, b in corners], int(rng.integers(1, 4))))
            middle, size = rng.uniform(0.2, 0.8, 2), rng.uniform(0.1, 0.3, 2)
            lines.append(" ".join(map(str, [int(rng.integers(0, 3)), *middle, *size])))
        (folder / f"{i}.txt").write_text("\n".join(lines))
        geojson(folder / f"{i}.geojson", every[-6:])
    geojson(folder / "all.json", every)
    return folder


VECTORS = {
    "numbers": lambda folder: chaski.Vector(folder / "all.json", "class"),
    "strings": lambda folder: chaski.Vector(folder / "all.json", "name"),
    "instances": lambda folder: chaski.Vector("{id}.geojson", kind="instances"),
    "some": lambda folder: chaski.Vector("{id}.geojson", "name", classes=["c3", "c1"]),
    "floats": lambda folder: chaski.Vector("{id}.geojson", "class", dtype="float32"),
    "detector": lambda folder: chaski.Vector("{id}.txt", classes=["a", "b", "c"]),
}


@pytest.mark.parametrize("name", VECTORS)
def test_shapes_are_counted_as_they_are_drawn(labels, binary, name):
    fields = {"image": chaski.Field(pattern="{id}.tif"), "label": VECTORS[name](labels)}
    if name in ("some", "detector"):  # a file of a pattern before it
        fields = {"other": chaski.Vector("{id}.geojson"), **fields}
    spec, got = laid(labels, fields)
    mask = got["label"]
    counts = weigh(binary, labels, spec, "--count", "label")
    np.testing.assert_array_equal(counts, cells(mask != 0))
    for classes in ([1], [0, 2]):
        flags = ["--count", "label", "--classes", ",".join(map(str, classes))]
        assert all((mask == k).any() for k in classes)
        np.testing.assert_array_equal(
            weigh(binary, labels, spec, *flags), cells(np.isin(mask, classes))
        )


@pytest.mark.parametrize("kind", ["boxes", "polygons"])
def test_boxes_and_polygons_are_counted_as_masks(labels, binary, kind):
    image = chaski.Field(pattern="{id}.tif")
    label, names = (
        ("{id}.geojson", ["c1", "c2", "c3"])
        if kind == "polygons"
        else ("{id}.txt", ["a", "b", "c"])
    )
    column = "name" if kind == "polygons" else None
    drawn = chaski.Vector(label, column, classes=names)
    _, got = laid(labels, {"image": image, "label": drawn})
    cut = chaski.Vector(label, column, classes=names, kind=kind)
    spec, _ = laid(labels, {"image": image, "label": cut})
    counts = weigh(binary, labels, spec, "--count", "label", "--classes", "2")
    np.testing.assert_array_equal(counts, cells(got["label"] == 2))


@pytest.mark.parametrize("fill", [None, 9])
def test_colours_are_counted_as_their_numbers(tmp_path, binary, fill):
    colours = np.array([[0, 0, 0], [255, 0, 0], [255, 0, 9], [7, 7, 7]], "uint8")
    codes = np.random.default_rng(6).integers(0, 4 if fill else 3, (2, SIDE, SIDE))
    for i, image in enumerate(colours[codes].transpose(0, 3, 1, 2)):
        rasters.write(tmp_path / f"{i}.tif", image, photometric="RGB")
    lut = {tuple(map(int, c)): k for k, c in enumerate(colours[:3])}
    spec, got = laid(tmp_path, {"mask": chaski.Field(lut=lut, fill=fill, dtype="uint8")})
    for k in range(3):
        np.testing.assert_array_equal(got["mask"].reshape(codes.shape) == k, codes == k)
        counts = weigh(binary, tmp_path, spec, "--classes", str(k))
        np.testing.assert_array_equal(counts, cells(codes == k))
    np.testing.assert_array_equal(weigh(binary, tmp_path, spec), cells(codes < 3))
