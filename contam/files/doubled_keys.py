"""Reject JSON objects with duplicate keys, of which parsers silently keep one."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

Path: TypeAlias = tuple[str | int, ...]


class _Pairs(list[tuple[str, Any]]):
    """An object with everything that was written into it."""


class _DoubledError(Exception):
    """Some object has a name twice."""


def _refuse(pairs: list[tuple[str, Any]]) -> None:
    if len(pairs) > 1 and len({name for name, _ in pairs}) < len(pairs):
        raise _DoubledError


# Numbers stay as they are written: nothing here is about their values, nor bounded by their length.
_LOOKING: Final = json.JSONDecoder(object_pairs_hook=_refuse, parse_int=str, parse_float=str)
_KEEPING: Final = json.JSONDecoder(object_pairs_hook=_Pairs, parse_int=str, parse_float=str)

# White space is allowed between a name and its colon, and hardly ever written.
_SPACED: Final = re.compile(rb'"[ \t\r\n]+:')


def doubled_key(text: bytes, *, equal: bool = False, inside: bool = False) -> Path | None:
    """The path of a name that occurs twice in one object of a JSON text; None when there is none.

    equal   whether a name may occur again with the same value
    inside  whether only the lists and objects of the outermost object matter, and their names
    The path ends in that name. What is inside an object is reported before the object itself.

    Raises ValueError or RecursionError for what is no JSON in UTF-8.
    """
    # Without its blanks: a decoder's own `decode` looks for them with an expression, slowly.
    whole = text.decode().strip(" \t\r\n")
    if not _is_doubled(whole):
        return None
    value = _KEEPING.decode(whole)
    if inside:
        value = _Pairs(pair for pair in value if isinstance(pair[1], list))
    return _find(value, (), equal=equal)


def may_repeat(text: bytes, value: object) -> bool:
    """Whether an object of a JSON text may have a name twice; never False when one has.

    value  what a parser made of the text, which has every name of an object once

    A name ends in a quote and a colon, however it is spelt, so that a text with no more of these
    than its value has names repeats none. Far cheaper than `doubled_key`.
    """
    n_ends = text.count(b'":')
    # A single byte is found ten times as fast as two, and these three are hardly ever there.
    if b'" ' in text or b"\t" in text or b"\r" in text or b"\n" in text:
        n_ends += len(_SPACED.findall(text))
    # Every name has such an end: with no more ends than names of its own, an object holds no other.
    return not (isinstance(value, dict) and n_ends == len(value)) and n_ends != _n_names(value)


def repeated(
    text: bytes, value: object, paths: Iterable[tuple[str, ...]]
) -> tuple[str, ...] | None:
    """The first of some paths on which, or below which, a name occurs twice in its object.

    text   one JSON value; it may hold bytes that are not UTF-8
    value  what a parser made of it

    Raises ValueError or RecursionError for what is no JSON.
    """
    if not may_repeat(text, value):
        return None
    whole = text.decode("utf-8", "surrogateescape").strip(" \t\r\n")
    if not _is_doubled(whole):
        return None
    with_repeats = _KEEPING.decode(whole)
    return next((path for path in paths if _repeats(with_repeats, path)), None)


def _is_doubled(whole: str) -> bool:
    try:
        _, end = _LOOKING.raw_decode(whole)
    except _DoubledError:
        return True
    if end != len(whole):
        raise ValueError("there is more than one value")
    return False


def _repeats(value: object, path: Sequence[str]) -> bool:
    for step in path:
        pairs = value if isinstance(value, _Pairs) else ()
        found = [inner for name, inner in pairs if name == step]
        if len(found) != 1:
            return len(found) > 1
        value = found[0]
    return _find(value, ()) is not None


def _n_names(value: object) -> int:
    """How many names all objects of a value have."""
    n_names = 0
    left = [value]
    while left:
        element = left.pop()
        if isinstance(element, dict):
            n_names += len(element)
            element = element.values()
        elif not isinstance(element, list):
            continue
        left += [inner for inner in element if isinstance(inner, (dict, list))]
    return n_names


def _find(value: object, at: Path, *, equal: bool = False) -> Path | None:
    seen: dict[str | int, Any] = {}
    inner: list[tuple[str | int, Any]] = []
    if isinstance(value, _Pairs):
        inner = list(value)
    elif isinstance(value, list):
        inner = list(enumerate(value))
    for step, element in inner:
        found = _find(element, (*at, step), equal=equal)
        if found is not None:
            return found
    for step, element in inner:
        if step in seen and not (equal and seen[step] == element):
            return (*at, step)
        seen[step] = element
    return None
