"""Write values as TOML, and describe mistakes in a TOML file."""

from __future__ import annotations

import json
import tomllib
from typing import TYPE_CHECKING, Any, Final

from contam.errors import ConfigError, Place, Plain, Public, Remedy, UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from pydantic import ValidationError

UNKNOWN_KEY: Final = "unexpected_keyword_argument"
_WORDS: Final = {
    UNKNOWN_KEY: "there is no such key",
    "missing": "is needed",
    "missing_argument": "is needed",
    "tuple_type": 'is a list of texts: ["one", "two"]',
    "string_type": "is a text",
    "dataclass_type": "is a table of keys",
    "bool_parsing": "is true or false",
    "bool_type": "is true or false",
    "int_parsing": "is a whole number",
    "int_type": "is a whole number",
    "date_from_datetime_parsing": "is a day: 2024-01-31",
    "date_type": "is a day: 2024-01-31",
}
"""What the validator means, for somebody who has never seen it."""


def toml_text(value: str) -> str:
    """A basic string. Raises UsageError for half a character, which no TOML file can hold."""
    try:
        value.encode("utf-8")
    except UnicodeEncodeError as error:
        raise UsageError("{!a} is not text", value, remedy=Remedy.GIVE_IN_UTF8) from error
    # TOML has no pairs of surrogates, and wants one more control character escaped than JSON.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007F")


def read_toml(path: Path, *, remedy: Remedy) -> dict[str, Any]:
    """The tables of a file. Raises ConfigError; `remedy` is for one that cannot be read."""
    try:
        text = path.read_text("utf-8")
    except OSError as error:
        raise ConfigError(
            "cannot read {}: {}", path, Public(error.strerror), remedy=remedy
        ) from error
    except ValueError as error:
        raise ConfigError(
            "{} is not UTF-8: {}", path, Plain(error), remedy=Remedy.WRITE_AGAIN
        ) from error
    return parse_toml(text, str(path))


def parse_toml(text: str, origin: str) -> dict[str, Any]:
    """The tables of a text. Raises ConfigError that names its origin."""
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConfigError(
            "{} is not TOML: {}", Place(origin), Plain(error), remedy=Remedy.MEND_LINE
        ) from error


def first_wrong(error: ValidationError) -> dict[str, Any]:
    """The mistake to name: a key that there is not, before the one it may have been meant to be."""
    found: list[Any] = error.errors(include_input=False, include_url=False)
    unknown = [mistake for mistake in found if mistake["type"] == UNKNOWN_KEY]
    return dict((unknown or found)[0])


def describe_mistake(mistake: Mapping[str, Any]) -> str:
    """What is wrong, in words for somebody who has never seen the validator."""
    return _WORDS.get(mistake["type"], str(mistake["msg"]))
