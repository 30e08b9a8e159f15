"""Simulates long training runs over engines that are killed and started again.

    tools/soak.py [--only PART ...] [--time 10m] [--data .demo/train]

Parts, all of them by default:

run        Three ranks share every batch of a run. Two of them use an engine that keeps running,
           one uses an engine that is killed every few seconds and started again. From time to time
           every rank drops its loader and continues from its state in a new one. --time sets the
           duration. The memory of the engine that keeps running, and of this process, must not
           grow after the first epochs.
histories  Every trainer and every engine is a process. Trainers step together, are killed (signal
           9) or leave at any moment, and others join: the run then resumes from its last state
           with another world size (1 to 8). Meanwhile engines (1 to 3, shared by all trainers) are
           killed and started again. --histories sets the number of such runs; each has its own
           random spec: some have bad samples, some several windows of each sample, and in some the
           weights of samples change.
servers    One trainer uses three engines, one of which is killed during an epoch. The trainer must
           see no error and the same order, and regain its throughput within 2 s.
steady     One trainer, which writes a ledger, and one engine take --steps steps. After the first
           tenth, resident memory must stay within 5%, and goroutines, threads and descriptors must
           be constant. The ledger must say that every sample of each epoch came once.

Every batch and epoch is checked: every sample is at the position of `chaski.order` (run) or of an
undisturbed run (histories, servers), it has the bytes of an undisturbed pass, and the ranks' rows
together are every sample of the epoch once.

A failure ends with exit status 1 and one line that names it.
"""

from __future__ import annotations

import argparse
import gc
import itertools
import multiprocessing
import os
import random
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import chaski
import chaski._engine
import numpy as np

RANKS = 3
BATCH = 16
SEED = 11
WARM_EPOCHS = 3
GROWTH_MB = 64  # what allocators may do meanwhile


class SoakError(Exception):
    """A check that failed."""


class Server:
    """`chaski serve` on a Unix socket."""

    def __init__(self, socket: Path, root: Path, *options: str, stderr: Any = None) -> None:
        """Starts it, and waits until it listens."""
        self.socket, self.root, self.options, self.stderr = socket, root, options, stderr
        self.changing = threading.Lock()
        self.starts = 0
        self.start()

    def start(self) -> None:
        """Starts it again."""
        with self.changing:
            self._start()

    def _start(self) -> None:
        self.socket.unlink(missing_ok=True)  # of one that was killed
        self.process = subprocess.Popen(
            [
                *(chaski._engine.find_binary(), "serve", "--listen", f"unix:{self.socket}"),
                *("--root", str(self.root), "--log-level", "error", *self.options),
            ],
            stdout=subprocess.PIPE,
            stderr=self.stderr,
        )
        assert self.process.stdout is not None
        if b"listen" not in self.process.stdout.readline():
            raise SoakError("the engine does not start")
        self.starts += 1

    def kill(self) -> None:
        """Kills it, as a crash would."""
        self.process.kill()
        self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()

    def alive(self) -> bool:
        """Reports whether it runs, or is not about to be started again."""
        with self.changing:
            return self.process.poll() is None

    @property
    def target(self) -> str:
        """The address on which it listens."""
        return f"unix:{self.socket}"


def memory_mb(pid: int | str) -> float:
    """Returns the resident memory of a process in MB, or 0 on systems without /proc."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except OSError:
        return 0.0
    return pages * 4096 / 1e6


def checksums(data: Path) -> list[int]:
    """Returns the checksum of every sample, in the order of the dataset."""
    sums: list[int] = []
    with chaski.load(data, **spec(shuffle=False)) as loader:
        for batch in loader:
            rows = batch["image"][batch["valid"]]
            sums += [zlib.crc32(row.tobytes()) for row in rows]
        if len(sums) != loader.samples:
            raise SoakError(f"{len(sums)} of {loader.samples} samples in the first pass")
    return sums


def spec(shuffle: bool) -> dict[str, Any]:
    """Returns the arguments that all loaders have in common."""
    return {
        "fields": {"image": chaski.Field(pattern="images/{id}.tif", dtype="native")},
        "batch_size": BATCH,
        "seed": SEED,
        "shuffle": shuffle,
    }


class Rank:
    """One rank of the run."""

    def __init__(self, rank: int, server: Server, data: Path, sums: list[int]) -> None:
        """Connects."""
        self.rank, self.server, self.data, self.sums = rank, server, data, sums
        self.random = random.Random(rank)
        self.batches = self.resumed = 0
        self.loader = self.connect()

    def connect(self) -> chaski.Loader:
        """Returns a new loader."""
        for attempt in itertools.count():
            try:
                return chaski.connect(
                    self.server.target,
                    self.data,
                    rank=self.rank,
                    world_size=RANKS,
                    **spec(shuffle=True),
                )
            except chaski.UnavailableError:  # it is being started again
                if attempt == 20:
                    raise
                time.sleep(0.2)
        raise AssertionError

    def epoch(self, epoch: int) -> list[int]:
        """Runs an epoch, and returns the positions that this rank got."""
        order = chaski.order.Order(SEED, epoch, len(self.sums))
        seen: list[int] = []
        steps = len(self.loader)
        done = 0
        while done < steps:
            pause = self.random.randrange(1, steps + 1) if self.random.random() < 0.3 else steps
            for batch in self.loader:
                seen += self.check(batch, epoch, order)
                done += 1
                self.batches += 1
                if pause <= done < steps:
                    self.resume()
                    break
        return seen

    def resume(self) -> None:
        """Continues in another loader."""
        state = self.loader.state_dict()
        self.loader.close()
        self.loader = self.connect()
        self.loader.load_state_dict(state)
        self.resumed += 1

    def check(self, batch: Any, epoch: int, order: chaski.order.Order) -> list[int]:
        """Checks a batch, and returns its positions."""
        where = f"epoch {epoch} step {batch.step} rank {self.rank}"
        if batch.epoch != epoch:
            raise SoakError(f"{where}: batch of epoch {batch.epoch}")
        valid = batch["valid"]
        positions, samples = batch["position"][valid], batch["sample"][valid]
        if not np.array_equal(order.at(positions), samples):
            raise SoakError(f"{where}: samples {samples} at positions {positions}")
        for row, sample in zip(batch["image"][valid], samples, strict=True):
            if zlib.crc32(row.tobytes()) != self.sums[sample]:
                raise SoakError(f"{where}: sample {sample} has other bytes")
        return [int(p) for p in positions]


def run(data: Path, seconds: float, folder: Path) -> None:
    """Runs epochs until the time is up."""
    sums = checksums(data)
    stays, dies = (Server(folder / name, data) for name in ("a", "b"))
    stop = threading.Event()
    failures: list[BaseException] = []

    def killer() -> None:
        r = random.Random(0)
        while not stop.wait(r.uniform(1, 5)):
            dies.kill()
            dies.start()

    def rank_main(rank: Rank, epoch: int, out: dict[int, list[int]]) -> None:
        try:
            out[rank.rank] = rank.epoch(epoch)
        except BaseException as e:
            failures.append(e)

    thread = threading.Thread(target=killer)
    thread.start()
    try:
        ranks = [Rank(r, dies if r == RANKS - 1 else stays, data, sums) for r in range(RANKS)]
        end = time.monotonic() + seconds
        warm: tuple[float, ...] = ()
        pids = (stays.process.pid, "self")
        epoch = 0
        while time.monotonic() < end or epoch <= WARM_EPOCHS:
            seen: dict[int, list[int]] = {}
            threads = [threading.Thread(target=rank_main, args=(r, epoch, seen)) for r in ranks]
            for t in threads:
                t.start()
            for t in threads:
                t.join()
            if failures:
                raise failures[0]
            if sorted(sum(seen.values(), [])) != list(range(len(sums))):
                raise SoakError(f"epoch {epoch}: the ranks did not see every sample once")
            gc.collect()  # loaders that were thrown away
            now = tuple(memory_mb(p) for p in pids)
            if epoch == WARM_EPOCHS:
                warm = now
            epoch += 1
            text = (
                f"epochs {epoch}, batches {sum(r.batches for r in ranks)}, "
                f"resumed {sum(r.resumed for r in ranks)}, engines started {dies.starts}, "
                f"engine {now[0]:.0f} MB, this process {now[1]:.0f} MB"
            )
            if sys.stderr.isatty():
                print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)
        if sys.stderr.isatty():
            print(file=sys.stderr)
        print(f"soak: {text}")
        for name, before, after in zip(("engine", "process"), warm, now, strict=True):
            if after > before + GROWTH_MB:
                raise SoakError(f"the {name} grew from {before:.0f} to {after:.0f} MB")
        for r in ranks:
            r.loader.close()
    finally:
        stop.set()
        thread.join()
        stays.kill()
        dies.kill()


# -- histories

COMMITTED = 3
"""Epochs of a history."""


def fork_server() -> Any:
    """Returns a context whose processes begin with everything imported."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["chaski", "numpy"])
    return context


CHANGES = ((0, 1), (1, 0), (1, 2))
"""Epochs and steps after which the weights of samples change, three steps later."""

Row = tuple[int, int, int]
"""Position, sample and checksum of a row; the sample is -1 if the row is not valid."""


def rows_of(batch: Any) -> list[Row]:
    """Returns the rows of a batch without padding."""
    out = []
    for k, position in enumerate(batch["position"].tolist()):
        if position >= 0:
            valid = bool(batch["valid"][k])
            crc = 0
            for name in sorted(name for name in batch if name.startswith("image")):
                crc = zlib.crc32(
                    batch[name][k].tobytes(), crc
                )  # views of several sizes are several
            out.append((position, int(batch["sample"][k]) if valid else -1, crc))
    return out


def trainer(conn: Connection, targets: list[str], options: dict[str, Any], state: Any) -> None:
    """A trainer: it answers every message with the rows of the next step and the state after it.

    After some steps it changes the weights of samples, if its options name a folder for them. It
    ends at the end of the connection, or when it is killed.
    """
    options = dict(options)
    folder = options.pop("weights", None)
    with chaski.connect(targets, **options) as loader:
        if state is not None:
            loader.load_state_dict(state)
        conn.send("ready")
        try:
            while True:
                for batch in loader:
                    conn.recv()
                    place = batch.epoch, batch.step
                    if folder is not None and place in CHANGES:
                        weights = np.random.default_rng(place).gamma(0.3, size=loader.samples)
                        loader.reweight(weights, batch.step + 3, folder=folder)
                    conn.send((batch.epoch, batch.step, rows_of(batch), loader.state_dict()))
        except EOFError:
            return


class Trainers:
    """The processes of all ranks between two restarts of a run."""

    def __init__(
        self, context: Any, world: int, targets: list[str], options: dict[str, Any], state: Any
    ) -> None:
        """Starts them."""
        self.processes, self.conns = [], []
        for rank in range(world):
            ours, theirs = context.Pipe()
            options = {**options, "rank": rank, "world_size": world}
            p = context.Process(target=trainer, args=(theirs, targets, options, state), daemon=True)
            p.start()
            theirs.close()
            self.processes.append(p)
            self.conns.append(ours)

    def ready(self) -> None:
        """Waits until all of them are ready."""
        for c in self.conns:
            if c.recv() != "ready":
                raise SoakError("a trainer is not ready")

    def step(self, victim: int | None, moment: float) -> list[Any]:
        """Makes all ranks take a step.

        Args:
            victim: the rank that is killed.
            moment: seconds after the step began, when that happens.

        Returns:
            What they answered; of one that is gone there is nothing.
        """
        for c in self.conns:
            c.send("step")
        if victim is not None:
            time.sleep(moment)
            self.processes[victim].kill()
            self.processes[victim].join()
        answers = []
        for rank, c in enumerate(self.conns):
            if not c.poll(60):
                raise SoakError(f"rank {rank} of {len(self.conns)} says nothing for 60 s")
            try:
                answers.append(c.recv())
            except (EOFError, OSError):
                if rank != victim:
                    raise SoakError(f"rank {rank} of {len(self.conns)} died by itself") from None
        return answers

    def end(self, rude: bool) -> None:
        """Ends all of them: by a signal, or by themselves."""
        for p, c in zip(self.processes, self.conns, strict=True):
            if rude:
                p.kill()
            c.close()
        for p in self.processes:
            p.join(30)
            if p.is_alive():
                p.kill()
                p.join()
                raise SoakError("a trainer does not end")
            p.close()


class Calm:
    """The rows of an undisturbed run with one rank, by epoch and position."""

    def __init__(self, context: Any, target: str, options: dict[str, Any], epochs: int) -> None:
        """Runs it."""
        self.rows: dict[tuple[int, int], Row] = {}
        self.steps: dict[tuple[int, int], list[int]] = {}
        one = Trainers(context, 1, [target], options, None)
        one.ready()
        while True:
            epoch, step, rows, _ = one.step(None, 0)[0]
            if epoch == epochs:
                break
            self.steps[epoch, step] = [r[0] for r in rows]
            self.rows |= {(epoch, r[0]): r for r in rows}
        one.end(rude=True)


def sampling(r: random.Random, data: Path) -> dict[str, Any]:
    """Returns a random sampler and a source of one dataset or of several."""
    height, width = r.choice([16, 40, 64]), r.choice([24, 64])
    size = (height, width) if r.random() < 0.5 else (height, height)
    out: dict[str, Any] = {
        "source": data,
        "window": r.choice([
            chaski.RandomWindow(size, r.choice([1, 2, 3])),
            chaski.Grid(size, stride=(r.choice([90, 120]), 100)),
            chaski.ResizedWindow(size, per_asset=2),
            chaski.TileWindow(size, per_visit=r.choice([3, 8]), visits=1, pool=r.choice([2, 5])),
        ]), "pixels": chaski.Pixels(
            dtype=r.choice(["native", "float32", "float16"]),
            augment=r.choice([None, "flips", "d4" if size[0] == size[1] else "flip_x"]),
        ),
    }  # fmt: skip
    if r.random() < 0.4:
        first = out["window"]
        tiles = isinstance(first, chaski.TileWindow)
        other = chaski.TileWindow(size) if tiles else chaski.RandomWindow(size)
        near = r.choice([chaski.RandomWindow(size, min_overlap=0.3), other])
        out["window"] = [first, near, chaski.ResizedWindow(r.choice([16, size]))]
    if r.random() < 0.5:
        more = chaski.Mixture({"x": data, "y": chaski.Source(data, weight=2)}, until="longest")
        until = r.choice(["shortest", "longest", 70])
        out["source"] = chaski.Mixture({"a": data, "b": r.choice([data, more])}, until=until)
    return out


def history(number: int, context: Any, data: Path, folder: Path) -> dict[str, int]:
    """One run with its kills, leaves, joins and restarts."""
    r = random.Random(number)
    options: dict[str, Any] = {
        **sampling(r, data),
        "batch_size": r.choice([3, 8, 13, 29]),
        "seed": r.randrange(1 << 32),
        "shuffle": r.random() < 0.9,
        "on_bad": r.choice(["skip", "replace", "fill"]),
        "last": r.choice(("short", "drop", "pad")),
        "engine": chaski.Engine(
            prefetch=r.choice([1, 3, 6]),
            transport=r.choice(["auto", "grpc"]),
            timeout=60.0,
        ),
    }
    met = {"generations": 0, "trainers killed": 0, "engines killed": 0, "steps": 0, "again": 0}
    views = isinstance(options["window"], list)
    first_window = options["window"][0] if views else options["window"]
    plain = options["source"] == data and not isinstance(first_window, chaski.TileWindow)
    changing = folder / f"weights-{number}"
    changing.mkdir()
    if plain and r.random() < 0.7:
        options["weights"] = changing
    root = "--root", str(changing)
    servers = [Server(folder / f"{number}-{k}", data, *root) for k in range(r.choice([1, 2, 3]))]
    timers: list[threading.Timer] = []
    try:
        calm = Calm(context, servers[0].target, options, COMMITTED)
        first = True
        state: Any = None
        told: dict[tuple[int, int], int] = {}  # how often a step was given
        done: dict[tuple[int, int], list[int]] = {}  # positions of committed steps
        while len(done) < len(calm.steps):
            world = r.randint(1, 8) if not first else r.choice([3, 8])
            first = False
            ranks = Trainers(context, world, [s.target for s in servers], options, state)
            met["generations"] += 1
            ranks.ready()
            crash = None
            for k in range(r.randint(1, max(2, len(calm.steps) // 3))):
                if len(done) == len(calm.steps):
                    break
                if r.random() < 0.15:
                    dead = r.choice(servers)
                    if not dead.alive():  # it was killed a moment ago
                        continue
                    dead.kill()
                    if len(servers) == 1 or r.random() < 0.5:
                        dead.start()
                    else:  # and comes back later
                        timers.append(threading.Timer(r.uniform(0, 0.5), dead.start))
                        timers[-1].start()
                    met["engines killed"] += 1
                crash = r.randrange(world) if r.random() < 0.12 and k else None
                answers = ranks.step(crash, r.choice([0, 0, r.uniform(0, 0.02)]))
                if crash is not None:
                    met["trainers killed"] += 1
                after = checked(answers, calm, told)
                if len(answers) < world:
                    break  # the others have a step that does not count, and is given again
                state = after
                commit(answers, calm, done)
                if crash is not None:
                    break
            for t in timers:
                t.join()
            timers.clear()
            ranks.end(rude=crash is not None or r.random() < 0.5)
        if done != calm.steps:
            raise SoakError(f"history {number}: other steps than in an undisturbed run")
        met["steps"], met["again"] = len(done), sum(told.values()) - len(told)
        kills = met["trainers killed"] + met["engines killed"]
        met["kills with views"] = kills if views else 0
        met["kills with weights"] = kills if "weights" in options else 0
        for epoch in range(COMMITTED):
            seen = [p for (e, _), positions in done.items() if e == epoch for p in positions]
            if sorted(seen) != sorted(p for e, p in calm.rows if e == epoch):
                raise SoakError(f"history {number}: epoch {epoch} has not every sample once")
    except SoakError as e:
        raise SoakError(f"history {number} ({options}): {e}") from None
    finally:
        for t in timers:
            t.join()
        for s in servers:
            s.kill()
    return met


def checked(answers: list[Any], calm: Calm, told: dict[tuple[int, int], int]) -> Any:
    """Checks the ranks' rows of a step, and returns the state after it."""
    if not answers:
        return None
    epoch, step, _, state = answers[0]
    told[epoch, step] = told.get((epoch, step), 0) + 1
    for e, s, rows, other in answers:
        if (e, s) != (epoch, step) or other != state:
            raise SoakError(f"ranks at {(epoch, step)} and {(e, s)}, states {state} and {other}")
        for row in rows:
            if row != calm.rows.get((epoch, row[0])):
                raise SoakError(f"epoch {epoch} step {step}: {row}, not as undisturbed")
    return state


def commit(answers: list[Any], calm: Calm, done: dict[tuple[int, int], list[int]]) -> None:
    """Records a step that all ranks have taken."""
    epoch, step, _, _ = answers[0]
    positions = sorted(row[0] for _, _, rows, _ in answers for row in rows)
    if positions != calm.steps.get((epoch, step)):
        raise SoakError(f"epoch {epoch} step {step}: positions {positions}")
    if (epoch, step) in done:
        raise SoakError(f"epoch {epoch} step {step} comes a second time")
    done[epoch, step] = positions


def chips(data: Path, folder: Path, n: int) -> Path:
    """Copies some chips of the dataset, and adds two that cannot be read."""
    out = folder / "chips"
    out.mkdir()
    images = sorted((data / "images").glob("*.tif"))[:n]
    if not images:
        raise SoakError(f"no images below {data}")
    for path in images:
        shutil.copy(path, out)
    (out / (images[2].stem + "-bad.tif")).write_bytes(b"no TIFF")
    (out / (images[4].stem + "-bad.tif")).write_bytes(images[4].read_bytes()[:-999])
    return out


def histories(data: Path, n: int, folder: Path) -> None:
    """Runs histories one after the other."""
    context = fork_server()
    data = chips(data, folder, 14)
    sums: dict[str, int] = {}
    start = time.monotonic()
    for k in range(n):
        for what, count in history(k, context, data, folder).items():
            sums[what] = sums.get(what, 0) + count
        progress(f"{k + 1} of {n} histories, {sums}")
    progress("")
    text = ", ".join(f"{count} {what}" for what, count in sums.items())
    print(f"histories: {n} in {time.monotonic() - start:.0f} s: {text}")


def progress(text: str) -> None:
    """Prints the progress, on a terminal."""
    if sys.stderr.isatty():
        print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)


# -- servers

BACK_SECONDS = 2.0
BACK_SHARE = 0.8
SLICE = 0.25


def servers(data: Path, folder: Path) -> None:
    """Kills one of three engines during an epoch, three times."""
    worst = 0.0
    for dead in range(3):
        worst = max(worst, one_of_three(data, folder, dead))
    print(f"servers: throughput is back at most {worst:.2f} s after one of three was killed")


def one_of_three(data: Path, folder: Path, dead: int) -> float:
    """Kills one of three engines, and returns the seconds until the throughput is back."""
    options: dict[str, Any] = {
        "batch_size": 32, "window": chaski.RandomWindow(64, per_asset=400), "seed": dead,
        "fields": {"image": chaski.Field(pattern="images/{id}.tif", dtype="native")},
        "engine": chaski.Engine(prefetch=9),
    }  # fmt: skip
    three = [Server(folder / f"s{dead}{k}", data, "--workers", "1") for k in range(3)]
    try:
        with chaski.connect([s.target for s in three], data, **options) as loader:
            order = chaski.order.Order(dead, 0, loader.samples)
            times: list[float] = []
            killed = 0.0
            start = time.monotonic()
            for batch in loader:
                now = time.monotonic()
                times.append(now)
                if batch.step != len(times) - 1:
                    raise SoakError(f"step {batch.step} after {len(times) - 1} steps")
                if not np.array_equal(order.at(batch["position"]), batch["sample"]):
                    raise SoakError(f"step {batch.step}: other samples")
                if not killed and now > start + 3:
                    three[dead].kill()
                    killed = time.monotonic()
                if killed and now > killed + 4:
                    break
            else:
                raise SoakError("the epoch is over too soon: a larger dataset is needed")
        if not killed:
            raise SoakError("no server was killed")
    finally:
        for s in three:
            s.kill()
    return recovery(times, start + 1, killed)


def recovery(times: list[float], begin: float, killed: float) -> float:
    """Returns the seconds until a slice of time has as many batches as those before the kill."""

    def rate(at: float) -> float:
        return sum(at <= t < at + SLICE for t in times) / SLICE

    n = int((killed - begin) / SLICE)
    before = statistics.median(rate(begin + SLICE * k) for k in range(n))
    gap = max(b - a for a, b in itertools.pairwise(times) if b >= killed)
    for k in range(int(4 / SLICE * 5) - 5):
        after = k * SLICE / 5
        if rate(killed + after) >= BACK_SHARE * before:
            back = after + SLICE
            break
    else:
        back = 4.0
    print(f"  {before:.0f} batches/s; longest wait {gap:.2f} s, back after {back:.2f} s")
    if back > BACK_SECONDS:
        raise SoakError(f"throughput is back after {back:.2f} s only")
    return back


# -- steady

FLAT = 0.05
SAMPLES = 100
MOST_SEGMENTS = 32
MEMORY = 32 << 20
"""Bytes of the engine for batches and shared chunks: so few that they are full in the first tenth.
At the default, the chunks of the demo's chips take 40 minutes to fill their part."""


def goroutines(address: str) -> int:
    """Returns the number of the engine's goroutines, without the one that answers."""
    with urllib.request.urlopen(f"http://{address}/metrics", timeout=10) as f:
        found = re.search(r"^go_goroutines (\d+)", f.read().decode(), re.MULTILINE)
    if found is None:
        raise SoakError("the engine does not count its goroutines")
    return int(found[1]) - 1


def descriptors(pid: int | str) -> tuple[int, int]:
    """Returns how many files a process has open: those of shared memory, and the others."""
    shared = others = 0
    for fd in Path(f"/proc/{pid}/fd").iterdir():
        try:
            name = os.readlink(fd)
        except OSError:
            continue  # the descriptor of the directory itself
        if name.startswith("/memfd:"):
            shared += 1
        else:
            others += 1
    return shared, others


@contextmanager
def watched(folder: Path, data: Path) -> Iterator[tuple[Server, str]]:
    """An engine with metrics, and the address of the metrics."""
    log = folder / "steady.log"
    with open(log, "wb") as err:
        server = Server(
            folder / "steady",
            data,
            "--metrics",
            "127.0.0.1:0",
            "--insecure",
            "--log-level",
            "info",
            f"--memory={MEMORY}",
            stderr=err,
        )
        try:
            found = re.search(r"msg=metrics address=(\S+)", log.read_text())
            if found is None:
                raise SoakError("the engine does not say where its metrics are")
            yield server, found[1]
        finally:
            server.kill()


def steady(data: Path, steps: int, folder: Path) -> None:
    """Takes steps, and measures what they leave behind."""
    if not Path("/proc/self/fd").is_dir():
        print("steady: left out, there is no /proc")
        return
    options: dict[str, Any] = {
        "batch_size": 8, "window": chaski.RandomWindow(16, per_asset=100),
        "fields": {"image": chaski.Field(pattern="images/{id}.tif", dtype="float32")},
        "engine": chaski.Engine(ledger=folder / "ledger"),
    }  # fmt: skip
    with watched(folder, data) as (server, address):
        with chaski.connect(server.target, data, **options) as loader:
            memory: list[tuple[float, float]] = []
            base: dict[str, int] = {}
            pid = server.process.pid
            every, n = max(steps // SAMPLES, 1), 0
            start = time.monotonic()
            while n < steps:
                for _ in loader:
                    n += 1
                    if n % every == 0:
                        memory.append((memory_mb(pid), memory_mb("self")))
                        if n <= steps // 10:
                            now = counts(pid, address)
                            base = {k: max(v, base.get(k, 0)) for k, v in now.items()}
                        else:
                            same(base, pid, address)
                        engine, trainer = memory[-1]
                        progress(f"{n} steps, engine {engine:.0f} MB, trainer {trainer:.0f} MB")
                    if n == steps:
                        break
        progress("")
        seconds = time.monotonic() - start
    print(f"steady: {n} steps of {loader.epoch + 1} epochs in {seconds:.0f} s; at most {base}")
    for name, values in zip(("engine", "trainer"), zip(*memory, strict=True), strict=True):
        tenth = max(len(values) // 10, 1)
        warm = statistics.median(values[tenth : 2 * tenth])
        late = statistics.median(values[-tenth:])
        print(f"  {name}: {warm:.1f} MB after the first tenth, {late:.1f} MB in the last")
        if late > warm * (1 + FLAT):
            raise SoakError(f"the {name} grew from {warm:.1f} to {late:.1f} MB")
    line = [chaski._engine.find_binary(), "ledger", "check", f"--epochs={loader.epoch}"]
    out = subprocess.run([*line, folder / "ledger"], capture_output=True, text=True, check=False)
    if out.returncode != 0:
        raise SoakError(out.stderr)


def counts(pid: int, address: str) -> dict[str, int]:
    """Returns what the engine and this process hold, except segments of shared memory.

    Those are one for every batch that is somewhere on its way: few, and not always as many.
    """
    segments, engine = descriptors(pid)
    mine, trainer = descriptors("self")
    if max(segments, mine) > MOST_SEGMENTS:
        raise SoakError(f"{segments} segments of shared memory, {mine} of them here")
    return {
        "goroutines": goroutines(address),
        "engine descriptors": engine,
        "trainer descriptors": trainer,
        "threads": threading.active_count(),
    }


def same(base: dict[str, int], pid: int, address: str) -> None:
    """Waits until no figure exceeds the maximum of the first tenth."""
    for _ in range(100):
        now = counts(pid, address)
        if all(now[k] <= base[k] for k in base):
            return
        time.sleep(0.05)
    raise SoakError(f"counts were {base}, and are {now}")


# --


def duration(text: str) -> float:
    """Parses 90s, 10m or 1h into seconds."""
    m = re.fullmatch(r"(\d+)([smh])", text)
    if m is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not like 90s, 10m or 1h")
    return int(m[1]) * {"s": 1, "m": 60, "h": 3600}[m[2]]


PARTS = ("run", "histories", "servers", "steady")


def main() -> int:
    """Parses the command line, and runs the parts."""
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("--only", choices=PARTS, action="append", help="a part; repeatable")
    p.add_argument("--time", type=duration, default="10m")
    p.add_argument("--histories", type=int, default=50)
    p.add_argument("--steps", type=int, default=100_000)
    p.add_argument("--data", type=Path, default=Path(".demo/train"))
    args = p.parse_args()
    if not args.data.is_dir():
        p.error(f"there is no {args.data}: make demo writes it")
    folder = Path(tempfile.mkdtemp(prefix="soak-"))
    data = args.data.resolve()
    parts = {
        "run": lambda: run(data, args.time, folder),
        "histories": lambda: histories(data, args.histories, folder),
        "servers": lambda: servers(data, folder),
        "steady": lambda: steady(data, args.steps, folder),
    }
    try:
        for name in args.only or PARTS:
            parts[name]()
    except (SoakError, chaski.Error) as e:
        print(f"\nsoak: FAILED: {e}", file=sys.stderr)
        return 1
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print("soak: PASSED")
    return 0


if __name__ == "__main__":
    sys.exit(main())
