"""Finds assertions of Python tests that may never run: `make check` calls it.

    python tools/vacuous.py python/tests

A loop with assertions passes if it has nothing to loop over, and a loader that gives no batch is
what such a test should find. So a loop over something that may be empty needs an assertion after
it about a name that the loop changes, such as a counter, or goes over `nonempty(...)` of
conftest.py, which fails if there is nothing. `zip(..., strict=False)` hides a missing end.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

Functions = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
# Calls that keep the number of elements of their first argument, or fail if it is empty.
SAME_SIZE = {"enumerate", "sorted", "reversed", "list", "tuple", "set", "cycle"}


def asserts(node: ast.AST) -> bool:
    """Reports whether a node is an assertion."""
    if isinstance(node, ast.Assert):
        return True
    name = called(node)
    return name.startswith(("assert_", "check", "fail")) or name == "raises"


def called(node: ast.AST) -> str:
    """Returns the name of the function or method that a node calls, "" if it calls none."""
    if not isinstance(node, ast.Call):
        return ""
    function = node.func
    return getattr(function, "id", "") or getattr(function, "attr", "")


class Scan:
    """One file: which names are bound to things that are not empty."""

    def __init__(self, path: Path) -> None:
        self.path, self.tree = path, ast.parse(path.read_text())
        self.filled: set[str] = set()
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Assign) and self.never_empty(node.value):
                self.filled |= {t.id for t in node.targets if isinstance(t, ast.Name)}

    def never_empty(self, node: ast.expr) -> bool:
        """Reports whether an iterable has at least one element, as far as its text says."""
        if isinstance(node, ast.Constant):
            return bool(node.value)
        if isinstance(node, (ast.List, ast.Tuple, ast.Set)):
            return bool(node.elts)
        if isinstance(node, ast.Dict):
            return bool(node.keys)
        if isinstance(node, ast.Name):
            return node.id in self.filled
        if isinstance(node, (ast.ListComp, ast.DictComp, ast.SetComp, ast.GeneratorExp)):
            plain = all(not g.ifs for g in node.generators)
            return plain and all(self.never_empty(g.iter) for g in node.generators)
        if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.BitOr)):
            return self.never_empty(node.left) or self.never_empty(node.right)
        name = called(node)
        if not isinstance(node, ast.Call):
            return False
        if name == "range":
            bounds = [ast.unparse(a) for a in node.args]
            return bounds not in (["0"], ["0", "0"])
        if name in SAME_SIZE or name == "product":
            return bool(node.args) and all(self.never_empty(a) for a in node.args[:1])
        if name == "zip":  # strict: one of them decides about all
            return any(self.never_empty(a) for a in node.args)
        if name in ("items", "values", "keys") and isinstance(node.func, ast.Attribute):
            return self.never_empty(node.func.value)
        return name in ("nonempty", "count", "repeat", "permutation", "split", "splitlines")

    def problems(self) -> Iterator[str]:
        """Yields a line for each problem."""
        for node in ast.walk(self.tree):
            if called(node) == "zip":
                strict = {k.arg: k.value for k in node.keywords}.get("strict")
                if isinstance(strict, ast.Constant) and strict.value is False:
                    yield f"{self.path}:{node.lineno}: zip(strict=False) hides a missing end"
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test"):
                yield from self.function(node)

    def function(self, test: ast.FunctionDef) -> Iterator[str]:
        """Yields the loops of a test that may check nothing."""
        for loop in loops(test):
            if self.never_empty(loop.iter) or not any(map(asserts, ast.walk(loop))):
                continue
            if f"len({ast.unparse(loop.iter)})" in "".join(map(ast.unparse, before(test, loop))):
                continue
            changed = names_changed(loop)
            after = (n for n in ast.walk(test) if asserts(n) and n.lineno > loop.end_lineno)
            if not any(changed & names(n) for n in after):
                what = ast.unparse(loop.iter)
                yield f"{self.path}:{loop.lineno}: nothing fails if {what} is empty: use nonempty()"


def before(test: ast.FunctionDef, loop: ast.For) -> Iterator[ast.AST]:
    """Yields the assertions of a test before a loop."""
    return (n for n in ast.walk(test) if isinstance(n, ast.Assert) and n.lineno < loop.lineno)


def loops(node: ast.AST) -> Iterator[ast.For]:
    """Yields all loops of a function, also those of functions inside it."""
    for child in ast.walk(node):
        if isinstance(child, ast.For):
            yield child


def names(node: ast.AST) -> set[str]:
    """Returns all names in a node."""
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}


def names_changed(loop: ast.For) -> set[str]:
    """Returns names that the body of a loop binds, adds to, or calls a method of."""
    changed = {n.id for n in ast.walk(loop) if isinstance(n, ast.Name) and is_stored(n)}
    for node in ast.walk(loop):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            changed |= names(node.func.value)
        if isinstance(node, (ast.Subscript, ast.Attribute)) and is_stored(node):
            changed |= names(node.value)
    return changed


def is_stored(node: ast.Name | ast.Subscript | ast.Attribute) -> bool:
    """Reports whether a node is written to."""
    return isinstance(node.ctx, ast.Store)


def main() -> int:
    """Scans the files of the folders that are named."""
    files = [p for folder in sys.argv[1:] for p in sorted(Path(folder).rglob("*.py"))]
    problems = [line for path in files for line in Scan(path).problems()]
    print(*problems, sep="\n", end="\n" if problems else "")
    return bool(problems or not files)


if __name__ == "__main__":
    sys.exit(main())
