"""Overviews in windows on the ground, against what GDAL makes of the same overview."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import chaski

pytestmark = pytest.mark.usefixtures("one_engine")

rasterio = pytest.importorskip("rasterio", reason="needs rasterio to write and to judge")
warp = pytest.importorskip("rasterio.warp")

SIDE = 24  # pixels of a window
FIELDS = {
    "soft": chaski.Field(dtype="float32", fill=np.nan),
    "sharp": chaski.Field(bands="position", dtype="native", fill=0),
}


@pytest.fixture(scope="module", params=["nodata", "mask"])
def scene(request: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A scene of an odd number of pixels of 10 m, with overviews that GDAL averages."""
    path = tmp_path_factory.mktemp(request.param) / "a.tif"
    h, w = 511, 523
    row, col = np.mgrid[:h, :w]
    data = (2000 + 900 * np.sin(row / 17) + 800 * np.cos(col / 23)).astype(np.uint16)
    missing = (row + col) % 90 < 20
    profile: dict[str, Any] = dict(
        driver="GTiff", height=h, width=w, count=1, dtype="uint16", crs="EPSG:32630"
    )
    profile |= dict(tiled=True, blockxsize=64, blockysize=64, compress="deflate")
    profile["transform"] = rasterio.Affine(10, 0, 500000, 0, -10, 4600000)
    if request.param == "nodata":
        data[missing] = profile["nodata"] = 0
    env = rasterio.Env(GDAL_TIFF_INTERNAL_MASK=True)
    with env, rasterio.open(path, "w", **profile) as f:
        f.write(data[None])
        if request.param == "mask":
            f.write_mask(~missing)
    with env, rasterio.open(path, "r+") as f:
        f.build_overviews([2, 4], rasterio.enums.Resampling.average)
    return path


def judged(path: Path, level: int, epsg: int, transform: Any, how: str) -> np.ndarray:
    """Returns what GDAL makes of a level, 0 for the raster, in a window; NaN is missing."""
    more = {"overview_level": level - 1} if level else {}
    with rasterio.open(path, **more) as f:
        data = np.where(f.read_masks(1) != 0, f.read(1).astype(np.float32), np.nan)
        out = np.full((SIDE, SIDE), np.nan, np.float32)
        warp.reproject(
            data,
            out,
            src_transform=f.transform,
            src_crs=f.crs,
            src_nodata=np.nan,
            dst_transform=transform,
            dst_crs=f"EPSG:{epsg}",
            dst_nodata=np.nan,
            resampling=getattr(warp.Resampling, how),
            tolerance=0,
        )
    return out


@pytest.mark.parametrize("crs", ["utm", "EPSG:3035"])
@pytest.mark.parametrize(
    ("resolution", "overviews", "soft", "sharp"),
    [(40, "auto", 2, 0), (40, True, 2, 2), (20, True, 1, 1), (30, True, 1, 1), (40, False, 0, 0)],
)
def test_windows_are_those_of_overviews(
    scene: Path, crs: str, resolution: float, overviews: Any, soft: int, sharp: int
) -> None:
    window = chaski.GeoWindow(
        SIDE * resolution, resolution, crs=crs, per_epoch=12, overviews=overviews, edge=True
    )
    differences, unlike, compared = [], 0, 0
    with chaski.load(
        scene.parent, fields=FIELDS, batch_size=6, window=window, pixels=chaski.Pixels(geo=True)
    ) as loader:
        for batch in loader:
            for k in np.flatnonzero(batch["valid"]):
                epsg = int(batch["geo"]["epsg"][k])
                t = rasterio.Affine.from_gdal(*batch["geo"]["transform"][k])
                want = judged(scene, soft, epsg, t, "bilinear")
                got = batch["soft"][k][0]
                both = ~np.isnan(want) & ~np.isnan(got)
                differences.append(np.abs(want[both] - got[both]))
                want, got = judged(scene, sharp, epsg, t, "nearest"), batch["sharp"][k][0]
                unlike += int(np.sum(np.nan_to_num(want) != got))
                compared += got.size
    assert np.concatenate(differences).size > 2000
    assert np.concatenate(differences).mean() < 0.005 * 3400
    # Places are within 0.05 pixels of GDAL's: few at the edge of two pixels are in the other one.
    assert unlike <= compared * 2e-3


def test_explain_names_the_overview_and_plan_counts_it(scene: Path, binary: str) -> None:
    def run(command: str, **members: str) -> Any:
        sampler = json.dumps({"per_epoch": 8, **members})
        window = ("--geo-window", f"{40 * SIDE}/40", "--sampler", sampler, "--batch", "8")
        out = subprocess.run(
            [binary, command, "--json", *window, str(scene.parent)],
            check=True,
            capture_output=True,
        )
        return json.loads(out.stdout)

    for members, level in (({}, 1), ({"overviews": "none"}, None)):
        assets = [a for row in run("explain", **members)["rows"] for a in row["assets"]]
        assert [a.get("overview") for a in assets] == [level] * 8
    coarse, fine = run("plan"), run("plan", overviews="none")
    assert 0 < coarse["total"]["bytes"] * 2 < fine["total"]["bytes"]
    assert coarse["total"]["chunks"] * 3 < fine["total"]["chunks"]


@pytest.mark.usefixtures("binary")
def test_read(scene: Path) -> None:
    for level in (0, 1):
        with rasterio.open(scene, overview_level=level) as f:
            want = f.read()
        assert np.array_equal(chaski.read(scene, overview=level), want)
        windows = [(3, 5, 20, 30)] * 2
        got = chaski.read([scene, scene], overview=level, windows=windows)
        assert np.array_equal(got, np.stack([want[:, 3:23, 5:35]] * 2))
    with pytest.raises(
        chaski.NotFoundError, match="no number 2: the raster has overviews 0 to 1: not found"
    ):
        chaski.read(scene, overview=2)
    with pytest.raises(chaski.SpecError, match="overview is -1"):
        chaski.read(scene, overview=-1)
