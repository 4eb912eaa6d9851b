"""Check arrays that came from a file before anything is looked up in them."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.types as pt

from contam.tables.columns import with_leaves

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

    def of_leaf(leaf: pa.DataType) -> pa.DataType:
        if pt.is_dictionary(leaf):
            return pa.dictionary(leaf.index_type, _bytes_for_text(leaf.value_type))
        return _BYTES.get(leaf, leaf)

    return with_leaves(kind, of_leaf)
