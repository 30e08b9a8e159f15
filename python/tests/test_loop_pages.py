"""The blocks of pages about training loops run, and give the rows of a loop without them."""

from __future__ import annotations

import contextlib
import importlib.util
import itertools
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from conftest import nonempty
from test_pages import blocks

import chaski

torch = pytest.importorskip("torch")

import chaski.torch  # noqa: E402

CHIPS, SIZE = 7, 2
STEPS = -(-CHIPS // SIZE)
RESUME = "docs/exact-resume-in-frameworks.md"


@pytest.fixture
def chips(binary: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with chips whose pixels say which one each is, and with a table of them."""
    (tmp_path / "chips").mkdir()
    (tmp_path / "masks").mkdir()
    lines = ["path,mask,class"]
    for i in range(CHIPS):
        np.save(tmp_path / f"chips/{i}.npy", np.full((3, 8, 8), i + 1, np.uint8))
        np.save(tmp_path / f"masks/{i}.npy", np.zeros((1, 8, 8), np.uint8))
        lines.append(f"chips/{i}.npy,masks/{i}.npy,{i % 3}")
    (tmp_path / "chips.csv").write_text("\n".join(lines) + "\n")
    monkeypatch.setenv("CHASKI_BIN", str(Path(binary).resolve()))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def needs(*packages: str) -> None:
    for package in packages:
        pytest.importorskip(package)


def small(block: str) -> str:
    return block.replace("batch_size=64", f"batch_size={SIZE}")


def numbers(image: Any) -> list[int]:
    """Returns which chips a batch has."""
    return [int(x) for x in np.asarray(image)[:, 0, 0, 0]]


def undisturbed(epochs: int) -> list[list[int]]:
    with chaski.load("chips/", batch_size=SIZE) as loader:
        rows = [numbers(b["image"]) for _ in range(epochs) for b in loader]
    assert len({str(r) for r in rows}) > STEPS, "an epoch is shuffled like another"
    return rows


class Killed(Exception):
    """What the step raises in place of a kill."""


def until(rows: list[list[int]], most: int) -> Callable[..., None]:
    """Returns a step that notes its rows, and is killed in the one after so many."""

    def step(_: Any, image: Any) -> None:
        if len(rows) == most:
            raise Killed
        rows.append(numbers(image))

    return step


def dataset() -> chaski.torch.IterableDataset:
    return chaski.torch.IterableDataset("chips/", batch_size=SIZE)


def test_ddp(chips: Path) -> None:
    """It is killed before the first checkpoint, within an epoch and at its end."""
    block, rows = blocks(RESUME)[0], list[list[int]]()
    for most in (0, 2, STEPS, STEPS + 3, 1000):
        names = {"os": os, "torch": torch, "chaski": chaski, "rank": 0}
        names |= {"model": torch.nn.Linear(1, 1), "step": until(rows, most)}
        with contextlib.suppress(Killed):
            exec(small(block), names)
        assert len(rows) == min(most, 10 * STEPS)
    assert rows == undisturbed(10)


@pytest.mark.parametrize("changes", ["", "weights", "scores", "weights scores"])
def test_fsdp2(chips: Path, changes: str) -> None:
    """A new dataset has the rows, weights and means of the one that was saved."""
    import torch.distributed.checkpoint

    first, save, load = blocks(RESUME)[1].splitlines()
    assert ".save(" in save and ".load(" in load
    names: dict[str, Any] = {"torch": torch, "model": torch.nn.Linear(1, 1)}
    with dataset() as data:
        loop = iter(data)
        next(loop)
        if "weights" in changes:
            for step in (2, STEPS + 1):
                weights = np.arange(CHIPS) == step % CHIPS
                data.loader.reweight(weights, step, folder="w")
        if "scores" in changes:
            data.loader.scores("w").add({"sample": np.arange(3)}, np.ones(3))
        next(loop)
        exec("\n".join([first, save]), names | {"dataset": data})
        want = [numbers(b["image"]) for b in loop] + [numbers(b["image"]) for b in data]
    assert ([3] * SIZE in want) == ("weights" in changes)
    with dataset() as data:
        exec("\n".join([first, load]), names | {"dataset": data})
        rows = [numbers(b["image"]) for _ in range(2) for b in data]
        means = data.loader.scores("w").means
    assert rows == want
    assert np.count_nonzero(means == 1) == 3 * ("scores" in changes)


def test_states_of_datasets_are_those_of_loaders(chips: Path, binary: str) -> None:
    """As JSON, too, in Python and in Go."""
    with dataset() as data:
        for change in range(3):
            if change == 1:
                data.loader.reweight(np.ones(CHIPS), 1, folder="w")
            if change == 2:
                data.loader.scores("w").add({"sample": np.arange(3)}, np.ones(3))
            for state in (data.state_dict(), json.loads(json.dumps(data.state_dict()))):
                with chaski.load("chips/", batch_size=SIZE) as loader:
                    loader.load_state_dict(state)
                    assert loader.state_dict() == data.loader.state_dict()
                    Path("spec.json").write_text(json.dumps(loader.spec))
                Path("state.json").write_text(json.dumps(state))
                line = [binary, "explain", "--json", "--state", "state.json", "spec.json"]
                subprocess.run(line, check=True, capture_output=True)
                for wrong in ([1], [["path", 1]], "x", {"path": "x"}):
                    with pytest.raises(chaski.StateError, match="scores"):
                        data.load_state_dict(state | {"scores": wrong})


def test_torchdata(chips: Path) -> None:
    needs("torchdata")
    from torchdata.stateful_dataloader import StatefulDataLoader

    rows, loader = list[list[int]](), StatefulDataLoader(dataset(), batch_size=None)
    for batch in loader:
        rows.append(numbers(batch["image"]))
        if len(rows) == 2:
            torch.save(loader.state_dict(), "loader.pt")
            break
    names = {"StatefulDataLoader": StatefulDataLoader, "torch": torch, "dataset": dataset()}
    exec(blocks(RESUME)[2], names)
    rows += [numbers(b["image"]) for b in names["loader"]]
    assert rows == undisturbed(2)[:STEPS]


def test_accelerate(chips: Path) -> None:
    needs("accelerate")
    import accelerate

    accelerator, rows = accelerate.Accelerator(cpu=True), list[list[int]]()
    data = dataset()
    accelerator.register_for_checkpointing(data)
    for batch in data:
        rows.append(numbers(batch["image"]))
        if len(rows) == 2:
            accelerator.save_state("step-120")
            break
    names = {"chaski": chaski, "accelerator": accelerate.Accelerator(cpu=True), "model": None}
    names["step"] = until(rows, STEPS)
    exec(small(blocks(RESUME)[3]), names)
    assert rows == undisturbed(2)[:STEPS]


def test_ray(chips: Path) -> None:
    """With the calls of Ray that it makes, of which one has the last checkpoint."""
    kept: list[Path] = []

    class Checkpoint:
        def __init__(self, folder: Path) -> None:
            self.folder = folder

        @classmethod
        def from_directory(cls, folder: str) -> Checkpoint:
            return cls(Path(folder))

        @contextlib.contextmanager
        def as_directory(self) -> Any:
            yield str(self.folder)

    def report(_: Any, checkpoint: Checkpoint) -> None:
        kept.append(chips / f"kept-{len(kept)}")
        shutil.copytree(checkpoint.folder, kept[-1])

    train = SimpleNamespace(
        get_checkpoint=lambda: Checkpoint(kept[-1]) if kept else None, report=report
    )
    rows: list[list[int]] = []
    for most in (2, STEPS + 1, 1000):
        names = {"chaski": chaski, "torch": torch, "tempfile": tempfile, "model": None}
        names |= {"ray": SimpleNamespace(train=train), "Checkpoint": Checkpoint}
        names["step"] = until(rows, most)
        exec(small(blocks(RESUME)[4]), names)
        with contextlib.suppress(Killed):
            names["worker"]()
            if most > 2:  # one call is an epoch
                names["worker"]()
    assert rows[: 2 * STEPS] == undisturbed(2)


def test_lightning(chips: Path) -> None:
    needs("lightning")
    import lightning

    names: dict[str, Any] = {"lightning": lightning, "chaski": chaski}
    exec(small(blocks("docs/many-gpus.md")[0]), names)
    rows: list[list[int]] = []

    class Model(names["Model"]):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.net = torch.nn.Linear(1, 1)

        def training_step(self, batch: Any, _: int) -> Any:
            rows.append(numbers(batch["image"]))
            return self.net(batch["image"].float().mean().reshape(1, 1)).sum()

        def configure_optimizers(self) -> Any:
            return torch.optim.SGD(self.parameters(), lr=1e-9)

    quiet = {"logger": False, "enable_progress_bar": False, "enable_model_summary": False}
    trainer = lightning.Trainer(
        accelerator="cpu", devices=1, max_epochs=3, enable_checkpointing=False, **quiet
    )
    trainer.fit(Model())
    assert rows == undisturbed(3)


def test_transformers(chips: Path) -> None:
    needs("transformers", "accelerate")
    import accelerate
    import transformers

    rows: list[list[int]] = []

    class Model(torch.nn.Linear):
        def forward(self, image: Any, valid: Any, **_: Any) -> dict[str, Any]:  # type: ignore[override]
            if self.training:
                rows.append(numbers(image))
            mean = image.float().mean((1, 2, 3))[valid].mean()
            return {"loss": super().forward(mean.reshape(1, 1)).sum() * 0 + mean, "logits": image}

    quiet = {"report_to": [], "disable_tqdm": True, "logging_strategy": "no", "use_cpu": True}
    when: dict[str, Any] = {"num_train_epochs": 3, "save_strategy": "no"}
    own = SimpleNamespace(
        Trainer=transformers.Trainer,
        TrainingArguments=partial(transformers.TrainingArguments, **quiet, **when),
    )
    names = {"transformers": own, "accelerate": accelerate, "chaski": chaski, "model": Model(1, 1)}
    block = small(blocks("docs/many-gpus.md")[1]).replace('"mask"', '"valid"')
    exec(block.replace("val/", "chips/"), names)
    names["trainer"].train()
    assert rows == undisturbed(3)
    chip = np.arange(1, CHIPS + 1)
    want = np.mean([chip[first : first + SIZE].mean() for first in range(0, CHIPS, SIZE)])
    losses = [h["eval_loss"] for h in names["trainer"].state.log_history if "eval_loss" in h]
    assert losses == pytest.approx([want] * 3)


def test_accelerator_of_several_gpus(chips: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    needs("accelerate")
    import accelerate

    rows: list[list[int]] = []

    class Model(torch.nn.Linear):
        def forward(self, image: Any) -> Any:
            rows.append(numbers(image))
            return image.float().mean((1, 2, 3))

    monkeypatch.setattr(
        accelerate, "Accelerator", lambda: accelerate.accelerator.Accelerator(cpu=True)
    )
    model = Model(1, 1)
    names = {"accelerate": accelerate, "chaski": chaski, "model": model}
    names["optimizer"] = torch.optim.SGD(model.parameters(), lr=1e-9)
    exec(small(blocks("docs/many-gpus.md")[2]), names)
    assert rows == undisturbed(2)[:STEPS]
    assert float(names["loss"]) == pytest.approx(np.mean(rows[-1]))


def test_a_device(chips: Path) -> None:
    """On the CPU, with the fields of train.md, whose loss is that of whole arrays."""
    chaski.stats("chips/").save("stats.json")
    names: dict[str, Any] = {"chaski": chaski, "torch": torch}
    names["F"] = torch.nn.functional
    fields = next(b for b in blocks("docs/train.md") if b.startswith("fields = "))
    exec(fields.split("with ")[0], names)
    torch.manual_seed(0)
    net, losses = torch.nn.Sequential(torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten()), []
    names |= {"net": net, "step": losses.append}
    (block,) = blocks("docs/gpu.md")
    exec(small(block.replace('"cuda"', '"cpu"')), names)
    x = np.arange(1, CHIPS + 1, dtype=np.float64)
    x = (x - x.mean()) / x.std()
    assert len(losses) == STEPS
    # All bands of a chip are alike, so that each class has the probability 1/3.
    assert [float(v) for v in losses] == pytest.approx([np.log(3)] * STEPS, rel=1e-5)
    seen = names["batch"]["image"][:, 0, 0, 0].numpy()
    assert all(np.isclose(x, v, atol=1e-5).any() for v in seen)


def test_jobs(chips: Path) -> None:
    """Each line writes the statistics that numpy has."""
    block, _ = blocks("docs/jobs.md")  # the other one needs Spark: test_jobs.py
    block = block.replace("/shared/train.parquet", "chips").replace("/shared/", f"{chips}/")
    head, calls = block.split("\n\n")
    dask = SimpleNamespace(get_executor=lambda: ThreadPoolExecutor(2))
    # Processes that are forked from one with threads of PyTorch may hang.
    names = {"ProcessPoolExecutor": lambda: ThreadPoolExecutor(2), "dask_client": dask}
    lines = f"{head}\n{calls}".splitlines()
    first = [line for line in lines if not line.startswith("jobs.run")]
    exec("\n".join(first).split("jobs.run")[0], names)
    calls_made = 0
    for line in lines:
        if not line.startswith("jobs.run") or ('"ray"' in line and not has("ray")):
            continue
        exec(line.replace("200", "3"), names)
        calls_made += 1
        said = json.loads(Path("stats.json").read_text())["fields"]["image"]["bands"]
        x = np.repeat(np.arange(1, CHIPS + 1), 64)
        assert [(b["count"], b["mean"]) for b in said] == [(x.size, x.mean())] * 3
        assert [b["std"] for b in said] == pytest.approx([x.std()] * 3)
        Path("stats.json").unlink()
    assert calls_made >= 3


def has(package: str) -> bool:
    return importlib.util.find_spec(package) is not None


def test_ledger(chips: Path, binary: str) -> None:
    names: dict[str, Any] = {"chaski": chaski}
    (block,) = blocks("docs/ledger.md")
    exec(small(block.replace(", 64,", ", batch_size=64,")), names)
    with names["loader"] as loader:
        for _ in range(2):
            for _ in loader:
                pass

    def check(epochs: int) -> int:
        command = [binary, "ledger", "check", "--epochs", str(epochs), "runs/ledger"]
        return subprocess.run(command, check=False, capture_output=True).returncode

    assert (check(2), check(3)) == (0, 1)


def test_metrics(chips: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (block,) = blocks("docs/metrics.md")
    rows: list[list[int]] = []
    names = {"chaski": chaski, "train": lambda image: rows.append(numbers(image))}
    exec(small(block.replace("data/chips", "chips")), names)
    names["loader"].close()
    assert rows == undisturbed(2)[:STEPS]
    said = capsys.readouterr().out
    assert said.startswith("Is training bound by data?") and f"\n{CHIPS:9}" in said


def test_filtered_rows(chips: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    pytest.importorskip("pyarrow.compute")
    coast = Path(__file__).resolve().parents[2] / "testdata/coast/coast.tacozip"
    shutil.copy(coast, "coast.tacozip")
    every = chaski.taco.load("coast.tacozip").flatten()
    ids = sorted(set(every["l0:id"].to_pylist()))[1:3]
    names: dict[str, Any] = {"chaski": chaski, "pyarrow": pa, "ids": ids}
    (block,) = blocks("docs/sql.md")
    exec(block, names)
    with names["loader"] as loader:
        (batch,) = loader
    rasterio = pytest.importorskip("rasterio")
    want = set()
    for i in ids:
        with rasterio.open(coast.parent / f"coast_dir/DATA/{i}/s2/img.tif") as f:
            want.add(f.read().astype(np.float32).tobytes())
    assert len(want) == 2 and {x.tobytes() for x in batch["image"]} == want


def test_states(chips: Path) -> None:
    """What resume.md says of the next batch, and of the one before."""
    first, second = blocks("docs/resume.md")
    want = undisturbed(2)
    for block, step in ((first, 2), (second, 1)):
        with chaski.load("chips/", batch_size=SIZE) as loader:
            for batch in nonempty(itertools.islice(loader, 2)):
                assert numbers(batch["image"]) in want
            names: dict[str, Any] = {"loader": loader, "state": loader.state_dict()}
            exec(block, names)
            assert numbers(loader.peek()["image"]) == want[step]
