"""Writes a result with the Python package, while soak_disk.py cuts the power.

    .venv/bin/python tools/soak_python.py WRITER OUT SOURCE

Writers: stats, rumi, paste, ground, stac and quarantine. SOURCE is a folder of chips. The result
follows from it, so that two folders give an old and a new one.
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "python" / "src"))

import chaski  # noqa: E402 the path is set above
import numpy as np  # noqa: E402
from chaski import rumi  # noqa: E402

SIDE = 64


def number(source: Path) -> int:
    """A number that two folders differ in."""
    return sum(next(p for p in sorted(source.iterdir())).read_bytes()[-4096:])


def stats(out: Path, source: Path) -> None:
    """Statistics of a folder."""
    chaski.stats(source).save(out)


def write_rumi(out: Path, source: Path) -> None:
    """A rumi file."""
    layout = rumi.Layout((4, 512, 512), np.dtype("u2"), (256, 256))
    random = np.random.default_rng(number(source))
    shape = (layout.frames, 256, 256)
    rumi.write(out, list(random.integers(0, 4000, shape, "u2")), layout, graph="auto")


def paste(out: Path, source: Path) -> None:
    """Predictions for the windows of a chip."""
    grid, scene = chaski.Grid(SIDE), source / "0.tif"
    with chaski.load(scene, window=grid, shuffle=False, batch_size=2) as loader:
        parts = [(b["sample"].copy(), b["image"].astype("f4")) for b in loader]
    chaski.paste(parts, scene, out, grid=grid)


def ground(out: Path, source: Path) -> None:
    """Predictions for windows on the ground."""
    side = 10 * SIDE
    grid = chaski.GroundGrid(epsg=32630, bounds=(0, 0, 4 * side, 4 * side), resolution=10)
    west, north = np.meshgrid(np.arange(4.0) * side, np.arange(1.0, 5) * side)
    transform = np.zeros((16, 6))
    transform[:, 0], transform[:, 3] = west.ravel(), north.ravel()
    transform[:, 1], transform[:, 5] = 10, -10
    values = np.random.default_rng(number(source)).random((16, 2, SIDE, SIDE), "f4")
    chaski.paste(
        [({"epsg": np.full(16, 32630), "transform": transform}, values)], None, out, grid=grid
    )


def quarantine(out: Path, source: Path) -> None:
    """Appends the bad chips of a folder to a list."""
    bad = chaski.OnBad("skip", quarantine=out)
    with chaski.load(source, batch_size=2, shuffle=False, on_bad=bad) as loader:
        for _ in loader:
            pass


def stac(out: Path, source: Path) -> None:
    """A catalog of STAC items."""
    items = [
        {
            "type": "Feature",
            "stac_version": "1.0.0",
            "id": chip.stem,
            "geometry": None,
            "properties": {"datetime": "2026-01-01T00:00:00Z"},
            "links": [],
            "assets": {"image": {"href": str(chip.absolute())}},
        }
        for chip in sorted(source.iterdir())
    ]
    chaski.stac({"type": "FeatureCollection", "features": items}, out, ["image"])


WRITERS = {
    "stats": stats,
    "rumi": write_rumi,
    "paste": paste,
    "ground": ground,
    "quarantine": quarantine,
    "stac": stac,
}

if __name__ == "__main__":
    WRITERS[sys.argv[1]](Path(sys.argv[2]), Path(sys.argv[3]))
