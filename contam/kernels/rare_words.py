"""Find stretches of documents in which rare words of an item come together, in any order.

A window of an item reaches over so many tokens. Two counters an item, over stretches of that length
one behind the other, never count less than a window across both holds; where they reach what the
item needs, the stretch is noted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from contam.kernels._jit import int64, kernel, lean_kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: Columns of the counters of an item: where its stretch begins, what stands in it and in the one
#: before it, and whether it was noted.
BEGIN, _NOW, _BEFORE, _NOTED = range(4)
#: Before all tokens; places are counted through all documents up to the second number.
LONG_AGO = -(1 << 30)
MOST_PLACES = 1 << 30
FIRST_ROOM = 1024

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
    counter[:, BEGIN] = LONG_AGO
    return RareScratch(
        last=np.full(len(table.post_item), LONG_AGO, np.int32),
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
            begin = int64(counter[item, BEGIN])
            if place >= begin + window:
                if place >= begin + 2 * window:
                    begin = place
                    counter[item, _BEFORE] = 0
                else:
                    begin += window
                    counter[item, _BEFORE] = counter[item, _NOW]
                counter[item, BEGIN] = np.int32(begin)
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
