"""Query Parquet files in SQL with an in-memory DuckDB."""

from __future__ import annotations

import contextlib
import re
from typing import TYPE_CHECKING, Any, BinaryIO, Final, cast

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from contam.errors import Remedy, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from contam.tables.schemas import Table


_NO_DOCUMENTS = (
    "SELECT NULL::VARCHAR AS shard, NULL::BIGINT AS row, NULL::VARCHAR AS document_id, "
    "NULL::VARCHAR AS url, NULL::VARCHAR AS date, NULL::VARCHAR AS source, "
    "NULL::VARCHAR AS language, NULL::VARCHAR AS text WHERE false"
)

_BATCH_ROWS: Final = 1 << 16
_INSTANT = "TIMESTAMP WITH TIME ZONE"

#: PIVOT is a statement of several parts.
_READ: Final = (duckdb.StatementType.SELECT, duckdb.StatementType.MULTI)
#: Other pragmas and settings run files, or name files that are then written.
_HARMLESS: Final = re.compile(
    r"\s*(?:PRAGMA\s+(?:table_info|show_tables|database_list|database_size|version|functions"
    r"|collations|storage_info)"
    r"|(?:SET|RESET)\s+(?:(?:SESSION|GLOBAL)\s+)?(?:timezone|calendar|threads|memory_limit"
    r"|variable\s+\w+|default_order|default_null_order))\b",
    re.IGNORECASE,
)
_EXPLAIN: Final = re.compile(r"\s*EXPLAIN\s*(?:ANALYZE\b|\([^)]*\))?", re.IGNORECASE)


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

    def add_documents(self, sources: Sequence[str]) -> None:
        """Make the view `documents` of SELECT statements, each over one shard."""
        body = "\nUNION ALL BY NAME\n".join([_NO_DOCUMENTS, *sources])
        self._connection.execute(f"CREATE VIEW documents AS\n{body}")

    def ask(
        self, query: str, values: Mapping[str, object] | None = None
    ) -> tuple[list[str], list[tuple[Any, ...]]]:
        """Column names and rows of the answer. Raises UsageError with the database's own words.

        values  values of $name in the query
        """
        with _said():
            found = self._relation(query, values)
            return ([], []) if found is None else (list(found.columns), _rows(found))

    def write_parquet(self, query: str, file: BinaryIO) -> int:
        """Write the answer as Parquet, batch by batch; returns the number of rows.

        Raises UsageError for a query that fails, has no answer, gives two columns one name or a
        type that Parquet does not have.
        """
        with _said():
            found = self._relation(query, None)
            names = [] if found is None else list(found.columns)
            if found is None or not names:
                raise UsageError("the query has no answer to write", remedy=Remedy.ASK_KNOWN_VIEWS)
            refuse_same_names(names)
            n_rows = 0
            try:
                # Older releases have it under another name, of which newer ones warn.
                read = getattr(found, "to_arrow_reader", None) or found.fetch_arrow_reader
                reader = read(_BATCH_ROWS)
                with pq.ParquetWriter(file, reader.schema, compression="zstd") as writer:
                    for batch in reader:
                        writer.write_batch(batch)
                        n_rows += batch.num_rows
            except (pa.ArrowNotImplementedError, pa.ArrowInvalid, pa.ArrowTypeError) as error:
                raise UsageError(
                    "the answer cannot be written as Parquet: {}", _reason(str(error)),
                    remedy=Remedy.ASK_AS_TEXT,
                ) from error  # fmt: skip
            return n_rows

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
            "the query fails: {}", _reason(str(error)), remedy=Remedy.ASK_KNOWN_VIEWS
        ) from error


def writing(query: str) -> str:
    """The first statement of a query that does more than read, as its kind: COPY; "" if none does.

    Raises UsageError for what is no SQL.
    """
    with _said():
        for statement in duckdb.extract_statements(query):
            kind, text = statement.type, statement.query
            explained = kind == duckdb.StatementType.EXPLAIN and _explains_read(text)
            # In older releases the types that a PIVOT needs, which nobody wrote.
            made = kind == duckdb.StatementType.CREATE and not text
            if not (explained or made or kind in _READ or _HARMLESS.match(text)):
                return str(kind.name)
    return ""


def _explains_read(statement: str) -> bool:
    """Whether an EXPLAIN explains a query that reads: EXPLAIN ANALYZE carries it out."""
    try:
        parts = duckdb.extract_statements(_EXPLAIN.sub("", statement, count=1))
    except duckdb.Error:  # a comment stands in between: what follows is not known
        return False
    return all(part.type in _READ for part in parts)


def refuse_same_names(names: Sequence[str]) -> None:
    """Raise UsageError where two columns have one name: of such columns only one would be left."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise UsageError(
                "two columns of the answer are called {}", name, remedy=Remedy.NAME_COLUMNS_APART
            )
        seen.add(name)


def _rows(found: duckdb.DuckDBPyRelation) -> list[tuple[Any, ...]]:
    # Only for instants does the database need a package of time zones, which Arrow does without.
    if not any(_INSTANT in str(kind) for kind in found.types):
        return found.fetchall()
    table = found.to_arrow_table()
    try:
        columns = [column.to_pylist() for column in table.columns]
    except (OverflowError, ValueError) as error:
        raise UsageError(
            "the answer holds a time that no calendar has", remedy=Remedy.ASK_TIME_AS_TEXT
        ) from error
    return list(zip(*columns, strict=True))


def _reason(error: str) -> str:
    """The database's message on one line, without its picture of the place in the query."""
    return " ".join(error.partition("\n\nLINE ")[0].split())


def shard_select(uri: str, name: str, text: Sequence[str], fields: Mapping[str, str | None]) -> str:
    """A SELECT over one Parquet shard: its rows with their numbers, text and metadata.

    text    path of the text column; fields  metadata field -> top-level column, None if absent
    """
    column = ".".join(_quoted(step) for step in text)
    named = {field: f"CAST({_quoted(top)} AS VARCHAR)" for field, top in fields.items() if top}
    own = f"{_literal(name + ':')} || file_row_number"
    identity = f"coalesce(nullif({named['id']}, ''), {own})" if "id" in named else own
    rest = ", ".join(
        f"nullif({named[field]}, '') AS {field}" if field in named else f"NULL AS {field}"
        for field in ("url", "date", "source", "language")
    )
    columns = (
        f"{_literal(name)} AS shard, file_row_number AS row, {identity} AS document_id, {rest}"
    )
    source = f"read_parquet({_literal(uri)}, file_row_number=true)"
    return f"SELECT {columns}, {column} AS text FROM {source}"  # noqa: S608 - all of it is quoted


def copied_select(path: Path) -> str:
    """A SELECT over documents that were written out as Parquet with our own column names."""
    return f"SELECT * FROM read_parquet({_literal(str(path))})"  # noqa: S608 - quoted


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


_COLUMNS: Final = pa.schema(
    [
        pa.field("shard", pa.string()),
        pa.field("row", pa.int64()),
        pa.field("document_id", pa.string()),
        pa.field("url", pa.string()),
        pa.field("date", pa.string()),
        pa.field("source", pa.string()),
        pa.field("language", pa.string()),
        pa.field("text", pa.large_string()),
    ]
)


def write_documents(path: Path, batches: Iterable[Mapping[str, list[Any]]]) -> None:
    """Write batches of columns (shard, row, document_id, ..., text), one row group each."""
    with pq.ParquetWriter(path, _COLUMNS, compression="lz4") as writer:
        for batch in batches:
            writer.write_table(pa.table(dict(batch), schema=_COLUMNS))
