"""The commands and blocks of the READMEs and of guide pages without their own test run."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import rasters
import recipes
from conftest import nonempty

import chaski

ROOT = Path(__file__).resolve().parents[2]
SIDE = 256


def page(name: str) -> str:
    return (ROOT / name).read_text()


def fenced(name: str, language: str) -> list[str]:
    found = re.findall(r"^```(\w*)\n(.*?)^```$", page(name), re.DOTALL | re.MULTILINE)
    return [text for said, text in found if said == language]


def blocks(name: str) -> list[str]:
    return fenced(name, "python")


def commands(name: str) -> list[str]:
    """Returns the lines of a page's blocks that begin with the command, without comments."""
    lines = "".join(fenced(name, "")).replace("\\\n", "").splitlines()
    return [line.split("  #")[0].strip() for line in lines if line.startswith("chaski ")]


@pytest.fixture
def data(binary: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with the files that the pages use."""
    pytest.importorskip("rasterio", reason="needs rasterio to write chips")
    r = np.random.default_rng(1)
    for folder in ("chips", "pairs/images", "pairs/masks"):
        (tmp_path / folder).mkdir(parents=True)

    def write(name: str, x: np.ndarray) -> None:
        tiles = {"tiled": True, "blockxsize": 256, "blockysize": 256, "compress": "zstd"}
        rasters.write(tmp_path / name, x, **tiles)

    for i in range(4):
        x = r.integers(1, 3000, (4, SIDE, SIDE), dtype=np.uint16)
        write(f"chips/{i}.tif", x)
        write(f"pairs/images/{i}.tif", x)
        write(f"pairs/masks/{i}.tif", (x[:1] > 2000).astype(np.uint8))
    write("chip.tif", r.integers(1, 3000, (4, 512, 512), dtype=np.uint16))
    shutil.copy(ROOT / "testdata/coast/coast.tacozip", tmp_path / "data.tacozip")
    monkeypatch.setenv("CHASKI_BIN", str(Path(binary).resolve()))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(binary: str, command: str, **options: object) -> subprocess.CompletedProcess[str]:
    """Runs a line of a page in a shell in which `chaski` is the engine."""
    env = {**os.environ, "PYTHONPATH": str(ROOT / "python/src")}
    line = f"{shlex.quote(str(Path(binary).resolve()))} {command.removeprefix('chaski ')}"
    done = subprocess.run(
        ["bash", "-c", line], capture_output=True, text=True, env=env, errors="replace"
    )
    assert done.returncode == 0, (command, done.stderr)
    return done


def test_commands_of_training(data, binary):
    lines = commands("docs/train.md")
    assert len(lines) == 9
    for line in lines:
        if line.startswith("chaski serve"):  # its flags: test_served below
            continue
        if " bench " in line:
            line += " --rounds 1 --seconds 0.1"
        run(binary, line)
    want = chaski.read("chip.tif", b=[3, 2, 1], y=(0, 512), layout="y x b")
    assert (np.load("rgb.npy") == want).all()
    for made in ("train.parquet", "stats.json", "rumi"):
        assert (data / made).exists(), made


def test_served(data, binary):
    line = next(c for c in commands("docs/train.md") if c.startswith("chaski serve"))
    line = line.replace(":7447", ":0 --insecure")
    with subprocess.Popen(
        [binary, *shlex.split(line)[1:]],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as server:
        try:
            assert server.stdout is not None
            target = json.loads(server.stdout.readline())["listen"]
            with chaski.connect(target, "chips/", batch_size=2) as loader:
                assert [len(b["image"]) for b in loader] == [2, 2]
        finally:
            server.terminate()


def test_quickstart_of_the_readme(binary, tmp_path):
    """It learns the labels of the scene, and a run that is killed goes on with the same losses."""
    pytest.importorskip("torch")
    pytest.importorskip("matplotlib")
    (block,) = blocks("README.md")
    binary = str(Path(binary).resolve())
    env = {**os.environ, "CHASKI_BIN": binary, "PYTHONPATH": str(ROOT / "python/src")}
    # The weights with which a network begins are no part of the program.
    line = [sys.executable, "-u", "-c", f"import torch\ntorch.manual_seed(1)\n{block}"]

    def folder(name: str) -> Path:
        here = tmp_path / name
        here.mkdir()
        (here / "testdata").symlink_to(ROOT / "testdata")
        return here

    def run(here: Path) -> list[str]:
        done = subprocess.run(line, env=env, cwd=here, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        assert (here / "map.png").read_bytes()[:4] == b"\x89PNG"
        return done.stdout.splitlines()

    whole = run(folder("whole"))
    losses = [float(line.split()[-1]) for line in whole]
    assert [line[:8] for line in whole] == ["epoch 0:", "epoch 1:", "epoch 2:"]
    assert losses[2] < 0.4  # of a network that guesses: 1.1
    here = folder("stopped")
    with subprocess.Popen(line, env=env, cwd=here, stdout=subprocess.PIPE, text=True) as p:
        assert p.stdout is not None
        assert p.stdout.readline() == whole[0] + "\n"
        p.kill()
    assert run(here) == whole[1:]


def test_workflows_run_what_the_test_command_runs():
    """But what needs the newest packages of an index, and a release, which takes half an hour."""
    asked = set[str]()
    for workflow in (ROOT / ".github/workflows").glob("*.yml"):
        text = workflow.read_text()
        asked.update(re.findall(r"- run: make ([a-z-]+)", text))
    here = re.findall(r"make ([a-z-]+)", page("tools/test.sh"))
    assert asked - set(here) == {"release-snapshot"} and "site" in asked


def test_quickstart_of_a_release(binary, tmp_path):
    """As CI runs it on other systems, and the check of a release."""
    (tmp_path / "chips").mkdir()
    shutil.copy(ROOT / "testdata/demo/coast.tif", tmp_path / "chips")
    done = subprocess.run(
        [sys.executable, ROOT / "tools/release/quickstart.py", "chips"],
        env={**os.environ, "PYTHONPATH": str(ROOT / "python/src")},
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert "(8, 6, 64, 64)" in done.stdout


def test_training_of_masks(data, binary):
    """The first block of models.md survives nodata of masks, and pixels without a label."""
    torch = pytest.importorskip("torch")
    rasterio = pytest.importorskip("rasterio")
    for i, nodata in enumerate([255, 7, None, None]):
        path = data / f"pairs/masks/{i}.tif"
        with rasterio.open(path) as f:
            mask, profile = f.read(), f.profile
        mask[:, 100:156] = nodata or 255  # in the third and fourth, a class that is no label
        rasters.write(path, mask, **{**profile, "nodata": nodata})
    seen = []
    handle = torch.nn.modules.module.register_module_forward_pre_hook(
        lambda _, given: seen.append(given[0].requires_grad_())
    )
    try:
        assert recipes.run(blocks("docs/models.md")[0], {}, {0, 1, 255})
    finally:
        handle.remove()
    assert {(tuple(x.shape), x.dtype) for x in seen} == {((4, 4, 96, 96), torch.float32)}
    counts = [x.grad.abs().amax((1, 2, 3)) > 0 for x in seen]
    assert [c.tolist() for c in counts] == [[True] * 4] * 5


NEEDS = re.compile(r"<!-- needs: ([\w ]+) -->\n```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def needed(name: str) -> list[tuple[list[str], str]]:
    """Returns the blocks of a page, each with the packages that it needs."""
    found = [(m[1].split(), m[2]) for m in NEEDS.finditer(page(name))]
    assert len(found) == len(blocks(name)) > 0
    return found


@pytest.mark.parametrize(
    ("name", "labels"),
    [("docs/augmentation.md", {1}), ("docs/augmentation.md", {1, 255}), ("docs/models.md", {0, 1})],
)
def test_blocks_with_other_packages(data, name, labels):
    """Blocks run in turn if their packages are installed; those that need only PyTorch always run.

    Masks keep their labels, or pixels are ignored.
    """
    rasterio = pytest.importorskip("rasterio")
    for path in sorted(data.glob("pairs/masks/*.tif")) if labels != {0, 1} else ():
        with rasterio.open(path, "r+") as f:
            x = np.where(f.read() > 0, 1, max(labels)).astype(np.uint8)
            f.write(x)
    pytest.importorskip("torch").manual_seed(1)
    lines = [f"pairs/images/{i}.tif,{i % 3}" for i in range(4)]
    Path("chips.csv").write_text("\n".join(["path,class", *lines]) + "\n")
    names: dict[str, object] = {}
    ran = 0
    for needs, block in nonempty(needed(name)):
        if all(importlib.util.find_spec(package) for package in needs):
            found = recipes.run(block, names, labels | {255})
            assert found or "mask" not in block or "for batch" not in block
            assert found == {1, 255} or "grid_sample" not in block  # of corners, too
            ran += 1
    assert ran


def simclr(names: dict) -> float:
    """The loss of the page's embeddings, view by view: each must find its partner among all."""
    x, z, n = names["x"].numpy(), names["z"].detach().numpy().astype(np.float64), 4
    assert np.array_equal(
        x, names["batch"]["image"].numpy().transpose(1, 0, 2, 3, 4).reshape(x.shape)
    )
    losses = []
    for i in range(2 * n):
        likeness = {j: z[i] @ z[j] / 0.1 for j in range(2 * n) if j != i}
        losses.append(np.log(sum(map(np.exp, likeness.values()))) - likeness[(i + n) % (2 * n)])
    assert np.allclose(np.linalg.norm(z, axis=1), 1)
    return float(np.mean(losses))


def dino(names: dict) -> float:
    """The loss of what student and teacher said, crop by crop."""
    batch, crops = names["batch"], names["crops"]
    want = [batch["image.128"][:, i] for i in range(2)] + [
        batch["image.48"][:, i] for i in range(6)
    ]
    assert all(np.array_equal(a, b) for a, b in zip(crops, want, strict=True))
    targets = [t.numpy() for t in names["targets"]]
    said = [s.detach().numpy() for s in names["said"]]
    assert np.allclose([t.sum(1) for t in targets], 1, atol=1e-5)
    each = [
        -np.mean([t @ s for t, s in zip(targets[i], said[j], strict=True)])
        for i in range(2)
        for j in range(8)
        if i != j
    ]
    assert len(each) == 14 == len(names["pairs"])
    return float(np.mean(each))


def dates(names: dict) -> float:
    """The loss of two dates. Each view of each date is a crop of its file, at one place of both."""
    rasterio = pytest.importorskip("rasterio")
    batch, found = names["batch"], set()
    files = []
    for i in range(4):
        with rasterio.open(f"chips/{i}.tif") as f:
            files.append(f.read())
    for k, place in enumerate(batch["sample"].tolist()):
        for v in range(2):
            first, second = batch["image"][k, v].numpy()
            corners = np.argwhere(files[2 * place][0, :161, :161] == first[0, 0, 0])
            (corner,) = [
                (y, x)
                for y, x in corners.tolist()
                if np.array_equal(files[2 * place][:, y : y + 96, x : x + 96], first)
            ]
            y, x = corner
            assert np.array_equal(files[2 * place + 1][:, y : y + 96, x : x + 96], second)
            found.add((k, v, y, x))
    for k in range(2):
        (_, _, y0, x0), (_, _, y1, x1) = sorted(f for f in found if f[0] == k)
        assert (96 - abs(y0 - y1)) * (96 - abs(x0 - x1)) >= 0.5 * 96 * 96
    a, b = (names[n].detach().numpy().astype(np.float64) for n in ("before", "after"))
    cosines = [p @ q / np.linalg.norm(p) / np.linalg.norm(q) for p, q in zip(a, b, strict=True)]
    return float(1 - np.mean(cosines))


def grounds(batch: dict, scene: np.ndarray) -> bool:
    """Reports whether views on the ground are crops of the scene that overlap as the page says."""
    assert batch["image.96"].shape == (4, 2, 4, 96, 96)
    assert batch["image.48"].shape == (4, 1, 4, 48, 48)
    for k in range(4):
        boxes = []
        for crop in (*batch["image.96"][k], *batch["image.48"][k]):
            side = crop.shape[-1]
            corners = np.argwhere(scene[0] == crop[0, 0, 0]).tolist()
            at = [
                c
                for c in corners
                if np.array_equal(scene[:, c[0] :][:, :side, c[1] :][..., :side], crop)
            ]
            boxes.append(at[0])
        (y, x), (y1, x1), (y2, x2) = boxes
        assert (96 - abs(y - y1)) * (96 - abs(x - x1)) >= 0.3 * 96 * 96
        assert 0 <= y2 - y <= 48 and 0 <= x2 - x <= 48
    return True


def test_self_supervised(data):
    """Losses and views are those that a slow computation has."""
    torch = pytest.importorskip("torch")
    torch.manual_seed(1)
    lines = [f"chips/{i}.tif,{i // 2},{2020 + i % 2}" for i in range(4)]
    Path("dates.csv").write_text("\n".join(["path,place,date", *lines]) + "\n")
    rasterio = pytest.importorskip("rasterio")
    scene = np.random.default_rng(3).integers(1, 3000, (4, 300, 400), np.uint16)
    Path("scenes").mkdir()
    place = rasterio.Affine(10, 0, 5e5, 0, -10, 4e6)
    rasters.write("scenes/0.tif", scene, transform=place, crs="EPSG:32630", dtype="uint16")
    names: dict = {}
    shapes, judges = [], [simclr, dino, dates]
    for block in nonempty(blocks("docs/self-supervised.md")):
        exec(block, names)
        if "ground" in names:
            assert grounds(names.pop("batch"), scene)
            del names["ground"]
        elif "loss" in block:
            loss = float(names["loss"].detach())
            assert np.isclose(loss, judges[len(shapes)](names), rtol=1e-4)
            batch = names["batch"]
            shapes.append([tuple(v.shape) for k, v in batch.items() if k.startswith("image")])
    assert shapes == [
        [(4, 2, 4, 96, 96)],
        [(4, 2, 4, 128, 128), (4, 6, 4, 48, 48)],
        [(2, 2, 2, 4, 96, 96)],
    ]


def classes_of(model, pixels: np.ndarray, stats) -> tuple[np.ndarray, np.ndarray]:
    """Returns what a model says of a whole scene at once, and where that is clear."""
    torch = pytest.importorskip("torch")
    valid = stats[:, stats[0] > 0].astype(np.float64)
    mean, std = valid.mean(1), valid.std(1)
    x = (pixels - mean[:, None, None]) / std[:, None, None]
    with torch.no_grad():
        scores = model(torch.from_numpy(x).float()[None])[0].softmax(0)
    top = scores.sort(0).values
    clear = (top[2] - top[1] > 1e-5).numpy() | (pixels[0] == 0)
    return np.where(pixels[0] == 0, 255, scores.argmax(0).numpy()), clear


def test_predict(data):
    """The classes are those of the whole scene at once, its place and nodata those of the scene."""
    torch, rasterio = pytest.importorskip("torch"), pytest.importorskip("rasterio")
    rng = np.random.default_rng(4)
    pixels = rng.integers(1, 99, (4, 160, 192), np.uint16)
    pixels[:, :20] = 0
    place = rasterio.Affine(10, 0, 5e5, 0, -10, 4e6)
    made = {"driver": "GTiff", "height": 160, "width": 192, "crs": "EPSG:32630", "transform": place}
    rasters.write("scene.tif", pixels, dtype="uint16", nodata=0, **made)
    rasters.write("labels.tif", rng.integers(0, 3, (1, 160, 192), np.uint8), **made)
    Path("scenes").mkdir()
    others = {}
    for name, (height, width) in {"east": (100, 130), "west": (64, 96)}.items():
        others[name] = rng.integers(0, 99, (4, height, width), np.uint16)
        here = made | {"height": height, "width": width}
        rasters.write(f"scenes/{name}.tif", others[name], dtype="uint16", nodata=0, **here)
    torch.manual_seed(1)
    model = torch.nn.Conv2d(4, 3, 1)
    names = {"model": model, "stats": chaski.stats("scene.tif")}
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        for block in nonempty(blocks("docs/predict.md")):
            exec(block, names)
    want, clear = classes_of(model, pixels, pixels)
    with rasterio.open("map.tif") as f:
        assert (f.crs, f.transform, f.nodata, f.dtypes) == (made["crs"], place, 255, ("uint8",))
        assert f.colormap(1)[1][:3] == (60, 140, 60)
        assert f.tags(ns="IMAGE_STRUCTURE")["LAYOUT"] == "COG"
        said = f.read(1)
    with chaski.load("map.tif", batch_size=1) as loader:
        assert loader.fields[0].classes == ("water", "wood", "field")
    assert np.array_equal(said[clear], want[clear]) and clear.mean() > 0.99
    with rasterio.open("labels.tif") as f:
        truth = f.read(1)
    inside = want != 255
    for c, line in nonempty(enumerate(out.getvalue().splitlines())):
        a, b = (want == c) & inside, (truth == c) & inside
        assert abs(float(line.split()[-1]) - (a & b).sum() / (a | b).sum()) < 0.006
    assert sorted(p.name for p in Path("maps").iterdir()) == ["east.tif", "west.tif"]
    assert not Path("maps.part").exists()
    for name, x in nonempty(others.items()):
        # A pixel counts where all bands are valid.
        x = np.where((x == 0).any(axis=0), 0, x)
        want, clear = classes_of(model, x, pixels)
        with rasterio.open(f"maps/{name}.tif") as f:
            assert (f.shape, f.transform, f.nodata) == (x.shape[1:], place, 255)
            said = f.read(1)
        clear &= x[0] > 0
        assert np.array_equal(said[clear], want[clear]) and clear.mean() > 0.9


def test_training_that_is_stopped(data, tmp_path, forks):
    """The block of docker-slurm.md goes on at the next step: no sample comes twice in an epoch."""
    ((_, block),) = needed("docs/docker-slurm.md")
    code = block.replace("/data/chips", str(data / "chips"))
    torn = code.replace("dataset.load_state_dict", "dataset.state_dict and print")
    stop = "        import sys; sys.exit(9)\n"

    def steps(folder, program, status):
        (folder / "train.py").write_text(program)
        log = folder / "log"
        assert forks("torch").run(["train.py"], log, folder).wait(500) == status, log.read_text()
        found = re.findall(r"^samples (\[.*\])$", log.read_text(), re.MULTILINE)
        return [json.loads(text) for text in found]

    good, other = tmp_path / "good", tmp_path / "torn"
    good.mkdir()
    first = steps(good, code + stop, 9)
    shutil.copytree(good, other)
    seen = first + steps(good, code, 0)
    assert [sorted(sum(seen[i : i + 2], [])) for i in (0, 2)] == [[0, 1, 2, 3]] * 2
    assert len(seen) == 4
    assert len(first + steps(other, torn, 0)) == 5  # without the state, an epoch begins again


def test_commands_of_resuming_and_operating(data, binary):
    """A run, its plan, one of its steps, and its bad samples."""
    (data / "chips/3.tif").write_bytes(b"no raster")
    window, on_bad = (
        chaski.RandomWindow((256, 256), 8),
        chaski.OnBad("skip", quarantine="bad.jsonl"),
    )
    with chaski.load("chips", batch_size=8, window=window, on_bad=on_bad) as loader:
        batches = iter(loader)
        last = next(batches)["image"].copy()
        last = next(batches)["image"].copy()
        state = loader.state_dict()
        (data / "state.json").write_text(json.dumps(state))
        (data / "spec.json").write_text(json.dumps(loader.spec))
        for _ in batches:
            pass
        names = {"loader": loader, "state": state}
        exec(blocks("docs/resume.md")[-1], names)
        assert names["batch"]["image"].tobytes() == last.tobytes()
    shutil.move(data / "chips/3.tif", data / "3.tif")
    run(binary, "index --format parquet -o train.parquet chips")
    shutil.move(data / "3.tif", data / "chips/3.tif")
    lines = commands("docs/resume.md") + commands("docs/operations.md")
    assert len(lines) == 5
    said = {}
    for line in lines:
        line = line.replace("--epoch 3 --step 120", "--epoch 3 --step 2")  # these four are few
        if not line.startswith("chaski verify"):
            said[line] = run(binary, line).stdout
    plan = said["chaski plan spec.json"]
    assert "  bad: 8\n" in plan and "chips/3.tif: header at 0: not a TIFF" in plan
    verified = ["verify", "--samples", "-o", "bad.jsonl", "spec.json"]
    assert " ".join(["chaski", *verified]) in lines
    assert subprocess.run([binary, *verified], check=False).returncode == 1
    assert json.loads(Path("bad.jsonl").read_text())["id"] == "3.tif"


def test_blocks_of_training(data, binary):
    pytest.importorskip("torch")
    first, torch_block, mask, tables, images = blocks("docs/train.md")
    chaski.stats("chips/").save("stats.json")
    names: dict[str, object] = {"torch": sys.modules["torch"]}
    exec(first.replace("range(10)", "range(1)"), names)
    assert names["batch"]["image"].shape == (4, 4, SIDE, SIDE)  # type: ignore[index]
    lines = [f"pairs/images/{i}.tif,pairs/masks/{i}.tif,{i}" for i in range(4)]
    Path("chips.csv").write_text("\n".join(["path,mask,class", *lines]) + "\n")
    assert recipes.run(mask, names, {0, 1})
    b = names["batch"]
    assert b["mask"].dtype == b["label"].dtype == np.int64 and b["mask"].shape == (4, SIDE, SIDE)  # type: ignore[index]
    assert sorted(b["label"]) == [0, 1, 2, 3]  # type: ignore[index]
    exec(tables, names)
    pq = pytest.importorskip("pyarrow.parquet")
    cells = [Path(f"chips/{i}.tif").read_bytes() for i in range(4)]
    pq.write_table(
        pytest.importorskip("pyarrow").table({"chip": cells, "label": range(4)}), "t.parquet"
    )
    exec(images.replace("data/train-*.parquet", "t.parquet"), names)
    assert names["batch"]["image"].shape == (4, 4, SIDE, SIDE)  # type: ignore[index]
    functional = names["torch"].nn.functional  # type: ignore[attr-defined]
    net, losses = names["torch"].nn.Conv2d(4, 4, 1), []  # type: ignore[attr-defined]
    exec(
        torch_block.replace("10)", "1)"),
        {**names, "net": net, "step": losses.append, "F": functional},
    )
    assert len(losses) == 1


def anchors(path: Path) -> set[str]:
    """Returns the anchors of a page's headings, as GitHub writes them."""
    text = re.sub(r"^```.*?^```$", "", path.read_text(), flags=re.DOTALL | re.MULTILINE)
    heads = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in heads}


def test_links_lead_somewhere():
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
    links = 0
    for path in pages:
        for target in re.findall(r"\]\(([^)\s]+)\)", path.read_text()):
            if re.match(r"[a-z]+:", target):
                continue
            file, _, anchor = target.partition("#")
            to = (path.parent / file).resolve() if file else path
            assert to.exists(), (path.name, target)
            assert not anchor or anchor in anchors(to), (path.name, target)
            links += 1
    assert links > 50
