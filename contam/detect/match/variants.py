r"""Match items against copies that lost their punctuation: `\frac{7}{9}` became `frac79`.

Words that only punctuation parts run together in such a copy. An item that loses much of its words
so is searched in other *variants* too, as if they were items of a benchmark of their own, so that
nobody's weights change. What a variant finds becomes the item's own: it is folded into the pair of
item and document, and its spans are places of the item's text as it is.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from contam.detect.match.pieces import Pieces
from contam.detect.match.variant_texts import Trace, Words
from contam.detect.model import N_PARTS, QUESTION, Matches
from contam.kernels.constants import READING_LEAD
from contam.kernels.tokenize_items import code_point_spans

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from contam.detect.match.variant_texts import Variant, VariantTexts
    from contam.detect.model import Bools, Float64s, Int32s, Int64s, Uint64s

#: No word has this hash, but for one in 2**64.
_NO_WORD: Final = np.uint64(0x9E3779B97F4A7C15)
#: Words of variants that are weighed at once.
_AT_ONCE: Final = 1 << 20


class TracedVariants(NamedTuple):
    """Some variants, and what their words are made of; the columns are those of `Variants`.

    spans  int32[tokens, 2], code points in the part's text as it is
    """

    owner: Int32s
    n_words: Int32s
    sure: Int32s
    first: Int32s
    last: Int32s
    spans: Int32s
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
        within = (trace.spans - texts.offsets[trace.text, np.newaxis]).astype(np.int32)
        question = trace.text % N_PARTS == QUESTION
        return cls(
            owner=owner,
            n_words=np.diff(trace.starts)[QUESTION::N_PARTS].astype(np.int32),
            sure=_longest_runs(~trace.ambiguous & question, trace.text // N_PARTS, len(owner)),
            first=(moved + trace.first).astype(np.int32),
            last=(moved + trace.last).astype(np.int32),
            spans=code_point_spans(texts.data, texts.offsets, trace.starts, within),
            ambiguous=trace.ambiguous,
        )


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
        del columns["spans"]
        whole = {name: np.concatenate(columns.pop(name)) for name in list(columns)}
        return cls(
            n_items=n_items,
            n_tokens=int(starts[N_PARTS * n_items]),
            token_start=starts[:-1].reshape(-1, N_PARTS),
            **whole,
        )

    def blot_out(self, hashes: Uint64s) -> None:
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
        together = Pieces.concat([known.take(~hidden), moved], [0, 0])
        return strict, folded, together.take(np.argsort(together.match, kind="stable"))

    def _begin(self, matches: Matches, pieces: Pieces) -> Int64s:
        """The first token of each piece, flat."""
        begin: Int64s = (
            self.token_start[matches.item[pieces.match], pieces.part] + pieces.item_token
        )
        return begin

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
