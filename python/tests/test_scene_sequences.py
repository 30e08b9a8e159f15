"""Windows on the ground with a sequence of scenes, compared with what rasterio reads of each."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import chaski

pa = pytest.importorskip("pyarrow", reason="needs pyarrow to write tables")
pq = pytest.importorskip("pyarrow.parquet")
rasterio = pytest.importorskip("rasterio", reason="needs rasterio to write and to judge")
import rasters  # noqa: E402
from conftest import nonempty  # noqa: E402
from rasterio.windows import from_bounds  # noqa: E402

pytestmark = pytest.mark.usefixtures("one_engine")


X, Y, SIDE = 5e5, 4.6e6, 64  # the corner of the first scene, and the pixels of a side
# Offset in pixels across and down, time, and clouds. The second and third are tiles of one pass, 32
# pixels of which overlap.
SCENES = [
    (0, 0, "2024-05-01T10:50:00", 30.0),
    (0, 0, "2024-05-11T10:50:00", 20.0),
    (32, 0, "2024-05-11T10:50:14", 10.0),
    (0, 16, "2024-04-01T23:59:59", 50.0),
    (8, 8, "2024-04-02T00:00:00", None),
]


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("scenes")
    rng = np.random.default_rng(5)
    lines = ["image,datetime,cloud"]
    for i, (x, y, time, cloud) in enumerate(SCENES):
        image = rng.integers(1, 60000, (2, SIDE, SIDE), dtype=np.uint16)
        image[:, :, i * 5] = 0  # nodata
        transform = rasterio.transform.from_origin(X + 10 * x, Y - 10 * y, 10, 10)
        profile = dict(dtype="uint16", nodata=0, crs="EPSG:32630")
        rasters.write(folder / f"{i}.tif", image, transform=transform, **profile)
        lines.append(f"{i}.tif,{time},{'' if cloud is None else cloud}")
    (folder / "t.csv").write_text("\n".join(lines) + "\n")
    return folder / "t.csv"


def rank(rule: str, i: int) -> Any:
    time, cloud = SCENES[i][2:]
    if rule == "first":
        return i
    if rule == "newest":
        return -np.datetime64(time).astype("datetime64[s]").astype(int)
    if rule == "oldest":
        return time
    return (cloud is None, cloud)


def expected(folder: Path, box: Any, pick: str, order: str | None, step: str | None, n: int) -> Any:
    """Returns the scenes of each step of a window, and the pixels of the steps."""
    west, north = box[0], box[3]
    seen = []
    for i in sorted(range(len(SCENES)), key=lambda i: rank(pick, i)):
        with rasterio.open(folder / f"{i}.tif") as d:
            b = d.bounds
            touches = b.left < box[2] and b.right > west
            if touches and b.bottom < north and b.top > box[1]:
                seen.append(i)
    key = (lambda i: SCENES[i][2][:10]) if step else (lambda i: i)
    steps: dict[Any, list[int]] = {}
    for i in seen:
        steps.setdefault(key(i), []).append(i)
    chosen = list(steps.values())[:n]
    if order:
        chosen.sort(key=lambda s: rank(order, s[0]))
    images = []
    for rows in chosen:
        image = np.zeros((2, 16, 16), np.uint16)
        for i in rows:
            with rasterio.open(folder / f"{i}.tif") as d:
                window = from_bounds(*box, transform=d.transform).round_offsets().round_lengths()
                more = d.read(window=window, boundless=True, fill_value=0)
            image = np.where(image == 0, more, image)
        images.append(image)
    return chosen, images


@pytest.mark.parametrize(
    ("pick", "order", "step", "length"),
    [
        ("first", None, None, 6),
        ("newest", None, None, 2),
        ("newest", "oldest", None, 3),
        ("least:cloud", "oldest", "day", 2),
        ("first", "newest", "day:datetime", 5),
    ],
)
def test_sequences(table: Path, pick: str, order: Any, step: Any, length: int) -> None:
    window = chaski.GeoWindow(
        160, 10, per_epoch=30, pick=pick, order=order, step=step, length=length, edge=True
    )
    fields = {
        "image": chaski.Field(dtype="native", validity="ok", fill=0),
        "cloud": chaski.Field(kind="number", dtype="float32"),
        "inside": chaski.Vector(str(table.parent / "all.geojson")),
    }
    square = [[-4, 41], [-2, 41], [-2, 42], [-4, 42], [-4, 41]]
    feature = {"type": "Feature", "properties": {}, "geometry": None}
    feature["geometry"] = {"type": "Polygon", "coordinates": [square]}
    collection = {"type": "FeatureCollection", "features": [feature]}
    (table.parent / "all.geojson").write_text(json.dumps(collection))
    counts = set()
    world = 2 if step == "day" else 1
    batches: list[Any] = []
    for r in range(world):
        with chaski.load(
            table,
            batch_size=4,
            fields=fields,
            window=window,
            pixels=chaski.Pixels(geo=True),
            seed=2,
            rank=r,
            world_size=world,
        ) as loader:
            batches += list(loader)
    for b in batches:
        assert b["image"].shape[1:] == (length, 2, 16, 16) and b["inside"].shape[1:] == (16, 16)
        assert b.axes["image"] == ("n", "t", "b", "y", "x")
        for k in np.flatnonzero(b["valid"]):
            assert b["inside"][k].all()
            chosen, images = expected(
                table.parent, b["geo"]["bounds"][k].tolist(), pick, order, step, length
            )
            n = len(chosen)
            counts.add(n)
            assert b["steps"][k].tolist() == [1] * n + [0] * (length - n)
            np.testing.assert_array_equal(b["image"][k, :n], images)
            np.testing.assert_array_equal(b["ok"][k, :n], np.array(images) != 0)
            assert not b["ok"][k, n:].any()
            times = [SCENES[s[0]][2] for s in chosen] + ["NaT"] * (length - n)
            np.testing.assert_array_equal(b["geo"]["time"][k], np.array(times, "datetime64[us]"))
            clouds = [np.nan if (c := SCENES[s[0]][3]) is None else c for s in chosen]
            np.testing.assert_array_equal(b["cloud"][k, :n], np.float32(clouds))
    assert len(counts) > 1 and max(counts) <= length


def test_scenes_side_by_side(tmp_path: Path) -> None:
    """A scene that shares a side with a window has no pixel of it, and is no step."""
    lines = ["image,datetime"]
    for i, (x, y) in enumerate([(0, 0), (640, 0), (0, 640), (640, 640)]):
        profile = dict(crs="EPSG:32630")
        transform = rasterio.transform.from_origin(X + x, Y - y, 10, 10)
        rasters.write(
            tmp_path / f"{i}.tif",
            np.full((1, 64, 64), i + 1, np.uint16),
            transform=transform,
            **profile,
        )
        lines.append(f"{i}.tif,2024-05-0{i + 1}")
    (tmp_path / "t.csv").write_text("\n".join(lines) + "\n")
    fields = {"image": chaski.Field(column="image", dtype="native")}
    window = chaski.GeoWindow(160, 10, stride_m=160, length=2, pick="newest")
    seen = 0
    pixels = chaski.Pixels(geo=True)
    with chaski.load(
        tmp_path / "t.csv", fields=fields, batch_size=8, window=window, pixels=pixels
    ) as loader:
        for b in loader:
            for k in np.flatnonzero(b["valid"]):
                x, y = (b["geo"]["bounds"][k][[0, 3]] - (X, Y)) / (640, -640)
                scene = int(x) + 2 * int(y)
                assert b["steps"][k].tolist() == [1, 0]
                assert np.all(b["image"][k, 0] == scene + 1)
                assert b["geo"]["time"][k, 0] == np.datetime64(f"2024-05-0{scene + 1}")
                seen += 1
    assert seen == 64


def test_scenes_in_the_order_of_time_and_numbers(tmp_path: Path) -> None:
    """Timestamps of other zones and forms are times, and NaN is no number."""
    times = [
        "2024-05-02T00:30:00+02:00",  # the day before in UTC
        "2024-05-01T23:00:00Z",
        "2024-05-01T23:00:00.5Z",
        "2024-05-01",
        "2024-05-01T20:00:00-05:00",  # the day after
    ]
    oldest = [3, 0, 1, 2, 4]
    cloud = [float("nan"), 3.0, None, 1.0, 2.0]
    files = []
    for i in range(len(times)):
        transform = rasterio.transform.from_origin(X, Y, 10, 10)
        profile = dict(crs="EPSG:32630")
        rasters.write(
            tmp_path / f"{i}.tif",
            np.full((1, SIDE, SIDE), i, np.uint16),
            transform=transform,
            **profile,
        )
        files.append(f"{i}.tif")
    columns = {"image": files, "datetime": times, "cloud": pa.array(cloud)}
    pq.write_table(pa.table(columns), tmp_path / "t.parquet")
    fields = {"image": chaski.Field(column="image", dtype="native")}
    for pick, want in (
        ("oldest", oldest),
        ("newest", oldest[::-1]),
        ("least:cloud", [3, 4, 1, 0, 2]),
        ("most:cloud", [1, 4, 3, 0, 2]),
    ):
        for options in ({"pick": pick}, {"order": pick}):
            window = chaski.GeoWindow(160, 10, per_epoch=1, length=5, **options)
            table = tmp_path / "t.parquet"
            with chaski.load(table, fields=fields, batch_size=1, window=window) as loader:
                (batch,) = loader
            assert batch["image"][0, :, 0, 0, 0].tolist() == want, options


@pytest.mark.parametrize("rule", ["mean", "median"])
def test_mosaics_leave_out_nan(tmp_path: Path, rule: Any) -> None:
    """NaN of a file that does not name it as nodata."""
    for i, value in enumerate([np.nan, 2, 4]):
        transform = rasterio.transform.from_origin(X, Y, 10, 10)
        profile = dict(crs="EPSG:32630")
        rasters.write(
            tmp_path / f"{i}.tif",
            np.full((1, SIDE, SIDE), value, np.float32),
            transform=transform,
            **profile,
        )
    window = chaski.GeoWindow(160, 10, per_epoch=1, mosaic=rule)
    fields = {"image": chaski.Field(dtype="float32", validity="ok")}
    with chaski.load(tmp_path, fields=fields, batch_size=1, window=window) as loader:
        (batch,) = loader
    assert np.all(batch["image"] == 3) and batch["ok"].all()


def test_resume_plan_and_explain(table: Path, binary: str) -> None:
    window = chaski.GeoWindow(160, 10, per_epoch=24, length=3, pick="newest", order="oldest")
    fields = {"image": chaski.Field(dtype="native")}
    arguments: Any = dict(batch_size=4, fields=fields, window=window, seed=2)
    with chaski.load(table, **arguments) as loader:
        whole = [b["image"].copy() for b in loader]
    with chaski.load(table, **arguments) as loader:
        for _ in range(2):
            next(iter(loader))
            break
        state = loader.state_dict()
    with chaski.load(table, **arguments) as loader:
        loader.load_state_dict(state)
        for a, b in nonempty(zip(whole[1:], loader, strict=True)):
            np.testing.assert_array_equal(a, b["image"])
    sampler = {"per_epoch": 24, "length": 3, "pick": "newest", "order": "oldest"}
    command = ["--geo-window", "160/10", "--sampler", json.dumps(sampler)]
    command += ["--seed", "2", "--batch", "4", "--json", str(table)]
    plan = json.loads(subprocess.check_output([binary, "plan", *command]))
    explained = json.loads(subprocess.check_output([binary, "explain", *command]))
    for row in nonempty(explained["rows"]):
        steps = [(a["step"], a["row"]) for a in row["assets"] if a["row"] >= 0]
        assert [s for s, _ in steps] == list(range(len(steps)))
        times = [SCENES[r][2] for _, r in steps]
        assert times == sorted(times)
    assert plan


def test_what_is_refused(table: Path) -> None:
    def load(**options: Any) -> None:
        window = chaski.GeoWindow(160, 10, per_epoch=4, **options)
        fields = {"image": chaski.Field(dtype="native")}
        chaski.load(table, batch_size=2, fields=fields, window=window).close()

    for options, message in [
        ({"order": "oldest"}, "order and step are for sequences"),
        ({"length": -1}, "length is -1: it must be from 1"),
        ({"length": 2, "order": "best"}, 'order, as pick: pick is "best"'),
        ({"length": 2, "step": "orbit"}, 'step is "orbit"'),
        ({"length": 2, "step": "day:"}, 'step is "day:"'),
        ({"bounds": (0, 0, 1, 4.6e6)}, "bounds is .*; say bounds_crs"),
        ({"length": 2, "step": "day:cloud"}, "holds no times"),
    ]:
        with pytest.raises(chaski.errors.Error, match=message):
            load(**options)
