"""The reference of samplers, mixtures, sequences, splits and transforms, in plain Python.

The engine computes the same; docs/order.md defines it: pure functions of seed, epoch and position.
`Plan` puts them together. The tests hold the engine to it.
"""

from __future__ import annotations

import math
import operator
from bisect import bisect_right
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import accumulate
from typing import NamedTuple, TypeVar

from chaski.order import Order, Ticket, below, hash_words, window

__all__ = [
    "D4",
    "FLIPS",
    "MAX_ATTEMPTS",
    "ROTATIONS",
    "WORD_LEN",
    "Box",
    "Dataset",
    "Draw",
    "Grid",
    "Groups",
    "Mixture",
    "Plan",
    "RandomWindow",
    "Resized",
    "Runs",
    "Scenes",
    "Sampler",
    "Series",
    "Source",
    "Visits",
    "Weighted",
    "Weights",
    "WholeChip",
    "apportion",
    "apply",
    "inverse",
    "lonlat",
    "share_of_cell",
    "share_of_text",
    "share_of_time",
    "strata",
    "temperature",
    "then",
    "transform",
]

_MASK = (1 << 64) - 1
_RESIZED, _WEIGHTED, _TEXT, _CELL, _SOURCE, _WORD, _GROUND = 3, 4, 5, 6, 7, 8, 15
_POOL, _VISIT, _CORNER, _TRANSFORM, _SUBSTITUTE, _BATCH = 9, 10, 11, 12, 13, 14
_BLOCK = 16

WORD_LEN = 10_000
"""Slots of a mixture's word: its proportions are whole parts of it."""

MAX_ATTEMPTS = 16
"""Substitutes of one position, at most."""


class _Permutation(Order):
    """The network of `Order` with keys of another domain."""

    def __init__(self, seed: int, words: tuple[int, ...], n: int) -> None:
        super().__init__(0, 0, n)
        if n > 1:
            self._keys = [hash_words(seed, *words, i) for i in range(len(self._keys))]


class Box(NamedTuple):
    """A window of an asset in pixels: the corner, and the size."""

    y: int
    x: int
    h: int
    w: int


def _corners(size: int, h: int, align: int) -> int:
    """The corners that a window of size h has on a side of size pixels, in steps of align."""
    return max(size - h, 0) // align + 1


def _padded(size: int, h: int, stride: int) -> int:
    """The runs of h at every stride over a side; the last may end, but not begin past it."""
    return max(min(-(-max(size - h, 0) // stride) + 1, -(-size // stride)), 1)


class Runs:
    """The samples of items, one item after another."""

    def __init__(self, counts: Sequence[int]) -> None:
        """Lays out items of which item i has counts[i] samples."""
        self.ends = list(accumulate(map(operator.index, counts)))

    def __len__(self) -> int:
        """Returns the number of samples."""
        return self.ends[-1] if self.ends else 0

    def at(self, i: int) -> tuple[int, int]:
        """Returns the item of sample i, and the sample's number in it.

        Raises:
            IndexError: the sample is not in [0, len(self)).
        """
        if not 0 <= i < len(self):
            raise IndexError(f"{i} is not in [0, {len(self)})")
        item = bisect_right(self.ends, i)
        return item, i - self.index(item, 0)

    def index(self, item: int, sub: int) -> int:
        """Returns the sample that is number sub of an item: the inverse of `at`."""
        return sub + (self.ends[item - 1] if item else 0)

    def count(self, item: int) -> int:
        """Returns the samples of an item."""
        return self.ends[item] - self.index(item, 0)


@dataclass(frozen=True)
class WholeChip:
    """All of an item: one sample each."""


@dataclass(frozen=True)
class RandomWindow:
    """Windows of h by w pixels at random corners, each as likely as any other, per_item each."""

    h: int
    w: int
    per_item: int = 1
    align_y: int = 1
    align_x: int = 1


@dataclass(frozen=True)
class Grid:
    """Windows of h by w pixels at every stride_y rows and stride_x columns.

    The last windows of a side are moved inside; with `pad` they pass the edge. `runs` has the
    `count` of every item.
    """

    h: int
    w: int
    stride_y: int
    stride_x: int
    align_y: int = 1
    align_x: int = 1
    pad: bool = False
    runs: Runs = field(default_factory=lambda: Runs([]))

    def _side(self, size: int, h: int, stride: int, align: int) -> int:
        """The number of windows on a side."""
        if self.pad:
            return _padded(size, h, stride)
        return -(-(align * (_corners(size, h, align) - 1)) // stride) + 1

    def shape(self, height: int, width: int) -> tuple[int, int]:
        """Returns the numbers of windows down and across an asset."""
        return (
            self._side(height, self.h, self.stride_y, self.align_y),
            self._side(width, self.w, self.stride_x, self.align_x),
        )

    def count(self, height: int, width: int) -> int:
        """Returns the number of windows in an asset of height by width pixels."""
        down, across = self.shape(height, width)
        return down * across

    def at(self, j: int, height: int, width: int) -> Box:
        """Returns window number j of an asset of height by width pixels, row by row."""
        _, across = self.shape(height, width)
        y, x = j // across * self.stride_y, j % across * self.stride_x
        if not self.pad:
            y = min(y, self.align_y * (_corners(height, self.h, self.align_y) - 1))
            x = min(x, self.align_x * (_corners(width, self.w, self.align_x) - 1))
        return Box(y, x, self.h, self.w)


@dataclass(frozen=True)
class Resized:
    """Windows of random area and aspect, to be resampled to h by w pixels, per_item each.

    The area is uniform in [lo, hi] times that of h by w pixels, or with `of_asset` of the asset;
    the aspect, relative to h:w, is log-uniform in [1/ratio, ratio].
    """

    h: int
    w: int
    lo: float
    hi: float
    ratio: float
    of_asset: bool = False
    align_y: int = 1
    align_x: int = 1
    per_item: int = 1

    def at(self, seed: int, epoch: int, p: int, height: int, width: int) -> Box:
        """Returns the window at position p of an epoch in an asset of height by width pixels."""
        h, w = self._size(seed, epoch, p, height, width)
        y, x = window(seed, epoch, p, height, width, h, w, self.align_y, self.align_x)
        return Box(y, x, h, w)

    def _aspect(self, t: int) -> float:
        q, f = 1.0, float(self.ratio)
        for bit in range(63, 47, -1):
            f = math.sqrt(f)
            if t >> bit & 1:
                q *= f
        return 1 / q if t & 1 else q

    def _size(self, seed: int, epoch: int, p: int, height: int, width: int) -> tuple[int, int]:
        ay, ax = self.align_y, self.align_x
        u = (hash_words(seed, _RESIZED, epoch, p, 0) >> 11) * 2.0**-53
        share = self.lo + (self.hi - self.lo) * u
        area = float(height) * float(width) if self.of_asset else float(self.h) * float(self.w)
        area *= share
        q = self._aspect(hash_words(seed, _RESIZED, epoch, p, 1))
        y = math.sqrt((area * (self.h / self.w)) * q)
        x = math.sqrt((area * (self.w / self.h)) / q)
        h = ay * max(math.floor(y / ay + 0.5), 1)
        w = ax * max(math.floor(x / ax + 0.5), 1)
        most_h, most_w = ay * max(height // ay, 1), ax * max(width // ax, 1)
        if h > most_h:
            h, w = most_h, ax * max(w * most_h // h // ax, 1)
        if w > most_w:
            h, w = ay * max(h * most_w // w // ay, 1), most_w
        return h, w


class Weights:
    """A coarse grid of an asset: cells of cell_h by cell_w pixels, row by row, with weights."""

    def __init__(self, weights: Sequence[int], cell_h: int, cell_w: int, width: int) -> None:
        """Takes the weights of the cells of an asset that is width pixels wide."""
        self.cell_h, self.cell_w = cell_h, cell_w
        self.across = -(-width // cell_w)
        self.sums = list(accumulate(weights))

    def corner(
        self,
        seed: int,
        epoch: int,
        p: int,
        height: int,
        width: int,
        h: int,
        w: int,
        align_y: int = 1,
        align_x: int = 1,
    ) -> tuple[int, int, bool]:
        """Returns the corner of the window at position p, and whether it is weighted.

        A cell by its weight, a pixel of it uniformly, and the window about this pixel, moved
        inside; where all weights are 0, the random window.
        """
        total = self.sums[-1] if self.sums else 0
        if total == 0:
            return *window(seed, epoch, p, height, width, h, w, align_y, align_x), False
        words = _WEIGHTED, epoch, p
        cell = bisect_right(self.sums, below(hash_words(seed, *words, 0), total))
        cy, cx = cell // self.across * self.cell_h, cell % self.across * self.cell_w
        py = cy + below(hash_words(seed, *words, 1), max(min(self.cell_h, height - cy), 1))
        px = cx + below(hash_words(seed, *words, 2), max(min(self.cell_w, width - cx), 1))
        y = min(max(py - h // 2, 0), max(height - h, 0)) // align_y * align_y
        x = min(max(px - w // 2, 0), max(width - w, 0)) // align_x * align_x
        return y, x, True


@dataclass(frozen=True)
class Ground:
    """Random windows at places on the ground, out of runs of cells: (map, row, column, cells)."""

    side: int
    cell: int
    runs: Sequence[tuple[int, int, int, int]]

    def place(self, seed: int, epoch: int, p: int) -> tuple[int, int, int]:
        """Returns map, row and column of the first pixel of the window at position p."""
        ends = list(accumulate(n for *_, n in self.runs))
        words = _GROUND, epoch, p
        i = below(hash_words(seed, *words, 0), ends[-1])
        k = bisect_right(ends, i)
        number, y, x, n = self.runs[k]
        x += n - (ends[k] - i)
        y = y * self.cell + below(hash_words(seed, *words, 1), self.cell)
        x = x * self.cell + below(hash_words(seed, *words, 2), self.cell)
        return number, y - self.side // 2, x - self.side // 2


@dataclass(frozen=True)
class Scenes:
    """Scenes of one map, given by the corners around each, and the windows that lie over them."""

    rings: Sequence[Sequence[tuple[Fraction, Fraction]]]
    datasets: Sequence[int]
    side: int
    resolution: Fraction
    stride: int = 0
    edge: bool = False
    cover: str = "any"

    @staticmethod
    def ring(
        transform: Sequence[float], height: int, width: int
    ) -> list[tuple[Fraction, Fraction]]:
        """Returns the corners of a raster, rounded to 1/1024 of the unit of the map."""
        a, b, c, d, e, f = map(Fraction, transform)
        at = [(a + b * x + c * y, d + e * x + f * y) for x in (0, width) for y in (0, height)]
        out = [(Fraction(round(x * 1024), 1024), Fraction(round(y * 1024), 1024)) for x, y in at]
        return [out[i] for i in (0, 2, 3, 1)]

    @property
    def cell(self) -> int:
        """The side of a cell in pixels."""
        return self.stride or max(self.side // 16, 1)

    def _across(self, ring: Sequence[tuple[Fraction, Fraction]], y: Fraction) -> list[Fraction]:
        """Where the sides of a polygon cross a row."""
        return [
            x0 + (x1 - x0) * (y - y0) / (y1 - y0)
            for (x0, y0), (x1, y1) in zip(ring, [*ring[1:], ring[0]], strict=True)
            if min(y0, y1) <= y <= max(y0, y1) and y0 != y1
        ]

    def _of(self, ring: Sequence[tuple[Fraction, Fraction]]) -> set[tuple[int, int]]:
        """The cells of a convex polygon, row by row."""
        size, out = self.resolution * self.cell, set()
        ys = [y for _, y in ring]
        for row in range(math.floor(-max(ys) / size), math.ceil(-min(ys) / size)):
            top, bottom = -row * size, -(row + 1) * size
            if self.stride:
                xs = self._across(ring, min(top, max(ys))) + self._across(
                    ring, max(bottom, min(ys))
                )
                xs += [x for x, y in ring if bottom < y < top]
                cells = range(math.floor(min(xs) / size), math.ceil(max(xs) / size))
            else:
                xs = self._across(ring, (top + bottom) / 2) or [Fraction(0)]
                half = Fraction(1, 2)
                first, end = math.floor(min(xs) / size + half), math.ceil(max(xs) / size - half)
                cells = range(first, end)
            out |= {(row, x) for x in cells}
        return out

    def cells(self) -> list[tuple[int, int]]:
        """Returns the cells that middles, or with a stride the corners, of windows lie in."""
        lists = []
        for d in sorted(set(self.datasets)) if self.cover == "all" else [None]:
            own = [r for r, k in zip(self.rings, self.datasets, strict=True) if d in (None, k)]
            cells = set().union(*(self._of(r) for r in own))
            if not self.stride and not self.edge:
                reach = -(-(self.side // 2) // self.cell) + 1
                for dy, dx in (1, 0), (0, 1):  # down and up, then left and right
                    for _ in range(reach):
                        cells = {
                            (y, x)
                            for y, x in cells
                            if (y + dy, x + dx) in cells and (y - dy, x - dx) in cells
                        }
            lists.append(cells)
        return sorted(set.intersection(*lists))


@dataclass(frozen=True)
class Weighted:
    """Windows of h by w pixels about pixels drawn by the asset's `Weights`, per_item each."""

    h: int
    w: int
    per_item: int = 1
    align_y: int = 1
    align_x: int = 1


@dataclass(frozen=True)
class Visits:
    """The tile-aware sampler: every visit of an item reads windows with corners in one tile.

    `pool` visits are shuffled together. `runs` has the number of visits of every item.
    """

    h: int
    w: int
    tile_h: int
    tile_w: int
    per_visit: int
    pool: int
    runs: Runs
    align_y: int = 1
    align_x: int = 1

    def tiles(self, height: int, width: int) -> int:
        """Returns the tiles of an asset that a corner may be in."""
        down = _corners(height, self.h, self.align_y) - 1
        across = _corners(width, self.w, self.align_x) - 1
        ty, tx = self.tile_h // self.align_y, self.tile_w // self.align_x
        return (down // ty + 1) * (across // tx + 1)

    def tile(
        self, seed: int, epoch: int, item: int, visit: int, height: int, width: int
    ) -> tuple[int, int]:
        """Returns the row and column of the tile of a visit of an item."""
        cy = _corners(height, self.h, self.align_y)
        cx = _corners(width, self.w, self.align_x)
        ty, tx = self.tile_h // self.align_y, self.tile_w // self.align_x
        start = below(hash_words(seed, _VISIT, epoch, item), cy * cx)
        c = (visit * cy * cx + start) // self.runs.count(item)
        row = c // (ty * cx)
        rows = min(ty, cy - row * ty)
        return row, (c - row * ty * cx) // (rows * tx)

    def at(
        self, seed: int, epoch: int, sample: int, tile: tuple[int, int], height: int, width: int
    ) -> Box:
        """Returns the window of a sample in the tile of its visit."""
        y = self._corner(seed, epoch, sample, 0, tile[0], self.tile_h, height, self.h, self.align_y)
        x = self._corner(seed, epoch, sample, 1, tile[1], self.tile_w, width, self.w, self.align_x)
        return Box(y, x, self.h, self.w)

    @staticmethod
    def _corner(
        seed: int, epoch: int, sample: int, axis: int, t: int, tile: int, size: int, h: int, a: int
    ) -> int:
        first = t * (tile // a)
        n = max(min(tile // a, _corners(size, h, a) - first), 1)
        return a * (first + below(hash_words(seed, _CORNER, epoch, sample, axis), n))


Sampler = WholeChip | RandomWindow | Grid | Resized | Weighted | Visits


class Series:
    """Sequences of rows in time: rows of one key, ordered by their time."""

    def __init__(
        self,
        keys: Sequence[Hashable],
        times: Sequence[int],
        length: int,
        stride: int = 1,
        cut: bool = False,
        rows: Sequence[int] | None = None,
    ) -> None:
        """Groups rows by key; sequences of length rows begin at every stride rows of a group.

        Args:
            keys: the key of every row of the table.
            times: the time of every row.
            length: rows of a sequence.
            stride: rows from one sequence to the next.
            cut: leaves rows out that do not fill a sequence; otherwise the last one is padded.
            rows: the rows that count; None for all.
        """
        self.length, self.stride = length, stride
        groups: dict[Hashable, list[int]] = {}
        for i in range(len(keys)) if rows is None else rows:
            groups.setdefault(keys[i], []).append(i)
        self.groups = [sorted(g, key=lambda i: (times[i], i)) for g in groups.values()]
        self.runs = Runs([self._count(len(g), cut) for g in self.groups])

    def _count(self, rows: int, cut: bool) -> int:
        if cut:
            return max((rows - self.length) // self.stride + 1, 0)
        return _padded(rows, self.length, self.stride)

    def __len__(self) -> int:
        """Returns the number of sequences."""
        return len(self.runs)

    def rows(self, i: int) -> list[int]:
        """Returns the rows of sequence i in order of time; -1 is padding."""
        group, number = self.runs.at(i)
        start = number * self.stride
        rows = self.groups[group][start : start + self.length]
        return rows + [-1] * (self.length - len(rows))


_K = TypeVar("_K", str, int)


def strata(keys: Sequence[_K], rows: Sequence[int] | None = None) -> list[tuple[_K, list[int]]]:
    """Returns the rows of every value of a column, by value: the sources of a stratified mixture.

    Texts are ordered by their UTF-8 bytes. Of a column of floats the engine has the order of their
    shortest decimal texts ("10" before "2.5"): the plan of such a run needs those as keys.
    """
    groups: dict[_K, list[int]] = {}
    for i in range(len(keys)) if rows is None else rows:
        groups.setdefault(keys[i], []).append(i)
    by_value = [(k.encode() if isinstance(k, str) else k, k) for k in groups]
    return [(k, groups[k]) for _, k in sorted(by_value)]


def apportion(total: int, weights: Sequence[float]) -> list[int]:
    """Divides total in whole parts in proportion to weights, each at least 1.

    Largest remainder, ties to the first.

    Raises:
        ValueError: a weight is not positive and finite, or there are more weights than parts.
    """
    if not weights or len(weights) > total or not all(0 < w < math.inf for w in weights):
        raise ValueError(f"{total} parts for the weights {list(weights)}")
    whole = 0.0
    for w in weights:  # not sum(), which compensates its rounding in newer Pythons
        whole += w
    exact = [float(total) * (w / whole) for w in weights]
    parts = [math.floor(q) for q in exact]
    rest = [q - math.floor(q) for q in exact]
    for _ in range(total - sum(parts)):
        i = rest.index(max(rest))
        parts[i] += 1
        rest[i] -= 1
    parts = [max(n, 1) for n in parts]
    while sum(parts) > total:
        parts[parts.index(max(parts))] -= 1
    return parts


def temperature(sizes: Sequence[int], t: float) -> list[float]:
    """Returns the weights N^(1/t) of sources of N samples: by size at 1, equal as t grows."""
    most = float(max(sizes))
    return [max((n / most) ** (1 / t), 5e-324) for n in sizes]


def _share(parts: Sequence[int], h: int) -> int:
    return bisect_right(list(accumulate(parts)), h >> 32)


def share_of_text(seed: int, parts: Sequence[int], text: str) -> int:
    """Returns which of the parts of 2**32 an id, or the value of a column, belongs to."""
    b = text.encode()
    words = [int.from_bytes(b[i : i + 8], "little") for i in range(0, len(b), 8)]
    return _share(parts, hash_words(seed, _TEXT, len(b), *words))


_UTM_RADIUS = 6364902.1661650855
_UTM_BETA = (
    0.0008377321640600574,
    5.905869567933988e-08,
    1.6734888803548483e-10,
    2.1677377630220365e-13,
)
_UTM_DELTA = (
    0.0033565514691252124,
    6.571873083960133e-06,
    1.76465640047585e-08,
    5.400482081693544e-11,
)
_DEGREE = 57.29577951308232
_SPHERE = 6378137.0
_GEOGRAPHIC = (4326, 4258, 4269, 4283, 7844, 4674, 4167, 4171)


def lonlat(epsg: int, x: float, y: float) -> tuple[float, float] | None:
    """Returns longitude in [-180, 180) and latitude, in degrees, of a point of a CRS.

    They are the same, bit for bit, in Go: docs/order.md, Splits.

    Args:
        epsg: 4326 and other codes of longitude and latitude, UTM (326xx, 327xx, 258xx, 269xx) or
            3857.
        x: easting, or longitude.
        y: northing, or latitude.

    Returns:
        None where the point is none of the CRS.

    Raises:
        ValueError: the CRS is not known.
    """
    zone, south = _utm_zone(epsg)
    found: tuple[float, float] | None
    if epsg in _GEOGRAPHIC:
        found = x, y
    elif epsg == 3857:
        found = _inverse_mercator(x, y)
    elif zone:
        found = _inverse_utm(x, y - 10_000_000 if south else y)
        found = found and (found[0] + (6 * zone - 183), found[1])
    else:
        raise ValueError(f"EPSG:{epsg} is not known")
    if found is None:
        return None
    lon, lat = found
    if lon >= 180:
        lon -= 360
    elif lon < -180:
        lon += 360
    return (lon, lat) if -180 <= lon < 180 and -90 <= lat <= 90 else None


def _utm_zone(epsg: int) -> tuple[int, bool]:
    """Returns the zone of UTM that a code stands for, or 0, and whether it is of the south."""
    if 32600 < epsg <= 32660:
        return epsg - 32600, False
    if 32700 < epsg <= 32760:
        return epsg - 32700, True
    if 25828 <= epsg <= 25838:
        return epsg - 25800, False
    return (epsg - 26900 if 26900 < epsg <= 26923 else 0), False


def _inverse_utm(x: float, y: float) -> tuple[float, float] | None:
    """Returns degrees from the central meridian, and the latitude."""
    xi, eta = y / _UTM_RADIUS, (x - 500_000) / _UTM_RADIUS
    if not (abs(xi) <= 2 and abs(eta) <= 1):
        return None
    s, c = _sin_cos(2 * xi)
    sh, ch = _sinh_cosh(2 * eta)
    sj, cj, shj, chj = s, c, sh, ch
    for j, b in enumerate(_UTM_BETA):
        if j:
            sj, cj = sj * c + cj * s, cj * c - sj * s
            shj, chj = shj * ch + chj * sh, chj * ch + shj * sh
        xi -= b * (sj * chj)
        eta -= b * (cj * shj)
    s, c = _sin_cos(xi)
    sh, _ = _sinh_cosh(eta)
    if c <= 0:
        return None
    chi = _arc_tan(s / math.sqrt(sh * sh + c * c))
    lon = _arc_tan(sh / c) * _DEGREE
    s, c = _sin_cos(2 * chi)
    sj, cj = s, c
    for j, d in enumerate(_UTM_DELTA):
        if j:
            sj, cj = sj * c + cj * s, cj * c - sj * s
        chi += d * sj
    return lon, chi * _DEGREE


def _inverse_mercator(x: float, y: float) -> tuple[float, float] | None:
    u, v = x / _SPHERE, y / _SPHERE
    if not (abs(u) <= 4 and abs(v) <= 4):
        return None
    return u * _DEGREE, _arc_tan(_sinh_cosh(v)[0]) * _DEGREE


def _sin_cos(t: float) -> tuple[float, float]:
    q = t * t
    s, c, ts, tc = t, 1.0, t, 1.0
    for i in range(1, 21):
        k = 2.0 * i
        tc = -(tc * q) / ((k - 1) * k)
        ts = -(ts * q) / (k * (k + 1))
        s, c = s + ts, c + tc
    return s, c


def _sinh_cosh(t: float) -> tuple[float, float]:
    e = term = 1.0
    for i in range(1, 51):
        term = term * t / i
        e += term
    inverse = 1 / e
    return (e - inverse) * 0.5, (e + inverse) * 0.5


def _arc_tan(t: float) -> float:
    for _ in range(3):
        t /= 1 + math.sqrt(1 + t * t)
    q, power, total = t * t, t, t
    for i in range(1, 17):
        power = -(power * q)
        total += power / (2 * i + 1)
    return 8 * total


def share_of_cell(
    seed: int, parts: Sequence[int], bounds: tuple[float, float, float, float], size: float
) -> int | None:
    """Returns which of the parts of 2**32 the geographic cell of some bounds belongs to.

    Args:
        seed: the seed of the split.
        parts: the shares.
        bounds: minimum x, minimum y, maximum x, maximum y.
        size: side of a cell, in units of the bounds.
    """
    cell = []
    for lo, hi in [(bounds[1], bounds[3]), (bounds[0], bounds[2])]:
        c = ((lo + hi) * 0.5) / size if size > 0 else math.nan
        if not math.isfinite(c) or abs(math.floor(c)) > 1 << 62:
            return None
        cell.append(math.floor(c) & _MASK)
    return _share(parts, hash_words(seed, _CELL, *cell))


def share_of_time(ranges: Sequence[tuple[int, int]], t: int) -> int | None:
    """Returns the first range [from, to) that holds t, if one does."""
    return next((i for i, (start, end) in enumerate(ranges) if start <= t < end), None)


FLIPS = (0, 1, 2, 3)
ROTATIONS = (0, 3, 5, 6)
D4 = (0, 1, 2, 3, 4, 5, 6, 7)


def transform(elements: Sequence[int], seed: int, epoch: int, p: int) -> int:
    """Returns the element at position p, out of a set in order; 0 where it is empty."""
    if len(elements) < 2:
        return elements[0] if elements else 0
    return elements[below(hash_words(seed, _TRANSFORM, epoch, p), len(elements))]


def apply(g: int, y: int, x: int, h: int, w: int) -> tuple[int, int]:
    """Returns where the pixel (y, x) of a window of h by w pixels comes to stand."""
    if g & 1:
        x = w - 1 - x
    if g & 2:
        y = h - 1 - y
    return (x, y) if g & 4 else (y, x)


def then(g: int, following: int) -> int:
    """Returns the element that does g, then the following one."""
    if g & 4:
        following = following & 4 | (following & 1) << 1 | following >> 1 & 1
    return g ^ following


def inverse(g: int) -> int:
    """Returns the element that undoes g."""
    return {5: 6, 6: 5}.get(g, g)


@dataclass(frozen=True)
class Dataset:
    """Items and how they are sampled.

    Attributes:
        items: rows of the table.
        sampler: which windows of an item there are.
        rows: the rows that count; None for all.
        series: makes sequences the items.
        transforms: the elements that a sample's transform is drawn from, in order.
    """

    items: int
    sampler: Sampler = field(default_factory=WholeChip)
    rows: Sequence[int] | None = None
    series: Series | None = None
    transforms: Sequence[int] = ()


@dataclass(frozen=True)
class Mixture:
    """Draws from sources in proportion to counts, which sum to `WORD_LEN` or to `batch`.

    Attributes:
        sources: datasets and mixtures.
        counts: how often each stands in `WORD_LEN` positions, or in a batch.
        until: "shortest", "longest" or "given".
        length: positions of an epoch, where it is given.
        batch: the counts are exact in every batch of so many positions, and epochs are a whole
            number of batches. Of a mixture in a mixture it is the other's count of it.
        block: every source gives so many positions in a row, and epochs are whole numbers of these.
            Of a mixture in a mixture it is what the other takes of it at a time.
    """

    sources: Sequence[Source]
    counts: Sequence[int]
    until: str = "shortest"
    length: int = 0
    batch: int = 0
    block: int = 0


Source = Dataset | Mixture


@dataclass(frozen=True, slots=True)
class Draw:
    """What stands at a position.

    Attributes:
        dataset: number of the dataset in the spec, from left to right.
        seed: of the dataset, or of the substitute.
        epoch: of the dataset.
        position: in that epoch.
        sample: number of the sample in the dataset.
        item: the row, the index into its rows, or the sequence.
        row: the row of the table; of a sequence, its first.
        sub: number of the window in the item, or of the visit.
        transform: the element.
        attempt: 0, or which substitute it is.
    """

    dataset: int
    seed: int
    epoch: int
    position: int
    sample: int
    item: int
    row: int
    sub: int
    transform: int
    attempt: int = 0


def _pool_len(s: Sampler) -> int:
    """The positions of a pool."""
    return s.per_visit * s.pool if isinstance(s, Visits) else 1


class _Leaf:
    """A dataset with its seed and its number of samples."""

    def __init__(self, seed: int, d: Dataset, number: int) -> None:
        self.seed, self.d, self.number = seed, d, number
        self.items = d.items
        if d.series is not None:
            self.items = len(d.series)
        elif d.rows is not None:
            self.items = len(d.rows)
        s = d.sampler
        if isinstance(s, Visits | Grid):
            if len(s.runs.ends) != self.items:
                raise ValueError(f"windows of {len(s.runs.ends)} items, for {self.items}")
            self.n = len(s.runs) * (s.per_visit if isinstance(s, Visits) else 1)
        else:
            self.n = self.items * self._each()

    def _each(self) -> int:
        s = self.d.sampler
        return s.per_item if isinstance(s, RandomWindow | Resized | Weighted) else 1

    def sample(self, epoch: int, p: int, shuffle: bool) -> int:
        s = self.d.sampler
        if not isinstance(s, Visits):
            return Order(self.seed, epoch, self.n, shuffle).at(p)
        k, visits = s.per_visit, len(s.runs)
        pool, o = divmod(p, k * s.pool)
        if shuffle:
            n = min(s.pool, visits - pool * s.pool) * k
            o = _Permutation(self.seed, (_POOL, epoch, pool), n).at(o)
        visit = Order(self.seed, epoch, visits, shuffle).at(pool * s.pool + o // k)
        return visit * k + o % k

    def position(self, epoch: int, sample: int, shuffle: bool) -> int:
        s = self.d.sampler
        if not isinstance(s, Visits):
            return Order(self.seed, epoch, self.n, shuffle).position(sample)
        k, visits = s.per_visit, len(s.runs)
        at = Order(self.seed, epoch, visits, shuffle).position(sample // k)
        pool = at // s.pool
        o = (at - pool * s.pool) * k + sample % k
        if shuffle:
            n = min(s.pool, visits - pool * s.pool) * k
            o = _Permutation(self.seed, (_POOL, epoch, pool), n).position(o)
        return pool * s.pool * k + o

    def draw(self, seed: int, epoch: int, p: int, sample: int, attempt: int) -> Draw:
        s, d = self.d.sampler, self.d
        if isinstance(s, Visits):
            item, sub = s.runs.at(sample // s.per_visit)
        elif isinstance(s, Grid):
            item, sub = s.runs.at(sample)
        else:
            item, sub = divmod(sample, self._each())
        row = item
        if d.series is not None:
            row = d.series.rows(item)[0]
        elif d.rows is not None:
            row = d.rows[item]
        g = transform(d.transforms, seed, epoch, p)
        return Draw(self.number, seed, epoch, p, sample, item, row, sub, g, attempt)


class _Node:
    """A compiled source: a leaf, or the word of a mixture."""

    def __init__(self, seed: int, source: Source, leaves: list[_Leaf]) -> None:
        self.leaf: _Leaf | None = None
        if isinstance(source, Dataset):
            self.leaf = _Leaf(seed, source, len(leaves))
            leaves.append(self.leaf)
            self.n = self.leaf.n
            return
        counts, length = source.counts, source.batch or WORD_LEN
        if len(counts) != len(source.sources) or sum(counts) != length or min(counts) < 1:
            raise ValueError(f"counts of {len(source.sources)} sources: {list(counts)}")
        for c, s in zip(counts, source.sources, strict=True):
            unit = s.batch or s.block if isinstance(s, Mixture) else 0
            if unit and unit != (c if source.batch else source.block):
                raise ValueError(f"batches of {unit} in a mixture that has {c} in a batch")
        self.counts, self.batch, self.seed = counts, source.batch, seed
        self.block = source.block or 1
        self.nodes = [
            _Node(hash_words(seed, _SOURCE, i), s, leaves) for i, s in enumerate(source.sources)
        ]
        ends = self.ends = list(accumulate(counts))
        if self.batch:
            self.n = self._batches(source) * self.batch
            self.drawn = [self.n // self.batch * c for c in counts]
            return
        if source.block:
            self.word = [
                i
                for _, i in sorted(
                    (((k << 48) + (hash_words(seed, _BLOCK, i, k) >> 16)) // c, i)
                    for i, c in enumerate(counts)
                    for k in range(c)
                )
            ]
        else:
            order = _Permutation(seed, (_WORD,), WORD_LEN)
            self.word = [bisect_right(ends, order.at(j)) for j in range(WORD_LEN)]
        self.slots: list[list[int]] = [[] for _ in counts]
        self.rank = []
        for j, i in enumerate(self.word):
            self.rank.append(len(self.slots[i]))
            self.slots[i].append(j)
        self.n = self._length(source)
        blocks = self.n // self.block
        self.drawn = [
            (blocks // WORD_LEN * c + self.word[: blocks % WORD_LEN].count(i)) * self.block
            for i, c in enumerate(counts)
        ]

    def _stands(self, i: int, draw: int) -> int:
        """Returns where in the endless word a block of source i stands."""
        return draw // self.counts[i] * WORD_LEN + self.slots[i][draw % self.counts[i]]

    def _batches(self, m: Mixture) -> int:
        """Returns the batches of an epoch."""
        sizes = [node.n for node in self.nodes]
        if min(sizes) < 1:
            raise ValueError(f"a source of a mixture is empty: {sizes}")
        parts = list(zip(sizes, self.counts, strict=True))
        if m.until == "shortest":
            n = min(size // c for size, c in parts)
        elif m.until == "longest":
            n = max(-(-size // c) for size, c in parts)
        elif m.until == "given":
            n, rest = divmod(m.length, self.batch)
            n = 0 if rest else n
        else:
            n = 0
        if n < 1:
            raise ValueError(f"epochs of {m.length} positions, until {m.until!r}, of whole batches")
        return n

    def _length(self, m: Mixture) -> int:
        sizes = [node.n for node in self.nodes]
        if min(sizes) < 1:
            raise ValueError(f"a source of a mixture is empty: {sizes}")
        if m.until == "shortest":
            return min(self._stands(i, n // self.block) for i, n in enumerate(sizes)) * self.block
        if m.until == "longest":
            last = (self._stands(i, (n - 1) // self.block) for i, n in enumerate(sizes))
            return (max(last) + 1) * self.block
        if m.until != "given" or m.length < 1 or m.length % self.block:
            raise ValueError(f"epochs of {m.length} positions, until {m.until!r}")
        return m.length

    def locate(self, epoch: int, p: int) -> tuple[_Leaf, int, int]:
        """Returns the dataset of a position, its own epoch and its own position."""
        if self.leaf is not None:
            return self.leaf, epoch, p
        if self.batch:
            b, j = divmod(p, self.batch)
            x = _Permutation(self.seed, (_BATCH, epoch, b), self.batch).at(j)
            i = bisect_right(self.ends, x)
            c = self.counts[i]
            draw = epoch * self.drawn[i] + b * c + x - (self.ends[i] - c)
            node = self.nodes[i]
            return node.locate(*divmod(draw & _MASK, node.n))
        block, j = divmod(p, self.block)
        i = self.word[block % WORD_LEN]
        before = block // WORD_LEN * self.counts[i] + self.rank[block % WORD_LEN]
        draw = epoch * self.drawn[i] + before * self.block + j
        node = self.nodes[i]
        return node.locate(*divmod(draw & _MASK, node.n))

    def leaders(
        self, share: float = 1.0, levels: tuple[tuple[int, int], ...] = ()
    ) -> Iterator[tuple[_Leaf, float, tuple[tuple[int, int], ...]]]:
        """Yields the datasets with pools, their shares of the positions and the ways to them."""
        if self.leaf is None:
            for count, drawn, node in zip(self.counts, self.drawn, self.nodes, strict=True):
                way = (*levels, (drawn, node.n))
                yield from node.leaders(share * (count / (self.batch or WORD_LEN)), way)
        elif isinstance(self.leaf.d.sampler, Visits) and self.n:
            yield self.leaf, share, levels


@dataclass(frozen=True, slots=True)
class Groups:
    """Names for the tickets whose windows share decoded tiles: one server is to answer them.

    Attributes:
        dataset: number of the dataset that leads.
        pool: positions of its pools.
        samples: positions of an epoch.
        levels: the way to it from the outermost mixture on: how often an epoch draws from the
            source, and the positions of an epoch of its own.
    """

    dataset: int
    pool: int
    samples: int
    levels: tuple[tuple[int, int], ...] = ()

    def __post_init__(self) -> None:
        """Checks what may have come from elsewhere."""
        n = self.samples
        bad = self.dataset < 0 or self.pool < 1 or n < 1
        for drawn, samples in self.levels:
            bad = bad or not 0 <= drawn <= n or samples < 1
            n = samples
        if bad:
            raise ValueError(f"{self}")

    def of(self, ticket: Ticket) -> int:
        """Returns the group of a ticket, 0 or above."""
        epoch, pool, _ = self._place(ticket)
        return hash_words(0, self.dataset, epoch, pool) >> 1

    def turn(self, ticket: Ticket) -> int:
        """Returns the number of a ticket's group in the run: the next group has the next one."""
        epoch, pool, n = self._place(ticket)
        return epoch * -(-n // self.pool) + pool & _MASK

    def _place(self, ticket: Ticket) -> tuple[int, int, int]:
        """Returns epoch and pool of the leading dataset, and the positions of its epoch."""
        epoch, p, n = ticket.epoch, min(max(ticket.first, 0), self.samples), self.samples
        for drawn, samples in self.levels:
            draw = epoch * drawn + p * drawn // n & _MASK
            n = samples
            epoch, p = divmod(draw, n)
        return epoch, p // self.pool, n


class Plan:
    """Which sample stands at any position of any epoch, and which window of it."""

    def __init__(self, seed: int, source: Source, shuffle: bool = True, take: int = 0) -> None:
        """Compiles a dataset or a mixture.

        Args:
            seed: the seed of the run.
            source: what it draws from.
            shuffle: every epoch has an order of its own.
            take: positions of an epoch, in place of the source's own; 0 for these. Draws go on
                from one epoch to the next.

        Raises:
            ValueError: a mixture's counts, sources or rule for its epochs are not right.
        """
        self._shuffle = shuffle
        self._take = take
        self._leaves: list[_Leaf] = []
        self._root = _Node(seed, source, self._leaves)
        batch = source.batch if isinstance(source, Mixture) else 0
        if take < 0 or (take and self._root.n == 0) or (batch and take % batch):
            raise ValueError(f"epochs of {take} positions, in batches of {batch or 1}")

    def __len__(self) -> int:
        """Returns the positions of an epoch."""
        return self._take or self._root.n

    def _locate(self, epoch: int, p: int) -> tuple[_Leaf, int, int]:
        epoch, p = operator.index(epoch), operator.index(p)  # numpy's have 64 bits
        if not 0 <= p < len(self):
            raise IndexError(f"{p} is not in [0, {len(self)})")
        if self._take:
            epoch, p = divmod(epoch * self._take + p & _MASK, self._root.n)
        return self._root.locate(epoch, p)

    def at(self, epoch: int, p: int) -> Draw:
        """Returns what stands at position p of an epoch.

        Raises:
            IndexError: p is not in [0, len(plan)).
        """
        leaf, epoch, p = self._locate(epoch, p)
        return leaf.draw(leaf.seed, epoch, p, leaf.sample(epoch, p, self._shuffle), 0)

    def position(self, dataset: int, epoch: int, sample: int) -> int:
        """Returns the position of a sample in an epoch of its dataset."""
        epoch, sample = operator.index(epoch), operator.index(sample)
        return self._leaves[dataset].position(epoch, sample, self._shuffle)

    def pool_of(self, epoch: int, p: int) -> tuple[int, int, int] | None:
        """Returns dataset, its epoch and the pool of a position, if its sampler has pools.

        Raises:
            IndexError: p is not in [0, len(plan)).
        """
        leaf, epoch, p = self._locate(epoch, p)
        s = leaf.d.sampler
        if not isinstance(s, Visits):
            return None
        return leaf.number, epoch, p // (s.per_visit * s.pool)

    def groups(self) -> Groups | None:
        """Returns what names the tickets that are best served together, if any sampler has pools.

        Of the datasets with pools that are drawn at least a quarter as often as the one drawn most
        often, the one leads whose pools last longest; the first of several.
        """
        way = ((self._take, self._root.n),) if self._take else ()
        leaders = list(self._root.leaders(levels=way))
        often = [x for x in leaders if 4 * x[1] >= max(share for _, share, _ in leaders)]
        if not often or not len(self):
            return None

        def lasts(x: tuple[_Leaf, float, tuple[tuple[int, int], ...]]) -> float:
            return min(_pool_len(x[0].d.sampler), x[0].n) / x[1]

        leaf, _, levels = max(often, key=lasts)
        return Groups(leaf.number, _pool_len(leaf.d.sampler), len(self), levels)

    def substitute(self, d: Draw, attempt: int) -> Draw:
        """Returns what takes the place of a bad sample at an attempt from 1 to `MAX_ATTEMPTS`.

        Raises:
            ValueError: it is none of these.
        """
        if not 1 <= attempt <= MAX_ATTEMPTS:
            raise ValueError(f"attempt {attempt} is not in [1, {MAX_ATTEMPTS}]")
        leaf = self._leaves[d.dataset]
        seed = hash_words(leaf.seed, _SUBSTITUTE, d.epoch, d.position, attempt)
        return leaf.draw(seed, d.epoch, d.position, below(hash_words(seed), leaf.n), attempt)

    def rows(self, d: Draw) -> list[int]:
        """Returns the row of a draw, or the rows of its sequence with -1 for padding."""
        series = self._leaves[d.dataset].d.series
        return [d.row] if series is None else series.rows(d.item)

    def window(
        self, d: Draw, height: int, width: int, weights: Weights | None = None
    ) -> tuple[Box, bool]:
        """Returns the window of a draw in an asset of height by width pixels, and a flag.

        The flag tells that weights were wanted, but there are none and the window is random.
        """
        s = self._leaves[d.dataset].d.sampler
        at = d.seed, d.epoch, d.position
        if isinstance(s, WholeChip):
            return Box(0, 0, height, width), False
        if isinstance(s, Grid):
            return s.at(d.sub, height, width), False
        if isinstance(s, Resized):
            return s.at(*at, height, width), False
        if isinstance(s, Visits):
            tile = s.tile(d.seed, d.epoch, d.item, d.sub, height, width)
            return s.at(d.seed, d.epoch, d.sample, tile, height, width), False
        if isinstance(s, RandomWindow):
            y, x = window(*at, height, width, s.h, s.w, s.align_y, s.align_x)
            return Box(y, x, s.h, s.w), False
        weights = weights or Weights([], 1, 1, width)
        y, x, weighted = weights.corner(*at, height, width, s.h, s.w, s.align_y, s.align_x)
        return Box(y, x, s.h, s.w), not weighted
