"""Share code among formats of one record after another: JSONL, CSV and web archives."""

from __future__ import annotations

import bz2
import lzma
import sys
import zlib
from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple

import numpy as np
import zstandard

from contam.corpus.formats.base import RUN_ON, Chunk, CorpusFormat, Document, IdRows
from contam.corpus.streams import ByteSpan, readable, stream
from contam.errors import COPY_AGAIN, ShardError
from contam.facts import Plain
from contam.files.compression import codec_of
from contam.files.disk import output_errors
from contam.files.listed import opened, state_of
from contam.files.single import created
from contam.tables.blocks import TextBlock, block_of
from contam.tables.chat import Turn, at_path, clean, joined, named, text_at, turns_of
from contam.tables.edits import Rewrite, Rewritten, check_text, edited, edited_value, spread
from contam.tables.fields import as_ids

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from contam.tables.columns import ColumnRef, TextColumns
    from contam.tables.edits import Edit, Span

    Ids = NDArray[np.uint32]

Record = dict[str, object]
Editor = Callable[[Record], None]
"""Takes stretches out of the document of a record, in place."""

MAX_RECORD_BYTES = 128 << 20
"""A longer record is an error: it would not fit the memory a worker may use."""

BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"

_BLOCK_BYTES = 2 << 20
_BLOCK_ROWS = 65_536
_BLOCK_IDS = 1 << 19
_METADATA_ROWS = 1024
#: Records with longer texts are not kept beside their texts.
_KEPT_RECORD_BYTES = 8 << 20


class RecordText(NamedTuple):
    """The document of a record.

    text         valid UTF-8; None when no column that is read has a value
    n_bad        bytes that were replaced in it
    turns        what it is joined from; None for plain text
    column       the column it was read from; "" when that is the first
    n_elsewhere  1 when it has no text and a column that is not read has one
    """

    text: bytes | None
    n_bad: int = 0
    turns: list[Turn] | None = None
    column: str = ""
    n_elsewhere: int = 0


class RecordFormat(CorpusFormat):
    """A format read record by record: `numbered` finds them, `record` understands one.

    members     whether each record of a packed file is packed by itself
    unit        what messages call a record, and the number of the first one
    if_bad      the way out where one cannot be understood
    """

    packable = True
    members: ClassVar[bool] = False
    unit: ClassVar[tuple[str, int]] = ("record", 0)
    if_bad: ClassVar[str] = COPY_AGAIN

    @abstractmethod
    def numbered(self, path: str, span: ByteSpan | None) -> Iterator[tuple[int, Any]]:
        """Yield (row, raw record) of a file, or of a span if the format cuts files into spans."""

    def record(self, path: str, row: int, raw: Any) -> Record | None:  # noqa: ANN401 - as `numbered` gives it
        """The names and values of a record; None for one without any: a blank line, no document.

        Text may hold surrogates for bytes that are not UTF-8, see `contam.tables.chat.clean`.
        """
        ready: Record = raw
        return ready

    def bad(self, path: str, row: int, what: str, *facts: object) -> ShardError:
        """The error for a record that cannot be understood."""
        unit, first = self.unit
        what = f"{{shard}}, {unit} {{}}: {what}"
        return ShardError(what, row + first, *facts, shard=path, hint=self.if_bad)

    def refuse(self, path: str, row: int, raw: bytes, record: Record, sources: TextColumns) -> None:
        """Raise ShardError where a record has more text than `record` could hold."""

    def raw_records(self, path: str) -> Iterator[tuple[int | None, bytes]]:
        """Yield all bytes of a file, record by record; None in place of a row for other bytes."""
        raise NotImplementedError(path)

    def edited(self, raw: bytes, names: Sequence[str], edit: Editor) -> bytes:
        """The bytes of a record that `raw_records` gave, after an edit.

        names  see `names`. Raises ValueError or RecursionError where that is not possible.
        """
        raise NotImplementedError

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
                        change = partial(_edit, how=how, spans=edit.spans)
                        yield self.edited(raw, names, change)
                    except (ValueError, RecursionError) as error:
                        raise ShardError(
                            "{shard}, row {}: its text cannot be edited: {}", edit.row,
                            Plain(error), shard=path,
                            hint="drop the document as a whole, or leave the file out",
                        ) from error  # fmt: skip

        with readable(path), opened(path) as file:
            codec = codec_of(file.read(8))
        with created(target) as out:
            for piece in _packed(codec, written(), members=self.members) if codec else written():
                with output_errors(target):
                    out.write(piece)
        not_kept = (f"the exact {codec} level and members",) if codec else ()
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

    def text_blocks(
        self, path: str, sources: TextColumns, chunk: Chunk, max_bytes: int
    ) -> Iterator[TextBlock]:
        limit = min(max_bytes, _BLOCK_BYTES)
        held: list[tuple[RecordText, Record | None]] = []
        size = 0
        try:
            for row, raw in self.numbered(path, chunk.span):
                record = self.record(path, row, raw)
                if record is not None:
                    self.refuse(path, row, raw, record, sources)
                held.append((self._found(path, row, record, sources), record))
                size += len(held[-1][0].text or b"")
                if size >= limit or len(held) >= _BLOCK_ROWS:
                    yield _block(held)
                    held, size = [], 0
        except ShardError:
            # What was read before is evidence all the same.
            if held:
                yield _block(held)
            raise
        if held:
            yield _block(held)

    def metadata(
        self, path: str, refs: tuple[ColumnRef, ...], chunk: Chunk
    ) -> Iterator[dict[ColumnRef, list[object]]]:
        records = (self.record(path, *one) for one in self.numbered(path, chunk.span))
        # One record at a time is in memory: their texts may be long.
        values = ([at_path(record, ref.path) for ref in refs] for record in records)
        while some := list(islice(values, _METADATA_ROWS)):
            yield {ref: [row[at] for row in some] for at, ref in enumerate(refs)}

    def values(
        self, path: str, refs: Sequence[ColumnRef], rows: Sequence[int]
    ) -> Iterator[tuple[int, dict[ColumnRef, object]]]:
        for row, record in self._chosen(path, rows):
            yield row, {ref: at_path(record, ref.path) for ref in refs}

    def text_documents(
        self, path: str, sources: TextColumns, rows: Sequence[int]
    ) -> Iterator[tuple[int, Document]]:
        for row, record in self._chosen(path, rows):
            yield row, _document(self._found(path, row, record, sources))

    def id_rows(
        self, path: str, ref: ColumnRef, chunk: Chunk, wanted: Sequence[int] | None = None
    ) -> Iterator[IdRows]:
        chosen, last = set(wanted or ()), wanted[-1] if wanted else sys.maxsize
        held: list[Ids] = []
        n_null = n = 0
        n_behind = RUN_ON
        for row, raw in self.numbered(path, chunk.span):
            is_wanted = wanted is None or row in chosen
            ids = None
            if is_wanted or n_behind < RUN_ON:
                ids = self._ids(path, row, self.record(path, row, raw), ref)
            n_null += ids is None
            held.append(np.empty(0, np.uint32) if ids is None else ids)
            n_behind = 0 if is_wanted else n_behind + len(held[-1])
            n += len(held[-1])
            if n >= _BLOCK_IDS or len(held) >= _BLOCK_ROWS or row == last:
                yield _id_rows(held, n_null)
                held, n_null, n = [], 0, 0
            if row > last and n_behind >= RUN_ON:
                break
        if held:
            yield _id_rows(held, n_null)

    def ids_behind(self, path: str, ref: ColumnRef, chunk: Chunk | None) -> Iterator[Ids]:
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
            return _find(record, sources)
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


class ReadOnlyRecords(RecordFormat):
    """Records of a format that contam does not write."""

    rewrite = CorpusFormat.rewrite


def _block(held: Sequence[tuple[RecordText, Record | None]]) -> TextBlock:
    texts = [found.text or b"" for found, _ in held]
    block = block_of(
        texts,
        n_null=sum(found.text is None for found, _ in held),
        bad=[found.n_bad for found, _ in held],
    )
    # A record holds its text once more.
    kept = [
        record if len(text) <= _KEPT_RECORD_BYTES else None
        for text, (_, record) in zip(texts, held, strict=True)
    ]
    return block._replace(
        moved=tuple(sorted(Counter(found.column for found, _ in held if found.column).items())),
        n_elsewhere=sum(found.n_elsewhere for found, _ in held),
        n_blank=sum(record is None for _, record in held),
        records=kept,
    )


def _document(found: RecordText) -> Document:
    turns = found.turns
    if turns is not None:
        turns = [Turn(turn.role, clean(turn.text)[0].decode()) for turn in turns]
    return Document(
        (found.text or b"").decode(), found.column, None if turns is None else tuple(turns)
    )


def _find(record: Mapping[str, object], sources: TextColumns) -> RecordText:
    """Return the document of a record. Raises ValueError for a value that cannot be its text."""
    first = _read(record, sources.first, strict=True)._replace(column="")
    if not sources.others or not _blank(first.text):
        return first
    for ref in sources.others:
        other = _read(record, ref, strict=False)
        if not _blank(other.text):
            return first._replace(n_elsewhere=1) if sources.named else other
    return first


def _column_read(
    record: Mapping[str, object], sources: TextColumns
) -> tuple[ColumnRef, RecordText]:
    """The column that the document of a record is read from, and what `find` returns of it."""
    first = _read(record, sources.first, strict=True)
    if _blank(first.text) and not sources.named:
        for ref in sources.others:
            other = _read(record, ref, strict=False)
            if not _blank(other.text):
                return ref, other
    return sources.first, first


def _read(record: Mapping[str, object], ref: ColumnRef, *, strict: bool) -> RecordText:
    """Return the document of one column.

    Unless `strict`, a value of another kind is no mistake but no text.
    """
    if ref.kind == "group":
        return _group(record, ref, strict=strict)
    value = at_path(record, ref.path, once=True)
    if not strict and not _may_be_text(value):
        return RecordText(None)
    turns = turns_of(value) if isinstance(value, list) else None
    text = text_at(record, ref.path) if turns is None else joined(turns)
    if text is None:
        return RecordText(None)
    raw, bad = clean(text)
    return RecordText(raw, bad, turns, ref.dotted)


def _group(record: Mapping[str, object], ref: ColumnRef, *, strict: bool) -> RecordText:
    """Join the parts that this record has; numbers and flags among them are no text."""
    turns: list[Turn] = []
    columns: list[str] = []
    missing = True
    paths = {part.path for part in ref.parts}
    for part in ref.parts:
        value = at_path(record, part.path, once=True)
        missing = missing and value is None
        if isinstance(value, int | float) or not (strict or _may_be_text(value)):
            continue
        if isinstance(value, Mapping) and (*part.path, "text") in paths:
            continue
        if isinstance(value, list):
            inner = [named(turn, part.dotted) for turn in turns_of(value)]
        else:
            inner = [Turn(part.dotted, text_at(record, part.path) or "")]
        if joined(inner):
            turns += inner
            columns.append(part.dotted)
    if missing:
        return RecordText(None)
    raw, bad = clean(joined(turns))
    return RecordText(raw, bad, turns, "+".join(columns))


def _may_be_text(value: object) -> bool:
    if isinstance(value, list):
        return any(isinstance(entry, str | dict | list) for entry in value)
    return isinstance(value, str)


def _blank(text: bytes | None) -> bool:
    return not text or text.isspace()


def _edit(record: Record, how: Rewrite, spans: Sequence[Span]) -> None:
    """Take spans out of the document of a record, in place.

    Raises ValueError where a span is not in the document, or lies elsewhere than in a text or in
    the content of a message.
    """
    ref, found = _column_read(record, how.sources)
    texts = {part: (_read(record, part, strict=False).text or b"").decode() for part in ref.single}
    parts = [part for part in ref.single if texts[part]]
    pieces = [texts[part] for part in parts]
    whole = (found.text or b"").decode()
    if "\n".join(pieces) != whole:
        raise ValueError(f"the text in {ref.dotted} is not joined as it was read")
    edited(whole, spans, how.replacement)
    for part, text, inside in zip(parts, pieces, spread(spans, pieces), strict=True):
        if not inside:
            continue
        holder: object = record
        for step in part.path[:-1]:
            holder = holder.get(step) if isinstance(holder, dict) else None
        if not isinstance(holder, dict):
            raise ValueError("it stands inside another text")  # noqa: TRY004 - told of a line
        *_, name = part.path
        for path, new in edited_value(holder.get(name), text, inside, how.replacement):
            inner: Any = holder
            *above, last = (name, *path)
            for key in above:
                inner = inner[key]
            inner[last] = new


_PACKERS: Final[dict[str, Callable[[], Any]]] = {
    "gzip": lambda: zlib.compressobj(wbits=31),
    "zstd": lambda: zstandard.ZstdCompressor(write_checksum=True).compressobj(),
    "bz2": bz2.BZ2Compressor,
    "xz": lzma.LZMACompressor,
}


def _packed(codec: str, records: Iterable[bytes], *, members: bool) -> Iterator[bytes]:
    packer = _PACKERS[codec]()
    for number, record in enumerate(records):
        if members and number:
            yield packer.flush()
            packer = _PACKERS[codec]()
        yield packer.compress(record)
    yield packer.flush()
