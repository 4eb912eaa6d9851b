"""Find the strings that a document's text is joined from, and what a span of the text is in them.

A reader joins texts in ways of its own: turns of a conversation, several columns, calls of tools.
Here it reads a copy of the record in which every string is one letter that stands for it, and so
says itself where each string went.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from contam.tables.edits import Span

Step = str | int
Path = tuple[Step, ...]

# Letters that are neither white space nor surrogates, for a million strings.
_FIRST = 0x3400
_SURROGATES = range(0xD800, 0xE000)
_MOST = 0x110000 - _FIRST - len(_SURROGATES)
_ANY_SURROGATE = re.compile("[\ud800-\udfff]")
_ESCAPED_RUN = re.compile("[\udc80-\udcff]+")
_LONGEST_CHAR = 4


class Leaf(NamedTuple):
    """A string of a record, and the steps to it: names of fields, and places in lists."""

    path: Path
    text: str


def marked(value: object, leaves: list[Leaf], at: Path = ()) -> object:
    """A copy of a value with a letter in place of every string that is not empty.

    leaves  gets the strings, in the order of their letters
    Raises ValueError for more than a million strings.
    """
    if isinstance(value, str):
        if not value:
            return value
        if len(leaves) == _MOST:
            raise ValueError(f"a document of more than {_MOST:,} texts")
        leaves.append(Leaf(at, value))
        return _letter(len(leaves) - 1)
    if isinstance(value, Mapping):
        return {name: marked(inner, leaves, (*at, name)) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [marked(inner, leaves, (*at, place)) for place, inner in enumerate(value)]
    return value


class Joined:
    """A document's text as it is joined from strings."""

    def __init__(self, pattern: str, leaves: Sequence[Leaf]) -> None:
        """Join the strings as a reader did.

        pattern  what it made of the copy that `marked` returned
        """
        self._pieces = [_number(char, len(leaves)) for char in pattern]
        self._leaves = leaves
        #: The text before bytes and surrogates that are no text are replaced in it.
        self.raw = "".join(
            char if number is None else leaves[number].text
            for char, number in zip(pattern, self._pieces, strict=True)
        )

    def stretches(self, spans: Sequence[Span]) -> dict[int, list[Span]]:
        """The spans of the text as it is read, as spans of the leaves: number of leaf -> spans.

        What only joins two leaves, a line feed, belongs to none and is left.
        Raises ValueError where a span is not in the text, or in no leaf at all.
        """
        found: dict[int, list[Span]] = {}
        raw_spans = unrepaired(self.raw, spans)
        if not raw_spans:
            return found
        left = iter(raw_spans)
        begin, end = next(left)
        n_found = 0
        for first, last, number in self._bounds():
            while begin < last:
                if end > first and number is not None:
                    found.setdefault(number, []).append(
                        (max(begin, first) - first, min(end, last) - first)
                    )
                    n_found += 1
                if end > last:
                    break
                if not n_found:
                    raise ValueError("a span lies between two texts")
                n_found = 0
                following = next(left, None)
                if following is None:
                    return found
                begin, end = following
        return found

    def _bounds(self) -> Iterator[tuple[int, int, int | None]]:
        at = 0
        for number in self._pieces:
            end = at + (1 if number is None else len(self._leaves[number].text))
            yield at, end, number
            at = end


def unrepaired(raw: str, spans: Sequence[Span]) -> list[Span]:
    """Spans of a text as it is read, as spans of what it was before it was repaired.

    raw  with a surrogate for each byte that is no UTF-8, see `contam.tables.json_text.clean`
    Raises ValueError when a span is empty, before the one ahead of it, or past the end.
    """
    starts: Sequence[int] = range(len(raw) + 1)
    # With others among them, all surrogates are replaced one by one.
    if (
        not raw.isascii()
        and _ANY_SURROGATE.search(raw)
        and not _ANY_SURROGATE.search(_ESCAPED_RUN.sub("", raw))
    ):
        starts = _read_starts(raw)
    at = 0
    for begin, end in spans:
        if not at <= begin < end < len(starts):
            raise ValueError(f"no code points {begin} to {end} in a text of {len(starts) - 1}")
        at = end
    return [(starts[begin], starts[end]) for begin, end in spans]


def _read_starts(raw: str) -> list[int]:
    """Where in `raw` each code point of the repaired text begins, and where the last one ends."""
    starts: list[int] = []
    at = 0
    for run in _ESCAPED_RUN.finditer(raw):
        starts.extend(range(at, run.start()))
        data = run.group().encode("utf-8", "surrogateescape")
        at = 0
        while at < len(data):
            starts.append(run.start() + at)
            at += _first_length(data[at : at + _LONGEST_CHAR])
        at = run.end()
    starts.extend(range(at, len(raw) + 1))
    return starts


def _first_length(data: bytes) -> int:
    """How many bytes become the first code point when bytes that are no UTF-8 are replaced."""
    try:
        return len(data.decode()[0].encode())
    except UnicodeDecodeError as error:
        return len(data[: error.start].decode()[0].encode()) if error.start else error.end


def _letter(number: int) -> str:
    code = _FIRST + number
    return chr(code if code < _SURROGATES.start else code + len(_SURROGATES))


def _number(letter: str, n_letters: int) -> int | None:
    """Which string a letter stands for; None for one that joins strings."""
    code = ord(letter)
    if code >= _SURROGATES.stop:
        code -= len(_SURROGATES)
    number = code - _FIRST
    return number if 0 <= number < n_letters else None
