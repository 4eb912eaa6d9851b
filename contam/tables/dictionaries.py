"""Keep in dictionaries and shared buffers of text columns only what their rows use."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from contam.tables.columns import is_list, is_text
from contam.tables.some_rows import taken

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from contam.tables.columns import TextColumns

    #: Given where in the schema a dictionary array of texts stands, the array to have instead.
    Recode = Callable[[tuple[str, ...], pa.Array], pa.Array]


def with_dictionaries(
    batch: pa.RecordBatch, sources: TextColumns, recode: Recode
) -> pa.RecordBatch:
    """The batch with the dictionary arrays in its text columns, at any depth, recoded.

    Views of texts, which share buffers with rows that were taken out, get buffers of their own.
    """
    tops = {part.path[0] for ref in sources.every for part in ref.single}
    columns = [
        _recoded_in(column, recode, (field.name,))
        if field.name in tops and _shares(field.type)
        else column
        for field, column in zip(batch.schema, batch.columns, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=batch.schema)


def holds_dictionary(kind: pa.DataType) -> bool:
    """Whether arrays of a type hold texts in a dictionary, at any depth."""
    return any(pt.is_dictionary(leaf) for leaf in _texts_in(kind))


def _shares(kind: pa.DataType) -> bool:
    return any(pt.is_dictionary(leaf) or _is_view(leaf) for leaf in _texts_in(kind))


def _is_view(kind: pa.DataType) -> bool:
    return bool(pt.is_string_view(kind) or pt.is_binary_view(kind))


def _texts_in(kind: pa.DataType) -> Iterator[pa.DataType]:
    """The types of texts inside a type, at any depth."""
    if isinstance(kind, pa.BaseExtensionType):
        yield from _texts_in(kind.storage_type)
    elif is_text(kind):
        yield kind
    elif pt.is_struct(kind):
        for i in range(kind.num_fields):
            yield from _texts_in(kind.field(i).type)
    elif is_list(kind):
        yield from _texts_in(kind.value_type)


def used(array: pa.Array) -> pa.Array:
    """The values of an array's dictionary that its rows have, in the dictionary's order."""
    places = np.unique(np.asarray(array.indices.drop_null().cast(pa.int64())))
    return taken(array.dictionary, places)


def recoded(array: pa.Array, dictionary: pa.Array) -> pa.Array:
    """The array with another dictionary that has all its values. Raises ValueError."""
    if dictionary.equals(array.dictionary):
        return array
    new_place = pc.index_in(as_bytes(array.dictionary), value_set=as_bytes(dictionary))
    indices = new_place.take(array.indices)
    if indices.null_count != array.indices.null_count:
        raise ValueError("a dictionary lacks a value")
    kind = array.type
    return pa.DictionaryArray.from_arrays(
        indices.cast(kind.index_type), dictionary, ordered=kind.ordered
    )


def as_bytes(array: pa.Array) -> pa.Array:
    """Texts as bytes, which compare also where they are no UTF-8."""
    return array.cast(pa.large_binary())


def pieced(array: pa.Array, rows: Sequence[int], new: pa.Array) -> pa.Array:
    """The array with some of its values, in distinct rows, replaced by those of another."""
    if _is_view(array.type):
        large = pa.large_string() if pt.is_string_view(array.type) else pa.large_binary()
        return pieced(array.cast(large), rows, new.cast(large)).cast(array.type)
    pieces, at = [], 0
    for place in np.argsort(np.asarray(rows)).tolist():
        pieces += [array.slice(at, rows[place] - at), new.slice(place, 1)]
        at = rows[place] + 1
    return pa.concat_arrays([*pieces, array.slice(at)])


def _recoded_in(array: pa.Array, recode: Recode, at: tuple[str, ...]) -> pa.Array:
    kind = array.type
    if not _shares(kind):
        return array
    if _is_view(kind):
        return pieced(array, [], array.slice(0, 0))
    if isinstance(kind, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(kind, _recoded_in(array.storage, recode, at))
    if pt.is_dictionary(kind):
        return recode(at, array)
    if pt.is_struct(kind):
        fields = [kind.field(i) for i in range(kind.num_fields)]
        children = [
            _recoded_in(array.field(i), recode, (*at, field.name)) for i, field in enumerate(fields)
        ]
        mask = array.is_null() if array.null_count else None
        return pa.StructArray.from_arrays(children, fields=fields, mask=mask)
    n_buffers = 1 if pt.is_fixed_size_list(kind) else 2
    return pa.Array.from_buffers(
        kind,
        len(array),
        array.buffers()[:n_buffers],
        null_count=array.null_count,
        offset=array.offset,
        children=[_recoded_in(array.values, recode, (*at, ""))],
    )
