"""What the reader of Tortillas in tacoreader finds: for the test that writes them.

read_tortilla.py PATH...     a line of JSON for each: "leaves" (SHA-256 by path), "rows" (values)
"""

import hashlib
import json
import os
import re
import sys

import tacoreader.v1 as tacoreader


def plain(v):
    """A value as chaski's JSON has it."""
    if hasattr(v, "tolist"):
        v = v.tolist()
    if isinstance(v, float) and v != v or repr(v) in ("NaT", "<NA>"):
        return None
    return v.isoformat() if hasattr(v, "isoformat") else v


def walk(frame, above, level, found):
    """Adds a folder and what lies below it."""
    for i, row in enumerate(frame.to_dict("records")):
        path = above + row["tortilla:id"]
        mine = {k: plain(v) for k, v in row.items()}
        own = ("tortilla:", "internal:", "__index", "geometry")
        mine = {k: v for k, v in mine.items() if not k.startswith(own)}
        found["rows"].append([level, path, mine])
        below = frame.read(i)
        if hasattr(below, "to_dict"):
            walk(below, path + "/", level + 1, found)
            continue
        if isinstance(below, str):  # a raster; other files are bytes
            at, size, name = re.match(r"/vsisubfile/(\d+)_(\d+),(.*)", below, re.DOTALL).groups()
            with open(name, "rb") as f:
                f.seek(int(at))
                below = f.read(int(size))
        found["leaves"][path] = hashlib.sha256(below).hexdigest()


for name in sys.argv[1:]:
    result = {"leaves": {}, "rows": []}
    walk(tacoreader.load(name), "", 0, result)
    print(json.dumps(result), flush=True)
os._exit(0)  # threads of Arrow that still run would abort the process
