"""One rank of test_distributed.py: prints its samples as JSON, or the error."""

from __future__ import annotations

import json
import os
import sys
import time
import traceback
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch
import torch.distributed
from torch.utils.data import DataLoader

import chaski.torch

EPOCHS = 2
STOP = (2, 3)  # epochs that began, and steps of the last one, when the run is cut
RANK, WORLD = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])


def dataset(folder: str) -> chaski.torch.IterableDataset:
    return chaski.torch.IterableDataset(
        folder, batch_size=6, seed=5, engine=chaski.Engine(workers=1)
    )


def samples(batch: dict[str, Any]) -> list[int]:
    return batch["sample"][batch["valid"]].tolist()


def epochs(batches: Iterable[dict[str, Any]]) -> list[list[list[int]]]:
    """Returns the samples of every batch of every epoch."""
    return [[samples(b) for b in batches] for _ in range(EPOCHS)]


def with_torch(folder: str, how: str) -> Any:
    early = dataset(folder) if how == "early" else None
    torch.distributed.init_process_group("gloo", rank=RANK, world_size=WORLD)
    d = early if early is not None else dataset(folder)
    return epochs(DataLoader(d, batch_size=None) if how == "loader" else d)


def with_accelerate(folder: str, how: str) -> Any:
    from accelerate import Accelerator
    from accelerate.utils import DataLoaderConfiguration

    split = DataLoaderConfiguration(dispatch_batches=False if how == "shard" else None)
    accelerator = Accelerator(cpu=True, dataloader_config=split)
    assert (accelerator.process_index, accelerator.num_processes) == (RANK, WORLD)
    d = dataset(folder)
    model = torch.nn.Linear(1, 1)
    given: Any = d if how == "itself" else DataLoader(d, batch_size=None)
    model, batches = accelerator.prepare(model, given)
    return epochs(batches)


def with_lightning(folder: str, how: str) -> Any:
    import lightning

    early = dataset(folder) if how == "early" else None
    seen: list[list[list[int]]] = []

    class Module(lightning.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(1, 1)

        def train_dataloader(self) -> Any:
            d = early if early is not None else dataset(folder)
            return DataLoader(d, batch_size=None) if how == "loader" else d

        def on_train_epoch_start(self) -> None:
            if not seen or seen[-1]:
                seen.append([])

        def on_train_batch_end(self, *_: Any) -> None:
            if how == "resume" and (len(seen), len(seen[-1])) == STOP and not resumed:
                self.trainer.save_checkpoint("stop.ckpt")

        def on_train_epoch_end(self) -> None:
            if how == "resume-end" and len(seen) == 1 and not resumed:
                self.trainer.save_checkpoint("stop.ckpt")

        def training_step(self, batch: dict[str, Any], _: int) -> torch.Tensor:
            seen[-1].append(samples(batch))
            return self.layer(batch["image"].mean().reshape(1, 1)).mean()

        def configure_optimizers(self) -> torch.optim.Optimizer:
            return torch.optim.SGD(self.parameters(), lr=1e-9)

    quiet = {"logger": False, "enable_checkpointing": False, "enable_model_summary": False}
    resumed = False

    def fit(**options: Any) -> None:
        trainer = lightning.Trainer(
            accelerator="cpu", strategy="ddp", devices=WORLD, max_epochs=EPOCHS,
            enable_progress_bar=False, **quiet,
        )  # fmt: skip
        trainer.fit(Module(), **options)
        assert (trainer.global_rank, trainer.world_size) == (RANK, WORLD)

    fit()
    if how == "resume":
        epoch, step = STOP
        seen[:] = [*seen[: epoch - 1], seen[epoch - 1][:step]]
        resumed = True
        fit(ckpt_path="stop.ckpt", weights_only=False)
    elif how == "resume-end":
        del seen[1:]
        resumed = True
        fit(ckpt_path="stop.ckpt", weights_only=False)
    return seen


def leave_together(out: Path) -> None:
    """Ends the process once all ranks have answered.

    A rank that leaves earlier fails those still in the group. Nothing is torn down: Gloo sometimes
    aborts a process that destroys its group while its threads still run.
    """
    end = time.monotonic() + 300
    while time.monotonic() < end and len(list(out.parent.glob("*.json"))) < WORLD:
        time.sleep(0.02)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def main() -> None:
    torch.set_num_threads(1)
    out, folder, library, how = sys.argv[1:]
    run = {"torch": with_torch, "accelerate": with_accelerate, "lightning": with_lightning}
    try:
        answer = {"epochs": run[library](folder, how)}
    except Exception:  # with those it was raised from: Lightning adds one of its own
        answer = {"error": traceback.format_exc()}
    unfinished = Path(out).with_suffix(".part")
    unfinished.write_text(json.dumps(answer))
    unfinished.rename(out)
    leave_together(Path(out))


main()
