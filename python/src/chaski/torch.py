"""chaski for PyTorch: datasets whose items are whole batches of tensors, or single samples.

`masked_mean` leaves out rows that are not "valid": skipped samples, and what `last="pad"` adds.
"""

from __future__ import annotations

import functools
import importlib.metadata
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import numpy.typing as npt

from chaski import _distribution as _distribution  # chaski/__init__.py may be another project's
from chaski._arguments import Engine, Rows, SourceLike
from chaski._assemble import Batch, row_of
from chaski._bad import BadRows
from chaski._calls import entry, warn
from chaski._link import refuse_worker
from chaski._loader import Loader, refuse_setting
from chaski._members import Ragged
from chaski._open import connect, load
from chaski._plain import instance, needs
from chaski._plot import Members
from chaski._spec import BatchOptions, SampleOptions, init_takes
from chaski._transformers import callback_class
from chaski.errors import SpecError, UnsupportedError

with needs('chaski.torch needs PyTorch: pip install torch, or "chaski-eo[torch]"'):
    import torch
    import torch.distributed
    import torch.utils.data
    from torch.utils.data._utils.collate import default_collate_fn_map

    from chaski._device import mover

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["IterableDataset", "MapDataset", "masked_mean", "to_tensors", "trainer_callback"]


def _tensor(a: npt.NDArray[Any], dtype: str) -> Any:
    if a.dtype == object:  # text
        return a.tolist()
    # numpy has the bits of these; torch before 2.7 lacks float8_e8m0fnu, which stays bits.
    if dtype.startswith(("bfloat16", "float8")) and (own := getattr(torch, dtype, None)):
        return torch.from_numpy(a.view(f"i{a.itemsize}")).view(own)
    if a.dtype.names:  # complex integers: torch has no such type
        return torch.from_numpy(a.view(a.dtype[0]).reshape(*a.shape, 2))
    return torch.from_numpy(a)


def to_tensors(batch: Batch) -> dict[str, Any]:
    """Returns a batch as tensors that share its memory.

    bfloat16 and float8 become torch's types of these names, text a list of str (in sequences, a
    list of str for every row), a ragged field a `chaski.Ragged` of two tensors (offsets, values),
    complex integers get a last axis of two.
    """
    return _tensors(Members(), batch)


def _tensors(out: Members, batch: Batch) -> Members:
    out._like(batch)
    for name, a in batch.items():
        dtype = batch.dtypes.get(name, "")
        if isinstance(a, Ragged):
            out[name] = Ragged(torch.from_numpy(a.offsets), _tensor(a.values, dtype))  # type: ignore[arg-type]
        else:
            out[name] = _tensor(a, dtype)
    return out


class _Whole(Members):
    """A batch that a loop gets, which `default_collate` does not stack."""

    epoch: int
    step: int


def _given(batch: Batch) -> _Whole:
    """Returns what the function of `map` is given."""
    out = _Whole()
    out.epoch, out.step = batch.epoch, batch.step
    return cast(_Whole, _tensors(out, batch))


def _refuse_stacking(batches: object = None, *, collate_fn_map: object = None) -> Any:
    raise RuntimeError(
        "each item of this chaski dataset is a whole batch already, and DataLoader would stack "
        "several: write DataLoader(dataset, batch_size=None), or iterate over the dataset"
    )


default_collate_fn_map[_Whole] = _refuse_stacking


def _arrived(batch: Batch) -> dict[str, Any]:
    """Returns a batch that was moved to a device, after which the loop's stream uses it."""
    if batch._arrived is not None:
        batch._arrived()
    return _Whole(batch)._like(batch)


@entry
def masked_mean(
    loss: torch.Tensor,
    batch: Mapping[str, Any],
    *,
    validity: str | None = None,
    ignore: Mapping[str, float] | None = None,
    across_ranks: bool = False,
) -> torch.Tensor:
    """Returns the mean of a loss over what counts: not over padding and skipped samples.

        mask = batch["mask"][:, 0].long()
        loss = F.cross_entropy(net(batch["image"]), mask, reduction="none")
        loss = chaski.torch.masked_mean(loss, batch, ignore={"mask": 255})
        loss.backward()

    What does not count has no part in the gradient, as long as the derivative of the loss is finite
    there: PyTorch multiplies it by 0, and 0 * NaN is NaN. Give fields that are targets a finite
    `fill`, not NaN. Where nothing counts, the mean is 0.

    A member of the batch may lack axes of the loss, or have the axis b where the loss has none: a
    pixel counts then where all of its bands do.

    Args:
        loss: one value a sample (n,) or a pixel (n, y, x), (n, c, y, x), ...: not reduced yet.
        batch: its "valid" says which rows count.
        validity: name of a member that is 0 where the loss does not count: the `validity` of a
            `Field`, or the "steps" of sequences.
        ignore: values that do not count, by the member that has them: {"mask": 255}.
        across_ranks: divides by what counts on all ranks, times the number of ranks: the gradients
            that DistributedDataParallel averages are then those of the mean over the whole global
            batch. Otherwise a rank with few rows weighs as much as one with many. All ranks have to
            call this.

    Raises:
        ValueError: the loss has no value for every row, or a member does not fit it.
    """
    if not isinstance(batch, Mapping):
        raise SpecError(
            f"batch is {batch!r:.60}: it must be the dict that the loss was computed of"
        )
    if ignore is not None and not isinstance(ignore, Mapping):
        raise SpecError(
            f"ignore is {ignore!r}: it must be a dict of values by the member of the batch that "
            f'has them, such as ignore={{"mask": {ignore!r}}}'
        )
    for name in (*(ignore or ()), *([] if validity is None else [validity])):
        if name not in batch:
            raise SpecError(f"the batch has no {name!r}: there are {', '.join(map(str, batch))}")
    # as_tensor: batches of chaski.load are arrays.
    keep = _over(loss, torch.as_tensor(batch["valid"]).bool(), "valid")
    if validity is not None:
        keep = keep & _over(loss, torch.as_tensor(batch[validity]) != 0, validity)
    for name, value in (ignore or {}).items():
        keep = keep & _over(loss, torch.as_tensor(batch[name]) != value, name)
    count = keep.expand_as(loss).sum()
    # Not a product with the mask: what does not count may be infinite or NaN.
    wide = torch.promote_types(loss.dtype, torch.float32)
    total = torch.where(keep, loss, 0.0).sum(dtype=wide)
    d = torch.distributed
    if across_ranks and d.is_available() and d.is_initialized():
        d.all_reduce(count)
        total = total * d.get_world_size()
    return total / count.clamp(min=1)


@entry
def trainer_callback() -> Any:
    """Returns a callback that has Trainer of Hugging Face keep the state of the data.

        trainer = Trainer(model, args, callbacks=[chaski.torch.trainer_callback()])

    Without it, a resumed run of Trainer has the order of samples, which follows from the step, and
    loses the weights of `Loader.reweight` and the means of `Loader.scores`. The state is in
    trainer_state.json of a checkpoint; a run with other data or options than it says raises
    StateError.

    Raises:
        ImportError: the package transformers is missing.
    """
    return callback_class(IterableDataset)()


def _over(loss: torch.Tensor, mask: torch.Tensor, name: str) -> torch.Tensor:
    """Returns a mask with the axes of a loss, some of them 1."""
    mask = mask.to(loss.device)
    if loss.ndim == 0 or len(loss) != len(mask):
        raise ValueError(
            f"loss has the shape {tuple(loss.shape)}, the batch {len(mask)} rows: compute it with "
            'reduction="none"'
        )
    if mask.ndim == loss.ndim + 1:
        mask = mask.all(dim=1)
    shape, ones = tuple(mask.shape), (1,) * (loss.ndim - mask.ndim)
    fits = {
        s
        for s in (shape + ones, shape[:1] + ones + shape[1:])  # as (n t), as (n y x)
        if len(s) == loss.ndim and all(m in (1, k) for m, k in zip(s, loss.shape, strict=True))
    }
    if len(fits) != 1:
        raise ValueError(
            f"{name!r} has the shape {tuple(mask.shape)}, which "
            f"{'fits in two ways' if fits else 'does not fit'} a loss of {tuple(loss.shape)}"
        )
    return mask.reshape(fits.pop())


@dataclass(frozen=True, kw_only=True)
class MapOptions(SampleOptions):
    """The arguments of `chaski.torch.MapDataset`."""

    source: SourceLike | Loader = field(kw_only=False)
    target: str | Sequence[str] | None = None
    engine: Engine = field(default_factory=Engine)


@dataclass(frozen=True, kw_only=True)
class IterableOptions(MapOptions, BatchOptions):
    """The arguments of `chaski.torch.IterableDataset`."""

    batch_size: int | None = None
    rank: int | None = None
    world_size: int | None = None
    device: str | torch.device | None = None


class _Dataset:
    """What both datasets share: they hold a loader, and leave it behind when they are copied."""

    _loader: Loader | None
    _copied_in = 0  # the process that made this copy

    def _is_loader(self, o: MapOptions) -> bool:
        """Takes the source if it is a loader, and reports whether it is."""
        self._loader = o.source if isinstance(o.source, Loader) else None
        if self._loader is not None and o != type(o)(o.source):
            raise TypeError("a chaski.Loader already has its options")
        return self._loader is not None

    @property
    def loader(self) -> Loader:
        """The loader behind this dataset.

        Raises:
            RuntimeError: this is a copy, of this process or another one.
        """
        if self._loader is None:
            refuse_worker()
            if self._copied_in == os.getpid():
                raise RuntimeError(
                    "this is a copy of a chaski dataset, whose loader stays with the first one: "
                    "make another dataset of the same arguments, and load_state_dict what "
                    "state_dict gives there"
                )
            raise RuntimeError("a chaski dataset does not work in another process than its own")
        return self._loader

    def close(self) -> None:
        """See `chaski.Loader.close`."""
        self.loader.close()

    def __setattr__(self, name: str, value: Any) -> None:
        refuse_setting(name, value)
        super().__setattr__(name, value)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self._loader!r}>"

    def _repr_html_(self) -> str | None:
        """Returns what notebooks show, as of `chaski.Loader`."""
        return None if self._loader is None else self._loader._repr_html_()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __getstate__(self) -> dict[str, Any]:
        """Leaves the loader behind: a copy in a worker only explains why it does not work."""
        return {**self.__dict__, "_loader": None, "_mover": None, "_copied_in": os.getpid()}


class IterableDataset(_Dataset, torch.utils.data.IterableDataset[dict[str, Any]]):
    """Batches as dicts of tensors; a loop is an epoch, see `chaski.Loader`.

        dataset = chaski.torch.IterableDataset("chips.csv", fields=fields, batch_size=64)
        for epoch in range(dataset.epoch, 10):
            for batch in dataset:  # or DataLoader(dataset, batch_size=None, num_workers=0)
                loss = F.cross_entropy(net(batch["image"]), batch["label"])

    Rank and world size are those of torch.distributed if it is initialised, else 0 of 1; arguments
    go first. Environment variables (RANK, WORLD_SIZE) are not looked at: a process that forgets to
    initialise would else train on a part of the data without a word.

    It does its own batching and its own work in parallel: in a DataLoader, use `batch_size=None`
    and `num_workers=0`; in worker processes it raises RuntimeError.

    Make it after the process group: in Lightning, in the hook `train_dataloader`; with Accelerate,
    after the Accelerator. One that was made before raises RuntimeError when it is iterated. Both
    take the dataset itself: `train_dataloader` may return it, and `accelerator.prepare` leaves it
    as it is (put its tensors on the device yourself). A DataLoader that Accelerate has prepared
    would share every rank's rows among the ranks once more; the dataset finds out, and raises
    RuntimeError.

    Trainer of Hugging Face takes `accelerate.data_loader.DataLoaderShard(dataset, batch_size=None)`
    from a method `get_train_dataloader`, and resumes it exactly: it tells this loader the epoch. As
    `train_dataset` it raises RuntimeError, because Trainer would stack batches. Weights of
    `Loader.reweight` and means of `Loader.scores` need `trainer_callback` to be resumed.
    """

    @init_takes(IterableOptions)
    def __init__(self, o: IterableOptions) -> None:
        """Opens a dataset.

        Args:
            o: the arguments are those of `chaski.load`, with these differences: `source` may be a
                `chaski.Loader`, then without any other argument; `target` is "host:port" of a
                running engine, as for `chaski.connect` (default: a local engine); `rank` and
                `world_size` are by default those of torch.distributed, or 0 of 1; `device`
                ("cuda", "cuda:1", "mps", "cpu") is where the tensors of batches are to be: one
                batch is copied ahead, beside what the loop computes, and converted there.

        Raises:
            RuntimeError: PyTorch cannot use the device.
            TypeError: a Loader and other arguments are given, or one of rank and world_size, or no
                batch_size.
        """
        super().__init__()
        self._ranks_found = False
        self._told = False  # an epoch or a state
        self._mover = None if o.device is None else mover(torch.device(o.device), to_tensors)
        if self._is_loader(replace(o, device=None)):
            self._map_tensors()
            return
        if o.batch_size is None:
            raise TypeError("IterableDataset() missing 1 required argument: 'batch_size'")
        if (o.rank is None) != (o.world_size is None):
            raise TypeError("give both rank and world_size, or none")
        self._ranks_found = o.rank is None
        rank, world_size = _distributed() if o.rank is None else (o.rank, o.world_size)
        self._loader = _open(o, batch_size=o.batch_size, rank=rank, world_size=world_size)
        self._map_tensors()

    def _map_tensors(self) -> None:
        """Has the function of `map` take tensors, and its result moved to the device."""
        if (mapper := self.loader._map) is not None:
            mapper.view = _given
            mapper.places = self._mover

    @property
    def epoch(self) -> int:
        """See `chaski.Loader.epoch`."""
        return self.loader.epoch

    @property
    def bad(self) -> BadRows:
        """What the bad-sample policy met so far."""
        return self.loader.bad

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Iterates over an epoch, as `chaski.Loader` does."""
        refuse_worker()
        self._refuse_other_ranks()
        active = _active(self)
        if active is not None and active.batch_sampler is not None and _stacks(active.collate_fn):
            _refuse_stacking()
        if (
            not self._told
            and self.loader.spec.get("shuffle")
            and "transformers.trainer" in sys.modules
        ):
            warn(
                "nobody told this chaski dataset the epoch: Trainer of Hugging Face does where "
                "get_train_dataloader returns accelerate.data_loader.DataLoaderShard(dataset, "
                "batch_size=None), and does not resume exactly with a DataLoader of PyTorch; in "
                "other loops call dataset.set_epoch"
            )
            self._told = True
        if self.loader._map is not None:
            return iter(self.loader)
        if self._mover is None:
            return map(lambda batch: _tensors(_Whole(), batch), self.loader)
        return map(_arrived, self.loader._walk.iterate(self._mover))

    def __getitem__(self, i: Any) -> Any:
        """Raises TypeError: samples by their index are those of `MapDataset`."""
        raise TypeError(
            "chaski.torch.IterableDataset gives whole batches in a loop; MapDataset of the same "
            "arguments gives samples by index, also for Subset, random_split and a sampler"
        )

    def _refuse_other_ranks(self) -> None:
        """Raises if the samples of an epoch would not come once over all ranks."""
        rank, world_size = self.loader.rank, self.loader.world_size
        now = _distributed()
        if self._ranks_found and now != (rank, world_size):
            raise RuntimeError(
                f"this chaski dataset was made as rank {rank} of {world_size}, and "
                f"torch.distributed now says {now[0]} of {now[1]}: make it after the process group "
                "(in Lightning, in the hook train_dataloader; with Accelerate, after the "
                "Accelerator), or give it rank and world_size"
            )
        active = _active(self)
        # Else its dataset does: an IterableDatasetShard.
        divides = type(active).__name__ == "DataLoaderDispatcher"
        if world_size > 1 and active is not None and (divides or active.dataset is not self):
            raise RuntimeError(
                f"this chaski dataset is rank {rank} of {world_size} already, and Accelerate would "
                "share its batches among the ranks once more. Do not prepare a DataLoader of it: "
                "iterate over the dataset itself, which accelerator.prepare leaves as it is"
            )

    def __len__(self) -> int:
        """Returns the steps of an epoch, the same on every rank."""
        return len(self.loader)

    def set_epoch(self, epoch: int) -> None:
        """See `chaski.Loader.set_epoch`. It raises RuntimeError as `__iter__` does."""
        self._refuse_other_ranks()
        self._told = True
        self.loader.set_epoch(epoch)

    @property
    def batch_sampler(self) -> SimpleNamespace:
        """An object with a `sampler`, whose `set_epoch` Lightning calls every epoch.

        Where Lightning does not find the callback of the package, it does not load this dataset's
        state from a checkpoint of the end of an epoch. Only by this call, the epoch that follows
        has its own order then, and not that of epoch 0.
        """
        # DeepSpeed's strategy asks whatever has a batch_sampler for its batch_size.
        return SimpleNamespace(sampler=_Epochs(self), batch_size=self.loader.local_batch_size)

    def state_dict(self) -> dict[str, Any]:
        """See `chaski.Loader.state_dict`. It always has "weights" and "scores", as tuples.

        torch.distributed.checkpoint loads only what the state of a new dataset has, too, looks for
        it by the names of all members of dicts and lists of dicts, and takes a tuple whole.
        """
        state = self.loader.state_dict()
        weights, scores = state.get("weights", ()), state.get("scores", {})
        return state | {"weights": tuple(weights), "scores": tuple(scores.items())}

    def load_state_dict(self, state: Mapping[str, Any], strict: bool = True) -> None:
        """See `chaski.Loader.load_state_dict`."""
        self._told = True
        self.loader.load_state_dict(state, strict)


class _Epochs:
    """What Lightning tells the epoch that begins, in place of a sampler."""

    def __init__(self, dataset: IterableDataset) -> None:
        self._dataset = dataset

    def set_epoch(self, epoch: int) -> None:
        """See `IterableDataset.set_epoch`. A callback does the rest of a resume: `_lightning`."""
        _check_installed()
        self._dataset.set_epoch(epoch)


class MapDataset(_Dataset, torch.utils.data.Dataset[dict[str, Any]]):
    """Samples as dicts of tensors, by their index in the dataset, for samplers of one's own.

        dataset = chaski.torch.MapDataset("chips/", normalize="mean_std", stats="stats.json")
        dataset[7]["image"]  # (bands, height, width)

    See `chaski.Loader.sample` for what an item is. In a DataLoader, which asks for all samples of a
    batch at once, the engine reads them by all workers, and the loop waits for it:
    `IterableDataset` reads ahead. There are no ranks; a sampler (DistributedSampler) may share the
    indices out. Use `num_workers=0`.
    """

    @init_takes(MapOptions)
    def __init__(self, o: MapOptions) -> None:
        """Opens a dataset.

        Args:
            o: the arguments are those of `IterableDataset` that say what a sample is.

        Raises:
            TypeError: a Loader and other arguments are given, or one about batches or epochs.
        """
        super().__init__()
        if self._is_loader(o):
            return
        instance("rows", o.rows, Rows)
        if o.rows.take is not None or o.rows.steps_per_epoch is not None:
            raise TypeError("MapDataset has no epochs: take and steps_per_epoch are for load")
        self._loader = _open(o, batch_size=1, shuffle=False)

    def __getitem__(self, i: int) -> dict[str, Any]:
        """Returns sample i; negative indices count from the end. See `__getitems__`."""
        return self.__getitems__([i])[0]

    def __getitems__(self, indices: Sequence[int]) -> list[dict[str, Any]]:
        """Returns several samples, read by all workers at once: a DataLoader asks so for a batch.

        Raises:
            IndexError: there is no such sample.
        """
        merged = any(
            a != "n" and "n" in a.strip("()").split() for f in self.loader.fields for a in f.axes
        )
        if merged and len(indices) > 1:  # rows of a batch cannot be told apart
            return [self[i] for i in indices]
        try:
            batch = self.loader.fetch(indices)
        except UnsupportedError:
            if self.loader._link.asked.get("batches") is None or len(indices) < 2:
                raise
            return [self[i] for i in indices]  # of several sources, which have no batch in common
        values = to_tensors(batch)
        return [row_of(batch, values, k) for k in range(len(indices))]

    def __len__(self) -> int:
        return self.loader._samples.count()

    def collate(self, samples: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Returns samples as one batch: ragged fields and strings as lists, others stacked.

        For `DataLoader(dataset, batch_size=4, collate_fn=dataset.collate)`: PyTorch's own function
        cannot stack boxes of samples that have different numbers of them.
        """
        ragged = {f.name for f in self.loader.fields if f.kind in ("boxes", "polygons")}
        columns = {name: [s[name] for s in samples] for name in samples[0]}
        stacked = torch.utils.data.default_collate
        return {name: v if name in ragged else stacked(v) for name, v in columns.items()}


def _open(o: MapOptions, **others: Any) -> Loader:
    options = {f.name: getattr(o, f.name) for f in fields(o) if f.name != "device"} | others
    target, source = options.pop("target"), options.pop("source")
    return load(source, **options) if target is None else connect(target, source, **options)


@functools.cache
def _check_installed() -> None:
    """Warns if Lightning does not find the callback of the package."""
    for package in ("lightning.pytorch", "pytorch_lightning"):
        found = importlib.metadata.entry_points(group=f"{package}.callbacks_factory")
        if package in sys.modules and "chaski" not in found.names:
            warn(
                "chaski is not installed as a package, so Lightning does not find its callback, "
                "and may not resume exactly: run pip install, or give Trainer "
                f"callbacks=[chaski._lightning.for_{package.split('.')[0]}()]"
            )


def _stacks(collate: Any) -> bool:
    """Reports whether a function of PyTorch, Trainer or Accelerate makes batches.

    A function of the user's own may take them apart.
    """
    # Trainer wraps the function in an object that drops members which the model does not take.
    for wrapper in ("data_collator", "func"):
        collate = getattr(collate, wrapper, collate)
    module = getattr(collate, "__module__", None) or type(collate).__module__
    return module.split(".")[0] in ("torch", "transformers", "accelerate")


def _active(dataset: IterableDataset) -> Any:
    """Returns the loader of Accelerate that iterates over a dataset or a shard of it, or None.

    Such a loader makes itself known to Accelerate before it asks for the epoch or an iterator.
    """
    state = sys.modules.get("accelerate.state")
    active = None if state is None else getattr(state.GradientState(), "active_dataloader", None)
    seen = getattr(active, "dataset", None)
    return active if dataset is seen or dataset is getattr(seen, "dataset", None) else None


def _distributed() -> tuple[int, int]:
    d = torch.distributed
    if d.is_available() and d.is_initialized():
        return d.get_rank(), d.get_world_size()
    return 0, 1
