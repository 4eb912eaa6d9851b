"""Read the Parquet and Arrow files of benchmarks and logs, as rows or columns."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from contam.errors import BenchmarkError, LogError, Plain, Public
from contam.tables.ipc import stream_problem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from contam.errors import ContamError


ARROW_FILE_MAGIC = b"ARROW1"
_BATCH_ROWS = 4096

Record = dict[str, object]


def parquet_rows(
    path: Path, choose: Callable[[Mapping[str, bool]], Sequence[str]], data: bytes | None = None
) -> Iterator[Record]:
    """Rows of a Parquet file as dictionaries, only with the columns that `choose` picks.

    choose  called once with all top-level column names, and whether a column holds bytes or lists
            of numbers, as images and embeddings do: these need not be read
    data    the bytes of the file, where they are in memory already
    Raises BenchmarkError when the file is damaged.
    """
    source = path if data is None else pa.BufferReader(data)
    with (
        _readable(path, "Parquet", BenchmarkError),
        pq.ParquetFile(source, memory_map=data is None, pre_buffer=False) as file,
    ):
        columns = _chosen(path, file.schema_arrow, choose)
        for batch in file.iter_batches(_BATCH_ROWS, columns=columns, use_threads=False):
            yield from batch.to_pylist()


def arrow_rows(
    path: Path, choose: Callable[[Mapping[str, bool]], Sequence[str]], data: bytes | None = None
) -> Iterator[Record]:
    """Rows of an Arrow IPC stream (as Hugging Face `datasets` saves them) or Arrow IPC file."""
    with (
        _readable(path, "Arrow", BenchmarkError),
        pa.memory_map(str(path)) if data is None else pa.BufferReader(data) as source,
    ):
        is_file = source.read(len(ARROW_FILE_MAGIC)) == ARROW_FILE_MAGIC
        source.seek(0)
        reader = (pa.ipc.open_file if is_file else pa.ipc.open_stream)(source)
        columns = _chosen(path, reader.schema, choose)
        if is_file:
            for place in range(reader.num_record_batches):
                yield from reader.get_batch(place).select(columns).to_pylist()
            return
        at = source.tell()
        for batch in reader:
            at = source.tell()
            yield from batch.select(columns).to_pylist()
        if problem := stream_problem(source, at):
            raise BenchmarkError("{}: {}", path, problem, hint="copy the file again")


def _chosen(
    path: Path, schema: pa.Schema, choose: Callable[[Mapping[str, bool]], Sequence[str]]
) -> list[str]:
    """The columns to read. Raises BenchmarkError when rows as dictionaries would lose one."""
    doubled = _doubled(list(schema))
    if doubled is not None:
        raise BenchmarkError(
            "{}: the column {!r} occurs twice in one record", path, doubled,
            hint="remove one of the two, or name them apart",
        )  # fmt: skip
    return list(choose({field.name: _is_bulk(field.type) for field in schema}))


def _is_bulk(kind: pa.DataType) -> bool:
    inner = [kind.field(at).type for at in range(kind.num_fields)]
    numbers = any(map(pa.types.is_floating, inner)) and not pa.types.is_struct(kind)
    return pa.types.is_binary(kind) or numbers or any(map(_is_bulk, inner))


def _doubled(fields: Sequence[pa.Field]) -> str | None:
    names = [field.name for field in fields]
    if len(set(names)) < len(names):
        return next(str(name) for name in names if names.count(name) > 1)
    inner = ([field.type.field(at) for at in range(field.type.num_fields)] for field in fields)
    for some in inner:
        found = _doubled(some)
        if found is not None:
            return found
    return None


@contextmanager
def _readable(path: Path, called: str, kind: type[ContamError]) -> Iterator[None]:
    """Name a file that cannot be read."""
    try:
        yield
    except (pa.ArrowException, OSError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise kind(
            "{}: cannot read as {} ({})", path, Public(called), Plain(reason),
            hint="copy the file again",
        ) from error  # fmt: skip


def column_names(path: Path) -> tuple[str, ...]:
    """Top-level columns of a Parquet file; LogError when it is damaged."""
    with _readable(path, "Parquet", LogError), pq.ParquetFile(path, pre_buffer=False) as file:
        return tuple(file.schema_arrow.names)


def read_columns(
    path: Path, names: Sequence[str] | None = None, data: bytes | None = None
) -> dict[str, Any]:
    """Columns of a Parquet file, those of `names` or all; data  its bytes, if they are in memory.

    Numbers without a null come as an array, anything else as a list of plain values.
    """
    source = path if data is None else pa.BufferReader(data)
    with _readable(path, "Parquet", LogError), pq.ParquetFile(source, pre_buffer=False) as file:
        table = file.read(columns=None if names is None else list(names), use_threads=False)
        return {name: _values(table.column(name)) for name in table.schema.names}


def _values(column: pa.ChunkedArray) -> Any:  # noqa: ANN401 - an array or a list
    number = pa.types.is_integer(column.type) or pa.types.is_floating(column.type)
    return column.to_numpy() if number and not column.null_count else column.to_pylist()
