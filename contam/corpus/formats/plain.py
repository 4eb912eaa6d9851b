"""Read plain text: a file is one document, row 0, or a line is one; an empty one is none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from contam.corpus.formats import records
from contam.corpus.formats.json_record import edited_record
from contam.corpus.formats.jsonl import JsonLines
from contam.corpus.streams import refuse_wide, stream
from contam.errors import ShardError
from contam.tables.columns import ColumnRef

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import PurePath

    from contam.corpus.offsets import ByteSpan
    from contam.tables.columns import TextColumns
    from contam.tables.edits import Span

_TEXT: Final = "text"
_ABOUT: Final = frozenset(
    ("readme", "license", "licence", "changelog", "notice", "copying", "contributing")
)
_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"


class PlainText(records.ReadyRecords):
    """Text, Markdown, LaTeX and reStructuredText; in a folder with shards such files are notes."""

    name = "text"
    title = "plain text"
    suffixes = (".txt", ".md", ".tex", ".rst")

    def no_shard(self, path: PurePath) -> str:
        is_about = path.name.lower().partition(".")[0] in _ABOUT
        return "a text about the folder" if is_about else ""

    def columns(self, path: str) -> tuple[ColumnRef, ...]:
        return (ColumnRef((_TEXT,), "text", "text"),)

    def numbered(self, path: str, span: ByteSpan | None) -> Iterator[tuple[int, records.Record]]:
        del span  # a file is one chunk
        if text := _whole(path).removeprefix(_BYTE_ORDER_MARK):
            yield 0, {_TEXT: text.decode("utf-8", "surrogateescape")}

    def raw_records(self, path: str) -> Iterator[tuple[int | None, bytes]]:
        if text := _whole(path):
            yield 0, text

    def edited(
        self,
        raw: bytes,
        names: Sequence[str],
        sources: TextColumns,
        spans: Sequence[Span],
        replacement: str | None,
    ) -> bytes:
        mark = _BYTE_ORDER_MARK if raw.startswith(_BYTE_ORDER_MARK) else b""
        text = raw.removeprefix(mark).decode("utf-8", "surrogateescape")
        record: records.Record = {_TEXT: text}
        edited_record(record, sources, spans, replacement)
        return mark + str(record[_TEXT]).encode("utf-8", "surrogateescape")

    def bad(self, path: str, row: int, what: str, *facts: object) -> ShardError:
        del row  # there is one
        return ShardError("{shard}: " + what, *facts, shard=path, hint="leave the file out")


class TextLines(JsonLines):
    """Plain text, a document a line; only where somebody asks for it."""

    name = "lines"
    title = "lines of text"
    open_keys = False

    def columns(self, path: str) -> tuple[ColumnRef, ...]:
        return (ColumnRef((_TEXT,), "text", "text"),)

    def record(self, path: str, row: int, raw: bytes) -> records.Record | None:
        text = raw.rstrip(b"\r\n")
        return None if not text.strip() else {_TEXT: text.decode("utf-8", "surrogateescape")}

    def edited(
        self,
        raw: bytes,
        names: Sequence[str],
        sources: TextColumns,
        spans: Sequence[Span],
        replacement: str | None,
    ) -> bytes:
        line = raw.rstrip(b"\r\n")
        return TEXT.edited(line, names, sources, spans, replacement) + raw[len(line) :]

    def refuse(
        self, path: str, row: int, raw: bytes, record: records.Record, sources: TextColumns
    ) -> None:
        """Nothing: a line is all text."""


TEXT: Final = PlainText()
LINES: Final = TextLines()


def _whole(path: str) -> bytes:
    with stream(path) as file:
        data = file.read(records.MAX_RECORD_BYTES + 1)
        if len(data) > records.MAX_RECORD_BYTES:
            raise ShardError(
                "{shard}: one document of more than {} MiB", records.MAX_RECORD_BYTES >> 20,
                shard=path,
                hint='write it as JSON lines, one {{"text": ...}} a document',
            )  # fmt: skip
    refuse_wide(path, data)
    return data
