"""Put other texts into Arrow arrays of any nesting; type, nulls and all other values stay."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from contam.tables.columns import is_list, is_text
from contam.tables.dictionaries import as_bytes, pieced

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contam.tables.text_leaves import Path


class NewText(NamedTuple):
    """What becomes of one text of an array.

    row   of the array;  path  inside its value: names of fields and places in lists
    text  with surrogates for bytes that are no UTF-8
    """

    row: int
    path: Path
    text: str


def put(array: pa.Array, texts: Sequence[NewText]) -> pa.Array:
    """The array with these texts in place of those that it has there.

    Raises ValueError for a type whose values this cannot change, and for a dictionary that has no
    room for another text.
    """
    if not texts:
        return array
    kind = array.type
    if isinstance(kind, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(kind, put(array.storage, texts))
    if pt.is_dictionary(kind):
        return _put_encoded(array, texts)
    if is_text(kind):
        rows, new = [text.row for text in texts], _texts([text.text for text in texts], kind)
        return new if rows == list(range(len(array))) else pieced(array, rows, new)
    if pt.is_struct(kind):
        return _put_fields(array, texts)
    if is_list(kind):
        return _put_entries(array, texts)
    raise ValueError(f"a text within {kind} cannot be replaced")


def _put_fields(array: pa.Array, texts: Sequence[NewText]) -> pa.Array:
    kind = array.type
    children = [array.field(i) for i in range(kind.num_fields)]
    for name in {text.path[0] for text in texts}:
        index = kind.get_field_index(name)
        inner = [NewText(t.row, t.path[1:], t.text) for t in texts if t.path[0] == name]
        children[index] = put(children[index], inner)
    mask = array.is_null() if array.null_count else None
    return pa.StructArray.from_arrays(
        children, fields=[kind.field(i) for i in range(kind.num_fields)], mask=mask
    )


def _put_entries(array: pa.Array, texts: Sequence[NewText]) -> pa.Array:
    kind = array.type
    n_buffers = 1 if pt.is_fixed_size_list(kind) else 2

    def begin(row: int) -> int:
        if n_buffers == 1:
            return int((array.offset + row) * kind.list_size)
        return int(array.offsets[row].as_py())

    inner = [NewText(begin(t.row) + int(t.path[0]), t.path[1:], t.text) for t in texts]
    return pa.Array.from_buffers(
        kind,
        len(array),
        array.buffers()[:n_buffers],
        null_count=array.null_count,
        offset=array.offset,
        children=[put(array.values, inner)],
    )


def _put_encoded(array: pa.Array, texts: Sequence[NewText]) -> pa.Array:
    """A dictionary gets texts that it does not have yet; others keep their places in it."""
    kind = array.type
    wanted = _texts([text.text for text in texts], kind.value_type)
    dictionary = _grown(array.dictionary, wanted)
    places = pc.index_in(as_bytes(wanted), value_set=as_bytes(dictionary))
    try:
        places = places.cast(kind.index_type)
    except pa.ArrowInvalid as error:
        raise ValueError(
            f"its dictionary has {len(array.dictionary)} values and no room for others"
        ) from error
    indices = pieced(array.indices, [text.row for text in texts], places)
    return pa.DictionaryArray.from_arrays(indices, dictionary, ordered=kind.ordered)


def _grown(dictionary: pa.Array, wanted: pa.Array) -> pa.Array:
    raw = as_bytes(wanted)
    missing = pc.invert(pc.is_in(raw, value_set=as_bytes(dictionary)))
    new = raw.filter(missing).unique()
    if not len(new):
        return dictionary
    return pa.concat_arrays([dictionary, _texts_of_bytes(new.to_pylist(), dictionary.type)])


def _texts(texts: Sequence[str], kind: pa.DataType) -> pa.Array:
    return _texts_of_bytes([text.encode("utf-8", "surrogateescape") for text in texts], kind)


def _texts_of_bytes(raw: Sequence[bytes], kind: pa.DataType) -> pa.Array:
    """An array of strings or bytes; strings may hold bytes that are no UTF-8, as files do."""
    if isinstance(kind, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(kind, _texts_of_bytes(raw, kind.storage_type))
    if pt.is_string(kind) or pt.is_binary(kind):
        same: pa.DataType = pa.binary()
    elif pt.is_string_view(kind) or pt.is_binary_view(kind):
        same = pa.binary_view()
    else:
        same = pa.large_binary()
    made = pa.array(raw, same)
    return pa.Array.from_buffers(kind, len(made), made.buffers(), null_count=0)
