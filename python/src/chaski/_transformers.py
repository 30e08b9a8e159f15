"""A callback for Trainer of Hugging Face, which counts steps and keeps no state of the data."""

from __future__ import annotations

import functools
from typing import Any

from chaski._plain import optional


@functools.cache
def callback_class(kind: type) -> Any:
    """Returns the class of `chaski.torch.trainer_callback`, for datasets of a kind."""
    parents: Any = optional(
        "transformers.trainer_callback", "trainer_callback needs transformers: pip install it"
    )

    class ChaskiState(parents.TrainerCallback, parents.ExportableState):  # type: ignore[misc]
        """Keeps the weights of samples, and means of losses, in trainer_state.json.

        Trainer asks for batches before their steps, so the state says where the epoch begins, and
        which weights hold from there on: Trainer skips the steps that are done.
        """

        dataset: Any = None

        def on_train_begin(self, args: Any, state: Any, control: Any, **others: Any) -> None:
            loader, name = others["train_dataloader"], type(self).__name__
            # A checkpoint that was saved without this callback lacks the entry.
            saved = state.stateful_callbacks.setdefault(name, {})
            dataset = getattr(loader, "dataset", loader)
            self.dataset = dataset if isinstance(dataset, kind) else None
            self.trainer = state
            if self.dataset is not None and (data := saved.get("attributes", {}).get("data")):
                self.dataset.load_state_dict(data)

        def state(self) -> dict[str, Any]:
            """Returns what Trainer writes into a checkpoint."""
            if self.dataset is None:
                return {"args": {}, "attributes": {}}
            epoch = int(self.trainer.epoch or 0)
            data = self.dataset.loader._walk.state(epoch)
            return {"args": {}, "attributes": {"data": data}}

    return ChaskiState
