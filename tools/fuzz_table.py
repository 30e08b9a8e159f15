"""Writes how many inputs each fuzz target ran into the table of docs/fuzzing.md.

    python3 tools/fuzz_table.py docs/fuzzing.md <counts

The counts are the lines that tools/fuzz.sh appends to CHASKI_FUZZ_COUNTS: package, target, time and
count, with tabs between. Targets that did not run this time keep their rows.
"""

import datetime
import re
import sys
from pathlib import Path

BEGIN, END = "<!-- counts: make fuzz-long -->\n", "<!-- end of counts -->\n"
HEAD = "\n| package | target | on | for | inputs |\n|---|---|---|---:|---:|\n"


def table(page: str, counts: list[str], on: str) -> str:
    """Returns the page with the counts, in the order of the packages."""
    before, rest = page.split(BEGIN)
    old, after = rest.split(END)
    rows = {m[1]: m[0] for m in re.finditer(r"(\| `.*?` \| `.*?` )\|.*\n", old)}
    for line in counts:
        package, target, took, inputs = line.rstrip("\n").split("\t")
        key = f"| `{package.removeprefix('github.com/chaski-eo/chaski/')}` | `{target}` "
        rows[key] = f"{key}| {on} | {took} | {int(inputs):,} |\n"
    return before + BEGIN + HEAD + "".join(sorted(rows.values())) + "\n" + END + after


if __name__ == "__main__":
    page = Path(sys.argv[1])
    today = datetime.datetime.now(datetime.timezone.utc).date().isoformat()
    page.write_text(table(page.read_text(), sys.stdin.readlines(), today))
