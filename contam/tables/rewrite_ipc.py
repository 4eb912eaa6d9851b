"""Write an Arrow IPC file or stream again, batch by batch, without some rows or with other text."""

from __future__ import annotations

import struct
from bisect import bisect_left
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow as pa
from pyarrow import ipc

from contam.errors import Public, Remedy, ShardError
from contam.files.publish import output_errors
from contam.files.single import created
from contam.tables.dictionaries import holds_dictionary, recoded, used, with_dictionaries
from contam.tables.edit_columns import edited_batch
from contam.tables.edits import Rewritten
from contam.tables.ipc import FILE_MAGIC, stream_problem
from contam.tables.shard_errors import arrow_file, shard_errors

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from contam.tables.columns import TextColumns
    from contam.tables.edits import Edit

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


def rewrite(
    source: str,
    target: Path,
    edits: Sequence[Edit],
    sources: TextColumns,
    *,
    replacement: str | None,
) -> Rewritten:
    """Write an Arrow shard again, see `contam.tables.edits.Rewriter`.

    Batches stay as they are cut; one that loses all its rows goes.
    """
    with shard_errors(source), arrow_file(source) as file:
        layout = _layout(file)
        schema, noted = _head(file, layout)
        texts = {part.path[0] for ref in sources.every for part in ref.single}
        encoded = any(field.name in texts and holds_dictionary(field.type) for field in schema)

    def edited() -> Iterator[tuple[int, _Batch]]:
        """Yield the rows that a batch had, and what is left of it."""
        rows = [edit.row for edit in edits]
        begin = 0
        for batch, metadata in _batches(source, layout):
            end = begin + batch.num_rows
            inside = edits[bisect_left(rows, begin) : bisect_left(rows, end)]
            inside = [edit._replace(row=edit.row - begin) for edit in inside]
            if inside or encoded:
                left = edited_batch(batch, sources, inside, replacement)
                yield batch.num_rows, _Batch(left, metadata)
            else:
                yield batch.num_rows, _Batch(batch, metadata)
            begin = end
        if rows and rows[-1] >= begin:
            raise ValueError(f"it has no row {rows[-1]}")

    with shard_errors(source):
        # A file has one dictionary for all its batches, a stream may have one for each.
        whole = _dictionaries(edited(), sources) if encoded and layout.is_file else {}

        def of_file(at: tuple[str, ...], array: pa.Array) -> pa.Array:
            return recoded(array, whole[at])

        n_before = n_after = 0
        with _writer(target, layout, schema, noted) as write:
            for n_rows, (batch, metadata) in edited():
                n_before += n_rows
                n_after += batch.num_rows
                if batch.num_rows or not n_rows:
                    left = with_dictionaries(batch, sources, of_file) if whole else batch
                    write(_Batch(left, metadata))
    return Rewritten(n_before, n_after, (LEVEL,) if layout.codec else ())


def _dictionaries(
    edited: Iterator[tuple[int, _Batch]], sources: TextColumns
) -> dict[tuple[str, ...], pa.Array]:
    """For each encoded text of a file, the values that are left in any of its batches."""
    found: dict[tuple[str, ...], pa.Array] = {}

    def note(at: tuple[str, ...], array: pa.Array) -> pa.Array:
        values = used(array)
        found[at] = pa.concat_arrays([found[at], values]).unique() if at in found else values
        return array

    for _, (batch, _) in edited:
        with_dictionaries(batch, sources, note)
    return found


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
                    "{shard}: {}", Public(problem), shard=path, remedy=Remedy.WRITE_STREAMS_APART,
                )  # fmt: skip


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
