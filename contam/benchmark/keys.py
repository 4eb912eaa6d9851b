"""Compute content keys `ck1`, which survive retyping and shuffled choices.

Frozen: a change to anything here that alters a key needs a new version name, because keys are
stored with results and joined with the logs of other tools.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contam.benchmark.items import BenchItem

KEY_VERSION = "ck1"
KEY_LENGTH = 32
"""Hex digits used of each SHA-256."""

# Both quotes and dashes are unified before NFKC as well, which would tear U+00B4 apart.
_SINGLE_QUOTES = "\u2018\u2019\u201a\u201b\u2032\u00b4\u0060\u02bc\u2039\u203a"
_DOUBLE_QUOTES = "\u201c\u201d\u201e\u201f\u2033\u00ab\u00bb\u301d\u301e\u301f"
_DASHES = "\u2010\u2011\u2012\u2013\u2014\u2015\u2212\u2043\ufe58\ufe31\ufe32"
_INVISIBLE = (
    "\u00ad\u034f\u061c\u180e\u200b\u200c\u200d\u200e\u200f\u2060\u2061\u2062\u2063\u2064\ufeff"
)

_UNIFY = {
    **dict.fromkeys(_SINGLE_QUOTES, "'"),
    **dict.fromkeys(_DOUBLE_QUOTES, '"'),
    **dict.fromkeys(_DASHES, "-"),
    **dict.fromkeys(_INVISIBLE, ""),
}
_MARKS = re.compile(f"[{''.join(_UNIFY)}]")


@dataclass(frozen=True, slots=True)
class ContentKeys:
    """The keys of one item, each `KEY_LENGTH` hex digits.

    text_key  question alone; not unique in every benchmark
    item_key  question, choices in any order, passage
    full_key  item_key and the gold answer
    passage_key, choices_key, answer_key  of the part alone, as `text_key` has it for its text (of
              the choices in the order of their unchanged texts); None where the item has none
    """

    text_key: str
    item_key: str
    full_key: str
    passage_key: str | None
    choices_key: str | None
    answer_key: str | None


def normalise(text: str) -> str:
    """Text as the keys see it.

    NFKC, zero-width characters removed, quotes and dashes unified, white space collapsed to
    single spaces, case folded.
    """
    if text.isascii():
        return " ".join(text.lower().replace("`", "'").split())
    folded = unicodedata.normalize("NFKC", _unified(text)).casefold()
    return " ".join(_unified(unicodedata.normalize("NFKC", folded)).split())


def _unified(text: str) -> str:
    return _MARKS.sub(lambda mark: _UNIFY[mark[0]], text)


def content_keys(item: BenchItem) -> ContentKeys:
    """All keys of an item."""
    question = normalise(item.question)
    choices = [normalise(text) for text in item.choices]
    passage = normalise(item.passage) if item.passage else ""
    answer = normalise(item.answer) if item.answer else ""
    body = _body(question, choices, passage)
    return ContentKeys(
        _digest(question),
        _digest(body),
        _digest(f"{body}\x1d{answer}"),
        _digest(passage) if item.passage else None,
        _digest(_listed(item.choices, choices)) if choices else None,
        _digest(answer) if item.answer else None,
    )


def _body(question: str, choices: Sequence[str], passage: str) -> str:
    # Group and record separators count as white space, so normalised text cannot contain them.
    return f"{question}\x1d{chr(0x1E).join(sorted(choices))}\x1d{passage}"


def _listed(texts: Sequence[str], normalised: Sequence[str]) -> str:
    """The choices as one normalised text, in the order of their unchanged texts."""
    order = sorted(range(len(texts)), key=texts.__getitem__)
    return " ".join(normalised[at] for at in order if normalised[at])


def text_key(question: str) -> str:
    """Key of a question text alone."""
    return _digest(normalise(question))


def item_key(item: BenchItem) -> str:
    """Key of question, choices in any order and passage."""
    return _digest(identity(item))


def full_key(item: BenchItem) -> str:
    """Key of everything `item_key` covers and the gold answer."""
    return content_keys(item).full_key


def identity(item: BenchItem) -> str:
    """What `item_key` hashes: equal exactly for items that are duplicates of each other."""
    choices = [normalise(text) for text in item.choices]
    return _body(normalise(item.question), choices, normalise(item.passage or ""))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:KEY_LENGTH]
