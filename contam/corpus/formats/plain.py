"""Read plain text: a file is one document, row 0, or a line is one; an empty one is none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from contam.corpus.formats import records
from contam.corpus.formats.base import CorpusFormat
from contam.corpus.formats.jsonl import JsonLines
from contam.corpus.streams import readable, refuse_wide, stream
from contam.errors import Plain, ShardError
from contam.files.bundles import TEXT_SUFFIXES, Bundle, is_about
from contam.files.compression import codec_of
from contam.tables.columns import ColumnRef

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import PurePath

    from contam.corpus.streams import ByteSpan
    from contam.tables.columns import TextColumns

_TEXT: Final = "text"
_NAMED: Final = 3


class PlainText(records.RecordFormat):
    """Text, Markdown, LaTeX and reStructuredText; in a folder with shards such files are notes."""

    name = "text"
    title = "plain text"
    suffixes = TEXT_SUFFIXES

    def is_sure(self, path: PurePath) -> bool:
        return False

    def no_shard(self, path: PurePath) -> str:
        return "a text about the folder" if is_about(path.name) else ""

    def columns(self, path: str) -> tuple[ColumnRef, ...]:
        return (ColumnRef((_TEXT,), "text", "text"),)

    def numbered(self, path: str, span: ByteSpan | None) -> Iterator[tuple[int, records.Record]]:
        del span  # a file is one chunk
        if text := _whole(path).removeprefix(records.BYTE_ORDER_MARK):
            yield 0, {_TEXT: text.decode("utf-8", "surrogateescape")}

    def raw_records(self, path: str) -> Iterator[tuple[int | None, bytes]]:
        if text := _whole(path):
            yield 0, text

    def edited(self, raw: bytes, names: Sequence[str], edit: records.Editor) -> bytes:
        mark = records.BYTE_ORDER_MARK if raw.startswith(records.BYTE_ORDER_MARK) else b""
        text = raw.removeprefix(mark).decode("utf-8", "surrogateescape")
        record: records.Record = {_TEXT: text}
        edit(record)
        return mark + str(record[_TEXT]).encode("utf-8", "surrogateescape")


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

    def edited(self, raw: bytes, names: Sequence[str], edit: records.Editor) -> bytes:
        line = raw.rstrip(b"\r\n")
        return TEXT.edited(line, names, edit) + raw[len(line) :]

    def refuse(
        self, path: str, row: int, raw: bytes, record: records.Record, sources: TextColumns
    ) -> None:
        """Nothing: a line is all text."""


class TextFiles(PlainText):
    """The files of a bundle: row r is the r-th of them, named by its file."""

    name = "texts"
    rewrite = CorpusFormat.rewrite

    def columns(self, path: str) -> tuple[ColumnRef, ...]:
        return tuple(ColumnRef((name,), "text", "text") for name in ("id", _TEXT))

    def numbered(self, path: str, span: ByteSpan | None) -> Iterator[tuple[int, records.Record]]:
        del span  # a bundle is one chunk
        return self._read(path, None)

    def _chosen(
        self, path: str, wanted: Sequence[int]
    ) -> Iterator[tuple[int, records.Record | None]]:
        return self._read(path, wanted)

    def _read(
        self, path: str, wanted: Sequence[int] | None
    ) -> Iterator[tuple[int, records.Record]]:
        """The files with these numbers, or all; those that cannot be read are named at the end."""
        bundle = Bundle.at(path)
        failed: list[str] = []
        with readable(path):
            names = bundle.names() if bundle is not None else []
        for row in range(len(names)) if wanted is None else wanted:
            if row >= len(names):
                return
            file = f"{bundle.folder if bundle else ''}/{names[row]}"
            try:
                text = _small(file).removeprefix(records.BYTE_ORDER_MARK)
            except ShardError as error:
                failed.append(error.message.replace(file, names[row], 1))
            else:
                yield row, {"id": names[row], _TEXT: text.decode("utf-8", "surrogateescape")}
        if failed:
            more = f" and {len(failed) - _NAMED:,} more" if len(failed) > _NAMED else ""
            raise ShardError(
                "{shard}: {:,} of its {:,} files cannot be read: {}{}",
                len(failed),
                len(names),
                Plain("; ".join(failed[:_NAMED])),
                more,
                shard=path,
                hint="repair these files, or move them out of the folder",
            )


TEXT: Final = PlainText()
TEXTS: Final = TextFiles()
LINES: Final = TextLines()


def _small(path: str) -> bytes:
    """What `_whole` gives, sooner; who lists the file sees that it stays as it is."""
    with readable(path), open(path, "rb", buffering=0) as file:  # noqa: PTH123 - a path object costs as much
        data = file.readall()
    if codec_of(data[:8]) or len(data) > records.MAX_RECORD_BYTES:
        return _whole(path)
    refuse_wide(path, data)
    return data


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
