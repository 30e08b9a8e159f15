"""chaski.taco and loaders of containers, against the scene, and the original writer and reader."""

from __future__ import annotations

import contextlib
import datetime
import json
import multiprocessing
import os
import pickle
import resource
import shutil
import socket
import subprocess
import sys
import warnings
from collections.abc import Iterator
from concurrent import futures
from pathlib import Path

import numpy as np
import pytest
from conftest import nonempty
from helpers import web
from patience import logged

import chaski
from chaski import _apart, _engine, _host, taco

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "testdata"
COAST = DATA / "coast"
SIDE = 24
FIELDS = {"image": "s2/img.tif", "mask": "ref/label.tif", "rank": "rank"}

pytestmark = pytest.mark.usefixtures("binary")


@pytest.fixture(scope="module")
def chips(binary) -> tuple[np.ndarray, np.ndarray]:
    """The images and labels of testdata/coast, cut from the scene they were made from."""
    scene = chaski.read(DATA / "demo" / "coast.tif", b=[1, 3, 5])
    images = []
    for k in range(12):
        y, x = 64 + 160 * (k // 4), 32 + 150 * (k % 4)
        images.append(scene[:, y : y + SIDE, x : x + SIDE])
    stack = np.stack(images)
    return stack, (stack[:, 1:2] > 1200).astype(np.uint8)


def parts() -> list[Path]:
    return [COAST / "parts" / f"coast_{name}.tacozip" for name in ("north", "middle", "south")]


@pytest.mark.parametrize("source", ["zip", "catalog", "list", "folder"])
def test_load_gives_the_scene(chips, source):
    images, masks = chips
    path, n = {
        "zip": (COAST / "coast.tacozip", 12),
        "catalog": (COAST / "parts" / ".tacocat", 12),
        "list": (parts(), 12),
        "folder": (COAST / "coast_dir", 3),
    }[source]
    with chaski.load(
        path, fields=FIELDS, batch_size=5, pixels=chaski.Pixels(dtype="native"), seed=3
    ) as loader:
        seen = []
        for batch in loader:
            for i in np.flatnonzero(batch["valid"]):
                k = int(batch["rank"][i])
                seen.append(k)
                assert np.array_equal(batch["image"][i], images[k])
                assert np.array_equal(batch["mask"][i], masks[k])
    assert sorted(seen) == list(range(n))


def ranks(loader: chaski.Loader) -> list[int]:
    with loader:
        return [int(k) for b in loader for k, v in zip(b["rank"], b["valid"], strict=True) if v]


@pytest.mark.parametrize(
    ("options", "want"),
    [
        ({"rows": chaski.Rows(where="cloud_cover < 10")}, [0, 1, 5, 9]),
        ({"rows": chaski.Rows(where=[("cloud_cover", "<", 10), "rank > 0"])}, [1, 5, 9]),
        ({"rows": chaski.Rows(bbox=(-63, 38, -61.8, 38.4))}, [4, 5]),
        ({"rows": chaski.Rows(datetime="2020-03-05/2020-05-05")}, [2, 3, 4]),
        ({"rows": chaski.Rows(split="test")}, [2, 6, 10]),
        ({"rows": chaski.Rows(split=chaski.Split.given("region"), use="south")}, [8, 9, 10, 11]),
        (
            {"rows": chaski.Rows(split="train", where="cloud_cover < 20", bbox=(-63, 38, -60, 40))},
            [0, 1, 5],
        ),
    ],
)
def test_load_of_a_subset(options, want):
    fields = {"rank": "rank"}
    options = {"batch_size": 4, "shuffle": False, **options}
    assert ranks(chaski.load(COAST / "coast.tacozip", fields=fields, **options)) == want


def test_subset_of_a_source_of_a_mixture():
    source = chaski.Source(parts(), rows=chaski.Rows(where="rank % 2 = 0", split="train"))
    other = chaski.Source(COAST / "coast.tacozip", rows=chaski.Rows(bbox=(-63, 38, -61.8, 38.4)))
    mixture = chaski.Mixture({"a": source, "b": other}, until=40)
    loader = chaski.load(mixture, fields=FIELDS, batch_size=8, pixels=chaski.Pixels(dtype="native"))
    with loader:
        found = {0: set(), 1: set()}
        for batch in loader:
            for s, k in zip(batch["source"], batch["rank"], strict=True):
                found[int(s)].add(int(k))
    assert found == {0: {0, 4, 8}, 1: {4, 5}}


def test_state_goes_with_the_subset():
    def load(where):
        return chaski.load(
            COAST / "coast.tacozip", fields=FIELDS, batch_size=2, rows=chaski.Rows(where=where)
        )

    with load("rank < 6") as a, load("rank < 6") as again, load("rank < 7") as other:
        next(iter(a))
        state = a.state_dict()
        again.load_state_dict(state)
        with pytest.raises(chaski.StateError):
            other.load_state_dict(state)


def test_samples_by_id_and_position(chips):
    images, masks = chips
    ds = taco.load(COAST / "coast.tacozip")
    assert len(ds) == 12
    assert ds.ids == [f"tile_{k:02d}" for k in range(12)]
    for k, sample in enumerate(ds):
        assert isinstance(sample, taco.Folder)
        assert sample.ids == ["s2", "ref"]
        assert np.array_equal(sample.read("s2/img.tif").array(), images[k])
        assert np.array_equal(ds[k]["ref"][0].array(y=(2, 9)), masks[k][:, 2:9])
    last = ds.read(-1).read("ref").read("label.tif")
    assert last.path == "tile_11/ref/label.tif"
    assert last.bytes()[:2] == b"II"
    assert ds.read(last.path) == last
    with pytest.raises(IndexError, match="sample 12 of 12"):
        ds.read(12)
    with pytest.raises(chaski.NotFoundError, match="there are tile_00, tile_01"):
        ds.read("tile_99")
    with pytest.raises(
        chaski.NotFoundError, match="tile_00: no id 's3/img.tif'; there are s2, ref"
    ):
        ds.read("tile_00/s3/img.tif")


def test_in():
    ds = chaski.taco.load(COAST / "coast.tacozip")
    for key in ("tile_00", "tile_11/s2/img.tif"):
        assert key in ds
    for key in ("tile_99", "tile_00/s9", "", 0, None):
        assert key not in ds
    assert "img.tif" in ds.read("tile_00/s2") and "tile_00" not in ds.where("rank > 3")
    flat = chaski.taco.load(COAST / "flat.tacozip")
    assert flat.read(0) in flat
    with pytest.raises(chaski.NotFoundError, match="nowhere"):
        assert "tile_00" in chaski.taco.load("nowhere.tacozip")


def test_conditions_of_a_loader_are_those_of_load():
    ds = chaski.taco.load(COAST / "coast.tacozip")
    for wrong in ({"sql": "rank < 3"}, ("rank", "<", 3), None):
        with pytest.raises(chaski.SpecError, match="^where"):
            ds.loader(fields={"rank": "rank"}, batch_size=4, rows=chaski.Rows(where=wrong))
    with pytest.raises(chaski.SpecError, match="^timeout is"):
        chaski.taco.load(COAST / "coast.tacozip", timeout=0)


def test_samples_of_a_folder_and_of_a_flat_container(chips):
    images, _ = chips
    asset = taco.load(COAST / "coast_dir").read("tile_02/s2/img.tif")
    assert (asset.size, asset.offset) == (None, 0)
    assert np.array_equal(asset.array(), images[2])
    assert asset.bytes() == (COAST / "coast_dir/DATA/tile_02/s2/img.tif").read_bytes()
    flat = taco.load(COAST / "flat.tacozip")
    assert np.array_equal(flat.read("chip_01.tif").array(), images[1])
    with flat.loader(batch_size=3, shuffle=False, pixels=chaski.Pixels(dtype="native")) as loader:
        assert np.array_equal(next(iter(loader))["image"], images[:3])


def test_conditions_chain():
    ds = taco.load(parts())
    near = ds.filter_bbox(-61.8, 38.4, -63, 38)  # both pairs swapped, as tacoreader takes them
    assert near.ids == ["tile_04", "tile_05"]
    assert ds.filter_bbox(-63.1, 38, -61.8, 38.6, within=True).ids == ["tile_04"]
    # (-63, 38) and (-61.8, 38.4) in UTM zone 20N, by PROJ
    utm = ds.filter_bbox(499990, 4205900, 605000, 4250800, bbox_crs="EPSG:32620")
    assert utm.ids == ["tile_04", "tile_05"]
    assert ds.filter_bbox(10, -90, -100, 90).ids == []  # across the antimeridian
    with pytest.raises(chaski.SpecError, match="south, 40, is greater than its north"):
        len(ds.filter_bbox(-63, 40, -60, 37))
    with pytest.raises(chaski.SpecError, match="bbox_crs"):
        len(ds.filter_bbox(499990, 4205900, 605000, 4250800))
    with pytest.raises(chaski.SpecError, match="bbox_crs is 'utm'"):
        ds.filter_bbox(0, 0, 1, 1, bbox_crs="utm")
    day = datetime.date(2020, 3, 5)
    assert ds.filter_datetime(day).ids == ["tile_02"]
    until = datetime.datetime(2020, 5, 5, 10)
    assert ds.filter_datetime((day, until)).ids == ["tile_02", "tile_03", "tile_04"]
    best = ds.sql("SELECT id, rank, cloud_cover * 2 AS c2 FROM data ORDER BY rank DESC LIMIT 6")
    assert best.where("c2 > 20").filter_datetime("2020-09-01/..").ids == ["tile_11", "tile_08"]
    assert best.ids[0] == "tile_11"
    assert len(ds) == 12
    many = "id IN ('tile_07', " + ", ".join(f"'roi_{k:06d}'" for k in range(20000)) + ")"
    assert ds.where(many).sql(f"SELECT * FROM data WHERE {many}").ids == ["tile_07"]
    fields = {"rank": "rank"}
    assert ranks(
        best.loader(fields=fields, batch_size=4, shuffle=False, rows=chaski.Rows(where="c2 < 20"))
    ) == [9]


REFUSED = (  # by the engine; each has one order of rows
    "WITH a AS (SELECT * FROM data WHERE rank < 5) SELECT id FROM a ORDER BY id",
    "SELECT id FROM data WHERE rank < 2 UNION ALL SELECT id FROM data WHERE rank > 9 ORDER BY id",
    "SELECT id FROM data EXCEPT SELECT id FROM data WHERE rank < 5 ORDER BY id",
    "SELECT id FROM data WHERE rank = (SELECT max(rank) FROM data)",
    "SELECT id FROM data WHERE id IN (SELECT id FROM data WHERE rank < 3) ORDER BY id",
    "SELECT count(*) AS n FROM (SELECT id FROM data) t",
    "SELECT a.id, b.rank FROM data a LEFT JOIN data b ON a.rank = b.rank + 6 ORDER BY a.id",
    "SELECT count(*) AS n FROM data USING SAMPLE 3 ROWS",
    "SELECT DISTINCT ON (rank % 3) rank % 3 AS k, id FROM data ORDER BY k, id",
    "SELECT rank % 3 AS k, count(*) AS n FROM data GROUP BY ALL ORDER BY ALL",
    "SELECT COLUMNS('^i') FROM data ORDER BY id",
    "SELECT * REPLACE (rank + 1 AS rank) FROM data ORDER BY id",
    "SELECT id, DATE '2020-01-31' + INTERVAL 1 MONTH AS t FROM data ORDER BY id",
    "SELECT count(*) FILTER (WHERE rank < 3) AS n FROM data",
    "SELECT quantile_cont(rank, [0.1, 0.9]) AS q FROM data",
    "SELECT string_agg(id, ',' ORDER BY id) AS s, mode(rank % 2) AS m FROM data",
    "SELECT strftime(DATE '2020-02-03', '%d/%m') AS s, regexp_replace(id, '_', '-') AS r FROM data",
    "SELECT id FROM data WHERE rank IS DISTINCT FROM 3 ORDER BY id",
    "SELECT id FROM data WHERE id SIMILAR TO '.*_1.' ORDER BY id",
    "SELECT substring(id FROM 6 FOR 2) AS s, trim(BOTH 't' FROM id) AS t FROM data ORDER BY id",
    "SELECT id, row_number() OVER (ORDER BY rank) AS n FROM data QUALIFY n < 3 ORDER BY id",
)


@pytest.mark.parametrize("query", REFUSED)
def test_a_refused_query_has_a_way_out(query, monkeypatch):
    """With duckdb a refused query gives what duckdb gives; without, the error says what to do."""
    ds = taco.load(COAST / "coast.tacozip")
    with monkeypatch.context() as without:
        without.setitem(sys.modules, "duckdb", None)
        with pytest.raises(chaski.UnsupportedError, match="needs DuckDB.*pip install duckdb"):
            ds.sql(query).data  # noqa: B018
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect() as connection:
        connection.register("data", ds.data)
        want = connection.execute(query).fetchall()
    got = ds.sql(query).data
    assert list(zip(*(got[c].to_pylist() for c in got.column_names), strict=True)) == want


def test_duckdb_runs_what_the_engine_refuses():
    duckdb = pytest.importorskip("duckdb")
    ds = taco.load(COAST / "coast.tacozip")
    stored = ds.data
    windowed = (
        "SELECT id, row_number() OVER (ORDER BY rank DESC) AS n, sum(rank) OVER () AS s FROM data"
    )
    with duckdb.connect() as connection:
        connection.register("data", stored)
        want = connection.execute(windowed + " ORDER BY id").fetchall()
    got = ds.sql(windowed).data
    assert sorted(zip(*(got[c].to_pylist() for c in got.column_names), strict=True)) == want
    south = ds.where("rank < 3")
    assert south.sql("SELECT list(id) AS l, 5 & 3 AS b FROM data").data["b"].to_pylist() == [1]
    assert len(south.sql("SUMMARIZE SELECT id FROM data").data) == 1
    joined = "SELECT count(*) AS n FROM level1 QUALIFY row_number() OVER () = 1"
    assert ds.sql(joined).data["n"].to_pylist() == [
        ds.sql("SELECT count(*) AS n FROM level1").data["n"][0].as_py()
    ]
    secret = stored  # noqa: F841  (a query sees no variables)
    for wrong in (
        "SELECT id FROM data; SELECT 1",
        "COPY data TO 'x.csv'",
        "SELECT nosuch FROM data QUALIFY row_number() OVER () = 1",
        "SELECT * FROM secret QUALIFY row_number() OVER () = 1",
        "SELECT * FROM read_csv('/etc/passwd')",
        "SELEC 1",
    ):
        with pytest.raises((chaski.SpecError, chaski.UnsupportedError, chaski.NotFoundError)):
            ds.sql(wrong).data  # noqa: B018


def test_what_needs_duckdb_says_so(monkeypatch):
    monkeypatch.setitem(sys.modules, "duckdb", None)
    ds = taco.load(COAST / "coast.tacozip")
    with pytest.raises(chaski.UnsupportedError, match="needs DuckDB.*pip install duckdb"):
        ds.sql("SELECT row_number() OVER () AS n FROM data").data  # noqa: B018
    with pytest.raises(chaski.SpecError, match="syntax error"):
        ds.sql("SELEC 1").data  # noqa: B018


def test_what_was_learnt_is_not_pickled():
    ds = taco.load(COAST / "coast.tacozip").where("rank < 4")
    before = pickle.dumps(ds)
    folder = ds.read(1)
    assert "s2" in folder
    assert pickle.dumps(ds) == before
    again = pickle.loads(pickle.dumps(folder))
    assert (again.path, again.ids) == (folder.path, folder.ids)


def test_errors_come_with_the_question():
    with pytest.raises(chaski.NotFoundError):
        taco.load(COAST / "nothing.tacozip")
    ds = taco.load(COAST / "coast.tacozip")
    with pytest.raises(chaski.UnsupportedError, match='no column "id"'):
        len(ds.sql("SELECT count(*) AS n FROM data"))
    with pytest.raises(chaski.SpecError):
        len(ds.where("rank <"))
    with pytest.raises(chaski.NotFoundError, match="nothing"):
        len(ds.where("nothing < 1"))
    with pytest.raises(chaski.SpecError):
        len(ds.filter_datetime("2021-01-01/2020-01-01"))
    with pytest.raises(chaski.SpecError):
        ds.filter_bbox("west", 0, 1, 1)
    with pytest.raises(chaski.SpecError, match="finite"):
        ds.filter_bbox(float("nan"), 0, 1, 1)
    for empty in ("", "  "):
        for ask in (ds.where, ds.sql, ds.filter_datetime):
            with pytest.raises(chaski.SpecError, match="is empty"):
                ask(empty)
        for option in ("where", "datetime", "split"):
            with pytest.raises(
                chaski.SpecError, match="is empty|leave it out for all samples|must have a value"
            ):
                ds.loader(fields=FIELDS, batch_size=1, rows=chaski.Rows(**{option: empty}))
    for mode in ("union", "", None, 3):
        with pytest.raises(chaski.SpecError, match=rf"column_mode is {mode!r}: .* fill_missing"):
            taco.load(COAST / "coast.tacozip", column_mode=mode)
        with pytest.raises(chaski.SpecError, match=rf"column_mode is {mode!r}: .* fill_missing"):
            ds.concat(ds, column_mode=mode)
    with pytest.raises(chaski.SpecError, match=r"several base_paths: \[None, '/b'\]"):
        ds.concat(taco.load(COAST / "coast.tacozip", "/b"))
    with pytest.raises(chaski.SpecError, match="at least 2"):
        taco.concat([ds])
    with pytest.raises(chaski.SpecError, match="at least 2"):
        taco.concat([ds, "coast.tacozip"])
    with pytest.raises(chaski.UnsupportedError, match='no column "id"'):
        len(ds.concat(ds.sql("SELECT rank FROM data")))
    with pytest.raises(chaski.UnsupportedError, match="not all tables have the columns"):
        len(ds.concat(ds.sql("SELECT id, rank FROM data"), column_mode="strict"))
    with pytest.raises(chaski.NotFoundError, match="none of its"):
        ds.where("rank > 99").loader(fields=FIELDS, batch_size=1)


def test_concat_and_what_the_collection_says():
    a, b, c = (taco.load(p) for p in parts())
    ds = a.concat(b, c)
    assert ds.ids == [f"tile_{k:02d}" for k in range(12)]
    document = json.loads((COAST / "coast_dir" / "COLLECTION.json").read_text())
    folder = taco.load(COAST / "coast_dir")
    assert folder.collection == document
    assert folder.pit_schema == document["taco:pit_schema"]
    assert folder.field_schema == document["taco:field_schema"]
    assert (folder.levels, folder.format) == (3, "TACO 2 (FOLDER)")
    assert [Path(f).name for f in ds.files] == [p.name for p in parts()]


def test_concat_of_what_conditions_leave(chips):
    images, _ = chips
    a, b, c = (taco.load(p) for p in parts())
    north = a.filter_bbox(-63, 38, -61.8, 40)
    south = c.sql("SELECT * FROM data WHERE cloud_cover < 20 ORDER BY rank DESC")
    ds = north.concat(south, b.where("rank = 6"))
    assert ds.ids == [*north.ids, *south.ids, "tile_06"]
    assert ds.ids == ["tile_00", "tile_01", "tile_11", "tile_10", "tile_09", "tile_06"]
    assert ds.sql("SELECT id FROM data ORDER BY rank LIMIT 3").ids == ds.ids[:2] + ["tile_06"]
    assert np.array_equal(ds.read(2).read("s2/img.tif").array(), images[11])
    again = ds.where("rank > 0").concat(b.filter_datetime("2020-06-01/..").where("rank < 6"))
    assert again.ids == [*ds.ids[1:], "tile_05"]
    fields = {"image": "s2/img.tif", "rank": "rank"}
    assert sorted(ranks(again.loader(fields=fields, batch_size=3))) == [1, 5, 6, 9, 10, 11]
    twice = a.where("rank = 3").concat(a.where("rank = 0"))  # of one container
    assert twice.ids == ["tile_03", "tile_00"]

    pytest.importorskip("pyarrow")
    few = b.sql("SELECT id, rank, 'x' AS more FROM data LIMIT 1")
    table = ds.concat(few).data
    assert table.column_names == ["id", "rank", "internal:source_file"]
    assert table["internal:source_file"].to_pylist()[1:3] == [parts()[0].name, parts()[2].name]
    filled = ds.concat(few, column_mode="fill_missing").data
    assert filled["more"].to_pylist() == [None] * 6 + ["x"]
    assert filled["region"].to_pylist() == ["north"] * 2 + ["south"] * 3 + ["middle", None]
    same = few.concat(few, column_mode="strict").data
    assert same.column_names == ["id", "rank", "more", "internal:source_file"]
    below = ds.sql('SELECT DISTINCT "l0:id" AS id FROM l2')
    assert below.ids == sorted(ds.ids[:2]) + ["tile_09", "tile_10", "tile_11", "tile_06"]


def test_what_joining_columns_does_is_said_once():
    a, b, _ = (taco.load(p) for p in parts())
    few = b.sql("SELECT id, 'x' AS rank, 1 AS more FROM data LIMIT 1")
    ds = a.sql("SELECT id, rank, region FROM data").concat(few, column_mode="fill_missing")
    with pytest.warns(UserWarning) as said:
        assert ds.ids == [f"tile_{k:02d}" for k in range(5)]
    assert {str(w.message) for w in said} == {
        'level0: column "region" is filled with null: it is not in dataset 2 of 2',
        'level0: column "more" is filled with null: it is not in dataset 1 of 2',
        'level0: column "rank" is joined as strings: it is int64 in dataset 1 of 2',
    }
    assert {w.filename for w in said} == {__file__}  # the line that asks, not one of the package
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert ds.where("more = 1").ids == ["tile_04"]
        assert a.concat(b).ids == [f"tile_{k:02d}" for k in range(8)]


@pytest.mark.filterwarnings("ignore:level0")
def test_a_loader_joins_columns_as_its_dataset_does():
    folder, north = COAST / "coast_dir", parts()[0]  # which has places of bytes, and a FOLDER none
    fields = {"at": "internal:offset"}
    filled = taco.load([folder, north], column_mode="fill_missing").where('"internal:size" > 0')
    ids = filled.ids
    assert ids == taco.load(north).ids
    with filled.loader(fields=fields, batch_size=len(ids)) as loader:
        got = [int(v) for v in next(iter(loader))["at"]]
    with taco.load(north).loader(fields=fields, batch_size=len(ids)) as loader:
        assert got == [int(v) for v in next(iter(loader))["at"]]
    joined = taco.load(folder).concat(
        taco.load(north).where("rank < 2"), column_mode="fill_missing"
    )
    with joined.where('"internal:size" > 0').loader(fields=fields, batch_size=2) as loader:
        assert len(next(iter(loader))["at"]) == 2
    with pytest.raises(chaski.UnsupportedError, match="not all tables have the columns"):
        taco.load([folder, north], column_mode="strict").loader(fields={"r": "rank"}, batch_size=1)


def test_what_the_engine_warns_of_is_logged(caplog):
    a, b, _ = (taco.load(p) for p in parts())
    ds = a.concat(b.sql("SELECT id, 1 AS more FROM data"), column_mode="fill_missing")
    with ds.loader(fields={"image": "s2/img.tif"}, batch_size=2) as loader:
        assert len(list(loader)) == 4
    assert '"more" is filled' in logged(caplog, '"more" is filled')
    said = [r for r in caplog.records if r.name == "chaski"]
    assert {r.levelname for r in said} == {"WARNING"}
    assert said[0].message.startswith('level0: column "') and " (source=" in said[0].message


def test_tables_need_pyarrow_and_nothing_else_does(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    ds = taco.load(COAST / "coast.tacozip").where("rank = 3")
    assert ds.ids == ["tile_03"]
    with pytest.raises(ImportError, match="pip install pyarrow"):
        _ = ds.data


def test_data_is_what_the_writer_wrote():
    pytest.importorskip("pyarrow")
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    ds = taco.load(COAST / "coast_dir")
    assert ds.data.equals(pq.read_table(COAST / "coast_dir/METADATA/level0.parquet"))
    level2 = pq.read_table(COAST / "coast_dir/METADATA/level2.parquet")
    images = level2.filter(pc.equal(level2["id"], "img.tif"))
    assert ds.read(1).read("s2").data.equals(images.slice(1, 1))
    few = ds.sql("SELECT rank, region FROM data WHERE rank > 0 ORDER BY rank DESC").data
    assert few.to_pydict() == {"rank": [2, 1], "region": ["north", "north"]}
    groups = taco.load(parts()).sql("SELECT region, sum(rank) AS s FROM data GROUP BY region").data
    assert dict(zip(*groups.to_pydict().values(), strict=True)) == {
        "north": 6,
        "middle": 22,
        "south": 38,
    }


def containers() -> list[Path]:
    return sorted(DATA.glob("containers/taco-v2/*/*.tacozip"))


@pytest.mark.parametrize("path", containers(), ids=lambda p: f"{p.parent.name}-{p.name}")
def test_tables_of_all_types(path, tmp_path):
    """The engine sends what pyarrow reads from the Parquet file in the ZIP."""
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    data = path.read_bytes()
    header = np.frombuffer(data[45:157], "<u8").reshape(7, 2)
    offset, size = (int(v) for v in header[0])
    want = pq.read_table(pa.BufferReader(data[offset : offset + size]))
    got = taco.load(path).data
    assert got.column_names == want.column_names
    pads = np.array([i.startswith("__TACOPAD__") for i in want["id"].to_pylist()])
    want = want.filter(pa.array(~pads))
    for name in nonempty(want.column_names):
        assert got[name].type == want[name].type
        assert got[name].to_pylist() == want[name].to_pylist(), name


def test_what_users_of_tacoreader_look_for(chips):
    images, _ = chips
    ds = taco.load(parts())
    document = taco.load(parts()[0]).collection
    with ds as same:
        assert (same.id, same.title, same.tasks) == ("coast", "Coast", document["tasks"])
        assert same.extent == document["extent"]
        assert same.licenses == ["CC-BY-4.0"]
        assert same.version == document["dataset_version"]
        assert same.description == document["description"]
    assert taco.load(COAST / "flat.tacozip").levels == 1
    midnight = datetime.datetime(2020, 3, 5)
    assert ds.filter_datetime(midnight).ids == ["tile_02"]
    assert ds.filter_datetime(midnight.replace(hour=10)).ids == ["tile_02"]
    assert ds.filter_datetime(midnight.replace(hour=9)).ids == []
    utc, east = datetime.timezone.utc, datetime.timezone(datetime.timedelta(hours=2))
    assert ds.filter_datetime(midnight.replace(tzinfo=utc)).ids == ["tile_02"]
    assert ds.filter_datetime(midnight.replace(tzinfo=east)).ids == []  # the instant, no day of UTC
    assert ds.filter_datetime(midnight.replace(hour=12, tzinfo=east)).ids == ["tile_02"]
    asset = ds.read("tile_05").read("s2").read("img.tif")
    assert os.fspath(asset) == asset.vsi == asset.name
    for uri, want in {
        "https://h/a.zip": "/vsisubfile/1_2,/vsicurl/https://h/a.zip",
        "s3://b/a.zip": "/vsisubfile/1_2,/vsis3/b/a.zip",
        "file:///a.zip": "/vsisubfile/1_2,/a.zip",
    }.items():
        assert taco.Asset("a", "a", uri, 1, 2).vsi == want
    assert taco.Asset("a", "a", "gs://b/a.tif", 0, None).vsi == "/vsigs/b/a.tif"
    with pytest.raises(chaski.UnsupportedError, match="GDAL has no name"):
        os.fspath(taco.Asset("a", "a", "hf://datasets/a/b/c.zip", 1, 2))
    rasterio = pytest.importorskip("rasterio")
    with rasterio.open(asset) as f:
        assert np.array_equal(f.read(), images[5])


def test_flatten():
    """Rows of files with the columns of their parents, and their locations."""
    pytest.importorskip("pyarrow")
    ds = taco.load(parts())
    chosen = ds.where("rank IN (3, 9)").concat(ds.where("rank = 0"))
    for of, ranks in ((ds, list(range(12))), (chosen, [3, 9, 0]), (ds.where("rank > 99"), [])):
        flat = of.flatten()
        want = [(f"tile_{r:02d}", i) for r in ranks for i in ("img.tif", "label.tif")]
        got = list(zip(flat["l0:id"].to_pylist(), flat["l2:id"].to_pylist(), strict=True))
        assert sorted(got) == sorted(want)
        for (sample, leaf), path in zip(got, flat["gdal_vsi"].to_pylist(), strict=True):
            folder = "s2" if leaf == "img.tif" else "ref"
            assert of.read(sample).read(folder).read(leaf).vsi == path
    assert flat.column_names[:3] == ["l2:id", "l2:type", "l2:classes"]
    assert flat.column_names[-1] == "gdal_vsi"
    assert not [c for c in flat.column_names if "internal" in c]
    assert len(ds.flatten(1)) == 0  # all are folders
    single = taco.load(COAST / "flat.tacozip")
    assert single.flatten()["l0:id"].to_pylist() == single.ids
    assert single.flatten()["gdal_vsi"].to_pylist() == [a.vsi for a in single]
    with pytest.raises(chaski.NotFoundError):
        ds.flatten(3)


def test_tables_of_locations(tmp_path, monkeypatch):
    """Locations in a table are rasters, on every way in, as is the name that the engine gives."""
    pa = pytest.importorskip("pyarrow")
    parquet, csv = pytest.importorskip("pyarrow.parquet"), pytest.importorskip("pyarrow.csv")
    monkeypatch.chdir(tmp_path)
    shutil.copy(COAST / "flat.tacozip", tmp_path)
    assets = list(taco.load("flat.tacozip"))
    want = np.stack([a.array() for a in assets])
    for column in ([a.vsi for a in assets], [a.vsi.replace(f"{tmp_path}/", "") for a in assets]):
        table = pa.table({"id": [a.id for a in assets], "image": column})
        parquet.write_table(table, "t.parquet")
        csv.write_csv(table, "t.csv")
        for source in ("t.parquet", "t.csv", table, table.to_pydict(), column):
            fields = {"fields": {"image": "image"}} if source is not column else {}
            with chaski.load(source, batch_size=len(want), shuffle=False, **fields) as loader:
                (batch,) = loader
                assert np.array_equal(batch["image"], want), (source, column)


def test_bytes_of_remote_samples(tmp_path, binary):
    """Of a container and of a plain file on a web server, and by the command."""
    for name in ("coast.tacozip", "flat.tacozip"):
        shutil.copy(COAST / name, tmp_path)
    here = {a.path: a.bytes() for a in taco.load(COAST / "flat.tacozip")}
    with web(tmp_path) as (url, _):
        far = taco.load(f"{url}/flat.tacozip")
        assert {a.path: a.bytes() for a in far} == here
        whole = taco.Asset("flat", "flat", f"{url}/flat.tacozip", 0, None)
        assert whole.bytes() == (COAST / "flat.tacozip").read_bytes()
        with pytest.raises(chaski.NotFoundError):
            taco.Asset("a", "a", f"{url}/none.tif", 0, None).bytes()
        out = tmp_path / "tile"
        subprocess.run([binary, "extract", "-o", out, f"{url}/coast.tacozip::tile_05"], check=True)
        files = {str(p.relative_to(out)): p.read_bytes() for p in out.rglob("*.tif")}
        near = taco.load(COAST / "coast.tacozip").read("tile_05")
        want = {f"{f.id}/{a.id}": a.bytes() for f in near for a in f}
        assert files == want
        assert len(want) == 2


NARROW = DATA / "narrow"


def tree(node: taco.Dataset | taco.Folder) -> dict:
    """`read` finds ids, and the path by which GDAL opens a file without the container."""
    return {s.id: tree(s) if isinstance(s, taco.Folder) else s.vsi.split(",")[0] for s in node}


def flat(table) -> list[list[str]]:
    names = ["l0:id", "l1:id", "l2:id", "gdal_vsi"]
    rows = zip(*(table[n].to_pylist() for n in names), strict=True)
    return [[a, b, c, v.split(",")[0]] for a, b, c, v in rows]


def test_filters_of_lower_levels_narrow_what_lies_below():
    """Answers of tacoreader (testdata/narrow/make.py); several conditions hold for the same row."""
    pytest.importorskip("pyarrow")
    ds = taco.load(NARROW / "dates.tacozip")
    answers = json.loads((NARROW / "answers.json").read_text())["filters"]
    assert len({len(a["flatten"]) for a in answers}) > 4
    for a in answers:
        found = ds.filter_datetime(a["span"], level=a["level"])
        assert tree(found) == a["tree"]
        assert found.ids == sorted(a["tree"])
        assert sorted(flat(found.flatten())) == a["flatten"]
        assert found.is_rsut() == a["rsut"] or not a["tree"]
        for sample in found:
            assert sample.data["id"].to_pylist() == sample.ids
        # Another condition on the same samples, an SQL query, and groups keep the selection.
        if found.ids:
            few = found.where("rank > 1").flatten()
            ranks = dict(zip(ds.data["id"].to_pylist(), ds.data["rank"].to_pylist(), strict=True))
            assert sorted(flat(few)) == [r for r in a["flatten"] if ranks[r[0]] > 1]
            both = taco.concat([ds, found])
            assert flat(both.flatten()) == flat(ds.flatten()) + flat(found.flatten())
    for a in nonempty(answers[1::7]):
        for b in nonempty(answers[::5]):
            one = ds.filter_datetime(a["span"], level=a["level"])
            chained = one.filter_datetime(b["span"], level=b["level"])
            want = [r for r in a["flatten"] if r in b["flatten"]]
            assert sorted(flat(chained.flatten())) == want
            # The samples are those that meet each condition, as in a loader.
            assert set(chained.ids) == set(a["tree"]) & set(b["tree"])


def test_flatten_is_in_the_order_of_the_samples():
    pytest.importorskip("pyarrow")
    ds = taco.load(NARROW / "dates.tacozip")
    for order in ("rank", "rank DESC"):
        best = ds.sql(f"SELECT * FROM data ORDER BY {order} LIMIT 3")
        got = [r[:3] for r in flat(best.flatten())]
        files = [["t0", "t1", "t2"], ["img.tif", "label.tif"]]
        assert got == [[i, t, f] for i in best.ids for t in files[0] for f in files[1]]
    answers = json.loads((NARROW / "answers.json").read_text())
    for by, down, most, want in answers["sorted"]:
        found = ds.filter_datetime("2018-01-01/2018-12-31", level=1) if most == 7 else ds
        found = found.sort(by, descending=down)
        got = (found if most is None else found.limit(most)).flatten()
        times = [t for t in got[by].to_pylist() if t]
        assert times == sorted(times, reverse=down)
        if by.startswith("l2:"):  # no two files have one time; two files of a date do
            assert flat(got) == want
        assert len(got) == len(want)
    assert ds.sort("l0:rank").ids == ds.ids
    with pytest.raises(chaski.NotFoundError, match='no column "rank"'):
        ds.sort("rank").flatten()
    with pytest.raises(chaski.SpecError, match="n is -1"):
        ds.limit(-1)
    assert ds.limit(np.int64(2)).flatten().num_rows == 2
    with pytest.raises(chaski.SpecError, match="level is 'x'"):
        ds.flatten("x")  # type: ignore[arg-type]
    for wrong in (slice(0, 2), True, 1.5):
        with pytest.raises(TypeError, match="a position, an id or a path of ids"):
            ds[wrong]  # type: ignore[index]


def test_what_the_reader_says_of_its_document_and_statistics():
    pytest.importorskip("pyarrow")
    ds = taco.load(NARROW / "dates.tacozip")
    answers = json.loads((NARROW / "answers.json").read_text())
    for name in ("id", "version", "curators", "keywords", "title", "licenses", "providers"):
        assert getattr(ds, name) == answers[name], name
    raw = ds.data_raw
    assert [v.split(",")[0] for v in raw["internal:gdal_vsi"].to_pylist()] == answers["data_raw"]
    assert set(raw["internal:source_path"].to_pylist()) == set(ds.files)
    folder = ds.sql("SELECT id, rank FROM data ORDER BY rank DESC LIMIT 2").read(1).read("t0")
    below = folder.data_raw
    assert below["internal:gdal_vsi"].to_pylist() == [a.vsi for a in folder]
    assert below.column_names[:-2] == folder.data.column_names
    shown = ds.where("rank < 3")._repr_html_()
    assert "<th>samples</th><td>3</td>" in shown
    assert "rank &lt; 3" in shown


def test_histograms_of_a_streaming_taco_are_no_sample():
    """The folder "histogram" of TACO 0.2 counts nowhere, and is read by its path."""
    path = DATA / "containers/taco-v1/stream_n1.taco"
    ds = taco.load(path)
    want = ["roi_0", "roi_1", "roi_2", "roi_3"]
    assert (len(ds), ds.ids) == (4, want)
    assert [s.id for s in ds] == want
    below = [a.path for s in ds for a in s]
    assert len(below) == 8
    with ds.loader(fields={"id": "tortilla:id"}, batch_size=1, shuffle=False) as loader:
        assert [str(b["id"][0]) for b in loader] == want
    assert chaski.read(f"{path}::histogram/hrf").shape[1:] == (4, 100)
    if pytest.importorskip("pyarrow"):
        assert ds.sql("SELECT count(*) AS n FROM data").data["n"].to_pylist() == [4]
        assert ds.sql("SELECT count(*) AS n FROM level1").data["n"].to_pylist() == [8]
        assert ds.flatten()["l0:tortilla:id"].to_pylist() == [i for i in want for _ in range(2)]
        assert sorted(ds.flatten()["l1:tortilla:id"].to_pylist()) == sorted(
            p.split("/")[1] for p in below
        )


def test_nanoseconds_arrive(tmp_path):
    """Timestamps in nanoseconds are what pyarrow reads, alone, selected, sorted and joined."""
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    def folder(name, unit, ns):
        path = tmp_path / name
        shutil.copytree(COAST / "coast_dir", path)
        level = path / "METADATA" / "level0.parquet"
        table = pq.read_table(level)
        times = pa.array(ns, pa.int64()).cast(pa.timestamp(unit))
        zoned = pa.array(ns, pa.int64()).cast(pa.timestamp(unit, "UTC"))
        table = table.append_column("t", times).append_column("z", zoned)
        pq.write_table(table, level, version="2.6")
        return taco.load(path), pq.read_table(level)

    fine, want = folder("fine", "ns", [1577934245123456789, None, -1])
    for name in ("t", "z"):
        assert want.schema.field(name).type.unit == "ns"
        assert fine.data.schema.field(name).type == want.schema.field(name).type
        for query, rows in {
            "SELECT * FROM data": [0, 1, 2],
            f"SELECT id, {name} FROM data WHERE {name} IS NOT NULL ORDER BY {name}": [2, 0],
            f"SELECT max({name}) AS {name} FROM data": [0],
        }.items():
            got = fine.sql(query).data[name]
            assert got.cast(pa.int64()).equals(want[name].take(rows).cast(pa.int64())), query
    coarse, _ = folder("coarse", "us", [32503680000000000, 0, 1])  # the year 3000
    both = fine.concat(coarse).data
    assert both.schema.field("t").type == pa.timestamp(
        "us"
    )  # 64 bits of nanoseconds do not hold it
    assert both["t"].cast(pa.int64()).to_pylist()[2:] == [-1, 32503680000000000, 0, 1]
    near = fine.concat(coarse.where("rank > 0")).data
    assert near["t"].cast(pa.int64()).to_pylist() == [1577934245123456789, None, -1, 0, 1000]


def answers() -> list[dict]:
    """The manifest's queries on whose rules the original reader and chaski agree."""
    lines = (DATA / "containers" / "manifest.jsonl").read_text().splitlines()
    out = []
    for q in map(json.loads, lines):
        ours = q["type"] == "query" and q.get("family") == "taco-v2-current" and "error" not in q
        if not ours or not str(q["reader"]).startswith("tacoreader") or isinstance(q["path"], list):
            continue
        timed = "T" in q.get("range", "")  # that reader takes instants for whole days
        if q["op"] in ("read", "filter_bbox") or q["op"] == "filter_datetime" and not timed:
            out.append(q)
    return out


def test_answers_of_the_original_reader():
    base, tried = DATA / "containers", 0
    for q in answers():
        ds = taco.load(base / q["path"])
        column = q.get("geometry_col") or q.get("column") or "auto"
        if q["op"] == "read":
            found = ds
            for key in q["keys"]:
                found = found.read(key)
            if "vsi" in q:
                assert found.name.replace(f"{base}/", "") == q["vsi"], q
            else:
                assert found.ids == q["frame_ids"], q
        else:
            if q["op"] == "filter_bbox":
                got = ds.filter_bbox(*q["bbox"], column, q["level"])
            else:
                got = ds.filter_datetime(q["range"], column, q["level"])
            assert len(got) == q["n"], q
            if "ids" in q:  # our order is that of storage; the reader has none at deeper levels
                assert got.ids == (sorted(q["ids"]) if q["level"] else q["ids"]), q
        tried += 1
    assert tried > 20


def test_tortillas_and_streaming_tacos(binary):
    """Rows, assets and single chunks are read through the same functions."""
    flat = taco.load(DATA / "containers/tortilla/flat_bytes.tortilla")
    assert (flat.format, flat.levels) == ("Tortilla 0.5", 1)
    assert flat.ids[:2] == ["lima-0", "ñandú-1"]
    train = flat.where("\"tortilla:data_split\" = 'train'")
    assert set(train.ids) < set(flat.ids)
    assert ranks_of_split(flat) == train.ids
    stream = taco.load(DATA / "containers/taco-v1/stream_n2_top.taco")
    assert stream.read("roi_1").ids == ["t0", "t1"]
    image = stream.read("roi_1/t0/t0-img")
    whole = image.array()
    assert whole.shape == (4, 128, 128)
    for k in range(16):  # tiles of 64, four a band
        chunk = chaski.read(f"{stream.files[0]}::{image.path}::{k}")
        y, x = 64 * (k % 4 // 2), 64 * (k % 2)
        assert np.array_equal(chunk[0], whole[k // 4, y : y + 64, x : x + 64])
    loader = stream.loader(fields={"image": "t0/t0-img"}, batch_size=1, window=(32, 64))
    with loader:
        assert [b["image"].shape for b in loader] == [(1, 4, 32, 64)] * 2


def ranks_of_split(ds: taco.Dataset) -> list[str]:
    """The ids of a loader's samples of the part "train"."""
    fields = {"id": "tortilla:id"}
    with ds.loader(
        fields=fields, batch_size=1, rows=chaski.Rows(split="train"), shuffle=False
    ) as loader:
        return [str(b["id"][0]) for b in loader]


def test_image_and_mask_of_a_container_train(binary):
    """A few steps of PyTorch learn the labels of a TACO ZIP, as in `make demo`."""
    torch = pytest.importorskip("torch")
    import chaski.torch

    source = COAST / "coast.tacozip"
    fields = {"image": chaski.Field(column="s2/img.tif", normalize="mean_std")}
    stats = chaski.stats(source, fields=fields)
    fields["mask"] = chaski.Field(column="ref/label.tif", dtype="native")

    def batches(split: str, window: tuple[int, int] | None):
        return chaski.torch.IterableDataset(
            source,
            fields=fields,
            stats=stats,
            batch_size=6,
            rows=chaski.Rows(split=split),
            window=window,
            seed=1,
        )

    torch.manual_seed(0)
    net = torch.nn.Conv2d(3, 2, 1)
    step = torch.optim.Adam(net.parameters(), 0.1)
    losses = []
    train = batches("train", (16, 16))
    for _ in range(40):
        for batch in train:
            want = batch["mask"][:, 0].long().masked_fill(~batch["valid"][:, None, None], 255)
            loss = torch.nn.functional.cross_entropy(net(batch["image"]), want, ignore_index=255)
            step.zero_grad()
            loss.backward()
            step.step()
            losses.append(float(loss.detach()))
    right = total = 0
    for batch in batches("validation", None):
        good = batch["valid"][:, None, None].expand(-1, SIDE, SIDE)
        hit = net(batch["image"]).argmax(1) == batch["mask"][:, 0]
        right, total = right + int(hit[good].sum()), total + int(good.sum())
    assert losses[-1] < losses[0] / 2
    assert right / total > 0.95
    assert total == 3 * SIDE * SIDE


@pytest.mark.parametrize(
    "ask",
    [
        lambda uri: chaski.taco.load(uri).levels,
        lambda uri: chaski.load(uri, batch_size=1),
        lambda uri: chaski.read(uri),
        lambda uri: chaski.info(uri),
    ],
    ids=["taco", "load", "read", "info"],
)
def test_a_server_that_is_not_there(ask):
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))  # and does not listen
        uri = f"http://127.0.0.1:{s.getsockname()[1]}/x.tacozip"
        with pytest.raises(chaski.UnavailableError, match="^http.*refused") as e:
            ask(uri)
    assert e.value.kind == "unavailable"
    assert e.value.file == uri


def test_a_server_that_goes_away_during_a_run(tmp_path):
    scene = tmp_path / "coast.tif"
    scene.write_bytes((DATA / "demo/coast.tif").read_bytes())
    with web(tmp_path) as (url, _):
        with chaski.load(
            f"{url}/coast.tif",
            window=chaski.RandomWindow((16, 16), per_asset=200),
            batch_size=1,
            engine=chaski.Engine(prefetch=1),
            on_bad="skip",  # it says nothing about samples
        ) as loader:
            batches = iter(loader)
            next(batches)
            scene.unlink()
            scene.mkdir()  # connections are closed without an answer
            with pytest.raises(chaski.UnavailableError) as e:
                for _ in batches:
                    pass
    assert (e.value.kind, e.value.file) == ("unavailable", f"{url}/coast.tif")


def test_streaming_taco_trains_over_http(binary):
    """PyTorch learns from windows of a streaming TACO that is never downloaded as a whole."""
    torch = pytest.importorskip("torch")
    name = "stream_n2_top.taco"
    folder = DATA / "containers/taco-v1"
    options = dict(
        fields={"image": "t1/t1-img"}, batch_size=4, window=chaski.RandomWindow((32, 32), 8)
    )
    options |= dict(shuffle=True, seed=3)
    with taco.load(folder / name).loader(**options) as loader:
        local = [b["image"].copy() for b in loader]
    with web(folder) as (url, asked):
        ds = taco.load(f"{url}/{name}")
        assert ds.format == "TACO 0.2 (streaming)"
        assert ds.ids == ["roi_0", "roi_1"]
        net = torch.nn.Sequential(
            torch.nn.Conv2d(4, 2, 1), torch.nn.ReLU(), torch.nn.Conv2d(2, 4, 1)
        )
        torch.manual_seed(0)
        for layer in (net[0], net[2]):
            torch.nn.init.normal_(layer.weight, std=0.5)
        step = torch.optim.Adam(net.parameters(), 0.03)
        losses = []
        with ds.loader(**options) as loader:
            for epoch in range(12):
                for i, batch in enumerate(loader):
                    if epoch == 0:
                        assert np.array_equal(batch["image"], local[i])
                    x = torch.from_numpy(batch["image"].astype(np.float32))
                    x = (x - x.mean((0, 2, 3), True)) / (x.std((0, 2, 3), keepdim=True) + 1)
                    loss = torch.nn.functional.mse_loss(net(x), x)
                    step.zero_grad()
                    loss.backward()
                    step.step()
                    losses.append(float(loss.detach()))
        assert sum(losses[-4:]) < sum(losses[:4]) / 2
        assert len(losses) == 12 * len(local)
        size = (folder / name).stat().st_size
        assert asked
        assert max(n for _, _, n in asked) < size
        image = ds.read("roi_1").read("t1").read("t1-img")
        assert isinstance(image, taco.Asset)
        whole = image.array()
        chunk = ds.read("roi_1").read("t1").read("t1-img::4")
        assert isinstance(chunk, taco.Chunk)
        assert chunk.name == f"{url}/{name}::roi_1/t1/t1-img::4"
        pixels = chunk.array()
        assert np.array_equal(pixels[0], whole[0, 32:64, :32])  # tiles of 32, 16 a band
        asked.clear()
        for k in (5, 7):
            assert ds.read(f"roi_1/t1/t1-img::{k}").array().shape == (1, 32, 32)
        assert len(asked) <= 2  # one range each, if it did not come with the header
        with pytest.raises(chaski.NotFoundError):
            ds.read("roi_1/t1/t1-img::99").array()


def engines() -> list[_engine.LocalEngine]:
    """The engines of this process that have its environment."""
    now = _host.settings(_engine.find_binary(), {})
    return [e for (settings, *_), e in _engine._running.items() if settings == now]


def test_questions_that_take_too_long(binary, tmp_path, monkeypatch):
    ds = taco.load(COAST / "coast.tacozip", timeout=0.5)
    slow = tmp_path / "chaski"
    slow.write_text("#!/bin/sh\nexec sleep 600\n")
    slow.chmod(0o755)
    with monkeypatch.context() as patched:
        patched.setenv("CHASKI_BIN", str(slow))
        with pytest.raises(chaski.DeadlineError):
            len(ds)
    assert len(taco.load(COAST / "coast.tacozip").where("cloud_cover < 9")) == 4


def test_questions_of_threads_and_forks(binary):
    """Threads may ask at the same time, and so may a forked process."""
    ds = taco.load(COAST / "coast.tacozip")
    with futures.ThreadPoolExecutor(4) as pool:
        counts = list(pool.map(lambda k: len(ds.where(f"rank >= {k}")), range(12)))
    assert counts == [12 - k for k in range(12)]
    with multiprocessing.get_context("fork").Pool(1) as pool:
        assert pool.apply(_count, (3,)) == 3
    assert len(ds.where("rank < 5")) == 5


@pytest.mark.parametrize("interrupt", [KeyboardInterrupt, TimeoutError])
def test_an_interrupted_call_of_a_fork_leaves_no_answer(binary, interrupt):
    """What a signal's handler raises while a fork waits is not about the process that answers."""
    assert _rows(1) == 1
    with multiprocessing.get_context("fork").Pool(1) as pool:
        assert pool.apply_async(_interrupted, (interrupt,)).get(300) == 3


def _interrupted(interrupt: type[BaseException]) -> int:
    assert _rows(2) == 2
    process, pipe = _apart._other

    class Interrupted:
        send = staticmethod(pipe.send)

        def recv(self) -> None:
            raise interrupt

    _apart._other = process, Interrupted()
    with pytest.raises(interrupt):
        _rows(7)
    _apart._other = process, pipe
    return _rows(3)


def _rows(k: int) -> int:
    return len(chaski.read(f"{COAST / 'coast.tacozip'}::tile_00/s2/img.tif", b=[0], y=(0, k))[0])


def test_nothing_is_left_unclosed(binary):
    """Neither a process that asked nor one forked from it leaves resources open."""
    code = f"""
import gc, os, chaski
ds = chaski.taco.load({str(COAST / "coast.tacozip")!r})
print(len(ds.where("rank < 3")), flush=True)
pid = os.fork()
if pid == 0:
    gc.collect()
    print(len(ds.where("rank < 2")), flush=True)
    raise SystemExit
os.waitpid(pid, 0)
"""
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-W", "ignore::DeprecationWarning", "-c", code],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout.split(), done.stderr) == (["3", "2"], "")


def test_questions_have_the_environment(binary, monkeypatch):
    """Credentials that are set later apply to the next question."""
    monkeypatch.setenv("CHASKI_JOB", f"environment-{os.getpid()}")  # no loader has its engines
    asked = []
    for token in ("", "", "one", "one", "two", ""):
        if token:
            monkeypatch.setenv("HF_TOKEN", token)
        else:
            monkeypatch.delenv("HF_TOKEN", raising=False)
        assert chaski.info(COAST / "coast.tacozip")
        asked.append(engines()[-1])
    assert asked[0] is asked[1]
    assert asked[2] is asked[3]
    assert len({id(e) for e in asked}) == 4


def test_a_long_question(binary):
    """A list of ids is longer than one message of the service."""
    ds = taco.load(COAST / "coast.tacozip")
    ids = ", ".join(f"'tile_{k:02}'" for k in range(6, 100_000))
    assert len(ds.where(f"id IN ({ids})")) == 6


def _count(k: int) -> int:
    return len(taco.load(COAST / "coast.tacozip").where(f"rank < {k}"))


def test_questions_do_without_low_descriptors(binary):
    """Asking works in a process with more than 1024 open files."""
    code = f"""
import os, resource, chaski
soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (min(4096, hard), hard))
held = [os.open(os.devnull, os.O_RDONLY) for _ in range(1100)]
print(len(chaski.taco.load({str(COAST / "coast.tacozip")!r}).ids))
"""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if hard != resource.RLIM_INFINITY and hard < 1200:
        pytest.skip(f"{hard} descriptors")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "12", done.stderr


@contextlib.contextmanager
def serving(binary: str, root: Path) -> Iterator[str]:
    """A `chaski serve` with one root; yields its address."""
    command = [
        binary,
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--insecure",
        "--root",
        root,
        "--stop-on-eof",
    ]
    with subprocess.Popen(
        [*command, "--log-level", "error"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as p:
        try:
            yield json.loads(p.stdout.readline())["listen"]
        finally:
            p.stdin.close()
            p.wait(300)


def test_a_forked_process_holds_no_engine(binary):
    """The engine ends with the process that asks it, although processes forked from it live on."""
    chaski.info(COAST / "coast.tacozip")
    (held,) = engines()
    pid = os.fork()
    if pid == 0:
        os._exit(0 if held._hold.fileno() < 0 and not engines() else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert held.alive
    assert chaski.info(COAST / "coast.tacozip")
    assert engines() == [held]
