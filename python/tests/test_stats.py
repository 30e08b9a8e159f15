"""chaski.stats: against numpy on chips that rasterio wrote; errors are of the right kind."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import rasters
from test_real import BAD, NODATA, RASTER, N, chips, copy_with_bad_file  # noqa: F401

import chaski
from chaski import _spec, _stats
from chaski._tables import Files

DEMO = RASTER.parent / "demo" / "coast.tif"

pytestmark = pytest.mark.usefixtures("binary")


def moments(x: np.ndarray) -> tuple[list[float], list[float]]:
    """Returns mean and deviation of every band of (n, b, y, x), without nodata."""
    bands = [x[:, b][x[:, b] != NODATA].astype(np.float64) for b in range(x.shape[1])]
    return [v.mean() for v in bands], [v.std() for v in bands]


def test_against_numpy(chips):  # noqa: F811
    folder, x = chips
    stats = chaski.stats(folder)
    mean, std = moments(x)
    assert stats["samples"] == N and "skipped" not in stats
    assert stats.mean().dtype == np.float64 and stats.mean().shape == (3,)
    np.testing.assert_allclose(stats.mean(), mean, rtol=1e-12)
    np.testing.assert_allclose(stats.std("image"), std, rtol=1e-9)
    assert stats == chaski.stats(folder, workers=1)


def test_a_real_scene():
    pixels = chaski.read(DEMO).astype(np.float64)
    stats = chaski.stats(DEMO)
    np.testing.assert_allclose(stats.mean(), pixels.mean((1, 2)), rtol=1e-12)
    np.testing.assert_allclose(stats.std(), pixels.std((1, 2)), rtol=1e-9)


def test_load_takes_it_and_its_file(chips, tmp_path):  # noqa: F811
    folder, x = chips
    stats = chaski.stats(folder)
    path = tmp_path / "stats.json"
    path.write_text("what was there before")
    stats.save(path)
    assert json.loads(path.read_text()) == stats
    assert os.listdir(tmp_path) == ["stats.json"]
    umask = os.umask(0)
    os.umask(umask)
    assert path.stat().st_mode & 0o777 == 0o666 & ~umask
    mean, std = (np.reshape(v, (3, 1, 1)) for v in moments(x))
    want = np.where(x == NODATA, 0, (x - mean) / std)
    for given in (stats, path, str(path), json.loads(path.read_text())):
        with chaski.load(
            folder, batch_size=N, shuffle=False, normalize="mean_std", stats=given
        ) as loader:
            (batch,) = loader
        assert np.abs(batch["image"] - want).max() < 1e-5


def test_fields(chips, tmp_path):  # noqa: F811
    folder, x = chips
    lines = [f"{p},{i}" for i, p in enumerate(sorted(folder.iterdir()))]
    (tmp_path / "t.csv").write_text("\n".join(["where,label", *lines]) + "\n")
    stats = chaski.stats(
        tmp_path / "t.csv", fields={"a": chaski.Field(column="where"), "label": "label"}
    )
    assert list(stats["fields"]) == ["a"]
    np.testing.assert_allclose(stats.mean("a"), moments(x)[0], rtol=1e-12)
    with pytest.raises(chaski.NotFoundError, match="no 'label'"):
        stats.mean("label")
    paired = chaski.stats(folder, fields={"b": "{id}.tif"})
    assert paired["fields"]["b"] == stats["fields"]["a"]


def test_the_part_that_trains(chips, tmp_path):  # noqa: F811
    """The statistics cover the rows after conditions and a split, one by one as in a loader."""
    folder, x = chips
    files = sorted(folder.iterdir())
    lines = [f"{p},{i}" for i, p in enumerate(files)]
    table = tmp_path / "t.csv"
    table.write_text("\n".join(["image,number", *lines]) + "\n")
    split = chaski.Split.by_column("number", {"train": 2, "val": 1}, seed=3)
    fields = {"image": chaski.Field(column="image", normalize="mean_std"), "number": "number"}
    seen: set[int] = set()
    for use in ("train", "val"):
        rows = chaski.Rows(split=split, where=[("number", ">", 1)], use=use)
        stats = chaski.stats(table, fields=fields, rows=rows)
        with chaski.load(
            table,
            fields={"image": "image", "number": "number"},
            rows=rows,
            batch_size=1,
        ) as loader:
            numbers = [int(b["number"][0]) for b in loader]
        assert stats["samples"] == len(numbers) > 0
        np.testing.assert_allclose(stats.mean(), moments(x[numbers])[0], rtol=1e-12)
        seen |= set(numbers)
    assert seen == set(range(2, N))


def test_a_band_without_a_pixel_has_no_mean(tmp_path):
    pytest.importorskip("rasterio")
    rasters.write(
        tmp_path / "a.tif",
        np.zeros((1, 16, 16), np.uint8),
        nodata=0,
        tiled=True,
        blockxsize=16,
        blockysize=16,
        compress="zstd",
    )
    stats = chaski.stats(tmp_path)
    assert np.isnan(stats.mean()).tolist() == np.isnan(stats.std()).tolist() == [True]


def test_bad_samples(chips, tmp_path):  # noqa: F811
    folder, name = copy_with_bad_file(chips[0], tmp_path)
    with pytest.raises(chaski.Error) as e:
        chaski.stats(folder)
    assert e.value.kind in ("corrupt", "limit", "unsupported")
    assert e.value.file == str(folder / name) and e.value.part
    stats = chaski.stats(folder, on_bad="skip")
    assert (stats["samples"], stats["skipped"]) == (N - 1, 1)
    np.testing.assert_allclose(stats.mean(), moments(np.delete(chips[1], 4, 0))[0], rtol=1e-12)


@pytest.mark.parametrize("m", [m for m in BAD if m["expect"] == "error"], ids=lambda m: m["path"])
def test_errors_are_those_of_read(m, tmp_path):
    """A directory whose name looks like a part of the message does not confuse the parser."""
    folder = tmp_path / "a: tag 1 at 3: b"
    folder.mkdir()
    path = folder / Path(m["path"]).name
    path.write_bytes((RASTER / m["path"]).read_bytes())
    with pytest.raises(chaski.Error) as want:
        chaski.read(path)
    with pytest.raises(chaski.Error) as e:
        chaski.stats(folder)
    assert type(e.value) is type(want.value)
    assert e.value.kind == want.value.kind and e.value.file == str(path)


def test_wrong_arguments(chips, tmp_path, monkeypatch):  # noqa: F811
    folder, _ = chips
    with pytest.raises(chaski.NotFoundError) as e:
        chaski.stats(tmp_path / "none")
    assert (e.value.file, e.value.part) == (str(tmp_path / "none"), "dataset")
    for options, match in [
        ({"fields": {}}, "empty"),
        ({"fields": "image"}, "fields"),
        ({"rows": chaski.Rows(where=("rank", "<", 3))}, "list"),
        ({"rows": chaski.Rows(where="")}, "where"),
        ({"rows": chaski.Rows(split=3)}, "split"),
        ({"rows": chaski.Rows(use="train")}, "use"),
        ({"rows": chaski.Rows(bbox=(1, 2, 3))}, "bbox"),
        ({"on_bad": "maybe"}, "maybe"),
        ({"on_bad": chaski.OnBad("replace")}, "on_bad"),
        ({"on_bad": chaski.OnBad("skip", max_count=1)}, "on_bad.*without a limit"),
        ({"on_bad": chaski.OnBad("skip", quarantine="f")}, "on_bad"),
        ({"workers": -1}, "workers"),
        ({"workers": 1.5}, "workers"),
        ({"workers": "all"}, "workers"),
        ({"timeout": 0}, "timeout"),
    ]:
        with pytest.raises(chaski.SpecError, match=match):
            chaski.stats(folder, **options)


def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str) -> None:
    path = tmp_path / "engine"
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    monkeypatch.setenv("CHASKI_BIN", str(path))


def test_a_command_that_hangs_is_killed(tmp_path, monkeypatch):
    fake(tmp_path, monkeypatch, f"echo $$ > {tmp_path}/pid; exec sleep 600")
    pid = tmp_path / "pid"
    for seconds in (2.0, 20.0, 200.0):  # a busy machine may not even have started it in 2 s
        with pytest.raises(chaski.DeadlineError):
            chaski.stats("d", timeout=seconds)
        if pid.exists() and pid.read_text().strip():
            break
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid.read_text()), 0)


@pytest.mark.parametrize("body", ["kill -9 $$", "exit 3"])
def test_a_command_that_does_not_answer(tmp_path, monkeypatch, body):
    fake(tmp_path, monkeypatch, body)
    with pytest.raises(chaski.EngineError):
        chaski.stats("d")


def test_max_chunk_lifts_the_limit(tmp_path, binary):
    """A frame of rumi is decoded whole: one of 81 MiB needs the option."""
    plain, large = tmp_path / "plain.tif", tmp_path / "large.tif"
    side = 9216
    rasters.write(plain, np.ones((1, side, side), np.uint8), compress="deflate")
    convert = [binary, "convert", "--to", "rumi", "--tile", str(side), "--max-chunk", "100000000"]
    subprocess.run([*convert, "-o", large, plain], check=True, capture_output=True)
    with pytest.raises(chaski.LimitError, match="max_chunk"):
        chaski.stats(large)
    assert chaski.stats(large, max_chunk=100 << 20).mean() == [1]


WRONG: tuple[tuple[dict[str, Any], str], ...] = (
    ({"classes": [1.5]}, "list of ints"),
    ({"classes": [1, 1]}, "once"),
    ({"classes": "ab"}, "list of ints"),
    ({"classes": 2.0}, "list of ints"),
)


@pytest.mark.parametrize("dtype", ["uint8", "int16"])
def test_weights_of_classes(tmp_path, dtype):
    """They are scikit-learn's "balanced": n / (k * count), over the classes that have pixels."""
    rng = np.random.default_rng(2)
    x = rng.choice(
        [0, 1, 3, -1 if dtype == "int16" else 255], (3, 1, 16, 16), p=[0.7, 0.2, 0.05, 0.05]
    )
    for i in range(3):
        np.save(tmp_path / f"{i}.npy", x[i].astype(dtype))
    field = {"mask": chaski.Field(nodata=[-1, 255])}
    stats = chaski.stats(tmp_path, fields=field)
    counts = stats["fields"]["mask"]["bands"][0]["classes"]
    assert counts == {str(k): (x == k).sum() for k in (0, 1, 3)}
    y = x[(x >= 0) & (x < 255)]
    n = np.bincount(y, minlength=4)
    want = np.divide(y.size, 3 * n, where=n > 0, out=np.zeros(4))
    got = chaski.weights(stats)
    assert got.dtype == np.float32 and np.allclose(got, want)
    assert np.allclose(chaski.weights(stats, classes=np.int64(6)), [*want, 0, 0])
    two = y[y != 0]  # as a lut orders them
    by_lut = chaski.weights(json.loads(json.dumps(stats)), classes=[3, 1])
    assert np.allclose(by_lut, [two.size / (2 * n[3]), two.size / (2 * n[1])])
    assert np.isclose(sum(by_lut * [n[3], n[1]]), two.size)
    for wrong, says in (
        ({"field": "image"}, "no 'image'"),
        ({"classes": [7]}, "none of those"),
        *WRONG,
    ):
        with pytest.raises(chaski.errors.Error, match=says):
            chaski.weights(stats, **wrong)


@pytest.mark.parametrize("lut", [{0: 2, 1: 0, 2: 1, 7: 255}, [2, 0, 1, 9, 9, 9, 9, 255]])
def test_weights_of_classes_that_a_lut_makes(tmp_path, lut):
    """They are in the order of the tensor, without the numbers that become fill."""
    stored = np.repeat([0, 1, 2, 7], [200, 30, 16, 10]).reshape(1, 16, 16).astype("uint8")
    np.save(tmp_path / "a.npy", stored)
    fields = {"mask": chaski.Field(lut=lut, dtype="int64", fill=255)}
    with chaski.load(tmp_path, fields=fields, batch_size=1) as loader:
        mask = next(iter(loader))["mask"]
    n = np.bincount(mask[mask < 255])
    stats = json.loads(json.dumps(chaski.stats(tmp_path, fields=fields)))
    assert np.allclose(chaski.weights(stats), n.sum() / (3 * n))
    assert np.allclose(chaski.weights(stats, classes=4), [*(n.sum() / (3 * n)), 0])
    assert np.allclose(chaski.weights(stats, classes=[1, 2, 0]), n.sum() / (3 * n))


def test_images_have_no_classes(tmp_path):
    np.save(tmp_path / "a.npy", np.zeros((3, 4, 4), "uint8"))
    stats = chaski.stats(tmp_path)
    assert "classes" not in stats["fields"]["image"]["bands"][0]
    with pytest.raises(chaski.SpecError, match="has no classes"):
        chaski.weights(stats, field="image")


EXAMPLES: dict[str, Any] = {
    "kind": "raster", "column": "a", "blob": "b", "pattern": "{id}.tif", "columns": ["a", "b"],
    "patterns": ["{id}a.tif", "{id}b.tif"], "scenes": ["x/"], "match": "nearest", "match_days": 3,
    "grid": 20.0, "classes": ["a"], "bands": [1], "times": [0], "pages": "bands", "sizes": {"p": 2},
    "split": " ",
    "dtype": "float32", "layout": "n (y p) x b", "lut": [1, 2], "physical": True, "scale": "s",
    "offset": "o", "normalize": "mean_std", "clip": True, "fill": 1, "nodata": [0], "pad": True,
    "validity": "ok", "resample": "nearest", "ground": "ignore", "vector": {"path": "s.parquet"},
    "wavelengths": [0.6], "gsd": 10, "dims": "y x b", "missing": "fill",
}  # fmt: skip


@pytest.mark.parametrize("member", [f.name for f in dataclasses.fields(chaski.Field)])
def test_every_member_of_a_field_goes_to_stats(monkeypatch, member):
    """What `stats` asks about a field is what `load` does."""
    asked = []

    def ask(line, timeout):
        asked.append(json.loads(Path(line[-1]).read_text()))
        return [b"{}"]

    monkeypatch.setattr(_stats, "ask", ask)
    assert member in EXAMPLES, "a new member needs an example"
    fields = {"image": chaski.Field(**{member: EXAMPLES[member]})}
    chaski.stats("chips/", fields=fields)
    options = _spec.SpecOptions(batch_size=1, fields=fields)
    loaded = _spec.build_spec("chips/", options, Files(fields, local=True))
    assert asked[0]["fields"] == loaded["fields"] and member in asked[0]["fields"]["image"]


@pytest.mark.parametrize("suffix", ["npy", "png"])
def test_paths_of_pictures(tmp_path, binary, suffix):
    """`kind` counts in Python, and in a spec of the command line."""
    for i in range(3):
        pixels = np.full((1, 8, 8), i, "uint8")
        if suffix == "npy":
            np.save(tmp_path / f"{i}.npy", pixels)
            continue
        rasters.write(tmp_path / f"{i}.png", pixels, dtype="uint8")
    table = tmp_path / "t.csv"
    table.write_text("image\n" + "".join(f"{i}.{suffix}\n" for i in range(3)))
    field = {"column": "image", "kind": "raster", "normalize": "mean_std", "dtype": "float32"}
    found = chaski.stats(table, fields={"image": field})
    assert found.mean("image") == pytest.approx([1])
    spec = tmp_path / "spec.json"
    spec.write_text(json.dumps({"source": str(table), "batch_size": 1, "fields": {"image": field}}))
    made = subprocess.run([binary, "stats", spec], check=True, capture_output=True).stdout
    assert json.loads(made)["fields"] == found["fields"]
    with pytest.raises(chaski.NotFoundError, match='no field of .* has rasters.*kind "raster"'):
        chaski.stats(table, fields={"image": chaski.Field(column="image")})
