"""Reads rumi files with the original package and prints what it made of them, as JSON.

Arguments: paths. Works with rumi-eo 0.8.3 (generation 1), 0.16.0 (generation 2) and 0.26.1
(generation 3), of which it also prints names and times.
"""

import hashlib
import json
import sys

import numpy as np
import rumi

rows = {}
for path in sys.argv[1:]:
    more = {}
    try:
        if hasattr(rumi, "index_file"):
            blob = rumi.index_file(path)
            a = rumi.read(path, rumi.parse(blob), "b y x")
        elif hasattr(rumi, "read_many"):
            info = rumi.info(source=path)
            blob = info.header
            a = rumi.read(path, blob, pattern="b y x" if info.time_count == 1 else "t b y x")
            more = {"bands": info.bands, "times": str(info.time), "frame": info.frame_layout}
        else:
            blob = None
            a = rumi.read(path, pattern="b y x")
        rows[path] = {
            "shape": list(a.shape),
            "dtype": str(a.dtype),
            "sha256": hashlib.sha256(np.ascontiguousarray(a).tobytes()).hexdigest(),
            "blob": blob.hex() if blob else "",
            **more,
        }
    except Exception as e:  # noqa: BLE001
        rows[path] = {"error": f"{type(e).__name__}: {e}"}
json.dump(rows, sys.stdout)
