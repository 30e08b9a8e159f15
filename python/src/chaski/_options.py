"""The arguments of `load` and of `connect`: named, typed and given defaults once, for both."""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, ParamSpec, TypeVar

from chaski._run import Transport
from chaski._sources import SourceLike
from chaski._spec import SpecOptions

if TYPE_CHECKING:
    import grpc

Wire = Literal["auto", "native", "final"]


@dataclass(frozen=True, kw_only=True)
class Options(SpecOptions):
    """What `load` and `connect` both take; the documentation of `load` tells what it means."""

    quarantine: str | os.PathLike[str] | None = None
    rank: int = 0
    world_size: int = 1
    prefetch: int = 3
    wire: Wire = "auto"
    transport: Transport = "auto"
    reuse: bool = True
    timeout: float = 120.0
    max_batch_bytes: int = 8 << 30


@dataclass(frozen=True, kw_only=True)
class LoadOptions(Options):
    """The arguments of `load`."""

    source: SourceLike = field(kw_only=False)
    workers: int | None = None
    memory: int | None = None
    max_chunk: int | None = None


@dataclass(frozen=True, kw_only=True)
class ConnectOptions(Options):
    """The arguments of `connect`."""

    target: str | Sequence[str] = field(kw_only=False)
    source: SourceLike = field(kw_only=False)
    retries: int = 5
    hedge: float | None = 0.95
    prefetch_bytes: int = 2 << 30
    credentials: grpc.ChannelCredentials | None = None


P = ParamSpec("P")
O = TypeVar("O")  # noqa: E741
R = TypeVar("R")


def takes(options: Callable[P, O]) -> Callable[[Callable[[O], R]], Callable[P, R]]:
    """Makes a function of options one of their parts, as arguments.

    Type checkers, IDEs and `inspect.signature` see the arguments one by one, with their types and
    defaults.
    """

    def of(f: Callable[[O], R]) -> Callable[P, R]:
        @functools.wraps(f)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            try:
                o = options(*args, **kwargs)
            except TypeError as e:
                said = str(e).replace(f"{options.__name__}.__init__", f.__name__)
                raise TypeError(said) from None
            return f(o)

        signature = inspect.signature(options)
        returns = inspect.signature(f).return_annotation
        call.__signature__ = signature.replace(return_annotation=returns)  # type: ignore[attr-defined]
        return call

    return of
