"""Writes systems.txt, the CRSs that package epsg knows, out of PROJ's copy of the EPSG dataset.

    pip install pyproj && python internal/epsg/systems.py > internal/epsg/systems.txt

The EPSG dataset is owned by the International Association of Oil & Gas Producers (IOGP,
https://epsg.org); its terms of use allow parts of it to be passed on. systems.txt says so in its
first lines.
"""

import re
import sys
import warnings

import pyproj
from pyproj import CRS
from pyproj.database import query_crs_info
from pyproj.enums import PJType
from pyproj.transformer import TransformerGroup

warnings.filterwarnings("ignore")

PROJECTIONS = {
    "tmerc": "tmerc",
    "utm": "tmerc",
    "merc": "merc",
    "webmerc": "webmerc",
    "lcc": "lcc",
    "aea": "aea",
    "laea": "laea",
    "stere": "stere",
    "sterea": "sterea",
    "omerc": "omerc",
    "somerc": "somerc",
    "cea": "cea",
    "eqc": "eqc",
    "sinu": "sinu",
    "moll": "moll",
    "poly": "poly",
}
KEYS = ["lon_0", "lonc", "lat_0", "lat_1", "lat_2", "lat_ts", "k_0", "x_0", "y_0", "alpha", "gamma"]
IGNORED = {
    "proj",
    "zone",
    "south",
    "datum",
    "ellps",
    "a",
    "b",
    "rf",
    "R",
    "f",
    "units",
    "to_meter",
    "no_defs",
    "type",
    "pm",
    "axis",
    "k",
    "nadgrids",
    "wktext",
    "vunits",
    "towgs84",
    "no_uoff",
}
# Codes beside EPSG's own: ESRI's world and continental projections, and the old names of web
# Mercator.
ESRI = {*range(53001, 53100), *range(54001, 54100), *range(102001, 102200)} - {
    53021,
    54021,
}  # polyconic maps do not hold the world
WEB_MERCATOR = [900913, 3785, 102100, 102113]


def number(v):
    """Writes a number as short as it goes."""
    return f"{float(v):.15g}"


def ellipsoid(crs):
    """Returns the semi-major axis in metres and the inverse flattening, 0 for a sphere."""
    e = crs.ellipsoid
    return number(e.semi_major_metre), number(e.inverse_flattening)


def words(name):
    """Returns a datum's name as the text compares it: small letters and digits."""
    return re.sub("[^a-z0-9]", "", name.lower())


def shift(code):
    """Returns the transformation of a datum to WGS 84 as 7 Helmert parameters (EPSG method 9606).

    It returns "" if none is known.
    """
    try:
        group = TransformerGroup(f"EPSG:{code}", "EPSG:4326", always_xy=True, allow_ballpark=False)
    except Exception:
        return ""
    for t in group.transformers:
        text = t.to_proj4() if hasattr(t, "to_proj4") else t.definition
        steps = [s for s in re.split(r"\+?step", text) if s.strip()]
        names = [m.group(1) for s in steps for m in [re.search(r"proj=(\w+)", s)] if m]
        if "grid" in text or set(names) - {
            "pipeline",
            "unitconvert",
            "axisswap",
            "cart",
            "push",
            "pop",
            "helmert",
            "noop",
            "longlat",
        }:
            continue
        h = [s for s in steps if "proj=helmert" in s]
        if not h:
            return "0"
        if len(h) > 1 or "dx=" in h[0] or "t_epoch" in h[0]:
            continue
        v = {k: float(x) for k, x in re.findall(r"\b(x|y|z|rx|ry|rz|s)=(\S+)", h[0])}
        sign = -1.0 if "coordinate_frame" in h[0] else 1.0
        if "inv" in h[0].split():
            continue
        p = [
            v.get("x", 0),
            v.get("y", 0),
            v.get("z", 0),
            *(sign * v.get(k, 0) for k in ("rx", "ry", "rz")),
            v.get("s", 0),
        ]
        while p and p[-1] == 0:
            p.pop()
        return ",".join(number(x) for x in p) or "0"
    return ""


def geographic():
    """Yields the lines of CRSs of longitude and latitude in degrees."""
    for info in query_crs_info("EPSG", PJType.GEOGRAPHIC_2D_CRS, allow_deprecated=True):
        crs = CRS.from_epsg(info.code)
        if any(abs(a.unit_conversion_factor - 0.017453292519943295) > 1e-12 for a in crs.axis_info):
            continue
        pm = crs.prime_meridian.longitude if crs.prime_meridian else 0
        if crs.prime_meridian and crs.prime_meridian.unit_name != "degree":
            pm *= crs.prime_meridian.unit_conversion_factor / 0.017453292519943295
        names = {words(crs.datum.name.removesuffix(" ensemble"))}
        names.add(words(info.name))
        names.add(str(crs.datum.to_json_dict().get("id", {}).get("code", info.code)))
        esri = re.search(r'DATUM\["(.*?)"', crs.to_wkt("WKT1_ESRI") or "")
        if esri:
            names.add(words(esri.group(1)).removeprefix("d"))
        line = [info.code, "longlat", ",".join(ellipsoid(crs))]
        if pm:
            line.append(f"pm={number(pm)}")
        s = shift(info.code)
        line += [f"wgs={s}"] if s not in ("", "0") else ["wgs=?"] if s == "" else []
        yield int(info.code), " ".join([*line, "datum=" + ",".join(sorted(names))])


def projected(authority, code, write):
    """Returns the line of a projected CRS, None for one that is not supported."""
    try:
        crs = CRS.from_authority(authority, code)
        p = crs.to_dict()
    except Exception:
        return None
    if (
        p.get("proj") not in PROJECTIONS
        or set(p) - IGNORED - set(KEYS)
        or p.get("axis", "enu") not in ("enu", "wsu", "neu")
    ):
        return None
    kind = PROJECTIONS[p["proj"]]
    if p["proj"] == "utm":
        p |= {
            "lon_0": 6 * p["zone"] - 183,
            "k_0": 0.9996,
            "x_0": 500000,
            "y_0": 10000000 if "south" in p else 0,
        }
    if "k" in p:
        p["k_0"] = p["k"]
    if p["proj"] == "merc" and crs.to_epsg() == 3857 or "nadgrids" in p:
        kind = "webmerc"
    if kind == "omerc" and ("alpha" not in p or "lonc" not in p):
        return None
    if "no_uoff" in p:
        kind = "omerc_a"
    if kind == "stere" and abs(p.get("lat_0", 0)) != 90:  # only the polar aspect is implemented
        return None
    a, rf = ellipsoid(crs)
    if "R" in p:
        a, rf = number(p["R"]), "0"
    line = [str(write), kind, f"{a},{rf}"]
    base = crs.geodetic_crs.to_epsg()
    if base is None:
        base = 4326 if authority == "ESRI" and "4326" in str(crs.geodetic_crs.to_epsg(20)) else 0
    if base != 4326:
        line.append(f"on={base}")
    pm = crs.prime_meridian.longitude if crs.prime_meridian else 0
    if crs.prime_meridian and crs.prime_meridian.unit_name != "degree":
        pm *= crs.prime_meridian.unit_conversion_factor / 0.017453292519943295
    if pm:
        line.append(f"pm={number(pm)}")
    for k in KEYS:
        default = 1 if k == "k_0" else 0
        if k in p and (p[k] != default or k in ("lat_1", "gamma", "alpha")):
            line.append(f"{k}={number(p[k])}")
    unit = {a.unit_conversion_factor for a in crs.axis_info}
    if len(unit) != 1 or max(unit) > 2000:  # not lengths, or those of a grid of one institute
        return None
    unit = unit.pop()
    if unit != 1:
        line.append(f"unit={unit!r}")
    if p.get("axis") == "wsu":
        line.append("axis=wsu")
    return " ".join(line)


def main():
    """Prints the file."""
    lines = dict(geographic())
    left = 0
    for info in query_crs_info("EPSG", PJType.PROJECTED_CRS, allow_deprecated=True):
        line = projected("EPSG", info.code, info.code)
        if line is None:
            left += 1
        else:
            lines[int(info.code)] = line
    for code in sorted(ESRI):
        line = projected("ESRI", code, code)
        if line is not None:
            lines[code] = line
    for code in WEB_MERCATOR:
        lines[code] = projected("EPSG", 3857, code)
    version = pyproj.database.get_database_metadata("EPSG.VERSION")
    print(
        f"# By systems.py, with PROJ {pyproj.proj_version_str}, from the EPSG dataset {version}\n"
        "# (IOGP, https://epsg.org), beside some of ESRI's codes. "
        "Lengths are metres, angles degrees. See table.go."
    )
    for code in sorted(lines):
        print(lines[code])
    print(f"{len(lines)} lines, {left} projected CRSs of EPSG left out", file=sys.stderr)


main()
