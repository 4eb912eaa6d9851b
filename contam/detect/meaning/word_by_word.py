"""Set a question beside a text word by word, in order: the same words, and words that are like."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from contam.kernels.rare_words import align_like_words
from contam.text.tokenizer import tokenize_bytes

if TYPE_CHECKING:
    from contam.detect.meaning.rare_words import RareWords
    from contam.detect.meaning.vectors import TextVectors
    from contam.detect.model import Bools, Float32s, Int32s, Uint64s

#: Similarities are whole hundredths, so that every machine adds them up alike.
_WHOLE: Final = 100
_DIGITS: Final = 4
#: Questions whose words one worker remembers.
_MOST_REMEMBERED: Final = 1 << 10


@dataclass(frozen=True, slots=True)
class Alignment:
    """A question beside a text.

    first, end  bytes of the text from the first pair of words to the last, both 0 without a pair
    reach       words of the text there;  n_words  of the question;  n_pairs  how many have a pair
    alike       share of the question's weight that has a pair, each by its similarity, 0..1
    same        share that has a pair of equal words
    missing     weight of the heaviest word without a pair
    numbers     whether every number has its pair
    """

    first: int
    end: int
    reach: int
    n_words: int
    n_pairs: int
    alike: float
    same: float
    missing: int
    numbers: bool


@dataclass(frozen=True, slots=True, eq=False)
class _Words:
    """The n words of a text: uint64[n] hashes, their weights, which are numbers, and vectors."""

    hashes: Uint64s
    weight: Int32s
    is_number: Bools
    vector: Float32s


class WordByWord:
    """Sets questions beside texts; one worker's."""

    def __init__(self, known: RareWords, vectors: TextVectors) -> None:
        self._known, self._vectors = known, vectors
        self._questions: dict[int, _Words] = {}
        number = known.spec.number
        self._near = round(number("near") * _WHOLE)
        self._skip = round(number("skip") * _WHOLE)
        self._light, self._heavy = int(number("light")), int(number("heavy"))
        self._number_weighs = int(number("number_weighs"))

    def beside(self, item: int, text: bytes) -> Alignment:
        """The question of an item beside a text."""
        own = self._question(item)
        n_words = len(own.hashes)
        tokens = tokenize_bytes(text)
        spans = tokens.spans.tolist()
        there = self._words(tokens.hashes, [text[a:b].decode().lower() for a, b in spans])
        likeness = self._likeness(own, there)
        found = np.empty(n_words, np.int32)
        align_like_words(likeness * own.weight[:, None], self._skip, found)
        paired = found >= 0
        if not paired.any():
            return Alignment(
                0, 0, 0, n_words, 0, 0.0, 0.0, int(own.weight.max(initial=0)), numbers=False
            )
        gained = likeness[paired, found[paired]]
        weight, total = own.weight[paired], int(own.weight.sum())
        first, last = int(found[paired].min()), int(found.max())
        return Alignment(
            first=spans[first][0],
            end=spans[last][1],
            reach=last - first + 1,
            n_words=n_words,
            n_pairs=int(paired.sum()),
            alike=round(int((weight * gained).sum()) / (_WHOLE * total), _DIGITS),
            same=round(int(weight[gained == _WHOLE].sum()) / total, _DIGITS),
            missing=int(own.weight[~paired].max(initial=0)),
            numbers=bool(paired[own.is_number].all()),
        )

    def _question(self, item: int) -> _Words:
        if item not in self._questions:
            if len(self._questions) == _MOST_REMEMBERED:
                self._questions.clear()
            table = self._known.table
            begin = table.token_start[item]
            hashes = table.token[begin : begin + table.n_tokens[item]]
            spelling = [self._known.spelling[value] for value in hashes.tolist()]
            self._questions[item] = self._words(hashes, spelling)
        return self._questions[item]

    def _words(self, hashes: Uint64s, spelling: list[str]) -> _Words:
        vector = self._vectors.of_words(spelling)
        length = np.sqrt((vector * vector).sum(axis=1))
        is_number = np.array([word[0].isdigit() for word in spelling], np.bool_)
        weight = np.rint(np.clip(length, self._light, self._heavy)).astype(np.int32)
        weight[is_number] = self._number_weighs
        vector /= np.where(length > 0, length, 1).astype(np.float32)[:, None]
        vector[is_number] = 0
        return _Words(hashes, weight, is_number, vector)

    def _likeness(self, own: _Words, there: _Words) -> Int32s:
        """Hundredths, int32[m, n]: all of them for equal words, none for words hardly alike."""
        # Not a product of matrices, whose order of adding differs by machine.
        cosine = np.einsum("id,jd->ij", own.vector, there.vector)
        likeness: Int32s = np.rint(cosine * _WHOLE).astype(np.int32)
        likeness[likeness < self._near] = 0
        np.minimum(likeness, _WHOLE - 1, out=likeness)
        likeness[own.hashes[:, None] == there.hashes[None, :]] = _WHOLE
        return likeness
