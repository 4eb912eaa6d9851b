"""Objects of a JSON text in which one name stands twice: parsers keep one of the two, silently."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Sequence

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


def doubled_key(text: bytes) -> Path | None:
    """Where a name stands twice in one object of a JSON text; None when every object is sound.

    The path ends in that name. What is within an object is told before the object itself.

    Raises ValueError or RecursionError for what is no JSON in UTF-8.
    """
    # Without its blanks: a decoder's own `decode` looks for them with an expression, slowly.
    whole = text.decode().strip(" \t\r\n")
    try:
        _, end = _LOOKING.raw_decode(whole)
    except _DoubledError:
        return _find(_KEEPING.decode(whole), ())
    if end != len(whole):
        raise ValueError("there is more than one value")
    return None


def stands_twice(
    text: bytes, path: Sequence[str], *, inner: Sequence[str] = (), n_inner: int = 0
) -> bool:
    """Whether a name on this path, or below it, stands twice in its object of a JSON text.

    inner, n_inner  names of objects below the path, of which there are so many

    Cheap where no name of the path stands twice in the text, nor one of `inner` oftener than there
    are such objects; otherwise everything is looked at. A name that is spelt with escapes is not
    noticed. Raises ValueError or RecursionError for what is no JSON.
    """
    names = [(name, 1) for name in path] + [(name, n_inner) for name in inner if n_inner]
    if all(text.count(b'"%s"' % name.encode()) <= most for name, most in names):
        return False
    value: object = _KEEPING.decode(text.decode("utf-8", "surrogateescape"))
    for step in path:
        found = [one for name, one in value if name == step] if isinstance(value, _Pairs) else []
        if len(found) != 1:
            return len(found) > 1
        value = found[0]
    return bool(n_inner) and _find(value, ()) is not None


def _find(value: object, at: Path) -> Path | None:
    seen = set()
    inner: list[tuple[str | int, Any]] = []
    if isinstance(value, _Pairs):
        inner = list(value)
    elif isinstance(value, list):
        inner = list(enumerate(value))
    for step, one in inner:
        found = _find(one, (*at, step))
        if found is not None:
            return found
    for step, _ in inner:
        if step in seen:
            return (*at, step)
        seen.add(step)
    return None
