"""Tables, pictures and drawings that notebooks show of loaders, batches and statistics."""

from __future__ import annotations

import base64
import html
import math
import re
import struct
import zlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

_CHIPS = 8
_SIDE = 128
"""Chips of a quicklook, and pixels of a side: 8 chips of 128 pixels are 400 KB of PNG at most."""


class Html(str):
    """A string that is HTML already. Names of fields and bands are not: files may hold any."""


def table(caption: str, rows: Iterable[Sequence[Any]], head: Sequence[str] = ()) -> str:
    """Returns an HTML table, with everything escaped that is not `Html`."""

    def cell(v: Any, tag: str) -> str:
        return f"<{tag}>{v if isinstance(v, Html) else html.escape(str(v))}</{tag}>"

    lines = [f"<table><caption>{html.escape(caption)}</caption>"]
    if head:
        lines.append(f"<tr>{''.join(cell(v, 'th') for v in head)}</tr>")
    for first, *others in rows:
        lines.append(f"<tr>{cell(first, 'th')}{''.join(cell(v, 'td') for v in others)}</tr>")
    return "".join(lines) + "</table>"


_COLOURS = (("red", "r", "b04", "b4"), ("green", "g", "b03", "b3"), ("blue", "b", "b02", "b2"))
"""What bands of red, green and blue are called: also by Sentinel-2, and by Landsat 8 and 9."""
CLASSES = 12
_PALETTE = "404040 ee7733 aa4499 ddcc77 cc3311 ee99aa 994422 bbbbbb 882255 eecc00 9955cc ffddcc"
"""Colours of the values of masks, which repeat after twelve. None is blue or green: a class whose
name nobody knows must not look like water or forest."""
_LIKENED = {
    "e2cb97": "land",
    "5aae61": "vegetation vegetated plant",
    "1f6fb4": "water river lake sea ocean reservoir",
    "1b7837": "forest tree wood woodland",
    "a6d96a": "grass grassland meadow pasture herbaceous",
    "e6c229": "crop cropland cultivated agriculture farmland",
    "d7191c": "built building urban settlement impervious road",
    "b8875b": "bare soil sand rock",
    "2a9d8f": "wetland marsh swamp mangrove",
    "8c9a3b": "shrub shrubland bush moss",
    "f4faff": "snow ice",
    "d9d9d9": "cloud",
}
"""Colours of classes by a word of their names. Of two words, the one further down counts: a wetland
with trees is a wetland."""
GREY = 128  # what has no value


def visible(bands: int, names: Sequence[str]) -> list[int]:
    """Returns the bands of red, green and blue: by their names, or the first three."""
    if bands < 3:
        return [0, 0, 0]
    plain = [name.lower().split(" ")[0] for name in names]  # "B04 (665 nm)"
    known = [[i for i, name in enumerate(plain[:bands]) if name in c][:1] for c in _COLOURS]
    return [i for k in known for i in k] if all(known) else [0, 1, 2]


def arranged(v: Any, axes: Sequence[str]) -> npt.NDArray[Any] | None:
    """Returns an array as (n, steps, y, x, b), None of one that lacks an axis y or x of its own."""
    if not {"y", "x"} <= set(axes) or len(axes) != v.ndim:
        return None
    for name in ("b", "n"):
        if name not in axes:
            v, axes = v[None], (name, *axes)
    order = [axes.index(a) for a in ("y", "x", "b")]
    steps = [i for i in range(v.ndim) if i not in order and axes[i] != "n"]
    a = v.transpose(axes.index("n"), *steps, *order)
    out: npt.NDArray[Any] = a.reshape(len(a), math.prod(a.shape[1:-3]), *a.shape[-3:])
    return out


def are_classes(a: npt.NDArray[Any], fill: float | None, single: bool) -> bool:
    """Reports whether (n, steps, y, x, b) are classes: integers of one band with few values.

    What is laid out without an axis b, or has a palette (single), may have many.
    """
    if a.dtype.kind not in "biu" or a.shape[-1] != 1:
        return False
    return single or len(set(np.unique(a)) - {fill}) <= CLASSES


def palette(
    own: Sequence[str], names: Mapping[int, str], given: Mapping[int, str]
) -> tuple[str, ...]:
    """Returns the colours of classes: the given ones, a file's own, or what their names suggest.

    It is empty where the colours are those of classes without names.
    """
    kinds = {} if own else {v: k for v in sorted(names) if v >= 0 and (k := _kind(names[v]))}
    if not kinds and not given:
        return tuple(own)
    plain = [f"#{c}" for c in _PALETTE.split()]
    last = max([*kinds, *given, 255])
    out = list(own) + [plain[i % CLASSES] for i in range(len(own), last + 1)]
    seen: dict[str, int] = {}
    for value, kind in kinds.items():
        dark = 0.65 ** seen.setdefault(kind, 0)  # two kinds of forest are two greens
        seen[kind] += 1
        out[value] = "#" + bytes(round(255 - (255 - c) * dark) for c in bytes.fromhex(kind)).hex()
    for value, colour in given.items():
        out[value] = colour
    return tuple(out)


def _kind(name: str) -> str:
    """Returns the colour that a word of a name has in _LIKENED, "" without one."""
    words = set(re.findall("[a-z]+", name.lower()))
    if words & {"no", "non", "not", "without"}:
        return ""
    words |= {w.removesuffix("s") for w in words}
    return next((c for c in reversed(_LIKENED) if words & {*_LIKENED[c].split()}), "")


def class_colours(
    a: npt.NDArray[Any], fill: float | None, palette: Sequence[str] = ()
) -> npt.NDArray[np.uint8]:
    """Returns the colours of classes, of a palette (FieldInfo.palette) with alpha; fill is grey.

    Numbers beyond a palette are black.
    """
    grey = np.array([GREY] * 3 + [255] * bool(palette), np.uint8)
    given = [f"{c[1:]:f<8}" for c in palette] + ["000000ff"] if palette else _PALETTE.split()
    table = np.array([list(bytes.fromhex(c)) for c in given], np.uint8)
    last = len(table) - 1
    known = (a >= 0) & (a < last) if palette else np.isfinite(a)
    number = np.where(known, a, 0).astype(np.int64)
    if palette:
        number[~known] = last
    else:
        number %= CLASSES
    return np.where((a == fill)[..., None], grey, table[number])


def colours(a: npt.NDArray[Any], fill: float | None) -> npt.NDArray[np.uint8]:
    """Returns the colours of (..., b) of three bands or one.

    Values from the 2nd to the 98th percentile of each band, over all that is given, are stretched
    to the range of the screen. Fill and what is not finite is grey, and counts for nothing.
    """
    a = a.astype(np.float64)
    gone = ~np.isfinite(a) | (a == fill)
    for band in range(a.shape[-1]):
        values, kept = a[..., band], a[..., band][~gone[..., band]]
        low, high = np.percentile(kept, (2, 98)) if kept.size else (0.0, 0.0)
        a[..., band] = np.nan_to_num((values - low) / ((high - low) or 1.0))
    a = np.clip(a * 255, 0, 255)
    a[gone.any(axis=-1)] = GREY
    return np.broadcast_to(a.astype(np.uint8), (*a.shape[:-1], 3))


def quicklook(
    v: Any,
    axes: Sequence[str],
    valid: npt.NDArray[np.bool_],
    names: Sequence[str] = (),
    fill: float | None = None,
    palette: Sequence[str] = (),
) -> str:
    """Returns an image of the first valid rows side by side; of sequences, a line each.

    See `colours` and `class_colours`. It returns "" for what has no axes y and x of its own.
    """
    a = arranged(v, axes) if not isinstance(v, tuple) and v.dtype.kind in "biuf" else None
    if a is None or not a.size or len(a) != len(valid) or not valid.any():
        return ""
    step = -(-max(a.shape[2:4]) // _SIDE)
    many = a.shape[1] > 1
    a = a[np.flatnonzero(valid)[: max(1, _CHIPS // a.shape[1])], :_CHIPS, ::step, ::step]
    if are_classes(a, fill, "b" not in axes or bool(palette)):
        pixels = class_colours(a[..., 0], fill, palette)
    else:
        a = a[..., visible(a.shape[-1], names)]
        pixels = colours(a, fill)
    lines = pixels if many else pixels.swapaxes(0, 1)
    return _image(np.concatenate([np.concatenate(list(line), axis=1) for line in lines]))


def _image(pixels: npt.NDArray[np.uint8]) -> str:
    """Returns an <img> of RGB or RGBA pixels, as PNG."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        sum_ = zlib.crc32(kind + data)
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", sum_)

    height, width, bands = pixels.shape
    lines = np.pad(pixels.reshape(height, -1), ((0, 0), (1, 0)))  # each begins with its filter, 0
    head = struct.pack(">IIBBBBB", width, height, 8, {3: 2, 4: 6}[bands], 0, 0, 0)
    png = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head)
    png += chunk(b"IDAT", zlib.compress(lines.tobytes())) + chunk(b"IEND", b"")
    return Html(f'<img src="data:image/png;base64,{base64.b64encode(png).decode()}">')


def _number(v: Any) -> str:
    return "" if v is None else f"{v:.6g}"


def stats(s: Mapping[str, Any]) -> str:
    """Returns one line about statistics: the mean and deviation of every field's bands."""
    fields = "; ".join(
        f"{name} {f.get('dtype', '')}, {len(f['bands'])} bands, mean "
        f"[{', '.join(_number(b['mean']) for b in f['bands'])}], std "
        f"[{', '.join(_number(b['std']) for b in f['bands'])}]"
        for name, f in s.get("fields", {}).items()
    )
    return f"<chaski.Stats of {s.get('samples', 0)} samples: {fields}>"


def stats_html(s: Mapping[str, Any]) -> str:
    """Returns a table of the bands' statistics with their histograms."""
    head = ("band", "mean", "std", "min", "max", "histogram")
    return "".join(
        table(
            f"{name} ({f.get('dtype', '')}), {s.get('samples', 0)} samples",
            [
                (b.get("name") or i, *(_number(b.get(k)) for k in head[1:5]), _bars(b))
                for i, b in enumerate(f["bands"])
            ],
            head,
        )
        for name, f in s.get("fields", {}).items()
    )


def _bars(band: Mapping[str, Any]) -> str:
    """Returns the histogram of a band as a drawing."""
    counts = (band.get("histogram") or {}).get("counts") or []
    top = max(counts, default=0)
    if not top:
        return ""
    bars = "".join(f"M{i} 30v{-30 * n / top:.1f}" for i, n in enumerate(counts) if n)
    return Html(
        f'<svg width="{2 * len(counts)}" height="30" viewBox="-1 0 {len(counts) + 1} 30" '
        f'preserveAspectRatio="none"><path d="{bars}" stroke="currentColor"/></svg>'
    )
