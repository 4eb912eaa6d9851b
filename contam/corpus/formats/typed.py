"""Read shards of typed columns: Parquet by row groups, Arrow IPC by record batches."""

from __future__ import annotations

from abc import abstractmethod
from itertools import accumulate
from typing import TYPE_CHECKING, BinaryIO, Final

from contam.corpus.formats.base import Chunk, CorpusFormat, Document
from contam.corpus.formats.token_rows import IdRows, token_blocks, token_documents
from contam.corpus.streams import batch_row
from contam.tables import ipc, lookup, parquet, rewrite_parquet
from contam.tables.edits import count_same
from contam.tables.lookup import shard_errors

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

    from contam.tables.blocks import TextBlock
    from contam.tables.columns import ColumnRef, TextColumns
    from contam.tables.edits import Rewrite, Rewritten
    from contam.tables.lookup import TableReader


#: Rows of a file of token ids that are tried at each of three places.
_SAMPLED: Final = 8


class TabularFormat(CorpusFormat):
    """A format of typed columns."""

    @property
    @abstractmethod
    def reader(self) -> lookup.TableReader:
        """Reads record batches of a file."""

    def metadata(
        self, path: str, refs: tuple[ColumnRef, ...], chunk: Chunk
    ) -> Iterator[dict[ColumnRef, list[object]]]:
        return lookup.all_values(path, self.reader, refs, chunk.row_groups)

    def values(
        self, path: str, refs: Sequence[ColumnRef], rows: Sequence[int]
    ) -> Iterator[tuple[int, dict[ColumnRef, object]]]:
        for row, values in lookup.values(path, self.reader, refs, rows):
            yield row, dict(zip(refs, values, strict=True))

    def sample(self, path: str, ref: ColumnRef) -> list[NDArray[np.uint32]]:
        """The ids of the first rows of a file, of its middle and of its end."""
        groups = self.row_groups(path, ref) or ()
        firsts = [0, *accumulate(group.n_rows for group in groups)]
        chosen = sorted({firsts[0], firsts[len(groups) // 2], firsts[max(0, len(groups) - 1)]})
        rows = sorted({first + i for first in chosen for i in range(_SAMPLED)})
        return [ids for _, ids in lookup.ids_at(path, self.reader, ref, rows)]

    def id_rows(self, path: str, ref: ColumnRef, chunk: Chunk) -> Iterator[IdRows]:
        """Yield the token ids of a chunk's rows."""
        for found in lookup.id_batches(path, self.reader, ref, chunk.row_groups):
            yield IdRows(*found)

    def ids_at(
        self, path: str, ref: ColumnRef, rows: Sequence[int]
    ) -> Iterator[tuple[int, None, NDArray[np.uint32]]]:
        """Yield (row, None, its token ids) for some rows."""
        for row, ids in lookup.ids_at(path, self.reader, ref, rows):
            yield row, None, ids

    def ids_behind(
        self, path: str, ref: ColumnRef, chunk: Chunk | None
    ) -> Iterator[NDArray[np.uint32]]:
        """Yield the token ids of the row groups behind a chunk; None: of all."""
        groups: range | None = None
        if chunk is not None:
            if chunk.row_groups is None:
                return  # it was all of the file
            groups = range(chunk.row_groups[-1] + 1, self.reader.n_batches(path) or 0)
        for ids, _, _ in lookup.id_batches(path, self.reader, ref, groups):
            yield ids

    def documents(
        self, path: str, sources: TextColumns, rows: Sequence[int]
    ) -> Iterator[tuple[int, Document]]:
        if sources.first.kind == "tokens":
            yield from token_documents(self, path, sources.first, rows)
            return
        found: dict[int, Document] = {}
        for ref in sources.every:
            left = [row for row in rows if row not in found or _is_blank(found[row].text)]
            if not left:
                break
            column = "" if ref is sources.first else ref.dotted
            for row, text, turns in lookup.documents(path, self.reader, ref, left):
                if not (column and _is_blank(text)):
                    found[row] = Document(text, column, None if turns is None else tuple(turns))
        yield from found.items()


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

    @property
    def reader(self) -> TableReader:
        return parquet

    def tail_bytes(self, file: BinaryIO, size: int) -> int:
        if size < _MIN_BYTES:
            return 0
        file.seek(size - 8)
        length, magic = file.read(4), file.read(4)
        return int.from_bytes(length, "little") + 8 if magic == _MAGIC else 0

    def columns(self, path: str) -> tuple[ColumnRef, ...]:
        return parquet.columns(path)

    def chunks(self, path: str, text: ColumnRef, size_bytes: int, chunk_bytes: int) -> list[Chunk]:
        chunks: list[Chunk] = []
        chosen: list[int] = []
        first_row = n_rows = n_bytes = 0
        for index, group in enumerate(parquet.row_groups(path, text)):
            if chosen and n_bytes + group.n_bytes > chunk_bytes:
                chunks.append(Chunk(0, tuple(chosen), first_row, n_rows, n_bytes))
                first_row += n_rows
                chosen, n_rows, n_bytes = [], 0, 0
            chosen.append(index)
            n_rows += group.n_rows
            n_bytes += group.n_bytes
        if chosen and n_rows:
            chunks.append(Chunk(0, tuple(chosen), first_row, n_rows, n_bytes))
        return chunks

    def row_groups(self, path: str, text: ColumnRef) -> Sequence[parquet.RowGroup]:
        return parquet.row_groups(path, text)

    def blocks(
        self, path: str, sources: TextColumns, chunk: Chunk, max_bytes: int
    ) -> Iterator[TextBlock]:
        if sources.first.kind == "tokens":
            return token_blocks(self, path, sources.first, chunk)
        return parquet.text_blocks(path, sources, chunk.row_groups, max_bytes=max_bytes)

    def rewrite(self, path: str, target: Path, how: Rewrite) -> Rewritten:
        return rewrite_parquet.rewrite(path, target, how)

    def count_same(self, path: str, new: str, how: Rewrite) -> int:
        return rewrite_parquet.count_same(path, new, how)


class Arrow(TabularFormat):
    """Arrow IPC, file and stream format."""

    name = "arrow"
    title = "Arrow IPC"
    suffixes = (".arrow", ".arrows", ".ipc", ".feather")
    magic = (b"ARROW1",)

    @property
    def reader(self) -> TableReader:
        return ipc

    def columns(self, path: str) -> tuple[ColumnRef, ...]:
        return ipc.columns(path)

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

    def blocks(
        self,
        path: str,
        sources: TextColumns,
        chunk: Chunk,
        max_bytes: int,
    ) -> Iterator[TextBlock]:
        if sources.first.kind == "tokens":
            return token_blocks(self, path, sources.first, chunk)
        return ipc.text_blocks(path, sources, chunk.row_groups)

    def rewrite(self, path: str, target: Path, how: Rewrite) -> Rewritten:
        return ipc.rewrite(path, target, how)

    def count_same(self, path: str, new: str, how: Rewrite) -> int:
        names = [ref.dotted for ref in self.columns(path) if len(ref.path) == 1]
        files = ipc.batches(path, names), ipc.batches(new, names)
        with shard_errors(new):
            return count_same(*files, how, new)
