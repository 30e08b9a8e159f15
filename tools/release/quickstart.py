"""The quickstart, as a newcomer runs it: five lines to a first batch, and how long they took.

python quickstart.py FOLDER     FOLDER holds GeoTIFFs; the clock starts before chaski is imported
"""

import sys
import time

folder = sys.argv[1]

start = time.perf_counter()
import chaski  # noqa: E402

with chaski.load(folder, window=chaski.RandomWindow(64, per_asset=16), batch_size=8) as loader:
    batch = next(iter(loader))
seconds = time.perf_counter() - start

image = batch["image"]
print(f"first batch: {image.dtype} {image.shape}, {seconds:.2f} s after the first line")
if image.shape[0] != 8 or image.shape[2:] != (64, 64) or not batch["valid"].all():
    sys.exit("this is not the batch that was asked for")
