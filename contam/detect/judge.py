"""Judge what a scan found, whoever read the corpus: one partial answer, or block by block."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from contam.detect.block_rows import BlockFound
from contam.detect.corpus_checks import changed_shards, refuse_without_text, undecoded_shards
from contam.detect.finish import finish_blocks
from contam.tables.memory import release_unused

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from contam.corpus.coverage import Coverage
    from contam.corpus.documents import DocumentMeta
    from contam.detect.match.collect import Collection
    from contam.detect.partial import Partial
    from contam.detect.plan import Plan
    from contam.detect.result import ScanResult
    from contam.detect.scan import Corpus


class BlockAnswer(NamedTuple):
    """What was found of a block of the items.

    collections  one a view of the block
    documents    (shard, row) -> what is known of a document
    """

    collections: Sequence[Collection]
    documents: Mapping[tuple[int, int], DocumentMeta]


def finish_scan(
    plan: Plan, corpus: Corpus, partial: Partial, *, workers: int, started: float
) -> ScanResult:
    """The result when all chunks are in one partial answer; the plan is used up by it.

    Shards that are not as they were listed, or of which a chunk is missing, were not read.

    Raises CorpusError when nothing that was read has a text.
    """
    failed = {failure.shard for failure in partial.coverage.failures}
    for failure in changed_shards(corpus, range(len(corpus.shards)), failed):
        partial.read.add_failure(failure)
    return judge_partial(plan, corpus, partial, workers=workers, started=started)


def judge_partial(
    plan: Plan, corpus: Corpus, partial: Partial, *, workers: int, started: float
) -> ScanResult:
    """The same without a look at the shards, which those who read them have had.

    Raises CorpusError when nothing that was read has a text.
    """
    documents = {**partial.found.known, **corpus.documents}
    n = plan.n_units
    answers = (
        BlockAnswer(partial.collections[first : first + n], documents)
        for first in range(0, len(plan.views), n)
    )
    return judge_blocks(plan, corpus, partial.coverage, answers, workers=workers, started=started)


def judge_blocks(
    plan: Plan,
    corpus: Corpus,
    coverage: Coverage,
    answers: Iterable[BlockAnswer],
    *,
    workers: int,
    started: float,
) -> ScanResult:
    """The same for the blocks of the items; each is asked for when those before are judged.

    coverage  what was read of the corpus

    Raises CorpusError when nothing that was read has a text.
    """
    coverage = coverage.with_failures(*undecoded_shards(corpus, coverage))
    refuse_without_text(coverage, allow_missing=plan.parameters.allow_missing)
    corpus = replace(corpus, coverage=coverage)

    def found() -> Iterator[BlockFound]:
        for block, answer in zip(plan.blocks(), answers, strict=True):
            for view in block.views:
                view.release_table()
            release_unused()
            yield BlockFound(block, replace(corpus, documents=answer.documents), answer.collections)

    return finish_blocks(plan, corpus, found(), started=started, workers=workers, used_up=True)
