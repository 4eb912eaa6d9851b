"""Explain validation errors in plain words: where, and what was expected.

Nothing that was sent is repeated: names that the service does not know are shown as `?`.
"""

from __future__ import annotations

import re
from dataclasses import fields
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from contam.benchmark.one_item import USUAL_NAMES
from contam.detect.policies.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pydantic import BaseModel

    Found = Mapping[str, Any]
    Place = tuple[str | int, ...]


_PARAMETERS: Final = frozenset(("query", "path", "header"))
_KEY: Final = "[key]"
_KIND: Final = "kind"
#: How the validator names the ways in which a value may be given: `tuple[constrained-str, ...]`.
_WAY: Final = re.compile(r"constrained-\w+|\w+\[.*\]|str|int")

_PLAIN: Final = {
    "missing": "it is missing",
    "union_tag_not_found": "it is missing",
    "string_type": "a text is expected",
    "int_type": "a whole number is expected",
    "int_parsing": "a whole number is expected",
    "int_from_float": "a whole number is expected",
    "float_type": "a number is expected",
    "float_parsing": "a number is expected",
    "bool_type": "true or false is expected",
    "bool_parsing": "true or false is expected",
    "list_type": "a list is expected",
    "tuple_type": "a list is expected",
    "dict_type": "an object is expected",
    "model_type": "an object is expected",
}
_WITH_FIGURES: Final[dict[str, Callable[[Found], str]]] = {
    "string_too_short": lambda limits: f"a text of {limits['min_length']} or more characters",
    "string_too_long": lambda limits: f"a text of at most {limits['max_length']} characters",
    "too_short": lambda limits: f"a list of {limits['min_length']} or more",
    "too_long": lambda limits: f"a list of at most {limits['max_length']}",
    "greater_than_equal": lambda limits: f"a number of {limits['ge']} or more",
    "less_than_equal": lambda limits: f"a number of at most {limits['le']}",
    "greater_than": lambda limits: f"a number above {limits['gt']}",
    "less_than": lambda limits: f"a number below {limits['lt']}",
    "string_pattern_mismatch": lambda limits: f"a text like {limits['pattern']}",
    "literal_error": lambda limits: str(limits["expected"]),
    "union_tag_invalid": lambda limits: str(limits["expected_tags"]),
}
_OTHER: Final = "the value is none that is taken"
_TYPE: Final = "_type"


def describe_errors(
    errors: Sequence[Found], tags: frozenset[str] = frozenset()
) -> list[dict[str, str]]:
    """The errors of a validator as `place`, `message` and `kind`, each place once.

    tags  names of the kinds of request, with which places may begin

    A list that is empty only because of an error in it is not reported as empty.
    """
    places = [_cut(error, tags) for error in errors]
    found: dict[Place, list[Found]] = {}
    for place, error in zip(places, errors, strict=True):
        within = any(len(other) > len(place) and other[: len(place)] == place for other in places)
        by_the_way = error["type"] == "too_short" or _is_way(error)
        if not (within and by_the_way):
            found.setdefault(place, []).append(error)
    return [_of_place(place, some) for place, some in found.items()]


def _of_place(place: Place, errors: list[Found]) -> dict[str, str]:
    # For a value of one of the expected types, only the errors of that type are reported.
    closer = [error for error in errors if not error["type"].endswith(_TYPE)] or errors
    messages = list(dict.fromkeys(map(_message, closer)))
    expected = " is expected"
    if len(messages) > 1 and all(message.endswith(expected) for message in messages):
        messages = [" or ".join(message.removesuffix(expected) for message in messages) + expected]
    steps = [str(step) if _is_ours(step, place) else "?" for step in place]
    if closer[0]["type"] == "extra_forbidden":
        steps[-1] = "?"
    return {
        "place": ".".join(steps),
        "message": "; ".join(messages),
        "kind": str(closer[0]["type"]),
    }


def _cut(error: Found, tags: frozenset[str]) -> Place:
    """Where an error is, without what only the validator knows."""
    place: Place = tuple(error["loc"])
    if place and place[0] in _PARAMETERS:
        return place
    if place and place[0] in tags:
        place = place[1:]
    if error["type"].startswith("union_tag"):
        return (*place, _KIND)
    return tuple(step for step in place if step != _KEY and not _names_a_way(step))


def _names_a_way(step: str | int) -> bool:
    return isinstance(step, str) and _WAY.fullmatch(step) is not None


def _is_way(error: Found) -> bool:
    return bool(error["loc"]) and _names_a_way(error["loc"][-1])


def _is_ours(step: str | int, place: Place) -> bool:
    return isinstance(step, int) or place[0] in _PARAMETERS or step in known_names()


def _no_such_field(limits: Found) -> str:
    known = ", ".join(limits.get("fields") or ())
    meant = f" (did you mean '{limits['meant']}'?)" if limits.get("meant") else ""
    return f"there is no such field{meant}{f'; there are: {known}' if known else ''}"


def _message(error: Found) -> str:
    kind, limits = error["type"], error.get("ctx") or {}
    if kind in _PLAIN:
        return _PLAIN[kind]
    if kind == "extra_forbidden":
        return _no_such_field(limits)
    if kind == "value_error":
        # Of our own making.
        return str(limits.get("error", _OTHER))
    try:
        return f"{_WITH_FIGURES[kind](limits)} is expected"
    except KeyError:
        return _OTHER


@cache
def known_names() -> frozenset[str]:
    """Names of the fields of every request, and of the rows that a request may give back."""
    # Imported here: `requests` imports the problems, and so this module.
    from contam.server.jobs.intake import requests
    from contam.server.schemas import check
    from contam.server.schemas.common import Strict

    models: list[type[BaseModel]] = [check.Evidence]
    for module in (check, requests):
        models += [
            var
            for var in vars(module).values()
            if isinstance(var, type) and issubclass(var, Strict)
        ]
    return frozenset(
        {name for model in models for name in model.model_fields}
        | {field.name for field in fields(Verdict)}
        | {"evidence", "id", "score", "model", *USUAL_NAMES}
    )
