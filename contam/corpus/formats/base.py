"""Define a corpus format: one object for its files, columns, chunks, texts and rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_right
from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO, ClassVar, NamedTuple

from contam.errors import ShardError
from contam.files.listed import opened
from contam.tables.chat import Turn, turn_at

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path, PurePath

    import numpy as np
    from numpy.typing import NDArray

    from contam.corpus.streams import ByteSpan
    from contam.tables.blocks import TextBlock
    from contam.tables.columns import ColumnRef, TextColumns
    from contam.tables.edits import Rewrite, Rewritten
    from contam.tables.parquet import RowGroup

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

    def sample(self, path: str, ref: ColumnRef) -> list[NDArray[np.uint32]]:
        """Token ids of some rows, or of some other stretches, of a file."""
        return []

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
        return [Chunk(0, None, 0, None, size_bytes)]

    def first_row(self, path: str, chunk: Chunk, text: ColumnRef) -> int:
        """Count the rows before a chunk that does not give its first row."""
        return 0

    def row_groups(self, path: str, text: ColumnRef) -> Sequence[RowGroup] | None:
        """The parts of a file that can be read by themselves; None: only from its beginning."""
        return None

    @abstractmethod
    def blocks(
        self, path: str, sources: TextColumns, chunk: Chunk, max_bytes: int
    ) -> Iterator[TextBlock]:
        """Yield the documents of a chunk, rows in order, about `max_bytes` of text at a time."""

    @abstractmethod
    def metadata(
        self, path: str, refs: tuple[ColumnRef, ...], chunk: Chunk
    ) -> Iterator[dict[ColumnRef, list[object]]]:
        """Yield the values of columns for all rows of a chunk, some thousands at a time."""

    @abstractmethod
    def values(
        self, path: str, refs: Sequence[ColumnRef], rows: Sequence[int]
    ) -> Iterator[tuple[int, dict[ColumnRef, object]]]:
        """Yield (row, values of columns) for some rows (ascending, distinct)."""

    @abstractmethod
    def documents(
        self, path: str, sources: TextColumns, rows: Sequence[int]
    ) -> Iterator[tuple[int, Document]]:
        """Yield (row, document) for some rows (ascending, distinct): the texts of `blocks`."""

    @abstractmethod
    def rewrite(self, path: str, target: Path, how: Rewrite) -> Rewritten:
        """Write a file again, to one on this machine that does not exist.

        Raises ShardError when a row is not there, or when a span is not in the text or lies
        elsewhere than in a text column or the content of a message. The target may then be there in
        part; the caller removes it.
        """

    @abstractmethod
    def count_same(self, path: str, new: str, how: Rewrite) -> int:
        """How many rows of a file are the same in what `rewrite` wrote of it.

        Of rows whose text was edited the text is the old one with its spans replaced, and all but
        the columns of the text is the same. Raises ShardError, naming the new file, where a row
        is missing, too many or another.
        """


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
