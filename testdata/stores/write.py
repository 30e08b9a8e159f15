"""Writes the ZIPs of this directory, and values.json: what zarr-python reads of them.

python write.py
"""

import hashlib
import json
import warnings
import zipfile
from pathlib import Path

import numpy as np
import zarr
from zarr.storage import ZipStore

HERE = Path(__file__).resolve().parent
warnings.simplefilter("ignore")  # of names that are in a ZIP twice


def put(group: zarr.Group, name: str, values: np.ndarray, dims: str) -> None:
    """Writes an array: its images, or the steps of these, are its chunks."""
    names = dims.split()
    chunks = [1 if d in ("sample", "time") else n for d, n in zip(names, values.shape, strict=True)]
    v3 = group.metadata.zarr_format == 3
    array = group.create_array(
        name, data=values, chunks=tuple(chunks), dimension_names=names if v3 else None
    )
    if not v3:
        array.attrs["_ARRAY_DIMENSIONS"] = names


def write(path: str, version: int, seed: int, dims: str, shape: tuple[int, ...], **more) -> None:
    """Writes a store as SSL4EO-S12 and TerraMesh have them: bands, a mask and coordinates."""
    (HERE / path).parent.mkdir(exist_ok=True)
    rng = np.random.default_rng(seed)
    dtype = "int16" if version == 2 else "float32"
    bands = rng.integers(1, 1000, shape).astype(dtype)
    store = ZipStore(HERE / path, mode="w", **more)
    group = zarr.create_group(store=store, zarr_format=version)
    put(group, "bands", bands, dims)
    lead = dims.split()[:-3]
    mask = rng.integers(0, 4, (*shape[: len(lead)], *shape[-2:])).astype("uint8")
    put(group, "cloud_mask", mask, " ".join([*lead, "y", "x"]))
    put(group, "x", 500005.0 + 10 * np.arange(shape[-1]), "x")
    put(group, "y", 3999995.0 - 10 * np.arange(shape[-2]), "y")
    if "sample" in lead:
        put(group, "center_lat", rng.random(shape[0]), "sample")
    if path.endswith("b.zarr.zip"):  # its chunk and its metadata are in the ZIP twice
        group["bands"][0] = bands[0] + 1000
        group["bands"].attrs["scale_factor"] = 0.5
    else:
        zarr.consolidate_metadata(store)
    store.close()


def images(path: Path) -> dict[str, list[str]]:
    """The hashes of the images of arrays, as zarr-python reads them."""
    group, out = zarr.open_group(ZipStore(path, mode="r"), mode="r"), {}
    for name in ("bands", "cloud_mask"):
        values = group[name][:]
        several = "center_lat" in group
        list_ = values if several else values[None]
        out[name] = [hashlib.sha256(np.ascontiguousarray(v).tobytes()).hexdigest() for v in list_]
    return out


if __name__ == "__main__":
    deflated = {"compression": zipfile.ZIP_DEFLATED}
    for k, name in enumerate("abc"):
        more = deflated if name == "c" else {}
        shape = "sample time band y x", (2 + k, 2, 3, 16, 16)
        write(f"s2/{name}.zarr.zip", 2, k, *shape, **more)
        write(f"s1/{name}.zarr.zip", 3, 10 + k, "sample band y x", (2 + k, 2, 16, 16), **more)
        write(f"chips/{name}.zarr.zip", 2, 20 + k, "band y x", (4, 16, 16), **more)
    found = sorted(HERE.rglob("*.zarr.zip"))
    values = {p.relative_to(HERE).as_posix(): images(p) for p in found}
    (HERE / "values.json").write_text(json.dumps(values, indent=1) + "\n")
