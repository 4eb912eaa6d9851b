"""The first stages of a scan over a whole batch, as a scan calls them, and nothing behind."""

from __future__ import annotations

from typing import TYPE_CHECKING

from contam.kernels._jit import kernel
from contam.kernels.document import look_up
from contam.kernels.runs import find_runs, note_longest, order_runs
from contam.kernels.tokens import WORDS, tokenize

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from contam.kernels.chars import CharTables
    from contam.kernels.document import DocBuffers, TextScratch
    from contam.kernels.gram_table import GramTable
    from contam.kernels.match_rows import ViewSpec


@kernel
def tokenise_batch(
    data: NDArray[np.uint8], offsets: NDArray[np.int64], buffers: DocBuffers, tables: CharTables
) -> int:
    """Tokens of all documents; document i is data[offsets[i] : offsets[i + 1]], UTF-8."""
    total = 0
    for i in range(offsets.shape[0] - 1):
        limits = (offsets[i], offsets[i + 1])
        total += tokenize(data, limits, WORDS, buffers.hashes, buffers.spans, tables)
    return total


@kernel
def find_in_batch(  # noqa: PLR0917 - a kernel is handed every array it touches
    data: NDArray[np.uint8],
    offsets: NDArray[np.int64],
    spec: ViewSpec,
    plan: GramTable,
    tables: CharTables,
    buffers: DocBuffers,
    memory: tuple[NDArray[np.int32], NDArray[np.uint16]],
    capacity: TextScratch,
    last: int,
) -> int:
    """Tokenise all documents, look their grams up and, if asked to, grow runs.

    room    for the runs of any one document
    last    0 to look up grams, 1 to grow and order runs, too
    return  hits, or runs
    """
    total = 0
    for i in range(offsets.shape[0] - 1):
        limits = (offsets[i], offsets[i + 1])
        n = tokenize(data, limits, WORDS, buffers.hashes, buffers.spans, tables)
        found = look_up(n, spec.seed, plan, buffers)
        if last == 0:
            total += found
            continue
        hits = (buffers.hit_at, buffers.hit_gram, found)
        doc = (buffers.hashes, n)
        n_runs, _ = find_runs(
            doc, hits, spec.seed, spec.min_run, plan, memory[0], capacity.runs, spec.most_steps
        )
        note_longest(capacity.runs, n_runs, plan.part_start, memory[1])
        order_runs(capacity.runs, n_runs, capacity.order, capacity.order_scratch)
        total += n_runs
    return total
