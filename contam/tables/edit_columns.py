"""Cut or mask stretches of the documents of a record batch in the columns they stand in."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from contam.tables.array_put import NewText, put
from contam.tables.blocks import blank_rows, repaired, texts_of
from contam.tables.chat import joined, turns_of
from contam.tables.chat_arrow import values_of
from contam.tables.columns import ColumnRef
from contam.tables.dictionaries import recoded, used, with_dictionaries
from contam.tables.edits import edited
from contam.tables.fields import as_text_block, pick
from contam.tables.json_text import clean, json_or_none
from contam.tables.literals import Change, Literal, applied, located, located_at
from contam.tables.some_rows import kept, taken
from contam.tables.text_leaves import Joined, Leaf, marked, unrepaired

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contam.tables.columns import TextColumns
    from contam.tables.edits import Edit, Span

#: A text in a batch: the column it stands in, and what is changed in it, before it is repaired.
_Changes = dict[tuple[tuple[str, ...], int, tuple[str | int, ...]], tuple[str, list[Change]]]


def edited_batch(
    batch: pa.RecordBatch,
    sources: TextColumns,
    edits: Sequence[Edit],
    replacement: str | None,
) -> pa.RecordBatch:
    """The batch without the rows that are dropped, and with the spans of others cut or masked.

    batch        with all columns of `sources`, whole; others are returned as they are
    edits        their rows count from the batch's first
    replacement  what stands in place of each span; None cuts it out

    A span that reaches over several texts (turns, columns) is replaced in each of them. Schema and
    types stay; a dictionary keeps no text of `sources` that no row has any more. Raises ValueError
    where a span is not in the text or its text cannot be changed.
    """
    changes: _Changes = {}
    stays = np.ones(batch.num_rows, np.bool_)
    stays[[edit.row for edit in edits if edit.drop]] = False
    edits = [edit for edit in edits if edit.spans and not edit.drop]
    plain = _plain_texts(batch, sources.first, [edit.row for edit in edits])
    for row, _, spans in edits:
        if row in plain:
            found = [Change(*span, replacement or "") for span in unrepaired(plain[row], spans)]
            changes[sources.first.column, row, ()] = plain[row], found
        else:
            one_row = batch.slice(row, 1)
            _note(one_row, row, _column_read(one_row, sources), spans, replacement, changes)
    new: dict[str, list[NewText]] = {}
    for (column, row, path), (raw, wanted) in changes.items():
        text = NewText(row, (*column[1:], *path), applied(raw, wanted))
        new.setdefault(column[0], []).append(text)
    columns = list(batch.columns)
    for name, texts in new.items():
        index = batch.schema.get_field_index(name)
        columns[index] = put(columns[index], texts)
    left = kept(pa.RecordBatch.from_arrays(columns, schema=batch.schema), stays)
    return with_dictionaries(left, sources, lambda _, array: recoded(array, used(array)))


def edited_texts(
    texts: Sequence[bytes],
    field: pa.Field,
    sources: TextColumns,
    edits: Sequence[Edit],
    replacement: str | None,
) -> list[bytes]:
    """Texts of a column of strings or bytes that is read alone, with the spans of each replaced.

    edits  one a text, none of which is dropped; see `edited_batch`
    """
    is_text = sources.first.kind == "text"
    made = [
        edited(text.decode(), edit.spans, replacement).encode()
        if is_text and _is_plain(text)
        else None
        for text, edit in zip(texts, edits, strict=True)
    ]
    others = [place for place, text in enumerate(made) if text is None]
    if others:
        array = pa.array([texts[place] for place in others], pa.binary()).view(field.type)
        batch = pa.RecordBatch.from_arrays([array], schema=pa.schema([field]))
        left = [edits[place]._replace(row=row) for row, place in enumerate(others)]
        new = edited_batch(batch, sources, left, replacement).column(0).cast(pa.binary())
        for place, text in zip(others, new.to_pylist(), strict=True):
            made[place] = text
    return [text for text in made if text is not None]


def _is_plain(text: bytes) -> bool:
    """Whether a text is surely read just as it stands in its column."""
    return b"\0" not in text and not text.isspace() and repaired(text)[0] is text


def _plain_texts(batch: pa.RecordBatch, ref: ColumnRef, rows: Sequence[int]) -> dict[int, str]:
    """Texts that are read just as they stand in a column, by row.

    Most are: nothing has to be found out about what they are joined from.
    """
    if ref.kind != "text" or not rows:
        return {}
    some = batch.select([ref.path[0]])
    if len(rows) < batch.num_rows:
        some = taken(some, np.array(rows))
    block = as_text_block(some, ref)
    blank = set(blank_rows(block).tolist())
    texts = zip(rows, texts_of(block), values_of(pick(some, ref.column)), strict=True)
    return {
        row: read
        for place, (row, read, raw) in enumerate(texts)
        if read == raw and place not in blank
    }


def _column_read(one_row: pa.RecordBatch, sources: TextColumns) -> ColumnRef:
    """The column that a row's document was read from."""
    filled = (ref for ref in sources.every if not len(blank_rows(as_text_block(one_row, ref))))
    return next(filled, sources.first)


def _note(
    one_row: pa.RecordBatch,
    row: int,
    ref: ColumnRef,
    spans: Sequence[Span],
    replacement: str | None,
    changes: _Changes,
) -> None:
    """Add what taking spans out of one document changes."""
    leaves: list[Leaf] = []
    places: list[tuple[tuple[str, ...], tuple[str | int, ...], Literal | None]] = []
    patterns: list[str] = []
    for part in ref.single:
        if ref.kind == "group" and not texts_of(as_text_block(one_row, part))[0]:
            continue
        value = _value(one_row, part)
        first = len(leaves)
        copy = marked(value, leaves)
        patterns.append(joined(turns_of(copy)) if isinstance(copy, list) else str(copy or ""))
        for leaf in leaves[first:]:
            literal = leaf.text if isinstance(leaf.text, Literal) else None
            places.append((part.column, () if literal is not None else leaf.path, literal))
    document = Joined("\n".join(patterns), leaves)
    _check(one_row, ref, document)
    for number, found in document.stretches(spans).items():
        column, path, literal = places[number]
        if literal is None:
            raw = leaves[number].text
            here = [Change(begin, end, replacement or "") for begin, end in found]
        else:
            raw, here = _in_json(one_row, column, literal.changes(found, replacement))
        _, known = changes.setdefault((column, row, path), (raw, []))
        known += here


def _value(one_row: pa.RecordBatch, ref: ColumnRef) -> object:
    """The value of a document's column, text with surrogates for bytes that are no UTF-8."""
    array = pick(one_row, ref.column)
    if ref.kind != "json":
        return None if pt.is_null(array.type) else values_of(array)[0]
    (text,) = texts_of(as_text_block(one_row, ColumnRef(ref.column, "text")))
    # The JSON text is a literal that is written as it is: what is inside it is located in it.
    if json_or_none(text) is None:
        return None
    return located_at(located(text), ref.inside)


def _in_json(
    one_row: pa.RecordBatch, column: tuple[str, ...], changes: Sequence[Change]
) -> tuple[str, list[Change]]:
    """Changes of a repaired JSON text as changes of what the column holds."""
    raw = str(values_of(pick(one_row, column))[0])
    ordered = sorted(changes)
    spans = unrepaired(raw, [(change.begin, change.end) for change in ordered])
    return raw, [
        Change(begin, end, change.new) for (begin, end), change in zip(spans, ordered, strict=True)
    ]


def _check(one_row: pa.RecordBatch, ref: ColumnRef, document: Joined) -> None:
    """Raise ValueError unless what is edited is the text that a scan reads."""
    (read,) = texts_of(as_text_block(one_row, ref))
    raw = document.raw
    if raw == read or clean(raw)[0].decode() == read:
        return
    # Text in UTF-16 has its NULs replaced, too.
    if clean(raw.replace("\0", "\udcff"))[0].decode() != read:
        raise ValueError(f"a text in {ref.dotted} is not joined as it was read")
