"""Parse the JSON of logs, and take values by their kind."""

from __future__ import annotations

import json
from typing import Any, Final

import orjson

from contam.errors import LogError, Place, Public
from contam.files.doubled_keys import doubled_key, may_repeat

Row = dict[str, Any]

CUT_OR_CHANGED: Final = "the file is not whole, or was changed: copy it again"
"""The way out for a file that cannot have been written as it is."""


def loads(text: bytes) -> Any:  # noqa: ANN401 - whatever JSON can say
    """Parse JSON, the bare NaN and Infinity of Python's own writer included. Raises ValueError."""
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return _whole_characters(json.loads(text))


def _whole_characters(value: Any) -> Any:  # noqa: ANN401 - whatever JSON can say
    """The value with halves of surrogate pairs, which a cut-off answer may end in, replaced."""
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, list):
        return [_whole_characters(element) for element in value]
    if isinstance(value, dict):
        return {
            _whole_characters(key): _whole_characters(element) for key, element in value.items()
        }
    return value


def parsed(text: bytes, where: str) -> Any:  # noqa: ANN401 - whatever JSON can say
    """Parse JSON; LogError, with the place, for anything else and for a name given twice."""
    try:
        value = loads(text)
        doubled = doubled_key(text) if may_repeat(text, value) else None
    except RecursionError as error:
        raise LogError("{}: JSON nested too deeply", Place(where)) from error
    except ValueError as error:
        reason = str(error).splitlines()[0]
        raise LogError(
            "{}: not valid JSON ({})", Place(where), Public(reason), hint=CUT_OR_CHANGED
        ) from error
    if doubled is not None:
        # Parsers give the last of the two: a score could count that nobody sees.
        name = ".".join(map(str, doubled))
        raise LogError(
            "{}: the field {!r} occurs twice in one object", Place(where), name,
            hint="no evaluation tool writes that: remove one of the two",
        )  # fmt: skip
    return value


def put_once(found: dict[str, Any], name: str, value: object, where: str, what: str) -> None:
    """Add a value under a name; LogError where that has one."""
    if name in found:
        raise LogError(
            "{}: {} {} stands here again", Place(where), Public(what), name,
            hint="two runs in one file, or parts of one run put together twice",
        )  # fmt: skip
    found[name] = value


def as_dict(value: object) -> Row:
    """The value when it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def as_list(value: object) -> list[Any]:
    """The value when it is a list, else an empty one."""
    return value if isinstance(value, list) else []


def text_or_none(value: object) -> str | None:
    """The value when it is a text with something in it."""
    return value if isinstance(value, str) and value.strip() else None


def number_or_none(value: object) -> float | None:
    """The value when it is a number (a truth value is not)."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value)
