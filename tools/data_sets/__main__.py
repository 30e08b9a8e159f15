"""Compares the rows of docs/data-sets.md with the files of the data sets, and prints a table.

    python tools/data_sets DIR [NAME ...]

DIR has a folder for each data set as it is published, such as the folder `tests/data` of the
repository torchgeo/torchgeo, with archives unpacked where they lie. It names those without one.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from judge import compare
from published import SETS, calls


def main(root: Path, chosen: list[str]) -> int:
    """Prints what differs, and returns the exit code."""
    equal = compared = 0
    absent = []
    rows = {n: c for n, c in calls().items() if not chosen or n in chosen}
    for name, call in rows.items():
        folder, samples = SETS[name]
        if not (root / folder).is_dir():
            absent.append(name)
            continue
        os.chdir(root / folder)
        try:
            count = compare(call, samples())
        except Exception as e:
            print(f"{name}: {type(e).__name__}: {e}".splitlines()[0][:300])
        else:
            equal, compared = equal + 1, compared + count
    there = len(rows) - len(absent)
    print(f"{equal} of {there} data sets are equal, {compared} samples compared")
    if absent:
        print(f"{len(absent)} have no folder here: {', '.join(absent)}")
    return int(equal < there or there == 0)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    sys.exit(main(Path(sys.argv[1]).resolve(), sys.argv[2:]))
