"""Reads rumi files with the original package and prints what it made of them, as JSON.

Arguments: paths. Works with rumi-eo 0.8.3 (generation 1) and 0.16.0 (generation 2).
"""

import hashlib
import json
import sys

import numpy as np
import rumi

rows = {}
for path in sys.argv[1:]:
    try:
        if hasattr(rumi, "index_file"):
            blob = rumi.index_file(path)
            a = rumi.read(path, rumi.parse(blob), "b y x")
        else:
            blob = None
            a = rumi.read(path, pattern="b y x")
        rows[path] = {
            "shape": list(a.shape),
            "dtype": str(a.dtype),
            "sha256": hashlib.sha256(np.ascontiguousarray(a).tobytes()).hexdigest(),
            "blob": blob.hex() if blob else "",
        }
    except Exception as e:  # noqa: BLE001
        rows[path] = {"error": f"{type(e).__name__}: {e}"}
json.dump(rows, sys.stdout)
