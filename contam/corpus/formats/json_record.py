"""Find the document in a JSON record: in the text column, or the next one that has text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from contam.tables.chat import Turn, at_path, clean, joined, named, text_at, turns_of
from contam.tables.edits import edited, edited_value, spread

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contam.tables.columns import ColumnRef, TextColumns
    from contam.tables.edits import Span


class RecordText(NamedTuple):
    """The document of a record.

    text         valid UTF-8; None when no column that is read has a value
    n_bad        bytes that were replaced in it
    turns        what it is joined from; None for plain text
    column       the column it was read from; "" when that is the first
    n_elsewhere  1 when it has no text and a column that is not read has one
    """

    text: bytes | None
    n_bad: int = 0
    turns: list[Turn] | None = None
    column: str = ""
    n_elsewhere: int = 0


def find(record: Mapping[str, object], sources: TextColumns) -> RecordText:
    """Return the document of a record. Raises ValueError for a value that cannot be its text."""
    first = read(record, sources.first, strict=True)._replace(column="")
    if not sources.others or not _blank(first.text):
        return first
    for ref in sources.others:
        other = read(record, ref, strict=False)
        if not _blank(other.text):
            return first._replace(n_elsewhere=1) if sources.named else other
    return first


def column_read(record: Mapping[str, object], sources: TextColumns) -> tuple[ColumnRef, RecordText]:
    """The column that the document of a record is read from, and what `find` returns of it."""
    first = read(record, sources.first, strict=True)
    if _blank(first.text) and not sources.named:
        for ref in sources.others:
            other = read(record, ref, strict=False)
            if not _blank(other.text):
                return ref, other
    return sources.first, first


def read(record: Mapping[str, object], ref: ColumnRef, *, strict: bool) -> RecordText:
    """Return the document of one column.

    Unless `strict`, a value of another kind is no mistake but no text.
    """
    if ref.kind == "group":
        return _group(record, ref, strict=strict)
    value = at_path(record, ref.path, once=True)
    if not strict and not _may_be_text(value):
        return RecordText(None)
    turns = turns_of(value) if isinstance(value, list) else None
    text = text_at(record, ref.path) if turns is None else joined(turns)
    if text is None:
        return RecordText(None)
    raw, bad = clean(text)
    return RecordText(raw, bad, turns, ref.dotted)


def edited_record(
    record: dict[str, object],
    sources: TextColumns,
    spans: Sequence[Span],
    replacement: str | None,
) -> None:
    """Take spans out of the document of a record, in place.

    Raises ValueError where a span is not in the document, or lies elsewhere than in a text or in
    the content of a message.
    """
    ref, found = column_read(record, sources)
    texts = {part: (read(record, part, strict=False).text or b"").decode() for part in ref.single}
    parts = [part for part in ref.single if texts[part]]
    pieces = [texts[part] for part in parts]
    whole = (found.text or b"").decode()
    if "\n".join(pieces) != whole:
        raise ValueError(f"the text in {ref.dotted} is not joined as it was read")
    edited(whole, spans, replacement)
    for part, text, inside in zip(parts, pieces, spread(spans, pieces), strict=True):
        if not inside:
            continue
        holder: object = record
        for step in part.path[:-1]:
            holder = holder.get(step) if isinstance(holder, dict) else None
        if not isinstance(holder, dict):
            raise ValueError("it stands inside another text")  # noqa: TRY004 - told of a line
        *_, name = part.path
        for path, new in edited_value(holder.get(name), text, inside, replacement):
            inner: Any = holder
            *above, last = (name, *path)
            for key in above:
                inner = inner[key]
            inner[last] = new


def _group(record: Mapping[str, object], ref: ColumnRef, *, strict: bool) -> RecordText:
    """Join the parts that this record has; numbers and flags among them are no text."""
    turns: list[Turn] = []
    columns: list[str] = []
    missing = True
    paths = {part.path for part in ref.parts}
    for part in ref.parts:
        value = at_path(record, part.path, once=True)
        missing = missing and value is None
        if isinstance(value, int | float) or not (strict or _may_be_text(value)):
            continue
        if isinstance(value, Mapping) and (*part.path, "text") in paths:
            continue
        if isinstance(value, list):
            inner = [named(turn, part.dotted) for turn in turns_of(value)]
        else:
            inner = [Turn(part.dotted, text_at(record, part.path) or "")]
        if joined(inner):
            turns += inner
            columns.append(part.dotted)
    if missing:
        return RecordText(None)
    raw, bad = clean(joined(turns))
    return RecordText(raw, bad, turns, "+".join(columns))


def _may_be_text(value: object) -> bool:
    if isinstance(value, list):
        return any(isinstance(entry, str | dict | list) for entry in value)
    return isinstance(value, str)


def _blank(text: bytes | None) -> bool:
    return not text or text.isspace()
