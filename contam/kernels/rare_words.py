"""Find stretches of documents in which rare words of an item come together, in any order.

A window of an item reaches over so many tokens. Two counters an item, over stretches of that length
one behind the other, never count less than a window across both holds; where they reach what the
item needs, the stretch is noted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from contam.kernels._jit import int64, kernel, lean_kernel
from contam.kernels.hash_set import filter_shift, is_noted, note_key, slot_of_key

if TYPE_CHECKING:
    from contam.kernels._jit import Int32s, Int64s, Uint8s, Uint64s


#: Columns of the counters of an item: where its stretch begins, what stands in it and in the one
#: before it, and whether it was noted. Beside them stands what is read with them: its window, and
#: the weight that may be enough. Eight numbers make half a line of the cache.
_BEGIN, _NOW, _BEFORE, _NOTED, _WINDOW, _ENOUGH = range(6)
_COUNTERS = 8
#: Columns of the rare words of a document: which token, and the number of the word.
TOKEN, WORD = range(2)
#: Columns of a stretch: its item, its first token, and which rare word of the document is in it.
STRETCH_ITEM, STRETCH_BEGIN, STRETCH_AT, _STRETCH = range(4)
#: Before all tokens; places are counted through all documents up to the second number.
_LONG_AGO = -(1 << 30)
_MOST_PLACES = 1 << 30
_LEAST_ROOM = 1024


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

    key: Uint64s
    word: Int32s
    bits: Uint8s
    weight: Int32s
    post_start: Int64s
    post_item: Int32s
    item_start: Int64s
    item_word: Int32s
    window: Int32s
    least: Int32s
    least_words: Int32s
    in_order: Int32s
    less: Int32s
    less_words: Int32s
    token_start: Int64s
    token: Uint64s
    n_tokens: Int32s


class RareScratch(NamedTuple):
    """What one worker counts with.

    place    int64[1], the place of the document's first token
    gap      places between documents: no stretch reaches from one to the next
    counter  int32[n, 8]
    last     int32[words], the last place of each word
    rare     int32[tokens of the longest document, 2], its rare words
    noted    int32[stretches, 3]
    number   int32[words], the number of each word of one item among them, -1 for all others
    own      int32[tokens of two windows, 2], where the words of this item stand, and their numbers
    tally    int32[most words of an item];  chain  uint64[most tokens of an item / 64 + 1]
    """

    place: Int64s
    gap: int
    counter: Int32s
    last: Int32s
    rare: Int32s
    noted: Int32s
    number: Int32s
    own: Int32s
    tally: Int32s
    chain: Uint64s


def new_rare_scratch(table: RareTable, n_tokens: int) -> RareScratch:
    """Scratch for documents of up to so many tokens."""
    n, n_words = len(table.window), len(table.weight)
    widest = int(table.window.max(initial=0))
    # One word notes at most one stretch of each of its items.
    room = max(_LEAST_ROOM, int(np.diff(table.post_start).max(initial=0)))
    counter = np.zeros((n, _COUNTERS), np.int32)
    counter[:, _BEGIN] = _LONG_AGO
    counter[:, _WINDOW] = table.window
    counter[:, _ENOUGH] = np.minimum(table.least, table.less)
    return RareScratch(
        place=np.zeros(1, np.int64),
        gap=2 * widest,
        counter=counter,
        last=np.full(n_words, _LONG_AGO, np.int32),
        rare=np.empty((n_tokens, 2), np.int32),
        noted=np.empty((room, _STRETCH), np.int32),
        number=np.full(n_words, -1, np.int32),
        own=np.empty((2 * widest, 2), np.int32),
        tally=np.zeros(int(np.diff(table.item_start).max(initial=1)), np.int32),
        chain=np.empty((int(table.n_tokens.max(initial=0)) >> 6) + 1, np.uint64),
    )


@kernel
def enter_words(hashes: Uint64s, key: Uint64s, word: Int32s, bits: Uint8s) -> None:
    """Enter different hashes, none of them 0, under their numbers; see `RareTable`."""
    shift = filter_shift(bits)
    for i in range(hashes.shape[0]):
        at = slot_of_key(key, hashes[i])
        key[at] = hashes[i]
        word[at] = np.int32(i)
        note_key(bits, shift, hashes[i])


@lean_kernel
def find_rare_words(hashes: Uint64s, n: int, table: RareTable, scratch: RareScratch) -> int:
    """Write the rare words among the n of a document: how many of `scratch.rare`."""
    rare, key, bits = scratch.rare, table.key, table.bits
    shift = filter_shift(bits)
    count = 0
    for t in range(n):
        if not is_noted(bits, shift, hashes[t]):
            continue
        at = slot_of_key(key, hashes[t])
        if key[at] == hashes[t]:
            rare[count, TOKEN] = np.int32(t)
            rare[count, WORD] = table.word[at]
            count += 1
    return count


@lean_kernel
def make_places(n: int, scratch: RareScratch) -> None:
    """See that there are places for the n tokens of a document, and count from 0 on if not."""
    if scratch.place[0] + n >= _MOST_PLACES:
        scratch.last[:] = _LONG_AGO
        scratch.counter[:, _BEGIN] = _LONG_AGO
        scratch.place[0] = 0


@lean_kernel
def note_stretches(
    start: int, n_rare: int, table: RareTable, scratch: RareScratch
) -> tuple[int, int]:
    """Note each stretch that may end a window with enough weight, as long as there is room.

    start   the first of a document's rare words, of which there are n_rare, that was not counted
    return  the first that was not counted now, and how many of `scratch.noted`
    """
    first = int64(scratch.place[0])
    counter, last, rare, noted = scratch.counter, scratch.last, scratch.rare, scratch.noted
    count = 0
    for at in range(start, n_rare):
        word = int64(rare[at, WORD])
        posts, posts_end = table.post_start[word], table.post_start[word + 1]
        if count + posts_end - posts > noted.shape[0]:
            return at, count
        place = first + rare[at, TOKEN]
        before = int64(last[word])
        last[word] = np.int32(place)
        weight = int64(table.weight[word])
        for post in range(posts, posts_end):
            item = int64(table.post_item[post])
            window = int64(counter[item, _WINDOW])
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
            if before >= begin:
                continue
            now = counter[item, _NOW] + weight
            counter[item, _NOW] = np.int32(now)
            if (
                now + counter[item, _BEFORE] >= counter[item, _ENOUGH]
                and counter[item, _NOTED] == 0
            ):
                counter[item, _NOTED] = 1
                noted[count, STRETCH_ITEM] = np.int32(item)
                noted[count, STRETCH_BEGIN] = np.int32(begin - first)
                noted[count, STRETCH_AT] = np.int32(at)
                count += 1
    return n_rare, count


#: Worse than any alignment.
_NEVER = -(1 << 60)
#: How a cell got its value: a pair behind another, the first pair, without the question's word,
#: without the text's word.
_ON, _FIRST, _UP, _LEFT = range(4)


@kernel
def align_like_words(gain: Int32s, skip: int, found: Int32s) -> int:
    """The pairs of words in order that gain most.

    gain    int32[m, n], what word i of the question beside word j of the text gains; 0: no pair
    skip    what a word of the text costs that stands between pairs and is in none
    found   int32[m], written: the word of the text beside each of the question, or -1
    return  what they gain together, less what was skipped; 0 without a pair
    """
    m, n = gain.shape
    best = np.full((m + 1, n + 1), _NEVER, np.int64)
    how = np.zeros((m + 1, n + 1), np.int8)
    found[:] = -1
    most = int64(0)
    at = -1
    for i in range(1, m + 1):
        for j in range(1, n + 1):
            value, step = best[i - 1, j], _UP
            if best[i, j - 1] - skip > value:
                value, step = best[i, j - 1] - skip, _LEFT
            if gain[i - 1, j - 1] > 0:
                before = best[i - 1, j - 1]
                pair = gain[i - 1, j - 1] + max(before, int64(0))
                if pair >= value:
                    value = pair
                    step = _ON if before > 0 else _FIRST
            best[i, j], how[i, j] = value, step
            if i == m and value > most:
                most, at = value, j
    if at < 0:
        return int64(most)
    i, j = m, at
    while True:
        step = how[i, j]
        if step == _UP:
            i -= 1
        elif step == _LEFT:
            j -= 1
        else:
            found[i - 1] = np.int32(j - 1)
            i -= 1
            j -= 1
            if step == _FIRST:
                return int64(most)
