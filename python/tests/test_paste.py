"""Predictions of a tall scene, put together: judged by rasterio and numpy."""

import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
import rasterio
import rasters
from rasterio.transform import from_origin

import chaski

NAMES = ["water", "spruce wood", "", "field, meadow"]
PALETTE = {0: "#1e5ac8", 3: "#e6d278"}
HEIGHT, WIDTH = 1301, 90  # three strips of 512 rows, and an odd side
GRID = chaski.Grid((60, 40), overlap=(20, 10))


@pytest.fixture(scope="module")
def scene(tmp_path_factory):
    path = tmp_path_factory.mktemp("paste") / "scene.tif"
    how = {"count": 1, "dtype": "uint8", "height": HEIGHT, "width": WIDTH, "nodata": 0}
    place = from_origin(500000, 4600000, 10, 10)
    with rasterio.open(path, "w", driver="GTiff", crs="EPSG:32630", transform=place, **how) as f:
        pixels = np.random.default_rng(1).integers(1, 200, (HEIGHT, WIDTH), np.uint8)
        pixels[700:740, 20:50] = 0
        f.write(pixels, 1)
    return path


@pytest.fixture(scope="module")
def windows():
    n = GRID.count(HEIGHT, WIDTH)
    return np.random.default_rng(2).normal(size=(n, 4, 60, 40)).astype(np.float32)


def corners():
    """The corners of the windows in the order of their numbers: docs/sampling.md."""
    rows = [min(y, HEIGHT - 60) for y in range(0, HEIGHT - 20, 40)]
    columns = [min(x, WIDTH - 40) for x in range(0, WIDTH - 10, 30)]
    return [(y, x) for y in rows for x in columns]


def blended(windows):
    """The means of all windows of a pixel, weighted by the distance to their edges."""
    total, weights = np.zeros((4, HEIGHT, WIDTH)), np.zeros((HEIGHT, WIDTH))
    ramp = [np.minimum(np.arange(n) + 1, n - np.arange(n)) for n in (60, 40)]
    weight = np.outer(*ramp).astype(float)
    for (y, x), window in zip(corners(), windows, strict=True):
        total[:, y : y + 60, x : x + 40] += weight * window
        weights[y : y + 60, x : x + 40] += weight
    return total / weights


def halved(a, pick):
    """Each square of two by two pixels, by pick."""
    rows, columns = ((n + 1) // 2 for n in a.shape)
    squares = (a[2 * y : 2 * y + 2, 2 * x : 2 * x + 2] for y in range(rows) for x in range(columns))
    return np.array([pick(s.ravel()) for s in squares]).reshape(rows, columns)


def mean(square):
    known = square[~np.isnan(square)]
    return known.mean() if len(known) else np.nan


def mode(square):
    known = square[square != 255].tolist()
    return max(known, key=lambda v: (known.count(v), -known.index(v))) if known else 255


def test_values_of_any_order(scene, windows, tmp_path):
    order = np.random.default_rng(3).permutation(len(windows))
    parts = ((numbers, windows[numbers]) for numbers in np.array_split(order, 17))
    chaski.paste(parts, scene, tmp_path / "a.tif", grid=GRID, overviews=True)
    chaski.paste(windows, scene, tmp_path / "b.tif", grid=GRID, overviews=True)
    assert (tmp_path / "a.tif").read_bytes() == (tmp_path / "b.tif").read_bytes()
    want = blended(windows)
    want[:, 700:740, 20:50] = np.nan
    with rasterio.open(tmp_path / "a.tif") as f, rasterio.open(scene) as cut:
        assert (f.transform, f.crs, f.overviews(1)) == (cut.transform, cut.crs, [2, 4])
        np.testing.assert_allclose(f.read(), want, atol=1e-5)
        full = f.read(4)
    with rasterio.open(tmp_path / "a.tif", overview_level=0) as f:
        half = f.read(4)
        np.testing.assert_allclose(half, halved(full, mean), atol=1e-6)
    with rasterio.open(tmp_path / "a.tif", overview_level=1) as f:
        np.testing.assert_allclose(f.read(4), halved(half, mean), atol=1e-6)


def test_a_map_of_classes(scene, windows, tmp_path):
    out = tmp_path / "map.tif"
    how = {"classes": NAMES, "palette": PALETTE, "overviews": True}
    chaski.paste(windows, scene, out, grid=GRID, argmax=True, **how)
    scores = blended(windows)
    with rasterio.open(out) as f:
        got = f.read(1)
        colours = f.colormap(1)
    missing = np.zeros((HEIGHT, WIDTH), bool)
    missing[700:740, 20:50] = True
    assert (got[missing] == 255).all()
    chosen = np.take_along_axis(scores, np.where(missing, 0, got)[None], 0)[0]
    assert (chosen >= scores.max(0) - 1e-5)[~missing].all()
    assert colours[0] == (30, 90, 200, 255) and colours[3] == (230, 210, 120, 255)
    assert colours[1][1] > max(colours[1][0], colours[1][2])  # of a wood, as plot paints it
    with rasterio.open(out, overview_level=0) as f:
        np.testing.assert_array_equal(f.read(1), halved(got, mode))
    with chaski.load(out, window=chaski.Grid(64), batch_size=4) as loader:
        field = loader.fields[0]
    assert list(field.classes) == NAMES
    assert [field.palette[i] for i in (0, 3)] == ["#1e5ac8", "#e6d278"]


def test_memory_does_not_grow_with_the_height(tmp_path):
    scene, out = tmp_path / "tall.tif", tmp_path / "out.tif"
    how = {"count": 1, "dtype": "uint8", "height": 40_000, "width": 64, "driver": "GTiff"}
    with rasterio.open(scene, "w", sparse_ok=True, **how):
        pass
    grid = chaski.Grid(64)
    n = grid.count(40_000, 64)
    parts = ((np.array([i]), np.full((1, 8, 64, 64), i, np.float32)) for i in range(n))
    # All sums of 8 bands would take 92 MB, the 576 rows that are held 1.3 MB, a strip of 512 1 MB.
    chaski.paste(parts, scene, out, grid=grid, max_bytes=3_000_000)
    with rasterio.open(out) as f:
        rows = f.read(8)[:, 5]
    np.testing.assert_array_equal(rows, np.minimum(np.arange(40_000) // 64, n - 1))
    with pytest.raises(chaski.LimitError, match=r"need \d+ bytes of memory: max_bytes is 1000000"):
        chaski.paste(np.zeros((n, 8, 64, 64)), scene, out, grid=grid, max_bytes=1_000_000)


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"classes": NAMES}, "argmax=True"),
        ({"argmax": True, "palette": ["red"]}, "palette has .red.: a colour must be #rrggbb"),
        ({"argmax": True, "classes": {255: "x"}}, "has the number 255: at most 254"),
        ({"max_bytes": 0}, "max_bytes"),
    ],
)
def test_refusals(scene, windows, tmp_path, how, message):
    with pytest.raises(chaski.Error, match=message):
        chaski.paste(windows, scene, tmp_path / "x.tif", grid=GRID, **how)
    assert not list(tmp_path.iterdir())


OTHER_ENDINGS = "nc h5 mat zarr rumi png jpeg npy csv parquet json".split()


def test_formats_and_bands_that_give_no_map(scene, windows, tmp_path):
    """Arrays are no scenes, maps are TIFFs, and the greatest of one band is no class."""
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "a.h5", "w") as f:
        f["b"] = np.zeros((32, 32))
    for given, at, out, message in (
        (windows, tmp_path / "a.h5", "x.tif", "for arrays give None, a GroundGrid"),
        *((windows, scene, f"x.{end}", "paste writes a TIFF") for end in OTHER_ENDINGS),
        (windows[:, :1], scene, "x.tif", "bands is 1: the largest of one band is 0"),
    ):
        with pytest.raises(chaski.SpecError, match=message):
            chaski.paste(given, at, tmp_path / out, grid=GRID, argmax=True)


def test_predictions_are_made_in_the_calling_thread(scene, windows, tmp_path):
    """Modes such as torch.no_grad are of a thread. An error there is raised, and leaves no file."""
    seen = set()

    def parts(broken):
        for i, window in enumerate(windows):
            seen.add(threading.current_thread())
            if broken and i == 40:
                raise FileNotFoundError("weights.pt")
            yield np.array([i]), window[None]

    with pytest.raises(FileNotFoundError, match=r"weights\.pt"):
        chaski.paste(parts(True), scene, tmp_path / "x.tif", grid=GRID)
    assert not list(tmp_path.iterdir())
    chaski.paste(parts(False), scene, tmp_path / "x.tif", grid=GRID)
    assert seen == {threading.current_thread()}


def test_a_run_that_is_stopped_goes_on(scene, windows, tmp_path):
    """It gives the same file, whatever the batches and wherever it ended, in a window too."""
    kept, whole, out = (tmp_path / name for name in ("map.part", "whole.tif", "map.tif"))
    chaski.paste(windows, scene, whole, grid=GRID)
    how = {"window": GRID, "batch_size": 8, "shuffle": False}
    assert chaski.pasted(kept) == 0

    def parts(loader, last):
        for batch in loader:
            yield batch["sample"], windows[batch["sample"]]
            if batch["sample"][-1] >= last:
                raise KeyboardInterrupt

    done = 0
    for last in (20, 43, 10**9):
        with chaski.load(scene, **how) as loader:
            begin = chaski.pasted(kept) // 8 * 8
            assert begin == done
            loader.load_state_dict({**loader.state_dict(), "samples": begin})
            run = parts(loader, last)
            if last < len(windows):
                with pytest.raises(KeyboardInterrupt):
                    chaski.paste(run, scene, out, grid=GRID, resume=kept)
                (part,) = kept.iterdir()
                with open(part, "ab") as f:  # a kill while a window was written
                    f.write(b"x" * 5000)
                done = (last // 8 + 1) * 8
                assert chaski.pasted(kept) == done and not out.exists()
            else:
                chaski.paste(run, scene, out, grid=GRID, resume=kept)
    assert out.read_bytes() == whole.read_bytes()
    assert not kept.exists()


@pytest.fixture(scope="module")
def three(tmp_path_factory):
    """Scenes of several sizes, and the windows of all of them."""
    folder = tmp_path_factory.mktemp("scenes")
    sides = {"b": (130, 90), "a": (61, 45), "c": (200, 40)}
    for i, (name, (height, width)) in enumerate(sides.items()):
        place = from_origin(500000 + 5000 * i, 4600000, 10, 10)
        path = folder / f"{name}.tif"
        rasters.write(
            path,
            np.full((1, height, width), i + 1, np.uint8),
            crs="EPSG:32630",
            transform=place,
            nodata=0,
        )
    paths = [folder / f"{name}.tif" for name in sides]
    counts = [GRID.count(*s) for s in sides.values()]
    windows = np.random.default_rng(3).normal(size=(sum(counts), 2, 60, 40)).astype(np.float32)
    return paths, counts, windows


@pytest.mark.parametrize("turned", [False, True])
def test_scenes_are_pasted_one_by_one(three, tmp_path, turned):
    """Each map is the one that its windows alone give, also with batches in any order."""
    paths, counts, windows = three
    order = (
        np.random.default_rng(5).permutation(len(windows)) if turned else np.arange(len(windows))
    )
    parts = ((order[i : i + 7], windows[order[i : i + 7]]) for i in range(0, len(windows), 7))
    chaski.paste(parts, paths, tmp_path / "maps", grid=GRID)
    first = 0
    for path, n in zip(paths, counts, strict=True):
        alone = tmp_path / path.name
        chaski.paste(windows[first : first + n], path, alone, grid=GRID)
        assert (tmp_path / "maps" / path.name).read_bytes() == alone.read_bytes()
        with rasterio.open(path) as scene, rasterio.open(alone) as f:
            assert (f.transform, f.shape, f.count) == (scene.transform, scene.shape, 2)
            corner = windows[first][:, 0, 0]  # where no other window lies
            np.testing.assert_allclose(f.read()[:, 0, 0], corner, atol=1e-6)
        first += n
    with chaski.load(paths, window=GRID, shuffle=False, batch_size=1) as loader:
        assert loader.samples == len(windows)
        seen = [int(batch["image"].max()) for batch in loader]
    assert (
        seen == np.repeat([1, 2, 3], counts).tolist()
    )  # the windows of the scenes, in their order


def test_scenes_go_on_behind_those_that_are_there(three, tmp_path):
    paths, counts, windows = three
    chaski.paste(windows, paths, tmp_path / "whole", grid=GRID)
    kept, out = tmp_path / "maps.part", tmp_path / "maps"
    how = {"window": GRID, "batch_size": 4, "shuffle": False}

    def parts(loader, last):
        for batch in loader:
            yield batch["sample"], windows[batch["sample"]]
            if batch["sample"][-1] >= last:
                raise KeyboardInterrupt

    seen = []
    for last in (2, counts[0] + 1, counts[0] + counts[1] + 2, 10**9):
        with chaski.load(paths, **how) as loader:
            done = chaski.pasted(kept)
            seen.append(done)
            loader.load_state_dict({**loader.state_dict(), "samples": done // 4 * 4})
            run = parts(loader, last)
            if last < len(windows):
                with pytest.raises(KeyboardInterrupt):
                    chaski.paste(run, paths, out, grid=GRID, resume=kept)
                maps = {p.name: p.stat().st_mtime_ns for p in out.glob("*.tif")}
                assert len(maps) == sum(np.cumsum(counts) <= chaski.pasted(kept))
            else:
                chaski.paste(run, paths, out, grid=GRID, resume=kept)
                assert all((out / name).stat().st_mtime_ns == t for name, t in maps.items())
    assert seen[:2] == [0, 4]
    assert sorted(seen) == seen and seen[2] > counts[0] and seen[3] > counts[0] + counts[1]
    for path in paths:
        assert (out / path.name).read_bytes() == (tmp_path / "whole" / path.name).read_bytes()
    assert not kept.exists()


KILLED = """
import os, signal, sys
import numpy as np, chaski
paths, (last, folder) = sys.argv[1:4], sys.argv[4:]
windows = np.load(folder + "/windows.npy", mmap_mode="r")
grid, kept = chaski.Grid((60, 40), overlap=(20, 10)), folder + "/maps.part"
with chaski.load(paths, window=grid, batch_size=4, shuffle=False) as loader:
    done = chaski.pasted(kept)
    print(done, flush=True)
    loader.load_state_dict({**loader.state_dict(), "samples": done // 4 * 4})
    def parts():
        for batch in loader:
            yield batch["sample"], windows[batch["sample"]]
            if batch["sample"][-1] >= int(last):
                os.kill(os.getpid(), signal.SIGKILL)
    chaski.paste(parts(), paths, folder + "/maps", grid=grid, resume=kept)
"""


def test_scenes_after_kills(three, tmp_path):
    paths, counts, windows = three
    np.save(tmp_path / "windows.npy", windows)
    begun = []
    for last in (3, counts[0] + 2, counts[0] + counts[1] + 1, len(windows) - 5, 10**9):
        words = [sys.executable, "-c", KILLED, *map(str, paths), str(last), str(tmp_path)]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        assert done.returncode == (0 if last > len(windows) else -9), done.stderr
        begun.append(int(done.stdout))
    assert begun == sorted(begun) and begun[0] == 0 and begun[-1] > sum(counts[:2])
    chaski.paste(windows, paths, tmp_path / "whole", grid=GRID)
    for path in paths:
        want = (tmp_path / "whole" / path.name).read_bytes()
        assert (tmp_path / "maps" / path.name).read_bytes() == want
    assert not (tmp_path / "maps.part").exists()


def test_a_list_of_scenes_that_is_refused(three, tmp_path):
    paths, _, windows = three

    def refused(message, scenes=paths, values=windows, **how):
        with pytest.raises(chaski.Error, match=message):
            chaski.paste(values, scenes, tmp_path / "maps", grid=GRID, **how)

    refused("scene has .*b.tif.* and .*b.tif.*: the maps of both would be 'b.tif'", [paths[0]] * 2)
    refused("scene is an empty list", [])
    refused(r"\d+ of \d+ windows are missing", values=windows[:-1])
    refused("give the list of its files", [paths[0].parent])
    (tmp_path / "notes").write_text("mine")
    refused("resume is the file .*notes.*: it must be a folder", resume=tmp_path / "notes")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "notes").write_text("mine")
    refused("give a folder of its own", resume=tmp_path / "folder")


def test_other_scenes_are_not_resumed(three, tmp_path):
    """Nor the same in another order, on another grid or without the maps that were there."""
    paths, counts, windows = three
    kept, out = tmp_path / "maps.part", tmp_path / "maps"
    chaski.paste(windows, paths, tmp_path / "whole", grid=GRID)
    whole = {p.name: p.read_bytes() for p in (tmp_path / "whole").iterdir()}

    def stopped():
        for i in range(counts[0] + 1):
            yield np.array([i]), windows[i : i + 1]
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        chaski.paste(stopped(), paths, out, grid=GRID, resume=kept)
    done = chaski.pasted(kept)
    assert done == counts[0] + 1 and [p.name for p in out.iterdir()] == ["b.tif"]
    other = "windows of other scenes"
    for message, scenes, folder, how in (
        (other, [paths[1], paths[0], paths[2]], out, {}),
        (other, paths[:2], out, {}),
        (other, paths, out, {"grid": chaski.Grid((60, 40), overlap=(20, 9))}),
        (other, paths, out, {"argmax": True}),
        (other, paths, out, {"argmax": True, "classes": ["sea", "land"]}),
        (other, paths, out, {"blend": "mean"}),
        ("out has no map '.*b.tif'", paths, tmp_path / "elsewhere", {}),
    ):
        with pytest.raises(chaski.SpecError, match=message):
            chaski.paste(windows, scenes, folder, resume=kept, **{"grid": GRID, **how})
        assert chaski.pasted(kept) == done
    chaski.paste(windows, paths, out, grid=GRID, resume=kept)
    assert {p.name: p.read_bytes() for p in out.iterdir()} == whole
    assert not kept.exists()


@pytest.mark.parametrize("scenes", [2, 3])
def test_a_map_that_only_lacks_its_writing(three, tmp_path, scenes):
    """A run may be killed when it has all windows of a scene, also the last, and not its map."""
    paths, counts, windows = three
    kept, out, end = tmp_path / "maps.part", tmp_path / "maps", sum(counts[:scenes])
    chaski.paste(windows, paths, tmp_path / "whole", grid=GRID)

    def stopped():
        for i in range(end - 1):
            yield np.array([i]), windows[i : i + 1]
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        chaski.paste(stopped(), paths, out, grid=GRID, resume=kept)
    (part,) = kept.iterdir()
    with open(part, "ab") as f:
        f.write(windows[end - 1].tobytes())
    assert chaski.pasted(kept) == end
    rest = ((np.array([i]), windows[i : i + 1]) for i in range(end, len(windows)))
    chaski.paste(rest, paths, out, grid=GRID, resume=kept)
    for path in paths:
        assert (out / path.name).read_bytes() == (tmp_path / "whole" / path.name).read_bytes()
    assert not kept.exists()


def test_maps_are_not_removed(scene, three, windows, tmp_path):
    """What keeps windows is removed at the end, so it must not be what is written."""
    paths, _, all_windows = three
    (tmp_path / "link").symlink_to(tmp_path / "maps")
    for values, scenes, out, kept in (
        (all_windows, paths, "maps", "maps"),
        (all_windows, paths, "maps", "link"),
        (windows, scene, "map.tif", "map.tif"),
    ):
        with pytest.raises(chaski.SpecError, match="resume and out are both"):
            chaski.paste(values, scenes, tmp_path / out, grid=GRID, resume=tmp_path / kept)
    inside = tmp_path / "maps.part" / "maps"
    with pytest.raises(chaski.SpecError, match="give a folder of its own"):
        chaski.paste(all_windows, paths, inside, grid=GRID, resume=inside.parent)
    later = tmp_path / "later"
    later.mkdir()
    (later / "c.tif").symlink_to(paths[2])
    before = [p.read_bytes() for p in paths]
    for folder in (paths[0].parent, later):
        with pytest.raises(chaski.SpecError, match="would replace a scene: out must be another"):
            chaski.paste(iter([]), paths, folder, grid=GRID)
    assert [p.read_bytes() for p in paths] == before
    with pytest.raises(chaski.SpecError, match="for a list of scenes it must be a folder"):
        chaski.paste(all_windows, paths, paths[0], grid=GRID)
    with pytest.raises(chaski.SpecError, match="zero byte"):
        chaski.paste(windows, scene, tmp_path / "map.tif", grid=GRID, classes=["a\0b"], argmax=True)


def test_another_scene_or_map_is_not_resumed(scene, windows, tmp_path):
    """Also where it has as many windows of the same sides."""
    kept, out, whole = (tmp_path / name for name in ("map.part", "map.tif", "whole.tif"))
    how = {"argmax": True, "classes": ["sea", "land"], "palette": ["#000001", "#000002"]}
    chaski.paste(windows, scene, whole, grid=GRID, **how)
    other, moved, place, size = (
        tmp_path / name for name in ("other.tif", "moved/scene.tif", "1/scene.tif", "2/scene.tif")
    )
    for path in (other, moved, place, size):
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(Path(scene).read_bytes())
    with rasterio.open(place, "r+") as f:
        f.transform = from_origin(600000, 4600000, 10, 10)
    with size.open("ab") as f:
        f.write(b"0")

    def stopped():
        yield np.arange(5), windows[:5]
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        chaski.paste(stopped(), scene, out, grid=GRID, resume=kept, **how)
    (part,) = kept.iterdir()
    content = part.read_bytes()
    for path, wrong in (
        (other, {}),
        (place, {}),
        (size, {}),
        (scene, {"blend": "mean"}),
        (scene, {"argmax": False, "classes": None, "palette": None}),
        (scene, {"classes": ["land", "sea"]}),
        (scene, {"palette": ["#000001", "#000003"]}),
        (scene, {"overviews": True}),
        (scene, {"grid": chaski.Grid((60, 40), overlap=(20, 9))}),
        ([scene, other], {}),
    ):
        to = tmp_path / "maps" if isinstance(path, list) else out
        with pytest.raises(chaski.SpecError, match="windows of other scenes"):
            chaski.paste(windows, path, to, **{"grid": GRID, "resume": kept, **how, **wrong})
        assert part.read_bytes() == content
    rest = [(np.array([i]), windows[i : i + 1]) for i in range(5, len(windows))]
    chaski.paste(rest, moved, out, grid=GRID, resume=kept, **how)
    assert out.read_bytes() == whole.read_bytes() and not kept.exists()


def test_another_file_is_not_resumed(scene, windows, tmp_path):
    kept = tmp_path / "map.part"

    def refused(message, values=windows, **how):
        with pytest.raises(chaski.SpecError, match=message):
            chaski.paste(values, scene, tmp_path / "x.tif", resume=kept, **{"grid": GRID, **how})

    def stopped():
        yield np.arange(5), windows[:5]
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        chaski.paste(stopped(), scene, tmp_path / "x.tif", grid=GRID, resume=kept)
    (part,) = kept.iterdir()
    content = part.read_bytes()
    rest = [(np.arange(5, len(windows)), windows[5:, :3])]
    refused("other bands", rest)
    assert chaski.pasted(kept) == 5
    for broken in (b"notes of mine", content[:8]):
        part.write_bytes(broken)
        refused("something other than windows")
        assert part.read_bytes() == broken


@pytest.mark.skipif(sys.platform == "win32", reason="names are listed by the shell")
def test_no_temporary_file_is_left(scene, windows, tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    chaski.paste(windows, scene, tmp_path / "x.tif", grid=GRID)
    assert subprocess.check_output(["ls", "-A", tmp_path], text=True).split() == ["x.tif"]
