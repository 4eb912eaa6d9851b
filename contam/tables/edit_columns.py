"""Drop rows of record batches, and cut or mask stretches of texts in the columns they stand in."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from contam.tables.blocks import texts_of
from contam.tables.chat_arrow import values_of
from contam.tables.columns import is_list, is_text, with_leaves
from contam.tables.edits import edited, edited_value, spread
from contam.tables.fields import as_text_block, pick
from contam.tables.some_rows import kept, taken

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contam.tables.columns import ColumnRef
    from contam.tables.edits import Rewrite

    #: A text of an array: its row, the path to it inside the value, and what becomes of it.
    Placed = tuple[int, tuple[str | int, ...], str]

_LARGE = {pa.string_view(): pa.large_string(), pa.binary_view(): pa.large_binary()}


def plain_type(kind: pa.DataType) -> pa.DataType:
    """The type without dictionaries and views, whose buffers keep what rows no longer have."""

    def of_leaf(leaf: pa.DataType) -> pa.DataType:
        if pt.is_dictionary(leaf):
            return plain_type(leaf.value_type)
        return _LARGE.get(leaf, leaf)

    return with_leaves(kind, of_leaf)


def edited_batch(batch: pa.RecordBatch, how: Rewrite) -> pa.RecordBatch:
    """The batch without the rows that are dropped, and with the spans of others cut or masked.

    batch  of plain types in the columns of the text; others are returned as they are
    how    its rows count from the batch's first

    Raises ValueError where a span is not in the text, or in a place that is not edited.
    """
    stays = np.ones(batch.num_rows, np.bool_)
    stays[[edit.row for edit in how.edits if edit.drop]] = False
    changed = [edit for edit in how.edits if edit.spans and not edit.drop]
    if changed:
        columns = list(batch.columns)
        for (name, *inside), texts in _changes(batch, replace(how, edits=changed)).items():
            at = batch.schema.get_field_index(name)
            columns[at] = _put(
                columns[at], [(row, (*inside, *path), text) for row, path, text in texts]
            )
        batch = pa.RecordBatch.from_arrays(columns, schema=batch.schema)
    return kept(batch, stays)


def _changes(batch: pa.RecordBatch, how: Rewrite) -> dict[tuple[str, ...], list[Placed]]:
    """What becomes of texts, by column."""
    sources, names = how.sources, how.texts
    some = taken(
        batch.select([name for name in batch.schema.names if name in names]),
        np.array([edit.row for edit in how.edits]),
    )
    texts: dict[ColumnRef, list[str]] = {}

    def text_of(ref: ColumnRef, place: int) -> str:
        if ref not in texts:
            texts[ref] = texts_of(as_text_block(some, ref))
        return texts[ref][place]

    found: dict[tuple[str, ...], list[Placed]] = {}
    for place, edit in enumerate(how.edits):
        filled = (ref for ref in sources.every if not _is_blank(text_of(ref, place)))
        ref = next(filled, sources.first)
        edited(text_of(ref, place), edit.spans, how.replacement)
        parts = [part for part in ref.single if ref.kind != "group" or text_of(part, place)]
        pieces = [text_of(part, place) for part in parts]
        for part, text, spans in zip(parts, pieces, spread(edit.spans, pieces), strict=True):
            if not spans:
                continue
            value: object = text
            if part.kind in ("chat", "list"):
                (value,) = values_of(pick(some, part.column).slice(place, 1))
            elif part.kind != "text":
                value = None
            made = edited_value(value, text, spans, how.replacement)
            found.setdefault(part.column, []).extend((edit.row, new.path, new.text) for new in made)
    return found


def _is_blank(text: str) -> bool:
    return not text or (text.isascii() and text.isspace())


def _put(array: pa.Array, texts: Sequence[Placed]) -> pa.Array:
    """The array with other texts in some places; type, nulls and all other values stay."""
    kind = array.type
    if isinstance(kind, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(kind, _put(array.storage, texts))
    if is_text(kind):
        mask = np.zeros(len(array), np.bool_)
        mask[[row for row, _, _ in texts]] = True
        new = [text.encode() for _, _, text in sorted(texts)]
        return pc.replace_with_mask(array, pa.array(mask), pa.array(new, pa.binary()).cast(kind))
    if pt.is_struct(kind):
        fields = [kind.field(i) for i in range(kind.num_fields)]
        children = []
        for at, field in enumerate(fields):
            inner = [(row, path[1:], text) for row, path, text in texts if path[0] == field.name]
            children.append(_put(array.field(at), inner) if inner else array.field(at))
        nulls = array.is_null() if array.null_count else None
        return pa.StructArray.from_arrays(children, fields=fields, mask=nulls)
    if not is_list(kind):
        raise ValueError(f"a text within {kind} cannot be replaced")
    is_fixed = pt.is_fixed_size_list(kind)
    begins = None if is_fixed else np.asarray(array.offsets)

    def begin(row: int) -> int:
        return int((array.offset + row) * kind.list_size if begins is None else begins[row])

    inner = [(begin(row) + int(path[0]), path[1:], text) for row, path, text in texts]
    return pa.Array.from_buffers(
        kind,
        len(array),
        array.buffers()[: 1 if is_fixed else 2],
        null_count=array.null_count,
        offset=array.offset,
        children=[_put(array.values, inner)],
    )
