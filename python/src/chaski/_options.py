"""The arguments of `load` and of `connect`: named, typed and given defaults once, for both."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Concatenate, Literal, ParamSpec, TypeVar

from chaski._access import Token
from chaski._proto.arguments import SourceLike
from chaski._spec import SpecOptions

if TYPE_CHECKING:
    import grpc

Wire = Literal["auto", "native", "final"]
Transport = Literal["auto", "shm", "grpc"]


@dataclass(frozen=True)
class Engine:
    """How batches are made and received. None of it changes what is in them.

    Attributes:
        workers: threads that decode; default: one a core. Only for `load`.
        memory: bytes that the engine may hold in batches that are in the making. In shared memory
            batches that you keep count, too, until there is room for only one more. A batch that
            does not fit is a LimitError; where fewer than `prefetch` + 1 fit, a warning is logged.
            Default: four batches of all ranks and the pools of a `TileWindow`, but at least 256 MiB
            and at most a quarter of the machine's memory. Only for `load`.
        max_chunk: bytes of the largest chunk (a file's tile, strip or frame) that is decoded whole;
            default: 64 MiB. Larger tiles and strips of TIFFs are decoded in pieces of rows; larger
            chunks of other formats are a LimitError. Whole chunks over 64 MiB are decoded by as
            many workers at a time as `memory` has room for, at least one. Only for `load`.
        prefetch: batches asked for ahead.
        transport: "shm" takes batches in memory that is shared with an engine on this host, without
            a copy, and fails if there is none; "grpc" has them sent; "auto" takes what works. The
            batches are the same, bit for bit.
        wire: where a local engine is the client of servers (`connect`), "native" and "auto" let
            them send pixels as stored where that is smaller, and the local engine converts them;
            "final" has the servers convert. The batches are the same, bit for bit. Whatever hands
            batches to Python has converted them, so `wire` changes nothing without that engine.
        reuse: memory of batches that nothing refers to any more is used again (shared memory always
            is).
        timeout: seconds without a sign of the engine after which an error is raised. With several
            servers, another one is asked for what a server owes that is silent for so long. Where
            all are, the error comes then, or, where they come back only to be silent again, after
            twice that time without a sign of any.
        max_batch_bytes: bytes that a batch may have.
        retries: times in a row that a broken connection is opened again; of several servers, each.
            Only for `connect`.
        hedge: with several servers, a second one is asked for a batch when the first takes longer
            than twice what this share of the last batches took; the first answer counts. None:
            never. Only for `connect`.
        prefetch_bytes: with several servers and a tile-aware order (`TileWindow`), more than
            `prefetch` batches are asked for, so that every server has a pool of tiles to work on,
            as far as these bytes hold them. 0 leaves it at `prefetch`. Only for `connect`.
        credentials: for TLS, what `chaski.tls` or `grpc.ssl_channel_credentials` returns; of one
            server, any credentials of gRPC. Default: plain text. Only for `connect`.
        token: for servers that ask for one: a `Token`, or its text. Default: what the environment
            variable CHASKI_TOKEN has, or the file that CHASKI_TOKEN_FILE names. Only for `connect`.
        plain_token: the token may go to other hosts in plain text, where others can read it. Only
            for `connect`.
    """

    workers: int | None = None
    memory: int | None = None
    max_chunk: int | None = None
    prefetch: int = 3
    transport: Transport = "auto"
    wire: Wire = "auto"
    reuse: bool = True
    timeout: float = 120.0
    max_batch_bytes: int = 8 << 30
    retries: int = 5
    hedge: float | None = 0.95
    prefetch_bytes: int = 2 << 30
    credentials: grpc.ChannelCredentials | None = None
    token: Token | str | None = None
    plain_token: bool = False

    def __post_init__(self) -> None:
        if isinstance(self.token, str):
            object.__setattr__(self, "token", Token(self.token))


@dataclass(frozen=True, kw_only=True)
class Options(SpecOptions):
    """What `load` and `connect` both take; `load` documents it."""

    rank: int = 0
    world_size: int = 1
    engine: Engine = field(default_factory=Engine)


@dataclass(frozen=True, kw_only=True)
class LoadOptions(Options):
    """The arguments of `load`."""

    source: SourceLike = field(kw_only=False)


@dataclass(frozen=True, kw_only=True)
class ConnectOptions(Options):
    """The arguments of `connect`."""

    target: str | Sequence[str] = field(kw_only=False)
    source: SourceLike = field(kw_only=False)


P = ParamSpec("P")
O = TypeVar("O")  # noqa: E741
R = TypeVar("R")
S = TypeVar("S")


def _made(name: str, options: Callable[P, O], *args: Any, **kwargs: Any) -> O:
    try:
        return options(*args, **kwargs)
    except TypeError as e:
        said = str(e).replace(f"{getattr(options, '__name__', '')}.__init__", name)
        raise TypeError(said) from None


def takes(options: Callable[P, O]) -> Callable[[Callable[[O], R]], Callable[P, R]]:
    """Makes a function of options one of their parts, as arguments.

    Type checkers, IDEs and `inspect.signature` see the arguments one by one, with their types and
    defaults.
    """

    def of(f: Callable[[O], R]) -> Callable[P, R]:
        @functools.wraps(f)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            return f(_made(f.__name__, options, *args, **kwargs))

        signature = inspect.signature(options)
        returns = inspect.signature(f).return_annotation
        call.__signature__ = signature.replace(return_annotation=returns)  # type: ignore[attr-defined]
        return call

    return of


def init_takes(
    options: Callable[P, O],
) -> Callable[[Callable[[S, O], None]], Callable[Concatenate[S, P], None]]:
    """Does what `takes` does for an `__init__`."""

    def of(f: Callable[[S, O], None]) -> Callable[Concatenate[S, P], None]:
        @functools.wraps(f)
        def call(self: S, *args: P.args, **kwargs: P.kwargs) -> None:
            f(self, _made(type(self).__name__, options, *args, **kwargs))

        signature = inspect.signature(options)
        first = inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)
        parameters = [first, *signature.parameters.values()]
        call.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
        return call  # type: ignore[return-value]  # mypy sees a `self` that has a name

    return of
