"""Hugging Face's Trainer: a run resumed from a checkpoint gets the samples of a whole one."""

from __future__ import annotations

import itertools
import sys
import warnings
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


class Told(torch.utils.data.DataLoader):  # type: ignore[type-arg]
    """Tells its dataset the epoch, as DataLoaderShard of Accelerate does."""

    def set_epoch(self, epoch: int) -> None:
        self.dataset.set_epoch(epoch)  # type: ignore[attr-defined]


@pytest.mark.parametrize("accumulate", [1, 4])
def test_every_step_resumes(chips, accumulate):  # noqa: F811
    """Trainer's calls, where it is not installed."""

    def train(done: int) -> list[list[int]]:
        with dataset(chips[0]) as d:
            loader, seen = Told(d, batch_size=None), []
            for epoch in range(done // updates, EPOCHS):
                skip = done % updates * accumulate if epoch == done // updates else 0
                loader.set_epoch(epoch)
                batches = itertools.islice(iter(loader), skip, None)  # as skip_first_batches
                seen += [b["sample"][b["valid"]].tolist() for b in batches]
        return seen

    updates = -(-STEPS // accumulate)
    whole = train(0)
    assert len(whole) == EPOCHS * STEPS
    assert len({str(s) for s in whole}) == len(whole), "an epoch is shuffled like another"
    for done in range(1, EPOCHS * updates):
        assert train(done) == whole[done // updates * STEPS + done % updates * accumulate :], done


@pytest.mark.parametrize("told", ["epoch", "state", "order", ""])
def test_an_epoch_that_nobody_told_is_said(chips, monkeypatch, told):  # noqa: F811
    monkeypatch.setitem(sys.modules, "transformers.trainer", ModuleType("transformers.trainer"))
    with chaski.torch.IterableDataset(chips[0], batch_size=BATCH, shuffle=told != "order") as d:
        if told == "epoch":
            d.set_epoch(0)
        elif told == "state":
            d.load_state_dict(d.state_dict())
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            for _ in range(2):
                next(iter(torch.utils.data.DataLoader(d, batch_size=None)))
        about = [w for w in said if "DataLoaderShard" in str(w.message)]
        assert len(about) == (told == "")


@pytest.mark.parametrize("size", [1, 8])
def test_whole_batches_are_not_stacked(chips, size):  # noqa: F811
    with dataset(chips[0]) as d:
        with pytest.raises(RuntimeError, match=r"DataLoader\(dataset, batch_size=None\)"):
            next(iter(torch.utils.data.DataLoader(d, batch_size=size)))
        mine = torch.utils.data.DataLoader(d, batch_size=size, collate_fn=lambda items: items[0])
        assert next(iter(mine))["image"].ndim == 4


@pytest.mark.parametrize("wrapped", [False, True])
@pytest.mark.parametrize("module", ["transformers.data.data_collator", "accelerate.x", "mine"])
def test_stacks_by_other_functions(chips, monkeypatch, module, wrapped):  # noqa: F811
    """A DataLoader that Trainer or Accelerate makes is refused; a function of the user's is not."""

    def collate(items: list[Any]) -> Any:
        return items[0]

    collate.__module__ = module

    class Columns:
        data_collator = staticmethod(collate)

        def __call__(self, items: list[Any]) -> Any:
            return collate(items)

    state = ModuleType("accelerate.state")
    monkeypatch.setitem(sys.modules, "accelerate.state", state)
    with dataset(chips[0]) as d:
        loader = torch.utils.data.DataLoader(
            d, batch_size=8, collate_fn=Columns() if wrapped else collate
        )
        state.GradientState = lambda: SimpleNamespace(active_dataloader=loader)  # type: ignore[attr-defined]
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


def hugging_face(
    folder: Path, out: Path, model: Model | None = None, prepared: bool = False, **options: Any
) -> Any:
    """Returns a Trainer of a model, by default a new one."""
    transformers = pytest.importorskip("transformers", reason="needs transformers and accelerate")
    pytest.importorskip("accelerate", reason="needs transformers and accelerate")
    from accelerate.data_loader import DataLoaderShard

    class Trainer(transformers.Trainer):
        def get_train_dataloader(self) -> Any:
            if prepared:
                loader = torch.utils.data.DataLoader(dataset(folder), batch_size=None)
                return self.accelerator.prepare(loader)
            return DataLoaderShard(dataset(folder), batch_size=None)

    common = {"report_to": [], "disable_tqdm": True, "logging_strategy": "no", "use_cpu": True}
    when = {"num_train_epochs": EPOCHS, "save_strategy": "steps", "save_steps": 1}
    args = transformers.TrainingArguments(str(out), **{**common, **when, **options})
    return Trainer(model or Model(), args)


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


class Weighing(Model):
    """Changes the weights of samples meanwhile."""

    loader: chaski.Loader

    def __init__(self, folder: Path, done: int) -> None:
        super().__init__()
        self.folder, self.done = folder, done

    def forward(self, image: Any, sample: Any, valid: Any, **_: Any) -> dict[str, Any]:
        loader, step = self.loader, self.done + len(self.seen)
        scores = loader.scores(self.folder)
        scores.add({"sample": sample, "valid": valid}, (sample * 5 + step) % 7 + 0.1)
        if step % 5 == 1:
            ahead = (step // STEPS - loader.epoch) * STEPS + step % STEPS + 6  # not asked for yet
            loader.reweight(scores.weights() ** 3, ahead, folder=self.folder)
        return super().forward(image, sample, valid)


@pytest.mark.parametrize("options", [{}, {"restore_callback_states_from_checkpoint": True}])
@pytest.mark.parametrize("accumulate", [1, 2])
def test_trainer_resumes_weights_and_means(
    chips: Any,  # noqa: F811
    tmp_path: Path,
    accumulate: int,
    options: dict[str, Any],
) -> None:
    def train(done: int, checkpoint: str | None, **more: Any) -> tuple[Any, Any]:
        more |= {"gradient_accumulation_steps": accumulate, **options}
        model = Weighing(tmp_path / "w", done)
        trainer = hugging_face(chips[0], tmp_path / "out", model, **more)
        data = trainer.get_train_dataloader()
        trainer.get_train_dataloader = lambda: data
        model.loader = data.dataset.loader
        trainer.add_callback(chaski.torch.trainer_callback())
        trainer.train(resume_from_checkpoint=checkpoint)
        return model.seen, model.loader.scores(tmp_path / "w").means.tolist()

    whole, means = train(0, None)
    with dataset(chips[0]) as d:
        order = [b["sample"][b["valid"]].tolist() for _ in range(EPOCHS) for b in d]
    assert whole[:7] == order[:7] and whole[7:] != order[7:]
    updates = -(-STEPS // accumulate)
    found = sorted(tmp_path.glob("out/checkpoint-*"), key=lambda p: int(p.name.split("-")[1]))
    for path in nonempty(found[1:-1]):
        done = int(path.name.split("-")[1])
        first = done // updates * STEPS + done % updates * accumulate
        assert train(first, str(path), save_strategy="no") == (whole[first:], means), path.name


def test_trainer_does_not_stack(chips, tmp_path):  # noqa: F811
    trainer = hugging_face(chips[0], tmp_path)
    transformers = sys.modules["transformers"]
    for size in (1, 8):
        trainer.args.per_device_train_batch_size = size
        stacks = transformers.Trainer(Model(), trainer.args, train_dataset=dataset(chips[0]))
        with pytest.raises(RuntimeError, match=r"DataLoader\(dataset, batch_size=None\)"):
            stacks.train()
