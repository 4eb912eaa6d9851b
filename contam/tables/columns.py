"""What the columns of a file can serve for, without handing Arrow types to the callers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import pyarrow as pa
import pyarrow.types as pt

if TYPE_CHECKING:
    from collections.abc import Iterator

Kind = Literal["text", "null", "list", "chat", "json", "struct", "other"]

ROLE_KEYS = ("role", "from", "speaker")
CONTENT_KEYS = ("content", "value", "text")
_MAX_DEPTH = 4


@dataclass(frozen=True, slots=True)
class ColumnRef:
    """One column, or one field inside a struct column.

    path       names from the top-level column downwards
    kind       text: characters; null: no value in the whole file; list: strings to join;
               chat: turns with role and content; json: a field inside a text column that holds
               JSON objects; struct and other: nothing to search in
    type_name  the file's own name for the type, for messages
    depth      kind json: how many names lead to the column, the others lie inside its JSON
    """

    path: tuple[str, ...]
    kind: Kind
    type_name: str = ""
    depth: int = 0

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


def content_field(kind: pa.DataType) -> str | None:
    """Return the field of a turn that holds its text."""
    names = {kind.field(i).name for i in range(kind.num_fields)}
    return next((name for name in CONTENT_KEYS if name in names), None)


def role_field(kind: pa.DataType) -> str | None:
    """Return the field of a turn that names who speaks."""
    names = {kind.field(i).name for i in range(kind.num_fields)}
    return next((name for name in ROLE_KEYS if name in names), None)


def _walk(field: pa.Field, above: tuple[str, ...]) -> Iterator[ColumnRef]:
    path = (*above, field.name)
    yield ColumnRef(path, _kind(field.type), str(field.type))
    if pt.is_struct(field.type) and len(path) < _MAX_DEPTH:
        for i in range(field.type.num_fields):
            yield from _walk(field.type.field(i), path)


def _kind(kind: pa.DataType) -> Kind:
    if is_text(kind):
        return "text"
    if pt.is_null(kind):
        return "null"
    if pt.is_struct(kind):
        return "struct"
    if is_list(kind):
        inner = kind.value_type
        if is_text(inner):
            return "list"
        # {"text", "type"} without a role is a part of a message, not a turn.
        if pt.is_struct(inner) and content_field(inner) and role_field(inner):
            return "chat"
    return "other"
