"""Compares docs/api/python.txt with the public names of the Python package.

The list is there so that a review sees what a change does to them. It fails where they differ;
with --write it writes the list.
"""

from __future__ import annotations

import enum
import importlib
import inspect
import sys
from pathlib import Path

LISTING = Path(__file__).resolve().parents[1] / "docs" / "api" / "python.txt"
MODULES = [
    "chaski",
    "chaski.errors",
    "chaski.jobs",
    "chaski.order",
    "chaski.rumi",
    "chaski.taco",
    "chaski.torch",
]
PRIVATE = {"chaski._argument", "chaski._plain", "chaski._plot", "chaski._proto.records"}
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


def listing() -> str:
    """Returns the listing of all modules."""
    lines = []
    for module in MODULES:
        m = importlib.import_module(module)
        names = getattr(m, "__all__", None)
        if names is None:  # what is written there, not what it imports
            names = [n for n, v in vars(m).items() if getattr(v, "__module__", None) == module]
        lines.append(f"module {module}")
        for name in sorted(n for n in names if not n.startswith("_")):
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


def main() -> int:
    """Compares or writes the listing."""
    now = listing()
    if "--write" in sys.argv[1:]:
        LISTING.parent.mkdir(parents=True, exist_ok=True)
        LISTING.write_text(now)
    elif not LISTING.exists() or LISTING.read_text() != now:
        print(f"{LISTING} is not what the package has: run make api, and look at the difference")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
