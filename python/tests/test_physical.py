"""Physical values: samples by the scales and offsets of their files."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
from pathlib import Path

import numpy as np
import pytest

import chaski

pytestmark = pytest.mark.usefixtures("one_engine")

rasterio = pytest.importorskip("rasterio", reason="needs rasterio to write rasters")

ABOUT = {
    "id": "scales",
    "dataset_version": "1.0.0",
    "description": "reflectance",
    "licenses": ["CC-BY-4.0"],
    "providers": [{"name": "us", "roles": ["producer"]}],
    "tasks": ["regression"],
}
NAMES = ("red", "nir", "swir")
SCALES = {"a": ((0.0001, 0.0002, 2.75e-05), (-0.1, 0.0, -0.2)), "b": ((0.01,) * 3, (5.0,) * 3)}
SIDE, STORED = 32, 7  # the stored value of missing pixels
PHYSICAL = chaski.Field(physical=True)


def write(path, scales=None, offsets=None, order=(0, 1, 2), shift=0, dtype="uint16", seed=0, **how):
    """Writes a raster, whose bands have scales and offsets in the order of their names."""
    x = np.random.default_rng(seed).integers(10, 10000, (len(order), SIDE, SIDE)).astype(dtype)
    x[:, 3:6, 4] = STORED
    where = {
        "crs": "EPSG:32630",
        "transform": rasterio.transform.from_origin(500000 + shift, 4600000, 10, 10),
    }
    size = {"count": len(order), "height": SIDE, "width": SIDE, "dtype": dtype, "nodata": STORED}
    with rasterio.open(path, "w", driver="GTiff", **size, **where, **how) as f:
        f.write(x)
        f.descriptions = [NAMES[b] for b in order]
        if scales is not None:
            f.scales, f.offsets = [scales[b] for b in order], [offsets[b] for b in order]


def judge(path, bands=(0, 1, 2), fill=0.0) -> np.ndarray:
    """Returns what rasterio and numpy say the values are."""
    with rasterio.open(path) as f:
        x = f.read().astype("float64")
        y = x * np.array(f.scales)[:, None, None] + np.array(f.offsets)[:, None, None]
        return np.where(x == STORED, fill, y)[list(bands)]


def two(folder):
    """Writes two files of other scales, of which the second has its bands in another order."""
    folder.mkdir()
    write(folder / "a.tif", *SCALES["a"])
    write(folder / "b.tif", *SCALES["b"], order=(2, 0, 1), seed=1)
    return folder


def beside(path, scales, offsets):
    """Writes NAME.aux.xml, which counts before what the file says."""
    bands = "".join(
        f'<PAMRasterBand band="{b}"><Offset>{o!r}</Offset><Scale>{s!r}</Scale></PAMRasterBand>'
        for b, (s, o) in enumerate(zip(scales, offsets, strict=True), 1)
    )
    Path(f"{path}.aux.xml").write_text(f"<PAMDataset>{bands}</PAMDataset>")
    with rasterio.open(path) as f:
        assert f.scales == tuple(scales) and f.offsets == tuple(offsets)


@pytest.fixture(params=["files", "catalog", "taco", "rumi", "rumi catalog", "pam", "pam catalog"])
def source(request, binary, tmp_path):
    """Returns a dataset of two rasters, in the order a, b, beside the files that judge it."""
    folder, kind = two(tmp_path / "d"), request.param
    if "pam" in kind:  # scales in files beside the rasters, which have others
        for name in "ab":
            with rasterio.open(folder / f"{name}.tif") as f:
                scales, offsets = f.scales, f.offsets
            with rasterio.open(folder / f"{name}.tif", "r+") as f:
                f.scales, f.offsets = (2.0, 3.0, 4.0), (5.0, 6.0, 7.0)
            beside(folder / f"{name}.tif", scales, offsets)
    if "rumi" in kind:
        out = tmp_path / "r"
        subprocess.run([binary, "convert", "--to", "rumi", folder, "-o", out], check=True)
        folder = out
    if "catalog" in kind:
        subprocess.run([binary, "index", folder, "-o", tmp_path / "c.parquet"], check=True)
        return tmp_path / "c.parquet"
    if kind == "taco":
        about = tmp_path / "about.json"
        about.write_text(json.dumps(ABOUT))
        command = [binary, "pack", "--collection", about, folder, "-o", tmp_path / "c.tacozip"]
        subprocess.run(command, check=True, capture_output=True)
        return tmp_path / "c.tacozip"
    return folder


def rows(source, field, **how) -> np.ndarray:
    """Returns the rows of an epoch in the order of the dataset."""
    with chaski.load(source, batch_size=2, fields={"image": field}, **how) as loader:
        batches = [(b["sample"].copy(), b["image"].copy()) for b in loader]
    samples = np.concatenate([k for k, _ in batches])
    return np.concatenate([x for _, x in batches])[np.argsort(samples, kind="stable")]


def same(got, want):
    np.testing.assert_allclose(np.asarray(got, "float64"), want, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("transport", ["grpc", "auto"])
def test_values_are_those_of_each_file(source, tmp_path, transport):
    a, b = tmp_path / "d" / "a.tif", tmp_path / "d" / "b.tif"
    for bands, of_a, of_b in [
        ("position", (0, 1, 2), (0, 1, 2)),
        ([2, 0, 2], (2, 0, 2), (2, 0, 2)),
        (["nir", "red", "nir"], (1, 0, 1), (2, 1, 2)),
        (["swir"], (2,), (0,)),
    ]:
        field = chaski.Field(physical=True, bands=bands, fill=-9)
        got = rows(source, field, engine=chaski.Engine(transport=transport))
        assert got.dtype == np.float32
        same(got, [judge(a, of_a, -9), judge(b, of_b, -9)])


def test_without_it_samples_are_as_stored(source, tmp_path):
    field = chaski.Field(bands="position", fill=STORED)
    got = rows(source, field)
    for k, name in enumerate("ab"):
        with rasterio.open(tmp_path / "d" / f"{name}.tif") as f:
            assert np.array_equal(got[k], f.read())


def test_normalize_follows(source, tmp_path):
    field = chaski.Field(
        physical=True,
        bands=["red", "nir"],
        normalize={"mean": [0.5, 20], "std": [0.1, 7]},
    )
    mean, std = np.array([0.5, 20])[:, None, None], np.array([0.1, 7])[:, None, None]
    got = rows(source, field)
    for k, (name, bands) in enumerate([("a", (0, 1)), ("b", (1, 2))]):
        x = judge(tmp_path / "d" / f"{name}.tif", bands, fill=np.nan)
        want = np.nan_to_num((x - mean) / std, nan=0)
        np.testing.assert_allclose(got[k], want, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("resample", ["nearest", "bilinear", "antialias"])
def test_resized_windows(source, tmp_path, resample):
    window = chaski.ResizedWindow(SIDE // 2, scale=(4, 4), ratio=1)
    field = chaski.Field(physical=True, bands=["nir", "swir"], resample=resample, fill=-9)
    got = rows(source, field, window=window, seed=3)
    for k, (name, bands) in enumerate([("a", (1, 2)), ("b", (2, 0))]):
        x = judge(tmp_path / "d" / f"{name}.tif", bands, fill=np.nan)
        if resample == "antialias":  # it keeps the sum of weights, so the mean
            assert got[k][got[k] != -9].mean() == pytest.approx(np.nanmean(x), rel=0.02)
            continue
        four = x.reshape(2, SIDE // 2, 2, SIDE // 2, 2).transpose(0, 1, 3, 2, 4)
        if resample == "nearest":
            same(got[k], np.nan_to_num(four[..., 1, 1], nan=-9))
            continue
        there = ~np.isnan(four).any((3, 4))
        same(got[k][there], four.mean((3, 4))[there])


def test_statistics(source, tmp_path):
    fields = {"image": chaski.Field(physical=True, bands=["red", "swir"])}
    got = chaski.stats(source, fields=fields)
    x = [judge(tmp_path / "d" / f"{n}.tif", b, np.nan) for n, b in (("a", (0, 2)), ("b", (1, 0)))]
    x = np.stack(x).transpose(1, 0, 2, 3).reshape(2, -1)
    assert got.mean() == pytest.approx(np.nanmean(x, axis=1), rel=1e-6)
    assert got.std() == pytest.approx(np.nanstd(x, axis=1), rel=1e-6)
    bands = got["fields"]["image"]["bands"]
    assert [b["min"] for b in bands] == pytest.approx(np.nanmin(x, axis=1), rel=1e-6)
    assert [b["count"] for b in bands] == (~np.isnan(x)).sum(1).tolist()
    # What normalises by these has mean 0 and deviation 1.
    normal = {"image": chaski.Field(**vars_of(fields["image"]), normalize="mean_std", fill=np.nan)}
    with chaski.load(source, batch_size=2, fields=normal, stats=got) as loader:
        y = next(iter(loader))["image"]
    assert np.nanmean(y, axis=(0, 2, 3)) == pytest.approx(0, abs=1e-5)
    assert np.nanstd(y, axis=(0, 2, 3)) == pytest.approx(1, abs=1e-5)
    # A field that does not say it has the values that were measured.
    unsaid = {"image": chaski.Field(bands=["red", "swir"], normalize="mean_std", fill=np.nan)}
    with chaski.load(source, batch_size=2, fields=unsaid, stats=got) as loader:
        np.testing.assert_array_equal(next(iter(loader))["image"], y)
    stored = {"image": dataclasses.replace(unsaid["image"], physical=False)}
    with pytest.raises(
        chaski.SpecError, match="physical is false, and of the field that stats measured it is true"
    ):
        chaski.load(source, batch_size=2, fields=stored, stats=got)


def vars_of(field) -> dict:
    return {"physical": field.physical, "bands": field.bands}


def test_a_run_goes_on(source):
    field = chaski.Field(physical=True, bands=["nir"])
    window = chaski.RandomWindow(8, per_asset=3)
    how = {"batch_size": 1, "fields": {"image": field}, "window": window, "seed": 5}
    with chaski.load(source, **how) as loader:
        it = iter(loader)
        next(it)
        state = loader.state_dict()
        want = [b["image"].copy() for b in it]
    with chaski.load(source, **how) as loader:
        loader.load_state_dict(state)
        got = [b["image"].copy() for b in loader]
    assert len(got) == len(want) > 1 and all(map(np.array_equal, got, want))


def test_a_series_of_files_of_other_scales(tmp_path):
    folder = two(tmp_path / "d")
    (tmp_path / "s.csv").write_text("image,site,date\nd/a.tif,s,1\nd/b.tif,s,2\n")
    field = chaski.Field(physical=True, bands=["nir", "red"])
    series = chaski.Rows(time=chaski.Time(key="site", order="date", length=2))
    with chaski.load(
        tmp_path / "s.csv", batch_size=1, fields={"image": field}, rows=series
    ) as loader:
        got = next(iter(loader))["image"]
    same(got[0], [judge(folder / "a.tif", (1, 0)), judge(folder / "b.tif", (2, 1))])


@pytest.mark.parametrize("mosaic", ["first", "mean"])
@pytest.mark.parametrize("resample", ["nearest", "bilinear"])
@pytest.mark.parametrize("normalize", [None, {"mean": [3], "std": [2]}])
def test_mosaics_of_scenes_of_other_offsets(tmp_path, mosaic, resample, normalize):
    """The second scene, of the same place, fills what is missing in the first, in its own scale."""
    folder = tmp_path / "d"
    folder.mkdir()
    write(folder / "a.tif", [0.0001], [-0.1], (0,))
    write(folder / "b.tif", [0.01], [5.0], (0,), seed=1)
    with rasterio.open(folder / "b.tif", "r+") as f:  # missing elsewhere than in the first
        x = f.read()
        x[:, 3:6, 4] = 50
        x[:, 20:24] = STORED
        f.write(x)
    a, b = (judge(folder / f"{n}.tif", (0,), np.nan) for n in "ab")
    window = chaski.GeoWindow(size_m=250, resolution=10, crs="EPSG:32630", mosaic=mosaic)
    field = chaski.Field(physical=True, resample=resample, normalize=normalize)
    how = {"fields": {"image": field}, "window": window, "pixels": chaski.Pixels(geo=True)}
    with chaski.load(folder, batch_size=1, **how) as loader:
        batch = next(iter(loader))
    (got,) = batch["image"]
    left, top = np.ravel(batch["geo"]["transform"][0])[[0, 3]]
    y, x = round((4600000 - top) / 10), round((left - 500000) / 10)
    a, b = (v[:, y : y + 25, x : x + 25] for v in (a, b))
    assert np.isnan(a).any() and np.isnan(b).any()
    want = np.where(np.isnan(a), b, a)
    if mosaic == "mean" and resample == "bilinear":
        want = np.nanmean([a, b], axis=0)
    if normalize:
        want = (want - 3) / 2
    np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-6)


def test_mosaics_of_other_grids(tmp_path):
    """A scene on a grid of another size is resampled after its scale."""
    folder = tmp_path / "d"
    folder.mkdir()
    write(folder / "a.tif", [0.0001], [-0.1], (0,), shift=5)
    window = chaski.GeoWindow(size_m=100, resolution=10, crs="EPSG:32630", stride_m=100)
    field = chaski.Field(physical=True, fill=-9)
    plain = chaski.Field(fill=-9)
    got, stored = (rows(folder, f, window=window, seed=1) for f in (field, plain))
    there = stored != -9
    assert there.any() and np.array_equal(there, got != -9)
    same(got[there], stored[there].astype("float64") * 0.0001 - 0.1)


def test_bands_in_files_of_their_own(tmp_path):
    for k, name in enumerate(NAMES):
        (tmp_path / name).mkdir()
        for i in range(2):
            write(
                tmp_path / name / f"{i}.tif", [0.1 * (k + 1)], [k - 3.0 * i], (0,), seed=3 * i + k
            )
    field = chaski.Field(
        physical=True, patterns=[f"{n}/{{id}}.tif" for n in NAMES], bands=[2, 0, 2]
    )
    got = rows(tmp_path, field)
    for i in range(2):
        want = [judge(tmp_path / NAMES[b] / f"{i}.tif", (0,))[0] for b in (2, 0, 2)]
        same(got[i], want)
    small = rows(tmp_path, field, window=chaski.ResizedWindow(SIDE // 2, scale=(4, 4), ratio=1))
    stored = chaski.Field(patterns=field.patterns, bands=[2, 0, 2], fill=0)
    plain = rows(tmp_path, stored, window=chaski.ResizedWindow(SIDE // 2, scale=(4, 4), ratio=1))
    for i in range(2):
        for j, b in enumerate((2, 0, 2)):
            there = plain[i, j] > 0
            same(
                small[i, j][there], plain[i, j][there].astype("float64") * 0.1 * (b + 1) + b - 3 * i
            )


def test_overviews(tmp_path):
    """Overviews have the scale of their file, also where they lie in a file beside it."""
    for k, beside in enumerate((False, True)):
        folder = tmp_path / f"d{k}"
        folder.mkdir()
        write(folder / "a.tif", [0.5], [3.0], (0,), tiled=True, blockxsize=16, blockysize=16)
        with rasterio.Env(TIFF_USE_OVR=beside), rasterio.open(folder / "a.tif", "r+") as f:
            f.build_overviews([2], rasterio.enums.Resampling.average)
        assert (folder / "a.tif.ovr").exists() == beside
        window = chaski.GeoWindow(size_m=160, resolution=20, crs="EPSG:32630", overviews="all")
        got = rows(folder, chaski.Field(physical=True, fill=-9), window=window)
        stored = rows(folder, chaski.Field(fill=-9), window=window)
        there = stored != -9
        assert there.any()
        same(got[there], stored[there].astype("float64") * 0.5 + 3)


@pytest.mark.parametrize("as_list", [False, True])
def test_zarr(tmp_path, as_list):
    x = np.random.default_rng(0).integers(1, 4000, (2, SIDE, SIDE), dtype=np.uint16)
    x[:, 5, 5] = STORED
    scales, offsets = (0.0001, 0.25), (-0.1, 100.0)
    root = tmp_path / "s.zarr"
    for band, scale, offset, data in zip(("b1", "b2"), scales, offsets, x, strict=True):
        path = root / "r" / band
        (path / "c" / "0").mkdir(parents=True)
        attributes = {"scale_factor": scale, "add_offset": offset}
        if as_list:
            attributes = {k: [v] for k, v in attributes.items()}
        meta = {
            "zarr_format": 3,
            "node_type": "array",
            "shape": data.shape,
            "data_type": "uint16",
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [SIDE, SIDE]}},
            "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
            "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
            "fill_value": 0,
            "dimension_names": ["y", "x"],
            "attributes": {**attributes, "_FillValue": STORED},
        }
        (path / "zarr.json").write_text(json.dumps(meta))
        (path / "c" / "0" / "0").write_bytes(data.astype("<u2").tobytes())
    group = json.dumps({"zarr_format": 3, "node_type": "group", "attributes": {}})
    for d in (root, root / "r"):
        (d / "zarr.json").write_text(group)
    field = chaski.Field(column="r", physical=True, bands=[1, 0], fill=-9)
    (got,) = rows(root, field)
    want = [np.where(x[b] == STORED, -9, x[b] * scales[b] + offsets[b]) for b in (1, 0)]
    same(got, want)


def test_files_without_scales_are_as_stored(tmp_path):
    folder = tmp_path / "d"
    folder.mkdir()
    write(folder / "a.tif", order=(0,))
    write(folder / "b.tif", [0.01], [5.0], (0,), seed=1)
    got = rows(folder, PHYSICAL)
    same(got, [judge(folder / f"{n}.tif", (0,)) for n in "ab"])


def test_what_it_does_not_go_with(tmp_path):
    folder = two(tmp_path / "d")
    for field, message in [
        (chaski.Field(physical=False, scale="s"), "physical is False: it must be left out beside"),
        (chaski.Field(physical=False, offset="s"), "physical is False: it must be left out beside"),
        (chaski.Field(physical=True, dtype="uint8"), 'physical is true, and dtype is "uint8"'),
        (chaski.Field(physical=True, dtype="native"), 'physical is true, and dtype is "native"'),
        (chaski.Field(physical=True, lut={1: 2}, fill=0, bands=[0]), "lut is given"),
        (chaski.Field(physical=True, kind="number", column="path"), "physical is given"),
    ]:
        with pytest.raises(chaski.SpecError, match=message):
            chaski.load(folder, batch_size=1, fields={"image": field})
    half = rows(folder, chaski.Field(physical=True, dtype="float16", bands=["red"]))
    want = np.stack([judge(folder / "a.tif", (0,)), judge(folder / "b.tif", (1,))])
    assert half.dtype == np.float16
    np.testing.assert_allclose(half, want, rtol=1e-3, atol=1e-4)


def test_a_catalog_without_scales_still_fits(binary, tmp_path):
    """Of catalogs by earlier versions the samples are as stored, and no file looks changed."""
    parquet = pytest.importorskip("pyarrow.parquet")
    folder = two(tmp_path / "d")
    catalog, old = tmp_path / "c.parquet", tmp_path / "old.parquet"
    subprocess.run([binary, "index", folder, "-o", catalog], check=True)
    table = parquet.read_table(catalog)
    blobs = []
    for blob, entries in zip(table.column("chaski:index").to_pylist(), (3, 1), strict=True):
        # Magic, version 4, no mask, samples as they are, kinds, no parameters, entries of 16 bytes.
        assert blob[:9] == b"CHKX\x04\x00\x00\x04\x00" and blob[9] == entries
        blobs.append(b"CHKX\x01" + blob[10 + 16 * entries :])
    place = table.column_names.index("chaski:index")
    table = table.set_column(place, table.schema.field(place), [blobs])
    parquet.write_table(table, old)
    subprocess.run([binary, "verify", old], check=True, capture_output=True)
    for name in "ab":
        os.utime(folder / f"{name}.tif", (1e9, 1e9))
    field = chaski.Field(physical=True, bands="position", fill=STORED)
    for source, physical in ((old, False), (catalog, True)):
        got = rows(source, field)
        for k, name in enumerate("ab"):
            path = folder / f"{name}.tif"
            with rasterio.open(path) as f:
                same(got[k], judge(path, fill=STORED) if physical else f.read())
