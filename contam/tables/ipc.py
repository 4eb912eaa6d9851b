"""Read Arrow IPC shards, checked before anything is looked up in them, and write them again."""

from __future__ import annotations

import struct
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.types as pt
from pyarrow import ipc

from contam.errors import Public, ShardError
from contam.files.disk import output_errors
from contam.files.single import created
from contam.tables import edits
from contam.tables.arrow_file import arrow_file, shard_errors
from contam.tables.columns import ColumnRef, describe, with_leaves
from contam.tables.edits import Rewrite, Rewritten, edited_batch, plain_type
from contam.tables.fields import filled_block, take_rows, taken

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from contam.tables.blocks import TextBlock
    from contam.tables.columns import TextColumns


FILE_MAGIC = b"ARROW1"
# Record batches come as large as their writer made them; what is joined or cast is cut to this.
_MAX_ROWS = 4096
_UNKNOWN_BITS = 1 << 20
# As written since format version 0.15, and before.
_END_MARKS = (b"\xff\xff\xff\xff\0\0\0\0", b"\0\0\0\0")
_LONGEST_MARK = 8


def columns(path: str) -> tuple[ColumnRef, ...]:
    """List the columns of an Arrow IPC file or stream."""
    with shard_errors(path), _opened(path, None) as (schema, _):
        return describe(schema)


def text_blocks(
    path: str, sources: TextColumns, groups: Sequence[int] | None, max_bytes: int
) -> Iterator[TextBlock]:
    """Yield the documents of `sources`, rows in order."""
    del max_bytes  # a batch is as large as its writer made it
    names = [part.path[0] for ref in (sources.first, *sources.others) for part in ref.single]
    for batch in batches(path, names, groups):
        for begin in range(0, batch.num_rows, _MAX_ROWS):
            part = batch.slice(begin, _MAX_ROWS)
            with shard_errors(path):
                block = filled_block(part, sources, partial(taken, part))
            yield block


def n_batches(path: str) -> int | None:
    """Tell how many record batches an IPC file has; None for a stream, which is read in order."""
    with shard_errors(path), arrow_file(path) as source:
        if source.read(len(FILE_MAGIC)) != FILE_MAGIC:
            return None
        source.seek(0)
        with ipc.open_file(source) as reader:
            return int(reader.num_record_batches)


def batch_rows(path: str, chosen: Sequence[int]) -> list[int]:
    """Count the rows of some record batches of an IPC file, reading as little as possible."""
    with shard_errors(path), _opened(path, None) as (schema, _):
        cheap = _cheapest(schema)
    return [batch.num_rows for batch in batches(path, cheap, chosen)]


def value_rows(
    path: str, refs: Sequence[ColumnRef], rows: Sequence[int], *, whole: bool
) -> Iterator[tuple[list[int], pa.RecordBatch]]:
    """Yield the columns of some rows (ascending, distinct)."""
    del whole  # of a column all is read
    if rows:
        yield from take_rows(value_batches(path, refs, None), 0, rows)


def value_batches(
    path: str, refs: Sequence[ColumnRef], groups: Sequence[int] | None
) -> Iterator[pa.RecordBatch]:
    """Yield the columns of some record batches, or of all, rows in order."""
    return batches(path, [part.path[0] for ref in refs for part in ref.single], groups)


def batches(
    path: str, names: Sequence[str], chosen: Sequence[int] | None = None
) -> Iterator[pa.RecordBatch]:
    """Yield the record batches as they were written, with only the columns `names`.

    chosen  record batches of an IPC file, in order; None yields them all
    """
    with shard_errors(path), _opened(path, names, chosen) as (_, found):
        for batch in found:
            check_sound(batch)
            yield batch


@contextmanager
def _opened(
    path: str, names: Sequence[str] | None, chosen: Sequence[int] | None = None
) -> Iterator[tuple[pa.Schema, Any]]:
    with arrow_file(path) as source:
        head = source.read(len(FILE_MAGIC))
        is_file = head == FILE_MAGIC
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
                numbers = range(reader.num_record_batches) if chosen is None else chosen
                yield schema, (reader.get_batch(i) for i in numbers)
            else:
                yield schema, _to_the_end(path, source, reader)


def stream_problem(source: pa.NativeFile, at: int) -> str:
    """What is wrong with the end of a stream that was read through; "" when it is complete.

    at  where its last record batch ends
    Between two batches, a writer that was killed leaves a file that reads without an error.
    """
    end = source.tell()
    if source.read_at(min(end - at, _LONGEST_MARK + 1), at) not in _END_MARKS:
        return "the Arrow stream has no end mark, its writer may have been stopped"
    if end != source.size():
        return f"{source.size() - end:,} bytes follow the end mark of the Arrow stream"
    return ""


def _to_the_end(path: str, source: pa.OSFile, reader: Any) -> Iterator[pa.RecordBatch]:  # noqa: ANN401 - Arrow ships no types
    """Yield the batches of a stream. Raises ShardError unless its end mark ends the file."""
    at = source.tell()
    for batch in reader:
        at = source.tell()
        yield batch
    if problem := stream_problem(source, at):
        raise ShardError(
            "{shard}: {}",
            Public(problem),
            shard=path,
            hint="write it again to its end, each stream into a file of its own",
        )


def _cheapest(schema: pa.Schema) -> list[str]:
    """Name the column that takes least to read: the narrowest, text and nested ones last."""

    def bits(field: pa.Field) -> int:
        try:
            return int(field.type.bit_width)
        except ValueError:
            return _UNKNOWN_BITS

    once = [field for field in schema if schema.get_field_index(field.name) >= 0]
    return [min(once, key=bits).name] if once else []


_BYTES = {
    pa.string(): pa.binary(),
    pa.large_string(): pa.large_binary(),
    pa.string_view(): pa.binary_view(),
}


def check_sound(batch: pa.RecordBatch) -> None:
    """Raise ArrowInvalid for offsets, indices or lengths that do not fit; text may be no UTF-8.

    Arrow trusts them: a damaged one ends the process, or gives memory that is not of the file.
    """
    batch.validate()
    for column in batch.columns:
        try:
            column.validate(full=True)
        except pa.ArrowInvalid:
            kind = _bytes_for_text(column.type)
            if kind == column.type:
                raise
            # Only the type changes: nothing is looked up yet.
            column.cast(kind).validate(full=True)


def _bytes_for_text(kind: pa.DataType) -> pa.DataType:
    """The type with binary in place of text, inside lists and structs too."""

    def of_leaf(leaf: pa.DataType) -> pa.DataType:
        if pt.is_dictionary(leaf):
            return pa.dictionary(leaf.index_type, _bytes_for_text(leaf.value_type))
        return _BYTES.get(leaf, leaf)

    return with_leaves(kind, of_leaf)


LEVEL: Final = "the compression level"
_CODECS: Final = ("lz4", "zstd")
_FILE_HEAD: Final = 8


def rewrite(source: str, target: Path, how: Rewrite) -> Rewritten:
    """Write a shard again, see `contam.corpus.formats.base.CorpusFormat`.

    Batches stay as they are cut; one that loses all its rows goes. A file whose texts are encoded
    in dictionaries has one of each for all batches, and is held in memory.
    """
    n_before = n_after = 0
    with shard_errors(source):
        with arrow_file(source) as file:
            is_file, codec = _layout(file)
            with (ipc.open_file if is_file else ipc.open_stream)(file) as reader:
                schema = reader.schema
        names = how.texts
        plain = pa.schema(
            [one.with_type(plain_type(one.type)) if one.name in names else one for one in schema]
        )
        held: list[pa.RecordBatch] | None = [] if is_file and _encodes(schema, plain) else None
        with _writer(target, schema, codec, is_file=is_file) as write:
            for batch in batches(source, schema.names):
                end = n_before + batch.num_rows
                left = edited_batch(_cast(batch, plain), how.of_rows(n_before, end))
                n_before = end
                n_after += left.num_rows
                if left.num_rows or not batch.num_rows:
                    left = _cast(left, schema)
                    write(left) if held is None else held.append(left)
            for left in pa.Table.from_batches(held or (), schema).unify_dictionaries().to_batches():
                write(left)
        how.refuse_beyond(n_before)
    return Rewritten(n_before, n_after, (LEVEL,) if codec else ())


def count_same(path: str, new: str, how: Rewrite) -> int:
    """How many rows are the same in a shard that was written again; see `CorpusFormat`."""
    names = [ref.dotted for ref in columns(path) if len(ref.path) == 1]
    with shard_errors(new):
        return edits.count_same(batches(path, names), batches(new, names), how, new)


def _encodes(schema: pa.Schema, plain: pa.Schema) -> bool:
    """Whether texts are encoded in dictionaries."""
    return any("dictionary<" in str(schema.field(at).type) for at, one in enumerate(plain)
               if one.type != schema.field(at).type)  # fmt: skip


def _cast(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The batch with other types of its columns; those that have them already are the same."""
    columns = [
        column if column.type == field.type else column.cast(field.type)
        for column, field in zip(batch.columns, schema, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _layout(file: pa.NativeFile) -> tuple[bool, str | None]:
    """Whether a file has the file format, else a stream, and the codec of its first batch."""
    is_file = file.read(len(FILE_MAGIC)) == FILE_MAGIC
    # A file is a stream with a frame around it.
    file.seek(_FILE_HEAD if is_file else 0)
    # Not closed: that would close the file.
    messages = ipc.MessageReader.open_stream(file)
    batch = next((one for one in messages if one.type == "record batch"), None)
    codec = None if batch is None else _codec(batch.metadata.to_pybytes())
    file.seek(0)
    return is_file, codec


def _codec(message: bytes) -> str | None:
    """The codec of a record batch's buffers, from its message: a flatbuffer of the IPC format."""
    table = struct.unpack_from("<I", message)[0]
    header = _field(message, table, 2)
    compression = _field(message, header + struct.unpack_from("<I", message, header)[0], 3)
    if not compression:
        return None
    options = compression + struct.unpack_from("<I", message, compression)[0]
    codec = _field(message, options, 0)
    return _CODECS[message[codec] if codec else 0]


def _field(message: bytes, table: int, number: int) -> int:
    """Where a field of a flatbuffer's table stands; 0 for one that is not there."""
    fields = table - struct.unpack_from("<i", message, table)[0]
    (n_bytes,) = struct.unpack_from("<H", message, fields)
    slot = 4 + 2 * number
    if slot >= n_bytes:
        return 0
    (offset,) = struct.unpack_from("<H", message, fields + slot)
    return table + offset if offset else 0


@contextmanager
def _writer(
    target: Path, schema: pa.Schema, codec: str | None, *, is_file: bool
) -> Iterator[Callable[[pa.RecordBatch], None]]:
    options = ipc.IpcWriteOptions(compression=codec, use_threads=False)
    with created(target) as out:
        with output_errors(target):
            writer = (ipc.new_file if is_file else ipc.new_stream)(out, schema, options=options)

        def write(batch: pa.RecordBatch) -> None:
            with output_errors(target):
                writer.write_batch(batch)

        yield write
        with output_errors(target):
            writer.close()
