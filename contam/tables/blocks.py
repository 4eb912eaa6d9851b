"""Hold a block of documents as two flat arrays, and make one of a column of Arrow's."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from contam.files.listed import wide_encoding
from contam.tables.chat import CONTENT_KEYS, EXTRA_KEYS, TURN_SEPARATOR, clean, joined, turns_of
from contam.tables.columns import is_list, is_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray

MOST_ROWS = 1 << 20
"""Documents of one batch at most, however short: an index numbers them in few bits."""

_SPACE = 32
#: Fewer bytes may hold NULs for any reason, and are no text in which anything could be found.
_SHORTEST_WIDE = 16


class TextBlock(NamedTuple):
    """Consecutive documents of one shard, as valid UTF-8.

    data               uint8[total], read-only
    offsets            int64[n + 1], read-only; document i is data[offsets[i]:offsets[i + 1]]
    n_null             documents without a text (zero length here)
    n_undecodable      documents in which bytes that are not UTF-8 became U+FFFD
    undecodable_bytes  how many bytes were replaced
    moved              columns that were read for documents without a text in the shard's first
                       one, and for how many
    n_elsewhere        documents left without a text although another column holds one
    n_blank            blank lines between documents, which keep a row each (zero length here)
    records            names and values that each document was read from, None for one that is not
                       kept; empty where the format reads no whole records
    """

    data: NDArray[np.uint8]
    offsets: NDArray[np.int64]
    n_null: int
    n_undecodable: int
    undecodable_bytes: int
    moved: tuple[tuple[str, int], ...] = ()
    n_elsewhere: int = 0
    n_blank: int = 0
    records: Sequence[Mapping[str, object] | None] = ()


def frozen(array: NDArray[np.generic]) -> None:
    """Make `array` read-only: compiled kernels then see one array type, mapped or not."""
    array.flags.writeable = False


def block_of(texts: Sequence[bytes], *, n_null: int = 0, bad: Sequence[int] = ()) -> TextBlock:
    """Join valid UTF-8 texts into one block; bad  bytes that were replaced in each."""
    data = np.frombuffer(b"".join(texts), np.uint8)
    offsets = np.zeros(len(texts) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, texts), np.int64, len(texts)), out=offsets[1:])
    frozen(data)
    frozen(offsets)
    return TextBlock(data, offsets, n_null, sum(n > 0 for n in bad), sum(bad))


def block_of_cleaned(texts: Iterable[str | None]) -> TextBlock:
    """Join texts that may hold surrogates, see `clean`; None for documents without one."""
    held = list(texts)
    found = [clean(text or "") for text in held]
    bad = [n for _, n in found]
    return block_of([raw for raw, _ in found], n_null=held.count(None), bad=bad)


def repaired(raw: bytes) -> tuple[bytes, int]:
    """Return `raw` with every byte that is not UTF-8 replaced by U+FFFD, and their number.

    Of text in UTF-16 these are its NULs, too, which are valid but stand between the letters.
    """
    if len(raw) >= _SHORTEST_WIDE and wide_encoding(raw):
        raw = raw.replace(b"\0", b"\xff")
    try:
        raw.decode()
    except UnicodeDecodeError:
        n_valid = len(raw.decode("utf-8", "ignore").encode())
        return raw.decode("utf-8", "replace").encode(), len(raw) - n_valid
    return raw, 0


def texts_of(block: TextBlock) -> list[str]:
    """Return the documents of a block as strings."""
    whole = block.data.tobytes()
    bounds = block.offsets.tolist()
    return [whole[begin:end].decode() for begin, end in pairwise(bounds)]


def blank_rows(block: TextBlock) -> NDArray[np.int64]:
    """Return the documents without a text: of length zero, or nothing but ASCII white space."""
    begins, ends = block.offsets[:-1], block.offsets[1:]
    blank = begins == ends
    if len(block.data):
        # Text hardly ever begins with white space: few documents are scanned to their end.
        first = block.data[np.minimum(begins, len(block.data) - 1)]
        for i in np.flatnonzero(~blank & (first <= _SPACE)).tolist():
            blank[i] = block.data[begins[i] : ends[i]].tobytes().isspace()
    return np.flatnonzero(blank)


def replaced(block: TextBlock, texts: Mapping[int, bytes]) -> TextBlock:
    """Put other texts in place of some documents; the counts stay those of `block`."""
    parts: list[bytes] = []
    done = 0
    lengths = np.diff(block.offsets)
    for i in sorted(texts):
        parts += (block.data[block.offsets[done] : block.offsets[i]].tobytes(), texts[i])
        lengths[i] = len(texts[i])
        done = i + 1
    parts.append(block.data[block.offsets[done] :].tobytes())
    data = np.frombuffer(b"".join(parts), np.uint8)
    offsets = np.zeros_like(block.offsets)
    np.cumsum(lengths, out=offsets[1:])
    frozen(data)
    frozen(offsets)
    return block._replace(data=data, offsets=offsets)


def pieces(block: TextBlock, max_bytes: int) -> list[tuple[int, int]]:
    """Cut a block into runs `[begin, end)` of at most `max_bytes` of text and `MOST_ROWS` rows.

    A document above the limit gets a run of its own: documents are never cut.
    """
    n = len(block.offsets) - 1
    if n == 0 or (block.offsets[-1] <= max_bytes and n <= MOST_ROWS):
        return [(0, n)] if n else []
    runs = []
    begin = 0
    while begin < n:
        limit = block.offsets[begin] + max_bytes
        end = int(np.searchsorted(block.offsets, limit, side="right")) - 1
        end = min(max(end, begin + 1), begin + MOST_ROWS, n)
        runs.append((begin, end))
        begin = end
    return runs


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
    found = [repaired(whole[begin:end]) for begin, end in pairwise(offsets.tolist())]
    return block_of([text for text, _ in found], n_null=n_null, bad=[bad for _, bad in found])


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
    return block_of_cleaned(
        joined(turns_of(turns)) if isinstance(turns, list) else None for turns in values_of(array)
    )
