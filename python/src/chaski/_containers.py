"""Containers, as `chaski sql` answers about them; a query beyond it is run by duckdb."""

from __future__ import annotations

import contextlib
import functools
import io
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

from chaski._calls import warn
from chaski._command import ask
from chaski._plain import optional
from chaski.errors import Error, NotFoundError, SpecError, UnsupportedError

if TYPE_CHECKING:
    import pyarrow

Mode: TypeAlias = Literal["intersection", "fill_missing", "strict"]
Steps: TypeAlias = "Sequence[Mapping[str, Any]]"


@dataclass(eq=False)
class Source:
    """Containers, and what was learnt of them: shared by all datasets that are made of it."""

    paths: Sequence[str]
    base_path: str | None
    mode: str
    timeout: float | None

    def __post_init__(self) -> None:
        if self.mode not in get_args(Mode):
            raise SpecError(
                f"column_mode is {self.mode!r}: it must be one of {', '.join(get_args(Mode))}"
            )
        self._tables: dict[int, pyarrow.Table] = {}
        self._told: set[str] = set()

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles what it is made of, not what was learnt."""
        return Source, (self.paths, self.base_path, self.mode, self.timeout)

    def ask(self, form: str, *flags: str, **question: Any) -> bytes:
        """Asks `chaski sql` about the containers. What the answers warn of is said once."""
        line = ["sql", f"--format={form}", f"--columns-mode={self.mode}", *flags]
        if self.base_path is not None:
            line.append(f"--base-path={self.base_path}")
        asked = json.dumps(question).encode()
        out, warned = ask([*line, "--", "-", *self.paths], [asked], self.timeout)
        for warning in warned:
            if warning not in self._told:
                self._told.add(warning)
                warn(warning)
        return out

    @functools.cached_property
    def info(self) -> dict[str, Any]:
        said: dict[str, Any] = json.loads(self.ask("json"))
        return said

    def query(self, sql: str, given: Steps) -> pyarrow.Table:
        """Returns the result of a query over the samples that conditions leave.

        One that the engine refuses is run by the package duckdb, over the engine's tables.
        """
        try:
            return self.sql(sql, given)
        except (SpecError, UnsupportedError) as e:
            return _by_duckdb(sql, lambda n: self.sql(f'SELECT * FROM "{n}"', given), e)

    def sql(self, sql: str, given: Steps = (), stored: bool = False) -> pyarrow.Table:
        """Returns the result of a query that the engine runs."""
        needs_pyarrow()
        import pyarrow.parquet

        answer = self.ask("parquet", *["--stored"] * stored, sql=sql, where=given)
        return pyarrow.parquet.ParquetFile(io.BytesIO(answer)).read()

    def table(self, level: int) -> pyarrow.Table:
        """Returns the table of a lower level as it is stored: rows are as in `Entries.row`."""
        if level not in self._tables:
            self._tables[level] = self.sql(f"SELECT * FROM level{level}", stored=True)
        return self._tables[level]


def needs_pyarrow() -> Any:
    why = "tables of samples need pyarrow (pip install pyarrow); ids, read and loader do without"
    return optional("pyarrow", why)


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


def _by_duckdb(sql: str, table: Callable[[str], pyarrow.Table], error: Error) -> pyarrow.Table:
    """Returns the result of a query that the engine refused, over the tables that it may name.

    The error of the engine is raised if it is not about the query itself, and if duckdb is not
    installed or refuses the query too.
    """
    if isinstance(error, UnsupportedError) and error.part != "query":
        raise error
    try:
        import duckdb
    except ImportError:
        if isinstance(error, UnsupportedError):
            raise UnsupportedError(
                f"{error}; `pip install duckdb`", kind=error.kind, file=error.file, part=error.part
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
