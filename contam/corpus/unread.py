"""Find the columns of a shard that hold text and are not read, so that results name them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Final

from contam.corpus.shards import errors_named
from contam.errors import ShardError
from contam.facts import counted

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from contam.corpus.shards import Shard
    from contam.tables.columns import ColumnRef

UNREAD_COLUMNS: Final = "text that is not read"
"""What a note on such columns has."""

#: Columns of these names say what a document is, whatever is in them.
_ABOUT: Final = frozenset(
    ("author", "authors", "license", "licence", "licenses", "metadata", "meta", "path", "file_path",
     "filename", "file_name", "domain", "host", "headers", "tags", "labels", "category",
     "categories", "mime_type", "model")
)  # fmt: skip
_ROWS: Final = 200
_BYTES: Final = 4 << 20
#: A text has so many blanks, or so many characters where a script has none.
_BLANKS, _CHARACTERS = 2, 8
_LONG: Final = 200
#: Of a column without a value in the first rows: the least share of the text, and bytes a row.
_LEAST_SHARE, _LEAST_BYTES = 10, 50
_NAMED: Final = 5
#: Behind the name of a column of lists of records, which no flag reads.
_RECORDS: Final = "[]"


@dataclass(frozen=True, slots=True)
class UnreadColumns:
    """Columns of text beside the one that is read.

    read     the column that is read;  columns  the others, each with its percentage of all the text
    """

    read: str
    columns: dict[str, int] = field(hash=False)


def unread_columns(
    shard: Shard,
    columns: Sequence[ColumnRef],
    text: ColumnRef,
    known: Collection[str],
    instead: Collection[ColumnRef] = (),
) -> UnreadColumns | None:
    """The columns of text in an open shard besides `text`; None where there are none.

    known    names of columns that describe documents
    instead  columns that are read where `text` has none
    Judged by the first rows, and by what a Parquet footer says of sizes.
    """
    read = [part.path for part in text.single]
    others = [
        ref
        for ref in columns
        if (ref.kind in ("text", "list", "chat") or _holds_records(ref))
        and not any(ref.path[: len(path)] == path for path in read)
        and ref.path[-1] not in known
        and ref.path[-1] not in _ABOUT
    ]
    if not others:
        return None
    values = _first_values(shard, [*text.single, *others])
    texts: dict[ColumnRef, list[str]] = {ref: [] for ref in (*text.single, *others)}
    moved = {part.path for ref in instead for part in ref.single}
    for row in values:
        said = {ref: "\n".join(_strings(row.get(ref))).strip() for ref in texts}
        is_read = any(said[part] for part in text.single)
        for ref, one in said.items():
            if one and (is_read or ref.path not in moved):
                texts[ref].append(one)
    sizes = {ref: sum(len(one.encode(errors="replace")) for one in texts[ref]) for ref in texts}
    n_rows = len(values)
    with errors_named(shard):
        groups = {ref: shard.kind.row_groups(shard.path, ref) for ref in texts}
    for ref, found in groups.items():
        if found:
            sizes[ref] = sum(group.n_bytes for group in found)
            n_rows = sum(group.n_rows for group in found)
    n_read = sum(sizes[part] for part in text.single)
    every = max(1, n_read + sum(sizes[ref] for ref in others))

    def weighs(ref: ColumnRef) -> bool:
        """Whether a column without sentences in the first rows may hold some: by its size."""
        if not texts[ref]:
            least, against = _LEAST_BYTES, n_read // _LEAST_SHARE
            return ref.path not in moved and sizes[ref] > max(least * n_rows, against)
        return sizes[ref] > max(_LONG * n_rows, n_read)

    unread = {
        ref.dotted + (_RECORDS if ref.kind == "other" else ""): max(1, 100 * sizes[ref] // every)
        for ref in others
        if _is_text(texts[ref]) or (ref.kind != "other" and weighs(ref))
    }
    return UnreadColumns(text.dotted, unread) if unread else None


def _holds_records(ref: ColumnRef) -> bool:
    """Whether a column may hold texts in lists of records or in maps: numbers are `other`, too."""
    of_table = "string" in ref.type_name or "binary" in ref.type_name
    return ref.kind == "other" and (of_table or ref.type_name == "other")


def unread_notes(found: Iterable[tuple[str, UnreadColumns | None]]) -> list[str]:
    """What to say of the unread columns of shards, given by their names; alike ones together."""
    alike: dict[tuple[str, tuple[str, ...]], list[tuple[str, UnreadColumns]]] = {}
    for name, one in found:
        if one is not None:
            alike.setdefault((one.read, tuple(sorted(one.columns))), []).append((name, one))
    notes = []
    for (read, columns), shards in alike.items():
        largest: Counter[str] = Counter()
        for _, one in shards:
            largest |= Counter(one.columns)
        said = [f"{name} ({share} %)" for name, share in largest.most_common(_NAMED)]
        more = f" and {len(columns) - _NAMED} more" if len(columns) > _NAMED else ""
        where = shards[0][0] + (
            f" and {counted(len(shards) - 1, 'more shard')}" if len(shards) > 1 else ""
        )
        named = [name for name, _ in largest.most_common(_NAMED) if not name.endswith(_RECORDS)]
        way = (
            f"`--text {'+'.join((read, *named))}` reads it as well"
            if named
            else "nothing reads records in lists: write their texts as one"
        )
        notes.append(
            f"{where}: beside the column {read} there is {UNREAD_COLUMNS}: {', '.join(said)}{more};"
            f" {way}"
        )
    return notes


def names_of(found: Iterable[UnreadColumns | None]) -> tuple[str, ...]:
    """Names of the unread columns of shards, in order."""
    return tuple(sorted({name for one in found if one is not None for name in one.columns}))


def _first_values(shard: Shard, refs: Sequence[ColumnRef]) -> list[dict[ColumnRef, object]]:
    found: list[dict[ColumnRef, object]] = []
    n_bytes = 0
    try:
        with errors_named(shard):
            for _, row in islice(shard.kind.values(shard.path, refs, range(_ROWS)), _ROWS):
                found.append(row)
                n_bytes += sum(len(text) for value in row.values() for text in _strings(value))
                if n_bytes > _BYTES:
                    break
    except (ShardError, ValueError):
        # Of what is not read nothing need be sound; what is read says so itself.
        return found
    return found


def _strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, bytes):
        yield value.decode(errors="replace")
    elif isinstance(value, dict):
        for inner in value.values():
            yield from _strings(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _strings(inner)


def _is_text(values: Sequence[str]) -> bool:
    """Whether values are sentences rather than names, addresses or one of a few labels."""
    spoken = [
        one
        for one in values
        if one.count(" ") >= _BLANKS or (not one.isascii() and len(one) >= _CHARACTERS)
    ]
    if not values or 2 * len(spoken) < len(values):
        return False
    return 2 * len(set(values)) > len(values) or sum(map(len, values)) > _LONG * len(values)
