"""Calls that all ranks of a loader make together, where torch.distributed joins them."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import numpy.typing as npt

from chaski.errors import SpecError

Array = npt.NDArray[Any]


class Together:
    """A call of all ranks: if it fails on one of them before they meet, it fails on all.

    Without that, the others would wait for the one that failed.

    Attributes:
        joined: the ranks can meet.
    """

    def __init__(self, ranks: int, shape: tuple[int, ...]) -> None:
        """Begins a call in which each of so many ranks has numbers of a shape."""
        self.joined = _joined(ranks)
        self._shape = shape
        self._met = not self.joined

    def __enter__(self) -> Together:
        return self

    def __exit__(self, _: object, error: object, trace: object) -> None:
        if isinstance(error, Exception) and not self._met:
            self._gather(np.zeros(self._shape, np.int64), failed=True)

    def gather(self, numbers: Array) -> Array:
        """Returns int64 numbers of all ranks, behind a new axis.

        Raises:
            SpecError: the call has failed on another rank.
        """
        flags, given = self._gather(numbers, failed=False)
        if flags.any():
            failed = np.flatnonzero(flags).tolist()
            raise SpecError(f"the call fails on ranks {failed}, whose errors say why")
        return given

    def _gather(self, numbers: Array, failed: bool) -> tuple[Array, Array]:
        """Returns which ranks have failed, and the numbers of all."""
        import torch
        import torch.distributed as dist

        self._met = True
        device = "cuda" if "nccl" in dist.get_backend() else "cpu"
        flat = np.append(numbers.reshape(-1), np.int64(failed))
        mine = torch.from_numpy(flat).to(device)
        of_each = [torch.empty_like(mine) for _ in range(dist.get_world_size())]
        dist.all_gather(of_each, mine)
        joined: Array = torch.stack(of_each).cpu().numpy()
        return joined[:, -1], joined[:, :-1].reshape(-1, *self._shape)


def _joined(ranks: int) -> bool:
    """Reports whether torch.distributed joins the ranks of a loader."""
    d = sys.modules.get("torch.distributed")
    if ranks == 1 or d is None or not (d.is_available() and d.is_initialized()):
        return False
    return int(d.get_world_size()) == ranks
