"""Tell what the columns of a file can be used for, without exposing Arrow types."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import pyarrow as pa
import pyarrow.types as pt

from contam.tables.chat import CONTENT_KEYS, EXTRA_KEYS, ROLE_KEYS, STEP_KEYS

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterator

Kind = Literal["text", "null", "list", "chat", "json", "group", "struct", "tokens", "other"]

_MAX_DEPTH = 4


@dataclass(frozen=True, slots=True)
class TokenIds:
    """How the token ids of a shard are read.

    tokenizer  path of its `tokenizer.json`;  sha256  of that file
    special    ids that are no text, besides those that the tokenizer calls special
    width      bytes of an id, where the format does not say
    packed     whether documents end inside rows, and so may run on into the next row
    following  path or address of the next shard, into which the last document may run on; "" none
    beside     digests of files beside the shard and the next one that say what is in them
    """

    tokenizer: str
    sha256: str
    special: tuple[int, ...] = ()
    width: int = 0
    packed: bool = False
    following: str = ""
    beside: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ColumnRef:
    """One column, or one field inside a struct column.

    path       names from the top-level column downwards
    kind       text: characters; null: no value in the whole file; list: strings to join;
               chat: turns with role and content; json: a field inside a text column that holds
               JSON objects; group: several columns joined as the turns of a chat; tokens: ids of
               tokens; struct and other: nothing to search in
    type_name  the file's own name for the type, for messages
    depth      kind json: how many names lead to the column, the others are inside its JSON
    parts      kind group: its columns in order; its path is one name for all of them
    tokens     kind tokens: how its ids are read, once that is known
    """

    path: tuple[str, ...]
    kind: Kind
    type_name: str = ""
    depth: int = 0
    parts: tuple[ColumnRef, ...] = ()
    tokens: TokenIds | None = None

    def __hash__(self) -> int:
        return hash(self.path)  # asked for with every value that is looked up by its column

    @property
    def column(self) -> tuple[str, ...]:
        """The path of the column itself."""
        return self.path[: self.depth] if self.kind == "json" else self.path

    @property
    def inside(self) -> tuple[str, ...]:
        """The path inside the column's JSON text; empty for other kinds."""
        return self.path[self.depth :] if self.kind == "json" else ()

    @property
    def dotted(self) -> str:
        """The path as a user writes it: `meta.text`."""
        return ".".join(self.path)

    @property
    def single(self) -> tuple[ColumnRef, ...]:
        """The columns that this represents: the parts of a group, else itself."""
        return self.parts if self.kind == "group" else (self,)


@dataclass(frozen=True, slots=True)
class TextColumns:
    """Where the documents of one shard have their text.

    first   the column that is read
    others  columns that may hold the text of a row in which `first` holds none, best first
    named   the user named `first`: such rows are counted and not read
    """

    first: ColumnRef
    others: tuple[ColumnRef, ...] = ()
    named: bool = False

    @property
    def every(self) -> tuple[ColumnRef, ...]:
        """The columns whose text is read, best first."""
        return (self.first,) if self.named else (self.first, *self.others)


def describe(schema: pa.Schema) -> tuple[ColumnRef, ...]:
    """List every column of a schema, and the fields inside its structs, in file order."""
    return tuple(ref for field in schema for ref in _walk(field, ()))


def is_text(kind: pa.DataType) -> bool:
    """Say whether values of this type are characters: strings, or bytes holding UTF-8."""
    if pt.is_dictionary(kind):
        return is_text(kind.value_type)
    if isinstance(kind, pa.BaseExtensionType):
        return is_text(kind.storage_type)
    return bool(
        pt.is_string(kind)
        or pt.is_large_string(kind)
        or pt.is_string_view(kind)
        or pt.is_binary(kind)
        or pt.is_large_binary(kind)
        or pt.is_binary_view(kind)
    )


def is_list(kind: pa.DataType) -> bool:
    """Say whether values of this type are lists."""
    return bool(pt.is_list(kind) or pt.is_large_list(kind) or pt.is_fixed_size_list(kind))


def with_leaves(kind: pa.DataType, leaf: Callable[[pa.DataType], pa.DataType]) -> pa.DataType:
    """The type with what `leaf` gives for each type in it that has no children."""
    if pt.is_struct(kind):
        return pa.struct([one.with_type(with_leaves(one.type, leaf)) for one in kind])
    if pt.is_map(kind):
        key, item = kind.key_field, kind.item_field
        return pa.map_(
            key.with_type(with_leaves(key.type, leaf)),
            item.with_type(with_leaves(item.type, leaf)),
            kind.keys_sorted,
        )
    if is_list(kind):
        inner = kind.value_field.with_type(with_leaves(kind.value_type, leaf))
        if pt.is_fixed_size_list(kind):
            return pa.list_(inner, kind.list_size)
        return pa.large_list(inner) if pt.is_large_list(kind) else pa.list_(inner)
    return leaf(kind)


def is_turn(names: Container[str]) -> bool:
    """Say whether a record with these fields is a turn of a conversation, or of a trajectory."""
    said = any(key in names for key in (*CONTENT_KEYS, *EXTRA_KEYS))
    is_step = sum(key in names for key in STEP_KEYS) > 1
    return is_step or (said and any(key in names for key in ROLE_KEYS))


def _walk(field: pa.Field, above: tuple[str, ...]) -> Iterator[ColumnRef]:
    path = (*above, field.name)
    yield ColumnRef(path, _kind(field.type), str(field.type))
    if pt.is_struct(field.type) and len(path) < _MAX_DEPTH:
        for i in range(field.type.num_fields):
            yield from _walk(field.type.field(i), path)


def _kind(kind: pa.DataType) -> Kind:
    if is_text(kind) or pt.is_null(kind):
        return "null" if pt.is_null(kind) else "text"
    if pt.is_struct(kind):
        return "struct"
    if is_list(kind):
        inner = kind.value_type
        if is_text(inner):
            return "list"
        if pt.is_integer(inner):
            return "tokens"
        # {"text", "type"} without a role is a part of a message, not a turn.
        if pt.is_struct(inner) and is_turn({inner.field(i).name for i in range(inner.num_fields)}):
            return "chat"
    return "other"
