r"""Items as a copy reads that lost their punctuation: `\frac{7}{9}`, three words, became `frac79`.

Words that only punctuation parts run together in such a copy. An item that loses much of its words
so is searched in other *readings* too, as if they were items of a benchmark of their own, so that
nobody's weights change. What a reading finds becomes the item's own: it is folded into the pair of
item and document, and its spans are places of the item's text as it is.
"""

from __future__ import annotations

import string
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Final

import numpy as np

from contam.detect.model import N_PARTS, PARTS, QUESTION, Pairs
from contam.detect.pieces import Pieces
from contam.kernels.items import code_point_spans, tokenize_parts
from contam.kernels.tokens import WORDS
from contam.text.tokenizer import char_tables

if TYPE_CHECKING:
    from collections.abc import Sequence

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
#: Bytes of letters and digits, or of characters that may be one.
_IN_WORD: Final = np.array([not chr(n).isascii() or chr(n).isalnum() for n in range(256)])
#: No word has this hash, but for one in 2**64.
_NO_WORD: Final = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True, slots=True, eq=False)
class Reading:
    """One item with some characters left out.

    owner  number of the item;  item  as it reads then;  marks  what is left out, ASCII
    """

    owner: int
    item: BenchItem
    marks: bytes


def readings_of(items: Sequence[BenchItem], n_words: Int32s, first: int = 0) -> list[Reading]:
    """Other readings of the items that lose much of their words without punctuation.

    n_words  int32[items], tokens of their questions;  first  number of the first item
    return   by what is left out, then by item
    """
    texts = [item.question.encode() for item in items]
    data, offsets = _behind_each_other(texts)
    found: list[Reading] = []
    last = n_words.copy()
    least = np.maximum(_LEAST_WORDS, LEAST_LOST * n_words)
    if not (_joints(data, offsets, string.punctuation.encode()) >= least).any():
        return []
    for name, marks in _READINGS:
        maybe = np.flatnonzero(_joints(data, offsets, marks) >= least).tolist()
        if not maybe:
            continue
        some, begin = _behind_each_other([texts[i].translate(None, marks) for i in maybe])
        _, _, starts = tokenize_parts(some, begin, WORDS, char_tables())
        for i, n_left in zip(maybe, np.diff(starts).tolist(), strict=True):
            if n_words[i] - n_left >= least[i] and 0 < n_left < last[i]:
                last[i] = n_left
                found.append(Reading(first + i, _without(items[i], name, marks), marks))
    return found


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


def _is_among(marks: bytes) -> NDArray[np.bool_]:
    table = np.zeros(256, np.bool_)
    table[list(marks)] = True
    return table


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
    n_tokens     tokens of the lane's own items: flat indices from here on are those of readings
    first, last  int32[tokens of readings], the item's own tokens that each is made of: the first
                 one, and the one behind the last, flat
    spans        int32[tokens of readings, 2], code points in the part's text as it is
    doubtful     bool[tokens of readings], numbers made of several: 1/2, 1.2 and 12 are all 12
    token_start  int64[items and readings, 4], flat
    """

    n_items: int
    owner: Int32s
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
        n_tokens = int(starts[N_PARTS * n_items])
        owner = np.array([one.owner for one in readings], np.int32)
        texts = [items[i].part_text(part).encode() for i in owner.tolist() for part in PARTS]
        data, offsets = _behind_each_other(texts)
        left_out = np.zeros(len(data), np.bool_)
        for number, one in enumerate(readings):
            lo, hi = offsets[N_PARTS * number], offsets[N_PARTS * (number + 1)]
            left_out[lo:hi] = _is_among(one.marks)[data[lo:hi]]
        kept = np.flatnonzero(~left_out)
        begin = np.searchsorted(kept, offsets)
        left = data[kept]
        # Kernels are compiled for texts that nobody can write to.
        left.setflags(write=False)
        own, own_starts = _tokens(data, offsets)
        here, here_starts = _tokens(left, begin)
        others = np.concatenate([[0], np.cumsum(~_is_among(string.digits.encode())[left])])
        number = others[here[:, 1]] == others[here[:, 0]]
        spans = np.stack([kept[here[:, 0]], kept[here[:, 1] - 1] + 1], axis=1)
        part = np.repeat(np.arange(len(texts)), np.diff(here_starts))
        # From a place among these tokens to one among the lane's.
        moved = (starts[:-1].reshape(-1, N_PARTS)[owner].reshape(-1) - own_starts[:-1])[part]
        first = moved + np.searchsorted(own[:, 1], spans[:, 0], side="right")
        last = moved + np.searchsorted(own[:, 0], spans[:, 1], side="left")
        within = (spans - offsets[part, np.newaxis]).astype(np.int32)
        return cls(
            n_items=n_items,
            owner=owner,
            n_tokens=n_tokens,
            first=first.astype(np.int32),
            last=np.maximum(first, last).astype(np.int32),
            spans=code_point_spans(data, offsets, here_starts, within),
            doubtful=number & (last - first > 1),
            token_start=starts[:-1].reshape(-1, N_PARTS),
        )

    def blot_out(self, hashes: Uint64s) -> None:
        """Let doubtful words equal none: they may be the numbers of another question."""
        hashes[self.n_tokens :][self.doubtful] = _NO_WORD

    def inherit(self, weight: NDArray[np.float32]) -> None:
        """Let each word of a reading weigh what the words weigh that it is made of."""
        total = np.concatenate([[0.0], np.cumsum(weight[: self.n_tokens], dtype=np.float64)])
        made = self.last > self.first
        weight[self.n_tokens :][made] = (total[self.last] - total[self.first])[made]

    def fold(self, pairs: Pairs, pieces: Pieces, min_run: int) -> tuple[Pairs, Pairs, Pieces]:
        """What was found of the items as they are; and the same with the readings folded in.

        All pairs of a document must be among `pairs`. Where a reading finds clearly more of the
        question, the pair has the better of both in each column, and the pieces of both.
        """
        is_reading = pairs.item >= self.n_items
        if not is_reading.any():
            return pairs, pairs, pieces
        plain = np.flatnonzero(~is_reading)
        strict = pairs.take(plain)
        known = pieces.of_pairs(plain, len(pairs))
        rows = np.flatnonzero(is_reading)
        rows, beside = self._better(pairs, rows, plain)
        if not len(rows):
            return strict, strict, known
        found = pieces.of_pairs(rows, len(pairs))
        better = self._as_own(pairs.take(rows), found, min_run)
        alone = beside < 0
        to = np.where(alone, len(plain) + np.cumsum(alone) - 1, beside)
        folded = Pairs.concat([strict, better.take(alone)])
        both = ~alone
        _take_better(folded, to[both], better.take(both))
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

    def _made_of(self, begin: Int64s, length: Int32s) -> tuple[Int32s, Int32s]:
        """The items' own tokens of pieces of readings: the first, and the one behind the last."""
        at = begin - self.n_tokens
        return self.first[at], self.last[at + length - 1]

    def _hidden(self, pairs: Pairs, known: Pieces, moved: Pieces) -> Bools:
        """Which known pieces lie within a piece of a reading, in the item and the document."""
        hidden = np.zeros(len(known.pair), np.bool_)
        first, last = self._made_of(self._begin(pairs, moved), moved.length)
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

    def _better(self, pairs: Pairs, rows: Int64s, plain: Int64s) -> tuple[Int64s, Int64s]:
        """The readings' rows that count, one a document at most, and each one's place in `plain`.

        That place is -1 where nothing was found of the item as it is.
        """
        share = _question_share(pairs)
        item = pairs.item.copy()
        item[rows] = self.owner[item[rows] - self.n_items]
        is_reading = np.zeros(len(pairs), np.bool_)
        is_reading[rows] = True
        # By item and document, the item as it is first, then the reading that finds most of it.
        order = np.lexsort((pairs.item, -share, is_reading, pairs.row, pairs.shard, item))
        same = np.ones(len(order), np.bool_)
        for column in (item, pairs.shard, pairs.row):
            same[1:] &= column[order[1:]] == column[order[:-1]]
        same[0] = False
        before = np.concatenate([order[:1], order[:-1]])
        follows = is_reading[order] & same & ~is_reading[before]
        starts = is_reading[order] & ~same
        least = np.where(follows, share[before], 0.0) + CLEARLY
        chosen = (follows | starts) & (share[order] >= least)
        place = np.full(len(pairs), -1, np.int64)
        place[plain] = np.arange(len(plain))
        return order[chosen], np.where(follows, place[before], -1)[chosen]

    def _as_own(self, pairs: Pairs, pieces: Pieces, min_run: int) -> Pairs:
        """Pairs of readings as pairs of their items, whose figures count the items' own tokens."""
        first, last = self._made_of(self._begin(pairs, pieces), pieces.length)
        size = np.maximum(last - first, 0)
        shape = pairs.longest.shape
        slot = pieces.pair * N_PARTS + pieces.part
        longest = np.zeros(shape[0] * N_PARTS, np.int32)
        np.maximum.at(longest, slot, size.astype(np.int32))
        runs = size >= min_run
        rival = pairs.rival.copy()
        rival[rival >= 0] = self.owner[rival[rival >= 0] - self.n_items]
        return replace(
            pairs,
            item=self.owner[pairs.item - self.n_items],
            longest=longest.reshape(shape),
            covered=_union(slot[runs], first[runs], last[runs], shape),
            aligned=_union(slot, first, last, shape),
            rival=rival,
            glued=np.ones(len(pairs), np.bool_),
        )


def _tokens(data: NDArray[np.uint8], offsets: Int64s) -> tuple[Int64s, Int64s]:
    """Bytes of each token in all the data, int64[t, 2], and where those of each text begin."""
    _, spans, starts = tokenize_parts(data, offsets, WORDS, char_tables())
    placed = spans + np.repeat(offsets[:-1], np.diff(starts))[:, np.newaxis]
    return placed, starts


def _question_share(pairs: Pairs) -> Float64s:
    whole = pairs.exact[:, QUESTION]
    return np.where(whole, 1.0, pairs.coverage[:, QUESTION].astype(np.float64))


def _take_better(pairs: Pairs, rows: Int64s, better: Pairs) -> None:
    """Raise the columns of these rows to those of better ones, and take what has no order."""
    for name in ("longest", "covered", "n_runs", "coverage", "aligned", "exact", "answer_near",
                 "n_places"):  # fmt: skip
        mine = getattr(pairs, name)
        mine[rows] = np.maximum(mine[rows], getattr(better, name))
    for name in ("split", "scattered", "rival", "glued"):
        getattr(pairs, name)[rows] = getattr(better, name)


def _union(slot: Int64s, first: Int32s, last: Int32s, shape: tuple[int, ...]) -> Int32s:
    """Tokens that lie in any of the pieces of a slot, as int32 of that shape."""
    room = int(last.max(initial=0)) + 1
    order = np.lexsort((first, slot))
    begin, end = (slot * room + first)[order], (slot * room + last)[order]
    before = np.concatenate([[0], np.maximum.accumulate(end)[:-1]]) if len(end) else end
    fresh = np.maximum(end - np.maximum(begin, before), 0)
    counts = np.zeros(shape[0] * N_PARTS, np.int32)
    np.add.at(counts, slot[order], fresh.astype(np.int32))
    return counts.reshape(shape)
