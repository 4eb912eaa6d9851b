r"""Match items against copies that lost their punctuation: `\frac{7}{9}` became `frac79`.

Words that only punctuation parts run together in such a copy. An item that loses much of its words
so is searched in other *variants* too, as if they were items of a benchmark of their own, so that
nobody's weights change. What a variant finds becomes the item's own: it is folded into the pair of
item and document, and its spans are places of the item's text as it is.
"""

from __future__ import annotations

import string
from dataclasses import dataclass, fields, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from contam.detect.match.pieces import Pieces
from contam.detect.model import N_PARTS, QUESTION, Matches
from contam.kernels.constants import LEAST_LETTERS, LEAST_LOST, LEAST_WORDS_LOST, READING_LEAD
from contam.kernels.tokenize_items import code_point_spans, tokenize_parts
from contam.kernels.tokens import WORDS
from contam.text.tokenizer import char_tables

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from contam.benchmark.item_table import ItemTable
    from contam.detect.model import Bools, Float64s, Int32s, Int64s, Uint64s


#: No word has this hash, but for one in 2**64.
_NO_WORD: Final = np.uint64(0x9E3779B97F4A7C15)
#: Words of variants that are weighed at once.
_AT_ONCE: Final = 1 << 20


class TracedVariants(NamedTuple):
    """Some variants, and what their words are made of; the columns are those of `Variants`."""

    owner: Int32s
    n_words: Int32s
    sure: Int32s
    first: Int32s
    last: Int32s
    ambiguous: Bools

    @classmethod
    def of(cls, variants: Sequence[Variant], texts: VariantTexts, starts: Int64s) -> TracedVariants:
        """Trace the words of variants back to the items' own.

        texts  those of the variants;  starts  int64[4 * items + 1], where each part's tokens begin
        """
        owner = np.array([variant.owner for variant in variants], np.int32)
        trace = Trace.of(Words.of(texts.data, texts.offsets), texts.left_out)
        # From a place among these tokens to one among the view's.
        own = starts[:-1].reshape(-1, N_PARTS)[owner].reshape(-1)
        moved = (own - trace.own_starts[:-1])[trace.text]
        question = trace.text % N_PARTS == QUESTION
        return cls(
            owner=owner,
            n_words=np.diff(trace.starts)[QUESTION::N_PARTS].astype(np.int32),
            sure=_longest_runs(~trace.ambiguous & question, trace.text // N_PARTS, len(owner)),
            first=(moved + trace.first).astype(np.int32),
            last=(moved + trace.last).astype(np.int32),
            ambiguous=trace.ambiguous,
        )


def own_spans(texts: VariantTexts) -> Int32s:
    """Code points of the words of variants in the parts' texts as they are: int32[words, 2]."""
    trace = Trace.of(Words.of(texts.data, texts.offsets), texts.left_out)
    within = (trace.spans - texts.offsets[trace.text, np.newaxis]).astype(np.int32)
    return code_point_spans(texts.data, texts.offsets, trace.starts, within)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Variants:
    """The variants of a view, whose items and tokens lie behind its own.

    n_items      items of its own: those numbered from here on are variants
    owner        int32[variants], the item each is a variant of
    n_words      int32[variants], tokens of their questions
    sure         int32[variants], the most of those in a row that are not ambiguous
    n_tokens     tokens of the view's own items: flat indices from here on are those of variants
    first, last  int32[tokens of variants], the item's own tokens that each is made of: the first
                 one, and the one behind the last, flat
    ambiguous    bool[tokens of variants], made of several of which none is a word: 1/2, 1.2 and 12
                 are all 12, and 2(x+3) begins like 2x+3
    token_start  int64[items and variants, 4], flat
    """

    n_items: int
    owner: Int32s
    n_words: Int32s
    sure: Int32s
    n_tokens: int
    first: Int32s
    last: Int32s
    ambiguous: Bools
    token_start: Int64s

    @classmethod
    def of(cls, traced: list[TracedVariants], n_items: int, starts: Int64s) -> Variants:
        """The variants of n items; the list is emptied.

        starts  int64[4 * (items and variants) + 1], where each part's tokens begin
        """
        columns = dict(
            zip(TracedVariants._fields, map(list, zip(*traced, strict=True)), strict=True)
        )
        traced.clear()
        # Column by column, and each is let go: never is all of it there twice.
        whole = {name: np.concatenate(columns.pop(name)) for name in list(columns)}
        return cls(
            n_items=n_items,
            n_tokens=int(starts[N_PARTS * n_items]),
            token_start=starts[:-1].reshape(-1, N_PARTS),
            **whole,
        )

    def mask_ambiguous(self, hashes: Uint64s) -> None:
        """Let ambiguous words equal none: they may be those of another question."""
        hashes[self.n_tokens :][self.ambiguous] = _NO_WORD

    def inherit(self, weight: NDArray[np.float32]) -> None:
        """Let each word of a variant weigh what the words weigh that it is made of."""
        own, theirs = weight[: self.n_tokens], weight[self.n_tokens :]
        for begin in range(0, len(theirs), _AT_ONCE):
            here = slice(begin, begin + _AT_ONCE)
            made = self.last[here] > self.first[here]
            first, last = self.first[here][made], self.last[here][made]
            if not len(first):
                continue
            # Variants are in the order of the blocks of their items: these are near each other.
            lowest = int(first.min())
            near = np.append(own[lowest : int(last.max())].astype(np.float64), 0.0)
            # Each word by itself: its sum does not depend on what stands before it.
            edges = np.stack([first, last], axis=1).reshape(-1) - lowest
            theirs[here][made] = np.add.reduceat(near, edges)[::2]

    def fold(
        self, matches: Matches, pieces: Pieces, score: Callable[[Matches], Float64s]
    ) -> tuple[Matches, Matches, Pieces]:
        """What was found of the items as they are; and the same with the variants folded in.

        score  of pairs; their items are those of the view

        All matches of a document must be among `matches`. A match is that of a variant where that
        finds clearly more of the question and scores higher; it has the pieces of both then.
        """
        rows = np.flatnonzero(matches.item >= self.n_items)
        if not len(rows):
            return matches, matches, pieces
        plain = np.flatnonzero(matches.item < self.n_items)
        strict = matches.take(plain)
        known = pieces.of_matches(plain, len(matches))
        rows, beside = self._better(matches, rows, plain, score)
        if not len(rows):
            return strict, strict, known
        alone, both = beside < 0, beside >= 0
        better = self._as_own(matches.take(rows))
        # The item as it is may be found in more places, each less clearly.
        places = strict.n_places[beside[both]]
        better.n_places[both] = np.maximum(better.n_places[both], places)
        better.told[both] = np.maximum(better.told[both], strict.told[beside[both]])
        to = np.where(alone, len(plain) + np.cumsum(alone) - 1, beside)
        folded = Matches.concat([strict, better.take(alone)])
        for column in fields(Matches):
            getattr(folded, column.name)[to[both]] = getattr(better, column.name)[both]
        found = pieces.of_matches(rows, len(matches))
        own = self.token_start[better.item][found.match, found.part]
        begin = self._begin(matches.take(rows), found) - own
        # Stretches with the same number belong together: those of both are numbered apart.
        beyond = np.zeros(len(folded), np.int32)
        np.maximum.at(beyond, known.match, known.alignment + 1)
        moved = replace(
            found,
            match=to[found.match],
            alignment=np.where(
                found.alignment < 0, found.alignment, found.alignment + beyond[to[found.match]]
            ).astype(np.int32),
            item_token=begin.astype(np.int32),
        )
        hidden = self._hidden(folded, known, moved)
        together = Pieces.joined([known.take(~hidden), moved], [0, 0])
        return strict, folded, together.take(np.argsort(together.match, kind="stable"))

    def _begin(self, matches: Matches, pieces: Pieces) -> Int64s:
        """The first token of each piece, flat."""
        return self.token_start[matches.item[pieces.match], pieces.part] + pieces.item_token

    def _hidden(self, matches: Matches, known: Pieces, moved: Pieces) -> Bools:
        """Which known pieces lie within a piece of a variant, in the item and the document."""
        hidden = np.zeros(len(known.match), np.bool_)
        at = self._begin(matches, moved) - self.n_tokens
        first, last = self.first[at], self.last[at + moved.length - 1]
        begins = self._begin(matches, known)
        order = np.argsort(moved.match, kind="stable")
        edges = np.flatnonzero(np.diff(moved.match[order], prepend=-1, append=-1))
        for lo, hi in pairwise(edges.tolist()):
            mine = order[lo:hi]
            rows = slice(
                *np.searchsorted(known.match, moved.match[mine[0]] + np.arange(2)).tolist()
            )
            begin = begins[rows, np.newaxis]
            end = begin + known.length[rows, np.newaxis]
            within = known.part[rows, np.newaxis] == moved.part[mine]
            within &= (first[mine] <= begin) & (end <= last[mine])
            within &= moved.start[mine] <= known.start[rows, np.newaxis]
            within &= known.end[rows, np.newaxis] <= moved.end[mine]
            hidden[rows] = within.any(axis=1)
        return hidden

    def _better(
        self, matches: Matches, rows: Int64s, plain: Int64s, score: Callable[[Matches], Float64s]
    ) -> tuple[Int64s, Int64s]:
        """The variants' rows that count, one a document at most, and each one's place in `plain`.

        That place is -1 where nothing was found of the item as it is.
        """
        share = matches.coverage[:, QUESTION].astype(np.float64)
        share[matches.exact[:, QUESTION]] = 1.0
        item = matches.item.copy()
        item[rows] = self.owner[item[rows] - self.n_items]
        rows = rows[share[rows] >= READING_LEAD]
        if not len(rows):
            return rows, rows
        # Each variant's row beside that of the item as it is, if there is one.
        owners = np.flatnonzero(np.isin(matches.item[plain], item[rows]))
        some = np.concatenate([plain[owners], rows])
        number = _numbered(item[some], matches.shard[some], matches.row[some])
        known = np.full(int(number.max()) + 1, -1, np.int64)
        known[number[: len(owners)]] = owners
        number = number[len(owners) :]
        beside = known[number]
        least = np.zeros(len(rows))
        least[beside >= 0] = share[plain[beside[beside >= 0]]]
        likely = share[rows] >= least + READING_LEAD
        rows, beside, number = rows[likely], beside[likely], number[likely]
        mine = score(self._as_own(matches.take(rows)))
        theirs = np.zeros(len(rows))
        theirs[beside >= 0] = score(matches.take(plain[beside[beside >= 0]]))
        # The best of a document's variants, the first of several.
        best = np.lexsort((matches.item[rows], -share[rows], -mine, number))
        best = best[np.diff(number[best], prepend=-1) != 0]
        best = best[mine[best] > theirs[best]]
        return rows[best], beside[best]

    def _as_own(self, matches: Matches) -> Matches:
        """Matches of variants as matches of their items: they count the words of the variant."""
        variant = matches.item - self.n_items
        competing_item = matches.competing_item.copy()
        competing_item[competing_item >= 0] = self.owner[
            competing_item[competing_item >= 0] - self.n_items
        ]
        return replace(
            matches,
            item=self.owner[variant],
            exact=np.zeros_like(matches.exact),
            competing_item=competing_item,
            variant_words=self.n_words[variant],
        )


def _numbered(*columns: NDArray[np.generic]) -> Int64s:
    """The number of each row among the different ones, in the order of the columns' values."""
    order = np.lexsort(columns[::-1])
    fresh = np.zeros(len(order), np.bool_)
    for column in columns:
        fresh[1:] |= np.diff(column[order]) != 0
    number = np.empty(len(order), np.int64)
    number[order] = np.cumsum(fresh)
    return number


def _longest_runs(sure: Bools, owner: Int64s, n: int) -> Int32s:
    """The most words in a row of each variant that are sure, int32[n]; owner  of each word."""
    place = np.arange(len(sure))
    # The last place up to each that ends a run: one that is not sure, or the word before another's.
    ends = np.where(sure, -1, place)
    fresh = np.diff(owner, prepend=-1) != 0
    ends[fresh & sure] = place[fresh & sure] - 1
    length = np.where(sure, place - np.maximum.accumulate(ends), 0) if len(sure) else place
    longest = np.zeros(n, np.int32)
    np.maximum.at(longest, owner, length.astype(np.int32))
    return longest


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
    return before + behind > 0


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
