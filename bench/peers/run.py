"""Measures chaski side by side with other loaders of satellite-image chips in a PyTorch loop.

    python bench/peers/run.py -o report/
    python bench/peers/run.py --quick --shapes chips --peers chaski,rasterio -o report/
    python bench/peers/run.py --python /opt/py312/bin/python --imagery scenes/ --rounds 5 -o report/

It measures samples per second, processor time, memory, and how long the consumer waits: it makes a
Python environment for the loaders, cuts samples from imagery, writes them in each loader's own
format and checks that each loader yields them. Then it measures the loaders in turns, each in a
process of its own (peers.py). After each shape it writes peers.md, peers.json and peers.svg.

All loaders yield batches of normalised float32 as torch tensors. All have the same number of
workers, and at most 64 MB of decoded tiles in caches. All files are in the page cache, because the
check has read them. A loader that cannot be installed, fails, or yields other samples than were
written has a row that says so. Processor time and memory come from /proc, so only Linux has them.
"""

from __future__ import annotations

import argparse
import dataclasses
import datetime
import hashlib
import json
import math
import os
import platform
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import IO, Any

import environment
import link
import report
from environment import Interpreter
from shapes import IMAGERY, PEERS, SHAPES, Peer, Shape

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
SCRIPT, SAMPLES = HERE / "peers.py", HERE / "samples.py"
ARRAYS = "arrays"  # the shape that arrays.py measures
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "chaski" / "peers"

# Limits of time, in seconds. The row of a loader that hangs says so.
MAKE_TIME = 3600
CHECK_TIME = 1800


class WrongUsage(Exception):
    """An argument is wrong."""


class Absent(Exception):
    """Why a row has no figures: its status, and a sentence."""

    def __init__(self, status: str, why: str) -> None:
        super().__init__(f"{status}: {why}")
        self.status, self.why = status, why


def load_average() -> float:
    """Returns the load of the last minute."""
    return os.getloadavg()[0]


class Workload:
    """A shape in its folder, which made.json describes.

    Only folders with that file are ever written to or removed.
    """

    def __init__(self, options: argparse.Namespace, shape: Shape) -> None:
        self.options, self.shape = options, shape
        self.folder: Path = options.work / shape.local.name
        self.file = self.folder / "made.json"
        self.made: dict[str, Any] = {}
        self.absent: dict[str, Absent] = {}  # formats that are not written, and why

    def run(self, *command: str, timeout: float) -> str:
        """Runs a command line with the environment of the peers and returns its output."""
        scratch = tempfile.TemporaryDirectory(prefix="peers-", ignore_cleanup_errors=True)
        env = os.environ | {"CHASKI_BIN": self.options.engine, "TMPDIR": scratch.name}
        # pip compiles the modules of other loaders. The check imports chaski's, which keeps them
        # compiled: no measured process compiles a module.
        env["PYTHONDONTWRITEBYTECODE"] = ""
        env["PYTHONPATH"] = os.pathsep.join(
            filter(None, [str(self.options.python_path), os.environ.get("PYTHONPATH")])
        )
        # Files, because a pipe stays open until the last worker that has it ends.
        with scratch, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as errors:
            child = subprocess.Popen(
                command, stdout=out, stderr=errors, env=env, start_new_session=True
            )
            try:
                child.wait(timeout)
            except subprocess.TimeoutExpired:
                raise Absent("failed", f"not done after {timeout:g} s") from None
            finally:
                end_group(child)
            printed = [text(file) for file in (out, errors)]
        if child.returncode:
            last = (printed[1].splitlines() or [""])[-1][:300]  # of a traceback, the exception
            raise Absent("failed", f"exit status {child.returncode}: {last}".rstrip(": "))
        return printed[0]

    def ask(
        self, verb: str, peer: Peer | None = None, *, timeout: float, **job: Any
    ) -> dict[str, Any]:
        """Runs one step of peers.py and returns its answer."""
        job = {"verb": verb, "folder": str(self.folder)} | job
        job["shape"] = dataclasses.asdict(self.shape)
        job = {"workers": self.options.workers, "seconds": self.options.seconds} | job
        if peer is not None:
            job |= {"format": peer.form(self.shape), "loader": peer.loader}
            job |= {"transport": peer.transport, "large": peer.large, "pause": peer.pause}
        python = self.interpreter(job.get("format", ""), job.get("loader", ""))
        out = self.run(python.path, "-W", "ignore", str(SCRIPT), json.dumps(job), timeout=timeout)
        line = (out.splitlines() or [""])[-1]
        try:
            answer: dict[str, Any] = json.loads(line)
        except ValueError:
            raise Absent("failed", f"the answer {line[:80]!r} is not JSON") from None
        for status in ("missing", "failed", "wrong"):
            if status in answer:
                raise Absent(status, answer[status])
        return answer

    def interpreter(self, form: str, loader: str) -> Interpreter:
        """Returns the interpreter for a format and loader."""
        python: Interpreter = self.options.pythons[
            "rumi1" if form == "rumi1" and loader != "chaski" else "main"
        ]
        return python

    def engine(self, peer: Peer) -> str:
        """Returns the engine of a peer."""
        return str(self.options.engine)

    def imagery(self) -> list[Path]:
        """Returns files of the shape's kind of imagery, or the file that replaces them."""
        parts, stand_in = IMAGERY[self.shape.imagery]
        files = [
            path
            for folder in self.options.imagery
            for path in sorted(Path(folder).resolve().iterdir())
            if path.is_file() and any(part in path.name.lower() for part in parts)
        ]
        return files or [ROOT / "testdata" / stand_in]

    def save(self) -> None:
        """Writes what the folder holds."""
        self.file.write_text(json.dumps(self.made, indent=1))

    def prepare(self) -> None:
        """Writes the scene, statistics and signatures, unless the same ones are there."""
        files = self.imagery()
        want: dict[str, Any] = {
            "script": hashlib.sha256(SAMPLES.read_bytes()).hexdigest()[:16],
            # Samples do not depend on the size of a batch.
            "shape": dataclasses.asdict(dataclasses.replace(self.shape.local, batch=0)),
            "files": [[str(f), f.stat().st_size, int(f.stat().st_mtime)] for f in files],
        }
        if self.file.exists():
            self.made = json.loads(self.file.read_text())
            if self.made.get("imagery") and want.items() <= self.made.items():
                return
        elif self.folder.exists() and any(self.folder.iterdir()):
            raise WrongUsage(f"{self.folder}: the directory holds other files: name another --work")
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        self.made = want | {"bytes": {}}
        self.save()
        paths = [str(f) for f in files]
        imagery = self.ask("imagery", imagery=paths, timeout=MAKE_TIME)["imagery"]
        self.ask("truth", timeout=MAKE_TIME)
        self.made["imagery"] = imagery
        self.save()

    def write(self, form: str) -> None:
        """Writes a format, unless it exists or no peer needs it."""
        if form in self.made["bytes"] or not any(
            p.form(self.shape) == form and not p.hindrance(self.shape) for p in self.options.peers
        ):
            return
        python = self.interpreter(form, "")
        try:
            if form in python.missing:
                raise Absent("missing", python.missing[form])
            answer = self.ask("make", format=form, timeout=MAKE_TIME)
        except Absent as e:
            self.absent[form] = Absent(e.status, f"{form} is not written: {e.why}")
            return
        self.made["bytes"][form] = answer["bytes"]
        self.save()

    def check(self, peer: Peer) -> None:
        """Lets a peer yield an epoch and compares it with the samples that were written."""
        if why := peer.hindrance(self.shape):
            raise Absent("cannot", why)
        if (form := peer.form(self.shape)) in self.absent:
            raise self.absent[form]
        missing = self.interpreter(form, peer.loader).missing
        if peer.name in missing:
            raise Absent("missing", missing[peer.name])
        if peer.loader:  # the engine alone is the engine of a peer with Python, which is checked
            self.at_store("check", peer, slow=False, timeout=CHECK_TIME)

    def at_store(
        self, verb: str, peer: Peer, *, slow: bool = True, timeout: float
    ) -> dict[str, Any]:
        """Runs a step, behind the link if the shape has one."""
        if not self.shape.delay:
            return self.ask(verb, peer, timeout=timeout)
        try:
            server = link.build(self.options.work)
            with link.serve(server, self.folder, self.shape, slow) as store:
                answer = self.ask(verb, peer, timeout=timeout, url=store.url)
        except link.NoLink as e:
            raise Absent("missing", str(e)) from None
        if verb == "one":
            useful = self.made["bytes"][peer.format] * self.shape.needed
            answer["of_link"] = answer["samples_per_s"] * useful / (self.shape.rate * 1e6)
            answer["requests_per_sample"] = store.requests / answer["samples"]
            answer["bytes_per_useful"] = store.bytes / (answer["samples"] * useful)
        return answer

    def measure(self, peer: Peer) -> dict[str, float]:
        """Runs a peer once and returns its figures."""
        timeout = 120 + 6 * self.options.seconds
        figures = {"load": load_average()}
        seconds = min(self.options.seconds, 2)
        alone = peer.decodes and not self.shape.traits - {"raster"} and not self.shape.form
        if peer.loader:
            figures |= self.at_store("one", peer, timeout=timeout)
            if alone:
                figures |= self.ask("decode", peer, timeout=timeout, seconds=seconds)
            return figures
        pattern = str(self.folder / peer.format / "*.tif")
        flags = ["--batch", str(self.shape.batch), "--normalize", "mean_std"]
        flags += ["--stats", str(self.folder / "stats.json")]
        # As loaders.memory_of: eight batches, and a quarter of them for decoded tiles.
        batch = self.shape.batch * self.shape.bands * self.shape.side**2 * 4
        flags += ["--memory", str(max(256 << 20, 8 * batch))]
        if self.shape.windows:
            flags += ["--window", f"{self.shape.side}x{self.shape.side}"]
            flags += ["--per-asset", str(self.shape.per_asset)]
        figures |= self.bench(peer, "load", *flags, pattern, timeout=timeout)
        if alone:  # of 1,024 files, so that the command line stays below the system's limit
            files = sorted(str(p) for p in (self.folder / peer.format).glob("*.tif"))[:1024]
            flags = ["--workers", "1", "--seconds", str(seconds)]
            decoded = self.bench(peer, "decode", *flags, *files, timeout=timeout)
            figures |= {"decode_bytes_per_s": decoded["decode_bytes_per_s"]}
        return figures

    def bench(self, peer: Peer, verb: str, *args: str, timeout: float) -> dict[str, float]:
        """Runs one round of `chaski bench VERB` and returns its figures."""
        command = [self.engine(peer), "bench", verb, "--json", "--rounds", "1"]
        command += ["--seconds", str(self.options.seconds), "--workers", str(self.options.workers)]
        answer = json.loads(self.run(*command, *args, timeout=timeout))
        found = {figure["name"]: figure["median"] for figure in answer["figures"]}
        named = {
            "samples": ("samples_per_s", 1),
            "cpu": ("cpu_s_per_sample", 1e-3),
            "wait p50": ("wait_p50_s", 1e-3),
            "wait p99": ("wait_p99_s", 1e-3),
            "first batch": ("first_batch_s", 1e-3),
            "max rss": ("rss_bytes", 1e6),
            "decoded": ("decode_bytes_per_s", 1e6),
        }
        return {key: found[name] * unit for name, (key, unit) in named.items() if name in found}


def text(file: IO[bytes]) -> str:
    """Returns what was written to a file."""
    file.seek(0)
    return file.read().decode(errors="replace").strip()


def end_group(child: subprocess.Popen[bytes]) -> None:
    """Ends a process and its descendants: workers outlive a process that is killed."""
    try:
        os.killpg(child.pid, signal.SIGKILL)
    except OSError:
        pass  # they have ended
    child.wait()


def measure_shape(options: argparse.Namespace, shape: Shape) -> dict[str, Any]:
    """Makes the samples of a shape, checks every peer on them, and measures in turns."""
    work = Workload(options, shape)
    peers: list[Peer] = options.peers
    tell(shape, "cutting samples")
    work.prepare()
    for form in dict.fromkeys(p.form(shape) for p in peers):
        tell(shape, f"writing {form}")
        work.write(form)
    rows: list[dict[str, Any]] = []
    for peer in peers:
        tell(shape, f"checking {peer.name}")
        row: dict[str, Any] = {"peer": peer.name, "about": peer.about}
        row["format"] = peer.form(shape)
        rows.append(row | {"status": "ok", "rounds": [None] * options.rounds})
        try:
            work.check(peer)
        except Absent as e:
            rows[-1] |= {"status": e.status, "why": e.why}
    for turn in range(options.rounds):
        # Each round begins with another peer, so that a slow minute does not always hit the same.
        first = turn * len(peers) // options.rounds
        for k in range(first, first + len(peers)):
            peer, row = peers[k % len(peers)], rows[k % len(peers)]
            if row["status"] != "ok":
                continue
            tell(shape, f"round {turn + 1} of {options.rounds}, {peer.name}")
            try:
                row["rounds"][turn] = work.measure(peer)
            except Absent as e:
                row |= {"status": e.status, "why": e.why}
    report.summarise(rows)
    return {
        "shape": dataclasses.asdict(shape),
        "about": str(shape),
        "imagery": work.made["imagery"],
        "bytes": work.made["bytes"],
        "rows": rows,
    }


def tell(shape: Shape, what: str) -> None:
    """Says what goes on."""
    environment.say(f"{shape.name}: {what}")


def machine(options: argparse.Namespace) -> dict[str, Any]:
    """Describes what figures depend on besides the settings."""
    cpu, memory = platform.processor() or "unknown", 0
    if sys.platform == "linux":
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                cpu = line.partition(":")[2].strip()
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    versions: dict[str, str] = {}
    work = Workload(options, options.shapes[0])
    for name, wants in (("rumi1", environment.RUMI1), ("main", environment.MAIN)):
        text = wants.read_text()
        names = [line.split("==")[0] for line in text.splitlines() if "==" in line]
        form = "rumi1" if name == "rumi1" else ""
        if form and not any(p.format == form for p in options.peers):
            continue
        answer = work.ask("versions", format=form, packages=[*names, "chaski"], timeout=60)
        own = " (rumi1)" if form else ""
        versions |= {
            k + own: v for k, v in answer["versions"].items() if not (own and k == "chaski")
        }
    return {
        "cpu": cpu,
        "cores": os.cpu_count(),
        "memory": memory,
        "os": f"{platform.system()} {platform.release()} {platform.machine()}",
        "python": answer["python"],
        "versions": versions,
        "load_before": load_average(),
    }


def named(what: str, names: str, all_of: list[Any]) -> list[Any]:
    """Returns the shapes or peers with these names, or all if there are none."""
    known = {x.name: x for x in all_of}
    for name in filter(None, names.split(",")):
        if name not in known:
            raise WrongUsage(f"--{what}: {name!r} does not exist: choose from {', '.join(known)}")
    return [known[name] for name in names.split(",") if name] or all_of


def parse(args: list[str] | None) -> argparse.Namespace:
    """Parses and checks the command line."""
    epilog = (
        "shapes (default: all; each takes about 15 minutes with all peers, 3 rounds and 10 s):\n"
    )
    epilog += "".join(f"  {s.name:<19} {s}\n" for s in SHAPES)
    epilog += f"  {ARRAYS:<19} HDF5, NetCDF-4 and Zarr beside loops of one thread: arrays.md\n"
    epilog += "\npeers (default: all):\n"
    epilog += "".join(f"  {p.name:<19} {p.about}\n" for p in PEERS)
    parser = argparse.ArgumentParser(
        description=__doc__, epilog=epilog, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("-o", "--output", metavar="DIR", type=Path, required=True, help="directory of the report")
    add("--work", metavar="DIR", type=Path, help=f"directory of samples (default: {CACHE}/work)")
    add(
        "--python",
        metavar="PY",
        action="append",
        default=[],
        help="an interpreter that has what requirements.txt pins, or rumi1=PY, one that has what "
        "requirements-rumi1.txt pins; repeatable (default: an environment is made once)",
    )
    add("--engine", metavar="COMMAND", help="the command chaski (default: bin/chaski)")
    add(
        "--imagery",
        metavar="DIR",
        action="append",
        default=[],
        help="directory with scenes whose names contain s2 (or sentinel), naip and landsat (or l8, "
        "l9), .npy of (bands, y, x) or what GDAL reads, uint8 or uint16; repeatable (default: "
        "files of testdata, enlarged by mirroring)",
    )
    add("--peers", metavar="NAMES", default="", help="separated by commas")
    add("--shapes", metavar="NAMES", default="", help="separated by commas")
    add("--rounds", type=int, help="each measures every loader once (default: 3)")
    add("--seconds", type=float, help="shortest time of a measurement (default: 10)")
    add("--workers", type=int, default=2, help="processes or threads that decode (default: 2)")
    add("--quick", action="store_true", help="small files, one round of 1 s: not for figures")
    options = parser.parse_args(args)
    options.rounds = options.rounds if options.rounds is not None else 1 if options.quick else 3
    options.seconds = options.seconds if options.seconds is not None else 1 if options.quick else 10
    try:
        complete(options)
    except WrongUsage as e:
        parser.error(str(e))
    return options


def complete(options: argparse.Namespace) -> None:
    """Checks the options and finds what they leave out, before anything is downloaded or made."""
    # Each loader starts a process for each worker: a mistyped number would exhaust the machine.
    for name, most in (("rounds", 1000), ("workers", 1024)):
        if not 1 <= getattr(options, name) <= most:
            raise WrongUsage(f"--{name} is {getattr(options, name)}: it must be 1 to {most}")
    if not (0 < options.seconds <= 3600 and math.isfinite(options.seconds)):
        raise WrongUsage(f"--seconds is {options.seconds}: it must be above 0 and at most 3600")
    shapes = list(filter(None, options.shapes.split(",")))
    options.arrays = ARRAYS in shapes or not (shapes or options.quick)
    only = shapes == [ARRAYS]
    shapes = [name for name in shapes if name != ARRAYS]
    options.shapes = [] if only else named("shapes", ",".join(shapes), SHAPES)
    options.peers = named("peers", options.peers, PEERS)
    if options.quick:
        options.shapes = [shape.small() for shape in options.shapes]
    default = CACHE / ("work-quick" if options.quick else "work")
    options.work = (options.work or default).resolve()
    options.engine = os.path.abspath(options.engine or ROOT / "bin" / "chaski")
    options.python_path = ROOT / "python" / "src"
    if not os.access(options.engine, os.X_OK):
        raise WrongUsage(f"{options.engine}: no such command; `make build` makes it")
    for python in options.python:
        if shutil.which(python.removeprefix("rumi1=")) is None:
            raise WrongUsage(f"--python is {python}: no such program")
    for folder in options.imagery:
        if not Path(folder).is_dir():
            raise WrongUsage(f"--imagery is {folder}: no such directory")
    try:
        options.output.mkdir(parents=True, exist_ok=True)
    except OSError as e:
        raise WrongUsage(f"-o is {options.output}: {e.strerror}") from None


def measure(options: argparse.Namespace) -> None:
    """Measures the peers on the shapes, one after the other, and writes the report after each."""
    result: dict[str, Any] = {
        "date": datetime.datetime.now(datetime.timezone.utc).date().isoformat(),
        "settings": {k: getattr(options, k) for k in ("rounds", "seconds", "workers", "quick")},
        "machine": machine(options),
        "shapes": [],
    }
    for shape in options.shapes:
        result["shapes"].append(measure_shape(options, shape))
        result["machine"]["load_after"] = load_average()
        report.write(result, options.output)
    print(report.markdown(result), end="")


def measure_arrays(options: argparse.Namespace) -> None:
    """Runs arrays.py, and writes its table into the directory of the report."""
    environment.say("arrays")
    environ = {"CHASKI_BIN": options.engine, "PYTHONPATH": str(options.python_path)}
    words = {"work": options.work / ARRAYS, "rounds": options.rounds, "seconds": options.seconds}
    done = subprocess.run(
        [options.pythons["main"].path, "-W", "ignore", str(ROOT / "bench" / "peers" / "arrays.py")]
        + [f"--{name}={value}" for name, value in words.items()],
        env=os.environ | environ,
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    )
    if done.returncode != 0:
        raise Absent("failed", f"arrays.py ended with {done.returncode}")
    (options.output / "arrays.md").write_text(done.stdout)
    print(done.stdout)


def main(args: list[str] | None = None) -> int:
    """Measures all peers on all shapes."""
    options = parse(args)
    rumi1 = [p.removeprefix("rumi1=") for p in options.python if p.startswith("rumi1=")]
    python = [p for p in options.python if not p.startswith("rumi1=")]
    try:
        options.pythons = environment.prepare(
            CACHE,
            (python or [""])[-1],
            (rumi1 or [""])[-1],
            bool(options.shapes) and any(p.format == "rumi1" for p in options.peers),
        )
        if options.shapes:
            measure(options)
        if options.arrays:
            measure_arrays(options)
    except (environment.NoEnvironment, WrongUsage, Absent, OSError) as e:
        environment.say(str(e))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
