"""Whether the numbers of classes of several loaders mean the same."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Mapping
from typing import Any

_log = logging.getLogger("chaski")

_SPLIT = re.compile(
    r"(?<![a-z])(train(ing)?|val(id|idation)?|test(ing)?|dev)(?![a-z])", re.IGNORECASE
)
_found: dict[str, tuple[list[str], str]] = {}
"""The classes that the last loader found for each field, and its source."""


def _classes(spec: Mapping[str, Any]) -> Iterator[tuple[str, list[str], str]]:
    fields = spec.get("fields", [])
    named = fields.items() if isinstance(fields, dict) else ((f["name"], f) for f in fields)
    for name, f in named:
        vector = f.get("vector") or {}
        if names := f.get("classes") or vector.get("classes"):
            yield name, names, vector.get("path") or ""


def compare(asked: Mapping[str, Any], found: Mapping[str, Any]) -> None:
    """Warns of classes that a loader found in the data of one split, as others may lack some.

    Args:
        asked: the spec of the loader.
        found: the same with all that the data say.
    """
    given = {name for name, _, _ in _classes(asked)}
    for name, names, path in _classes(found):
        if name in given:
            continue
        source = path or str(found.get("source", ""))
        before, other = _found.get(name, (names, ""))
        moved = [(k, x) for k, x in enumerate(names) if x in before and before.index(x) != k]
        if moved:
            number, label = moved[0]
            _log.warning(
                "classes of %s: %r is number %d of %s, and number %d of %s: give classes=%r to all",
                *(name, label, number, source, before.index(label), other),
                sorted({*before, *names}),
            )
        elif name not in _found and _SPLIT.search(source):
            _log.warning(
                "classes of %s are those of %s, and another split may lack some: give classes=%s",
                *(name, source, names if len(names) <= 10 else "loader.classes of this one"),
            )
        _found[name] = names, source
