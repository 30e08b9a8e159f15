"""Write small MAT-files of level 5 with scipy.io.savemat, and expected.json with what scipy.io.loadmat reads.

    python testdata/matlab/write.py             # the corpus
    python testdata/matlab/write.py expect DIR  # expected.json of the files of a folder

`CHASKI_MATLAB=DIR go test ./store/matlab` then compares the files of a folder, such as those of scipy's own tests.
"""

import hashlib
import json
import os
import sys
import warnings

import numpy as np
from scipy.io import loadmat, savemat

HERE = os.path.dirname(os.path.abspath(__file__))


def values(shape, dtype):
    n = int(np.prod(shape))
    return (np.arange(n).reshape(shape) * 7 % 251).astype(dtype)


def variables():
    """Every class of numbers, and what lies in structures and cells."""
    out = {d: values((5, 7), d) for d in "i1 u1 i2 u2 i4 u4 i8 u8 f4 f8".split()}
    cell = np.empty((1, 2), object)
    cell[0, 0], cell[0, 1] = values((3, 2), "u2"), "b"
    many = np.array(
        [(values((2, 2), "f4"), "x"), (values((2, 3), "f4"), "y")], [("m", "O"), ("s", "O")]
    )
    return out | {
        "logical": values((5, 6), "u1") % 2 == 1,
        "cube": values((20, 30, 40), "u2"),
        "series": values((3, 4, 5, 6), "f4"),
        "chips": values((6, 5, 2), "u2"),
        "names": np.array(["sea", "land"]),
        "text": "a text of Lima",
        "scene": {
            "gt": values((6, 5), "u1"),
            "deep": {"cube": values((4, 5, 6), "i2")},
            "name": "s",
        },
        "cell": cell,
        "many": many,
        "complex": values((2, 2), "c16"),
        "empty": np.zeros((0, 0)),
        "scalar": 1.5,
    }


def expected(path):
    """The arrays of a file by their paths; None for one that chaski refuses."""
    out = {}

    def add(name, a):
        if a.dtype.names or a.dtype == object:
            for i, item in enumerate(a.ravel(order="F")):
                each = name if a.dtype.names and a.size == 1 else f"{name}.{i}"
                for key in a.dtype.names or [None]:
                    add(each + (f".{key}" if key else ""), np.asarray(item[key] if key else item))
        elif a.dtype.kind == "U":
            if a.size and a.dtype.itemsize:
                out[name] = {"texts": [str(s) for s in a.ravel()]}
        elif a.dtype.kind == "c":
            out[name] = None
        elif a.dtype.kind in "uifb":
            raw = np.ascontiguousarray(a.astype(a.dtype.newbyteorder("<")))
            out[name] = {
                "shape": list(a.shape),
                "dtype": "bool" if a.dtype.kind == "b" else raw.dtype.name,
                "sha256": hashlib.sha256(raw.tobytes()).hexdigest(),
            }

    for name, a in loadmat(path).items():
        if not name.startswith("__"):
            add(name, a)
    return out


def main():
    folder = HERE
    if sys.argv[1:2] == ["expect"]:
        folder = sys.argv[2]
    else:
        savemat(f"{HERE}/plain.mat", variables())
        savemat(f"{HERE}/packed.mat", variables(), do_compression=True)
    files = {}
    for name in sorted(os.listdir(folder)):
        if name.endswith(".mat"):
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    files[name] = expected(f"{folder}/{name}")
            except Exception as error:  # noqa: BLE001
                print(name, error)
    with open(f"{folder}/expected.json", "w") as f:
        json.dump(files, f, indent=1)
        f.write("\n")


main()
