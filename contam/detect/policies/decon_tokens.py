"""Clean and tokenise text as decon does.

The tokens are those of the tokenizer file that a run was given. Without one they are the pieces
into which cl100k cuts a text before it applies its vocabulary: a word with the space before it, up
to three digits, a run of other signs.
"""

from __future__ import annotations

import re
import string
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contam.detect.model import Int64s
    from contam.text.bpe import FileTokenizer

#: What decon replaces by a space: all punctuation of ASCII, and five signs of print.
_PUNCTUATION: Final = string.punctuation + "\u201c\u201d\u2018\u2019\u2014"
_SPACES: Final = str.maketrans(dict.fromkeys(_PUNCTUATION, " "))

#: The code points with the Unicode property White_Space; Python's `\s` has four more.
_BLANKS: Final = re.compile("[\t-\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+")
#: Numbers that are no decimal digits: superscripts, fractions, Roman numerals, circled ones.
_NUMERALS: Final = (
    "\u00b2\u00b3\u00b9\u00bc-\u00be\u2070\u2074-\u2079\u2080-\u2089\u2150-\u2189\u2460-\u249b"
)
_PIECE: Final = re.compile(
    rf"[\W_]?[^\W\d_{_NUMERALS}]+"
    rf"|[\d{_NUMERALS}]{{1,3}}"
    r"| ?(?:[^\w\s]|_)+"
    r"|\s"
)
#: A longer text is cut before a space, where every such tokenizer begins a new word.
_LONGEST: Final = 1 << 16
#: Texts of items that are given to the tokenizer together.
_AT_ONCE: Final = 1 << 12


def clean(text: str) -> str:
    """Lower case, punctuation and white space as single spaces, none at either end."""
    return _BLANKS.sub(" ", text.lower().translate(_SPACES)).strip(" ")


class PieceTokens:
    """The pieces before the vocabulary, numbered as they appear in the items.

    Equal numbers are equal tokens; 0 is one that no item has; `space` is that of a lone space.
    """

    def __init__(self) -> None:
        self.space = 1
        self._number = {" ": self.space}

    def of_items(self, cleaned: Sequence[str]) -> list[Int64s]:
        """The tokens of cleaned texts of items; a piece not seen before gets the next number."""
        number = self._number
        return [
            np.array([number.setdefault(p, len(number) + 1) for p in _pieces(text)], np.int64)
            for text in cleaned
        ]

    def of_document(self, cleaned: str) -> Int64s:
        """The tokens of a cleaned document."""
        number = self._number
        return np.array([number.get(piece, 0) for piece in _pieces(cleaned)], np.int64)


def _pieces(cleaned: str) -> list[str]:
    # A space before the first word makes it the same piece as further on.
    return _PIECE.findall(f" {cleaned}") if cleaned else []


class FileTokens:
    """The tokens of a tokenizer file, numbered likewise."""

    def __init__(self, tokenizer: FileTokenizer) -> None:
        self._tokenizer = tokenizer
        (space,) = self._encode([" "])
        # 0 stays free for what no item has; no token of a text is negative.
        self.space = int(space[0]) if len(space) == 1 else -1

    def of_items(self, cleaned: Sequence[str]) -> list[Int64s]:
        """The tokens of cleaned texts of items."""
        found: list[Int64s] = []
        for begin in range(0, len(cleaned), _AT_ONCE):
            stretches = [_cut(text) for text in cleaned[begin : begin + _AT_ONCE]]
            encoded = iter(self._encode([stretch for some in stretches for stretch in some]))
            found += [_joined([next(encoded) for _ in some]) for some in stretches]
        return found

    def of_document(self, cleaned: str) -> Int64s:
        """The tokens of a cleaned document."""
        return _joined(self._encode(_cut(cleaned)))

    def _encode(self, texts: list[str]) -> list[Int64s]:
        return [ids.astype(np.int64) + 1 for ids in self._tokenizer.token_ids(texts)]


def _joined(stretches: list[Int64s]) -> Int64s:
    return np.concatenate(stretches) if stretches else np.empty(0, np.int64)


def _cut(cleaned: str) -> list[str]:
    """The text in stretches of some 65,000 characters, each begun by a space; none of no text."""
    text = f" {cleaned}" if cleaned else ""
    stretches = []
    while len(text) > _LONGEST:
        space = text.rfind(" ", 1, _LONGEST)
        end = space if space > 0 else _LONGEST
        stretches.append(text[:end])
        text = text[end:]
    return [*stretches, text] if text else stretches
