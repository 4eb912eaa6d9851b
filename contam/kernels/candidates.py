"""Choose the documents worth reading from the grams of items that they hold.

An index knows which grams a document holds, and not where. A scan looks at a document in which a
run of some tokens stands, a short part whole, or runs that weigh enough of a part together: each
needs its grams, so that a document without them is none of these.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from contam.kernels._jit import int64, kernel, lean_kernel
from contam.kernels.pairs import get_bits

if TYPE_CHECKING:
    from contam.kernels._jit import Bools, Float32s, Float64s, Int32s, Int64s, Uint8s, Uint64s

#: States of a document while candidates are looked for; a document put to SHUT is never opened.
CLOSED = 0
OPEN = 1
SHUT = 2

#: A hit is the number of a document above that of an item token.
TOKEN_BITS = 32
_TOKEN = (1 << TOKEN_BITS) - 1


class Lists(NamedTuple):
    """The documents of grams: those of gram g are numbers first[g] up to stop[g] of a packed row.

    first, stop  int64[grams];  words  uint64[...];  width  bits of a document, see `pairs`
    """

    first: Int64s
    stop: Int64s
    words: Uint64s
    width: int


@kernel
def grown(values: Int64s, n: int) -> Int64s:
    """`values` with twice the room, the first n kept."""
    larger = np.empty(2 * values.shape[0] + 16, np.int64)
    larger[:n] = values[:n]
    return larger


@lean_kernel
def holds(lists: Lists, gram: int, document: int) -> bool:
    """Whether a document holds a gram."""
    lo, hi = lists.first[gram], lists.stop[gram]
    while lo < hi:
        middle = (lo + hi) >> 1
        if int64(get_bits(lists.words, middle * lists.width, lists.width)) < document:
            lo = middle + 1
        else:
            hi = middle
    return (
        lo < lists.stop[gram]
        and int64(get_bits(lists.words, lo * lists.width, lists.width)) == document
    )


@kernel
def open_by_grams(windows: Int32s, lists: Lists, state: Uint8s) -> Int64s:
    """Open every document that holds all grams of a window; returns those opened now.

    windows  int32[w, n], grams; -1 for one that counts as if every document had it, not for all n
    state    uint8[documents]: CLOSED, OPEN or SHUT; updated
    """
    opened = np.empty(64, np.int64)
    n_opened = 0
    for w in range(windows.shape[0]):
        rarest = int64(-1)
        for k in range(windows.shape[1]):
            gram = int64(windows[w, k])
            if gram >= 0 and (
                rarest < 0
                or lists.stop[gram] - lists.first[gram] < lists.stop[rarest] - lists.first[rarest]
            ):
                rarest = gram
        for pair in range(lists.first[rarest], lists.stop[rarest]):
            document = int64(get_bits(lists.words, pair * lists.width, lists.width))
            if state[document] != CLOSED:
                continue
            every = True
            for k in range(windows.shape[1]):
                gram = int64(windows[w, k])
                if gram >= 0 and gram != rarest and not holds(lists, gram, document):
                    every = False
                    break
            if every:
                state[document] = OPEN
                if n_opened == opened.shape[0]:
                    opened = grown(opened, n_opened)
                opened[n_opened] = document
                n_opened += 1
    return opened[:n_opened].copy()


@kernel
def hits_of(places: tuple[Int32s, Int32s], counted: Bools, lists: Lists, state: Uint8s) -> Int64s:
    """The hits of item tokens in documents that are CLOSED, in no order.

    places   (int32[grams + 1], where each gram's places begin; int32[p], item tokens)
    counted  bool[p], the places that count
    return   int64[n]: document << TOKEN_BITS | item token
    """
    start, place = places
    hits = np.empty(256, np.int64)
    n_hits = 0
    for gram in range(start.shape[0] - 1):
        some = False
        for j in range(start[gram], start[gram + 1]):
            some = some or counted[j]
        if not some:
            continue
        for pair in range(lists.first[gram], lists.stop[gram]):
            document = int64(get_bits(lists.words, pair * lists.width, lists.width))
            if state[document] != CLOSED:
                continue
            for j in range(start[gram], start[gram + 1]):
                if counted[j]:
                    if n_hits == hits.shape[0]:
                        hits = grown(hits, n_hits)
                    hits[n_hits] = (document << TOKEN_BITS) | place[j]
                    n_hits += 1
    return hits[:n_hits].copy()


@lean_kernel
def stands_beside(gram: int, document: int, lists: Lists, everywhere: Bools) -> bool:
    """Whether a document holds a gram, or counts as if it did; gram -1 is none."""
    return gram >= 0 and (bool(everywhere[gram]) or holds(lists, gram, document))


@kernel
def worth_reading(
    hits: Int64s,
    sizes: tuple[int, int, int],
    part_start: Int64s,
    weights: tuple[Float32s, Float64s, Float64s],
    at: Int32s,
    capped: Bools,
    lists: Lists,
    least: float,
) -> tuple[Int64s, Int64s]:
    """Which documents, ascending, hold enough of which parts: int64[n] each.

    hits     ascending: document << TOKEN_BITS | item token
    sizes    (tokens of a gram, tokens from one to the next, grams in a row that are enough)
    weights  (float32[tokens], float64[parts], float64[parts]): of the tokens, of all tokens of each
             part, and of those in capped grams
    at       int32[tokens], the gram that begins there, -1 for none
    capped   bool[grams], those that count as if every document had them
    least    share of a part's weight that is enough
    """
    gram, stride, enough = sizes
    token_weight, part_weight, everywhere = weights
    documents, parts = np.empty(64, np.int64), np.empty(64, np.int64)
    n = 0
    i = 0
    while i < hits.shape[0]:
        document = hits[i] >> TOKEN_BITS
        part = np.searchsorted(part_start, hits[i] & _TOKEN, side="right") - 1
        lo, hi = part_start[part], part_start[part + 1]
        found = everywhere[part]
        covered = lo
        whole = (hi - lo - gram) // stride + 1
        longest, run, before = 0, 0, int64(-1)
        while i < hits.shape[0] and hits[i] >> TOKEN_BITS == document:
            token = hits[i] & _TOKEN
            if token >= hi:
                break
            # A run that begins at this gram goes on over those that many items share.
            begin, end = token, token + gram
            while begin > max(lo, covered) and stands_beside(
                int64(at[begin - 1]), document, lists, capped
            ):
                begin -= 1
            while end < hi and stands_beside(int64(at[end - gram + 1]), document, lists, capped):
                end += 1
            for t in range(max(begin, covered), end):
                found += token_weight[t]
            covered = max(covered, end)
            run = run + 1 if before >= 0 and token - before == stride else 1
            longest, before = max(longest, run), token
            i += 1
        if found >= least * part_weight[part] or longest >= min(enough, whole):
            if n == documents.shape[0]:
                documents, parts = grown(documents, n), grown(parts, n)
            documents[n], parts[n] = document, part
            n += 1
    return documents[:n].copy(), parts[:n].copy()
