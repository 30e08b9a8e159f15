"""Writes docs/more-data-sets.md, the calls of holdout.py, to standard output."""

from __future__ import annotations

from holdout import LEFT, C
from published import calls

HEAD = """# More data sets

<!-- python tools/data_sets/page.py > docs/more-data-sets.md -->

As in [Published data sets](data-sets.md), each row is one call, judged. `{S}` is a split. Not read
by one call:

"""


def page() -> str:
    """Returns the page."""
    other = {*LEFT, *calls()}
    rows = [f"| {name} | `{call}` |" for name, call in sorted(C.items()) if name not in other]
    left = "\n".join(f"- {name}:\n  {why}" for name, why in LEFT.items())
    return "\n".join([HEAD + left, "", "| data set | what you write |", "|---|---|", *rows]) + "\n"


if __name__ == "__main__":
    print(page(), end="")
