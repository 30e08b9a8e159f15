"""Hugging Face's Trainer: a run resumed from a checkpoint gets the samples of a whole one."""

from __future__ import annotations

import itertools
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from conftest import nonempty
from test_real import N, chips  # noqa: F401

torch = pytest.importorskip("torch")

import chaski.torch  # noqa: E402

EPOCHS = 4
BATCH = 4
STEPS = -(-N // BATCH)

pytestmark = [
    pytest.mark.usefixtures("binary"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]


def dataset(folder: Path) -> chaski.torch.IterableDataset:
    return chaski.torch.IterableDataset(
        folder, batch_size=BATCH, seed=5, engine=chaski.Engine(workers=1)
    )


class Imitation:
    """Calls what Trainer calls: nothing says which epoch a DataLoader without set_epoch begins."""

    def __init__(self, loader: Any, accumulate: int) -> None:
        self.loader = loader
        self.callback_handler = SimpleNamespace(train_dataloader=None)
        self.args = SimpleNamespace(gradient_accumulation_steps=accumulate)
        self.state = SimpleNamespace(global_step=0)
        self.seen: list[list[int]] = []

    def train(self, done: int = 0) -> list[list[int]]:
        self.state.global_step = done
        self.callback_handler.train_dataloader = self.loader
        accumulate = self.args.gradient_accumulation_steps
        updates = -(-len(self.loader) // accumulate)
        for epoch in range(done // updates, EPOCHS):
            skip = done % updates * accumulate if epoch == done // updates else 0
            if hasattr(self.loader, "set_epoch"):
                self.loader.set_epoch(epoch)
            batches = itertools.islice(iter(self.loader), skip, None)  # as skip_first_batches
            while chunk := list(itertools.islice(batches, accumulate)):
                self.seen += [b["sample"][b["valid"]].tolist() for b in chunk]
                self.state.global_step += 1
            self.evaluate()
        return self.seen

    def evaluate(self) -> None:
        pass


@pytest.mark.parametrize("accumulate", [1, 4])
def test_every_step_resumes(chips, monkeypatch, accumulate):  # noqa: F811
    """Trainer's calls, where it is not installed."""
    trainer = ModuleType("transformers.trainer")
    trainer.Trainer = Imitation  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "transformers.trainer", trainer)
    whole = runs(lambda loader, done: Imitation(loader, accumulate).train(done), chips[0], 0)
    assert len(whole) == EPOCHS * STEPS
    assert len({str(s) for s in whole}) == len(whole), "an epoch is shuffled like another"
    updates = -(-STEPS // accumulate)
    for done in range(1, EPOCHS * updates):
        rest = runs(lambda loader, d: Imitation(loader, accumulate).train(d), chips[0], done)
        assert rest == whole[done // updates * STEPS + done % updates * accumulate :], done


def runs(train: Any, folder: Path, done: int) -> Any:
    """Returns what a function returns for a new loader and what was done before."""
    with dataset(folder) as d:
        return train(torch.utils.data.DataLoader(d, batch_size=None), done)


def test_evaluation_keeps_its_epoch(chips, monkeypatch):  # noqa: F811
    """Only the dataset that Trainer trains on follows its steps."""
    trainer = ModuleType("transformers.trainer")
    trainer.Trainer = Imitation  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "transformers.trainer", trainer)
    with dataset(chips[0]) as train, dataset(chips[0]) as held:
        epochs = []

        class Evaluates(Imitation):
            def evaluate(self) -> None:
                held.set_epoch(7)
                assert sum(int(b["valid"].sum()) for b in held) == N
                epochs.append(held.epoch)

        Evaluates(torch.utils.data.DataLoader(train, batch_size=None), 1).train()
        assert epochs == [8] * EPOCHS


@pytest.mark.parametrize("wrapped", [False, True])
@pytest.mark.parametrize("module", ["transformers.data.data_collator", "accelerate.x", "mine"])
def test_stacks_by_other_functions(chips, module, wrapped):  # noqa: F811
    """A DataLoader that Trainer or Accelerate makes is refused; a function of the user's is not."""

    def collate(items: list[Any]) -> Any:
        return items[0]

    collate.__module__ = module

    class Columns:
        data_collator = staticmethod(collate)

        def __call__(self, items: list[Any]) -> Any:
            return collate(items)

    with dataset(chips[0]) as d:
        loader = torch.utils.data.DataLoader(
            d, batch_size=8, collate_fn=Columns() if wrapped else collate
        )
        if module == "mine":
            assert next(iter(loader))["image"].ndim == 4
            return
        with pytest.raises(RuntimeError, match=r"DataLoader\(dataset, batch_size=None\)"):
            next(iter(loader))


class Model(torch.nn.Module):
    """Records the samples of every step."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(()))
        self.seen: list[list[int]] = []

    def forward(self, image: Any, sample: Any, valid: Any, **_: Any) -> dict[str, Any]:
        self.seen.append(sample[valid].tolist())
        return {"loss": (self.weight - image.float().mean()) ** 2}


def hugging_face(folder: Path, out: Path, prepared: bool = False, **options: Any) -> Any:
    """Returns a Trainer of a new model."""
    transformers = pytest.importorskip("transformers", reason="needs transformers and accelerate")
    pytest.importorskip("accelerate", reason="needs transformers and accelerate")

    class Trainer(transformers.Trainer):
        def get_train_dataloader(self) -> Any:
            loader = torch.utils.data.DataLoader(dataset(folder), batch_size=None)
            return self.accelerator.prepare(loader) if prepared else loader

    common = {"report_to": [], "disable_tqdm": True, "logging_strategy": "no", "use_cpu": True}
    when = {"num_train_epochs": EPOCHS, "save_strategy": "steps", "save_steps": 1}
    args = transformers.TrainingArguments(str(out), **{**common, **when, **options})
    return Trainer(Model(), args)


@pytest.mark.parametrize(
    "options",
    [{}, {"gradient_accumulation_steps": 4}, {"max_steps": 2 * STEPS + 3}, {"prepared": True}],
    ids=str,
)
def test_every_checkpoint_of_trainer_resumes(chips, tmp_path, options):  # noqa: F811
    trainer = hugging_face(chips[0], tmp_path, **options)
    trainer.train()
    whole = trainer.model.seen
    assert len(whole) == options.get("max_steps", EPOCHS * STEPS)
    assert len({str(s) for s in whole}) == len(whole), "an epoch is shuffled like another"
    accumulate = options.get("gradient_accumulation_steps", 1)
    updates = -(-STEPS // accumulate)
    found = sorted(tmp_path.glob("checkpoint-*"), key=lambda p: int(p.name.split("-")[1]))
    assert len(found) >= EPOCHS * updates // 2
    for path in nonempty(found[:-1]):
        done = int(path.name.split("-")[1])
        rest = hugging_face(chips[0], tmp_path / "again", save_strategy="no", **options)
        rest.train(resume_from_checkpoint=str(path))
        first = done // updates * STEPS + done % updates * accumulate
        assert rest.model.seen == whole[first:], path.name


def test_trainer_does_not_stack(chips, tmp_path):  # noqa: F811
    trainer = hugging_face(chips[0], tmp_path)
    transformers = sys.modules["transformers"]
    for size in (1, 8):
        trainer.args.per_device_train_batch_size = size
        stacks = transformers.Trainer(Model(), trainer.args, train_dataset=dataset(chips[0]))
        with pytest.raises(RuntimeError, match=r"DataLoader\(dataset, batch_size=None\)"):
            stacks.train()
