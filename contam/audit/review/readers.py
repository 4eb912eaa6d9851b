"""What a reader may be called, in the terminal and on the page alike."""

from __future__ import annotations

from typing import Final

from contam.errors import UsageError
from contam.remedies import Remedy

MOST_CHARACTERS: Final = 100
_PATHS: Final = (".", "..")


def reader_name(text: str) -> str:
    """The name with single spaces. Raises UsageError for what cannot be one.

    A name is one line of printable characters and no part of a path: labels are handed on in files
    that are called after it.
    """
    name = text.strip(" ")
    plain = name.isprintable() and not {"/", "\\"} & set(name) and name not in _PATHS
    if not name or len(name) > MOST_CHARACTERS or not plain:
        raise UsageError(
            f"a reader's name has 1 to {MOST_CHARACTERS} printable characters, and no slash",
            remedy=Remedy.GIVE_PLAIN_NAME,
        )
    return " ".join(name.split())
