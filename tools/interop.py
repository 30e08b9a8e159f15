"""`make interop`: both directions of compatibility with the original Python packages.

    interop.py [--short] [--only VARIABLE ...]
    interop.py --soak COUNT   `make soak-hostile`: COUNT damaged OpenZL frames, see docs/fuzzing.md

Makes a virtual environment below .interop/ for each file of tools/interop/*.txt, and a directory
with a library for libtiledb16.txt, again whenever the file or the interpreter changes. Then runs
the tests of Go and Python that compare with an original package or the library, once, with
variables that name the interpreters that have the originals, and the library. These tests are not
listed anywhere: they are the ones whose code, or code of their package that they use, names such a
variable. All of them must pass. One that is skipped is a failure, and so is a variable that this
script does not set. The library is for Linux on x86-64: if it cannot be installed or loaded, its
test is left out, and the last line says so.

With --short, as in `make test` where .interop is, random tests have a third of their cases.

pip's own settings (an index, a cache, a proxy) apply. Needs Python 3.12 or newer, for rasterio 1.5.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
HOME = ROOT / ".interop"
# The environment of each variable.
VARIABLES = {
    "CHASKI_ORACLE_LIBTILEDB16": "libtiledb16",
    "CHASKI_ORACLE_PYTHON08": "rumi1",
    "CHASKI_ORACLE_PYTHON16": "rumi2",
    "CHASKI_ORACLE_PYTHON26": "rumi3",
    "CHASKI_ORACLE_PYTHON": "rasters",
    "CHASKI_ORACLE_PYTHON_TACO": "taco",
    "CHASKI_ORACLE_PYTHON_TILEDB": "tiledb",
    "CHASKI_ORACLE_PYTHON_ZARR": "zarr",
    "CHASKI_PYTHON": "rasters",
}
VARIABLE = re.compile(
    r"\bCHASKI_(?:(?:ORACLE_)?PYTHON(?:\d+|_TACO|_TILEDB|_ZARR)?|ORACLE_LIB[A-Z]+\d*)\b"
)
# The environment that is a library, taken from a wheel for an interpreter that need not be
# installed, and the environment that loads it.
LIBRARY, LOADER = "libtiledb16", "tiledb"
WHEEL = ["--platform", "manylinux1_x86_64", "--python-version", "37", "--abi", "cp37m"]
# Tests print this, so that they can be repeated with the same random cases.
SEED = re.compile(r"\bCHASKI_ORACLE_SEED=\d+")
# A test of Go, whose name begins with its package.
GO_TEST = re.compile(r"\.(?:Test|Fuzz|Example)")
# The name that a declaration of a Go file begins with; none for a group in parentheses.
NAME = re.compile(r"(?:func(?: \([^)]*\))?|var|const|type) (\w+)")
# Python tests that have originals to compare with.
PYTHON_TESTS = ["python/tests/test_rumi.py", "python/tests/test_rumi3.py"]
# The tags of the Makefile, which dependencies are compiled with already, and that of slow tests.
TAGS = "netgo,osusergo,disable_grpc_modules,grpcnotrace,soak"
# Environments that are made at a time: while one unpacks, others download.
INSTALLS = 3
# How many damaged frames are compared; `make soak-hostile` has 5 million.
SETTINGS = {"CHASKI_SOAK_COUNT": os.environ.get("CHASKI_SOAK_COUNT", "20000")}


def say(text: str) -> None:
    """Writes a line."""
    print(f"interop: {text}", flush=True)


def pip(python: Path | str, wanted: Path, *options: str | Path) -> None:
    """Installs the packages that a file lists, and tries again once if a connection breaks.

    The pip is this interpreter's, as one for each environment would take 4 s of a core. Modules are
    compiled when they are imported: the tests import few of those that the packages have.
    """
    say(f"installing {wanted.relative_to(ROOT)}")
    run = [sys.executable, "-m", "pip", "--python", python, "install", "--no-compile", "--quiet"]
    run += ["--disable-pip-version-check", "--retries", "10", *options, "-r", wanted]
    if subprocess.run(run).returncode != 0:
        subprocess.run(run, check=True)


def environment(name: str) -> str:
    """Makes an environment unless it is complete, and returns its interpreter."""
    folder, wanted = HOME / name, ROOT / "tools" / "interop" / f"{name}.txt"
    python, stamp = folder / "bin" / "python", folder / "chaski-interop"
    what = hashlib.sha256(wanted.read_bytes() + sys.executable.encode()).hexdigest()
    if stamp.exists() and stamp.read_text() == what:
        return str(python)
    run = [sys.executable, "-m", "venv", "--clear", "--without-pip", folder]
    subprocess.run(run, check=True)
    pip(python, wanted, "--no-deps")  # the file lists all that is needed
    stamp.write_text(what)
    return str(python)


def library(python: str) -> str:
    """Installs LIBRARY unless it is there, and returns its path, or "" if it cannot be loaded."""
    folder, wanted = HOME / LIBRARY, ROOT / "tools" / "interop" / f"{LIBRARY}.txt"
    stamp, what = folder / "chaski-interop", hashlib.sha256(wanted.read_bytes()).hexdigest()
    try:
        if not stamp.exists() or stamp.read_text() != what:
            shutil.rmtree(folder, ignore_errors=True)
            pip(python, wanted, "--no-deps", "--only-binary=:all:", *WHEEL, "--target", folder)
            stamp.write_text(what)
        path = next(folder.glob("tiledb/.libs/libtiledb*"), folder / "libtiledb")
        load = "import ctypes, sys; ctypes.CDLL(sys.argv[1])"
        subprocess.run([python, "-c", load, path], check=True, capture_output=True, text=True)
    except subprocess.CalledProcessError as e:
        reason = (e.stderr or "").strip().split("\n")[-1]
        say(f"no {LIBRARY} here, its test is skipped: {reason or 'pip failed'}")
        return ""
    return str(path)


def check_variables() -> None:
    """Ends the script if tests name a variable that it does not set, or that it does not run."""
    files = [f for f in ROOT.rglob("*.go") if not hidden(f)]
    go = [f for f in files if f.name.endswith("_test.go")]
    for f in set(files) - set(go):
        if re.search(VARIABLE, f.read_text()):
            name = f.relative_to(ROOT)
            sys.exit(f"interop: {name} is no test: name the variable in those that need it")
    python = list((ROOT / "python" / "tests").glob("*.py"))
    names = {f: set(VARIABLE.findall(f.read_text())) for f in go + python}
    if unknown := set().union(*names.values()) - set(VARIABLES):
        sys.exit(
            f"interop: tests need {', '.join(sorted(unknown))}, which this script does not set"
        )
    for f in python:
        if names[f] and f"python/tests/{f.name}" not in PYTHON_TESTS:
            sys.exit(f"interop: {f.name} has guarded tests that tools/interop.py does not run")


def hidden(file: Path) -> bool:
    """Reports whether Go leaves a file out because of a folder that it is in."""
    parts = file.relative_to(ROOT).parts
    return any(p.startswith((".", "_")) or p == "testdata" for p in parts)


def guarded_tests(names: set[str]) -> dict[str, set[str]]:
    """Tests of each Go package that name one of the variables, or use a declaration that does."""
    variable = r"\b(?:" + "|".join(sorted(names)) + r")\b"
    declarations: dict[str, list[tuple[str, str]]] = {}
    for file in sorted(ROOT.rglob("*_test.go")):
        if not hidden(file):
            package = "./" + str(file.parent.relative_to(ROOT))
            text = re.sub(r"^\s*//.*", "", file.read_text(), flags=re.M)
            # The first part is the file's head.
            parts = re.split(r"^(?=func |var |const |type )", text, flags=re.M)
            declarations.setdefault(package, []).extend(
                (m[1] if (m := NAME.match(p)) else "", p) for p in parts
            )
    found = {}
    for package, parts in declarations.items():
        wanted, size = re.compile(variable), -1
        using: set[str] = set()
        while len(using) > size:
            size = len(using)
            using |= {name for name, text in parts if wanted.search(text)}
            if "" in using:
                sys.exit(f"interop: {package} names a variable where no test can be told from it")
            if using:
                wanted = re.compile(variable + r"|\b(?:" + "|".join(using) + r")\b")
        if tests := {name for name in using if re.match("Test|Fuzz|Example", name)}:
            found[package] = tests
    return found


class Results:
    """The result of each test by name (pass, fail or skip), and its output."""

    def __init__(self) -> None:
        """Starts empty."""
        self.of: dict[str, str] = {}
        self.output: dict[str, str] = {}

    def go(self, packages: list[str], env: dict[str, str], *options: str) -> None:
        """Runs the tests of packages. A package that does not build counts as a failed test."""
        run = [os.environ.get("GO") or "go", "test", "-tags", TAGS, "-json", "-ldflags=-s -w"]
        run += ["-timeout", "1h", "-vet=off", *options, *packages]
        p = subprocess.Popen(run, cwd=ROOT, env=env, stdout=subprocess.PIPE, text=True)
        for line in p.stdout:
            try:
                event = json.loads(line)
            except ValueError:
                print(line, end="")
                continue
            package = event.get("Package") or event.get("ImportPath", "")
            name = f"{package}.{event.get('Test', '')}"
            if event["Action"] in ("output", "build-output"):
                self.output[name] = self.output.get(name, "") + event["Output"]
            elif event["Action"] in ("pass", "fail", "skip") and (
                "Test" in event or event["Action"] == "fail"
            ):
                self.of[name] = event["Action"]
        if p.wait() != 0 and "fail" not in self.of.values():
            self.of["go test"] = "fail"

    def pytest(self, python: str, env: dict[str, str], report: Path) -> None:
        """Runs the tests of PYTHON_TESTS with an interpreter."""
        env = env | {"PYTHONPATH": str(ROOT / "python" / "src")}
        run = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junitxml={report}"]
        p = subprocess.run([*run, *PYTHON_TESTS], cwd=ROOT, env=env, capture_output=True, text=True)
        if not report.exists():
            self.of["pytest"], self.output["pytest"] = "fail", p.stdout + p.stderr
            return
        for case in ET.parse(report).iter("testcase"):
            name = f"{case.get('classname')}.{case.get('name')}"
            kinds = {"skipped": "skip", "failure": "fail", "error": "fail"}
            self.of[name] = next((v for k, v in kinds.items() if case.find(k) is not None), "pass")
            self.output[name] = "".join(
                f"{e.get('message')}\n{e.text or ''}" for k in kinds for e in case.iter(k)
            )
        report.unlink()

    def skipped(self, names: set[str]) -> set[str]:
        """Returns the tests that were skipped although they have all of these variables."""
        out = set()
        for t, result in self.of.items():
            reasons = set(VARIABLE.findall(self.output.get(t, "")))
            # Tests of Python may lack packages that others than these need.
            if result == "skip" and (reasons & names or (not reasons and GO_TEST.search(t))):
                out.add(t)
        return out


def only_tests(names: set[str]) -> str:
    """Returns what `go test -run` takes to run these tests."""
    return "^(" + "|".join(sorted(names)) + ")$"


def soak(count: int) -> int:
    """Gives damaged frames to the decoder and to the original, and prints the results."""
    run = [os.environ.get("GO") or "go", "test", "-tags", TAGS, "-count=1", "-timeout", "0"]
    run += ["-run", "^(TestSoak|TestWatch)$", "-v", "./format/codec/openzl"]
    env = os.environ | {
        "CHASKI_ORACLE_PYTHON": environment("rasters"),
        "CHASKI_SOAK_COUNT": str(count),
    }
    return subprocess.run(run, cwd=ROOT, env=env).returncode


def main() -> int:
    """Runs everything and prints a summary line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--only", nargs="+", choices=sorted(VARIABLES), metavar="VARIABLE")
    parser.add_argument("--soak", type=int, metavar="COUNT")
    parser.add_argument("--short", action="store_true")
    args = parser.parse_args()
    only = set(args.only or VARIABLES)
    if sys.version_info < (3, 12):
        have = ".".join(map(str, sys.version_info[:2]))
        say(f"{sys.executable} is Python {have}; rasterio 1.5 needs 3.12 or newer.")
        say("name one: make interop PYTHON=/path/to/python3.12")
        return 1
    if args.soak is not None:
        return soak(args.soak)
    start = time.monotonic()
    check_variables()
    # Downloads wait for the network.
    with ThreadPoolExecutor(INSTALLS) as pool:
        names = sorted(set(VARIABLES.values()) - {LIBRARY})
        pythons = dict(zip(names, pool.map(environment, names), strict=True))
    values = {v: pythons[name] for v, name in VARIABLES.items() if name != LIBRARY}
    left_out = ""
    for v in sorted(only - set(values)):
        only |= {needed for needed, name in VARIABLES.items() if name == LOADER}
        values[v] = library(pythons[LOADER])
        if not values[v]:
            only.remove(v)
            left_out = f", without {VARIABLES[v]}"
    env = {k: v for k, v in os.environ.items() if k not in VARIABLES} | SETTINGS
    env |= {v: values[v] for v in only}
    guarded = guarded_tests(only)
    for package, tests in sorted(guarded.items()):
        say(f"{package}: " + " ".join(sorted(tests)))
    got = Results()
    options = ["-short"] if args.short else []
    options += ["-run", only_tests(set().union(*guarded.values()))]
    got.go(sorted(guarded), env, *options)
    got.pytest(pythons["rasters"], env, HOME / "report.xml")

    failed = {t for t, result in got.of.items() if result == "fail"}
    # A package fails if one of its tests does: report the tests only.
    failed = {
        t
        for t in failed
        if not (t.endswith(".") and any(f != t and f.startswith(t) for f in failed))
    }
    skipped = got.skipped(only)
    wanted = {f"{package[1:]}.{t}" for package, tests in guarded.items() for t in tests}
    skipped |= {t for t in wanted if not any(name.endswith(t) for name in got.of)}
    for t in sorted(failed):
        print(f"--- failed: {t}\n{got.output.get(t, '')}")
    for t in sorted(skipped):
        print(f"--- skipped or not run: {t}\n{got.output.get(t, '')}")
    for t in sorted(got.of):
        for seed in SEED.findall(got.output.get(t, "")):
            say(f"{t}: {seed}")
    passed = sum(result == "pass" for result in got.of.values())
    ok = not failed and not skipped and passed > 0
    seconds = time.monotonic() - start
    text = f"{passed} tests passed, {len(skipped)} skipped, "
    text += f"{len(failed)} failed, in {seconds:.0f} s{left_out}"
    say(("PASSED: " if ok else "FAILED: ") + text)
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
