"""Batches of documents that come with their tokens, against all items."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from contam.kernels._jit import kernel
from contam.kernels.document import DocBuffers, place_pieces, scan_document
from contam.kernels.pairs import PAIR_COLUMNS, PIECE_COLUMNS, REAL_COLUMNS, ItemFacts, Rows
from contam.kernels.runs import RUN_COLUMNS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from contam.kernels.align import AlignScratch
    from contam.kernels.judge import LaneSpec
    from contam.kernels.plan import PlanArrays

#: LaneSpec.unit of a lane whose tokens are made outside the kernels.
PRETOKENIZED = 2


@kernel
def scan_tokens(
    text: NDArray[np.uint8],
    offsets: NDArray[np.int64],
    tokens: tuple[NDArray[np.uint64], NDArray[np.int32], NDArray[np.int64]],
    spec: LaneSpec,
    plan: PlanArrays,
    facts: ItemFacts,
    buffers: DocBuffers,
    scratch: AlignScratch,
    memory: tuple[NDArray[np.int32], NDArray[np.int32]],
) -> tuple[Rows, NDArray[np.int32], int]:
    """Match every document of a batch; `scan_batch` for documents with given tokens.

    text     uint8[n], UTF-8; document i is text[offsets[i] : offsets[i + 1]]
    tokens   (hashes uint64[t], spans int32[t, 2] in bytes of the document, starts int64[docs + 1])
    buffers  with room for the tokens of the longest document
    return   (rows, int32[pieces, 2] code-point spans of the pieces, tokens read)
    """
    hashes, spans, starts = tokens
    rows = Rows(
        np.empty((64, PAIR_COLUMNS), np.int32),
        np.empty((64, REAL_COLUMNS), np.float32),
        np.empty((256, PIECE_COLUMNS), np.int32),
        np.zeros(2, np.int64),
    )
    where = np.empty((256, 2), np.int32)
    runs = np.empty((1024, RUN_COLUMNS), np.int32)
    for i in range(offsets.shape[0] - 1):
        n = starts[i + 1] - starts[i]
        if n == 0:
            continue
        buffers.hashes[:n] = hashes[starts[i] : starts[i + 1]]
        first = rows.used[1]
        runs, rows = scan_document(n, i, spec, plan, facts, buffers, scratch, memory, runs, rows)
        if rows.used[1] > first:
            if where.shape[0] < rows.pieces.shape[0]:
                larger = np.empty((rows.pieces.shape[0], 2), np.int32)
                larger[:first] = where[:first]
                where = larger
            here = spans[starts[i] : starts[i + 1]]
            place_pieces(text, offsets[i], here, rows, first, where)
    return rows, where, starts[offsets.shape[0] - 1]
