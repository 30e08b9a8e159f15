"""Shared memory: the same batches, leases that return, and nothing left after kill -9."""

from __future__ import annotations

import contextlib
import fcntl
import gc
import itertools
import mmap
import os
import random
import select
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections import deque
from pathlib import Path

import numpy as np
import pytest
from conftest import nonempty
from helpers import T, alone, eventually, free_port, payload, placed

import chaski
from chaski import _engine, _host, _shared
from chaski._assemble import shared_batch
from chaski.errors import PayloadError, UnavailableError

pytestmark = pytest.mark.skipif(not _host.SUPPORTED, reason="shared memory is for Linux")

SCENE = Path(__file__).resolve().parents[2] / "testdata" / "demo" / "coast.tif"
SRC = Path(__file__).resolve().parents[1] / "src"
KILLS = 8  # 0.5 s of a processor each
OPTIONS = {
    "batch_size": 8,
    "window": chaski.RandomWindow((64, 48), 60),
    "normalize": chaski.Normalize([1e-3], [-1.0]),
    "pixels": chaski.Pixels(validity="ok"),
}
# Requests a separate engine, because one that other tests left is not shared.
OWN = 200 << 20


def mapped() -> int:
    """Returns how many segments of engines this process has mapped, without garbage.

    A thread that ends may leave cycles behind at any time.
    """
    gc.collect()
    return Path("/proc/self/maps").read_text().count("memfd:chaski")


def engine_of(loader: chaski.Loader) -> _engine.LocalEngine:
    return next(e for e in _engine._running.values() if e.connection is loader._link.connection)


def lease_of(a: np.ndarray) -> _shared.Lease | None:
    """Returns the lease that holds an array."""
    base = a
    while isinstance(base, np.ndarray):
        base = base.base
    return base if isinstance(base, _shared.Lease) else None


class Server:
    """`chaski serve` with metrics."""

    def __init__(self, binary: str, *flags: str) -> None:
        self.metrics = f"127.0.0.1:{free_port()}"
        listen = f"unix-abstract:chaski-test-{os.getpid()}-{random.getrandbits(64):x}"
        command = [
            binary,
            "serve",
            "--listen",
            listen,
            "--root",
            "/",
            "--stop-on-eof",
            "--insecure",
        ]
        command += ["--metrics", self.metrics, "--log-level", "error", *flags]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self.process.stdout is not None and b"listen" in self.process.stdout.readline()
        self.target = listen

    def figure(self, name: str) -> float:
        with urllib.request.urlopen(f"http://{self.metrics}/metrics", timeout=300) as r:
            for line in r.read().decode().splitlines():
                if line.startswith(f"chaski_server_{name} "):
                    return float(line.split()[1])
        raise AssertionError(name)

    def nothing_leased(self) -> bool:
        return eventually(lambda: self.figure("leases") == self.figure("leased_bytes") == 0)

    def load(self, **options) -> chaski.Loader:
        given = {**OPTIONS, "transport": "shm", **options}
        return chaski.connect(self.target, SCENE, **placed(**given))

    def close(self) -> None:
        self.process.communicate(timeout=300)


@pytest.fixture
def server(binary):
    s = Server(binary)
    yield s
    s.close()


def test_arrays_of_reads(server):
    whole = chaski.read(SCENE, server=server.target)  # says where the lease socket is
    array = chaski.read(SCENE, server=server.target)
    assert lease_of(whole) is None and lease_of(array) is not None and array.flags.writeable
    assert np.array_equal(array, whole) and server.figure("leases") == 1
    part = array[0, :5]
    at = part.ctypes.data
    del array
    gc.collect()
    assert server.figure("leases") == 1 and np.array_equal(part, whole[0, :5])
    del part
    assert server.nothing_leased()
    again = chaski.read(SCENE, server=server.target)
    assert again.ctypes.data == at and np.array_equal(again, whole)  # the same memory
    assert lease_of(chaski.read(SCENE, b=[0], y=(0, 9), server=server.target)) is None  # is small
    os.kill(server.process.pid, signal.SIGKILL)
    assert eventually(lambda: lease_of(again)._end.func.__self__.over) and np.array_equal(
        again, whole
    )


# The same bytes.


def same(a: chaski.Batch, b: chaski.Batch) -> bool:
    def equal(x, y) -> bool:
        if x.dtype == object:
            return x.tolist() == y.tolist()
        return (x.dtype, x.shape) == (y.dtype, y.shape) and x.tobytes() == y.tobytes()

    return (
        list(a) == list(b)
        and all(equal(a[k], b[k]) for k in a)
        and (a.epoch, a.step, a.bad, a.dtypes, a.axes) == (b.epoch, b.step, b.bad, b.dtypes, b.axes)
    )


@pytest.mark.parametrize("layout", ["n b y x", "n y x b", "b n (y x)"])
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "uint8", "native"])
def test_same_bytes(server, dtype, layout, monkeypatch):
    alone(monkeypatch)
    options = {"dtype": dtype, "layout": layout, "batch_size": 16, "seed": 5}
    if dtype == "native":
        options["normalize"] = None
    with (
        server.load(**options) as a,
        server.load(transport="grpc", **options) as b,
    ):
        for p, q in nonempty(zip(a, b, strict=True)):
            assert same(p, q)
            assert lease_of(p["image"]) is lease_of(p["ok"]) is not None
            assert lease_of(q["image"]) is None
            assert p["image"].ctypes.data % 64 == 0 and p["image"].flags.writeable
        del p
    assert server.nothing_leased()


def test_same_bytes_of_what_rides_along(server, tmp_path):
    table = tmp_path / "table.csv"
    lines = [f"{SCENE},{i * 3},{i / 4},chip ü {i}" for i in range(9)]
    table.write_text("\n".join(["path,label,score,id", *lines]) + "\n")
    options = {
        "batch_size": 4,
        "fields": {"image": "path", "label": "label", "score": "score", "id": "id"},
        "window": (64, 64),
    }
    with (
        chaski.connect(server.target, table, engine=chaski.Engine(transport="shm"), **options) as a,
        chaski.connect(
            server.target, table, engine=chaski.Engine(transport="grpc"), **options
        ) as b,
    ):
        for p, q in nonempty(zip(a, b, strict=True)):
            assert same(p, q)
            assert lease_of(p["image"]) is not None and lease_of(p["label"]) is None
            label, text = p["label"], p["id"]
            want = label.copy(), text.tolist()
            del p
            assert label.tolist() == want[0].tolist() and text.tolist() == want[1]
    assert server.nothing_leased()


def test_small_batches_are_copied(server):
    with server.load(window=(4, 4), batch_size=2) as a:
        assert lease_of(next(iter(a))["image"]) is None
        assert server.figure("leases") == 0


# Leases.


def test_a_lease_lives_as_long_as_anything_sees_it(server):
    torch = pytest.importorskip("torch")
    import chaski.torch

    with server.load(prefetch=1) as loader:
        batches = iter(loader)
        for hold in (
            lambda b: b["image"][3:, ::2, 5],
            lambda b: torch.from_numpy(b["image"])[1:],
            lambda b: torch.from_dlpack(b["image"]),
            lambda b: np.from_dlpack(torch.from_numpy(b["image"])),
            lambda b: memoryview(b["ok"]),
            lambda b: chaski.torch.to_tensors(b)["image"].reshape(-1)[7:],
            lambda b: iter([b["image"].T]),
        ):
            b = next(batches)
            lease = lease_of(b["image"])._end.args[0]
            held = loader._link.connection._side._held
            view = hold(b)
            del b
            gc.collect()
            assert lease in held
            del view
            gc.collect()
            assert lease not in held
    assert server.nothing_leased()


def test_torch_shares_the_memory(server):
    torch = pytest.importorskip("torch")
    import chaski.torch

    with server.load() as loader:
        for b in nonempty(loader):
            t = chaski.torch.to_tensors(b)
            assert t["image"].data_ptr() == b["image"].ctypes.data
            t["image"].mul_(2)  # writable, and the user's own
            assert np.array_equal(b["image"], t["image"].numpy())
            assert torch.equal(torch.from_dlpack(b["image"]), t["image"])
        del b, t
    assert server.nothing_leased()


def test_leases_come_back_after_break_exception_and_close(server):
    loader = server.load()
    for a in nonempty(loader):
        assert a.step == 0
        break
    del a
    with contextlib.suppress(ZeroDivisionError):
        for b in loader:
            b["image"] /= 1
            raise ZeroDivisionError
    with pytest.raises(RuntimeError, match="closed"):
        for b in loader:
            b["image"] += 1
            loader.close()
            iter(loader)
    image = b["image"].copy()
    assert np.array_equal(b["image"], image)
    assert eventually(lambda: server.figure("leases") == 1)  # that of b
    del b
    assert server.nothing_leased()


def test_batches_outlive_loader_and_engine(binary):
    with chaski.load(SCENE, engine=chaski.Engine(transport="shm", memory=OWN), **OPTIONS) as loader:
        kept = list(itertools.islice(loader, 4))
        copies = [b["image"].copy() for b in kept]
        process = engine_of(loader)._process
    assert eventually(lambda: process.poll() is not None)
    with chaski.load(SCENE, engine=chaski.Engine(transport="shm"), **OPTIONS) as loader:
        for b in loader:
            b["image"].fill(0)
    for b, c in nonempty(zip(kept, copies, strict=True)):
        assert lease_of(b["image"]) is not None and np.array_equal(b["image"], c)
        b["image"] += 1


def test_who_keeps_everything_is_served(binary):
    with chaski.load(SCENE, engine=chaski.Engine(transport="grpc"), seed=2, **OPTIONS) as loader:
        want = list(loader)
    one = want[0]["image"].nbytes + want[0]["ok"].nbytes
    for batches in (1, 2, 3, 5):
        memory = batches * (one + 1024)  # rows take a little, too
        server = Server(binary, "--memory", str(memory))
        with server.load(seed=2) as loader, server.load(seed=2) as other:
            got = list(loader)
            assert len(list(other)) == len(want)
            assert all(same(p, q) for p, q in zip(got, want, strict=True))
            leased = sum(lease_of(b["image"]) is not None for b in got)
            room = min(batches, 4)  # what is beyond four batches is for chunks that windows share
            assert leased == room - 1 == server.figure("leases")
            del got
            assert server.nothing_leased()
        server.close()


def test_who_keeps_small_batches_leaves_room_for_large_ones(binary):
    with chaski.load(SCENE, engine=chaski.Engine(transport="grpc"), seed=2, **OPTIONS) as loader:
        want = list(loader)
    one = want[0]["image"].nbytes + want[0]["ok"].nbytes
    server = Server(binary, "--memory", str(2 * (one + 1024)))
    with server.load(seed=2, rank=0, world_size=4) as small, server.load(seed=2) as large:
        got = list(small)
        assert server.figure("leases") in (3, 4)  # of a quarter each, with room for a whole one
        assert all(same(p, q) for p, q in zip(large, want, strict=True))
        for p, q in zip(got, want, strict=True):
            assert p["image"].tobytes() == q["image"][::4].tobytes()
        del got, p
        assert server.nothing_leased()
    server.close()


def test_what_users_write_reaches_nobody(server):
    with server.load(seed=3, transport="grpc") as loader:
        want = [b for _ in range(2) for b in loader]
    with server.load(seed=3) as loader:
        got = 0
        for _ in range(2):
            for b in loader:
                assert same(b, want[got])
                for a in (b["image"], b["ok"]):
                    a.view(np.uint8).fill(0xA5)
                got += 1
    assert got == len(want)


def test_fork_sees_what_its_parent_saw(server):
    with server.load(prefetch=2) as loader:
        batches = iter(loader)
        b = next(batches)
        want = b["image"].copy()
        go, done = os.pipe(), os.pipe()
        pid = os.fork()
        if pid == 0:
            os.read(go[0], 1)
            fine = np.array_equal(b["image"], want)
            del b, batches
            gc.collect()
            os.write(done[1], b"y" if fine else b"n")
            os._exit(0)
        del b
        for b in batches:  # the engine uses its memory again
            b["image"].fill(7)
        assert len(list(loader)) == len(loader)
        os.write(go[1], b"x")
        assert select.select([done[0]], [], [], 300)[0] and os.read(done[0], 1) == b"y"
        assert os.waitpid(pid, 0)[1] == 0
        assert len(list(loader)) == len(loader)  # the child has closed nothing of ours
        del b
        for fd in (*go, *done):
            os.close(fd)
    assert server.nothing_leased()


def test_a_lost_lease_socket_leaves_its_arrays(server):
    with server.load() as loader:
        b = next(iter(loader))
        want = b["image"].copy()
        loader._link.connection._side._shut()
        assert server.nothing_leased()  # as far as the engine is concerned
        for _ in range(2):
            for other in nonempty(loader):  # over another socket
                assert lease_of(other["image"]) is not None
                other["image"].fill(3)
        assert np.array_equal(b["image"], want)
        del other
    assert server.nothing_leased()


def test_what_stalls_leave_goes(binary):
    """A loop that stalls needs more segments for once, and each has a descriptor here and there."""
    server = Server(binary, "--memory", str(OWN))
    with server.load(seed=2) as loader:

        def go(steps: int, held: int) -> None:
            """Takes steps, with the last ones in hands."""
            kept = deque[chaski.Batch](maxlen=max(held, 1))
            done = 0
            while done < steps:
                for batch in loader:
                    kept.append(batch)
                    done += 1
                    if done == steps:
                        break

        def full() -> float:
            """Returns how many segments there are while a client holds one batch."""
            batches = iter(loader)
            kept = next(batches)
            most, since = 0.0, time.monotonic()
            while time.monotonic() < since + 2:
                if (now := server.figure("segments")) > most:
                    most, since = now, time.monotonic()
                time.sleep(0.01)
            del kept, batches
            return most

        go(600, 1)
        needed = 2 * full()  # an epoch begins while the one before it ends
        for stall in (0, 3, 7):
            held = int(needed) + 4 + 2 * stall
            go(held + 16, held)
            assert server.figure("segments") >= held  # or there was no stall
            # They go after 256 steps without a stall: TestIdleForLong of loader/batch counts them.
            # A busy machine stalls by itself, which begins the count anew.
            for _ in range(10):
                go(300, 1)
                if (count := server.figure("segments")) <= needed:
                    break
            else:
                raise AssertionError(
                    f"{count:.0f} segments after stall {stall}, needed {needed:.0f}"
                )
        assert eventually(lambda: mapped() <= needed)
    server.close()


def test_nothing_is_left_open(binary):
    def count() -> tuple[int, int]:
        return len(os.listdir("/proc/self/fd")), threading.active_count()

    def once() -> None:
        # A separate engine, because the one that reads share keeps running.
        with chaski.load(
            SCENE, engine=chaski.Engine(transport="shm", workers=3), **OPTIONS
        ) as loader:
            kept = next(iter(loader))
        del kept

    once()
    gc.collect()
    before = count()
    maps = mapped()
    rounds = 6
    for _ in range(rounds):
        once()
    gc.collect()

    def leaked() -> int:
        # Each loader may leave its files once; gRPC opens one or two in between.
        return max(after - was for after, was in zip(count(), before, strict=True))

    assert eventually(lambda: leaked() < rounds // 2), (count(), before)
    assert eventually(lambda: mapped() <= maps)  # the thread that reads a socket has the last ones


# Without shared memory.


def test_fallback(binary, server, monkeypatch):
    plain = Server(binary, "--no-shared-memory")
    with monkeypatch.context() as patch:
        alone(patch)
        with plain.load(transport="grpc") as loader:
            sent = next(iter(loader))["image"]
            assert lease_of(sent) is None
    for transport in "auto", "grpc":  # which go through the engine on this host
        with plain.load(transport=transport) as loader:
            image = next(iter(loader))["image"]
            assert lease_of(image) is not None and loader._link.connection.target != plain.target
            assert image.tobytes() == sent.tobytes()
    with pytest.raises(UnavailableError, match="no shared memory"):
        plain.load()
    plain.close()
    with pytest.raises(chaski.SpecError, match="transport"):
        server.load(transport="tcp")

    def nowhere(self, address):  # as in another network namespace, or on another host
        raise ConnectionRefusedError("nobody is there")

    monkeypatch.setattr(_shared.Side, "_greet", nowhere)
    # Otherwise an engine of an earlier test would be the client, whose socket is already open.
    monkeypatch.setattr(_engine, "_running", {})
    with server.load(transport="auto") as loader:
        assert lease_of(next(iter(loader))["image"]) is None
    with pytest.raises(UnavailableError, match="nobody is there"):
        server.load()


PORTABLE = """
import sys
import chaski
import numpy as np
from test_shared import OPTIONS, SCENE

with chaski.load(SCENE, **OPTIONS) as loader:
    target = loader._link.connection.target
    np.save(sys.argv[1], np.concatenate([batch["image"] for batch in loader]))
    try:
        chaski.connect(target, SCENE, **OPTIONS)
    except chaski.AccessError:
        print(target)
"""


def test_an_engine_without_what_linux_has(binary, tmp_path):
    """On other systems an engine has a port of this host, a token, and no shared memory."""
    images = tmp_path / "images.npy"
    env = {**os.environ, "CHASKI_PORTABLE": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    env.pop("CHASKI_TOKEN", None)
    child = [sys.executable, "-c", PORTABLE, images]
    done = subprocess.run(child, env=env, timeout=500, capture_output=True, text=True)
    assert done.stdout.startswith("127.0.0.1:"), done.stderr
    with chaski.load(SCENE, **OPTIONS) as loader:
        want = [batch["image"] for batch in loader]
    assert np.array_equal(np.load(images), np.concatenate(want))


# A server that breaks the rules.

TOKEN = b"t" * 16


class LeaseSocket:
    """The server's end of a shared-memory connection."""

    def __init__(self) -> None:
        self.address = f"chaski-test-{random.getrandbits(64):x}"
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.listener.bind("\0" + self.address)
        self.listener.listen()
        self.listener.settimeout(300)

    def enter(self, answer: bytes = struct.pack("<4Q", 2, 1, 2, 1)) -> _shared.Side:
        def accept() -> None:
            self.s, _ = self.listener.accept()
            self.s.settimeout(300)
            assert self.s.recv(100) == struct.pack("<Q", 1) + TOKEN + struct.pack("<Q", 1)
            self.s.send(answer)

        t = threading.Thread(target=accept)
        t.start()
        try:
            return _shared.Side(self.address, TOKEN)
        finally:
            t.join()

    def send(self, *numbers: int, files=(), tail: bytes = b"") -> None:
        data = struct.pack(f"<{len(numbers)}Q", *numbers) + tail
        socket.send_fds(self.s, [data], files)

    def receive(self) -> tuple[int, ...]:
        return struct.unpack("<4Q", self.s.recv(100))

    def close(self) -> None:
        self.listener.close()
        self.s.close()


@pytest.fixture
def lease_socket():
    d = LeaseSocket()
    yield d
    d.close()


def memfd(size: int, seal: bool = True) -> int:
    fd = os.memfd_create("test", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.ftruncate(fd, size)
    if seal:
        fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK)
    return fd


def test_socket_that_does_not_answer_well(lease_socket):
    for answer in (b"x", struct.pack("<4Q", 2, 1, 2, 2), struct.pack("<4Q", 3, 1, 2, 1)):
        with pytest.raises(UnavailableError, match="does not let this client in"):
            lease_socket.enter(answer)
    with pytest.raises(UnavailableError):
        _shared.Side(lease_socket.address, b"short")


@pytest.mark.parametrize(
    "packet,size,seal",
    [
        ((3, 1, 4097, 0), 4096, True),
        ((3, 1, 4095, 0), 4096, True),
        ((3, 1, 1 << 63, 0), 4096, True),
        ((3, 1, 0, 0), 0, True),
        ((3, 1, 4096, 0), 4096, False),
        ((3, 1, 4096), 4096, True),
        ((3, 1, 4096, 0, 0), 4096, True),
        ((4, 1, 0, 0), 4096, True),
        ((3, 1, 4096, 0), None, True),
        ((6, 1, 0, 0), None, True),
        ((0, 0, 0, 0), None, True),
        ((1 << 63, 0, 0, 0), None, True),
        ((3,), None, True),
    ],
)
def test_packets_that_break_the_rules(lease_socket, packet, size, seal):
    before = len(os.listdir("/proc/self/fd"))
    side = lease_socket.enter()
    files = [] if size is None else [memfd(size, seal)]
    lease_socket.send(*packet, files=files)
    for f in files:
        os.close(f)
    assert eventually(lambda: side._over)
    with pytest.raises(UnavailableError, match="has not come"):
        side.claim(1, 1)
    side.close()
    assert lease_socket.s.recv(100) == b""
    lease_socket.s.close()
    assert eventually(lambda: len(os.listdir("/proc/self/fd")) <= before)


def test_segments_and_recalls(lease_socket):
    side = lease_socket.enter()
    fd = memfd(8192)
    ours = mmap.mmap(fd, 8192)
    ours[:5] = b"chips"
    lease_socket.send(3, 9, 8192, 0, files=[fd])
    os.close(fd)
    stream = side.begin()
    a = side.claim(1, 9)
    assert a[:5].tobytes() == b"chips"
    with pytest.raises(PayloadError, match="twice"):
        side.claim(1, 9)
    lease_socket.send(5, 1, stream, 0)  # held: no answer
    lease_socket.send(5, 2, stream, 0)  # may still come: the answer waits
    lease_socket.send(5, 3, stream + 1, 0)  # of a stream that is over
    assert lease_socket.receive() == (6, 3, 0, 0)
    b = side.claim(2, 9)
    lease_socket.send(4, 9, 0, 0)
    assert eventually(lambda: 9 not in side._segments)
    assert a[:5].tobytes() == b[:5].tobytes() == b"chips"  # still there
    side.end(stream)
    del b
    assert lease_socket.receive() == (6, 2, 0, 0)
    del a
    assert lease_socket.receive() == (6, 1, 0, 0)
    stream = side.begin()
    lease_socket.send(5, 4, stream, 0)
    assert eventually(lambda: side._streams[stream] == [4])
    side.end(stream)
    assert lease_socket.receive() == (6, 4, 0, 0)
    side.close()
    assert lease_socket.s.recv(100) == b"" and side.over


def test_an_open_door_waits_for_its_arrays(lease_socket):
    side = lease_socket.enter()
    fd = memfd(4096)
    lease_socket.send(3, 1, 4096, 0, files=[fd])
    os.close(fd)
    a = side.claim(5, 1)
    side.close()
    assert side.over and not side._over
    a[:] = 1
    del a
    assert lease_socket.receive() == (6, 5, 0, 0)
    assert lease_socket.s.recv(100) == b""


def shared_payload(cut: int) -> tuple[bytes, np.ndarray]:
    """Returns the head and the memory of a payload that is cut `cut` bytes after its header."""
    image = np.arange(600, dtype=np.float32).reshape(2, 300)
    p = payload([T("image", image, axes=("n", "x")), T("label", np.array([4, 5]), axes=("n",))])
    cut += -(-(4 + int.from_bytes(p[:4], "little")) // 64) * 64
    return p[:cut], np.frombuffer(p[cut:], np.uint8).copy()


def test_ranges_are_checked():
    head, memory = shared_payload(0)
    b = shared_batch(head, memory, 1 << 20)
    assert b["image"].reshape(-1).tolist() == list(range(600)) and b["label"].tolist() == [4, 5]
    assert np.shares_memory(b["image"], memory)
    for wrong in (
        (head, memory[:-64]),
        (head[:-64], memory),
        (head + bytes(64), memory),
        (b"", memory),
        (head[:3], memory),
        shared_payload(64),  # inside of the image
        shared_payload(-64),  # inside of the header
    ):
        with pytest.raises(PayloadError):
            shared_batch(*wrong, 1 << 20)
    with pytest.raises(chaski.LimitError):
        shared_batch(head, memory, len(head) + len(memory) - 1)


# kill -9.


def leftovers(mark: str, pids: set[int]) -> set[str]:
    """Returns what processes have left: names of sockets, and who has our memory mapped.

    Args:
        mark: CHASKI_TEST_MARK of the processes that are to be gone.
        pids: those processes, as far as known.
    """
    left = set()
    for line in Path("/proc/net/unix").read_text().splitlines():
        name = line.split()[-1]
        if name.startswith("@chaski-") and name.split("-")[1] in map(str, pids):
            left.add(name)
    for p in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if f"CHASKI_TEST_MARK={mark}\0" in (p / "environ").read_text():
                left.add(f"{p.name}: {(p / 'comm').read_text().strip()}")
    return left


def children(pid: int) -> set[int]:
    with contextlib.suppress(OSError):
        return {int(p) for p in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()}
    return set()


CLIENT = """
import sys
import chaski
target, scene = sys.argv[1:]
options = dict(
    batch_size=8,
    window=chaski.RandomWindow((64, 48), 60),
    engine=chaski.Engine(transport="shm"),
)
loader = (chaski.connect(target, scene, **options) if target else chaski.load(scene, **options))
print("open", flush=True)
kept = []
while True:
    for batch in loader:
        batch["image"].fill(1)
        kept = [*kept[-1:], batch]
        if batch.step == 1:
            print("on", flush=True)
"""


@pytest.mark.timeout(600 + 60 * KILLS)
def test_kill_the_client_at_any_point(binary, server, tmp_path):
    rng = random.Random(8)
    mark = f"{random.getrandbits(64):x}"
    env = {**os.environ, "PYTHONPATH": str(SRC), "TMPDIR": str(tmp_path), "CHASKI_TEST_MARK": mark}
    for kill in range(KILLS):
        target = server.target if kill % 2 else ""
        p = subprocess.Popen(
            [sys.executable, "-c", CLIENT, target, str(SCENE)], env=env, stdout=subprocess.PIPE
        )
        assert p.stdout is not None
        if rng.random() < 0.75:  # else: while it starts
            assert p.stdout.readline() == b"open\n"
        time.sleep(rng.uniform(0, 0.1))
        pids = {p.pid, *children(p.pid)}
        p.kill()
        p.communicate()
        assert server.nothing_leased()
        assert eventually(lambda: server.figure("streams") == 0)
        assert eventually(lambda: not leftovers(mark, pids)), leftovers(mark, pids)  # noqa: B023
        assert os.listdir(tmp_path) == []
    with (
        server.load(seed=4) as a,
        chaski.load(SCENE, seed=4, engine=chaski.Engine(transport="grpc"), **OPTIONS) as b,
    ):
        assert all(same(p, q) for p, q in zip(a, b, strict=True))


@pytest.mark.timeout(600 + 60 * KILLS)
def test_kill_the_engine_at_any_point(binary, monkeypatch, tmp_path):
    rng = random.Random(9)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    mark = f"{random.getrandbits(64):x}"
    monkeypatch.setenv("CHASKI_TEST_MARK", mark)  # in what is started from now on
    pids = set()
    with chaski.load(SCENE, engine=chaski.Engine(transport="grpc"), **OPTIONS) as loader:
        want = [b["image"] for b in loader]
    kept: list[tuple[np.ndarray, int]] = []
    maps_before = mapped()
    for _ in range(KILLS):
        with chaski.load(
            SCENE, engine=chaski.Engine(transport="shm", memory=OWN), **OPTIONS
        ) as loader:
            process = engine_of(loader)._process
            pids.add(process.pid)
            delay = rng.uniform(0, 0.15)
            killer = threading.Timer(delay, os.kill, (process.pid, signal.SIGKILL))
            killer.start()
            steps = []
            while not steps or killer.is_alive():
                for b in loader:
                    if b.epoch == 0:
                        steps.append(b.step)
                        assert np.array_equal(b["image"], want[b.step])
                        if rng.random() < 0.3:
                            kept.append((b["image"], b.step))
            killer.join()
            assert sum(1 for _ in loader) == len(want)  # a new engine gave it, if none did before
            assert steps == list(range(len(want)))
            pids.add(engine_of(loader)._process.pid)
            assert process.wait(300) == -signal.SIGKILL
        kept = kept[-20:]
        assert all(np.array_equal(a, want[step]) for a, step in kept)
    kept.clear()
    del b
    assert eventually(lambda: not leftovers(mark, pids)), leftovers(mark, pids)
    assert eventually(lambda: mapped() <= maps_before)
    assert os.listdir(tmp_path) == []
    with chaski.load(SCENE, engine=chaski.Engine(transport="shm"), **OPTIONS) as loader:
        assert all(np.array_equal(b["image"], want[b.step]) for b in loader)
