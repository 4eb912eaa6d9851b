"""Check arrays that came from a file before anything is looked up in them."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.types as pt

_BYTES = {
    pa.string(): pa.binary(),
    pa.large_string(): pa.large_binary(),
    pa.string_view(): pa.binary_view(),
}


def check_sound(batch: pa.RecordBatch) -> None:
    """Raise ArrowInvalid for offsets, indices or lengths that do not fit; text may be no UTF-8.

    Arrow trusts them: a damaged one ends the process, or gives memory that is not of the file.
    """
    batch.validate()
    for column in batch.columns:
        try:
            column.validate(full=True)
        except pa.ArrowInvalid:
            kind = _bytes_for_text(column.type)
            if kind == column.type:
                raise
            # Only the type changes: nothing is looked up yet.
            column.cast(kind).validate(full=True)


def _bytes_for_text(kind: pa.DataType) -> pa.DataType:
    """The type with binary in place of text, inside lists and structs too."""
    if pt.is_struct(kind):
        return pa.struct([one.with_type(_bytes_for_text(one.type)) for one in kind])
    if pt.is_list(kind):
        return pa.list_(kind.value_field.with_type(_bytes_for_text(kind.value_type)))
    if pt.is_large_list(kind):
        return pa.large_list(kind.value_field.with_type(_bytes_for_text(kind.value_type)))
    if pt.is_dictionary(kind):
        return pa.dictionary(kind.index_type, _bytes_for_text(kind.value_type))
    return _BYTES.get(kind, kind)
