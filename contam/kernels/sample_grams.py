"""Sample every w-th gram of a document with a little context, for an index.

An entry is one word of 64 bits: the 40 highest bits of the gram's hash (its key), then 24 bits of
context, four for each of three tokens to the left (nearest lowest) and three to the right.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from contam.kernels._jit import lean_kernel
from contam.kernels.gram_table import hash_gram
from contam.kernels.letters import LetterScratch, keep_keys
from contam.kernels.tokens import WORDS, tokenize

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from contam.kernels.chars import CharTables

#: Tokens on each side of a gram that leave four bits each in its entry.
NEIGHBOURS = 3
#: Bits of an entry that hold its context; those above them are the key.
CONTEXT_BITS = 24

_ZERO = np.uint64(0)
_CONTEXT_SHIFT = np.uint64(CONTEXT_BITS)
_TOP_FOUR = np.uint64(60)
_FOUR = np.uint64(4)
_RIGHT = np.uint64(12)


@lean_kernel
def context_of(token: NDArray[np.uint64], lo: int, hi: int, at: int, n: int) -> np.uint64:
    """Context of the gram of n tokens at token[at] in the document token[lo:hi].

    The four highest bits of each neighbour's hash; 0 where the document has no more tokens.
    """
    context = _ZERO
    shift = _ZERO
    for i in range(at - 1, max(at - 1 - NEIGHBOURS, lo - 1), -1):
        context |= (token[i] >> _TOP_FOUR) << shift
        shift += _FOUR
    shift = _RIGHT
    for i in range(at + n, min(at + n + NEIGHBOURS, hi)):
        context |= (token[i] >> _TOP_FOUR) << shift
        shift += _FOUR
    return context


@lean_kernel
def sample_document(
    token: NDArray[np.uint64],
    limits: tuple[int, int],
    gram: int,
    stride: int,
    entries: NDArray[np.uint64],
    count: int,
) -> int:
    """Append the entries of one document to entries[:count]; returns how many there are then.

    token    uint64[t], the document's tokens at limits = (lo, hi)
    gram     tokens of a gram, k; stride  tokens from one to the next, w
    entries  uint64[>= count + (hi - lo - gram) // stride + 1], written
    """
    lo, hi = limits
    for at in range(lo, hi - gram + 1, stride):
        value = hash_gram(token, at, gram)
        value = (value >> _CONTEXT_SHIFT) << _CONTEXT_SHIFT
        entries[count] = value | context_of(token, lo, hi, at, gram)
        count += 1
    return count


@lean_kernel
def sample_text(
    text: NDArray[np.uint8],
    offsets: NDArray[np.int64],
    unit: int,
    sizes: tuple[int, int],
    keep: bool,
    hashes: NDArray[np.uint64],
    spans: NDArray[np.int32],
    tables: CharTables,
    starts: NDArray[np.int64],
    doc_entries: NDArray[np.uint32],
    entries: NDArray[np.uint64],
    torn: tuple[NDArray[np.int32], LetterScratch, NDArray[np.uint64]],
) -> tuple[int, int]:
    """Tokenise and sample every document of a batch; the numbers of entries and of letter keys.

    text, offsets  document i is text[offsets[i] : offsets[i + 1]], UTF-8
    sizes          (tokens of a gram, tokens from one to the next)
    keep           whether the tokens of all documents are wanted, not just their numbers
    spans          scratch for the longest document, as `tokenize` wants it
    hashes         uint64[as many as the longest document needs; with keep, all together], written:
                   with keep the tokens of document i are hashes[starts[i] : starts[i + 1]]
    starts         int64[docs + 1], written: tokens before each document
    doc_entries    uint32[docs], written: entries of each document
    entries        uint64[>= tokens // stride + docs], written, document after document
    torn           (scratch for the words of a document, and for letters, uint64[room], written: see
                   `keep_keys`), used for words
    """
    count = 0
    n_keys = 0
    total = 0
    starts[0] = 0
    for i in range(offsets.shape[0] - 1):
        limits = (offsets[i], offsets[i + 1])
        n = 0
        before = count
        if limits[1] > limits[0]:
            at = total if keep else 0
            n = tokenize(text, limits, unit, hashes[at:], spans, tables)
            count = sample_document(hashes, (at, at + n), sizes[0], sizes[1], entries, count)
            if unit == WORDS:
                keys = (torn[2], n_keys, i)
                n_keys = keep_keys(text, limits, spans, n, torn[0], tables, torn[1], keys)
        total += n
        starts[i + 1] = total
        doc_entries[i] = count - before
    return count, n_keys


@lean_kernel
def sample_tokens(
    hashes: NDArray[np.uint64],
    starts: NDArray[np.int64],
    gram: int,
    stride: int,
    doc_entries: NDArray[np.uint32],
    entries: NDArray[np.uint64],
) -> int:
    """`sample_text` for documents whose tokens are hashes[starts[i] : starts[i + 1]]."""
    count = 0
    for i in range(starts.shape[0] - 1):
        before = count
        limits = (starts[i], starts[i + 1])
        count = sample_document(hashes, limits, gram, stride, entries, count)
        doc_entries[i] = count - before
    return count
