"""Take every w-th gram of a document, for an index.

An entry is a pair of contam.kernels.pairs: the highest bits of the gram's hash are its key, and
below it is the number of the document in its batch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from contam.kernels._jit import lean_kernel
from contam.kernels.gram_table import hash_gram
from contam.kernels.letters import keep_keys
from contam.kernels.pairs import pair_of
from contam.kernels.run_together import Document
from contam.kernels.tokens import WORDS, tokenize

if TYPE_CHECKING:
    from contam.kernels._jit import Int64s, Uint8s, Uint64s
    from contam.kernels.document import DocBuffers


@lean_kernel
def sample_document(
    token: Uint64s,
    limits: tuple[int, int],
    sizes: tuple[int, int, int],
    number: int,
    entries: Uint64s,
    count: int,
) -> int:
    """Append the entries of one document to entries[:count]; returns how many there are then.

    token    uint64[t], the document's tokens at limits = (lo, hi)
    sizes    (tokens of a gram, k; tokens from one to the next, w; bits of a key)
    number   of the document
    entries  uint64[>= count + (hi - lo - k) // w + 1], written
    """
    gram, stride, key_bits = sizes
    for at in range(limits[0], limits[1] - gram + 1, stride):
        entries[count] = pair_of(hash_gram(token, at, gram), key_bits, number)
        count += 1
    return count


@lean_kernel
def sample_text(
    text: Uint8s,
    offsets: Int64s,
    unit: int,
    sizes: tuple[int, int, int],
    buffers: DocBuffers,
    starts: Int64s,
    entries: Uint64s,
    keys: Uint64s,
    kept: Uint64s,
) -> tuple[int, int]:
    """Tokenise and sample every document of a batch; the numbers of entries and of letter keys.

    text, offsets  document i is text[offsets[i] : offsets[i + 1]], UTF-8
    sizes          (tokens of a gram, tokens from one to the next, bits of a key)
    buffers        with room for the longest document
    starts         int64[docs + 1], written: tokens before each document
    entries        uint64[>= tokens // stride + docs], written, document after document
    keys           uint64[room], written for words: see `keep_keys`
    kept           uint64[>= tokens of all documents], written: their hashes; of length 0, nothing
    """
    hashes, spans, letters = buffers.hashes, buffers.spans, buffers.letters
    count = 0
    n_keys = 0
    total = 0
    starts[0] = 0
    for i in range(offsets.shape[0] - 1):
        lo, hi = offsets[i], offsets[i + 1]
        n = tokenize(text, (lo, hi), unit, hashes, spans, letters.tables) if lo < hi else 0
        count = sample_document(hashes, (0, n), sizes, i, entries, count)
        if unit == WORDS:
            doc = Document(hashes, n, spans, text, lo, hi)
            out = (keys, n_keys, i, sizes[2])
            n_keys = keep_keys(doc, letters, out)
        if kept.shape[0] > 0:
            for t in range(n):
                kept[total + t] = hashes[t]
        total += n
        starts[i + 1] = total
    return count, n_keys


@lean_kernel
def sample_tokens(
    hashes: Uint64s, starts: Int64s, sizes: tuple[int, int, int], entries: Uint64s
) -> int:
    """`sample_text` for documents whose tokens are hashes[starts[i] : starts[i + 1]]."""
    count = 0
    for i in range(starts.shape[0] - 1):
        count = sample_document(hashes, (starts[i], starts[i + 1]), sizes, i, entries, count)
    return count
