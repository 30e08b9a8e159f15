"""Lightning: a run resumed from a checkpoint gets the samples of an uninterrupted one."""

from __future__ import annotations

import warnings
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

pytestmark = [
    pytest.mark.usefixtures("binary"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]


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
        enable_checkpointing=bool(callbacks),
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
