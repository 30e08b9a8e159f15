"""Tables whose cells hold the bytes of images yield the pixels that Pillow and numpy read."""

from __future__ import annotations

import io
import subprocess
from pathlib import Path

import numpy as np
import pytest
from helpers import web
from patience import logged

import chaski

pytestmark = pytest.mark.usefixtures("one_engine")
pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
Image = pytest.importorskip("PIL.Image")
N, SIDE = 30, 24
IMAGE = pa.struct([("bytes", pa.binary()), ("path", pa.string())])


def encoded(array: np.ndarray, kind: str) -> bytes:
    out = io.BytesIO()
    if kind == "NPY":
        np.save(out, array)
    else:
        Image.fromarray(array).save(out, kind)
    return out.getvalue()


def arrays() -> list[np.ndarray]:
    rng = np.random.default_rng(7)
    return [rng.integers(0, 255, (SIDE, SIDE, 3), dtype=np.uint8) for _ in range(N)]


def table(kind: str = "PNG") -> pa.Table:
    cells = [{"bytes": encoded(a, kind), "path": None} for a in arrays()]
    return pa.table(
        {
            "image": pa.array(cells, IMAGE),
            "chip": pa.array([c["bytes"] for c in cells], pa.binary()),
            "label": list(range(N)),
        }
    )


def read(source: object, column: str = "image", **more: object) -> dict[int, np.ndarray]:
    """The image of each label."""
    fields = {
        "image": chaski.Field(column=column, dtype="native", layout="n y x b"),
        "label": chaski.Field(),
    }
    out: dict[int, np.ndarray] = {}
    with chaski.load(source, fields=fields, batch_size=8, **more) as loader:
        for batch in loader:
            for row in np.flatnonzero(batch["valid"]):
                label = int(batch["label"][row])
                assert label not in out
                out[label] = np.array(batch["image"][row])
    return out


def same(got: dict[int, np.ndarray], want: dict[int, np.ndarray]) -> None:
    assert sorted(got) == sorted(want)
    for label, image in want.items():
        np.testing.assert_array_equal(got[label], image)


@pytest.mark.parametrize("column", ["image", "chip"])
@pytest.mark.parametrize("kind", ["PNG", "JPEG", "TIFF"])
@pytest.mark.parametrize("size", [7, 1000])
def test_the_pixels_of_pillow(tmp_path, kind, column, size):
    t = table(kind)
    pq.write_table(t, tmp_path / "train.parquet", row_group_size=size)
    cells = t["image"].to_pylist()
    want = {i: np.asarray(Image.open(io.BytesIO(c["bytes"]))) for i, c in enumerate(cells)}
    got = read(tmp_path / "train.parquet", column)
    if kind == "JPEG":  # decoders may differ by their rounding
        assert all(np.abs(got[i].astype(int) - want[i]).max() <= 2 for i in want)
    else:
        same(got, want)


def test_numpy_files(tmp_path):
    rng = np.random.default_rng(3)
    want = {i: rng.normal(size=(SIDE, SIDE, 1)).astype("f4") for i in range(N)}
    chips = [encoded(a[:, :, 0], "NPY") for a in want.values()]
    pq.write_table(pa.table({"chip": chips, "label": list(want)}), tmp_path / "t.parquet")
    same(read(tmp_path / "t.parquet", "chip"), want)


@pytest.mark.parametrize(
    "writing",
    [
        {
            "compression": "none",
            "use_dictionary": False,
            "write_page_index": True,
            "data_page_size": 4096,
        },
        {"compression": "zstd", "data_page_version": "2.0"},
        {"compression": "gzip", "row_group_size": 4},
        {"column_encoding": "DELTA_LENGTH_BYTE_ARRAY", "use_dictionary": False},
    ],
)
def test_ways_of_writing(tmp_path, writing):
    t = table().select(["image", "label"])
    if "column_encoding" in writing:
        writing = {**writing, "column_encoding": {"image.bytes": "DELTA_LENGTH_BYTE_ARRAY"}}
    pq.write_table(t, tmp_path / "t.parquet", **writing)
    same(read(tmp_path / "t.parquet"), dict(enumerate(arrays())))


def test_shards_are_one_dataset(tmp_path):
    t = table()
    (tmp_path / "data").mkdir()
    for k in range(3):
        pq.write_table(t.slice(10 * k, 10), tmp_path / "data" / f"train-{k:05d}-of-00003.parquet")
    pq.write_table(t.slice(0, 5), tmp_path / "data" / "test-00000-of-00001.parquet")
    want = dict(enumerate(arrays()))
    same(read(f"{tmp_path}/data/train-*.parquet"), want)
    where = chaski.Rows(where="label >= 7 AND label < 25")
    same(read(f"{tmp_path}/data/train-*.parquet", rows=where), {i: want[i] for i in range(7, 25)})


def test_it_resumes_in_shards(tmp_path):
    t = table()
    for k in range(3):
        pq.write_table(t.slice(10 * k, 10), tmp_path / f"train-{k}.parquet")

    def labels(loader: chaski.Loader) -> list[list[int]]:
        return [b["label"].tolist() for b in loader]

    def opened() -> chaski.Loader:
        fields = {"image": chaski.Field(), "label": chaski.Field()}
        return chaski.load(tmp_path, fields=fields, batch_size=4, shuffle=True, seed=5)

    with opened() as loader:
        whole = labels(loader)
    with opened() as loader:
        batches = iter(loader)
        begun = [next(batches)["label"].tolist() for _ in range(3)]
        state = loader.state_dict()
    with opened() as loader:
        loader.load_state_dict(state)
        assert begun + labels(loader) == whole


def test_paths_beside_the_table(tmp_path):
    """Hugging Face leaves the bytes out where a path says where the image is."""
    images = arrays()
    (tmp_path / "images").mkdir()
    cells = []
    for i, a in enumerate(images):
        data = encoded(a, "PNG")
        if i % 2:
            (tmp_path / "images" / f"{i}.png").write_bytes(data)
        cells.append({"bytes": None if i % 2 else data, "path": f"images/{i}.png"})
    pq.write_table(
        pa.table({"image": pa.array(cells, IMAGE), "label": list(range(N))}), tmp_path / "t.parquet"
    )
    same(read(tmp_path / "t.parquet"), dict(enumerate(images)))


def test_over_http(tmp_path):
    pq.write_table(table(), tmp_path / "train.parquet", row_group_size=10)
    with web(tmp_path) as (url, _):
        same(read(f"{url}/train.parquet"), dict(enumerate(arrays())))


def test_bad_cells(tmp_path):
    cells = [{"bytes": encoded(a, "PNG"), "path": None} for a in arrays()]
    cells[3]["bytes"] = cells[3]["bytes"][:300]
    cells[4] = {"bytes": None, "path": None}
    pq.write_table(
        pa.table({"image": pa.array(cells, IMAGE), "label": list(range(N))}), tmp_path / "t.parquet"
    )
    with pytest.raises(chaski.Error, match="3/image|row 4"):
        read(tmp_path / "t.parquet")


def test_the_library_datasets(tmp_path):
    datasets = pytest.importorskip("datasets")
    writers = pytest.importorskip("datasets.arrow_writer")
    features = datasets.Features({"image": datasets.Image(), "label": datasets.Value("int64")})
    images = [Image.fromarray(a) for a in arrays()]
    for k in range(3):
        path = tmp_path / f"train-{k:05d}-of-00003.parquet"
        with writers.ParquetWriter(path=str(path), features=features) as writer:
            for label in range(10 * k, 10 * k + 10):
                writer.write({"image": images[label], "label": label})
            writer.finalize()
    same(read(tmp_path), dict(enumerate(arrays())))


def test_commands(tmp_path, binary):
    pq.write_table(table(), tmp_path / "train.parquet")

    def run(*arguments: object) -> str:
        done = subprocess.run(
            [binary, *map(str, arguments)], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    t = Path(tmp_path) / "train.parquet"
    assert f"[3, {SIDE}, {SIDE}]" in run("info", f"{t}::3/image").replace("shape: ", "")
    assert "{name: image.bytes, type: images}" in run("info", t)
    assert '"rows":30' in run("verify", t)
    assert '"samples":30' in run("stats", t)
    assert f"[3,{SIDE},{SIDE}]" in run("cat", f"{t}::7/chip")


@pytest.mark.parametrize("call", ["load", "plan"])
@pytest.mark.parametrize(
    ("rows", "options", "told"),
    [
        (300, {}, True),
        (300, {"data_page_size": 65536}, True),  # pyarrow looks at the size after 1,024 rows
        (300, {"write_batch_size": 1, "data_page_size": 65536}, False),
        (100, {}, False),  # the engine keeps all pages
    ],
)
def test_large_pages_are_told(
    tmp_path: Path,
    binary: str,
    caplog: pytest.LogCaptureFixture,
    call: str,
    rows: int,
    options: dict[str, int],
    told: bool,
) -> None:
    """Where rasters of 128 KiB share pages, and more of them than are kept, the remedy is named."""
    pixels = np.random.default_rng(3).integers(0, 255, (rows, 256, 512), np.uint8)
    cells = [encoded(one, "NPY") for one in pixels]
    path = tmp_path / "cells.parquet"
    pq.write_table(pa.table({"image": pa.array(cells)}), path, **options)
    if call == "plan":
        done = subprocess.run(
            [binary, "plan", "--batch", "4", path], capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        text = done.stderr
    else:
        field = chaski.Field(column="image", dtype="native")
        engine = chaski.Engine(share=False)
        given = {"batch_size": 4, "shuffle": False, "engine": engine}
        with chaski.load(path, fields={"image": field}, **given) as loader:
            batch = next(iter(loader))
            assert (batch["image"][:, 0] == pixels[:4]).all()
        text = logged(caplog, *(["large pages"] if told else []))
    said = ("large pages", "write_batch_size=1", "page bytes", path.name)
    assert all(words in text for words in said) == told
