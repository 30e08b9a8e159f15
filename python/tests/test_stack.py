"""One tensor of rasters in files of their own, compared with rasterio and GDAL."""

from __future__ import annotations

import csv
import json
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import chaski

rasterio = pytest.importorskip("rasterio", reason="needs rasterio to write and to judge")
import rasters  # noqa: E402
from conftest import nonempty  # noqa: E402
from patience import logged  # noqa: E402
from rasterio.enums import Resampling  # noqa: E402
from rasterio.warp import reproject  # noqa: E402

pytestmark = pytest.mark.usefixtures("one_engine")

SIDE = 1200  # metres
# Name, size of a pixel, bands, how far its corner is moved to the south-east, and the CRS.
BANDS = [("B02", 10, 1, 0), ("B05", 20, 2, 0), ("B01", 60, 1, 0), ("PAN", 15, 1, -7.5)]
CHIPS = 4


def smooth(rng: np.random.Generator, bands: int, n: int) -> Any:
    """Returns an image whose neighbouring pixels are alike, as those of real images are."""
    y, x = np.mgrid[:n, :n] / n
    waves = [
        1000 * (k + 1) + 400 * np.sin(9 * x + rng.uniform(0, 6)) * np.cos(7 * y + rng.uniform(0, 6))
        for k in range(bands)
    ]
    return (np.stack(waves) + rng.integers(0, 60, (bands, n, n))).astype(np.uint16)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rng = np.random.default_rng(7)
    path = tmp_path_factory.mktemp("stack")
    rows = []
    for chip in range(CHIPS):
        row = {"id": f"c{chip}"}
        for name, size, count, off in BANDS:
            n = round((SIDE - 2 * off) / size)
            place = rasterio.transform.from_origin(5e5 + off, 4.2e6 - off, size, size)
            row[name] = f"c{chip}_{name}.tif"
            profile = dict(width=n, height=n, count=count, dtype="uint16", nodata=0)
            with rasterio.open(
                path / row[name], "w", crs="EPSG:32630", transform=place, tiled=True,
                blockxsize=32, blockysize=32, compress="deflate", **profile
            ) as d:  # fmt: skip
                image = smooth(rng, count, n)
                image[:, : n // 5, n // 3 : n // 2] = 0
                d.write(image)
        rows.append(row)
    with open(path / "scenes.csv", "w") as f:
        table = csv.DictWriter(f, list(rows[0]))
        table.writeheader()
        table.writerows(rows)
    return path


def by_gdal(folder: Path, chip: str, size: float, how: Resampling) -> tuple[Any, Any]:
    """Returns the bands of a chip on a grid of a size, and their validity, by GDAL's warper."""
    n = round(SIDE / size)
    grid = rasterio.transform.from_origin(5e5, 4.2e6, size, size)
    images = []
    for name, *_ in BANDS:
        with rasterio.open(folder / f"{chip}_{name}.tif") as d:
            for band in d.read().astype(np.float32):
                images.append(np.full((n, n), -1, np.float32))
                reproject(
                    band, images[-1], src_transform=d.transform, src_crs=d.crs, src_nodata=0,
                    dst_transform=grid, dst_crs=d.crs, dst_nodata=-1, resampling=how, tolerance=0,
                )  # fmt: skip
    image = np.stack(images)
    return image, image >= 0


COLUMNS = [name for name, *_ in BANDS]
PATTERNS = ["{id}_" + name + ".tif" for name in COLUMNS]


@pytest.mark.parametrize("grid", ["first", 20, 30.0])
@pytest.mark.parametrize("by", ["columns", "patterns"])
def test_the_nearest_pixels_are_those_of_gdal(folder: Path, grid: Any, by: str) -> None:
    where = {"columns": COLUMNS} if by == "columns" else {"patterns": PATTERNS}
    field = chaski.Field(**where, grid=grid, dtype="native", resample="nearest", validity="ok")
    source = folder / "scenes.csv" if by == "columns" else folder
    with chaski.load(source, fields={"image": field}, batch_size=3, seed=4) as loader:
        seen = 0
        for b in loader:
            for row in np.flatnonzero(b["valid"]):
                size = 10 if grid == "first" else grid
                image, valid = by_gdal(folder, f"c{b['sample'][row]}", size, Resampling.nearest)
                assert b["image"][row].dtype == np.uint16
                assert np.array_equal(b["ok"][row] > 0, valid)
                assert np.array_equal(b["image"][row][valid], image[valid])
                seen += 1
        assert seen == CHIPS


def test_windows_are_cut_from_the_whole(folder: Path) -> None:
    """Whatever window is read, its pixels are those of the whole chip: places do not move."""
    field = chaski.Field(columns=COLUMNS, dtype="float32", validity="ok", pad=True)
    options = dict(fields={"image": field}, seed=4, pixels=chaski.Pixels(windows=True))
    with chaski.load(folder / "scenes.csv", batch_size=CHIPS, shuffle=False, **options) as loader:
        (whole,) = [(b["image"].copy(), b["ok"].copy()) for b in loader]
    window = chaski.RandomWindow(51, per_asset=5)
    with chaski.load(folder / "scenes.csv", batch_size=4, window=window, **options) as loader:
        for b in nonempty(loader):
            for row in nonempty(np.flatnonzero(b["valid"])):
                y, x, h, w = b["window"][row]
                at = np.s_[b["sample"][row] // 5, :, y : y + h, x : x + w]
                # Places are whole numbers of 2^-32 pixels, rounded for each window.
                assert np.allclose(b["image"][row], whole[0][at], atol=0.01)
                assert np.array_equal(b["ok"][row], whole[1][at])


def test_bilinear_is_that_of_gdal(folder: Path) -> None:
    """Away from nodata, on a finer grid, the values are GDAL's but for rounding."""
    field = chaski.Field(columns=COLUMNS, dtype="float32", resample="bilinear", validity="ok")
    with chaski.load(folder / "scenes.csv", fields={"image": field}, batch_size=1) as loader:
        for b in nonempty(loader):
            image, valid = by_gdal(folder, f"c{b['sample'][0]}", 10, Resampling.bilinear)
            inner = np.ones_like(valid)
            for dy in range(-12, 13, 3):  # two pixels of the coarsest raster around
                for dx in range(-12, 13, 3):
                    inner &= np.roll(valid, (dy, dx), (1, 2))
            inner[:, :12] = inner[:, -12:] = inner[:, :, :12] = inner[:, :, -12:] = False
            assert inner.mean() > 0.4
            assert np.abs(b["image"][0] - image)[inner].max() < 0.02
            assert np.array_equal(b["ok"][0] > 0, by_gdal_nearest_mask(folder, b["sample"][0]))


def by_gdal_nearest_mask(folder: Path, sample: int) -> Any:
    """Bilinear values are valid where the nearest pixel is."""
    return by_gdal(folder, f"c{sample}", 10, Resampling.nearest)[1]


def test_antialias_is_the_mean_of_what_a_pixel_covers(folder: Path) -> None:
    """On a coarser grid GDAL's bilinear kernel widens too."""
    field = chaski.Field(columns=["B02", "B05"], grid=60, dtype="float32", resample="antialias")
    with chaski.load(folder / "scenes.csv", fields={"image": field}, batch_size=1) as loader:
        for b in nonempty(loader):
            image, valid = by_gdal(folder, f"c{b['sample'][0]}", 60, Resampling.bilinear)
            inner = valid[:3].copy()
            for dy in (-2, -1, 0, 1, 2):
                for dx in (-2, -1, 0, 1, 2):
                    inner &= np.roll(valid[:3], (dy, dx), (1, 2))
            inner[:, :2] = inner[:, -2:] = inner[:, :, :2] = inner[:, :, -2:] = False
            assert inner.mean() > 0.3
            assert np.abs(b["image"][0] - image[:3])[inner].max() < 0.02


def test_resume_and_ranks(folder: Path) -> None:
    field = chaski.Field(columns=COLUMNS, dtype="float32")
    plain = chaski.Field(column="B02", dtype="float32")
    options: dict[str, Any] = dict(
        batch_size=4, seed=9, window=chaski.RandomWindow(40, per_asset=3)
    )

    def samples(field: chaski.Field, **more: Any) -> list[Any]:
        with chaski.load(
            folder / "scenes.csv", fields={"image": field}, **options, **more
        ) as loader:
            return [(b["sample"].tolist(), b["image"].copy()) for b in loader]

    whole = samples(field)
    # The order is that of a field of the first raster alone: a stack moves no sample and no window.
    for (a, stack), (b, one) in zip(whole, samples(plain), strict=True):
        assert a == b and np.array_equal(stack[:, :1], one)
    for rank in range(2):
        for (a, stack), (b, mine) in zip(
            whole, samples(field, rank=rank, world_size=2), strict=True
        ):
            assert a[rank::2] == b and np.array_equal(stack[rank::2], mine)
    with chaski.load(folder / "scenes.csv", fields={"image": field}, **options) as loader:
        next(iter(loader))
        state = loader.state_dict()
    with chaski.load(folder / "scenes.csv", fields={"image": field}, **options) as loader:
        loader.load_state_dict(state)
        rest = [(b["sample"].tolist(), b["image"].copy()) for b in loader]
    assert [a for a, _ in rest] == [a for a, _ in whole[1:]]
    assert all(np.array_equal(x, y) for (_, x), (_, y) in zip(rest, whole[1:], strict=True))


def test_a_sample_without_a_part_is_bad(folder: Path, tmp_path: Path) -> None:
    lines = (folder / "scenes.csv").read_text().splitlines()
    table = folder / "gap.csv"
    table.write_text("\n".join([lines[0], lines[1].replace("c0_B05.tif", ""), *lines[2:]]))
    fields = {"image": chaski.Field(columns=COLUMNS, dtype="float32")}
    with pytest.raises(chaski.Error, match=r"image\.B05"):
        list(chaski.load(table, fields=fields, batch_size=2))
    with chaski.load(table, fields=fields, batch_size=2, on_bad="skip", shuffle=False) as loader:
        rows = np.concatenate([b["valid"] for b in loader])
        assert rows.tolist() == [False, True, True, True]


def test_normalize_by_the_stats_of_each_raster(folder: Path) -> None:
    fields = {"image": chaski.Field(columns=COLUMNS)}
    stats = chaski.stats(folder / "scenes.csv", fields=fields)
    bands = stats["fields"]["image"]["bands"]
    assert [b.get("name") for b in bands] == ["B02", None, None, "B01", "PAN"]
    at = 0
    for name, _, count, _ in BANDS:
        files = [rasterio.open(folder / f"c{c}_{name}.tif").read() for c in range(CHIPS)]
        for k in range(count):
            values = np.concatenate([f[k][f[k] > 0] for f in files]).astype(float)
            assert bands[at]["count"] == values.size
            assert bands[at]["mean"] == pytest.approx(values.mean())
            assert bands[at]["std"] == pytest.approx(values.std())
            at += 1
    with chaski.load(
        folder / "scenes.csv", fields=fields, batch_size=CHIPS, stats=stats, normalize="mean_std"
    ) as loader:
        (b,) = list(loader)
        assert np.abs(b["image"].mean((0, 2, 3))).max() < 0.1


def test_explain_and_plan_name_the_parts(folder: Path, binary: str) -> None:
    fields = [a for c in COLUMNS for a in ("--field", f"image={c}")]
    table = str(folder / "scenes.csv")
    text = subprocess.check_output([binary, "explain", "--json", *fields, "--step", "0", table])
    row = json.loads(text)["rows"][0]
    parts = [(a["part"], a.get("resampled", False)) for a in row["assets"]]
    assert parts == [("B02", False), ("B05", True), ("B01", True), ("PAN", True)]
    chip = row["draw"]["row"]
    assert [Path(a["uri"]).name for a in row["assets"]] == [f"c{chip}_{c}.tif" for c in COLUMNS]
    plan = json.loads(subprocess.check_output([binary, "plan", "--json", *fields, table]))
    assert plan["total"]["opens"] == CHIPS * len(COLUMNS)
    assert plan["total"]["bytes"] > 0


@pytest.mark.parametrize("share", [1.0, 0.25])
def test_a_part_that_covers_a_quarter_is_told(binary, tmp_path, caplog, share) -> None:
    """The log says once that a raster covers a part of its stack."""
    rasterio = pytest.importorskip("rasterio")
    for i in range(3):
        for band, side in (("a", 32), ("b", int(32 * share**0.5))):
            place = rasterio.Affine(10, 0, 5e5 + 1000 * i, 0, -10, 4e6)
            profile = {"dtype": "uint8", "crs": "EPSG:32630"}
            size = {"transform": place}
            rasters.write(
                tmp_path / f"{i}_{band}.tif", np.ones((1, side, side), "uint8"), **profile, **size
            )
    fields = {"x": chaski.Field(patterns=["{id}_a.tif", "{id}_b.tif"], validity="ok")}
    with chaski.load(tmp_path, batch_size=1, fields=fields) as loader:
        for batch in nonempty(loader):
            assert float(np.mean(batch["ok"][:, 1])) == share
    told = "cover only a part of their stack"
    if share < 1:
        logged(caplog, told)
    assert caplog.text.count(told) == (share < 1)


@pytest.mark.parametrize(
    ("other", "moved", "same"),
    [
        ("EPSG:25832", 0, True),
        ("EPSG:25832", 4, True),
        ("EPSG:25832", 6, False),
        ("EPSG:32633", 0, False),
    ],
)
def test_one_rule_for_the_ground(binary, tmp_path, other, moved, same) -> None:
    """Fields and verify compare CRSs on the ground: UTM of ETRS89 and WGS 84 are one within 1 m."""
    rasterio = pytest.importorskip("rasterio")
    for name, crs, x in (("a", "EPSG:32632", 0), ("b", other, moved)):
        place = rasterio.Affine(10, 0, 5e5 + x, 0, -10, 5.3e6)
        profile = {"dtype": "uint8", "crs": crs, "transform": place}
        (tmp_path / name).mkdir()
        rasters.write(
            tmp_path / name / "1.tif", np.arange(256, dtype="uint8").reshape(1, 16, 16), **profile
        )
    patterns = ["a/{id}.tif", "b/{id}.tif"]
    fields = dict(zip("ab", patterns, strict=True))
    try:
        with chaski.load(tmp_path, batch_size=1, fields=fields) as loader:
            next(iter(loader))
        seen = True
    except chaski.MisplacedError:
        seen = False
    assert seen == same
    if same and moved == 0:
        stacked = {"x": chaski.Field(patterns=patterns, dtype="native")}
        with chaski.load(tmp_path, batch_size=1, fields=stacked) as loader:
            x = np.asarray(next(iter(loader))["x"])[0]
        assert np.array_equal(x[0], x[1])
