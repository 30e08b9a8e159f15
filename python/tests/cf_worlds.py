"""Random NetCDF-4, HDF5 and Zarr stores with the metadata of CF, as xarray and netCDF4 write it."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import netCDF4
import numpy as np
import rasterio
import xarray

HEIGHT, WIDTH, BANDS, IMAGES = 6, 9, 3, 5
# The dimensions of images by name, in the orders that files have.
SHAPES = ["sample y x", "sample band y x", "sample y x band", "y x", "band y x", "y x band"]
SIZES = {"sample": IMAGES, "band": BANDS, "y": HEIGHT, "x": WIDTH}
DTYPES = ["i1", "u1", "i2", "u2", "i4", "u4", "f4", "f8"]
NAMES = ["number", "packed", "text", "chars", "time", "flag", "hot", "lists"]
WORDS = ["train", "val", "test", "grün", "a", "two words"]


@dataclass
class Store:
    """A store, and what its arrays are called."""

    path: Path
    dims: list[str]  # of the image
    labels: list[str] = field(default_factory=list)
    epsg: int = 0  # of its grid mapping, 0 without one
    said: list[str] = field(default_factory=list)  # how it was made, for errors


def packed(rng: np.random.Generator, dtype: str) -> dict[str, Any]:
    """Attributes that say what the numbers of a dtype mean."""
    attrs: dict[str, Any] = {}
    kind = np.dtype(dtype)
    unsigned = kind.kind == "i" and rng.random() < 0.3
    if unsigned:
        attrs["_Unsigned"] = "true"
    elif kind.kind == "u" and rng.random() < 0.1:
        attrs["_Unsigned"] = "false"
    if rng.random() < 0.4:
        attrs["scale_factor"] = float(rng.choice([0.5, 0.01, 2]))
    if rng.random() < 0.3:
        attrs["add_offset"] = float(rng.choice([-5, 0.25, 1000]))
    # Of _Unsigned xarray forgets missing_value where it is negative; netCDF4 does not.
    values = np.array([0, 7, 120] if unsigned or kind.kind == "u" else [-3, 0, 7, 120])
    if rng.random() < 0.5:
        attrs["_FillValue"] = kind.type(rng.choice(values))
    if rng.random() < 0.3:
        some = rng.choice(values, rng.integers(1, 3), replace=False).astype(kind)
        attrs["missing_value"] = some if len(some) > 1 else some[0]
    return attrs


def numbers(rng: np.random.Generator, dtype: str, shape: tuple[int, ...]) -> np.ndarray:
    """Numbers of a dtype, some of which packed may call missing."""
    made = rng.integers(0, 128, shape).astype(dtype)
    special = rng.random(shape) < 0.3
    made[special] = rng.choice(
        np.array([0, 7, 120, -3 if np.dtype(dtype).kind != "u" else 9]), special.sum()
    )
    if np.dtype(dtype).kind == "f":
        made[rng.random(shape) < 0.1] = np.nan
    return made


def labels(rng: np.random.Generator) -> dict[str, tuple[Any, dict[str, Any]]]:
    """Some arrays (sample) or (sample, k), with their attributes."""
    out: dict[str, tuple[Any, dict[str, Any]]] = {}
    for name in rng.permutation(NAMES)[:3]:
        attrs: dict[str, Any] = {}
        match name:
            case "number" | "packed":
                dtype = str(rng.choice(DTYPES))
                values = numbers(rng, dtype, (IMAGES,))
                attrs = packed(rng, dtype) if name == "packed" else {}
            case "text":
                values = rng.choice(np.array(WORDS, object), IMAGES)
            case "chars":
                texts = np.array([w.encode() for w in rng.choice(WORDS, IMAGES)])
                values = texts
            case "time":
                unit = rng.choice(["days", "hours", "seconds", "minutes"])
                origins = ["2000-01-01", "1970-1-1 06:30:00", "1990-05-05T00:00:00Z"]
                attrs["units"] = f"{unit} since {rng.choice(origins)}"
                if rng.random() < 0.5:
                    attrs["calendar"] = str(
                        rng.choice(["standard", "proleptic_gregorian", "gregorian"])
                    )
                values = rng.integers(0, 10_000, IMAGES).astype(rng.choice(["i4", "i8", "f8"]))
                if values.dtype.kind == "f":
                    values = values + rng.choice([0, 0.5])
            case "flag":
                values = rng.integers(0, 2, IMAGES).astype("i1")
            case "lists":
                values = np.empty(IMAGES, object)
                dtype = str(rng.choice(DTYPES[:6]))
                lengths = [2, *rng.integers(0, 4, IMAGES - 1)]
                values[:] = [numbers(rng, dtype, (k,)) for k in lengths]
            case _:
                values = np.eye(4, dtype="u1")[rng.integers(0, 4, IMAGES)]
        out[str(name)] = (values, attrs)
    return out


def coordinates(rng: np.random.Generator) -> tuple[dict[str, np.ndarray], dict[str, Any], int]:
    """Coordinates y and x, the attributes of a grid mapping (empty: there is none) and its code."""
    y = 4_600_000 - 10.0 * np.arange(HEIGHT) - 5
    x = 500_000 + 10.0 * np.arange(WIDTH) + 5
    if rng.random() < 0.3:
        y = y[::-1].copy()
    if rng.random() < 0.15:
        x[3] += 4  # irregular
    code, mapping = 0, {}
    if rng.random() < 0.7:
        code = int(rng.choice([32630, 3035, 4326]))
        crs = rasterio.CRS.from_epsg(code)
        version = rng.choice(["WKT1_GDAL", "WKT2_2019"])
        mapping[str(rng.choice(["crs_wkt", "spatial_ref"]))] = crs.to_wkt(version=version)
        if code == 4326:
            y, x = 50 - 0.25 * np.arange(HEIGHT), 8 + 0.25 * np.arange(WIDTH)
        if rng.random() < 0.4:  # of this scene, or a stale one
            left, top = x[0] - (x[1] - x[0]) / 2, y[0] - (y[1] - y[0]) / 2
            left += rng.choice([0, 320.0])
            mapping["GeoTransform"] = f"{left} {x[1] - x[0]} 0 {top} 0 {y[1] - y[0]} "
    return {"y": y, "x": x}, mapping, code


def make(folder: Path, seed: int) -> Store:
    """Writes a store: attributes as they stand, so that what reads it gives them a meaning."""
    rng = np.random.default_rng(seed)
    dims = str(rng.choice(SHAPES)).split()
    form = str(rng.choice(["nc", "zarr2", "zarr3"]))
    path = folder / f"s{seed}.{'nc' if form == 'nc' else 'zarr'}"
    store = Store(path, dims)
    dtype = str(rng.choice(DTYPES))
    pixels = numbers(rng, dtype, tuple(SIZES[d] for d in dims))
    attrs = packed(rng, dtype)
    places, mapping, store.epsg = coordinates(rng) if rng.random() < 0.6 else ({}, {}, 0)
    if mapping:
        attrs["grid_mapping"] = "crs"
    found = labels(rng) if "sample" in dims else {}
    if form != "nc":
        found = {k: v for k, v in found.items() if k not in ("text", "chars", "lists")}
    store.labels, store.said = (
        sorted(found),
        [form, dtype, " ".join(dims), str(attrs), str(mapping)],
    )
    chunks = [int(rng.integers(1, SIZES[d] + 1)) for d in dims]
    if form == "nc":
        netcdf(path, rng, dims, pixels, attrs, chunks, places, mapping, found)
    else:
        zarr(path, 2 if form == "zarr2" else 3, dims, pixels, attrs, chunks, places, mapping, found)
    return store


def packer(rng: np.random.Generator, cells: int) -> dict[str, Any]:
    """Filters of chunks of so many cells."""
    name = str(rng.choice(["", "zlib", "szip", "zstd", "bzip2"]))
    how = {"shuffle": bool(rng.random() < 0.5), "fletcher32": bool(rng.random() < 0.3)}
    if name == "szip":
        block = min(2 * int(rng.integers(1, 17)), cells // 2 * 2)
        how |= {"szip_coding": str(rng.choice(["nn", "ec"])), "szip_pixels_per_block": block}
        name = name if block else ""
    return how | ({"compression": name} if name else {})


def netcdf(
    path: Path,
    rng: np.random.Generator,
    dims: list[str],
    pixels: np.ndarray,
    attrs: dict[str, Any],
    chunks: list[int],
    places: dict[str, np.ndarray],
    mapping: dict[str, Any],
    found: dict[str, tuple[Any, dict[str, Any]]],
) -> None:
    with netCDF4.Dataset(path, "w") as f:
        for name in dims:
            f.createDimension(name, SIZES[name])

        def add(
            name: str, values: Any, dims: tuple[str, ...], attrs: dict[str, Any], **how: Any
        ) -> None:
            kind = str if values.dtype == object else values.dtype
            if name == "lists":
                kind = f.createVLType(values[0].dtype, "lists_t")
            fill = attrs.pop("_FillValue", None)
            v = f.createVariable(name, kind, dims, fill_value=fill, **how)
            v.set_auto_maskandscale(False)
            v.set_auto_chartostring(False)
            v.setncatts(attrs)
            if name == "lists":
                for i, one in enumerate(values):
                    v[i] = one
            else:
                v[:] = values

        how = {"chunksizes": chunks, **packer(rng, int(np.prod(chunks)))}
        add("image", pixels, tuple(dims), dict(attrs), **how)
        for name, values in places.items():
            add(name, values, (name,), {})
        if mapping:
            crs = f.createVariable("crs", rng.choice(["i4", "S1"]), ())
            crs.setncatts(mapping)
        for name, (values, said) in found.items():
            if name == "chars":
                length = values.dtype.itemsize
                f.createDimension("strlen", length)
                values = values.view("S1").reshape(IMAGES, length)
                said = {"_Encoding": "utf-8"} if rng.random() < 0.5 else {}
                add(name, values, ("sample", "strlen"), said)
            elif values.ndim == 2:
                f.createDimension("k", values.shape[1])
                add(name, values, ("sample", "k"), dict(said))
            else:
                add(name, values, ("sample",), dict(said))


def zarr(
    path: Path,
    version: int,
    dims: list[str],
    pixels: np.ndarray,
    attrs: dict[str, Any],
    chunks: list[int],
    places: dict[str, np.ndarray],
    mapping: dict[str, Any],
    found: dict[str, tuple[Any, dict[str, Any]]],
) -> None:
    data: dict[str, Any] = {"image": (dims, pixels, dict(attrs))}
    data |= {name: (name, values) for name, values in places.items()}
    data |= {"crs": ((), np.int32(0), mapping)} if mapping else {}
    for name, (values, said) in found.items():
        data[name] = (("sample", "k")[: values.ndim], values, dict(said))
    made = xarray.Dataset(data)
    encoding = {"image": {"chunks": chunks}}
    for name in made.variables:  # xarray takes _FillValue from the encoding alone
        fill = made[name].attrs.pop("_FillValue", None)
        encoding.setdefault(str(name), {})["_FillValue"] = fill
        for key in (
            "scale_factor",
            "add_offset",
            "missing_value",
            "_Unsigned",
            "units",
            "calendar",
        ):
            made[name].attrs.pop(key, None)
    made.to_zarr(path, zarr_format=version, consolidated=True, encoding=encoding)
    import zarr as library

    group = library.open_group(path, mode="r+", use_consolidated=False)
    said_by = {"image": attrs} | {name: said for name, (_, said) in found.items()}
    for name, said in said_by.items():  # as they stand
        plain = {
            k: v.tolist() if isinstance(v, (np.ndarray, np.generic)) else v for k, v in said.items()
        }
        group[name].attrs.update({k: v for k, v in plain.items() if k != "_FillValue"})
    library.consolidate_metadata(path, zarr_format=version)
