"""Recognise unfinished downloads and copies: shards that are expected but never read."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from contam.corpus.formats import records
from contam.errors import ShardError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contam.corpus.offsets import ByteSpan
    from contam.tables.columns import ColumnRef, TextColumns
    from contam.tables.edits import Span


class Unfinished(records.ReadyRecords):
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
        self.numbered(path, None)

    def numbered(self, path: str, span: ByteSpan | None) -> NoReturn:
        raise self.bad(path, 0, "an unfinished download or copy")

    def raw_records(self, path: str) -> NoReturn:
        self.numbered(path, None)

    def edited(
        self,
        raw: bytes,
        names: Sequence[str],
        sources: TextColumns,
        spans: Sequence[Span],
        replacement: str | None,
    ) -> NoReturn:
        raise ValueError("an unfinished download or copy")

    def bad(self, path: str, row: int, what: str, *facts: object) -> ShardError:
        return ShardError(
            "{shard}: " + what,
            *facts,
            shard=path,
            hint="let it finish; if it is not wanted, remove the file",
        )
