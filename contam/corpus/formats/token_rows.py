"""Read documents of token ids as text, whichever format they are kept in.

Where documents end inside rows, a row is read on into the next ones, to the end of the document
that its end cuts, or for `RUN_ON` tokens; the next row may be the first of the next shard.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

import numpy as np

from contam.corpus.formats.base import Document, TokenPlaces
from contam.errors import InternalError, Public, ShardError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from contam.corpus.formats.base import FileChunk
    from contam.tables.blocks import TextBlock
    from contam.tables.columns import ColumnRef, TokenIds
    from contam.text.token_ids import IdDecoder

    Ids = NDArray[np.uint32]

RUN_ON: Final = 512
"""Tokens that are read behind a row whose end cuts a document."""

#: Rows that are asked for at once, to be read on into.
_ROWS: Final = 8


class IdRows(NamedTuple):
    """Consecutive rows: row i has the tokens ids[offsets[i] : offsets[i + 1]].

    ids  uint32[t];  offsets  int64[n + 1];  n_null  rows without a list of ids
    """

    ids: Ids
    offsets: NDArray[np.int64]
    n_null: int = 0


class TokenFormat(Protocol):
    """A format that can give token ids. All raise ShardError as the methods of a format do."""

    def id_rows(self, path: str, ref: ColumnRef, chunk: FileChunk) -> Iterator[IdRows]:
        """Yield the rows of a chunk in order, some at a time."""

    def ids_at(
        self, path: str, ref: ColumnRef, rows: Sequence[int]
    ) -> Iterator[tuple[int, int | None, Ids]]:
        """Yield (row, its first token's place in the file if that is known, its ids)."""

    def ids_from(self, path: str, ref: ColumnRef, row: int) -> Iterator[Ids]:
        """Yield the ids from a row on, in order, as the file has them."""

    def first_row(self, path: str, chunk: FileChunk, ref: ColumnRef) -> int:
        """The first row of a chunk."""


def decoder_of(ref: ColumnRef) -> IdDecoder:
    """What turns the ids of a column into text. Raises ConfigError."""
    from contam.text.token_ids import load_decoder

    how = tokens_of(ref)
    return load_decoder(how.tokenizer, how.sha256, how.special)


def tokens_of(ref: ColumnRef) -> TokenIds:
    """How the ids of a column are read."""
    if ref.tokens is None:
        raise InternalError(f"{ref.dotted}: nothing says how its ids are read")
    return ref.tokens


def token_blocks(
    kind: TokenFormat, path: str, ref: ColumnRef, chunk: FileChunk
) -> Iterator[TextBlock]:
    """The documents of a chunk. Raises ShardError also for an id that the tokenizer lacks."""
    decoder, packed = decoder_of(ref), tokens_of(ref).packed
    row = chunk.first_row if chunk.first_row is not None else kind.first_row(path, chunk, ref)
    stream = kind.id_rows(path, ref, chunk)
    waiting: deque[IdRows] = deque()
    is_open = True
    while waiting or is_open:
        while is_open and (not waiting or (packed and _n_behind(waiting) < RUN_ON)):
            found = next(stream, None)
            is_open = found is not None
            if found is not None:
                waiting.append(found)
        if not waiting:
            return
        rows = waiting.popleft()
        next_row = row + len(rows.offsets) - 1
        if packed:
            behind = [some.ids for some in waiting]
            if sum(map(len, behind)) < RUN_ON:
                n_waiting = sum(len(some.offsets) - 1 for some in waiting)
                behind += _following(kind, path, ref, next_row + n_waiting)
            rows = run_on(rows, np.concatenate([rows.ids[:0], *behind])[:RUN_ON], decoder)
        yield _block(path, row, rows, decoder)
        row = next_row


def token_documents(
    kind: TokenFormat, path: str, ref: ColumnRef, wanted: Sequence[int]
) -> Iterator[tuple[int, Document]]:
    """Yield (row, document) for some rows (ascending, distinct): the texts of `token_blocks`."""
    decoder, packed = decoder_of(ref), tokens_of(ref).packed
    for row, place, ids in kind.ids_at(path, ref, wanted):
        rows = IdRows(ids, np.array([0, len(ids)], np.int64))
        if packed:
            behind = np.concatenate([ids[:0], *_following(kind, path, ref, row + 1)])[:RUN_ON]
            rows = run_on(rows, behind, decoder)
        block = _block(path, row, rows, decoder)
        tokens = TokenPlaces(place or 0, len(rows.ids), decoder.places(rows.ids))
        yield row, Document(block.data.tobytes().decode(), tokens=tokens)


def run_on(rows: IdRows, behind: Ids, decoder: IdDecoder) -> IdRows:
    """The rows, each read on to the end of the document that its end cuts, or for `RUN_ON`.

    behind  the tokens after the last row
    """
    begins, stops = rows.offsets[:-1], rows.offsets[1:]
    # Behind a row that an end token closes, or that is empty, nothing belongs to it.
    cuts = stops > begins
    cuts[cuts] = ~decoder.ends_in(rows.ids[stops[cuts] - 1])
    if not cuts.any():
        return rows
    ids = np.concatenate([rows.ids, behind])
    ends = np.append(np.flatnonzero(decoder.ends_in(ids)), len(ids))
    reach = np.minimum(stops + RUN_ON, ends[np.searchsorted(ends, stops)])
    reach = np.where(cuts, reach, stops)
    if not cuts[:-1].any():
        return IdRows(ids[: reach[-1]], np.append(rows.offsets[:-1], reach[-1]), rows.n_null)
    pieces = [ids[a:b] for a, b in zip(begins.tolist(), reach.tolist(), strict=True)]
    offsets = np.concatenate([[0], np.cumsum(reach - begins)]).astype(np.int64)
    return IdRows(np.concatenate(pieces), offsets, rows.n_null)


def are_cut(sizes: NDArray[np.int64]) -> bool:
    """Whether rows of these sizes were cut to one length, but for shorter ones."""
    return len(sizes) > 1 and int(np.partition(sizes, -2)[-2]) == int(sizes.max()) > 0


def _n_behind(waiting: deque[IdRows]) -> int:
    return sum(len(rows.ids) for rows in waiting) - len(waiting[0].ids)


def _following(kind: TokenFormat, path: str, ref: ColumnRef, row: int) -> list[Ids]:
    """Tokens from a row on, and from the next shard, at least `RUN_ON` if there are so many."""
    found: list[Ids] = []
    n = 0
    for place, first in ((path, row), (tokens_of(ref).following, 0)):
        for ids in kind.ids_from(place, ref, first) if place else ():
            found.append(ids)
            n += len(ids)
            if n >= RUN_ON:
                return found
    return found


def _block(path: str, row: int, rows: IdRows, decoder: IdDecoder) -> TextBlock:
    from contam.text.token_ids import UnknownIdError

    try:
        block = decoder.decode(rows.ids, rows.offsets)
    except UnknownIdError as error:
        at = int(np.searchsorted(rows.offsets, error.place, side="right")) - 1
        raise ShardError(
            "{shard}, row {}, token {}: {} is not in the tokenizer's vocabulary of {:,}",
            row + at, error.place - int(rows.offsets[at]), Public(str(error)), decoder.n_ids,
            shard=path,
            hint="name the tokenizer of this corpus with --tokenizer, or an id that was added to"
            " it with --special",
        ) from error  # fmt: skip
    return block._replace(n_null=rows.n_null)


def in_rows(kind: TokenFormat, path: str, ref: ColumnRef, row: int) -> Iterator[Ids]:
    """`ids_from` of a format whose rows are asked for by number."""
    while True:
        found = list(kind.ids_at(path, ref, range(row, row + _ROWS)))
        yield from (ids for _, _, ids in found)
        if len(found) < _ROWS:
            return
        row += _ROWS
