"""The writers whose power soak_disk.py cuts: every command and call that writes to stay."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import struct
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CHASKI = os.environ.get("CHASKI_BIN", str(ROOT / "bin" / "chaski"))
os.environ["CHASKI_BIN"] = CHASKI  # which the Python package runs
PYTHON = ROOT / ".venv" / "bin" / "python"
# Chips for the old result, and one more for the new one.
CHIPS = 6

View = Callable[[Path], bytes]
Arguments = list[str | Path]


class Unreadable(Exception):
    """A command that reads a result failed."""


def run(program: list[str | Path], *args: str | Path, fine: int = 0) -> bytes:
    """Runs a program and returns what it printed. The exit status `fine` is none of a failure."""
    ran = subprocess.run([*program, *args], capture_output=True)
    if ran.returncode not in (0, fine):
        what = " ".join(map(str, args))
        raise Unreadable(f"{Path(program[0]).name} {what}: {ran.stderr.decode().strip()}")
    return ran.stdout


def chaski(*args: str | Path, fine: int = 0) -> bytes:
    """Runs the command and returns what it printed."""
    return run([CHASKI], *args, fine=fine)


def files(path: Path) -> bytes:
    """What is in a file, or in the files of a folder that are not hidden; empty for none."""
    if path.is_dir():
        inside = sorted(p for p in path.iterdir() if not p.name.startswith("."))
        return b"".join(p.name.encode() + b"\n" + files(p) for p in inside)
    return path.read_bytes() if path.exists() else b""


def listed(path: Path) -> bytes:
    """The files that a list of bad samples names, one on a line; empty if there is none."""
    if not path.exists():
        return b""
    messages = set()
    for line in path.read_bytes().splitlines():
        with contextlib.suppress(ValueError):  # of a writer that was killed
            messages.add(json.loads(line)["message"])
    return "".join(f"{m}\n" for m in sorted(messages)).encode()


def merged(path: Path, *words: str | Path) -> bytes:
    """The output of a command in two shards, after all that is left of it is done now."""
    if (path / "out").is_file() and not list(path.glob("out.part-*")):
        return files(path / "out")
    for part in ("--shard=0/2", "--shard=1/2", "--merge=2"):
        chaski(*words, part, "-o", path / "out")
    return files(path / "out")


def grown(got: bytes, old: bytes, new: bytes) -> bool:
    """Whether a list has its old lines, and of those that were appended some, each whole."""
    lines = set(got.splitlines())
    return set(old.splitlines()) <= lines <= set(new.splitlines())


def single(out: Path, kept: Path, ends: str = "") -> bool:
    """Whether each file of a folder whose name ends so is old or new by itself."""
    return all(
        files(p) in (files(kept / "old" / p.name), files(kept / "new" / p.name))
        for p in out.iterdir()
        if not p.name.startswith(".") and p.name.endswith(ends)
    )


@dataclass(frozen=True)
class Writer:
    """A command that replaces a result.

    Attributes:
        name: what a failure is called by.
        old: makes the old result at a path, if there is to be one.
        new: arguments that make the new one.
        view: what is compared.
        each: every file of the result is old or new by itself.
        grows: the result is a list that is appended to.
        program: what is run.
        fine: exit status beside 0 that says that the result is there.
    """

    name: str
    old: Callable[[Path], None]
    new: Callable[[Path], Arguments]
    view: View = files
    each: bool = False
    grows: bool = False
    program: list[str | Path] = field(default_factory=lambda: [CHASKI])
    fine: int = 0

    def write(self, out: Path) -> None:
        """Makes the new result."""
        ran = subprocess.run([*self.program, *self.new(out)], capture_output=True)
        if ran.returncode not in (0, self.fine):
            sys.exit(f"soak_disk: {self.name}: {ran.stderr.decode().strip()}")

    def start(self, out: Path) -> subprocess.Popen[bytes]:
        """Begins to make the new result."""
        return subprocess.Popen(
            [*self.program, *self.new(out)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )


COLLECTION = {
    "id": "soak",
    "dataset_version": "1.0",
    "description": "Chips",
    "licenses": ["CC-BY-4.0"],
    "providers": [{"name": "chaski"}],
    "tasks": ["segmentation"],
    "curators": [{"name": "chaski"}],
}


def nothing(out: Path) -> None:
    """There is no old result."""


@dataclass(frozen=True)
class Data:
    """What the writers read: twice the same names with other content, for the old and the new.

    Attributes:
        chips: folders of chips.
        pairs: folders of pairs, a/{id}.tif and b/{id}.tif, which do not lie on each other.
        bad: folders of chips, of which the first one is damaged, or two.
        windows: .npy files of predictions for a chip.
        tmp: where writers put what they read.
        result: where the disk has the result.
    """

    chips: tuple[Path, Path]
    pairs: tuple[Path, Path]
    bad: tuple[Path, Path]
    windows: tuple[Path, Path]
    tmp: Path
    result: Path

    @staticmethod
    def make(tmp: Path, source: Path, result: Path) -> Data:
        """Copies chips of a folder."""
        chips = sorted(source.glob("*.tif"))[: 2 * CHIPS + 1]
        if len(chips) < 2 * CHIPS + 1:
            sys.exit(f"soak_disk: {source} needs {2 * CHIPS + 1} chips; make demo writes some")

        def both(name: str) -> tuple[Path, Path]:
            return tmp / f"first-{name}", tmp / f"second-{name}"

        data = Data(both("chips"), both("pairs"), both("bad"), both("windows.npy"), tmp, result)
        for k in range(2):
            own = chips[:CHIPS] if k == 0 else chips[CHIPS:]
            for folder in (data.chips[k], data.pairs[k] / "a", data.pairs[k] / "b", data.bad[k]):
                folder.mkdir(parents=True)
            for i, chip in enumerate(own):
                shutil.copy(chip, data.chips[k] / f"{i}.tif")
            for i in range(3):
                shutil.copy(own[i], data.pairs[k] / "a" / f"{i}.tif")
                shutil.copy(own[i + 1], data.pairs[k] / "b" / f"{i}.tif")
                # The same chips in both, so that what is wrong with the first one stays so.
                shutil.copy(chips[i], data.bad[k] / f"{i}.tif")
            for i in range(k + 1):
                os.truncate(data.bad[k] / f"{i}.tif", 20_000)
            write_npy(data.windows[k], k)
        return data


def write_npy(path: Path, value: int) -> None:
    """Writes predictions of two bands for four windows of 64 by 64 pixels."""
    n = 4 * 2 * 64 * 64
    about = "{'descr': '<f4', 'fortran_order': False, 'shape': (4, 2, 64, 64), }"
    head = about.ljust(117) + "\n"  # with the 10 bytes before it a multiple of 64
    values = struct.pack(f"<{n}f", *((i * (7 + value)) % 251 for i in range(n)))
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + values)


def replaces(
    name: str,
    command: Callable[[Path], Callable[[Path], Arguments]],
    sources: tuple[Path, Path],
    view: View = files,
    each: bool = False,
    grows: bool = False,
    program: list[str | Path] | None = None,
    fine: int = 0,
) -> Writer:
    """A writer that makes both results, from the first source and from the second."""
    program = program or [CHASKI]

    def old(out: Path) -> None:
        run(program, *command(sources[0])(out), fine=fine)

    return Writer(name, old, command(sources[1]), view, each, grows, program, fine)


def of_files(d: Data) -> list[Writer]:
    """The writers of rasters, arrays, tables, statistics and pictures."""
    pair = ["--field", "image=a/{id}.tif", "--field", "mask=b/{id}.tif"]
    flat = ROOT / "testdata" / "coast" / "flat.tacozip"
    nested = ROOT / "testdata" / "coast" / "coast.tacozip"

    def out(*args: str | Path, last: str = ".") -> Callable[[Path], Callable[[Path], Arguments]]:
        """A command whose output is -o and whose source comes last."""
        return lambda source: lambda to: [*args, "-o", to, source / last if last != "." else source]

    def convert(*args: str | Path) -> Callable[[Path], Callable[[Path], Arguments]]:
        return out("convert", "--overwrite", "--to", *args)

    def cube(source: Path) -> Callable[[Path], Arguments]:
        steps = ["--time", "2024-05-06", "--time", "2024-05-16"]
        stack: Arguments = ["convert", "--to", "rumi3", "--overwrite", "--stack", *steps, "-o"]
        return lambda to: [*stack, to, source / "0.tif", source / "1.tif"]

    def paste(windows: Path) -> Callable[[Path], Arguments]:
        like: Arguments = ["paste", "--like", d.chips[0] / "0.tif", "--window", "64", "--stride"]
        return lambda to: [*like, "64", "-o", to, windows]

    return [
        replaces("convert to TOG", convert("tog"), d.chips, each=True),
        replaces("convert to rumi", convert("rumi"), d.chips, each=True),
        replaces("convert one file", out("convert", "--overwrite", last="0.tif"), d.chips),
        replaces("convert a stack to rumi3", cube, d.chips),
        replaces("index", out("index", "--format", "parquet"), d.chips),
        replaces("index --resume", out(*RESUME), d.chips),
        replaces("index of pairs", out("index", *pair), d.pairs),
        replaces("index as text", out("index", last="0.tif"), d.chips),
        replaces("stats", out("stats"), d.chips),
        replaces("stats --sampling", out("stats", "--sampling"), d.chips),
        replaces("paste", paste, d.windows),
        Writer("extract a file", nothing, lambda to: ["extract", "-o", to, f"{flat}::chip_00.tif"]),
        Writer("extract a folder", nothing, lambda to: ["extract", "-o", to, f"{nested}::tile_00"]),
    ]


RESUME = ("index", "--format", "parquet", "--resume")


def of_containers(d: Data) -> list[Writer]:
    """The writers of containers."""
    about, more = d.tmp / "about.json", d.tmp / "more"
    about.write_text(json.dumps(COLLECTION))
    more.mkdir()
    for chip in d.chips[1].iterdir():  # other ids
        shutil.copy(chip, more / f"more-{chip.name}")

    def pack(*form: str) -> Callable[[Path], Callable[[Path], Arguments]]:
        own: Arguments = ["pack", "--quiet", *form, "--collection", about, "-o"]
        return lambda source: lambda to: [*own, to, source]

    def table(*columns: str) -> Callable[[Path], Callable[[Path], Arguments]]:
        def made(source: Path) -> Callable[[Path], Arguments]:
            rows = d.tmp / f"{source.name}.csv"
            rows.write_text("id,name\n" + "".join(f"{i},{source.name}\n" for i in range(CHIPS + 1)))
            return lambda to: [*pack(*columns, "--metadata", str(rows))(source)(to)]

        return made

    def indexed(name: str, kind: str) -> Writer:
        """An index of two ZIPs that replaces that of one."""

        def old(to: Path) -> None:
            to.mkdir()
            for k, chips in enumerate((d.chips[0], more)):
                chaski(*pack("--form", "zip")(chips)(to / f"{k}.tacozip"))
            chaski("pack", "--quiet", "-o", to / kind, to / "0.tacozip")

        return Writer(
            name,
            old,
            lambda to: ["pack", "--quiet", "-o", to / kind, to / "0.tacozip", to / "1.tacozip"],
            lambda to: files(to / kind) if (to / kind).is_file() else folder(to / kind),
        )

    def folder(path: Path) -> bytes:
        """A folder whose name begins with a point."""
        inside = sorted(path.iterdir()) if path.exists() else []
        return b"".join(p.name.encode() + files(p) for p in inside)

    return [
        replaces("pack a ZIP", pack("--form", "zip"), d.chips),
        replaces("pack with columns", table("--form", "zip"), d.chips),
        Writer("pack a folder", nothing, pack("--form", "folder")(d.chips[1])),
        indexed("pack .tacocat", ".tacocat"),
        indexed("pack __TACOCAT__", "__TACOCAT__"),
        indexed("pack TACOLLECTION.json", "TACOLLECTION.json"),
    ]


def of_shards(d: Data) -> list[Writer]:
    """The writers of parts, and those that join them."""

    def both(name: str, *words: str | Path) -> list[Writer]:
        def view(path: Path) -> bytes:
            return merged(path, *words)

        def done(to: Path) -> None:
            to.mkdir()
            for part in ("--shard=0/2", "--shard=1/2"):
                chaski(*words, part, "-o", to / "out")

        return [
            Writer(
                f"{name} --shard",
                Path.mkdir,
                lambda to: [*words, "--shard=1/2", "-o", to / "out"],
                view,
            ),
            Writer(
                f"{name} --merge", done, lambda to: [*words, "--merge=2", "-o", to / "out"], view
            ),
        ]

    chips = d.chips[0]
    return [
        *both("stats", "stats", chips),
        *both("index", "index", "--format=parquet", "--absolute", chips),
        *both("weights", "stats", "--sampling", chips),
        *both("convert", "convert", "--overwrite", chips),
    ]


def of_python(d: Data) -> list[Writer]:
    """The writers of the Python package."""

    def python(name: str) -> Callable[[Path], Callable[[Path], Arguments]]:
        return lambda source: lambda to: [name, to, source]

    program: list[str | Path] = [PYTHON, "-W", "ignore", ROOT / "tools" / "soak_python.py"]
    return [
        *(
            replaces(f"Python {name}", python(short), d.chips, program=program)
            for short, name in (
                ("stats", "Stats.save"),
                ("rumi", "rumi.write"),
                ("paste", "paste"),
                ("ground", "paste on the ground"),
            )
        ),
        replaces("Python stac", python("stac"), d.chips, program=program),
        replaces(
            "Python quarantine list",
            python("quarantine"),
            d.bad,
            listed,
            grows=True,
            program=program,
        ),
    ]


def every(d: Data) -> list[Writer]:
    """All writers."""
    if not PYTHON.exists():
        print("soak_disk: no .venv (make env): what the Python package writes is left out")
    own = of_python(d) if PYTHON.exists() else []
    return [*of_files(d), *of_containers(d), *of_shards(d), *own]
