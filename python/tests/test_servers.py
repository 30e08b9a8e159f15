"""One client and several servers: one order, while servers die, drain, stall and return."""

from __future__ import annotations

import hashlib
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import grpc
import pytest
from conftest import nonempty
from helpers import FakeEngine, image_batch, placed, serve
from patience import logged, patiently
from reference.sampling import group_of

import chaski
from chaski._proto import chaski_pb2 as pb
from chaski._rpc import addresses
from chaski.order import Ticket

SCENE = Path(__file__).resolve().parents[2] / "testdata" / "demo" / "coast.tif"
STEPS = 40


@contextmanager
def running(*engines: FakeEngine) -> Iterator[tuple[list, list[str]]]:
    servers, targets = [], []
    for e in engines:
        server, port = serve(e)
        servers.append(server)
        targets.append(f"127.0.0.1:{port}")
    try:
        yield servers, targets
    finally:
        for s in servers:
            s.stop(0)


def engines(n: int, **options) -> list[FakeEngine]:
    return [FakeEngine(samples=4 * STEPS, **options) for _ in range(n)]


def connect(targets, **options) -> chaski.Loader:
    given = {"batch_size": 4, "timeout": 300, "prefetch": 6, **options}
    return chaski.connect(targets, "d", **placed(**given))


def firsts(batches) -> list[int]:
    return [int(b["position"][0]) for b in batches]


ALL = list(range(0, 4 * STEPS, 4))


def test_work_is_shared_and_the_order_kept():
    three = engines(3)
    rng = random.Random(3)

    def answer(t, e):
        time.sleep(rng.uniform(0, 0.01))
        return image_batch(t, e.samples)

    for e in three:
        e.answer = answer
    with running(*three) as (_, targets), connect(",".join(targets)) as loader:
        assert firsts(loader) == ALL
    asked = [[t.first for t in e.tickets] for e in three]
    assert sorted(sum(asked, [])) == ALL, "every ticket was asked once"
    # Of six tickets that are on their way, a server that waits for a processor has one or two.
    assert min(map(len, asked)) >= STEPS // 10


@pytest.mark.parametrize("mixed", [False, True])
def test_groups_stay_together(mixed):
    """Tickets of one pool go to one server, those of a mixture by its leading dataset."""
    n = 4 * STEPS
    told = pb.Groups(dataset=1, pool=7, levels=[pb.Groups.Level(drawn=n // 2, samples=50)])
    if not mixed:
        told = pb.Groups(pool=16)
    levels = tuple((v.drawn, v.samples) for v in told.levels)
    three = engines(3, groups=told)
    with running(*three) as (_, targets), connect(targets) as loader:
        assert firsts(loader) == firsts(loader) == ALL
    where: dict[int, set[int]] = {}
    for i, e in enumerate(three):
        for t in e.tickets:
            ticket = Ticket(t.epoch, t.first, t.count, 0, 1)
            group = group_of(told.pool, told.dataset, n, levels, ticket)
            where.setdefault(group, set()).add(i)
    assert len(where) >= 20 and {len(w) for w in where.values()} == {1}
    assert set.union(*where.values()) == {0, 1, 2}


@pytest.mark.parametrize("world", [1, 3])
def test_all_servers_work_on_groups(world):
    """Three pools are open at a time, one on each server, with the smallest prefetch."""
    three = engines(3, groups=pb.Groups(pool=16))
    together = threading.Barrier(3)

    def answer(t, e):
        # Of the epoch that is asked for ahead only one pool may come before the loader closes.
        if t.row_start == 0 and t.epoch < 2 and t.first in range(0, 48, 16):
            together.wait(300)  # breaks, and the stream with it, unless all three come
        return image_batch(t, e.samples)

    for e in three:
        e.answer = answer
    with running(*three) as (_, targets):
        for rank in range(world):
            options = {"rank": rank, "world_size": world, "prefetch": 1}
            with connect(targets, **options) as loader:
                assert len(list(loader)) == len(list(loader)) == STEPS
    where = [{t.first // 16 for t in e.tickets if t.epoch == 0} for e in three]
    assert sorted(sum(map(list, where), [])) == list(range(10)), "a pool is at one server"
    assert max(map(len, where)) - min(map(len, where)) <= 1, "and every server has its share"


def test_groups_within_a_bound_of_bytes(caplog):
    """Open tickets take at most `prefetch_bytes`, and no server owes more than before."""
    three = engines(3, groups=pb.Groups(pool=16))
    with running(*three) as (_, targets), caplog.at_level("INFO", "chaski"):
        before = 0
        for batches, told in ((0, True), (7, True), (10, False)):
            caplog.clear()
            options = {"prefetch": 2, "prefetch_bytes": batches * 4 * (4 + 17)}
            with connect(targets, **options) as loader:
                for given, _ in nonempty(enumerate(loader)):
                    ahead = sum(len(e.tickets) for e in three) - before - given
                    assert ahead <= max(batches, 2) + 2, "one is held, one is in this process"
                before += STEPS
            assert ("prefetch_bytes" in caplog.text) == told
    with pytest.raises(chaski.SpecError, match="prefetch_bytes"):
        connect(targets, prefetch_bytes=-1)


def test_a_server_dies_with_a_whole_group():
    """Its tickets move to another server, which has them before it continues with later groups."""
    three = engines(3, groups=pb.Groups(pool=40))
    rest = list(range(8, 40, 4))
    met, gone = threading.Event(), threading.Event()
    died: list[FakeEngine] = []

    def answer(t, e):
        if t.first in rest and not gone.is_set():  # the server of the group gives two batches of it
            died.append(e)
            met.set()
            return None
        return image_batch(t, e.samples)

    for e in three:
        e.answer = answer
    with (
        running(*three) as (servers, targets),
        connect(targets, prefetch=2) as loader,
    ):
        seen = []
        for batch in loader:
            seen += firsts([batch])
            if len(seen) == 2:
                assert met.wait(300)
                gone.set()
                servers[three.index(died[0])].stop(0)
        assert seen == ALL
    asked = [[t.first for t in e.tickets] for e in three if e is not died[0]]
    (heir,) = (tickets for tickets in asked if rest[0] in tickets)
    at = heir.index(rest[0])
    assert heir[at : at + len(rest)] == rest, "later groups did not come before it"


def test_groups_that_make_no_sense():
    for told in (pb.Groups(), pb.Groups(pool=4, levels=[pb.Groups.Level(drawn=9999, samples=1)])):
        with (
            running(*engines(1, groups=told)) as (_, targets),
            pytest.raises(chaski.PayloadError, match="groups"),
        ):
            connect(targets)


@pytest.mark.parametrize("stop", [0, 1, 17, STEPS - 2])
def test_a_server_dies(stop):
    three = engines(3)
    with running(*three) as (servers, targets), connect(targets) as loader:
        seen = []
        for batch in loader:
            seen += firsts([batch])
            if len(seen) == stop + 1:
                servers[1].stop(0)
        assert seen == ALL
        assert firsts(loader) == ALL, "and the next epoch, with one that is not there"


def test_a_server_dies_and_comes_back():
    with running(*engines(2)) as (servers, targets), connect(targets) as loader:
        port = int(targets[0].rpartition(":")[2])
        seen, again = [], []
        for batch in loader:
            seen += firsts([batch])
            if len(seen) == 5:
                servers[0].stop(0).wait()
                again = [FakeEngine(samples=4 * STEPS)]
                servers[0] = serve(again[0], port)[0]
        assert seen == ALL
        end = time.monotonic() + 300
        while not again[0].tickets:
            assert time.monotonic() < end, "it is not used again"
            assert firsts(loader) == ALL


def test_one_is_not_there_from_the_beginning():
    (one,) = engines(1)
    with running(*engines(1)) as (servers, gone):
        servers[0].stop(0).wait()
        with running(one) as (_, targets), connect(gone + targets) as loader:
            assert firsts(loader) == ALL
            assert loader.sample(3)["position"] == 3
    with pytest.raises(chaski.UnavailableError, match=gone[0]):
        connect(gone)


def test_all_die():
    two = engines(2)
    with running(*two) as (servers, targets), connect(targets, patience=0.3) as loader:
        it = iter(loader)
        next(it)
        for s in servers:
            s.stop(0)
        with pytest.raises(chaski.UnavailableError, match=r"127\.0\.0\.1:\d+"):
            list(it)


def sick(kind: str, message: str):
    """Refuses every ticket, by a fault that is the server's own."""
    return lambda t, e: pb.Fault(kind=kind, message=message)


@pytest.mark.parametrize("kind", ["unavailable", "internal", "access"])
def test_a_sick_server_rests(kind):
    """The others have its requests, and it is asked again now and then."""
    three = engines(3)
    three[1].answer = sick(kind, "403 ExpiredToken")
    with running(*three) as (_, targets), connect(targets) as loader:
        assert firsts(loader) == firsts(loader) == ALL


def test_a_broken_sample_is_asked_of_one_server():
    two = engines(2)

    def answer(t, e):
        if t.first != 48:
            return image_batch(t, e.samples)
        return pb.Fault(kind="corrupt", file="a.tif", message="a.tif: tile 3: corrupt")

    for e in two:
        e.answer = answer
    with running(*two) as (_, targets), connect(targets) as loader:
        with pytest.raises(chaski.CorruptError, match="a.tif"):
            list(loader)
    assert sum(t.first == 48 for e in two for t in e.tickets) == 1


@pytest.mark.parametrize("servers", [1, 2])
def test_all_refuse_for_a_while(servers, caplog):
    """The loop waits, the log says so once, and the order goes on."""
    all_ = engines(servers)
    end = [0.0]

    def answer(t, e):
        if t.first == 80 and not end[0]:
            end[0] = time.monotonic() + 1
        if end[0] and time.monotonic() < end[0]:
            return pb.Fault(kind="unavailable", message="s3://b/c: 403 ExpiredToken")
        return image_batch(t, e.samples)

    for e in all_:
        e.answer = answer
    with caplog.at_level("WARNING", "chaski"):
        with running(*all_) as (_, targets), connect(targets) as loader:
            assert firsts(loader) == ALL
        told = logged(caplog, "no server answers")
    assert told.count("no server answers") == 1 and "ExpiredToken" in told


@pytest.mark.parametrize("servers", [1, 2])
def test_all_refuse_for_longer_than_patience(servers):
    all_ = engines(servers)
    for e in all_:
        e.answer = sick("unavailable", "s3://b/c: 403 ExpiredToken")
    with running(*all_) as (_, targets), connect(targets, patience=0.5) as loader:
        start = time.monotonic()
        with pytest.raises(chaski.UnavailableError, match="403 ExpiredToken") as e:
            list(loader)
        assert time.monotonic() - start >= 0.5
        assert servers == 1 or all(t in str(e.value) for t in targets)


def test_all_refuse_for_good():
    """What waiting does not change is said at once, by all servers."""
    two = engines(2)
    for e in two:
        e.answer = sick("access", "the token is not known")
    with running(*two) as (_, targets), connect(targets, patience=3600) as loader:
        with pytest.raises(chaski.AccessError) as e:
            list(loader)
    assert all(f"{t}: the token is not known" in str(e.value) for t in targets)


def stalls(first: int):
    """Answers until it is asked for a position, and never again after that."""
    silent = []

    def answer(t, e):
        if t.first >= first or silent:
            silent.append(t)
            return None
        return image_batch(t, e.samples)

    return answer


def test_a_stalled_server_is_given_up_after_the_timeout():
    def run(timeout: float) -> None:
        two = engines(2)
        two[0].answer = stalls(80)
        with running(*two) as (_, targets):
            with connect(targets, timeout=timeout) as loader:
                assert firsts(loader) == ALL

    patiently(run, 1)


def test_one_is_stuck_from_the_beginning():
    one = engines(1)
    with socket.socket() as stuck, running(*one) as (_, targets):
        stuck.bind(("127.0.0.1", 0))
        stuck.listen(8)
        targets = [f"127.0.0.1:{stuck.getsockname()[1]}", *targets]
        start = time.monotonic()
        with connect(targets, timeout=3600) as loader:
            assert time.monotonic() - start < 500, "long before the timeout"
            assert firsts(loader) == ALL
            assert loader.sample(3)
    assert time.monotonic() - start < 500


def test_all_are_stuck_from_the_beginning():
    with socket.socket() as stuck:
        stuck.bind(("127.0.0.1", 0))
        stuck.listen(8)
        port = stuck.getsockname()[1]
        with pytest.raises(chaski.Error, match=f"{port}: "):
            connect([f"127.0.0.1:{port}", f"localhost:{port}"], timeout=0.3)


def test_all_stall():
    def run(timeout: float) -> None:
        two = engines(2)
        for e in two:
            e.answer = stalls(8)
        patience = {"timeout": timeout, "patience": timeout}
        with running(*two) as (_, targets), connect(targets, **patience) as loader:
            with pytest.raises(chaski.Error, match=r"127\.0\.0\.1:\d+: no answer for .*s.*ticket"):
                list(loader)

    patiently(run, 1)


@pytest.mark.parametrize("staggered", [0.0, 0.3])
def test_all_stall_for_no_longer_than_patience(staggered):
    """Servers that describe the spec and then never answer end the run, despite reconnections."""

    def run(timeout: float) -> None:
        def later(t, e):
            if t.first >= 8:
                return None if t.first >= 16 else time.sleep(staggered * timeout)
            return image_batch(t, e.samples)

        two = engines(2)
        two[0].answer, two[1].answer = stalls(8), later
        with running(*two) as (_, targets):
            with connect(targets, timeout=timeout, patience=timeout) as loader:
                start = time.monotonic()
                with pytest.raises(chaski.DeadlineError, match=r":\d+: no answer for .*s.*ticket"):
                    list(loader)
                took = time.monotonic() - start
                assert 2 * timeout <= took < 80 * timeout, "not a hundred times the timeout"

    patiently(run, 1.5)


def test_one_stalls_while_the_other_is_away():
    """A server that comes back takes over from one that is silent, within `patience`."""

    def run(timeout: float) -> None:
        two = engines(2)
        two[0].answer = stalls(8)
        again = engines(1)[0]
        with (
            running(*two) as (servers, targets),
            connect(targets, timeout=timeout) as loader,
        ):
            port = int(targets[1].rpartition(":")[2])
            servers[1].stop(0).wait()
            over = threading.Event()

            def back() -> None:
                while two[0].streams < 2 and not over.wait(0.01):
                    pass
                servers.append(serve(again, port)[0])

            thread = threading.Thread(target=back)
            thread.start()
            try:
                assert firsts(loader) == ALL
            finally:
                over.set()
                thread.join()
        assert two[0].streams >= 2 and again.tickets

    patiently(run, 2)


def test_a_slow_user_is_no_slow_server():
    def run(timeout: float) -> None:
        two = engines(2)
        with running(*two) as (_, targets), connect(targets, timeout=timeout) as loader:
            for i, _ in enumerate(loader):
                if i in (12, 20):
                    time.sleep(1.75 * timeout)
        assert sorted(t.first for e in two for t in e.tickets) == ALL, "asked twice"
        assert [e.streams for e in two] == [1, 1]

    patiently(run, 0.4)


def test_a_fault_comes_when_its_step_does():
    two = engines(2)

    def answer(t, e):
        if t.first == 48:
            return pb.Fault(kind="corrupt", file="a.tif", message="a.tif: tile 3: corrupt")
        time.sleep(0.01)
        return image_batch(t, e.samples)

    for e in two:
        e.answer = answer
    with running(*two) as (_, targets), connect(targets) as loader:
        seen = []
        with pytest.raises(chaski.CorruptError, match="a.tif"):
            for b in loader:
                seen += firsts([b])
        assert seen == ALL[:12]
        assert loader.state_dict()["samples"] == 48


def test_other_data():
    one, other = FakeEngine(hash="cafe"), FakeEngine(hash="babe")
    with running(one, other) as (_, targets):
        end = time.monotonic() + 300
        with pytest.raises(chaski.StateError, match=f"{targets[1]}: the server sees other data"):
            while time.monotonic() < end:  # of one that is slow to describe it, a run hears later
                connect(targets).close()


def test_other_data_after_a_restart():
    with running(*engines(2)) as (servers, targets), connect(targets) as loader:
        end = time.monotonic() + 300
        with pytest.raises(chaski.StateError, match="other data"):
            while time.monotonic() < end:
                for i, _ in enumerate(loader):
                    if loader.epoch == 0 and i == 3:
                        servers[0].stop(0).wait()
                        other = FakeEngine(samples=4 * STEPS, hash="babe")
                        servers[0] = serve(other, int(targets[0].rpartition(":")[2]))[0]


def test_deaths_at_random():
    """One server at a time dies at a random moment and comes back, and the order is the same."""
    rng = random.Random(11)
    three = engines(3)
    for e in three:
        e.answer = lambda t, e: time.sleep(0.002) or image_batch(t, e.samples)
    with running(*three) as (servers, targets), connect(targets) as loader:
        over = threading.Event()

        def kill() -> None:
            while not over.wait(rng.uniform(0.02, 0.1)):
                k = rng.randrange(3)
                servers[k].stop(0).wait()
                servers[k] = serve(three[k], int(targets[k].rpartition(":")[2]))[0]

        killer = threading.Thread(target=kill)
        killer.start()
        try:
            for _ in range(5):
                assert firsts(loader) == ALL
        finally:
            over.set()
            killer.join()
    assert not [t for t in threading.enumerate() if t.name == "chaski-receive"]


def test_addresses():
    assert addresses("a:1, unix:/x ,a:1") == ["a:1", "unix:/x"]
    assert addresses(["b:2", "a:1"]) == ["b:2", "a:1"]
    assert addresses("unix-abstract:99999,unix:x") == ["unix-abstract:99999", "unix:x"]
    assert addresses("dns:localhost:80") == ["dns:localhost:80"]
    for wrong in ("", ",", "a:1,,b:2", [], ["a:1", ""], "dns:host", "dns::80", "host", "a:65536"):
        with pytest.raises(chaski.SpecError):
            addresses(wrong)
    with pytest.raises(chaski.UnavailableError, match="dns:no.such.host.invalid:80"):
        connect("dns:no.such.host.invalid:80")


@pytest.mark.skipif(shutil.which("openssl") is None, reason="makes a certificate with openssl")
def test_certificates_of_names(tmp_path):
    """The addresses of a name have the name's certificate."""
    key, cert = tmp_path / "key.pem", tmp_path / "cert.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"]
        + ["-keyout", key, "-out", cert, "-subj", "/CN=localhost"]
        + ["-addext", "subjectAltName=DNS:localhost"],
        check=True,
        capture_output=True,
    )
    with ThreadPoolExecutor(1) as pool:
        server = grpc.server(pool)
        pair = (key.read_bytes(), cert.read_bytes())
        port = server.add_secure_port("127.0.0.1:0", grpc.ssl_server_credentials([pair]))
        server.start()
        trust = grpc.ssl_channel_credentials(cert.read_bytes())
        options = {
            "batch_size": 1,
            "engine": chaski.Engine(credentials=trust, timeout=300),
        }
        try:
            for name in ("localhost", "dns:localhost"):
                with pytest.raises(chaski.UnsupportedError, match="Method not found"):
                    chaski.connect(f"{name}:{port}", "chips", **options)
            with pytest.raises(chaski.UnavailableError):  # of which the certificate is not
                chaski.connect(f"127.0.0.1:{port}", "chips", **options)
        finally:
            server.stop(0).wait()


def real(binary: str, folder: Path, k: int) -> tuple[subprocess.Popen[str], str]:
    args = [binary, "serve", "--listen", f"unix:{folder / f's{k}'}", "--root", str(SCENE.parent)]
    p = subprocess.Popen(args, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert p.stdout is not None
    return p, json.loads(p.stdout.readline())["listen"]


def digests(loader: chaski.Loader, at: dict[int, Callable[[], None]] | None = None) -> list[str]:
    out = []
    for batch in loader:
        out.append(hashlib.sha256(batch["image"].tobytes()).hexdigest())
        (at or {}).get(len(out), lambda: None)()
    return out


@pytest.mark.parametrize("transport", ["shm", "grpc"])
@pytest.mark.timeout(1200)
def test_real_servers_die_and_stall(binary: str, tmp_path: Path, transport) -> None:
    """With one of three engines killed and one stopped, batches equal those of one engine."""
    if transport == "shm" and not sys.platform.startswith("linux"):
        pytest.skip("no shared memory here")
    options = {
        "batch_size": 6,
        "window": chaski.RandomWindow((48, 32), 400),
        "seed": 7,
        "engine": chaski.Engine(prefetch=6, transport=transport, timeout=10),
        "normalize": chaski.Normalize([1e-3], [-1.0]),
    }
    processes = []
    try:
        for k in range(3):
            processes.append(real(binary, tmp_path, k))
        targets = [t for _, t in processes]
        with chaski.connect(targets[0], SCENE, **options) as loader:
            want = digests(loader)
        with chaski.connect(targets, SCENE, **options) as loader:
            at = {
                20: processes[0][0].kill,
                40: lambda: processes[1][0].send_signal(signal.SIGSTOP),
            }
            assert digests(loader, at) == want
    finally:
        for p, _ in nonempty(processes):
            p.kill()
            p.wait()
            assert p.stdout is not None
            p.stdout.close()


def test_top_shows_who_answers(binary):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        silent = f"127.0.0.1:{probe.getsockname()[1]}"
    line = [binary, "serve", "--listen=127.0.0.1:0", "--stop-on-eof", f"--root={SCENE.parent}"]
    with subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdin and server.stdout
        at = json.loads(server.stdout.readline())

        def top(*targets: str) -> subprocess.CompletedProcess[str]:
            command = [binary, "top", "--once", *targets]
            known = {**os.environ, "CHASKI_TOKEN": at["token"]}
            return subprocess.run(command, capture_output=True, text=True, env=known, check=False)

        both, none = top(silent, at["listen"]), top(silent)
        server.stdin.close()
    assert both.returncode == 0, both.stderr
    assert f"no answer: chaski at {silent}" in both.stdout
    assert none.returncode != 0 and silent in none.stderr
