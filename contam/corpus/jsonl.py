"""JSONL shards: one object a line; row r is line r + 1 of the (decompressed) file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from contam.corpus.streams import pieces
from contam.errors import ShardError
from contam.tables.blocks import TextBlock, block_of
from contam.tables.chat import Turn, turns_of
from contam.tables.columns import CONTENT_KEYS, ROLE_KEYS, ColumnRef, Kind
from contam.tables.json_text import at_path, clean, parse, text_at

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


def text_blocks(path: str, ref: ColumnRef, *, max_bytes: int) -> Iterator[TextBlock]:
    """Yield the documents at `ref`, one a line, about `max_bytes` of text at a time.

    A blank line is an empty document, so that rows stay line numbers. Raises ShardError, with
    file and line, for a line that is not a JSON object or whose text is no text.
    """
    limit = min(max_bytes, _BLOCK_BYTES)
    texts: list[bytes] = []
    size = n_null = n_bad = n_bytes = 0
    for row, line in enumerate(_lines(path)):
        raw, missing, bad = _document(path, row, line, ref.path)
        texts.append(raw)
        size += len(raw)
        n_null += missing
        n_bad += bad > 0
        n_bytes += bad
        if size >= limit or len(texts) >= _BLOCK_ROWS:
            yield block_of(texts, n_null=n_null, n_undecodable=n_bad, undecodable_bytes=n_bytes)
            texts = []
            size = n_null = n_bad = n_bytes = 0
    if texts:
        yield block_of(texts, n_null=n_null, n_undecodable=n_bad, undecodable_bytes=n_bytes)


def records(path: str, wanted: Sequence[int]) -> Iterator[tuple[int, dict[str, object] | None]]:
    """Yield (row, record) for the wanted rows (ascending, distinct); a blank line is None."""
    position = 0
    for row, line in enumerate(_lines(path)):
        if position == len(wanted):
            return
        if row == wanted[position]:
            yield row, _record(path, row, line)
            position += 1


def turns(record: object, ref: ColumnRef) -> list[Turn]:
    """Return the turns of one record's conversation, in the text they are searched in."""
    value = at_path(record, ref.path)
    if not isinstance(value, list):
        return []
    return [Turn(turn.role, clean(turn.text)[0].decode()) for turn in turns_of(value)]


def _document(path: str, row: int, line: bytes, keys: Sequence[str]) -> tuple[bytes, bool, int]:
    """Return (text, whether it is missing, replaced surrogates)."""
    record = _record(path, row, line)
    if record is None:
        return b"", False, 0
    try:
        text = text_at(record, keys)
    except ValueError as error:
        raise _bad_line(path, row, str(error)) from error
    if text is None:
        return b"", True, 0
    raw, bad = clean(text)
    return raw, False, bad


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


def _lines(path: str) -> Iterator[bytes]:
    parts: list[bytes] = []
    size = 0
    row = 0
    for piece in pieces(path):
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
        if all(isinstance(entry, dict) and _is_turn(entry) for entry in value):
            return "chat"
    return "other"


def _is_turn(entry: dict[str, object]) -> bool:
    return any(key in entry for key in ROLE_KEYS) and any(key in entry for key in CONTENT_KEYS)
