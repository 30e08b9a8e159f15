"""The arguments of `load` and of `connect`: named, typed and given defaults once, for both."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Concatenate, ParamSpec, TypeVar

from chaski._proto.arguments import SourceLike
from chaski._spec import SpecOptions


@dataclass(frozen=True, kw_only=True)
class LoadOptions(SpecOptions):
    """The arguments of `load`."""

    source: SourceLike = field(kw_only=False)


@dataclass(frozen=True, kw_only=True)
class ConnectOptions(SpecOptions):
    """The arguments of `connect`."""

    target: str | Sequence[str] = field(kw_only=False)
    source: SourceLike = field(kw_only=False)


P = ParamSpec("P")
O = TypeVar("O")  # noqa: E741
R = TypeVar("R")
S = TypeVar("S")


def _taking(f: Callable[..., R], options: Callable[..., object], own: int) -> Callable[..., R]:
    """Returns f with the parts of options as arguments, behind so many of its own."""

    @functools.wraps(f)
    def call(*args: Any, **kwargs: Any) -> R:
        try:
            o = options(*args[own:], **kwargs)
        except TypeError as e:
            name = f.__qualname__.removesuffix(".__init__")
            said = str(e).replace(f"{getattr(options, '__name__', '')}.__init__", name)
            raise TypeError(said) from None
        return f(*args[:own], o)

    of_f = inspect.signature(f)
    before = [p.replace(kind=p.POSITIONAL_ONLY) for p in list(of_f.parameters.values())[:own]]
    parts = inspect.signature(options).parameters.values()
    call.__signature__ = of_f.replace(parameters=[*before, *parts])  # type: ignore[attr-defined]
    return call


def takes(options: Callable[P, O]) -> Callable[[Callable[[O], R]], Callable[P, R]]:
    """Makes a function of options one of their parts, as arguments.

    Type checkers, IDEs and `inspect.signature` see the arguments one by one, with their types and
    defaults.
    """
    return lambda f: _taking(f, options, 0)


def init_takes(
    options: Callable[P, O],
) -> Callable[[Callable[[S, O], None]], Callable[Concatenate[S, P], None]]:
    """Does what `takes` does for an `__init__`."""
    return lambda f: _taking(f, options, 1)
