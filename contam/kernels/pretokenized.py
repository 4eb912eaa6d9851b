"""Match batches of documents that come with their tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING

from contam.kernels._jit import kernel
from contam.kernels.document import DocBuffers, add_document, mend, start_batch
from contam.kernels.match_rows import TOO_LONG
from contam.kernels.run_together import Document

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from contam.kernels.align import AlignScratch
    from contam.kernels.chars import CharTables
    from contam.kernels.gram_table import GramTable
    from contam.kernels.match_rows import ItemFacts, MatchRows
    from contam.kernels.score_item import ViewSpec

#: ViewSpec.unit of a view whose tokens are made outside the kernels.
PRETOKENIZED = 2


@kernel
def scan_tokens(
    text: NDArray[np.uint8],
    offsets: NDArray[np.int64],
    tokens: tuple[NDArray[np.uint64], NDArray[np.int32], NDArray[np.int64]],
    spec: ViewSpec,
    gram_table: GramTable,
    facts: ItemFacts,
    tables: CharTables,
    buffers: DocBuffers,
    scratch: AlignScratch,
    memory: tuple[NDArray[np.int32], NDArray[np.uint16]],
) -> tuple[MatchRows, NDArray[np.int32], int]:
    """Match every document of a batch; `scan_batch` for documents with given tokens.

    text     uint8[n], UTF-8; document i is text[offsets[i] : offsets[i + 1]]
    tokens   (hashes uint64[t], spans int32[t, 2] in bytes of the document, starts int64[docs + 1])
    buffers  with room for the tokens of the longest document
    return   (rows, int32[pieces, 2] code-point spans of the pieces, tokens read)
    """
    hashes, spans, starts = tokens
    found = start_batch(spec.most_steps)
    for i in range(offsets.shape[0] - 1):
        n = starts[i + 1] - starts[i]
        if n == 0:
            continue
        buffers.hashes[:n] = hashes[starts[i] : starts[i + 1]]
        buffers.spans[:n] = spans[starts[i] : starts[i + 1]]
        n = mend(text, (offsets[i], offsets[i + 1]), n, gram_table, tables, buffers)
        here = Document(buffers.hashes, n, buffers.spans, text, offsets[i])
        found = add_document(here, i, spec, gram_table, facts, buffers, scratch, memory, found)
        if found.rows.used[2] & TOO_LONG:
            break
    return found.rows, found.where, starts[offsets.shape[0] - 1]
