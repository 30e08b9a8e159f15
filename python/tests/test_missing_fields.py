"""Field(missing="fill"): samples that lack a field stay, against rasterio."""

from __future__ import annotations

import csv
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import rasters

import chaski

pytestmark = pytest.mark.usefixtures("one_engine")

rasterio = pytest.importorskip("rasterio", reason="needs rasterio to write rasters")

N = 7
HAS = {"s1": (1, 2, 5, 6), "lc": (0, 2, 6)}


def values(kind: str, k: int) -> np.ndarray:
    bands = {"s2": 3, "s1": 2, "lc": 1}[kind]
    x = np.random.default_rng([ord(kind[1]), k]).integers(1, 200, (bands, 8, 8))
    return x.astype(np.uint8)


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> Path:
    root = tmp_path_factory.mktemp("missing")
    for kind in ("s2", "s1", "lc"):
        (root / kind).mkdir()
        for k in range(N) if kind == "s2" else HAS[kind]:
            x = values(kind, k)
            rasters.write(root / kind / f"{k}.tif", x, dtype="uint8")
    with open(root / "rows.csv", "w", newline="") as f:
        out = csv.writer(f)
        out.writerow(["s2", "s1", "lc", "y", "share", "note"])
        for k in range(N):
            paths = [f"{kind}/{k}.tif" if k in HAS[kind] else "" for kind in ("s1", "lc")]
            out.writerow([f"s2/{k}.tif", *paths, "" if k % 3 else k, "" if k % 2 else k / 4, k])
    return root


SOURCES: dict[str, tuple[str, str]] = {"pairs": (".", "pattern"), "table": ("rows.csv", "column")}


def fields(way: str, **options: Any) -> dict[str, Any]:
    def where(kind: str) -> dict[str, str]:
        return {way: f"{kind}/{{id}}.tif" if way == "pattern" else kind}

    return {
        "s2": chaski.Field(**where("s2")),
        "s1": chaski.Field(**where("s1"), missing="fill", fill=-1, validity="ok", **options),
        "lc": chaski.Field(**where("lc"), missing="fill", dtype="int64", fill=255),
    }


def check(b: Any) -> None:
    for i, s2 in enumerate(np.asarray(b["s2"])):
        k = next(k for k in range(N) if np.array_equal(values("s2", k), s2))
        for kind, fill in (("s1", -1), ("lc", 255)):
            there = k in HAS[kind]
            want = values(kind, k) if there else np.full_like(values(kind, k), fill, np.int64)
            np.testing.assert_array_equal(b[kind][i], want)
            assert b[f"there.{kind}"][i] == there
        assert np.all(np.asarray(b["ok"])[i] == (k in HAS["s1"]))
        assert b["there.s2"][i] == 1
    assert np.all(b["valid"])


@pytest.mark.parametrize("policy", ["error", "skip", "replace", "fill"])
@pytest.mark.parametrize("source", list(SOURCES))
def test_rasters(data, binary, source, policy) -> None:
    place, way = SOURCES[source]
    options: dict[str, Any] = {"fields": fields(way), "on_bad": policy}
    with chaski.load(data / place, batch_size=3, **options) as loader:
        seen = [len(b["s2"]) for b in loader if check(b) is None]
    assert sum(seen) == N and loader.bad.count == 0
    with chaski.load(data / place, batch_size=3, window=4, shuffle=False, **options) as loader:
        b = next(iter(loader))
        assert list(b["there.s1"]) == [0, 1, 1] and not np.any(np.asarray(b["ok"])[0])


@pytest.mark.parametrize("source", list(SOURCES))
def test_ranks_resume_and_samples(data, binary, source) -> None:
    place, way = SOURCES[source]
    options: dict[str, Any] = {"fields": fields(way), "batch_size": 4, "seed": 3}
    with chaski.load(data / place, **options) as loader:
        steps = iter(loader)
        first = next(steps)
        state, second = loader.load_state_dict, next(steps)
        check(second)
    with chaski.load(data / place, **options) as loader:
        next(iter(loader))
        state = loader.state_dict()
    with chaski.load(data / place, **options) as loader:
        loader.load_state_dict(state)
        again = next(iter(loader))
        for name in ("s1", "lc", "there.s1"):
            np.testing.assert_array_equal(again[name], second[name])
        got = loader.fetch([2, 0])
        check(got)
    for rank in range(2):
        with chaski.load(data / place, rank=rank, world_size=2, **options) as loader:
            b = next(iter(loader))
            check(b)
            np.testing.assert_array_equal(b["s1"], np.asarray(first["s1"])[rank::2])


@pytest.mark.parametrize("source", list(SOURCES))
def test_stats_count_what_is_there(data, binary, source) -> None:
    place, way = SOURCES[source]
    got = chaski.stats(data / place, fields=fields(way))
    assert got["samples"] == N
    for kind in ("s1", "lc"):
        want = np.stack([values(kind, k) for k in HAS[kind]]).astype(float)
        np.testing.assert_allclose(got.mean(kind), want.mean((0, 2, 3)))
        np.testing.assert_allclose(got.std(kind), want.std((0, 2, 3)))


def test_numbers_and_strings(data, binary) -> None:
    """A null of integers is 0, of floats NaN, and the tensor says so."""
    named = {
        "s2": chaski.Field(column="s2"),
        "y": chaski.Field(column="y", missing="fill"),
        "c": chaski.Field(column="y", kind="class", missing="fill"),
        "share": chaski.Field(column="share", missing="fill"),
        "note": chaski.Field(column="note", kind="text", missing="fill"),
    }
    with chaski.load(data / "rows.csv", batch_size=N, shuffle=False, fields=named) as loader:
        b = next(iter(loader))
    assert list(b["y"]) == [0 if k % 3 else k for k in range(N)]
    assert list(b["c"]) == [0 if k % 3 else k // 3 for k in range(N)]
    np.testing.assert_array_equal(b["share"], [np.nan if k % 2 else k / 4 for k in range(N)])
    assert list(b["there.y"]) == list(b["there.c"]) == [int(k % 3 == 0) for k in range(N)]
    assert list(b["there.share"]) == [1 - k % 2 for k in range(N)]
    assert list(b["there.note"]) == [1] * N


def test_a_series(data, tmp_path, binary) -> None:
    """Steps that lack a field are nodata, each by itself."""
    rows = ["s2,s1,place,day"]
    for k in range(6):
        s1 = data / f"s1/{k}.tif" if k in HAS["s1"] else ""
        rows.append(f"{data}/s2/{k}.tif,{s1},{k // 3},{k}")
    (tmp_path / "rows.csv").write_text("\n".join(rows))
    named = {"s2": "s2", "s1": chaski.Field(column="s1", missing="fill", fill=-1)}
    chosen = chaski.Rows(time=chaski.Time("place", "day", 3))
    options: dict[str, Any] = {"fields": named, "rows": chosen, "shuffle": False}
    with chaski.load(tmp_path / "rows.csv", batch_size=2, **options) as loader:
        b = next(iter(loader))
    for k in range(6):
        there, s1 = k in HAS["s1"], np.asarray(b["s1"])[k // 3, k % 3]
        assert np.asarray(b["there.s1"])[k // 3, k % 3] == there
        np.testing.assert_array_equal(s1, values("s1", k) if there else np.full((2, 8, 8), -1))


@pytest.mark.parametrize(
    ("named", "message"),
    [
        ({"s2": chaski.Field(pattern="s2/{id}.tif", missing="drop")}, 'must be "error" or "fill"'),
        ({"s1": chaski.Field(pattern="s1/{id}.tif", missing="fill")}, "may lack: give one"),
        (
            {"x": chaski.Field(patterns=["s2/{id}.tif", "s1/{id}.tif"], missing="fill")},
            "may lack: give one that each sample has",
        ),
        (
            {
                "s1": chaski.Field(column="s1", missing="fill"),
                "lc": chaski.Field(column="lc", missing="fill"),
            },
            "all fields may lack",
        ),
        (
            {
                "s2": chaski.Field(pattern="s2/{id}.tif"),
                "x": chaski.Field(pattern="none/{id}.tif", missing="fill"),
            },
            "no file matches",
        ),
        (
            {
                "s2": chaski.Field(pattern="lc/{id}.tif"),
                "x": chaski.Field(pattern="s1/{id}.tif", missing="fill"),
            },
            "files are missing in all",
        ),
    ],
)
def test_wrong(data, binary, named, message) -> None:
    tabled = all(f.column for f in named.values())
    with pytest.raises(chaski.errors.Error, match=re.escape(message)):
        chaski.load(data / "rows.csv" if tabled else data, batch_size=1, fields=named)


@pytest.mark.parametrize("source", list(SOURCES))
def test_the_first_field_may_lack(data, binary, source) -> None:
    """The first field that each sample has makes the windows."""
    place, way = SOURCES[source]
    given = fields(way)
    named = {name: given[name] for name in ("lc", "s1", "s2")}
    with chaski.load(data / place, batch_size=3, fields=named) as loader:
        assert sum(len(b["s2"]) for b in loader if check(b) is None) == N
    with chaski.load(data / place, batch_size=N, window=4, fields=named) as loader:
        b = next(iter(loader))
        assert b["lc"].shape == (N, 1, 4, 4) and b["s1"].shape == (N, 2, 4, 4)


@pytest.mark.parametrize("source", list(SOURCES))
def test_a_stack_lacks_with_one_of_its_files(data, binary, source) -> None:
    place, way = SOURCES[source]
    names = ["s1/{id}.tif", "lc/{id}.tif"] if way == "pattern" else ["s1", "lc"]
    named = {
        "s2": chaski.Field(**({way: "s2/{id}.tif"} if way == "pattern" else {way: "s2"})),
        "x": chaski.Field(**{way + "s": names}, missing="fill", fill=-1),
    }
    with chaski.load(data / place, batch_size=N, shuffle=False, fields=named) as loader:
        b = next(iter(loader))
    both = [k in HAS["s1"] and k in HAS["lc"] for k in range(N)]
    assert sum(both) == 2 and list(b["there.x"]) == both
    for k in range(N):
        want = np.concatenate([values("s1", k), values("lc", k)]).astype(np.float32)
        np.testing.assert_array_equal(b["x"][k], want if both[k] else np.full_like(want, -1))


def test_a_vector_lacks_with_one_of_its_numbers(data, binary) -> None:
    named = {
        "s2": "s2",
        "v": chaski.Field(columns=["y", "share"], missing="fill", dtype="float64"),
    }
    with chaski.load(data / "rows.csv", batch_size=N, shuffle=False, fields=named) as loader:
        b = next(iter(loader))
    assert list(b["there.v"]) == [k % 6 == 0 for k in range(N)]
    assert b["v"][6].tolist() == [6, 1.5]


@pytest.mark.parametrize("source", list(SOURCES))
def test_a_part_that_lacks_a_field(data, binary, source) -> None:
    """Where no chosen sample has a field, other samples say which shape it has."""
    place, way = SOURCES[source]
    rows = chaski.Rows(ids=["3", "4"])
    with chaski.load(data / place, batch_size=2, fields=fields(way), rows=rows) as loader:
        b = next(iter(loader))
    check(b)
    assert len(b["s2"]) == 2 and not np.any(b["there.s1"]) and not np.any(b["there.lc"])


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_paths_and_vectors_of_cells_that_lack(data, tmp_path, binary, kind) -> None:
    """An empty cell makes no path, and a vector that has one is not there."""
    pd = pytest.importorskip("pandas")
    has = [k in HAS["s1"] for k in range(N)]
    table = pd.DataFrame({"k": range(N), "f": [k / 4 if h else None for k, h in enumerate(has)]})
    table["a"] = [str(k) if h else None for k, h in enumerate(has)]
    getattr(table, f"to_{kind}")(data / f"lack.{kind}", index=False)
    fields = {
        "s2": chaski.Field(pattern="s2/{k}.tif"),
        "s1": chaski.Field(pattern="s1/{a}.tif", missing="fill"),
        "v": chaski.Field(columns=["k", "f"]),
    }
    options: dict[str, Any] = {"fields": fields, "shuffle": False, "on_bad": "fill"}
    with chaski.load(data / f"lack.{kind}", batch_size=N, **options) as loader:
        b = next(iter(loader))
        assert loader.bad.count == 0
    assert [bool(x) for x in b["there.s1"]] == has == [bool(x) for x in b["there.v"]]
    np.testing.assert_array_equal(b["v"], table[["k", "f"]].to_numpy(float))
    for k, h in enumerate(has):
        np.testing.assert_array_equal(b["s1"][k], values("s1", k) * h)


@pytest.mark.parametrize("end", ["npz", "h5", "zarr"])
@pytest.mark.parametrize("lacking", [0, 1])
def test_files_that_lack_an_array(tmp_path, binary, end, lacking) -> None:
    """A file without the array is as no file. That all lack it, or a field may not, is an error."""
    h5py, zarr = pytest.importorskip("h5py"), pytest.importorskip("zarr")
    for k in range(3):
        arrays = {"a": np.full((1, 4, 4), k, np.uint8)}
        if k != lacking:
            arrays["b"] = np.full((2, 4, 4), 9, np.uint8)
        path = tmp_path / f"{k}.{end}"
        if end == "npz":
            np.savez(path, **arrays)
        elif end == "h5":
            with h5py.File(path, "w") as f:
                for name, v in arrays.items():
                    f[name] = v
        else:
            group = zarr.open_group(path, mode="w", zarr_format=2)
            for name, v in arrays.items():
                group.create_array(name, shape=v.shape, dtype=v.dtype)[...] = v
    rows = chaski.Rows(dims=None if end == "npz" else "b y x")
    there = [k != lacking for k in range(3)]

    def load(field: dict[str, Any]) -> Any:
        named = {"a": f"{{id}}.{end}::a", "b": chaski.Field(missing="fill", fill=5, **field)}
        return chaski.load(tmp_path, batch_size=3, shuffle=False, rows=rows, fields=named)

    with load({"pattern": f"{{id}}.{end}::b"}) as loader:
        b = next(iter(loader))
    assert b["there.b"].tolist() == there and b["there.a"].all()
    assert b["b"][:, 0, 0, 0].tolist() == [9 if k else 5 for k in there]
    with load({"patterns": [f"{{id}}.{end}::{name}" for name in "ab"]}) as loader:
        assert next(iter(loader))["there.b"].tolist() == there
    with pytest.raises(chaski.NotFoundError, match="none"):
        load({"pattern": f"{{id}}.{end}::none"})
    strict = {"a": f"{{id}}.{end}::a", "b": f"{{id}}.{end}::b"}
    with pytest.raises(chaski.NotFoundError, match=f"{lacking}.{end}"):
        next(iter(chaski.load(tmp_path, batch_size=3, shuffle=False, rows=rows, fields=strict)))
    if end == "npz":
        fields = {"b": chaski.Field(pattern="{id}.npz::b", missing="fill"), "a": "{id}.npz::a"}
        assert chaski.stats(tmp_path, fields=fields).mean("b").tolist() == [9, 9]
