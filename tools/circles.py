"""Finds files of a Python package that import each other in a circle: `make check` calls it.

    python tools/circles.py python/src/chaski

Files that need each other can only be read together. Imports inside functions and those for types
count too, since a late import hides a circle and does not break it.
"""

from __future__ import annotations

import ast
import sys
from graphlib import CycleError, TopologicalSorter
from pathlib import Path


def imports(path: Path, name: str, modules: set[str]) -> set[str]:
    """Returns the modules of the package that a module imports anywhere in its file."""
    found: set[str] = set()
    package = name.split(".") if path.name == "__init__.py" else name.split(".")[:-1]
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            above = package[: len(package) + 1 - node.level] if node.level else []
            origin = ".".join([*above, *filter(None, [node.module])])
            members = {f"{origin}.{a.name}" for a in node.names}
            found |= {m if m in modules else origin for m in members}
        elif isinstance(node, ast.Import):
            found |= {a.name for a in node.names}
    return found & modules


def circle(folder: Path) -> list[str]:
    """Returns the modules of one circle of a package, the first one twice; none without one."""
    files = {}
    for path in sorted(folder.rglob("*.py")):
        parts = path.relative_to(folder.parent).with_suffix("").parts
        files[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    if not files:
        raise SystemExit(f"{folder} has no Python files")
    needs = {name: imports(path, name, set(files)) for name, path in files.items()}
    try:
        TopologicalSorter(needs).prepare()
    except CycleError as e:
        return list(reversed(e.args[1]))
    return []


def main() -> int:
    """Looks for a circle in each of the packages that are named."""
    found = [names for folder in sys.argv[1:] if (names := circle(Path(folder)))]
    for names in found:
        print("modules import each other:", " -> ".join(names))
    return bool(found or len(sys.argv) < 2)


if __name__ == "__main__":
    sys.exit(main())
