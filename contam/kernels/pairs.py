"""Keep which documents hold which keys in few bits, and look keys up.

A pair is one word of 64 bits: a key, and below it the number of a document in `DOCUMENT_BITS`.
A table holds n pairs of m keys, sorted, in five rows of bits:

- heads: for each value of a key's highest bits in turn one 0 for every key that has it, then a 1
  (Elias 1974, Fano 1971)
- rests: the other bits of each key
- ends: a 1 for the last pair of each key, a 0 for any other
- documents: the document of each pair

and of heads and ends it knows where every `MARK`-th 1 stands.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from contam.kernels._jit import int64, kernel, lean_kernel
from contam.kernels.bits import count_ones, trailing_zeros

if TYPE_CHECKING:
    from contam.kernels._jit import Int64s, Uint64s

#: Bits of a pair that number its document, the lowest; those above are the key.
DOCUMENT_BITS = 23
#: How many 1 there are from one mark to the next.
MARK = 256

_ONE = np.uint64(1)
_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)
_WORD = 64
_SHIFT = np.uint64(DOCUMENT_BITS)
_DOCUMENT = np.uint64((1 << DOCUMENT_BITS) - 1)


@lean_kernel
def pair_of(value: np.uint64, key_bits: int, document: int) -> np.uint64:
    """The pair of a hash, of which so many of the highest bits are the key, and a document."""
    return np.uint64((value >> np.uint64(64 - key_bits)) << _SHIFT | np.uint64(document))


@lean_kernel
def get_bits(words: Uint64s, at: int, n: int) -> np.uint64:
    """The n bits from bit `at` on, n from 0 to 63; words has one more than they need."""
    word, low = at >> 6, at & 63
    value = words[word] >> np.uint64(low)
    if low + n > _WORD:
        value |= words[word + 1] << np.uint64(_WORD - low)
    return np.uint64(value & ((_ONE << np.uint64(n)) - _ONE))


@lean_kernel
def put_bits(words: Uint64s, at: int, n: int, value: np.uint64) -> None:
    """Write n bits, 0 before, from bit `at` on."""
    word, low = at >> 6, at & 63
    words[word] |= value << np.uint64(low)
    if low + n > _WORD:
        words[word + 1] |= value >> np.uint64(_WORD - low)


@lean_kernel
def find_one(words: Uint64s, marks: Int64s, number: int) -> int:
    """Where the 1 with this number, from 0 on, stands; -1 for number -1."""
    if number < 0:
        return -1
    at = int64(marks[number // MARK])
    left = number % MARK
    word = at >> 6
    bits = words[word] & (_ALL << np.uint64(at & 63))
    ones = count_ones(bits)
    while left >= ones:
        left -= ones
        word += 1
        bits = words[word]
        ones = count_ones(bits)
    for _ in range(left):
        bits &= bits - _ONE
    return word * _WORD + trailing_zeros(bits)


@lean_kernel
def next_one(words: Uint64s, at: int) -> int:
    """Where the first 1 at bit `at` or behind it stands; there is one."""
    word = at >> 6
    bits = words[word] & (_ALL << np.uint64(at & 63))
    while bits == np.uint64(0):
        word += 1
        bits = words[word]
    return word * _WORD + trailing_zeros(bits)


@lean_kernel
def mark_ones(words: Uint64s, marks: Int64s) -> None:
    """Write where every MARK-th 1 stands; marks  int64[as many as there are]."""
    number = 0
    for word in range(words.shape[0]):
        bits = words[word]
        while bits != np.uint64(0):
            if number % MARK == 0:
                marks[number // MARK] = word * _WORD + trailing_zeros(bits)
            bits &= bits - _ONE
            number += 1


@lean_kernel
def drop_repeated(pairs: Uint64s) -> int:
    """Move each pair of a sorted row to the front once; how many there are."""
    count = 0
    for i in range(pairs.shape[0]):
        if i == 0 or pairs[i] != pairs[i - 1]:
            pairs[count] = pairs[i]
            count += 1
    return count


@kernel
def cap_pairs(pairs: Uint64s, cap: int, known: Uint64s) -> tuple[int, int, Uint64s]:
    """Leave the first `cap` pairs of each key, so that copies of a text keep the same documents.

    pairs   sorted and distinct; those that stay are moved to the front
    known   keys of which pairs were left out before, ascending
    return  (pairs left, their keys, the keys of which pairs are left out, now or before)
    """
    capped = np.empty(16, np.uint64)
    n_capped = n_keys = to = lo = k = 0
    while lo < pairs.shape[0]:
        key = pairs[lo] >> _SHIFT
        hi = lo + 1
        while hi < pairs.shape[0] and pairs[hi] >> _SHIFT == key:
            hi += 1
        while k < known.shape[0] and known[k] < key:
            k += 1
        if hi - lo > cap or (k < known.shape[0] and known[k] == key):
            if n_capped == capped.shape[0]:
                capped = np.concatenate((capped, np.empty_like(capped)))
            capped[n_capped] = key
            n_capped += 1
        for row in range(lo, min(hi, lo + cap)):
            pairs[to] = pairs[row]
            to += 1
        n_keys += 1
        lo = hi
    return to, n_keys, capped[:n_capped].copy()


@lean_kernel
def pack_pairs(
    pairs: Uint64s,
    widths: tuple[int, int],
    heads: Uint64s,
    rests: Uint64s,
    ends: Uint64s,
    documents: Uint64s,
) -> None:
    """Write the rows of bits of sorted, distinct pairs, all 0 before.

    widths  (bits of a rest, of a document)
    """
    rest, width = widths
    n_keys = 0
    head = 0
    for i in range(pairs.shape[0]):
        key = pairs[i] >> _SHIFT
        put_bits(documents, i * width, width, pairs[i] & _DOCUMENT)
        if i + 1 < pairs.shape[0] and pairs[i + 1] >> _SHIFT == key:
            continue
        put_bits(ends, i, 1, _ONE)
        while head < int64(key >> np.uint64(rest)):
            put_bits(heads, n_keys + head, 1, _ONE)
            head += 1
        put_bits(rests, n_keys * rest, rest, key & ((_ONE << np.uint64(rest)) - _ONE))
        n_keys += 1


@lean_kernel
def find_heads(
    heads: Uint64s, marks: Int64s, keys: Uint64s, rest: int, first: Int64s, stop: Int64s
) -> None:
    """The numbers of the table's keys that have the head of each key: first up to stop, written."""
    for i in range(keys.shape[0]):
        head = int64(keys[i] >> np.uint64(rest))
        begin = find_one(heads, marks, head - 1) + 1
        first[i] = begin - head
        stop[i] = next_one(heads, begin) - head


@lean_kernel
def find_keys(rests: Uint64s, keys: Uint64s, rest: int, first: Int64s, stop: Int64s) -> None:
    """Write the number of each key to `first`, or -1, from where `find_heads` says it may be."""
    mask = (_ONE << np.uint64(rest)) - _ONE
    for i in range(keys.shape[0]):
        found = int64(-1)
        for number in range(first[i], stop[i]):
            if get_bits(rests, number * rest, rest) == keys[i] & mask:
                found = number
                break
        first[i] = found


@lean_kernel
def find_lists(ends: Uint64s, marks: Int64s, number: Int64s, first: Int64s, stop: Int64s) -> None:
    """The pairs of each key by its number: first up to stop, written; none for number -1."""
    for i in range(number.shape[0]):
        first[i] = stop[i] = 0
        if number[i] >= 0:
            first[i] = find_one(ends, marks, number[i] - 1) + 1
            stop[i] = next_one(ends, first[i]) + 1


@lean_kernel
def read_documents(
    documents: Uint64s, width: int, first: Int64s, stop: Int64s, out: Int64s
) -> None:
    """Write the documents of all these pairs to `out`, one list behind the other."""
    count = 0
    for i in range(first.shape[0]):
        for pair in range(first[i], stop[i]):
            out[count] = int64(get_bits(documents, pair * width, width))
            count += 1


@lean_kernel
def unpack_pairs(
    table: tuple[Uint64s, Uint64s, Uint64s, Uint64s], widths: tuple[int, int], out: Uint64s
) -> None:
    """Write the pairs that `pack_pairs` packed: out  uint64[n].

    table  (heads, rests, ends, documents)
    """
    heads, rests, ends, documents = table
    rest, width = widths
    number = at = 0
    key = np.uint64(0)
    begins = True
    for i in range(out.shape[0]):
        if begins:
            at = next_zero(heads, at)
            key = (np.uint64(at - number) << np.uint64(rest)) | get_bits(rests, number * rest, rest)
            at += 1
            number += 1
        out[i] = (key << _SHIFT) | get_bits(documents, i * width, width)
        begins = get_bits(ends, i, 1) == _ONE


@lean_kernel
def next_zero(words: Uint64s, at: int) -> int:
    """Where the first 0 at bit `at` or behind it stands."""
    while get_bits(words, at, 1) == _ONE:
        at += 1
    return at
