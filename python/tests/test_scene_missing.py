"""Windows on the ground over scenes that lack a modality, compared with the arrays written."""

from __future__ import annotations

import json
import struct
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import rasters
from conftest import nonempty

import chaski

rasterio = pytest.importorskip("rasterio", reason="needs rasterio to write scenes")

X, Y, SIDE, WINDOW = 5e5, 4.6e6, 48, 16
# Offset in pixels across and down from (X, Y); d is an island without radar.
SCENES = {"a": (0, 0), "b": (32, 0), "c": (0, 32), "d": (200, 0)}
HAS = {"s2": "abcd", "s1": "bc", "lc": "ad"}
BANDS = {"s2": 2, "s1": 1, "lc": 1}
FILL = {"s2": 0, "s1": -1, "lc": 255}
DAYS = {"a": 1, "b": 5, "c": 3, "d": 9}

Array = npt.NDArray[Any]


def values(kind: str, scene: str, mosaic: bool = True) -> Array:
    seed = [ord(kind[1]), ord(scene), mosaic]
    x = np.random.default_rng(seed).integers(1, 200, (BANDS[kind], SIDE, SIDE))
    return x.astype({"s2": "uint16", "s1": "float32", "lc": "uint8"}[kind])


def write(path: Path, image: Array, left: float, top: float) -> None:
    path.parent.mkdir(exist_ok=True)
    place = rasterio.transform.from_origin(X + 10 * left, Y - 10 * top, 10, 10)
    profile: dict[str, Any] = dict(count=len(image), height=SIDE, width=SIDE, dtype=image.dtype)
    rasters.write(path, image, crs="EPSG:32630", transform=place, **profile)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root: Path = tmp_path_factory.mktemp("lacking")
    items = []
    rows = ["scene,day,s2,s1,lc"]
    for scene, (left, top) in SCENES.items():
        names = {kind: f"{kind}/{scene}.tif" for kind in HAS if scene in HAS[kind]}
        for kind, name in names.items():
            write(root / name, values(kind, scene), left, top)
        rows.append(f"{scene},{DAYS[scene]}," + ",".join(names.get(k, "") for k in HAS))
        item: dict[str, Any] = {"type": "Feature", "stac_version": "1.1.0", "id": scene}
        item |= {"geometry": None, "links": [], "bbox": [-3.0, 41.5, -2.9, 41.6]}
        item["properties"] = {"datetime": f"2024-05-0{DAYS[scene]}T10:00:00Z"}
        item["assets"] = {k: {"href": name} for k, name in names.items()}
        items.append(item)
    (root / "rows.csv").write_text("\n".join(rows) + "\n")
    (root / "items.json").write_text(json.dumps({"type": "FeatureCollection", "features": items}))
    return root


def fields(way: str, only: str = "s2 s1 lc", **options: Any) -> dict[str, chaski.Field]:
    out = {}
    for kind in only.split():
        where = {way: f"{kind}/{{id}}.tif" if way == "pattern" else kind}
        fill = {} if kind == "s2" else {"missing": "fill"}
        out[kind] = chaski.Field(
            **where, **fill, fill=FILL[kind], validity=f"{kind}_ok", dtype="native", **options
        )
    return out


def columns(root: Path) -> dict[str, list[Any]]:
    """Returns the columns of a table of scenes in memory."""
    found: dict[str, list[Any]] = {"scene": list(SCENES)}
    for kind, has in HAS.items():
        found[kind] = [str(root / f"{kind}/{s}.tif") if s in has else None for s in SCENES]
    return found


def write_geoparquet(root: Path, to: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    boxes = []
    for x, y in SCENES.values():
        west, north = X + 10 * x, Y - 10 * y
        east, south = west + 10 * SIDE, north - 10 * SIDE
        ring = (west, south, east, south, east, north, west, north, west, south)
        boxes.append(struct.pack("<BIII10d", 1, 3, 1, 5, *ring))
    geometry = {"encoding": "WKB", "geometry_types": ["Polygon"], "crs": None}
    geo = {"version": "1.0.0", "primary_column": "geometry", "columns": {"geometry": geometry}}
    table = pa.table({**columns(root), "geometry": pa.array(boxes, pa.binary())})
    pq.write_table(table.replace_schema_metadata({"geo": json.dumps(geo)}), to)


WAYS = ["patterns", "table", "frame", "dicts", "geoparquet", "items", "scenes"]


def source(root: Path, way: str, tmp: Path) -> tuple[Any, str]:
    """Returns what `load` takes, and how fields say where they are."""
    if way in ("patterns", "scenes"):
        return root, "pattern"
    if way == "frame":
        return pytest.importorskip("pandas").DataFrame(columns(root)), "column"
    if way == "dicts":  # pandas makes NaN of None
        frame = pytest.importorskip("pandas").DataFrame(columns(root))
        return frame.to_dict("records"), "column"
    if way == "geoparquet":
        write_geoparquet(root, tmp / "scenes.parquet")
        return tmp / "scenes.parquet", "column"
    return root / {"table": "rows.csv", "items": "items.json"}[way], "column"


def wanted(
    kind: str, left: int, top: int, order: str = "abcd", side: int = WINDOW
) -> tuple[Array, Array]:
    """Returns a field's window, and where a scene that has the field covers it."""
    full = np.full((BANDS[kind], side, side), FILL[kind], values(kind, "a").dtype)
    seen = np.zeros((side, side), bool)
    for scene in order:
        if scene not in HAS[kind]:
            continue
        image, (x, y) = values(kind, scene), SCENES[scene]
        rows, cols = np.mgrid[top - y : top - y + side, left - x : left - x + side]
        new = (rows >= 0) & (rows < SIDE) & (cols >= 0) & (cols < SIDE) & ~seen
        full[:, new] = image[:, rows[new], cols[new]]
        seen |= new
    return full, seen


def corner(b: Any, *k: int) -> tuple[int, int]:
    t = b["geo"]["transform"][k]
    return round((t[0] - X) / 10), round((Y - t[3]) / 10)


def check(b: Any, kinds: str = "s2 s1 lc") -> dict[str, list[bool]]:
    """Compares a batch; returns for each field in which rows all, or none, of a window is there."""
    found: dict[str, list[bool]] = {}
    for k in np.flatnonzero(b["valid"]):
        left, top = corner(b, k)
        for kind in kinds.split():
            want, seen = wanted(kind, left, top)
            np.testing.assert_array_equal(b[kind][k], want)
            np.testing.assert_array_equal(b[f"{kind}_ok"][k], np.broadcast_to(seen, want.shape))
            # A scene that shares a side with a window has none of its pixels.
            assert b[f"there.{kind}"][k] == seen.any()
            found.setdefault(kind, []).append(bool(seen.any()))
    return found


GEO = chaski.Pixels(geo=True)


@pytest.mark.usefixtures("binary")
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("window", [{"per_epoch": 40}, {"stride_m": 160}])
def test_windows(data: Path, tmp_path: Path, way: str, window: dict[str, Any]) -> None:
    place, said = source(data, way, tmp_path)
    options: dict[str, Any] = {"fields": fields(said)}
    if way == "scenes":
        place, options = chaski.Scenes(place, fields(said)), {}
    options |= {"batch_size": 4, "window": chaski.GeoWindow(160, 10, **window), "pixels": GEO}
    seen: dict[str, list[bool]] = {}
    with chaski.load(place, on_bad="error", seed=3, **options) as loader:
        for b in nonempty(loader):
            for kind, there in check(b).items():
                seen.setdefault(kind, []).extend(there)
    assert all(seen["s2"]) and len(seen["s2"]) >= 18
    assert {True, False} <= set(seen["s1"]) and {True, False} <= set(seen["lc"])


@pytest.mark.usefixtures("binary")
@pytest.mark.parametrize("policy", ["skip", "replace", "fill"])
def test_policies_have_nothing_to_do(data: Path, policy: Any) -> None:
    window = chaski.GeoWindow(160, 10, per_epoch=16)
    options: dict[str, Any] = {"fields": fields("pattern"), "pixels": GEO, "window": window}
    with chaski.load(data, batch_size=4, on_bad=policy, **options) as loader:
        for b in nonempty(loader):
            check(b)
            assert np.all(b["valid"])
        assert loader.bad.count == 0


@pytest.mark.usefixtures("binary")
def test_resume_and_ranks(data: Path) -> None:
    window = chaski.GeoWindow(160, 10, per_epoch=24)
    options: dict[str, Any] = {"fields": fields("pattern"), "pixels": GEO, "window": window}
    options |= {"batch_size": 4, "seed": 5}
    with chaski.load(data, **options) as loader:
        whole = [{k: np.array(v) for k, v in b.items() if k in HAS} for b in loader]
    with chaski.load(data, **options) as loader:
        steps = iter(loader)
        for _ in range(3):
            next(steps)
        state = loader.state_dict()
    with chaski.load(data, **options) as loader:
        loader.load_state_dict(state)
        for b, want in nonempty(zip(loader, whole[3:], strict=True)):
            check(b)
            for kind, image in want.items():
                np.testing.assert_array_equal(b[kind], image)
    for rank in range(2):
        with chaski.load(data, rank=rank, world_size=2, **options) as loader:
            for b, want in nonempty(zip(loader, whole, strict=True)):
                np.testing.assert_array_equal(b["s1"], want["s1"][rank::2])


@pytest.mark.usefixtures("binary")
@pytest.mark.parametrize("order", ["s1 lc s2", "lc s2 s1"])
def test_the_first_field_may_lack(data: Path, order: str) -> None:
    window = chaski.GeoWindow(160, 10, per_epoch=16)
    named = fields("pattern", order)
    with chaski.load(data, fields=named, batch_size=4, window=window, pixels=GEO) as loader:
        for b in nonempty(loader):
            check(b)


@pytest.mark.usefixtures("binary")
def test_one_scene_alone(data: Path) -> None:
    """With mosaic="none" a window has its own scene's field, or none."""
    window = chaski.GeoWindow(160, 10, per_epoch=40, mosaic="none")
    named = {**fields("column"), "scene": chaski.Field(column="scene", kind="text")}
    options: dict[str, Any] = {"fields": named, "window": window, "pixels": GEO}
    lacking = 0
    with chaski.load(data / "rows.csv", batch_size=4, **options) as loader:
        for b in nonempty(loader):
            for k in range(4):
                scene = str(b["scene"][k])
                for kind in HAS:
                    want, _ = wanted(kind, *corner(b, k), order=scene)
                    np.testing.assert_array_equal(b[kind][k], want)
                    assert b[f"there.{kind}"][k] == (scene in HAS[kind])
                    lacking += scene not in HAS[kind]
    assert lacking > 10


@pytest.mark.usefixtures("binary")
def test_several_windows_of_a_sample(data: Path) -> None:
    windows = [chaski.GeoWindow(160, 10, per_epoch=200), chaski.GeoWindow(80, 10)]
    options: dict[str, Any] = {"fields": fields("pattern"), "window": windows, "pixels": GEO}
    found: set[tuple[bool, bool]] = set()
    with chaski.load(data, batch_size=4, **options) as loader:
        for b in nonempty(loader):
            for k in range(4):
                for kind in nonempty(HAS):
                    there = []
                    for view, side in enumerate((16, 8)):
                        want, seen = wanted(kind, *corner(b, k, view), side=side)
                        np.testing.assert_array_equal(b[f"{kind}.{side}"][k, 0], want)
                        ok = np.broadcast_to(seen, want.shape)
                        np.testing.assert_array_equal(b[f"{kind}_ok.{side}"][k, 0], ok)
                        there.append(bool(seen.any()))
                    assert b[f"there.{kind}"][k] == any(there)
                    found.add((there[0], there[1]))
    assert {(True, True), (False, False), (False, True)} <= found


@pytest.mark.usefixtures("binary")
def test_several_windows_of_steps(tmp_path: Path) -> None:
    """Where the first window sees no scene of a step that has the field, another one may."""
    places = {"a": (0, 0), "b": (48, 0), "c": (0, 0), "d": (48, 0)}  # two days of two scenes
    lines = ["scene,datetime,s2,s1"]
    for scene, (left, top) in places.items():
        write(tmp_path / f"s2/{scene}.tif", values("s2", scene), left, top)
        if scene != "a":
            write(tmp_path / f"s1/{scene}.tif", values("s1", scene), left, top)
        radar = "" if scene == "a" else f"s1/{scene}.tif"
        lines.append(f"{scene},2024-05-0{1 + (scene in 'cd')},s2/{scene}.tif,{radar}")
    (tmp_path / "rows.csv").write_text("\n".join(lines) + "\n")
    steps = {"length": 2, "order": "oldest", "step": "day"}
    windows = [chaski.GeoWindow(160, 10, per_epoch=60, **steps), chaski.GeoWindow(160, 10)]
    options: dict[str, Any] = {"fields": fields("column", "s2 s1"), "pixels": GEO}
    found: set[tuple[bool, bool]] = set()
    with chaski.load(tmp_path / "rows.csv", window=windows, batch_size=4, **options) as loader:
        for b in nonempty(loader):
            for k in range(4):
                for t, scenes in enumerate(("ab", "cd")):
                    there = []
                    for view in range(2):
                        left, top = corner(b, k, view)
                        want = np.full((1, WINDOW, WINDOW), -1, np.float32)
                        for scene in scenes.replace("a", ""):
                            x = left - places[scene][0]
                            full = np.full((1, SIDE, 3 * SIDE), -1, np.float32)
                            full[..., SIDE : 2 * SIDE] = values("s1", scene)
                            cut = full[:, top : top + WINDOW, SIDE + x : SIDE + x + WINDOW]
                            want = np.where(cut >= 0, cut, want)
                        np.testing.assert_array_equal(b["s1"][k, view, t], want)
                        np.testing.assert_array_equal(b["s1_ok"][k, view, t], want >= 0)
                        there.append(bool((want >= 0).any()))
                    assert b["there.s1"][k, t] == any(there)
                    found.add((there[0], there[1]))
    assert {(True, True), (False, False), (False, True), (True, False)} <= found


@pytest.mark.usefixtures("binary")
def test_a_stack_lacks_with_one_of_its_files(data: Path) -> None:
    window = chaski.GeoWindow(160, 10, per_epoch=24)
    stack = chaski.Field(
        patterns=["s2/{id}.tif", "lc/{id}.tif"], missing="fill", fill=7, dtype="float32"
    )
    named = {"s2": fields("pattern")["s2"], "x": stack}
    both = 0
    with chaski.load(data, fields=named, batch_size=4, window=window, pixels=GEO) as loader:
        for b in nonempty(loader):
            for k in range(4):
                left, top = corner(b, k)
                parts = [wanted(kind, left, top, order="ad") for kind in ("s2", "lc")]
                want = np.concatenate([np.where(seen, x, 7) for x, seen in parts])
                np.testing.assert_array_equal(b["x"][k], want)
                both += bool(parts[0][1].any())
    assert 0 < both < 24


def series(root: Path, kind: str, has: str) -> Path:
    """Writes a table of scenes at one place, four days; those that has does not name lack s1."""
    rows = ["image,s1,datetime"]
    for i, scene in enumerate("abcd"):
        write(root / f"{kind}{scene}.tif", values("s2", scene, False), 0, 0)
        write(root / f"{kind}{scene}_s1.tif", values("s1", scene, False), 0, 0)
        s1 = f"{kind}{scene}_s1.tif" if scene in has else ""
        rows.append(f"{kind}{scene}.tif,{s1},2024-05-0{2 * i + 1}T10:00:00")
    (root / f"{kind}.csv").write_text("\n".join(rows) + "\n")
    return root / f"{kind}.csv"


@pytest.mark.usefixtures("binary")
def test_steps_of_a_sequence(tmp_path: Path) -> None:
    """Steps whose scene lacks a field are nodata in it, and steps all the same."""
    table = series(tmp_path, "x", "bd")
    named = {
        "s2": chaski.Field(column="image", dtype="native"),
        "s1": chaski.Field(column="s1", missing="fill", fill=-1, dtype="native", validity="ok"),
    }
    window = chaski.GeoWindow(160, 10, per_epoch=8, length=4, order="oldest")
    options: dict[str, Any] = {"fields": named, "window": window, "pixels": GEO}
    with chaski.load(table, batch_size=4, **options) as loader:
        for b in nonempty(loader):
            assert np.all(b["steps"])
            for k in range(4):
                left, top = corner(b, k)
                for t, scene in enumerate("abcd"):
                    cut = np.s_[:, top : top + WINDOW, left : left + WINDOW]
                    np.testing.assert_array_equal(b["s2"][k, t], values("s2", scene, False)[cut])
                    s1 = values("s1", scene, False)[cut]
                    want = s1 if scene in "bd" else np.full_like(s1, -1)
                    np.testing.assert_array_equal(b["s1"][k, t], want)
                    assert np.all(b["ok"][k, t] == (scene in "bd"))
                    assert b["there.s1"][k, t] == (scene in "bd")


@pytest.mark.usefixtures("binary")
def test_the_nearest_scene_that_has_the_field(tmp_path: Path) -> None:
    optical = chaski.Scenes(series(tmp_path, "x", ""), {"s2": chaski.Field(column="image")})
    radar = chaski.Field(
        column="s1", match="nearest", missing="fill", fill=-1, dtype="native", layout="n t b y x"
    )
    lead = chaski.Field(column="image", match="nearest", dtype="native")
    joined = optical & chaski.Scenes(series(tmp_path, "y", "bd"), {"s1": radar, "lead": lead})
    window = chaski.GeoWindow(160, 10, per_epoch=8, length=4, order="oldest")
    with chaski.load(joined, batch_size=4, window=window, pixels=GEO) as loader:
        for b in nonempty(loader):
            for k in range(4):
                left, top = corner(b, k)
                cut = np.s_[:, top : top + WINDOW, left : left + WINDOW]
                for t, (scene, mine) in enumerate(zip("bbbd", "abcd", strict=True)):
                    # c is as far from b as from d: the first of the rows counts.
                    np.testing.assert_array_equal(b["s1"][k, t], values("s1", scene, False)[cut])
                    np.testing.assert_array_equal(b["lead"][k, t], values("s2", mine, False)[cut])


@pytest.mark.usefixtures("binary")
def test_joined_datasets(data: Path, tmp_path: Path) -> None:
    """A dataset beside the first one may lack, too, also a field that both have."""
    write(tmp_path / "dem/e.tif", np.full((1, SIDE, SIDE), 9, np.int16), 0, 0)
    dem = chaski.Scenes(tmp_path, {"dem": chaski.Field(pattern="dem/{id}.tif", dtype="native")})
    window = chaski.GeoWindow(160, 10, per_epoch=16)
    options: dict[str, Any] = {"batch_size": 4, "window": window, "pixels": GEO}
    with chaski.load(dem & chaski.Scenes(data, fields("pattern")), **options) as loader:
        for b in nonempty(loader):
            check(b)
            assert np.all(np.asarray(b["dem"]) == 9)
    # The radar of a itself is on another path, and all else there lacks.
    other = tmp_path / "other"
    other.mkdir()
    write(other / "s2/a.tif", values("s2", "a"), *SCENES["a"])
    write(other / "s1/a.tif", values("s1", "a"), *SCENES["a"])
    named = fields("pattern", "s2 s1")
    both = chaski.Scenes(data, named) | chaski.Scenes(other, named)
    with chaski.load(both, **options) as loader:
        for b in nonempty(loader):
            for k in range(4):
                left, top = corner(b, k)
                want, seen = wanted("s1", left, top)
                image = np.full((1, 512, 512), -1, np.float32)
                image[:, 64 : 64 + SIDE, 64 : 64 + SIDE] = values("s1", "a")
                rest = image[:, 64 + top :][:, :WINDOW, 64 + left :][:, :, :WINDOW]
                np.testing.assert_array_equal(b["s1"][k], np.where(seen, want, rest))


@pytest.mark.usefixtures("binary")
def test_a_part_that_lacks_a_field(data: Path) -> None:
    """Where no chosen scene has a field, others say which shape it has."""
    window = chaski.GeoWindow(160, 10, per_epoch=8)
    options: dict[str, Any] = {"fields": fields("pattern"), "window": window, "pixels": GEO}
    with chaski.load(data, batch_size=4, rows=chaski.Rows(ids=["d"]), **options) as loader:
        for b in nonempty(loader):
            check(b)
            assert not np.any(b["there.s1"]) and np.all(np.asarray(b["s1"]) == -1)


@pytest.mark.usefixtures("binary")
def test_stats_of_scenes(data: Path) -> None:
    got = chaski.stats(data / "items.json", fields=fields("column"))
    for kind, has in HAS.items():
        want = np.stack([values(kind, s) for s in has]).astype(float)
        np.testing.assert_allclose(got.mean(kind), want.mean((0, 2, 3)))


@pytest.mark.usefixtures("binary")
@pytest.mark.parametrize(
    "window",
    [
        chaski.Grid(WINDOW),
        chaski.RandomWindow(WINDOW, per_asset=3),
        chaski.TileWindow(WINDOW, per_visit=2, tile=16),
        chaski.ResizedWindow(WINDOW, scale=(0.3, 0.9)),
        [chaski.RandomWindow(WINDOW), chaski.RandomWindow(8)],
    ],
)
@pytest.mark.parametrize("way", ["patterns", "items"])
def test_windows_in_pixels(data: Path, tmp_path: Path, window: Any, way: str) -> None:
    """Windows of files have the fields that their own scene has."""
    place, said = source(data, way, tmp_path)
    named = {**fields(said, "lc s2 s1"), "id": "id"}
    if said == "pattern":
        named["id"] = chaski.Field(column="id", kind="text")
    pixels = chaski.Pixels(windows=True)
    seen: dict[str, set[str]] = {"s1": set(), "lc": set()}
    with chaski.load(place, fields=named, batch_size=4, window=window, pixels=pixels) as loader:
        for b in nonempty(loader):
            for k in np.flatnonzero(b["valid"]):
                scene = str(b["id"][k])
                for kind in seen:
                    there = scene in HAS[kind]
                    seen[kind].add(scene)
                    assert b[f"there.{kind}"][k] == there
                    for name in [n for n in b if n == kind or n.startswith(f"{kind}.")]:
                        ok = b[name.replace(kind, f"{kind}_ok", 1)][k]
                        assert np.all(np.asarray(ok) == there), name
                        assert there or np.all(np.asarray(b[name][k]) == FILL[kind]), name
                if isinstance(window, chaski.Grid | chaski.RandomWindow | chaski.TileWindow):
                    y, x, h, w = b["window"][k]
                    for kind in HAS:
                        if scene in HAS[kind]:
                            want = values(kind, scene)[:, y : y + h, x : x + w]
                            np.testing.assert_array_equal(b[kind][k], want)
    assert seen == {"s1": set(SCENES), "lc": set(SCENES)}


def test_weights_count_nothing_of_what_lacks(data: Path, tmp_path: Path, binary: str) -> None:
    """Windows lie about pixels of a class; in a scene without a mask they lie anywhere."""
    named = {**fields("pattern", "lc s1 s2"), "id": chaski.Field(column="id", kind="text")}
    with chaski.load(data, fields=named, batch_size=1) as loader:
        (tmp_path / "spec.json").write_text(json.dumps(loader.spec))
    out = tmp_path / "lc.weights"
    line = [binary, "stats", "--sampling", "--count=lc", "--classes=7", "--cell=1", f"-o{out}"]
    subprocess.run([*line, str(tmp_path / "spec.json")], check=True, capture_output=True)
    window = chaski.WeightedWindow(4, weights=out, per_asset=20)
    pixels = chaski.Pixels(windows=True)
    there, found = 0, []
    with chaski.load(data, fields=named, batch_size=4, window=window, pixels=pixels) as loader:
        for b in nonempty(loader):
            for k, (y, x, h, w) in enumerate(b["window"]):
                scene = str(b["id"][k])
                assert b["there.lc"][k] == (scene in HAS["lc"])
                there += int(b["there.lc"][k])
                if scene in HAS["lc"]:
                    found.append(7 in values("lc", scene)[:, y : y + h, x : x + w])
    assert there == 40 and all(found)


@pytest.mark.usefixtures("binary")
def test_each_dataset_has_a_field_that_leads(data: Path) -> None:
    window = chaski.GeoWindow(160, 10, per_epoch=8)
    lacking = fields("pattern", "s1 lc")
    with pytest.raises(chaski.errors.Error, match=r"have the names \{id\} may lack: give one"):
        chaski.load(data, fields=lacking, batch_size=4, window=window)
    tables = chaski.Scenes(data / "rows.csv", fields("column", "s2")) & chaski.Scenes(
        data / "items.json", fields("column", "s1")
    )
    with pytest.raises(chaski.errors.Error, match="all fields may lack: give one that each"):
        chaski.load(tables, batch_size=4, window=window)
    with pytest.raises(chaski.errors.SpecError, match=r"Scenes need a chaski\.GeoWindow"):
        chaski.load(chaski.Scenes(data, fields("pattern")), batch_size=4, window=chaski.Grid(16))
