"""Join Arrow lists of chat turns into one text per row."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from contam.tables.arrow_text import plain, text_block
from contam.tables.blocks import TextBlock, block_of
from contam.tables.chat import TURN_SEPARATOR, joined, turns_of
from contam.tables.columns import CONTENT_KEYS, EXTRA_KEYS, is_list, is_text
from contam.tables.json_text import clean


def joined_block(array: pa.Array) -> TextBlock:
    """Return the documents of a list array of turns or strings."""
    content = _flat_content(array)
    if content is None:
        return _joined_slowly(array)
    # Lists are rebuilt from flat values and lengths: slices, null lists and fixed-size lists then
    # need no care of their own.
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


def values_of(array: pa.Array) -> list[object]:
    """Return plain Python values; bytes that are not UTF-8 become surrogates, see `clean`."""
    kind = array.type
    if isinstance(kind, pa.BaseExtensionType):
        return values_of(array.storage)
    if is_text(kind):
        array = plain(array)
        raw = array.cast(pa.large_binary() if pt.is_large_string(array.type) else pa.binary())
        return [
            value if value is None else value.decode("utf-8", "surrogateescape")
            for value in raw.to_pylist()
        ]
    present = array.is_valid().to_pylist()
    if pt.is_struct(kind):
        names = [kind.field(i).name for i in range(kind.num_fields)]
        fields = [values_of(pc.struct_field(array, [i])) for i in range(kind.num_fields)]
        rows = zip(*fields, strict=True) if fields else ((),) * len(array)
        records = (dict(zip(names, row, strict=True)) for row in rows)
        return [record if there else None for record, there in zip(records, present, strict=True)]
    if is_list(kind):
        flat = values_of(array.flatten())
        ends = np.cumsum(np.asarray(pc.fill_null(pc.list_value_length(array), 0), np.int64))
        begins = [0, *ends.tolist()]
        return [
            flat[begin:end] if there else None
            for begin, end, there in zip(begins, ends.tolist(), present, strict=False)
        ]
    return list(array.to_pylist())


def _flat_content(array: pa.Array) -> pa.Array | None:
    """Return the contents of all turns, null without any; None when more than one field speaks."""
    turns = array.flatten()
    if not pt.is_struct(turns.type):
        return turns if is_text(turns.type) else None
    speaking = {}
    for i in range(turns.type.num_fields):
        name = turns.type.field(i).name
        if name in CONTENT_KEYS or name in EXTRA_KEYS:
            values = pc.struct_field(turns, [i])
            if values.null_count < len(values):
                speaking[name] = values
    if not speaking:
        return pa.nulls(len(turns), pa.string())
    ((name, values), *more) = speaking.items()
    return values if name in CONTENT_KEYS and is_text(values.type) and not more else None


def _joined_slowly(array: pa.Array) -> TextBlock:
    documents = values_of(array)
    n_bad = n_bytes = 0
    texts = []
    for turns in documents:
        raw, bad = clean(joined(turns_of(turns)) if isinstance(turns, list) else "")
        texts.append(raw)
        n_bad += bad > 0
        n_bytes += bad
    return block_of(
        texts,
        n_null=sum(turns is None for turns in documents),
        n_undecodable=n_bad,
        undecodable_bytes=n_bytes,
    )
