"""Read Parquet shards: a chunk is a row group, with small neighbours merged."""

from __future__ import annotations

from typing import TYPE_CHECKING, BinaryIO

from contam.corpus.formats.base import FileChunk
from contam.corpus.formats.tabular import TabularFormat
from contam.tables import parquet, rewrite_parquet

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from contam.tables.blocks import TextBlock
    from contam.tables.columns import ColumnRef, TextColumns
    from contam.tables.edits import Rewrite, Rewritten
    from contam.tables.lookup import TableReader

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

    def chunks(
        self, path: str, text: ColumnRef, size_bytes: int, chunk_bytes: int
    ) -> list[FileChunk]:
        chunks: list[FileChunk] = []
        chosen: list[int] = []
        first_row = n_rows = n_bytes = 0
        for index, group in enumerate(parquet.row_groups(path, text)):
            if chosen and n_bytes + group.n_bytes > chunk_bytes:
                chunks.append(FileChunk(tuple(chosen), first_row, n_rows, n_bytes))
                first_row += n_rows
                chosen, n_rows, n_bytes = [], 0, 0
            chosen.append(index)
            n_rows += group.n_rows
            n_bytes += group.n_bytes
        if chosen and n_rows:
            chunks.append(FileChunk(tuple(chosen), first_row, n_rows, n_bytes))
        return chunks

    def row_groups(self, path: str, text: ColumnRef) -> Sequence[parquet.RowGroup]:
        return parquet.row_groups(path, text)

    def blocks(
        self, path: str, sources: TextColumns, chunk: FileChunk, max_bytes: int
    ) -> Iterator[TextBlock]:
        return parquet.text_blocks(path, sources, chunk.row_groups, max_bytes=max_bytes)

    def rewrite(self, path: str, target: Path, how: Rewrite) -> Rewritten:
        return rewrite_parquet.rewrite(path, target, how)

    def count_same(self, path: str, new: str, how: Rewrite) -> int:
        return rewrite_parquet.count_same(path, new, how)
