"""Query Parquet files in SQL with an in-memory DuckDB."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, cast

import duckdb

from contam.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from contam.tables.schemas import Table


_INSTANT = "TIMESTAMP WITH TIME ZONE"


class Database:
    """An in-memory database; closing it leaves nothing behind."""

    def __init__(self) -> None:
        self._connection = duckdb.connect(":memory:")

    def close(self) -> None:
        """Give everything back."""
        self._connection.close()

    def add_table(self, name: str, table: Table) -> None:
        """Make an Arrow table a view."""
        self._connection.register(name, table)

    def ask(
        self, query: str, values: Mapping[str, object] | None = None
    ) -> tuple[list[str], list[tuple[Any, ...]]]:
        """Column names and rows of the answer. Raises UsageError with the database's own words.

        values  values of $name in the query
        """
        with _said():
            found = self._relation(query, values)
            return ([], []) if found is None else (list(found.columns), _rows(found))

    def _relation(
        self, query: str, values: Mapping[str, object] | None
    ) -> duckdb.DuckDBPyRelation | None:
        relation = self._connection.sql(query, params=dict(values) if values else None)
        # None for a statement without an answer, which the library's types do not mention.
        return cast("duckdb.DuckDBPyRelation | None", relation)


@contextlib.contextmanager
def _said() -> Iterator[None]:
    """Raise what the database says against a query as UsageError."""
    try:
        yield
    except duckdb.Error as error:
        raise UsageError(
            "the query fails: {}",
            _reason(str(error)),
            hint="views: verdicts, evidence, items, documents; columns of one: `describe verdicts`",
        ) from error


def _rows(found: duckdb.DuckDBPyRelation) -> list[tuple[Any, ...]]:
    # Only for instants does the database need a package of time zones, which Arrow does without.
    if not any(_INSTANT in str(kind) for kind in found.types):
        return found.fetchall()
    table = found.to_arrow_table()
    try:
        columns = [column.to_pylist() for column in table.columns]
    except (OverflowError, ValueError) as error:
        raise UsageError(
            "the answer holds a time that no calendar has", hint="ask for it as text: `x::varchar`"
        ) from error
    return list(zip(*columns, strict=True))


def _reason(error: str) -> str:
    """The database's message on one line, without its picture of the place in the query."""
    return " ".join(error.partition("\n\nLINE ")[0].split())
