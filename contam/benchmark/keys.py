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

# What NFKC makes of forms of double width in any case. Chinese is full of them, and a text without
# is mostly in normal form, which costs a tenth.
_WIDE = {"\u3000": " ", **{chr(0xFEE0 + code): chr(code) for code in range(0x21, 0x7F)}}

_UNIFY = {
    **_WIDE,
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
    """All keys of an item; of many items see `contam.benchmark.key_table`."""
    digests = key_digests(
        item,
        normalise(item.question).encode(),
        [normalise(text).encode() for text in item.choices],
        normalise(item.passage or "").encode(),
        normalise(item.answer or "").encode(),
    )
    return ContentKeys(*(None if digest is None else _hex(digest) for digest in digests))  # type: ignore[arg-type]  # the first three are never absent


def key_digests(
    item: BenchItem, question: bytes, choices: Sequence[bytes], passage: bytes, answer: bytes
) -> tuple[bytes, bytes, bytes, bytes | None, bytes | None, bytes | None]:
    """The digests of which an item's keys are the beginning, in the order of `ContentKeys`.

    question, choices, passage, answer  its normalised texts in UTF-8, empty where it has none
    """
    sha256 = hashlib.sha256
    body = sha256(_body(question, choices, passage))
    item_key = body.digest()
    body.update(b"\x1d" + answer)
    return (
        sha256(question).digest(),
        item_key,
        body.digest(),
        sha256(passage).digest() if item.passage else None,
        sha256(_listed(item.choices, choices)).digest() if choices else None,
        sha256(answer).digest() if item.answer else None,
    )


def _body(question: bytes, choices: Sequence[bytes], passage: bytes) -> bytes:
    # Group and record separators count as white space, so normalised text cannot contain them.
    # UTF-8 sorts as its text does.
    return b"%b\x1d%b\x1d%b" % (question, b"\x1e".join(sorted(choices)), passage)


def _listed(texts: Sequence[str], normalised: Sequence[bytes]) -> bytes:
    """The choices as one normalised text, in the order of their unchanged texts."""
    order = sorted(range(len(texts)), key=texts.__getitem__)
    return b" ".join([normalised[at] for at in order if normalised[at]])


def text_key(question: str) -> str:
    """Key of a question text alone."""
    return _hex(hashlib.sha256(normalise(question).encode()).digest())


def item_key(item: BenchItem) -> str:
    """Key of question, choices in any order and passage: equal exactly for duplicates."""
    return content_keys(item).item_key


def full_key(item: BenchItem) -> str:
    """Key of everything `item_key` covers and the gold answer."""
    return content_keys(item).full_key


def _hex(digest: bytes) -> str:
    return digest.hex()[:KEY_LENGTH]
