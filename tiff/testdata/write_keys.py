# ruff: noqa: E501
"""Write what GDAL makes of GeoKeys, one JSON object a line: keys, code and PROJ's parameters."""

import json
import random
import sys
import tempfile
import warnings

import numpy as np
import rasterio
import tifffile

warnings.filterwarnings("ignore")
r = random.Random(1)
ESRI = 'GEOGCS["GCS_WGS_1984",DATUM["D_WGS_1984",SPHEROID["WGS_1984",6378137.0,298.257223563]],PRIMEM["Greenwich",0.0],UNIT["Degree",0.0174532925199433]]'
UTM = f'PROJCS["WGS_1984_UTM_Zone_33N",{ESRI},PROJECTION["Transverse_Mercator"],PARAMETER["False_Easting",500000.0],PARAMETER["False_Northing",0.0],PARAMETER["Central_Meridian",15.0],PARAMETER["Scale_Factor",0.9996],PARAMETER["Latitude_Of_Origin",0.0],UNIT["Meter",1.0]]'
MERC = {3075: 7, 3080: 0.0, 3081: 0.0, 3092: 1.0, 3082: 0.0, 3083: 0.0}


def cases():
    """Yields GeoKeys: of the model, a geographic and a projected CRS, and others."""
    codes = [0, 1023, 1024, 3857, 4326, 4269, 4978, 32633, 32733, 2263, 32766, 32767]
    for model in (None, 1, 2, 3):
        for code in codes:
            yield {1024: model, 3072: code}
            yield {1024: model, 2048: code}
            yield {1024: model, 2048: 4326, 3072: code}
    for unit in (0, 9001, 9002, 9003, 9004, 9036, 32767):
        for code in (32633, 2263, 2056):
            yield {1024: 1, 3072: code, 3076: unit}
            for size in (1.0, 0.3048, 1200 / 3937, 1000.0):
                yield {1024: 1, 3072: code, 3076: unit, 3077: size}
    for base in (0, 4326, 4258, 4267, 4269, 4322, 1025, 32767):
        for code in (32633, 26917, 32733, 25833, 4326):
            yield {1024: 1, 2048: base, 3072: code}
            yield {1024: 1, 2048: base, 3072: code, 3076: 9002}
    for zone in (
        15999,
        16000,
        16001,
        16017,
        16033,
        16059,
        16060,
        16061,
        16099,
        16100,
        16101,
        16133,
        16160,
        16161,
        32767,
    ):
        for base in (4326, 4269, 32767):
            yield {1024: 1, 2048: base, 3074: zone}
            yield {1024: 1, 2048: base, 3074: zone, 3076: 9002}
            yield {
                1024: 1,
                2048: base,
                3074: zone,
                3075: 1,
                3080: 9.0,
                3081: 1.0,
                3092: 0.5,
                3082: 3.0,
                3083: 4.0,
            }
    for datum in (0, 6326, 6269, 6267, 6258, 1116, 32766, 32767, 6999):
        for name in (
            "",
            "WGS 84",
            "NAD83",
            "nonsense",
            "GCS Name = NAD83|",
            "GCS Name = NAD83|Datum = WGS 84|",
            "NAD83|WGS 84",
        ):
            yield {1024: 2, 2048: 32767, 2050: datum, 2049: name}
            yield {1024: 1, 2048: 32767, 2050: datum, 2049: name, 3074: 16017}
    for name in ("WGS 84", "ETRS89"):
        for a, b, f in (
            (6378137.0, None, 298.257223563),
            (6378137.0, 6356752.314245179, None),
            (6378137.0, 6378137.0, None),
            (6371000.0, None, None),
            (6370997.0, 6370997.0, 0.0),
        ):
            yield {
                1024: 1,
                2048: 32767,
                2049: name,
                2057: a,
                2058: b,
                2059: f,
                3072: 32767,
                3075: 10,
                3088: 10.0,
                3089: 52.0,
                3082: 4321000.0,
                3083: 3210000.0,
            }
    for name in (
        "WGS 84 / Pseudo-Mercator",
        "WGS_1984_Web_Mercator_Auxiliary_Sphere",
        "Google Maps Global Mercator",
        "google maps global mercator (deprecated)",
        "PCS Name = WGS_1984_Web_Mercator_Auxiliary_Sphere|x",
        "Mercator",
        "",
    ):
        for key in (3073, 1026):
            for unit in (9001, 9002):
                yield {1024: 1, 2048: 4326, 3072: 32767, 3076: unit, key: name, **MERC}
        yield {1024: 1, 2048: 4326, 3072: 32767, 3076: 9001, 3073: "Mercator", 1026: name, **MERC}
    for text in (ESRI, UTM):
        for model in (None, 1, 2, 32767):
            for key in (3073, 1026, 2049):
                yield {1024: model, key: "ESRI PE String = " + text}
    keys = range(3078, 3097)
    for method in (
        1,
        3,
        7,
        8,
        9,
        10,
        11,
        15,
        16,
        17,
        22,
        24,
        28,
        29,
        9804,
        9807,
        9812,
        9815,
        9820,
        9822,
        9835,
        2,
        30,
    ):
        for _ in range(5):
            some = r.sample(keys, r.randint(2, 7))
            yield {
                1024: 1,
                2048: 4326,
                3072: 32767,
                3075: method,
                3076: r.choice([0, 9001, 9002]),
                **{k: round(r.uniform(1, 80), 3) for k in some},
            }
        for lat, lon in ((3081, 3080), (3085, 3084), (3089, 3088)):
            yield {
                1024: 1,
                2048: 4326,
                3072: 32767,
                3075: method,
                lat: 40.5,
                lon: 9.25,
                3078: 35.0,
                3079: 65.5,
                3092: 0.9,
                3082: 100.0,
                3083: 200.0,
                3094: 30.0,
                3096: 40.0,
            }
            yield {
                1024: 1,
                2048: 4326,
                3072: 32767,
                3075: method,
                3076: 9003,
                lat: 40.5,
                lon: 9.25,
                3093: 0.9,
                3086: 100.0,
                3087: 200.0,
            }
            yield {
                1024: 1,
                2048: 4326,
                3072: 32767,
                3075: method,
                lat: 90.0,
                lon: 9.25,
                3095: 70.0,
                3093: 0.9,
                3090: 100.0,
                3091: 200.0,
            }


def tags(keys):
    """Returns the three tags of GeoKeys."""
    doubles, text, directory = [], "", []
    for i, v in sorted(keys.items()):
        if isinstance(v, str):
            directory += [i, 34737, len(v) + 1, len(text)]
            text += v + "|"
        elif isinstance(v, float):
            directory += [i, 34736, 1, len(doubles)]
            doubles.append(v)
        else:
            directory += [i, 0, 1, v]
    return [1, 1, 0, len(keys), *directory], doubles, text


UNITS = {"m": 1, "ft": 0.3048, "us-ft": 1200 / 3937, "km": 1000}
NAMES = (
    "lat_0",
    "lon_0",
    "lat_1",
    "lat_2",
    "lat_ts",
    "k_0",
    "x_0",
    "y_0",
    "alpha",
    "gamma",
    "lonc",
)


def parameters(crs):
    """Returns the parameters of a projected CRS without a code, those that are PROJ's defaults left out."""
    p = crs.to_dict(projjson=False) if crs else {}
    if not p or crs.to_epsg() or p["proj"] in ("longlat", "geocent"):
        return ""
    if p["proj"] == "utm":
        p = {
            "proj": "tmerc",
            "lon_0": 6 * p["zone"] - 183,
            "k_0": 0.9996,
            "x_0": 500000,
            "y_0": 10000000 if p.get("south") else 0,
            "units": p.get("units"),
        }
    values = {
        n: v for n, v in ((k + "_0" if k == "k" else k, v) for k, v in p.items()) if n in NAMES
    }
    values["unit"] = UNITS.get(p.get("units"), p.get("to_meter", 1))
    values = {n: v for n, v in values.items() if not (v == 0 or v == 1 and n in ("k_0", "unit"))}
    return p["proj"] + "".join(f" {n}={v!r}" for n, v in sorted(values.items()))


def main():
    """Asks GDAL."""
    with tempfile.TemporaryDirectory() as folder:
        for keys in cases():
            keys = {k: v for k, v in keys.items() if v is not None}
            directory, doubles, text = tags(keys)
            extra = [(34735, "H", len(directory), tuple(directory), True)]
            if doubles:
                extra.append((34736, "d", len(doubles), tuple(doubles), True))
            if text:
                extra.append((34737, "s", 0, text, True))
            path = folder + "/a.tif"
            tifffile.imwrite(path, np.zeros((4, 4), "uint8"), extratags=extra, metadata=None)
            with rasterio.open(path) as f:
                crs = f.crs
                row = {
                    "keys": directory,
                    "doubles": doubles,
                    "text": text,
                    "epsg": (crs.to_epsg() or 0) if crs else 0,
                    "parameters": parameters(crs),
                    "geographic": bool(crs and crs.is_geographic),
                }
            json.dump({k: v for k, v in row.items() if v}, sys.stdout, separators=(",", ":"))
            print()


main()
