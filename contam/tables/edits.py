"""Say what is taken out of a shard, and take it out of texts and of the turns of a conversation."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import TYPE_CHECKING, Final, NamedTuple

from contam.tables.chat import turns_of
from contam.tables.columns import CONTENT_KEYS
from contam.tables.json_text import clean

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from contam.tables.columns import TextColumns

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
