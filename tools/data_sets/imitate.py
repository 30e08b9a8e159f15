"""Imitates the layouts of published data sets: the same folders, names and forms, other pixels.

    python tools/data_sets/imitate.py DIR

writes testdata/data-sets.tsv: a line for each file of DIR (see __main__.py) that the samples of a
row of docs/data-sets.md are of, the first four at most. `write` makes such files.
"""

from __future__ import annotations

import io
import json
import os
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Any

import h5py
import judge
import numpy as np
import published
import pyarrow as pa
import pyarrow.parquet as pq
import rasterio
import tortilla
import zarr_zip
from PIL import Image

LIST = Path(__file__).resolve().parents[2] / "testdata/data-sets.tsv"
TEXTS = (".csv", ".json", ".geojson", ".xml", ".txt")
FEW = 20  # values of a raster of classes, or of an array that holds boxes
MOST = 4  # samples of each data set


def form(path: Path) -> dict[str, Any]:
    """Returns what a file has besides its values."""
    if path.suffix in (".h5", ".hdf5", ".nc"):
        return {"arrays": arrays(path)}
    if path.suffix == ".npy":
        x = np.load(path)
        if x.size <= FEW:
            return {"array": x.tolist(), "dtype": str(x.dtype)}
        return {"shape": x.shape, "dtype": str(x.dtype)}
    if path.suffix == ".parquet":
        return {"rows": [cells(row) for row in pq.read_table(path).to_pylist()]}
    if path.suffix == ".tortilla":
        return {"samples": samples(path.read_bytes())}
    if path.suffix == ".tar":
        return {"tar": {name: held(data) for name, data in judge.members(path).items()}}
    if path.name.endswith(".zarr.zip"):
        return {"zarr": zarr_zip.forms(path.read_bytes())}
    if path.suffix == ".npz":
        return {"members": {n: [x.shape, str(x.dtype)] for n, x in np.load(path).items()}}
    with rasterio.open(path) as f:
        out = {"shape": [f.count, *f.shape], "dtype": f.dtypes[0]}
        if f.crs:
            out["crs"], out["at"] = f.crs.to_epsg() or f.crs.to_wkt(), list(f.transform)[:6]
        if f.nodata is not None:
            out["nodata"] = f.nodata
        if f.colorinterp[-1].name in ("alpha", "palette"):
            out["last"] = f.colorinterp[-1].name
        if f.count in (1, 3) and f.dtypes[0] == "uint8":
            colours = np.unique(f.read().reshape(f.count, -1), axis=1).T.tolist()
            if len(colours) < FEW:
                out["values"] = colours
        return out


def cells(row: dict[str, Any]) -> dict[str, Any]:
    """Puts forms in place of the files in the cells of a row."""
    return {k: held(v) if isinstance(v, bytes) else v for k, v in row.items()}


def held(data: bytes) -> dict[str, Any]:
    """Returns the form of a file in another one."""
    if data[:2] == tortilla.MAGIC:
        return {"samples": samples(data)}
    endings = {b"\x89PNG": ".png", b"PK\3\4": ".zarr.zip"}
    ending = endings.get(data[:4], ".tif")
    with tempfile.NamedTemporaryFile(suffix=ending) as file:
        file.write(data)
        file.flush()
        return {"file": ending, **form(Path(file.name))}


def samples(data: bytes) -> list[dict[str, Any]]:
    """Returns the columns and the forms of the samples of a Tortilla."""
    return [{**row, "file": held(inner)} for row, inner in tortilla.read(data)[:MOST]]


def arrays(path: Path) -> dict[str, Any]:
    """Returns the shape, the dtype and the dimension scales of each array of HDF5."""
    found: dict[str, Any] = {}

    def visit(name: str, item: Any) -> None:
        if isinstance(item, h5py.Dataset) and item.dtype.kind != "V":
            scales = [d[0].name[1:] if len(d) else None for d in item.dims]
            found[name] = [item.shape, str(item.dtype), *([scales] if any(scales) else [])]

    with h5py.File(path) as f:
        f.visititems(visit)
    return found


def write(root: Path, seed: int) -> None:
    """Writes files as the list says, below a folder for each data set."""
    rng = np.random.default_rng(seed)
    for line in LIST.read_text().splitlines():
        name, path, text = line.split("\t")
        to = root / name / path
        to.parent.mkdir(parents=True, exist_ok=True)
        write_file(to, json.loads(text), rng)


def write_file(to: Path, how: dict[str, Any], rng: np.random.Generator) -> None:
    """Writes a file of a form."""
    if "text" in how:
        to.write_text(how["text"])
    elif "arrays" in how:
        write_arrays(to, how["arrays"], rng)
    elif "rows" in how:
        rows = [{k: filled(v, rng) for k, v in row.items()} for row in how["rows"]]
        pq.write_table(pa.Table.from_pylist(rows), to, row_group_size=1)
    elif "samples" in how:
        to.write_bytes(packed(how, rng))
    elif "tar" in how:
        with tarfile.open(to, "w") as tar:
            for name, inner in how["tar"].items():
                data = filled(inner, rng)
                member = tarfile.TarInfo(name)
                member.size = len(data)
                tar.addfile(member, io.BytesIO(data))
    elif "zarr" in how:
        made = how["zarr"].items()
        arrays = {n: (random(rng, {"dtype": t, "shape": s}), *more) for n, (t, s, *more) in made}
        zarr_zip.write(to, arrays)
    elif "members" in how:
        made = how["members"].items()
        np.savez(to, **{n: random(rng, {"shape": s, "dtype": d}) for n, (s, d) in made})
    elif to.suffix == ".npy":
        given = "array" in how
        np.save(to, np.array(how["array"], how["dtype"]) if given else random(rng, how))
    elif to.suffix.lower() == ".jpg":
        Image.fromarray(random(rng, how).transpose(1, 2, 0).squeeze()).save(to)
    else:
        write_raster(to, how, random(rng, how))


def filled(value: Any, rng: np.random.Generator) -> Any:
    """Returns a cell, or the bytes of the file whose form it is."""
    if not isinstance(value, dict):
        return value
    if "samples" in value:
        return packed(value, rng)
    with tempfile.NamedTemporaryFile(suffix=value["file"]) as file:
        write_file(Path(file.name), value, rng)
        return Path(file.name).read_bytes()


def packed(how: dict[str, Any], rng: np.random.Generator) -> bytes:
    """Returns a Tortilla of samples."""
    columns = {k: [row[k] for row in how["samples"]] for k in how["samples"][0] if k != "file"}
    return tortilla.write(columns, [filled(row["file"], rng) for row in how["samples"]])


def random(rng: np.random.Generator, how: dict[str, Any]) -> np.ndarray:
    """Returns values of a form."""
    shape, dtype = how["shape"], np.dtype(how["dtype"])
    if "values" in how:
        values = np.array(how["values"], dtype)
        return np.moveaxis(values[rng.integers(0, len(values), shape[1:])], -1, 0)
    x = rng.integers(0, 120, shape).astype(dtype)  # also of floats, which may be classes
    if "nodata" in how:
        x[rng.random(shape) < 0.1] = how["nodata"]
    return x


def write_raster(to: Path, how: dict[str, Any], x: np.ndarray) -> None:
    """Writes a TIFF or PNG of a form."""
    options = {"count": x.shape[0], "height": x.shape[1], "width": x.shape[2], "dtype": x.dtype}
    if "crs" in how:
        crs = rasterio.CRS.from_user_input(how["crs"])
        options |= {"crs": crs, "transform": rasterio.Affine(*how["at"])}
    if "nodata" in how:
        options["nodata"] = how["nodata"]
    if how.get("last") == "alpha":
        options |= {"photometric": "RGB", "alpha": "YES"}
    driver = "PNG" if to.suffix == ".png" else "GTiff"
    with rasterio.open(to, "w", driver=driver, **options) as f:
        f.write(x)
        if how.get("last") == "palette":
            f.write_colormap(1, {i: (i, 255 - i, 0, 255) for i in range(256)})


def write_arrays(to: Path, arrays: dict[str, Any], rng: np.random.Generator) -> None:
    """Writes an HDF5 file of arrays, as `arrays` lists them."""
    with h5py.File(to, "w") as f:
        for name, (shape, dtype, *_) in arrays.items():
            f[name] = random(rng, {"shape": shape, "dtype": dtype})
        for name, (_, _, *scales) in arrays.items():
            for axis, scale in enumerate(scales[0] if scales else []):
                if scale:
                    f[scale].make_scale(scale)
                    f[name].dims[axis].attach_scale(f[scale])


def main(root: Path) -> None:
    """Writes the list."""
    judge.most = MOST
    lines = LIST.read_text().splitlines(keepends=True)
    with open(LIST, "w") as out:
        for name, (folder, samples) in published.SETS.items():
            if not (root / folder).is_dir():  # as it was
                out.writelines(line for line in lines if line.startswith(f"{name}\t"))
                continue
            os.chdir(root / folder)
            judge.read.clear()
            samples()
            for path in sorted(judge.read):
                how = {"text": path.read_text()} if path.suffix in TEXTS else form(path)
                print(name, path, json.dumps(how), sep="\t", file=out)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    main(Path(sys.argv[1]).resolve())
