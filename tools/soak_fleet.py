"""Runs hosts of a cluster in network namespaces, and judges what they get and what the plan says.

    sudo tools/soak_fleet.py [--only SCENARIO ...] [--hosts 4] [--chips 1024] [--store SLOWSTORE]

Every host is a namespace with an address of its own on one bridge, as is the store. Each pixel of
a chip is its number, so the order is judged by what arrives: each trainer has to get the rows of
its rank, each once, in the order of a run in one process.

    plan     hosts read chips, blocks and windows from a slow store; samples a second, stalls,
             requests and bytes beside those of `chaski plan --fleet`
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
LONGEST = 180.0  # seconds that a trainer may take


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

    def serve(self, root: Path) -> subprocess.Popen[str]:
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
        with chaski.load(
            root / "chips", batch_size=BATCH, seed=SEED, pixels=chaski.Pixels(dtype="native")
        ) as loader:
            self.order = [numbers(batch) for batch in loader]

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

    def join(self, during: Callable[[int], None] = lambda _: None) -> Trainers:
        """Reads what all get, to the end. during is called with the steps of the first one."""
        first = 0
        while any(p.poll() is None for p in self.programs):
            if time.monotonic() - self.started > LONGEST:
                raise SystemExit(f"trainers are at work after {LONGEST} s: {self.got()}")
            line = self.programs[0].stdout.readline()  # type: ignore[union-attr]
            if not line:
                break
            first += self.take(0, line)
            during(first)
        for rank, program in enumerate(self.programs):
            for line in program.stdout or ():
                self.take(rank, line)
            if program.wait() != 0:
                raise SystemExit(f"trainer {rank} ended with {program.returncode}: {self.got()}")
        return self

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
        at, waits = said["at"][first:], said["waits"][first + 1 :]
        if (seconds := at[-1] - at[0]) > 0:
            self.rate += sum(map(len, self.steps[rank][first + 1 :])) / seconds
            self.stalls.append(sum(waits) / seconds)
        return 0

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
    pause, stop = run.pop("pause", 0), run.pop("stop", 0)
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
        for step, batch in enumerate(loader):
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


def plan(fleet: Fleet, store: str) -> str:
    """Compares what hosts reach with what `chaski plan --fleet` says, of three kinds of data."""
    far, *hosts = fleet.hosts
    hosts = hosts[:4]
    kinds: dict[str, dict[str, Any]] = {
        "chips": {"source": "chips.parquet"},
        "blocks": {"source": "chips.tacozip", "blocks": [16, BATCH]},
        "windows": {"source": "chips.parquet", "windows": [SIDE // 2, 2]},
    }
    heads = ("samples/s", "requests", "bytes", "stalls")
    lines = [f"| data | {' | '.join(f'{head}: plan | run' for head in heads)} |"]
    pause = BATCH / WANTED  # a step of all has so many samples
    link = ["-delay", f"{TRIP}s", "-rate", str(RATE)]

    def serve() -> subprocess.Popen[str]:
        server = far.start(store, "-addr", f"{far.address}:8099", "-dir", fleet.root, *link)
        time.sleep(1)
        return server

    for name, options in kinds.items():
        server = serve()
        options["source"] = f"http://{far.address}:8099/{options['source']}"
        run = Trainers(hosts, pause=pause, **options).join()
        kill(server, signal.SIGINT)
        requests, _, size, _ = server.communicate()[0].split()
        got = sorted(number for steps in run.steps for step in steps for number in step)
        each = options.get("windows", [0, 1])[1]
        if got != sorted(each * [*range(fleet.chips)]):
            raise SystemExit(f"{name}: {len(got)} samples of {each * fleet.chips}")

        server = serve()
        file = fleet.root / "spec.json"
        file.write_text(json.dumps(run.spec))
        given = ["--store", f"rtt={TRIP * 1000:.0f}ms,bandwidth={RATE / len(hosts) / 1e6}MB"]
        given += ["--fleet", str(len(hosts)), "--gpus", "1", "--rate", str(WANTED / len(hosts))]
        out = subprocess.run(
            ["ip", "netns", "exec", hosts[0].name, BINARY, "plan", "--json", *given, str(file)],
            capture_output=True,
            check=True,
        )
        kill(server)
        server.wait()
        said = json.loads(out.stdout)
        planned = [said["fleet"]["reached"], *(len(hosts) * said["total"][k] for k in COUNTED)]
        reached = [run.rate, int(requests), int(size)]
        if any(not 1 / 1.15 < a / b < 1.15 for a, b in zip(planned, reached, strict=True)):
            raise SystemExit(f"{name}: more than 15 % from the plan: {planned}, {reached}")
        stalls = said["fleet"]["stalls"], sum(run.stalls) / len(run.stalls)
        if abs(stalls[0] - stalls[1]) > 0.15:
            raise SystemExit(
                f"{name}: waits are {stalls[1]:.2f} of the time, planned {stalls[0]:.2f}"
            )
        cells = [f"{a:.0f} | {b:.0f}" for a, b in zip(planned, reached, strict=True)]
        cells.append(f"{stalls[0]:.2f} | {stalls[1]:.2f}")
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(["", *lines])


def main() -> None:
    """Runs the scenarios."""
    if sys.argv[1:2] == ["--trainer"]:
        train(json.loads(sys.argv[2]))
        return
    scenarios = {"cut": cut, "refuse": refuse, "join": join, "move": move, "world": world}
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--only", nargs="*", choices=[*scenarios, "plan"], default=None)
    parser.add_argument("--hosts", type=int, default=6)
    parser.add_argument("--chips", type=int, default=1024)
    parser.add_argument("--store", default="./slowstore", help="tools/slowstore, built")
    args = parser.parse_args()
    for name in args.only or [*scenarios, "plan"]:
        with tempfile.TemporaryDirectory() as folder:
            fleet = None
            try:
                fleet = Fleet(Path(folder), args.hosts, args.chips)
                found = plan(fleet, args.store) if name == "plan" else scenarios[name](fleet)
                print(f"{name}: {found}", flush=True)
            finally:
                if fleet:
                    fleet.remove()


if __name__ == "__main__":
    main()
