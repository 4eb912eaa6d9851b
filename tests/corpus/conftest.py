"""Read whole corpora the way the scan does, for the tests in this folder."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from contam.corpus.batches import DocBatch, read_chunk
from contam.corpus.coverage import Coverage, CoverageCounter, ShardCoverage
from contam.errors import ShardError
from contam.tables.blocks import TextBlock, texts_of
from tests.corpus_files import find_shards, plan_chunks, select_all

if TYPE_CHECKING:
    from collections.abc import Callable

    from contam.corpus.columns import Selection
    from contam.corpus.shards import Shard


@dataclass
class Corpus:
    """A corpus read to its end: texts per shard, every batch, and the coverage."""

    shards: tuple[Shard, ...]
    selections: list[Selection | None]
    texts: list[list[str]]
    batches: list[DocBatch]
    coverage: Coverage


def batch_texts(batch: DocBatch) -> list[str]:
    return texts_of(TextBlock(batch.data, batch.offsets, 0, 0, 0))


@pytest.fixture
def read_corpus() -> Callable[..., Corpus]:
    """Read every document under some paths, checking that rows are consecutive."""

    def read(*paths, text=None, batch_bytes=8 << 20, failing=False) -> Corpus:
        shards = find_shards(paths)
        selections, failures = select_all(shards, text)
        units, more = plan_chunks(shards, selections)
        for failure in [*failures, *more]:
            if not failing:
                raise ShardError(failure.reason, shard=failure.name, hint=failure.hints)
        read = CoverageCounter(Coverage.expect(shards, units, [*failures, *more]))
        texts: list[list[str]] = [[] for _ in shards]
        batches = []
        for unit in units:
            counts = ShardCoverage()
            for batch in read_chunk(unit, shards, selections, batch_bytes):
                assert batch.first_row == len(texts[batch.shard])
                assert batch.n_docs > 0
                assert batch.n_bytes <= batch_bytes or batch.n_docs == 1
                texts[batch.shard] += batch_texts(batch)
                batches.append(batch)
                counts += batch.counts
            read.add_chunk(unit, counts)
        return Corpus(shards, selections, texts, batches, read.coverage())

    return read
