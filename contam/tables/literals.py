"""Replace stretches of the strings of a JSON text, and leave every other character as it is."""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from typing import TYPE_CHECKING, ClassVar, NamedTuple, Self

from contam.tables.json_text import at_path, json_or_none

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contam.tables.edits import Span

_BLANKS = re.compile("[ \t\r\n]*")
# Two escapes of a pair of surrogates are one code point, as parsers read them.
_JSON_ESCAPE = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\."
)
# Of numbers only the kind is asked for, and a long one has no value as an int.
_DECODER = json.JSONDecoder(parse_int=float)


class Change(NamedTuple):
    """Characters [begin, end) of a text, and what stands there instead."""

    begin: int
    end: int
    new: str


class Literal(str):
    """A string that stands in a text: its value, and where its characters are written.

    escapes     what writes one character with several; None where nothing does
    begin, end  of the string in the text, without quotes around it
    written     what stands there
    within      the string that holds this text; None when no other does
    """

    escapes: ClassVar[re.Pattern[str] | None] = None
    __slots__ = ("begin", "end", "within", "written")

    begin: int
    end: int
    written: str
    within: Literal | None

    def __new__(
        cls, value: str, begin: int, end: int, written: str, within: Literal | None
    ) -> Self:
        """A string of this value, written there."""
        made = super().__new__(cls, value)
        made.begin, made.end, made.written, made.within = begin, end, written, within
        return made

    def changes(self, spans: Sequence[Span], replacement: str | None) -> list[Change]:
        """What to change in the outermost text so that the value is without its spans."""
        new = replacement or ""
        changes = [Change(begin, end, new) for begin, end in spans]
        literal: Literal | None = self
        while literal is not None:
            changes = literal.outside(changes)
            literal = literal.within
        return changes

    def spelt(self, new: str) -> str:
        """Other text as it is written in this string."""
        return new

    def outside(self, changes: list[Change]) -> list[Change]:
        """Changes of the value as changes of the text that holds it."""
        places, extras = [], [0]
        for match in self.escapes.finditer(self.written) if self.escapes else ():
            places.append(match.start() - extras[-1])
            extras.append(extras[-1] + len(match.group()) - 1)

        def place_outside(place: int) -> int:
            return self.begin + place + extras[bisect_left(places, place)]

        return [
            Change(
                place_outside(change.begin),
                place_outside(change.end),
                self.spelt(change.new),
            )
            for change in changes
        ]


class JsonString(Literal):
    """A string in a JSON text."""

    escapes = _JSON_ESCAPE
    __slots__ = ()

    def spelt(self, new: str) -> str:
        """What is added is written in ASCII where the string is."""
        return json.dumps(new, ensure_ascii=self.written.isascii())[1:-1]


class QuotedCell(Literal):
    """A cell of a delimited table, between quotes."""

    escapes = re.compile('""')
    __slots__ = ()

    def spelt(self, new: str) -> str:
        """Quotes are doubled."""
        return new.replace('"', '""')


class BareCell(Literal):
    """A cell of a delimited table, without quotes."""

    __slots__ = ()

    def outside(self, changes: list[Change]) -> list[Change]:
        """The whole cell gets quotes where it must have them now."""
        new = applied(str(self), changes)
        if new and not set('"\r\n,;\t').intersection(new):
            return super().outside(changes)
        quoted = new.replace('"', '""')
        return [Change(self.begin, self.end, f'"{quoted}"')]


def applied(text: str, changes: Sequence[Change]) -> str:
    """The text with all changes. Raises ValueError for two that overlap."""
    pieces, at = [], 0
    for begin, end, new in sorted(changes):
        if begin < at:
            raise ValueError("a text stands within another one")
        pieces += [text[at:begin], new]
        at = end
    return "".join([*pieces, text[at:]])


def located(text: str, within: Literal | None = None) -> object:
    """The value of a JSON text that a parser has accepted, with a `JsonString` for each string.

    Of a name that occurs twice in one object the last value counts, as for parsers. Numbers are
    floats. Raises ValueError for what is no JSON.
    """
    holder: list[object] = []
    above: list[tuple[dict[str, object] | list[object], str]] = []
    inside: dict[str, object] | list[object] = holder
    at = _skip(text, 0)
    name = ""
    while True:
        # A value begins here, or a container that is empty ends.
        char = text[at : at + 1]
        if char in {"{", "["}:
            above.append((inside, name))
            inside = {} if char == "{" else []
            at = _skip(text, at + 1)
            if text[at : at + 1] not in ("}", "]"):
                if char == "{":
                    name, at = _name(text, at)
                continue
        else:
            value, end = _DECODER.raw_decode(text, at)
            if char == '"':
                value = JsonString(value, at + 1, end - 1, text[at + 1 : end - 1], within)
            _put(inside, name, value)
            at = _skip(text, end)
        while above and text[at : at + 1] in ("}", "]"):
            ended = inside
            inside, name = above.pop()
            _put(inside, name, ended)
            at = _skip(text, at + 1)
        if not above:
            break
        if text[at : at + 1] != ",":
            raise ValueError(f"no comma at character {at}")
        at = _skip(text, at + 1)
        if isinstance(inside, dict):
            name, at = _name(text, at)
    if at != len(text):
        raise ValueError("there is more than one value")
    return holder[0]


def located_at(record: object, path: Sequence[str]) -> object:
    """The value at a path, as `contam.tables.json_text.at_path` finds it, with literals.

    record  what `located` returned
    """
    value = record
    for step in path:
        if isinstance(value, Literal):
            value = located(str(value), value) if json_or_none(str(value)) is not None else None
        value = at_path(value, [step])
    return value


def _put(inside: dict[str, object] | list[object], name: str, value: object) -> None:
    if isinstance(inside, dict):
        inside[name] = value
    else:
        inside.append(value)


def _name(text: str, at: int) -> tuple[str, int]:
    """The name of a field that begins here, and where its value begins."""
    name, end = _DECODER.raw_decode(text, at)
    at = _skip(text, end)
    if not isinstance(name, str) or text[at : at + 1] != ":":
        raise ValueError(f"no name at character {at}")
    return name, _skip(text, at + 1)


def _skip(text: str, at: int) -> int:
    found = _BLANKS.match(text, at)
    return found.end() if found else at
