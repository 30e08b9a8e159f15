"""Runs hosts of a cluster in network namespaces, and judges what they get and what the plan says.

    sudo tools/soak_fleet.py [--only SCENARIO ...] [--hosts 4] [--chips 1024] [--store SLOWSTORE]

Every host is a namespace with an address of its own on one bridge, as is the store. Each pixel of
a chip is its number, so the order is judged by what arrives: each trainer has to get the rows of
its rank, each once, in the order of a run in one process.

    plan     hosts read chips, blocks and windows from a slow store; samples a second, stalls,
             requests and bytes beside those of `chaski plan --fleet`
    serve    two servers read chips from a slow store, a third one joins, the first one is cut;
             the same figures, of each part, beside those of `chaski plan --fleet --servers`
    cut      of three servers one is killed, one falls silent, and the third goes on
    refuse   all servers are away for a while, and come back
    join     a server joins by the name that trainers look up, and the first one is killed
    move     each server in turn is replaced by one at another address
    world    two trainers stop in the middle, and three go on from their state

Needs root on Linux, the Python environment of `make env`, and tools/slowstore, built. It changes
nothing but namespaces, a bridge and files below /etc/netns, all with names that begin with
"chaski-", and removes them at the end. Exit status 1 says that samples were lost, came twice or in
another order, or that a plan was more than 15 % off (of stalls, 15 % of the time).
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import chaski
import numpy as np

BINARY = os.environ["CHASKI_BIN"]
BATCH, SIDE, SEED = 32, 64, 7
NET = "10.77.0."
NAME = "chips.chaski.test"  # that the addresses of servers are looked up by
TRIP, RATE = 0.03, 6e6  # seconds, and bytes a second of the store
COUNTED = ("requests", "bytes")  # of a plan, for one host
WANTED = 1.5 * RATE / (2 * SIDE * SIDE)  # samples a second: more than the store has of chips
SERVER_RATE = 1e6  # bytes a second that each server has of the store
EPOCHS = 4  # while servers join and are cut
PART = 24.0  # seconds of a part of a run with other servers
LOOKED_UP = 32.0  # seconds until trainers know a server by its name: they look it up every 30
LONGEST = 240.0  # seconds that a trainer may take


def sh(*words: object) -> None:
    """Runs a command of the system."""
    subprocess.run([str(w) for w in words], check=True)


@dataclass
class Host:
    """A namespace with one address."""

    number: int
    running: list[subprocess.Popen[str]] = field(default_factory=list)

    @property
    def name(self) -> str:
        """Returns the name of the namespace."""
        return f"chaski-{self.number}"

    @property
    def address(self) -> str:
        """Returns its address."""
        return f"{NET}{self.number + 10}"

    def make(self) -> None:
        """Makes the namespace, and joins it to the bridge."""
        sh("ip", "netns", "add", self.name)
        outer, inner = f"chaski-v{self.number}", f"chaski-w{self.number}"
        sh("ip", "link", "add", outer, "type", "veth", "peer", "name", inner)
        sh("ip", "link", "set", inner, "netns", self.name)
        sh("ip", "link", "set", outer, "master", "chaski-br", "up")
        for words in (
            ("addr", "add", f"{self.address}/24", "dev", inner),
            ("link", "set", inner, "up"),
            ("link", "set", "lo", "up"),
        ):
            sh("ip", "-n", self.name, *words)

    def start(self, *words: object, **options: Any) -> subprocess.Popen[str]:
        """Starts a program in the namespace."""
        line = ["ip", "netns", "exec", self.name, *map(str, words)]
        given: dict[str, Any] = {"stdout": subprocess.PIPE, "text": True, **options}
        made = subprocess.Popen(line, start_new_session=True, **given)
        self.running.append(made)
        return made

    def serve(self, root: Path | str) -> subprocess.Popen[str]:
        """Starts a server of the chips, and waits until it listens."""
        server = self.start(
            *(BINARY, "serve", "--insecure", "--listen", f"{self.address}:7447", "--root", root),
            stderr=subprocess.DEVNULL,
        )
        assert server.stdout is not None
        server.stdout.readline()
        return server

    def remove(self) -> None:
        """Kills what runs, and removes the namespace."""
        for program in self.running:
            if program.poll() is None:
                os.killpg(program.pid, signal.SIGKILL)
            program.wait()
        subprocess.run(["ip", "netns", "del", self.name], check=False)


class Fleet:
    """The bridge, the hosts on it, and the chips."""

    def __init__(self, root: Path, hosts: int, chips: int) -> None:
        self.root, self.chips = root, chips
        sh("ip", "link", "add", "chaski-br", "type", "bridge")
        sh("ip", "link", "set", "chaski-br", "up")
        self.hosts = [Host(i) for i in range(hosts)]
        for host in self.hosts:
            host.make()
        self.write()
        self.order = self.ordered()

    def ordered(self, epochs: int = 1) -> list[list[int]]:
        """Returns the numbers of the chips in the order of one process, a list a step."""
        options: dict[str, Any] = {"batch_size": BATCH, "seed": SEED}
        options["pixels"] = chaski.Pixels(dtype="native")
        with chaski.load(self.root / "chips", **options) as loader:
            return [numbers(batch) for _ in range(epochs) for batch in loader]

    def write(self) -> None:
        """Writes the chips, a catalog and a container of them."""
        import rasterio  # type: ignore[import-untyped]

        (self.root / "chips").mkdir()
        warnings.simplefilter("ignore", rasterio.errors.NotGeoreferencedWarning)
        for i in range(self.chips):
            pixels = np.full((1, SIDE, SIDE), i, "u2")
            form: dict[str, Any] = {"driver": "GTiff", "dtype": "uint16", "count": 1}
            with rasterio.open(
                self.root / f"chips/{i:05d}.tif", "w", height=SIDE, width=SIDE, **form
            ) as file:
                file.write(pixels)
        about: dict[str, Any] = {
            "id": "a",
            "dataset_version": "1",
            "description": "noise",
            "licenses": ["cc0"],
        }
        about |= {"providers": [{"name": "x", "roles": ["producer"]}], "tasks": ["classification"]}
        (self.root / "about.json").write_text(json.dumps(about))
        quiet: dict[str, Any] = {"check": True, "capture_output": True}
        folder = self.root / "chips"
        subprocess.run([BINARY, "index", "-o", self.root / "chips.parquet", folder], **quiet)
        about_file = self.root / "about.json"
        pack: list[Any] = [
            BINARY,
            "pack",
            "--collection",
            about_file,
            "-o",
            self.root / "chips.tacozip",
        ]
        subprocess.run([*pack, folder], **quiet)

    def names(self, hosts: list[Host]) -> None:
        """Says which hosts the name of the servers stands for, to all hosts."""
        lines = "".join(f"{host.address} {NAME}\n" for host in hosts)
        for host in self.hosts:
            folder = Path("/etc/netns") / host.name
            folder.mkdir(parents=True, exist_ok=True)
            with open(folder / "hosts", "w") as file:  # in place: it is mounted by its inode
                file.write("127.0.0.1 localhost\n" + lines)
            (folder / "nsswitch.conf").write_text("hosts: files\n")

    def remove(self) -> None:
        """Removes all namespaces and the bridge."""
        for host in self.hosts:
            host.remove()
            shutil.rmtree(Path("/etc/netns") / host.name, ignore_errors=True)
        subprocess.run(["ip", "link", "del", "chaski-br"], check=False)


def numbers(batch: Any) -> list[int]:
    """Returns the numbers of the chips of a batch, by their pixels."""
    found = zip(batch["image"][:, 0, 0, 0], batch["valid"], strict=True)
    return [int(number) for number, valid in found if valid]


class Trainers:
    """Trainers of a run, each on a host of its own."""

    def __init__(self, hosts: list[Host], **run: Any) -> None:
        self.started = time.monotonic()
        self.programs = [
            host.start(
                *(sys.executable, __file__, "--trainer"),
                json.dumps({"rank": rank, "world_size": len(hosts), **run}),
                stderr=subprocess.DEVNULL if not run.get("loud") else None,
            )
            for rank, host in enumerate(hosts)
        ]
        self.steps: list[list[list[int]]] = [[] for _ in hosts]
        self.state: dict[str, Any] = {}
        self.spec: dict[str, Any] = {}
        self.rate = self.waited = 0.0
        self.stalls: list[float] = []  # of each trainer
        self.ended: dict[int, tuple[list[float], list[float]]] = {}  # times of steps, and waits

    def join(self, during: Callable[[int], None] = lambda _: None) -> Trainers:
        """Reads what all get, to the end. during is called with the steps of the first one."""
        # A trainer whose lines nobody takes waits once the pipe is full.
        others = [
            threading.Thread(target=self.follow, args=(rank,))
            for rank in range(1, len(self.programs))
        ]
        for other in others:
            other.start()
        first = 0
        while any(p.poll() is None for p in self.programs):
            if time.monotonic() - self.started > LONGEST:
                raise SystemExit(f"trainers are at work after {LONGEST} s: {self.got()}")
            line = self.programs[0].stdout.readline()  # type: ignore[union-attr]
            if not line:
                break
            first += self.take(0, line)
            during(first)
        self.follow(0)
        for other in others:
            other.join()
        for rank, program in enumerate(self.programs):
            if program.wait() != 0:
                raise SystemExit(f"trainer {rank} ended with {program.returncode}: {self.got()}")
        return self

    def follow(self, rank: int) -> None:
        """Takes all lines of a trainer that are left."""
        for line in self.programs[rank].stdout or ():
            self.take(rank, line)

    def got(self) -> str:
        """Says how far the trainers are."""
        return ", ".join(f"rank {rank}: {len(of)} steps" for rank, of in enumerate(self.steps))

    def take(self, rank: int, line: str) -> int:
        """Takes a line of a trainer: a step, or how it ended. Returns the steps in it."""
        said = json.loads(line)
        if "step" in said:
            self.steps[rank].append(said["step"])
            self.waited = max(self.waited, said["waited"])
            return 1
        self.state, self.spec = said["state"], said["spec"]
        # The first quarter is left out, for which engines have read ahead before trainers began.
        first = len(self.steps[rank]) // 4
        self.ended[rank] = said["at"], said["waits"]
        if said["at"][-1] > said["at"][first]:
            rate, stalls = self.between(rank, said["at"][first], said["at"][-1])
            self.rate += rate
            self.stalls.append(stalls)
        return 0

    def between(self, rank: int, begin: float, end: float) -> tuple[float, float]:
        """Returns the samples a second of a trainer between two times, and its share of waits."""
        at, waits = self.ended[rank]
        steps = [step for step, when in enumerate(at) if begin <= when <= end]
        seconds = at[steps[-1]] - at[steps[0]]
        rate = sum(len(self.steps[rank][step]) for step in steps[1:]) / seconds
        return rate, sum(waits[step] for step in steps[1:]) / seconds

    def judge(self, order: list[list[int]]) -> str:
        """Compares what came with the order of one process."""
        world = len(self.programs)
        for step, rows in enumerate(order):
            for rank in range(world):
                want = rows[rank::world]
                got = self.steps[rank][step] if step < len(self.steps[rank]) else None
                if got != want:
                    raise SystemExit(f"step {step}, rank {rank}: {got} in place of {want}")
        if any(len(steps) != len(order) for steps in self.steps):
            raise SystemExit(f"{self.got()}, of {len(order)}")
        samples = sum(map(len, order))
        return f"{samples} samples once and in order, the longest wait {self.waited:.1f} s"


def train(run: dict[str, Any]) -> None:
    """Is a trainer, and prints each of its steps."""
    engine = chaski.Engine(share=False, **run.pop("engine", {}))
    pause, stop, epochs = run.pop("pause", 0), run.pop("stop", 0), run.pop("epochs", 1)
    target, state, blocks = run.pop("target", None), run.pop("state", None), run.pop("blocks", None)
    run.pop("loud", None)
    options = {"batch_size": BATCH, "seed": SEED, "engine": engine, **run}
    options["pixels"] = chaski.Pixels(dtype="native")
    if blocks:
        options["shuffle"] = chaski.Blocks(*blocks)
    if windows := run.get("windows"):
        options["window"] = chaski.RandomWindow(*windows)
        del options["windows"]
    source = options.pop("source")
    opened = chaski.connect(target, source, **options) if target else chaski.load(source, **options)
    with opened as loader:
        if state:
            loader.load_state_dict(state)
        before = time.monotonic()
        at, waits = list[float](), list[float]()
        for step, batch in enumerate(batch for _ in range(epochs) for batch in loader):
            now = time.monotonic()
            at.append(now)
            waits.append(now - before)
            print(json.dumps({"step": numbers(batch), "waited": now - before}), flush=True)
            if step + 1 == stop:
                break
            time.sleep(pause)
            before = time.monotonic()
        ended = {"state": loader.state_dict(), "spec": loader.spec, "at": at, "waits": waits}
        print(json.dumps(ended), flush=True)


def kill(server: subprocess.Popen[str], how: int = signal.SIGKILL) -> None:
    """Sends a signal to a server."""
    os.killpg(server.pid, how)


def at(steps: dict[int, Callable[[], None]]) -> Callable[[int], None]:
    """Returns what does something when the first trainer has so many steps, once each."""
    return lambda step: steps.pop(step, lambda: None)()


def cut(fleet: Fleet) -> str:
    """Kills one of three servers, and stops another."""
    first, second, third, *others = fleet.hosts
    servers = [host.serve(fleet.root) for host in (first, second, third)]
    target = [f"{host.address}:7447" for host in (first, second, third)]
    run = Trainers(
        others[:2], target=target, source=f"{fleet.root}/chips", pause=0.1, engine={"timeout": 5}
    )
    run.join(at({3: lambda: kill(servers[0]), 6: lambda: kill(servers[1], signal.SIGSTOP)}))
    return run.judge(fleet.order)


def refuse(fleet: Fleet) -> str:
    """Kills all servers, and starts them again after 20 s."""
    first, *others = fleet.hosts
    server = [first.serve(fleet.root)]

    def away() -> None:
        kill(server[0])
        server[0].wait()
        time.sleep(20)
        server[0] = first.serve(fleet.root)

    run = Trainers(
        others[:2], target=f"{first.address}:7447", source=f"{fleet.root}/chips", pause=0.1
    )
    return run.join(at({4: away})).judge(fleet.order)


def join(fleet: Fleet) -> str:
    """Adds a server by its name, and kills the first one once it is looked up."""
    first, second, *others = fleet.hosts
    fleet.names([first])
    server = first.serve(fleet.root)

    def joins() -> None:
        second.serve(fleet.root)
        fleet.names([first, second])

    run = Trainers(others[:2], target=f"dns:{NAME}:7447", source=f"{fleet.root}/chips", pause=2.0)
    return run.join(at({2: joins, 22: lambda: kill(server)})).judge(fleet.order)


def move(fleet: Fleet) -> str:
    """Replaces each server by one at another address, as a rolling update does."""
    a, b, c, d, *others = fleet.hosts
    fleet.names([a, b])
    old = [a.serve(fleet.root), b.serve(fleet.root)]

    def replace(stays: list[Host], new: Host, gone: subprocess.Popen[str]) -> None:
        new.serve(fleet.root)
        fleet.names([*stays, new])
        kill(gone, signal.SIGTERM)

    run = Trainers(others[:2], target=f"dns:{NAME}:7447", source=f"{fleet.root}/chips", pause=2.0)
    done = {3: lambda: replace([b], c, old[0]), 22: lambda: replace([c], d, old[1])}
    return run.join(at(done)).judge(fleet.order)


def world(fleet: Fleet) -> str:
    """Stops two trainers after a part of the epoch, and goes on with three."""
    first, *others = fleet.hosts
    first.serve(fleet.root)
    run: dict[str, Any] = {"target": f"{first.address}:7447", "source": f"{fleet.root}/chips"}
    half = len(fleet.order) // 2
    before = Trainers(others[:2], stop=half, **run).join()
    before.judge(fleet.order[:half])
    after = Trainers(others[:3], state=before.state, **run).join()
    return after.judge(fleet.order[half:])


@dataclass
class Planned:
    """Figures of a plan, and those of a run."""

    rate: float
    stalls: float

    def near(self, what: str, run: Planned) -> str:
        """Returns a cell of a table, if the run is near the plan."""
        if not 1 / 1.15 < self.rate / run.rate < 1.15 or abs(self.stalls - run.stalls) > 0.15:
            raise SystemExit(f"{what}: planned {self}, the run has {run}")
        return f"{self.rate:.0f} | {run.rate:.0f} | {self.stalls:.2f} | {run.stalls:.2f}"


class SlowStore:
    """A store at some distance, on a host of its own."""

    def __init__(self, fleet: Fleet, program: str, *link: object) -> None:
        self.host, self.command = fleet.hosts[0], [program, "-dir", fleet.root, *link]
        self.url = f"http://{self.host.address}:8099/"

    def __enter__(self) -> SlowStore:
        trip = ["-delay", f"{TRIP}s"]
        self.running = self.host.start(*self.command, "-addr", f"{self.host.address}:8099", *trip)
        time.sleep(1)
        return self

    def __exit__(self, *_: object) -> None:
        self.counts()

    def counts(self) -> tuple[int, int]:
        """Ends the store, and returns its requests and bytes."""
        if self.running.poll() is None:
            kill(self.running, signal.SIGINT)
            requests, _, size, _ = self.running.communicate()[0].split()
            self.counted = int(requests), int(size)
        return self.counted

    def plan(self, host: Host, spec: dict[str, Any], each: float, *fleet: object) -> Any:
        """Returns what the plan of a fleet says, whose machines get so many bytes a second each."""
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            json.dump(spec, file)
            file.flush()
            given = ["--json", "--store", f"rtt={TRIP * 1000:.0f}ms,bandwidth={each / 1e6}MB"]
            command = ["ip", "netns", "exec", host.name, BINARY, "plan", *given]
            out = subprocess.run(
                [*command, *map(str, fleet), file.name], capture_output=True, check=True
            )
        return json.loads(out.stdout)


def counted(what: str, planned: dict[str, Any], engines: int, run: tuple[int, int]) -> str:
    """Returns cells of the requests and bytes of all engines, if the run is near the plan."""
    figures = [engines * planned["total"][name] for name in COUNTED]
    if any(not 1 / 1.15 < a / b < 1.15 for a, b in zip(figures, run, strict=True)):
        raise SystemExit(f"{what}: {COUNTED} are {run}, planned {figures}")
    return " | ".join(f"{a} | {b}" for a, b in zip(figures, run, strict=True))


HEADS = "| samples/s: plan | run | stalls: plan | run |"
COUNTS = " requests: plan | run | bytes: plan | run |"


def plan(fleet: Fleet, program: str) -> str:
    """Compares what hosts reach with what `chaski plan --fleet` says, of three kinds of data."""
    hosts = fleet.hosts[1:5]
    kinds: dict[str, dict[str, Any]] = {
        "chips": {"source": "chips.parquet"},
        "blocks": {"source": "chips.tacozip", "blocks": [16, BATCH]},
        "windows": {"source": "chips.parquet", "windows": [SIDE // 2, 2]},
    }
    lines = [f"| data {HEADS}{COUNTS}"]
    pause = BATCH / WANTED  # a step of all has so many samples
    for name, options in kinds.items():
        with SlowStore(fleet, program, "-rate", RATE) as store:
            options["source"] = store.url + options["source"]
            run = Trainers(hosts, pause=pause, **options).join()
            counts = store.counts()
        got = sorted(number for steps in run.steps for step in steps for number in step)
        each = options.get("windows", [0, 1])[1]
        if got != sorted(each * [*range(fleet.chips)]):
            raise SystemExit(f"{name}: {len(got)} samples of {each * fleet.chips}")
        with SlowStore(fleet, program, "-rate", RATE) as store:
            gpus = ["--fleet", len(hosts), "--gpus", 1, "--rate", WANTED / len(hosts)]
            said = store.plan(hosts[0], run.spec, RATE / len(hosts), *gpus)
        planned = Planned(said["fleet"]["reached"], said["fleet"]["stalls"])
        cells = planned.near(name, Planned(run.rate, sum(run.stalls) / len(run.stalls)))
        lines.append(f"| {name} | {cells} | {counted(name, said, len(hosts), counts)} |")
    return "\n".join(["", *lines])


def serve(fleet: Fleet, program: str) -> str:
    """Compares what servers give with the plan: two, then three after one joins, then two."""
    first, second, third, *trainers = fleet.hosts[1:]
    link = ["-rate", SERVER_RATE, "-apart"]
    wanted = 1.25 * 3 * SERVER_RATE / (2 * SIDE * SIDE)
    with SlowStore(fleet, program, *link) as store:
        source = store.url + "chips.parquet"
        fleet.names([first, second])
        cut = first.serve(store.url)
        second.serve(store.url)
        begun = time.monotonic()
        times = dict[str, float]()

        def during(_: int) -> None:
            now = time.monotonic() - begun
            if now > PART and "join" not in times:
                times["join"] = now
                third.serve(store.url)
                fleet.names([first, second, third])
            if now > 2 * PART + LOOKED_UP and "cut" not in times:
                times["cut"] = now
                kill(cut)

        given: dict[str, Any] = {"source": source, "epochs": EPOCHS, "pause": BATCH / wanted}
        run = Trainers(trainers, target=f"dns:{NAME}:7447", **given).join(during)
        counts = store.counts()
    result = run.judge(fleet.ordered(epochs=EPOCHS))
    with SlowStore(fleet, program, *link) as store:
        gpus = ["--fleet", len(trainers), "--gpus", 1, "--rate", wanted / len(trainers)]
        said = store.plan(trainers[0], run.spec, SERVER_RATE, *gpus, "--servers", 3)
    two, four = said["fleet"]["servers"]
    assert (two["servers"], four["servers"]) == (2, 4)
    last = max(at[-1] for at, _ in run.ended.values()) - begun
    parts = {
        "two servers": (two, PART / 4, times["join"]),
        "a third one has joined": (said["fleet"], times["join"] + LOOKED_UP, times["cut"]),
        "the first one is cut": (two, times["cut"] + PART / 4, last),
    }
    lines = [f"| servers {HEADS}"]
    for name, (figures, begin, end) in parts.items():
        got = [run.between(rank, begun + begin, begun + end) for rank in range(len(trainers))]
        planned = Planned(figures["reached"], figures["stalls"])
        stalls = sum(share for _, share in got) / len(got)
        cells = planned.near(name, Planned(sum(rate for rate, _ in got), stalls))
        lines.append(f"| {name} | {cells} |")
    cells = counted("serve", said, 3 * EPOCHS, counts)
    return "\n".join([result, *lines, "", f"| {COUNTS[1:]}", f"| {cells} |"])


def main() -> None:
    """Runs the scenarios."""
    if sys.argv[1:2] == ["--trainer"]:
        train(json.loads(sys.argv[2]))
        return
    scenarios = {"cut": cut, "refuse": refuse, "join": join, "move": move, "world": world}
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    planned = {"plan": plan, "serve": serve}
    names = [*scenarios, *planned]
    parser.add_argument("--only", nargs="*", choices=names, default=None)
    parser.add_argument("--hosts", type=int, default=6)
    parser.add_argument("--chips", type=int, default=1024)
    parser.add_argument("--store", default="./slowstore", help="tools/slowstore, built")
    args = parser.parse_args()
    for name in args.only or names:
        with tempfile.TemporaryDirectory() as folder:
            fleet = None
            try:
                fleet = Fleet(Path(folder), args.hosts, args.chips)
                if name in planned:
                    found = planned[name](fleet, args.store)
                else:
                    found = scenarios[name](fleet)
                print(f"{name}: {found}", flush=True)
            finally:
                if fleet:
                    fleet.remove()


if __name__ == "__main__":
    main()
