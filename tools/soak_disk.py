"""Cuts the power of a disk while the command writes to it, and looks at what is there afterwards.

    sudo tools/soak_disk.py [--rounds 1000] [--seed 1] [--only WRITER ...] [--data FOLDER]

Every round mounts a small ext4 file system in a file, has one writer of the command replace an old
result by a new one, and shuts the file system down at a random moment, as a failing disk or power
does: what was not synced is lost. After mounting again, the result is the old one or the new one,
whole; if the command had said that it was done, it is the new one. A job that was cut is finished
by `job local` and merged as if nothing had happened. Writers: convert (TOG, rumi, array), index,
stats, view, extract, consolidate, pack (ZIP, folder, parts), append, make, job (plan, local,
merge).

Needs root on Linux, for mount and for the ioctl that shuts a file system down. Nothing outside of
a temporary folder is written to. Exit status 1 and one line say what failed; the seed repeats it.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CHASKI = os.environ.get("CHASKI_BIN", str(ROOT / "bin" / "chaski"))
# _IOR('X', 125, __u32), which ext4 and xfs have, with the flag that drops the journal's tail too.
SHUTDOWN, NO_LOG_FLUSH = 0x8004587D, (2).to_bytes(4, sys.byteorder)
# Chips for the old result, and one more for the new one.
CHIPS = 6


def chaski(*args: str | Path) -> bytes:
    """Runs the command and returns what it printed."""
    run = subprocess.run([CHASKI, *args], capture_output=True)
    if run.returncode != 0:
        sys.exit(f"soak_disk: chaski {' '.join(map(str, args))}: {run.stderr.decode().strip()}")
    return run.stdout


def files(path: Path) -> bytes:
    """What is in a file, or in the files of a folder that are not hidden; empty for none."""
    if path.is_dir():
        inside = sorted(p for p in path.iterdir() if not p.name.startswith("."))
        return b"".join(p.name.encode() + b"\n" + files(p) for p in inside)
    return path.read_bytes() if path.exists() else b""


def cells(path: Path) -> bytes:
    """The hashes of an array's cells; empty if there is no array."""
    return chaski("array", path) if path.exists() else b""


def catalog(path: Path) -> bytes:
    """The rows and columns of a catalog; empty if there is none. Its size depends on its path."""
    return chaski("info", path).split(b"\n", 1)[1] if path.exists() else b""


@dataclass(frozen=True)
class Writer:
    """A command that replaces a result.

    Attributes:
        name: what a failure is called by.
        old: makes the old result at a path, if there is to be one.
        new: arguments that make the new one.
        view: what is compared.
        each: every file of the result is old or new by itself.
    """

    name: str
    old: Callable[[Path], None]
    new: Callable[[Path], list[str | Path]]
    view: Callable[[Path], bytes] = files
    each: bool = False


def samples(path: Path) -> bytes:
    """The rows of a container, and that each of its bytes is right; empty if there is none."""
    if not path.exists():
        return b""
    chaski("verify", path)
    return chaski("ls", path).replace(os.fsencode(path), b"")


def finished(path: Path) -> bytes:
    """The merged output of a job whose other shards are done now; empty if there is no job.

    `job plan` writes job.json last, and begins anew in a folder that has none.
    """
    if not (path / "job.json").exists():
        return b""
    with tempfile.TemporaryDirectory(prefix="chaski-soak-job-") as name:
        job, out = Path(name) / "job", Path(name) / "out"
        shutil.copytree(path, job)
        chaski("job", "local", job)
        chaski("job", "merge", "-o", out, job)
        return out.read_bytes()


COLLECTION = {
    "id": "soak",
    "dataset_version": "1.0",
    "description": "Chips",
    "licenses": ["CC-BY-4.0"],
    "providers": [{"name": "chaski"}],
    "tasks": ["segmentation"],
}


def made(tmp: Path, first: Path, second: Path) -> list[Writer]:
    """The writers of containers and jobs."""
    about = tmp / "about.json"
    about.write_text(json.dumps(COLLECTION))
    more = tmp / "more"  # other ids, to append
    more.mkdir()
    for chip in second.iterdir():
        shutil.copy(chip, more / f"more-{chip.name}")

    def pack(source: Path, *form: str) -> Callable[[Path], list[str | Path]]:
        return lambda out: ["pack", "--quiet", *form, "-o", out, "--collection", about, source]

    def make(source: Path) -> Callable[[Path], list[str | Path]]:
        windows = {"kind": "grid", "size": 64, "stride": 64}
        recipe = tmp / f"{source.name}.json"
        whole = {"collection": COLLECTION, "source": str(source), "windows": windows}
        recipe.write_text(json.dumps(whole | {"fields": [{"name": "image"}]}))
        return lambda out: ["make", "--quiet", "--form", "zip", "-o", out, recipe]

    def plan(out: Path) -> list[str | Path]:
        return ["job", "plan", "stats", "-o", out, "--shard-items", "1", first]

    def run(writes: Callable[[Path], list[str | Path]]) -> Callable[[Path], None]:
        return lambda out: void(chaski(*writes(out)))

    job = tmp / "job"
    chaski(*plan(job))
    chaski("job", "local", job)
    parts = pack(first, "--part-size", "400kB")
    return [
        Writer("pack a ZIP", run(pack(first, "--form", "zip")), pack(second, "--form", "zip")),
        Writer("pack a folder", lambda out: None, pack(first, "--form", "folder")),
        Writer("pack parts", lambda out: None, parts, samples),
        Writer("append", run(parts), lambda out: ["append", "--quiet", out, more], samples),
        Writer("make", run(make(first)), make(second)),
        Writer("job plan", lambda out: None, plan, finished),
        Writer("job local", run(plan), lambda out: ["job", "local", out], finished),
        Writer("job merge", lambda out: None, lambda out: ["job", "merge", "-o", out, job]),
    ]


def void(_: object) -> None:
    """Drops what a command printed."""


def writers(first: Path, second: Path, container: str, array: Path) -> list[Writer]:
    """All writers. Most go from a folder of chips to another one of the same names."""

    def convert(to: str, source: Path) -> Callable[[Path], list[str | Path]]:
        return lambda out: ["convert", "--to", to, "--overwrite", "-o", out, source]

    def replaces(
        name: str,
        command: Callable[[Path], Callable[[Path], list[str | Path]]],
        view: Callable[[Path], bytes] = files,
        each: bool = False,
    ) -> Writer:
        """A writer that makes both results, from the first and from the second chips."""
        return Writer(
            name, lambda out: void(chaski(*command(first)(out))), command(second), view, each
        )

    return [
        replaces("convert to TOG", lambda chips: convert("tog", chips), each=True),
        replaces("convert to rumi", lambda chips: convert("rumi", chips), each=True),
        replaces("convert to an array", lambda chips: convert("tiledb", chips), cells),
        replaces(
            "index",
            lambda chips: lambda out: ["index", "--format", "parquet", "-o", out, chips],
            catalog,
        ),
        replaces("stats", lambda chips: lambda out: ["stats", "-o", out, chips]),
        replaces("view", lambda chips: lambda out: ["view", "-o", out, chips / "0.tif"]),
        Writer("extract", lambda out: None, lambda out: ["extract", "-o", out, container]),
        Writer(
            "consolidate",
            lambda out: void(shutil.copytree(array, out)),
            lambda out: ["consolidate", "--remove", out],
            cells,
        ),
    ]


@dataclass
class Disk:
    """An ext4 file system in a file."""

    image: Path
    at: Path

    def make(self) -> None:
        """Makes it anew."""
        with open(self.image, "wb") as f:
            f.truncate(64 << 20)
        subprocess.run(["mkfs.ext4", "-q", "-F", self.image], check=True)
        self.at.mkdir(exist_ok=True)

    def mount(self) -> None:
        """Mounts it; the journal is replayed if it was shut down."""
        subprocess.run(["mount", "-o", "loop", self.image, self.at], check=True)

    def unmount(self) -> None:
        """Unmounts it. A killed process may hold it for a moment."""
        for _ in range(50):
            if subprocess.run(["umount", self.at], capture_output=True).returncode == 0:
                return
            time.sleep(0.1)
        sys.exit(f"soak_disk: {self.at} cannot be unmounted")

    def cut(self) -> None:
        """Shuts it down: what is not on it now never gets there."""
        fd = os.open(self.at, os.O_RDONLY)
        try:
            fcntl.ioctl(fd, SHUTDOWN, NO_LOG_FLUSH)
        finally:
            os.close(fd)


def expected(w: Writer, folder: Path) -> tuple[bytes, bytes, float]:
    """What the old and the new result look like, and how long the new one takes."""
    out = folder / "result"
    w.old(out)
    old = w.view(out)
    start = time.monotonic()
    chaski(*w.new(out))
    return old, w.view(out), time.monotonic() - start


def right(w: Writer, got: bytes, old: bytes, new: bytes, out: Path, done: bool, kept: Path) -> bool:
    """Whether a result after a cut is one that is promised."""
    if got == new or (got == old and not done):
        return True
    if not w.each or done:
        return False
    # Of several files each is replaced by itself.
    return all(
        files(p) in (files(kept / "old" / p.name), files(kept / "new" / p.name))
        for p in out.iterdir()
        if not p.name.startswith(".")
    )


def one(w: Writer, disk: Disk, kept: Path, moment: float, old: bytes, new: bytes) -> str:
    """One round; returns what became of the result: old, new, some, or what is wrong."""
    disk.make()
    disk.mount()
    out = disk.at / "result"
    if (kept / "old").is_dir():
        shutil.copytree(kept / "old", out)
    elif (kept / "old").exists():
        shutil.copy(kept / "old", out)
    os.sync()
    run = subprocess.Popen(
        [CHASKI, *w.new(out)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        done = run.wait(timeout=moment) == 0
    except subprocess.TimeoutExpired:
        done = False
    disk.cut()
    run.kill()
    run.wait()
    disk.unmount()
    disk.mount()
    try:
        got = w.view(out)
        if not right(w, got, old, new, out, done, kept):
            return f"neither old nor new (done: {done}, {len(got)} bytes)"
        return "new" if got == new else "old" if got == old else "some"
    except SystemExit as e:
        return f"cannot be read (done: {done}): {e}"
    finally:
        disk.unmount()


def main() -> int:
    """Runs the rounds."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", nargs="*", metavar="WRITER", help="by the names that are printed")
    parser.add_argument("--data", type=Path, default=ROOT / ".demo" / "train" / "images")
    o = parser.parse_args()
    if os.geteuid() != 0 or sys.platform != "linux":
        sys.exit("soak_disk: needs root on Linux, to mount a file system and to shut it down")
    chips = sorted(o.data.glob("*.tif"))[: 2 * CHIPS + 1]
    if len(chips) < 2 * CHIPS + 1:
        sys.exit(f"soak_disk: {o.data} needs {2 * CHIPS + 1} chips; make demo writes some")
    rng, counts = random.Random(o.seed), Counter[str]()
    with tempfile.TemporaryDirectory(prefix="chaski-soak-disk-") as name:
        tmp = Path(name)
        first, second = tmp / "first", tmp / "second"
        for i, chip in enumerate(chips):
            to = first / f"{i}.tif" if i < CHIPS else second / f"{i - CHIPS}.tif"
            to.parent.mkdir(exist_ok=True)
            shutil.copy(chip, to)
        container = f"{ROOT / 'testdata' / 'coast' / 'coast.tacozip'}::tile_00"
        array = ROOT / "testdata" / "tiledb" / "arrays" / "dense_1d_gaps"
        all_writers = writers(first, second, container, array) + made(tmp, first, second)
        all_writers = [w for w in all_writers if not o.only or w.name in o.only]
        known = {}
        for w in all_writers:
            kept = tmp / w.name.replace(" ", "-")
            kept.mkdir()
            (kept / "try").mkdir()
            known[w.name] = (kept, *expected(w, kept / "try"))
            w.old(kept / "old")
            w.old(kept / "new")
            chaski(*w.new(kept / "new"))
        disk = Disk(tmp / "disk", tmp / "at")
        for i in range(o.rounds):
            w = all_writers[i % len(all_writers)]
            kept, old, new, seconds = known[w.name]
            result = one(w, disk, kept, rng.uniform(0, 1.6 * seconds), old, new)
            if result not in ("old", "new", "some"):
                print(f"soak_disk: FAILED: {w.name}, round {i} of seed {o.seed}: {result}")
                return 1
            counts[f"{w.name}: {result}"] += 1
            if sys.stderr.isatty():
                print(f"\r{i + 1} of {o.rounds}", end="", file=sys.stderr)
    for k in sorted(counts):
        print(f"soak_disk: {k} {counts[k]}")
    print(f"soak_disk: PASSED: {o.rounds} cuts, seed {o.seed}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
