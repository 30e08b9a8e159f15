"""Windows over two datasets of scenes: where both lie, and where either lies."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import rasters
from conftest import nonempty

import chaski

pytestmark = pytest.mark.usefixtures("one_engine")

rasterio = pytest.importorskip("rasterio", reason="needs rasterio to write and to judge")

X, Y = 5e5, 4.6e6
# Left, top, width and height in pixels of 10 m from (X, Y), and the resolution in metres.
IMAGES = {"a": (0, 0, 64, 64, 10), "b": (64, 0, 64, 64, 10)}
LABELS = {"p": (40, 16, 60, 60, 20), "q": (300, 0, 40, 40, 20)}  # q is nowhere near an image
SIDE = 16


def value(x: Any, y: Any, of: str) -> Any:
    """Returns the pixel at a place, from the coordinates of its corner in units of 10 m."""
    return (x * 7 + y * 13 + (1 if of == "image" else 5)) % 200 + 1


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    out = {}
    for kind, scenes in (("image", IMAGES), ("label", LABELS)):
        out[kind] = tmp_path_factory.mktemp(kind)
        for name, (left, top, width, height, size) in scenes.items():
            f = size // 10
            x, y = np.meshgrid(left + np.arange(0, width, f), top + np.arange(0, height, f))
            profile: dict[str, Any] = dict(count=1, dtype="uint8", crs="EPSG:32630")
            profile |= dict(width=width // f, height=height // f)
            transform = rasterio.transform.from_origin(X + left * 10, Y - top * 10, size, size)
            path = out[kind] / f"{name}.tif"
            rasters.write(
                path, value(x, y, kind).astype(np.uint8)[None], transform=transform, **profile
            )
    return out


def inside(scenes: Any, x: Any, y: Any) -> Any:
    """Reports which places lie in a scene."""
    return np.logical_or.reduce(
        [(x >= c) & (x < c + w) & (y >= r) & (y < r + h) for c, r, w, h, _ in scenes.values()]
    )


def check(b: Any, k: int) -> tuple[bool, bool]:
    """Compares a row with what lies there; returns whether images and labels cover it all."""
    t = b["geo"]["transform"][k]
    x0, y0 = round((t[0] - X) / 10), round((Y - t[3]) / 10)
    x, y = np.meshgrid(x0 + np.arange(SIDE), y0 + np.arange(SIDE))
    there = [inside(s, x, y) for s in (IMAGES, LABELS)]
    want = np.where(there[0], value(x, y, "image"), 0)
    np.testing.assert_array_equal(b["image"][k, 0], want)
    np.testing.assert_array_equal(b["image_ok"][k, 0], there[0])
    left, top = 40, 16  # the grid of 20 m of the label p; q begins at an even place, too
    want = np.where(there[1], value(x - (x - left) % 2, y - (y - top) % 2, "label"), 255)
    np.testing.assert_array_equal(b["label"][k, 0], want)
    np.testing.assert_array_equal(b["label_ok"][k, 0], there[1])
    return bool(there[0].all()), bool(there[1].all())


def joined(folders: dict[str, Path], cover: str) -> chaski.Scenes:
    a = chaski.Scenes(
        folders["image"], {"image": chaski.Field(dtype="native", fill=0, validity="image_ok")}
    )
    b = chaski.Scenes(
        folders["label"], {"label": chaski.Field(dtype="native", fill=255, validity="label_ok")}
    )
    return a & b if cover == "all" else a | b


@pytest.mark.parametrize("cover", ["all", "any"])
@pytest.mark.parametrize("window", ["random", "grid"])
def test_where_both_or_either_lie(folders: dict[str, Path], cover: str, window: str) -> None:
    options: dict[str, Any] = {"per_epoch": 60} if window == "random" else {"stride_m": 160}
    seen = []
    with chaski.load(
        joined(folders, cover),
        batch_size=8,
        window=chaski.GeoWindow(SIDE * 10, 10, **options),
        pixels=chaski.Pixels(geo=True),
        seed=4,
    ) as loader:
        for b in loader:
            seen += [check(b, k) for k in np.flatnonzero(b["valid"])]
        if window == "random":
            assert len(seen) == 60
    if cover == "all" and window == "random":
        assert all(image and label for image, label in seen)
    elif window == "random":
        assert all(image or label for image, label in seen) or cover == "any"
        assert {(True, False), (False, True)} <= set(seen)
    # A grid has each window of 160 m that both touch, or either does.
    if window == "grid":
        y, x = np.mgrid[-64:512, -64:512]
        a, b = inside(IMAGES, x, y), inside(LABELS, x, y)
        col, row = (x + int(X / 10)) // SIDE, (y - int(Y / 10)) // SIDE
        cells = [set(zip(col[s].tolist(), row[s].tolist(), strict=True)) for s in (a, b)]
        want = cells[0] & cells[1] if cover == "all" else cells[0] | cells[1]
        assert len(seen) == len(want)


def test_one_scene_of_a_window_has_its_pixels(tmp_path: Path) -> None:
    """Not the first scene, if that only shares a side with the window: two lie side by side."""
    for k, (name, left, width) in enumerate((("a/x", 16, 64), ("b/p", 16, 32), ("b/q", 48, 32))):
        path = tmp_path / f"{name}.tif"
        path.parent.mkdir(exist_ok=True)
        place = rasterio.transform.from_origin(5e5 + 10 * left, 4.6e6, 10, 10)
        profile: dict[str, Any] = dict(count=1, height=32, width=width, dtype="uint8")
        rasters.write(
            path,
            np.full((1, 32, width), k + 1, np.uint8),
            crs="EPSG:32630",
            transform=place,
            **profile,
        )
    a, b = (
        chaski.Scenes(tmp_path / name, {name: chaski.Field(pattern="{id}.tif", dtype="uint8")})
        for name in "ab"
    )
    window = chaski.GeoWindow(160, 10, stride_m=160, mosaic="none")
    seen = set()
    geo = chaski.Pixels(geo=True)
    with chaski.load(a & b, batch_size=4, window=window, pixels=geo) as loader:
        for batch in nonempty(loader):
            for k in np.flatnonzero(batch["valid"]):
                left = round((batch["geo"]["transform"][k][0] - 5e5) / 10)
                if 16 <= left <= 64:  # others reach past the scenes
                    want = 2 if left < 48 else 3
                    where = round((4.6e6 - batch["geo"]["transform"][k][3]) / 10)
                    rows = slice(max(0, -where), max(0, 32 - where))
                    assert np.all(batch["b"][k][:, rows] == want), left
                    seen.add(left)
    assert {16, 32, 48, 64} <= seen


def test_one_field_of_both(folders: dict[str, Path], tmp_path: Path) -> None:
    """A field of both datasets is filled from the first one, and else from the second."""
    other = tmp_path / "other"
    other.mkdir()
    transform = rasterio.transform.from_origin(X + 32 * 10, Y, 10, 10)
    profile: dict[str, Any] = dict(count=1, dtype="uint8", crs="EPSG:32630", width=160, height=64)
    rasters.write(
        other / "c.tif", np.full((1, 64, 160), 250, np.uint8), transform=transform, **profile
    )
    field = {"image": chaski.Field(dtype="native", validity="ok")}
    both = chaski.Scenes(folders["image"], field) | chaski.Scenes(other, field)
    with chaski.load(
        both,
        batch_size=8,
        window=chaski.GeoWindow(SIDE * 10, 10, per_epoch=40),
        pixels=chaski.Pixels(geo=True),
    ) as loader:
        second = 0
        for b in loader:
            for k in range(8):
                t = b["geo"]["transform"][k]
                x0, y0 = round((t[0] - X) / 10), round((Y - t[3]) / 10)
                x, y = np.meshgrid(x0 + np.arange(SIDE), y0 + np.arange(SIDE))
                first = inside(IMAGES, x, y)
                want = np.where(first, value(x, y, "image"), 250)
                np.testing.assert_array_equal(b["image"][k, 0], want)
                assert b["ok"][k].all()
                second += not first.all()
        assert second > 5


def test_resume_and_plan(folders: dict[str, Path], binary: str, tmp_path: Path) -> None:
    window = chaski.GeoWindow(SIDE * 10, 10, per_epoch=24)
    arguments: Any = dict(batch_size=4, window=window, seed=2)
    with chaski.load(joined(folders, "all"), **arguments) as loader:
        whole = [b["label"].copy() for b in loader]
        spec = loader.spec
    with chaski.load(joined(folders, "all"), **arguments) as loader:
        next(iter(loader))
        state = loader.state_dict()
    with chaski.load(joined(folders, "all"), **arguments) as loader:
        loader.load_state_dict(state)
        for a, b in zip(whole[1:], loader, strict=True):
            np.testing.assert_array_equal(a, b["label"])
    with chaski.load(joined(folders, "any"), **arguments) as loader:
        with pytest.raises(chaski.StateError):
            loader.load_state_dict(state)
    (tmp_path / "spec.json").write_text(json.dumps(spec))
    command = [binary, "explain", "--json", str(tmp_path / "spec.json")]
    explained = json.loads(subprocess.check_output(command))
    command = [binary, "plan", "--json", str(tmp_path / "spec.json")]
    assert json.loads(subprocess.check_output(command))["total"]["opens"] >= 24 * 2
    for row in nonempty(explained["rows"]):
        for a in row["assets"]:
            assert Path(a["uri"]).parent == folders[a["field"]]
        assert {a["field"] for a in row["assets"]} == {"image", "label"}


def test_statistics_and_bad_samples(folders: dict[str, Path], binary: str, tmp_path: Path) -> None:
    """Each field is measured and checked in the scenes of its own dataset."""
    labels = tmp_path / "labels"
    labels.mkdir()
    for path in folders["label"].glob("*.tif"):
        (labels / path.name).write_bytes(path.read_bytes())
    arguments: Any = dict(batch_size=4, window=chaski.GeoWindow(SIDE * 10, 10, per_epoch=4))
    with chaski.load(joined(folders | {"label": labels}, "any"), **arguments) as loader:
        (tmp_path / "spec.json").write_text(json.dumps(loader.spec))

    def run(*command: str) -> subprocess.CompletedProcess[bytes]:
        arguments = [binary, *command, str(tmp_path / "spec.json")]
        return subprocess.run(arguments, capture_output=True, check=False)

    measured = json.loads(run("stats").stdout)["fields"]
    for kind, folder in (("image", folders["image"]), ("label", labels)):
        pixels = []
        for path in folder.glob("*.tif"):
            with rasterio.open(path) as d:
                pixels.append(d.read().ravel())
        band, all_ = measured[kind]["bands"][0], np.concatenate(pixels).astype(float)
        assert (band["count"], band["min"], band["max"]) == (all_.size, all_.min(), all_.max())
        assert band["mean"] == pytest.approx(all_.mean())
    found = run("verify", "--samples")
    assert (found.returncode, found.stdout) == (0, b"")
    data = (labels / "q.tif").read_bytes()
    (labels / "q.tif").write_bytes(data[:-100])
    found = run("verify", "--samples")
    assert found.returncode == 1 and "q.tif" in json.loads(found.stdout)["uri"]


def test_pairs(folders: dict[str, Path], binary: str, tmp_path: Path) -> None:
    """Rasters of one row are compared; those of several datasets are of no one row."""
    fields: list[dict[str, Any]] = [
        {"name": "image", "pattern": "{id}.tif"},
        {"name": "label", "pattern": "{id}.tif", "scenes": [str(folders["label"])]},
    ]
    spec: dict[str, Any] = {"source": str(folders["image"]), "batch_size": 1, "fields": fields}
    spec["sampler"] = {"kind": "geo_window", "size_m": 160, "resolution": 10}

    def run() -> subprocess.CompletedProcess[str]:
        (tmp_path / "spec.json").write_text(json.dumps(spec))
        command = [binary, "verify", "--pairs", "--json", str(tmp_path / "spec.json")]
        return subprocess.run(command, capture_output=True, text=True)

    assert "pairs need two raster fields of a sample" in run().stderr
    fields.append({"name": "again", "pattern": "{id}.tif"})
    r = run()
    found = json.loads(r.stdout)
    assert r.returncode == 0, r.stderr
    assert (found["samples"], found["pairs"], found["unreadable"]) == (4, 2, 0)


def test_weights(folders: dict[str, Path], binary: str, tmp_path: Path) -> None:
    """Weights count the pixels of each row of one dataset."""
    arguments: Any = dict(batch_size=4, window=chaski.GeoWindow(SIDE * 10, 10, per_epoch=4))
    with chaski.load(joined(folders, "any"), **arguments) as loader:
        (tmp_path / "spec.json").write_text(json.dumps(loader.spec))
    command = [
        binary,
        "stats",
        "--sampling",
        "-o",
        str(tmp_path / "w"),
        str(tmp_path / "spec.json"),
    ]
    r = subprocess.run(command, capture_output=True, text=True)
    assert r.returncode == 2 and "fields have scenes of several datasets" in r.stderr


def test_rules_for_the_first_dataset(folders: dict[str, Path], tmp_path: Path) -> None:
    """Conditions are for the first dataset; columns of the others are null in its rows."""
    rows = "\n".join(f"{folders['image'] / n}.tif,{i}" for i, n in enumerate("ab"))
    (tmp_path / "t.csv").write_text(f"path,cloud\n{rows}\n")
    a = chaski.Scenes(tmp_path / "t.csv", {"image": chaski.Field(column="path", dtype="native")})
    b = chaski.Scenes(folders["label"], {"label": chaski.Field(dtype="native")})
    with chaski.load(
        a & b,
        batch_size=8,
        window=chaski.GeoWindow(SIDE * 10, 10, per_epoch=40, pick="least:cloud"),
        rows=chaski.Rows(where=[("cloud", "==", 0)]),
        pixels=chaski.Pixels(geo=True),
    ) as loader:
        for batch in nonempty(loader):
            x = (batch["geo"]["transform"][:, 0] - X) / 10
            assert (x >= 40).all() and (x + SIDE <= 64).all()  # only scene a is left


def test_what_is_refused(folders: dict[str, Path]) -> None:
    field = {"image": chaski.Field(dtype="native")}
    a, b = chaski.Scenes(folders["image"], field), chaski.Scenes(folders["label"], field)
    c = chaski.Scenes(folders["label"], {"c": chaski.Field(dtype="native")})
    window = chaski.GeoWindow(160, 10, per_epoch=4)
    for source, options, message in [
        (a & b, {"window": window}, "two datasets of scenes have a field 'image'"),
        (a & c, {"window": chaski.RandomWindow(16)}, "Scenes need a chaski.GeoWindow"),
        (a & c, {"window": window, "fields": field}, "fields are in the Scenes"),
        (chaski.Mixture({"both": a & c}), {}, "a Mixture does not take Scenes"),
        (folders["image"], {"fields": {"c": chaski.Field(scenes=["x"])}}, "scenes is for the samp"),
    ]:
        with pytest.raises(chaski.SpecError, match=message):
            chaski.load(source, batch_size=2, **options).close()
    with pytest.raises(chaski.SpecError, match="by & or by |"):
        (a & c) | b
    far = chaski.Scenes(folders["label"] / "q.tif", {"c": chaski.Field(dtype="native")})
    with pytest.raises(chaski.errors.NotFoundError):
        chaski.load(a & far, batch_size=2, window=window).close()
    assert " & " in repr(a & c)
