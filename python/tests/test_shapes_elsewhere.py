"""Shapes that lie elsewhere than all images are logged: their masks are empty."""

from __future__ import annotations

import json

import numpy as np
import patience
import pytest
import rasters

import chaski

rasterio = pytest.importorskip("rasterio", reason="needs rasterio to write rasters")
warp = pytest.importorskip("rasterio.warp")

pytestmark = pytest.mark.usefixtures("one_engine")
N = 40  # more images than the log needs


@pytest.fixture(scope="module")
def places(tmp_path_factory) -> tuple:
    """Images in a row, and where their middles are in degrees."""
    root = tmp_path_factory.mktemp("elsewhere")
    (root / "images").mkdir()
    middles = []
    for k in range(N):
        left, top = 500_000 + 1000 * k, 5_000_000
        at = rasterio.Affine(10, 0, left, 0, -10, top)
        path = root / f"images/{k:02}.tif"
        rasters.write(path, np.full((1, 16, 16), k, np.uint8), crs="EPSG:32631", transform=at)
        (lon,), (lat,) = warp.transform("EPSG:32631", "EPSG:4326", [left + 80], [top - 80])
        middles.append((lon, lat))
    return root, middles


def squares(middles, shift: float = 0.0) -> str:
    """Squares of some 40 m around places, moved to the east."""
    d = 2e-4
    corners = [(-d, -d), (d, -d), (d, d), (-d, d), (-d, -d)]
    rings = [[[x + dx + shift, y + dy] for dx, dy in corners] for x, y in middles]
    return json.dumps(
        {
            "type": "FeatureCollection",
            "features": [
                {
                    "type": "Feature",
                    "properties": {},
                    "geometry": {"type": "Polygon", "coordinates": [r]},
                }
                for r in rings
            ],
        }
    )


def logged(root, vector, caplog, due: bool = False) -> tuple[bool, int]:
    """Whether the log says it, and how many pixels are covered.

    Lines of the engine may come after the batches: this waits for one that is due.
    """
    caplog.clear()
    fields = {"image": "images/{id}.tif", "mask": vector}
    with chaski.load(root, fields=fields, batch_size=8, shuffle=False) as run:
        covered = sum(int((b["mask"] > 0).sum()) for b in run)

    told = "no image has shapes so far"
    return told in patience.logged(caplog, *[told] * due), covered


@pytest.mark.parametrize("each", [False, True])
@pytest.mark.parametrize("shift, elsewhere", [(0.0, False), (3.0, True), (360.0, False)])
def test_another_place(places, tmp_path, binary, caplog, each, shift, elsewhere) -> None:
    root, middles = places
    if each:
        for k, middle in enumerate(middles):
            (tmp_path / f"{k:02}.geojson").write_text(squares([middle], shift))
        vector = chaski.Vector(pattern=f"{tmp_path}/{{id}}.geojson")
    else:
        (tmp_path / "all.geojson").write_text(squares(middles, shift))
        vector = chaski.Vector(tmp_path / "all.geojson")
    said, covered = logged(root, vector, caplog, elsewhere)
    assert said == elsewhere == (covered == 0)


def test_a_part_of_the_images(places, tmp_path, binary, caplog) -> None:
    """Shapes of a half of the images are enough; where no file has one, the log says so.

    Workers start images in order: later ones can all be done first only if there are more workers
    than images in the half.
    """
    root, middles = places
    (tmp_path / "some.geojson").write_text(squares(middles[: N // 2]))
    said, covered = logged(root, chaski.Vector(tmp_path / "some.geojson"), caplog)
    assert not said and covered > 0
    (tmp_path / "none.geojson").write_text(squares([]))
    assert logged(root, chaski.Vector(tmp_path / "none.geojson"), caplog, True) == (True, 0)
    for k in range(N):
        (tmp_path / f"{k:02}.geojson").write_text(squares(middles[k : k + 1] if k > 35 else []))
    vector = chaski.Vector(pattern=f"{tmp_path}/{{id}}.geojson")
    said, covered = logged(root, vector, caplog)
    assert not said and covered > 0


def test_metres_taken_for_degrees_of_another_zone(places, tmp_path, binary, caplog) -> None:
    """A wrong CRS of the argument is noticed, too."""
    root, _ = places
    left, right, low, high = 500_040, 519_960, 4_999_900, 4_999_960  # over half of the images
    ring = [[left, low], [right, low], [right, high], [left, low]]
    text = json.dumps({"type": "Polygon", "coordinates": [ring]})
    feature = f'{{"type": "Feature", "properties": {{}}, "geometry": {text}}}'
    (tmp_path / "m.geojson").write_text(feature)
    for crs, elsewhere in (("EPSG:32631", False), ("EPSG:32633", True)):
        vector = chaski.Vector(tmp_path / "m.geojson", crs=crs)
        said, covered = logged(root, vector, caplog, elsewhere)
        assert said == elsewhere == (covered == 0)
