"""Catalogs of pairs, and pairs that lack a file: the real engine, rasterio and pyarrow."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest
import rasters
from conftest import nonempty
from patience import logged
from test_real import serve

import chaski

pytestmark = pytest.mark.usefixtures("one_engine")

N = 7
FIELDS = {
    "image": "images/{id}.tif",
    "mask": chaski.Field(pattern="masks/{id}_m.tif", dtype="native"),
}


@pytest.fixture
def folder(tmp_path: Path, binary: str) -> Path:
    rasterio = pytest.importorskip("rasterio", reason="needs rasterio to write chips")
    rng = np.random.default_rng(5)
    for i in range(N):
        for name, bands, dtype in (("images/{}.tif", 3, "uint16"), ("masks/{}_m.tif", 1, "uint8")):
            path = tmp_path / "data" / name.format(f"c{i}")
            path.parent.mkdir(parents=True, exist_ok=True)
            place = rasterio.transform.from_origin(5e5, 9e6, 10, 10)
            rasters.write(
                path,
                rng.integers(0, 200, (bands, 16, 20)).astype(dtype),
                crs="EPSG:32718",
                transform=place,
            )
    return tmp_path / "data"


def index(binary: str, folder: Path, *more: str) -> subprocess.CompletedProcess[str]:
    out = folder.parent / "pairs.parquet"
    fields = ["--field", "image=images/{id}.tif", "--field", "mask=masks/{id}_m.tif"]
    command = [binary, "index", *fields, *more, "-o", str(out), str(folder)]
    return subprocess.run(command, capture_output=True, text=True)


def check(loader: chaski.Loader, folder: Path, ids: list[str]) -> None:
    import rasterio

    seen = []
    for b in loader:
        for row in np.flatnonzero(b["valid"]):
            name = ids[b["sample"][row]]
            seen.append(name)
            for field, path in (("image", f"images/{name}.tif"), ("mask", f"masks/{name}_m.tif")):
                with rasterio.open(folder / path) as d:
                    assert np.array_equal(b[field][row], d.read().astype(b[field].dtype))
    assert sorted(seen) == ids


def test_a_catalog_of_pairs_opens_with_its_fields(binary, folder, caplog):
    assert index(binary, folder).returncode == 0
    catalog = folder.parent / "pairs.parquet"
    with chaski.load(catalog, batch_size=3, seed=1) as loader:
        assert [f.name for f in loader.fields] == ["image", "mask"]
        check(loader, folder, [f"c{i}" for i in range(N)])
        state = loader.state_dict()
    own = {"image": chaski.Field(), "mask": chaski.Field(dtype="native")}
    with (
        chaski.load(catalog, batch_size=3, fields=own) as a,
        chaski.load(folder, batch_size=3, fields=FIELDS) as b,
    ):
        assert a.fields == b.fields and [f.dtype for f in a.fields] == ["float32", "uint8"]
        # One dataset, in one order: fingerprints agree, and so do the samples.
        assert (
            a.state_dict()["run"]["data"] == b.state_dict()["run"]["data"] == state["run"]["data"]
        )
        for x, y in nonempty(zip(a, b, strict=True)):
            assert all(x[k].tobytes() == y[k].tobytes() for k in y)
        rest = iter(b)
        next(rest)
        state = b.state_dict()
        second = next(rest)["sample"].tolist()
        with pytest.raises(chaski.StateError, match="fields.image.pattern is not given"):
            a.load_state_dict(state)
        with chaski.load(
            catalog, batch_size=3, fields=own, pixels=chaski.Pixels(windows=True)
        ) as c:
            for other in (a, c):
                caplog.clear()
                other.load_state_dict(state, strict=False)
                assert "goes on" in caplog.text and "own order" not in caplog.text
                assert next(iter(other))["sample"].tolist() == second
    with pytest.raises(chaski.SpecError, match='fill is 0 and dtype is "native" for all fields'):
        chaski.load(catalog, batch_size=3, pixels=chaski.Pixels(dtype="native", fill=0))
    with chaski.load(catalog, batch_size=3, fields={"mask": chaski.Field()}) as only:
        assert next(iter(only))["mask"].shape[1:] == (1, 16, 20)
    with pytest.raises(
        chaski.NotFoundError, match=r'the catalog has the fields \["image" "mask"\]'
    ):
        chaski.load(catalog, batch_size=3, fields={"masks": chaski.Field()})
    done = subprocess.run([binary, "verify", str(catalog)], capture_output=True, text=True)
    assert done.returncode == 0 and '"files":15,"rows":7' in done.stdout


def test_the_catalog_is_what_is_read(binary, folder):
    """No file is opened before the first batch: the masks' headers may be gone by then."""
    pq = pytest.importorskip("pyarrow.parquet", reason="needs pyarrow to read the catalog")
    assert index(binary, folder).returncode == 0
    table = pq.read_table(folder.parent / "pairs.parquet").to_pydict()
    assert table["uri"] == [f"data/images/c{i}.tif" for i in range(N)]
    assert table["mask"] == [f"data/masks/c{i}_m.tif" for i in range(N)]
    assert table["bands"] == [3] * N and table["mask:bands"] == [1] * N
    assert table["mask:dtype"] == ["uint8"] * N and table["mask:epsg"] == [32718] * N
    assert all(table["chaski:index"]) and all(table["mask:chaski:index"])
    for i in range(N):
        path = folder / "masks" / f"c{i}_m.tif"
        assert table["mask:size"][i] == path.stat().st_size
    blob = subprocess.run(
        [binary, "index", str(folder / "masks" / "c3_m.tif")], capture_output=True, text=True
    )
    assert table["mask:chaski:index"][3].hex() == blob.stdout.strip()


def test_incomplete_pairs(binary, folder, caplog):
    (folder / "masks" / "c2_m.tif").unlink()
    (folder / "images" / "c5.tif").unlink()
    left = [f"c{i}" for i in range(N) if i not in (2, 5)]
    with pytest.raises(
        chaski.NotFoundError, match="no file images/c5.tif for the id .c5.; 2 files"
    ):
        chaski.load(folder, batch_size=3, fields=FIELDS)
    with chaski.load(
        folder, batch_size=3, fields=FIELDS, rows=chaski.Rows(missing="drop")
    ) as loader:
        check(loader, folder, left)
        print_of_folder = loader.state_dict()["run"]["data"]
    told = logged(caplog, "incomplete samples are left out")
    assert "incomplete samples are left out" in told and "samples=2" in told
    done = index(binary, folder)
    assert done.returncode == 1 and "images/c5.tif" in done.stderr
    done = index(binary, folder, "--drop-missing")
    assert (done.returncode, done.stderr) == (0, "chaski: incomplete samples left out: 2\n")
    with chaski.load(folder.parent / "pairs.parquet", batch_size=3) as loader:
        check(loader, folder, left)
        assert loader.state_dict()["run"]["data"] == print_of_folder
    with pytest.raises(chaski.SpecError, match='missing is "skip": it must be "error" or "drop"'):
        chaski.load(folder, batch_size=3, fields=FIELDS, rows=chaski.Rows(missing="skip"))
    with pytest.raises(chaski.SpecError, match="no field has a pattern"):
        chaski.load(folder, batch_size=3, rows=chaski.Rows(missing="drop"))


def test_misplaced_pairs_are_refused_at_opening(binary, folder):
    rasterio = pytest.importorskip("rasterio", reason="needs rasterio to move a mask")
    for path in folder.glob("masks/*.tif"):
        with rasterio.open(path, "r+") as d:
            d.transform = rasterio.transform.from_origin(5e5 + 640, 9e6, 10, 10)
    assert index(binary, folder).returncode == 0
    for source, fields in ((folder, FIELDS), (folder.parent / "pairs.parquet", None)):
        with pytest.raises(chaski.MisplacedError, match=r"640 m \(64 pixels\)") as e:
            chaski.load(source, fields=fields, batch_size=3)
        assert e.value.kind == "misplaced"
        assert Path(e.value.file).name == "c0_m.tif"


@pytest.mark.parametrize("form", ["relative", "absolute"])
def test_masks_in_another_folder(binary, folder, form):
    """A pattern may lead out of the folder; a server serves what lies below its roots."""
    up = "../" if form == "relative" else f"{folder}/"
    images, masks = folder / "images", f"{up}masks/{{id}}_m.tif"
    fields = {"image": "{id}.tif", "mask": chaski.Field(pattern=masks, dtype="native")}
    ids = [f"c{i}" for i in range(N)]
    with chaski.load(images, batch_size=3, fields=fields, seed=1) as loader:
        check(loader, folder, ids)
        first = next(iter(loader))["sample"].tolist()
        state = loader.state_dict()
    with chaski.load(images, batch_size=3, fields=fields, seed=1) as loader:
        loader.load_state_dict(state)
        assert sorted(first + [k for b in loader for k in b["sample"].tolist()]) == list(range(N))
    out = folder.parent / "two.parquet"
    command = [binary, "index", "--field", "image={id}.tif", "--field", f"mask={masks}", "-o", out]
    subprocess.run([*command, images], check=True)
    with chaski.load(
        out, batch_size=3, fields={"image": chaski.Field(), "mask": chaski.Field(dtype="native")}
    ) as loader:
        check(loader, folder, ids)
    for root, served in ((folder, True), (images, False)):
        server, target = serve(binary, root, "127.0.0.1:0")
        try:
            if served:
                with chaski.connect(target, images, batch_size=3, fields=fields) as loader:
                    check(loader, folder, ids)
                continue
            with pytest.raises(chaski.NotFoundError, match="not found"):
                chaski.connect(target, images, batch_size=3, fields=fields)
        finally:
            server.terminate()
            server.wait(60)


def test_wrong_ways_out(folder):
    for pattern, says in (
        ("../nowhere/{id}.tif", 'field "mask"'),
        ("../masks/{id}.tif", "3 files are missing|is missing|no file"),
        ("../../../../../../../../etc/{id}.tif", 'field "mask"'),
    ):
        with pytest.raises(chaski.errors.Error, match=says):
            chaski.load(
                folder / "images", batch_size=1, fields={"image": "{id}.tif", "mask": pattern}
            )


@pytest.mark.parametrize("start", ["./", ".//", "././"])
def test_patterns_may_begin_with_the_folder_itself(folder, start):
    """As a shell completes names, also of stacks and of folders beside the source."""
    with chaski.load(folder, batch_size=N, fields=FIELDS) as loader:
        want = next(iter(loader))
    fields = {
        "image": start + "images/{id}.tif",
        "mask": chaski.Field(pattern=start + "masks/{id}_m.tif", dtype="native"),
    }
    beside = {
        "image": start + "{id}.tif",
        "mask": chaski.Field(pattern=start + "../masks/{id}_m.tif", dtype="native"),
    }
    for source, ways in ((folder, fields), (folder / "images", beside)):
        with chaski.load(source, batch_size=N, fields=ways) as loader:
            got = next(iter(loader))
        for name in nonempty(fields):
            np.testing.assert_array_equal(got[name], want[name])
