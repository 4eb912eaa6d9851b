"""Where a scan with one worker spends its time: CPU seconds of every stage, in order.

Every batch is read once and then handed to the tokeniser, to the kernels up to the look-up of
grams, up to the runs, and to the whole of matching; a stage took what it took longer than the one
before it.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from bench_kernel import find_in_batch, tokenise_batch
from bench_task import Clock

from contam.corpus.batches import read_chunk
from contam.detect.chunk_scan import PartialResult
from contam.detect.corpus import Corpus
from contam.detect.match import matching
from contam.detect.match.collect import as_halves
from contam.detect.plan import ScanParameters, make_plan
from contam.kernels.document import new_buffers, new_text_scratch, scan_batch
from contam.kernels.match_rows import Search
from contam.kernels.tokens import WORDS
from contam.text.tokenizer import char_tables

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from contam.corpus.batches import DocBatch
    from contam.detect.match.collect import Collection
    from contam.detect.match.token_view import SearchView

    Bytes = NDArray[np.uint8]
    Int64s = NDArray[np.int64]
    Step = Callable[[Bytes, Int64s], object]

STAGES: Final = ("read", "tokens", "grams", "runs", "alignment", "policies")
_MOST_RUNS: Final = 1 << 20


class Stages:
    """CPU seconds by stage, over all batches that were added."""

    def __init__(self, view: SearchView, collection: Collection, longest: int) -> None:
        """Match for a view into `collection`; no document is longer than `longest` bytes."""
        self.spent = dict.fromkeys(STAGES, 0.0)
        self._collection = collection
        last_run = np.zeros(len(view.gram_table.part_start) - 1, np.int32)
        memory = (last_run, as_halves(collection.longest_at))
        tables, buffers = char_tables(), new_buffers(longest, WORDS, char_tables())
        self._matcher = matching.Matcher(view)
        scratch = self._matcher._scratch  # noqa: SLF001 - what a scan uses
        capacity = new_text_scratch(_MOST_RUNS, 1)
        spec, plan = view.spec, view.gram_table
        search = Search(spec, plan, view.facts, scratch, *memory)
        given = np.empty(0, np.uint64), np.empty((0, 2), np.int32), np.empty(0, np.int64)

        def tokenise(data: Bytes, offsets: Int64s) -> object:
            return tokenise_batch(data, offsets, buffers, tables)

        def find(data: Bytes, offsets: Int64s, last: int) -> object:
            return find_in_batch(data, offsets, spec, plan, tables, buffers, memory, capacity, last)

        def scan(data: Bytes, offsets: Int64s) -> object:
            return scan_batch(data, offsets, given, search, buffers)

        self._steps: tuple[Step, ...] = (
            tokenise,
            partial(find, last=0),
            partial(find, last=1),
            scan,
        )

    def compile(self, batch: DocBatch) -> None:
        """Run every kernel once, so that no stage waits for it."""
        for step in self._steps:
            step(batch.data, batch.offsets)

    def add(self, batch: DocBatch) -> None:
        """Measure one batch, and collect what is found in it."""
        before = 0.0
        found: Any = None
        for name, step in zip(STAGES[1:5], self._steps, strict=True):
            clock = Clock()
            found = step(batch.data, batch.offsets)
            cpu = clock.lap()[0]
            self.spent[name] += cpu - before
            before = cpu
        clock = Clock()
        self._matcher._add(batch, found, self._collection)  # noqa: SLF001 - what the matcher does next
        self.spent["policies"] += clock.lap()[0]


def stages(corpus: list[str], items: list[str], policies: list[str]) -> dict[str, Any]:
    """CPU seconds of each of STAGES; the policies must share one unit."""
    opened = Corpus.open(corpus, None)
    plan = make_plan(items, ScanParameters(policies=tuple(policies)))
    (collection,) = PartialResult.start(plan, opened).collections
    (view,) = plan.search_views
    measured = Stages(view, collection, max(1, *(unit.n_bytes for unit in opened.chunks)))
    n_bytes = 0
    for unit in opened.chunks:
        batches = read_chunk(unit, opened.shards, opened.selections)
        while True:
            clock = Clock()
            batch = next(batches, None)
            measured.spent["read"] += clock.lap()[0]
            if batch is None:
                break
            if n_bytes == 0:
                measured.compile(batch)
            measured.add(batch)
            n_bytes += batch.n_bytes
    clock = Clock()
    n_flagged = int((collection.counts[0].n_documents > 0).sum())
    measured.spent["policies"] += clock.lap()[0]
    return {
        "stages": measured.spent,
        "cpu": sum(measured.spent.values()),
        "bytes": n_bytes,
        "items": len(plan.items),
        "flagged": n_flagged,
    }
