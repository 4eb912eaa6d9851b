"""Choose the columns of a shard that hold text and metadata, and name text that is not read."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Final, Literal

from contam.corpus.shards import errors_named
from contam.corpus.tokens import TOKEN_NAMES, prepared
from contam.errors import CorpusError, Place, Public, ShardError
from contam.facts import counted
from contam.tables.columns import ColumnRef, Kind, TextColumns

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from contam.corpus.shards import Shard

MetadataField = Literal["id", "url", "date", "source", "language"]

TEXT_NAMES = (
    "text",
    "content",
    "raw_content",
    "contents",
    "document",
    "body",
    "raw_text",
    "code",
    "messages",
    "conversations",
    "conversation",
    "turns",
    "dialogue",
    "dialog",
    "chat",
    "utterances",
    "trajectory",
    "traj",
    "steps",
    "history",
    "data",
)
"""Columns tried in turn when the user names none."""

_LISTS = frozenset(TEXT_NAMES[TEXT_NAMES.index("trajectory") :])
"""Those of them that are the text only where they hold a list of texts, turns or steps."""

PART_NAMES = (
    "system",
    "system_prompt",
    "instruction",
    "instructions",
    "context",
    "passage",
    "problem",
    "question",
    "query",
    "input",
    "inputs",
    "prompt",
    "choices",
    "choices.text",
    "options",
    "reasoning",
    "thinking",
    "rationale",
    "chosen",
    "rejected",
    "completion",
    "response",
    "responses",
    "output",
    "outputs",
    "answer",
    "answers",
    "answers.text",
    "solution",
    "solutions",
    "explanation",
    "generation",
    "generations",
    "target",
    "targets",
)
"""Columns joined in this order, a line each, where no column by itself is the text."""

_ASKING = frozenset(
    ("instruction", "instructions", "problem", "question", "query", "input", "inputs", "prompt")
)
_REPLYING = frozenset(PART_NAMES[PART_NAMES.index("prompt") + 1 :]) - {"reasoning", "thinking"}
_PREFERENCES = frozenset(("chosen", "rejected"))
_IN_LISTS = ("list", "chat")

METADATA_NAMES: Mapping[MetadataField, tuple[str, ...]] = {
    "id": (
        "id",
        "doc_id",
        "document_id",
        "docid",
        "_id",
        "identifier",
        "warc_record_id",
        "hexsha",
        "uuid",
        "record_id",
        "WARC-Record-ID",
    ),
    "url": ("url", "uri", "source_url", "WARC-Target-URI"),
    "date": ("date", "timestamp", "created", "crawl_date", "WARC-Date", "added"),
    "source": (
        "source",
        "dataset",
        "subset",
        "collection",
        "red_pajama_subset",
        "pile_set_name",
        "redpajama_set_name",
        "max_stars_repo_name",
        "repo_name",
        "dump",
    ),
    "language": ("language", "lang"),
}
"""Names tried in turn for each metadata field, at the top and inside `metadata` and `meta`."""

NAMEABLE: tuple[MetadataField, ...] = ("id", "url", "date", "source")
"""Metadata fields whose column a user can name."""

METADATA_PARENTS = ("metadata", "meta")

_MAX_LISTED = 40
_RUN_ENDS = "run_end_encoded"
#: Beside a chat, its first turn.
_SYSTEM = ("system", "system_prompt")
_SEARCHABLE = ("text", "null", "list", "chat", "tokens")

# A record may have keys that none of the first records has: every usual name is looked up.
_USUAL_KEYS = tuple(
    ColumnRef(tuple(name.split(".")), "text", "text") for name in (*TEXT_NAMES, *PART_NAMES)
)


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


@dataclass(frozen=True, slots=True)
class Selection:
    """The columns to use in one shard.

    text      where the documents' text is; None in a shard that has no rows and no columns
    metadata  for each field, the columns that may hold it, best first; usually one
    others    columns that may hold the text of a row in which `text` holds none, best first
    named     the user named `text`: rows with a text in `others` only are counted, not read
    unread    columns of text besides; None where there are none
    """

    text: ColumnRef | None
    metadata: Mapping[MetadataField, tuple[ColumnRef, ...]] = field(default_factory=dict)
    others: tuple[ColumnRef, ...] = ()
    named: bool = False
    unread: UnreadColumns | None = None

    @property
    def sources(self) -> TextColumns | None:
        """Where each row has its text; None in a shard without rows."""
        return TextColumns(self.text, self.others, self.named) if self.text else None


Selections = Sequence[Selection | None]
"""One selection for every shard; None where that shard failed."""


def select_columns(
    shard: Shard, text: str | None = None, named: Mapping[str, str] | None = None
) -> Selection:
    """Find the columns of one shard.

    text   the text column as a dotted path; None finds it by its usual names
    named  columns of `NAMEABLE` fields as dotted paths; others are found by their usual names;
           and how token ids are read, as `contam.corpus.tokens.settled` gives it

    Raises CorpusError, listing the columns seen, when no column fits, and ShardError when the
    shard cannot be read.
    """
    with errors_named(shard):
        columns = shard.kind.columns(shard.path)
    if not columns and shard.kind.open_keys:
        return Selection(text=None)
    usual = {*TEXT_NAMES, *PART_NAMES, text}
    encoded = [one for one in columns if one.type_name.startswith(_RUN_ENDS)]
    if found := [one for one in encoded if one.dotted in usual]:
        raise CorpusError(
            "{}: the column {} is run-end encoded", Place(shard.name), found[0].dotted,
            hint="decode it with pyarrow.compute.run_end_decode, and write the file again",
        )  # fmt: skip
    chosen = _text_column(shard, columns, text, is_tokens="tokenizer" in (named or {}))
    if chosen.kind == "tokens":
        with errors_named(shard):
            chosen = prepared(shard, chosen, named or {})
        about = _metadata(columns) | _named_fields(shard, columns, named or {})
        return Selection(text=chosen, metadata=about, named=text is not None)
    others = _others(shard, columns, chosen)
    about = _metadata(columns) | _named_fields(shard, columns, named or {})
    known = {name for usual in METADATA_NAMES.values() for name in usual}
    known |= {ref.path[-1] for refs in about.values() for ref in refs}
    instead = others if text is None else ()
    return Selection(
        text=chosen,
        metadata=about,
        others=others,
        named=text is not None,
        unread=_unread_columns(shard, columns, chosen, known, instead),
    )


def _text_column(
    shard: Shard, columns: tuple[ColumnRef, ...], text: str | None, *, is_tokens: bool
) -> ColumnRef:
    if text is not None:
        return _named(shard, columns, text)
    tops = {ref.path[0]: ref for ref in columns if len(ref.path) == 1}
    ids = [tops[name] for name in TOKEN_NAMES if name in tops and tops[name].kind == "tokens"]
    if ids and is_tokens:
        return ids[0]
    # A column without a single value fits only if no other column does.
    for kinds in (("text", "list", "chat"), ("null",)):
        for name in TEXT_NAMES:
            if name in tops and tops[name].kind in (_IN_LISTS if name in _LISTS else kinds):
                told = [tops[one] for one in _SYSTEM if one in tops and tops[one].kind == "text"]
                parts = (*told, tops[name]) if tops[name].kind == "chat" else (tops[name],)
                return _group(parts, parts) if len(parts) > 1 else tops[name]
        parts = _parts(columns, kinds)
        names = {ref.path[0] for ref in parts}
        # Half a pair may be anything; messages, and what was preferred to what, are not.
        is_chat = any(ref.kind == "chat" and ref.path[0] in _ASKING for ref in parts)
        if is_chat or names >= _PREFERENCES or (names & _ASKING and names & _REPLYING):
            parts = _parts(columns, ("text", "list", "chat")) or parts
            any_key = shard.kind.open_keys
            return _group(parts, _parts(_USUAL_KEYS, ("text",)) if any_key else parts)
    if ids:
        return ids[0]
    hint = "name the column that holds the text with --text"
    raise _unfit(shard, columns, "no text column found", hint=hint)


def _parts(columns: tuple[ColumnRef, ...], kinds: tuple[Kind, ...]) -> tuple[ColumnRef, ...]:
    by_name = {ref.dotted: ref for ref in columns if ref.kind in kinds}
    return tuple(by_name[name] for name in PART_NAMES if name in by_name)


def _group(seen: tuple[ColumnRef, ...], parts: tuple[ColumnRef, ...]) -> ColumnRef:
    name = "+".join(ref.dotted for ref in seen)
    return ColumnRef((name,), "group", "columns", parts=parts)


def _others(
    shard: Shard, columns: tuple[ColumnRef, ...], chosen: ColumnRef
) -> tuple[ColumnRef, ...]:
    """List the usual columns besides the chosen one, those joined from several last."""
    kinds: tuple[Kind, ...] = ("text", "list", "chat")
    if shard.kind.open_keys:
        columns = _USUAL_KEYS
    tops = {ref.path[0]: ref for ref in columns if len(ref.path) == 1 and ref.kind in kinds}
    taken = {part.path for part in chosen.single}
    found = [tops[name] for name in TEXT_NAMES if name in tops and (name,) not in taken]
    parts = tuple(ref for ref in _parts(columns, kinds) if ref.path not in taken)
    return (*found, _group(parts, parts)) if parts else tuple(found)


def _named(shard: Shard, columns: tuple[ColumnRef, ...], text: str) -> ColumnRef:
    ref = _lookup(columns, text)
    if ref is None and ("+" in text or "," in text):
        parts = tuple(_named(shard, columns, part) for part in re.split(r"[+,]", text))
        return _group(parts, parts)
    if ref is None:
        hint = "name one of them with --text, with dots for fields inside structs"
        raise _unfit(shard, columns, "no column {}", text, hint=hint)
    if ref.kind not in (*_SEARCHABLE, "json"):
        hint = "name a text column with --text"
        what = "column {} holds {}, not text"
        raise _unfit(shard, columns, what, text, ref.type_name, hint=hint)
    return ref


def _named_fields(
    shard: Shard, columns: tuple[ColumnRef, ...], named: Mapping[str, str]
) -> dict[MetadataField, tuple[ColumnRef, ...]]:
    """The columns that the user named for metadata: these, and no others of the usual names."""
    found: dict[MetadataField, tuple[ColumnRef, ...]] = {}
    for field_name in NAMEABLE:
        if field_name not in named:
            continue
        name = named[field_name]
        ref = _lookup(columns, name)
        called = Public(field_name)
        if ref is None:
            raise _unfit(shard, columns, "no column {} for the {}", name, called)
        if ref.kind not in {"text", "other", "json", "null"} or "<" in ref.type_name:
            what, kind = "column {} holds {}, which is no {}", ref.type_name or ref.kind
            raise _unfit(shard, columns, what, name, kind, called)
        found[field_name] = () if ref.kind == "null" else (ref,)
    return found


def _lookup(columns: tuple[ColumnRef, ...], dotted: str) -> ColumnRef | None:
    for ref in columns:
        if ref.dotted == dotted:
            return ref
    # Otherwise the path may lead into a text column that holds JSON objects.
    for ref in columns:
        if ref.kind == "text" and dotted.startswith(ref.dotted + "."):
            inside = tuple(dotted[len(ref.dotted) + 1 :].split("."))
            return ColumnRef((*ref.path, *inside), "json", "JSON text", depth=len(ref.path))
    return None


def _metadata(columns: tuple[ColumnRef, ...]) -> dict[MetadataField, tuple[ColumnRef, ...]]:
    found: dict[MetadataField, tuple[ColumnRef, ...]] = {}
    by_path = {ref.path: ref for ref in columns if ref.kind in ("text", "other")}
    for name, usual in METADATA_NAMES.items():
        refs = [by_path[(top,)] for top in usual if (top,) in by_path][:1]
        for parent in METADATA_PARENTS:
            refs += [by_path[(parent, key)] for key in usual if (parent, key) in by_path][:1]
            above = by_path.get((parent,))
            if above is not None and above.kind == "text":
                refs += [ColumnRef((parent, key), "json", "JSON text", depth=1) for key in usual]
        if refs:
            found[name] = tuple(refs)
    return found


def _unfit(
    shard: Shard,
    columns: tuple[ColumnRef, ...],
    what: str,
    *facts: object,
    hint: str = "name one of them, with dots for fields inside structs",
) -> CorpusError:
    shown = [f"{ref.dotted} ({ref.type_name})" for ref in columns]
    if len(shown) > _MAX_LISTED:
        shown = [*shown[:_MAX_LISTED], f"and {len(shown) - _MAX_LISTED} more"]
    seen = ", ".join(shown) if shown else "none"
    return CorpusError(
        "{}: " + what + "; columns seen: {}", Place(shard.name), *facts, seen, hint=hint
    )


def _unread_columns(
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
