"""Pictures of images in false colour and of their masks, with titles, a legend and a scale."""

from __future__ import annotations

import os
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt


def false_colour(
    image: npt.NDArray[np.float32], bands: tuple[int, int, int] = (4, 3, 0)
) -> npt.NDArray[np.float32]:
    """Returns the colours, (y, x, 3), of an image (bands, y, x) of mean 0 and deviation 1."""
    # From 1.2 standard deviations below the mean to 2.3 above it.
    return np.clip((image[list(bands)] + 1.2) / 3.5, 0, 1).transpose(1, 2, 0)


def draw(
    path: str | os.PathLike[str],
    pictures: Sequence[tuple[str, npt.NDArray[np.generic]]],
    classes: dict[str, str],
    metres: float,
    columns: int,
) -> None:
    """Writes pictures to a PNG file, in lines of so many.

    Args:
        path: the file.
        pictures: their titles, and colours (y, x, 3) or classes (y, x).
        classes: the names of the classes from 0 on, with their colours; others are black.
        metres: the side of a pixel.
        columns: pictures in a line.
    """
    from matplotlib.colors import ListedColormap
    from matplotlib.figure import Figure
    from matplotlib.patches import Patch
    from matplotlib.patheffects import withStroke

    colours = ListedColormap([*classes.values(), "black"])
    height, width = pictures[0][1].shape[:2]
    lines, side = -(-len(pictures) // columns), 10 / columns
    size = 10, lines * (side * height / width + 0.25) + 0.6
    figure = Figure(size, layout="constrained")
    places = figure.subplots(lines, columns, squeeze=False).ravel()
    for place, (title, picture) in zip(places, pictures, strict=False):
        flat = np.minimum(picture, len(classes)) if picture.ndim == 2 else picture
        place.imshow(flat, colours, vmin=0, vmax=len(classes), interpolation="nearest")
        place.set_title(title, fontsize=9)
    for place in places:
        place.set_axis_off()
    # A bar of about a third of the first picture, of a whole number of metres.
    length = width * metres / 3
    step = 10 ** np.floor(np.log10(length))
    length = step * max(k for k in (1, 2, 5) if k * step <= length)
    x, y = width / 20, height * 0.94
    edge = [withStroke(linewidth=4, foreground="black")]  # to be read over any colours
    places[0].plot([x, x + length / metres], [y, y], color="white", lw=2, path_effects=edge)
    text = f"{length / 1000:g} km" if length >= 1000 else f"{length:g} m"
    how = {"color": "white", "fontsize": 8, "va": "bottom", "path_effects": edge}
    places[0].text(x, y - height / 40, text, **how)
    handles = [Patch(color=colour, label=name) for name, colour in classes.items()]
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles), fontsize=9)
    figure.savefig(path, dpi=150)
