"""A plugin of pytest that opens directories and globs of the tests through a catalog.

`make soak-catalogs` runs the tests with it: what holds for files must hold for a catalog of them,
with equal batches and equal errors.
"""

from __future__ import annotations

import dataclasses
import functools
import os
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import chaski

# Tests that look at what only a catalog or only a directory has.
OTHER = {
    "test_ids": "ids are relative to the catalog",
    "test_ids_where_other_members_change_what_is_asked": "ids are relative to the catalog",
    "test_a_catalog_of_pairs_opens_with_its_fields": "directories have other fields",
}
ARRAYS = ["zarr.json", ".zgroup", ".zarray", "__schema", "__array_schema.tdb"]
INDEXED = [0]


def _is_folder(path: Path) -> bool:
    """Reports whether a path is a glob, or a directory that `chaski index` takes."""
    if "*" in path.name:
        return True
    others = ["COLLECTION.json", "METADATA", *ARRAYS]
    return path.is_dir() and not any((path / name).exists() for name in others)


def _fields(fields: Any) -> tuple[list[str], dict[str, Any]] | None:
    """Returns flags of `chaski index`, and the fields of its catalog; None if it has no such."""
    if not isinstance(fields, dict):
        return None
    flags, out = [], {}
    for name, f in fields.items():
        if isinstance(f, str) and "{id}" in f:
            f = chaski.Field(pattern=f)
        if not isinstance(f, chaski.Field):
            return None
        if f.scenes is not None or f.kind or f.column or f.patterns:
            return None
        if f.pattern:
            flags += ["--field", f"{name}={f.pattern}"]
            f = dataclasses.replace(f, pattern=None)
        out[name] = f
    return flags, out


def _through(source: Any, members: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Returns a catalog in place of a directory, and its fields, where one can be made."""
    if not isinstance(source, (str, os.PathLike)) or "://" in str(source):
        return source, members
    path = Path(source)
    fields = _fields(members.get("fields") or {})
    if fields is None or not _is_folder(path):
        return source, members
    # Beside the directory, so that errors call its files by the same paths.
    temporary = Path(tempfile.gettempdir()) in path.parents
    folder = path.parent if temporary else Path(tempfile.mkdtemp())
    out = folder / f"catalog-{INDEXED[0]}.parquet"
    command = [os.environ.get("CHASKI_BIN", "chaski"), "index", "-o", str(out), *fields[0]]
    if subprocess.run([*command, str(path)], capture_output=True).returncode:
        return source, members  # a file of it is not read
    INDEXED[0] += 1
    if members.get("fields"):
        members = {**members, "fields": fields[1]}
    return out, members


def _wrap(call: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(call)
    def wrapped(source: Any, *rest: Any, **members: Any) -> Any:
        source, members = _through(source, members)
        return call(source, *rest, **members)

    return wrapped


for _name in ["load", "stats"]:
    setattr(chaski, _name, _wrap(getattr(chaski, _name)))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if why := OTHER.get(item.name):
            item.add_marker(pytest.mark.skip(reason=why))


def pytest_sessionfinish(session: pytest.Session) -> None:
    if INDEXED[0] == 0:
        session.exitstatus = 1
    print(f"\n{INDEXED[0]} directories were read through a catalog")
