"""Runs the random inputs of python/tests/mutations.py, each kind for a time, with new seeds.

    .venv/bin/python tools/fuzz_python.py [--time 60s] [--only payload] [--seed N]

One line reports each kind. Of an input that fails, it prints the kind and the seed, which repeat it
(--only KIND --seed SEED tries this one), and exits with status 1. CHASKI_FUZZ_COUNTS=FILE appends
a line for each kind that passes, as tools/fuzz.sh does.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "python" / "src"), str(ROOT / "python" / "tests")]

from mutations import TRIES  # noqa: E402 the path is set above


def seconds(text: str) -> float:
    """Returns the seconds of a time as Go writes it, such as 90s or 1m30s."""
    if not re.fullmatch(r"(\d+[hms])+", text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a time such as 90s or 10m")
    units = {"h": 3600, "m": 60, "s": 1}
    return float(sum(int(n) * units[u] for n, u in re.findall(r"(\d+)([hms])", text)))


def fails(name: str, seed: int) -> bool:
    """Tries one input, and says so if it fails."""
    try:
        TRIES[name](random.Random(seed))
    except BaseException as e:
        if isinstance(e, KeyboardInterrupt):
            raise
        print(f"fuzz: python {name} FAILED, --seed {seed}: {e!r}"[:2000])
        return True
    return False


def main() -> int:
    """Runs all kinds, or one."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--time", type=seconds, default=60.0, help="of each kind")
    parser.add_argument("--only", choices=list(TRIES))
    parser.add_argument("--seed", type=int)
    parser.add_argument("--list", action="store_true", help="print the kinds and nothing else")
    o = parser.parse_args()
    if o.list:
        print(*TRIES)
        return 0
    failed = 0
    for name in [o.only] if o.only else TRIES:
        if o.seed is not None:
            failed += fails(name, o.seed)
            continue
        start, count, first = time.monotonic(), 0, random.getrandbits(48)
        while time.monotonic() - start < o.time and not (bad := fails(name, first + count)):
            count += 1
        failed += bad
        if bad:
            continue
        print(f"fuzz: python {name}: {count} inputs", flush=True)
        if counts := os.environ.get("CHASKI_FUZZ_COUNTS"):
            with open(counts, "a") as f:
                f.write(f"python\t{name}\t{o.time:.0f}s\t{count}\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
