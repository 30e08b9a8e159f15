"""Compares two pages with the public names of the Python package, or with --write writes them.

docs/api/python.txt has every name with its types: a review sees there what a change does to users.
docs/reference/README.md has signatures and first sentences, for readers on the code host.
"""

from __future__ import annotations

import enum
import importlib
import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

DOCS = Path(__file__).resolve().parents[1] / "docs"
MODULES = [
    "chaski",
    "chaski.errors",
    "chaski.jobs",
    "chaski.order",
    "chaski.rumi",
    "chaski.taco",
    "chaski.torch",
]
PRIVATE = {"chaski._argument", "chaski._plain", "chaski._plot", "chaski._records"}
"""Modules of the bases that have no public name."""


def signature(f: object) -> str:
    """Returns the parameters of a function, with defaults and types as they are written."""
    try:
        # Dataclasses write this without quotes, or with them, as the version of Python has it.
        return str(inspect.signature(f)).replace("-> 'None'", "-> None")  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return "(...)"


def members(c: type) -> list[str]:
    """Returns what a class adds to its bases. Calls of enums and exceptions are Python's own."""
    out = []
    added = dict(vars(c))
    for base in c.__bases__:  # what one adds that has no public name is there for the class
        if base.__module__ in PRIVATE:
            ours = [b for b in base.__mro__ if b.__module__.startswith("chaski.")]
            added |= {k: v for b in ours for k, v in vars(b).items()} | vars(c)
    init = added.get("__init__")
    if inspect.isfunction(init) and not issubclass(c, enum.Enum):
        out.append(f"  __init__{signature(init)}")
    for name, v in sorted(added.items()):
        if name.startswith("_"):
            continue
        if isinstance(v, (staticmethod, classmethod)):
            out.append(f"  {type(v).__name__} {name}{signature(v.__func__)}")
        elif isinstance(v, property):
            out.append(f"  property {name}")
        elif inspect.isfunction(v):
            out.append(f"  {name}{signature(v)}")
        else:
            out.append(f"  {name}")
    return out


def public(m: ModuleType) -> list[str]:
    """Returns the public names of a module, in the order in which it lists or defines them."""
    names = getattr(m, "__all__", None)
    if names is None:
        names = [n for n, v in vars(m).items() if getattr(v, "__module__", None) == m.__name__]
    return [n for n in names if not n.startswith("_")]


def listing() -> str:
    """Returns the listing of all modules."""
    lines = []
    for module in MODULES:
        m = importlib.import_module(module)
        lines.append(f"module {module}")
        for name in sorted(public(m)):
            v = getattr(m, name)
            if inspect.isclass(v):
                bases = ", ".join(b.__name__ for b in v.__bases__ if b is not object)
                lines += [f"class {name}({bases})", *members(v)]
            elif inspect.isfunction(v):
                lines.append(f"{name}{signature(v)}")
            else:
                lines.append(name)
        lines.append("")
    return "\n".join(lines)


def sentence(v: object) -> str:
    """Returns the first sentence of a docstring, on one line."""
    first = (inspect.getdoc(v) or "").split("\n\n")[0]
    text = re.split(r"(?<=[.:])\s", " ".join(first.split()))[0].rstrip(":")
    return text.replace("](docs/", "](../")


def arguments(f: object) -> str:
    """Returns the names of a function's arguments in brackets, or nothing for C code."""
    try:
        found = inspect.signature(f).parameters.values()  # type: ignore[arg-type]
    except ValueError:
        return ""
    marks = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    names = [marks.get(p.kind, "") + p.name for p in found if p.name not in ("self", "cls")]
    return f"({', '.join(names)})"


def rows(name: str, v: object) -> Iterator[str]:
    """Yields rows of the table for a name: modules and classes have one for each of their own."""
    if inspect.ismodule(v):
        for inner in public(v):
            yield from rows(f"{v.__name__}.{inner}", getattr(v, inner))
    elif inspect.isclass(v) and issubclass(v, (enum.Enum, Exception)):
        yield f"| `{name}` | {sentence(v)} |"
    elif inspect.isclass(v):
        yield f"| `{name}{arguments(v)}` | {sentence(v)} |"
        short = name.rpartition(".")[2]
        for method, f in vars(v).items():
            called = getattr(f, "__func__", f)
            if method.startswith("_") or not sentence(called):
                continue
            if isinstance(f, property):
                yield f"| `{short}.{method}` | {sentence(f)} |"
            elif inspect.isroutine(f):
                yield f"| `{short}.{method}{arguments(called)}` | {sentence(called)} |"
    elif callable(v):
        yield f"| `{name}{arguments(v)}` | {sentence(v)} |"


def named(name: str) -> object:
    """Returns what a name of a reference page stands for."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError:
        module, _, attribute = name.rpartition(".")
        return getattr(importlib.import_module(module), attribute)


PAGES = ["load", "fields", "windows", "rows", "stats", "torch", "taco", "files", "server", "jobs"]
PAGES += ["order", "rumi", "errors"]
"""The pages of the reference, in the order of the site."""
UNINSTALLED = {"chaski.torchgeo", "chaski.terratorch"}
"""They import a package that the environment of the checks lacks."""


def reference() -> str:
    """Returns the page of signatures, with the names that the reference has, in its order."""
    out = [
        "# Python reference",
        "",
        "Arguments and first sentences of all public names, written by",
    ]
    out += ["`make api` from the docstrings; `help(chaski.load)` and the site have them whole."]
    for page in PAGES:
        text = (DOCS / "reference" / f"{page}.md").read_text()
        names = [n for n in re.findall(r"^::: (\S+)", text, re.M) if n not in UNINSTALLED]
        title = re.search(r"^# (.*)", text, re.M)
        out += ["", f"## {title[1] if title else page}", "", "| name | |", "|---|---|"]
        for name in names:
            out += rows(name, named(name))
    return "\n".join(out) + "\n"


def main() -> int:
    """Compares or writes the pages."""
    failed = 0
    for path, now in ("api/python.txt", listing()), ("reference/README.md", reference()):
        if "--write" in sys.argv[1:]:
            (DOCS / path).write_text(now)
        elif (DOCS / path).read_text() != now:
            print(f"docs/{path} is not what the package has: run make api, and look at the change")
            failed = 1
    return failed


if __name__ == "__main__":
    sys.exit(main())
