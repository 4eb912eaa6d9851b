"""Say what is taken out of a shard, and what a format's writer did about it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from contam.tables.columns import TextColumns

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
class Rewritten:
    """What a writer did.

    rows_before, rows_after  rows of the shard, and of what was written
    not_kept                 what the new file does not have of the old one, one sentence each,
                             sorted: "the compression level"
    """

    rows_before: int
    rows_after: int
    not_kept: tuple[str, ...] = ()


class Rewriter(Protocol):
    """Writes a shard of one format again, with edits.

    source       the shard as it was listed (`ListedPath`), opened through `contam.files.listed`
    target       a file that does not exist, on this machine
    edits        rows ascending, one edit a row
    sources      the columns that the scan read the text from
    replacement  written in place of every span; None cuts the span away

    All else is copied as it is. Raises ShardError when the shard changed or cannot be read, when a
    row is not there, or when a span is not in the text or cannot be taken out of the column that
    holds it (a replaced byte that is no UTF-8, say): nothing is left out silently. The target may
    then be there in part; the caller removes it.
    """

    def __call__(  # noqa: D102 - told above
        self,
        source: str,
        target: Path,
        edits: Sequence[Edit],
        sources: TextColumns,
        *,
        replacement: str | None,
    ) -> Rewritten: ...


def edited(text: str, spans: Sequence[Span], replacement: str | None) -> str:
    """The text without its spans, or with the replacement in place of each.

    Raises ValueError when a span is empty, before the one ahead of it, or past the end.
    """
    pieces, at = [], 0
    for start, end in spans:
        if not at <= start < end <= len(text):
            raise ValueError(f"no code points {start} to {end} in a text of {len(text)}")
        pieces += [text[at:start], replacement or ""]
        at = end
    return "".join([*pieces, text[at:]])
