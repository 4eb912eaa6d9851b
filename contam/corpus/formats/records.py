"""Share code among formats of one record after another: JSONL, CSV and web archives."""

from __future__ import annotations

import bz2
import lzma
import zlib
from abc import abstractmethod
from collections import Counter
from typing import TYPE_CHECKING, ClassVar, Final, Generic, NoReturn, Protocol, TypeVar

import numpy as np
import zstandard

from contam.corpus.formats.base import Chunk, CorpusFormat, Document
from contam.corpus.formats.json_record import RecordText, find
from contam.corpus.formats.token_rows import IdRows, token_blocks, token_documents
from contam.corpus.streams import ByteSpan, stream, unreadable
from contam.errors import InternalError, Public, ShardError
from contam.facts import Plain
from contam.files.compression import codec_of
from contam.files.disk import output_errors
from contam.files.listed import opened, state_of
from contam.files.single import created
from contam.tables.blocks import TextBlock, block_of
from contam.tables.chat import Turn, at_path, clean
from contam.tables.edits import Rewrite, Rewritten, check_text
from contam.tables.fields import as_ids

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from contam.tables.columns import ColumnRef, TextColumns
    from contam.tables.edits import Edit, Span

    Ids = NDArray[np.uint32]


Raw = TypeVar("Raw")
Record = dict[str, object]

MAX_RECORD_BYTES = 128 << 20
"""A longer record is an error: it would not fit the memory a worker may use."""

_BLOCK_BYTES = 2 << 20
_BLOCK_ROWS = 65_536
_BLOCK_IDS = 1 << 19
_METADATA_ROWS = 1024
#: Rows of a file of token ids that are tried.
_SAMPLED: Final = 24
#: Records with longer texts are not kept beside their texts.
_KEPT_RECORD_BYTES = 8 << 20


class RecordFormat(CorpusFormat, Generic[Raw]):
    """A format read record by record: `numbered` finds them, `record` understands one."""

    packable = True
    #: Whether each record of a packed file is packed by itself.
    members: ClassVar[bool] = False

    @abstractmethod
    def numbered(self, path: str, span: ByteSpan | None) -> Iterator[tuple[int, Raw]]:
        """Yield (row, raw record) of a file, or of a span if the format cuts files into spans."""

    @abstractmethod
    def record(self, path: str, row: int, raw: Raw) -> Record | None:
        """The names and values of a record; None for one without any: a blank line, no document.

        Text may hold surrogates for bytes that are not UTF-8, see `contam.tables.chat.clean`.
        """

    @abstractmethod
    def bad(self, path: str, row: int, what: str, *facts: object) -> ShardError:
        """The error for a record that cannot be understood."""

    def refuse(self, path: str, row: int, raw: Raw, record: Record, sources: TextColumns) -> None:
        """Raise ShardError where a record has more text than `record` could hold."""

    @abstractmethod
    def raw_records(self, path: str) -> Iterator[tuple[int | None, bytes]]:
        """Yield all bytes of a file, record by record; None in place of a row for other bytes."""

    @abstractmethod
    def edited(
        self,
        raw: bytes,
        names: Sequence[str],
        sources: TextColumns,
        spans: Sequence[Span],
        replacement: str | None,
    ) -> bytes:
        """The bytes of a record that `raw_records` gave, with spans of its document taken out.

        names  see `names`. Raises ValueError or RecursionError where that is not possible.
        """

    def names(self, path: str) -> Sequence[str]:
        """The names of the columns, where records do not have them themselves."""
        del path
        return ()

    def rewrite(self, path: str, target: Path, how: Rewrite) -> Rewritten:
        left: dict[int | None, Edit] = {edit.row: edit for edit in how.edits}
        names = self.names(path)
        n_rows = 0

        def written() -> Iterator[bytes]:
            nonlocal n_rows
            for row, raw in self.raw_records(path):
                n_rows += row is not None
                edit = left.pop(row, None)
                if edit is None or not (edit.drop or edit.spans):
                    yield raw
                elif not edit.drop:
                    try:
                        yield self.edited(raw, names, how.sources, edit.spans, how.replacement)
                    except (ValueError, RecursionError) as error:
                        raise ShardError(
                            "{shard}, row {}: its text cannot be edited: {}", edit.row,
                            Plain(error), shard=path,
                            hint="drop the document as a whole, or leave the file out",
                        ) from error  # fmt: skip

        not_kept = write_again(path, target, written(), members=self.members)
        if left:
            raise ShardError(
                "{shard}: row {} is not there", how.edits[-1].row, shard=path,
                hint="the file may have changed since it was scanned",
            )  # fmt: skip
        return Rewritten(n_rows, n_rows - sum(edit.drop for edit in how.edits), not_kept)

    def count_same(self, path: str, new: str, how: Rewrite) -> int:
        edited = {edit.row: edit for edit in how.edits}
        written = self.numbered(new, None)
        n_same = 0
        for row, raw in self.numbered(path, None):
            edit = edited.get(row)
            if edit is not None and edit.drop:
                continue
            number, found = next(written, (0, None))
            if found is None:
                raise _other(new, "row {} is missing", row)
            if edit is None:
                same = raw == found
                n_same += same
            else:
                records = self.record(path, row, raw), self.record(new, number, found)
                old, now = ({**(record or {}), **dict.fromkeys(how.texts)} for record in records)
                same = old == now
                before, after = (
                    (self._found(file, row, record, how.sources).text or b"").decode()
                    for file, record in zip((path, new), records, strict=True)
                )
                check_text(before, after, edit, row, how.replacement, new)
            if not same:
                raise _other(new, "row {} is another", row)
        if next(written, None) is not None:
            raise _other(new, "there are more rows")
        return n_same

    def blocks(
        self, path: str, sources: TextColumns, chunk: Chunk, max_bytes: int
    ) -> Iterator[TextBlock]:
        if sources.first.kind == "tokens":
            yield from token_blocks(self, path, sources.first, chunk)
            return
        limit = min(max_bytes, _BLOCK_BYTES)
        block = _Block()
        try:
            for row, raw in self.numbered(path, chunk.span):
                record = self.record(path, row, raw)
                if record is None:
                    block.n_blank += 1
                else:
                    self.refuse(path, row, raw, record, sources)
                block.add(self._found(path, row, record, sources), record)
                if block.size >= limit or len(block.texts) >= _BLOCK_ROWS:
                    yield block.finished()
                    block = _Block()
        except ShardError:
            # What was read before is evidence all the same.
            if block.texts:
                yield block.finished()
            raise
        if block.texts:
            yield block.finished()

    def metadata(
        self, path: str, refs: tuple[ColumnRef, ...], chunk: Chunk
    ) -> Iterator[dict[ColumnRef, list[object]]]:
        columns: dict[ColumnRef, list[object]] = {ref: [] for ref in refs}
        n = 0
        for row, raw in self.numbered(path, chunk.span):
            record = self.record(path, row, raw)
            for ref, values in columns.items():
                values.append(at_path(record, ref.path))
            n += 1
            if n == _METADATA_ROWS:
                yield columns
                columns, n = {ref: [] for ref in refs}, 0
        if n:
            yield columns

    def values(
        self, path: str, refs: Sequence[ColumnRef], rows: Sequence[int]
    ) -> Iterator[tuple[int, dict[ColumnRef, object]]]:
        for row, record in self._chosen(path, rows):
            yield row, {ref: at_path(record, ref.path) for ref in refs}

    def documents(
        self, path: str, sources: TextColumns, rows: Sequence[int]
    ) -> Iterator[tuple[int, Document]]:
        if sources.first.kind == "tokens":
            yield from token_documents(self, path, sources.first, rows)
            return
        for row, record in self._chosen(path, rows):
            yield row, _document(self._found(path, row, record, sources))

    def sample(self, path: str, ref: ColumnRef) -> list[Ids]:
        """The token ids of the first rows of a file."""
        return [ids for _, _, ids in self.ids_at(path, ref, range(_SAMPLED))]

    def id_rows(self, path: str, ref: ColumnRef, chunk: Chunk) -> Iterator[IdRows]:
        """Yield the token ids of a chunk's rows."""
        held: list[Ids] = []
        n_null = n = 0
        for row, raw in self.numbered(path, chunk.span):
            ids = self._ids(path, row, self.record(path, row, raw), ref)
            n_null += ids is None
            held.append(np.empty(0, np.uint32) if ids is None else ids)
            n += len(held[-1])
            if n >= _BLOCK_IDS or len(held) >= _BLOCK_ROWS:
                yield _id_rows(held, n_null)
                held, n_null, n = [], 0, 0
        if held:
            yield _id_rows(held, n_null)

    def ids_at(
        self, path: str, ref: ColumnRef, rows: Sequence[int]
    ) -> Iterator[tuple[int, None, Ids]]:
        """Yield (row, None, its token ids) for some rows."""
        for row, record in self._chosen(path, rows):
            ids = self._ids(path, row, record, ref)
            yield row, None, np.empty(0, np.uint32) if ids is None else ids

    def ids_behind(self, path: str, ref: ColumnRef, chunk: Chunk | None) -> Iterator[Ids]:
        """Yield the token ids of the rows behind a chunk; None: of all."""
        span = None
        if chunk is not None:
            if chunk.span is None:
                return  # it was all of the file
            span = ByteSpan(chunk.span.end, state_of(path).size)
        for row, raw in self.numbered(path, span):
            ids = self._ids(path, row, self.record(path, row, raw), ref)
            if ids is not None:
                yield ids

    def _ids(self, path: str, row: int, record: Record | None, ref: ColumnRef) -> Ids | None:
        found = at_path(record, ref.path)
        if found is None:
            return None
        try:
            ids = np.array(found, None if found else np.int64)
        except (TypeError, ValueError, OverflowError):
            ids = np.empty((0, 0), np.int64)
        if ids.ndim != 1 or ids.dtype.kind not in "iu" or not isinstance(found, list):
            raise self.bad(path, row, "{} holds no list of token ids", ref.dotted)
        return as_ids(ids)

    def _chosen(self, path: str, wanted: Sequence[int]) -> Iterator[tuple[int, Record | None]]:
        position = 0
        for row, raw in self.numbered(path, None):
            if position == len(wanted):
                return
            if row == wanted[position]:
                yield row, self.record(path, row, raw)
                position += 1

    def _found(
        self, path: str, row: int, record: Mapping[str, object] | None, sources: TextColumns
    ) -> RecordText:
        if record is None:
            return RecordText(b"")
        try:
            return find(record, sources)
        except (ValueError, RecursionError) as error:
            raise self.bad(path, row, "{}", Plain(error)) from error


def _other(path: str, what: str, *facts: object) -> ShardError:
    return ShardError(
        "{shard}: it was not written as it should be: " + what, *facts, shard=path,
        hint="let nobody write to it meanwhile",
    )  # fmt: skip


def raw_lines(path: str) -> Iterator[bytes]:
    """Yield lines with their ends. Raises ShardError for one that is too long."""
    file, number = stream(path), 0
    while line := file.readline(MAX_RECORD_BYTES + 1):
        number += 1
        if len(line) > MAX_RECORD_BYTES:
            raise ShardError(
                "{shard}, line {}: longer than {} MiB", number, MAX_RECORD_BYTES >> 20,
                shard=path, hint="leave the file out",
            )  # fmt: skip
        yield line


def _id_rows(held: Sequence[Ids], n_null: int) -> IdRows:
    offsets = np.concatenate([[0], np.cumsum([len(ids) for ids in held])]).astype(np.int64)
    return IdRows(np.concatenate(held), offsets, n_null)


class ReadyRecords(RecordFormat[Record]):
    """A format whose raw records are names and values already."""

    def record(self, path: str, row: int, raw: Record) -> Record:
        return raw


class ReadOnlyRecords(ReadyRecords):
    """Records of a format that contam does not write: `--action list` says what would go."""

    def rewrite(self, path: str, target: Path, how: Rewrite) -> NoReturn:
        raise ShardError(
            "{shard}: {} is not written again", Public(self.title), shard=path,
            hint="--action list says what would go",
        )  # fmt: skip

    def raw_records(self, path: str) -> NoReturn:
        raise InternalError(f"{path}: {self.title} is not written")

    def edited(
        self,
        raw: bytes,
        names: Sequence[str],
        sources: TextColumns,
        spans: Sequence[Span],
        replacement: str | None,
    ) -> NoReturn:
        raise InternalError(f"{self.title} is not written")


class _Block:
    """Documents on their way into a block."""

    def __init__(self) -> None:
        self.texts: list[bytes] = []
        self.size = self.n_null = self.n_undecodable = self.n_bytes = self.n_elsewhere = 0
        self.n_blank = 0
        self.moved: Counter[str] = Counter()
        self.records: list[Record | None] = []

    def add(self, found: RecordText, record: Record | None) -> None:
        self.texts.append(found.text or b"")
        # It holds the text once more.
        self.records.append(record if len(self.texts[-1]) <= _KEPT_RECORD_BYTES else None)
        self.size += len(found.text or b"")
        self.n_null += found.text is None
        self.n_undecodable += found.n_bad > 0
        self.n_bytes += found.n_bad
        self.n_elsewhere += found.n_elsewhere
        if found.column:
            self.moved[found.column] += 1

    def finished(self) -> TextBlock:
        block = block_of(
            self.texts,
            n_null=self.n_null,
            n_undecodable=self.n_undecodable,
            undecodable_bytes=self.n_bytes,
        )
        return block._replace(
            moved=tuple(sorted(self.moved.items())),
            n_elsewhere=self.n_elsewhere,
            n_blank=self.n_blank,
            records=self.records,
        )


def _document(found: RecordText) -> Document:
    turns = found.turns
    if turns is not None:
        turns = [Turn(turn.role, clean(turn.text)[0].decode()) for turn in turns]
    return Document(
        (found.text or b"").decode(), found.column, None if turns is None else tuple(turns)
    )


class _Packer(Protocol):
    def compress(self, data: bytes, /) -> bytes: ...

    def flush(self) -> bytes: ...


_PACKERS: Final[dict[str, Callable[[], _Packer]]] = {
    "gzip": lambda: zlib.compressobj(wbits=31),
    "zstd": lambda: zstandard.ZstdCompressor(write_checksum=True).compressobj(),
    "bz2": bz2.BZ2Compressor,
    "xz": lzma.LZMACompressor,
}


def write_again(
    path: str, target: Path, records: Iterable[bytes], *, members: bool
) -> tuple[str, ...]:
    """Write what becomes of the records of a file; returns what of its packing was not kept.

    members  whether each record of a packed file is a member of its own

    Raises ShardError when the file cannot be read, OutputError when the target cannot be written.
    """
    try:
        with opened(path) as file:
            codec = codec_of(file.read(8))
    except OSError as error:
        raise unreadable(path, error) from error
    with created(target) as out:
        for piece in _packed(codec, records, members=members) if codec else records:
            with output_errors(target):
                out.write(piece)
    return (f"the exact {codec} level and members",) if codec else ()


def _packed(codec: str, records: Iterable[bytes], *, members: bool) -> Iterator[bytes]:
    packer = _PACKERS[codec]()
    for number, record in enumerate(records):
        if members and number:
            yield packer.flush()
            packer = _PACKERS[codec]()
        yield packer.compress(record)
    yield packer.flush()
