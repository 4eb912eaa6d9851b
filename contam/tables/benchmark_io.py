"""Rows of Parquet files and Arrow files, the two table formats benchmarks are shipped in."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from contam.errors import BenchmarkError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

PARQUET_MAGIC = b"PAR1"
ARROW_FILE_MAGIC = b"ARROW1"
_BATCH_ROWS = 4096

Record = dict[str, object]


def parquet_rows(path: Path, choose: Callable[[Sequence[str]], Sequence[str]]) -> Iterator[Record]:
    """Rows of a Parquet file as dictionaries, only with the columns that `choose` picks.

    choose  called once with all top-level column names; images and embeddings need not be read
    Raises BenchmarkError when the file is damaged.
    """
    try:
        with pq.ParquetFile(path, memory_map=True) as file:
            columns = list(choose(file.schema_arrow.names))
            for batch in file.iter_batches(batch_size=_BATCH_ROWS, columns=columns):
                yield from batch.to_pylist()
    except (pa.ArrowException, OSError) as error:
        raise _damaged(path, "Parquet", error) from error


def arrow_rows(path: Path, choose: Callable[[Sequence[str]], Sequence[str]]) -> Iterator[Record]:
    """Rows of an Arrow IPC stream (as Hugging Face `datasets` saves them) or Arrow IPC file."""
    try:
        with pa.memory_map(str(path)) as source:
            if source.read(len(ARROW_FILE_MAGIC)) == ARROW_FILE_MAGIC:
                yield from _file_rows(source, choose)
            else:
                source.seek(0)
                yield from _stream_rows(source, choose)
    except (pa.ArrowException, OSError) as error:
        raise _damaged(path, "Arrow", error) from error


def _file_rows(
    source: pa.NativeFile, choose: Callable[[Sequence[str]], Sequence[str]]
) -> Iterator[Record]:
    reader = pa.ipc.open_file(source)
    columns = list(choose(reader.schema.names))
    for place in range(reader.num_record_batches):
        yield from reader.get_batch(place).select(columns).to_pylist()


def _stream_rows(
    source: pa.NativeFile, choose: Callable[[Sequence[str]], Sequence[str]]
) -> Iterator[Record]:
    reader = pa.ipc.open_stream(source)
    columns = list(choose(reader.schema.names))
    for batch in reader:
        yield from batch.select(columns).to_pylist()


def _damaged(path: Path, kind: str, error: Exception) -> BenchmarkError:
    reason = str(error).splitlines()[0] if str(error) else type(error).__name__
    return BenchmarkError(f"{path}: cannot read as {kind} ({reason})", hint="fetch the file again")
