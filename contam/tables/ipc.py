"""Arrow IPC shards, file and stream format."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyarrow import ipc

from contam.tables.columns import ColumnRef, describe
from contam.tables.fields import as_text_block, take_rows
from contam.tables.guard import shard_errors

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from contam.tables.blocks import TextBlock

_FILE_MAGIC = b"ARROW1"
# Record batches come as large as their writer made them; what is joined or cast is cut to this.
_MAX_ROWS = 4096


def columns(path: str) -> tuple[ColumnRef, ...]:
    """List the columns of an Arrow IPC file or stream."""
    with shard_errors(path), _opened(path, None) as (schema, _):
        return describe(schema)


def text_blocks(path: str, ref: ColumnRef) -> Iterator[TextBlock]:
    """Yield the documents of column `ref`, rows in order."""
    for batch in batches(path, (ref.path[0],)):
        for begin in range(0, batch.num_rows, _MAX_ROWS):
            with shard_errors(path):
                block = as_text_block(batch.slice(begin, _MAX_ROWS), ref)
            yield block


def rows(
    path: str, names: Sequence[str], wanted: Sequence[int]
) -> Iterator[tuple[list[int], pa.RecordBatch]]:
    """Yield the wanted rows (ascending, distinct) with only the columns `names`."""
    if wanted:
        yield from take_rows(batches(path, names), 0, wanted)


def batches(path: str, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Yield the record batches as they were written, with only the columns `names`."""
    with shard_errors(path), _opened(path, names) as (_, found):
        yield from found


@contextmanager
def _opened(path: str, names: Sequence[str] | None) -> Iterator[tuple[pa.Schema, Any]]:
    with pa.OSFile(path) as source:
        is_file = source.read(len(_FILE_MAGIC)) == _FILE_MAGIC
        source.seek(0)
        open_any = ipc.open_file if is_file else ipc.open_stream
        with open_any(source) as reader:
            schema = reader.schema
            if names is None:
                yield schema, iter(())
                return
        source.seek(0)
        fields = sorted({schema.get_field_index(name) for name in names} - {-1})
        options = ipc.IpcReadOptions(included_fields=fields, use_threads=False)
        with open_any(source, options=options) as reader:
            if is_file:
                yield schema, (reader.get_batch(i) for i in range(reader.num_record_batches))
            else:
                yield schema, iter(reader)
