"""Write a file of records again: the bytes of all that stays are copied, packed ones as packed."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from contam.corpus.formats.json_record import column_read, read
from contam.corpus.streams import PIECE_BYTES, unreadable
from contam.errors import Remedy, ShardError
from contam.files.compression import Unpacker, codec_of
from contam.files.listed import opened
from contam.files.packing import HEAD_BYTES, is_skippable, lost, pack
from contam.files.publish import output_errors
from contam.files.single import created
from contam.tables.json_text import clean
from contam.tables.literals import Literal, applied, located_at
from contam.tables.text_leaves import Joined, Leaf, marked

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path
    from typing import BinaryIO

    from contam.tables.columns import TextColumns
    from contam.tables.edits import Edit, Span
    from contam.tables.literals import Change

    Changed = Callable[[Edit, bytes], bytes]


class Place(NamedTuple):
    """Bytes [begin, end) of an unpacked file that hold a record, all of it, and its edit."""

    begin: int
    end: int
    edit: Edit


class Places(NamedTuple):
    """Where the records with an edit stand.

    found   ascending
    n_rows  records of the file
    ends    of its members, see `contam.files.compression.Unpacker`; none when it is not packed
    names   of the columns, where a record does not have them itself
    """

    found: list[Place]
    n_rows: int
    ends: list[tuple[int, int]]
    names: Sequence[str] = ()


def write_again(path: str, target: Path, places: Places, changed: Changed) -> set[str]:
    """Copy a file with other bytes in some places; returns what of its packing was not kept.

    changed  gives the bytes instead of those of a record; none drops it
    A member without such a place is copied as it is packed, others are packed again. Raises
    ShardError when the file cannot be read or changed, OutputError when the target cannot be
    written.
    """
    splicer = _Splicer(places.found, changed)
    try:
        with opened(path) as file:
            head = file.read(HEAD_BYTES)
            file.seek(0)
            not_kept: set[str] = set()
            found = splicer.pieces(_read(file, None))
            if places.ends:
                found = _members(file, codec_of(head), places.ends, splicer, not_kept)
            with created(target) as out:
                for piece in found:
                    with output_errors(target):
                        out.write(piece)
    except OSError as error:
        raise unreadable(path, error) from error
    if not splicer.finished:
        raise ShardError(
            "{shard}: ends before a record that is to be edited", shard=path,
            remedy=Remedy.FILE_MAY_HAVE_CHANGED,
        )  # fmt: skip
    return not_kept


def changes(
    record: Mapping[str, object],
    strings: Mapping[str, object],
    sources: TextColumns,
    spans: Sequence[Span],
    replacement: str | None,
) -> list[Change]:
    """What to change in the text that a record was read from, to take spans out of its document.

    record   as it was read;  strings  the same with a `Literal` for each string
    Raises ValueError where a span is not in the document, or what holds it cannot be changed.
    """
    ref, found = column_read(record, sources)
    leaves: list[Leaf] = []
    copy: dict[str, object] = {}
    for part in ref.single:
        value = located_at(strings, part.path)
        if value is not None:
            _set(copy, part.path, marked(value, leaves))
    pattern = read(copy, ref, strict=ref is sources.first).text or b""
    document = Joined(pattern.decode(), leaves)
    if clean(document.raw)[0] != (found.text or b""):
        raise ValueError(f"the text in {ref.dotted} is not joined as it was read")
    made: list[Change] = []
    for number, inside in document.stretches(spans).items():
        literal = leaves[number].text
        if not isinstance(literal, Literal):
            raise TypeError("a text without a place")
        made += literal.changes(inside, replacement)
    return made


def edited_text(text: str, made: Sequence[Change]) -> bytes:
    """The text of a record with changes, as bytes; surrogates are bytes that are no UTF-8."""
    return applied(text, made).encode("utf-8", "surrogateescape")


def _set(tree: dict[str, object], path: Sequence[str], value: object) -> None:
    for step in path[:-1]:
        inner = tree.setdefault(step, {})
        if not isinstance(inner, dict):
            raise ValueError(f"a text in {'.'.join(path)} stands within another one")  # noqa: TRY004 - told as what is wrong with the record
        tree = inner
    tree[path[-1]] = value


class _Splicer:
    """Bytes of a file on their way to its copy."""

    def __init__(self, places: Sequence[Place], changed: Changed) -> None:
        self._places = places
        self._changed = changed
        self._next = 0
        self._at = 0
        self._held: list[bytes] = []

    @property
    def finished(self) -> bool:
        return self._next == len(self._places)

    def touches(self, end: int) -> bool:
        """Whether an edit begins or goes on before byte `end`."""
        return not self.finished and self._places[self._next].begin < end

    def skip(self, end: int) -> None:
        """Go on behind bytes that are copied by themselves."""
        self._at = end

    def pieces(self, found: Iterable[bytes]) -> Iterator[bytes]:
        for piece in found:
            yield from self._fed(piece)

    def _fed(self, piece: bytes) -> Iterator[bytes]:
        begin, end = 0, len(piece)
        while begin < end:
            if not self.touches(self._at + end - begin):
                yield piece[begin:]
                self._at += end - begin
                return
            place = self._places[self._next]
            if self._at < place.begin:
                ahead = place.begin - self._at
                yield piece[begin : begin + ahead]
                begin += ahead
                self._at = place.begin
            taken = min(end - begin, place.end - self._at)
            self._held.append(piece[begin : begin + taken])
            begin += taken
            self._at += taken
            if self._at == place.end:
                new = self._changed(place.edit, b"".join(self._held))
                self._held = []
                self._next += 1
                if new:
                    yield new


def _members(
    file: BinaryIO,
    codec: str,
    ends: Sequence[tuple[int, int]],
    splicer: _Splicer,
    not_kept: set[str],
) -> Iterator[bytes]:
    """Yield the packed bytes of the copy, and add to `not_kept`."""
    begin = n_before = n_written = 0
    for end, n_unpacked in ends:
        touched = splicer.touches(n_unpacked)
        # Archives have members by the hundred thousand: those that stay are not looked at.
        head = _head(file, begin) if touched or codec == "zstd" else b""
        if is_skippable(head):
            not_kept.add("zstd frames without data, such as seek tables")
        elif touched:
            file.seek(begin)
            unpacked = Unpacker(codec, piece_bytes=PIECE_BYTES)
            packed = (piece for data in _read(file, end) for piece in unpacked.feed(data))
            pieces = splicer.pieces(packed)
            some = next(pieces, None)
            if some is not None:
                not_kept |= lost(codec, head, n_unpacked - n_before)
                yield from pack(codec, head, _with(some, pieces))
                n_written += 1
        else:
            splicer.skip(n_unpacked)
            file.seek(begin)
            # No file begins with the zeros that may stand between members.
            copied = _read(file, end)
            yield from copied if n_written else _without_zeros(copied)
            n_written += 1
        begin, n_before = end, n_unpacked
    if not n_written and n_unpacked:
        # Of all dropped rows a member of no bytes is left: an empty file would count as damaged.
        begins = (0, *(end for end, _ in ends))
        heads = (_head(file, begin) for begin in begins[:-1])
        yield from pack(codec, next(head for head in heads if not is_skippable(head)), ())


def _with(first: bytes, rest: Iterator[bytes]) -> Iterator[bytes]:
    yield first
    yield from rest


def _head(file: BinaryIO, begin: int) -> bytes:
    """The first bytes of a member; zeros may stand before it."""
    file.seek(begin)
    head = file.read(HEAD_BYTES)
    while head and head[0] == 0:
        head = head.lstrip(b"\0") or file.read(PIECE_BYTES)
    return head[:HEAD_BYTES] + file.read(max(0, HEAD_BYTES - len(head)))


def _without_zeros(pieces: Iterator[bytes]) -> Iterator[bytes]:
    for piece in pieces:
        if rest := piece.lstrip(b"\0"):
            yield rest
            yield from pieces


def _read(file: BinaryIO, end: int | None) -> Iterator[bytes]:
    """The bytes from here to `end`, or to the file's end."""
    at = file.tell()
    while end is None or at < end:
        piece = file.read(PIECE_BYTES if end is None else min(PIECE_BYTES, end - at))
        if not piece:
            return
        at += len(piece)
        yield piece
