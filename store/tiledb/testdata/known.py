"""Writes arrays whose cells follow a rule, with libtiledb 1.6.3, and puts them into a ZIP.

    known.py LIBRARY ZIP

LIBRARY is the library that write16.py takes. ZIP becomes testdata/tiledb/known.zip. The tests that
read it compute the cells themselves; those of a cube stand in `cube`.
"""

from __future__ import annotations

import itertools
import math
import struct
import sys
import tempfile
import time
import zipfile
from collections.abc import Sequence
from pathlib import Path

from write16 import (
    BIT_SHUFFLE,
    CHAR,
    ROW_MAJOR,
    UINT64,
    UNORDERED,
    VAR,
    ZSTD,
    Attr,
    Cell,
    Library,
    Pipeline,
    Schema,
    Write,
    cells_of,
)

INT32, FLOAT32, UINT8, UINT16, UINT32, DAY = 0, 2, 6, 8, 9, 20
BYTE_SHUFFLE = BIT_SHUFFLE + 1
PACKED: Pipeline = (300, [(BYTE_SHUFFLE, None), (ZSTD, 1)])
RAW: Pipeline = (None, [])
Box = list[tuple[int, int]]
# The two attributes of the arrays with times.
BYTE_AND_TEXT = [Attr("a", UINT8, 1, PACKED), Attr("v", CHAR, VAR, PACKED)]


def dense(box: Box, rows: list[list[bytes]]) -> Write:
    """Makes a write of a box."""
    return Write(ROW_MAJOR, [], box, rows)


def sparse(cells: list[tuple[Cell, list[bytes]]]) -> Write:
    """Makes a write of single cells."""
    return Write(UNORDERED, [p for p, _ in cells], None, [row for _, row in cells])


def fill(s: Schema, box: Box, rows: dict[Cell, list[bytes]]) -> Write:
    """Makes a write of a box; cells that rows lacks are as if they were not written."""
    return dense(box, [rows.get(p) or [a.fill() for a in s.attrs] for p in cells_of(box)])


def blocks(box: Box, block: int, seed: int) -> Write:
    """Makes a write of a plane of bytes: each block of so many bytes along x has one value."""
    (top, bottom), (left, right) = box
    rows = []
    for y in range(top, bottom + 1):
        line = (
            bytes([(y // block * 31 + x * 7 + seed) % 251]) * block
            for x in range(right // block + 1)
        )
        rows.append(b"".join(line)[left : right + 1])
    return dense(box, [[b"".join(rows)]])


class Known:
    """The arrays in a folder."""

    def __init__(self, library: str, folder: Path):
        """Loads the library."""
        self.lib, self.folder = Library(library, {}), folder

    def array(
        self,
        name: str,
        dims: list[tuple[str, int, int, int]],
        attrs: list[Attr],
        writes: list[tuple[Box, list[list[bytes]]]],
        key: bytes | None = None,
    ) -> None:
        """Makes a dense array of int32 dimensions with a fragment for each write."""
        s = Schema(True, INT32, 0, 0, 100, dims, attrs, (None, [(ZSTD, None)]), None, key)
        uri = str(self.folder / name).encode()
        self.lib.create(uri, s)
        for box, rows in writes:
            time.sleep(0.002)  # fragments are sorted by the milliseconds in their names
            self.lib.write(uri, s, Write(ROW_MAJOR, [], box, rows))

    def cube(
        self,
        name: str,
        dims: str,
        size: tuple[int, int, int, int],
        extents: tuple[int, int, int, int],
        pipeline: Pipeline = PACKED,
    ) -> None:
        """Makes images n, b, y, x of which dims are dimensions, from -3 on, in two fragments.

        The second lies over a part of the first; the last two rows are never written. A cell's
        index i in the order n, b, y, x and its fragment f (0 or 1) make its values
        (i + 125 f) % 251 * 4 and (i + 15 f) % 31 / 2.
        """
        n, b, h, w = size
        low, axes = -3, dict(zip("nbyx", range(4), strict=True))
        order = [axes[d] for d in dims.split()]
        ranges = [(d, low, low + size[axes[d]] - 1, extents[axes[d]]) for d in dims.split()]
        writes = []
        parts = [((0, h - 2), (0, w)), ((h // 3, h - 3), (w // 4, w - 1))]
        for f, (rows, columns) in enumerate(parts):
            whole = [(0, n), (0, b), rows, columns]
            cells = []
            for at in itertools.product(*(range(*whole[axis]) for axis in order)):
                place = dict(zip(order, at, strict=True))
                i = 0
                for axis in range(4):
                    i = i * size[axis] + place.get(axis, 0)
                cells.append(
                    [
                        struct.pack("<H", (i + 125 * f) % 251 * 4),
                        struct.pack("<f", (i + 15 * f) % 31 / 2),
                    ]
                )
            box = [(low + whole[axis][0], low + whole[axis][1] - 1) for axis in order]
            writes.append((box, cells))
        attrs = [Attr("a", UINT16, 1, pipeline), Attr("f", FLOAT32, 1, pipeline)]
        self.array(name, ranges, attrs, writes)

    def cubes(self) -> None:
        """Makes the arrays of the loader's tests that are cubes."""
        for i, dims in enumerate(["n b y x", "x y b n", "b n x y", "n y x", "y x b", "y x"]):
            n, b = 5 if "n" in dims else 1, 3 if "b" in dims else 1
            for j, extents in enumerate([(1, 1, 8, 8), (2, 3, 16, 5)]):
                self.cube(f"cube-{i}-{j}", dims, (n, b, 20, 30), extents, RAW if j else PACKED)
        self.cube("stats", "y b n x", (4, 2, 11, 13), (3, 1, 4, 5))
        self.cube("small", "n b y x", (3, 2, 9, 9), (1, 1, 4, 4))
        self.cube("six", "n b y x", (6, 1, 8, 8), (1, 1, 8, 8))
        # As long as noise would be: without filters.
        self.cube("wide-90", "n b y x", (4, 3, 90, 70), (2, 1, 38, 38), RAW)
        self.cube("wide-300", "n b y x", (4, 3, 300, 280), (2, 1, 128, 128), RAW)

    def images(self) -> None:
        """Makes arrays n y x of one attribute a."""

        def numbers(fmt: str, values: range) -> list[list[bytes]]:
            return [[struct.pack(fmt, v)] for v in values]

        for n in (3, 5):  # pixels that are numbered
            dims = [("n", 10, 9 + n, 1), ("y", 10, 29, 7), ("x", 10, 40, 9)]
            rows = numbers("<i", range(n * 20 * 31))
            box = [(lo, hi) for _, lo, hi, _ in dims]
            self.array(f"numbered-{n}", dims, [Attr("a", INT32, 1, PACKED)], [(box, rows)])
        byte = [Attr("a", UINT8, 1, PACKED)]
        text = b"the cells of two images of 4 x 4"
        dims = [("n", 0, 1, 1), ("y", 0, 3, 4), ("x", 0, 3, 4)]
        rows = [[text[i : i + 1]] for i in range(32)]
        key = b"0123456789abcdef0123456789abcdef"
        self.array("encrypted", dims, byte, [([(0, 1), (0, 3), (0, 3)], rows)], key)
        # Images 340 to 349 of 1,000 hold 0 to 9.
        dims = [("n", 100, 1099, 7), ("y", 100, 103, 4), ("x", 100, 103, 4)]
        rows = [[bytes([i // 16])] for i in range(160)]
        self.array("rows", dims, byte, [([(340, 349), (100, 103), (100, 103)], rows)])
        # The first and the last image of 2**24 are full of sevens.
        last = 2**24 - 1
        dims = [("n", 0, last, 1), ("y", 0, 3, 4), ("x", 0, 7, 8)]
        writes = [([(k, k), (0, 3), (0, 7)], [[b"\7"]] * 32) for k in (0, last)]
        self.array("far-apart", dims, [Attr("a", UINT8, 1, RAW)], writes)
        # Image 0 is written as a whole, 1 in three pieces, 2 in part, 3 but for a column; all of
        # it has the value of cells that were not written.
        dims = [("n", 0, 3, 2), ("y", 0, 7, 4), ("x", 0, 7, 4)]
        pieces = [
            [(0, 0), (0, 7), (0, 7)],
            [(1, 1), (0, 4), (0, 7)],
            [(1, 1), (4, 7), (2, 7)],
            [(1, 2), (5, 7), (0, 2)],
            [(2, 2), (0, 4), (0, 7)],
            [(3, 3), (0, 7), (0, 2)],
            [(3, 3), (0, 7), (4, 7)],
        ]
        cells = [math.prod(hi - lo + 1 for lo, hi in box) for box in pieces]
        writes = [(box, [[b"\xff"]] * n) for box, n in zip(pieces, cells, strict=True)]
        self.array("fills", dims, byte, writes)

    def others(self) -> None:
        """Makes arrays of other shapes."""
        dims = [("n", 0, 3, 1), ("b", 0, 1, 1), ("y", 0, 199, 64), ("x", 0, 179, 64)]
        rows = [[struct.pack("<H", i % 251)] for i in range(4 * 2 * 200 * 180)]
        box = [(lo, hi) for _, lo, hi, _ in dims]
        self.array("server", dims, [Attr("dn", UINT16, 1, RAW)], [(box, rows)])
        odd = ["a b", "100%", "%2F", "x#y", "q?z", "ü", "..z", "a+b", "a&b;c", 'a"b<c>', "日本"]
        dims = [("y", 0, 199, 100), ("x", 0, 199, 100)]
        rows = [[struct.pack("<I", (i + k) % 97) for k in range(len(odd))] for i in range(40000)]
        attrs = [Attr(name, UINT32, 1, RAW) for name in odd]
        self.array("odd", dims, attrs, [([(0, 199), (0, 199)], rows)])
        s = Schema(
            False,
            FLOAT32,
            0,
            0,
            10,
            [("x", 0.1, 7, 0.1)],
            [Attr("a", UINT8, 1, RAW)],
            None,
            None,
            None,
        )
        self.lib.create(str(self.folder / "float32").encode(), s)

    def timed(self, name: str, s: Schema, writes: list[tuple[int, int, Write]]) -> None:
        """Makes an array whose fragments have the times that their names say."""
        folder = self.folder / name
        self.lib.create(str(folder).encode(), s)
        there = set(folder.iterdir())
        for n, (start, end, write) in enumerate(writes):
            self.lib.write(str(folder).encode(), s, write)
            (new,) = (f for f in folder.iterdir() if f not in there and f.is_dir())
            there.add(new.rename(folder / f"__{start}_{end}_{n:032x}"))

    def times(self) -> None:
        """Makes fragments of the times 10 to 40, and of 15 to 30 one with the cells of 10 to 30.

        Fragment k has, in the rows 3 k to 3 k + 8 and the columns k to 7, k and k + 1 letters.
        """
        grid = [("y", 0, 19, 4), ("x", 0, 9, 5)]
        for name, is_dense in (("times-dense", True), ("times-sparse", False)):
            s = Schema(is_dense, INT32, 0, 0, 7, grid, BYTE_AND_TEXT, None, None, None)
            model: dict[Cell, list[bytes]] = {}
            writes = []
            for k in range(4):
                box = [(3 * k, 3 * k + 8), (k, 7)]
                rows = {p: [bytes([k]), b"abcd"[: k + 1]] for p in cells_of(box)}
                one = fill(s, box, rows) if is_dense else sparse(list(rows.items()))
                writes.append((10 * k + 10, 10 * k + 10, one))
                if k < 3:
                    model |= rows
            whole = [(0, 14), (0, 7)]
            joined = fill(s, whole, model) if is_dense else sparse(list(model.items()))
            self.timed(name, s, [*writes, (15, 30, joined)])
        # The days -20, 0 and 20, of which one write has all.
        byte = [Attr("a", UINT8, 1, PACKED)]
        s = Schema(False, DAY, 0, 0, 4, [("day", -50, 49, 10)], byte, None, None, None)
        days = [((20 * k - 20,), [bytes([k])]) for k in range(3)]
        writes = [(10 * k + 10, 10 * k + 10, sparse([cell])) for k, cell in enumerate(days)]
        self.timed("days", s, [*writes, (10, 30, sparse(days))])

    def rows(self) -> None:
        """Makes rows of ten cells, sparse fragments under dense ones: underDense of the tests."""
        first, last, every = (2, 5, 7), range(4, 7), range(10)
        many: list[tuple[int, Sequence[int]]] = [
            (1, every),
            (50, first),
            (60, (5, 6, 8)),
            (10, last),
        ]
        for n, (capacity, writes) in enumerate(
            [
                (100, [(50, first), (10, last)]),
                (2, [(50, first), (10, last)]),
                (100, [(50, first), (10, every)]),
                (100, many),
                (2, many),
                (100, [(50, first), (60, (5, 6)), (10, last)]),
            ]
        ):
            dims = [("y", 0, 0, 1), ("x", 0, 9, 5)]
            attrs = [Attr("a", UINT8, 1, PACKED), Attr("v", UINT8, VAR, PACKED)]
            s = Schema(True, INT32, 0, 0, capacity, dims, attrs, None, None, None)
            made = []
            for k, (value, x) in enumerate(writes):
                if isinstance(x, range):  # of one value
                    box = [(0, 0), (x[0], x[-1])]
                    write = dense(box, [[bytes([value])] * 2 for _ in x])
                else:  # the values of single cells count up
                    write = sparse([((0, c), [bytes([value + i])] * 2) for i, c in enumerate(x)])
                made.append((10 * k + 10, 10 * k + 10, write))
            self.timed(f"row-{n}", s, made)

    def edges(self) -> None:
        """Makes arrays at the ends of what dimensions and names can be."""
        byte = [Attr("a", UINT8, 1, RAW)]
        dims = [("n", 0, 4, 3), ("y", 0, 0, 1), ("x", 0, 1, 2)]
        writes = [
            ([(lo, hi), (0, 0), (0, 1)], [[bytes([k])]] * n)
            for k, lo, hi, n in ((1, 0, 2, 6), (2, 3, 4, 4))
        ]
        self.array("ends", dims, byte, writes)
        for k, (low, n) in enumerate([(0, 5), (7, 2**62), (0, 2**63)]):
            dims = [("n", low, 2**64 - 3, 1), ("y", 0, 1, 2), ("x", 0, 1, 2)]
            s = Schema(True, UINT64, 0, 0, 4, dims, byte, None, None, None)
            box = [(n, n + 1), (0, 1), (0, 1)]
            self.timed(f"endless-{k}", s, [(1, 1, dense(box, [[bytes([i])] for i in range(1, 9)]))])
        odd = [{"a": 1, "a_var": 1}, {"a": 1, "a_var": VAR}, {"_a": 1, "..": 1}]
        for k, names in enumerate(odd):
            attrs = [Attr(name, UINT8, values, RAW) for name, values in sorted(names.items())]
            rows = [[bytes([i + 1]) for i in range(len(attrs))], [b"\t"] * len(attrs)]
            self.array(f"names-{k}", [("x", 0, 1, 2)], attrs, [([(0, 1)], rows)])

    def planes(self) -> None:
        """Makes planes of tiles that take a little more than their bytes: they have no filters."""

        def plane(name: str, side: int, tiles: int, boxes: list[Box], *more: Write) -> None:
            dims = [(d, 0, side - 1, side // tiles) for d in "yx"]
            s = Schema(True, INT32, 0, 0, 100, dims, [Attr("a", UINT8, 1, RAW)], None, None, None)
            whole = [(0, side - 1), (0, side - 1)]
            writes = [*(blocks(box, 64, k) for k, box in enumerate([whole, *boxes])), *more]
            self.timed(name, s, [(10 * k + 10, 10 * k + 10, w) for k, w in enumerate(writes)])

        plane("plane", 1024, 4, [[(512, 1023), (512, 1023)], [(300, 310), (300, 310)]])
        spread = ((37 * i % 1024, 91 * i % 1024) for i in range(950))
        plane("plane-points", 1024, 4, [], sparse([(p, [bytes([sum(p) % 251])]) for p in spread]))
        plane("plane-2048", 2048, 4, [])
        parts: list[Box] = [[(100 * k, 2040 + 1000 * k), (3, 3000)] for k in range(3)]
        plane("plane-4096", 4096, 2, [[(top, min(bottom, 4095)), x] for (top, bottom), x in parts])


def pack(folder: Path, archive: str) -> None:
    """Puts the files of a folder into a ZIP."""
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_BZIP2, compresslevel=9) as z:
        for f in sorted(f for f in folder.rglob("*") if f.is_file()):
            z.write(f, f.relative_to(folder).as_posix())


def main() -> None:
    """Runs the command line."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        known = Known(sys.argv[1], folder)
        known.cubes()
        known.images()
        known.others()
        known.times()
        known.rows()
        known.edges()
        known.planes()
        pack(folder, sys.argv[2])


if __name__ == "__main__":
    main()
