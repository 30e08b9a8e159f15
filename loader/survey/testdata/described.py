"""Writes described.json: what GDAL, by rasterio 1.4.4, says of files in testdata.

Members are named as by `chaski info --json`. Run it in the root of the repository.
"""

import json
import os
import struct

import numpy as np
import rasterio
from rasterio.enums import ColorInterp, MaskFlags

FILES = """
alpha/grey.tif alpha/planes.tif alpha/rgba.png alpha/rgba.tif beside/mask.tif beside/pam.tif
beside/world.png beside/world.tif extras/palette.tif extras/points.tif extras/scaled-cog.tif
extras/scaled.tif masks/bytes.tif masks/strips-be.tif masks/tog.tif
overviews/both.tif overviews/masked.tif overviews/plain.tif overviews/pyramid.tif
raster/tog/tog-1x1.tif tiffs/sparse.tif vrt/alpha.vrt vrt/masked.vrt vrt/mosaic.vrt
vrt/nodata.vrt vrt/scaled.vrt
""".split()


def blocks(src):
    """The bytes of all blocks; a sparse one has none."""
    pixel = src.tags(ns="IMAGE_STRUCTURE").get("INTERLEAVE") == "PIXEL"
    sizes = []
    for b in (1,) if pixel else src.indexes:
        h, w = src.block_shapes[b - 1]
        for y in range(-(-src.height // h)):
            for x in range(-(-src.width // w)):
                size = src.get_tag_item(f"BLOCK_SIZE_{x}_{y}", "TIFF", bidx=b)
                sizes.append(int(size or 0))
    return sizes


def mask_of(path, src):
    """The kind of the mask."""
    flags = src.mask_flag_enums[0]
    if MaskFlags.alpha in flags:
        return {"kind": "alpha"}
    if MaskFlags.per_dataset not in flags:
        return None
    return {"kind": "beside" if os.path.exists(path + ".msk") else "internal"}


def describe(path):
    """The members of a file."""
    with rasterio.open(path) as src:
        crs = src.crs or src.gcps[1]
        bands, structure = src.count, src.tags(ns="IMAGE_STRUCTURE")
        height, width = src.block_shapes[0]
        item = np.dtype(src.dtypes[0]).itemsize
        names = [d or "" for d in src.descriptions]
        raster = {
            "shape": [bands, src.height, src.width],
            "dtype": src.dtypes[0],
            "decoded_bytes": bands * src.height * src.width * item,
            "nodata": "nan" if src.nodata != src.nodata else src.nodata,
            "mask": mask_of(path, src),
            "alpha": bands - 1 if src.colorinterp[-1] == ColorInterp.alpha else None,
        }
        place = {
            "epsg": crs and crs.to_epsg(),
            "transform": None if src.transform.is_identity else list(src.transform.to_gdal()),
            "bounds": None if src.transform.is_identity else list(src.bounds),
            "band_names": names if any(names) else None,
        }
        if src.driver == "VRT":
            return {"raster": raster, "vrt": place}
        if src.driver != "GTiff":
            return {"raster": raster}
        sizes = blocks(src)
        pixel = structure.get("INTERLEAVE") == "PIXEL"
        raster |= {
            "chunk": [bands if pixel else 1, height, width],
            "chunks": len(sizes),
            "sparse": sizes.count(0) or None,
            "stored_bytes": sum(sizes),
            "predictor": int(structure.get("PREDICTOR", 1)),
        }
        with open(path, "rb") as f:
            head = f.read(4)
        levels = []
        for i in range(len(src.overviews(1))):
            with rasterio.open(path, overview_level=i) as level:
                levels.append([level.height, level.width])
        beside = os.path.exists(path + ".ovr")
        scaled = any(s != 1 for s in src.scales) or any(src.offsets)
        point = src.tags().get("AREA_OR_POINT")
        tiff = place | {
            "pages": None,
            "big_endian": head[:2] == b"MM" or None,
            "bigtiff": struct.unpack("<H" if head[:2] == b"II" else ">H", head[2:])[0] == 43,
            "tiled": src.profile["tiled"],
            "gcps": len(src.gcps[0]) or None,
            "overview_sizes": levels or None,
            "overviews": len(levels) or None,
            "mask": raster["mask"] == {"kind": "internal"} or None,
            "pixel_at": point and point.lower(),
        }
        if not beside:
            tiff["overview_file"] = None
        else:  # GDAL counts these
            del tiff["overviews"]
        if scaled:
            tiff["bands"] = [
                {"scale": scale, "offset": offset}
                for scale, offset in zip(src.scales, src.offsets, strict=True)
            ]
        return {"raster": raster, "tiff": tiff}


def measure(path):
    """Pixels and cells of 16 by 16: how many are valid, and their values."""
    with rasterio.open(path) as src:
        known = [b for b in src.indexes if src.colorinterp[b - 1] != ColorInterp.alpha]
        data = src.read(known, masked=True, out_dtype="float64")
        mask = np.ma.getmaskarray(data)
        valid, numbers = (~mask).any(axis=0), np.ma.masked_invalid(data)
        cells = [
            int(valid[y : y + 16, x : x + 16].sum())
            for y in range(0, src.height, 16)
            for x in range(0, src.width, 16)
        ]
        bands = [
            {
                "nodata": int(missing.sum()),
                "count": int(band.count()),
                "mean": float(band.filled(0).sum() / max(band.count(), 1)),
                "min": float(band.filled(np.inf).min()),
                "max": float(band.filled(-np.inf).max()),
            }
            for band, missing in zip(numbers, mask, strict=True)
        ]
        return {"bands": bands, "cells": cells}


def line(name):
    """A line of the file."""
    path = "testdata/" + name
    said = describe(path) | ({"pixels": measure(path)} if path.endswith(".tif") else {})
    return f"{json.dumps(name)}: {json.dumps(said)}"


with open("loader/survey/testdata/described.json", "w") as f:
    f.write("{\n" + ",\n".join(map(line, FILES)) + "\n}\n")
