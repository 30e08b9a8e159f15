"""`load` and `connect`: which engine a loader has, and by which options."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, get_args

from chaski import _engine
from chaski._access import check_plain, from_environment
from chaski._arguments import Engine, Transport, Wire
from chaski._files import absolute_path
from chaski._grpc import grpc, pb
from chaski._host import SUPPORTED
from chaski._loader import Loader
from chaski._plain import MAX_WORKERS, count, instance, positive
from chaski._rpc import Connection, Description, addresses, stands_still, tls_of
from chaski._spec import ConnectOptions, LoadOptions, SpecOptions, build_spec, takes
from chaski._suggest import suggested
from chaski._tables import Files
from chaski.errors import EngineError, Error, NotFoundError, SpecError, UnavailableError
from chaski.order import local_rows

_LEAST = {"prefetch_bytes": 0, "cache_bytes": 64 << 10}
_MAX_RANKS = 0xFFFFFFFF  # the stride of rows in a ticket has 32 bits


def _refuse_fork() -> None:
    """Raises in a fork of a process that used gRPC, where an engine would be waited for in vain."""
    if stands_still():
        raise RuntimeError(
            "this process was forked from one that had used chaski, whose connections stand still "
            "here: start processes by the method 'spawn' or 'forkserver'"
        )


@takes(LoadOptions)
def load(o: LoadOptions) -> Loader:  # noqa: D417 (documented are the members of o)
    """Loads batches with an engine of its own, which all loaders of this process share.

    The engine is what CHASKI_BIN names, else the one that the wheel carries, else `chaski` on PATH.
    It runs as a child process, reachable by this user only, and ends with the last loader or this
    process. When it is killed (the system has no memory left, say), a new one goes on at the step
    where the loop stands, and the log says so; the third end within an hour is an
    UnavailableError with the engine's last words.

    Args:
        source: a catalog (.parquet), a table of samples (.csv, .parquet), a container (TACO,
            Tortilla) or a list of them, a directory, a glob, a file or a list (also a Series or an
            array) of files, or the folder of a dense TileDB array, whose attributes are the fields'
            columns; a table in memory: a DataFrame of pandas, geopandas or polars, a
            `pyarrow.Table`, a list of dicts, or a dict of columns, which become a file that lives
            as long as the loader, with absolute paths; or a `Mixture` of several.
        batch_size: samples of a global batch, over all ranks.
        fields: members of a sample by name: a `Field` or `Vector`, a dict of a field's
            members, or a str: a pattern if it has a name such as {id}, else a column. Default:
            those of a catalog of pairs (`chaski index --field`), of anything else one raster
            "image".
        pixels: bands, dtype, layout, fill and augmentation of the raster fields: a `Pixels`.
        normalize: a `Normalize`, a dict of its members ({"mean": [...], "std": [...]}), or
            "mean_std", "min_max" or "percentile" with `stats`. Fields of dtype "native" and
            "int64", and those that stats lacks, are left out.
        stats: the result of `chaski.stats`, or the JSON of `chaski stats`: its path or content, or
            its member "fields" alone.
        window: the part of an asset to read: the size of a random window in pixels, (height, width)
            or the side of a square, or three sides or more, of which each batch has one; or a
            `RandomWindow`, `Grid`, `ResizedWindow`, `WeightedWindow`, `TileWindow`, `RowWindow` or
            `GeoWindow`; or a list of such windows, for several views of each sample. Default: the
            whole chip.
        shuffle: every epoch has an order of its own; else samples come in dataset order. A `Blocks`
            shuffles blocks of rows, so that chunks with many samples are read once.
        seed: of the order and the windows, in [0, 2**64).
        last: what becomes of the last global batch of an epoch if it is short: "short" gives it
            with the rows that there are, as a DataLoader does, "drop" leaves it out, "pad" adds
            rows that are not "valid", so that all batches have one shape (for compiled models). A
            rank without a row has one that is not valid.
        rows: which rows of the source are samples, by value, place, time or split: a `Rows`.
        tables: other tables whose columns the source has, too, with the column of the source that
            has the keys of their rows: {"labels.csv": "id"}, or {"labels.csv": {"Image ID": "id"}}
            if the table calls it otherwise. Of tables in memory pairs: [(frame, "id")]. A key is
            the value, or its end from a slash on, with or without the ending of an image.
        map: a function of a batch, whose result the loop gets in its place: it runs ahead of the
            loop, in a thread; a `Map` runs it in processes.
        on_bad: "error" raises for a sample that cannot be read, "skip", "replace" and "fill" go on;
            an `OnBad` also limits how many, and lists them in a file.
        rank: gets rows rank, rank + world_size, ... of every global batch.
        world_size: number of ranks.
        engine: threads, memory, transport and timeouts: an `Engine`.

    Returns:
        An iterable of dicts of numpy arrays (`Batch`), epoch by epoch.

    Raises:
        RuntimeError: this process was forked from one that had used chaski.
    """
    _refuse_fork()
    not_here = "wire", "patience", "prefetch_bytes", "credentials", "token", "plain_token"
    e = _checked_engine(o, "load", *not_here)
    with contextlib.ExitStack() as stack:
        files = stack.enter_context(contextlib.closing(Files(o.fields, local=True)))
        spec = build_spec(o.source, o, files)
        received = replace(e, wire="final")
        held = _engine.Held(
            e.share,
            workers=e.workers,
            memory=e.memory,
            max_chunk=e.max_chunk,
            cache_dir=absolute_path(os.fspath(e.cache)) if e.cache else None,
            cache_bytes=e.cache_bytes,
            recode="true" if e.recode else None,
            recode_share=None if isinstance(e.recode, bool) else e.recode,
            requester_pays="true" if e.requester_pays else None,
        )
        stack.callback(held.release)
        release = stack.pop_all().close
    try:
        return Loader(held.engine.connection, spec, o, received, release, held)
    except NotFoundError as e:  # of others, files that are there have to be mended
        _add_suggestion(e, o.source)
        raise


_SUGGEST_SECONDS = 3


def _add_suggestion(e: Error, source: object) -> None:
    """Adds the call that `suggest` finds for a folder to the error of another call."""
    if not hasattr(e, "add_note"):  # Python 3.10
        return
    if isinstance(source, (str, os.PathLike)) and os.path.isdir(os.path.expanduser(source)):
        with contextlib.suppress(Error):  # it is only a help
            for call in list(suggested(source, _SUGGEST_SECONDS).calls.values())[:1]:
                e.add_note(f"chaski.suggest({os.fspath(source)!r}) finds: {call}")


@takes(ConnectOptions)
def connect(o: ConnectOptions) -> Loader:  # noqa: D417 (documented are the members of o)
    """Loads batches from a running engine (`chaski serve`), or from several that see the same data.

    An engine on this host hands its batches over in shared memory. Of any other, of several, and
    with transport="grpc", the engine that `load` starts is the client: it asks, converts, and hands
    the batches over like its own. Without that engine (see `load`), one server can be spoken to all
    the same.

    After a broken connection the loader reconnects and repeats its open requests, which any server
    can answer. With several servers, the requests of one that dies, drains, refuses or is silent
    for the timeout go to another; the order of the batches stays. The loader goes on as long as
    one of them answers, and waits for `patience` while none does.

    Args:
        target: "host:port", "unix:" and a path, or "unix-abstract:" and a name; several of them in
            a sequence or with commas between; or "dns:host:port" for all addresses that the name
            has while the run goes on.
        source: as for `load`, as the server names it: a path below one of its roots. So are the
            files that other arguments name, but for `stats` and the quarantine, which are files
            here. A list of files or a table in memory is for servers on this host ("unix:...")
            alone, of which a root holds this program's temporary files.

    All other arguments are those of `load`.

    Raises:
        UnavailableError: the server cannot be reached.
    """
    _refuse_fork()
    e = _checked_engine(
        o,
        "connect",
        *("workers", "memory", "max_chunk", "cache", "cache_bytes", "recode", "requester_pays"),
    )
    targets = addresses(o.target)
    with contextlib.ExitStack() as stack:
        files = stack.enter_context(contextlib.closing(Files(o.fields)))
        spec = build_spec(o.source, o, files)
        if files.made and not all(t.startswith("unix") for t in targets):
            raise SpecError(
                "source or shapes are in memory, which a server on another host does not see: "
                "write them to a .csv or .parquet file below one of its roots, and give that path"
            )
        if len(targets) == 1:
            connection = Connection(
                targets[0], credentials=e.credentials, token=e.token, plain_token=e.plain_token
            )
            stack.callback(connection.close)
            alone, described = _alone(connection, spec, o)
            if alone:
                release = stack.pop_all().close
                return Loader(
                    connection, spec, o, replace(e, wire="final"), release, described=described
                )
        upstream = _upstream(targets, e)
        received = replace(
            e,
            # Wire, transport and patience are those between the engine and the servers. The engine
            # converts faster than a network brings floats, and servers send what is smaller.
            wire="final" if e.wire == "final" else "native",
            transport="auto",
            patience=0,
            timeout=e.patience + 2 * (e.timeout + _CONNECT_SECONDS),
            # The engine holds what is asked for ahead; this process takes one batch at a time.
            prefetch=1,
        )
        tickets = _TICKETS if _several(targets) else e.prefetch and e.prefetch + 1
        held = _engine.Held(e.share)
        stack.callback(held.release)
        release = stack.pop_all().close
    engine = held.engine.connection
    return Loader(engine, spec, o, received, release, held, upstream, tickets=tickets)


_TICKETS = 1024
"""Tickets of which the engine knows that is the client of several servers: those of a group go to
one of them, and the engine has to see as many groups ahead as there are servers."""
_CONNECT_SECONDS = 20.0
"""What an attempt to connect may take beside `timeout`. An engine that is the client gives up by
itself, later than this only if it hangs."""


def _several(targets: Sequence[str]) -> bool:
    return len(targets) > 1 or targets[0].startswith("dns:")


def _alone(
    connection: Connection, spec: dict[str, Any], o: SpecOptions
) -> tuple[bool, Description | None]:
    """Reports whether the only server is spoken to from here, and not by an engine.

    If the server was asked for that, its description of the spec is returned too.
    """
    e = o.engine
    try:
        _engine.find_binary()
    except EngineError:
        return True, None
    if e.transport == "shm" or _several([connection.target]):
        return e.transport == "shm", None
    other = e.credentials is not None and tls_of(e.credentials) is None
    if e.transport == "grpc":  # where memory cannot be shared, an engine between would only cost
        return other or not SUPPORTED, None
    rows = local_rows(spec["batch_size"], o.world_size)
    d = connection.describe(spec, e.timeout, rows=rows, rank=o.rank, world_size=o.world_size)
    with contextlib.suppress(UnavailableError):
        connection.side(d.reply.shared)
        return True, d  # in shared memory, another process between would only cost
    return other, d


def _upstream(targets: Sequence[str], e: Engine) -> pb.Upstream:
    """Returns what the engine needs to be the client of servers."""
    token: Any = e.token or from_environment()  # an Engine makes a Token of a str
    if token is not None and e.credentials is None and not e.plain_token:
        for t in targets:
            check_plain(t)
    tls = None
    if e.credentials is not None and (tls := tls_of(e.credentials)) is None:
        raise SpecError(
            "credentials for several servers have to be those of grpc.ssl_channel_credentials"
        )
    return pb.Upstream(
        targets=targets,
        tls=tls,
        timeout_seconds=e.timeout,
        # The engine reads the file itself, so that a token that was renewed holds for reconnecting.
        token=token.text() if token and not token.path else "",
        token_file=token.path if token else "",
        transport=e.transport,
        patience_seconds=e.patience,
        prefetch=e.prefetch,
        prefetch_bytes=e.prefetch_bytes,
        max_batch_bytes=e.max_batch_bytes,
        plain_token=e.plain_token,
    )


def _checked_engine(o: SpecOptions, call: str, *not_here: str) -> Engine:
    """Returns the options of the engine, after the checks of what is no part of a spec."""
    if count("rank", o.rank, 0) >= count("world_size", o.world_size, most=_MAX_RANKS):
        raise SpecError(
            f"rank is {o.rank}, but world_size is {o.world_size}: ranks are 0 to {o.world_size - 1}"
        )
    e = o.engine
    instance("engine", e, Engine)
    for name in not_here:
        v = getattr(e, name)
        if v != getattr(Engine(), name):
            other = "connect" if call == "load" else "load"
            raise SpecError(f"{name} is {v!r}: {call} has no use for it, {other} has")
    counts = "prefetch", "memory", "max_chunk", "max_batch_bytes", "workers"
    for name in (*counts, *_LEAST):
        if (v := getattr(e, name)) is not None:
            count(name, v, _LEAST.get(name, 1), *[MAX_WORKERS] * (name == "workers"))
    positive("timeout", e.timeout)
    positive("patience", e.patience, zero=True)
    if not (isinstance(e.recode, bool) or (isinstance(e.recode, float) and 0 < e.recode < 1)):
        raise SpecError(
            f"recode is {e.recode!r}: it must be True, False or a part of the time, such as 0.1"
        )
    for name in ("requester_pays", "share", "reuse", "plain_token"):
        if not isinstance(v := getattr(e, name), bool):
            raise SpecError(f"{name} is {v!r}: it must be True or False")
    if not isinstance(e.credentials, grpc.ChannelCredentials | None):
        raise SpecError(f"credentials is {e.credentials!r}: it must be what chaski.tls() returns")
    for name in ("cache", "ledger"):
        v = getattr(e, name)
        path = isinstance(v, (str, os.PathLike)) and v != ""
        path = path and not os.path.isfile(absolute_path(os.fspath(v)))
        if v is not None and not path:
            raise SpecError(f"{name} is {v!r}: it must be the path of a folder")
    for name, words in (("transport", get_args(Transport)), ("wire", get_args(Wire))):
        if (v := getattr(e, name)) not in words:
            raise SpecError(f"{name} is {v!r}: it must be one of {', '.join(words)}")
    if e.cache and not e.cache_bytes and not os.environ.get("CHASKI_CACHE_BYTES"):
        raise SpecError("cache needs cache_bytes: the most that it may take on disk")
    if e.cache_bytes and not e.cache and not os.environ.get("CHASKI_CACHE_DIR"):
        raise SpecError(f"cache_bytes is {e.cache_bytes}, and no cache is given: it needs a folder")
    return e
