"""Write TIFF files with internal masks of random layouts with GDAL, and a manifest: write_masks.py FOLDER SEED COUNT."""
import hashlib
import json
import random
import sys
import warnings

import numpy as np
import rasterio

warnings.filterwarnings("ignore")
folder, seed, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
pick = random.Random(seed)
noise = np.random.default_rng(seed)
with open(f"{folder}/manifest.jsonl", "w") as manifest:
    for k in range(count):
        h, w = pick.randint(1, 150), pick.randint(1, 150)
        options = {
            "COMPRESS": pick.choice(["NONE", "ZSTD", "DEFLATE", "LZW", "PACKBITS"]),
            "ENDIANNESS": pick.choice(["LITTLE", "BIG"]),
            "BIGTIFF": pick.choice(["YES", "NO"]),
        }
        if pick.random() < 0.6:
            options |= {"TILED": "YES", "BLOCKXSIZE": pick.choice([16, 32, 48]), "BLOCKYSIZE": pick.choice([16, 64])}
        else:
            options["BLOCKYSIZE"] = pick.choice([1, 3, 16, 1000])
        path = f"{folder}/mask-{k}.tif"
        mask = noise.integers(0, 2, (h, w), dtype="u1") * 255
        if pick.random() < 0.5:
            mask[h // 3 :, : w // 2] = pick.choice([0, 255])
        with rasterio.Env(GDAL_TIFF_INTERNAL_MASK=True):
            with rasterio.open(path, "w", driver="GTiff", dtype="uint16", count=2, height=h, width=w, **options) as f:
                f.write(noise.integers(0, 5000, (2, h, w), dtype="u2"))
                f.write_mask(mask)
        with rasterio.open(path) as f:
            back = f.dataset_mask()
        row = {"path": f"mask-{k}.tif", "kind": "tiff", "mask_sha256": hashlib.sha256(back.tobytes()).hexdigest()}
        manifest.write(json.dumps(row) + "\n")
