"""Read how a run was set up: few-shot examples, prompt and task version.

Scores of one benchmark under other set-ups are other measurements. Only what a tool records is
here; a run that records nothing is not said to differ.
"""

from __future__ import annotations

import hashlib
import json
import re
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Setup = tuple[tuple[str, str], ...]
"""What was recorded, by name: "version", "few-shot", "prompt", "system prompt"."""

_NOTHING: Final[tuple[object, ...]] = (None, "", [], {})
_ADDRESS: Final = re.compile(r" at 0x[0-9a-f]+")
_DIGITS: Final = 8


def setup_of(
    *,
    version: object = None,
    examples: object = None,
    prompt: Mapping[str, object] | None = None,
    system: object = None,
) -> Setup:
    """A set-up of what a tool records; None is what it does not.

    prompt  what the prompt is made of: its digest tells two prompts apart
    """
    found = {
        "version": _plain(version),
        "few-shot": _plain(examples),
        "prompt": _digest(prompt) if prompt is not None else "",
        "system prompt": _digest({"": system}) if system not in _NOTHING else "",
    }
    return tuple((name, value) for name, value in found.items() if value)


def words(setup: Setup) -> str:
    """A set-up as people read it: `5-shot, version 3, prompt 1f0c9a2b`."""
    parts = [f"{value}-shot" if name == "few-shot" else f"{name} {value}" for name, value in setup]
    return ", ".join(parts) or "not recorded"


def combined(setups: Sequence[Setup]) -> Setup:
    """The set-up of a group of tasks: what they share, and a digest where each has its own."""
    names = dict.fromkeys(name for setup in setups for name, _ in setup)
    found = []
    for name in names:
        values = [dict(setup).get(name, "") for setup in setups]
        alike = len(set(values)) == 1
        found.append((name, values[0] if alike else _digest(dict(enumerate(map(str, values))))))
    return tuple(found)


def _plain(value: object) -> str:
    """Versions are written as 3, 3.0 or "3"."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    text = "" if value is None or isinstance(value, dict | list) else str(value).strip()
    return text.removesuffix(".0")


def _digest(parts: Mapping[Any, object]) -> str:
    known = {name: value for name, value in parts.items() if value not in _NOTHING}
    if not known:
        return ""
    text = json.dumps(known, sort_keys=True, default=str)
    return hashlib.sha256(_ADDRESS.sub("", text).encode()).hexdigest()[:_DIGITS]
