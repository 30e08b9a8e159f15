"""Lightning: a run resumed from a checkpoint gets the samples of an uninterrupted one.

With CHASKI_SOAK_KILLS, as in `make frameworks`, every module resumes from every checkpoint.
"""

from __future__ import annotations

import copy
import os
import pickle
import re
import warnings
from datetime import timedelta
from importlib.metadata import EntryPoints
from pathlib import Path
from typing import Any

import pytest
from test_real import N, chips  # noqa: F401

pytest.importorskip("torch")
lightning = pytest.importorskip("lightning")

import torch  # noqa: E402
from conftest import nonempty  # noqa: E402
from lightning.pytorch.callbacks import ModelCheckpoint  # noqa: E402

import chaski.torch  # noqa: E402

EPOCHS = 4
BATCH = 4
STEPS = -(-N // BATCH)
EVERY = "CHASKI_SOAK_KILLS" in os.environ

pytestmark = [
    pytest.mark.usefixtures("binary"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]


@pytest.fixture(autouse=True)
def installed(tmp_path_factory, monkeypatch):
    """Lightning finds the entry points of the project, as where pip has installed it."""
    project = (Path(__file__).parents[1] / "pyproject.toml").read_text()
    groups = re.findall(r'^\[project\.entry-points\."(.+)"\]\n(.+)\n', project, re.M)
    assert len(groups) == 2
    folder = tmp_path_factory.mktemp("site") / "chaski_eo-0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: chaski-eo\nVersion: 0\n")
    lines = (f"[{group}]\n{line}\n".replace('"', "") for group, line in groups)
    (folder / "entry_points.txt").write_text("".join(lines))
    monkeypatch.syspath_prepend(folder.parent)


class Module(lightning.LightningModule):
    """Records (epoch, sample ids) of every step of training and validation."""

    def __init__(self, folder: str, validation: bool = False) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(1, 1)
        self.folder = folder
        self.seen: list[tuple[int, list[int]]] = []
        self.validated: list[list[int]] = []
        self.validation = validation

    def train_dataloader(self) -> Any:
        return chaski.torch.IterableDataset(
            self.folder, batch_size=BATCH, seed=5, engine=chaski.Engine(workers=1)
        )

    def training_step(self, batch: dict[str, Any], _: int) -> torch.Tensor:
        samples = batch["sample"][batch["valid"]].tolist()
        self.seen.append((self.current_epoch, samples))
        return self.layer(batch["image"].mean().reshape(1, 1)).mean()

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.SGD(self.parameters(), lr=1e-9)


class Validated(Module):
    """The same, with validation."""

    def val_dataloader(self) -> Any:
        return chaski.torch.IterableDataset(
            self.folder, batch_size=BATCH, shuffle=False, engine=chaski.Engine(workers=1)
        )

    def on_validation_epoch_start(self) -> None:
        self.validated.append([])

    def validation_step(self, batch: dict[str, Any], _: int) -> None:
        self.validated[-1] += batch["sample"][batch["valid"]].tolist()


class Estimates(Module):
    """The same, with a schedule that asks how many steps there will be.

    Lightning then makes the loader before it reads the checkpoint, and does not load its state.
    """

    def configure_optimizers(self) -> torch.optim.Optimizer:
        assert self.trainer.estimated_stepping_batches > 0
        return super().configure_optimizers()


def fit(module: Module, *callbacks: Any, resume: Path | None = None, **options: Any) -> Module:
    trainer = lightning.Trainer(
        accelerator="cpu",
        devices=1,
        logger=False,
        enable_checkpointing=any(isinstance(c, ModelCheckpoint) for c in callbacks),
        callbacks=list(callbacks),
        enable_progress_bar=False,
        enable_model_summary=False,
        **{"max_epochs": EPOCHS, **options},
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        more = {} if resume is None else {"ckpt_path": str(resume), "weights_only": False}
        trainer.fit(module, **more)
    return module


def saves(folder: Path, **when: Any) -> ModelCheckpoint:
    return ModelCheckpoint(
        folder, filename="{epoch}-{step}", save_top_k=-1, save_on_exception=False, **when
    )


@pytest.mark.parametrize(
    ("when", "options"),
    [
        ({}, {}),  # at the end of every epoch: Lightning's default
        ({}, {"limit_train_batches": 4}),
        ({"every_n_train_steps": 1}, {}),  # at every step, also the last of an epoch
        ({"every_n_train_steps": 1}, {"limit_train_batches": 4}),
        ({"every_n_train_steps": 1}, {"max_steps": 2 * STEPS + 3, "max_epochs": -1}),
        ({}, {"reload_dataloaders_every_n_epochs": 1}),
        ({"every_n_train_steps": 2}, {"accumulate_grad_batches": 2}),
    ],
    ids=str,
)
@pytest.mark.parametrize("kind", [Module, Validated, Estimates])
def test_every_checkpoint_resumes(chips, tmp_path, kind, when, options):  # noqa: F811
    folder = str(chips[0])
    whole = fit(kind(folder), saves(tmp_path, **when), **options).seen
    epochs = [e for e, _ in whole]
    per_epoch = options.get("limit_train_batches", STEPS)
    assert [epochs.count(e) for e in range(max(epochs))] == [per_epoch] * max(epochs)
    assert len({str(s) for _, s in whole}) == len(whole), "an epoch is shuffled like another"
    found = sorted(tmp_path.glob("*.ckpt"))
    assert len(found) >= 3
    for path in nonempty(found):
        step = int(path.stem.split("step=")[1]) * options.get("accumulate_grad_batches", 1)
        near = step % per_epoch in (0, 1, 2, per_epoch - 1)
        if kind is not Module and when and not near and not EVERY:
            continue  # the plain module resumes from every step of an epoch
        if step % per_epoch and options.get("accumulate_grad_batches"):
            step = min(step, len(whole))
        if step >= len(whole):
            continue
        rest = fit(kind(folder), resume=path, **options).seen
        assert rest == whole[step:], path.name


@pytest.mark.parametrize("when", [{}, {"every_n_train_steps": 1}], ids=str)
def test_a_resumed_run_resumes(chips, tmp_path, when):  # noqa: F811
    """This holds for a run, too, that began after the last step of an epoch."""
    folder = str(chips[0])
    whole = fit(Module(folder), saves(tmp_path / "whole", **when)).seen
    last = tmp_path / "whole" / f"epoch=0-step={STEPS}.ckpt"
    fit(Module(folder), saves(tmp_path / "rest", every_n_train_steps=1), resume=last)
    for step in nonempty(range(STEPS + 1, 2 * STEPS)):
        path = tmp_path / "rest" / f"epoch=1-step={step}.ckpt"
        assert fit(Module(folder), resume=path).seen == whole[step:], path.name


@pytest.mark.parametrize("limit", [1.0, 2])
def test_every_validation_begins_at_the_first_sample(chips, limit):  # noqa: F811
    """This holds for the first epoch too, after Lightning's sanity batches."""
    seen = fit(Validated(str(chips[0])), limit_val_batches=limit).validated
    want = list(range(N if limit == 1.0 else limit * BATCH))
    assert seen == [list(range(2 * BATCH)), *[want] * EPOCHS]


def test_what_lightning_does_not_load_is_said(chips, tmp_path):  # noqa: F811
    """A run resumes exactly, or says that it does not."""
    folder = str(chips[0])
    fit(Estimates(folder), saves(tmp_path, every_n_train_steps=1))
    path = tmp_path / "epoch=1-step=12.ckpt"
    checkpoint = torch.load(path, weights_only=False)
    del checkpoint["loops"]["fit_loop"]["state_dict"]["combined_loader"]
    torch.save(checkpoint, path)
    quiet = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False}
    trainer = lightning.Trainer(accelerator="cpu", max_epochs=EPOCHS, **quiet)
    with pytest.warns(UserWarning, match="no state of the chaski dataset"):
        trainer.fit(Estimates(folder), ckpt_path=str(path), weights_only=False)


@pytest.mark.parametrize("package", ["lightning.pytorch", "pytorch_lightning"])
def test_each_package_finds_its_callback(package):
    trainer = pytest.importorskip(package).Trainer(accelerator="cpu", logger=False)
    (callback,) = (c for c in trainer.callbacks if type(c).__name__ == "Resume")
    callback.states = [{"epoch": 1}]
    again = pickle.loads(pickle.dumps(callback))  # as for processes that a Trainer spawns
    assert type(again).__name__ == "Resume" and again.states == callback.states


def test_a_package_that_is_not_installed_is_said(chips, tmp_path, monkeypatch):  # noqa: F811
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: EntryPoints())
    chaski.torch._check_installed.cache_clear()
    with chaski.torch.IterableDataset(chips[0], batch_size=BATCH) as dataset:
        with pytest.warns(UserWarning, match="not installed as a package"):
            dataset.batch_sampler.sampler.set_epoch(0)
    chaski.torch._check_installed.cache_clear()


class Scoring(Module):
    """The same, with weights by losses, which come in a hook: of the module, or of a callback."""

    def __init__(self, folder: str, weights: Path, hook: str, fails: int = -1) -> None:
        super().__init__(folder)
        self.weights, self.hook, self.fails = weights, hook, fails

    def train_dataloader(self) -> Any:
        self.data = super().train_dataloader()
        return self.data

    def add(self, batch: dict[str, Any]) -> None:
        loader = self.data.loader
        scores = loader.scores(self.weights)
        scores.add(batch, (batch["sample"] * 5 + self.global_step) % 7 + 0.1)
        if self.global_step % 3 == 1:
            loader.reweight(scores.weights() ** 3, folder=self.weights)

    def training_step(self, batch: dict[str, Any], i: int) -> torch.Tensor:
        if self.global_step == self.fails:
            raise RuntimeError("a step fails")
        if self.hook == "training_step":
            self.add(batch)
        return super().training_step(batch, i)

    def on_train_batch_end(self, outputs: Any, batch: dict[str, Any], _: int) -> None:
        if self.hook == "module":
            self.add(batch)


class Adds(lightning.Callback):
    """A user's own."""

    def on_train_batch_end(self, trainer, module, outputs, batch, batch_idx):
        if module.hook == "callback":
            module.add(batch)


class ValidatedScoring(Scoring, Validated):
    """The same, with validation."""


@pytest.mark.parametrize("hook", ["training_step", "module", "callback"])
@pytest.mark.parametrize(
    ("when", "options"),
    [
        ({"every_n_train_steps": 1}, {}),
        ({"every_n_train_steps": 2}, {"val_check_interval": 3}),
        ({"train_time_interval": timedelta(seconds=0)}, {"limit_train_batches": 4}),
        ({}, {"val_check_interval": 3}),  # saves at the end of a validation
        ({"every_n_epochs": 1, "save_on_train_epoch_end": True}, {}),
    ],
    ids=str,
)
def test_losses_count_in_any_hook(chips, tmp_path, hook, when, options):  # noqa: F811
    kind = ValidatedScoring if "val_check_interval" in options else Scoring
    folder = str(chips[0])

    def train(resume: Path | None = None, *callbacks: Any) -> tuple[Any, Any]:
        module = kind(folder, tmp_path / "w", hook)
        seen = fit(module, *callbacks, Adds(), resume=resume, **options).seen
        assert "on_train_batch_end" not in vars(module)
        assert not any("on_train_batch_end" in vars(c) for c in callbacks)
        return seen, str(module.data.loader.scores(tmp_path / "w").means.tolist())

    whole = train(None, saves(tmp_path, **when))
    plain = fit(Module(folder), **options).seen
    assert whole[0][:1] == plain[:1] and whole[0] != plain
    found = sorted(tmp_path.glob("*.ckpt"))
    if not EVERY:
        found = found[:: max(len(found) // 5, 1)]
    for path in nonempty(found):
        step = int(path.stem.split("step=")[1])
        if step < len(plain):
            assert train(path) == (whole[0][step:], whole[1]), path.name


@pytest.mark.parametrize("fails", [1, 2, STEPS - 1, STEPS, 2 * STEPS + 1])
def test_a_batch_whose_step_failed_comes_again(chips, tmp_path, fails):  # noqa: F811
    folder = str(chips[0])
    whole = fit(Scoring(folder, tmp_path / "w", "module")).seen
    module = Scoring(folder, tmp_path / "w", "module", fails)
    saved = ModelCheckpoint(tmp_path, "{step}", save_on_exception=True, save_last=True)
    with pytest.raises(RuntimeError, match="a step fails"):
        fit(module, saved)
    assert module.seen == whole[:fails] and "on_train_batch_end" not in vars(module)
    rest = fit(Scoring(folder, tmp_path / "w", "module"), resume=tmp_path / "last.ckpt").seen
    assert rest == whole[fails:]


def test_a_module_may_be_copied_meanwhile(chips, tmp_path):  # noqa: F811
    """Copies and pickles have the hook of their class."""

    class Copies(lightning.Callback):
        def on_train_batch_end(self, trainer, module, *_: Any) -> None:
            if trainer.global_step == 1:
                assert "on_train_batch_end" in vars(module)
                layer, module.data, trainer_of = module.layer, None, module._trainer
                module._trainer = None
                made.extend((copy.deepcopy(module), pickle.loads(pickle.dumps(module))))
                module._trainer = trainer_of
                assert layer is module.layer

    made: list[Any] = []
    fit(Scoring(str(chips[0]), tmp_path, "none"), saves(tmp_path), Copies(), max_epochs=1)
    for other in nonempty(made):
        assert other.on_train_batch_end.__self__ is other
        assert other.on_train_batch_end.__func__ is Scoring.on_train_batch_end


@pytest.mark.parametrize("batches", [1, 2, 0.5])
def test_overfitting_gets_the_same_batches_in_each_epoch(chips, batches):  # noqa: F811
    seen = [s for _, s in fit(Module(str(chips[0])), overfit_batches=batches).seen]
    n = batches if isinstance(batches, int) else int(STEPS * batches)
    assert len(seen) == EPOCHS * n and seen == EPOCHS * seen[:n]
    assert len({str(s) for s in seen}) == n
