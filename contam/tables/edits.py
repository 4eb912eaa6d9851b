"""Drop rows, cut or mask stretches of the texts they hold, and compare what was written of them."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from contam.errors import ShardError
from contam.tables.blocks import texts_of, values_of
from contam.tables.chat import CONTENT_KEYS, clean, turns_of
from contam.tables.columns import TextColumns, is_list, is_text, with_leaves
from contam.tables.fields import as_text_block, filled_block, kept, pick, taken

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from contam.tables.columns import ColumnRef


_row_of: Final = attrgetter("row")

#: A stretch of a document: code points [start, end) of the text as contam reads it.
Span = tuple[int, int]


class Edit(NamedTuple):
    """What happens to one row of a shard.

    row    counted from 0
    drop   the whole row goes; `spans` then say why, and nothing is done with them
    spans  stretches of the document's text to cut or mask: sorted, disjoint and not empty. The text
           of a conversation, a list or a group of columns is the joined one that a scan reads.
    """

    row: int
    drop: bool
    spans: tuple[Span, ...] = ()


@dataclass(frozen=True, slots=True)
class Rewrite:
    """What is done to a shard when it is written again; all other values are as they were.

    edits        rows ascending, one edit a row
    sources      the columns that the scan read the text from
    replacement  written in place of every span; None cuts the span away
    """

    edits: Sequence[Edit]
    sources: TextColumns
    replacement: str | None = None

    @property
    def texts(self) -> set[str]:
        """The names of the columns that the text is read from."""
        return {part.path[0] for ref in self.sources.every for part in ref.single}

    def of_rows(self, begin: int, end: int) -> Rewrite:
        """What is done to the rows [begin, end), counted from the first of them."""
        first, last = (bisect_left(self.edits, row, key=_row_of) for row in (begin, end))
        here = [edit._replace(row=edit.row - begin) for edit in self.edits[first:last]]
        return replace(self, edits=here)

    def refuse_beyond(self, n_rows: int) -> None:
        """Raise ValueError for an edit of a row that a shard of so many does not have."""
        if self.edits and self.edits[-1].row >= n_rows:
            raise ValueError(f"it has no row {self.edits[-1].row}")


@dataclass(frozen=True, slots=True)
class Rewritten:
    """What a writer did.

    rows_before, rows_after  rows of the shard, and of what was written
    not_kept                 what the new file does not have of the old one, one noun phrase each,
                             sorted: "the exact compression level"
    """

    rows_before: int
    rows_after: int
    not_kept: tuple[str, ...] = ()


def edited(text: str, spans: Sequence[Span], replacement: str | None) -> str:
    """The text without its spans, or with the replacement in place of each.

    Raises ValueError when a span is empty, before the one ahead of it, or past the end.
    """
    pieces, at = [], 0
    for start, end in spans:
        if not at <= start < end <= len(text):
            raise ValueError(f"span {start}-{end} is outside a text of {len(text)} characters")
        pieces += [text[at:start], replacement or ""]
        at = end
    return "".join([*pieces, text[at:]])


def spread(spans: Sequence[Span], texts: Sequence[str]) -> Iterator[list[Span]]:
    """For each of some texts that line feeds join, what of the spans lies in it."""
    begin = 0
    for text in texts:
        end = begin + len(text)
        yield [
            (max(a, begin) - begin, min(b, end) - begin) for a, b in spans if a < end > begin < b
        ]
        begin = end + 1


class NewText(NamedTuple):
    """What becomes of one text of a value; path  to it: places in lists and names of fields."""

    path: tuple[str | int, ...]
    text: str


def edited_value(
    value: object, text: str, spans: Sequence[Span], replacement: str | None
) -> list[NewText]:
    """What becomes of the texts in a value: a text, or the turns of a conversation.

    text  as the value is read. Raises ValueError where a span lies neither in a text nor in the
    content of a message.
    """
    new = edited(text, spans, replacement)
    if isinstance(value, str):
        return [NewText((), new)]
    if not isinstance(value, list):
        raise ValueError("it stands inside another value")  # noqa: TRY004 - told of a shard
    turns = [_readable(turn.text) for turn in turns_of(value)]
    if "\n".join(turns) != text:
        raise ValueError("its turns are not joined as they were read")
    found = []
    for number, inside in enumerate(spread(spans, turns)):
        if not inside:
            continue
        content, path = value[number], list[int | str]((number,))
        if isinstance(content, Mapping):
            path.append(next((one for one in CONTENT_KEYS if content.get(one)), ""))
            content = content.get(path[-1])
        content = _readable(content) if isinstance(content, str) else ""
        if inside[-1][1] > len(content):
            raise ValueError("in a message it stands in something else than a text as its content")
        found.append(NewText(tuple(path), edited(content, inside, replacement)))
    return found


def _readable(text: str) -> str:
    return clean(text)[0].decode()


if TYPE_CHECKING:
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


def count_same(
    old: Iterable[pa.RecordBatch],
    new: Iterable[pa.RecordBatch],
    how: Rewrite,
    path: str,
) -> int:
    """How many rows are the same in all columns.

    old, new  batches of equal columns, cut in any way
    how       nothing is there of rows that were dropped; of others with an edit the text that a
              scan reads is the old one with its spans replaced, and all other columns are the same
    path      of the file that was written

    Raises ValueError where a row is missing, too many or another, ShardError where its text is.
    """
    stream = _Rows(new)
    n_same = begin = 0
    for batch in old:
        end = begin + batch.num_rows
        here = how.of_rows(begin, end).edits
        keep = np.ones(batch.num_rows, np.bool_)
        keep[[edit.row for edit in here if edit.drop]] = False
        left = kept(batch, keep)
        # Where the rows that stay are among those that are left.
        places = np.cumsum(keep) - 1
        edited = {int(places[edit.row]): edit for edit in here if not edit.drop}
        done = 0
        for piece in stream.take(left.num_rows):
            inside = {
                place - done: edit
                for place, edit in edited.items()
                if done <= place < done + piece.num_rows
            }
            _compare(left.slice(done, piece.num_rows), piece, inside, begin, how, path)
            done += piece.num_rows
        if done < left.num_rows:
            raise ValueError(f"rows behind row {begin} are missing")
        n_same += left.num_rows - len(edited)
        begin = end
    if stream.rest():
        raise ValueError("what was written has more rows")
    return n_same


class _Rows:
    """Batches as a stream of rows."""

    def __init__(self, batches: Iterable[pa.RecordBatch]) -> None:
        self._batches = iter(batches)
        self._held: pa.RecordBatch | None = None

    def take(self, n_rows: int) -> Iterator[pa.RecordBatch]:
        """The next rows, so many or as many as there are."""
        while n_rows:
            if self._held is None or not self._held.num_rows:
                self._held = next(self._batches, None)
                if self._held is None:
                    return
            piece = self._held.slice(0, n_rows)
            self._held = self._held.slice(piece.num_rows)
            n_rows -= piece.num_rows
            if piece.num_rows:
                yield piece

    def rest(self) -> int:
        """How many rows were not taken."""
        held = self._held.num_rows if self._held is not None else 0
        return int(held + sum(batch.num_rows for batch in self._batches))


def _compare(
    old: pa.RecordBatch,
    new: pa.RecordBatch,
    edits: Mapping[int, Edit],
    first_row: int,
    how: Rewrite,
    path: str,
) -> None:
    """Raise an error unless all columns are the same.

    edits  of rows of these batches: of them the columns of the text are not
    """
    if old.schema.names != new.schema.names:
        raise ValueError("what was written has other columns")
    same = np.ones(old.num_rows, np.bool_)
    same[list(edits)] = False
    for at, name in enumerate(old.schema.names):
        mine, theirs = old.column(at), new.column(at)
        if name in how.texts and edits:
            mine, theirs = kept(mine, same), kept(theirs, same)
        if not _are_same(mine, theirs):
            raise ValueError(f"a row from row {first_row} on is another in column {name}")
    if not edits:
        return
    places = sorted(edits)
    # The texts as a scan reads them.
    sources = TextColumns(how.sources.every[0], how.sources.every[1:])
    before, after = (
        texts_of(filled_block(rows, sources, partial(taken, rows)))
        for rows in (taken(batch, np.array(places)) for batch in (old, new))
    )
    for place, one, other in zip(places, before, after, strict=True):
        edit = edits[place]
        check_text(one, other, edit, first_row + edit.row, how.replacement, path)


def check_text(
    before: str, after: str, edit: Edit, row: int, replacement: str | None, path: str
) -> None:
    """Raise ShardError unless a text is the one before with the spans of its edit replaced."""
    # Bytes that are no UTF-8 may become other characters when what parts them is cut.
    wanted = edited(before, edit.spans, replacement)
    # Of several columns or turns one that has lost all its text may not be joined any more.
    if _with_text(wanted) != _with_text(after) and "\ufffd" not in before:
        raise ShardError(
            "{shard}: the text of row {} was not written as it should be", row, shard=path,
            hint="drop the document as a whole, or leave the file out",
        )  # fmt: skip


def _with_text(text: str) -> list[str]:
    return [line for line in text.split("\n") if line.strip()]


def _are_same(mine: pa.Array, theirs: pa.Array) -> bool:
    if mine.type != theirs.type:
        return False
    if pt.is_dictionary(mine.type):
        # Dictionaries may differ in what no row has.
        mine, theirs = mine.dictionary_decode(), theirs.dictionary_decode()
    if pt.is_floating(mine.type):
        # What is no number is not equal to itself: bits are compared.
        bits = pa.binary(mine.type.bit_width // 8)
        mine, theirs = mine.view(bits), theirs.view(bits)
    return bool(mine.equals(theirs)) or repr(mine.to_pylist()) == repr(theirs.to_pylist())
