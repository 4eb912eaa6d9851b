"""Extract values from JSON records by path, also from JSON inside text."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence

import orjson

from contam.files.doubled_keys import repeated
from contam.tables.chat import joined, turns_of

_SURROGATES = re.compile("[\ud800-\udfff]")


def parse(line: bytes) -> object:
    """Read one JSON value; what the strict parser refuses gets a second, tolerant reading.

    Tolerated are NaN and infinities, lone surrogate escapes and bytes that are not UTF-8 (both
    stay visible as surrogates, see `clean`). Raises ValueError for anything else.
    """
    value: object
    try:
        value = orjson.loads(line)
    except orjson.JSONDecodeError:
        value = json.loads(line.decode("utf-8", "surrogateescape"))
    return value


def clean(text: str) -> tuple[bytes, int]:
    """Encode text as UTF-8 with U+FFFD for each surrogate, and count the replaced ones."""
    try:
        return text.encode(), 0
    except UnicodeEncodeError:
        raw = text.encode("utf-8", "surrogateescape") if _escaped_only(text) else None
        if raw is not None:
            # Undecodable bytes of the file: replaced as they would be in any other format.
            return raw.decode("utf-8", "replace").encode(), len(_SURROGATES.findall(text))
        fixed, count = _SURROGATES.subn("\ufffd", text)
        return fixed.encode(), count


def at_path(record: object, path: Sequence[str], *, once: bool = False) -> object:
    """Return the value at `path`, or None; text on the way is read as JSON when it is.

    once  raise ValueError where such JSON has a name of the rest of the path twice in an object
    """
    value = record
    for at, step in enumerate(path):
        if isinstance(value, str | bytes):
            text, value = value, json_or_none(value)
            if once and isinstance(value, Mapping):
                _refuse_doubled(text, value, tuple(path[at:]))
        if not isinstance(value, Mapping):
            return None
        value = value.get(step)
    return value


def text_at(record: object, path: Sequence[str]) -> str | None:
    """Return the document at `path`: text, or turns joined; None when there is none.

    Raises ValueError when the value is neither, and when JSON inside a text has it twice.
    """
    value = at_path(record, path, once=True)
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, list):
        return joined(turns_of(value))
    raise ValueError(f"{'.'.join(path)} is a {type(value).__name__}, not text")


def json_or_none(text: object) -> object:
    """The value of a text that holds JSON; None for anything else."""
    if not isinstance(text, str | bytes):
        return None
    try:
        return parse(text if isinstance(text, bytes) else text.encode())
    except (ValueError, RecursionError):
        return None


def _refuse_doubled(text: str | bytes, value: object, path: tuple[str, ...]) -> None:
    raw = text.encode() if isinstance(text, str) else text
    if repeated(raw, value, [path]) is not None:
        raise ValueError(f"a field at {'.'.join(path)!r} occurs twice in one object")


def _escaped_only(text: str) -> bool:
    return all("\udc80" <= c <= "\udcff" for c in _SURROGATES.findall(text))
