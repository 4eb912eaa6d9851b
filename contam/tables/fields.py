"""Read the fields of record batches as texts and values, row by row or the first that has some."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from contam.tables.blocks import (
    TextBlock,
    blank_rows,
    block_of_cleaned,
    joined_block,
    replaced,
    text_block,
    texts_of,
    values_of,
)
from contam.tables.chat import (
    CONTENT_KEYS,
    EXTRA_KEYS,
    ROLE_KEYS,
    TURN_SEPARATOR,
    Turn,
    at_path,
    clean,
    json_or_none,
    named,
    text_at,
    turns_of,
)
from contam.tables.columns import ColumnRef, is_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from contam.tables.columns import TextColumns

Rows = TypeVar("Rows", pa.Array, pa.RecordBatch)


def taken(values: Rows, rows: NDArray[np.int64]) -> Rows:
    """The rows with these numbers, ascending and distinct."""
    chosen = np.zeros(len(values), np.bool_)
    chosen[rows] = True
    return kept(values, chosen)


def kept(values: Rows, chosen: NDArray[np.bool_]) -> Rows:
    """The rows that are chosen; bool, one a row."""
    if chosen.all():
        return values
    try:
        return values.filter(pa.array(chosen))
    except pa.ArrowNotImplementedError:
        # Views of text, for one, can be sliced and joined only.
        return _sliced(values, chosen)


def _sliced(values: Rows, chosen: NDArray[np.bool_]) -> Rows:
    runs = np.flatnonzero(np.diff(chosen, prepend=False, append=False)).reshape(-1, 2).tolist()
    slices = [values.slice(begin, end - begin) for begin, end in runs]
    if not slices:
        return values.slice(0, 0)
    return (
        pa.concat_batches(slices)
        if isinstance(values, pa.RecordBatch)
        else pa.concat_arrays(slices)
    )


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
    if ref.kind == "group":
        return _group_block(batch, ref)
    array = pick(batch, ref.column)
    if ref.kind == "json":
        return _json_block(array, ref.inside)
    if ref.kind in ("chat", "list") and not pt.is_null(array.type):
        return joined_block(array)
    return text_block(array)


def as_ids(values: NDArray[np.integer[Any]]) -> NDArray[np.uint32]:
    """Whole numbers as ids; of one that is negative or too large, the highest, which is none."""
    if values.dtype.itemsize > np.dtype(np.uint32).itemsize:
        values = np.where((values >= 0) & (values < 1 << 32), values, (1 << 32) - 1)
    same = values.dtype == np.int32
    return values.view(np.uint32) if same else values.astype(np.uint32, copy=False)


def ids_of(
    batch: pa.RecordBatch, ref: ColumnRef
) -> tuple[NDArray[np.uint32], NDArray[np.int64], int]:
    """The token ids of all rows, where each row begins among them and the end, and rows without.

    Raises ValueError for a null among ids.
    """
    array = pick(batch, ref.column)
    lengths = pc.fill_null(pc.list_value_length(array), 0).cast(pa.int64())
    values = array.flatten()
    if values.null_count:
        raise ValueError(f"{values.null_count} values in {ref.dotted} are null")
    offsets = np.concatenate([[0], np.cumsum(lengths.to_numpy(zero_copy_only=False))])
    ids = as_ids(values.to_numpy(zero_copy_only=False))
    return ids, offsets.astype(np.int64), array.null_count


def null_rows(batch: pa.RecordBatch, ref: ColumnRef) -> NDArray[np.bool_]:
    """Tell, row by row (bool[n]), whether `ref` has no value at all."""
    missing = np.ones(batch.num_rows, np.bool_)
    for part in ref.single:
        array = pick(batch, part.column)
        if part.kind == "json":
            texts = texts_of(text_block(array))
            missing &= [text_at(text, part.inside) is None for text in texts]
        else:
            missing &= np.asarray(array.is_null())
    return missing


def turns_at(batch: pa.RecordBatch, ref: ColumnRef, row: int) -> list[Turn]:
    """Return the turns of one document of a chat, list or group column.

    Joined they are the text that `as_text_block` gives.
    """
    if ref.kind != "group":
        (value,) = values_of(pick(batch, ref.column).slice(row, 1))
        turns = turns_of(value) if isinstance(value, list) else []
        return [Turn(turn.role, clean(turn.text)[0].decode()) for turn in turns]
    found: list[Turn] = []
    one_row = batch.slice(row, 1)
    for part in ref.parts:
        text = texts_of(as_text_block(one_row, part))[0]
        if text and part.kind in ("chat", "list"):
            found += [named(turn, part.dotted) for turn in turns_at(one_row, part, 0)]
        elif text:
            found.append(Turn(part.dotted, text))
    return found


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
            yield rows[low:high].tolist(), taken(batch, rows[low:high] - begin)
        if high == len(rows):
            return
        begin = end


def _json_block(array: pa.Array, path: Sequence[str]) -> TextBlock:
    return block_of_cleaned(text_at(record, path) for record in texts_of(text_block(array)))


def _group_block(batch: pa.RecordBatch, ref: ColumnRef) -> TextBlock:
    blocks = [as_text_block(batch, part) for part in ref.parts]
    pieces: list[pa.Array] = []
    begun = np.zeros(batch.num_rows, np.bool_)
    for block in blocks:
        present = np.diff(block.offsets) > 0
        # Separators are columns of their own: parts without a text get none.
        separators = pc.if_else(pa.array(begun & present), TURN_SEPARATOR, "")
        pieces += (separators.cast(pa.large_string()), _strings(block))
        begun |= present
    whole = pc.binary_join_element_wise(*pieces, pa.scalar("", pa.large_string()))
    return text_block(whole)._replace(
        n_null=int(null_rows(batch, ref).sum()),
        n_undecodable=min(batch.num_rows, sum(block.n_undecodable for block in blocks)),
        undecodable_bytes=sum(block.undecodable_bytes for block in blocks),
    )


def _strings(block: TextBlock) -> pa.Array:
    buffers = [None, pa.py_buffer(block.offsets), pa.py_buffer(block.data)]
    return pa.Array.from_buffers(pa.large_string(), len(block.offsets) - 1, buffers)


def wanted_leaves(leaves: Sequence[str], ref: ColumnRef) -> tuple[str, ...]:
    """Choose, among a Parquet file's leaf columns, those that the text of `ref` needs."""
    if ref.kind == "group":
        return tuple(
            dict.fromkeys(leaf for part in ref.parts for leaf in wanted_leaves(leaves, part))
        )
    column = ".".join(ref.column)
    below = [leaf for leaf in leaves if leaf.startswith(column + ".")]
    roles = [leaf for leaf in below if leaf.rpartition(".")[2] in ROLE_KEYS]
    if ref.kind != "chat" or not roles:
        return (column,)
    # Writers name the levels of a list differently; the role sits where the content sits.
    turn = min(roles, key=len).rpartition(".")[0]
    prefixes = tuple(f"{turn}.{key}." for key in (*CONTENT_KEYS, *EXTRA_KEYS))
    return tuple(leaf for leaf in below if f"{leaf}.".startswith(prefixes)) or (column,)


if TYPE_CHECKING:
    Others = Callable[[NDArray[np.int64]], pa.RecordBatch]


def filled_block(batch: pa.RecordBatch, sources: TextColumns, others: Others) -> TextBlock:
    """Return the documents of a batch: of the first column, or of the first other that has one.

    others  gives, for rows of the batch (int64[k], ascending), a batch of those rows with the
            other columns
    """
    block = as_text_block(batch, sources.first)
    blank = blank_rows(block) if sources.others else np.empty(0, np.int64)
    if not len(blank):
        return block
    texts, moved, (n_bad, n_bytes) = _found(others(blank), sources, blank)
    if sources.named:
        return block._replace(n_elsewhere=len(texts))
    if not texts:
        return block
    nulls = null_rows(batch, sources.first)
    return replaced(block, texts)._replace(
        n_null=block.n_null - int(nulls[sorted(texts)].sum()),
        n_undecodable=block.n_undecodable + n_bad,
        undecodable_bytes=block.undecodable_bytes + n_bytes,
        moved=tuple(sorted(moved.items())),
    )


def _found(
    batch: pa.RecordBatch, sources: TextColumns, rows: NDArray[np.int64]
) -> tuple[dict[int, bytes], Counter[str], tuple[int, int]]:
    """Return the texts by row, how many each column gave, and what was undecodable in them."""
    texts: dict[int, bytes] = {}
    moved: Counter[str] = Counter()
    n_bad = n_bytes = 0
    left = np.arange(len(rows))
    for ref in sources.others:
        if not len(left):
            break
        block = as_text_block(taken(batch, left), ref)
        blank = blank_rows(block)
        have = np.setdiff1d(np.arange(len(left)), blank)
        for i in have.tolist():
            begin, end = block.offsets[i : i + 2]
            texts[int(rows[left[i]])] = block.data[begin:end].tobytes()
        if len(have):
            moved[ref.dotted] = len(have)
        n_bad += block.n_undecodable
        n_bytes += block.undecodable_bytes
        left = left[blank]
    return texts, moved, (n_bad, n_bytes)


class RowReader:
    """Rows of consecutive batches, asked for in ascending order, each batch read once.

    batches  gives (first row, batch), at least up to the one that holds the row it is given
    """

    def __init__(self, batches: Callable[[int], Iterator[tuple[int, pa.RecordBatch]]]) -> None:
        self._open = batches
        self._stream: Iterator[tuple[int, pa.RecordBatch]] | None = None
        self._last: tuple[int, pa.RecordBatch] | None = None

    def take(self, first_row: int, offsets: NDArray[np.int64]) -> pa.RecordBatch:
        """Return the rows at `first_row + offsets` as one batch.

        Raises ValueError when one is not there.
        """
        rows = offsets + first_row
        found: list[pa.RecordBatch] = []
        n_found = 0
        while n_found < len(rows):
            row = int(rows[n_found])
            if self._last is None or row >= self._last[0] + self._last[1].num_rows:
                self._last = self._next(row)
                continue
            begin, batch = self._last
            if row < begin:
                raise ValueError(f"row {row} is missing in some columns")
            for _, part in take_rows([batch], begin, rows[n_found:].tolist()):
                found.append(part)
                n_found += part.num_rows
        return pa.Table.from_batches(found).combine_chunks().to_batches()[0]

    def _next(self, row: int) -> tuple[int, pa.RecordBatch]:
        entry = next(self._stream, None) if self._stream else None
        if entry is None:
            self._stream = self._open(row)
            entry = next(self._stream, None)
        if entry is None:
            raise ValueError(f"row {row} is missing in some columns")
        return entry
