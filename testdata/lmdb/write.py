"""Write small databases by the package lmdb, and expected.json with what they hold.

    python testdata/lmdb/write.py
"""

import io
import json
import os
import shutil

import lmdb
import numpy as np
from PIL import Image
from safetensors.numpy import save

HERE = os.path.dirname(os.path.abspath(__file__))


def pixels(k, *shape):
    return np.arange(k, k + int(np.prod(shape))).reshape(shape)


def main():
    values = {}
    for k in range(6):
        value = save({"B02": pixels(k, 40, 30).astype("u2"), "B05": pixels(k, 20, 15).astype("u2")})
        values[f"S2A_{k:02d}"] = value  # in pages of its own
    for k in range(150):
        values[f"text/{k:03d}"] = f"río {k}".encode() * 3  # in several leaves
    Image.fromarray(pixels(0, 9, 8).astype("u1")).save(f := io.BytesIO(), "PNG")
    values["picture"] = f.getvalue()
    shutil.rmtree(f"{HERE}/a.lmdb", ignore_errors=True)
    with lmdb.open(f"{HERE}/a.lmdb", map_size=1 << 20, max_dbs=2, meminit=True) as env:
        with env.begin(write=True) as txn:
            for key, value in values.items():
                txn.put(key.encode(), value)
        named = env.open_db(b"named")
        with env.begin(write=True, db=named) as txn:
            txn.put(b"x", b"1")
        with env.begin(write=True) as txn:
            txn.delete(b"text/003")
    del values["text/003"]
    values["named/x"] = b"1"
    os.remove(f"{HERE}/a.lmdb/lock.mdb")
    with open(f"{HERE}/expected.json", "w") as f:
        json.dump({k: v.hex() if len(v) < 200 else len(v) for k, v in values.items()}, f, indent=1)
        f.write("\n")


main()
