"""Random containers of TACO 3 by the original writer, and what its reader says of containers.

    taco3.py write FOLDER SEED COUNT      a line of JSON for each container, as read has it
    taco3.py read PATH...                 a line of JSON for each container

A line has "path", "issues" (what taco.validate finds), "levels" (the type and the values of each
column of each table, by their names), "columns" of the wide table, and "files" (the SHA-256 of each
file by the id of its sample and its path).
"""

import hashlib
import json
import os
import pathlib
import random
import re
import sys
import warnings
from typing import Annotated, Any

import duckdb_extension_icu
import pyarrow as pa
import taco
from originals import TYPES, plain, value
from pydantic import create_model
from taco.contract.types import type_name
from taco.reader import engine

import duckdb

IDS = [
    "a b",
    "ñandú",
    "日本",
    "a#b",
    "../up",
    "/abs",
    "q?x=1",
    "it's",
    'a"b',
    "A",
    "a",
    "new\nline",
]
# Of whole seconds, which Parquet lacks, the writer stores milliseconds and declares seconds.
SECONDS = [pa.timestamp("s"), pa.time32("s")]
SAFE = [
    t
    for t in TYPES
    if not pa.types.is_dictionary(t) and not pa.types.is_null(t) and t not in SECONDS
]
PATHS = ["image.tif", "mask.tif", "before/B02.tif", "before/B03.tif", "aux/deep/x.json", "aux/y"]
SEQUENCES = ["t*[1,3].tif", "before/s*[1,2]", "aux/deep/n*[2,12]_v.bin"]


def model(rng, name):
    """A model of random columns, and what makes values of it."""
    fields, makers = {}, {}
    for k in range(rng.randint(1, 4)):
        t, null = rng.choice(SAFE), rng.random() < 0.6
        column = rng.choice(["f", "Col", "país", "x y", "n"]) + str(k)
        kind = Annotated[Any, t]
        fields[column] = (kind | None if null else kind, None if null else ...)
        makers[column] = (t, 0.3 if null else 0)
    made = create_model(name, **fields)
    return made, lambda: made(**{c: value(rng, t, p) for c, (t, p) in makers.items()})


def contract(rng):
    """A structure, and for each level a maker of values, or None."""
    paths = rng.sample(PATHS, rng.randint(1, 4)) + rng.sample(SEQUENCES, rng.choice([0, 0, 1, 2]))
    rng.shuffle(paths)
    folders = {"/".join(p.split("/")[:k]) for p in paths for k in range(len(p.split("/")))}
    levels, makers = [], {}
    sample, makers["sample"] = model(rng, "Top")
    levels.append(taco.Level("sample", ml=sample))
    for folder in sorted(folders):
        inside = any(
            f != folder and (f + "/").startswith(folder + "/" if folder else "") for f in folders
        )
        if not inside and rng.random() < 0.5:
            name = "children/" + folder if folder else "children"
            made, makers[folder] = model(rng, "Files")
            levels.append(taco.Level(name, file=made))
    return taco.Contract(structure=paths, metadata=levels), paths, makers


def assets(rng, paths, makers):
    """The files of a sample."""
    for path in paths:
        names = [path]
        if m := re.fullmatch(r"(.*)\*\[(\d+),(\d+)\](.*)", path):
            names = [f"{m[1]}{k}{m[4]}" for k in range(rng.randint(int(m[2]), int(m[3])))]
        folder = path.rpartition("/")[0]
        for name in names:
            more = {"metadata": taco.Metadata(file=makers[folder]())} if folder in makers else {}
            yield taco.Asset(rng.randbytes(rng.choice([1, 7, 400, 9000])), path=name, **more)


def write(rng, folder):
    """Writes a container and returns its path."""
    structure, paths, makers = contract(rng)
    about = taco.Collection(
        contract=structure, id="x", description="d", licenses=["CC0-1.0"], providers=[{"name": "n"}]
    )
    form = rng.choice(["zip", "zip", "folder", "parts"])
    output = folder / ("data.zip" if form != "folder" else "data")
    options = {"partition_size": 3000} if form == "parts" else {}
    count = rng.randint(1, 6)
    with taco.open_writer(about, output, **options) as w:
        for k, id in enumerate(rng.sample(IDS, count)):
            w.add(
                taco.Sample(
                    id=id if rng.random() < 0.5 else f"{id}{k}",
                    assets=list(assets(rng, paths, makers)),
                    metadata=taco.Metadata(ml=makers["sample"]()),
                )
            )
        w.run()
    return folder / ".tacocat" if (folder / ".tacocat").exists() else next(folder.iterdir())


def content(place):
    """The bytes at a location."""
    if m := re.match(r"/vsisubfile/(\d+)_(\d+),", place):
        data = pathlib.Path(place[m.end() :]).read_bytes()
        return data[int(m[1]) : int(m[1]) + int(m[2])]
    return pathlib.Path(place).read_bytes()


def told(path):
    """The line of a container."""
    data = taco.open_dataset(path)
    wide = arrow(data.sql("SELECT * FROM dataset"))
    files, places = {}, [c for c in wide.column_names if c.endswith("::location")]
    for row in values(wide.select(["id", *places])):
        for column in places:
            for n, place in enumerate(
                [row[column]] if isinstance(row[column], str) else row[column]
            ):
                name = f"{column.removesuffix('::location')} {n}"
                files[f"{row['id']} {name}"] = hashlib.sha256(content(place)).hexdigest()
    levels = {}
    for level in data.collection.contract.levels:
        t = arrow(data.sql(f'SELECT * FROM "{level}"'))
        types = {c: f.type for c, f in data.collection.contract.metadata[level].items()}
        levels[level] = {
            c: [
                types.get(c, type_name(t.schema.field(c).type)),
                [plain(r[c]) for r in values(t.select([c]))],
            ]
            for c in t.column_names
            if not c.startswith("internal:")
        }
    issues = [str(i) for i in taco.validate(path).issues]
    return {
        "path": str(path),
        "issues": issues,
        "levels": levels,
        "columns": wide.column_names,
        "files": files,
    }


def arrow(result):
    """What a query gives, as a table of pyarrow."""
    return result if isinstance(result, pa.Table) else result.to_arrow_table()


def values(table):
    """The rows of a table. to_pylist needs pandas for nanoseconds."""
    columns = [
        c.cast(pa.timestamp("us", c.type.tz)) if pa.types.is_timestamp(c.type) else c
        for c in table.columns
    ]
    return pa.table(columns, names=table.column_names).to_pylist()


def connect():
    """Gives taco-eo a connection with the extension for times: its own asks a network."""
    found = pathlib.Path(duckdb_extension_icu.__file__).parent.glob(
        "extensions/*/icu.duckdb_extension"
    )
    engine._state.connection = duckdb.connect()
    engine._state.connection.execute(f"LOAD '{next(found)}'; SET TimeZone = 'UTC'")


def main():
    """Prints the lines."""
    connect()
    warnings.filterwarnings("ignore")
    if sys.argv[1] == "read":
        paths = map(pathlib.Path, sys.argv[2:])
    else:
        paths = written(pathlib.Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))
    for path in paths:
        print(json.dumps(told(path)), flush=True)


def written(folder, seed, count):
    """Writes containers, and gives the path of each."""
    for i in range(count):
        inside = folder / f"{i}"
        inside.mkdir()
        try:
            yield write(random.Random(seed * 100003 + i), inside)
        except Exception as e:
            print(f"{i}: {type(e).__name__}: {str(e)[:300]}", file=sys.stderr)


if __name__ == "__main__":
    main()
    os._exit(0)  # threads of DuckDB that still run would abort the process
