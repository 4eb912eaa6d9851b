r"""Items as a copy reads that lost their punctuation: `\frac{7}{9}`, three words, became `frac79`.

Words that only punctuation parts run together in such a copy. An item that loses much of its words
so is searched in other *readings* too, as if they were items of a benchmark of their own, so that
nobody's weights change. What a reading finds becomes the item's own: it is folded into the pair of
item and document, and its spans are places of the item's text as it is.
"""

from __future__ import annotations

import string
from dataclasses import dataclass, fields, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from contam.detect.model import N_PARTS, PARTS, QUESTION, Pairs
from contam.detect.pieces import Pieces
from contam.kernels.items import code_point_spans, tokenize_parts
from contam.kernels.tokens import WORDS
from contam.text.tokenizer import char_tables

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from contam.benchmark.items import BenchItem
    from contam.detect.model import Bools, Float64s, Int32s, Int64s, Uint64s

#: An item is read otherwise where its question has so much fewer words then, and two fewer.
LEAST_LOST: Final = 0.05
_LEAST_WORDS: Final = 2
#: A reading counts where it finds so much more of the question than the item as it is.
CLEARLY: Final = 0.1
#: What copies leave out: what LaTeX alone needs, marks and brackets, or all punctuation of ASCII.
_READINGS: Final = tuple(
    (name, marks.encode())
    for name, marks in (
        ("without braces", "\\{}"),
        ("without marks", "!\"#%&'()*,./:;?@[\\]{}"),
        ("without punctuation", string.punctuation),
    )
)
#: Letters that make a word of its own; `2`, `x`, `pm` and `kg` beside each other are no word.
_LEAST_LETTERS: Final = 3
#: No word has this hash, but for one in 2**64.
_NO_WORD: Final = np.uint64(0x9E3779B97F4A7C15)


def _is_among(marks: bytes) -> NDArray[np.bool_]:
    table = np.zeros(256, np.bool_)
    table[list(marks)] = True
    return table


#: Bytes that begin a letter of Latin, Greek or Cyrillic script, and all bytes of such letters.
_LETTERS: Final = _is_among(string.ascii_letters.encode() + bytes(range(0xC3, 0xD4)))
_LETTER_BYTES: Final = _LETTERS | _is_among(bytes(range(0x80, 0xC0)))
#: Bytes of letters and digits, or of characters that may be one.
_IN_WORD: Final = _is_among(
    (string.ascii_letters + string.digits).encode() + bytes(range(0x80, 0x100))
)


@dataclass(frozen=True, slots=True, eq=False)
class Reading:
    """One item with some characters left out.

    owner  number of the item;  item  as it reads then;  marks  what is left out, ASCII
    """

    owner: int
    item: BenchItem
    marks: bytes


class _Trace(NamedTuple):
    """The words of some texts with characters left out, and what they are made of.

    starts       int64[texts + 1], where the words of each text begin
    spans        int64[words, 2], bytes of each in all the data as it is
    text         int64[words], of which text
    own_starts   int64[texts + 1], the same of the words of the texts as they are
    first, last  int64[words], the words each is made of: the first, and the one behind the last
    doubtful     bool[words], made of several of which none has letters enough to be a word
    """

    starts: Int64s
    spans: Int64s
    text: Int64s
    own_starts: Int64s
    first: Int64s
    last: Int64s
    doubtful: Bools

    @classmethod
    def of(cls, data: NDArray[np.uint8], offsets: Int64s, left_out: Bools) -> _Trace:
        """Trace texts that lie as in `_behind_each_other`; left_out  bool[bytes]."""
        kept = np.flatnonzero(~left_out)
        left = data[kept]
        # Kernels are compiled for texts that nobody can write to.
        left.setflags(write=False)
        own, own_starts = _tokens(data, offsets)
        here, starts = _tokens(left, np.searchsorted(kept, offsets))
        spans = np.stack([kept[here[:, 0]], kept[here[:, 1] - 1] + 1], axis=1)
        first = np.searchsorted(own[:, 1], spans[:, 0], side="right")
        last = np.maximum(first, np.searchsorted(own[:, 0], spans[:, 1], side="left"))
        letters, others = _sums(_LETTERS[data]), _sums(~_LETTER_BYTES[data])
        is_word = letters[own[:, 1]] - letters[own[:, 0]] >= _LEAST_LETTERS
        is_word &= others[own[:, 1]] == others[own[:, 0]]
        words = _sums(is_word)
        return cls(
            starts=starts,
            spans=spans,
            text=np.repeat(np.arange(len(offsets) - 1), np.diff(starts)),
            own_starts=own_starts,
            first=first,
            last=last,
            doubtful=(last - first > 1) & (words[last] == words[first]),
        )

    def lost(self) -> Int64s:
        """How many words of each text ran together, int64[texts]; 0 where all that is doubtful."""
        n = len(self.starts) - 1
        gone = np.maximum(self.last - self.first - 1, 0)
        sure = np.bincount(self.text, np.where(self.doubtful, 0, gone), minlength=n)
        return np.where(sure > 0, np.bincount(self.text, gone, minlength=n), 0).astype(np.int64)


def readings_of(items: Sequence[BenchItem], n_words: Int32s, first: int = 0) -> list[Reading]:
    """Other readings of the items that lose much of their words without punctuation.

    n_words  int32[items], tokens of their questions;  first  number of the first item
    return   by what is left out, then by item
    """
    texts = [item.question.encode() for item in items]
    data, offsets = _behind_each_other(texts)
    found: list[Reading] = []
    most = np.zeros(len(items), np.int64)
    least = np.maximum(_LEAST_WORDS, LEAST_LOST * n_words)
    if not (_joints(data, offsets, string.punctuation.encode()) >= least).any():
        return []
    for name, marks in _READINGS:
        maybe = np.flatnonzero(_joints(data, offsets, marks) >= least).tolist()
        if not maybe:
            continue
        some, begin = _behind_each_other([texts[i] for i in maybe])
        lost = _Trace.of(some, begin, _is_among(marks)[some]).lost()
        for i, n_lost in zip(maybe, lost.tolist(), strict=True):
            if n_lost >= least[i] and n_lost > most[i]:
                most[i] = n_lost
                found.append(Reading(first + i, _without(items[i], name, marks), marks))
    return found


def _sums(values: NDArray[np.bool_]) -> Int64s:
    """How many are set before each place, and in all."""
    return np.concatenate([[0], np.cumsum(values)])


def _joints(data: NDArray[np.uint8], offsets: Int64s, marks: bytes) -> Int64s:
    """How often nothing but marks stands between two letters or digits of each text, int64[n].

    About so many words a text loses with its marks.
    """
    kept = np.flatnonzero(~_is_among(marks)[data[: offsets[-1]]])
    in_word = _IN_WORD[data[kept]]
    joint = (np.diff(kept) > 1) & in_word[1:] & in_word[:-1]
    text = np.searchsorted(offsets, kept[1:][joint], side="right") - 1
    same = np.searchsorted(offsets, kept[:-1][joint], side="right") - 1 == text
    return np.bincount(text[same], minlength=len(offsets) - 1)


def ways_to_read(text: bytes) -> list[bytes]:
    """A text as it is, and in every reading."""
    return [text, *(text.translate(None, marks) for _, marks in _READINGS)]


def _behind_each_other(texts: Sequence[bytes]) -> tuple[NDArray[np.uint8], Int64s]:
    """All texts and one byte more, and where each begins: int64[n + 1]."""
    offsets = np.zeros(len(texts) + 1, np.int64)
    np.cumsum(list(map(len, texts)), out=offsets[1:])
    return np.frombuffer(b"".join(texts) + b"\0", np.uint8), offsets


def _without(item: BenchItem, name: str, marks: bytes) -> BenchItem:
    def strip(text: str) -> str:
        return text.encode().translate(None, marks).decode()

    return replace(
        item,
        # No name of a benchmark holds a null character.
        benchmark=f"{item.benchmark}\0{name}",
        question=strip(item.question),
        passage=None if item.passage is None else strip(item.passage),
        choices=tuple(map(strip, item.choices)),
        answer=None if item.answer is None else strip(item.answer),
    )


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Glued:
    """The readings of a lane, whose items and tokens lie behind its own.

    n_items      items of its own: those numbered from here on are readings
    owner        int32[readings], the item each is a reading of
    n_words      int32[readings], tokens of their questions
    sure         int32[readings], the most of those in a row that are not doubtful
    n_tokens     tokens of the lane's own items: flat indices from here on are those of readings
    first, last  int32[tokens of readings], the item's own tokens that each is made of: the first
                 one, and the one behind the last, flat
    spans        int32[tokens of readings, 2], code points in the part's text as it is
    doubtful     bool[tokens of readings], made of several of which none is a word: 1/2, 1.2 and 12
                 are all 12, and 2(x+3) begins like 2x+3
    token_start  int64[items and readings, 4], flat
    """

    n_items: int
    owner: Int32s
    n_words: Int32s
    sure: Int32s
    n_tokens: int
    first: Int32s
    last: Int32s
    spans: Int32s
    doubtful: Bools
    token_start: Int64s

    @classmethod
    def of(cls, items: Sequence[BenchItem], readings: Sequence[Reading], starts: Int64s) -> Glued:
        """Trace the words of readings back to the items' own.

        starts  int64[4 * (items and readings) + 1], where each part's tokens begin
        """
        n_items = len(items)
        owner = np.array([one.owner for one in readings], np.int32)
        texts = [items[i].part_text(part).encode() for i in owner.tolist() for part in PARTS]
        data, offsets = _behind_each_other(texts)
        left_out = np.zeros(len(data), np.bool_)
        for number, one in enumerate(readings):
            lo, hi = offsets[N_PARTS * number], offsets[N_PARTS * (number + 1)]
            left_out[lo:hi] = _is_among(one.marks)[data[lo:hi]]
        trace = _Trace.of(data, offsets, left_out)
        # From a place among these tokens to one among the lane's.
        own = starts[:-1].reshape(-1, N_PARTS)[owner].reshape(-1)
        moved = (own - trace.own_starts[:-1])[trace.text]
        within = (trace.spans - offsets[trace.text, np.newaxis]).astype(np.int32)
        question = trace.text % N_PARTS == QUESTION
        return cls(
            n_items=n_items,
            owner=owner,
            n_words=np.diff(trace.starts)[QUESTION::N_PARTS].astype(np.int32),
            sure=_longest_runs(~trace.doubtful & question, trace.text // N_PARTS, len(owner)),
            n_tokens=int(starts[N_PARTS * n_items]),
            first=(moved + trace.first).astype(np.int32),
            last=(moved + trace.last).astype(np.int32),
            spans=code_point_spans(data, offsets, trace.starts, within),
            doubtful=trace.doubtful,
            token_start=starts[:-1].reshape(-1, N_PARTS),
        )

    def blot_out(self, hashes: Uint64s) -> None:
        """Let doubtful words equal none: they may be those of another question."""
        hashes[self.n_tokens :][self.doubtful] = _NO_WORD

    def inherit(self, weight: NDArray[np.float32]) -> None:
        """Let each word of a reading weigh what the words weigh that it is made of."""
        total = np.concatenate([[0.0], np.cumsum(weight[: self.n_tokens], dtype=np.float64)])
        made = self.last > self.first
        weight[self.n_tokens :][made] = (total[self.last] - total[self.first])[made]

    def fold(
        self, pairs: Pairs, pieces: Pieces, score: Callable[[Pairs], Float64s]
    ) -> tuple[Pairs, Pairs, Pieces]:
        """What was found of the items as they are; and the same with the readings folded in.

        score  of pairs; their items are those of the lane

        All pairs of a document must be among `pairs`. A pair is that of a reading where that finds
        clearly more of the question and scores higher; it has the pieces of both then.
        """
        rows = np.flatnonzero(pairs.item >= self.n_items)
        if not len(rows):
            return pairs, pairs, pieces
        plain = np.flatnonzero(pairs.item < self.n_items)
        strict = pairs.take(plain)
        known = pieces.of_pairs(plain, len(pairs))
        rows, beside = self._better(pairs, rows, plain, score)
        if not len(rows):
            return strict, strict, known
        alone = beside < 0
        better = self._as_own(pairs.take(rows))
        to = np.where(alone, len(plain) + np.cumsum(alone) - 1, beside)
        folded = Pairs.concat([strict, better.take(alone)])
        both = ~alone
        for column in fields(Pairs):
            mine = getattr(folded, column.name)
            theirs = getattr(better, column.name)[both]
            # Where it is seen less clearly, it may stand in more places.
            mine[to[both]] = (
                np.maximum(mine[to[both]], theirs) if column.name == "n_places" else theirs
            )
        found = pieces.of_pairs(rows, len(pairs))
        own = self.token_start[better.item][found.pair, found.part]
        begin = self._begin(pairs.take(rows), found) - own
        # Stretches with the same number belong together: those of both are numbered apart.
        beyond = np.zeros(len(folded), np.int32)
        np.maximum.at(beyond, known.pair, known.alignment + 1)
        moved = replace(
            found,
            pair=to[found.pair],
            alignment=found.alignment + beyond[to[found.pair]],
            item_token=begin.astype(np.int32),
        )
        hidden = self._hidden(folded, known, moved)
        together = Pieces.concat([known.take(~hidden), moved], [0, 0])
        return strict, folded, together.take(np.argsort(together.pair, kind="stable"))

    def _begin(self, pairs: Pairs, pieces: Pieces) -> Int64s:
        """The first token of each piece, flat."""
        begin: Int64s = self.token_start[pairs.item[pieces.pair], pieces.part] + pieces.item_token
        return begin

    def _hidden(self, pairs: Pairs, known: Pieces, moved: Pieces) -> Bools:
        """Which known pieces lie within a piece of a reading, in the item and the document."""
        hidden = np.zeros(len(known.pair), np.bool_)
        at = self._begin(pairs, moved) - self.n_tokens
        first, last = self.first[at], self.last[at + moved.length - 1]
        begins = self._begin(pairs, known)
        order = np.argsort(moved.pair, kind="stable")
        edges = np.flatnonzero(np.diff(moved.pair[order], prepend=-1, append=-1))
        for lo, hi in pairwise(edges.tolist()):
            mine = order[lo:hi]
            rows = slice(*np.searchsorted(known.pair, moved.pair[mine[0]] + np.arange(2)).tolist())
            begin = begins[rows, np.newaxis]
            end = begin + known.length[rows, np.newaxis]
            within = known.part[rows, np.newaxis] == moved.part[mine]
            within &= (first[mine] <= begin) & (end <= last[mine])
            within &= moved.start[mine] <= known.start[rows, np.newaxis]
            within &= known.end[rows, np.newaxis] <= moved.end[mine]
            hidden[rows] = within.any(axis=1)
        return hidden

    def _better(
        self, pairs: Pairs, rows: Int64s, plain: Int64s, score: Callable[[Pairs], Float64s]
    ) -> tuple[Int64s, Int64s]:
        """The readings' rows that count, one a document at most, and each one's place in `plain`.

        That place is -1 where nothing was found of the item as it is.
        """
        share = pairs.coverage[:, QUESTION].astype(np.float64)
        share[pairs.exact[:, QUESTION]] = 1.0
        item = pairs.item.copy()
        item[rows] = self.owner[item[rows] - self.n_items]
        # Each reading's row beside that of the item as it is, if there is one.
        place = np.stack([item, pairs.shard, pairs.row], axis=1).astype(np.int64)
        order = plain[np.lexsort(place[plain].T[::-1])]
        keys = np.concatenate([place[order], place[rows]])
        _, number = np.unique(keys, axis=0, return_inverse=True)
        known = np.full(int(number.max()) + 1, -1, np.int64)
        known[number[: len(order)]] = order
        beside = known[number[len(order) :]]
        without = np.where(beside < 0, 0.0, share[beside])
        likely = share[rows] >= without + CLEARLY
        rows, beside, number = rows[likely], beside[likely], number[len(order) :][likely]
        mine = score(self._as_own(pairs.take(rows)))
        theirs = np.zeros(len(rows))
        theirs[beside >= 0] = score(pairs.take(beside[beside >= 0]))
        # The best of a document's readings, the first of several.
        best = np.lexsort((pairs.item[rows], -share[rows], -mine, number))
        best = best[np.concatenate([[True], np.diff(number[best]) != 0])[: len(best)]]
        best = best[mine[best] > theirs[best]]
        at = np.full(len(pairs), -1, np.int64)
        at[plain] = np.arange(len(plain))
        return rows[best], np.where(beside[best] < 0, -1, at[beside[best]])

    def _as_own(self, pairs: Pairs) -> Pairs:
        """Pairs of readings as pairs of their items: they count the words of the reading."""
        reading = pairs.item - self.n_items
        rival = pairs.rival.copy()
        rival[rival >= 0] = self.owner[rival[rival >= 0] - self.n_items]
        return replace(
            pairs,
            item=self.owner[reading],
            exact=np.zeros_like(pairs.exact),
            rival=rival,
            glued=self.n_words[reading],
        )


def _tokens(data: NDArray[np.uint8], offsets: Int64s) -> tuple[Int64s, Int64s]:
    """Bytes of each token in all the data, int64[t, 2], and where those of each text begin."""
    _, spans, starts = tokenize_parts(data, offsets, WORDS, char_tables())
    placed = spans + np.repeat(offsets[:-1], np.diff(starts))[:, np.newaxis]
    return placed, starts


def _longest_runs(sure: Bools, owner: Int64s, n: int) -> Int32s:
    """The most words in a row of each reading that are sure, int32[n]; owner  of each word."""
    place = np.arange(len(sure))
    # The last place up to each that ends a run: one that is not sure, or the word before another's.
    ends = np.where(sure, -1, place)
    fresh = np.diff(owner, prepend=-1) != 0
    ends[fresh & sure] = place[fresh & sure] - 1
    length = np.where(sure, place - np.maximum.accumulate(ends), 0) if len(sure) else place
    longest = np.zeros(n, np.int32)
    np.maximum.at(longest, owner, length.astype(np.int32))
    return longest
