"""Read JSONL shards: one object a line; row r is line r + 1 of the unpacked file."""

from __future__ import annotations

import json
from itertools import islice
from typing import TYPE_CHECKING

import orjson

from contam.corpus.formats import records
from contam.corpus.formats.base import Chunk, head_of, is_whole
from contam.corpus.streams import (
    ByteSpan,
    is_plain,
    line_number,
    note_line_number,
    pieces,
    refuse_wide,
    span_pieces,
)
from contam.errors import Plain, Public
from contam.files.addresses import is_address
from contam.files.doubled_keys import repeated
from contam.files.listed import LFS_HEAD, wide_encoding
from contam.tables.chat import parse
from contam.tables.columns import ColumnRef, Kind, TextColumns, is_turn

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import PurePath

_PACKED = (b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"BZh", b"\xfd7zXZ")
_SNIFF_ROWS = 200
_SNIFF_BYTES = 8 << 20
_MAX_DEPTH = 4
_RANK: tuple[Kind, ...] = ("chat", "text", "list", "tokens", "struct", "other", "null")


class JsonLines(records.RecordFormat):
    """JSON lines. A blank line is no document, but counts as a row: rows are line numbers."""

    name = "jsonl"
    title = "JSONL"
    suffixes = (".jsonl", ".ndjson", ".json", ".jsonlines")
    open_keys = True
    unit = "line", 1
    if_bad = "JSONL has one JSON object a line: repair the line, or leave the file out"

    def guess(self, head: bytes) -> bool:
        return head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{") or head.startswith(_PACKED)

    def no_shard(self, path: PurePath) -> str:
        return _not_lines(head_of(path)) if path.name.lower().endswith(".json") else ""

    def columns(self, path: str) -> tuple[ColumnRef, ...]:
        """List the keys of the first records, nested ones too; none for a file without records."""

        def first_records() -> Iterator[records.Record]:
            n_bytes = 0
            for row, line in enumerate(self._lines(path)):
                n_bytes += len(line)
                yield self.record(path, row, line) or {}
                if n_bytes >= _SNIFF_BYTES:
                    return

        return noted_columns(first_records())

    def chunks(self, path: str, text: ColumnRef, size_bytes: int, chunk_bytes: int) -> list[Chunk]:
        if size_bytes <= chunk_bytes or not is_plain(path):
            return super().chunks(path, text, size_bytes, chunk_bytes)
        spans = [
            ByteSpan(at, min(at + chunk_bytes, size_bytes))
            for at in range(0, size_bytes, chunk_bytes)
        ]
        return [
            Chunk(0, None, None if span.begin else 0, None, span.end - span.begin, span)
            for span in spans
        ]

    def first_row(self, path: str, chunk: Chunk, text: ColumnRef) -> int:
        return line_number(path, chunk.span.begin) if chunk.span else 0

    def numbered(self, path: str, span: ByteSpan | None) -> Iterator[tuple[int, bytes]]:
        first = line_number(path, span.begin) if span else 0
        row = first - 1
        for row, line in enumerate(self._lines(path, first, span), first):
            yield row, line
        # Rows count from the file's beginning: of an object all would be fetched twice for it.
        if span and is_address(path):
            note_line_number(path, span.end, row + 1)

    def record(self, path: str, row: int, raw: bytes) -> records.Record | None:
        if not raw or raw.isspace():
            return None
        try:
            record = parse(raw)
        except (ValueError, RecursionError) as error:
            raise self.bad(path, row, "not JSON: {}", Plain(_why(error))) from error
        if not isinstance(record, dict):
            raise self.bad(path, row, "a JSON {}, not an object", Public(type(record).__name__))
        return record

    def raw_records(self, path: str) -> Iterator[tuple[int, bytes]]:
        yield from enumerate(records.raw_lines(path))

    def edited(self, raw: bytes, names: Sequence[str], edit: records.Editor) -> bytes:
        """The line, written anew; its escapes, blanks and spelling of numbers may be others."""
        mark = records.BYTE_ORDER_MARK if raw.startswith(records.BYTE_ORDER_MARK) else b""
        line = raw.removeprefix(mark)
        end = line[len(line.rstrip(b"\r\n")) :]
        # Of an integer of any length no digit is lost.
        record = json.loads(line.decode("utf-8", "surrogateescape"))
        if not isinstance(record, dict):
            raise ValueError("no JSON object")  # noqa: TRY004 - told as what is wrong with the line
        edit(record)
        try:
            text = json.dumps(record, ensure_ascii=line.isascii())
            return mark + text.encode("utf-8", "surrogateescape") + end
        except UnicodeEncodeError:
            return mark + json.dumps(record).encode() + end

    def refuse(
        self, path: str, row: int, raw: bytes, record: records.Record, sources: TextColumns
    ) -> None:
        """Of two texts of one name parsers give the last: the first would go unread."""
        paths = (part.path for column in sources.every for part in column.single)
        try:
            found = repeated(raw, record, paths)
        except (ValueError, RecursionError) as error:
            raise self.bad(path, row, "not JSON: {}", Plain(_why(error))) from error
        if found is not None:
            raise self.bad(path, row, "a field at {!r} occurs twice in one object", ".".join(found))

    def _lines(self, path: str, first: int = 0, span: ByteSpan | None = None) -> Iterator[bytes]:
        """Yield the lines of a file or span; `first` is the row of its first line."""
        parts: list[bytes] = []
        size = 0
        row = first
        for piece in span_pieces(path, span) if span else pieces(path):
            if not row and not parts:
                refuse_wide(path, piece)
            lines = piece.split(b"\n")
            if len(lines) > 1:
                parts.append(lines[0])
                line = b"".join(parts)
                yield line if row else line.removeprefix(records.BYTE_ORDER_MARK)
                yield from lines[1:-1]
                row += len(lines) - 1
                parts, size = [], 0
            if lines[-1]:
                parts.append(lines[-1])
                size += len(lines[-1])
                if size > records.MAX_RECORD_BYTES:
                    raise self.bad(path, row, f"longer than {records.MAX_RECORD_BYTES >> 20} MiB")
        if parts:
            line = b"".join(parts)
            yield line if row else line.removeprefix(records.BYTE_ORDER_MARK)


def _why(error: Exception) -> str:
    """What the parser says; of its own line number, which is always 1, only the column is left."""
    if isinstance(error, json.JSONDecodeError):
        return f"{error.msg}: column {error.colno}"
    return str(error)


def noted_columns(found: Iterator[records.Record]) -> tuple[ColumnRef, ...]:
    """The keys of the first records, nested ones too; none where there is no record."""
    seen: dict[tuple[str, ...], Kind] = {}
    empty: set[tuple[str, ...]] = set()
    for record in islice(found, _SNIFF_ROWS):
        _note(record, (), seen, empty)
    # An empty list may be one of texts or of ids: others tell.
    seen |= {key: "list" for key in empty if seen[key] == "null"}
    return tuple(ColumnRef(key, kind, kind) for key, kind in seen.items())


def _not_lines(head: bytes) -> str:
    """Say why a bare .json file in a folder is no JSONL shard; "" when it is one."""
    lines = head.lstrip(b"\xef\xbb\xbf").split(b"\n")
    if not head or head.startswith(LFS_HEAD) or wide_encoding(head):
        # As a shard it fails by name; left out it would not be missed.
        return ""
    if lines[0].lstrip().startswith(b"["):
        return "a JSON array, not one object a line"
    if len(lines) == 1 and not is_whole(head):
        return ""
    try:
        first = orjson.loads(lines[0])
    except orjson.JSONDecodeError:
        return "a JSON document over several lines"
    if not isinstance(first, dict):
        return "not one JSON object a line"
    several = len(lines) > 1 and lines[1].strip() != b""
    texts = ("text", "content", "raw_content", "messages", "conversations")
    return "" if several or any(key in first for key in texts) else "a single JSON object"


def _note(
    record: dict[str, object],
    above: tuple[str, ...],
    seen: dict[tuple[str, ...], Kind],
    empty: set[tuple[str, ...]],
) -> None:
    for key, value in record.items():
        path = (*above, key)
        kind = _kind(value)
        known = seen.get(path)
        if known is None or _RANK.index(kind) < _RANK.index(known):
            seen[path] = kind
        if value == []:
            empty.add(path)
        if isinstance(value, dict) and len(path) < _MAX_DEPTH:
            _note(value, path, seen, empty)


def _kind(value: object) -> Kind:
    plain: dict[type, Kind] = {type(None): "null", str: "text", dict: "struct"}
    if isinstance(value, list):
        if not value:
            return "null"
        if all(isinstance(entry, str) for entry in value):
            return "list"
        if all(type(entry) is int for entry in value):
            return "tokens"
        if all(isinstance(entry, dict) and is_turn(entry) for entry in value):
            return "chat"
    return plain.get(type(value), "other")
