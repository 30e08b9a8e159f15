"""Files that give their bands names in different orders are mixed only where that is asked for."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import chaski
from chaski import Field, Pixels

rasterio = pytest.importorskip("rasterio")
pytestmark = pytest.mark.usefixtures("one_engine")

N, SIDE = 4, 32
ABOUT = {
    "id": "mixed",
    "dataset_version": "1",
    "description": "chips",
    "licenses": ["CC0-1.0"],
    "providers": [{"name": "chaski"}],
    "tasks": ["other"],
}
VALUES = {"B02": 2, "B04": 4, "B08": 8}
ORDERS = [("B02", "B04", "B08"), None, ("B08", "B02", "B04"), ("B02", "B04", "B08")]


def write(path: Path, names: tuple[str, ...] | None, **more) -> None:
    order = names or ("B02", "B04", "B08")
    profile = {"driver": "GTiff", "count": 3, "height": SIDE, "width": SIDE, "dtype": "uint8"}
    with rasterio.open(path, "w", **profile, **more) as d:
        for k, name in enumerate(order):
            d.write(np.full((SIDE, SIDE), VALUES[name], np.uint8), k + 1)
        if names:
            d.descriptions = names


def run(*command: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(c) for c in command], capture_output=True, text=True)


WAYS = ["folder", "catalog", "table", "container", "folder container", "indexed container"]


@pytest.fixture(scope="module")
def mixed(tmp_path_factory, binary):
    """The same files in every kind of dataset."""
    root = tmp_path_factory.mktemp("mixed")
    chips = root / "chips"
    chips.mkdir()
    for i, names in enumerate(ORDERS):
        place = rasterio.transform.from_origin(500000 + i * SIDE * 10, 4600000, 10, 10)
        write(chips / f"{i}.tif", names, crs="EPSG:32630", transform=place)
    out = {"folder": chips}
    out["table"] = root / "t.csv"
    out["table"].write_text("\n".join(["image", *(str(chips / f"{i}.tif") for i in range(N))]))
    out["catalog"] = root / "c.parquet"
    done = run(binary, "index", "-o", out["catalog"], chips)
    assert done.returncode == 0, done.stderr
    samples = [{"id": f"{i}", "path": chips / f"{i}.tif"} for i in range(N)]
    for way, name in [("container", "c.tacozip"), ("folder container", "folder")]:
        out[way] = root / name
        chaski.pack(samples, out[way], ABOUT)
    out["indexed container"] = root / "indexed.tacozip"
    chaski.pack(samples, out["indexed container"], ABOUT, columns=["index"])
    return out


def batch(source, bands, on_bad="error", **more):
    pixels = Pixels(dtype="native", bands=bands)
    with chaski.load(
        source, batch_size=N, pixels=pixels, shuffle=False, on_bad=on_bad, **more
    ) as loader:
        (b,) = loader
    return b


@pytest.mark.parametrize("way", WAYS)
def test_training(mixed, way):
    source = mixed[way]
    for _ in range(2):  # the second time by what a cache has kept
        with pytest.raises(chaski.UnsupportedError, match=r'band 0 is "B08".*"B02".*position'):
            batch(source, None)
    b = batch(source, None, on_bad="skip")
    assert b["valid"].tolist() == [True, True, False, True]
    at = [[VALUES[n] for n in (names or ORDERS[0])] for names in ORDERS]
    assert batch(source, "position")["image"][:, :, 0, 0].tolist() == at
    picked = batch(source, [2, 0])["image"][:, :, 0, 0].tolist()
    assert picked == [[row[2], row[0]] for row in at]
    named = batch(source, ["B08", "B02"], on_bad="skip")  # 1.tif has no names
    assert named["valid"].tolist() == [True, False, True, True]
    assert (named["image"][named["valid"]][:, :, 0, 0] == [8, 2]).all()


@pytest.mark.parametrize("way", ["folder", "catalog"])
def test_training_on_the_ground(mixed, way):
    sampler = chaski.GeoWindow(SIDE * 10, 10, stride_m=SIDE * 10)
    with pytest.raises(chaski.UnsupportedError, match=r'band 0 is "B08"'):
        list(chaski.load(mixed[way], batch_size=1, pixels=Pixels(pad=True), window=sampler))
    pixels = Pixels(pad=True, bands="position")
    with chaski.load(mixed[way], batch_size=1, pixels=pixels, window=sampler) as loader:
        assert len(list(loader)) >= N


def test_training_on_stacks(tmp_path):
    for i, name in enumerate(["red", "red", "nir"]):
        for k in "ab":
            with rasterio.open(
                tmp_path / f"{i}_{k}.tif",
                "w",
                driver="GTiff",
                count=1,
                height=SIDE,
                width=SIDE,
                dtype="uint8",
            ) as d:
                d.write(np.full((1, SIDE, SIDE), i + 1, np.uint8))
                d.descriptions = ("blue" if k == "a" else name,)
    stack = {"image": Field(patterns=["{id}_a.tif", "{id}_b.tif"], dtype="native")}
    with pytest.raises(
        chaski.UnsupportedError, match=r'2_b\.tif.*band 0 is "nir".*0_b\.tif.*"red"'
    ):
        list(chaski.load(tmp_path, batch_size=3, fields=stack, shuffle=False))
    stack["image"] = Field(patterns=["{id}_a.tif", "{id}_b.tif"], dtype="native", bands="position")
    with chaski.load(tmp_path, batch_size=3, fields=stack, shuffle=False) as loader:
        (b,) = loader
    assert b["image"][:, :, 0, 0].tolist() == [[1, 1], [2, 2], [3, 3]]


def test_sources_of_a_mixture(tmp_path):
    """Sensors may name bands differently, but one name must not have two places."""
    for name, bands in {
        "a": ("B02", "B04", "B08"),
        "b": ("B08", "B02", "B04"),
    }.items():
        (tmp_path / name).mkdir()
        write(tmp_path / name / "0.tif", bands)

    def load(**more):
        sources = chaski.Mixture(
            {name: chaski.Source(tmp_path / name) for name in "ab"}, until="longest"
        )
        return chaski.load(sources, batch_size=1, **more)

    with pytest.raises(chaski.UnsupportedError, match=r'"B0\d" is band \d of .*0\.tif'):
        load()
    with load(pixels=Pixels(bands="position")) as loader:
        assert {int(b["source"][0]) for b in loader} == {0, 1}
    with load(pixels=Pixels(bands=["B04"], dtype="native")) as loader:
        assert all((b["image"] == 4).all() for b in loader)


def test_zarr_groups_of_a_mixture(tmp_path):
    """Arrays that are bands have names, too: B04 has two places here."""
    for group, names in {"a": ("B02", "B04"), "b": ("B04", "B08")}.items():
        for name in names:
            array = tmp_path / f"{group}.zarr" / name
            array.mkdir(parents=True)
            (array.parent / ".zgroup").write_text('{"zarr_format": 2}')
            about = {"zarr_format": 2, "shape": [8, 8], "chunks": [8, 8], "dtype": "|u1"}
            about |= {"compressor": None, "fill_value": 0, "order": "C", "filters": None}
            (array / ".zarray").write_text(json.dumps(about))
            (array / ".zattrs").write_text('{"_ARRAY_DIMENSIONS": ["y", "x"]}')
            (array / "0.0").write_bytes(bytes([VALUES[name]]) * 64)
    sources = {name: chaski.Source(tmp_path / f"{name}.zarr") for name in "ab"}
    mixture = chaski.Mixture(sources, until="longest")
    with pytest.raises(chaski.UnsupportedError, match=r'"B04" is band \d of .*zarr'):
        chaski.load(mixture, batch_size=1)
    with chaski.load(mixture, batch_size=1, pixels=Pixels(bands=["B04"])) as loader:
        assert all((b["image"] == 4).all() for b in loader)


def test_statistics(mixed, binary):
    at = np.array([[VALUES[n] for n in (names or ORDERS[0])] for names in ORDERS])
    for way in ["folder", "catalog", "table"]:
        with pytest.raises(chaski.UnsupportedError, match=r'2\.tif.*band 0 is "B08".*"B02"'):
            chaski.stats(mixed[way])
        s = chaski.stats(mixed[way], fields={"image": Field(bands="position")})
        assert np.allclose(s.mean("image"), at.mean(axis=0))
    assert run(binary, "stats", mixed["folder"]).returncode == 1
    done = run(binary, "stats", "--bands", "position", mixed["folder"])
    assert done.returncode == 0, done.stderr
    means = [b["mean"] for b in json.loads(done.stdout)["fields"]["image"]["bands"]]
    assert np.allclose(means, at.mean(axis=0))


def test_command(mixed, binary):
    plan = ["plan", "--json"]
    for bands, refused in [("position", ""), ("0,2", ""), ("B04", "1.tif"), ("B05", "0.tif")]:
        done = run(binary, *plan, "--bands", bands, mixed["folder"])  # as loading refuses the files
        assert done.returncode == bool(refused) and refused in done.stderr, (bands, done.stderr)
    for bands in ["0,B04", "B04,", "-1"]:
        done = run(binary, *plan, "--bands", bands, mixed["folder"])
        assert done.returncode == 2 and "bands" in done.stderr, (bands, done.stderr)


def test_verify_notes_it(mixed, binary):
    for way in WAYS:
        if way == "table":
            continue
        more = ["--pixels"] if "container" in way else []
        source = sorted(mixed[way].iterdir()) if way == "folder" else [mixed[way]]
        done = run(binary, "verify", *more, *source)
        assert done.returncode == 0, done.stderr
        assert 'band 0 is \\"B08\\"' in done.stdout, (way, done.stdout)


def test_names_of_a_catalog_need_no_header(mixed, tmp_path, binary):
    chip = tmp_path / "0.tif"
    write(chip, ORDERS[0])
    assert run(binary, "index", "-o", tmp_path / "c.parquet", chip).returncode == 0
    before = chip.stat()
    chip.write_bytes(chip.read_bytes().replace(b">B04<", b">XXX<"))
    os.utime(chip, ns=(before.st_atime_ns, before.st_mtime_ns))
    with chaski.load(
        tmp_path / "c.parquet", batch_size=1, pixels=Pixels(bands=["B04"], dtype="native")
    ) as loader:
        (b,) = loader
    assert (b["image"] == VALUES["B04"]).all()


@pytest.mark.parametrize("cell", ['["B04"]', '["B02", "B04", "B08", "B11"]', "[]", "null", "[1]"])
@pytest.mark.parametrize("bands", [None, ["B04"], "position"])
def test_wrong_names_in_a_catalog(mixed, cell, bands):
    """The second row has names that are no names of its bands."""
    t = pq.read_table(mixed["catalog"])
    k = t.schema.get_field_index("chaski:bands")
    cells = [cell if i == 1 else '["B02", "B04", "B08"]' for i in range(N)]
    source = mixed["catalog"].with_name("wrong.parquet")
    pq.write_table(t.set_column(k, "chaski:bands", pa.array(cells)), source)
    with pytest.raises(chaski.CorruptError, match="names of bands in row 1"):
        batch(source, bands)
    with pytest.raises(chaski.CorruptError, match="names of bands in row 1"):
        chaski.stats(source, fields={"image": Field(bands=bands)})
    good = batch(source, bands, on_bad="skip")["valid"].tolist()
    assert good == [True, False, True, True]


def test_wrong_bands(mixed):
    for bands in ["name", "B04", ["position"], "positions"]:
        with pytest.raises((chaski.SpecError, chaski.NotFoundError), match="bands"):
            batch(mixed["folder"], bands)
    fields = {"image": {"bands": [0], "by_position": True}}
    with pytest.raises(chaski.SpecError, match="by_position"):
        chaski.load(mixed["folder"], batch_size=1, fields=fields)
