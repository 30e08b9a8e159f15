"""The modules of the package do not need each other in large circles."""

from __future__ import annotations

import ast
from pathlib import Path

import chaski

MOST = 3
"""Modules of the largest circle. One that is larger can only be read as a whole."""


def imports(path: Path, names: set[str]) -> set[str]:
    """Returns the modules of the package that one imports, also in functions and for types."""
    out: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module == "chaski":
            out |= {a.name for a in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            out.add(node.module.removeprefix("chaski."))
        elif isinstance(node, ast.Import):
            out |= {a.name.removeprefix("chaski.") for a in node.names}
    return out & names


def test_circles() -> None:
    files = {p.stem: p for p in Path(chaski.__file__).parent.glob("*.py")}
    needs = {name: imports(path, set(files)) for name, path in files.items()}
    for _ in files:  # what is needed over one more module
        needs = {name: of.union(*(needs[n] for n in of)) for name, of in needs.items()}
    circles = {frozenset(n for n in needs[m] if m in needs[n]) for m in needs}
    largest = max(circles, key=len)
    assert len(largest) <= MOST, sorted(largest)
