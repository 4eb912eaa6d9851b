"""What a scan refuses, because its answer would be true and still mislead."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from contam.errors import CorpusError, UsageError
from contam.remedies import Remedy

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contam.benchmark.items import Benchmark
    from contam.corpus.coverage import Coverage
    from contam.corpus.shards import Shard


def benchmark_shards(
    corpus: Sequence[str | Path], shards: Sequence[Shard], benchmarks: Sequence[Benchmark]
) -> tuple[str, ...]:
    """Names of the shards that are files of the benchmarks, whose items match themselves.

    Raises UsageError when a folder or glob brought them in beside other shards: that is a slip.
    Named as shards themselves, or alone, they are taken to be meant.
    """
    sources = {Path(one.path).resolve() for each in benchmarks for one in each.sources}
    own = [shard for shard in shards if Path(shard.uri).resolve() in sources]
    named = {Path(path).resolve() for path in corpus}
    swept = [shard for shard in own if Path(shard.uri).resolve() not in named]
    if swept and len(own) < len(shards):
        raise UsageError(
            f"the benchmark file {swept[0].name} lies in the corpus, too: "
            "its items would match themselves",
            remedy=Remedy.KEEP_BENCHMARKS_OUT_OF_CORPUS,
        )
    return tuple(shard.name for shard in own)


def refuse_without_text(coverage: Coverage, *, allow_missing: bool) -> None:
    """Raise CorpusError when a corpus without any text would make every item clean.

    What could not be read says so by itself, unless that was allowed.
    """
    total = coverage.total
    if total.n_bytes or not (coverage.complete or allow_missing):
        return
    failed = f"; not read: {coverage.failures[0].name}" if coverage.failures else ""
    raise CorpusError(
        f"the corpus holds no text: {len(coverage.names)} shards, {total.rows} documents, "
        f"{total.n_null} without a text, {total.n_empty} empty{failed}",
        remedy=Remedy.CHECK_SHARDS_OR_TEXT_COLUMN,
    )
