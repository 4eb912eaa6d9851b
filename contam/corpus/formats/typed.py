"""Read shards of typed columns: Parquet by row groups, Arrow IPC by record batches."""

from __future__ import annotations

from typing import TYPE_CHECKING, BinaryIO, ClassVar, Protocol

from contam.corpus.formats.base import Chunk, CorpusFormat, Document, IdRows
from contam.corpus.streams import batch_row
from contam.tables import ipc, parquet
from contam.tables.arrow_file import shard_errors
from contam.tables.blocks import texts_of
from contam.tables.fields import as_text_block, columns_at, ids_of, turns_at, values_at

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

    from contam.tables.blocks import TextBlock
    from contam.tables.columns import ColumnRef, TextColumns
    from contam.tables.edits import Rewrite, Rewritten
    from contam.tables.schemas import RecordBatch

    Ids = NDArray[np.uint32]


class TableReader(Protocol):
    """What `contam.tables.parquet` and `contam.tables.ipc` have in common.

    groups  row groups or record batches to read, in order; None reads them all
    """

    def columns(self, path: str) -> tuple[ColumnRef, ...]:
        """List the columns of a file."""

    def n_batches(self, path: str) -> int | None:
        """Count the row groups or record batches of a file; None for one read in order alone."""

    def text_blocks(
        self, path: str, sources: TextColumns, groups: Sequence[int] | None, max_bytes: int
    ) -> Iterator[TextBlock]:
        """Yield the documents of `sources`, rows in order, about `max_bytes` at a time."""

    def value_batches(
        self, path: str, refs: Sequence[ColumnRef], groups: Sequence[int] | None
    ) -> Iterator[RecordBatch]:
        """Yield what `refs` need, rows in order."""

    def value_rows(
        self, path: str, refs: Sequence[ColumnRef], rows: Sequence[int], *, whole: bool
    ) -> Iterator[tuple[list[int], RecordBatch]]:
        """Yield what `refs` need of some rows (ascending, distinct).

        whole  everything inside the columns, also what is no text
        """

    def rewrite(self, path: str, target: Path, how: Rewrite) -> Rewritten:
        """See `CorpusFormat.rewrite`."""

    def count_same(self, path: str, new: str, how: Rewrite) -> int:
        """See `CorpusFormat.count_same`."""


class TabularFormat(CorpusFormat):
    """A format of typed columns."""

    reader: ClassVar[TableReader]

    def columns(self, path: str) -> tuple[ColumnRef, ...]:
        return self.reader.columns(path)

    def text_blocks(
        self, path: str, sources: TextColumns, chunk: Chunk, max_bytes: int
    ) -> Iterator[TextBlock]:
        return self.reader.text_blocks(path, sources, chunk.row_groups, max_bytes)

    def metadata(
        self, path: str, refs: tuple[ColumnRef, ...], chunk: Chunk
    ) -> Iterator[dict[ColumnRef, list[object]]]:
        for batch in self.reader.value_batches(path, refs, chunk.row_groups):
            with shard_errors(path):
                found = columns_at(batch, refs)
            yield found

    def values(
        self, path: str, refs: Sequence[ColumnRef], rows: Sequence[int]
    ) -> Iterator[tuple[int, dict[ColumnRef, object]]]:
        for numbers, batch in self.reader.value_rows(path, refs, rows, whole=False):
            with shard_errors(path):
                columns = [values_at(batch, ref) for ref in refs]
            for number, *row in zip(numbers, *columns, strict=True):
                yield number, dict(zip(refs, row, strict=True))

    def id_rows(
        self, path: str, ref: ColumnRef, chunk: Chunk, wanted: Sequence[int] | None = None
    ) -> Iterator[IdRows]:
        del wanted  # to read them all is as fast
        return self._id_rows(path, ref, chunk.row_groups)

    def ids_behind(self, path: str, ref: ColumnRef, chunk: Chunk | None) -> Iterator[Ids]:
        first = 0
        if chunk is not None:
            if chunk.row_groups is None:
                return  # it was all of the file
            first = chunk.row_groups[-1] + 1
        n_batches = self.reader.n_batches(path)
        # One by one: few tokens are wanted, and a store is asked for all groups at once.
        for group in range(first, n_batches) if n_batches is not None else [None]:
            for rows in self._id_rows(path, ref, None if group is None else (group,)):
                yield rows.ids

    def _id_rows(self, path: str, ref: ColumnRef, groups: Sequence[int] | None) -> Iterator[IdRows]:
        for batch in self.reader.value_batches(path, [ref], groups):
            with shard_errors(path):
                rows = IdRows(*ids_of(batch, ref))
            yield rows

    def text_documents(
        self, path: str, sources: TextColumns, rows: Sequence[int]
    ) -> Iterator[tuple[int, Document]]:
        found: dict[int, Document] = {}
        for ref in sources.every:
            left = [row for row in rows if row not in found or _is_blank(found[row].text)]
            if not left:
                break
            column = "" if ref is sources.first else ref.dotted
            has_turns = ref.kind in ("chat", "list", "group")
            for numbers, batch in self.reader.value_rows(path, [ref], left, whole=has_turns):
                with shard_errors(path):
                    texts = texts_of(as_text_block(batch, ref))
                    for place, (row, text) in enumerate(zip(numbers, texts, strict=True)):
                        turns = tuple(turns_at(batch, ref, place)) if has_turns else None
                        if not (column and _is_blank(text)):
                            found[row] = Document(text, column, turns)
        yield from found.items()

    def rewrite(self, path: str, target: Path, how: Rewrite) -> Rewritten:
        return self.reader.rewrite(path, target, how)

    def count_same(self, path: str, new: str, how: Rewrite) -> int:
        return self.reader.count_same(path, new, how)


def _is_blank(text: str) -> bool:
    return not text or (text.isascii() and text.isspace())


_MAGIC = b"PAR1"
_MIN_BYTES = 12


class Parquet(TabularFormat):
    """Apache Parquet."""

    name = "parquet"
    title = "Parquet"
    suffixes = (".parquet", ".parq", ".pq")
    magic = (_MAGIC,)
    reader: ClassVar[TableReader] = parquet

    def tail_bytes(self, file: BinaryIO, size: int) -> int:
        if size < _MIN_BYTES:
            return 0
        file.seek(size - 8)
        length, magic = file.read(4), file.read(4)
        return int.from_bytes(length, "little") + 8 if magic == _MAGIC else 0

    def row_groups(self, path: str, text: ColumnRef) -> Sequence[parquet.RowGroup]:
        return parquet.row_groups(path, text)


class Arrow(TabularFormat):
    """Arrow IPC, file and stream format."""

    name = "arrow"
    title = "Arrow IPC"
    suffixes = (".arrow", ".arrows", ".ipc", ".feather")
    magic = (b"ARROW1",)
    reader: ClassVar[TableReader] = ipc

    def chunks(self, path: str, text: ColumnRef, size_bytes: int, chunk_bytes: int) -> list[Chunk]:
        n_batches = ipc.n_batches(path) if size_bytes > chunk_bytes else None
        if n_batches is None or n_batches <= 1:
            return super().chunks(path, text, size_bytes, chunk_bytes)
        step = max(1, n_batches * chunk_bytes // size_bytes)
        chunks = []
        for begin in range(0, n_batches, step):
            end = min(begin + step, n_batches)
            n_bytes = size_bytes * end // n_batches - size_bytes * begin // n_batches
            first_row = None if begin else 0
            chunks.append(Chunk(0, tuple(range(begin, end)), first_row, None, n_bytes))
        return chunks

    def first_row(self, path: str, chunk: Chunk, text: ColumnRef) -> int:
        return batch_row(path, chunk.row_groups[0]) if chunk.row_groups else 0
