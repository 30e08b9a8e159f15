"""Random inputs for what reads bytes and states of others, and what must hold for each.

`test_mutations.py` runs some of each with a fixed seed; `tools/fuzz_python.py` explores.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import random
import struct
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from helpers import T, parts, payload

from chaski import Ragged, StateError
from chaski._assemble import DTYPES, Assembler, Batch, Pool
from chaski._proto import chaski_pb2 as pb
from chaski._proto.fbs.Batch import Batch as Generated
from chaski._rpc import parse_reply
from chaski.errors import PayloadError
from chaski.order import State, steps

NUMBERS = (0, 1, 2, 4, 0x7F, 0x80, 0xFF, 0x7FFF, 0xFFFF, (1 << 31) - 1, 1 << 31, (1 << 32) - 1)
# Larger than what numpy makes of a payload of a few kilobytes: offsets are 8 bytes, and a
# reference to a string as well.
MOST_MEMORY = 1 << 24


def some_payload(rng: random.Random) -> bytes:
    """Returns a payload with tensors of all kinds."""
    rows = rng.randrange(4)
    tensors = []
    for i in range(rng.randrange(1, 5)):
        name = rng.choice(("image", "label", "id", "boxes", "ü", "")) + str(i)
        match rng.randrange(3):
            case 0:
                dtype, of = rng.choice(list(DTYPES.values()))
                shape = (rows, *(rng.randrange(4) for _ in range(rng.randrange(3))))
                raw = rng.randbytes(int(np.prod(shape)) * of.itemsize)
                axes = ("n", "b", "y", "x")[: len(shape)] if rng.randrange(2) else ()
                tensors.append(T(name, raw, dtype=dtype, shape=shape, axes=axes))
            case 1:
                ends = np.cumsum([0, *(rng.randrange(4) for _ in range(rows))])
                values = np.arange(ends[-1], dtype=np.float32)
                tensors.append(T(name, values, kind=1, offsets=ends))
            case _:
                texts = [rng.choice(("", "a", "naïve", "\x00")).encode() for _ in range(rows)]
                ends = np.cumsum([0, *map(len, texts)])
                shape, axes = ((rows,), ("n",)) if rng.randrange(2) else ((rows, 1), ("n", "t"))
                tensors.append(
                    T(name, b"".join(texts), kind=2, shape=shape, axes=axes, offsets=ends)
                )
    bad = [
        (rng.randrange(rows), rng.randrange(99), "x")
        for _ in range(rng.randrange(3) if rows else 0)
    ]
    return payload(tensors, rows=rows, epoch=rng.getrandbits(64), first=rng.randrange(99), bad=bad)


def mutate(rng: random.Random, data: bytes, head: int) -> bytes:
    """Changes bytes of the first `head` ones: to extremes, to numbers near by, to other offsets."""
    b = bytearray(data)
    for _ in range(rng.choice((0, 1, 1, 2, 8))):
        at = rng.randrange(head)
        width = rng.choice((1, 2, 4, 8))
        if rng.randrange(2):
            at -= at % width  # where FlatBuffers has its numbers
        was = int.from_bytes(b[at : at + width], "little")
        value = rng.choice(
            (
                rng.choice(NUMBERS),
                was + rng.choice((-64, -8, -4, -1, 1, 4, 8, 64)),
                (1 << 8 * width) - 1 - rng.choice(NUMBERS),
                rng.randrange(head),
                rng.getrandbits(8 * width),
            )
        )
        b[at : at + width] = (value % (1 << 8 * width)).to_bytes(width, "little")
    del b[len(data) :]
    match rng.randrange(20):
        case 0:
            del b[rng.randrange(len(b)) :]
        case 1:
            b += rng.randbytes(rng.randrange(200))
    return bytes(b)


def assemble(data: bytes, size: int) -> Batch:
    """Returns the batch of a payload that comes in parts of size bytes."""
    a, batch = Assembler(Pool(), 1 << 30), None
    for r in parts(data, size):
        part = parse_reply(r.SerializeToString())
        assert isinstance(part, pb.Part)
        batch = a.add(part)
    if batch is None:
        raise PayloadError("no part")
    return batch


def agrees(batch: Batch, data: bytes) -> None:
    """Compares a batch with what the generated code reads, which trusts the bytes.

    Raises:
        AssertionError: they differ.
    """
    h = Generated.GetRootAs(data[4:], 0)
    rows = h.Rows()
    assert (batch.epoch, batch.rows) == (h.Epoch(), h.ValidLength())
    assert rows == batch.rows or batch.rows == 0
    for k in range(batch.rows):
        assert batch["valid"][k] == bool(h.Valid(k))
        assert batch["position"][k] == h.Positions(k) and batch["sample"][k] == h.Samples(k)
    assert len(batch.bad) == h.BadLength()
    for k, x in enumerate(batch.bad):
        y = h.Bad(k)
        text = y.Message() or b""
        assert (x.row, x.position) == (y.Row(), y.Position())
        assert x.message == text.decode("utf-8", "replace")
    assert len(batch.dtypes) == h.TensorsLength()
    for k, (name, dtype) in enumerate(batch.dtypes.items()):
        y = h.Tensors(k)
        assert name == (y.Name() or b"").decode("utf-8", "replace")
        if name in ("valid", "position", "sample"):
            continue  # the batch has its own
        span, value = y.Data(), batch[name]
        raw = data[span.Offset() : span.Offset() + span.Length()] if span.Length() else b""
        if y.Kind() == 0:
            assert value.shape == tuple(y.Shape(i) for i in range(y.ShapeLength()))
            assert value.tobytes() == raw and dtype == DTYPES[y.Dtype()][0]
        elif y.Kind() == 1:
            assert isinstance(value, Ragged) and value.values.tobytes() == raw
        else:
            ends = np.frombuffer(data, "<u8", value.size + 1, y.Offsets().Offset()).tolist()
            want = [raw[a:b].decode("utf-8", "replace") for a, b in itertools.pairwise(ends)]
            assert value.ravel().tolist() == want


def try_payload(rng: random.Random) -> bool:
    """A payload with other bytes is refused, or is what the generated code reads, in any parts."""
    data = some_payload(rng)
    head = int.from_bytes(data[:4], "little") + 4
    data = mutate(rng, data, head)
    try:
        batch = assemble(data, rng.choice((7, 500, 1 << 20)))
    except PayloadError as e:
        assert len(str(e)) < 1 << 14
        return False
    assert batch.nbytes < MOST_MEMORY
    agrees(batch, data)
    return True


def try_reply(rng: random.Random) -> bool:
    """A reply with other bytes is refused, or what protobuf reads too."""
    part = pb.Part(ticket=rng.getrandbits(9), offset=rng.getrandbits(9), total=300, data=b"abc")
    fault = pb.Fault(ticket=3, kind="corrupt", message="x")
    one = {"part": part} if rng.randrange(3) else {"fault": fault}
    good = pb.StreamReply(**one).SerializeToString()
    data = mutate(rng, good, len(good))
    try:
        parse_reply(data)
    except PayloadError:
        return False
    return True


def some_value(rng: random.Random, depth: int = 0) -> Any:
    """Returns a value of any type that JSON, pickle or a user's code puts into a state."""
    numbers = (0, 1, -1, 1 << 63, -(1 << 63), (1 << 64) - 1, 1 << 64, 10**5000, -(10**5000))
    others = (
        None,
        True,
        False,
        0.5,
        float("nan"),
        float("inf"),
        b"x",
        "",
        "#a",
        "ü\udc80",
        "x" * 9999,
    )
    if depth < 2 and rng.randrange(6) == 0:
        return [some_value(rng, depth + 1) for _ in range(rng.randrange(3))]
    if depth < 2 and rng.randrange(6) == 0:
        keys = ("samples", "batch_size", "last", "data", "x" * 999, 1, None, ("a",))
        return {rng.choice(keys): some_value(rng, depth + 1) for _ in range(rng.randrange(4))}
    return rng.choice(numbers + others + (rng.randrange(1 << 12),))


def try_state(rng: random.Random) -> bool:
    """Any value is refused with StateError, or is a state that is written as it was read.

    A run refuses it with StateError, or goes on between two of its steps.
    """
    n, g, drop = rng.randrange(1, 99), rng.randrange(1, 20), bool(rng.randrange(2))
    if drop and n < g:
        drop = False
    run = {"samples": n, "batch_size": g, "last": "drop" if drop else "short", "data": "#abc"}
    now = State("a", 7, 0, 0, run=run)
    there = rng.randrange(steps(n, g) + 1) * g
    d: Any = {"version": 1, "spec": "a", "seed": 7, "epoch": 3, "samples": min(n, there)}
    if rng.randrange(2):
        d["run"] = dict(run)
    for _ in range(rng.choice((0, 1, 1, 2, 3))):
        match rng.randrange(4):
            case 0:
                d.pop(rng.choice(list(d)), None)
            case 1:
                d[rng.choice((*d, "other", 1, None, ("a",)))] = some_value(rng)
            case 2 if isinstance(d.get("run"), dict):
                d["run"][rng.choice((*d["run"], "rows", "z" * 9999))] = some_value(rng)
            case _ if d:
                d[rng.choice(list(d))] = some_value(rng)
        if not d:
            break
    if rng.randrange(50) == 0:
        d = some_value(rng)
    try:
        s = State.from_dict(d)
        assert s.to_dict() == {k: v for k, v in d.items() if k != "run" or v}
        json.dumps(s.to_dict())  # as whoever keeps it does
        next, note = s.resume(now, n, g, drop, strict=bool(rng.randrange(2)))
        step = next.step(n, g)
    except StateError as e:
        assert len(str(e)) < 1 << 14
        return False
    assert 0 <= next.epoch < 1 << 64 and next.seed == now.seed and next.spec == now.spec
    assert next.samples in (step * g, n) and len(note) < 1 << 14
    return True


def try_packets(rng: random.Random) -> bool:
    """Packets of a server that breaks the rules end the lease socket, and leave no descriptor."""
    import fcntl
    import socket
    import threading

    from chaski import _shared

    side = _shared.Side.__new__(_shared.Side)
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    side._pid, side._over, side._closing = os.getpid(), False, False
    side._changed = threading.Condition(threading.RLock())
    side._segments, side._held, side._streams = {}, {}, {1: []}
    side._socket = theirs
    taken, held = 0, {}
    for _ in range(rng.randrange(1, 6)):
        size = rng.choice((4096, 8192))
        kind = rng.choice((0, 1, 2, 3, 3, 3, 3, 4, 5, 6, 7, 1 << 63))
        data = struct.pack(
            "<4Q", kind, rng.randrange(3), rng.choice((size, size, 0, 1, 1 << 63)), 0
        )
        data = mutate(rng, data, len(data)) if rng.randrange(4) == 0 else data
        files = []
        for _ in range(rng.choice((int(kind == 3), int(kind == 3), 0, 1, 2, 4))):
            fd = os.memfd_create("packets", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
            os.ftruncate(fd, size)
            if rng.randrange(3):
                fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK)
            files.append(fd)
        if not data and not files:
            continue  # the end of a connection
        socket.send_fds(ours, [data], files)
        for fd in files:
            os.close(fd)
        held = dict(side._segments)
        try:
            assert side._packet()
        except PayloadError:
            assert side._segments == held, "a refused packet changes nothing"
            break
        taken += 1
        for memory in side._segments.values():
            assert memory[0] == 0 == memory[-1]
    side._segments.clear()
    held.clear()
    memory = None
    ours.close()
    theirs.close()
    assert _memfds() == 0
    return taken > 0


def _memfds() -> int:
    """Counts the descriptors of the files of `try_packets`: other threads have others."""
    count = 0
    for fd in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):  # closed meanwhile
            count += os.readlink(f"/proc/self/fd/{fd}").startswith("/memfd:packets")
    return count


TRIES: dict[str, Callable[[random.Random], bool]] = {
    "payload": try_payload,
    "reply": try_reply,
    "state": try_state,
}
if sys.platform == "linux":
    TRIES["packets"] = try_packets
