"""Files with all that a GeoTIFF says besides its samples, and what GDAL makes of them.

extras.py write FOLDER SEED COUNT    writes 0.tif, 1.tif, ...
extras.py fixed FOLDER               writes the files of testdata/extras
extras.py read PATH...               prints one JSON object, by path
"""

import hashlib
import json
import sys
import warnings

import numpy as np
import rasterio
from rasterio.control import GroundControlPoint
from rasterio.enums import ColorInterp, Resampling
from rasterio.rpc import RPC
from rasterio.shutil import copy

warnings.filterwarnings("ignore")
# How samples are stored, and what GDAL can make of them.
STRUCTURE = ("IMAGE_STRUCTURE", "DERIVED_SUBDATASETS")
TEXT = ["plain", 'a <b> & "c"', "ünïcode", "two\nlines", "&amp;", " blanks "]


def sha(a):
    """Return the hash of an array's bytes in C order."""
    return hashlib.sha256(np.ascontiguousarray(a).tobytes()).hexdigest()


def pixels(f):
    """Return what is read of an image or an overview."""
    return {
        "shape": [f.count, f.height, f.width],
        "samples": sha(f.read()),
        "masks": sha(f.read_masks()),
        "flags": [sorted(v.name for v in flags) for flags in f.mask_flag_enums],
    }


def tags(f, band):
    """Return the metadata of all domains."""
    spaces = ["", *sorted(set(f.tag_namespaces(band)) - set(STRUCTURE) - {""})]
    return {s: f.tags(band, ns=s or None) for s in spaces}


def describe(path):
    """Return what GDAL reads of a file."""
    with rasterio.open(path) as f:
        gcps, gcp_crs = f.gcps
        row = pixels(f) | {
            "dtypes": f.dtypes,
            "nodata": str(f.nodata),
            "crs": f.crs.to_wkt() if f.crs else "",
            "transform": f.transform[:6],
            "gcps": [(g.row, g.col, g.x, g.y, g.z) for g in gcps],
            "gcp_crs": gcp_crs.to_wkt() if gcp_crs else "",
            "rpcs": f.rpcs.to_dict() if f.rpcs else None,
            "scales": f.scales,
            "offsets": f.offsets,
            "units": f.units,
            "names": f.descriptions,
            "colours": [c.name for c in f.colorinterp],
            "tags": [tags(f, b) for b in range(f.count + 1)],
            "white_is_zero": f.tags(1, ns="IMAGE_STRUCTURE").get("MINISWHITE", ""),
        }
        try:
            # One of 16 bits has 65,536 colours. As JSON, those of sixty files took 45 s of a processor to write and read.
            colours = sorted(f.colormap(1).items())
            row["palette"] = [len(colours), sha([(at, *colour) for at, colour in colours])]
        except ValueError:
            row["palette"] = None
        levels = len(f.overviews(1))
    row["overviews"] = []
    for i in range(levels):
        with rasterio.open(path, overview_level=i) as f:
            row["overviews"].append(pixels(f))
    return row


def rpcs(coefficients):
    """Return rational polynomials; coefficients makes 20 numbers."""
    names = ("line_num_coeff", "line_den_coeff", "samp_num_coeff", "samp_den_coeff")
    offsets = {"height_off": 100, "lat_off": 1.5, "line_off": 3, "long_off": 5, "samp_off": 7}
    scales = {"height_scale": 50, "lat_scale": 2, "line_scale": 4, "long_scale": 6, "samp_scale": 8}
    error = {"err_bias": 0.5, "err_rand": 0.25}
    return RPC(**offsets, **scales, **error, **{k: coefficients() for k in names})


def text(rng):
    """Return a text."""
    return str(rng.choice(TEXT))


def one(path, rng):
    """Write one file of random contents."""
    maybe = lambda p=0.5: rng.random() < p  # noqa: E731
    look = str(rng.choice(["MINISBLACK", "MINISBLACK", "RGB", "PALETTE", "MINISWHITE"]))
    count = {"RGB": 3, "PALETTE": 1}.get(look, int(rng.integers(1, 4)))
    alpha = look in ("RGB", "MINISBLACK") and maybe(0.3)
    types = (
        ["uint8", "uint16"]
        if look == "PALETTE"
        else ["uint8", "uint16", "int16", "uint32", "float32"]
    )
    dtype = str(rng.choice(types))
    h, w = (int(v) for v in rng.integers(1, 90, 2))
    options = {
        "INTERLEAVE": str(rng.choice(["PIXEL", "BAND"])),
        "COMPRESS": str(rng.choice(["NONE", "DEFLATE", "ZSTD", "LZW"])),
        "ENDIANNESS": str(rng.choice(["LITTLE", "BIG"])),
        "BIGTIFF": str(rng.choice(["YES", "NO"])),
        "PHOTOMETRIC": look,
    }
    if maybe():
        options |= {"TILED": "YES", "BLOCKXSIZE": 32, "BLOCKYSIZE": 16}
    if alpha:
        options["ALPHA"] = str(rng.choice(["YES", "PREMULTIPLIED"]))
        count += 1
    place = str(rng.choice(["none", "transform", "rotated", "gcps"]))
    crs = str(rng.choice(["EPSG:32718", "EPSG:4326", "EPSG:3031", "EPSG:32718+5773", "ESRI:54009"]))
    if place == "transform":
        options |= {"crs": crs, "transform": rasterio.Affine(10, 0, 5e5, 0, -10, 8e6)}
    elif place == "rotated":
        options |= {"crs": crs, "transform": rasterio.Affine(10, 1, 5e5, 2, -10, 8e6)}
    elif place == "gcps":
        at = [(0, 0, 1, 2), (0, w, 9, 2.5), (h, 0, 1.5, 8), (h, w, 9, 8.25)]
        options |= {
            "crs": "EPSG:4326",
            "gcps": [GroundControlPoint(*p, z=float(rng.integers(9))) for p in at],
        }
    if maybe(0.3):
        options["nodata"] = int(rng.integers(0, 5))
    x = rng.integers(0, 9, (count, h, w)).astype(dtype)
    env = {"GDAL_TIFF_INTERNAL_MASK": True, "TIFF_USE_OVR": False}
    with (
        rasterio.Env(**env),
        rasterio.open(
            path, "w", driver="GTiff", count=count, height=h, width=w, dtype=dtype, **options
        ) as f,
    ):
        f.write(x)
        if look == "PALETTE":
            f.write_colormap(1, {i: (i % 256, i * 3 % 256, i * 7 % 256, 255) for i in range(200)})
        if maybe(0.4) and not alpha:
            f.write_mask(rng.random((h, w)) < 0.5)
        if maybe():
            f.scales = [float(v) for v in rng.choice([1, 0.1, 1e-4], count)]
            f.offsets = [float(v) for v in rng.choice([0, -100, 0.3], count)]
        if maybe():
            f.units = [str(v) for v in rng.choice(["", "m", "W/m²"], count)]
        for b in range(1, count + 1):
            if maybe(0.4):
                f.set_band_description(b, text(rng))
            if maybe(0.3):
                f.update_tags(b, KEY=text(rng), STATISTICS_MEAN="3.5")
        if maybe():
            f.update_tags(A=text(rng), B=text(rng))
        if maybe(0.3):
            f.update_tags(ns="SPACE", C=text(rng))
        if maybe(0.3):
            f.update_tags(ns="xml:DOC", **{"xml": '<Item name="x"><Item>&lt;</Item></Item>'})
        if maybe(0.3):
            f.update_tags(
                TIFFTAG_SOFTWARE="soft", TIFFTAG_ARTIST="an", TIFFTAG_DATETIME="2026:01:02 03:04:05"
            )
            f.update_tags(
                TIFFTAG_XRESOLUTION="3.5", TIFFTAG_YRESOLUTION="4", TIFFTAG_RESOLUTIONUNIT="2"
            )
            f.update_tags(TIFFTAG_IMAGEDESCRIPTION="words", TIFFTAG_COPYRIGHT="mine")
        if maybe(0.3):
            f.update_tags(AREA_OR_POINT="Point")
        if maybe(0.2) and look == "MINISBLACK" and count == 3:
            f.colorinterp = [ColorInterp.blue, ColorInterp.undefined, ColorInterp.red]
        if maybe(0.2):
            f.rpcs = rpcs(lambda: rng.random(20).tolist())
    if maybe(0.4) and min(h, w) >= 4:
        with rasterio.Env(**env), rasterio.open(path, "r+") as f:
            f.build_overviews([2, 4], Resampling.nearest)


def fixed(folder):
    """Write the files of testdata/extras, each with what GDAL's COG driver makes of it."""
    rng = np.random.default_rng(7)
    env = {"GDAL_TIFF_INTERNAL_MASK": True}
    utm = {"crs": "EPSG:32718", "transform": rasterio.Affine(10, 0, 5e5, 0, -10, 8e6)}
    with (
        rasterio.Env(**env),
        rasterio.open(
            f"{folder}/scaled.tif",
            "w",
            driver="GTiff",
            count=2,
            height=70,
            width=50,
            dtype="uint16",
            nodata=3,
            COMPRESS="DEFLATE",
            **utm,
        ) as f,
    ):
        f.write(rng.integers(0, 9, (2, 70, 50)).astype("u2"))
        f.write_mask(rng.random((70, 50)) < 0.5)
        f.scales, f.offsets, f.units = (0.0001, 2), (-0.1, 0), ("reflectance", "")
        f.update_tags(A='a <b> & "c"', TIFFTAG_SOFTWARE="soft", AREA_OR_POINT="Point")
        f.update_tags(1, STATISTICS_MEAN="3.5")
        f.set_band_description(1, "red")
        f.build_overviews([2, 4], Resampling.nearest)
    with rasterio.open(
        f"{folder}/palette.tif",
        "w",
        driver="GTiff",
        count=1,
        height=20,
        width=40,
        dtype="uint8",
        ENDIANNESS="BIG",
        photometric="palette",
    ) as f:
        f.write(rng.integers(0, 9, (1, 20, 40)).astype("u1"))
        f.write_colormap(1, {i: (i, i * 3 % 256, i * 7 % 256, 255) for i in range(256)})
    at = [(0, 0, 1, 2), (0, 20, 9, 2.5), (30, 0, 1.5, 8), (30, 20, 9, 8.25)]
    gcps = [GroundControlPoint(*p, z=5.0) for p in at]
    with rasterio.open(
        f"{folder}/points.tif",
        "w",
        driver="GTiff",
        count=1,
        height=30,
        width=20,
        dtype="float32",
        crs="EPSG:4326",
        gcps=gcps,
    ) as f:
        f.write(rng.random((1, 30, 20)).astype("f4"))
        f.rpcs = rpcs(lambda: (rng.integers(0, 99, 20) / 8).tolist())
    cog = {"INTERLEAVE": "TILE", "BLOCKSIZE": 32, "COMPRESS": "ZSTD", "BIGTIFF": "YES"}
    cog |= {"OVERVIEWS": "NONE", "PREDICTOR": "YES"}
    with open(f"{folder}/manifest.jsonl", "w") as out:
        for name in ("scaled", "palette", "points"):
            copy(f"{folder}/{name}.tif", f"{folder}/{name}-cog.tif", driver="COG", **cog)
            row = {"path": f"{name}.tif", "cog": f"{name}-cog.tif"}
            row |= {"writer": f"rasterio {rasterio.__version__}, GDAL {rasterio.__gdal_version__}"}
            row["overview_sums"] = describe(f"{folder}/{name}.tif")["overviews"]
            print(json.dumps(row), file=out)


if __name__ == "__main__":
    mode, args = sys.argv[1], sys.argv[2:]
    if mode == "write":
        rng = np.random.default_rng(int(args[1]))
        for i in range(int(args[2])):
            one(f"{args[0]}/{i}.tif", rng)
    elif mode == "fixed":
        fixed(args[0])
    else:
        json.dump({p: describe(p) for p in args}, sys.stdout)
