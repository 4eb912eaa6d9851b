"""Scan a corpus for benchmark items: plan, scan every chunk, merge and judge."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol, Unpack

import numpy as np

from contam.corpus.coverage import Coverage
from contam.corpus.documents import metadata_or_lost
from contam.corpus.listing import passed_over
from contam.corpus.opening import open_shards
from contam.corpus.shards import leave_out, survey
from contam.corpus.unread import names_of, unread_notes
from contam.detect.chunk_scan import scan_chunks
from contam.detect.corpus_checks import benchmark_shards
from contam.detect.every_hit import table_of_hits
from contam.detect.given import IN_MEMORY, given_benchmark, given_corpus
from contam.detect.judge import finish_scan, judge_result
from contam.detect.parameters import ScanOptions, ScanParameters
from contam.detect.parts.division import Division
from contam.detect.parts.known_shards import KnownShards
from contam.detect.parts.search import compute_share, search_parts
from contam.detect.parts.search_piece import described
from contam.detect.plan import Plan, make_plan
from contam.detect.result import LEFT_OUT
from contam.detect.warm import warmup_scan
from contam.errors import InternalError, UsageError
from contam.files.natural_order import natural_key
from contam.kernels.warm_up import compile_once
from contam.memory import usable_cores
from contam.tables.memory import release_unused

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from contam.corpus.columns import Selection
    from contam.corpus.documents import DocumentMeta
    from contam.corpus.listing import Skipped
    from contam.corpus.opening import Chunk, OpenedShards
    from contam.corpus.shards import Shard
    from contam.detect.given import Source
    from contam.detect.model import Bools, Matches
    from contam.detect.parts.search import Work
    from contam.detect.result import ScanResult

    PathLike = str | Path


_MOST_WORKERS = 64
_NAMED = 5


class ScanProgress(Protocol):
    """Receives the progress of a scan; every method may be called from any thread."""

    def start(self, total_bytes: int) -> None:
        """Begin: the corpus has this many bytes to read."""

    def advance(self, n_bytes: int, /) -> None:
        """Add bytes that were read."""

    def note(self, message: str) -> None:
        """Show a line of text."""

    def compiled(self, done: int, total: int) -> None:
        """So many of all kernels are compiled; only a first run hears of it."""

    def finish(self) -> None:
        """End: nothing more will be read."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Corpus:
    """The shards of a run, the columns to read of each, and the chunks they are cut into.

    It is also the `contam.detect.sources.Sources` of a scan: all evidence is compared with the text
    of the shards.

    paths       what the user named, sorted: shards take their names from it
    digests     of each shard when it was listed, None where it could not be read
    selections  columns of each shard, None where none was found
    coverage    what was read: nothing yet when it is opened
    in_memory   names of the shards that are tables of the caller
    skipped     files in the folders that are no shards
    documents   (shard, row) -> what is known of documents that were read before
    sha256      of the shards that were searched for every hit, by number
    """

    paths: tuple[str, ...]
    shards: tuple[Shard, ...]
    digests: tuple[str | None, ...]
    selections: list[Selection | None]
    chunks: list[Chunk]
    coverage: Coverage
    notes: tuple[str, ...]
    in_memory: frozenset[str] = frozenset()
    skipped: tuple[Skipped, ...] = ()
    documents: Mapping[tuple[int, int], DocumentMeta] = field(default_factory=dict)
    sha256: Mapping[int, str] = field(default_factory=dict)

    @classmethod
    def open(
        cls,
        paths: Sequence[PathLike],
        text: str | None,
        tables: Sequence[Shard] = (),
        *,
        columns: Mapping[str, str] | None = None,
        exclude: Sequence[str] = (),
        opening: Callable[..., OpenedShards] = open_shards,
    ) -> Corpus:
        """Find shards and columns; shards that cannot be opened are failures in the coverage.

        tables   shards besides those of the paths, under names of their own
        columns  field of a document (id, url, date) -> the column that holds it
        exclude  patterns of shards to leave out on purpose (`contam.corpus.shards.leave_out`)
        opening  what opens the shards, in place of `contam.corpus.opening.open_shards`
        """
        found = survey(paths, look=False) if paths or not tables else ((), ())
        shards, skipped = found
        files = tuple(one for one in skipped if not one.folder)
        in_memory = frozenset(table.name for table in tables)
        if twice := sorted(in_memory.intersection(shard.name for shard in shards)):
            raise UsageError("a table and a file of the corpus are both called {}", twice[0])
        shards = tuple(sorted((*shards, *tables), key=lambda shard: natural_key(shard.name)))
        shards, excluded = leave_out(shards, exclude)
        opened = opening(shards, text, columns)
        unread = [one.unread if one is not None else None for one in opened.selections]
        return cls(
            paths=tuple(
                sorted([*map(str, paths), *(IN_MEMORY + name for name in in_memory)]),
            ),
            shards=opened.shards,
            digests=opened.digests,
            selections=opened.selections,
            chunks=opened.chunks,
            coverage=Coverage.expect(
                shards,
                opened.chunks,
                opened.failures,
                excluded,
                passed_over(skipped),
                names_of(unread),
            ),
            notes=(
                *excluded_note(excluded),
                *(f"{LEFT_OUT}{file.path}: {file.reason}" for file in files),
                *unread_notes(zip([shard.name for shard in shards], unread, strict=True)),
            ),
            in_memory=in_memory,
            skipped=files,
        )

    @property
    def names(self) -> tuple[str, ...]:
        """The shards' names."""
        return tuple(shard.name for shard in self.shards)

    @cached_property
    def chunk_numbers(self) -> Mapping[Chunk, int]:
        """The place of every chunk in the list of chunks."""
        return {chunk: number for number, chunk in enumerate(self.chunks)}

    def metadata(self, shard: int, rows: Sequence[int]) -> list[DocumentMeta]:
        """What is known of the documents in these rows, or their shard says. Raises ShardError."""
        known = {row: self.documents.get((shard, row)) for row in rows}
        missing = [row for row, meta in known.items() if meta is None]
        read = dict(zip(missing, self._read_metadata(shard, missing), strict=True))
        return [known[row] or read[row] for row in rows]

    def _read_metadata(self, shard: int, rows: Sequence[int]) -> list[DocumentMeta]:
        if not rows:
            return []
        selection = self.selections[shard]
        if selection is None:
            name = self.shards[shard].name
            raise InternalError(f"{name}: rows were read without a text column")
        return metadata_or_lost(self.shards[shard], selection, rows)

    def verified(self, matches: Matches) -> Bools:
        """Every match is verified."""
        return np.ones(len(matches), np.bool_)

    def near(self, matches: Matches) -> Bools:
        """No match was found by a sketch: every document was read."""
        return np.zeros(len(matches), np.bool_)

    def inputs(self) -> dict[str, Any]:
        """The paths as named, every shard with its digest, and the files that are no shards."""
        skipped = [{"path": str(file.path), "reason": file.reason} for file in self.skipped]
        return {
            "corpus": list(self.paths),
            "shards": [
                {
                    "uri": IN_MEMORY + shard.name if shard.name in self.in_memory else shard.uri,
                    "name": shard.name,
                    "format": shard.format,
                    "size_bytes": shard.size_bytes,
                    "digest": digest,
                    **({"sha256": self.sha256[number]} if number in self.sha256 else {}),
                }
                for number, (shard, digest) in enumerate(
                    zip(self.shards, self.digests, strict=True)
                )
            ],
            **({"skipped_files": skipped} if skipped else {}),
        }


def excluded_note(names: Sequence[str]) -> tuple[str, ...]:
    """What to say of shards that were left out on purpose."""
    if not names:
        return ()
    more = f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else ""
    count = "1 shard" if len(names) == 1 else f"{len(names):,} shards"
    return (f"excluded on purpose, not searched: {count}: {', '.join(names[:_NAMED])}{more}",)


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
    the corpus: unit ("word"), text, columns, exclude; of the result: allow_missing, max_evidence
    (20), keep_text, every_hit. `contam.detect.parameters.ScanOptions` explains each.

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


def as_list(paths: PathLike | Sequence[PathLike]) -> list[PathLike]:
    """One path, or several, as a list."""
    return [paths] if isinstance(paths, (str, os.PathLike)) else list(paths)


def worker_count(workers: int | None) -> int:
    """Threads to use; None is one a core. Raises UsageError."""
    if workers is None:
        return max(1, min(_MOST_WORKERS, usable_cores()))
    if not 1 <= workers <= _MOST_WORKERS:
        raise UsageError(
            "workers must be 1 to {}, not {}",
            _MOST_WORKERS,
            workers,
            hint="leave it out for one per core",
        )
    return workers
