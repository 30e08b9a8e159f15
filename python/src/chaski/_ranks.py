"""Calls that all ranks of a loader make together, where torch.distributed joins them."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from chaski.errors import SpecError

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Ranks:
    """The data ranks of a loader: this process is one of so many.

    Attributes:
        group: the processes of torch.distributed that make calls together; None for all. Those that
            share a model (tensor, pipeline and context parallel) have one data rank.
    """

    rank: int
    count: int
    group: Any = None

    def together(self, shape: tuple[int, ...]) -> Together:
        """Begins a call in which each process gives numbers of a shape."""
        return Together(self, shape)


class Together:
    """A call of all ranks: if it fails on one of them before they meet, it fails on all.

    Without that, the others would wait for the one that failed.

    Attributes:
        joined: the ranks can meet.
    """

    def __init__(self, ranks: Ranks, shape: tuple[int, ...]) -> None:
        """Begins a call in which each process gives numbers of a shape.

        Raises:
            SpecError: there is no such group, or this process is not one of it.
        """
        d = sys.modules.get("torch.distributed")
        there = d is not None and d.is_available() and d.is_initialized()
        self.joined = there and (ranks.count > 1 or ranks.group is not None)
        if ranks.group is not None and not (there and _has_this_process(ranks.group)):
            raise SpecError(
                f"group is {ranks.group!r}: it must be a ProcessGroup of torch.distributed with "
                'this process, such as mesh["data"].get_group()'
            )
        self._ranks = ranks
        self._shape = shape
        self._met = not self.joined

    def __enter__(self) -> Together:
        return self

    def __exit__(self, _: object, error: object, trace: object) -> None:
        if isinstance(error, Exception) and not self._met:
            self._gather(np.zeros(self._shape, np.int64), failed=True)

    def gather(self, numbers: Array) -> Array:
        """Returns int64 numbers of all data ranks in their order, behind a new axis.

        Raises:
            SpecError: the call has failed on another rank; a data rank has no process here; or
                processes of one data rank give different numbers.
        """
        flags, given = self._gather(numbers, failed=False)
        failed, rank = flags.T
        if failed.any():
            said = sorted(set(rank[failed > 0].tolist()))
            raise SpecError(f"the call fails on ranks {said}, whose errors say why")
        there, first, twin = np.unique(rank, return_index=True, return_inverse=True)
        if there.tolist() != list(range(self._ranks.count)):
            raise SpecError(
                f"the {len(rank)} processes that torch.distributed joins have the ranks "
                f"{there.tolist()}, and the loader has {self._ranks.count}: write group=..., the "
                "processes of all of its ranks"
            )
        other = (given != given[first][twin]).any(axis=tuple(range(1, given.ndim)))
        if other.any():
            p = int(np.flatnonzero(other)[0])
            raise SpecError(
                f"processes {first[twin[p]]} and {p} are both rank {rank[p]} of the loader, and "
                "give different numbers: all processes of a rank must give the same, or write "
                "group=..., one process of each rank"
            )
        return given[first]

    def _gather(self, numbers: Array, failed: bool) -> tuple[Array, Array]:
        """Returns whether each process has failed and its data rank, and the numbers of each."""
        import torch
        import torch.distributed as dist

        self._met = True
        group = self._ranks.group
        device = "cuda" if "nccl" in dist.get_backend(group) else "cpu"
        flat = np.append(numbers.reshape(-1), np.array([failed, self._ranks.rank], np.int64))
        mine = torch.from_numpy(flat).to(device)
        of_each = [torch.empty_like(mine) for _ in range(dist.get_world_size(group))]
        dist.all_gather(of_each, mine, group=group)
        joined: Array = torch.stack(of_each).cpu().numpy()
        return joined[:, -2:], joined[:, :-2].reshape(-1, *self._shape)


def _has_this_process(group: Any) -> bool:
    """Reports whether a group is one of torch.distributed, and this process is in it."""
    import torch.distributed as dist

    return isinstance(group, dist.ProcessGroup) and dist.get_rank(group) >= 0
