"""Conversations as one text: turns joined by line feeds, wherever the turns come from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from contam.tables.columns import CONTENT_KEYS, ROLE_KEYS

TURN_SEPARATOR = "\n"


class Turn(NamedTuple):
    """One turn: who speaks ("" when unknown) and what is said."""

    role: str
    text: str


def turns_of(value: Sequence[object]) -> list[Turn]:
    """Read the turns of a list of messages, `from`/`value` pairs or plain strings.

    A turn without content is empty, so that turn numbers stay those of the list. Raises
    ValueError for anything that is none of these.
    """
    return [_turn(entry) for entry in value]


def joined(turns: Sequence[Turn]) -> str:
    """Return the text that a conversation is searched as."""
    return TURN_SEPARATOR.join(turn.text for turn in turns)


def turn_at(turns: Sequence[Turn], char: int) -> str | None:
    """Name the turn that code point `char` of the joined text lies in: "3:assistant".

    Turns are counted from 0; a separator belongs to the turn before it. None past the end.
    """
    begin = 0
    for index, turn in enumerate(turns):
        begin += len(turn.text) + len(TURN_SEPARATOR)
        if 0 <= char < begin:
            return f"{index}:{turn.role}" if turn.role else str(index)
    return None


def _turn(entry: object) -> Turn:
    if entry is None:
        return Turn("", "")
    if isinstance(entry, str):
        return Turn("", entry)
    if isinstance(entry, Mapping):
        role = next((entry[key] for key in ROLE_KEYS if entry.get(key)), "")
        content = next((entry[key] for key in CONTENT_KEYS if key in entry), None)
        return Turn(str(role), _content(content))
    raise ValueError(f"a turn is a {type(entry).__name__}, not a message")


def _content(content: object) -> str:
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if isinstance(content, Mapping):
        # A part of another medium (an image, a tool call) has no text.
        return _content(content.get("text"))
    if isinstance(content, Sequence) and not isinstance(content, bytes | bytearray):
        return TURN_SEPARATOR.join(_content(part) for part in content)
    raise ValueError(f"a turn's content is a {type(content).__name__}, not text")
