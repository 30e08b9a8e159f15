"""Compares pages with the public names of the Python package, or with --write writes them.

docs/api/python.txt has every name with its types: a review sees there what a change does to users.
docs/reference/README.md has signatures and first sentences, and the other pages of docs/reference
the docstrings whole, for readers on the code host. The site has its own generator for the latter.
"""

from __future__ import annotations

import dataclasses
import enum
import importlib
import inspect
import re
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

from api_examples import EXAMPLES

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
    out += ["`make api` from the docstrings, as the pages below are, which have them whole."]
    for page in PAGES:
        text = (DOCS / "reference" / f"{page}.md").read_text()
        names = [n for n in re.findall(r"^<!-- ::: (\S+)", text, re.M) if n not in UNINSTALLED]
        title = re.search(r"^# (.*)", text, re.M)
        out += ["", f"## [{title[1] if title else page}]({page}.md)", "", "| name | |", "|---|---|"]
        for name in names:
            out += rows(name, named(name))
    return "\n".join(out) + "\n"


BLOCK = re.compile(r"(<!-- ::: (\S+)[^>]*-->\n).*?(<!-- /::: -->)", re.DOTALL)
"""What a page has of a name: tools/site/hooks.py shows what the generator of the site makes."""
GROUPS = {
    "chaski.Field": {
        "What it is": "column pattern patterns columns blob kind vector classes split missing",
        "Bands and steps": "bands times pages dims layout sizes wavelengths gsd",
        "Values": "dtype normalize physical scale offset lut nodata fill validity clip",
        "Place": "pad resample grid ground scenes match match_days",
    }
}
"""Sections of classes with many members."""
SECTION = re.compile(r"^(Args|Attributes|Returns|Raises|Yields):$", re.MULTILINE)
ITEM = re.compile(r"^    (\w[\w.]*):((?: .*)?(?:\n(?:     .*)?)*)", re.MULTILINE)
UNITS = "bytes|seconds|pixels|metres|degrees|samples|rows|days|batches|threads|steps"


def unit(kind: str, text: str) -> str:
    """Returns the unit of a number, as the first sentence about it says."""
    first = re.split("[.;]", " ".join(text.split()))[0]
    measured = re.findall(r"\bin (bytes|seconds|pixels|metres|degrees)\b", first)
    begins = re.match(rf"(?:the |how |many |number |of |takes )*({UNITS})\b", first)
    words = measured + ([begins[1]] if begins else [])
    return words[0] if words and re.search(r"(^|\| )(int|float|Size)\b", kind) else ""


def cell(text: str) -> str:
    """Returns a text as a cell of a table."""
    return " ".join(text.split()).replace("](docs/", "](../").replace("|", "\\|")


def types(f: object) -> dict[str, tuple[str, str]]:
    """Returns types and defaults of what a function or class takes, or a class has."""
    out = {}
    try:
        for n, p in inspect.signature(f).parameters.items():  # type: ignore[arg-type]
            made = p.default is not p.empty and "factory" in repr(p.default)
            kind = "" if p.annotation is p.empty else str(p.annotation).strip("'")
            default = "" if p.default is p.empty else f"{kind}()" if made else repr(p.default)
            out[n] = kind, default
    except (TypeError, ValueError):
        pass
    if dataclasses.is_dataclass(f):
        for field in dataclasses.fields(f):
            made = field.default_factory
            if made is not dataclasses.MISSING:
                out[field.name] = (str(field.type), f"{getattr(made, '__name__', '')}()")
    return out


def table(text: str, known: dict[str, tuple[str, str]], names: list[str] | None = None) -> str:
    """Returns the items of a section as a table, or those of some names in their order."""
    items = {m[1]: m[2] for m in ITEM.finditer(text)}
    lines = ["| name | type | default | unit | |", "|---|---|---|---|---|"]
    for name in names or items:
        kind, default = known.get(name, ("", ""))
        shown = [f"`{v}`" if v else "" for v in (cell(kind), cell(default))]
        cells = f"`{name}`", *shown, unit(kind, items[name]), cell(items[name])
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def prose(text: str) -> str:
    """Returns a text of a docstring, its blocks of code with fences."""
    out = []
    for part in re.split(r"((?:^    .*\n?|^\n(?=    ))+)", text.strip("\n"), flags=re.MULTILINE):
        if (block := part.strip("\n")).startswith("    "):
            code = "\n".join(line[4:] for line in block.rstrip().split("\n"))
            out.append(f"```python\n{code}\n```")
        elif part.strip():
            out.append(part.strip())
    return "\n\n".join(out).replace("](docs/", "](../")


def whole(name: str, v: object, depth: int = 2) -> Iterator[str]:
    """Yields the parts of the page about a name."""
    if inspect.ismodule(v):
        for inner in public(v):
            yield from whole(f"{name}.{inner}", getattr(v, inner), depth)
        return
    yield f"{'#' * depth} {name}"
    known = types(v)
    parts = SECTION.split(inspect.getdoc(v) or "")
    yield prose(parts[0])
    if inspect.isclass(v) and not issubclass(v, Exception) and "\n    " not in parts[0]:
        yield f"```python\n{EXAMPLES[name]}\n```"
    if inspect.isclass(v) and "__init__" in vars(v):
        inner = SECTION.split(inspect.getdoc(v.__init__) or "")
        parts += inner[1:] if "Args" in inner else []
    for title, text in zip(parts[1::2], parts[2::2], strict=True):
        if title in ("Args", "Attributes") and name in GROUPS:
            items = [m[1] for m in ITEM.finditer(text)]
            listed = " ".join(GROUPS[name].values()).split()
            assert sorted(items) == sorted(listed), set(items) ^ set(listed)
            for group, names in GROUPS[name].items():
                yield f"**{group}**"
                yield table(text, known, names.split())
        elif title in ("Args", "Attributes"):
            yield f"**{'Arguments' if title == 'Args' else title}**"
            yield table(text, known)
        elif title == "Raises":
            items = [f"- `{m[1]}`:{cell(m[2])}" for m in ITEM.finditer(text)]
            lines = (i.replace(":", ": ", 1) for i in items)
            yield "**Raises**\n\n" + "\n".join(
                textwrap.fill(i, 100, subsequent_indent="  ", break_on_hyphens=False) for i in lines
            )
        else:
            yield f"**{title}** {cell(text)}"
    if inspect.isclass(v) and not issubclass(v, (enum.Enum, Exception)):
        for method, f in vars(v).items():
            called = getattr(f, "__func__", f)
            routine = isinstance(f, property) or inspect.isroutine(f)
            if not method.startswith("_") and routine and sentence(called):
                short = name.rpartition(".")[2]
                yield from whole(
                    f"{short}.{method}{'' if isinstance(f, property) else '()'}", called, depth + 1
                )


def wrapped(text: str) -> str:
    """Returns lines of at most 100 columns, but of tables and code."""
    out = []
    for part in text.split("\n\n"):
        lines = part.split("\n")
        plain = not part.startswith(("|", "#", "```", "- ", "    ")) and max(map(len, lines)) > 100
        out.append(textwrap.fill(" ".join(lines), 100, break_long_words=False) if plain else part)
    return "\n\n".join(out)


def page(text: str) -> str:
    """Returns a page of the reference with what the package has of its names."""

    def made(m: re.Match[str]) -> str:
        if m[2] in UNINSTALLED:
            return m[0]
        return m[1] + "\n" + wrapped("\n\n".join(whole(m[2], named(m[2])))) + "\n\n" + m[3]

    return BLOCK.sub(made, text)


def main() -> int:
    """Compares or writes the pages."""
    failed = 0
    pages = [("api/python.txt", listing()), ("reference/README.md", reference())]
    for name in PAGES:
        path = f"reference/{name}.md"
        pages.append((path, page((DOCS / path).read_text())))
    for path, now in pages:
        if "--write" in sys.argv[1:]:
            (DOCS / path).write_text(now)
        elif (DOCS / path).read_text() != now:
            print(f"docs/{path} is not what the package has: run make api, and look at the change")
            failed = 1
    return failed


if __name__ == "__main__":
    sys.exit(main())
