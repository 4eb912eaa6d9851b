"""Judge the windows of one document: similarity, numbers, and other items that fit as well.

A question is also set beside a text word by word, in order: the same words, and like ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from contam.detect.meaning.rare_words import numbers_of
from contam.kernels.rare_windows import (
    ROW_END,
    ROW_FIRST,
    ROW_IN_ORDER,
    ROW_ITEM,
    ROW_NEAR_END,
    ROW_NEAR_FIRST,
    ROW_TOKENS,
    ROW_WEIGHT,
    ROW_WIDE_END,
    ROW_WIDE_FIRST,
    ROW_WORDS,
)
from contam.kernels.rare_words import align_like_words
from contam.text.tokenizer import tokenize_bytes

if TYPE_CHECKING:
    from contam.detect.meaning.rare_words import RareWords
    from contam.detect.meaning.vectors import TextVectors
    from contam.detect.model import Bools, Float32s, Float64s, Int32s, Uint64s


#: Similarities are compared as they are written: rounded to so many digits.
_DIGITS: Final = 4
#: A window that is the question itself, whatever other items are like it.
_SAME: Final = 0.98
#: Share of a window that another must lie over to be in the same place.
_SAME_PLACE: Final = 0.5


@dataclass(frozen=True, slots=True)
class Rephrasing:
    """An item that a document has in other words.

    item, first, end  the item, and the bytes of the document
    share       of the weight of its rare words;  n_words  how many different ones
    n_numbers   how many of its numbers are there;  similarity  of the texts
    n_places    windows beside each other that are like it
    other, other_similarity  the next best item in the same place, -1 and 0 without one
    """

    item: int
    first: int
    end: int
    share: float
    n_words: int
    n_numbers: int
    similarity: float
    n_places: int
    other: int
    other_similarity: float


class Place(NamedTuple):
    """Where a document has an item in other words: a window, and bytes of the document.

    rank orders the places of an item; similarity of the texts; other, other_similarity  the next
    best item there, -1 and 0 without one
    """

    row: int
    first: int
    end: int
    rank: float
    similarity: float
    other: int
    other_similarity: float


class DocumentWindows:
    """The windows that a kernel found in one document; what is costly is found out when asked."""

    def __init__(
        self,
        raw: bytes,
        rows: Int32s,
        known: RareWords,
        vectors: TextVectors,
        word_by_word: WordByWord,
    ) -> None:
        self._raw, self._rows, self._known, self._vectors = raw, rows, known, vectors
        self._threshold = known.spec.threshold("suspect")
        self._number = known.spec.number
        self._item = rows[:, ROW_ITEM]
        table = known.table
        self._enough: Bools = (rows[:, ROW_WEIGHT] >= table.least[self._item]) & (
            rows[:, ROW_WORDS] >= table.least_words[self._item]
        )
        self._word_by_word = word_by_word
        self._alignments: dict[int, Alignment] = {}
        self.share: Float64s = rows[:, ROW_WEIGHT] / known.total[self._item]
        self._agreed: dict[int, int] = {}
        self._similarity: dict[int, float] = {}
        self._ranks: dict[int, float] = {}

    def rephrasings(self) -> list[Rephrasing]:
        """The items that the document has in other words, by item, each in its best place."""
        found = self._in_any_order()
        for item, places in self._in_order(set(found)).items():
            found[item] = places
        return [self._best(found[item]) for item in sorted(found)]

    def _in_any_order(self) -> dict[int, list[Place]]:
        """Places in which enough rare words and the sums of the vectors agree, by item."""
        tokens, share = self._rows[:, ROW_TOKENS], self._number("least_length")
        all_words = self._known.n_tokens[self._item]
        likely = tokens >= share * self._known.length[self._item]
        # Rare words that are close together say little by themselves: most others, where they are
        # looked for in order, stand there, too.
        in_order = self._rows[:, ROW_IN_ORDER] >= self._number("pairs") * all_words
        is_long = self._known.table.in_order[self._item] == 0
        likely &= (tokens >= share * all_words) | in_order | is_long
        likely &= self._enough
        passing = [row for row in np.flatnonzero(likely).tolist() if self._passes(row)]
        found: dict[int, list[Place]] = {}
        for row in passing:
            others = self._others(row)
            best = max(others, key=lambda one: (self._rank(one), -one), default=-1)
            if not self._is_another(row, others, best):
                first, end = self._rows[row, [ROW_FIRST, ROW_END]].tolist()
                other = (int(self._item[best]), self._similar(best)) if best >= 0 else (-1, 0.0)
                found.setdefault(int(self._item[row]), []).append(
                    Place(row, first, end, self._rank(row), self._similar(row), *other)
                )
        return found

    def _in_order(self, known: set[int]) -> dict[int, list[Place]]:
        """Places of other items in which the words agree in order, by item."""
        least = self._known.table.in_order[self._item]
        all_words = self._known.n_tokens[self._item]
        # Where all words are the same in the same order, nothing is in other words.
        in_order = self._rows[:, ROW_IN_ORDER]
        likely = (least > 0) & (in_order >= least) & (in_order < all_words)
        found: dict[int, list[Place]] = {}
        for row in np.flatnonzero(likely).tolist():
            item = int(self._item[row])
            if item in known or not self._agrees_in_order(row):
                continue
            rivals = self._in_place_of(row)
            mine = self._aligned(row)
            best = max(rivals, key=lambda one: (rivals[one], -one), default=-1)
            alike = rivals.get(best, 0.0)
            close = sum(one >= mine.alike - self._number("as_close") for one in rivals.values())
            if alike < mine.alike and close <= 1:
                first = int(self._rows[row, ROW_WIDE_FIRST])
                found.setdefault(item, []).append(
                    Place(
                        row,
                        first + mine.first,
                        first + mine.end,
                        mine.alike,
                        mine.alike,
                        best,
                        alike,
                    )
                )
        return found

    def _agrees_in_order(self, row: int) -> bool:
        """Whether a text has the question word by word, some of them replaced by like ones."""
        item, number = int(self._item[row]), self._number
        if not self._known.is_code[item] and self._n_agreed(row) < len(self._known.numbers[item]):
            return False
        one = self._aligned(row)
        return (
            one.numbers
            and one.alike >= number("word_by_word")
            and one.same < number("same_words")
            and one.n_pairs >= number("pairs") * one.n_words
            and one.missing <= number("missing")
            and number("shorter") * one.n_words <= one.reach <= number("longer") * one.n_words + 1
        )

    def _aligned(self, row: int) -> Alignment:
        if row not in self._alignments:
            first, end = self._rows[row, [ROW_WIDE_FIRST, ROW_WIDE_END]].tolist()
            self._alignments[row] = self._word_by_word.beside(
                int(self._item[row]), self._raw[first:end]
            )
        return self._alignments[row]

    def _in_place_of(self, row: int) -> dict[int, float]:
        """How alike other items are, word by word, that stand in the same place."""
        mine, begin = self._aligned(row), int(self._rows[row, ROW_WIDE_FIRST])
        first, end = begin + mine.first, begin + mine.end
        near = (self._rows[:, ROW_FIRST] < end) & (self._rows[:, ROW_END] > first)
        found: dict[int, float] = {}
        for at in np.flatnonzero(near & (self._item != self._item[row])).tolist():
            one, wide = self._aligned(at), int(self._rows[at, ROW_WIDE_FIRST])
            over = min(wide + one.end, end) - max(wide + one.first, first)
            if over >= _SAME_PLACE * (end - first):
                item = int(self._item[at])
                found[item] = max(found.get(item, 0.0), one.alike)
        return found

    def _passes(self, row: int) -> bool:
        item = int(self._item[row])
        is_code = bool(self._known.is_code[item])
        agreed, all_numbers = self._n_agreed(row), len(self._known.numbers[item])
        if not is_code and (
            agreed < self._number("numbers") * all_numbers
            or self._n_other_numbers(row) > self._number("other_numbers") * all_numbers
        ):
            return False
        if int(self._rows[row, ROW_WORDS]) + agreed < self._number("least_evidence"):
            return False
        least = self._number("code_similarity") if is_code else self._threshold
        return self._similar(row) >= least

    def _text(self, first: int, end: int) -> str:
        return self._raw[first:end].decode()

    def _n_agreed(self, row: int) -> int:
        """How many of the item's numbers stand near the window."""
        if row not in self._agreed:
            numbers = self._known.numbers[int(self._item[row])]
            first, end = self._rows[row, [ROW_WIDE_FIRST, ROW_WIDE_END]].tolist()
            there = numbers_of(self._text(first, end)) if numbers else set()
            self._agreed[row] = len(numbers & there)
        return self._agreed[row]

    def _n_other_numbers(self, row: int) -> int:
        """How many numbers stand in the window that the item does not have."""
        there = numbers_of(self._text(*self._rows[row, [ROW_FIRST, ROW_END]]), spelt=False)
        return len(there - self._known.numbers[int(self._item[row])])

    def _similar(self, row: int) -> float:
        """The cosine of the item and the window, or the window with some words around it."""
        if row not in self._similarity:
            vector = self._known.vector[int(self._item[row])]
            spans = ((ROW_FIRST, ROW_END), (ROW_NEAR_FIRST, ROW_NEAR_END))
            cosines = [
                float((vector * self._vectors.of(self._text(*self._rows[row, span]))).sum())
                for span in spans
            ]
            self._similarity[row] = min(round(max(cosines), _DIGITS), 1.0)
        return self._similarity[row]

    def _rank(self, row: int) -> float:
        """How well an item fits a window, to compare items: 0..3."""
        rank = self._ranks.get(row)
        if rank is None:
            n_numbers = len(self._known.numbers[int(self._item[row])])
            numbers = self._n_agreed(row) / n_numbers if n_numbers else 1.0
            rank = round(self._similar(row) + float(self.share[row]) + numbers, _DIGITS)
            self._ranks[row] = rank
        return rank

    def _others(self, row: int) -> list[int]:
        """The windows of other items in the same place."""
        first, end = self._rows[row, ROW_FIRST], self._rows[row, ROW_END]
        over = np.minimum(self._rows[:, ROW_END], end) - np.maximum(self._rows[:, ROW_FIRST], first)
        there = (over >= _SAME_PLACE * (end - first)) & (self._item != self._item[row])
        there &= self._enough
        return [int(at) for at in np.flatnonzero(there)]

    def _is_another(self, row: int, others: list[int], best: int) -> bool:
        """Whether another item fits the place better, or several items nearly as well."""
        if best < 0 or self._is_same(row):
            return False
        rank = self._rank(row)
        if self._rank(best) >= rank + self._number("better_by"):
            return True
        least = rank - self._number("alike")
        alike = {int(self._item[at]) for at in others if self._rank(at) >= least}
        return len(alike) > self._number("most_alike")

    def _is_same(self, row: int) -> bool:
        """Whether the window is the question itself."""
        item = int(self._item[row])
        return (
            self._rows[row, ROW_WEIGHT] == self._known.total[item]
            and self._n_agreed(row) == len(self._known.numbers[item])
            and self._similar(row) >= _SAME
        )

    def _best(self, places: list[Place]) -> Rephrasing:
        """The best of an item's places, and how many there are beside each other."""
        places.sort(key=lambda one: (-one.rank, one.first))
        apart: list[Place] = []
        for place in places:
            if all(place.end <= one.first or one.end <= place.first for one in apart):
                apart.append(place)
        best = places[0]
        return Rephrasing(
            item=int(self._item[best.row]),
            first=best.first,
            end=best.end,
            share=float(self.share[best.row]),
            n_words=int(self._rows[best.row, ROW_WORDS]),
            n_numbers=self._n_agreed(best.row),
            similarity=best.similarity,
            n_places=len(apart),
            other=best.other,
            other_similarity=best.other_similarity,
        )


#: Similarities are whole hundredths, so that every machine adds them up alike.
_WHOLE: Final = 100
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
