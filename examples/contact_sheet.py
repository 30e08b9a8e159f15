"""A PNG of a batch: every image in false colour, beside its mask."""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

GAP = 4  # pixels between chips


def write_png(path: str | os.PathLike[str], rgb: npt.NDArray[np.uint8]) -> None:
    """Writes an array of shape (height, width, 3) as a PNG file."""
    height, width, _ = rgb.shape

    def part(kind: bytes, data: bytes) -> bytes:
        crc = zlib.crc32(kind + data)
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", crc)

    # Every row starts with its filter: 0, none.
    rows = np.zeros((height, 1 + 3 * width), np.uint8)
    rows[:, 1:] = rgb.reshape(height, 3 * width)
    with open(path, "wb") as f:
        f.write(b"\x89PNG\r\n\x1a\n")
        f.write(part(b"IHDR", struct.pack(">2I5B", width, height, 8, 2, 0, 0, 0)))
        f.write(part(b"IDAT", zlib.compress(rows.tobytes(), 9)))
        f.write(part(b"IEND", b""))


def contact_sheet(
    images: npt.NDArray[np.float32],
    masks: npt.NDArray[np.uint8],
    colours: Sequence[str],
    bands: tuple[int, int, int] = (4, 3, 0),
    columns: int = 4,
) -> npt.NDArray[np.uint8]:
    """Lays a batch out in a grid of pairs, an image and its mask.

    Args:
        images: shape (n, bands, y, x), normalised to mean 0 and standard deviation 1.
        masks: shape (n, y, x), classes.
        colours: "#rrggbb" of the classes from 0 on; the others are black.
        bands: those shown as red, green and blue.
        columns: pairs in a row.

    Returns:
        The sheet, of shape (height, width, 3).
    """
    n, _, height, width = images.shape
    palette = np.zeros((256, 3), np.uint8)
    palette[: len(colours)] = [list(bytes.fromhex(c[1:])) for c in colours]
    # From 1.2 standard deviations below the mean to 2.3 above it.
    colour = np.clip((images[:, list(bands)] + 1.2) / 3.5, 0, 1).transpose(0, 2, 3, 1)
    pairs = np.concatenate([(255 * colour).astype(np.uint8), palette[masks]], axis=2)
    cell_y, cell_x = height + GAP, 2 * width + GAP
    rows = -(-n // columns)
    sheet = np.full((rows * cell_y + GAP, columns * cell_x + GAP, 3), 255, np.uint8)
    for i, pair in enumerate(pairs):
        y, x = GAP + i // columns * cell_y, GAP + i % columns * cell_x
        sheet[y : y + height, x : x + 2 * width] = pair
    return sheet
