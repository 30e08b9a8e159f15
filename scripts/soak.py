"""Trains in pretence, for a long time, over engines that are killed and started again.

    scripts/soak.py [--time 10m] [--data .demo/train]

Three ranks share every batch of a run. Two of them use an engine that stays, one uses an engine
that is killed every few seconds and started again. Every rank now and then throws its loader away
and continues from its state in another one. Checked for every batch and epoch:

- every sample stands where `chaski.order` says, and its bytes are those of a first, unshuffled
  pass;
- the ranks' rows together are every sample of the epoch once;
- the memory of the engine that stays, and of this process, does not grow after the first epochs.

Exit status 1 and one line say what failed.
"""

from __future__ import annotations

import argparse
import gc
import itertools
import random
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import zlib
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
    """What failed."""


class Server:
    """`chaski serve` on a Unix socket."""

    def __init__(self, socket: Path, root: Path) -> None:
        """Starts it, and waits until it listens."""
        self.socket, self.root = socket, root
        self.starts = 0
        self.start()

    def start(self) -> None:
        """Starts it again."""
        self.socket.unlink(missing_ok=True)  # of one that was killed
        self.process = subprocess.Popen(
            [
                *(chaski._engine.find_binary(), "serve", "--listen", f"unix:{self.socket}"),
                *("--root", str(self.root), "--log-level", "error"),
            ],
            stdout=subprocess.PIPE,
        )
        assert self.process.stdout is not None
        if b"listen" not in self.process.stdout.readline():
            raise SoakError("the engine does not start")
        self.starts += 1

    def kill(self) -> None:
        """Ends it as a crash would."""
        self.process.kill()
        self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()

    @property
    def target(self) -> str:
        """Where it listens."""
        return f"unix:{self.socket}"


def memory_mb(pid: int | str) -> float:
    """Returns the resident memory of a process in MB; 0 where there is no /proc."""
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
    """Returns what all loaders have in common."""
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
                    retries=20,
                    **spec(shuffle=True),
                )
            except chaski.UnavailableError:  # it is being started again
                if attempt == 20:
                    raise
                time.sleep(0.2)
        raise AssertionError

    def epoch(self, epoch: int) -> list[int]:
        """Runs an epoch, and returns the positions that it was given."""
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
    """Runs epochs until the time is over."""
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


def duration(text: str) -> float:
    """Reads 90s, 10m or 1h as seconds."""
    m = re.fullmatch(r"(\d+)([smh])", text)
    if m is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not like 90s, 10m or 1h")
    return int(m[1]) * {"s": 1, "m": 60, "h": 3600}[m[2]]


def main() -> int:
    """Reads the command line, and runs."""
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("--time", type=duration, default="10m")
    p.add_argument("--data", type=Path, default=Path(".demo/train"))
    args = p.parse_args()
    if not args.data.is_dir():
        p.error(f"there is no {args.data}: make demo writes it")
    folder = Path(tempfile.mkdtemp(prefix="soak-"))
    try:
        run(args.data.resolve(), args.time, folder)
    except (SoakError, chaski.Error) as e:
        print(f"\nsoak: FAILED: {e}", file=sys.stderr)
        return 1
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print("soak: PASSED")
    return 0


if __name__ == "__main__":
    sys.exit(main())
