"""Find windows of documents in which enough of an item's rare words come together, in any order.

A window of an item reaches over so many tokens. Two counters an item, over stretches of that length
one behind the other, never count less than a window across both holds; where they reach what the
item needs, the stretch is noted, and then looked through for the window that holds most.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from contam.kernels._jit import int64, kernel, lean_kernel
from contam.kernels.tokens import WORDS, tokenize

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from contam.kernels.chars import CharTables

#: Columns of a window that was found: its document and item; the weight of the item's different
#: words in it, and how many these are; its tokens; then pairs of bytes of the document, of the
#: window, of the window with NEAR tokens on either side, and of all windows that could hold it.
(
    ROW_DOC,
    ROW_ITEM,
    ROW_WEIGHT,
    ROW_WORDS,
    ROW_TOKENS,
    ROW_FIRST,
    ROW_END,
    ROW_NEAR_FIRST,
    ROW_NEAR_END,
    ROW_WIDE_FIRST,
    ROW_WIDE_END,
    ROW_IN_ORDER,
    ROW_COLUMNS,
) = range(13)
#: Tokens on either side of a window that are looked at with it.
NEAR = 3
#: Columns of the counters of an item: where its stretch begins, what stands in it and in the one
#: before it, and whether it was noted.
_BEGIN, _NOW, _BEFORE, _NOTED = range(4)
#: Before all tokens; places are counted through all documents up to the second number.
_LONG_AGO = -(1 << 30)
_MOST_PLACES = 1 << 30
_FIRST_ROOM = 1024

_ONE = np.uint64(1)
_ZERO = np.uint64(0)
_BYTE = np.uint64(7)
_THREE = np.uint64(3)


class RareTable(NamedTuple):
    """The rare words of n items.

    key         uint64[2**b], hashes of words in open addresses, 0 where a place is free
    word        int32[2**b], the number of the word in each place
    bits        uint8[2**f], a bit for the highest bits of each hash
    weight      int32[words]
    post_start  int64[words + 1], where the items of each word begin in `post_item`: int32[posts]
    item_start  int64[n + 1], where the words of each item begin in `item_word`: int32[posts],
                ascending
    window      int32[n], tokens of a window
    least       int32[n], weight that is enough;  least_words  int32[n], different words
    in_order    int32[n], how many tokens in order make less enough; 0 where nothing does
    less        int32[n], weight that is enough then;  less_words  int32[n], different words
    token_start int64[n], where the tokens of each item begin in `token`: uint64[tokens]
    n_tokens    int32[n]
    """

    key: NDArray[np.uint64]
    word: NDArray[np.int32]
    bits: NDArray[np.uint8]
    weight: NDArray[np.int32]
    post_start: NDArray[np.int64]
    post_item: NDArray[np.int32]
    item_start: NDArray[np.int64]
    item_word: NDArray[np.int32]
    window: NDArray[np.int32]
    least: NDArray[np.int32]
    least_words: NDArray[np.int32]
    in_order: NDArray[np.int32]
    less: NDArray[np.int32]
    less_words: NDArray[np.int32]
    token_start: NDArray[np.int64]
    token: NDArray[np.uint64]
    n_tokens: NDArray[np.int32]


class RareScratch(NamedTuple):
    """What one worker counts with.

    last     int32[posts], the last place of each word, for each of its items
    counter  int32[n, 4]
    words    int32[tokens of the longest document], written
    tally    int32[most words of an item];  chain  int32[most tokens in order + 1]
    queue    int32[twice the longest window, 2]
    place    int64[1], the place of the next document's first token
    """

    last: NDArray[np.int32]
    counter: NDArray[np.int32]
    words: NDArray[np.int32]
    tally: NDArray[np.int32]
    chain: NDArray[np.int32]
    queue: NDArray[np.int32]
    place: NDArray[np.int64]


def new_rare_scratch(table: RareTable, n_tokens: int) -> RareScratch:
    """Scratch for documents of up to so many tokens."""
    n = len(table.window)
    counter = np.zeros((n, 4), np.int32)
    counter[:, _BEGIN] = _LONG_AGO
    return RareScratch(
        last=np.full(len(table.post_item), _LONG_AGO, np.int32),
        counter=counter,
        words=np.empty(n_tokens, np.int32),
        tally=np.zeros(int(np.diff(table.item_start).max(initial=1)), np.int32),
        chain=np.zeros(int(table.n_tokens.max(initial=0)) + 1, np.int32),
        queue=np.empty((2 * int(table.window.max(initial=1)) + 2, 2), np.int32),
        place=np.zeros(1, np.int64),
    )


@kernel
def enter_words(
    hashes: NDArray[np.uint64],
    key: NDArray[np.uint64],
    word: NDArray[np.int32],
    bits: NDArray[np.uint8],
) -> None:
    """Enter different hashes, none of them 0, under their numbers; see `RareTable`."""
    mask = np.uint64(key.shape[0] - 1)
    shift = filter_shift(bits)
    for i in range(hashes.shape[0]):
        at = hashes[i] & mask
        while key[at] != _ZERO:
            at = (at + _ONE) & mask
        key[at] = hashes[i]
        word[at] = np.int32(i)
        bit = hashes[i] >> shift
        bits[bit >> _THREE] |= np.uint8(_ONE << (bit & _BYTE))


@lean_kernel
def filter_shift(bits: NDArray[np.uint8]) -> np.uint64:
    """How far a hash is shifted to be the number of its bit."""
    shift = 61
    size = bits.shape[0]
    while size > 1:
        size >>= 1
        shift -= 1
    return np.uint64(shift)


@lean_kernel
def number_words(
    hashes: NDArray[np.uint64], n: int, table: RareTable, words: NDArray[np.int32]
) -> None:
    """Write the number of each of n words, -1 for those that no item has."""
    mask = np.uint64(table.key.shape[0] - 1)
    shift = filter_shift(table.bits)
    for t in range(n):
        words[t] = -1
        bit = hashes[t] >> shift
        if (np.uint64(table.bits[bit >> _THREE]) >> (bit & _BYTE)) & _ONE == _ZERO:
            continue
        at = hashes[t] & mask
        while table.key[at] != _ZERO and table.key[at] != hashes[t]:
            at = (at + _ONE) & mask
        if table.key[at] == hashes[t]:
            words[t] = table.word[at]


@kernel
def note_stretches(
    n: int, table: RareTable, scratch: RareScratch, noted: NDArray[np.int32]
) -> tuple[NDArray[np.int32], int]:
    """The item and the first token of each stretch that may end a window with enough weight.

    n      tokens of the document, whose numbers lie in `scratch.words`
    noted  int32[room, 2], written, or replaced by a larger one
    """
    first = scratch.place[0]
    counter, last = scratch.counter, scratch.last
    count = 0
    for t in range(n):
        word = int64(scratch.words[t])
        if word < 0:
            continue
        place = first + t
        weight = table.weight[word]
        for post in range(table.post_start[word], table.post_start[word + 1]):
            item = int64(table.post_item[post])
            window = int64(table.window[item])
            begin = int64(counter[item, _BEGIN])
            if place >= begin + window:
                if place >= begin + 2 * window:
                    begin = place
                    counter[item, _BEFORE] = 0
                else:
                    begin += window
                    counter[item, _BEFORE] = counter[item, _NOW]
                counter[item, _BEGIN] = np.int32(begin)
                counter[item, _NOW] = 0
                counter[item, _NOTED] = 0
            if last[post] < begin:
                counter[item, _NOW] += weight
                together = counter[item, _NOW] + counter[item, _BEFORE]
                if (
                    together >= min(table.least[item], table.less[item])
                    and counter[item, _NOTED] == 0
                ):
                    counter[item, _NOTED] = 1
                    if count == noted.shape[0]:
                        more = np.empty((2 * count, 2), np.int32)
                        more[:count] = noted
                        noted = more
                    noted[count, 0] = np.int32(item)
                    noted[count, 1] = np.int32(begin - first)
                    count += 1
            last[post] = np.int32(place)
    return noted, count


@lean_kernel
def best_window(
    item: int,
    stretch: tuple[int, int],
    enough: tuple[int, int],
    table: RareTable,
    scratch: RareScratch,
) -> tuple[int, int, int, int]:
    """The window with most of an item's weight of those that end in a noted stretch.

    stretch  its first token, and how many tokens the document has
    enough   the least weight, and the least different words
    return  weight (0: no window has enough), different words, first token and the one behind the
            last; the shortest of equal ones, and of these the first
    """
    count, queue = scratch.tally, scratch.queue
    begin, n = stretch
    least, least_words = enough
    window = int64(table.window[item])
    lo, hi = max(int64(0), begin - window), min(n, begin + window)
    a, b = table.item_start[item], table.item_start[item + 1]
    for q in range(b - a):
        count[q] = 0
    head = int64(0)
    tail = int64(0)
    weight = int64(0)
    different = int64(0)
    best = int64(0)
    best_words = int64(0)
    best_first = int64(0)
    best_end = int64(0)
    for t in range(lo, hi):
        word = scratch.words[t]
        if word < 0:
            continue
        left, right = a, b
        while left < right:
            middle = (left + right) >> 1
            if table.item_word[middle] < word:
                left = middle + 1
            else:
                right = middle
        if left == b or table.item_word[left] != word:
            continue
        queue[tail, 0] = np.int32(t)
        queue[tail, 1] = np.int32(left - a)
        tail += 1
        if count[left - a] == 0:
            weight += table.weight[word]
            different += 1
        count[left - a] += 1
        while queue[head, 0] <= t - window or count[queue[head, 1]] > 1:
            gone = int64(queue[head, 1])
            count[gone] -= 1
            if count[gone] == 0:
                weight -= table.weight[table.item_word[a + gone]]
                different -= 1
            head += 1
        if different < least_words or weight < least:
            continue
        length = t + 1 - queue[head, 0]
        if weight > best or (weight == best and length < best_end - best_first):
            best, best_words = weight, different
            best_first, best_end = int64(queue[head, 0]), t + 1
    return best, best_words, best_first, best_end


@lean_kernel
def enough_of(
    item: int, stretch: tuple[int, int], table: RareTable, scratch: RareScratch
) -> tuple[int, int, int, int, bool]:
    """The best window with enough, or else the best with what is enough in order.

    stretch  as for `best_window`
    return   as of `best_window`; whether it has only what is enough in order
    """
    least, least_words = int64(table.least[item]), int64(table.least_words[item])
    if table.in_order[item] == 0:
        weight, words, first, end = best_window(item, stretch, (least, least_words), table, scratch)
        return weight, words, first, end, False
    less, less_words = int64(table.less[item]), int64(table.less_words[item])
    # Nearly always one search answers both questions.
    weight, words, first, end = best_window(
        item, stretch, (min(least, less), min(least_words, less_words)), table, scratch
    )
    if weight >= least:
        if words >= least_words:
            return weight, words, first, end, False
        more, more_words, its_first, its_end = best_window(
            item, stretch, (least, least_words), table, scratch
        )
        if more > 0:
            return more, more_words, its_first, its_end, False
    if weight < less:
        weight = int64(0)
    return weight, words, first, end, True


@lean_kernel
def n_in_order(
    item: int,
    hashes: NDArray[np.uint64],
    table: RareTable,
    chain: NDArray[np.int32],
) -> int:
    """How many tokens of an item stand among these in the same order, others between them or not.

    chain  scratch
    """
    first = table.token_start[item]
    n = int64(table.n_tokens[item])
    for q in range(n + 1):
        chain[q] = 0
    for t in range(hashes.shape[0]):
        before = np.int32(0)
        for q in range(n):
            here = chain[q + 1]
            if table.token[first + q] == hashes[t]:
                chain[q + 1] = before + 1
            elif chain[q] > here:
                chain[q + 1] = chain[q]
            before = here
    return int64(chain[n])


@kernel
def find_windows(
    text: NDArray[np.uint8],
    offsets: NDArray[np.int64],
    table: RareTable,
    scratch: RareScratch,
    hashes: NDArray[np.uint64],
    spans: NDArray[np.int32],
    tables: CharTables,
) -> tuple[NDArray[np.int32], int, int]:
    """Windows of every document of a batch that hold enough of an item's rare words.

    text           uint8[n], UTF-8; document i is text[offsets[i] : offsets[i + 1]]
    hashes, spans  scratch for the longest document, as `tokenize` wants it
    return         int32[>= windows, ROW_COLUMNS], how many windows, and how many tokens were read.
                   Several windows of an item may lie over each other.
    """
    rows = np.empty((_FIRST_ROOM, ROW_COLUMNS), np.int32)
    noted = np.empty((_FIRST_ROOM, 2), np.int32)
    found = 0
    total = 0
    widest = scratch.queue.shape[0]
    for doc in range(offsets.shape[0] - 1):
        limits = (offsets[doc], offsets[doc + 1])
        if limits[0] == limits[1]:
            continue
        n = tokenize(text, limits, WORDS, hashes, spans, tables)
        total += n
        if scratch.place[0] + n >= _MOST_PLACES:
            scratch.last[:] = _LONG_AGO
            scratch.counter[:, _BEGIN] = _LONG_AGO
            scratch.place[0] = 0
        number_words(hashes, n, table, scratch.words)
        noted, count = note_stretches(n, table, scratch, noted)
        # Farther than any stretch reaches, so that no document counts for the next.
        scratch.place[0] += n + widest
        for k in range(count):
            item, begin = int64(noted[k, 0]), int64(noted[k, 1])
            window = int64(table.window[item])
            weight, words, first, end, is_less = enough_of(item, (begin, n), table, scratch)
            if weight == 0:
                continue
            in_order = int64(0)
            if table.in_order[item] > 0:
                wide = hashes[max(int64(0), end - window) : min(n, first + window)]
                in_order = n_in_order(item, wide, table, scratch.chain)
                if is_less and in_order < table.in_order[item]:
                    continue
            if found == rows.shape[0]:
                more = np.empty((2 * found, ROW_COLUMNS), np.int32)
                more[:found] = rows
                rows = more
            row = rows[found]
            row[ROW_DOC] = np.int32(doc)
            row[ROW_ITEM] = np.int32(item)
            row[ROW_WEIGHT] = np.int32(weight)
            row[ROW_WORDS] = np.int32(words)
            row[ROW_TOKENS] = np.int32(end - first)
            row[ROW_FIRST] = spans[first, 0]
            row[ROW_END] = spans[end - 1, 1]
            row[ROW_NEAR_FIRST] = spans[max(int64(0), first - NEAR), 0]
            row[ROW_NEAR_END] = spans[min(n, end + NEAR) - 1, 1]
            row[ROW_WIDE_FIRST] = spans[max(int64(0), end - window), 0]
            row[ROW_WIDE_END] = spans[min(n, first + window) - 1, 1]
            row[ROW_IN_ORDER] = np.int32(in_order)
            found += 1
    return rows, found, total
