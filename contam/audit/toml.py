"""Values as TOML writes them."""

from __future__ import annotations

import json

from contam.errors import UsageError


def toml_text(value: str) -> str:
    """A basic string. Raises UsageError for half a character, which no TOML file can hold."""
    try:
        value.encode("utf-8")
    except UnicodeEncodeError as error:
        raise UsageError(f"{value!a} is not text", hint="give it in UTF-8") from error
    # TOML has no pairs of surrogates, and wants one more control character escaped than JSON.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007F")
