"""Cuts the power of a disk while something writes to it, and looks at what is there afterwards.

    sudo tools/soak_disk.py [--rounds 1000] [--seed 1] [--only WRITER ...] [--data FOLDER]

Every round mounts a small ext4 file system in a file, has one writer replace an old result by a new
one, and shuts the file system down at a random moment, as a failing disk or power does: what was
not synced is lost. After mounting again, the result is the old one or the new one, whole; if the
writer had said that it was done, it is the new one. Shards and a run of `make` that were cut are
gone on with, and end as if nothing had happened. The moments of every other round lie between the
first change to the disk and the end, those of the others anywhere in the run.

The writers are those of tools/soak_writers.py: all commands that write, and the Python package. A
table of what they left is printed at the end.

Needs root on Linux, for mount and for the ioctl that shuts a file system down. Nothing outside of
a temporary folder is written to. Exit status 1 and one line say what failed; the seed repeats it.
"""

from __future__ import annotations

import argparse
import fcntl
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from soak_writers import ROOT, Data, Unreadable, Writer, every, grown, single

# _IOR('X', 125, __u32), which ext4 and xfs have, with the flag that drops the journal's tail too.
SHUTDOWN, NO_LOG_FLUSH = 0x8004587D, (2).to_bytes(4, sys.byteorder)
LONGEST = 120.0  # seconds that a writer may take; it takes one on an idle machine


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

    def used(self) -> tuple[int, int]:
        """What changes with a new file, and with a block that a file will need."""
        s = os.statvfs(self.at)
        return s.f_ffree, s.f_bfree

    def cut(self) -> None:
        """Shuts it down: what is not on it now never gets there."""
        fd = os.open(self.at, os.O_RDONLY)
        try:
            fcntl.ioctl(fd, SHUTDOWN, NO_LOG_FLUSH)
        finally:
            os.close(fd)


@dataclass
class Known:
    """What is known of a writer: where its results are kept, what they look like, and its time."""

    kept: Path
    old: bytes
    new: bytes
    seconds: float
    changing: float  # from the first change to the end


def begin(disk: Disk, kept: Path) -> Path:
    """Mounts a new disk with the old result, and returns the place of the result."""
    disk.make()
    disk.mount()
    out = disk.at / "result"
    if (kept / "old").is_dir():
        shutil.copytree(kept / "old", out, symlinks=True)
    elif (kept / "old").exists():
        shutil.copy(kept / "old", out)
    subprocess.run(["sync", "-f", disk.at], check=True)
    return out


def changed(disk: Disk, before: tuple[int, int], run: subprocess.Popen[bytes]) -> None:
    """Waits for the first change to the disk, or for the end of the writer."""
    end = time.monotonic() + LONGEST
    while disk.used() == before and run.poll() is None and time.monotonic() < end:
        time.sleep(0.0005)


def learn(w: Writer, disk: Disk, kept: Path) -> Known:
    """Writes the old and the new result once, the latter to the disk."""
    print(f"soak_disk: {w.name}", file=sys.stderr, flush=True)
    kept.mkdir()
    w.old(kept / "old")
    out = begin(disk, kept)
    old, before, start = w.view(out), disk.used(), time.monotonic()
    disk.unmount()
    out = begin(disk, kept)  # a view may go on with what was cut
    run = w.start(out)
    changed(disk, before, run)
    first = time.monotonic()
    if run.wait(LONGEST) not in (0, w.fine):
        w.write(out)  # which says why
    end = time.monotonic()
    if out.is_dir():
        shutil.copytree(out, kept / "new")
    new = w.view(out)
    disk.unmount()
    if not new:
        sys.exit(f"soak_disk: {w.name} wrote nothing")
    return Known(kept, old, new, end - start, end - first)


def right(w: Writer, got: bytes, k: Known, out: Path, done: bool) -> bool:
    """Whether a result after a cut is one that is promised."""
    if got == k.new or (got == k.old and not done):
        return True
    if w.grows and not done:
        return grown(got, k.old, k.new)
    # Of several files each is replaced by itself.
    return w.each and not done and single(out, k.kept)


def one(w: Writer, disk: Disk, k: Known, late: bool, share: float) -> str:
    """One round; returns what became of the result: old, new, some, or what is wrong."""
    out = begin(disk, k.kept)
    before = disk.used()
    run = w.start(out)
    if late:
        changed(disk, before, run)
    try:
        done = run.wait(timeout=share * (k.changing if late else k.seconds)) in (0, w.fine)
    except subprocess.TimeoutExpired:
        done = False
    disk.cut()
    run.kill()
    run.wait()
    disk.unmount()
    disk.mount()
    try:
        got = w.view(out)
        if not right(w, got, k, out, done):
            return f"neither old nor new (done: {done}, {len(got)} bytes)"
        return "new" if got == k.new else "old" if got == k.old else "some"
    except Unreadable as e:
        return f"cannot be read (done: {done}): {e}"
    finally:
        disk.unmount()


def table(writers: list[Writer], counts: Counter[tuple[str, str]]) -> str:
    """The counts as Markdown."""
    lines = ["| writer | old | some | new |", "|---|---:|---:|---:|"]
    for w in writers:
        cells = (f" {counts[w.name, what] or ''}".rstrip() for what in ("old", "some", "new"))
        lines.append(f"| {w.name} |{' |'.join(cells)} |")
    return "\n".join(lines)


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
    rng, counts, failed = random.Random(o.seed), Counter[tuple[str, str]](), 0
    with tempfile.TemporaryDirectory(prefix="chaski-soak-disk-") as name:
        tmp = Path(name)
        disk = Disk(tmp / "disk", tmp / "at")
        data = Data.make(tmp, o.data, disk.at / "result")
        writers = [w for w in every(data) if not o.only or w.name in o.only]
        try:
            known = {
                w.name: learn(w, disk, tmp / w.name.replace(" ", "-").replace("/", "-"))
                for w in writers
            }
            for i in range(o.rounds):
                w = writers[i % len(writers)]
                late = i // len(writers) % 2 == 1
                result = one(w, disk, known[w.name], late, rng.uniform(0, 1.6))
                if result not in ("old", "new", "some"):
                    print(
                        f"soak_disk: FAILED: {w.name}, round {i} of seed {o.seed}: {result}",
                        flush=True,
                    )
                    failed += 1
                    result = "wrong"
                counts[w.name, result] += 1
                if sys.stderr.isatty():
                    print(f"\r{i + 1} of {o.rounds}", end="", file=sys.stderr)
        finally:
            if disk.at.is_mount():
                disk.unmount()
    print(table(writers, counts))
    passed = "PASSED" if failed == 0 else f"FAILED: {failed} of them"
    print(f"soak_disk: {passed}: {o.rounds} cuts of {len(writers)} writers, seed {o.seed}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
