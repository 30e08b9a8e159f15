"""The connection to an engine: its calls, and gRPC's errors as ours."""

from __future__ import annotations

import contextlib
import json
import operator
import os
import re
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, cast

from chaski._access import Token, check_plain, from_environment, is_here
from chaski._arguments import FieldInfo, SampleRef, SourceInfo
from chaski._assemble import Assembler, Pool
from chaski._grpc import grpc, pb
from chaski._host import SUPPORTED
from chaski._pipe import Pipe
from chaski._shared import Side
from chaski.errors import DeadlineError, Error, PayloadError, SpecError, UnavailableError

MAX_MESSAGE = 64 << 20
"""Bytes of the largest message that is taken; servers cut batches into parts of 1 MiB or so."""

_OPTIONS: list[tuple[str, int]] = [
    ("grpc.max_receive_message_length", MAX_MESSAGE),
    ("grpc.max_send_message_length", MAX_MESSAGE),
    ("grpc.http2.max_frame_size", (1 << 24) - 1),
    ("grpc.http2.lookahead_bytes", 16 << 20),
    # What is wrong with a call comes in its headers, and an error may name all columns of a table.
    ("grpc.max_metadata_size", 256 << 10),
    ("grpc.use_local_subchannel_pool", 1),
    # A loader may sit between two epochs for as long as it likes.
    ("grpc.client_idle_timeout_ms", (1 << 31) - 1),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 2000),
]


PREFETCH = 3
"""Batches requested ahead where neither a user nor an engine says how many."""


@dataclass(frozen=True, slots=True)
class Description:
    """The answer of an engine about a spec that it compiled, and the JSON in it, decoded."""

    reply: pb.DescribeReply
    spec: dict[str, Any]
    run: dict[str, str | int | float | bool]  # empty from older servers
    fields: tuple[FieldInfo, ...]
    sources: tuple[SourceInfo, ...]  # of a mixture; empty from older servers

    @property
    def prefetch(self) -> int:
        """Batches to request ahead by default: what the engine says, within bounds."""
        return min(max(self.reply.prefetch, PREFETCH), 32)


def _fields(described: Iterable[pb.FieldInfo]) -> tuple[FieldInfo, ...]:
    return tuple(
        FieldInfo(
            *(f.name, f.kind, f.dtype, tuple(f.shape), tuple(f.axes)),
            *(tuple(f.bands), tuple(f.wavelengths), f.gsd),
            *(tuple(f.classes), tuple(f.palette)),
        )
        for f in described
    )


def addresses(target: str | Sequence[str]) -> list[str]:
    """Returns the addresses of a target, with commas or in a sequence, each once, in order."""
    parts = target.split(",") if isinstance(target, str) else target
    several = parts if isinstance(parts, Iterable) else ()
    out = list(dict.fromkeys(str(p).strip() for p in several))
    if not out or not all(out):
        raise SpecError(f"target is {target!r}: it must name at least one server")
    for t in out:
        if t.startswith("unix"):
            continue
        host, colon, port = t.removeprefix("dns:").lstrip("/").rpartition(":")
        wrong = not colon or (port.isdecimal() and int(port) > 65535)
        if t.startswith("dns:") and (wrong or not host or not port.isdecimal()):
            raise SpecError(f"target is {t!r}: it must be dns:host:port")
        if wrong:
            raise SpecError(
                f"target is {t!r}: it must be host:port, unix:PATH or unix-abstract:NAME"
            )
    return out


_ARGUMENTS = {
    "bad_samples": "on_bad",
    "bad_limit.count": "max_count",
    "bad_limit.rate": "max_rate",
    "sampler": "window",
}
"""Members of a spec with another name among the arguments of `load`."""

_PYTHON = {
    "true": "True",
    "false": "False",
    "null": "None",
    "an object": "a dict",
    "[height, width]": "(height, width)",
}
"""Words of JSON in errors, and what Python calls them."""

_JSON = re.compile(r"\b(true|false|null|an object)\b|\[height, width\]")


def spec_error(details: str, member: pb.FaultMember | None) -> SpecError:
    """Returns the error about a spec that an engine refuses, in terms of the arguments."""
    if member is None:
        return SpecError(details.removeprefix("spec: "))
    name = _ARGUMENTS.get(member.name, member.name)
    value = _PYTHON.get(member.value, member.value)
    rule = _JSON.sub(lambda m: _PYTHON[m[0]], member.rule)
    if name == "time" and member.rule == "it must be an object":
        rule = "it must be a chaski.Time or a dict"
    return SpecError(f"{member.where}{name} is {value}: {rule}")


_user: int | None = None
"""The process that made the first connection: gRPC does not work in its forks."""


def stands_still() -> bool:
    """Reports whether this process was forked from one that used gRPC."""
    return _user not in (None, os.getpid())


class Connection:
    """A channel to one engine. Safe for use from several threads, not across a fork."""

    def __init__(
        self,
        target: str,
        *,
        credentials: grpc.ChannelCredentials | None = None,
        token: Token | str | None = None,
        plain_token: bool = False,
        hint: Callable[[], str] | None = None,
        own: bool = False,
    ) -> None:
        """Makes a connection; nothing is sent yet.

        Args:
            target: "host:port", "unix:" and a path, or "unix-abstract:" and a name.
            credentials: for TLS; None is plain text.
            token: for a server that asks for one; default: what CHASKI_TOKEN has, or the file
                that CHASKI_TOKEN_FILE names.
            plain_token: the token may go to other hosts in plain text.
            hint: returns what to add to errors about the connection (why the engine died).
            own: it is to the engine of this process, which does not ask for the token of others.
        """
        global _user
        if not isinstance(target, str):
            raise SpecError(f"target is {target!r:.100}: it must be a str")
        _user = _user or os.getpid()
        self.target = target
        self.credentials = credentials
        self.token = Token(token) if isinstance(token, str) else token
        self.plain_token = plain_token
        self._own = own
        self._show()  # an error now, and not with the first call
        self._pid = os.getpid()
        self._hint = hint
        self._guard = threading.Lock()
        self._side: Side | None = None
        self._no_side: tuple[bytes, Error] | None = None  # why there is none, and for which token
        self._no_pipe = False  # none came in time
        options: list[tuple[str, Any]] = list(_OPTIONS)
        if is_here(target):  # a proxy would see the token
            options.append(("grpc.enable_http_proxy", 0))
        if credentials is None:
            self._channel = grpc.insecure_channel(target, options)
        else:
            self._channel = grpc.secure_channel(target, credentials, options)
        c, base = self._channel, "/chaski.v1.Chaski/"
        sent = operator.methodcaller("SerializeToString")
        self._describe = c.unary_unary(base + "Describe", sent, pb.DescribeReply.FromString)
        self._info = c.unary_unary(base + "Info", sent, pb.InfoReply.FromString)
        self._report = c.unary_unary(base + "Report", sent, pb.ReportReply.FromString)
        self._plan = c.unary_unary(base + "Plan", sent, pb.PlanReply.FromString)
        # Replies are taken as bytes: see parse_reply.
        self._stream = c.stream_stream(base + "Stream", sent, None)
        self._read = c.unary_stream(base + "Read", sent, None)

    def _show(self) -> list[tuple[str, str]]:
        """Returns the metadata of a call."""
        token = self.token if self._own else self.token or from_environment()
        if token is None:
            return []
        if self.credentials is None and not self.plain_token:
            check_plain(self.target)
        return [("authorization", "Bearer " + token.text())]

    def close(self) -> None:
        """Closes the channel; calls in flight end with an error. Does nothing in a forked child."""
        if os.getpid() == self._pid:
            with self._guard:
                if self._side is not None:
                    self._side.close()
                    self._side = None
            self._channel.close()

    def side(self, shared: pb.Shared) -> Side:
        """Returns the connection to the lease socket, made if need be, or UnavailableError."""
        if not shared.address or not SUPPORTED:
            raise UnavailableError(f"{self.target}: the engine has no shared memory")
        address, token = shared.address, shared.token
        with self._guard:
            if self._side is not None and self._side.token == token and not self._side.over:
                return self._side
            if self._no_side is not None and self._no_side[0] == token:
                raise self._no_side[1]
            if self._side is not None:
                self._side.close()
                self._side = None
            try:
                self._side = Side(address, token)
            except (OSError, Error) as e:
                error = UnavailableError(f"{self.target}: no shared memory: {e}")
                self._no_side = token, error
                raise error from None
            return self._side

    def pipe(self, token: bytes, heard: Callable[[], object]) -> Pipe | None:
        """Returns a new pipe (see its class), or None if the replies of streams come by gRPC."""
        if not token or self._no_pipe or self.credentials is not None or not is_here(self.target):
            return None
        try:
            return Pipe(self.target, token, heard)
        except TimeoutError:  # each stream would wait for it
            self._no_pipe = True
        except (OSError, EOFError, ValueError, UnavailableError):
            pass
        return None

    def error(self, e: grpc.RpcError, doing: str) -> Error:
        """Returns our error for one of gRPC's."""
        code = e.code() if isinstance(e, grpc.Call) else None
        details = (e.details() if isinstance(e, grpc.Call) else None) or str(e)
        where = f"{self.target}: {doing}"
        S = grpc.StatusCode
        if code == S.DEADLINE_EXCEEDED:
            return DeadlineError(f"{where}: no answer in time")
        # A connection that is cut in the middle of a message may also end as INTERNAL.
        cut = code == S.INTERNAL and "RST_STREAM" in details
        if code in (S.UNAVAILABLE, S.CANCELLED) or cut:
            why = (self._hint and self._hint()) or ""
            return UnavailableError(": ".join(filter(None, (where, details, why))))
        fault = _fault_of(e)
        if code == S.INVALID_ARGUMENT:
            said = fault is not None and fault.HasField("member")
            return spec_error(details, fault.member if fault is not None and said else None)
        if fault is not None and fault.kind != "internal":
            return fault_error(fault)
        kinds = {  # of errors of gRPC itself, or of another program
            S.DATA_LOSS: "corrupt",
            S.NOT_FOUND: "not found",
            S.RESOURCE_EXHAUSTED: "limit",
            S.UNAUTHENTICATED: "access",
            S.UNIMPLEMENTED: "unsupported",
        }
        kind = kinds.get(code, "internal")
        return Error._of_kind.get(kind, Error)(f"{where}: {details}", kind=kind)

    def report(self, since: bytes) -> tuple[str, bytes]:
        """Returns the table since an earlier report, and what the next one needs."""
        r = self._reply(self._report, pb.ReportRequest(since=since), 60, "report")
        return r.table, r.figures

    def _reply(self, method: Any, request: Any, timeout: float | None, doing: str) -> Any:
        """Returns the one reply of a method."""
        try:
            return method(request, timeout=timeout, metadata=self._show())
        except grpc.RpcError as e:
            raise self.error(e, doing) from None

    def describe(
        self, spec: dict[str, Any], timeout: float, rows: int = 0, **asked: Any
    ) -> Description:
        """Opens and compiles a spec; asked are rank, world_size and upstream of the request.

        If the engine's memory has no room for batches of so many rows, that is an error.
        """
        try:
            text = json.dumps(spec, allow_nan=False)
        except (TypeError, ValueError) as e:  # a condition may be a dict of the user's own
            raise SpecError(f"where: {e}") from None
        request = pb.DescribeRequest(spec=text.encode(), rows=min(rows, 0xFFFFFFFF), **asked)
        r = self._reply(self._describe, request, timeout, "describe")
        try:
            filled, run = json.loads(r.spec), json.loads(r.run or "{}")
        except ValueError:
            raise PayloadError(f"{self.target}: describe: the spec is not JSON") from None
        if r.samples < 0 or not isinstance(filled, dict) or not isinstance(run, dict):
            raise PayloadError(f"{self.target}: describe: {r.samples} samples")
        sources = tuple(SourceInfo(s.name, _fields(s.fields)) for s in r.sources)
        return Description(r, filled, run, _fields(r.fields), sources)

    def info(self, path: str, timeout: float) -> dict[str, Any]:
        """Returns what a file is."""
        r = self._reply(self._info, pb.InfoRequest(path=path), timeout, f"info of {path}")
        out = json.loads(r.json)
        if not isinstance(out, dict):
            raise PayloadError(f"{self.target}: info of {path}: not a JSON object")
        return out

    def plan(self, request: pb.PlanRequest) -> Any:
        """Returns what a cache saves in epochs of a dataset."""
        return json.loads(self._reply(self._plan, request, None, "plan").json)

    def stream(self, requests: Iterable[pb.StreamRequest]) -> Any:
        """Opens a stream of tickets and credits up, parts and faults down."""
        return self._stream(iter(requests), metadata=self._show())

    def read(self, request: pb.ReadRequest, pool: Pool, limit: int, timeout: float) -> Any:
        """Returns the one tensor that a Read answers with."""
        side = self._side
        assembler = Assembler(pool, limit, side)
        if side is not None and not side.over:
            request.attach.secret, request.attach.stream = side.secret, side.begin()
        elif SUPPORTED and self._no_side is None:
            request.attach.SetInParent()  # the answer says where the lease socket is
        call = self._read(request, timeout=timeout, metadata=self._show())
        try:
            for raw in call:
                reply = parse_reply(raw)
                if isinstance(reply, pb.Fault):
                    raise fault_error(reply)
                if isinstance(reply, pb.Shared):  # for the next read
                    with contextlib.suppress(UnavailableError):
                        self.side(reply)
                    continue
                if (batch := assembler.add(reply)) is not None:
                    if len(batch.dtypes) != 1:
                        raise PayloadError(f"read: {len(batch.dtypes)} tensors in place of one")
                    return batch[next(iter(batch.dtypes))]
        except grpc.RpcError as e:
            raise self.error(e, "read") from None
        finally:
            call.cancel()
            if side is not None:
                side.end(request.attach.stream)
        raise PayloadError(f"{self.target}: read: the answer ends before the array does")


def tls_of(credentials: Any) -> pb.Tls | None:
    """Returns the certificates of what `grpc.ssl_channel_credentials` made, None of anything else.

    gRPC has no other way to get at them than these attributes.
    """
    inner = getattr(credentials, "_credentials", None)
    names = ("_pem_root_certificates", "_certificate_chain", "_private_key")
    if not all(hasattr(inner, n) for n in names):
        return None
    roots, certificate, key = (getattr(inner, n) or b"" for n in names)
    return pb.Tls(roots=roots, certificate=certificate, key=key)


def fault_error(f: pb.Fault) -> Error:
    """Returns the error that a fault of a server stands for."""
    said, kind = f.message or f.kind or "fault", Error._of_kind.get(f.kind, Error)
    error = kind(said, kind=f.kind, part=f.part, offset=f.offset)
    error.args, error.file = (said,), f.file  # the server has hidden secrets
    if f.HasField("sample"):
        error.sample = SampleRef(f.sample.sample, f.sample.row, f.sample.id)
        error.source = f.sample.source
        error._cause = f.sample.message
    error._answered = True
    return error


def _fault_of(e: grpc.RpcError) -> pb.Fault | None:
    """Returns the Fault among the details of a status, or None."""
    metadata = e.trailing_metadata() if isinstance(e, grpc.Call) else None
    for key, value in metadata or ():
        if key != "grpc-status-details-bin":
            continue
        try:
            for detail in pb.StatusDetails.FromString(value).details:
                fault = pb.Fault()
                if detail.Unpack(fault):
                    return fault
        except Exception:  # not what it should be: the status itself says enough
            return None
    return None


def parse_reply(raw: bytes) -> pb.Part | pb.Fault | pb.Lease | pb.Shared:
    """Reads a StreamReply."""
    try:
        reply = pb.StreamReply.FromString(raw)
    except Exception as e:  # protobuf's DecodeError has moved between its packages
        raise PayloadError(f"a reply of {len(raw)} bytes is not a message: {e}") from None
    kind = reply.WhichOneof("kind")
    if kind is None:
        raise PayloadError("a reply is neither a part, nor a fault, nor of shared memory")
    return cast("pb.Part | pb.Fault | pb.Lease | pb.Shared", getattr(reply, kind))
