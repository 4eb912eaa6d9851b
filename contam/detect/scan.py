"""Scan a corpus for benchmark items: plan, scan every chunk, merge and judge."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Unpack

from contam.corpus.opening import open_shards
from contam.detect.chunk_scan import scan_chunks
from contam.detect.corpus import Corpus, benchmark_shards
from contam.detect.every_hit import table_of_hits
from contam.detect.finish import finish_scan, judge_result
from contam.detect.given import given_benchmark, given_corpus
from contam.detect.match.workers import worker_count
from contam.detect.parts.part_store import Division, KnownShards
from contam.detect.parts.search import compute_share, described, search_parts
from contam.detect.plan import Plan, ScanOptions, ScanParameters, make_plan
from contam.detect.warm import warmup_scan
from contam.errors import UsageError
from contam.kernels.warm_up import compile_once
from contam.tables.memory import release_unused

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from contam.corpus.opening import OpenedShards
    from contam.corpus.shards import Shard
    from contam.detect.corpus import ScanProgress
    from contam.detect.given import Source
    from contam.detect.parts.search import Work
    from contam.detect.result import ScanResult

    PathLike = str | Path


def scan(
    corpus: Source,
    benchmark: Source,
    *,
    workers: int | None = None,
    division: Division | None = None,
    progress: ScanProgress | None = None,
    **options: Unpack[ScanOptions],
) -> ScanResult:
    """Search every document of a corpus for every item of the benchmarks.

    corpus, benchmark  files, folders or globs, one or several; or rows as dictionaries, a table
                       (Arrow, pandas, Polars, `datasets`), or several tables by name
    workers            threads; None takes one a core. The result does not depend on it.
    division           how the search of files is divided into parts, which may be kept; None
                       keeps all in memory

    Options of items: policies ("contam"), mapping, ignore, name, split, seed (5), min_run (8); of
    the corpus: unit ("word"), text, columns, exclude, lines; of the result: allow_missing,
    max_evidence (20), keep_text, every_hit. `contam.detect.plan.ScanOptions` explains each.

    Raises ContamError subclasses; a shard that cannot be read does not raise, it is in
    `result.coverage`, and no item is then called clean.
    """
    started = time.time()
    parameters = ScanParameters.of(options, ScanOptions.__optional_keys__)
    n_workers = worker_count(workers)
    with given_corpus(corpus) as (paths, tables):
        if tables and parameters.every_hit:
            raise UsageError("every hit is kept of files, not of tables in memory")
        opened = open_corpus(paths, parameters, tables, division)
        compile_once("scan", warmup_scan, progress)
        plan = make_plan(given_benchmark(benchmark, parameters.name), parameters)
        return scan_opened(
            opened,
            plan,
            workers=n_workers,
            division=None if tables else division,
            progress=progress,
            started=started,
        )


def scan_share(
    corpus: Sequence[PathLike],
    benchmark: Sequence[PathLike],
    division: Division,
    *,
    workers: int | None = None,
    progress: ScanProgress | None = None,
    **options: Unpack[ScanOptions],
) -> Work:
    """Compute the parts of one share of a scan, which the other arguments say as for `scan`.

    Raises ContamError subclasses; a shard that cannot be read does not raise, and its part is not
    kept.
    """
    parameters = ScanParameters.of(options, ScanOptions.__optional_keys__)
    n_workers = worker_count(workers)
    opened, plan = open_scan(corpus, benchmark, parameters, division, progress)
    return compute_share(plan, opened, division, workers=n_workers, progress=progress)


def open_scan(
    corpus: Sequence[PathLike],
    benchmark: Sequence[PathLike],
    parameters: ScanParameters,
    division: Division | None = None,
    progress: ScanProgress | None = None,
) -> tuple[Corpus, Plan]:
    """What a scan begins with: the corpus as it is now, and the plan for the items.

    Raises ContamError subclasses.
    """
    opened = open_corpus(corpus, parameters, (), division)
    compile_once("scan", warmup_scan, progress)
    plan = make_plan(benchmark, parameters)
    return _with_own_files_noted(opened, plan), plan


def open_corpus(
    paths: Sequence[PathLike],
    parameters: ScanParameters,
    tables: Sequence[Shard] = (),
    division: Division | None = None,
) -> Corpus:
    """The corpus as it is now; what is known of its shards is kept with the parts, if any are."""
    opening: Callable[..., OpenedShards] = open_shards
    if division is not None and division.store is not None:
        opening = KnownShards(division.store, writes=not division.only).open
    return Corpus.open(
        paths,
        parameters.text,
        tables,
        columns=parameters.columns,
        exclude=parameters.exclude,
        lines=parameters.lines,
        bundle=not parameters.every_hit,
        opening=opening,
    )


def _with_own_files_noted(opened: Corpus, plan: Plan) -> Corpus:
    """The corpus with a note for each shard that is a benchmark file of the plan."""
    own = benchmark_shards(opened.paths, opened.shards, plan.benchmarks)
    notes = tuple(f"{name} is a benchmark file: it matches itself" for name in own)
    return replace(opened, notes=(*opened.notes, *notes))


def scan_opened(
    opened: Corpus,
    plan: Plan,
    *,
    workers: int,
    division: Division | None = None,
    progress: ScanProgress | None = None,
    started: float,
) -> ScanResult:
    """Search every document of a corpus for what a plan looks for; the plan is used up by it.

    division  as of `scan`;  started  when the run began, seconds since 1970

    Raises CorpusError when nothing that was read has a text.
    """
    opened = _with_own_files_noted(opened, plan)
    release_unused()
    every_hit = plan.parameters.every_hit
    division = division or Division()
    if every_hit or division.is_needed(workers):
        found = search_parts(plan, opened, division, workers=workers, progress=progress)
        opened = replace(opened, sha256=found.sha256)
        result = judge_result(found.plan, opened, found.whole, workers=workers, started=started)
        if every_hit:
            names = opened.names
            result.hits = lambda: (
                table_of_hits(plan, names, hits) for hits in found.hits.by_piece()
            )
        return result
    if progress is not None:
        progress.start(sum(chunk.n_bytes for chunk in opened.chunks))
    whole = scan_chunks(plan, opened, workers=workers, progress=progress)
    whole.found.merge(described(opened, whole))
    result = finish_scan(plan, opened, whole, workers=workers, started=started)
    if progress is not None:
        progress.finish()
    return result
