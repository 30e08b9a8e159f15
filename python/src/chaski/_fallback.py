"""Queries that the engine refuses, run by the package `duckdb` where it is installed."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from chaski.errors import Error, NotFoundError, SpecError, UnsupportedError

if TYPE_CHECKING:
    import pyarrow

# A query sees the tables that it is given: no files, no variables of Python, nothing to install.
_SETTINGS = (
    "SET python_enable_replacements = false",
    "SET autoinstall_known_extensions = false",
    "SET autoload_known_extensions = false",
    "SET enable_external_access = false",
    "SET lock_configuration = true",
)

# Names of tables: data, level1 and the like wherever they stand, others after FROM and JOIN.
_TABLES = re.compile(
    r"\b(?:(?:from|join)\s+(?=\w)|(?=(?:data|chunks|level\d+|l\d+)\b))(\w+)"
    r'|\b(?:from|join)\s+"([^"]+)"',
    re.IGNORECASE,
)


def run(sql: str, table: Callable[[str], pyarrow.Table], error: Error) -> pyarrow.Table:
    """Returns the result of a query that the engine refused.

    Args:
        sql: one SELECT.
        table: returns a table by its name; it is asked for those that the query may name.
        error: what the engine said. It is raised if it is not about the query itself, and if duckdb
            is not installed or refuses the query too.
    """
    if isinstance(error, UnsupportedError) and error.part != "query":
        raise error
    try:
        import duckdb
    except ImportError:
        if isinstance(error, UnsupportedError):
            raise UnsupportedError(
                f"{error}; `pip install duckdb`, and chaski.taco runs it by that",
                kind=error.kind,
                file=error.file,
                part=error.part,
            ) from None
        raise error from None
    with duckdb.connect(":memory:") as connection:
        for name in {plain or quoted for plain, quoted in _TABLES.findall(sql)}:
            with contextlib.suppress(NotFoundError):  # it is another name
                connection.register(name, table(name))
        try:
            for setting in _SETTINGS:
                connection.execute(setting)
            statements = connection.extract_statements(sql)
            if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
                raise SpecError("a query is one SELECT")
            return connection.sql(sql).to_arrow_table()
        except duckdb.Error as e:
            if isinstance(error, SpecError):
                raise error from None
            raise SpecError(str(e).splitlines()[0]) from None
