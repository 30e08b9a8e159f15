"""One rank of a trainer that test_exact_resume.py kills and starts again.

    trainers.py NAME

It resumes from the newest checkpoint in its directory, if there is one, and writes the rows of each
step into rows-RUN-RANK, a line a step. It saves a checkpoint every SAVE_EVERY steps, and goes no
further than the number of steps in the file "most". RUN, RANK, WORLD_SIZE and FORM are environment
variables: the form "views" has two windows of each sample, in "weights" the weights of samples
change, and "scores" has both, with weights by losses, which come in another hook in each run.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader

import chaski.torch

SCENE = Path(__file__).resolve().parents[2] / "testdata" / "demo" / "coast.tif"
EPOCHS, BATCH, WINDOWS = 3, 6, 40  # the last batch of an epoch is padded
STEPS = -(-WINDOWS // BATCH) * EPOCHS
SAVE_EVERY = 2
OPTIONS: dict[str, Any] = {
    "batch_size": BATCH,
    "window": chaski.RandomWindow((48, 32), WINDOWS),
    "seed": 7,
    "engine": chaski.Engine(workers=1),
}
FORM = os.environ.get("FORM", "plain")
CHANGES = 1, 9, 15
"""Steps in which weights are given that hold AHEAD steps later."""
AHEAD = 4  # frameworks ask for a batch or two before the step that takes it
PAUSE = 0.02  # seconds of a step, so that most kills come within one

FOLDER = Path()
RANK, WORLD = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))


def options(form: str) -> dict[str, Any]:
    """Returns the arguments of a form of runs."""
    if form not in ("views", "scores"):
        return OPTIONS
    return OPTIONS | {"window": [OPTIONS["window"], chaski.RandomWindow((48, 32), min_overlap=0.3)]}


def dataset() -> chaski.torch.IterableDataset:
    return chaski.torch.IterableDataset(SCENE, **options(FORM))


def reweigh(loader: chaski.Loader, step: int, folder: Path) -> None:
    """Gives the weights of a step."""
    weights = np.random.default_rng(step).gamma(0.3, size=loader.samples)
    loader.reweight(weights, ahead(loader, step), folder=folder)


def ahead(loader: chaski.Loader, step: int) -> int:
    """Returns the step that is AHEAD of one, counted as `reweight` does."""
    per_epoch = STEPS // EPOCHS
    return (step // per_epoch - loader.epoch) * per_epoch + step % per_epoch + AHEAD


def score(loader: chaski.Loader, step: int, batch: Any, folder: Path) -> None:
    """Gives the losses of a step, and in some steps weights by all of them."""
    scores = loader.scores(folder)
    scores.add(batch, np.asarray(batch["sample"]) * 7 % 5 + np.sin(step) + 1.1)
    if step in CHANGES:
        loader.reweight(scores.weights() ** 3, ahead(loader, step), folder=folder)


def hook(*names: str) -> str:
    """Returns the hook in which this run gives the losses, or ""."""
    return names[int(os.environ["RUN"]) % len(names)] if FORM == "scores" else ""


def rows_of(batch: dict[str, Any]) -> list[list[Any]]:
    """Returns position, sample and digest of the pixels of each row that is no padding."""
    images = batch["image"].numpy()
    return [
        [position, sample, hashlib.sha256(image.tobytes()).hexdigest()]
        for position, sample, image in zip(
            batch["position"].tolist(), batch["sample"].tolist(), images, strict=True
        )
        if position >= 0
    ]


def note(step: int, batch: dict[str, Any], data: chaski.torch.IterableDataset) -> None:
    """Writes down the rows of a step, in one line that is on the disk before the step goes on."""
    assert step < STEPS, "it goes on after the last step"
    while step >= int((FOLDER / "most").read_text()):
        time.sleep(0.01)
    line = json.dumps([os.getpid(), step, rows_of(batch)]) + "\n"
    diary = os.open(
        FOLDER / f"rows-{os.environ['RUN']}-{RANK}", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666
    )
    os.write(diary, line.encode())
    os.fsync(diary)
    os.close(diary)
    if FORM == "weights" and step in CHANGES:
        reweigh(data.loader, step, FOLDER / "weights")
    time.sleep(PAUSE)


class Net(torch.nn.Module):
    """One weight, for the mean of the pixels."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(1, 1)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        return self.layer(image.float().mean().reshape(1, 1)).square().mean()


def optimizer_of(model: torch.nn.Module) -> torch.optim.Optimizer:
    return torch.optim.SGD(model.parameters(), lr=1e-9)


def learn(model: torch.nn.Module, optimizer: torch.optim.Optimizer, batch: dict[str, Any]) -> None:
    model(batch["image"]).backward()
    optimizer.step()
    optimizer.zero_grad()


def step_folder(step: int) -> Path:
    return FOLDER / f"step-{step}"


def newest(pattern: str, complete: Callable[[Path], bool] = Path.exists) -> Path | None:
    """Returns the checkpoint with the most steps, which its name ends with."""
    found = sorted(FOLDER.glob(pattern), key=steps_in)
    return next((path for path in reversed(found) if complete(path)), None)


def steps_in(path: Path) -> int:
    return int(path.stem.replace("=", "-").split("-")[-1])


def read_whole() -> dict[str, Any] | None:
    path = FOLDER / "last.pt"
    return torch.load(path) if path.exists() else None


def write_whole(saved: dict[str, Any]) -> None:
    """Replaces the checkpoint at once. That of any rank serves all of them."""
    if RANK == 0:
        torch.save(saved, FOLDER / "new.pt")
        (FOLDER / "new.pt").replace(FOLDER / "last.pt")


def plain(
    loader_of: Callable[[Any], Any] = lambda data: DataLoader(data, batch_size=None),
    holds_state: bool = False,
    read: Callable[[], dict[str, Any] | None] = read_whole,
    write: Callable[[dict[str, Any]], None] = write_whole,
) -> None:
    """Trains with DDP. The state is the loader's, or that of the dataset inside of it."""
    if not torch.distributed.is_initialized():
        torch.distributed.init_process_group("gloo", rank=RANK, world_size=WORLD)
    model = DistributedDataParallel(Net())
    optimizer = optimizer_of(model)
    data = dataset()
    loader = loader_of(data)
    stateful = loader if holds_state else data
    step = 0
    if (saved := read()) is not None:
        model.load_state_dict(saved["model"])
        stateful.load_state_dict(saved["data"])
        step = saved["step"]
    while step < STEPS:
        for batch in loader:
            note(step, batch, data)
            learn(model, optimizer, batch)
            if hook("loop"):
                score(data.loader, step, batch, FOLDER / "weights")
            step += 1
            if step % SAVE_EVERY == 0:
                state = {"model": model.state_dict(), "data": stateful.state_dict(), "step": step}
                write(state)


def ddp() -> None:
    plain()


def torchdata() -> None:
    from torchdata.stateful_dataloader import StatefulDataLoader

    plain(lambda data: StatefulDataLoader(data, batch_size=None), holds_state=True)


def ray() -> None:
    """Drives workers of Ray, which are the ranks."""
    # It gives up, and begins again, where workers take longer to import PyTorch than a minute.
    os.environ["RAY_TRAIN_WORKER_GROUP_START_TIMEOUT_S"] = "600"
    import ray
    import ray.train.torch

    def worker(folder: str) -> None:
        os.chdir(folder)
        import trainers  # here, where RANK and WORLD_SIZE are the worker's

        trainers.ray_worker()

    ray.init(num_cpus=WORLD, include_dashboard=False, configure_logging=False)
    here = str(FOLDER.absolute())
    ray.train.torch.TorchTrainer(
        worker,
        train_loop_config=here,
        torch_config=ray.train.torch.TorchConfig(backend="gloo"),
        scaling_config=ray.train.ScalingConfig(num_workers=WORLD),
        run_config=ray.train.RunConfig(
            name="run",
            storage_path=here,
            failure_config=ray.train.FailureConfig(max_failures=-1),  # starts workers again
        ),
    ).fit()
    for rank in range(WORLD):
        (FOLDER / f"end-{rank}").touch()


def ray_worker() -> None:
    import ray.train

    def read() -> dict[str, Any] | None:
        checkpoint = ray.train.get_checkpoint()
        if checkpoint is None:
            return None
        with checkpoint.as_directory() as folder:
            return torch.load(Path(folder) / "last.pt")

    def write(saved: dict[str, Any]) -> None:
        with tempfile.TemporaryDirectory() as folder:
            torch.save(saved, Path(folder) / "last.pt")
            checkpoint = ray.train.Checkpoint.from_directory(folder) if RANK == 0 else None
            ray.train.report({"step": saved["step"]}, checkpoint=checkpoint)

    torch.set_num_threads(1)
    plain(read=read, write=write)


def fsdp2() -> None:
    """Trains with sharded parameters, and a checkpoint that all ranks write together."""
    import torch.distributed.checkpoint as dcp
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    torch.distributed.init_process_group("gloo", rank=RANK, world_size=WORLD)
    model = Net()
    fully_shard(model, mesh=init_device_mesh("cpu", (WORLD,)))
    optimizer = optimizer_of(model)
    data = dataset()
    step = 0
    if (last := newest("step-*", lambda path: (path / ".metadata").exists())) is not None:
        saved = {"model": model.state_dict(), "data": data}
        dcp.load(saved, checkpoint_id=last)
        step = steps_in(last)
    while step < STEPS:
        for batch in data:
            note(step, batch, data)
            learn(model, optimizer, batch)
            if hook("loop"):
                score(data.loader, step, batch, FOLDER / "weights")
            step += 1
            if step % SAVE_EVERY == 0:
                dcp.save(
                    {"model": model.state_dict(), "data": data}, checkpoint_id=step_folder(step)
                )


def accelerate() -> None:
    import accelerate

    accelerator = accelerate.Accelerator(cpu=True)
    data = dataset()
    net = Net()
    model, optimizer = accelerator.prepare(net, optimizer_of(net))
    accelerator.register_for_checkpointing(data)
    step = 0
    if (last := newest("step-*")) is not None:
        accelerator.load_state(str(last))
        step = steps_in(last)
    while step < STEPS:
        for batch in data:
            note(step, batch, data)
            accelerator.backward(model(batch["image"]))
            optimizer.step()
            optimizer.zero_grad()
            if hook("loop"):
                score(data.loader, step, batch, FOLDER / "weights")
            step += 1
            if step % SAVE_EVERY == 0:
                accelerator.save_state(str(FOLDER / f"new-{WORLD}"))
                accelerator.wait_for_everyone()
                if RANK == 0:
                    (FOLDER / f"new-{WORLD}").rename(step_folder(step))
                accelerator.wait_for_everyone()


def transformers() -> None:
    import transformers
    from accelerate.data_loader import DataLoaderShard

    where = hook("forward", "compute_loss", "on_step_end")

    class Model(Net):
        def forward(self, **batch: Any) -> dict[str, Any]:  # type: ignore[override]
            note(trainer.state.global_step, batch, trainer.data)
            if where == "forward":
                trainer.score(batch, trainer.state.global_step)
            return {"loss": super().forward(batch["image"])}

    class Trainer(transformers.Trainer):
        def get_train_dataloader(self) -> Any:
            self.data = dataset()  # after the process group
            return DataLoaderShard(self.data, batch_size=None)

        def compute_loss(self, model: Any, inputs: Any, *args: Any, **more: Any) -> Any:
            self.last = inputs
            loss = super().compute_loss(model, inputs, *args, **more)
            if where == "compute_loss":
                self.score(inputs, self.state.global_step)
            return loss

        def score(self, batch: Any, step: int) -> None:
            score(self.data.loader, step, batch, FOLDER / "weights")

    class Scores(transformers.TrainerCallback):
        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            if where == "on_step_end":
                trainer.score(trainer.last, state.global_step - 1)

    quiet = {"report_to": [], "disable_tqdm": True, "logging_strategy": "no", "use_cpu": True}
    when = {"num_train_epochs": EPOCHS, "save_strategy": "steps", "save_steps": SAVE_EVERY}
    trainer = Trainer(
        Model(),
        transformers.TrainingArguments(str(FOLDER), **quiet, **when),
        callbacks=[Scores()] + [chaski.torch.trainer_callback()] * (FORM in ("weights", "scores")),
    )
    last = newest("checkpoint-*", lambda path: (path / "trainer_state.json").exists())
    trainer.train(resume_from_checkpoint=None if last is None else str(last))


def lightning() -> None:
    import lightning
    from lightning.pytorch.callbacks import ModelCheckpoint

    from chaski._lightning import for_lightning

    class Module(lightning.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.net = Net()

        def train_dataloader(self) -> Any:
            self.data = dataset()
            return self.data

        def training_step(self, batch: dict[str, Any], _: int) -> torch.Tensor:
            note(self.global_step, batch, self.data)
            if where == "training_step":
                self.score(batch, self.global_step)
            return self.net(batch["image"])

        def on_train_batch_end(self, outputs: Any, batch: dict[str, Any], _: int) -> None:
            if where == "module":
                self.score(batch, self.global_step - 1)

        def score(self, batch: dict[str, Any], step: int) -> None:
            score(self.data.loader, step, batch, FOLDER / "weights")

        def configure_optimizers(self) -> torch.optim.Optimizer:
            # This makes the loader before the checkpoint is there, as schedules of rates do.
            assert self.trainer.estimated_stepping_batches == STEPS
            return optimizer_of(self.net)

    class Scores(lightning.Callback):
        def on_train_batch_end(self, trainer: Any, module: Any, _: Any, batch: Any, i: int) -> None:
            if where == "callback":
                module.score(batch, trainer.global_step - 1)

    where = hook("training_step", "module", "callback")
    last = newest("step=*.ckpt")
    saves = ModelCheckpoint(FOLDER, "{step}", every_n_train_steps=SAVE_EVERY, save_top_k=-1)
    trainer = lightning.Trainer(
        accelerator="cpu",
        strategy="ddp",
        devices=WORLD,
        max_epochs=EPOCHS,
        logger=False,
        callbacks=[
            saves,
            Scores(),
            for_lightning(),
        ],  # which it finds by itself where chaski is installed
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    more = {} if last is None else {"ckpt_path": str(last), "weights_only": False}
    trainer.fit(Module(), **more)


ALL = ddp, fsdp2, torchdata, accelerate, transformers, lightning, ray
TRAINERS = {run.__name__: run for run in ALL}

if __name__ == "__main__":
    torch.set_num_threads(1)
    TRAINERS[sys.argv[1]]()
    (FOLDER / f"end-{RANK}").touch()
    # Nothing is torn down: Gloo sometimes aborts a process that destroys its group.
    while len(list(FOLDER.glob("end-*"))) < WORLD:
        time.sleep(0.02)
    os._exit(0)
