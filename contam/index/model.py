"""Define the data of an index: recipe, shards, segments and their files, and their JSON.

indexes/FORMAT.md specifies how each of these is written down.
"""

from __future__ import annotations

import hashlib
import json
import types
from dataclasses import dataclass, is_dataclass
from functools import cache
from typing import Any, Final, TypeVar, cast, get_args, get_origin, get_type_hints

from contam.corpus.columns import UnreadColumns  # noqa: TC001 - manifests are read by their types

T = TypeVar("T")

FORMAT: Final = 4
"""Version of everything on disk; a reader refuses any other."""

DOCUMENT_BITS: Final = 23
"""Bits that number the documents of a segment, at most."""

LEAST_KEY_BITS: Final = 24
KEY_BITS: Final = 36
MOST_KEY_BITS: Final = 64 - DOCUMENT_BITS
"""Bits of a hash that an index can keep, the highest ones; if the recipe says none, `KEY_BITS`, and
of a corpus of `LARGE_CORPUS` the most."""

LARGE_CORPUS: Final = 10**10
"""Bytes of the shards' files from which on documents read in vain cost more than longer keys."""

MARK: Final = 256
"""In rows of bits, how many 1 there are from one whose place is known to the next."""

BUCKET_BITS: Final = 16
"""Bits of a shingle that choose its bucket: the highest ones."""

CAPPED_DOCUMENTS: Final = 1 << 16
"""Documents of a segment for which `Recipe.cap` is meant; of larger ones more are kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """What decides the content of an index, apart from the corpus.

    unit    "word", "char", or "tokenizer" (then `tokenizer` holds the file and its digest)
    gram    tokens of an indexed gram, k
    stride  tokens from one indexed gram to the next, w
    cap     documents kept of one gram in a segment: of a larger one than `CAPPED_DOCUMENTS` so many
            for each that many
    key_bits  of the hash of a gram or of letters; 0, before an index is begun, for as many as its
            corpus needs
    minhash  whether there are windows, which lead to edited copies
    """

    name: str
    unit: str
    gram: int
    stride: int
    cap: int
    key_bits: int
    normaliser: str
    tokenizer: dict[str, str] | None = None
    minhash: bool = False

    @property
    def guarantee(self) -> int:
        """Tokens of the shortest run that is always found: L = w + k - 1."""
        return self.gram + self.stride - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardRecord:
    """A shard as it was when it was indexed.

    name     its name in reports; uri  its path when it was indexed
    digest   contam.corpus.shards.shard_digest: checked before any answer that reads the shard
    sha256   of the whole file: checked by `verify`
    column   how its text column was chosen (None: by convention)
    counts   ShardCoverage.to_dict() of its rows
    failure  why it could not be indexed, None when it was; a failed shard has no segment
    retired  no answer counts it any more
    columns  field of a document (id, url, date, source) -> the column that was named for it; None
             where none was
    unread   columns of text besides the one that was read; None where there are none
    """

    name: str
    uri: str
    format: str
    size_bytes: int
    digest: str
    sha256: str
    column: str | None
    counts: dict[str, int]
    failure: str | None = None
    retired: bool = False
    columns: dict[str, str] | None = None
    unread: UnreadColumns | None = None

    @property
    def n_rows(self) -> int:
        """Its rows, blank lines among them."""
        return self.counts["rows"] + self.counts.get("n_blank", 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class RowSpan:
    """Consecutive rows of one shard; `shard` is its place in the manifest's list."""

    shard: int
    first_row: int
    n_rows: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FileRecord:
    """One file of a segment.

    checks  SHA-256 of its table of block checksums
    """

    name: str
    n_bytes: int
    sha256: str
    checks: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentRecord:
    """An immutable piece of an index: the documents of `spans`, numbered through in order.

    n_entries  grams that were taken, with those that repeat or are capped
    n_bytes    raw text, as UTF-8
    """

    id: str
    spans: tuple[RowSpan, ...]
    n_documents: int
    n_tokens: int
    n_entries: int
    n_bytes: int
    files: tuple[FileRecord, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """The whole index at one moment.

    paths        what the user named as corpus, sorted
    pending      names of shards that a build still has to read; () when it is whole
    retired      file of retired documents, None when there is none
    exclude      patterns of shards that are excluded on purpose; excluded  names of those
    passed_over  folders with files like shards that were not entered
    """

    recipe: Recipe
    paths: tuple[str, ...]
    shards: tuple[ShardRecord, ...]
    segments: tuple[SegmentRecord, ...]
    pending: tuple[str, ...]
    retired: FileRecord | None
    exclude: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()
    passed_over: tuple[str, ...] = ()


class PlainError(ValueError):
    """A plain value does not have its type; the message names the place."""


def spell(value: object) -> bytes:
    """The one spelling of plain values and dataclasses as JSON."""
    # In ASCII, because a path may hold bytes that are no UTF-8.
    plain = json.dumps(value, default=_fields, sort_keys=True, separators=(",", ":"))
    return plain.encode("ascii")


def digest_of(value: object) -> str:
    """SHA-256 of the spelling of a value, hexadecimal."""
    return hashlib.sha256(spell(value)).hexdigest()


def _fields(value: Any) -> dict[str, object]:  # noqa: ANN401 - any dataclass
    return {name: getattr(value, name) for name in value.__dataclass_fields__}


def from_plain(cls: type[T], value: object, where: str) -> T:
    """The dataclass `cls` from what `spell` made of one; `where` names it in errors.

    Every key must be there and no other, every value of its very type (a truth value is no
    number). Raises PlainError.
    """
    return cast("T", _value(cls, value, where))


_hints = cache(get_type_hints)


def _value(kind: Any, value: object, where: str) -> object:  # noqa: ANN401 - a type annotation
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is types.UnionType:
        return None if value is None else _value(arguments[0], value, where)
    if origin is tuple:
        if not isinstance(value, list):
            raise PlainError(f"{where} is no list")
        return tuple(_value(arguments[0], one, f"{where}[{i}]") for i, one in enumerate(value))
    if origin is dict or is_dataclass(kind):
        if not isinstance(value, dict):
            raise PlainError(f"{where} is no object")
        known = dict.fromkeys(value, arguments[1]) if origin is dict else _hints(kind)
        if missing := known.keys() - value.keys():
            raise PlainError(f"{where} lacks {min(missing)!r}")
        if extra := value.keys() - known.keys():
            raise PlainError(f"{where} has an unknown key {min(extra)!r}")
        found = {key: _value(known[key], one, f"{where}.{key}") for key, one in value.items()}
        return found if origin is dict else kind(**found)
    if type(value) is not kind:
        raise PlainError(f"{where} is {value!r:.60}, not of type {kind.__name__}")
    return value
