"""Helpers: payloads made with the generated FlatBuffers code, and a fake engine."""

from __future__ import annotations

import dataclasses
import http.server
import itertools
import json
import os
import socket
import sys
import threading
import time
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent import futures
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import flatbuffers
import grpc
import numpy as np

import chaski
from chaski import _engine
from chaski._assemble import DTYPES
from chaski._proto import chaski_pb2 as pb
from chaski._proto import chaski_pb2_grpc
from chaski._proto.fbs import Bad, Batch, Convert, Span, Tensor
from chaski._spec import SpecOptions
from chaski.order import Ticket

if TYPE_CHECKING:  # fake engines import this module: pytest would take a third of their start
    import pytest

OBJECTS: dict[str, Any] = {
    "pixels": chaski.Pixels,
    "rows": chaski.Rows,
    "on_bad": chaski.OnBad,
    "engine": chaski.Engine,
}
PLACES = {f.name: argument for argument, c in OBJECTS.items() for f in dataclasses.fields(c)}


def placed(**given: Any) -> dict[str, Any]:
    """Returns arguments of `load`; members of its objects, such as dtype=, may be given by name."""
    out = {}
    for name, value in given.items():
        argument = PLACES.get(name, name)
        if argument != name:
            now = out.get(argument, OBJECTS[argument]())
            value = dataclasses.replace(now, **{name: value})
        out[argument] = value
    return out


def spec_options(**given: Any) -> SpecOptions:
    """Returns the arguments of a spec; see `placed`."""
    return SpecOptions(**placed(**given))


def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets `connect` find no engine on this host, so that this process speaks to the server."""

    def none() -> str:
        raise chaski.EngineError("no engine")

    monkeypatch.setattr(_engine, "find_binary", none)


def refuse(source: Any, **given: Any) -> None:
    """Calls `load` with arguments that it must refuse; see `placed`."""
    chaski.load(source, **placed(**given)).close()


CODES = {name: code for code, (name, _) in DTYPES.items()}


@dataclass
class T:
    """A tensor of a payload. data is an array, or bytes with its own shape and dtype."""

    name: str
    data: np.ndarray | bytes
    dtype: str = ""
    shape: Sequence[int] | None = None
    axes: Sequence[str] = ()
    kind: int = 0
    offsets: np.ndarray | None = None
    convert: str | None = None  # dtype that the receiver is to convert it to
    scale: Sequence[float] = ()
    band_axis: int = 0
    limits: tuple[float, float] = (0, 0)
    mask: tuple[int, int] | None = None  # offset and bytes

    def raw(self) -> bytes:
        return (
            self.data if isinstance(self.data, bytes) else np.ascontiguousarray(self.data).tobytes()
        )

    def code(self) -> int:
        if self.kind == 2:
            return 0
        return CODES[self.dtype or str(self.data.dtype)]


def _vector(f: flatbuffers.Builder, a: np.ndarray) -> int:
    return f.CreateNumpyVector(np.ascontiguousarray(a))


def _offsets(f: flatbuffers.Builder, values: list[int]) -> int:
    f.StartVector(4, len(values), 4)
    for v in reversed(values):
        f.PrependUOffsetTRelative(v)
    return f.EndVector()


def _header(
    tensors: Sequence[T],
    places: list[dict[str, tuple[int, int]]],
    total: int,
    *,
    epoch: int,
    first: int,
    valid: np.ndarray,
    positions: np.ndarray,
    samples: np.ndarray,
    bad: Sequence[tuple[int, int, str]],
) -> bytes:
    f = flatbuffers.Builder(1024)
    made = []
    for t, at in zip(tensors, places, strict=True):
        name = f.CreateString(t.name)
        axes = _offsets(f, [f.CreateString(a) for a in t.axes])
        shape = (
            t.data.shape if t.shape is None and isinstance(t.data, np.ndarray) else t.shape or ()
        )
        shape_at = _vector(f, np.array(shape, np.int64))
        convert = 0
        if t.convert is not None:
            scale = _vector(f, np.array(t.scale, np.float32))
            Convert.Start(f)
            Convert.AddTo(f, CODES[t.convert])
            Convert.AddScale(f, scale)
            Convert.AddBandAxis(f, t.band_axis)
            Convert.AddLo(f, t.limits[0])
            Convert.AddHi(f, t.limits[1])
            if t.mask is not None:
                Convert.AddMask(f, Span.CreateSpan(f, *t.mask))
            convert = Convert.End(f)
        Tensor.Start(f)
        Tensor.AddName(f, name)
        Tensor.AddKind(f, t.kind)
        Tensor.AddDtype(f, t.code())
        Tensor.AddAxes(f, axes)
        Tensor.AddShape(f, shape_at)
        Tensor.AddData(f, Span.CreateSpan(f, *at["data"]))
        if "offsets" in at:
            Tensor.AddOffsets(f, Span.CreateSpan(f, *at["offsets"]))
        if convert:
            Tensor.AddConvert(f, convert)
        made.append(Tensor.End(f))
    bads = []
    for row, position, message in bad:
        text = f.CreateString(message)
        Bad.Start(f)
        Bad.AddRow(f, row)
        Bad.AddPosition(f, position)
        Bad.AddMessage(f, text)
        bads.append(Bad.End(f))
    all_tensors, all_bad = _offsets(f, made), _offsets(f, bads)
    v = _vector(f, valid.astype(np.uint8))
    p = _vector(f, positions.astype(np.int64))
    s = _vector(f, samples.astype(np.int64))
    Batch.Start(f)
    Batch.AddEpoch(f, epoch)
    Batch.AddFirst(f, first)
    Batch.AddRows(f, len(valid))
    Batch.AddValid(f, v)
    Batch.AddPositions(f, p)
    Batch.AddSamples(f, s)
    Batch.AddBad(f, all_bad)
    Batch.AddTensors(f, all_tensors)
    # A constant number of bytes, whatever its value.
    f.ForceDefaults(True)
    Batch.AddLength(f, total)
    f.Finish(Batch.End(f))
    return bytes(f.Output())


def payload(
    tensors: Sequence[T],
    *,
    rows: int = 2,
    epoch: int = 0,
    first: int = 0,
    positions: np.ndarray | None = None,
    samples: np.ndarray | None = None,
    valid: np.ndarray | None = None,
    bad: Sequence[tuple[int, int, str]] = (),
) -> bytes:
    """Returns a payload that follows the schema."""
    if positions is None:
        positions = np.arange(first, first + rows)
    about: dict[str, Any] = {
        "epoch": epoch,
        "first": first,
        "positions": positions,
        "samples": positions if samples is None else samples,
        "valid": positions >= 0 if valid is None else valid,
        "bad": bad,
    }
    pieces = []
    for t in tensors:
        p = {"data": t.raw()}
        if t.offsets is not None:
            p["offsets"] = t.offsets.astype("<u8").tobytes()
        pieces.append(p)
    places = [{k: (64, len(v)) for k, v in p.items()} for p in pieces]
    end = 4 + len(_header(tensors, places, 1, **about))
    at = -(-end // 64) * 64
    body = b""
    for p, place in zip(pieces, places, strict=True):
        for k, v in p.items():
            place[k] = (at + len(body), len(v))
            body += v + bytes(-len(v) % 64)
    total = at + len(body)
    head = _header(tensors, places, total, **about)
    out = len(head).to_bytes(4, "little") + head
    assert len(out) <= at
    return out + bytes(at - len(out)) + body


def parts(data: bytes, size: int, ticket: int = 1) -> Iterator[pb.StreamReply]:
    for at in range(0, len(data), size):
        piece = data[at : at + size]
        yield pb.StreamReply(part=pb.Part(ticket=ticket, offset=at, total=len(data), data=piece))


def image_batch(t: pb.Ticket, n: int) -> bytes:
    """Returns the batch of a dataset of n samples, where sample i is one pixel of value i."""
    run = t.epoch, t.first, t.count, t.row_start, t.row_stride
    ticket = Ticket(*run, named=tuple(t.positions), unpadded=t.unpadded)
    p = ticket.positions(n)
    image = np.where(p >= 0, p, 0).astype(np.float32).reshape(-1, 1, 1, 1)
    tensors = [T("image", image, axes=("n", "b", "y", "x"))]
    return payload(tensors, epoch=t.epoch, first=t.first, positions=p)


def eventually(f, seconds: float = 300.0) -> bool:
    """Reports whether f() became true within some seconds."""
    deadline = time.monotonic() + seconds
    while not f():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.005)
    return True


@dataclass
class FakeEngine(chaski_pb2_grpc.ChaskiServicer):
    """An engine in Python whose answers a test chooses. It never exceeds the credits."""

    samples: int = 10
    part_bytes: int = 100
    answer: Callable[[pb.Ticket, FakeEngine], bytes | pb.Fault | Exception | None] = field(
        default=lambda t, e: image_batch(t, e.samples)
    )
    known: set[str] = field(default_factory=set)
    hash: str = "cafe"
    groups: pb.Groups | None = None
    prefetch: int = 0
    describes: list[dict[str, Any]] = field(default_factory=list)
    tickets: list[pb.Ticket] = field(default_factory=list)
    ahead: int = 0  # the most batches sent beyond those credited again
    streams: int = 0
    _wake: threading.Condition = field(default_factory=threading.Condition)

    def Describe(self, request, context):
        spec = json.loads(request.spec)
        self.describes.append(spec)
        self.known.add(self.hash)
        return pb.DescribeReply(
            spec_hash=self.hash,
            handle=self.hash,
            fingerprint="beef",
            samples=self.samples,
            spec=request.spec,
            fields=[pb.FieldInfo(name="image", kind="raster", dtype="float32", shape=[1, 1, 1, 1])],
            groups=self.groups,
            prefetch=self.prefetch,
        )

    def Stream(self, requests, context):
        self.streams += 1
        state = {"credit": 0, "ended": False}
        waiting: list[pb.Ticket] = []

        def receive():
            try:
                for r in requests:
                    with self._wake:
                        if r.WhichOneof("kind") == "credit":
                            state["credit"] += r.credit.batches
                        else:
                            waiting.append(r.ticket)
                            self.tickets.append(r.ticket)
                        self._wake.notify_all()
            except Exception:  # the client is gone
                pass
            with self._wake:
                state["ended"] = True
                self._wake.notify_all()

        threading.Thread(target=receive, daemon=True).start()
        while True:
            with self._wake:
                while not (waiting and state["credit"] > 0):
                    if state["ended"] or not context.is_active():
                        return
                    self._wake.wait(0.05)
                ticket = waiting.pop(0)
            if ticket.handle not in self.known:
                yield pb.StreamReply(
                    fault=pb.Fault(ticket=ticket.id, kind="unknown spec", offset=-1, message="?")
                )
                continue
            out = self.answer(ticket, self)
            if out is None:  # stuck
                with self._wake:
                    while context.is_active() and not state["ended"]:
                        self._wake.wait(0.05)
                return
            if isinstance(out, Exception):
                context.abort(grpc.StatusCode.UNAVAILABLE, str(out))
            if isinstance(out, pb.Fault):
                out.ticket = ticket.id
                yield pb.StreamReply(fault=out)
                continue
            with self._wake:
                state["credit"] -= 1
            yield from parts(out, self.part_bytes, ticket.id)

    def Read(self, request, context):
        self.reads = request
        yield from parts(
            payload([T("read", np.arange(6, dtype=np.int16).reshape(2, 3))], rows=0), 64, 0
        )

    def Info(self, request, context):
        if request.path.endswith("missing"):
            context.abort(grpc.StatusCode.NOT_FOUND, f"{request.path}: file: not found")
        return pb.InfoReply(json=json.dumps({"path": request.path}).encode())


# A hundred ports below the range from which systems choose, for this process alone. A name of a
# socket, which ends with the process, keeps other runs of these tests away from them.
_BLOCKS = 120
_reserved: list[socket.socket] = []


def _block() -> range:
    for k in range(_BLOCKS):
        n = (os.getpid() + k) % _BLOCKS
        ports = range(20_000 + 100 * n, 20_100 + 100 * n)
        if sys.platform != "linux":
            return ports
        s = socket.socket(socket.AF_UNIX)
        try:
            s.bind(f"\0chaski-test-ports-{n}")
        except OSError:
            s.close()
            continue
        _reserved.append(s)
        return ports
    raise AssertionError("all ports are reserved")


_ports: Iterator[int] | None = None


def free_port() -> int:
    """Returns a port that no other process gets, even while nothing listens there."""
    global _ports
    _ports = _ports or itertools.cycle(_block())
    for port in itertools.islice(_ports, 100):
        with socket.socket() as s:
            try:
                s.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise AssertionError("no port is free")


def serve(engine: FakeEngine, port: int = 0) -> tuple[grpc.Server, int]:
    """Starts a fake engine on this machine and returns its server and port.

    The port stays that of the test while the server is stopped: no other process gets it.
    """
    port = port or free_port()
    server = grpc.server(futures.ThreadPoolExecutor(8), options=[("grpc.so_reuseport", 0)])
    chaski_pb2_grpc.add_ChaskiServicer_to_server(engine, server)
    port = server.add_insecure_port(f"127.0.0.1:{port}")
    server.start()
    return server, port


@contextmanager
def web(
    folder: Path, allows: Callable[[str, Mapping[str, str]], bool] = lambda query, headers: True
) -> Iterator[tuple[str, list[tuple[str, int, int]]]]:
    """Serves byte ranges of a directory's files; returns its URL and the requested ranges."""
    asked = []

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            path, _, query = self.path.partition("?")
            if not allows(query, self.headers):
                self.send_error(403)
                return
            try:
                body = (folder / path.lstrip("/")).read_bytes()
            except FileNotFoundError:
                self.send_error(404)
                return
            lo, hi = map(int, self.headers["Range"].removeprefix("bytes=").split("-"))
            part = body[lo : hi + 1]
            asked.append((path, lo, len(part)))
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {lo}-{lo + len(part) - 1}/{len(body)}")
            self.send_header("Content-Length", str(len(part)))
            self.send_header("ETag", f'"{zlib.crc32(body):08x}"')
            self.end_headers()
            self.wfile.write(part)

        def log_message(self, *args: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", asked
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
