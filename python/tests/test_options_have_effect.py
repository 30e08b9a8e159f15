"""No option is taken in silence.

For each kind of field and of source it changes a batch or what the loader says of it, or it is
refused, or the log says what it does not do.
"""

from __future__ import annotations

import dataclasses
import itertools
import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import rasters
from test_ids import ABOUT

import chaski
from chaski import Field, Pixels, Rows, Split, Time, Vector

pytestmark = pytest.mark.usefixtures("one_engine")

rasterio = pytest.importorskip("rasterio")
h5py = pytest.importorskip("h5py")
zarr = pytest.importorskip("zarr")
pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

N, SIDE = 4, 16
PLACE = {"crs": "EPSG:32630", "transform": rasterio.Affine(10, 0, 5e5, 0, -10, 4e6)}
SHAPE = [[500020, 3999980], [500100, 3999980], [500105, 3999900], [500020, 3999900]]
RESIZED = {"window": chaski.ResizedWindow(8)}
PADDED = {"window": 20, "pixels": Pixels(pad=True)}

FIELD: dict[str, Any] = {
    "column": "none", "pattern": "none/{id}.tif", "blob": "num", "kind": "array", "bands": [0],
    "dtype": "float16", "layout": "n y x b", "sizes": {"q": 2}, "fill": 3.0, "nodata": [9],
    "normalize": {"mean": [1.0], "std": [2.0]}, "missing": "fill", "pad": True, "clip": True,
    "validity": "ok", "resample": "nearest", "times": [0], "pages": "steps", "dims": "y x b",
    "ground": "ignore", "vector": Vector("none.geojson"), "columns": ["num", "flt"],
    "patterns": ["a{id}.tif"], "grid": 10.0, "classes": ["q"], "split": " ", "scenes": ["x"],
    "match": "step", "match_days": 3.0,
    "physical": True, "scale": "num", "offset": "num", "lut": {7: 1, 8: 2},
    "wavelengths": [1.0, 2.0, 3.0], "gsd": 10.0,
}  # fmt: skip
"""A value of each option of a field."""
WHERE = {"resample": RESIZED, "pad": {"window": 20}, "fill": PADDED}
"""Where an option matters, if not in whole chips."""

VECTOR: dict[str, Any] = {
    "path": "none.geojson", "pattern": "none/{id}.txt", "column": "value", "kind": "mask",
    "all_touched": True, "classes": ["b", "a"], "dtype": "int16", "crs": "EPSG:32631",
    "image": "kind", "missing": "empty", "columns": ["value"], "unnamed": "b",
    "box": {"x0 y0 x1 y1": ["a", "b", "c", "d"]}, "where": [("value", "==", 1)],
    "names": {"value": "{image}_{label}"},
}  # fmt: skip

LOAD: dict[str, dict[str, Any]] = {
    "bands": {"pixels": Pixels(bands=[1])}, "dtype": {"pixels": Pixels(dtype="float16")},
    "layout": {"pixels": Pixels(layout="n y x b")}, "sizes": {"pixels": Pixels(sizes={"q": 2})},
    "fill": {"pixels": Pixels(fill=3.0, pad=True), "window": 20},
    "pad": {"pixels": Pixels(pad=True), "window": 20}, "clip": {"pixels": Pixels(clip=True)},
    "validity": {"pixels": Pixels(validity="ok")}, "augment": {"pixels": Pixels(augment="flips")},
    "strict": {"pixels": Pixels(strict=True)},
    "windows": {"pixels": Pixels(windows=True)}, "geo": {"pixels": Pixels(geo=True)},
    "normalize": {"normalize": {"mean": [1.0], "std": [2.0]}}, "stats": {"stats": {"image": {}}},
    "window": {"window": 8}, "seed": {"seed": 5, "shuffle": True}, "shuffle": {"shuffle": True},
    "last": {"last": "drop", "batch_size": 3}, "on_bad": {"on_bad": "replace"},
    "where": {"rows": Rows(where=[("num", "<", 2)])}, "bbox": {"rows": Rows(bbox=(90, 0, 91, 1))},
    "bbox_crs": {"rows": Rows(bbox_crs=32630)}, "bad": {"rows": Rows(bad=["1"])},
    "datetime": {"rows": Rows(datetime="2020-01-01/2021-01-01")}, "use": {"rows": Rows(use="a")},
    "split": {"rows": Rows(split=Split.by_hash({"a": 0.001, "b": 0.999}), use="a")},
    "strata": {"rows": Rows(strata="num")}, "take": {"rows": Rows(take=2)},
    "time": {"rows": Rows(time=Time(key="num", order="num", length=2))},
    "steps_per_epoch": {"rows": Rows(steps_per_epoch=2)}, "missing": {"rows": Rows(missing="drop")},
    "base_path": {"rows": Rows(base_path="/tmp")}, "dims": {"rows": Rows(dims="n x y b")},
    "timestamp": {"rows": Rows(timestamp=1000)}, "ids": {"rows": Rows(ids=["1", "2"])},
    "id_column": {"rows": Rows(id_column="num")}, "tables": {"tables": {"t.csv": "none"}},
}  # fmt: skip
"""Arguments of load. NO_CAUSE cannot matter: no sample is bad, or lacks a file or a chunk.

The share of a split is small, because paths differ in each run: by their hashes a larger share
could have all four rows."""
NO_CAUSE = {"on_bad", "missing", "strict"}


@dataclasses.dataclass
class Dataset:
    """A source, the field of its images, and fields of other kinds."""

    path: Path
    image: dict[str, Any]
    dims: str | None = None
    others: Mapping[str, dict[str, Any]] = dataclasses.field(default_factory=dict)


@pytest.fixture(scope="module")
def datasets(tmp_path_factory) -> dict[str, Dataset]:
    root = tmp_path_factory.mktemp("options")
    x = np.random.default_rng(0).integers(8, 200, (N, 3, SIDE, SIDE)).astype(np.uint8)
    x[..., :4] = 7
    for name in ("tif", "png", "npy", "npz", "h5files"):
        (root / name / "im").mkdir(parents=True)
    (root / "tif/moved").mkdir()
    moved = {**PLACE, "transform": rasterio.Affine(10, 0, 5e5 + 30, 0, -10, 4e6)}
    for i in range(N):
        rasters.write(root / f"tif/im/{i}.tif", x[i], nodata=7, **PLACE)
        rasters.write(root / f"tif/moved/{i}.tif", x[i], nodata=7, **moved)
        rasters.write(root / f"png/im/{i}.png", x[i])
        np.save(root / f"npy/im/{i}.npy", x[i])
        np.savez(root / f"npz/im/{i}.npz", image=x[i])
        with h5py.File(root / f"h5files/im/{i}.h5", "w") as f:
            f["image"] = x[i]
    with h5py.File(root / "a.h5", "w") as f:
        f["image"], f["num"], f["flt"] = x, np.arange(N), np.arange(N) / 2
        f["txt"] = np.array(["ax", "bx", "ax", "cx"], "S2")
    group = zarr.open_group(str(root / "a.zarr"), mode="w")
    for name, values, dims in (
        ("image", x, "nbyx"), ("num", np.arange(N), "n"), ("flt", np.arange(N) / 2, "n"),
    ):  # fmt: skip
        group.create_array(name, data=values, dimension_names=list(dims))
    records = [{"id": f"{i}", "path": root / f"tif/im/{i}.tif", "num": i} for i in range(N)]
    records = [r | {"flt": i / 2, "txt": "abac"[i] + "x"} for i, r in enumerate(records)]
    chaski.pack(records, root / "a.tacozip", ABOUT)
    lines = [f"{root}/tif/im/{i}.tif,{i},{i / 2},{'abac'[i]}x" for i in range(N)]
    (root / "t.csv").write_text("\n".join(["path,num,flt,txt", *lines]))
    cells = [{"bytes": (root / f"png/im/{i}.png").read_bytes(), "path": f"{i}"} for i in range(N)]
    table = {"image": cells, "num": list(range(N)), "txt": ["ax", "bx", "ax", "cx"]}
    pq.write_table(pa.table(table), root / "cells.parquet")
    features = [
        {"type": "Feature", "properties": {"kind": "ab"[k], "value": 2 * k + 1},
         "geometry": {"type": "Polygon", "coordinates": [[[a - 20 * k, b] for a, b in ring]]}}
        for k in range(2) for ring in [[*SHAPE, SHAPE[0]]]
    ]  # fmt: skip
    crs = {"type": "name", "properties": {"name": "EPSG:32630"}}
    ground = {"type": "FeatureCollection", "crs": crs, "features": features}
    (root / "s.geojson").write_text(json.dumps(ground))
    both = [(i, k) for i in range(N - 1) for k in range(2)]
    notes = [
        {"id": k, "image_id": i, "category_id": 1 + k, "value": k, "bbox": [2 + k, 3, 5.5, 5.5]}
        for i, k in both
    ]
    images = [{"id": i, "file_name": f"{i}.tif"} for i in range(N - 1)]
    names = [{"id": 1, "name": "a"}, {"id": 2, "name": "b"}]
    coco = {"images": images, "annotations": notes, "categories": names}
    (root / "c.json").write_text(json.dumps(coco))
    lines = [f"{i}.tif,{2 + k},3,7.5,8.5,{'ab'[k]},{k}" for i, k in both]
    (root / "boxes.csv").write_text("\n".join(["kind,xmin,ymin,xmax,ymax,label,value", *lines]))
    text = {k: {"column": "txt", "kind": k} for k in ("text", "class")}
    number = {"number": {"column": "num", "kind": "number"}}
    ids = {k: {"column": "id", "kind": k} for k in ("text", "class")}
    shape = root / "s.geojson"
    shapes = {"mask": {"vector": Vector(shape)}, "boxes": {"vector": Vector(shape, kind="boxes")}}
    of_files = {
        name: Dataset(root / name, {"pattern": f"im/{{id}}.{end}"}, dims, ids | more)
        for name, end, dims, more in (
            ("tif", "tif", None, shapes), ("png", "png", None, {}), ("npy", "npy", None, {}),
            ("npz", "npz::image", None, {}), ("h5files", "h5::image", "b y x", {}),
        )
    }  # fmt: skip
    column = {"column": "image"}
    return of_files | {
        "table": Dataset(root / "t.csv", {"column": "path"}, None, text | number | shapes),
        "h5": Dataset(root / "a.h5", column, "n b y x", text | number),
        "zarr": Dataset(root / "a.zarr", column, None, number),
        "container": Dataset(root / "a.tacozip", {}, None, text | number | shapes),
        "cells": Dataset(root / "cells.parquet", column, None, text | number),
    }


class Runs:
    """Compares runs with and without options. Those without are kept."""

    def __init__(self, datasets: dict[str, Dataset], caplog: pytest.LogCaptureFixture) -> None:
        self.datasets, self.caplog = datasets, caplog
        self.known: dict[str, Any] = {}

    def run(self, source: str, fields: dict[str, Any], options: dict[str, Any]) -> Any:
        """Returns what the batches and the loader are, or the error."""
        data = self.datasets[source]
        fields = {"image": Field(**data.image), **fields}
        if data.dims and (rows := options.get("rows", Rows())).dims is None:
            options = {**options, "rows": dataclasses.replace(rows, dims=data.dims)}
        options = {"batch_size": N, "shuffle": False, **options}
        try:
            with chaski.load(data.path, fields=fields, **options) as loader:
                batches = list(itertools.islice(loader, 2))
                return [flat(b) for b in batches], str(loader.fields), str(loader.classes)
        except (chaski.Error, TypeError, ValueError) as e:
            return type(e), str(e)

    def silent(self, source: str, without: tuple[Any, Any], given: tuple[Any, Any]) -> bool:
        """Reports whether what is given is not refused, and changes and logs nothing."""
        key = repr((source, without))
        if key not in self.known:
            self.known[key] = self.run(source, *without)
        self.caplog.clear()
        got = self.run(source, *given)
        if len(got) == 2 or got != self.known[key]:
            return False
        deadline = time.monotonic() + 5  # lines of the log may come after the batches
        while not self.caplog.records and time.monotonic() < deadline:
            time.sleep(0.01)
        return not self.caplog.records


def flat(batch: Mapping[str, Any]) -> str:
    def text(v: Any) -> str:
        if isinstance(v, chaski.Ragged):
            return repr((v.values.dtype, v.values.tolist(), v.offsets.tolist()))
        if isinstance(v, Mapping):
            return flat(v)
        v = np.asarray(v)
        return repr((v.dtype, v.shape, v.tolist()))

    return repr({k: text(v) for k, v in batch.items()})


def test_the_tables_have_all_options() -> None:
    for kind, given in ((Field, FIELD), (Vector, VECTOR)):
        assert {f.name for f in dataclasses.fields(kind)} == set(given)
    of_load = {"tables", "on_bad", "normalize", "stats", "window", "seed", "shuffle", "last"}
    parts = {f.name for kind in (Rows, Pixels) for f in dataclasses.fields(kind)}
    assert of_load | parts == set(LOAD)


SOURCES = ["tif", "png", "npy", "npz", "h5files", "table", "h5", "cells", "zarr", "container"]


@pytest.mark.parametrize("source", SOURCES)
def test_options_of_fields(datasets, caplog, source) -> None:
    runs, data, silent = Runs(datasets, caplog), datasets[source], []
    for kind, base in {"raster": data.image, **data.others}.items():
        for option, value in FIELD.items():
            if (kind, option) == ("raster", "ground"):  # places that differ
                if source != "tif":
                    continue
                base = {"pattern": "moved/{id}.tif"}
            where = WHERE.get(option, {})
            plain, given = ({"y": Field(**f)} for f in (base, {**base, option: value}))
            if runs.silent(source, (plain, where), (given, where)):
                silent.append((kind, option))
    assert not silent


@pytest.mark.parametrize("form", ["s.geojson", "c.json", "boxes.csv"])
def test_options_of_shapes(datasets, caplog, form) -> None:
    runs, silent = Runs(datasets, caplog), []
    root = datasets["tif"].path.parent
    base = {"path": root / form, "column": "kind"} if form == "s.geojson" else {"path": root / form}
    if form == "boxes.csv":
        base["image"] = "kind"
    if form != "s.geojson":
        base["missing"] = "empty"
    for kind in ("mask", "instances", "boxes", "polygons"):
        start = {k: v for k, v in base.items() if kind != "instances" or k != "column"}
        for option, value in VECTOR.items():
            if option == "unnamed" or (kind, option) == ("mask", "kind"):
                continue  # for shapes without a class, which there are not; and the default
            if (kind, option) == ("instances", "names"):
                continue  # of a part of a column that instances, which have no class, do not use
            plain = {**start, "kind": kind}
            given = {**plain, option: value}
            if given == plain:
                plain = {k: v for k, v in plain.items() if k != option}
            both = [{"y": Field(vector=Vector(**v))} for v in (plain, given)]
            if runs.silent("tif", (both[0], {}), (both[1], {})):
                silent.append((kind, option))
    assert not silent


@pytest.mark.parametrize("source", SOURCES)
def test_options_of_load(datasets, caplog, source) -> None:
    runs, silent = Runs(datasets, caplog), []
    for option in LOAD.keys() - NO_CAUSE:
        given = LOAD[option]
        plain: dict[str, Any] = {}
        if option in ("last", "fill", "seed"):
            plain = {
                "last": {"batch_size": 3}, "fill": PADDED, "seed": {"shuffle": True},
            }[option]  # fmt: skip
        if runs.silent(source, ({}, plain), ({}, given)):
            silent.append(option)
    assert not silent


def test_series_of_one_row_are_logged(datasets, caplog) -> None:
    """As where key and order are exchanged."""
    rows, fields = (
        Rows(time=Time(key="num", order="flt", length=2)),
        {"image": Field(column="path")},
    )
    with chaski.load(datasets["table"].path, batch_size=2, rows=rows, fields=fields) as loader:
        next(iter(loader))
    assert "no series has two rows" in caplog.text
