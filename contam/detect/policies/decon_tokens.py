"""Clean and tokenise text as decon does.

The tokens are those of the tokenizer file that a run was given. Without one they are the pieces
into which cl100k cuts a text before it applies its vocabulary: a word with the space before it, up
to three digits, a run of other signs. Of Han, kana and Hangul, which the vocabulary cuts up, each
character is a piece.
"""

from __future__ import annotations

import re
import string
from functools import cache
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from contam.kernels.decon import BLANK, IDEOGRAPH, LETTER, NUMBER, ODD_SPACE, SIGN, cut_pieces

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
#: Han, kana and Hangul, of which the vocabulary has hardly a word of more than one.
_IDEOGRAPHS: Final = "[\u3041-\u3096\u30a1-\u30fa\u3400-\u9fff\uac00-\ud7a3\U00020000-\U0003ffff]+"
#: No letter, number or space has a code point as high.
_N_KINDS: Final = 0x40000
#: Capital letters whose lower case is not one letter, whatever is beside them.
_SIGMA, _DOTTED = "\u03a3".encode(), "\u0130".encode()
_UTF8: Final = ("utf-8", "surrogatepass")
#: A longer text is cut before a space, where every such tokenizer begins a new word.
_LONGEST: Final = 1 << 16
#: Texts of items that are made into tokens together.
_AT_ONCE: Final = 1 << 12


class Texts(NamedTuple):
    """Tokens of m texts, one text's behind the other's: int64[k] from start[i] to start[i + 1]."""

    tokens: Int64s
    start: Int64s

    def some(self, first: int, after: int) -> Texts:
        """The texts from `first` up to `after`."""
        return Texts(self.tokens, self.start[first : after + 1])

    def text(self, at: int) -> Int64s:
        """The tokens of one text."""
        return self.tokens[self.start[at] : self.start[at + 1]]

    @property
    def lengths(self) -> Int64s:
        """Tokens of each text."""
        return np.diff(self.start)


def clean(text: str) -> str:
    """Lower case, punctuation and white space as single spaces, none at either end."""
    return _BLANKS.sub(" ", text.lower().translate(_SPACES)).strip(" ")


class PieceTokens:
    """The pieces before the vocabulary, each a hash of its characters.

    `space` is the token of a lone space.
    """

    def __init__(self) -> None:
        self.space = int(self.of_documents([b"7"]).tokens[0])

    def of_items(self, texts: Sequence[str]) -> tuple[Texts, Texts]:
        """The tokens of texts of items, and the words between their spaces."""
        return _cut(texts)

    def of_documents(self, texts: Sequence[bytes]) -> Texts:
        """The tokens of documents, as they are."""
        return _pieces(texts, with_words=False)[0]


def _cut(texts: Sequence[str]) -> tuple[Texts, Texts]:
    """The pieces of texts, and their words."""
    parts = [
        _pieces(
            [text.encode(*_UTF8) for text in texts[at : at + _AT_ONCE]],
            with_words=True,
        )
        for at in range(0, len(texts), _AT_ONCE)
    ]
    return _joined([one for one, _ in parts]), _joined([one for _, one in parts])


def _pieces(texts: Sequence[bytes], *, with_words: bool) -> tuple[Texts, Texts]:
    texts = [
        text.decode(*_UTF8).lower().encode(*_UTF8) if _SIGMA in text or _DOTTED in text else text
        for text in texts
    ]
    start, piece_start, word_start = np.zeros((3, len(texts) + 1), np.int64)
    np.cumsum(np.fromiter(map(len, texts), np.int64, len(texts)), out=start[1:])
    data = np.frombuffer(b"".join(texts), np.uint8)
    pieces, words = cut_pieces(data, start, _lower(), _kinds(), piece_start, word_start, with_words)
    return Texts(pieces.view(np.int64), piece_start), Texts(words.view(np.int64), word_start)


def _joined(parts: Sequence[Texts]) -> Texts:
    lengths = [part.lengths for part in parts]
    none = np.empty(0, np.int64)
    start = np.concatenate([[0], np.cumsum(np.concatenate([none, *lengths]))])
    return Texts(np.concatenate([none, *(part.tokens for part in parts)]), start)


@cache
def _lower() -> NDArray[np.uint32]:
    """The lower case of every code point below `_N_KINDS`; of a sigma and a dotted I, nothing."""
    every = np.arange(_N_KINDS, dtype="<u4").tobytes().decode("utf-32-le", "surrogatepass")
    for letter in (_SIGMA, _DOTTED):
        every = every.replace(letter.decode(), "\0")
    return np.frombuffer(every.lower().encode("utf-32-le", "surrogatepass"), np.uint32)


@cache
def _kinds() -> NDArray[np.uint8]:
    """The kind of every code point below `_N_KINDS` in lower-case text."""
    every = "".join(map(chr, range(_N_KINDS)))
    kinds = np.full(_N_KINDS, SIGN, np.uint8)
    for kind, pattern in (
        (LETTER, rf"[^\W\d_{_NUMERALS}]+"),
        (IDEOGRAPH, _IDEOGRAPHS),
        (NUMBER, rf"[\d{_NUMERALS}]+"),
        (ODD_SPACE, r"\s+"),
        (BLANK, _BLANKS),
        (BLANK, f"[{re.escape(_PUNCTUATION)}]"),
    ):
        for found in re.finditer(pattern, every):
            kinds[slice(*found.span())] = kind
    return kinds


class FileTokens:
    """The tokens of a tokenizer file, numbered likewise."""

    def __init__(self, tokenizer: FileTokenizer) -> None:
        self._tokenizer = tokenizer
        space = self._encode([" "]).tokens
        # 0 stays free for what no item has; no token of a text is negative.
        self.space = int(space[0]) if len(space) == 1 else -1

    def of_items(self, texts: Sequence[str]) -> tuple[Texts, Texts]:
        """The tokens of texts of items, and the words between their spaces."""
        return self._of_texts(texts), _cut(texts)[1]

    def of_documents(self, texts: Sequence[bytes]) -> Texts:
        """The tokens of documents, as they are."""
        return self._of_texts([text.decode() for text in texts])

    def _of_texts(self, texts: Sequence[str]) -> Texts:
        parts = []
        for begin in range(0, len(texts), _AT_ONCE):
            stretches = [_stretches(clean(text)) for text in texts[begin : begin + _AT_ONCE]]
            encoded = self._encode([stretch for some in stretches for stretch in some])
            edges = np.cumsum([0, *map(len, stretches)])
            parts.append(Texts(encoded.tokens, encoded.start[edges]))
        return _joined(parts)

    def _encode(self, texts: list[str]) -> Texts:
        ids = [ids.astype(np.int64) + 1 for ids in self._tokenizer.token_ids(texts)]
        start = np.concatenate([[0], np.cumsum([len(one) for one in ids], dtype=np.int64)])
        return Texts(np.concatenate([np.empty(0, np.int64), *ids]), start)


def _stretches(cleaned: str) -> list[str]:
    """The text in stretches of some 65,000 characters, each begun by a space; none of no text."""
    text = f" {cleaned}" if cleaned else ""
    stretches = []
    while len(text) > _LONGEST:
        space = text.rfind(" ", 1, _LONGEST)
        end = space if space > 0 else _LONGEST
        stretches.append(text[:end])
        text = text[end:]
    return [*stretches, text] if text else stretches
