"""Clean and tokenise text as decon does.

The tokens are those of the tokenizer file that a run was given. Without one they are the pieces
into which cl100k cuts a text before it applies its vocabulary: a word with the space before it, up
to three digits, a run of other signs.
"""

from __future__ import annotations

import re
import string
from functools import cache
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from contam.detect.policies.segments import mixed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

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
#: Texts of items that are made into tokens together.
_AT_ONCE: Final = 1 << 12

#: Kinds of characters.
_BLANK, _LETTER, _NUMBER, _SIGN, _ODD_SPACE = range(5)
_N_KINDS: Final = 0x20000
_MOST_DIGITS: Final = 3
_BASE: Final = np.uint64(0x9E3779B97F4A7C15)


def clean(text: str) -> str:
    """Lower case, punctuation and white space as single spaces, none at either end."""
    return _BLANKS.sub(" ", text.lower().translate(_SPACES)).strip(" ")


class PieceTokens:
    """The pieces before the vocabulary, each a hash of its characters.

    `space` is the token of a lone space.
    """

    def __init__(self) -> None:
        blank = np.array([ord(" ")], np.uint32)
        self.space = int(_hashes(blank, np.array([0]))[0])

    def of_items(self, cleaned: Sequence[str]) -> list[Int64s]:
        """The tokens of cleaned texts of items."""
        found: list[Int64s] = []
        for begin in range(0, len(cleaned), _AT_ONCE):
            some = cleaned[begin : begin + _AT_ONCE]
            # Each text begins with a space, so that its first word is the piece it is further on.
            codes = _code_points(" " + " ".join(some))
            cut = _pieces(codes)
            if cut is None:
                found += [self.of_document(text) for text in some]
                continue
            length = np.fromiter(map(len, some), np.int64, len(some))
            owner = np.searchsorted(np.cumsum(length + 1), cut.place, side="right")
            edges = np.searchsorted(owner, np.arange(1, len(some)))
            found += np.split(_hashes(cut.codes, cut.starts), edges)
        return found

    def of_document(self, text: str) -> Int64s:
        """The tokens of a document, as it is."""
        cut = _pieces(_code_points(" " + text.lower()))
        if cut is not None:
            return _hashes(cut.codes, cut.starts)
        cleaned = clean(text)
        lengths = [len(piece) for piece in _PIECE.findall(f" {cleaned}")] if cleaned else []
        ends = np.cumsum(lengths, dtype=np.int64)
        return _hashes(_code_points(f" {cleaned}"), ends - lengths)


class _Cut(NamedTuple):
    """A text in pieces.

    codes   uint32[k], the code points of its cleaned form
    starts  int64[m], where in them each piece begins;  place  int64[m], and where in the text
    """

    codes: NDArray[np.uint32]
    starts: Int64s
    place: Int64s


def _code_points(text: str) -> NDArray[np.uint32]:
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)


def _pieces(codes: NDArray[np.uint32]) -> _Cut | None:
    """Clean and cut a text in lower case that begins with a space, as `clean` and `_PIECE` do.

    None for a text with characters that only `_PIECE` knows.
    """
    if codes.max() >= _N_KINDS:
        return None
    kind = _kinds()[codes]
    if (kind == _ODD_SPACE).any():
        return None
    blank = kind == _BLANK
    keep = ~blank
    # Of blanks in a row the last one stays, and none at the end.
    keep[:-1] |= blank[:-1] & ~blank[1:]
    place = np.flatnonzero(keep)
    codes, kind, blank = codes[place], kind[place], blank[place]
    codes[blank] = ord(" ")
    before = np.concatenate([[_BLANK], kind[:-1]])
    sign, number = kind == _SIGN, np.flatnonzero(kind == _NUMBER)
    begins = blank
    # Signs behind a word begin a piece; a single one takes the letters behind it with it.
    apart = sign & ((before == _LETTER) | (before == _NUMBER))
    begins |= apart
    begins |= (kind == _LETTER) & (before == _NUMBER)
    begins[1:] |= (kind[1:] == _LETTER) & sign[:-1] & ~apart[:-1]
    count = np.arange(len(number))
    fresh = np.diff(number, prepend=-2) != 1
    within = count - np.maximum.accumulate(np.where(fresh, count, 0))
    begins[number[within % _MOST_DIGITS == 0]] = True
    starts = np.flatnonzero(begins)
    return _Cut(codes, starts, place[starts])


def _hashes(codes: NDArray[np.uint32], starts: Int64s) -> Int64s:
    """A hash of the code points of each piece; the pieces are all of them."""
    if not len(starts):
        return np.empty(0, np.int64)
    lengths = np.diff(starts, append=len(codes))
    powers = np.full(int(lengths.max()), _BASE)
    np.multiply.accumulate(powers, out=powers)
    within = np.arange(len(codes)) - np.repeat(starts, lengths)
    values = codes.astype(np.uint64) * powers[within]
    return mixed(np.add.reduceat(values, starts)).view(np.int64)


@cache
def _kinds() -> NDArray[np.uint8]:
    """The kind of every code point below `_N_KINDS`, as `_PIECE` takes it in cleaned text."""
    every = "".join(map(chr, range(_N_KINDS)))
    kinds = np.full(_N_KINDS, _SIGN, np.uint8)
    for kind, pattern in (
        (_LETTER, rf"[^\W\d_{_NUMERALS}]+"),
        (_NUMBER, rf"[\d{_NUMERALS}]+"),
        (_ODD_SPACE, r"\s+"),
        (_BLANK, _BLANKS),
        (_BLANK, f"[{re.escape(_PUNCTUATION)}]"),
    ):
        for found in re.finditer(pattern, every):
            kinds[slice(*found.span())] = kind
    return kinds


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

    def of_document(self, text: str) -> Int64s:
        """The tokens of a document, as it is."""
        return _joined(self._encode(_cut(clean(text))))

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
