"""A stand-in for the Hugging Face hub, with a part of CloudSEN12+ whose images are drawn.

The address, the format (TACO 0.2), the columns and the files of a sample are those that the card of
tacofoundation/cloudsen12 describes. Pixels, places and the ids of the two files are invented.
"""

from __future__ import annotations

import json
import re
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
from rasterio import Affine
from rasterio.io import MemoryFile

sys.path.insert(0, str(Path(__file__).parents[2] / "tools/data_sets"))
import tortilla  # noqa: E402

PATH = "/datasets/tacofoundation/cloudsen12/resolve/main/cloudsen12-l1c.0000.part.taco"
SIDE = 509
SAMPLES = 16


def tif(bands: np.ndarray) -> bytes:
    """Returns a GeoTIFF."""
    how = {"count": len(bands), "height": SIDE, "width": SIDE, "dtype": bands.dtype}
    how |= {"crs": "EPSG:32630", "transform": Affine(10, 0, 5e5, 0, -10, 46e5)}
    with MemoryFile() as memory:
        with memory.open(driver="GTiff", compress="deflate", zlevel=1, **how) as file:
            file.write(bands)
        return bytes(memory.read())


def part() -> bytes:
    """Returns the part: clouds over land, half of them thick, and a mask for each image."""
    rng = np.random.default_rng(5)
    yx = np.stack(np.mgrid[:SIDE, :SIDE]) / SIDE
    samples, thick_shares = [], []
    for _ in range(SAMPLES):
        waves = rng.normal(size=(6, 2)) * 9
        hills = sum(np.sin(a * yx[0] + b * yx[1] + rng.uniform(0, 6)) for a, b in waves)
        thick, thin = hills > 2, (hills > 1.2) & (hills <= 2)
        image = np.full((13, SIDE, SIDE), 700, "u2")
        land = np.array([900, 850, 700, 2600])[:, None, None] * (1 + 0.05 * hills)
        image[[1, 2, 3, 7]] = np.where(thick, 6000, np.where(thin, 2500 + land / 2, land))
        mask = (thick + 2 * thin).astype("u1")
        columns = {"tortilla:id": ["image", "label"], "tortilla:file_format": ["GTiff"] * 2}
        samples.append(tortilla.write(columns, [tif(image), tif(mask[None])]))
        thick_shares.append(100 * float(thick.mean()))
    columns = {
        "tortilla:id": [f"ROI_{i:05}__drawn" for i in range(SAMPLES)],
        "tortilla:file_format": ["TORTILLA"] * SAMPLES,
        "tortilla:data_split": ["train" if i % 4 else "test" for i in range(SAMPLES)],
        "label_type": ["high"] * (SAMPLES - 2) + ["scribble"] * 2,
        "real_proj_shape": [SIDE] * SAMPLES,
        "thick_percentage": thick_shares,
    }
    about = {"id": "cloudsen12-l1c", "taco_version": "0.4.0", "dataset_version": "1.1.2"}
    about |= {"description": "drawn", "licenses": ["cc0-1.0"], "tasks": ["semantic-segmentation"]}
    about |= {"extent": {"spatial": [[-180, -90, 180, 90]], "temporal": [[0, 0]]}}
    about |= {"providers": [{"name": "a test", "roles": ["producer"], "links": []}]}
    return tortilla.write(columns, samples, b"WX", json.dumps(about).encode())


@contextmanager
def serve() -> Iterator[str]:
    """Serves the part at the hub's address for it, by ranges; yields what HF_ENDPOINT is to be."""
    data = part()

    class Hub(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self.answer(self.command == "GET")

        do_HEAD = do_GET

        def answer(self, body: bool) -> None:
            asked = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
            first = int(asked[1]) if asked else 0
            end = min(int(asked[2]) + 1, len(data)) if asked and asked[2] else len(data)
            found = self.path == PATH
            self.send_response((206 if asked else 200) if found else 404)
            if found and asked:
                self.send_header("Content-Range", f"bytes {first}-{end - 1}/{len(data)}")
            self.send_header("ETag", '"drawn"')
            self.send_header("Accept-Ranges", "bytes")
            self.send_header("Content-Length", str(end - first if found else 0))
            self.end_headers()
            if found and body:
                self.wfile.write(data[first:end])

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
