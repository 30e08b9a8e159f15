"""`make interop-newest`: what the newest packages of the index write, and chaski does not read.

Makes a virtual environment below .interop/ for each group of packages, with the newest versions
that install together, which are not pinned. In each, the packages write files by every recipe
that they list: geozl's graphs for samples of each width, files of rumi-eo with each of geozl's
graphs, and GDAL's compressions of GeoTIFF. chaski reads each and compares. The summary names the
versions and what is not read. It ends with 1 if something that is read differs; what is refused
as `unsupported` is listed only, since new releases bring new codecs.

pip's own settings (an index, a cache, a proxy) apply. Needs Python 3.12 or newer.
"""

from __future__ import annotations

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
}
# What each group runs: it writes files to argv[1], and prints a line of JSON for each: its name,
# the recipe, and the SHA-256 of its samples.
RASTER = """
import hashlib, json, os, sys
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
    chaski = str(ROOT / "bin" / "chaski")
    run = [chaski, "frame", str(path)] if path.suffix == ".zl" else [chaski, "cat", str(path)]
    p = subprocess.run(run, capture_output=True, text=True)
    if p.returncode != 0:
        return "", p.stderr.strip()
    said = json.loads(p.stdout)
    return said["outputs"][0]["sha256"] if path.suffix == ".zl" else said["sha256"], ""


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
