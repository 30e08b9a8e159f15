"""The reference of samplers, mixtures, splits and transforms, in plain Python.

docs/order.md defines them: pure functions of seed, epoch and position. `Plan` puts them together,
and the tests hold the engine to it. testdata/order.json holds the package shuffle to the rest.
"""

from __future__ import annotations

import math
import operator
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import NamedTuple

from chaski.order import Order, Ticket, below, hash_words, window

_MASK = (1 << 64) - 1
_RESIZED, _WEIGHTED, _TEXT, _CELL, _SOURCE, _WORD = 3, 4, 5, 6, 7, 8
_POOL, _VISIT, _CORNER, _TRANSFORM, _SUBSTITUTE, _BATCH = 9, 10, 11, 12, 13, 14

WORD_LEN = 10_000
"""Slots of a mixture's word: its proportions are whole parts of it."""


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
            return max(min(-(-max(size - h, 0) // stride) + 1, -(-size // stride)), 1)
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


def _share(parts: Sequence[int], h: int) -> int:
    return bisect_right(list(accumulate(parts)), h >> 32)


def share_of_text(seed: int, parts: Sequence[int], text: str) -> int:
    """Returns which of the parts of 2**32 an id, or the value of a column, belongs to."""
    b = text.encode()
    words = [int.from_bytes(b[i : i + 8], "little") for i in range(0, len(b), 8)]
    return _share(parts, hash_words(seed, _TEXT, len(b), *words))


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


def transform(elements: Sequence[int], seed: int, epoch: int, p: int) -> int:
    """Returns the element at position p, out of a set in order; 0 where it is empty."""
    if len(elements) < 2:
        return elements[0] if elements else 0
    return elements[below(hash_words(seed, _TRANSFORM, epoch, p), len(elements))]


Sampler = WholeChip | RandomWindow | Grid | Resized | Weighted | Visits


@dataclass(frozen=True)
class Dataset:
    """Items and how they are sampled.

    Attributes:
        items: rows of the table.
        sampler: which windows of an item there are.
        rows: the rows that count; None for all.
        transforms: the elements that a sample's transform is drawn from, in order.
    """

    items: int
    sampler: Sampler = field(default_factory=WholeChip)
    rows: Sequence[int] | None = None
    transforms: Sequence[int] = ()


@dataclass(frozen=True)
class Mixture:
    """Draws from datasets until the longest has been seen.

    Attributes:
        sources: the datasets.
        counts: how often each stands in `WORD_LEN` positions, or in a batch.
        batch: the counts are exact in every batch of so many positions, and epochs are a whole
            number of batches.
    """

    sources: Sequence[Dataset]
    counts: Sequence[int]
    batch: int = 0


@dataclass(frozen=True, slots=True)
class Draw:
    """What stands at a position.

    Attributes:
        dataset: number of the dataset in the spec, from left to right.
        seed: of the dataset, or of the substitute.
        epoch: of the dataset.
        position: in that epoch.
        sample: number of the sample in the dataset.
        item: the row, or the index into its rows.
        row: the row of the table.
        sub: number of the window in the item, or of the visit.
        transform: the element.
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


class _Leaf:
    """A dataset with its seed and its number of samples."""

    def __init__(self, seed: int, d: Dataset, number: int) -> None:
        self.seed, self.d, self.number = seed, d, number
        s = d.sampler
        if isinstance(s, Visits | Grid):
            self.n = len(s.runs) * (s.per_visit if isinstance(s, Visits) else 1)
        else:
            self.n = (d.items if d.rows is None else len(d.rows)) * self._each()

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

    def draw(self, seed: int, epoch: int, p: int, sample: int) -> Draw:
        s, d = self.d.sampler, self.d
        if isinstance(s, Visits):
            item, sub = s.runs.at(sample // s.per_visit)
        elif isinstance(s, Grid):
            item, sub = s.runs.at(sample)
        else:
            item, sub = divmod(sample, self._each())
        row = item if d.rows is None else d.rows[item]
        g = transform(d.transforms, seed, epoch, p)
        return Draw(self.number, seed, epoch, p, sample, item, row, sub, g)


class _Mixed:
    """A mixture with the order in which its datasets follow each other."""

    def __init__(self, seed: int, m: Mixture, leaves: Sequence[_Leaf]) -> None:
        self.counts, self.batch, self.seed, self.leaves = m.counts, m.batch, seed, leaves
        ends = self.ends = list(accumulate(m.counts))
        assert ends[-1] == (m.batch or WORD_LEN)
        sizes = list(zip((leaf.n for leaf in leaves), m.counts, strict=True))
        if m.batch:
            batches = max(-(-n // c) for n, c in sizes)
            self.n = batches * m.batch
            self.drawn = [batches * c for c in m.counts]
            return
        order = _Permutation(seed, (_WORD,), WORD_LEN)
        self.word = [bisect_right(ends, order.at(j)) for j in range(WORD_LEN)]
        slots: list[list[int]] = [[] for _ in m.counts]
        self.rank = []
        for j, i in enumerate(self.word):
            self.rank.append(len(slots[i]))
            slots[i].append(j)
        self.n = 1 + max(
            (n - 1) // c * WORD_LEN + slots[i][(n - 1) % c] for i, (n, c) in enumerate(sizes)
        )
        words, rest = divmod(self.n, WORD_LEN)
        self.drawn = [words * c + self.word[:rest].count(i) for i, c in enumerate(m.counts)]

    def locate(self, epoch: int, p: int) -> tuple[_Leaf, int, int]:
        """Returns the dataset of a position, its own epoch and its own position."""
        b, j = divmod(p, self.batch or WORD_LEN)
        if self.batch:
            x = _Permutation(self.seed, (_BATCH, epoch, b), self.batch).at(j)
            i = bisect_right(self.ends, x)
            rank = x - (self.ends[i] - self.counts[i])
        else:
            i, rank = self.word[j], self.rank[j]
        draw = epoch * self.drawn[i] + b * self.counts[i] + rank
        return self.leaves[i], *divmod(draw & _MASK, self.leaves[i].n)


def group_of(pool: int, dataset: int, n: int, levels: Sequence[tuple[int, int]], t: Ticket) -> int:
    """Returns a name for the tickets whose windows share decoded tiles.

    Args:
        pool: positions of the pools of the dataset that leads.
        dataset: its number.
        n: positions of an epoch.
        levels: the way to it from the outermost mixture on: how often an epoch draws from the
            source, and the positions of an epoch of its own.
        t: the ticket.
    """
    epoch, p = t.epoch, min(max(t.first, 0), n)
    for drawn, samples in levels:
        draw = epoch * drawn + p * drawn // n & _MASK
        n = samples
        epoch, p = divmod(draw, n)
    return hash_words(0, dataset, epoch, p // pool) >> 1


class Plan:
    """Which sample stands at any position of any epoch, and which window of it."""

    def __init__(
        self, seed: int, source: Dataset | Mixture, shuffle: bool = True, take: int = 0
    ) -> None:
        """Compiles a dataset or a mixture.

        Args:
            seed: the seed of the run.
            source: what it draws from.
            shuffle: every epoch has an order of its own.
            take: positions of an epoch, in place of the source's own; 0 for these. Draws go on
                from one epoch to the next.
        """
        self._shuffle, self._take, self._mixed = shuffle, take, None
        if isinstance(source, Dataset):
            self._leaves = [_Leaf(seed, source, 0)]
            self._n = self._leaves[0].n
        else:
            self._leaves = [
                _Leaf(hash_words(seed, _SOURCE, i), d, i) for i, d in enumerate(source.sources)
            ]
            self._mixed = _Mixed(seed, source, self._leaves)
            self._n = self._mixed.n

    def __len__(self) -> int:
        """Returns the positions of an epoch."""
        return self._take or self._n

    def at(self, epoch: int, p: int) -> Draw:
        """Returns what stands at position p of an epoch."""
        assert 0 <= p < len(self)
        if self._take:
            epoch, p = divmod(epoch * self._take + p & _MASK, self._n)
        leaf = self._leaves[0]
        if self._mixed is not None:
            leaf, epoch, p = self._mixed.locate(epoch, p)
        return leaf.draw(leaf.seed, epoch, p, leaf.sample(epoch, p, self._shuffle))

    def substitute(self, d: Draw, attempt: int) -> Draw:
        """Returns what takes the place of a bad sample at an attempt from 1 to 16."""
        leaf = self._leaves[d.dataset]
        seed = hash_words(leaf.seed, _SUBSTITUTE, d.epoch, d.position, attempt)
        return leaf.draw(seed, d.epoch, d.position, below(hash_words(seed), leaf.n))

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
