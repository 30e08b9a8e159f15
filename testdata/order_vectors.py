"""Writes order.json: vectors of the order of samples, from docs/order.md alone.

    python testdata/order_vectors.py > testdata/order.json

It shares no code with the engine or the Python package, and computes everything the long way: lists
instead of formulas, exact fractions instead of floats, streams counted draw by draw.
"""

import json
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import partial
from math import ceil, floor

M = 2**64


def mix(x):
    """The finaliser of splitmix64."""
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 % M
    x = (x ^ x >> 27) * 0x94D049BB133111EB % M
    return x ^ x >> 31


def hashed(seed, *words):
    """The hash of a seed and words."""
    h = mix((seed + 0x9E3779B97F4A7C15) % M)
    for w in words:
        h = mix(((h ^ w % M) + 0x9E3779B97F4A7C15) % M)
    return h


def below(h, n):
    """A hash as a number below n."""
    return h * n // M


def permute(seed, words, n, positions):
    """The samples at positions of perm(words; n)."""
    if n < 2:
        return list(positions)
    k = max(6, len(bin(n - 1)) - 2)
    low = k // 2
    keys = [hashed(seed, *words, i) for i in range(12)]

    def once(x):
        hi, lo = divmod(x, 2**low)
        for i, key in enumerate(keys):
            if i % 2:
                lo ^= mix(key ^ hi) % 2**low
            else:
                hi ^= mix(key ^ lo) % 2 ** (k - low)
        return hi * 2**low + lo

    out = []
    for x in positions:
        x = once(x)
        while x >= n:
            x = once(x)
        out.append(x)
    return out


def order(seed, epoch, n, positions):
    """The samples at positions of the order of an epoch."""
    return permute(seed, (1, epoch), n, positions)


def corner_list(size, h, a):
    """All corners of a window on a side."""
    return [y for y in range(0, max(size - h, 0) + 1) if y % a == 0]


def window(seed, epoch, p, height, width, h, w, ay=1, ax=1):
    """The random window."""
    ys, xs = corner_list(height, h, ay), corner_list(width, w, ax)
    return drawn_corner(seed, epoch, p, ys, xs, 0)


def drawn_corner(seed, epoch, p, ys, xs, t):
    """The corner of a try."""
    y = ys[below(hashed(seed, 2, epoch, p, 2 * t), len(ys))]
    return y, xs[below(hashed(seed, 2, epoch, p, 2 * t + 1), len(xs))]


# The first four lists of the file, before there were other samplers.


def hashes():
    """Hashes of words."""
    for seed, words in [
        (0, []),
        (0, [0]),
        (1, [1, 2, 3]),
        (M - 1, [M - 1, 0, M - 1]),
        (42, [1, 0, 11]),
        (2**53 + 1, [2, 5, 2**40, 1]),
    ]:
        yield {"seed": seed, "words": words, "h": hashed(seed, *words)}


def kept(name):
    """A list as it stands in the file; what this program computes of it must be the same."""
    with open(__file__.replace("order_vectors.py", "order.json")) as f:
        yield from json.load(f)[name]


def orders():
    """The orders of the file."""
    for v in kept("orders"):
        p = [p for p, _ in v["at"]]
        yield v | {
            "at": [list(t) for t in zip(p, order(v["seed"], v["epoch"], v["n"], p), strict=False)]
        }


def windows():
    """The random windows of the file."""
    for v in kept("windows"):
        keys = ["seed", "epoch", "p", "height", "width", "h", "w", "align_y", "align_x"]
        y, x = window(*(v.get(k, 1) for k in keys))
        yield v | {"y": y, "x": x}


def tickets():
    """The tickets of the file."""
    for v in kept("tickets"):
        rows = range(v["row_start"], v["count"] + v["row_stride"], v["row_stride"])
        rows = list(rows)[: ceil(Fraction(v["count"], v["row_stride"]))]
        at = [v["first"] + i for i in rows]
        ok = [i < v["count"] and p < v["n"] for i, p in zip(rows, at, strict=False)]
        yield v | {"positions": [p if k else -1 for p, k in zip(at, ok, strict=False)]}


def side(size, h, s, a, pad):
    """The starts of a grid's windows, found by walking until the last one is covered."""
    last = max(size - h, 0) if pad else corner_list(size, h, a)[-1]
    starts = [0]
    while starts[-1] < last and (not pad or starts[-1] + s < size):
        starts.append(starts[-1] + s)
    return starts if pad else [min(y, last) for y in starts]


def grids():
    """Grids, with and without padding."""
    for height, width, h, w, sy, sx, ay, ax in [
        (512, 512, 256, 256, 256, 256, 1, 1),
        (500, 700, 256, 256, 128, 200, 1, 1),
        (100, 300, 128, 128, 64, 64, 1, 1),
        (256, 257, 256, 256, 64, 64, 1, 1),
        (61, 45, 20, 20, 12, 8, 2, 4),
        (1, 1, 1, 1, 1, 1, 1, 1),
        (100, 41, 10, 10, 30, 20, 1, 1),
    ]:
        for pad in (False, True):
            ys, xs = side(height, h, sy, ay, pad), side(width, w, sx, ax, pad)
            yield {
                "height": height, "width": width, "h": h, "w": w, "stride_y": sy, "stride_x": sx,
                "align_y": ay, "align_x": ax, "pad": pad, "down": len(ys), "across": len(xs),
                "windows": [[y, x] for y in ys for x in xs],
            }  # fmt: skip


def rounded(x):
    """A fraction rounded to float64, as a fraction."""
    return Fraction(x.numerator / x.denominator)  # which Python rounds once


def root(x):
    """A square root rounded to float64, as a fraction."""
    with localcontext() as c:
        c.prec = 80
        return Fraction(float((Decimal(x.numerator) / Decimal(x.denominator)).sqrt()))


def resized_size(seed, epoch, p, height, width, h, w, lo, hi, r, of_asset, ay, ax):
    """The size of a resized window."""
    lo, hi, f = Fraction(lo), Fraction(hi), Fraction(r)
    u = Fraction(hashed(seed, 3, epoch, p, 0) >> 11, 2**53)
    share = rounded(lo + rounded(rounded(hi - lo) * u))
    area = rounded(Fraction(height * width if of_asset else h * w) * share)
    bits = f"{hashed(seed, 3, epoch, p, 1):064b}"
    q = Fraction(1)
    for bit in bits[:16]:
        f = root(f)
        if bit == "1":
            q = rounded(q * f)
    if bits[-1] == "1":
        q = rounded(1 / q)
    y = root(rounded(rounded(area * rounded(Fraction(h, w))) * q))
    x = root(rounded(rounded(area * rounded(Fraction(w, h))) / q))
    half = Fraction(1, 2)
    wh = ay * max(int(rounded(rounded(y / ay) + half)), 1)
    ww = ax * max(int(rounded(rounded(x / ax) + half)), 1)
    mh, mw = ay * max(height // ay, 1), ax * max(width // ax, 1)
    if wh > mh:
        wh, ww = mh, ax * max(ww * mh // wh // ax, 1)
    if ww > mw:
        wh, ww = ay * max(wh * mw // ww // ay, 1), mw
    return wh, ww


def resized():
    """Resized windows."""
    for height, width, h, w, lo, hi, r, of_asset, ay, ax in [
        (512, 512, 224, 224, 0.08, 1.0, 4 / 3, True, 1, 1),
        (1000, 400, 224, 224, 0.5, 2.0, 1.5, False, 1, 1),
        (300, 300, 224, 112, 0.25, 4.0, 3.0, False, 2, 4),
        (7, 5, 64, 64, 0.1, 0.9, 2.0, True, 1, 1),
        (2, 3, 64, 64, 0.5, 1.0, 2.0, False, 4, 4),
        (10980, 10980, 256, 256, 0.7, 1.3, 1.0, False, 6, 6),
    ]:
        for seed, epoch, p in [(0, 0, 0), (1, 2, 3), (5, 7, 10**12), (M - 1, 1, 12345), (5, 0, 1)]:
            wh, ww = resized_size(seed, epoch, p, height, width, h, w, lo, hi, r, of_asset, ay, ax)
            y, x = window(seed, epoch, p, height, width, wh, ww, ay, ax)
            yield {
                "seed": seed, "epoch": epoch, "p": p, "height": height, "width": width, "h": h,
                "w": w, "lo": lo, "hi": hi, "ratio": r, "of_asset": of_asset, "align_y": ay,
                "align_x": ax, "box": [y, x, wh, ww],
            }  # fmt: skip


def pixels(y, x, h, w):
    """The pixels of a window."""
    return {(i, j) for i in range(y, y + h) for j in range(x, x + w)}


def meeting(size, h, a, from_, length):
    """The corners on a side where a window meets length pixels from from_ on."""
    starts = corner_list(size, h, a)
    met = [y for y in starts if y + h > from_ and y < from_ + length]
    # Between two corners of coarse chunks may lie a window that no other one meets.
    return met or [min([y for y in starts if y + h > from_], default=starts[-1])]


def views():
    """Windows of views, and their transforms, of views of the random and the resized window.

    "try" is the number of the try that counts, and -1 if none did.
    """
    plain, resize = ("random", 16, 16), ("resized", 24, 12, 0.2, 1.0, 4 / 3, True)
    elements = [0, 1, 2, 3]
    for height, width, first_h, first_w, ay, ax, kind, least in [
        (60, 50, 24, 24, 1, 1, plain, 0),
        (61, 47, 24, 24, 2, 4, plain, 0),
        (60, 50, 24, 24, 1, 1, resize, 0),
        (60, 50, 24, 24, 1, 1, plain, 0.5),
        (60, 50, 10, 20, 1, 1, resize, 0.3),
        (64, 64, 16, 16, 8, 8, plain, 0.25),
        (80, 70, 8, 8, 1, 1, ("random", 30, 20), 1),
        (50, 50, 4, 4, 1, 1, plain, 0.9),
        (60, 50, 24, 24, 1, 1, ("random", 40, 3), 1),
        (12, 80, 16, 16, 1, 1, plain, 0.7),
    ]:
        for seed, epoch, p, view in [
            (0, 0, 0, 1),
            (3, 1, 17, 1),
            (3, 1, 17, 2),
            (M - 1, 2**33, 9, 7),
        ]:
            f = window(seed, epoch, p, height, width, first_h, first_w, ay, ax)
            own, h, w, y, x, found = 0, 0, 0, 0, 0, -1
            for t in range(64):
                own = hashed(seed, 18, view, t)
                h, w = kind[1:3]
                if kind[0] == "resized":
                    h, w = resized_size(own, epoch, p, height, width, *kind[1:], ay, ax)
                if not least:
                    y, x = window(own, epoch, p, height, width, h, w, ay, ax)
                    found = t
                    break
                ys = meeting(height, h, ay, f[0], first_h)
                xs = meeting(width, w, ax, f[1], first_w)
                y = ys[below(hashed(own, 2, epoch, p, 2), len(ys))]
                x = xs[below(hashed(own, 2, epoch, p, 3), len(xs))]
                shared = len(pixels(*f, first_h, first_w) & pixels(y, x, h, w))
                if Fraction(shared, min(first_h * first_w, h * w)) >= Fraction(least):
                    found = t
                    break
            else:
                y = middle(f[0], first_h, height, h, ay)
                x = middle(f[1], first_w, width, w, ax)
            own = hashed(seed, 18, view, 0)
            yield {
                "seed": seed, "epoch": epoch, "p": p, "view": view, "height": height,
                "width": width, "first_h": first_h, "first_w": first_w, "align_y": ay,
                "align_x": ax, "kind": kind, "min_overlap": least, "elements": elements,
                "first": [*f, first_h, first_w], "try": found, "box": [y, x, h, w],
                "element": elements[below(hashed(own, 12, epoch, p), len(elements))],
            }  # fmt: skip


def middle(from_, length, size, h, a):
    """The corner of a window on the middle of another one, as far as there is one."""
    want = max(from_ + int(Fraction(length - h, 2)), 0)  # int cuts towards 0
    return max(c for c in corner_list(size, h, a) if c <= want)


def ground_views():
    """Views of windows on the ground."""
    runs = [[0, -5, -3, 4], [0, -5, 9, 1], [0, 7, 100, 30], [2, -(2**20), 5, 1000]]
    cells = {(m, y, x + i) for m, y, x, n in runs for i in range(n)}
    for side, cell, own_side, least, grid in [
        (32, 16, 32, 0.5, False),
        (32, 16, 8, 0, False),
        (33, 2, 20, 0.75, False),
        (9, 2, 9, 0.9, False),
        (9, 2, 5, 1, False),
        (101, 1, 3, 0, False),
        (16, 16, 7, 0.4, True),
    ]:
        for seed, epoch, p, view in [(0, 0, 0, 1), (3, 1, 17, 2), (3, 1, 18, 1), (9, 2**33, 5, 3)]:
            listed = sorted(cells)
            if grid:
                m, y, x = listed[order(seed, epoch, len(listed), [p])[0]]
                y, x = y * cell, x * cell
            else:
                m, y, x = listed[below(hashed(seed, 15, epoch, p, 0), len(listed))]
                y = y * cell + below(hashed(seed, 15, epoch, p, 1), cell) - side // 2
                x = x * cell + below(hashed(seed, 15, epoch, p, 2), cell) - side // 2
            must = max(ceil(Fraction(least) * own_side), 1)
            for t in range(64):
                own = hashed(seed, 18, view, t)
                rows, columns = (
                    [
                        c
                        for c in range(f - own_side, f + side)
                        if shared(c, own_side, f, side) >= must
                    ]
                    for f in (y, x)
                )
                vy = rows[below(hashed(own, 15, epoch, p, 3), len(rows))]
                vx = columns[below(hashed(own, 15, epoch, p, 4), len(columns))]
                area = shared(vy, own_side, y, side) * shared(vx, own_side, x, side)
                held = (m, (vy + own_side // 2) // cell, (vx + own_side // 2) // cell) in cells
                if area >= Fraction(least) * own_side**2 and (grid or held):
                    found = t
                    break
            else:
                found, vy, vx = -1, y + (side - own_side) // 2, x + (side - own_side) // 2
            yield {
                "seed": seed, "epoch": epoch, "p": p, "view": view, "side": side, "cell": cell,
                "view_side": own_side, "min_overlap": least, "grid": grid, "runs": runs, "map": m,
                "first": [y, x], "try": found, "y": vy, "x": vx,
            }  # fmt: skip


def shared(a, n, b, m):
    """How many of n numbers from a on are among m numbers from b on."""
    return len(range(max(a, b), min(a + n, b + m)))


def clamp(pixel, size, h, a):
    """The last corner that a window about the pixel may have."""
    want = pixel - h // 2
    return max([c for c in corner_list(size, h, a) if c <= want], default=0)


def weighted():
    """Weighted windows."""
    for height, width, ch, cw, h, w, ay, ax, weights in [
        (100, 130, 32, 32, 24, 24, 1, 1, [0, 5, 0, 0, 1] + [0] * 14 + [1000]),
        (64, 64, 64, 64, 16, 48, 2, 4, [7]),
        (90, 50, 40, 40, 64, 64, 1, 1, [1, 2, 3, 4, 2**32 - 1, 2**32 - 1]),
        (80, 80, 40, 40, 32, 32, 1, 1, [0, 0, 0, 0]),
    ]:
        across = ceil(Fraction(width, cw))
        for seed, epoch, p in [(0, 0, 0), (3, 1, 17), (3, 1, 18), (9, 2**33, 2**40), (4, 4, 4)]:
            v = {
                "seed": seed, "epoch": epoch, "p": p, "height": height, "width": width,
                "cell_h": ch, "cell_w": cw, "h": h, "w": w, "align_y": ay, "align_x": ax,
                "weights": weights,
            }  # fmt: skip
            total = sum(weights)
            if not total:
                y, x = window(seed, epoch, p, height, width, h, w, ay, ax)
                yield v | {"y": y, "x": x, "weighted": False}
                continue
            left, cell = below(hashed(seed, 4, epoch, p, 0), total), 0
            while left >= weights[cell]:
                left -= weights[cell]
                cell += 1
            rows = range(height)[cell // across * ch :][:ch]
            cols = range(width)[cell % across * cw :][:cw]
            py = rows[below(hashed(seed, 4, epoch, p, 1), len(rows))]
            px = cols[below(hashed(seed, 4, epoch, p, 2), len(cols))]
            y, x = clamp(py, height, h, ay), clamp(px, width, w, ax)
            yield v | {"y": y, "x": x, "weighted": True}


def without_data(weights, ch, cw, height, width, h, w, y, x):
    """The share of a window without data, pixel by pixel, if a cell's valid pixels lie evenly."""
    across, valid = ceil(Fraction(width, cw)), Fraction(0)
    for py in range(y, min(y + h, height)):
        for px in range(x, min(x + w, width)):
            rows, cols = range(height)[py // ch * ch :][:ch], range(width)[px // cw * cw :][:cw]
            size = len(rows) * len(cols)
            valid += Fraction(weights[py // ch * across + px // cw], size)
    return (h * w - valid) / (h * w)


def covered():
    """Random windows with a limit of nodata."""
    for height, width, ch, cw, h, w, ay, ax, most, weights in [
        (40, 50, 8, 8, 16, 16, 1, 1, 0.5, [64 * (i % 3 > 0) for i in range(30)] + [16] * 5),
        (37, 29, 8, 16, 10, 12, 2, 4, 0.25, [128, 0, 128, 60, 100, 104, 90, 11, 0, 65]),
        (64, 64, 8, 8, 8, 8, 1, 1, 0.0, [64 * (i in (9, 30, 63)) for i in range(64)]),
        (30, 30, 16, 16, 40, 20, 1, 1, 0.5, [256, 224, 224, 196]),
        (32, 32, 16, 16, 8, 8, 1, 1, 0.9, [0, 0, 0, 0]),
    ]:
        share = partial(without_data, weights, ch, cw, height, width, h, w)
        ys, xs = corner_list(height, h, ay), corner_list(width, w, ax)
        listed = [
            (y, x)
            for y in sorted({*ys[:: ch // ay], ys[-1]})
            for x in sorted({*xs[:: cw // ax], xs[-1]})
            if share(y, x) <= most
        ]
        for seed, epoch, p in [(0, 0, 0), (3, 1, 17), (3, 1, 18), (9, 2**33, 2**40), (4, 4, 4)]:
            tries = (drawn_corner(seed, epoch, p, ys, xs, t) for t in range(32))
            found = next((c for c in tries if share(*c) <= most), None)
            if found is None and listed:
                found = listed[below(hashed(seed, 2, epoch, p, 64), len(listed))]
            y, x = found or window(seed, epoch, p, height, width, h, w, ay, ax)
            yield {
                "seed": seed, "epoch": epoch, "p": p, "height": height, "width": width,
                "cell_h": ch, "cell_w": cw, "h": h, "w": w, "align_y": ay, "align_x": ax,
                "weights": weights, "most": most, "y": y, "x": x, "listed": len(listed),
            }  # fmt: skip


def ground():
    """Windows at places on the ground."""
    runs = [[0, -5, -3, 4], [0, -5, 9, 1], [0, 7, 100, 30], [2, -(2**20), 5, 1000]]
    cells = [(m, y, x + i) for m, y, x, n in runs for i in range(n)]
    for side, cell in [(256, 16), (33, 2), (1, 1), (64, 100)]:
        for seed, epoch, p in [(0, 0, 0), (3, 1, 17), (3, 1, 18), (9, 2**33, 2**40), (4, 4, 4)]:
            m, y, x = cells[below(hashed(seed, 15, epoch, p, 0), len(cells))]
            rows = range(y * cell, y * cell + cell)
            cols = range(x * cell, x * cell + cell)
            yield {
                "seed": seed, "epoch": epoch, "p": p, "side": side, "cell": cell, "runs": runs,
                "map": m,
                "y": rows[below(hashed(seed, 15, epoch, p, 1), cell)] - side // 2,
                "x": cols[below(hashed(seed, 15, epoch, p, 2), cell)] - side // 2,
            }  # fmt: skip


def corners(scene):
    """The corners of a scene in order around it, on the map, rounded to 1/1024 of its unit."""
    a, b, c, d, e, f = (Fraction(v) for v in scene["transform"])
    h, w = scene["height"], scene["width"]
    at = [(a + b * x + c * y, d + e * x + f * y) for x, y in [(0, 0), (w, 0), (w, h), (0, h)]]
    return [tuple(Fraction(floor(v * 1024 + Fraction(1, 2)), 1024) for v in p) for p in at]


def apart(a, b, touch):
    """Whether a line lies between two convex polygons; with touch it may touch them."""
    for ring in (a, b):
        for (x0, y0), (x1, y1) in zip(ring, ring[1:] + ring[:1], strict=True):
            if (x0, y0) == (x1, y1):  # of a point
                continue
            along = [[(y1 - y0) * x - (x1 - x0) * y for x, y in r] for r in (a, b)]
            lo, hi = sorted(along, key=lambda v: (min(v), max(v)))
            if max(lo) < min(hi) or touch and max(lo) == min(hi):
                return True
    return False


def square(x0, y0, x1, y1):
    """A box as a polygon."""
    return [(x0, y0), (x1, y0), (x1, y1), (x0, y1)]


def ground_cells(v, q, dataset):
    """The cells of the scenes of a dataset (None for all of them), each asked for by itself."""
    size, out = Fraction(v["resolution"]) * q, set()
    for scene in v["scenes"]:
        if dataset is not None and scene["dataset"] != dataset:
            continue
        ring = corners(scene)
        for cy in range(
            floor(-max(y for _, y in ring) / size), ceil(-min(y for _, y in ring) / size)
        ):
            for cx in range(
                floor(min(x for x, _ in ring) / size), ceil(max(x for x, _ in ring) / size)
            ):
                if v["stride"]:
                    cell = square(cx * size, -(cy + 1) * size, (cx + 1) * size, -cy * size)
                else:  # the centre, as a polygon
                    cell = [((cx + Fraction(1, 2)) * size, -(cy + Fraction(1, 2)) * size)]
                if not apart(ring, cell, True):
                    out.add((cy, cx))
    return out


def ground_list(v):
    """The side of a cell, and the cells that windows may have their middles in."""
    s = v["side"]
    q = v["stride"] or max(s // 16, 1)
    datasets = (
        sorted({scene["dataset"] for scene in v["scenes"]}) if v["cover"] == "all" else [None]
    )
    lists = []
    for d in datasets:
        cells = ground_cells(v, q, d)
        if not v["stride"] and not v["edge"]:
            r = ceil(Fraction(s // 2, q)) + 1
            around = [(i, j) for i in range(-r, r + 1) for j in range(-r, r + 1)]
            cells = {(y, x) for y, x in cells if all((y + i, x + j) in cells for i, j in around)}
        lists.append(cells)
    return q, sorted(set.intersection(*lists))


def window_box(v, y, x, inset=0):
    """A window as a polygon, without some of a pixel at each side."""
    r, s = Fraction(v["resolution"]), v["side"]
    off = r * inset
    return square(x * r + off, -(y + s) * r + off, (x + s) * r - off, -y * r - off)


def ground_scenes():
    """Where windows over scenes of one map lie, and which scenes they see."""
    straight = {
        "transform": [500000, 10, 0, 4600000, 0, -10],
        "height": 60,
        "width": 70,
        "dataset": 0,
    }
    coarse = {
        "transform": [500403, 20, 0, 4599811, 0, -20],
        "height": 40,
        "width": 33,
        "dataset": 0,
    }
    turned = {"transform": [500900, 8, 6, 4599900, 6, -8], "height": 50, "width": 60, "dataset": 1}
    mirrored = {
        "transform": [501300.5, -10, 0, 4599000.25, 0, 10], "height": 60, "width": 80, "dataset": 1
    }  # fmt: skip
    pixel = {"transform": [500517, 10, 0, 4599413, 0, -10], "height": 1, "width": 1, "dataset": 1}
    all_five = [straight, coarse, turned, mirrored, pixel]
    polar = [
        {"transform": [-1300000, 40, 0, -900000, 0, -40], "height": 50, "width": 50, "dataset": 0},
        {
            "transform": [-1299200, 30, 10, -900900, 10, -30],
            "height": 40,
            "width": 40,
            "dataset": 0,
        },
    ]
    south = []
    for s in all_five:
        a, b, c, d, e, f = s["transform"]
        south.append(s | {"transform": [a, b, c, d + 2400000, e, f]})
    for epsg, scenes, side, resolution, stride, edge, cover in [
        (32630, all_five, 32, 10, 0, False, "any"),
        (32630, all_five, 17, 10, 0, True, "any"),
        (32630, all_five, 16, 10, 0, False, "all"),
        (32630, all_five, 16, 10, 0, True, "all"),
        (32630, all_five, 32, 10, 24, False, "any"),
        (32630, all_five, 32, 10, 32, False, "all"),
        (32630, [straight], 10, 10, 10, False, "any"),
        (32630, [straight], 1, 10, 0, False, "any"),
        (32733, south, 40, 10, 0, False, "any"),
        (3031, polar, 48, 12.5, 0, False, "any"),
        (3031, polar, 48, 12.5, 48, False, "any"),
    ]:
        v = {
            "epsg": epsg, "side": side, "resolution": resolution, "stride": stride, "edge": edge,
            "cover": cover, "scenes": scenes,
        }  # fmt: skip
        q, cells = ground_list(v)
        runs = []
        for y, x in cells:
            if runs and runs[-1][1] == y and runs[-1][2] + runs[-1][3] == x:
                runs[-1][3] += 1
            else:
                runs.append([0, y, x, 1])
        n = (
            len(cells)
            if stride
            else max(floor(Fraction(len(cells) * q * q, side * side) + Fraction(1, 2)), 1)
        )
        at = []
        for seed, epoch, p in [(0, 0, 0), (3, 1, n // 2), (9, 2**33, n - 1), (M - 1, 4, n // 3)]:
            if stride:
                y, x = (c * q for c in cells[order(seed, epoch, n, [p])[0]])
            else:
                y, x = cells[below(hashed(seed, 15, epoch, p, 0), len(cells))]
                y = y * q + below(hashed(seed, 15, epoch, p, 1), q) - side // 2
                x = x * q + below(hashed(seed, 15, epoch, p, 2), q) - side // 2
            box = window_box(v, y, x)
            rings = [corners(s) for s in scenes]
            seen = [i for i, ring in enumerate(rings) if not apart(ring, box, False)]
            middle = [((box[0][0] + box[2][0]) / 2, (box[0][1] + box[2][1]) / 2)]
            held = [i for i in seen if not apart(rings[i], middle, False)]
            at.append([seed, epoch, p, y, x, (held or seen)[0], seen])
        yield v | {"cell": q, "runs": runs, "samples": n, "at": at}


def ranked(scenes, rule, names):
    """Some scenes by a rule: a column and whether its greatest value comes first, or None."""
    if rule is None:
        return list(names)
    column, greatest = rule
    there = [i for i in names if scenes[i][column] is not None]
    there.sort(key=lambda i: -scenes[i][column] if greatest else scenes[i][column])
    return there + [i for i in names if scenes[i][column] is None]


def scene_steps(v, y, x):
    """The scenes of each step of a window, and those that each step of a field has beside it."""
    scenes, leads = v["scenes"], v["leads"]
    box, small = window_box(v, y, x), window_box(v, y, x, Fraction(3, 8))

    def inside(names, box):
        return [i for i in names if not apart(corners(scenes[i]), box, False)]

    all_of = [i for i in range(len(scenes)) if scenes[i]["dataset"] in leads]
    picked = ranked(scenes, v["pick"], all_of)
    seen = inside(picked, small) or inside(picked, box)
    values = []  # of the steps
    for i in seen:
        value = (i,) if scenes[i]["step"] is None else scenes[i]["step"]
        if value not in values:
            values.append(value)
    values = values[: v["length"]]
    groups = [[i for i in seen if ((i,) if scenes[i]["step"] is None else scenes[i]["step"]) == k]
              for k in values]  # fmt: skip
    if v["order"] is not None:
        stand = ranked(scenes, v["order"], all_of)
        groups.sort(key=lambda g: stand.index(g[0]))
    matched = []
    for dataset in sorted({s["dataset"] for s in scenes} - set(leads)):
        own = [i for i in range(len(scenes)) if scenes[i]["dataset"] == dataset]
        near = inside(ranked(scenes, v["pick"], own), small)
        matched.append([beside(scenes, near, g[0], v["match"], v["match_days"]) for g in groups])
    return groups, matched


def beside(scenes, near, first, match, days):
    """The scenes of another dataset for the step that begins with a scene."""
    value = scenes[first]["step"]
    if match == "nearest":
        t = scenes[first]["time"]
        timed = [i for i in near if scenes[i]["time"] is not None and t is not None]
        timed = [i for i in timed if not days or abs(scenes[i]["time"] - t) <= days * 86400000000]
        if not timed:
            return []
        best = min(timed, key=lambda i: abs(scenes[i]["time"] - t))  # the first of equal ones
        value = scenes[best]["step"]
        if value is None:
            return [best]
    return [i for i in near if value is not None and scenes[i]["step"] == value]


def scene_sequences():
    """Sequences of scenes, of one dataset and of several."""
    day = 86400000000
    rows = [  # dataset, pixels to the right and down, clouds, day and microseconds, step
        (0, 0, 0, 30, (5, 0), 5),
        (0, 0, 0, 20, (9, 7), 9),
        (0, 40, 0, 10, (9, 9), 9),
        (0, 0, 24, 20, (2, 1), 2),
        (0, 8, 8, None, (1, 0), None),
        (0, 64, 0, 0, None, None),  # shares a side with windows
        (1, 0, 0, 5, (7, 3), 7),
        (1, 32, 0, 6, (7, 4), 7),
        (1, 0, 0, None, (3, -3), 3),
        (1, 16, 16, 1, None, None),
        (1, 0, 0, 2, (9, 40), 9),
    ]
    scenes = [
        {
            "transform": [500000 + 10 * x, 10, 0, 4600000 - 10 * y, 0, -10],
            "height": 64, "width": 64, "dataset": d, "clouds": c,
            "time": None if t is None else (19000 + t[0]) * day + t[1], "step": s,
        }
        for d, x, y, c, t, s in rows
    ]  # fmt: skip
    alone = [s | {"step": None} for s in scenes]
    clouds, newest, oldest = ("clouds", False), ("time", True), ("time", False)
    for of, leads, length, pick, order_by, match, days in [
        (scenes[:6], [0], 8, None, None, None, 0),
        (alone[:6], [0], 3, clouds, oldest, None, 0),
        (scenes[:6], [0], 2, newest, None, None, 0),
        (scenes[:6], [0], 2, clouds, newest, None, 0),
        (scenes, [0, 1], 4, clouds, oldest, None, 0),
        (scenes, [0, 1], 9, oldest, None, None, 0),
        (scenes, [0], 5, None, oldest, "step", 0),
        (scenes, [0], 5, clouds, None, "nearest", 0),
        (alone, [0], 6, newest, oldest, "nearest", 0),
        (alone, [0], 6, None, None, "nearest", 2),
    ]:
        v = {
            "epsg": 32630, "side": 16, "resolution": 10, "leads": leads, "length": length,
            "pick": pick, "order": order_by, "match": match, "match_days": days, "scenes": of,
        }  # fmt: skip
        at = []
        for y, x in [(0, 48), (16, 0), (30, 20), (62, 30), (80, 12), (0, 64), (-15, 60)]:
            groups, matched = scene_steps(v, y - 460000, x + 50000)
            at.append([y - 460000, x + 50000, groups, matched])
        yield v | {"at": at}


def blocks():
    """Epochs of datasets in blocks, of which the last one may be short."""
    for seed, epoch, n, rows, pool in [
        (1, 0, 40, 8, 2), (1, 1, 43, 8, 2), (2, 3, 43, 8, 100),
        (3, 0, 29, 5, 1), (4, 7, 6, 32, 4), (5, 2, 61, 1, 9),
    ]:  # fmt: skip
        cut = [list(range(first, min(first + rows, n))) for first in range(0, n, rows)]
        permuted = [cut[b] for b in order(seed, epoch, len(cut), range(len(cut)))]
        at = []
        for number, first in enumerate(range(0, len(permuted), pool)):
            samples = [s for block in permuted[first : first + pool] for s in block]
            n_pool = len(samples)
            at += [samples[o] for o in permute(seed, (9, epoch, number), n_pool, range(n_pool))]
        yield {"seed": seed, "epoch": epoch, "n": n, "rows": rows, "pool": pool, "at": at}


def tiles_of(height, width, h, w, th, tw, ay, ax):
    """The tiles that have corners, each with its corners, in order."""
    tiles = {}
    for y in corner_list(height, h, ay):
        for x in corner_list(width, w, ax):
            tiles.setdefault((y // th, x // tw), []).append((y, x))
    return dict(sorted(tiles.items()))


def visits():
    """Epochs of the tile-aware order, with the corners of a second, smaller or larger window."""
    for seed, epoch, h, w, th, tw, k, pool, ay, ax, items, view in [
        (
            1,
            0,
            8,
            8,
            16,
            16,
            3,
            2,
            1,
            1,
            [(40, 40, 9), (16, 20, 1), (8, 8, 1), (30, 50, 4)],
            (5, 8),
        ),
        (2, 5, 24, 40, 16, 32, 2, 4, 2, 4, [(60, 100, 5), (61, 99, 3), (20, 20, 2)], (32, 20)),
        (3, 1, 4, 4, 4, 4, 4, 100, 1, 1, [(9, 9, 2), (9, 9, 2)], (7, 9)),
    ]:
        tiles = [tiles_of(a, b, h, w, th, tw, ay, ax) for a, b, _ in items]
        visit_list = [(i, v) for i, (_, _, n) in enumerate(items) for v in range(n)]
        permuted = order(seed, epoch, len(visit_list), range(len(visit_list)))
        at, view_at = [], []
        for number, first in enumerate(range(0, len(permuted), pool)):
            n = len(permuted[first : first + pool]) * k
            of_pool = [(v, j) for v in permuted[first : first + pool] for j in range(k)]
            for o in permute(seed, (9, epoch, number), n, range(n)):
                visit, j = of_pool[o]
                item, v = visit_list[visit]
                corners = [(t, c) for t, cs in tiles[item].items() for c in cs]
                u = below(hashed(seed, 10, epoch, item), len(corners))
                tile = corners[(v * len(corners) + u) // items[item][2]][0]
                ys = sorted({y for y, _ in tiles[item][tile]})
                xs = sorted({x for _, x in tiles[item][tile]})
                sample = visit * k + j
                y = ys[below(hashed(seed, 11, epoch, sample, 0), len(ys))]
                x = xs[below(hashed(seed, 11, epoch, sample, 1), len(xs))]
                at.append([sample, item, v, *tile, y, x])
                own = hashed(seed, 18, 1, 0)
                corner = [
                    tile_corners(size, side, t, part, a)
                    for size, side, t, part, a in zip(
                        items[item], view, tile, (th, tw), (ay, ax), strict=False
                    )
                ]
                view_at.append([
                    cs[below(hashed(own, 11, epoch, sample, i), len(cs))]
                    for i, cs in enumerate(corner)
                ])  # fmt: skip
        yield {
            "seed": seed, "epoch": epoch, "h": h, "w": w, "tile_h": th, "tile_w": tw,
            "per_visit": k, "pool": pool, "align_y": ay, "align_x": ax, "items": items, "at": at,
            "view": view, "view_at": view_at,
        }  # fmt: skip


def tile_corners(size, side, t, tile, a):
    """The corners of a view on a side in tile t; the last one if the view cannot begin there."""
    starts = corner_list(size, side, a)
    return [y for y in starts if y // tile == t] or starts[-1:]


class Stream:
    """A source, drawn from one sample after another."""

    def __init__(self, seed, source, datasets, above=(), share=1.0):
        self.seed, self.source = seed, source
        self.epoch, self.p = 0, 0
        self.above, self.share = above, share  # the mixtures that it is in, outermost first
        if "n" in source:
            self.n = source["n"]
            self.number = len(datasets)
            datasets.append(self)
            return
        shares = [share * (c / 10000) for c in source["counts"]]
        self.sources = [
            Stream(hashed(seed, 7, i), s, datasets, (*above, self), shares[i])
            for i, s in enumerate(source["sources"])
        ]
        labels = [i for i, c in enumerate(source["counts"]) for _ in range(c)]
        assert len(labels) == 10000
        self.word = [labels[x] for x in permute(seed, (8,), 10000, range(10000))]
        self.n = self.length()

    def length(self):
        """The positions of an epoch."""
        until, drawn, n = self.source["until"], [0] * len(self.sources), 0
        if until == "given":
            return self.source["length"]
        while True:
            i = self.word[n % 10000]
            if until == "shortest" and drawn[i] == self.sources[i].n:
                return n
            drawn[i] += 1
            n += 1
            if until == "longest" and all(
                d >= s.n for d, s in zip(drawn, self.sources, strict=False)
            ):
                return n

    def next(self):
        """The dataset, its epoch and its position of the next draw."""
        epoch, p = self.epoch, self.p
        self.p += 1
        if self.p == self.n:
            self.epoch, self.p = self.epoch + 1, 0
        if "n" in self.source:
            return self.number, epoch, p
        return self.sources[self.word[p % 10000]].next()


def mixtures():
    """Positions of mixtures, counted draw by draw."""
    three = {"counts": [5000, 3000, 2000], "sources": [{"n": 700}, {"n": 90}, {"n": 1000}]}
    equal = {"counts": [3334, 3333, 3333], "sources": [{"n": 5}, {"n": 7}, {"n": 30}]}
    nested = {
        "counts": [9999, 1], "until": "given", "length": 25000,
        "sources": [
            {"counts": [2500, 7500], "until": "longest", "sources": [{"n": 64}, {"n": 40}]},
            {"n": 3},
        ],
    }  # fmt: skip
    for seed, source, epochs, step in [
        (1, three | {"until": "shortest"}, 12, 1),
        (1, three | {"until": "longest"}, 4, 101),
        (M - 1, equal | {"until": "shortest"}, 9, 1),
        (7, equal | {"until": "given", "length": 3}, 20, 1),
        (8, nested, 3, 997),
    ]:
        datasets = []
        stream = Stream(seed, source, datasets)
        at = []
        for epoch in range(epochs):
            for p in range(stream.n):
                number, e, q = stream.next()
                if p % step and p != stream.n - 1 or len(at) > 150 and p not in (0, stream.n - 1):
                    continue
                d = datasets[number]
                at.append([epoch, p, number, e, q, order(d.seed, e, d.n, [q])[0]])
        yield {"seed": seed, "source": source, "n": stream.n, "at": at}


def groups():
    """Ticket groups: who leads, and the groups of the tickets at some positions."""

    def tiles(visits, k, b):
        return {"n": visits * k, "visits": visits, "per_visit": k, "pool": b}

    three = [tiles(40, 4, 5), tiles(90, 2, 16), tiles(30, 8, 2)]
    alike = {"counts": [5000, 5000], "sources": [tiles(50, 4, 5), tiles(70, 4, 5)]}
    nested = {
        "counts": [6000, 4000], "until": "shortest",
        "sources": [
            {"counts": [2500, 7500], "until": "given", "length": 123, "sources": three[:2]},
            {"n": 300},
        ],
    }  # fmt: skip
    for seed, source, epochs in [
        (0, tiles(30, 4, 3), 3),
        (1, alike | {"until": "shortest"}, 4),
        (2, {"counts": [7000, 1000, 2000], "until": "longest", "sources": three}, 3),
        (3, {"counts": [9000, 500, 500], "until": "shortest", "sources": three}, 3),
        (4, {"counts": [9000, 1000], "until": "shortest", "sources": [{"n": 50}, three[1]]}, 5),
        (M - 1, nested, 4),
    ]:
        datasets = []
        stream = Stream(seed, source, datasets)
        pools = [d for d in datasets if "visits" in d.source]
        most = max(d.share for d in pools)
        length = [min(d.source["per_visit"] * d.source["pool"], d.n) / d.share for d in pools]
        longest = max(t for d, t in zip(pools, length, strict=True) if 4 * d.share >= most)
        lead = next(
            d for d, t in zip(pools, length, strict=True) if 4 * d.share >= most and t == longest
        )
        pool = lead.source["per_visit"] * lead.source["pool"]
        way = [*lead.above, lead]
        levels = [[drawn(up, down), down.n] for up, down in zip(way, way[1:], strict=False)]
        at = []
        for epoch in [*range(epochs), 2**40, M - 1]:
            for first in range(0, stream.n, max(stream.n // 9, 1)):
                e, p, n = epoch, first, stream.n
                for d, samples in levels:
                    draw = (e * d + int(Fraction(p * d, n))) % M
                    e, p, n = draw // samples, draw % samples, samples
                h = hashed(0, datasets.index(lead), e, p // pool)
                at.append([epoch, first, h // 2])
        yield {
            "seed": seed, "source": source, "n": stream.n, "dataset": datasets.index(lead),
            "pool": pool, "levels": levels, "at": at,
        }  # fmt: skip


def drawn(mixture, source):
    """How often an epoch of a mixture draws from a source, counted draw by draw."""
    i = mixture.sources.index(source)
    return sum(mixture.word[p % 10000] == i for p in range(mixture.n))


def text_words(text):
    """The words of a text."""
    b = text.encode()
    b += bytes(-len(b) % 8)
    return [len(text.encode())] + [
        int.from_bytes(b[i : i + 8], "little") for i in range(0, len(b), 8)
    ]


def share(parts, h):
    """The share of a hash."""
    edge = 0
    for i, n in enumerate(parts):
        edge += n
        if h >> 32 < edge:
            return i
    raise AssertionError


def texts():
    """Splits by text."""
    parts = [3006477107, 858993459, 429496730]
    assert sum(parts) == 2**32
    for text in ["", "a", "tile_31TCJ", "12345678", "123456789", "ñandú", "Σ" * 20, "x" * 1000]:
        h = hashed(7, 5, *text_words(text))
        yield {"seed": 7, "parts": parts, "text": text, "share": share(parts, h)}
    for i in range(24):
        h = hashed(i, 5, *text_words(f"scene {i}"))
        yield {"seed": i, "parts": parts, "text": f"scene {i}", "share": share(parts, h)}


def cells():
    """Splits by cell."""
    parts = [2147483648, 1073741824, 1073741824]
    for i, (bounds, size) in enumerate([
        ((-71.3, -33.2, -71.1, -33.0), 0.5),
        ((0.0, 0.0, 1.0, 1.0), 0.5),
        ((-1.0, -1.0, 1.0, 1.0), 1.0),
        ((500000.0, 6900000.0, 505120.0, 6905120.0), 10240.0),
        ((-0.3, 0.1, 0.1, 0.2), 0.1),
        ((179.9, -90.0, 180.0, -89.9), 2.5),
        ((0.1, 0.7, 0.2, 0.8), 0.05),
    ]):  # fmt: skip
        y, x = (
            rounded(rounded(rounded(Fraction(a) + Fraction(b)) * Fraction(1, 2)) / Fraction(size))
            for a, b in [(bounds[1], bounds[3]), (bounds[0], bounds[2])]
        )
        for seed in range(3):
            h = hashed(seed + i, 6, y.__floor__(), x.__floor__())
            s = share(parts, h)
            yield {"seed": seed + i, "parts": parts, "bounds": bounds, "size": size, "share": s}


def transformed(g, image):
    """An image after an element."""
    if g & 1:
        image = [row[::-1] for row in image]
    if g & 2:
        image = image[::-1]
    if g & 4:
        image = [list(t) for t in zip(*image, strict=False)]
    return image


def transforms():
    """The elements."""
    image = [["a", "b", "c"], ["d", "e", "f"]]
    for g in range(8):
        yield {"element": g, "image": ["".join(r) for r in transformed(g, image)]}


def drawn_transforms():
    """Elements at positions."""
    for elements in [[0, 1], [0, 1, 2, 3], [0, 3, 5, 6], list(range(8)), [4], [1, 6, 7]]:
        at = [elements[below(hashed(11, 12, 2, p), len(elements))] for p in range(20)]
        yield {"seed": 11, "epoch": 2, "elements": elements, "at": at}


def series():
    """Sequences in time."""
    keys = ["b", "a", "b", "b", "c", "a", "b", "b", "c", "b"]
    times = [5, 9, 1, 5, 0, -3, 7, 7, 0, 2]
    for rows in (None, [9, 8, 7, 5, 4, 3, 1, 0]):
        for length, stride, cut in [
            (3, 1, False),
            (3, 2, False),
            (3, 2, True),
            (1, 1, True),
            (4, 4, False),
            (1, 4, False),
            (9, 1, True),
        ]:
            groups = {}
            for i in rows if rows is not None else range(len(keys)):
                groups.setdefault(keys[i], []).append(i)
            sequences = []
            for g in groups.values():
                g.sort(key=lambda i: (times[i], i))
                at = 0
                while not (cut and at + length > len(g)):
                    s = g[at : at + length]
                    sequences.append(s + [-1] * (length - len(s)))
                    if not cut and (at + length >= len(g) or at + stride >= len(g)):
                        break
                    at += stride
            yield {
                "keys": keys,
                "times": times,
                "rows": rows,
                "length": length,
                "stride": stride,
                "cut": cut,
                "sequences": sequences,
            }


def substitutes():
    """Substitutes of bad samples."""
    for seed, epoch, p, n in [(0, 0, 0, 10), (5, 2, 77, 100), (M - 1, 9, 2**40, 2**50)]:
        for a in (1, 2, 16):
            s = hashed(seed, 13, epoch, p, a)
            y, x = window(s, epoch, p, 512, 300, 64, 64)
            yield {
                "seed": seed, "epoch": epoch, "p": p, "n": n, "attempt": a, "new_seed": s,
                "sample": below(hashed(s), n), "window": [y, x],
                "element": below(hashed(s, 12, epoch, p), 8),
            }  # fmt: skip


def whole_weights(weights):
    """Weights as whole numbers, as docs/order.md has them."""
    top, scale = max(map(Fraction, weights)), Fraction(1)
    while top * scale >= 1:
        scale /= 2
    while top * scale < Fraction(1, 2):
        scale *= 2
    bits = min(36, 62 - len(bin(len(weights))) + 2)
    return [max(floor(Fraction(w) * scale * 2**bits), 1) if w else 0 for w in weights]


def by_weight(seed, epoch, each, once, take, weights, positions, drop=0):
    """The samples at positions, drawn by weights of rows, of which each has so many samples.

    With drop, what is left of an epoch after batches of so many positions never comes.
    """
    n, whole = len(weights) * each, whole_weights(weights)
    given = take or n
    if drop:
        given = given // drop * drop
    first = permute(hashed(seed, 20), (1, epoch), given, range(given))
    for p in positions:
        if once and first[p] < n:
            yield first[p]
            continue
        yield one_by_weight(seed, epoch, p, each, whole)


def one_by_weight(seed, epoch, p, each, whole):
    """The sample at a position, drawn by whole weights of rows."""
    place, row = below(hashed(seed, 19, epoch, p, 0), sum(whole)), 0
    while place >= whole[row]:
        place -= whole[row]
        row += 1
    return row * each + below(hashed(seed, 19, epoch, p, 1), each)


def substitutes_by_weight():
    """Substitutes of bad samples of an epoch, with take at other places of the dataset's epochs."""
    for seed, epoch, each, take, weights in [
        (0, 0, 1, 0, [1, 2, 0, 4]),
        (M - 1, 3, 3, 0, [0, 0.5, 0, 2.0**-149, 2.0**127]),
        (7, 2, 2, 11, [0, 1.25, 0, 1]),
    ]:
        n, whole = len(weights) * each, whole_weights(weights)
        for p in range(take or n):
            place = (epoch * (take or n) + p) % M
            for a in (1, 16):
                s = hashed(seed, 13, place // n, place % n, a)
                yield {
                    "seed": seed, "epoch": epoch, "each": each, "take": take, "weights": weights,
                    "p": p, "attempt": a,
                    "sample": one_by_weight(s, place // n, place % n, each, whole),
                }  # fmt: skip


def row_weights():
    """Samples drawn by weights of rows."""
    tiny = 2.0**-149  # the least float32
    for seed, epoch, each, once, take, drop, weights in [
        (0, 0, 1, False, 0, 0, [1, 2, 3, 4]),
        (7, 3, 1, False, 40, 0, [0, 0.5, tiny, 0, 2.0**127, 0.25]),
        (M - 1, 2**33, 3, False, 0, 0, [5, 0, 1, tiny, 0.75]),
        (5, 1, 1, True, 25, 0, [0, 1, 0, 2.5, 0, 0, 0, 0.125]),
        (5, 2, 2, True, 25, 0, [0, 1, 0, 3]),
        (1, 0, 1, False, 0, 0, [i * i % 17 / 8 for i in range(600)]),
        (5, 1, 1, True, 25, 6, [0, 1, 0, 2.5, 0, 0, 0, 0.125]),
        (8, 4, 2, True, 19, 5, [0, 1, 0, 3]),
    ]:
        come = take or len(weights) * each
        positions = range(min(come // drop * drop if drop else come, 60))
        yield {
            "seed": seed, "epoch": epoch, "each": each, "once": once, "take": take, "drop": drop,
            "weights": weights,
            "at": list(by_weight(seed, epoch, each, once, take, weights, positions, drop)),
        }  # fmt: skip


def taken(seed, epoch, n, take, p):
    """The sample at a position of an epoch of a given length, of a dataset of n samples."""
    place = (epoch * take + p) % M
    return order(seed, place // n, n, [place % n])[0]


def changed_weights():
    """Epochs of a run whose weights change: the last ones before or at a position hold there.

    They are of rows, or of as many samples as an epoch has without take.
    """
    some, others = [0, 1, 0.5, 0, 4, 0.25, 3, 1], [2, 0, 0, 0, 0, 0, 0, 1]
    for seed, rows, each, take, changes in [
        (3, 8, 1, 0, [(0, 4, False, some), (1, 2, False, others)]),
        (3, 8, 3, 0, [(0, 6, False, some), (0, 18, False, others), (2, 0, False, some)]),
        (M - 1, 8, 1, 13, [(1, 0, True, others), (2, 0, False, some), (2, 12, False, others)]),
        (9, 4, 2, 11, [(0, 8, False, some), (1, 0, True, others[4:]), (1, 4, True, some[:4])]),
    ]:
        n = rows * each
        at = []
        for epoch in [0, 1, 2, 2**40]:
            for p in range(take or n):
                held = [c for c in changes if c[:2] <= (epoch, p)]
                if held:
                    _, _, once, weights = held[-1]
                    per = n // len(weights)
                    (sample,) = by_weight(seed, epoch, per, once, take, weights, [p])
                else:
                    sample = taken(seed, epoch, n, take or n, p)
                at.append([epoch, p, sample])
        yield {
            "seed": seed, "rows": rows, "each": each, "take": take, "at": at,
            "changes": [
                {"epoch": e, "samples": s, "once": o, "weights": w} for e, s, o, w in changes
            ],
        }  # fmt: skip


def apportion():
    """Totals divided by weights."""
    for total, weights in [
        (10000, [1, 1, 1]),
        (10000, [0.7, 0.2, 0.1]),
        (10000, [1e-9, 1.0, 1e-9, 2.0]),
        (10000, [5]),
        (7, [1, 1, 1, 1]),
        (2**32, [0.8, 0.1, 0.1]),
        (3, [1000, 1, 1]),
    ]:
        exact = [Fraction(w) * total / sum(map(Fraction, weights)) for w in weights]
        parts = [int(q) for q in exact]
        by_rest = sorted(range(len(parts)), key=lambda i: (-(exact[i] - parts[i]), i))
        for i in by_rest[: total - sum(parts)]:
            parts[i] += 1
        while 0 in parts:
            parts[parts.index(0)] = 1
            parts[parts.index(max(parts))] -= 1
        yield {"total": total, "weights": weights, "parts": parts}


def main():
    """Writes all lists."""
    lists = {
        "hash": hashes, "orders": orders, "windows": windows, "tickets": tickets, "grids": grids,
        "resized": resized, "weighted": weighted, "covered": covered, "ground": ground,
        "ground_scenes": ground_scenes, "scene_sequences": scene_sequences,
        "blocks": blocks, "visits": visits, "mixtures": mixtures,
        "texts": texts, "cells": cells, "transforms": transforms,
        "drawn_transforms": drawn_transforms, "series": series, "substitutes": substitutes,
        "apportion": apportion, "groups": groups, "row_weights": row_weights,
        "substitutes_by_weight": substitutes_by_weight,
        "changed_weights": changed_weights, "views": views, "ground_views": ground_views,
    }  # fmt: skip
    out = []
    for name, vectors in lists.items():
        lines = ",\n".join(
            json.dumps(v, separators=(",", ":"), ensure_ascii=False) for v in vectors()
        )
        out.append(f'"{name}":[\n{lines}\n]')
    print('{"version":1,\n' + ",\n".join(out) + "\n}")


if __name__ == "__main__":
    main()
