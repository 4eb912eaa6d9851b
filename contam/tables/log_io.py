"""Whole Parquet files of evaluation logs, which are small: rows, columns, names of columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from contam.errors import LogError
from contam.facts import Public
from contam.remedies import Remedy

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


def column_names(path: Path) -> tuple[str, ...]:
    """Top-level columns of a Parquet file; LogError when it is damaged."""
    try:
        with pq.ParquetFile(path) as file:
            return tuple(file.schema_arrow.names)
    except (pa.ArrowException, OSError) as error:
        raise _damaged(path, error) from error


def read_columns(path: Path, names: Sequence[str] | None = None) -> dict[str, Any]:
    """Columns of a Parquet file, those of `names` or all.

    Numbers without a null come as an array, anything else as a list of plain values.
    """
    try:
        with pq.ParquetFile(path) as file:
            table = file.read(columns=None if names is None else list(names), use_threads=False)
            return {name: _values(table.column(name)) for name in table.schema.names}
    except (pa.ArrowException, OSError) as error:
        raise _damaged(path, error) from error


def _values(column: pa.ChunkedArray) -> Any:  # noqa: ANN401 - an array or a list
    number = pa.types.is_integer(column.type) or pa.types.is_floating(column.type)
    return column.to_numpy() if number and not column.null_count else column.to_pylist()


def _damaged(path: Path, error: Exception) -> LogError:
    reason = str(error).splitlines()[0] if str(error) else type(error).__name__
    return LogError(
        "{}: cannot read as Parquet ({})", path, Public(reason), remedy=Remedy.COPY_AGAIN
    )
