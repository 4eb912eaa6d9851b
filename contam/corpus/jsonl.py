"""JSONL shards: one object a line; row r is line r + 1 of the (decompressed) file."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from contam.corpus.offsets import Span, line_number, span_pieces
from contam.corpus.streams import pieces
from contam.errors import ShardError
from contam.tables.blocks import TextBlock, block_of
from contam.tables.columns import (
    ColumnRef,
    Kind,
    TextColumns,
    is_turn,
)
from contam.tables.doubled_keys import repeated
from contam.tables.json_text import parse
from contam.tables.record import Found, find

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

MAX_LINE_BYTES = 128 << 20
"""A longer line is an error: it would not fit the memory a worker may use."""

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_SNIFF_ROWS = 200
_SNIFF_BYTES = 8 << 20
_BLOCK_BYTES = 2 << 20
_BLOCK_ROWS = 65_536
_MAX_DEPTH = 4
_RANK: tuple[Kind, ...] = ("chat", "text", "list", "struct", "other", "null")


def columns(path: str) -> tuple[ColumnRef, ...]:
    """List the keys of the first records, nested ones too; none for a file without records."""
    seen: dict[tuple[str, ...], Kind] = {}
    n_bytes = 0
    for row, line in enumerate(_lines(path)):
        n_bytes += len(line)
        record = _record(path, row, line)
        if record is not None:
            _note(record, (), seen)
        if row + 1 >= _SNIFF_ROWS or n_bytes >= _SNIFF_BYTES:
            break
    return tuple(ColumnRef(key, kind, kind) for key, kind in seen.items())


def text_blocks(
    path: str, sources: TextColumns, *, max_bytes: int, span: Span | None = None
) -> Iterator[TextBlock]:
    """Yield the documents of `sources`, one a line, about `max_bytes` of text at a time.

    span  only the lines that begin inside these bytes of a file without compression

    A blank line is an empty document, so that rows stay line numbers. Raises ShardError, with
    file and line, for a line that is not a JSON object or whose text is no text.
    """
    limit = min(max_bytes, _BLOCK_BYTES)
    block = _Block()
    for row, line in _numbered(path, span):
        record = _record(path, row, line)
        if record is not None:
            _refuse_doubled(path, row, line, record, sources)
        block.add(_document(path, row, record, sources))
        if block.size >= limit or len(block.texts) >= _BLOCK_ROWS:
            yield block.finished()
            block = _Block()
    if block.texts:
        yield block.finished()


def records(path: str, wanted: Sequence[int]) -> Iterator[tuple[int, dict[str, object] | None]]:
    """Yield (row, record) for the wanted rows (ascending, distinct); a blank line is None."""
    position = 0
    for row, line in enumerate(_lines(path)):
        if position == len(wanted):
            return
        if row == wanted[position]:
            yield row, _record(path, row, line)
            position += 1


def all_records(path: str, span: Span | None) -> Iterator[dict[str, object] | None]:
    """Yield every record in turn, of a span or of the whole file; a blank line is None."""
    for row, line in _numbered(path, span):
        yield _record(path, row, line)


def documents(
    path: str, sources: TextColumns, wanted: Sequence[int]
) -> Iterator[tuple[int, Found]]:
    """Yield (row, document) for the wanted rows (ascending, distinct)."""
    for row, record in records(path, wanted):
        yield row, _document(path, row, record, sources)


class _Block:
    """Documents on their way into a block."""

    def __init__(self) -> None:
        self.texts: list[bytes] = []
        self.size = self.n_null = self.n_undecodable = self.n_bytes = self.n_elsewhere = 0
        self.moved: Counter[str] = Counter()

    def add(self, found: Found) -> None:
        self.texts.append(found.text or b"")
        self.size += len(found.text or b"")
        self.n_null += found.text is None
        self.n_undecodable += found.n_bad > 0
        self.n_bytes += found.n_bad
        self.n_elsewhere += found.n_elsewhere
        if found.column:
            self.moved[found.column] += 1

    def finished(self) -> TextBlock:
        block = block_of(
            self.texts,
            n_null=self.n_null,
            n_undecodable=self.n_undecodable,
            undecodable_bytes=self.n_bytes,
        )
        return block._replace(moved=tuple(sorted(self.moved.items())), n_elsewhere=self.n_elsewhere)


def _document(path: str, row: int, record: dict[str, object] | None, sources: TextColumns) -> Found:
    if record is None:
        return Found(b"")
    try:
        return find(record, sources)
    except (ValueError, RecursionError) as error:
        raise _bad_line(path, row, str(error)) from error


def _refuse_doubled(
    path: str, row: int, line: bytes, record: dict[str, object], sources: TextColumns
) -> None:
    """Of two texts of one name parsers give the last: the first would go unread."""
    paths = (part.path for column in sources.every for part in column.single)
    try:
        found = repeated(line, record, paths)
    except (ValueError, RecursionError) as error:
        raise _bad_line(path, row, f"not JSON: {error}") from error
    if found is not None:
        name = ".".join(found)
        raise _bad_line(path, row, f"a field at {name!r} stands twice in one object")


def _record(path: str, row: int, line: bytes) -> dict[str, object] | None:
    if not line or line.isspace():
        return None
    try:
        record = parse(line)
    except (ValueError, RecursionError) as error:
        raise _bad_line(path, row, f"not JSON: {error}") from error
    if not isinstance(record, dict):
        raise _bad_line(path, row, f"a JSON {type(record).__name__}, not an object")
    return record


def _bad_line(path: str, row: int, what: str) -> ShardError:
    return ShardError(
        f"{path}, line {row + 1}: {what}",
        shard=path,
        hint="JSONL has one JSON object a line: repair the line, or leave the file out",
    )


def _numbered(path: str, span: Span | None) -> Iterator[tuple[int, bytes]]:
    first = line_number(path, span.begin) if span else 0
    return enumerate(_lines(path, first, span), first)


def _lines(path: str, first: int = 0, span: Span | None = None) -> Iterator[bytes]:
    """Yield the lines of a file or span; `first` is the row of its first line."""
    parts: list[bytes] = []
    size = 0
    row = first
    for piece in span_pieces(path, span) if span else pieces(path):
        lines = piece.split(b"\n")
        if len(lines) > 1:
            parts.append(lines[0])
            line = b"".join(parts)
            yield line if row else line.removeprefix(_BYTE_ORDER_MARK)
            yield from lines[1:-1]
            row += len(lines) - 1
            parts, size = [], 0
        if lines[-1]:
            parts.append(lines[-1])
            size += len(lines[-1])
            if size > MAX_LINE_BYTES:
                raise _bad_line(path, row, f"longer than {MAX_LINE_BYTES >> 20} MiB")
    if parts:
        line = b"".join(parts)
        yield line if row else line.removeprefix(_BYTE_ORDER_MARK)


def _note(
    record: dict[str, object], above: tuple[str, ...], seen: dict[tuple[str, ...], Kind]
) -> None:
    for key, value in record.items():
        path = (*above, key)
        kind = _kind(value)
        known = seen.get(path)
        if known is None or _RANK.index(kind) < _RANK.index(known):
            seen[path] = kind
        if isinstance(value, dict) and len(path) < _MAX_DEPTH:
            _note(value, path, seen)


def _kind(value: object) -> Kind:
    if value is None:
        return "null"
    if isinstance(value, str):
        return "text"
    if isinstance(value, dict):
        return "struct"
    if isinstance(value, list):
        if all(isinstance(entry, str) for entry in value):
            return "list"
        if all(isinstance(entry, dict) and is_turn(entry) for entry in value):
            return "chat"
    return "other"
