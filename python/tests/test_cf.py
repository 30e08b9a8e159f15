"""What CF says of arrays in NetCDF-4 and Zarr stores: values, labels, places. xarray judges."""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import chaski

pytest.importorskip("xarray", reason="xarray is the judge")
netCDF4 = pytest.importorskip("netCDF4")
h5py = pytest.importorskip("h5py")
pytest.importorskip("zarr")
rasterio = pytest.importorskip("rasterio")

import cf_worlds  # noqa: E402
import xarray  # noqa: E402

pytestmark = pytest.mark.usefixtures("one_engine")
STORES = int(os.environ.get("CHASKI_RANDOM_STORES", 60))
SHARE = 12  # stores of one test
AXES = {"sample": "n", "band": "b", "y": "y", "x": "x"}


def image_of(store: cf_worlds.Store, said: xarray.Dataset) -> tuple[np.ndarray, np.ndarray]:
    """Returns the image (n b y x) as xarray decodes it, and which of its values are there."""
    image = said["image"]
    for name in ("sample", "band"):
        if name not in image.dims:
            image = image.expand_dims(name)
    values = image.transpose("sample", "band", "y", "x").values
    there = ~np.isnan(values) if values.dtype.kind == "f" else np.ones(values.shape, bool)
    return values, there


def judge(store: cf_worlds.Store) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of several missing values
        said = xarray.open_dataset(
            store.path, engine="zarr" if store.path.suffix == ".zarr" else None
        )
        want, there = image_of(store, said)
    fields: dict[str, Any] = {
        "image": chaski.Field(column="image", validity="ok", layout="n b y x", dtype="float32")
    }
    for name in store.labels:
        kind = {"text": "text", "chars": "text", "lists": "class"}.get(name, "number")
        fields[name] = chaski.Field(column=name, kind=kind)
    rows = chaski.Rows(
        dims=" ".join(AXES[d] for d in store.dims) if "sample" not in said.dims else None
    )
    options: dict[str, Any] = dict(rows=rows, pixels=chaski.Pixels(geo=True), on_bad="fill")
    with chaski.load(store.path, batch_size=8, shuffle=False, fields=fields, **options) as loader:
        (batch,) = list(loader)
    got, ok = batch["image"], batch["ok"] > 0
    assert got.shape == want.shape
    wrong = np.argwhere(ok != there)[:3].tolist()
    assert not wrong, f"missing {[(w, ok[tuple(w)], got[tuple(w)]) for w in wrong]}"
    np.testing.assert_allclose(got[ok], want[there].astype("float32"), rtol=2e-6, atol=1e-6)
    for name in store.labels:
        judge_label(name, batch, said[name].values)
    judge_place(store, batch["geo"], said)


def judge_label(name: str, batch: Any, want: np.ndarray) -> None:
    """Compares labels, of which some may be missing."""
    there = batch[f"there.{name}"] > 0 if f"there.{name}" in batch else np.ones(len(want), bool)
    got = batch[name]
    if name == "lists":
        classes = np.unique(np.concatenate(want))
        assert got.tolist() == [np.isin(classes, w).tolist() for w in want], name
    elif name in ("text", "chars"):
        texts = [w.decode() if isinstance(w, bytes) else w for w in want.tolist()]
        assert got.tolist() == texts, name
    elif want.dtype.kind == "M":
        assert np.array_equal(there, ~np.isnat(want)), name
        assert np.array_equal(got[there], want[there].astype("datetime64[us]").astype("int64")), (
            name
        )
    else:
        missing = np.isnan(want) if want.dtype.kind == "f" else np.zeros(want.shape, bool)
        told = there & ~np.isnan(np.asarray(got, "float64")) if got.ndim == 1 else ~missing
        assert np.array_equal(told, ~missing), f"{name}: {got} {there}, xarray {want}"
        np.testing.assert_allclose(
            np.asarray(got, "f8")[told], want[told].astype("f8"), rtol=2e-6, err_msg=name
        )


def judge_place(store: cf_worlds.Store, geo: Any, said: xarray.Dataset) -> None:
    """Compares the middles of pixels with the coordinates."""
    if "y" not in said.coords:
        return
    y, x, t = said["y"].values, said["x"].values, geo["transform"][0]
    if not np.allclose(np.diff(x), x[1] - x[0]):
        return  # irregular coordinates are no transform
    assert int(geo["epsg"][0]) == store.epsg
    np.testing.assert_allclose(t[0] + t[1] * (np.arange(len(x)) + 0.5), x, atol=abs(t[1]) * 0.06)
    np.testing.assert_allclose(t[3] + t[5] * (np.arange(len(y)) + 0.5), y, atol=abs(t[5]) * 0.06)


@pytest.mark.parametrize("suffix", [".nc", ".zarr"])
def test_packed_images_are_decoded_unless_counts_are_asked_for(tmp_path: Path, suffix: str) -> None:
    counts = np.random.default_rng(1).integers(0, 99, (4, 8, 8)).astype("i2")
    image = xarray.DataArray(counts * 0.25 + 280, dims=("sample", "y", "x"))
    packed = {"dtype": "i2", "scale_factor": 0.25, "add_offset": 280.0}
    path = tmp_path / f"a{suffix}"
    made = xarray.Dataset({"image": image})
    (made.to_zarr if suffix == ".zarr" else made.to_netcdf)(path, encoding={"image": packed})

    def first(**field: Any) -> np.ndarray:
        fields = {"image": chaski.Field(column="image", **field)}
        with chaski.load(path, batch_size=4, shuffle=False, fields=fields) as loader:
            return next(iter(loader))["image"][:, 0].copy()

    np.testing.assert_allclose(first(), image.values, rtol=1e-6)
    for stored in ({"physical": False}, {"dtype": "native"}, {"dtype": "int64"}):
        np.testing.assert_array_equal(first(**stored), counts)
    said = chaski.stats(path, fields={"image": chaski.Field(column="image")})
    assert said.mean() == pytest.approx([image.values.mean()], rel=1e-6)
    fields = {"image": chaski.Field(column="image", normalize="mean_std")}
    with chaski.load(path, batch_size=4, fields=fields, stats=said) as loader:
        assert next(iter(loader))["image"].mean() == pytest.approx(0, abs=1e-5)


@pytest.mark.parametrize("first", range(0, STORES, SHARE))
def test_random_stores_are_as_xarray_says(tmp_path: Path, first: int) -> None:
    """Each store gives what xarray decodes, or is refused by name."""
    refused = []
    for seed in range(first, min(first + SHARE, STORES)):
        store = cf_worlds.make(tmp_path, seed)
        try:
            judge(store)
        except chaski.UnsupportedError as error:
            refused.append(f"{seed}: {error}")
        except Exception as error:
            error.add_note(f"store {seed}: {store.said} {store.labels}")
            raise
    assert len(refused) <= SHARE // 4, refused


def write(path: Path, arrays: dict[str, Any]) -> Path:
    with h5py.File(path, "w") as f:
        for name, values in arrays.items():
            f.create_dataset(name, data=values)
    return path


def columns(source: Any, fields: dict[str, Any], **rows: Any) -> Any:
    options: dict[str, Any] = dict(rows=chaski.Rows(dims="n y x", **rows), fields=fields)
    with chaski.load(source, batch_size=64, shuffle=False, **options) as loader:
        return next(iter(loader))


def images(*values: int) -> np.ndarray:
    return np.array(values, "u1")[:, None, None] * np.ones((1, 4, 4), "u1")


def test_labels_of_several_files(tmp_path: Path) -> None:
    """Files of n images each have their labels one behind the other, in fields and conditions."""
    for k, n in enumerate((3, 2)):
        made = {"x": images(*range(10 * k, 10 * k + n)), "y": np.arange(n) + 10 * k}
        write(tmp_path / f"{k}.h5", made | {"name": np.array([f"{k}{i}" for i in range(n)], "S2")})
    fields = {"x": chaski.Field(column="x"), "y": chaski.Field(column="y")}  # y needs no kind
    batch = columns(tmp_path / "*.h5", fields | {"name": {"column": "name", "kind": "text"}})
    assert batch["y"].tolist() == [0, 1, 2, 10, 11] == batch["x"][:, 0, 0, 0].tolist()
    assert batch["name"].tolist() == ["00", "01", "02", "10", "11"]  # not the names of the files
    batch = columns(tmp_path / "*.h5", fields, where=[("y", ">", 1)])
    assert batch["y"].tolist() == [2, 10, 11]
    write(tmp_path / "2.h5", {"x": images(1), "y": np.array([0.5])})
    with pytest.raises(chaski.UnsupportedError, match=r"column y.*floats in .* 2, ints in"):
        columns(tmp_path / "*.h5", fields)


def test_lists_of_labels(tmp_path: Path) -> None:
    """Lists of one number and of one 1 are values; others have no strata and no parts."""
    y = np.arange(40) // 30
    made = {"x": images(*y), "one": y[:, None], "hot": np.eye(2, dtype="u1")[y]}
    path = write(tmp_path / "a.h5", made | {"some": np.stack([y, y], 1)})
    fields = {"x": chaski.Field(column="x")}
    for name in ("one", "hot"):
        batch = columns(path, fields, strata=name)
        assert 0.3 < batch["x"].mean() < 0.7
        assert columns(path, fields, where=[(name, "==", 1)])["x"].all()
        got = columns(path, fields | {"y": chaski.Field(column=name, kind="class")})["y"]
        assert got.tolist() == y.tolist()
    with pytest.raises(chaski.UnsupportedError, match="have no order, parts or strata"):
        columns(path, fields, strata="some")
    with pytest.raises(chaski.UnsupportedError, match='kind "number" reads them as they are'):
        columns(path, fields | {"y": chaski.Field(column="some", kind="class")})


def test_what_cannot_be_read_is_not_left_out(tmp_path: Path) -> None:
    """A band or an image that cannot be read is an error, and no other array stands for it."""
    band, odd = np.full((8, 8), 5, "i4"), np.zeros((8, 8), "c8")
    bands = write(tmp_path / "a.h5", {"B02": band, "B03": odd, "B04": band})
    other = write(tmp_path / "b.h5", {"data": odd, "mask": band})
    for path in (bands, other):
        with pytest.raises(chaski.UnsupportedError, match="compound"):
            chaski.read(path)
    texts = {"B02": band, "B03": band, "name": np.array([b"a", b"b"])}
    assert chaski.read(write(tmp_path / "c.h5", texts)).shape == (2, 8, 8)


def test_dimensions_of_the_group_above(tmp_path: Path) -> None:
    """Coordinates and the grid mapping lie in the array's group or above it, as in NetCDF-4."""
    path = tmp_path / "a.nc"
    with netCDF4.Dataset(path, "w") as f:
        for name, values in (("lat", [4, 3, 2]), ("lon", [200, 201, 202, 203])):
            f.createDimension(name, len(values))
            v = f.createVariable(name, "f8", (name,))
            v[:], v.units = values, {"lat": "degrees_north", "lon": "degrees_east"}[name]
        f.createVariable("crs", "S1", ()).spatial_ref = rasterio.CRS.from_epsg(4326).to_wkt()
        v = f.createGroup("a").createGroup("b").createVariable("v", "f4", ("lat", "lon"))
        v[:], v.grid_mapping = 1, "crs"
    fields = {"v": chaski.Field(column="a/b/v")}
    with chaski.load(path, batch_size=1, fields=fields, pixels=chaski.Pixels(geo=True)) as loader:
        geo = next(iter(loader))["geo"]
    np.testing.assert_allclose(geo["transform"][0], [-160.5, 1, 0, 4.5, 0, -1])
    assert int(geo["epsg"][0]) == 4326


def geo_times(path: Path, **options: Any) -> np.ndarray:
    pixels = chaski.Pixels(geo=True)
    with chaski.load(path, batch_size=8, shuffle=False, pixels=pixels, **options) as loader:
        (batch,) = list(loader)
    return batch["geo"]["time"][batch["valid"]]


def test_times_of_steps_are_those_of_xarray(tmp_path: Path) -> None:
    """geo.time is the coordinate of t, an array along n and t, or the coordinate of n."""
    rng = np.random.default_rng(5)
    shape = {"n": 6, "time": 5, "band": 2, "y": 8, "x": 8}
    stacked = xarray.Dataset({"image": (tuple(shape), rng.random(tuple(shape.values()), "f4"))})
    days = np.datetime64("2020-01-01", "us") + np.cumsum(rng.integers(1, 9, 5)).astype("m8[D]")
    each = days + np.arange(6).astype("m8[h]")[:, None]
    bare = stacked.rename(time="t")
    cases = {
        "steps.nc": (stacked.assign_coords(time=days), "time", None),
        "steps.zarr": (stacked.assign_coords(time=days), "time", None),
        "beside.nc": (bare.assign_coords(when=("t", days)), "when", None),
        "each.nc": (bare.assign_coords(when=(("n", "t"), each)), "when", None),
        "rows.nc": (stacked.isel(n=0, band=0).assign_coords(time=days), "time", "n y x"),
        "one.nc": (stacked.isel(n=0, band=0).assign_coords(time=days), "time", "t y x"),
    }
    for name, (data, clock, dims) in cases.items():
        path = tmp_path / name
        if path.suffix == ".zarr":
            data.to_zarr(path, zarr_format=2)
        else:
            data.to_netcdf(path)
        said = xarray.open_dataset(path, engine="zarr" if path.suffix == ".zarr" else None)
        want = said[clock].values.astype("M8[us]")
        if clock != "time" or dims != "n y x":
            want = np.broadcast_to(want, (said.sizes.get("n", 1), said.sizes.get("time", 5)))
        fields: dict[str, Any] = {"image": "image"}
        options: dict[str, Any] = {"rows": chaski.Rows(dims=dims)} if dims else {}
        np.testing.assert_array_equal(geo_times(path, fields=fields, **options), want, name)
        fields["when"] = chaski.Field(column=clock)
        with chaski.load(path, batch_size=8, shuffle=False, fields=fields, **options) as loader:
            (batch,) = list(loader)
        got = np.asarray(batch["when"][batch["valid"]]).astype("M8[us]")
        np.testing.assert_array_equal(got, want, name)
        if "n" in data.dims:
            fields = {"image": chaski.Field(times=[3, 1])}
            np.testing.assert_array_equal(geo_times(path, fields=fields), want[:, [3, 1]], name)


def test_times_of_stores_that_are_samples(tmp_path: Path) -> None:
    """Each store of a pattern has its own times, and a calendar without timestamps has none."""
    for k in range(3):
        days = np.datetime64(f"202{k}-03-01", "us") + np.arange(4).astype("m8[D]")
        pixels = np.full((4, 8, 8), k, "u1")
        coords: dict[str, Any] = {"time": days}
        data = xarray.Dataset({"v": (("time", "y", "x"), pixels)}, coords=coords)
        data.to_netcdf(tmp_path / f"{k}.nc")
    fields = {"v": chaski.Field(pattern="{id}.nc::v", dims="t y x")}
    got = geo_times(tmp_path, fields=fields)
    assert got.shape == (3, 4)
    want = [np.datetime64(f"202{k}-03-01", "us") + np.arange(4).astype("m8[D]") for k in range(3)]
    np.testing.assert_array_equal(got, want)
    path = tmp_path / "model.nc"
    with netCDF4.Dataset(path, "w") as f:
        for name, size in (("time", 2), ("y", 8), ("x", 8)):
            f.createDimension(name, size)
        f.createVariable("v", "u1", ("time", "y", "x"))[:] = 1
        clock = f.createVariable("time", "f8", ("time",))
        clock[:], clock.units, clock.calendar = [0, 1], "days since 2000-01-01", "360_day"
    assert np.isnat(geo_times(path, fields={"v": "v"}, rows=chaski.Rows(dims="t y x"))).all()
    assert np.isnat(geo_times(path, fields={"v": "v"}, rows=chaski.Rows(dims="n y x"))).all()
