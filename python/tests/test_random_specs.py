"""Random specs over random files: batches, statistics and weights are rasterio's and numpy's.

CHASKI_RANDOM_SPECS is the number of specs: 200 by default, 10,000 in `make soak`. A failure
names the world and the spec, which CHASKI_RANDOM_WORLD=7 and CHASKI_RANDOM_SPEC=13 run alone.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import chaski

rasterio = pytest.importorskip("rasterio", reason="needs rasterio to write rasters")
import random_worlds as worlds  # noqa: E402
from random_worlds import (  # noqa: E402
    COLOURS,
    LEFT,
    PIXEL,
    TOP,
    Box,
    World,
    coded,
    cut,
    fills,
    finished,
    laid_out,
    native,
    planes,
    stored,
    valued,
)

SPECS = int(os.environ.get("CHASKI_RANDOM_SPECS", "200"))
IN_WORLD = 25
WORLDS = range(max(1, SPECS // IN_WORLD))
ONLY = os.environ.get("CHASKI_RANDOM_WORLD"), os.environ.get("CHASKI_RANDOM_SPEC")
REFUSED = 0.2  # the largest share of specs that may be refused
DRAWN = {"specs": 0, "refused": 0}
pytestmark = pytest.mark.usefixtures("one_engine")

# What is refused, and the way that the error names.
REFUSALS = [
    r"the field does not pad",
    r"needs square windows",
    r"normalize needs dtype float32, float16, bfloat16 or uint8",
    r"lut is given, which takes the nearest pixels: leave resample out",
    r"give the field a dtype",
    r"bilinear makes float32 of .*choose dtype float32 or resample nearest",
    r"antialias of .*only to float32, float16 and bfloat16",
    r"take a float dtype or a lut, or say by nodata and fill",
    r"does not have: take another fill or dtype",
    r"normalize it, take another dtype, or let clip make it",
    r"a layout with an axis t has a value for each step",
    r"set its pad|set their pad",
    r'is not for fields of several files: take "crop" or "resize"',
    r"sequences of rows have none: leave out time, or take rasters of the shapes",
    r"and windows of \"geo_window\" lie on the ground: take",
]


@dataclass
class Spec:
    """The arguments of a load, and what a slow loader needs to know about them."""

    fields: dict[str, Any]
    window: Any
    augment: str | None
    rows: Any
    checks: str  # "", "stats" or "weights"
    source: Path  # the table of the world, or its catalog

    @property
    def rasters(self) -> list[str]:
        return [n for n, f in self.fields.items() if isinstance(f, chaski.Field) and n in KINDS]

    def __str__(self) -> str:
        more = f"augment={self.augment}, rows={self.rows}, {self.checks}, {self.source.name}"
        return f"fields={self.fields}, window={self.window}, {more}"


KINDS = {"image", "mask", "colour", "series", "stack"}
STACKS = [["image", "beside"], ["image", "mask"], ["image", "beside", "mask"]]


def chance(rng: np.random.Generator, share: float) -> bool:
    return bool(rng.random() < share)


def draw(rng: np.random.Generator, world: World, number: int) -> Spec:
    window = draw_window(rng, world)
    names = [n for n in sorted(KINDS) if chance(rng, 0.35)] or [str(rng.choice(sorted(KINDS)))]
    names = sorted(map(str, rng.permutation(names)), key=lambda n: n == "series")  # it has no place
    fields = {n: draw_raster(rng, world, n, resizes(window)) for n in names}
    if chance(rng, 0.3) and names[0] != "series":
        fields["shapes"] = draw_shapes(rng, world)
    if chance(rng, 0.2) and names[0] != "series":
        path = world.path / "boxes.geojson"
        fields["boxes"] = chaski.Vector(path, "class", kind="boxes")
    if chance(rng, 0.3):
        fields["cloud"] = chaski.Field(
            column="cloud", dtype=str(rng.choice(["float32", "float64"]))
        )
        fields["count"] = chaski.Field(column="count")
        fields["kind"] = chaski.Field(column="kind", kind="class")
    fields["id"] = chaski.Field(column="id", kind="text")
    augment = str(rng.choice(["flip_x", "flip_y", "flips", "rotations", "d4"]))
    square = window is not None and isinstance(getattr(window, "size", 1), int)
    if names == ["series"] or not (square or augment.startswith("flip") or chance(rng, 0.1)):
        augment = None
    if isinstance(window, chaski.GeoWindow):
        for name in ("id", "cloud", "count", "kind", "series", "stack"):
            fields.pop(name, None)
        if not any(n in KINDS for n in fields):
            fields = {"image": draw_raster(rng, world, "image", False), **fields}
    rows = chaski.Rows()
    if chance(rng, 0.1) and "id" in fields:  # whose rows lie side by side
        rows = chaski.Rows(time=chaski.Time(key="site", order="cloud", length=2))
        fields |= {n: replace(f, ground="ignore") for n, f in fields.items() if n in KINDS}
        if chance(rng, 0.9):
            fields = {n: f for n, f in fields.items() if n not in ("shapes", "boxes")}
    pads = isinstance(window, chaski.Grid) and window.pad
    pads |= isinstance(window, chaski.RowWindow) and window.fit == "pad"
    for name in KINDS & set(fields):
        f = fields[name]
        if pads and chance(rng, 0.95):
            f = replace(f, pad=True)
        if isinstance(window, chaski.GeoWindow) and world.scale[name] > 1 and f.lut is None:
            f = replace(f, resample="nearest")
        if rows.time is not None and chance(rng, 0.9):
            f = replace(f, layout=None)
        fields[name] = f
    checks = str(rng.choice(["", "stats", "weights"], p=[0.7, 0.2, 0.1]))
    source = world.catalog if chance(rng, 0.4) else world.table
    return Spec(fields, window, augment if chance(rng, 0.5) else None, rows, checks, source)


def resizes(window: Any) -> bool:
    row = isinstance(window, chaski.RowWindow) and window.fit == "resize"
    return row or isinstance(window, chaski.ResizedWindow)


def draw_raster(rng: np.random.Generator, world: World, name: str, resized: bool) -> Any:
    options: dict[str, Any] = {"column": name}
    columns = [name]
    if name == "stack":
        del options["column"]
        options["columns"] = columns = STACKS[int(rng.integers(len(STACKS)))]
    dtypes = ["float32", "float32", "float16", "int64", "native", "uint8"]
    if len({d for c in columns for d in world.dtypes[c]}) > 1 and chance(rng, 0.9):
        dtypes.remove("native")
    options["dtype"] = dtype = str(rng.choice(dtypes))
    floats = dtype in ("float32", "float16")
    if name == "series":
        options["kind"] = "raster"
    if dtype == "uint8":
        options["clip"] = name == "series" or chance(rng, 0.5)
    if dtype == "int64" and chance(rng, 0.9):  # of which NaN is none
        options["fill"] = 7.0
    if name == "colour":
        codes = {c: int(rng.integers(0, 9)) for c in COLOURS if chance(rng, 0.9)}
        options["lut"] = codes or {COLOURS[0]: 1}
        if len(codes) < len(COLOURS) or chance(rng, 0.3):
            options["fill"] = 255
    elif name == "mask" and chance(rng, 0.4):
        options["lut"] = {k: int(rng.integers(0, 9)) for k in range(4 if chance(rng, 0.5) else 3)}
        options["fill"] = 200
    elif chance(rng, 0.3):
        options["fill"] = float(rng.choice([0, 7, 255]))
    bands = 1
    if name in ("image", "series"):
        bands = world.files[name][0].pixels.shape[-3]
        if chance(rng, 0.4):
            options["bands"] = [int(b) for b in rng.integers(0, bands, int(rng.integers(1, 4)))]
            bands = len(options["bands"])
    if name == "series" and chance(rng, 0.5):
        options["times"] = [int(t) for t in rng.integers(0, 3, int(rng.integers(1, 4)))]
    if name in ("image", "mask") and chance(rng, 0.2):
        options["nodata"] = [[], 0, [1, 100]][int(rng.integers(3))]
    suits = floats or dtype == "uint8" or chance(rng, 0.05)
    if name != "colour" and "lut" not in options and suits and chance(rng, 0.25):
        n = bands if chance(rng, 0.5) and name != "stack" else 1
        numbers = lambda: [float(v) or 1.0 for v in rng.uniform(-2, 2, n).round(3)]  # noqa: E731
        options["normalize"] = {"scale": numbers(), "offset": numbers()}
        if chance(rng, 0.3):
            options["normalize"]["clip"] = (-1.5, 40.0)
    if chance(rng, 0.4):
        options["validity"] = f"{name}_ok"
    if chance(rng, 0.5) and (floats and "lut" not in options or chance(rng, 0.05)):
        options["resample"] = str(rng.choice(["nearest", "bilinear", "antialias"]))
    mixed = resized or "mask" in columns
    if name == "stack" and mixed and (floats or "resample" in options):
        options["resample"] = "nearest"  # what lies between pixels of two grids has its own tests
    if chance(rng, 0.3):
        options["pad"] = True
    if chance(rng, 0.2) and name != "series":
        options["layout"] = str(rng.choice(["n y x b", "n (y x) b"]))
    return chaski.Field(**options)


def draw_shapes(rng: np.random.Generator, world: World) -> Any:
    path = world.path / "shapes.geojson"
    return [
        chaski.Vector(path, "class"),
        chaski.Vector(path, "class", dtype="float32"),
        chaski.Vector(path, "name", classes=["c3", "c1"]),
        chaski.Vector(path, kind="instances"),
        chaski.Vector(path),
    ][int(rng.integers(5))]


def draw_window(rng: np.random.Generator, world: World) -> Any:
    even = lambda low, high: 2 * int(rng.integers(low // 2, high // 2 + 1))  # noqa: E731
    size = even(4, 16)
    shape = size if chance(rng, 0.6) else (size, even(4, 16))
    match str(rng.choice(["whole", "random", "grid", "tile", "resized", "row", "geo", "sizes"])):
        case "whole":
            return None
        case "random":
            return chaski.RandomWindow(shape, per_asset=int(rng.integers(1, 3)))
        case "sizes":
            return chaski.RandomWindow(sizes=[4, 8])
        case "grid":
            if chance(rng, 0.5):
                return chaski.Grid(shape, pad=chance(rng, 0.3))
            return chaski.Grid(shape, overlap=2)
        case "tile":
            return chaski.TileWindow(shape, per_visit=2)
        case "resized" if chance(rng, 0.3):
            return chaski.ResizedWindow(shape, whole=True)
        case "resized":
            return chaski.ResizedWindow(shape, scale=(0.3, 3), ratio=1.5)
        case "row":
            return chaski.RowWindow(shape, fit=str(rng.choice(["resize", "crop", "pad"])))
    side = even(6, 12) * PIXEL
    crs = {"crs": "EPSG:32630"}
    if chance(rng, 0.5):
        return chaski.GeoWindow(size_m=side, resolution=PIXEL, per_epoch=4, **crs)
    return chaski.GeoWindow(size_m=side, resolution=PIXEL, stride_m=side, **crs)


def compare(
    world: World, spec: Spec, batch: Any, k: int, t: int | None, row: int, first_row: int
) -> None:
    """Compares all fields of a row, or of one step of it, with those of a slow loader."""
    box = tuple(int(v) for v in batch["window"][k])
    first = spec.rasters[0]
    size = out_size(world, spec, batch, box)
    turn = np.ravel(batch["geo"]["transform"][k])
    lead = spec.fields[first]
    lead_scale = world.scale[(lead.columns or [lead.column])[0]]
    for name in spec.rasters:
        field = spec.fields[name]
        scale = world.scale[(field.columns or [field.column])[0]]
        own = tuple(v * lead_scale // scale for v in box)
        to = tuple(v * lead_scale // scale for v in size)
        x, ok, inside, sure = planes(world, name, field, row, own, to)
        if isinstance(spec.window, chaski.RowWindow) and spec.window.fit == "pad":
            around = beside(world, first_row, box, lead_scale, scale)
            ok, inside = ok & ~around, inside & ~around
        dtype = native(world, field) if field.dtype == "native" else np.dtype(field.dtype)
        want, valid = finished(x, ok, inside, field, dtype)
        turned = lambda v: laid_out(worlds.turned(v, turn), field)  # noqa: B023, E731
        got = step(batch[name][k], t, x)
        assert got.dtype == dtype, f"{name} has {got.dtype}"
        same(name, got, turned(want), turned(sure[: len(want)]))
        if field.validity:
            got = step(batch[field.validity][k], t, x)
            same(field.validity, got > 0, turned(valid), turned(sure[: len(want)]))
    if t is None:
        pixel = PIXEL * lead_scale
        left, top = LEFT + row * world.pitch * PIXEL + box[1] * pixel, TOP - box[0] * pixel
        place = (left, pixel * box[3] / size[1], 0, top, 0, -pixel * box[2] / size[0])
        compare_shapes(world, spec, batch, k, place, size, turn)
    for name in ("cloud", "count", "kind"):
        if name in spec.fields:
            value = world.columns[name][row]
            if name == "kind":
                value = sorted(set(world.columns[name])).index(value)
            got = batch[name][k] if t is None else batch[name][k][t]
            assert got == np.array(value, got.dtype), name


def beside(world: World, row: int, box: Box, lead_scale: int, scale: int) -> np.ndarray:
    """Returns which pixels of a window lie beside the box of a row."""
    y, x, height, width = (world.columns[c][row] for c in "yxhw")
    out = np.ones((1, *(n // lead_scale for n in world.size)), bool)
    out[:, y : y + height, x : x + width] = False
    out = worlds.cut(out, box)
    if scale > lead_scale:
        return out[..., ::2, ::2]
    return out.repeat(lead_scale // scale, -1).repeat(lead_scale // scale, -2)


def step(got: np.ndarray, t: int | None, x: np.ndarray) -> np.ndarray:
    """Returns what a tensor has of step t of a sequence; steps of files follow each other there."""
    if t is None:
        return got
    return got[t * len(x) :][: len(x)] if x.ndim == 4 else got[t]


def same(name: str, got: np.ndarray, want: np.ndarray, sure: np.ndarray) -> None:
    assert got.shape == want.shape, f"{name} has the shape {got.shape}, not {want.shape}"
    equal = (got == want) | ~sure
    if want.dtype.kind == "f":
        equal |= np.isnan(got) & np.isnan(want)
    if not equal.all():
        at = tuple(int(v) for v in np.argwhere(~equal)[0])
        many = f"{(~equal).sum()} of {equal.size} differ"
        raise AssertionError(f"{name}: {many}, first at {at}: {got[at]}, not {want[at]}")


def out_size(world: World, spec: Spec, batch: Any, box: Box) -> tuple[int, int]:
    """Returns the size of the tensor of the first raster field."""
    resized = isinstance(spec.window, chaski.ResizedWindow)
    if resized or isinstance(spec.window, chaski.RowWindow) and spec.window.fit == "resize":
        size = spec.window.size
        return (size, size) if isinstance(size, int) else size
    return box[2:]


def compare_shapes(
    world: World,
    spec: Spec,
    batch: Any,
    k: int,
    place: Any,
    size: tuple[int, int],
    turn: np.ndarray,
) -> None:
    """Compares shapes that are drawn, and boxes, in a window of a size at a place."""
    if "shapes" in spec.fields:
        want = worlds.drawn(valued(world, spec.fields["shapes"]), place, size)
        got = batch["shapes"][k]
        same("shapes", got, worlds.turned(want, turn), np.ones(got.shape, bool))
    if "boxes" in spec.fields:
        found, values = worlds.boxes(world.shapes[1::2], place, size, turn)
        starts, got = batch["boxes"]
        own = slice(starts[k], starts[k + 1])
        assert batch["boxes_values"][1][own].tolist() == values, "boxes_values"
        np.testing.assert_allclose(got[own], found, atol=1e-3)


def compare_ground(world: World, spec: Spec, batch: Any, k: int) -> None:
    """Of scenes at one place the first valid pixel counts, band by band."""
    turn = np.ravel(batch["geo"]["transform"][k])
    n = int(spec.window.size_m / PIXEL)
    corners = [turn[0] + n * (turn[1] + turn[2]), turn[3] + n * (turn[4] + turn[5])]
    left, top = min(turn[0], corners[0]), max(turn[3], corners[1])
    y, x = round((TOP - top) / PIXEL), round((left - LEFT) / PIXEL)
    for name in spec.rasters:
        field = spec.fields[name]
        scale = world.scale[name]
        dtype = native(world, field) if field.dtype == "native" else np.dtype(field.dtype)
        total: list[np.ndarray] | None = None
        for row in range(worlds.ROWS):
            pixels, ok = stored(world, name, field, row)
            if name == "colour":
                pixels, ok = coded(pixels, field), ok[:1]
            pixels, ok = (v.repeat(scale, -1).repeat(scale, -2) for v in (pixels, ok))
            part = (y, x - row * world.pitch, n, n)
            pixels, ok, inside = (cut(v, part) for v in (pixels, ok, np.ones(ok.shape, bool)))
            if total is None:
                total = [pixels.astype(float), ok, inside]
            else:
                covers = ok & ~total[1] | inside & ~total[2]
                total = [np.where(covers, pixels, total[0]), total[1] | ok, total[2] | inside]
        assert total is not None
        want, valid = finished(*total, field, dtype)
        turned = lambda v: laid_out(worlds.turned(v, turn), field)  # noqa: B023, E731
        # Where no scene has the pixel, it is as stored in one of them.
        sure = total[1] | np.full(total[1].shape, fills(field))
        same(name, batch[name][k], turned(want), turned(sure))
        if field.validity:
            same(field.validity, batch[field.validity][k] > 0, turned(valid),
                 np.ones(batch[name][k].shape, bool))  # fmt: skip
    compare_shapes(world, spec, batch, k, (left, PIXEL, 0, top, 0, -PIXEL), (n, n), turn)


def load(world: World, spec: Spec) -> dict[str, Any]:
    """Loads a spec and compares all of its batches. It returns the spec as the engine fills it."""
    rows = 0
    ground = isinstance(spec.window, chaski.GeoWindow)
    pixels = chaski.Pixels(windows=not ground, geo=True, augment=spec.augment)
    with chaski.load(
        spec.source, fields=spec.fields, batch_size=3, window=spec.window, rows=spec.rows,
        pixels=pixels,
    ) as loader:  # fmt: skip
        for batch in loader:
            for k in np.flatnonzero(batch["valid"]):
                rows += 1
                if ground:
                    compare_ground(world, spec, batch, k)
                    continue
                ids = batch["id"][k] if spec.rows.time is not None else [batch["id"][k]]
                steps = [world.columns["id"].index(name) for name in ids]
                for t, row in enumerate(steps):
                    step_of = None if spec.rows.time is None else t
                    compare(world, spec, batch, k, step_of, row, steps[0])
    assert rows > 0, "there are no rows"
    return loader.spec


def compare_statistics(world: World, spec: Spec) -> None:
    """Pixels are counted as they are stored, without what is missing and NaN."""
    fields = {n: spec.fields[n] for n in spec.rasters if n != "stack"}
    if not fields:
        return
    report = chaski.stats(spec.source, fields=fields)
    for name, field in fields.items():
        once = field if field.times is None else replace(field, times=sorted(set(field.times)))
        every = [stored(world, name, once, row) for row in range(worlds.ROWS)]
        for b, band in enumerate(report["fields"][name]["bands"]):
            parts = [x[..., b, :, :][ok[..., b, :, :]].astype(float) for x, ok in every]
            numbers = np.concatenate(parts)
            numbers = numbers[~np.isnan(numbers)]
            assert band["count"] == numbers.size, f"{name}, band {b}"
            if numbers.size:
                assert band["mean"] == pytest.approx(numbers.mean(), rel=1e-9), f"{name}, band {b}"
                std = pytest.approx(numbers.std(), rel=1e-7, abs=1e-9)
                assert band["std"] == std, f"{name}, band {b}"
    if "image" in fields:
        image = chaski.Field(
            column="image", dtype="float32", bands=fields["image"].bands, normalize="mean_std",
            nodata=fields["image"].nodata,
        )  # fmt: skip
        with chaski.load(
            spec.source, fields={"image": image}, batch_size=1, stats=report
        ) as loader:
            made = loader.spec["fields"][0]["normalize"]
        for b, band in enumerate(report["fields"]["image"]["bands"]):
            if band["count"] and band["std"] > 0:
                assert made["scale"][b] == pytest.approx(1 / band["std"], rel=1e-5)
                assert made["offset"][b] == pytest.approx(-band["mean"] / band["std"], rel=1e-5)


def compare_weights(world: World, spec: Spec, binary: str, filled: dict[str, Any]) -> None:
    """Counts a class or what is valid, and draws windows where that is."""
    name = [*spec.rasters, *(["shapes"] if "shapes" in spec.fields else [])][-1]
    lead = spec.fields[spec.rasters[0]]
    lead_scale = world.scale[(lead.columns or [lead.column])[0]]
    pixels = []
    for row in range(worlds.ROWS):
        size = tuple(n // lead_scale for n in world.size)
        if name == "shapes":
            left = LEFT + row * world.pitch * PIXEL
            place = (left, PIXEL * lead_scale, 0, TOP, 0, -PIXEL * lead_scale)
            x = worlds.drawn(valued(world, spec.fields[name]), place, size)[None]
            pixels.append((x, x != 0))
            continue
        field = replace(spec.fields[name], validity="ok", resample="nearest")
        scale = world.scale[(field.columns or [field.column])[0]]
        size = tuple(n // scale for n in world.size)
        x, ok, *_ = planes(world, name, field, row, (0, 0, *size), size)
        x, ok = (v.reshape(-1, *size) for v in (x, ok))
        pixels.append((x, ok & (x >= 0) if name == "colour" else ok))
    values, there = np.unique(pixels[0][0][0], return_counts=True)
    code = next((v for v in values if v > 0 and v == int(v)), None)
    flags = [] if code is None or len(spec.rasters) % 2 else ["--classes", str(int(code))]
    if flags:
        counts = [(x[0] == code) & (ok[0] | (name == "shapes")) for x, ok in pixels]
    else:
        counts = [ok.any(0) for _, ok in pixels]
    cell = 8
    del filled["sampler"]
    (world.path / "spec.json").write_text(json.dumps(filled))
    command = [binary, "stats", "--sampling", "--cell", str(cell), "-o", world.path / "w"]
    done = subprocess.run(
        [*command, "--count", name, *flags, world.path / "spec.json"],
        capture_output=True,
        text=True,
    )
    if not any(c.any() for c in counts) and flags:
        assert "no pixel of field" in done.stderr, done.stderr
        return
    assert done.returncode == 0, done.stderr
    written = (world.path / "w").read_bytes()
    begin = 12 + int.from_bytes(written[8:12], "little")
    got = np.frombuffer(written[begin + 8 * worlds.ROWS :], "<u4")
    own = cell * counts[0].shape[0] // (world.size[0] // lead_scale)
    up = [-n % own for n in counts[0].shape]
    want = np.stack([np.pad(c, [(0, n) for n in up]) for c in counts])
    rows, columns = (n // own for n in want.shape[1:])
    want = want.reshape(-1, rows, own, columns, own).sum((2, 4)).ravel()
    np.testing.assert_array_equal(got, want)
    if want.any():
        window = chaski.WeightedWindow((8, 8), world.path / "w")
        load(world, replace(spec, window=window, rows=chaski.Rows()))


def check(binary: str, world: World, spec: Spec) -> None:
    filled = load(world, spec)
    if spec.checks == "stats":
        compare_statistics(world, spec)
    ground = isinstance(spec.window, chaski.GeoWindow)
    if spec.checks == "weights" and not ground and spec.rows.time is None:
        compare_weights(world, spec, binary, filled)


def number_of(name: str | None, every: range) -> list[int]:
    return list(every) if name is None else [int(name)]


@pytest.mark.parametrize("number", number_of(ONLY[0], WORLDS))
def test_as_rasterio_and_numpy(tmp_path, binary, number):
    world = worlds.make(tmp_path, np.random.default_rng([75, number]), binary)
    every = number_of(ONLY[1], range(IN_WORLD))
    for k in every:
        spec = draw(np.random.default_rng([76, number, k]), world, k)
        try:
            check(binary, world, spec)
        except chaski.Error as e:
            DRAWN["refused"] += 1
            if not any(re.search(way, str(e)) for way in REFUSALS):
                raise AssertionError(
                    f"world {number}, spec {k}: {spec}: no way is known: {e}"
                ) from e
        except AssertionError as e:
            raise AssertionError(f"world {number}, spec {k}: {spec}: {e}") from e
    DRAWN["specs"] += len(every)
    few = DRAWN["refused"] <= REFUSED * DRAWN["specs"]
    assert few or DRAWN["specs"] < 200, f"{DRAWN}: too many are refused to judge the others"
