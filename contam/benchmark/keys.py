"""Compute content keys `ck1`, which survive retyping and shuffled choices.

Frozen: a change to anything here that alters a key needs a new version name, because keys are
stored with results and joined with the logs of other tools.
"""

from __future__ import annotations

import hashlib
import re
import string
import unicodedata
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from contam.benchmark.items import BenchItem

KEY_VERSION = "ck1"
KEY_LENGTH = 32
"""Hex digits used of each SHA-256."""
KEYS: Final = ("text_key", "item_key", "full_key", "passage_key", "choices_key", "answer_key")
"""The keys of an item: see `ContentKeys`."""
#: In place of the SHA-256 of what is not there.
_NOTHING: Final = bytes(32)

_SPACE: Final = 0x20
_BETWEEN: Final = 0
_LOWER: Final = string.ascii_lowercase
#: Of ASCII, white space is a space, a capital a small letter, and a backtick a quote.
_PLAIN: Final = bytes.maketrans(
    b"\t\n\v\f\r\x1c\x1d\x1e\x1f`" + _LOWER.upper().encode(),
    b" " * 9 + b"'" + _LOWER.encode(),
)

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


def normalised(texts: Sequence[str]) -> list[bytes]:
    """What `normalise` gives for each text, in UTF-8; of ASCII for all texts together."""
    foreign = [place for place, text in enumerate(texts) if not text.isascii()]
    plain = list(texts)
    for place in foreign:
        plain[place] = ""
    data = "\0".join(plain).encode().translate(_PLAIN)
    found = data.split(b"\0")
    if len(found) != len(texts):  # a text has a null character, or there is no text
        return [normalise(text).encode() for text in texts]
    for place in _untidy(np.frombuffer(data, np.uint8)):
        found[place] = b" ".join(found[place].split())
    for place in foreign:
        found[place] = normalise(texts[place]).encode()
    return found


def _untidy(data: NDArray[np.uint8]) -> list[int]:
    """Which texts begin or end with a space, or have two in a row; 0 is between texts."""
    space, between = data == _SPACE, data == _BETWEEN
    blank = space | between
    # An empty text has no space, so that of two in a row one must be a space.
    untidy = np.flatnonzero(blank[1:] & blank[:-1] & (space[1:] | space[:-1]))
    texts = np.searchsorted(np.flatnonzero(between), untidy + between[untidy], side="left")
    ends = [0] if len(space) and space[0] else []
    ends += [int(between.sum())] if len(space) and space[-1] else []
    return sorted({*texts.tolist(), *ends})


def equal_groups(digests: NDArray[np.uint8]) -> list[NDArray[np.int64]]:
    """Places of the items that share a key, two or more in each group, by their first place.

    digests  uint8[n, 16]
    """
    halves = np.ascontiguousarray(digests).view(np.uint64)
    order = np.lexsort((halves[:, 1], halves[:, 0]))
    fresh = (np.diff(halves[order], axis=0) != 0).any(axis=1)
    edges = np.concatenate([[0], np.flatnonzero(fresh) + 1, [len(order)]])
    several = np.flatnonzero(np.diff(edges) > 1)
    groups = [order[edges[at] : edges[at + 1]] for at in several.tolist()]
    return sorted(groups, key=lambda group: int(group[0]))


def _unified(text: str) -> str:
    return _MARKS.sub(lambda mark: _UNIFY[mark[0]], text)


def content_keys(item: BenchItem) -> ContentKeys:
    """All keys of an item."""
    (digests,) = key_digests([item.question], [item.passage], [item.choices], [item.answer])
    return ContentKeys(*(digest.tobytes().hex() if digest.any() else None for digest in digests))  # type: ignore[arg-type]  # the first three are never absent


def key_digests(
    questions: Sequence[str],
    passages: Sequence[str | None],
    choices: Sequence[Sequence[str]],
    answers: Sequence[str | None],
) -> NDArray[np.uint8]:
    """The bytes of the keys of some items: uint8[n, 6, 16], in the order of `KEYS`.

    What an item does not have is zeros.
    """
    texts = [text or "" for column in (questions, passages, answers) for text in column]
    n = len(questions)
    found = normalised([*texts, *(text for some in choices for text in some)])
    digests: list[bytes] = []
    begin = 3 * n
    for at, some in enumerate(choices):
        end = begin + len(some)
        digests += _digests(found[at], found[n + at], some, found[begin:end], found[2 * n + at])
        if not passages[at]:
            digests[-3] = _NOTHING
        if not answers[at]:
            digests[-1] = _NOTHING
        begin = end
    whole = np.frombuffer(b"".join(digests), np.uint8).reshape(-1, len(KEYS), len(_NOTHING))
    return whole[:, :, : KEY_LENGTH // 2].copy()


def _digests(
    question: bytes, passage: bytes, choices: Sequence[str], listed: Sequence[bytes], answer: bytes
) -> tuple[bytes, ...]:
    """The SHA-256 of which the keys of an item are the beginning, in the order of `KEYS`.

    question, passage, listed, answer  its normalised texts;  choices  those of `listed` unchanged
    """
    sha256 = hashlib.sha256
    body = sha256(_body(question, listed, passage))
    item_key = body.digest()
    body.update(b"\x1d" + answer)
    return (
        sha256(question).digest(),
        item_key,
        body.digest(),
        sha256(passage).digest(),
        sha256(_listed(choices, listed)).digest() if choices else _NOTHING,
        sha256(answer).digest(),
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
    return hashlib.sha256(normalise(question).encode()).hexdigest()[:KEY_LENGTH]


def item_key(item: BenchItem) -> str:
    """Key of question, choices in any order and passage: equal exactly for duplicates."""
    return content_keys(item).item_key
