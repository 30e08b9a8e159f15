"""Random files for random specs, and what a slow obvious loader makes of them."""

from __future__ import annotations

import csv
import json
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import rasterio
from rasterio.features import rasterize

LEFT, TOP, PIXEL = 500000, 4600000, 10
WIDE = ["int64", "uint64"]
DTYPES = ["uint8", "int8", "int16", "uint16", "int32", "uint32", "float32", "float64", *WIDE]
MASKS = ["none", "nodata", "internal", "beside", "alpha", "internal and nodata"]
COLOURS = [(0, 0, 0), (255, 0, 0), (255, 0, 9), (7, 7, 7), (0, 200, 0)]
ROWS = 4
Box = tuple[int, int, int, int]  # y, x, height and width


@dataclass
class Raster:
    """The pixels of a file by rasterio: (b, y, x), or (t, b, y, x) of a series."""

    pixels: np.ndarray
    valid: np.ndarray
    masked: np.ndarray  # what a mask in or beside the file leaves out, whatever is nodata


@dataclass
class World:
    """A table of files, and what they hold by the column and the row."""

    path: Path
    size: tuple[int, int]
    pitch: int  # pixels from an image to the next one on the ground; they may overlap
    files: dict[str, list[Raster]] = field(default_factory=dict)
    scale: dict[str, int] = field(
        default_factory=dict
    )  # of a column: pixels of an image on a side of one of its own
    offset: dict[str, tuple[int, int]] = field(
        default_factory=dict
    )  # and where it begins in the image
    columns: dict[str, list[Any]] = field(default_factory=dict)
    shapes: list[tuple[dict[str, Any], int]] = field(default_factory=list)
    dtypes: dict[str, list[str]] = field(default_factory=dict)

    @property
    def table(self) -> Path:
        return self.path / "rows.csv"

    @property
    def catalog(self) -> Path:
        return self.path / "rows.parquet"


def profile(rng: np.random.Generator, dtype: str, bands: int) -> tuple[str, dict[str, Any]]:
    """Draws a kind of mask and what rasterio needs to write a raster with bands of data."""
    kind, codec = str(rng.choice(MASKS)), str(rng.choice(["DEFLATE", "LZW", "ZSTD", "PACKBITS"]))
    if dtype not in ("int8", *WIDE) and rng.random() < 0.2:
        codec = "LERC_DEFLATE"
    how: dict[str, Any] = {"interleave": str(rng.choice(["PIXEL", "BAND"])), "compress": codec}
    if kind == "alpha" and not (dtype in ("uint8", "uint16") and bands in (1, 3)):
        kind = "none"
    if kind == "alpha":
        how |= {"photometric": "RGB" if bands == 3 else "MINISBLACK", "alpha": "yes"}
        bands += 1
    if "nodata" in kind:
        nan = dtype.startswith("float") and rng.random() < 0.4
        how["nodata"] = np.nan if nan else int(rng.choice([0, 1, 100]))
    if rng.random() < 0.5:
        how |= {"tiled": True, "blockxsize": 16, "blockysize": 32}
    return kind, {"dtype": dtype, "count": bands, **how}


def write(path: Path, x: np.ndarray, kind: str, how: dict[str, Any], place: Any, mask: Any) -> None:
    if "nodata" in how:
        x[:, ~mask] = how["nodata"]
    if kind == "alpha":
        x = np.concatenate([x, np.where(mask, 200, 0)[None].astype(x.dtype)])
    size = {"driver": "GTiff", "height": x.shape[1], "width": x.shape[2]}
    inside = rasterio.Env(GDAL_TIFF_INTERNAL_MASK="internal" in kind)
    with inside, rasterio.open(
        path, "w", **size, **how, crs="EPSG:32630", transform=place
    ) as f:  # fmt: skip
        f.write(x)
        if kind == "beside" or "internal" in kind:
            f.write_mask(np.roll(mask, 3, 1))


def read(path: Path, kind: str, mask: np.ndarray) -> Raster:
    """Returns the pixels of the bands that are no alpha, and which of them GDAL calls valid."""
    with rasterio.open(path) as f:
        bands = list(range(1, f.count + (kind != "alpha")))
        x, valid = f.read(bands), f.read_masks(bands) > 0
    masked = ~mask if kind == "alpha" else np.zeros_like(mask)
    if kind == "beside" or "internal" in kind:
        masked = ~np.roll(mask, 3, 1)
    return Raster(x, valid, masked)


def make(folder: Path, rng: np.random.Generator, binary: str) -> World:
    """Writes the files of a world: images side by side, and what belongs to them."""
    height, width = (2 * int(n) for n in rng.integers(12, 21, 2))
    pitch = width if rng.random() < 0.5 else 2 * int(rng.integers(0, width // 2))
    world = World(folder, (height, width), pitch)
    half, moved = bool(rng.random() < 0.5), tuple(int(n) for n in rng.integers(-6, 7, 2))
    fields = {
        "image": (int(rng.integers(1, 4)), 1, (0, 0)),
        "mask": (1, 2 if half else 1, (0, 0)),
        "beside": (int(rng.integers(1, 3)), 1, moved),
    }
    for name, (bands, scale, offset) in fields.items():
        some = rng.choice(DTYPES, 1 if rng.random() < 0.5 else ROWS)
        if name == "mask":
            some = rng.choice(["uint8", "int16", "uint16", "int32"], len(some))
        dtypes = [str(some[i % len(some)]) for i in range(ROWS)]
        world.scale[name], world.offset[name], world.dtypes[name] = scale, offset, dtypes
        for i, dtype in enumerate(dtypes):
            kind, how = profile(rng, dtype, bands)
            shape = (bands, height // scale, width // scale)
            high = 4 if name == "mask" else 5
            x = rng.integers(0, high, shape).astype(dtype)
            if name != "mask":
                x *= np.dtype(dtype).type(25)
            if name == "image" and rng.random() < 0.2:
                whole = np.dtype(dtype).kind != "f"
                x[rng.random(shape) < 0.05] = (
                    min(np.iinfo(dtype).max - 2, 2**53 - 1) if whole else 1e30
                )
            mask = rng.random(shape[1:]) < 0.75
            left, top = LEFT + (i * pitch + offset[1]) * PIXEL, TOP - offset[0] * PIXEL
            place = rasterio.transform.from_origin(left, top, scale * PIXEL, scale * PIXEL)
            path = folder / f"{name}{i}.tif"
            write(path, x, kind, how, place, mask)
            world.files.setdefault(name, []).append(read(path, kind, mask))
    for i in range(ROWS):
        codes = rng.integers(0, len(COLOURS), (height, width))
        codes[: height // 2] = i
        x = np.array(COLOURS, "uint8")[codes].transpose(2, 0, 1)
        place = rasterio.transform.from_origin(LEFT + i * pitch * PIXEL, TOP, PIXEL, PIXEL)
        how = {"dtype": "uint8", "count": 3, "photometric": "RGB", "compress": "DEFLATE"}
        write(folder / f"colour{i}.tif", x, "none", how, place, codes >= 0)
        world.files.setdefault("colour", []).append(
            Raster(x, np.ones(x.shape, bool), np.zeros(codes.shape, bool))
        )
        x = rng.integers(0, 900, (3, 2, height, width)).astype("uint16")
        np.save(folder / f"series{i}.npy", x)
        world.files.setdefault("series", []).append(
            Raster(x, np.ones(x.shape, bool), np.zeros(codes.shape, bool))
        )
    for name in ("colour", "series"):
        world.scale[name], world.offset[name], world.dtypes[name] = 1, (0, 0), ["uint8"]
    world.dtypes["series"] = ["uint16"]
    add_columns(world, rng)
    add_shapes(world, rng)
    fields = [f for name in world.files for f in ("--field", f"{name}={name}")]
    subprocess.run([binary, "index", *fields, "-o", world.catalog, world.table], check=True)
    return world


def add_columns(world: World, rng: np.random.Generator) -> None:
    """Writes the table, with numbers, strings and boxes."""
    height, width = world.size
    world.columns = {
        "id": [f"row {i}" for i in range(ROWS)],
        "cloud": [round(float(v), 3) for v in rng.random(ROWS)],
        "count": [int(v) for v in rng.integers(-9, 9, ROWS)],
        "kind": [str(v) for v in rng.choice(["wood", "water", "town"], ROWS)],
        "site": ["a", "a", "b", "b"],
        "y": [int(v) for v in rng.integers(0, height // 2 - 2, ROWS)],
        "x": [int(v) for v in rng.integers(0, width // 2 - 2, ROWS)],
        "h": [int(v) * 2 for v in rng.integers(1, 5, ROWS)],
        "w": [int(v) * 2 for v in rng.integers(1, 5, ROWS)],
    }
    for name in ("y", "x"):  # whole pixels of masks of half the resolution
        world.columns[name] = [v // 2 * 2 for v in world.columns[name]]
    for name in world.files:
        ending = "npy" if name == "series" else "tif"
        world.columns[name] = [f"{name}{i}.{ending}" for i in range(ROWS)]
    with open(world.table, "w", newline="") as f:
        out = csv.writer(f)
        out.writerow(world.columns)
        out.writerows(zip(*world.columns.values(), strict=True))


def add_shapes(world: World, rng: np.random.Generator) -> None:
    """Writes triangles and rectangles on the ground of all images."""
    height, width = world.size[0], world.size[1] + (ROWS - 1) * world.pitch
    features = []
    for i in range(24):
        x = LEFT + rng.uniform(0, width * PIXEL) + rng.uniform(-90, 90, 3)
        y = TOP - rng.uniform(0, height * PIXEL) + rng.uniform(-90, 90, 3)
        ring = [[float(a), float(b)] for a, b in zip(x, y, strict=True)]
        if i % 2:
            (x0, y0), (x1, y1) = ring[:2]
            ring = [[x0, y0], [x1, y0], [x1, y1], [x0, y1]]
        shape = {"type": "Polygon", "coordinates": [[*ring, ring[0]]]}
        kind = int(rng.integers(1, 4))
        world.shapes.append((shape, kind))
        properties = {"class": kind, "name": f"c{kind}"}
        features.append({"type": "Feature", "properties": properties, "geometry": shape})
    crs = {"type": "name", "properties": {"name": "urn:ogc:def:crs:EPSG::32630"}}
    for name, some in (("shapes", features), ("boxes", features[1::2])):
        collection = {"type": "FeatureCollection", "crs": crs, "features": some}
        (world.path / f"{name}.geojson").write_text(json.dumps(collection))


def cut(x: np.ndarray, box: Box) -> np.ndarray:
    """Returns a window of the last two axes, with zeros past the edge."""
    y, left, height, width = box
    out = np.zeros((*x.shape[:-2], height, width), x.dtype)
    top, bottom = max(y, 0), min(y + height, x.shape[-2])
    first, last = max(left, 0), min(left + width, x.shape[-1])
    if top < bottom and first < last:
        out[..., top - y : bottom - y, first - left : last - left] = x[..., top:bottom, first:last]
    return out


def taps(m: int, n: int) -> list[tuple[int, int, int, np.float32]]:
    """Returns of each of n resampled pixels of m: the nearest, its two neighbours, their weight."""
    out = []
    for i in range(n):
        num = (2 * i + 1) * m - n
        low = num // (2 * n)
        weight = np.float32(num - low * 2 * n) / np.float32(2 * n)
        a, b = (min(max(k, 0), m - 1) for k in (low, low + 1))
        out.append(((2 * i + 1) * m // (2 * n), a, b, weight))
    return out


def between(p: np.float32, q: np.float32, t: np.float32) -> np.float32:
    return p if t == 0 or p == q else np.float32(p + np.float32(t * np.float32(q - p)))


def resampled(
    x: np.ndarray, valid: np.ndarray, size: tuple[int, int], how: str
) -> tuple[np.ndarray, np.ndarray]:
    """Brings one plane to a size, as docs/order.md says."""
    height, width = size
    if how == "antialias":
        return antialiased(x.astype(np.float32), valid, size)
    rows, columns = taps(x.shape[0], height), taps(x.shape[1], width)
    near = np.ix_([r[0] for r in rows], [c[0] for c in columns])
    out, ok = x[near].copy(), valid[near]
    if how == "nearest":
        return out, ok
    x = x.astype(np.float32)
    out = out.astype(np.float32)
    for i, (near_y, top, bottom, t) in enumerate(rows):
        for j, (near_x, left, right, u) in enumerate(columns):
            if ok[i, j]:
                at = [
                    x[r, c] if valid[r, c] else x[near_y, near_x]
                    for r in (top, bottom)
                    for c in (left, right)
                ]
                out[i, j] = between(between(at[0], at[1], u), between(at[2], at[3], u), t)
    return out, ok


def antialiased(
    x: np.ndarray, valid: np.ndarray, size: tuple[int, int]
) -> tuple[np.ndarray, np.ndarray]:
    def weights(m: int, n: int) -> np.ndarray:
        j, i = np.arange(m)[None], np.arange(n)[:, None]
        return np.maximum(0, 2 * max(m, n) - abs((2 * j + 1) * n - (2 * i + 1) * m)).astype(float)

    down, across = weights(x.shape[0], size[0]), weights(x.shape[1], size[1])
    there = np.where(valid, x, 0).astype(float)
    sums = np.zeros((x.shape[0], size[1]))
    share = np.zeros_like(sums)
    for c in range(x.shape[1]):  # in the order of the index, and NaN without a weight is no part
        sums += np.where(across[:, c] > 0, across[:, c] * there[:, c : c + 1], 0)
        share += across[:, c] * valid[:, c : c + 1]
    total, weight = np.zeros(size), np.zeros(size)
    for r in range(x.shape[0]):
        total += np.where(down[:, r : r + 1] > 0, down[:, r : r + 1] * sums[r], 0)
        weight += down[:, r : r + 1] * share[r]
    ok = 2 * weight >= down.sum(1)[:, None] * across.sum(1)
    return (total / np.where(weight == 0, 1, weight)).astype(np.float32), ok & (weight > 0)


def turned(x: np.ndarray, transform: np.ndarray) -> np.ndarray:
    """Flips and turns the last two axes as a geotransform says that it was done."""
    _, across, x_down, _, y_across, down = transform
    swaps = across == 0
    if (x_down if swaps else across) < 0:
        x = x[..., ::-1]
    if (y_across if swaps else down) > 0:
        x = x[..., ::-1, :]
    return x.swapaxes(-1, -2) if swaps else x


def boxes(
    shapes: list[tuple[dict[str, Any], int]],
    transform: Any,
    size: tuple[int, int],
    turn: np.ndarray,
) -> tuple[np.ndarray, list[int]]:
    """Returns the boxes of rectangles in a window that is turned as a geotransform says."""
    found, values = [], []
    left, across, _, top, _, down = transform
    for shape, value in shapes:
        ring = np.array(shape["coordinates"][0])
        x = np.clip((ring[:, 0] - left) / across, 0, size[1])
        y = np.clip((ring[:, 1] - top) / down, 0, size[0])
        if x.min() == x.max() or y.min() == y.max():
            continue
        swaps = turn[1] == 0
        if (turn[2] if swaps else turn[1]) < 0:
            x = size[1] - x
        if (turn[4] if swaps else turn[5]) > 0:
            y = size[0] - y
        if swaps:
            x, y = y, x
        found.append([x.min(), y.min(), x.max(), y.max()])
        values.append(value)
    return np.array(found).reshape(-1, 4), values


def drawn(
    shapes: list[tuple[dict[str, Any], int]], transform: np.ndarray, size: tuple[int, int]
) -> np.ndarray:
    """Returns shapes as rasterio draws them into a window that is not turned."""
    return rasterize(shapes, size, transform=rasterio.Affine.from_gdal(*transform), dtype="int64")


def native(world: World, spec: Any) -> np.dtype[Any]:
    """Returns the dtype of the files of a field, which its tensor has if it is native."""
    name = (spec.columns or [spec.column])[0]
    return np.dtype(world.dtypes[name][0])


def blends(world: World, spec: Any) -> str:
    """Returns how windows of a field are resampled."""
    dtype = native(world, spec) if spec.dtype == "native" else np.dtype(spec.dtype)
    default = "bilinear" if dtype in ("float32", "float16") and spec.lut is None else "nearest"
    return spec.resample or default


def stored(world: World, name: str, spec: Any, row: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns the pixels of a file that a field picks, and which of them are there."""
    file = world.files[name][row]
    x, ok = file.pixels, file.valid
    if spec.nodata is not None:
        lists = np.atleast_1d(np.asarray(spec.nodata, float))
        ok = ~np.isin(x, lists) & ~file.masked
    if spec.times is not None:
        x, ok = x[spec.times], ok[spec.times]
    if spec.bands is not None and spec.columns is None:
        x, ok = x[..., spec.bands, :, :], ok[..., spec.bands, :, :]
    return x, ok


def marks(spec: Any) -> bool:
    return bool(fills(spec) or spec.validity)


def fills(spec: Any) -> bool:
    asked = spec.dtype in ("float32", "float16")
    return spec.fill is not None or spec.normalize is not None or asked


def planes(
    world: World, name: str, spec: Any, row: int, box: Box, size: tuple[int, int]
) -> tuple[np.ndarray, ...]:
    """Returns the pixels of a window, which of them are there, in the file, and certain."""
    if spec.columns is not None:
        return stack(world, spec, row, box, size)
    x, ok = stored(world, name, spec, row)
    if not marks(spec):
        ok = np.ones(ok.shape, bool)
    inside = np.ones(x.shape, bool)
    x, ok, inside = (cut(v, box) for v in (x, ok, inside))
    if box[2:] != size:
        if spec.lut is not None and name == "colour":
            x, ok, inside = coded(x, spec), ok.all(0, keepdims=True), inside[:1]
        how, lead = blends(world, spec), x.shape[:-2]
        every = [
            resampled(a, b & c, size, how)
            for a, b, c in zip(*(v.reshape(-1, *box[2:]) for v in (x, ok, inside)), strict=True)
        ]
        x, ok = (np.stack(v).reshape(*lead, *size) for v in zip(*every, strict=True))
        inside = np.ones(ok.shape, bool)
    elif spec.lut is not None and name == "colour":
        x, ok, inside = coded(x, spec), ok.all(0, keepdims=True), inside[:1]
    return x, ok & inside, inside, np.ones(x.shape, bool)


def stack(
    world: World, spec: Any, row: int, box: Box, size: tuple[int, int]
) -> tuple[np.ndarray, ...]:
    """Lays the nearest pixels of each part over the window; between two, none is certain."""
    found = []
    for name in spec.columns:
        file, scale, offset = world.files[name][row], world.scale[name], world.offset[name]
        if spec.ground == "ignore":  # by sizes
            offset = (0, 0)
        sides = []
        for axis in (0, 1):
            at = box[axis] + (np.arange(size[axis]) + 0.5) * box[2 + axis] / size[axis]
            in_part = (at - offset[axis]) / scale
            sure = np.abs(in_part - np.round(in_part)) > 1e-6
            n = file.pixels.shape[1 + axis]
            there = (at >= 0) & (at < world.size[axis]) & (in_part >= 0) & (in_part < n)
            sides.append((np.clip(np.floor(in_part).astype(int), 0, n - 1), there, sure))
        (ys, in_y, sure_y), (xs, in_x, sure_x) = sides
        there = in_y[:, None] & in_x
        for pixels, valid in zip(file.pixels, file.valid, strict=True):
            ok = valid[np.ix_(ys, xs)] if marks(spec) else np.ones(there.shape, bool)
            x = pixels[np.ix_(ys, xs)].astype(float)
            found.append((x, ok & there, there, sure_y[:, None] & sure_x))
    return tuple(np.stack(v) for v in zip(*found, strict=True))


def coded(x: np.ndarray, spec: Any) -> np.ndarray:
    """Returns the numbers of colours, -1 where there is none."""
    out = np.full((1, *x.shape[1:]), -1)
    for colour, code in spec.lut.items():
        out[0, np.all(x == np.array(colour)[:, None, None], axis=0)] = code
    return out


def finished(
    x: np.ndarray, ok: np.ndarray, inside: np.ndarray, spec: Any, dtype: np.dtype[Any]
) -> tuple[np.ndarray, np.ndarray]:
    """Returns the values of a tensor, and their validity."""
    if spec.lut is not None:
        if spec.column == "colour":
            ok = ok & (x >= 0)
        else:
            known = np.isin(x, list(spec.lut))
            table = np.vectorize(lambda v: spec.lut.get(v, 0))
            x, ok = table(x), ok & known
    if dtype == np.uint8 and x.dtype.kind == "f":  # it cannot hold NaN
        ok = ok & ~np.isnan(x)
    if spec.normalize is not None:
        column = lambda v: np.array(v, np.float32)[:, None, None]  # noqa: E731
        y = x.astype(np.float32) * column(spec.normalize["scale"])
        y = (y + column(spec.normalize["offset"])).astype(np.float32)
        if "clip" in spec.normalize:
            y = np.clip(y, *np.float32(spec.normalize["clip"]))
        x = y
    with np.errstate(invalid="ignore", over="ignore"):
        if dtype == np.uint8:
            x = np.clip(np.nan_to_num(np.rint(x.astype(float))), 0, 255)
        out = (x.astype(np.float32) if dtype == np.float16 else x).astype(dtype)
    fill = spec.fill or 0
    if fills(spec):
        out = np.where(ok, out, np.array(fill, dtype))
    return np.where(inside, out, np.array(fill, dtype)), ok


def laid_out(x: np.ndarray, spec: Any) -> np.ndarray:
    if spec.layout == "n y x b":
        return x.transpose(1, 2, 0)
    if spec.layout == "n (y x) b":
        return x.transpose(1, 2, 0).reshape(-1, len(x))
    return x


def valued(world: World, field: Any) -> list[tuple[dict[str, Any], int]]:
    """Returns the shapes of a field in their order, with the values that they are drawn with."""
    if field.kind == "instances":
        return [(s, i + 1) for i, (s, _) in enumerate(world.shapes)]
    if field.classes is not None:
        return [
            (s, field.classes.index(f"c{k}") + 1)
            for s, k in world.shapes
            if f"c{k}" in field.classes
        ]
    return [(s, k if field.column else 1) for s, k in world.shapes]
