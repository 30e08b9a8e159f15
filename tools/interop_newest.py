"""`make interop-newest`: what the newest packages of the index write, and chaski does not read.

Makes a virtual environment below .interop/ for each group of packages, with the newest versions
that install together, which are not pinned. In each, the packages write files by every recipe that
they list: geozl's graphs for samples of each width, files of rumi-eo with each of geozl's graphs,
GDAL's compressions of GeoTIFF, containers of tacotoolbox in each form and compression, of which
tacoreader has the samples, and arrays of tiledb with each of its filters. chaski reads each and
compares. taco-eo and cozip write TACO 3 in each form, zarr both versions with each codec, and
geopandas, pyogrio and pyarrow outlines in each format, whose masks are those of rasterio. One
table at the end has the versions, and how many files are read, refused and read wrongly; above it
is what is not read, and which packages the writers need that this script knows nothing of: a format
may have moved there. It ends with 1 if something that is read differs; what is refused as
`unsupported` is listed only, since new releases bring new codecs.

pip's own settings (an index, a cache, a proxy) apply. Needs Python 3.12 or newer.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
GROUPS = {
    "frames": ["openzl", "geozl", "numpy"],
    "rumi": ["rumi-eo"],
    "gdal": ["rasterio"],
    "taco3": ["taco-eo[writer]", "cozip"],
    "taco": ["tacotoolbox", "tacoreader", "duckdb<2"],  # tacoreader 2.4.21 fails with DuckDB 2
    "tiledb": ["tiledb", "numpy"],
    "vector": ["geopandas", "pyogrio", "pyarrow", "rasterio", "grpcio", "protobuf"],
    "zarr": ["zarr", "numcodecs"],
}
# Packages that writers need and that define no format which chaski reads: not listed as unknown.
GENERAL = set(
    "affine annotated-types attrs certifi click click-plugins cligj duckdb google-crc32c numpy "
    "packaging pandas pyarrow pydantic pyparsing pyproj shapely tqdm typing-extensions rasterio "
    "donfig msgspec fsspec requests rich pyyaml aiohttp cffi setuptools wheel pytz crc32c msgpack "
    "tzdata jinja2 obstore networkx scipy pillow geopandas matplotlib s3fs boto3 sympy".split()
)
# What each group runs: it writes files to argv[1], and prints a line of JSON for each: its name,
# the recipe, and the SHA-256 of its samples.
RASTER = """
import contextlib, hashlib, itertools, json, os, pathlib, shutil, sys
import numpy as np
rng = np.random.default_rng(1)
def raster(dtype, shape=(96, 80)):
    a = np.cumsum(rng.normal(0, 3, shape), -1) + 60
    return a.clip(0, 120).astype(dtype)
def say(name, recipe, a, error=""):
    sha = hashlib.sha256(np.ascontiguousarray(a).tobytes()).hexdigest()
    print(json.dumps({"file": name, "recipe": recipe, "sha256": sha, "error": error}))
"""
WRITERS = {
    "frames": """
import geozl
for dtype in "u1 i2 u2 u4 f4 u8 f8".split():
    for k, recipe in enumerate(geozl._2d._grid_names(None, np.dtype(dtype).itemsize)):
        a, name = raster(dtype), f"{dtype}-{k}.zl"
        try:
            frame = geozl.compress(a, graph=geozl.graph(a, recipe))
        except RuntimeError as e:  # it lists recipes that refuse samples of some widths
            say(name, f"{recipe} {dtype}", a, f"not written: {str(e).splitlines()[0]}")
            continue
        open(os.path.join(sys.argv[1], name), "wb").write(frame)
        say(name, f"{recipe} {dtype}", a)
""",
    "rumi": """
import datetime, geozl, rumi
for k, recipe in enumerate(geozl._2d._grid_names(None, 2)):
    a, name = raster("u2"), f"{k}.rumi"
    table = rumi.frames(a[None], "b (y h) (x w) -> y x b (h w)", 64)
    for f in table:
        f.compressed = geozl.compress(f.data, graph=geozl.graph(f.data, recipe))
    time = [datetime.date(2024, 5, 6)]
    rumi.write(os.path.join(sys.argv[1], name), table, bands=["B1"], time=time)
    say(name, recipe, a[None])
""",
    "gdal": """
import rasterio
methods = "NONE PACKBITS LZW DEFLATE ZSTD LZMA LERC LERC_DEFLATE LERC_ZSTD WEBP JPEG JXL".split()
for k, (method, dtype) in enumerate((m, d) for m in methods for d in ("u1", "u2", "f4")):
    a, name = raster(dtype, (3, 96, 80)), f"{k}.tif"
    path = os.path.join(sys.argv[1], name)
    more = {"WEBP_LOSSLESS": True} if method == "WEBP" else {}
    try:
        with rasterio.open(path, "w", driver="GTiff", count=3, height=96, width=80, dtype=a.dtype,
                           compress=method, **more) as d:
            d.write(a)
        with rasterio.open(path) as d:  # lossy methods: as GDAL reads it
            say(name, f"{method} {dtype}", d.read())
    except Exception as e:
        say(name, f"{method} {dtype}", a, f"not written: {e}")
""",
    "taco3": """
import cozip, pyarrow as pa, taco
from pydantic import BaseModel
class ML(BaseModel):
    cloud: float
    name: str | None = None
structures = [["a.bin"], ["a.bin", "b/c.bin"], ["a.bin", "t*[1,3].bin", "b/c/d.bin"]]
forms = {"zip": {}, "folder": {}, "parts": {"partition_size": 250}}
for k, (paths, form) in enumerate(itertools.product(structures, forms)):
    contract = taco.Contract(structure=paths, metadata=[taco.Level("sample", ml=ML)])
    about = taco.Collection(contract=contract, id="x", description="x", licenses=["CC0-1.0"],
                            providers=[{"name": "x"}])
    folder, shas = pathlib.Path(sys.argv[1], str(k)), []
    folder.mkdir()
    name, recipe = f"{k}/{'ds' if form == 'folder' else 'ds.zip'}", f"{form} of {paths}"
    try:
        with taco.open_writer(about, folder.parent / name, **forms[form]) as w:
            for i in range(3):
                assets = []
                for path in paths:
                    for one in {path.replace("*[1,3]", str(n)) for n in range(1 + i)}:
                        data = rng.bytes(100 + len(assets))
                        shas.append(hashlib.sha256(data).hexdigest())
                        assets.append(taco.Asset(data, path=one))
                about = taco.Metadata(ml=ML(cloud=i))
                w.add(taco.Sample(id=f"s{i}", assets=assets, metadata=about))
            w.run()
        if form == "parts":
            name = f"{k}/.tacocat"
        say(name, recipe, np.frombuffer("".join(sorted(shas)).encode(), "u1"))
    except Exception as e:
        say(name, recipe, np.zeros(1), f"not written: {e}")
for k in range(2):
    name, folder = f"flat{k}.zip", pathlib.Path(sys.argv[1], f"flat{k}")
    folder.mkdir()
    shas = []
    for i in range(3):
        data = rng.bytes(100 + i)
        (folder / f"f{i}.bin").write_bytes(data)
        shas.append(hashlib.sha256(data).hexdigest())
    try:
        files = {f"f{i}.bin": str(folder / f"f{i}.bin") for i in range(3)}
        more = {"n": list(range(3))} if k else {}
        table = pa.table({"name": list(files), "path": list(files.values()), **more})
        cozip.create(str(folder.parent / name), table)
        joined = np.frombuffer("".join(sorted(shas)).encode(), "u1")
        say(name, f"Flat with {len(more)} columns", joined)
    except Exception as e:
        say(name, "Flat", np.zeros(1), f"not written: {e}")
""",
    "zarr": """
import numcodecs, zarr
from zarr import codecs
dtypes = "i1 u1 i2 u2 i4 u4 i8 u8 f2 f4 f8 bool".split()
new = {"zstd": codecs.ZstdCodec(), "gzip": codecs.GzipCodec(), "blosc": codecs.BloscCodec()}
old = {n: getattr(numcodecs, n)() for n in "Zstd GZip Blosc Zlib BZ2 LZ4 LZMA".split()}
new["none"] = old["none"] = None
ways = [(2, n, c, None) for n, c in old.items()]
ways += [(3, n, c, s) for n, c in new.items() for s in (None, (3, 64, 64))]
for k, ((version, codec, compressor, shards), dtype) in enumerate(itertools.product(ways, dtypes)):
    name, recipe = f"{k}.zarr", f"version {version} {codec} {'in shards ' if shards else ''}{dtype}"
    a = raster("u1", (3, 96, 80)).astype(dtype)
    try:
        dims = ["b", "y", "x"]
        more = {"dimension_names": dims}
        if version == 2:
            more = {"attributes": {"_ARRAY_DIMENSIONS": dims}}
        z = zarr.create_array(os.path.join(sys.argv[1], name), shape=a.shape, chunks=(3, 32, 32),
                              dtype=a.dtype, zarr_format=version, compressors=compressor,
                              shards=shards, **more)
        z[:] = a
        say(name, recipe, a)
    except Exception as e:
        say(name, recipe, a, f"not written: {e}")
""",
    "taco": """
import pyarrow as pa, tacoreader, tacotoolbox
from tacotoolbox.sample.datamodel import Sample
from tacotoolbox.taco.datamodel import Provider, Taco
from tacotoolbox.tortilla.datamodel import Tortilla
def sample(name, path, n):
    s = Sample(id=name, path=path)
    s.extend_with(pa.table({"n": [n], "text": ["x" * n]}))
    return s
def tacos():
    leaves = lambda: [sample(f"s{i}", rng.bytes(100 + i), i) for i in range(3)]
    folders = lambda: [sample(f"d{i}", Tortilla(samples=leaves()), i) for i in (1, 2)]
    for make in (leaves, folders):
        yield Taco(tortilla=Tortilla(samples=make()), id="x", dataset_version="1", description="x",
                   licenses=["CC0"], providers=[Provider(name="x")], tasks=["classification"],
                   taco_version="2.0.0")
def contents(d):  # as tacoreader finds them
    for i in range(len(d)):
        found = d.read(i)
        if not isinstance(found, str):
            yield from contents(found)
        elif found.startswith("/vsisubfile/"):
            span, path = found[len("/vsisubfile/"):].split(",", 1)
            at, n = map(int, span.split("_"))
            yield pathlib.Path(path).read_bytes()[at : at + n]
        else:
            yield pathlib.Path(found).read_bytes()
forms = [("zip", None), ("zip", "1KB"), ("folder", None)]
level = {"gzip": 5, "brotli": 5, "zstd": 5}
codecs = ["none", "snappy", "gzip", "brotli", "lz4", "zstd"]
for k, ((form, size), codec, page) in enumerate(itertools.product(forms, codecs, ["1.0", "2.0"])):
    for j, taco in enumerate(tacos()):
        folder = pathlib.Path(sys.argv[1], f"{k}-{j}")
        name, recipe = f"{folder.name}/ds", f"{form} {size} {codec} pages {page} levels {j + 1}"
        name += "" if form == "folder" else ".tacozip"
        folder.mkdir()
        try:
            with contextlib.redirect_stdout(sys.stderr):
                made = tacotoolbox.create(taco, folder.parent / name, form, split_size=size,
                                          compression=codec, data_page_version=page,
                                          compression_level=level.get(codec))
            whole = folder / ".tacocat" if (folder / ".tacocat").exists() else pathlib.Path(made[0])
            name = str(whole.relative_to(folder.parent))
            found = contents(tacoreader.load(str(whole)).data)
            shas = [hashlib.sha256(b).hexdigest() for b in found]
            say(name, recipe, np.frombuffer("".join(sorted(shas)).encode(), "u1"))
        except Exception as e:
            say(name, recipe, np.zeros(1), f"not written: {e}")
sys.stdout.flush()
os._exit(0)  # threads of DuckDB that still run would abort the process
""",
    "vector": """
import geopandas, pyarrow as pa, pyarrow.parquet as pq, rasterio.features, shapely
from shapely.geometry import MultiPolygon, Polygon
place = rasterio.transform.from_origin(500000, 8000000, 10, 10)
with rasterio.open(os.path.join(sys.argv[1], "scene.tif"), "w", driver="GTiff", count=1, height=96,
                   width=80, dtype="uint8", crs="EPSG:32718", transform=place) as d:
    d.write(raster("u1", (1, 96, 80)))
def outline(k, turn):  # in a square of 160 m of its own, with a hole
    x, y, angle = 500080 + 160 * (k % 5), 7999920 - 160 * (k // 5), np.arange(0, 6.2, 0.7) + turn
    ring = lambda r: [(x + r * np.cos(a), y + r * np.sin(a)) for a in angle]
    return Polygon(ring(75.3), [ring(30.1)])
outlines = [outline(k, rng.random()) for k in range(20)]
outlines = [*outlines[:16], MultiPolygon(outlines[16:18]), *outlines[18:]]
values = [int(v) for v in rng.integers(1, 200, len(outlines))]
table = geopandas.GeoDataFrame({"value": values}, geometry=outlines, crs="EPSG:32718")
mask = rasterio.features.rasterize(zip(outlines, values), (96, 80), transform=place, dtype="int64")
class WKB(pa.ExtensionType):  # which pyarrow writes as the type GEOMETRY, without metadata "geo"
    def __init__(self):
        super().__init__(pa.binary(), "geoarrow.wkb")
    def __arrow_ext_serialize__(self):
        return json.dumps({"crs": "EPSG:32718", "crs_type": "authority_code"}).encode()
    @classmethod
    def __arrow_ext_deserialize__(cls, storage, serialized):
        return cls()
def typed(path):
    column = pa.ExtensionArray.from_storage(WKB(), pa.array(shapely.to_wkb(outlines), pa.binary()))
    pq.write_table(pa.table({"value": values, "outline": column}), path, store_schema=False)
ways = {"pyarrow, the type GEOMETRY": ("parquet", typed)}
def parquet(**options):
    return "parquet", lambda path: table.to_parquet(path, **options)
for version, codec in itertools.product(["0.4.0", "1.0.0", "1.1.0", None],
                                        ["snappy", "zstd", "gzip", "brotli", "lz4", None]):
    ways[f"GeoParquet {version} {codec}"] = parquet(schema_version=version, compression=codec)
ways["GeoParquet with boxes"] = parquet(write_covering_bbox=True)
ways["GeoParquet as geoarrow"] = parquet(geometry_encoding="geoarrow")
ways["GeoJSON"] = "geojson", lambda path: table.to_file(
    path, driver="GeoJSON", engine="pyogrio", COORDINATE_PRECISION=15)
for k, (recipe, (suffix, write)) in enumerate(ways.items()):
    name = f"{k}.{suffix}"
    try:
        write(os.path.join(sys.argv[1], name))
        say(name, recipe, mask)
    except Exception as e:
        say(name, recipe, mask, f"not written: {e}")
""",
    "tiledb": """
import tiledb
shape = (42, 30)
rising = (np.arange(42) // 6 + np.arange(42) % 6)[:, None] + np.arange(30) // 6  # within each tile
dims = [tiledb.Dim(f"d{i}", (0, n - 1), tile=6, dtype="i4") for i, n in enumerate(shape)]
filters = [getattr(tiledb, n) for n in sorted(dir(tiledb)) if n.endswith("Filter")]
filters = [f for f in filters if f not in (tiledb.Filter, tiledb.CompressionFilter)]
webp = {"input_format": tiledb.libtiledb.WebpInputFormat(1), "lossless": True}  # RGB
scale = {"factor": 0.5, "offset": 1.0, "bytewidth": 4}
needed = {tiledb.WebpFilter: webp, tiledb.FloatScaleFilter: scale}
types = "i1 u1 i2 u2 i4 u4 i8 u8 f4 f8 M8[s] ?".split() + ["bytes", "ascii", "U0"]
for k, (f, dtype, sparse) in enumerate(itertools.product([None, *filters], types, (False, True))):
    name = f"{k}.tdb"
    path, text = os.path.join(sys.argv[1], name), dtype in ("bytes", "ascii", "U0")
    recipe = f"{f.__name__ if f else 'no filter'} {dtype} {'sparse' if sparse else 'dense'}"
    a = rng.integers(0, 2 if dtype == "?" else 100, shape)
    a = rising if f is tiledb.PositiveDeltaFilter else a
    words = [str(v) for v in a.flat]
    text = {"U0": "U"}.get(dtype, "S") if text else ""
    a = np.array(words, text).reshape(shape) if text else a.astype(dtype)
    flat = np.frombuffer("".join(words).encode(), "u1") if text else a
    try:
        chain = tiledb.FilterList([f(**needed.get(f, {}))] if f else [])
        attr = tiledb.Attr("a", dtype=dtype, var=True if text else None, filters=chain)
        schema = tiledb.ArraySchema(tiledb.Domain(*dims), [attr], sparse=sparse)
        tiledb.Array.create(path, schema)
        at = tuple(v.ravel() for v in np.indices(shape)) if sparse else slice(None)
        with tiledb.open(path, "w") as A:
            A[at] = a.ravel() if sparse else a.astype(object) if text else a
        if f is tiledb.FloatScaleFilter:  # it loses digits: as tiledb reads it
            with tiledb.open(path) as A:
                flat = A.query(order="C")[:]["a"]
        say(name, recipe, flat)
    except Exception as e:
        say(name, recipe, flat, f"not written: {e}")
        shutil.rmtree(path, ignore_errors=True)
""",
}


def environment(name: str, packages: list[str]) -> str:
    """Makes an environment with the newest packages, and returns its interpreter."""
    folder = ROOT / ".interop" / f"newest-{name}"
    subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True)
    python = str(folder / "bin" / "python")
    install = [python, "-m", "pip", "install", "--disable-pip-version-check", "--quiet"]
    subprocess.run([*install, "--upgrade", *packages], check=True)
    return python


# Prints the version of each package named in argv, and the names of those that it needs.
NEEDS = """
import importlib.metadata, json, re, sys
found = {}
for name in sys.argv[1:]:
    d = importlib.metadata.distribution(name)
    needs = [r for r in d.requires or [] if "extra ==" not in r]
    needs = {re.match(r"[A-Za-z0-9._-]+", r)[0].lower().replace("_", "-") for r in needs}
    found[name] = [d.version, sorted(needs)]
print(json.dumps(found))
"""


def versions(python: str, packages: list[str]) -> tuple[str, list[str]]:
    """The versions of packages, and the packages that they need and this script does not know."""
    names = [re.match(r"[A-Za-z0-9._-]+", p)[0] for p in packages]
    run = [python, "-c", NEEDS, *(n for n in names if n != "numpy")]
    found = json.loads(subprocess.run(run, check=True, capture_output=True, text=True).stdout)
    known = GENERAL | {re.match(r"[A-Za-z0-9._-]+", p)[0] for g in GROUPS.values() for p in g}
    unknown = [f"{n} needs {m}" for n, (_, needs) in found.items() for m in needs if m not in known]
    return ", ".join(f"{n} {version}" for n, (version, _) in found.items()), unknown


# Prints the SHA-256 of the mask of the outlines in argv[1] on the raster beside it.
MASK = """
import hashlib, pathlib, sys
import chaski
path = pathlib.Path(sys.argv[1])
fields = {"scene": chaski.Field(), "mask": chaski.Vector(path, column="value", dtype="int64")}
try:
    with chaski.load(path.parent / "scene.tif", fields=fields, batch_size=1) as loader:
        mask = next(iter(loader))["mask"]
except chaski.Error as e:
    sys.exit(str(e).splitlines()[0])
print(hashlib.sha256(mask[0].tobytes()).hexdigest())
"""


def read_mask(path: Path, python: str) -> tuple[str, str]:
    """The SHA-256 of the mask that chaski makes of outlines, or why it does not."""
    more = {"PYTHONPATH": str(ROOT / "python/src"), "CHASKI_BIN": str(ROOT / "bin/chaski")}
    run = [python, "-c", MASK, str(path)]
    p = subprocess.run(run, capture_output=True, text=True, env={**os.environ, **more})
    return p.stdout.strip(), p.stderr.strip()


def read(path: Path) -> tuple[str, str]:
    """The SHA-256 of the samples that chaski reads from a file, or why it does not."""
    leaves = ["ls", "--leaves", "--sha256", "--format", "json"]
    ways = {
        ".zl": ["frame"],
        ".tdb": ["array"],
        ".tif": ["cat"],
        ".rumi": ["cat"],
        ".zarr": ["cat"],
    }
    run = [str(ROOT / "bin" / "chaski"), *ways.get(path.suffix, leaves), str(path)]
    p = subprocess.run(run, capture_output=True, text=True)
    if p.returncode != 0:
        return "", p.stderr.strip()
    if "--leaves" in run:
        shas = sorted(json.loads(line)["sha256"] for line in p.stdout.splitlines())
        return hashlib.sha256("".join(shas).encode()).hexdigest(), ""
    said = json.loads(p.stdout)
    if path.suffix == ".tdb":
        said = said["attrs"]["a"]
    said = said["outputs"][0] if path.suffix == ".zl" else said
    return said.get("data_sha256") or said["sha256"], ""


def group(name: str) -> tuple[str, dict[str, int]]:
    """Writes and reads the files of a group. Returns its versions, and counts of results."""
    python = environment(name, GROUPS[name])
    with tempfile.TemporaryDirectory() as folder:
        run = [python, "-c", RASTER + WRITERS[name], folder]
        out = subprocess.run(run, capture_output=True, text=True)
        if out.returncode != 0:
            print(f"{name}: the writer failed\n{out.stderr}")
            return "the writer failed", {"wrong": 1}
        rows = [json.loads(line) for line in out.stdout.splitlines()]
        counts = {"read": 0, "not written": 0, "not read": 0, "wrong": 0}
        lines = []
        for row in rows:
            path, sha, why = Path(folder) / row["file"], "", row["error"]
            if not row["error"]:
                sha, why = read_mask(path, python) if name == "vector" else read(path)
            refused = why.endswith(": unsupported") and not row["error"]
            what = "read" if sha == row["sha256"] else "not read" if refused else "wrong"
            what = "not written" if row["error"] else what
            counts[what] += 1
            if what in ("not read", "wrong"):
                lines.append(f"  {what}: {row['recipe']}: {why or 'other samples'}")
    found, unknown = versions(python, GROUPS[name])
    print("\n".join([f"{name}:", *lines, *(f"  {u}, which is not looked at" for u in unknown)]))
    return found, counts


def main() -> int:
    """Runs the groups that are named, or all."""
    results = {name: group(name) for name in sys.argv[1:] or GROUPS}
    columns = ["read", "not read", "wrong", "not written"]
    print(f"\n{'group':8}" + "".join(f"{c:>12}" for c in columns) + "  newest versions")
    for name, (found, counts) in results.items():
        print(f"{name:8}" + "".join(f"{counts.get(c, 0):12}" for c in columns) + f"  {found}")
    wrong = sum(counts["wrong"] for _, counts in results.values())
    print("PASSED" if not wrong else f"FAILED: {wrong} files are read wrongly")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
