"""Recognise unfinished downloads and copies: shards that are expected but never read."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from contam.corpus.formats.base import CorpusFormat, Document, FileChunk
from contam.errors import Remedy, ShardError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from contam.tables.blocks import TextBlock
    from contam.tables.columns import ColumnRef, TextColumns


class Unfinished(CorpusFormat):
    """A file that fails whatever is asked of it."""

    name = "unfinished"
    title = "an unfinished file"
    suffixes = (
        ".incomplete",
        ".part",
        ".partial",
        ".crdownload",
        ".download",
        ".aria2",
        ".gstmp",
    )

    def columns(self, path: str) -> tuple[ColumnRef, ...]:
        _refuse(path)

    def blocks(
        self,
        path: str,
        sources: TextColumns,
        chunk: FileChunk,
        max_bytes: int,
    ) -> Iterator[TextBlock]:
        _refuse(path)

    def metadata(
        self,
        path: str,
        refs: tuple[ColumnRef, ...],
        chunk: FileChunk,
    ) -> Iterator[dict[ColumnRef, list[object]]]:
        _refuse(path)

    def values(
        self,
        path: str,
        refs: Sequence[ColumnRef],
        rows: Sequence[int],
    ) -> Iterator[tuple[int, dict[ColumnRef, object]]]:
        _refuse(path)

    def documents(
        self,
        path: str,
        sources: TextColumns,
        rows: Sequence[int],
        *,
        with_turns: bool,
    ) -> Iterator[tuple[int, Document]]:
        _refuse(path)


def _refuse(path: str) -> NoReturn:
    raise ShardError(
        f"{path}: an unfinished download or copy", shard=path, remedy=Remedy.LET_DOWNLOAD_FINISH,
    )  # fmt: skip
