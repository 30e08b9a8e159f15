"""What a call that goes wrong tells: the argument that was meant, and no frames of the package."""

from __future__ import annotations

import difflib
import functools
import inspect
import itertools
import os
import sys
import traceback
import warnings
from collections.abc import Callable, Iterable, Mapping
from types import TracebackType
from typing import Any, ParamSpec, TypeVar

import numpy as np

from chaski._plain import as_path, positive
from chaski.errors import Error, SpecError

P = ParamSpec("P")
R = TypeVar("R")

_WINDOW = "write window=chaski.RandomWindow(...) or window=chaski.Grid(...)"
_SLICES = "write y=(start, stop) and x=(start, stop), or windows=[(row, column, height, width)]"
_INSTEAD: dict[str, dict[str, str]] = {
    "load": {
        "transform": "write map=..., a function of a batch; flips and turns are "
        "chaski.Pixels(augment=...)",
        "num_workers": "the engine decodes in parallel: engine=chaski.Engine(workers=...)",
        "prefetch_factor": "the engine reads ahead: engine=chaski.Engine(prefetch=...)",
        "collate_fn": "batches are ready",
        "pin_memory": "chaski.torch.IterableDataset(device=...) copies batches ahead of the loop",
        "drop_last": 'write last="drop"',
        "generator": "the order depends on seed=...",
        "sampler": "windows are chosen by window=..., samples by rows=chaski.Rows(...)",
        "patch_size": _WINDOW,
        "epochs": "each loop over the loader is an epoch",
    },
    "read": dict.fromkeys(("bands", "band", "indexes", "channels"), "write b=[...], from 0")
    | dict.fromkeys(("window", "box"), _SLICES)
    | {"dtype": "the array has the dtype of the file: convert it with .astype(...)"},
    "Field": {
        "path": "write column=... or pattern=...",
        "mean": 'write normalize={"mean": ..., "std": ...}',
        "channels": "write bands=[...]",
        "name": "it is the key of the dict of fields",
    },
    "Rows": {"filter": "write where=...", "limit": "write take=...", "n": "write take=..."},
    "Engine": {
        "num_workers": "write workers=...",
        "threads": "write workers=...",
        "cache_dir": "write cache=...",
        "prefetch_factor": "write prefetch=...",
    },
}
"""What to write in place of arguments that other packages have, by the call."""

_INSTEAD["load"] |= {"transforms": _INSTEAD["load"]["transform"]}
_INSTEAD["load"] |= {"batch_sampler": _INSTEAD["load"]["sampler"]}
_INSTEAD["load"] |= dict.fromkeys(("chip_size", "crop_size", "tile_size"), _WINDOW)
_INSTEAD["Field"] |= {"std": _INSTEAD["Field"]["mean"], "indexes": "write bands=[...]"}

elsewhere: dict[str, str] = {}
"""How an argument of `load`, or of an object that it takes, is written, by its name."""


def instead(
    call: str, given: Iterable[str], parts: Iterable[str], others: Mapping[str, str] | None = None
) -> str:
    """Returns what to write in place of the first argument that a call does not have.

    Args:
        call: name of the function or class.
        given: the names that the user wrote.
        parts: the names that there are.
        others: how these, and members of the objects that they are, are written.
    """
    parts = list(parts)
    written = others or {name: f"{name}=..." for name in parts}
    for name in given:
        if name in parts:
            continue
        if name in written:
            return f": write {written[name]}"
        if name in _INSTEAD.get(call, {}):
            return f": {_INSTEAD[call][name]}"
        near = difflib.get_close_matches(name, written, n=1, cutoff=0.7)
        if near:
            return f": did you mean {written[near[0]]}?"
        if others:
            return ""
        if name in elsewhere:
            return f": chaski.load has it: write {elsewhere[name]}"
        return f": there are {', '.join(parts)}"
    return ""


def raised(e: BaseException, quiet: bool = False) -> BaseException:
    """Returns what a call of a user's raises for an exception below it.

    Errors of the package say all that a user needs: the frames below the call are dropped. So are
    those of an interrupt. One that ends the program prints a line, as of commands, if it is quiet.
    """
    interrupt = e
    if isinstance(e, RuntimeError) and e.__context__ is not None:
        # While a thread starts, Python 3.11 may turn an interrupt into "release unlocked lock".
        interrupt = e.__context__
    if isinstance(interrupt, KeyboardInterrupt):
        if quiet:
            _quietly(interrupt)
        interrupt.__suppress_context__ = True
        return interrupt.with_traceback(None)
    # Faults of the program itself keep their frames.
    if isinstance(e, Error) and e.kind not in ("internal", "payload"):
        return e.with_traceback(None)
    return e


def _check(p: inspect.Parameter, v: Any) -> None:
    """Raises if an argument is no bool, path or timeout where its annotation says so."""
    kind = str(p.annotation).removesuffix(" | None")
    if v is None and kind != p.annotation:
        return
    if kind == "bool" and not isinstance(v, (bool, np.bool_)):
        raise SpecError(f"{p.name} is {v!r:.100}: it must be True or False")
    if kind in ("Path", "_Path", "str | os.PathLike[str]"):
        as_path(p.name, v)
    if p.name == "timeout":
        positive(p.name, v)


def entry(f: Callable[P, R]) -> Callable[P, R]:
    """Returns a function for users: errors are as `_check`, `raised` and `instead` say."""
    declared = inspect.signature(f).parameters
    checked = {} if f.__name__ == "__init__" else declared  # the engine checks members of a spec

    @functools.wraps(f)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            for name, v in (*zip(checked, args, strict=False), *kwargs.items()):
                if name in checked:
                    _check(checked[name], v)
            return f(*args, **kwargs)
        except TypeError as e:
            if e.__traceback__ is not None and e.__traceback__.tb_next is not None:
                raise  # it is not about this call
            made = type(args[0]).__name__ if f.__name__ == "__init__" else f.__qualname__
            said = str(e).replace(f.__qualname__, made)
            parts = [p for p in declared if p != "self"]
            raise TypeError(said + instead(made, kwargs, parts)) from None
        except BaseException as e:
            raise raised(e, quiet=True)  # noqa: B904 (its own cause stays)

    return call


def entries(kind: type) -> None:
    """Makes the classes below a class, and what makes their objects, functions for users."""
    below: Any
    for below in kind.__subclasses__():
        if "__init__" in vars(below):
            below.__init__ = entry(below.__init__)
        entries(below)


# cached_property calls back. Without .py, as Python 3.12 finds no file by its whole name.
_OWN = os.path.dirname(__file__) + os.sep, functools.__file__.removesuffix(".py")


def warn(message: str) -> None:
    """Warns about the line outside of the package that led here."""
    if sys.version_info >= (3, 12):
        warnings.warn(message, skip_file_prefixes=_OWN)
    else:
        files = (f.filename for f in reversed(traceback.extract_stack()))
        own = itertools.takewhile(lambda name: name.startswith(_OWN), files)
        warnings.warn(message, stacklevel=1 + len(list(own)))


_shown: Callable[[type[BaseException], BaseException, TracebackType | None], Any] | None = None


def _quietly(interrupt: KeyboardInterrupt) -> None:
    """Lets an interrupt that ends the program print a line and no traceback."""
    global _shown
    interrupt.__dict__["chaski"] = True
    if _shown is None:  # one hook for all interrupts, none of which it keeps
        _shown, sys.excepthook = sys.excepthook, _hook


def _hook(kind: type[BaseException], e: BaseException, tb: TracebackType | None) -> None:
    """Is `sys.excepthook` from the first interrupt of a call on."""
    if "chaski" in e.__dict__:
        print("chaski: interrupted", file=sys.stderr)
    elif _shown is not None:
        _shown(kind, e, tb)
