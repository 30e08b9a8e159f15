"""Writes mds/ and wds/ with mosaicml-streaming 0.13.0, webdataset 1.0.2, numpy and Pillow.

    python make.py

Sample k of 7 has pixels (31 * k + 7 * band + 3 * row + column) % 251, of each array in its shape.
mds/ and wds/ have the same image (uint8, 3 bands, 8 rows, 9 columns), array (uint16, 2, 8, 9) and
mask (uint8, 8, 9), and the label k, the name "s" + k, and JSON.
"""

import json
import shutil
from pathlib import Path

import numpy as np
import webdataset
from PIL import Image
from streaming.base import MDSWriter

HERE = Path(__file__).parent
COLUMNS = {
    "image": "png",
    "array": "ndarray:uint16:2,8,9",
    "mask": "ndarray",
    "wide": "ndarray:float32",
    "label": "int",
    "name": "str",
    "score": "float32",
    "meta": "json",
    "raw": "bytes",
    "photo": "jpeg",
    "count": "str_int",
    "small": "uint8",
    "half": "float16",
}


def pixels(k: int, bands: int, dtype: str) -> np.ndarray:
    b, y, x = np.mgrid[:bands, :8, :9]
    return ((31 * k + 7 * b + 3 * y + x) % 251).astype(dtype)


def main() -> None:
    for name in ("mds", "wds"):
        shutil.rmtree(HERE / name, ignore_errors=True)
    mds = MDSWriter(
        out=str(HERE / "mds"), columns=COLUMNS, hashes=["sha1", "xxh64"], size_limit=9000
    )
    (HERE / "wds").mkdir()
    tars = [
        webdataset.TarWriter(str(HERE / "wds" / f"shard-{i:06d}.tar"), mtime=0) for i in range(2)
    ]
    for k in range(7):
        image = np.ascontiguousarray(pixels(k, 3, "uint8").transpose(1, 2, 0))
        meta = {
            "cloud": k / 4,
            "place": {"lon": k},
            "note": None if k % 2 else f"n{k}",
            "ok": k > 3,
        }
        mds.write(
            {
                "image": Image.fromarray(image),
                "photo": Image.fromarray(image),
                "array": pixels(k, 2, "uint16"),
                "mask": pixels(k, 1, "uint8")[0],
                "wide": pixels(k, 2, "float32")[:, :, : 5 + k % 2].copy(),
                "label": k - 3,
                "name": f"sé{k}",
                "score": k / 3,
                "meta": meta,
                "raw": bytes(range(k)),
                "count": 10 * k,
                "small": k,
                "half": k / 2,
            }
        )
        tars[k % 2].write(
            {
                "__key__": f"a/k{k:03d}",
                "png": image,
                "arr.npy": pixels(k, 2, "uint16"),
                "mask.npy": pixels(k, 1, "uint8")[0],
                "cls": k,
                "txt": f"sé{k}",
                "json": json.dumps(meta).encode(),
                "bin": bytes(range(k)),
            }
        )
    mds.finish()
    for t in tars:
        t.close()


if __name__ == "__main__":
    main()
