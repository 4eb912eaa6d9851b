"""Pick one field out of record batches: by dotted path, inside structs, JSON text and chats."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from contam.tables.arrow_text import plain, text_block
from contam.tables.blocks import TextBlock, block_of, texts_of
from contam.tables.chat import TURN_SEPARATOR, Turn, joined, turns_of
from contam.tables.columns import (
    CONTENT_KEYS,
    ROLE_KEYS,
    ColumnRef,
    content_field,
    is_text,
    role_field,
)
from contam.tables.json_text import at_path, clean, json_or_none, text_at

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence


def pick(batch: pa.RecordBatch, path: Sequence[str]) -> pa.Array:
    """Return the array at `path`; a null struct makes its fields null.

    Raises KeyError when the batch has no such column.
    """
    index = batch.schema.get_field_index(path[0])
    if index < 0:
        raise KeyError(f"column {path[0]} is missing or occurs twice")
    array = batch.column(index)
    for step in path[1:]:
        array = pc.struct_field(array, step)
    return array


def as_text_block(batch: pa.RecordBatch, ref: ColumnRef) -> TextBlock:
    """Return the documents of column `ref`, whatever its kind."""
    array = pick(batch, ref.column)
    if ref.kind == "json":
        return _json_block(array, ref.inside)
    if ref.kind in ("chat", "list") and not pt.is_null(array.type):
        return _joined_block(array)
    return text_block(array)


def turns_at(batch: pa.RecordBatch, ref: ColumnRef, row: int) -> list[Turn]:
    """Return the turns of one document of a chat or list column."""
    value = pick(batch, ref.column).slice(row, 1)
    if pt.is_null(value.type) or value.null_count:
        return []
    inner = value.flatten()
    if not pt.is_struct(inner.type):
        return [Turn("", text) for text in texts_of(text_block(inner))]
    name = content_field(inner.type)
    if name is None or not is_text(inner.type.field(name).type):
        return turns_of(inner.to_pylist())
    texts = texts_of(text_block(pc.struct_field(inner, name)))
    speaker = role_field(inner.type)
    if speaker is None or not is_text(inner.type.field(speaker).type):
        return [Turn("", text) for text in texts]
    roles = texts_of(text_block(pc.struct_field(inner, speaker)))
    return [Turn(role, text) for role, text in zip(roles, texts, strict=True)]


def values_at(batch: pa.RecordBatch, ref: ColumnRef) -> list[object]:
    """Return the plain Python values of column `ref`; undecodable text is repaired."""
    array = pick(batch, ref.column)
    if pt.is_null(array.type):
        return [None] * len(array)
    if not is_text(array.type):
        return list(array.to_pylist())
    present = array.is_valid().to_pylist()
    texts = texts_of(text_block(array))
    found = [text if there else None for text, there in zip(texts, present, strict=True)]
    return [at_path(text, ref.inside) for text in found]


def columns_at(batch: pa.RecordBatch, refs: Sequence[ColumnRef]) -> dict[ColumnRef, list[object]]:
    """`values_at` for several columns; text that holds JSON is read once for all of them."""
    found: dict[ColumnRef, list[object]] = {}
    records: dict[tuple[str, ...], list[object]] = {}
    for ref in refs:
        if ref.kind != "json":
            found[ref] = values_at(batch, ref)
            continue
        if ref.column not in records:
            whole = ColumnRef(ref.column, "text")
            records[ref.column] = [json_or_none(text) for text in values_at(batch, whole)]
        found[ref] = [at_path(record, ref.inside) for record in records[ref.column]]
    return found


def take_rows(
    batches: Iterable[pa.RecordBatch], first_row: int, wanted: Sequence[int]
) -> Iterator[tuple[list[int], pa.RecordBatch]]:
    """Keep of consecutive batches only the wanted rows, ascending; stop after the last one.

    first_row  the row number of the first batch's first row
    Yields (row numbers, a batch with those rows in that order).
    """
    rows = np.asarray(wanted, np.int64)
    begin = first_row
    for batch in batches:
        end = begin + batch.num_rows
        low, high = np.searchsorted(rows, (begin, end))
        if high > low:
            yield rows[low:high].tolist(), batch.take(pa.array(rows[low:high] - begin))
        if high == len(rows):
            return
        begin = end


def _json_block(array: pa.Array, path: Sequence[str]) -> TextBlock:
    texts: list[bytes] = []
    n_null = n_bad = n_bytes = 0
    for record in texts_of(text_block(array)):
        text = text_at(record, path)
        n_null += text is None
        raw, bad = clean(text or "")
        texts.append(raw)
        n_bad += bad > 0
        n_bytes += bad
    return block_of(texts, n_null=n_null, n_undecodable=n_bad, undecodable_bytes=n_bytes)


def _joined_block(array: pa.Array) -> TextBlock:
    inner = array.type.value_type
    name = content_field(inner) if pt.is_struct(inner) else None
    content_type = inner.field(name).type if name is not None else inner
    if not is_text(content_type):
        return _joined_slowly(array)
    # Lists are rebuilt from flat values and lengths: slices, null lists and fixed-size lists then
    # need no care of their own.
    content = array.flatten()
    if name is not None:
        content = pc.struct_field(content, name)
    content = plain(content)
    large = pa.large_string() if pt.is_string(content.type) else content.type
    large = pa.large_binary() if pt.is_binary(content.type) else large
    content = content.cast(large)
    content = pc.fill_null(content, pa.scalar("", pa.string()).cast(large))
    lengths = pc.fill_null(pc.list_value_length(array), 0)
    offsets = np.zeros(len(array) + 1, np.int64)
    np.cumsum(np.asarray(lengths), out=offsets[1:])
    lists = pa.LargeListArray.from_arrays(pa.array(offsets), content)
    separator = pa.scalar(TURN_SEPARATOR, pa.string()).cast(large)
    texts = pc.binary_join(lists, separator)
    return text_block(texts)._replace(n_null=int(array.null_count))


def _joined_slowly(array: pa.Array) -> TextBlock:
    documents = array.to_pylist()
    texts = [joined(turns_of(value)).encode() if value else b"" for value in documents]
    return block_of(texts, n_null=sum(value is None for value in documents))


def wanted_leaves(leaves: Sequence[str], ref: ColumnRef) -> tuple[str, ...]:
    """Choose, among a Parquet file's leaf columns, those that the text of `ref` needs."""
    column = ".".join(ref.column)
    below = [leaf for leaf in leaves if leaf.startswith(column + ".")]
    roles = [leaf for leaf in below if leaf.rpartition(".")[2] in ROLE_KEYS]
    if ref.kind != "chat" or not roles:
        return (column,)
    # Writers name the levels of a list differently; the role sits where the content sits.
    turn = min(roles, key=len).rpartition(".")[0]
    for key in CONTENT_KEYS:
        content = f"{turn}.{key}"
        if found := tuple(leaf for leaf in below if f"{leaf}.".startswith(f"{content}.")):
            return found
    return (column,)
