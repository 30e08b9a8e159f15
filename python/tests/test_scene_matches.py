"""Sequences over several datasets of scenes, compared with what rasterio reads of each."""

from __future__ import annotations

import itertools
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
from rasterio.windows import from_bounds  # noqa: E402

pytestmark = pytest.mark.usefixtures("one_engine")


X, Y, SIDE = 5e5, 4.6e6, 64  # the corner of the first scene, and the pixels of a side
# Offset in pixels across and down, and time. "" is none. Two optical scenes are tiles of one pass,
# and so are two of radar.
SCENES = {
    "optical": [
        (0, 0, "2024-05-01T10:50:00"),
        (0, 0, "2024-05-11T10:50:00"),
        (32, 0, "2024-05-11T10:50:14"),
        (8, 8, "2024-05-21T10:50:00"),
        (0, 0, ""),
    ],
    "radar": [
        (0, 0, "2024-05-20T05:10:00"),
        (0, 0, "2024-05-03T05:10:00"),
        (40, 0, "2024-05-03T05:10:14"),
        (0, 32, "2024-05-11T18:00:00"),
        (0, 0, "2024-04-29T16:30:00"),  # as far from the first optical scene as that of 3 May
        (16, 0, ""),
    ],
    "crops": [(0, 0, ""), (48, 0, "")],
}
STEPS = "optical"  # whose scenes are the steps


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("scenes")
    rng = np.random.default_rng(7)
    for kind, scenes in SCENES.items():
        lines = ["image,datetime"] if kind != "crops" else ["image"]
        for i, (x, y, time) in enumerate(scenes):
            image = rng.integers(1, 60000, (1, SIDE, SIDE), dtype=np.uint16)
            image[:, :, i * 5] = 0  # nodata
            transform = rasterio.transform.from_origin(X + 10 * x, Y - 10 * y, 10, 10)
            profile: dict[str, Any] = dict(count=1, dtype="uint16", nodata=0, crs="EPSG:32630")
            profile |= dict(width=SIDE, height=SIDE)
            rasters.write(out / f"{kind}{i}.tif", image, transform=transform, **profile)
            lines.append(f"{kind}{i}.tif" + ("" if kind == "crops" else f",{time}"))
        (out / f"{kind}.csv").write_text("\n".join(lines) + "\n")
    return out


def parsed(time: str) -> Any:
    return np.datetime64(time, "us") if time else None


def covering(folder: Path, kind: str, box: Any, newest: bool) -> list[int]:
    """Returns the scenes that have a pixel of a window, in the order of pick."""

    def order(i: int) -> Any:
        t = parsed(SCENES[kind][i][2]) if newest else None
        return (newest and t is None, -t.astype(int) if t is not None else 0)

    seen = []
    for i in sorted(range(len(SCENES[kind])), key=order):
        with rasterio.open(folder / f"{kind}{i}.tif") as d:
            b = d.bounds
        if b.left < box[2] and b.right > box[0] and b.bottom < box[3] and b.top > box[1]:
            seen.append(i)
    return seen


def mosaic(folder: Path, kind: str, scenes: list[int], box: Any) -> Any:
    image = np.zeros((1, 16, 16), np.uint16)
    for i in scenes:
        with rasterio.open(folder / f"{kind}{i}.tif") as d:
            window = from_bounds(*box, transform=d.transform).round_offsets().round_lengths()
            more = d.read(window=window, boundless=True, fill_value=0)
        image = np.where(image == 0, more, image)
    return image


def day(kind: str, i: int, step: str | None) -> Any:
    """Returns what scenes of one step share."""
    return SCENES[kind][i][2][:10] or (kind, i) if step else (kind, i)


def matched(seen: list[int], first: int, match: str, step: str | None, days: float) -> list[int]:
    """Returns the radar scenes of a step that begins with an optical one."""
    t = parsed(SCENES[STEPS][first][2])
    if match == "step":
        return [i for i in seen if day("radar", i, step) == day(STEPS, first, step)]
    best: Any = None
    for i in seen:
        at = parsed(SCENES["radar"][i][2])
        if t is None or at is None:
            continue
        off = abs((at - t).astype(int))
        if off <= days * 86400e6 and (best is None or off < best[0]):
            best = (off, i)
    if best is None:
        return []
    return [i for i in seen if day("radar", i, step) == day("radar", best[1], step)]


def joined(folder: Path, match: str, days: float | None = None, cover: str = "all") -> Any:
    def scenes(kind: str, **more: Any) -> chaski.Scenes:
        field = chaski.Field(column="image", dtype="native", fill=0, validity=f"{kind}_ok", **more)
        return chaski.Scenes(folder / f"{kind}.csv", {kind: field})

    a, b, c = scenes("optical"), scenes("radar", match=match, match_days=days), scenes("crops")
    return a & b & c if cover == "all" else a | b | c


@pytest.mark.parametrize(
    ("match", "step", "days", "pick", "cover"),
    [
        ("nearest", None, None, "first", "all"),
        ("nearest", "day", None, "first", "any"),
        ("nearest", "day", 2, "newest", "all"),
        ("step", "day", None, "newest", "any"),
    ],
)
def test_matches(folder: Path, match: str, step: Any, days: Any, pick: Any, cover: str) -> None:
    length, missing, found, still, seeds = 4, 0, 0, 0, []
    window = chaski.GeoWindow(
        160, 10, per_epoch=24, length=length, pick=pick, step=step, edge=True, order="oldest"
    )
    for rank in range(2):
        with chaski.load(
            joined(folder, match, days, cover),
            batch_size=8,
            window=window,
            pixels=chaski.Pixels(geo=True),
            seed=3,
            rank=rank,
            world_size=2,
        ) as loader:
            for b in loader:
                assert b["optical"].shape[1:] == b["radar"].shape[1:] == (length, 1, 16, 16)
                assert b["crops"].shape[1:] == (1, 16, 16)
                assert b.axes["crops"] == ("n", "b", "y", "x")
                for k in np.flatnonzero(b["valid"]):
                    box = b["geo"]["bounds"][k].tolist()
                    seeds.append(tuple(box))
                    crops = covering(folder, "crops", box, False)
                    want = mosaic(folder, "crops", crops, box)
                    np.testing.assert_array_equal(b["crops"][k], want)
                    np.testing.assert_array_equal(b["crops_ok"][k], want != 0)
                    steps: dict[Any, list[int]] = {}
                    for i in covering(folder, STEPS, box, pick == "newest"):
                        steps.setdefault(day(STEPS, i, step), []).append(i)
                    chosen = sorted(
                        list(steps.values())[:length], key=lambda s: SCENES[STEPS][s[0]][2] or "9"
                    )
                    n = len(chosen)
                    assert b["steps"][k].tolist() == [1] * n + [0] * (length - n)
                    seen = covering(folder, "radar", box, pick == "newest")
                    for j in range(length):
                        images = chosen[j] if j < n else []
                        radar = matched(seen, images[0], match, step, days or 1e6) if images else []
                        for kind, scenes in (("optical", images), ("radar", radar)):
                            want = mosaic(folder, kind, scenes, box)
                            np.testing.assert_array_equal(b[kind][k, j], want)
                            np.testing.assert_array_equal(b[f"{kind}_ok"][k, j], want != 0)
                        found += bool(radar)
                        missing += bool(images) and not radar
                        still += bool(crops)
    assert len(seeds) == len(set(seeds)) == 24 and found > 5 and still > 10
    assert missing or days is None


def test_one_field_of_two_datasets(tmp_path: Path) -> None:
    """Scenes of both are steps of one sequence, in the order of pick over both."""
    days = {"a": [3, 9, 20], "b": [1, 5, 21]}
    for kind, list_ in days.items():
        lines = ["image,datetime"]
        for d in list_:
            transform = rasterio.transform.from_origin(X, Y, 10, 10)
            profile: dict[str, Any] = dict(count=1, dtype="uint8", crs="EPSG:32630")
            profile |= dict(width=SIDE, height=SIDE, transform=transform)
            rasters.write(tmp_path / f"{d}.tif", np.full((1, SIDE, SIDE), d, np.uint8), **profile)
            lines.append(f"{d}.tif,2024-05-{d:02}")
        (tmp_path / f"{kind}.csv").write_text("\n".join(lines) + "\n")
    field = {"image": chaski.Field(column="image", dtype="native")}
    both = chaski.Scenes(tmp_path / "a.csv", field) | chaski.Scenes(tmp_path / "b.csv", field)
    for options, want in (
        ({"length": 6, "pick": "oldest"}, [1, 3, 5, 9, 20, 21]),
        ({"length": 3, "pick": "newest"}, [21, 20, 9]),
        ({"length": 4, "order": "oldest"}, [1, 3, 9, 20]),  # as rows stand: those of a first
        ({"length": 4, "pick": "newest", "order": "oldest"}, [5, 9, 20, 21]),
    ):
        window = chaski.GeoWindow(160, 10, per_epoch=2, **options)  # type: ignore[arg-type]
        with chaski.load(both, batch_size=2, window=window, pixels=chaski.Pixels(geo=True)) as x:
            for b in nonempty(x):
                assert b["image"][:, :, 0, 3, 3].tolist() == [want] * 2, options
                times = [[f"2024-05-{d:02}" for d in want]] * 2
                np.testing.assert_array_equal(b["geo"]["time"], np.array(times, "datetime64[us]"))


def test_resume_and_explain(folder: Path, binary: str, tmp_path: Path) -> None:
    window = chaski.GeoWindow(160, 10, per_epoch=24, length=3, step="day", pick="newest")
    arguments: Any = dict(batch_size=4, window=window, seed=2)
    scenes = joined(folder, "nearest")
    with chaski.load(scenes, **arguments) as loader:
        whole = [(b["radar"].copy(), b["crops"].copy()) for b in loader]
        spec = loader.spec
    with chaski.load(scenes, **arguments) as loader:
        for _ in itertools.islice(loader, 2):
            pass
        state = loader.state_dict()
    with chaski.load(scenes, **arguments) as loader:
        loader.load_state_dict(state)
        for a, b in zip(whole[2:], loader, strict=True):
            np.testing.assert_array_equal(a[0], b["radar"])
            np.testing.assert_array_equal(a[1], b["crops"])
    with chaski.load(joined(folder, "nearest", 1), **arguments) as loader:
        with pytest.raises(chaski.StateError, match="match_days"):
            loader.load_state_dict(state)
    (tmp_path / "spec.json").write_text(json.dumps(spec))
    command = [binary, "explain", "--json", str(tmp_path / "spec.json")]
    explained = json.loads(subprocess.check_output(command))
    for row in nonempty(explained["rows"]):
        of = {k: [a for a in row["assets"] if a["field"] == k] for k in SCENES}
        for kind, assets in of.items():
            assert all(Path(a["uri"]).name.startswith(kind) for a in assets if a.get("uri")), kind
        assert {a.get("step", 0) for a in of["crops"]} == {0}
        assert {a.get("step", 0) for a in of["radar"]} == {0, 1, 2}
    command = [binary, "plan", "--json", str(tmp_path / "spec.json")]
    assert json.loads(subprocess.check_output(command))["total"]["opens"] >= 24 * 3


def test_a_bad_file_of_a_still_field(folder: Path, tmp_path: Path) -> None:
    """A damaged label makes the row bad; with on_bad="fill" the sequence stays."""
    (tmp_path / "x.csv").write_text("image\nx.tif\n")
    with rasterio.open(folder / "crops0.tif") as d:
        profile = d.profile | {"compress": "deflate", "transform": d.transform}
        profile |= {"tiled": True, "blockxsize": 16, "blockysize": 16}
        image = d.read()
    rasters.write(tmp_path / "x.tif", image, **profile)
    data = (tmp_path / "x.tif").read_bytes()
    third = len(data) // 3
    (tmp_path / "x.tif").write_bytes(data[:third] + b"\xff" * third + data[2 * third :])

    def scenes(path: Path, name: str) -> chaski.Scenes:
        field = chaski.Field(column="image", dtype="native", validity=f"{name}_ok")
        return chaski.Scenes(path, {name: field})

    both = scenes(folder / "optical.csv", "optical") & scenes(tmp_path / "x.csv", "crops")
    window = chaski.GeoWindow(160, 10, per_epoch=8, length=2)
    with chaski.load(both, batch_size=8, window=window, on_bad="fill") as loader:
        for b in nonempty(loader):
            bad = {x.row for x in b.bad}
            assert bad and b["valid"].all() and b["steps"].any(1).all()
            assert b["there"]["crops"].tolist() == [int(k not in bad) for k in range(8)]
            for k in range(8):
                assert (k in bad) == (not b["crops_ok"][k].any())
                assert (b["there.optical"][k] == b["steps"][k]).all() and b["optical_ok"][k].any()


def test_what_is_refused(folder: Path) -> None:
    def scenes(kind: str, **options: Any) -> chaski.Scenes:
        return chaski.Scenes(
            folder / f"{kind}.csv", {kind: chaski.Field(column="image", dtype="native", **options)}
        )

    a, length = scenes("optical"), {"length": 3}
    days = {"step": "day", **length}
    for source, options, message in [
        (a & scenes("radar", match="step"), length, "no step is given"),
        (a & scenes("radar", match="nearest"), {}, "it is for sequences of scenes"),
        (scenes("optical", match="nearest"), length, "other datasets than that of the steps"),
        (a & scenes("radar", match="near"), length, 'match is "near": it must be "step" or "near'),
        (a & scenes("radar", match_days=2), length, "match_days is 2: it is for match"),
        (
            a & scenes("radar", match="nearest", match_days=-2),
            length,
            "match_days is -2: it must be",
        ),
        (
            a & scenes("radar", match="step", match_days=2),
            days,
            "match_days is 2: it is for match",
        ),
        (a & scenes("crops", match="nearest"), length, "no scene of its dataset has a time"),
        (scenes("crops") & scenes("radar", match="nearest"), length, "of the dataset of the steps"),
        (a & scenes("crops", match="step"), days, 'of its dataset has a value of the step "day"'),
        (scenes("crops") & scenes("radar", match="step"), days, "of the dataset of the steps has"),
    ]:
        with pytest.raises(chaski.errors.Error, match=message):
            window = chaski.GeoWindow(160, 10, per_epoch=4, **options)
            chaski.load(source, batch_size=2, window=window).close()
