"""Look for what makes a search of a corpus worth nothing: changed, own and empty shards."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from contam.corpus.coverage import ShardFailure
from contam.corpus.opening import map_readable_shards
from contam.corpus.shards import check_unchanged
from contam.errors import CorpusError, Place, Public, ShardError, UsageError
from contam.facts import counted

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Sequence

    from contam.benchmark.items import Benchmark
    from contam.corpus.coverage import Coverage
    from contam.corpus.shards import Shard
    from contam.detect.corpus import Corpus


def changed_shards(
    corpus: Corpus, numbers: Iterable[int], failed: Container[int]
) -> list[ShardFailure]:
    """Those of the numbered shards that have changed since they were listed.

    failed  shards that are known not to have been read
    """
    left = [number for number in numbers if number not in failed]
    _, changed = map_readable_shards(
        lambda number, shard: check_unchanged(shard, corpus.digests[number]), corpus.shards, left
    )
    return changed


def undecoded_shards(corpus: Corpus, coverage: Coverage) -> list[ShardFailure]:
    """The shards that were read to their end, and hold no text that could be decoded."""
    failed = {failure.shard for failure in coverage.failures}
    found = []
    for number, counts in coverage.read.items():
        name = corpus.shards[number].name
        try:
            if number not in failed:
                counts.check_decoded(name)
        except ShardError as error:
            found.append(ShardFailure.of(number, name, error))
    return found


def benchmark_shards(
    corpus: Sequence[str | Path], shards: Sequence[Shard], benchmarks: Sequence[Benchmark]
) -> tuple[str, ...]:
    """Names of the shards that are files of the benchmarks, whose items match themselves.

    Raises UsageError when a folder or glob includes them along with other shards, which is a
    mistake. If they are named as shards themselves, or are the only shards, they are meant.
    """
    sources = {Path(source.path).resolve() for each in benchmarks for source in each.sources}
    own = [shard for shard in shards if Path(shard.uri).resolve() in sources]
    named = {Path(path).resolve() for path in corpus}
    swept = [shard for shard in own if Path(shard.uri).resolve() not in named]
    if swept and len(own) < len(shards):
        raise UsageError(
            "the benchmark file {} lies in the corpus, too: its items would match themselves",
            swept[0].name,
            hint="keep benchmarks out of the corpus folder, or name every shard",
        )
    return tuple(shard.name for shard in own)


def refuse_without_text(coverage: Coverage, *, allow_missing: bool) -> None:
    """Raise CorpusError when a corpus without any text would make every item clean.

    Shards that could not be read are reported in the coverage, unless that was allowed.
    """
    total = coverage.total
    if total.n_bytes or not (coverage.complete or allow_missing):
        return
    failed = [Place(failure.name) for failure in coverage.failures[:1]]
    raise CorpusError(
        "the corpus contains no text: {}, {}, {} without a text, {} empty"
        + "; not read: {}" * len(failed),
        Public(counted(len(coverage.names), "shard")),
        Public(counted(total.rows, "document")),
        total.n_null,
        total.n_empty,
        *failed,
        hint="check that the shards are complete, or name the text column with --text",
    )
