"""What tacoreader finds in containers: for the test that writes them.

read.py PATH...     a line of JSON for each: "leaves" (SHA-256 by path), "rows" (values by path)
"""

import hashlib
import json
import os
import re
import sys

import duckdb
import tacoreader
from tacoreader.storage.base import TacoBackend

# tacoreader asks DuckDB's server for an extension for geometries with each container, whose types no column has here.
# Where the server cannot be reached, 60 containers took 14 s of a processor, instead of 3.
TacoBackend._setup_duckdb_connection = lambda _: duckdb.connect(":memory:", config={"threads": 1})


def plain(v):
    """A value as chaski's JSON has it."""
    return v.isoformat() if hasattr(v, "isoformat") else v


def walk(frame, above, level, found):
    """Adds a folder and what lies below it."""
    for row in frame._data.to_pylist():
        path = above + row["id"]
        mine = {k: plain(v) for k, v in row.items() if k not in ("id", "type")}
        mine = {k: v for k, v in mine.items() if not k.startswith("internal:")}
        found["rows"].append([level, path, mine])
        below = frame.read(row["id"])
        if not isinstance(below, str):
            walk(below, path + "/", level + 1, found)
            continue
        if m := re.match(r"/vsisubfile/(\d+)_(\d+),(.*)", below, re.DOTALL):
            with open(m[3], "rb") as f:
                f.seek(int(m[1]))
                data = f.read(int(m[2]))
        else:
            with open(below, "rb") as f:
                data = f.read()
        found["leaves"][path] = hashlib.sha256(data).hexdigest()


def main():
    """Prints what was found."""
    for path in sys.argv[1:]:
        found = {"leaves": {}, "rows": []}
        dataset = tacoreader.load(path)
        walk(dataset.data, "", 0, found)
        top = [path for level, path, _ in found["rows"] if level == 0]
        ids = dataset.sql("SELECT id FROM data WHERE type IN ('FILE', 'FOLDER')")
        # Queries of tacoreader find padding too.
        found_ids = {i for i in ids["id"].to_pylist() if not i.startswith("__TACOPAD__")}
        found["sql"] = sorted(found_ids ^ set(top))
        print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
    os._exit(0)  # threads of DuckDB that still run would abort the process
