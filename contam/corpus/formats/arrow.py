"""Read Arrow IPC shards: a chunk is a run of record batches; a stream is read whole."""

from __future__ import annotations

from typing import TYPE_CHECKING

from contam.corpus.formats.base import FileChunk
from contam.corpus.formats.tabular import TabularFormat
from contam.corpus.offsets import batch_row
from contam.tables import ipc, rewrite_ipc
from contam.tables.same_rows import count_same
from contam.tables.shard_errors import shard_errors

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from contam.tables.blocks import TextBlock
    from contam.tables.columns import ColumnRef, TextColumns
    from contam.tables.edits import Rewrite, Rewritten
    from contam.tables.lookup import TableReader


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

    def chunks(
        self, path: str, text: ColumnRef, size_bytes: int, chunk_bytes: int
    ) -> list[FileChunk]:
        n_batches = ipc.n_batches(path) if size_bytes > chunk_bytes else None
        if n_batches is None or n_batches <= 1:
            return super().chunks(path, text, size_bytes, chunk_bytes)
        step = max(1, n_batches * chunk_bytes // size_bytes)
        chunks = []
        for begin in range(0, n_batches, step):
            end = min(begin + step, n_batches)
            n_bytes = size_bytes * end // n_batches - size_bytes * begin // n_batches
            first_row = None if begin else 0
            chunks.append(FileChunk(tuple(range(begin, end)), first_row, None, n_bytes))
        return chunks

    def first_row(self, path: str, chunk: FileChunk) -> int:
        return batch_row(path, chunk.row_groups[0]) if chunk.row_groups else 0

    def blocks(
        self,
        path: str,
        sources: TextColumns,
        chunk: FileChunk,
        max_bytes: int,
    ) -> Iterator[TextBlock]:
        return ipc.text_blocks(path, sources, chunk.row_groups)

    def rewrite(self, path: str, target: Path, how: Rewrite) -> Rewritten:
        return rewrite_ipc.rewrite(path, target, how)

    def count_same(self, path: str, new: str, how: Rewrite) -> int:
        names = [ref.dotted for ref in self.columns(path) if len(ref.path) == 1]
        files = ipc.batches(path, names), ipc.batches(new, names)
        with shard_errors(new):
            return count_same(*files, how, new)
