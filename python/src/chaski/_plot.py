"""`show`: rows of a batch as pictures, drawn by matplotlib."""

from __future__ import annotations

import functools
import math
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt

from chaski import _show
from chaski._calls import entry
from chaski._members import Classes, Described, Ragged, by_number, polygons
from chaski._plain import as_array, count, optional, positive
from chaski.errors import NotFoundError, SpecError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_AXES = {3: ("n", "y", "x"), 4: ("n", "b", "y", "x"), 5: ("n", "t", "b", "y", "x")}
"""Axes of arrays that are not the batch's own, such as predictions."""
_LEGEND = 36
"""Classes of a palette that a legend has at most: one has 256, and a figure no room for them."""
_CALLED = {"v": "view", "t": "step"}
"""What axes are called in titles."""


def show(batch: Mapping[str, Any], *names: str, **options: Any) -> None:
    """Shows rows of a batch as pictures: in a notebook below the cell, else in a window.

        chaski.show(batch)
        chaski.show(batch, "image", "mask", rows=2, bands=["B08", "B04", "B03"])

    It is `Batch.plot`, which returns the figure instead.

    Args:
        batch: of `chaski.load` or `chaski.torch`, also with members of your own, such as a
            prediction; one sample; or any dict of arrays or tensors.
        names: as of `Batch.plot`.
        options: likewise.
    """
    draw(batch, names, **options)
    pyplot().show()


def pyplot() -> Any:
    """Imports matplotlib.pyplot."""
    why = 'drawing a batch needs matplotlib: pip install matplotlib, or "chaski-eo[plot]"'
    return optional("matplotlib.pyplot", why)


@dataclass
class _Picture:
    """What is drawn of a member: the rows that are shown, as (n, steps, y, x, b).

    Of boxes and polygons `rows` are the values, and only the classes count.
    """

    name: str
    rows: npt.NDArray[Any]
    bands: Sequence[str]
    fill: float | None
    picked: Sequence[int]
    classes: bool
    labels: Mapping[int, str]
    palette: tuple[str, ...]
    axes: Mapping[str, int] = field(default_factory=dict)  # of the steps, with their lengths
    scores: Any = None  # what maps numbers to colours, with a bar below

    @functools.cached_property
    def _stretched(self) -> npt.NDArray[np.uint8]:
        """Rows and steps have one stretch, so that they can be compared."""
        return _show.colours(self.rows[..., list(self.picked)], self.fill)

    def pixels(self, row: int, step: int) -> npt.NDArray[np.uint8]:
        """Returns the colours of one picture."""
        values = self.rows[row, step, ..., 0]
        if self.classes:
            return _show.class_colours(values, self.fill, self.palette)
        if self.scores is not None:
            colours: npt.NDArray[np.uint8] = self.scores.to_rgba(values, bytes=True)[..., :3]
            colours[~np.isfinite(values) | (values == self.fill)] = _show.GREY
            return colours
        stretched: npt.NDArray[np.uint8] = self._stretched[row, step]
        return stretched

    def title(self, step: int) -> str:
        """Returns its name, the names of the bands that are drawn, and the view and step."""
        named = [self.bands[i] for i in self.picked if i < len(self.bands) and not self.classes]
        numbers = zip(self.axes, np.unravel_index(step, [*self.axes.values()]), strict=True)
        places = [f"{_CALLED.get(a, a)} {n}" for a, n in numbers if self.axes[a] > 1]
        return _plain(", ".join([" ".join([self.name, *dict.fromkeys(named)]), *places]))

    def colour(self, value: Any) -> Any:
        """Returns the colour of a class."""
        return _show.class_colours(np.array(int(value)), None, self.palette) / 255


def _plain(text: str) -> str:
    """Keeps matplotlib from a formula in a text, which may come from a file."""
    return text.replace("$", r"\$")


def _picture(
    name: str,
    v: Any,
    batch: Described,
    shown: npt.NDArray[np.intp],
    bands: Sequence[int | str] | None,
    ignore: Mapping[str, float],
    named: Mapping[str, Mapping[int, str]],
    painted: Mapping[str, Mapping[int, str]],
    n: int,
) -> _Picture | None:
    """Returns what to draw of some of n rows of a member, None of one that has no pixels."""
    if isinstance(v, Ragged) or v.dtype.kind not in "biufc" or f"{name}_count" in batch:
        return None
    axes = batch.axes.get(name, ())
    if len(axes) != v.ndim:
        axes = _AXES.get(v.ndim, ())
    rows = _show.arranged(np.abs(v) if v.dtype.kind == "c" else v, axes)
    if rows is None or not rows.size:
        return None
    if len(rows) != n:
        raise SpecError(f"{name} has {len(rows)} rows, and the batch has {n}")
    steps = {a: k for a, k in zip(axes, v.shape, strict=True) if a not in ("n", "y", "x", "b")}
    rows = rows[shown]
    info = batch.fields.get(name)
    if info is not None and info.kind == "mask":
        return None
    called = list(info.bands) if info is not None else []
    picked: list[int] = _show.visible(rows.shape[-1], called)
    if bands is not None and rows.shape[-1] > 1:
        if unknown := [b for b in bands if isinstance(b, str) and b not in called]:
            raise NotFoundError(f"bands has {unknown[0]!r}: the bands of {name} are {called}")
        picked = [called.index(b) if isinstance(b, str) else b for b in bands]
        many = rows.shape[-1]
        if wrong := [b for b in picked if not -many <= b < many]:
            raise NotFoundError(f"bands has {wrong[0]}: {name} has {many} bands")
    fill = ignore.get(name, batch._fill(name))
    labels, palette = batch._colours(name, named.get(name, {}), painted.get(name, {}))
    classes = _show.are_classes(rows, fill, "b" not in axes or bool(palette))
    there = as_array(batch.get(f"there.{name}", np.ones(len(v))))[shown] != 0
    if not there.all():
        rows, fill = _missing(rows, there, fill, classes)
    scores = None
    added = bool(batch.fields) and info is None
    if added and not classes and rows.shape[-1] == 1 and rows.dtype.kind == "f":
        scores = _scores(rows[np.isfinite(rows) & (rows != fill)])
    return _Picture(name, rows, called, fill, picked, classes, labels, palette, steps, scores)


def _scores(values: npt.NDArray[Any]) -> Any:
    """Returns what maps scores to colours, from 0 to 1 if they lie there."""
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize

    low, high = (values.min(), values.max()) if values.size else (0, 1)
    span = (0, 1) if low >= 0 and high <= 1 else (low, high)
    return ScalarMappable(Normalize(*span), "viridis")


def _missing(
    rows: npt.NDArray[Any], there: npt.NDArray[np.bool_], fill: float | None, classes: bool
) -> tuple[npt.NDArray[Any], float | None]:
    """Returns pictures, and their fill, in which what is not there is grey: NaN, or the fill."""
    if classes:
        rows = rows.astype(np.int64)
        fill = float(min(rows.min(), 0) - 1) if fill is None else fill
        rows[~there] = int(fill)
        return rows, fill
    rows = rows.astype(np.promote_types(rows.dtype, np.float32))
    rows[~there] = np.nan
    return rows, fill


def as_numpy(v: Any, dtype: str) -> Any:
    """Returns a member as numpy: of tensors, of bits of bfloat16, and of the rows of samples."""
    if isinstance(v, Ragged):
        return Ragged(*(as_numpy(x, "") for x in v))
    if isinstance(v, list) and v and not isinstance(v[0], str):  # of the views of a sample
        lists = [as_numpy(x, "") for x in v]
        ends = np.cumsum([0, *map(len, lists)], dtype=np.int64)
        return Ragged(ends, np.concatenate(lists))
    v = as_array(v)
    if dtype == "bfloat16" and v.dtype == np.uint16:
        v = (v.astype(np.uint32) << 16).view(np.float32)
    return v


def draw(
    given: Mapping[str, Any],
    names: Sequence[str],
    *,
    rows: int = 4,
    bands: Sequence[int | str] | None = None,
    overlay: bool = False,
    ignore: Mapping[str, float] | None = None,
    classes: Mapping[str, Classes] | None = None,
    palette: Mapping[str, Classes] | None = None,
    size: float = 2.0,
) -> Figure:
    """Returns the figure of `Members.plot`."""
    plt = pyplot()
    positive("size", size)
    if bands is not None and (isinstance(bands, str) or np.shape(bands) not in ((1,), (3,))):
        raise SpecError(f"bands is {bands!r}: it must be three bands, or one, in a list")
    if not isinstance(given, Mapping):
        raise SpecError(
            f"batch is of {type(given).__name__}: it must be a batch, a sample, or a dict of arrays"
        )
    batch = given if isinstance(given, Described) else Described(given)
    if missing := [name for name in names if name not in batch]:
        raise NotFoundError(f"the batch has {sorted(batch)}, no {missing[0]!r}")
    arrays = {k: as_numpy(v, batch.dtypes.get(k, "")) for k, v in batch.items()}
    members = names or [n for n in arrays if n not in ("valid", "position", "sample")]
    pixels = [v for v in arrays.values() if isinstance(v, np.ndarray) and v.ndim > 2]
    valid = np.atleast_1d(arrays.get("valid", np.ones(len(pixels[0]) if pixels else 0, bool)))
    shown = np.flatnonzero(valid)[: count("rows", rows)]
    named = _by_number("classes", classes, batch, str)
    painted = _by_number("palette", palette, batch, _hex)
    grey = _by_member("ignore", ignore, batch, "255")
    how = batch, shown, bands, grey, named, painted, len(valid)
    found = [_picture(n, arrays[n], *how) for n in members]
    pictures = [p for p in found if p is not None]
    if not pictures:
        raise NotFoundError("the batch has nothing to draw: no member has the axes y and x")
    _share_classes(pictures, batch)
    # The boxes and polygons of a single sample are arrays of its elements.
    ragged = {
        k: v if isinstance(v, Ragged) else Ragged(np.array([0, len(v)]), v)
        for k, v in arrays.items()
        if isinstance(v, Ragged) or v.ndim
    }
    outlines = {
        n: _outlines(n, ragged, batch, shown, len(valid), named, painted)
        for n in members
        if f"{n}_values" in ragged
    }
    columns = [p for p in pictures if not (overlay and p.classes)] or pictures[:1]
    above = [p for p in pictures if overlay and p.classes and p is not columns[0]]
    height, width = columns[0].rows.shape[2:4]
    extent = (0, width, height, 0)  # boxes and polygons are in pixels of the first picture
    across = [(p, step) for p in columns for step in range(p.rows.shape[1])]
    many, lines = len(across), max(len(shown), 1)
    wide = size * many + 0.3
    titles = [_wrapped(p.title(step), size) for p, step in across]
    marks, below = _legend([p for p in columns if p.classes], above, [*outlines.values()], wide)
    # An inch has 7 lines of a title, and 5 of a legend.
    tall = size * lines * height / width + 0.2 + (1 + max(t.count("\n") for t in titles)) / 7
    tall += 0.5 * any(p.scores is not None for p in columns)
    figure: Figure
    figure, places = plt.subplots(
        lines,
        many,
        squeeze=False,
        layout="constrained",
        figsize=(wide, tall + (0.2 + -(-len(marks) // below) / 5) * bool(marks)),
    )
    samples = np.atleast_1d(arrays.get("sample", np.arange(len(valid))))[shown]
    for row, line in enumerate(places[: len(shown)]):
        line[0].set_ylabel(f"sample {samples[row]}", fontsize=8)
        for (p, step), place in zip(across, line, strict=True):
            place.set(xticks=[], yticks=[])
            place.imshow(p.pixels(row, step), extent=extent, interpolation="nearest")
            if p is not columns[0]:
                continue
            for over in above:
                _overlay(place, over, row, min(step, over.rows.shape[1] - 1), extent)
            for shape in _shapes(ragged, outlines, int(shown[row]), len(valid), p, step):
                place.add_patch(shape)
        _mark_ground(line[0], arrays, int(shown[row]), width)
    for p, column in zip((p for p, _ in across), places.T, strict=True):
        if p.scores is not None:
            below_last = column[-1].inset_axes([0, -0.1, 1, 0.05])
            figure.colorbar(p.scores, cax=below_last, orientation="horizontal")
            below_last.tick_params(labelsize=7)
    for title, place in zip(titles, places[0], strict=True):
        place.set_title(title, fontsize=9)
    if marks:
        figure.legend(handles=marks, loc="outside lower center", ncols=below, fontsize=8)
    return figure


def _mark_ground(place: Any, arrays: Mapping[str, Any], row: int, width: int) -> None:
    """Draws a scale and an arrow to the north into the picture of a row that has a place."""
    if "geo.transform" not in arrays or "geo.gsd" not in arrays:
        return
    _, xc, xr, _, yc, yr = np.atleast_2d(arrays["geo.transform"])[row]
    metres = float(np.atleast_1d(arrays["geo.gsd"])[row])
    turn = xc * yr - xr * yc
    if not (np.isfinite(turn) and turn and np.isfinite(metres) and metres > 0):
        return
    from matplotlib.patheffects import withStroke

    seen: dict[str, Any] = {
        "color": "white",
        "path_effects": [withStroke(linewidth=2.5, foreground="black")],
    }
    most = 0.4 * width * metres
    unit = 10.0 ** math.floor(math.log10(most))
    length = unit * max(k for k in (1, 2, 5) if k * unit <= most)
    title = f"{length / 1000:g} km" if length >= 1000 else f"{length:g} m"
    share = length / metres / width
    place.plot([0.05, 0.05 + share], [0.06] * 2, transform=place.transAxes, **seen)
    how = {"fontsize": 7, "ha": "center", "va": "center", **seen}
    place.text(0.05 + share / 2, 0.12, title, transform=place.transAxes, **how)
    north = np.array([-xr, -xc]) / turn  # to the right and up, by one unit of the map
    step = 0.07 * north / np.hypot(*north)
    arrow = {"arrowstyle": "->", "color": "white", "path_effects": seen["path_effects"]}
    middle, fraction = np.array([0.88, 0.88]), "axes fraction"
    where = {"xy": middle + step, "xytext": middle - step, "xycoords": fraction}
    place.annotate("N", **where, textcoords=fraction, arrowprops=arrow, **how)


def _wrapped(text: str, inches: float) -> str:
    """Returns a text of at most so many inches a line, of which each has some 13 letters."""
    return "\n".join(textwrap.wrap(text, max(8, int(13 * inches)))) or text


def _by_number(
    option: str, given: Mapping[str, Classes] | None, batch: Described, read: Callable[[Any], str]
) -> dict[str, dict[int, str]]:
    """Returns names or colours of classes by member and number."""
    members = _by_member(option, given, batch).items()
    return {name: by_number(f"{option} of {name}", v, read) for name, v in members}


T = TypeVar("T")


def _by_member(
    option: str, given: Mapping[str, T] | None, batch: Described, example: str = "[...]"
) -> Mapping[str, T]:
    """Returns an option that is given by member, after a check of its names."""
    if given is not None and not isinstance(given, Mapping):
        raise SpecError(
            f'{option} is {given!r}: it must be a dict by member, as {{"mask": {example}}}'
        )
    for name in given or {}:
        if name not in batch:
            raise NotFoundError(f"{option} has {name!r}: the batch has {sorted(batch)}")
    return given or {}


def _hex(colour: Any) -> str:
    from matplotlib.colors import to_hex

    try:
        return str(to_hex(colour, keep_alpha=True))
    except ValueError as e:
        raise SpecError(f"palette: {e}") from None


def _share_classes(pictures: Sequence[_Picture], batch: Described) -> None:
    """Gives members that were added, such as a prediction, the classes of the first mask."""
    masks = [p for p in pictures if p.classes and (p.labels or p.palette)]
    for p in pictures:
        if masks and p.classes and p.name not in batch.fields and p not in masks:
            p.labels, p.palette = masks[0].labels, masks[0].palette


def _overlay(place: Any, p: _Picture, row: int, step: int, extent: Sequence[int]) -> None:
    """Draws classes over a picture, where they are not 0."""
    values = p.rows[row, step, ..., 0]
    alpha = np.where((values != 0) & (values != p.fill), 0.5, 0.0)
    colours = p.pixels(row, step)
    if p.palette:
        alpha, colours = alpha * (colours[..., 3] / 255), colours[..., :3]
    place.imshow(colours, extent=extent, alpha=alpha, interpolation="nearest")


def _legend(
    beside: Sequence[_Picture], above: Sequence[_Picture], outlines: Sequence[_Picture], wide: float
) -> tuple[list[Any], int]:
    """Returns which colour is which class, and how many of them fit into a line of some inches."""
    from matplotlib.patches import Patch

    marks: dict[Any, Any] = {}  # boxes and polygons of the same shapes share them
    for palette in dict.fromkeys(p.palette for p in [*beside, *above]):
        pictures = [p for p in [*beside, *above] if p.palette == palette]
        called = {v: name for p in pictures for v, name in p.labels.items()}
        drawn = {int(v) for p in pictures for v in np.unique(p.rows) if v != p.fill}
        seen = sorted(drawn if beside else drawn - {0})
        for v in seen[: _LEGEND if palette else _show.CLASSES]:
            name = called.get(v, str(v))
            marks[v, name, "filled"] = Patch(color=pictures[0].colour(v), label=name)
    for p in outlines:
        seen = np.unique(p.rows)[: _LEGEND if p.palette else _show.CLASSES].astype(int).tolist()
        for v in dict.fromkeys(seen):
            name = p.labels.get(v) or f"{p.name} {v}" * (len(seen) > 1) or p.name
            marks[v, name] = Patch(facecolor="none", edgecolor=p.colour(v), label=name)
    for mark in marks.values():
        mark.set_label(_plain(_wrapped(mark.get_label(), wide - 0.6)))
    longest = max((len(mark.get_label()) for mark in marks.values()), default=0)
    return [*marks.values()], max(1, int(wide / (0.6 + longest / 13)))


def _outlines(
    name: str,
    ragged: Mapping[str, Ragged],
    batch: Described,
    shown: npt.NDArray[np.intp],
    n: int,
    named: Mapping[str, Mapping[int, str]],
    painted: Mapping[str, Mapping[int, str]],
) -> _Picture:
    """Returns the classes of the boxes or polygons of some of n rows, with all of their views."""
    lists = ragged[f"{name}_values"].rows()
    views = len(lists) // n
    values = [lists[row * views + view] for row in shown for view in range(views)]
    labels, palette = batch._colours(name, named.get(name, {}), painted.get(name, {}))
    rows = np.concatenate([np.empty(0, int), *values])
    return _Picture(name, rows, (), None, (), True, labels, palette)


def _shapes(
    ragged: Mapping[str, Ragged],
    outlines: Mapping[str, _Picture],
    row: int,
    rows: int,
    p: _Picture,
    step: int,
) -> Iterator[Any]:
    """Yields the boxes and polygons of a row, of the view that a step of a picture shows."""
    from matplotlib.patches import PathPatch, Rectangle
    from matplotlib.path import Path

    for name, classes in outlines.items():
        lists = ragged[f"{name}_values"].rows()
        views = len(lists) // rows
        place = row * views + step * views // p.rows.shape[1]
        if "." in name and name.rpartition(".")[2] != p.name.rpartition(".")[2]:
            continue  # of windows of another size
        how = [
            {"fill": False, "edgecolor": classes.colour(v), "linewidth": 1.5} for v in lists[place]
        ]
        if f"{name}_rings" in ragged:
            for shape, style in zip(polygons(ragged, name)[place], how, strict=True):
                for rings in shape:
                    path = Path.make_compound_path(*(Path([*r, r[0]], closed=True) for r in rings))
                    yield PathPatch(path, **style)
        else:
            for (x0, y0, x1, y1), style in zip(ragged[name].rows()[place], how, strict=True):
                yield Rectangle((x0, y0), x1 - x0, y1 - y0, **style)


class Members(Described):
    """Members that can be drawn."""

    @entry
    def plot(
        self,
        *names: str,
        rows: int = 4,
        bands: Sequence[int | str] | None = None,
        overlay: bool = False,
        ignore: Mapping[str, float] | None = None,
        classes: Mapping[str, Classes] | None = None,
        palette: Mapping[str, Classes] | None = None,
        size: float = 2.0,
    ) -> Figure:
        """Draws rows as pictures: a line of pictures for each, its steps of time left to right.

            batch.plot(rows=2).savefig("batch.png")

        Images are drawn in true colours if the names of their bands say which these are (B04 or
        "red", ...), else in their first three bands or in grey. Each band is stretched from its 2nd
        to its 98th percentile, over all rows and steps. Integers of one band with few
        values are classes, each with a colour: that of the file, or what its name suggests, as
        "forest" is green. Floats of one band that were added are scores, with a bar of colours. The
        first picture has a scale and an arrow to the north with `Pixels(geo=True)`. Fill, NaN and
        infinities are grey. Boxes and polygons are drawn over the
        first member of a line. Members that were added, such as predictions, are drawn too, if
        their axes are (n y x), (n b y x) or (n t b y x), with the classes of the first mask.

        Args:
            names: members to draw. Default: all that can be.
            rows: how many of the valid rows are drawn.
            bands: three bands, or one, of images, by number or name.
            overlay: draw classes over the first picture, where they are not 0, not beside it.
            ignore: values that are grey, by the member that has them: {"mask": 255}. Default: the
                `fill` of each field.
            classes: names of classes in the legend, by the member that has them, also boxes: a list
                from 0, or a dict by number: {"mask": {1: "water", 2: "forest"}}. Default: the
                file's names.
            palette: their colours likewise, as matplotlib writes them: {"mask": {1: "#1f6fb4"}}.
            size: width of a picture in inches.

        Raises:
            ImportError: matplotlib is not installed.
            NotFoundError: there is no such member or band, or nothing to draw.
            SpecError: a member has more or fewer rows than the batch.
        """
        figure = draw(
            self,
            names,
            rows=rows,
            bands=bands,
            overlay=overlay,
            ignore=ignore,
            classes=classes,
            palette=palette,
            size=size,
        )
        pyplot().close(figure)  # a notebook would show it twice
        return figure

    def _repr_html_(self) -> str:
        """Returns what notebooks show: the members, and some chips of rasters and masks."""
        rows = []
        valid = np.atleast_1d(as_array(self.get("valid", ())))
        for name, dtype, shape in self._shown():
            info = self.fields.get(name)
            look = _show.quicklook(
                as_numpy(self[name], dtype),
                self.axes.get(name, ()),
                valid,
                info.bands if info else (),
                self._fill(name),
                self._colours(name)[1],
            )
            rows.append((name, dtype, shape, look))
        return _show.table(self._about(), rows)
