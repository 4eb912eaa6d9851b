"""Define a corpus format, one object for its files, and read documents of token ids in any of them.

Where documents of token ids end inside rows, a row is read on into the next ones, to the end of the
document that its end cuts, or for `RUN_ON` tokens; the next row may be the first of the next shard.
"""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from bisect import bisect_left, bisect_right
from collections import deque
from dataclasses import dataclass
from itertools import accumulate, chain, islice
from typing import TYPE_CHECKING, BinaryIO, ClassVar, Final, NamedTuple

import numpy as np

from contam.errors import InternalError, Public, ShardError
from contam.files.listed import opened
from contam.tables.chat import Turn, turn_at

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path, PurePath

    from numpy.typing import NDArray

    from contam.corpus.streams import ByteSpan
    from contam.tables.blocks import TextBlock
    from contam.tables.columns import ColumnRef, TextColumns, TokenIds
    from contam.tables.edits import Rewrite, Rewritten
    from contam.tables.parquet import RowGroup
    from contam.text.token_ids import IdDecoder

    Ids = NDArray[np.uint32]

RUN_ON: Final = 512
"""Tokens that are read behind a row whose end cuts a document."""

#: Rows of token ids that are tried, from some places of a file.
_SAMPLED: Final = 24
_HEAD_BYTES = 64 << 10


@dataclass(frozen=True, slots=True)
class Chunk:
    """Consecutive rows of one shard, for one thread to read.

    shard       index into the list of shards; a format knows one file, and says 0
    row_groups  Parquet row groups or Arrow record batches, or None for a whole file or a span
    first_row   row of the file the chunk starts at, None when it is not known before reading
    n_rows      rows, None when not known before reading
    n_bytes     estimate for progress: bytes of the text column uncompressed, else of the file
    span        the bytes of a file in which the chunk's lines begin, None for other chunks
    """

    shard: int
    row_groups: tuple[int, ...] | None
    first_row: int | None
    n_rows: int | None
    n_bytes: int
    span: ByteSpan | None = None


class TokenPlaces(NamedTuple):
    """Where the tokens of a document stand.

    first   place of its first token in the shard, 0 where the format counts by row
    n       how many there are
    start   gives the code point of the text at which one of them begins, counted from 0
    """

    first: int
    n: int
    start: Callable[[int], int]

    def at(self, char: int) -> int:
        """The place of the token that holds a code point."""
        return self.first + max(0, bisect_right(range(self.n + 1), char, key=self.start) - 1)


@dataclass(frozen=True, slots=True)
class Document:
    """A document as it was searched.

    column  the column it was read from when the shard's first one held no text; else ""
    turns   what the text is joined from, in order; None for plain text
    tokens  where it stands in a corpus of token ids; None in others
    """

    text: str
    column: str = ""
    turns: tuple[Turn, ...] | None = None
    tokens: TokenPlaces | None = None

    def turn_at(self, char: int) -> str | None:
        """Name the turn that holds code point `char`: "3:assistant", counted from 0.

        None when the document is no conversation or the position is past its end.
        """
        return turn_at(self.turns, char) if self.turns is not None else None


class IdRows(NamedTuple):
    """Consecutive rows: row i has the tokens ids[offsets[i] : offsets[i + 1]].

    ids  uint32[t];  offsets  int64[n + 1];  n_null  rows without a list of ids
    first  place of the first token in the file, where the format has tokens one behind the other
    """

    ids: Ids
    offsets: NDArray[np.int64]
    n_null: int = 0
    first: int | None = None

    def each(self) -> list[Ids]:
        """The tokens of each row."""
        return np.split(self.ids, self.offsets[1:-1])


class CorpusFormat(ABC):
    """A file format that corpora have. Paths that methods get may carry the listed state.

    Every method that reads a file raises ShardError, naming the path, when it cannot be read to its
    end or is not as it was listed.

    name       as `run.json` and manifests write it; never changed once released
    title      as people write it, for messages
    suffixes   of file names, in lower case
    magic      first bytes that only this format has
    packable   whether a whole file may be compressed: `.gz`, `.zst`, `.bz2`, `.xz`
    open_keys  whether a record may have columns that the first records lack
    """

    name: ClassVar[str]
    title: ClassVar[str]
    suffixes: ClassVar[tuple[str, ...]]
    magic: ClassVar[tuple[bytes, ...]] = ()
    packable: ClassVar[bool] = False
    open_keys: ClassVar[bool] = False

    def guess(self, head: bytes) -> bool:
        """Whether a file without a known suffix, named by the user, may be this format."""
        return False

    def is_sure(self, path: PurePath) -> bool:
        """Whether more than its name says that a file in a folder is of this format."""
        return True

    def widths(self, path: str) -> tuple[int, ...]:
        """Bytes that a token id in a file may have; only 0 where the format says."""
        return (0,)

    def is_cut(self, path: str) -> bool | None:
        """Whether rows of token ids may end inside documents; None where `sample` must tell."""
        return None

    def beside(self, path: str) -> tuple[str, ...]:
        """Digests of files beside one that say what is in it."""
        return ()

    def sample(self, path: str, ref: ColumnRef) -> list[Ids]:
        """Token ids of some rows: of the first ones, and where there are groups of later ones."""
        groups = self.row_groups(path, ref) or ()
        firsts = [0, *accumulate(group.n_rows for group in groups)]
        found: dict[int, Ids] = {}
        chosen = {0, len(groups) // 2, max(0, len(groups) - 1)}
        for group in sorted(chosen):
            # One by one: a store is asked for all of a chunk at once.
            chunks = [
                Chunk(0, (number,) if groups else None, firsts[number], None, 0)
                for number in range(group, max(1, len(groups)))
            ]
            every = (rows for chunk in chunks for rows in self.id_rows(path, ref, chunk))
            some = islice((ids for rows in every for ids in rows.each()), _SAMPLED // len(chosen))
            found |= enumerate(some, firsts[group])
        return list(found.values())

    def id_rows(
        self, path: str, ref: ColumnRef, chunk: Chunk, wanted: Sequence[int] | None = None
    ) -> Iterator[IdRows]:
        """Yield the token ids of a chunk's rows in order, some rows at a time.

        wanted  the rows that are asked for, ascending; others may come empty, unless they are among
                the next `RUN_ON` tokens behind one of these
        """
        return iter(())

    def ids_behind(self, path: str, ref: ColumnRef, chunk: Chunk | None) -> Iterator[Ids]:
        """Yield the token ids behind a chunk, as the file has them; None: of all the file."""
        return iter(())

    def no_shard(self, path: PurePath) -> str:
        """Why a file in a folder is no shard although its suffix fits; "" when it is one."""
        return ""

    def tail_bytes(self, file: BinaryIO, size: int) -> int:
        """How many bytes at a file's end its digest must cover; 0 for no more than usual."""
        return 0

    @abstractmethod
    def columns(self, path: str) -> tuple[ColumnRef, ...]:
        """List the columns of a file; none for a file without records and columns."""

    def chunks(self, path: str, text: ColumnRef, size_bytes: int, chunk_bytes: int) -> list[Chunk]:
        """Cut a file into chunks of about `chunk_bytes` of text, in row order."""
        groups = self.row_groups(path, text)
        if groups is None:
            return [Chunk(0, None, 0, None, size_bytes)]
        chunks: list[Chunk] = []
        chosen: list[int] = []
        first_row = n_rows = n_bytes = 0
        for index, group in enumerate(groups):
            if chosen and n_bytes + group.n_bytes > chunk_bytes:
                chunks.append(Chunk(0, tuple(chosen), first_row, n_rows, n_bytes))
                first_row += n_rows
                chosen, n_rows, n_bytes = [], 0, 0
            chosen.append(index)
            n_rows += group.n_rows
            n_bytes += group.n_bytes
        if chosen and n_rows:
            chunks.append(Chunk(0, tuple(chosen), first_row, n_rows, n_bytes))
        return chunks

    def first_row(self, path: str, chunk: Chunk, text: ColumnRef) -> int:
        """Count the rows before a chunk that does not give its first row."""
        return 0

    def row_groups(self, path: str, text: ColumnRef) -> Sequence[RowGroup] | None:
        """The parts of a file that can be read by themselves; None: only from its beginning."""
        return None

    def blocks(
        self, path: str, sources: TextColumns, chunk: Chunk, max_bytes: int
    ) -> Iterator[TextBlock]:
        """Yield the documents of a chunk, rows in order, about `max_bytes` of text at a time."""
        if sources.first.kind == "tokens":
            return token_blocks(self, path, sources.first, chunk)
        return self.text_blocks(path, sources, chunk, max_bytes)

    def text_blocks(
        self, path: str, sources: TextColumns, chunk: Chunk, max_bytes: int
    ) -> Iterator[TextBlock]:
        """Yield what `blocks` does, of columns of text."""
        raise InternalError(f"{path}: {self.title} have no text")

    def metadata(
        self, path: str, refs: tuple[ColumnRef, ...], chunk: Chunk
    ) -> Iterator[dict[ColumnRef, list[object]]]:
        """Yield the values of columns for all rows of a chunk, some thousands at a time."""
        return iter(())

    def values(
        self, path: str, refs: Sequence[ColumnRef], rows: Sequence[int]
    ) -> Iterator[tuple[int, dict[ColumnRef, object]]]:
        """Yield (row, values of columns) for some rows (ascending, distinct)."""
        return iter(())

    def documents(
        self, path: str, sources: TextColumns, rows: Sequence[int]
    ) -> Iterator[tuple[int, Document]]:
        """Yield (row, document) for some rows (ascending, distinct): the texts of `blocks`."""
        if sources.first.kind == "tokens":
            return token_documents(self, path, sources.first, rows)
        return self.text_documents(path, sources, rows)

    def text_documents(
        self, path: str, sources: TextColumns, rows: Sequence[int]
    ) -> Iterator[tuple[int, Document]]:
        """Yield what `documents` does, of columns of text."""
        raise InternalError(f"{path}: {self.title} have no text")

    def rewrite(self, path: str, target: Path, how: Rewrite) -> Rewritten:
        """Write a file again, to one on this machine that does not exist.

        Raises ShardError when the format is only read, when a row is not there, or when a span is
        not in the text or lies elsewhere than in a text column or the content of a message. The
        target may then be there in part; the caller removes it.
        """
        raise ShardError(
            "{shard}: {} cannot be written again", Public(self.title), shard=path,
            hint="--action list says what would go",
        )  # fmt: skip

    def count_same(self, path: str, new: str, how: Rewrite) -> int:
        """How many rows of a file are the same in what `rewrite` wrote of it.

        Of rows whose text was edited the text is the old one with its spans replaced, and all but
        the columns of the text is the same. Raises ShardError, naming the new file, where a row
        is missing, too many or another.
        """
        raise InternalError(f"{path}: {self.title} is not written")


def head_of(path: PurePath) -> bytes:
    """The first bytes of a file; none when it cannot be opened, which reading it will report."""
    try:
        with opened(str(path)) as file:
            return file.read(_HEAD_BYTES)
    except (OSError, ShardError):
        return b""


def is_whole(head: bytes) -> bool:
    """Whether `head_of` gave all bytes of the file."""
    return len(head) < _HEAD_BYTES


def decoder_of(ref: ColumnRef) -> IdDecoder:
    """What turns the ids of a column into text. Raises ConfigError."""
    from contam.text.token_ids import load_decoder

    how = _tokens_of(ref)
    return load_decoder(how.tokenizer, how.sha256, how.special)


def _tokens_of(ref: ColumnRef) -> TokenIds:
    """How the ids of a column are read."""
    if ref.tokens is None:
        raise InternalError(f"{ref.dotted}: nothing says how its ids are read")
    return ref.tokens


def token_blocks(
    kind: CorpusFormat, path: str, ref: ColumnRef, chunk: Chunk
) -> Iterator[TextBlock]:
    """The documents of a chunk. Raises ShardError also for an id that the tokenizer lacks."""
    decoder = decoder_of(ref)
    for row, _, whole in _whole_rows(kind, path, ref, chunk):
        yield _block(path, row, whole, decoder)


def token_documents(
    kind: CorpusFormat, path: str, ref: ColumnRef, wanted: Sequence[int]
) -> Iterator[tuple[int, Document]]:
    """Yield (row, document) for some rows (ascending, distinct): the texts of `token_blocks`."""
    decoder = decoder_of(ref)
    groups = kind.row_groups(path, ref)
    begin = done = 0
    for number, n_rows in enumerate(
        [sys.maxsize] if groups is None else [g.n_rows for g in groups]
    ):
        end = bisect_left(wanted, begin + n_rows, lo=done)
        numbers = None if groups is None else (number,)
        found = _whole_rows(kind, path, ref, Chunk(0, numbers, begin, None, 0), wanted[done:end])
        while done < end and (some := next(found, None)):
            row, rows, whole = some
            last = bisect_left(wanted, row + len(rows.offsets) - 1, lo=done)
            for at in (wanted[place] - row for place in range(done, last)):
                first, stop = whole.offsets[at : at + 2].tolist()
                one = IdRows(whole.ids[first:stop], np.array([0, stop - first], np.int64))
                text = _block(path, row + at, one, decoder).data.tobytes().decode()
                place = 0 if rows.first is None else rows.first + int(rows.offsets[at])
                tokens = TokenPlaces(place, len(one.ids), decoder.places(one.ids))
                yield row + at, Document(text, tokens=tokens)
            done = last
        begin += n_rows


def _whole_rows(
    kind: CorpusFormat,
    path: str,
    ref: ColumnRef,
    chunk: Chunk,
    wanted: Sequence[int] | None = None,
) -> Iterator[tuple[int, IdRows, IdRows]]:
    """Yield (first row, rows, the same read on to where their documents end) of a chunk."""
    decoder, packed = decoder_of(ref), _tokens_of(ref).packed
    row = chunk.first_row if chunk.first_row is not None else kind.first_row(path, chunk, ref)
    stream = kind.id_rows(path, ref, chunk, wanted)
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
        rows = whole = waiting.popleft()
        if packed:
            rest = chain(kind.ids_behind(path, ref, chunk), _following(kind, ref))
            whole = run_on(rows, _first(chain([some.ids for some in waiting], rest)), decoder)
        yield row, rows, whole
        row += len(rows.offsets) - 1


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


def _following(kind: CorpusFormat, ref: ColumnRef) -> Iterator[Ids]:
    """The ids of the next shard."""
    following = _tokens_of(ref).following
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
