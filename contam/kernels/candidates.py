"""Choose the documents worth reading from the postings of the items' grams.

An indexed gram keeps four bits of each of three tokens on either side (its context). A gram of an
item part *reaches* as far as its neighbours agree with those bits; where it reaches so far that a
run of the length asked for may stand there, the document is opened. Hits that reach less are
weighed together, part by part and document by document.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from contam.kernels._jit import int64, kernel
from contam.kernels.bits import SEED, finish_hash, mix_chunk
from contam.kernels.postings import context_at, document_at, ordinal_at
from contam.kernels.sample_grams import NEIGHBOURS, context_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: Bits that an entry keeps of each neighbour.
NIBBLE_BITS = 4
SIDE_BITS = NEIGHBOURS * NIBBLE_BITS
_NIBBLE = 15
_TOKEN_BITS = 36
_TOKEN_MASK = (1 << _TOKEN_BITS) - 1

#: States of a document while candidates are looked for; a document put to SHUT is never opened.
CLOSED = 0
OPEN = 1
SHUT = 2


class ItemGrams(NamedTuple):
    """The items' grams as they are looked up; places of a gram stand together.

    start    int32[grams + 1], where a gram's places begin
    place    int32[places], index of its first token among the tokens of all parts
    context  uint32[places], the bits of its neighbours, 0 where the part ends
    ways     uint16[places]: bit 4 * l + r says that reaching l tokens left and r right is enough
    weak     bool[places], whether a hit that reaches less is weighed
    """

    start: NDArray[np.int32]
    place: NDArray[np.int32]
    context: NDArray[np.uint32]
    ways: NDArray[np.uint16]
    weak: NDArray[np.bool_]


@kernel
def ways_of(left: int, right: int, more: int) -> int:
    """How a run of gram + more tokens can lie around a gram with so many tokens on each side.

    left, right  tokens of the part before and behind the gram
    return       see ItemGrams.ways; 0 where no such run fits into the part
    """
    ways = 0
    for before in range(min(left, more) + 1):
        behind = more - before
        if behind <= right:
            ways |= 1 << (4 * min(before, NEIGHBOURS) + min(behind, NEIGHBOURS))
    return ways


@kernel
def describe_places(
    token: NDArray[np.uint64],
    part_start: NDArray[np.int64],
    place: NDArray[np.int32],
    place_part: NDArray[np.int32],
    followed: NDArray[np.bool_],
    gram: int,
    run: int,
    context: NDArray[np.uint32],
    ways: NDArray[np.uint16],
) -> None:
    """Context and ways of every place; see ItemGrams.

    followed  bool[parts], whether a shorter part is worth opening a document that holds it whole
    run       tokens of a run that opens a document
    context   uint32[places], written; ways  uint16[places], written
    """
    for j in range(place.shape[0]):
        part = place_part[j]
        lo, hi = part_start[part], part_start[part + 1]
        at = place[j]
        length = run
        if followed[part]:
            length = min(run, hi - lo)
        context[j] = context_of(token, lo, hi, at, gram)
        ways[j] = ways_of(at - lo, hi - at - gram, length - gram)


@kernel
def reach(difference: int) -> int:
    """4 * l + r, neighbours that agree on each side; `difference` is the xor of two contexts."""
    left = 0
    while left < NEIGHBOURS and (difference >> (NIBBLE_BITS * left)) & _NIBBLE == 0:
        left += 1
    right = 0
    while right < NEIGHBOURS and (difference >> (SIDE_BITS + NIBBLE_BITS * right)) & _NIBBLE == 0:
        right += 1
    return 4 * left + right


@kernel
def enough() -> NDArray[np.int64]:
    """For each reach 4 * l + r the ways that it satisfies: int64[16]."""
    masks = np.zeros(16, np.int64)
    for left in range(4):
        for right in range(4):
            for a in range(left + 1):
                for b in range(right + 1):
                    masks[4 * left + right] |= 1 << (4 * a + b)
    return masks


@kernel
def grown(values: NDArray[np.int64], n: int) -> NDArray[np.int64]:
    """`values` with twice the room, the first n kept."""
    larger = np.empty(2 * values.shape[0] + 16, np.int64)
    larger[:n] = values[:n]
    return larger


@kernel
def open_by_reach(
    found: tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]],
    postings: NDArray[np.uint16],
    doc_entries: NDArray[np.uint32],
    grams: ItemGrams,
    state: NDArray[np.uint8],
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Open every document with a hit that reaches far enough; list the other hits.

    found    (gram, its first posting, the one behind its last): int64[n] each
    state    uint8[documents]: CLOSED, OPEN or SHUT; updated
    return   (documents opened now, in the order found; hits that reach less, in documents that are
             not open yet, at places that are weighed: document << 36 | index of the item token)
    """
    which, begins, ends = found
    start, place, context, ways, weak = grams
    masks = enough()
    opened = np.empty(64, np.int64)
    hits = np.empty(256, np.int64)
    n_opened = 0
    n_hits = 0
    for f in range(which.shape[0]):
        lo, hi = start[which[f]], start[which[f] + 1]
        for row in range(begins[f], ends[f]):
            mine = int64(context_at(postings, row))
            strong = False
            some = False
            for j in range(lo, hi):
                if int64(ways[j]) & masks[reach(mine ^ int64(context[j]))]:
                    strong = True
                    break
                some = some or weak[j]
            if not (strong or some):
                continue
            document = document_at(doc_entries, ordinal_at(postings, row))
            if state[document] != CLOSED:
                continue
            if strong:
                state[document] = OPEN
                if n_opened == opened.shape[0]:
                    opened = grown(opened, n_opened)
                opened[n_opened] = document
                n_opened += 1
                continue
            for j in range(lo, hi):
                if weak[j]:
                    if n_hits == hits.shape[0]:
                        hits = grown(hits, n_hits)
                    hits[n_hits] = (document << _TOKEN_BITS) | place[j]
                    n_hits += 1
    return opened[:n_opened].copy(), hits[:n_hits].copy()


@kernel
def open_by_weight(
    hits: NDArray[np.int64],
    gram: int,
    part_start: NDArray[np.int64],
    weights: tuple[NDArray[np.float32], NDArray[np.float64]],
    least: float,
    state: NDArray[np.uint8],
) -> NDArray[np.int64]:
    """Open every document in which the hits of one part weigh enough together.

    hits        int64[n], ascending: document << 36 | index of the item token
    weights     (float32[tokens], float64[parts]): of the tokens, and of all tokens of each part
    least       share of the part's weight that opens a document
    state       uint8[documents], updated
    return      documents opened now, ascending
    """
    token_weight, part_weight = weights
    opened = np.empty(64, np.int64)
    n = 0
    i = 0
    while i < hits.shape[0]:
        document = hits[i] >> _TOKEN_BITS
        part = np.searchsorted(part_start, hits[i] & _TOKEN_MASK, side="right") - 1
        end = part_start[part + 1]
        found = 0.0
        covered = part_start[part]
        while i < hits.shape[0] and hits[i] >> _TOKEN_BITS == document:
            token = hits[i] & _TOKEN_MASK
            if token >= end:
                break
            for t in range(max(token, covered), token + gram):
                found += token_weight[t]
            covered = token + gram
            i += 1
        if found >= least * part_weight[part] and state[document] == CLOSED:
            state[document] = OPEN
            if n == opened.shape[0]:
                opened = grown(opened, n)
            opened[n] = document
            n += 1
    return opened[:n].copy()


@kernel
def hash_places(
    seeds: NDArray[np.uint64], rows: NDArray[np.int64], hashes: NDArray[np.uint64]
) -> None:
    """Hash of each document, as `hash_documents` has it, from its shard's seed and its row.

    hashes  uint64[n], written
    """
    for i in range(rows.shape[0]):
        hashes[i] = finish_hash(mix_chunk(mix_chunk(SEED, seeds[i]), np.uint64(rows[i])))


@kernel
def fill_tokens(
    found: tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]],
    postings: NDArray[np.uint16],
    documents: tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]],
    starts: NDArray[np.int64],
    grams: ItemGrams,
    token: NDArray[np.uint64],
    sizes: tuple[int, int],
    out: NDArray[np.uint64],
) -> None:
    """Write the tokens that the items' grams prove to stand in some documents.

    found      (gram, its first posting, the one behind its last): int64[n] each
    documents  (number, first ordinal, the one behind its last), ascending: int64[m] each
    starts     int64[m + 1], where each document's tokens begin in `out`
    token      uint64[t], hashes of all item tokens
    sizes      (tokens of a gram, tokens from one indexed gram to the next)
    out        uint64[starts[m]], written: 0 stays where nothing is known. Neighbours are written
               only where they reach far enough, and never over what stands there.
    """
    which, begins, ends = found
    _, first, stop = documents
    gram, stride = sizes
    masks = enough()
    for sure in range(2):
        for f in range(which.shape[0]):
            lo, hi = grams.start[which[f]], grams.start[which[f] + 1]
            for row in range(begins[f], ends[f]):
                ordinal = ordinal_at(postings, row)
                d = np.searchsorted(stop, ordinal, side="right")
                if d == stop.shape[0] or ordinal < first[d]:
                    continue
                at = starts[d] + (ordinal - first[d]) * stride
                if sure == 0:
                    for i in range(gram):
                        out[at + i] = token[grams.place[lo] + i]
                    continue
                mine = int64(context_at(postings, row))
                for j in range(lo, hi):
                    reached = reach(mine ^ int64(grams.context[j]))
                    if int64(grams.ways[j]) & masks[reached] == 0:
                        continue
                    place = grams.place[j]
                    for i in range(1, (reached >> 2) + 1):
                        if at - i >= starts[d] and place >= i and out[at - i] == np.uint64(0):
                            out[at - i] = token[place - i]
                    for i in range(gram, gram + (reached & 3)):
                        inside = at + i < starts[d + 1] and place + i < token.shape[0]
                        if inside and out[at + i] == np.uint64(0):
                            out[at + i] = token[place + i]
                    break
