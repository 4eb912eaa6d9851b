"""Read documents of token ids as text, whichever format they are kept in.

Where documents end inside rows, a row is read on into the next ones, to the end of the document
that its end cuts, or for `RUN_ON` tokens; the next row may be the first of the next shard.
"""

from __future__ import annotations

from collections import deque
from itertools import chain
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

import numpy as np

from contam.corpus.formats.base import Document, TokenPlaces
from contam.errors import InternalError, Public, ShardError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from contam.corpus.formats.base import Chunk
    from contam.tables.blocks import TextBlock
    from contam.tables.columns import ColumnRef, TokenIds
    from contam.text.token_ids import IdDecoder

    Ids = NDArray[np.uint32]

RUN_ON: Final = 512
"""Tokens that are read behind a row whose end cuts a document."""

#: Rows that are read with each one that may be read on into them.
_AHEAD: Final = 8


class IdRows(NamedTuple):
    """Consecutive rows: row i has the tokens ids[offsets[i] : offsets[i + 1]].

    ids  uint32[t];  offsets  int64[n + 1];  n_null  rows without a list of ids
    """

    ids: Ids
    offsets: NDArray[np.int64]
    n_null: int = 0


class TokenFormat(Protocol):
    """A format that can give token ids. All raise ShardError as the methods of a format do."""

    def id_rows(self, path: str, ref: ColumnRef, chunk: Chunk) -> Iterator[IdRows]:
        """Yield the rows of a chunk in order, some at a time."""

    def ids_at(
        self, path: str, ref: ColumnRef, rows: Sequence[int]
    ) -> Iterator[tuple[int, int | None, Ids]]:
        """Yield (row, its first token's place in the file if that is known, its ids)."""

    def ids_behind(self, path: str, ref: ColumnRef, chunk: Chunk | None) -> Iterator[Ids]:
        """Yield the ids behind a chunk, in order, as the file has them; None: of all the file."""

    def first_row(self, path: str, chunk: Chunk, ref: ColumnRef) -> int:
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


def token_blocks(kind: TokenFormat, path: str, ref: ColumnRef, chunk: Chunk) -> Iterator[TextBlock]:
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
        n_rows = len(rows.offsets) - 1
        if packed:
            rest = chain(kind.ids_behind(path, ref, chunk), _following(kind, ref))
            rows = run_on(rows, _first(chain([some.ids for some in waiting], rest)), decoder)
        yield _block(path, row, rows, decoder)
        row += n_rows


def token_documents(
    kind: TokenFormat, path: str, ref: ColumnRef, wanted: Sequence[int]
) -> Iterator[tuple[int, Document]]:
    """Yield (row, document) for some rows (ascending, distinct): the texts of `token_blocks`."""
    decoder, packed = decoder_of(ref), tokens_of(ref).packed
    ahead = range(_AHEAD + 1 if packed else 1)
    asked = set(wanted)
    found: dict[int, tuple[int | None, Ids]] = {}
    heads: dict[int, Ids] = {}
    # In one pass: some formats read a file from its beginning.
    for row, place, ids in kind.ids_at(
        path, ref, sorted({row + n for row in asked for n in ahead})
    ):
        heads[row] = ids[:RUN_ON].copy()
        if row in asked:
            found[row] = place, ids
    for row, (place, ids) in found.items():
        rows = IdRows(ids, np.array([0, len(ids)], np.int64))
        if packed:
            behind = chain(_from(kind, path, ref, row + 1, heads), _following(kind, ref))
            rows = run_on(rows, _first(behind), decoder)
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


def _first(pieces: Iterable[Ids]) -> Ids:
    """The first `RUN_ON` tokens, or all."""
    held, n = [np.empty(0, np.uint32)], 0
    for ids in pieces:
        held.append(ids[: RUN_ON - n])
        n += len(held[-1])
        if n == RUN_ON:
            break
    return np.concatenate(held)


def _from(
    kind: TokenFormat, path: str, ref: ColumnRef, row: int, heads: Mapping[int, Ids]
) -> Iterator[Ids]:
    """The ids from a row on; heads  the first ones of rows that were read already."""
    while row in heads:
        yield heads[row]
        row += 1
    while found := [ids for _, _, ids in kind.ids_at(path, ref, range(row, row + _AHEAD))]:
        yield from found
        row += len(found)


def _following(kind: TokenFormat, ref: ColumnRef) -> Iterator[Ids]:
    """The ids of the next shard."""
    following = tokens_of(ref).following
    return kind.ids_behind(following, ref, None) if following else iter(())


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
