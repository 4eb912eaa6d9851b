"""Whole Parquet files of evaluation logs, which are small: rows, columns, names of columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from contam.errors import LogError

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


def read_columns(path: Path, names: Sequence[str] | None = None) -> dict[str, list[Any]]:
    """Columns of a Parquet file as lists of plain values; those of `names`, or all."""
    try:
        with pq.ParquetFile(path) as file:
            table = file.read(columns=None if names is None else list(names), use_threads=False)
            return {name: table.column(name).to_pylist() for name in table.schema.names}
    except (pa.ArrowException, OSError) as error:
        raise _damaged(path, error) from error


def _damaged(path: Path, error: Exception) -> LogError:
    reason = str(error).splitlines()[0] if str(error) else type(error).__name__
    return LogError(f"{path}: cannot read as Parquet ({reason})", hint="copy the file again")
