"""Attacks a server beside a modest client, which must hardly notice.

    tools/soak_hostile.py [--only ATTACK ...] [--time 20] [--together 600] [--turns 10] [--busy]
                          [--data FOLDER] [--apart] [--control] [--step 0.1] [--ahead 4] [--files N]

The server has a budget of 700 MiB (`--memory-total`) and runs in a memory cgroup of 1 GiB, where
this machine lets one be made; elsewhere only its resident memory is compared. Every attack is a
process of its own, hence a client of its own, and so is the modest client, which trains on the
chips of --data with --ahead batches ahead, and takes --step seconds for each, which count as time
that it waits. With --step 0 it is not modest: it asks for all that a machine can give, of which
the attacks then have a fair share too. First the modest client runs alone,
then beside each attack for --time seconds, then beside all of them for --together seconds in
--turns turns; 0 leaves that out. Before each turn it is alone, since waits are measured by the
clock, and a machine has other work that comes and goes. With n clients it is entitled to 1/n of
what it gets alone.

The attacks of files, planted_cache and forged_ledger, need no server: each is commands that must
end in time, with little memory and short output.

With --files the server has that many file descriptors, as by `ulimit -n`: 96 are few.

With --control the modest client is compared with itself beside the same attack on a process that
only reads, for the attacks that are floods: what the machine takes from it does not count.

With --apart the attacks are on a second server, so that what the modest client loses is what the
machine takes from it, whose processors all clients and servers share. Nothing fails then.

CHASKI_BIN names the command.

Passed means, for each of these: the server lives; its resident memory stays below the limit; the
modest client keeps 0.8 of its share; how long it waits for a batch is at the 99th percentile at
most 3 times that alone; and within 2 s after the attackers are gone it has 0.95 of what it had
alone. Beside frames that no client library sends (FRAMES), the server must live within its memory,
and the modest client must have all back afterwards. On a machine that does other work (--busy) the
rate of --step 0 says little: there the share is by the processor time of the server. Of waits only
one of more than 10 s fails then.

Everything listens on a Unix socket in a temporary folder, and every loop ends by count or time.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import json
import os
import queue
import random
import resource
import shutil
import signal
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import threading
import time
import zlib
from collections import Counter, deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import grpc

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "python" / "src"))

from chaski._proto import chaski_pb2 as pb  # noqa: E402
from chaski._proto import chaski_pb2_grpc  # noqa: E402

CHASKI = os.environ.get("CHASKI_BIN", str(ROOT / "bin" / "chaski"))
LIMIT = 1 << 30
BUDGET = 700 << 20
BATCH = 16
SQL_TIME = "3s"  # so that an attack of some seconds sees queries that never end reach it
SHARE = 0.8  # of what is the modest client's
BACK = 0.95  # of its rate before, once the attackers are gone
AFTER = 20.0  # seconds in which that is measured: one of 200 batches of 0.1 s is 0.5 %
WAIT = 3.0  # times that alone, at the 99th percentile
STALL = (
    10.0  # seconds: a hundred times the wait at the 99th percentile on a machine with a load of 15
)

Stub = chaski_pb2_grpc.ChaskiStub


def spec(source: str, **more: Any) -> bytes:
    """A spec of whole chips of one source."""
    field = {"name": "image", "dtype": "float32", "layout": "n b y x"}
    given = {
        "version": 1,
        "source": source,
        "fields": [field],
        "batch_size": BATCH,
        "shuffle": True,
    }
    return json.dumps(given | more).encode()


def token(name: str) -> str:
    """The token of a client."""
    return f"chaski_soak_{name}"


class Authenticated(
    grpc.UnaryUnaryClientInterceptor,
    grpc.UnaryStreamClientInterceptor,
    grpc.StreamStreamClientInterceptor,
):
    """Gives each call the token of this process."""

    name = ""

    def intercept_stream_stream(self, call: Any, details: Any, request: Any) -> Any:
        """Adds the metadata. Calls of the other kinds come here too."""
        metadata = [("authorization", f"Bearer {token(self.name)}")]
        return call(details._replace(metadata=metadata), request)

    intercept_unary_unary = intercept_unary_stream = intercept_stream_stream


def stub(target: str) -> Stub:
    """A connection of its own to the server."""
    # Otherwise channels with equal options share a connection.
    options = [("grpc.max_receive_message_length", 64 << 20), ("grpc.use_local_subchannel_pool", 1)]
    channel = grpc.insecure_channel(target, options=options)
    return Stub(grpc.intercept_channel(channel, Authenticated()))


def ticket(handle: str, i: int, count: int = BATCH) -> pb.Ticket:
    """The ticket of batch i of epoch 0."""
    return pb.Ticket(id=i, handle=handle, first=i * count, count=count, row_stride=1, native=True)


# ------------------------------------------------------------------------------------------
# The modest client


def modest(target: str, data: Path, step: float, ahead: int) -> None:
    """Trains until it is killed, and prints for every batch when it had it, and after how long."""
    server = stub(target)
    while True:  # a server may close a dataset between two tickets: then clients open it again
        train(server, data, step, ahead)


def train(server: Stub, data: Path, step: float, ahead: int) -> None:
    """Trains until the server has closed the dataset."""
    described = server.Describe(pb.DescribeRequest(spec=spec(str(data / "train")), rows=BATCH))
    batches = described.samples // BATCH
    wake = threading.Semaphore(ahead)
    came: queue.Queue[float | None] = queue.Queue()

    def requests() -> Iterator[pb.StreamRequest]:
        for i in itertools.count():
            wake.acquire()
            t = ticket(described.handle, i % batches)
            t.id = i
            yield pb.StreamRequest(ticket=t)
            yield pb.StreamRequest(credit=pb.Credit(batches=1))

    def receive() -> None:
        try:
            for reply in server.Stream(requests()):
                if reply.HasField("fault"):
                    if "does not know the spec" in reply.fault.message:
                        return
                    print(f"soak_hostile: the modest client got {reply.fault}", file=sys.stderr)
                    os._exit(1)
                part = reply.part
                if part.offset + len(part.data) == part.total:
                    came.put(time.monotonic())
        except grpc.RpcError as e:  # the soak says that the server is gone
            print(f"soak_hostile: the modest client is cut off: {e.code().name}", file=sys.stderr)
            os._exit(1)
        finally:
            came.put(None)

    threading.Thread(target=receive, daemon=True).start()
    wants = time.monotonic()
    while (at := came.get()) is not None:
        print(f"{max(at, wants)} {step + max(0.0, at - wants)}", flush=True)
        time.sleep(step)
        wants = time.monotonic()
        wake.release()


# ------------------------------------------------------------------------------------------
# Attacks


class Attack:
    """What an attacker does until a moment, and what it is told."""

    def __init__(self, target: str, data: Path, seconds: float) -> None:
        self.target, self.data = target, data
        self.end = time.monotonic() + seconds
        self.told: Counter[str] = Counter()

    def leave(self) -> None:
        """Prints what it was told, and ends the process with all of its calls."""
        print(", ".join(f"{n} {k}" for k, n in self.told.most_common()), flush=True)
        # Connections with calls that were cut take long to close, which is of no interest here.
        os._exit(0)

    def left(self) -> float:
        """Seconds that are left."""
        return max(0.1, self.end - time.monotonic())

    def call(self, ask: Callable[[], Any]) -> Any:
        """Asks once, and counts how that ends."""
        try:
            answer = ask()
        except grpc.RpcError as e:
            self.told[e.code().name] += 1
            # An attacker that is refused at once would otherwise only measure how fast Python asks.
            time.sleep(0.01)
            return None
        self.told["answered"] += 1
        return answer

    def at_once(self, threads: int, ask: Callable[[Stub, int], Any], most: int = 10**4) -> None:
        """Asks again and again from threads, which share a few connections."""
        stubs = [stub(self.target) for _ in range(min(threads, 8))]
        count = itertools.count()

        def run(k: int) -> None:
            for i in count:
                if i >= most or time.monotonic() > self.end:
                    return
                self.call(lambda i=i: ask(stubs[k % len(stubs)], i))

        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(run, range(threads)))

    def describe(self, threads: int, make: Callable[[int], bytes], most: int = 10**4) -> None:
        """Describes specs from many threads."""
        self.at_once(
            threads,
            lambda s, i: s.Describe(pb.DescribeRequest(spec=make(i)), timeout=self.left()),
            most,
        )

    # The attacks.

    def quiet(self) -> None:
        """Nothing: what a machine with other work makes of the same figures."""
        time.sleep(self.left())

    def reads(self) -> None:
        """Eight readers of a sparse TIFF of some KB, whose array takes 512 MiB."""
        path = str(self.data / "sparse.tif")

        def read(s: Stub, i: int) -> None:
            for _ in s.Read(pb.ReadRequest(paths=[path]), timeout=self.left()):
                pass

        self.at_once(8, read)

    def weights(self) -> None:
        """Weights of a sampler in a sparse file of 2 GiB that is none."""
        sampler = {"kind": "weighted_window", "height": 64, "width": 64}
        sampler["weights"] = str(self.data / "zeros.bin")
        train = str(self.data / "train")
        self.describe(8, lambda i: spec(train, sampler=sampler, seed=i))

    def csv(self) -> None:
        """A sparse CSV of 3 GiB."""
        self.describe(8, lambda i: spec(str(self.data / "zeros.csv"), seed=i))

    def texts(self) -> None:
        """Thirty kinds of small files that would become large, asked for by six threads."""
        sources = sorted(str(p) for p in (self.data / "texts").iterdir())
        self.describe(6, lambda i: spec(sources[i % len(sources)], seed=i))

    def metadata(self) -> None:
        """Six readers open 48 TIFFs each, with 4 MiB of GDAL_METADATA in every TIFF."""
        folder = self.data / "metadata"
        names = sorted(p.name for p in folder.iterdir())

        def ask(s: Stub, i: int) -> None:
            one = spec(str(folder / "*.tif"), seed=i, batch_size=len(names))
            d = s.Describe(pb.DescribeRequest(spec=one), timeout=self.left())
            asked = [
                pb.StreamRequest(credit=pb.Credit(batches=1)),
                pb.StreamRequest(ticket=ticket(d.handle, 0, len(names))),
            ]
            for reply in s.Stream(iter(asked), timeout=self.left()):
                self.told["faults" if reply.HasField("fault") else "parts"] += 1

        self.at_once(6, ask)

    def describes(self) -> None:
        """Describes of a folder of 20,000 files, 2,000 at once, each with a seed of its own."""
        stubs = [stub(self.target) for _ in range(16)]  # a connection has 256 calls at most
        while time.monotonic() < self.end:
            asked = [
                pb.DescribeRequest(spec=spec(str(self.data / "many"), seed=i)) for i in range(2000)
            ]
            calls = [
                stubs[i % 16].Describe.future(r, timeout=self.left()) for i, r in enumerate(asked)
            ]
            for c in calls:
                self.call(c.result)

    def mixture(self) -> None:
        """A mixture that names a folder of 20,000 files a hundred times."""
        source = [
            {"source": str(self.data / "many"), "weight": 1.0, "name": str(i)} for i in range(100)
        ]

        def make(i: int) -> bytes:
            whole = json.loads(spec("", seed=i))
            del whole["source"]
            return json.dumps(whole | {"sources": source}).encode()

        self.describe(4, make)

    def page(self) -> None:
        """A Parquet of 80 KB with one page of 64 MB (make)."""
        self.describe(8, lambda i: spec(str(self.data / "page.parquet"), seed=i))

    def glob(self) -> None:
        """Globs of 200,000 times two stars, and of as many as a source may have (16 KiB)."""
        many = str(self.data / "many") + "/"
        globs = [spec(many + "**/" * n + "*.tif") for n in (200_000, 5_400)]
        self.describe(4, lambda i: globs[i % 2])

    def greedy(self) -> None:
        """Four streams with 3,000 tickets ahead and credits for all of them."""
        server = stub(self.target)
        d = server.Describe(pb.DescribeRequest(spec=spec(str(self.data / "train"))))
        batches = d.samples // BATCH

        def run(_: int) -> None:
            while time.monotonic() < self.end:
                asked = [pb.StreamRequest(credit=pb.Credit(batches=3000))]
                for i in range(3000):
                    asked.append(pb.StreamRequest(ticket=ticket(d.handle, i % batches)))
                    asked[-1].ticket.id = i
                self.call(lambda asked=asked: self.drain(server, asked))

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(run, range(4)))

    def drain(self, server: Stub, asked: list[pb.StreamRequest]) -> None:
        """Reads what a stream answers."""
        for _ in server.Stream(iter(asked), timeout=self.left()):
            pass

    def silent(self) -> None:
        """1,024 streams, all that a server has by default, that say nothing."""
        stubs = [stub(self.target) for _ in range(16)]
        over = threading.Event()

        def nothing() -> Iterator[pb.StreamRequest]:
            over.wait(self.left())
            yield from ()

        calls = [stubs[i % 16].Stream(nothing(), timeout=self.left()) for i in range(1024)]
        over.wait(self.left())
        for c in calls:
            self.call(lambda c=c: [c.cancel(), c.code() and list(c)])

    def seeds(self) -> None:
        """Sixteen datasets and more, which differ in their seed and are read."""
        server = stub(self.target)
        train = str(self.data / "train")

        def run(k: int) -> None:
            for i in range(k, 4096, 32):
                if time.monotonic() > self.end:
                    return
                request = pb.DescribeRequest(spec=spec(train, seed=1000 + i))
                d = self.call(lambda r=request: server.Describe(r, timeout=self.left()))
                if d is None:
                    continue
                asked = [
                    pb.StreamRequest(credit=pb.Credit(batches=1)),
                    pb.StreamRequest(ticket=ticket(d.handle, 0)),
                ]
                self.call(lambda asked=asked: self.drain(server, asked))

        with ThreadPoolExecutor(32) as pool:
            list(pool.map(run, range(32)))

    def handles(self) -> None:
        """One stream with tickets for sixteen datasets that differ in their seed, and no credit."""
        server = stub(self.target)
        train = str(self.data / "train")
        over = threading.Event()

        def asks(handles: list[str]) -> Iterator[pb.StreamRequest]:
            for handle in handles:
                yield pb.StreamRequest(ticket=ticket(handle, 0))
            over.wait(self.left())

        while time.monotonic() < self.end:
            described = [
                self.call(
                    lambda k=k: server.Describe(
                        pb.DescribeRequest(spec=spec(train, seed=9000 + k)), timeout=self.left()
                    )
                )
                for k in range(16)
            ]
            asked = asks([d.handle for d in described if d is not None])
            self.call(lambda asked=asked: list(server.Stream(asked, timeout=self.left())))

    def deaf(self) -> None:
        """Sixteen streams with credits for 3,000 batches whose client never reads."""
        stubs = [stub(self.target) for _ in range(16)]
        d = stubs[0].Describe(pb.DescribeRequest(spec=spec(str(self.data / "train"))))
        over = threading.Event()

        def asks() -> Iterator[pb.StreamRequest]:
            yield pb.StreamRequest(credit=pb.Credit(batches=3000))
            for i in range(3000):
                yield pb.StreamRequest(ticket=ticket(d.handle, i % (d.samples // BATCH)))
            over.wait(self.left())

        calls = [s.Stream(asks(), timeout=self.left()) for s in stubs]
        over.wait(self.left())
        for c in calls:
            self.call(lambda c=c: [c.cancel(), c.code() and list(c)])

    def pipe(self, hello: bytes) -> socket.socket | None:
        """A connection that begins as a pipe does, or None if the server closes it."""
        s = socket.socket(socket.AF_UNIX)
        s.settimeout(1)
        try:
            s.connect(self.target.removeprefix("unix:"))
            s.sendall(PIPE + hello)
            if len(hello) < 32 or s.recv(len(PIPE)) == PIPE:
                self.told["connected"] += 1
                return s
        except OSError:
            pass
        self.told["refused"] += 1
        s.close()
        time.sleep(0.01)
        return None

    def pipes(self) -> None:
        """Pipes that no stream takes: unfinished, with a wrong token, with one secret, and good."""
        server = stub(self.target)
        right = server.Describe(pb.DescribeRequest(spec=spec(str(self.data / "train")))).pipe
        waiting: deque[socket.socket] = deque()
        for i in itertools.count():
            if time.monotonic() > self.end:
                return
            fresh = struct.pack("!QQ", 0, i)
            hello = (right[:9], bytes(16) + fresh, right + bytes(16), right + fresh)[i % 4]
            s = self.pipe(hello)
            if s is not None:
                waiting.append(s)
            if len(waiting) > 400:
                waiting.popleft().close()
                time.sleep(0.001)  # so that it wears out the server and not the processors

    def deaf_pipes(self) -> None:
        """Sixteen streams with credits for 3,000 batches by pipes that nobody reads."""
        stubs = [stub(self.target) for _ in range(16)]
        d = stubs[0].Describe(pb.DescribeRequest(spec=spec(str(self.data / "train"))))
        over = threading.Event()
        kept = []

        def asks(k: int) -> Iterator[pb.StreamRequest]:
            secret = struct.pack("!QQ", 1, k)
            kept.append(self.pipe(d.pipe + secret))
            yield pb.StreamRequest(attach=pb.Attach(pipe=secret))
            yield pb.StreamRequest(credit=pb.Credit(batches=3000))
            for i in range(3000):
                yield pb.StreamRequest(ticket=ticket(d.handle, i % (d.samples // BATCH)))
            over.wait(self.left())

        calls = [s.Stream(asks(k), timeout=self.left()) for k, s in enumerate(stubs)]
        over.wait(self.left())
        for c in calls:
            self.call(lambda c=c: [c.cancel(), c.code() and list(c)])

    def flooded_pipes(self, count: int, sent: bytes, again: bool) -> None:
        """Sends requests by the pipes of streams, which are opened again when they end."""
        described = stub(self.target).Describe(
            pb.DescribeRequest(spec=spec(str(self.data / "train")))
        )

        def run(_: int) -> None:
            while time.monotonic() < self.end:
                secret = random.randbytes(16)
                pipe = self.pipe(described.pipe + secret)
                if pipe is None:
                    continue
                attach = pb.StreamRequest(attach=pb.Attach(pipe=secret, requests=True))
                call = stub(self.target).Stream(iter([attach]), timeout=self.left())
                with pipe:
                    pipe.settimeout(self.left())
                    try:
                        pipe.sendall(sent)
                        while again and time.monotonic() < self.end:
                            pipe.sendall(sent)
                        self.call(lambda call=call: list(call))
                    except OSError:
                        self.told["closed"] += 1
                        time.sleep(0.01)

        with ThreadPoolExecutor(count) as pool:
            list(pool.map(run, range(count)))

    def unfinished_pipes(self) -> None:
        """245 pipes with a request of 2 MiB that lacks a byte."""
        size = 2 << 20
        self.flooded_pipes(245, struct.pack("<I", size) + bytes(size - 1), again=False)

    def pipe_credits(self) -> None:
        """64 pipes with credits, as many as they take."""
        credit = pb.StreamRequest(credit=pb.Credit(batches=1)).SerializeToString()
        self.flooded_pipes(64, (struct.pack("<I", len(credit)) + credit) * 7000, again=True)

    def refused(self) -> None:
        """Names of 900 kB that are outside of the roots."""
        name = spec("/" + "x" * 900_000)
        self.describe(8, lambda i: name)

    def streams(self) -> None:
        """Ten thousand streams of nonsense: unknown handles, doubled attaches, huge credits."""

        def ask(s: Stub, i: int) -> None:
            asked = [
                pb.StreamRequest(ticket=pb.Ticket(id=i, handle="x" * 10_000, count=2**31)),
                pb.StreamRequest(credit=pb.Credit(batches=2**32 - 1)),
                pb.StreamRequest(attach=pb.Attach(secret=b"y" * 16, stream=i)),
                pb.StreamRequest(),
            ]
            for _ in s.Stream(iter(asked[i % 4 :] + asked[: i % 4]), timeout=self.left()):
                pass

        self.at_once(16, ask)

    def unread(self) -> None:
        """Streams, one after the other, that ask for one batch and never read it."""
        server = stub(self.target)
        d = server.Describe(pb.DescribeRequest(spec=spec(str(self.data / "train"))))
        over = threading.Event()

        def asks() -> Iterator[pb.StreamRequest]:
            yield pb.StreamRequest(credit=pb.Credit(batches=1))
            yield pb.StreamRequest(ticket=ticket(d.handle, 0))
            over.wait(self.left())

        calls = []
        while time.monotonic() < self.end:
            calls.append(stub(self.target).Stream(asks(), timeout=self.left()))
            over.wait(0.1)
        for c in calls:
            self.call(lambda c=c: [c.cancel(), c.code() and list(c)])

    def idle(self) -> None:
        """Four hundred connections without a call."""
        path = self.target.removeprefix("unix:")
        sockets = [socket.socket(socket.AF_UNIX) for _ in range(400)]
        for s in sockets:
            self.told["connected" if s.connect_ex(path) == 0 else "refused"] += 1
        time.sleep(self.left())

    def half(self) -> None:
        """Four hundred connections that begin a handshake, again and again, and never end it."""
        path = self.target.removeprefix("unix:")
        begun: deque[socket.socket] = deque()
        while time.monotonic() < self.end:
            s = socket.socket(socket.AF_UNIX)
            s.settimeout(1)
            try:
                s.connect(path)
                s.send(PREFACE[:10])
                self.told["connected"] += 1
            except OSError:
                self.told["refused"] += 1
                time.sleep(0.01)
            begun.append(s)
            if len(begun) > 400:
                begun.popleft().close()
                time.sleep(0.001)  # so that it wears out the server and not the processors

    def unfinished(self) -> None:
        """Sixteen connections with 256 calls each, whose messages of 2 MiB never end."""
        with ThreadPoolExecutor(16) as pool:
            list(pool.map(lambda _: self.unfinished_on_one(), range(16)))

    def unfinished_on_one(self) -> None:
        """Connects again whenever the server closes the connection."""
        while time.monotonic() < self.end:
            with socket.socket(socket.AF_UNIX) as s:
                s.settimeout(self.left())
                try:
                    s.connect(self.target.removeprefix("unix:"))
                    unfinished_calls(s, 256)
                except TimeoutError:
                    self.told["open to the end"] += 1
                except OSError:
                    self.told["closed"] += 1
                    time.sleep(0.01)

    def audit(self) -> None:
        """As many refused calls as 64 threads can make, with short names, long ones and 0.9 MB."""
        specs = [spec("/outside/" + "x" * n) for n in (1, 16_000, 900_000)]
        self.describe(64, lambda i: specs[i % 3], 10**6)

    def flood(self, connections: int, begin: bytes, more: Iterator[bytes]) -> None:
        """Sends bytes on connections and never reads. One that is closed begins again."""
        path = self.target.removeprefix("unix:")
        lock = threading.Lock()

        def run(_: int) -> None:
            while time.monotonic() < self.end:
                with socket.socket(socket.AF_UNIX) as s:
                    s.settimeout(self.left())
                    try:
                        s.connect(path)
                        s.sendall(PREFACE + frame(4, 0, b"") + begin)
                        while time.monotonic() < self.end:
                            with lock:
                                piece = next(more)
                            s.sendall(piece)
                    except TimeoutError:
                        self.told["open to the end"] += 1
                    except OSError:
                        self.told["closed"] += 1
                        time.sleep(0.01)

        with ThreadPoolExecutor(connections) as pool:
            list(pool.map(run, range(connections)))

    def empty_data(self) -> None:
        """Empty data frames of a call without a token, on 16 connections."""
        begin = frame(1, 1, headers("Describe"), 4)
        self.flood(16, begin, itertools.repeat(frame(0, 1, b"") * 7000))

    def empty_settings(self) -> None:
        """Empty settings, whose answers are not read, on 16 connections."""
        self.flood(16, b"", itertools.repeat(frame(4, 0, b"") * 7000))

    def unread_refusals(self) -> None:
        """Calls without a token, whose refusals are not read, on 16 connections."""
        block = headers("Describe")
        calls = b"".join(frame(1, c, block, 5) for c in range(1, 20_000, 2))
        self.flood(16, b"", itertools.repeat(calls))

    def resets(self) -> None:
        """Reads of whole files that are reset at once, with a token, on 4 connections."""
        block = headers("Read", token("resets"))
        message = pb.ReadRequest(paths=[str(self.data / "train" / "0.tif")]).SerializeToString()
        message = struct.pack("!BI", 0, len(message)) + message
        calls = b"".join(
            frame(1, c, block, 4) + frame(0, c, message, 1) + frame(3, c, struct.pack("!I", 8))
            for c in range(1, 20_000, 2)
        )
        self.flood(4, b"", itertools.repeat(calls))

    def crumbs(self) -> None:
        """1,600 messages that come in frames of one byte, with a token, on 8 connections."""
        block, calls = headers("Describe", token("crumbs")), range(1, 400, 2)
        begin = b"".join(
            frame(1, c, block, 4) + frame(0, c, struct.pack("!BI", 0, 1 << 20)) for c in calls
        )
        more = b"".join(frame(0, c, b"x") for c in calls)
        self.flood(8, begin, itertools.repeat(more * 8))

    def pages(self) -> None:
        """Requests for metrics without a token, and for health, on 16 connections."""
        requests = b"".join(
            f"GET /{page} HTTP/1.1\r\nHost: x\r\n\r\n".encode()
            for page in ("metrics", "healthz", "readyz")
        )

        def run(_: int) -> None:
            while time.monotonic() < self.end:
                try:
                    with socket.create_connection(("127.0.0.1", PAGES), timeout=self.left()) as s:
                        while time.monotonic() < self.end:
                            s.sendall(requests * 20)
                            s.recv(1 << 20)
                except OSError:
                    self.told["closed"] += 1
                    time.sleep(0.01)

        with ThreadPoolExecutor(16) as pool:
            list(pool.map(run, range(16)))


PIPE = b"chaski\0\1"  # of a client that opens a pipe
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"  # of a client of HTTP/2


def frame(kind: int, call: int, payload: bytes, flags: int = 0) -> bytes:
    """A frame of HTTP/2."""
    return (
        struct.pack("!BHBBI", len(payload) >> 16, len(payload) & 0xFFFF, kind, flags, call)
        + payload
    )


def headers(method: str, bearer: str = "") -> bytes:
    """The headers of a call."""
    fields = {
        ":method": "POST",
        ":scheme": "http",
        ":path": f"/chaski.v1.Chaski/{method}",
        ":authority": "x",
        "content-type": "application/grpc",
        "te": "trailers",
    }
    if bearer:
        fields["authorization"] = f"Bearer {bearer}"
    return b"".join(  # literals that are not indexed
        b"\0" + bytes([len(k)]) + k.encode() + bytes([len(v)]) + v.encode()
        for k, v in fields.items()
    )


def unfinished_calls(s: socket.socket, calls: int) -> None:
    """Sends as much as the windows of the server allow, until it closes the connection."""
    block = headers("Describe", token("unfinished"))
    s.sendall(PREFACE + frame(4, 0, b""))
    windows = {0: 65535}
    for call in range(1, 2 * calls, 2):
        s.sendall(frame(1, call, block, 4) + frame(0, call, struct.pack("!BI", 0, 2 << 20)))
        windows[call] = 65530
        windows[0] -= 5
    left = dict.fromkeys(range(1, 2 * calls, 2), (2 << 20) - 1)
    with s.makefile("rb") as answers:
        while head := answers.read(9):
            high, low, kind, flags, call = struct.unpack("!BHBBI", head)
            payload = answers.read(high << 16 | low)
            if kind == 8 and call in windows:
                windows[call] += struct.unpack("!I", payload)[0]
            elif kind in (4, 6) and not flags & 1:
                s.sendall(frame(kind, 0, b"" if kind == 4 else payload, 1))
            for c in left:
                while (n := min(left[c], windows[c], windows[0], 16384)) > 0:
                    s.sendall(frame(0, c, bytes(n)))
                    left[c] -= n
                    windows[c] -= n
                    windows[0] -= n
    raise ConnectionResetError


ATTACKS = [
    *(
        "reads",
        "weights",
        "csv",
        "texts",
        "metadata",
        "describes",
        "mixture",
        "page",
        "glob",
        "greedy",
        "silent",
    ),
    *("seeds", "handles", "deaf", "unread", "refused", "streams", "idle", "audit"),
    *("unfinished", "half", "pipes", "deaf_pipes", "unfinished_pipes", "pipe_credits"),
]
# These can attack a sink as well, which is what --control compares with.
FLOODS = ["empty_data", "empty_settings", "unread_refusals", "pages", "resets", "crumbs"]
ATTACKS += FLOODS
FRAMES = {"empty_data", "empty_settings", "resets", "crumbs", "pipe_credits"}
PAGES = int(os.environ.get("SOAK_PAGES", "0"))  # port of --metrics


# ------------------------------------------------------------------------------------------
# Files that a command of the user meets

SECONDS = 60  # for a command that takes a second or two
MEMORY = 512  # MiB, of which the command itself takes 100


def meets(what: str, *command: str | Path) -> list[str]:
    """Runs a command, prints what it took, and returns what is wrong."""
    with tempfile.TemporaryFile() as said:
        begun = time.monotonic()
        process = subprocess.Popen([CHASKI, *command], stdout=said, stderr=said)
        timer = threading.Timer(SECONDS, process.kill)
        timer.start()
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        timer.cancel()
        took, memory, size = time.monotonic() - begun, used.ru_maxrss >> 10, said.tell()
    print(f"soak_hostile: {what}: {took:.1f} s, {memory} MiB, {size} bytes are said", flush=True)
    wrong = [f"{what}: killed after {took:.0f} s"] if process.returncode < 0 else []
    wrong += [f"{what}: {memory} MiB of memory"] if memory > MEMORY else []
    return wrong + ([f"{what}: {size} bytes are said"] if size > 1 << 20 else [])


def planted_cache(folder: Path) -> list[str]:
    """A folder for a cache with links, pipes and 3 GiB in the places of its files."""
    wrong = []
    victim, dangling = folder / "thesis.tex", folder / "autostart"
    victim.write_text("the only copy")
    plants: dict[str, Callable[[Path], Any]] = {
        "link": lambda p: p.symlink_to(victim),
        "dangling link": lambda p: p.symlink_to(dangling),
        "pipe": os.mkfifo,
        "3 GiB": lambda p: [p.touch(), os.truncate(p, 3 << 30)],
        "nothing": Path.touch,
    }
    for name, what in itertools.product(["chaski-cache.json", "used", "engines", "reads"], plants):
        cache = folder / f"{name} {what}"
        cache.mkdir(mode=0o777)
        if name != "chaski-cache.json":
            (cache / "chaski-cache.json").write_text('{"version": 1}')
        plants[what](cache / name)
        for verb in ("ls", "verify", "clear"):
            wrong += meets(f"{verb} of {cache.name}", "cache", verb, cache)
        if victim.read_text() != "the only copy" or dangling.exists():
            wrong.append(f"{cache.name}: a file of the victim has changed")
    return wrong


def forged_ledger(folder: Path) -> list[str]:
    """Ledgers that begin anew with each record, whose epochs are far away, and that are pipes."""
    head = {"ledger": 1, "run": "r", "data": "d", "samples": 10, "batch_size": 4, "steps": 3}
    head |= {"rank": 0, "world_size": 1, "epoch": 0, "step": 0}
    far: Iterator[dict[str, Any]] = iter([{"epoch": 2**40, "step": 0, "samples": 4}])
    anew = ({"epoch": e, "step": 0, "samples": 4, "restored": True} for e in range(1_000_000))
    rows = [{"became": "filled"}] * 60_000
    bad = ({"epoch": k // 3, "step": k % 3, "bad": rows} for k in range(30))
    wrong = []
    for what, records in {"far": far, "anew": anew, "bad": bad}.items():
        (folder / what).mkdir()
        checksum = 0
        with open(folder / what / "a.ledger", "wb") as f:
            for record in itertools.chain([head], records):
                line = json.dumps(record).encode()
                checksum = zlib.crc32(line, checksum)
                f.write(b"%08x %s\n" % (checksum, line))
        wrong += meets(f"a ledger: {what}", "ledger", "check", folder / what)
    (folder / "pipe").mkdir()
    os.mkfifo(folder / "pipe" / "a.ledger")
    return wrong + meets("a ledger: pipe", "ledger", "check", folder / "pipe")


FILES = {"planted_cache": planted_cache, "forged_ledger": forged_ledger}


class Sink:
    """A process of low priority that reads what attackers send, and does nothing else."""

    def __init__(self, folder: Path, data: Path) -> None:
        self.target, self.data = f"unix:{folder}/sink", data
        self.process = subprocess.Popen(
            [sys.executable, __file__, "--sink", self.target],
            stdout=subprocess.PIPE,
            preexec_fn=lambda: os.nice(10) and None,
        )
        assert self.process.stdout is not None
        self.pages = int(self.process.stdout.readline())


def sink(target: str) -> None:
    """Reads what connections bring, and answers a byte to requests for pages."""

    def drain(s: socket.socket, answer: bytes) -> None:
        with s:
            while s.recv(1 << 20):
                if answer:
                    s.sendall(answer)

    def serve(listener: socket.socket, answer: bytes) -> None:
        while True:
            threading.Thread(target=drain, args=(listener.accept()[0], answer), daemon=True).start()

    calls = socket.socket(socket.AF_UNIX)
    calls.bind(target.removeprefix("unix:"))
    pages = socket.create_server(("127.0.0.1", 0))
    calls.listen(1024)
    threading.Thread(target=serve, args=(calls, b""), daemon=True).start()
    print(pages.getsockname()[1], flush=True)
    serve(pages, b"x")


# ------------------------------------------------------------------------------------------
# The data


def sparse_tiff(path: Path, side: int = 16384, tile: int = 368) -> None:
    """A TIFF of uint16 all of whose tiles are absent: 16 KB of offsets and sizes."""
    tiles = (-(-side // tile)) ** 2
    tags = [
        (256, 4, 1, side), (257, 4, 1, side), (258, 3, 1, 16), (259, 3, 1, 1), (262, 3, 1, 1),
        (277, 3, 1, 1), (322, 3, 1, tile), (323, 3, 1, tile),
    ]  # fmt: skip
    at = 8 + 2 + 12 * (len(tags) + 2) + 4
    tags += [(324, 4, tiles, at), (325, 4, tiles, at + 4 * tiles)]
    entries = b"".join(struct.pack("<HHII", *t) for t in tags)
    head = struct.pack("<2sHIH", b"II", 42, 8, len(tags)) + entries + bytes(4)
    path.write_bytes(head + bytes(8 * tiles))


def texts(folder: Path, chip: Path) -> None:
    """Files of at most 64 MiB whose parts are many: each source is a file, or a folder of one."""
    mib = 1 << 20
    band = '<VRTRasterBand dataType="Byte" band="1">'
    source = "<SimpleSource><SourceFilename>x</SourceFilename></SimpleSource>"
    lut = "<ComplexSource><SourceFilename>x</SourceFilename><LUT>" + "0:0," * 65_000 + "1:1</LUT>"
    item = '{"type":"Feature","id":"a","assets":{"a":{"href":"x.tif"}},'
    beside = {
        "attributes": "<PAMDataset" + " a" * (7 * mib) + "/>",
        "values": "<PAMDataset" + " a=''" * (3 * mib) + "/>",
        "depth": "<PAMDataset>" + "<a>" * (5 * mib),
        "elements": "<PAMDataset>" + "<a/>" * (3 * mib) + "</PAMDataset>",
        "bands": "<PAMDataset>" + "<PAMRasterBand/>" * 900_000 + "</PAMDataset>",
        "entities": "<PAMDataset>" + "&amp;" * (3 * mib) + "</PAMDataset>",
        "text": "<PAMDataset><SRS>" + "x" * (15 * mib) + "</SRS></PAMDataset>",
        "comment": "<PAMDataset><!--" + "x" * (15 * mib),
        "names": '<PAMDataset><PAMRasterBand band="1"><CategoryNames>'
        + "<Category>x</Category>" * 700_000,
        "rows": '<PAMDataset><PAMRasterBand band="1"><GDALRasterAttributeTable>'
        + "<Row><F>1</F></Row>" * 800_000,
    }
    inside = {
        "sources": band + source * 900_000,
        "fewer sources": band + source * 149_000 + "</VRTRasterBand></VRTDataset>",
        "attributes": "<a" + " a='1'" * (9 * mib) + "/>",
        "elements": "<a/>" * (15 * mib),
        "depth": "<a>" * (20 * mib),
        "bands": "<VRTRasterBand/>" * (3 * mib),
        "tables": band + (lut + "</ComplexSource>") * 220,
        "options": band + "<SimpleSource><OpenOptions>" + "<OOI/>" * (10 * mib),
        "masks": band + "<MaskBand/>" * (5 * mib),
    }
    tables = {
        "commas.csv": "image" + "," * (16 * mib) + "\n",
        "commas below.csv": "image\nx" + "," * (16 * mib) + "\n",
        "columns.csv": ",".join(f"c{i}" for i in range(16_000))
        + "\n"
        + ("," * 15_999 + "\n") * 999,
        "quotes.csv": 'image\n"' + '""' * (7 * mib) + '"\n',
        "rows.csv": "image,b\n" + ",\n" * (8 * mib),
        "depth.json": "[" * (15 * mib),
        "members.json": "{" + ",".join(f'"{i:x}":1' for i in range(1_400_000)) + "}",
        "assets.json": item[:-3] + "".join(f',"{i:x}":{{}}' for i in range(1_000_000)) + "}}",
        "lists.json": item + '"properties":{"x":[' + "[]," * (4 * mib) + "[]]}}",
        "lines.jsonl": "".join(f'{{"image":"a.tif","k{i}":{i}}}\n' for i in range(500_000)),
        "values.jsonl": '{"image":1}\n' * mib,
    }
    for name, text in beside.items():
        (folder / f"pam {name}").mkdir(parents=True)
        shutil.copy(chip, folder / f"pam {name}" / "a.tif")
        (folder / f"pam {name}" / "a.tif.aux.xml").write_text(text)
    for name, text in inside.items():
        head = '<VRTDataset rasterXSize="64" rasterYSize="64">'
        (folder / f"{name}.vrt").write_text(head + text)
    for name, text in tables.items():
        (folder / name).write_text(text)


def metadata(folder: Path) -> None:
    """TIFFs of 16 by 16 pixels with as much GDAL_METADATA as is read."""
    folder.mkdir()
    item = "<Item name='a'>1</Item>"
    text = f"<GDALMetadata>{item * ((4 << 20) // len(item) - 2)}</GDALMetadata>".encode() + b"\0"
    at = 8 + 2 + 12 * 9 + 4
    tags = [
        *((256, 3, 1, 16), (257, 3, 1, 16), (258, 3, 1, 8), (259, 3, 1, 1), (262, 3, 1, 1)),
        *((273, 4, 1, at), (278, 3, 1, 16), (279, 4, 1, 256), (42112, 2, len(text), at + 256)),
    ]
    head = struct.pack("<2sHIH", b"II", 42, 8, len(tags))
    entries = b"".join(struct.pack("<HHII", *t) for t in tags)
    (folder / "0.tif").write_bytes(head + entries + bytes(4 + 256) + text)  # 256 pixels
    for i in range(1, 48):
        os.link(folder / "0.tif", folder / f"{i}.tif")


def make(data: Path, chips: Path) -> None:
    """Makes what the clients read."""
    import pyarrow
    import pyarrow.parquet

    (data / "train").mkdir()
    for i, chip in enumerate(sorted(chips.glob("*.tif"))[:64]):
        shutil.copy(chip, data / "train" / f"{i}.tif")
    (data / "many").mkdir()
    one = data / "train" / "0.tif"
    for i in range(20_000):
        os.link(one, data / "many" / f"{i}.tif")
    sparse_tiff(data / "sparse.tif")
    texts(data / "texts", data / "train" / "0.tif")
    metadata(data / "metadata")
    for name, size in (("zeros.bin", (2 << 30) - 1), ("zeros.csv", 3 << 30)):
        with open(data / name, "wb") as f:
            f.truncate(size)
    # Hexadecimal digits of random bytes are stored in half of their length: 80 KB.
    noise = random.Random(1).randbytes(80_000).hex()
    table = pyarrow.table({"image": [noise + "x" * ((64 << 20) - len(noise))]})  # spec() reads it
    pyarrow.parquet.write_table(
        table,
        data / "page.parquet",
        compression="zstd",
        use_dictionary=False,
        write_statistics=False,
    )
    shutil.copy(ROOT / "testdata" / "coast" / "coast.tacozip", data / "coast.tacozip")


# ------------------------------------------------------------------------------------------
# The server


class Group:
    """A memory cgroup of LIMIT, or nothing where none can be made."""

    def __init__(self) -> None:
        self.at: Path | None = None
        try:
            own = {
                f[1]: f[2]
                for f in (
                    line.split(":", 2) for line in Path("/proc/self/cgroup").read_text().split()
                )
            }
            if "memory" in own:
                base = Path("/sys/fs/cgroup/memory" + own["memory"])
                limit = "memory.limit_in_bytes"
            else:
                base, limit = Path("/sys/fs/cgroup" + own[""]), "memory.max"
            at = base / f"chaski-hostile-{os.getpid()}"
            at.mkdir()
            self.at = at
            (at / limit).write_text(str(LIMIT))
        except (OSError, KeyError) as e:
            self.close()
            print(f"soak_hostile: no memory cgroup here ({e}): only resident memory is compared")

    def add(self) -> None:
        """Moves this process into it."""
        if self.at is not None:
            (self.at / "cgroup.procs").write_text(str(os.getpid()))

    def close(self) -> None:
        """Removes it, once it is empty."""
        if self.at is not None:
            self.at.rmdir()
            self.at = None


class Server:
    """`chaski serve` in a group."""

    def __init__(self, folder: Path, data: Path, group: Group | None, files: int) -> None:
        folder.mkdir(exist_ok=True)
        self.target, self.data = f"unix:{folder}/socket", data
        self.log = open(folder / "log", "wb")
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.pages = free.getsockname()[1]
        with open(folder / "tokens", "w") as f:
            for client in ("modest", "quiet", *ATTACKS):
                digest = hashlib.sha256(token(client).encode()).hexdigest()
                f.write(json.dumps({"name": client, "sha256": digest}) + "\n")
        self.process = subprocess.Popen(
            [
                *(CHASKI, "serve", "--listen", self.target, "--root", str(data)),
                *("--memory-total", str(BUDGET), "--sql-time", SQL_TIME),
                *("--tokens", str(folder / "tokens"), "--metrics", f"127.0.0.1:{self.pages}"),
            ],
            stdout=subprocess.PIPE,
            stderr=self.log,
            preexec_fn=lambda: self.confine(group, files),
        )
        assert self.process.stdout is not None
        if b"listen" not in self.process.stdout.readline():
            sys.exit(f"soak_hostile: the server does not start: {(folder / 'log').read_text()}")

    @staticmethod
    def confine(group: Group | None, files: int) -> None:
        """Moves this process into a group, and limits its descriptors."""
        if group:
            group.add()
        if files:
            resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))

    def resident(self) -> int:
        """Resident memory in bytes, without pages of files."""
        return resident(self.process.pid)

    def cpu(self) -> float:
        """Seconds of processor time that it had; 0 when it is gone."""
        try:
            stat = Path(f"/proc/{self.process.pid}/stat").read_text()
        except OSError:
            return 0.0
        times = stat.rsplit(")", 1)[1].split()[11:13]
        return sum(map(int, times)) / os.sysconf("SC_CLK_TCK")


def resident(pid: int) -> int:
    """The resident memory of a process in bytes, without pages of files; 0 when it is gone."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    fields = dict(line.split(":", 1) for line in lines)
    return sum(int(fields.get(k, "0 kB").split()[0]) << 10 for k in ("RssAnon", "RssShmem"))


class Watch:
    """The largest resident memory of a server, looked at fifty times a second."""

    def __init__(self, server: Server) -> None:
        self.server, self.most, self.over = server, 0, threading.Event()
        threading.Thread(target=self.run, daemon=True).start()

    def run(self) -> None:
        """Looks until close."""
        while not self.over.wait(0.02):
            self.most = max(self.most, self.server.resident())

    def reset(self) -> None:
        """Begins a new maximum."""
        self.most = self.server.resident()


class Modest:
    """The modest client, as a process of its own."""

    def __init__(self, server: Server, data: Path, step: float, ahead: int) -> None:
        self.server = server
        self.process = start("--modest", server, data, 0, f"--step={step}", f"--ahead={ahead}")
        self.batches: list[tuple[float, float]] = []
        threading.Thread(target=self.read, daemon=True).start()

    def read(self) -> None:
        """Takes what the client prints."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            at, wait = line.split()
            self.batches.append((float(at), float(wait)))

    def begin(self) -> None:
        """Waits until it trains: a command of 150 MB takes a while to start on a busy machine."""
        ends = time.monotonic() + 60
        while not self.batches and time.monotonic() < ends:
            time.sleep(0.1)
        time.sleep(3)

    def during(self, first: float, last: float) -> list[float]:
        """How long it waited for each of its batches between two moments."""
        return sorted(w for at, w in self.batches if first <= at < last)


class Got(NamedTuple):
    """What the modest client got in some time, or in several turns of it."""

    waits: list[float]  # for each batch, in seconds, and for one that has not come
    batches: int
    seconds: float
    cpu: float  # seconds of processor time that the server had

    def __add__(self, other: Got) -> Got:  # type: ignore[override]
        """Both together."""
        return Got(
            self.waits + other.waits,
            self.batches + other.batches,
            self.seconds + other.seconds,
            self.cpu + other.cpu,
        )

    @property
    def rate(self) -> float:
        """Batches a second."""
        return self.batches / self.seconds

    @property
    def by_cpu(self) -> float:
        """Batches a second of processor time of the server."""
        return self.batches / max(self.cpu, 1e-3)

    def wait(self, part: float) -> float:
        """The wait that a part of the batches did not exceed, in seconds."""
        return max(1e-3, sorted(self.waits)[int(part * (len(self.waits) - 1))])


NOTHING = Got([], 0, 0.0, 0.0)


def start(
    what: str, server: Server | Sink, data: Path, seconds: float, *more: str
) -> subprocess.Popen[bytes]:
    """Starts this script as a client."""
    command = [sys.executable, __file__, what, server.target, "--data", data]
    return subprocess.Popen(
        [*command, "--time", str(seconds), *more],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=os.environ | {"SOAK_PAGES": str(server.pages)},
        # Attackers shall wear out the server and not this machine's processors.
        preexec_fn=None if what == "--modest" else lambda: os.nice(10) and None,
    )


def stop(processes: list[subprocess.Popen[bytes]]) -> None:
    """Kills clients."""
    for p in processes:
        p.send_signal(signal.SIGKILL)
    for p in processes:
        p.wait()


def measure(modest: Modest, seconds: float) -> Got:
    """Measures the modest client from now on."""
    first, before = time.monotonic(), modest.server.cpu()
    time.sleep(seconds)
    last, after = time.monotonic(), modest.server.cpu()
    waits = modest.during(first, last)
    # It waits at the end, too, for a batch that has not come.
    latest = max((at for at, _ in modest.batches), default=first)
    open_wait = [last - latest] if last - latest > max(waits, default=0) else []
    return Got(waits + open_wait, len(waits), last - first, after - before)


def recovered(modest: Modest, since: float, rate: float) -> float:
    """How long it took from a moment until it got a rate for a second, in seconds; inf if never."""
    last = time.monotonic() - 1
    for k in range(int(10 * (last - since))):
        if len(modest.during(since + k / 10, since + k / 10 + 1)) >= rate:
            return k / 10
    return float("inf")


def attacked(
    names: list[str], seconds: float, modest: Modest, target: Server | Sink
) -> tuple[Got, Got, float, list[str]]:
    """Runs attacks on a server at once for a turn.

    It returns what the modest client got beside them and afterwards, after how many seconds it had
    its rate again, and what the attackers were told.
    """
    rate = measure(modest, 2).rate
    attackers = [start(f"--attack={n}", target, target.data, seconds) for n in names]
    for p in attackers:  # they import gRPC, which takes a busy machine half a minute for all
        assert p.stdout is not None
        p.stdout.readline()
    for p in attackers:
        assert p.stdin is not None
        p.stdin.write(b"go\n")
        p.stdin.flush()
    beside = measure(modest, seconds)
    told = []
    ends = time.monotonic() + 15
    for n, p in zip(names, attackers, strict=True):
        try:
            out = p.communicate(timeout=max(0.1, ends - time.monotonic()))[0].decode().strip()
        except subprocess.TimeoutExpired:
            out = "does not end"
        told.append(f"{n}: {out or 'nothing'}")
    stop(attackers)
    gone = time.monotonic()
    time.sleep(2)
    after = measure(modest, AFTER)
    return beside, after, recovered(modest, gone, BACK * rate), told


def besiege(
    names: list[str],
    seconds: float,
    turns: int,
    modest: Modest,
    target: Server,
    watch: Watch,
    o: Any,
    control: Sink | None,
) -> list[str]:
    """Runs attacks at once, in turns, prints how it went, and returns what is wrong.

    With a control, attacks on that one take the place of the modest client alone.
    """
    server = modest.server
    before, beside, after = NOTHING, NOTHING, NOTHING
    backs: list[float] = []
    told: list[str] = []
    load = os.getloadavg()[0]
    watch.reset()
    for _ in range(turns):
        if control:
            before += attacked(names, seconds / turns, modest, control)[0]
        else:
            before += measure(modest, 6)
        got, later, back, told = attacked(names, seconds / turns, modest, target)
        beside, after = beside + got, after + later
        backs.append(back)
        if server.process.poll() is not None:
            break
    if before.batches == 0:
        sys.exit("soak_hostile: the modest client gets nothing")
    clients = 1 if control else len(names) + 1
    shares = (clients * beside.rate / before.rate, clients * beside.by_cpu / before.by_cpu)
    again = (after.rate / before.rate, after.by_cpu / before.by_cpu)
    times = beside.wait(0.99) / before.wait(0.99)
    what = names[0] if len(names) == 1 else "all together"
    print(
        f"soak_hostile: {what:12} share {shares[0]:5.2f}, by cpu {shares[1]:5.2f}  "
        f"p50 {1e3 * before.wait(0.5):.0f}, {1e3 * beside.wait(0.5):.0f} ms  "
        f"p99 {1e3 * before.wait(0.99):.0f}, {1e3 * beside.wait(0.99):.0f} ms "
        f"({times:.1f} x), at most {beside.wait(1):.1f} s  "
        f"back {again[0]:4.2f}, by cpu {again[1]:4.2f}, after {statistics.median(backs):.1f} s  "
        f"cpu {', '.join(f'{g.cpu / g.seconds:.2f}' for g in (before, beside, after))}  "
        f"load {load:.0f} to {os.getloadavg()[0]:.0f}  "
        f"memory {watch.most >> 20:4} MiB  ({'; '.join(told)})",
        flush=True,
    )
    by_cpu = o.busy and o.step == 0
    wrong = []
    if server.process.poll() is not None:
        wrong.append(f"{what}: the server is gone: {server.process.returncode}")
    if watch.most >= LIMIT:
        wrong.append(f"{what}: {watch.most >> 20} MiB of memory")
    wrong += [f"{what}: {t}" for t in told if t.endswith("does not end")]
    frames = FRAMES.intersection(names)
    if shares[by_cpu] < SHARE and not frames:
        wrong.append(f"{what}: the modest client has {shares[by_cpu]:.2f} of its share")
    if again[by_cpu] < BACK:
        wrong.append(f"{what}: afterwards the modest client has {again[by_cpu]:.2f} of before")
    if not o.busy and times > WAIT and not frames:
        wrong.append(f"{what}: the modest client waits {times:.1f} times as long")
    if o.busy and beside.wait(1) > STALL:
        wrong.append(f"{what}: the modest client waits for {beside.wait(1):.1f} s")
    return wrong


def main() -> int:
    """Runs a client, or the soak."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    names = ["quiet", *ATTACKS, *FILES]
    parser.add_argument("--only", nargs="*", choices=names, default=[*ATTACKS, *FILES])
    parser.add_argument("--time", type=float, default=20.0)
    parser.add_argument("--together", type=float, default=600.0)
    parser.add_argument("--turns", type=int, default=10)
    parser.add_argument("--busy", action="store_true")
    parser.add_argument("--apart", action="store_true")
    parser.add_argument("--control", action="store_true")
    parser.add_argument("--sink", metavar="TARGET", help=argparse.SUPPRESS)
    parser.add_argument("--step", type=float, default=0.1)
    parser.add_argument("--ahead", type=int, default=4)
    parser.add_argument("--files", type=int, default=0)
    parser.add_argument("--data", type=Path, default=ROOT / ".demo" / "train" / "images")
    parser.add_argument("--modest", metavar="TARGET", help=argparse.SUPPRESS)
    parser.add_argument("--attack", choices=["quiet", *ATTACKS], help=argparse.SUPPRESS)
    parser.add_argument("target", nargs="?", help=argparse.SUPPRESS)
    o = parser.parse_args()
    if o.sink:
        sink(o.sink)
    Authenticated.name = o.attack or "modest"
    if o.modest:
        modest(o.modest, o.data, o.step, o.ahead)
        return 0
    if o.attack:
        print("ready", flush=True)
        sys.stdin.readline()
        attack = Attack(o.target, o.data, o.time)
        # A reader of 512 MiB may be in the midst of a message when its call is over.
        threading.Timer(o.time + 5, attack.leave).start()
        getattr(attack, o.attack)()
        attack.leave()
    wrong: list[str] = []
    for name, met in FILES.items():
        if name in o.only:
            with tempfile.TemporaryDirectory(prefix="chaski-soak-hostile-") as folder:
                wrong += met(Path(folder))
    o.only = [n for n in o.only if n not in FILES]
    if o.only:
        wrong += attack_a_server(o)
    for w in wrong:
        print(f"soak_hostile: FAILED: {w}")
    if not wrong:
        print("soak_hostile: PASSED")
    return 1 if wrong else 0


def attack_a_server(o: Any) -> list[str]:
    """Runs the attacks on a server, and returns what is wrong."""
    wrong: list[str] = []
    with tempfile.TemporaryDirectory(prefix="chaski-soak-hostile-") as name:
        data = Path(name) / "data"
        data.mkdir()
        make(data, o.data)
        group = Group()
        server = Server(Path(name), data, group, o.files)
        client = Modest(server, data, o.step, o.ahead)
        target = Server(Path(name) / "second", data, None, o.files) if o.apart else server
        control = Sink(Path(name), data) if o.control else None
        try:
            watch = Watch(server)
            client.begin()
            for n in o.only if o.time > 0 else []:
                wrong += besiege([n], o.time, 1, client, target, watch, o, control)
                if server.process.poll() is not None:
                    break
            if o.together > 0 and len(o.only) > 1 and server.process.poll() is None:
                wrong += besiege(o.only, o.together, o.turns, client, target, watch, o, None)
        finally:
            stop([client.process, server.process, target.process])
            if control:
                stop([control.process])
            group.close()
    return [] if o.apart else wrong


if __name__ == "__main__":
    sys.exit(main())
