"""`make interop-newest`: what the newest packages of the index write, and chaski does not read.

Makes a virtual environment below .interop/ for each group of packages, with the newest versions
that install together, which are not pinned. In each, the packages write files by every recipe that
they list: geozl's graphs for samples of each width, files of rumi-eo with each of geozl's graphs,
GDAL's compressions of GeoTIFF, containers of tacotoolbox in each form and compression, of which
tacoreader has the samples, and arrays of tiledb with each of its filters. chaski reads each and
compares. The summary names the versions and what is not read. It ends with 1 if something that is
read differs; what is refused as `unsupported` is listed only, since new releases bring new codecs.

pip's own settings (an index, a cache, a proxy) apply. Needs Python 3.12 or newer.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
GROUPS = {
    "frames": ["openzl", "geozl", "numpy"],
    "rumi": ["rumi-eo"],
    "gdal": ["rasterio"],
    "taco": ["tacotoolbox", "tacoreader", "duckdb<2"],  # tacoreader 2.4.21 fails with DuckDB 2
    "tiledb": ["tiledb", "numpy"],
}
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


def versions(python: str) -> str:
    """The packages of an environment, as a line."""
    run = [python, "-m", "pip", "list", "--disable-pip-version-check", "--format=json"]
    rows = json.loads(subprocess.run(run, check=True, capture_output=True, text=True).stdout)
    wanted = set(sum(GROUPS.values(), [])) - {"numpy"}
    return ", ".join(f"{r['name']} {r['version']}" for r in rows if r["name"] in wanted)


def read(path: Path) -> tuple[str, str]:
    """The SHA-256 of the samples that chaski reads from a file, or why it does not."""
    leaves = ["ls", "--leaves", "--sha256", "--format", "json"]
    ways = {".zl": ["frame"], ".tdb": ["array"], ".tif": ["cat"], ".rumi": ["cat"]}
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


def group(name: str) -> int:
    """Writes and reads the files of a group, and returns how many are wrong."""
    python = environment(name, GROUPS[name])
    with tempfile.TemporaryDirectory() as folder:
        run = [python, "-c", RASTER + WRITERS[name], folder]
        out = subprocess.run(run, capture_output=True, text=True)
        if out.returncode != 0:
            print(f"{name}: the writer failed\n{out.stderr}")
            return 1
        rows = [json.loads(line) for line in out.stdout.splitlines()]
        counts = {"read": 0, "not written": 0, "not read": 0, "wrong": 0}
        lines = []
        for row in rows:
            sha, why = ("", row["error"]) if row["error"] else read(Path(folder) / row["file"])
            refused = why.endswith(": unsupported") and not row["error"]
            what = "read" if sha == row["sha256"] else "not read" if refused else "wrong"
            what = "not written" if row["error"] else what
            counts[what] += 1
            if what in ("not read", "wrong"):
                lines.append(f"  {what}: {row['recipe']}: {why or 'other samples'}")
    print(f"{name}: {versions(python)}")
    print("\n".join(["  " + ", ".join(f"{n} {what}" for what, n in counts.items()), *lines]))
    return counts["wrong"]


def main() -> int:
    """Runs the groups that are named, or all."""
    wrong = sum([group(name) for name in sys.argv[1:] or GROUPS])
    print("PASSED" if not wrong else f"FAILED: {wrong} files are read wrongly")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
