"""Lists of files and tables in memory yield the pixels that rasterio reads."""

from __future__ import annotations

import gc
import os
import signal
import struct
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import rasters
from test_real import N, chips  # noqa: F401

import chaski
from chaski._tables import Files

pytestmark = pytest.mark.usefixtures("one_engine")
SRC = Path(__file__).parents[1] / "src"


@pytest.fixture
def paths(chips) -> list[str]:  # noqa: F811
    """Every second chip from the last to the first, an order that no directory or glob has."""
    return sorted(str(p) for p in Path(chips[0]).glob("*.tif"))[::-2]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """The directory for temporary files, which must be empty in the end."""
    to = tmp_path / "temporary"
    to.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(to))
    yield to
    gc.collect()
    assert list(to.iterdir()) == []


def pixels(paths: list[str]) -> np.ndarray:
    rasterio = pytest.importorskip("rasterio")
    out = []
    for p in paths:
        with rasterio.open(p) as f:
            out.append(f.read())
    return np.stack(out)


def images(loader: chaski.Loader) -> np.ndarray:
    return np.concatenate([b["image"][b["valid"]] for b in loader])


def options(**more: object) -> dict[str, object]:
    return {"batch_size": 4, "shuffle": False, "pixels": chaski.Pixels(dtype="native"), **more}


@pytest.mark.parametrize("kind", [str, Path])
def test_a_list_of_files(paths, kind, tmp_path, monkeypatch):
    want = pixels(paths)
    with chaski.load([kind(p) for p in paths], **options()) as loader:
        assert loader.samples == len(paths)
        assert np.array_equal(images(loader), want)
        whole = loader.spec_hash
    monkeypatch.chdir(Path(paths[0]).parent)
    with chaski.load([Path(p).name for p in paths], **options()) as loader:
        assert np.array_equal(images(loader), want)
        assert loader.spec_hash == whole, "the identity is that of the absolute paths"
    with chaski.load(paths[1:], **options()) as loader:
        assert loader.spec_hash != whole
    got = chaski.stats(paths)
    assert got["samples"] == len(paths)
    np.testing.assert_allclose(got.mean(), want.astype(float).mean((0, 2, 3)), rtol=0.2)


@pytest.mark.parametrize("kind", ["numpy", "pandas", "polars"])
def test_a_series_of_files(paths, kind):
    """A column of a table, or an array, counts as a list."""
    make = np.array if kind == "numpy" else pytest.importorskip(kind).Series
    for source in (make(paths), chaski.Mixture({"a": make(paths)})):
        with chaski.load(source, **options()) as loader:
            assert np.array_equal(images(loader)[: len(paths)], pixels(paths))
    with pytest.raises(chaski.SpecError, match="server on another host"):
        chaski.connect("localhost:1", make(paths), batch_size=1)


@pytest.mark.parametrize("kind", ["pandas", "polars", "tuples", "objects"])
def test_relative_paths_and_names_of_any_kind(paths, kind, monkeypatch):
    """In Arrow, strings of polars are views, and its categoricals dictionaries of views."""
    pytest.importorskip("pyarrow")
    folder, names = Path(paths[0]).parent, [Path(p).name for p in paths]
    monkeypatch.chdir(folder)
    kinds = ["ab"[n % 2] for n in range(len(names))]
    column: object = "image"
    if kind == "pandas":
        pd = pytest.importorskip("pandas")
        source = pd.DataFrame({0: [Path(n) for n in names], "kind": pd.Categorical(kinds)})
        column = "0"
    elif kind == "polars":
        pl = pytest.importorskip("polars")
        source = pl.DataFrame({"image": names, "kind": pl.Series(kinds, dtype=pl.Categorical)})
    elif kind == "tuples":
        source = {"image": tuple(map(Path, names)), "kind": tuple(kinds)}
    else:
        source = {"image": np.array([Path(n) for n in names], object), "kind": np.array(kinds)}
    fields = {"image": {"column": column, "dtype": "native"}, "kind": "kind"}
    with chaski.load(source, fields=fields, batch_size=4, shuffle=False) as loader:
        assert [k for b in loader for k in b["kind"] if k] == kinds
        assert list(loader.ids) == [str(folder / n) for n in names]
        loader.set_epoch(0)
        assert np.array_equal(images(loader), pixels(paths))


def test_a_list_and_fields(paths):
    fields = {
        "image": chaski.Field(dtype="native"),
        "red": chaski.Field(dtype="native", bands=[0]),
        "name": chaski.Field(column="path", kind="text"),
    }
    with chaski.load(paths, fields=fields, batch_size=4, shuffle=False) as loader:
        names = [n for b in loader for n in b["name"][b["valid"]]]
        loader.set_epoch(0)
        red = np.concatenate([b["red"][b["valid"]] for b in loader])
    assert names == paths
    assert np.array_equal(red, pixels(paths)[:, :1])


class Geo:
    """What chaski takes of a GeoDataFrame."""

    def __init__(self, table: Any) -> None:
        shapes = [struct.pack("<BIdd", 1, 1, i, 50) for i in range(len(table))]
        self._table = table.append_column("where", [shapes])
        self.active_geometry_name = "where"
        self.crs = None

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        raise TypeError("shapes are no type of Arrow")

    def to_wkb(self) -> Any:
        return self._table


def table(kind: str, paths: list[str]) -> object:
    numbers = list(range(len(paths)))
    columns = {"image": paths, "number": numbers, "code": [f"0{n}" for n in numbers]}
    if kind == "dict":
        return {**columns, "image": [Path(p) for p in paths], "number": np.array(numbers)}
    if kind == "rows":
        rows = [
            dict(zip(columns, values, strict=True))
            for values in zip(*columns.values(), strict=True)
        ]
        return [{**row, "image": Path(row["image"])} for row in rows]
    if kind == "geopandas":
        return Geo(pytest.importorskip("pyarrow").table(columns))
    if kind == "pyarrow":
        return pytest.importorskip("pyarrow").table(columns)
    if kind == "pandas":
        df = pytest.importorskip("pandas").DataFrame(columns).astype({"code": "category"})
        return df.assign(image=df["image"].map(Path)).set_index(df["number"] + 7)
    return pytest.importorskip("polars").DataFrame(columns)


@pytest.mark.parametrize("kind", ["dict", "rows", "pyarrow", "pandas", "polars", "geopandas"])
def test_tables_in_memory(paths, kind):
    pytest.importorskip("pyarrow")
    want = pixels(paths)
    fields = {"image": {"dtype": "native"}, "number": "number", "code": "code"}
    source = table(kind, paths)
    where = [("number", ">=", 2)]
    with chaski.load(source, fields=fields, rows=chaski.Rows(where=where), **options()) as loader:
        got = [
            (int(n), c) for b in loader for n, c in zip(b["number"], b["code"], strict=True) if c
        ]
        assert got == [(n, f"0{n}") for n in range(2, len(paths))]
        loader.set_epoch(0)
        assert np.array_equal(images(loader), want[2:])
        state = loader.state_dict()
    with chaski.load(source, fields=fields, rows=chaski.Rows(where=where), **options()) as loader:
        loader.load_state_dict(state)  # the same table is the same dataset
    fields = {"image": fields["image"]}
    assert (
        chaski.stats(source, fields=fields, rows=chaski.Rows(where=where))["samples"]
        == len(paths) - 2
    )


def test_rows_without_some_columns(paths):
    """What a row lacks is null, and the columns are those of all rows."""
    pytest.importorskip("pyarrow")
    rows = [{"image": p, **({"x": i / 2} if i % 2 else {"y": i})} for i, p in enumerate(paths)]
    fields = {
        "x": "x",
        "image": {"dtype": "native"},
        "y": chaski.Field(column="y", dtype="float32"),
    }
    with chaski.load(rows, fields=fields, **options(batch_size=len(paths))) as loader:
        batch = next(iter(loader))
    want = np.arange(len(paths))
    assert np.array_equal(batch["x"], np.where(want % 2, want / 2, np.nan), equal_nan=True)
    assert np.array_equal(batch["y"], np.where(want % 2, np.nan, want), equal_nan=True)


def test_a_geodataframe(paths):
    """Its rows are chosen by their shapes, whatever its CRS is."""
    geopandas, shapely = pytest.importorskip("geopandas"), pytest.importorskip("shapely")
    points = [shapely.Point(i, 50) for i in range(len(paths))]
    frame = geopandas.GeoDataFrame({"image": list(map(Path, paths))}, geometry=points, crs=4326)
    rows = chaski.Rows(bbox=(0.5, 49, 2.5, 51))
    for source in (frame, frame.to_crs(3857)):
        with chaski.load(source, fields={"image": "image"}, rows=rows, **options()) as loader:
            assert np.array_equal(images(loader), pixels(paths)[1:3])


def test_a_dataframe_without_warnings(paths):
    """Version 3 of pandas warns of what it will no longer do with columns of strings."""
    pytest.importorskip("pyarrow")
    df = pytest.importorskip("pandas").DataFrame({"image": list(map(Path, paths)), "name": paths})
    want = pixels(paths)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with chaski.load(df, fields={"image": "image"}, **options()) as loader:
            assert np.array_equal(images(loader)[: len(paths)], want)


def test_in_a_mixture(paths):
    mixture = chaski.Mixture({"a": paths[:4], "b": chaski.Source(paths[4:8], weight=3)})
    with chaski.load(mixture, **options()) as loader:
        batches = list(loader)
        assert {int(s) for b in batches for s in b["source"][b["valid"]]} == {0, 1}


def test_a_new_engine_finds_the_file(paths):
    engine = chaski.Engine(share=False)  # no other process's
    with chaski.load(paths, **options(batch_size=1, engine=engine)) as loader:
        it = iter(loader)
        next(it)
        os.kill(loader._link._held.engine._process.pid, signal.SIGKILL)
        assert [b.step for b in it] == list(range(1, len(paths)))


@pytest.mark.parametrize(
    ("source", "match"),
    [
        ({"a": "chips/", "b": "more/"}, "a dict, whose values are not columns; several .* Mixture"),
        ({}, "a dict"),
        ({"image": ["a.tif", "b.tif"], "n": [1]}, "a table in memory cannot be written"),
        ({"image": [object()]}, "a table in memory cannot be written: column 'image', row 0"),
        (
            [{"image": "a.tif", "v": [1]}, {"image": "b.tif", "v": "x"}],
            "column 'v', row 1: cannot mix",
        ),
        ([{"image": "a.tif", "v": 1}, {"image": "b.tif"}, {"v": "x"}], "column 'v', row 2: "),
        ({"image": ["a.tif", "b.tif"], "v": [[1], [2, "x"]]}, "column 'v', row 1: "),
        (np.zeros((4, 1, 8, 8)), "pixels in memory: write each image to a file"),
        ({"image": np.zeros((4, 1, 8, 8)), "label": np.arange(4)}, "pixels in memory"),
        ({"label": [1], "image": [np.zeros((8, 8, 3))]}, "pixels in memory"),
        ([np.zeros((1, 8, 8))] * 2, "pixels in memory"),
        (tuple(np.zeros((2, 8, 8))), "pixels in memory"),
        ([{"image": np.zeros((1, 8, 8))}], "pixels in memory"),
    ],
)
def test_what_is_no_table(source, match):
    pytest.importorskip("pyarrow")
    with pytest.raises(chaski.SpecError, match=match):
        chaski.load(source, batch_size=1)


def test_a_server_elsewhere_does_not_see_it(paths):
    with pytest.raises(chaski.SpecError, match="in memory, which a server on another"):
        chaski.connect("127.0.0.1:1", paths, batch_size=1)


def test_an_engine_on_this_host_does(paths, folder, binary, tmp_path):
    listen = f"unix:{tmp_path}/s"
    command = [binary, "serve", "--listen", listen, "--root", "/", "--stop-on-eof"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(command, **pipes) as server:
        try:
            assert server.stdout.readline()
            with chaski.connect(listen, paths, **options()) as loader:
                assert np.array_equal(images(loader), pixels(paths))
        finally:
            server.terminate()


def test_what_is_written_anew_is_read_anew(tmp_path):
    """A table of each epoch, in one file, and files that are added to a folder."""
    seen, sizes = [], []
    fields = {"image": chaski.Field(column="image", kind="raster")}
    for k in range(3):
        (tmp_path / "chips").mkdir(exist_ok=True)
        np.save(tmp_path / "chips" / f"{k}.npy", np.full((1, 8, 8), k, "uint16"))
        (tmp_path / "table.csv").write_text(f"image\nchips/{k}.npy\n")
        with chaski.load(tmp_path / "table.csv", batch_size=1, fields=fields) as loader:
            seen.append(int(loader.peek()["image"].max()))
        with chaski.load(tmp_path / "chips", batch_size=1) as loader:
            sizes.append(loader.samples)
    assert (seen, sizes) == ([0, 1, 2], [1, 2, 3])


def test_a_file_that_is_written_anew(tmp_path):
    """Its header is read anew, too, also where it has the old size."""
    pytest.importorskip("rasterio")
    path, seen = tmp_path / "a.tif", []
    for nodata in (0, 1):
        rasters.write(path, np.arange(64, dtype="uint8").reshape(1, 8, 8) % 2, nodata=nodata)
        seen.append(path.stat().st_size)
        with chaski.load(path, batch_size=1, pixels=chaski.Pixels(validity="ok")) as loader:
            assert loader.peek()["ok"].ravel().tolist() == [nodata ^ (i % 2) for i in range(64)]
    assert seen[0] == seen[1]


def test_what_a_killed_program_leaves_is_swept(tmp_path, monkeypatch):
    """The next one removes it, and nothing of programs that live."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    code = (
        "import os, signal, sys\n"
        "from chaski._tables import Files\n"
        "Files(None).source(['a.tif', 'b.tif'])\n"
        "print(flush=True)\n"
        "if sys.argv[1] == 'kill': os.kill(os.getpid(), signal.SIGKILL)\n"
        "sys.stdin.read()\n"
    )
    env = {**os.environ, "TMPDIR": str(tmp_path)}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "env": env}
    start = []
    for end in ("live", "kill"):  # one after the other: the second would be swept by the first
        start.append(subprocess.Popen([sys.executable, "-c", code, end], **pipes))
        assert start[-1].stdout.readline() == b"\n"
    live, killed = start
    killed.wait()
    (tmp_path / "chaski-tables-link").symlink_to(tmp_path / "elsewhere")
    assert len(list(tmp_path.glob("chaski-tables-*/*.csv"))) == 2
    files = Files(None)
    files.source(["c.tif", "d.tif"])
    assert len(list(tmp_path.glob("chaski-tables-*/*.csv"))) == 2, (
        "of the one that lives, and its own"
    )
    live.stdin.close()
    live.wait()
    files.close()
    assert len(list(tmp_path.glob("chaski-tables-*/*.csv"))) == 1
    for p in start:
        p.stdout.close()
    killed.stdin.close()


@pytest.mark.parametrize("end", ["csv", "parquet"])
def test_texts_that_are_taken_for_paths(tmp_path, end):
    """Members of rasters make paths of texts: the error names the member and the way out."""
    pa = pytest.importorskip("pyarrow")
    write = pytest.importorskip("pyarrow.csv").write_csv
    if end == "parquet":
        write = pytest.importorskip("pyarrow.parquet").write_table
    table = pa.table({"path": ["a.tif", "a.tif"], "note": ["St. Louis, 3.5 m", "lake"]})
    path = tmp_path / f"t.{end}"
    write(table, path)
    for options in (
        {"fill": 0},
        {"layout": "n y x"},
        {"normalize": chaski.Normalize(2.0)},
        {"nodata": 3},
    ):
        field = chaski.Field(column="note", **options)
        (member,) = options
        says = f'column note: {member} is given.*no "St. Louis, 3.5 m"; without {member} the'
        with pytest.raises(chaski.NotFoundError, match=says):
            chaski.load(path, batch_size=1, fields={"note": field})
    field = chaski.Field(column="path", fill=0)
    with pytest.raises(chaski.NotFoundError, match=r"a\.tif: file: not found"):
        chaski.load(
            path, batch_size=1, fields={"image": field}
        )  # a path, of which the file is missing
    with chaski.load(path, batch_size=2, shuffle=False, fields={"note": "note"}) as loader:
        assert list(next(iter(loader))["note"]) == ["St. Louis, 3.5 m", "lake"]


@pytest.mark.parametrize("mark", ["", "\ufeff", "# made by hand, in Excel\n"])
@pytest.mark.parametrize("between", [",", ";", "\t"])
@pytest.mark.parametrize("end", ["csv", "txt"])
def test_what_is_between_values(tmp_path, end, between, mark):
    """As the first line has it outside of quotes: a decimal comma comes with semicolons."""
    pytest.importorskip("rasterio")
    for i in range(3):
        rasters.write(tmp_path / f"{i}.tif", np.full((1, 4, 4), i, np.uint8))
    lines = [("path", "score", '"note, in\twords; long"')]
    lines += [(f"{i}.tif", f"{i}.5", f"a{i}") for i in (2, 0, 1)]
    path = tmp_path / f"t.{end}"
    path.write_text(mark + "".join(between.join(line) + "\r\n" for line in lines), newline="")
    fields = {"image": "path", "score": "score", "note": "note, in\twords; long"}
    with chaski.load(path, batch_size=3, shuffle=False, fields=fields) as loader:
        (batch,) = loader
    assert batch["image"][:, 0, 0, 0].tolist() == [2, 0, 1]
    assert batch["score"].tolist() == [2.5, 0.5, 1.5] and list(batch["note"]) == ["a2", "a0", "a1"]


def test_text_stays_text(tmp_path):
    """Codes that look like numbers are strings where strings are asked for."""
    pytest.importorskip("rasterio")
    rasters.write(tmp_path / "a.tif", np.zeros((1, 4, 4), np.uint8))
    codes, cells = ["0012", "0034", "12"], ["31E10", "31E11", "5"]
    lines = [f"a.tif,{a},{b}\n" for a, b in zip(codes, cells, strict=True)]
    (tmp_path / "t.csv").write_text("image,code,cell\n" + "".join(lines))

    def load(kind: str | None = None, **rows: Any) -> tuple[chaski.Batch, dict[str, list[str]]]:
        named = {n: chaski.Field(column=n, kind=kind) for n in ("code", "cell") if kind}
        with chaski.load(
            tmp_path / "t.csv",
            batch_size=3,
            shuffle=False,
            fields={"image": "image", **named},
            rows=chaski.Rows(**rows),
        ) as loader:
            return next(iter(loader)), loader.classes

    batch, _ = load("text")
    assert list(batch["code"]) == codes and list(batch["cell"]) == cells
    batch, classes = load("class")
    assert [classes["code"][i] for i in batch["code"]] == codes
    assert [classes["cell"][i] for i in batch["cell"]] == cells
    for where, want in (
        ([("code", "==", "0012")], [0]),
        ([("code", "!=", "0012")], [1, 2]),
        ([("cell", "in", ["31E10", "5"])], [0, 2]),
        ([("code", "==", 12)], [0, 2]),
        ("code = '0012'", [0]),
    ):
        rows = {"where": where}
        assert len(load(None, **rows)[0]["valid"]) == len(want), where
    given = {"split": chaski.Split.given("code"), "use": "0012"}
    assert list(load("text", **given)[0]["cell"]) == ["31E10"]


def test_timestamps_have_one_unit(tmp_path):
    """Timestamps of Parquet files of any unit are microseconds."""
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    times = np.array(["2020-01-02T03:04:05.123", "1960-01-02T03:04:05.001"], "datetime64[ms]")
    want = times.astype("datetime64[us]").astype(np.int64).tolist()
    for unit in ("ms", "us", "ns"):
        path = tmp_path / f"{unit}.parquet"
        pq.write_table(pa.table({"t": pa.array(times.astype(f"datetime64[{unit}]"))}), path)
        for rows, some in ((chaski.Rows(), 2), (chaski.Rows(where=[("t", ">", "2000-01-01")]), 1)):
            with chaski.load(
                path, batch_size=2, shuffle=False, fields={"t": chaski.Field(column="t")}, rows=rows
            ) as loader:
                assert next(iter(loader))["t"].tolist() == want[:some], unit


def test_relative_paths_of_every_format(tmp_path, monkeypatch):
    """Relative paths in memory are those of the working folder; a list may be of pictures."""
    pytest.importorskip("rasterio")
    for i in range(2):
        pixels = np.full((3, 8, 8), i, np.uint8)
        for driver, end in (("PNG", "png"), ("GTiff", "tif")):
            rasters.write(tmp_path / f"{i}.{end}", pixels, driver=driver, dtype="uint8")
        np.save(tmp_path / f"{i}.npy", pixels)
    monkeypatch.chdir(tmp_path)
    for end in ("png", "tif", "npy"):
        names = [f"{i}.{end}" for i in (1, 0)]
        raster = {"image": chaski.Field(kind="raster")}
        for source, fields in (
            ([{"image": n} for n in names], raster),
            ({"image": names}, raster),
            ({"file_name": names}, None),
            ({"x": names}, {"image": {"column": "x", "kind": "raster"}}),
            (names, None),
            (names, {"image": chaski.Field(dtype="native"), "again": chaski.Field(bands=[0])}),
        ):
            with chaski.load(source, batch_size=2, fields=fields, shuffle=False) as loader:
                batch = next(iter(loader))
            assert batch["image"][:, 0, 0, 0].tolist() == [1, 0], (source, fields)
    with chaski.load(
        [{"image": "0.tif", "caption": "0.png"}],
        batch_size=1,
        fields={"image": "image", "caption": chaski.Field(kind="text")},
    ) as loader:
        assert list(next(iter(loader))["caption"]) == ["0.png"]


def test_scenes_in_memory(tmp_path, monkeypatch):
    """Scenes take a list of rasters, and a table in memory."""
    rasterio = pytest.importorskip("rasterio")
    place = rasterio.Affine(10, 0, 5e5, 0, -10, 46e5)
    for name in ("a", "b"):
        rasters.write(
            tmp_path / f"{name}.tif",
            np.full((1, 64, 64), ord(name), np.uint8),
            crs="EPSG:32630",
            transform=place,
        )
    monkeypatch.chdir(tmp_path)
    window = chaski.GeoWindow(160, 10)
    for images, labels in (
        (["a.tif"] * 2, "b.tif"),
        ({"image": ["a.tif"]}, [{"label": "b.tif"}]),
        (tmp_path / "a.tif", {"label": ["b.tif"]}),
    ):
        both = chaski.Scenes(images, {"image": chaski.Field(dtype="native")})
        both &= chaski.Scenes(labels, {"label": chaski.Field(dtype="native")})
        with chaski.load(both, batch_size=1, window=window) as loader:
            batch = next(iter(loader))
        assert (batch["image"] == ord("a")).all() and (batch["label"] == ord("b")).all()


def test_rows_that_are_refused_say_the_way(tmp_path):
    """Errors about splits and patterns name what to write."""
    pytest.importorskip("rasterio")
    for name in ("images/1", "images/2", "masks/1"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        rasters.write(tmp_path / f"{name}.tif", np.zeros((1, 4, 4), np.uint8))
    image, mask = "images/{id}.tif", "masks/{id}.tif"
    one = {"val": 1e-9, "train": 1}
    for fields, rows, way in (
        ({"a": image}, {"split": chaski.Split.by_hash(0.8), "use": "train"}, '{"train": 0.8'),  # type: ignore[arg-type]
        ({"a": image}, {"split": chaski.Split.by_hash(one), "use": "val"}, r'"val" .*train 1'),
        ({"a": image, "b": mask}, {}, 'missing "drop"'),
        ({"a": chaski.Field(pattern="images/1.tif")}, {}, "stands for any text"),
        ({"a": chaski.Field(image)}, {}, r"Field\(pattern="),
    ):
        with pytest.raises((chaski.SpecError, chaski.NotFoundError), match=way):
            chaski.load(tmp_path, batch_size=1, fields=fields, rows=chaski.Rows(**rows))
    about = {"id": "a", "dataset_version": "1", "description": "a", "licenses": ["MIT"]}
    about |= {"providers": [{"name": "a"}], "tasks": ["other"]}
    samples = [{"id": i, "path": str(tmp_path / f"images/{i}.tif")} for i in "12"]
    chaski.pack(samples, tmp_path / "a.tacozip", about)
    with pytest.raises(chaski.NotFoundError, match=r"none of its 2 rows .*\"val\" .*train 1"):
        empty = chaski.Rows(split=chaski.Split.by_hash(one), use="val")
        chaski.load(tmp_path / "a.tacozip", batch_size=1, rows=empty)
