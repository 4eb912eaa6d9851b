"""Write an Arrow IPC file or stream again, batch by batch, without some rows or with other text."""

from __future__ import annotations

import struct
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow as pa
from pyarrow import ipc

from contam.errors import Public, ShardError
from contam.files.disk import output_errors
from contam.files.single import created
from contam.tables.edits import Rewrite, Rewritten, edited_batch, plain_type
from contam.tables.ipc import FILE_MAGIC, stream_problem
from contam.tables.lookup import arrow_file, shard_errors

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path


LEVEL: Final = "the compression level"
_CODECS: Final = ("lz4", "zstd")
_FILE_HEAD: Final = 8
_CONTINUED: Final = b"\xff\xff\xff\xff"


class _Layout(NamedTuple):
    """How a file was written.

    is_file    the file format, else a stream
    old        its messages begin as before format version 0.15
    version    of the metadata
    codec      of the buffers of its first batch; None for none
    """

    is_file: bool
    old: bool
    version: ipc.MetadataVersion
    codec: str | None


class _Batch(NamedTuple):
    batch: pa.RecordBatch
    metadata: pa.KeyValueMetadata | None


def rewrite(source: str, target: Path, how: Rewrite) -> Rewritten:
    """Write an Arrow shard again, see `contam.corpus.formats.base.CorpusFormat`.

    Batches stay as they are cut; one that loses all its rows goes. A file whose texts are encoded
    in dictionaries has one of each for all batches, and is held in memory.
    """
    n_before = n_after = 0
    with shard_errors(source):
        with arrow_file(source) as file:
            layout = _layout(file)
            schema, noted = _head(file, layout)
        names = how.texts
        plain = pa.schema(
            [one.with_type(plain_type(one.type)) if one.name in names else one for one in schema]
        )
        held: list[_Batch] | None = [] if layout.is_file and _encodes(schema, plain) else None
        with _writer(target, layout, schema, noted) as write:
            for batch, metadata in _batches(source, layout):
                end = n_before + batch.num_rows
                left = edited_batch(_cast(batch, plain), how.of_rows(n_before, end))
                n_before = end
                n_after += left.num_rows
                if left.num_rows or not batch.num_rows:
                    left = _Batch(_cast(left, schema), metadata)
                    write(left) if held is None else held.append(left)
            for left in _unified(held or (), schema):
                write(left)
        how.refuse_beyond(n_before)
    return Rewritten(n_before, n_after, (LEVEL,) if layout.codec else ())


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


def _unified(held: Sequence[_Batch], schema: pa.Schema) -> Iterator[_Batch]:
    """The batches with one dictionary for all."""
    full = [one.batch for one in held if one.batch.num_rows]
    whole = pa.Table.from_batches(full, schema).unify_dictionaries().to_batches()
    rest = iter(whole)
    for one in held:
        empty = whole[0].slice(0, 0) if whole else one.batch
        yield one._replace(batch=next(rest) if one.batch.num_rows else empty)


def _layout(file: pa.NativeFile) -> _Layout:
    is_file = file.read(len(FILE_MAGIC)) == FILE_MAGIC
    # A file is a stream with a frame around it.
    file.seek(_FILE_HEAD if is_file else 0)
    old = file.read(len(_CONTINUED)) != _CONTINUED
    file.seek(_FILE_HEAD if is_file else 0)
    codec, version = None, ipc.MetadataVersion.V5
    # Not closed: that would close the file.
    for message in ipc.MessageReader.open_stream(file):
        version = ipc.MetadataVersion(message.metadata_version)
        if message.type == "record batch":
            codec = _codec(message.metadata.to_pybytes())
            break
    file.seek(0)
    return _Layout(is_file, old, version, codec)


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


def _head(file: pa.NativeFile, layout: _Layout) -> tuple[pa.Schema, Any]:
    """The schema, and the metadata of the whole file."""
    open_any = ipc.open_file if layout.is_file else ipc.open_stream
    with open_any(file) as reader:
        return reader.schema, getattr(reader, "metadata", None)


def _batches(path: str, layout: _Layout) -> Iterator[_Batch]:
    """Yield all batches, to the end or an error."""
    with arrow_file(path) as file:
        if layout.is_file:
            with ipc.open_file(file) as reader:
                for i in range(reader.num_record_batches):
                    yield _Batch(*reader.get_batch_with_custom_metadata(i))
            return
        with ipc.open_stream(file) as reader:
            at = file.tell()
            while True:
                try:
                    found = reader.read_next_batch_with_custom_metadata()
                except StopIteration:
                    break
                at = file.tell()
                yield _Batch(*found)
            if problem := stream_problem(file, at):
                raise ShardError(
                    "{shard}: {}",
                    Public(problem),
                    shard=path,
                    hint="write it again to its end, each stream into a file of its own",
                )


@contextmanager
def _writer(
    target: Path,
    layout: _Layout,
    schema: pa.Schema,
    metadata: Any,  # noqa: ANN401 - Arrow ships no types
) -> Iterator[Callable[[_Batch], None]]:
    options = ipc.IpcWriteOptions(
        metadata_version=layout.version,
        use_legacy_format=layout.old,
        compression=layout.codec,
        use_threads=False,
    )
    with created(target) as out:
        with output_errors(target):
            if layout.is_file:
                more = {"metadata": metadata} if metadata else {}
                writer = ipc.new_file(out, schema, options=options, **more)
            else:
                writer = ipc.new_stream(out, schema, options=options)

        def write(found: _Batch) -> None:
            with output_errors(target):
                writer.write_batch(found.batch, custom_metadata=found.metadata)

        yield write
        with output_errors(target):
            writer.close()
