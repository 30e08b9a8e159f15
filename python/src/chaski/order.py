"""Which sample is at a position, and which window of it: the order of the engine, in Python.

Pure functions of (seed, epoch, position), with O(1) time and memory and no stored permutation. They
give the order of the engine: version 1, defined in docs/order.md. Nothing here is needed
to load data; it answers "which samples were in step 1234 of epoch 5" without an engine.
"""

from __future__ import annotations

import contextlib
import json
import operator
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, TypeVar, overload

import numpy as np
import numpy.typing as npt

from chaski.errors import StateError

__all__ = [
    "VERSION",
    "Order",
    "State",
    "Ticket",
    "Weights",
    "below",
    "hash_words",
    "drawn",
    "local_rows",
    "mix",
    "steps",
    "window",
]

Words = TypeVar("Words", int, npt.NDArray[Any])

VERSION = 1
"""Version of the order; part of every state."""

_MASK = (1 << 64) - 1
_GOLDEN = 0x9E3779B97F4A7C15
_MIX_1 = 0xBF58476D1CE4E5B9
_MIX_2 = 0x94D049BB133111EB
_DOMAIN_ORDER = 1
_DOMAIN_WINDOW = 2
_DOMAIN_ROW = 19
_ROUNDS = 12
# Smaller networks are not uniform enough; small epochs walk some steps more.
_MIN_BITS = 6

# Beginnings of the parts of a run that do not change which sample stands at a position.
_SAME_SAMPLES = ("fields", "batch_size", "last", "bad_samples", "augment", "windows")
# And of those that say which samples a dataset has, beside "samples" of epochs without "take".
_COUNTS = ("rows", "selected", "sampler.kind", "sampler.per_asset", "sampler.stride")
_MEMBERS = {"version": int, "spec": str, "seed": int, "epoch": int, "samples": int}
"""What the JSON of a state has, beside "run"."""
_OPTIONAL = {"run", "weights", "scores"}
_SCORES = "path", "hash"
_MAX_DIFFERENCES = 8
"""What a message names at most."""
# Letters of a value of a state in an error; a message of nine differences fits into 16 KiB.
_MAX_TEXT = 800


def mix(x: Words) -> Words:
    """The finaliser of splitmix64: a bijection of 64-bit words, of one or of each in an array."""
    x = ((x ^ (x >> 30)) * _MIX_1) & _MASK
    x = ((x ^ (x >> 27)) * _MIX_2) & _MASK
    mixed: Words = x ^ (x >> 31)
    return mixed


def hash_words(seed: int, *words: int) -> int:
    """Mixes a seed and words, each in [0, 2**64), into one uniform 64-bit word."""
    h = mix((operator.index(seed) + _GOLDEN) & _MASK)
    for w in words:
        h = mix(((h ^ operator.index(w)) + _GOLDEN) & _MASK)
    return h


def below(h: int, n: int) -> int:
    """Maps a uniform 64-bit word to [0, n) by its high bits."""
    return (operator.index(h) * operator.index(n)) >> 64


class Order:
    """A permutation of [0, n): a Feistel network of 12 rounds, walked until it lands inside."""

    def __init__(self, seed: int, epoch: int, n: int, shuffled: bool = True) -> None:
        """Makes the order of an epoch of n samples; without `shuffled` it is the identity.

        Raises:
            ValueError: n is negative, or seed or epoch is not in [0, 2**64).
        """
        n, seed, epoch = operator.index(n), operator.index(seed), operator.index(epoch)
        if n < 0:
            raise ValueError(f"n is {n}, not a number of samples")
        if not (0 <= seed <= _MASK and 0 <= epoch <= _MASK):
            raise ValueError(f"seed {seed} and epoch {epoch} must be in [0, 2**64)")
        self._n = n
        self._shuffled = shuffled and n > 1
        k = max((n - 1).bit_length(), _MIN_BITS) if n > 1 else _MIN_BITS
        self._low = k // 2
        self._low_mask = (1 << self._low) - 1
        self._top_mask = (1 << (k - self._low)) - 1
        self._keys = [hash_words(seed, _DOMAIN_ORDER, epoch, i) for i in range(_ROUNDS)]

    def __len__(self) -> int:
        return self._n

    @overload
    def at(self, p: int) -> int: ...
    @overload
    def at(self, p: npt.NDArray[np.integer[Any]]) -> npt.NDArray[np.int64]: ...
    def at(self, p: int | npt.NDArray[np.integer[Any]]) -> int | npt.NDArray[np.int64]:
        """Returns the sample at position p, or the samples (int64) at an array of positions.

        Raises:
            IndexError: a position is not in [0, n).
        """
        if isinstance(p, np.ndarray):
            return self._at_array(p)
        return self._walked(operator.index(p), self._forward)

    def position(self, sample: int) -> int:
        """Returns the position of a sample: the inverse of `at`.

        Raises:
            IndexError: the sample is not in [0, n).
        """
        return self._walked(operator.index(sample), self._backward)

    def _walked(self, x: int, network: Callable[[int], int]) -> int:
        """Returns the first number behind x in a network that lies in [0, n)."""
        if not 0 <= x < self._n:
            raise IndexError(f"{x} is not in [0, {self._n})")
        while self._shuffled:
            x = network(x)
            if x < self._n:
                break
        return x

    def _forward(self, x: Words) -> Words:
        lo, hi = x & self._low_mask, x >> self._low
        for i in range(0, _ROUNDS, 2):
            hi = hi ^ (mix(lo ^ self._keys[i]) & self._top_mask)
            lo = lo ^ (mix(hi ^ self._keys[i + 1]) & self._low_mask)
        return hi << self._low | lo

    def _backward(self, x: int) -> int:
        lo, hi = x & self._low_mask, x >> self._low
        for i in range(_ROUNDS - 2, -1, -2):
            lo ^= mix(self._keys[i + 1] ^ hi) & self._low_mask
            hi ^= mix(self._keys[i] ^ lo) & self._top_mask
        return hi << self._low | lo

    def _at_array(self, p: npt.NDArray[np.integer[Any]]) -> npt.NDArray[np.int64]:
        if p.size and not (0 <= int(p.min()) and int(p.max()) < self._n):
            raise IndexError(f"positions are not all in [0, {self._n})")
        if not self._shuffled:
            return p.astype(np.int64)
        x = self._forward(p.astype(np.uint64).reshape(-1))
        outside = np.flatnonzero(x >= np.uint64(self._n))
        while outside.size:
            y = self._forward(x[outside])
            x[outside] = y
            outside = outside[y >= np.uint64(self._n)]
        return x.astype(np.int64).reshape(p.shape)


def window(
    seed: int,
    epoch: int,
    p: int,
    height: int,
    width: int,
    h: int,
    w: int,
    align_y: int = 1,
    align_x: int = 1,
) -> tuple[int, int]:
    """Returns the corner (y, x), in pixels, of the random window at position p of an epoch.

    Args:
        seed: the seed of the run.
        epoch: the epoch.
        p: the position.
        height: pixels of the asset, down.
        width: pixels of the asset, across.
        h: pixels of the window, down.
        w: pixels of the window, across. Where a window does not fit, its corner is 0.
        align_y: pixels that y is a multiple of, so that a coarser field has a corner too.
        align_x: pixels that x is a multiple of.
    """
    y = below(hash_words(seed, _DOMAIN_WINDOW, epoch, p, 0), max(height - h, 0) // align_y + 1)
    x = below(hash_words(seed, _DOMAIN_WINDOW, epoch, p, 1), max(width - w, 0) // align_x + 1)
    return y * align_y, x * align_x


def drawn(
    seed: int, epoch: int, positions: npt.NDArray[np.int64], weights: npt.NDArray[np.float32]
) -> npt.NDArray[np.int64]:
    """Returns the samples that weights draw at positions of an epoch of a run.

    Args:
        seed: the seed of the run.
        epoch: the epoch of the run.
        positions: positions of that epoch.
        weights: one for each sample, float32.
    """
    bits = min(36, 62 - len(weights).bit_length())
    exponent = int(np.frexp(np.float64(weights.max()))[1])
    whole = np.ldexp(weights.astype(np.float64), bits - exponent).astype(np.uint64)
    sums = np.cumsum(np.maximum(whole, weights > 0), dtype=np.uint64)
    hashes = (hash_words(seed, _DOMAIN_ROW, epoch, int(p), 0) for p in positions)
    places = np.array([below(h, int(sums[-1])) for h in hashes], np.uint64)
    return np.searchsorted(sums, places, side="right")


def steps(n: int, g: int, drops_last: bool = False) -> int:
    """Returns the steps of an epoch of n positions in global batches of g."""
    if n < 0 or g < 1:
        raise ValueError(f"n is {n} and g is {g}: they must be at least 0 and 1")
    return n // g if drops_last else -(-n // g)


def local_rows(g: int, world_size: int) -> int:
    """Returns the rows of a global batch of g on each of world_size ranks, padding included."""
    if world_size < 1:
        raise ValueError(f"world_size is {world_size}: it must be at least 1")
    return -(-g // world_size)


@dataclass(frozen=True, slots=True)
class Weights:
    """Weights of samples, from a place in a run on; see `Loader.reweight`.

    Attributes:
        path: of the file that has them.
        hash: SHA-256 of the file, in hexadecimal digits.
        once: each sample comes once in an epoch, and what an epoch has more is drawn by weight.
        epoch: the first epoch with these weights.
        samples: the first position of it.
    """

    path: str
    hash: str
    once: bool = False
    epoch: int = 0
    samples: int = 0


@dataclass(frozen=True, slots=True)
class Ticket:
    """Asks for rows row_start, row_start + row_stride, ... of the count positions from first.

    One that names positions asks for these, in their order, and may have y and x of the random
    window at each; its other members but the epoch are 0. An unpadded one asks for the rows alone
    that exist, and for one of padding where there is none.
    """

    epoch: int
    first: int = 0
    count: int = 0
    row_start: int = 0
    row_stride: int = 0
    named: tuple[int, ...] = ()
    corners: tuple[int, ...] = ()
    unpadded: bool = False
    weights: Weights | None = None

    @classmethod
    def of_step(cls, epoch: int, step: int, g: int, rank: int = 0, world_size: int = 1) -> Ticket:
        """Returns the ticket of a rank for a step in global batches of g."""
        return cls(epoch, step * g, g, rank, world_size)

    def without_padding(self, n: int) -> Ticket:
        """Returns the ticket with the rows alone that exist in an epoch of n positions."""
        return replace(self, count=min(self.count, n - self.first), unpadded=True)

    def rows(self) -> int:
        """Returns the rows of the ticket's batch, existing or not."""
        if self.unpadded:
            return max(local_rows(self.count - self.row_start, self.row_stride), 1)
        return len(self.named) or local_rows(self.count, self.row_stride)

    def positions(self, n: int) -> npt.NDArray[np.int64]:
        """Returns the position of every row in an epoch of n (int64), -1 where it is padding."""
        if self.named:
            return np.array(self.named, np.int64)
        end = min(self.first + self.count, n)
        p = np.arange(self.first + self.row_start, end, self.row_stride, dtype=np.int64)
        padding = self.rows() - len(p)
        return np.pad(p, (0, padding), constant_values=-1) if padding else p


def _names(part: object) -> list[str]:
    """Returns the strings of a list in a part of a run, none of others."""
    try:
        names = json.loads(part) if isinstance(part, str) else []
    except ValueError:
        return []
    return names if isinstance(names, list) else []


@dataclass(frozen=True, slots=True)
class State:
    """All that resuming needs; its JSON is the same in Go.

    Attributes:
        spec: the spec hash.
        seed: the seed of the order.
        epoch: the epoch that the state stands in.
        samples: positions of that epoch handed to the user over all ranks; whole steps.
        version: `VERSION`.
        run: what the spec hash is made of, by name; empty in states of before.
        weights: those in force and those to come, by their places; empty without `reweight`.
        scores: path and SHA-256 of the file with the means of `Loader.scores`, if there are any.
    """

    spec: str
    seed: int
    epoch: int
    samples: int
    version: int = VERSION
    run: Mapping[str, str | int | float | bool] = field(default_factory=dict, hash=False)
    weights: tuple[Weights, ...] = ()
    scores: tuple[str, str] | None = None

    def step(self, n: int, g: int) -> int:
        """Returns the step that follows, for global batches of g over an epoch of n positions.

        Raises:
            StateError: the state is of another version, or not between two steps.
        """
        if self.version != VERSION:
            raise StateError(
                f"the state has version {self.version} of the order; this chaski has {VERSION}"
            )
        if not 0 <= self.samples <= n:
            raise StateError(
                f"the state stands after {self.samples} samples of an epoch that has {n}"
            )
        if self.samples % g and self.samples != n:
            raise StateError(
                f"the state stands after {self.samples} samples, not between two steps of {g}"
            )
        return steps(self.samples, g)

    def differences(self, now: State) -> tuple[list[str], bool]:
        """Returns in what the run of this state differs from that of another, at its begin.

        Returns:
            strings such as "batch_size is 16, in the state 32", none for the same run; and whether
            another sample may stand at a position.
        """
        if self.spec == now.spec and self.seed == now.seed:
            return [], False
        out, other_order = [], False
        if self.seed != now.seed:
            out, other_order = [f"seed is {now.seed}, in the state {self.seed}"], True
        if not self.run or not now.run:
            if self.spec != now.spec and not out:  # which a seed changes, too
                out.append(
                    f"spec hash is {now.spec}, in the state {self.spec}: the dataset, the fields, "
                    "the sampler, batch_size, shuffle, last or bad_samples"
                )
            return out, True
        for name in sorted((self.run.keys() | now.run.keys()) - {"seed"}):
            here, there = now.run.get(name), self.run.get(name)
            if here == there and type(here) is type(there):
                continue
            other_order = other_order or not name.startswith(_SAME_SAMPLES)
            was = "it is " if here is None or there is None else ""
            if str(here).startswith("#") and str(there).startswith("#"):
                out.append(f"{name} differs")
            else:
                out.append(f"{name} is {_shown(here)}, in the state {was}{_shown(there)}")
        if not out:
            out, other_order = ["the spec hash"], True
        if len(out) > _MAX_DIFFERENCES:
            out[_MAX_DIFFERENCES:] = [f"{len(out) - _MAX_DIFFERENCES} more"]
        return out, other_order

    def resume(
        self, now: State, n: int, g: int, drops_last: bool = False, strict: bool = True
    ) -> tuple[State, str]:
        """Returns the state from which a run goes on that was handed this one.

        Args:
            now: the state at the begin of the run.
            n: positions of its epochs.
            g: samples of its global batches.
            drops_last: its epochs end with the last whole batch.
            strict: a state of another run is an error. Without, see docs/order.md, State.

        Returns:
            the state, and where it is one of another run, what differs and what follows.

        Raises:
            StateError: the state is of another run, and the message says what differs; or it is of
                another version, or not between two steps.
        """
        if self.version != VERSION:
            self.step(n, g)  # which raises
        if self.epoch < 0:
            raise StateError(f"the state stands in epoch {self.epoch}")
        differences, other_order = self.differences(now)
        if not differences:
            self.step(n, g)
            return replace(self, spec=now.spec, run=now.run), ""
        what = "; ".join(map(_cut, differences))
        if strict:
            raise StateError(f"the state is of another run: {what}")
        if self.samples < 0:
            raise StateError(f"the state stands after {self.samples} samples")
        self._check_classes(now)
        epoch, samples = self.epoch, self.samples // g * g
        if self._ended() or samples // g >= steps(n, g, drops_last):
            epoch, samples = self.epoch + 1 & _MASK, 0
        note = (
            f"the state is of another run: {what}; this run goes on in epoch {epoch} after "
            f"{samples} of {n} samples"
        )
        if samples and other_order:
            note += (
                ", in its own order: the rest of this epoch may repeat samples that were given, "
                "and others are left out of it"
            )
        elif samples and samples < self.samples:
            note += f"; the last {self.samples - samples} come again"
        weights, scores = self.weights, self.scores
        if (weights or scores) and self._counts_otherwise(now):
            weights, scores = (), None
            note += "; its weights and means of losses are of other samples, and are left out"
        return replace(now, epoch=epoch, samples=samples, weights=weights, scores=scores), note

    def _check_classes(self, now: State) -> None:
        """Raises if a class has another number in the run that goes on.

        The numbers that a model has learnt would mean other things. Lists of over 64 bytes are
        hashes, of which nothing is known.
        """
        for name in sorted(now.run):
            if not name.endswith(".classes"):
                continue
            before = _names(self.run.get(name))
            for number, label in enumerate(_names(now.run[name])):
                if label in before and before.index(label) != number:
                    raise StateError(
                        f'{name}: "{label}" is number {number}, in the state '
                        f"{before.index(label)}: give classes in the order of the state"
                    )

    def _counts_otherwise(self, now: State) -> bool:
        """Returns whether sample i may be another one in the run that goes on."""
        was, here = self.run, now.run
        names = {name for name in was.keys() | here.keys() if name.startswith(_COUNTS)}
        if "take" not in was and "take" not in here:
            names.add("samples")
        return bool(was and here) and any(was.get(name) != here.get(name) for name in names)

    def _ended(self) -> bool:
        """Returns whether it stands at the end of an epoch of its own run, as far as `run` says."""
        n, g = self.run.get("samples"), self.run.get("batch_size")
        if type(n) is not int or type(g) is not int or n < 0 or not 1 <= g < 1 << 31:
            return False
        return steps(self.samples, g) >= steps(n, g, self.run.get("last") == "drop")

    def to_dict(self) -> dict[str, Any]:
        """Returns the state as what its JSON holds."""
        out = {name: getattr(self, name) for name in _MEMBERS}
        if self.run:
            out["run"] = dict(self.run)
        if self.weights:
            out["weights"] = [asdict(w) for w in self.weights]
        if self.scores:
            out["scores"] = dict(zip(_SCORES, self.scores, strict=True))
        return out

    @classmethod
    def from_dict(cls, d: Mapping[str, Any]) -> State:
        """Reads what `to_dict` returns.

        Raises:
            StateError: a member is missing, unknown or of the wrong type.
        """
        if not isinstance(d, Mapping):
            raise StateError(f"the state is {_told(d)}, not what state_dict returns")
        for name, t in _MEMBERS.items():
            if name not in d:
                raise StateError(f"the state has no {name!r}")
            if type(d[name]) is not t or (t is int and not -1 << 63 <= d[name] <= _MASK):
                raise StateError(f"the state's {name!r} is {_told(d[name])}, not {t.__name__}")
        unknown = sorted(_told(name) for name in set(d) - set(_MEMBERS) - _OPTIONAL)
        if unknown:
            raise StateError(f"the state has unknown members [{_cut(', '.join(unknown))}]")
        run = d.get("run", {})
        if not isinstance(run, Mapping) or not all(
            isinstance(k, str) and isinstance(v, str | int | float) for k, v in run.items()
        ):
            raise StateError(f"the state's 'run' is {_told(run)}, not names with values")
        for name, v in run.items():
            if isinstance(v, int) and not -1 << 63 <= v <= _MASK:
                raise StateError(f"the state's {_told(name)} is an int of more than 64 bits")
        weights = d.get("weights") or []
        types = {f.name: type(f.default) for f in fields(Weights)} | {"path": str, "hash": str}
        if not isinstance(weights, list | tuple) or not all(
            isinstance(w, Mapping)
            and w.keys() == types.keys()
            and all(type(w[name]) is t for name, t in types.items())
            for w in weights
        ):
            raise StateError(f"the state's 'weights' is {_told(weights)}, not weights of reweight")
        scores = d.get("scores") or None
        if isinstance(scores, list | tuple):  # of a dataset of chaski.torch: pairs
            with contextlib.suppress(TypeError, ValueError):
                scores = dict(scores)
        if scores is not None and not (
            isinstance(scores, Mapping)
            and scores.keys() == set(_SCORES)
            and all(type(v) is str for v in scores.values())
        ):
            raise StateError(f"the state's 'scores' is {_told(scores)}, not a path and a hash")
        return cls(
            **{name: d[name] for name in _MEMBERS},
            run=dict(run),
            weights=tuple(Weights(**w) for w in weights),
            scores=None if scores is None else (scores["path"], scores["hash"]),
        )


def _cut(text: str) -> str:
    """Returns a string without its middle if it is longer than an error should be."""
    return text if len(text) <= _MAX_TEXT else f"{text[: _MAX_TEXT // 2]}…{text[-_MAX_TEXT // 2 :]}"


def _told(value: object) -> str:
    """Returns a value of a state for an error."""
    try:
        return _cut(repr(value))
    except (ValueError, RecursionError):  # Python writes ints of 4,300 digits at most
        return f"a {type(value).__name__} that cannot be printed"


def _shown(value: str | int | float | bool | None) -> str:
    """Returns a part of a run for a message."""
    if value is None:
        return "not given"
    if isinstance(value, bool):
        return "true" if value else "false"
    text = str(value)
    return "another one" if text.startswith("#") else text
