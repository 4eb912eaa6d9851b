"""Take tables from other packages by their Arrow interface, and give tables back to them."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from contam.errors import MissingExtraError, Place, Public, Statement, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import ModuleType

    from contam.tables.schemas import Table

_VIEWS: Final = {pa.string_view(): pa.large_string(), pa.binary_view(): pa.large_binary()}


def parquet_bytes(frame: object, called: str) -> bytes:
    """A table of any package as a Parquet file: equal rows and types give equal bytes.

    frame   has `__arrow_c_stream__` (Arrow, pandas, Polars, DuckDB) or is a `datasets.Dataset`
    called  what messages call it

    Raises UsageError for a table without columns, and for what is no table or cannot be stored.
    """
    if not hasattr(type(frame), "__len__") and hasattr(type(frame), "with_format"):
        raise UsageError(
            "{} is a stream of rows", Place(called), hint="give a list of the rows you mean"
        )
    names = [name for name in getattr(frame, "columns", ()) if isinstance(name, str)]
    if doubled := next((name for name in names if names.count(name) > 1), None):
        raise UsageError(
            "{}: two columns of the table are called {!r}", Place(called), doubled,
            hint="remove one of the two, or name them apart",
        )  # fmt: skip
    try:
        table = _arrow(frame)
        if not table.num_columns:
            raise UsageError("{}: the table has no columns", Place(called))
        # What a package notes for itself, and how it cut the rows, are no part of the content.
        table = table.cast(pa.schema([_storable(field) for field in table.schema]))
        sink = pa.BufferOutputStream()
        pq.write_table(table.combine_chunks(), sink)
    except (pa.ArrowException, TypeError, ValueError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise UsageError("{}: the table cannot be read: {}", Place(called), reason) from error
    data: bytes = sink.getvalue().to_pybytes()
    return data


def _arrow(frame: Any) -> pa.Table:  # noqa: ANN401 - a table of any package
    if hasattr(type(frame), "with_format"):
        # Of a Dataset that was filtered or shuffled, this has the rows that are left, in order.
        frame = frame.with_format("arrow")[:]
    elif hasattr(type(frame), "to_arrow"):
        frame = frame.to_arrow()
    return pa.table(frame)


def _storable(field: pa.Field) -> pa.Field:
    """The field without what belongs to a package, and without types that Parquet does not have."""
    return pa.field(field.name, _VIEWS.get(field.type, field.type), field.nullable)


class Frames:
    """A result of several tables, the main one first, which other packages can take."""

    def to_arrow(self, table: str = "") -> Table:
        """One table, the main one unless named. Raises UsageError for an unknown name."""
        raise NotImplementedError

    def to_pandas(self, table: str = "") -> Any:  # noqa: ANN401 - pandas may be missing
        """One table as a pandas DataFrame. Raises MissingExtraError without pandas."""
        _imported("pandas")
        return self.to_arrow(table).to_pandas()

    def to_polars(self, table: str = "") -> Any:  # noqa: ANN401 - Polars may be missing
        """One table as a Polars DataFrame. Raises MissingExtraError without Polars."""
        return _imported("polars").from_arrow(self.to_arrow(table))


def unknown_table(name: str, known: Iterable[str]) -> UsageError:
    """What is said of a table that a result does not have."""
    hint = Statement("known: {}", ", ".join(known))
    return UsageError("a result has no table {!r}", name, hint=hint)


def _imported(package: str) -> ModuleType:
    try:
        return import_module(package)
    except ModuleNotFoundError as error:
        raise MissingExtraError(
            "the package {} is not installed",
            Public(package),
            hint=Statement("pip install {}", package),
        ) from error
