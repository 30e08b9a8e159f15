"""Folders and globs of the Hugging Face hub are read as those of a disk are."""

from __future__ import annotations

import json
import threading
import urllib.parse
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest
from rasters import write

import chaski

pytest.importorskip("rasterio")
PAGE = 2  # entries of a page of a listing


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A stand-in for the hub, with the dataset o/n as its API lists it; yields its folder."""
    folder = tmp_path / "n"

    class Hub(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            address = urllib.parse.urlsplit(self.path)
            path, query = urllib.parse.unquote(address.path), urllib.parse.parse_qs(address.query)
            tree, resolve = "/api/datasets/o/n/tree/main", "/datasets/o/n/resolve/main/"
            if path.startswith(tree):
                self.tree(folder / path.removeprefix(tree).strip("/"), query)
            elif path.startswith(resolve) and (folder / path.removeprefix(resolve)).is_file():
                self.ranges((folder / path.removeprefix(resolve)).read_bytes())
            else:
                self.answer(404, b"")

        def tree(self, below: Path, query: dict[str, list[str]]) -> None:
            found = below.rglob("*") if query["recursive"] == ["true"] else below.glob("*")
            entries = [
                {
                    "type": "directory" if p.is_dir() else "file",
                    "path": str(p.relative_to(folder)),
                    "size": 0 if p.is_dir() else p.stat().st_size,
                }
                for p in sorted(found)
            ]
            first = int(query.get("cursor", ["0"])[0])
            more = {}
            if len(entries) > first + PAGE:
                address = f"{self.path.partition('&cursor')[0]}&cursor={first + PAGE}"
                more = {"Link": f'<http://hub.invalid{address}>; rel="next"'}
            body = json.dumps(entries[first : first + PAGE]).encode()
            self.answer(200, body, **{"Content-Type": "application/json", **more})

        def ranges(self, body: bytes) -> None:
            lo, hi = map(int, self.headers["Range"].removeprefix("bytes=").split("-"))
            part = body[lo : hi + 1]
            self.answer(
                206, part, **{"Content-Range": f"bytes {lo}-{lo + len(part) - 1}/{len(body)}"}
            )

        def answer(self, status: int, body: bytes, **headers: str) -> None:
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(body))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{server.server_port}")
    yield folder
    server.shutdown()
    server.server_close()
    thread.join()


def images(source: str, **options: object) -> list[int]:
    options = {"batch_size": 1, "shuffle": False, "engine": chaski.Engine(share=False), **options}
    with chaski.load(source, **options) as loader:
        return [int(np.asarray(b["image"]).max()) for b in loader]


def test_folders_and_globs_of_the_hub(hub: Path) -> None:
    for split in ("train", "test"):
        (hub / split / "s2 l2a").mkdir(parents=True)
        for i in range(5):
            value = i + 10 * (split == "test")
            write(hub / split / "s2 l2a" / f"{i}.tif", np.full((8, 8), value, "u1"))
    (hub / "README.md").write_text("nothing")
    for root in ("hf://datasets/o/n", "hf://datasets/o/n@main"):
        assert images(f"{root}/train") == [0, 1, 2, 3, 4]
        assert images(root) == [10, 11, 12, 13, 14, 0, 1, 2, 3, 4]
        assert images(f"{root}/**/[12].tif") == [11, 12, 1, 2]
        assert images(f"{root}/test/*/3.tif") == [13]
        fields = {"image": "{split}/s2 l2a/{id}.tif"}
        assert images(root, fields=fields, rows=chaski.Rows(where="split = 'test'"))[0] == 10
    with pytest.raises(chaski.NotFoundError):
        images("hf://datasets/o/n/validation")
