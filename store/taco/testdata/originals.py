"""Random containers by the original writers, and what is in them: for the test of the same name.

    originals.py FOLDER SEED COUNT      a line of JSON for each container

TACO 2 is written by tacotoolbox (ZIP, FOLDER, and several ZIPs with their .tacocat) and read by
tacoreader; Tortillas are written by pytortilla, nested and in parts. A line has "paths" (what to
open together), "leaves" (path, size and SHA-256 of what was put in), "levels" (their rows, by
pyarrow; of Tortillas level 0), and of TACO 2 "reads" (ids or positions, and the byte range or the
file that the reader gives) and "times" (level, range, and the ids that it finds). What a writer or
the reader refuses is left out.
"""

import contextlib
import datetime as dt
import decimal
import hashlib
import io
import itertools
import json
import logging
import math
import os
import pathlib
import random
import shutil
import struct
import sys
import warnings

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytortilla
import tacoreader
import tacotoolbox
from pytortilla.datamodel.main import STAC, Samples
from pytortilla.datamodel.main import Sample as Row
from tacoreader.storage.base import TacoBackend
from tacotoolbox.sample.datamodel import Sample
from tacotoolbox.taco.datamodel import Provider, Taco
from tacotoolbox.tortilla.datamodel import Tortilla

# tacoreader asks DuckDB's server for an extension for geometries with each container, whose types no column has here.
TacoBackend._setup_duckdb_connection = lambda _: duckdb.connect(":memory:", config={"threads": 1})
UTC = dt.timezone.utc
IDS = ["a b", "x.tif", "ñandú", "日本", "a#b", "50%", "%20", "a..b", ".hid", "q?x=1", "it's", 'a"b']
IDS += ["[1]", "-d", "e\u0301", "a", "A", "😀", "new\nline", "1"]
OLD_IDS = [*IDS, "a/b", "a/b/c", "a:b", "x::1", "/lead", "tail/", "..", "a\\b", " "]
NAMES = ["f", "Col", "ns:f", "select", "ns:país", "order", "l0", "data"]
TYPES = [
    *map(
        pa.type_for_alias, "int8 int16 int32 int64 uint8 uint16 uint32 uint64 float double".split()
    ),
    *map(pa.type_for_alias, "bool string large_string binary null date32".split()),
    *map(pa.timestamp, ["s", "ms", "us", "ns"]),
    *[
        pa.timestamp("us", "UTC"),
        pa.timestamp("ns", "America/Lima"),
        pa.time32("s"),
        pa.time64("us"),
    ],
    *[
        pa.binary(7),
        pa.decimal128(5, 2),
        pa.decimal128(38, 10),
        pa.dictionary(pa.int8(), pa.string()),
    ],
    *[pa.list_(pa.int64()), pa.list_(pa.string()), pa.large_list(pa.bool_())],
    *[pa.list_(pa.list_(pa.int16())), pa.list_(pa.int32(), 3)],
    *[pa.struct([("a", pa.int64()), ("b", pa.list_(pa.string()))])],
    *[pa.list_(pa.struct([("k", pa.float64())]))],
]


def value(rng, t, null):
    """A value of a type."""
    if rng.random() < null or pa.types.is_null(t):
        return None
    if pa.types.is_dictionary(t):
        return value(rng, t.value_type, 0)
    if pa.types.is_integer(t):
        top = 1 << t.bit_width - pa.types.is_signed_integer(t)
        return rng.choice(
            [0, 1, top - 1, -top if pa.types.is_signed_integer(t) else 7, rng.randrange(top)]
        )
    if pa.types.is_floating(t):
        return rng.choice([0.0, -0.0, math.nan, math.inf, -math.inf, 0.5, 1024.0])
    if pa.types.is_boolean(t):
        return rng.random() < 0.5
    if pa.types.is_fixed_size_binary(t) or pa.types.is_binary(t):
        return rng.randbytes(7 if pa.types.is_fixed_size_binary(t) else rng.choice([0, 5]))
    if pa.types.is_decimal(t):
        return decimal.Decimal(rng.randrange(-99999, 99999)).scaleb(-t.scale)
    if pa.types.is_struct(t):
        return {f.name: value(rng, f.type, 0.2) for f in t}
    if pa.types.is_nested(t):
        n = t.list_size if pa.types.is_fixed_size_list(t) else rng.choice([0, 1, 3])
        return [value(rng, t.value_type, 0.2) for _ in range(n)]
    day = dt.datetime(
        rng.choice([1969, 1999, 2020]),
        rng.randint(1, 12),
        rng.randint(1, 28),
        rng.randrange(24),
        rng.randrange(60),
        tzinfo=UTC,
    )
    if pa.types.is_date(t):
        return day.date()
    if pa.types.is_time(t):
        return day.time()
    if pa.types.is_timestamp(t):
        return day if t.tz else day.replace(tzinfo=None)
    return rng.choice(["", "a", "ñ", "train", "x" * 40, "nul\0"])


def ids(rng, n, words):
    """Different ids."""
    found = []
    while len(found) < n:
        word = rng.choice(
            [rng.choice(words), rng.choice(words) + str(len(found)), f"roi_{len(found):03d}"]
        )
        if word not in found:
            found.append(word)
    return found


def plain(v):
    """A value as chaski's JSON has it."""
    if hasattr(v, "dtype"):
        v = v.item()
    if isinstance(v, float) and not math.isfinite(v):
        return "NaN" if math.isnan(v) else "Infinity" if v > 0 else "-Infinity"
    if isinstance(v, bytes):
        return {"hex": v.hex()}
    if isinstance(v, dict):
        return {k: plain(x) for k, x in v.items()}
    if isinstance(v, list):
        return [plain(x) for x in v]
    if isinstance(v, dt.datetime) and v.tzinfo:
        v = v.astimezone(UTC)
    if isinstance(v, decimal.Decimal):
        return f"{v:f}"
    if v is None or isinstance(v, (bool, int, float, str)):
        return v
    return v.isoformat() if hasattr(v, "isoformat") else str(v)


def rows(data):
    """The rows of a Parquet object."""
    table = pq.read_table(io.BytesIO(data))
    # to_pylist needs pandas for nanoseconds
    fine = [pa.types.is_timestamp(f.type) and f.type.unit == "ns" for f in table.schema]
    columns = [
        c.cast(pa.timestamp("us", c.type.tz)) if ns else c
        for c, ns in zip(table.columns, fine, strict=True)
    ]
    return [plain(r) for r in pa.table(columns, names=table.column_names).to_pylist()]


def levels(path):
    """The rows of the levels of a TACO 2."""
    if path.is_dir():
        folder = path / "METADATA" if (path / "METADATA").is_dir() else path
        return [rows(p.read_bytes()) for p in sorted(folder.glob("level*.parquet"))]
    data = path.read_bytes()
    spans = [struct.unpack_from("<QQ", data, 45 + 16 * i) for i in range(data[41] - 1)]
    return [rows(data[o : o + n]) for o, n in spans]


class Maker:
    """Makes containers of one seed."""

    def __init__(self, rng, folder):
        """Chooses the columns of each level."""
        self.rng, self.folder, self.leaves, self.files = rng, folder, [], itertools.count()
        self.fields = [
            {
                f"{rng.choice(NAMES)}{k}": (rng.choice(TYPES), rng.choice([0, 0.3]))
                for k in range(rng.randrange(6))
            }
            for _ in range(6)
        ]
        self.timed = [rng.random() < 0.4 for _ in range(6)]

    def content(self, path):
        """Bytes of a sample."""
        data = self.rng.randbytes(self.rng.choice([0, 1, 50, 700]))
        self.leaves.append([path, len(data), hashlib.sha256(data).hexdigest()])
        return data

    def shape(self, depth):
        """Ids below a folder, and what lies below those."""
        names = ids(self.rng, self.rng.randint(1, 3), IDS)
        below = [
            self.shape(depth - 1) if depth and (n == names[-1] or self.rng.random() < 0.4) else None
            for n in names
        ]
        return list(zip(names, below, strict=True))

    def tortilla(self, shape, level=0, above=""):
        """The samples of a shape."""
        samples = []
        for name, below in shape:
            path = (
                self.content(above + name)
                if below is None
                else self.tortilla(below, level + 1, f"{above}{name}/")
            )
            s = Sample(id=name, path=path)
            columns = [pa.field(n, t) for n, (t, _) in self.fields[level].items()]
            values = [
                pa.array([value(self.rng, t, null)], type=t)
                for t, null in self.fields[level].values()
            ]
            if self.timed[level]:
                columns += [
                    pa.field("stac:time_start", pa.timestamp("us")),
                    pa.field("stac:centroid", pa.binary()),
                ]
                point = struct.pack(
                    "<BIdd", 1, 1, self.rng.uniform(-180, 180), self.rng.uniform(-90, 90)
                )
                values += [
                    pa.array([value(self.rng, pa.timestamp("us"), 0.1)], pa.timestamp("us")),
                    pa.array([point], pa.binary()),
                ]
            if columns:
                s.extend_with(pa.table(values, schema=pa.schema(columns)))
            samples.append(s)
        return Tortilla(samples=samples)

    def taco(self):
        """Writes a TACO 2, and tells what is in it."""
        rng = self.rng
        depth = rng.choice([0, 1, 1, 2, 3])
        below = self.shape(depth - 1) if depth else None
        taco = Taco(
            tortilla=self.tortilla([(n, below) for n in ids(rng, rng.choice([1, 3, 6]), IDS)]),
            id="wild",
            dataset_version="1",
            description="é",
            licenses=["CC0"],
            providers=[Provider(name="x")],
            tasks=["classification"],
            taco_version="2.0.0",
        )
        codec = rng.choice(["none", "snappy", "gzip", "brotli", "lz4", "zstd"])
        level = 5 if codec in ("gzip", "brotli", "zstd") else None
        form = rng.choice(["zip", "folder", "split"])
        made = tacotoolbox.create(
            taco,
            self.folder / ("ds" if form == "folder" else "ds.tacozip"),
            output_format="folder" if form == "folder" else "zip",
            split_size="600B" if form == "split" else None,
            compression=codec,
            compression_level=level,
            row_group_size=rng.choice([1, 2, 1000]),
            data_page_version=rng.choice(["1.0", "2.0"]),
            use_dictionary=rng.random() < 0.5,
            write_page_index=rng.random() < 0.5,
        )
        paths = [pathlib.Path(p) for p in made]
        whole = self.folder / ".tacocat" if (self.folder / ".tacocat").exists() else paths[0]
        out = {
            "paths": [str(whole)],
            "leaves": self.leaves,
            "levels": levels(whole),
            "reads": [],
            "times": [],
        }
        dataset = tacoreader.load(str(whole))
        for _ in range(5):
            at, keys = dataset.data, []
            while not isinstance(at, str):
                i = rng.randrange(len(at))
                name = at._data.column("id")[i].as_py()
                at = at.read(name)
                keys.append(rng.choice([name, f"#{i}"]))
            out["reads"].append(
                [keys, at.split(",")[0] if at.startswith("/vsisubfile/") else os.path.realpath(at)]
            )
        for k, timed in enumerate(self.timed[: depth + 1]):
            start = dt.date(rng.choice([1960, 1999, 2020]), rng.randint(1, 12), 1)
            span = f"{start}/{start + dt.timedelta(days=rng.choice([30, 4000, 20000]))}"
            if timed:
                found = dataset.filter_datetime(span, level=k).data._data.column("id").to_pylist()
                out["times"].append([k, span, sorted(found)])
        return out

    def nested(self, file, depth, above, size):
        """Writes a Tortilla, and returns its files."""
        rng, samples = self.rng, []
        stac = rng.random() < 0.5
        fields = rng.sample(["int", "float", "text", "list"], rng.randrange(5))
        for i, name in enumerate(ids(rng, rng.choice([2, 3, 6]), OLD_IDS)):
            more = {
                "int": rng.randrange(1 << 40),
                "float": rng.choice([math.nan, 0.5]),
                "text": rng.choice(["", "ñ"]),
                "list": [1] * rng.randrange(3),
            }
            more = {f"my:{k}": more[k] for k in fields}
            if stac:
                more["stac_data"] = STAC(
                    crs="EPSG:4326",
                    raster_shape=(2, 3),
                    geotransform=(rng.randrange(99), 1, 0, 5, 0, -1),
                    time_start=10**9 + i,
                )
            path, kind = self.folder / f"source{next(self.files)}", "BYTES"
            if depth and rng.random() < 0.5:
                kind = "TORTILLA"
                self.nested(path, depth - 1, f"{above}{name}/", "1GB")
            else:
                path.write_bytes(self.content(above + name))
            samples.append(
                Row(
                    id=name,
                    path=path,
                    file_format=kind,
                    data_split=rng.choice([None, "train", "test"]),
                    **more,
                )
            )
        return pytortilla.create(
            Samples(samples=samples), file, nworkers=1, chunk_size=size, quiet=True
        )

    def old(self):
        """Writes a Tortilla, and tells what is in it."""
        file = self.folder / "data.tortilla"
        made = self.nested(file, self.rng.choice([0, 1, 2]), "", self.rng.choice(["1GB", "2KB"]))
        table = []
        for part in made if isinstance(made, list) else [made]:
            data = pathlib.Path(part).read_bytes()
            o, n = struct.unpack_from("<QQ", data, 2)
            table += rows(data[o : o + n])
        return {
            "paths": [str(file)],
            "leaves": self.leaves,
            "levels": [table],
            "reads": [],
            "times": [],
        }


def main():
    """Prints what was made."""
    warnings.filterwarnings("ignore")
    logging.disable(logging.CRITICAL)
    folder, seed, count = pathlib.Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    for i in range(count):
        rng = random.Random(seed * 100003 + i)
        inside = folder / f"{rng.choice(['d', 'é x', 'x#y', 'a%20b'])}{i}"
        inside.mkdir()
        maker = Maker(rng, inside)
        try:
            with contextlib.redirect_stdout(sys.stderr):
                found = maker.old() if i % 3 == 2 else maker.taco()
        except Exception as e:
            shutil.rmtree(inside)
            print(f"{i}: {type(e).__name__}: {str(e)[:200]}", file=sys.stderr)
            continue
        print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
    os._exit(0)  # threads of DuckDB that still run would abort the process
