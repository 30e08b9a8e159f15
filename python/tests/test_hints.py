"""What a new user does wrong gets a sentence that says what to do."""

from __future__ import annotations

import copy
import json
import os
import pickle
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import rasters
import torch
from conftest import nonempty

import chaski
import chaski.torch

rasterio = pytest.importorskip("rasterio")


def pairs(root, ending="npy", folders=("images", "masks")):
    """Writes four images of three bands, and a mask for each."""
    place = {"crs": "EPSG:32630", "transform": rasterio.Affine(10, 0, 5e5, 0, -10, 4e6)}
    for folder, bands in zip(folders, (3, 1), strict=True):
        (root / folder).mkdir(parents=True)
        for i in range(4):
            a = np.full((bands, 16, 16), i + 1, "u1")
            path = root / folder / f"{i}.{ending}"
            if ending == "npy":
                np.save(path, a)
                continue
            driver = {"png": "PNG", "tif": "GTiff"}[ending]
            rasters.write(path, a, driver=driver, dtype="uint8", **place)
            (root / folder / f"{i}.png.aux.xml").unlink(missing_ok=True)
    return root


def said(*words, folder, **env):
    """Returns what a program writes to standard error."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", *map(str, words)],
        cwd=folder,
        env={**os.environ, **env},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done.stderr


# An engine of its own ends with the loader, and its log with it.
LOAD = (
    "import chaski, sys\n"
    "own = chaski.Engine(share=False)\n"
    "fields = {'image': 'images/{id}.' + sys.argv[2], 'mask': 'masks/{id}.' + sys.argv[2]}\n"
    "with chaski.load('.', batch_size=2, fields=eval(sys.argv[1]), engine=own) as loader:\n"
    "    assert loader.samples == int(sys.argv[3])\n"
)


@pytest.mark.parametrize("ending", ["npy", "png", "tif"])
def test_a_folder_of_pairs_names_its_patterns(tmp_path, binary, ending):
    """Images and masks that are samples side by side are told; pairs say nothing at all."""
    pairs(tmp_path, ending)
    text = said(LOAD, None, ending, 8, folder=tmp_path)
    assert text.count("give fields these patterns") == 1
    assert f"image=images/{{id}}.{ending} mask=masks/{{id}}.{ending}" in text
    assert said(LOAD, "fields", ending, 4, folder=tmp_path) == ""


def test_masks_of_another_format_are_not_lost(tmp_path, binary):
    """PNG masks beside images in TIFF, which a directory leaves out, are told too."""
    pairs(tmp_path, "tif", ("images", "others"))
    (pairs(tmp_path / "b", "png") / "masks").rename(tmp_path / "masks")
    shutil.rmtree(tmp_path / "b")
    shutil.rmtree(tmp_path / "others")
    text = said(LOAD, None, "tif", 4, folder=tmp_path)
    assert text.count("give fields these patterns") == 1
    assert "image=images/{id}.tif mask=masks/{id}.png" in text
    fields = "{'image': 'images/{id}.tif', 'mask': 'masks/{id}.png'}"
    assert said(LOAD, fields, "tif", 4, folder=tmp_path) == ""


@pytest.mark.parametrize("folders", [("cat", "dog"), ("images", "dates"), ("a/images", "a/masks")])
def test_other_folders_are_no_pairs(tmp_path, binary, folders):
    pairs(tmp_path, "npy", folders)
    assert said(LOAD, None, "npy", 8, folder=tmp_path) == ""


def test_the_note_about_pairs_is_information(tmp_path, binary):
    """An engine says it at level info, once for each opening, and never as a warning."""
    words = ["explain", pairs(tmp_path), "--batch", "2"]
    words += ["--field", "image=images/{id}.npy", "--field", "mask=masks/{id}.npy"]
    done = subprocess.run([binary, *words], capture_output=True, text=True, check=True)
    assert re.findall(r"(INFO|WARN).*paired by their sizes", done.stderr) == ["INFO"]


def test_normalize_speaks_of_mean_and_std(tmp_path, binary):
    folder = pairs(tmp_path) / "images"
    for wrong, message in nonempty([
        ("imagenet", r"(?s)imagenet.*dict with mean and std.*ImageNet.*123\.675.*58\.395"),
        (([0.4] * 3, [0.2] * 3), "dict with mean and std"),
        ({"mean": [1, 2], "std": [1, 1]}, "mean and std .* have 2 values for 3 bands"),
        ({"mean": [1, 2, 3], "std": [1, 1]}, "mean has 3 values and std has 2"),
        ("mean_std", "it needs stats, the result of chaski stats"),
    ]):  # fmt: skip
        with pytest.raises(chaski.SpecError, match=message):
            chaski.load(folder, batch_size=2, normalize=wrong)


def test_tilde_is_the_home_folder(tmp_path, binary, monkeypatch):
    """Every argument that is a path of this computer."""
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    pairs(tmp_path / "pairs", "tif")
    chaski.stats("~/pairs/images").save("~/stats.json")
    assert (tmp_path / "stats.json").exists()
    rows = chaski.Rows(bad="~/bad.jsonl")
    (tmp_path / "bad.jsonl").write_text("")
    engine = chaski.Engine(ledger="~/ledger", cache="~/cache", cache_bytes=1 << 20)
    how = {"normalize": "mean_std", "stats": "~/stats.json", "batch_size": 2, "rows": rows}
    how |= {"engine": engine, "on_bad": chaski.OnBad("skip", quarantine="~/list.jsonl")}
    for source in nonempty(["~/pairs/images", "~/pairs/images/*.tif", ["~/pairs/images/1.tif"]]):
        with chaski.load(source, **how) as loader:
            next(iter(loader))
    assert (tmp_path / "ledger").is_dir() and (tmp_path / "list.jsonl").exists()
    assert (tmp_path / "cache").is_dir()
    with chaski.load([{"image": "~/pairs/images/1.tif"}] * 2, batch_size=2) as loader:
        assert loader.samples == 2
    assert chaski.read("~/pairs/images/1.tif").shape == (3, 16, 16)
    assert chaski.info("~/pairs/images/1.tif")
    about = {"id": "a", "dataset_version": "1", "description": "a", "licenses": ["MIT"]}
    about |= {"providers": [{"name": "a"}], "tasks": ["other"]}
    one = [{"id": "a", "path": "~/pairs/images/1.tif"}]
    assert list(chaski.pack(one, "~/a.tacozip", about).ids) == ["a"]
    assert list(chaski.taco.load("~/a.tacozip").ids) == ["a"]
    item = {"type": "Feature", "stac_version": "1.0.0", "id": "a", "geometry": None, "links": []}
    item |= {"properties": {"datetime": "2024-01-01T00:00:00Z"}}
    item |= {"assets": {"B04": {"href": str(tmp_path / "pairs/images/1.tif")}}}
    assert chaski.stac([item], "~/scenes.parquet", ["B04"]) == tmp_path / "scenes.parquet"
    (tmp_path / "token").write_text("abc")
    assert chaski.Token.file("~/token").text() == "abc"
    with chaski.load("~/pairs/images", batch_size=1, shuffle=False, window=chaski.Grid(16)) as all_:
        parts = [(b["sample"], b["image"]) for b in all_][:1]
    chaski.paste(parts, "~/pairs/images/0.tif", "~/out.tif", grid=chaski.Grid(16))
    assert (tmp_path / "out.tif").exists()
    assert not (tmp_path / "work" / "~").exists()


@pytest.mark.parametrize(
    "modules,calls",
    [
        (["torch"], {"import chaski.torch": "chaski.torch needs PyTorch: pip install torch"}),
        (
            ["torchgeo", "terratorch", "pandas", "polars"],
            {
                "import chaski.torchgeo": "chaski.torchgeo needs TorchGeo: pip install torchgeo",
                "import chaski.terratorch": "chaski.terratorch needs TerraTorch: pip install ter",
                "dataset.to_pandas()": "to_pandas needs pandas (pip install pandas)",
                "dataset.to_polars()": "to_polars needs polars (pip install polars)",
            },
        ),
    ],
)
def test_what_is_not_installed_is_named(tmp_path, forks, modules, calls):
    """The error of an import says which package to install."""
    code = f"import sys\nsys.modules |= dict.fromkeys({modules})\nimport chaski.taco\n"
    code += "dataset = chaski.taco.Dataset.__new__(chaski.taco.Dataset)\n"
    for call in nonempty(calls):
        code += f"try:\n    {call}\nexcept ImportError as e:\n    print(e, file=sys.stderr)\n"
    (tmp_path / "calls.py").write_text(code)
    log = tmp_path / "log"
    imported = forks("torch") if "torch" not in modules else forks("numpy")
    assert imported.run(["calls.py"], log, tmp_path).wait(300) == 0, log.read_text()
    lines = log.read_text().splitlines()
    assert len(lines) == len(calls)
    for line, message in nonempty(zip(lines, calls.values(), strict=True)):
        assert line.startswith(message)


def test_options_of_an_open_loader_stay(tmp_path, binary):
    """Setting one is an error that says what works, and that works."""
    folder = pairs(tmp_path) / "images"
    with chaski.load(folder, batch_size=2) as loader:
        for o in nonempty([loader, chaski.torch.IterableDataset(loader)]):
            for name in nonempty(["batch_size", "shuffle", "rank"]):
                with pytest.raises(AttributeError, match=f"open another one with {name}=1"):
                    setattr(o, name, 1)
            with pytest.raises(AttributeError, match=r"set_epoch\(3\)"):
                o.epoch = 3
        assert loader.batch_size == 2
        next(iter(loader))
        state = loader.state_dict()
    with chaski.load(folder, batch_size=1) as loader:
        loader.load_state_dict(state, strict=False)
        assert len(list(loader)) == 2  # of four samples two were there


def test_a_container_that_is_not_there_is_missed_at_once(tmp_path, binary):
    with pytest.raises(chaski.NotFoundError, match=r"nope\.tacozip: container: not found") as e:
        chaski.taco.load(tmp_path / "nope.tacozip")
    assert e.value.kind == "not found" and e.value.file == str(tmp_path / "nope.tacozip")


def test_the_faq_has_what_pytorch_refuses(tmp_path, binary):
    """PyTorch's own sentences, which it says before it asks the dataset, and what works instead."""
    data = torch.utils.data
    dataset = chaski.torch.IterableDataset(pairs(tmp_path) / "images", batch_size=2)
    faq = " ".join((Path(__file__).parents[2] / "docs" / "faq.md").read_text().split())
    for refused in nonempty([
        lambda: data.DataLoader(dataset, batch_size=None, shuffle=True),
        lambda: data.ConcatDataset([dataset, dataset]),
    ]):  # fmt: skip
        with pytest.raises((ValueError, AssertionError)) as e:
            refused()
        quoted = [q for q in re.findall(r'\*\*"([^"]+)"\*\*', faq) if q in str(e.value)]
        assert len(quoted) == 1, e.value
    with pytest.raises(ValueError, match="expected unspecified sampler option"):
        data.DataLoader(dataset, batch_size=None, sampler=[0])
    parts = data.random_split(dataset, [1, 1])
    with pytest.raises(TypeError, match="MapDataset of the same arguments .*random_split"):
        next(iter(data.DataLoader(parts[0])))
    samples = chaski.torch.MapDataset(tmp_path / "images")
    for part in nonempty(data.random_split(samples, [3, 1])):
        loader = data.DataLoader(part, batch_size=4, shuffle=True)
        assert len(next(iter(loader))["image"]) == len(part)
    mixture = chaski.Mixture(dict.fromkeys("ab", tmp_path / "images"), until="longest")
    mixed = chaski.torch.IterableDataset(mixture, batch_size=2)
    seen = {
        (int(source), int(sample))
        for batch in data.DataLoader(mixed, batch_size=None)
        for source, sample in zip(batch["source"], batch["sample"], strict=True)
    }
    assert {source for source, _ in seen if source >= 0} == {0, 1}
    assert len([pair for pair in seen if pair[0] >= 0]) == 8


def test_what_a_dataset_of_batches_is_not(tmp_path, binary):
    """Samples by index, attributes and wrong names are told what there is."""
    folder = pairs(tmp_path) / "images"
    dataset = chaski.torch.IterableDataset(folder, batch_size=2)
    subset = torch.utils.data.Subset(dataset, [1])
    for ask in nonempty([lambda: dataset[0], lambda: subset[0]]):
        with pytest.raises(TypeError, match="MapDataset of the same arguments gives samples by"):
            ask()
    assert chaski.torch.MapDataset(folder)[0]["image"].shape == (3, 16, 16)
    (batch, *_) = dataset
    with pytest.raises(AttributeError, match=r"it is a dict, without an attribute 'to': .*device="):
        batch.to("cpu")
    with pytest.raises(KeyError, match=r"masks: there are \['image', "):
        batch["masks"]
    same = pickle.loads(pickle.dumps(batch))
    assert type(same) is type(batch) and same.axes == batch.axes
    assert torch.equal(same["image"], batch["image"]) and copy.copy(batch).keys() == batch.keys()


@pytest.mark.parametrize("kind", [chaski.torch.IterableDataset, chaski.torch.MapDataset])
def test_copies_of_a_dataset_say_what_they_are(tmp_path, binary, kind):
    options = {"batch_size": 2} if kind is chaski.torch.IterableDataset else {}
    with kind(pairs(tmp_path) / "images", **options) as dataset:
        for copied in (copy.copy, copy.deepcopy, lambda d: pickle.loads(pickle.dumps(d))):
            for use in (lambda d: next(iter(d)), lambda d: d[0], lambda d: d.loader, len):
                with pytest.raises((RuntimeError, TypeError)) as e:
                    use(copied(dataset))
                said = "a copy of a chaski dataset, whose loader stays", "gives whole batches"
                assert any(text in str(e.value) for text in said)
        other = copied(dataset)
        other._copied_in += 1
        with pytest.raises(RuntimeError, match="not work in another process than its own"):
            len(other)
        assert len(dataset) in (2, 4)


@pytest.mark.parametrize("open_", [chaski.load, chaski.torch.IterableDataset])
def test_torch_load_takes_a_batch_that_torch_saved(tmp_path, binary, open_):
    """By its default, which takes no classes of packages: tensors, text and ragged fields."""
    square = {"type": "Polygon", "coordinates": [[[1, 1], [5, 1], [5, 5], [1, 5], [1, 1]]]}
    shapes = {"type": "FeatureCollection", "features": []}
    shapes["features"] = [{"type": "Feature", "properties": {}, "geometry": square}]
    folder = pairs(tmp_path / "a", "npy") / "images"
    (tmp_path / "boxes").mkdir()
    for i in range(4):
        (tmp_path / f"boxes/{i}.geojson").write_text(json.dumps(shapes))
    boxes = chaski.Vector(pattern="../../boxes/{id}.geojson", kind="boxes", crs="pixels")
    fields = {"image": "{id}.npy", "name": chaski.Field(pattern="{id}.npy", kind="text")}
    with open_(folder, batch_size=4, fields=fields | {"boxes": boxes}, shuffle=False) as batches:
        batch = next(iter(batches))
    torch.save({"batch": batch, "step": 3}, tmp_path / "b.pt")
    same = torch.load(tmp_path / "b.pt")["batch"]
    assert list(same) == list(batch) and same["name"] == [f"{i}.npy" for i in range(4)]
    for i in range(4):
        assert (same["image"][i] == i + 1).all()
    offsets, values = same["boxes"]
    assert offsets.tolist() == [0, 1, 2, 3, 4] and values.tolist() == [[1, 1, 5, 5]] * 4


@pytest.mark.parametrize(
    "given,said",
    [
        (True, "stats is True: it must be what chaski.stats"),
        (["a"], r"stats is \['a'\]: it must be what"),
        (".", r"stats is '\.', a directory: it must be what"),
        ("nope.json", r"stats is 'nope.json': not found: it must be"),
        ("a.npy", r"stats is 'a.npy': .*decode.*: it must be what"),
        ({"fields": 3}, r"stats is {'fields': 3}: it must be what"),
        ({"mean": [1.0], "std": [2.0]}, r"'mean' is no field with bands.*Field\(normalize={"),
        ({"image": {"mean": [1.0], "std": [2.0]}}, "'image' is no field with bands.*normalize={"),
    ],
)
def test_what_is_no_statistics(tmp_path, monkeypatch, given, said):
    monkeypatch.chdir(tmp_path)
    np.save(tmp_path / "a.npy", np.zeros((1, 8, 8), "u1"))
    with pytest.raises((chaski.SpecError, chaski.NotFoundError), match=said):
        chaski.load("a.npy", batch_size=1, stats=given, normalize="mean_std")


def test_masks_of_three_bands_are_told_to_pick_one(tmp_path, binary):
    """As programs write that make pictures of masks: for the layout and for weights."""
    folder = pairs(tmp_path, "tif") / "images"
    with pytest.raises(chaski.SpecError, match=r"axis b of length 3 is left out: bands=\[0\] pic"):
        chaski.load(folder, batch_size=2, fields={"mask": {"layout": "n y x"}})
    fields = {"mask": {}}
    with pytest.raises(chaski.SpecError, match=r"'mask' has no classes: it has 3 .* bands=\[0\]"):
        chaski.weights(chaski.stats(folder, fields=fields))
    fields = {"mask": {"bands": [0], "layout": "n y x"}}
    assert len(chaski.weights(chaski.stats(folder, fields=fields))) == 5
    with chaski.load(folder, batch_size=2, fields=fields) as loader:
        assert next(iter(loader))["mask"].shape == (2, 16, 16)


def test_an_error_has_one_frame_of_ours(tmp_path, binary):
    """Of whatever finds that a path is wrong, or a file."""
    for name in nonempty("ab"):
        np.save(tmp_path / f"{name}.npy", np.zeros((1, 8, 8), "u1"))
    nope, cut = tmp_path / "nope.tif", tmp_path / "b.npy"
    loader = chaski.load(tmp_path / "*.npy", batch_size=1, shuffle=False)
    cut.write_bytes(cut.read_bytes()[:-9])
    for call in nonempty([
        lambda: chaski.read(nope),
        lambda: chaski.info(nope),
        lambda: chaski.load(nope, batch_size=1),
        lambda: chaski.load([{"image": str(nope)}], batch_size=1),
        lambda: chaski.torch.IterableDataset(nope, batch_size=1),
        lambda: chaski.stats(nope),
        lambda: chaski.paste([], nope, tmp_path / "o.tif", grid=chaski.Grid(8)),
        lambda: chaski.taco.load(tmp_path / "nope.tacozip"),
        lambda: list(loader),
        lambda: loader.sample(1),
        lambda: loader.fetch([1]),
    ]):  # fmt: skip
        with pytest.raises(chaski.Error) as e:
            call()
        folder = Path(chaski.__file__).parent
        ours = [f for f in e.traceback if folder in Path(f.path).parents]
        assert len(ours) == 1 and e.value.__cause__ is None, call
        assert e.value.__context__ is None or e.value.__suppress_context__, call
    loader.close()


def test_a_glob_of_a_field_is_told_the_pattern(tmp_path):
    rasters.write(tmp_path / "a.tif", np.ones((1, 4, 4), "u1"))
    with pytest.raises(chaski.NotFoundError, match=r'by a pattern, such as "images/\{id\}.tif"'):
        chaski.load(tmp_path, batch_size=1, fields={"image": "images/*.tif"})


@pytest.mark.parametrize(
    "options, said",
    [
        ({"tables": "t.csv"}, r"tables is 't.csv': write \{'t.csv': column\}"),
        ({"rows": chaski.Rows(ids=["9"])}, "no id of ids-in-memory-1.txt names a sample"),
        ({"rows": chaski.Rows(bbox=(0, 0, 1, 1))}, "'chaski index' makes a catalog of rasters"),
        *(
            (
                {"rows": chaski.Rows(split=split(1.0, {"a": 0.5, "b": 0.5}), use="a")},
                "'chaski index'",
            )
            for split in (chaski.Split.by_cell, chaski.Split.by_lonlat)
        ),
    ],
)
def test_what_a_folder_lacks_is_said_by_its_name(tmp_path, options, said):
    rasters.write(tmp_path / "a.tif", np.ones((1, 4, 4), "u1"))
    (tmp_path / "t.csv").write_text("id,y\na,1\n")
    with pytest.raises((chaski.NotFoundError, chaski.SpecError), match=said):
        chaski.load(tmp_path, batch_size=1, **options)


def test_a_command_has_the_kinds_of_its_errors(tmp_path, binary):
    nope = tmp_path / "nope.tif"
    item = {"type": "Feature", "id": "a", "geometry": None, "links": []}
    item |= {
        "properties": {"datetime": "2024-01-01T00:00:00Z"},
        "assets": {"red": {"href": str(nope)}},
    }
    out = tmp_path / "o.parquet"
    for call in nonempty([
        lambda: chaski.stac(tmp_path / "nope.tif.json", out, ["red"]),
        lambda: chaski.stac([item], out, ["red"]),
        lambda: chaski.pack(nope, tmp_path / "o.tacozip"),
        lambda: chaski.jobs.run(["stats", "-o", f"{tmp_path}/s.json", nope], 1),
    ]):  # fmt: skip
        with pytest.raises(FileNotFoundError, match="nope.tif") as e:
            call()
        assert isinstance(e.value, chaski.NotFoundError)
