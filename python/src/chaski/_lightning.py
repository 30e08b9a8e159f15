"""A callback for the Trainer of Lightning, which finds it by the entry points of the package."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping, Sequence
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
        """Has an `IterableDataset` go on where a checkpoint says. Mends two faults of a resume.

        - Lightning loads the state of a checkpoint where it makes the loaders, but not if they were
          made before, for `Trainer.estimated_stepping_batches` (its issue 20550).
        - After a checkpoint of the last step of an epoch it does not count the next epoch as begun:
          checkpoints within that would then begin it again.
        """

        states: Sequence[Mapping[str, Any]] = ()

        def __reduce__(self) -> tuple[Any, ...]:
            """Is pickled with the Trainer for processes that it spawns."""
            return _resume, (package,), self.__dict__

        def on_load_checkpoint(self, trainer: Any, module: Any, checkpoint: Any) -> None:
            state = checkpoint.get("loops", {}).get("fit_loop", {}).get("state_dict", {})
            self.states = state.get("combined_loader", ())

        def on_train_start(self, trainer: Any, module: Any) -> None:
            states, self.states = self.states, ()
            if (ours := getattr(sys.modules.get("chaski.torch"), "IterableDataset", None)) is None:
                return
            loaders = lightning.utilities.CombinedLoader(trainer.train_dataloader).flattened
            if not any(isinstance(d, ours) for d in loaders):
                return
            loop = trainer.fit_loop
            if loop.restarting:  # from within an epoch, or from its last step
                if not states:
                    warn(
                        "Lightning's checkpoint has no state of the chaski dataset: its epoch "
                        "begins at the first batch"
                    )
                stateful = [d for d in loaders if hasattr(d, "load_state_dict")]
                for dataset, state in zip(stateful, states, strict=False):
                    if isinstance(dataset, ours):
                        dataset.load_state_dict(state)
            current = loop.epoch_progress.current
            over = current.ready == current.processed  # the epoch that it resumed in
            if over and hasattr(loop, "reset_restart_stage"):  # since 2.5
                if loop.restarted_mid_epoch or loop.restarted_on_epoch_end:
                    loop.reset_restart_stage()

    return Resume()
