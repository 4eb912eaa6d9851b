"""Twin of the chains: runs of one part in one place of a document, and what is matched around them.

A run or a block is (item token, document token, length).  Every sum is made token by token in the
order of the text, so that it has the bits of the compiled one.
"""

from __future__ import annotations

import struct
from functools import cache
from typing import NamedTuple

from tests.twins.tokens import token_hash

Run = tuple[int, int, int]
Pair = tuple[int, int]

SKIP_ITEM, SKIP_DOC, MOST_DROP, SHARES = 0.16, 0.06, 2.5, 1 << 20
MOST_ITEM, MOST_DOC = 160, 320
MOST_RUNS, MOST_CHAINS = 48, 12
MOST_BETWEEN, SHIFT_COST, END_REACH = 24, 0.01, 12
LEAST_GAIN, ENOUGH_MATCHED = 0.03, 0.97


def single(value: float) -> float:
    """The 32-bit number nearest to a value."""
    return struct.unpack("f", struct.pack("f", value))[0]


def in_order(values: list[float]) -> float:
    """Their sum from the left; the built-in `sum` is more exact than the kernels from 3.12 on."""
    total = 0.0
    for value in values:
        total += value
    return total


def whole_shares(value: float) -> int:
    return round(value * SHARES)


# ---------------------------------------------------------------------- token by token


def fill(item: list[int], weights: list[float], doc: list[int], end: str) -> list[Pair]:
    """Equal tokens of two stretches, in order, that are worth what is skipped for them.

    end: "closed" where both ends are anchored, "right" where the right one is open, "left" where
    the left one is.  Of too long stretches only the tokens at the anchor count.

    A way is worth the weights of its pairs less what is skipped before the last of them.  Of ways
    that are worth the same, one that ends in the very last document token allowed is taken, of
    several such the one whose last item token comes last; else the one whose last item token comes
    first, and of those the one whose last document token is furthest from the anchor.  Of open
    ends that are worth the same the shortest is taken, by item and then by document.
    """
    if end == "left":
        m, n = len(item) - 1, len(doc) - 1
        found = fill(item[::-1], weights[::-1], doc[::-1], "right")
        return [(m - i, n - j) for i, j in reversed(found)]
    item, doc = item[:MOST_ITEM], doc[:MOST_DOC]
    skip_item, skip_doc = whole_shares(SKIP_ITEM), whole_shares(SKIP_DOC)
    equal = [(i, j) for i in range(len(item)) for j in range(len(doc)) if item[i] == doc[j]]
    # What a way is worth to its pair, as if nothing before the pair had been skipped.
    worth: dict[Pair, int] = {}
    before: dict[Pair, Pair | None] = {}

    def best(most_i: int, most_j: int) -> Pair | None:
        """The pair in which the best way ends that uses item[:most_i] and doc[:most_j]."""
        allowed = [pair for pair in worth if pair[0] < most_i and pair[1] < most_j]

        def order(pair: Pair) -> tuple[int, bool, int, int]:
            i, j = pair
            is_last = j == most_j - 1
            return worth[pair], is_last, i if is_last else -i, j

        return max(allowed, key=order, default=None)

    def score(pair: Pair) -> int:
        return worth[pair] - skip_item * (pair[0] + 1) - skip_doc * (pair[1] + 1)

    for i in range(len(item)):
        for pair in (one for one in equal if one[0] == i):
            before[pair] = best(i, pair[1])
            own = int(weights[i] * SHARES) + skip_item + skip_doc
            worth[pair] = own + (worth[before[pair]] if before[pair] else 0)
        if end == "right":
            # Given up where every way has fallen too far behind the best one.
            ends = [0, *map(score, worth)]
            now = [-skip_item * (i + 1)]
            now += [score(pair) - skip_item * (i - pair[0]) for pair in worth]
            if max(now) < max(ends) - whole_shares(MOST_DROP):
                break
    if end == "closed":
        last = best(len(item), len(doc))
    else:
        good = [pair for pair in worth if score(pair) > 0]
        last = max(good, key=lambda pair: (score(pair), -pair[0], -pair[1]), default=None)
    way = []
    while last is not None:
        way.append(last)
        last = before[last]
    return way[::-1]


class Spelling(NamedTuple):
    """Letters of each item token, 0 where they are not known, and the document's words as text."""

    letters: list[int]
    words: list[str]

    def is_spelled(self, item: list[int], i: int, end: int, j: int) -> bool:
        """Whether document word j is the item's words i to end, run together, not amid digits."""
        word, at = self.words[j].lower(), 0
        for token, n in zip(item[i:end], self.letters[i:end], strict=False):
            if not n or token_hash(word[at : at + n]) != token:
                return False
            if at and word[at - 1 : at + 1].encode().isdigit():
                return False
            at += n
        return at == len(word) and end <= len(self.letters)


# ------------------------------------------------------------------------------- chains


def overlap(run: Run, other: Run) -> int:
    """Tokens that a run must lose at its beginning to come behind another one on both sides."""
    return max(0, other[0] + other[2] - run[0], other[1] + other[2] - run[1])


def link(other: Run, run: Run) -> tuple[int, int] | None:
    """(tokens `run` loses behind `other`, how much the gap between differs); None if too far."""
    skip = overlap(run, other)
    if other[0] >= run[0] or other[1] >= run[1] or skip >= run[2]:
        return None
    in_item = run[0] + skip - other[0] - other[2]
    in_doc = run[1] + skip - other[1] - other[2]
    if in_doc > MOST_BETWEEN + 2 * in_item:
        return None
    return skip, abs(in_doc - in_item)


def best_chain(runs: list[Run], unused: list[int], weights: list[float]) -> list[int]:
    """Numbers of the runs of the heaviest chain of unused ones, in their order; [] if none weighs.

    Of chains that weigh the same the one that ends first is taken, and before each run the first
    of its best predecessors, or none where none adds anything.
    """
    sums = [0.0]
    for weight in weights:
        sums.append(sums[-1] + weight)

    @cache
    def ending(y: int) -> tuple[float, tuple[int, ...]]:
        run = runs[y]
        i, _, n = run
        ways = [(sums[i + n] - sums[i], (y,))]
        for x in (x for x in unused if x < y):
            if joined := link(runs[x], run):
                skip, shift = joined
                score, chain = ending(x)
                gained = sums[i + n] - sums[i + skip]
                ways.append((score + gained - SHIFT_COST * shift, (*chain, y)))
        return max(ways, key=lambda way: way[0])

    ends = [ending(y) for y in unused if sums[runs[y][0] + runs[y][2]] - sums[runs[y][0]] > 0]
    score, chain = max(ends, key=lambda way: way[0], default=(0.0, ()))
    return list(chain) if score > 0 else []


def joined(blocks: list[Run]) -> list[Run]:
    """Blocks of one chain; one that goes on where the one before ends is part of it."""
    out: list[Run] = []
    for i, j, n in blocks:
        if out and (out[-1][0] + out[-1][2], out[-1][1] + out[-1][2]) == (i, j):
            out[-1] = (*out[-1][:2], out[-1][2] + n)
        else:
            out.append((i, j, n))
    return out


def with_gaps(
    chain: list[Run],
    item: list[int],
    weights: list[float],
    doc: list[int],
    spelling: Spelling | None = None,
) -> list[Run]:
    """The blocks of a chain: its runs, and what fits between them and at both ends.

    Next to an anchor a word that is several of the item is taken first, and what is equal or such
    a word behind it, as far as that goes.
    """

    def spelled(i: int, end: int, j: int) -> bool:
        return spelling is not None and spelling.is_spelled(item, i, end, j)

    def stretch(i: int, i_end: int, j: int, j_end: int, end: str) -> list[Run]:
        left: list[Run] = []
        right: list[Run] = []
        j_end = min(j_end, len(doc))
        while end != "left" and i < i_end and j < j_end:
            is_equal = left and item[i] == doc[j]
            several = (k for k in range(i + 2, i_end + 1) if spelled(i, k, j))
            stop = i + 1 if is_equal else next(several, i)
            if stop == i:
                break
            left += [(x, j, 1) for x in range(i, stop)]
            i, j = stop, j + 1
        while end != "right" and i < i_end and j < j_end:
            is_equal = right and item[i_end - 1] == doc[j_end - 1]
            several = (k for k in range(i_end - 2, i - 1, -1) if spelled(k, i_end, j_end - 1))
            start = i_end - 1 if is_equal else next(several, i_end)
            if start == i_end:
                break
            right = [(x, j_end - 1, 1) for x in range(start, i_end)] + right
            i_end, j_end = start, j_end - 1
        found = fill(item[i:i_end], weights[i:i_end], doc[j:j_end], end)
        return left + [(i + x, j + y, 1) for x, y in found] + right

    i, j, _ = chain[0]
    reach = min(j, i + i // 2 + END_REACH, MOST_DOC)
    blocks = stretch(max(0, i - MOST_ITEM), i, j - reach, j, "left")
    blocks.append(chain[0])
    last = chain[0]
    for run in chain[1:]:
        skip = overlap(run, last)
        i, j, n = run[0] + skip, run[1] + skip, run[2] - skip
        blocks += stretch(last[0] + last[2], i, last[1] + last[2], j, "closed")
        last = (i, j, n)
        blocks.append(last)
    i, j = last[0] + last[2], last[1] + last[2]
    rest = len(item) - i
    blocks += stretch(i, len(item), j, j + rest + rest // 2 + END_REACH, "right")
    return joined(blocks)


def shared_tokens(run: Run, other: Run) -> int:
    """Document tokens in both."""
    return max(0, min(run[1] + run[2], other[1] + other[2]) - max(run[1], other[1]))


class Place(NamedTuple):
    """Chains of one place, each a list of blocks, and the weight they matched."""

    chains: list[list[Run]]
    weight: float


def align_place(
    runs: list[Run],
    item: list[int],
    weights: list[float],
    doc: list[int],
    spelling: Spelling | None = None,
) -> Place:
    """Chains of a place, heaviest first; a token weighs in the first chain that has it.

    The first chain is always taken, a further one only where it adds a share of the part's
    weight; a run with more than half of its document tokens in a chain is used up with it.
    """
    runs = runs[:MOST_RUNS]
    unused = list(range(len(runs)))
    left = list(weights)
    total = in_order(weights)
    chains: list[list[Run]] = []
    matched = 0.0
    while len(chains) < MOST_CHAINS and matched <= ENOUGH_MATCHED * total:
        chain = best_chain(runs, unused, left)
        if not chain:
            break
        blocks = with_gaps([runs[y] for y in chain], item, left, doc, spelling)
        tokens = [t for i, _, n in blocks for t in range(i, i + n)]
        gained = in_order([left[t] for t in tokens])
        if matched > 0 and gained < LEAST_GAIN * total:
            break
        for t in tokens:
            left[t] = 0.0
        matched += gained
        chains.append(blocks)
        unused = [
            y
            for y in unused
            if y not in chain and 2 * sum(shared_tokens(runs[y], b) for b in blocks) <= runs[y][2]
        ]
    return Place(chains, matched)
