"""Writes how many inputs each fuzz target ran into tools/fuzz_counts.tsv.

    python3 tools/fuzz_counts.py <counts

The counts are the lines that tools/fuzz.sh appends to CHASKI_FUZZ_COUNTS: package, target, time and
count, with tabs between. The table has the date before the time. Targets that did not run this time
keep their lines.
"""

import datetime
import sys
from pathlib import Path


def table(old: list[str], counts: list[str], on: str) -> str:
    """Returns the lines of the table with the counts, in the order of the packages."""
    rows = {tuple(line.split("\t")[:2]): line for line in old}
    for line in counts:
        package, target, took, inputs = line.rstrip("\n").split("\t")
        package = package.removeprefix("github.com/chaski-eo/chaski/")
        rows[package, target] = "\t".join([package, target, on, took, inputs])
    return "".join(f"{row}\n" for row in sorted(rows.values()))


if __name__ == "__main__":
    path = Path(__file__).with_suffix(".tsv")
    today = datetime.datetime.now(datetime.timezone.utc).date().isoformat()
    path.write_text(table(path.read_text().splitlines(), sys.stdin.readlines(), today))
