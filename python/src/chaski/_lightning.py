"""A callback for the Trainer of Lightning, which finds it by the entry points of the package."""

from __future__ import annotations

import functools
import importlib
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from chaski._calls import warn


def for_lightning() -> Any:
    """Returns the callback for a Trainer of the package lightning."""
    return _resume("lightning.pytorch")


def for_pytorch_lightning() -> Any:
    """Returns the callback for a Trainer of the package pytorch_lightning."""
    return _resume("pytorch_lightning")


def _resume(package: str) -> Any:
    lightning: Any = importlib.import_module(package)

    class Resume(lightning.Callback):  # type: ignore[misc]
        """Has an `IterableDataset` go on where a checkpoint says. Mends faults of Lightning.

        - Lightning loads the state of a checkpoint where it makes the loaders, but not if they were
          made before, for `Trainer.estimated_stepping_batches` (its issue 20550), and not from the
          end of an epoch, where the state has weights and means.
        - After a checkpoint of the last step of an epoch it does not count the next epoch as begun:
          checkpoints within that would then begin it again.
        - ModelCheckpoint saves a step before the module's `on_train_batch_end`, where `scores.add`
          may stand: here it saves behind that.
        - A checkpoint that is saved because a step fails counts the batch of that step.
        - With `overfit_batches` it turns off the shuffling of a DataLoader alone: here each epoch
          is the first one.
        """

        states: Sequence[Mapping[str, Any]] = ()
        saves: Saves | None = None

        def __reduce__(self) -> tuple[Any, ...]:
            """Is pickled with the Trainer for processes that it spawns."""
            return _resume, (package,), {**self.__dict__, "saves": None}

        def on_load_checkpoint(self, trainer: Any, module: Any, checkpoint: Any) -> None:
            state = checkpoint.get("loops", {}).get("fit_loop", {}).get("state_dict", {})
            self.states = state.get("combined_loader", ())

        def on_train_start(self, trainer: Any, module: Any) -> None:
            states, self.states = self.states, ()
            if not any(map(_is_ours, self._loaders(trainer))):
                return
            self.saves = Saves(module, trainer.checkpoint_callbacks)
            loop = trainer.fit_loop
            if loop.restarting and not states:  # from within an epoch, or from its last step
                warn(
                    "Lightning's checkpoint has no state of the chaski dataset: its epoch begins "
                    "at the first batch"
                )
            for dataset, state in self._with_states(trainer, states):
                dataset.load_state_dict(state)
            current = loop.epoch_progress.current
            over = current.ready == current.processed  # the epoch that it resumed in
            if over and hasattr(loop, "reset_restart_stage"):  # since 2.5
                if loop.restarted_mid_epoch or loop.restarted_on_epoch_end:
                    loop.reset_restart_stage()

        def on_save_checkpoint(self, trainer: Any, module: Any, checkpoint: Any) -> None:
            now = trainer.fit_loop.epoch_loop.batch_progress.current
            if now.ready > now.processed:
                states = checkpoint["loops"]["fit_loop"]["state_dict"].get("combined_loader", ())
                for dataset, state in self._with_states(trainer, states):
                    size = dataset.loader.batch_size
                    state["samples"] = (state["samples"] - 1) // size * size

        def on_train_epoch_start(self, trainer: Any, module: Any) -> None:
            if trainer.overfit_batches > 0:
                for dataset in filter(_is_ours, self._loaders(trainer)):
                    dataset.set_epoch(0)

        def teardown(self, trainer: Any, module: Any, stage: str) -> None:
            saves, self.saves = self.saves, None
            if saves is not None:
                saves.end()

        def on_exception(self, trainer: Any, module: Any, exception: BaseException) -> None:
            self.teardown(trainer, module, "fit")

        def _loaders(self, trainer: Any) -> list[Any]:
            flat: list[Any] = lightning.utilities.CombinedLoader(trainer.train_dataloader).flattened
            return flat

        def _with_states(self, trainer: Any, states: Sequence[Any]) -> list[tuple[Any, Any]]:
            stateful = [d for d in self._loaders(trainer) if hasattr(d, "load_state_dict")]
            return [(d, state) for d, state in zip(stateful, states, strict=False) if _is_ours(d)]

    return Resume()


def _is_ours(dataset: Any) -> bool:
    """Reports whether a loader is an `IterableDataset` of chaski.torch, which may not be there."""
    ours = getattr(sys.modules.get("chaski.torch"), "IterableDataset", None)
    return ours is not None and isinstance(dataset, ours)


class Saves:
    """Has callbacks that save a step do so behind the module's hook of the end of a batch."""

    def __init__(self, module: Any, callbacks: Sequence[Any]) -> None:
        """Takes the place of the hook of the module, and of those of the callbacks."""
        self._hook, self._late = module.on_train_batch_end, list[Callable[[], object]]()
        self._owners = module, *callbacks
        for callback in callbacks:
            callback.on_train_batch_end = functools.partial(self._wait, callback.on_train_batch_end)
        module.on_train_batch_end = self

    def _wait(self, hook: Callable[..., object], *args: Any) -> None:
        self._late.append(functools.partial(hook, *args))

    def __call__(self, *args: Any) -> None:
        """Is the hook of the module, and then those of the callbacks."""
        self._hook(*args)
        while self._late:
            self._late.pop(0)()

    def __reduce__(self) -> Any:
        """A module that is pickled or copied meanwhile has its own hook."""
        return getattr, (self._owners[0], "on_train_batch_end")

    def end(self) -> None:
        """Gives the hooks back."""
        for owner in self._owners:
            owner.__dict__.pop("on_train_batch_end", None)
