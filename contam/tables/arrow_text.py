"""Make texts of Arrow columns, conversations among them."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from contam.tables.blocks import TextBlock, block_of, frozen, repaired
from contam.tables.chat import CONTENT_KEYS, EXTRA_KEYS, TURN_SEPARATOR, clean, joined, turns_of
from contam.tables.columns import is_list, is_text

if TYPE_CHECKING:
    from numpy.typing import NDArray


def text_block(array: pa.Array) -> TextBlock:
    """Return the documents of a string, binary, dictionary or null array.

    The block's data views the array's own buffer. Bytes that are not UTF-8 are replaced and
    counted. Raises ValueError when the array's offsets do not fit its data.
    """
    array = plain(array)
    n = len(array)
    if pt.is_null(array.type):
        return block_of([b""] * n, n_null=n)
    data, offsets = _flat(array)
    n_null = int(array.null_count)
    if n_null and _covered_by_nulls(array, offsets):
        # The format lets a null slot cover bytes; a document without text must cover none.
        array = pc.fill_null(array, pa.scalar("", pa.string()).cast(array.type))
        data, offsets = _flat(array)
    if (len(data) and not data.min()) or not _is_utf8(array):
        return _repaired_block(data, offsets, n_null)
    frozen(data)
    frozen(offsets)
    return TextBlock(data, offsets, n_null, 0, 0)


def block_of_bytes(data: NDArray[np.uint8], bounds: NDArray[np.int64]) -> TextBlock:
    """The documents data[bounds[i] : bounds[i + 1]]; what is not UTF-8 in them is replaced."""
    buffers = [None, pa.py_buffer(bounds), pa.py_buffer(data)]
    return text_block(pa.Array.from_buffers(pa.large_binary(), len(bounds) - 1, buffers))


def plain(array: pa.Array) -> pa.Array:
    """Strip dictionary, view, fixed-size and extension forms down to string or binary arrays."""
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    kind = array.type
    if isinstance(kind, pa.BaseExtensionType):
        return plain(array.storage)
    if pt.is_dictionary(kind):
        return plain(array.cast(_large(kind.value_type)))
    if pt.is_string_view(kind) or pt.is_binary_view(kind):
        return array.cast(_large(kind))
    return array


def _large(kind: pa.DataType) -> pa.DataType:
    return pa.large_string() if pt.is_string_view(kind) or _is_str(kind) else pa.large_binary()


def _is_str(kind: pa.DataType) -> bool:
    return bool(pt.is_string(kind) or pt.is_large_string(kind))


def _flat(array: pa.Array) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    n = len(array)
    if n == 0:
        return np.empty(0, np.uint8), np.zeros(1, np.int64)
    _, offset_buffer, data_buffer = array.buffers()
    large = pt.is_large_string(array.type) or pt.is_large_binary(array.type)
    raw = np.frombuffer(
        offset_buffer,
        np.int64 if large else np.int32,
        count=n + 1,
        offset=array.offset * (8 if large else 4),
    )
    begin, end = int(raw[0]), int(raw[-1])
    size = 0 if data_buffer is None else data_buffer.size
    if begin < 0 or end > size or bool((np.diff(raw) < 0).any()):
        raise ValueError("text offsets do not fit the text's bytes")
    offsets = np.subtract(raw, begin, dtype=np.int64)
    if end == begin:
        return np.empty(0, np.uint8), offsets
    return np.frombuffer(data_buffer, np.uint8, count=end - begin, offset=begin), offsets


def _covered_by_nulls(array: pa.Array, offsets: NDArray[np.int64]) -> bool:
    # A sum by Arrow: handing it to NumPy as an array imports pandas, which costs more than a shard.
    inside = pc.sum(pc.binary_length(array)).as_py() or 0
    return bool(inside != offsets[-1] - offsets[0])


def _is_utf8(array: pa.Array) -> bool:
    if not _is_str(array.type):
        large = pt.is_large_binary(array.type)
        array = pa.Array.from_buffers(
            pa.large_string() if large else pa.string(),
            len(array),
            array.buffers(),
            null_count=array.null_count,
            offset=array.offset,
        )
    try:
        array.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def _repaired_block(data: NDArray[np.uint8], offsets: NDArray[np.int64], n_null: int) -> TextBlock:
    whole = data.tobytes()
    bounds = offsets.tolist()
    texts = []
    n_bad = n_bytes = 0
    for begin, end in pairwise(bounds):
        text, bad = repaired(whole[begin:end])
        texts.append(text)
        n_bad += bad > 0
        n_bytes += bad
    return block_of(texts, n_null=n_null, n_undecodable=n_bad, undecodable_bytes=n_bytes)


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
