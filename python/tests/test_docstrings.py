"""Docstrings against signatures: what they call arguments, members and methods is called so."""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest
from conftest import nonempty

import chaski
from chaski import _windows, errors, jobs, order, rumi, taco

MODULES = [chaski, errors, jobs, order, rumi, taco]
OTHERS = {
    *("num_workers", "collate_fn", "reduction", "callbacks"),  # PyTorch, Trainer
    "collections",  # pystac_client
}
"""Arguments of other packages in examples."""


def public() -> Iterator[tuple[str, Any]]:
    """Yields what users call and read the help of, with its name."""
    modules: list[ModuleType] = [*MODULES]
    for module in modules:
        for name in module.__all__:
            thing = getattr(module, name)
            if not (inspect.isclass(thing) or inspect.isfunction(thing)):
                continue
            yield f"{module.__name__}.{name}", thing
            for member, value in vars(thing).items() if inspect.isclass(thing) else ():
                value = getattr(value, "fget", getattr(value, "__func__", value))
                if inspect.isfunction(value) and (member[0] != "_" or member == "__init__"):
                    yield f"{module.__name__}.{name}.{member}", value


def torch_too() -> None:
    if chaski.torch not in MODULES:
        MODULES.append(chaski.torch)


def parameters(thing: Any) -> set[str]:
    try:
        return set(inspect.signature(thing).parameters)
    except (TypeError, ValueError):  # of a class that Python's own makes
        return set()


def section(doc: str, title: str) -> list[str]:
    """Returns the names that a section of a docstring lists."""
    found = re.search(rf"^{title}:\n((?:    .*\n|\n)+)", doc + "\n", re.M)
    return re.findall(r"^    (\w+)(?: \([^)]*\))?: ", found[1], re.M) if found else []


@pytest.fixture(autouse=True)
def with_torch() -> None:
    pytest.importorskip("torch")
    import chaski.torch

    torch_too()
    assert chaski.torch in MODULES


def test_documented_arguments_are_those_of_the_signature() -> None:
    found = 0
    for name, thing in nonempty(public()):
        listed = set(section(inspect.getdoc(thing) or "", "Args")) - {"o"}
        assert listed <= parameters(thing), (name, listed - parameters(thing))
        found += len(listed)
    assert found > 150


def test_documented_members_are_those_of_the_class() -> None:
    found = 0
    for name, thing in nonempty(public()):
        if dataclasses.is_dataclass(thing):
            listed = section(inspect.getdoc(thing) or "", "Attributes")
            fields = {f.name for f in dataclasses.fields(thing)}
            assert not listed or set(listed) == fields, (name, set(listed) ^ fields)
            found += len(listed)
    assert found > 150


def test_texts_name_arguments_that_there_are() -> None:
    """As in on_bad="skip", `Rows(take=...)` and Class.member."""
    known = set.union(*(parameters(thing) for _, thing in public())) | OTHERS
    classes = {n.rpartition(".")[2]: t for n, t in public() if inspect.isclass(t)}
    kinds = {w._kind for w in vars(_windows).values() if hasattr(w, "_kind")}
    assert len(kinds) > 6
    for name, thing in nonempty(public()):
        doc = inspect.getdoc(thing) or ""
        words = set(re.findall(r"(?<![\w.\]\"'?&{-])([a-z]\w*)=(?![=>])", doc))
        assert words <= known, f"{name}: {words - known} are no arguments"
        for kind, member in re.findall(r"\b([A-Z]\w+)\.(\w+)", doc):
            if kind in classes:
                made = section(inspect.getdoc(classes[kind]) or "", "Attributes")
                there = hasattr(classes[kind], member) or member in made
                assert there, f"{name}: {kind} has no {member}"
        for kind in kinds:
            assert f'"{kind}"' not in doc, f'{name}: "{kind}" is a word of specs'
