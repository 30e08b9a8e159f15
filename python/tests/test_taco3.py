"""TACO 3: what chaski reads is what taco-eo and rasterio said of the same containers."""

from __future__ import annotations

import functools
import hashlib
import http.server
import json
import threading
from pathlib import Path

import numpy as np
import pytest
from conftest import nonempty

import chaski

DATA = Path(__file__).parents[2] / "testdata/taco3"
EXPECTED = json.loads((DATA / "expected.json").read_text(encoding="utf-8"))
FIELDS = {
    "image": "image",
    "mask": "mask.tif",
    "b02": "before/B02",
    "cloud": "ml:cloud",
    "id": "id",
}


class Ranges(http.server.SimpleHTTPRequestHandler):
    """Answers a range of bytes, as stores do, and counts the requests of each file."""

    counts: dict[str, int] = {}

    def log_message(self, *_: object) -> None: ...

    def do_GET(self) -> None:
        self.counts[self.path] = self.counts.get(self.path, 0) + 1
        path = Path(self.translate_path(self.path))
        if not path.is_file():
            self.send_error(404)
            return
        data = path.read_bytes()
        wanted = self.headers.get("Range")
        first, last = 0, len(data) - 1
        if wanted:
            a, b = wanted.removeprefix("bytes=").split("-")
            first, last = (int(a), min(int(b or last), last)) if a else (len(data) - int(b), last)
        self.send_response(206 if wanted else 200)
        if wanted:
            self.send_header("Content-Range", f"bytes {first}-{last}/{len(data)}")
        self.send_header("Content-Length", str(last + 1 - first))
        self.send_header("ETag", '"x"')
        self.end_headers()
        self.wfile.write(data[first : last + 1])


@pytest.fixture(scope="module")
def web():
    handler = functools.partial(Ranges, directory=str(DATA))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()


def digest(pixels: np.ndarray) -> str:
    return hashlib.sha256(np.ascontiguousarray(pixels, "<u2").tobytes()).hexdigest()


@pytest.mark.parametrize("name", EXPECTED)
@pytest.mark.parametrize("way", ["local", "http"])
def test_training(name, way, web):
    want = EXPECTED[name]
    source = f"{web}/{name}" if way == "http" else DATA / name
    options = {"pixels": chaski.Pixels(dtype="native"), "batch_size": 3, "shuffle": False}
    with chaski.load(source, fields=FIELDS, **options) as loader:
        rows = [(b, i) for b in loader for i in np.flatnonzero(b["valid"])]
        assert [b["id"][i] for b, i in rows] == want["ids"]
        for b, i in nonempty(rows):
            id = b["id"][i]
            for field, path in [
                ("image", "image.tif"),
                ("mask", "mask.tif"),
                ("b02", "before/B02.tif"),
            ]:
                shape, hashed, _ = want["files"][f"{id}/{path}"]
                assert list(b[field][i].shape) == shape
                assert digest(b[field][i]) == hashed
        cloud = [float(b["cloud"][i]) for b, i in rows]
        assert [None if np.isnan(c) else c for c in cloud] == want["cloud"]


@pytest.mark.parametrize("name", EXPECTED)
@pytest.mark.parametrize("way", ["local", "http"])
def test_sequences(name, way, web):
    """The files of a sequence are the steps of a sample in their order, and the rest is padding."""
    want = EXPECTED[name]
    source = f"{web}/{name}" if way == "http" else DATA / name
    options = {"pixels": chaski.Pixels(dtype="native"), "batch_size": 1, "seed": 2}
    fields = {"seq": "seq/t", "cloud": "ml:cloud", "id": "id"}
    with chaski.load(source, fields=fields, **options) as loader:
        batches, states = [], []
        for batch in loader:
            batches.append(batch)
            states.append(loader.state_dict())
    assert sorted(b["id"][0] for b in batches) == want["ids"]
    for batch in batches:
        id = batch["id"][0]
        files = [f"{id}/seq/t{n}.tif" for n in range(3)]
        assert batch["seq"].shape == (1, 3, 2, 12, 14)
        assert batch["steps"].tolist() == [[f in want["files"] for f in files]]
        for pixels, file in zip(batch["seq"][0], files, strict=True):
            if file in want["files"]:
                assert digest(pixels) == want["files"][file][1]
            else:
                assert not pixels.any()
        assert batch["cloud"].shape == (1,)
    for k, state in nonempty(enumerate(states[:-1])):
        with chaski.load(source, fields=fields, **options) as loader:
            loader.load_state_dict(state)
            for batch, same in nonempty(zip(loader, batches[k + 1 :], strict=True)):
                assert (batch["seq"] == same["seq"]).all() and (batch["id"] == same["id"]).all()


def test_steps_of_sequences():
    """`times` picks files by their numbers, and a container of one sequence needs no field."""
    seq = chaski.Field("seq/t*.tif", times=[2, 0], layout="n (t b) y x")
    with chaski.load(
        DATA / "scenes.zip", fields={"seq": seq}, batch_size=4, shuffle=False
    ) as loader:
        batch = next(iter(loader))
    assert batch["seq"].shape == (4, 4, 12, 14)
    assert batch["steps"].tolist() == [[0, 1], [0, 1], [1, 1], [0, 1]]
    with pytest.raises(chaski.NotFoundError, match="no step 3: a sample has up to 3 files"):
        chaski.load(
            DATA / "scenes.zip", fields={"x": chaski.Field("seq/t", times=[3])}, batch_size=1
        )
    with pytest.raises(chaski.SpecError, match='"steps" is the tensor that says'):
        chaski.load(DATA / "scenes.zip", fields={"steps": "seq/t"}, batch_size=1)


def test_no_arguments():
    with chaski.load(DATA / "scenes.zip", batch_size=4) as loader:
        assert next(iter(loader))["image"].shape == (4, 3, 20, 22)


def test_windows_on_the_ground():
    """Pixels of windows on the ground are those at rasterio's transform of the file."""
    rasterio = pytest.importorskip("rasterio")
    window = chaski.GeoWindow(size_m=80, resolution=10)
    options = {"pixels": chaski.Pixels(dtype="native", geo=True), "window": window, "seed": 3}
    table = chaski.taco.load(DATA / "scenes.zip").sql(
        'SELECT id, "image.tif::location" FROM dataset'
    )
    places = dict(zip(*(c.to_pylist() for c in table.data.columns), strict=True))
    fields = {"image": "image.tif", "id": "id"}
    with chaski.load(DATA / "scenes.zip", fields=fields, batch_size=1, **options) as loader:
        for batch in nonempty(loader):
            place = places[batch["id"][0]]
            with rasterio.open(place) as d:
                want, (x, _, _, y, _, _) = d.read(), d.transform.to_gdal()
            t = batch["geo"]["transform"][0]
            cols = np.floor((t[0] + (np.arange(8) + 0.5) * t[1] - x) / 10).astype(int)
            rows = np.floor((t[3] + (np.arange(8) + 0.5) * t[5] - y) / -10).astype(int)
            inside = ((rows >= 0) & (rows < 20))[:, None] & ((cols >= 0) & (cols < 22))
            assert inside.any()
            picked = want[:, rows.clip(0, 19)][:, :, cols.clip(0, 21)]
            assert (batch["image"][0] == np.where(inside, picked, 0)).all()


def test_tables_and_filters():
    data = chaski.taco.load(DATA / "scenes.zip")
    assert data.sql("SELECT * FROM dataset").data.column_names == EXPECTED["scenes.zip"]["columns"]
    assert [len(x) for x in data.sql('SELECT "seq/t::location" AS s FROM dataset').data["s"]] == [
        1,
        2,
        3,
        1,
    ]
    assert data.filter_datetime("2024-02-01/2024-03-31").data["id"].to_pylist() == [
        "sitio 1",
        "sitio 2",
    ]
    # Only centroids say where the samples are: their longitudes count from -75.
    assert data.filter_bbox(-74.5, -19, -72.5, -17).data["id"].to_pylist() == ["sitio 1", "sitio 2"]
    assert data.sql("SELECT \"stac:centroid\".lon AS x FROM sample WHERE id = 'sitio 2'").data[
        "x"
    ].to_pylist() == [-73.0]


def test_duckdb_sees_the_tables_by_their_names():
    pytest.importorskip("duckdb")
    data = chaski.taco.load(DATA / "scenes.zip")
    count = data.sql(
        'SELECT (SELECT count(*) FROM dataset) AS d, (SELECT count(*) FROM "sample") AS s,'
        " (SELECT count(*) FROM children) AS c"
    ).data.to_pylist()
    alone = [len(data.sql(f"SELECT * FROM {t}").data) for t in ("dataset", "sample", "children")]
    assert list(count[0].values()) == alone


def test_requests(web):
    """A ZIP opens with few requests: its ends, and its tables."""
    Ranges.counts.clear()
    # By another name: an engine that still runs may have the ZIP open by this one.
    data = chaski.taco.load(f"{web.replace('127.0.0.1', 'localhost')}/scenes.zip")
    assert len(data.data) == 4
    assert Ranges.counts["/scenes.zip"] <= 2
    assert set(Ranges.counts) == {"/scenes.zip"}


def test_refusals(tmp_path):
    damaged = bytearray((DATA / "scenes.zip").read_bytes())
    damaged[-50] ^= 1
    (tmp_path / "damaged.zip").write_bytes(damaged)
    with pytest.raises(chaski.CorruptError, match="checksum"):
        _ = chaski.taco.load(tmp_path / "damaged.zip").data
    with pytest.raises(chaski.NotFoundError, match="the ids are image.tif, mask.tif, before, seq"):
        chaski.load(DATA / "scenes.zip", fields={"x": "nothing"}, batch_size=1)
