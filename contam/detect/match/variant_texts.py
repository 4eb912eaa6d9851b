"""Make variants of items without punctuation, and trace which words ran together."""

from __future__ import annotations

import string
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from contam.detect.model import N_PARTS
from contam.kernels.constants import LEAST_LETTERS, LEAST_LOST, LEAST_WORDS_LOST
from contam.kernels.tokenize_items import tokenize_parts
from contam.kernels.tokens import WORDS
from contam.text.tokenizer import char_tables

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from contam.benchmark.item_table import ItemTable
    from contam.detect.model import Bools, Int32s, Int64s

#: What copies leave out: what LaTeX alone needs, marks and brackets, or all punctuation of ASCII.
_VARIANTS: Final = tuple(
    (name, marks.encode())
    for name, marks in (
        ("without braces", "\\{}"),
        ("without marks", "!\"#%&'()*,./:;?@[\\]{}"),
        ("without punctuation", string.punctuation),
    )
)


def is_among(marks: bytes) -> NDArray[np.bool_]:
    """Which values of a byte are among these, bool[256]."""
    table = np.zeros(256, np.bool_)
    table[list(marks)] = True
    return table


#: Bytes that begin a letter of Latin, Greek or Cyrillic script, and all bytes of such letters.
_LETTERS: Final = is_among(string.ascii_letters.encode() + bytes(range(0xC3, 0xD4)))
_LETTER_BYTES: Final = _LETTERS | is_among(bytes(range(0x80, 0xC0)))
_PUNCTUATION: Final = is_among(string.punctuation.encode())
#: Bytes of letters and digits, or of characters that may be one.
_IN_WORD: Final = is_among(
    (string.ascii_letters + string.digits).encode() + bytes(range(0x80, 0x100))
)


class Variant(NamedTuple):
    """One item with some characters left out.

    owner  number of the item;  name  of the way;  marks  what is left out, ASCII
    """

    owner: int
    name: str
    marks: bytes


class VariantTexts(NamedTuple):
    """Texts of the items of some variants, one variant behind the other.

    data, offsets  all parts as they are, as `ItemTable.part_texts` has them
    left_out       bool[bytes + 1], what the variants leave out
    """

    data: NDArray[np.uint8]
    offsets: Int64s
    left_out: Bools

    @classmethod
    def of(cls, items: ItemTable, variants: Sequence[Variant]) -> VariantTexts:
        """The texts of these variants of the items."""
        owners = np.array([variant.owner for variant in variants], np.int64)
        data, offsets = items.take(owners).part_texts()
        left_out = np.zeros(len(data), np.bool_)
        for variant, lo, hi in zip(
            variants, offsets[:-1:N_PARTS].tolist(), offsets[N_PARTS::N_PARTS].tolist(), strict=True
        ):
            left_out[lo:hi] = is_among(variant.marks)[data[lo:hi]]
        return cls(data, offsets, left_out)

    def left(self) -> tuple[NDArray[np.uint8], Int64s]:
        """The texts without it, and where each begins."""
        kept = ~self.left_out
        data = self.data[kept]
        data.setflags(write=False)
        return data, _sums(kept)[self.offsets].astype(np.int64)


class Words(NamedTuple):
    """The words of some texts as they are.

    data, offsets  the texts, as `ItemTable.part_texts` has them
    spans          int64[words, 2], bytes of each in all the data
    starts         int64[texts + 1], where those of each text begin
    letters        int32[bytes + 1], letters before each byte
    n_long         int32[words + 1], of the words before each, those of letters enough to be one
    """

    data: NDArray[np.uint8]
    offsets: Int64s
    spans: Int64s
    starts: Int64s
    letters: Int32s
    n_long: Int32s

    @classmethod
    def of(cls, data: NDArray[np.uint8], offsets: Int64s) -> Words:
        """Find the words of texts that are as `ItemTable.part_texts` has them."""
        spans, starts = _tokens(data, offsets)
        letters, others = _sums(_LETTERS[data]), _sums(~_LETTER_BYTES[data])
        is_long = letters[spans[:, 1]] - letters[spans[:, 0]] >= LEAST_LETTERS
        is_long &= others[spans[:, 1]] == others[spans[:, 0]]
        return cls(data, offsets, spans, starts, letters, _sums(is_long))


class Trace(NamedTuple):
    r"""The words of some texts with characters left out, and what they are made of.

    starts       int64[texts + 1], where the words of each text begin
    spans        int64[words, 2], bytes of each in all the data as it is
    text         int64[words], of which text
    own_starts   int64[texts + 1], the same of the words of the texts as they are
    first, last  int64[words], the words each is made of: the first, and the one behind the last
    ambiguous    bool[words], made of several of which none has letters enough to be a word
    grown        bool[words], made of one and of letters that are no word there: `left2` of
                 `\left(2`, where the name of a command is none
    """

    starts: Int64s
    spans: Int64s
    text: Int64s
    own_starts: Int64s
    first: Int64s
    last: Int64s
    ambiguous: Bools
    grown: Bools

    @classmethod
    def of(cls, words: Words, left_out: Bools) -> Trace:
        """Trace texts of which some bytes are left out: bool[bytes]."""
        offsets, own, own_starts = words.offsets, words.spans, words.starts
        kept = np.flatnonzero(~left_out)
        left = words.data[kept]
        # Kernels are compiled for texts that nobody can write to.
        left.setflags(write=False)
        here, starts = _tokens(left, np.searchsorted(kept, offsets))
        spans = np.stack([kept[here[:, 0]], kept[here[:, 1] - 1] + 1], axis=1)
        first = np.searchsorted(own[:, 1], spans[:, 0], side="right")
        last = np.maximum(first, np.searchsorted(own[:, 0], spans[:, 1], side="left"))
        return cls(
            starts=starts,
            spans=spans,
            text=np.repeat(np.arange(len(offsets) - 1), np.diff(starts)),
            own_starts=own_starts,
            first=first,
            last=last,
            ambiguous=(last - first > 1) & (words.n_long[last] == words.n_long[first]),
            grown=(last - first == 1) & _wider(spans, own, first, words.letters),
        )

    def lost(self) -> Int64s:
        """How many words of each text ran together, int64[texts]; 0 where all that is ambiguous."""
        n = len(self.starts) - 1
        gone = np.maximum(self.last - self.first - 1, 0) + self.grown
        sure = np.bincount(self.text, np.where(self.ambiguous, 0, gone), minlength=n)
        return np.where(sure > 0, np.bincount(self.text, gone, minlength=n), 0).astype(np.int64)


def variants_of(items: ItemTable, n_words: Int32s, first: int = 0) -> list[Variant]:
    """Other variants of the items that lose much of their words without punctuation.

    n_words  int32[items], tokens of their questions;  first  number of the first item
    return   by what is left out, then by item
    """
    least = np.maximum(LEAST_WORDS_LOST, LEAST_LOST * n_words)
    maybe = np.flatnonzero(_joints(*items.texts("question")) >= least)
    if not len(maybe):
        return []
    words = Words.of(*items.take(maybe).texts("question"))
    found: list[Variant] = []
    # Another variant has fewer words than those before it, or has lost more of the item's.
    most = np.ceil(least[maybe]).astype(np.int64) - 1
    fewest = np.full(len(maybe), np.iinfo(np.int64).max)
    for name, marks in _VARIANTS:
        trace = Trace.of(words, is_among(marks)[words.data])
        lost, left = trace.lost(), np.diff(trace.starts)
        enough = lost >= least[maybe]
        new = enough & ((lost > most) | (left < fewest))
        found += [Variant(first + i, name, marks) for i in maybe[new].tolist()]
        most = np.maximum(most, lost)
        fewest = np.where(enough, np.minimum(fewest, left), fewest)
    return found


def _wider(spans: Int64s, own: Int64s, first: Int64s, letters: Int32s) -> Bools:
    """Whether a word has letters on either side of the one that it is made of, bool[words]."""
    alike = own[np.minimum(first, len(own) - 1)] if len(own) else spans
    before = letters[np.maximum(alike[:, 0], spans[:, 0])] - letters[spans[:, 0]]
    behind = letters[spans[:, 1]] - letters[np.minimum(alike[:, 1], spans[:, 1])]
    result: Bools = before + behind > 0
    return result


def _sums(values: NDArray[np.bool_]) -> Int32s:
    """How many are set before each place, and in all."""
    sums = np.zeros(len(values) + 1, np.int32)
    np.cumsum(values, out=sums[1:])
    return sums


def _joints(data: NDArray[np.uint8], offsets: Int64s) -> Int64s:
    """How often nothing but punctuation parts two letters or digits of each text, int64[n].

    About so many words a text loses with all of it.
    """
    kept = np.flatnonzero(~_PUNCTUATION[data[: offsets[-1]]])
    in_word = _IN_WORD[data[kept]]
    joint = (np.diff(kept) > 1) & in_word[1:] & in_word[:-1]
    text = np.searchsorted(offsets, kept[1:][joint], side="right") - 1
    same = np.searchsorted(offsets, kept[:-1][joint], side="right") - 1 == text
    return np.bincount(text[same], minlength=len(offsets) - 1)


def ways_to_read(text: bytes) -> list[bytes]:
    """A text as it is, and in every reading."""
    return [text, *(text.translate(None, marks) for _, marks in _VARIANTS)]


def _tokens(data: NDArray[np.uint8], offsets: Int64s) -> tuple[Int64s, Int64s]:
    """Bytes of each token in all the data, int64[t, 2], and where those of each text begin."""
    _, spans, starts = tokenize_parts(data, offsets, WORDS, char_tables())
    placed = spans + np.repeat(offsets[:-1], np.diff(starts))[:, np.newaxis]
    return placed, starts
